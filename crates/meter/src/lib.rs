//! What this process uses, measured: bytes that are allocated, and processor time.
//!
//! Deciders account for their tables, which is exact where it is done and says nothing of the rest:
//! texts, indexes, whatever a library keeps. A program that installs [`CountingAllocator`] knows the sum,
//! and [`ProcessMeter`] tells it to budgets ([`consistory_verdict::Meter`]).
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: consistory_meter::CountingAllocator = consistory_meter::CountingAllocator;
//!
//! let before = consistory_meter::allocated();
//! let table = vec![1_u8; 1 << 20];
//! assert!(consistory_meter::allocated() >= before + table.len() as u64);
//! ```
//!
//! Memory that C and C++ libraries allocate is not counted.

mod allocator;
mod processor;

use std::time::Duration;

use consistory_verdict::Meter;

pub use allocator::{CountingAllocator, allocated};

/// Measures this process, from the bytes that were allocated when it was made.
#[derive(Debug)]
pub struct ProcessMeter {
    baseline: u64,
}

impl ProcessMeter {
    /// Makes a meter; what is allocated already does not count.
    pub fn new() -> Self {
        ProcessMeter { baseline: allocated() }
    }
}

impl Default for ProcessMeter {
    fn default() -> Self {
        ProcessMeter::new()
    }
}

impl Meter for ProcessMeter {
    fn processor_time(&self) -> Option<Duration> {
        processor::of_process()
    }

    fn thread_time(&self) -> Option<Duration> {
        processor::of_thread()
    }

    fn allocated(&self) -> u64 {
        allocated().saturating_sub(self.baseline)
    }
}
