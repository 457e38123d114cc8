//! A long depth-first search on all free threads.
//!
//! The configurations, steps and pruning are those of [`crate::just_in_time`]. Each thread searches
//! from the first configuration on. The threads share every configuration that is known to fail
//! because all its successors were explored:
//!
//! ```text
//! first thread    tries the operation that returns next first, then the others in their order
//! second thread   tries them in the opposite order
//! other threads   begin somewhere between
//! ```
//!
//! So the first and the second thread meet halfway. Two threads explore the same configuration only
//! if both reach it before either has finished it, and even then they begin with different
//! successors. No thread waits for another. When one thread finishes the first configuration, the
//! search ends.
//!
//! The result is the same for any number of threads. A linearization is always the one that the
//! first thread would find alone; the other threads only contribute failed configurations, and
//! their own linearizations are dropped. For a history without a linearization, the search records
//! how far each configuration leads; the furthest attempts are then searched again, in the order of
//! the first thread.
//!
//! A configuration fails if a failed one differs from it only in having used fewer pending
//! operations. It also fails if such a configuration is still on the thread's stack; but the
//! consequence for the configurations in between holds only when the thread leaves that
//! configuration, and is not shared before (as in Tarjan's search for strongly connected
//! components).
//!
//! Memory: all explored configurations.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use consistory_verdict::{Budget, Bytes, Stopped};
use consistory_work::spawn_scoped;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::calls::CallIndex;
use crate::just_in_time::{JustInTimeSearch, Linearization, STEPS_PER_CHECK, Threads};
use crate::machine::{SHARDS, SharedStates, StateTable, TransitionTable, shard_of};
use crate::plain_steps::{Configuration, PlainSteps, Reached, StepPlan};
use crate::small_set::SmallSet;

/// Searches for a linearization.
pub(crate) fn search_in_parallel<const W: usize>(
    plan: &StepPlan<'_, '_>,
    budget: &Budget,
    threads: &Threads,
) -> Result<Linearization, Stopped> {
    let states = StateTable::new();
    let found = search::<W>(plan, budget, threads, &states);
    states.discard();
    found
}

fn search<const W: usize>(
    plan: &StepPlan<'_, '_>,
    budget: &Budget,
    threads: &Threads,
    states: &StateTable,
) -> Result<Linearization, Stopped> {
    let common = Common {
        plan,
        budget,
        states,
        failed: Failed::<W>::new(plan),
        memory: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        end: Mutex::new(None),
    };
    let mut taken = Vec::new();
    std::thread::scope(|scope| {
        let mut helpers = 0;
        let end = ParallelSearch::new(&common, Way(0)).run(|| {
            let more = threads.take(usize::MAX);
            for _ in 0..more.count {
                helpers += 1;
                let (common, way) = (&common, Way(helpers));
                // If a thread cannot be started, the search runs without it.
                let _ = spawn_scoped(scope, move || {
                    let end = ParallelSearch::new(common, way).run(|| {});
                    // Its linearization is not the one that the first thread would have found.
                    if !matches!(end, Ok(Some(End::Found(_)))) {
                        common.finish(end);
                    }
                });
            }
            taken.push(more);
        });
        common.finish(end);
    });
    let end = common.end.into_inner().expect("no thread panics");
    match end.expect("the first thread comes to an end")? {
        End::Found(order) => Ok(Linearization::Found(order)),
        End::Stuck { furthest } => {
            let machine = TransitionTable::with_states(plan.task, SharedStates::new(states));
            JustInTimeSearch::for_attempts(plan, budget, machine, &common.failed, furthest)
        }
    }
}

/// The end of a search.
enum End {
    Found(Vec<(CallIndex, CallIndex)>),
    Stuck { furthest: u32 },
}

/// Data shared by the threads.
struct Common<'a, 'h, const W: usize> {
    plan: &'a StepPlan<'a, 'h>,
    budget: &'a Budget,
    states: &'a StateTable,
    failed: Failed<W>,
    /// Estimate of the total memory in bytes.
    memory: AtomicU64,
    is_over: AtomicBool,
    end: Mutex<Option<Result<End, Stopped>>>,
}

impl<const W: usize> Common<'_, '_, W> {
    /// Ends the search, if a thread has a result and none had one before.
    fn finish(&self, end: Result<Option<End>, Stopped>) {
        if let Some(end) = end.transpose() {
            self.end.lock().expect("no thread panics").get_or_insert(end);
            self.is_over.store(true, Ordering::Relaxed);
        }
    }
}

/// Configuration that is being explored.
struct ParallelFrame<const W: usize> {
    configuration: Configuration<W>,
    /// Index of the first candidate; the last one is tried next.
    candidates_from: usize,
    /// Length of the linearization before this frame.
    length: usize,
    /// Upper bound, as far as the configuration was explored, on the furthest return reached from
    /// it (as a rank).
    reach: u32,
    /// Lowest frame whose failure this frame's failure depends on; the frame itself, if there is
    /// none.
    low: usize,
    /// Index of the first configuration above it whose failure is not yet proved.
    unproved_from: usize,
}

