//! Random choices that the seed decides, the same on every platform.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A sequence of random choices.
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// Starts one of the many independent sequences of a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(stream);
        Random(generator)
    }

    /// Chooses a number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        debug_assert!(bound > 0, "there is nothing to choose from");
        // The bias of one in four billion does not matter here.
        ((u64::from(self.0.next_u32()) * u64::from(bound)) >> 32) as u32
    }

    /// Chooses a number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + u64::from(self.below((high - low + 1) as u32))
    }

    /// Says yes with a probability of `percent` in a hundred.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// Chooses one of several things.
    pub fn choose<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        &among[self.below(among.len() as u32) as usize]
    }
}
