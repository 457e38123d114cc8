//! What is judged as it comes is what is judged from the record, at every return; and what is kept
//! stays bounded.

use consistory_generate::{ObjectWorkload, SharedObject, generate_calls};
use consistory_history::{Action, Call, Details, History, HistoryBuilder, Interval, OpId, Value};
use consistory_objects::{
    Calls, Online, OnlineError, OnlineOptions, Options, Outcome, RunningId, Task, judge_object,
    monitor,
};
use consistory_spec::{ObjectModel, find};
use consistory_verdict::Verdict;
use rustc_hash::FxHashMap;

/// The starts and ends of a history's calls in the order of time.
fn events(history: &History) -> Vec<(i64, bool, OpId)> {
    let mut events: Vec<(i64, bool, OpId)> = Vec::new();
    for op in history.ops() {
        let time = history.time(op).unwrap();
        events.push((time.start, false, op));
        events.extend(time.end.map(|end| (end, true, op)));
    }
    events.sort_unstable();
    events
}

fn values(history: &History, op: OpId) -> (&str, Vec<Value>, Option<Value>) {
    let Action::Call(call) = history.action(op) else { panic!("a history of calls") };
    let call = history.call(call);
    let value = |&id: &_| history.value(id).clone();
    (&call.method, call.args.iter().map(value).collect(), call.returns.as_ref().map(value))
}

/// Judges a history as it comes; gives the first operation whose return nothing explains, or that
/// there are too many explanations.
fn watch(
    history: &History,
    object: &str,
    options: OnlineOptions,
) -> Result<Option<OpId>, OnlineError> {
    watch_until(history, object, options, Some(0))
}

/// As before; it is noticed that a call does not return some events later, or never.
fn watch_until(
    history: &History,
    object: &str,
    options: OnlineOptions,
    noticed: Option<usize>,
) -> Result<Option<OpId>, OnlineError> {
    let mut online = Online::new(find(object).unwrap(), options);
    let mut running: FxHashMap<OpId, RunningId> = FxHashMap::default();
    let mut lost: Vec<(usize, RunningId)> = Vec::new();
    for (now, (_, is_end, op)) in events(history).into_iter().enumerate() {
        let (method, args, returns) = values(history, op);
        while let Some(&(_, id)) = lost.first().filter(|&&(then, _)| then < now) {
            online.abandon(id).unwrap();
            lost.remove(0);
        }
        if !is_end {
            running.insert(op, online.invoke(method, args).unwrap());
            if let (None, Some(noticed)) = (history.time(op).unwrap().end, noticed) {
                lost.push((now + noticed, running[&op]));
            }
        } else if let Some(wrong) = online.complete(running[&op], returns)? {
            return Ok(Some(called(&running, wrong.call)));
        }
    }
    Ok(online.finish()?.map(|wrong| called(&running, wrong.call)))
}

fn called(running: &FxHashMap<OpId, RunningId>, id: RunningId) -> OpId {
    *running.iter().find(|(_, known)| **known == id).expect("it was called").0
}

/// Finds the first return at which the record so far is not linearizable.
fn check(history: &History, object: &str) -> Option<OpId> {
    let model = ObjectModel::named("linearizability").unwrap();
    let events = events(history);
    let ends: Vec<usize> = (0..events.len()).filter(|&i| events[i].1).collect();
    let is_fine = |until: usize| {
        let (now, _, _) = events[until];
        let prefix = prefix(history, now);
        let task = Task::new(Calls::new(&prefix).unwrap(), find(object).unwrap()).unwrap();
        let ruling = judge_object(&task, &model, &Options::default());
        assert_ne!(ruling.judgement.verdict(), Verdict::Undecided);
        ruling.judgement.verdict() == Verdict::Consistent
    };
    ends.into_iter().find(|&end| !is_fine(end)).map(|end| events[end].2)
}

/// Finds the same by the polynomial decider.
fn decide(history: &History, object: &str) -> Option<OpId> {
    let object = find(object).unwrap();
    let mut ends = events(history).into_iter().filter(|&(_, is_end, _)| is_end);
    let first = ends.find(|&(now, _, _)| {
        let prefix = prefix(history, now);
        match monitor(&Calls::new(&prefix).unwrap(), &*object) {
            Outcome::Violation(_) => true,
            Outcome::Linearizable(_) => false,
            Outcome::NotApplicable(reason) => panic!("{reason}"),
        }
    });
    first.map(|(_, _, op)| op)
}

