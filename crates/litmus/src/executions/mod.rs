//! Programs of real instruction sets, their candidate executions, and which a model allows.

pub(crate) mod code;
mod search;
pub(crate) mod test;
pub(crate) mod unfold;

pub use search::{IsaError, IsaOptions, IsaOutcomes, isa_outcomes};
pub use test::{Asked, FinalState, IsaTest, Language, Shown};
