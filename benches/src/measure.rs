//! Measures times, memory and processor time of this process, and formats them.

use std::fs;
use std::time::{Duration, Instant};

/// Time for which an action is repeated to measure it, and smallest number of runs, so that a run
/// interrupted by another process has little effect.
const REPEATED_FOR: Duration = Duration::from_millis(2);
const LEAST_RUNS: usize = 9;

/// Number of clock ticks per second that Linux reports, on every platform.
const TICKS: f64 = 100.0;

/// Returns the result of an action and its time: the median of the runs that fit into a few
/// milliseconds, after a first run that does not count.
pub fn repeated<T>(mut action: impl FnMut() -> T) -> (T, Duration) {
    let result = action();
    let mut times = Vec::new();
    let started = Instant::now();
    while times.len() < LEAST_RUNS || started.elapsed() < REPEATED_FOR {
        times.push(once(|| std::hint::black_box(action())).1);
    }
    (result, median(times))
}

/// Returns the result of an action and the time of a single run.
pub fn once<T>(action: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = action();
    (result, started.elapsed())
}

/// Returns the peak memory of this process in bytes.
pub fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Returns the user time of this process.
pub fn user_time() -> Option<Duration> {
    ticks(11)
}

/// Returns the user time of the child processes that ended and were waited for.
pub fn child_time() -> Option<Duration> {
    ticks(13)
}

fn ticks(field: usize) -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the command, in parentheses, may contain any text; the fields after it start with
    // the third.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: f64 = fields.split_whitespace().nth(field)?.parse().ok()?;
    Some(Duration::from_secs_f64(ticks / TICKS))
}

/// Returns the result of an action and its processor time, for a single run.
///
/// The system counts processor time in ticks of a few milliseconds, so shorter actions are timed by
/// the clock. Only for an action on one thread.
pub fn once_on_processor<T>(action: impl FnOnce() -> T) -> (T, Duration) {
    let before = thread_time();
    let (result, time) = once(action);
    let spent = thread_time().zip(before).and_then(|(now, before)| now.checked_sub(before));
    (result, spent.map_or(time, |spent| time.min(spent + TICK)))
}

/// Largest interval between two ticks of the system.
const TICK: Duration = Duration::from_millis(4);

fn thread_time() -> Option<Duration> {
    let spent = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = spent.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// Returns the median; zero for an empty list.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Returns the mean; zero for an empty list.
pub fn mean(times: &[Duration]) -> Duration {
    times.iter().sum::<Duration>() / times.len().max(1) as u32
}

/// Returns the quotient of two times.
pub fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

/// Formats a time with three digits.
pub fn show_time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (number, unit) = match seconds {
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    format!("{} {unit}", show_number(number))
}

/// Formats a quotient with three digits.
pub fn show_ratio(ratio: f64) -> String {
    format!("{}×", show_number(ratio))
}

/// Formats a size.
pub fn show_size(bytes: u64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes < 1024.0 {
        format!("{} MiB", show_number(mebibytes))
    } else {
        format!("{} GiB", show_number(mebibytes / 1024.0))
    }
}

/// Formats a count with commas between thousands.
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

fn show_number(number: f64) -> String {
    match number {
        n if n < 9.995 => format!("{n:.2}"),
        n if n < 99.95 => format!("{n:.1}"),
        n => show_count(n.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        let shown = |seconds| show_time(Duration::from_secs_f64(seconds));
        assert_eq!(shown(0.000_001_234), "1.23 µs");
        assert_eq!(shown(0.0999), "99.9 ms");
        assert_eq!(shown(12.345), "12.3 s");
        assert_eq!(show_ratio(1_234_567.8), "1,234,568×");
        assert_eq!(show_size(3 << 29), "1.50 GiB");
        assert_eq!(show_count(1_000), "1,000");
        assert_eq!(show_count(999), "999");
    }

    #[test]
    fn a_process_knows_what_it_used() {
        assert!(peak_memory().is_some_and(|bytes| bytes > 1 << 16));
        assert!(user_time().is_some());
        let (_, slept) = once_on_processor(|| std::thread::sleep(Duration::from_millis(60)));
        assert!(thread_time().is_none() || slept < Duration::from_millis(60), "{slept:?}");
    }
}
