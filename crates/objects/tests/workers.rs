//! One search by several workers says what one worker says, and what the definition says.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Chance, Recorded, Shape, history, random, shown};
use consistory_certify::certify_object;
use consistory_history::{History, Interval, Status, Value};
use consistory_objects::{Calls, ObjectOptions, Task, decide_by_definition, judge_object};
use consistory_spec::{Object, ObjectModel, find};
use consistory_verdict::{Budget, ObjectJudgement, Stopped, Verdict};

const OBJECTS: [&str; 10] = [
    "cas-register",
    "counter",
    "map",
    "kv",
    "queue",
    "stack",
    "deque",
    "priority-queue",
    "lock",
    "transactions",
];

fn linearizability() -> ObjectModel {
    ObjectModel::named("linearizability").unwrap()
}

/// Judges with so many workers, which are there from the first step.
fn judge(task: &Task<'_>, jobs: usize) -> ObjectJudgement {
    let options = ObjectOptions { jobs, alone: 0, ..ObjectOptions::default() };
    judge_object(task, &linearizability(), &options).judgement
}

/// Compares one, two and four workers; gives the verdict.
fn compare(history: &History, object: &Arc<dyn Object>) -> Verdict {
    let task = Task::new(Calls::new(history).unwrap(), Arc::clone(object)).unwrap();
    let alone = judge(&task, 1);
    for jobs in [2, 4] {
        let together = judge(&task, jobs);
        assert_eq!(together.verdict(), alone.verdict(), "{jobs} workers:\n{}", shown(history));
        if alone.verdict() == Verdict::Violation {
            assert_eq!(together, alone, "{jobs} workers:\n{}", shown(history));
        }
        let certificate = together.certificate().unwrap();
        let model = linearizability();
        let budget = Budget::unlimited();
        let accepted = certify_object(history, &**object, &model, &certificate, &budget);
        assert_eq!(accepted, Ok(()), "{jobs} workers:\n{}\n{together:?}", shown(history));
    }
    alone.verdict()
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
fn larger_histories_as_by_one_worker() {
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
            match compare(&history, &object) {
                Verdict::Violation => wrong += 1,
                _ => fine += 1,
            }
        }
    }
    assert!(fine > 30 && wrong > 200, "{fine} {wrong}");
}

/// Elements go into a queue at the same time, and come out one by one: the other way round or, if
/// something is wrong, one of them twice.
fn reversed(elements: i64, is_wrong: bool) -> History {
    let call = |session, method: &str, arg: Option<i64>, returns, start, end| Recorded {
        session,
        method: method.into(),
        args: arg.map(Value::Int).into_iter().collect(),
        returns,
        time: Some(Interval { start, end: Some(end) }),
        status: Status::Ok,
    };
    // A value that comes again keeps the polynomial decider out of it.
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
fn workers_join_a_search_that_takes_long() {
    let queue = find("queue").unwrap();
    for is_wrong in [false, true] {
        let history = reversed(7, is_wrong);
        let task = Task::new(Calls::new(&history).unwrap(), Arc::clone(&queue)).unwrap();
        let expected = if is_wrong { Verdict::Violation } else { Verdict::Consistent };
        assert_eq!(compare(&history, &queue), expected);
        // They join in the middle as well, and by then it is long.
        let judge = |jobs| {
            let options = ObjectOptions { jobs, alone: 3000, ..ObjectOptions::default() };
            judge_object(&task, &linearizability(), &options).judgement
        };
        assert_eq!(judge(3).verdict(), expected);
        if is_wrong {
            assert_eq!(judge(3), judge(1));
        }
    }
}

#[test]
fn budgets_end_all_workers() {
    let history = reversed(12, true);
    let task = Task::new(Calls::new(&history).unwrap(), find("queue").unwrap()).unwrap();
    let stopped = |budget: Budget| {
        let options = ObjectOptions { budget, jobs: 3, alone: 1000, ..ObjectOptions::default() };
        match judge_object(&task, &linearizability(), &options).judgement {
            ObjectJudgement::Undecided(stopped) => stopped,
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
