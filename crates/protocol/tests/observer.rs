//! Observer and checker, the witness of an exploration, and the whole constraint graph reach the
//! same verdict.

use consistory_protocol::tracking::{Companion, Effect, Operation, Renaming, Shape, Source};
use consistory_protocol::{Monitor, TraceNames, Witness, history};
use consistory_registers::{Options, StoreModel, decide_stored};
use consistory_verdict::Verdict;

use crate::machines::{LazyCaching, Machine, SerialMemory, StoreBuffers, unchanged};
use crate::support::{Random, cases};

/// The whole constraint graph of a run, and the contents of each location.
#[derive(Clone, Default)]
struct Whole {
    /// Whether each node is a store, its processor, its block.
    nodes: Vec<(bool, u32, u32)>,
    /// The store from which each load takes its value; `None` is the initial value.
    source: Vec<Option<usize>>,
    /// The serialized stores of each block, in order.
    order: Vec<Vec<usize>>,
    contents: Vec<Held>,
    homes: Vec<Option<u32>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Nothing,
    Initial(Option<u32>),
    Store(usize),
}

impl Whole {
    fn new(shape: Shape, homes: &[Option<u32>]) -> Self {
        Whole {
            homes: homes.to_vec(),
            order: vec![Vec::new(); shape.blocks as usize],
            contents: vec![Held::Nothing; shape.locations as usize],
            ..Whole::default()
        }
    }

    /// Follows an effect; returns whether the run is still accepted.
    fn step(&mut self, effect: &Effect, serializes: bool) -> bool {
        let mut performed: Vec<Held> = Vec::new();
        let held = |source: Source, contents: &[Held], performed: &[Held]| match source {
            Source::Location(at) => contents[at as usize],
            Source::Store(at) => performed[at as usize],
            Source::Initial { .. } => Held::Initial(None),
            Source::Nothing => Held::Nothing,
        };
        for &operation in &effect.operations {
            let mut done = Held::Nothing;
            match operation {
                Operation::Load { proc, block, from } => {
                    let source = match held(from, &self.contents, &performed) {
                        Held::Nothing => return false,
                        Held::Initial(Some(home)) if home != block => return false,
                        Held::Initial(_) => None,
                        Held::Store(store) if self.nodes[store].2 != block => return false,
                        Held::Store(store) => Some(store),
                    };
                    self.nodes.push((false, proc, block));
                    self.source.push(source);
                }
                Operation::Store { proc, block } => {
                    done = Held::Store(self.nodes.len());
                    if !serializes {
                        self.order[block as usize].push(self.nodes.len());
                    }
                    self.nodes.push((true, proc, block));
                    self.source.push(None);
                }
                Operation::Serialize { block, from } => {
                    match held(from, &self.contents, &performed) {
                        Held::Nothing => return false,
                        Held::Initial(Some(home)) if home != block => return false,
                        Held::Initial(_) => {}
                        Held::Store(store) if self.nodes[store].2 != block => return false,
                        Held::Store(store) => {
                            if !self.order[block as usize].contains(&store) {
                                self.order[block as usize].push(store);
                            }
                        }
                    }
                }
            }
            performed.push(done);
        }
        let after = |(at, &source)| match source {
            Source::Initial { .. } => Held::Initial(self.homes[at]),
            source => held(source, &self.contents, &performed),
        };
        self.contents = effect.sources.iter().enumerate().map(after).collect();
        let lost = |&store: &usize| !self.contents.contains(&Held::Store(store));
        !self.pending().iter().any(lost) && self.can_end()
    }

    fn pending(&self) -> Vec<usize> {
        let is_pending = |&node: &usize| {
            self.nodes[node].0 && !self.order[self.nodes[node].2 as usize].contains(&node)
        };
        (0..self.nodes.len()).filter(is_pending).collect()
    }

    /// Returns whether the pending stores have an order in which the graph is acyclic.
    fn can_end(&self) -> bool {
        let pending = self.pending();
        if pending.is_empty() {
            return self.is_acyclic();
        }
        pending.iter().any(|&store| {
            let mut next = self.clone();
            next.order[self.nodes[store].2 as usize].push(store);
            next.can_end()
        })
    }

