//! The common part of queues, stacks and priority queues: values are inserted and removed.
//!
//! A value `v` has an insertion, whose linearization point lies in `ps..pe`, and a removal, whose
//! point lies in `qs..qe` and after that of the insertion. So the insertion is before `qe` and the
//! removal after `ps`, and the intervals can be cut accordingly:
//!
//! ```text
//!   ps├─ insert(v) ─┤pe ══ v is inside ══ qs├─ remove => v ─┤qe          a zone: pe..qs
//!   ps├────────── insert(v) ─────────┤pe                                 no zone: v may go in and
//!          qs├── remove => v ──┤qe                                       out at once, at any point
//! ```
//!
//! If `pe < qs`, the value is certainly inside between the two: this is its *zone*. A value that is
//! never removed has an unbounded zone.
//!
//! Two kinds of calls can be left out: a pending insertion of a value that is never removed, since
//! a linearization without the value remains valid; and a pending removal, unless a value must have
//! been removed that no other call removed. Which removal may have removed which value depends on
//! the object.

use std::cmp::Reverse;

use consistory_history::{Value, ValueId};
use consistory_spec::Object;
use rustc_hash::FxHashMap;

use super::intervals::{Intervals, NEVER};
use super::methods::Methods;
use super::{Decision, Pattern, Unsuitable, Violation, violation};
use crate::calls::{CallIndex, Calls};

/// A value with its insertion and, if it was removed, its removal; the intervals are cut as above.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) value: ValueId,
    pub(super) insert: CallIndex,
    pub(super) remove: Option<CallIndex>,
    pub(super) ps: u32,
    pub(super) pe: u32,
    /// Start of the removal; [`NEVER`] if the value is not removed.
    pub(super) qs: u32,
    pub(super) qe: u32,
}

impl Element {
    /// Returns the ranks between which the value is certainly inside, if there are any.
    pub(super) fn zone(&self) -> Option<(u32, u32)> {
        (self.pe < self.qs).then_some((self.pe, self.qs))
    }

    /// Records the removal that takes the value.
    pub(super) fn remove_by(&mut self, place: CallIndex, intervals: &Intervals) {
        self.remove = Some(place);
        self.qs = intervals.start(place).max(self.ps);
        self.qe = intervals.end(place);
        self.pe = self.pe.min(self.qe);
    }
}

/// The calls of a collection, by value.
pub(super) struct Elements {
    /// Values that were removed by a call that returned.
    pub(super) removed: Vec<Element>,
    /// Values that no call is known to have removed, and whose insertion returned.
    pub(super) left: Vec<Element>,
    /// The removals that found the collection empty.
    pub(super) empty: Vec<CallIndex>,
    /// The pending removals, by start.
    pub(super) pending: Vec<CallIndex>,
}

/// The names of a collection's methods.
pub(super) struct Names {
    pub(super) insert: &'static [&'static str],
    pub(super) remove: &'static str,
}

