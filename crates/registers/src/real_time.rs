//! Linearizability of plain reads and writes with times, by zones.
//!
//! A write and the reads that read from it are a *cluster*. In a linearization, no other operation
//! of the same key is between the operations of a cluster, so the clusters of a key are ordered as
//! a whole. With `f` the first return and `s` the last start in a cluster, A must come before B if
//! and only if `f(A) < s(B)`: some operation of A returned before one of B started.
//!
//! ```text
//!   forward zone, f < s:    w ├──┤                backward zone, s <= f:   w ├────────┤
//!                                   r ├──┤                                 r    ├──┤
//!                            [f ──── s]  occupied                               [s─f]  one moment of it
//! ```
//!
//! A history is linearizable if and only if no two clusters of a key must come before each other,
//! and no read returned before its write started (Gibbons and Korach, Testing shared memories,
//! 1997). Forward zones are then disjoint, and no backward zone lies inside a forward zone. Every
//! operation gets a point in time: in a forward zone the write at `f`, each read at its start or at
//! `f`, whichever is later; in a backward zone all operations at one point that is in no forward
//! zone. Sorted by their points, the operations of all keys together form the linearization, since
//! real time only orders operations whose points are ordered.
//!
//! A write of unknown status without readers does not count, so it is dropped at once. If it has
//! readers, it counts and never returned.
//!
//! # Cost
//! `n log n`. With repeated values each choice of sources costs that
//! ([`crate::repeated_values::choices`]).

use std::time::Instant;

use consistory_history::{Action, History, Interval, OpId, Status};
use consistory_verdict::{Budget, Certificate, Edge, Stopped};

use crate::causal::violation;
use crate::reads_from::{self, Source};
use crate::repeated_values::choices;
use crate::repeated_values::replay::Memory;
use crate::{Judgement, Options, Ruling, thin_air_read};

/// Operations processed between two checks of the clock.
const OPS_PER_LOOK: usize = 1 << 16;

/// Checks whether this decider accepts a history: reads and writes without final values, in which
/// no operation starts exactly when the previous one of its session returns.
pub(crate) fn takes(history: &History) -> bool {
    let is_plain = |op| matches!(history.action(op), Action::Read { .. } | Action::Write { .. });
    let meet = |session| {
        let certain = history.session_ops(session).filter(|&op| history.is_certain(op));
        let mut end = None;
        certain.filter_map(|op| history.time(op)).any(|time| {
            let meets = end == Some(time.start);
            end = time.end;
            meets
        })
    };
    history.ops().all(is_plain) && history.finals().is_empty() && !history.sessions().any(meet)
}

/// Decides whether a history of timed reads and writes is linearizable.
pub fn decide_linearizable(history: &History, options: &Options) -> Ruling {
    let started = Instant::now();
    let budget = &options.budget.renewed();
    let judgement = reads_from::candidates(history, budget).and_then(|candidates| {
        if let Some(read) = candidates.thin_air {
            Ok(thin_air_read(read))
        } else if candidates.ambiguous.is_empty() {
            judge(history, &candidates.source, &[], budget)
        } else {
            choices::search(history, &candidates, &[Memory::Single], budget, |source, wr| {
                judge(history, source, wr, budget)
            })
        }
    });
    Ruling::own(judgement.unwrap_or_else(Judgement::Undecided), started.elapsed())
}

/// Decides a partial or complete choice of sources. For a partial one, only a violation is
/// meaningful.
fn judge(
    history: &History,
    source: &[Source],
    wr: &[(OpId, OpId)],
    budget: &Budget,
) -> Result<Judgement, Stopped> {
    let zones = Zones::new(history, source, budget)?;
    if let Some(cycle) = zones.shortest_conflict(budget)? {
        return Ok(violation("CyclicRT", cycle, None));
    }
    let order = zones.linearization(budget)?;
    Ok(Judgement::Consistent(Certificate::Order { order, wr: wr.to_vec() }))
}

/// A write with the reads that read from it.
#[derive(Clone, Copy)]
struct Cluster {
    write: OpId,
    /// First return of the cluster, with its operation.
    first: (i64, OpId),
    /// Last start of the cluster, with its operation.
    last: (i64, OpId),
}

impl Cluster {
    /// Checks whether the cluster occupies the time between its first return and its last start.
    fn is_forward(&self) -> bool {
        self.first.0 < self.last.0
    }

    /// Checks whether one of its operations returned before one of another cluster started.
    fn precedes(&self, other: &Cluster) -> bool {
        self.first.0 < other.last.0
    }
}

