//! Verdicts about any definition, checked by evaluating it a second time.
//!
//! A history satisfies a definition if and only if all its checks hold for some choice of the
//! source of each read (never a write that follows the read in its own session) and, if the
//! definition has one, of the store order. The proof is the choice: the checker evaluates the
//! checks under it with its own plain evaluator (`evaluate`). The definition itself is shared with
//! the decider, as data: its text was parsed, and its names resolved, once for both.
//!
//! A violation is proved by cases. Each case assumes a part of the choices and is closed by a check
//! that fails whatever else is chosen; `refute` describes how this is known. The edges that a
//! certificate shows add nothing to the proof, but people look at them, so they must form a walk
//! through the relation of the check.
//!
//! Cost: n² bits per relation and about n³/64 steps per operator, for n operations, for each case
//! in which the choices that the operands depend on differ.

mod choice;
mod evaluate;
mod pairs;
mod project;
mod refute;
mod walk;

use consistory_definition::{ClientOrder, Definition, levels_apply};
use consistory_history::{Action, History, KeyId, OpId, Value};
use consistory_verdict::{Budget, Certificate, Verdict};

use crate::finals::Finals;
use crate::reads_from::{Candidates, ReadsFrom};
use crate::replay::Cursor;
use crate::{Rejection, name};
use choice::{Choice, po};
use evaluate::{Evaluator, holds};
pub(crate) use project::Projection;

/// Largest number of operations, initial writes included, in a history whose relations are
/// computed.
const MAX_DEFINITION_OPERATIONS: usize = 2048;

/// Accepts a certificate if it proves the claim that a history satisfies or violates a definition.
///
/// A consistent history is proved by a witness, or by an order of all operations, which determines
/// the order of the writes. A violation is proved by cases, each closed by a read of a value that
/// was never written or of a write that follows the read, by an impossible final value, or by a
/// check that fails.
pub fn certify_definition(
    history: &History,
    definition: &Definition,
    claim: Verdict,
    certificate: &Certificate,
) -> Result<(), Rejection> {
    certify_definition_within(history, definition, claim, certificate, &Budget::unlimited())
}

/// Accepts a certificate as [`certify_definition`] does, within a budget: [`Rejection::Stopped`] does
/// not mean that the certificate is wrong.
pub fn certify_definition_within(
    history: &History,
    definition: &Definition,
    claim: Verdict,
    certificate: &Certificate,
    budget: &Budget,
) -> Result<(), Rejection> {
    let order = ClientOrder::default();
    certify_ordered_within(history, definition, order, claim, certificate, budget)
}

/// Accepts a certificate as [`certify_definition`] does; in a definition about transactions, `so`
/// denotes `order`.
///
/// Definitions that choose a commit order are refused.
pub fn certify_ordered_definition(
    history: &History,
    definition: &Definition,
    order: ClientOrder,
    claim: Verdict,
    certificate: &Certificate,
) -> Result<(), Rejection> {
    let budget = Budget::unlimited();
    certify_ordered_within(history, definition, order, claim, certificate, &budget)
}

/// Accepts a certificate as [`certify_ordered_definition`] does, within a budget.
pub fn certify_ordered_within(
    history: &History,
    definition: &Definition,
    order: ClientOrder,
    claim: Verdict,
    certificate: &Certificate,
    budget: &Budget,
) -> Result<(), Rejection> {
    if !definition.is_transactional() {
        applies(history, definition)?;
        return certify_choice(&Candidates::new(history), definition, claim, certificate, budget);
    }
    levels_apply(history).map_err(|_| Rejection::Unsupported { what: "this history" })?;
    if definition.program().commit_order.is_some() {
        return Err(Rejection::Unsupported { what: "commit orders" });
    }
    let is_null = |op| match history.action(op) {
        Action::Append { value, .. } => *history.value(value) == Value::Null,
        _ => false,
    };
    if history.ops().any(is_null) {
        return Err(Rejection::Unsupported { what: "lists that hold null" });
    }
    let projection = Projection::new(history, order);
    let candidates = Candidates::of_transactions(&projection);
    certify_choice(&candidates, definition, claim, certificate, budget)
}

/// Accepts a certificate about a history of single operations.
fn certify_choice(
    candidates: &Candidates<'_>,
    definition: &Definition,
    claim: Verdict,
    certificate: &Certificate,
    budget: &Budget,
) -> Result<(), Rejection> {
    match (claim, certificate) {
        (Verdict::Undecided, _) => Err(Rejection::NoClaim),
        (Verdict::Violation, _) => refute::refute(candidates, definition, certificate, budget),
        (Verdict::Consistent, Certificate::Witness { ww, wr }) => {
            let wr = ReadsFrom::chosen(candidates, wr)?;
            if !definition.has_store_order() && !ww.is_empty() {
                return Err(Rejection::NoStoreOrder { part: "ww".into() });
            }
            satisfies(candidates, definition, &wr, ww, budget)
        }
        (Verdict::Consistent, Certificate::Order { order, wr }) => {
            let wr = ReadsFrom::chosen(candidates, wr)?;
            let ww = store_order(&wr, order)?;
            satisfies(candidates, definition, &wr, &ww, budget)
        }
        (Verdict::Consistent, _) => {
            Err(Rejection::Kind { kind: certificate.kind(), claim: claim.as_str() })
        }
    }
}

