//! Final values: which write of a key must be the last.
//!
//! A final value binds the store order, as a read after everything would: the last write of the key
//! has that value. Where one write has it, all others of the key come before that one, which goes
//! into the saturated order like any forced pair. Where several have it, the search over choices
//! ([`crate::repeated_values::choices`]) also chooses the last one, and a refutation has a case for each. Where none
//! has it, that is the refutation. The initial write is the first, so it is the last one only where
//! there is no other.
//!
//! All writes of keys with final values are certain; the models do not apply to other histories.

use consistory_history::{History, KeyId, OpId};

/// The last writes of keys with a final value.
#[derive(Clone, Default, Debug)]
pub(crate) struct Finals {
    /// Those of the keys of which one write has the final value.
    pub(crate) clear: Vec<OpId>,
    /// The keys of which several have it, each with these.
    pub(crate) open: Vec<(KeyId, Vec<OpId>)>,
    /// A key of which none has it.
    pub(crate) impossible: Option<KeyId>,
}

impl Finals {
    /// Finds them.
    pub(crate) fn of(history: &History) -> Self {
        let mut finals = Finals::default();
        if history.finals().is_empty() {
            return finals;
        }
        let mut wanted = vec![None; history.key_count()];
        for &(key, value) in history.finals() {
            if wanted[key.index()].replace(value).is_some_and(|known| known != value) {
                finals.impossible = Some(key);
                return finals;
            }
        }
        let mut is_written = vec![false; history.key_count()];
        let mut last: Vec<Vec<OpId>> = vec![Vec::new(); history.key_count()];
        for op in history.ops() {
            let Some((key, value)) = history.writes(op) else { continue };
            is_written[key.index()] = true;
            if wanted[key.index()] == Some(value) {
                last[key.index()].push(op);
            }
        }
        for (key, last) in history.keys().zip(last) {
            let Some(value) = wanted[key.index()] else { continue };
            match last[..] {
                [] if history.initial_value(key) == value && !is_written[key.index()] => {}
                [] => finals.impossible = finals.impossible.or(Some(key)),
                [only] => finals.clear.push(only),
                _ => finals.open.push((key, last)),
            }
        }
        finals
    }
}
