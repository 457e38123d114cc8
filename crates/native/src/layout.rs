//! Memory layout and timing of a batch of runs, chosen anew for each batch.

use std::sync::atomic::AtomicI64;

use consistory_random::QuickRandom;

/// Words in a cache line.
const LINE: usize = 8;

/// Chooses one of `choices`.
fn pick<T: Copy>(random: &mut QuickRandom, choices: &[T]) -> T {
    choices[random.below(choices.len())]
}

/// The timing of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Pace {
    /// The threads wait for each other before every run whose number is a multiple of the period.
    pub(crate) period: usize,
    /// Bound of the number of turns of an empty loop for which each thread then idles.
    pub(crate) skew: usize,
    /// Number of times that a waiting thread polls before it yields.
    pub(crate) patience: u32,
}

impl Pace {
    /// Chooses a pace. `crowded`: there are more threads than cores, so waiting is expensive.
    pub(crate) fn choose(random: &mut QuickRandom, crowded: bool) -> Pace {
        let periods: &[usize] = if crowded { &[8, 64, 512] } else { &[1, 1, 1, 8, 64] };
        let patience = if crowded { 4 } else { 200 };
        Pace { period: pick(random, periods), skew: pick(random, &[1, 8, 32, 100]), patience }
    }
}

/// The layout of a batch's cells in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Layout {
    /// One cache line per cell; the cells of a run are adjacent.
    Lines,
    /// The cells of a run share cache lines.
    Shared,
    /// One cache line per cell; the cells of a location are adjacent.
    Apart,
    /// The cells of a location are adjacent, with several runs per cache line.
    Dense,
}

/// Returns the largest number of words that a batch can need.
pub(crate) fn words(runs: usize, locations: usize) -> usize {
    // One additional line, so that the first cell can be aligned.
    runs * locations.max(1) * LINE + LINE
}

/// Chooses cells for each run of a batch: entry `run * locations + location` is the cell of that
/// location in that run.
pub(crate) fn place<'a>(
    memory: &'a [AtomicI64],
    runs: usize,
    locations: usize,
    random: &mut QuickRandom,
    cells: &mut Vec<&'a AtomicI64>,
) {
    let layout = pick(random, &[Layout::Lines, Layout::Shared, Layout::Apart, Layout::Dense]);
    let start = memory.as_ptr().align_offset(LINE * size_of::<AtomicI64>()).min(LINE);
    let offsets: Vec<usize> = (0..locations).map(|_| random.below(LINE)).collect();
    let mut order: Vec<usize> = (0..runs).collect();
    if random.below(2) == 0 {
        for at in (1..runs).rev() {
            order.swap(at, random.below(at + 1));
        }
    }
    let lines_a_run = locations.div_ceil(LINE);
    cells.clear();
    for run in order {
        for (location, offset) in offsets.iter().enumerate() {
            let word = match layout {
                Layout::Lines => (run * locations + location) * LINE + offset,
                Layout::Shared => run * lines_a_run * LINE + location,
                Layout::Apart => (location * runs + run) * LINE + offset,
                Layout::Dense => location * runs.next_multiple_of(LINE) + run,
            };
            cells.push(&memory[start + word]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::ptr::from_ref;

    use super::*;

    #[test]
    fn every_cell_is_its_own() {
        for locations in 1..=9 {
            for runs in [1, 7, 64] {
                let memory: Vec<AtomicI64> =
                    (0..words(runs, locations)).map(|_| AtomicI64::new(0)).collect();
                for seed in 0..40 {
                    let mut cells = Vec::new();
                    place(&memory, runs, locations, &mut QuickRandom::new(seed), &mut cells);
                    let all: HashSet<_> = cells.iter().map(|cell| from_ref(*cell)).collect();
                    assert_eq!(all.len(), runs * locations, "seed {seed}");
                }
            }
        }
    }
}
