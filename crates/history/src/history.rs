//! The history: tables of sessions, operations, keys and values.

use std::fmt;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::ids::{CallId, KeyId, OpId, SessionId, TxnId, ValueId};
use crate::value::{Value, Values, is_plain_word, write_quoted};

/// The action of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// `r(key,value)`.
    Read {
        /// The key that is read.
        key: KeyId,
        /// The value that the read returned.
        value: ValueId,
    },
    /// `w(key,value)`.
    Write {
        /// The key that is written.
        key: KeyId,
        /// The value that is written.
        value: ValueId,
    },
    /// `rmw(key,read,write)`: one operation that is a read and a write at once.
    Rmw {
        /// The key that is read and written.
        key: KeyId,
        /// The value that was read.
        read: ValueId,
        /// The value that is written.
        write: ValueId,
    },
    /// `append(key,value)`: adds a value to the end of the key's list.
    Append {
        /// The key whose list grows.
        key: KeyId,
        /// The value that is added.
        value: ValueId,
    },
    /// `f`: a full fence.
    Fence,
    /// `method(args) => return`, an object's call.
    Call(CallId),
}

/// The kind of values of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyKind {
    /// Writes replace the value, and reads return it.
    Register,
    /// Appends extend a list, and reads return the whole list. A key that is only read counts as a
    /// list if some read returned one.
    List,
    /// The history both writes and appends to the key, for which no model defines a meaning.
    Mixed,
}

/// Whether an operation or transaction took effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Status {
    /// It took effect; a transaction was committed.
    #[default]
    Ok,
    /// It did not take effect and does not count; a transaction was aborted.
    Fail,
    /// Its outcome is indeterminate. An indeterminate write or append counts if and only if some
    /// operation reads from it; an indeterminate read does not count.
    Unknown,
}

/// Time of an operation, by any clock that all operations share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// Time of the invocation.
    pub start: i64,
    /// Time of the return; `None` if the operation never returned.
    pub end: Option<i64>,
}

/// A call of a method of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The method's name.
    pub method: Box<str>,
    /// The arguments.
    pub args: Vec<ValueId>,
    /// The returned value; `None` if none was recorded.
    pub returns: Option<ValueId>,
}

/// A transaction: consecutive operations of one session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// The ids of its operations, in program order.
    pub ops: Range<u32>,
    /// `Ok` for committed, `Fail` for aborted, `Unknown` for indeterminate.
    pub status: Status,
}

/// A recorded history: the operations of each session in program order.
///
/// Invariants: the operations of a session have consecutive ids; a transaction's operations are
/// consecutive in one session; register operations never hold `null` (it is replaced by the key's
/// initial value); a list starts empty unless the source says otherwise; there are fewer than 2^32
/// operations and keys together.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(crate) name: Option<Box<str>>,
    pub(crate) session_names: Names,
    /// First operation of each session, followed by the number of all operations.
    pub(crate) session_starts: Vec<u32>,
    pub(crate) session_of: Vec<SessionId>,
    pub(crate) actions: Vec<Action>,
    /// Empty when every status is `Ok`.
    pub(crate) statuses: Vec<Status>,
    /// Empty when no operation has a time.
    pub(crate) times: Vec<Option<Interval>>,
    /// Sorted by their operations.
    pub(crate) transactions: Vec<Transaction>,
    pub(crate) calls: Vec<Call>,
    pub(crate) keys: Names,
    /// Empty when every key is a register.
    pub(crate) key_kinds: Vec<KeyKind>,
    pub(crate) initial: Vec<ValueId>,
    pub(crate) finals: Vec<(KeyId, ValueId)>,
    pub(crate) values: Values,
}

impl History {
    /// Returns the history's name, if its source gave it one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Counts the recorded operations; initial writes are not among them.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Checks whether no operation is recorded.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Iterates over the recorded operations, session by session.
    pub fn ops(&self) -> impl DoubleEndedIterator<Item = OpId> + ExactSizeIterator + use<> {
        (0..self.actions.len() as u32).map(OpId)
    }

    /// Counts the sessions.
    pub fn session_count(&self) -> usize {
        self.session_names.len()
    }

