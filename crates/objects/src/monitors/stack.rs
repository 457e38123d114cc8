//! Stacks, decided by choosing the bottom element of each component.
//!
//! A linearization gives each value an interval, from its insertion's point to its removal's, such
//! that no two cross: one contains the other or they are disjoint. The interval of a value contains
//! its zone, and may start as early as `ps` and end as late as `qe`
//! ([`elements`](super::elements)). A value without a zone may be inserted and removed at one
//! point, which affects no other value; so only values with zones matter.
//!
//! *Cuts.* At a point that no zone covers, the stack may be assumed empty: of the intervals that
//! contain the point, cut those whose insertion must be before it to end there, and the others to
//! start there; nested intervals cut at one point stay nested. So the history falls into
//! independent components, the maximal ranges that zones cover without a gap; and a removal that
//! found the stack empty needs only a point outside all components.
//!
//! *Bottoms.* In a component from `x` to `y` the stack is never empty, so a single interval
//! contains all others: that of a value with `ps < x` and `qe > y`. Any value that satisfies this
//! condition can be chosen: in any linearization, cut all other intervals to the range from its
//! `ps` to its `qe`, which leaves their zones intact and creates no crossing, and extend its own
//! interval to that range. Remove the value, and continue with the components of the rest. If there
//! is no such value, the component is not linearizable, and neither is any chain of its zones from
//! `x` to `y`.
//!
//! Components only shrink, so a value that satisfies one half of the condition keeps satisfying it.
//! A segment tree finds each half once per value, and another one finds each gap once. Cost: O(n
//! log n).
//!
//! *Pending removals*: see [`settle`](super::elements::settle). A remaining value may be inserted
//! at a point that no zone covers, so it is forced out only if its insertion has no such point, or
//! if the stack was found empty after it.

use consistory_spec::Object;

use super::elements::{
    Covered, Element, Elements, Names, Refuted, Solution, cover, elements, inverse, settle,
};
use super::intervals::{Intervals, NEVER};
use super::trees::{Coverage, Least};
use super::{Decision, Pattern};
use crate::calls::{CallIndex, Calls};

const NAMES: Names = Names { insert: &["push"], remove: "pop" };

pub(super) fn decide(calls: &Calls<'_>, object: &dyn Object, intervals: &Intervals) -> Decision {
    let found = match elements(calls, object, &NAMES, intervals)? {
        Ok(found) => found,
        Err(wrong) => return Ok(Err(wrong)),
    };
    let solve = |elements: &[Element]| solve(elements, &found.empty, intervals);
    settle(calls, &found, intervals, solve, || forced(&found, intervals))
}

/// Finds the remaining values that are forced out: those inserted while a value that is removed is
/// inside throughout, or before the stack was found empty.
fn forced(found: &Elements, intervals: &Intervals) -> Vec<usize> {
    let covered = Covered::new(&found.removed);
    let gap_of =
        |place: &CallIndex| covered.first_gap(intervals.start(*place), intervals.end(*place));
    let empty = found.empty.iter().filter_map(gap_of).max();
    let is_forced = |element: &Element| {
        covered.first_gap(element.ps, element.pe).is_none()
            || empty.is_some_and(|gap| element.pe <= gap)
    };
    (0..found.left.len()).filter(|&i| is_forced(&found.left[i])).collect()
}

/// A value with a zone; if it is never removed, the zone ends after every rank.
struct Zoned {
    element: usize,
    ps: u32,
    qe: u32,
    from: u32,
    to: u32,
}

/// A component: a range of cells, and its nesting depth.
struct Component {
    from: usize,
    to: usize,
    depth: u32,
}

fn solve(elements: &[Element], empty: &[CallIndex], intervals: &Intervals) -> Solution {
    // A point is a gap, identified by the rank before it, and a position in the gap: removals come
    // first, then values without zones, then insertions.
    let mut points: Vec<((u32, u8, u32), CallIndex)> = Vec::new();
    let covered = Covered::new(elements);
    for &place in empty {
        let (start, end) = (intervals.start(place), intervals.end(place));
        match covered.first_gap(start, end) {
            Some(gap) => points.push(((gap, 1, 0), place)),
            None => {
                let core = cover(elements, start, end);
                return Err(Refuted { pattern: Pattern::EmptyThoughNot, core, empty: Some(place) });
            }
        }
    }
    let mut zones: Vec<Zoned> = Vec::new();
    for (i, element) in elements.iter().enumerate() {
        match element.zone() {
            Some((from, to)) => {
                let to = to.min(intervals.count);
                zones.push(Zoned { element: i, ps: element.ps, qe: element.qe, from, to });
            }
            None => {
                points.push(((element.qs, 1, 1), element.insert));
                points.extend(element.remove.map(|remove| ((element.qs, 1, 2), remove)));
            }
        }
    }
    zones.sort_unstable_by_key(|zone| zone.from);
    nest(elements, &zones, &mut points)?;
    points.sort_unstable();
    Ok(points.into_iter().map(|(_, place)| place).collect())
}

/// Cells between the ranks at which zones start or end.
struct Cells {
    bounds: Vec<u32>,
    /// Range of cells that each zone covers; the end is exclusive.
    of_zone: Vec<(usize, usize)>,
    /// Number of zones that start before each bound.
    started: Vec<usize>,
    /// Number of zones that cover each cell.
    counts: Vec<u32>,
}

