//! A shrunk history violates the model by itself, whatever the removed calls returned.

use crate::common::{Chance, Recorded, Shape, history, random, shown};
use consistory_history::{Interval, Status, Value};
use consistory_objects::{Calls, Options, Task, decide_by_definition, judge_object, shrink_object};
use consistory_spec::{ObjectModel, find};
use consistory_verdict::Verdict;

const OBJECTS: [&str; 6] = ["register", "map", "kv", "queue", "stack", "set"];
const MODELS: [&str; 3] = ["linearizability", "happens-before-visibility", "read-my-writes"];

#[test]
fn what_is_left_violates_the_model() {
    let mut chance = Chance(5);
    let (mut violations, mut smaller) = (0, 0);
    for name in OBJECTS {
        let object = find(name).unwrap();
        for round in 0..30 {
            let shape = Shape {
                operations: 5,
                sessions: 1 + chance.below(3),
                is_timed: round % 4 != 0,
                pending: [0, 5][chance.below(2)],
                wrong: 3,
            };
            let calls = random(&*object, name, shape, &mut chance);
            let whole = history(&calls);
            let task = Task::new(Calls::new(&whole).unwrap(), object.clone()).unwrap();
            for id in MODELS {
                let model = ObjectModel::named(id).unwrap();
                let options = Options::default();
                let judgement = judge_object(&task, &model, &options).judgement;
                if judgement.verdict() != Verdict::Violation {
                    continue;
                }
                let shrunk = shrink_object(&task, &model, &judgement, &options);
                assert!(shrunk.is_minimal);
                let left = shrunk.operations;
                let is_left = |place| left.contains(&task.calls().get(place).id);
                let returned = |place| is_left(place) && !task.is_pending(place);
                let context = || format!("{name}, {id}: {left:?} of\n{}", shown(&whole));
                assert_eq!(
                    decide_by_definition(&task.relaxed(returned), &model),
                    None,
                    "whatever the others returned: {}",
                    context()
                );
                let keep: Vec<bool> = whole.ops().map(|op| left.contains(&op)).collect();
                let part = consistory_registers::subset(&whole, &keep);
                let part = Task::new(Calls::new(&part).unwrap(), object.clone()).unwrap();
                assert_eq!(decide_by_definition(&part, &model), None, "alone: {}", context());
                violations += 1;
                smaller += usize::from(left.len() < calls.len());
            }
        }
    }
    assert!(violations > 80 && smaller > 50, "{violations} {smaller}");
}

#[test]
fn what_a_return_stems_from_is_left() {
    let calls = [
        call(0, "enqueue", &[1], Value::Null, 1, 2),
        call(0, "enqueue", &[4], Value::Null, 9, 10),
        call(1, "enqueue", &[2], Value::Null, 3, 4),
        call(1, "dequeue", &[], Value::Int(2), 5, 8),
        call(2, "enqueue", &[3], Value::Null, 3, 5),
        call(2, "dequeue", &[], Value::Int(3), 11, 12),
    ];
    assert_eq!(left_of(&calls), ["t0:0", "t1:0", "t1:1"]);
}

/// The queue is not empty when a call finds it empty, whatever the running dequeue returns later.
/// The dequeue's own return has another reason and is not part of the violation.
#[test]
fn calls_that_return_after_the_violation_stay_pending() {
    let calls = [
        call(0, "enqueue", &[1], Value::Null, 1, 2),
        call(0, "enqueue", &[3], Value::Null, 3, 4),
        call(1, "dequeue", &[], Value::Null, 10, 20),
        call(2, "dequeue", &[], Value::Int(2), 5, 30),
        call(3, "enqueue", &[2], Value::Null, 25, 28),
    ];
    assert_eq!(left_of(&calls), ["t0:0", "t0:1", "t1:0"]);
}

fn call(
    session: usize,
    method: &str,
    args: &[i64],
    returns: Value,
    start: i64,
    end: i64,
) -> Recorded {
    Recorded {
        session,
        method: method.to_owned(),
        args: args.iter().map(|&n| Value::Int(n)).collect(),
        returns: Some(returns),
        time: Some(Interval { start, end: Some(end) }),
        status: Status::Ok,
    }
}

/// Shrinks calls of a queue that are not linearizable, and lists the remaining calls.
fn left_of(calls: &[Recorded]) -> Vec<String> {
    let whole = history(calls);
    let task = Task::new(Calls::new(&whole).unwrap(), find("queue").unwrap()).unwrap();
    let model = ObjectModel::named("linearizability").unwrap();
    let options = Options::default();
    let judgement = judge_object(&task, &model, &options).judgement;
    let left = shrink_object(&task, &model, &judgement, &options).operations;
    left.iter().map(|&op| whole.reference(op).to_string()).collect()
}
