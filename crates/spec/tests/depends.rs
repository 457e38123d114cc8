//! Operations on which an operation does not depend, by its specification, do not affect it.

use std::collections::HashSet;

use consistory_history::Value;
use consistory_spec::{Object, Operation, Returns, State, find};

/// Largest number of operations that lead to an examined state.
const DEPTH: usize = 3;
/// Largest number of independent operations performed in a row.
const FURTHER: usize = 3;
const WAYS: usize = 10;

/// A call and its return.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Op {
    method: String,
    args: Vec<Value>,
    returns: Option<Value>,
}

impl Op {
    fn shown(&self) -> Operation<'_> {
        Operation { method: &self.method, args: &self.args, returns: self.returns.as_ref() }
    }

    /// Returns the state after the call if it returns the recorded value.
    fn after(&self, object: &dyn Object, state: &State) -> Option<State> {
        let mut state = state.clone();
        let returned = object.invoke(&mut state, &self.method, &self.args)?;
        self.returns.as_ref().is_none_or(|wanted| *wanted == returned).then_some(state)
    }
}

/// Lists the calls of an object's methods with arguments from a few values.
fn calls(object: &dyn Object, values: &[Value]) -> Vec<(String, Vec<Value>, bool)> {
    let mut calls = Vec::new();
    for method in object.methods() {
        let mut args: Vec<Vec<Value>> = vec![Vec::new()];
        for _ in &method.parameters {
            let longer = |args: &Vec<Value>| {
                let longer = |value: &Value| [args.clone(), vec![value.clone()]].concat();
                values.iter().map(longer).collect::<Vec<_>>()
            };
            args = args.iter().flat_map(longer).collect();
        }
        let is_told = method.returns != Returns::Nothing;
        calls.extend(args.into_iter().map(|args| (method.name.to_string(), args, is_told)));
    }
    calls
}

/// Returns the states that a few calls lead to, and the calls with their returns there.
fn explore(object: &dyn Object, values: &[Value]) -> (Vec<State>, Vec<Op>) {
    let calls = calls(object, values);
    let mut states = vec![object.initial()];
    let mut known: HashSet<State> = states.iter().cloned().collect();
    let mut ops: HashSet<Op> = HashSet::new();
    let mut from = 0;
    for depth in 0..=DEPTH {
        let to = states.len();
        for i in from..to {
            for (method, args, is_told) in &calls {
                let mut state = states[i].clone();
                let Some(returned) = object.invoke(&mut state, method, args) else { continue };
                for returns in [None, Some(returned).filter(|_| *is_told)] {
                    ops.insert(Op { method: method.clone(), args: args.clone(), returns });
                }
                if depth < DEPTH && known.insert(state.clone()) {
                    states.push(state);
                }
            }
        }
        from = to;
    }
    let mut ops: Vec<Op> = ops.into_iter().collect();
    ops.sort_by_key(|op| format!("{op:?}"));
    (states, ops)
}

/// Performs operations on which `op` does not depend, and checks that `op` has the same effect
/// before and after them. Returns the number of performed operations.
fn check(object: &dyn Object, state: &State, op: &Op, others: &[&Op]) -> usize {
    let mut performed = 0;
    let mut ends = vec![(state.clone(), op.after(object, state), Vec::<&Op>::new())];
    for _ in 0..FURTHER {
        let mut further = Vec::new();
        for (without, with, way) in &ends {
            for &other in others {
                let Some(without) = other.after(object, without) else { continue };
                let way = [&way[..], &[other]].concat();
                let moved = op.after(object, &without);
                let with = with.as_ref().map(|with| other.after(object, with));
                assert_eq!(moved.is_some(), with.is_some(), "{op:?} after {way:?}");
                assert!(with.is_none_or(|with| with == moved), "{op:?} before {way:?}");
                performed += 1;
                further.push((without, moved, way));
            }
        }
        further.truncate(WAYS);
        ends = further;
    }
    performed
}

/// Checks every operation in some states. Returns the number of performed operations.
fn check_all(name: &str, values: &[Value]) -> usize {
    let object = find(name).unwrap();
    let (states, ops) = explore(&*object, values);
    let mut performed = 0;
    for state in states.iter().take(30) {
        for op in &ops {
            let is_free = |other: &&Op| !object.depends(state, &op.shown(), &other.shown());
            let others: Vec<&Op> = ops.iter().filter(is_free).collect();
            performed += check(&*object, state, op, &others);
        }
    }
    performed
}

#[test]
fn what_does_not_matter_does_not() {
    let values = [Value::Null, Value::Int(1), Value::Int(2)];
    for name in ["queue", "deque", "priority-queue", "priority-queue(max)"] {
        let performed = check_all(name, &values);
        assert!(performed > 1000, "{name}: {performed}");
    }
    for name in ["set", "kv"] {
        let performed = check_all(name, &values[1..]);
        assert!(performed > 1000, "{name}: {performed}");
    }
}

#[test]
fn what_has_no_room_may_matter() {
    let object = find("queue(1)").unwrap();
    let (put, take) = ([Value::Int(1)], Value::Int(1));
    let put = Operation { method: "enqueue", args: &put, returns: None };
    let take = Operation { method: "dequeue", args: &[], returns: Some(&take) };
    assert!(object.depends(&object.initial(), &put, &take));
}
