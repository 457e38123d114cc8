//! A partial order represented by chains and clocks.
//!
//! The order is the transitive closure of chains (sessions) and of edges between them. Instead of a
//! matrix of n² bits, each node has a clock: for each of the k chains, the number of its nodes that
//! come before. One comparison then decides whether a node is before another (Mattern 1989, Fidge
//! 1988).
//!
//! ```text
//!   chain 0   a0 ── a1 ── a2          clock of b1: 2 nodes of chain 0 (a0, a1), 1 of chain 1
//!                     ╲
//!   chain 1   b0 ────── b1 ── b2      b2 has no edge of its own and shares b1's row
//! ```
//!
//! A node without incoming edges has the clock of its predecessor in the chain, except for its own
//! position. So rows are stored only for nodes with incoming edges. Building costs the number of
//! nodes plus k times the number of rows.
//!
//! [`ChainOrder::insert`] adds an edge and propagates it: rows after the edge's end are joined with
//! the new clock, along chains and edges, until a row already contains the edge's start. Clocks
//! only grow, so a saturation that adds edges until a fixpoint pays for each entry at most as often
//! as it grows.
//!
//! [`ChainOrder::unadmitted`] builds an order whose nodes are admitted one by one
//! ([`ChainOrder::admit`]): an insertion then changes only the clocks of admitted nodes.
//!
//! A search marks the order and returns to the mark ([`ChainOrder::undo`]): from the first mark on,
//! a trail records the changes, so that nothing is copied.
//!
//! Every edge is stored with its reason, in the order of insertion. [`crate::Paths`] finds a path
//! or a cycle in that list, and can be limited to the edges older than a given one, which makes an
//! explanation well-founded.

use crate::chains::Chains;
use crate::edges::{Adjacency, Edge, visit_in_order};
use crate::ids::{ChainId, EdgeId, Node};

const NO_ROW: u32 = u32::MAX;
const NO_EDGE: EdgeId = EdgeId(u32::MAX);

/// Number of columns of two clocks that are compared at once.
const COLUMNS_AT_ONCE: usize = 8;

/// Largest number of nodes of an order that checks its invariants after each change in debug
/// builds.
const MAX_CHECKED_NODES: usize = 24;

/// Result of an insertion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inserted {
    /// The order grew.
    New,
    /// The edge was implied already and was not stored.
    Implied,
    /// The edge closes a cycle. It was stored in the list of edges, so that the cycle can be found,
    /// but the clocks are unchanged.
    Cycle,
}

/// Chains and edges that form a cycle.
#[derive(Clone, Debug)]
pub struct Cyclic<N = u32, R = u32> {
    /// The chains.
    pub chains: Chains<N>,
    /// The edges.
    pub edges: Vec<Edge<N, R>>,
}

/// A strict partial order over the nodes of some chains, extensible edge by edge.
#[derive(Clone, Debug)]
pub struct ChainOrder<N = u32, R = u32> {
    chains: Chains<N>,
    edges: Vec<Edge<N, R>>,
    /// The row of the nearest node at or before each node that has one, or `NO_ROW`.
    row_of: Vec<u32>,
    /// Rows with one entry per chain: the number of that chain's nodes before the row's node. The
    /// entry of the node's own chain is unused, since it equals the node's position.
    rows: Vec<u32>,
    /// Number of admitted nodes of each chain.
    admitted: Vec<u32>,
    /// For an order whose nodes are admitted one by one: index of the first edge that enters each
    /// node, among the edges sorted by their ends, followed by the number of edges.
    incoming: Vec<u32>,
    /// The edges that leave each node as linked lists, built at the first insertion.
    outgoing: Option<Outgoing>,
    /// Changes made by insertions, newest last; `None` before the first mark.
    trail: Option<Vec<Change<N>>>,
    /// Buffers of an insertion: the nodes still to be updated, and the columns that grew.
    scratch: (Vec<N>, Vec<Growth>),
}

/// A change that can be undone.
#[derive(Clone, Copy, Debug)]
enum Change<N> {
    /// An entry of a row grew.
    Entry { at: usize, had: u32 },
    /// A node got a row of its own, the last of the rows.
    Row { node: N, shared: u32 },
}

/// The growth of a clock in one column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Growth {
    /// The column.
    pub column: u32,
    /// Entry before the change.
    pub had: u32,
    /// Entry after the change.
    pub has: u32,
}

