//! A history of an object's calls in the form that searches use: session, call, times and return.
//!
//! ```text
//! t0: ├── push(1) ──┤     ├─ pop() => 1 ─┤
//! t1:       ├───── push(2) ──────┤
//! t2:                        ├──── pop() …         pending: it may have taken effect or not
//! ```
//!
//! An operation that failed is left out. An operation of unknown status, or without an end in a history
//! that has times, is pending: it may have taken effect at any time after its start, or not at all, and
//! its return is unknown.
//!
//! `hb` orders an operation before every other that starts after it ends; `po` is `hb` inside a
//! session. Where two operations of one session meet (one ends at the very time at which the other
//! starts, which coarse clocks produce), the session's own order decides; between sessions they
//! overlap. In a history without times `hb` and `po` are the order of each session.

use consistory_history::{Action, CallId, History, OpId, SessionId, Status, Value, ValueId};
use rustc_hash::FxHashMap;

/// The position of an operation in [`Calls`]; operations are sorted by start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallIndex(pub u32);

impl CallIndex {
    /// Builds the position `index`.
    #[inline]
    pub fn new(index: usize) -> Self {
        debug_assert!(u32::try_from(index).is_ok());
        Self(index as u32)
    }

    /// Returns the index into a table.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The name of a method, interned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MethodId(pub u32);

/// One operation of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Id in the history.
    pub id: OpId,
    /// Session of the caller.
    pub session: SessionId,
    /// The call in the history's table.
    pub call: CallId,
    /// Method and arguments.
    pub method: MethodId,
    /// Start; `i64::MIN` in a history without times.
    pub start: i64,
    /// Return; `i64::MAX` if the operation is pending, and in a history without times.
    pub end: i64,
    /// Whether the operation is pending.
    pub is_pending: bool,
}

/// Reason why a history cannot be read as calls of an object.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallsError {
    /// An operation is a read or write of a register, not a call.
    #[error("{op} is not a call of an object")]
    NotACall {
        /// The operation's reference.
        op: String,
    },
    /// Some operations have times and others have none.
    #[error("{op} has no time, but other operations have")]
    MissingTime {
        /// The operation's reference.
        op: String,
    },
    /// An operation ends before it starts.
    #[error("{op} ends before it starts")]
    EndsBeforeStart {
        /// The operation's reference.
        op: String,
    },
    /// The history states the final value of a key, which models of objects do not support.
    #[error("the history gives the final value of {key}, which models of objects ignore")]
    FinalValue {
        /// The key.
        key: String,
    },
    /// A transaction contains several calls.
    #[error("{op} is in a transaction of several calls, which no object has")]
    InTransaction {
        /// The operation's reference.
        op: String,
    },
}

/// A history of calls.
#[derive(Clone, Debug)]
pub struct Calls<'h> {
    history: &'h History,
    operations: Vec<Operation>,
    methods: Vec<&'h str>,
    is_timed: bool,
}

impl<'h> Calls<'h> {
    /// Converts a history to calls.
    pub fn new(history: &'h History) -> Result<Self, CallsError> {
        let reference = |op| history.reference(op).to_string();
        let is_timed = history.ops().any(|op| history.time(op).is_some());
        if let Some(&(key, _)) = history.finals().first() {
            return Err(CallsError::FinalValue { key: history.key_name(key).to_owned() });
        }
        if let Some(txn) = history.first_long_transaction() {
            let op = reference(OpId(history.transaction(txn).ops.start));
            return Err(CallsError::InTransaction { op });
        }
        let mut ids: FxHashMap<&str, MethodId> = FxHashMap::default();
        let mut methods = Vec::new();
        let mut operations = Vec::with_capacity(history.len());
        for op in history.ops() {
            let Action::Call(call) = history.action(op) else {
                return Err(CallsError::NotACall { op: reference(op) });
            };
            let status = history.status(op);
            if status == Status::Fail {
                continue;
            }
            let time = history.time(op);
            if is_timed && time.is_none() {
                return Err(CallsError::MissingTime { op: reference(op) });
            }
            let start = time.map_or(i64::MIN, |t| t.start);
            let end = time.and_then(|t| t.end);
            if end.is_some_and(|end| end < start) {
                return Err(CallsError::EndsBeforeStart { op: reference(op) });
            }
            let is_pending = status == Status::Unknown || (is_timed && end.is_none());
            let name = &*history.call(call).method;
            let method = *ids.entry(name).or_insert_with(|| {
                methods.push(name);
                MethodId(methods.len() as u32 - 1)
            });
            operations.push(Operation {
                id: op,
                session: history.session_of(op),
                call,
                method,
                start,
                end: if is_pending { i64::MAX } else { end.unwrap_or(i64::MAX) },
                is_pending,
            });
        }
        // The sort is stable: operations with the same start stay in the order of the sessions and
        // of each session.
        operations.sort_by_key(|op| op.start);
        Ok(Calls { history, operations, methods, is_timed })
    }

