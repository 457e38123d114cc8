//! Exploration: every state of a protocol, or of the product of a protocol and its companion.
//!
//! In reading order: `explorer` is the entry point, `outcome` its result, `search` the
//! breadth-first search; `expand` computes successors, `symmetry` their representatives, and
//! `store` keeps states. `trace` reconstructs a run to a state, `passing` decides about runs that
//! fail the check, and `checkpoint` saves a search.

mod checkpoint;
mod expand;
mod explorer;
mod outcome;
mod passing;
mod search;
mod store;
mod symmetry;
mod trace;

pub use checkpoint::{Checkpoint, CheckpointError, Mismatch, Snapshot};
pub use explorer::Explorer;
pub use outcome::{
    Exploration, ExploreError, GivenUp, Options, Outcome, Progress, Stop, Unexplained, Unfinished,
    Violation,
};
pub use trace::{Run, RunStep};
