//! Conversion of a run to the history of its trace.
//!
//! The protocol does not read data, so there is a run with these effects for any choice of values.
//! In the history each store has a unique value: this is the run that is hardest to explain, and
//! the values determine `wr`.

use consistory_history::{Action, History, HistoryBuilder, HistoryError, KeyId, SessionId};

use crate::tracking::{Effect, Operation, Source};

/// The names of a history's sessions and keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceNames {
    /// Names of the processors.
    pub procs: Vec<String>,
    /// Names of the blocks.
    pub blocks: Vec<String>,
}

/// Builds the history of a run: the effect of its start state, then that of each rule.
///
/// Only processors and blocks that an operation names have a session or a key. Stores have the
/// values 1, 2 and so on. A load of an initial value returns 0; if the start state holds several
/// initial values, the others are -2, -3 and so on, and the first one that is loaded from a block
/// is the block's initial value. A load of an undefined location returns -1, which is never stored.
/// A load from a location that `clear` has set is omitted from the history: its value is a constant
/// of the protocol, which may equal that of a store or an initial one, and nothing can be said
/// about it without values.
pub fn history<'a>(
    names: &TraceNames,
    effects: impl IntoIterator<Item = &'a Effect>,
) -> Result<History, HistoryError> {
    let effects: Vec<&Effect> = effects.into_iter().collect();
    let mut is_used = (vec![false; names.procs.len()], vec![false; names.blocks.len()]);
    for operation in effects.iter().flat_map(|effect| &effect.operations) {
        if let Operation::Load { proc, block, .. } | Operation::Store { proc, block } = *operation {
            is_used.0[proc as usize] = true;
            is_used.1[block as usize] = true;
        }
    }
    let mut builder = HistoryBuilder::new();
    let procs = names.procs.iter().zip(is_used.0);
    let sessions: Vec<Option<SessionId>> =
        procs.map(|(name, is_used)| is_used.then(|| builder.session(name))).collect();
    let blocks = names.blocks.iter().zip(is_used.1);
    let keys: Vec<Option<KeyId>> =
        blocks.map(|(name, is_used)| is_used.then(|| builder.key(name))).collect();
    let session = |proc: u32| sessions[proc as usize].expect("it performs an operation");
    let key = |block: u32| keys[block as usize].expect("an operation is on it");
    let mut values = Values::default();
    let mut is_known = vec![false; names.blocks.len()];
    for effect in effects {
        values.step(effect, &mut |operation, number| {
            let value = builder.int(number);
            match operation {
                Operation::Load { from: Source::Location(_), .. } if number == -1 => {}
                Operation::Load { proc, block, .. } => {
                    let is_initial = number == 0 || number < -1;
                    let is_first =
                        is_initial && !std::mem::replace(&mut is_known[block as usize], true);
                    if is_first && number != 0 {
                        builder.set_initial(key(block), value);
                    }
                    builder.push(session(proc), Action::Read { key: key(block), value });
                }
                Operation::Store { proc, block } => {
                    builder.push(session(proc), Action::Write { key: key(block), value });
                }
                Operation::Serialize { .. } => {}
            }
        });
    }
    builder.finish()
}

/// Values of a run in which each store has a unique value.
#[derive(Default)]
pub(crate) struct Values {
    /// Contents of each location: the number of a store; 0, or a number below -1, for an initial
    /// value; -1 if there is none.
    pub(crate) contents: Vec<i64>,
    stores: i64,
}

impl Values {
    /// Follows an effect; `visit` receives its operations with their values.
    pub(crate) fn step(&mut self, effect: &Effect, visit: &mut dyn FnMut(Operation, i64)) {
        let mut performed: Vec<i64> = Vec::new();
        let value = |source: Source, performed: &[i64]| match source {
            Source::Location(at) => self.contents.get(at as usize).copied().unwrap_or(-1),
            Source::Store(at) => performed[at as usize],
            Source::Initial { value: 0 } => 0,
            Source::Initial { value } => -1 - i64::from(value),
            Source::Nothing => -1,
        };
        for &operation in &effect.operations {
            let done = match operation {
                Operation::Load { from, .. } | Operation::Serialize { from, .. } => {
                    value(from, &performed)
                }
                Operation::Store { .. } => {
                    self.stores += 1;
                    self.stores
                }
            };
            visit(operation, done);
            performed.push(done);
        }
        self.contents = effect.sources.iter().map(|&source| value(source, &performed)).collect();
    }
}
