//! Concurrent objects: linearizability and weak consistency of any data type.
//!
//! [`Calls`] looks at a history as the calls of an object, whose sequential behaviour a
//! `consistory_spec::Object` gives; a [`Task`] is both.

mod calls;
mod registers;
mod task;

// The definition.
mod definition;

// The searches.
mod bits;
mod linearize;
mod machine;
mod memory;
mod overwrites;
mod steps;
mod timeline;
mod together;
mod visibility;
mod waves;

// The verdict.
mod court;
mod levels;
mod reads;
mod shrink;

// Polynomial deciders.
mod monitors;

// Calls as they come.
mod online;

pub use calls::{Calls, CallsError, MethodId, Operation, Place};
pub use court::{Engine, Tuning, judge_object, judge_objects};
pub use definition::{Execution, MOST_BY_DEFINITION, decide_by_definition};
pub use levels::{Inference, Levels, infer_levels};
pub use monitors::{Outcome, Pattern, Unsuitable, Violation, monitor};
pub use online::{Inexplicable, Online, OnlineError, OnlineOptions, OnlineSize, RunningId};
pub use registers::calls_of_registers;
pub use shrink::{Shrunk, shrink_object};
pub use task::{Invocation, Task, TaskError};
pub use visibility::{Strategy, Visibility, instead};

/// A judgement by a model of objects.
pub type Judgement = consistory_verdict::Judgement<consistory_verdict::ObjectCertificate>;
/// A ruling on a model of objects.
pub type Ruling = consistory_verdict::Ruling<consistory_verdict::ObjectCertificate>;
/// How to decide models of objects.
pub type Options = consistory_verdict::Options<Tuning>;
