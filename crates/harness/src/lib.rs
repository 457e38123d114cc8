//! A test harness for concurrent collections: runs random client programs on threads, judges the
//! outcomes, and shrinks a failure to a smallest program.
//!
//! The collection needs a constructor and some methods, with the names of the object's sequential
//! specification:
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::Mutex;
//! use std::time::Duration;
//!
//! use consistory_harness::Harness;
//!
//! Harness::new(|| Mutex::new(BTreeMap::new()))
//!     .object("map")
//!     .method("put", |map, (key, value): (i64, i64)| map.lock().unwrap().insert(key, value))
//!     .method("get", |map, key: i64| map.lock().unwrap().get(&key).copied())
//!     .method("remove", |map, key: i64| map.lock().unwrap().remove(&key))
//!     .method("len", |map, ()| map.lock().unwrap().len())
//!     .run(Duration::from_millis(200))
//!     .assert_linearizable();
//! ```
//!
//! If no order of the calls explains their returns, the report contains the smallest failing
//! program found, a diagram of the run, the reason why it is wrong, and a test that runs it again.
//! Here an update is a removal and an insertion, and a reader can come in between:
//!
//! ```
//! # use std::collections::BTreeMap;
//! # use std::sync::Mutex;
//! # use std::time::Duration;
//! # use consistory_harness::Harness;
//! let report = Harness::new(|| Mutex::new(BTreeMap::new()))
//!     .object("map")
//!     .method("put", |map, (key, value): (i64, i64)| {
//!         let old = map.lock().unwrap().remove(&key);
//!         map.lock().unwrap().insert(key, value);
//!         old
//!     })
//!     .method("get", |map, key: i64| map.lock().unwrap().get(&key).copied())
//!     .run(Duration::from_secs(20));
//! let failure = &report.failures[0];
//! println!("{failure}");
//! ```
//!
//! The specification is a built-in one, selected by name (`consistory_spec::catalogue` lists them),
//! or your own ([`Harness::specification`]). If a collection promises less than linearizability,
//! set [`Harness::model`] or [`Harness::levels`], or let [`Harness::infer_levels`] determine the
//! levels that it provides.
//!
//! # How it works
//!
//! [`Programs`] are random but determined by a seed: a few threads with a few calls each, on few
//! keys, with distinct inserted values. A [`Runner`] runs each of them many times and returns the
//! different [`Outcome`]s. The order of calls is recorded with as little interference as possible:
//! see [`Clock`]. Each outcome becomes a history and is judged once; a violation counts only after
//! the independent checker has confirmed it. A [`Campaign`] does all this with any runner, and
//! shrinks: a smaller program counts as failing only after it was observed to fail.
//!
//! # The meaning of a report
//!
//! A failure is real: the program ran, the calls returned the values in the history, and the
//! recorded order was real. If nothing was found, no failure occurred in that many runs; a rare
//! failure needs more runs, or a higher weight of its calls ([`Harness::weight`]).

// Programs.
mod program;
mod programs;
mod signature;

// Outcomes.
mod outcome;
mod pin;
mod precedence;
mod runner;
mod threads;

// Judgements.
mod campaign;
mod judge;
mod report;
mod shrink;

// The interface for authors.
mod harness;
mod values;

#[cfg(feature = "collections")]
pub mod collections;

pub use campaign::{Campaign, CampaignError};
pub use harness::{Harness, HarnessError};
pub use judge::{Fault, Promise};
pub use outcome::Outcome;
pub use pin::{cores, pin};
pub use program::{Call, Program, ProgramError};
pub use programs::Programs;
pub use report::{Failure, Report};
pub use runner::Runner;
pub use signature::{Domain, Parameter, Signature, Sort};
pub use threads::{Clock, ThreadError, ThreadRunner};
pub use values::{Answer, Argument, Arguments};
