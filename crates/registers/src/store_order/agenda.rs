//! The operations that saturation has to process again, earliest first.
//!
//! Saturation needs the fewest steps if it processes operations roughly in the order in which they
//! happened, since the results for one operation are then known when the next is processed. The
//! agenda is a bit set in that order, with a cursor before the first element. Operations are
//! admitted one by one, whenever the set is empty.

use consistory_history::OpId;

/// A set of operations with one bit per layer, from which the earliest is taken.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// Bits per operation: one for each layer.
    layers: usize,
    /// Position of each operation in the order, and the operation at each position.
    rank: Vec<u32>,
    order: Vec<OpId>,
    /// Number of admitted operations.
    came: usize,
    words: Vec<u64>,
    /// Range of word indices outside of which all words are zero.
    filled: (usize, usize),
}

impl Agenda {
    /// Builds an empty agenda; `order` holds every operation once.
    pub(crate) fn new(order: Vec<OpId>, layers: usize) -> Self {
        let mut rank = vec![0; order.len()];
        for (at, &op) in (0u32..).zip(&order) {
            rank[op.index()] = at;
        }
        let words = vec![0; (order.len() * layers).div_ceil(64)];
        Agenda { layers, rank, order, came: 0, words, filled: (usize::MAX, 0) }
    }

    /// Returns the next operation to admit.
    pub(crate) fn next(&mut self) -> Option<OpId> {
        let op = *self.order.get(self.came)?;
        self.came += 1;
        Some(op)
    }

    /// Adds an operation for a layer.
    #[inline]
    pub(crate) fn add(&mut self, op: OpId, layer: usize) {
        let bit = self.rank[op.index()] as usize * self.layers + layer;
        let word = bit / 64;
        self.words[word] |= 1 << (bit % 64);
        self.filled = (self.filled.0.min(word), self.filled.1.max(word + 1));
    }

    /// Removes and returns the earliest operation with its layer.
    pub(crate) fn take(&mut self) -> Option<(OpId, usize)> {
        let (mut word, end) = self.filled;
        while word < end && self.words[word] == 0 {
            word += 1;
        }
        if word >= end {
            self.filled = (usize::MAX, 0);
            return None;
        }
        self.filled.0 = word;
        let bit = word * 64 + self.words[word].trailing_zeros() as usize;
        self.words[word] &= self.words[word] - 1;
        Some((self.order[bit / self.layers], bit % self.layers))
    }

    /// Removes all operations.
    pub(crate) fn clear(&mut self) {
        let (start, end) = self.filled;
        if start < end {
            self.words[start..end].fill(0);
        }
        self.filled = (usize::MAX, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_taken_first_and_each_once() {
        let mut agenda = Agenda::new([2, 0, 1].map(OpId).to_vec(), 2);
        assert_eq!(agenda.take(), None);
        agenda.add(OpId(1), 0);
        agenda.add(OpId(2), 1);
        agenda.add(OpId(1), 0);
        assert_eq!(agenda.take(), Some((OpId(2), 1)));
        agenda.add(OpId(0), 1);
        assert_eq!(agenda.take(), Some((OpId(0), 1)));
        assert_eq!(agenda.take(), Some((OpId(1), 0)));
        assert_eq!(agenda.take(), None);
        agenda.add(OpId(0), 0);
        agenda.clear();
        assert_eq!(agenda.take(), None);
    }

    #[test]
    fn it_may_have_any_size() {
        for size in [0, 1, 31, 32, 33, 64, 65] {
            let mut agenda = Agenda::new((0..size).map(OpId).collect(), 2);
            let mut taken = 0;
            while let Some(op) = agenda.next() {
                agenda.add(op, 0);
                agenda.add(op, 1);
                taken += std::iter::from_fn(|| agenda.take()).count();
            }
            assert_eq!(taken, 2 * size as usize);
        }
    }
}
