//! The calls of a register, judged online by value.
//!
//! A write and the reads of its value form a *cluster*. As long as no value is written while an
//! equal one may still be read, a return determines its cluster. Two times of a cluster matter: its
//! first end `f` and its last start `s`. A register's calls are linearizable if and only if every
//! value read was written, no read ends before its write starts, and no two clusters `u` and `v`
//! have `f(u) < s(v)` and `f(v) < s(u)`, that is, each has a call that ends before one of the other
//! starts (Gibbons and Korach, [`crate::monitors`]).
//!
//! When a call returns, the times of its cluster change, and it is compared with the others. Only
//! one change can be a violation: a read that starts at `a` and returns a value of which a call has
//! already returned. It is a violation if another cluster has `f(v) < a` and `s(v) > f(u)`.
//! Clusters get their `f` in the order of time, so those with `f(v) < a` form a prefix, and the
//! greatest `s` of every prefix is stored.
//!
//! *Forgetting.* Let `T` be the start of the oldest running read. A cluster `u` is over if another
//! has `f(v) < T` and `s(v) > f(u)`: a read of it that starts from now on is a violation, like a
//! read of a value that was never written. Among the clusters that are over, only the two greatest
//! `s` with `f < T` can matter.
//!
//! *Writes that never return.* Such a write that was never read can be left out of any
//! linearization, so it costs one entry and adds no choice until it is read. If there are very
//! many, the first ones are given up; from then on a read of an unknown value is no longer reported
//! as a violation. All other verdicts are unaffected.
//!
//! Cost: one bisection per call, and for a read the number of calls that returned while it ran. If
//! this engine no longer applies, its state is converted to a few calls with the same clusters, and
//! these to configurations.

use std::collections::VecDeque;

use consistory_history::Value;
use consistory_spec::Family;
use rustc_hash::{FxHashMap, FxHashSet};

use super::engine::{
    Access, Certainty, Completed, Ending, Engine, EngineSize, GivenUpCalls, Incoming, PastCall,
    Rest, Taken,
};
use super::{INDETERMINATE_KEPT_IN_FALLBACK, OnlineError, RunningId};

/// Number of indeterminate writes kept.
const MAX_UNREAD_WRITES: usize = 1 << 16;
/// Number of clusters above which some are forgotten.
const CLUSTERS_KEPT: usize = 32;

/// A time before all others.
const ALWAYS: i64 = i64::MIN;

/// Returns the effect of a call of an object of a family, if it reads or writes a register.
fn access(family: &Family, call: &Incoming<'_>) -> Option<Access> {
    match (family, call.method, call.args) {
        (Family::Register(_), "read", []) | (Family::Store(_), "get", [_]) => Some(Access::Read),
        (Family::Register(_), "write", [value]) | (Family::Store(_), "put", [_, value]) => {
            Some(Access::Write(value.clone()))
        }
        _ => None,
    }
}

/// An unread write that has not returned, or a cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteState {
    Open { writer: RunningId, start: i64, is_lost: bool },
    Returned(usize),
}

/// A cluster with a completed call.
struct Cluster {
    value: Value,
    /// The write, unless the value is the initial one.
    write: Option<Write>,
    first_end: i64,
    last_start: i64,
}

#[derive(Clone, Copy)]
struct Write {
    id: RunningId,
    start: i64,
    end: Ending,
}

/// The greatest last start of some clusters, its cluster, and the greatest of the others.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Latest {
    start: i64,
    of: usize,
    next: i64,
}

impl Latest {
    const NONE: Latest = Latest { start: ALWAYS, of: usize::MAX, next: ALWAYS };

    fn with(self, start: i64, of: usize) -> Self {
        match start > self.start {
            true => Latest { start, of, next: self.start },
            false => Latest { next: self.next.max(start), ..self },
        }
    }

    /// Returns the greatest last start of all clusters but one.
    fn except(self, cluster: usize) -> i64 {
        if self.of == cluster { self.next } else { self.start }
    }
}

