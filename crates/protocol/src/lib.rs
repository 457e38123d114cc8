//! Coherence protocols in Murphi: explores every run of a protocol and proves that it is
//! sequentially consistent.
//!
//! In reading order: [`tracking`] describes how a rule moves the data of a protocol, and defines
//! the interface of companions, which run next to a protocol and observe it. A [`Model`] is a
//! description that was read and checked, a [`System`] is one that can run, and an [`Explorer`]
//! visits all its states.

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
