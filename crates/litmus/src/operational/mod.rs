//! Operational memory models: machines that run programs step by step.
//!
//! A machine is a combination of a few kinds of components ([`Component`]), declared as data (for
//! example [`Machine::TSO`]), after section 3 of Mador-Haim, Alur and Martin, *Generating Litmus
//! Tests for Contrasting Memory Consistency Models* (2010). [`outcomes`] explores all behaviours of
//! a program on a machine; each outcome comes with a [`Run`] that leads to it. [`diagram`] and
//! [`svg_diagram`] draw a machine.
//!
//! # Beyond the paper's programs
//!
//! - A read-modify-write is ordered with all accesses: it waits for the same condition as a full
//!   fence, and takes effect in all views at once.
//! - A load fence has no effect if reads are answered in program order. Otherwise it waits for the
//!   reads before it and discards past values.
//! - A store fence keeps the writes before it ahead of those after it in every queue.
//! - Registers and jumps are local to the processor. If reads can be postponed, a write or an
//!   address that depends on a register waits for it, and so does a jump. An instruction that a
//!   machine does not support is an error ([`Unsupported`]).
//!
//! # Differences from the paper's text
//!
//! - A fence waits for all queues to the views, as in the paper's section 5.3 and in the axioms.
//! - A future read does not guess its value and have the guess confirmed: its register stays open
//!   until the read is answered. The completed runs are the same, and wrong guesses are never
//!   explored.
//! - A postponed read may be answered before older postponed reads; they are not ordered.
//! - A write is sent to the views when its own view has taken all older writes to the location (see
//!   `step.rs`).

mod compile;
mod component;
mod diagram;
mod explore;
mod future;
mod machine;
mod read;
mod run;
mod step;
#[cfg(test)]
mod tests;

use consistory_verdict::{Budget, Stopped};
use thiserror::Error;

use crate::program::{Outcomes, Program};
use crate::semantics::{OutcomesError, Semantics};

pub use diagram::{diagram, svg_diagram};
pub use explore::{Effort, Explorer, outcomes};
pub use machine::{Component, Each, Machine, Part, WiringError};
pub use read::read_machine;
pub use run::{Action, Origin, Run, RunStep};

/// Reason why the outcomes of a program on a machine are unknown.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum MachineError {
    /// The machine does not support an instruction.
    #[error(transparent)]
    Unsupported(Box<Unsupported>),
    /// The combination of components is not a machine.
    #[error(transparent)]
    Wiring(#[from] WiringError),
    /// The program is too large for the state of a machine.
    #[error("the program has {size} {what}; the limit of machines is {limit}")]
    TooLarge {
        /// Kind of the items of which there are too many.
        what: &'static str,
        /// Number of items, or number found before the search stopped.
        size: usize,
        /// Limit.
        limit: usize,
    },
    /// The budget ran out.
    #[error("{0}")]
    Stopped(Stopped),
}

/// An instruction that a machine does not support.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("thread {thread}, instruction {instruction}, `{text}`: {why} ({machine})")]
pub struct Unsupported {
    /// The machine's id.
    pub machine: &'static str,
    /// The thread, counted from 0.
    pub thread: usize,
    /// Index of the instruction in the thread's code.
    pub instruction: usize,
    /// The instruction.
    pub text: String,
    /// Unsupported feature.
    pub why: &'static str,
}

impl Semantics for Machine {
    fn name(&self) -> &str {
        self.name
    }

    fn outcomes(&self, program: &Program, budget: &Budget) -> Result<Outcomes, OutcomesError> {
        Ok(Explorer::new().outcome_set(program, self, budget)?)
    }
}

impl From<MachineError> for OutcomesError {
    fn from(error: MachineError) -> Self {
        match error {
            MachineError::Stopped(stopped) => OutcomesError::Stopped(stopped),
            MachineError::TooLarge { what, size, limit } => {
                OutcomesError::TooLarge { what, found: size, limit }
            }
            MachineError::Unsupported(unsupported) => OutcomesError::Unsupported {
                model: unsupported.machine.to_owned(),
                what: unsupported.to_string(),
            },
            MachineError::Wiring(wiring) => OutcomesError::Unsupported {
                model: "a machine".to_owned(),
                what: format!("anything: {wiring}"),
            },
        }
    }
}

impl From<Stopped> for MachineError {
    fn from(stopped: Stopped) -> Self {
        MachineError::Stopped(stopped)
    }
}
