//! What a concurrent object should do: sequential specifications.
//!
//! A [`Specification`] says what an object does when its methods are called one at a time; what
//! concurrent calls may do is then a matter of the consistency model. The ready objects, with the
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
//! This crate is apart from `consistory-objects` because the independent checker of certificates
//! needs the same specifications and must share nothing else with the searches: a specification
//! is the question, not a way to the answer. It decides nothing.

mod catalogue;
mod ready;
mod signatures;
mod specification;

pub use catalogue::{Entry, ObjectError, catalogue, find};
pub use ready::{
    CasRegister, Counter, Deque, KeyValue, Lock, Log, Map, PriorityOrder, PriorityQueue, Queue,
    Register, Set, Stack, Transactions,
};
pub use specification::{CallError, Effect, Method, Object, Returns, Specification, State};
