//! Polynomial deciders of linearizability, for the objects and histories that have them.
//!
//! In a *differentiated* history no value is inserted or written twice, so a return determines
//! which call inserted or wrote the value. Linearizability of registers, sets, queues, stacks and
//! priority queues can then be decided from intervals instead of a search for an order:
//!
//! | object | methods | cost for n calls | pending calls |
//! | --- | --- | --- | --- |
//! | register | `read`, `write`; a value also twice, if time tells the writes apart | O(n log n) | exact |
//! | set | `add`, `remove`, `contains` | O(n) after a sort | exact |
//! | queue | `enqueue`, `offer`, `dequeue` | O(n log n) | exact |
//! | stack | `push`, `pop` | O(n log n) | pending pops in two cases of three |
//! | priority queue | `insert`, `offer`, `poll` | O(n log n) | pending polls in two cases of three |
//! | key-value store | `get`, `put`, `append`; a text also twice, if time tells the calls apart |
//! O(n log n), and linear in the returned texts | exact |
//!
//! Each module proves its algorithm. All of them first replace times by ranks ([`Intervals`]), and
//! all view a linearization as a choice of one point in each call's interval. The bounds are those
//! of Gibbons and Korach (registers) and of Lee and Mathur and Abdulla et al. (collections), whose
//! monitors do not support pending calls; the proofs and the treatment of pending calls are our
//! own.
//!
//! All other cases are [`Outcome::NotApplicable`] and left to the general search: a history that is
//! not differentiated, an unsupported method, a bounded capacity, a clock that is too coarse; and
//! pending removals of a stack or a priority queue in the third case, in which the history is not
//! linearizable without them but would be with enough of them.
//!
//! Certificates. A linearizable history comes with its order. A violation comes with its
//! [`Pattern`] and a *core*: a few calls that are not linearizable by themselves and that are
//! closed, so that removing the other calls from a linearization of the whole history would leave a
//! linearization of the core. [`Violation`] says why; checking it needs only the core.

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

use crate::calls::{CallIndex, Calls};
use intervals::Intervals;

/// Result of a decider.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The history is linearizable, in this order; pending calls that are not in it took no effect.
    Linearizable(Vec<CallIndex>),
    /// The history is not linearizable.
    Violation(Violation),
    /// The general search must decide.
    NotApplicable(Unsuitable),
}

/// Reason why the general search must decide.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsuitable {
    /// The object has no polynomial decider.
    #[error("the object has no polynomial decider")]
    Object,
    /// The history has no times.
    #[error("the history has no times")]
    NoTimes,
    /// The history has more calls than there are ranks.
    #[error("the history has more than a thousand million calls")]
    TooLarge,
    /// Calls of one session meet at a time at which other calls end.
    #[error("the clock is too coarse around the calls of a session")]
    CoarseClock,
    /// The decider does not support a method of the object.
    #[error("`{method}` is not supported by the polynomial decider")]
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
    /// A value that was read can be composed in several ways.
    #[error("{value} can be composed of put and appended values in several ways")]
    Ambiguous {
        /// The value.
        value: Value,
    },
    /// The values put and appended are neither all texts nor all lists and their elements.
    #[error("texts and other values are appended to one key")]
    Mixed,
    /// The return of a call was not recorded or cannot be used.
    #[error("the return value of a `{method}` is missing, or no `{method}` can return it")]
    Return {
        /// The method.
        method: String,
    },
    /// It is unknown whether pending removals explain the history.
    #[error("whether pending removals explain the history is not decided in polynomial time")]
    PendingRemovals,
}

/// A violation: its pattern, and a few calls that show it.
///
/// A linearization remains one when calls are removed as follows, so a core that is closed under
/// these removals refutes the whole history.
/// - A register or set: any read; and a write, or all calls of an element, with all its reads.
/// - A store: all calls of a key; any `get`; a `put` whose value is not the beginning of the return
///   of any `get` in the core; and an `append` whose value is not contained in the return of any
///   `get` in the core.
/// - A collection: all calls of a value together, and a removal that found nothing. A pending
///   removal may have removed a value that no other call removed, so if the core has such a value
///   it must contain the pending removals too, except those that start after the end of every call
///   in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Pattern of the violation.
    pub pattern: Pattern,
    /// Calls that are not linearizable by themselves, sorted.
    pub core: Vec<CallIndex>,
}

/// The pattern of a violation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pattern {
    /// A value is removed that was never inserted.
    ThinAir,
    /// A value is removed before it is inserted.
    BeforeItsInsertion,
    /// A value is removed twice.
    RemovedTwice,
    /// A value is read although every write of it was overwritten, or comes later.
    Overwritten,
    /// A register must hold two values at one time.
    TwoValuesAtOnce,
    /// A value must be written and read while another is in the register throughout.
    Interrupted,
    /// An element is reported missing while it must be present.
    MissingThoughThere,
    /// An element is found although it must be gone.
    FoundThoughGone,
    /// One value is inserted before another and removed after it, or never.
    OutOfOrder,
    /// The object is nonempty throughout a call that found it empty.
    EmptyThoughNot,
    /// Values overlap so that none of them can lie below the others.
    NoBottom,
    /// A value of higher priority is present whenever a value may have been removed.
    Overtaken,
    /// Two reads disagree about the order of appends.
    Forked,
    /// A read misses an append that ended before the read started.
    Stale,
}

impl Pattern {
    /// Returns the name that reports use.
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

    /// Describes the violation in a sentence.
    pub fn about(self) -> &'static str {
        match self {
            Pattern::ThinAir => "a value comes out that was never put in",
            Pattern::BeforeItsInsertion => "a value comes out before it is put in",
            Pattern::RemovedTwice => "a value comes out twice",
            Pattern::Overwritten => {
                "a value is read although every write of it was overwritten or comes later"
            }
            Pattern::TwoValuesAtOnce => "two values must be in the register at one time",
            Pattern::Interrupted => {
                "a value must be written while another is in the register throughout"
            }
            Pattern::MissingThoughThere => {
                "an element is reported missing while it must be present"
            }
            Pattern::FoundThoughGone => "an element is found although it must have been removed",
            Pattern::OutOfOrder => {
                "one value goes in before another and comes out after it, or never"
            }
            Pattern::EmptyThoughNot => {
                "the object is nonempty throughout a call that found it empty"
            }
            Pattern::NoBottom => "values overlap so that none of them can lie below the others",
            Pattern::Overtaken => {
                "a value of higher priority is in the object whenever a value may have come out"
            }
            Pattern::Forked => "two reads disagree about the order of appends",
            Pattern::Stale => {
                "an old value is read, although more had been appended before the read"
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Decides whether a history of calls is linearizable, if a decider applies.
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

/// Result of a decider: an order, a violation, or why it does not apply.
type Decision = Result<Result<Vec<CallIndex>, Violation>, Unsuitable>;

/// Builds a decision of a violation.
fn violation(pattern: Pattern, core: impl IntoIterator<Item = CallIndex>) -> Decision {
    Ok(Err(Violation { pattern, core: core.into_iter().collect() }))
}
