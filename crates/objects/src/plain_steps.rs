//! The steps of the search for a linearization: configurations and their successors.
//!
//! [`crate::just_in_time`] and [`crate::parallel_search`] use these steps depth first,
//! [`crate::wave_search`] breadth first; for objects with operations that overwrite the whole
//! state, [`crate::wave_search`] uses other steps ([`crate::overwriting_steps`]).

use consistory_spec::{Goal, State};
use consistory_verdict::{Budget, Stopped};
use rustc_hash::FxHashMap;

use crate::calls::CallIndex;
use crate::machine::{Interned, StateId, States, TransitionTable};
use crate::small_set::SmallSet;
use crate::task::Task;
use crate::timeline::Timeline;

/// Number of future returns for which reads are checked.
const RETURNS_AHEAD: usize = 64;

/// Point of a search: all operations that returned before `at` are linearized.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Configuration<const W: usize> {
    /// Rank of the next return.
    pub(crate) at: u32,
    pub(crate) state: StateId,
    /// Slots of the open operations that are linearized.
    pub(crate) linearized: SmallSet<W>,
    /// Slots of the open operations that may have been linearized without readers; all of them are
    /// overwriting operations.
    pub(crate) settled: SmallSet<W>,
}

/// The result of a step.
#[derive(Clone, Copy)]
pub(crate) enum Reached<const W: usize> {
    /// No return is left: there is a linearization.
    End,
    /// A configuration before a return.
    Before(Configuration<W>),
}

/// Tables of a task that the steps depend on.
pub(crate) struct StepPlan<'a, 'h> {
    pub(crate) task: &'a Task<'h>,
    pub(crate) timeline: Timeline,
    looks_ahead: bool,
    /// For each operation (by position) the number of its class of interchangeable operations.
    class: Vec<u32>,
}

impl<'a, 'h> StepPlan<'a, 'h> {
    pub(crate) fn new(task: &'a Task<'h>, budget: &Budget) -> Result<Self, Stopped> {
        budget.reserve(Timeline::bytes(task))?;
        let timeline = Timeline::new(task);
        let class = classes(task, &timeline);
        Ok(StepPlan { task, timeline, looks_ahead: task.object().looks_ahead(), class })
    }
}

/// State of a search that performs steps and records the order of linearized operations.
pub(crate) struct PlainSteps<'a, 'h, const W: usize, S = Interned<State>> {
    pub(crate) plan: &'a StepPlan<'a, 'h>,
    pub(crate) machine: TransitionTable<'a, 'h, S>,
    /// Stamp of the last list that contained each class.
    stamps: Vec<u32>,
    stamp: u32,
    /// The linearized operations, each with the one at whose return it was linearized.
    pub(crate) order: Vec<(CallIndex, CallIndex)>,
}

impl<'a, 'h, const W: usize, S: States> PlainSteps<'a, 'h, W, S> {
    pub(crate) fn new(plan: &'a StepPlan<'a, 'h>, machine: TransitionTable<'a, 'h, S>) -> Self {
        let classes = plan.class.iter().max().map_or(0, |&class| class as usize + 1);
        PlainSteps { plan, machine, stamps: vec![0; classes], stamp: 0, order: Vec::new() }
    }

    /// Returns the configuration before anything is linearized.
    pub(crate) fn initial(&self) -> Configuration<W> {
        let (state, empty) = (self.machine.initial(), SmallSet::EMPTY);
        Configuration { at: 0, state, linearized: empty, settled: empty }
    }

    /// Returns the first configuration.
    pub(crate) fn start(&mut self) -> Reached<W> {
        let initial = self.initial();
        self.advance(initial)
    }

    /// Linearizes a candidate; `None` if that is impossible, or unnecessary because a pending
    /// operation changes nothing.
    pub(crate) fn follow(
        &mut self,
        from: &Configuration<W>,
        candidate: CallIndex,
    ) -> Option<Reached<W>> {
        let next = self.linearize(from, candidate)?;
        Some(self.advance(next))
    }

    /// Linearizes a candidate without passing returns.
    pub(crate) fn linearize(
        &mut self,
        from: &Configuration<W>,
        candidate: CallIndex,
    ) -> Option<Configuration<W>> {
        let StepPlan { timeline, .. } = self.plan;
        let state = self.machine.perform(from.state, candidate)?;
        if state == from.state && timeline.rank[candidate.index()] == u32::MAX {
            return None;
        }
        self.order.push((candidate, timeline.returns[from.at as usize]));
        let linearized = from.linearized.with(timeline.slot[candidate.index()] as usize);
        Some(Configuration { state, linearized, ..*from })
    }

    /// Linearizes reads and passes the returns of linearized operations.
    fn advance(&mut self, mut configuration: Configuration<W>) -> Reached<W> {
        let StepPlan { timeline, .. } = self.plan;
        while let Some(&returning) = timeline.returns.get(configuration.at as usize) {
            self.linearize_reads(&mut configuration);
            let slot = timeline.slot[returning.index()] as usize;
            if !configuration.linearized.contains(slot) {
                return Reached::Before(configuration);
            }
            configuration.linearized.remove(slot);
            configuration.at += 1;
        }
        Reached::End
    }