/// The calls of a register.
pub(super) struct Clusters {
    /// The cluster of each value that may be read.
    known: FxHashMap<Value, WriteState>,
    /// Clusters by first end.
    returned: Vec<Cluster>,
    /// Latest cluster of each prefix of `returned`.
    latest: Vec<Latest>,
    running: FxHashMap<RunningId, (i64, Access)>,
    /// The indeterminate writes by time; some may have been read since.
    lost: VecDeque<(Value, RunningId)>,
    /// Number of unread writes among `lost`.
    unread: usize,
    given_up: u64,
    clock: i64,
    /// Number of clusters when some were last forgotten.
    before: usize,
    /// Whether a value was read whose write failed.
    is_refuted: bool,
    family: Family,
    /// The calls given up since the last query.
    unreported: GivenUpCalls,
}

impl Clusters {
    /// Starts a register, or a key of a store, with an initial value; `None` for other families.
    pub(super) fn of(family: &Family) -> Option<Self> {
        match family {
            Family::Register(initial) | Family::Store(initial) => {
                Some(Clusters::new(family.clone(), initial.clone()))
            }
            _ => None,
        }
    }

    fn new(family: Family, initial: Value) -> Self {
        let mut clusters = Clusters {
            known: FxHashMap::default(),
            returned: Vec::new(),
            latest: Vec::new(),
            running: FxHashMap::default(),
            lost: VecDeque::new(),
            unread: 0,
            given_up: 0,
            clock: 0,
            before: 0,
            is_refuted: false,
            family,
            unreported: GivenUpCalls::default(),
        };
        clusters.push(Cluster {
            value: initial,
            write: None,
            first_end: ALWAYS,
            last_start: ALWAYS,
        });
        clusters
    }

    /// Starts with a written value and no other past.
    pub(super) fn holding(family: &Family, value: Value) -> Self {
        let mut clusters = Clusters::new(family.clone(), value);
        let write = Write { id: RunningId(u64::MAX), start: 1, end: Ending::At(2) };
        let cluster = &mut clusters.returned[0];
        (cluster.write, cluster.first_end, cluster.last_start) = (Some(write), 2, 1);
        clusters.clock = 2;
        clusters.update(0);
        clusters
    }

    /// Returns the value, if no call is running or lost and only one value is possible.
    fn held(&self) -> Option<&Value> {
        if !self.running.is_empty() || self.unread > 0 || self.given_up > 0 || self.is_refuted {
            return None;
        }
        let now = self.clock + 1;
        let mut held = (0..self.returned.len()).filter(|&at| !self.is_over(at, now));
        held.next().filter(|_| held.next().is_none()).map(|at| &self.returned[at].value)
    }

    fn tick(&mut self) -> i64 {
        self.clock += 1;
        self.clock
    }

    /// Records that a write returned or became indeterminate.
    fn write_ends(&mut self, id: RunningId, value: Value, end: Ending) {
        match self.known.get(&value).copied() {
            Some(WriteState::Open { writer, start, .. }) if writer == id => match end {
                Ending::At(now) => {
                    let write = Some(Write { id, start, end });
                    self.push(Cluster { value, write, first_end: now, last_start: start });
                }
                _ => {
                    let open = WriteState::Open { writer, start, is_lost: true };
                    self.known.insert(value.clone(), open);
                    self.lost.push_back((value, id));
                    self.unread += 1;
                }
            },
            Some(WriteState::Returned(at)) => {
                if let Some(write) = &mut self.returned[at].write
                    && write.id == id
                {
                    write.end = end;
                }
            }
            // The cluster is over, and its value was written again.
            _ => {}
        }
    }

