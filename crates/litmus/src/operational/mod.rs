//! Operational memory models: machines that run programs step by step.
//!
//! A machine is a wiring of a few kinds of components ([`Component`]), declared as data
//! ([`Machine::TSO`] and its kin), after section 3 of Mador-Haim, Alur and Martin, *Generating
//! Litmus Tests for Contrasting Memory Consistency Models* (2010). [`outcomes`] explores all that
//! a machine can do with a program; each outcome comes with a [`Run`] that shows it. [`diagram`]
//! and [`svg_diagram`] draw a machine.
//!
//! # Beyond the paper's programs
//!
//! - A read-modify-write is ordered with everything: it waits for what a full fence waits for,
//!   and happens in all views at once.
//! - A load fence does nothing where reads are answered in program order. Elsewhere it waits for
//!   the reads before it and closes the past.
//! - A store fence keeps the writes before it ahead of those after it in every queue.
//! - Registers and jumps are the processor's own business. Where reads are answered late, a write
//!   or an address that depends on a register waits for it, and so does a jump. What a machine
//!   cannot follow is an error that names the instruction ([`Unsupported`]).
//!
//! # What differs from the paper's text
//!
//! - A fence waits for all queues to the views, as the paper's section 5.3 has it and the axioms.
//! - A future read does not guess its value and have the guess confirmed: its register stays open
//!   until the read is answered. Runs that end are the same, and wrong guesses are never run.
//! - A read that waits may be answered before older reads that wait; they are not ordered.
//! - A write is sent to the views when its own view has caught up (see `step.rs`).

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

/// Why a program's outcomes on a machine were not found.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum MachineError {
    /// The machine gives no meaning to an instruction.
    #[error(transparent)]
    Unsupported(Box<Unsupported>),
    /// The wiring is not a machine.
    #[error(transparent)]
    Wiring(#[from] WiringError),
    /// The program is larger than a machine's state can be.
    #[error("the program has {size} {what}, the machines take at most {limit}")]
    TooLarge {
        /// The kind of item of which there is too much.
        what: &'static str,
        /// How many there are, or how many came up before the search stopped.
        size: usize,
        /// How many are the most.
        limit: usize,
    },
    /// The budget ran out.
    #[error("{0}")]
    Stopped(Stopped),
}

/// An instruction that a machine gives no meaning to.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("thread {thread}, instruction {instruction}, `{text}`: {why} ({machine})")]
pub struct Unsupported {
    /// The machine's id.
    pub machine: &'static str,
    /// The thread, counted from 0.
    pub thread: usize,
    /// The instruction's place in the thread's code.
    pub instruction: usize,
    /// The instruction.
    pub text: String,
    /// The feature that the machine lacks.
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
