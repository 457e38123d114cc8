//! SC agrees with the reference evaluator, and the independent checker accepts every certificate.

mod support;

use consistory_check::{Options, decide_sequential};
use consistory_generate::{Memory, PlantOptions, Workload, generate, plant};
use consistory_history::History;
use consistory_models::{EvaluateOptions, evaluate, find};
use consistory_verdict::Verdict;
use support::{Random, Shape, every_history, random_history, text};

fn assert_agrees(history: &History, tally: &mut [usize; 2]) {
    let judgement = decide_sequential(history, &Options::default()).judgement;
    let definition = &find("sc").unwrap().definition;
    let expected = evaluate(definition, history, &EvaluateOptions::default()).unwrap().verdict();
    assert_eq!(judgement.verdict(), expected, "sc of\n{}", text(history));
    tally[usize::from(expected == Verdict::Violation)] += 1;
    let certificate = judgement.certificate().expect("decided");
    if let Err(rejection) = consistory_certify::certify(history, "sc", expected, certificate) {
        panic!("sc of\n{}\n{judgement:?}\n{rejection}", text(history));
    }
}

#[test]
fn every_small_history() {
    let mut tally = [0; 2];
    for lengths in [&[2, 2][..], &[3, 1], &[2, 1, 1], &[3, 2], &[2, 2, 1]] {
        every_history(lengths, 2, |history| assert_agrees(history, &mut tally));
    }
    for lengths in [&[3, 3][..], &[2, 2, 2]] {
        every_history(lengths, 1, |history| assert_agrees(history, &mut tally));
    }
    assert_eq!(tally, [10_245, 10_159]);
}

#[test]
fn random_histories() {
    let mut tally = [0; 2];
    for seed in 0..30_000 {
        let shape = Shape {
            sessions: 4,
            operations: 12,
            keys: 3,
            duplicates: seed % 5 == 0,
            mixed: seed % 2 == 0,
        };
        assert_agrees(&random_history(&mut Random(seed), shape), &mut tally);
    }
    assert!(tally.iter().all(|&n| n > 1_000), "{tally:?}");
}

#[test]
fn executions_of_simulated_memories() {
    let mut tally = [0; 2];
    for seed in 0..150 {
        for memory in Memory::ALL {
            let workload = Workload {
                sessions: 2 + seed as u32 % 5,
                operations: 20 + seed as u32 % 40,
                variables: 1 + seed as u32 % 6,
                rmw_share: if seed % 3 == 0 { 0.1 } else { 0.0 },
                seed,
                ..Workload::default()
            };
            let history = generate(&workload, memory);
            assert_agrees(&history, &mut tally);
            let plants = PlantOptions { distance: 20, seed, ..PlantOptions::default() };
            assert_agrees(&plant(&history, &plants), &mut tally);
        }
    }
    assert!(tally.iter().all(|&n| n > 100), "{tally:?}");
}

#[test]
fn what_saturation_leaves_open_is_split() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/histories/weak-tso-not-tso.hist");
    let text = std::fs::read_to_string(file).unwrap();
    let history =
        consistory_formats::parse_str(&text, consistory_formats::Format::Hist, file).unwrap();
    let mut tally = [0; 2];
    assert_agrees(&history[0], &mut tally);
    assert_eq!(tally, [0, 1]);
}
