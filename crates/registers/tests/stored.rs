//! The models with a store order agree with the reference evaluator under every engine, and the
//! independent checker accepts every certificate.

use std::time::Duration;

use crate::support::{
    Op, Random, Shape, build, every_history, every_history_of_values, executions, is_deep,
    random_history, rounds, text,
};
use consistory_certify::{certify, certify_definition};
use consistory_formats::{Format, parse_str};
use consistory_generate::{
    Memory, PlantOptions, Plants, Tangle, Workload, generate, plant, tangle,
};
use consistory_history::{History, OpId, Status};
use consistory_live::{CpuOptions, record_cpu};
use consistory_models::{EvaluateOptions, evaluate, find};
use consistory_registers::{Engine, Model, Options, StoreModel, Tuning, decide_stored, judge};
use consistory_verdict::{Budget, Certificate, Edge, Judgement, Stopped, Verdict};

const MODELS: [(&str, StoreModel); 5] = [
    ("wsc", StoreModel::Wsc),
    ("sc", StoreModel::Sc),
    ("wtso", StoreModel::Wtso),
    ("tso", StoreModel::Tso),
    ("pso", StoreModel::Pso),
];

/// Number of histories that each model allows, and that it forbids.
type Tally = [[usize; 2]; MODELS.len()];

fn assert_agrees(history: &History, engines: &[Engine], tally: &mut Tally) {
    for ((id, model), tally) in MODELS.into_iter().zip(tally) {
        let definition = &find(id).unwrap().definition;
        let expected = evaluate(definition, history, &EvaluateOptions::default()).unwrap();
        let expected = expected.verdict();
        tally[usize::from(expected == Verdict::Violation)] += 1;
        for &engine in engines {
            let options = Options::tuned(Tuning { engine, ..Tuning::default() });
            let judgement = decide_stored(history, model, &options).judgement;
            assert_eq!(judgement.verdict(), expected, "{id} by {engine:?} of\n{}", text(history));
            let certificate = judgement.certificate().expect("decided");
            if let Err(rejection) = certify(history, id, expected, certificate) {
                panic!("{id} by {engine:?} of\n{}\n{judgement:?}\n{rejection}", text(history));
            }
            if let Certificate::Closure { pairs, .. } = certificate {
                assert!(pairs.is_sorted_by(|a, b| a < b), "each pair once: {pairs:?}");
            }
        }
    }
}

const ALL: [Engine; 4] = [Engine::Auto, Engine::Split, Engine::Frontier, Engine::Sat];

/// Runs the usual engine on every history, and the other engines on one in ten.
#[derive(Default)]
struct Sampled {
    histories: usize,
}

impl Sampled {
    fn assert_agrees(&mut self, history: &History, tally: &mut Tally) {
        self.histories += 1;
        let is_sample = is_deep() || self.histories.is_multiple_of(10);
        assert_agrees(history, if is_sample { &ALL } else { &[Engine::Auto] }, tally);
    }
}

#[test]
fn every_small_history() {
    let mut tally = Tally::default();
    let mut sampled = Sampled::default();
    for lengths in [&[2, 2][..], &[3, 1], &[2, 1, 1], &[3, 2], &[2, 2, 1]] {
        every_history(lengths, 2, |history| sampled.assert_agrees(history, &mut tally));
    }
    for lengths in [&[3, 3][..], &[2, 2, 2]] {
        every_history(lengths, 1, |history| sampled.assert_agrees(history, &mut tally));
    }
    let expected =
        [[10_245, 10_159], [10_245, 10_159], [10_285, 10_119], [10_285, 10_119], [10_359, 10_045]];
    assert_eq!(tally, expected);
}

#[test]
fn every_small_history_with_repeated_values() {
    let engines = [Engine::Auto, Engine::Split];
    let mut tally = Tally::default();
    for (lengths, keys, greatest) in [
        (&[2, 2][..], 1, 1),
        (&[3, 2], 1, 1),
        (&[2, 2, 1], 1, 1),
        (&[3, 3], 1, 1),
        (&[2, 2], 1, 2),
        (&[2, 1, 1], 1, 2),
        (&[2, 2], 2, 1),
        (&[2, 1, 1], 2, 1),
    ] {
        every_history_of_values(lengths, keys, greatest, |history| {
            assert_agrees(history, &engines, &mut tally);
        });
    }
    assert!(tally.iter().flatten().all(|&n| n > 2_000), "{tally:?}");
}

