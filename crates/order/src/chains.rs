//! Chains: a partition of the nodes `0..n` into totally ordered sequences.

use std::ops::Range;

use crate::ids::{ChainId, Node};

/// Nodes partitioned into chains; a session of a history is a chain.
///
/// Each node has one chain and one position in it. The chains of a history's program order are
/// [`Chains::consecutive`]; [`Chains::along`] accepts any other partition, such as the reads and
/// the writes of each session.
#[derive(Clone, Debug)]
pub struct Chains<N = u32> {
    /// Index of each chain's first node in `members`, followed by the number of nodes.
    starts: Vec<u32>,
    members: Vec<N>,
    /// Chain and position of each node; callers usually need both.
    spots: Vec<Spot>,
    /// The column of each chain in a clock.
    columns: Vec<u32>,
    width: usize,
}

/// Chain and position of a node.
#[derive(Clone, Copy, Debug)]
struct Spot {
    chain: ChainId,
    place: u32,
}

/// A node that belongs to no chain yet.
const NOWHERE: Spot = Spot { chain: ChainId(u32::MAX), place: 0 };

impl<N: Node> Chains<N> {
    /// Builds chains of consecutive nodes from their lengths.
    pub fn consecutive(lengths: impl IntoIterator<Item = usize>) -> Self {
        let mut chains =
            Chains { starts: vec![0], members: vec![], spots: vec![], columns: vec![], width: 0 };
        let mut next = 0u32;
        for (chain, length) in (0u32..).map(ChainId).zip(lengths) {
            let end = next + length as u32;
            chains.members.extend((next..end).map(N::from));
            chains.spots.extend((0..length as u32).map(|place| Spot { chain, place }));
            chains.starts.push(end);
            next = end;
        }
        chains.with_own_columns()
    }

    /// Builds chains from the chain of each node. Members of a chain are in the order of `nodes`,
    /// which holds every node once.
    pub fn along(nodes: impl IntoIterator<Item = N>, chain_of: &[ChainId]) -> Self {
        let mut starts = vec![0];
        for &chain in chain_of {
            if starts.len() < chain.index() + 2 {
                starts.resize(chain.index() + 2, 0);
            }
            starts[chain.index() + 1] += 1;
        }
        for chain in 1..starts.len() {
            starts[chain] += starts[chain - 1];
        }
        let mut ends = starts.clone();
        let (mut members, mut spots) =
            (vec![N::from(0); chain_of.len()], vec![NOWHERE; chain_of.len()]);
        for node in nodes {
            let chain = chain_of[node.index()];
            let end = &mut ends[chain.index()];
            members[*end as usize] = node;
            spots[node.index()] = Spot { chain, place: *end - starts[chain.index()] };
            *end += 1;
        }
        debug_assert!(spots.iter().all(|spot| spot.chain != NOWHERE.chain), "all nodes are there");
        Chains { starts, members, spots, columns: vec![], width: 0 }.with_own_columns()
    }

    /// Assigns a column of the clocks to each chain.
    ///
    /// Chains may share a column if no edge relates them, directly or transitively. An order that
    /// consists of many small independent orders, such as one per variable, then has narrow clocks.
    /// Chains that share a column must not be compared.
    pub fn in_columns(mut self, columns: Vec<u32>) -> Self {
        assert_eq!(self.len(), columns.len(), "a chain has one column");
        self.width = columns.iter().map(|&column| column as usize + 1).max().unwrap_or(0);
        self.columns = columns;
        self
    }

    fn with_own_columns(mut self) -> Self {
        self.width = self.len();
        self.columns = (0..self.len() as u32).collect();
        self
    }

    /// Counts the columns of a clock.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the column of a chain.
    #[inline]
    pub fn column_of(&self, chain: ChainId) -> u32 {
        self.columns[chain.index()]
    }

    /// Counts the nodes.
    pub fn nodes(&self) -> usize {
        self.spots.len()
    }

    /// Counts the chains.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Iterates over the chains.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = ChainId> + Clone + use<N> {
        (0..self.len() as u32).map(ChainId)
    }

    /// Returns whether there is no chain.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the chain of a node.
    #[inline]
    pub fn chain_of(&self, node: N) -> ChainId {
        self.spots[node.index()].chain
    }

    /// Returns the position of a node in its chain, counted from 0.
    #[inline]
    pub fn place_of(&self, node: N) -> u32 {
        self.spots[node.index()].place
    }

    /// Returns the members of a chain in order.
    #[inline]
    pub fn members(&self, chain: ChainId) -> &[N] {
        &self.members[self.range(chain)]
    }

    #[inline]
    fn range(&self, chain: ChainId) -> Range<usize> {
        self.starts[chain.index()] as usize..self.starts[chain.index() + 1] as usize
    }
}
