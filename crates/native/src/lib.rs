//! Litmus tests on the processor that this program runs on.
//!
//! [`run`] turns each thread of a test into machine code, with no compiler in between
//! ([`assemble`]), runs it very many times on as many cores, and counts the outcomes. What a
//! memory model forbids and the processor shows is an error in one of the two.
//!
//! A histogram is evidence, not proof: an outcome that never shows may still be possible. To make
//! rare ones likely, batches of runs differ in how cells are laid out in cache lines, in how
//! tightly threads start together and in by how much one is ahead of the other.
//!
//! # Reading order
//!
//! `lower` walks through a thread's instructions; `x86_64` and `aarch64` are the two assemblers
//! after it; `arm_test` keeps the accesses of a test of AArch64 as they are; `code` holds machine code and calls it, and is the one module with `unsafe`;
//! `layout` places the cells of a batch, `run` is the loop around it all.

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
