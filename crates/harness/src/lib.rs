//! A harness for concurrent collections: it runs random client programs on threads, judges what
//! they did, and shrinks what is wrong to a smallest program.
//!
//! The collection needs a constructor and some methods, named as the sequential specification of
//! the object names them:
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
//! If a call can see what no order of the calls explains, the report has the smallest program that
//! was found to do it, what it did as a diagram, why nothing explains it, and a test that runs it
//! again. Here an update is a removal and an insertion, and a reader can come between:
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
//! A specification is a ready one by its name (`consistory_spec::catalogue` lists them), or one's
//! own ([`Harness::specification`]). Where a collection promises less than linearizability, say so
//! with [`Harness::model`] or [`Harness::levels`], or ask what it keeps with
//! [`Harness::infer_levels`].
//!
//! # How it works
//!
//! [`Programs`] are random but decided by a seed: a few threads with a few calls each, on few keys,
//! no value put in twice. A [`Runner`] runs each of them many times and gives the different
//! [`Outcome`]s. Which call came before which is recorded with as little interference as possible:
//! see [`Clock`]. Each outcome becomes a history and is judged once; a violation counts when the
//! independent checker has confirmed it. A [`Campaign`] does all this over any runner, and shrinks:
//! a smaller program counts as failing only when it was seen to fail.
//!
//! # What a report means
//!
//! A failure is real: the program ran, the calls returned what the history says, and whatever order
//! it claims was there. That nothing was found means that in so many runs nothing happened; a rare
//! failure needs more of them, or calls that are made more often ([`Harness::weight`]).

// Programs.
mod program;
mod programs;
mod signature;

// What they do.
mod outcome;
mod pin;
mod precedence;
mod runner;
mod threads;

// What is wrong with that.
mod campaign;
mod judge;
mod report;
mod shrink;

// What an author writes.
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
