//! What the ready objects do, called once at a time.

use std::sync::Arc;

use consistory_formats::{Format, parse_str};
use consistory_history::{Action, Value};
use consistory_spec::{Effect, Object, Returns, catalogue, find};

/// Calls an object as a text says, and compares what each call returns.
fn check(object: &str, calls: &str) {
    let object: Arc<dyn Object> = find(object).unwrap();
    let history = parse_str(&format!("t: {calls}"), Format::Hist, "calls").unwrap().remove(0);
    let mut state = object.initial();
    for op in history.ops() {
        let Action::Call(id) = history.action(op) else { panic!("{calls} are calls") };
        let call = history.call(id);
        let args: Vec<Value> = call.args.iter().map(|&arg| history.value(arg).clone()).collect();
        let method = object.resolve(&call.method, args.len()).unwrap().unwrap();
        let found = object.invoke(&mut state, &method.name, &args);
        if method.returns != Returns::Nothing {
            let expected = call.returns.map(|value| history.value(value).clone());
            assert_eq!(found, expected, "{}", history.show(op));
        }
    }
}

#[test]
fn maps() {
    check("map", "putAll([[1,2],[3,4]]) => null entrySet() => [[1,2],[3,4]] put(1,5) => 2");
    check("map", "set(1,1) => null tryInsert(1,2) => false getOrPut(1,3) => 1 get(1) => 1");
    check("map", "tryInsert(1,2) => true removeKey(1) => true removeKey(1) => false");
    check("map", "getOrPut(1,2) => 2 set(1,3) => null get(1) => 3");
    check("map", "putAll([]) => null isEmpty() => true pollFirstEntry() => null");
    check("map", "put(1,1) => null replace(1,1,2) => true replace(1,1,2) => false get(1) => 2");
}

#[test]
fn sets() {
    check("set", "addAll([1,2]) => true addAll([2,1]) => false removeAll([2,3]) => true");
    check("set", "add(1) => true removeAll([2,3]) => false toArray() => [1] pollLast() => 1");
}

#[test]
fn lists() {
    check("list", "add(7) => true addIfAbsent(7) => false addAll([8,7]) => true size() => 3");
    check("list", "addAll([]) => false addAll([1,2,1]) => true indexOf(1) => 0 indexOf(3) => -1");
    check("list", "addAll([1,2,1]) => true lastIndexOf(1) => 2 remove(1) => true get(0) => 2");
    check("list", "add(1) => true set(0,2) => 1 set(1,2) => null set(-1,2) => null pop() => 2");
    check("list", "add(1) => true removeAt(1) => null removeAt(0) => 1 remove(1) => false");
    check("list", "push(1) push(2) toArray() => [1,2] contains(2) => true clear() pop() => null");
}

#[test]
fn queues_and_deques() {
    check("queue", "offer(1) => true offer(2) => true remove(1) => true remove(1) => false");
    check("queue", "offer(1) => true remove() => 1 remove() => null drainTo() => []");
    check("queue", "offer(2) => true offer(1) => true drainTo() => [2,1] isEmpty() => true");
    check("queue(1)", "offer(1) => true offer(2) => false poll() => 1");
    check(
        "deque",
        "addLast(1) addLast(2) addLast(1) removeLastOccurrence(1) => true peekLast() => 2",
    );
    check("deque", "addLast(1) addLast(2) addLast(1) remove(1) => true peekFirst() => 2");
    check("deque", "offer(2) => true addFirst(1) drainTo() => [1,2] remove(2) => false");
}

#[test]
fn priority_queues() {
    check("priority-queue", "offer(2) => true offer(1) => true drainTo() => [1,2] peek() => null");
    check("priority-queue(max)", "offer(1) => true offer(2) => true drainTo() => [2,1]");
    check("priority-queue", "offer(1) => true offer(1) => true remove(1) => true poll() => 1");
    check("priority-queue", "offer(1) => true remove(2) => false toArray() => [1]");
}

/// Whatever an object says changes no state changes none, on all states that two calls reach.
#[test]
fn what_is_read_only_changes_nothing() {
    let values = [Value::Int(0), Value::Int(1), Value::List(vec![Value::Int(1)])];
    for entry in catalogue() {
        let object = find(entry.name).unwrap();
        let mut calls: Vec<(&str, Vec<Value>)> = Vec::new();
        for method in object.methods() {
            let mut all = vec![Vec::new()];
            for _ in &method.parameters {
                let longer = |args: &Vec<Value>| {
                    let args = args.clone();
                    values.iter().map(move |value| [args.clone(), vec![value.clone()]].concat())
                };
                all = all.iter().flat_map(longer).collect();
            }
            calls.extend(all.into_iter().map(|args| (&*method.name, args)));
        }
        let mut states = vec![object.initial()];
        for _ in 0..2 {
            let mut next = Vec::new();
            for state in &states {
                for (method, args) in &calls {
                    let mut after = state.clone();
                    let Some(returned) = object.invoke(&mut after, method, args) else { continue };
                    let effect =
                        object.methods().iter().find(|m| *m.name == **method).unwrap().effect;
                    if object.is_read_only(method, Some(&returned)) || effect == Effect::Reads {
                        assert!(after == *state, "{}: {method}{args:?} => {returned}", entry.name);
                    }
                    if object.is_read_only(method, None) {
                        assert!(object.is_read_only(method, Some(&returned)), "{method}");
                    }
                    if !states.contains(&after) && !next.contains(&after) && next.len() < 200 {
                        next.push(after);
                    }
                }
            }
            states.extend(next);
        }
        assert!(states.len() > 1 || entry.name == "transactions", "{}", entry.name);
    }
}
