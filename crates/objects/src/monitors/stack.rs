//! Stacks: who lies at the bottom.
//!
//! A linearization gives each value an interval, from its insertion's point to its removal's, such
//! that no two cross: of two, one contains the other or they are disjoint. The interval of a value
//! contains its zone, and may start as early as `ps` and end as late as `qe`
//! ([`elements`](super::elements)). A value without a zone may go in and out at once and is in
//! nobody's way; so only values with zones matter.
//!
//! *Cuts.* At a point that no zone covers the stack may as well be empty: of the intervals that
//! contain the point, those whose insertion must be before it are cut off to end there, the others
//! to start there; nested intervals cut at one point stay nested. So the history falls into
//! components, the maximal ranges that zones cover without a gap, which are independent; and a
//! removal that found nothing needs just a point of its own in no component.
//!
//! *Bottoms.* In a component from `x` to `y` the stack is never empty, so a single interval
//! contains all others: that of a value with `ps < x` and `qe > y`. Any value that satisfies this
//! can be the one: whatever the linearization, cut all other intervals to the range from its `ps`
//! to its `qe`, which leaves their zones intact and them without crossings, and put it around.
//! Take it away, and go on with the components of the rest. If there is no such value, the
//! component is not linearizable, and neither is any chain of its zones from `x` to `y`.
//!
//! Components only shrink, so a value that satisfies one half of the condition satisfies it
//! forever; each half is found once for each value, in a segment tree, and each gap once, in
//! another. Cost: O(n log n).
//!
//! *Pending removals*: see [`settle`](super::elements::settle). A value that is left may stay at a point
//! that no zone covers, so it is forced out only if its insertion has no such point, or if the stack was
//! found empty behind it.

use consistory_spec::Object;

use super::elements::{
    Covered, Element, Elements, Names, Refuted, Solution, cover, elements, inverse, settle,
};
use super::intervals::{Intervals, NEVER};
use super::trees::{Coverage, Least};
use super::{Decision, Pattern};
use crate::calls::{Calls, Place};

const NAMES: Names = Names { insert: &["push"], remove: "pop" };

pub(super) fn decide(calls: &Calls<'_>, object: &dyn Object, intervals: &Intervals) -> Decision {
    let found = match elements(calls, object, &NAMES, intervals)? {
        Ok(found) => found,
        Err(wrong) => return Ok(Err(wrong)),
    };
    let solve = |elements: &[Element]| solve(elements, &found.empty, intervals);
    settle(calls, &found, intervals, solve, || forced(&found, intervals))
}

/// Finds the values that are left and can't be: those that go in while something that comes out is
/// inside throughout, or before the stack was found empty.
fn forced(found: &Elements, intervals: &Intervals) -> Vec<usize> {
    let covered = Covered::new(&found.removed);
    let gap_of = |place: &Place| covered.first_gap(intervals.start(*place), intervals.end(*place));
    let empty = found.empty.iter().filter_map(gap_of).max();
    let is_forced = |element: &Element| {
        covered.first_gap(element.ps, element.pe).is_none()
            || empty.is_some_and(|gap| element.pe <= gap)
    };
    (0..found.left.len()).filter(|&i| is_forced(&found.left[i])).collect()
}

/// A value with a zone, which ends behind every rank if it is never removed.
struct Zoned {
    element: usize,
    ps: u32,
    qe: u32,
    from: u32,
    to: u32,
}

/// A component: a range of cells, and how deep it lies.
struct Component {
    from: usize,
    to: usize,
    depth: u32,
}

