//! Random small protocols: every way of exploring a protocol reaches the same verdict.
//!
//! The oracle explores without symmetry, with numbers for processors and blocks and without
//! variables that nothing reads. Symmetry, scalarsets and such variables must change neither the
//! verdict nor the length of the shortest run to a violation. A second oracle, which shares nothing
//! with observer and checker, judges every trace up to a given length by itself.

use crate::support::protocols::{RandomProtocol, Style};
use crate::support::{Random, cases};
use consistory_history::History;
use consistory_protocol::{Explorer, Model, Options, Outcome, System, Unfinished, Violation};
use consistory_registers::{Options as CheckOptions, StoreModel, decide_stored};
use consistory_verdict::Verdict;

fn judge(history: &History) -> Verdict {
    decide_stored(history, StoreModel::Sc, &CheckOptions::default()).judgement.verdict()
}

/// Result of one exploration, for comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Found {
    Proved,
    /// A violation after a number of steps; `None` if failing runs were passed over.
    Violation(Option<usize>),
    Unexplained,
    /// Too many states for a test.
    Large,
}

fn explore(system: &System, symmetry: bool) -> Found {
    let options = Options { symmetry, deadlock: false, states: Some(4_000), ..Options::default() };
    let explored = Explorer::new(system).options(options).judge(judge).run().unwrap();
    match explored.outcome {
        Outcome::Holds => Found::Proved,
        Outcome::Violated { violation: Violation::Graph { history, .. }, run } => {
            assert_eq!(judge(&history), Verdict::Violation);
            Found::Violation((explored.passed == 0).then_some(run.steps.len()))
        }
        Outcome::Undecided { reason: Unfinished::Unexplained(found) } => match found.stopped {
            None => Found::Unexplained,
            Some(_) => Found::Large,
        },
        Outcome::Undecided { reason: Unfinished::States { .. } } => Found::Large,
        other => panic!("{other:?}"),
    }
}

fn tracked(text: &str) -> System {
    let model = Model::parse("random.m", text).unwrap_or_else(|e| panic!("{text}\n{e}"));
    model.tracked().unwrap_or_else(|e| panic!("{text}\n{e}"))
}

#[test]
fn symmetry_and_variables_that_nothing_reads_change_nothing() {
    let (mut proved, mut refuted, mut other) = (0, 0, 0);
    for seed in 0..cases(300) {
        let protocol = RandomProtocol::new(&mut Random::new(seed));
        let plain = protocol.text(Style { scalarsets: false, ghosts: false });
        let expected = explore(&tracked(&plain), false);
        match expected {
            Found::Proved => proved += 1,
            Found::Violation(_) => refuted += 1,
            Found::Unexplained | Found::Large => other += 1,
        }
        if expected == Found::Large {
            continue;
        }
        for (scalarsets, ghosts, symmetry) in [
            (false, true, false),
            (true, false, false),
            (true, false, true),
            (true, true, false),
            (true, true, true),
        ] {
            let text = protocol.text(Style { scalarsets, ghosts });
            let found = explore(&tracked(&text), symmetry);
            // Only some of the failing runs of a level are judged, depending on the order of
            // states: one style may find the violation and another one miss it.
            let agrees = match (&found, &expected) {
                (Found::Violation(Some(steps)), Found::Violation(Some(wanted))) => steps == wanted,
                (Found::Proved, _) | (_, Found::Proved) => found == expected,
                (Found::Large, _) => false,
                _ => true,
            };
            assert!(agrees, "{seed}, symmetry {symmetry}: {found:?}, not {expected:?}\n{text}");
        }
    }
    println!("{proved} proved, {refuted} refuted, {other} others");
    assert!(proved >= 20 && refuted >= 50, "{proved} proved, {refuted} refuted, {other} others");
}
