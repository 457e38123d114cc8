//! The components with state, as small state machines over the bytes of a state.
//!
//! A state of a machine is one row of bytes. Each component stores only its own position in the
//! row, so a state can be copied, compared and hashed as bytes. Values are bytes too: indices into
//! a table of the values that have occurred ([`Values`]).

use rustc_hash::FxHashMap;

use crate::program::Value;

/// Index of a value in [`Values`].
pub(super) type Small = u8;

/// Placeholder for the value of a register whose read has not been answered yet.
pub(super) const PENDING: Small = u8::MAX;

/// Table of the distinct values that have occurred.
#[derive(Debug, Default)]
pub(super) struct Values {
    all: Vec<Value>,
    places: FxHashMap<Value, Small>,
    limit: usize,
    overflow: bool,
}

impl Values {
    pub(super) fn new(limit: usize) -> Self {
        Values { limit: limit.min(usize::from(PENDING)), ..Values::default() }
    }

    pub(super) fn place(&mut self, value: Value) -> Small {
        // Litmus tests have few values, so a linear search is faster than hashing.
        if self.all.len() <= 16 {
            if let Some(at) = self.all.iter().position(|known| *known == value) {
                return at as Small;
            }
        } else if let Some(at) = self.places.get(&value) {
            return *at;
        }
        if self.all.len() >= self.limit {
            self.overflow = true;
            return 0;
        }
        let at = self.all.len() as Small;
        self.all.push(value);
        if self.all.len() == 17 {
            self.places = self.all.iter().zip(0..).map(|(value, at)| (*value, at)).collect();
        } else if self.all.len() > 17 {
            self.places.insert(value, at);
        }
        at
    }

    pub(super) fn value(&self, at: Small) -> Value {
        self.all[usize::from(at)]
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Checks whether the table was too small for some value; the exploration is then invalid.
    pub(super) fn overflowed(&self) -> bool {
        self.overflow
    }
}

/// An entry of a queue: an operation and the value that it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Item {
    pub(super) operation: u8,
    pub(super) value: Small,
}

/// A write queue: items in the order of their arrival, then zeros. Operations are counted from 1
/// here, so that zero means no item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub(super) at: usize,
    pub(super) capacity: usize,
}

impl Queue {
    pub(super) fn bytes(self) -> usize {
        2 * self.capacity
    }

    #[inline]
    pub(super) fn is_empty(self, state: &[u8]) -> bool {
        self.capacity == 0 || state[self.at] == 0
    }

    #[inline]
    pub(super) fn items(self, state: &[u8]) -> impl DoubleEndedIterator<Item = Item> {
        let bytes = &state[self.at..self.at + self.bytes()];
        let length = bytes.chunks_exact(2).take_while(|pair| pair[0] != 0).count();
        let filled = bytes[..2 * length].chunks_exact(2);
        filled.map(|pair| Item { operation: pair[0] - 1, value: pair[1] })
    }

    #[inline]
    pub(super) fn front(self, state: &[u8]) -> Option<Item> {
        if self.is_empty(state) {
            return None;
        }
        Some(Item { operation: state[self.at] - 1, value: state[self.at + 1] })
    }

    pub(super) fn push(self, state: &mut [u8], item: Item) {
        let length = self.items(state).count();
        debug_assert!(length < self.capacity, "a queue has room for all that can be sent to it");
        state[self.at + 2 * length] = item.operation + 1;
        state[self.at + 2 * length + 1] = item.value;
    }

    pub(super) fn remove(self, state: &mut [u8], position: usize) {
        let end = self.at + self.bytes();
        state.copy_within(self.at + 2 * position + 2..end, self.at + 2 * position);
        state[end - 2..end].fill(0);
    }
}

/// A set of the values that a location has held.
#[derive(Clone, Copy, Debug)]
pub(super) struct PastSet {
    pub(super) at: usize,
    pub(super) width: usize,
}

impl PastSet {
    pub(super) fn get(self, state: &[u8]) -> u64 {
        let mut bytes = [0; 8];
        bytes[..self.width].copy_from_slice(&state[self.at..self.at + self.width]);
        u64::from_le_bytes(bytes)
    }

    fn set(self, state: &mut [u8], set: u64) {
        state[self.at..self.at + self.width].copy_from_slice(&set.to_le_bytes()[..self.width]);
    }

    pub(super) fn insert(self, state: &mut [u8], value: Small) {
        let set = self.get(state) | 1 << value;
        self.set(state, set);
    }

    pub(super) fn reset(self, state: &mut [u8], value: Small) {
        self.set(state, 1 << value);
    }
}
