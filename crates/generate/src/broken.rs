//! A memory without guarantees: replicas with lost, reordered and stale messages.
//!
//! As in the causal memories, a session acts on its own replica and its writes are sent to the
//! others. But messages arrive in any order, even two from the same session; one in eight is lost;
//! a replica holds the write that it applied last; and one read in eight is stale: it returns the
//! previous value of the variable. Only values that were never written and reads from the future do
//! not occur.

use crate::memory::Machine;
use crate::random::Random;
use crate::workload::Workload;

/// One message in this many is lost, and one read in this many is stale.
const STEPS_PER_FAILURE: u32 = 8;

/// Replicas and the messages in transit to each.
pub(crate) struct Broken {
    variables: usize,
    /// Value that replica r holds for variable v, at `r * variables + v`.
    cells: Vec<Cell>,
    inboxes: Vec<Vec<Message>>,
    capacity: usize,
    random: Random,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    value: u32,
    before: u32,
}

#[derive(Clone, Copy)]
struct Message {
    variable: u32,
    value: u32,
}

impl Broken {
    pub(crate) fn new(workload: &Workload, random: Random) -> Self {
        let (sessions, variables) = (workload.sessions as usize, workload.variables as usize);
        Self {
            variables,
            cells: vec![Cell::default(); sessions * variables],
            inboxes: vec![Vec::new(); sessions],
            capacity: workload.lag as usize * (sessions - 1),
            random,
        }
    }

    /// Takes any message from the inbox of `replica`, and applies or loses it.
    fn receive(&mut self, replica: usize) {
        let waiting = self.inboxes[replica].len() as u32;
        if waiting == 0 {
            return;
        }
        let any = self.random.below(waiting) as usize;
        let message = self.inboxes[replica].swap_remove(any);
        if !self.random.once_in(STEPS_PER_FAILURE) {
            self.apply(replica, message);
        }
    }

    fn apply(&mut self, replica: usize, message: Message) {
        let cell = &mut self.cells[replica * self.variables + message.variable as usize];
        *cell = Cell { value: message.value, before: cell.value };
    }
}

impl Machine for Broken {
    fn pass_time(&mut self, session: usize) {
        if self.random.once_in(2) {
            return;
        }
        for _ in 0..self.random.below(self.inboxes[session].len() as u32 + 1) {
            self.receive(session);
        }
    }

    fn read(&mut self, session: usize, variable: usize) -> u32 {
        let cell = self.cells[session * self.variables + variable];
        if self.random.once_in(STEPS_PER_FAILURE) { cell.before } else { cell.value }
    }

    fn write(&mut self, session: usize, variable: usize, value: u32) {
        let message = Message { variable: variable as u32, value };
        self.apply(session, message);
        for replica in (0..self.inboxes.len()).filter(|&replica| replica != session) {
            self.inboxes[replica].push(message);
            if self.inboxes[replica].len() > self.capacity {
                self.receive(replica);
            }
        }
    }

    fn fence(&mut self, _session: usize) {}
}