    /// Records that a value was read by a call with a given start. Returns whether that is allowed.
    fn read(&mut self, value: &Value, start: i64) -> bool {
        match self.known.get(value).copied() {
            None => false,
            Some(WriteState::Open { writer: id, start: written, is_lost }) => {
                self.unread -= usize::from(is_lost);
                let end = if is_lost { Ending::Indeterminate } else { Ending::Running };
                let write = Some(Write { id, start: written, end });
                let (first_end, last_start) = (self.clock, written.max(start));
                self.push(Cluster { value: value.clone(), write, first_end, last_start });
                true
            }
            Some(WriteState::Returned(at)) => {
                let is_fine = !self.is_over(at, start);
                if is_fine && start > self.returned[at].last_start {
                    self.returned[at].last_start = start;
                    self.update(at);
                }
                is_fine
            }
        }
    }

    /// Checks whether a read that starts at a time makes a cluster wrong.
    fn is_over(&self, cluster: usize, start: i64) -> bool {
        let before = self.returned.partition_point(|v| v.first_end < start);
        let latest = before.checked_sub(1).map_or(Latest::NONE, |last| self.latest[last]);
        start > self.returned[cluster].last_start
            && latest.except(cluster) > self.returned[cluster].first_end
    }

    fn push(&mut self, cluster: Cluster) {
        let at = self.returned.len();
        self.known.insert(cluster.value.clone(), WriteState::Returned(at));
        let latest = self.latest.last().copied().unwrap_or(Latest::NONE);
        self.latest.push(latest.with(cluster.last_start, at));
        self.returned.push(cluster);
    }

    /// Updates the prefix maxima from a cluster on.
    fn update(&mut self, from: usize) {
        let mut latest = from.checked_sub(1).map_or(Latest::NONE, |at| self.latest[at]);
        for at in from..self.returned.len() {
            latest = latest.with(self.returned[at].last_start, at);
            if self.latest[at] == latest {
                return;
            }
            self.latest[at] = latest;
        }
    }

    /// Returns the start of the oldest running read.
    fn oldest_read(&self) -> i64 {
        let reads = self.running.values().filter(|(_, access)| *access == Access::Read);
        reads.map(|&(start, _)| start).min().unwrap_or(i64::MAX)
    }

    /// Forgets the clusters that are over, except the two latest.
    fn forget(&mut self) {
        let oldest = self.oldest_read();
        let before = self.returned.partition_point(|cluster| cluster.first_end < oldest);
        let latest = before.checked_sub(1).map_or(Latest::NONE, |last| self.latest[last]);
        let is_second = |at: usize| {
            at < before && at != latest.of && self.returned[at].last_start == latest.next
        };
        let stays: Vec<bool> = (0..self.returned.len())
            .map(|at| at == latest.of || is_second(at) || !self.is_over(at, oldest))
            .collect();
        self.latest.clear();
        for (at, cluster) in std::mem::take(&mut self.returned).into_iter().enumerate() {
            let is_known = self.known.get(&cluster.value) == Some(&WriteState::Returned(at));
            if is_known && !stays[at] {
                self.known.remove(&cluster.value);
            } else if is_known {
                self.push(cluster);
            } else if stays[at] {
                // Its value was written again.
                let again = self.known.get(&cluster.value).copied();
                let value = cluster.value.clone();
                self.push(cluster);
                self.known.extend(again.map(|again| (value, again)));
            }
        }
        self.before = self.returned.len();
    }

    /// Lists a few values that a read with a given start could return.
    fn possible(&self, start: i64) -> Vec<Value> {
        let clusters = (0..self.returned.len()).rev().filter(|&at| {
            self.known.get(&self.returned[at].value) == Some(&WriteState::Returned(at))
                && !self.is_over(at, start)
        });
        let clusters = clusters.map(|at| self.returned[at].value.clone());
        let is_open = |known: &WriteState| matches!(known, WriteState::Open { .. });
        let open = self.known.iter().filter(|(_, known)| is_open(known));
        let mut possible: Vec<Value> = clusters
            .chain(open.map(|(value, _)| value.clone()))
            .take(super::VALUES_LISTED)
            .collect();
        possible.sort();
        possible
    }

