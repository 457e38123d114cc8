//! Transactions in the form that the evaluator uses.
//!
//! Only the externally visible part of a transaction matters: its *external* reads, which precede
//! any write of the key in the same transaction, and its last write of each key. All initial writes
//! form one transaction. An aborted transaction is ignored. An indeterminate one counts if and only
//! if an operation reads from it, and then only its writes count, never its reads.
//!
//! This module finds the reads that no level allows; definitions do not. After a write of its own
//! transaction, a read must return that write (`InternalRead`); otherwise it must return the last
//! write of its key by another transaction that counts (`AbortedRead`, `IntermediateRead`,
//! `FutureRead`, `ThinAirRead`).
//!
//! A read of a list determines its source, the order of all transactions whose appends it contains,
//! and that all other appends come later. Two lists that disagree, or that separate the appends of
//! one transaction, are an `IncompatibleOrder`.

use consistory_definition::ClientOrder;
use consistory_history::{Action, History, Interval, KeyId, KeyKind, OpId, Status, Value, ValueId};

use crate::register::{BadRead, Register, Role};

/// The unit of the initial writes.
const INITIAL: usize = 0;

/// A transaction of the history; the first one is the initial transaction.
struct Txn {
    status: Status,
    session: Option<usize>,
    time: Option<Interval>,
    /// The transaction's operations, without failed ones.
    ops: Vec<usize>,
}

impl<'a> Register<'a> {
    /// Returns the view for a definition about transactions; the history must be one of
    /// transactions.
    pub(crate) fn of_transactions(history: &'a History, order: ClientOrder) -> Self {
        let size = history.len() + history.key_count();
        let mut view = View {
            register: Register {
                history,
                size,
                roles: vec![Role::default(); size],
                candidates: vec![Vec::new(); size],
                writes: Vec::new(),
                is_uncertain: vec![false; size],
                has_uncertain: false,
                unit_of: vec![INITIAL; size],
                members: Vec::new(),
                listed: Vec::new(),
                bad_read: None,
                client_order: Vec::new(),
                real_time: Vec::new(),
                forbids_future: false,
            },
            txns: transactions(history),
            shown: Vec::new(),
        };
        view.assign_roles();
        for at in 1..view.txns.len() {
            if view.txns[at].status == Status::Ok {
                view.read_all(at);
            }
        }
        view.settle_uncertain();
        view.order_units(order);
        view.register
    }
}

/// Collects the transactions, the initial one first.
fn transactions(history: &History) -> Vec<Txn> {
    let initial = Txn {
        status: Status::Ok,
        session: None,
        time: None,
        ops: history.keys().map(|key| history.initial_write(key).index()).collect(),
    };
    let recorded = history.all_transactions().map(|transaction| {
        let ops: Vec<usize> = transaction
            .ops
            .clone()
            .filter(|&op| history.own_status(OpId(op)) != Status::Fail)
            .map(|op| op as usize)
            .collect();
        let is_unknown = |&op: &usize| history.own_status(OpId::new(op)) == Status::Unknown;
        let status = match transaction.status {
            Status::Ok if ops.iter().any(is_unknown) => Status::Unknown,
            status => status,
        };
        // The end of an indeterminate transaction is unknown.
        let time = history.transaction_time(&transaction).map(|time| match status {
            Status::Ok => time,
            _ => Interval { end: None, ..time },
        });
        let session = Some(history.session_of(OpId(transaction.ops.start)).index());
        Txn { status, session, time, ops }
    });
    std::iter::once(initial).chain(recorded).collect()
}

struct View<'a> {
    register: Register<'a>,
    txns: Vec<Txn>,
    /// Transactions whose appends a list contains.
    shown: Vec<usize>,
}