#[test]
fn random_histories() {
    let mut tally = Tally::default();
    let mut sampled = Sampled::default();
    for seed in 0..rounds(8_000, 30_000) {
        let shape = Shape {
            sessions: 4,
            operations: 12,
            keys: 3,
            duplicates: seed % 3 == 0,
            mixed: seed % 2 == 0,
        };
        sampled.assert_agrees(&random_history(&mut Random(seed), shape), &mut tally);
    }
    assert!(tally.iter().flatten().all(|&n| n > 300), "{tally:?}");
}

#[test]
fn repeated_values_with_reads_of_own_writes() {
    let mut tally = Tally::default();
    for seed in 0..2_000 {
        let random = &mut Random(seed);
        let mut session = || -> Vec<(Op, Status)> {
            let operation = |random: &mut Random| match (random.below(7), random.below(2)) {
                (0..=2, key) => Op::Write(key, 1),
                (3..=5, key) => Op::Read(key, random.below(2) as i64),
                _ => Op::Fence,
            };
            (0..3 + random.below(3)).map(|_| (operation(random), Status::Ok)).collect()
        };
        let history = build(&[session(), session()]);
        assert_agrees(&history, &[Engine::Auto], &mut tally);
    }
    assert!(tally.iter().flatten().all(|&n| n > 300), "{tally:?}");
}

#[test]
fn impossible_reads_of_large_histories_violate_models_without_a_decider() {
    let writes: String = (1..3_000).map(|value| format!(" w(x,{value})")).collect();
    let rmo = [Model::Catalogued(find("rmo").unwrap())];
    for (end, pattern) in [("r(y,7)", "ThinAirRead"), ("r(y,7) w(y,7)", "FutureRead")] {
        let text = format!("t0:{writes}\nt1: {end}\n");
        let history = parse_str(&text, Format::Hist, "large").unwrap().remove(0);
        let ruling = judge(&history, &rmo, &Options::default()).remove(0).unwrap();
        let Judgement::Violation { pattern: found, certificate } = &ruling.judgement else {
            panic!("{end}: {:?}", ruling.judgement);
        };
        assert_eq!(found, pattern);
        let definition = &find("rmo").unwrap().definition;
        certify_definition(&history, definition, Verdict::Violation, certificate).unwrap();
    }
}

#[test]
fn executions_of_simulated_memories() {
    let mut tally = Tally::default();
    let mut sampled = Sampled::default();
    executions(0..150, |history| sampled.assert_agrees(history, &mut tally));
    assert!(tally.iter().flatten().all(|&n| n > 100), "{tally:?}");
}

#[test]
fn tangled_histories_small_enough_for_the_evaluator() {
    let mut tally = Tally::default();
    for seed in 0..200 {
        let (cells, cycles) = (4, 8 + seed as u32 % 12);
        assert_agrees(&tangle(&Tangle { cells, cycles, seed }), &ALL, &mut tally);
    }
    // Saturation alone cannot refute them.
    assert_eq!((tally[0], tally[2]), ([200, 0], [200, 0]));
    assert!([1, 3, 4].iter().all(|&at| tally[at].iter().all(|&n| n > 30)), "{tally:?}");
}

#[test]
fn busy_histories_of_their_own_memories() {
    for seed in 0..12 {
        let workload = Workload {
            sessions: 20 + 2 * seed as u32,
            operations: 2_000,
            variables: 24,
            rmw_share: if seed % 3 == 0 { 0.05 } else { 0.0 },
            fence_share: if seed % 4 == 0 { 0.05 } else { 0.0 },
            seed,
            ..Workload::default()
        };
        for ((id, model), memory) in
            [(MODELS[1], Memory::Sc), (MODELS[3], Memory::Tso), (MODELS[4], Memory::Pso)]
        {
            let history = generate(&workload, memory);
            let judgement = decide_stored(&history, model, &Options::default()).judgement;
            let certificate = judgement.certificate().expect("decided");
            certify(&history, id, Verdict::Consistent, certificate).expect(id);
        }
    }
}