/// Configuration that fails if a frame that is still being explored does.
struct Unproved<const W: usize> {
    configuration: Configuration<W>,
    low: usize,
}

/// Order in which candidates are tried: as listed, reversed, or rotated.
#[derive(Clone, Copy)]
struct Way(usize);

impl Way {
    /// Arranges candidates so that the one to try first comes last.
    fn arrange(self, candidates: &mut [CallIndex]) {
        if self.0 % 2 == 1 {
            candidates.reverse();
        }
        if !candidates.is_empty() {
            candidates.rotate_left(self.0 / 2 % candidates.len());
        }
    }
}

/// The state of one thread.
struct ParallelSearch<'a, 'h, const W: usize> {
    common: &'a Common<'a, 'h, W>,
    way: Way,
    steps: PlainSteps<'a, 'h, W, SharedStates<'a>>,
    stack: Vec<ParallelFrame<W>>,
    candidates: Vec<CallIndex>,
    unproved: Vec<Unproved<W>>,
    /// Number of configurations that this thread has left, and an estimate of its memory.
    count: u64,
    memory: u64,
}

impl<'a, 'h, const W: usize> ParallelSearch<'a, 'h, W> {
    fn new(common: &'a Common<'a, 'h, W>, way: Way) -> Self {
        let machine =
            TransitionTable::with_states(common.plan.task, SharedStates::new(common.states));
        ParallelSearch {
            common,
            way,
            steps: PlainSteps::new(common.plan, machine),
            stack: Vec::new(),
            candidates: Vec::new(),
            unproved: Vec::new(),
            count: 0,
            memory: 0,
        }
    }

    /// Searches; `None` if another thread ended the search. Calls `meanwhile` from time to time.
    fn run(mut self, mut meanwhile: impl FnMut()) -> Result<Option<End>, Stopped> {
        let Reached::Before(start) = self.steps.start() else {
            return Ok(Some(End::Found(self.steps.order)));
        };
        self.explore(start, 0);
        let (mut count, mut furthest) = (0, 0);
        while !self.stack.is_empty() {
            if self.common.is_over.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if u64::is_multiple_of(count, STEPS_PER_CHECK) {
                self.common.budget.check()?;
                self.reserve()?;
                meanwhile();
            }
            count += 1;
            let frame = self.stack.last().expect("it is not empty");
            if self.candidates.len() == frame.candidates_from {
                furthest = self.leave();
                continue;
            }
            let configuration = frame.configuration;
            let candidate = self.candidates.pop().expect("there is one");
            let length = self.steps.order.len();
            let followed = self.steps.follow(&configuration, candidate);
            let next = match followed {
                None => continue,
                Some(Reached::End) => return Ok(Some(End::Found(self.steps.order))),
                Some(Reached::Before(next)) => next,
            };
            let mut known = self.known(&next);
            if known.is_none() && self.steps.hopeless(&next).is_some() {
                known = Some((usize::MAX, next.at));
                self.fail(&next, next.at);
            }
            match known {
                Some((low, reach)) => {
                    let frame = self.stack.last_mut().expect("a candidate is of a frame");
                    frame.low = frame.low.min(low);
                    frame.reach = frame.reach.max(reach);
                    self.steps.order.truncate(length);
                }
                None => self.explore(next, length),
            }
        }
        Ok(Some(End::Stuck { furthest }))
    }

    /// Enters a configuration.
    fn explore(&mut self, configuration: Configuration<W>, length: usize) {
        let candidates_from = self.candidates.len();
        self.steps.list(&configuration, &mut self.candidates);
        self.steps.choose(&configuration, &mut self.candidates, candidates_from);
        self.way.arrange(&mut self.candidates[candidates_from..]);
        self.stack.push(ParallelFrame {
            configuration,
            candidates_from,
            length,
            reach: configuration.at,
            low: self.stack.len(),
            unproved_from: self.unproved.len(),
        });
    }

    /// Leaves the current configuration. Returns the rank of the furthest return that it can reach.
    fn leave(&mut self) -> u32 {
        let frame = self.stack.pop().expect("there is one");
        let ParallelFrame { configuration, reach, low, .. } = frame;
        self.steps.order.truncate(frame.length);
        if low >= self.stack.len() {
            while self.unproved.len() > frame.unproved_from {
                let proved = self.unproved.pop().expect("there is one");
                self.fail(&proved.configuration, reach);
            }
            self.fail(&configuration, reach);
        } else {
            for above in &mut self.unproved[frame.unproved_from..] {
                above.low = above.low.min(low);
            }
            self.unproved.push(Unproved { configuration, low });
        }
        if let Some(below) = self.stack.last_mut() {
            below.reach = below.reach.max(reach);
            below.low = below.low.min(low);
        }
        reach
    }

    /// Shares the failure of a configuration.
    fn fail(&mut self, configuration: &Configuration<W>, reach: u32) {
        self.common.failed.insert(configuration, reach);
        self.count += 1;
    }

