//! Linearizability by just-in-time search (Lowe 2017, after Wing and Gong 1993).
//!
//! Returns are taken in order. When one comes whose operation is not linearized yet, operations
//! that are open there are linearized one by one until it is. A configuration is the next such
//! return, which of the open operations are linearized, and the state of the object; each is
//! explored once. Only what is open is remembered, so a long history with few operations at a time
//! has small configurations.
//!
//! What is pruned, each time because another branch that is explored can do whatever this one can:
//! - An operation that changes no state is linearized as soon as its return is right.
//! - Of open operations with the same call and the same return, the one that returns first is
//!   linearized first; of pending ones with the same call, the one called first.
//! - A pending operation is linearized only if it changes the state, and a configuration that a
//!   failed one differs from only in having used up more pending operations fails too.
//! - A configuration from which an operation that changes no state cannot return what it did,
//!   whatever is linearized before it, is left at once, if the specification can tell. That is
//!   asked for those that are open, and for as many that return next.
//!
//! - Only those operations are linearized next that may matter to the one that returns, if they come
//!   before it, or to another one of them, as far as the specification can tell ([`Stepper::choose`]).
//!   That takes its time, so it is asked when a search turns out to be no easy one.
//!
//! The third of these must not be circular: of the configurations that lead to the end take one
//! with the fewest steps to go. Its next one was explored, or given up in favour of one with at
//! most as many to go; both have fewer. So the search finds the end if there is a way.
//!
//! The furthest return that was reached ends the shortest prefix of the history that is not
//! linearizable: every way fails there, and one came as far.
//!
//! A search that takes long is begun again, by waves ([`crate::waves`]) and then on all threads
//! ([`crate::together`]).
//!
//! Cost: exponential in the number of operations that are open at once, linear in the rest.

use std::sync::atomic::{AtomicUsize, Ordering};

use consistory_spec::State;
use consistory_verdict::{Budget, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bits::Bits;
use crate::calls::Place;
use crate::machine::{Interned, Machine, SharedStates, States};
use crate::memory::{BYTES_PER_ALLOCATION, Bytes};
use crate::overwrites::{any_overwrites, is_plain};
use crate::steps::{Configuration, Plan, Stepper};
use crate::task::Task;
use crate::together::{Failed, search_together};
use crate::waves::search_by_waves;

/// How many operations a small history has at most.
const SMALL: u64 = 64;
/// How many maximal attempts are kept.
pub(crate) const ATTEMPTS: usize = 8;
/// How many steps are taken between two looks at the clock.
pub(crate) const PATIENCE: u64 = 1024;
/// How many steps a search takes for each operation before it asks which ones matter to which.
const EASY: u64 = 8;
/// The most operations that may be open at once.
const MOST_OPEN: usize = 256 * 64;

/// What the search finds.
pub(crate) enum Linearization {
    /// The operations in order, each with the operation at whose return it was linearized.
    Found(Vec<(Place, Place)>),
    /// There is none.
    Stuck {
        /// The operation that cannot be linearized by its return; nothing that returned before it
        /// is to blame alone.
        stuck: Place,
        /// Attempts that came as far as possible: what was linearized, in order, and an operation
        /// that cannot come next.
        attempts: Vec<(Vec<Place>, Place)>,
    },
}

/// The threads that a judgement may take beside its own.
pub(crate) struct Threads {
    free: AtomicUsize,
    /// How many steps a search takes on one thread, one way and then another, before it asks for
    /// more.
    pub(crate) alone: u64,
}

impl Threads {
    /// Makes so many threads, the caller's included, that join a search after some steps.
    pub(crate) fn new(jobs: usize, alone: u64) -> Self {
        Threads { free: AtomicUsize::new(jobs.max(1) - 1), alone }
    }

    /// Leaves the caller's own thread to others while it waits for them.
    pub(crate) fn leave(&self) {
        self.free.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the caller's own thread back; nobody else has any.
    pub(crate) fn come_back(&self) {
        self.free.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes up to `most` threads, which are free again when what is returned goes.
    pub(crate) fn take(&self, most: usize) -> Taken<'_> {
        let mut count = 0;
        // It always gives something to store, so it cannot fail.
        let _ = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
            count = free.min(most);
            Some(free - count)
        });
        Taken { threads: self, count }
    }
}

/// Threads that were taken.
pub(crate) struct Taken<'a> {
    threads: &'a Threads,
    pub(crate) count: usize,
}

impl Taken<'_> {
    /// Gives one of them back.
    pub(crate) fn give_back(&mut self) {
        self.count -= 1;
        self.threads.free.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.threads.free.fetch_add(self.count, Ordering::Relaxed);
    }
}

/// Searches for a linearization of a task's operations.
pub(crate) fn linearize(
    task: &Task<'_>,
    budget: &Budget,
    threads: &Threads,
) -> Result<Linearization, Stopped> {
    let found = linearize_within(task, budget, threads, None)?;
    Ok(found.expect("a search without a limit comes to its end"))
}

