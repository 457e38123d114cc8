//! CCM and wCCM agree with the reference evaluator, and the independent checker accepts every
//! certificate and no forged one.

use crate::support::{Random, Shape, every_history, executions, random_history, rounds, text};
use consistory_certify::certify;
use consistory_generate::{Memory, Workload, generate};
use consistory_history::{History, OpId};
use consistory_models::{EvaluateOptions, evaluate, find};
use consistory_registers::{
    ConvergentModel, Model, Options, StoreModel, decide_convergent, decide_stored, judge,
};
use consistory_verdict::{Certificate, Edge, Judgement, Verdict, View};

const MODELS: [(&str, ConvergentModel); 2] =
    [("ccm", ConvergentModel::Ccm), ("wccm", ConvergentModel::Wccm)];

/// Number of histories that each model allows, and that it forbids.
type Tally = [[usize; 2]; MODELS.len()];

fn assert_agrees(history: &History, tally: &mut Tally) {
    for ((id, model), tally) in MODELS.into_iter().zip(tally) {
        let definition = &find(id).unwrap().definition;
        let expected = evaluate(definition, history, &EvaluateOptions::default()).unwrap();
        let expected = expected.verdict();
        tally[usize::from(expected == Verdict::Violation)] += 1;
        let judgement = decide_convergent(history, model, &Options::default()).judgement;
        assert_eq!(judgement.verdict(), expected, "{id} of\n{}\n{judgement:?}", text(history));
        let certificate = judgement.certificate().expect("decided");
        if let Err(rejection) = certify(history, id, expected, certificate) {
            panic!("{id} of\n{}\n{judgement:?}\n{rejection}", text(history));
        }
    }
}

#[test]
fn every_small_history() {
    let mut tally = Tally::default();
    for lengths in [&[2, 2][..], &[3, 1], &[2, 1, 1], &[3, 2], &[2, 2, 1]] {
        every_history(lengths, 2, |history| assert_agrees(history, &mut tally));
    }
    for lengths in [&[3, 3][..], &[2, 2, 2], &[4, 2], &[3, 2, 1]] {
        every_history(lengths, 1, |history| assert_agrees(history, &mut tally));
    }
    assert_eq!(tally, [[11_653, 14_951], [11_693, 14_911]]);
}

#[test]
fn random_histories() {
    let mut tally = Tally::default();
    for seed in 0..rounds(4_000, 20_000) {
        let shape = Shape {
            sessions: 2 + seed as usize % 4,
            operations: 8 + seed as usize % 7,
            keys: 1 + seed as usize % 3,
            duplicates: seed % 5 == 0,
            mixed: seed % 2 == 0,
        };
        assert_agrees(&random_history(&mut Random(seed), shape), &mut tally);
    }
    assert!(tally.iter().flatten().all(|&n| n > 100), "{tally:?}");
}

#[test]
fn executions_of_simulated_memories() {
    let mut tally = Tally::default();
    executions(0..40, |history| assert_agrees(history, &mut tally));
    assert!(tally.iter().flatten().all(|&n| n > 100), "{tally:?}");
}

