//! Building a history, operation by operation.

use rustc_hash::FxHashMap;

use crate::history::{Action, Call, History, Interval, KeyKind, Names, Status, Transaction};
use crate::ids::{CallId, KeyId, SessionId, ValueId};
use crate::value::{Value, Values};

/// Reasons why a sequence of operations is not a history.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HistoryError {
    /// A transaction is interrupted by another operation of its session, or spans sessions.
    #[error("the operations of a transaction of session {session} are not consecutive")]
    SplitTransaction {
        /// The session in which the transaction started.
        session: Box<str>,
    },
    /// The initial value of a list is not a list.
    #[error("the key {key} is appended to, but its initial value {value} is not a list")]
    ListStartsAsValue {
        /// The key.
        key: Box<str>,
        /// Its initial value.
        value: Value,
    },
    /// There are more operations and keys than ids.
    #[error("a history holds at most 4294967295 operations and keys")]
    TooLarge,
    /// The caller asked to stop.
    #[error("it was stopped")]
    Stopped,
}

/// A transaction under construction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OpenTransaction(u32);

/// Status, time and transaction of an operation.
#[derive(Clone, Copy, Default, Debug)]
pub struct Details {
    /// Whether the operation took effect.
    pub status: Status,
    /// Time in which the operation ran.
    pub time: Option<Interval>,
    /// Transaction to which the operation belongs.
    pub transaction: Option<OpenTransaction>,
}

/// Builds a [`History`] from operations in any interleaving of the sessions.
#[derive(Debug, Default)]
pub struct HistoryBuilder {
    name: Option<Box<str>>,
    session_names: Names,
    session_of: Vec<SessionId>,
    actions: Vec<Action>,
    statuses: Vec<Status>,
    times: Vec<Option<Interval>>,
    /// The open transaction of each operation, empty while there are none.
    transaction_of: Vec<Option<OpenTransaction>>,
    transaction_statuses: Vec<Status>,
    calls: Vec<Call>,
    keys: Names,
    initial: FxHashMap<KeyId, ValueId>,
    finals: Vec<(KeyId, ValueId)>,
    values: Values,
    /// Whether a register that ever contains 0 starts with `null` unless its initial value is set.
    null_is_not_zero: bool,
}

impl HistoryBuilder {
    /// Returns a builder of an empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the history.
    pub fn set_name(&mut self, name: &str) {
        self.name = Some(name.into());
    }

    /// Returns a session's id, adding the session if it is new.
    pub fn session(&mut self, name: &str) -> SessionId {
        SessionId(self.session_names.intern(name))
    }

    /// Returns a key's id, adding the key if it is new.
    pub fn key(&mut self, name: &str) -> KeyId {
        KeyId(self.keys.intern(name))
    }

    /// Returns a value's id, adding the value if it is new.
    pub fn value(&mut self, value: Value) -> ValueId {
        self.values.intern(value)
    }

    /// Returns a value's id, adding a copy of the value if it is new.
    pub fn value_copy(&mut self, value: &Value) -> ValueId {
        self.values.intern_copy(value)
    }

    /// Returns an integer's id, adding it if it is new.
    pub fn int(&mut self, value: i64) -> ValueId {
        self.values.intern_int(value)
    }

    /// Adds an object's call, to be pushed as [`Action::Call`].
    pub fn call(&mut self, call: Call) -> CallId {
        self.calls.push(call);
        CallId::new(self.calls.len() - 1)
    }

    /// Sets a key's initial value. The default is the integer 0 for a register and the empty list
    /// for a list.
    pub fn set_initial(&mut self, key: KeyId, value: ValueId) {
        self.initial.insert(key, value);
    }

    /// Declares that the source writes `null` for the value of a key that was never written, so
    /// that 0 is an ordinary value: a register with 0 in some operation starts with `null` unless
    /// its initial value is set.
    pub fn null_is_not_zero(&mut self) {
        self.null_is_not_zero = true;
    }

    /// Records the final value of a key.
    pub fn set_final(&mut self, key: KeyId, value: ValueId) {
        self.finals.push((key, value));
    }

    /// Opens a transaction; it counts as committed until its status is set.
    pub fn begin_transaction(&mut self) -> OpenTransaction {
        self.transaction_statuses.push(Status::Ok);
        OpenTransaction(self.transaction_statuses.len() as u32 - 1)
    }

    /// Sets the status of a transaction.
    pub fn set_transaction_status(&mut self, transaction: OpenTransaction, status: Status) {
        self.transaction_statuses[transaction.0 as usize] = status;
    }

    /// Adds the next operation of a session.
    #[inline]
    pub fn push(&mut self, session: SessionId, action: Action) {
        self.push_with(session, action, Details::default());
    }