/// Searches for a linearization of a task's operations in so many steps, if there is a limit; `None`
/// if these were too few.
pub(crate) fn linearize_within(
    task: &Task<'_>,
    budget: &Budget,
    threads: &Threads,
    limit: Option<u64>,
) -> Result<Option<Linearization>, Stopped> {
    let plan = Plan::new(task, budget)?;
    match plan.timeline.slots.div_ceil(64) {
        0..=1 => search::<1>(&plan, budget, threads, limit),
        2 => search::<2>(&plan, budget, threads, limit),
        3..=4 => search::<4>(&plan, budget, threads, limit),
        5..=16 => search::<16>(&plan, budget, threads, limit),
        17..=64 => search::<64>(&plan, budget, threads, limit),
        65..=256 => search::<256>(&plan, budget, threads, limit),
        _ => Err(Stopped::Size { operations: plan.timeline.slots, limit: MOST_OPEN }),
    }
}

/// Searches depth first and, if that takes long and there is no limit, in other ways.
fn search<const W: usize>(
    plan: &Plan<'_, '_>,
    budget: &Budget,
    threads: &Threads,
    limit: Option<u64>,
) -> Result<Option<Linearization>, Stopped> {
    // A long history takes its time without being hard. Where waves leave little to choose, they are
    // not for hard histories alone.
    let calls = plan.task.len() as u64;
    let most = threads.alone.saturating_mul(1 + calls / 1000);
    let most = if calls > SMALL && is_plain(plan.task, &plan.timeline) {
        most.min(4 * SMALL)
    } else {
        most
    };
    match Search::<W>::new(plan, budget).run(limit.unwrap_or(most))? {
        None if limit.is_none() => {}
        found => return Ok(found),
    }
    // What is known so far is little beside what is to come. Where operations overwrite, waves know
    // more; elsewhere they are tried for a while, as they take wrong guesses back sooner.
    let in_waves = match any_overwrites(plan.task, &plan.timeline) {
        true => u64::MAX,
        false => most,
    };
    if let Some(found) = search_by_waves::<W>(plan, budget, in_waves)? {
        return Ok(Some(found));
    }
    search_together::<W>(plan, budget, threads).map(Some)
}

/// A configuration that is being explored.
struct Frame<const W: usize> {
    configuration: Configuration<W>,
    /// Where its candidates start; the next one is the last, and what is before is of the frames
    /// below.
    candidates_from: usize,
    /// How long the linearization was before this frame added to it.
    length: usize,
    has_child: bool,
}

/// A search, depth first.
pub(crate) struct Search<'a, 'h, const W: usize, S = Interned<State>> {
    plan: &'a Plan<'a, 'h>,
    stepper: Stepper<'a, 'h, W, S>,
    budget: &'a Budget,
    /// The slots of pending operations.
    pending_slots: Bits<W>,
    seen: FxHashSet<Configuration<W>>,
    /// The configurations explored, without their pending operations, and for each the minimal
    /// sets of pending operations that were used up.
    used_up: FxHashMap<Configuration<W>, Vec<Bits<W>>>,
    stack: Vec<Frame<W>>,
    candidates: Vec<Place>,
    /// Whether it is worth asking which operations matter to which.
    is_hard: bool,
    furthest: u32,
    attempts: Vec<(Vec<Place>, Place)>,
    /// What is known of how far configurations lead, if all of them fail.
    failed: Option<&'a Failed<W>>,
}

impl<'a, 'h, const W: usize> Search<'a, 'h, W> {
    fn new(plan: &'a Plan<'a, 'h>, budget: &'a Budget) -> Self {
        Search::with_machine(plan, budget, Machine::new(plan.task))
    }
}

impl<'a, 'h, const W: usize> Search<'a, 'h, W, SharedStates<'a>> {
    /// Looks once more for attempts that came furthest, when all configurations are known to fail.
    pub(crate) fn for_attempts(
        plan: &'a Plan<'a, 'h>,
        budget: &'a Budget,
        machine: Machine<'a, 'h, SharedStates<'a>>,
        failed: &'a Failed<W>,
        furthest: u32,
    ) -> Result<Linearization, Stopped> {
        let mut search = Search::with_machine(plan, budget, machine);
        (search.failed, search.furthest) = (Some(failed), furthest);
        Ok(search.run(u64::MAX)?.expect("there is no limit"))
    }
}

impl<'a, 'h, const W: usize, S: States> Search<'a, 'h, W, S> {
    fn with_machine(
        plan: &'a Plan<'a, 'h>,
        budget: &'a Budget,
        machine: Machine<'a, 'h, S>,
    ) -> Self {
        Search {
            plan,
            stepper: Stepper::new(plan, machine, None),
            budget,
            pending_slots: (0..plan.timeline.pending.len()).collect(),
            seen: FxHashSet::default(),
            used_up: FxHashMap::default(),
            stack: Vec::new(),
            candidates: Vec::new(),
            is_hard: false,
            furthest: 0,
            attempts: Vec::new(),
            failed: None,
        }
    }

