//! Engines fall back on other engines, and idle parts are reduced.

use consistory_history::{Action, Call, Details, HistoryBuilder, Interval, Value};
use consistory_objects::{Online, OnlineError, OnlineOptions};
use consistory_spec::find;

use super::watching::{check, watch_until};

/// Counters with every method, and many indeterminate calls.
#[test]
fn counters_are_judged_by_configurations() {
    let (mut fine, mut wrong) = (0, 0);
    for seed in 0..600_u64 {
        let mut random = seed;
        let mut below = move |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            (random >> 33) % bound
        };
        let mut b = HistoryBuilder::new();
        let mut value = 0;
        for i in 0..16 {
            // Each call takes effect at time 10 times its number.
            let (start, end) = (10 * i - below(25) as i64, 10 * i + 1 + below(25) as i64);
            let is_lost = below(4) == 0;
            let by = below(5) as i64 - 2;
            let (method, args, returns) = match below(if i < 8 { 7 } else { 9 }) {
                0..2 => ("add", vec![by], None),
                2 => ("getAndAdd", vec![by], Some(value)),
                3 => ("addAndGet", vec![by], Some(value + by)),
                7 => ("set", vec![by], None),
                8 => ("getAndSet", vec![by], Some(value)),
                _ => ("get", vec![], Some(value)),
            };
            if !(is_lost && below(2) == 0) {
                value = match method {
                    "get" => value,
                    "set" | "getAndSet" => by,
                    _ => value + by,
                };
            }
            let returns = returns.map(|value| value + i64::from(below(12) == 0));
            let session = b.session(&format!("t{i}"));
            let args = args.into_iter().map(|arg| b.int(arg)).collect();
            let returns = returns.filter(|_| !is_lost).map(|value| b.int(value));
            let call = b.call(Call { method: method.into(), args, returns });
            let time =
                Some(Interval { start: 20 * start + i, end: (!is_lost).then_some(20 * end + i) });
            b.push_with(session, Action::Call(call), Details { time, ..Details::default() });
        }
        let history = b.finish().unwrap();
        let noticed = [Some(0), Some(3), None][seed as usize % 3];
        let options = OnlineOptions::default();
        match watch_until(&history, "counter", options, noticed) {
            Ok(found) => {
                assert_eq!(found, check(&history, "counter"), "seed {seed}");
                match found {
                    Some(_) => wrong += 1,
                    None => fine += 1,
                }
            }
            Err(error) => assert!(matches!(error, OnlineError::GivenUp { .. }), "{error}"),
        }
    }
    assert!(fine > 100 && wrong > 100, "{fine} {wrong}");
}

/// The stored value of an idle key is kept, with a few indeterminate calls.
#[test]
fn keys_that_are_left_alone_are_not_forgotten() {
    for object in ["kv", "map", "set"] {
        let mut online = Online::new(find(object).unwrap(), OnlineOptions::default());
        let mut call = |method: &str, args: &[i64], returned: Option<Value>| {
            let args = args.iter().copied().map(Value::Int).collect();
            let id = online.invoke(method, args).unwrap();
            online.complete(id, returned).unwrap().is_none()
        };
        for key in 0..200 {
            assert!(match object {
                "set" => call("add", &[key], Some(Value::Bool(true))),
                _ => call("put", &[key, key + 1], None),
            });
        }
        for key in 0..200 {
            let is_fine = match object {
                "set" => call("contains", &[key], Some(Value::Bool(key % 50 > 0))),
                _ => call("get", &[key], Some(Value::Int(key + i64::from(key % 50 > 0)))),
            };
            assert_eq!(is_fine, key % 50 > 0, "{object} {key}");
        }
    }
}

/// A register whose values repeat, or that receives other calls, is judged by configurations from
/// then on, and so are the keys of a store; its past is not forgotten.
#[test]
fn registers_may_turn_out_to_be_none() {
    let (mut fine, mut wrong) = (0, 0);
    for seed in 0..1500_u64 {
        let mut random = seed;
        let mut below = move |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            (random >> 33) % bound
        };
        // Calls with few values; each takes effect at once, or has a wrong return.
        let is_store = seed % 2 == 0;
        let values = 2 + below(12) as i64;
        let mut b = HistoryBuilder::new();
        let mut value = if is_store { Value::Str("".into()) } else { Value::Null };
        let mut sessions: Vec<i64> = vec![0; 3];
        for _ in 0..12 {
            let s = below(3) as usize;
            let start = sessions[s] + below(4) as i64;
            let end = start + 1 + below(6) as i64;
            sessions[s] = end + 1;
            let written = Value::Int(below(values as u64) as i64 + 1);
            let is_lost = below(6) == 0;
            let (method, written) = match below(if is_store { 7 } else { 6 }) {
                0..3 if is_store => ("put", Some(written)),
                0..3 => ("write", Some(written)),
                6 => ("delete", None),
                _ if is_store => ("get", None),
                _ => ("read", None),
            };
            let mut returns = None;
            match (&written, method) {
                (Some(written), _) => value = written.clone(),
                (_, "delete") => value = Value::Str("".into()),
                _ if below(8) == 0 => returns = Some(Value::Int(below(values as u64) as i64 + 1)),
                _ => returns = Some(value.clone()),
            }
            let session = b.session(&format!("t{s}{}", if is_lost { start } else { -1 }));
            let key = is_store.then_some(Value::Int(0));
            let args = key.into_iter().chain(written).map(|arg| b.value(arg)).collect();
            let returns = returns.filter(|_| !is_lost).map(|value| b.value(value));
            let call = b.call(Call { method: method.into(), args, returns });
            let time = Some(Interval {
                start: 10 * start + s as i64,
                end: (!is_lost).then_some(10 * end + s as i64),
            });
            b.push_with(session, Action::Call(call), Details { time, ..Details::default() });
        }
        let history = b.finish().unwrap();
        let object = if is_store { "kv" } else { "register" };
        let options = OnlineOptions { pending: 100, ..OnlineOptions::default() };
        let noticed = [Some(0), Some(3), None][seed as usize / 2 % 3];
        let found = watch_until(&history, object, options, noticed).unwrap();
        assert_eq!(found, check(&history, object), "seed {seed}");
        match found {
            Some(_) => wrong += 1,
            None => fine += 1,
        }
    }
    assert!(fine > 300 && wrong > 300, "{fine} {wrong}");
}
