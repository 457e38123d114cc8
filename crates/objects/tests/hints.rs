//! Wrong hints of a specification do not make the checker accept a false verdict.
//!
//! Hints of a specification state which calls are read-only, which calls do not affect each other,
//! which values can still be reached, which parts are independent objects and to which family the
//! object belongs. Here each hint is wrong, for many objects, and the checker judges certificates
//! that claim a violation for every history. The expected verdict is that of the definition with
//! correct hints.

use std::sync::Arc;

use crate::common::{Chance, Shape, alphabet, history, random, shown};
use consistory_certify::{ObjectRejection, certify_object};
use consistory_formats::{Format, parse_str};
use consistory_history::{History, OpId, Value};
use consistory_objects::{Calls, Options, Task, decide_by_definition, judge_object};
use consistory_spec::{
    CallRef, CasRegister, Counter, Deque, Family, Goal, KeyValue, Lock, Map, Method, NAMED, Object,
    ObjectModel, Operation, Queue, Set, Specification, find,
};
use consistory_verdict::{Budget, Core, ObjectCertificate, Unexplained, Verdict};

/// A hint that is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hint {
    /// No call affects another.
    Depends,
    /// No other value can be reached.
    CanReach,
    /// All calls are read-only.
    AllRead,
    /// No call is read-only.
    NoneReads,
    /// Each call is confined to its method.
    Part,
    /// The object is a queue.
    Family,
    /// Every call overwrites the state.
    Overwrites,
}

const HINTS: [Hint; 7] = [
    Hint::Depends,
    Hint::CanReach,
    Hint::AllRead,
    Hint::NoneReads,
    Hint::Part,
    Hint::Family,
    Hint::Overwrites,
];

/// An object that behaves like another one and gives one wrong hint.
struct Misleading<S> {
    object: S,
    hint: Hint,
}

impl<S: Specification> Specification for Misleading<S> {
    type State = S::State;

    fn initial(&self) -> S::State {
        self.object.initial()
    }

    fn invoke(&self, state: &mut S::State, method: &str, args: &[Value]) -> Option<Value> {
        self.object.invoke(state, method, args)
    }

    fn methods(&self) -> &[Method] {
        self.object.methods()
    }

    fn part(&self, method: &str, args: &[Value]) -> Option<Value> {
        match self.hint {
            Hint::Part => Some(Value::Str(method.into())),
            _ => self.object.part(method, args),
        }
    }

    fn looks_ahead(&self) -> bool {
        self.hint == Hint::CanReach || self.object.looks_ahead()
    }

    fn can_reach(&self, state: &S::State, goal: &Goal<'_>, by: &[CallRef<'_>]) -> bool {
        match self.hint {
            Hint::CanReach => {
                Specification::invoke(self, &mut state.clone(), goal.method, goal.args).as_ref()
                    == Some(goal.returns)
            }
            _ => self.object.can_reach(state, goal, by),
        }
    }

    fn is_read_only(&self, method: &str, returns: Option<&Value>) -> bool {
        match self.hint {
            Hint::AllRead => true,
            Hint::NoneReads => false,
            _ => self.object.is_read_only(method, returns),
        }
    }

    fn overwrites(&self, method: &str, args: &[Value]) -> bool {
        self.hint == Hint::Overwrites || self.object.overwrites(method, args)
    }

    fn depends(&self, state: &S::State, op: &Operation<'_>, other: &Operation<'_>) -> bool {
        self.hint != Hint::Depends && self.object.depends(state, op, other)
    }

    fn family(&self) -> Option<Family> {
        match self.hint {
            Hint::Family => Some(Family::Queue),
            _ => self.object.family(),
        }
    }
}

/// Builds a certificate which claims that no linearization explains some returned operations.
fn nothing_explains(returned: Vec<OpId>) -> ObjectCertificate {
    ObjectCertificate::Unexplained(Unexplained { returned, attempts: vec![], before: None })
}

