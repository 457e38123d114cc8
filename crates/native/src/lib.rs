//! Runs litmus tests on the processor of this machine.
//!
//! [`run`] turns each thread of a test into machine code, without a compiler in between
//! ([`assemble`]), runs the code very many times on several cores, and counts the outcomes. If the
//! processor shows an outcome that a memory model forbids, one of the two is wrong.
//!
//! A histogram is evidence, not proof: an outcome that was not observed may still be possible. To
//! make rare outcomes likely, batches of runs differ in the layout of cells in cache lines, in how
//! closely threads start together, and in how far one thread is ahead of another.
//!
//! # Reading order
//!
//! `lower` (the instructions of a thread), `x86_64` and `aarch64` (the two assemblers that it
//! uses), `arm_test` (tests of AArch64, with their own accesses), `code` (executable memory, the
//! only module with `unsafe`), `layout` (the cells of a batch), and `run` (the loop over batches).

mod aarch64;
mod arm_test;
mod code;
mod layout;
mod lower;
mod run;
mod x86_64;

pub use arm_test::{Needs, ThreadCode, assemble_test};
pub use lower::{Architecture, AssembleError, assemble};
pub use run::{Histogram, NativeError, Options, run, run_test};
