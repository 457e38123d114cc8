//! The independent checker of certificates.
//!
//! [`certify`] takes a history, a claim about it and the claim's certificate, and accepts the
//! certificate or reports which part of it proves nothing. It shares no code with the deciders, so
//! trusting a verdict means trusting only this crate. It is small enough to be read in one sitting,
//! and plain enough to be trusted.
//!
//! | claim | certificate | what is checked |
//! | --- | --- | --- |
//! | `cc` holds | an order | it extends `po` and `wr`; no read is overwritten in its causal past |
//! | `ccv` holds | an order | the same, and each read takes the last write of its causal past |
//! | `cm` holds | one order per session | replaying it, each read of that session takes the last write |
//! | `sc` holds | an order | replaying it, each read takes the last write |
//! | `linearizability` holds | an order | the same, and it keeps real time |
//! | `tso`, `pso` holds | a store order | both of the model's relations are acyclic under it |
//! | `wsc`, `wtso` holds | pairs | with program order and `wr` they are acyclic and closed under the rules |
//! | `ccm`, `wccm` holds | pairs per session | they contain what its reads force; all together are acyclic |
//! | a violation | cases and cycles | each edge follows by a rule, each case is closed |
//!
//! [`certify_definition`] does the same for any definition, of the catalogue or of a user. It has
//! no rules: it evaluates the definition a second time, with separate, plain code, under the
//! choices of the certificate. That a definition holds is proved by a witness, which makes every
//! choice that the definition leaves open; a violation is proved by cases, in each of which a check
//! fails whatever else is chosen. The text of the definition is parsed once, for the decider and
//! the checker.
//!
//! **Soundness.** An accepted certificate proves its claim, by the definitions of the models, for
//! any history of reads, writes, read-modify-writes and fences. A history with objects' calls or
//! with transactions of more than one operation is refused.
//!
//! **Completeness.** Every true claim has a certificate that is accepted, with two exceptions:
//! violations of `sc`, `tso` and definitions whose case analysis is too large to write down, and
//! histories that are too large, or take too long, to be evaluated by definition. A read of a value
//! that was never written, and a read of a write that follows it in its own session, violate every
//! model, including the models without rules here.
//!
//! **Choices.** The source of each read is derived from the values alone. The candidates of a read
//! are the writes of its value to its key, including the initial write and indeterminate writes,
//! but not failed writes; a read-modify-write is never its own candidate. A read with one candidate
//! reads from it; with more, the certificate chooses, or splits into all cases. An indeterminate
//! write counts if and only if something is known to read from it, and only operations that count
//! appear in orders.
//!
//! The modules in reading order: `reads_from`, `replay` (CM and SC), `real_time` (linearizability),
//! `causal` (CC and CCv), `store_order` (TSO and PSO), `closure` (wSC and wTSO), `views` (CCM and
//! wCCM), `finals`, `cases` and `refute` (violations), `definition` (any definition).

mod cases;
mod causal;
mod closure;
mod definition;
mod finals;
mod limits;
mod objects;
mod reads_from;
mod real_time;
mod refute;
mod rejection;
mod replay;
mod store_order;
mod transactions;
mod views;

use consistory_history::{History, KeyId, OpId};
use consistory_verdict::{Certificate, Options, Verdict};

pub use definition::{
    certify_definition, certify_definition_within, certify_ordered_definition,
    certify_ordered_within,
};
use finals::Finals;
use limits::Limits;
pub use objects::{ObjectRejection, certify_object};
use reads_from::{Candidates, ReadsFrom};
pub use rejection::{Flaw, Rejection};
use store_order::Memory;
pub use transactions::{
    LevelClaim, TransactionRejection, certify_levels, certify_levels_within, certify_transactions,
};

/// Accepts a certificate if it proves the claim that a history satisfies or violates a model.
///
/// Models with rules are `cc`, `ccv`, `cm`, `ccm`, `wccm`, `wsc`, `sc`, `wtso`, `tso`, `pso` and
/// `linearizability`. For any other model only the violations that rule out every model are accepted.
pub fn certify(
    history: &History,
    model: &str,
    claim: Verdict,
    certificate: &Certificate,
) -> Result<(), Rejection> {
    certify_within(history, model, claim, certificate, &Options::default())
}