/// Decides a history with final values by the models with a total store order; counts the histories
/// that each model allows and forbids.
fn assert_ends(history: &str, tally: &mut [[usize; 2]; 3]) {
    let parsed = parse_str(history, Format::Hist, "final values").unwrap().remove(0);
    for ((id, model), tally) in [MODELS[1], MODELS[3], MODELS[4]].into_iter().zip(tally) {
        let definition = &find(id).unwrap().definition;
        let Ok(expected) = evaluate(definition, &parsed, &EvaluateOptions::default()) else {
            continue;
        };
        let expected = expected.verdict();
        tally[usize::from(expected == Verdict::Violation)] += 1;
        for engine in ALL {
            let options = Options::tuned(Tuning { engine, ..Tuning::default() });
            let judgement = decide_stored(&parsed, model, &options).judgement;
            assert_eq!(judgement.verdict(), expected, "{id} by {engine:?} of\n{history}");
            let certificate = judgement.certificate().expect("decided");
            if let Err(rejection) = certify(&parsed, id, expected, certificate) {
                panic!("{id} by {engine:?} of\n{history}\n{judgement:?}\n{rejection}");
            }
        }
    }
}

#[test]
fn final_values() {
    let mut tally = [[0; 2]; 3];
    for seed in 0..rounds(2_000, 6_000) {
        let random = &mut Random(seed);
        let duplicates = seed % 2 == 0;
        let shape = Shape { sessions: 3, operations: 9, keys: 2, duplicates, mixed: seed % 3 == 0 };
        let mut history = text(&random_history(random, shape));
        history += &format!("final: x0={}\n", random.below(4));
        if seed % 5 == 0 {
            history += &format!("final: x1={}\n", random.below(4));
        }
        assert_ends(&history, &mut tally);
    }
    assert!(tally.iter().flatten().all(|&n| n > 100), "{tally:?}");
}

#[test]
fn every_small_history_with_a_final_value_that_several_writes_may_have() {
    let mut tally = [[0; 2]; 3];
    for (lengths, keys) in [(&[2, 2][..], 1), (&[2, 2, 1], 1), (&[2, 2], 2)] {
        every_history_of_values(lengths, keys, 1, |history| {
            for last in 0..2 {
                assert_ends(&format!("{}final: x0={last}\n", text(history)), &mut tally);
            }
        });
    }
    assert!(tally.iter().flatten().all(|&n| n > 1_000), "{tally:?}");
}

/// Returns certificates with one mistake each, in the cases of last writes and inside them.
fn forged(history: &History, certificate: &Certificate) -> Vec<Certificate> {
    let ids = || (0..history.len() + history.key_count()).map(OpId::new);
    let Certificate::SplitLast { key, branches } = certificate else { return Vec::new() };
    let split = |key, branches| Certificate::SplitLast { key, branches };
    let mut all: Vec<Certificate> = branches.iter().map(|(_, proof)| proof.clone()).collect();
    all.extend(history.keys().filter(|other| other != key).map(|key| split(key, branches.clone())));
    for (i, (write, proof)) in branches.iter().enumerate() {
        let with = |branch: (OpId, Certificate)| {
            let mut branches = branches.clone();
            branches[i] = branch;
            split(*key, branches)
        };
        let mut fewer = branches.clone();
        fewer.remove(i);
        all.push(split(*key, fewer));
        all.push(split(*key, [&branches[..], &[branches[i].clone()]].concat()));
        all.extend(ids().filter(|id| id != write).map(|id| with((id, proof.clone()))));
        if let Certificate::Cycle { edges, .. } = proof {
            for at in 0..edges.len() {
                let damaged = |damage: &dyn Fn(&mut Vec<Edge>)| {
                    let mut edges = edges.clone();
                    damage(&mut edges);
                    with((*write, Certificate::Cycle { edges, observer: None, check: None }))
                };
                all.push(damaged(&|edges| drop(edges.remove(at))));
                all.push(damaged(&|edges| edges[at].relation = "final".into()));
                all.extend(ids().map(|id| damaged(&|edges| edges[at].to = id)));
            }
        }
    }
    all
}

