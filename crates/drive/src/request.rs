//! Requests to clients, and their outcomes.

use std::fmt;

/// A key of the store under test.
///
/// Keys are numbered so that a workload can retire old ones; the store sees the name `k7`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key(pub u32);

impl Key {
    /// The key that readiness probes write; workloads do not use it.
    pub const PROBE: Key = Key(u32::MAX);
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Key::PROBE => f.write_str("probe"),
            Key(number) => write!(f, "k{number}"),
        }
    }
}

/// The function by which an [`Action::Update`] computes the value to write from the value read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Writes this value, independently of the value read.
    Put(i64),
    /// Adds an amount to the balance, and marks the result with a tag that no other write has.
    ///
    /// A stored value is `tag * BALANCES + balance`, so every write writes a different value.
    Transfer {
        /// The amount added to the balance; a negative one is withdrawn.
        amount: i64,
        /// The tag of the value that is written.
        tag: i64,
    },
}

/// The number of balances that an account's value can encode along with its tag.
pub const BALANCES: i64 = 1_000_000;

/// The balance of an account that was never written.
pub const FIRST_BALANCE: i64 = 1_000;

/// Returns the balance that an account's value encodes.
pub fn balance(value: Option<i64>) -> i64 {
    value.map_or(FIRST_BALANCE, |value| value.rem_euclid(BALANCES))
}

impl Change {
    /// Computes the value to write.
    pub fn apply(self, read: Option<i64>) -> i64 {
        match self {
            Change::Put(value) => value,
            Change::Transfer { amount, tag } => {
                tag * BALANCES + (balance(read) + amount).rem_euclid(BALANCES)
            }
        }
    }
}

/// One step of a transaction, or an operation on its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Reads a register.
    Read(Key),
    /// Writes a register.
    Write(Key, i64),
    /// Reads a list.
    ReadList(Key),
    /// Appends to a list.
    Append(Key, i64),
    /// Reads a register, then writes a value computed from the value read.
    Update(Key, Change),
}

impl Action {
    /// Returns the key of the step.
    pub fn key(&self) -> Key {
        match *self {
            Action::Read(key)
            | Action::Write(key, _)
            | Action::ReadList(key)
            | Action::Append(key, _)
            | Action::Update(key, _) => key,
        }
    }

    fn shift(&mut self, by: u32) {
        match self {
            Action::Read(key)
            | Action::Write(key, _)
            | Action::ReadList(key)
            | Action::Append(key, _)
            | Action::Update(key, _) => key.0 += by,
        }
    }

    /// Returns whether the step changes nothing.
    pub fn is_read(&self) -> bool {
        matches!(self, Action::Read(_) | Action::ReadList(_))
    }
}

/// A request to a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// One step, outside any transaction.
    Single(Action),
    /// Steps in one transaction.
    Transaction(Vec<Action>),
    /// Writes a register if it holds an expected value; `None` means unwritten.
    CompareAndSet {
        /// The register.
        key: Key,
        /// The expected value.
        old: Option<i64>,
        /// The value to write.
        new: i64,
    },
    /// Adds an element to the set.
    Add(i64),
    /// Reads the whole set.
    Members,
    /// Appends an element to the queue.
    Enqueue(i64),
    /// Removes the element at the front of the queue.
    Dequeue,
}

impl Request {
    /// Returns the same request with larger key numbers.
    pub fn shifted(mut self, by: u32) -> Request {
        match &mut self {
            Request::Single(step) => step.shift(by),
            Request::Transaction(steps) => steps.iter_mut().for_each(|step| step.shift(by)),
            Request::CompareAndSet { key, .. } => key.0 += by,
            Request::Add(_) | Request::Members | Request::Enqueue(_) | Request::Dequeue => {}
        }
        self
    }

    /// Returns whether the request cannot change the store.
    pub fn is_read(&self) -> bool {
        match self {
            Request::Single(step) => step.is_read(),
            Request::Transaction(steps) => steps.iter().all(Action::is_read),
            Request::Members => true,
            Request::CompareAndSet { .. }
            | Request::Add(_)
            | Request::Enqueue(_)
            | Request::Dequeue => false,
        }
    }

    /// Returns the steps of a request; empty for requests of objects.
    pub fn steps(&self) -> &[Action] {
        match self {
            Request::Single(step) => std::slice::from_ref(step),
            Request::Transaction(steps) => steps,
            _ => &[],
        }
    }
}

/// The result of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// No information: a write, an append or an add.
    Done,
    /// The value of a register, or of the queue's front; `None` if there was none.
    Value(Option<i64>),
    /// The elements of a list or a set.
    List(Vec<i64>),
    /// Whether a compare-and-set took effect.
    Success(bool),
}

/// The outcome of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The request took effect; there is one reply per step.
    Ok(Vec<Reply>),
    /// The request certainly had no effect.
    Failed(String),
    /// Indeterminate: the request may have taken effect, or may still do so.
    Unknown {
        /// The replies to the first steps that were received.
        replies: Vec<Reply>,
        /// A description of the error.
        reason: String,
    },
}

impl Outcome {
    /// Builds an indeterminate outcome without replies.
    pub fn unknown(reason: impl fmt::Display) -> Outcome {
        Outcome::Unknown { replies: Vec::new(), reason: reason.to_string() }
    }

    /// Builds a failure.
    pub fn failed(reason: impl fmt::Display) -> Outcome {
        Outcome::Failed(reason.to_string())
    }
}
