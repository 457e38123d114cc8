//! Exploration: every state of a protocol, or of the product of a protocol and its companion.

mod expand;
mod search;
mod store;
mod symmetry;
mod trace;

pub use search::{Exploration, Options, Outcome, Progress, Unfinished, Violation, explore};
pub use trace::{Run, Step};
