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
//! The third of these must not be circular: of the configurations that lead to the end take one
//! with the fewest steps to go. Its next one was explored, or given up in favour of one with at
//! most as many to go; both have fewer. So the search finds the end if there is a way.
//!
//! The furthest return that was reached ends the shortest prefix of the history that is not
//! linearizable: every way fails there, and one came as far.
//!
//! A search that takes long is begun again by several workers, if there are threads enough
//! ([`crate::workers`]). What is said of a history that has no linearization is the same for any
//! number of them: for long searches, the attempts are those that go on from the first place, in
//! the order of this search, from which one step leads to the furthest return.
//!
//! Cost: exponential in the number of operations that are open at once, linear in the rest.

use std::sync::atomic::{AtomicUsize, Ordering};

use consistory_spec::{Goal, State};
use consistory_verdict::{Budget, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bits::Bits;
use crate::calls::Place;
use crate::machine::{Interned, Machine, StateId, States};
use crate::task::Task;
use crate::timeline::Timeline;
use crate::workers::{Guide, search_together};

/// How many maximal attempts are kept.
const ATTEMPTS: usize = 8;
/// How many threads beside the first make workers worth it: two that share what they know take
/// longer than one alone.
const FEWEST_OTHERS: usize = 3;
/// How many steps are taken between two looks at the clock.
pub(crate) const PATIENCE: u64 = 1024;
/// How many returns ahead operations that change no state are looked at.
const LOOK_AHEAD: usize = 64;
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
    /// How many steps a search takes on one thread before it asks for more.
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
    let timeline = Timeline::new(task);
    match timeline.slots.div_ceil(64) {
        0..=1 => search::<1>(task, &timeline, budget, threads),
        2 => search::<2>(task, &timeline, budget, threads),
        3..=4 => search::<4>(task, &timeline, budget, threads),
        5..=16 => search::<16>(task, &timeline, budget, threads),
        17..=64 => search::<64>(task, &timeline, budget, threads),
        65..=256 => search::<256>(task, &timeline, budget, threads),
        _ => Err(Stopped::Size { operations: timeline.slots, limit: MOST_OPEN }),
    }
}

/// Searches alone and, if that takes long, together.
fn search<const W: usize>(
    task: &Task<'_>,
    timeline: &Timeline,
    budget: &Budget,
    threads: &Threads,
) -> Result<Linearization, Stopped> {
    let mut search = Search::<W>::new(task, timeline, budget, Machine::new(task));
    if search.begin() {
        return Ok(Linearization::Found(search.order));
    }
    let mut until = threads.alone;
    loop {
        match search.go_on(until)? {
            Ended::Found => return Ok(Linearization::Found(search.order)),
            Ended::Stuck => break,
            Ended::Paused => {}
        }
        let others = threads.take(usize::MAX);
        if others.count >= FEWEST_OTHERS {
            // What was found so far is little beside what is to come.
            drop(search);
            return search_together::<W>(task, timeline, budget, others.count + 1);
        }
        until = (2 * until).max(PATIENCE);
    }
    let is_long = search.steps > threads.alone;
    Ok(search.stuck(is_long))
}

/// Where the search stands: everything that returned before `at` is linearized.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Configuration<const W: usize> {
    pub(crate) at: u32,
    pub(crate) state: StateId,
    /// The slots of the open operations that are linearized.
    pub(crate) linearized: Bits<W>,
}

/// What ends a search, or a part of one.
pub(crate) enum Ended {
    /// There is a linearization.
    Found,
    /// There is none.
    Stuck,
    /// So many steps were taken.
    Paused,
}

