//! The built-in objects, called sequentially.

use std::sync::Arc;

use consistory_formats::{Format, parse_str};
use consistory_history::{Action, Value};
use consistory_spec::{
    Effect, Fit, Object, Returns, StartError, catalogue, find, fitting_object, started,
    why_none_fits,
};

/// Calls an object as written in a text, and compares the return of each call.
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

#[test]
fn banks() {
    check("bank(2*10)", "read() => [[0,10],[1,10]] transfer(0,1,3) read() => [[0,7],[1,13]]");
    check("bank(a=1 b=0)", "transfer([[from,a],[to,b],[amount,2]]) read() => [[a,-1],[b,2]]");
}

#[test]
fn jepsens_sets_are_read() {
    check("set", "add(2) => true add(1) => true read() => [1,2]");
}

/// Finds the built-in objects that fit a text of calls.
fn fit(calls: &str) -> Fit {
    let history = parse_str(&format!("t: {calls}"), Format::Hist, "calls").unwrap().remove(0);
    fitting_object(&history)
}

#[test]
fn an_object_is_inferred_only_if_no_other_fits() {
    let one = |name: &str| Fit::One(name.to_owned());
    assert_eq!(fit("add(1) => ? read() => [1]"), one("set"));
    assert_eq!(fit("add(1) => ? read() => 1"), one("counter"));
    assert_eq!(fit("write(1) => ? read() => 1"), one("register"));
    assert_eq!(fit("write(1) => ? cas(1,2) => true read() => 1"), one("cas-register"));
    assert_eq!(fit("enqueue(1) dequeue() => 1"), one("queue"));
    assert_eq!(fit("enqueue(1) drain() => [1]"), one("queue"));
    assert_eq!(fit("read(7) => null write(7,1) => ? read(7) => 1"), one("kv(null)"));
    assert_eq!(fit("get(7) => \"\" append(7,a) => ?"), one("kv"));
    assert!(matches!(fit("get(7) => 1 put(7,1) => ?"), Fit::Several(_)));
    assert_eq!(fit("transfer([[from,0],[to,1],[amount,5]]) read() => [[0,5],[1,5]]"), one("bank"));
    assert_eq!(fit("txn([[r,x,null]]) => [[r,x,1]]"), one("transactions"));
    assert_eq!(fit("txn([[inc,x,null]]) => [[inc,x,1]]"), Fit::None);
    assert_eq!(fit("frobnicate(1) => ?"), Fit::None);
    let Fit::Several(names) = fit("offer(1) => true poll() => 1") else { panic!("several fit") };
    assert_eq!(names, ["queue", "deque", "priority-queue"]);
    assert_eq!(fit("read() => null"), one("register"));
    assert_eq!(fit("write(1) => 7 read() => 1"), Fit::None, "a write returns nothing");
}

#[test]
fn the_reason_why_no_object_fits_names_the_call() {
    let why = |calls: &str| {
        let history = parse_str(&format!("t: {calls}"), Format::Hist, "calls").unwrap().remove(0);
        assert_eq!(fitting_object(&history), Fit::None, "{calls}");
        why_none_fits(&history)
    };
    assert_eq!(
        why("write(1) => null frobnicate(1) => ?"),
        "no built-in object has a method `frobnicate` with 1 argument, as t:1 calls"
    );
    assert_eq!(
        why("add(1) => 1 read() => [1]"),
        "no built-in object fits every call: not counter, whose method can't be add(1) => 1; \
         not set, whose method can't be add(1) => 1"
    );
    assert_eq!(
        why("drain() => [1] unlock() => null"),
        "no built-in object has all the called methods: drain, unlock"
    );
}

/// Starts an object with a history's initial values, and reads it.
fn start(name: &str, init: &str, call: &str) -> Result<Option<Value>, StartError> {
    let text = format!("init: {init}\nt: {call}");
    let history = parse_str(&text, Format::Hist, "calls").unwrap().remove(0);
    let object = started(name, &find(name).unwrap(), &history)?;
    let Action::Call(id) = history.action(history.ops().next().unwrap()) else {
        panic!("{call} is a call")
    };
    let call = history.call(id);
    let args: Vec<Value> = call.args.iter().map(|&arg| history.value(arg).clone()).collect();
    let method = object.resolve(&call.method, args.len()).unwrap().unwrap();
    Ok(object.invoke(&mut object.initial(), &method.name, &args))
}

#[test]
fn initial_values_are_obeyed_or_refused() {
    let five = Ok(Some(Value::Int(5)));
    assert_eq!(start("register", "x=5", "read() => 5"), five);
    assert_eq!(start("cas-register", "x=5", "read() => 5"), five);
    assert_eq!(start("counter", "x=5", "get() => 5"), five);
    assert_eq!(start("kv", "x=5 y=6", "get(x) => 5"), five);
    assert_eq!(start("kv", "1=5 y=6", "get(1) => 5"), five);
    let steps = |value: i64| {
        let step = [Value::Str("r".into()), Value::Str("x".into()), Value::Int(value)];
        Value::List(vec![Value::List(step.to_vec())])
    };
    let found = start("transactions", "x=5", "txn([[r,x,null]]) => [[r,x,5]]");
    assert_eq!(found, Ok(Some(steps(5))));
    let pair = |account, balance| Value::List(vec![Value::Int(account), Value::Int(balance)]);
    let balances = Value::List(vec![pair(0, 1), pair(1, 2)]);
    assert_eq!(start("bank", "0=1 1=2", "read() => null"), Ok(Some(balances)));
    for (name, init) in [
        ("queue", "x=5"),
        ("register", "x=5 y=6"),
        ("register(7)", "x=5"),
        ("counter", "x=[1]"),
        ("bank", "0=a"),
        ("bank", ""),
    ] {
        let call = if name == "queue" { "size() => 0" } else { "read() => 0" };
        assert!(start(name, init, call).is_err(), "{name}, {init}");
    }
}

/// A call that is read-only by its specification changes none of the states that two calls reach.
#[test]
fn what_is_read_only_changes_nothing() {
    let values = [Value::Int(0), Value::Int(1), Value::List(vec![Value::Int(1)])];
    let ready = catalogue().iter().map(|entry| entry.name);
    for name in ready.chain(["keyed(set)", "keyed(queue)", "keyed(kv)", "keyed(cas-register)"]) {
        let object = find(name).unwrap();
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
                        assert!(after == *state, "{name}: {method}{args:?} => {returned}");
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
        assert!(states.len() > 1 || matches!(name, "transactions" | "bank"), "{name}");
    }
}
