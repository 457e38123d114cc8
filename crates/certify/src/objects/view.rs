//! A history as calls of an object, as the checker represents it.

use std::collections::{HashMap, HashSet};

use consistory_history::{Action, History, OpId, SessionId, Status, Value};
use consistory_spec::{Object, Returns, State};
use consistory_verdict::Budget;

use super::ObjectRejection;
use super::knowledge::{Called, Ready};

/// A call that counts.
#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) op: OpId,
    pub(crate) session: SessionId,
    /// Position in its session.
    pub(crate) index: u32,
    pub(crate) method: Box<str>,
    pub(crate) args: Vec<Value>,
    /// Return value that the call must have; `None` if any value is allowed.
    pub(crate) returns: Option<Value>,
    /// Start time; `None` in a history without times.
    pub(crate) start: Option<i64>,
    /// End time; `None` in a history without times or if the call is pending.
    pub(crate) end: Option<i64>,
    pub(crate) is_pending: bool,
}

pub(crate) struct View<'a> {
    pub(crate) history: &'a History,
    pub(crate) object: &'a dyn Object,
    /// The checker's own knowledge about the object; `None` if it has none.
    pub(crate) ready: Option<Ready>,
    pub(crate) events: Vec<Event>,
    at: HashMap<OpId, usize>,
    is_timed: bool,
}

/// Operations between two checks of the budget.
const OPS_PER_CHECK: u32 = 1 << 15;

impl<'a> View<'a> {
    pub(crate) fn new(
        history: &'a History,
        object: &'a dyn Object,
        budget: &Budget,
    ) -> Result<Self, ObjectRejection> {
        let wrong = |op: OpId, reason: &str| ObjectRejection::History {
            reason: format!("{} {reason}", history.reference(op)),
        };
        let is_timed = history.ops().any(|op| history.time(op).is_some());
        let mut events = Vec::new();
        for op in history.ops() {
            if op.0.is_multiple_of(OPS_PER_CHECK) {
                budget.check()?;
            }
            let Action::Call(call) = history.action(op) else {
                return Err(wrong(op, "is not a call"));
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
        Ok(View { history, object, ready: Ready::recognise(object), events, at, is_timed })
    }

    /// Returns an operation as a call with its return.
    pub(crate) fn called(&self, event: usize) -> Called<'_> {
        let Event { method, args, returns, .. } = &self.events[event];
        Called { method, args, returns: returns.as_ref() }
    }

    /// Returns the number of an operation that counts.
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

    /// Checks whether one operation is before another in `po`.
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

    /// Checks whether one operation is before another in `hb`.
    pub(crate) fn happens_before(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.events[a], &self.events[b]);
        matches!((x.end, y.start), (Some(end), Some(start)) if end < start)
            || self.program_order(a, b)
    }

    pub(crate) fn invoke(&self, state: &mut State, event: usize) -> Option<Value> {
        let Event { method, args, .. } = &self.events[event];
        self.object.invoke(state, method, args)
    }

    /// Performs an operation that another one sees, and returns whether that is possible.
    ///
    /// A method that is declared to read counts as possible in every state. If the checker does
    /// not know the object, a call of such a method keeps its effect where it is possible.
    pub(crate) fn see(&self, state: &mut State, event: usize) -> bool {
        let reads = self.object.is_read_only(&self.events[event].method, None);
        if !reads {
            return self.invoke(state, event).is_some();
        }
        if self.ready.is_none() {
            let mut after = state.clone();
            if self.invoke(&mut after, event).is_some() {
                *state = after;
            }
        }
        true
    }

    /// Performs an operation and checks whether it returns the recorded value.
    pub(crate) fn perform(&self, state: &mut State, event: usize) -> bool {
        match (self.invoke(state, event), &self.events[event].returns) {
            (Some(found), Some(recorded)) => found == *recorded,
            (found, _) => found.is_some(),
        }
    }

    /// Makes all operations pending except the given ones, which must have returned.
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
        for (_, event) in events.iter_mut().enumerate().filter(|(i, _)| !kept.contains(i)) {
            event.is_pending = true;
            event.returns = None;
            event.end = None;
        }
        let View { history, object, is_timed, .. } = *self;
        let (ready, at) = (self.ready.clone(), self.at.clone());
        Ok(View { history, object, ready, events, at, is_timed })
    }

    /// Makes all operations pending that did not return by the last return of the given ones;
    /// `None` if the history has no times.
    pub(crate) fn until_last_of(
        &self,
        returned: &[OpId],
    ) -> Result<Option<View<'a>>, ObjectRejection> {
        let mut last = None;
        for &op in returned {
            last = last.max(self.events[self.find("returned", op)?].end);
        }
        let ended = self.ended(|end| end <= last);
        if last.is_none() { Ok(None) } else { self.relaxed(&ended).map(Some) }
    }

    /// Lists the operations whose end time satisfies a predicate.
    pub(crate) fn ended(&self, at: impl Fn(Option<i64>) -> bool) -> Vec<OpId> {
        let ended = self.events.iter().filter(|event| event.end.is_some() && at(event.end));
        ended.map(|event| event.op).collect()
    }

    /// Lists the operations that may matter to a completed one.
    ///
    /// The list omits pending operations that were called after the last return and, for a ready
    /// object, operations that only read and operations that are confined to parts of the object
    /// that no completed operation uses.
    pub(crate) fn relevant(&self) -> Vec<usize> {
        let completed = || self.events.iter().filter(|event| !event.is_pending);
        let last_end = completed().filter_map(|event| event.end).max();
        let is_too_late = |event: &Event| self.is_timed && event.start > last_end;
        let ready = self.ready.as_ref();
        // A part is an object of its own only if every call is confined to a part.
        let all_have_parts = self.events.iter().all(|event| part_of(ready, event).is_some());
        let parts: HashSet<Option<&Value>> = completed().map(|e| part_of(ready, e)).collect();
        let is_elsewhere =
            |event: &Event| all_have_parts && !parts.contains(&part_of(ready, event));
        let is_reader =
            |event: &Event| ready.is_some() && self.object.is_read_only(&event.method, None);
        let matters = |event: &Event| {
            !event.is_pending || !(is_too_late(event) || is_reader(event) || is_elsewhere(event))
        };
        (0..self.events.len()).filter(|&i| matters(&self.events[i])).collect()
    }

    /// Returns for each operation whether it is declared not to change any state in which it
    /// returns its recorded value. `returns` selects whether the return value is considered.
    pub(crate) fn declared_readers(&self, returns: Considered) -> Vec<bool> {
        let is_reader = |event: &Event| {
            let returned = event.returns.as_ref().filter(|_| returns == Considered::Return);
            self.object.is_read_only(&event.method, returned)
        };
        self.events.iter().map(is_reader).collect()
    }
}

/// Information about an operation that decides whether it only reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Considered {
    /// Its method.
    Method,
    /// Its method and its return.
    Return,
}

fn part_of<'e>(ready: Option<&Ready>, event: &'e Event) -> Option<&'e Value> {
    ready?.part(&event.method, &event.args)
}
