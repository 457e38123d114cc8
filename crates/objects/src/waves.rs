//! A search that takes long, by waves: breadth first through the returns, a part of what is open at
//! a time, on all threads that are free.
//!
//! The configurations and steps are those of [`crate::linearize`], and what is known of operations
//! that overwrite comes in addition ([`crate::overwrites`]). A wave takes some configurations that
//! stand before the same return, linearizes until that return has passed, and goes on with those
//! that stand before the next one; those that are too many for it stay behind. When a wave has run
//! dry, a wider one starts from the configurations that are furthest. So a linearization that is
//! easy to find is found without looking at everything, as depth first, and all that is done, is
//! done to many configurations at once:
//!
//! ```text
//! expand   each thread takes a part of the wave and lists what its configurations lead to
//! sort     each thread takes some shards of the table and finds what is new there
//! ```
//!
//! Nothing is shared inside of these, and there is no lock but for numbering states. What comes out
//! of either is in the order of the configurations, however many threads there are: so the attempts
//! that are shown of a history without linearization are always the same, and so is the order.
//!
//! What is pruned, beside what linearize.rs says: a configuration gives way to one before the same
//! return, in the same state, in which the same operations that change states in other ways than
//! overwriting are linearized, and
//! - no more pending operations and no more of those that overwrite are used up,
//! - no fewer of those that change no state are linearized, and no fewer settled.
//!
//! Whatever can be done in the one, can be done in the other. As in linearize.rs this is not
//! circular: who gives way to whom, does so to one that is no further from the end.
//!
//! Memory: the configurations before returns at which, or before which, some are left to look at,
//! and 8 bytes for each other one, which say where it came from.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use consistory_verdict::{Budget, Stopped};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::bits::Bits;
use crate::calls::Place;
use crate::linearize::{ATTEMPTS, Linearization, PATIENCE, Threads};
use crate::machine::{Machine, SharedStates, StateId, StateTable};
use crate::overwrites::Overwrites;
use crate::steps::{Configuration, Plan, Step, Stepper};

/// How many configurations before one return the first wave takes, and the most that any takes.
const NARROW: usize = 256;
const WIDE: usize = 1 << 16;
/// How many configurations a thread should have to look at.
const SHARE: usize = 1024;
/// In how many parts the table is.
const SHARDS: usize = 16;
/// How many configurations are compared with a new one, of those that it may give way to.
const MOST_COMPARED: usize = 64;
/// For how many returns a worker remembers what the slots stand for.
const MOST_KINDS: usize = 1024;
/// Where the first configuration came from.
const NOBODY: u32 = u32::MAX;

/// Searches for a linearization.
pub(crate) fn search_by_waves<const W: usize>(
    plan: &Plan<'_, '_>,
    budget: &Budget,
    threads: &Threads,
) -> Result<Linearization, Stopped> {
    let states = StateTable::new();
    let new_machine = || Machine::with_states(plan.task, SharedStates::new(&states));
    let mut machine = new_machine();
    let overwrites = Overwrites::new(plan.task, &plan.timeline, &mut machine);
    let slots = Slots { plan, overwrites: overwrites.as_ref() };
    let new_worker = |machine| Worker::<W> {
        stepper: Stepper::new(plan, machine, overwrites.as_ref()),
        candidates: Vec::new(),
        next: Vec::new(),
        slots,
        kinds: FxHashMap::default(),
    };
    let mut workers = vec![new_worker(machine)];
    let (start, is_over) = workers[0].stepper.start();
    if is_over {
        return Ok(Linearization::Found(std::mem::take(&mut workers[0].stepper.order)));
    }
    let mut waves = Waves {
        slots,
        shards: (0..SHARDS).map(|_| Shard::default()).collect(),
        came: vec![(NOBODY, Step::Pass)],
        open: BTreeMap::from([(start.at, vec![(start, 0)])]),
        furthest: 0,
        attempts: Vec::new(),
    };
    let (mut at, mut width, mut left) = (start.at, NARROW, NARROW);
    loop {
        // The wave's share of this return is done, or all of it.
        let here = waves.open.get_mut(&at).filter(|_| left > 0);
        let Some(here) = here.filter(|here| !here.is_empty()) else {
            if waves.open.get(&at).is_some_and(Vec::is_empty) {
                waves.open.remove(&at);
            }
            let further = waves.open.range(at + 1..).next().map(|(&at, _)| at);
            let Some(next) = further.or_else(|| waves.open.keys().next_back().copied()) else {
                break;
            };
            if further.is_none() {
                width = (2 * width).min(WIDE);
            }
            waves.forget();
            (at, left) = (next, width);
            continue;
        };
        let wave = here.split_off(here.len().saturating_sub(left));
        left -= wave.len();
        let others = threads.take((wave.len() / SHARE).saturating_sub(1));
        while workers.len() <= others.count {
            workers.push(new_worker(new_machine()));
        }
        let some = &mut workers[..=others.count];
        let found = waves.advance(at, &wave, some, budget)?;
        drop(others);
        if let Some((from, step)) = found {
            let way = waves.way(from).into_iter().chain([step]);
            return Ok(Linearization::Found(workers[0].stepper.unfold(way).0));
        }
        let tables: u64 = workers.iter().map(|worker| worker.stepper.machine.memory()).sum();
        budget.check()?;
        budget.reserve(tables + waves.memory())?;
    }
    let stuck = plan.timeline.returns[waves.furthest as usize];
    let mut attempts = Vec::new();
    for &(from, unexplained) in &waves.attempts {
        let stepper = &mut workers[0].stepper;
        let (order, state) = stepper.unfold(waves.way(from));
        // Whom nobody saw may have left what the operation returned, too late for it.
        if state.is_none_or(|state| stepper.machine.perform(state, unexplained).is_none()) {
            attempts.push((order.into_iter().map(|(place, _)| place).collect(), unexplained));
        }
    }
    Ok(Linearization::Stuck { stuck, attempts })
}

