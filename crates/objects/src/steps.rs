//! The steps of the search for a linearization: what a configuration is, and what can come next.
//!
//! [`crate::linearize`] and [`crate::together`] take them depth first, [`crate::waves`] breadth first.
//! Only the latter has use for what is known of operations that overwrite ([`crate::overwrites`]);
//! without that no operation is ever settled.

use consistory_spec::{Goal, State};
use consistory_verdict::{Budget, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bits::Bits;
use crate::calls::Place;
use crate::machine::{Interned, Machine, StateId, States};
use crate::overwrites::{Overwrites, Readers};
use crate::task::Task;
use crate::timeline::Timeline;

/// How many returns ahead operations that change no state are looked at.
const LOOK_AHEAD: usize = 64;
/// The state behind a block: whatever it is, nobody will see it.
const UNSEEN: StateId = StateId(u32::MAX);

/// Where a search stands: everything that returned before `at` is linearized.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Configuration<const W: usize> {
    pub(crate) at: u32,
    pub(crate) state: StateId,
    /// The slots of the open operations that are linearized.
    pub(crate) linearized: Bits<W>,
    /// The slots of the open operations that may have been linearized unseen.
    pub(crate) settled: Bits<W>,
}

/// What is done to a configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// An operation is linearized.
    Take(Place),
    /// The operation that returns is settled, and stays unseen.
    Pass,
    /// All closed blocks are linearized.
    Blocks,
}

/// What the steps of a task depend on.
pub(crate) struct Plan<'a, 'h> {
    pub(crate) task: &'a Task<'h>,
    pub(crate) timeline: Timeline,
    looks_ahead: bool,
    /// For each operation (by place) a number that it shares with those it can be exchanged for.
    class: Vec<u32>,
}

impl<'a, 'h> Plan<'a, 'h> {
    pub(crate) fn new(task: &'a Task<'h>, budget: &Budget) -> Result<Self, Stopped> {
        budget.reserve(Timeline::bytes(task))?;
        let timeline = Timeline::new(task);
        let class = classes(task, &timeline);
        Ok(Plan { task, timeline, looks_ahead: task.object().looks_ahead(), class })
    }
}

/// Takes steps.
pub(crate) struct Stepper<'a, 'h, const W: usize, S = Interned<State>> {
    plan: &'a Plan<'a, 'h>,
    pub(crate) machine: Machine<'a, 'h, S>,
    overwrites: Option<&'a Overwrites>,
    /// For each class when it was last seen.
    stamps: Vec<u32>,
    stamp: u32,
    states: Vec<StateId>,
    /// What was linearized, each with the operation at whose return that was.
    pub(crate) order: Vec<(Place, Place)>,
    unseen: Option<Unseen>,
}

/// What becomes of settled operations along a way.
#[derive(Default)]
struct Unseen {
    /// Those in the order.
    linearized: FxHashSet<Place>,
    /// Before what in the order a settled operation has room.
    room: FxHashMap<Place, usize>,
    /// Operations that returned unseen, and before what in the order they come.
    returned: Vec<(usize, Place)>,
}

impl<'a, 'h, const W: usize, S: States> Stepper<'a, 'h, W, S> {
    pub(crate) fn new(
        plan: &'a Plan<'a, 'h>,
        machine: Machine<'a, 'h, S>,
        overwrites: Option<&'a Overwrites>,
    ) -> Self {
        Stepper {
            plan,
            machine,
            overwrites,
            stamps: vec![0; plan.class.iter().max().map_or(0, |&class| class as usize + 1)],
            stamp: 0,
            states: Vec::new(),
            order: Vec::new(),
            unseen: None,
        }
    }

    /// Gives the first configuration, and whether no return is left already.
    pub(crate) fn start(&mut self) -> (Configuration<W>, bool) {
        let (state, empty) = (self.machine.initial(), Bits::EMPTY);
        let mut start = Configuration { at: 0, state, linearized: empty, settled: empty };
        let is_over = self.advance(&mut start);
        (start, is_over)
    }

    /// Finds the order that some steps lead to, each operation with the one at whose return it was
    /// linearized; and the state behind it.
    pub(crate) fn unfold(
        &mut self,
        steps: impl IntoIterator<Item = Step>,
    ) -> (Vec<(Place, Place)>, Option<StateId>) {
        self.order.clear();
        self.unseen = Some(Unseen::default());
        let (mut configuration, _) = self.start();
        for step in steps {
            if let Some((next, _)) = self.apply(&configuration, step) {
                configuration = next;
            }
        }
        let mut returned = self.unseen.take().map_or(Vec::new(), |unseen| unseen.returned);
        returned.sort_by_key(|&(before, _)| before);
        let mut returned = returned.into_iter().peekable();
        let mut whole = Vec::with_capacity(self.order.len() + returned.len());
        for (i, &(place, at)) in self.order.iter().enumerate() {
            while let Some((_, unseen)) = returned.next_if(|&(before, _)| before == i) {
                whole.push((unseen, at));
            }
            whole.push((place, at));
        }
        let mut state = Some(self.machine.initial());
        for &(place, _) in &whole {
            state = state.and_then(|state| self.machine.perform(state, place));
        }
        (whole, state)
    }

