//! Sequential consistency: one atomic memory.
//!
//! Lamport's definition is the machine: the sessions act on one memory, one operation at a time.
//! The clients choose whose turn it is, so nothing is left to chance here.

use crate::memory::Machine;
use crate::workload::Workload;

/// One value a variable.
pub(crate) struct Atomic {
    cells: Vec<u32>,
}

impl Atomic {
    pub(crate) fn new(workload: &Workload) -> Self {
        Self { cells: vec![0; workload.variables as usize] }
    }
}

impl Machine for Atomic {
    fn pass_time(&mut self, _session: usize) {}

    fn read(&mut self, _session: usize, variable: usize) -> u32 {
        self.cells[variable]
    }

    fn write(&mut self, _session: usize, variable: usize, value: u32) {
        self.cells[variable] = value;
    }

    fn fence(&mut self, _session: usize) {}
}
