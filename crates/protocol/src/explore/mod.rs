//! Exploration: every state of a protocol, or of the product of a protocol and its companion.
//!
//! In reading order: `explorer` is the way in, `outcome` what it returns, `search` the breadth-first
//! search, `expand` computes successors, `symmetry` their representatives, `store` keeps states.
//! `trace` finds a run to a state again, `passing` decides about runs that fail the check, and
//! `checkpoint` writes a search down.

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
