//! Final values: which writes may be the last of their keys.
//!
//! The last write of a key with a final value has that value. The initial write is first, so it is
//! the last one only if the key has no other write. This module applies to histories in which every
//! write of such a key is certain.

use consistory_history::{History, KeyId, OpId};

/// Constraints of the history's final values on the last write of each key.
pub(crate) struct Finals {
    /// Keys with a final value, each with the writes of that value, one of which is last.
    pub(crate) last: Vec<(KeyId, Vec<OpId>)>,
    /// The same keys and writes, without an initial write that another write follows.
    pub(crate) candidates: Vec<(KeyId, Vec<OpId>)>,
    /// Pairs of a write and the only possible last write of its key, if there is only one.
    pub(crate) before: Vec<(OpId, OpId)>,
}

impl Finals {
    /// Builds the constraints for a history in which all writes of keys with final values are
    /// certain.
    pub(crate) fn new(history: &History) -> Self {
        let mut finals = Finals { last: Vec::new(), candidates: Vec::new(), before: Vec::new() };
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
            let mut candidates = last.clone();
            if let Some(initial) = Some(history.initial_write(key)).filter(has_value) {
                last.push(initial);
                if writes[key.index()].is_empty() {
                    candidates.push(initial);
                }
            }
            if let [only] = candidates[..] {
                finals.before.extend(others.into_iter().map(|other| (other, only)));
            }
            finals.last.push((key, last));
            finals.candidates.push((key, candidates));
        }
        finals
    }

    /// Returns the writes that may be the last of a key, if it has a final value.
    pub(crate) fn candidates(&self, key: KeyId) -> Option<&[OpId]> {
        let at = self.candidates.binary_search_by_key(&key, |&(key, _)| key).ok()?;
        Some(&self.candidates[at].1)
    }

    /// Returns whether some final value was never written.
    pub(crate) fn are_impossible(&self) -> bool {
        self.last.iter().any(|(_, last)| last.is_empty())
    }
}
