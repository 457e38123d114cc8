//! Polynomial deciders of linearizability, for the objects and histories that have them.
//!
//! In a *differentiated* history no value is inserted or written twice, so a return says whose
//! value it is. Then linearizability of registers, sets, queues, stacks and priority queues is
//! decided by looking at intervals instead of searching for an order:
//!
//! | object | methods | cost for n calls | pending calls |
//! | --- | --- | --- | --- |
//! | register | `read`, `write`; a value also twice, if time tells the writes apart | O(n log n) | exact |
//! | set | `add`, `remove`, `contains` | O(n) after a sort | exact |
//! | queue | `enqueue`, `offer`, `dequeue` | O(n log n) | exact |
//! | stack | `push`, `pop` | O(n log n) | pending pops in two cases of three |
//! | priority queue | `insert`, `offer`, `poll` | O(n log n) | pending polls in two cases of three |
//! | key-value store | `get`, `put`, `append`; a text also twice, if time tells the calls apart | O(n log n), and to read all that was returned | exact |
//!
//! Each module proves what it does. All of them first replace times by ranks ([`Intervals`]), and
//! all use the same view: a linearization is a choice of one point in each call's interval.
//! Bounds are the algorithms' of Gibbons and Korach (registers) and of Lee and Mathur and Abdulla
//! et al. (the collections), whose monitors take no pending calls; the proofs and the treatment of
//! pending calls here are our own.
//!
//! What is outside, a history that is not differentiated, another method, a bounded capacity, a
//! clock too coarse, is [`Outcome::NotApplicable`] and for the general search. So are a stack's and
//! a priority queue's pending removals in the third case: dropping all of them does not explain
//! the history, and as many as one likes would.
//!
//! Certificates. A linearizable history comes with its order. A violation comes with its
//! [`Pattern`] and a *core*, a few calls that are not linearizable by themselves and that are
//! closed: taking the others away would leave a linearization of the whole a linearization of the
//! core. [`Violation`] says why that is so; whoever checks it needs only the core.

mod elements;
mod intervals;
mod methods;
mod pieces;
mod priority_queue;
mod queue;
mod register;
mod set;
mod sources;
mod stack;
mod store;
mod trees;
mod zones;

use std::fmt;

use consistory_history::Value;
use consistory_spec::{Family, Object};

use crate::calls::{Calls, Place};
use intervals::Intervals;

/// What a decider says of a history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is linearizable, in this order; pending calls that are not in it took no effect.
    Linearizable(Vec<Place>),
    /// It is not linearizable.
    Violation(Violation),
    /// It is for the general search.
    NotApplicable(Unsuitable),
}

/// Why a history is for the general search.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsuitable {
    /// The object has no polynomial decider.
    #[error("the object has no polynomial decider")]
    Object,
    /// It has no times.
    #[error("the history has no times")]
    NoTimes,
    /// It has more calls than there are ranks for.
    #[error("the history has more than a thousand million calls")]
    TooLarge,
    /// Calls of one session meet at a time at which others end.
    #[error("the clock is too coarse around the calls of a session")]
    CoarseClock,
    /// The object has another method than the decider knows.
    #[error("`{method}` is not a method that the polynomial decider knows")]
    Method {
        /// The method.
        method: String,
    },
    /// A value is inserted or written twice, or is the initial one.
    #[error("{value} is inserted more than once")]
    NotDifferentiated {
        /// The value.
        value: Value,
    },
    /// What was read may have been made in several ways.
    #[error("{value} can be made of what was put and appended in several ways")]
    Ambiguous {
        /// What was read.
        value: Value,
    },
    /// What was put and appended is neither all text nor all lists and their elements.
    #[error("texts and other values are appended to one key")]
    Mixed,
    /// A call's return was not recorded or is of no use.
    #[error("what a `{method}` returned is not recorded, or not what such a call returns")]
    Return {
        /// The method.
        method: String,
    },
    /// Pending removals may explain the history or not.
    #[error("whether pending removals explain the history is not decided in polynomial time")]
    PendingRemovals,
}

/// A violation: what is wrong, and a few calls that show it.
///
/// A linearization stays one when calls are taken away as follows, so a core to which nothing
/// could be added by undoing it refutes the whole history.
/// - A register or set: any read; and a write, or all calls of an element, with all its reads.
/// - A store: all calls of a key, any `get`, a `put` of what no `get` in the core begins with, and an
///   `append` of what no `get` in the core contains.
/// - A collection: all calls of a value together, and a removal that found nothing. A pending
///   removal may have removed a value that no other call did, so if the core has such a value it
///   has the pending removals too, except those that start after the end of every call in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// What is wrong.
    pub pattern: Pattern,
    /// The calls that show it, sorted.
    pub core: Vec<Place>,
}

