//! Where the cells of a batch are, and how its threads start: chosen anew for each batch.

use std::sync::atomic::AtomicI64;

/// Words in a cache line.
const LINE: usize = 8;

/// A xorshift generator: it has to be quick, not good.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // One step of splitmix64, so that neighbouring seeds give unrelated sequences.
        let mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Random((mixed ^ mixed >> 27) | 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) as usize) % bound.max(1)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// How a batch is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Pace {
    /// The threads wait for each other before every run whose number is a multiple of this.
    pub(crate) period: usize,
    /// Each thread then idles for less than this many turns of an empty loop.
    pub(crate) skew: usize,
    /// How often a thread looks for the others before it gives way.
    pub(crate) patience: u32,
}

impl Pace {
    /// Chooses a pace; `crowded` if there are more threads than cores, where waiting is dear.
    pub(crate) fn choose(random: &mut Random, crowded: bool) -> Pace {
        let periods: &[usize] = if crowded { &[8, 64, 512] } else { &[1, 1, 1, 8, 64] };
        let patience = if crowded { 4 } else { 200 };
        Pace { period: random.pick(periods), skew: random.pick(&[1, 8, 32, 100]), patience }
    }
}

/// How the cells of a batch lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Layout {
    /// A line for each cell, the cells of a run beside each other.
    Lines,
    /// The cells of a run share lines.
    Shared,
    /// A line for each cell, the cells of a location beside each other.
    Apart,
    /// The cells of a location beside each other, several runs a line.
    Dense,
}

/// How many words of memory a batch can need.
pub(crate) fn words(runs: usize, locations: usize) -> usize {
    // One line more, so that the first can be aligned.
    runs * locations.max(1) * LINE + LINE
}

/// Chooses cells for each run of a batch: entry `run * locations + location` is the cell of that
/// location in that run.
pub(crate) fn place<'a>(
    memory: &'a [AtomicI64],
    runs: usize,
    locations: usize,
    random: &mut Random,
    cells: &mut Vec<&'a AtomicI64>,
) {
    let layout = random.pick(&[Layout::Lines, Layout::Shared, Layout::Apart, Layout::Dense]);
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
                    place(&memory, runs, locations, &mut Random::new(seed), &mut cells);
                    let all: HashSet<_> = cells.iter().map(|cell| from_ref(*cell)).collect();
                    assert_eq!(all.len(), runs * locations, "seed {seed}");
                }
            }
        }
    }
}
