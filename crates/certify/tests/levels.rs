//! Verdicts of the reference evaluator about isolation levels, checked by the checker's own
//! evaluator.

use consistory_certify::certify_ordered_definition;
use consistory_definition::ClientOrder;
use consistory_generate::{
    Anomaly, ClientOrder as StoreOrder, DataKind, PlantOptions, Plants, Store, TransactionWorkload,
    generate_transactions, plant,
};
use consistory_history::History;
use consistory_models::{EvaluateOptions, Model, evaluate, levels};
use consistory_verdict::{Certificate, Judgement, Verdict};

fn judge(level: &Model, history: &History, order: ClientOrder) -> (Verdict, Certificate) {
    let options = EvaluateOptions { order, ..EvaluateOptions::default() };
    match evaluate(&level.definition, history, &options).unwrap() {
        Judgement::Consistent(certificate) => (Verdict::Consistent, certificate),
        Judgement::Violation { certificate, .. } => (Verdict::Violation, certificate),
        Judgement::Undecided(stopped) => panic!("{stopped}"),
    }
}

/// Checks that the right claim is accepted and the wrong one is rejected; returns the verdict.
fn check(level: &Model, history: &History, order: ClientOrder, context: &str) -> Verdict {
    let (verdict, certificate) = judge(level, history, order);
    let accept =
        |claim| certify_ordered_definition(history, &level.definition, order, claim, &certificate);
    assert_eq!(accept(verdict), Ok(()), "{} {order:?} {context}", level.id);
    let wrong = match verdict {
        Verdict::Consistent => Verdict::Violation,
        _ => Verdict::Consistent,
    };
    assert!(accept(wrong).is_err(), "{} {order:?} {context}", level.id);
    verdict
}

fn workload(store: Store, seed: u64) -> TransactionWorkload {
    let is_list = seed.is_multiple_of(3);
    TransactionWorkload {
        store,
        order: if seed.is_multiple_of(2) { StoreOrder::Realtime } else { StoreOrder::None },
        sessions: 2 + (seed % 3) as u32,
        operations: 12,
        keys: 3,
        sizes: 1..=3,
        data: if is_list { DataKind::Lists } else { DataKind::Registers },
        values: if !is_list && seed.is_multiple_of(5) { 3 } else { 0 },
        aborted_share: 0.1,
        indeterminate_share: 0.2,
        is_timed: true,
        seed,
        ..TransactionWorkload::default()
    }
}

#[test]
fn certificates_of_random_histories_are_accepted() {
    let mut seen = [0; 2];
    for store in Store::ALL {
        for seed in 0..30 {
            let workload = workload(store, seed);
            let mut history = generate_transactions(&workload);
            if workload.data == DataKind::Registers && seed % 4 == 1 {
                let plants = Plants::Count(1);
                history = plant(&history, &PlantOptions { plants, distance: 12, seed });
            }
            for order in [ClientOrder::None, ClientOrder::Session, ClientOrder::Realtime] {
                for level in levels() {
                    let verdict = check(level, &history, order, &format!("{store} {seed}"));
                    seen[usize::from(verdict == Verdict::Violation)] += 1;
                }
            }
        }
    }
    assert!(seen[0] > 1_000 && seen[1] > 300, "{seen:?}");
}

#[test]
fn certificates_of_anomalies_are_accepted() {
    for anomaly in Anomaly::ALL {
        for data in [DataKind::Registers, DataKind::Lists] {
            if data == DataKind::Registers && anomaly.needs_lists() {
                continue;
            }
            let workload = TransactionWorkload {
                operations: 4,
                data,
                anomalies: vec![anomaly],
                ..TransactionWorkload::default()
            };
            let history = generate_transactions(&workload);
            for (level, store) in levels().iter().zip(Store::ALL) {
                let verdict = check(level, &history, ClientOrder::Session, anomaly.as_str());
                let is_allowed = anomaly.is_allowed_by(store, StoreOrder::Session);
                assert_eq!(verdict == Verdict::Consistent, is_allowed, "{anomaly} {store}");
            }
        }
    }
}

#[test]
fn a_certificate_of_one_history_proves_nothing_about_another() {
    let make = |seed| {
        let workload = TransactionWorkload {
            store: Store::Rc,
            operations: 16,
            keys: 2,
            seed,
            ..Default::default()
        };
        generate_transactions(&workload)
    };
    let order = ClientOrder::Session;
    let mut compared = 0;
    for seed in 0..40 {
        let (first, second) = (make(seed), make(seed + 1));
        for level in levels() {
            let (claimed, certificate) = judge(level, &first, order);
            let (truth, _) = judge(level, &second, order);
            if claimed != truth {
                compared += 1;
                let accepted = certify_ordered_definition(
                    &second,
                    &level.definition,
                    order,
                    claimed,
                    &certificate,
                );
                assert!(accepted.is_err(), "{} {seed}", level.id);
            }
        }
    }
    assert!(compared > 20, "{compared}");
}
