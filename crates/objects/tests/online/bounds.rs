//! The amount of stored data stays bounded; tests of the errors at the limits.

use consistory_generate::{ObjectWorkload, SharedObject, generate_calls};
use consistory_history::{OpId, Value};
use consistory_objects::{Online, OnlineError, OnlineOptions, RunningId};
use consistory_spec::find;
use rustc_hash::FxHashMap;

use super::watching::{events, values, workload};

#[test]
fn what_is_kept_stays_bounded_though_calls_never_return() {
    for object in SharedObject::ALL {
        for noticed in [Some(20), None] {
            let workload = ObjectWorkload {
                operations: 2500,
                sessions: 4,
                read_share: if object == SharedObject::Set { 0.8 } else { 0.6 },
                pending_share: 0.005,
                ..workload(object, 3)
            };
            let history = generate_calls(&workload);
            let mut online = Online::new(
                find(object.name()).unwrap(),
                OnlineOptions { overdue: 200, ..OnlineOptions::default() },
            );
            let mut running: FxHashMap<OpId, RunningId> = FxHashMap::default();
            let (mut kept, mut configurations) = (0, 0);
            for (_, is_end, op) in events(&history) {
                let (method, args, returns) = values(&history, op);
                if is_end {
                    let id = running.remove(&op).unwrap();
                    assert_eq!(online.complete(id, returns), Ok(None), "{object}");
                } else {
                    let id = online.invoke(method, args).unwrap();
                    match history.time(op).unwrap().end.is_none() && noticed.is_some() {
                        true => online.abandon(id).unwrap(),
                        false => drop(running.insert(op, id)),
                    }
                }
                kept = kept.max(online.size().kept);
                configurations = configurations.max(online.size().configurations);
            }
            let size = online.size();
            println!("{object}, {noticed:?}: {kept} calls, {configurations}, {size:?}");
            let most = if object == SharedObject::Stack { 6000 } else { 4000 };
            assert!(kept < most && configurations < 3000, "{object}: {kept} {configurations}");
        }
    }
}

#[test]
fn what_is_kept_of_busy_sessions_stays_bounded() {
    for object in [SharedObject::Queue, SharedObject::Stack] {
        for sessions in [4, 8] {
            let workload = ObjectWorkload {
                operations: 20_000,
                sessions,
                read_share: 0.55,
                ..workload(object, 1)
            };
            let history = generate_calls(&workload);
            let mut online = Online::new(find(object.name()).unwrap(), OnlineOptions::default());
            let mut running: FxHashMap<OpId, RunningId> = FxHashMap::default();
            let mut kept = 0;
            for (_, is_end, op) in events(&history) {
                let (method, args, returns) = values(&history, op);
                if is_end {
                    let id = running.remove(&op).unwrap();
                    assert_eq!(online.complete(id, returns), Ok(None), "{object}, {sessions}");
                } else {
                    running.insert(op, online.invoke(method, args).unwrap());
                }
                kept = kept.max(online.size().kept);
            }
            assert_eq!(online.finish(), Ok(None));
            println!("{object}, {sessions} sessions: at most {kept} calls kept");
            assert!(kept < 6000, "{object}, {sessions} sessions: {kept}");
        }
    }
}

#[test]
fn what_is_kept_stays_bounded() {
    for (object, sessions, most) in [
        (SharedObject::Register, 8, 600),
        (SharedObject::Set, 8, 50),
        (SharedObject::Queue, 2, 2000),
        (SharedObject::Stack, 2, 2000),
        (SharedObject::PriorityQueue, 4, 300),
    ] {
        // More elements are removed than inserted, so that the object itself stays small.
        let workload = ObjectWorkload {
            operations: 20_000,
            sessions,
            read_share: if object == SharedObject::Set { 0.8 } else { 0.6 },
            ..workload(object, 1)
        };
        let history = generate_calls(&workload);
        let mut online = Online::new(find(object.name()).unwrap(), OnlineOptions::default());
        let mut running: FxHashMap<OpId, RunningId> = FxHashMap::default();
        let mut parts = 0;
        for (_, is_end, op) in events(&history) {
            let (method, args, returns) = values(&history, op);
            if is_end {
                let id = running.remove(&op).unwrap();
                assert_eq!(online.complete(id, returns).unwrap(), None);
            } else {
                running.insert(op, online.invoke(method, args).unwrap());
            }
            parts = parts.max(online.size().parts);
        }
        let size = online.size();
        println!("{object}: {size:?}, at most {parts} parts");
        assert!(size.most <= most && parts <= 100, "{object}: {size:?}, {parts}");
    }
}

