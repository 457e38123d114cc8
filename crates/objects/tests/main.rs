//! The tests of this crate, as one program: each file is a module of it.

mod common;
mod corpus;
mod definition;
mod hints;
mod large;
mod long;
mod monitors;
mod online;
mod shrink;
mod store;