/// A configuration that was reached, and its number.
type Open<const W: usize> = (Configuration<W>, u32);

struct Waves<'a, 'h, const W: usize> {
    slots: Slots<'a, 'h>,
    shards: Vec<Shard<W>>,
    /// For each configuration that was reached from which one, and how.
    came: Vec<(u32, Step)>,
    /// What is still to be looked at, by the next return.
    open: BTreeMap<u32, Vec<Open<W>>>,
    furthest: u32,
    /// The configurations before the furthest return that lead nowhere, and an operation that
    /// cannot come next.
    attempts: Vec<(u32, Place)>,
}

/// A configuration that another one leads to.
struct Child<const W: usize> {
    configuration: Configuration<W>,
    from: u32,
    step: Step,
    /// Its place among those that one worker found.
    index: u32,
}

/// What a worker finds.
struct Found<const W: usize> {
    /// By shard.
    children: Vec<Vec<Child<W>>>,
    end: Option<(u32, Step)>,
    attempts: Vec<(u32, Place)>,
}

impl<const W: usize> Waves<'_, '_, W> {
    /// Looks at configurations before one return; gives the step to the end, if there is one.
    fn advance(
        &mut self,
        at: u32,
        wave: &[Open<W>],
        workers: &mut [Worker<'_, '_, W>],
        budget: &Budget,
    ) -> Result<Option<(u32, Step)>, Stopped> {
        if at > self.furthest {
            self.furthest = at;
            self.attempts.clear();
        }
        let mut parts = wave.chunks(wave.len().div_ceil(workers.len()));
        let first = parts.next().unwrap_or(&[]);
        let (own, others) = workers.split_first_mut().expect("there is a worker");
        let found: Vec<Result<Found<W>, Stopped>> = std::thread::scope(|scope| {
            let others: Vec<_> = others
                .iter_mut()
                .zip(parts)
                .map(|(worker, part)| scope.spawn(move || worker.expand(part, budget)))
                .collect();
            let mut found = vec![own.expand(first, budget)];
            found.extend(others.into_iter().map(|other| other.join().expect("no worker panics")));
            found
        });
        let found: Vec<Found<W>> = found.into_iter().collect::<Result<_, _>>()?;
        if let Some(end) = found.iter().find_map(|found| found.end) {
            return Ok(Some(end));
        }
        if at == self.furthest {
            self.attempts.extend(found.iter().flat_map(|found| &found.attempts));
            self.attempts.truncate(ATTEMPTS);
        }
        let each = SHARDS.div_ceil(1 + others.len());
        let found = &*found;
        let slots = self.slots;
        let mut new: Vec<(u32, &Child<W>)> = std::thread::scope(|scope| {
            let mut parts = self.shards.chunks_mut(each).enumerate();
            let first = parts.next();
            let others: Vec<_> = parts
                .map(|(i, part)| scope.spawn(move || sort(part, i * each, found, slots)))
                .collect();
            let mut new = first.map_or(Vec::new(), |(i, part)| sort(part, i * each, found, slots));
            for other in others {
                new.extend(other.join().expect("no worker panics"));
            }
            new
        });
        new.sort_unstable_by_key(|&(worker, child)| (worker, child.index));
        for (_, child) in new {
            let open = self.open.entry(child.configuration.at).or_default();
            open.push((child.configuration, self.came.len() as u32));
            self.came.push((child.from, child.step));
        }
        Ok(None)
    }