impl<const W: usize> Configuration<W> {
    /// Gives the configuration without its pending operations, and these.
    pub(crate) fn divided(&self, pending_slots: &Bits<W>) -> (Self, Bits<W>) {
        let used = self.linearized.intersection(pending_slots);
        let rest = self.linearized.difference(pending_slots);
        (Configuration { linearized: rest, ..*self }, used)
    }
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
    timeline: &'a Timeline,
    machine: Machine<'a, 'h, S>,
    task: &'a Task<'h>,
    budget: &'a Budget,
    looks_ahead: bool,
    /// For each operation (by place) a number that it shares with those it can be exchanged for.
    class: Vec<u32>,
    /// For each class when it was last seen.
    stamps: Vec<u32>,
    stamp: u32,
    /// The slots of pending operations.
    pending_slots: Bits<W>,
    seen: FxHashSet<Configuration<W>>,
    /// The configurations explored, without their pending operations, and for each the minimal
    /// sets of pending operations that were used up.
    used_up: FxHashMap<Configuration<W>, Vec<Bits<W>>>,
    /// What others know of the configurations, if they went before.
    guide: Option<Guide<'a, W>>,
    stack: Vec<Frame<W>>,
    pub(crate) steps: u64,
    pub(crate) order: Vec<(Place, Place)>,
    candidates: Vec<Place>,
    furthest: u32,
    attempts: Vec<(Vec<Place>, Place)>,
    /// How many frames there were when the furthest return was reached: below the last of them are
    /// the attempts that a long search shows.
    near_frame: usize,
    /// How many attempts there were when that frame ended.
    near: Option<usize>,
}

impl<'a, 'h, const W: usize, S: States> Search<'a, 'h, W, S> {
    pub(crate) fn new(
        task: &'a Task<'h>,
        timeline: &'a Timeline,
        budget: &'a Budget,
        machine: Machine<'a, 'h, S>,
    ) -> Self {
        let class = classes(task, timeline);
        let stamps = vec![0; class.iter().max().map_or(0, |&c| c as usize + 1)];
        Search {
            timeline,
            machine,
            task,
            budget,
            looks_ahead: task.object().looks_ahead(),
            class,
            stamps,
            stamp: 0,
            pending_slots: (0..timeline.pending.len()).collect(),
            seen: FxHashSet::default(),
            used_up: FxHashMap::default(),
            guide: None,
            stack: Vec::new(),
            steps: 0,
            order: Vec::new(),
            candidates: Vec::new(),
            furthest: 0,
            attempts: Vec::new(),
            near_frame: 0,
            near: None,
        }
    }

    /// Follows what others found out.
    pub(crate) fn guided(self, guide: Guide<'a, W>) -> Self {
        Search { guide: Some(guide), ..self }
    }

    /// Gives the first configuration, and whether no return is left already.
    pub(crate) fn start(&mut self) -> (Configuration<W>, bool) {
        let (at, state) = (0, self.machine.initial());
        let mut start = Configuration { at, state, linearized: Bits::EMPTY };
        let is_over = self.advance(&mut start);
        (start, is_over)
    }

    /// Begins; says whether that is the end.
    pub(crate) fn begin(&mut self) -> bool {
        let (start, is_over) = self.start();
        if !is_over {
            self.explore(start, 0);
        }
        is_over
    }

    /// Goes on until so many steps were taken.
    pub(crate) fn go_on(&mut self, until: u64) -> Result<Ended, Stopped> {
        while let Some(frame) = self.stack.last() {
            if self.steps >= until {
                return Ok(Ended::Paused);
            }
            self.steps += 1;
            if self.steps.is_multiple_of(PATIENCE) {
                self.budget.check()?;
                self.budget.reserve(self.memory())?;
            }
            let Configuration { at, state, linearized } = frame.configuration;
            if self.candidates.len() == frame.candidates_from {
                let length = frame.length;
                if !frame.has_child && at == self.furthest {
                    self.keep_attempt(self.timeline.returns[at as usize]);
                }
                self.order.truncate(length);
                self.stack.pop();
                if self.stack.len() + 1 == self.near_frame && self.near.is_none() {
                    self.near = Some(self.attempts.len());
                    if self.guide.is_some_and(|guide| guide.furthest == self.furthest) {
                        return Ok(Ended::Stuck);
                    }
                }
                continue;
            }
            let candidate = self.candidates.pop().expect("there is one");
            let length = self.order.len();
            let configuration = Configuration { at, state, linearized };
            let Some((next, is_over)) = self.follow(&configuration, candidate) else { continue };
            if is_over {
                return Ok(Ended::Found);
            }
            if let Some(hopeless) = self.hopeless(&next) {
                self.has_child();
                self.reach(next.at);
                if next.at == self.furthest {
                    self.keep_attempt(hopeless);
                }
                self.order.truncate(length);
            } else if self.is_new(&next) {
                self.has_child();
                self.explore(next, length);
            } else {
                self.order.truncate(length);
            }
        }
        Ok(Ended::Stuck)
    }

