//! Building a history, operation by operation.

use rustc_hash::FxHashMap;

use crate::history::{Action, Call, History, Interval, Names, Status, Transaction};
use crate::ids::{CallId, KeyId, SessionId, ValueId};
use crate::value::{Value, Values};

/// Why a sequence of operations is not a history.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HistoryError {
    /// A transaction is interrupted by another operation of its session, or spans sessions.
    #[error("the operations of a transaction of session {session} are not consecutive")]
    SplitTransaction {
        /// The session in which the transaction started.
        session: Box<str>,
    },
    /// There are more operations and keys than ids.
    #[error("a history holds at most 4294967295 operations and keys")]
    TooLarge,
}

/// A transaction under construction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OpenTransaction(u32);

/// What is known of an operation besides its action.
#[derive(Clone, Copy, Default, Debug)]
pub struct Details {
    /// Whether it took effect.
    pub status: Status,
    /// When it ran.
    pub time: Option<Interval>,
    /// The transaction that it belongs to.
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
}

impl HistoryBuilder {
    /// Makes a builder of an empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the history.
    pub fn set_name(&mut self, name: &str) {
        self.name = Some(name.into());
    }

    /// Adds a session, or finds it.
    pub fn session(&mut self, name: &str) -> SessionId {
        SessionId(self.session_names.intern(name))
    }

    /// Adds a key, or finds it.
    pub fn key(&mut self, name: &str) -> KeyId {
        KeyId(self.keys.intern(name))
    }

    /// Adds a value, or finds it.
    pub fn value(&mut self, value: Value) -> ValueId {
        self.values.intern(value)
    }

    /// Adds an integer, or finds it.
    pub fn int(&mut self, value: i64) -> ValueId {
        self.values.intern_int(value)
    }

    /// Adds an object's call, to be pushed as [`Action::Call`].
    pub fn call(&mut self, call: Call) -> CallId {
        self.calls.push(call);
        CallId::new(self.calls.len() - 1)
    }

    /// Sets a key's initial value; the default is the integer 0.
    pub fn set_initial(&mut self, key: KeyId, value: ValueId) {
        self.initial.insert(key, value);
    }

    /// Records the value that a key holds in the end.
    pub fn set_final(&mut self, key: KeyId, value: ValueId) {
        self.finals.push((key, value));
    }

    /// Opens a transaction; it is committed unless said otherwise.
    pub fn begin_transaction(&mut self) -> OpenTransaction {
        self.transaction_statuses.push(Status::Ok);
        OpenTransaction(self.transaction_statuses.len() as u32 - 1)
    }

    /// Says what became of a transaction.
    pub fn set_transaction_status(&mut self, transaction: OpenTransaction, status: Status) {
        self.transaction_statuses[transaction.0 as usize] = status;
    }

    /// Adds the next operation of a session.
    #[inline]
    pub fn push(&mut self, session: SessionId, action: Action) {
        self.push_with(session, action, Details::default());
    }

    /// Adds the next operation of a session, with what else is known of it.
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

    /// Says whether nothing was added: no session, no initial value, no operation.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.session_names.len() == 0 && self.keys.len() == 0
    }

    /// Makes the history.
    pub fn finish(mut self) -> Result<History, HistoryError> {
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
            self.group_by_session(&session_starts);
        }
        let zero = self.values.intern_int(0);
        let initial: Vec<ValueId> = (0..self.keys.len())
            .map(|k| self.initial.get(&KeyId::new(k)).copied().unwrap_or(zero))
            .collect();
        if let Some(null) = self.values.find(&Value::Null) {
            let resolve = |key: KeyId, value: &mut ValueId| {
                if *value == null {
                    *value = initial[key.index()];
                }
            };
            for action in &mut self.actions {
                match action {
                    Action::Read { key, value } | Action::Write { key, value } => {
                        resolve(*key, value)
                    }
                    Action::Rmw { key, read, write } => {
                        resolve(*key, read);
                        resolve(*key, write);
                    }
                    Action::Fence | Action::Call(_) => {}
                }
            }
            for (key, value) in &mut self.finals {
                resolve(*key, value);
            }
        }
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
            initial,
            finals: self.finals,
            values: self.values,
        })
    }

    /// Sorts all that is kept per operation by session, stably.
    fn group_by_session(&mut self, session_starts: &[u32]) {
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
        self.session_of = permuted(&self.session_of, &place);
        self.actions = permuted(&self.actions, &place);
        self.statuses = permuted(&self.statuses, &place);
        self.times = permuted(&self.times, &place);
        self.transaction_of = permuted(&self.transaction_of, &place);
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

/// Moves entry `i` to `place[i]`.
fn permuted<T: Copy>(table: &[T], place: &[u32]) -> Vec<T> {
    let mut moved = table.to_vec();
    for (entry, &at) in table.iter().zip(place) {
        moved[at as usize] = *entry;
    }
    moved
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
