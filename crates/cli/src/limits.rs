//! Budgets of this process: processor time, and allocated memory.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use consistory::MIN_READING_TIME;
use consistory_meter::{CountingAllocator, ProcessMeter};
use consistory_verdict::{Budget, Gauge};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Makes the allocator return freed memory to the system, so that the memory limit holds for the
/// process as the system measures it.
pub(crate) fn tame_allocator() {
    consistory_meter::tame();
}

/// Returns the gauge of this process; memory allocated before the first call does not count.
pub(crate) fn gauge() -> Gauge {
    static GAUGE: OnceLock<Gauge> = OnceLock::new();
    GAUGE.get_or_init(|| Gauge::new(Arc::new(ProcessMeter::new()))).clone()
}

/// Builds a budget of time, counted from now.
pub(crate) fn budget(time: Duration) -> Budget {
    Budget::unlimited().with_gauge(gauge()).with_time(time)
}

/// Builds the budget for reading one history: the time of a model, and half of its memory.
pub(crate) fn reading_budget(time: Duration, memory: u64) -> Budget {
    budget(time.max(MIN_READING_TIME)).with_memory(memory / 2)
}
