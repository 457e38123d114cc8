//! Weak models: after each event, the online verdict is that of the recorded prefix.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use consistory_generate::{ObjectWorkload, SharedObject, generate_calls};
use consistory_history::{
    Action, Call, Details, History, HistoryBuilder, Interval, OpId, Status, Value,
};
use consistory_objects::{
    Calls, OnlineError, Options, RunningId, Task, WeakOnline, WeakOptions, judge_object,
};
use consistory_spec::{Level, NAMED, Object, ObjectModel, find, parse_axioms};
use consistory_verdict::{Budget, Verdict};

use super::watching::{events, values, workload};
use crate::common::{Chance, Recorded, Shape, alphabet};

/// An event of a stream: its session, and what happens.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Event {
    Invoke(usize, &'static str, Vec<Value>),
    Return(usize, Option<Value>),
    Fail(usize),
    Info(usize),
}

/// Returns the history recorded by some events; the position of an event is its time.
pub(crate) fn recorded(events: &[Event]) -> History {
    struct Made {
        session: usize,
        method: &'static str,
        args: Vec<Value>,
        start: i64,
        end: Option<(i64, Option<Value>)>,
        status: Status,
    }
    let mut calls: Vec<Made> = Vec::new();
    for (now, event) in events.iter().enumerate() {
        let running = |calls: &mut Vec<Made>, session: usize| {
            calls.iter().rposition(|call| call.session == session).unwrap()
        };
        match event.clone() {
            Event::Invoke(session, method, args) => calls.push(Made {
                session,
                method,
                args,
                start: now as i64,
                end: None,
                status: Status::Unknown,
            }),
            Event::Return(session, value) => {
                let at = running(&mut calls, session);
                calls[at].end = Some((now as i64, value));
                calls[at].status = Status::Ok;
            }
            Event::Fail(session) => {
                let at = running(&mut calls, session);
                calls[at].status = Status::Fail;
            }
            Event::Info(_) => {}
        }
    }
    let mut b = HistoryBuilder::new();
    for call in calls {
        let session = b.session(&format!("t{}", call.session));
        let args = call.args.into_iter().map(|arg| b.value(arg)).collect();
        let (end, value) = call.end.map_or((None, None), |(end, value)| (Some(end), value));
        let returns = value.map(|value| b.value(value));
        let id = b.call(Call { method: call.method.into(), args, returns });
        let time = Some(Interval { start: call.start, end });
        let details = Details { status: call.status, time, transaction: None };
        b.push_with(session, Action::Call(id), details);
    }
    b.finish().unwrap()
}

/// Judges the recorded prefix offline.
fn offline(events: &[Event], object: &Arc<dyn Object>, model: &ObjectModel) -> Verdict {
    let history = recorded(events);
    let task = Task::new(Calls::new(&history).unwrap(), Arc::clone(object)).unwrap();
    judge_object(&task, model, &Options::default()).judgement.verdict()
}

/// Result of a stream: position of the event at which it ends, if it does.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Ended {
    Never,
    Violation(usize),
    Undecided(usize, OnlineError),
}

/// Feeds events to the online judge; calls `after` after each one that violates nothing.
fn online(
    events: &[Event],
    object: &Arc<dyn Object>,
    model: &ObjectModel,
    options: WeakOptions,
    mut after: impl FnMut(usize, &WeakOnline),
) -> Ended {
    let mut judge = WeakOnline::new(Arc::clone(object), model, options);
    let mut running: Vec<Option<RunningId>> = vec![None; 64];
    for (now, event) in events.iter().enumerate() {
        let found = match event.clone() {
            Event::Invoke(session, method, args) => {
                let id = judge.invoke(&format!("t{session}"), method, args, now as i64).unwrap();
                running[session] = Some(id);
                Ok(None)
            }
            Event::Return(session, value) => {
                judge.complete(running[session].take().unwrap(), value, now as i64)
            }
            Event::Fail(session) => judge.fail(running[session].take().unwrap()),
            Event::Info(session) => judge.abandon(running[session].take().unwrap()).map(|()| None),
        };
        match found {
            Ok(None) => after(now, &judge),
            Ok(Some(_)) => return Ended::Violation(now),
            Err(error) => return Ended::Undecided(now, error),
        }
    }
    Ended::Never
}

