//! A history as transactions: the last write of each transaction to each key, and its external
//! reads.
//!
//! A node is a transaction that may count: committed, or indeterminate. Nodes are numbered session
//! by session in session order. The initial transaction is [`INITIAL`] and not a node. The reads of
//! an indeterminate transaction are ignored; the transaction itself counts if and only if a
//! committed transaction reads from it.
//!
//! This module finds the reads that no level allows ([`Transactions::bad_reads`]); every other
//! external read has one source or, if a value was written more than once, several candidates.

use std::ops::Range;

use consistory_history::{Action, History, KeyId, KeyKind, OpId, Status, Value, ValueId};
use consistory_verdict::BadRead;

use crate::lists::Lists;
use crate::writes::{RawWrite, Writes};

/// The initial transaction, as the source of a read.
pub const INITIAL: u32 = u32::MAX;

/// The source of a read that has several candidates, or only bad ones.
pub const OPEN: u32 = u32::MAX - 1;

/// Reason why the isolation levels do not apply to a history.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DoesNotApply {
    /// An operation is an object's call.
    #[error("it has objects' calls, which have no isolation level")]
    Calls,
    /// A key is both written and appended to.
    #[error("the key {key} is both written and appended to")]
    MixedKey {
        /// The key's name.
        key: Box<str>,
    },
    /// A value is appended twice to a list, so that a read does not determine its source.
    #[error("the value {value} is appended twice to the list {key}")]
    RepeatedAppend {
        /// The key's name.
        key: Box<str>,
        /// The value.
        value: Value,
    },
    /// The history states final values.
    #[error("it states final values, which the isolation levels do not use")]
    FinalValues,
}

/// An external read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Read {
    /// The operation.
    pub op: OpId,
    /// The key.
    pub key: KeyId,
}

/// The last write of a key by a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Write {
    /// The key.
    pub key: KeyId,
    /// The operation.
    pub op: OpId,
}

/// A read that no level allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundBadRead {
    /// Kind of the bad read.
    pub kind: BadRead,
    /// The read.
    pub read: OpId,
    /// For an incompatible order, the read of the other list.
    pub other: Option<OpId>,
}

/// A read with several candidates to read from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ambiguous {
    /// The read's index.
    pub read: u32,
    /// Nodes that the read may read from, [`INITIAL`] first if it is one of them.
    pub candidates: Vec<u32>,
}

/// The transactions of a history.
#[derive(Debug)]
pub struct Transactions<'h> {
    history: &'h History,
    ops: Vec<Range<u32>>,
    /// First node of each session, followed by the number of nodes.
    session_starts: Vec<u32>,
    session: Vec<u32>,
    indeterminate: Vec<bool>,
    /// Start of each node and, if known, its end; empty if no operation has a time.
    times: Vec<Option<(i64, Option<i64>)>>,
    read_starts: Vec<u32>,
    reads: Vec<Read>,
    sources: Vec<u32>,
    write_starts: Vec<u32>,
    writes: Vec<Write>,
    ambiguous: Vec<Ambiguous>,
    bad: Vec<FoundBadRead>,
    lists: Lists,
    /// Whether an unambiguous read of a committed transaction makes the node count.
    read_from: Vec<bool>,
}

/// Data of one transaction during the scan of the history.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    /// Node of the transaction, or `None` if it is aborted.
    pub(crate) node: Option<u32>,
}

