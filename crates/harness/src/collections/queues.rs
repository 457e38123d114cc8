//! Queues.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use concurrent_queue::ConcurrentQueue;
use crossbeam_queue::{ArrayQueue, SegQueue};

use crate::harness::Harness;

pub(super) fn seg_queue() -> Harness<SegQueue<i64>> {
    Harness::new(SegQueue::new)
        .method("push", |q: &SegQueue<i64>, x: i64| q.push(x))
        .method("pop", |q, ()| q.pop())
        .method("len", |q, ()| q.len())
        .method("isEmpty", |q, ()| q.is_empty())
        .weight("push", 3)
        .weight("pop", 3)
}

/// A capacity of two: programs are short, and the queue should become full.
pub(super) fn array_queue() -> Harness<ArrayQueue<i64>> {
    Harness::new(|| ArrayQueue::new(2))
        .method("offer", |q: &ArrayQueue<i64>, x: i64| q.push(x).is_ok())
        .method("pop", |q, ()| q.pop())
        .method("len", |q, ()| q.len())
        .method("isEmpty", |q, ()| q.is_empty())
        .weight("offer", 3)
        .weight("pop", 3)
}

pub(super) fn unbounded() -> Harness<ConcurrentQueue<i64>> {
    concurrent_queue(ConcurrentQueue::unbounded)
}

/// A capacity of two: programs are short, and the queue should become full.
pub(super) fn bounded() -> Harness<ConcurrentQueue<i64>> {
    concurrent_queue(|| ConcurrentQueue::bounded(2))
}

fn concurrent_queue(make: fn() -> ConcurrentQueue<i64>) -> Harness<ConcurrentQueue<i64>> {
    Harness::new(make)
        .method("offer", |q: &ConcurrentQueue<i64>, x: i64| q.push(x).is_ok())
        .method("pop", |q, ()| q.pop().ok())
        .method("len", |q, ()| q.len())
        .method("isEmpty", |q, ()| q.is_empty())
        .weight("offer", 3)
        .weight("pop", 3)
}

/// A channel whose receiver is behind a lock.
type Channel = (Sender<i64>, Mutex<Receiver<i64>>);

pub(super) fn mpsc() -> Harness<Channel> {
    let make = || {
        let (sender, receiver) = channel();
        (sender, Mutex::new(receiver))
    };
    Harness::new(make)
        .method("offer", |(sender, _): &Channel, x: i64| sender.send(x).is_ok())
        .method("poll", |(_, receiver): &Channel, ()| {
            receiver.lock().unwrap_or_else(PoisonError::into_inner).try_recv().ok()
        })
}

/// A queue of the standard library behind a lock.
type Locked = Mutex<VecDeque<i64>>;

pub(super) fn locked() -> Harness<Locked> {
    Harness::new(Locked::default)
        .method("push", |q, x: i64| open(q, |q| q.push_back(x)))
        .method("pop", |q, ()| open(q, VecDeque::pop_front))
        .method("peek", |q, ()| open(q, |q| q.front().copied()))
        .method("len", |q, ()| open(q, |q| q.len()))
        .method("isEmpty", |q, ()| open(q, |q| q.is_empty()))
        .method("iter", |q, ()| open(q, |q| q.iter().copied().collect::<Vec<i64>>()))
        .weight("push", 3)
        .weight("pop", 3)
}

/// Returns the locked value; no code panics while it is locked.
fn open<R>(queue: &Locked, look: impl FnOnce(&mut VecDeque<i64>) -> R) -> R {
    look(&mut queue.lock().unwrap_or_else(PoisonError::into_inner))
}
