//! Litmus tests: small concurrent programs, and which outcomes a memory model allows them.

mod condition;
mod notation;
pub mod operational;
mod program;

pub use condition::{Condition, Proposition, Quantifier};
pub use notation::{NotationError, parse_notation};
pub use program::{
    Address, Expression, Fence, Instruction, Location, LocationId, Observable, Operator, Outcome,
    Outcomes, Program, Register, RegisterId, Thread, ThreadId, Update, Value,
};