impl<'h> Transactions<'h> {
    /// Builds the view, or returns why levels do not apply to the history.
    pub fn new(history: &'h History) -> Result<Self, DoesNotApply> {
        if history.has_calls() {
            return Err(DoesNotApply::Calls);
        }
        if !history.finals().is_empty() {
            return Err(DoesNotApply::FinalValues);
        }
        for key in history.keys() {
            if history.key_kind(key) == KeyKind::Mixed {
                return Err(DoesNotApply::MixedKey { key: history.key_name(key).into() });
            }
        }
        let mut view = Transactions {
            history,
            ops: Vec::new(),
            session_starts: vec![0; history.session_count() + 1],
            session: Vec::new(),
            indeterminate: Vec::new(),
            times: Vec::new(),
            read_starts: vec![0],
            reads: Vec::new(),
            sources: Vec::new(),
            write_starts: vec![0],
            writes: Vec::new(),
            ambiguous: Vec::new(),
            bad: Vec::new(),
            lists: Lists::new(history),
            read_from: Vec::new(),
        };
        let has_times = history.ops().any(|op| history.time(op).is_some());
        let (mut units, mut unit_ops) = (Vec::new(), Vec::new());
        let mut raw: Vec<RawWrite> = Vec::new();
        let mut unit_starts = vec![0u32];
        // Latest write of each key, and its transaction.
        let mut latest = vec![(u32::MAX, 0u32); history.key_count()];
        for (unit, transaction) in (0u32..).zip(history.all_transactions()) {
            let session = history.session_of(OpId(transaction.ops.start));
            let own = |op: u32| history.own_status(OpId(op));
            let aborted = transaction.status == Status::Fail;
            let indeterminate = transaction.status == Status::Unknown
                || transaction.ops.clone().any(|op| own(op) == Status::Unknown);
            let node = (!aborted).then_some(view.ops.len() as u32);
            let first = raw.len();
            for op in transaction.ops.clone() {
                if own(op) == Status::Fail {
                    continue;
                }
                let (key, value) = match history.action(OpId(op)) {
                    Action::Write { key, value }
                    | Action::Rmw { key, write: value, .. }
                    | Action::Append { key, value } => (key, value),
                    Action::Read { .. } | Action::Fence | Action::Call(_) => continue,
                };
                let (by, at) = latest[key.index()];
                if by == unit {
                    raw[at as usize].is_last = false;
                }
                latest[key.index()] = (unit, raw.len() as u32);
                raw.push(RawWrite { unit, key, value, op: OpId(op), is_last: true });
            }
            unit_starts.push(raw.len() as u32);
            units.push(Unit { node });
            unit_ops.push(transaction.ops.clone());
            if node.is_some() {
                let last_writes = raw[first..].iter().filter(|write| write.is_last);
                view.writes.extend(last_writes.map(|write| Write { key: write.key, op: write.op }));
                view.write_starts.push(view.writes.len() as u32);
                view.session.push(session.0);
                view.session_starts[session.index() + 1] += 1;
                view.indeterminate.push(indeterminate);
                if has_times {
                    let time = history.transaction_time(&transaction);
                    view.times
                        .push(time.map(|time| (time.start, time.end.filter(|_| !indeterminate))));
                }
                view.ops.push(transaction.ops);
            }
        }
        for s in 1..view.session_starts.len() {
            view.session_starts[s] += view.session_starts[s - 1];
        }
        view.read_from = vec![false; view.ops.len()];
        let writes = Writes::new(history, raw, unit_starts);
        writes.check_lists(history)?;
        view.collect_reads(&units, &unit_ops, &writes);
        view.lists.finish(&writes, &units, &mut view.read_from);
        Ok(view)
    }

    /// Resolves every read of the committed transactions.
    fn collect_reads(&mut self, units: &[Unit], unit_ops: &[Range<u32>], writes: &Writes) {
        let history = self.history;
        // Transaction that last wrote each key, and the value.
        let mut own = vec![(u32::MAX, ValueId(0)); history.key_count()];
        for (unit, (facts, ops)) in (0u32..).zip(units.iter().zip(unit_ops)) {
            let Some(node) = facts.node else { continue };
            if self.indeterminate[node as usize] {
                self.read_starts.push(self.reads.len() as u32);
                continue;
            }
            for op in ops.clone().map(OpId) {
                if history.own_status(op) == Status::Fail {
                    continue;
                }
                let (read, write) = match history.action(op) {
                    Action::Read { key, value } => (Some((key, value)), None),
                    Action::Write { key, value } => (None, Some((key, value))),
                    Action::Rmw { key, read, write } => (Some((key, read)), Some((key, write))),
                    Action::Append { key, value } => {
                        self.lists.append(unit, key, value);
                        continue;
                    }
                    Action::Fence | Action::Call(_) => continue,
                };
                if let Some((key, value)) = read {
                    if history.key_kind(key) == KeyKind::List {
                        self.read_list(unit, op, (key, value), units, writes);
                    } else if own[key.index()].0 == unit {
                        if own[key.index()].1 != value {
                            self.report(BadRead::Internal, op, None);
                        }
                    } else {
                        self.read_register(unit, op, (key, value), units, writes);
                    }
                }
                if let Some((key, value)) = write {
                    own[key.index()] = (unit, value);
                }
            }
            self.read_starts.push(self.reads.len() as u32);
        }
    }