    fn is_acyclic(&self) -> bool {
        let n = self.nodes.len();
        let mut edges: Vec<(usize, usize)> = Vec::new();
        for (to, node) in self.nodes.iter().enumerate() {
            let before = (0..to).rev().find(|&from| self.nodes[from].1 == node.1);
            edges.extend(before.map(|from| (from, to)));
        }
        for order in &self.order {
            edges.extend(order.windows(2).map(|pair| (pair[0], pair[1])));
        }
        for load in (0..n).filter(|&node| !self.nodes[node].0) {
            let order = &self.order[self.nodes[load].2 as usize];
            let overwritten = match self.source[load] {
                None => order.first(),
                Some(store) => {
                    edges.push((store, load));
                    let at = order.iter().position(|&s| s == store).expect("it has its place");
                    order.get(at + 1)
                }
            };
            edges.extend(overwritten.map(|&next| (load, next)));
        }
        // Remove nodes without predecessors until no node is left.
        let mut left: Vec<usize> = (0..n).collect();
        while !left.is_empty() {
            let free = |&node: &usize| !edges.iter().any(|&(_, to)| to == node);
            let Some(at) = left.iter().position(free) else { return false };
            let node = left.swap_remove(at);
            edges.retain(|&(from, _)| from != node);
        }
        true
    }
}

fn names(shape: Shape) -> TraceNames {
    TraceNames {
        procs: (0..shape.procs).map(|p| format!("p{p}")).collect(),
        blocks: (0..shape.blocks).map(|b| format!("b{b}")).collect(),
    }
}

fn is_sequential(shape: Shape, effects: &[Effect]) -> bool {
    let history = history(&names(shape), effects).unwrap();
    let judgement = decide_stored(&history, StoreModel::Sc, &Options::default()).judgement;
    assert_ne!(judgement.verdict(), Verdict::Undecided);
    judgement.verdict() == Verdict::Consistent
}

/// Three deciders that follow the same run.
struct Court {
    shape: Shape,
    monitor: Monitor,
    witness: Witness,
    state: Vec<u8>,
    whole: Whole,
    effects: Vec<Effect>,
}

impl Court {
    fn new(shape: Shape, homes: &[Option<u32>]) -> Self {
        let witness = Witness::new(shape).unwrap().with_homes(homes);
        let monitor = Monitor::new(shape).with_homes(homes);
        let whole = Whole::new(shape, homes);
        Court { shape, monitor, witness, state: Vec::new(), whole, effects: Vec::new() }
    }

    /// Follows an effect; all deciders must agree on whether it is accepted.
    fn step(&mut self, effect: &Effect) -> bool {
        let mut after = vec![0; self.witness.width()];
        let witnessed = if self.effects.is_empty() {
            self.witness.start(effect, &mut after)
        } else {
            self.witness.step(&self.state, effect, &mut after)
        };
        let monitored = self.monitor.step(effect);
        let expected = self.whole.step(effect, self.shape.serializes);
        self.effects.push(effect.clone());
        assert_eq!(monitored.is_ok(), expected, "monitor: {monitored:?}\n{:#?}", self.effects);
        assert_eq!(witnessed.is_ok(), expected, "witness\n{:#?}", self.effects);
        self.state = after;
        expected
    }
}

/// Draws an effect: mostly loads of a block from a location that holds a value of the block.
fn draw(random: &mut Random, shape: Shape, whole: &Whole) -> Effect {
    let mut effect = unchanged(shape.locations);
    let location = |random: &mut Random| random.below(shape.locations as usize);
    for _ in 0..random.below(3) {
        let proc = random.below(shape.procs as usize) as u32;
        let mut block = random.below(shape.blocks as usize) as u32;
        let mut from = Source::Location(location(random) as u32);
        let before = effect.operations.len();
        let is_store = |at: &usize| matches!(effect.operations[*at], Operation::Store { .. });
        if let Some(at) = (0..before).rev().find(is_store).filter(|_| random.chance(1, 4)) {
            from = Source::Store(at as u32);
        }
        if random.chance(49, 50) {
            // The block of that value.
            block = match from {
                Source::Store(at) => match effect.operations[at as usize] {
                    Operation::Store { block, .. } => block,
                    _ => block,
                },
                Source::Location(at) => match whole.contents[at as usize] {
                    Held::Store(store) => whole.nodes[store].2,
                    Held::Nothing => continue,
                    Held::Initial(home) => home.unwrap_or(block),
                },
                _ => block,
            };
        }
        effect.operations.push(match random.below(4) {
            0 => {
                let to = location(random);
                effect.sources[to] = Source::Store(before as u32);
                Operation::Store { proc, block }
            }
            1 if shape.serializes => Operation::Serialize { block, from },
            _ => Operation::Load { proc, block, from },
        });
    }
    for _ in 0..random.below(3) {
        let to = location(random);
        if matches!(effect.sources[to], Source::Location(_)) {
            effect.sources[to] = match random.below(8) {
                0 => Source::Nothing,
                _ => Source::Location(location(random) as u32),
            };
        }
    }
    // A pending store that would be lost mostly keeps its location.
    if shape.serializes && random.chance(19, 20) {
        for store in whole.pending() {
            let at = whole.contents.iter().position(|&held| held == Held::Store(store));
            let at = at.expect("it is held");
            let kept = effect.sources.contains(&Source::Location(at as u32));
            if !kept {
                effect.sources[at] = Source::Location(at as u32);
            }
        }
    }
    effect
}

