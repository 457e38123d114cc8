//! Helpers that judge histories online, and again from the complete record.

use consistory_generate::{ObjectWorkload, SharedObject};
use consistory_history::{Action, Call, Details, History, HistoryBuilder, Interval, OpId, Value};
use consistory_objects::{
    Calls, Online, OnlineError, OnlineOptions, Options, Outcome, RunningId, Task, judge_object,
    monitor,
};
use consistory_spec::{ObjectModel, find};
use consistory_verdict::Verdict;
use rustc_hash::FxHashMap;

/// Returns the starts and ends of a history's calls in the order of time.
pub(crate) fn events(history: &History) -> Vec<(i64, bool, OpId)> {
    let mut events: Vec<(i64, bool, OpId)> = Vec::new();
    for op in history.ops() {
        let time = history.time(op).unwrap();
        events.push((time.start, false, op));
        events.extend(time.end.map(|end| (end, true, op)));
    }
    events.sort_unstable();
    events
}

pub(crate) fn values(history: &History, op: OpId) -> (&str, Vec<Value>, Option<Value>) {
    let Action::Call(call) = history.action(op) else { panic!("a history of calls") };
    let call = history.call(call);
    let value = |&id: &_| history.value(id).clone();
    (&call.method, call.args.iter().map(value).collect(), call.returns.as_ref().map(value))
}

/// Judges a history online; returns the first operation whose return nothing explains. That a call
/// does not return is recorded some events later, or never.
pub(crate) fn watch_until(
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

pub(crate) fn called(running: &FxHashMap<OpId, RunningId>, id: RunningId) -> OpId {
    *running.iter().find(|(_, known)| **known == id).expect("it was called").0
}

/// Finds the first return at which the recorded prefix is not linearizable.
pub(crate) fn check(history: &History, object: &str) -> Option<OpId> {
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

/// Finds the same return by the polynomial decider.
pub(crate) fn decide(history: &History, object: &str) -> Option<OpId> {
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

/// Returns the prefix recorded up to a time.
pub(crate) fn prefix(history: &History, now: i64) -> History {
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

pub(crate) fn workload(object: SharedObject, seed: u64) -> ObjectWorkload {
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