    fn has_child(&mut self) {
        self.stack.last_mut().expect("a candidate is of a frame").has_child = true;
    }

    /// Linearizes a candidate; gives what comes of it, and whether no return is left. `None` if it
    /// cannot be, or need not.
    pub(crate) fn follow(
        &mut self,
        from: &Configuration<W>,
        candidate: Place,
    ) -> Option<(Configuration<W>, bool)> {
        let &Configuration { at, state, linearized } = from;
        let next = self.machine.perform(state, candidate)?;
        if next == state && self.timeline.rank[candidate.index()] == u32::MAX {
            return None;
        }
        self.order.push((candidate, self.timeline.returns[at as usize]));
        let slot = self.timeline.slot[candidate.index()] as usize;
        let mut next = Configuration { at, state: next, linearized: linearized.with(slot) };
        let is_over = self.advance(&mut next);
        Some((next, is_over))
    }

    /// Says how far the search came, and what it tried.
    pub(crate) fn stuck(self, is_long: bool) -> Linearization {
        let mut attempts = self.attempts;
        if let Some(near) = self.near.filter(|_| is_long) {
            attempts.truncate(near);
        }
        Linearization::Stuck { stuck: self.timeline.returns[self.furthest as usize], attempts }
    }

    /// Linearizes what changes no state and passes the returns of what is linearized; says whether
    /// no return is left.
    fn advance(&mut self, configuration: &mut Configuration<W>) -> bool {
        let timeline = self.timeline;
        while let Some(&returning) = timeline.returns.get(configuration.at as usize) {
            let at = configuration.at as usize;
            let mut again = true;
            while again {
                again = false;
                for &place in timeline.open(at) {
                    let slot = timeline.slot[place.index()] as usize;
                    if self.task.is_pure(place)
                        && !configuration.linearized.contains(slot)
                        && self.is_ready(configuration, place)
                        && self.machine.perform(configuration.state, place).is_some()
                    {
                        configuration.linearized.insert(slot);
                        self.order.push((place, returning));
                        again |= timeline.has_after;
                    }
                }
            }
            let slot = timeline.slot[returning.index()] as usize;
            if !configuration.linearized.contains(slot) {
                return false;
            }
            configuration.linearized.remove(slot);
            configuration.at += 1;
        }
        true
    }

    /// Says whether all that an operation's session puts before it is linearized.
    fn is_ready(&self, configuration: &Configuration<W>, place: Place) -> bool {
        self.timeline.after(place).iter().all(|&before| {
            self.timeline.rank[before.index()] < configuration.at
                || configuration.linearized.contains(self.timeline.slot[before.index()] as usize)
        })
    }

    /// Gives an operation that changes no state and is not linearized, if the specification can
    /// tell that it cannot return what it did any more.
    pub(crate) fn hopeless(&self, configuration: &Configuration<W>) -> Option<Place> {
        if !self.looks_ahead {
            return None;
        }
        let (timeline, task) = (self.timeline, self.task);
        let at = configuration.at as usize;
        let now = task.calls().get(timeline.returns[at]).end;
        let is_linearized = |place: Place| {
            task.calls().get(place).start <= now
                && configuration.linearized.contains(timeline.slot[place.index()] as usize)
        };
        let is_goal = |place: &Place| task.is_pure(*place) && !is_linearized(*place);
        let open = timeline.open(at);
        let near = (at + open.len()).min(timeline.returns.len());
        let last = (at + LOOK_AHEAD).min(timeline.returns.len());
        let is_far = |place: &Place| timeline.rank[place.index()] as usize >= near;
        let goals = timeline.returns[at..near].iter().chain(open.iter().filter(|p| is_far(p)));
        let mut goals = goals.copied().filter(is_goal);
        // What returns before the goals, which come by return, and may precede them.
        let (mut by, mut gathered) = (Vec::new(), at);
        self.machine.look(configuration.state, |state| {
            goals.find(|&goal| {
                let rank = timeline.rank[goal.index()] as usize;
                let Some(returns) = task.returns(goal).filter(|_| rank < last) else {
                    return false;
                };
                let called = |place: Place| {
                    (!task.is_pure(place) && !is_linearized(place))
                        .then(|| task.invocation(place))
                        .map(|call| (&*call.method, &*call.args))
                };
                while gathered < rank {
                    by.extend(called(timeline.returns[gathered]));
                    gathered += 1;
                }
                let before = by.len();
                let pending = &timeline.pending[..timeline.pending_at[rank] as usize];
                by.extend(
                    timeline.open(rank).iter().chain(pending).filter_map(|&place| called(place)),
                );
                let call = task.invocation(goal);
                let goal = Goal { method: &call.method, args: &call.args, returns };
                let can = task.object().can_reach(state, &goal, &by);
                by.truncate(before);
                !can
            })
        })
    }

