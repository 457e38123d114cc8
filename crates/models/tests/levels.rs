//! The isolation levels: the definitions of `models/`, a second formulation of each, two brute forces
//! and the deciders agree, and the independent checker accepts the deciders' certificates.

#[path = "../../generate/tests/oracles/levels.rs"]
mod oracle;
use crate::support::{every_history, history};
use consistory_certify::certify_transactions;
use consistory_generate::{
    Anomaly, ClientOrder as StoreOrder, DataKind, PlantOptions, Plants, Store, TransactionWorkload,
    generate_transactions, plant,
};
use consistory_history::{Details, History, HistoryBuilder, OpId, Status};
use consistory_models::Definition;
use consistory_models::{
    ClientOrder, EvaluateOptions, evaluate, find, levels, load, on_single_operations,
};
use consistory_verdict::{Budget, Certificate, Judgement, Level, Verdict};
use oracle::{Formulation, Order, Small};

/// The levels by commit orders (Biswas and Enea): the transactions that a read knows, with commit
/// order `ar`.
const KNOWN: [(&str, &str); 7] = [
    ("rc", "txn ; wr ; (po & txn)"),
    ("ra", "causes"),
    ("tcc", "causes+"),
    ("pc", "ar? ; causes"),
    ("psi", "(causes | lift(WW(ar)))+"),
    ("si", "(ar? ; causes) | (ar? ; lift(WW(ar)))"),
    ("ser", "ar"),
];

fn by_commit_orders() -> Vec<(&'static str, Definition)> {
    KNOWN
        .into_iter()
        .map(|(id, known)| {
            let text = format!(
                "\"{id} by commit orders\" include \"transactions.cat\" \
                 with ar from commit-orders acyclic ar | causes | forced({known}) as Commit"
            );
            (id, load(&format!("{id}-commit.cat"), &text, |_| None).unwrap())
        })
        .collect()
}

/// Returns the number of histories to try: 120 times as many for the deep tests, which are then a
/// hundred thousand random histories in total.
fn scaled(usual: u64) -> u64 {
    if std::env::var_os("CONSISTORY_DEEP").is_some() { 120 * usual } else { usual }
}

fn orders() -> [(ClientOrder, Order, StoreOrder); 3] {
    [
        (ClientOrder::None, Order::None, StoreOrder::None),
        (ClientOrder::Session, Order::Session, StoreOrder::Session),
        (ClientOrder::Realtime, Order::Realtime, StoreOrder::Realtime),
    ]
}

fn judge(definition: &Definition, history: &History, order: ClientOrder) -> Judgement<Certificate> {
    let options = EvaluateOptions { order, ..EvaluateOptions::default() };
    evaluate(definition, history, &options).unwrap()
}

fn show(history: &History) -> String {
    let mut text = String::new();
    for transaction in history.all_transactions() {
        let ops: Vec<OpId> = transaction.ops.clone().map(OpId).collect();
        let shown: Vec<String> = ops
            .iter()
            .map(|&op| {
                format!("{}{:?}", history.show(op), history.time(op).map(|t| (t.start, t.end)))
            })
            .collect();
        let session = history.session_name(history.session_of(ops[0]));
        text += &format!("\n{session}: [ {} ] {:?}", shown.join(" "), transaction.status);
    }
    text
}

/// Compares the deciders with the verdicts of the definitions: all levels together, where one proof
/// settles several, and each level alone.
fn compare_deciders(history: &History, order: ClientOrder, satisfied: &[&str]) {
    let order = match order {
        ClientOrder::None => consistory_verdict::ClientOrder::None,
        ClientOrder::Session => consistory_verdict::ClientOrder::Session,
        ClientOrder::Realtime => consistory_verdict::ClientOrder::Realtime,
    };
    let decide = |levels: &[Level]| {
        consistory_transactions::judge(history, order, levels, &Budget::unlimited()).unwrap()
    };
    let alone = Level::ALL.into_iter().map(|level| decide(&[level]).remove(0));
    let together = decide(&Level::ALL);
    for (level, ruling) in
        Level::ALL.into_iter().zip(alone).chain(Level::ALL.into_iter().zip(together))
    {
        let context = || format!("{level}, order {order:?}:{}", show(history));
        let verdict = ruling.judgement.verdict();
        let expected = match satisfied.contains(&level.id()) {
            true => Verdict::Consistent,
            false => Verdict::Violation,
        };
        assert_eq!(verdict, expected, "decider, {}", context());
        let certificate = ruling.judgement.certificate().expect("decided");
        let accepted = certify_transactions(history, level, order, verdict, certificate);
        assert_eq!(accepted, Ok(()), "{}", context());
    }
}

