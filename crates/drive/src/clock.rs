//! The clock of a run.

use std::time::{Duration, Instant};

/// The monotonic clock of this process, in nanoseconds since the run began.
///
/// All requests get their times from this clock: the invocation before the first byte is sent, the
/// completion after the last byte was read. Intervals are therefore never too short.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Instant,
}

impl Clock {
    /// Starts the clock.
    pub fn start() -> Self {
        Clock { base: Instant::now() }
    }

    /// Returns the time; it is never 0.
    pub fn now(&self) -> u64 {
        self.elapsed().as_nanos() as u64 + 1
    }

    /// Returns the time since the clock was started.
    pub fn elapsed(&self) -> Duration {
        self.base.elapsed()
    }
}
