//! A window over a stream of transactions, for judging levels while a system runs.
//!
//! The window contains the latest transactions and, of the older ones, those that wrote or read the
//! latest version of a key. Its [history](Window::history) is a part of the stream: a read whose
//! source is not in the window is left out, and a list that was read loses the values of forgotten
//! transactions. Leaving out transactions and reads removes constraints and adds none, at every
//! level and order, so a violation of the part is a violation of the stream. The converse does not
//! hold: a contradiction between transactions that are never in the window together is not found.
//!
//! - A list whose last foreign value was appended by a forgotten transaction is left out
//!   completely, since the remaining list would name an older version as the source.
//! - Each value must be written at most once to a key, and never the initial value: otherwise a
//!   read of a forgotten version could be mistaken for a read of a version in the window.
//! - A read whose source has not arrived yet waits for it. A read that still waits when its
//!   transaction is forgotten is counted ([`Size::unexplained_reads`]); at the end of the stream, a
//!   waiting read of a key of which no write was forgotten is a read out of thin air.
//!
//! Memory is bounded by the capacity, in transactions, whatever the length of the stream.

use std::collections::VecDeque;
use std::rc::Rc;

use consistory_history::{
    Action, Details, History, HistoryBuilder, HistoryError, Interval, OpId, Status, Value,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Reason why a transaction cannot be added to a window.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotWatchable {
    /// A value is written to a key a second time.
    #[error("the value {value} is written to {key} a second time, or is its initial value")]
    RepeatedValue {
        /// The key's name.
        key: Box<str>,
        /// The value.
        value: Value,
    },
    /// An operation is an object's call.
    #[error("an operation is an object's call")]
    Call,
    /// A key has an initial value other than the default.
    #[error("the key {key} has an initial value of its own")]
    InitialValue {
        /// The key's name.
        key: Box<str>,
    },
}

/// Reads without a source in the window that a history contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sourceless {
    /// None: their sources may still arrive.
    LeftOut,
    /// Reads of keys of which no write was forgotten: the stream has ended.
    Kept,
}

/// Number of transactions that a window holds and has forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Transactions in the window.
    pub kept: usize,
    /// Transactions that were forgotten.
    pub forgotten: u64,
    /// Reads that were judged at no level: their sources were forgotten, or never arrived.
    pub unexplained_reads: u64,
}

/// An operation, with names in place of ids.
#[derive(Clone, Debug)]
enum Step {
    Read { key: Rc<str>, value: Value },
    Write { key: Rc<str>, value: Value },
    Append { key: Rc<str>, value: Value },
}

#[derive(Debug)]
struct Kept {
    number: u64,
    session: Rc<str>,
    /// Line of the stream at which the transaction ended.
    line: u64,
    status: Status,
    steps: Vec<(Step, Option<Interval>)>,
}

/// The latest transactions that used a key.
#[derive(Debug, Default)]
struct KeyState {
    latest_writer: u64,
    latest_source: u64,
    /// Latest transaction that read or wrote the key.
    latest_use: u64,
    /// Whether a transaction that wrote the key was forgotten.
    lost_writes: bool,
}

/// The latest transactions of a stream.
#[derive(Debug)]
pub struct Window {
    capacity: usize,
    kept: VecDeque<Kept>,
    /// Transaction that wrote each value of each key.
    writers: FxHashMap<(Rc<str>, Value), u64>,
    keys: FxHashMap<Rc<str>, KeyState>,
    sessions: FxHashSet<Rc<str>>,
    /// Transactions that read a value without a known write.
    waiting: FxHashMap<(Rc<str>, Value), Vec<u64>>,
    /// Whether the state of some key was dropped, so that an unknown key may have lost writes.
    lost_keys: bool,
    next_number: u64,
    forgotten: u64,
    unexplained_reads: u64,
}

