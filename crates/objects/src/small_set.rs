//! Sets of small numbers in a fixed number of words, so that they can be copied and hashed fast.

/// A set of numbers below `64 * W`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SmallSet<const W: usize>([u64; W]);

impl<const W: usize> SmallSet<W> {
    pub(crate) const EMPTY: Self = SmallSet([0; W]);

    #[inline]
    pub(crate) fn contains(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn insert(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, i: usize) {
        self.0[i / 64] &= !(1 << (i % 64));
    }

    #[inline]
    pub(crate) fn with(mut self, i: usize) -> Self {
        self.insert(i);
        self
    }

    #[inline]
    pub(crate) fn union(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
        self
    }

    #[inline]
    pub(crate) fn intersection(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
        self
    }

    #[inline]
    pub(crate) fn difference(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= !b);
        self
    }

    #[inline]
    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(w, &word)| {
            std::iter::successors((word != 0).then_some(word), |&rest| {
                let rest = rest & (rest - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |rest| 64 * w + rest.trailing_zeros() as usize)
        })
    }

    pub(crate) fn words(&self) -> &[u64; W] {
        &self.0
    }
}

impl<const W: usize> FromIterator<usize> for SmallSet<W> {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        numbers.into_iter().fold(Self::EMPTY, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_across_words() {
        let a: SmallSet<3> = [0, 63, 64, 130, 191].into_iter().collect();
        let b: SmallSet<3> = [63, 130].into_iter().collect();
        assert_eq!(a.iter().collect::<Vec<_>>(), [0, 63, 64, 130, 191]);
        assert!(b.is_subset(&a) && !a.is_subset(&b));
        assert_eq!(a.difference(&b).iter().collect::<Vec<_>>(), [0, 64, 191]);
        assert_eq!(a.intersection(&b), b);
        assert_eq!(a.union(&b), a);
        let mut c = b;
        c.remove(63);
        c.remove(130);
        assert!(c == SmallSet::EMPTY && !c.contains(130) && a.contains(191));
    }
}
