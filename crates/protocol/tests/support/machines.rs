//! Small hand-written protocols: their possible steps and the effects on the locations.

use consistory_protocol::tracking::{Effect, Operation, Shape, Source};

use crate::support::Random;

/// A protocol that takes random steps.
pub(crate) trait Machine {
    fn shape(&self) -> Shape;
    /// Returns the effect of the start state.
    fn start(&self) -> Effect;
    /// Takes a random step, or returns `None` if the step that was drawn is not possible.
    fn step(&mut self, random: &mut Random) -> Option<Effect>;
}

/// Returns the effect that changes nothing.
pub(crate) fn unchanged(locations: u32) -> Effect {
    Effect { operations: Vec::new(), sources: (0..locations).map(Source::Location).collect() }
}

fn start(shape: Shape, initial: std::ops::Range<u32>) -> Effect {
    let source =
        |at| if initial.contains(&at) { Source::Initial { value: 0 } } else { Source::Nothing };
    Effect { operations: Vec::new(), sources: (0..shape.locations).map(source).collect() }
}

/// One memory that performs one operation at a time.
pub(crate) struct SerialMemory {
    pub(crate) procs: u32,
    pub(crate) blocks: u32,
}

impl Machine for SerialMemory {
    fn shape(&self) -> Shape {
        let SerialMemory { procs, blocks } = *self;
        Shape { procs, blocks, locations: blocks, serializes: false }
    }

    fn start(&self) -> Effect {
        start(self.shape(), 0..self.blocks)
    }

    fn step(&mut self, random: &mut Random) -> Option<Effect> {
        let mut effect = unchanged(self.blocks);
        let proc = random.below(self.procs as usize) as u32;
        let block = random.below(self.blocks as usize) as u32;
        if random.chance(1, 2) {
            effect.operations.push(Operation::Store { proc, block });
            effect.sources[block as usize] = Source::Store(0);
        } else {
            effect.operations.push(Operation::Load { proc, block, from: Source::Location(block) });
        }
        Some(effect)
    }
}

/// A bounded queue of blocks, whose values are in consecutive locations, the oldest first.
struct Queue {
    first: u32,
    capacity: usize,
    /// Block of each entry, and whether it is starred (own writes in lazy caching).
    entries: Vec<(u32, bool)>,
}

impl Queue {
    fn new(first: u32, capacity: usize) -> Self {
        Queue { first, capacity, entries: Vec::new() }
    }

    fn push(&mut self, effect: &mut Effect, entry: (u32, bool), source: Source) {
        effect.sources[self.first as usize + self.entries.len()] = source;
        self.entries.push(entry);
    }

    /// Removes the oldest entry; the others move up.
    fn pop(&mut self, effect: &mut Effect) -> (u32, bool) {
        let entry = self.entries.remove(0);
        for at in 0..self.entries.len() as u32 {
            effect.sources[(self.first + at) as usize] = Source::Location(self.first + at + 1);
        }
        effect.sources[self.first as usize + self.entries.len()] = Source::Nothing;
        entry
    }
}

/// Lazy caching (Afek, Brown and Merritt 1993): stores wait in an out-queue, updates in in-queues.
///
/// `patient` processors load only when none of their stores is waiting; others violate the
/// protocol.
pub(crate) struct LazyCaching {
    procs: u32,
    blocks: u32,
    capacity: usize,
    serializes: bool,
    patient: bool,
    cached: Vec<bool>,
    out: Vec<Queue>,
    incoming: Vec<Queue>,
}

impl LazyCaching {
    pub(crate) fn new(
        procs: u32,
        blocks: u32,
        capacity: usize,
        serializes: bool,
        patient: bool,
    ) -> Self {
        let queue = |at: u32| Queue::new(blocks + procs * blocks + at * capacity as u32, capacity);
        LazyCaching {
            procs,
            blocks,
            capacity,
            serializes,
            patient,
            cached: vec![true; (procs * blocks) as usize],
            out: (0..procs).map(queue).collect(),
            incoming: (procs..2 * procs).map(queue).collect(),
        }
    }

    fn cache(&self, proc: u32, block: u32) -> u32 {
        self.blocks + proc * self.blocks + block
    }
}

impl Machine for LazyCaching {
    fn shape(&self) -> Shape {
        let LazyCaching { procs, blocks, .. } = *self;
        let locations = blocks + procs * blocks + 2 * procs * self.capacity as u32;
        Shape { procs, blocks, locations, serializes: self.serializes }
    }

    fn start(&self) -> Effect {
        start(self.shape(), 0..self.blocks + self.procs * self.blocks)
    }

