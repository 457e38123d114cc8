//! Models judged together: in parallel, and by certificates of other models.

use crate::support::{Random, Shape, random_history, rounds, text};
use consistory_certify::certify;
use consistory_formats::{Format, parse_str};
use consistory_generate::{Memory, PlantOptions, Workload, generate, plant};
use consistory_history::History;
use consistory_models::find;
use consistory_registers::{Model, Options, Ruling, judge};
use consistory_verdict::{Budget, Judgement, Verdict};

const MODELS: [&str; 10] = ["pso", "cc", "tso", "ccm", "wsc", "sc", "wccm", "wtso", "ccv", "cm"];

fn of(id: &str) -> Model {
    Model::Catalogued(find(id).unwrap())
}

/// Judges by all models, together and one by one; asserts that the verdicts agree, and returns
/// them.
fn judged(history: &History, jobs: usize) -> Vec<Verdict> {
    let options = Options { jobs, ..Options::default() };
    let together = judge(history, &MODELS.map(of), &options);
    MODELS
        .iter()
        .zip(together)
        .map(|(id, ruling)| {
            let Ruling { judgement, via, .. } = ruling.unwrap();
            let alone = judge(history, &[of(id)], &Options::default()).remove(0).unwrap();
            let what = || {
                format!("{id}: {}", if history.len() < 50 { text(history) } else { String::new() })
            };
            assert_eq!(alone.judgement.verdict(), judgement.verdict(), "{}", what());
            let certificate = judgement.certificate().expect("it is decided");
            if let (None, None) = (via, alone.via) {
                // A certificate has the form that the model's own decider produces.
                let usual = alone.judgement.certificate().expect("it is decided");
                assert_eq!(certificate.kind(), usual.kind(), "{}", what());
            }
            let shown = via.unwrap_or(id);
            certify(history, shown, judgement.verdict(), certificate).unwrap();
            judgement.verdict()
        })
        .collect()
}

#[test]
fn small_histories() {
    let mut holding = [0; MODELS.len()];
    let all = rounds(600, 2_000) as usize;
    for seed in 0..all as u64 {
        let (duplicates, mixed) = (seed % 3 == 0, seed % 2 == 0);
        let shape = Shape { sessions: 4, operations: 10, keys: 3, duplicates, mixed };
        let verdicts = judged(&random_history(&mut Random(seed), shape), 2);
        for (holding, verdict) in holding.iter_mut().zip(verdicts) {
            *holding += usize::from(verdict == Verdict::Consistent);
        }
    }
    assert!(holding.iter().all(|&n| (all / 10..all * 9 / 10).contains(&n)), "{holding:?}");
}

#[test]
fn final_values() {
    let histories = [
        ("t0: w(x,1) w(x,3)\nt1: w(x,1) w(x,4)\nfinal: x=3\n", [true; 3]),
        ("t0: w(x,1) w(x,3)\nt1: w(x,1) w(x,4)\nfinal: x=1\n", [false; 3]),
        ("t0: w(x,1) w(y,1)\nt1: w(y,2) w(x,2)\nfinal: x=1 y=2\n", [false, false, true]),
        ("t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)\nfinal: x=1 y=1\n", [false, true, true]),
    ];
    for (written, holds) in histories {
        let history = parse_str(written, Format::Hist, "finals").unwrap().remove(0);
        let ids = ["sc", "tso", "pso"];
        let rulings = judge(&history, &ids.map(of), &Options::default());
        for ((id, ruling), holds) in ids.iter().zip(rulings).zip(holds) {
            let Ruling { judgement, .. } = ruling.unwrap();
            assert_eq!(judgement.verdict() == Verdict::Consistent, holds, "{id}: {written}");
            let certificate = judgement.certificate().expect("it is decided");
            certify(&history, id, judgement.verdict(), certificate).unwrap();
        }
    }
}

fn large(memory: Memory, seed: u64) -> History {
    let workload =
        Workload { sessions: 8, operations: 21_000, variables: 40, seed, ..Workload::default() };
    generate(&workload, memory)
}

#[test]
fn large_histories_on_threads() {
    for (seed, memory) in [Memory::Sc, Memory::Tso, Memory::Ccv].into_iter().enumerate() {
        let history = large(memory, seed as u64);
        let verdicts = judged(&history, 3);
        let is_sc = verdicts[MODELS.iter().position(|id| *id == "sc").unwrap()];
        assert_eq!(is_sc == Verdict::Consistent, memory == Memory::Sc);
        judged(&plant(&history, &PlantOptions::default()), 3);
    }
}

#[test]
fn what_runs_out_of_its_part_of_the_memory_gets_all_of_it() {
    let history = large(Memory::Sc, 7);
    let enough = |memory: u64, jobs: usize, ids: &[&str]| {
        let models: Vec<Model> = ids.iter().copied().map(of).collect();
        let budget = Budget::unlimited().with_memory(memory);
        let rulings = judge(&history, &models, &Options { budget, jobs, ..Options::default() });
        let is_decided = |ruling: &Ruling| !matches!(ruling.judgement, Judgement::Undecided(_));
        rulings.into_iter().all(|ruling| is_decided(&ruling.unwrap()))
    };
    // The smallest set of models in which both are decided one after the other.
    let ids = ["wsc", "wtso"];
    let (mut low, mut high) = (1u64, 1 << 40);
    while high - low > high / 16 {
        let middle = low + (high - low) / 2;
        *if enough(middle, 1, &ids) { &mut high } else { &mut low } = middle;
    }
    assert!(!enough(low, 2, &ids) && enough(high, 2, &ids));
}
