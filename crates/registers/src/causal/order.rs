//! The causal order as chains and clocks, with all conflicts. CM and explanations need it.
//!
//! For a read r of x from w and another write w' of x that is causally before r there are three
//! cases:
//!
//! ```text
//!   w' is w or before w         no constraint
//!   w before w' before r        r reads a value overwritten in its causal past (WriteCORead,
//!                               or WriteCOInitRead if w is the initial write)
//!   w and w' are concurrent     w' must come before w wherever r's view counts: cf(w', w)
//! ```
//!
//! The sweep ([`crate::causal::sweep`]) has shown that the second case does not occur. CM needs all
//! conflicts, and so does CCv when the conflicts listed by the sweep do not decide it. Only the
//! last w' of each session before r matters, because earlier ones precede it. In each session only
//! the operations known to r and not to w are searched, by bisection over the writes of x. The cost
//! is operations times sessions, up to a logarithm, as in AWDIT (Møldrup and Pavlogiannis, 2025)
//! for causal consistency of transactions.
//!
//! Reads are independent of each other, so threads share them.

use consistory_history::OpId;
use consistory_verdict::{Budget, Stopped};

use crate::order::{ChainOrder, Edge};
use crate::reason::Reason;
use crate::registers::Registers;
use crate::threads::{in_parallel, worthy};

/// Number of reads that a thread processes before it takes more.
const READS_PER_PIECE: usize = 4_096;

/// The causal order of a history in which `po | wr` is acyclic.
#[derive(Debug)]
pub(crate) struct CausalOrder {
    pub(crate) order: ChainOrder,
}

impl CausalOrder {
    /// Builds the causal order of a history in which `po | wr` is acyclic.
    pub(crate) fn build(registers: &Registers<'_>, budget: &Budget) -> Result<Self, Stopped> {
        let history = registers.history;
        let edges = registers.wr_edges();
        let crosses = |e: &&Edge| history.session_of(e.from) != history.session_of(e.to);
        let rows = edges.iter().filter(crosses).count();
        budget.reserve(4 * rows as u64 * history.session_count() as u64)?;
        budget.check()?;
        let order = ChainOrder::build(registers.chains(), edges).expect("`po | wr` has no cycle");
        Ok(CausalOrder { order })
    }

    /// Returns the conflicts of every read, grouped by the session of the read.
    ///
    /// The history must not contain a read of an overwritten value.
    pub(crate) fn conflicts(
        &self,
        registers: &Registers<'_>,
        jobs: usize,
        budget: &Budget,
    ) -> Result<Vec<Vec<Edge>>, Stopped> {
        // Reads are grouped by key, so that the writes of a key stay in the cache.
        let reads = registers.reads_by_key();
        let chunks: Vec<&[OpId]> = reads.chunks(READS_PER_PIECE).collect();
        let found = in_parallel(chunks.len(), worthy(registers.history, jobs), |chunk| {
            budget.check()?;
            let mut found = Vec::new();
            chunks[chunk].iter().for_each(|&read| self.conflicts_of(registers, read, &mut found));
            Ok(found)
        })?;
        let mut conflicts = vec![Vec::new(); registers.history.session_count()];
        for edge in found.into_iter().flatten() {
            conflicts[self.order.chains().chain_of(edge.reason.read()).index()].push(edge);
        }
        Ok(conflicts)
    }

    /// Lists the conflicts of one read, one per session.
    fn conflicts_of(&self, registers: &Registers<'_>, read: OpId, conflicts: &mut Vec<Edge>) {
        let chains = self.order.chains();
        let Some(source) = registers.source[read.index()].get() else { return };
        if registers.history.is_initial(source) {
            return;
        }
        let (read_row, source_row) = (self.order.row(read), self.order.row(source));
        let (session, place) = (chains.chain_of(read), chains.place_of(read));
        for &segment in registers.segments(registers.read_key(read)) {
            let entry = |row: Option<&[u32]>| row.map_or(0, |row| row[segment.chain.index()]);
            let known = if segment.chain == session { place } else { entry(read_row) };
            let known_to_source = entry(source_row);
            if known <= known_to_source || segment.chain == chains.chain_of(source) {
                continue;
            }
            let places = registers.places(segment);
            let passed = places.partition_point(|&place| place < known);
            if passed > 0 && places[passed - 1] >= known_to_source {
                let last = registers.writes(segment)[passed - 1];
                conflicts.push(Edge { from: last, to: source, reason: Reason::Read(read).pack() });
            }
        }
    }
}
