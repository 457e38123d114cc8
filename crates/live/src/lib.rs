//! Runs real systems under load and records their histories.
//!
//! [`record_cpu`] tests the memory of this machine: pinned threads run random programs of reads,
//! writes, fences and read-modify-writes with real loads and stores, and each round is a history.
//! [`Jdk`] runs client programs on the JDK's concurrent collections; the campaigns of
//! `consistory-harness` judge their outcomes.
//!
//! ```
//! use consistory_live::{CpuOptions, record_cpu};
//!
//! let options = CpuOptions { rounds: 10, ..CpuOptions::default() };
//! let mut count = 0;
//! record_cpu(&options, |history| {
//!     assert_eq!(history.len() as u32, options.threads * options.operations);
//!     count += 1;
//!     true
//! })
//! .unwrap();
//! assert_eq!(count, 10);
//! ```

mod cpu;
mod pin;
mod program;

mod jdk;

pub use cpu::{CpuOptions, CpuReport, RecordError, record_cpu};
pub use jdk::{Clock, JDK, Jdk, JdkCollection, JdkError, JdkOptions, UnknownMethod};
