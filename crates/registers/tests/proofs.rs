//! No proof of a violation is circular: no edge is among its own premises, however deep.

use std::collections::HashSet;

use crate::support::{Random, Shape, random_history, rounds, text};
use consistory_certify::certify;
use consistory_formats::{Format, parse_str};
use consistory_generate::{Memory, Workload, generate};
use consistory_history::{History, OpId};
use consistory_registers::{
    CausalModel, ConvergentModel, Engine, Options, StoreModel, Tuning, decide, decide_convergent,
    decide_stored,
};
use consistory_verdict::{Certificate, Edge, Judgement, Verdict};

/// Finds an edge that occurs, with the same relation, among its own premises.
fn circular(certificate: &Certificate) -> Option<&Edge> {
    match certificate {
        Certificate::Cycle { edges, .. } => edges.iter().find_map(|edge| circle(edge)),
        Certificate::SplitOrder { branches, .. } => branches.iter().find_map(circular),
        Certificate::SplitRead { branches, .. } | Certificate::SplitLast { branches, .. } => {
            branches.iter().find_map(|(_, branch)| circular(branch))
        }
        _ => None,
    }
}

fn circle(edge: &Edge) -> Option<&Edge> {
    let mut above: HashSet<(OpId, OpId, &str)> = HashSet::new();
    let mut open = vec![(edge, 0)];
    above.insert((edge.from, edge.to, edge.relation.as_str()));
    while let Some((edge, next)) = open.last_mut() {
        if let Some(premise) = edge.because.get(*next) {
            *next += 1;
            if !above.insert((premise.from, premise.to, premise.relation.as_str())) {
                return Some(premise);
            }
            open.push((premise, 0));
        } else {
            above.remove(&(edge.from, edge.to, edge.relation.as_str()));
            open.pop();
        }
    }
    None
}

/// Judges a history by every model whose rules derive edges from derived edges.
fn judgements(history: &History) -> Vec<(&'static str, Judgement<Certificate>)> {
    let options = &Options::default();
    let split = &Options::tuned(Tuning { engine: Engine::Split, ..Tuning::default() });
    let causal = decide(history, &[CausalModel::Cm], options).remove(0).judgement;
    let convergent = |model| decide_convergent(history, model, options).judgement;
    let stored = |model, options| decide_stored(history, model, options).judgement;
    vec![
        ("cm", causal),
        ("ccm", convergent(ConvergentModel::Ccm)),
        ("wccm", convergent(ConvergentModel::Wccm)),
        ("wsc", stored(StoreModel::Wsc, options)),
        ("sc", stored(StoreModel::Sc, options)),
        ("wtso", stored(StoreModel::Wtso, options)),
        ("tso", stored(StoreModel::Tso, options)),
        ("tso", stored(StoreModel::Tso, split)),
        ("pso", stored(StoreModel::Pso, options)),
        ("pso", stored(StoreModel::Pso, split)),
    ]
}

/// Checks the proofs of all models that a history violates and counts them.
fn assert_no_circles(history: &History) -> usize {
    let mut violations = 0;
    for (id, judgement) in judgements(history) {
        let Judgement::Violation { certificate, .. } = &judgement else { continue };
        violations += 1;
        if let Some(edge) = circular(certificate) {
            panic!("{id} of\n{}\nrests on itself: {edge:?}\n{judgement:?}", text(history));
        }
        if let Err(rejection) = certify(history, id, Verdict::Violation, certificate) {
            panic!("{id} of\n{}\n{judgement:?}\n{rejection}", text(history));
        }
    }
    violations
}

#[test]
fn a_pair_that_several_reads_force() {
    // The second read of 2 forces the order of the writes, and that order makes the first read
    // force it too.
    let history = "t0: w(x,1)\nt1: w(x,2) r(x,2) r(x,1) r(x,2)\n";
    let history = &parse_str(history, Format::Hist, "several reads").unwrap()[0];
    assert_eq!(assert_no_circles(history), judgements(history).len());
    let judgement = decide(history, &[CausalModel::Cm], &Options::default()).remove(0).judgement;
    let Some(Certificate::Cycle { edges, observer, .. }) = judgement.certificate() else {
        panic!("{judgement:?}");
    };
    let last = history.ops().last();
    assert_eq!(*observer, last);
    let forced = edges.iter().find(|edge| edge.relation == "hb").unwrap();
    assert_eq!(forced.because.last().map(|wr| wr.to), last, "{forced:?}");
}

#[test]
fn random_histories() {
    let mut violations = 0;
    for seed in 0..rounds(1_500, 6_000) {
        let shape = Shape {
            sessions: 2 + seed as usize % 4,
            operations: 8 + seed as usize % 12,
            keys: 1 + seed as usize % 3,
            duplicates: seed % 7 == 0,
            mixed: seed % 2 == 0,
        };
        violations += assert_no_circles(&random_history(&mut Random(seed), shape));
    }
    assert!(violations > 1_000, "{violations}");
}

#[test]
fn executions_of_simulated_memories() {
    let mut violations = 0;
    for seed in 0..100 {
        for memory in [Memory::Tso, Memory::Pso, Memory::Ccv, Memory::Cm, Memory::Broken] {
            let workload = Workload {
                sessions: 2 + seed as u32 % 4,
                operations: 20 + seed as u32 % 61,
                variables: 1 + seed as u32 % 5,
                rmw_share: if seed % 3 == 0 { 0.1 } else { 0.0 },
                fence_share: if seed % 5 == 0 { 0.1 } else { 0.0 },
                seed,
                ..Workload::default()
            };
            violations += assert_no_circles(&generate(&workload, memory));
        }
    }
    assert!(violations > 500, "{violations}");
}