/// Draws the block of each location's initial value.
fn homes(random: &mut Random, shape: Shape) -> Vec<Option<u32>> {
    let known = random.chance(1, 2);
    let home = |random: &mut Random| {
        (known && random.chance(3, 4)).then(|| random.below(shape.blocks as usize) as u32)
    };
    (0..shape.locations).map(|_| home(random)).collect()
}

fn start(random: &mut Random, shape: Shape) -> Effect {
    let source =
        |_| if random.chance(2, 3) { Source::Initial { value: 0 } } else { Source::Nothing };
    Effect { operations: Vec::new(), sources: (0..shape.locations).map(source).collect() }
}

#[test]
fn all_ways_agree_on_random_effects() {
    let (mut accepted, mut rejected) = (0, 0);
    for seed in 0..cases(8000) {
        let random = &mut Random::new(seed);
        let shape = Shape {
            procs: 1 + random.below(3) as u32,
            blocks: 1 + random.below(2) as u32,
            locations: 1 + random.below(4) as u32,
            serializes: random.chance(1, 2),
        };
        let mut court = Court::new(shape, &homes(random, shape));
        let mut fine = court.step(&start(random, shape));
        assert!(fine);
        for _ in 0..random.below(14) {
            let effect = draw(random, shape, &court.whole);
            fine = court.step(&effect);
            if !fine {
                rejected += 1;
                break;
            }
            accepted += 1;
        }
        let fine = &court.effects[..court.effects.len() - usize::from(!fine)];
        assert!(is_sequential(shape, fine), "seed {seed}\n{fine:#?}");
    }
    assert!(accepted > 20_000 && rejected > 1500, "{accepted} accepted, {rejected} rejected");
}

/// Runs a machine; returns whether the run was accepted to its end.
fn run(machine: &mut dyn Machine, random: &mut Random, steps: usize) -> (bool, Court) {
    let shape = machine.shape();
    let mut court = Court::new(shape, &vec![None; shape.locations as usize]);
    assert!(court.step(&machine.start()));
    for _ in 0..steps {
        let Some(effect) = machine.step(random) else { continue };
        if !court.step(&effect) {
            return (false, court);
        }
    }
    (true, court)
}

#[test]
fn serial_memory_is_never_rejected() {
    for seed in 0..cases(400) {
        let random = &mut Random::new(seed);
        let machine = &mut SerialMemory { procs: 3, blocks: 2 };
        let (accepted, court) = run(machine, random, 30);
        assert!(accepted && is_sequential(court.shape, &court.effects), "seed {seed}");
    }
}

#[test]
fn lazy_caching_is_never_rejected_under_the_order_of_its_memory_writes() {
    let mut real_time = 0;
    for seed in 0..cases(400) {
        let random = &mut Random::new(seed);
        let machine = &mut LazyCaching::new(2, 2, 2, true, true);
        let (accepted, court) = run(machine, random, 50);
        assert!(accepted && is_sequential(court.shape, &court.effects), "seed {seed}");
        // The order in which the stores happen is a different one, which does not explain the same
        // runs.
        let random = &mut Random::new(seed);
        let (accepted, court) = run(&mut LazyCaching::new(2, 2, 2, false, true), random, 50);
        assert!(is_sequential(court.shape, &court.effects), "seed {seed}");
        real_time += usize::from(!accepted);
    }
    assert_ne!(real_time, 0);
}

