//! Zones: the time during which the calls of one value certainly occupy an object that holds one
//! value at a time.
//!
//! Calls that must be consecutive in every linearization, with no call of another group between
//! them, form a group and have a *zone*. With `f` the first end and `s` the last start of a group's
//! calls, the zone lies between the two:
//!
//! ```text
//!   f < s, forward:   ├ w(1) ┤f ═══ the value is in the register ═══ s├ r => 1 ┤
//!   s < f, backward:  ├───── w(2) ──s═══f────┤    all of it fits at any one point of s..f
//!                            r => 2 ├───┤
//! ```
//!
//! If the calls of each group can be ordered as required, all groups can be arranged if and only if
//! no two forward zones overlap, and no backward zone lies inside a forward one (Gibbons and
//! Korach).
//!
//! *Only if*: throughout a forward zone its group is in progress, since one of its calls has its
//! point before the zone and another one after it. *If*: take the forward zones in order of time,
//! and place each backward zone at its start or, if that lies in a forward zone, directly after
//! that zone's end, which is still in the backward zone. For two groups in this order, every start
//! in the first is before every end in the second, so no call of the second must precede one of the
//! first.
//!
//! Cost: O(n log n) for the sort.

use super::Pattern;
use super::intervals::{Intervals, NEVER};
use crate::calls::CallIndex;

/// The zone of a group of calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zone {
    /// First end and its call; no call if the group began before all calls.
    first_end: (i64, Option<CallIndex>),
    /// Last start and its call.
    last_start: (i64, Option<CallIndex>),
}

impl Zone {
    /// The zone of a group that began before all calls.
    pub(super) fn before_everything() -> Self {
        Zone { first_end: (-1, None), last_start: (-1, None) }
    }

    /// The zone of one call.
    pub(super) fn of(place: CallIndex, intervals: &Intervals) -> Self {
        Zone {
            first_end: (rank(intervals.end(place)), Some(place)),
            last_start: (rank(intervals.start(place)), Some(place)),
        }
    }

    /// Adds a call to the group.
    pub(super) fn add(&mut self, place: CallIndex, intervals: &Intervals) {
        let one = Zone::of(place, intervals);
        if one.first_end.0 < self.first_end.0 {
            self.first_end = one.first_end;
        }
        if one.last_start.0 > self.last_start.0 {
            self.last_start = one.last_start;
        }
    }

    /// Returns the calls that bound the zone.
    pub(super) fn bounds(&self) -> impl Iterator<Item = CallIndex> + use<> {
        [self.first_end.1, self.last_start.1].into_iter().flatten()
    }

    fn is_forward(&self) -> bool {
        self.first_end.0 < self.last_start.0
    }
}

/// Orders groups by their zones, or finds two that cannot be ordered.
pub(super) fn arrange(zones: &[Zone]) -> Result<Vec<usize>, (Pattern, usize, usize)> {
    let mut forward: Vec<usize> = (0..zones.len()).filter(|&i| zones[i].is_forward()).collect();
    forward.sort_unstable_by_key(|&i| zones[i].first_end.0);
    for pair in forward.windows(2) {
        if zones[pair[1]].first_end.0 < zones[pair[0]].last_start.0 {
            return Err((Pattern::TwoValuesAtOnce, pair[0], pair[1]));
        }
    }
    // Position of each group: a rank, and whether the group comes after the forward zone that ends
    // there.
    let mut keyed: Vec<((i64, bool), usize)> = Vec::with_capacity(zones.len());
    for (i, zone) in zones.iter().enumerate() {
        if zone.is_forward() {
            keyed.push(((zone.first_end.0, false), i));
            continue;
        }
        let (low, high) = (zone.last_start.0, zone.first_end.0);
        let before = forward.partition_point(|&j| zones[j].first_end.0 < low);
        let around = before.checked_sub(1).map(|at| forward[at]);
        match around.filter(|&j| low < zones[j].last_start.0) {
            Some(j) if high < zones[j].last_start.0 => return Err((Pattern::Interrupted, j, i)),
            Some(j) => keyed.push(((zones[j].last_start.0, true), i)),
            None => keyed.push(((low, false), i)),
        }
    }
    keyed.sort_by_key(|&(key, _)| key);
    Ok(keyed.into_iter().map(|(_, i)| i).collect())
}

/// Converts a rank to a wider type, which has values before the first rank.
fn rank(rank: u32) -> i64 {
    if rank == NEVER { i64::MAX } else { i64::from(rank) }
}