    /// Forgets the configurations before returns that no other one leads to any more.
    fn forget(&mut self) {
        let first = self.open.keys().next().copied().unwrap_or(0);
        for shard in &mut self.shards {
            while let Some(entry) = shard.tables.first_entry().filter(|entry| *entry.key() < first)
            {
                shard.count -= entry.remove().count();
            }
        }
    }

    /// Gives the steps that lead to a configuration.
    fn way(&self, to: u32) -> Vec<Step> {
        let came = |number: u32| Some(self.came[number as usize]).filter(|came| came.0 != NOBODY);
        let steps = std::iter::successors(came(to), |&(from, _)| came(from)).map(|(_, step)| step);
        let mut way: Vec<Step> = steps.collect();
        way.reverse();
        way
    }

    /// Estimates the memory that the configurations take, in bytes.
    fn memory(&self) -> u64 {
        let known: usize = self.shards.iter().map(|shard| shard.count).sum();
        let each = size_of::<Configuration<W>>();
        let open: usize = self.open.values().map(Vec::len).sum();
        (known * (2 * each + 24) + open * (each + 8) + self.came.len() * 12) as u64
    }
}

/// A thread's own part in the search.
struct Worker<'a, 'h, const W: usize> {
    stepper: Stepper<'a, 'h, W, SharedStates<'a>>,
    candidates: Vec<Place>,
    next: Vec<(Step, Configuration<W>, bool)>,
    slots: Slots<'a, 'h>,
    /// By return.
    kinds: FxHashMap<u32, Kinds<W>>,
}

impl<const W: usize> Worker<'_, '_, W> {
    /// Lists what some configurations lead to.
    fn expand(&mut self, part: &[Open<W>], budget: &Budget) -> Result<Found<W>, Stopped> {
        let children = (0..SHARDS).map(|_| Vec::new()).collect();
        if self.kinds.len() > MOST_KINDS {
            self.kinds.clear();
        }
        let mut found = Found { children, end: None, attempts: Vec::new() };
        let mut index = 0;
        for (i, (configuration, number)) in part.iter().enumerate() {
            if (i as u64 + 1).is_multiple_of(PATIENCE) {
                budget.check()?;
            }
            let mut unexplained = self.stepper.hopeless(configuration);
            if unexplained.is_none() {
                self.next.clear();
                self.stepper.expand(configuration, &mut self.candidates, &mut self.next);
                if self.next.is_empty() {
                    unexplained = Some(self.stepper.returning(configuration));
                }
                for &(step, next, is_over) in &self.next {
                    if is_over {
                        found.end = Some((*number, step));
                        return Ok(found);
                    }
                    let child = Child { configuration: next, from: *number, step, index };
                    let kinds = self.kinds.entry(next.at);
                    let kinds = kinds.or_insert_with(|| Kinds::new(self.slots, next.at));
                    found.children[shard_of(&next, kinds)].push(child);
                    index += 1;
                }
            }
            if let Some(unexplained) = unexplained.filter(|_| found.attempts.len() < ATTEMPTS) {
                found.attempts.push((*number, unexplained));
            }
        }
        Ok(found)
    }
}

/// Gives the shard that a configuration belongs to, with all that it may give way to.
fn shard_of<const W: usize>(configuration: &Configuration<W>, kinds: &Kinds<W>) -> usize {
    let rest = configuration.linearized.difference(&kinds.pure).difference(&kinds.useful);
    // The table inside uses other bits.
    (FxBuildHasher.hash_one((configuration.state, rest)) >> 40) as usize % SHARDS
}

