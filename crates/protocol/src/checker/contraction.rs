//! The cycle checker of Lemma 3.3: the nodes that still have an ID, and their order.
//!
//! The paper removes a node that has lost its last ID and connects each of its predecessors to each
//! of its successors. Here the order is transitively closed, so a node is removed by deleting its
//! row and column, and two prefixes that order the remaining nodes in the same way reach the same
//! state. Adding an edge costs at most the square of the number of nodes in use, divided by the
//! width of a word; adding a node costs one row.

use rustc_hash::FxHashMap;

use crate::descriptor::Id;

/// Index of a node, which is reused after the node is dropped.
pub(super) type Slot = usize;

/// A set of slots.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Slots(Vec<u64>);

impl Slots {
    pub(super) fn has(&self, slot: Slot) -> bool {
        self.0.get(slot / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    pub(super) fn insert(&mut self, slot: Slot) {
        if self.0.len() <= slot / 64 {
            self.0.resize(slot / 64 + 1, 0);
        }
        self.0[slot / 64] |= 1 << (slot % 64);
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        if let Some(word) = self.0.get_mut(slot / 64) {
            *word &= !(1 << (slot % 64));
        }
    }

    fn extend(&mut self, other: &Slots) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }
}

/// The nodes that have an ID, and their order under the edges so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ActiveGraph {
    named: FxHashMap<Id, Slot>,
    /// Number of IDs of each slot's node.
    ids: Vec<u32>,
    /// Successors of each slot's node.
    after: Vec<Slots>,
    /// Unused slots.
    free: Vec<Slot>,
}

impl ActiveGraph {
    /// Returns the node with a given ID.
    pub(super) fn find(&self, id: Id) -> Option<Slot> {
        self.named.get(&id).copied()
    }

    pub(super) fn is_active(&self, slot: Slot) -> bool {
        self.ids[slot] > 0
    }

    /// Removes an ID from its node, and returns the node if that was its last ID.
    ///
    /// The node is then removed from the order, but keeps its slot until it is
    /// [released](Self::release).
    pub(super) fn take(&mut self, id: Id) -> Option<Slot> {
        let slot = self.named.remove(&id)?;
        self.ids[slot] -= 1;
        if self.ids[slot] > 0 {
            return None;
        }
        self.after[slot] = Slots::default();
        for after in &mut self.after {
            after.remove(slot);
        }
        Some(slot)
    }

    /// Assigns an unused ID to a node.
    pub(super) fn give(&mut self, slot: Slot, id: Id) {
        self.named.insert(id, slot);
        self.ids[slot] += 1;
    }

    /// Returns a slot for a new node.
    pub(super) fn reserve(&mut self) -> Slot {
        self.free.pop().unwrap_or_else(|| {
            self.ids.push(0);
            self.after.push(Slots::default());
            self.ids.len() - 1
        })
    }

    /// Makes a slot available again; its node must have no ID.
    pub(super) fn release(&mut self, slot: Slot) {
        debug_assert!(!self.is_active(slot));
        self.free.push(slot);
    }

    /// Orders two nodes, unless they are ordered the other way; returns whether this succeeded.
    pub(super) fn order(&mut self, from: Slot, to: Slot) -> bool {
        if from == to || self.after[to].has(from) {
            return false;
        }
        if self.after[from].has(to) {
            return true;
        }
        let mut gained = self.after[to].clone();
        gained.insert(to);
        for slot in 0..self.after.len() {
            if slot == from || self.after[slot].has(from) {
                self.after[slot].extend(&gained);
            }
        }
        true
    }

    /// Checks whether one node comes before another.
    pub(super) fn is_before(&self, from: Slot, to: Slot) -> bool {
        self.after[from].has(to)
    }

    /// Lists each slot's IDs, in increasing order.
    pub(super) fn ids(&self) -> Vec<Vec<Id>> {
        let mut ids = vec![Vec::new(); self.ids.len()];
        for (&id, &slot) in &self.named {
            ids[slot].push(id);
        }
        ids.iter_mut().for_each(|ids| ids.sort_unstable());
        ids
    }
}
