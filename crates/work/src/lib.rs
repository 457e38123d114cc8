//! Work on several threads: numbered pieces side by side, and items through a pipeline.
//!
//! Every function works with fewer threads if the system creates no more, down to the calling
//! thread alone. No panic is lost: [`side_by_side`] and [`on_threads`] pass a worker's panic on to
//! the caller, and [`catch_panic`] turns a panic into an error of the item that caused it.

mod panics;
pub mod pipeline;
mod threads;

pub use panics::{Panicked, catch_panic};
pub use threads::{each, on_threads, side_by_side, spawn, spawn_scoped};
