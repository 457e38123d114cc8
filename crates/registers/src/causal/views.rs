//! The order of writes that the reads of one session force: the relations `hb_o` of CCM and wCCM.
//!
//! `hb_o` of the last operation o of a session contains that of every earlier one (Zennou, thesis,
//! Lemma 4), so a session has one view: the least order that contains the causal order, and `(w',
//! w)` whenever the session reads x from w with another write w' of x before the read. Operations
//! outside the past of o never come before one of its reads, so the view need not be restricted to
//! that past.
//!
//! A view is computed for every chain with reads, in each layer of a memory
//! ([`crate::store_order::layers`]). With store buffers, this is the chain of a session's reads and
//! barriers, since a later write of the session observes nothing else of its reads; and, per
//! variable, the session's chain of that variable.
//!
//! As for CM ([`crate::causal::memory`]), a view is saturated as one number per operation: its
//! level is the position of the first operation of the chain that it equals or precedes. A forced
//! pair (w', w) makes the level of w' at most that of w. An operation whose level is lowered lowers
//! its past as well, and earlier reads of the session may then have it before them.
//!
//! Of the writes before a read, only those are inspected that were not before the session's
//! previous read of the key; the source of that read stands for the others. So each write is
//! inspected once per view.
//!
//! Cost: one view costs its past plus the lowered operations; all views of a layer about operations
//! times sessions.

use consistory_history::{KeyId, OpId};
use consistory_order::ChainId;
use rustc_hash::FxHashMap;

use crate::order::Edge as OrderEdge;
use crate::reason::Reason;
use crate::registers::{Registers, passed};
use crate::store_order::layers::{Layer, is_given};

/// Level of an operation that precedes no operation of the chain.
const OUTSIDE: u32 = u32::MAX;

/// The pairs that the reads of a chain force.
pub(crate) struct Forced {
    /// The chain, in its layer.
    pub(crate) chain: ChainId,
    /// The pairs of writes in order of discovery, each with the read that forces it. A pair is
    /// derived from the causal order and earlier pairs.
    pub(crate) pairs: Vec<OrderEdge>,
    /// For each pair, whether it puts a write before earlier operations of the chain.
    pub(crate) sinks: Vec<bool>,
}

/// The edges of a layer by their targets.
pub(crate) struct Incoming {
    starts: Vec<u32>,
    from: Vec<OpId>,
}

impl Incoming {
    /// Groups the given edges of a layer.
    pub(crate) fn new(layer: &Layer) -> Self {
        let edges = || layer.order.edges().iter().filter(|edge| is_given(edge));
        let mut starts = vec![0u32; layer.order.chains().nodes() + 1];
        for edge in edges() {
            starts[edge.to.index() + 1] += 1;
        }
        for node in 1..starts.len() {
            starts[node] += starts[node - 1];
        }
        let mut next = starts.clone();
        let mut from = vec![OpId(0); edges().count()];
        for edge in edges() {
            let slot = &mut next[edge.to.index()];
            from[*slot as usize] = edge.from;
            *slot += 1;
        }
        Incoming { starts, from }
    }

    fn of(&self, node: OpId) -> &[OpId] {
        let (start, end) = (self.starts[node.index()], self.starts[node.index() + 1]);
        &self.from[start as usize..end as usize]
    }
}

/// Saturates the views of a layer one by one.
pub(crate) struct Views<'a> {
    registers: &'a Registers<'a>,
    layer: &'a Layer,
    incoming: &'a Incoming,
    level: Vec<u32>,
    /// The operations that have a level.
    leveled: Vec<OpId>,
    cursors: Vec<u32>,
    open: Vec<OpId>,
    /// The lowered writes with their old levels.
    sunk: Vec<(OpId, u32)>,
}

/// A read of the chain from a recorded write.
struct OwnRead {
    key: KeyId,
    place: u32,
    op: OpId,
    source: OpId,
}

/// An operation would come before itself.
struct Cycle;

impl<'a> Views<'a> {
    pub(crate) fn new(
        registers: &'a Registers<'a>,
        layer: &'a Layer,
        incoming: &'a Incoming,
    ) -> Self {
        Views {
            registers,
            layer,
            incoming,
            level: vec![OUTSIDE; registers.history.len()],
            leveled: Vec::new(),
            cursors: vec![0; layer.segments.len()],
            open: Vec::new(),
            sunk: Vec::new(),
        }
    }

    /// Returns the pairs that the reads of a chain force.
    ///
    /// If they close a cycle, its pairs are among those returned, and others may be missing.
    pub(crate) fn saturate(&mut self, chain: ChainId) -> Forced {
        let mut forced = Forced { chain, pairs: Vec::new(), sinks: Vec::new() };
        let own_reads = self.own_reads(chain);
        if own_reads.is_empty() {
            return forced;
        }
        self.find_causal_pairs(&own_reads, &mut forced.pairs);
        if forced.pairs.is_empty() {
            return forced;
        }
        let layer = self.layer;
        for (place, &own) in (0u32..).zip(layer.order.chains().members(chain)) {
            // The causal order has no cycle.
            let _ = self.sink(chain, own, place);
        }
        self.sunk.clear();
        let sinks = |e: &OrderEdge| self.level[e.from.index()] > self.level[e.to.index()];
        forced.sinks = forced.pairs.iter().map(sinks).collect();
        if forced.sinks.contains(&true) {
            // A cycle is found again when all views are combined.
            let _ = self.lower_writes(chain, &own_reads, &mut forced);
        }
        for op in self.leveled.drain(..) {
            self.level[op.index()] = OUTSIDE;
        }
        forced
    }

