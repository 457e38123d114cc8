//! Labels against data: a random protocol runs with both, and after every step each location must
//! hold the value that its label denotes.

use consistory_verdict::Budget;

use crate::machine::UNDEFINED;
use crate::machine::stepper::{Fired, Serialization, Stepper};
use crate::murphi::ir::Binder;
use crate::system::{Model, System};
use crate::tracking::Source;

#[path = "../../tests/support/mod.rs"]
mod support;

use support::protocols::{RandomProtocol, Style};
use support::{Random, cases};

/// Finds the rule with labels that corresponds to a rule with data, and the data that the rule
/// binds.
fn counterpart(plain: &System, tracked: &System, number: usize) -> (usize, Option<i32>) {
    let instance = &plain.lowered.rules[number];
    let data = tracked.flow.as_ref().unwrap().data;
    let binders = &plain.program.rules[instance.rule as usize].binders;
    let is_data: Vec<bool> = binders
        .iter()
        .map(|binder| match binder {
            Binder::Quantifier { var, .. } => plain.program.variables[var.0 as usize].ty == data,
            _ => false,
        })
        .collect();
    let parameters = instance.parameters.iter().zip(&is_data);
    let stored = parameters.clone().find(|(_, is_data)| **is_data).map(|(&value, _)| value);
    let found = tracked.lowered.rules.iter().position(|other| {
        let pairs = other.parameters.iter().zip(&instance.parameters).zip(&is_data);
        other.rule == instance.rule && pairs.into_iter().all(|((a, b), is_data)| *is_data || a == b)
    });
    (found.expect("each rule has a counterpart"), stored)
}

/// Compares the slots that are not data, and returns the data of the locations.
fn compare(plain: &Stepper<'_>, tracked: &Stepper<'_>, text: &str) -> Vec<Option<i32>> {
    let layout = &tracked.system.layout;
    let is_data = |slot: usize| {
        let slot = slot as u32;
        layout.locations.contains(&slot) || layout.ghosts.contains(&slot)
    };
    for (slot, (a, b)) in plain.slots().iter().zip(tracked.slots()).enumerate() {
        assert!(is_data(slot) || a == b, "{text}");
    }
    let defined = |code: i32| (code != UNDEFINED).then_some(code);
    layout.locations.iter().map(|&slot| defined(plain.slots()[slot as usize])).collect()
}

#[test]
fn labels_stand_for_the_data_that_they_replace() {
    let mut steps = 0;
    for seed in 0..cases(200) {
        let mut random = Random::new(seed);
        let protocol = RandomProtocol::new(&mut random);
        let style = Style { scalarsets: random.chance(1, 2), ghosts: random.chance(1, 2) };
        let text = protocol.text(style);
        let model = Model::parse("random.m", &text).unwrap();
        let (plain, tracked) = (model.plain(), model.tracked().unwrap());
        let mut with_data = Stepper::new(&plain, Serialization::Inferred, Budget::unlimited());
        let mut with_labels = Stepper::new(&tracked, Serialization::Inferred, Budget::unlimited());
        let start = random.below(plain.lowered.starts.len());
        assert_eq!(with_data.start(start), Fired::Done, "{text}");
        assert_eq!(with_labels.start(start), Fired::Done, "{text}");
        let mut held = compare(&with_data, &with_labels, &text);
        for (&a, x) in with_labels.effect.sources.iter().zip(&held) {
            assert_eq!(a == Source::Nothing, x.is_none(), "{text}");
            for (&b, y) in with_labels.effect.sources.iter().zip(&held) {
                assert_eq!(a == b, x == y, "equal numbers for equal values: {text}");
            }
        }
        for _ in 0..40 {
            let (data, labels) = (with_data.slots().to_vec(), with_labels.slots().to_vec());
            with_data.load_slots(&data);
            with_labels.load_slots(&labels);
            let number = random.below(plain.lowered.rules.len());
            let (other, stored) = counterpart(&plain, &tracked, number);
            let fired = with_data.fire(number);
            assert_eq!(fired, with_labels.fire(other), "{text}");
            if fired == Fired::Disabled {
                continue;
            }
            let now = compare(&with_data, &with_labels, &text);
            for (source, found) in with_labels.effect.sources.iter().zip(&now) {
                let expected = match *source {
                    Source::Location(at) => held[at as usize],
                    Source::Store(_) => stored,
                    Source::Initial { .. } | Source::Nothing => None,
                };
                assert_eq!(*found, expected, "{text}");
            }
            held = now;
            steps += 1;
        }
    }
    assert!(steps > 1000);
}
