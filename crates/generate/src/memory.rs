//! The memories on which clients run: their names and their common trait.

use std::fmt;
use std::str::FromStr;

use crate::atomic::Atomic;
use crate::broken::Broken;
use crate::buffered::{Buffered, Drain};
use crate::random::{Chooser, choices_of};
use crate::replicated::{Replicated, Winner};
use crate::workload::Workload;

/// A simulated memory, named for the model that it implements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Memory {
    /// Sequential consistency.
    Sc,
    /// Total store order.
    Tso,
    /// Partial store order.
    Pso,
    /// Causal convergence.
    Ccv,
    /// Causal memory.
    Cm,
    /// No guarantee at all.
    Broken,
}

/// A name that no memory has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no memory named {name:?}; there are sc, tso, pso, ccv, cm and broken")]
pub struct UnknownMemory {
    /// The name.
    pub name: String,
}

impl Memory {
    /// Every memory.
    pub const ALL: [Memory; 6] =
        [Memory::Sc, Memory::Tso, Memory::Pso, Memory::Ccv, Memory::Cm, Memory::Broken];

    /// Returns the memory's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Memory::Sc => "sc",
            Memory::Tso => "tso",
            Memory::Pso => "pso",
            Memory::Ccv => "ccv",
            Memory::Cm => "cm",
            Memory::Broken => "broken",
        }
    }

    /// Describes in one sentence how the memory works.
    pub fn description(self) -> &'static str {
        match self {
            Memory::Sc => "One memory on which the sessions act one at a time, in a random order.",
            Memory::Tso => {
                "One memory with a store buffer per session, first in, first out, that its own \
                 session reads first and that fences and read-modify-writes empty."
            }
            Memory::Pso => {
                "One memory with a store buffer per session and variable, otherwise as for tso: \
                 stores of a session to different variables overtake each other."
            }
            Memory::Ccv => {
                "One replica per session that receives the others' writes in causal order and \
                 holds of each variable the write with the greatest Lamport timestamp."
            }
            Memory::Cm => {
                "One replica per session that receives the others' writes in causal order and \
                 holds of each variable the write that it applied last."
            }
            Memory::Broken => {
                "One replica per session that receives the others' writes in any order, loses \
                 some, and at times answers with what it held before."
            }
        }
    }

    /// Builds the machine.
    pub(crate) fn machine(self, workload: &Workload) -> Box<dyn Machine> {
        let random = choices_of(Chooser::Memory, workload.seed);
        match self {
            Memory::Sc => Box::new(Atomic::new(workload)),
            Memory::Tso => Box::new(Buffered::new(workload, Drain::Oldest, random)),
            Memory::Pso => Box::new(Buffered::new(workload, Drain::OldestOfAVariable, random)),
            Memory::Ccv => Box::new(Replicated::new(workload, Winner::Greatest, random)),
            Memory::Cm => Box::new(Replicated::new(workload, Winner::Last, random)),
            Memory::Broken => Box::new(Broken::new(workload, random)),
        }
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Memory {
    type Err = UnknownMemory;

    fn from_str(name: &str) -> Result<Self, UnknownMemory> {
        Memory::ALL
            .into_iter()
            .find(|memory| memory.as_str() == name)
            .ok_or_else(|| UnknownMemory { name: name.into() })
    }
}

/// A running memory: a state, and the effect of the sessions' operations on it.
///
/// Every variable holds 0 at first.
pub(crate) trait Machine {
    /// Delivers a random part of the messages or stores in transit, before `session` acts.
    fn pass_time(&mut self, session: usize);

    /// Returns the value that `session` reads from `variable`.
    fn read(&mut self, session: usize, variable: usize) -> u32;

    /// Writes `value` to `variable`, on behalf of `session`.
    fn write(&mut self, session: usize, variable: usize, value: u32);

    /// Completes the writes of `session`, if the memory has fences; on replicas a fence does
    /// nothing.
    fn fence(&mut self, session: usize);

    /// Reads and writes at once, in place if the memory has fences; on replicas, it acts on the
    /// session's own replica.
    fn rmw(&mut self, session: usize, variable: usize, value: u32) -> u32 {
        self.fence(session);
        let found = self.read(session, variable);
        self.write(session, variable, value);
        self.fence(session);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_is_found_by_its_name() {
        for memory in Memory::ALL {
            assert_eq!(memory.to_string().parse(), Ok(memory));
            let text = memory.description();
            assert!(text.ends_with('.') && text.matches(". ").count() == 0, "{text}");
        }
        let error = "TSO".parse::<Memory>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no memory named \"TSO\"; there are sc, tso, pso, ccv, cm and broken"
        );
    }
}