    /// Returns the same calls with all but some operations made pending. Positions stay the same.
    pub fn relaxed(&self, has_returned: impl Fn(CallIndex) -> bool) -> Self {
        let mut calls = self.clone();
        for (i, op) in calls.operations.iter_mut().enumerate() {
            if !has_returned(CallIndex::new(i)) {
                op.is_pending = true;
                op.end = i64::MAX;
            }
        }
        calls
    }

    /// Returns some of the calls, sorted by start, with new positions.
    pub(crate) fn restricted(&self, places: &[CallIndex]) -> Self {
        let operations = places.iter().map(|&place| *self.get(place)).collect();
        Calls { operations, methods: self.methods.clone(), ..*self }
    }

    /// Returns the same calls with all of them overlapping.
    pub(crate) fn timeless(&self) -> Self {
        let mut calls = self.clone();
        calls.is_timed = true;
        for op in &mut calls.operations {
            op.start = 0;
            op.end = if op.is_pending { i64::MAX } else { 1 };
        }
        calls
    }

    /// Returns the history.
    pub fn history(&self) -> &'h History {
        self.history
    }

    /// Checks whether the history has times.
    pub fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Counts the operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Checks whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns the operations, sorted by start.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Iterates over the positions of the operations.
    pub fn places(&self) -> impl DoubleEndedIterator<Item = CallIndex> + ExactSizeIterator + use<> {
        (0..self.operations.len() as u32).map(CallIndex)
    }

    /// Returns an operation.
    #[inline]
    pub fn get(&self, place: CallIndex) -> &Operation {
        &self.operations[place.index()]
    }

    /// Returns the names of the methods; a [`MethodId`] is an index into them.
    pub fn methods(&self) -> &[&'h str] {
        &self.methods
    }

    /// Returns the name of an operation's method, as the history has it.
    pub fn method(&self, place: CallIndex) -> &'h str {
        self.methods[self.get(place).method.0 as usize]
    }

    /// Returns an operation's arguments.
    pub fn args(&self, place: CallIndex) -> &'h [ValueId] {
        &self.history.call(self.get(place).call).args
    }

    /// Returns the return value of an operation; `None` if it is pending or its return was not
    /// recorded.
    pub fn returns(&self, place: CallIndex) -> Option<ValueId> {
        let op = self.get(place);
        if op.is_pending { None } else { self.history.call(op.call).returns }
    }

    /// Returns a value.
    pub fn value(&self, id: ValueId) -> &'h Value {
        self.history.value(id)
    }

    /// Checks whether an operation of some session ends at the very time at which the next one
    /// starts, so that only the session's order determines their order.
    pub fn sessions_meet(&self) -> bool {
        let mut ends: FxHashMap<(SessionId, i64), CallIndex> = FxHashMap::default();
        self.places().any(|place| {
            let op = self.get(place);
            let meets = self.is_timed && ends.contains_key(&(op.session, op.start));
            if !op.is_pending {
                ends.insert((op.session, op.end), place);
            }
            meets
        })
    }

    /// Checks whether `a` is before `b` in `hb`.
    pub fn happens_before(&self, a: CallIndex, b: CallIndex) -> bool {
        let (x, y) = (self.get(a), self.get(b));
        (self.is_timed && !x.is_pending && x.end < y.start) || self.program_order(a, b)
    }

    /// Checks whether `a` is before `b` in `po`.
    pub fn program_order(&self, a: CallIndex, b: CallIndex) -> bool {
        let (x, y) = (self.get(a), self.get(b));
        x.session == y.session && !x.is_pending && {
            if self.is_timed { x.end < y.start || (x.end == y.start && a < b) } else { a < b }
        }
    }
}