/// Compares the checker with the definition on one history; returns the number of true claims.
fn compare(history: &History, right: &Arc<dyn Object>, misleading: &dyn Object, id: &str) -> usize {
    let model = ObjectModel::named(id).unwrap();
    let task = Task::new(Calls::new(history).unwrap(), Arc::clone(right)).unwrap();
    let completed = task.calls().places().filter(|&place| !task.is_pending(place));
    let mut returned: Vec<OpId> = completed.map(|place| task.calls().get(place).id).collect();
    returned.sort_by_key(|&op| history.time(op).and_then(|time| time.end));
    let budget = Budget::unlimited();
    let found = decide_by_definition(&task, &model);
    let claim = nothing_explains(returned.clone());
    let accepted = certify_object(history, misleading, &model, &claim, &budget);
    match &found {
        Some(_) => assert_eq!(accepted, Err(ObjectRejection::Explained), "{}", shown(history)),
        None => assert_eq!(accepted, Ok(()), "{id}: {}", shown(history)),
    }
    // The same is claimed of a part of the returned operations, and of a core of every part.
    for some in 1..returned.len() {
        let claim = nothing_explains(returned[..some].to_vec());
        let core = Core {
            pattern: "thin-air".into(),
            operations: returned[..some].to_vec(),
            prefix: None,
        };
        for claim in [claim, ObjectCertificate::Core(core)] {
            if certify_object(history, misleading, &model, &claim, &budget).is_ok() {
                assert_eq!(found, None, "{id}: {}", shown(history));
            }
        }
    }
    // A verdict of the deciders with correct hints is accepted without these hints.
    let judgement = judge_object(&task, &model, &Options::default()).judgement;
    if let Some(certificate @ ObjectCertificate::Linearization(_)) =
        judgement.certificate().cloned()
    {
        assert_eq!(certify_object(history, misleading, &model, &certificate, &budget), Ok(()));
    }
    usize::from(found.is_none())
}

/// Compares random histories of an object, once with each hint wrong.
fn compare_all<S: Specification + Clone>(object: S, name: &str, models: &[&str], count: usize) {
    let right: Arc<dyn Object> = Arc::new(object.clone());
    for hint in HINTS {
        let misleading = Misleading { object: object.clone(), hint };
        let mut chance = Chance(hint as u64 + 1);
        let mut violations = 0;
        for i in 0..count {
            let shape = Shape {
                operations: 3 + i % 3,
                sessions: 3,
                is_timed: i % 7 > 0,
                pending: if i % 2 == 0 { 0 } else { 4 },
                wrong: 8,
            };
            let history = history(&random(&*right, name, shape, &mut chance));
            violations += compare(&history, &right, &misleading, models[i % models.len()]);
        }
        assert!(violations > 0 && violations < count, "{name}, {hint:?}: {violations} of {count}");
    }
}

const LINEARIZABILITY: &[&str] = &["linearizability"];

#[test]
fn registers_with_wrong_hints() {
    compare_all(CasRegister::new(Value::Null), "cas-register", &NAMED, 300);
}

#[test]
fn counters_with_wrong_hints() {
    compare_all(Counter { initial: 0 }, "counter", &NAMED, 300);
}

#[test]
fn maps_with_wrong_hints() {
    compare_all(Map, "map", &NAMED, 300);
    compare_all(Set, "set", &NAMED, 300);
}

#[test]
fn stores_with_wrong_hints() {
    compare_all(KeyValue { initial: Value::Null }, "kv", &NAMED, 300);
}

#[test]
fn collections_with_wrong_hints() {
    compare_all(Queue::default(), "queue", &NAMED, 300);
    compare_all(Deque::default(), "deque", &NAMED, 300);
}

#[test]
fn locks_with_wrong_hints() {
    // For weak models, a read may see a sequence of calls that the object cannot perform, so only
    // linearizability is compared.
    compare_all(Lock, "lock", LINEARIZABILITY, 600);
}

