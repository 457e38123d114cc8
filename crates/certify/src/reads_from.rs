//! What each read reads from, worked out from the values.

use consistory_history::{History, KeyId, OpId, ValueId};
use rustc_hash::FxHashMap;

use crate::definition::Projection;
use crate::{Rejection, exists, name};

/// The writes that each read can have taken its value from.
pub(crate) struct Candidates<'a> {
    pub(crate) history: &'a History,
    /// The latest id among the writes of a value to a key.
    latest: FxHashMap<(KeyId, ValueId), OpId>,
    /// For each write the one with the next smaller id that writes the same value to the same key.
    earlier: Vec<Option<OpId>>,
    /// Transactions of the operations, for definitions about transactions.
    pub(crate) transactions: Option<&'a Projection>,
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(history: &'a History) -> Self {
        let ids = (history.len() + history.key_count()) as u32;
        let mut latest = FxHashMap::default();
        let earlier = (0..ids)
            .map(|id| history.writes(OpId(id)).and_then(|write| latest.insert(write, OpId(id))))
            .collect();
        Candidates { history, latest, earlier, transactions: None }
    }

    /// Returns the candidates of a history of transactions: no transaction reads from itself.
    pub(crate) fn of_transactions(projection: &'a Projection) -> Self {
        Candidates { transactions: Some(projection), ..Candidates::new(&projection.history) }
    }

    /// Checks whether two operations are of one transaction.
    fn is_internal(&self, read: OpId, write: OpId) -> bool {
        self.transactions.is_some_and(|t| t.units[read.index()] == t.units[write.index()])
    }

    /// Iterates over the candidates of a read; what does not count as a read has none.
    pub(crate) fn of(&self, read: OpId) -> impl Iterator<Item = OpId> {
        let latest = self.history.reads(read).and_then(|found| self.latest.get(&found).copied());
        std::iter::successors(latest, |write| self.earlier[write.index()])
            .filter(move |&write| write != read && !self.is_internal(read, write))
    }

    /// Says whether a write is a candidate of a read.
    fn has(&self, read: OpId, write: OpId) -> bool {
        let found = self.history.reads(read);
        found.is_some()
            && found == self.history.writes(write)
            && read != write
            && !self.is_internal(read, write)
    }
}

/// What each read is known to read from.
pub(crate) struct ReadsFrom<'a> {
    pub(crate) history: &'a History,
    /// For each recorded operation what it is known to read from.
    source: Vec<Option<OpId>>,
    /// For each write, or for each transaction, how many operations are known to read from it.
    readers: Vec<u32>,
    transactions: Option<&'a Projection>,
}

impl<'a> ReadsFrom<'a> {
    /// Knows what each read with one candidate reads from.
    pub(crate) fn unambiguous(candidates: &Candidates<'a>) -> Self {
        let history = candidates.history;
        let mut wr = ReadsFrom {
            history,
            source: vec![None; history.len()],
            readers: vec![0; history.len() + history.key_count() + 1],
            transactions: candidates.transactions,
        };
        for read in history.ops() {
            let mut writes = candidates.of(read);
            if let (Some(only), None) = (writes.next(), writes.next()) {
                wr.set(read, Some(only));
            }
        }
        wr
    }

    /// Knows what every read reads from, by a certificate's choices where they are needed.
    pub(crate) fn chosen(
        candidates: &Candidates<'a>,
        choices: &[(OpId, OpId)],
    ) -> Result<Self, Rejection> {
        let history = candidates.history;
        let mut wr = Self::unambiguous(candidates);
        let mut chosen = vec![false; history.len()];
        for &(read, write) in choices {
            let possible = exists(history, write)
                && read.index() < history.len()
                && candidates.has(read, write)
                && !std::mem::replace(&mut chosen[read.index()], true);
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

    /// Gives what an operation is known to read from.
    #[inline]
    pub(crate) fn source(&self, op: OpId) -> Option<OpId> {
        self.source.get(op.index()).copied().flatten()
    }

    /// Sets what a read reads from, and gives what it was.
    pub(crate) fn set(&mut self, read: OpId, write: Option<OpId>) -> Option<OpId> {
        let before = std::mem::replace(&mut self.source[read.index()], write);
        if let Some(write) = before {
            let at = self.counted_as(write);
            self.readers[at] -= 1;
        }
        if let Some(write) = write {
            let at = self.counted_as(write);
            self.readers[at] += 1;
        }
        before
    }

    /// Says whether an operation counts: it took effect, or something reads from it.
    #[inline]
    pub(crate) fn counts(&self, op: OpId) -> bool {
        self.history.is_certain(op)
            || (self.readers[self.counted_as(op)] > 0
                && (self.transactions.is_none() || self.history.writes(op).is_some()))
    }

    /// Returns where the readers of a write are counted: at itself, or at its transaction.
    #[inline]
    fn counted_as(&self, write: OpId) -> usize {
        match self.transactions {
            Some(transactions) => transactions.units[write.index()] as usize,
            None => write.index(),
        }
    }

    /// Gives the key that an operation writes, if it counts.
    #[inline]
    pub(crate) fn writes(&self, op: OpId) -> Option<KeyId> {
        self.history.writes(op).filter(|_| self.counts(op)).map(|(key, _)| key)
    }

    /// Gives the key that an operation reads.
    #[inline]
    pub(crate) fn reads(&self, op: OpId) -> Option<KeyId> {
        self.history.reads(op).map(|(key, _)| key)
    }
}
