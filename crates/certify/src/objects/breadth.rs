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
//! An operation has a slot from its call to its return, so that sets of operations are as small as
//! what runs at a time, and pending ones keep theirs. States have numbers, and what an operation does
//! in a state is asked once.

use std::collections::HashSet;

use consistory_history::Value;
use consistory_spec::{CallRef, Goal, State};
use consistory_verdict::Budget;
use rustc_hash::FxHashMap;

use super::ObjectRejection;
use super::sets::Set;
use super::view::View;

/// The operations that are linearized and have not returned, by slot: those that will, and pending
/// ones.
#[derive(Clone)]
struct Ahead {
    returning: Set,
    pending: Set,
}

/// The configurations at a return, by state and by what is linearized of what will return.
type Frontier = FxHashMap<(u32, Set), Vec<Set>>;

/// An operation that is open at a return.
struct Open {
    event: usize,
    slot: usize,
    is_pending: bool,
    is_reader: bool,
    /// The slots of open operations that happened before it.
    after: Vec<usize>,
}

impl Open {
    /// Says whether it is not linearized, and all that happened before it is.
    fn is_next(&self, ahead: &Ahead) -> bool {
        !ahead.returning.contains(self.slot)
            && !ahead.pending.contains(self.slot)
            && self.after.iter().all(|&before| ahead.returning.contains(before))
    }
}

/// Says whether some operations can be linearized.
pub(crate) fn is_linearizable(
    view: &View<'_>,
    relevant: &[usize],
    budget: &Budget,
) -> Result<bool, ObjectRejection> {
    let mut returns: Vec<usize> =
        relevant.iter().copied().filter(|&i| !view.events[i].is_pending).collect();
    returns.sort_by_key(|&i| {
        let event = &view.events[i];
        (event.end, event.start, event.index, event.session)
    });
    let mut calls = relevant.to_vec();
    calls.sort_by_key(|&i| view.events[i].start);
    let mut steps = Steps::new(view, relevant);
    let mut slots = Slots::new(view, &calls, &returns);
    // What was called and has not returned; without times everything is called at once.
    let mut running: Vec<usize> = Vec::new();
    let mut called = 0;
    let mut frontier: Frontier = Frontier::default();
    frontier.insert((0, slots.empty()), vec![slots.empty()]);
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
        let open = listed(view, &open, &slots);
        let next_slot = slots.of[next];
        let mut passed: Frontier = Frontier::default();
        let mut seen: Frontier = Frontier::default();
        let mut work: Vec<(u32, Ahead)> = Vec::new();
        for ((state, returning), used) in frontier {
            let ahead = |pending| Ahead { returning: returning.clone(), pending };
            work.extend(used.into_iter().map(|pending| (state, ahead(pending))));
        }
        while let Some((state, mut ahead)) = work.pop() {
            looked_at += 1;
            if looked_at.is_multiple_of(256) {
                budget.check()?;
                let sets = 128 + 32 * slots.words();
                let configurations = (work.len() + seen.len() + passed.len()) as u64;
                budget.reserve(sets * configurations + 256 * steps.states.len() as u64)?;
            }
            settle(view, &mut steps, &open, state, &mut ahead);
            if ahead.returning.contains(next_slot) {
                ahead.returning.remove(next_slot);
                insert(&mut passed, state, ahead);
                continue;
            }
            if !goals.iter().all(|goal| goal.is_near(view, &steps.states[state as usize], &ahead)) {
                continue;
            }
            if !insert(&mut seen, state, ahead.clone()) {
                continue;
            }
            for one in open.iter().filter(|one| !one.is_reader && one.is_next(&ahead)) {
                let Some(after) = steps.perform(view, state, one.event) else { continue };
                if one.is_pending && after == state {
                    continue;
                }
                let mut further = ahead.clone();
                let set =
                    if one.is_pending { &mut further.pending } else { &mut further.returning };
                set.insert(one.slot);
                work.push((after, further));
            }
        }
        running.retain(|&i| i != next);
        slots.free.push(next_slot);
        slots.of[next] = usize::MAX;
        frontier = passed;
        if frontier.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn listed(view: &View<'_>, open: &[usize], slots: &Slots) -> Vec<Open> {
    let listed = |&event: &usize| {
        let call = &view.events[event];
        // Of what runs at a time only the order of a session puts one before another.
        let is_before = |&&other: &&usize| {
            view.events[other].session == call.session && view.happens_before(other, event)
        };
        Open {
            event,
            slot: slots.of[event],
            is_pending: call.is_pending,
            is_reader: !call.is_pending
                && view.object.is_read_only(&call.method, call.returns.as_ref()),
            after: open.iter().filter(is_before).map(|&other| slots.of[other]).collect(),
        }
    };
    open.iter().map(listed).collect()
}

/// Linearizes what changes no state, if it returns what it did.
fn settle(view: &View<'_>, steps: &mut Steps, open: &[Open], state: u32, ahead: &mut Ahead) {
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
fn insert(frontier: &mut Frontier, state: u32, ahead: Ahead) -> bool {
    let known = frontier.entry((state, ahead.returning)).or_default();
    if known.iter().any(|fewer| fewer.is_subset(&ahead.pending)) {
        return false;
    }
    known.retain(|more| !ahead.pending.is_subset(more));
    known.push(ahead.pending);
    true
}

/// What operations do, as far as it was asked.
struct Steps {
    states: Vec<State>,
    numbers: FxHashMap<State, u32>,
    /// For each operation a number that it shares with those of the same call and return.
    kind: Vec<u32>,
    known: FxHashMap<(u32, u32), Option<u32>>,
}

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
        let initial = view.object.initial();
        let numbers = FxHashMap::from_iter([(initial.clone(), 0)]);
        Steps { states: vec![initial], numbers, kind, known: FxHashMap::default() }
    }

    /// Performs an operation; gives the state behind it, if it can return what it did.
    fn perform(&mut self, view: &View<'_>, state: u32, event: usize) -> Option<u32> {
        let key = (state, self.kind[event]);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let mut after = self.states[state as usize].clone();
        let after = view.perform(&mut after, event).then(|| {
            let fresh = self.states.len() as u32;
            let states = &mut self.states;
            *self.numbers.entry(after).or_insert_with_key(|after| {
                states.push(after.clone());
                fresh
            })
        });
        self.known.insert(key, after);
        after
    }
}