#[test]
fn what_would_have_been_possible_is_said() {
    let text: [(&str, Vec<Value>, Option<Value>); 4] = [
        ("enqueue", vec![Value::Int(1)], None),
        ("enqueue", vec![Value::Int(2)], None),
        ("dequeue", vec![], Some(Value::Int(1))),
        ("dequeue", vec![], Some(Value::Int(7))),
    ];
    let mut online = Online::new(find("queue").unwrap(), OnlineOptions::default());
    let ids: Vec<RunningId> =
        text[..2].iter().map(|(m, args, _)| online.invoke(m, args.clone()).unwrap()).collect();
    let dequeue = online.invoke("dequeue", vec![]).unwrap();
    for id in ids {
        assert_eq!(online.complete(id, None), Ok(None));
    }
    let wrong = online.complete(dequeue, Some(Value::Int(7))).unwrap().unwrap();
    assert_eq!(wrong.possible, [Value::Null, Value::Int(1), Value::Int(2)]);
    assert_eq!(online.complete(dequeue, None), Err(OnlineError::NotRunning));
}

#[test]
fn a_call_that_failed_took_no_effect_and_one_that_is_lost_may_have() {
    let mut online = Online::new(find("register").unwrap(), OnlineOptions::default());
    let read = |online: &mut Online, value: Value| {
        let id = online.invoke("read", vec![]).unwrap();
        online.complete(id, Some(value)).unwrap().is_none()
    };
    let failed = online.invoke("write", vec![Value::Int(1)]).unwrap();
    online.fail(failed).unwrap();
    assert!(read(&mut online, Value::Null));
    let lost = online.invoke("write", vec![Value::Int(2)]).unwrap();
    online.abandon(lost).unwrap();
    assert!(read(&mut online, Value::Null), "not yet");
    assert!(read(&mut online, Value::Int(2)), "by now");
    assert!(!read(&mut online, Value::Null), "for good");
    let size = online.size();
    assert_eq!((size.running, size.pending), (0, 0), "it is known to have happened");
}

/// An effect that was attributed to a failed call is due to an indeterminate call, or is a
/// violation.
#[test]
fn a_call_that_failed_may_turn_out_to_be_needed() {
    for is_lost in [true, false] {
        let mut online = Online::new(find("counter").unwrap(), OnlineOptions::default());
        let add = |online: &mut Online| online.invoke("add", vec![Value::Int(1)]).unwrap();
        let get = |online: &mut Online, value: i64| {
            let id = online.invoke("get", vec![]).unwrap();
            online.complete(id, Some(Value::Int(value))).unwrap().is_none()
        };
        if is_lost {
            let id = add(&mut online);
            online.abandon(id).unwrap();
        }
        let failed = add(&mut online);
        assert!(get(&mut online, 0) && get(&mut online, 1));
        online.fail(failed).unwrap();
        assert_eq!(get(&mut online, 1), is_lost);
        if is_lost {
            assert_eq!(online.size().pending, 0, "it is known to have happened");
            assert!(!get(&mut online, 2));
        }
    }
}