/// Asserts that the stream ends at the first event whose prefix violates the model.
fn agree(
    events: &[Event],
    object: &Arc<dyn Object>,
    model: &ObjectModel,
    options: &WeakOptions,
) -> Ended {
    let found = online(events, object, model, options.clone(), |_, _| {});
    // Models are closed under prefixes, except where a call fails; so all prefixes are judged.
    let is_end = |now: &usize| matches!(events[*now], Event::Return(..) | Event::Fail(_));
    let expected = (0..events.len())
        .filter(is_end)
        .find(|&now| offline(&events[..=now], object, model) == Verdict::Violation);
    match (&found, expected) {
        (Ended::Never, None) => {}
        (Ended::Violation(now), Some(expected)) if *now == expected => {}
        (Ended::Undecided(..), _) if options.calls < 1000 || options.states < 1000 => {}
        _ => panic!("{}: {found:?}, not {expected:?}: {events:#?}", model.id),
    }
    found
}

fn weak_models() -> Vec<ObjectModel> {
    let named = NAMED[1..].iter().map(|id| ObjectModel::named(id).unwrap());
    named.collect()
}

fn other_models(object: &dyn Object, chance: &mut Chance) -> Vec<ObjectModel> {
    let mut models = Vec::new();
    for axioms in [
        "vis >= hb; vis >= vis ; vis",
        "vis >= hb ; vis",
        "vis >= po ; lin",
        "vis >= vis ; hb",
        "vis >= po; vis >= hb",
        "lin >= vis ; lin; vis >= lin ; vis",
        "vis >= vis ; lin",
    ] {
        models.push(ObjectModel::of_axioms(parse_axioms("axioms", axioms).unwrap()));
    }
    let methods: Vec<&str> = object.methods().iter().map(|method| &*method.name).collect();
    let levels: Vec<(Box<str>, Level)> =
        methods.iter().map(|&method| (method.into(), *chance.pick(&Level::ALL))).collect();
    models.push(ObjectModel::of_levels(&levels, Level::Complete, &methods));
    models
}

