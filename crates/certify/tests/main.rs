//! The tests of this crate, as one program: each file is a module of it.

mod certificates;
mod definition;
mod dependencies;
mod levels;
