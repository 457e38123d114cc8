//! The tests of this crate, as one program: each file is a module of it.

mod depends;
mod ready;