#[test]
fn no_proof_about_last_writes_proves_what_is_not() {
    let parse = |text: &str| parse_str(text, Format::Hist, "final values").unwrap().remove(0);
    // Proofs by last writes, and histories to check them against.
    let mut proofs: Vec<(History, Certificate)> = Vec::new();
    let mut consistent: Vec<History> = Vec::new();
    let mut left_out = 0;
    for lengths in [&[2, 2][..], &[2, 1, 1], &[3, 2]] {
        every_history_of_values(lengths, 1, 1, |history| {
            for last in 0..2 {
                let history = parse(&format!("{}final: x0={last}\n", text(history)));
                let judgement =
                    decide_stored(&history, StoreModel::Sc, &Options::default()).judgement;
                match judgement {
                    Judgement::Consistent(_) => consistent.push(history),
                    Judgement::Violation { certificate, .. } => {
                        // No part that a case needs can be left out.
                        if let Certificate::SplitLast { key, branches } = &certificate
                            && branches.len() > 1
                        {
                            let (key, branches) = (*key, branches[1..].to_vec());
                            let fewer = Certificate::SplitLast { key, branches };
                            let claim = certify(&history, "sc", Verdict::Violation, &fewer);
                            assert!(claim.is_err(), "{}", text(&history));
                            left_out += 1;
                        }
                        if matches!(certificate, Certificate::SplitLast { .. }) {
                            proofs.push((history, certificate));
                        }
                    }
                    Judgement::Undecided(stopped) => panic!("{stopped}"),
                }
            }
        });
    }
    assert!(left_out > 10, "{left_out}");
    let mut offered = 0;
    let random = &mut Random(7);
    for (history, certificate) in &proofs {
        let mut forged = forged(history, certificate);
        forged.push(certificate.clone());
        for _ in 0..40 {
            let other = &consistent[random.below(consistent.len())];
            if other.len() != history.len() || other.key_count() != history.key_count() {
                continue;
            }
            for proof in [certificate, &forged[random.below(forged.len())]] {
                let claim = certify(other, "sc", Verdict::Violation, proof);
                assert!(claim.is_err(), "{}\n{proof:?}", text(other));
                offered += 1;
            }
        }
    }
    assert!(offered > 1_000, "{offered}");
}

#[test]
fn large_histories_of_their_own_memories_whose_values_repeat() {
    for seed in 0..8 {
        let workload = Workload {
            sessions: 3 + seed as u32 % 4,
            operations: 2_000,
            variables: 64,
            values: [8, 16, 64, 128][seed as usize % 4],
            rmw_share: if seed % 3 == 0 { 0.05 } else { 0.0 },
            fence_share: if seed % 4 == 0 { 0.05 } else { 0.0 },
            seed,
            ..Workload::default()
        };
        for ((id, model), memory) in [
            (MODELS[0], Memory::Sc),
            (MODELS[1], Memory::Sc),
            (MODELS[2], Memory::Tso),
            (MODELS[3], Memory::Tso),
            (MODELS[4], Memory::Pso),
        ] {
            let history = generate(&workload, memory);
            let judgement = decide_stored(&history, model, &Options::default()).judgement;
            let certificate = judgement.certificate().expect("decided");
            certify(&history, id, Verdict::Consistent, certificate).expect(id);
        }
    }
}

#[test]
fn contended_histories_whose_values_repeat() {
    let mut tally = [[0; 2]; 3];
    for seed in 0..24 {
        let workload = Workload {
            sessions: 4 + seed as u32 % 3,
            operations: 160,
            variables: 5,
            values: [2, 3, 4, 8][seed as usize % 4],
            rmw_share: if seed % 3 == 0 { 0.05 } else { 0.0 },
            fence_share: if seed % 5 == 0 { 0.05 } else { 0.0 },
            seed,
            ..Workload::default()
        };
        let models = [(MODELS[1], Memory::Sc), (MODELS[3], Memory::Tso), (MODELS[4], Memory::Pso)];
        for (((id, model), memory), tally) in models.into_iter().zip(&mut tally) {
            let history = generate(&workload, memory);
            let judgement = decide_stored(&history, model, &Options::default()).judgement;
            let certificate = judgement.certificate().expect("decided");
            certify(&history, id, Verdict::Consistent, certificate).expect(id);
            // Another value need not be wrong; the verdict, whatever it is, has a certificate.
            let (plants, distance) = (Plants::Count(3), 10);
            let planted = plant(&history, &PlantOptions { plants, distance, seed });
            let judgement = decide_stored(&planted, model, &Options::default()).judgement;
            let certificate = judgement.certificate().expect("decided");
            certify(&planted, id, judgement.verdict(), certificate).expect(id);
            tally[usize::from(judgement.verdict() == Verdict::Violation)] += 1;
        }
    }
    assert!(tally.iter().flatten().all(|&n| n > 1), "{tally:?}");
}

