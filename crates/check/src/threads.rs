//! Work that threads share.

use std::sync::atomic::{AtomicUsize, Ordering};

use consistory_history::History;
use consistory_verdict::Stopped;

/// Histories smaller than this are looked at by one thread.
const WORTH_THREADS: usize = 20_000;

/// Gives the number of threads that a history is worth.
pub(crate) fn worthy(history: &History, jobs: usize) -> usize {
    if history.len() < WORTH_THREADS { 1 } else { jobs }
}

/// Does numbered pieces of work on some threads and gives the results in the order of the numbers.
pub(crate) fn side_by_side<T: Send>(
    pieces: usize,
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let threads = threads.min(pieces);
    if threads <= 1 {
        return (0..pieces).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let mut results: Vec<Option<T>> = (0..pieces).map(|_| None).collect();
    std::thread::scope(|scope| {
        let worker = || {
            let mut mine = Vec::new();
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= pieces {
                    return mine;
                }
                mine.push((piece, work(piece)));
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            for (piece, result) in worker.join().expect("a worker does not panic") {
                results[piece] = Some(result);
            }
        }
    });
    results.into_iter().map(|result| result.expect("every piece was taken once")).collect()
}

/// Does the same with work that may stop.
pub(crate) fn in_parallel<T: Send>(
    pieces: usize,
    threads: usize,
    work: impl Fn(usize) -> Result<T, Stopped> + Sync,
) -> Result<Vec<T>, Stopped> {
    side_by_side(pieces, threads, work).into_iter().collect()
}
