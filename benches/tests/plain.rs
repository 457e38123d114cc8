//! The baselines without saturation agree with the definitions.

use std::time::Duration;

use consistory_benches::plain::{Plain, PlainModel, by_encoding, by_frontier};
use consistory_formats::{Format, parse_str};
use consistory_generate::{Memory, PlantOptions, Tangle, Workload, generate, plant, tangle};
use consistory_history::History;
use consistory_models::{EvaluateOptions, evaluate, find};
use consistory_verdict::Verdict;

const LIMIT: Duration = Duration::from_secs(60);

fn by_definition(history: &History, id: &str) -> Plain {
    let definition = &find(id).unwrap().definition;
    let judgement = evaluate(definition, history, &EvaluateOptions::default()).unwrap();
    Plain::Decided(judgement.verdict() == Verdict::Consistent)
}

/// Compares the baselines with the definitions; returns the verdicts of SC and TSO.
fn assert_agrees(history: &History, what: &str) -> [bool; 2] {
    let (sc, tso) = (by_definition(history, "sc"), by_definition(history, "tso"));
    assert_eq!(by_encoding(history, PlainModel::Sc, LIMIT), sc, "SC-SAT of {what}");
    assert_eq!(by_frontier(history, LIMIT), sc, "the frontier search of {what}");
    assert_eq!(by_encoding(history, PlainModel::Tso, LIMIT), tso, "TSO-SAT of {what}");
    [sc, tso].map(|verdict| verdict == Plain::Decided(true))
}

#[test]
fn executions_with_fences_and_read_modify_writes() {
    let mut tally = [0; 3];
    for seed in 0..150 {
        for memory in [Memory::Sc, Memory::Tso, Memory::Pso, Memory::Ccv] {
            let workload = Workload {
                sessions: 2 + seed as u32 % 3,
                operations: 8 + seed as u32 % 8,
                variables: 1 + seed as u32 % 3,
                rmw_share: if seed % 3 == 0 { 0.15 } else { 0.0 },
                fence_share: if seed % 2 == 0 { 0.1 } else { 0.0 },
                seed,
                ..Workload::default()
            };
            let mut history = generate(&workload, memory);
            if seed % 4 == 3 {
                history =
                    plant(&history, &PlantOptions { distance: 8, seed, ..PlantOptions::default() });
            }
            let verdicts = assert_agrees(&history, &format!("{workload:?} on {memory}"));
            tally[verdicts.into_iter().filter(|&holds| holds).count()] += 1;
        }
    }
    assert!(tally.iter().all(|&n| n > 10), "{tally:?}");
}

#[test]
fn what_saturation_leaves_open() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus/histories/weak-tso-not-tso.hist");
    let text = std::fs::read_to_string(file).unwrap();
    let history = parse_str(&text, Format::Hist, file).unwrap().remove(0);
    assert_eq!(assert_agrees(&history, file), [false, false]);
    let mut violations = 0;
    for seed in 0..20 {
        let history = tangle(&Tangle { cells: 4, cycles: 8 + seed as u32 % 12, seed });
        let (sc, tso) = (by_definition(&history, "sc"), by_definition(&history, "tso"));
        assert_eq!(by_encoding(&history, PlainModel::Sc, LIMIT), sc);
        assert_eq!(by_encoding(&history, PlainModel::Tso, LIMIT), tso);
        violations += usize::from(sc == Plain::Decided(false));
    }
    assert!((2..=18).contains(&violations), "{violations}");
}

#[test]
fn a_baseline_gives_up_when_its_time_is_over() {
    let workload = Workload { sessions: 16, operations: 800, ..Workload::default() };
    let history = generate(&workload, Memory::Sc);
    let limit = Duration::from_millis(20);
    assert_eq!(by_encoding(&history, PlainModel::Sc, limit), Plain::OutOfTime);
    assert_eq!(by_frontier(&history, limit), Plain::OutOfTime);
}
