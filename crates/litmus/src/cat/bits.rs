//! Sets and relations of up to a few hundred events as bits.
//!
//! A set is `words` words; a relation has a row of that many words for each event. Most executions
//! have at most 64 events, so the loops have a special form for one word per row and a general
//! form.

/// The shape of all sets and relations of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Shape {
    /// Number of events.
    pub(crate) events: usize,
    /// Words of a set, or of a relation's row.
    pub(crate) words: usize,
}

pub(crate) type Bits = Vec<u64>;

impl Shape {
    pub(crate) fn new(events: usize) -> Self {
        Shape { events, words: events.div_ceil(64).max(1) }
    }

    pub(crate) fn set(self) -> Bits {
        vec![0; self.words]
    }

    pub(crate) fn relation(self) -> Bits {
        vec![0; self.words * self.events]
    }

    pub(crate) fn insert(self, set: &mut [u64], event: usize) {
        set[event / 64] |= 1 << (event % 64);
    }

    pub(crate) fn relate(self, relation: &mut [u64], from: usize, to: usize) {
        relation[from * self.words + to / 64] |= 1 << (to % 64);
    }

    pub(crate) fn related(self, relation: &[u64], from: usize, to: usize) -> bool {
        relation[from * self.words + to / 64] >> (to % 64) & 1 == 1
    }

    fn row(self, relation: &[u64], event: usize) -> &[u64] {
        &relation[event * self.words..(event + 1) * self.words]
    }

    pub(crate) fn members(self, set: &[u64]) -> impl Iterator<Item = usize> + '_ {
        set.iter().enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                if left == 0 {
                    return None;
                }
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                Some(at * 64 + bit)
            })
        })
    }

    pub(crate) fn pairs(self, relation: &[u64]) -> Vec<(usize, usize)> {
        let row = |from| self.members(self.row(relation, from)).map(move |to| (from, to));
        (0..self.events).flat_map(row).collect()
    }

    /// Sets all bits of existing events in a set.
    pub(crate) fn fill_set(self, set: &mut [u64]) {
        for (at, word) in set.iter_mut().enumerate() {
            let left = self.events - (at * 64).min(self.events);
            *word = if left >= 64 { u64::MAX } else { (1u64 << left) - 1 };
        }
    }

    pub(crate) fn compose(self, left: &[u64], right: &[u64], out: &mut [u64]) {
        if self.words == 1 {
            for (row, out) in left.iter().zip(out) {
                let (mut left, mut sum) = (*row, 0);
                while left != 0 {
                    sum |= right[left.trailing_zeros() as usize];
                    left &= left - 1;
                }
                *out = sum;
            }
            return;
        }
        out.fill(0);
        for from in 0..self.events {
            for middle in self.members(self.row(left, from)) {
                for word in 0..self.words {
                    out[from * self.words + word] |= right[middle * self.words + word];
                }
            }
        }
    }

    pub(crate) fn invert(self, relation: &[u64], out: &mut [u64]) {
        out.fill(0);
        for from in 0..self.events {
            for to in self.members(self.row(relation, from)) {
                out[to * self.words + from / 64] |= 1 << (from % 64);
            }
        }
    }

    /// Replaces a relation by its transitive closure.
    pub(crate) fn close(self, relation: &mut [u64]) {
        if self.words == 1 {
            for middle in 0..self.events {
                let through = relation[middle];
                if through == 0 {
                    continue;
                }
                for row in relation.iter_mut() {
                    if *row >> middle & 1 == 1 {
                        *row |= through;
                    }
                }
            }
            return;
        }
        for middle in 0..self.events {
            let through = self.row(relation, middle).to_vec();
            for from in 0..self.events {
                if self.related(relation, from, middle) {
                    for word in 0..self.words {
                        relation[from * self.words + word] |= through[word];
                    }
                }
            }
        }
    }

    pub(crate) fn is_irreflexive(self, relation: &[u64]) -> bool {
        (0..self.events).all(|event| !self.related(relation, event, event))
    }

    /// Removes events without a successor until none remains; returns whether all were removed.
    pub(crate) fn is_acyclic(self, relation: &[u64]) -> bool {
        if self.words == 1 {
            let mut left = 0u64;
            for (event, row) in relation.iter().enumerate() {
                left |= u64::from(*row != 0) << event;
            }
            loop {
                let (mut next, mut rest) = (left, left);
                while rest != 0 {
                    let event = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    if relation[event] & next == 0 {
                        next &= !(1 << event);
                    }
                }
                if next == 0 {
                    return true;
                }
                if next == left {
                    return false;
                }
                left = next;
            }
        }
        let mut closed = relation.to_vec();
        self.close(&mut closed);
        self.is_irreflexive(&closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_loops_agree() {
        // The same relation on 10 events, with one and with two words per row.
        let small = Shape::new(10);
        let large = Shape { events: 10, words: 2 };
        let mut state = 7u64;
        for _ in 0..200 {
            let (mut a, mut b) = (small.relation(), large.relation());
            for _ in 0..12 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let (from, to) = ((state >> 33) as usize % 10, (state >> 43) as usize % 10);
                small.relate(&mut a, from, to);
                large.relate(&mut b, from, to);
            }
            assert_eq!(small.is_acyclic(&a), large.is_acyclic(&b));
            let (mut aa, mut bb) = (small.relation(), large.relation());
            small.compose(&a, &a, &mut aa);
            large.compose(&b, &b, &mut bb);
            assert_eq!(small.pairs(&aa), large.pairs(&bb));
            small.close(&mut a);
            large.close(&mut b);
            assert_eq!(small.pairs(&a), large.pairs(&b));
            small.invert(&a, &mut aa);
            large.invert(&b, &mut bb);
            assert_eq!(small.pairs(&aa), large.pairs(&bb));
        }
    }
}
