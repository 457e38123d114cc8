//! Calls of a priority queue that can no longer matter.
//!
//! A priority queue is wrong if an element is removed, or the queue is found empty, while at each
//! point of that call an element of higher priority is certainly inside, from the end of its
//! insertion to the start of its removal ([`crate::monitors`]). Let `T` be before each running
//! removal, and also before each removal that returned after the first of these was called. An
//! element removed by a call that started before `T` is inside at no point that can matter.
//!
//! *Indeterminate removals* can be assumed to wait until an element of lower priority is removed,
//! or the queue is found empty: until then their element affects no other call. So an element is
//! *forced out* if it was certainly inside at the earliest removal of an element of lower priority
//! before `T`. An indeterminate removal that was called before the element's insertion ended may
//! remove it at once, and both are forgotten. If there are several such removals, the last one is
//! chosen: the earlier ones are at least as useful for all other elements. If every indeterminate
//! removal was called after the insertion ended, the best choice depends on later calls; then
//! everything is kept.

use std::collections::BTreeMap;

use consistory_spec::PriorityOrder;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{CallLog, Does, Element, Forgotten, Kept, NEVER};
use crate::online::RunningId;

impl CallLog {
    /// Forgets removed elements of a priority queue, and calls that can no longer matter.
    pub(super) fn forget_of_priority_queue(&mut self, order: PriorityOrder) -> Forgotten {
        let inserts = self.calls().filter_map(|call| match call.does {
            Does::Insert(element) => Some((element, *call)),
            _ => None,
        });
        let inserts: FxHashMap<Element, Kept> = inserts.collect();
        let removed = self.ended.iter().filter_map(|call| match call.does {
            Does::Removed(element) => Some((element, inserts.get(&element)?, call)),
            _ => None,
        });
        let removed: Vec<(Element, &Kept, &Kept)> = removed.collect();
        let open = self.running.values().filter(|call| call.does == Does::Remove);
        let open = open.map(|call| call.start).min().unwrap_or(NEVER);
        let is_removal = |call: &&Kept| matches!(call.does, Does::Removed(_) | Does::FoundNothing);
        let late = self.ended.iter().filter(is_removal).filter(|call| call.end >= open);
        let past = late.map(|call| call.start).min().unwrap_or(NEVER).min(open);
        let mut served = Vec::new();
        if self.ended.iter().any(|call| call.does == Does::Remove) {
            // The removed elements, and the others by priority.
            let left = self.left();
            let out = removed.iter().map(|&(element, insert, call)| (element, insert, Some(call)));
            let mut all: Vec<(Element, &Kept, Option<&Kept>)> =
                out.chain(left.iter().map(|(element, insert)| (*element, insert, None))).collect();
            all.sort_by_cached_key(|(element, _, _)| (self.values.get(element), *element));
            if order == PriorityOrder::GreatestFirst {
                all.reverse();
            }
            let mut covered = Covered::default();
            // Earliest removal of each element, if that was before `T`.
            let mut at: Vec<i64> = Vec::with_capacity(all.len());
            for (_, insert, removal) in &all {
                let Some(removal) = removal else {
                    at.push(i64::MIN);
                    continue;
                };
                let start = removal.start.max(insert.start);
                let is_before = removal.end < open;
                at.push(if is_before { covered.first_free(start) } else { i64::MIN });
                covered.add(insert.end.min(removal.end), start);
            }
            let empty = self.ended.iter().filter(|call| call.does == Does::FoundNothing);
            let empty = empty.filter(|call| call.end < open);
            let empty = empty.map(|call| covered.first_free(call.start));
            let mut latest = empty.max().unwrap_or(i64::MIN);
            let mut forced = Vec::new();
            for (&(element, insert, removal), at) in all.iter().zip(at).rev() {
                if removal.is_none() && insert.end <= latest {
                    forced.push((insert.end, element));
                }
                latest = latest.max(at);
            }
            match self.serve(forced) {
                Some(found) => served = found,
                None => return Forgotten::NotAll,
            }
        }
        let gone = removed.iter().filter(|(_, insert, removal)| {
            let start = removal.start.max(insert.start);
            start < past && removal.end < open && !self.running.contains_key(&insert.id)
        });
        let mut gone: FxHashSet<Element> = gone.map(|&(element, _, _)| element).collect();
        gone.extend(served.iter().map(|&(element, _)| element));
        let served: FxHashSet<RunningId> = served.into_iter().map(|(_, id)| id).collect();
        let is_over = |call: &Kept| call.does == Does::FoundNothing && call.end < open;
        self.ended.retain(|call| !is_over(call) && !served.contains(&call.id));
        self.forget(&gone);
        Forgotten::All
    }
}

/// Times at which some element is certainly inside, as disjoint ranges.
#[derive(Default)]
pub(super) struct Covered(BTreeMap<i64, i64>);

impl Covered {
    /// Adds a range, unless it is empty.
    pub(super) fn add(&mut self, from: i64, to: i64) {
        if from >= to {
            return;
        }
        let (mut from, mut to) = (from, to);
        while let Some((&start, &end)) = self.0.range(..=to).next_back()
            && end >= from
        {
            self.0.remove(&start);
            (from, to) = (from.min(start), to.max(end));
        }
        self.0.insert(from, to);
    }

    /// Finds the first uncovered time from a given one on.
    pub(super) fn first_free(&self, time: i64) -> i64 {
        let around = self.0.range(..=time).next_back().filter(|&(_, &to)| to > time);
        around.map_or(time, |(_, &to)| to)
    }
}
