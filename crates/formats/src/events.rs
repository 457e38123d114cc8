//! Invocations and completions, as recorders write them, paired to calls; and calls apart again.
//!
//! A call's time is the place of its two events among all events, counting from 0, whatever clock
//! the recorder had: that is the order that it vouches for. A process has one call under way; an
//! indeterminate call leaves its process free and never returns.

use consistory_history::{
    Action, Call, Details, History, HistoryBuilder, Interval, OpId, SessionId, Status, Value,
    ValueId,
};
use rustc_hash::FxHashMap;

use crate::parse::{Line, Sink};

/// How a call ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It returned this, or nobody recorded what.
    Returned(Option<Value>),
    /// It did not take effect.
    Failed,
    /// Nobody knows.
    Unknown,
}

/// A call that was invoked.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Invocation {
    pub(crate) method: String,
    pub(crate) args: Vec<Value>,
}

/// What can't be paired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unpaired {
    /// The line of the call that is still under way, if that is what is in the way.
    pub(crate) invoked_in: Option<u64>,
}

impl Unpaired {
    /// Says what is wrong, and what to do about it.
    pub(crate) fn describe(self, process: &str) -> (String, String) {
        match self.invoked_in {
            Some(line) => (
                format!("{process} has a call under way already"),
                format!(
                    "it was invoked in line {line}; a process makes one call at a time, and ends \
                     an indeterminate one with info"
                ),
            ),
            None => (
                format!("{process} has no call under way that could end"),
                "each completion follows its process's invocation".into(),
            ),
        }
    }
}

/// Pairs events and builds a history of calls.
#[derive(Default)]
pub(crate) struct Events {
    builder: HistoryBuilder,
    sessions: FxHashMap<String, SessionId>,
    /// What each session has under way.
    under_way: Vec<Option<UnderWay>>,
    clock: i64,
}

struct UnderWay {
    invocation: Invocation,
    start: i64,
    line: u64,
}

impl Events {
    /// Takes the invocation of a call.
    pub(crate) fn invoke(
        &mut self,
        process: &str,
        invocation: Invocation,
        line: u64,
    ) -> Result<(), Unpaired> {
        let session = self.session(process);
        let slot = &mut self.under_way[session.index()];
        if let Some(earlier) = slot {
            return Err(Unpaired { invoked_in: Some(earlier.line) });
        }
        *slot = Some(UnderWay { invocation, start: self.clock, line });
        self.clock += 1;
        Ok(())
    }

    /// Takes the end of what a process has under way.
    pub(crate) fn complete(&mut self, process: &str, outcome: Outcome) -> Result<(), Unpaired> {
        let session = self.session(process);
        let Some(call) = self.under_way[session.index()].take() else {
            return Err(Unpaired { invoked_in: None });
        };
        let end = self.clock;
        self.clock += 1;
        self.push(session, call, outcome, end);
        Ok(())
    }

    /// Takes the end of the input: what is still under way never returned.
    pub(crate) fn end(&mut self, sink: &mut Sink, line: Line<'_>) {
        let mut rest: Vec<(SessionId, UnderWay)> = Vec::new();
        for (index, slot) in self.under_way.iter_mut().enumerate() {
            rest.extend(slot.take().map(|call| (SessionId::new(index), call)));
        }
        for (session, call) in rest {
            self.push(session, call, Outcome::Unknown, 0);
        }
        sink.finish(&mut self.builder, line);
    }

    fn session(&mut self, process: &str) -> SessionId {
        if let Some(&session) = self.sessions.get(process) {
            return session;
        }
        let session = self.builder.session(process);
        self.sessions.insert(process.to_owned(), session);
        self.under_way.resize_with(session.index() + 1, || None);
        session
    }

    fn push(&mut self, session: SessionId, call: UnderWay, outcome: Outcome, end: i64) {
        let UnderWay { invocation: Invocation { method, args }, start, .. } = call;
        let args = args.into_iter().map(|arg| self.builder.value(arg)).collect();
        let (status, end, returns) = match outcome {
            Outcome::Returned(value) => (Status::Ok, Some(end), value),
            Outcome::Failed => (Status::Fail, Some(end), None),
            Outcome::Unknown => (Status::Ok, None, None),
        };
        let returns: Option<ValueId> = returns.map(|value| self.builder.value(value));
        let call = self.builder.call(Call { method: method.into(), args, returns });
        let time = Some(Interval { start, end });
        let details = Details { status, time, transaction: None };
        self.builder.push_with(session, Action::Call(call), details);
    }
}

/// One event of a history's calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Event {
    pub(crate) op: OpId,
    pub(crate) kind: EventKind,
}

/// What happens to a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum EventKind {
    Invoked,
    /// It returned or failed.
    Completed,
    /// Nobody knows its end, and its process goes on.
    Abandoned,
}

/// Takes the calls of a history apart into events, in the order of their times.
///
/// At one time invocations come first, since calls that meet overlap. Fails with the operation
/// that is not a call, has no time, or overlaps an earlier call of its session.
pub(crate) fn take_apart(history: &History) -> Result<Vec<Event>, (OpId, &'static str)> {
    let mut events: Vec<(i64, EventKind, OpId)> = Vec::with_capacity(2 * history.len());
    for session in history.sessions() {
        // The session's last call: when it started, and when it ended if it did.
        let mut last: Option<(OpId, i64, Option<i64>)> = None;
        for op in history.session_ops(session) {
            if !matches!(history.action(op), Action::Call(_)) {
                return Err((op, "an operation that is not a call"));
            }
            let Some(time) = history.time(op) else { return Err((op, "a call without times")) };
            match last {
                Some((_, start, end)) if end.unwrap_or(start) >= time.start => {
                    return Err((op, "a call that overlaps one of its session"));
                }
                Some((before, _, None)) => events.push((time.start, EventKind::Abandoned, before)),
                _ => {}
            }
            let is_known = history.status(op) != Status::Unknown;
            let end = time.end.filter(|_| is_known);
            if end.is_none() && history.status(op) == Status::Fail {
                return Err((op, "a call that failed at no time"));
            }
            events.push((time.start, EventKind::Invoked, op));
            events.extend(end.map(|end| (end, EventKind::Completed, op)));
            last = Some((op, time.start, end));
        }
    }
    // What is abandoned comes right before its process's next invocation.
    let rank = |kind| match kind {
        EventKind::Abandoned => 0,
        EventKind::Invoked => 1,
        EventKind::Completed => 2,
    };
    events.sort_by_key(|&(time, kind, op)| (time, rank(kind), op));
    Ok(events.into_iter().map(|(_, kind, op)| Event { op, kind }).collect())
}