/// Gives what was recorded up to a time.
fn prefix(history: &History, now: i64) -> History {
    let mut b = HistoryBuilder::new();
    for op in history.ops() {
        let time = history.time(op).unwrap();
        if time.start > now {
            continue;
        }
        let (method, args, returns) = values(history, op);
        let session = b.session(history.session_name(history.session_of(op)));
        let end = time.end.filter(|&end| end <= now);
        let args = args.into_iter().map(|arg| b.value(arg)).collect();
        let returns = returns.filter(|_| end.is_some()).map(|value| b.value(value));
        let call = b.call(Call { method: method.into(), args, returns });
        let time = Some(Interval { start: time.start, end });
        b.push_with(session, Action::Call(call), Details { time, ..Details::default() });
    }
    b.finish().unwrap()
}

fn workload(object: SharedObject, seed: u64) -> ObjectWorkload {
    ObjectWorkload {
        object,
        sessions: 3,
        operations: 14,
        read_share: 0.5,
        pending_share: 0.0,
        plants: 0,
        distance: 5,
        seed,
    }
}

#[test]
fn watching_agrees_with_checking_every_prefix() {
    let (mut fine, mut wrong, mut skipped) = (0, 0, 0);
    for object in SharedObject::ALL {
        for seed in 0..150 {
            let workload = ObjectWorkload {
                pending_share: if seed % 3 == 0 { 0.15 } else { 0.0 },
                plants: (seed % 2) as usize,
                ..workload(object, seed)
            };
            let history = generate_calls(&workload);
            for whole in [false, true] {
                let options =
                    OnlineOptions { whole, configurations: 20_000, ..OnlineOptions::default() };
                let found = match watch(&history, object.name(), options) {
                    Ok(found) => found,
                    Err(error) => {
                        assert!(matches!(error, OnlineError::TooMany { .. }), "{error}");
                        skipped += 1;
                        continue;
                    }
                };
                assert_eq!(found, check(&history, object.name()), "{object}, seed {seed}, {whole}");
                match found {
                    Some(_) => wrong += 1,
                    None => fine += 1,
                }
            }
        }
    }
    assert!(fine > 300 && wrong > 300 && skipped < 30, "{fine} {wrong} {skipped}");
}

/// With few configurations allowed, queues and stacks are judged by their calls alone.
#[test]
fn queues_and_stacks_are_judged_without_configurations() {
    let (mut fine, mut wrong, mut skipped) = (0, 0, 0);
    for object in [SharedObject::Queue, SharedObject::Stack] {
        for seed in 0..160 {
            let workload = ObjectWorkload {
                sessions: 2 + seed as u32 % 4,
                operations: 10 + seed as u32 % 30,
                read_share: [0.3, 0.5, 0.7][seed as usize % 3],
                pending_share: if seed % 5 == 0 { 0.1 } else { 0.0 },
                plants: (seed % 2) as usize,
                distance: 10,
                ..workload(object, seed)
            };
            let history = generate_calls(&workload);
            let options = OnlineOptions { configurations: 1, ..OnlineOptions::default() };
            let found = match watch(&history, object.name(), options) {
                Ok(found) => found,
                // A planted value is put in twice.
                Err(error) => {
                    assert!(matches!(error, OnlineError::TooMany { .. }), "{error}");
                    skipped += 1;
                    continue;
                }
            };
            assert_eq!(found, check(&history, object.name()), "{object}, seed {seed}");
            match found {
                Some(_) => wrong += 1,
                None => fine += 1,
            }
        }
    }
    assert!(fine > 60 && wrong > 60 && skipped < 120, "{fine} {wrong} {skipped}");
}