/// Compares both formulations, both brute forces and the deciders; returns the levels that the history
/// satisfies.
fn compare(history: &History, order: (ClientOrder, Order)) -> Vec<&'static str> {
    thread_local! {
        static COMMIT: Vec<(&'static str, Definition)> = by_commit_orders();
    }
    let small = Small::new(history);
    let mut satisfied = Vec::new();
    COMMIT.with(|commit| {
        for (level, (id, second)) in levels().iter().zip(commit) {
            assert_eq!(level.id, *id);
            let expected = small.satisfies(id, order.1, Formulation::CommitOrders);
            let context = || format!("{id}, order {:?}:{}", order.0, show(history));
            let brute = small.satisfies(id, order.1, Formulation::VersionOrders);
            assert_eq!(brute, expected, "brute forces, {}", context());
            for definition in [&level.definition, second] {
                let found = judge(definition, history, order.0).verdict() == Verdict::Consistent;
                assert_eq!(found, expected, "{}, {}", definition.title(), context());
            }
            if expected {
                satisfied.push(level.id);
            }
        }
    });
    compare_deciders(history, order.0, &satisfied);
    for level in levels() {
        for claim in level.definition.implies() {
            let holds = |id: &str| satisfied.contains(&id);
            assert!(!holds(level.id) || holds(&claim.implied), "{} {}", level.id, claim.implied);
        }
    }
    satisfied
}

/// Groups operations into transactions: bit `i` states that operation `i` continues the transaction
/// of the previous operation of its session.
fn bracketed(history: &History, brackets: u32, statuses: &[Status]) -> History {
    let mut b = HistoryBuilder::new();
    for session in history.sessions() {
        b.session(history.session_name(session));
    }
    for key in history.keys() {
        b.key(history.key_name(key));
    }
    let mut open = None;
    let mut count = 0;
    for op in history.ops() {
        let goes_on = brackets >> op.0 & 1 == 1 && history.index_in_session(op) > 0;
        if !goes_on {
            let transaction = b.begin_transaction();
            let status = statuses.get(count).copied().unwrap_or_default();
            b.set_transaction_status(transaction, status);
            count += 1;
            open = Some(transaction);
        }
        let action = match history.action(op) {
            consistory_history::Action::Read { key, value } => consistory_history::Action::Read {
                key,
                value: b.value(history.value(value).clone()),
            },
            consistory_history::Action::Write { key, value } => consistory_history::Action::Write {
                key,
                value: b.value(history.value(value).clone()),
            },
            other => other,
        };
        let details = Details { transaction: open, ..Details::default() };
        b.push_with(history.session_of(op), action, details);
    }
    b.finish().unwrap()
}

#[test]
fn every_small_history_of_transactions() {
    let most = if std::env::var_os("CONSISTORY_DEEP").is_some() { 5 } else { 4 };
    let mut count = 0;
    for operations in 0..=most {
        every_history(operations, &mut |text| {
            let single = history(text);
            // The bit of an operation that starts its session has no effect.
            let starts: u32 = single
                .ops()
                .filter(|&op| single.index_in_session(op) == 0)
                .fold(0, |starts, op| starts | 1 << op.0);
            for brackets in (0..1u32 << operations).filter(|brackets| brackets & starts == 0) {
                let history = bracketed(&single, brackets, &[]);
                count += 1;
                // Session order, and for the smallest histories no order.
                let orders = orders();
                let tried = if operations < most { &orders[..2] } else { &orders[1..2] };
                for (order, brute, _) in tried {
                    compare(&history, (*order, *brute));
                }
            }
        });
    }
    assert!(count > 10_000, "{count}");
}

#[test]
fn every_small_history_with_aborted_and_indeterminate_transactions() {
    let mut count = 0;
    for operations in 1..=3 {
        every_history(operations, &mut |text| {
            let single = history(text);
            for brackets in 0..1u32 << operations {
                for statuses in 0..3usize.pow(3) {
                    let status = |n: usize| [Status::Ok, Status::Fail, Status::Unknown][n % 3];
                    let statuses = [status(statuses), status(statuses / 3), status(statuses / 9)];
                    let history = bracketed(&single, brackets, &statuses);
                    // With fewer transactions than statuses, a history would be repeated.
                    let used = history.all_transactions().count();
                    if statuses[used..].iter().any(|&status| status != Status::Ok) {
                        continue;
                    }
                    compare(&history, (ClientOrder::Session, Order::Session));
                    count += 1;
                }
            }
        });
    }
    assert!(count > 3_000, "{count}");
}