/// A state to which the order can be restored.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    edges: usize,
    changes: usize,
}

#[derive(Clone, Debug)]
struct Outgoing {
    head: Vec<EdgeId>,
    next: Vec<EdgeId>,
}

impl<N: Node, R: Copy> ChainOrder<N, R> {
    /// Builds the order of the chains and edges. If they form a cycle, returns them.
    pub fn build(chains: Chains<N>, edges: Vec<Edge<N, R>>) -> Result<Self, Box<Cyclic<N, R>>> {
        let incoming = Adjacency::new(chains.nodes(), &edges, |edge| edge.to);
        let mut row_of = vec![NO_ROW; chains.nodes()];
        let mut rows = Vec::new();
        let acyclic = visit_in_order(&chains, &edges, &incoming, |node| {
            let sources = incoming.at(node).iter().map(|&edge| edges[edge.index()].from);
            admit(&chains, &mut row_of, &mut rows, node, sources);
        });
        if !acyclic {
            return Err(Box::new(Cyclic { chains, edges }));
        }
        rows.shrink_to_fit();
        let mut made = Self::without_nodes(chains, edges, row_of, rows);
        made.admitted =
            made.chains.ids().map(|chain| made.chains.members(chain).len() as u32).collect();
        Ok(made)
    }

    /// Builds the order of the chains and edges without admitting any node.
    ///
    /// The chains and edges must not form a cycle. Only admitted nodes may be queried and get
    /// further edges.
    pub fn unadmitted(chains: Chains<N>, mut edges: Vec<Edge<N, R>>) -> Self {
        let row_of = vec![NO_ROW; chains.nodes()];
        let mut incoming = vec![0; chains.nodes() + 1];
        edges.iter().for_each(|edge| incoming[edge.to.index() + 1] += 1);
        for node in 1..incoming.len() {
            incoming[node] += incoming[node - 1];
        }
        // The edges are usually sorted, or consist of a few sorted runs, which the sort exploits.
        edges.sort_by_key(|edge| edge.to);
        let mut made = Self::without_nodes(chains, edges, row_of, Vec::new());
        made.incoming = incoming;
        let head = vec![NO_EDGE; made.chains.nodes()];
        made.outgoing = Some(Outgoing { head, next: vec![NO_EDGE; made.edges.len()] });
        made
    }

    fn without_nodes(
        chains: Chains<N>,
        edges: Vec<Edge<N, R>>,
        row_of: Vec<u32>,
        rows: Vec<u32>,
    ) -> Self {
        let chains_len = chains.len();
        ChainOrder {
            chains,
            edges,
            row_of,
            rows,
            admitted: vec![0; chains_len],
            incoming: Vec::new(),
            outgoing: None,
            trail: None,
            scratch: Default::default(),
        }
    }

    /// Admits a node. Its predecessor in the chain and the starts of its edges must be admitted.
    pub fn admit(&mut self, node: N) {
        let ChainOrder { chains, edges, row_of, rows, admitted, incoming, outgoing, .. } = self;
        let entering = incoming[node.index()]..incoming[node.index() + 1];
        let outgoing = outgoing.as_mut().expect("it is made with the order");
        let chain = chains.chain_of(node);
        debug_assert_eq!(admitted[chain.index()], chains.place_of(node));
        admitted[chain.index()] += 1;
        for id in entering.clone() {
            outgoing.link(edges[id as usize].from, EdgeId(id));
        }
        let sources = entering.map(|id| edges[id as usize].from);
        admit(chains, row_of, rows, node, sources);
    }

    /// Returns whether a node has been admitted.
    #[inline]
    pub fn is_admitted(&self, node: N) -> bool {
        self.chains.place_of(node) < self.admitted[self.chains.chain_of(node).index()]
    }

    /// Returns the members of a chain that have been admitted.
    fn present(&self, chain: ChainId) -> &[N] {
        &self.chains.members(chain)[..self.admitted[chain.index()] as usize]
    }

    /// Returns the chains.
    pub fn chains(&self) -> &Chains<N> {
        &self.chains
    }

    /// Returns all edges, oldest first, those that closed a cycle included.
    pub fn edges(&self) -> &[Edge<N, R>] {
        &self.edges
    }

