//! Confirms that operations cannot be linearized, breadth first.
//!
//! Return by return, all configurations are kept that explain what returned so far: the state, and
//! which operations are linearized though they have not returned. If none is left, there is no
//! linearization. Three things keep the sets small: an operation that changes no state is
//! linearized when it can be, a pending one only if it changes the state, and a configuration gives
//! way to one that differs from it only in having used up fewer pending operations. A fourth one is
//! the specification's to say: a configuration is dropped if an operation that changes no state can
//! no longer return what it did, whichever operations that are not linearized come before it. That
//! is asked for operations that are open and for some that return next.
//!
//! Two more leave out what can as well come in another order. Of open operations with the same call
//! and return the one that returns first is linearized first. And only those are tried that may
//! matter to the one that returns, if they come before it, or to another one that is tried; which
//! these are is the specification's to say again. Whatever else comes first on a way past the
//! return can come behind them just as well.
//!
//! An operation has a slot from its call to its return, so that sets of operations are as small as
//! what runs at a time, and pending ones keep theirs. States have numbers, and what an operation does
//! in a state is asked once; those that no configuration is in any more are forgotten now and then.

use std::collections::HashSet;
use std::rc::Rc;

use consistory_history::Value;
use consistory_spec::{CallRef, Goal, Operation, State};
use consistory_verdict::{Budget, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use super::ObjectRejection;
use super::sets::Few;
use super::view::View;

/// The operations that are linearized and have not returned, by slot: those that will, and pending
/// ones.
#[derive(Clone, Copy)]
struct Ahead<const W: usize> {
    returning: Few<W>,
    pending: Few<W>,
}

impl<const W: usize> Ahead<W> {
    fn contains(&self, slot: usize) -> bool {
        self.returning.contains(slot) || self.pending.contains(slot)
    }
}

/// The configurations at a return: by state, and by what is linearized of what will return, the
/// pending operations that were used up. An empty list stands for none of them.
type Frontier<const W: usize> = FxHashMap<(u32, Few<W>), Vec<Few<W>>>;

/// An operation that is open at a return.
struct Open<'a> {
    event: usize,
    slot: usize,
    is_pending: bool,
    is_reader: bool,
    /// The slots of open operations that happened before it.
    after: Vec<usize>,
    /// The slots of open operations that are like it and return earlier.
    twins: Vec<usize>,
    operation: Operation<'a>,
}

impl Open<'_> {
    /// Says whether it is not linearized, and all that happened before it is.
    fn is_next<const W: usize>(&self, ahead: &Ahead<W>) -> bool {
        !ahead.contains(self.slot) && self.is_ready(ahead)
    }

    fn is_ready<const W: usize>(&self, ahead: &Ahead<W>) -> bool {
        self.after.iter().all(|&before| ahead.returning.contains(before))
    }
}

/// Says whether some operations can be linearized.
pub(crate) fn is_linearizable(
    view: &View<'_>,
    relevant: &[usize],
    budget: &Budget,
) -> Result<bool, ObjectRejection> {
    let sequence = Sequence::new(view, relevant);
    match sequence.most_running(view) {
        0..=64 => search::<1>(view, &sequence, relevant, budget),
        65..=256 => search::<4>(view, &sequence, relevant, budget),
        257..=2048 => search::<32>(view, &sequence, relevant, budget),
        2049..=MOST => search::<{ MOST / 64 }>(view, &sequence, relevant, budget),
        operations => Err(Stopped::Size { operations, limit: MOST }.into()),
    }
}

/// The most operations that may run at a time.
const MOST: usize = 16_384;

/// The calls and the returns of some operations, in order.
struct Sequence {
    calls: Vec<usize>,
    returns: Vec<usize>,
    /// For each operation when it returns or, if it is pending, when it was called.
    rank: Vec<usize>,
    /// Whether the order of a session says more than time does.
    is_bound: bool,
}

impl Sequence {
    fn new(view: &View<'_>, relevant: &[usize]) -> Self {
        let mut returns: Vec<usize> =
            relevant.iter().copied().filter(|&i| !view.events[i].is_pending).collect();
        returns.sort_by_key(|&i| {
            let event = &view.events[i];
            (event.end, event.start, event.index, event.session)
        });
        let mut calls = relevant.to_vec();
        calls.sort_by_key(|&i| view.events[i].start);
        let mut rank = vec![usize::MAX; view.events.len()];
        for (at, &event) in calls.iter().enumerate().filter(|(_, e)| view.events[**e].is_pending) {
            rank[event] = at;
        }
        for (at, &event) in returns.iter().enumerate() {
            rank[event] = at;
        }
        let mut ends = FxHashMap::default();
        let mut is_bound = false;
        for event in calls.iter().map(|&event| &view.events[event]) {
            let end = ends.entry(event.session).or_insert(None);
            is_bound |= event.start.is_none() || (end.is_some() && *end >= event.start);
            *end = (*end).max(event.end);
        }
        Sequence { calls, returns, rank, is_bound }
    }

