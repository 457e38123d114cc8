//! Shrinks a violating history: transactions first, then operations.
//!
//! Delta debugging (Zeller and Hildebrandt 2002) on transactions, then on single operations. A
//! first cut keeps only the transactions that the certificate mentions. A read whose source was
//! removed is removed too, and an element whose append was removed is removed from the lists, so
//! that a part of a history does not become a violation of another kind: a bad read counts only if
//! the original history had one.

use consistory_history::{
    Action, Details, History, HistoryBuilder, KeyId, KeyKind, OpId, Status, Value,
};
use consistory_verdict::{
    Budget, ClientOrder, Dependency, Judgement, Level, Relates, TransactionCertificate,
};
use rustc_hash::FxHashSet;

use crate::judge::judge;
use crate::view::Transactions;

/// A part of a history that still violates the level.
#[derive(Debug)]
pub struct Shrunk {
    /// The smaller history.
    pub history: History,
    /// Whether it is known that no operation can be removed.
    pub is_minimal: bool,
}

/// Removes transactions and operations as long as the history violates the level.
pub fn shrink(
    history: &History,
    level: Level,
    order: ClientOrder,
    violation: &TransactionCertificate,
    budget: &Budget,
) -> Shrunk {
    let bad_reads = match violation {
        TransactionCertificate::BadRead { .. } => BadReads::Kept,
        _ => BadReads::Removed,
    };
    let mut stopped = false;
    let mut violates = |part: &History| {
        if budget.check().is_err() {
            stopped = true;
            return false;
        }
        let has_bad_read = Transactions::new(part).map_or(true, |tx| !tx.bad_reads().is_empty());
        if has_bad_read != (bad_reads == BadReads::Kept) {
            return false;
        }
        match judge(part, order, &[level], budget) {
            Ok(rulings) => match &rulings[0].judgement {
                Judgement::Violation { .. } => true,
                Judgement::Consistent(_) => false,
                Judgement::Undecided(_) => {
                    stopped = true;
                    false
                }
            },
            Err(_) => false,
        }
    };
    let mut current = history.clone();
    let core = part(history, &mentioned(history, violation), bad_reads);
    if core.len() < history.len() && violates(&core) {
        current = core;
    }
    for pieces in [Pieces::Transactions, Pieces::Operations] {
        current = reduce(current, pieces, bad_reads, &mut violates);
    }
    Shrunk { history: current, is_minimal: !stopped }
}

/// Unit of removal.
#[derive(Clone, Copy)]
enum Pieces {
    Transactions,
    Operations,
}

/// Whether a part of a history may have reads without a source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BadReads {
    Kept,
    Removed,
}

/// Removes ranges of transactions, or of operations, of decreasing length.
fn reduce(
    mut current: History,
    pieces: Pieces,
    bad_reads: BadReads,
    violates: &mut impl FnMut(&History) -> bool,
) -> History {
    let pieces = |history: &History| -> Vec<std::ops::Range<u32>> {
        match pieces {
            Pieces::Transactions => {
                history.all_transactions().map(|transaction| transaction.ops).collect()
            }
            Pieces::Operations => (0..history.len() as u32).map(|op| op..op + 1).collect(),
        }
    };
    let mut chunk = pieces(&current).len().div_ceil(2).max(1);
    loop {
        let mut shrank = false;
        let mut start = 0;
        let mut all = pieces(&current);
        while start < all.len() {
            let end = (start + chunk).min(all.len());
            let mut keep = vec![true; current.len()];
            for op in all[start..end].iter().cloned().flatten() {
                keep[op as usize] = false;
            }
            let smaller = part(&current, &keep, bad_reads);
            if smaller.len() < current.len() && violates(&smaller) {
                current = smaller;
                all = pieces(&current);
                shrank = true;
            } else {
                start = end;
            }
        }
        if chunk == 1 && !shrank {
            return current;
        }
        chunk = (chunk / 2).max(1);
    }
}