/// A method, its arguments, and the values that it may return.
type Signature = (&'static str, Vec<Value>, Vec<Option<Value>>);

/// A method, its arguments, and its return once the call has taken effect.
type RunningCall = (&'static str, Vec<Value>, Option<Option<Value>>);

/// Visits every stream of at most `calls` calls, where a call may return any of its values, fail or
/// be lost.
fn all_streams(
    calls: &[Signature],
    left: usize,
    sessions: usize,
    stream: &mut Vec<Event>,
    running: &mut Vec<Option<usize>>,
    visit: &mut impl FnMut(&[Event]),
) {
    let mut is_maximal = true;
    for session in 0..sessions {
        let Some(call) = running[session] else { continue };
        is_maximal = false;
        let returns = calls[call].2.iter().map(|value| Event::Return(session, value.clone()));
        let others = [Event::Fail(session), Event::Info(session)];
        for event in returns.chain(others) {
            stream.push(event);
            running[session] = None;
            all_streams(calls, left, sessions, stream, running, visit);
            running[session] = Some(call);
            stream.pop();
        }
    }
    if left > 0 {
        // Sessions are numbered in the order of their first calls.
        let known = stream.iter().filter_map(|event| match event {
            Event::Invoke(session, ..) => Some(session + 1),
            _ => None,
        });
        let known = known.max().unwrap_or(0);
        for session in
            (0..sessions.min(known + 1)).filter(|&s| running[s].is_none()).collect::<Vec<_>>()
        {
            for (at, (method, args, _)) in calls.iter().enumerate() {
                is_maximal = false;
                stream.push(Event::Invoke(session, method, args.clone()));
                running[session] = Some(at);
                all_streams(calls, left - 1, sessions, stream, running, visit);
                running[session] = None;
                stream.pop();
            }
        }
    }
    if is_maximal {
        visit(stream);
    }
}

#[test]
fn all_small_streams_of_a_register() {
    let calls = [
        ("write", vec![Value::Int(1)], vec![None]),
        ("read", vec![], vec![Some(Value::Null), Some(Value::Int(1))]),
    ];
    let object = find("register").unwrap();
    let mut count = 0;
    let mut violations = [0; 5];
    let models = weak_models();
    all_streams(&calls, 3, 3, &mut Vec::new(), &mut vec![None; 3], &mut |stream| {
        count += 1;
        for (model, violations) in models.iter().zip(&mut violations) {
            let ended = agree(stream, &object, model, &WeakOptions::default());
            *violations += usize::from(matches!(ended, Ended::Violation(_)));
        }
    });
    println!("{count} streams, {violations:?} violations");
    assert!(count > 1000 && violations.iter().all(|&v| v > 50), "{count}, {violations:?}");
}

/// Builds a random stream: calls take effect at some time while they run, and some effects are
/// missed by some calls.
fn random(
    object: &dyn Object,
    name: &str,
    size: (usize, usize),
    chance: &mut Chance,
) -> Vec<Event> {
    let (calls, sessions) = size;
    let alphabet = alphabet(name);
    let mut effects: Vec<(&'static str, Vec<Value>)> = Vec::new();
    // The call of each session, and its return once it has taken effect.
    let mut running: Vec<Option<RunningCall>> = vec![None; sessions];
    let mut stream = Vec::new();
    let mut made = 0;
    let (misses, wrong, lost) = (2 + chance.below(8), 5 + chance.below(30), 4 + chance.below(20));
    while made < calls || running.iter().any(Option::is_some) {
        let session = chance.below(sessions);
        match &mut running[session] {
            None if made < calls => {
                made += 1;
                let (method, args) = chance.pick(&alphabet).clone();
                stream.push(Event::Invoke(session, method, args.clone()));
                running[session] = Some((method, args, None));
            }
            None => {}
            Some((method, args, effect @ None)) => {
                let mut state = object.initial();
                let mut is_possible = true;
                for (method, args) in &effects {
                    if !chance.one_in(misses) {
                        is_possible &= object.invoke(&mut state, method, args).is_some();
                    }
                }
                let value = match is_possible {
                    true => object.invoke(&mut state, method, args),
                    false => None,
                };
                effects.push((method, args.clone()));
                *effect = Some(Some(value.unwrap_or(Value::Null)));
            }
            Some((_, _, Some(value))) => {
                let value = if chance.one_in(wrong) { Some(Value::Int(1)) } else { value.take() };
                stream.push(match chance.one_in(lost) {
                    true if chance.one_in(2) => Event::Info(session),
                    true => Event::Fail(session),
                    false => Event::Return(session, value),
                });
                running[session] = None;
            }
        }
    }
    stream
}

const OBJECTS: [&str; 10] = [
    "register",
    "counter",
    "keyed map",
    "kv",
    "set",
    "queue",
    "stack",
    "lock",
    "log",
    "cas-register",
];

#[test]
fn random_streams() {
    let rounds = std::env::var("CONSISTORY_ROUNDS").map_or(40, |n| n.parse().unwrap());
    let mut chance = Chance(7);
    let mut counts = BTreeMap::new();
    for name in OBJECTS {
        let object = find(name.strip_prefix("keyed ").unwrap_or(name)).unwrap();
        for round in 0..rounds {
            let size = (3 + chance.below(6), 1 + chance.below(4));
            let stream = random(&*object, name, size, &mut chance);
            let options = match round % 3 {
                // Without the engine that keeps no calls.
                0 => WeakOptions { states: 0, ..WeakOptions::default() },
                _ => WeakOptions::default(),
            };
            let mut models = weak_models();
            models.extend(other_models(&*object, &mut chance));
            for (i, model) in models.iter().enumerate() {
                let found = agree(&stream, &object, model, &options);
                let count: &mut (usize, usize) = counts.entry(i.min(5)).or_default();
                match found {
                    Ended::Never => count.0 += 1,
                    Ended::Violation(_) => count.1 += 1,
                    Ended::Undecided(_, error) => panic!("{name}: {error}"),
                }
            }
        }
    }
    println!("{counts:?}");
    assert!(counts.values().all(|&(fine, wrong)| fine > 50 && wrong > 30), "{counts:?}");
}

/// Asserts that a judge that forgets calls makes no wrong claim; returns how the stream ended.
fn claims_are_right(
    events: &[Event],
    object: &Arc<dyn Object>,
    model: &ObjectModel,
    options: &WeakOptions,
) -> Ended {
    let mut ignored = 0;
    let found = online(events, object, model, options.clone(), |_, judge| {
        ignored = judge.size().overdue;
    });
    if ignored > 0 {
        // Some returns were ignored, so that only a violation says something.
        if let Ended::Violation(now) = found {
            assert_eq!(offline(&events[..=now], object, model), Verdict::Violation);
        }
        return found;
    }
    let returns =
        (0..events.len()).filter(|&now| matches!(events[now], Event::Return(..) | Event::Fail(_)));
    for now in returns {
        let verdict = offline(&events[..=now], object, model);
        let is_before = match found {
            Ended::Never => true,
            Ended::Violation(end) | Ended::Undecided(end, _) => now < end,
        };
        let claimed = match &found {
            _ if is_before => Verdict::Consistent,
            Ended::Violation(end) if *end == now => Verdict::Violation,
            _ => break,
        };
        assert_eq!(verdict, claimed, "{} at {now}: {found:?}: {events:#?}", model.id);
    }
    found
}

#[test]
fn what_is_claimed_after_calls_were_forgotten_is_right() {
    let rounds = std::env::var("CONSISTORY_ROUNDS").map_or(60, |n| n.parse().unwrap());
    let mut chance = Chance(11);
    let (mut fine, mut wrong, mut unknown, mut forgetful) = (0, 0, 0, 0);
    for name in ["register", "keyed map", "kv", "set", "queue", "log", "counter"] {
        let object = find(name.strip_prefix("keyed ").unwrap_or(name)).unwrap();
        for round in 0..rounds {
            let size = (8 + chance.below(8), 1 + chance.below(3));
            let stream = random(&*object, name, size, &mut chance);
            let options = WeakOptions {
                calls: 2 + chance.below(4),
                states: [0, 30, 100_000][round % 3],
                pending: chance.below(2),
                overdue: [2, 1000, 1000][chance.below(3)],
                ..WeakOptions::default()
            };
            let mut models = weak_models();
            models.extend(other_models(&*object, &mut chance).into_iter().take(2));
            for model in &models {
                let mut lost = 0;
                online(&stream, &object, model, options.clone(), |_, judge| {
                    lost = lost.max(judge.size().forgotten);
                });
                forgetful += usize::from(lost > 0);
                match claims_are_right(&stream, &object, model, &options) {
                    Ended::Never => fine += 1,
                    Ended::Violation(_) => wrong += 1,
                    Ended::Undecided(..) => unknown += 1,
                }
            }
        }
    }
    println!("{fine} consistent, {wrong} violations, {unknown} undecided, {forgetful} forgot");
    assert!(fine > 300 && wrong > 300 && unknown > 300 && forgetful > 1000);
}

/// Returns the calls of clients of a replicated register: each session writes its own values, and
/// reads what its replica has received, in the order in which the values were written.
fn replicated(calls: usize, sessions: usize, lag: usize, chance: &mut Chance) -> Vec<Event> {
    let mut written: Vec<i64> = vec![0];
    let mut received: Vec<usize> = vec![0; sessions];
    let mut stream = Vec::with_capacity(2 * calls);
    for i in 0..calls {
        let session = chance.below(sessions);
        if chance.one_in(4) {
            written.push(i as i64 % 8);
            received[session] = written.len() - 1;
            stream.push(Event::Invoke(session, "write", vec![Value::Int(i as i64 % 8)]));
            stream.push(Event::Return(session, None));
        } else {
            let oldest = received[session].max(written.len().saturating_sub(lag));
            received[session] = oldest + chance.below(written.len() - oldest);
            let value = Value::Int(written[received[session]]);
            stream.push(Event::Invoke(session, "read", vec![]));
            stream.push(Event::Return(session, Some(value)));
        }
    }
    stream
}

#[test]
fn a_hundred_thousand_events_are_judged_in_bounded_memory() {
    let object: Arc<dyn Object> = find("register(0)").unwrap();
    let options = WeakOptions { calls: 100, ..WeakOptions::default() };
    for (id, lag) in [
        ("return-value", 3),
        ("read-my-writes", 3),
        ("monotonic-reads", 3),
        ("causal-convergence", 3),
        // Every completed write is seen.
        ("happens-before-visibility", 1),
    ] {
        let stream = replicated(50_000, 4, lag, &mut Chance(5));
        assert_eq!(stream.len(), 100_000);
        let model = ObjectModel::named(id).unwrap();
        let (mut calls, mut states) = (0, 0);
        let ended = online(&stream, &object, &model, options.clone(), |_, judge| {
            calls = calls.max(judge.size().calls);
            states = states.max(judge.size().states);
        });
        println!("{id}: {ended:?}, at most {calls} calls and {states} states");
        assert_eq!(ended, Ended::Never, "{id}");
        assert!(calls <= 200 && states <= 200, "{id}: {calls} calls, {states} states");
    }
}

#[test]
fn a_wrong_return_late_in_a_long_stream_is_found() {
    let object: Arc<dyn Object> = find("register(0)").unwrap();
    let options = WeakOptions { calls: 100, ..WeakOptions::default() };
    let mut stream = replicated(5_000, 4, 1, &mut Chance(6));
    // A session does not see its own write.
    stream.push(Event::Invoke(0, "write", vec![Value::Int(100)]));
    stream.push(Event::Return(0, None));
    stream.push(Event::Invoke(1, "write", vec![Value::Int(101)]));
    stream.push(Event::Return(1, None));
    stream.push(Event::Invoke(0, "read", vec![]));
    stream.push(Event::Return(0, Some(Value::Int(3))));
    let last = stream.len() - 1;
    for id in ["read-my-writes", "causal-convergence", "happens-before-visibility"] {
        let model = ObjectModel::named(id).unwrap();
        let ended = online(&stream, &object, &model, options.clone(), |_, _| {});
        assert_eq!(ended, Ended::Violation(last), "{id}");
    }
    // A value that was never written has no explanation in any model.
    stream[last] = Event::Return(0, Some(Value::Int(7_000)));
    for id in ["return-value", "monotonic-reads"] {
        let model = ObjectModel::named(id).unwrap();
        let ended = online(&stream, &object, &model, options.clone(), |_, _| {});
        assert_eq!(ended, Ended::Violation(last), "{id}");
    }
}

#[test]
fn all_small_streams_of_a_queue() {
    let calls = [
        ("enqueue", vec![Value::Int(1)], vec![None]),
        ("dequeue", vec![], vec![Some(Value::Null), Some(Value::Int(1))]),
    ];
    let object = find("queue").unwrap();
    let models = weak_models();
    let options = WeakOptions { states: 0, ..WeakOptions::default() };
    let (mut count, mut violations) = (0, 0);
    all_streams(&calls, 3, 2, &mut Vec::new(), &mut vec![None; 2], &mut |stream| {
        count += 1;
        for model in &models {
            let ended = agree(stream, &object, model, &options);
            violations += usize::from(matches!(ended, Ended::Violation(_)));
        }
    });
    println!("{count} streams, {violations} violations");
    assert!(count > 1000 && violations > 1000, "{count}, {violations}");
}

/// Returns the starts and returns of a complete record as events: `(time, is_end, call)`.
fn in_time(calls: &[Recorded]) -> Vec<(i64, bool, usize)> {
    let mut events = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let time = call.time.unwrap();
        events.push((time.start, false, at));
        events.extend(time.end.map(|end| (end, true, at)));
    }
    events.sort_unstable();
    events
}

/// Times of complete calls may coincide: then calls of different sessions overlap, and calls of one
/// session do not.
#[test]
fn complete_calls_whose_times_coincide() {
    let rounds = std::env::var("CONSISTORY_ROUNDS").map_or(300, |n| n.parse().unwrap());
    let mut chance = Chance(13);
    let (mut fine, mut wrong) = (0, 0);
    for name in ["register", "queue", "keyed map", "counter"] {
        let object = find(name.strip_prefix("keyed ").unwrap_or(name)).unwrap();
        for _ in 0..rounds {
            let shape = Shape {
                operations: 3 + chance.below(3),
                sessions: 1 + chance.below(3),
                is_timed: true,
                pending: [0, 4][chance.below(2)],
                wrong: [0, 3][chance.below(2)],
            };
            let calls = crate::common::random(&*object, name, shape, &mut chance);
            let history = crate::common::history(&calls);
            let task = Task::new(Calls::new(&history).unwrap(), Arc::clone(&object)).unwrap();
            for model in weak_models() {
                let expected = judge_object(&task, &model, &Options::default());
                let mut judge =
                    WeakOnline::new(Arc::clone(&object), &model, WeakOptions::default());
                let mut running: Vec<Option<RunningId>> = vec![None; calls.len()];
                let found = in_time(&calls).into_iter().any(|(time, is_end, at)| {
                    let call = &calls[at];
                    if is_end {
                        let id = running[at].unwrap();
                        return judge.complete(id, call.returns.clone(), time).unwrap().is_some();
                    }
                    let session = format!("t{}", call.session);
                    let id = judge.invoke(&session, &call.method, call.args.clone(), time).unwrap();
                    running[at] = Some(id);
                    if call.time.unwrap().end.is_none() {
                        judge.abandon(id).unwrap();
                    }
                    false
                });
                let verdict = expected.judgement.verdict();
                assert_eq!(
                    found,
                    verdict == Verdict::Violation,
                    "{}:\n{}",
                    model.id,
                    crate::common::shown(&history)
                );
                match found {
                    true => wrong += 1,
                    false => fine += 1,
                }
            }
        }
    }
    println!("{fine} consistent, {wrong} violations");
    assert!(fine > 1000 && wrong > 500, "{fine}, {wrong}");
}

/// Linearizable streams satisfy every model, whatever the engines can hold.
#[test]
fn long_linearizable_streams_satisfy_every_model() {
    for object in [SharedObject::Register, SharedObject::Queue, SharedObject::Set] {
        let workload = ObjectWorkload {
            operations: 3000,
            sessions: 4,
            read_share: 0.6,
            pending_share: 0.002,
            ..workload(object, 3)
        };
        let history = generate_calls(&workload);
        for model in weak_models() {
            let options = WeakOptions {
                calls: 100,
                budget: Budget::unlimited().with_time(Duration::from_millis(50)),
                ..WeakOptions::default()
            };
            let mut judge = WeakOnline::new(find(object.name()).unwrap(), &model, options);
            let mut running: BTreeMap<OpId, RunningId> = BTreeMap::new();
            let (mut kept, mut states) = (0, 0);
            for (time, is_end, op) in events(&history) {
                let (method, args, returns) = values(&history, op);
                if is_end {
                    let found = judge.complete(running[&op], returns, time);
                    assert_eq!(found, Ok(None), "{object}, {}", model.id);
                } else {
                    let session = history.session_name(history.session_of(op));
                    let id = judge.invoke(session, method, args, time).unwrap();
                    running.insert(op, id);
                    if history.time(op).unwrap().end.is_none() {
                        judge.abandon(id).unwrap();
                    }
                }
                kept = kept.max(judge.size().calls);
                states = states.max(judge.size().states);
            }
            println!("{object}, {}: at most {kept} calls and {states} states", model.id);
            // A window that cannot be divided is dropped at twice the limit.
            assert!(kept <= 2 * 100 + 10, "{object}, {}: {kept}", model.id);
        }
    }
}

/// Calls that fail are not kept, and explanations survive their removal.
#[test]
fn calls_that_fail_are_removed() {
    let object: Arc<dyn Object> = find("register(0)").unwrap();
    let model = ObjectModel::named("monotonic-reads").unwrap();
    let mut chance = Chance(17);
    let mut stream = Vec::new();
    for event in replicated(300, 3, 2, &mut chance) {
        if matches!(event, Event::Invoke(..)) {
            for _ in 0..3 {
                stream.push(Event::Invoke(3, "write", vec![Value::Int(50)]));
                stream.push(Event::Fail(3));
            }
        }
        stream.push(event);
    }
    let ended = online(&stream, &object, &model, WeakOptions::default(), |_, judge| {
        assert!(judge.size().calls <= 301);
    });
    assert_eq!(ended, Ended::Never);
    // The value of a call that failed was never written.
    stream.push(Event::Invoke(0, "read", vec![]));
    stream.push(Event::Return(0, Some(Value::Int(50))));
    let last = stream.len() - 1;
    let ended = online(&stream, &object, &model, WeakOptions::default(), |_, _| {});
    assert_eq!(ended, Ended::Violation(last));
}

/// A stale read is found although its session need not see any of many later writes.
#[test]
fn many_writes_that_need_not_be_seen_are_no_obstacle() {
    let object: Arc<dyn Object> = find("register").unwrap();
    let mut stream = Vec::new();
    let mut call = |session, method, args: Vec<Value>, value: Option<Value>| {
        stream.push(Event::Invoke(session, method, args));
        stream.push(Event::Return(session, value));
    };
    call(0, "write", vec![Value::Int(1)], None);
    call(1, "read", vec![], Some(Value::Int(1)));
    for i in 2..60 {
        call(0, "write", vec![Value::Int(i)], None);
    }
    call(1, "read", vec![], Some(Value::Null));
    let last = stream.len() - 1;
    for id in ["monotonic-reads", "causal-convergence"] {
        let model = ObjectModel::named(id).unwrap();
        let ended = online(&stream, &object, &model, WeakOptions::default(), |_, _| {});
        assert_eq!(ended, Ended::Violation(last), "{id}");
    }
}
