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
//! Cost: exponential in the number of operations that are open at once, linear in the rest.

use consistory_spec::Goal;
use consistory_verdict::{Budget, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bits::Bits;
use crate::calls::Place;
use crate::machine::{Machine, StateId};
use crate::task::Task;
use crate::timeline::Timeline;

/// How many maximal attempts are kept.
const ATTEMPTS: usize = 8;
/// How many steps are taken between two looks at the clock.
const PATIENCE: u32 = 1024;
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

/// Searches for a linearization of a task's operations.
pub(crate) fn linearize(task: &Task<'_>, budget: &Budget) -> Result<Linearization, Stopped> {
    let timeline = Timeline::new(task);
    match timeline.slots.div_ceil(64) {
        0..=1 => Search::<1>::new(task, &timeline, budget).run(),
        2 => Search::<2>::new(task, &timeline, budget).run(),
        3..=4 => Search::<4>::new(task, &timeline, budget).run(),
        5..=16 => Search::<16>::new(task, &timeline, budget).run(),
        17..=64 => Search::<64>::new(task, &timeline, budget).run(),
        65..=256 => Search::<256>::new(task, &timeline, budget).run(),
        _ => Err(Stopped::Size { operations: timeline.slots, limit: MOST_OPEN }),
    }
}

/// Where the search stands: everything that returned before `at` is linearized.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Configuration<const W: usize> {
    at: u32,
    state: StateId,
    /// The slots of the open operations that are linearized.
    linearized: Bits<W>,
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

struct Search<'a, 'h, const W: usize> {
    timeline: &'a Timeline,
    machine: Machine<'a, 'h>,
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
    order: Vec<(Place, Place)>,
    candidates: Vec<Place>,
    furthest: u32,
    attempts: Vec<(Vec<Place>, Place)>,
}

impl<'a, 'h, const W: usize> Search<'a, 'h, W> {
    fn new(task: &'a Task<'h>, timeline: &'a Timeline, budget: &'a Budget) -> Self {
        let class = classes(task, timeline);
        let stamps = vec![0; class.iter().max().map_or(0, |&c| c as usize + 1)];
        Search {
            timeline,
            machine: Machine::new(task),
            task,
            budget,
            looks_ahead: task.object().looks_ahead(),
            class,
            stamps,
            stamp: 0,
            pending_slots: (0..timeline.pending.len()).collect(),
            seen: FxHashSet::default(),
            used_up: FxHashMap::default(),
            order: Vec::new(),
            candidates: Vec::new(),
            furthest: 0,
            attempts: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Linearization, Stopped> {
        let mut start = Configuration { at: 0, state: Machine::INITIAL, linearized: Bits::EMPTY };
        if self.advance(&mut start) {
            return Ok(Linearization::Found(self.order));
        }
        let mut stack = vec![self.explore(start, 0)];
        let mut steps: u32 = 0;
        while let Some(frame) = stack.last_mut() {
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(PATIENCE) {
                self.budget.check()?;
                self.budget.reserve(self.memory())?;
            }
            if self.candidates.len() == frame.candidates_from {
                let at = frame.configuration.at;
                if !frame.has_child && at == self.furthest {
                    self.keep_attempt(self.timeline.returns[at as usize]);
                }
                self.order.truncate(frame.length);
                stack.pop();
                continue;
            }
            let candidate = self.candidates.pop().expect("there is one");
            let Configuration { at, state, linearized } = frame.configuration;
            let Some(next) = self.machine.perform(state, candidate) else { continue };
            if next == state && self.timeline.rank[candidate.index()] == u32::MAX {
                continue;
            }
            let length = self.order.len();
            self.order.push((candidate, self.timeline.returns[at as usize]));
            let slot = self.timeline.slot[candidate.index()] as usize;
            let mut next = Configuration { at, state: next, linearized: linearized.with(slot) };
            if self.advance(&mut next) {
                return Ok(Linearization::Found(self.order));
            }
            if let Some(hopeless) = self.hopeless(&next) {
                frame.has_child = true;
                self.reach(next.at);
                if next.at == self.furthest {
                    self.keep_attempt(hopeless);
                }
                self.order.truncate(length);
            } else if self.is_new(&next) {
                frame.has_child = true;
                stack.push(self.explore(next, length));
            } else {
                self.order.truncate(length);
            }
        }
        let stuck = self.timeline.returns[self.furthest as usize];
        Ok(Linearization::Stuck { stuck, attempts: self.attempts })
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
    fn hopeless(&mut self, configuration: &Configuration<W>) -> Option<Place> {
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
        let state = self.machine.state_of(configuration.state);
        // What returns before the goals, which come by return, and may precede them.
        let (mut by, mut gathered) = (Vec::new(), at);
        goals.find(|&goal| {
            let rank = timeline.rank[goal.index()] as usize;
            let Some(returns) = task.returns(goal).filter(|_| rank < last) else { return false };
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
            by.extend(timeline.open(rank).iter().chain(pending).filter_map(|&place| called(place)));
            let call = task.invocation(goal);
            let goal = Goal { method: &call.method, args: &call.args, returns };
            let can = task.object().can_reach(state, &goal, &by);
            by.truncate(before);
            !can
        })
    }

    /// Says whether a configuration is none that was explored, or that one explored stands for.
    fn is_new(&mut self, configuration: &Configuration<W>) -> bool {
        if self.timeline.pending.is_empty() {
            return self.seen.insert(*configuration);
        }
        let used = configuration.linearized.intersection(&self.pending_slots);
        let rest = configuration.linearized.difference(&self.pending_slots);
        let key = Configuration { linearized: rest, ..*configuration };
        let known = self.used_up.entry(key).or_default();
        if known.iter().any(|fewer| fewer.is_subset(&used)) {
            return false;
        }
        known.retain(|more| !used.is_subset(more));
        known.push(used);
        true
    }

    /// Lists what can be linearized next; the operation that returns is tried first.
    fn explore(&mut self, configuration: Configuration<W>, length: usize) -> Frame<W> {
        let timeline = self.timeline;
        let at = configuration.at as usize;
        self.reach(configuration.at);
        self.stamp += 1;
        let candidates_from = self.candidates.len();
        let pending = &timeline.pending[..timeline.pending_at[at] as usize];
        for &place in timeline.open(at).iter().chain(pending) {
            let is_candidate = !self.task.is_pure(place)
                && !configuration.linearized.contains(timeline.slot[place.index()] as usize)
                && self.is_ready(&configuration, place);
            let stamp = &mut self.stamps[self.class[place.index()] as usize];
            if is_candidate && std::mem::replace(stamp, self.stamp) != self.stamp {
                self.candidates.push(place);
            }
        }
        self.candidates[candidates_from..].reverse();
        Frame { configuration, candidates_from, length, has_child: false }
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
            let order = self.order.iter().map(|&(place, _)| place).collect();
            self.attempts.push((order, unexplained));
        }
    }

    fn memory(&self) -> u64 {
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
