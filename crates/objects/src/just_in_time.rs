//! Linearizability by just-in-time search (Lowe 2017, after Wing and Gong 1993).
//!
//! Returns are processed in order. At a return whose operation is not yet linearized, open
//! operations are linearized one by one until it is. A configuration consists of the next such
//! return, the set of open operations that are linearized, and the state of the object. Each is
//! explored once. Only open operations are stored, so configurations are small in a long history
//! with few concurrent operations.
//!
//! Pruning. In each case another explored branch can do everything that the pruned one can:
//! - An operation that changes no state is linearized as soon as its return is right.
//! - Of open operations with the same call and the same return, the one that returns first is linearized
//!   first; of pending ones with the same call, the one called first.
//! - A pending operation is linearized only if it changes the state, and a configuration fails if a
//!   failed one differs from it only in having used fewer pending operations.
//! - A configuration is dropped if the specification shows that an operation that changes no state
//!   cannot return its value, whichever operations are linearized before it. This is checked for
//!   the open operations and for the operations of the next returns.
//! - Only operations that may affect the returning one, or another one that is tried, are
//!   linearized next, as far as the specification tells ([`PlainSteps::choose`]). This check takes
//!   time, so it starts only when a search turns out to be hard.
//!
//! The third rule is not circular: among the configurations that lead to the end, take one with the
//! fewest remaining steps. Its successor was explored, or dropped for one with at most as many
//! remaining steps; both have fewer. So the search finds the end if there is a path.
//!
//! The furthest return reached is the end of the shortest prefix that is not linearizable: every
//! branch fails there, and one reached it.
//!
//! A long search is restarted, first in waves ([`crate::wave_search`]) and then on all threads
//! ([`crate::parallel_search`]).
//!
//! Cost: exponential in the number of operations that are open at once, linear in the rest.

use std::sync::atomic::{AtomicUsize, Ordering};

use consistory_spec::State;
use consistory_verdict::{BYTES_PER_ALLOCATION, Budget, Bytes, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calls::CallIndex;
use crate::machine::{Interned, SharedStates, States, TransitionTable};
use crate::overwrites::{any_overwrites, is_plain};
use crate::parallel_search::{Failed, search_in_parallel};
use crate::plain_steps::{Configuration, PlainSteps, Reached, StepPlan};
use crate::small_set::SmallSet;
use crate::task::Task;
use crate::wave_search::search_in_waves;

/// Number of operations up to which a history is always searched depth first.
const SMALL_HISTORY_OPERATIONS: u64 = 64;
/// Largest number of furthest attempts that are kept.
pub(crate) const MAX_ATTEMPTS_KEPT: usize = 8;
/// Steps between two checks of the budget.
pub(crate) const STEPS_PER_CHECK: u64 = 1024;
/// Steps per operation after which a search checks which operations affect which.
const EASY_STEPS_PER_OPERATION: u64 = 8;
/// Largest number of operations that may be open at once.
const MAX_OPEN_OPERATIONS: usize = 256 * 64;

/// Result of the search.
pub(crate) enum Linearization {
    /// The operations in order, each with the operation at whose return it was linearized.
    Found(Vec<(CallIndex, CallIndex)>),
    /// There is no linearization.
    Stuck {
        /// The operation that cannot be linearized by its return. The operations that returned
        /// before it are linearizable.
        stuck: CallIndex,
        /// The furthest attempts: the linearized operations in order, and an operation that cannot
        /// come next.
        attempts: Vec<(Vec<CallIndex>, CallIndex)>,
    },
}

/// The threads that a judgement may use in addition to its own.
pub(crate) struct Threads {
    free: AtomicUsize,
    /// Number of steps of a search on one thread, for each of two techniques, before it asks for
    /// more threads.
    pub(crate) alone: u64,
}

impl Threads {
    /// Builds a pool of `jobs` threads, the caller's included, that join a search after `alone`
    /// steps.
    pub(crate) fn new(jobs: usize, alone: u64) -> Self {
        Threads { free: AtomicUsize::new(jobs.max(1) - 1), alone }
    }

    /// Lends the caller's own thread to others while the caller waits for them.
    pub(crate) fn leave(&self) {
        self.free.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the caller's own thread back; no other caller uses it.
    pub(crate) fn come_back(&self) {
        self.free.fetch_sub(1, Ordering::Relaxed);
    }

    /// Reserves up to `most` threads. They are released when the returned value is dropped.
    pub(crate) fn take(&self, most: usize) -> Taken<'_> {
        let mut count = 0;
        // The closure always returns a value, so the update cannot fail.
        let _ = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
            count = free.min(most);
            Some(free - count)
        });
        Taken { threads: self, count }
    }
}

