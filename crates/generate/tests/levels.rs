//! Each store generates only histories of its isolation level, and some that no stronger level
//! allows. Planted anomalies violate exactly the levels that forbid them.

#[path = "oracles/levels.rs"]
mod oracle;

use consistory_generate::{
    Anomaly, ClientOrder, DataKind, KeyChoice, Store, TransactionWorkload, generate_transactions,
    stream_transactions,
};
use consistory_history::{History, Status};
use oracle::{Formulation, LEVELS, Order, Small};

fn oracle_order(order: ClientOrder) -> Order {
    match order {
        ClientOrder::None => Order::None,
        ClientOrder::Session => Order::Session,
        ClientOrder::Realtime => Order::Realtime,
    }
}

/// Varies small workloads with the seed.
fn small(store: Store, order: ClientOrder, seed: u64) -> TransactionWorkload {
    let pick = |n: u64, of: u64| (seed / n) % of;
    let is_list = pick(2, 3) == 2;
    TransactionWorkload {
        store,
        order,
        sessions: 2 + pick(1, 3) as u32,
        operations: 6 + pick(6, 4) as u32,
        keys: 1 + pick(24, 3) as u32,
        sizes: 1..=1 + pick(3, 3) as u32,
        data: if is_list { DataKind::Lists } else { DataKind::Registers },
        values: if !is_list && pick(5, 5) == 0 { 2 } else { 0 },
        aborted_share: if pick(7, 3) == 0 { 0.2 } else { 0.0 },
        indeterminate_share: if pick(11, 3) == 0 { 0.2 } else { 0.0 },
        is_timed: order == ClientOrder::Realtime || pick(13, 2) == 0,
        lag: [1, 2, 16][pick(17, 3) as usize],
        seed,
        ..TransactionWorkload::default()
    }
}

/// Returns the number of seeds to try: a hundred times as many in a deep run.
fn seeds(usual: u64) -> u64 {
    if std::env::var_os("CONSISTORY_DEEP").is_some() { 100 * usual } else { usual }
}

/// Writes out a history for a failure's message.
fn show(history: &History) -> String {
    let mut text = String::new();
    for session in history.sessions() {
        text += &format!("\n{}:", history.session_name(session));
        for transaction in history.all_transactions() {
            let ops: Vec<_> = transaction.ops.clone().map(consistory_history::OpId).collect();
            if history.session_of(ops[0]) == session {
                let shown: Vec<String> =
                    ops.iter().map(|&op| history.show(op).to_string()).collect();
                text += &format!(" [{}]{:?}", shown.join(" "), transaction.status);
            }
        }
    }
    text
}

