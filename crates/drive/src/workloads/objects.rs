//! Objects: a set, a queue, registers with compare-and-set.

use super::{Program, Workload};
use crate::request::{Action, Key, Request};

/// Every session adds elements; the set is read only at the end.
pub(super) struct SetOfElements;

impl Workload for SetOfElements {
    fn next(&self, program: &mut Program) -> Request {
        Request::Add(program.fresh())
    }

    fn last(&self) -> Vec<Request> {
        vec![Request::Members]
    }
}

/// Half of the requests enqueue an element, half dequeue one.
pub(super) struct Queue;

impl Workload for Queue {
    fn next(&self, program: &mut Program) -> Request {
        match program.random.percent(50) {
            true => Request::Enqueue(program.fresh()),
            false => Request::Dequeue,
        }
    }
}

/// Requests of a session after which its registers are replaced by new ones.
const REQUESTS_PER_KEY: u32 = 30;

/// Number of distinct values.
const VALUES: u32 = 5;

/// Reads, writes and compare-and-set of a few values.
pub(super) struct CasRegister {
    pub(super) keys: u32,
}

impl Workload for CasRegister {
    fn next(&self, program: &mut Program) -> Request {
        let window = program.requests / REQUESTS_PER_KEY;
        let key = Key(window * self.keys + program.random.below(self.keys));
        let mut value = || i64::from(program.random.below(VALUES));
        let (old, new) = (value(), value());
        match program.random.below(3) {
            0 => Request::Single(Action::Read(key)),
            1 => Request::Single(Action::Write(key, new)),
            _ => {
                let old = (!program.random.percent(20)).then_some(old);
                Request::CompareAndSet { key, old, new }
            }
        }
    }
}
