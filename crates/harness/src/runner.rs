//! Whoever can run a program.

use crate::outcome::Outcome;
use crate::program::Program;

/// Runs client programs on a real object, and records what they did.
///
/// [`Campaign`](crate::Campaign) does the rest: it generates the programs, judges what they did and
/// shrinks what is wrong.
pub trait Runner {
    /// Why a program could not be run.
    type Error: std::error::Error;

    /// Runs a program so many times, each time on a new object, and gives the different outcomes
    /// with how often each was seen.
    ///
    /// An outcome may be listed more than once. What it says about which call came before which
    /// must have been so; an order that was there and is not claimed does no harm but that bad
    /// outcomes may be missed.
    fn run(&mut self, program: &Program, rounds: u64) -> Result<Vec<(Outcome, u64)>, Self::Error>;
}