    /// Iterates over the sessions.
    pub fn sessions(
        &self,
    ) -> impl DoubleEndedIterator<Item = SessionId> + ExactSizeIterator + use<> {
        (0..self.session_names.len() as u32).map(SessionId)
    }

    /// Returns a session's name.
    pub fn session_name(&self, session: SessionId) -> &str {
        self.session_names.get(session.0)
    }

    /// Iterates over a session's operations in program order.
    pub fn session_ops(
        &self,
        session: SessionId,
    ) -> impl DoubleEndedIterator<Item = OpId> + ExactSizeIterator + use<> {
        let s = session.index();
        (self.session_starts[s]..self.session_starts[s + 1]).map(OpId)
    }

    /// Returns the session of a recorded operation.
    #[inline]
    pub fn session_of(&self, op: OpId) -> SessionId {
        self.session_of[op.index()]
    }

    /// Returns the position of a recorded operation in its session, counting from 0.
    #[inline]
    pub fn index_in_session(&self, op: OpId) -> u32 {
        op.0 - self.session_starts[self.session_of(op).index()]
    }

    /// Returns the operation at a position of a session.
    #[inline]
    pub fn op_at(&self, session: SessionId, index: u32) -> OpId {
        OpId(self.session_starts[session.index()] + index)
    }

