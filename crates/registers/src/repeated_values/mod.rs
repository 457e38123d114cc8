//! Histories in which values repeat: a read may have read from one of several writes.
//!
//! A history satisfies a model if some choice of sources does. [`replay`] guesses a choice by
//! running the history on a simulated memory, [`choices`] searches choice by choice and writes
//! refutations as trees of cases, and [`conflict_driven`] lets a SAT solver choose for models with
//! a store order.

pub(crate) mod choices;
pub(crate) mod conflict_driven;
pub(crate) mod replay;
