//! One search by several workers: the same configurations as in [`crate::linearize`], each explored
//! once, by one of them.
//!
//! Whoever reaches a configuration first puts it into a table that all share, and on a stack of
//! configurations that are still to be explored; others pass it by. A worker takes from the top of
//! its stack, and gives what lies at the bottom, which has most behind it, to those that have
//! nothing to do. If one finds the end, all stop. If nobody has anything left, every configuration
//! was explored, or one that can do whatever it can, and the argument is the same as for one worker:
//! it does not ask for an order.
//!
//! *What is said of a rejection is the same for any number of workers.* How far one can come does
//! not depend on the order; who came there first, and how, does. So each configuration knows who
//! reached it first, and workers note who else would have. From those at the furthest return one
//! goes back along all of these, and then [`Search`] once more from the beginning, in its own order,
//! but only to what leads there: without pending operations that is straight ahead. With pending
//! operations, what gave way to a configuration that leads there may not lead there itself; then the
//! search comes back, as always.
//!
//! Memory: beside the configurations, for each one number and for each way to it that was not the
//! first two.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use consistory_verdict::{Budget, Stopped};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::bits::Bits;
use crate::calls::Place;
use crate::linearize::{Configuration, Ended, Linearization, PATIENCE, Search};
use crate::machine::{Machine, SHARDS, SharedStates, StateTable, shard_of};
use crate::task::Task;
use crate::timeline::Timeline;

/// How many configurations are given away at most at a time.
const GIFT: usize = 64;

/// A configuration that was reached, numbered.
type Number = u32;

/// Who reached the first configuration.
const NOBODY: Number = Number::MAX;

/// Searches for a linearization with so many workers, of which one is the caller.
pub(crate) fn search_together<const W: usize>(
    task: &Task<'_>,
    timeline: &Timeline,
    budget: &Budget,
    workers: usize,
) -> Result<Linearization, Stopped> {
    let states = StateTable::new();
    let machine = || Machine::with_states(task, SharedStates::new(&states));
    let new_search = || Search::<W, _>::new(task, timeline, budget, machine());
    let mut first = new_search();
    let (start, is_over) = first.start();
    if is_over {
        return Ok(Linearization::Found(first.order));
    }
    let shared = Shared {
        reached: Reached::new(*first.pending_slots()),
        pool: Pool::new(workers),
        memory: (0..workers).map(|_| AtomicU64::new(0)).collect(),
        budget,
    };
    shared.pool.lock().open.push(shared.reached.insert(&start, NOBODY).opened(start));
    let work = |index: usize, search| {
        let worker = Worker {
            index,
            shared: &shared,
            search,
            stack: VecDeque::new(),
            candidates: Vec::new(),
            steps: 0,
            noted: Noted { furthest: start.at, ..Noted::default() },
        };
        worker.work()
    };
    let noted: Vec<Result<Noted, Stopped>> = std::thread::scope(|scope| {
        let (work, new_search) = (&work, &new_search);
        let others: Vec<_> =
            (1..workers).map(|index| scope.spawn(move || work(index, new_search()))).collect();
        let mut noted = vec![work(0, first)];
        noted
            .extend(others.into_iter().map(|other| other.join().expect("a search does not panic")));
        noted
    });
    let found = shared.pool.lock().found;
    if let Some((last, candidate)) = found {
        return Ok(Linearization::Found(shared.reached.way(new_search(), last, candidate)));
    }
    let noted: Vec<Noted> = noted.into_iter().collect::<Result<_, _>>()?;
    let furthest = noted.iter().map(|noted| noted.furthest).max().unwrap_or(start.at);
    let leads = shared.reached.leads_to(furthest, &noted);
    drop(noted);
    let guide = Guide { furthest, reached: &shared.reached, leads: &leads };
    let mut search = new_search().guided(guide);
    search.begin();
    search.go_on(u64::MAX).map(|ended| match ended {
        Ended::Found => Linearization::Found(search.order),
        Ended::Stuck | Ended::Paused => search.stuck(true),
    })
}