    /// Counts the keys.
    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// Iterates over the keys.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = KeyId> + ExactSizeIterator + use<> {
        (0..self.keys.len() as u32).map(KeyId)
    }

    /// Returns a key's name.
    pub fn key_name(&self, key: KeyId) -> &str {
        self.keys.get(key.0)
    }

    /// Finds a key by its name.
    pub fn find_key(&self, name: &str) -> Option<KeyId> {
        self.keys.find(name).map(KeyId)
    }

    /// Returns the kind of values of a key.
    pub fn key_kind(&self, key: KeyId) -> KeyKind {
        self.key_kinds.get(key.index()).copied().unwrap_or(KeyKind::Register)
    }

    /// Checks whether any key is a list, at least in part.
    pub fn has_lists(&self) -> bool {
        !self.key_kinds.is_empty()
    }

    /// Returns a key's initial value.
    pub fn initial_value(&self, key: KeyId) -> ValueId {
        self.initial[key.index()]
    }

    /// Returns the initial write of a key.
    #[inline]
    pub fn initial_write(&self, key: KeyId) -> OpId {
        OpId(self.actions.len() as u32 + key.0)
    }

    /// Checks whether `op` is an initial write.
    #[inline]
    pub fn is_initial(&self, op: OpId) -> bool {
        op.index() >= self.actions.len()
    }

    /// Returns the final values of keys that the source gives.
    pub fn finals(&self) -> &[(KeyId, ValueId)] {
        &self.finals
    }

    /// Returns the table of values.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Returns a value.
    pub fn value(&self, id: ValueId) -> &Value {
        self.values.get(id)
    }

    /// Returns the action of an operation; the action of an initial write is a write.
    #[inline]
    pub fn action(&self, op: OpId) -> Action {
        match self.actions.get(op.index()) {
            Some(&action) => action,
            None => {
                let key = KeyId(op.0 - self.actions.len() as u32);
                Action::Write { key, value: self.initial[key.index()] }
            }
        }
    }

    /// Returns an object's call.
    pub fn call(&self, id: CallId) -> &Call {
        &self.calls[id.index()]
    }

    /// Returns an operation's own status, regardless of its transaction.
    pub fn own_status(&self, op: OpId) -> Status {
        self.statuses.get(op.index()).copied().unwrap_or_default()
    }

    /// Returns the status of an operation, taking its transaction into account.
    #[inline(never)] // Large and rarely needed in hot loops: callers stay small.
    pub fn status(&self, op: OpId) -> Status {
        let own = self.own_status(op);
        if self.transactions.is_empty() || own == Status::Fail {
            return own;
        }
        match self.transaction_of(op).map(|t| self.transaction(t).status) {
            None | Some(Status::Ok) => own,
            Some(other) => other,
        }
    }

    /// Returns the key and value that an operation reads, if it counts as a read.
    #[inline]
    pub fn reads(&self, op: OpId) -> Option<(KeyId, ValueId)> {
        match self.action(op) {
            Action::Read { key, value } | Action::Rmw { key, read: value, .. }
                if self.is_certain(op) =>
            {
                Some((key, value))
            }
            _ => None,
        }
    }

    /// Returns the key and value that an operation writes. An indeterminate write counts only if
    /// some operation reads from it; for a failed write, this returns `None`.
    #[inline]
    pub fn writes(&self, op: OpId) -> Option<(KeyId, ValueId)> {
        match self.action(op) {
            Action::Write { key, value } | Action::Rmw { key, write: value, .. }
                if self.is_certain(op) || self.status(op) == Status::Unknown =>
            {
                Some((key, value))
            }
            _ => None,
        }
    }

    /// Returns the key and value of an append. An indeterminate append counts only if some
    /// operation reads from it; for a failed append, this returns `None`.
    #[inline]
    pub fn appends(&self, op: OpId) -> Option<(KeyId, ValueId)> {
        match self.action(op) {
            Action::Append { key, value } if self.status(op) != Status::Fail => Some((key, value)),
            _ => None,
        }
    }

    /// Returns the key that an operation accesses, regardless of its status.
    #[inline]
    pub fn key_of(&self, op: OpId) -> Option<KeyId> {
        match self.action(op) {
            Action::Read { key, .. }
            | Action::Write { key, .. }
            | Action::Rmw { key, .. }
            | Action::Append { key, .. } => Some(key),
            Action::Fence | Action::Call(_) => None,
        }
    }

    /// Checks whether an operation is known to have taken effect.
    #[inline]
    pub fn is_certain(&self, op: OpId) -> bool {
        (self.statuses.is_empty() && self.transactions.is_empty()) || self.status(op) == Status::Ok
    }

    /// Returns the interval in which an operation ran, if it was recorded.
    pub fn time(&self, op: OpId) -> Option<Interval> {
        self.times.get(op.index()).copied().flatten()
    }

    /// Iterates over the transactions that the history brackets, in the order of their operations.
    pub fn transactions(&self) -> impl ExactSizeIterator<Item = (TxnId, &Transaction)> {
        self.transactions.iter().enumerate().map(|(i, t)| (TxnId::new(i), t))
    }

    /// Returns a transaction.
    pub fn transaction(&self, id: TxnId) -> &Transaction {
        &self.transactions[id.index()]
    }

    /// Returns the transaction that brackets an operation, or `None` outside brackets, where each
    /// operation is a transaction of its own.
    pub fn transaction_of(&self, op: OpId) -> Option<TxnId> {
        let at = self.transactions.partition_point(|t| t.ops.end <= op.0);
        self.transactions.get(at).filter(|t| t.ops.contains(&op.0)).map(|_| TxnId::new(at))
    }

    /// Iterates over all transactions, session by session in program order: those that the history
    /// brackets, and each operation outside brackets as a transaction of its own.
    pub fn all_transactions(&self) -> impl Iterator<Item = Transaction> + use<'_> {
        let mut bracketed = self.transactions.iter().peekable();
        let mut next = 0;
        std::iter::from_fn(move || {
            let op = OpId(next);
            if op.index() >= self.len() {
                return None;
            }
            let found = match bracketed.next_if(|transaction| transaction.ops.start == next) {
                Some(transaction) => transaction.clone(),
                None => Transaction { ops: next..next + 1, status: self.own_status(op) },
            };
            next = found.ops.end;
            Some(found)
        })
    }

    /// Returns the smallest interval that contains the times of a transaction's operations.
    ///
    /// The result is `None` if any of them has no recorded time, because a smaller interval would
    /// claim an order that was not observed. It has no end if any operation has none.
    pub fn transaction_time(&self, transaction: &Transaction) -> Option<Interval> {
        let mut hull: Option<Interval> = None;
        for op in transaction.ops.clone() {
            let time = self.time(OpId(op))?;
            hull = Some(match hull {
                None => time,
                Some(hull) => Interval {
                    start: hull.start.min(time.start),
                    end: hull.end.zip(time.end).map(|(a, b)| a.max(b)),
                },
            });
        }
        hull
    }

    /// Finds an operation that appends to a list, regardless of its status.
    pub fn first_append(&self) -> Option<OpId> {
        let mut ops = self.ops();
        let is_append = |op: &OpId| matches!(self.action(*op), Action::Append { .. });
        if self.has_lists() { ops.find(is_append) } else { None }
    }

    /// Checks whether any operation is an object's call.
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Finds a transaction that may have taken effect and holds more than one operation.
    pub fn first_long_transaction(&self) -> Option<TxnId> {
        self.transactions
            .iter()
            .position(|t| t.status != Status::Fail && t.ops.len() > 1)
            .map(TxnId::new)
    }

    /// Returns an operation's reference for display: `session:index`, or `init:key`.
    pub fn reference(&self, op: OpId) -> Reference<'_> {
        Reference { history: self, op }
    }

    /// Finds the operation with a given reference.
    pub fn find(&self, reference: &str) -> Option<OpId> {
        if let Some(key) = reference.strip_prefix("init:").and_then(|key| self.keys.find(key)) {
            return Some(self.initial_write(KeyId(key)));
        }
        let (session, index) = reference.rsplit_once(':')?;
        let session = SessionId(self.session_names.find(session)?);
        // Each operation has one spelling: without a sign or leading zeros.
        let is_plain = index == "0" || !index.starts_with(['0', '+']);
        let index: u32 = index.parse().ok().filter(|_| is_plain)?;
        (index < self.session_ops(session).len() as u32).then(|| self.op_at(session, index))
    }

    /// Returns an operation for display in text notation, without its time and status.
    pub fn show(&self, op: OpId) -> Show<'_> {
        Show { history: self, op }
    }
}

