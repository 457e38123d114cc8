//! Forced edges, for the levels that need a search: `psi`, `pc`, `si` and `ser`.
//!
//! Let t3 read key x from t1, and let t2 be another writer of x:
//!
//! - *known*: if t3 knows t2, then t2 wrote the earlier version, `ww(t2, t1)`. For `psi` and `ser`,
//!   t3 knows its predecessors; for `pc` and `si`, all transactions that commit before its
//!   snapshot.
//! - *overwrites*: if t1 is before t2, then t3 comes before t2, `rw(t3, t2)`. For `psi` this pair
//!   is not part of an order, so it is left out.
//! - *writers*: for `si`, if the snapshot of t1 is before the commit of t2, then t1 commits before
//!   the snapshot of t2: transactions that write a common key do not overlap.
//!
//! The rules are the consequences of the dependency-graph characterisation of these levels (Cerone
//! and Gotsman, JACM 2018). They are applied in rounds: one sweep recomputes the clocks, then each
//! read inspects, in every chain, only the latest writer that it knows and the earliest writer that
//! overwrites its source; the others follow by transitivity. A round costs reads times chains, and
//! reads whose clocks have not changed since the previous round are skipped. The edges derived in a
//! round depend only on edges of earlier rounds, so explanations are well-founded.

use consistory_verdict::{Budget, Level, Stopped};

use crate::graph::{Graph, Link, Shape, Sorted, Why, has_changed};
use crate::problem::{Group, Problem};
use crate::repair::Way;
use crate::view::{INITIAL, OPEN};

/// Number of transactions processed between two checks of the budget.
const NODES_PER_CHECK: usize = 1024;

/// Largest number of edges that one rule may add for one read or write although some of them imply
/// others.
const MAX_IMPLIED: usize = 4;

/// Result of a saturation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Saturated {
    /// No rule applies any more.
    Closed,
    /// Rules may still apply.
    Unfinished,
    /// The forced edges form a cycle.
    Cycle,
    /// A transaction reads the initial value of a key and knows a writer of it.
    Overwritten { read: u32, writer: u32 },
}

/// The graph of a level with its forced edges.
#[derive(Debug)]
pub(crate) struct Saturation<'p, 't> {
    pub(crate) graph: Graph<'p, 't>,
    pub(crate) level: Level,
    /// Number of links at the start of each round.
    pub(crate) rounds: Vec<usize>,
    fresh: Vec<Link>,
    /// Whether edges that follow from other new edges are left out.
    is_sparse: bool,
    /// Joined clocks of the edges kept so far; scratch table of [`Saturation::drop_implied`].
    joined: Vec<u32>,
    cursors: Cursors,
}

/// Last positions at which each rule found its writers, for every key and chain. Successive
/// transactions of a session know more and more, so the next search takes a step or two.
#[derive(Debug)]
struct Cursors {
    known: Vec<Cursor>,
    overwrites: Vec<Cursor>,
    writers: Vec<Cursor>,
}

/// A position between two writers of a group.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// Number of writers before the position.
    count: u32,
    /// One more than the chain position of the last writer before it, or 0.
    before: u32,
    /// Chain position of the first writer after it, or `u32::MAX`.
    next: u32,
}

impl Cursors {
    fn new(problem: &Problem<'_>, level: Level) -> Self {
        // This cursor matches no bound, so the first use searches.
        let fresh = Cursor { count: 0, before: u32::MAX, next: 0 };
        let table =
            |is_needed: bool| vec![fresh; if is_needed { problem.group_count() } else { 0 }];
        Cursors {
            known: table(level >= Level::Causal),
            overwrites: table(level > Level::Causal && level != Level::ParallelSnapshot),
            writers: table(level == Level::Snapshot),
        }
    }
}

impl Cursor {
    /// Moves to the first writer at or after a bound.
    #[inline]
    fn seek(&mut self, problem: &Problem<'_>, group: Group, bound: u32) {
        if self.before <= bound && bound <= self.next {
            return;
        }
        let places = problem.writer_places(group);
        let count = count_before(places, bound, self.count as usize);
        self.count = count as u32;
        self.before = count.checked_sub(1).map_or(0, |last| places[last] + 1);
        self.next = places.get(count).copied().unwrap_or(u32::MAX);
    }
}

