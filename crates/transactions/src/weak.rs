//! Decides `rc`, `ra` and `tcc` in one pass, without a search.
//!
//! At these levels the transactions that a transaction knows do not depend on the commit order. So
//! the order that the reads force is found at once, and the level holds if and only if this order
//! is acyclic together with B and with the version orders of lists (Biswas and Enea, OOPSLA 2019).
//! As in AWDIT (Møldrup and Pavlogiannis, 2025), only the latest relevant writer is inspected:
//!
//! - `rc`: each transaction from which an earlier read of the same transaction reads. Either its
//!   writes or the later reads are traversed, whichever are fewer.
//! - `ra`: the same for all reads, and the latest writer of the key in the session; with real time,
//!   the latest writer in each session that had ended.
//! - `tcc`: in each session the latest writer within the clock of the causal past.
//!
//! `rc` and `ra` cost about the number of operations, `tcc` the number of reads times the number of
//! sessions.

use consistory_verdict::{Budget, ClientOrder, Level, Stopped};

use crate::graph::{Link, Sorted, Why};
use crate::problem::Problem;
use crate::saturate::{Saturated, Saturation};
use crate::view::{INITIAL, OPEN};

/// Number of transactions processed between two checks of the budget.
const NODES_PER_CHECK: usize = 1024;

const NONE: u32 = u32::MAX;

/// Decides `rc`, `ra` or `tcc`; afterwards the graph contains the forced edges.
pub(crate) fn decide<'p, 't>(
    problem: &'p Problem<'t>,
    level: Level,
    budget: &Budget,
) -> Result<(Saturation<'p, 't>, Saturated), Stopped> {
    let mut graph = Saturation::new(problem, level);
    let base = graph.graph.links.len();
    graph.rounds.push(base);
    let found = match level {
        Level::Causal => causal(&mut graph, budget)?,
        Level::ReadAtomic => {
            let mut forced = Forced::new(problem);
            forced.by_reads(level, budget)?;
            forced.by_sessions(budget)?;
            forced.by_real_time(budget)?;
            forced.finish(&mut graph)
        }
        _ => {
            let mut forced = Forced::new(problem);
            forced.by_reads(level, budget)?;
            forced.finish(&mut graph)
        }
    };
    if found != Saturated::Closed {
        return Ok((graph, found));
    }
    graph.add_lists();
    let sorted = graph.graph.sort(budget)?;
    let found = if sorted == Sorted::Cyclic { Saturated::Cycle } else { Saturated::Closed };
    Ok((graph, found))
}

fn causal(graph: &mut Saturation<'_, '_>, budget: &Budget) -> Result<Saturated, Stopped> {
    if graph.graph.sort(budget)? == Sorted::Cyclic {
        return Ok(Saturated::Cycle);
    }
    budget.reserve(graph.graph.clock_bytes() / 2)?;
    graph.graph.sweep_past(budget)?;
    for node in 0..graph.graph.problem.tx.len() as u32 {
        if (node as usize).is_multiple_of(NODES_PER_CHECK) {
            budget.check()?;
        }
        if let Some((read, writer)) = graph.derive_known(node) {
            return Ok(Saturated::Overwritten { read, writer });
        }
    }
    graph.keep_fresh();
    Ok(Saturated::Closed)
}

/// The order that reads force at `rc` and `ra`.
pub(crate) struct Forced<'p, 't> {
    problem: &'p Problem<'t>,
    pub(crate) links: Vec<Link>,
    overwritten: Option<(u32, u32)>,
}

impl<'p, 't> Forced<'p, 't> {
    pub(crate) fn new(problem: &'p Problem<'t>) -> Self {
        Forced { problem, links: Vec::new(), overwritten: None }
    }

    /// Records that the reader of `read` knows `writer`, which writes the key.
    fn note(&mut self, read: u32, writer: u32) {
        match self.problem.sources[read as usize] {
            OPEN => {}
            INITIAL => self.overwritten = self.overwritten.or(Some((read, writer))),
            source if source == writer => {}
            source => self.links.push(Link { from: writer, to: source, why: Why::Known { read } }),
        }
    }

