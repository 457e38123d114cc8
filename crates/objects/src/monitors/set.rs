//! Sets, decided element by element.
//!
//! A call affects and observes only its own element, so each element is an object of its own
//! (Herlihy and Wing's locality). Assume that an element is added successfully at most once and
//! removed successfully at most once. Every other call only observes: an `add` that returned
//! `false` and a `contains` that returned `true` find the element; a `remove` or `contains` that
//! returned `false` misses it. A linearization is then a point `a` of the addition and a later
//! point `r` of the removal, such that every call that finds the element has a point between the
//! two, and every call that misses it has a point before `a` or after `r`:
//!
//! ```text
//!      misses          a├──── finds ────┤r         misses
//! ```
//!
//! The calls that find the element bound `a` from above by their first end, and `r` from below by
//! their last start. For the calls that miss it, a late `a` and an early `r` are best. So the
//! latest `a` and the earliest `r` are chosen, and each miss is compared with these two. If the
//! latest `a` is not before the earliest `r`, all finding calls fit at one point, and every miss
//! can avoid it. A pending addition counts if a call finds or removes the element. A pending
//! removal always counts, since an early removal does no harm. Cost: O(n) after computing ranks and
//! sorting each element's calls.

use consistory_history::{Value, ValueId};
use consistory_spec::Object;
use rustc_hash::FxHashMap;

use super::intervals::{Intervals, NEVER};
use super::methods::Methods;
use super::{Decision, Pattern, Unsuitable, Violation};
use crate::calls::{CallIndex, Calls};

/// Calls of one element.
#[derive(Default)]
struct Element {
    add: Option<CallIndex>,
    remove: Option<CallIndex>,
    finds: Vec<CallIndex>,
    misses: Vec<CallIndex>,
}

pub(super) fn decide(calls: &Calls<'_>, object: &dyn Object, intervals: &Intervals) -> Decision {
    let mut of_value: FxHashMap<ValueId, usize> = FxHashMap::default();
    let mut elements: Vec<Element> = Vec::new();
    let mut methods = Methods::new(calls, object);
    for place in calls.places() {
        let args = calls.args(place);
        let name = calls.method(place);
        let (Some(method @ ("add" | "remove" | "contains")), &[value]) = (methods.of(place), args)
        else {
            return Err(Unsuitable::Method { method: name.to_owned() });
        };
        let is_pending = calls.get(place).is_pending;
        let returned = match calls.returns(place).map(|id| calls.value(id)) {
            Some(Value::Bool(truth)) => Some(*truth),
            None if is_pending => None,
            _ => return Err(Unsuitable::Return { method: name.to_owned() }),
        };
        let id = *of_value.entry(value).or_insert_with(|| {
            elements.push(Element::default());
            elements.len() - 1
        });
        let element = &mut elements[id];
        let second = match (method, returned) {
            ("contains", None) => None,
            ("add", None | Some(true)) => element.add.replace(place),
            ("remove", None | Some(true)) => element.remove.replace(place),
            ("add", Some(false)) | ("contains", Some(true)) => {
                element.finds.push(place);
                None
            }
            _ => {
                element.misses.push(place);
                None
            }
        };
        if second.is_some() {
            let value = calls.value(value).clone();
            return Err(Unsuitable::NotDifferentiated { value });
        }
    }
    // Points of all elements in one order: the rank, the position at that rank, and the call.
    let mut points: Vec<(u32, u32, CallIndex)> = Vec::with_capacity(calls.len());
    for element in &elements {
        if let Err(found) = place_element(calls, element, intervals, &mut points) {
            return Ok(Err(found));
        }
    }
    points.sort_unstable();
    Ok(Ok(points.into_iter().map(|(_, _, place)| place).collect()))
}

/// Chooses the points of an element's calls.
///
/// A point is the gap after a rank, and a position among the element's points in that gap.
fn place_element(
    calls: &Calls<'_>,
    element: &Element,
    intervals: &Intervals,
    points: &mut Vec<(u32, u32, CallIndex)>,
) -> Result<(), Violation> {
    let wrong = |pattern, witnesses: &[Option<CallIndex>]| {
        let changes = [element.add, element.remove];
        let core = changes.iter().chain(witnesses).copied().flatten().collect();
        Err(Violation { pattern, core })
    };
    let (start, end) = (|p| intervals.start(p), |p| intervals.end(p));
    let is_pending = |place: CallIndex| calls.get(place).is_pending;
    let first_find = element.finds.iter().copied().min_by_key(|&p| end(p));
    let last_find = element.finds.iter().copied().max_by_key(|&p| start(p));
    let removed = element.remove.filter(|&r| !is_pending(r));
    let is_needed = first_find.is_some() || removed.is_some();
    let Some(add) = element.add.filter(|&add| is_needed || !is_pending(add)) else {
        if is_needed {
            return wrong(Pattern::ThinAir, &[first_find]);
        }
        // The element is never present, so a pending removal did nothing.
        points.extend(element.misses.iter().map(|&p| (start(p), 0, p)));
        return Ok(());
    };
    if first_find.is_some_and(|find| end(find) < start(add)) {
        return wrong(Pattern::BeforeItsInsertion, &[first_find]);
    }
    // The latest gap of the addition is right before a rank, the earliest gap of the removal is
    // right after a rank.
    let latest = first_find.map_or(end(add), |find| end(find).min(end(add)));
    let mut earliest = NEVER;
    if let Some(remove) = element.remove {
        earliest = last_find.map_or(start(remove), |find| start(find).max(start(remove)));
        if last_find.is_some_and(|find| end(remove) < start(find)) {
            return wrong(Pattern::FoundThoughGone, &[last_find]);
        }
        if end(remove) < start(add) {
            return wrong(Pattern::BeforeItsInsertion, &[]);
        }
    }
    // If the addition's point is not before the removal's, all calls fit into one gap.
    let together =
        (earliest != NEVER && earliest.max(start(add)) < latest).then(|| earliest.max(start(add)));
    let (a, r) = match together {
        Some(point) => ((point, 1), (point, 3)),
        None => ((latest - 1, 9), (earliest, 1)),
    };
    points.push((a.0, a.1, add));
    points.extend(element.remove.map(|remove| (r.0, r.1, remove)));
    for &find in &element.finds {
        let point = match together {
            Some(point) => (point, 2),
            None if start(find) > a.0 => (start(find), 0),
            None => (a.0, 10),
        };
        points.push((point.0, point.1, find));
    }
    for &miss in &element.misses {
        if (start(miss), 0) < a {
            points.push((start(miss), 0, miss));
        } else if element.remove.is_some() && end(miss) > r.0 {
            // Right after the removal, or at its own start if that is later.
            let point = if start(miss) > r.0 { (start(miss), 0) } else { (r.0, r.1 + 3) };
            points.push((point.0, point.1, miss));
        } else {
            return wrong(Pattern::MissingThoughThere, &[first_find, last_find, Some(miss)]);
        }
    }
    Ok(())
}