/// Groups the calls of a history by value; the values must be distinct, and none may be `null`.
pub(super) fn elements(
    calls: &Calls<'_>,
    object: &dyn Object,
    names: &Names,
    intervals: &Intervals,
) -> Result<Result<Elements, Violation>, Unsuitable> {
    let mut inserted: Vec<Element> = Vec::new();
    let mut of_value: FxHashMap<ValueId, usize> = FxHashMap::default();
    let mut removals: Vec<(CallIndex, ValueId)> = Vec::new();
    let (mut empty, mut pending) = (Vec::new(), Vec::new());
    let mut methods = Methods::new(calls, object);
    for place in calls.places() {
        let args = calls.args(place);
        let name = calls.method(place);
        let returned = calls.returns(place).map(|id| (id, calls.value(id)));
        let unclear = || Err(Unsuitable::Return { method: name.to_owned() });
        match (methods.of(place), args) {
            (Some(method), &[value]) if names.insert.contains(&method) => {
                let is_refused = method == "offer"
                    && matches!(returned, Some((_, r)) if *r != Value::Bool(true));
                if is_refused {
                    return unclear();
                }
                let is_second = of_value.insert(value, inserted.len()).is_some();
                if is_second || *calls.value(value) == Value::Null {
                    let value = calls.value(value).clone();
                    return Err(Unsuitable::NotDifferentiated { value });
                }
                inserted.push(Element {
                    value,
                    insert: place,
                    remove: None,
                    ps: intervals.start(place),
                    pe: intervals.end(place),
                    qs: NEVER,
                    qe: NEVER,
                });
            }
            (Some(method), []) if method == names.remove => match returned {
                _ if calls.get(place).is_pending => pending.push(place),
                None => return unclear(),
                Some((_, Value::Null)) => empty.push(place),
                Some((value, _)) => removals.push((place, value)),
            },
            _ => return Err(Unsuitable::Method { method: name.to_owned() }),
        }
    }
    // Returns a violation with all calls of a value.
    let wrong = |pattern, value: ValueId, insert: Option<CallIndex>| {
        let removals = removals.iter().filter(|&&(_, removed)| removed == value);
        let core = insert.into_iter().chain(removals.map(|&(place, _)| place)).collect();
        Ok(Err(Violation { pattern, core }))
    };
    for &(place, value) in &removals {
        let Some(&at) = of_value.get(&value) else {
            return wrong(Pattern::ThinAir, value, None);
        };
        let element = &mut inserted[at];
        if element.remove.is_some() {
            return wrong(Pattern::RemovedTwice, value, Some(element.insert));
        }
        if intervals.end(place) < element.ps {
            return wrong(Pattern::BeforeItsInsertion, value, Some(element.insert));
        }
        element.remove_by(place, intervals);
    }
    let (removed, mut left): (Vec<Element>, Vec<Element>) =
        inserted.into_iter().partition(|element| element.remove.is_some());
    left.retain(|element| element.pe != NEVER);
    pending.sort_unstable_by_key(|&place| intervals.start(place));
    Ok(Ok(Elements { removed, left, empty, pending }))
}

/// The union of zones, as disjoint ranges in order.
pub(super) struct Covered(Vec<(u32, u32)>);

impl Covered {
    pub(super) fn new(elements: &[Element]) -> Self {
        let mut zones: Vec<(u32, u32)> = elements.iter().filter_map(Element::zone).collect();
        zones.sort_unstable();
        let mut union: Vec<(u32, u32)> = Vec::new();
        for (from, to) in zones {
            match union.last_mut() {
                Some(last) if from < last.1 => last.1 = last.1.max(to),
                _ => union.push((from, to)),
            }
        }
        Covered(union)
    }

    /// Returns the first gap, named by the rank before it, that lies in a call and in no zone.
    pub(super) fn first_gap(&self, start: u32, end: u32) -> Option<u32> {
        let behind = self.0.partition_point(|&(from, _)| from <= start);
        let around = behind.checked_sub(1).map(|i| self.0[i]).filter(|&(_, to)| start < to);
        let gap = around.map_or(start, |(_, to)| to);
        (gap < end).then_some(gap)
    }
}

/// Finds few elements whose zones together cover the ranks from `start` to `end`. Among zones that
/// extend equally far, the first is chosen.
pub(super) fn cover(elements: &[Element], start: u32, end: u32) -> Vec<usize> {
    let mut zones: Vec<(u32, u32, usize)> = elements
        .iter()
        .enumerate()
        .filter_map(|(i, element)| element.zone().map(|(from, to)| (from, to, i)))
        .filter(|&(from, to, _)| to > start && from < end)
        .collect();
    zones.sort_unstable();
    let (mut found, mut reached, mut at) = (Vec::new(), start, 0);
    while reached < end {
        // Among the zones that start in the covered range, the one that extends furthest.
        let mut best: Option<(u32, Reverse<usize>)> = None;
        while at < zones.len() && zones[at].0 <= reached {
            best = best.max(Some((zones[at].1, Reverse(zones[at].2))));
            at += 1;
        }
        match best.filter(|&(to, _)| to > reached) {
            Some((to, Reverse(i))) => {
                found.push(i);
                reached = to;
            }
            None => break,
        }
    }
    found
}

impl Elements {
    /// Builds a core of elements and empty removals: the calls of the elements, and the pending
    /// removals that may have removed one that no other call did.
    pub(super) fn core<'a>(
        &self,
        calls: &Calls<'_>,
        elements: impl IntoIterator<Item = &'a Element>,
        empty: Option<CallIndex>,
        intervals: &Intervals,
    ) -> Vec<CallIndex> {
        let mut core: Vec<CallIndex> = empty.into_iter().collect();
        let mut is_left = false;
        for element in elements {
            is_left |= element.remove.is_none_or(|remove| calls.get(remove).is_pending);
            core.push(element.insert);
            core.extend(element.remove.filter(|&remove| !calls.get(remove).is_pending));
        }
        if is_left {
            let returned = core.iter().filter(|&&place| !calls.get(place).is_pending);
            let last = returned.map(|&place| intervals.end(place)).max().unwrap_or(NEVER);
            core.extend(self.pending.iter().filter(|&&place| intervals.start(place) < last));
        }
        core
    }
}

