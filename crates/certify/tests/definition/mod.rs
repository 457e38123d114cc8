//! Tests of the checker of verdicts about definitions, against the reference evaluator.

mod accepted;
mod completions;
mod damaged;
mod rejected;
mod support;