/// Who takes out and does not return is given what nobody else takes, as soon as that is certain.
#[test]
fn queues_are_judged_exactly_whatever_does_not_return() {
    let (mut fine, mut wrong, mut skipped) = (0, 0, 0);
    for seed in 0..2000 {
        let workload = ObjectWorkload {
            sessions: 2 + seed as u32 % 4,
            operations: 12 + seed as u32 % 30,
            read_share: [0.4, 0.5, 0.6][seed as usize % 3],
            pending_share: [0.1, 0.2, 0.3][seed as usize / 3 % 3],
            plants: (seed % 2) as usize,
            distance: 10,
            ..workload(SharedObject::Queue, seed)
        };
        let history = generate_calls(&workload);
        let options = OnlineOptions { configurations: 1, ..OnlineOptions::default() };
        match watch_until(&history, "queue", options, Some(seed as usize % 5)) {
            Ok(found) => {
                assert_eq!(found, decide(&history, "queue"), "seed {seed}");
                match found {
                    Some(_) => wrong += 1,
                    None => fine += 1,
                }
            }
            // A planted value is put in twice.
            Err(error) => {
                assert!(matches!(error, OnlineError::TooMany { .. }), "{error}");
                skipped += 1;
            }
        }
    }
    assert!(fine > 800 && wrong > 300, "{fine} {wrong} {skipped}");
}

/// How a call of a small stream ends.
#[derive(Clone, Debug)]
enum Ends {
    Returns(Option<Value>),
    /// Nobody knows, and that is said.
    Info,
    /// Nothing is said any more.
    Never,
}

/// A call that may be part of a small stream.
type SmallCall = (&'static str, Vec<Value>, Ends);

/// Lists a method's calls: each return, and those that never return.
fn small_calls(method: &'static str, args: &[i64], returns: &[Option<Value>]) -> Vec<SmallCall> {
    let args: Vec<Value> = args.iter().copied().map(Value::Int).collect();
    let ends = returns.iter().cloned().map(Ends::Returns).chain([Ends::Info, Ends::Never]);
    ends.map(|end| (method, args.clone(), end)).collect()
}

/// Lists the ways in which calls may overlap: for each event its call, in the order of calls.
fn overlaps(calls: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for call in 0..calls {
        let mut more = Vec::new();
        for events in &all {
            // Behind the call before it, wherever that may be.
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

/// Feeds a small stream, and gives the first return that nothing explains; and the history of it.
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

/// All streams of two calls, and some of three and four; with `CONSISTORY_ALL_STREAMS` all of three,
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
    let is_all = std::env::var_os("CONSISTORY_ALL_STREAMS").is_some();
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
                        // A value is put in twice.
                        Err(OnlineError::TooMany { .. }) if limit == 1 => unknown += 1,
                        Err(error) => panic!("{object}: {calls:?} {overlap:?}: {error}"),
                    }
                }
            }
        }
    }
    assert!(fine > 5000 && wrong > 5000 && unknown < fine, "{fine} {wrong} {unknown}");
}

/// However late it is noticed that calls do not return, or never, the first return that is wrong is
/// the same; with configurations and, where there is a way, without.
#[test]
fn what_is_lost_changes_no_verdict() {
    let (mut fine, mut wrong, mut unknown) = (0, 0, 0);
    for object in SharedObject::ALL {
        for seed in 0..240 {
            let workload = ObjectWorkload {
                sessions: 2 + seed as u32 % 3,
                operations: 10 + seed as u32 % 9,
                read_share: [0.4, 0.5, 0.6][seed as usize % 3],
                pending_share: [0.1, 0.25, 0.4][seed as usize / 3 % 3],
                plants: (seed % 2) as usize,
                distance: 8,
                ..workload(object, seed)
            };
            let history = generate_calls(&workload);
            let noticed = [Some(0), Some(1), Some(4), None][seed as usize / 2 % 4];
            let configurations = if seed % 5 == 0 { 20_000 } else { 1 };
            let has_other_way = !matches!(
                object,
                SharedObject::Set
                    | SharedObject::Counter
                    | SharedObject::Deque
                    | SharedObject::Lock
            );
            let configurations = if has_other_way { configurations } else { 20_000 };
            let options =
                OnlineOptions { configurations, pending: 100, ..OnlineOptions::default() };
            match watch_until(&history, object.name(), options, noticed) {
                Ok(found) => {
                    assert_eq!(found, check(&history, object.name()), "{object}, seed {seed}");
                    match found {
                        Some(_) => wrong += 1,
                        None => fine += 1,
                    }
                }
                // A planted value is put in twice.
                Err(OnlineError::TooMany { .. }) => unknown += 1,
                Err(error) => {
                    assert!(matches!(error, OnlineError::GivenUp { .. }), "{object}: {error}");
                    assert_eq!(object, SharedObject::Deque);
                    unknown += 1;
                }
            }
        }
    }
    assert!(fine > 1000 && wrong > 400 && unknown < 200, "{fine} {wrong} {unknown}");
}

