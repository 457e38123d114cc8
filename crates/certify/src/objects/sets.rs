//! Sets of operations, represented as bits.

/// A set of numbers, as bits; all sets of a search have the same length.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Set(Box<[u64]>);

impl Set {
    /// Builds the empty set of numbers below `size`.
    pub(crate) fn empty(size: usize) -> Self {
        Set(vec![0; size.div_ceil(64)].into())
    }

    /// Builds the set of the given numbers below `size`.
    pub(crate) fn of(size: usize, numbers: impl IntoIterator<Item = usize>) -> Self {
        let mut set = Set::empty(size);
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }

    pub(crate) fn contains(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    pub(crate) fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    pub(crate) fn remove(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }

    pub(crate) fn with(mut self, number: usize) -> Self {
        self.insert(number);
        self
    }

    pub(crate) fn is_subset(&self, other: &Set) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }

    /// Adds the numbers that two sets have in common.
    pub(crate) fn add_common(&mut self, a: &Set, b: &Set) {
        let common = a.0.iter().zip(&b.0).map(|(a, b)| a & b);
        self.0.iter_mut().zip(common).for_each(|(word, more)| *word |= more);
    }

    pub(crate) fn add(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            let rests = std::iter::successors(Some(word), |rest| Some(rest & (rest - 1)));
            let rests = rests.take(word.count_ones() as usize);
            rests.map(move |rest| 64 * at + rest.trailing_zeros() as usize)
        })
    }
}

/// A set of numbers below `64 * W`, which is copied as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SmallSet<const W: usize>([u64; W]);

impl<const W: usize> SmallSet<W> {
    pub(crate) const EMPTY: Self = SmallSet([0; W]);

    pub(crate) fn contains(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    pub(crate) fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    pub(crate) fn remove(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_across_words() {
        let a = Set::of(200, [0, 63, 64, 130, 191]);
        let b = Set::of(200, [63, 130]);
        assert_eq!(a.iter().collect::<Vec<_>>(), [0, 63, 64, 130, 191]);
        assert_eq!(Set::of(64, 0..64).iter().count(), 64);
        assert!(b.is_subset(&a) && !a.is_subset(&b) && a.contains(191) && !b.contains(0));
        let mut c = Set::empty(200).with(5);
        c.add_common(&a, &b);
        assert_eq!(c, Set::of(200, [5, 63, 130]));
        c.remove(5);
        assert_eq!(c, b);
        c.add(&a);
        assert_eq!(c, a);
    }
}
