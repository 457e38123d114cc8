//! Random choices that a seed decides, the same on every platform.
//!
//! ChaCha with 8 rounds, and no operation on floating-point numbers that IEEE 754 does not define
//! to the last bit: no logarithm and no power from the platform's library.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Who makes the choices; with one seed, each has a sequence of its own.
#[derive(Clone, Copy)]
pub(crate) enum Chooser {
    Clients,
    Memory,
    Planter,
    Tangle,
}

/// A sequence of random choices.
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    pub(crate) fn new(seed: u64, chooser: Chooser) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(chooser as u64);
        Self(rng)
    }

    /// Chooses a number below `bound`, each with the same probability; `bound` is not 0.
    #[inline]
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        debug_assert!(bound > 0);
        // The high word of the product is the choice. A low word under 2^32 mod bound is drawn
        // again, which leaves equally many draws for each choice.
        let mut product = u64::from(self.0.next_u32()) * u64::from(bound);
        if (product as u32) < bound {
            let excess = bound.wrapping_neg() % bound;
            while (product as u32) < excess {
                product = u64::from(self.0.next_u32()) * u64::from(bound);
            }
        }
        (product >> 32) as u32
    }

    /// Chooses a number from 0 to 1, 1 excluded.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Says yes once in `times`.
    #[inline]
    pub(crate) fn once_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }
}

/// A choice among variables: uniform, or the more skewed the greater the exponent.
pub(crate) enum Choice {
    Uniform(u32),
    /// The sums of the weights up to each variable.
    Weighted(Vec<f64>),
}

impl Choice {
    /// Gives variable `i` of `count` the weight `1 / (i + 1)^exponent`, as Zipf's law does.
    pub(crate) fn zipf(count: u32, exponent: f64) -> Self {
        if exponent == 0.0 {
            return Choice::Uniform(count);
        }
        let mut sum = 0.0;
        let sums = (1..=count).map(|rank| {
            sum += 1.0 / power(f64::from(rank), exponent);
            sum
        });
        Choice::Weighted(sums.collect())
    }

    #[inline]
    pub(crate) fn choose(&self, random: &mut Random) -> u32 {
        match self {
            Choice::Uniform(count) => random.below(*count),
            Choice::Weighted(sums) => {
                let last = sums.len() - 1;
                let at = random.unit() * sums[last];
                // Rounding may lift the product to the last sum itself.
                sums.partition_point(|&sum| sum <= at).min(last) as u32
            }
        }
    }
}

/// Raises `base` to a power of which 20 binary digits behind the point count.
fn power(base: f64, exponent: f64) -> f64 {
    let mut result = 1.0;
    for _ in 0..exponent as u32 {
        result *= base;
    }
    let mut digits = exponent.fract();
    let mut root = base;
    for _ in 0..20 {
        root = root.sqrt();
        digits *= 2.0;
        if digits >= 1.0 {
            digits -= 1.0;
            result *= root;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_below_a_bound_is_uniform() {
        let mut random = Random::new(0, Chooser::Clients);
        for bound in [1, 2, 3, 7] {
            let mut counts = vec![0u32; bound as usize];
            for _ in 0..10_000 * bound {
                counts[random.below(bound) as usize] += 1;
            }
            assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        }
        // Two thirds of all words: here each second draw would be biased without drawing again.
        let bound = 0xAAAA_AAAA;
        let low = (0..30_000).filter(|_| random.below(bound) < bound / 2).count();
        assert!((14_500..15_500).contains(&low), "{low}");
    }

    #[test]
    fn choosers_do_not_follow_each_other() {
        let draw = |chooser| {
            let mut random = Random::new(7, chooser);
            (0..8).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(Chooser::Clients), draw(Chooser::Clients));
        assert_ne!(draw(Chooser::Clients), draw(Chooser::Memory));
        assert_ne!(draw(Chooser::Memory), draw(Chooser::Planter));
    }

    #[test]
    fn powers_are_those_of_the_platform_but_for_rounding() {
        for (base, exponent) in [(1.0, 3.5), (2.0, 1.0), (10.0, 0.99), (1000.0, 1.2), (7.0, 0.0)] {
            let expected = f64::powf(base, exponent);
            assert!((power(base, exponent) / expected - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn a_skewed_choice_follows_zipf() {
        let choice = Choice::zipf(4, 1.0);
        let mut random = Random::new(3, Chooser::Clients);
        let mut counts = [0u32; 4];
        for _ in 0..25_000 {
            counts[choice.choose(&mut random) as usize] += 1;
        }
        for (count, expected) in counts.into_iter().zip([12_000, 6_000, 4_000, 3_000]) {
            assert!(count.abs_diff(expected) < 400, "{counts:?}");
        }
    }
}