/// What the workers share.
struct Shared<'a, const W: usize> {
    reached: Reached<W>,
    pool: Pool<W>,
    /// How much memory each worker is responsible for.
    memory: Vec<AtomicU64>,
    budget: &'a Budget,
}

/// A configuration that is still to be explored.
type Open<const W: usize> = (Number, Configuration<W>);

/// What one worker has seen.
#[derive(Default)]
struct Noted {
    /// The furthest return.
    furthest: u32,
    /// Who reached, in one step, a configuration at that return that was not worth exploring.
    nearly: Vec<Number>,
    /// Configurations that were reached again, or gave way, and from where.
    again: Vec<(Number, Number)>,
    /// How many configurations it reached first.
    fresh: u64,
}

struct Worker<'s, 'a, 'h, const W: usize> {
    index: usize,
    shared: &'s Shared<'a, W>,
    search: Search<'a, 'h, W, SharedStates<'a>>,
    stack: VecDeque<Open<W>>,
    candidates: Vec<Place>,
    steps: u64,
    noted: Noted,
}

impl<const W: usize> Worker<'_, '_, '_, W> {
    fn work(mut self) -> Result<Noted, Stopped> {
        // Whatever ends this worker ends all: nobody is left waiting.
        let _end = End(&self.shared.pool);
        loop {
            let Some(open) = self.stack.pop_back() else {
                if self.shared.pool.take(&mut self.stack) {
                    continue;
                }
                return Ok(self.noted);
            };
            if self.shared.pool.is_over.load(Ordering::Relaxed) {
                return Ok(self.noted);
            }
            if let Some(candidate) = self.explore(open)? {
                self.shared.pool.lock().found.get_or_insert((open.0, candidate));
                return Ok(self.noted);
            }
            if self.stack.len() > 1 && self.shared.pool.waiting.load(Ordering::Relaxed) > 0 {
                let gift = (self.stack.len() / 2).min(GIFT);
                self.shared.pool.give(self.stack.drain(..gift));
            }
        }
    }

    /// Explores a configuration; gives the candidate that leads to the end, if one does.
    fn explore(&mut self, (number, from): Open<W>) -> Result<Option<Place>, Stopped> {
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        self.search.list(&from, &mut candidates);
        for &candidate in &candidates {
            self.steps += 1;
            if self.steps.is_multiple_of(PATIENCE) {
                self.check()?;
            }
            self.search.order.clear();
            let Some((next, is_over)) = self.search.follow(&from, candidate) else { continue };
            if is_over {
                return Ok(Some(candidate));
            }
            if self.search.hopeless(&next).is_some() {
                self.reach(next.at);
                if next.at == self.noted.furthest {
                    self.noted.nearly.push(number);
                }
                continue;
            }
            match self.shared.reached.insert(&next, number) {
                Insertion::New(fresh) => {
                    self.reach(next.at);
                    self.noted.fresh += 1;
                    self.stack.push_back((fresh, next));
                }
                Insertion::Known(known) => self.noted.again.push((known, number)),
            }
        }
        self.candidates = candidates;
        Ok(None)
    }

    fn reach(&mut self, at: u32) {
        if at > self.noted.furthest {
            self.noted.furthest = at;
            self.noted.nearly.clear();
        }
    }

    /// Looks at the clock and the memory that all take together.
    fn check(&self) -> Result<(), Stopped> {
        self.shared.budget.check()?;
        let each = size_of::<Configuration<W>>() as u64 + 40;
        let mine = self.noted.fresh * each
            + self.noted.again.len() as u64 * 8
            + self.search.memory()
            + (self.stack.len() * size_of::<Open<W>>()) as u64;
        self.shared.memory[self.index].store(mine, Ordering::Relaxed);
        let all = self.shared.memory.iter().map(|memory| memory.load(Ordering::Relaxed)).sum();
        self.shared.budget.reserve(all)
    }
}

/// Work for those that have none.
struct Pool<const W: usize> {
    workers: usize,
    inside: Mutex<Inside<W>>,
    wake: Condvar,
    /// How many workers wait.
    waiting: AtomicUsize,
    is_over: AtomicBool,
}

struct Inside<const W: usize> {
    open: Vec<Open<W>>,
    /// The configuration and the candidate behind which no return is left.
    found: Option<(Number, Place)>,
}

