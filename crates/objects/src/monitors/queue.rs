//! Queues: two orders of intervals that must agree.
//!
//! Let `a < b` if `a`'s insertion is before `b`'s or `a`'s removal is before `b`'s, in real time
//! and with intervals cut as in [`elements`](super::elements); a value that is never removed comes
//! after every value that is removed. First in, first out requires one total order of the values
//! that extends `<`, in which they are inserted and removed.
//!
//! *Without empty removals a history is linearizable if and only if no two values have `a < b < a`.*
//! Let `a <i b` and `a <r b` be the two parts of `<`. Each is an interval order: `a <i b` and
//! `c <i d` imply `a <i d` or `c <i b`. Take a shortest cycle of `<`. Neighbouring edges of one
//! kind join to one, so the kinds alternate: `a <i b <r c <i d <r ...`. Then `a <i d`, and the
//! cycle is shorter; or `c <i b`, and with `b <r c` it has length two. So `<` has no cycle, and any
//! total order that extends it will do: let the insertions and the removals follow it, each
//! insertion before its removal and everything in real time. These constraints are acyclic as well.
//! Only one kind of edge leads to an earlier value: from an insertion to a removal that starts
//! after it in real time. The way back leads from a removal to an insertion that starts after it in
//! real time: from the insertion of `x` one comes to the start of a removal, from there in the
//! order of removals to an end that is after that start, and on to an insertion that starts later
//! still. Its value is after `x`, so no such path closes a cycle.
//!
//! *A removal that found the queue empty* needs a point that no zone covers. One is enough: at that
//! point make a cut, with the values whose insertion must be before it on the left and all others
//! on the right. The values on the left may have been removed by then, as no zone covers the point;
//! and no value on the right is `<` one on the left, so a total order that respects all cuts can be
//! chosen.
//!
//! *Pending removals* may take the remaining values, which no other call removed. Let `C(t)` be the
//! number of these certainly inserted before `t`, and `K(t)` the number of pending removals called
//! before `t`. A value `b` that was removed by `t` and inserted after `s` requires `C(s) <= K(t)`,
//! as all those values must be removed before it; a cut at `t` requires `C(t) <= K(t)`. By Hall's
//! theorem these conditions suffice, and they are met, if at all, by matching pending removals in
//! order of their calls to remaining values in order of the ends of their insertions: removing more
//! than required does no harm.
//!
//! Cost: O(n log n), for sorts and sweeps.

use consistory_spec::Object;

use super::elements::{Covered, Element, Elements, Names, cover, elements};
use super::intervals::{Intervals, NEVER};
use super::{Decision, Pattern, violation};
use crate::calls::{CallIndex, Calls};

const NAMES: Names = Names { insert: &["enqueue", "offer"], remove: "dequeue" };

pub(super) fn decide(calls: &Calls<'_>, object: &dyn Object, intervals: &Intervals) -> Decision {
    let mut found = match elements(calls, object, &NAMES, intervals)? {
        Ok(found) => found,
        Err(wrong) => return Ok(Err(wrong)),
    };
    found.left.sort_unstable_by_key(|element| element.pe);
    for (element, &pending) in found.left.iter_mut().zip(&found.pending) {
        element.remove_by(pending, intervals);
    }
    // The remaining values come first, so that a refutation needs few of them.
    let all: Vec<Element> = found.left.iter().chain(&found.removed).copied().collect();
    if let Some((a, b)) = out_of_order(&all) {
        let core = found.core(calls, wanted(&found, &all, &[a, b]), None, intervals);
        return violation(Pattern::OutOfOrder, core);
    }
    let covered = Covered::new(&all);
    let mut cuts: Vec<(u32, CallIndex)> = Vec::with_capacity(found.empty.len());
    for &place in &found.empty {
        let (start, end) = (intervals.start(place), intervals.end(place));
        match covered.first_gap(start, end) {
            Some(gap) => cuts.push((gap, place)),
            None => {
                let inside = cover(&all, start, end);
                let core = wanted(&found, &all, &inside);
                let core = found.core(calls, core, Some(place), intervals);
                return violation(Pattern::EmptyThoughNot, core);
            }
        }
    }
    cuts.sort_unstable();
    Ok(Ok(arrange(&all, &cuts)))
}

/// Returns some elements and, with a remaining one, all elements that precede it: together they are
/// too many for the pending removals.
fn wanted<'a>(
    found: &Elements,
    all: &'a [Element],
    some: &'a [usize],
) -> impl Iterator<Item = &'a Element> + use<'a> {
    let left = found.left.len();
    let last = some.iter().filter(|&&i| i < left).max().map_or(0, |&i| i + 1);
    all[..last].iter().chain(some.iter().filter(move |&&i| i >= left).map(|&i| &all[i]))
}

