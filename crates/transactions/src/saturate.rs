//! Forced edges, for the levels that need a search: `psi`, `pc`, `si` and `ser`.
//!
//! With t3 reading key x from t1, and t2 another writer of x:
//!
//! - *known*: if t3 knows t2, then t2 wrote the earlier version, `ww(t2, t1)`. For `psi` and `ser`
//!   t3 knows what is before it; for `pc` and `si`, whatever commits before its snapshot.
//! - *overwrites*: if t1 is before t2, then t3 comes before t2, `rw(t3, t2)`. For `psi` this is not
//!   an order, so it is left out.
//! - *writers*: for `si`, if the snapshot of t1 is before the commit of t2, then t1 commits before the
//!   snapshot of t2: transactions that write a common key do not overlap.
//!
//! The rules are the consequences of the dependency-graph characterisation of these levels (Cerone
//! and Gotsman, JACM 2018). They are applied in rounds: clocks are recomputed in one sweep, then each
//! read looks, in every chain, only at the latest writer that it knows and the earliest that
//! overwrites; the others follow by transitivity. A round costs reads times chains, and reads whose
//! clocks have not changed since the round before are passed over. What a round derives rests only on
//! edges of earlier rounds, which is what makes explanations well-founded.

use consistory_verdict::{Budget, Level, Stopped};

use crate::graph::{Graph, Link, Shape, Sorted, Why};
use crate::problem::Problem;
use crate::view::{INITIAL, OPEN};

/// How many transactions are handled between two looks at the budget.
const NODES_PER_CHECK: usize = 1024;

/// How a saturation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Saturated {
    /// Nothing more follows.
    Closed,
    /// More may follow.
    Unfinished,
    /// The forced edges form a cycle.
    Cycle,
    /// A transaction reads the initial value of a key and knows a writer of it.
    Overwritten { read: u32, writer: u32 },
}

/// A graph with the edges that a level forces.
#[derive(Debug)]
pub(crate) struct Saturation<'p, 't> {
    pub(crate) graph: Graph<'p, 't>,
    pub(crate) level: Level,
    /// How many links there were when each round began.
    pub(crate) rounds: Vec<usize>,
    fresh: Vec<Link>,
}

impl<'p, 't> Saturation<'p, 't> {
    /// Builds the graph of a level, with nothing derived yet.
    pub(crate) fn new(problem: &'p Problem<'t>, level: Level) -> Self {
        let shape = match level {
            Level::Prefix | Level::Snapshot => Shape::Split,
            _ => Shape::Whole,
        };
        let graph = Graph::new(problem, shape);
        let mut saturation = Saturation { graph, level, rounds: Vec::new(), fresh: Vec::new() };
        if level > Level::Causal {
            saturation.add_lists();
        }
        saturation
    }

    /// Adds the version orders that lists show.
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

    /// Returns the event that an earlier version's commit comes before.
    #[inline]
    fn version_target(&self, node: u32) -> u32 {
        match self.level {
            Level::Snapshot => self.graph.snapshot(node),
            _ => self.graph.commit(node),
        }
    }

    /// Counts the links that the derivation of a link may rest on.
    pub(crate) fn limit_of(&self, link: usize) -> usize {
        let round = self.rounds.partition_point(|&start| start <= link);
        round.checked_sub(1).map_or(0, |round| self.rounds[round])
    }

    /// Derives edges until nothing more follows.
    pub(crate) fn run(&mut self, budget: &Budget) -> Result<Saturated, Stopped> {
        self.run_rounds(usize::MAX, budget)
    }

    /// Derives edges until nothing more follows, or for a number of rounds.
    pub(crate) fn run_rounds(
        &mut self,
        max_rounds: usize,
        budget: &Budget,
    ) -> Result<Saturated, Stopped> {
        budget.reserve(self.graph.clock_bytes())?;
        for round in 0.. {
            if self.graph.sort(budget)? == Sorted::Cyclic {
                return Ok(Saturated::Cycle);
            }
            if round == max_rounds {
                break;
            }
            self.graph.sweep_past(budget)?;
            if self.level != Level::ParallelSnapshot {
                self.graph.sweep_future(budget)?;
            }
            if let Some((read, writer)) = self.derive(budget)? {
                return Ok(Saturated::Overwritten { read, writer });
            }
            if self.fresh.is_empty() {
                return Ok(Saturated::Closed);
            }
            self.keep_fresh();
        }
        Ok(Saturated::Unfinished)
    }

