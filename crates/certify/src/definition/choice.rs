//! The choices that a definition leaves open: `wr`, and the store order `ww` if it has one.
//!
//! For a consistent history, a certificate makes all these choices; in each case of a violation, it
//! assumes some of them. A *completion* of a partial choice makes the remaining ones: the source of
//! every open read, and an order of all writes of each key that count. The order is a store order
//! if the initial write is first and the last write has the key's final value, if the history gives
//! one.

use consistory_history::{Action, History, KeyId, OpId};

use super::pairs::Pairs;
use crate::reads_from::{Candidates, ReadsFrom};

/// A complete or partial choice of `wr` and `ww`.
pub(super) struct Choice {
    /// Number of operations, including initial writes.
    pub(super) size: usize,
    /// Operations that count, in the order of their ids.
    pub(super) counting: Vec<usize>,
    /// Whether no completion has more operations that count.
    pub(super) is_closed: bool,
    pub(super) wr: Pairs,
    /// Whether every completion has this `wr`.
    pub(super) has_all_wr: bool,
    /// Edges of the store order, transitively closed.
    pub(super) ww: Pairs,
    /// Whether every completion has this `ww` between the operations that count.
    pub(super) has_all_ww: bool,
}

impl Choice {
    /// Builds the choice of every known source of a read, and of the given pairs of the store order
    /// with their transitive closure.
    pub(super) fn new(
        candidates: &Candidates<'_>,
        reads_from: &ReadsFrom<'_>,
        before: impl Iterator<Item = (OpId, OpId)>,
    ) -> Self {
        let history = candidates.history;
        let size = history.len() + history.key_count();
        let counts = |&at: &usize| reads_from.counts(OpId::new(at));
        let counting: Vec<usize> = (0..size).filter(counts).collect();
        let (mut wr, mut has_all_wr, mut is_closed) = (Pairs::none(size), true, true);
        for read in history.ops().filter(|&op| history.reads(op).is_some()) {
            match reads_from.source(read) {
                Some(write) => wr.insert(write.index(), read.index()),
                None => {
                    has_all_wr = false;
                    is_closed &= candidates.of(read).all(|write| reads_from.counts(write));
                }
            }
        }
        let mut ww = Pairs::none(size);
        for (first, second) in before {
            ww.insert(first.index(), second.index());
        }
        let ww = ww.chains();
        let has_all_ww = counting.iter().enumerate().all(|(i, &a)| {
            let key = reads_from.writes(OpId::new(a));
            counting[..i].iter().all(|&b| {
                key.is_none()
                    || key != reads_from.writes(OpId::new(b))
                    || ww.contains(a, b)
                    || ww.contains(b, a)
            })
        });
        Choice { size, counting, is_closed, wr, has_all_wr, ww, has_all_ww }
    }
}

/// Returns the key of an operation.
pub(super) fn key(history: &History, op: OpId) -> Option<KeyId> {
    match history.action(op) {
        Action::Read { key, .. } | Action::Write { key, .. } | Action::Rmw { key, .. } => Some(key),
        Action::Append { .. } | Action::Fence | Action::Call(_) => None,
    }
}

/// Returns whether two operations belong to the same session; an initial write belongs to none.
pub(super) fn same_session(history: &History, a: OpId, b: OpId) -> bool {
    !history.is_initial(a)
        && !history.is_initial(b)
        && history.session_of(a) == history.session_of(b)
}

/// Returns whether `po` orders two operations.
pub(super) fn po(history: &History, a: OpId, b: OpId) -> bool {
    !history.is_initial(b) && (history.is_initial(a) || (same_session(history, a, b) && a < b))
}
