//! Clients that run transactions on a store.
//!
//! At each step a client that has work left is chosen, each with the same probability. It begins a
//! transaction, or its current operation returns; when the last one does, the store runs the whole
//! transaction at that moment, its commit. So transactions of different clients overlap in time,
//! and the interval of each contains its commit.
//!
//! ```text
//!   step      1      2      3      4      5      6
//!   t0      begin         r(x)         w(y), commit
//!   t1             begin         w(x), commit
//! ```
//!
//! The actions of the clients depend on the seed alone, never on the store or on the values that
//! they read.

use std::collections::VecDeque;

use consistory_history::{
    Action, Details, History, HistoryBuilder, Interval, KeyId, SessionId, Status, Value,
};

use super::anomaly::Anomaly;
use super::versions::{Effect, Isolation, KeyVersions, Version};
use super::workload::{ClientOrder, DataKind, Keys, TransactionWorkload};
use crate::random::{Chooser, Random, choices_of};

/// A transaction as it was executed, by session `t{session}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecutedTransaction {
    /// Number of the session.
    pub session: u32,
    /// Whether it was committed, aborted, or is indeterminate.
    pub status: Status,
    /// Its operations, in program order.
    pub operations: Vec<ExecutedOperation>,
}

/// An operation of an executed transaction, on key `x{key}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecutedOperation {
    /// Number of the key.
    pub key: u32,
    /// The operation's effect or result.
    pub action: OperationAction,
    /// When it ran, if the workload is timed.
    pub time: Option<Interval>,
}

/// The effect or result of an operation of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperationAction {
    /// A read of a register, and the value that it returned.
    Read(u32),
    /// A write of a value to a register.
    Write(u32),
    /// A read of a list, and the elements that it returned.
    ReadList(Vec<u32>),
    /// An append of an element to a list.
    Append(u32),
}

/// Runs a workload and records its history.
///
/// # Panics
/// Panics if [`TransactionWorkload::validate`] refuses the workload.
pub fn generate_transactions(workload: &TransactionWorkload) -> History {
    let mut builder = HistoryBuilder::new();
    for session in 0..workload.sessions {
        builder.session(&format!("t{session}"));
    }
    // Keys get their ids at their first use; unused keys are left out.
    let mut keys: Vec<Option<KeyId>> = Vec::new();
    for transaction in stream_transactions(workload) {
        let open = builder.begin_transaction();
        builder.set_transaction_status(open, transaction.status);
        for ExecutedOperation { key, action, time } in transaction.operations {
            if keys.len() <= key as usize {
                keys.resize(key as usize + 1, None);
            }
            let key = *keys[key as usize].get_or_insert_with(|| builder.key(&format!("x{key}")));
            let action = match action {
                OperationAction::Read(value) => {
                    Action::Read { key, value: builder.int(value.into()) }
                }
                OperationAction::Write(value) => {
                    Action::Write { key, value: builder.int(value.into()) }
                }
                OperationAction::ReadList(elements) => {
                    let elements = elements.into_iter().map(|element| Value::Int(element.into()));
                    Action::Read { key, value: builder.value(Value::List(elements.collect())) }
                }
                OperationAction::Append(element) => {
                    Action::Append { key, value: builder.int(element.into()) }
                }
            };
            let details = Details { time, transaction: Some(open), ..Details::default() };
            builder.push_with(SessionId(transaction.session), action, details);
        }
    }
    builder.finish().expect("transactions are whole, and there are fewer operations than ids")
}

/// Runs a workload and returns its transactions one by one, in the order in which they end.
///
/// # Panics
/// Panics if [`TransactionWorkload::validate`] refuses the workload.
pub fn stream_transactions(
    workload: &TransactionWorkload,
) -> impl Iterator<Item = ExecutedTransaction> + use<> {
    if let Err(error) = workload.validate() {
        panic!("{error}");
    }
    Clients::new(workload)
}

/// An operation that a client will execute.
#[derive(Clone, Copy)]
struct Planned {
    key: u32,
    /// The value to write or append; nothing for a read.
    write: Option<u32>,
    /// Start time of the operation and, once it has returned, its end time.
    start: i64,
    end: i64,
}

