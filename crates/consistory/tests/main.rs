//! The tests of this crate, as one program: each file is a module of it.

mod core_only;
mod doors;
mod facade;
mod real_time;
