//! Operations that overwrite the whole state, as a register's `write` does.
//!
//! An overwriting operation has no readers if another one comes directly after it. So as soon as
//! one overwriting operation is linearized, all other open ones *may have been* linearized directly
//! before it: they are *settled*. A settled operation may return at once, or take effect later,
//! whichever is better. A configuration in which it is settled covers those in which it is not yet
//! linearized, and those in which it was.
//!
//! ```text
//! t0: ├────── w(1) ──────┤                 w(2) is linearized for r => 2; then w(1) is settled:
//! t1:     ├── w(2) ──┤                     it came right before w(2), or it comes later, for a
//! t2:         ├─ r => 2 ─┤   ├─ r => ? ─┤  read that returns 1
//! ```
//!
//! If every operation overwrites or changes no state, as in a register without compare-and-set,
//! stronger rules apply. An operation cannot see `w` once a write that started after `w` returned
//! has itself returned, so only few operations remain that may read `w`. Once all of them were
//! called, `w` is *closed*: together with its readers that are not yet linearized it is a block
//! that can come directly before the next overwriting operation without affecting any other
//! operation. So whenever an overwriting operation is linearized, all closed blocks are linearized
//! with it, without a choice. The search still has to choose among overlapping operations of equal
//! effect, and the time at which operations with future readers take effect.

use crate::calls::CallIndex;
use crate::machine::{StateId, States, TransitionTable};
use crate::task::Task;
use crate::timeline::Timeline;

/// Largest number of operations among which readers are searched; if there are more, the
/// overwriting operation is never closed.
const MAX_READER_CANDIDATES: usize = 1024;

/// Largest number of states after pending operations for which readers are searched.
const MAX_PENDING_STATES: usize = 64;

/// Overwriting operations of a task.
pub(crate) struct Overwrites {
    /// Whether each operation (by position) overwrites the state.
    overwrites: Vec<bool>,
    /// Readers of the overwriting operations, if every operation overwrites or changes no state.
    pub(crate) readers: Option<Readers>,
}

/// Operations that may see each overwriting operation.
pub(crate) struct Readers {
    /// State after each overwriting operation (by position).
    after: Vec<StateId>,
    /// Rank of the first return by which all readers of each operation were called.
    closed_at: Vec<u32>,
    readers: Lists,
    /// Operations that each read-only operation may see.
    seen: Lists,
    /// Whether each operation may see further operations that are not listed.
    sees_more: Vec<bool>,
}

impl Overwrites {
    /// Finds the overwriting operations of a task; `None` if there are none, or if session order
    /// adds to real time.
    pub(crate) fn new<S: States>(
        task: &Task<'_>,
        timeline: &Timeline,
        machine: &mut TransitionTable<'_, '_, S>,
    ) -> Option<Self> {
        let places = task.calls().places();
        let overwrites: Vec<bool> = places.map(|place| overwrites(task, place)).collect();
        if !any_overwrites(task, timeline) {
            return None;
        }
        let readers =
            are_plain(task, timeline).then(|| Readers::new(task, timeline, &overwrites, machine));
        Some(Overwrites { overwrites, readers })
    }

    #[inline]
    pub(crate) fn contains(&self, place: CallIndex) -> bool {
        self.overwrites[place.index()]
    }
}

fn overwrites(task: &Task<'_>, place: CallIndex) -> bool {
    let call = task.invocation(place);
    task.returns(place).is_none() && task.object().overwrites(&call.method, &call.args)
}

/// Checks whether operations of a task are known to overwrite.
pub(crate) fn any_overwrites(task: &Task<'_>, timeline: &Timeline) -> bool {
    !timeline.has_after
        && task.calls().places().any(|place| overwrites(task, place))
        && is_of_one_part(task)
}

/// Checks whether every operation of a task overwrites or changes no state.
pub(crate) fn is_plain(task: &Task<'_>, timeline: &Timeline) -> bool {
    !timeline.has_after && are_plain(task, timeline) && is_of_one_part(task)
}

fn are_plain(task: &Task<'_>, timeline: &Timeline) -> bool {
    let is_plain = |&place: &CallIndex| match task.is_pure(place) {
        true => task.returns(place).is_some(),
        false => overwrites(task, place),
    };
    timeline.returns.iter().chain(&timeline.pending).all(is_plain)
}

/// Checks whether all operations are confined to the same part of an object, or no operation is
/// confined to a part.
fn is_of_one_part(task: &Task<'_>) -> bool {
    let part = |place| {
        let call = task.invocation(place);
        task.object().part(&call.method, &call.args)
    };
    let mut places = task.calls().places();
    let first = places.next().map(part);
    places.all(|place| Some(part(place)) == first)
}

