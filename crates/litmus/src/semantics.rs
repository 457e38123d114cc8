//! Types shared by all ways of running a program.

use consistory_verdict::{Budget, Stopped};
use thiserror::Error;

use crate::program::{Outcomes, Program};

/// A memory model that can be asked for the outcomes of a program, however it is specified.
pub trait Semantics: Sync {
    /// Returns the model's name, as people write it.
    fn name(&self) -> &str;

    /// Finds every outcome that the model allows the program.
    fn outcomes(&self, program: &Program, budget: &Budget) -> Result<Outcomes, OutcomesError>;
}

/// Why the outcomes of a program are not known.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum OutcomesError {
    /// The budget ran out.
    #[error("{0}")]
    Stopped(Stopped),
    /// The program is larger than this way of running it can take.
    #[error("the program has {found} {what}, at most {limit} can be taken")]
    TooLarge {
        /// The kind of item of which there are too many.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many are the most.
        limit: usize,
    },
    /// The model says nothing about something that occurs in the program.
    #[error("{model} says nothing about {what}")]
    Unsupported {
        /// The model.
        model: String,
        /// The unsupported construct.
        what: String,
    },
}

impl From<Stopped> for OutcomesError {
    fn from(stopped: Stopped) -> Self {
        OutcomesError::Stopped(stopped)
    }
}
