//! Litmus tests: small concurrent programs, and the outcomes that a memory model allows.
//!
//! A [`Program`] has threads of reads, writes, fences and other instructions ([`Instruction`]). A
//! [`Table`] is a memory model given by the pairs of program order that it preserves, a
//! [`Machine`](operational::Machine) is given by the components between processors and memory, and
//! a definition in the style of herd's cat is given by axioms. Each of them computes all outcomes
//! of a program ([`Semantics`]).
//!
//! ```
//! use consistory_litmus::operational::Machine;
//! use consistory_litmus::{Semantics, Table, parse_notation};
//! use consistory_verdict::Budget;
//!
//! // Store buffering: can both threads read 0?
//! let program = parse_notation("X=1; r1=Y // Y=1; r2=X").unwrap();
//! let both_read_0 = |model: &dyn Semantics| {
//!     let outcomes = model.outcomes(&program, &Budget::unlimited()).unwrap();
//!     outcomes.iter().any(|outcome| *outcome.0 == [0, 0])
//! };
//! assert!(!both_read_0(&Table::sc()));
//! assert!(both_read_0(&Table::tso()));
//! assert!(both_read_0(&Machine::TSO));
//! ```
//!
//! [`contrast()`] runs all small programs under two models and finds the smallest that separates
//! them. [`read_test`] and [`write_test`] are for `.litmus` files.
//!
//! The engines: [`Table`]s are run by saturation, definitions by a SAT solver, machines by
//! exploring their states. [`brute_force`] and [`try_candidates`] execute the definitions
//! literally, for tests.
//!
//! Next, see `table.rs` for the models, `saturate.rs` for the engine, `enumerate.rs` for the
//! reductions, and `docs/litmus.md` for the commands.

// Programs and conditions.
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

// Models in cat, and candidate executions of real instruction sets.
mod cat;
mod executions;
mod languages;

// Small programs, and contrasts.
mod contrast;
mod count;
mod enumerate;
mod generate;
mod mapped;

pub use brute::brute_force;
pub use candidates::try_candidates;
pub use cat::{CatModel, CatSource, find_isa_model, isa_model_ids};
pub use condition::{Condition, Proposition, Quantifier};
pub use contrast::{Contrast, ContrastOptions, Difference, Wanted, contrast, sufficient_bound};
pub use count::{Counts, count};
pub use enumerate::{Bound, Redundant, Shape, plain_shapes, shapes, shapes_within};
pub use execution::{Execution, ExecutionEvent, definition_witnesses, witnesses};
pub use executions::{
    Asked, FinalState, IsaError, IsaEvent, IsaExecution, IsaOptions, IsaOutcomes, IsaTest,
    Language, Shown, frame_of_isa, isa_outcomes, program_of_isa,
};
/// The common language into which tests of instruction sets are translated.
pub mod operations {
    pub use crate::executions::code::{
        Binary, Code, Declared, Expr, Fetch, Op, Register, Reservation, Tags, ThreadCode, Unary,
        Update, UpdateResult, Width,
    };
}
pub use file::{Arch, ArchError, Test, read_test, write_table, write_test};
pub use generate::{Side, tests_of};
pub use languages::{isa_language, read_isa_test, write_isa_test};
pub use mapped::{
    Allowing, Alphabet, MappedContrast, MappedDifference, MappedError, MappedOptions, MappedSide,
    Mapping, RenderedTest, Runner, Sketch, contrast_mapped, find_mapping, mapping_ids,
    read_mapping, translate_test,
};
pub use notation::{NotationError, parse_notation};
pub use program::{
    Address, Expression, Fence, Instruction, Location, LocationId, Observable, Operator, Outcome,
    Outcomes, Program, Register, RegisterId, Thread, ThreadId, Update, Value,
};
pub use semantics::{OutcomesError, Semantics};
pub use table::{Causality, FenceAgreement, Forwarding, Keep, Order, Table, Views};
