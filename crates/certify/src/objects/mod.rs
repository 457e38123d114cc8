//! Certificates about histories of an object's calls.
//!
//! The checker shares with the searches of `consistory-objects` only types and the question: the
//! object's sequential specification and the model's axioms (`consistory-spec`). It has its own
//! code for reading a history as calls, for replaying executions and for confirming violations, and
//! it relies on no hint by which a specification lets searches skip cases ([`knowledge`]).
//!
//! - A linearization is replayed: it contains every completed operation once, it keeps `hb`, each
//!   visibility set contains only earlier operations, the axioms hold as relations, and each
//!   operation returns what the specification returns after the operations that it sees.
//! - A violation has no small proof in general (deciding is NP-hard), so it is confirmed by a
//!   search on the part of the history that the certificate names. For linearizability the search
//!   is breadth first, with all configurations at once, return by return; for other models it is
//!   depth first over orders and visibilities. The attempts that the certificate lists are checked
//!   too: each must be correct so far, and impossible to extend.
//! - A core is a small part of the history, for linearizability and a few ready objects. The
//!   checker confirms that leaving out the rest turns linearizations into linearizations, and
//!   searches the core as above.
//!
//! A claim that a prefix of the history is the shortest failing one is accepted if the certificate
//! explains everything that returned before the prefix's last return.
//!
//! Operations are left out if this cannot be noticed: operations that started after everything
//! under consideration and, for a ready object, read-only operations whose return is not
//! considered, and operations confined to other parts of the object. The axioms still hold for the
//! rest. For an object that the checker does not know, the whole history up to the last return is
//! searched instead of the part that the certificate names, because other parts may matter there.

mod breadth;
mod core;
mod depth;
mod knowledge;
mod replay;
mod sets;
mod transitions;
mod view;

use std::collections::BTreeSet;

use consistory_history::{History, OpId};
use consistory_spec::{Object, ObjectModel};
use consistory_verdict::{Budget, ObjectCertificate, Prefix, Stopped, Unexplained};

use view::View;

/// Reasons why a certificate about a history of calls is not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ObjectRejection {
    /// The history cannot be read as calls of the object.
    #[error("the history does not fit this object: {reason}")]
    History {
        /// The reason.
        reason: String,
    },
    /// An operation is listed that cannot be listed there, is listed twice, or was not called yet.
    #[error("`{part}`: {op} does not belong there")]
    Misplaced {
        /// Path within the certificate.
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
    #[error("`vis`: {op} does not see everything that `{axiom}` demands")]
    Axiom {
        /// The operation.
        op: String,
        /// The axiom.
        axiom: String,
    },
    /// The specification returns another value, or none.
    #[error("{op} returns {expected} after the operations that it sees")]
    Return {
        /// The operation.
        op: String,
        /// Return value of the specification.
        expected: String,
    },
    /// An attempt can be extended.
    #[error("`attempts[{index}]`: {op} can come next")]
    NotStuck {
        /// Index of the attempt.
        index: usize,
        /// The operation that is said to be stuck.
        op: String,
    },
    /// The operations that are said to be inexplicable can be explained.
    #[error("the operations of `returned` can be explained")]
    Explained,
    /// An operation outside of the core cannot be left out.
    #[error("`operations`: {op} cannot be left out")]
    NotClosed {
        /// The operation.
        op: String,
    },
    /// The checker does not know which operations of the object can be left out.
    #[error("no operations of this object are known that can be left out for this model")]
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

/// Checks a certificate for a claim about a history, an object and a model.
pub fn certify_object(
    history: &History,
    object: &dyn Object,
    model: &ObjectModel,
    certificate: &ObjectCertificate,
    budget: &Budget,
) -> Result<(), ObjectRejection> {
    let view = View::new(history, object, budget)?;
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
                replay::consistent(&shorter, model, before, budget)?;
                let prefix = view.relaxed(&view.ended(|other| other <= end))?;
                core::refuted(&prefix, model, core, budget)
            }
        },
        ObjectCertificate::Linearization(linearization) => {
            replay::consistent(&view, model, linearization, budget)
        }
        ObjectCertificate::Unexplained(Unexplained { returned, attempts, before }) => {
            let relaxed = view.relaxed(returned)?;
            let searched = match &view.ready {
                Some(_) => None,
                None => view.until_last_of(returned)?,
            };
            let searched = searched.as_ref().unwrap_or(&relaxed);
            if let (Some(before), Some((&last, others))) = (before, returned.split_last()) {
                let end = view.events[view.find("returned", last)?].end;
                let earlier = view.ended(|other| other < end && end.is_some());
                let shorter: BTreeSet<OpId> = others.iter().copied().chain(earlier).collect();
                let shorter: Vec<OpId> = shorter.into_iter().collect();
                replay::consistent(&view.relaxed(&shorter)?, model, before, budget)?;
            }
            for (index, attempt) in attempts.iter().enumerate() {
                replay::stuck(&relaxed, model, attempt, index, budget)?;
            }
            let relevant = searched.relevant();
            let is_explained = if model.is_linearizability() {
                breadth::is_linearizable(searched, &relevant, budget)?
            } else {
                depth::is_explained(&relaxed, model, &relaxed.relevant(), budget)?
            };
            if is_explained { Err(ObjectRejection::Explained) } else { Ok(()) }
        }
    }
}
