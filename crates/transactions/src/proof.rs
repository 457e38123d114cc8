//! Cycles with their evidence, extracted from a saturated graph.
//!
//! A path through events becomes a path of dependencies between transactions: a segment within a
//! session is `so`, a segment of the chain of real time is `rt`, and every other edge is a
//! dependency. A derived edge is proved by the shortest path that its rule needs, among the edges
//! of earlier rounds only. Each edge is proved once.

use consistory_history::KeyId;
use consistory_order::{Chains, Edge, PathStep, Paths};
use consistory_verdict::{ClientOrder, Dependency, Level, Relates, TransactionCertificate};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph::Why;
use crate::saturate::{Saturated, Saturation};
use crate::view::INITIAL;

/// Largest number of steps of the search for a shorter cycle; then the shortest one found is used.
const MAX_CYCLE_STEPS: u64 = 3_000_000;

/// Builds the certificate of a violation that saturation found.
pub(crate) fn refutation(
    saturation: &Saturation<'_, '_>,
    found: Saturated,
) -> Option<TransactionCertificate> {
    let graph = &saturation.graph;
    let links = graph.links.iter().zip(0u32..);
    let edges: Vec<Edge> =
        links.map(|(link, reason)| Edge { from: link.from, to: link.to, reason }).collect();
    let chains = graph.chains();
    let mut prover = Prover {
        saturation,
        chains: &chains,
        edges: &edges,
        paths: FxHashMap::default(),
        proven: FxHashSet::default(),
    };
    let edges = match found {
        Saturated::Closed | Saturated::Unfinished => return None,
        Saturated::Cycle => prover.cycle()?,
        Saturated::Overwritten { read, writer } => prover.overwritten(read, writer)?,
    };
    Some(TransactionCertificate::Cycle { edges })
}

struct Prover<'a, 'p, 't> {
    saturation: &'a Saturation<'p, 't>,
    chains: &'a Chains,
    edges: &'a [Edge],
    /// Path searches over the first edges of the graph, by their number.
    paths: FxHashMap<usize, Paths<'a>>,
    /// `ww` dependencies whose proof has been written.
    proven: FxHashSet<(u32, u32, KeyId)>,
}

/// A step from an event to another.
#[derive(Clone, Copy)]
struct Hop {
    from: u32,
    to: u32,
    /// Link, or `None` for a step along a chain.
    link: Option<u32>,
}