fn solve(elements: &[Element], empty: &[Place], intervals: &Intervals) -> Solution {
    // A point is a gap, named by the rank before it, and a place in it: removals, what needs no
    // room, insertions.
    let mut points: Vec<((u32, u8, u32), Place)> = Vec::new();
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

/// Nests the values with zones.
fn nest(
    elements: &[Element],
    zones: &[Zoned],
    points: &mut Vec<((u32, u8, u32), Place)>,
) -> Result<(), Refuted> {
    // The cells between the ranks at which zones start or end.
    let mut bounds: Vec<u32> = zones.iter().flat_map(|zone| [zone.from, zone.to]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    if bounds.is_empty() {
        return Ok(());
    }
    let cell = |rank: u32| bounds.partition_point(|&bound| bound < rank);
    let cells: Vec<(usize, usize)> =
        zones.iter().map(|zone| (cell(zone.from), cell(zone.to))).collect();
    // How many zones start before each bound.
    let mut started = vec![0; bounds.len() + 1];
    let mut changes = vec![0_i64; bounds.len()];
    for &(from, to) in &cells {
        started[from + 1] += 1;
        changes[from] += 1;
        changes[to] -= 1;
    }
    for i in 0..bounds.len() {
        started[i + 1] += started[i];
    }
    let mut count = 0;
    let counts: Vec<u32> = changes[..bounds.len() - 1]
        .iter()
        .map(|change| {
            count += change;
            count as u32
        })
        .collect();
    let mut coverage = Coverage::new(&counts);
    // What is still to start early enough, and to end late enough; and what does both.
    let mut starts = Least::new(&zones.iter().map(|zone| zone.ps).collect::<Vec<_>>());
    let mut ends = Least::new(&zones.iter().map(|zone| inverse(zone.qe)).collect::<Vec<_>>());
    let mut bottoms = Least::new(&vec![1; zones.len()]);
    let mut halves = vec![0_u8; zones.len()];
    let mut is_nested = vec![false; zones.len()];

    let mut components = Vec::new();
    let mut bare = Vec::new();
    split(
        &mut coverage,
        Component { from: 0, to: counts.len(), depth: 0 },
        &mut bare,
        &mut components,
    );
    while let Some(component) = components.pop() {
        let (x, y) = (bounds[component.from], bounds[component.to]);
        let (first, last) = (started[component.from], started[component.to]);
        while let Some(at) = starts.first_below(first, last, x) {
            starts.set(at, NEVER);
            halves[at] += 1;
            if halves[at] == 2 {
                bottoms.set(at, 0);
            }
        }
        while let Some(at) = ends.first_below(first, last, inverse(y)) {
            ends.set(at, NEVER);
            halves[at] += 1;
            if halves[at] == 2 {
                bottoms.set(at, 0);
            }
        }
        let Some(bottom) = bottoms.first_below(first, last, 1) else {
            let rest = (first..last).filter(|&at| !is_nested[at]);
            let rest: Vec<usize> = rest.map(|at| zones[at].element).collect();
            let core = chain(elements, &rest, x, y);
            return Err(Refuted { pattern: Pattern::NoBottom, core, empty: None });
        };
        bottoms.set(bottom, 1);
        is_nested[bottom] = true;
        let element = &elements[zones[bottom].element];
        // Right before the first end of an insertion, right behind the last start of a removal.
        points.push(((x - 1, 2, component.depth), element.insert));
        let removed = element.remove.map(|place| ((y, 0, inverse(component.depth)), place));
        points.extend(removed);
        let (from, to) = cells[bottom];
        coverage.uncover(from, to);
        let inner = Component { depth: component.depth + 1, ..component };
        split(&mut coverage, inner, &mut bare, &mut components);
    }
    Ok(())
}

/// Splits a component at the cells that nothing covers any more.
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
    const SHORT: usize = 8;
    let some: Vec<Element> = rest.iter().map(|&i| elements[i]).collect();
    let chain: Vec<usize> = cover(&some, x, y).into_iter().map(|i| rest[i]).collect();
    let is_stuck = |part: &[usize]| {
        let (first, last) = (&elements[part[0]], &elements[part[part.len() - 1]]);
        let (x, y) = (first.pe, last.qs);
        // What is never removed lies below whatever else is never removed.
        let reaches = |e: &Element| e.qe > y || (e.qe == NEVER && y == NEVER);
        !part.iter().map(|&i| &elements[i]).any(|e| e.ps < x && reaches(e))
    };
    for length in 2..=SHORT.min(chain.len()) {
        if let Some(part) = chain.windows(length).find(|part| is_stuck(part)) {
            return part.to_vec();
        }
    }
    chain
}