/// A client with its current transaction.
struct Client {
    /// Number of operations that the client has yet to begin.
    left: u32,
    /// Session of the current transaction, and its operations; none between transactions.
    current: Option<(u32, Vec<Planned>)>,
    /// Number of operations of the current transaction that have returned.
    returned: usize,
}

struct Clients {
    workload: TransactionWorkload,
    isolation: Box<dyn Isolation>,
    random: Random,
    key_choice: Keys,
    clients: Vec<Client>,
    /// Clients with work left.
    active: Vec<u32>,
    /// Sessions that no transaction is using, if clients take them from a pool.
    free_sessions: Vec<u32>,
    /// Number of the key that each slot of the distribution stands for, and writes to it so far.
    slots: Vec<(u32, u32)>,
    keys: Vec<KeyVersions>,
    /// Greatest value written to each key.
    written: Vec<u32>,
    clock: i64,
    /// Number of operations executed.
    executed: u32,
    /// Anomalies to plant, each with the number of operations after which to plant it, in reverse
    /// order.
    plants: Vec<(u32, Anomaly)>,
    finished: VecDeque<ExecutedTransaction>,
}

impl Clients {
    fn new(workload: &TransactionWorkload) -> Self {
        let &TransactionWorkload { sessions, operations, keys, seed, .. } = workload;
        let share = |client| operations / sessions + u32::from(client < operations % sessions);
        let mut planter = choices_of(Chooser::Planter, seed);
        let mut plants: Vec<(u32, Anomaly)> =
            workload.anomalies.iter().map(|&a| (planter.below(operations + 1), a)).collect();
        plants.sort_by_key(|&(after, _)| std::cmp::Reverse(after));
        Self {
            isolation: workload.store.isolation(workload),
            random: choices_of(Chooser::Clients, seed),
            key_choice: Keys::new(workload.key_choice, keys),
            clients: (0..sessions)
                .map(|client| Client { left: share(client), current: None, returned: 0 })
                .collect(),
            active: (0..sessions).filter(|&client| share(client) > 0).collect(),
            free_sessions: (0..sessions).collect(),
            slots: (0..keys).map(|key| (key, 0)).collect(),
            keys: (0..keys).map(|_| KeyVersions::default()).collect(),
            written: vec![0; keys as usize],
            clock: 0,
            executed: 0,
            plants,
            finished: VecDeque::new(),
            workload: workload.clone(),
        }
    }

    /// Lets one client take its next step.
    fn step(&mut self) {
        self.clock += 1;
        let client = self.active[self.random.below(self.active.len() as u32) as usize];
        self.act(client as usize);
        self.retire(client);
    }

    /// Lets a client that runs a transaction take its next step.
    fn step_busy(&mut self) {
        self.clock += 1;
        let is_busy = |client: &&u32| self.clients[**client as usize].current.is_some();
        let busy: Vec<u32> = self.active.iter().filter(is_busy).copied().collect();
        let client = busy[self.random.below(busy.len() as u32) as usize];
        self.act(client as usize);
        self.retire(client);
    }

    /// Removes a client from the list of active ones once it has finished its work.
    fn retire(&mut self, client: u32) {
        let Client { left, current, .. } = &self.clients[client as usize];
        if *left == 0 && current.is_none() {
            self.active.retain(|&active| active != client);
        }
    }

    /// Begins a transaction of a client, or lets its current operation return.
    fn act(&mut self, client: usize) {
        if self.clients[client].current.is_none() {
            return self.begin(client);
        }
        let clock = self.clock;
        let Client { current, returned, .. } = &mut self.clients[client];
        let (_, operations) = current.as_mut().expect("a transaction is running");
        operations[*returned].end = clock;
        *returned += 1;
        if let Some(next) = operations.get_mut(*returned) {
            next.start = clock;
            return;
        }
        let (session, operations) = current.take().expect("a transaction is running");
        self.executed += operations.len() as u32;
        self.end(client, session, operations);
        if self.workload.order == ClientOrder::None {
            self.free_sessions.push(session);
        }
    }

