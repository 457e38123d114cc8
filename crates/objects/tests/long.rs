//! The searches that continue a long depth-first search give the same verdict with any number of
//! threads, and the verdict of the depth-first search and of the definition.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Chance, Recorded, Shape, history, random, shown};
use consistory_certify::certify_object;
use consistory_history::{History, Interval, Status, Value};
use consistory_objects::{Calls, Options, Task, Tuning, decide_by_definition, judge_object};
use consistory_spec::{Object, ObjectModel, find, parse_object};
use consistory_verdict::{Budget, Judgement, ObjectCertificate, Stopped, Verdict};

const OBJECTS: [&str; 12] = [
    "register",
    "cas-register",
    "counter",
    "map",
    "kv",
    "queue",
    "stack",
    "deque",
    "priority-queue",
    "lock",
    "log",
    "transactions",
];

fn linearizability() -> ObjectModel {
    ObjectModel::named("linearizability").unwrap()
}

/// Judges with `jobs` threads and `alone` steps depth first, followed by as many steps in waves
/// (unless operations overwrite, in which case waves continue).
fn judge(task: &Task<'_>, jobs: usize, alone: u64) -> Judgement<ObjectCertificate> {
    let options = Options { jobs, ..Options::tuned(Tuning { alone, ..Tuning::default() }) };
    judge_object(task, &linearizability(), &options).judgement
}

/// Compares runs with one, two and three threads; returns the verdict.
fn compare(history: &History, object: &Arc<dyn Object>) -> Verdict {
    let verdict = compare_after(history, object, 0);
    assert_eq!(compare_after(history, object, 12), verdict, "{}", shown(history));
    verdict
}

fn compare_after(history: &History, object: &Arc<dyn Object>, steps: u64) -> Verdict {
    let task = Task::new(Calls::new(history).unwrap(), Arc::clone(object)).unwrap();
    let alone = judge(&task, 1, steps);
    for jobs in [1, 2, 3] {
        let together = judge(&task, jobs, steps);
        assert_eq!(together.verdict(), alone.verdict(), "{jobs} threads:\n{}", shown(history));
        assert_eq!(together, alone, "{jobs} threads:\n{}", shown(history));
        let certificate = together.certificate().unwrap();
        let model = linearizability();
        let budget = Budget::unlimited();
        let accepted = certify_object(history, &**object, &model, certificate, &budget);
        assert_eq!(accepted, Ok(()), "{jobs} threads:\n{}\n{together:?}", shown(history));
    }
    alone.verdict()
}

fn depth_first(history: &History, object: &Arc<dyn Object>) -> Verdict {
    let task = Task::new(Calls::new(history).unwrap(), Arc::clone(object)).unwrap();
    let options = Options::tuned(Tuning { alone: u64::MAX, ..Tuning::default() });
    judge_object(&task, &linearizability(), &options).judgement.verdict()
}

#[test]
fn small_histories_as_defined() {
    let mut chance = Chance(11);
    let (mut fine, mut wrong) = (0, 0);
    for name in OBJECTS {
        let object = find(name).unwrap();
        for round in 0..300 {
            let shape = Shape {
                operations: 2 + chance.below(4),
                sessions: 1 + chance.below(4),
                is_timed: round % 4 != 0,
                pending: [0, 3, 5][chance.below(3)],
                wrong: [0, 3][chance.below(2)],
            };
            let history = history(&random(&*object, name, shape, &mut chance));
            let task = Task::new(Calls::new(&history).unwrap(), Arc::clone(&object)).unwrap();
            let expected = match decide_by_definition(&task, &linearizability()) {
                Some(_) => Verdict::Consistent,
                None => Verdict::Violation,
            };
            assert_eq!(compare(&history, &object), expected, "{name}:\n{}", shown(&history));
            match expected {
                Verdict::Violation => wrong += 1,
                _ => fine += 1,
            }
        }
    }
    assert!(fine > 1000 && wrong > 400, "{fine} {wrong}");
}

