//! Litmus tests: small concurrent programs, and which outcomes a memory model allows them.

// What is run.
mod condition;
mod file;
mod notation;
pub mod operational;
mod program;

// Axiomatic models.
mod brute;
mod execution;
mod saturate;
mod semantics;
mod skeleton;
mod table;

// Definitions of memory models, and cat.
mod candidates;
mod relational;
mod sat;

// All small programs, and the difference that they make.
mod contrast;
mod enumerate;
mod generate;

pub use brute::brute_force;
pub use candidates::try_candidates;
pub use condition::{Condition, Proposition, Quantifier};
pub use contrast::{Contrast, ContrastOptions, Difference, Wanted, contrast, sufficient_bound};
pub use enumerate::{Bound, Counts, Redundant, Shape, count, plain_shapes, shapes};
pub use execution::{Execution, ExecutionEvent, witness};
pub use file::{Arch, ArchError, Test, read_test, write_table, write_test};
pub use generate::{Side, tests_of};
pub use notation::{NotationError, parse_notation};
pub use program::{
    Address, Expression, Fence, Instruction, Location, LocationId, Observable, Operator, Outcome,
    Outcomes, Program, Register, RegisterId, Thread, ThreadId, Update, Value,
};
pub use semantics::{OutcomesError, Semantics};
pub use table::{Causality, FenceAgreement, Forwarding, Keep, Order, Table, Views};
