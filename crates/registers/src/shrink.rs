//! Shrinks a violating history until no operation can be removed.
//!
//! Delta debugging (Zeller and Hildebrandt 2002): drop halves, quarters and so on, finally single
//! operations, as long as the history still violates the model. A first cut keeps only the
//! operations that the certificate mentions, so that a history of a million operations shrinks in a
//! few steps. A read whose write was dropped would be a violation of its own (ThinAirRead); this
//! does not count unless the original history had one.

use crate::Judgement;
use consistory_history::{Action, Call, Details, History, HistoryBuilder, KeyId, OpId};
use consistory_verdict::{Certificate, Edge, Pattern, Stopped};

/// Shrinks a history that `judge` finds to be a violation.
///
/// A smaller history on which `judge` stops without an answer is not used. The result is minimal
/// unless `judge` stopped.
pub fn shrink(
    history: &History,
    violation: &Judgement,
    mut judge: impl FnMut(&History) -> Result<Judgement, Stopped>,
) -> History {
    let Judgement::Violation { pattern, certificate } = violation else {
        return history.clone();
    };
    let thin_air = *pattern == Pattern::ThinAirRead;
    let mut violates = |smaller: &History| match judge(smaller) {
        Ok(Judgement::Violation { pattern, .. }) => thin_air || pattern != Pattern::ThinAirRead,
        _ => false,
    };
    let mut current = history.clone();
    let mentioned = mentioned(certificate, history);
    let core = subset(history, &mentioned);
    if core.len() < history.len() && violates(&core) {
        current = core;
    }
    let mut chunk = current.len().div_ceil(2).max(1);
    loop {
        let mut shrunk = false;
        let mut start = 0;
        while start < current.len() {
            let end = (start + chunk).min(current.len());
            let keep: Vec<bool> = (0..current.len()).map(|op| op < start || op >= end).collect();
            let smaller = subset(&current, &keep);
            if violates(&smaller) {
                current = smaller;
                shrunk = true;
            } else {
                start = end;
            }
        }
        // The history is minimal once a pass over single operations removes nothing.
        if chunk == 1 && !shrunk {
            return current;
        }
        chunk = (chunk / 2).max(1);
    }
}

/// Marks the operations that a certificate mentions.
fn mentioned(certificate: &Certificate, history: &History) -> Vec<bool> {
    let mut keep = vec![false; history.len()];
    let mut mark = |op: OpId| {
        if let Some(slot) = keep.get_mut(op.index()) {
            *slot = true;
        }
    };
    let mut certificates = vec![certificate];
    let mut edges: Vec<&Edge> = Vec::new();
    while let Some(certificate) = certificates.pop() {
        match certificate {
            Certificate::ThinAirRead { read } => mark(*read),
            Certificate::Cycle { edges: cycle, observer, .. } => {
                edges.extend(cycle);
                observer.iter().for_each(|&op| mark(op));
            }
            Certificate::SplitRead { read, branches } => {
                mark(*read);
                branches.iter().for_each(|(write, _)| mark(*write));
                certificates.extend(branches.iter().map(|(_, proof)| proof));
            }
            Certificate::SplitLast { branches, .. } => {
                branches.iter().for_each(|(write, _)| mark(*write));
                certificates.extend(branches.iter().map(|(_, proof)| proof));
            }
            Certificate::SplitOrder { writes, branches } => {
                writes.iter().for_each(|&op| mark(op));
                certificates.extend(branches.iter());
            }
            _ => {}
        }
        while let Some(edge) = edges.pop() {
            mark(edge.from);
            mark(edge.to);
            edges.extend(&edge.because);
        }
    }
    keep
}

/// Returns the history of the kept operations. Sessions and keys without operations are dropped,
/// with the final values of such keys.
pub fn subset(history: &History, keep: &[bool]) -> History {
    let mut b = HistoryBuilder::new();
    if let Some(name) = history.name() {
        b.set_name(name);
    }
    let mut open = None;
    for session in history.sessions() {
        for op in history.session_ops(session).filter(|op| keep[op.index()]) {
            let session = b.session(history.session_name(session));
            let transaction = history.transaction_of(op).map(|id| match open {
                Some((current, transaction)) if current == id => transaction,
                _ => {
                    let transaction = b.begin_transaction();
                    b.set_transaction_status(transaction, history.transaction(id).status);
                    open = Some((id, transaction));
                    transaction
                }
            });
            let details =
                Details { status: history.own_status(op), time: history.time(op), transaction };
            let action = copy_action(history, op, &mut b);
            b.push_with(session, action, details);
        }
    }
    for &(key, value) in history.finals() {
        let kept = |op: OpId| keep[op.index()] && accesses(history, op) == Some(key);
        if history.ops().any(kept) {
            let key = b.key(history.key_name(key));
            let value = b.value(history.value(value).clone());
            b.set_final(key, value);
        }
    }
    b.finish().expect("a part of a history is a history")
}

/// Returns the key of an operation.
fn accesses(history: &History, op: OpId) -> Option<KeyId> {
    history.key_of(op)
}

fn copy_action(history: &History, op: OpId, b: &mut HistoryBuilder) -> Action {
    let key_of = |b: &mut HistoryBuilder, key| {
        let copy = b.key(history.key_name(key));
        let initial = b.value(history.value(history.initial_value(key)).clone());
        b.set_initial(copy, initial);
        copy
    };
    let value_of = |b: &mut HistoryBuilder, value| b.value(history.value(value).clone());
    match history.action(op) {
        Action::Read { key, value } => {
            Action::Read { key: key_of(b, key), value: value_of(b, value) }
        }
        Action::Write { key, value } => {
            Action::Write { key: key_of(b, key), value: value_of(b, value) }
        }
        Action::Rmw { key, read, write } => {
            Action::Rmw { key: key_of(b, key), read: value_of(b, read), write: value_of(b, write) }
        }
        Action::Append { key, value } => {
            Action::Append { key: key_of(b, key), value: value_of(b, value) }
        }
        Action::Fence => Action::Fence,
        Action::Call(id) => {
            let call = history.call(id);
            let args = call.args.iter().map(|&arg| value_of(b, arg)).collect();
            let returns = call.returns.map(|value| value_of(b, value));
            Action::Call(b.call(Call { method: call.method.clone(), args, returns }))
        }
    }
}