#[test]
fn larger_histories_as_depth_first() {
    let rounds = std::env::var("CONSISTORY_ROUNDS").map_or(60, |n| n.parse().unwrap());
    let mut chance = Chance(12);
    let (mut fine, mut wrong) = (0, 0);
    for name in OBJECTS {
        let object = find(name).unwrap();
        for round in 0..rounds {
            let shape = Shape {
                operations: 8 + chance.below(10),
                sessions: 4 + chance.below(3),
                is_timed: true,
                pending: [0, 0, 4][chance.below(3)],
                wrong: [0, 8][round % 2],
            };
            let history = history(&random(&*object, name, shape, &mut chance));
            let verdict = compare(&history, &object);
            assert_eq!(verdict, depth_first(&history, &object), "{name}:\n{}", shown(&history));
            match verdict {
                Verdict::Violation => wrong += 1,
                _ => fine += 1,
            }
        }
    }
    assert!(fine > 30 && wrong > 200, "{fine} {wrong}");
}

/// Builds a history of calls that insert or remove one of a few values, each in a session of its
/// own; some are pending, and some returns are those of other calls.
fn takes_and_gives(
    name: &str,
    methods: [&[&str]; 2],
    operations: usize,
    wrong: usize,
    chance: &mut Chance,
) -> History {
    let object = find(name).unwrap();
    let has_pending = chance.one_in(3);
    let mut calls: Vec<(usize, Recorded)> = Vec::new();
    for session in 0..operations {
        let start = chance.below(2 * operations);
        let end = start + chance.below(operations);
        let is_pending = has_pending && chance.one_in(4);
        let kind = chance.below(2);
        let method = methods[kind][chance.below(methods[kind].len())];
        let value = Value::Int(chance.below(3) as i64);
        let time = Interval { start: start as i64, end: (!is_pending).then_some(end as i64) };
        let recorded = Recorded {
            session,
            method: method.into(),
            args: if kind == 0 { vec![] } else { vec![value] },
            returns: None,
            time: Some(time),
            status: if is_pending { Status::Unknown } else { Status::Ok },
        };
        calls.push((start + chance.below(end - start + 1), recorded));
    }
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|&i| (calls[i].0, i));
    let mut state = object.initial();
    for i in order {
        let call = &mut calls[i].1;
        if call.status == Status::Ok || chance.one_in(2) {
            let returned = object.invoke(&mut state, &call.method, &call.args);
            let is_wrong = call.args.is_empty() && wrong > 0 && chance.one_in(wrong);
            let other = Value::Int(chance.below(3) as i64);
            let returned = if is_wrong { Some(other) } else { returned };
            call.returns = returned.filter(|_| call.status == Status::Ok);
        }
    }
    history(&calls.into_iter().map(|(_, call)| call).collect::<Vec<_>>())
}

/// Calls that cannot affect the returning call are postponed if the specification says so.
#[test]
fn takes_and_gives_as_defined_and_as_depth_first() {
    let rounds = std::env::var("CONSISTORY_ROUNDS").map_or(300, |n| n.parse().unwrap());
    let mut chance = Chance(15);
    let objects: [(&str, [&[&str]; 2]); 4] = [
        ("queue", [&["dequeue", "take"], &["enqueue"]]),
        ("deque", [&["pollFirst", "pollLast"], &["addFirst", "addLast"]]),
        ("priority-queue", [&["poll"], &["insert"]]),
        ("priority-queue(max)", [&["poll", "take"], &["insert"]]),
    ];
    let (mut fine, mut wrong) = (0, 0);
    for (name, methods) in objects {
        let object = find(name).unwrap();
        for round in 0..rounds {
            let is_small = round % 2 == 0;
            let operations = if is_small { 3 + chance.below(3) } else { 8 + chance.below(12) };
            let other = [0, operations, 3][chance.below(3)];
            let history = takes_and_gives(name, methods, operations, other, &mut chance);
            let task = Task::new(Calls::new(&history).unwrap(), Arc::clone(&object)).unwrap();
            let expected = match is_small {
                true => match decide_by_definition(&task, &linearizability()) {
                    Some(_) => Verdict::Consistent,
                    None => Verdict::Violation,
                },
                false => depth_first(&history, &object),
            };
            let found = compare(&history, &object);
            assert_eq!(found, expected, "{name}:\n{}", shown(&history));
            assert_eq!(found, depth_first(&history, &object), "{name}:\n{}", shown(&history));
            match found {
                Verdict::Violation => wrong += 1,
                _ => fine += 1,
            }
        }
    }
    assert!(fine > rounds && wrong > rounds / 2, "{fine} {wrong}");
}

