//! Registers: Gibbons and Korach's zones.
//!
//! A write and the reads of its value are a *cluster*. With `f` the first end and `s` the last
//! start of a cluster's calls, its *zone* lies between the two:
//!
//! ```text
//!   f < s, forward:   ├ w(1) ┤f ═══ the value is in the register ═══ s├ r => 1 ┤
//!   s < f, backward:  ├───── w(2) ──s═══f────┤    all of it fits at any one point of s..f
//!                            r => 2 ├───┤
//! ```
//!
//! A history is linearizable if and only if no read ends before its write starts, no two forward
//! zones overlap, and no backward zone lies inside a forward one.
//!
//! *Only if*: throughout a forward zone its value is in the register, since some call of the
//! cluster has its point before and another behind, and between the two nothing else is written.
//! *If*: take the forward zones in order of time, and put each backward zone at its start or, if
//! that lies in a forward zone, right behind that zone's end, which is still in the backward one.
//! Of two clusters so ordered, every start in the first is before every end in the second, so no
//! call of the second is before one of the first; in a cluster the write comes first and the reads
//! follow by start.
//!
//! The initial value is a write that ended before everything. A pending write that is read has no
//! end; one that is not read, and a pending read, can be left out. Cost: O(n log n) for the sort.

use consistory_history::{Value, ValueId};
use consistory_spec::Object;
use rustc_hash::FxHashMap;

use super::intervals::{Intervals, NEVER};
use super::{Decision, Pattern, Unsuitable, violation};
use crate::calls::{Calls, Place};

/// A write and the reads of its value.
struct Cluster {
    /// `None` for the initial value.
    write: Option<Place>,
    reads: Vec<Place>,
    /// The call that ends first, and its end; before everything for the initial value.
    first_end: (i64, Option<Place>),
    /// The call that starts last, and its start.
    last_start: (i64, Option<Place>),
}

impl Cluster {
    fn is_forward(&self) -> bool {
        self.first_end.0 < self.last_start.0
    }

    /// Gives the few calls that have the same zone.
    fn core(&self) -> impl Iterator<Item = Place> + use<> {
        [self.write, self.first_end.1, self.last_start.1].into_iter().flatten()
    }
}

pub(super) fn decide(
    calls: &Calls<'_>,
    object: &dyn Object,
    initial: &Value,
    intervals: &Intervals,
) -> Decision {
    let start_of_all =
        Cluster { write: None, reads: Vec::new(), first_end: (-1, None), last_start: (-1, None) };
    let mut clusters = vec![start_of_all];
    let mut of_value: FxHashMap<ValueId, usize> = FxHashMap::default();
    let mut reads: Vec<(Place, ValueId)> = Vec::new();
    let unknown = |method: &str| Unsuitable::Method { method: method.to_owned() };
    for place in calls.places() {
        let args = calls.args(place);
        let name = calls.method(place);
        let method = object.resolve(name, args.len()).ok().flatten();
        match (method.map(|m| &*m.name), args) {
            (Some("write"), &[value]) => {
                if calls.value(value) == initial || of_value.contains_key(&value) {
                    let value = calls.value(value).clone();
                    return Err(Unsuitable::NotDifferentiated { value });
                }
                of_value.insert(value, clusters.len());
                clusters.push(Cluster {
                    write: Some(place),
                    reads: Vec::new(),
                    first_end: (rank(intervals.end(place)), Some(place)),
                    last_start: (rank(intervals.start(place)), Some(place)),
                });
            }
            (Some("read"), []) => match calls.returns(place) {
                _ if calls.get(place).is_pending => {}
                Some(value) => reads.push((place, value)),
                None => return Err(Unsuitable::Return { method: name.to_owned() }),
            },
            _ => return Err(unknown(name)),
        }
    }
    for (place, value) in reads {
        let found = match of_value.get(&value) {
            Some(&cluster) => cluster,
            None if calls.value(value) == initial => 0,
            None => return violation(Pattern::ThinAir, [place]),
        };
        let cluster = &mut clusters[found];
        let (start, end) = (rank(intervals.start(place)), rank(intervals.end(place)));
        if let Some(write) = cluster.write
            && end < rank(intervals.start(write))
        {
            return violation(Pattern::BeforeItsInsertion, [write, place]);
        }
        cluster.reads.push(place);
        if end < cluster.first_end.0 {
            cluster.first_end = (end, Some(place));
        }
        if start > cluster.last_start.0 {
            cluster.last_start = (start, Some(place));
        }
    }
    // A pending write that nothing reads took no effect.
    let is_idle =
        |c: &Cluster| c.reads.is_empty() && c.write.is_some_and(|w| calls.get(w).is_pending);
    clusters.retain(|cluster| !is_idle(cluster));
    arrange(clusters, intervals)
}

/// Orders the clusters, or finds two that can't be.
fn arrange(clusters: Vec<Cluster>, intervals: &Intervals) -> Decision {
    let mut forward: Vec<&Cluster> = clusters.iter().filter(|c| c.is_forward()).collect();
    forward.sort_unstable_by_key(|c| c.first_end.0);
    for pair in forward.windows(2) {
        if pair[1].first_end.0 < pair[0].last_start.0 {
            return violation(Pattern::TwoValuesAtOnce, pair[0].core().chain(pair[1].core()));
        }
    }
    // Where each cluster goes: a rank, and behind a forward zone that ends there.
    let mut keyed: Vec<((i64, bool), &Cluster)> = Vec::with_capacity(clusters.len());
    for cluster in &clusters {
        if cluster.is_forward() {
            keyed.push(((cluster.first_end.0, false), cluster));
            continue;
        }
        let (low, high) = (cluster.last_start.0, cluster.first_end.0);
        let before = forward.partition_point(|c| c.first_end.0 < low);
        let around = before.checked_sub(1).map(|i| forward[i]).filter(|c| low < c.last_start.0);
        match around {
            Some(around) if high < around.last_start.0 => {
                return violation(Pattern::Interrupted, around.core().chain(cluster.core()));
            }
            Some(around) => keyed.push(((around.last_start.0, true), cluster)),
            None => keyed.push(((low, false), cluster)),
        }
    }
    keyed.sort_by_key(|&(key, _)| key);
    let mut order = Vec::new();
    for (_, cluster) in keyed {
        order.extend(cluster.write);
        let from = order.len();
        order.extend(&cluster.reads);
        order[from..].sort_unstable_by_key(|&read| intervals.start(read));
    }
    Ok(Ok(order))
}

/// A rank that leaves room before the first.
fn rank(rank: u32) -> i64 {
    if rank == NEVER { i64::MAX } else { i64::from(rank) }
}