    /// Lists the steps that a configuration has, each with what it leads to and whether no return
    /// is left there.
    pub(crate) fn expand(
        &mut self,
        from: &Configuration<W>,
        candidates: &mut Vec<Place>,
        next: &mut Vec<(Step, Configuration<W>, bool)>,
    ) {
        let Plan { timeline, .. } = self.plan;
        self.order.clear();
        let returning = timeline.returns[from.at as usize];
        if from.settled.contains(timeline.slot[returning.index()] as usize) {
            next.extend(self.try_step(from, Step::Pass));
        }
        candidates.clear();
        match self.overwrites.and_then(|overwrites| overwrites.readers.as_ref()) {
            Some(readers) => {
                let mut blocks = *from;
                self.take_blocks(readers, &mut blocks);
                let is_last = match self.plan.task.is_pure(returning) {
                    true => blocks.linearized.contains(timeline.slot[returning.index()] as usize),
                    false => readers.is_closed(returning, from.at),
                };
                if is_last {
                    next.extend(self.try_step(from, Step::Blocks));
                    return;
                }
                self.list_seen(readers, from, &blocks, candidates);
            }
            None => {
                self.list(from, candidates);
                if self.overwrites.is_none() {
                    self.choose(from, candidates, 0);
                }
            }
        }
        for &candidate in candidates.iter().rev() {
            next.extend(self.try_step(from, Step::Take(candidate)));
        }
    }

    fn try_step(
        &mut self,
        from: &Configuration<W>,
        step: Step,
    ) -> Option<(Step, Configuration<W>, bool)> {
        let (next, is_over) = self.apply(from, step)?;
        Some((step, next, is_over))
    }

    /// Takes a step; gives what comes of it, and whether no return is left. `None` if it cannot be
    /// taken, or need not.
    pub(crate) fn apply(
        &mut self,
        from: &Configuration<W>,
        step: Step,
    ) -> Option<(Configuration<W>, bool)> {
        let Plan { timeline, .. } = self.plan;
        let returning = timeline.returns[from.at as usize];
        let slot = timeline.slot[returning.index()] as usize;
        // What is settled and does not pass takes effect now.
        let mut next = *from;
        next.settled.remove(slot);
        let readers = self.overwrites.and_then(|overwrites| overwrites.readers.as_ref());
        match (step, readers) {
            (Step::Take(place), None) => return self.follow(&next, place),
            (Step::Take(place), Some(readers)) => {
                let before = self.order.len();
                self.take_blocks(readers, &mut next);
                next.state = readers.after(place);
                next.linearized.insert(timeline.slot[place.index()] as usize);
                self.push(place, returning);
                self.settle(&mut next, before);
            }
            (Step::Blocks, Some(readers)) => {
                let before = self.order.len();
                self.take_blocks(readers, &mut next);
                next.state = UNSEEN;
                self.settle(&mut next, before);
                next.settled.insert(slot);
            }
            (Step::Blocks, None) => return None,
            (Step::Pass, _) => {
                self.pass(returning);
                next.at += 1;
            }
        }
        let is_over = self.advance(&mut next);
        Some((next, is_over))
    }

    /// Linearizes a candidate; gives what comes of it, and whether no return is left. `None` if it
    /// cannot be, or need not.
    pub(crate) fn follow(
        &mut self,
        from: &Configuration<W>,
        candidate: Place,
    ) -> Option<(Configuration<W>, bool)> {
        let Plan { timeline, .. } = self.plan;
        let next = self.machine.perform(from.state, candidate)?;
        if next == from.state && timeline.rank[candidate.index()] == u32::MAX {
            return None;
        }
        let before = self.order.len();
        self.push(candidate, timeline.returns[from.at as usize]);
        let slot = timeline.slot[candidate.index()] as usize;
        let linearized = from.linearized.with(slot);
        let mut next = Configuration { state: next, linearized, ..*from };
        if self.overwrites.is_some_and(|overwrites| overwrites.contains(candidate)) {
            self.settle(&mut next, before);
        }
        let is_over = self.advance(&mut next);
        Some((next, is_over))
    }

    fn push(&mut self, place: Place, returning: Place) {
        self.order.push((place, returning));
        if let Some(unseen) = &mut self.unseen {
            unseen.linearized.insert(place);
        }
    }

