//! What a definition leaves open: `wr`, and the store order `ww` if it has one.
//!
//! A certificate chooses all of it, for a consistent history, or assumes a part of it in each case
//! of a violation. A *completion* of a part chooses the rest: what every open read reads from, and
//! an order of all writes of each key that count. It is a store order if the initial write is first
//! and the last write has the key's final value, if the history gives one.

use consistory_history::{Action, History, KeyId, OpId};

use super::pairs::Pairs;
use crate::reads_from::{Candidates, ReadsFrom};

/// Choices of `wr` and `ww`, all of them or a part.
pub(super) struct Choice {
    /// Number of operations, initial writes among them.
    pub(super) size: usize,
    /// The operations that count, in the order of their ids.
    pub(super) counting: Vec<usize>,
    /// Whether no completion has more operations that count.
    pub(super) is_closed: bool,
    pub(super) wr: Pairs,
    /// Whether every completion has this `wr`.
    pub(super) has_all_wr: bool,
    /// Transitive.
    pub(super) ww: Pairs,
    /// Whether every completion has this `ww` between the operations that count.
    pub(super) has_all_ww: bool,
}

impl Choice {
    /// Chooses what each read is known to read from, and pairs of the store order and what follows
    /// from them.
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

/// Returns whether two operations are of one session; an initial write is of none.
pub(super) fn same_session(history: &History, a: OpId, b: OpId) -> bool {
    !history.is_initial(a)
        && !history.is_initial(b)
        && history.session_of(a) == history.session_of(b)
}

/// Returns whether `po` orders two operations.
pub(super) fn po(history: &History, a: OpId, b: OpId) -> bool {
    !history.is_initial(b) && (history.is_initial(a) || (same_session(history, a, b) && a < b))
}