impl Window {
    /// Creates a window that keeps `capacity` transactions, at least 8.
    pub fn new(capacity: usize) -> Self {
        Window {
            capacity: capacity.max(8),
            kept: VecDeque::new(),
            writers: FxHashMap::default(),
            keys: FxHashMap::default(),
            sessions: FxHashSet::default(),
            waiting: FxHashMap::default(),
            lost_keys: false,
            next_number: 1,
            forgotten: 0,
            unexplained_reads: 0,
        }
    }

    /// Adds the transactions of a history, which follow all earlier transactions of their sessions
    /// and ended at line `line` of the stream; returns their number.
    pub fn push(&mut self, history: &History, line: u64) -> Result<usize, NotWatchable> {
        for key in history.keys() {
            let initial = history.value(history.initial_value(key));
            let is_usual = match initial {
                Value::Int(0) | Value::Null => true,
                Value::List(values) => values.is_empty(),
                _ => false,
            };
            if !is_usual {
                return Err(NotWatchable::InitialValue { key: history.key_name(key).into() });
            }
        }
        let mut count = 0;
        for transaction in history.all_transactions() {
            let session = history.session_of(OpId(transaction.ops.start));
            let session = self.session_named(history.session_name(session));
            let ops = transaction.ops.clone().map(OpId);
            let is_unknown = |op: OpId| history.own_status(op) == Status::Unknown;
            let status = match transaction.status {
                Status::Ok if ops.clone().any(is_unknown) => Status::Unknown,
                status => status,
            };
            let mut steps = Vec::new();
            for op in ops.filter(|&op| history.own_status(op) != Status::Fail) {
                self.add_steps(history, op, &mut steps)?;
            }
            self.take(Kept { number: self.next_number, session, line, status, steps })?;
            count += 1;
        }
        Ok(count)
    }

    fn add_steps(
        &mut self,
        history: &History,
        op: OpId,
        steps: &mut Vec<(Step, Option<Interval>)>,
    ) -> Result<(), NotWatchable> {
        let time = history.time(op);
        let value = |id| match history.value(id) {
            Value::Null => Value::Int(0),
            value => value.clone(),
        };
        let mut key_named = |key| self.key_named(history.key_name(key));
        match history.action(op) {
            Action::Read { key, value: read } => {
                steps.push((Step::Read { key: key_named(key), value: value(read) }, time));
            }
            Action::Write { key, value: written } => {
                steps.push((Step::Write { key: key_named(key), value: value(written) }, time));
            }
            Action::Rmw { key, read, write } => {
                let key = key_named(key);
                steps.push((Step::Read { key: Rc::clone(&key), value: value(read) }, time));
                steps.push((Step::Write { key, value: value(write) }, time));
            }
            Action::Append { key, value: appended } => {
                steps.push((Step::Append { key: key_named(key), value: value(appended) }, time));
            }
            Action::Fence => {}
            Action::Call(_) => return Err(NotWatchable::Call),
        }
        Ok(())
    }

    /// Returns the shared name of a key, and creates the state of a new key.
    fn key_named(&mut self, name: &str) -> Rc<str> {
        if let Some((known, _)) = self.keys.get_key_value(name) {
            return Rc::clone(known);
        }
        let name: Rc<str> = name.into();
        let state = KeyState { lost_writes: self.lost_keys, ..KeyState::default() };
        self.keys.insert(Rc::clone(&name), state);
        name
    }

    fn session_named(&mut self, name: &str) -> Rc<str> {
        if let Some(known) = self.sessions.get(name) {
            return Rc::clone(known);
        }
        let name: Rc<str> = name.into();
        self.sessions.insert(Rc::clone(&name));
        name
    }

