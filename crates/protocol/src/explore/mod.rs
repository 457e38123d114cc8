//! Exploration: every state of a protocol, or of the product of a protocol and its companion.

mod checkpoint;
mod expand;
mod passing;
mod search;
mod store;
mod symmetry;
mod trace;

pub use checkpoint::{Checkpoint, CheckpointError, Mismatch, Snapshot};
pub use passing::Passed;
pub(crate) use search::explore_judged;
pub use search::{
    Exploration, Options, Outcome, Progress, Unfinished, Violation, explore, explore_from,
};
pub use trace::{Run, Step};