/// Reads a history of two sessions, `t0: store(1) @1..10` and `t1: load() => 1 @2..5`.
fn write_and_read() -> History {
    let input = "t0: store(1) @1..10\nt1: load() => 1 @2..5\n";
    parse_str(input, Format::Hist, "test").unwrap().swap_remove(0)
}

#[test]
fn a_write_is_not_left_out_because_nothing_depends_on_it() {
    let history = write_and_read();
    let object = Misleading { object: CasRegister::new(Value::Null), hint: Hint::Depends };
    let model = ObjectModel::named("linearizability").unwrap();
    let claim = nothing_explains(vec![OpId(1)]);
    let accepted = certify_object(&history, &object, &model, &claim, &Budget::unlimited());
    assert_eq!(accepted, Err(ObjectRejection::Explained));
}

/// Checks that no set of operations of a linearizable history is accepted as a core.
fn no_core(name: &str, calls: &[(&'static str, Vec<Value>)], seed: u64) {
    let object = find(name).unwrap();
    let model = ObjectModel::named("linearizability").unwrap();
    let budget = Budget::unlimited();
    let mut chance = Chance(seed);
    let mut claims = 0;
    for _ in 0..400 {
        let shape = Shape { operations: 5, sessions: 2, is_timed: true, pending: 0, wrong: 0 };
        let mut calls_made = random(&*object, alphabet_name(name), shape, &mut chance);
        for call in &mut calls_made {
            if chance.one_in(3) {
                let (method, args) = chance.pick(calls).clone();
                (call.method, call.args) = (method.into(), args);
            }
        }
        // The returns are those of a run in the order of the calls' ends.
        calls_made.sort_by_key(|call| call.time.and_then(|time| time.end));
        let mut state = object.initial();
        for call in &mut calls_made {
            call.returns = object.invoke(&mut state, &call.method, &call.args);
        }
        calls_made.retain(|call| call.returns.is_some());
        let history = history(&calls_made);
        let task = Task::new(Calls::new(&history).unwrap(), Arc::clone(&object)).unwrap();
        let judgement = judge_object(&task, &model, &Options::default()).judgement;
        assert_eq!(judgement.verdict(), Verdict::Consistent);
        let ops: Vec<OpId> = history.ops().collect();
        for chosen in 1u32..1 << ops.len() {
            let is_chosen = |&(i, _): &(usize, &OpId)| chosen >> i & 1 == 1;
            let operations = ops.iter().enumerate().filter(is_chosen).map(|(_, &op)| op).collect();
            let core = Core { pattern: "thin-air".into(), operations, prefix: None };
            let claim = ObjectCertificate::Core(core);
            let accepted = certify_object(&history, &*object, &model, &claim, &budget);
            assert!(accepted.is_err(), "{chosen:b} of\n{}", shown(&history));
            claims += 1;
        }
    }
    assert!(claims > 1000, "{claims}");
}

fn alphabet_name(name: &str) -> &str {
    assert!(!alphabet(name).is_empty());
    name
}

#[test]
fn no_part_of_a_linearizable_history_is_a_core() {
    let (one, two) = (vec![Value::Int(1)], vec![Value::Int(2)]);
    let queue: &[(&'static str, Vec<Value>)] = &[
        ("size", vec![]),
        ("contains", one.clone()),
        ("remove", two.clone()),
        ("drainTo", vec![]),
        ("isEmpty", vec![]),
        ("clear", vec![]),
    ];
    no_core("queue", queue, 1);
    no_core("stack", &[("size", vec![]), ("clear", vec![]), ("contains", one.clone())], 2);
    no_core("priority-queue", &[("size", vec![]), ("remove", two.clone()), ("peek", vec![])], 3);
    let set: &[(&'static str, Vec<Value>)] =
        &[("size", vec![]), ("toArray", vec![]), ("clear", vec![]), ("ensure", one)];
    no_core("set", set, 4);
    no_core("register", &[("read", vec![])], 5);
    no_core("kv", &[("delete", two)], 6);
}
