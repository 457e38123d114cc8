//! A harness for concurrent collections.
mod program;
mod programs;
mod signature;

mod outcome;
mod precedence;
mod runner;

mod campaign;
mod judge;
mod report;
mod shrink;

pub use campaign::{Campaign, CampaignError};
pub use judge::{Fault, Promise};
pub use outcome::Outcome;
pub use program::{Call, Program, ProgramError};
pub use programs::Programs;
pub use report::{Failure, Report};
pub use runner::Runner;
pub use signature::{Domain, Parameter, Signature, Sort};