/// If very many calls never return, the first ones are given up, and only violations that they
/// might explain are undecided.
#[test]
fn very_many_lost_calls_are_bounded() {
    let lose = |online: &mut Online, method: &str, i: i64| {
        let id = online.invoke(method, vec![Value::Int(i)]).unwrap();
        online.abandon(id).unwrap();
    };
    let most = 1 << 16;
    let mut online = Online::new(find("register").unwrap(), OnlineOptions::default());
    for i in 0..most + 10 {
        lose(&mut online, "write", i);
    }
    let read = |online: &mut Online, value: i64| {
        let id = online.invoke("read", vec![]).unwrap();
        online.complete(id, Some(Value::Int(value)))
    };
    assert_eq!((online.size().pending, online.size().given_up), (most as usize, 10));
    assert_eq!(read(&mut online, 10), Ok(None));
    assert_eq!(read(&mut online, 11), Ok(None));
    assert!(read(&mut online, 10).unwrap().is_some(), "it was written once");
    assert_eq!(read(&mut online, 9), Err(OnlineError::GivenUp { calls: 10 }));

    let most = 1 << 14;
    let mut online = Online::new(find("set").unwrap(), OnlineOptions::default());
    for i in 0..most + 10 {
        lose(&mut online, "add", i);
    }
    let size = online.size();
    assert_eq!((size.pending, size.given_up), (most as usize, 10));
    assert!(size.parts <= most as usize + 10);
    let mut store = Online::new(find("kv").unwrap(), OnlineOptions::default());
    for i in 0..most + 10 {
        let id = store.invoke("put", vec![Value::Int(i), Value::Int(1)]).unwrap();
        store.abandon(id).unwrap();
    }
    let get = |online: &mut Online, key: i64, value: Value| {
        let id = online.invoke("get", vec![Value::Int(key)]).unwrap();
        online.complete(id, Some(value))
    };
    assert_eq!(get(&mut store, 9, Value::Str("".into())), Ok(None));
    assert_eq!(get(&mut store, 9, Value::Int(1)), Err(OnlineError::GivenUp { calls: 10 }));
    assert_eq!(get(&mut store, 10, Value::Int(1)), Ok(None));
    assert!(get(&mut store, 10, Value::Int(2)).unwrap().is_some());

    let contains = |online: &mut Online, i: i64, truth: bool| {
        let id = online.invoke("contains", vec![Value::Int(i)]).unwrap();
        online.complete(id, Some(Value::Bool(truth)))
    };
    // The call may have taken effect before it was given up, but not later.
    assert_eq!(contains(&mut online, 9, false), Ok(None));
    assert_eq!(contains(&mut online, 9, true), Err(OnlineError::GivenUp { calls: 10 }));
    assert_eq!(contains(&mut online, 10, false), Ok(None));
    assert_eq!(contains(&mut online, 10, true), Ok(None));
    assert!(contains(&mut online, 10, false).unwrap().is_some());
}

#[test]
fn limits_and_mixed_parts_are_errors() {
    let options = OnlineOptions { configurations: 50, ..OnlineOptions::default() };
    let mut online = Online::new(find("deque").unwrap(), options);
    let ids: Vec<RunningId> =
        (0..8).map(|i| online.invoke("addLast", vec![Value::Int(i)]).unwrap()).collect();
    assert_eq!(online.complete(ids[0], None), Err(OnlineError::TooMany { limit: 50 }));

    let mut online = Online::new(find("set").unwrap(), OnlineOptions::default());
    online.invoke("add", vec![Value::Int(1)]).unwrap();
    let mixed = online.invoke("size", vec![]);
    assert_eq!(mixed, Err(OnlineError::Whole { method: "size".into() }));

    // If a call concerns the whole object from the start, the object is judged as a whole.
    let mut online = Online::new(find("set").unwrap(), OnlineOptions::default());
    let size = online.invoke("size", vec![]).unwrap();
    let add = online.invoke("add", vec![Value::Int(1)]).unwrap();
    assert_eq!(online.complete(add, Some(Value::Bool(true))), Ok(None));
    assert_eq!(online.complete(size, Some(Value::Int(1))), Ok(None));
}
