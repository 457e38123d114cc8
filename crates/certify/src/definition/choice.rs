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
    /// How many operations there are, initial writes among them.
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

/// Gives the key of an operation.
pub(super) fn key(history: &History, op: OpId) -> Option<KeyId> {
    match history.action(op) {
        Action::Read { key, .. } | Action::Write { key, .. } | Action::Rmw { key, .. } => Some(key),
        Action::Fence | Action::Call(_) => None,
    }
}

/// Says whether two operations are of one session; an initial write is of none.
pub(super) fn same_session(history: &History, a: OpId, b: OpId) -> bool {
    !history.is_initial(a)
        && !history.is_initial(b)
        && history.session_of(a) == history.session_of(b)
}

/// Says whether `po` orders two operations.
pub(super) fn po(history: &History, a: OpId, b: OpId) -> bool {
    !history.is_initial(b) && (history.is_initial(a) || (same_session(history, a, b) && a < b))
}

/// What the history's final values demand of the last write of each key.
pub(crate) struct Finals {
    /// The keys with a final value, each with the writes of it: one of these is last.
    pub(crate) last: Vec<(KeyId, Vec<OpId>)>,
    /// That the others come before the write of a final value, where there is but one.
    pub(crate) before: Vec<(OpId, OpId)>,
}

impl Finals {
    /// Expects a history in which all writes of keys with final values are certain.
    pub(crate) fn new(history: &History) -> Self {
        let mut finals = Finals { last: Vec::new(), before: Vec::new() };
        let mut values = history.finals().to_vec();
        values.sort_by_key(|&(key, value)| (key, value));
        values.dedup();
        if values.is_empty() {
            return finals;
        }
        let mut writes: Vec<Vec<OpId>> = vec![Vec::new(); history.key_count()];
        for op in history.ops() {
            if let Some((key, _)) = history.writes(op) {
                writes[key.index()].push(op);
            }
        }
        for of_key in values.chunk_by(|a, b| a.0 == b.0) {
            let key = of_key[0].0;
            let has_value =
                |&write: &OpId| of_key.iter().all(|&value| history.writes(write) == Some(value));
            let (mut last, others): (Vec<OpId>, Vec<OpId>) =
                writes[key.index()].iter().partition(|write| has_value(write));
            last.extend(Some(history.initial_write(key)).filter(has_value));
            if let [only] = last[..]
                && !history.is_initial(only)
            {
                finals.before.extend(others.into_iter().map(|other| (other, only)));
            }
            finals.last.push((key, last));
        }
        finals
    }

    /// Says whether nothing wrote some final value.
    pub(super) fn are_impossible(&self) -> bool {
        self.last.iter().any(|(_, last)| last.is_empty())
    }
}
