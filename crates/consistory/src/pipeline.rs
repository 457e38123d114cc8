//! One or a million: histories through workers, results in input order, bounded memory.
//!
//! The calling thread reads; workers judge; a third party hands the results on in the order in
//! which the histories were read. What is under way is bounded by weight, so that neither many
//! small histories nor a few huge ones pile up, and the first result comes out as soon as it is
//! known.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex};

/// How much may be under way: about that many operations.
const CAPACITY: usize = 4_000_000;
/// What an item weighs besides its operations.
const ITEM: usize = 1_000;

/// Runs items through workers.
///
/// `produce` is called with a function that takes an item and its number of operations and says
/// whether more is wanted; `work` runs on `jobs` threads; `consume` gets the results in order and
/// says whether more is wanted.
pub fn run<I: Send, O: Send>(
    jobs: usize,
    produce: impl FnOnce(&mut dyn FnMut(I, usize) -> bool),
    work: impl Fn(I) -> O + Sync,
    consume: impl FnMut(O) -> bool + Send,
) {
    let load = Load::default();
    let (to_workers, from_reader) = sync_channel::<(u64, usize, I)>(jobs);
    let (to_writer, from_workers) = sync_channel::<(u64, usize, O)>(jobs);
    let from_reader = Arc::new(Mutex::new(from_reader));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (from_reader, to_writer) = (Arc::clone(&from_reader), to_writer.clone());
            let work = &work;
            scope.spawn(move || worker(&from_reader, &to_writer, work));
        }
        // Only the workers hold these now, so that a channel closes when the last of them is gone.
        drop((to_writer, from_reader));
        let load = &load;
        scope.spawn(move || hand_on(from_workers, load, consume));
        let mut number = 0;
        produce(&mut |item, operations| {
            let weight = ITEM + operations;
            if !load.take(weight) || to_workers.send((number, weight, item)).is_err() {
                return false;
            }
            number += 1;
            true
        });
        drop(to_workers);
    });
}

fn worker<I, O>(
    from_reader: &Mutex<Receiver<(u64, usize, I)>>,
    to_writer: &SyncSender<(u64, usize, O)>,
    work: impl Fn(I) -> O,
) {
    loop {
        let next = from_reader.lock().expect("no worker panics while it holds the lock").recv();
        let Ok((number, weight, item)) = next else { return };
        if to_writer.send((number, weight, work(item))).is_err() {
            return;
        }
    }
}

/// Hands results on in order; what comes too early waits.
fn hand_on<O>(
    from_workers: Receiver<(u64, usize, O)>,
    load: &Load,
    mut consume: impl FnMut(O) -> bool,
) {
    let mut early: BTreeMap<u64, (usize, O)> = BTreeMap::new();
    let mut next = 0;
    for (number, weight, result) in from_workers {
        early.insert(number, (weight, result));
        while let Some((weight, result)) = early.remove(&next) {
            next += 1;
            load.give(weight);
            if !consume(result) {
                load.stop();
                return;
            }
        }
    }
}

/// What is under way.
#[derive(Default)]
struct Load {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    weight: usize,
    stopped: bool,
}

impl Load {
    /// Waits for room; an item alone always has room. Says whether more is wanted.
    fn take(&self, weight: usize) -> bool {
        let state = self.state.lock().expect("nobody panics while holding it");
        let mut state = self
            .changed
            .wait_while(state, |s| !s.stopped && s.weight > 0 && s.weight + weight > CAPACITY)
            .expect("nobody panics while holding it");
        state.weight += weight;
        !state.stopped
    }

    fn give(&self, weight: usize) {
        self.state.lock().expect("nobody panics while holding it").weight -= weight;
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.state.lock().expect("nobody panics while holding it").stopped = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
