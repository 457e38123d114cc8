//! Processor time, by the clocks of the system, and resident memory, from `/proc` on Linux.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Returns the processor time of all threads of this process, including those that have ended.
pub(crate) fn of_process() -> Option<Duration> {
    duration(clock_gettime(ClockId::ProcessCPUTime))
}

/// Returns the processor time of this thread.
pub(crate) fn of_thread() -> Option<Duration> {
    duration(clock_gettime(ClockId::ThreadCPUTime))
}

/// Converts a reading of a clock; an unavailable clock reads zero.
fn duration(time: Timespec) -> Option<Duration> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u32::try_from(time.tv_nsec).ok()?;
    Some(Duration::new(seconds, nanos)).filter(|time| !time.is_zero())
}

/// Returns the bytes of anonymous memory that are resident.
pub(crate) fn resident() -> Option<u64> {
    /// Page size of most machines; on machines with larger pages, the result is too small.
    const PAGE_BYTES: u64 = 4096;
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let mut fields = text.split_ascii_whitespace().skip(1).map(str::parse);
    let (resident, shared): (u64, u64) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(resident.saturating_sub(shared) * PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn processor_time_grows_with_work() {
        let before = of_process().expect("Linux tells it");
        let mut sum = 0_u64;
        while of_process().expect("Linux tells it") < before + Duration::from_millis(30) {
            sum = (0..100_000).fold(sum, |sum, i| std::hint::black_box(sum ^ i));
        }
        assert!(of_thread().expect("Linux tells it") > Duration::from_millis(5), "{sum}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn resident_memory_grows_with_what_is_written_to() {
        let before = resident().expect("Linux tells it");
        let table = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(resident().expect("Linux tells it") >= before + table.len() as u64 / 2);
    }
}