    /// Settles what overwrites and is open, but for the operation that returns: if that came unseen
    /// before something else, it could as well come now, and the other one later. Behind `before`
    /// stands what overwrites it.
    fn settle(&mut self, configuration: &mut Configuration<W>, before: usize) {
        let Some(overwrites) = self.overwrites else { return };
        let timeline = &self.plan.timeline;
        let open = timeline.open(configuration.at as usize);
        for (i, &place) in open.iter().enumerate().filter(|(_, place)| overwrites.contains(**place))
        {
            let slot = timeline.slot[place.index()] as usize;
            if i > 0 || configuration.linearized.contains(slot) {
                configuration.settled.insert(slot);
            }
            if let Some(unseen) = &mut self.unseen
                && !unseen.linearized.contains(&place)
            {
                unseen.room.insert(place, before);
            }
        }
    }

    /// Linearizes the closed blocks.
    fn take_blocks(&mut self, readers: &Readers, configuration: &mut Configuration<W>) {
        let timeline = &self.plan.timeline;
        let at = configuration.at;
        let returning = timeline.returns[at as usize];
        for &place in timeline.open(at as usize) {
            let slot = timeline.slot[place.index()] as usize;
            if self.plan.task.is_pure(place)
                || !readers.is_closed(place, at)
                || configuration.linearized.contains(slot)
            {
                continue;
            }
            if let Some(unseen) = &mut self.unseen
                && unseen.linearized.insert(place)
            {
                self.order.push((place, returning));
            }
            for &reader in readers.readers(place) {
                let slot = timeline.slot[reader.index()] as usize;
                let is_left = timeline.rank[reader.index()] >= at;
                if is_left && !configuration.linearized.contains(slot) {
                    configuration.linearized.insert(slot);
                    self.order.push((reader, returning));
                }
            }
        }
    }

    /// Says whether an operation that overwrites is closed and has no readers left.
    fn is_spent(&self, configuration: &Configuration<W>, place: Place) -> bool {
        let timeline = &self.plan.timeline;
        let at = configuration.at;
        let is_done = |reader: &Place| {
            timeline.rank[reader.index()] < at
                || configuration.linearized.contains(timeline.slot[reader.index()] as usize)
        };
        self.overwrites.and_then(|overwrites| overwrites.readers.as_ref()).is_some_and(|readers| {
            readers.is_closed(place, at) && readers.readers(place).iter().all(is_done)
        })
    }

    /// Lets a settled operation return.
    fn pass(&mut self, place: Place) {
        if let Some(unseen) = &mut self.unseen
            && !unseen.linearized.contains(&place)
            && let Some(&room) = unseen.room.get(&place)
        {
            unseen.returned.push((room, place));
        }
    }