    /// Gives up the first unread indeterminate writes until there are few enough.
    fn keep_unread(&mut self, most: usize) {
        let known = &mut self.known;
        let is_unread = |known: &FxHashMap<Value, WriteState>, value: &Value, id: RunningId| matches!(known.get(value), Some(WriteState::Open { writer, .. }) if *writer == id);
        if self.lost.len() > 2 * self.unread + CLUSTERS_KEPT {
            self.lost.retain(|(value, id)| is_unread(known, value, *id));
        }
        while self.unread > most
            && let Some((value, id)) = self.lost.pop_front()
        {
            if is_unread(known, &value, id) {
                known.remove(&value);
                self.unread -= 1;
                self.given_up += 1;
                self.unreported.count += 1;
            }
        }
    }
}

impl Engine for Clusters {
    fn invoke(&mut self, id: RunningId, call: &Incoming<'_>) -> Taken {
        let Some(access) = access(&self.family, call) else { return Taken::No };
        let start = self.clock + 1;
        if let Access::Write(value) = &access {
            match self.known.get(value) {
                Some(WriteState::Open { .. }) => return Taken::No,
                Some(&WriteState::Returned(at)) if !self.is_over(at, self.oldest_read()) => {
                    return Taken::No;
                }
                _ => {}
            }
            let open = WriteState::Open { writer: id, start, is_lost: false };
            self.known.insert(value.clone(), open);
        }
        self.clock = start;
        self.running.insert(id, (start, access));
        Taken::Yes
    }

    fn complete(
        &mut self,
        id: RunningId,
        returned: Option<&Value>,
        _limit: usize,
    ) -> Result<Completed, OnlineError> {
        let (start, access) = self.running.remove(&id).ok_or(OnlineError::NotRunning)?;
        let now = self.tick();
        let is_fine = match (access, returned) {
            (Access::Write(value), _) => {
                self.write_ends(id, value, Ending::At(now));
                true
            }
            (Access::Read, None) => true,
            (Access::Read, Some(value)) => self.read(value, start),
        };
        let is_fine = is_fine && !std::mem::take(&mut self.is_refuted);
        if self.returned.len() > 2 * self.before + CLUSTERS_KEPT {
            self.forget();
        }
        if is_fine {
            return Ok(Completed::Explained);
        }
        let is_unknown = returned.is_some_and(|value| !self.known.contains_key(value));
        let certainty = match self.given_up > 0 && is_unknown {
            true => Certainty::Doubtful,
            false => Certainty::Certain,
        };
        let possible = self.possible(start);
        Ok(Completed::Unexplained { call: id, possible, configurations: 0, certainty })
    }

    fn fail(&mut self, id: RunningId) {
        let Some((_, Access::Write(value))) = self.running.remove(&id) else { return };
        match self.known.get(&value).copied() {
            Some(WriteState::Open { writer, .. }) if writer == id => _ = self.known.remove(&value),
            Some(WriteState::Returned(at)) => {
                self.is_refuted |= self.returned[at].write.is_some_and(|write| write.id == id);
            }
            _ => {}
        }
    }

    fn abandon(&mut self, id: RunningId) {
        if let Some((_, Access::Write(value))) = self.running.remove(&id) {
            self.write_ends(id, value, Ending::Indeterminate);
        }
        self.keep_unread(MAX_UNREAD_WRITES);
    }

    fn keep_indeterminate(&mut self, most: usize) {
        // An unread write affects no other call, so many are kept unless none may be.
        if most == 0 {
            self.keep_unread(0);
            // The values themselves may be forgotten after this.
            self.unreported.casts_doubt = true;
        }
    }

    fn take_given_up(&mut self) -> GivenUpCalls {
        std::mem::take(&mut self.unreported)
    }

