//! Start states that hold different initial values of one block.
//!
//! A block has one initial value in a run. A start state may put two different values into
//! locations of one block, for example into its memory and into a cache. Then a run that loads both
//! values is not sequentially consistent, but a run that loads only one of them may be. Therefore
//! the block's initial value is left open until one of them is loaded; from then on a load of
//! another one is a violation. This is exact, and increases the number of states only for such
//! start states.

use crate::tracking::{Effect, Operation, Renaming, Source};

/// Number of bytes of a number.
const BYTES: usize = size_of::<u32>();

/// The initial value that each location holds, and the one that was loaded from each block.
///
/// A number is that of [`Source::Initial`] plus one; 0 denotes none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct InitialValues {
    held: Vec<u32>,
    of_block: Vec<u32>,
    /// Buffer for the next values of `held`.
    next: Vec<u32>,
}

impl InitialValues {
    /// Builds the state before a start state.
    pub(super) fn new(locations: usize, blocks: usize) -> Self {
        InitialValues { held: vec![0; locations], of_block: vec![0; blocks], next: Vec::new() }
    }

    /// Follows an effect; fails with a block if two of its initial values were loaded.
    pub(super) fn step(&mut self, effect: &Effect) -> Result<(), u32> {
        let InitialValues { held, of_block, next } = self;
        let value = |source: Source| match source {
            Source::Location(at) => held[at as usize],
            Source::Initial { value } => value + 1,
            Source::Store(_) | Source::Nothing => 0,
        };
        for operation in &effect.operations {
            let Operation::Load { block, from, .. } = *operation else { continue };
            let (loaded, known) = (value(from), &mut of_block[block as usize]);
            match (*known, loaded) {
                (_, 0) => {}
                (0, loaded) => *known = loaded,
                (known, loaded) if known == loaded => {}
                _ => return Err(block),
            }
        }
        next.clear();
        next.extend(effect.sources.iter().map(|&source| value(source)));
        std::mem::swap(held, next);
        Ok(())
    }

    /// Counts the bytes that [`encode`](Self::encode) writes.
    pub(super) fn width(&self) -> usize {
        (self.held.len() + self.of_block.len()) * BYTES
    }

    /// Writes the numbers, renumbered in the order of their occurrence. Writes nothing if fewer
    /// than two remain, because then no load can contradict another one.
    pub(super) fn encode(&self, bytes: &mut [u8]) {
        let numbers = || self.held.iter().chain(&self.of_block).copied();
        let mut known: Vec<u32> = Vec::new();
        for number in numbers().filter(|&number| number != 0) {
            if !known.contains(&number) {
                known.push(number);
            }
        }
        if known.len() < 2 {
            return bytes.fill(0);
        }
        for (number, out) in numbers().zip(bytes.chunks_exact_mut(BYTES)) {
            let place = known.iter().position(|&other| other == number);
            let name = place.map_or(0, |place| place as u32 + 1);
            out.copy_from_slice(&name.to_le_bytes());
        }
    }

    /// Reads the bytes that [`encode`](Self::encode) wrote.
    pub(super) fn decode(&mut self, bytes: &[u8]) {
        let numbers = self.held.iter_mut().chain(&mut self.of_block);
        for (number, bytes) in numbers.zip(bytes.chunks_exact(BYTES)) {
            *number = u32::from_le_bytes(bytes.try_into().expect("a chunk of this length"));
        }
    }

    /// Writes the state with renamed blocks and locations.
    pub(super) fn rename_into(&self, renaming: &Renaming, renamed: &mut InitialValues) {
        for (&number, &to) in self.held.iter().zip(&renaming.locations) {
            renamed.held[to as usize] = number;
        }
        for (&number, &to) in self.of_block.iter().zip(&renaming.blocks) {
            renamed.of_block[to as usize] = number;
        }
    }
}

/// Checks whether the effect of a start state leaves the initial value of a block open: two
/// locations hold different values, and both may belong to one block.
///
/// `homes` contains the block whose initial value each location holds, where it is known.
pub(crate) fn is_ambiguous(effect: &Effect, homes: &[Option<u32>]) -> bool {
    let held = || {
        effect.sources.iter().zip(homes).filter_map(|(source, home)| match source {
            Source::Initial { value } => Some((*value, *home)),
            _ => None,
        })
    };
    let Some((first, _)) = held().find(|(_, home)| home.is_none()).or_else(|| held().next()) else {
        return false;
    };
    // If one location may belong to any block, every other one must agree with it.
    if held().any(|(_, home)| home.is_none()) {
        return held().any(|(value, _)| value != first);
    }
    let mut of_block: Vec<Option<u32>> = Vec::new();
    held().any(|(value, home)| {
        let block = home.map_or(0, |block| block as usize);
        if of_block.len() <= block {
            of_block.resize(block + 1, None);
        }
        *of_block[block].get_or_insert(value) != value
    })
}
