//! A search that takes long, by waves: breadth first through the returns, a part of what is open at
//! a time, on all threads that are free.
//!
//! The configurations and steps are those of [`crate::linearize`], and what is known of operations
//! that overwrite comes in addition ([`crate::overwrites`]). A wave takes some configurations that
//! stand before the same return, linearizes until that return has passed, and goes on with those
//! that stand before the next one; those that are too many for it stay behind. When a wave has run
//! dry, a wider one starts from the configurations that are furthest, and gets narrower again where it
//! comes further than any before. So a linearization that is
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
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::Scope;

use consistory_verdict::{Budget, Stopped};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::bits::Bits;
use crate::calls::Place;
use crate::linearize::{ATTEMPTS, Linearization, PATIENCE, Threads};
use crate::machine::{Machine, SharedStates, StateId, StateTable};
use crate::overwrites::Overwrites;
use crate::steps::{Configuration, Plan, Step, Stepper};

/// How many configurations before one return the first wave takes, and the most that any takes.
const NARROW: usize = 64;
const WIDE: usize = 1 << 16;
/// How many configurations a thread should have to look at: with fewer it waits more than it works.
const SHARE: usize = 1024;
/// From how many states on each belongs to a thread.
const MANY_STATES: usize = 4096;
/// How often a thread looks for something to do before it falls asleep.
const SOON: usize = 4000;
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
    let found = search::<W>(plan, budget, threads, &states);
    states.discard();
    found
}

fn search<const W: usize>(
    plan: &Plan<'_, '_>,
    budget: &Budget,
    threads: &Threads,
    states: &StateTable,
) -> Result<Linearization, Stopped> {
    let mut machine = Machine::with_states(plan.task, SharedStates::new(states));
    let overwrites = Overwrites::new(plan.task, &plan.timeline, &mut machine);
    let slots = Slots { plan, overwrites: overwrites.as_ref() };
    let mut first = Worker::<W>::new(slots, machine);
    let (start, is_over) = first.stepper.start();
    if is_over {
        return Ok(Linearization::Found(first.stepper.order));
    }
    let mut waves = Waves {
        slots,
        workers: vec![first],
        shards: (0..SHARDS).map(|_| Shard::default()).collect(),
        came: vec![(NOBODY, Step::Pass)],
        open: BTreeMap::from([(start.at, vec![(start, 0)])]),
        furthest: 0,
        attempts: Vec::new(),
    };
    // Who does not want to be alone for long, shares little.
    let share = SHARE.min(threads.alone as usize).max(1);
    let found = std::thread::scope(|scope| {
        let mut crew = Crew::default();
        let mut taken = Vec::new();
        let (mut at, mut width, mut left) = (start.at, NARROW, NARROW);
        loop {
            // The wave's share of this return is done, or all of it.
            let here = waves.open.get_mut(&at).filter(|_| left > 0);
            let Some(here) = here.filter(|here| !here.is_empty()) else {
                let Some((next, is_further)) = waves.next(at) else { return Ok(None) };
                // What is hard may lie behind.
                width = match is_further {
                    false => (2 * width).min(WIDE),
                    true if next > waves.furthest => (width - width / 16).max(NARROW),
                    true => width,
                };
                (at, left) = (next, width);
                continue;
            };
            let wave = here.split_off(here.len().saturating_sub(left));
            left -= wave.len();
            let wanted = (wave.len() / share).max(1);
            if wanted > waves.workers.len() {
                let others = threads.take(wanted - waves.workers.len());
                for _ in 0..others.count {
                    crew.helpers.push(Crew::helper(scope));
                    let machine = Machine::with_states(plan.task, SharedStates::new(states));
                    waves.workers.push(Worker::new(slots, machine));
                }
                taken.push(others);
            }
            let found = waves.advance(at, wave, wanted, &crew, budget)?;
            if found.is_some() {
                return Ok(found);
            }
            budget.check()?;
            budget.reserve(waves.memory())?;
        }
    })?;
    let stepper = &mut waves.workers[0].stepper;
    if let Some((from, step)) = found {
        let way = way(&waves.came, from).into_iter().chain([step]);
        return Ok(Linearization::Found(stepper.unfold(way).0));
    }
    let stuck = plan.timeline.returns[waves.furthest as usize];
    let mut attempts = Vec::new();
    for &(from, unexplained) in &waves.attempts {
        let (order, state) = stepper.unfold(way(&waves.came, from));
        // Whom nobody saw may have left what the operation returned, too late for it.
        if state.is_none_or(|state| stepper.machine.perform(state, unexplained).is_none()) {
            attempts.push((order.into_iter().map(|(place, _)| place).collect(), unexplained));
        }
    }
    Ok(Linearization::Stuck { stuck, attempts })
}