/// Reserved threads.
pub(crate) struct Taken<'a> {
    threads: &'a Threads,
    pub(crate) count: usize,
}

impl Taken<'_> {
    /// Releases one of them.
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

/// Searches for a linearization of a task's operations, within a number of steps if there is a
/// limit; `None` if the limit was reached.
pub(crate) fn linearize_within(
    task: &Task<'_>,
    budget: &Budget,
    threads: &Threads,
    limit: Option<u64>,
) -> Result<Option<Linearization>, Stopped> {
    let plan = StepPlan::new(task, budget)?;
    match plan.timeline.slots.div_ceil(64) {
        0..=1 => search::<1>(&plan, budget, threads, limit),
        2 => search::<2>(&plan, budget, threads, limit),
        3..=4 => search::<4>(&plan, budget, threads, limit),
        5..=16 => search::<16>(&plan, budget, threads, limit),
        17..=64 => search::<64>(&plan, budget, threads, limit),
        65..=256 => search::<256>(&plan, budget, threads, limit),
        _ => Err(Stopped::Size { operations: plan.timeline.slots, limit: MAX_OPEN_OPERATIONS }),
    }
}

/// Searches depth first and, if that takes long and there is no limit, with other techniques.
fn search<const W: usize>(
    plan: &StepPlan<'_, '_>,
    budget: &Budget,
    threads: &Threads,
    limit: Option<u64>,
) -> Result<Option<Linearization>, Stopped> {
    // A long history takes many steps without being hard. If operations overwrite, waves leave few
    // choices and are used for easy histories too.
    let calls = plan.task.len() as u64;
    let most = threads.alone.saturating_mul(1 + calls / 1000);
    let most = if calls > SMALL_HISTORY_OPERATIONS && is_plain(plan.task, &plan.timeline) {
        most.min(4 * SMALL_HISTORY_OPERATIONS)
    } else {
        most
    };
    match JustInTimeSearch::<W>::new(plan, budget).run(limit.unwrap_or(most))? {
        None if limit.is_none() => {}
        found => return Ok(found),
    }
    // The results so far are small compared with the remaining search. If operations overwrite,
    // waves prune more; otherwise they are tried for a while, since they correct wrong guesses
    // sooner.
    let in_waves = match any_overwrites(plan.task, &plan.timeline) {
        true => u64::MAX,
        false => most,
    };
    if let Some(found) = search_in_waves::<W>(plan, budget, in_waves)? {
        return Ok(Some(found));
    }
    search_in_parallel::<W>(plan, budget, threads).map(Some)
}

/// A configuration that is being explored.
struct JustInTimeFrame<const W: usize> {
    configuration: Configuration<W>,
    /// Index of the first candidate; the last one is tried next. Candidates before the index belong
    /// to the frames below.
    candidates_from: usize,
    /// Length of the linearization before this frame.
    length: usize,
    has_child: bool,
}

/// A depth-first search.
pub(crate) struct JustInTimeSearch<'a, 'h, const W: usize, S = Interned<State>> {
    plan: &'a StepPlan<'a, 'h>,
    steps: PlainSteps<'a, 'h, W, S>,
    budget: &'a Budget,
    /// Slots of pending operations.
    pending_slots: SmallSet<W>,
    seen: FxHashSet<Configuration<W>>,
    /// Explored configurations without their pending operations, each with the minimal sets of
    /// pending operations that were used.
    used_up: FxHashMap<Configuration<W>, Vec<SmallSet<W>>>,
    stack: Vec<JustInTimeFrame<W>>,
    candidates: Vec<CallIndex>,
    /// Whether to check which operations affect which.
    is_hard: bool,
    furthest: u32,
    attempts: Vec<(Vec<CallIndex>, CallIndex)>,
    /// Furthest return that each configuration reaches, if all configurations are known to fail.
    failed: Option<&'a Failed<W>>,
}

impl<'a, 'h, const W: usize> JustInTimeSearch<'a, 'h, W> {
    fn new(plan: &'a StepPlan<'a, 'h>, budget: &'a Budget) -> Self {
        JustInTimeSearch::with_machine(plan, budget, TransitionTable::new(plan.task))
    }
}

impl<'a, 'h, const W: usize> JustInTimeSearch<'a, 'h, W, SharedStates<'a>> {
    /// Searches again for the furthest attempts, when all configurations are known to fail.
    pub(crate) fn for_attempts(
        plan: &'a StepPlan<'a, 'h>,
        budget: &'a Budget,
        machine: TransitionTable<'a, 'h, SharedStates<'a>>,
        failed: &'a Failed<W>,
        furthest: u32,
    ) -> Result<Linearization, Stopped> {
        let mut search = JustInTimeSearch::with_machine(plan, budget, machine);
        (search.failed, search.furthest) = (Some(failed), furthest);
        Ok(search.run(u64::MAX)?.expect("there is no limit"))
    }
}

