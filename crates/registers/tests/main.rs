//! The tests of this crate, as one program: each file is a module of it.

mod agreement;
mod convergent;
mod corpus;
mod kernel;
mod large;
mod proofs;
mod real_time;
mod stored;
mod support;
mod together;