    fn take(&mut self, transaction: Kept) -> Result<(), NotWatchable> {
        let number = transaction.number;
        for (step, _) in &transaction.steps {
            let (key, value) = match step {
                Step::Read { .. } => continue,
                Step::Write { key, value } | Step::Append { key, value } => (key, value),
            };
            let is_initial = matches!(step, Step::Write { value: Value::Int(0), .. });
            let at = (Rc::clone(key), value.clone());
            if is_initial || self.writers.insert(at.clone(), number).is_some() {
                let (key, value) = ((&**key).into(), value.clone());
                return Err(NotWatchable::RepeatedValue { key, value });
            }
            self.waiting.remove(&at);
            if transaction.status == Status::Ok
                && let Some(state) = self.keys.get_mut(key)
            {
                state.latest_writer = number;
            }
        }
        for (step, _) in &transaction.steps {
            let Step::Read { key, value } = step else { continue };
            let Some(source) = source_value(&transaction, key, value) else { continue };
            let at = (Rc::clone(key), source.clone());
            match self.writers.get(&at) {
                Some(&writer) => {
                    if let Some(state) = self.keys.get_mut(key) {
                        state.latest_source = writer;
                    }
                }
                None if transaction.status == Status::Ok => {
                    self.waiting.entry(at).or_default().push(number);
                }
                None => {}
            }
        }
        for (step, _) in &transaction.steps {
            if let Some(state) = self.keys.get_mut(step.key()) {
                state.latest_use = number;
            }
        }
        self.kept.push_back(transaction);
        self.next_number += 1;
        Ok(())
    }

    /// Returns the number of transactions that the window holds and has forgotten.
    pub fn size(&self) -> Size {
        Size {
            kept: self.kept.len(),
            forgotten: self.forgotten,
            unexplained_reads: self.unexplained_reads,
        }
    }

    /// Returns the session of a transaction in the window, and the line at which it ended.
    pub fn place_of(&self, index: usize) -> Option<(&str, u64)> {
        self.kept.get(index).map(|kept| (&*kept.session, kept.line))
    }

    /// Checks whether the window exceeds its capacity.
    pub fn is_full(&self) -> bool {
        self.kept.len() > self.capacity
    }

    /// Builds the history of the first `count` transactions in the window.
    pub fn history(&self, count: usize, sourceless: Sourceless) -> Result<History, HistoryError> {
        let mut builder = HistoryBuilder::new();
        let last = match self.kept.get(count.wrapping_sub(1)) {
            Some(last) => last.number,
            None => u64::MAX,
        };
        for transaction in self.kept.iter().take(count) {
            let session = builder.session(&transaction.session);
            let open = builder.begin_transaction();
            builder.set_transaction_status(open, transaction.status);
            for (step, time) in &transaction.steps {
                let action = match step {
                    Step::Write { key, value } => {
                        Action::Write { key: builder.key(key), value: builder.value(value.clone()) }
                    }
                    Step::Append { key, value } => Action::Append {
                        key: builder.key(key),
                        value: builder.value(value.clone()),
                    },
                    Step::Read { key, value } => {
                        let Some(value) = self.seen(transaction, key, value, last, sourceless)
                        else {
                            continue;
                        };
                        Action::Read { key: builder.key(key), value: builder.value(value) }
                    }
                };
                let details = Details { status: Status::Ok, time: *time, transaction: Some(open) };
                builder.push_with(session, action, details);
            }
        }
        builder.finish()
    }

    /// Returns the value that a read returns in the window's history, or `None` if it is left out.
    fn seen(
        &self,
        reader: &Kept,
        key: &Rc<str>,
        value: &Value,
        last: u64,
        sourceless: Sourceless,
    ) -> Option<Value> {
        let writer = |value: &Value| self.writers.get(&(Rc::clone(key), value.clone()));
        let is_known = |value: &Value| writer(value).is_some_and(|&number| number <= last);
        if let Some(source) = source_value(reader, key, value)
            && !is_known(source)
        {
            let is_thin_air = sourceless == Sourceless::Kept
                && self.keys.get(key).is_some_and(|state| !state.lost_writes);
            return is_thin_air.then(|| value.clone());
        }
        let Value::List(values) = value else { return Some(value.clone()) };
        let keeps_all = sourceless == Sourceless::Kept
            && self.keys.get(key).is_some_and(|state| !state.lost_writes);
        let kept = values.iter().filter(|value| keeps_all || is_known(value));
        Some(Value::List(kept.cloned().collect()))
    }

