//! Execution of a checked program: code with addresses, and the machine that runs it.

pub(crate) mod code;
pub(crate) mod layout;
pub(crate) mod lower;
pub(crate) mod run;
pub(crate) mod stepper;

pub use code::FaultKind;
pub(crate) use code::UNDEFINED;

#[cfg(test)]
mod lockstep;