    /// Lists the reads of a chain from recorded writes, by key and position.
    fn own_reads(&self, chain: ChainId) -> Vec<OwnRead> {
        let registers = self.registers;
        let read = |(place, &op): (u32, &OpId)| {
            let source = registers.source[op.index()].get()?;
            let recorded = !registers.history.is_initial(source);
            let key = registers.read_key(op);
            recorded.then_some(OwnRead { key, place, op, source })
        };
        let members = self.layer.order.chains().members(chain);
        let mut reads: Vec<OwnRead> = (0u32..).zip(members).filter_map(read).collect();
        reads.sort_unstable_by_key(|read| (read.key, read.place));
        reads
    }

    /// Finds the pairs that the causal order forces.
    fn find_causal_pairs(&mut self, own_reads: &[OwnRead], pairs: &mut Vec<OrderEdge>) {
        let Layer { order, segments, .. } = self.layer;
        let chains = order.chains();
        let mut latest: Vec<OpId> = Vec::new();
        for (i, read) in own_reads.iter().enumerate() {
            // The source of the previous read of the key stands for the writes before that read.
            let last = i.checked_sub(1).map(|before| &own_reads[before]);
            let last =
                last.filter(|last| last.key == read.key && order.before(last.source, last.op));
            latest.clear();
            latest.extend(last.map(|last| last.source).filter(|&source| source != read.source));
            let key = self.registers.read_key(read.op);
            let row = order.row(read.op);
            let row_of_last = last.and_then(|last| order.row(last.op));
            let own = chains.chain_of(read.op);
            for number in segments.numbers(key) {
                let segment = segments.numbered(number);
                let column = chains.column_of(segment.chain) as usize;
                let is_own = segment.chain == own;
                let known = if is_own { read.place } else { row.map_or(0, |row| row[column]) };
                let had = match last {
                    Some(last) if is_own => last.place,
                    _ => row_of_last.map_or(0, |row| row[column]),
                };
                if known <= had {
                    continue;
                }
                let cursor = &mut self.cursors[number];
                let passed = passed(segments.places(segment), known, *cursor as usize);
                *cursor = passed as u32;
                if passed == 0 || segments.places(segment)[passed - 1] < had {
                    continue;
                }
                let write = segments.writes(segment)[passed - 1];
                if write == read.source || latest.iter().any(|&other| order.before(write, other)) {
                    continue;
                }
                latest.retain(|&other| !order.before(other, write));
                latest.push(write);
            }
            for &write in latest.iter().filter(|&&write| !order.before(write, read.source)) {
                pairs.push(OrderEdge {
                    from: write,
                    to: read.source,
                    reason: Reason::Read(read.op).pack(),
                });
            }
        }
    }

    /// Lowers writes until every pair agrees with the levels.
    fn lower_writes(
        &mut self,
        chain: ChainId,
        own_reads: &[OwnRead],
        forced: &mut Forced,
    ) -> Result<(), Cycle> {
        let Forced { pairs, sinks, .. } = forced;
        let mut into: FxHashMap<OpId, Vec<u32>> = FxHashMap::default();
        for (id, pair) in (0u32..).zip(&*pairs) {
            into.entry(pair.to).or_default().push(id);
        }
        let mut open: Vec<u32> = (0..pairs.len() as u32).rev().collect();
        while let Some(id) = open.pop() {
            let pair = pairs[id as usize];
            let level = self.level[pair.to.index()];
            if self.level[pair.from.index()] <= level {
                continue;
            }
            sinks[id as usize] = true;
            self.sink(chain, pair.from, level)?;
            for (write, had) in std::mem::take(&mut self.sunk) {
                let key = self.registers.written_key(write).expect("only writes are listed");
                let level = self.level[write.index()];
                let start = own_reads.partition_point(|r| (r.key, r.place) < (key, level));
                for read in &own_reads[start..] {
                    if read.key != key || read.place >= had {
                        break;
                    }
                    if read.source == write {
                        continue;
                    }
                    let id = pairs.len() as u32;
                    let (from, to) = (write, read.source);
                    pairs.push(OrderEdge { from, to, reason: Reason::Read(read.op).pack() });
                    sinks.push(self.level[from.index()] > self.level[to.index()]);
                    into.entry(to).or_default().push(id);
                    open.push(id);
                    // Later reads have the source before them, so their pairs follow.
                    if self.level[to.index()] <= read.place {
                        break;
                    }
                }
                // Everything that must come before the write is lowered with it.
                open.extend(into.get(&write).into_iter().flatten());
            }
        }
        Ok(())
    }

    /// Lowers an operation and its causal past to a level. Lists the lowered writes.
    fn sink(&mut self, chain: ChainId, op: OpId, level: u32) -> Result<(), Cycle> {
        let chains = self.layer.order.chains();
        self.open.clear();
        self.open.push(op);
        while let Some(op) = self.open.pop() {
            let of_chain = chains.chain_of(op);
            let members = chains.members(of_chain);
            let mut place = chains.place_of(op) as usize;
            loop {
                let op = members[place];
                let had = self.level[op.index()];
                if had <= level {
                    break;
                }
                if of_chain == chain && place as u32 > level {
                    return Err(Cycle);
                }
                if had == OUTSIDE {
                    self.leveled.push(op);
                }
                self.level[op.index()] = level;
                if self.registers.written_key(op).is_some() {
                    self.sunk.push((op, had));
                }
                self.open.extend(self.incoming.of(op));
                if place == 0 {
                    break;
                }
                place -= 1;
            }
        }
        Ok(())
    }
}