    fn begin(&mut self, client: usize) {
        let session = match self.workload.order {
            ClientOrder::None => {
                let any = self.random.below(self.free_sessions.len() as u32) as usize;
                self.free_sessions.swap_remove(any)
            }
            ClientOrder::Session | ClientOrder::Realtime => client as u32,
        };
        let (&least, &greatest) = (self.workload.sizes.start(), self.workload.sizes.end());
        // The width of the whole range does not fit into the type; a width less by one is
        // sufficient.
        let width = (greatest - least).saturating_add(1);
        let size = (least + self.random.below(width)).min(self.clients[client].left);
        self.clients[client].left -= size;
        let operations: Vec<Planned> = (0..size).map(|_| self.plan()).collect();
        let Client { current, returned, .. } = &mut self.clients[client];
        *current = Some((session, operations));
        *returned = 0;
        self.isolation.begin(client);
    }

    fn plan(&mut self) -> Planned {
        let is_read = self.random.unit() < self.workload.read_share;
        let slot = self.key_choice.choose(&mut self.random) as usize;
        let (key, writes) = self.slots[slot];
        let planned = |write| Planned { key, write, start: self.clock, end: self.clock };
        if is_read {
            return planned(None);
        }
        let mut operation = planned(Some(0));
        operation.write = Some(if self.workload.values > 0 {
            1 + self.random.below(self.workload.values)
        } else {
            self.written[key as usize] += 1;
            self.written[key as usize]
        });
        self.slots[slot].1 += 1;
        if writes + 1 == self.workload.writes_per_key {
            self.slots[slot] = (self.new_key(), 0);
        }
        operation
    }

    fn new_key(&mut self) -> u32 {
        self.keys.push(KeyVersions::default());
        self.written.push(0);
        self.keys.len() as u32 - 1
    }

    /// Runs a transaction on the store and records it.
    fn end(&mut self, client: usize, session: u32, operations: Vec<Planned>) {
        let effect = match operations.iter().any(|operation| operation.write.is_some()) {
            true => Effect::Writes,
            false => Effect::ReadOnly,
        };
        let outcome = self.random.unit();
        let aborted = self.workload.aborted_share;
        let status = if outcome < aborted {
            Status::Fail
        } else if effect == Effect::Writes && outcome < aborted + self.workload.indeterminate_share
        {
            Status::Unknown
        } else {
            Status::Ok
        };
        let takes_effect = match status {
            Status::Ok => true,
            Status::Fail => false,
            Status::Unknown => self.random.once_in(2),
        };
        let written: Vec<Version> = operations
            .iter()
            .filter(|operation| operation.write.is_some())
            .map(|operation| self.keys[operation.key as usize].latest())
            .collect();
        self.isolation.prepare(client, &written);
        let mut executed = Vec::with_capacity(operations.len());
        for (at, operation) in operations.iter().enumerate() {
            let action = self.execute(client, operation, &operations[..at]);
            if status == Status::Unknown && operation.write.is_none() {
                continue;
            }
            let time = self
                .workload
                .is_timed
                .then_some(Interval { start: operation.start, end: Some(operation.end) });
            executed.push(ExecutedOperation { key: operation.key, action, time });
        }
        if status == Status::Unknown
            && let Some(Interval { end, .. }) =
                executed.last_mut().and_then(|last| last.time.as_mut())
        {
            *end = None;
        }
        if takes_effect {
            self.install(client, effect, &operations);
        }
        self.finished.push_back(ExecutedTransaction { session, status, operations: executed });
    }

    /// Executes an operation after others of its transaction.
    fn execute(
        &mut self,
        client: usize,
        operation: &Planned,
        before: &[Planned],
    ) -> OperationAction {
        let mut own =
            before.iter().filter(|own| own.key == operation.key).filter_map(|own| own.write);
        let key = &self.keys[operation.key as usize];
        match (self.workload.data, operation.write) {
            (DataKind::Registers, Some(value)) => OperationAction::Write(value),
            (DataKind::Lists, Some(element)) => OperationAction::Append(element),
            (DataKind::Registers, None) => OperationAction::Read(match own.next_back() {
                Some(value) => value,
                None => self.isolation.version(client, key).value,
            }),
            (DataKind::Lists, None) => {
                let length = self.isolation.version(client, key).length as usize;
                OperationAction::ReadList(
                    key.elements[..length].iter().copied().chain(own).collect(),
                )
            }
        }
    }

