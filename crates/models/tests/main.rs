//! The tests of this crate, as one program: each file is a module of it.

mod brute_force;
mod certificates;
mod examples;
mod language;
mod lattice;
mod levels;
mod limits;
mod support;
