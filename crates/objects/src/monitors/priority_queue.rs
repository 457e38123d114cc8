//! Priority queues: the value with the highest priority is removed first.
//!
//! A value may be removed at a point at which no value of higher priority is inside. Process the
//! values by priority. The first may be removed as soon as its removal is called, and inserting it
//! late is best for all others: it is inside from `pe` to `qs`, or not at all. Each following value
//! is removed at the first point from `qs` on that the values before it leave free, and is inside
//! from `pe` to that point. By induction every value is inside no longer than in any other
//! linearization: its insertion is as late as possible, and its removal as early as the values
//! before it permit. So if there is no free point before `qe`, there is no linearization; and a
//! removal that found the queue empty needs a point that all values leave free.
//!
//! Points are gaps between ranks. Within a gap, removals come first, by priority, each directly
//! after its insertion if that is still open; then removals that found the queue empty; then the
//! insertion whose end closes the gap. An occupied gap stays occupied, so a union-find of gaps
//! finds the next free one. Cost: O(n log n) for the sort by priority, and nearly O(n) for the
//! rest.
//!
//! *Pending removals*: see [`settle`](super::elements::settle). A remaining value is inside from
//! `pe` on. It is forced out by a value of lower priority whose earliest removal is later than
//! that. It affects nothing else, since it may be removed directly before that point.

use consistory_spec::Object;

use super::elements::{Element, Elements, Names, Refuted, Solution, elements, settle};
use super::intervals::{Intervals, NEVER};
use super::{Decision, Pattern};
use crate::calls::{CallIndex, Calls};

const NAMES: Names = Names { insert: &["insert", "offer"], remove: "poll" };

pub(super) fn decide(
    calls: &Calls<'_>,
    object: &dyn Object,
    intervals: &Intervals,
    greatest_first: bool,
) -> Decision {
    let found = match elements(calls, object, &NAMES, intervals)? {
        Ok(found) => found,
        Err(wrong) => return Ok(Err(wrong)),
    };
    let by_priority = |elements: &[Element]| {
        let mut by_priority: Vec<usize> = (0..elements.len()).collect();
        by_priority.sort_unstable_by_key(|&i| calls.value(elements[i].value));
        if greatest_first {
            by_priority.reverse();
        }
        by_priority
    };
    let solve =
        |elements: &[Element]| solve(elements, &by_priority(elements), &found.empty, intervals);
    let forced = || {
        let all: Vec<Element> = found.removed.iter().chain(&found.left).copied().collect();
        forced(&found, &all, &by_priority(&all), intervals)
    };
    settle(calls, &found, intervals, solve, forced)
}

/// Finds the remaining values that are forced out: those inside at the earliest removal of a value
/// of lower priority, or at the earliest point at which the queue was found empty.
fn forced(
    found: &Elements,
    all: &[Element],
    by_priority: &[usize],
    intervals: &Intervals,
) -> Vec<usize> {
    let removed = found.removed.len();
    let mut free = Free::new(intervals.count);
    let mut out = vec![0; removed];
    for &i in by_priority.iter().filter(|&&i| i < removed) {
        out[i] = free.from(all[i].qs);
        free.occupy(all[i].pe.min(intervals.count), out[i], |_| {});
    }
    let gaps = found.empty.iter().map(|&place| free.from(intervals.start(place)));
    let mut latest = gaps.max().unwrap_or(0);
    let mut forced = Vec::new();
    for &i in by_priority.iter().rev() {
        if i < removed {
            latest = latest.max(out[i]);
        } else if all[i].pe <= latest {
            forced.push(i - removed);
        }
    }
    forced
}

/// Free gaps, by union-find: each gap points to itself or to a later one.
struct Free(Vec<u32>);

impl Free {
    fn new(gaps: u32) -> Self {
        Free((0..=gaps).collect())
    }

    /// Finds the first free gap from a given one on; the last gap is always free.
    fn from(&mut self, gap: u32) -> u32 {
        let mut root = gap;
        while self.0[root as usize] != root {
            root = self.0[root as usize];
        }
        let mut at = gap;
        while self.0[at as usize] != root {
            at = std::mem::replace(&mut self.0[at as usize], root);
        }
        root
    }

    /// Occupies the free gaps in a range; each is passed to `owner`.
    fn occupy(&mut self, from: u32, to: u32, mut owner: impl FnMut(u32)) {
        let mut gap = self.from(from);
        while gap < to {
            owner(gap);
            self.0[gap as usize] = gap + 1;
            gap = self.from(gap + 1);
        }
    }
}

