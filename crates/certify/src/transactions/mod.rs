//! Certificates about isolation levels.
//!
//! A commit order is replayed: it must contain every counting transaction once, extend the observed
//! client order and the reads-from relation, and agree with every list that was read; and each read
//! must return the last version that its transaction knows at the level. A violation is a cycle of
//! dependencies; every edge is checked against the history or against its premises, and the level
//! must forbid the cycle.
//!
//! With B = `so | rt | wr`, every level forbids the cycles of B and `ww`. The levels also forbid:
//!
//! | level | cycles with `rw` that it forbids |
//! | --- | --- |
//! | `rc` | one `rw` after one `wr` whose read comes first in its transaction |
//! | `ra` | one `rw` and one edge of B |
//! | `tcc` | one `rw`, all others in B |
//! | `psi` | one `rw` |
//! | `pc` | an edge of B before every `rw` |
//! | `si` | no two `rw` in a row |
//! | `ser` | all |
//!
//! This module shares only types with the deciders of `consistory-transactions`: the code that
//! turns a history into transactions and reads, and that checks orders and cycles, is its own.

mod order;
mod refute;
mod view;

use consistory_history::{History, KeyKind, OpId};
use consistory_verdict::{Budget, ClientOrder, Level, Stopped, TransactionCertificate, Verdict};

use view::View;

/// Reasons why a certificate about an isolation level is not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TransactionRejection {
    /// The time or memory of the check ran out, which does not mean that the certificate is wrong.
    #[error("{0}")]
    Stopped(Stopped),
    /// The levels do not apply to the history.
    #[error("isolation levels do not apply to {what}")]
    Unsupported {
        /// The part of the history that they do not apply to.
        what: &'static str,
    },
    /// The verdict is undecided, or the certificate is of a kind that cannot prove it.
    #[error("the certificate does not support the claim")]
    Claim,
    /// A read is of a kind that no level allows.
    #[error("no level allows the value that {read} returned")]
    BadRead {
        /// The read.
        read: String,
    },
    /// The claimed bad read is allowed, or is bad for another reason.
    #[error("{read} is not a read of the claimed kind")]
    GoodRead {
        /// The read.
        read: String,
    },
    /// An operation does not name a transaction that counts, or is listed twice.
    #[error("{op} is not the first operation of a transaction that can be listed there")]
    Misplaced {
        /// The operation.
        op: String,
    },
    /// A transaction that counts is not in the order.
    #[error("the transaction of {op} is not in the order")]
    Missing {
        /// Its first operation.
        op: String,
    },
    /// The choice of a read's source is missing or not among the candidates.
    #[error("{read} has no source, or one that it cannot have")]
    Source {
        /// The read.
        read: String,
    },
    /// The order contradicts the observed client order or a list that was read.
    #[error("the order puts {op} before a transaction that must precede it")]
    Order {
        /// The first operation of the transaction.
        op: String,
    },
    /// Under the order, a read does not take its value from its source.
    #[error("under the order {read} does not take its value from the last version that it knows")]
    Read {
        /// The read.
        read: String,
    },
    /// A snapshot is longer than the order before it, or misses a write that conflicts.
    #[error("the snapshot of {op} is too long or misses a conflicting write")]
    Snapshot {
        /// The first operation of the transaction.
        op: String,
    },
    /// An edge does not hold.
    #[error("the edge {relation} from {from} to {to} does not follow")]
    Edge {
        /// First operation of the transaction where the edge starts.
        from: String,
        /// First operation of the transaction where the edge ends.
        to: String,
        /// The relation.
        relation: &'static str,
    },
    /// The edges do not form a cycle, or form one that the level allows.
    #[error("the edges from {from} do not form a cycle that the level forbids")]
    Cycle {
        /// Start of the first edge.
        from: String,
    },
    /// The cases do not cover everything.
    #[error("the cases of {op} do not cover all possibilities")]
    Cases {
        /// The read or the first writer that is split on.
        op: String,
    },
}

/// A claim about a level, with its certificate.
#[derive(Clone, Copy, Debug)]
pub struct LevelClaim<'c> {
    /// The level.
    pub level: Level,
    /// Whether the history is claimed to satisfy or to violate the level.
    pub claim: Verdict,
    /// The proof.
    pub certificate: &'c TransactionCertificate,
}

