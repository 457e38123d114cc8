//! Edges between chains, with the reason for each, and their adjacency.

use std::collections::VecDeque;

use crate::chains::Chains;

/// An edge between two nodes, on top of the chains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// Where it starts.
    pub from: u32,
    /// Where it ends.
    pub to: u32,
    /// Why it is there; the meaning is the caller's.
    pub reason: u32,
}

/// For each node the edges at one of its ends, as indices into the list of edges.
#[derive(Clone, Debug)]
pub(crate) struct Adjacency {
    starts: Vec<u32>,
    edges: Vec<u32>,
}

impl Adjacency {
    /// Groups edges by the node that `end` gives, in the order of the list.
    pub(crate) fn new(nodes: usize, edges: &[Edge], end: impl Fn(&Edge) -> u32) -> Self {
        let mut starts = vec![0u32; nodes + 1];
        for edge in edges {
            starts[end(edge) as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut grouped = vec![0u32; edges.len()];
        for (i, edge) in edges.iter().enumerate() {
            let slot = &mut next[end(edge) as usize];
            grouped[*slot as usize] = i as u32;
            *slot += 1;
        }
        Adjacency { starts, edges: grouped }
    }

    #[inline]
    pub(crate) fn at(&self, node: u32) -> &[u32] {
        let (start, end) = (self.starts[node as usize], self.starts[node as usize + 1]);
        &self.edges[start as usize..end as usize]
    }
}

/// Orders the nodes so that chains and edges go forward, or fails if they form a cycle; the cost is
/// nodes plus edges.
pub fn topological_order(chains: &Chains, edges: &[Edge]) -> Option<Vec<u32>> {
    let incoming = Adjacency::new(chains.nodes(), edges, |edge| edge.to);
    let mut order = Vec::with_capacity(chains.nodes());
    visit_in_order(chains, edges, &incoming, |node| order.push(node)).then_some(order)
}

/// Calls `visit` on the nodes in an order in which chains and edges go forward; says whether it
/// reached them all, that is, whether there is no cycle.
///
/// The chains take turns, a node each, so that the order is about that in which chains that run side
/// by side would have come along. Each chain waits for at most one edge at a time.
pub(crate) fn visit_in_order(
    chains: &Chains,
    edges: &[Edge],
    incoming: &Adjacency,
    mut visit: impl FnMut(u32),
) -> bool {
    const NOBODY: u32 = u32::MAX;
    let k = chains.len();
    let mut next = vec![0u32; k];
    // `waiting[c]` heads the list of chains that wait for chain c to pass a place.
    let mut waiting = vec![NOBODY; k];
    let mut waiting_next = vec![NOBODY; k];
    let mut waits_for_place = vec![0u32; k];
    let mut turns: VecDeque<u32> = (0..k as u32).collect();
    let mut visited = 0;
    'turns: while let Some(chain) = turns.pop_front() {
        let at = next[chain as usize];
        let Some(&node) = chains.members(chain).get(at as usize) else { continue };
        for &edge in incoming.at(node) {
            let from = edges[edge as usize].from;
            let (source, place) = (chains.chain_of(from), chains.place_of(from));
            if next[source as usize] <= place {
                if source == chain {
                    return false;
                }
                waits_for_place[chain as usize] = place;
                waiting_next[chain as usize] = waiting[source as usize];
                waiting[source as usize] = chain;
                continue 'turns;
            }
        }
        visit(node);
        visited += 1;
        next[chain as usize] = at + 1;
        turns.push_back(chain);
        // Wake the chains whose edge starts at this node.
        let mut waiter = std::mem::replace(&mut waiting[chain as usize], NOBODY);
        while waiter != NOBODY {
            let following = waiting_next[waiter as usize];
            if waits_for_place[waiter as usize] <= at {
                turns.push_back(waiter);
            } else {
                waiting_next[waiter as usize] = waiting[chain as usize];
                waiting[chain as usize] = waiter;
            }
            waiter = following;
        }
    }
    visited == chains.nodes()
}
