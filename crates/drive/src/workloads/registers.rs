//! Reads and writes of a few registers.

use super::{Program, Workload};
use crate::request::{Action, Key, Request};

/// Reads and writes in equal numbers, on a few registers that all sessions share.
pub(super) struct Registers {
    pub(super) keys: u32,
}

impl Workload for Registers {
    fn next(&self, program: &mut Program) -> Request {
        let key = Key(program.random.below(self.keys));
        Request::Single(match program.random.percent(50) {
            true => Action::Write(key, program.fresh()),
            false => Action::Read(key),
        })
    }

    fn last(&self) -> Vec<Request> {
        (0..self.keys).map(|key| Request::Single(Action::Read(Key(key)))).collect()
    }
}
