//! Sets of positions of calls, of any size.

/// A set of small numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn contains(&self, i: usize) -> bool {
        self.0.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 == 1)
    }

    pub(super) fn insert(&mut self, i: usize) {
        if self.0.len() <= i / 64 {
            self.0.resize(i / 64 + 1, 0);
        }
        self.0[i / 64] |= 1 << (i % 64);
    }

    pub(super) fn remove(&mut self, i: usize) {
        if let Some(word) = self.0.get_mut(i / 64) {
            *word &= !(1 << (i % 64));
        }
    }

    pub(super) fn with(mut self, i: usize) -> Self {
        self.insert(i);
        self
    }

    /// Adds all members of another set.
    pub(super) fn extend(&mut self, other: &Bits) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    pub(super) fn is_subset(&self, other: &Bits) -> bool {
        self.0
            .iter()
            .enumerate()
            .all(|(i, word)| word & !other.0.get(i).copied().unwrap_or_default() == 0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(64 * at + bit)
            })
        })
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut bits = Bits::default();
        numbers.into_iter().for_each(|i| bits.insert(i));
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_different_lengths_are_compared() {
        let small: Bits = [3, 64].into_iter().collect();
        let large = small.clone().with(200);
        assert!(small.is_subset(&large) && !large.is_subset(&small));
        assert_eq!(large.iter().collect::<Vec<_>>(), [3, 64, 200]);
        let mut without = large.clone();
        without.remove(200);
        assert!(without.is_subset(&small) && !without.contains(200));
        let mut union = small;
        union.extend(&large);
        assert_eq!(union, large);
    }
}