impl<const W: usize> Pool<W> {
    fn new(workers: usize) -> Self {
        Pool {
            workers,
            inside: Mutex::new(Inside { open: Vec::new(), found: None }),
            wake: Condvar::new(),
            waiting: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside<W>> {
        self.inside.lock().expect("no worker panics")
    }

    fn give(&self, gift: impl Iterator<Item = Open<W>>) {
        self.lock().open.extend(gift);
        self.wake.notify_all();
    }

    /// Waits for work; says whether there is some.
    fn take(&self, stack: &mut VecDeque<Open<W>>) -> bool {
        let mut inside = self.lock();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        loop {
            if self.is_over.load(Ordering::Relaxed) {
                return false;
            }
            if !inside.open.is_empty() {
                // Others may wait too.
                let keep = inside.open.len() / 2;
                stack.extend(inside.open.drain(keep..));
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
            // It changes only behind the lock, so the last one to come sees it.
            if self.waiting.load(Ordering::Relaxed) == self.workers {
                return false;
            }
            inside = self.wake.wait(inside).expect("no worker panics");
        }
    }
}

/// Ends the work of all when it goes.
struct End<'a, const W: usize>(&'a Pool<W>);

impl<const W: usize> Drop for End<'_, W> {
    fn drop(&mut self) {
        // Behind the lock: who is about to wait sees it, or is woken.
        let _inside = self.0.inside.lock();
        self.0.is_over.store(true, Ordering::Relaxed);
        self.0.wake.notify_all();
    }
}

/// Whether a configuration was reached before.
enum Insertion {
    New(Number),
    /// It was, or one that can do whatever it can.
    Known(Number),
}

impl Insertion {
    fn opened<const W: usize>(self, configuration: Configuration<W>) -> Open<W> {
        match self {
            Insertion::New(number) | Insertion::Known(number) => (number, configuration),
        }
    }
}

/// The configurations that were reached.
struct Reached<const W: usize> {
    shards: Vec<Mutex<Shard<W>>>,
    pending_slots: Bits<W>,
}

/// Those whose hashes have some bits in common; their pending operations do not count for these.
#[derive(Default)]
struct Shard<const W: usize> {
    configurations: Vec<Configuration<W>>,
    /// Who reached each first.
    from: Vec<Number>,
    /// The last one of each hash, and for each the one before it of the same hash.
    last: FxHashMap<u64, u32>,
    before: Vec<u32>,
}

impl<const W: usize> Shard<W> {
    /// Iterates over those of a hash.
    fn of_hash(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let last = self.last.get(&hash).copied();
        std::iter::successors(last, |&i| {
            Some(self.before[i as usize]).filter(|&before| before != NOBODY)
        })
    }
}

fn number(shard: usize, index: u32) -> Number {
    index * SHARDS as u32 + shard as u32
}

fn place(number: Number) -> (usize, usize) {
    (number as usize % SHARDS, number as usize / SHARDS)
}

impl<const W: usize> Reached<W> {
    fn new(pending_slots: Bits<W>) -> Self {
        Reached { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), pending_slots }
    }

