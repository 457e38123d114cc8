//! Replaying an abstract execution.

use std::collections::HashMap;

use consistory_history::Value;
use consistory_spec::{Atom, Axiom, Left, ObjectModel, State};
use consistory_verdict::{Attempt, Budget, Linearization};

use super::view::View;
use super::{ObjectRejection, depth};

/// Checks a linearization of all completed operations.
pub(crate) fn consistent(
    view: &View<'_>,
    model: &ObjectModel,
    linearization: &Linearization,
    budget: &Budget,
) -> Result<(), ObjectRejection> {
    let order = right_so_far(view, model, linearization, budget)?;
    let mut is_listed = vec![false; view.events.len()];
    for &event in &order {
        is_listed[event] = true;
    }
    let missing =
        (0..view.events.len()).find(|&event| !view.events[event].is_pending && !is_listed[event]);
    match missing {
        Some(event) => Err(ObjectRejection::Missing { op: view.name(event) }),
        None => Ok(()),
    }
}

/// Checks an attempt: it must be correct so far, and its operation must not be able to come next.
pub(crate) fn stuck(
    view: &View<'_>,
    model: &ObjectModel,
    attempt: &Attempt,
    index: usize,
    budget: &Budget,
) -> Result<(), ObjectRejection> {
    let order = right_so_far(view, model, &attempt.linearization, budget)?;
    let next = view.find("unexplained", attempt.unexplained)?;
    let misplaced = || ObjectRejection::Misplaced { part: "unexplained", op: view.name(next) };
    if view.events[next].is_pending || order.contains(&next) {
        return Err(misplaced());
    }
    let not_stuck = || ObjectRejection::NotStuck { index, op: view.name(next) };
    let Some(vis) = &attempt.linearization.vis else {
        if !model.is_linearizability() && !order.is_empty() {
            // Each operation saw all operations before it, but the next one need not.
            let sets: Vec<Vec<usize>> = (0..order.len()).map(|i| (0..i).collect()).collect();
            return match depth::can_follow(view, model, &order, &sets, next, budget)? {
                true => Err(not_stuck()),
                false => Ok(()),
            };
        }
        let mut state = view.object.initial();
        for &event in &order {
            view.see(&mut state, event);
        }
        return if view.perform(&mut state, next) { Err(not_stuck()) } else { Ok(()) };
    };
    let places: HashMap<_, usize> =
        attempt.linearization.order.iter().enumerate().map(|(i, &op)| (op, i)).collect();
    let sets: Vec<Vec<usize>> =
        vis.iter().map(|seen| seen.iter().map(|op| places[op]).collect()).collect();
    match depth::can_follow(view, model, &order, &sets, next, budget)? {
        true => Err(not_stuck()),
        false => Ok(()),
    }
}

/// Operations between two checks of the budget.
const OPS_PER_CHECK: usize = 1 << 15;

/// Checks the budget at some of the operations.
fn check_every(operation: usize, budget: &Budget) -> Result<(), ObjectRejection> {
    match operation % OPS_PER_CHECK {
        0 => Ok(budget.check()?),
        _ => Ok(()),
    }
}

