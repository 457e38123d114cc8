//! Calls of a queue that can no longer matter.
//!
//! Let `T` be a time before the start of every running call. A queue is wrong if one of two
//! elements is inserted before the other and removed after it, or if an element is inside
//! throughout a call that found the queue empty. An element removed before `T` cannot be part of a
//! later violation: an element inserted before it and still inside would be removed after it, which
//! was a violation already. So the element is forgotten, and so is a call that found the queue
//! empty before `T`. (`T` is also before every call that found the queue empty and returned after
//! it, because elements removed while that call ran may matter to it.)
//!
//! *Indeterminate removals.* Sort the elements that no other call removed by the ends of their
//! insertions. If indeterminate removals removed any of them, the first removal can be assumed to
//! have removed the first element, the second the second, and so on ([`crate::monitors`]). An
//! element is *lost* if one inserted after it was removed before `T`, or if the queue was found
//! empty after it before `T`: no later call may remove it. Lost elements are the first ones in that
//! order, and the removals that took them were called before `T`, so no other removal can replace
//! these: both are forgotten. A call that found the queue empty is kept as long as it needs such a
//! removal, and `T` is then before it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{CallLog, Does, Element, Kept, NEVER};
use crate::online::RunningId;

impl CallLog {
    /// Forgets removed elements of a queue, and calls that can no longer matter.
    pub(super) fn forget_of_queue(&mut self) {
        let open = self.running.values().map(|call| call.start).min().unwrap_or(NEVER);
        let mut inserts: FxHashMap<Element, &Kept> = FxHashMap::default();
        let mut removed: Vec<(Element, &Kept)> = Vec::new();
        let (mut empties, mut pending) = (Vec::new(), Vec::new());
        for call in &self.ended {
            match call.does {
                Does::Insert(element) => {
                    inserts.insert(element, call);
                }
                Does::Removed(element) => removed.push((element, call)),
                Does::FoundNothing => empties.push(call),
                Does::Remove => pending.push((call.start, call.id)),
            }
        }
        pending.sort_unstable();
        let taken: FxHashSet<Element> = removed.iter().map(|&(element, _)| element).collect();
        let stays = |(e, call): &(&Element, &&Kept)| call.end != NEVER && !taken.contains(e);
        let left = inserts.iter().filter(stays).map(|(&element, call)| (call.end, element));
        let mut left: Vec<(i64, Element)> = left.collect();
        left.sort_unstable();
        let late = empties.iter().filter(|call| call.end >= open).map(|call| call.start);
        let mut past = late.min().unwrap_or(NEVER).min(open);
        let (mut lost, mut needs_pending);
        loop {
            // Elements inserted before this one are lost, unless another call removed them.
            let out = removed.iter().filter(|(_, call)| call.end < past);
            let behind = out.filter_map(|(element, _)| inserts.get(element)).map(|call| call.start);
            let empty = empties.iter().filter(|call| call.end < past).map(|call| call.start);
            let since = behind.chain(empty).max().unwrap_or(i64::MIN);
            lost = left.partition_point(|&(end, _)| end < since);
            if lost > pending.len() {
                return;
            }
            let first_left = left.get(lost).map_or(NEVER, |&(end, _)| end);
            let first_pending = pending.get(lost).map_or(NEVER, |&(start, _)| start);
            needs_pending = move |call: &Kept| call.end > first_left && call.end > first_pending;
            let held = empties.iter().filter(|call| needs_pending(call)).map(|call| call.start);
            match held.min() {
                Some(held) if held < past => past = held,
                _ => break,
            }
        }
        let out = removed.iter().filter(|(_, call)| call.end < past).map(|&(element, _)| element);
        let gone: FxHashSet<Element> =
            out.chain(left[..lost].iter().map(|&(_, element)| element)).collect();
        let served: FxHashSet<RunningId> = pending[..lost].iter().map(|&(_, id)| id).collect();
        self.ended.retain(|call| match call.does {
            Does::FoundNothing => call.end >= open || needs_pending(call),
            _ => !served.contains(&call.id),
        });
        self.forget(&gone);
    }
}
