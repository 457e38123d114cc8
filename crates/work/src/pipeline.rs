//! A pipeline of items through workers, with results in input order and bounded memory.
//!
//! The calling thread reads items, and workers process them. The worker that finishes the next item
//! in input order hands on its result and the results that waited for it. The items in progress are
//! bounded by weight, so that neither many small items nor a few huge ones pile up, and the first
//! result comes out as soon as it is known.
//!
//! If no worker thread can be created, the calling thread processes each item itself. If the
//! processing of an item panics, no more items are read, and the panic reaches the caller; work
//! that should survive its own panics uses [`catch_panic`](crate::catch_panic()).

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::threads::spawn_scoped;

/// Largest total weight of the items in progress, in operations.
const MAX_WEIGHT: usize = 4_000_000;
/// Weight of an item in addition to its operations.
const ITEM_WEIGHT: usize = 1_000;

/// Runs items through workers.
///
/// `produce` receives a function that takes an item and its number of operations and returns
/// whether more items are wanted; `work` runs on up to `jobs` threads; `consume` receives the
/// results in order and returns whether more results are wanted.
pub fn run<I: Send, O: Send>(
    jobs: usize,
    produce: impl FnOnce(&mut dyn FnMut(I, usize) -> bool),
    work: impl Fn(I) -> O + Sync,
    consume: impl FnMut(O) -> bool + Send,
) {
    let load = Load::default();
    let output = Mutex::new(Output { early: BTreeMap::new(), next: 0, consume });
    let (to_workers, from_reader) = channel::<(u64, usize, I)>();
    let from_reader = Mutex::new(from_reader);
    std::thread::scope(|scope| {
        let worker = || {
            let stop_on_panic = StopOnPanic(&load);
            while let Some((number, weight, item)) = receive(&from_reader) {
                let result = work(item);
                locked(&output).hand_on(&load, number, weight, result);
            }
            drop(stop_on_panic);
        };
        let created = (0..jobs.max(1)).map_while(|_| spawn_scoped(scope, worker).ok()).count();
        let mut number = 0;
        produce(&mut |item, operations| {
            let weight = ITEM_WEIGHT + operations;
            if !load.take(weight) {
                return false;
            }
            if created == 0 {
                let result = work(item);
                locked(&output).hand_on(&load, number, weight, result);
            } else if to_workers.send((number, weight, item)).is_err() {
                return false;
            }
            number += 1;
            !load.is_stopped()
        });
        // The workers end when the channel is closed and empty.
        drop(to_workers);
    });
}

fn receive<T>(receiver: &Mutex<Receiver<T>>) -> Option<T> {
    locked(receiver).recv().ok()
}

/// Locks a mutex; poisoning is ignored, because a panic of a thread that holds the lock stops the
/// run.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Results on their way to the consumer.
struct Output<O, C> {
    /// Results of items after one that is not finished, with their weights.
    early: BTreeMap<u64, (usize, O)>,
    /// Number of the item whose result is handed on next.
    next: u64,
    consume: C,
}

impl<O, C: FnMut(O) -> bool> Output<O, C> {
    /// Hands on a result and those that waited for it, or keeps it until its turn comes.
    fn hand_on(&mut self, load: &Load, number: u64, weight: usize, result: O) {
        self.early.insert(number, (weight, result));
        while let Some((weight, result)) = self.early.remove(&self.next) {
            self.next += 1;
            load.give(weight);
            if load.is_stopped() {
                continue;
            }
            if !(self.consume)(result) {
                load.stop();
            }
        }
    }
}

/// Stops a run when a worker panics, so that the reader does not wait for the worker.
struct StopOnPanic<'l>(&'l Load);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

/// Weight of the items in progress.
#[derive(Default)]
struct Load {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    weight: usize,
    is_stopped: bool,
}

impl Load {
    /// Waits until there is room for an item; a single item always has room. Returns whether more
    /// is wanted.
    fn take(&self, weight: usize) -> bool {
        let is_full = |state: &mut State| {
            !state.is_stopped && state.weight > 0 && state.weight + weight > MAX_WEIGHT
        };
        let mut state = self
            .changed
            .wait_while(locked(&self.state), is_full)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        state.weight += weight;
        !state.is_stopped
    }

    fn give(&self, weight: usize) {
        locked(&self.state).weight -= weight;
        self.changed.notify_all();
    }

    fn stop(&self) {
        locked(&self.state).is_stopped = true;
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        locked(&self.state).is_stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panics::catch_panic;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let mut seen = Vec::new();
        run(
            4,
            |push| {
                for i in 0..10_000u32 {
                    assert!(push(i, (i as usize * 7919) % 1_000_000));
                }
            },
            |i| {
                std::thread::yield_now();
                i * 2
            },
            |i| {
                seen.push(i);
                true
            },
        );
        assert_eq!(seen, (0..10_000).map(|i| i * 2).collect::<Vec<u32>>());
    }

    #[test]
    fn a_consumer_that_has_enough_stops_the_rest() {
        let mut seen = 0;
        run(
            2,
            |push| {
                let mut pushed = 0u64;
                while push(pushed, 100_000) {
                    pushed += 1;
                }
            },
            |i| i,
            |_| {
                seen += 1;
                seen < 10
            },
        );
        assert_eq!(seen, 10);
    }

    #[test]
    fn a_panic_ends_the_run_and_reaches_the_caller() {
        let mut seen = 0;
        let endless = catch_panic(|| {
            run(
                3,
                |push| {
                    let mut pushed = 0u64;
                    while push(pushed, 1_000_000) {
                        pushed += 1;
                    }
                },
                |i| assert!(i != 20, "item {i} is bad"),
                |()| {
                    seen += 1;
                    true
                },
            );
        });
        assert!(endless.is_err());
        assert!(seen <= 20);
    }
}