impl Readers {
    fn new<S: States>(
        task: &Task<'_>,
        timeline: &Timeline,
        overwrites: &[bool],
        machine: &mut TransitionTable<'_, '_, S>,
    ) -> Self {
        let calls = task.calls();
        let places: Vec<CallIndex> = calls.places().collect();
        let initial = machine.initial();
        let after: Vec<StateId> = places
            .iter()
            .map(|&place| match overwrites[place.index()] {
                true => machine.perform(initial, place).unwrap_or(initial),
                false => initial,
            })
            .collect();
        // First end of an overwriting operation at each position or later.
        let mut first_end = vec![i64::MAX; places.len() + 1];
        for &place in places.iter().rev() {
            let ends = overwrites[place.index()] && !task.is_pending(place);
            let end = if ends { calls.get(place).end } else { i64::MAX };
            first_end[place.index()] = first_end[place.index() + 1].min(end);
        }
        let is_reader = |place: CallIndex| !overwrites[place.index()] && !task.is_pending(place);
        let mut closed_at = vec![u32::MAX; places.len()];
        let mut sees_more = vec![false; places.len()];
        let mut readers = Lists::default();
        let mut seen: Vec<(CallIndex, CallIndex)> = Vec::new();
        // Readers that were called and have not returned.
        let mut running: Vec<CallIndex> = Vec::new();
        // The states after the pending operations called so far.
        let mut pending: Vec<StateId> = Vec::new();
        for &place in &places {
            let op = calls.get(place);
            running.retain(|&reader| calls.get(reader).end >= op.start);
            if is_reader(place) {
                running.push(place);
            }
            if !overwrites[place.index()] {
                readers.end();
                continue;
            }
            let state = after[place.index()];
            if task.is_pending(place) {
                readers.end();
                if pending.len() < MAX_PENDING_STATES && !pending.contains(&state) {
                    pending.push(state);
                    let is_last = pending.len() == MAX_PENDING_STATES;
                    for &reader in running.iter().chain(&places[place.index() + 1..]) {
                        sees_more[reader.index()] |= is_last
                            || (is_reader(reader) && machine.perform(state, reader).is_some());
                    }
                }
                continue;
            }
            let behind = places.partition_point(|&other| calls.get(other).start <= op.end);
            let last = first_end[behind];
            let later = &places[place.index() + 1..];
            let near = later.partition_point(|&other| calls.get(other).start <= last);
            let is_known = near <= MAX_READER_CANDIDATES;
            let mut last_call = op.start;
            for &reader in running.iter().chain(&later[..near]) {
                if !is_reader(reader) || machine.perform(state, reader).is_none() {
                    continue;
                }
                if is_known {
                    readers.items.push(reader);
                    seen.push((reader, place));
                    last_call = last_call.max(calls.get(reader).start);
                } else {
                    sees_more[reader.index()] = true;
                }
            }
            readers.end();
            if is_known {
                let returns = &timeline.returns;
                let at = returns.partition_point(|&other| calls.get(other).end < last_call);
                closed_at[place.index()] = at as u32;
            }
        }
        let seen = Lists::by_place(places.len(), &mut seen);
        Readers { after, closed_at, readers, seen, sees_more }
    }

    /// Returns the state after an overwriting operation.
    #[inline]
    pub(crate) fn after(&self, place: CallIndex) -> StateId {
        self.after[place.index()]
    }

    /// Checks whether all operations that may see an operation were called before a given return.
    #[inline]
    pub(crate) fn is_closed(&self, place: CallIndex, at: u32) -> bool {
        self.closed_at[place.index()] <= at
    }

    /// Returns the operations that may see an overwriting one, if it can ever be closed.
    #[inline]
    pub(crate) fn readers(&self, place: CallIndex) -> &[CallIndex] {
        self.readers.of(place)
    }

    /// Returns the operations that a read-only operation may see; `None` if it may see others.
    #[inline]
    pub(crate) fn seen(&self, place: CallIndex) -> Option<&[CallIndex]> {
        (!self.sees_more[place.index()]).then(|| self.seen.of(place))
    }
}

/// A list of operations per operation.
struct Lists {
    starts: Vec<u32>,
    items: Vec<CallIndex>,
}

impl Default for Lists {
    fn default() -> Self {
        Lists { starts: vec![0], items: Vec::new() }
    }
}

impl Lists {
    /// Ends the list of the next operation.
    fn end(&mut self) {
        self.starts.push(self.items.len() as u32);
    }

    fn by_place(count: usize, pairs: &mut [(CallIndex, CallIndex)]) -> Self {
        pairs.sort_unstable();
        let mut lists = Lists::default();
        let mut pairs = pairs.iter().peekable();
        for place in (0..count).map(CallIndex::new) {
            while let Some((_, item)) = pairs.next_if(|(of, _)| *of == place) {
                lists.items.push(*item);
            }
            lists.end();
        }
        lists
    }

    fn of(&self, place: CallIndex) -> &[CallIndex] {
        let (start, end) = (self.starts[place.index()], self.starts[place.index() + 1]);
        &self.items[start as usize..end as usize]
    }
}
