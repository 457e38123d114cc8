//! Shrinking a history that violates a model to calls of which none can be taken away.
//!
//! To take a call away can make a violation of its own: without the call that put a value in,
//! nothing explains the call that took it out. So a call is not taken away at first, only its
//! return is: it counts as pending, may take effect or not, and whatever explained the history
//! still explains it. What is violated then is violated whatever the others returned, and that is
//! as few returns as possible (delta debugging, Zeller and Hildebrandt 2002: whole parts of the
//! object, halves, quarters, at last single returns).
//!
//! Of the calls whose returns are not needed those go that no return stems from: each return that is
//! needed is explained by itself if time is ignored and any of the others may come before.
//!
//! ```text
//! t0: enqueue(1) @1..2   enqueue(3) @7..8        t0: enqueue(1) @1..2
//! t1: enqueue(2) @3..4   dequeue() => 2 @5..6    t1: enqueue(2) @3..4   dequeue() => 2 @5..6
//! ```
//!
//! Here the returns of `enqueue(1)` and `dequeue` are needed, and without `enqueue(2)` nothing
//! would have put the 2 there.
//!
//! Cost: a judgement for each step, about `k log n` steps where `k` calls are left. One that stops
//! without an answer takes nothing away, and once the time is over none does: then the result is the
//! least that was found, and says that it need not be minimal.

use std::cell::Cell;

use consistory_history::OpId;
use consistory_spec::ObjectModel;
use consistory_verdict::ObjectCertificate;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calls::Place;
use crate::linearizability::is_explained;
use crate::task::Task;
use crate::{Judgement, Options};

/// The number of shares of the time, one for each step: a hard step must not use up all of it.
const TIME_SHARES: u32 = 200;

/// What is left of a history that violates a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shrunk {
    /// The operations.
    pub operations: Vec<OpId>,
    /// Whether none of them can be taken away; not so if the budget ended before that was clear.
    pub is_minimal: bool,
}

/// Shrinks a history that violates a model.
///
/// `violation` is what was found; it says where to start.
pub fn shrink_object<'h>(
    task: &Task<'h>,
    model: &ObjectModel,
    violation: &Judgement,
    options: &Options,
) -> Shrunk {
    let listed: FxHashSet<OpId> = match violation.certificate() {
        Some(ObjectCertificate::Unexplained(unexplained)) => {
            unexplained.returned.iter().copied().collect()
        }
        Some(ObjectCertificate::Core(core)) => core.operations.iter().copied().collect(),
        _ => {
            let operations = task.calls().operations().iter().map(|op| op.id).collect();
            return Shrunk { operations, is_minimal: false };
        }
    };
    let is_listed = |task: &Task<'_>, place: Place| listed.contains(&task.calls().get(place).id);
    let last = task.calls().operations().iter().filter(|op| listed.contains(&op.id));
    let last = last.map(|op| op.end).max().unwrap_or(i64::MAX);
    // What is outside of a core can be left out; otherwise a call that changes the state can't if
    // it was made before the last return, and is confined to no other part than all that is listed.
    let part_of = |place: Place| {
        let invocation = task.invocation(place);
        task.object().part(&invocation.method, &invocation.args)
    };
    let has_parts = task.calls().places().all(|place| part_of(place).is_some());
    let listed_parts: FxHashSet<_> =
        task.calls().places().filter(|&place| is_listed(task, place)).map(part_of).collect();
    let may_matter = |place: Place| {
        matches!(violation.certificate(), Some(ObjectCertificate::Unexplained(_)))
            && !task.is_read_only(place)
            && task.calls().get(place).start <= last
            && (!has_parts || listed_parts.contains(&part_of(place)))
    };
    let places = task.calls().places().filter(|&p| is_listed(task, p) || may_matter(p));
    let task = task.restricted(&places.collect::<Vec<_>>());
    // What is asked when the time is over, or is not decided in time, counts as no.
    let is_minimal = Cell::new(true);
    let decide = |make: &dyn Fn() -> Task<'h>, model: &ObjectModel, expected: bool| {
        let over = options.budget.check();
        let decided =
            over.and_then(|()| is_explained(&make(), model, &options.budget.share(TIME_SHARES)));
        is_minimal.set(is_minimal.get() && decided.is_ok());
        decided == Ok(expected)
    };
    let mut violates =
        |returned: &[bool]| decide(&|| task.relaxed(|place| returned[place.index()]), model, false);
    let has_returned = |place| is_listed(&task, place) && !task.is_pending(place);
    let mut returned: Vec<bool> = task.calls().places().map(has_returned).collect();
    for part in parts(&task) {
        take_away(&mut returned, &part, &mut violates);
    }
    minimize(&mut returned, &mut violates);

    // What no return stems from.
    let linearizability = ObjectModel::named("linearizability").expect("it has a name");
    let stems = |kept: &[bool], of: Place| {
        let timeless = || {
            let left: Vec<Place> = task.calls().places().filter(|p| kept[p.index()]).collect();
            task.relaxed(|place| place == of).restricted(&left).timeless()
        };
        decide(&timeless, &linearizability, true)
    };
    let may_be_source = |place: Place| returned[place.index()] || !task.is_read_only(place);
    let mut kept: Vec<bool> = task.calls().places().map(may_be_source).collect();
    let stemming = task.calls().places().filter(|place| returned[place.index()]);
    let stemming: Vec<Place> = stemming.filter(|&place| stems(&kept, place)).collect();
    let mut all_stem = |kept: &[bool]| stemming.iter().all(|&place| stems(kept, place));
    minimize_but(&mut kept, &returned, &mut all_stem);
    let left = task.calls().places().filter(|place| kept[place.index()]);
    let operations = left.map(|place| task.calls().get(place).id).collect();
    Shrunk { operations, is_minimal: is_minimal.get() }
}

