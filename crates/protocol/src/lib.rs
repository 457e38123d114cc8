//! Protocols: a coherence protocol in Murphi goes in; every run of it is explored.
//!
//! In reading order: [`tracking`] is what a rule does to the data that a protocol holds, and the
//! contract of what runs beside the protocol and watches it. A [`Model`] is a description that was
//! read and checked, a [`System`] is one that can run, and [`explore`] visits all its states.

pub mod descriptor;
pub mod tracking;

mod checker;
mod observer;
mod trace;

pub use checker::{Checker, Reason};
pub use observer::{Failure, Monitor, Observer, Witness, WitnessError};
pub use trace::{TraceNames, history};

mod murphi;

mod machine;
mod system;

mod lanes;

mod explore;

mod simulate;
mod verify;

pub use explore::{
    Checkpoint, CheckpointError, Exploration, Mismatch, Options, Outcome, Passed, Progress, Run,
    Snapshot, Step, Unfinished, Violation, explore, explore_from,
};
pub use machine::FaultKind;
pub use simulate::{Simulation, simulate};
pub use system::{Entry, Fault, Model, Position, System};
pub use verify::{Sequential, Verification, VerifyError, verify, verify_from, verify_judged};
