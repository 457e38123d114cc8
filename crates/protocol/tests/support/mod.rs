//! Helpers of several tests.

#[allow(dead_code, reason = "not every test makes protocols")]
pub(crate) mod protocols;

/// A small generator of random numbers (splitmix64) with the same numbers for a seed everywhere.
pub(crate) struct Random(u64);

impl Random {
    /// Starts from a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns a number below a bound, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    /// Returns `true` with probability `times` in `of`.
    pub(crate) fn chance(&mut self, times: usize, of: usize) -> bool {
        self.below(of) < times
    }
}

/// Returns the number of random cases to try, multiplied by `CONSISTORY_CASES` if it is set.
pub(crate) fn cases(usual: u64) -> u64 {
    let times = std::env::var("CONSISTORY_CASES").ok().and_then(|times| times.parse().ok());
    usual * times.unwrap_or(1u64)
}