/// Checks a certificate as [`certify`] does, on several threads and within limits of time and
/// memory. A check that reaches a limit returns [`Rejection::Stopped`], which does not mean that
/// the certificate is wrong.
pub fn certify_within(
    history: &History,
    model: &str,
    claim: Verdict,
    certificate: &Certificate,
    options: &Options,
) -> Result<(), Rejection> {
    let limits = Limits(options);
    let rules = Model::find(model);
    if rules != Model::Other {
        if history.has_calls() {
            return Err(Rejection::Unsupported { what: "objects' calls" });
        }
        if history.first_append().is_some() {
            return Err(Rejection::Unsupported { what: "appends to lists" });
        }
        if history.first_long_transaction().is_some() {
            return Err(Rejection::Unsupported { what: "transactions" });
        }
        // A violation does not depend on the final values; a proof of consistency must explain
        // them.
        if claim == Verdict::Consistent && !history.finals().is_empty() && !rules.ends(history) {
            return Err(Rejection::Unsupported { what: "final values" });
        }
    }
    let candidates = Candidates::within(history, limits)?;
    match claim {
        Verdict::Undecided => Err(Rejection::NoClaim),
        Verdict::Violation => refute::refute(&candidates, rules, certificate, limits),
        Verdict::Consistent => match (rules, certificate) {
            (Model::Other, _) => Err(Rejection::Model { model: model.into() }),
            (Model::Cc, Certificate::Order { order, wr }) => {
                causal::weak(&ReadsFrom::chosen(&candidates, wr)?, order, limits)
            }
            (Model::Ccv, Certificate::Order { order, wr }) => {
                causal::convergent(&ReadsFrom::chosen(&candidates, wr)?, order, limits)
            }
            (Model::Lin, Certificate::Order { order, wr }) => {
                real_time::linear(&ReadsFrom::chosen(&candidates, wr)?, order, limits)
            }
            (Model::Cm, Certificate::SessionOrders { orders, wr }) => {
                replay::sessions(&ReadsFrom::chosen(&candidates, wr)?, orders, limits)
            }
            (Model::Sc, Certificate::Order { order, wr }) => {
                let wr = &ReadsFrom::chosen(&candidates, wr)?;
                replay::all(wr, order, limits)?;
                finals(history, order.iter().filter_map(|&op| Some((wr.writes(op)?, op))))
            }
            (Model::Tso | Model::Pso, Certificate::Witness { ww, wr }) => {
                store_order::total(
                    &ReadsFrom::chosen(&candidates, wr)?,
                    rules.memory(),
                    ww,
                    limits,
                )?;
                finals(history, ww.iter().filter_map(|(key, list)| Some((*key, *list.last()?))))
            }
            (Model::Wsc | Model::Wtso, Certificate::Closure { pairs, wr }) => {
                closure::closed(&ReadsFrom::chosen(&candidates, wr)?, rules.memory(), pairs, limits)
            }
            (Model::Ccm | Model::Wccm, Certificate::Views { views, wr }) => {
                views::agree(&ReadsFrom::chosen(&candidates, wr)?, rules.memory(), views, limits)
            }
            _ => Err(Rejection::Kind { kind: certificate.kind(), claim: claim.as_str() }),
        },
    }
}

/// A model with rules, or any other model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Model {
    Cc,
    Ccv,
    Cm,
    Ccm,
    Wccm,
    Wsc,
    Sc,
    Wtso,
    Tso,
    Pso,
    Lin,
    Other,
}

impl Model {
    fn find(id: &str) -> Self {
        match id {
            "cc" => Model::Cc,
            "ccv" => Model::Ccv,
            "cm" => Model::Cm,
            "ccm" => Model::Ccm,
            "wccm" => Model::Wccm,
            "wsc" => Model::Wsc,
            "sc" => Model::Sc,
            "wtso" => Model::Wtso,
            "tso" => Model::Tso,
            "pso" => Model::Pso,
            "linearizability" => Model::Lin,
            _ => Model::Other,
        }
    }

    /// Returns whether the model has rules for the final values of a history: it has a store order,
    /// and all writes of keys with final values are certain.
    fn ends(self, history: &History) -> bool {
        if !matches!(self, Model::Sc | Model::Tso | Model::Pso) {
            return false;
        }
        let mut has_final = vec![false; history.key_count()];
        history.finals().iter().for_each(|(key, _)| has_final[key.index()] = true);
        let mut uncertain = history.ops().filter(|&op| !history.is_certain(op));
        !uncertain.any(|op| history.writes(op).is_some_and(|(key, _)| has_final[key.index()]))
    }

    /// Returns how much of program order the model preserves.
    fn memory(self) -> Memory {
        match self {
            Model::Wccm | Model::Wtso | Model::Tso => Memory::TotalStore,
            Model::Pso => Memory::PartialStore,
            _ => Memory::Sequential,
        }
    }
}

/// Checks that each key ends with its final value, given the writes of each key in order.
fn finals(history: &History, writes: impl Iterator<Item = (KeyId, OpId)>) -> Result<(), Rejection> {
    if history.finals().is_empty() {
        return Ok(());
    }
    let mut last: Vec<OpId> = history.keys().map(|key| history.initial_write(key)).collect();
    for (key, write) in writes {
        last[key.index()] = write;
    }
    let wrong = |(key, allowed): &(KeyId, Vec<OpId>)| !allowed.contains(&last[key.index()]);
    match Finals::new(history).last.into_iter().find(wrong) {
        Some((key, _)) => Err(Rejection::NotFinal { write: name(history, last[key.index()]) }),
        None => Ok(()),
    }
}

/// Returns whether an id denotes an operation or an initial write of the history.
fn exists(history: &History, op: OpId) -> bool {
    op.index() < history.len() + history.key_count()
}

/// Returns the reference of an operation, or its number if the history has no such operation.
fn name(history: &History, op: OpId) -> String {
    if exists(history, op) { history.reference(op).to_string() } else { format!("#{}", op.0) }
}