impl<'a, 'h, const W: usize, S: States> JustInTimeSearch<'a, 'h, W, S> {
    fn with_machine(
        plan: &'a StepPlan<'a, 'h>,
        budget: &'a Budget,
        machine: TransitionTable<'a, 'h, S>,
    ) -> Self {
        JustInTimeSearch {
            plan,
            steps: PlainSteps::new(plan, machine),
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

    /// Searches for at most `most` steps; `None` if the search has not ended.
    fn run(mut self, most: u64) -> Result<Option<Linearization>, Stopped> {
        let Reached::Before(start) = self.steps.start() else {
            return Ok(Some(Linearization::Found(self.steps.order)));
        };
        let easy = EASY_STEPS_PER_OPERATION * self.plan.task.len() as u64;
        self.is_hard = self.failed.is_some();
        self.explore(start, 0);
        let mut count = 0;
        while let Some(frame) = self.stack.last() {
            if self.failed.is_some() && self.attempts.len() == MAX_ATTEMPTS_KEPT {
                // The remaining candidates cannot get further.
                break;
            }
            if count >= most {
                return Ok(None);
            }
            count += 1;
            self.is_hard |= count > easy;
            if count.is_multiple_of(STEPS_PER_CHECK) {
                self.budget.check()?;
                self.budget.reserve(self.memory())?;
            }
            let configuration = frame.configuration;
            if self.candidates.len() == frame.candidates_from {
                let length = frame.length;
                if !frame.has_child && configuration.at == self.furthest {
                    self.keep_attempt(self.plan.timeline.returns[configuration.at as usize]);
                }
                self.steps.order.truncate(length);
                self.stack.pop();
                continue;
            }
            let candidate = self.candidates.pop().expect("there is one");
            let length = self.steps.order.len();
            let followed = self.steps.follow(&configuration, candidate);
            let next = match followed {
                None => continue,
                Some(Reached::End) => return Ok(Some(Linearization::Found(self.steps.order))),
                Some(Reached::Before(next)) => next,
            };
            if !self.leads_far(&next) || !self.is_new(&next) {
                self.steps.order.truncate(length);
                continue;
            }
            self.stack.last_mut().expect("a candidate is of a frame").has_child = true;
            if let Some(hopeless) = self.steps.hopeless(&next) {
                self.reach(next.at);
                if next.at == self.furthest {
                    self.keep_attempt(hopeless);
                }
                self.steps.order.truncate(length);
            } else {
                self.explore(next, length);
            }
        }
        let stuck = self.plan.timeline.returns[self.furthest as usize];
        Ok(Some(Linearization::Stuck { stuck, attempts: self.attempts }))
    }

    /// Checks whether a configuration may reach the furthest return; true if this is unknown.
    fn leads_far(&self, configuration: &Configuration<W>) -> bool {
        let reach = self.failed.and_then(|failed| failed.reach(configuration));
        reach.is_none_or(|reach| reach >= self.furthest)
    }

    /// Checks whether a configuration is new: neither explored nor covered by an explored one.
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

    /// Enters a configuration.
    fn explore(&mut self, configuration: Configuration<W>, length: usize) {
        self.reach(configuration.at);
        let candidates_from = self.candidates.len();
        self.steps.list(&configuration, &mut self.candidates);
        if self.is_hard {
            self.steps.choose(&configuration, &mut self.candidates, candidates_from);
        }
        self.stack.push(JustInTimeFrame {
            configuration,
            candidates_from,
            length,
            has_child: false,
        });
    }

    /// Records the furthest attempts.
    fn reach(&mut self, at: u32) {
        if at > self.furthest {
            self.furthest = at;
            self.attempts.clear();
        }
    }

    fn keep_attempt(&mut self, unexplained: CallIndex) {
        if self.attempts.len() < MAX_ATTEMPTS_KEPT {
            let order = self.steps.order.iter().map(|&(place, _)| place).collect();
            self.attempts.push((order, unexplained));
        }
    }

    /// Estimates the memory that the tables take, in bytes.
    fn memory(&self) -> u64 {
        // A list of sets has room for four.
        let list = 4 * size_of::<SmallSet<W>>() as u64 + BYTES_PER_ALLOCATION;
        let used_up = self.used_up.table_bytes() + self.used_up.len() as u64 * list;
        let stack = self.stack.table_bytes() + self.candidates.table_bytes();
        let attempts = (self.attempts.len() * self.plan.task.len() * size_of::<CallIndex>()) as u64;
        self.seen.table_bytes() + used_up + stack + attempts + self.steps.machine.memory()
    }
}