/// The slots of operations that run.
struct Slots {
    /// For each operation that runs its slot.
    of: Vec<usize>,
    free: Vec<usize>,
    count: usize,
}

impl Slots {
    /// Finds how many slots there have to be.
    fn new(view: &View<'_>, calls: &[usize], returns: &[usize]) -> Self {
        let (mut called, mut most) = (0, 0);
        for (returned, &next) in returns.iter().enumerate() {
            let later = &calls[called..];
            called += later.partition_point(|&i| view.events[i].start <= view.events[next].end);
            most = most.max(called - returned);
        }
        Slots {
            of: vec![usize::MAX; view.events.len()],
            free: (0..most).rev().collect(),
            count: most,
        }
    }

    fn take(&mut self, event: usize) {
        self.of[event] = self.free.pop().expect("there are as many as run at a time");
    }

    fn empty(&self) -> Set {
        Set::empty(self.count)
    }

    fn words(&self) -> u64 {
        self.count.div_ceil(64) as u64
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
    fn is_near(&self, view: &View<'_>, state: &State, ahead: &Ahead) -> bool {
        let is_done = |slot: Option<usize>| {
            slot.is_some_and(|slot| ahead.returning.contains(slot) || ahead.pending.contains(slot))
        };
        is_done(self.slot) || {
            let left = self.before.iter().filter(|(slot, _)| !is_done(*slot));
            let by: Vec<CallRef<'_>> = left.map(|&(_, call)| call).collect();
            view.object.can_reach(state, &self.goal, &by)
        }
    }
}