/// Counts the positions before a bound, by galloping from `start`.
fn count_before(places: &[u32], bound: u32, start: usize) -> usize {
    let (mut low, mut high) = (start, start);
    let mut step = 1;
    if places.get(low).is_some_and(|&place| place < bound) {
        loop {
            low = high + 1;
            high += step;
            step *= 2;
            if high >= places.len() {
                high = places.len();
                break;
            }
            if places[high] >= bound {
                break;
            }
        }
    } else {
        loop {
            if high == 0 {
                low = 0;
                break;
            }
            low = high.saturating_sub(step);
            if places[low] < bound {
                low += 1;
                break;
            }
            high = low;
            step *= 2;
        }
    }
    low + places[low..high].partition_point(|&place| place < bound)
}

impl<'p, 't> Saturation<'p, 't> {
    /// Builds the graph of a level, without derived edges.
    pub(crate) fn new(problem: &'p Problem<'t>, level: Level) -> Self {
        let shape = match level {
            Level::Prefix | Level::Snapshot => Shape::Split,
            _ => Shape::Whole,
        };
        let graph = Graph::new(problem, shape);
        let mut saturation = Saturation {
            graph,
            level,
            rounds: Vec::new(),
            fresh: Vec::new(),
            is_sparse: level > Level::Causal,
            joined: Vec::new(),
            cursors: Cursors::new(problem, level),
        };
        if level > Level::Causal {
            saturation.add_lists();
        }
        saturation
    }

    /// Adds the version orders of the lists that were read.
    pub(crate) fn add_lists(&mut self) {
        let problem = self.graph.problem;
        for key in problem.tx.history().keys() {
            let order = problem.tx.lists().order(key);
            for pair in order.windows(2) {
                self.push_version(pair[0], pair[1], Why::List { key });
            }
            if let Some(&last) = order.last() {
                let mut is_read = order.to_vec();
                is_read.sort_unstable();
                for writer in problem.writers_of(key) {
                    if is_read.binary_search(&writer).is_err() {
                        self.push_version(last, writer, Why::List { key });
                    }
                }
            }
        }
    }

    /// Adds an edge that orders the versions of two writers.
    pub(crate) fn push_version(&mut self, from: u32, to: u32, why: Why) {
        let link = Link { from: self.graph.commit(from), to: self.version_target(to), why };
        self.graph.links.push(link);
    }

    /// Returns the event that the commit of an earlier version precedes.
    #[inline]
    fn version_target(&self, node: u32) -> u32 {
        match self.level {
            Level::Snapshot => self.graph.snapshot(node),
            _ => self.graph.commit(node),
        }
    }

    /// Returns the number of links on which the derivation of a link may depend.
    pub(crate) fn limit_of(&self, link: usize) -> usize {
        let round = self.rounds.partition_point(|&start| start <= link);
        round.checked_sub(1).map_or(0, |round| self.rounds[round])
    }

    /// Derives edges until no rule applies any more.
    pub(crate) fn run(&mut self, budget: &Budget) -> Result<Saturated, Stopped> {
        self.run_rounds(usize::MAX, budget)
    }

    /// Derives edges until no rule applies any more, or for a number of rounds.
    pub(crate) fn run_rounds(
        &mut self,
        max_rounds: usize,
        budget: &Budget,
    ) -> Result<Saturated, Stopped> {
        budget.reserve(self.graph.clock_bytes())?;
        for round in 0.. {
            if self.graph.sort(budget)? == Sorted::Cyclic {
                self.derive_implied(budget)?;
                return Ok(Saturated::Cycle);
            }
            if round == max_rounds {
                break;
            }
            self.graph.sweep_past(budget)?;
            if self.level != Level::ParallelSnapshot {
                self.graph.sweep_future(budget)?;
            }
            self.graph.locate_events();
            if let Some((read, writer)) = self.derive(budget)? {
                self.derive_implied(budget)?;
                return Ok(Saturated::Overwritten { read, writer });
            }
            if self.fresh.is_empty() {
                return Ok(Saturated::Closed);
            }
            self.keep_fresh();
        }
        Ok(Saturated::Unfinished)
    }

    /// Moves the derived edges into the graph, as a separate round.
    pub(crate) fn keep_fresh(&mut self) {
        self.rounds.push(self.graph.links.len());
        self.fresh.sort_unstable_by_key(|link| (link.from, link.to));
        self.fresh.dedup_by_key(|link| (link.from, link.to));
        self.graph.links.append(&mut self.fresh);
    }

