//! Measures the resources that this process uses: allocated bytes and processor time.
//!
//! Deciders account for their own tables exactly, but not for the rest: texts, indexes, and the
//! memory of libraries. A program that installs [`CountingAllocator`] knows the sum, and
//! [`ProcessMeter`] provides it to budgets ([`consistory_verdict::Meter`]).
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

use std::sync::Mutex;
use std::time::{Duration, Instant};

use consistory_verdict::Meter;

pub use allocator::{CountingAllocator, allocated, tame};

/// Measures this process, relative to the bytes that were allocated when the meter was built.
///
/// A query for the allocated bytes returns free pages to the system if many more pages are in
/// memory than are in use, so that memory freed for one history does not remain while the next one
/// is judged.
#[derive(Debug)]
pub struct ProcessMeter {
    baseline: u64,
    /// Resident anonymous memory when the meter was built.
    resident_baseline: u64,
    /// Time of the next inspection of the pages in memory.
    next_look: Mutex<Instant>,
}

/// Time between two inspections of the pages in memory.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Returning pages may take at most one part in this many of the time.
const MAX_RELEASE_SHARE: u32 = 20;
/// Largest number of resident bytes beyond those in use that are not worth returning.
const MAX_LEFT_OVER: u64 = 4 << 20;

impl ProcessMeter {
    /// Builds a meter; bytes that are already allocated do not count.
    pub fn new() -> Self {
        ProcessMeter {
            baseline: allocated(),
            resident_baseline: processor::resident().unwrap_or(0),
            next_look: Mutex::new(Instant::now()),
        }
    }

    /// Returns free pages to the system if there are many, unless this was done a moment ago.
    fn release_pages(&self, in_use: u64) {
        // Another thread is already doing the same.
        let Ok(mut next_look) = self.next_look.try_lock() else { return };
        let now = Instant::now();
        if now < *next_look {
            return;
        }
        *next_look = now + LOOK_EVERY;
        let resident = processor::resident().unwrap_or(0).saturating_sub(self.resident_baseline);
        if resident > in_use + in_use / 16 + MAX_LEFT_OVER {
            // Only work counts, not the time for which this thread waits on a loaded machine.
            let started = processor::of_thread();
            allocator::release();
            let work = processor::of_thread().zip(started).map(|(end, start)| end - start);
            let cost = work.unwrap_or_else(|| now.elapsed());
            *next_look = Instant::now() + LOOK_EVERY.max(cost * MAX_RELEASE_SHARE);
        }
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
        let in_use = allocated().saturating_sub(self.baseline);
        self.release_pages(in_use);
        in_use
    }
}
