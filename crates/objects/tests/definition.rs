//! Every search and strategy agrees with the definition on small histories of many objects.

use std::sync::Arc;

use crate::common::{Chance, Recorded, Shape, history, random, shown};
use consistory_certify::{ObjectRejection, certify_object};
use consistory_history::{History, Interval, Status, Value};
use consistory_objects::{
    Calls, Engine, Options, Strategy, Task, Tuning, Visibility, decide_by_definition, judge_object,
};
use consistory_spec::{Level, NAMED, Object, ObjectModel, find, parse_axioms};
use consistory_verdict::{Budget, Judgement, ObjectCertificate, Unexplained, Verdict};

const ENGINES: [Engine; 5] = [
    Engine::Fastest,
    Engine::Paper { strategy: Strategy::WingGong, visibility: Visibility::Minimal },
    Engine::Paper { strategy: Strategy::JustInTime, visibility: Visibility::Minimal },
    Engine::Paper { strategy: Strategy::WingGong, visibility: Visibility::All },
    Engine::Paper { strategy: Strategy::JustInTime, visibility: Visibility::All },
];

const OBJECTS: [&str; 15] = [
    "register",
    "cas-register",
    "counter",
    "map",
    "keyed map",
    "kv",
    "set",
    "queue",
    "stack",
    "deque",
    "priority-queue",
    "lock",
    "log",
    "transactions",
    "list",
];

fn object(name: &str) -> Arc<dyn Object> {
    find(name.strip_prefix("keyed ").unwrap_or(name)).unwrap()
}

/// Returns the named models, some other models of the grammar, and random visibility levels.
fn models(task: &Task<'_>, chance: &mut Chance) -> Vec<ObjectModel> {
    let mut models: Vec<ObjectModel> =
        NAMED.iter().map(|id| ObjectModel::named(id).unwrap()).collect();
    for axioms in [
        "vis >= hb; vis >= vis ; vis",
        "vis >= hb ; vis",
        "vis >= po ; lin",
        "vis >= vis ; hb",
        "vis >= po; vis >= vis ; hb ; vis",
        "lin >= vis ; lin; vis >= lin ; vis",
        "vis >= vis ; lin",
    ] {
        models.push(ObjectModel::of_axioms(parse_axioms("axioms", axioms).unwrap()));
    }
    for _ in 0..2 {
        let levels: Vec<(Box<str>, Level)> =
            task.methods().iter().map(|&m| (m.into(), *chance.pick(&Level::ALL))).collect();
        models.push(ObjectModel::of_levels(&levels, Level::Complete, &task.methods()));
    }
    models
}

/// Compares all searches on one history; returns the number of violations.
fn compare(history: &History, object: Arc<dyn Object>, chance: &mut Chance) -> usize {
    let task = Task::new(Calls::new(history).unwrap(), object).unwrap();
    let budget = Budget::unlimited();
    let mut violations = 0;
    for model in models(&task, chance) {
        let expected = match decide_by_definition(&task, &model) {
            Some(_) => Verdict::Consistent,
            None => Verdict::Violation,
        };
        violations += usize::from(expected == Verdict::Violation);
        // The checker itself decides whether all returned operations together can be explained.
        let completed = task.calls().places().filter(|&place| !task.is_pending(place));
        let returned = completed.map(|place| task.calls().get(place).id).collect();
        let all = ObjectCertificate::Unexplained(Unexplained {
            returned,
            attempts: vec![],
            before: None,
        });
        let accepted = certify_object(history, task.object(), &model, &all, &budget);
        match expected {
            Verdict::Violation => assert_eq!(accepted, Ok(()), "{}", shown(history)),
            _ => assert_eq!(accepted, Err(ObjectRejection::Explained), "{}", shown(history)),
        }
        for engine in ENGINES {
            let options = Options::tuned(Tuning { engine, ..Tuning::default() });
            let judgement = judge_object(&task, &model, &options).judgement;
            assert_eq!(
                judgement.verdict(),
                expected,
                "{} by {engine:?}:\n{}\n{judgement:?}",
                model.id,
                shown(history)
            );
            let certificate = judgement.certificate().unwrap();
            let accepted = certify_object(history, task.object(), &model, certificate, &budget);
            assert_eq!(
                accepted,
                Ok(()),
                "{} by {engine:?}:\n{}\n{judgement:?}",
                model.id,
                shown(history)
            );
            if let Judgement::Violation {
                certificate: ObjectCertificate::Unexplained(unexplained),
                ..
            } = &judgement
            {
                is_shortest(&task, &model, unexplained);
            }
        }
    }
    violations
}

