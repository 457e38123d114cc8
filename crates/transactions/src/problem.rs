//! Transactions with resolved reads: the input of the deciders.
//!
//! The transactions are divided into chains: the sessions or, if session order is ignored, paths of
//! the reads-from relation. The writers of each key are grouped by chain, so that one search per
//! chain finds the latest or earliest writer within a clock.

use std::borrow::Cow;
use std::ops::Range;

use consistory_history::{KeyId, OpId};
use consistory_verdict::ClientOrder;
use rustc_hash::FxHashSet;

use crate::view::{INITIAL, OPEN, Transactions};

/// Number of written keys above which a transaction's keys are stored in a hash table.
const MAX_WALKED_WRITES: usize = 32;

/// The writers of one key in one chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) chain: u32,
    start: u32,
    end: u32,
}

/// Transactions, the source of each read, and the chains of transactions.
#[derive(Debug)]
pub(crate) struct Problem<'t> {
    pub(crate) tx: &'t Transactions<'t>,
    pub(crate) order: ClientOrder,
    /// Source of each read; [`OPEN`] if the read is ignored.
    pub(crate) sources: Cow<'t, [u32]>,
    /// Whether each node counts.
    pub(crate) counts: Vec<bool>,
    pub(crate) chain_of: Vec<u32>,
    pub(crate) place_of: Vec<u32>,
    chain_starts: Vec<u32>,
    members: Vec<u32>,
    /// Read by which each node follows its predecessor in the chain; used without session order.
    pub(crate) links: Vec<u32>,
    /// Keys of the transactions that write many keys.
    large: FxHashSet<(u32, KeyId)>,
    writers: Vec<u32>,
    /// Position of each writer in its chain.
    writer_places: Vec<u32>,
    groups: Vec<Group>,
    group_starts: Vec<u32>,
}

impl<'t> Problem<'t> {
    /// Prepares the transactions; `choices` contains the source of each ambiguous read that has
    /// been decided.
    pub(crate) fn new(
        tx: &'t Transactions<'t>,
        order: ClientOrder,
        choices: &[(u32, u32)],
    ) -> Self {
        let mut sources = Cow::Borrowed(tx.sources());
        let mut counts: Vec<bool> = (0..tx.len() as u32)
            .map(|node| !tx.is_indeterminate(node) || tx.is_read_from(node))
            .collect();
        for &(read, source) in choices {
            sources.to_mut()[read as usize] = source;
            if source != INITIAL {
                counts[source as usize] = true;
            }
        }
        let mut problem = Problem {
            tx,
            order,
            sources,
            counts,
            chain_of: Vec::new(),
            place_of: Vec::new(),
            chain_starts: vec![0],
            members: Vec::new(),
            links: Vec::new(),
            large: FxHashSet::default(),
            writers: Vec::new(),
            writer_places: Vec::new(),
            groups: Vec::new(),
            group_starts: Vec::new(),
        };
        match order {
            ClientOrder::None => problem.chain_by_reads(),
            ClientOrder::Session | ClientOrder::Realtime => problem.chain_by_sessions(),
        }
        problem.group_writers();
        problem
    }

    fn chain_by_sessions(&mut self) {
        let tx = self.tx;
        for session in 0..tx.session_count() {
            let nodes = tx.session_nodes(session);
            if nodes.is_empty() {
                continue;
            }
            let chain = self.chain_starts.len() as u32 - 1;
            self.chain_of.extend(nodes.clone().map(|_| chain));
            self.place_of.extend(0..nodes.len() as u32);
            self.members.extend(nodes);
            self.chain_starts.push(self.members.len() as u32);
        }
    }

    /// Covers the reads-from relation greedily with paths. A node on or after a cycle of the
    /// relation is a chain of its own.
    fn chain_by_reads(&mut self) {
        const NONE: u32 = u32::MAX;
        let n = self.tx.len();
        let mut waits = vec![0u32; n];
        let mut readers: Vec<Vec<u32>> = vec![Vec::new(); n];
        for node in 0..n as u32 {
            for (_, source) in self.read_sources(node) {
                waits[node as usize] += 1;
                readers[source as usize].push(node);
            }
        }
        let mut next = vec![NONE; n];
        let mut ready: Vec<u32> = (0..n as u32).filter(|&v| waits[v as usize] == 0).rev().collect();
        self.links = vec![NONE; n];
        while let Some(node) = ready.pop() {
            let free = self.read_sources(node).find(|&(_, v)| next[v as usize] == NONE);
            if let Some((read, source)) = free {
                next[source as usize] = node;
                self.links[node as usize] = read;
            }
            for &reader in &readers[node as usize] {
                waits[reader as usize] -= 1;
                if waits[reader as usize] == 0 {
                    ready.push(reader);
                }
            }
        }
        self.chain_of = vec![0; n];
        self.place_of = vec![0; n];
        for first in (0..n as u32).filter(|&v| self.links[v as usize] == NONE) {
            let chain = self.chain_starts.len() as u32 - 1;
            let mut node = first;
            let mut place = 0;
            while node != NONE {
                self.chain_of[node as usize] = chain;
                self.place_of[node as usize] = place;
                self.members.push(node);
                place += 1;
                node = next[node as usize];
            }
            self.chain_starts.push(self.members.len() as u32);
        }
    }

