//! Shrinks a violating history of calls until no call can be removed.
//!
//! Removing a call can cause a violation of its own: without the call that inserted a value,
//! nothing explains the call that removed it. So at first only the return of a call is removed: the
//! call becomes pending, may take effect or not, and every explanation of the history remains one.
//! A violation that remains holds whatever the other calls returned. The number of returns is
//! minimised by delta debugging (Zeller and Hildebrandt 2002): whole parts of the object, halves,
//! quarters, finally single returns.
//!
//! A call whose return is not needed is removed if no needed return depends on it: each needed
//! return must be explicable by itself if time is ignored and any of the remaining calls may come
//! before.
//!
//! ```text
//! t0: enqueue(1) @1..2   enqueue(3) @7..8        t0: enqueue(1) @1..2
//! t1: enqueue(2) @3..4   dequeue() => 2 @5..6    t1: enqueue(2) @3..4   dequeue() => 2 @5..6
//! ```
//!
//! Here the returns of `enqueue(1)` and `dequeue` are needed, and without `enqueue(2)` the 2 would
//! never have been inserted.
//!
//! Cost: one judgement per step, about `k log n` steps if `k` calls remain. A judgement that stops
//! without an answer removes nothing. When the time budget is used up, the result is the smallest
//! violating history found so far, marked as possibly not minimal.

use std::cell::Cell;

use consistory_history::OpId;
use consistory_spec::ObjectModel;
use consistory_verdict::ObjectCertificate;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calls::CallIndex;
use crate::linearizability::is_explained;
use crate::task::Task;
use crate::{Judgement, Options};

/// Number of shares of the time, one per step, so that one hard step does not use all of it.
const TIME_SHARES: u32 = 200;

/// A smaller violating history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shrunk {
    /// Operations that remain.
    pub operations: Vec<OpId>,
    /// Whether no operation can be removed; `false` if the budget ran out before this was known.
    pub is_minimal: bool,
}

/// Shrinks a history that violates a model.
///
/// `violation` is the known violation of the whole history; the search starts from its certificate.
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
    let is_listed =
        |task: &Task<'_>, place: CallIndex| listed.contains(&task.calls().get(place).id);
    // A core refutes a prefix of the history, in which calls that return later are pending.
    let prefix_end = match violation.certificate() {
        Some(ObjectCertificate::Core(core)) => core.prefix.as_ref().and_then(|prefix| {
            let operations = task.calls().operations().iter();
            operations.filter(|op| op.id == prefix.last).map(|op| op.end).next()
        }),
        _ => None,
    };
    let prefix_end = prefix_end.unwrap_or(i64::MAX);
    let last = task.calls().operations().iter().filter(|op| listed.contains(&op.id));
    let last = last.map(|op| op.end).max().unwrap_or(i64::MAX);
    // Calls outside a core can be left out. Otherwise, a call that changes the state cannot be left
    // out if it started before the last return and is confined to the same part as the listed
    // calls.
    let part_of = |place: CallIndex| {
        let invocation = task.invocation(place);
        task.object().part(&invocation.method, &invocation.args)
    };
    let has_parts = task.calls().places().all(|place| part_of(place).is_some());
    let listed_parts: FxHashSet<_> =
        task.calls().places().filter(|&place| is_listed(task, place)).map(part_of).collect();
    let may_matter = |place: CallIndex| {
        matches!(violation.certificate(), Some(ObjectCertificate::Unexplained(_)))
            && !task.is_read_only(place)
            && task.calls().get(place).start <= last
            && (!has_parts || listed_parts.contains(&part_of(place)))
    };
    let places = task.calls().places().filter(|&p| is_listed(task, p) || may_matter(p));
    let task = task.restricted(&places.collect::<Vec<_>>());
    // A judgement that is not decided in time counts as "no violation".
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
    let has_returned = |place| {
        let is_in_time = task.calls().get(place).end <= prefix_end;
        is_listed(&task, place) && is_in_time && !task.is_pending(place)
    };
    let mut returned: Vec<bool> = task.calls().places().map(has_returned).collect();
    for part in parts(&task) {
        take_away(&mut returned, &part, &mut violates);
    }
    minimize(&mut returned, &mut violates);

    // Calls on which no return depends are removed.
    let linearizability = ObjectModel::named("linearizability").expect("it has a name");
    let stems = |kept: &[bool], of: CallIndex| {
        let timeless = || {
            let left: Vec<CallIndex> = task.calls().places().filter(|p| kept[p.index()]).collect();
            task.relaxed(|place| place == of).restricted(&left).timeless()
        };
        decide(&timeless, &linearizability, true)
    };
    let may_be_source = |place: CallIndex| returned[place.index()] || !task.is_read_only(place);
    let mut kept: Vec<bool> = task.calls().places().map(may_be_source).collect();
    let stemming = task.calls().places().filter(|place| returned[place.index()]);
    let stemming: Vec<CallIndex> = stemming.filter(|&place| stems(&kept, place)).collect();
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

/// Removes some calls, if the rest still violates the model.
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

/// Removes as many calls as possible while `will_do` holds, except the fixed ones.
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
        // After a pass over single calls without success, no call can be removed.
        if chunk == 1 && !is_less {
            return;
        }
        chunk = (chunk / 2).max(1);
    }
}
