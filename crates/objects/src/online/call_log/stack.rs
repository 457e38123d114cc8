//! Calls of a stack that can no longer matter.
//!
//! Let `T` be a time before every running removal and inside no completed removal. The elements
//! removed before `T` are nested among themselves: the ranges in which one of them is certainly
//! inside, joined if they overlap, are components, each of which was found right independently of
//! the calls outside. They affect elements removed after `T` in one way only: an element that stays
//! cannot be inserted during a component, since it would be removed too early. So the components
//! are forgotten, and the insertion of an element that stays is cut to end before the component or
//! to start after it. Elements that may be removed as soon as they are inserted affect no other
//! call.
//!
//! ```text
//!   ├ push(1) ┤                           ├ pop => 1 ┤
//!               ├ push(2) ┤  ├ pop => 2 ┤                T
//!                      ├────── push(3) ──────┤              3 goes in after 1, so it starts here ^
//! ```
//!
//! *Indeterminate removals* can be assumed to wait until an element below is removed, or the stack
//! is found empty. So an element is forced out if it was inserted during a finished component, or
//! was certainly inside when the stack was found empty. A removal that was called before the
//! insertion ended removes it at once, and both are forgotten, as in [`super::priority_queue`].

use rustc_hash::{FxHashMap, FxHashSet};

use super::priority_queue::Covered;
use super::{CallLog, Does, Element, Forgotten, Kept, NEVER};
use crate::online::RunningId;

/// The removed elements of a stack.
#[derive(Default)]
struct Out {
    /// Elements that may have been removed as soon as they were inserted.
    at_once: FxHashSet<Element>,
    /// Elements that were removed although their insertion is still running.
    still_going_in: FxHashSet<Element>,
    /// The other elements, each with the end of its insertion and its removal.
    zones: Vec<(Element, i64, Kept)>,
    /// The ends and starts of completed removals, except those of `at_once`.
    removals: Vec<(i64, i64)>,
}

/// Ranges in which some element is certainly inside, disjoint and sorted.
struct Components(Vec<(i64, i64)>);

impl Components {
    fn new(zones: &[(Element, i64, Kept)]) -> Self {
        let mut components: Vec<(i64, i64)> = Vec::new();
        for &(_, from, removal) in zones {
            match components.last_mut() {
                Some((_, to)) if from < *to => *to = (*to).max(removal.start),
                _ => components.push((from, removal.start)),
            }
        }
        Components(components)
    }

    /// Returns the component around a time.
    fn around(&self, time: i64) -> Option<(i64, i64)> {
        let at = self.0.partition_point(|&(from, _)| from < time).checked_sub(1)?;
        Some(self.0[at]).filter(|&(_, to)| time < to)
    }
}

impl CallLog {
    /// Forgets removed elements of a stack, and calls that can no longer matter.
    pub(super) fn forget_of_stack(&mut self) -> Forgotten {
        let Out { at_once: mut gone, still_going_in, mut zones, mut removals } = self.out();
        let past = self.before_all_removals(&mut removals);
        let mut covered = Covered::default();
        for (_, from, removal) in &zones {
            covered.add(*from, removal.start);
        }
        zones.retain(|(_, _, removal)| removal.end < past);
        zones.sort_unstable_by_key(|&(_, from, _)| from);
        gone.extend(zones.iter().map(|&(element, _, _)| element));
        let components = Components::new(&zones);
        let empty = self.ended.iter().filter(|call| call.does == Does::FoundNothing);
        let empty = empty.filter(|call| call.end < past);
        let latest = empty.map(|call| covered.first_free(call.start)).max().unwrap_or(i64::MIN);
        let forced = self.left().into_iter().filter(|(_, insert)| {
            let component = components.around(insert.start);
            insert.end <= latest
                || (component.is_some() && component == components.around(insert.end))
        });
        let forced = forced.map(|(element, insert)| (insert.end, element)).collect();
        let Some(served) = self.serve(forced) else { return Forgotten::NotAll };
        gone.extend(served.iter().map(|&(element, _)| element));
        let served: FxHashSet<RunningId> = served.into_iter().map(|(_, id)| id).collect();
        self.ended.retain(|call| !served.contains(&call.id));
        self.cut(&components, |element| {
            gone.contains(&element) || still_going_in.contains(&element)
        });
        self.ended.retain(|call| call.does != Does::FoundNothing || call.end >= past);
        self.forget(&gone);
        Forgotten::All
    }

    /// Lists the removed elements.
    fn out(&self) -> Out {
        let inserts = self.calls().filter_map(|call| match call.does {
            Does::Insert(element) => Some((element, *call)),
            _ => None,
        });
        let inserts: FxHashMap<Element, Kept> = inserts.collect();
        let mut out = Out::default();
        for call in &self.ended {
            match call.does {
                Does::Removed(element) => match inserts.get(&element) {
                    Some(insert) if insert.end < call.start => {
                        out.zones.push((element, insert.end, *call));
                        out.removals.push((call.end, call.start));
                    }
                    Some(insert) if !self.running.contains_key(&insert.id) => {
                        out.at_once.insert(element);
                    }
                    _ => _ = out.still_going_in.insert(element),
                },
                Does::FoundNothing => out.removals.push((call.end, call.start)),
                _ => {}
            }
        }
        out
    }

    /// Finds the time before all running removals and inside no completed one.
    fn before_all_removals(&self, removals: &mut [(i64, i64)]) -> i64 {
        let open = self.running.values().filter(|call| call.does == Does::Remove);
        let mut past = open.map(|call| call.start).min().unwrap_or(NEVER);
        removals.sort_unstable();
        for &(end, start) in removals.iter().rev() {
            if end >= past {
                past = past.min(start);
            }
        }
        past
    }

    /// Cuts the insertions of elements that stay so that none goes in during a component.
    fn cut(&mut self, components: &Components, goes: impl Fn(Element) -> bool) {
        for call in self.ended.iter_mut().chain(self.running.values_mut()) {
            match call.does {
                Does::Insert(element) if !goes(element) => {
                    call.start = components.around(call.start).map_or(call.start, |(_, to)| to);
                    if call.end != NEVER {
                        call.end = components.around(call.end).map_or(call.end, |(from, _)| from);
                    }
                }
                // The elements that it removed stay throughout the component.
                Does::Remove => {
                    let component = components.around(call.start);
                    call.start = component.map_or(call.start, |(from, _)| from - 1);
                }
                _ => {}
            }
        }
    }
}
