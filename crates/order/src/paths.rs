//! Shortest paths and shortest cycles in chains and edges.
//!
//! A path alternates edges and runs along a chain. A run counts as one step however long it is, as
//! people read program order. The search is breadth-first over arrivals: an arrival at a node opens
//! the edges that leave it (one step) and, by a run, the edges that leave later nodes of its chain
//! (two steps). In each chain, only the part that no earlier arrival opened is processed, so a
//! search examines at most all edges, and in practice only those within the distance found.
//!
//! Every cycle has edges between chains, so a shortest one starts at the end of some edge. All ends
//! of edges within a strongly connected component are tried, smallest component first, each search
//! bounded by the best length so far. This is exact and quadratic at worst; after a bounded number
//! of steps the best cycle so far is returned.

use crate::chains::Chains;
use crate::edges::{Adjacency, Edge};
use crate::ids::{ChainId, EdgeId, Node};

/// A step of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathStep<N = u32> {
    /// A run along a chain.
    Run {
        /// First node.
        from: N,
        /// Last node.
        to: N,
    },
    /// An edge, by its index in the list.
    Edge(EdgeId),
}

/// Searches for paths in fixed chains and edges.
#[derive(Debug)]
pub struct Paths<'a, N = u32, R = u32> {
    chains: &'a Chains<N>,
    edges: &'a [Edge<N, R>],
    /// Outgoing edges of each chain, by position.
    leaving: Vec<Vec<(u32, EdgeId)>>,
    search: ShortestPathSearch<N>,
}

/// Buffers of a search, reused by the next one.
#[derive(Debug)]
struct ShortestPathSearch<N> {
    arrivals: Vec<Arrival<N>>,
    /// Arrivals by distance, one bucket per distance.
    buckets: Vec<Vec<u32>>,
    /// For each chain, the position from which its outgoing edges are opened by a run.
    opened: Vec<u32>,
    touched: Vec<ChainId>,
    seen: Vec<bool>,
    steps: u64,
}

#[derive(Clone, Copy, Debug)]
struct Arrival<N> {
    node: N,
    /// The edge that led to the arrival, and the previous arrival; `NO_EDGE` and `NO_PARENT` at the
    /// start.
    edge: EdgeId,
    parent: u32,
}

/// The edge of the arrival at the start, and its parent.
const NO_EDGE: EdgeId = EdgeId(u32::MAX);
const NO_PARENT: u32 = u32::MAX;

impl<'a, N: Node, R> Paths<'a, N, R> {
    /// Prepares searches over the edges, which may be a prefix of a longer list.
    pub fn new(chains: &'a Chains<N>, edges: &'a [Edge<N, R>]) -> Self {
        let mut leaving = vec![Vec::new(); chains.len()];
        for (id, edge) in edges.iter().enumerate() {
            leaving[chains.chain_of(edge.from).index()]
                .push((chains.place_of(edge.from), EdgeId::new(id)));
        }
        for list in &mut leaving {
            list.sort_unstable();
        }
        let search = ShortestPathSearch {
            arrivals: vec![],
            buckets: vec![],
            opened: vec![u32::MAX; chains.len()],
            touched: vec![],
            seen: vec![false; chains.nodes()],
            steps: 0,
        };
        Paths { chains, edges, leaving, search }
    }

    /// Finds a shortest path of at most `bound` steps between two different nodes.
    pub fn shortest_path(&mut self, from: N, to: N, bound: usize) -> Option<Vec<PathStep<N>>> {
        let (chain, place) = (self.chains.chain_of(to), self.chains.place_of(to));
        let last = self.run_search(from, bound, |chains, arrival, _| {
            let here = arrival.node;
            if here == to {
                Some(0)
            } else if chains.chain_of(here) == chain && chains.place_of(here) < place {
                Some(1)
            } else {
                None
            }
        });
        last.map(|arrival| self.trace(arrival, Some(to)))
    }

    /// Finds a shortest cycle, or the shortest one found within `max_steps` steps of search.
    pub fn shortest_cycle(&mut self, max_steps: u64) -> Option<Vec<PathStep<N>>> {
        let components = components(self.chains, self.edges);
        let mut sizes = vec![0u32; self.chains.nodes()];
        for &component in &components {
            sizes[component as usize] += 1;
        }
        let mut starts: Vec<N> = self
            .edges
            .iter()
            .filter(|e| components[e.from.index()] == components[e.to.index()])
            .map(|edge| edge.to)
            .collect();
        starts.sort_unstable_by_key(|&node| (sizes[components[node.index()] as usize], node));
        starts.dedup();
        self.search.steps = 0;
        let mut best: Option<Vec<PathStep<N>>> = None;
        for start in starts {
            let bound = best.as_ref().map_or(usize::MAX, |cycle| cycle.len() - 1);
            if bound == 0 || (best.is_some() && self.search.steps > max_steps) {
                break;
            }
            let last = self.run_search(start, bound, |_, arrival, is_first| {
                (arrival.node == start && !is_first).then_some(0)
            });
            if let Some(arrival) = last {
                best = Some(self.trace(arrival, None));
            }
        }
        best
    }