    /// Counts the nodes of `chain` that come before `node`, or are `node`.
    #[inline]
    pub fn count_until(&self, node: N, chain: ChainId) -> u32 {
        if chain == self.chains.chain_of(node) {
            return self.chains.place_of(node) + 1;
        }
        match self.row_of[node.index()] {
            NO_ROW => 0,
            row => {
                let column = self.chains.column_of(chain) as usize;
                self.rows[row as usize * self.chains.width() + column]
            }
        }
    }

    /// Returns whether `a` comes before `b`.
    #[inline]
    pub fn before(&self, a: N, b: N) -> bool {
        a != b && self.count_until(b, self.chains.chain_of(a)) > self.chains.place_of(a)
    }

    /// Returns the clock of a node by columns. The entry of its own chain has no meaning; `None`
    /// stands for all zeros.
    #[inline]
    pub fn row(&self, node: N) -> Option<&[u32]> {
        match self.row_of[node.index()] {
            NO_ROW => None,
            row => {
                let k = self.chains.width();
                Some(&self.rows[row as usize * k..][..k])
            }
        }
    }

    /// Adds an edge.
    pub fn insert(&mut self, edge: Edge<N, R>) -> Inserted {
        self.insert_and_tell(edge, |_, _| ())
    }

    /// Adds an edge and reports the nodes whose clocks grew, possibly more than once, and the
    /// columns.
    pub fn insert_and_tell(
        &mut self,
        edge: Edge<N, R>,
        grew: impl FnMut(N, &[Growth]),
    ) -> Inserted {
        if self.before(edge.from, edge.to) {
            return Inserted::Implied;
        }
        let closes = edge.from == edge.to || self.before(edge.to, edge.from);
        let id = EdgeId::new(self.edges.len());
        let outgoing =
            self.outgoing.get_or_insert_with(|| Outgoing::new(self.chains.nodes(), &self.edges));
        self.edges.push(edge);
        outgoing.push(edge.from, id);
        if closes {
            return Inserted::Cycle;
        }
        self.propagate(edge, grew);
        self.debug_check();
        Inserted::New
    }

    /// Returns the edges that leave a node, newest first, by their indices in the list; none before
    /// the first mark.
    pub fn edges_from(&self, node: N) -> impl Iterator<Item = EdgeId> {
        let outgoing = self.outgoing.as_ref();
        let some = |edge: EdgeId| (edge != NO_EDGE).then_some(edge);
        let first = outgoing.and_then(|outgoing| some(outgoing.head[node.index()]));
        std::iter::successors(first, move |&edge| some(outgoing?.next[edge.index()]))
    }

    /// Returns a mark of the current state, for [`ChainOrder::undo`].
    pub fn mark(&mut self) -> Mark {
        self.outgoing.get_or_insert_with(|| Outgoing::new(self.chains.nodes(), &self.edges));
        let changes = self.trail.get_or_insert_default().len();
        Mark { edges: self.edges.len(), changes }
    }

    /// Undoes all insertions since a mark; later marks become invalid.
    pub fn undo(&mut self, mark: Mark) {
        let k = self.chains.width();
        while self.edges.len() > mark.edges {
            let edge = self.edges.pop().expect("it is longer");
            self.outgoing.as_mut().expect("insertion made it").pop(edge.from);
        }
        let trail = self.trail.as_mut().expect("a mark started it");
        while trail.len() > mark.changes {
            match trail.pop().expect("it is longer") {
                Change::Entry { at, had } => self.rows[at] = had,
                Change::Row { node, shared } => {
                    let row = self.row_of[node.index()];
                    let place = self.chains.place_of(node) as usize;
                    let members = self.chains.members(self.chains.chain_of(node));
                    for &member in &members[place..] {
                        if self.row_of[member.index()] != row {
                            break;
                        }
                        self.row_of[member.index()] = shared;
                    }
                    self.rows.truncate(row as usize * k);
                }
            }
        }
        self.debug_check();
    }

    fn debug_check(&self) {
        if cfg!(debug_assertions) && self.chains.nodes() <= MAX_CHECKED_NODES {
            self.check_invariants();
        }
    }