#[test]
fn what_is_accepted_of_broken_machines_is_sequential() {
    let mut wrong = 0;
    for seed in 0..cases(400) {
        let random = &mut Random::new(seed);
        let serializes = random.chance(1, 2);
        let mut machine: Box<dyn Machine> = if random.chance(1, 2) {
            Box::new(StoreBuffers::new(2, 2, 2, serializes))
        } else {
            Box::new(LazyCaching::new(2, 2, 2, serializes, false))
        };
        let (accepted, court) = run(&mut *machine, random, 40);
        let sequential = is_sequential(court.shape, &court.effects);
        assert!(sequential || !accepted, "seed {seed}");
        wrong += usize::from(!sequential);
        let before = &court.effects[..court.effects.len() - 1];
        assert!(accepted || is_sequential(court.shape, before), "seed {seed}");
    }
    assert!(wrong > 100, "{wrong}");
}

fn permutation(random: &mut Random, size: u32) -> Vec<u32> {
    let mut all: Vec<u32> = (0..size).collect();
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    all
}

fn renamed(effect: &Effect, names: &Renaming) -> Effect {
    let source = |source: Source| match source {
        Source::Location(at) => Source::Location(names.locations[at as usize]),
        other => other,
    };
    let operation = |operation: &Operation| match *operation {
        Operation::Load { proc, block, from } => Operation::Load {
            proc: names.procs[proc as usize],
            block: names.blocks[block as usize],
            from: source(from),
        },
        Operation::Store { proc, block } => Operation::Store {
            proc: names.procs[proc as usize],
            block: names.blocks[block as usize],
        },
        Operation::Serialize { block, from } => {
            Operation::Serialize { block: names.blocks[block as usize], from: source(from) }
        }
    };
    let mut sources = effect.sources.clone();
    for (at, &from) in effect.sources.iter().enumerate() {
        sources[names.locations[at] as usize] = source(from);
    }
    Effect { operations: effect.operations.iter().map(operation).collect(), sources }
}

/// A renamed run leads to the renamed states.
#[test]
fn renaming_commutes_with_steps() {
    for seed in 0..cases(3000) {
        let random = &mut Random::new(seed);
        let shape = Shape {
            procs: 1 + random.below(3) as u32,
            blocks: 1 + random.below(3) as u32,
            locations: 1 + random.below(5) as u32,
            serializes: random.chance(1, 2),
        };
        let names = Renaming {
            procs: permutation(random, shape.procs),
            blocks: permutation(random, shape.blocks),
            locations: permutation(random, shape.locations),
        };
        let homes = homes(random, shape);
        let mut homes_there = homes.clone();
        for (at, home) in homes.iter().enumerate() {
            let to = names.locations[at] as usize;
            homes_there[to] = home.map(|block| names.blocks[block as usize]);
        }
        let witness = Witness::new(shape).unwrap().with_homes(&homes);
        let witness_there = Witness::new(shape).unwrap().with_homes(&homes_there);
        let zeros = vec![0; witness.width()];
        let mut whole = Whole::new(shape, &homes);
        let effect = start(random, shape);
        let (mut here, mut there) = (zeros.clone(), zeros.clone());
        witness.start(&effect, &mut here).unwrap();
        witness_there.start(&renamed(&effect, &names), &mut there).unwrap();
        whole.step(&effect, shape.serializes);
        for _ in 0..12 {
            let mut expected = zeros.clone();
            witness.rename(&here, &names, &mut expected);
            assert_eq!(there, expected, "seed {seed}");
            assert!(witness.bits_used(&here).div_ceil(8) <= witness.width());
            let effect = draw(random, shape, &whole);
            if !whole.step(&effect, shape.serializes) {
                break;
            }
            let (mut next_here, mut next_there) = (zeros.clone(), zeros.clone());
            witness.step(&here, &effect, &mut next_here).unwrap();
            witness_there.step(&there, &renamed(&effect, &names), &mut next_there).unwrap();
            (here, there) = (next_here, next_there);
        }
    }
}

#[test]
fn too_many_processors_are_refused() {
    let shape = Shape { procs: 60, blocks: 2, locations: 4, serializes: false };
    let refused = Witness::new(shape).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "60 processors and 2 blocks are too many: processors plus twice the blocks may be at most 48"
    );
}