/// Gives the steps that lead to a configuration.
fn way(came: &[(u32, Step)], to: u32) -> Vec<Step> {
    let came = |number: u32| Some(came[number as usize]).filter(|came| came.0 != NOBODY);
    let steps = std::iter::successors(came(to), |&(from, _)| came(from)).map(|(_, step)| step);
    let mut way: Vec<Step> = steps.collect();
    way.reverse();
    way
}

/// Threads that wait for something to do.
#[derive(Default)]
struct Crew<'e> {
    helpers: Vec<Sender<Job<'e>>>,
}

type Job<'e> = Box<dyn FnOnce() + Send + 'e>;

impl<'e> Crew<'e> {
    /// Starts a thread that does what it is given, until nobody can give it anything.
    fn helper<'scope>(scope: &'scope Scope<'scope, '_>) -> Sender<Job<'e>>
    where
        'e: 'scope,
    {
        let (give, jobs) = channel::<Job<'e>>();
        scope.spawn(move || {
            while let Some(job) = soon(&jobs) {
                job();
            }
        });
        give
    }

    /// Does the same to each of some things, of which there are at most one more than helpers: the
    /// first on this thread.
    fn map<T: Send + 'e, R: Send + 'e>(
        &self,
        things: Vec<T>,
        work: impl Fn(T) -> R + Clone + Send + 'e,
    ) -> Vec<R> {
        let mut things = things.into_iter();
        let first = things.next();
        let mut others = Vec::new();
        for (thing, helper) in things.zip(&self.helpers) {
            let (send, receive) = channel();
            let work = work.clone();
            let job = Box::new(move || {
                let done = work(thing);
                // What it holds is free before anybody hears of it.
                drop(work);
                let _ = send.send(done);
            });
            helper.send(job).expect("it waits for jobs");
            others.push(receive);
        }
        let mut done: Vec<R> = first.map(&work).into_iter().collect();
        done.extend(others.iter().map(|other| soon(other).expect("no worker panics")));
        done
    }
}