    /// Makes the writes of a committed transaction visible.
    fn install(&mut self, client: usize, effect: Effect, operations: &[Planned]) {
        let Some(commit) = self.isolation.commit(client, effect) else { return };
        for (at, operation) in operations.iter().enumerate() {
            let Some(value) = operation.write else { continue };
            let key = &mut self.keys[operation.key as usize];
            if self.workload.data == DataKind::Lists {
                key.elements.push(value);
            }
            let is_later = |later: &Planned| later.key == operation.key && later.write.is_some();
            if operations[at + 1..].iter().any(is_later) {
                continue;
            }
            let version = Version {
                position: commit.position,
                client: client as u32,
                sequence: commit.sequence,
                value,
                length: key.elements.len() as u32,
            };
            let isolation = &self.isolation;
            key.push(version, |version| isolation.is_settled(version));
        }
    }

    /// Plants an anomaly in sessions that no transaction is using, if there are enough.
    fn plant(&mut self, anomaly: Anomaly) -> bool {
        let mut idle: Vec<u32> = match self.workload.order {
            ClientOrder::None => self.free_sessions.clone(),
            ClientOrder::Session | ClientOrder::Realtime => (0..self.clients.len())
                .filter(|&client| self.clients[client].current.is_none())
                .map(|client| client as u32)
                .collect(),
        };
        if idle.len() < anomaly.sessions() as usize {
            return false;
        }
        let sketch = anomaly.sketch();
        let mut keys: Vec<Option<u32>> = vec![None; 4];
        // All transactions overlap, except those of one session, so real time orders no others.
        let last = sketch.iter().map(Vec::len).max().unwrap_or(0) as i64;
        let from = self.clock + 1;
        for transactions in sketch {
            let any = self.random.below(idle.len() as u32) as usize;
            let session = idle.swap_remove(any);
            let count = transactions.len() as i64;
            for (row, transaction) in transactions.into_iter().enumerate() {
                let start = from + 2 * row as i64;
                let end = if row as i64 + 1 == count { from + 2 * last } else { start + 1 };
                let time = self.workload.is_timed.then_some(Interval { start, end: Some(end) });
                let operations = transaction.operations.into_iter().map(|operation| {
                    let key = *keys[operation.key as usize].get_or_insert_with(|| self.new_key());
                    let action = match (self.workload.data, operation.read) {
                        (DataKind::Registers, None) => OperationAction::Write(operation.value),
                        (DataKind::Registers, Some(_)) => OperationAction::Read(operation.value),
                        (DataKind::Lists, None) => OperationAction::Append(operation.value),
                        (DataKind::Lists, Some(list)) => OperationAction::ReadList(list),
                    };
                    ExecutedOperation { key, action, time }
                });
                let operations = operations.collect();
                let status = if transaction.is_aborted { Status::Fail } else { Status::Ok };
                self.finished.push_back(ExecutedTransaction { session, status, operations });
            }
            // The anomaly comes after all earlier commits and before the later transactions of its
            // sessions.
            if self.workload.order != ClientOrder::None {
                self.isolation.catch_up(session as usize);
            }
        }
        self.clock = from + 2 * last;
        true
    }
}

impl Iterator for Clients {
    type Item = ExecutedTransaction;

    fn next(&mut self) -> Option<ExecutedTransaction> {
        loop {
            if let Some(transaction) = self.finished.pop_front() {
                return Some(transaction);
            }
            if let Some(&(after, anomaly)) = self.plants.last()
                && after <= self.executed
            {
                if self.plant(anomaly) {
                    self.plants.pop();
                    continue;
                }
                // Only clients that are running a transaction continue, until enough sessions are
                // idle.
                self.step_busy();
                continue;
            }
            if self.active.is_empty() {
                return None;
            }
            self.step();
        }
    }
}