#[test]
fn random_histories_of_every_store_and_order() {
    let count = scaled(40);
    for (order, brute, store_order) in orders() {
        let mut satisfied: Vec<Vec<&str>> = Vec::new();
        for store in Store::ALL {
            for seed in 0..count {
                let is_list = seed % 3 == 0;
                let workload = TransactionWorkload {
                    store,
                    // A store with weaker guarantees than required also produces violations.
                    order: if seed % 2 == 0 { store_order } else { StoreOrder::None },
                    sessions: 2 + (seed % 3) as u32,
                    operations: 8,
                    keys: 2,
                    sizes: 1..=3,
                    data: if is_list { DataKind::Lists } else { DataKind::Registers },
                    values: if !is_list && seed % 5 == 0 { 2 } else { 0 },
                    aborted_share: 0.1,
                    indeterminate_share: 0.15,
                    is_timed: true,
                    seed,
                    ..TransactionWorkload::default()
                };
                let mut history = generate_transactions(&workload);
                if !is_list && seed % 4 == 1 {
                    let options = PlantOptions { plants: Plants::Count(1), distance: 8, seed };
                    history = plant(&history, &options);
                }
                satisfied.push(compare(&history, (order, brute)));
            }
        }
        for level in levels() {
            let holds = satisfied.iter().filter(|ids| ids.contains(&level.id)).count();
            assert!(holds > 0 && holds < satisfied.len(), "{} {order:?}: {holds}", level.id);
        }
    }
}

#[test]
fn anomalies_are_what_their_names_say() {
    for anomaly in Anomaly::ALL {
        let workload = TransactionWorkload {
            operations: 0,
            data: DataKind::Lists,
            anomalies: vec![anomaly],
            ..TransactionWorkload::default()
        };
        let history = generate_transactions(&workload);
        let satisfied = compare(&history, (ClientOrder::Session, Order::Session));
        let expected: Vec<&str> = Store::ALL
            .into_iter()
            .filter(|&store| anomaly.is_allowed_by(store, StoreOrder::Session))
            .map(Store::as_str)
            .collect();
        assert_eq!(satisfied, expected, "{anomaly}");
    }
    let pattern = |anomaly| {
        let workload = TransactionWorkload {
            operations: 0,
            data: DataKind::Lists,
            anomalies: vec![anomaly],
            ..TransactionWorkload::default()
        };
        let level = &levels()[0].definition;
        match judge(level, &generate_transactions(&workload), ClientOrder::Session) {
            Judgement::Violation { pattern, .. } => pattern,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(pattern(Anomaly::AbortedRead), "AbortedRead");
    assert_eq!(pattern(Anomaly::IntermediateRead), "IntermediateRead");
    assert_eq!(pattern(Anomaly::IncompatibleOrder), "IncompatibleOrder");
    assert_eq!(pattern(Anomaly::CircularRead), "CyclicRC");
}

#[test]
fn on_single_operations_levels_are_models_of_registers() {
    let mut count = 0;
    for operations in 0..=4 {
        every_history(operations, &mut |text| {
            let history = history(text);
            for same in on_single_operations() {
                let level = levels().iter().find(|level| level.id == same.level).unwrap();
                let model = find(same.model).unwrap();
                let verdict =
                    |definition| judge(definition, &history, ClientOrder::Session).verdict();
                assert_eq!(
                    verdict(&level.definition),
                    verdict(&model.definition),
                    "{} and {}:\n{text}",
                    same.level,
                    same.model
                );
                count += 1;
            }
        });
    }
    assert!(count > 5_000, "{count}");
}

#[test]
fn levels_do_not_apply_where_they_have_no_meaning() {
    let level = &levels()[0].definition;
    let refused = |build: &dyn Fn(&mut HistoryBuilder)| {
        let mut b = HistoryBuilder::new();
        build(&mut b);
        let history = b.finish().unwrap();
        evaluate(level, &history, &EvaluateOptions::default()).unwrap_err().to_string()
    };
    use consistory_history::Action;
    let twice = refused(&|b| {
        let (s, key, value) = (b.session("t0"), b.key("x"), b.int(1));
        b.push(s, Action::Append { key, value });
        b.push(s, Action::Append { key, value });
    });
    assert_eq!(twice, "the value 1 is appended twice to the list x");
    let mixed = refused(&|b| {
        let (s, key, value) = (b.session("t0"), b.key("x"), b.int(1));
        b.push(s, Action::Append { key, value });
        b.push(s, Action::Write { key, value });
    });
    assert_eq!(mixed, "the key x is both written and appended to");
    let last = refused(&|b| {
        let (s, key, value) = (b.session("t0"), b.key("x"), b.int(1));
        b.push(s, Action::Write { key, value });
        b.set_final(key, value);
    });
    assert_eq!(last, "the history gives the final value of x, which isolation levels do not use");
}
