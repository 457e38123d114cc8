//! Completion: from the order that saturation forces to an answer.
//!
//! SC, TSO and PSO ask for some store order; deciding whether there is one is NP-complete (Gibbons and
//! Korach 1997). Saturation leaves little open mostly, and the engines here start from it:
//! [`crate::store_order::completion::frontier`], [`crate::store_order::completion::split`], [`crate::store_order::completion::sat`], and [`crate::store_order::completion::portfolio`], which runs them
//! side by side, all behind one trait.

pub(crate) mod frontier;
pub(crate) mod greedy;
pub(crate) mod portfolio;
pub(crate) mod sat;
pub(crate) mod schedule;
pub(crate) mod split;

use consistory_verdict::{Budget, Stopped};

use crate::registers::Registers;
use crate::store_order::completion::frontier::Frontier;
use crate::store_order::completion::portfolio::Portfolio;
use crate::store_order::completion::sat::Sat;
use crate::store_order::completion::split::{Refutation, Split};
use crate::store_order::saturation::Saturation;

/// How what saturation leaves open is completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// All of them side by side, as far as there are threads; the first answer counts.
    #[default]
    Auto,
    /// Cases: two writes that are not ordered come in one order or in the other.
    Split,
    /// The frontier search: positions of the sessions as states.
    Frontier,
    /// A SAT solver that learns from contradictions; cases only to write down a refutation.
    Sat,
}

/// What a completion came to.
pub(crate) enum Completed {
    /// An order of all operations, in which the writes of each key are in store order.
    Order(Vec<u32>),
    /// There is none.
    Refuted(Refutation),
}

/// A way to complete a saturated history.
pub(crate) trait Complete {
    /// Looks for a sequential order before anything is saturated, if it does such a thing.
    fn guess(&self, _registers: &Registers<'_>) -> Option<Vec<u32>> {
        None
    }

    /// Completes it, or stops when the budget runs out; leaves the saturation as it may be.
    fn complete(
        &self,
        registers: &Registers<'_>,
        saturation: &mut Saturation<'_>,
        budget: &Budget,
    ) -> Result<Completed, Stopped>;
}

impl Engine {
    /// Returns the engine; a portfolio may use so many threads.
    pub(crate) fn on(self, threads: usize) -> Box<dyn Complete> {
        match self {
            Engine::Auto => Box::new(Portfolio { threads }),
            Engine::Split => Box::new(Split),
            Engine::Frontier => Box::new(Frontier),
            Engine::Sat => Box::new(Sat),
        }
    }
}
