//! Sets of pairs of operations, the only values that a definition computes with.
//!
//! A set of operations is represented by the pairs of its elements with themselves, so sets and
//! relations are one type, and `[S]` is S. Each possible pair is one bit: a set takes n² bits, and
//! a union of two sets is a union of their words. Trusting the values of the evaluator means
//! trusting only the functions of this file.

const BITS: usize = u64::BITS as usize;

/// A set of pairs of operations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pairs {
    /// Number of operations.
    size: usize,
    /// Number of words for the pairs of one operation.
    width: usize,
    /// The pairs, by their first operation.
    words: Vec<u64>,
}

impl Pairs {
    pub(super) fn none(size: usize) -> Self {
        let width = size.div_ceil(BITS);
        Pairs { size, width, words: vec![0; size * width] }
    }

    /// Collects the pairs of the given operations for which a predicate holds.
    pub(super) fn where_holds(
        size: usize,
        operations: &[usize],
        holds: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let mut pairs = Pairs::none(size);
        for &a in operations {
            for &b in operations {
                if holds(a, b) {
                    pairs.insert(a, b);
                }
            }
        }
        pairs
    }

    /// Pairs each operation of one set with each of another.
    pub(super) fn product(left: &Pairs, right: &Pairs) -> Self {
        let mut all = vec![0; right.width];
        for b in right.elements() {
            all[b / BITS] |= 1 << (b % BITS);
        }
        let mut pairs = Pairs::none(left.size);
        for a in left.elements() {
            pairs.row_mut(a).copy_from_slice(&all);
        }
        pairs
    }

    pub(super) fn insert(&mut self, a: usize, b: usize) {
        self.row_mut(a)[b / BITS] |= 1 << (b % BITS);
    }

    pub(super) fn contains(&self, a: usize, b: usize) -> bool {
        self.row(a)[b / BITS] & (1 << (b % BITS)) != 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Returns the number of words visited by an operator that visits one row per pair and per
    /// operation.
    pub(super) fn cost(&self) -> u64 {
        let pairs: u64 = self.words.iter().map(|word| u64::from(word.count_ones())).sum();
        (pairs + self.size as u64) * self.width as u64
    }

    /// Iterates over the operations that are paired with themselves, which are the elements of a
    /// set.
    pub(super) fn elements(&self) -> impl Iterator<Item = usize> {
        (0..self.size).filter(|&a| self.contains(a, a))
    }

    /// Iterates over the operations with which an operation is paired.
    pub(super) fn seconds(&self, a: usize) -> impl Iterator<Item = usize> {
        self.row(a).iter().enumerate().flat_map(|(i, &word)| {
            let rest = |word: u64| word & word.wrapping_sub(1);
            std::iter::successors(Some(word), move |&word| Some(rest(word)))
                .take_while(|&word| word != 0)
                .map(move |word| i * BITS + word.trailing_zeros() as usize)
        })
    }

    pub(super) fn unite(&mut self, other: &Pairs) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    pub(super) fn intersect(&mut self, other: &Pairs) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    pub(super) fn subtract(&mut self, other: &Pairs) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// Returns every pair (a, c) for which some (a, b) is in `self` and (b, c) is in `next`.
    pub(super) fn followed_by(&self, next: &Pairs) -> Pairs {
        let mut result = Pairs::none(self.size);
        for a in 0..self.size {
            for b in self.seconds(a) {
                for (word, other) in result.row_mut(a).iter_mut().zip(next.row(b)) {
                    *word |= other;
                }
            }
        }
        result
    }

    /// Returns the transitive closure, computed by a search from each operation.
    pub(super) fn chains(&self) -> Pairs {
        let mut result = Pairs::none(self.size);
        let mut found: Vec<usize> = Vec::new();
        for a in 0..self.size {
            let reached = result.row_mut(a);
            reached.copy_from_slice(self.row(a));
            found.extend(self.seconds(a));
            while let Some(b) = found.pop() {
                for (i, (word, &other)) in reached.iter_mut().zip(self.row(b)).enumerate() {
                    let mut new = other & !*word;
                    *word |= other;
                    while new != 0 {
                        found.push(i * BITS + new.trailing_zeros() as usize);
                        new &= new - 1;
                    }
                }
            }
        }
        result
    }

    pub(super) fn reversed(&self) -> Pairs {
        let mut result = Pairs::none(self.size);
        for a in 0..self.size {
            for b in self.seconds(a) {
                result.insert(b, a);
            }
        }
        result
    }

    /// Returns the set of the first operations of all pairs.
    pub(super) fn firsts(&self) -> Pairs {
        let mut result = Pairs::none(self.size);
        for a in (0..self.size).filter(|&a| self.row(a).iter().any(|&word| word != 0)) {
            result.insert(a, a);
        }
        result
    }

    fn row(&self, a: usize) -> &[u64] {
        &self.words[a * self.width..(a + 1) * self.width]
    }

    fn row_mut(&mut self, a: usize) -> &mut [u64] {
        &mut self.words[a * self.width..(a + 1) * self.width]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    type Plain = BTreeSet<(usize, usize)>;

    /// Returns pseudo-random pairs of 70 operations, so that a row has more than one word.
    fn some(seed: u64) -> Plain {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % 70
        };
        (0..60).map(|_| (next(), next())).collect()
    }

    fn packed(pairs: &Plain) -> Pairs {
        let mut result = Pairs::none(70);
        for &(a, b) in pairs {
            result.insert(a, b);
        }
        result
    }

    fn then(r: &Plain, s: &Plain) -> Plain {
        let next = |&(a, b): &(usize, usize)| {
            s.iter().filter(move |pair| pair.0 == b).map(move |pair| (a, pair.1))
        };
        r.iter().flat_map(next).collect()
    }

    #[test]
    fn every_operator_is_that_on_plain_sets_of_pairs() {
        for seed in 0..20 {
            let (r, s) = (some(seed), some(seed + 100));
            let (p, q) = (packed(&r), packed(&s));
            let changed = |change: fn(&mut Pairs, &Pairs)| {
                let mut p = p.clone();
                change(&mut p, &q);
                p
            };
            assert_eq!(changed(Pairs::unite), packed(&(&r | &s)));
            assert_eq!(changed(Pairs::intersect), packed(&(&r & &s)));
            assert_eq!(changed(Pairs::subtract), packed(&(&r - &s)));
            assert_eq!(p.followed_by(&q), packed(&then(&r, &s)));
            assert_eq!(p.reversed(), packed(&r.iter().map(|&(a, b)| (b, a)).collect()));
            assert_eq!(p.firsts(), packed(&r.iter().map(|&(a, _)| (a, a)).collect()));
            let mut chains = r.clone();
            while !then(&chains, &r).is_subset(&chains) {
                chains.extend(then(&chains.clone(), &r));
            }
            assert_eq!(p.chains(), packed(&chains));
            let product: Plain =
                r.iter().flat_map(|&(a, _)| s.iter().map(move |&(b, _)| (a, b))).collect();
            assert_eq!(Pairs::product(&p.firsts(), &q.firsts()), packed(&product));
            let listed: Plain = (0..70).flat_map(|a| p.seconds(a).map(move |b| (a, b))).collect();
            assert_eq!(listed, r);
            assert_eq!(Pairs::where_holds(70, &[3, 65, 69], |a, b| a < b).cost(), (3 + 70) * 2);
        }
    }
}
