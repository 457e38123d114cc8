//! One property per module: `run` panics if an input shows that it does not hold.

pub mod certificate_json;
pub mod certificates;
pub mod check;
pub mod definitions;
pub mod formats;
pub mod litmus;
pub mod words;