    /// Linearizes what changes no state and passes the returns of what is linearized, or settled
    /// and without readers; says whether no return is left.
    fn advance(&mut self, configuration: &mut Configuration<W>) -> bool {
        let Plan { timeline, task, .. } = self.plan;
        while let Some(&returning) = timeline.returns.get(configuration.at as usize) {
            let at = configuration.at as usize;
            let mut again = configuration.state != UNSEEN;
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
                        self.order.push((place, returning));
                        again |= timeline.has_after;
                    }
                }
            }
            let slot = timeline.slot[returning.index()] as usize;
            if configuration.linearized.contains(slot) {
                configuration.linearized.remove(slot);
            } else if configuration.settled.contains(slot)
                && self.is_spent(configuration, returning)
            {
                self.pass(returning);
            } else {
                self.forget_spent(configuration);
                return false;
            }
            configuration.settled.remove(slot);
            configuration.at += 1;
        }
        true
    }

    /// Forgets of operations without readers that they were linearized: nobody will ask.
    fn forget_spent(&self, configuration: &mut Configuration<W>) {
        let timeline = &self.plan.timeline;
        if configuration.settled == Bits::EMPTY {
            return;
        }
        for &place in timeline.open(configuration.at as usize) {
            let slot = timeline.slot[place.index()] as usize;
            if configuration.settled.contains(slot)
                && configuration.linearized.contains(slot)
                && self.is_spent(configuration, place)
            {
                configuration.linearized.remove(slot);
            }
        }
    }

    /// Gives the operation whose return comes next.
    pub(crate) fn returning(&self, configuration: &Configuration<W>) -> Place {
        self.plan.timeline.returns[configuration.at as usize]
    }

    /// Says whether all that an operation's session puts before it is linearized.
    fn is_ready(&self, configuration: &Configuration<W>, place: Place) -> bool {
        let timeline = &self.plan.timeline;
        timeline.after(place).iter().all(|&before| {
            timeline.rank[before.index()] < configuration.at
                || configuration.linearized.contains(timeline.slot[before.index()] as usize)
        })
    }

    /// Lists what can be linearized next; what is to be tried first comes last, and that is the
    /// operation that returns.
    pub(crate) fn list(&mut self, configuration: &Configuration<W>, candidates: &mut Vec<Place>) {
        let Plan { timeline, task, class, .. } = self.plan;
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

    /// Leaves of the candidates behind `from` those of a stubborn set (Valmari 1989): with the
    /// operation that returns all open ones that may matter to one in the set, if they come first.
    ///
    /// On any way past the return take the first operation that is in the set; there is one. Nothing
    /// before it matters to it, so it is possible here already and can as well come first.
    pub(crate) fn choose(
        &mut self,
        configuration: &Configuration<W>,
        candidates: &mut Vec<Place>,
        from: usize,
    ) {
        let Plan { timeline, task, .. } = self.plan;
        let at = configuration.at as usize;
        let slot = |place: Place| timeline.slot[place.index()] as usize;
        let pending = &timeline.pending[..timeline.pending_at[at] as usize];
        let open = || timeline.open(at).iter().chain(pending).copied();
        let left: Bits<W> = open().map(slot).collect();
        let left = left.difference(&configuration.linearized);
        let mut set = Bits::EMPTY.with(slot(timeline.returns[at]));
        let mut asked = Bits::EMPTY;
        self.machine.look(configuration.state, |state| {
            let is_next = |place: &Place, set: &Bits<W>, asked: &Bits<W>| {
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

    /// Lists what overwrites and is seen at once, by something that is in no block, and the
    /// operation that returns; what is to be tried first comes last. Of those that lead to one
    /// state the one that returns first is listed, and pending ones last.
    fn list_seen(
        &mut self,
        readers: &Readers,
        configuration: &Configuration<W>,
        blocks: &Configuration<W>,
        candidates: &mut Vec<Place>,
    ) {
        let Plan { timeline, task, .. } = self.plan;
        let at = configuration.at as usize;
        let open = timeline.open(at);
        let pending = &timeline.pending[..timeline.pending_at[at] as usize];
        self.states.clear();
        for (i, &place) in open.iter().chain(pending).enumerate() {
            let slot = timeline.slot[place.index()] as usize;
            if task.is_pure(place)
                || configuration.linearized.contains(slot)
                || readers.is_closed(place, at as u32)
                || self.states.contains(&readers.after(place))
            {
                continue;
            }
            self.states.push(readers.after(place));
            let sees = |&&reader: &&Place| {
                task.is_pure(reader)
                    && !blocks.linearized.contains(timeline.slot[reader.index()] as usize)
                    && self.machine.perform(readers.after(place), reader).is_some()
            };
            if i == 0 || open.iter().find(sees).is_some() {
                candidates.push(place);
            }
        }
        candidates.reverse();
    }

    /// Gives an operation that changes no state and is not linearized, if it is known that it
    /// cannot return what it did any more.
    pub(crate) fn hopeless(&mut self, configuration: &Configuration<W>) -> Option<Place> {
        match self.overwrites.and_then(|overwrites| overwrites.readers.as_ref()) {
            Some(readers) => self.unseeing(readers, configuration),
            None if self.plan.looks_ahead => self.unreachable(configuration),
            None => None,
        }
    }

    /// Gives an operation that changes no state, and sees none of what it may see any more.
    fn unseeing(&mut self, readers: &Readers, configuration: &Configuration<W>) -> Option<Place> {
        let Plan { timeline, task, .. } = self.plan;
        let at = configuration.at as usize;
        let now = task.calls().get(timeline.returns[at]).end;
        let is_called = |place: Place| task.calls().get(place).start <= now;
        let is_linearized =
            |place: Place| configuration.linearized.contains(timeline.slot[place.index()] as usize);
        let open = timeline.open(at);
        let near = (at + open.len()).min(timeline.returns.len());
        let is_far = |place: &&Place| timeline.rank[place.index()] as usize >= near;
        let all = timeline.returns[at..near].iter().chain(open.iter().filter(is_far));
        for &place in all {
            if !task.is_pure(place) || (is_called(place) && is_linearized(place)) {
                continue;
            }
            let Some(seen) = readers.seen(place) else { continue };
            let is_left = |&other: &Place| {
                !is_called(other)
                    || (timeline.rank[other.index()] as usize >= at && !is_linearized(other))
            };
            let is_seen = configuration.state != UNSEEN
                && self.machine.perform(configuration.state, place).is_some();
            if !is_seen && !seen.iter().any(is_left) {
                return Some(place);
            }
        }
        None
    }

    /// Gives an operation that changes no state, if the specification can tell that it cannot
    /// return what it did.
    fn unreachable(&self, configuration: &Configuration<W>) -> Option<Place> {
        let Plan { timeline, task, .. } = self.plan;
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