/// Finds what is new for some shards, each with its worker.
fn sort<'f, const W: usize>(
    shards: &mut [Shard<W>],
    first: usize,
    found: &'f [Found<W>],
    slots: Slots<'_, '_>,
) -> Vec<(u32, &'f Child<W>)> {
    let mut new = Vec::new();
    for (i, shard) in shards.iter_mut().enumerate() {
        for (worker, found) in found.iter().enumerate() {
            let children = found.children[first + i].iter();
            let children = children.filter(|child| shard.insert(&child.configuration, slots));
            new.extend(children.map(|child| (worker as u32, child)));
        }
    }
    new
}

/// A part of the table of configurations.
struct Shard<const W: usize> {
    tables: BTreeMap<u32, Table<W>>,
    count: usize,
}

impl<const W: usize> Default for Shard<W> {
    fn default() -> Self {
        Shard { tables: BTreeMap::new(), count: 0 }
    }
}

impl<const W: usize> Shard<W> {
    /// Adds a configuration; says whether it is new, and gives way to none.
    fn insert(&mut self, configuration: &Configuration<W>, slots: Slots<'_, '_>) -> bool {
        let at = configuration.at;
        let table = self.tables.entry(at);
        let table = table.or_insert_with(|| Table::new(Kinds::new(slots, at)));
        let is_new = table.insert(configuration);
        self.count += usize::from(is_new);
        is_new
    }
}

/// What tells which operations the slots stand for.
#[derive(Clone, Copy)]
struct Slots<'a, 'h> {
    plan: &'a Plan<'a, 'h>,
    overwrites: Option<&'a Overwrites>,
}

/// The slots of operations before one return, by what they are.
struct Kinds<const W: usize> {
    /// Of those that it is good to have linearized, as they change no state.
    pure: Bits<W>,
    /// Of those that it is good not to have used.
    useful: Bits<W>,
}

impl<const W: usize> Kinds<W> {
    fn new(slots: Slots<'_, '_>, at: u32) -> Self {
        let Slots { plan, overwrites } = slots;
        let timeline = &plan.timeline;
        let mut pure = Bits::EMPTY;
        let mut useful: Bits<W> = (0..timeline.pending.len()).collect();
        for &place in timeline.open(at as usize) {
            let slot = timeline.slot[place.index()] as usize;
            if plan.task.is_pure(place) {
                pure.insert(slot);
            } else if overwrites.is_some_and(|overwrites| overwrites.contains(place)) {
                useful.insert(slot);
            }
        }
        Kinds { pure, useful }
    }
}

/// The configurations before one return.
struct Table<const W: usize> {
    kinds: Kinds<W>,
    /// For each state, and other operations that are linearized, where the last one is.
    last: FxHashMap<(StateId, Bits<W>), u32>,
    known: Vec<Known<W>>,
    /// Those that are too many to be compared with.
    others: FxHashSet<Configuration<W>>,
}

struct Known<const W: usize> {
    /// What is linearized, where that is good, and settled.
    done: Bits<W>,
    settled: Bits<W>,
    used: Bits<W>,
    before: u32,
}

impl<const W: usize> Table<W> {
    fn new(kinds: Kinds<W>) -> Self {
        let (last, others) = (FxHashMap::default(), FxHashSet::default());
        Table { kinds, last, known: Vec::new(), others }
    }

    fn count(&self) -> usize {
        self.known.len() + self.others.len()
    }

    fn insert(&mut self, configuration: &Configuration<W>) -> bool {
        let Configuration { state, linearized, settled, .. } = *configuration;
        let done = linearized.intersection(&self.kinds.pure);
        let used = linearized.intersection(&self.kinds.useful);
        let rest = linearized.difference(&self.kinds.pure).difference(&self.kinds.useful);
        let last = self.last.entry((state, rest)).or_insert(NOBODY);
        let mut at = *last;
        let mut compared = 0;
        while at != NOBODY {
            let known = &mut self.known[at as usize];
            if done.is_subset(&known.done)
                && settled.is_subset(&known.settled)
                && known.used.is_subset(&used)
            {
                return false;
            }
            if known.done.is_subset(&done)
                && known.settled.is_subset(&settled)
                && used.is_subset(&known.used)
            {
                (known.done, known.settled, known.used) = (done, settled, used);
                return true;
            }
            compared += 1;
            at = known.before;
        }
        if compared >= MOST_COMPARED {
            return self.others.insert(*configuration);
        }
        let fresh = self.known.len() as u32;
        let before = std::mem::replace(last, fresh);
        self.known.push(Known { done, settled, used, before });
        true
    }
}
