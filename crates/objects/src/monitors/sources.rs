//! The source of a read of a register in which values are written more than once.
//!
//! A write is a candidate of a read if it has the value that was read, started before the read
//! ended, and was not overwritten before the read: no other write started after its end and ended
//! before the read's start. Of the writes that ended before the read, the one that started last
//! overwrites every write that any of them overwrites, so only this one is checked. The initial
//! value is a candidate if no write ended before the read.
//!
//! A read without a candidate refutes the history. If every read has exactly one candidate, this is
//! its source in every linearization, and the history is equivalent to a differentiated one. A read
//! with several candidates can be left out: a refutation of the other calls refutes the history.
//!
//! Cost: O(log n) per read, after a sort.

use consistory_history::ValueId;
use rustc_hash::FxHashMap;

use super::intervals::{Intervals, NEVER};
use super::trees::Least;
use crate::calls::{CallIndex, Calls};

/// The writes of a history, by value and by end.
pub(super) struct Sources<'a> {
    intervals: &'a Intervals,
    /// The writes in the order of their calls, with their values.
    writes: &'a [(CallIndex, ValueId)],
    of_value: FxHashMap<ValueId, Same>,
    overwriters: Overwriters,
}

/// For each time, the completed write that overwrites the most.
pub(super) struct Overwriters {
    /// Ends of completed writes in order, each with the write that started last among those that
    /// ended by then.
    ended: Vec<(u32, CallIndex)>,
}

impl Overwriters {
    pub(super) fn new(writes: &[(CallIndex, ValueId)], intervals: &Intervals) -> Self {
        let mut by_end: Vec<(u32, CallIndex)> =
            writes.iter().map(|&(write, _)| (intervals.end(write), write)).collect();
        by_end.retain(|&(end, _)| end != NEVER);
        by_end.sort_unstable();
        let mut last: Option<CallIndex> = None;
        for (_, write) in &mut by_end {
            let is_later = last.is_none_or(|l| intervals.start(*write) > intervals.start(l));
            let latest = if is_later { *write } else { last.unwrap_or(*write) };
            (last, *write) = (Some(latest), latest);
        }
        Overwriters { ended: by_end }
    }

    /// Returns the write that started last among those that ended before a read.
    pub(super) fn of(&self, read: CallIndex, intervals: &Intervals) -> Option<CallIndex> {
        let start = intervals.start(read);
        let before = self.ended.partition_point(|&(end, _)| end < start);
        before.checked_sub(1).map(|at| self.ended[at].1)
    }
}

/// Numbers of the writes of one value, by end.
struct Same {
    writes: Vec<usize>,
    starts: Least,
}

/// The possible source of a read.
pub(super) enum Source {
    /// The write with this number.
    Write(usize),
    Initial,
    Nothing,
    Several,
}

impl<'a> Sources<'a> {
    pub(super) fn new(writes: &'a [(CallIndex, ValueId)], intervals: &'a Intervals) -> Self {
        let mut by_end: Vec<usize> = (0..writes.len()).collect();
        by_end.sort_unstable_by_key(|&i| (intervals.end(writes[i].0), i));
        let mut grouped: FxHashMap<ValueId, Vec<usize>> = FxHashMap::default();
        for i in by_end {
            grouped.entry(writes[i].1).or_default().push(i);
        }
        let same = |same: Vec<usize>| {
            let starts: Vec<u32> = same.iter().map(|&i| intervals.start(writes[i].0)).collect();
            Same { writes: same, starts: Least::new(&starts) }
        };
        let of_value = grouped.into_iter().map(|(value, writes)| (value, same(writes))).collect();
        let overwriters = Overwriters::new(writes, intervals);
        Sources { intervals, writes, of_value, overwriters }
    }

    /// Returns the possible source of a read of a value, initial or not.
    pub(super) fn of(&self, read: CallIndex, value: ValueId, is_initial: bool) -> Source {
        let overwriter = self.overwriters.of(read, self.intervals);
        let is_initial = is_initial && overwriter.is_none();
        let Some(same) = self.of_value.get(&value) else {
            return if is_initial { Source::Initial } else { Source::Nothing };
        };
        let overwritten = overwriter.map_or(0, |by| {
            let start = self.intervals.start(by);
            same.writes.partition_point(|&i| self.intervals.end(self.writes[i].0) < start)
        });
        let (count, end) = (same.writes.len(), self.intervals.end(read));
        let first = same.starts.first_below(overwritten, count, end);
        let second = first.and_then(|at| same.starts.first_below(at + 1, count, end));
        match (first, second, is_initial) {
            (Some(at), None, false) => Source::Write(same.writes[at]),
            (None, None, true) => Source::Initial,
            (None, None, false) => Source::Nothing,
            _ => Source::Several,
        }
    }

    /// Adds the calls that prove that the reads among `core` have no other source: all writes of
    /// their values, and the writes that overwrote the earlier ones.
    pub(super) fn closed(&self, calls: &Calls<'_>, core: Vec<CallIndex>) -> Vec<CallIndex> {
        let mut closed = core.clone();
        let is_write = |place: &CallIndex| self.writes.binary_search_by_key(place, |w| w.0).is_ok();
        for read in core.into_iter().filter(|place| !is_write(place)) {
            let same = calls.returns(read).and_then(|value| self.of_value.get(&value));
            closed
                .extend(same.into_iter().flat_map(|same| &same.writes).map(|&i| self.writes[i].0));
            closed.extend(self.overwriters.of(read, self.intervals));
        }
        closed
    }
}
