//! Completion: from the order that saturation forces to an answer.
//!
//! SC, TSO and PSO ask for some store order; deciding whether there is one is NP-complete (Gibbons and
//! Korach 1997). Saturation leaves little open mostly, and the engines here start from it.

use consistory_verdict::{Budget, Stopped};

use crate::frontier::{self, Found};
use crate::registers::Registers;
use crate::saturation::Saturation;
use crate::split::{Refutation, split};

/// How what saturation leaves open is completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// The frontier search, and cases where it finds nothing.
    #[default]
    Auto,
    /// Cases: two writes that are not ordered come in one order or in the other.
    Split,
    /// The frontier search: positions of the sessions as states.
    Frontier,
}

/// What a completion came to.
pub(crate) enum Completed {
    /// An order of all operations, in which the writes of each key are in store order.
    Order(Vec<u32>),
    /// There is none.
    Refuted(Refutation),
}

/// Completes a saturated history.
pub(crate) fn complete(
    registers: &Registers<'_>,
    saturation: &mut Saturation<'_>,
    engine: Engine,
    budget: &Budget,
) -> Result<Completed, Stopped> {
    if engine != Engine::Split
        && let Found::Order(order) = frontier::search(registers, saturation, budget)?
    {
        return Ok(Completed::Order(order));
    }
    split(registers, saturation, budget)
}
