//! Pairs the invocations and completions of a recording to calls, and splits calls into events.
//!
//! The times of a call are the indices of its two events among all events, whatever clock the
//! recorder had, because this is the order in which they were recorded. A process has at most one
//! pending call; an indeterminate call does not block its process and never returns.

use consistory_history::{
    Action, Call, Details, History, HistoryBuilder, Interval, OpId, SessionId, Status, Value,
    ValueId,
};
use rustc_hash::FxHashMap;

use crate::parse::{Line, Sink};

/// The outcome of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// The call returned this value; `None` if the value was not recorded.
    Returned(Option<Value>),
    /// The call did not take effect.
    Failed,
    /// The outcome is unknown.
    Unknown,
}

/// A call that was invoked.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Invocation {
    pub(crate) method: String,
    pub(crate) args: Vec<Value>,
}

/// Error: an event that cannot be paired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unpaired {
    /// Line of the pending call that conflicts with an invocation; `None` for a completion without
    /// a call.
    pub(crate) invoked_in: Option<u64>,
}

impl Unpaired {
    /// Returns an error message and a hint.
    pub(crate) fn describe(self, process: &str) -> (String, String) {
        match self.invoked_in {
            Some(line) => (
                format!("{process} already has a pending call"),
                format!(
                    "it was invoked in line {line}; a process makes one call at a time, and ends \
                     an indeterminate one with info"
                ),
            ),
            None => (
                format!("{process} has no pending call to complete"),
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
    /// Pending call of each session.
    under_way: Vec<Option<UnderWay>>,
    clock: i64,
}

struct UnderWay {
    invocation: Invocation,
    start: i64,
    line: u64,
}

impl Events {
    /// Adds the invocation of a call.
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

    /// Adds the completion of a process's pending call.
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

    /// Ends the input: calls that are still pending never returned.
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

/// Kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum EventKind {
    Invoked,
    /// The call returned or failed.
    Completed,
    /// The outcome is unknown, and the process makes another call.
    Abandoned,
}

/// Splits the calls of a history into events, in the order of their times.
///
/// At equal times invocations come first, since calls that meet overlap. Fails with an operation
/// that is not a call, has no time, or overlaps an earlier call of its session.
pub(crate) fn take_apart(history: &History) -> Result<Vec<Event>, (OpId, &'static str)> {
    let mut events: Vec<(i64, EventKind, OpId)> = Vec::with_capacity(2 * history.len());
    for session in history.sessions() {
        // Last call of the session, with its start and, if it ended, its end.
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
    // An abandoned call is recorded right before the next invocation of its process.
    let rank = |kind| match kind {
        EventKind::Abandoned => 0,
        EventKind::Invoked => 1,
        EventKind::Completed => 2,
    };
    events.sort_by_key(|&(time, kind, op)| (time, rank(kind), op));
    Ok(events.into_iter().map(|(_, kind, op)| Event { op, kind }).collect())
}