/// The clusters of all keys.
struct Zones<'h> {
    history: &'h History,
    source: &'h [Source],
    /// Cluster of each write, initial ones included; none for writes that do not count.
    clusters: Vec<Option<Cluster>>,
    /// For each key, the writes that count and have forward zones, by their first return.
    forward: Vec<Vec<Cluster>>,
    /// For each key, the other writes that count.
    backward: Vec<Vec<Cluster>>,
    /// A read that returned before its write started, and the write.
    early: Option<(OpId, OpId)>,
}

impl<'h> Zones<'h> {
    fn new(history: &'h History, source: &'h [Source], budget: &Budget) -> Result<Self, Stopped> {
        let ids = history.len() + history.key_count();
        budget.reserve((ids * 2 * size_of::<Option<Cluster>>()) as u64)?;
        let mut clusters: Vec<Option<Cluster>> = vec![None; ids];
        for key in history.keys() {
            let write = history.initial_write(key);
            let (first, last) = ((i64::MIN, write), (i64::MIN, write));
            clusters[write.index()] = Some(Cluster { write, first, last });
        }
        let alone = |write: OpId| {
            let (start, end) = interval(history, write);
            Cluster { write, first: (end, write), last: (start, write) }
        };
        for write in history.ops().filter(|&op| history.is_certain(op)) {
            if history.writes(write).is_some() {
                clusters[write.index()] = Some(alone(write));
            }
        }
        let mut early = None;
        for read in history.ops() {
            if read.index() % OPS_PER_LOOK == 0 {
                budget.check()?;
            }
            let Some(write) = source[read.index()].get() else { continue };
            let (start, end) = interval(history, read);
            let cluster = clusters[write.index()].get_or_insert_with(|| alone(write));
            if !history.is_initial(write) && end < interval(history, write).0 {
                early = Some((read, write));
            }
            cluster.first = cluster.first.min((end, read));
            cluster.last = cluster.last.max((start, read));
        }
        let mut forward = vec![Vec::new(); history.key_count()];
        let mut backward = vec![Vec::new(); history.key_count()];
        for cluster in clusters.iter().flatten() {
            let key = history.key_of(cluster.write).expect("a write has a key").index();
            match cluster.is_forward() {
                true => forward[key].push(*cluster),
                // An initial write without reads precedes everything anyway.
                false if history.is_initial(cluster.write) => {}
                false => backward[key].push(*cluster),
            }
        }
        for zones in &mut forward {
            budget.check()?;
            zones.sort_unstable_by_key(|zone| zone.first.0);
        }
        Ok(Zones { history, source, clusters, forward, backward, early })
    }

    /// Finds a short cycle, if there is one.
    fn shortest_conflict(&self, budget: &Budget) -> Result<Option<Vec<Edge>>, Stopped> {
        if let Some((read, write)) = self.early {
            let cycle = vec![Edge::given(read, write, "rt"), Edge::given(write, read, "wr")];
            return Ok(Some(cycle));
        }
        let mut best: Option<(Cluster, Cluster)> = None;
        let cost = |(a, b): &(Cluster, Cluster)| {
            let (there, back) = (link(self.history, a, b), link(self.history, b, a));
            let ops = [there.0, there.1, back.0, back.1];
            let reads = ops.iter().filter(|&&op| op != a.write && op != b.write).count();
            (reads, a.last.0.max(b.last.0).saturating_sub(a.first.0.min(b.first.0)))
        };
        let mut consider = |a: Cluster, b: Cluster| {
            if best.as_ref().is_none_or(|best| cost(&(a, b)) < cost(best)) {
                best = Some((a, b));
            }
        };
        for (forward, backward) in self.forward.iter().zip(&self.backward) {
            budget.check()?;
            // Two overlapping forward zones: the one that extends furthest so far, and the next.
            let mut furthest: Option<Cluster> = None;
            for &zone in forward {
                if let Some(before) = furthest.filter(|before| zone.precedes(before)) {
                    consider(before, zone);
                }
                if furthest.is_none_or(|before| before.last.0 < zone.last.0) {
                    furthest = Some(zone);
                }
            }
            for &zone in backward {
                let before = forward.partition_point(|other| other.precedes(&zone));
                if let Some(&around) = forward[..before].last()
                    && zone.precedes(&around)
                {
                    consider(around, zone);
                }
            }
        }
        Ok(best.map(|(a, b)| cycle(self.history, &a, &b)))
    }

