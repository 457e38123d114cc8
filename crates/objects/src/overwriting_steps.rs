//! The steps of the search with operations that overwrite the whole state.
//!
//! Once an overwriting operation is linearized, the other open ones are *settled*, and *closed
//! blocks* need no choice ([`crate::overwrites`]). A step linearizes an operation, lets a settled
//! one return unseen, or linearizes all closed blocks.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::calls::CallIndex;
use crate::machine::{StateId, TransitionTable};
use crate::overwrites::{Overwrites, Readers};
use crate::plain_steps::{Configuration, PlainSteps, Reached, StepPlan};
use crate::small_set::SmallSet;

/// The state after a block; no operation will see it.
const UNSEEN: StateId = StateId(u32::MAX);

/// A step from a configuration to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OverwritingStep {
    /// An operation is linearized.
    Take(CallIndex),
    /// The returning operation is settled and stays unseen.
    Pass,
    /// All closed blocks are linearized.
    Blocks,
}

/// Performs steps with overwriting operations.
pub(crate) struct OverwritingSteps<'a, 'h, const W: usize> {
    plain: PlainSteps<'a, 'h, W>,
    overwrites: &'a Overwrites,
    states: Vec<StateId>,
    unseen: Option<Unseen>,
}

/// State of settled operations along a path of steps.
#[derive(Default)]
struct Unseen {
    /// Operations that are part of the order.
    linearized: FxHashSet<CallIndex>,
    /// Position in the order before which each settled operation fits.
    room: FxHashMap<CallIndex, usize>,
    /// Operations that returned without readers, each with the position in the order before which
    /// it is inserted.
    returned: Vec<(usize, CallIndex)>,
}

impl<'a, 'h, const W: usize> OverwritingSteps<'a, 'h, W> {
    pub(crate) fn new(
        plan: &'a StepPlan<'a, 'h>,
        machine: TransitionTable<'a, 'h>,
        overwrites: &'a Overwrites,
    ) -> Self {
        let plain = PlainSteps::new(plan, machine);
        OverwritingSteps { plain, overwrites, states: Vec::new(), unseen: None }
    }

    pub(crate) fn machine(&mut self) -> &mut TransitionTable<'a, 'h> {
        &mut self.plain.machine
    }

