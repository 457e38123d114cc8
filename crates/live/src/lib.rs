//! Real systems under load, and what they did.
//!
//! [`record_cpu`] is the memory of this machine: threads on cores of their own run random programs
//! of reads, writes, fences and read-modify-writes through real loads and stores, and each round
//! is a history. [`Jdk`] runs client programs of the JDK's concurrent collections; the campaigns
//! of `consistory-harness` judge what they do.
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
