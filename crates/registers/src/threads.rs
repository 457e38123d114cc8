//! Work shared by threads.

use consistory_history::History;
use consistory_verdict::Stopped;
use consistory_work::side_by_side;

/// Histories with fewer operations use one thread.
const MIN_PARALLEL_OPS: usize = 20_000;

/// Returns the number of threads to use for a history.
pub(crate) fn worthy(history: &History, jobs: usize) -> usize {
    if history.len() < MIN_PARALLEL_OPS { 1 } else { jobs }
}

/// Runs numbered tasks that may stop, on up to `threads` threads, and returns the results in the
/// order of the numbers.
pub(crate) fn in_parallel<T: Send>(
    pieces: usize,
    threads: usize,
    work: impl Fn(usize) -> Result<T, Stopped> + Sync,
) -> Result<Vec<T>, Stopped> {
    side_by_side(pieces, threads, work).into_iter().collect()
}