/// Lists the calls of each part of the object, if there are several.
fn parts(task: &Task<'_>) -> Vec<Vec<usize>> {
    let mut parts: FxHashMap<_, Vec<usize>> = FxHashMap::default();
    for place in task.calls().places() {
        let invocation = task.invocation(place);
        let part = task.object().part(&invocation.method, &invocation.args);
        parts.entry(part).or_default().push(place.index());
    }
    let mut parts: Vec<Vec<usize>> = parts.into_values().collect();
    parts.sort_unstable();
    if parts.len() > 1 { parts } else { Vec::new() }
}

/// Takes some away, if what is left will do.
fn take_away(
    kept: &mut Vec<bool>,
    some: &[usize],
    will_do: &mut impl FnMut(&[bool]) -> bool,
) -> bool {
    let mut fewer = kept.clone();
    some.iter().for_each(|&i| fewer[i] = false);
    let is_less = fewer != *kept && will_do(&fewer);
    if is_less {
        *kept = fewer;
    }
    is_less
}

fn minimize(kept: &mut Vec<bool>, will_do: &mut impl FnMut(&[bool]) -> bool) {
    let none = vec![false; kept.len()];
    minimize_but(kept, &none, will_do);
}

/// Takes away as many as possible, but not those that are fixed.
fn minimize_but(kept: &mut Vec<bool>, fixed: &[bool], will_do: &mut impl FnMut(&[bool]) -> bool) {
    let candidates = |kept: &[bool]| -> Vec<usize> {
        (0..kept.len()).filter(|&i| kept[i] && !fixed[i]).collect()
    };
    let mut chunk = candidates(kept).len().div_ceil(2).max(1);
    loop {
        let mut is_less = false;
        for some in candidates(kept).chunks(chunk) {
            is_less |= take_away(kept, some, will_do);
        }
        // Once single ones were tried and none went, none can.
        if chunk == 1 && !is_less {
            return;
        }
        chunk = (chunk / 2).max(1);
    }
}