    /// Panics unless the clocks contain everything that chains and edges imply.
    ///
    /// Clocks only grow along a chain, and the end of an edge knows its start and everything that
    /// the start knows. Edges that close a cycle are left out. Tests compare the clocks with a
    /// closure computed in another way, which shows that they contain nothing else.
    pub fn check_invariants(&self) {
        let column = |node: N| self.chains.column_of(self.chains.chain_of(node));
        let knows_as_much = |later: N, earlier: N| {
            let Some(known) = self.row(earlier) else { return true };
            (0..).zip(known).all(|(at, &known)| {
                let is_own = at == column(later) || at == column(earlier);
                is_own || self.row(later).is_some_and(|row| row[at as usize] >= known)
            })
        };
        for chain in self.chains.ids() {
            for pair in self.present(chain).windows(2) {
                assert!(
                    knows_as_much(pair[1], pair[0]),
                    "{:?} forgets what {:?} knows",
                    pair[1],
                    pair[0]
                );
            }
        }
        for &Edge { from, to, .. } in &self.edges {
            let is_known = self.is_admitted(from) && self.is_admitted(to);
            if !is_known || from == to || self.before(to, from) {
                continue;
            }
            if column(from) != column(to) {
                assert!(self.before(from, to), "{to:?} does not know of {from:?}");
                assert!(knows_as_much(to, from), "{to:?} does not know all that {from:?} knows");
            }
        }
        if let Some(outgoing) = &self.outgoing {
            let is_listed = |id: usize| {
                let from = self.edges[id].from;
                self.edges_from(from).any(|other| other.index() == id)
                    || !self.is_admitted(self.edges[id].to)
            };
            assert_eq!(outgoing.next.len(), self.edges.len());
            assert!((0..self.edges.len()).all(is_listed), "an edge is not listed where it starts");
        }
    }

    /// Propagates `edge.from` and everything before it to `edge.to` and everything after it.
    ///
    /// A node that knows `from` already knows the rest, and so do the nodes after it.
    fn propagate(&mut self, edge: Edge<N, R>, mut grew: impl FnMut(N, &[Growth])) {
        let (source, at) = (self.chains.chain_of(edge.from), self.chains.place_of(edge.from));
        let (mut told, mut growth) = std::mem::take(&mut self.scratch);
        told.push(edge.to);
        while let Some(node) = told.pop() {
            if self.count_until(node, source) > at {
                continue;
            }
            let row = self.own_row(node);
            self.join(edge.from, node, row, &mut growth);
            // All nodes up to the next row share this one.
            let members = self.present(self.chains.chain_of(node));
            let outgoing = self.outgoing.as_ref().expect("insertion made it");
            for &member in &members[self.chains.place_of(node) as usize..] {
                if self.row_of[member.index()] != row {
                    told.push(member);
                    break;
                }
                grew(member, &growth);
                let mut next = outgoing.head[member.index()];
                while next != NO_EDGE {
                    told.push(self.edges[next.index()].to);
                    next = outgoing.next[next.index()];
                }
            }
        }
        self.scratch = (told, growth);
    }

    /// Joins a node and its clock into the row of a node of another chain, and lists the columns
    /// that grew.
    fn join(&mut self, from: N, node: N, row: u32, growth: &mut Vec<Growth>) {
        let k = self.chains.width();
        let column_of = |node: N| self.chains.column_of(self.chains.chain_of(node));
        let (source, own) = (column_of(from), column_of(node));
        growth.clear();
        let from_row = self.row_of[from.index()];
        if from_row != NO_ROW {
            let (into, joined) = two_rows(&mut self.rows, k, row, from_row);
            let mut grow = |start: u32, into: &mut [u32], joined: &[u32]| {
                for (column, (entry, &has)) in (start..).zip(into.iter_mut().zip(joined)) {
                    if has > *entry && column != source && column != own {
                        growth.push(Growth { column, had: *entry, has });
                        *entry = has;
                    }
                }
            };
            let (pieces, rest) = into.as_chunks_mut::<COLUMNS_AT_ONCE>();
            let (joined_pieces, joined_rest) = joined.as_chunks::<COLUMNS_AT_ONCE>();
            let starts = (0u32..).step_by(COLUMNS_AT_ONCE);
            for (start, (into, joined)) in starts.zip(pieces.iter_mut().zip(joined_pieces)) {
                // Usually nothing grows in a block, which a quick comparison shows.
                if (0..COLUMNS_AT_ONCE).fold(false, |some, i| some | (joined[i] > into[i])) {
                    grow(start, into, joined);
                }
            }
            grow((k - rest.len()) as u32, rest, joined_rest);
        }
        let entry = &mut self.rows[row as usize * k + source as usize];
        let has = self.chains.place_of(from) + 1;
        if has > *entry {
            growth.push(Growth { column: source, had: *entry, has });
            *entry = has;
        }
        if let Some(trail) = &mut self.trail {
            let at = |column: u32| row as usize * k + column as usize;
            let change = |g: &Growth| Change::Entry { at: at(g.column), had: g.had };
            trail.extend(growth.iter().map(change));
        }
    }