/// Decides with every engine, the portfolio on several threads; returns the common verdict.
fn assert_engines_agree(history: &History, id: &str, model: StoreModel, what: &str) -> Verdict {
    let mut verdicts = Vec::new();
    for (engine, jobs) in
        [(Engine::Split, 1), (Engine::Sat, 1), (Engine::Auto, 2), (Engine::Auto, 3)]
    {
        let options = Options { jobs, ..Options::tuned(Tuning { engine, ..Tuning::default() }) };
        let judgement = decide_stored(history, model, &options).judgement;
        let certificate = judgement.certificate().expect("decided");
        certify(history, id, judgement.verdict(), certificate)
            .unwrap_or_else(|rejection| panic!("{id} by {engine:?} of {what}: {rejection}"));
        verdicts.push(judgement.verdict());
    }
    assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{id} of {what}: {verdicts:?}");
    verdicts[0]
}

#[test]
fn tangled_histories() {
    let mut violations = 0;
    for seed in 0..24 {
        let hard = Tangle { cells: 10 + seed as u32 % 8, cycles: 50, seed };
        let history = tangle(&hard);
        for (id, model) in [MODELS[1], MODELS[3], MODELS[4]] {
            let verdict = assert_engines_agree(&history, id, model, &format!("{hard:?}"));
            violations += usize::from(verdict == Verdict::Violation);
        }
    }
    assert!((9..=63).contains(&violations), "{violations}");
}

#[test]
fn tangled_histories_whose_values_repeat() {
    let mut tally = [0; 2];
    for seed in 0..10 {
        let (cells, cycles) = (5, 12 + 3 * seed as u32);
        // Some reads and final values may come from another session.
        let again = match seed % 5 {
            0 => "w(x0,1) w(x1,2)\nreader: r(x0,1)",
            1 => "w(p,1) r(p,1) w(p,1)\nreader: r(p,1)",
            2 => "w(x2,1) f w(x3,2) f w(x0,2)",
            3 => "w(x4,2)\nfinal: x4=2",
            _ => "w(x0,1)\nafter: w(x1,2)\nfinal: x0=1 x1=2 x2=1",
        };
        let written = text(&tangle(&Tangle { cells, cycles, seed }));
        let written = format!("{written}again: {again}\n");
        let history = parse_str(&written, Format::Hist, "tangled").unwrap().remove(0);
        for (id, model) in [MODELS[1], MODELS[3], MODELS[4]] {
            let verdict = assert_engines_agree(&history, id, model, &written);
            tally[usize::from(verdict == Verdict::Violation)] += 1;
        }
    }
    assert!(tally.iter().all(|&n| n > 5), "{tally:?}");
}

#[test]
fn what_is_given_is_no_part_of_a_closure() {
    let given = "t0: r(y,0) w(x,1) f w(y,1)\nt1: r(x,1) w(z,1) r(z,1)\n";
    let history = parse_str(given, Format::Hist, "given").unwrap().remove(0);
    for model in [StoreModel::Wsc, StoreModel::Wtso] {
        let judgement = decide_stored(&history, model, &Options::default()).judgement;
        let closure = Certificate::Closure { pairs: vec![], wr: vec![] };
        assert_eq!(judgement, Judgement::Consistent(closure), "{model:?}");
    }
}

#[test]
fn a_violation_has_the_name_of_its_cycle() {
    let buffered = "t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)\n";
    let fenced = "t0: w(x,1) f r(y,0)\nt1: w(y,1) f r(x,0)\n";
    let ended = "t0: w(x,1) w(x,2)\nfinal: x=1\n";
    for (written, model, expected) in [
        (buffered, StoreModel::Wsc, "CyclicWSC"),
        (buffered, StoreModel::Sc, "CyclicSC"),
        (fenced, StoreModel::Wtso, "CyclicPPO"),
        (fenced, StoreModel::Tso, "CyclicPPO"),
        (ended, StoreModel::Pso, "FinalValue"),
    ] {
        let history = parse_str(written, Format::Hist, "named").unwrap().remove(0);
        let judgement = decide_stored(&history, model, &Options::default()).judgement;
        let Judgement::Violation { pattern, .. } = judgement else {
            panic!("{model:?} forbids\n{written}");
        };
        assert_eq!(pattern, expected, "{model:?} of\n{written}");
    }
}