    /// Forgets older transactions if the window is full. All transactions in the window should have
    /// been judged before.
    pub fn forget(&mut self) {
        if !self.is_full() {
            return;
        }
        let recent = self.kept.len() - self.capacity / 2;
        // Versions of the keys that were used last.
        let mut current: Vec<(u64, u64)> = self
            .keys
            .values()
            .flat_map(|state| {
                [state.latest_writer, state.latest_source].map(|n| (state.latest_use, n))
            })
            .filter(|&(_, number)| number > 0 && number < self.kept[recent].number)
            .collect();
        current.sort_unstable_by(|a, b| b.cmp(a));
        let mut found: FxHashSet<u64> = FxHashSet::default();
        for (_, number) in current {
            if found.len() == self.capacity / 4 {
                break;
            }
            found.insert(number);
        }
        let (mut older, mut dropped) = (VecDeque::new(), Vec::new());
        for transaction in self.kept.drain(..recent) {
            match found.contains(&transaction.number) {
                true => older.push_back(transaction),
                false => dropped.push(transaction),
            }
        }
        older.append(&mut self.kept);
        self.kept = older;
        for transaction in &dropped {
            self.drop_transaction(transaction);
        }
        let first = self.kept.front().map_or(self.next_number, |first| first.number);
        let held: FxHashSet<u64> = self.kept.iter().map(|kept| kept.number).collect();
        let before = self.keys.len();
        let is_used = |number: u64| number >= first && held.contains(&number);
        let mut used: FxHashSet<Rc<str>> = FxHashSet::default();
        for kept in &self.kept {
            used.extend(kept.steps.iter().map(|(step, _)| step.key()).cloned());
        }
        self.keys.retain(|key, state| {
            is_used(state.latest_writer) || is_used(state.latest_source) || used.contains(key)
        });
        self.lost_keys |= self.keys.len() < before;
        self.sessions = self.kept.iter().map(|kept| Rc::clone(&kept.session)).collect();
    }

    fn drop_transaction(&mut self, transaction: &Kept) {
        self.forgotten += 1;
        for (step, _) in &transaction.steps {
            match step {
                Step::Write { key, value } | Step::Append { key, value } => {
                    self.writers.remove(&(Rc::clone(key), value.clone()));
                    if let Some(state) = self.keys.get_mut(key) {
                        state.lost_writes = true;
                    }
                }
                Step::Read { key, value } => {
                    let Some(source) = source_value(transaction, key, value) else { continue };
                    let at = (Rc::clone(key), source.clone());
                    if let Some(readers) = self.waiting.get_mut(&at) {
                        let before = readers.len();
                        readers.retain(|&reader| reader != transaction.number);
                        self.unexplained_reads += u64::from(readers.len() < before);
                        if readers.is_empty() {
                            self.waiting.remove(&at);
                        }
                    }
                }
            }
        }
    }

    /// Ends the stream: waiting reads of keys that lost writes remain unexplained.
    pub fn finish(&mut self) {
        for ((key, _), readers) in &self.waiting {
            if self.keys.get(key).is_none_or(|state| state.lost_writes) {
                self.unexplained_reads += readers.len() as u64;
            }
        }
    }
}

impl Step {
    fn key(&self) -> &Rc<str> {
        match self {
            Step::Read { key, .. } | Step::Write { key, .. } | Step::Append { key, .. } => key,
        }
    }
}

/// Returns the value whose writer a read depends on: for a list, the last value that the
/// transaction did not append itself; `None` for the initial value.
fn source_value<'v>(reader: &Kept, key: &Rc<str>, value: &'v Value) -> Option<&'v Value> {
    let Value::List(values) = value else {
        return (*value != Value::Int(0)).then_some(value);
    };
    let is_own = |value: &Value| {
        reader.steps.iter().any(
            |(step, _)| matches!(step, Step::Append { key: k, value: v } if k == key && v == value),
        )
    };
    values.iter().rev().find(|value| !is_own(value))
}