    /// Moves what was derived into the graph, as a round of its own.
    pub(crate) fn keep_fresh(&mut self) {
        self.rounds.push(self.graph.links.len());
        self.fresh.sort_unstable_by_key(|link| (link.from, link.to));
        self.fresh.dedup_by_key(|link| (link.from, link.to));
        self.graph.links.append(&mut self.fresh);
    }

    /// Applies the rules once to all transactions whose clocks changed.
    fn derive(&mut self, budget: &Budget) -> Result<Option<(u32, u32)>, Stopped> {
        // A round that ended in a contradiction leaves edges that rest on the case that it refuted.
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

    /// Applies *known* to a transaction's reads; returns a read of an initial value that it knows to
    /// be overwritten, unless *overwrites* will find it.
    pub(crate) fn derive_known(&mut self, node: u32) -> Option<(u32, u32)> {
        let graph = &self.graph;
        let snapshot = graph.snapshot(node);
        if !graph.past_changed[snapshot as usize] {
            return None;
        }
        let problem = graph.problem;
        let events = graph.shape.events();
        let knows = graph.past_of(snapshot);
        let mut overwritten = None;
        for read in problem.tx.reads_of(node) {
            let source = problem.sources[read];
            if source == OPEN || (source == INITIAL && self.level > Level::ParallelSnapshot) {
                continue;
            }
            let read = read as u32;
            let target = if source == INITIAL { 0 } else { self.version_target(source) };
            for &group in problem.groups(problem.key_of(read)) {
                let chain = group.chain as usize;
                let known = knows[chain];
                let before = match source {
                    INITIAL => 0,
                    _ => graph.past_of(target)[chain],
                };
                if known <= before {
                    continue;
                }
                // Commits before `known` are those of members before this place.
                let known = known / events;
                let places = problem.writer_places(group);
                let mut count = match places {
                    [only] => usize::from(*only < known),
                    _ => places.partition_point(|&place| place < known),
                };
                let writers = problem.writers(group);
                if count > 0 && writers[count - 1] == node {
                    count -= 1;
                }
                let Some(&place) = places[..count].last() else { continue };
                let writer = writers[count - 1];
                if source == INITIAL {
                    overwritten = overwritten.or(Some((read, writer)));
                    break;
                }
                if writer != source && (place + 1) * events > before {
                    let from = graph.commit(writer);
                    self.fresh.push(Link { from, to: target, why: Why::Known { read } });
                }
            }
        }
        overwritten
    }

    /// Applies *overwrites* to a transaction's reads.
    fn derive_overwrites(&mut self, node: u32) {
        let graph = &self.graph;
        let problem = graph.problem;
        let reader = graph.snapshot(node);
        for read in problem.tx.reads_of(node) {
            let source = problem.sources[read];
            if source == OPEN {
                continue;
            }
            let read = read as u32;
            let changed = match source {
                INITIAL => self.rounds.is_empty(),
                _ => graph.future_changed[graph.commit(source) as usize],
            };
            if !changed {
                continue;
            }
            let after_reader = graph.future_of(reader);
            for &group in problem.groups(problem.key_of(read)) {
                let chain = group.chain as usize;
                let after = match source {
                    INITIAL => 0,
                    _ => graph.future_of(graph.commit(source))[chain],
                };
                if after >= after_reader[chain] {
                    continue;
                }
                let writers = problem.writers(group);
                let mut first = writers.partition_point(|&w| graph.commit_place(w) < after);
                if writers.get(first) == Some(&source) {
                    first += 1;
                }
                let Some(&writer) = writers.get(first) else { continue };
                if writer != node && graph.commit_place(writer) < after_reader[chain] {
                    let to = graph.commit(writer);
                    self.fresh.push(Link { from: reader, to, why: Why::Overwrites { read } });
                }
            }
        }
    }

    /// Applies *writers* to a transaction's writes.
    fn derive_writers(&mut self, node: u32) {
        let graph = &self.graph;
        let problem = graph.problem;
        let (snapshot, commit) = (graph.snapshot(node), graph.commit(node));
        if !graph.future_changed[snapshot as usize] {
            return;
        }
        let (after_snapshot, after_commit) = (graph.future_of(snapshot), graph.future_of(commit));
        for key in problem.writes(node) {
            for &group in problem.groups(key) {
                let chain = group.chain as usize;
                let after = after_snapshot[chain];
                if after == u32::MAX {
                    continue;
                }
                let writers = problem.writers(group);
                let first = writers.partition_point(|&w| graph.commit_place(w) < after);
                let Some(&writer) = writers.get(first) else { continue };
                if writer != node && graph.snapshot_place(writer) < after_commit[chain] {
                    let to = graph.snapshot(writer);
                    self.fresh.push(Link { from: commit, to, why: Why::Writers { key } });
                }
            }
        }
    }
}