impl<'a> Prover<'a, '_, '_> {
    fn paths(&mut self, limit: usize) -> &mut Paths<'a> {
        let (chains, edges) = (self.chains, self.edges);
        self.paths.entry(limit).or_insert_with(|| Paths::new(chains, &edges[..limit]))
    }

    fn hops(&self, steps: &[PathStep]) -> Vec<Hop> {
        let hop = |step: &PathStep| match *step {
            PathStep::Run { from, to } => Hop { from, to, link: None },
            PathStep::Edge(link) => {
                let edge = self.edges[link.index()];
                Hop { from: edge.from, to: edge.to, link: Some(link.0) }
            }
        };
        steps.iter().map(hop).collect()
    }

    fn cycle(&mut self) -> Option<Vec<Dependency>> {
        let steps = self.paths(self.edges.len()).shortest_cycle(MAX_CYCLE_STEPS)?;
        let mut hops = self.hops(&steps);
        let graph = &self.saturation.graph;
        let first = hops.iter().position(|hop| graph.node(hop.from).is_some())?;
        hops.rotate_left(first);
        Some(as_missed_write(self.dependencies(&hops)))
    }

    fn overwritten(&mut self, read: u32, writer: u32) -> Option<Vec<Dependency>> {
        let mut edges = self.knows(read, writer, self.edges.len())?;
        edges.push(self.anti_dependency(read, writer));
        Some(edges)
    }

    /// Returns the path by which the transaction of `read` knows a writer, at this level.
    fn knows(&mut self, read: u32, writer: u32, limit: usize) -> Option<Vec<Dependency>> {
        let graph = &self.saturation.graph;
        let problem = graph.problem;
        let reader = problem.reader(read);
        if self.saturation.level > Level::ReadAtomic {
            return self.path(graph.commit(writer), graph.snapshot(reader), limit);
        }
        let tx = problem.tx;
        let (from, to) = (tx.first_op(writer), tx.first_op(reader));
        let found = problem.read_sources(reader).find(|&(_, source)| source == writer);
        let relation = match found {
            Some((read, _)) => Relates::Wr { read: problem.op_of(read) },
            None if tx.session_of(writer) == tx.session_of(reader) && writer < reader => {
                Relates::So
            }
            None => Relates::Rt,
        };
        Some(vec![Dependency::given(from, to, relation)])
    }

    /// Returns a shortest path between two events as dependencies.
    fn path(&mut self, from: u32, to: u32, limit: usize) -> Option<Vec<Dependency>> {
        if from == to {
            return Some(Vec::new());
        }
        let steps = self.paths(limit).shortest_path(from, to, usize::MAX)?;
        let hops = self.hops(&steps);
        Some(self.dependencies(&hops))
    }

    fn dependencies(&mut self, hops: &[Hop]) -> Vec<Dependency> {
        let graph = &self.saturation.graph;
        let problem = graph.problem;
        let tx = problem.tx;
        let mut found = Vec::new();
        let mut ended = 0;
        for hop in hops {
            let (from, to) = (graph.node(hop.from), graph.node(hop.to));
            let Some(link) = hop.link else {
                let (Some(from), Some(to)) = (from, to) else { continue };
                if from == to {
                    continue;
                }
                if problem.order == ClientOrder::None {
                    let chain = problem.members(problem.chain_of[from as usize]);
                    let places = problem.place_of[from as usize] as usize
                        ..=problem.place_of[to as usize] as usize;
                    for pair in chain[places].windows(2) {
                        let read = problem.op_of(problem.links[pair[1] as usize]);
                        let (from, to) = (tx.first_op(pair[0]), tx.first_op(pair[1]));
                        found.push(Dependency::given(from, to, Relates::Wr { read }));
                    }
                } else {
                    let (from, to) = (tx.first_op(from), tx.first_op(to));
                    found.push(Dependency::given(from, to, Relates::So));
                }
                continue;
            };
            match (graph.links[link as usize].why, from, to) {
                (Why::Ends, Some(from), _) => ended = from,
                (Why::Starts, _, Some(to)) => {
                    let (from, to) = (tx.first_op(ended), tx.first_op(to));
                    found.push(Dependency::given(from, to, Relates::Rt));
                }
                (_, Some(from), Some(to)) => found.push(self.dependency(link as usize, from, to)),
                _ => {}
            }
        }
        found
    }

    /// Returns the dependency of a link, with its proof.
    fn dependency(&mut self, link: usize, from: u32, to: u32) -> Dependency {
        let graph = &self.saturation.graph;
        let problem = graph.problem;
        let tx = problem.tx;
        let limit = self.saturation.limit_of(link);
        let (first, last) = (tx.first_op(from), tx.first_op(to));
        match graph.links[link].why {
            Why::ReadsFrom { read } => {
                Dependency::given(first, last, Relates::Wr { read: problem.op_of(read) })
            }
            Why::Overwrites { read } => {
                let mut found = self.anti_dependency(read, to);
                let source = problem.sources[read as usize];
                if source != INITIAL {
                    found.because.push(self.version(source, to, problem.key_of(read), limit));
                }
                found
            }
            Why::Known { read } => {
                let key = problem.key_of(read);
                let mut found = Dependency::given(first, last, Relates::Ww { key });
                if self.proven.contains(&(from, to, key)) {
                    return found;
                }
                if let Some(mut because) = self.knows(read, from, limit) {
                    because.push(self.anti_dependency(read, from));
                    found.because = because;
                }
                self.proven.insert((from, to, key));
                found
            }
            Why::Writers { key } => {
                let mut found = Dependency::given(first, last, Relates::Ww { key });
                if self.proven.contains(&(from, to, key)) {
                    return found;
                }
                let (start, end) = (graph.snapshot(from), graph.commit(to));
                if let Some(because) = self.path(start, end, limit) {
                    found.because = because;
                    found.because.push(Dependency::given(last, first, Relates::Ww { key }));
                }
                self.proven.insert((from, to, key));
                found
            }
            Why::List { key } => self.version(from, to, key, limit),
            Why::Assumed { key } => Dependency::given(first, last, Relates::Ww { key }),
            Why::Ends | Why::Starts => unreachable!("real time has no transaction at both ends"),
        }
    }

    /// Returns `rw` from the reader to a writer, without premises.
    fn anti_dependency(&self, read: u32, writer: u32) -> Dependency {
        let problem = self.saturation.graph.problem;
        let reader = problem.tx.first_op(problem.reader(read));
        let relation = Relates::Rw { read: problem.op_of(read) };
        Dependency::given(reader, problem.tx.first_op(writer), relation)
    }

    /// Returns `ww` between two writers of a key that are ordered by the links before `limit`, with
    /// its proof.
    fn version(&mut self, from: u32, to: u32, key: KeyId, limit: usize) -> Dependency {
        let graph = &self.saturation.graph;
        let tx = graph.problem.tx;
        let (first, last) = (tx.first_op(from), tx.first_op(to));
        let relation = Relates::Ww { key };
        let mut found = Dependency::given(first, last, relation);
        let order = tx.lists().order(key);
        let rank = |node: u32| order.iter().position(|&other| other == node);
        if let Some(place) = rank(from)
            && rank(to).is_none_or(|later| place < later)
        {
            found.list = tx.lists().shown_by(key);
            return found;
        }
        if self.proven.contains(&(from, to, key)) {
            return found;
        }
        if let Some(because) = self.path(graph.commit(from), graph.commit(to), limit) {
            if let [edge] = &because[..]
                && edge.relation == relation
            {
                return edge.clone();
            }
            found.because = because;
            found.because.push(Dependency::given(last, first, relation));
        }
        self.proven.insert((from, to, key));
        found
    }
}

/// Rewrites a contradiction between two version orders as the missed write that causes it.
///
/// If a reader knows t2 but reads from t1, then t2 wrote the earlier version; if t1 is known to
/// have written the earlier one, the reader simply misses t2.
fn as_missed_write(cycle: Vec<Dependency>) -> Vec<Dependency> {
    let is_missed = |edge: &Dependency| {
        matches!(edge.because.last().map(|last| last.relation), Some(Relates::Rw { .. }))
    };
    let [first, second] = &cycle[..] else { return cycle };
    let are_versions = matches!(first.relation, Relates::Ww { .. })
        && first.relation == second.relation
        && (first.from, first.to) == (second.to, second.from);
    // A premise is written where it is first used, so the order of the two must stay, unless the
    // other one has no premises.
    let (known, other) = if are_versions && is_missed(first) {
        (first, second)
    } else if are_versions && is_missed(second) && first.list.is_some() {
        (second, first)
    } else {
        return cycle;
    };
    let mut missed = known.because.clone();
    if let Some(last) = missed.last_mut() {
        last.because = vec![other.clone()];
    }
    missed
}