/// What is wrong with a history.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pattern {
    /// A value comes out that nothing has put in.
    ThinAir,
    /// A value comes out before it is put in.
    BeforeItsInsertion,
    /// A value comes out twice.
    RemovedTwice,
    /// A value is read though whatever wrote it was overwritten, or comes later.
    Overwritten,
    /// Two values must be in a register at one time.
    TwoValuesAtOnce,
    /// A value must be written and read while another is in the register throughout.
    Interrupted,
    /// An element is found missing while it must be there.
    MissingThoughThere,
    /// An element is found though it must be gone.
    FoundThoughGone,
    /// One value goes in before another and comes out after it, or never.
    OutOfOrder,
    /// Something is in the object throughout a call that found it empty.
    EmptyThoughNot,
    /// Values overlap so that none of them can lie below the others.
    NoBottom,
    /// Something that comes first is in the object whenever a value may have come out.
    Overtaken,
    /// Two reads disagree about what was appended to what.
    Forked,
    /// Something is read after the end of what was appended to it.
    Stale,
}

impl Pattern {
    /// Returns the name that reports have.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::ThinAir => "thin-air",
            Pattern::BeforeItsInsertion => "before-its-insertion",
            Pattern::RemovedTwice => "removed-twice",
            Pattern::Overwritten => "overwritten",
            Pattern::TwoValuesAtOnce => "two-values-at-once",
            Pattern::Interrupted => "interrupted",
            Pattern::MissingThoughThere => "missing-though-there",
            Pattern::FoundThoughGone => "found-though-gone",
            Pattern::OutOfOrder => "out-of-order",
            Pattern::EmptyThoughNot => "empty-though-not",
            Pattern::NoBottom => "no-bottom",
            Pattern::Overtaken => "overtaken",
            Pattern::Forked => "forked",
            Pattern::Stale => "stale",
        }
    }

    /// Says in a sentence what is wrong.
    pub fn about(self) -> &'static str {
        match self {
            Pattern::ThinAir => "a value comes out that nothing has put in",
            Pattern::BeforeItsInsertion => "a value comes out before it is put in",
            Pattern::RemovedTwice => "a value comes out twice",
            Pattern::Overwritten => {
                "a value is read though whatever wrote it was overwritten, or comes later"
            }
            Pattern::TwoValuesAtOnce => "two values must be in the register at one time",
            Pattern::Interrupted => {
                "a value must be written while another is in the register throughout"
            }
            Pattern::MissingThoughThere => "an element is found missing while it must be there",
            Pattern::FoundThoughGone => "an element is found though it must be gone",
            Pattern::OutOfOrder => {
                "one value goes in before another and comes out after it, or never"
            }
            Pattern::EmptyThoughNot => {
                "something is in the object throughout a call that found it empty"
            }
            Pattern::NoBottom => "values overlap so that none of them can lie below the others",
            Pattern::Overtaken => {
                "something that comes first is in the object whenever a value may have come out"
            }
            Pattern::Forked => "two reads disagree about what was appended to what",
            Pattern::Stale => "something is read though more had been appended to it before",
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Decides whether a history of calls is linearizable, if there is a decider that applies.
pub fn monitor(calls: &Calls<'_>, object: &dyn Object) -> Outcome {
    let Some(family) = object.family() else {
        return Outcome::NotApplicable(Unsuitable::Object);
    };
    let decide = || {
        let intervals = Intervals::new(calls)?;
        match family {
            Family::Register(initial) => register::decide(calls, object, &initial, &intervals),
            Family::Store(initial) => store::decide(calls, object, &initial, &intervals),
            Family::Set => set::decide(calls, object, &intervals),
            Family::Queue => queue::decide(calls, object, &intervals),
            Family::Stack => stack::decide(calls, object, &intervals),
            Family::LeastFirst => priority_queue::decide(calls, object, &intervals, false),
            Family::GreatestFirst => priority_queue::decide(calls, object, &intervals, true),
            Family::Counter(_) | Family::Deque => Err(Unsuitable::Object),
        }
    };
    match decide() {
        Ok(Ok(order)) => Outcome::Linearizable(order),
        Ok(Err(mut violation)) => {
            violation.core.sort_unstable();
            violation.core.dedup();
            Outcome::Violation(violation)
        }
        Err(reason) => Outcome::NotApplicable(reason),
    }
}

/// What a decider finds: an order, a violation, or that it does not apply.
type Decision = Result<Result<Vec<Place>, Violation>, Unsuitable>;

/// Builds a decision of a violation.
fn violation(pattern: Pattern, core: impl IntoIterator<Item = Place>) -> Decision {
    Ok(Err(Violation { pattern, core: core.into_iter().collect() }))
}
