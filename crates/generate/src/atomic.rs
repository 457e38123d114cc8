//! Sequential consistency: one atomic memory.
//!
//! The machine is Lamport's definition: the sessions act on one memory, one operation at a time.
//! The clients choose the order of the sessions, so the memory itself makes no random choice.

use crate::memory::Machine;
use crate::workload::Workload;

/// One value per variable.
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
