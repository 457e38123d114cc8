//! The source of each read, derived from the values.
//!
//! Reads and writes are grouped by key. For each key, a table of the last write of each value
//! yields the candidates of the key's reads. Cost: linear in the history; threads share the keys.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use consistory_history::{History, KeyId, OpId, ValueId};
use consistory_verdict::{Options, Stopped};
use consistory_work::side_by_side;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::definition::Projection;
use crate::limits::Limits;
use crate::{Rejection, exists, name};

/// No write.
const NONE: u32 = u32::MAX;

/// Histories with fewer operations are grouped by one thread.
const PARALLEL_OPS: usize = 50_000;

/// Number of key ranges per thread, so that no thread waits long for another.
const RANGES_PER_THREAD: usize = 4;

/// The writes from which each read can have taken its value.
pub(crate) struct Candidates<'a> {
    pub(crate) history: &'a History,
    /// The only candidate of each recorded operation, if it is a read with exactly one candidate.
    only: Vec<AtomicU32>,
    /// For each read with several candidates, the write of its value with the largest id.
    latest: FxHashMap<OpId, OpId>,
    /// For each write, the write with the next smaller id of the same value to the same key.
    earlier: Vec<AtomicU32>,
    /// Transactions of the operations, for definitions about transactions.
    pub(crate) transactions: Option<&'a Projection>,
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(history: &'a History) -> Self {
        Self::within(history, Limits(&Options::default())).expect("there are no limits")
    }

    /// Finds the candidates, unless a limit is reached.
    pub(crate) fn within(history: &'a History, limits: Limits<'_>) -> Result<Self, Stopped> {
        Self::find(history, None, limits)
    }

    /// Finds the candidates in a history of transactions, none of which reads from itself.
    pub(crate) fn of_transactions(projection: &'a Projection) -> Self {
        Self::find(&projection.history, Some(projection), Limits(&Options::default()))
            .expect("there are no limits")
    }

    fn find(
        history: &'a History,
        transactions: Option<&'a Projection>,
        limits: Limits<'_>,
    ) -> Result<Self, Stopped> {
        let nothing = |count: usize| (0..count).map(|_| AtomicU32::new(NONE)).collect();
        let ids = history.len() + history.key_count();
        limits.reserve::<u32>(2 * ids)?;
        let mut candidates = Candidates {
            history,
            only: nothing(history.len()),
            latest: FxHashMap::default(),
            earlier: nothing(ids),
            transactions,
        };
        limits.0.budget.check()?;
        limits.reserve::<Access>(2 * ids)?;
        let writes = Accesses::new(history, ids, |op| history.writes(op));
        let reads = Accesses::new(history, history.len(), |op| history.reads(op));
        let threads = if history.len() < PARALLEL_OPS { 1 } else { limits.0.jobs.max(1) };
        let ranges = match threads {
            1 => 1,
            _ => history.key_count().min(RANGES_PER_THREAD * threads),
        };
        let keys = |range: usize| (range * history.key_count()).div_ceil(ranges) as u32;
        let found = side_by_side(ranges, threads, |range| {
            candidates.find_of_keys(keys(range)..keys(range + 1), &writes, &reads, limits)
        });
        for latest in found {
            candidates.latest.extend(latest?);
        }
        Ok(candidates)
    }

    /// Finds the candidates of the reads of some keys; returns the latest candidate of each read
    /// that has several.
    fn find_of_keys(
        &self,
        keys: Range<u32>,
        writes: &Accesses,
        reads: &Accesses,
        limits: Limits<'_>,
    ) -> Result<Vec<(OpId, OpId)>, Stopped> {
        let mut several = Vec::new();
        let mut last_of_value = vec![NONE; self.history.values().len()];
        let mut steps = 0;
        for key in keys.map(KeyId) {
            for &Access { op, value } in writes.of(key) {
                let last = std::mem::replace(&mut last_of_value[value.index()], op.0);
                self.earlier[op.index()].store(last, Relaxed);
            }
            for &Access { op: read, value } in reads.of(key) {
                limits.step(steps)?;
                steps += 1;
                let Some(latest) = some(last_of_value[value.index()]) else { continue };
                let mut candidates = self.from(read, latest);
                match (candidates.next(), candidates.next()) {
                    (Some(only), None) => self.only[read.index()].store(only.0, Relaxed),
                    (Some(_), Some(_)) => several.push((read, latest)),
                    (None, _) => {}
                }
            }
            for write in writes.of(key) {
                last_of_value[write.value.index()] = NONE;
            }
        }
        Ok(several)
    }

    /// Checks whether two operations are of one transaction.
    fn is_internal(&self, read: OpId, write: OpId) -> bool {
        self.transactions.is_some_and(|t| t.units[read.index()] == t.units[write.index()])
    }

    /// Iterates over the candidates of a read, from the latest write of its value backwards.
    #[inline]
    fn from(&self, read: OpId, latest: OpId) -> impl Iterator<Item = OpId> {
        std::iter::successors(Some(latest), |write| some(self.earlier[write.index()].load(Relaxed)))
            .filter(move |&write| write != read && !self.is_internal(read, write))
    }

    /// Iterates over the candidates of a read; an operation that does not count as a read has none.
    pub(crate) fn of(&self, read: OpId) -> impl Iterator<Item = OpId> {
        let only = self.only.get(read.index()).and_then(|only| some(only.load(Relaxed)));
        let several = self.latest.get(&read).map(|&latest| self.from(read, latest));
        only.into_iter().chain(several.into_iter().flatten())
    }

    /// Returns whether a write is a candidate of a read.
    fn has(&self, read: OpId, write: OpId) -> bool {
        let found = self.history.reads(read);
        found.is_some()
            && found == self.history.writes(write)
            && read != write
            && !self.is_internal(read, write)
    }
}

