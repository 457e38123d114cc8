//! Concurrent objects: linearizability and weaker consistency of histories of calls.
//!
//! A history of calls ([`Calls`]) and an object with a sequential specification
//! (`consistory_spec::Object`) make a [`Task`]. [`judge_objects`] decides whether the calls can be
//! explained under a model, and returns a judgement with its certificate: an order of the calls, or a
//! part of the history that nothing explains.
//!
//! ```
//! use consistory_formats::{Format, parse_str};
//! use consistory_objects::{Calls, Options, Task, judge_object};
//! use consistory_spec::{ObjectModel, find};
//!
//! let text = "t0: enqueue(1) @1..2  enqueue(2) @3..4\nt1: dequeue() => 2 @5..6\n";
//! let history = parse_str(text, Format::Hist, "example").unwrap().swap_remove(0);
//! let task = Task::new(Calls::new(&history).unwrap(), find("queue").unwrap()).unwrap();
//! let model = ObjectModel::named("linearizability").unwrap();
//! let ruling = judge_object(&task, &model, &Options::default());
//! // Element 1 went in first, and 2 came out first.
//! assert_eq!(ruling.judgement.verdict().as_str(), "violation");
//! ```
//!
//! Most users want the package `consistory`, which reads histories, judges them and has every
//! verdict checked. It uses this crate to judge calls of objects.
//!
//! To read the code, begin with `calls` and `task` (the input) and `definition` (a brute-force
//! evaluator, with which everything is compared). Then:
//!
//! | technique | modules |
//! | --- | --- |
//! | just-in-time search for a linearization (Wing and Gong, Lowe) | `just_in_time`, its steps in `plain_steps` |
//! | operations that overwrite the whole state | `overwrites`, `overwriting_steps` |
//! | the same search in waves, and on all threads | `wave_search`, `parallel_search` |
//! | polynomial deciders for histories in which no value repeats | `monitors` |
//! | weak models: linearizations and minimal visibilities (Emmi and Enea) | `visibility` |
//! | parts of an object, shortest failing prefixes, certificates | `linearizability`, `court` |
//! | online checking in bounded memory | `online` |
//!
//! Every search runs under a `Budget` of time and memory and can stop with the reason.

mod calls;
mod registers;
mod task;

// The definition, by brute force.
mod definition;

// The searches.
mod just_in_time;
mod machine;
mod overwrites;
mod overwriting_steps;
mod parallel_search;
mod plain_steps;
mod small_set;
mod timeline;
mod visibility;
mod wave_search;

// The verdict.
mod court;
mod levels;
mod linearizability;
mod reads;
mod shrink;

// Polynomial deciders.
mod monitors;

// Online checking.
mod online;

pub use calls::{CallIndex, Calls, CallsError, MethodId, Operation};
pub use court::{Engine, Tuning, judge_object, judge_objects};
pub use definition::{Execution, MAX_OPERATIONS_BY_DEFINITION, decide_by_definition};
pub use levels::{Inference, Levels, infer_levels};
pub use monitors::{Outcome, Pattern, Unsuitable, Violation, monitor};
pub use online::{
    Inexplicable, Online, OnlineError, OnlineOptions, OnlineSize, RunningId, WeakOnline,
    WeakOptions, WeakSize,
};
pub use registers::calls_of_registers;
pub use shrink::{Shrunk, shrink_object};
pub use task::{Invocation, Task, TaskError};
pub use visibility::{Strategy, Visibility, instead};

/// A judgement by a model of objects.
pub type Judgement = consistory_verdict::Judgement<consistory_verdict::ObjectCertificate>;
/// A ruling on a model of objects.
pub type Ruling = consistory_verdict::Ruling<consistory_verdict::ObjectCertificate>;
/// Options of a judgement of objects.
pub type Options = consistory_verdict::Options<Tuning>;