impl View<'_> {
    /// Returns the key and value that an operation writes or appends.
    fn written(&self, at: usize) -> Option<(KeyId, ValueId)> {
        match self.register.history.action(OpId::new(at)) {
            Action::Write { key, value } | Action::Append { key, value } => Some((key, value)),
            Action::Rmw { key, write, .. } => Some((key, write)),
            Action::Read { .. } | Action::Fence | Action::Call(_) => None,
        }
    }

    /// Returns the values that a transaction writes to a key, in program order.
    fn values(&self, txn: usize, key: KeyId) -> impl DoubleEndedIterator<Item = ValueId> {
        let of_key = move |at: &usize| self.written(*at).filter(|write| write.0 == key);
        self.txns[txn].ops.iter().filter_map(of_key).map(|write| write.1)
    }

    /// Returns the transactions other than the given one that may count.
    fn others(&self, txn: usize) -> impl Iterator<Item = usize> {
        (1..self.txns.len())
            .filter(move |&other| other != txn && self.txns[other].status != Status::Fail)
    }

    /// Finds the units, the last writes and the fences.
    fn assign_roles(&mut self) {
        let history = self.register.history;
        self.register.writes = vec![Vec::new(); history.key_count()];
        for (unit, txn) in self.txns.iter().enumerate() {
            let mut members = Vec::new();
            for (i, &at) in txn.ops.iter().enumerate() {
                self.register.unit_of[at] = unit;
                if txn.status == Status::Fail {
                    continue;
                }
                let role = &mut self.register.roles[at];
                role.is_fence =
                    txn.status == Status::Ok && history.action(OpId::new(at)) == Action::Fence;
                if let Some((key, _)) = self.written(at) {
                    let later = &txn.ops[i + 1..];
                    let is_key = |&at: &usize| self.written(at).is_some_and(|w| w.0 == key);
                    if !later.iter().any(is_key) {
                        self.register.roles[at].writes = true;
                        self.register.writes[key.index()].push(at);
                    }
                }
                if self.register.roles[at].is_any() {
                    members.push(at);
                }
            }
            self.register.members.push(members);
        }
    }

    /// Returns the last write of a key by a transaction.
    fn last_write(&self, unit: usize, key: KeyId) -> usize {
        let writes = &self.register.writes[key.index()];
        let found = writes.iter().copied().find(|&write| self.register.unit_of[write] == unit);
        found.expect("the transaction writes the key")
    }

    /// Finds the candidate sources of a transaction's external reads.
    fn read_all(&mut self, txn: usize) {
        for i in 0..self.txns[txn].ops.len() {
            let at = self.txns[txn].ops[i];
            let (key, value) = match self.register.history.action(OpId::new(at)) {
                Action::Read { key, value } | Action::Rmw { key, read: value, .. } => (key, value),
                _ => continue,
            };
            let of_key = |at: &usize| self.written(*at).filter(|write| write.0 == key);
            let own: Vec<ValueId> =
                self.txns[txn].ops[..i].iter().filter_map(of_key).map(|write| write.1).collect();
            let found = match (self.register.history.key_kind(key), own.last()) {
                (KeyKind::List, _) => self.list_source(txn, key, value, &own),
                (_, Some(&last)) if last == value => continue,
                (_, Some(_)) => Err("InternalRead"),
                (_, None) => self.sources(txn, key, value),
            };
            match found {
                Ok(units) => {
                    self.register.candidates[at] =
                        units.into_iter().map(|unit| self.last_write(unit, key)).collect();
                    self.register.roles[at].reads = true;
                    let members = &mut self.register.members[txn];
                    if !members.contains(&at) {
                        members.push(at);
                    }
                }
                Err(pattern) => {
                    let bad = BadRead::NoSource { read: at, pattern };
                    self.register.bad_read.get_or_insert(bad);
                }
            }
        }
    }

    /// Finds the transactions whose last write of a register has a value.
    fn sources(&self, txn: usize, key: KeyId, value: ValueId) -> Result<Vec<usize>, &'static str> {
        let mut found: Vec<usize> = self
            .others(txn)
            .filter(|&other| self.values(other, key).next_back() == Some(value))
            .collect();
        if self.register.history.initial_value(key) == value {
            found.insert(0, INITIAL);
        }
        if found.is_empty() { Err(self.why_nobody(txn, key, value)) } else { Ok(found) }
    }

    /// Returns the reason why no transaction can have written a value that was read.
    fn why_nobody(&self, txn: usize, key: KeyId, value: ValueId) -> &'static str {
        let writes = |other: &usize| self.values(*other, key).any(|written| written == value);
        if self.others(txn).any(|other| writes(&other)) {
            "IntermediateRead"
        } else if (1..self.txns.len()).filter(|&other| other != txn).any(|other| writes(&other)) {
            "AbortedRead"
        } else if writes(&txn) {
            "FutureRead"
        } else {
            "ThinAirRead"
        }
    }

    /// Finds the transaction that wrote the version of a list that was read, and records the order
    /// of versions in the list; `own` are the reader's own appends so far.
    fn list_source(
        &mut self,
        txn: usize,
        key: KeyId,
        value: ValueId,
        own: &[ValueId],
    ) -> Result<Vec<usize>, &'static str> {
        let history = self.register.history;
        let Value::List(list) = history.value(value) else { return Err("ThinAirRead") };
        let initial: &[Value] = match history.value(history.initial_value(key)) {
            Value::List(elements) => elements,
            _ => &[],
        };
        let own = own.iter().map(|&id| history.value(id));
        let Some(length) = list.len().checked_sub(own.len()) else { return Err("InternalRead") };
        if !list[length..].iter().eq(own) {
            return Err("InternalRead");
        }
        let Some(mut rest) = list[..length].strip_prefix(initial) else {
            return Err("IncompatibleOrder");
        };
        let mut writers = vec![INITIAL];
        while let Some(first) = rest.first() {
            let id = history.values().find(first);
            let is_writer = |&other: &usize| self.values(other, key).any(|v| Some(v) == id);
            let Some(writer) = self.others(txn).find(is_writer) else {
                return Err(match id {
                    Some(id) => self.why_nobody(txn, key, id),
                    None => "ThinAirRead",
                });
            };
            let appends: Vec<&Value> =
                self.values(writer, key).map(|value| history.value(value)).collect();
            if writers.contains(&writer) {
                return Err("IncompatibleOrder");
            }
            let shown = rest.len().min(appends.len());
            if !rest[..shown].iter().eq(appends[..shown].iter().copied()) {
                return Err("IncompatibleOrder");
            }
            if shown < appends.len() {
                return Err("IntermediateRead");
            }
            rest = &rest[shown..];
            writers.push(writer);
        }
        let last = writers[writers.len() - 1];
        let write = |unit| self.last_write(unit, key);
        let mut listed: Vec<(usize, usize)> =
            writers.windows(2).map(|pair| (write(pair[0]), write(pair[1]))).collect();
        for later in self.register.writes[key.index()].iter().copied() {
            if !writers.contains(&self.register.unit_of[later]) {
                listed.push((write(last), later));
            }
        }
        self.register.listed.extend(listed);
        self.shown.extend(&writers[1..]);
        Ok(vec![last])
    }

    /// Determines the operations that count only if they are read from, and finds lists that
    /// disagree.
    fn settle_uncertain(&mut self) {
        self.register.listed.sort_unstable();
        self.register.listed.dedup();
        self.register.members.iter_mut().for_each(|members| members.sort_unstable());
        let register = &mut self.register;
        for (unit, txn) in self.txns.iter().enumerate() {
            if txn.status == Status::Unknown && !self.shown.contains(&unit) {
                for &at in &register.members[unit] {
                    register.is_uncertain[at] = true;
                }
            }
        }
        register.has_uncertain =
            register.candidates.iter().flatten().any(|&write| register.is_uncertain[write]);
        if register.bad_read.is_some() {
            return;
        }
        let mut order = consistory_order::Matrix::empty(register.size);
        for &(first, second) in &register.listed {
            order.insert(first, second);
        }
        // All pairs belong to one key each, so a cycle means that two lists of a key disagree.
        if !order.is_acyclic() {
            order.close();
            let is_torn = |&read: &usize| {
                let source = register.candidates[read].first();
                source.is_some_and(|&write| order.contains(write, write))
            };
            let reads = (0..register.size).filter(|&at| register.roles[at].reads);
            let read = reads.clone().find(is_torn).or(reads.clone().next());
            let read = read.expect("a list was read");
            register.bad_read = Some(BadRead::NoSource { read, pattern: "IncompatibleOrder" });
        }
    }

    /// Orders the transactions by client order and real time.
    fn order_units(&mut self, order: ClientOrder) {
        let ends_before = |first: &Txn, second: &Txn| {
            let end = first.time.and_then(|time| time.end);
            end.zip(second.time).is_some_and(|(end, second)| end < second.start)
        };
        for (b, second) in self.txns.iter().enumerate() {
            for (a, first) in self.txns.iter().enumerate().filter(|&(a, _)| a != b) {
                if b == INITIAL {
                    continue;
                }
                let in_time = ends_before(first, second);
                let in_session = a < b && first.session == second.session;
                let is_ordered = match order {
                    ClientOrder::None => false,
                    ClientOrder::Session => in_session,
                    ClientOrder::Realtime => in_session || in_time,
                };
                if a == INITIAL || is_ordered {
                    self.register.client_order.push((a, b));
                }
                if in_time {
                    self.register.real_time.push((a, b));
                }
            }
        }
    }
}
