//! Random choices that are determined by a seed, the same on every platform.
//!
//! [`Random`] draws everything that a user may want to reproduce: programs, histories, workloads.
//! It is ChaCha with 8 rounds, whose sequences do not change from version to version.
//! [`QuickRandom`] and [`mix`] are SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom
//! number generators*, OOPSLA 2014), which takes a few instructions per number: it is for loops
//! whose timing matters and for searches that break ties.
//!
//! ```
//! use consistory_random::Random;
//!
//! let mut random = Random::new(7, 0);
//! let dice: Vec<u32> = (0..3).map(|_| 1 + random.below(6)).collect();
//! let mut again = Random::new(7, 0);
//! assert!(dice.iter().all(|face| *face == 1 + again.below(6)));
//! ```

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A sequence of random choices.
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// Starts a sequence; the streams of one seed are independent of each other.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(stream);
        Self(generator)
    }

    /// Chooses a number below `bound`, each with the same probability; 0 if `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        // The high word of the product is the choice. If the low word is below 2^32 mod `bound`, a
        // new number is drawn, so that every choice has equally many draws.
        let mut product = u64::from(self.0.next_u32()) * u64::from(bound);
        if (product as u32) < bound {
            let excess = bound.wrapping_neg() % bound;
            while (product as u32) < excess {
                product = u64::from(self.0.next_u32()) * u64::from(bound);
            }
        }
        (product >> 32) as u32
    }

    /// Chooses a number from 0 (inclusive) to 1 (exclusive).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns `true` with a probability of one in `times`.
    #[inline]
    pub fn once_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    /// Returns `true` with a probability of `percent` in a hundred.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// Chooses a number from `low` to `high`, both included; they must be less than 2^32 apart.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + u64::from(self.below((high - low + 1) as u32))
    }

    /// Chooses one of several elements; `among` must not be empty.
    pub fn choose<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        &among[self.below(among.len() as u32) as usize]
    }
}

/// The odd number next to 2^64 divided by the golden ratio: the increment of SplitMix64.
pub const GOLDEN_INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Scrambles the bits of a number (the finalizer of SplitMix64).
#[inline]
pub fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A sequence of random numbers that costs a few instructions per number (SplitMix64).
#[derive(Clone, Debug)]
pub struct QuickRandom(u64);

impl QuickRandom {
    /// Starts the sequence of a seed; neighbouring seeds have unrelated sequences.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    #[expect(clippy::should_implement_trait, reason = "the sequence has no end")]
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_INCREMENT);
        mix(self.0)
    }

    /// Chooses a number below `bound`, almost uniformly for small bounds; 0 if `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_below_a_bound_is_uniform() {
        let mut random = Random::new(0, 0);
        for bound in [1, 2, 3, 7] {
            let mut counts = vec![0u32; bound as usize];
            for _ in 0..10_000 * bound {
                counts[random.below(bound) as usize] += 1;
            }
            assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        }
        // The bound is two thirds of all words, so without drawing again the result would be
        // visibly biased.
        let bound = 0xAAAA_AAAA;
        let low = (0..30_000).filter(|_| random.below(bound) < bound / 2).count();
        assert!((14_500..15_500).contains(&low), "{low}");
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn streams_do_not_follow_each_other() {
        let draw = |stream| {
            let mut random = Random::new(7, stream);
            (0..8).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(0), draw(0));
        assert_ne!(draw(0), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    /// The numbers of the reference implementation (Vigna, splitmix64.c) for the seed 1234567.
    #[test]
    fn the_quick_sequence_is_splitmix64() {
        let mut random = QuickRandom::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(
            drawn,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