impl Cells {
    fn new(zones: &[Zoned]) -> Self {
        let mut bounds: Vec<u32> = zones.iter().flat_map(|zone| [zone.from, zone.to]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let cell = |rank: u32| bounds.partition_point(|&bound| bound < rank);
        let of_zone: Vec<(usize, usize)> =
            zones.iter().map(|zone| (cell(zone.from), cell(zone.to))).collect();
        let mut started = vec![0; bounds.len() + 1];
        let mut changes = vec![0_i64; bounds.len()];
        for &(from, to) in &of_zone {
            started[from + 1] += 1;
            changes[from] += 1;
            changes[to] -= 1;
        }
        for i in 0..bounds.len() {
            started[i + 1] += started[i];
        }
        let mut count = 0;
        let counts = changes[..bounds.len().saturating_sub(1)].iter().map(|change| {
            count += change;
            count as u32
        });
        let counts = counts.collect();
        Cells { bounds, of_zone, started, counts }
    }
}

/// Finds zones whose value can lie below all other values of a component.
struct Bottoms {
    /// Start of each zone's insertion, until it is known to be early enough.
    starts: Least,
    /// End of each zone's removal, reversed, until it is known to be late enough.
    ends: Least,
    /// For each zone, 0 if both halves of the condition are known, and 1 otherwise.
    both: Least,
    /// Number of known halves of the condition for each zone.
    halves: Vec<u8>,
}

impl Bottoms {
    fn new(zones: &[Zoned]) -> Self {
        Bottoms {
            starts: Least::new(&zones.iter().map(|zone| zone.ps).collect::<Vec<_>>()),
            ends: Least::new(&zones.iter().map(|zone| inverse(zone.qe)).collect::<Vec<_>>()),
            both: Least::new(&vec![1; zones.len()]),
            halves: vec![0; zones.len()],
        }
    }

    /// Removes the first zone in a range that can start before `x` and end after `y`.
    fn take(&mut self, (first, last): (usize, usize), x: u32, y: u32) -> Option<usize> {
        while let Some(at) = self.starts.first_below(first, last, x) {
            self.starts.set(at, NEVER);
            self.note_half(at);
        }
        while let Some(at) = self.ends.first_below(first, last, inverse(y)) {
            self.ends.set(at, NEVER);
            self.note_half(at);
        }
        let bottom = self.both.first_below(first, last, 1)?;
        self.both.set(bottom, 1);
        Some(bottom)
    }

    fn note_half(&mut self, at: usize) {
        self.halves[at] += 1;
        if self.halves[at] == 2 {
            self.both.set(at, 0);
        }
    }
}

/// Nests the values with zones: a value that can lie below all others of a component is placed
/// there, and the rest of the component is split.
fn nest(
    elements: &[Element],
    zones: &[Zoned],
    points: &mut Vec<((u32, u8, u32), CallIndex)>,
) -> Result<(), Refuted> {
    if zones.is_empty() {
        return Ok(());
    }
    let cells = Cells::new(zones);
    let mut coverage = Coverage::new(&cells.counts);
    let mut bottoms = Bottoms::new(zones);
    let mut is_nested = vec![false; zones.len()];
    let (mut components, mut bare) = (Vec::new(), Vec::new());
    let all = Component { from: 0, to: cells.counts.len(), depth: 0 };
    split(&mut coverage, all, &mut bare, &mut components);
    while let Some(component) = components.pop() {
        let (x, y) = (cells.bounds[component.from], cells.bounds[component.to]);
        let (first, last) = (cells.started[component.from], cells.started[component.to]);
        let Some(bottom) = bottoms.take((first, last), x, y) else {
            let rest = (first..last).filter(|&at| !is_nested[at]);
            let rest: Vec<usize> = rest.map(|at| zones[at].element).collect();
            let core = chain(elements, &rest, x, y);
            return Err(Refuted { pattern: Pattern::NoBottom, core, empty: None });
        };
        is_nested[bottom] = true;
        let element = &elements[zones[bottom].element];
        // The insertion is right before the first end of an insertion, the removal right after the
        // last start of a removal.
        points.push(((x - 1, 2, component.depth), element.insert));
        let removed = element.remove.map(|place| ((y, 0, inverse(component.depth)), place));
        points.extend(removed);
        let (from, to) = cells.of_zone[bottom];
        coverage.uncover(from, to);
        let inner = Component { depth: component.depth + 1, ..component };
        split(&mut coverage, inner, &mut bare, &mut components);
    }
    Ok(())
}

/// Splits a component at the cells that no zone covers any more.
fn split(
    coverage: &mut Coverage,
    component: Component,
    bare: &mut Vec<usize>,
    components: &mut Vec<Component>,
) {
    bare.clear();
    coverage.take_bare(component.from, component.to, bare);
    let depth = component.depth;
    let mut from = component.from;
    for &gap in bare.iter().chain([&component.to]) {
        if from < gap {
            components.push(Component { from, to: gap, depth });
        }
        from = gap + 1;
    }
}

/// Finds a short chain of overlapping zones, no value of which can lie below the others.
fn chain(elements: &[Element], rest: &[usize], x: u32, y: u32) -> Vec<usize> {
    const MAX_CHAINED_ZONES: usize = 8;
    let some: Vec<Element> = rest.iter().map(|&i| elements[i]).collect();
    let chain: Vec<usize> = cover(&some, x, y).into_iter().map(|i| rest[i]).collect();
    let is_stuck = |part: &[usize]| {
        let (first, last) = (&elements[part[0]], &elements[part[part.len() - 1]]);
        let (x, y) = (first.pe, last.qs);
        // A value that is never removed lies below every other such value.
        let reaches = |e: &Element| e.qe > y || (e.qe == NEVER && y == NEVER);
        !part.iter().map(|&i| &elements[i]).any(|e| e.ps < x && reaches(e))
    };
    for length in 2..=MAX_CHAINED_ZONES.min(chain.len()) {
        if let Some(part) = chain.windows(length).find(|part| is_stuck(part)) {
            return part.to_vec();
        }
    }
    chain
}