/// Reverses an order of ranks.
pub(super) fn inverse(rank: u32) -> u32 {
    NEVER - rank
}

/// An order of a collection's calls, or a refutation.
pub(super) type Solution = Result<Vec<CallIndex>, Refuted>;

/// Elements that are not linearizable, as indices into the given list.
pub(super) struct Refuted {
    pub(super) pattern: Pattern,
    pub(super) core: Vec<usize>,
    pub(super) empty: Option<CallIndex>,
}

/// Decides a collection with pending removals by a decider that does not support them, as far as
/// possible.
///
/// - If the history without its pending removals is linearizable, so is the history.
/// - If the history is not linearizable even with one additional pending removal for each remaining
///   value, called as early as the first, then the history is not linearizable.
/// - Otherwise some remaining values, given by their positions, are *forced*: the history of the
///   removed values and one such value is not linearizable, so each needs a pending removal of its
///   own. If there are too few removals, the history is not linearizable.
/// - A pending removal that was called before a value's insertion ended may remove it at once,
///   which affects no other value. If the forced values can be matched to such removals in order,
///   the history is linearizable.
/// - If neither this order nor the reverse one works, the general search decides: the best use of a
///   pending removal then depends on the other pending removals.
pub(super) fn settle(
    calls: &Calls<'_>,
    found: &Elements,
    intervals: &Intervals,
    solve: impl Fn(&[Element]) -> Solution,
    forced: impl Fn() -> Vec<usize>,
) -> Decision {
    let with_left =
        |left: &[Element]| -> Vec<Element> { found.removed.iter().chain(left).copied().collect() };
    let core_of = |all: &[Element], refuted: Refuted| {
        let some = refuted.core.iter().map(|&i| &all[i]);
        found.core(calls, some, refuted.empty, intervals)
    };
    let refute =
        |all: &[Element], refuted: Refuted| violation(refuted.pattern, core_of(all, refuted));
    let all = with_left(&found.left);
    let refuted = match solve(&all) {
        Ok(order) => return Ok(Ok(order)),
        Err(refuted) => refuted,
    };
    let Some(&first) = found.pending.first().filter(|_| !found.left.is_empty()) else {
        return refute(&all, refuted);
    };
    let mut left = found.left.clone();
    left.iter_mut().for_each(|element| element.remove_by(first, intervals));
    let relaxed = with_left(&left);
    if let Err(refuted) = solve(&relaxed) {
        return refute(&relaxed, refuted);
    }
    let mut forced = forced();
    forced.sort_unstable_by_key(|&i| found.left[i].pe);
    if forced.len() > found.pending.len() && found.pending.len() < MAX_REMOVALS_SHOWN {
        // The reasons why more values are forced than there are pending removals.
        let (mut core, mut pattern) = (Vec::new(), refuted.pattern);
        for &i in &forced[..=found.pending.len()] {
            let alone = with_left(&found.left[i..=i]);
            if let Err(refuted) = solve(&alone) {
                pattern = refuted.pattern;
                core.extend(core_of(&alone, refuted));
            }
        }
        return violation(pattern, core);
    }
    let mut served = found.left.clone();
    for (&i, &pending) in forced.iter().zip(&found.pending) {
        served[i].remove_by(pending, intervals);
    }
    if let Ok(order) = solve(&with_left(&served)) {
        return Ok(Ok(order));
    }
    let mut left = found.left.clone();
    left.sort_unstable_by_key(|element| element.pe);
    for _ in 0..2 {
        let mut served = left.clone();
        for (element, &pending) in served.iter_mut().zip(&found.pending) {
            element.remove_by(pending, intervals);
        }
        if let Ok(order) = solve(&with_left(&served)) {
            return Ok(Ok(order));
        }
        left.reverse();
    }
    Err(Unsuitable::PendingRemovals)
}

/// Largest number of pending removals for which their shortage is shown.
const MAX_REMOVALS_SHOWN: usize = 256;
