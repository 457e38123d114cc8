//! Coherence protocols in Murphi: every run of a protocol is explored, and proved sequentially
//! consistent.
//!
//! In reading order: [`tracking`] describes what a rule does to the data that a protocol holds, and
//! the contract of companions that run beside a protocol and watch it. A [`Model`] is a description
//! that was read and checked, a [`System`] is one that can run, and an [`Explorer`] visits all its
//! states.

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

mod clients;
mod simulate;

pub use clients::{ClientAccess, ClientAnswers, ClientError, Loaded, client_answers};
pub use explore::{
    Checkpoint, CheckpointError, Exploration, ExploreError, Explorer, GivenUp, Mismatch, Options,
    Outcome, Progress, Run, RunStep, Snapshot, Stop, Unexplained, Unfinished, Violation,
};
pub use machine::FaultKind;
pub use murphi::ConstantValue;
pub use simulate::{Simulation, simulate};
pub use system::{Entry, Fault, Model, Position, System};