/// Accepts a certificate if it proves the claim that a history satisfies or violates a level.
pub fn certify_transactions(
    history: &History,
    level: Level,
    order: ClientOrder,
    claim: Verdict,
    certificate: &TransactionCertificate,
) -> Result<(), TransactionRejection> {
    certify_levels(history, order, &[LevelClaim { level, claim, certificate }]).remove(0)
}

/// Checks the certificates of several levels of one history, and returns for each whether it is
/// accepted.
///
/// The transactions of the history are determined once. A commit order that was accepted for a
/// level is accepted for every weaker one, because a transaction knows at the weaker level only a
/// part of what it knows at the stronger one.
pub fn certify_levels(
    history: &History,
    order: ClientOrder,
    claims: &[LevelClaim<'_>],
) -> Vec<Result<(), TransactionRejection>> {
    certify_levels_within(history, order, claims, &Budget::unlimited())
}

/// Checks the certificates of several levels of one history as [`certify_levels`] does, within a budget
/// for all of them; [`TransactionRejection::Stopped`] says nothing about a certificate.
pub fn certify_levels_within(
    history: &History,
    order: ClientOrder,
    claims: &[LevelClaim<'_>],
    budget: &Budget,
) -> Vec<Result<(), TransactionRejection>> {
    let view = match applicable(history, budget) {
        Ok(view) => view,
        Err(what) => {
            let unsupported = || Err(TransactionRejection::Unsupported { what });
            return claims.iter().map(|_| unsupported()).collect();
        }
    };
    let mut results: Vec<Option<Result<(), TransactionRejection>>> = vec![None; claims.len()];
    // The strongest levels come first, so that they settle the others.
    let mut by_strength: Vec<usize> = (0..claims.len()).collect();
    by_strength.sort_by_key(|&i| std::cmp::Reverse(claims[i].level));
    for i in by_strength {
        let claim = &claims[i];
        let mut accepted =
            claims.iter().zip(&results).filter(|(_, result)| **result == Some(Ok(())));
        let is_settled = accepted.any(|(other, _)| settles(other, claim));
        results[i] = Some(match is_settled {
            true => Ok(()),
            false => view.step(0).and_then(|()| certify_claim(&view, order, claim)),
        });
    }
    results.into_iter().map(|result| result.expect("every claim was looked at")).collect()
}

/// Checks whether a claim that was accepted proves another one.
fn settles(accepted: &LevelClaim<'_>, claim: &LevelClaim<'_>) -> bool {
    if (accepted.claim, claim.claim) != (Verdict::Consistent, Verdict::Consistent)
        || !accepted.level.implies(claim.level)
    {
        return false;
    }
    let needs_snapshots = matches!(claim.level, Level::Prefix | Level::Snapshot);
    match (accepted.certificate, claim.certificate) {
        (
            TransactionCertificate::Order { order, snapshots, wr },
            TransactionCertificate::Order { order: commits, snapshots: seen, wr: sources },
        ) => order == commits && wr == sources && (!needs_snapshots || snapshots == seen),
        _ => false,
    }
}

/// Collects the transactions of a history, or reports why the levels do not apply to it.
fn applicable<'h>(history: &'h History, budget: &Budget) -> Result<View<'h>, &'static str> {
    if history.has_calls() {
        return Err("objects' calls");
    }
    if !history.finals().is_empty() {
        return Err("final values");
    }
    if history.keys().any(|key| history.key_kind(key) == KeyKind::Mixed) {
        return Err("keys that are both written and appended to");
    }
    View::new(history, budget.clone()).ok_or("lists to which a value is appended twice")
}

fn certify_claim(
    view: &View<'_>,
    order: ClientOrder,
    claim: &LevelClaim<'_>,
) -> Result<(), TransactionRejection> {
    match (claim.claim, claim.certificate) {
        (Verdict::Consistent, TransactionCertificate::Order { order: commits, snapshots, wr }) => {
            order::replay(view, claim.level, order, commits, snapshots, wr)
        }
        (Verdict::Violation, TransactionCertificate::Order { .. }) => {
            Err(TransactionRejection::Claim)
        }
        (Verdict::Violation, certificate) => refute::refute(view, claim.level, order, certificate),
        _ => Err(TransactionRejection::Claim),
    }
}

fn name(history: &History, op: OpId) -> String {
    history.reference(op).to_string()
}