/// Finds two values such that the first is inserted before the second and removed after it.
fn out_of_order(all: &[Element]) -> Option<(usize, usize)> {
    let mut by_pe: Vec<usize> = (0..all.len()).collect();
    by_pe.sort_unstable_by_key(|&i| all[i].pe);
    let mut by_ps: Vec<usize> = (0..all.len()).collect();
    by_ps.sort_unstable_by_key(|&i| all[i].ps);
    let mut inserted = by_pe.into_iter().peekable();
    // Of the values inserted before, the one that is removed last; the first of several.
    let mut latest: Option<usize> = None;
    for b in by_ps {
        while let Some(a) = inserted.next_if(|&a| all[a].pe < all[b].ps) {
            if latest.is_none_or(|latest| all[latest].qs < all[a].qs) {
                latest = Some(a);
            }
        }
        if let Some(a) = latest.filter(|&a| all[b].qe < all[a].qs) {
            return Some((a, b));
        }
    }
    None
}

/// Orders the calls; `cuts` are the gaps of the empty removals, sorted.
fn arrange(all: &[Element], cuts: &[(u32, CallIndex)]) -> Vec<CallIndex> {
    let epoch = |element: &Element| cuts.partition_point(|&(gap, _)| gap < element.pe);
    let is_removed = |element: &&Element| element.remove.is_some();
    let mut epochs: Vec<Vec<&Element>> = vec![Vec::new(); cuts.len() + 1];
    for element in all.iter().filter(is_removed) {
        epochs[epoch(element)].push(element);
    }
    // Values that stay inside are inserted after all removed ones, in the order of the ends.
    let mut kept: Vec<&Element> = all.iter().filter(|element| !is_removed(element)).collect();
    kept.sort_unstable_by_key(|element| element.pe);
    let mut order = Vec::new();
    for (at, values) in epochs.into_iter().enumerate() {
        let removed = extend(&values);
        let inserted: Vec<&Element> = match at == cuts.len() {
            true => removed.iter().chain(&kept).copied().collect(),
            false => removed.clone(),
        };
        merge(&inserted, &removed, &mut order);
        order.extend(cuts.get(at).map(|&(_, place)| place));
    }
    order
}

/// Extends the order `<` to a total order of some values.
fn extend<'a>(values: &[&'a Element]) -> Vec<&'a Element> {
    let sorted = |key: fn(&Element) -> u32| {
        let mut indices: Vec<usize> = (0..values.len()).collect();
        indices.sort_unstable_by_key(|&i| key(values[i]));
        indices
    };
    let (by_ps, by_pe) = (sorted(|v| v.ps), sorted(|v| v.pe));
    let (by_qs, by_qe) = (sorted(|v| v.qs), sorted(|v| v.qe));
    let mut is_done = vec![false; values.len()];
    // Number of each value's two intervals that start before every remaining interval of the same
    // kind ends.
    let mut ready = vec![0_u8; values.len()];
    let mut next = Vec::new();
    let (mut ps, mut pe, mut qs, mut qe) = (0, 0, 0, 0);
    let mut order = Vec::with_capacity(values.len());
    while order.len() < values.len() {
        while is_done[by_pe[pe]] {
            pe += 1;
        }
        while is_done[by_qe[qe]] {
            qe += 1;
        }
        let (first_pe, first_qe) = (values[by_pe[pe]].pe, values[by_qe[qe]].qe);
        let mut count = |i: usize| {
            ready[i] += 1;
            if ready[i] == 2 {
                next.push(i);
            }
        };
        while ps < by_ps.len() && values[by_ps[ps]].ps < first_pe {
            count(by_ps[ps]);
            ps += 1;
        }
        while qs < by_qs.len() && values[by_qs[qs]].qs < first_qe {
            count(by_qs[qs]);
            qs += 1;
        }
        let i = next.pop().expect("an order without cycles has a first value among any");
        is_done[i] = true;
        order.push(values[i]);
    }
    order
}

/// Merges the insertions and the removals of values, each in the given order.
fn merge(inserted: &[&Element], removed: &[&Element], order: &mut Vec<CallIndex>) {
    let first_ends = |ends: Vec<u32>| {
        let mut least = vec![NEVER; ends.len() + 1];
        for i in (0..ends.len()).rev() {
            least[i] = least[i + 1].min(ends[i]);
        }
        least
    };
    // First end of all remaining insertions, and of all remaining removals.
    let pe = first_ends(inserted.iter().map(|v| v.pe).collect());
    let (mut i, mut j) = (0, 0);
    while i < inserted.len() || j < removed.len() {
        match removed.get(j) {
            Some(value) if j < i && value.qs < pe[i] => {
                order.extend(value.remove);
                j += 1;
            }
            _ => {
                let value = inserted.get(i).expect("some call is always possible");
                order.push(value.insert);
                i += 1;
            }
        }
    }
}
