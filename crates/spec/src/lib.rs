//! Concurrent objects: sequential specifications and consistency models.
//!
//! A [`Specification`] describes an object whose methods are called one at a time; a consistency
//! model then determines which concurrent executions are allowed. The built-in objects, with the
//! method names of common libraries, are in the [`catalogue`]:
//!
//! ```
//! use consistory_history::Value;
//!
//! let queue = consistory_spec::find("queue").unwrap();
//! let mut state = queue.initial();
//! queue.invoke(&mut state, "enqueue", &[Value::Int(7)]);
//! assert_eq!(queue.invoke(&mut state, "dequeue", &[]), Some(Value::Int(7)));
//! assert_eq!(queue.invoke(&mut state, "dequeue", &[]), Some(Value::Null));
//! ```
//!
//! [`parse_object`] parses an object that a user wrote as a script. An [`ObjectModel`] is a set of
//! axioms; [`parse_axioms`] parses them.
//!
//! This crate decides nothing. It is separate from `consistory-objects` because the independent
//! checker needs the same specifications and axioms, and must not share any other code with the
//! searches.

// Objects.
mod catalogue;
mod fit;
mod footprint;
mod lexicon;
mod ready;
mod script;
mod signatures;
mod specification;
mod start;

// Models.
mod axioms;
mod model;

pub use axioms::{Atom, Axiom, Left, parse_axioms};
pub use catalogue::{Entry, ObjectError, catalogue, find};
pub use fit::{Fit, fits, fitting_object, why_none_fits};
pub use footprint::value_footprint;
pub use lexicon::Lexicon;
pub use model::{Level, NAMED, ObjectModel, object_model_implies, parse_levels};
pub use ready::{
    Bank, CasRegister, Counter, Deque, KeyValue, Keyed, List, Lock, Log, Map, PriorityOrder,
    PriorityQueue, Queue, Register, Set, Stack, StartedKeyValue, Transactions,
};
pub use script::{ScriptObject, parse_object};
pub use specification::{
    CallError, CallRef, Effect, Family, Goal, Method, Object, Operation, Returns, Specification,
    State,
};
pub use start::{StartError, started};