    /// Says whether a configuration is none that was explored, or that one explored stands for.
    fn is_new(&mut self, configuration: &Configuration<W>) -> bool {
        if self.guide.as_ref().is_some_and(|guide| guide.ends_early(configuration)) {
            return false;
        }
        if self.timeline.pending.is_empty() {
            return self.seen.insert(*configuration);
        }
        let (key, used) = configuration.divided(&self.pending_slots);
        let known = self.used_up.entry(key).or_default();
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
        let mut candidates = std::mem::take(&mut self.candidates);
        self.list(&configuration, &mut candidates);
        self.candidates = candidates;
        self.stack.push(Frame { configuration, candidates_from, length, has_child: false });
    }

    /// Lists what can be linearized next; what is to be tried first comes last, and that is the
    /// operation that returns.
    pub(crate) fn list(&mut self, configuration: &Configuration<W>, candidates: &mut Vec<Place>) {
        let timeline = self.timeline;
        let at = configuration.at as usize;
        self.stamp += 1;
        let from = candidates.len();
        let pending = &timeline.pending[..timeline.pending_at[at] as usize];
        for &place in timeline.open(at).iter().chain(pending) {
            let is_candidate = !self.task.is_pure(place)
                && !configuration.linearized.contains(timeline.slot[place.index()] as usize)
                && self.is_ready(configuration, place);
            let stamp = &mut self.stamps[self.class[place.index()] as usize];
            if is_candidate && std::mem::replace(stamp, self.stamp) != self.stamp {
                candidates.push(place);
            }
        }
        candidates[from..].reverse();
    }

    /// Notes how far the search came.
    fn reach(&mut self, at: u32) {
        if at > self.furthest {
            self.furthest = at;
            self.attempts.clear();
            self.near_frame = self.stack.len();
            self.near = None;
        }
    }

    fn keep_attempt(&mut self, unexplained: Place) {
        if self.attempts.len() < ATTEMPTS {
            let order = self.order.iter().map(|&(place, _)| place).collect();
            self.attempts.push((order, unexplained));
        }
    }

    /// Gives the slots of pending operations.
    pub(crate) fn pending_slots(&self) -> &Bits<W> {
        &self.pending_slots
    }

    /// Estimates the memory that the tables take, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let configuration = size_of::<Configuration<W>>() as u64 + 8;
        let seen = self.seen.len() as u64 * configuration;
        let used_up = self.used_up.len() as u64 * (2 * configuration + 32);
        seen + used_up + self.machine.memory()
    }
}

/// Numbers the operations so that those with the same number can be exchanged for each other: they
/// have the same call and return, or are pending and have the same call, and no session orders
/// them beyond what time does.
fn classes(task: &Task<'_>, timeline: &Timeline) -> Vec<u32> {
    let mut is_bound = vec![false; task.len()];
    for place in task.calls().places() {
        for before in timeline.after(place) {
            is_bound[place.index()] = true;
            is_bound[before.index()] = true;
        }
    }
    let mut known = FxHashMap::default();
    let mut count = 0;
    let mut fresh = || {
        count += 1;
        count - 1
    };
    task.calls()
        .places()
        .map(|place| {
            if is_bound[place.index()] {
                return fresh();
            }
            let key = (task.invocation_of(place), task.is_pending(place), task.returns(place));
            *known.entry(key).or_insert_with(&mut fresh)
        })
        .collect()
}
