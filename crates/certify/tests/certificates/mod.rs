//! Tests of the checker, against the models by definition.

mod consistent;
mod damaged_orders;
mod damaged_proofs;
mod naive;
mod prover;
mod support;
mod violation;
