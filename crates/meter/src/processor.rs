//! Processor time and memory, as Linux tells them in `/proc`.

use std::fs;
use std::time::Duration;

/// Returns the processor time of all threads of this process, those that have ended included.
pub(crate) fn of_process() -> Option<Duration> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program stands in parentheses and may hold anything.
    let fields = text.rsplit_once(')')?.1;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    // `USER_HZ` is 100 on every architecture that Linux has in common use.
    Some(Duration::from_millis((user + system) * 10))
}

/// Returns the processor time of this thread.
pub(crate) fn of_thread() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Returns the bytes of anonymous memory that are resident.
pub(crate) fn resident() -> Option<u64> {
    /// Size of a page on most machines; where pages are larger, less is found than there is.
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
        assert!(of_thread().is_none_or(|own| own > Duration::from_millis(5)), "{sum}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn resident_memory_grows_with_what_is_written_to() {
        let before = resident().expect("Linux tells it");
        let table = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(resident().expect("Linux tells it") >= before + table.len() as u64 / 2);
    }
}
