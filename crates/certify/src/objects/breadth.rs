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

use std::collections::{BTreeSet, HashMap, HashSet};

use consistory_spec::{CallRef, Goal, State};
use consistory_verdict::Budget;

use super::ObjectRejection;
use super::view::View;

/// The operations that are linearized and have not returned: those that will, and pending ones.
type Ahead = (BTreeSet<usize>, BTreeSet<usize>);

/// The configurations at a return, by state and by what is linearized of what will return.
type Frontier = HashMap<(State, BTreeSet<usize>), Vec<BTreeSet<usize>>>;

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
    // What was called and has not returned; without times everything is called at once.
    let mut running: Vec<usize> = Vec::new();
    let mut called = 0;
    let mut frontier: Frontier = Frontier::new();
    frontier.insert((view.object.initial(), BTreeSet::new()), vec![BTreeSet::new()]);
    let mut steps = 0u64;
    for (at, &next) in returns.iter().enumerate() {
        let end = view.events[next].end;
        while called < calls.len() && view.events[calls[called]].start <= end {
            running.push(calls[called]);
            called += 1;
        }
        let open: Vec<usize> =
            running.iter().copied().filter(|&i| !view.happens_before(next, i)).collect();
        let goals = goals(view, &open, &running, &calls[called..], &returns[at..]);
        let mut passed: Frontier = Frontier::new();
        let mut seen: Frontier = Frontier::new();
        let mut work: Vec<(State, Ahead)> = Vec::new();
        for ((state, ahead), pending) in frontier {
            for used in pending {
                work.push((state.clone(), (ahead.clone(), used)));
            }
        }
        while let Some((state, mut ahead)) = work.pop() {
            steps += 1;
            if steps.is_multiple_of(256) {
                budget.check()?;
                budget.reserve(512 * (work.len() + seen.len() + passed.len()) as u64)?;
            }
            settle(view, &open, &state, &mut ahead);
            if ahead.0.contains(&next) {
                ahead.0.remove(&next);
                insert(&mut passed, state, ahead);
                continue;
            }
            if !goals.iter().all(|goal| goal.is_near(view, &state, &ahead)) {
                continue;
            }
            if !insert(&mut seen, state.clone(), ahead.clone()) {
                continue;
            }
            for &event in &open {
                let is_pending = view.events[event].is_pending;
                let is_linearized = ahead.0.contains(&event) || ahead.1.contains(&event);
                if is_linearized || !is_ready(view, &open, &ahead, event) {
                    continue;
                }
                let mut after = state.clone();
                if !view.perform(&mut after, event) || (is_pending && after == state) {
                    continue;
                }
                let mut further = ahead.clone();
                if is_pending { &mut further.1 } else { &mut further.0 }.insert(event);
                work.push((after, further));
            }
        }
        running.retain(|&i| i != next);
        frontier = passed;
        if frontier.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Linearizes what changes no state, if it returns what it did.
fn settle(view: &View<'_>, open: &[usize], state: &State, ahead: &mut Ahead) {
    loop {
        let found = open.iter().copied().find(|&i| {
            let event = &view.events[i];
            !event.is_pending
                && !ahead.0.contains(&i)
                && view.object.is_read_only(&event.method, event.returns.as_ref())
                && is_ready(view, open, ahead, i)
                && view.perform(&mut state.clone(), i)
        });
        match found {
            Some(event) => ahead.0.insert(event),
            None => return,
        };
    }
}

/// Says whether all that happened before an operation is linearized.
fn is_ready(view: &View<'_>, open: &[usize], ahead: &Ahead, event: usize) -> bool {
    let is_before = |&before: &usize| view.happens_before(before, event);
    open.iter().filter(|before| is_before(before)).all(|before| ahead.0.contains(before))
}

/// Adds a configuration, unless one that used up fewer pending operations is there.
fn insert(frontier: &mut Frontier, state: State, (ahead, used): Ahead) -> bool {
    let known = frontier.entry((state, ahead)).or_default();
    if known.iter().any(|fewer| fewer.is_subset(&used)) {
        return false;
    }
    known.retain(|more| !used.is_subset(more));
    known.push(used);
    true
}

/// An operation that changes no state, and what may come before it.
struct Aim<'a> {
    event: usize,
    goal: Goal<'a>,
    before: Vec<usize>,
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
) -> Vec<Aim<'a>> {
    if !view.object.looks_ahead() {
        return Vec::new();
    }
    let is_reader = |event: usize| {
        let event = &view.events[event];
        view.object.is_read_only(&event.method, event.returns.as_ref())
    };
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
        let before = running.iter().chain(later).copied().filter(is_before).collect();
        let goal = Goal { method: &call.method, args: &call.args, returns };
        aims.push(Aim { event, goal, before });
    }
    aims
}

impl Aim<'_> {
    /// Says whether the operation is linearized or still can be.
    fn is_near(&self, view: &View<'_>, state: &State, ahead: &Ahead) -> bool {
        let is_left = |event: &&usize| !ahead.0.contains(event) && !ahead.1.contains(event);
        let call = |&event: &usize| -> CallRef<'_> {
            let event = &view.events[event];
            (&event.method, &event.args)
        };
        ahead.0.contains(&self.event) || {
            let by: Vec<CallRef<'_>> = self.before.iter().filter(is_left).map(call).collect();
            view.object.can_reach(state, &self.goal, &by)
        }
    }
}