/// Threads have enough time to meet in the middle of these histories, and some calls are pending.
#[test]
fn long_searches_as_depth_first() {
    let mut chance = Chance(16);
    let objects: [(&str, [&[&str]; 2]); 4] = [
        ("queue", [&["dequeue"], &["enqueue"]]),
        ("stack", [&["pop"], &["push"]]),
        ("deque", [&["pollFirst", "pollLast"], &["addFirst", "addLast"]]),
        ("counter", [&["get", "incrementAndGet"], &["getAndAdd"]]),
    ];
    let (mut fine, mut wrong) = (0, 0);
    for (name, methods) in objects {
        let object = find(name).unwrap();
        for _ in 0..25 {
            let operations = 24 + chance.below(8);
            let history = takes_and_gives(name, methods, operations, operations, &mut chance);
            let found = compare(&history, &object);
            assert_eq!(found, depth_first(&history, &object), "{name}:\n{}", shown(&history));
            match found {
                Verdict::Violation => wrong += 1,
                _ => fine += 1,
            }
        }
    }
    assert!(fine > 20 && wrong > 20, "{fine} {wrong}");
}

/// Parameters of random operations of a register.
struct Registers {
    object: &'static str,
    operations: usize,
    values: usize,
    /// Longest duration of an operation.
    longest: usize,
    /// One in this number is pending, and one in this number of returns is that of another call; 0
    /// for none.
    pending: usize,
    wrong: usize,
    /// Whether there are compare-and-set operations.
    has_cas: bool,
}

/// Builds a history of a register, each operation in a session of its own.
fn register(shape: &Registers, chance: &mut Chance) -> History {
    let mut calls: Vec<(usize, Recorded)> = Vec::new();
    for session in 0..shape.operations {
        let start = chance.below(2 * shape.operations);
        let end = start + chance.below(shape.longest);
        let is_pending = shape.pending > 0 && chance.one_in(shape.pending);
        let mut value = || Value::Int(chance.below(shape.values) as i64);
        let (one, other) = (value(), value());
        let (method, args) = match chance.below(if shape.has_cas { 5 } else { 4 }) {
            0 | 1 => ("read", vec![]),
            2 | 3 => ("write", vec![one]),
            _ => ("cas", vec![one, other]),
        };
        let end_time = (!is_pending).then_some(end as i64);
        let recorded = Recorded {
            session,
            method: method.into(),
            args,
            returns: None,
            time: Some(Interval { start: start as i64, end: end_time }),
            status: if is_pending { Status::Unknown } else { Status::Ok },
        };
        calls.push((start + chance.below(end - start + 1), recorded));
    }
    let object = find(shape.object).unwrap();
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|&i| (calls[i].0, i));
    let mut state = object.initial();
    for i in order {
        let call = &mut calls[i].1;
        // Half of the operations that never return take no effect.
        if call.status == Status::Ok || chance.one_in(2) {
            let key = (shape.object == "kv").then_some(Value::Int(0));
            let args: Vec<Value> = key.into_iter().chain(call.args.iter().cloned()).collect();
            let method = object.resolve(&call.method, args.len()).unwrap().unwrap();
            let returned = object.invoke(&mut state, &method.name, &args);
            call.args = args;
            call.returns = returned.filter(|_| call.status == Status::Ok);
        } else if shape.object == "kv" {
            call.args.insert(0, Value::Int(0));
        }
    }
    for (_, call) in &mut calls {
        if shape.wrong > 0 && chance.one_in(shape.wrong) && call.method == "read" {
            let value = Value::Int(chance.below(shape.values) as i64);
            call.returns = (call.status == Status::Ok).then_some(value);
        }
    }
    history(&calls.into_iter().map(|(_, call)| call).collect::<Vec<_>>())
}

