//! Final values: which write of a key must be the last.
//!
//! A final value constrains the store order like a read after all operations: the last write of the
//! key has that value. If only one write has the value, all others of the key come before that
//! write, and these pairs enter the saturated order like forced pairs. If several writes have it,
//! the search over choices ([`crate::repeated_values::choices`]) also chooses the last one, and a
//! refutation has a case for each. If no write has it, the history is refuted. The initial write is
//! the first of its key, so it is the last only if there is no other.
//!
//! The models apply only to histories in which no write of a key with a final value is
//! indeterminate.

use consistory_history::{History, KeyId, OpId};

/// The last writes of keys with a final value.
#[derive(Clone, Default, Debug)]
pub(crate) struct Finals {
    /// Last writes of the keys with one candidate.
    pub(crate) clear: Vec<OpId>,
    /// The keys with several candidates, each with these candidates.
    pub(crate) open: Vec<(KeyId, Vec<OpId>)>,
    /// A key without a candidate.
    pub(crate) impossible: Option<KeyId>,
}

impl Finals {
    /// Finds the candidates of every key with a final value.
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
