//! Final values: which write of a key must be the last.
//!
//! A final value binds the store order, as a read after everything would: the last write of the key
//! has that value. Where one write has it, all others of the key come before that one, which goes
//! into the saturated order like any forced pair. Where several have it, the search over choices
//! ([`crate::choices`]) also chooses the last one. Where none has it, or a write of the key may not
//! have happened, the history is left to the reference evaluator.

use consistory_history::{History, KeyId, OpId};

/// The last writes of keys with a final value.
#[derive(Clone, Default, Debug)]
pub(crate) struct Finals {
    /// Those of the keys of which one write has the final value.
    pub(crate) clear: Vec<OpId>,
    /// The other keys, each with the writes that may be the last.
    pub(crate) open: Vec<(KeyId, Vec<OpId>)>,
}

impl Finals {
    /// Finds them, unless no write has a final value, or a write of such a key is uncertain.
    pub(crate) fn of(history: &History) -> Option<Self> {
        let mut finals = Finals::default();
        if history.finals().is_empty() {
            return Some(finals);
        }
        let mut wanted = vec![None; history.key_count()];
        for &(key, value) in history.finals() {
            if wanted[key.index()].replace(value).is_some_and(|known| known != value) {
                return None;
            }
        }
        let mut is_written = vec![false; history.key_count()];
        let mut last: Vec<Vec<OpId>> = vec![Vec::new(); history.key_count()];
        for op in history.ops() {
            let Some((key, value)) = history.writes(op) else { continue };
            let Some(wanted) = wanted[key.index()] else { continue };
            if !history.is_certain(op) {
                return None;
            }
            is_written[key.index()] = true;
            if value == wanted {
                last[key.index()].push(op);
            }
        }
        for (key, last) in history.keys().zip(last) {
            let Some(value) = wanted[key.index()] else { continue };
            let is_initial = history.initial_value(key) == value;
            match last[..] {
                [] if is_initial && !is_written[key.index()] => {}
                [] => return None,
                // The checker would have to be told that the initial write is not the last.
                [only] if !is_initial => finals.clear.push(only),
                _ => finals.open.push((key, last)),
            }
        }
        Some(finals)
    }
}

/// Says whether each final value is what one write wrote.
pub(crate) fn are_clear(history: &History) -> bool {
    Finals::of(history).is_some_and(|finals| finals.open.is_empty())
}