    /// Sorts the operations by their points in time. There must be no conflict.
    fn linearization(&self, budget: &Budget) -> Result<Vec<OpId>, Stopped> {
        let history = self.history;
        // The time that each cluster occupies.
        let mut occupied: Vec<(i64, i64)> = vec![(0, 0); self.clusters.len()];
        for (forward, backward) in self.forward.iter().zip(&self.backward) {
            for zone in forward {
                occupied[zone.write.index()] = (zone.first.0, zone.last.0);
            }
            for zone in backward {
                let before = forward.partition_point(|other| other.precedes(zone));
                let end = forward[..before].last().map_or(i64::MIN, |around| around.last.0);
                let moment = zone.last.0.max(end);
                occupied[zone.write.index()] = (moment, moment);
            }
        }
        budget.check()?;
        budget.reserve((self.clusters.len() * size_of::<(i64, Turn, OpId, OpId)>()) as u64)?;
        let mut moments: Vec<(i64, Turn, OpId, OpId)> = Vec::with_capacity(history.len());
        for op in history.ops() {
            let write = match self.source[op.index()].get() {
                Some(write) => write,
                None if self.clusters[op.index()].is_some() => op,
                None => continue,
            };
            let (from, until) = occupied[write.index()];
            let moment = if op == write { from } else { from.max(interval(history, op).0) };
            let turn = match (from == until, moment == until) {
                (true, _) => Turn::Moment,
                (false, true) => Turn::Ends,
                (false, false) => Turn::Starts,
            };
            // A write comes before its reads.
            let rank = if op == write { OpId(0) } else { OpId(op.0 + 1) };
            moments.push((moment, turn, write, rank));
        }
        moments.sort_unstable();
        let op = |(_, _, write, rank): (i64, Turn, OpId, OpId)| match rank {
            OpId(0) => write,
            OpId(after) => OpId(after - 1),
        };
        Ok(moments.into_iter().map(op).collect())
    }
}

/// Rank of operations of one key that have the same point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// Operations whose zone ends at the point.
    Ends,
    /// Operations whose zone is the point.
    Moment,
    /// Operations whose zone continues.
    Starts,
}

/// Returns the start and the return of an operation; an operation of unknown status has not
/// returned.
fn interval(history: &History, op: OpId) -> (i64, i64) {
    let Some(Interval { start, end }) = history.time(op) else {
        unreachable!("a model of real time applies to operations with times only")
    };
    let end = end.filter(|_| history.status(op) != Status::Unknown);
    (start, end.unwrap_or(i64::MAX))
}

/// Chooses operations of two clusters such that the first returned before the second started,
/// preferably the writes. The first cluster must precede the second.
fn link(history: &History, a: &Cluster, b: &Cluster) -> (OpId, OpId) {
    if history.is_initial(a.write) {
        return (a.write, b.write);
    }
    let returned_before = |&(first, second): &(OpId, OpId)| {
        !history.is_initial(second) && interval(history, first).1 < interval(history, second).0
    };
    let choices = [(a.write, b.write), (a.first.1, b.write), (a.write, b.last.1)];
    choices.into_iter().find(returned_before).unwrap_or((a.first.1, b.last.1))
}

/// Builds a cycle from two clusters each of which must precede the other.
fn cycle(history: &History, a: &Cluster, b: &Cluster) -> Vec<Edge> {
    // From the write of one cluster to an operation of the other.
    let reach = |a: &Cluster, (first, second): (OpId, OpId)| {
        let seen = (first != a.write).then(|| Edge::given(a.write, first, "wr"));
        seen.into_iter().chain([Edge::given(first, second, "rt")]).collect::<Vec<Edge>>()
    };
    // From the write of one cluster to the write of the other.
    let before = |a: &Cluster, b: &Cluster| {
        let link = link(history, a, b);
        let mut path = reach(a, link);
        if link.1 == b.write {
            return path;
        }
        path.push(Edge::given(b.write, link.1, "wr"));
        vec![Edge::derived(a.write, b.write, "cf", path)]
    };
    // A stale read: it starts after another operation has observed the other cluster's write.
    let stale = |a: &Cluster, b: &Cluster| {
        let link = link(history, b, a);
        let mut because = vec![Edge::given(a.write, link.1, "wr")];
        because.extend(before(a, b));
        let mut path = reach(b, link);
        path.push(Edge::derived(link.1, b.write, "rw", because));
        path
    };
    match (link(history, b, a).1 == a.write, link(history, a, b).1 == b.write) {
        (true, true) => {
            let mut path = before(a, b);
            path.extend(before(b, a));
            path
        }
        (true, false) => stale(b, a),
        (false, _) => stale(a, b),
    }
}
