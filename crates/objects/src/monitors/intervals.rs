//! Times replaced by ranks: every start and end of a history has a distinct position on one line.
//!
//! Starts precede ends with the same time, since calls that meet overlap. Calls of one session that
//! meet are ordered nevertheless. Ranks can express this if no other call ends at that time;
//! otherwise `hb` is not an interval order, and the history is left to the general search.

use consistory_history::SessionId;
use rustc_hash::FxHashMap;

use super::Unsuitable;
use crate::calls::{CallIndex, Calls};

/// Rank of an event that never happens, after all other ranks.
pub(super) const NEVER: u32 = u32::MAX;

/// The ranks of the starts and ends of a history's calls.
pub(super) struct Intervals {
    start: Vec<u32>,
    end: Vec<u32>,
    /// Number of ranks.
    pub(super) count: u32,
}

impl Intervals {
    pub(super) fn new(calls: &Calls<'_>) -> Result<Self, Unsuitable> {
        if !calls.is_timed() && !calls.is_empty() {
            return Err(Unsuitable::NoTimes);
        }
        let operations = calls.operations();
        if operations.len() > (NEVER / 4) as usize {
            return Err(Unsuitable::TooLarge);
        }
        let mut ends: Vec<CallIndex> =
            calls.places().filter(|&place| !calls.get(place).is_pending).collect();
        ends.sort_unstable_by_key(|&place| (calls.get(place).end, place));
        let mut ranks = Intervals {
            start: vec![NEVER; operations.len()],
            end: vec![NEVER; operations.len()],
            count: 0,
        };
        let mut late = Vec::new();
        let mut ended_in: FxHashMap<SessionId, CallIndex> = FxHashMap::default();
        let (mut s, mut e) = (0, 0);
        while s < operations.len() || e < ends.len() {
            let next_start = operations.get(s).map(|op| op.start);
            let next_end = ends.get(e).map(|&place| calls.get(place).end);
            let now = next_start.into_iter().chain(next_end).min().unwrap_or_default();
            let starting = operations[s..].partition_point(|op| op.start <= now);
            let ending = ends[e..].partition_point(|&place| calls.get(place).end <= now);
            let ended = &ends[e..e + ending];
            late.clear();
            ended_in.clear();
            // Starts and ends rarely have the same time.
            if starting > 0 && ending > 0 {
                for &place in ended {
                    let first = ended_in.entry(calls.get(place).session).or_insert(place);
                    *first = place.min(*first);
                }
            }
            for place in (s..s + starting).map(CallIndex::new) {
                let session = calls.get(place).session;
                if !ended_in.is_empty() && ended_in.get(&session).is_some_and(|&p| p < place) {
                    late.push(place);
                } else {
                    ranks.start[place.index()] = ranks.next();
                }
            }
            if !late.is_empty() && (ended.len() > 1 || late.len() > 1) {
                return Err(Unsuitable::CoarseClock);
            }
            for &place in ended {
                ranks.end[place.index()] = ranks.next();
            }
            for &place in &late {
                ranks.start[place.index()] = ranks.next();
            }
            (s, e) = (s + starting, e + ending);
        }
        Ok(ranks)
    }

    fn next(&mut self) -> u32 {
        self.count += 1;
        self.count - 1
    }

    #[inline]
    pub(super) fn start(&self, place: CallIndex) -> u32 {
        self.start[place.index()]
    }

    /// Returns the rank of an end; [`NEVER`] for a pending call.
    #[inline]
    pub(super) fn end(&self, place: CallIndex) -> u32 {
        self.end[place.index()]
    }
}