fn solve(
    elements: &[Element],
    by_priority: &[usize],
    empty: &[CallIndex],
    intervals: &Intervals,
) -> Solution {
    let count = intervals.count;
    let mut free = Free::new(count);
    // Value that first occupies each gap, and gap in which each value is removed.
    let mut owners = vec![NEVER; count as usize + 1];
    let mut out = vec![NEVER; elements.len()];
    let mut points: Vec<((u32, u8, u32), CallIndex)> = Vec::new();
    for (rank, &i) in by_priority.iter().enumerate() {
        let element = &elements[i];
        let gap = match element.remove {
            None => count,
            Some(_) => free.from(element.qs),
        };
        if element.remove.is_some() && gap >= element.qe.min(count) {
            let core = explain(elements, &owners, &out, (element.qs, element.qe.min(count)));
            let core = smallest(elements, by_priority, core, Some(i), None, intervals);
            return Err(Refuted { pattern: Pattern::Overtaken, core, empty: None });
        }
        out[i] = gap;
        free.occupy(element.pe.min(count), gap, |gap| owners[gap as usize] = i as u32);
        let rank = 2 * rank as u32;
        match element.pe <= gap {
            true => points.push(((element.pe - 1, 2, rank), element.insert)),
            false => points.push(((gap, 0, rank), element.insert)),
        }
        points.extend(element.remove.map(|remove| ((gap, 0, rank + 1), remove)));
    }
    for &place in empty {
        let (start, end) = (intervals.start(place), intervals.end(place));
        let gap = free.from(start);
        if gap >= end {
            let core = explain(elements, &owners, &out, (start, end));
            let core = smallest(elements, by_priority, core, None, Some(place), intervals);
            return Err(Refuted { pattern: Pattern::EmptyThoughNot, core, empty: Some(place) });
        }
        points.push(((gap, 1, 0), place));
    }
    points.sort_unstable();
    Ok(points.into_iter().map(|(_, place)| place).collect())
}

/// Finds values that together occupy a range of gaps, including those that delay their removals.
fn explain(elements: &[Element], owners: &[u32], out: &[u32], range: (u32, u32)) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut is_found = vec![false; elements.len()];
    let mut to_do = Free::new(owners.len() as u32 - 1);
    let mut ranges = vec![range];
    while let Some((from, to)) = ranges.pop() {
        let mut gap = to_do.from(from);
        while gap < to {
            let owner = owners[gap as usize] as usize;
            let reach = out[owner].min(to);
            if !std::mem::replace(&mut is_found[owner], true) {
                found.push(owner);
                if elements[owner].remove.is_some() {
                    // The value was delayed by the values that occupy the gaps since its removal
                    // was called.
                    ranges.push((elements[owner].qs, out[owner]));
                }
            }
            to_do.occupy(gap, reach, |_| {});
            gap = to_do.from(reach);
        }
    }
    found
}

/// Removes unneeded values from a small core, one by one.
fn smallest(
    elements: &[Element],
    by_priority: &[usize],
    core: Vec<usize>,
    overtaken: Option<usize>,
    empty: Option<CallIndex>,
    intervals: &Intervals,
) -> Vec<usize> {
    const MAX_CORE_TO_MINIMIZE: usize = 64;
    let mut core: Vec<usize> = core.into_iter().chain(overtaken).collect();
    if core.len() > MAX_CORE_TO_MINIMIZE {
        return core;
    }
    let position = |i: &usize| by_priority.iter().position(|j| j == i);
    core.sort_by_cached_key(position);
    let mut at = 0;
    while at < core.len() {
        let mut fewer = core.clone();
        fewer.remove(at);
        if is_refuted(elements, &fewer, empty, intervals) {
            core = fewer;
        } else {
            at += 1;
        }
    }
    core
}

/// Checks whether some values, sorted by priority, are not linearizable together with an empty
/// removal.
fn is_refuted(
    elements: &[Element],
    some: &[usize],
    empty: Option<CallIndex>,
    intervals: &Intervals,
) -> bool {
    // Occupied ranges, few enough for a linear scan.
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    let free_from = |ranges: &[(u32, u32)], mut gap: u32| {
        while let Some(&(_, to)) = ranges.iter().find(|&&(from, to)| from <= gap && gap < to) {
            gap = to;
        }
        gap
    };
    for &i in some {
        let element = &elements[i];
        let gap = match element.remove {
            None => NEVER,
            Some(_) => free_from(&ranges, element.qs),
        };
        if element.remove.is_some() && gap >= element.qe {
            return true;
        }
        if element.pe < gap {
            ranges.push((element.pe, gap));
        }
    }
    empty.is_some_and(|place| free_from(&ranges, intervals.start(place)) >= intervals.end(place))
}