    /// Applies the rules once to all transactions whose clocks changed.
    fn derive(&mut self, budget: &Budget) -> Result<Option<(u32, u32)>, Stopped> {
        // A round that ended in a contradiction leaves edges that depend on the refuted case.
        self.fresh.clear();
        for node in 0..self.graph.problem.tx.len() as u32 {
            if (node as usize).is_multiple_of(NODES_PER_CHECK) {
                budget.check()?;
            }
            if let Some(found) = self.derive_known(node) {
                return Ok(Some(found));
            }
            if self.level != Level::ParallelSnapshot {
                self.derive_overwrites(node);
            }
            if self.level == Level::Snapshot {
                self.derive_writers(node);
            }
        }
        Ok(None)
    }

    /// Derives the edges that follow from the clocks once more, including edges implied by others:
    /// the shortest explanation may use these.
    fn derive_implied(&mut self, budget: &Budget) -> Result<(), Stopped> {
        if !self.is_sparse || self.graph.past.links == 0 {
            return Ok(());
        }
        self.is_sparse = false;
        self.graph.past.changed.fill(u64::MAX);
        self.graph.future.changed.fill(u64::MAX);
        self.fresh.clear();
        for node in 0..self.graph.problem.tx.len() as u32 {
            if (node as usize).is_multiple_of(NODES_PER_CHECK) {
                budget.check()?;
            }
            let _ = self.derive_known(node);
            if self.level != Level::ParallelSnapshot {
                self.derive_overwrites(node);
            }
            if self.level == Level::Snapshot {
                self.derive_writers(node);
            }
        }
        self.keep_fresh();
        self.is_sparse = true;
        Ok(())
    }

    /// Drops new edges, from index `first` on, that are implied by other new edges: their starts
    /// (for clocks of the past) or ends precede or follow those of the others.
    fn drop_implied(&mut self, first: usize, way: Way) {
        if !self.is_sparse || self.fresh.len() - first <= MAX_IMPLIED {
            return;
        }
        let graph = &self.graph;
        let end = |link: &Link| if way == Way::Past { link.from } else { link.to };
        let nearest = |link: &Link| match way {
            Way::Past => u32::MAX - graph.place_in_order(end(link)),
            Way::Future => graph.place_in_order(end(link)),
        };
        self.fresh[first..].sort_unstable_by_key(nearest);
        self.joined.clear();
        self.joined.resize(graph.width, if way == Way::Past { 0 } else { u32::MAX });
        let mut kept = first;
        for at in first..self.fresh.len() {
            let link = self.fresh[at];
            let (chain, place) = graph.spot(end(&link));
            let joined = self.joined[chain as usize];
            let is_implied = match way {
                Way::Past => joined > place,
                Way::Future => joined <= place,
            };
            if is_implied {
                continue;
            }
            self.fresh[kept] = link;
            kept += 1;
            match way {
                Way::Past => {
                    let row = graph.past_of(end(&link));
                    self.joined.iter_mut().zip(row).for_each(|(a, &b)| *a = (*a).max(b));
                }
                Way::Future => {
                    let row = graph.future_of(end(&link));
                    self.joined.iter_mut().zip(row).for_each(|(a, &b)| *a = (*a).min(b));
                }
            }
        }
        self.fresh.truncate(kept);
    }

    /// Applies *known* to a transaction's reads. Returns a read of an initial value that the
    /// transaction knows to be overwritten, unless *overwrites* will find it.
    pub(crate) fn derive_known(&mut self, node: u32) -> Option<(u32, u32)> {
        let snapshot = self.graph.snapshot(node);
        let changed = self.graph.past.changed[snapshot as usize];
        if changed == 0 {
            return None;
        }
        let problem = self.graph.problem;
        let shift = self.graph.shape.shift();
        let own = (problem.chain_of[node as usize], problem.place_of[node as usize]);
        let mut overwritten = None;
        for read in problem.tx.reads_of(node) {
            let graph = &self.graph;
            let knows = graph.past_of(snapshot);
            let source = problem.sources[read];
            if source == OPEN || (source == INITIAL && self.level > Level::ParallelSnapshot) {
                continue;
            }
            let read = read as u32;
            let target = if source == INITIAL { 0 } else { self.version_target(source) };
            let known_at_target = (source != INITIAL).then(|| graph.past_of(target));
            let first = self.fresh.len();
            let key = problem.key_of(read);
            let cursors = &mut self.cursors.known[problem.group_range(key)];
            for (&group, cursor) in problem.groups(key).iter().zip(cursors) {
                let chain = group.chain as usize;
                if !has_changed(changed, chain) {
                    continue;
                }
                let known = knows[chain];
                let before = known_at_target.map_or(0, |row| row[chain]);
                if known <= before {
                    continue;
                }
                // Commits before `known` belong to members before this position.
                cursor.seek(problem, group, known >> shift);
                let mut last = cursor.before;
                let mut index = cursor.count;
                if group.chain == own.0 && last == own.1 + 1 {
                    // The transaction itself is skipped; the writer before it counts.
                    index -= 1;
                    let places = problem.writer_places(group);
                    last = index.checked_sub(1).map_or(0, |i| places[i as usize] + 1);
                }
                if last << shift <= before {
                    continue;
                }
                let writer = problem.writers(group)[index as usize - 1];
                if source == INITIAL {
                    overwritten = overwritten.or(Some((read, writer)));
                    break;
                }
                if writer != source {
                    let from = graph.commit(writer);
                    self.fresh.push(Link { from, to: target, why: Why::Known { read } });
                }
            }
            self.drop_implied(first, Way::Past);
        }
        overwritten
    }