/// Counters and locks are judged exactly, however many calls are lost; it may be said or not that they
/// are, and some of them may turn out to have failed.
#[test]
fn many_lost_calls_of_counters_and_locks_change_no_verdict() {
    let (mut fine, mut wrong, mut most, mut unknown) = (0, 0, 0, 0);
    for object in [SharedObject::Counter, SharedObject::Lock] {
        for seed in 0..700 {
            let workload = ObjectWorkload {
                sessions: 2 + seed as u32 % 3,
                operations: 24 + seed as u32 % 17,
                read_share: [0.4, 0.6, 0.7][seed as usize % 3],
                pending_share: [0.15, 0.3, 0.5][seed as usize / 3 % 3],
                plants: [0, 1, 2, 5][seed as usize % 4],
                distance: 30,
                ..workload(object, seed)
            };
            let history = generate_calls(&workload);
            let is_lost = |op: &OpId| history.time(*op).unwrap().end.is_none();
            most = most.max(history.ops().filter(is_lost).count());
            let noticed = [Some(0), Some(1), Some(6), None][seed as usize / 2 % 4];
            match watch_until(&history, object.name(), OnlineOptions::default(), noticed) {
                Ok(found) => {
                    assert_eq!(found, check(&history, object.name()), "{object}, seed {seed}");
                    match found {
                        Some(_) => wrong += 1,
                        None => fine += 1,
                    }
                }
                Err(error) => {
                    println!("{object}, seed {seed}: {error}");
                    unknown += 1;
                }
            }
        }
    }
    println!("{fine} fine, {wrong} wrong, {unknown} unknown, at most {most} lost");
    assert!(fine > 400 && wrong > 400 && most > 15 && unknown < 5, "{fine} {wrong} {unknown}");
}

/// What is inside a deque in an order that nobody has seen is kept once, and comes out in every order
/// that is possible and in no other.
#[test]
fn deques_with_much_inside_are_judged_exactly() {
    let (mut fine, mut wrong) = (0, 0);
    for seed in 0..240 {
        let workload = ObjectWorkload {
            sessions: 3 + seed as u32 % 2,
            operations: 20 + seed as u32 % 16,
            read_share: [0.35, 0.45, 0.55][seed as usize % 3],
            pending_share: if seed % 4 == 0 { 0.05 } else { 0.0 },
            plants: [0, 0, 1, 1, 2][seed as usize % 5],
            distance: 20,
            ..workload(SharedObject::Deque, seed)
        };
        let history = generate_calls(&workload);
        let noticed = [Some(0), Some(3), None][seed as usize / 4 % 3];
        let found = watch_until(&history, "deque", OnlineOptions::default(), noticed);
        match found {
            Err(OnlineError::GivenUp { .. } | OnlineError::TooMany { .. }) => continue,
            found => {
                let found = found.unwrap();
                assert_eq!(found, check(&history, "deque"), "seed {seed}");
                match found {
                    Some(_) => wrong += 1,
                    None => fine += 1,
                }
            }
        }
    }
    println!("{fine} {wrong}");
    assert!(fine > 80 && wrong > 60, "{fine} {wrong}");
}

/// A deque that fills up and is emptied again does not run out of configurations.
#[test]
fn deques_fill_up_and_are_emptied() {
    let mut online = Online::new(find("deque").unwrap(), OnlineOptions::default());
    // Forty pairs at each end, each in an order that nobody saw.
    for pair in 0..40 {
        for (method, base) in [("addFirst", 0), ("addLast", 1000)] {
            let ids = [0, 1]
                .map(|i| online.invoke(method, vec![Value::Int(base + 2 * pair + i)]).unwrap());
            for id in ids {
                assert_eq!(online.complete(id, None), Ok(None));
            }
        }
    }
    assert!(online.size().configurations < 100, "{:?}", online.size());
    let mut poll = |method: &str, value: i64| {
        let id = online.invoke(method, vec![]).unwrap();
        online.complete(id, Some(Value::Int(value))).unwrap().is_none()
    };
    for pair in (0..40).rev() {
        assert!(
            poll("pollFirst", 2 * pair + pair % 2) && poll("pollFirst", 2 * pair + 1 - pair % 2)
        );
    }
    for pair in (1..40).rev() {
        assert!(poll("pollLast", 1000 + 2 * pair) && poll("pollLast", 1000 + 2 * pair + 1));
    }
    assert!(poll("pollFirst", 1001) && !poll("pollFirst", 1001));
}