    /// Searches until so many steps were taken; `None` if that is not the end.
    fn run(mut self, most: u64) -> Result<Option<Linearization>, Stopped> {
        let (start, is_over) = self.stepper.start();
        if is_over {
            return Ok(Some(Linearization::Found(self.stepper.order)));
        }
        let easy = EASY * self.plan.task.len() as u64;
        self.is_hard = self.failed.is_some();
        self.explore(start, 0);
        let mut steps = 0;
        while let Some(frame) = self.stack.last() {
            if self.failed.is_some() && self.attempts.len() == ATTEMPTS {
                // They can come no further.
                break;
            }
            if steps >= most {
                return Ok(None);
            }
            steps += 1;
            self.is_hard |= steps > easy;
            if steps.is_multiple_of(PATIENCE) {
                self.budget.check()?;
                self.budget.reserve(self.memory())?;
            }
            let configuration = frame.configuration;
            if self.candidates.len() == frame.candidates_from {
                let length = frame.length;
                if !frame.has_child && configuration.at == self.furthest {
                    self.keep_attempt(self.plan.timeline.returns[configuration.at as usize]);
                }
                self.stepper.order.truncate(length);
                self.stack.pop();
                continue;
            }
            let candidate = self.candidates.pop().expect("there is one");
            let length = self.stepper.order.len();
            let followed = self.stepper.follow(&configuration, candidate);
            let Some((next, is_over)) = followed else { continue };
            if is_over {
                return Ok(Some(Linearization::Found(self.stepper.order)));
            }
            if !self.leads_far(&next) || !self.is_new(&next) {
                self.stepper.order.truncate(length);
                continue;
            }
            self.stack.last_mut().expect("a candidate is of a frame").has_child = true;
            if let Some(hopeless) = self.stepper.hopeless(&next) {
                self.reach(next.at);
                if next.at == self.furthest {
                    self.keep_attempt(hopeless);
                }
                self.stepper.order.truncate(length);
            } else {
                self.explore(next, length);
            }
        }
        let stuck = self.plan.timeline.returns[self.furthest as usize];
        Ok(Some(Linearization::Stuck { stuck, attempts: self.attempts }))
    }

    /// Says whether a configuration may lead as far as any, as far as that is known.
    fn leads_far(&self, configuration: &Configuration<W>) -> bool {
        let reach = self.failed.and_then(|failed| failed.reach(configuration));
        reach.is_none_or(|reach| reach >= self.furthest)
    }

    /// Says whether a configuration is none that was explored, or that one explored stands for.
    fn is_new(&mut self, configuration: &Configuration<W>) -> bool {
        if self.plan.timeline.pending.is_empty() {
            return self.seen.insert(*configuration);
        }
        let used = configuration.linearized.intersection(&self.pending_slots);
        let linearized = configuration.linearized.difference(&self.pending_slots);
        let known = self.used_up.entry(Configuration { linearized, ..*configuration }).or_default();
        if known.iter().any(|fewer| fewer.is_subset(&used)) {
            return false;
        }
        known.retain(|more| !used.is_subset(more));
        known.push(used);
        true
    }

    /// Goes on to a configuration.
    fn explore(&mut self, configuration: Configuration<W>, length: usize) {
        self.reach(configuration.at);
        let candidates_from = self.candidates.len();
        self.stepper.list(&configuration, &mut self.candidates);
        if self.is_hard {
            self.stepper.choose(&configuration, &mut self.candidates, candidates_from);
        }
        self.stack.push(Frame { configuration, candidates_from, length, has_child: false });
    }

    /// Notes how far the search came.
    fn reach(&mut self, at: u32) {
        if at > self.furthest {
            self.furthest = at;
            self.attempts.clear();
        }
    }

    fn keep_attempt(&mut self, unexplained: Place) {
        if self.attempts.len() < ATTEMPTS {
            let order = self.stepper.order.iter().map(|&(place, _)| place).collect();
            self.attempts.push((order, unexplained));
        }
    }

    /// Estimates the memory that the tables take, in bytes.
    fn memory(&self) -> u64 {
        // A list of sets has room for four.
        let list = 4 * size_of::<Bits<W>>() as u64 + BYTES_PER_ALLOCATION;
        let used_up = self.used_up.table_bytes() + self.used_up.len() as u64 * list;
        let stack = self.stack.table_bytes() + self.candidates.table_bytes();
        let attempts = (self.attempts.len() * self.plan.task.len() * size_of::<Place>()) as u64;
        self.seen.table_bytes() + used_up + stack + attempts + self.stepper.machine.memory()
    }
}
