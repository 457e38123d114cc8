//! Concurrent objects: linearizability and weak consistency of any data type.
//!
//! [`Calls`] looks at a history as the calls of an object, whose sequential behaviour a
//! `consistory_spec::Object` gives.

mod calls;

pub use calls::{Calls, CallsError, MethodId, Operation, Place};
