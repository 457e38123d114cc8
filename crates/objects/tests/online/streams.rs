//! All small streams of calls.

use consistory_history::{Action, Call, Details, History, HistoryBuilder, Interval, OpId, Value};
use consistory_objects::{Online, OnlineError, OnlineOptions, RunningId};
use consistory_spec::find;
use rustc_hash::FxHashMap;

use super::watching::{called, check};

/// The end of a call of a small stream.
#[derive(Clone, Debug)]
enum Ends {
    Returns(Option<Value>),
    /// The outcome is recorded as unknown.
    Info,
    /// No end is recorded.
    Never,
}

/// A call that may be part of a small stream, with its end.
type SmallCall = (&'static str, Vec<Value>, Ends);

/// Lists a method's calls: one with each return, and those that never return.
fn small_calls(method: &'static str, args: &[i64], returns: &[Option<Value>]) -> Vec<SmallCall> {
    let args: Vec<Value> = args.iter().copied().map(Value::Int).collect();
    let ends = returns.iter().cloned().map(Ends::Returns).chain([Ends::Info, Ends::Never]);
    ends.map(|end| (method, args.clone(), end)).collect()
}

/// Lists the ways in which calls may overlap: the call of each event, in the order of calls.
fn overlaps(calls: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for call in 0..calls {
        let mut more = Vec::new();
        for events in &all {
            // A call's start comes after the start of the call before it.
            let first = call.checked_sub(1).map_or(0, |before| {
                events.iter().position(|&e| e == before).map_or(0, |at| at + 1)
            });
            for start in first..=events.len() {
                for end in start + 1..=events.len() + 1 {
                    let mut events: Vec<usize> = events.clone();
                    events.insert(start, call);
                    events.insert(end, call);
                    more.push(events);
                }
            }
        }
        all = more;
    }
    all
}

/// Feeds a small stream to the online decider; returns the first return that nothing explains, and
/// the stream's history.
fn feed(
    object: &str,
    calls: &[&SmallCall],
    overlap: &[usize],
    configurations: usize,
) -> (Result<Option<OpId>, OnlineError>, History) {
    let mut b = HistoryBuilder::new();
    for (i, (method, args, end)) in calls.iter().enumerate() {
        let session = b.session(&format!("t{i}"));
        let args = args.iter().map(|arg| b.value(arg.clone())).collect();
        let place = |event: Option<usize>| event.map_or(0, |event| event as i64);
        let start = place(overlap.iter().position(|&call| call == i));
        let end_at = place(overlap.iter().rposition(|&call| call == i));
        let (returns, end) = match end {
            Ends::Returns(value) => (value.clone().map(|value| b.value(value)), Some(end_at)),
            _ => (None, None),
        };
        let call = b.call(Call { method: (*method).into(), args, returns });
        let time = Some(Interval { start, end });
        b.push_with(session, Action::Call(call), Details { time, ..Details::default() });
    }
    let options = OnlineOptions { configurations, pending: 10, ..OnlineOptions::default() };
    let mut online = Online::new(find(object).unwrap(), options);
    let mut running: FxHashMap<OpId, RunningId> = FxHashMap::default();
    let mut judge = || {
        for &i in overlap {
            let (method, args, end) = calls[i];
            let op = OpId::new(i);
            let Some(&id) = running.get(&op) else {
                running.insert(op, online.invoke(method, args.clone())?);
                continue;
            };
            match end {
                Ends::Returns(value) => {
                    if let Some(wrong) = online.complete(id, value.clone())? {
                        return Ok(Some(called(&running, wrong.call)));
                    }
                }
                Ends::Info => online.abandon(id).unwrap(),
                Ends::Never => {}
            }
        }
        Ok(online.finish()?.map(|wrong| called(&running, wrong.call)))
    };
    (judge(), b.finish().unwrap())
}

/// All streams of two calls, and some of three and four; with `CONSISTORY_DEEP` all of three,
/// and more of four.
#[test]
fn watching_agrees_with_checking_on_all_small_streams() {
    let int = |i: i64| Some(Value::Int(i));
    let found = [Some(Value::Null), int(1), int(2)];
    let truths = [Some(Value::Bool(true)), Some(Value::Bool(false))];
    let collection = |insert: &'static str, remove: &'static str| {
        let inserts = [1, 2].map(|i| small_calls(insert, &[i], &[None]));
        [inserts.concat(), small_calls(remove, &[], &found)].concat()
    };
    let register = |method| [1, 2].map(|i| small_calls(method, &[i], &[None])).concat();
    let objects: [(&str, Vec<SmallCall>, &[usize]); 9] = [
        ("register", [register("write"), small_calls("read", &[], &found)].concat(), &[1000]),
        (
            "cas-register",
            [
                register("write"),
                small_calls("cas", &[1, 2], &truths),
                small_calls("read", &[], &found),
            ]
            .concat(),
            &[1000],
        ),
        (
            "kv",
            [
                small_calls("put", &[0, 1], &[None]),
                small_calls("put", &[0, 2], &[None]),
                small_calls("delete", &[0], &[None]),
                small_calls("get", &[0], &[Some(Value::Str("".into())), int(1), int(2)]),
            ]
            .concat(),
            &[1000],
        ),
        (
            "counter",
            [
                small_calls("increment", &[], &[None]),
                small_calls("add", &[-1], &[None]),
                small_calls("incrementAndGet", &[], &[int(1), int(2)]),
                small_calls("get", &[], &[int(0), int(1), int(2)]),
            ]
            .concat(),
            &[1000],
        ),
        (
            "set",
            [
                small_calls("add", &[1], &truths),
                small_calls("remove", &[1], &truths),
                small_calls("contains", &[1], &truths),
            ]
            .concat(),
            &[1000],
        ),
        ("queue", collection("enqueue", "dequeue"), &[1, 1000]),
        ("stack", collection("push", "pop"), &[1, 1000]),
        ("priority-queue", collection("insert", "poll"), &[1, 1000]),
        ("deque", [collection("addFirst", "pollLast"), register("addLast")].concat(), &[1000]),
    ];
    let is_all = std::env::var_os("CONSISTORY_DEEP").is_some();
    let (mut fine, mut wrong, mut unknown) = (0, 0, 0);
    for (object, known, limits) in &objects {
        let steps = if is_all { [1, 1, 1, 97] } else { [1, 1, 7, 2999] };
        for (size, step) in (1..).zip(steps) {
            let ways = overlaps(size);
            let streams = known.len().pow(size as u32) * ways.len();
            for stream in (0..streams).step_by(step) {
                let mut rest = stream / ways.len();
                let calls: Vec<&SmallCall> = (0..size)
                    .map(|_| {
                        let call = &known[rest % known.len()];
                        rest /= known.len();
                        call
                    })
                    .collect();
                let overlap = &ways[stream % ways.len()];
                for &limit in *limits {
                    let (found, history) = feed(object, &calls, overlap, limit);
                    match found {
                        Ok(found) => {
                            assert_eq!(
                                found,
                                check(&history, object),
                                "{object}: {calls:?} {overlap:?}"
                            );
                            match found {
                                Some(_) => wrong += 1,
                                None => fine += 1,
                            }
                        }
                        // A value is inserted twice.
                        Err(OnlineError::TooMany { .. }) if limit == 1 => unknown += 1,
                        Err(error) => panic!("{object}: {calls:?} {overlap:?}: {error}"),
                    }
                }
            }
        }
    }
    assert!(fine > 5000 && wrong > 5000 && unknown < fine, "{fine} {wrong} {unknown}");
}