    fn read_register(
        &mut self,
        unit: u32,
        op: OpId,
        (key, value): (KeyId, ValueId),
        units: &[Unit],
        writes: &Writes,
    ) {
        let (mut aborted, mut intermediate, mut future) = (false, false, false);
        let initial = self.history.initial_value(key) == value;
        let mut only = OPEN;
        let mut many: Vec<u32> = Vec::new();
        let mut count = 0;
        if initial {
            only = INITIAL;
            count = 1;
        }
        for write in writes.of(key, value) {
            if write.unit == unit {
                future = true;
                continue;
            }
            match units[write.unit as usize].node {
                None => aborted = true,
                Some(_) if !write.is_last => intermediate = true,
                Some(node) => {
                    count += 1;
                    if count == 2 {
                        many.push(only);
                    }
                    if count > 1 {
                        many.push(node);
                    }
                    only = node;
                }
            }
        }
        if count == 0 {
            let kind = match (aborted, intermediate, future) {
                (true, _, _) => BadRead::Aborted,
                (_, true, _) => BadRead::Intermediate,
                (_, _, true) => BadRead::Future,
                _ => BadRead::ThinAir,
            };
            return self.report(kind, op, None);
        }
        let source = if count == 1 { only } else { OPEN };
        if count > 1 {
            many.sort_unstable_by_key(|&node| node.wrapping_add(1));
            self.ambiguous.push(Ambiguous { read: self.reads.len() as u32, candidates: many });
        }
        self.push_read(op, key, source);
    }

    fn read_list(
        &mut self,
        unit: u32,
        op: OpId,
        read: (KeyId, ValueId),
        units: &[Unit],
        writes: &Writes,
    ) {
        match self.lists.read(self.history, unit, op, read, units, writes) {
            Ok(source) => self.push_read(op, read.0, source),
            Err((kind, other)) => self.report(kind, op, other),
        }
    }

    fn push_read(&mut self, op: OpId, key: KeyId, source: u32) {
        if let Some(counts) = self.read_from.get_mut(source as usize) {
            *counts = true;
        }
        self.reads.push(Read { op, key });
        self.sources.push(source);
    }

    fn report(&mut self, kind: BadRead, read: OpId, other: Option<OpId>) {
        self.bad.push(FoundBadRead { kind, read, other });
    }

    /// Returns the history.
    pub fn history(&self) -> &'h History {
        self.history
    }

    /// Counts the nodes.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Checks whether there is no transaction that may count.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Returns the first operation of a node.
    pub fn first_op(&self, node: u32) -> OpId {
        OpId(self.ops[node as usize].start)
    }

    /// Returns the operations of a node.
    pub fn ops(&self, node: u32) -> Range<u32> {
        self.ops[node as usize].clone()
    }

    /// Returns the nodes of a session, which are consecutive.
    pub fn session_nodes(&self, session: usize) -> Range<u32> {
        self.session_starts[session]..self.session_starts[session + 1]
    }

    /// Counts the sessions.
    pub fn session_count(&self) -> usize {
        self.session_starts.len() - 1
    }

    /// Returns the session of a node.
    pub fn session_of(&self, node: u32) -> u32 {
        self.session[node as usize]
    }

    /// Checks whether the outcome of a node's transaction is unknown.
    pub fn is_indeterminate(&self, node: u32) -> bool {
        self.indeterminate[node as usize]
    }

    /// Returns the start of a node, and its end if it certainly ended.
    pub fn time(&self, node: u32) -> Option<(i64, Option<i64>)> {
        self.times.get(node as usize).copied().flatten()
    }

    /// Returns the external reads of all nodes, node by node in program order.
    pub fn reads(&self) -> &[Read] {
        &self.reads
    }

    /// Returns the range of a node's external reads in [`reads`](Transactions::reads).
    pub fn reads_of(&self, node: u32) -> Range<usize> {
        self.read_starts[node as usize] as usize..self.read_starts[node as usize + 1] as usize
    }

    /// Returns the source of each read, or [`OPEN`] if it has several candidates.
    pub fn sources(&self) -> &[u32] {
        &self.sources
    }

    /// Returns the reads that have several candidates.
    pub fn ambiguous(&self) -> &[Ambiguous] {
        &self.ambiguous
    }

    /// Returns the last writes of all nodes, node by node; each node has one write per key.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// Returns the range of a node's writes in [`writes`](Transactions::writes).
    pub fn writes_of(&self, node: u32) -> Range<usize> {
        self.write_starts[node as usize] as usize..self.write_starts[node as usize + 1] as usize
    }

    /// Returns the reads that no level allows.
    pub fn bad_reads(&self) -> &[FoundBadRead] {
        &self.bad
    }

    /// Checks whether an unambiguous read makes an indeterminate node count.
    pub(crate) fn is_read_from(&self, node: u32) -> bool {
        self.read_from[node as usize]
    }

    /// Returns the version orders derived from lists.
    pub fn lists(&self) -> &Lists {
        &self.lists
    }

    /// Returns the last write of a node to a key.
    pub fn last_write(&self, node: u32, key: KeyId) -> Option<OpId> {
        let writes = &self.writes[self.writes_of(node)];
        writes.iter().find(|write| write.key == key).map(|write| write.op)
    }
}