/// An operation's reference, as [`History::reference`] shows it.
pub struct Reference<'a> {
    history: &'a History,
    op: OpId,
}

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = self.history;
        if h.is_initial(self.op) {
            let key = KeyId(self.op.0 - h.len() as u32);
            return write!(f, "init:{}", h.key_name(key));
        }
        write!(f, "{}:{}", h.session_name(h.session_of(self.op)), h.index_in_session(self.op))
    }
}

/// An operation in text notation, as [`History::show`] shows it.
pub struct Show<'a> {
    history: &'a History,
    op: OpId,
}

impl fmt::Display for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = self.history;
        match h.action(self.op) {
            Action::Read { key, value } => write!(f, "r({},{})", KeyName(h, key), h.value(value)),
            Action::Write { key, value } => write!(f, "w({},{})", KeyName(h, key), h.value(value)),
            Action::Rmw { key, read, write } => {
                write!(f, "rmw({},{},{})", KeyName(h, key), h.value(read), h.value(write))
            }
            Action::Append { key, value } => {
                write!(f, "append({},{})", KeyName(h, key), h.value(value))
            }
            Action::Fence => f.write_str("f"),
            Action::Call(id) => {
                let call = h.call(id);
                write!(f, "{}(", call.method)?;
                for (i, &arg) in call.args.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{}", h.value(arg))?;
                }
                f.write_str(")")?;
                match call.returns {
                    Some(value) => write!(f, " => {}", h.value(value)),
                    None => Ok(()),
                }
            }
        }
    }
}

/// A key in text notation: quoted unless it is a plain word or a number.
struct KeyName<'a>(&'a History, KeyId);

impl fmt::Display for KeyName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.key_name(self.1);
        let is_number = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
        if is_number || is_plain_word(name) { f.write_str(name) } else { write_quoted(name, f) }
    }
}

/// Names, each held once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    table: Vec<Box<str>>,
    index: FxHashMap<Box<str>, u32>,
}

impl Names {
    pub(crate) fn intern(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.index.get(name) {
            return id;
        }
        let id = self.table.len() as u32;
        self.table.push(name.into());
        self.index.insert(name.into(), id);
        id
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }

    pub(crate) fn get(&self, id: u32) -> &str {
        &self.table[id as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}
