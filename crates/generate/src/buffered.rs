//! Total and partial store order: one memory with store buffers.
//!
//! ```text
//!   t0          t1
//!    |  stores   |  stores
//!  [ | ]       [ | ]      a read looks into its own session's buffer first, newest store first,
//!    |           |        then into the memory
//!  ==+===========+==
//!       memory
//! ```
//!
//! This is the abstract machine of x86-TSO (Owens, Sarkar, Sewell, 2009), and of SPARC's manual
//! before it. Under TSO a buffer is first in, first out. Under PSO there is one buffer per session
//! and variable; this is equivalent to one queue from which the oldest store of *some* variable
//! leaves. A fence empties the buffers of its session, and so does a read-modify-write, before and
//! after.
//!
//! Before an operation, buffers of random sessions drain in part: one with probability a third,
//! another with a third of that, and so on, half a buffer on average; from each, a random number of
//! stores leaves, from none to all. So the buffers keep up with any share of writes, and the number
//! of buffered stores does not depend on the number of sessions. None holds more than
//! [`Workload::lag`] stores: one store too many pushes another out, which is a drain that might
//! have happened anyway.

use std::collections::VecDeque;

use crate::memory::Machine;
use crate::random::Random;
use crate::workload::Workload;

/// The rule by which stores leave a buffer.
#[derive(Clone, Copy)]
pub(crate) enum Drain {
    /// The oldest store: total store order.
    Oldest,
    /// The oldest store of any one variable: partial store order.
    OldestOfAVariable,
}

/// A memory and the buffered stores.
pub(crate) struct Buffered {
    cells: Vec<u32>,
    /// Stores of each session, oldest first.
    buffers: Vec<VecDeque<Store>>,
    capacity: usize,
    drain: Drain,
    random: Random,
}

#[derive(Clone, Copy)]
struct Store {
    variable: u32,
    value: u32,
}

impl Buffered {
    pub(crate) fn new(workload: &Workload, drain: Drain, random: Random) -> Self {
        Self {
            cells: vec![0; workload.variables as usize],
            buffers: vec![VecDeque::new(); workload.sessions as usize],
            capacity: workload.lag as usize,
            drain,
            random,
        }
    }

    /// Lets one store of `session` reach the memory, if there is one.
    fn drain(&mut self, session: usize) {
        let buffer = &mut self.buffers[session];
        if buffer.is_empty() {
            return;
        }
        let at = match self.drain {
            Drain::Oldest => 0,
            Drain::OldestOfAVariable => {
                let any = buffer[self.random.below(buffer.len() as u32) as usize];
                buffer.iter().position(|store| store.variable == any.variable).unwrap_or(0)
            }
        };
        if let Some(store) = buffer.remove(at) {
            self.cells[store.variable as usize] = store.value;
        }
    }
}

impl Machine for Buffered {
    fn pass_time(&mut self, _session: usize) {
        while self.random.once_in(3) {
            let session = self.random.below(self.buffers.len() as u32) as usize;
            for _ in 0..self.random.below(self.buffers[session].len() as u32 + 1) {
                self.drain(session);
            }
        }
    }

    fn read(&mut self, session: usize, variable: usize) -> u32 {
        let own = self.buffers[session].iter().rfind(|store| store.variable as usize == variable);
        own.map_or(self.cells[variable], |store| store.value)
    }

    fn write(&mut self, session: usize, variable: usize, value: u32) {
        self.buffers[session].push_back(Store { variable: variable as u32, value });
        if self.buffers[session].len() > self.capacity {
            self.drain(session);
        }
    }

    fn fence(&mut self, session: usize) {
        while !self.buffers[session].is_empty() {
            self.drain(session);
        }
    }
}