    /// Adds the next operation of a session, with its status, time and transaction.
    pub fn push_with(&mut self, session: SessionId, action: Action, details: Details) {
        let at = self.actions.len();
        self.session_of.push(session);
        self.actions.push(action);
        extend_sparse(&mut self.statuses, at, details.status);
        extend_sparse(&mut self.times, at, details.time);
        extend_sparse(&mut self.transaction_of, at, details.transaction);
    }

    /// Counts the operations so far.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Checks whether nothing was added: no session, no initial value and no operation.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.session_names.len() == 0 && self.keys.len() == 0
    }

    /// Builds the history.
    pub fn finish(self) -> Result<History, HistoryError> {
        self.finish_while(&mut || true)
    }

    /// Builds the history; fails with [`HistoryError::Stopped`] as soon as a function, which is
    /// called again and again, returns `false`.
    pub fn finish_while(
        mut self,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<History, HistoryError> {
        if u32::try_from(self.actions.len() + self.keys.len() + 1).is_err() {
            return Err(HistoryError::TooLarge);
        }
        let sessions = self.session_names.len();
        let mut session_starts = vec![0u32; sessions + 1];
        for session in &self.session_of {
            session_starts[session.index() + 1] += 1;
        }
        for s in 0..sessions {
            session_starts[s + 1] += session_starts[s];
        }
        if !self.session_of.is_sorted() {
            self.group_by_session(&session_starts, goes_on)?;
        }
        let key_kinds = self.key_kinds();
        let initial = self.initial_values(&key_kinds)?;
        if !goes_on() {
            return Err(HistoryError::Stopped);
        }
        self.resolve_nulls(&initial);
        let transactions = self.transactions()?;
        Ok(History {
            name: self.name,
            session_names: self.session_names,
            session_starts,
            session_of: self.session_of,
            actions: self.actions,
            statuses: self.statuses,
            times: self.times,
            transactions,
            calls: self.calls,
            keys: self.keys,
            key_kinds,
            initial,
            finals: self.finals,
            values: self.values,
        })
    }

    /// Determines the kind of each key; the table is empty if all keys are registers.
    fn key_kinds(&self) -> Vec<KeyKind> {
        #[derive(Clone, Copy, Default)]
        struct Seen {
            written: bool,
            appended: bool,
            list_read: bool,
        }
        let has_appends = self.actions.iter().any(|a| matches!(a, Action::Append { .. }));
        if !has_appends && !self.values.has_lists() {
            return Vec::new();
        }
        let mut seen = vec![Seen::default(); self.keys.len()];
        for action in &self.actions {
            match *action {
                Action::Write { key, .. } | Action::Rmw { key, .. } => {
                    seen[key.index()].written = true;
                }
                Action::Append { key, .. } => seen[key.index()].appended = true,
                Action::Read { key, value } => {
                    let is_list = matches!(self.values.get(value), Value::List(_));
                    seen[key.index()].list_read |= is_list;
                }
                Action::Fence | Action::Call(_) => {}
            }
        }
        // The kind of a key that is only read follows from its initial value; without one, it may
        // be a list.
        let may_start_as_list = |key: usize| match self.initial.get(&KeyId::new(key)) {
            None => true,
            Some(&value) => matches!(self.values.get(value), Value::Null | Value::List(_)),
        };
        let kind = |(key, seen): (usize, &Seen)| match (seen.written, seen.appended) {
            (true, true) => KeyKind::Mixed,
            (false, true) => KeyKind::List,
            (false, false) if seen.list_read && may_start_as_list(key) => KeyKind::List,
            _ => KeyKind::Register,
        };
        let kinds: Vec<KeyKind> = seen.iter().enumerate().map(kind).collect();
        if kinds.iter().all(|&kind| kind == KeyKind::Register) { Vec::new() } else { kinds }
    }

    /// Returns the initial value of each key: the value that was set, or else 0, or the empty list.
    ///
    /// A list that was set to `null` starts empty; any other value that is not a list is an error.
    fn initial_values(&mut self, key_kinds: &[KeyKind]) -> Result<Vec<ValueId>, HistoryError> {
        let zero = self.values.intern_int(0);
        let mut initial = vec![zero; self.keys.len()];
        if self.null_is_not_zero {
            let null = self.values.intern(Value::Null);
            for action in &self.actions {
                match *action {
                    Action::Read { key, value } | Action::Write { key, value } if value == zero => {
                        initial[key.index()] = null;
                    }
                    Action::Rmw { key, read, write } if read == zero || write == zero => {
                        initial[key.index()] = null;
                    }
                    _ => {}
                }
            }
        }
        for (&key, &value) in &self.initial {
            initial[key.index()] = value;
        }
        if key_kinds.is_empty() {
            return Ok(initial);
        }
        let empty = self.values.intern(Value::List(Vec::new()));
        for (key, &kind) in key_kinds.iter().enumerate() {
            if kind == KeyKind::Register {
                continue;
            }
            let set = self.initial.get(&KeyId::new(key)).map(|&id| self.values.get(id));
            match set {
                None | Some(Value::Null) => initial[key] = empty,
                Some(Value::List(_)) => {}
                Some(_) if kind == KeyKind::Mixed => {}
                Some(value) => {
                    let key = self.keys.get(key as u32).into();
                    return Err(HistoryError::ListStartsAsValue { key, value: value.clone() });
                }
            }
        }
        Ok(initial)
    }

    /// Replaces `null` by the key's initial value in all operations on registers and lists.
    fn resolve_nulls(&mut self, initial: &[ValueId]) {
        let Some(null) = self.values.find(&Value::Null) else { return };
        let resolve = |key: KeyId, value: &mut ValueId| {
            if *value == null {
                *value = initial[key.index()];
            }
        };
        for action in &mut self.actions {
            match action {
                Action::Read { key, value } | Action::Write { key, value } => resolve(*key, value),
                Action::Rmw { key, read, write } => {
                    resolve(*key, read);
                    resolve(*key, write);
                }
                // `null` is an ordinary value as an element of a list.
                Action::Append { .. } | Action::Fence | Action::Call(_) => {}
            }
        }
        for (key, value) in &mut self.finals {
            resolve(*key, value);
        }
    }

    /// Sorts all data per operation by session, stably.
    fn group_by_session(
        &mut self,
        session_starts: &[u32],
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), HistoryError> {
        let mut next = session_starts.to_vec();
        let place: Vec<u32> = self
            .session_of
            .iter()
            .map(|session| {
                let slot = &mut next[session.index()];
                *slot += 1;
                *slot - 1
            })
            .collect();
        permute(&mut self.session_of, &place, goes_on)?;
        permute(&mut self.actions, &place, goes_on)?;
        permute(&mut self.statuses, &place, goes_on)?;
        permute(&mut self.times, &place, goes_on)?;
        permute(&mut self.transaction_of, &place, goes_on)
    }

    fn transactions(&self) -> Result<Vec<Transaction>, HistoryError> {
        let mut found: Vec<Transaction> = Vec::new();
        let mut closed = vec![false; self.transaction_statuses.len()];
        let mut current = None;
        for (at, &open) in self.transaction_of.iter().enumerate() {
            let session = self.session_of[at];
            match open {
                Some(id) if current == Some((id, session)) => {
                    found.last_mut().expect("a current transaction was pushed").ops.end += 1;
                }
                Some(id) => {
                    if std::mem::replace(&mut closed[id.0 as usize], true) {
                        let session = self.session_names.get(session.0).into();
                        return Err(HistoryError::SplitTransaction { session });
                    }
                    found.push(Transaction {
                        ops: at as u32..at as u32 + 1,
                        status: self.transaction_statuses[id.0 as usize],
                    });
                }
                None => {}
            }
            current = open.map(|id| (id, session));
        }
        Ok(found)
    }
}

