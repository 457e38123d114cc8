//! Edges between chains, with the reason for each, and their adjacency.

use crate::chains::Chains;
use crate::ids::{EdgeId, Node};
use crate::turns::{Awaited, take_turns};

/// An edge between two nodes, on top of the chains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge<N = u32, R = u32> {
    /// Start of the edge.
    pub from: N,
    /// End of the edge.
    pub to: N,
    /// Reason of the edge; its meaning is the caller's.
    pub reason: R,
}

/// For each node the edges that start or end there, as indices into the list of edges.
#[derive(Clone, Debug)]
pub(crate) struct Adjacency {
    starts: Vec<u32>,
    edges: Vec<EdgeId>,
}

impl Adjacency {
    /// Groups edges by the node that `end` returns, in the order of the list.
    pub(crate) fn new<N: Node, R>(
        nodes: usize,
        edges: &[Edge<N, R>],
        end: impl Fn(&Edge<N, R>) -> N,
    ) -> Self {
        let mut starts = vec![0u32; nodes + 1];
        for edge in edges {
            starts[end(edge).index() + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut grouped = vec![EdgeId(0); edges.len()];
        for (i, edge) in edges.iter().enumerate() {
            let slot = &mut next[end(edge).index()];
            grouped[*slot as usize] = EdgeId::new(i);
            *slot += 1;
        }
        Adjacency { starts, edges: grouped }
    }

    #[inline]
    pub(crate) fn at(&self, node: impl Node) -> &[EdgeId] {
        let (start, end) = (self.starts[node.index()], self.starts[node.index() + 1]);
        &self.edges[start as usize..end as usize]
    }
}

/// Sorts the nodes along chains and edges, or fails if they form a cycle. Costs nodes plus edges.
pub fn topological_order<N: Node, R>(chains: &Chains<N>, edges: &[Edge<N, R>]) -> Option<Vec<N>> {
    let incoming = Adjacency::new(chains.nodes(), edges, |edge| edge.to);
    let mut order = Vec::with_capacity(chains.nodes());
    visit_in_order(chains, edges, &incoming, |node| order.push(node)).then_some(order)
}

/// Calls `visit` on the nodes in an order that extends chains and edges, one node per chain in
/// turns. Returns whether it reached all nodes, that is, whether there is no cycle.
pub(crate) fn visit_in_order<N: Node, R>(
    chains: &Chains<N>,
    edges: &[Edge<N, R>],
    incoming: &Adjacency,
    mut visit: impl FnMut(N),
) -> bool {
    let lengths: Vec<u32> = chains.ids().map(|chain| chains.members(chain).len() as u32).collect();
    take_turns(&lengths, 1, |chain, place, taken| {
        let node = chains.members(chain)[place as usize];
        for &edge in incoming.at(node) {
            let from = edges[edge.index()].from;
            let (chain, place) = (chains.chain_of(from), chains.place_of(from));
            if taken[chain.index()] <= place {
                return Err(Awaited { chain, place });
            }
        }
        visit(node);
        Ok(())
    })
}