/// Asserts that the shortest failing prefix can be explained without its last return.
fn is_shortest(task: &Task<'_>, model: &ObjectModel, unexplained: &Unexplained) {
    let (_, shorter) = unexplained.returned.split_last().unwrap();
    let prefix = task.relaxed(|place| shorter.contains(&task.calls().get(place).id));
    assert!(
        decide_by_definition(&prefix, model).is_some(),
        "{}: {unexplained:?} is not shortest:\n{}",
        model.id,
        shown(task.calls().history())
    );
    assert!(!unexplained.attempts.is_empty());
    assert!(unexplained.before.is_some());
}

#[test]
fn random_histories() {
    let rounds = std::env::var("CONSISTORY_ROUNDS").map_or(40, |n| n.parse().unwrap());
    let mut chance = Chance(1);
    for name in OBJECTS {
        let (mut violations, mut histories) = (0, 0);
        for round in 0..rounds {
            let shape = Shape {
                operations: 2 + chance.below(3),
                sessions: 1 + chance.below(3),
                is_timed: round % 4 != 0,
                pending: [0, 3, 5][chance.below(3)],
                wrong: [0, 3][chance.below(2)],
            };
            let object = object(name);
            let history = history(&random(&*object, name, shape, &mut chance));
            violations += compare(&history, object, &mut chance);
            histories += 1;
        }
        assert!(violations > histories / 10, "{name}: {violations} violations in {histories}");
    }
}

/// Every history of three operations of a register: all ways in which three intervals overlap, all
/// divisions into sessions, each operation completed or pending.
#[test]
fn all_histories_of_three_register_operations() {
    let operations: [(&str, Vec<Value>, Option<Value>); 4] = [
        ("write", vec![Value::Int(1)], None),
        ("write", vec![Value::Int(2)], None),
        ("read", vec![], Some(Value::Null)),
        ("read", vec![], Some(Value::Int(1))),
    ];
    let mut chance = Chance(2);
    let mut count = 0;
    let register = object("register");
    for choice in 0..64usize {
        let chosen = [choice % 4, choice / 4 % 4, choice / 16];
        for (intervals, sessions) in arrangements() {
            for pending in 0..8usize {
                let calls: Vec<Recorded> = (0..3)
                    .map(|i| {
                        let (method, args, returns) = operations[chosen[i]].clone();
                        let is_pending = pending >> i & 1 == 1;
                        let (start, end) = intervals[i];
                        Recorded {
                            session: sessions[i],
                            method: method.into(),
                            args,
                            returns: returns.filter(|_| !is_pending),
                            time: Some(Interval { start, end: (!is_pending).then_some(end) }),
                            status: Status::Ok,
                        }
                    })
                    .collect();
                count += 1;
                compare(&history(&calls), register.clone(), &mut chance);
            }
        }
    }
    assert_eq!(count, 64 * 31 * 8);
}

/// Intervals and sessions of three operations.
type Arrangement = ([(i64, i64); 3], [usize; 3]);

/// All arrangements of three intervals in the order of their starts, with sessions in which they
/// do not overlap.
fn arrangements() -> Vec<Arrangement> {
    let mut found = Vec::new();
    let mut events = vec![0, 0, 1, 1, 2, 2];
    loop {
        let at = |i: usize| {
            let mut places = (0..6).filter(|&e| events[e] == i).map(|e| e as i64);
            (places.next().unwrap(), places.next().unwrap())
        };
        let intervals = [at(0), at(1), at(2)];
        if intervals[0].0 < intervals[1].0 && intervals[1].0 < intervals[2].0 {
            for sessions in [[0, 1, 2], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 0, 0]] {
                let overlap = |i: usize, j: usize| intervals[j].0 < intervals[i].1;
                let is_good = (0..3)
                    .all(|i| (i + 1..3).all(|j| sessions[i] != sessions[j] || !overlap(i, j)));
                if is_good {
                    found.push((intervals, sessions));
                }
            }
        }
        if !next_permutation(&mut events) {
            return found;
        }
    }
}

fn next_permutation(items: &mut [usize]) -> bool {
    let Some(i) = (1..items.len()).rev().find(|&i| items[i - 1] < items[i]) else { return false };
    let j = (i..items.len()).rev().find(|&j| items[j] > items[i - 1]).unwrap();
    items.swap(i - 1, j);
    items[i..].reverse();
    true
}
