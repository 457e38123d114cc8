//! The writes of a history, indexed by key and value.

use consistory_history::{History, KeyId, KeyKind, OpId, ValueId};
use rustc_hash::FxHashMap;

use crate::view::DoesNotApply;

/// Number of occurrences above which the writes of a value are found by hash instead of by
/// traversing a list.
const MAX_SHARED_VALUE: u32 = 16;

const NONE: u32 = u32::MAX;

/// A write or append of any transaction that did not fail as an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawWrite {
    /// Its transaction, as an index among all transactions of the history.
    pub(crate) unit: u32,
    pub(crate) key: KeyId,
    pub(crate) value: ValueId,
    pub(crate) op: OpId,
    /// Whether the transaction does not write the key again.
    pub(crate) is_last: bool,
}

/// Writes by key and value.
#[derive(Debug)]
pub(crate) struct Writes {
    raw: Vec<RawWrite>,
    /// Index of each transaction's first write, followed by the number of writes.
    unit_starts: Vec<u32>,
    /// Next write with the same value (or the same key and value), in program order.
    next: Vec<u32>,
    heads: Heads,
}

#[derive(Debug)]
enum Heads {
    /// First write of each value.
    ByValue(Vec<u32>),
    /// First write of each key and value.
    ByBoth(FxHashMap<(KeyId, ValueId), u32>),
}

impl Writes {
    pub(crate) fn new(history: &History, raw: Vec<RawWrite>, unit_starts: Vec<u32>) -> Self {
        let mut counts = vec![0u32; history.values().len()];
        let mut most = 0;
        for write in &raw {
            let count = &mut counts[write.value.index()];
            *count += 1;
            most = most.max(*count);
        }
        let mut next = vec![NONE; raw.len()];
        let heads = if most <= MAX_SHARED_VALUE {
            let mut heads = counts;
            heads.fill(NONE);
            for (i, write) in raw.iter().enumerate().rev() {
                next[i] = std::mem::replace(&mut heads[write.value.index()], i as u32);
            }
            Heads::ByValue(heads)
        } else {
            let mut heads = FxHashMap::default();
            heads.reserve(raw.len());
            for (i, write) in raw.iter().enumerate().rev() {
                if let Some(later) = heads.insert((write.key, write.value), i as u32) {
                    next[i] = later;
                }
            }
            Heads::ByBoth(heads)
        };
        Writes { raw, unit_starts, next, heads }
    }

    /// Iterates over the writes of a value to a key, in program order.
    pub(crate) fn of(&self, key: KeyId, value: ValueId) -> impl Iterator<Item = &RawWrite> {
        self.indices_of(key, value).map(|i| &self.raw[i as usize])
    }

    fn indices_of(&self, key: KeyId, value: ValueId) -> impl Iterator<Item = u32> {
        let first = match &self.heads {
            Heads::ByValue(heads) => heads[value.index()],
            Heads::ByBoth(heads) => heads.get(&(key, value)).copied().unwrap_or(NONE),
        };
        let some = |i: u32| (i != NONE).then_some(i);
        std::iter::successors(some(first), move |&i| some(self.next[i as usize]))
            .filter(move |&i| self.raw[i as usize].key == key)
    }

    /// Counts the writes.
    pub(crate) fn len(&self) -> usize {
        self.raw.len()
    }

    /// Iterates over the writes of a transaction.
    pub(crate) fn of_unit(&self, unit: u32) -> impl Iterator<Item = u32> + use<> {
        self.unit_starts[unit as usize]..self.unit_starts[unit as usize + 1]
    }

    /// Finds the only append of a value to a list.
    pub(crate) fn append_of(&self, key: KeyId, value: ValueId) -> Option<u32> {
        self.indices_of(key, value).next()
    }

    pub(crate) fn get(&self, index: u32) -> RawWrite {
        self.raw[index as usize]
    }

    /// Checks whether `next` is its transaction's next append to the same key after `index`.
    pub(crate) fn follows_in_transaction(&self, index: u32, next: u32) -> bool {
        let write = self.raw[index as usize];
        let later = self.raw[index as usize + 1..].iter().take_while(|w| w.unit == write.unit);
        let found = later.zip(index + 1..).find(|(w, _)| w.key == write.key);
        found.is_some_and(|(_, at)| at == next)
    }

    /// Checks whether an append is the first of its transaction to its key.
    pub(crate) fn is_first_of_key(&self, index: u32) -> bool {
        let write = self.raw[index as usize];
        let earlier = self.raw[..index as usize].iter().rev();
        !earlier.take_while(|w| w.unit == write.unit).any(|w| w.key == write.key)
    }

    /// Checks that no value is appended twice to a list.
    pub(crate) fn check_lists(&self, history: &History) -> Result<(), DoesNotApply> {
        if !history.has_lists() {
            return Ok(());
        }
        for write in self.raw.iter().filter(|w| history.key_kind(w.key) == KeyKind::List) {
            if self.of(write.key, write.value).nth(1).is_some() {
                return Err(DoesNotApply::RepeatedAppend {
                    key: history.key_name(write.key).into(),
                    value: history.value(write.value).clone(),
                });
            }
        }
        Ok(())
    }
}