    /// Records the writers that transactions know because they read from them.
    pub(crate) fn by_reads(&mut self, level: Level, budget: &Budget) -> Result<(), Stopped> {
        let problem = self.problem;
        let tx = problem.tx;
        // Latest read of each key within the transaction, and the one before it.
        let mut latest = vec![(NONE, NONE); tx.history().key_count()];
        let mut earlier: Vec<u32> = Vec::new();
        let mut sources: Vec<(u32, u32)> = Vec::new();
        for node in 0..tx.len() as u32 {
            if (node as usize).is_multiple_of(NODES_PER_CHECK) {
                budget.check()?;
            }
            let reads = tx.reads_of(node);
            if reads.len() < 2 {
                continue;
            }
            sources.clear();
            sources.extend(problem.read_sources(node).map(|(read, source)| (source, read)));
            sources.sort_unstable();
            sources.dedup_by_key(|&mut (source, _)| source);
            earlier.clear();
            for read in reads.clone() {
                let slot = &mut latest[problem.key_of(read as u32).index()];
                earlier.push(if slot.0 == node { slot.1 } else { NONE });
                *slot = (node, read as u32);
            }
            for &(source, first) in &sources {
                let applies = |read: u32| level != Level::ReadCommitted || read > first;
                if tx.writes_of(source).len() <= reads.len() {
                    for key in problem.writes(source) {
                        let (by, mut read) = latest[key.index()];
                        while by == node && read != NONE && applies(read) {
                            self.note(read, source);
                            read = earlier[read as usize - reads.start];
                        }
                    }
                } else {
                    for read in reads.clone().map(|read| read as u32) {
                        if applies(read) && problem.does_write(source, problem.key_of(read)) {
                            self.note(read, source);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Records the writers that transactions know by session order.
    pub(crate) fn by_sessions(&mut self, budget: &Budget) -> Result<(), Stopped> {
        let problem = self.problem;
        if problem.order == ClientOrder::None {
            return Ok(());
        }
        let tx = problem.tx;
        let mut latest = vec![(NONE, NONE); tx.history().key_count()];
        for node in 0..tx.len() as u32 {
            if (node as usize).is_multiple_of(NODES_PER_CHECK) {
                budget.check()?;
            }
            let session = tx.session_of(node);
            for read in tx.reads_of(node).map(|read| read as u32) {
                let (by, writer) = latest[problem.key_of(read).index()];
                if by == session {
                    self.note(read, writer);
                }
            }
            for key in problem.writes(node) {
                latest[key.index()] = (session, node);
            }
        }
        Ok(())
    }

    /// Records the writers that transactions know because these ended before they began.
    pub(crate) fn by_real_time(&mut self, budget: &Budget) -> Result<(), Stopped> {
        let problem = self.problem;
        if problem.order != ClientOrder::Realtime {
            return Ok(());
        }
        let tx = problem.tx;
        let start = |node: u32| tx.time(node).map(|(start, _)| start);
        let end = |node: u32| tx.time(node).and_then(|(_, end)| end);
        // In sessions whose transactions do not overlap, the starts are sorted and can be searched.
        let is_sorted: Vec<bool> = (0..problem.chain_count() as u32)
            .map(|chain| problem.members(chain).iter().map(|&node| start(node)).is_sorted())
            .collect();
        for node in 0..tx.len() as u32 {
            if (node as usize).is_multiple_of(NODES_PER_CHECK) {
                budget.check()?;
            }
            let Some(began) = start(node) else { continue };
            for read in tx.reads_of(node).map(|read| read as u32) {
                for &group in problem.groups(problem.key_of(read)) {
                    let mut writers = problem.writers(group);
                    if is_sorted[group.chain as usize] {
                        let earlier = |&w: &u32| start(w).is_none_or(|start| start < began);
                        writers = &writers[..writers.partition_point(earlier)];
                    }
                    let ended = |&&w: &&u32| w != node && end(w).is_some_and(|end| end < began);
                    if let Some(&writer) = writers.iter().rev().find(ended) {
                        self.note(read, writer);
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(self, graph: &mut Saturation<'_, '_>) -> Saturated {
        if let Some((read, writer)) = self.overwritten {
            return Saturated::Overwritten { read, writer };
        }
        graph.graph.links.extend(self.links);
        Saturated::Closed
    }
}