    /// Returns the row of a node, and creates one if it shares its predecessor's.
    fn own_row(&mut self, node: N) -> u32 {
        let chain = self.chains.chain_of(node);
        let place = self.chains.place_of(node) as usize;
        let members = &self.chains.members(chain)[..self.admitted[chain.index()] as usize];
        let shared = self.row_of[node.index()];
        let inherited = match place {
            0 => NO_ROW,
            _ => self.row_of[members[place - 1].index()],
        };
        if shared != inherited {
            return shared;
        }
        let row = push_row_copy(&mut self.rows, self.chains.width(), shared);
        for &member in &members[place..] {
            if self.row_of[member.index()] != shared {
                break;
            }
            self.row_of[member.index()] = row;
        }
        if let Some(trail) = &mut self.trail {
            trail.push(Change::Row { node, shared });
        }
        row
    }
}

impl Outgoing {
    fn new<N: Node, R>(nodes: usize, edges: &[Edge<N, R>]) -> Self {
        let mut made = Outgoing { head: vec![NO_EDGE; nodes], next: Vec::new() };
        for (id, edge) in edges.iter().enumerate() {
            made.push(edge.from, EdgeId::new(id));
        }
        made
    }

    fn push(&mut self, from: impl Node, id: EdgeId) {
        debug_assert_eq!(self.next.len(), id.index());
        self.next.push(NO_EDGE);
        self.link(from, id);
    }

    fn link(&mut self, from: impl Node, id: EdgeId) {
        self.next[id.index()] = std::mem::replace(&mut self.head[from.index()], id);
    }

    /// Removes the newest edge, which leaves `from`.
    fn pop(&mut self, from: impl Node) {
        self.head[from.index()] = self.next.pop().expect("there is an edge");
    }
}

/// Computes the clock of a node from its predecessor in the chain and from the starts of the edges
/// that enter it.
fn admit<N: Node>(
    chains: &Chains<N>,
    row_of: &mut [u32],
    rows: &mut Vec<u32>,
    node: N,
    sources: impl Iterator<Item = N>,
) {
    let k = chains.width();
    let (chain, place) = (chains.chain_of(node), chains.place_of(node));
    let mut row = match place {
        0 => NO_ROW,
        _ => row_of[chains.members(chain)[place as usize - 1].index()],
    };
    let mut is_own = false;
    for from in sources {
        let (source, at) = (chains.chain_of(from), chains.place_of(from));
        let column = chains.column_of(source) as usize;
        let known = if row == NO_ROW { 0 } else { rows[row as usize * k + column] };
        if source == chain || known > at {
            continue;
        }
        if !is_own {
            row = push_row_copy(rows, k, row);
            is_own = true;
        }
        join_row(rows, k, row, row_of[from.index()]);
        let entry = &mut rows[row as usize * k + column];
        *entry = (*entry).max(at + 1);
    }
    row_of[node.index()] = row;
}

/// Appends a copy of a row, or zeros, and returns its number.
fn push_row_copy(rows: &mut Vec<u32>, k: usize, row: u32) -> u32 {
    let made = (rows.len() / k) as u32;
    match row {
        NO_ROW => rows.resize(rows.len() + k, 0),
        row => rows.extend_from_within(row as usize * k..(row as usize + 1) * k),
    }
    made
}

/// Takes the maximum of two rows, entry by entry, into the first.
fn join_row(rows: &mut [u32], k: usize, into: u32, from: u32) {
    if from == NO_ROW || from == into {
        return;
    }
    let (into, from) = two_rows(rows, k, into, from);
    for (x, y) in into.iter_mut().zip(from) {
        *x = (*x).max(*y);
    }
}

/// Returns two different rows, the first to be changed.
fn two_rows(rows: &mut [u32], k: usize, into: u32, from: u32) -> (&mut [u32], &[u32]) {
    let (into, from) = (into as usize * k, from as usize * k);
    if into < from {
        let (head, tail) = rows.split_at_mut(from);
        (&mut head[into..into + k], &tail[..k])
    } else {
        let (head, tail) = rows.split_at_mut(into);
        (&mut tail[..k], &head[from..from + k])
    }
}
