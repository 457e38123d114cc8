//! Tests of this crate, as one program with one module per file.

mod agreement;
mod checker;
mod checkpoint;
mod damaged;
mod diagnostics;
mod dialects;
mod explore;
mod flows;
mod limits;
mod observer;
mod protocols;
mod regressions;
mod support;

#[path = "support/machines.rs"]
mod machines;
#[path = "support/variants.rs"]
mod variants;