fn compare_registers(sizes: &[usize], rounds: usize, oracle: impl Fn(&Task<'_>) -> Verdict) {
    let rounds = std::env::var("CONSISTORY_ROUNDS").map_or(rounds, |n| n.parse().unwrap());
    let mut chance = Chance(13);
    let (mut fine, mut wrong) = (0, 0);
    for round in 0..rounds {
        let operations = sizes[chance.below(sizes.len())];
        let shape = Registers {
            object: ["register", "cas-register", "kv"][round % 3],
            operations,
            values: 1 + chance.below(4),
            longest: 1 + chance.below(3 * operations),
            pending: [0, 0, 3, 8][chance.below(4)],
            wrong: [0, 1, 3, operations][chance.below(4)],
            has_cas: round % 3 == 1 && chance.one_in(2),
        };
        let history = register(&shape, &mut chance);
        let object = find(shape.object).unwrap();
        let verdict = compare(&history, &object);
        let task = Task::new(Calls::new(&history).unwrap(), object).unwrap();
        assert_eq!(verdict, oracle(&task), "{round}:\n{}", shown(&history));
        match verdict {
            Verdict::Violation => wrong += 1,
            _ => fine += 1,
        }
    }
    assert!(fine > rounds / 4 && wrong > rounds / 10, "{fine} {wrong}");
}

#[test]
fn small_registers_as_defined() {
    compare_registers(&[3, 4, 5, 5], 2000, |task| {
        match decide_by_definition(task, &linearizability()) {
            Some(_) => Verdict::Consistent,
            None => Verdict::Violation,
        }
    });
}

#[test]
fn larger_registers_as_depth_first() {
    compare_registers(&[7, 9, 12, 16, 24, 40], 2500, |task| {
        let options = Options::tuned(Tuning { alone: u64::MAX, ..Tuning::default() });
        judge_object(task, &linearizability(), &options).judgement.verdict()
    });
}

/// Registers that no other search would finish are decided, and a violation is certified by a few
/// reads.
#[test]
fn registers_of_many_clients_are_decided_and_certified() {
    let mut chance = Chance(14);
    let (mut fine, mut refuted) = (0, 0);
    for round in 0..60 {
        let shape = Registers {
            object: ["register", "kv"][round % 2],
            operations: 300,
            values: [5, 20, 60][chance.below(3)],
            longest: 100,
            pending: [0, 0, 40][chance.below(3)],
            wrong: [0, 30, 100][chance.below(3)],
            has_cas: false,
        };
        let history = register(&shape, &mut chance);
        let object = find(shape.object).unwrap();
        let task = Task::new(Calls::new(&history).unwrap(), Arc::clone(&object)).unwrap();
        let options = Options::default();
        let judgement = judge_object(&task, &linearizability(), &options).judgement;
        match &judgement {
            Judgement::Consistent(_) => fine += 1,
            Judgement::Violation { certificate: ObjectCertificate::Core(core), .. } => {
                refuted += 1;
                assert!(core.operations.len() < 150, "{round}: {core:?}");
            }
            other => panic!("{round}: {other:?}"),
        }
        let (certificate, budget) = (judgement.certificate().unwrap(), Budget::unlimited());
        let accepted = certify_object(&history, &*object, &linearizability(), certificate, &budget);
        assert_eq!(accepted, Ok(()), "{round}: {judgement:?}");
    }
    assert!(fine > 10 && refuted > 10, "{fine} {refuted}");
}

/// Four operations of a register that overlap in every possible way: writes of two values, and
/// reads of these and of the initial value.
#[test]
fn all_small_registers_as_depth_first() {
    let register = find("register(0)").unwrap();
    type Intervals = Vec<(i64, i64)>;
    let mut patterns: Vec<Intervals> = Vec::new();
    let mut open: Vec<(Intervals, Vec<i64>)> = vec![(Vec::new(), (0..8).collect())];
    while let Some((pairs, free)) = open.pop() {
        let Some((&start, rest)) = free.split_first() else {
            patterns.push(pairs);
            continue;
        };
        for &end in rest {
            let free = rest.iter().copied().filter(|&point| point != end).collect();
            open.push((pairs.iter().copied().chain([(start, end)]).collect(), free));
        }
    }
    assert_eq!(patterns.len(), 105);
    let (mut fine, mut wrong) = (0, 0);
    for pattern in patterns {
        for roles in 0..5usize.pow(4) {
            let calls: Vec<Recorded> = (0..4)
                .map(|i| {
                    let (method, value) =
                        [("write", 1), ("write", 2), ("read", 0), ("read", 1), ("read", 2)]
                            [roles / 5usize.pow(i as u32) % 5];
                    let (args, returns) = match method {
                        "write" => (vec![Value::Int(value)], None),
                        _ => (vec![], Some(Value::Int(value))),
                    };
                    let (start, end) = pattern[i];
                    let time = Some(Interval { start, end: Some(end) });
                    let (method, status) = (method.into(), Status::Ok);
                    Recorded { session: i, method, args, returns, time, status }
                })
                .collect();
            let history = history(&calls);
            let task = Task::new(Calls::new(&history).unwrap(), Arc::clone(&register)).unwrap();
            let found = judge(&task, 1, 0).verdict();
            assert_eq!(found, depth_first(&history, &register), "{}", shown(&history));
            match found {
                Verdict::Violation => wrong += 1,
                _ => fine += 1,
            }
        }
    }
    assert!(fine > 10_000 && wrong > 10_000, "{fine} {wrong}");
}

/// Elements are inserted into a queue at the same time, and removed one by one: in the opposite
/// order or, if `is_wrong`, one of them twice.
fn reversed(elements: i64, is_wrong: bool) -> History {
    let call = |session, method: &str, arg: Option<i64>, returns, start, end| Recorded {
        session,
        method: method.into(),
        args: arg.map(Value::Int).into_iter().collect(),
        returns,
        time: Some(Interval { start, end: Some(end) }),
        status: Status::Ok,
    };
    // A repeated value makes the polynomial decider inapplicable.
    let value = |i: i64| if i == 1 { 0 } else { i };
    let mut calls: Vec<Recorded> = (0..elements)
        .map(|i| call(i as usize, "enqueue", Some(value(i)), None, i, elements + i))
        .collect();
    for i in 0..elements {
        let found = match is_wrong && i + 1 == elements {
            true => value(2),
            false => value(elements - 1 - i),
        };
        let start = 10 * elements + 2 * i;
        calls.push(call(0, "dequeue", None, Some(Value::Int(found)), start, start + 1));
    }
    history(&calls)
}

#[test]
fn a_search_that_takes_long_goes_on_in_other_ways() {
    let queue = find("queue").unwrap();
    for is_wrong in [false, true] {
        let history = reversed(7, is_wrong);
        let task = Task::new(Calls::new(&history).unwrap(), Arc::clone(&queue)).unwrap();
        let expected = if is_wrong { Verdict::Violation } else { Verdict::Consistent };
        assert_eq!(compare(&history, &queue), expected);
        // The wrong return in the middle of the history as well.
        for alone in [300, 3000] {
            let expected = judge(&task, 1, alone);
            assert_eq!(judge(&task, 2, alone), expected);
            assert_eq!(judge(&task, 3, alone), expected);
        }
    }
}

#[test]
fn budgets_end_all_threads() {
    let history = reversed(12, true);
    let task = Task::new(Calls::new(&history).unwrap(), find("queue").unwrap()).unwrap();
    let stopped = |budget: Budget| {
        let options =
            Options { budget, jobs: 3, tuning: Tuning { alone: 1000, ..Tuning::default() } };
        match judge_object(&task, &linearizability(), &options).judgement {
            Judgement::Undecided(stopped) => stopped,
            judgement => panic!("{judgement:?}"),
        }
    };
    let time = Duration::from_millis(50);
    assert_eq!(stopped(Budget::unlimited().with_time(time)), Stopped::Time { limit: time });
    let memory = stopped(Budget::unlimited().with_memory(4 << 20));
    assert!(matches!(memory, Stopped::Memory { limit, .. } if limit == 4 << 20), "{memory:?}");
    let flag = Arc::new(AtomicBool::new(false));
    let budget = Budget::unlimited().with_interrupt(Arc::clone(&flag));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            flag.store(true, Ordering::Relaxed);
        });
        assert_eq!(stopped(budget), Stopped::Interrupted);
    });
}

