//! Types shared by all engines that run programs.

use consistory_verdict::{Budget, Stopped};
use thiserror::Error;

use crate::program::{Outcomes, Program};

/// A memory model that computes the outcomes of programs, however it is specified.
pub trait Semantics: Sync {
    /// Returns the display name of the model.
    fn name(&self) -> &str;

    /// Finds every outcome of the program that the model allows.
    fn outcomes(&self, program: &Program, budget: &Budget) -> Result<Outcomes, OutcomesError>;
}

/// Reason why the outcomes of a program are unknown.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum OutcomesError {
    /// The budget ran out.
    #[error("{0}")]
    Stopped(Stopped),
    /// The program is larger than the engine supports.
    #[error("the program has {found} {what}; the limit is {limit}")]
    TooLarge {
        /// Kind of the items of which there are too many.
        what: &'static str,
        /// Number of items.
        found: usize,
        /// Limit.
        limit: usize,
    },
    /// The model does not define a construct of the program.
    #[error("{model} does not define {what}")]
    Unsupported {
        /// The model.
        model: String,
        /// Unsupported construct.
        what: String,
    },
}

impl From<Stopped> for OutcomesError {
    fn from(stopped: Stopped) -> Self {
        OutcomesError::Stopped(stopped)
    }
}
