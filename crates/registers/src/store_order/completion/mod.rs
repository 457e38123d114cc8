//! Completion: from the order that saturation forces to an answer.
//!
//! SC, TSO and PSO require a store order, whose existence is NP-complete (Gibbons and Korach 1997).
//! Saturation usually leaves few pairs of writes unordered, and the engines start from the
//! saturated order: [`crate::store_order::completion::frontier`],
//! [`crate::store_order::completion::split`], [`crate::store_order::completion::sat`], and
//! [`crate::store_order::completion::portfolio`], which runs the others in parallel. They share one
//! trait.

pub(crate) mod frontier;
pub(crate) mod greedy;
pub(crate) mod portfolio;
pub(crate) mod sat;
pub(crate) mod schedule;
pub(crate) mod split;

use consistory_history::OpId;
use consistory_verdict::{Budget, Stopped};

use crate::registers::Registers;
use crate::store_order::completion::frontier::Frontier;
use crate::store_order::completion::portfolio::Portfolio;
use crate::store_order::completion::sat::Sat;
use crate::store_order::completion::split::{Refutation, Split};
use crate::store_order::saturation::Saturation;

/// The engine that completes a saturated order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// All engines in parallel, as far as there are threads; the first answer counts.
    #[default]
    Auto,
    /// Case split: two unordered writes come in one order or in the other.
    Split,
    /// Frontier search: a state is a position in each session.
    Frontier,
    /// A SAT solver that learns from contradictions; its refutations are written as cases.
    Sat,
}

/// Result of a completion.
pub(crate) enum Completed {
    /// An order of all operations, in which the writes of each key are in store order.
    Order(Vec<OpId>),
    /// There is no such order.
    Refuted(Refutation),
}

/// A way to complete a saturated history.
pub(crate) trait Complete {
    /// Searches for a sequential order before saturation, if the engine supports this.
    fn guess(&self, _registers: &Registers<'_>) -> Option<Vec<OpId>> {
        None
    }

    /// Completes the order, or stops when the budget runs out. May change the saturation.
    fn complete(
        &self,
        registers: &Registers<'_>,
        saturation: &mut Saturation<'_>,
        budget: &Budget,
    ) -> Result<Completed, Stopped>;
}

impl Engine {
    /// Returns the engine. A portfolio uses at most `threads` threads.
    pub(crate) fn on(self, threads: usize) -> Box<dyn Complete> {
        match self {
            Engine::Auto => Box::new(Portfolio { threads }),
            Engine::Split => Box::new(Split),
            Engine::Frontier => Box::new(Frontier),
            Engine::Sat => Box::new(Sat),
        }
    }
}
