//! From a run to the history of its trace.
//!
//! The protocol does not look at data, so a run with these effects exists with any values. Each
//! store of the history has a value of its own: that is the run that is hardest to explain, and
//! `wr` follows from the values.

use consistory_history::{
    Action, History, HistoryBuilder, HistoryError, KeyId, SessionId, ValueId,
};

use crate::tracking::{Effect, Operation, Source};

/// The names of a history's sessions and keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceNames {
    /// What the processors are called.
    pub procs: Vec<String>,
    /// What the blocks are called.
    pub blocks: Vec<String>,
}

/// Makes the history of a run: the effect of its start state, then that of each rule.
///
/// Stores have the values 1, 2 and so on; a load of an initial value finds 0, and a load from a
/// location that holds nothing finds -1, which nobody stores.
pub fn history<'a>(
    names: &TraceNames,
    effects: impl IntoIterator<Item = &'a Effect>,
) -> Result<History, HistoryError> {
    let mut builder = HistoryBuilder::new();
    let sessions: Vec<SessionId> = names.procs.iter().map(|name| builder.session(name)).collect();
    let keys: Vec<KeyId> = names.blocks.iter().map(|name| builder.key(name)).collect();
    let (nothing, initial) = (builder.int(-1), builder.int(0));
    let mut contents: Vec<ValueId> = Vec::new();
    let mut stores = 0;
    for effect in effects {
        let mut performed: Vec<ValueId> = Vec::new();
        let value = |source: Source, performed: &[ValueId]| match source {
            Source::Location(at) => contents.get(at as usize).copied().unwrap_or(nothing),
            Source::Store(at) => performed[at as usize],
            Source::Initial => initial,
            Source::Nothing => nothing,
        };
        for &operation in &effect.operations {
            let mut done = nothing;
            match operation {
                Operation::Load { proc, block, from } => {
                    let (key, value) = (keys[block as usize], value(from, &performed));
                    builder.push(sessions[proc as usize], Action::Read { key, value });
                }
                Operation::Store { proc, block } => {
                    stores += 1;
                    done = builder.int(stores);
                    let key = keys[block as usize];
                    builder.push(sessions[proc as usize], Action::Write { key, value: done });
                }
                Operation::Serialize { .. } => {}
            }
            performed.push(done);
        }
        contents = effect.sources.iter().map(|&source| value(source, &performed)).collect();
    }
    builder.finish()
}