    fn step(&mut self, random: &mut Random) -> Option<Effect> {
        let mut effect = unchanged(self.shape().locations);
        let proc = random.below(self.procs as usize) as u32;
        let block = random.below(self.blocks as usize) as u32;
        let p = proc as usize;
        let cache = self.cache(proc, block);
        let cached = (proc * self.blocks + block) as usize;
        match random.below(6) {
            // A load, if no store of the same processor is on its way.
            0 | 1 => {
                let waits = !self.out[p].entries.is_empty()
                    || self.incoming[p].entries.iter().any(|&(_, own)| own);
                if !self.cached[cached] || (self.patient && waits) {
                    return None;
                }
                let from = Source::Location(cache);
                effect.operations.push(Operation::Load { proc, block, from });
            }
            // A store goes into the out-queue.
            2 => {
                if self.out[p].entries.len() == self.out[p].capacity {
                    return None;
                }
                effect.operations.push(Operation::Store { proc, block });
                self.out[p].push(&mut effect, (block, false), Source::Store(0));
            }
            // The oldest store of an out-queue goes to the memory and into every in-queue.
            3 => {
                let full = |queue: &Queue| queue.entries.len() == queue.capacity;
                if self.out[p].entries.is_empty() || self.incoming.iter().any(full) {
                    return None;
                }
                let from = Source::Location(self.out[p].first);
                let (block, _) = self.out[p].pop(&mut effect);
                effect.sources[block as usize] = from;
                for (q, queue) in (0..).zip(&mut self.incoming) {
                    queue.push(&mut effect, (block, q == proc), from);
                }
                if self.serializes {
                    effect.operations.push(Operation::Serialize { block, from });
                }
            }
            // The oldest update of an in-queue goes to the cache.
            4 => {
                if self.incoming[p].entries.is_empty() {
                    return None;
                }
                let from = Source::Location(self.incoming[p].first);
                let (block, _) = self.incoming[p].pop(&mut effect);
                effect.sources[self.cache(proc, block) as usize] = from;
                self.cached[(proc * self.blocks + block) as usize] = true;
            }
            // A cache drops a block, or requests it from the memory, which answers after the
            // updates.
            _ => {
                if self.cached[cached] {
                    self.cached[cached] = false;
                    effect.sources[cache as usize] = Source::Nothing;
                } else if self.incoming[p].entries.len() < self.incoming[p].capacity {
                    let source = Source::Location(block);
                    self.incoming[p].push(&mut effect, (block, false), source);
                } else {
                    return None;
                }
            }
        }
        Some(effect)
    }
}

/// A memory with one store buffer per processor, from which it forwards: TSO.
pub(crate) struct StoreBuffers {
    procs: u32,
    blocks: u32,
    serializes: bool,
    buffers: Vec<Queue>,
}

impl StoreBuffers {
    pub(crate) fn new(procs: u32, blocks: u32, capacity: usize, serializes: bool) -> Self {
        let queue = |at: u32| Queue::new(blocks + at * capacity as u32, capacity);
        StoreBuffers { procs, blocks, serializes, buffers: (0..procs).map(queue).collect() }
    }
}

impl Machine for StoreBuffers {
    fn shape(&self) -> Shape {
        let StoreBuffers { procs, blocks, serializes, .. } = *self;
        let capacity = self.buffers[0].capacity as u32;
        Shape { procs, blocks, locations: blocks + procs * capacity, serializes }
    }

    fn start(&self) -> Effect {
        start(self.shape(), 0..self.blocks)
    }

    fn step(&mut self, random: &mut Random) -> Option<Effect> {
        let mut effect = unchanged(self.shape().locations);
        let proc = random.below(self.procs as usize) as u32;
        let block = random.below(self.blocks as usize) as u32;
        let buffer = &mut self.buffers[proc as usize];
        match random.below(3) {
            0 => {
                let own = buffer.entries.iter().rposition(|&(held, _)| held == block);
                let at = own.map_or(block, |at| buffer.first + at as u32);
                let from = Source::Location(at);
                effect.operations.push(Operation::Load { proc, block, from });
            }
            1 => {
                if buffer.entries.len() == buffer.capacity {
                    return None;
                }
                effect.operations.push(Operation::Store { proc, block });
                buffer.push(&mut effect, (block, false), Source::Store(0));
            }
            _ => {
                if buffer.entries.is_empty() {
                    return None;
                }
                let from = Source::Location(buffer.first);
                let (block, _) = buffer.pop(&mut effect);
                effect.sources[block as usize] = from;
                if self.serializes {
                    effect.operations.push(Operation::Serialize { block, from });
                }
            }
        }
        Some(effect)
    }
}