    /// Finds how many operations run at a time, at most.
    fn most_running(&self, view: &View<'_>) -> usize {
        let (mut called, mut most) = (0, 0);
        for (returned, &next) in self.returns.iter().enumerate() {
            let later = &self.calls[called..];
            called += later.partition_point(|&i| view.events[i].start <= view.events[next].end);
            most = most.max(called - returned);
        }
        most
    }
}

fn search<const W: usize>(
    view: &View<'_>,
    sequence: &Sequence,
    relevant: &[usize],
    budget: &Budget,
) -> Result<bool, ObjectRejection> {
    let Sequence { calls, returns, .. } = sequence;
    let mut steps = Steps::new(view, relevant);
    let mut slots = Slots::new(view, sequence);
    // What was called and has not returned; without times everything is called at once.
    let mut running: Vec<usize> = Vec::new();
    let mut called = 0;
    let mut frontier: Frontier<W> = Frontier::default();
    frontier.insert((0, Few::NONE), Vec::new());
    let mut looked_at = 0u64;
    for (at, &next) in returns.iter().enumerate() {
        let end = view.events[next].end;
        while called < calls.len() && view.events[calls[called]].start <= end {
            running.push(calls[called]);
            slots.take(calls[called]);
            called += 1;
        }
        let is_open = |&event: &usize| !view.happens_before(next, event);
        let open: Vec<usize> = running.iter().copied().filter(is_open).collect();
        let goals = goals(view, &open, &running, &calls[called..], &returns[at..], &slots);
        let open = listed(view, sequence, &steps, &open, &slots);
        let next_slot = slots.of[next];
        let mut passed: Frontier<W> = Frontier::default();
        let mut seen: Frontier<W> = Frontier::default();
        let mut work: Vec<(u32, Ahead<W>)> = Vec::new();
        for ((state, returning), used) in frontier {
            if used.is_empty() {
                work.push((state, Ahead { returning, pending: Few::NONE }));
            }
            work.extend(used.into_iter().map(|pending| (state, Ahead { returning, pending })));
        }
        while let Some((state, mut ahead)) = work.pop() {
            looked_at += 1;
            if looked_at.is_multiple_of(256) {
                budget.check()?;
                let each = (64 + 24 * W) as u64;
                let configurations = (work.len() + seen.len() + passed.len()) as u64;
                budget.reserve(each * configurations + 256 * steps.states.len() as u64)?;
            }
            settle(view, &mut steps, &open, state, &mut ahead);
            if ahead.returning.contains(next_slot) {
                ahead.returning.remove(next_slot);
                insert(&mut passed, state, &ahead);
                continue;
            }
            let here = &steps.states[state as usize];
            if !goals.iter().all(|goal| goal.is_near(view, here, &ahead)) {
                continue;
            }
            if !insert(&mut seen, state, &ahead) {
                continue;
            }
            let matters = mattering(view, here, &open, next_slot, &ahead);
            for one in open.iter().filter(|one| {
                !one.is_reader
                    && matters.contains(one.slot)
                    && one.is_next(&ahead)
                    && one.twins.iter().all(|&twin| ahead.contains(twin))
            }) {
                let Some(after) = steps.perform(view, state, one.event) else { continue };
                if one.is_pending && after == state {
                    continue;
                }
                let mut further = ahead;
                let set =
                    if one.is_pending { &mut further.pending } else { &mut further.returning };
                set.insert(one.slot);
                work.push((after, further));
            }
        }
        running.retain(|&i| i != next);
        slots.free.push(next_slot);
        slots.of[next] = usize::MAX;
        if passed.is_empty() {
            return Ok(false);
        }
        frontier = steps.forget(passed);
    }
    Ok(true)
}