    fn readers(&self) -> Option<&'a Readers> {
        self.overwrites.readers.as_ref()
    }

    /// Returns the first configuration.
    pub(crate) fn start(&mut self) -> Reached<W> {
        let initial = self.plain.initial();
        self.advance(initial)
    }

    /// Computes the order that some steps lead to. Each operation is paired with the one at whose
    /// return it was linearized.
    pub(crate) fn unfold(
        &mut self,
        steps: impl IntoIterator<Item = OverwritingStep>,
    ) -> Vec<(CallIndex, CallIndex)> {
        self.plain.order.clear();
        self.unseen = Some(Unseen::default());
        let mut reached = self.start();
        for step in steps {
            let Reached::Before(configuration) = reached else { break };
            reached = self.apply(&configuration, step).unwrap_or(Reached::Before(configuration));
        }
        let mut returned = self.unseen.take().map_or(Vec::new(), |unseen| unseen.returned);
        returned.sort_by_key(|&(before, _)| before);
        let mut returned = returned.into_iter().peekable();
        let order = &self.plain.order;
        let mut whole = Vec::with_capacity(order.len() + returned.len());
        for (i, &(place, at)) in order.iter().enumerate() {
            while let Some((_, unseen)) = returned.next_if(|&(before, _)| before == i) {
                whole.push((unseen, at));
            }
            whole.push((place, at));
        }
        whole
    }

    /// Lists the steps from a configuration, each with its result.
    pub(crate) fn expand(
        &mut self,
        from: &Configuration<W>,
        candidates: &mut Vec<CallIndex>,
        next: &mut Vec<(OverwritingStep, Reached<W>)>,
    ) {
        let StepPlan { timeline, task, .. } = self.plain.plan;
        self.plain.order.clear();
        let returning = timeline.returns[from.at as usize];
        if from.settled.contains(timeline.slot[returning.index()] as usize) {
            next.extend(self.try_step(from, OverwritingStep::Pass));
        }
        candidates.clear();
        match self.readers() {
            Some(readers) => {
                let mut blocks = *from;
                self.take_blocks(readers, &mut blocks);
                let is_last = match task.is_pure(returning) {
                    true => blocks.linearized.contains(timeline.slot[returning.index()] as usize),
                    false => readers.is_closed(returning, from.at),
                };
                if is_last {
                    next.extend(self.try_step(from, OverwritingStep::Blocks));
                    return;
                }
                self.list_seen(readers, from, &blocks, candidates);
            }
            None => self.plain.list(from, candidates),
        }
        for &candidate in candidates.iter().rev() {
            next.extend(self.try_step(from, OverwritingStep::Take(candidate)));
        }
    }

    fn try_step(
        &mut self,
        from: &Configuration<W>,
        step: OverwritingStep,
    ) -> Option<(OverwritingStep, Reached<W>)> {
        Some((step, self.apply(from, step)?))
    }

    /// Performs a step; `None` if it is impossible or unnecessary.
    fn apply(&mut self, from: &Configuration<W>, step: OverwritingStep) -> Option<Reached<W>> {
        let StepPlan { timeline, .. } = self.plain.plan;
        let returning = timeline.returns[from.at as usize];
        let slot = timeline.slot[returning.index()] as usize;
        // A settled operation that is chosen takes effect now.
        let mut next = *from;
        next.settled.remove(slot);
        let before = self.plain.order.len();
        match (step, self.readers()) {
            (OverwritingStep::Take(place), None) => {
                next = self.plain.linearize(&next, place)?;
                self.note_linearized(place);
                if self.overwrites.contains(place) {
                    self.settle(&mut next, before);
                }
            }
            (OverwritingStep::Take(place), Some(readers)) => {
                self.take_blocks(readers, &mut next);
                next.state = readers.after(place);
                next.linearized.insert(timeline.slot[place.index()] as usize);
                self.plain.order.push((place, returning));
                self.note_linearized(place);
                self.settle(&mut next, before);
            }
            (OverwritingStep::Blocks, Some(readers)) => {
                self.take_blocks(readers, &mut next);
                next.state = UNSEEN;
                self.settle(&mut next, before);
                next.settled.insert(slot);
            }
            (OverwritingStep::Blocks, None) => return None,
            (OverwritingStep::Pass, _) => {
                self.pass(returning);
                next.at += 1;
            }
        }
        Some(self.advance(next))
    }

    fn note_linearized(&mut self, place: CallIndex) {
        if let Some(unseen) = &mut self.unseen {
            unseen.linearized.insert(place);
        }
    }

    /// Linearizes reads, and passes the returns of operations that are linearized, and of settled
    /// operations without readers.
    fn advance(&mut self, mut configuration: Configuration<W>) -> Reached<W> {
        let StepPlan { timeline, .. } = self.plain.plan;
        while let Some(&returning) = timeline.returns.get(configuration.at as usize) {
            if configuration.state != UNSEEN {
                self.plain.linearize_reads(&mut configuration);
            }
            let slot = timeline.slot[returning.index()] as usize;
            if configuration.linearized.contains(slot) {
                configuration.linearized.remove(slot);
            } else if configuration.settled.contains(slot)
                && self.is_spent(&configuration, returning)
            {
                self.pass(returning);
            } else {
                self.forget_spent(&mut configuration);
                return Reached::Before(configuration);
            }
            configuration.settled.remove(slot);
            configuration.at += 1;
        }
        Reached::End
    }

    /// Settles the open overwriting operations, except the returning one: if the returning
    /// operation came directly before another overwriting one, it could as well take effect now,
    /// and the other one later. The operation that overwrites them is in the order at `before` or
    /// after it.
    fn settle(&mut self, configuration: &mut Configuration<W>, before: usize) {
        let timeline = &self.plain.plan.timeline;
        let open = timeline.open(configuration.at as usize);
        let overwrites = self.overwrites;
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
        let StepPlan { timeline, task, .. } = self.plain.plan;
        let at = configuration.at;
        let returning = timeline.returns[at as usize];
        for &place in timeline.open(at as usize) {
            let slot = timeline.slot[place.index()] as usize;
            if task.is_pure(place)
                || !readers.is_closed(place, at)
                || configuration.linearized.contains(slot)
            {
                continue;
            }
            if let Some(unseen) = &mut self.unseen
                && unseen.linearized.insert(place)
            {
                self.plain.order.push((place, returning));
            }
            for &reader in readers.readers(place) {
                let slot = timeline.slot[reader.index()] as usize;
                let is_left = timeline.rank[reader.index()] >= at;
                if is_left && !configuration.linearized.contains(slot) {
                    configuration.linearized.insert(slot);
                    self.plain.order.push((reader, returning));
                }
            }
        }
    }

    /// Checks whether an overwriting operation is closed and has no readers left.
    fn is_spent(&self, configuration: &Configuration<W>, place: CallIndex) -> bool {
        let timeline = &self.plain.plan.timeline;
        let at = configuration.at;
        let is_done = |reader: &CallIndex| {
            timeline.rank[reader.index()] < at
                || configuration.linearized.contains(timeline.slot[reader.index()] as usize)
        };
        self.readers().is_some_and(|readers| {
            readers.is_closed(place, at) && readers.readers(place).iter().all(is_done)
        })
    }

    /// Lets a settled operation return.
    fn pass(&mut self, place: CallIndex) {
        if let Some(unseen) = &mut self.unseen
            && !unseen.linearized.contains(&place)
            && let Some(&room) = unseen.room.get(&place)
        {
            unseen.returned.push((room, place));
        }
    }

    /// Removes operations without remaining readers from the set of linearized operations: nothing
    /// depends on them.
    fn forget_spent(&self, configuration: &mut Configuration<W>) {
        let timeline = &self.plain.plan.timeline;
        if configuration.settled == SmallSet::EMPTY {
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

    /// Lists the returning operation and the overwriting operations that a read outside all blocks
    /// sees at once; the one to try first comes last. Of several operations with the same resulting
    /// state, only the one that returns first is listed; pending ones come last.
    fn list_seen(
        &mut self,
        readers: &Readers,
        configuration: &Configuration<W>,
        blocks: &Configuration<W>,
        candidates: &mut Vec<CallIndex>,
    ) {
        let StepPlan { timeline, task, .. } = self.plain.plan;
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
            let sees = |&&reader: &&CallIndex| {
                task.is_pure(reader)
                    && !blocks.linearized.contains(timeline.slot[reader.index()] as usize)
                    && self.plain.machine.perform(readers.after(place), reader).is_some()
            };
            if i == 0 || open.iter().find(sees).is_some() {
                candidates.push(place);
            }
        }
        candidates.reverse();
    }

    /// Returns an unlinearized read that is known to be unable to return its value.
    pub(crate) fn hopeless(&mut self, configuration: &Configuration<W>) -> Option<CallIndex> {
        match self.readers() {
            Some(readers) => self.unseeing(readers, configuration),
            None => self.plain.hopeless(configuration),
        }
    }

    /// Returns a read whose possible sources can no longer be seen.
    fn unseeing(
        &mut self,
        readers: &Readers,
        configuration: &Configuration<W>,
    ) -> Option<CallIndex> {
        let StepPlan { timeline, task, .. } = self.plain.plan;
        let at = configuration.at as usize;
        let now = task.calls().get(timeline.returns[at]).end;
        let is_called = |place: CallIndex| task.calls().get(place).start <= now;
        let is_linearized = |place: CallIndex| {
            configuration.linearized.contains(timeline.slot[place.index()] as usize)
        };
        let open = timeline.open(at);
        let near = (at + open.len()).min(timeline.returns.len());
        let is_far = |place: &&CallIndex| timeline.rank[place.index()] as usize >= near;
        let all = timeline.returns[at..near].iter().chain(open.iter().filter(is_far));
        for &place in all {
            if !task.is_pure(place) || (is_called(place) && is_linearized(place)) {
                continue;
            }
            let Some(seen) = readers.seen(place) else { continue };
            let is_left = |&other: &CallIndex| {
                !is_called(other)
                    || (timeline.rank[other.index()] as usize >= at && !is_linearized(other))
            };
            let is_seen = configuration.state != UNSEEN
                && self.plain.machine.perform(configuration.state, place).is_some();
            if !is_seen && !seen.iter().any(is_left) {
                return Some(place);
            }
        }
        None
    }
}
