//! What the tests of all crates share: random numbers, random and exhaustive histories, and how much
//! of a long test is run.
//!
//! Only tests depend on this crate. Everything is deterministic: a failing test prints its seed or
//! its history ([`text`]), and the same seed draws the same history again.

mod histories;
mod random;
mod rounds;

pub use histories::{
    Op, Shape, build, every_history, every_history_of_values, random_history, text,
};
pub use random::Random;
pub use rounds::{is_deep, rounds};