    /// Applies *overwrites* to a transaction's reads.
    fn derive_overwrites(&mut self, node: u32) {
        let problem = self.graph.problem;
        let reader = self.graph.snapshot(node);
        let shift = self.graph.shape.shift();
        for read in problem.tx.reads_of(node) {
            let graph = &self.graph;
            let source = problem.sources[read];
            if source == OPEN {
                continue;
            }
            let read = read as u32;
            let changed = match source {
                INITIAL if self.rounds.is_empty() => u64::MAX,
                INITIAL => 0,
                _ => graph.future.changed[graph.commit(source) as usize],
            };
            if changed == 0 {
                continue;
            }
            let after_reader = graph.future_of(reader);
            let after_source = (source != INITIAL).then(|| graph.future_of(graph.commit(source)));
            let first_link = self.fresh.len();
            let of_source = match source {
                INITIAL => (u32::MAX, u32::MAX),
                _ => (problem.chain_of[source as usize], problem.place_of[source as usize]),
            };
            let key = problem.key_of(read);
            let cursors = &mut self.cursors.overwrites[problem.group_range(key)];
            for (&group, cursor) in problem.groups(key).iter().zip(cursors) {
                let chain = group.chain as usize;
                if !has_changed(changed, chain) {
                    continue;
                }
                let after = after_source.map_or(0, |row| row[chain]);
                if after >= after_reader[chain] {
                    continue;
                }
                // Commits at or after `after` belong to members from this position on.
                cursor.seek(problem, group, after >> shift);
                let mut index = cursor.count as usize;
                let mut place = cursor.next;
                if group.chain == of_source.0 && place == of_source.1 {
                    index += 1;
                    let places = problem.writer_places(group);
                    place = places.get(index).copied().unwrap_or(u32::MAX);
                }
                // The commit is at `((place + 1) << shift) - 1`.
                if place >= after_reader[chain] >> shift {
                    continue;
                }
                let writer = problem.writers(group)[index];
                if writer != node {
                    let to = graph.commit(writer);
                    self.fresh.push(Link { from: reader, to, why: Why::Overwrites { read } });
                }
            }
            self.drop_implied(first_link, Way::Future);
        }
    }

    /// Applies *writers* to a transaction's writes.
    fn derive_writers(&mut self, node: u32) {
        let problem = self.graph.problem;
        let (snapshot, commit) = (self.graph.snapshot(node), self.graph.commit(node));
        let shift = self.graph.shape.shift();
        let changed = self.graph.future.changed[snapshot as usize];
        if changed == 0 {
            return;
        }
        for key in problem.writes(node) {
            let graph = &self.graph;
            let after_snapshot = graph.future_of(snapshot);
            let after_commit = graph.future_of(commit);
            let first_link = self.fresh.len();
            let cursors = &mut self.cursors.writers[problem.group_range(key)];
            for (&group, cursor) in problem.groups(key).iter().zip(cursors) {
                let chain = group.chain as usize;
                let after = after_snapshot[chain];
                if after == u32::MAX || !has_changed(changed, chain) {
                    continue;
                }
                cursor.seek(problem, group, after >> shift);
                if cursor.next == u32::MAX || cursor.next << shift >= after_commit[chain] {
                    continue;
                }
                let writer = problem.writers(group)[cursor.count as usize];
                if writer != node {
                    let to = graph.snapshot(writer);
                    self.fresh.push(Link { from: commit, to, why: Why::Writers { key } });
                }
            }
            self.drop_implied(first_link, Way::Future);
        }
    }
}