/// Checks everything about a linearization except whether it is complete; returns the numbers of
/// its operations.
fn right_so_far(
    view: &View<'_>,
    model: &ObjectModel,
    linearization: &Linearization,
    budget: &Budget,
) -> Result<Vec<usize>, ObjectRejection> {
    let mut place = vec![None; view.events.len()];
    let mut order = Vec::with_capacity(linearization.order.len());
    for &op in &linearization.order {
        let event = view.find("order", op)?;
        if place[event].replace(order.len()).is_some() {
            return Err(ObjectRejection::Misplaced { part: "order", op: view.name(event) });
        }
        order.push(event);
        check_every(order.len(), budget)?;
    }
    keeps_happens_before(view, &order, budget)?;
    let Some(vis) = &linearization.vis else {
        // If each operation sees all operations before it, every axiom `vis >= ...` holds.
        let mut state = view.object.initial();
        for (i, &event) in order.iter().enumerate() {
            check_every(i, budget)?;
            returns(view, &mut state, event)?;
        }
        return Ok(order);
    };
    if vis.len() != order.len() {
        let op = order.first().map_or_else(String::new, |&event| view.name(event));
        return Err(ObjectRejection::Misplaced { part: "vis", op });
    }
    let mut sets: Vec<Vec<usize>> = Vec::with_capacity(vis.len());
    for (i, seen) in vis.iter().enumerate() {
        let mut set = Vec::with_capacity(seen.len());
        for &op in seen {
            match place[view.find("vis", op)?] {
                Some(at) if at < i => set.push(at),
                _ => {
                    let op = view.history.reference(op).to_string();
                    return Err(ObjectRejection::Misplaced { part: "vis", op });
                }
            }
        }
        set.sort_unstable();
        set.dedup();
        sets.push(set);
    }
    for axiom in &model.axioms {
        holds(view, axiom, &order, &sets)?;
    }
    for (i, &event) in order.iter().enumerate() {
        let mut state = view.object.initial();
        for &seen in &sets[i] {
            if !view.see(&mut state, order[seen]) {
                let (op, expected) = (view.name(event), "nothing".to_owned());
                return Err(ObjectRejection::Return { op, expected });
            }
        }
        returns(view, &mut state, event)?;
    }
    Ok(order)
}

fn returns(view: &View<'_>, state: &mut State, event: usize) -> Result<(), ObjectRejection> {
    let found = view.invoke(state, event);
    let is_right = match (&found, &view.events[event].returns) {
        (Some(found), Some(recorded)) => found == recorded,
        (found, _) => found.is_some(),
    };
    if is_right {
        return Ok(());
    }
    let expected = found.as_ref().map_or("nothing".to_owned(), Value::to_string);
    Err(ObjectRejection::Return { op: view.name(event), expected })
}

/// Checks in one pass that no operation comes after one that it happened before.
fn keeps_happens_before(
    view: &View<'_>,
    order: &[usize],
    budget: &Budget,
) -> Result<(), ObjectRejection> {
    let mut latest_start = None;
    // For each session, the starts so far, each with the largest index of an operation with that
    // start; without times, only the largest index.
    let mut starts: HashMap<(u32, Option<i64>), u32> = HashMap::new();
    for (place, &i) in order.iter().enumerate() {
        check_every(place, budget)?;
        let event = &view.events[i];
        let mut is_late = event.end.is_some_and(|end| Some(end) < latest_start);
        if !event.is_pending
            && let Some(&index) = starts.get(&(event.session.0, event.end))
        {
            let is_longer = event.start < event.end;
            is_late |= (is_longer && event.end.is_some()) || event.index < index;
        }
        if is_late {
            return Err(ObjectRejection::HappensBefore { op: view.name(i) });
        }
        latest_start = latest_start.max(event.start);
        let largest = starts.entry((event.session.0, event.start)).or_default();
        *largest = (*largest).max(event.index);
    }
    Ok(())
}

/// Evaluates an axiom as relations over the positions of a linearization.
fn holds(
    view: &View<'_>,
    axiom: &Axiom,
    order: &[usize],
    sets: &[Vec<usize>],
) -> Result<(), ObjectRejection> {
    if axiom.left == Left::Lin {
        // Every relation is contained in `lin`, which is transitive.
        return Ok(());
    }
    let before = |atom: Atom, b: usize| -> Vec<usize> {
        match atom {
            Atom::Po => (0..b).filter(|&a| view.program_order(order[a], order[b])).collect(),
            Atom::Hb => (0..b).filter(|&a| view.happens_before(order[a], order[b])).collect(),
            Atom::Lin => (0..b).collect(),
            Atom::Vis => sets[b].clone(),
        }
    };
    for b in (0..order.len()).filter(|&b| axiom.concerns(&view.events[order[b]].method)) {
        let mut reached = vec![b];
        for &atom in axiom.right.iter().rev() {
            let mut is_reached = vec![false; order.len()];
            for &y in &reached {
                for x in before(atom, y) {
                    is_reached[x] = true;
                }
            }
            reached = (0..order.len()).filter(|&x| is_reached[x]).collect();
        }
        if reached.iter().any(|x| sets[b].binary_search(x).is_err()) {
            let (op, axiom) = (view.name(order[b]), axiom.to_string());
            return Err(ObjectRejection::Axiom { op, axiom });
        }
    }
    Ok(())
}