/// Returns the operation of an entry, unless the entry is `NONE`.
#[inline]
fn some(entry: u32) -> Option<OpId> {
    (entry != NONE).then_some(OpId(entry))
}

/// An operation that reads or writes a key, and its value.
#[derive(Clone, Copy)]
struct Access {
    op: OpId,
    value: ValueId,
}

/// Operations grouped by key, each group in the order of their ids.
struct Accesses {
    /// For each key, the number of operations with smaller keys; finally, the number of all
    /// operations.
    starts: Vec<u32>,
    accesses: Vec<Access>,
}

impl Accesses {
    fn new(
        history: &History,
        ids: usize,
        access: impl Fn(OpId) -> Option<(KeyId, ValueId)>,
    ) -> Self {
        let ids = || (0..ids as u32).map(OpId);
        let mut starts = vec![0; history.key_count() + 1];
        for (key, _) in ids().filter_map(&access) {
            starts[key.index() + 1] += 1;
        }
        for key in 1..starts.len() {
            starts[key] += starts[key - 1];
        }
        let mut next = starts.clone();
        let nothing = Access { op: OpId(0), value: ValueId(0) };
        let mut accesses = vec![nothing; starts[history.key_count()] as usize];
        for op in ids() {
            let Some((key, value)) = access(op) else { continue };
            let slot = &mut next[key.index()];
            accesses[*slot as usize] = Access { op, value };
            *slot += 1;
        }
        Accesses { starts, accesses }
    }

    fn of(&self, key: KeyId) -> &[Access] {
        let (start, end) = (self.starts[key.index()], self.starts[key.index() + 1]);
        &self.accesses[start as usize..end as usize]
    }
}

/// Known source of each read.
pub(crate) struct ReadsFrom<'a> {
    pub(crate) history: &'a History,
    /// Known source of each recorded operation, or `NONE`.
    source: Vec<u32>,
    /// For each write, or for each transaction, the number of operations that are known to read
    /// from it; empty if all operations are known to have taken effect.
    readers: Vec<u32>,
    transactions: Option<&'a Projection>,
}

impl<'a> ReadsFrom<'a> {
    /// Derives the source of each read with one candidate.
    pub(crate) fn unambiguous(candidates: &Candidates<'a>) -> Self {
        let history = candidates.history;
        let source: Vec<u32> = candidates.only.iter().map(|only| only.load(Relaxed)).collect();
        let transactions = candidates.transactions;
        let mut wr = ReadsFrom { history, source, readers: Vec::new(), transactions };
        if !history.ops().all(|op| history.is_certain(op)) {
            wr.readers = vec![0; history.len() + history.key_count() + 1];
            for write in wr.source.iter().copied().filter_map(some) {
                let at = wr.counted_as(write);
                wr.readers[at] += 1;
            }
        }
        wr
    }

    /// Derives the source of every read, using the certificate's choices where there are several
    /// candidates.
    pub(crate) fn chosen(
        candidates: &Candidates<'a>,
        choices: &[(OpId, OpId)],
    ) -> Result<Self, Rejection> {
        let history = candidates.history;
        let mut wr = Self::unambiguous(candidates);
        let mut chosen = FxHashSet::default();
        for &(read, write) in choices {
            let possible = exists(history, write)
                && read.index() < history.len()
                && candidates.has(read, write)
                && chosen.insert(read);
            if !possible {
                let (read, write) = (name(history, read), name(history, write));
                return Err(Rejection::BadChoice { read, write });
            }
            wr.set(read, Some(write));
        }
        for op in history.ops() {
            if history.reads(op).is_some() && wr.source(op).is_none() {
                let read = name(history, op);
                return Err(match candidates.of(op).next() {
                    Some(_) => Rejection::NoChoice { read },
                    None => Rejection::NoCandidate { read },
                });
            }
        }
        Ok(wr)
    }

    /// Returns the known source of an operation.
    #[inline]
    pub(crate) fn source(&self, op: OpId) -> Option<OpId> {
        self.source.get(op.index()).copied().and_then(some)
    }

    /// Sets the source of a read, and returns the previous one.
    pub(crate) fn set(&mut self, read: OpId, write: Option<OpId>) -> Option<OpId> {
        let entry = write.map_or(NONE, |write| write.0);
        let before = some(std::mem::replace(&mut self.source[read.index()], entry));
        if !self.readers.is_empty() {
            if let Some(write) = before {
                let at = self.counted_as(write);
                self.readers[at] -= 1;
            }
            if let Some(write) = write {
                let at = self.counted_as(write);
                self.readers[at] += 1;
            }
        }
        before
    }

    /// Returns whether an operation counts: it took effect, or some operation is known to read from
    /// it.
    #[inline]
    pub(crate) fn counts(&self, op: OpId) -> bool {
        self.history.is_certain(op)
            || (self.readers[self.counted_as(op)] > 0
                && (self.transactions.is_none() || self.history.writes(op).is_some()))
    }

    /// Returns the index at which the readers of a write are counted: its own, or that of its
    /// transaction.
    #[inline]
    fn counted_as(&self, write: OpId) -> usize {
        match self.transactions {
            Some(transactions) => transactions.units[write.index()] as usize,
            None => write.index(),
        }
    }

    /// Returns the key that an operation writes, if it counts.
    #[inline]
    pub(crate) fn writes(&self, op: OpId) -> Option<KeyId> {
        self.history.writes(op).filter(|_| self.counts(op)).map(|(key, _)| key)
    }

    /// Returns the key that an operation reads.
    #[inline]
    pub(crate) fn reads(&self, op: OpId) -> Option<KeyId> {
        self.history.reads(op).map(|(key, _)| key)
    }
}