    /// Searches from a node until `goal` returns a number of remaining steps for an arrival, from
    /// which the goal can be reached directly. Returns that arrival if the total is at most `bound`
    /// steps.
    fn run_search(
        &mut self,
        from: N,
        bound: usize,
        goal: impl Fn(&Chains<N>, Arrival<N>, bool) -> Option<usize>,
    ) -> Option<u32> {
        let Paths { chains, edges, leaving, search } = self;
        search.reset(chains);
        search.arrive(Arrival { node: from, edge: NO_EDGE, parent: NO_PARENT }, 0);
        let mut best: Option<(usize, u32)> = None;
        let mut distance = 0;
        while distance < search.buckets.len() {
            if best.is_some_and(|(length, _)| length <= distance) || distance > bound {
                break;
            }
            let Some(id) = search.buckets[distance].pop() else {
                distance += 1;
                continue;
            };
            let arrival = search.arrivals[id as usize];
            if let Some(rest) = goal(chains, arrival, id == 0) {
                let length = distance + rest;
                if length <= bound && best.is_none_or(|(known, _)| length < known) {
                    best = Some((length, id));
                }
                continue;
            }
            // An arrival that was reached on a shorter path has been expanded already. The start
            // may be reached once more, which closes a cycle.
            let (chain, place) = (chains.chain_of(arrival.node), chains.place_of(arrival.node));
            if std::mem::replace(&mut search.seen[arrival.node.index()], true) {
                continue;
            }
            let list = &leaving[chain.index()];
            let first = list.partition_point(|&(at, _)| at < place);
            let opened = search.opened[chain.index()];
            for &(at, edge) in &list[first..] {
                search.steps += 1;
                if at > place && at >= opened {
                    break;
                }
                let steps = if at == place { 1 } else { 2 };
                let next = Arrival { node: edges[edge.index()].to, edge, parent: id };
                search.arrive(next, distance + steps);
            }
            if opened == u32::MAX {
                search.touched.push(chain);
            }
            search.opened[chain.index()] = opened.min(place + 1);
        }
        best.map(|(_, id)| id)
    }

    /// Reconstructs the steps to an arrival, with a final run to `to` if needed.
    fn trace(&self, arrival: u32, to: Option<N>) -> Vec<PathStep<N>> {
        let mut steps = Vec::new();
        let arrivals = &self.search.arrivals;
        let mut here = arrivals[arrival as usize];
        if let Some(to) = to
            && here.node != to
        {
            steps.push(PathStep::Run { from: here.node, to });
        }
        while here.edge != NO_EDGE {
            let parent = arrivals[here.parent as usize];
            let from = self.edges[here.edge.index()].from;
            steps.push(PathStep::Edge(here.edge));
            if parent.node != from {
                steps.push(PathStep::Run { from: parent.node, to: from });
            }
            here = parent;
        }
        steps.reverse();
        steps
    }
}

impl<N: Node> ShortestPathSearch<N> {
    fn reset(&mut self, chains: &Chains<N>) {
        for arrival in self.arrivals.drain(..) {
            self.seen[arrival.node.index()] = false;
        }
        for chain in self.touched.drain(..) {
            self.opened[chain.index()] = u32::MAX;
        }
        self.buckets.iter_mut().for_each(Vec::clear);
        debug_assert_eq!(self.opened.len(), chains.len());
    }

    fn arrive(&mut self, arrival: Arrival<N>, distance: usize) {
        // The start is recorded as an arrival, but arriving there again must stay possible.
        if self.seen[arrival.node.index()] && self.arrivals[0].node != arrival.node {
            return;
        }
        if self.buckets.len() <= distance {
            self.buckets.resize(distance + 1, Vec::new());
        }
        self.buckets[distance].push(self.arrivals.len() as u32);
        self.arrivals.push(arrival);
    }
}

/// Returns the number of each node's strongly connected component (Tarjan 1972, iterative).
fn components<N: Node, R>(chains: &Chains<N>, edges: &[Edge<N, R>]) -> Vec<u32> {
    const UNSEEN: u32 = u32::MAX;
    let n = chains.nodes();
    let outgoing = Adjacency::new(n, edges, |edge| edge.from);
    let mut number = vec![UNSEEN; n];
    let mut low = vec![0u32; n];
    let mut component = vec![UNSEEN; n];
    let (mut numbered, mut found) = (0u32, 0u32);
    let mut open: Vec<N> = Vec::new();
    // A frame is a node and the number of its processed successors; successor 0 is the next node of
    // the chain.
    let mut frames: Vec<(N, u32)> = Vec::new();
    for root in (0..n as u32).map(N::from) {
        if number[root.index()] != UNSEEN {
            continue;
        }
        frames.push((root, 0));
        while let Some(&mut (node, ref mut looked)) = frames.last_mut() {
            if *looked == 0 {
                number[node.index()] = numbered;
                low[node.index()] = numbered;
                numbered += 1;
                open.push(node);
            }
            let list = outgoing.at(node);
            let successor = if *looked == 0 {
                let members = chains.members(chains.chain_of(node));
                *looked += 1;
                members.get(chains.place_of(node) as usize + 1).copied()
            } else if let Some(&edge) = list.get(*looked as usize - 1) {
                *looked += 1;
                Some(edges[edge.index()].to)
            } else {
                frames.pop();
                if low[node.index()] == number[node.index()] {
                    while let Some(member) = open.pop() {
                        component[member.index()] = found;
                        if member == node {
                            break;
                        }
                    }
                    found += 1;
                }
                if let Some(&(parent, _)) = frames.last() {
                    low[parent.index()] = low[parent.index()].min(low[node.index()]);
                }
                continue;
            };
            if let Some(next) = successor {
                if number[next.index()] == UNSEEN {
                    frames.push((next, 0));
                } else if component[next.index()] == UNSEEN {
                    low[node.index()] = low[node.index()].min(number[next.index()]);
                }
            }
        }
    }
    component
}
