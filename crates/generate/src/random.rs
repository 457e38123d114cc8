//! Random choices that are determined by a seed, the same on every platform.
//!
//! Uses only floating-point operations that IEEE 754 defines to the last bit: no logarithm and no
//! power from the platform's library.

pub(crate) use consistory_random::Random;

/// A part of a generator that makes random choices; each has its own stream.
#[derive(Clone, Copy)]
pub(crate) enum Chooser {
    Clients,
    Memory,
    Planter,
    Tangle,
}

/// Starts the sequence of choices of a chooser.
pub(crate) fn choices_of(chooser: Chooser, seed: u64) -> Random {
    Random::new(seed, chooser as u64)
}

/// A distribution over variables: uniform, or skewed by an exponent.
pub(crate) enum Choice {
    Uniform(u32),
    /// Prefix sums of the weights.
    Weighted(Vec<f64>),
}

impl Choice {
    /// Builds the distribution in which variable `i` of `count` has weight `1 / (i + 1)^exponent`,
    /// as in Zipf's law.
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

/// Raises `base` to a power, to 20 binary digits of the fraction of `exponent`.
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
    fn powers_are_those_of_the_platform_but_for_rounding() {
        for (base, exponent) in [(1.0, 3.5), (2.0, 1.0), (10.0, 0.99), (1000.0, 1.2), (7.0, 0.0)] {
            let expected = f64::powf(base, exponent);
            assert!((power(base, exponent) / expected - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn a_skewed_choice_follows_zipf() {
        let choice = Choice::zipf(4, 1.0);
        let mut random = choices_of(Chooser::Clients, 3);
        let mut counts = [0u32; 4];
        for _ in 0..25_000 {
            counts[choice.choose(&mut random) as usize] += 1;
        }
        for (count, expected) in counts.into_iter().zip([12_000, 6_000, 4_000, 3_000]) {
            assert!(count.abs_diff(expected) < 400, "{counts:?}");
        }
    }
}