fn listed<'a>(
    view: &'a View<'_>,
    sequence: &Sequence,
    steps: &Steps,
    open: &[usize],
    slots: &Slots,
) -> Vec<Open<'a>> {
    let listed = |&event: &usize| {
        let call = &view.events[event];
        // Of what runs at a time only the order of a session puts one before another.
        let is_before = |&&other: &&usize| {
            view.events[other].session == call.session && view.happens_before(other, event)
        };
        let is_twin = |&&other: &&usize| {
            !sequence.is_bound
                && steps.kind[other] == steps.kind[event]
                && view.events[other].is_pending == call.is_pending
                && sequence.rank[other] < sequence.rank[event]
        };
        let slot = |&other: &usize| slots.of[other];
        Open {
            event,
            slot: slots.of[event],
            is_pending: call.is_pending,
            is_reader: !call.is_pending
                && view.object.is_read_only(&call.method, call.returns.as_ref()),
            after: open.iter().filter(is_before).map(slot).collect(),
            twins: open.iter().filter(is_twin).map(slot).collect(),
            operation: Operation {
                method: &call.method,
                args: &call.args,
                returns: call.returns.as_ref(),
            },
        }
    };
    open.iter().map(listed).collect()
}

/// Finds the operation that returns next and, again and again, what may matter to one that was
/// found if it comes before it.
fn mattering<const W: usize>(
    view: &View<'_>,
    state: &State,
    open: &[Open<'_>],
    next_slot: usize,
    ahead: &Ahead<W>,
) -> Few<W> {
    let (mut found, mut asked) = (Few::<W>::NONE, Few::<W>::NONE);
    found.insert(next_slot);
    let is_left = |one: &&Open<'_>| !ahead.contains(one.slot);
    loop {
        let mut left = open.iter().filter(is_left);
        let one = left.find(|one| found.contains(one.slot) && !asked.contains(one.slot));
        let Some(one) = one else { return found };
        asked.insert(one.slot);
        for other in open.iter().filter(is_left) {
            if !found.contains(other.slot)
                && (!one.is_ready(ahead)
                    || view.object.depends(state, &one.operation, &other.operation))
            {
                found.insert(other.slot);
            }
        }
    }
}

/// Linearizes what changes no state, if it returns what it did.
fn settle<const W: usize>(
    view: &View<'_>,
    steps: &mut Steps,
    open: &[Open<'_>],
    state: u32,
    ahead: &mut Ahead<W>,
) {
    loop {
        let mut is_done = true;
        for one in open.iter().filter(|one| one.is_reader) {
            if one.is_next(ahead) && steps.perform(view, state, one.event).is_some() {
                ahead.returning.insert(one.slot);
                is_done = false;
            }
        }
        if is_done {
            return;
        }
    }
}

/// Adds a configuration, unless one that used up fewer pending operations is there.
fn insert<const W: usize>(frontier: &mut Frontier<W>, state: u32, ahead: &Ahead<W>) -> bool {
    let mut is_known = true;
    let known = frontier.entry((state, ahead.returning)).or_insert_with(|| {
        is_known = false;
        Vec::new()
    });
    let used = &ahead.pending;
    if is_known && (known.is_empty() || known.iter().any(|fewer| fewer.is_subset(used))) {
        return false;
    }
    known.retain(|more| !used.is_subset(more));
    if *used != Few::NONE {
        known.push(*used);
    }
    true
}

/// What operations do, as far as it was asked.
struct Steps {
    states: Vec<Rc<State>>,
    numbers: FxHashMap<Rc<State>, u32>,
    /// For each operation a number that it shares with those of the same call and return.
    kind: Vec<u32>,
    known: FxHashMap<(u32, u32), Option<u32>>,
    /// Where states are copied to be changed.
    scratch: State,
}

/// How many states are kept in any case.
const KEPT: usize = 1 << 16;

impl Steps {
    fn new(view: &View<'_>, relevant: &[usize]) -> Self {
        let mut kinds: FxHashMap<(&str, &[Value], Option<&Value>), u32> = FxHashMap::default();
        let mut kind = vec![0; view.events.len()];
        for &event in relevant {
            let call = &view.events[event];
            let fresh = kinds.len() as u32;
            let key = (&*call.method, &*call.args, call.returns.as_ref());
            kind[event] = *kinds.entry(key).or_insert(fresh);
        }
        let scratch = view.object.initial();
        let initial = Rc::new(scratch.clone());
        let numbers = FxHashMap::from_iter([(Rc::clone(&initial), 0)]);
        Steps { states: vec![initial], numbers, kind, known: FxHashMap::default(), scratch }
    }

    /// Performs an operation; gives the state behind it, if it can return what it did.
    fn perform(&mut self, view: &View<'_>, state: u32, event: usize) -> Option<u32> {
        let key = (state, self.kind[event]);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        self.scratch.clone_from(&self.states[state as usize]);
        let is_possible = view.perform(&mut self.scratch, event);
        let after = is_possible.then(|| match self.numbers.get(&self.scratch) {
            Some(&known) => known,
            None => {
                let fresh = self.states.len() as u32;
                let state = Rc::new(self.scratch.clone());
                self.states.push(Rc::clone(&state));
                self.numbers.insert(state, fresh);
                fresh
            }
        });
        self.known.insert(key, after);
        after
    }

    /// Forgets states that no configuration is in, if they are many; gives the configurations with
    /// their new numbers.
    fn forget<const W: usize>(&mut self, frontier: Frontier<W>) -> Frontier<W> {
        let used: FxHashSet<u32> = frontier.keys().map(|&(state, _)| state).collect();
        if self.states.len() < KEPT + 4 * used.len() {
            return frontier;
        }
        let mut used: Vec<u32> = used.into_iter().collect();
        used.sort_unstable();
        self.known.clear();
        self.states = used.iter().map(|&old| Rc::clone(&self.states[old as usize])).collect();
        self.numbers = self.states.iter().cloned().zip(0..).collect();
        let number = |old: u32| used.partition_point(|&other| other < old) as u32;
        let renumbered = |((old, set), used)| ((number(old), set), used);
        frontier.into_iter().map(renumbered).collect()
    }
}

/// The slots of operations that run.
struct Slots {
    /// For each operation that runs its slot.
    of: Vec<usize>,
    free: Vec<usize>,
}

impl Slots {
    fn new(view: &View<'_>, sequence: &Sequence) -> Self {
        let free = (0..sequence.most_running(view)).rev().collect();
        Slots { of: vec![usize::MAX; view.events.len()], free }
    }

    fn take(&mut self, event: usize) {
        self.of[event] = self.free.pop().expect("there are as many as run at a time");
    }
}

/// An operation that changes no state, and what may come before it.
struct Aim<'a> {
    /// Its slot, if it was called.
    slot: Option<usize>,
    goal: Goal<'a>,
    /// With their slots.
    before: Vec<(Option<usize>, CallRef<'a>)>,
}

/// How many operations that change no state and are not open yet are looked at.
const AHEAD: usize = 8;
/// Among how many that return next.
const NEXT: usize = 64;

/// Lists the open operations that change no state and some others, of those that return next, if
/// the specification looks ahead.
fn goals<'a>(
    view: &'a View<'_>,
    open: &[usize],
    running: &[usize],
    uncalled: &[usize],
    returning: &[usize],
    slots: &Slots,
) -> Vec<Aim<'a>> {
    if !view.object.looks_ahead() {
        return Vec::new();
    }
    let is_reader = |event: usize| {
        let event = &view.events[event];
        view.object.is_read_only(&event.method, event.returns.as_ref())
    };
    let slot = |event: usize| Some(slots.of[event]).filter(|&slot| slot != usize::MAX);
    let is_open: HashSet<usize> = open.iter().copied().collect();
    let near = &returning[..returning.len().min(NEXT)];
    let (mut aims, mut others) = (Vec::new(), 0);
    for &event in near.iter().filter(|&&event| is_reader(event)) {
        let call = &view.events[event];
        let Some(returns) = &call.returns else { continue };
        others += usize::from(!is_open.contains(&event));
        if others > AHEAD {
            break;
        }
        let later = uncalled.iter().take_while(|&&other| view.events[other].start <= call.end);
        let is_before = |&other: &usize| !view.happens_before(event, other) && !is_reader(other);
        let before = running.iter().chain(later).filter(|other| is_before(other)).map(|&other| {
            let call = &view.events[other];
            (slot(other), (&*call.method, &*call.args))
        });
        let goal = Goal { method: &call.method, args: &call.args, returns };
        aims.push(Aim { slot: slot(event), goal, before: before.collect() });
    }
    aims
}

impl Aim<'_> {
    /// Says whether the operation is linearized or still can be.
    fn is_near<const W: usize>(&self, view: &View<'_>, state: &State, ahead: &Ahead<W>) -> bool {
        let is_done = |slot: Option<usize>| slot.is_some_and(|slot| ahead.contains(slot));
        is_done(self.slot) || {
            let left = self.before.iter().filter(|(slot, _)| !is_done(*slot));
            let by: Vec<CallRef<'_>> = left.map(|&(_, call)| call).collect();
            view.object.can_reach(state, &self.goal, &by)
        }
    }
}