    fn group_writers(&mut self) {
        let tx = self.tx;
        let keys = tx.history().key_count();
        let mut starts = vec![0u32; keys + 1];
        for node in 0..tx.len() as u32 {
            for write in self.writes(node) {
                starts[write.index() + 1] += 1;
            }
        }
        for key in 1..starts.len() {
            starts[key] += starts[key - 1];
        }
        let mut next = starts.clone();
        let mut writers = vec![0u32; starts[keys] as usize];
        for &node in &self.members {
            for key in self.writes(node) {
                let slot = &mut next[key.index()];
                writers[*slot as usize] = node;
                *slot += 1;
            }
        }
        for node in 0..tx.len() as u32 {
            if tx.writes_of(node).len() > MAX_WALKED_WRITES && self.counts[node as usize] {
                self.large.extend(tx.writes()[tx.writes_of(node)].iter().map(|w| (node, w.key)));
            }
        }
        self.group_starts = vec![0];
        for key in 0..keys {
            let mut at = starts[key];
            while at < starts[key + 1] {
                let chain = self.chain_of[writers[at as usize] as usize];
                let start = at;
                while at < starts[key + 1] && self.chain_of[writers[at as usize] as usize] == chain
                {
                    at += 1;
                }
                self.groups.push(Group { chain, start, end: at });
            }
            self.group_starts.push(self.groups.len() as u32);
        }
        self.writer_places = writers.iter().map(|&writer| self.place_of[writer as usize]).collect();
        self.writers = writers;
    }

    /// Counts the chains.
    pub(crate) fn chain_count(&self) -> usize {
        self.chain_starts.len() - 1
    }

    /// Returns the nodes of a chain in order.
    pub(crate) fn members(&self, chain: u32) -> &[u32] {
        let chain = chain as usize;
        &self.members[self.chain_starts[chain] as usize..self.chain_starts[chain + 1] as usize]
    }

    /// Returns the nodes chain by chain.
    pub(crate) fn nodes_by_chain(&self) -> &[u32] {
        &self.members
    }

    /// Returns the groups of a key's writers, one per chain.
    #[inline]
    pub(crate) fn groups(&self, key: KeyId) -> &[Group] {
        &self.groups[self.group_range(key)]
    }

    /// Counts the groups of all keys.
    pub(crate) fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Returns the range of a key's groups among those of all keys.
    #[inline]
    pub(crate) fn group_range(&self, key: KeyId) -> Range<usize> {
        let key = key.index();
        self.group_starts[key] as usize..self.group_starts[key + 1] as usize
    }

    /// Returns the writers of a group in chain order.
    #[inline]
    pub(crate) fn writers(&self, group: Group) -> &[u32] {
        &self.writers[group.start as usize..group.end as usize]
    }

    /// Returns the positions of a group's writers in the chain.
    #[inline]
    pub(crate) fn writer_places(&self, group: Group) -> &[u32] {
        &self.writer_places[group.start as usize..group.end as usize]
    }

    /// Iterates over all writers of a key, chain by chain.
    pub(crate) fn writers_of(&self, key: KeyId) -> impl Iterator<Item = u32> {
        self.groups(key).iter().flat_map(|&group| self.writers(group).iter().copied())
    }

    /// Iterates over the keys that a node writes, if it counts.
    #[inline]
    pub(crate) fn writes(&self, node: u32) -> impl Iterator<Item = KeyId> + use<'_, 't> {
        let range = if self.counts[node as usize] { self.tx.writes_of(node) } else { 0..0 };
        self.tx.writes()[range].iter().map(|write| write.key)
    }

    /// Checks whether a node counts and writes a key.
    pub(crate) fn does_write(&self, node: u32, key: KeyId) -> bool {
        if self.tx.writes_of(node).len() > MAX_WALKED_WRITES {
            return self.large.contains(&(node, key));
        }
        self.writes(node).any(|written| written == key)
    }

    /// Iterates over a node's reads with a source other than the initial transaction: the index of
    /// the read, and the source.
    #[inline]
    pub(crate) fn read_sources(&self, node: u32) -> impl Iterator<Item = (u32, u32)> + use<'_, 't> {
        let sources = self.tx.reads_of(node).map(|read| (read as u32, self.sources[read]));
        sources.filter(|&(_, source)| source < OPEN)
    }

    /// Returns the key of a read.
    #[inline]
    pub(crate) fn key_of(&self, read: u32) -> KeyId {
        self.tx.reads()[read as usize].key
    }

    /// Returns the operation of a read.
    pub(crate) fn op_of(&self, read: u32) -> OpId {
        self.tx.reads()[read as usize].op
    }

    /// Finds the node that a read belongs to.
    pub(crate) fn reader(&self, read: u32) -> u32 {
        self.node_at(self.op_of(read).0)
    }

    /// Finds the node of an operation; of an operation without a node, the first node after it.
    fn node_at(&self, op: u32) -> u32 {
        let (mut low, mut high) = (0, self.tx.len() as u32);
        while low < high {
            let middle = (low + high) / 2;
            if self.tx.ops(middle).end <= op {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Finds the node of a write, given the write's index among all writes.
    pub(crate) fn writer_of(&self, write: usize) -> u32 {
        let op = self.tx.writes()[write].op.0;
        self.node_at(op)
    }
}