    /// Checks whether a configuration need not be explored. Returns the frame whose failure this
    /// depends on, if any, and an upper bound on the furthest return reached from the
    /// configuration, if that differs from the frame's.
    fn known(&self, configuration: &Configuration<W>) -> Option<(usize, u32)> {
        let failed = &self.common.failed;
        if let Some(reach) = failed.reach(configuration) {
            return Some((usize::MAX, reach));
        }
        if failed.pending == SmallSet::EMPTY {
            return None;
        }
        let (rest, used) = failed.divide(configuration);
        // A failed configuration covers others that differ from it only in pending operations.
        let divided = |other: &Configuration<W>| {
            let (other, fewer) = failed.divide(other);
            let is_near = other.at == rest.at && other.linearized == rest.linearized;
            is_near.then_some((other.state, fewer))
        };
        let frames = self.stack.iter().enumerate().rev();
        let mut frames = frames.map_while(|(i, frame)| Some((i, divided(&frame.configuration)?)));
        if let Some((low, _)) = frames.find(|(_, (state, _))| *state == rest.state) {
            return Some((low, 0));
        }
        let unproved = self.unproved.iter().rev();
        let mut unproved = unproved.map_while(|it| Some((it.low, divided(&it.configuration)?)));
        let found =
            unproved.find(|(_, (state, fewer))| *state == rest.state && fewer.is_subset(&used));
        found.map(|(low, _)| (low, 0))
    }

    /// Shares the memory estimate, and checks the limit.
    fn reserve(&mut self) -> Result<(), Stopped> {
        // The table consists of shards, which grow one after the other.
        let each = size_of::<(Configuration<W>, FailedConfigurations<W>)>() as u64 * 2 + 2;
        let own = self.stack.table_bytes() + self.candidates.table_bytes();
        let memory = self.count * each + own + self.steps.machine.memory();
        let all = &self.common.memory;
        // The estimate for a table that has grown is smaller than the estimate just before it grew.
        let memory = memory.max(self.memory);
        let before = all.fetch_add(memory - self.memory, Ordering::Relaxed);
        let all = before + memory - self.memory;
        self.memory = memory;
        self.common.budget.reserve(all)
    }
}

/// The configurations known to fail.
pub(crate) struct Failed<const W: usize> {
    /// The slots of pending operations.
    pending: SmallSet<W>,
    shards: Vec<Mutex<Shard<W>>>,
}

/// A shard of the table.
#[derive(Default)]
struct Shard<const W: usize> {
    /// First failed configuration of each group that is equal except for pending operations.
    first: FxHashMap<Configuration<W>, FailedConfigurations<W>>,
    others: Vec<FailedConfigurations<W>>,
}

/// Data of a failed configuration.
#[derive(Clone, Copy)]
struct FailedConfigurations<const W: usize> {
    /// Pending operations that were used.
    used: SmallSet<W>,
    /// Upper bound on the furthest return reached from the configuration (as a rank).
    reach: u32,
    /// Index of the next failed configuration of the same group, or `NONE`.
    next: u32,
}

const NONE: u32 = u32::MAX;

impl<const W: usize> Failed<W> {
    fn new(plan: &StepPlan<'_, '_>) -> Self {
        let pending = (0..plan.timeline.pending.len()).collect();
        let shard = || Shard { first: FxHashMap::default(), others: Vec::new() };
        Failed { pending, shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect() }
    }

    /// Splits a configuration into its pending operations and the rest.
    fn divide(&self, configuration: &Configuration<W>) -> (Configuration<W>, SmallSet<W>) {
        let used = configuration.linearized.intersection(&self.pending);
        let linearized = configuration.linearized.difference(&self.pending);
        (Configuration { linearized, ..*configuration }, used)
    }

    fn shard(&self, rest: &Configuration<W>) -> MutexGuard<'_, Shard<W>> {
        let shard = &self.shards[shard_of(FxBuildHasher.hash_one(rest))];
        shard.lock().expect("no thread panics")
    }

    /// Returns the furthest return (as a rank) that a configuration can reach, if it is known to
    /// fail.
    pub(crate) fn reach(&self, configuration: &Configuration<W>) -> Option<u32> {
        let (rest, used) = self.divide(configuration);
        let shard = self.shard(&rest);
        let mut known = shard.first.get(&rest)?;
        loop {
            if known.used.is_subset(&used) {
                return Some(known.reach);
            }
            known = shard.others.get(known.next as usize)?;
        }
    }

    /// Adds a failed configuration.
    fn insert(&self, configuration: &Configuration<W>, reach: u32) {
        let (rest, used) = self.divide(configuration);
        let mut shard = self.shard(&rest);
        let Shard { first, others } = &mut *shard;
        let fresh = FailedConfigurations { used, reach, next: NONE };
        let mut is_new = false;
        let first = first.entry(rest).or_insert_with(|| {
            is_new = true;
            fresh
        });
        if is_new {
            return;
        }
        let mut known = &mut *first;
        loop {
            if known.used.is_subset(&used) {
                return;
            }
            if used.is_subset(&known.used) {
                (known.used, known.reach) = (used, reach);
                return;
            }
            match known.next {
                NONE => break,
                next => known = &mut others[next as usize],
            }
        }
        let next = std::mem::replace(&mut first.next, others.len() as u32);
        others.push(FailedConfigurations { next, ..fresh });
    }
}
