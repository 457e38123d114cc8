//! Certificates about histories of an object's calls.
//!
//! What this shares with the searches of `consistory-objects` are types and the question itself:
//! the object's sequential specification and the model's axioms (`consistory-spec`). How a history
//! is read as calls, how an execution is replayed and how a violation is confirmed is written here
//! again, in other ways.
//!
//! - A linearization is replayed: every completed operation is in it once, `hb` is kept, each
//!   visibility set holds only what comes before, the axioms hold as relations, and each operation
//!   returns what the specification gives after what it sees.
//! - For a violation there is no small proof in general (to decide is NP-hard), so it is confirmed
//!   by a search of its own on the part of the history that the certificate points out: for
//!   linearizability breadth first, all configurations at once, return by return; for other models
//!   depth first over orders and visibilities. The attempts that the certificate lists are checked
//!   to be what they claim: right as far as they go, and then stuck.
//! - A core is a part of the history too, for linearizability and a few kinds of objects: what is
//!   outside of it must be such that leaving it out turns linearizations into linearizations, and
//!   what is inside is searched as above.
//!
//! That the prefix of a history which a violation is about is the shortest that fails is accepted
//! if the certificate explains all that returned before its last return.
//!
//! Leaving out operations that nobody can notice is sound for every model, because the axioms
//! still hold for what remains: those that change no state and whose return is not looked at, those
//! that started after everything that is looked at, and those confined to other parts of the object
//! than all that is looked at.

mod breadth;
mod core;
mod depth;
mod replay;
mod sets;
mod view;

use std::collections::BTreeSet;

use consistory_history::{History, OpId};
use consistory_spec::{Object, ObjectModel};
use consistory_verdict::{Budget, ObjectCertificate, Prefix, Stopped, Unexplained};

use view::View;

/// Why a certificate about a history of calls is not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ObjectRejection {
    /// The history cannot be read as calls of the object.
    #[error("the history is none of this object: {reason}")]
    History {
        /// Why.
        reason: String,
    },
    /// An operation is listed that cannot be, is listed twice, or was not called yet.
    #[error("`{part}`: {op} has no place there")]
    Misplaced {
        /// Where in the certificate.
        part: &'static str,
        /// The operation.
        op: String,
    },
    /// A completed operation is not in the linearization.
    #[error("`order`: {op} is missing")]
    Missing {
        /// The operation.
        op: String,
    },
    /// An operation comes after one that it happened before.
    #[error("`order`: {op} comes after an operation that it happened before")]
    HappensBefore {
        /// The operation.
        op: String,
    },
    /// An axiom does not hold.
    #[error("`vis`: {op} does not see all that `{axiom}` demands")]
    Axiom {
        /// The operation.
        op: String,
        /// The axiom.
        axiom: String,
    },
    /// The specification gives another return, or none.
    #[error("{op} returns {expected} after what it sees")]
    Return {
        /// The operation.
        op: String,
        /// What the specification gives.
        expected: String,
    },
    /// An attempt can be extended.
    #[error("`attempts[{index}]`: {op} can come next")]
    NotStuck {
        /// Which attempt.
        index: usize,
        /// The operation that is said to be stuck.
        op: String,
    },
    /// What is said to be without explanation has one.
    #[error("the operations of `returned` can be explained")]
    Explained,
    /// An operation outside of the core cannot be left out.
    #[error("`operations`: {op} cannot be left out")]
    NotClosed {
        /// The operation.
        op: String,
    },
    /// The object is none whose operations may be left out.
    #[error("nothing is known about leaving out operations of this object or for this model")]
    NoCore,
    /// The budget ran out before the certificate was checked.
    #[error("the certificate could not be checked: {0}")]
    Stopped(Stopped),
}

impl From<Stopped> for ObjectRejection {
    fn from(stopped: Stopped) -> Self {
        ObjectRejection::Stopped(stopped)
    }
}

/// Accepts or rejects a certificate for what it claims about a history, an object and a model.
pub fn certify_object(
    history: &History,
    object: &dyn Object,
    model: &ObjectModel,
    certificate: &ObjectCertificate,
    budget: &Budget,
) -> Result<(), ObjectRejection> {
    let view = View::new(history, object)?;
    match certificate {
        ObjectCertificate::Core(core) => match &core.prefix {
            None => core::refuted(&view, model, core, budget),
            Some(Prefix { last, before }) => {
                let end = view.events[view.find("last", *last)?].end;
                if end.is_none() {
                    let op = history.reference(*last).to_string();
                    return Err(ObjectRejection::Misplaced { part: "last", op });
                }
                let shorter = view.relaxed(&view.ended(|other| other < end))?;
                replay::consistent(&shorter, model, before)?;
                let prefix = view.relaxed(&view.ended(|other| other <= end))?;
                core::refuted(&prefix, model, core, budget)
            }
        },
        ObjectCertificate::Linearization(linearization) => {
            replay::consistent(&view, model, linearization)
        }
        ObjectCertificate::Unexplained(Unexplained { returned, attempts, before }) => {
            let relaxed = view.relaxed(returned)?;
            if let (Some(before), Some((&last, others))) = (before, returned.split_last()) {
                let end = view.events[view.find("returned", last)?].end;
                let earlier = view.ended(|other| other < end && end.is_some());
                let shorter: BTreeSet<OpId> = others.iter().copied().chain(earlier).collect();
                let shorter: Vec<OpId> = shorter.into_iter().collect();
                replay::consistent(&view.relaxed(&shorter)?, model, before)?;
            }
            for (index, attempt) in attempts.iter().enumerate() {
                replay::stuck(&relaxed, model, attempt, index, budget)?;
            }
            let relevant = relaxed.relevant();
            let is_explained = if model.is_linearizability() {
                breadth::is_linearizable(&relaxed, &relevant, budget)?
            } else {
                depth::is_explained(&relaxed, model, &relevant, budget)?
            };
            if is_explained { Err(ObjectRejection::Explained) } else { Ok(()) }
        }
    }
}