    /// Linearizes the open operations that change no state and return their recorded values.
    pub(crate) fn linearize_reads(&mut self, configuration: &mut Configuration<W>) {
        let StepPlan { timeline, task, .. } = self.plan;
        let at = configuration.at as usize;
        let mut again = true;
        while again {
            again = false;
            for &place in timeline.open(at) {
                let slot = timeline.slot[place.index()] as usize;
                if task.is_pure(place)
                    && !configuration.linearized.contains(slot)
                    && self.is_ready(configuration, place)
                    && self.machine.perform(configuration.state, place).is_some()
                {
                    configuration.linearized.insert(slot);
                    self.order.push((place, timeline.returns[at]));
                    again |= timeline.has_after;
                }
            }
        }
    }

    /// Checks whether all operations that session order puts before an operation are linearized.
    fn is_ready(&self, configuration: &Configuration<W>, place: CallIndex) -> bool {
        let timeline = &self.plan.timeline;
        timeline.after(place).iter().all(|&before| {
            timeline.rank[before.index()] < configuration.at
                || configuration.linearized.contains(timeline.slot[before.index()] as usize)
        })
    }

    /// Lists the candidates to linearize next; the one to try first, the returning operation, comes
    /// last.
    pub(crate) fn list(
        &mut self,
        configuration: &Configuration<W>,
        candidates: &mut Vec<CallIndex>,
    ) {
        let StepPlan { timeline, task, class, .. } = self.plan;
        let at = configuration.at as usize;
        self.stamp += 1;
        let from = candidates.len();
        let pending = &timeline.pending[..timeline.pending_at[at] as usize];
        for &place in timeline.open(at).iter().chain(pending) {
            let is_candidate = !task.is_pure(place)
                && !configuration.linearized.contains(timeline.slot[place.index()] as usize)
                && self.is_ready(configuration, place);
            let stamp = &mut self.stamps[class[place.index()] as usize];
            if is_candidate && std::mem::replace(stamp, self.stamp) != self.stamp {
                candidates.push(place);
            }
        }
        candidates[from..].reverse();
    }

    /// Reduces the candidates after `from` to a stubborn set (Valmari 1989): the returning
    /// operation and all open ones that may affect a member of the set if they come first.
    ///
    /// On any path past the return, take the first operation in the set; there is one. Nothing
    /// before it affects it, so it is possible here already and can as well come first.
    pub(crate) fn choose(
        &mut self,
        configuration: &Configuration<W>,
        candidates: &mut Vec<CallIndex>,
        from: usize,
    ) {
        let StepPlan { timeline, task, .. } = self.plan;
        let at = configuration.at as usize;
        let slot = |place: CallIndex| timeline.slot[place.index()] as usize;
        let pending = &timeline.pending[..timeline.pending_at[at] as usize];
        let open = || timeline.open(at).iter().chain(pending).copied();
        let left: SmallSet<W> = open().map(slot).collect();
        let left = left.difference(&configuration.linearized);
        let mut set = SmallSet::EMPTY.with(slot(timeline.returns[at]));
        let mut asked = SmallSet::EMPTY;
        self.machine.look(configuration.state, |state| {
            let is_next = |place: &CallIndex, set: &SmallSet<W>, asked: &SmallSet<W>| {
                set.contains(slot(*place)) && !asked.contains(slot(*place))
            };
            while !left.is_subset(&set)
                && let Some(place) = open().find(|place| is_next(place, &set, &asked))
            {
                if !self.is_ready(configuration, place) {
                    set = left;
                }
                asked.insert(slot(place));
                let op = task.operation(place);
                for other in open().filter(|&other| left.contains(slot(other))) {
                    if !set.contains(slot(other))
                        && task.object().depends(state, &op, &task.operation(other))
                    {
                        set.insert(slot(other));
                    }
                }
            }
        });
        let mut kept = from;
        for i in from..candidates.len() {
            if set.contains(slot(candidates[i])) {
                candidates.swap(kept, i);
                kept += 1;
            }
        }
        candidates.truncate(kept);
    }

    /// Returns an unlinearized read that is known to be unable to return its value.
    pub(crate) fn hopeless(&self, configuration: &Configuration<W>) -> Option<CallIndex> {
        if self.plan.looks_ahead { self.unreachable(configuration) } else { None }
    }

    /// Returns an operation that changes no state, if the specification shows that it cannot return
    /// its value.
    fn unreachable(&self, configuration: &Configuration<W>) -> Option<CallIndex> {
        let StepPlan { timeline, task, .. } = self.plan;
        let at = configuration.at as usize;
        let now = task.calls().get(timeline.returns[at]).end;
        let is_linearized = |place: CallIndex| {
            task.calls().get(place).start <= now
                && configuration.linearized.contains(timeline.slot[place.index()] as usize)
        };
        let is_goal = |place: &CallIndex| task.is_pure(*place) && !is_linearized(*place);
        let open = timeline.open(at);
        let near = (at + open.len()).min(timeline.returns.len());
        let last = (at + RETURNS_AHEAD).min(timeline.returns.len());
        let is_far = |place: &CallIndex| timeline.rank[place.index()] as usize >= near;
        let goals = timeline.returns[at..near].iter().chain(open.iter().filter(|p| is_far(p)));
        let mut goals = goals.copied().filter(is_goal);
        // Operations that return before the goals, sorted by return, and may precede them.
        let (mut by, mut gathered) = (Vec::new(), at);
        self.machine.look(configuration.state, |state| {
            goals.find(|&goal| {
                let rank = timeline.rank[goal.index()] as usize;
                let Some(returns) = task.returns(goal).filter(|_| rank < last) else {
                    return false;
                };
                let called = |place: CallIndex| {
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
}

/// Numbers the classes of interchangeable operations: same call and return, or pending with the
/// same call, and no order by sessions beyond real time.
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
