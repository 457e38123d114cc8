//! Final values: the values that a history records for its keys at the end.
//!
//! Final values constrain the store order: the last write of the key must have that value. If only
//! one write has it, all others come before that write; if several have it, no other write may come
//! after all of them.

use consistory_history::{KeyId, ValueId};

use crate::register::Register;
use consistory_order::Matrix;

/// Constraints of the final values on the store order.
pub(crate) struct Finals {
    /// Keys with a final value, each with the writes that may be last.
    candidates: Vec<(usize, Vec<usize>)>,
    /// Pairs that follow if there is only one candidate.
    pub(crate) before: Vec<(usize, usize)>,
    /// Whether some final value was never written.
    pub(crate) is_impossible: bool,
}

/// Pattern of violations of the final values.
pub(crate) const FINAL_VALUE: &str = "FinalValue";

impl Finals {
    pub(crate) fn new(register: &Register<'_>, is_wanted: bool) -> Self {
        let mut finals =
            Finals { candidates: Vec::new(), before: Vec::new(), is_impossible: false };
        let mut values: Vec<(KeyId, ValueId)> = register.history.finals().to_vec();
        values.sort_by_key(|&(key, value)| (key.0, value.0));
        values.dedup();
        for (i, &(key, value)) in values.iter().enumerate().filter(|_| is_wanted) {
            if i > 0 && values[i - 1].0 == key {
                finals.is_impossible = true;
                continue;
            }
            let writes = &register.writes[key.index()];
            let has_value = |write: usize| {
                let op = register.op(write);
                register.history.is_initial(op) && register.history.initial_value(key) == value
                    || !register.history.is_initial(op)
                        && register.history.writes(op) == Some((key, value))
            };
            let candidates: Vec<usize> = writes.iter().copied().filter(|&w| has_value(w)).collect();
            match candidates[..] {
                [] => finals.is_impossible = true,
                [last] if last != writes[0] => {
                    let others = writes[1..].iter().filter(|&&write| write != last);
                    finals.before.extend(others.map(|&write| (write, last)));
                }
                _ => {}
            }
            finals.candidates.push((key.index(), candidates));
        }
        finals
    }

    /// Finds a write that comes after all candidates for the last write.
    pub(crate) fn fault(&self, register: &Register<'_>, ww: &Matrix) -> Option<(&[usize], usize)> {
        self.candidates.iter().find_map(|(key, candidates)| {
            let is_after = |write: usize| candidates.iter().all(|&last| ww.contains(last, write));
            let write = register.writes[*key].iter().copied().find(|&write| is_after(write))?;
            Some((candidates.as_slice(), write))
        })
    }
}