#[test]
fn no_views_are_accepted_where_the_model_is_violated() {
    let mut offered = 0;
    for seed in 0..rounds(1_000, 4_000) {
        let shape =
            Shape { sessions: 3, operations: 9, keys: 2, duplicates: false, mixed: seed % 2 == 0 };
        let mut random = Random(seed);
        let history = random_history(&mut random, shape);
        for (id, model) in MODELS {
            let judgement = decide_convergent(&history, model, &Options::default()).judgement;
            if judgement.verdict() != Verdict::Violation {
                continue;
            }
            for _ in 0..8 {
                // Some pairs of some order of the writes, in some views.
                let mut order: Vec<OpId> = history.ops().collect();
                for i in (1..order.len()).rev() {
                    order.swap(i, random.below(i + 1));
                }
                let key = |op: OpId| history.writes(op).map(|(key, _)| key);
                let mut views = Vec::new();
                for session in history.sessions() {
                    let relations: &[&'static str] =
                        if id == "ccm" { &["po"] } else { &["ppo", "poloc"] };
                    for &relation in relations {
                        let share = random.below(6);
                        let mut pairs = Vec::new();
                        for (i, &a) in order.iter().enumerate() {
                            let later = order[i + 1..].iter().copied();
                            let of_key = later.filter(|&b| key(a).is_some() && key(a) == key(b));
                            pairs.extend(of_key.map(|b| (a, b)));
                        }
                        pairs.retain(|_| random.below(4) < share);
                        views.push(View { session, relation: relation.into(), pairs });
                    }
                }
                let certificate = Certificate::Views { views, wr: vec![] };
                offered += 1;
                let accepted = certify(&history, id, Verdict::Consistent, &certificate);
                assert!(accepted.is_err(), "{id} of\n{}\n{certificate:?}", text(&history));
            }
        }
    }
    assert!(offered > 2_000, "{offered}");
}

#[test]
fn large_histories_are_decided_by_their_own_rules() {
    let models = MODELS.map(|(id, _)| Model::Catalogued(find(id).unwrap()));
    for (memory, allowed) in [
        (Memory::Sc, [true, true]),
        (Memory::Tso, [false, true]),
        (Memory::Pso, [false, false]),
        (Memory::Ccv, [false, true]),
    ] {
        let workload = Workload { sessions: 6, operations: 3_000, ..Workload::default() };
        let history = generate(&workload, memory);
        for ((ruling, model), allowed) in
            judge(&history, &models, &Options::default()).into_iter().zip(&models).zip(allowed)
        {
            let ruling = ruling.unwrap();
            let verdict = ruling.judgement.verdict();
            let wanted = if allowed { Verdict::Consistent } else { Verdict::Violation };
            assert_eq!(verdict, wanted, "{} of {memory:?}", model.id());
            let by = ruling.via.unwrap_or(model.id());
            certify(&history, by, verdict, ruling.judgement.certificate().unwrap()).unwrap();
        }
    }
}

/// Renames relations throughout a proof.
fn renamed(certificate: &Certificate, rename: &dyn Fn(&str) -> &'static str) -> Certificate {
    fn edge(known: &Edge, rename: &dyn Fn(&str) -> &'static str) -> Edge {
        let because = known.because.iter().map(|premise| edge(premise, rename)).collect();
        Edge::derived(known.from, known.to, rename(known.relation.as_str()), because)
    }
    let Certificate::Cycle { edges, .. } = certificate else { return certificate.clone() };
    let edges = edges.iter().map(|known| edge(known, rename)).collect();
    Certificate::Cycle { edges, observer: None, check: None }
}

#[test]
fn no_proof_against_a_stronger_model_is_accepted() {
    let known = |relation: &str| {
        let all = ["po", "wr", "ppo", "poloc", "wre", "hb", "hb-ppo", "hb-poloc", "cf", "ww", "rw"];
        all.into_iter().find(|known| *known == relation).expect("it is one of these")
    };
    let as_hb = |relation: &str| if relation == "cf" { "hb" } else { known(relation) };
    let buffered = |run: &'static str, forced: &'static str| {
        move |relation: &str| match relation {
            "po" => run,
            "wr" => "wre",
            "hb" => forced,
            other => known(other),
        }
    };
    let (as_ppo, as_poloc) = (buffered("ppo", "hb-ppo"), buffered("poloc", "hb-poloc"));
    let (by_wtso, by_wtso_ppo) = (known, |r: &str| if r == "cf" { "hb-ppo" } else { known(r) });
    let mut offered = [0; 2];
    for seed in 0..100 {
        for memory in Memory::ALL {
            let workload = Workload {
                sessions: 5,
                operations: 40,
                variables: 1 + seed as u32 % 4,
                seed,
                ..Workload::default()
            };
            let history = generate(&workload, memory);
            let verdict =
                |model| decide_convergent(&history, model, &Options::default()).judgement.verdict();
            let against = |model| decide_stored(&history, model, &Options::default()).judgement;
            let mut offer = |at: usize, certificate: Certificate| {
                offered[at] += 1;
                let id = MODELS[at].0;
                let accepted = certify(&history, id, Verdict::Violation, &certificate);
                assert!(accepted.is_err(), "{id} of\n{}\n{certificate:?}", text(&history));
            };
            if let Judgement::Violation { certificate, .. } = against(StoreModel::Wsc) {
                if verdict(ConvergentModel::Ccm) == Verdict::Consistent {
                    offer(0, renamed(&certificate, &known));
                    offer(0, renamed(&certificate, &as_hb));
                }
                if verdict(ConvergentModel::Wccm) == Verdict::Consistent {
                    offer(1, renamed(&certificate, &as_ppo));
                    offer(1, renamed(&certificate, &as_poloc));
                }
            }
            let judgement = decide_convergent(&history, ConvergentModel::Ccm, &Options::default());
            if let Judgement::Violation { certificate, .. } = judgement.judgement
                && verdict(ConvergentModel::Wccm) == Verdict::Consistent
            {
                offer(1, renamed(&certificate, &as_ppo));
                offer(1, renamed(&certificate, &as_poloc));
            }
            if let Judgement::Violation { certificate, .. } = against(StoreModel::Wtso)
                && verdict(ConvergentModel::Wccm) == Verdict::Consistent
            {
                offer(1, renamed(&certificate, &by_wtso));
                offer(1, renamed(&certificate, &by_wtso_ppo));
            }
        }
    }
    assert!(offered[0] >= 10 && offered[1] >= 100, "{offered:?}");
}
