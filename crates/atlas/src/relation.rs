//! Sets and relations over at most sixteen operations: one word per set, and one word per operation
//! for a relation.
//!
//! Every loop runs over all sixteen rows without a branch, so that the compiler turns it into a
//! few vector instructions; a composition or a closure takes some dozens of nanoseconds.

/// Largest number of operations, initial writes included.
pub(crate) const LIMIT: usize = 16;

/// A set of operations, one bit each.
pub(crate) type Set = u16;

/// A relation: the set of successors of each operation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Relation(pub(crate) [Set; LIMIT]);

impl Relation {
    pub(crate) fn insert(&mut self, from: usize, to: usize) {
        self.0[from] |= 1 << to;
    }

    #[inline]
    fn zip(self, other: Self, combine: impl Fn(Set, Set) -> Set) -> Self {
        let mut result = self;
        for (row, &other) in result.0.iter_mut().zip(&other.0) {
            *row = combine(*row, other);
        }
        result
    }

    #[inline]
    pub(crate) fn union(self, other: Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    #[inline]
    pub(crate) fn intersection(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    #[inline]
    pub(crate) fn difference(self, other: Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    /// Returns the pairs of two sets.
    #[inline]
    pub(crate) fn product(from: Set, to: Set) -> Self {
        let mut result = Relation::default();
        for (i, row) in result.0.iter_mut().enumerate() {
            *row = spread(from >> i) & to;
        }
        result
    }

    /// Keeps the pairs that start in a set.
    #[inline]
    pub(crate) fn starting_in(mut self, set: Set) -> Self {
        for (i, row) in self.0.iter_mut().enumerate() {
            *row &= spread(set >> i);
        }
        self
    }

    /// Keeps the pairs that end in a set.
    #[inline]
    pub(crate) fn ending_in(mut self, set: Set) -> Self {
        for row in &mut self.0 {
            *row &= set;
        }
        self
    }

    /// Returns `self ; other`, of relations between the first `size` operations.
    #[inline]
    pub(crate) fn then(&self, other: &Self, size: usize) -> Self {
        let mut result = Relation::default();
        for (k, &row) in other.0.iter().enumerate().take(size) {
            for (to, &from) in result.0.iter_mut().zip(&self.0) {
                *to |= row & spread(from >> k);
            }
        }
        result
    }

    /// Returns the transitive closure of a relation between the first `size` operations.
    #[inline]
    pub(crate) fn closure(mut self, size: usize) -> Self {
        for k in 0..size {
            let row = self.0[k];
            for to in &mut self.0 {
                *to |= row & spread(*to >> k);
            }
        }
        self
    }

    #[inline]
    pub(crate) fn inverse(&self, size: usize) -> Self {
        let mut result = Relation::default();
        for (i, &row) in self.0.iter().enumerate().take(size) {
            for (k, to) in result.0.iter_mut().enumerate() {
                *to |= spread(row >> k) & (1 << i);
            }
        }
        result
    }

    /// Returns the domain of the relation.
    #[inline]
    pub(crate) fn domain(&self) -> Set {
        self.0.iter().enumerate().fold(0, |set, (i, &row)| set | (Set::from(row != 0) << i))
    }

    /// Returns the range of the relation.
    #[inline]
    pub(crate) fn range(&self) -> Set {
        self.0.iter().fold(0, |set, row| set | row)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.range() == 0
    }

    #[inline]
    pub(crate) fn is_irreflexive(&self) -> bool {
        self.0.iter().enumerate().all(|(i, row)| row >> i & 1 == 0)
    }

    /// Returns whether the relation is acyclic, by repeatedly removing operations without a
    /// predecessor.
    #[inline]
    pub(crate) fn is_acyclic(&self, size: usize) -> bool {
        let mut left = full(size);
        loop {
            let mut reached = 0;
            for (i, row) in self.0.iter().enumerate() {
                reached |= row & spread(left >> i);
            }
            let next = left & reached;
            if next == left {
                return left == 0;
            }
            left = next;
        }
    }
}

/// Returns the set of the first `size` operations.
pub(crate) fn full(size: usize) -> Set {
    (((1u32) << size) - 1) as Set
}

/// Returns all bits if the lowest is set, and none otherwise.
#[inline]
fn spread(bit: Set) -> Set {
    (bit & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relations of five operations, some hundred of them, with cycles and without.
    fn samples() -> impl Iterator<Item = Relation> {
        (0..300u64).map(|seed| {
            let mut bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (seed << 40);
            bits ^= bits >> 29;
            let mut relation = Relation::default();
            for pair in 0..25 {
                if bits >> pair & 1 == 1 && bits >> (pair + 25) & 1 == 1 {
                    relation.insert(pair / 5, pair % 5);
                }
            }
            relation
        })
    }

    fn holds(relation: &Relation, from: usize, to: usize) -> bool {
        relation.0[from] >> to & 1 == 1
    }

    #[test]
    fn operators_are_those_of_pairs() {
        let mut cyclic = 0;
        for (r, s) in samples().zip(samples().skip(7)) {
            let then = r.then(&s, 5);
            let plus = r.closure(5);
            let mut reach = r;
            for _ in 0..5 {
                reach = reach.union(reach.then(&r, 5));
            }
            assert_eq!(plus, reach);
            for i in 0..5 {
                for j in 0..5 {
                    let through = (0..5).any(|k| holds(&r, i, k) && holds(&s, k, j));
                    assert_eq!(holds(&then, i, j), through);
                    assert_eq!(holds(&r.inverse(5), j, i), holds(&r, i, j));
                    let (a, b) = (0b10110, 0b01101);
                    let in_both = a >> i & 1 == 1 && b >> j & 1 == 1;
                    assert_eq!(holds(&Relation::product(a, b), i, j), in_both);
                    let kept = holds(&r, i, j) && in_both;
                    assert_eq!(holds(&r.starting_in(a).ending_in(b), i, j), kept);
                }
                assert_eq!(r.domain() >> i & 1 == 1, (0..5).any(|j| holds(&r, i, j)));
                assert_eq!(r.range() >> i & 1 == 1, (0..5).any(|j| holds(&r, j, i)));
            }
            assert_eq!(r.is_acyclic(5), plus.is_irreflexive());
            cyclic += usize::from(!r.is_acyclic(5));
        }
        assert!((50..280).contains(&cyclic), "{cyclic} of 293 are cyclic");
    }
}