#[test]
fn recordings_of_this_processor() {
    let mut tally = Tally::default();
    for (seed, (fence_share, rmw_share)) in [(0.0, 0.0), (0.1, 0.0), (0.0, 0.1)].iter().enumerate()
    {
        let options = CpuOptions {
            threads: 3,
            operations: 14,
            variables: 3,
            fence_share: *fence_share,
            rmw_share: *rmw_share,
            rounds: 60,
            seed: seed as u64,
            ..CpuOptions::default()
        };
        record_cpu(&options, |history| {
            assert_agrees(&history, &ALL, &mut tally);
            true
        })
        .unwrap();
    }
    assert_eq!(tally.map(|[consistent, violations]| consistent + violations), [180; 5]);
    // An x86 processor is TSO; on others the evaluator determines the expected verdict.
    if cfg!(target_arch = "x86_64") {
        assert_eq!(tally[3], [180, 0]);
    }
}

#[test]
fn every_engine_stops_when_its_budget_runs_out() {
    // No engine decides this one in a second.
    let history = tangle(&Tangle { cells: 200, cycles: 900, seed: 1 });
    for (engine, jobs) in ALL.into_iter().zip([3, 1, 1, 1]) {
        for model in [StoreModel::Sc, StoreModel::Tso] {
            let budget = Budget::unlimited().with_time(Duration::from_millis(30));
            let options = Options { jobs, budget, tuning: Tuning { engine, ..Tuning::default() } };
            let judgement = decide_stored(&history, model, &options).judgement;
            let stopped = Judgement::Undecided(Stopped::Time { limit: Duration::from_millis(30) });
            assert_eq!(judgement, stopped, "{engine:?}");
        }
    }
    let budget = Budget::unlimited().with_memory(1 << 20);
    let options =
        Options { budget, ..Options::tuned(Tuning { engine: Engine::Sat, ..Tuning::default() }) };
    let judgement = decide_stored(&history, StoreModel::Sc, &options).judgement;
    assert!(matches!(judgement, Judgement::Undecided(Stopped::Memory { .. })), "{judgement:?}");
}

#[test]
fn what_saturation_leaves_open_is_split() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/histories/weak-tso-not-tso.hist");
    let text = std::fs::read_to_string(file).unwrap();
    let history =
        consistory_formats::parse_str(&text, consistory_formats::Format::Hist, file).unwrap();
    let mut tally = Tally::default();
    assert_agrees(&history[0], &ALL, &mut tally);
    assert_eq!(tally, [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0]]);
}

#[test]
fn no_closure_is_accepted_where_a_weak_model_is_violated() {
    let mut offered = 0;
    for seed in 0..rounds(1_000, 4_000) {
        let shape =
            Shape { sessions: 3, operations: 8, keys: 2, duplicates: false, mixed: seed % 2 == 0 };
        let mut random = Random(seed);
        let history = random_history(&mut random, shape);
        for (id, model) in [("wsc", StoreModel::Wsc), ("wtso", StoreModel::Wtso)] {
            let judgement = decide_stored(&history, model, &Options::default()).judgement;
            if judgement.verdict() != Verdict::Violation {
                continue;
            }
            for _ in 0..8 {
                // Some pairs of some order of all operations.
                let mut order: Vec<OpId> = history.ops().collect();
                for i in (1..order.len()).rev() {
                    order.swap(i, random.below(i + 1));
                }
                let share = random.below(5);
                let mut pairs = Vec::new();
                for (i, &a) in order.iter().enumerate() {
                    pairs.extend(order[i + 1..].iter().map(|&b| (a, b)));
                }
                pairs.retain(|_| random.below(4) < share);
                let closure = Certificate::Closure { pairs, wr: vec![] };
                offered += 1;
                let accepted = certify(&history, id, Verdict::Consistent, &closure);
                assert!(accepted.is_err(), "{id} of\n{}\n{closure:?}", text(&history));
            }
        }
    }
    assert!(offered > 2_000, "{offered}");
}

#[test]
fn what_is_too_large_for_the_evaluator_is_settled_by_a_stronger_model() {
    let models = [Model::Catalogued(find("rmo").unwrap())];
    for memory in [Memory::Sc, Memory::Tso, Memory::Pso] {
        let workload = Workload { operations: 2_000, variables: 3, ..Workload::default() };
        let history = generate(&workload, memory);
        let ruling = judge(&history, &models, &Options::default()).remove(0).unwrap();
        assert_eq!((ruling.judgement.verdict(), ruling.via), (Verdict::Consistent, Some("pso")));
        let certificate = ruling.judgement.certificate().unwrap();
        certify(&history, "pso", Verdict::Consistent, certificate).unwrap();
    }
}
