//! Programs of real instruction sets, their candidate executions, and the executions that a model
//! allows.

pub(crate) mod code;
mod program;
mod search;
pub(crate) mod test;
pub(crate) mod unfold;
mod witness;

pub use program::{frame_of_isa, program_of_isa};
pub use search::{IsaError, IsaOptions, IsaOutcomes, isa_outcomes};
pub(crate) use search::{Question, all_runs, limit, outcomes_of_runs, prepare};
pub use test::{Asked, FinalState, IsaTest, Language, Shown};
pub use witness::{IsaEvent, IsaExecution};