/// Fails if the definition does not apply to the history.
fn applies(history: &History, definition: &Definition) -> Result<(), Rejection> {
    if history.ops().any(|op| matches!(history.action(op), Action::Call(_))) {
        return Err(Rejection::Unsupported { what: "objects' calls" });
    }
    if history.first_append().is_some() {
        return Err(Rejection::Unsupported { what: "appends to lists" });
    }
    if history.first_long_transaction().is_some() {
        return Err(Rejection::Unsupported { what: "transactions" });
    }
    let mut is_uncertain = vec![!definition.has_store_order(); history.key_count()];
    for op in history.ops().filter(|&op| !history.is_certain(op)) {
        if let Some((key, _)) = history.writes(op) {
            is_uncertain[key.index()] = true;
        }
    }
    match history.finals().iter().find(|(key, _)| is_uncertain[key.index()]) {
        Some(&(key, _)) => Err(Rejection::FinalValue { key: history.key_name(key).into() }),
        None => Ok(()),
    }
}

/// Fails if the relations over the history would be too large.
fn affordable(history: &History) -> Result<(), Rejection> {
    let operations = history.len() + history.key_count();
    if operations > MAX_DEFINITION_OPERATIONS {
        return Err(Rejection::TooLarge { operations, limit: MAX_DEFINITION_OPERATIONS });
    }
    Ok(())
}

/// Checks that all checks hold under a complete choice.
fn satisfies(
    candidates: &Candidates<'_>,
    definition: &Definition,
    wr: &ReadsFrom<'_>,
    ww: &[(KeyId, Vec<OpId>)],
    budget: &Budget,
) -> Result<(), Rejection> {
    let history = wr.history;
    for read in history.ops() {
        if let Some(write) = wr.source(read)
            && candidates.transactions.is_none()
            && po(history, read, write)
        {
            let (read, write) = (name(history, read), name(history, write));
            return Err(Rejection::BeforeItsWrite { part: "wr".into(), read, write });
        }
    }
    affordable(history)?;
    if definition.has_store_order() {
        are_store_orders(wr, ww)?;
    }
    let before = ww.iter().flat_map(|(_, writes)| writes.windows(2).map(|pair| (pair[0], pair[1])));
    let choice = Choice::new(candidates, wr, before);
    for &(first, second) in candidates.transactions.iter().flat_map(|t| &t.listed) {
        let is_kept = !wr.counts(first)
            || !wr.counts(second)
            || choice.ww.contains(first.index(), second.index());
        if !is_kept {
            return Err(Rejection::BadStoreOrder { part: "ww".into(), op: name(history, second) });
        }
    }
    let transactions = candidates.transactions;
    let mut evaluator = Evaluator::new(history, transactions, definition, choice, budget);
    evaluator.bind_globals()?;
    for (check, shown) in definition.program().checks.iter().zip(definition.checks()) {
        let observers: Vec<Option<usize>> = match &check.forall {
            Some((_, set, _)) => evaluator.value(*set)?.pairs.elements().map(Some).collect(),
            None => vec![None],
        };
        for observer in observers {
            let subject = evaluator.subject(check, observer)?;
            if !holds(check.kind, &subject.pairs) {
                return Err(Rejection::CheckFails { check: shown.name.into() });
            }
        }
    }
    Ok(())
}

/// Checks that the lists contain every write that counts once, with each key's initial write first
/// and a write of its final value last.
fn are_store_orders(wr: &ReadsFrom<'_>, ww: &[(KeyId, Vec<OpId>)]) -> Result<(), Rejection> {
    let history = wr.history;
    let mut last: Vec<Option<OpId>> = vec![None; history.key_count()];
    let mut is_listed = vec![false; history.len()];
    for (key, writes) in ww {
        let slot = last.get_mut(key.index()).filter(|slot| slot.is_none());
        let Some(slot) = slot else {
            return Err(Rejection::BadName { part: format!("ww.#{}", key.0) });
        };
        *slot = writes.last().copied();
        let fault = writes.iter().enumerate().position(|(i, &write)| {
            if i == 0 {
                return write != history.initial_write(*key);
            }
            history.is_initial(write)
                || wr.writes(write) != Some(*key)
                || std::mem::replace(&mut is_listed[write.index()], true)
        });
        if let Some(i) = fault.or(writes.is_empty().then_some(0)) {
            let write = writes.get(i).copied().unwrap_or(history.initial_write(*key));
            return Err(Rejection::BadStoreOrder {
                part: format!("ww.{}[{i}]", history.key_name(*key)),
                op: name(history, write),
            });
        }
    }
    if let Some(op) = history.ops().find(|&op| wr.writes(op).is_some() && !is_listed[op.index()]) {
        return Err(Rejection::Missing { part: "ww".into(), op: name(history, op) });
    }
    for (key, writes) in Finals::new(history).last {
        let last = last[key.index()].unwrap_or(history.initial_write(key));
        if !writes.contains(&last) {
            return Err(Rejection::NotFinal { write: name(history, last) });
        }
    }
    Ok(())
}

/// Returns the writes of each key in the order of the given operations, which must contain every
/// operation that counts and extend `po` and `wr`.
fn store_order(wr: &ReadsFrom<'_>, order: &[OpId]) -> Result<Vec<(KeyId, Vec<OpId>)>, Rejection> {
    let history = wr.history;
    let mut ww: Vec<(KeyId, Vec<OpId>)> =
        history.keys().map(|key| (key, vec![history.initial_write(key)])).collect();
    let mut cursor = Cursor::new(wr);
    for (i, &op) in order.iter().enumerate() {
        cursor.take(op, "order", i)?;
        if let Some(key) = wr.writes(op) {
            ww[key.index()].1.push(op);
        }
    }
    for session in history.sessions() {
        cursor.complete(session, "order")?;
    }
    Ok(ww)
}