/// Receives what mostly comes so soon that falling asleep would take longer; `None` if nothing will
/// come any more.
fn soon<T>(receiver: &Receiver<T>) -> Option<T> {
    for _ in 0..SOON {
        match receiver.try_recv() {
            Ok(received) => return Some(received),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    receiver.recv().ok()
}

/// A configuration that was reached, and its number.
type Open<const W: usize> = (Configuration<W>, u32);

struct Waves<'a, 'h, const W: usize> {
    slots: Slots<'a, 'h>,
    /// One for each thread.
    workers: Vec<Worker<'a, 'h, W>>,
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
#[derive(Clone, Copy)]
struct Child<const W: usize> {
    configuration: Configuration<W>,
    from: u32,
    step: Step,
    /// The place of the one that leads to it in the wave, and its own among those that this does.
    key: (u32, u32),
}

/// What a worker finds; room is kept from wave to wave.
struct Found<const W: usize> {
    /// By shard.
    children: Vec<Vec<Child<W>>>,
    /// With their places in the wave.
    end: Option<(u32, (u32, Step))>,
    attempts: Vec<(u32, (u32, Place))>,
}

impl<const W: usize> Default for Found<W> {
    fn default() -> Self {
        let children = (0..SHARDS).map(|_| Vec::new()).collect();
        Found { children, end: None, attempts: Vec::new() }
    }
}

/// Which configurations of a wave are a worker's.
#[derive(Clone, Copy)]
enum Share {
    /// So many, by place.
    Places { from: usize, to: usize },
    /// Those whose states have this remainder: what is known of a state need be known to one.
    States { remainder: usize, workers: usize },
}

impl Share {
    fn contains<const W: usize>(self, i: usize, configuration: &Configuration<W>) -> bool {
        match self {
            Share::Places { from, to } => (from..to).contains(&i),
            Share::States { remainder, workers } => {
                configuration.state.0 as usize % workers == remainder
            }
        }
    }
}

impl<'a, 'h, const W: usize> Waves<'a, 'h, W> {
    /// Looks at configurations before one return, on up to so many threads; gives the step to the
    /// end, if there is one.
    fn advance<'e>(
        &mut self,
        at: u32,
        wave: Vec<Open<W>>,
        wanted: usize,
        crew: &Crew<'e>,
        budget: &'e Budget,
    ) -> Result<Option<(u32, Step)>, Stopped>
    where
        'a: 'e,
        'h: 'e,
    {
        if at > self.furthest {
            self.furthest = at;
            self.attempts.clear();
        }
        let count = wanted.min(self.workers.len());
        let states: usize = self.workers.iter().map(|worker| worker.stepper.machine.count()).sum();
        let length = wave.len();
        let share = |i: usize| match states > MANY_STATES {
            true => Share::States { remainder: i, workers: count },
            false => Share::Places { from: i * length / count, to: (i + 1) * length / count },
        };
        let wave = Arc::new(wave);
        let shares = self.workers.drain(..count).enumerate().map(|(i, worker)| (worker, share(i)));
        let expanded = crew.map(shares.collect(), move |(mut worker, share)| {
            let result = worker.expand(&wave, share, budget);
            (worker, result)
        });
        let (workers, results): (Vec<_>, Vec<_>) = expanded.into_iter().unzip();
        self.workers.splice(..0, workers);
        results.into_iter().collect::<Result<(), _>>()?;
        let workers = &mut self.workers[..count];
        let found: Vec<Found<W>> =
            workers.iter_mut().map(|worker| std::mem::take(&mut worker.found)).collect();
        if let Some((_, end)) = found.iter().filter_map(|found| found.end).min_by_key(|end| end.0) {
            return Ok(Some(end));
        }
        if at == self.furthest {
            let mut attempts: Vec<_> = found.iter().flat_map(|found| &found.attempts).collect();
            attempts.sort_unstable_by_key(|attempt| attempt.0);
            self.attempts.extend(attempts.into_iter().map(|&(_, attempt)| attempt));
            self.attempts.truncate(ATTEMPTS);
        }
        let found = Arc::new(found);
        let each = SHARDS.div_ceil(count);
        let mut parts: Vec<(usize, Vec<Shard<W>>)> = Vec::new();
        while !self.shards.is_empty() {
            let first = self.shards.len().saturating_sub(each);
            parts.push((first, self.shards.split_off(first)));
        }
        parts.reverse();
        let (all, slots) = (Arc::clone(&found), self.slots);
        let sorted = crew.map(parts, move |(first, mut shards)| {
            let new = sort(&mut shards, first, &all, slots);
            (shards, new)
        });
        let mut new: Vec<Child<W>> = Vec::new();
        for (shards, more) in sorted {
            self.shards.extend(shards);
            new.extend(more);
        }
        // Room is kept from wave to wave.
        let found = Arc::into_inner(found).unwrap_or_default();
        for (worker, found) in self.workers.iter_mut().zip(found) {
            worker.found = found;
        }
        // Those of a shard are in order.
        new.sort_by_key(|child| child.key);
        for child in new {
            let open = self.open.entry(child.configuration.at).or_default();
            open.push((child.configuration, self.came.len() as u32));
            self.came.push((child.from, child.step));
        }
        Ok(None)
    }

    /// Finds the return that configurations are to be looked at before next, and whether it is
    /// further; forgets what no other configuration leads to any more.
    fn next(&mut self, at: u32) -> Option<(u32, bool)> {
        if self.open.get(&at).is_some_and(Vec::is_empty) {
            self.open.remove(&at);
        }
        self.forget();
        match self.open.range(at + 1..).next() {
            Some((&next, _)) => Some((next, true)),
            None => self.open.keys().next_back().map(|&next| (next, false)),
        }
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

    /// Estimates the memory that all takes, in bytes.
    fn memory(&self) -> u64 {
        let tables: u64 = self.workers.iter().map(|worker| worker.stepper.machine.memory()).sum();
        let known: usize = self.shards.iter().map(|shard| shard.count).sum();
        let each = size_of::<Configuration<W>>();
        let open: usize = self.open.values().map(Vec::len).sum();
        tables + (known * (2 * each + 24) + open * (each + 8) + self.came.len() * 12) as u64
    }
}

/// A thread's own part in the search.
struct Worker<'a, 'h, const W: usize> {
    stepper: Stepper<'a, 'h, W, SharedStates<'a>>,
    candidates: Vec<Place>,
    next: Vec<(Step, Configuration<W>, bool)>,
    found: Found<W>,
    slots: Slots<'a, 'h>,
    /// By return.
    kinds: FxHashMap<u32, Kinds<W>>,
}

impl<'a, 'h, const W: usize> Worker<'a, 'h, W> {
    fn new(slots: Slots<'a, 'h>, machine: Machine<'a, 'h, SharedStates<'a>>) -> Self {
        Worker {
            stepper: Stepper::new(slots.plan, machine, slots.overwrites),
            candidates: Vec::new(),
            next: Vec::new(),
            found: Found::default(),
            slots,
            kinds: FxHashMap::default(),
        }
    }

    /// Lists what its share of a wave leads to.
    fn expand(&mut self, wave: &[Open<W>], share: Share, budget: &Budget) -> Result<(), Stopped> {
        let found = &mut self.found;
        found.children.iter_mut().for_each(Vec::clear);
        found.attempts.clear();
        found.end = None;
        if self.kinds.len() > MOST_KINDS {
            self.kinds.clear();
        }
        let mut looked_at = 0;
        for (i, (configuration, number)) in wave.iter().enumerate() {
            if !share.contains(i, configuration) {
                continue;
            }
            looked_at += 1;
            if u64::is_multiple_of(looked_at, PATIENCE) {
                budget.check()?;
            }
            let i = i as u32;
            let mut unexplained = self.stepper.hopeless(configuration);
            if unexplained.is_none() {
                self.next.clear();
                self.stepper.expand(configuration, &mut self.candidates, &mut self.next);
                if self.next.is_empty() {
                    unexplained = Some(self.stepper.returning(configuration));
                }
                for (k, &(step, next, is_over)) in self.next.iter().enumerate() {
                    if is_over {
                        found.end = Some((i, (*number, step)));
                        return Ok(());
                    }
                    let kinds = self.kinds.entry(next.at);
                    let kinds = kinds.or_insert_with(|| Kinds::new(self.slots, next.at));
                    let shard = &mut found.children[shard_of(&next, kinds)];
                    let key = (i, k as u32);
                    shard.push(Child { configuration: next, from: *number, step, key });
                }
            }
            if let Some(unexplained) = unexplained.filter(|_| found.attempts.len() < ATTEMPTS) {
                found.attempts.push((i, (*number, unexplained)));
            }
        }
        Ok(())
    }
}

/// Gives the shard that a configuration belongs to, with all that it may give way to.
fn shard_of<const W: usize>(configuration: &Configuration<W>, kinds: &Kinds<W>) -> usize {
    let rest = configuration.linearized.difference(&kinds.pure).difference(&kinds.useful);
    // The table inside uses other bits.
    (FxBuildHasher.hash_one((configuration.state, rest)) >> 40) as usize % SHARDS
}

/// Finds what is new for some shards, in the order of the wave.
fn sort<const W: usize>(
    shards: &mut [Shard<W>],
    first: usize,
    found: &[Found<W>],
    slots: Slots<'_, '_>,
) -> Vec<Child<W>> {
    let mut new = Vec::new();
    for (i, shard) in shards.iter_mut().enumerate() {
        let mut heads: Vec<_> =
            found.iter().map(|found| found.children[first + i].iter().peekable()).collect();
        loop {
            let next = heads.iter_mut().filter_map(|head| Some((head.peek()?.key, head)));
            let Some((_, head)) = next.min_by_key(|next| next.0) else { break };
            let child = head.next().expect("it was looked at");
            if shard.insert(&child.configuration, slots) {
                new.push(*child);
            }
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