#[test]
fn the_oracle_knows_what_anomalies_violate_and_its_formulations_agree() {
    for anomaly in Anomaly::ALL {
        for order in ClientOrder::ALL {
            for data in [DataKind::Registers, DataKind::Lists] {
                if anomaly.needs_lists() && data == DataKind::Registers {
                    continue;
                }
                let workload = TransactionWorkload {
                    operations: 0,
                    data,
                    order,
                    is_timed: true,
                    anomalies: vec![anomaly],
                    ..TransactionWorkload::default()
                };
                let history = generate_transactions(&workload);
                let oracle = Small::new(&history);
                for level in Store::ALL {
                    let expected = anomaly.is_allowed_by(level, order);
                    for formulation in [Formulation::CommitOrders, Formulation::VersionOrders] {
                        let found =
                            oracle.satisfies(level.as_str(), oracle_order(order), formulation);
                        assert_eq!(
                            found,
                            expected,
                            "{anomaly} under {level}, {order}, {data:?}, {formulation:?}:{}",
                            show(&history)
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn stores_make_histories_of_their_level_only() {
    for store in Store::ALL {
        for order in ClientOrder::ALL {
            for seed in 0..seeds(400) {
                let history = generate_transactions(&small(store, order, seed));
                let oracle = Small::new(&history);
                for formulation in [Formulation::CommitOrders, Formulation::VersionOrders] {
                    assert!(
                        oracle.satisfies(store.as_str(), oracle_order(order), formulation),
                        "{store}, {order}, seed {seed}, {formulation:?}:{}",
                        show(&history)
                    );
                }
            }
        }
    }
}

#[test]
fn no_store_is_stronger_than_its_level() {
    let weaker = |weak: &str, strong: &str| {
        let rank = |level: &str| LEVELS.iter().position(|&l| l == level).unwrap();
        rank(weak) <= rank(strong) && (weak, strong) != ("pc", "psi")
    };
    for store in Store::ALL {
        for order in ClientOrder::ALL {
            for level in LEVELS.into_iter().filter(|&level| !weaker(level, store.as_str())) {
                let separates = |seed: &u64| {
                    let workload = TransactionWorkload {
                        operations: 10,
                        keys: 2,
                        sizes: 1..=3,
                        values: 0,
                        ..small(store, order, *seed)
                    };
                    let history = generate_transactions(&workload);
                    let order = oracle_order(order);
                    !Small::new(&history).satisfies(level, order, Formulation::VersionOrders)
                };
                let found = (0..3000).find(separates);
                assert!(found.is_some(), "{store} with order {order} always satisfies {level}");
            }
        }
    }
}

#[test]
fn planted_anomalies_violate_exactly_the_levels_that_forbid_them() {
    for anomaly in Anomaly::ALL {
        for order in ClientOrder::ALL {
            for seed in 0..8 {
                let data = match anomaly.needs_lists() || seed % 2 == 0 {
                    true => DataKind::Lists,
                    false => DataKind::Registers,
                };
                let workload = TransactionWorkload {
                    order,
                    data,
                    operations: 4,
                    keys: 2,
                    sizes: 1..=2,
                    is_timed: true,
                    anomalies: vec![anomaly],
                    seed,
                    ..TransactionWorkload::default()
                };
                let history = generate_transactions(&workload);
                let oracle = Small::new(&history);
                for level in Store::ALL {
                    let found = oracle.satisfies(
                        level.as_str(),
                        oracle_order(order),
                        Formulation::VersionOrders,
                    );
                    assert_eq!(
                        found,
                        anomaly.is_allowed_by(level, order),
                        "{anomaly} under {level}, {order}, seed {seed}:{}",
                        show(&history)
                    );
                }
            }
        }
    }
}

#[test]
fn a_store_that_never_lags_is_serializable() {
    for store in Store::ALL {
        for seed in 0..100 {
            let workload =
                TransactionWorkload { lag: 0, ..small(store, ClientOrder::Session, seed) };
            let history = generate_transactions(&workload);
            let holds =
                Small::new(&history).satisfies("ser", Order::Session, Formulation::VersionOrders);
            assert!(holds, "{store}, seed {seed}:{}", show(&history));
        }
    }
}

#[test]
fn a_seed_decides_the_history_and_the_store_only_what_is_read() {
    let workload = |store, seed| TransactionWorkload {
        store,
        operations: 500,
        aborted_share: 0.1,
        indeterminate_share: 0.1,
        is_timed: true,
        seed,
        ..TransactionWorkload::default()
    };
    let executed = |store, seed| stream_transactions(&workload(store, seed)).collect::<Vec<_>>();
    for store in Store::ALL {
        assert_eq!(executed(store, 1), executed(store, 1));
        assert_ne!(executed(store, 1), executed(store, 2));
    }
    let outcomes = |store| {
        let outcome = |t: &consistory_generate::ExecutedTransaction| (t.session, t.status);
        executed(store, 1).iter().map(outcome).collect::<Vec<_>>()
    };
    assert_eq!(outcomes(Store::Rc), outcomes(Store::Ser));
    for status in [Status::Ok, Status::Fail, Status::Unknown] {
        let count = outcomes(Store::Si).iter().filter(|outcome| outcome.1 == status).count();
        assert!(count > 3, "{status:?}: {count}");
    }
}

#[test]
fn keys_follow_the_distribution_and_are_replaced() {
    let counts = |workload: &TransactionWorkload| {
        let mut counts = vec![0u32; 400];
        for operation in stream_transactions(workload).flat_map(|t| t.operations) {
            counts[operation.key as usize] += 1;
        }
        counts
    };
    let base = TransactionWorkload { operations: 20_000, keys: 100, ..Default::default() };
    let uniform = counts(&base);
    assert!(uniform[..100].iter().all(|count| (130..280).contains(count)), "{uniform:?}");
    let hot = KeyChoice::HotSpot { keys: 2, share: 0.8 };
    let hot = counts(&TransactionWorkload { key_choice: hot, ..base.clone() });
    assert!((15_500..16_900).contains(&(hot[0] + hot[1])), "{hot:?}");
    let zipf = KeyChoice::Zipf { skew: 1.0 };
    let zipf = counts(&TransactionWorkload { key_choice: zipf, ..base.clone() });
    assert!(zipf[0] > 3_000 && zipf[0] > 15 * zipf[40], "{zipf:?}");
    let replaced = counts(&TransactionWorkload { writes_per_key: 50, ..base });
    let used = replaced.iter().filter(|&&count| count > 0).count();
    assert!((230..=300).contains(&used), "{used} keys, of which 100 are in use at a time");
}
