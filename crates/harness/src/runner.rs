//! The trait for running programs.

use crate::outcome::Outcome;
use crate::program::Program;

/// Runs client programs on a real object, and records the outcomes.
///
/// [`Campaign`](crate::Campaign) generates the programs, judges the outcomes and shrinks failures.
pub trait Runner {
    /// The error if a program cannot be run.
    type Error: std::error::Error;

    /// Runs a program `rounds` times, each time on a new object, and returns the different outcomes
    /// with their numbers of runs.
    ///
    /// An outcome may be listed more than once. The order of calls that it claims must be real. It
    /// need not be complete: a missing order only means that bad outcomes may be missed.
    fn run(&mut self, program: &Program, rounds: u64) -> Result<Vec<(Outcome, u64)>, Self::Error>;
}
