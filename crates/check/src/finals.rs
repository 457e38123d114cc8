//! Final values: which write of a key must be the last.
//!
//! A final value binds the store order, as a read after everything would: the last write of the key
//! has that value. Where one write has it, all others of the key come before that one, which goes
//! into the saturated order like any forced pair. Where several have it, or none, or it is the
//! initial one, the history is left to the reference evaluator.

use consistory_history::{History, OpId};

/// Gives the last write of each key with a final value, if it is clear which one that is.
pub(crate) fn last_writes(history: &History) -> Option<Vec<OpId>> {
    let mut wanted = vec![None; history.key_count()];
    for &(key, value) in history.finals() {
        let slot = &mut wanted[key.index()];
        if slot.is_some_and(|known| known != value) || history.initial_value(key) == value {
            return None;
        }
        *slot = Some(value);
    }
    let mut last: Vec<Option<OpId>> = vec![None; history.key_count()];
    for op in history.ops() {
        let Some((key, value)) = history.writes(op) else { continue };
        let Some(wanted) = wanted[key.index()] else { continue };
        let is_another = value == wanted && last[key.index()].replace(op).is_some();
        if is_another || !history.is_certain(op) {
            return None;
        }
    }
    let keys = history.keys().filter(|key| wanted[key.index()].is_some());
    keys.map(|key| last[key.index()]).collect()
}

/// Says whether the deciders can take the final values of a history into account.
pub(crate) fn are_clear(history: &History) -> bool {
    history.finals().is_empty() || last_writes(history).is_some()
}