/// Marks the operations of the transactions that a certificate mentions.
fn mentioned(history: &History, certificate: &TransactionCertificate) -> Vec<bool> {
    let mut ops: Vec<OpId> = Vec::new();
    let mut edges: Vec<&Dependency> = certificate.cycles().flatten().collect();
    while let Some(edge) = edges.pop() {
        ops.extend([edge.from, edge.to]);
        ops.extend(edge.list);
        if let Relates::Wr { read } | Relates::Rw { read } = edge.relation {
            ops.push(read);
        }
        edges.extend(&edge.because);
    }
    if let TransactionCertificate::BadRead { read, other, .. } = certificate {
        ops.push(*read);
        ops.extend(*other);
    }
    let ops: FxHashSet<u32> = ops.into_iter().map(|op| op.0).collect();
    let mut keep = vec![false; history.len()];
    for transaction in history.all_transactions() {
        if transaction.ops.clone().any(|op| ops.contains(&op)) {
            transaction.ops.for_each(|op| keep[op as usize] = true);
        }
    }
    keep
}

/// Builds the part of a history with the marked operations; removes reads whose sources are
/// missing, unless bad reads are to be kept.
fn part(history: &History, keep: &[bool], bad_reads: BadReads) -> History {
    let mut keep = keep.to_vec();
    loop {
        let part = project(history, &keep);
        if bad_reads == BadReads::Kept {
            return part;
        }
        let Ok(tx) = Transactions::new(&part) else { return part };
        if tx.bad_reads().is_empty() {
            return part;
        }
        let bad: FxHashSet<u32> = tx.bad_reads().iter().map(|bad| bad.read.0).collect();
        // The operations of the part are the kept ones, in the same order.
        let mut removed = false;
        for (kept, at) in keep.iter_mut().filter(|kept| **kept).zip(0u32..) {
            if bad.contains(&at) {
                *kept = false;
                removed = true;
            }
        }
        if !removed {
            return part;
        }
    }
}

/// Builds the history of the marked operations; lists lose the elements whose appends are not marked.
fn project(history: &History, keep: &[bool]) -> History {
    let mut dropped: FxHashSet<(KeyId, &Value)> = FxHashSet::default();
    for op in history.ops().filter(|op| !keep[op.index()]) {
        if let Action::Append { key, value } = history.action(op) {
            dropped.insert((key, history.value(value)));
        }
    }
    let mut b = HistoryBuilder::new();
    if let Some(name) = history.name() {
        b.set_name(name);
    }
    for transaction in history.all_transactions() {
        let mut ops = transaction.ops.clone().map(OpId).filter(|op| keep[op.index()]).peekable();
        let Some(&first) = ops.peek() else { continue };
        let session = b.session(history.session_name(history.session_of(first)));
        let is_bracketed = history.transaction_of(first).is_some();
        let open = is_bracketed.then(|| {
            let open = b.begin_transaction();
            b.set_transaction_status(open, transaction.status);
            open
        });
        for op in ops {
            let action = copy(history, op, &dropped, &mut b);
            let status: Status = history.own_status(op);
            let details = Details { status, time: history.time(op), transaction: open };
            b.push_with(session, action, details);
        }
    }
    b.finish().expect("a part of a history is a history")
}

fn copy(
    history: &History,
    op: OpId,
    dropped: &FxHashSet<(KeyId, &Value)>,
    b: &mut HistoryBuilder,
) -> Action {
    let key_of = |key: KeyId, b: &mut HistoryBuilder| {
        let copied = b.key(history.key_name(key));
        let initial = b.value(history.value(history.initial_value(key)).clone());
        b.set_initial(copied, initial);
        copied
    };
    match history.action(op) {
        Action::Read { key, value } => {
            let mut value = history.value(value).clone();
            if history.key_kind(key) == KeyKind::List
                && let Value::List(elements) = &mut value
            {
                elements.retain(|element| !dropped.contains(&(key, element)));
            }
            Action::Read { key: key_of(key, b), value: b.value(value) }
        }
        Action::Write { key, value } => {
            let value = history.value(value).clone();
            Action::Write { key: key_of(key, b), value: b.value(value) }
        }
        Action::Rmw { key, read, write } => {
            let (read, write) = (history.value(read).clone(), history.value(write).clone());
            Action::Rmw { key: key_of(key, b), read: b.value(read), write: b.value(write) }
        }
        Action::Append { key, value } => {
            let value = history.value(value).clone();
            Action::Append { key: key_of(key, b), value: b.value(value) }
        }
        Action::Fence => Action::Fence,
        Action::Call(_) => Action::Fence,
    }
}
