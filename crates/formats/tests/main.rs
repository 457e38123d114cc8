//! The tests of this crate, as one program: each file is a module of it.

mod calls;
mod corpus;
mod round_trip;
mod streams;
mod transactions;