    fn shard(&self, shard: usize) -> MutexGuard<'_, Shard<W>> {
        self.shards[shard].lock().expect("no worker panics")
    }

    fn hash(&self, configuration: &Configuration<W>) -> u64 {
        FxBuildHasher.hash_one(configuration.divided(&self.pending_slots).0)
    }

    /// Says whether one configuration can do whatever the other can.
    fn stands_for(&self, known: &Configuration<W>, other: &Configuration<W>) -> bool {
        let (key, used) = other.divided(&self.pending_slots);
        let (known, fewer) = known.divided(&self.pending_slots);
        known == key && fewer.is_subset(&used)
    }

    fn insert(&self, configuration: &Configuration<W>, from: Number) -> Insertion {
        let hash = self.hash(configuration);
        let at = shard_of(hash);
        let shard = &mut *self.shard(at);
        let known = shard
            .of_hash(hash)
            .find(|&known| self.stands_for(&shard.configurations[known as usize], configuration));
        if let Some(known) = known {
            return Insertion::Known(number(at, known));
        }
        let fresh = shard.configurations.len() as u32;
        let before = shard.last.insert(hash, fresh).unwrap_or(NOBODY);
        shard.configurations.push(*configuration);
        shard.from.push(from);
        shard.before.push(before);
        Insertion::New(number(at, fresh))
    }

    /// Finds the operations that lead to a configuration, and behind it to the end.
    fn way<'h>(
        &self,
        mut search: Search<'_, 'h, W, SharedStates<'_>>,
        last: Number,
        candidate: Place,
    ) -> Vec<(Place, Place)> {
        let mut way: Vec<Configuration<W>> = Vec::new();
        let mut at = last;
        while at != NOBODY {
            let (shard, index) = place(at);
            let shard = self.shard(shard);
            way.push(shard.configurations[index]);
            at = shard.from[index];
        }
        way.reverse();
        search.start();
        let mut candidates = Vec::new();
        for step in way.windows(2) {
            candidates.clear();
            search.list(&step[0], &mut candidates);
            let length = search.order.len();
            for &candidate in &candidates {
                search.order.truncate(length);
                let next = search.follow(&step[0], candidate);
                if next.is_some_and(|(next, _)| next == step[1]) {
                    break;
                }
            }
        }
        way.last().and_then(|last| search.follow(last, candidate));
        search.order
    }

    /// Finds the configurations from which the furthest return can be reached; of those for which
    /// others stand, it may be more.
    fn leads_to(&self, furthest: u32, noted: &[Noted]) -> Leads {
        let shards: Vec<MutexGuard<'_, Shard<W>>> = (0..SHARDS).map(|i| self.shard(i)).collect();
        let longest = shards.iter().map(|shard| shard.configurations.len()).max().unwrap_or(0);
        let mut leads = Leads(vec![false; longest * SHARDS]);
        // For each configuration where those start from which it was reached again.
        let mut starts: Vec<u32> = vec![0; longest * SHARDS + 1];
        let again = || noted.iter().flat_map(|noted| &noted.again);
        again().for_each(|&(to, _)| starts[to as usize + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut before: Vec<Number> = vec![0; starts.last().map_or(0, |&end| end as usize)];
        for &(to, from) in again() {
            let at = &mut next[to as usize];
            before[*at as usize] = from;
            *at += 1;
        }
        drop(next);
        let mut work: Vec<Number> = Vec::new();
        for (i, shard) in shards.iter().enumerate() {
            let there = shard.configurations.iter().enumerate();
            let there = there.filter(|(_, configuration)| configuration.at == furthest);
            work.extend(there.map(|(index, _)| number(i, index as u32)));
        }
        let nearly = noted.iter().filter(|noted| noted.furthest == furthest);
        work.extend(nearly.flat_map(|noted| &noted.nearly));
        while let Some(at) = work.pop() {
            if at == NOBODY || std::mem::replace(&mut leads.0[at as usize], true) {
                continue;
            }
            let (shard, index) = place(at);
            work.push(shards[shard].from[index]);
            let range = starts[at as usize] as usize..starts[at as usize + 1] as usize;
            work.extend(&before[range]);
        }
        leads
    }
}

/// For each configuration whether it leads to the furthest return.
struct Leads(Vec<bool>);

/// What is known of configurations behind a search by several workers.
pub(crate) struct Guide<'a, const W: usize> {
    /// The furthest return.
    pub(crate) furthest: u32,
    reached: &'a Reached<W>,
    leads: &'a Leads,
}

impl<const W: usize> Clone for Guide<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<const W: usize> Copy for Guide<'_, W> {}

impl<const W: usize> Guide<'_, W> {
    /// Says whether a configuration cannot lead to the furthest return: one that can do whatever it
    /// can does not.
    pub(crate) fn ends_early(&self, configuration: &Configuration<W>) -> bool {
        let hash = self.reached.hash(configuration);
        let at = shard_of(hash);
        let shard = self.reached.shard(at);
        shard.of_hash(hash).any(|known| {
            self.reached.stands_for(&shard.configurations[known as usize], configuration)
                && !self.leads.0[number(at, known) as usize]
        })
    }
}
