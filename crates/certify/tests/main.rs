//! Tests of this crate, as one program with one module per file.

mod certificates;
mod definition;
mod dependencies;
mod levels;