/// A counter that is called otherwise than to add goes on with configurations, and what was lost is not
/// forgotten; nor are what is lost of many keys, and what those hold that are left alone.
#[test]
fn counters_may_turn_out_to_be_none() {
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
            // Each takes effect at 10 times its number.
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
        let found = watch_until(&history, "counter", options, noticed).unwrap();
        assert_eq!(found, check(&history, "counter"), "seed {seed}");
        match found {
            Some(_) => wrong += 1,
            None => fine += 1,
        }
    }
    assert!(fine > 100 && wrong > 100, "{fine} {wrong}");
}

/// What is kept of keys that are left alone is what they hold, with a lost call here and there.
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

/// A register whose values come again, or that is called otherwise, is judged by configurations from
/// then on, and so are the keys of a store; what happened before is not forgotten.
#[test]
fn registers_may_turn_out_to_be_none() {
    let (mut fine, mut wrong) = (0, 0);
    for seed in 0..1500_u64 {
        let mut random = seed;
        let mut below = move |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            (random >> 33) % bound
        };
        // Calls of few values, each of which takes effect at once, or of which the return is wrong.
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

/// Where calls are given up nothing is called wrong that is not, and nothing right that is not.
#[test]
fn what_is_given_up_makes_no_verdict_wrong() {
    let (mut fine, mut wrong, mut given_up) = (0, 0, 0);
    for object in SharedObject::ALL {
        for seed in 0..80 {
            let workload = ObjectWorkload {
                pending_share: 0.3,
                operations: 16,
                plants: (seed % 2) as usize,
                ..workload(object, seed)
            };
            let history = generate_calls(&workload);
            let options = OnlineOptions { pending: 1, whole: true, ..OnlineOptions::default() };
            match watch(&history, object.name(), options) {
                Ok(found) => {
                    assert_eq!(found, check(&history, object.name()), "{object}, seed {seed}");
                    match found {
                        Some(_) => wrong += 1,
                        None => fine += 1,
                    }
                }
                Err(OnlineError::GivenUp { .. }) => given_up += 1,
                Err(error) => assert!(matches!(error, OnlineError::TooMany { .. }), "{error}"),
            }
        }
    }
    assert!(fine > 80 && wrong > 30 && given_up > 20, "{fine} {wrong} {given_up}");
}

/// The returns of calls that run for very long are not looked at; the others are.
#[test]
fn what_is_overdue_makes_nothing_wrong() {
    let (mut fine, mut wrong) = (0, 0);
    for object in SharedObject::ALL {
        for seed in 0..100 {
            let workload = ObjectWorkload {
                pending_share: if seed % 2 == 0 { 0.2 } else { 0.0 },
                operations: 24,
                plants: (seed % 3) as usize,
                ..workload(object, seed)
            };
            let history = generate_calls(&workload);
            let options = OnlineOptions { overdue: 2, ..OnlineOptions::default() };
            match watch_until(&history, object.name(), options, None) {
                Ok(Some(_)) => {
                    assert!(check(&history, object.name()).is_some(), "{object}, seed {seed}");
                    wrong += 1;
                }
                Ok(None) => fine += 1,
                Err(OnlineError::GivenUp { .. } | OnlineError::TooMany { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(fine > 150 && wrong > 60, "{fine} {wrong}");
}

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
        // More is taken out than put in, so that the object itself stays small.
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

/// What was seen of a call that failed was the doing of one that is lost, or of nobody.
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

/// Of very many calls that never return the first ones are given up, and only what may be their doing
/// is undecided.
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
    // It may have been added by the time that it was given up, but not behind.
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

    // If a call concerns all of the object from the start, so do the others.
    let mut online = Online::new(find("set").unwrap(), OnlineOptions::default());
    let size = online.invoke("size", vec![]).unwrap();
    let add = online.invoke("add", vec![Value::Int(1)]).unwrap();
    assert_eq!(online.complete(add, Some(Value::Bool(true))), Ok(None));
    assert_eq!(online.complete(size, Some(Value::Int(1))), Ok(None));
}
