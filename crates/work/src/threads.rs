//! Execution of work on several threads.

use std::io;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use consistory_faults::{Point, fail};

/// Starts a thread; fails if the system creates no more.
pub fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    fail(Point::Thread)?;
    Builder::new().spawn(work)
}

/// Starts a thread in a scope; fails if the system creates no more.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    fail(Point::Thread)?;
    Builder::new().spawn_scoped(scope, work)
}

/// Runs a worker on the calling thread and on up to `threads - 1` others, and returns their results,
/// the calling thread's first.
///
/// If the system creates fewer threads, there are fewer workers, so workers must take the work from
/// a shared place. A panic of any worker is passed on after all have ended.
pub fn on_threads<T: Send>(threads: usize, worker: impl Fn() -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let others: Vec<ScopedJoinHandle<'_, T>> =
            (1..threads).map_while(|_| spawn_scoped(scope, &worker).ok()).collect();
        let mut results = vec![worker()];
        for other in others {
            match other.join() {
                Ok(result) => results.push(result),
                Err(panic) => resume_unwind(panic),
            }
        }
        results
    })
}

/// Performs numbered pieces of work on up to `threads` threads, and returns the results in the
/// order of the numbers.
pub fn side_by_side<T: Send>(
    pieces: usize,
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let threads = threads.min(pieces);
    if threads <= 1 {
        return (0..pieces).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&piece| piece < pieces);
    let done = on_threads(threads, || {
        let mut done = Vec::new();
        while let Some(piece) = take() {
            done.push((piece, work(piece)));
        }
        done
    });
    let mut results: Vec<Option<T>> = (0..pieces).map(|_| None).collect();
    for (piece, result) in done.into_iter().flatten() {
        results[piece] = Some(result);
    }
    results.into_iter().map(|result| result.expect("every piece was taken once")).collect()
}

/// Processes each item, on its own thread as far as the system creates threads, and returns the
/// results in the order of the items.
pub fn each<I: Send, T: Send>(items: Vec<I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    let count = items.len();
    let items: Vec<Mutex<Option<I>>> =
        items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    side_by_side(count, count, |number| {
        let mut item = items[number].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        work(item.take().expect("every item is taken once"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panics::catch_panic;

    #[test]
    fn results_have_the_order_of_the_pieces() {
        for threads in [0, 1, 2, 5, 40] {
            let squares = side_by_side(30, threads, |i| i * i);
            assert_eq!(squares, (0..30).map(|i| i * i).collect::<Vec<_>>(), "{threads}");
        }
        assert!(side_by_side(0, 4, |i| i).is_empty());
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        for threads in [1, 3] {
            let work = |i: usize| assert!(i != 5, "piece {i} is bad");
            let panicked = catch_panic(|| side_by_side(10, threads, work)).unwrap_err();
            assert_eq!(panicked.message, "piece 5 is bad");
        }
    }

    #[test]
    fn the_calling_thread_works_too() {
        let caller = std::thread::current().id();
        let workers = on_threads(3, || std::thread::current().id());
        assert_eq!(workers[0], caller);
        assert!(workers.len() <= 3);
    }
}