/// Each key is a stack: one part fails late, after many steps, and another one fails early or not
/// at all.
#[test]
fn a_part_that_fails_early_saves_the_others_what_comes_later() {
    let text = "state items = [];
        method push(k, x) in k { items = items + [x]; }
        method pop(k) in k {
            if len(items) == 0 { return null; }
            let x = last(items);
            items = init(items);
            return x;
        }";
    let object: Arc<dyn Object> = Arc::new(parse_object("stacks", text).unwrap());
    let call = |session: usize, method: &str, args: &[i64], returns, start, end| Recorded {
        session,
        method: method.into(),
        args: args.iter().map(|&arg| Value::Int(arg)).collect(),
        returns,
        time: Some(Interval { start, end: Some(end) }),
        status: Status::Ok,
    };
    for fails_early in [false, true] {
        let mut calls = Vec::new();
        // Six overlapping pushes per round, followed by their pops, except in the last round.
        for round in 0..3i64 {
            for i in 0..6i64 {
                let (push, pop) = (100 + round * 100 + i, 150 + round * 100 + i);
                calls.push(call(i as usize, "push", &[1, i], None, push, push + 20));
                let is_last = round == 2 && i == 5;
                let popped = Some(Value::Int(if is_last { 99 } else { (i * 5 + round) % 6 }));
                calls.push(call(i as usize, "pop", &[1], popped, pop, pop + 20));
            }
        }
        let popped = Value::Int(if fails_early { 8 } else { 7 });
        calls.push(call(9, "push", &[2, 7], None, 1, 2));
        calls.push(call(9, "pop", &[2], Some(popped), 3, 4));
        let history = history(&calls);
        let task = Task::new(Calls::new(&history).unwrap(), Arc::clone(&object)).unwrap();
        let options = Options::default();
        let judgement = judge_object(&task, &linearizability(), &options).judgement;
        let certificate = judgement.certificate().unwrap();
        let model = linearizability();
        let budget = Budget::unlimited();
        assert_eq!(certify_object(&history, &*object, &model, certificate, &budget), Ok(()));
        let Judgement::Violation {
            certificate: ObjectCertificate::Unexplained(unexplained), ..
        } = judgement
        else {
            panic!("{judgement:?}")
        };
        let last = unexplained.returned.last().map(|&op| history.reference(op).to_string());
        assert_eq!(last.as_deref(), Some(if fails_early { "t9:1" } else { "t5:5" }));
        assert!(unexplained.before.is_some());
    }
}