    fn size(&self) -> EngineSize {
        EngineSize { configurations: 0, indeterminate: self.unread, kept: self.known.len() }
    }

    fn is_initial(&self) -> bool {
        self.running.is_empty()
            && self.unread == 0
            && self.returned.len() == 1
            && self.returned[0].write.is_none()
    }

    fn rest(&self, _key: &Value) -> Option<Rest> {
        self.held().cloned().map(Rest::Holds)
    }

    /// Converts each cluster to its write, a read that ends at its first end, and one that starts
    /// at its last start: these have the same clusters.
    fn calls(&mut self) -> Vec<PastCall> {
        self.keep_unread(INDETERMINATE_KEPT_IN_FALLBACK);
        self.unreported.casts_doubt |= self.given_up > 0;
        self.forget();
        let mut told: Vec<PastCall> = Vec::new();
        // Times are spaced so that one more fits between two of them.
        let later = |time: i64| 2 * time + 1;
        let kept = self.returned.iter().filter_map(|cluster| cluster.write);
        let kept: FxHashSet<RunningId> = kept.map(|write| write.id).collect();
        for (&id, (start, access)) in self.running.iter().filter(|(id, _)| !kept.contains(id)) {
            let mut start = 2 * start;
            if let Access::Write(value) = access {
                let known = self.known.get(value);
                if !matches!(known, Some(WriteState::Open { writer, .. }) if *writer == id) {
                    // The write was read and is over, so its read may as well come first.
                    start = 0;
                    let (access, end) = (Access::Read, Ending::At(1));
                    told.push(PastCall {
                        id: None,
                        access,
                        start,
                        end,
                        returns: Some(value.clone()),
                    });
                }
            }
            let (access, end) = (access.clone(), Ending::Running);
            told.push(PastCall { id: Some(id), access, start, end, returns: None });
        }
        for (value, known) in &self.known {
            if let &WriteState::Open { start, is_lost: true, .. } = known {
                let (access, start, end) =
                    (Access::Write(value.clone()), 2 * start, Ending::Indeterminate);
                told.push(PastCall { id: None, access, start, end, returns: None });
            }
        }
        for Cluster { value, write, first_end, last_start } in &self.returned {
            let read = |start: i64, end: i64| PastCall {
                id: None,
                access: Access::Read,
                start,
                end: Ending::At(end),
                returns: Some(value.clone()),
            };
            let (first, last) = (2 * first_end.max(&0), 2 * last_start.max(&0));
            let Some(Write { id, start, end }) = write else {
                if *last_start != ALWAYS {
                    told.push(read(last, later(*last_start)));
                }
                continue;
            };
            let (is_first, ending) = match end {
                Ending::At(end) => (end == first_end, Ending::At(2 * end)),
                end => (false, *end),
            };
            let running = Some(*id).filter(|_| ending == Ending::Running);
            let (access, written) = (Access::Write(value.clone()), 2 * start);
            told.push(PastCall { id: running, access, start: written, end: ending, returns: None });
            if last > written {
                told.push(read(last, first.max(later(*last_start))));
            }
            if !is_first && (last <= written || last > first) {
                told.push(read(later(*start), first));
            }
        }
        told
    }

    fn check_invariants(&self) {
        assert_eq!(self.returned.len(), self.latest.len());
        assert!(self.returned.is_sorted_by_key(|cluster| cluster.first_end));
        let mut latest = Latest::NONE;
        for (at, cluster) in self.returned.iter().enumerate() {
            latest = latest.with(cluster.last_start, at);
            assert!(latest == self.latest[at], "the latest starts are those of the first clusters");
        }
        let open = self
            .known
            .values()
            .filter(|known| matches!(known, WriteState::Open { is_lost: true, .. }));
        assert_eq!(open.count(), self.unread);
        for (value, known) in &self.known {
            if let WriteState::Returned(at) = known {
                assert_eq!(self.returned[*at].value, *value);
            }
        }
    }
}