/// Appends `value` to a table that stays empty while every entry is the default.
fn extend_sparse<T: Copy + Default + PartialEq>(table: &mut Vec<T>, at: usize, value: T) {
    if !table.is_empty() || value != T::default() {
        table.resize(at, T::default());
        table.push(value);
    }
}

/// Entries moved between two questions whether to go on.
const MOVED_PER_QUESTION: usize = 1 << 17;

/// Moves entry `i` to `place[i]`.
fn permute<T: Copy>(
    table: &mut Vec<T>,
    place: &[u32],
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<(), HistoryError> {
    if !goes_on() {
        return Err(HistoryError::Stopped);
    }
    let mut moved = table.clone();
    for (entries, places) in table.chunks(MOVED_PER_QUESTION).zip(place.chunks(MOVED_PER_QUESTION))
    {
        if !goes_on() {
            return Err(HistoryError::Stopped);
        }
        for (entry, &at) in entries.iter().zip(places) {
            moved[at as usize] = *entry;
        }
    }
    *table = moved;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::OpId;

    #[test]
    fn interleaved_sessions_are_grouped_in_program_order() {
        let mut b = HistoryBuilder::new();
        let (s, t) = (b.session("s"), b.session("t"));
        let x = b.key("x");
        let failed = Details { status: Status::Fail, ..Details::default() };
        for (session, value, details) in
            [(s, 1, Details::default()), (t, 2, failed), (s, 3, Details::default())]
        {
            let value = b.int(value);
            b.push_with(session, Action::Write { key: x, value }, details);
        }
        let h = b.finish().unwrap();
        let shown: Vec<String> =
            h.ops().map(|op| format!("{} {}", h.reference(op), h.show(op))).collect();
        assert_eq!(shown, ["s:0 w(x,1)", "s:1 w(x,3)", "t:0 w(x,2)"]);
        assert_eq!(h.status(OpId(1)), Status::Ok);
        assert_eq!(h.status(OpId(2)), Status::Fail);
        assert_eq!(h.find("t:0"), Some(OpId(2)));
        assert_eq!(h.find("init:x"), Some(h.initial_write(x)));
        assert_eq!(h.find("t:1"), None);
        assert_eq!((h.find("t:00"), h.find("t:+0")), (None, None), "a reference has one spelling");
    }

    #[test]
    fn null_stands_for_the_initial_value() {
        let mut b = HistoryBuilder::new();
        let s = b.session("s");
        let x = b.key("x");
        let (five, null) = (b.int(5), b.value(Value::Null));
        b.set_initial(x, five);
        b.push(s, Action::Read { key: x, value: null });
        let h = b.finish().unwrap();
        assert_eq!(h.reads(OpId(0)), Some((x, five)));
    }

    #[test]
    fn a_list_starts_empty_and_null_is_the_same() {
        let mut b = HistoryBuilder::new();
        let s = b.session("s");
        let (x, y, z) = (b.key("x"), b.key("y"), b.key("z"));
        let (one, null, empty) = (b.int(1), b.value(Value::Null), b.value(Value::List(vec![])));
        b.push(s, Action::Append { key: x, value: one });
        b.push(s, Action::Read { key: x, value: null });
        b.push(s, Action::Read { key: y, value: empty });
        b.push(s, Action::Write { key: z, value: empty });
        let h = b.finish().unwrap();
        assert_eq!(
            [x, y, z].map(|key| h.key_kind(key)),
            [KeyKind::List, KeyKind::List, KeyKind::Register]
        );
        assert_eq!(h.reads(OpId(1)), Some((x, h.initial_value(x))));
        assert_eq!(h.reads(OpId(2)), Some((y, h.initial_value(y))));
        assert_eq!(h.value(h.initial_value(z)), &Value::Int(0));
        assert_eq!(h.appends(OpId(0)), Some((x, one)));
        assert_eq!(h.show(OpId(0)).to_string(), "append(x,1)");
    }

    #[test]
    fn a_list_does_not_start_as_a_number() {
        let mut b = HistoryBuilder::new();
        let s = b.session("s");
        let x = b.key("x");
        let five = b.int(5);
        b.set_initial(x, five);
        b.push(s, Action::Append { key: x, value: five });
        let error = b.finish().unwrap_err();
        assert_eq!(
            error,
            HistoryError::ListStartsAsValue { key: "x".into(), value: Value::Int(5) }
        );
    }

    #[test]
    fn all_transactions_include_single_operations_and_their_time_is_the_hull() {
        let mut b = HistoryBuilder::new();
        let s = b.session("s");
        let txn = b.begin_transaction();
        b.set_transaction_status(txn, Status::Unknown);
        let at = |start, end| Some(Interval { start, end });
        let mut push = |time, transaction| {
            b.push_with(s, Action::Fence, Details { time, transaction, status: Status::Ok });
        };
        push(at(1, Some(2)), None);
        push(at(3, Some(9)), Some(txn));
        push(at(4, Some(5)), Some(txn));
        push(None, None);
        let h = b.finish().unwrap();
        let found: Vec<_> = h
            .all_transactions()
            .map(|t| (t.ops.clone(), t.status, h.transaction_time(&t)))
            .collect();
        assert_eq!(
            found,
            [
                (0..1, Status::Ok, at(1, Some(2))),
                (1..3, Status::Unknown, at(3, Some(9))),
                (3..4, Status::Ok, None),
            ]
        );
    }

    #[test]
    fn a_transaction_is_consecutive_in_its_session() {
        let mut b = HistoryBuilder::new();
        let (s, t) = (b.session("s"), b.session("t"));
        let txn = b.begin_transaction();
        let inside = Details { transaction: Some(txn), ..Details::default() };
        b.push_with(s, Action::Fence, inside);
        b.push(t, Action::Fence);
        b.push_with(s, Action::Fence, inside);
        let h = b.finish().unwrap();
        let found: Vec<_> = h.transactions().map(|(_, t)| (t.ops.start, t.ops.end)).collect();
        assert_eq!(found, [(0, 2)]);
        assert_eq!(h.transaction_of(OpId(2)), None);

        let mut b = HistoryBuilder::new();
        let s = b.session("s");
        let txn = b.begin_transaction();
        let inside = Details { transaction: Some(txn), ..Details::default() };
        b.push_with(s, Action::Fence, inside);
        b.push(s, Action::Fence);
        b.push_with(s, Action::Fence, inside);
        assert_eq!(b.finish().unwrap_err(), HistoryError::SplitTransaction { session: "s".into() });
    }
}
