//! A history as the calls of an object, as the checker sees it.

use std::collections::{HashMap, HashSet};

use consistory_history::{Action, History, OpId, SessionId, Status, Value};
use consistory_spec::{Object, Returns, State};

use super::ObjectRejection;

/// A call that counts.
#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) op: OpId,
    pub(crate) session: SessionId,
    /// Its place in its session.
    pub(crate) index: u32,
    pub(crate) method: Box<str>,
    pub(crate) args: Vec<Value>,
    /// What it has to return; `None` if anything will do.
    pub(crate) returns: Option<Value>,
    /// When it started; `None` in a history without times.
    pub(crate) start: Option<i64>,
    /// When it ended; `None` in a history without times or if it is pending.
    pub(crate) end: Option<i64>,
    pub(crate) is_pending: bool,
}

pub(crate) struct View<'a> {
    pub(crate) history: &'a History,
    pub(crate) object: &'a dyn Object,
    pub(crate) events: Vec<Event>,
    at: HashMap<OpId, usize>,
    is_timed: bool,
}

impl<'a> View<'a> {
    pub(crate) fn new(
        history: &'a History,
        object: &'a dyn Object,
    ) -> Result<Self, ObjectRejection> {
        let wrong = |op: OpId, reason: &str| ObjectRejection::History {
            reason: format!("{} {reason}", history.reference(op)),
        };
        let is_timed = history.ops().any(|op| history.time(op).is_some());
        let mut events = Vec::new();
        for op in history.ops() {
            let Action::Call(call) = history.action(op) else {
                return Err(wrong(op, "is no call"));
            };
            if history.transaction_of(op).is_some_and(|t| history.transaction(t).ops.len() > 1) {
                return Err(wrong(op, "is in a transaction"));
            }
            let status = history.status(op);
            if status == Status::Fail {
                continue;
            }
            let time = history.time(op);
            if is_timed && time.is_none() {
                return Err(wrong(op, "has no time"));
            }
            let (start, end) = (time.map(|t| t.start), time.and_then(|t| t.end));
            if let (Some(start), Some(end)) = (start, end)
                && end < start
            {
                return Err(wrong(op, "ends before it starts"));
            }
            let is_pending = status == Status::Unknown || (is_timed && end.is_none());
            let call = history.call(call);
            let args: Vec<Value> = call.args.iter().map(|&a| history.value(a).clone()).collect();
            let method = object
                .resolve(&call.method, args.len())
                .map_err(|error| wrong(op, &error.to_string()))?;
            let recorded = call.returns.filter(|_| !is_pending).map(|r| history.value(r).clone());
            let returns = match (method.map(|m| m.returns), recorded) {
                (Some(Returns::Nothing), _) => None,
                (Some(Returns::Unordered), Some(Value::List(mut list))) => {
                    list.sort();
                    Some(Value::List(list))
                }
                (_, recorded) => recorded,
            };
            events.push(Event {
                op,
                session: history.session_of(op),
                index: history.index_in_session(op),
                method: method.map_or_else(|| call.method.clone(), |m| m.name.clone()),
                args,
                returns,
                start,
                end: end.filter(|_| !is_pending),
                is_pending,
            });
        }
        let at = events.iter().enumerate().map(|(i, event)| (event.op, i)).collect();
        Ok(View { history, object, events, at, is_timed })
    }

    /// Gives the number of an operation that counts.
    pub(crate) fn find(&self, part: &'static str, op: OpId) -> Result<usize, ObjectRejection> {
        self.at.get(&op).copied().ok_or_else(|| {
            let known = op.index() < self.history.len();
            let op = if known { self.name_of(op) } else { format!("#{}", op.0) };
            ObjectRejection::Misplaced { part, op }
        })
    }

    pub(crate) fn name(&self, event: usize) -> String {
        self.name_of(self.events[event].op)
    }

    fn name_of(&self, op: OpId) -> String {
        self.history.reference(op).to_string()
    }

    /// Says whether one operation is before another in `po`.
    pub(crate) fn program_order(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.events[a], &self.events[b]);
        if x.session != y.session || x.is_pending {
            return false;
        }
        match (x.end, y.start) {
            (Some(end), Some(start)) => {
                end < start || (end == start && (x.start < y.start || x.index < y.index))
            }
            _ => !self.is_timed && x.index < y.index,
        }
    }

    /// Says whether one operation is before another in `hb`.
    pub(crate) fn happens_before(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.events[a], &self.events[b]);
        matches!((x.end, y.start), (Some(end), Some(start)) if end < start)
            || self.program_order(a, b)
    }

    pub(crate) fn invoke(&self, state: &mut State, event: usize) -> Option<Value> {
        let Event { method, args, .. } = &self.events[event];
        self.object.invoke(state, method, args)
    }

    /// Performs an operation that another one sees; one that changes no state leaves no trace. Says
    /// whether it is possible.
    pub(crate) fn see(&self, state: &mut State, event: usize) -> bool {
        self.object.is_read_only(&self.events[event].method, None)
            || self.invoke(state, event).is_some()
    }

    /// Performs an operation; says whether it can return what it did.
    pub(crate) fn perform(&self, state: &mut State, event: usize) -> bool {
        match (self.invoke(state, event), &self.events[event].returns) {
            (Some(found), Some(recorded)) => found == *recorded,
            (found, _) => found.is_some(),
        }
    }

    /// Makes all operations pending but some, which must have returned.
    pub(crate) fn relaxed(&self, returned: &[OpId]) -> Result<View<'a>, ObjectRejection> {
        let mut kept = HashSet::new();
        for &op in returned {
            let event = self.find("returned", op)?;
            if self.events[event].is_pending || !kept.insert(event) {
                let op = self.name(event);
                return Err(ObjectRejection::Misplaced { part: "returned", op });
            }
        }
        let mut events = self.events.clone();
        for (i, event) in events.iter_mut().enumerate().filter(|(i, _)| !kept.contains(i)) {
            debug_assert!(!kept.contains(&i));
            event.is_pending = true;
            event.returns = None;
            event.end = None;
        }
        let View { history, object, is_timed, .. } = *self;
        Ok(View { history, object, events, at: self.at.clone(), is_timed })
    }

    /// Lists the operations that returned at certain times.
    pub(crate) fn ended(&self, at: impl Fn(Option<i64>) -> bool) -> Vec<OpId> {
        let ended = self.events.iter().filter(|event| event.end.is_some() && at(event.end));
        ended.map(|event| event.op).collect()
    }

    /// Lists the operations that something may depend on.
    pub(crate) fn relevant(&self) -> Vec<usize> {
        let completed = || self.events.iter().filter(|event| !event.is_pending);
        let last_end = completed().filter_map(|event| event.end).max();
        let part = |event: &Event| self.object.part(&event.method, &event.args);
        // Only if every call is confined to a part is a part an object of its own.
        let all_have_parts = self.events.iter().all(|event| part(event).is_some());
        let parts: HashSet<Option<Value>> = completed().map(part).collect();
        let is_too_late = |event: &Event| self.is_timed && event.start > last_end;
        let is_elsewhere = |event: &Event| all_have_parts && !parts.contains(&part(event));
        let matters = |event: &Event| {
            let is_reader = self.object.is_read_only(&event.method, None);
            !event.is_pending || !(is_reader || is_too_late(event) || is_elsewhere(event))
        };
        (0..self.events.len()).filter(|&i| matters(&self.events[i])).collect()
    }
}
