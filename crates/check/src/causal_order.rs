//! The causal order and what a single look at every read finds in it: the basis of CC, CCv and CM.
//!
//! `co = (po | wr)+` is kept as chains and clocks. A read r of x from w is looked at once, and of
//! each session only the last write w' of x that is causally before r matters: an earlier one of
//! that session is before w' and proves nothing more. There are three cases:
//!
//! ```text
//!   w' is w or before w         nothing to say
//!   w before w' before r        r reads what was overwritten in its causal past (WriteCORead,
//!                               or WriteCOInitRead if w is the initial write)
//!   w and w' are concurrent     w' must come before w wherever r's view counts: cf(w', w)
//! ```
//!
//! Of a session only what r knows and w does not is looked at, and the writes of x in it are found
//! by bisection. The cost is operations times sessions, but for a logarithm of the writes of a key
//! by a session, as in AWDIT (Møldrup and Pavlogiannis, 2025) for causal consistency of
//! transactions. Each read is looked at by itself, so threads share them.

use std::sync::atomic::{AtomicUsize, Ordering};

use consistory_history::OpId;
use consistory_order::{ChainOrder, Chains, Edge};
use consistory_verdict::{Budget, Stopped};

use crate::registers::Registers;

/// Histories smaller than this are looked at by one thread.
const WORTH_THREADS: usize = 20_000;

/// How many reads a thread looks at before it takes the next.
const CHUNK: usize = 4_096;

/// How many bad reads of a chunk are kept, to choose the one with the shortest explanation.
const KEPT_BAD_READS: usize = 64;

/// The causal order of a history in which it has no cycle.
#[derive(Debug)]
pub(crate) struct CausalOrder {
    pub(crate) order: ChainOrder,
    /// A linear extension of the causal order.
    pub(crate) extension: Vec<u32>,
}

/// What the reads say.
#[derive(Debug, Default)]
pub(crate) struct ReadScan {
    /// Reads of what was overwritten in their causal past.
    pub(crate) overwritten: Vec<Overwritten>,
    /// `cf` between concurrent writes, the reason being the read, by the read's session.
    pub(crate) conflicts: Vec<Vec<Edge>>,
}

/// A read of a write that another write of the key overwrote in the read's causal past.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overwritten {
    pub(crate) read: u32,
    /// The write that it reads from, possibly initial.
    pub(crate) source: OpId,
    /// The write that came between.
    pub(crate) overwriter: u32,
}

impl CausalOrder {
    /// Builds the causal order from the edges of `wr`; if `po | wr` is cyclic, gives the chains and
    /// edges back.
    pub(crate) fn build(
        registers: &Registers<'_>,
        edges: Vec<Edge>,
        budget: &Budget,
    ) -> Result<Result<Self, (Chains, Vec<Edge>)>, Stopped> {
        let history = registers.history;
        let crosses =
            |e: &&Edge| history.session_of(OpId(e.from)) != history.session_of(OpId(e.to));
        let rows = edges.iter().filter(crosses).count();
        budget.reserve(4 * rows as u64 * history.session_count() as u64)?;
        budget.check()?;
        Ok(ChainOrder::build_with_order(registers.chains(), edges)
            .map(|(order, extension)| CausalOrder { order, extension }))
    }

    /// Looks at every read.
    pub(crate) fn scan_reads(
        &self,
        registers: &Registers<'_>,
        jobs: usize,
        budget: &Budget,
    ) -> Result<ReadScan, Stopped> {
        // Reads of one key after the other, so that the key's writes stay in the cache.
        let reads = registers.reads_by_key();
        let chunks: Vec<&[u32]> = reads.chunks(CHUNK).collect();
        let scanned = in_parallel(chunks.len(), worthy(registers, jobs), |chunk| {
            budget.check()?;
            Ok(self.scan_chunk(registers, chunks[chunk]))
        })?;
        let mut scan = ReadScan::default();
        scan.conflicts.resize(registers.history.session_count(), Vec::new());
        for (overwritten, conflicts) in scanned {
            scan.overwritten.extend(overwritten);
            for edge in conflicts {
                scan.conflicts[self.order.chains().chain_of(edge.reason) as usize].push(edge);
            }
        }
        Ok(scan)
    }

    fn scan_chunk(
        &self,
        registers: &Registers<'_>,
        reads: &[u32],
    ) -> (Vec<Overwritten>, Vec<Edge>) {
        let order = &self.order;
        let chains = order.chains();
        let recorded = registers.history.len() as u32;
        let mut overwritten = Vec::new();
        let mut conflicts = Vec::new();
        let nothing = vec![0; chains.len()];
        for &read in reads {
            let Some(source) = registers.source[read as usize].get() else { continue };
            let clock = order.row(read).unwrap_or(&nothing);
            let (session, place) = (chains.chain_of(read), chains.place_of(read));
            let key = registers.read_key(read);
            let (source_clock, source_session, source_place) = if source.0 < recorded {
                let (chain, at) = (chains.chain_of(source.0), chains.place_of(source.0));
                (order.row(source.0).unwrap_or(&nothing), chain, at + 1)
            } else {
                (&nothing[..], u32::MAX, 0)
            };
            for &segment in registers.segments(key) {
                let of_session = |clock: &[u32], own: u32, place: u32| {
                    if segment.session == own { place } else { clock[segment.session as usize] }
                };
                let known = of_session(clock, session, place);
                let until_source = of_session(source_clock, source_session, source_place);
                if known <= until_source {
                    continue;
                }
                let places = registers.places(segment);
                let first_unseen = places.partition_point(|&place| place < until_source);
                if places.get(first_unseen).is_none_or(|&place| place >= known) {
                    continue;
                }
                let passed = places.partition_point(|&place| place < known);
                let last = registers.writes(segment)[passed - 1];
                if source.0 >= recorded || order.before(source.0, last) {
                    if overwritten.len() < KEPT_BAD_READS {
                        overwritten.push(Overwritten { read, source, overwriter: last });
                    }
                } else {
                    conflicts.push(Edge { from: last, to: source.0, reason: read });
                }
            }
        }
        (overwritten, conflicts)
    }
}

/// Gives the number of threads that a history is worth.
pub(crate) fn worthy(registers: &Registers<'_>, jobs: usize) -> usize {
    if registers.history.len() < WORTH_THREADS { 1 } else { jobs }
}

/// Does numbered pieces of work on some threads and gives the results in the order of the numbers.
pub(crate) fn in_parallel<T: Send>(
    pieces: usize,
    threads: usize,
    work: impl Fn(usize) -> Result<T, Stopped> + Sync,
) -> Result<Vec<T>, Stopped> {
    let threads = threads.min(pieces);
    if threads <= 1 {
        return (0..pieces).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let mut results: Vec<Option<Result<T, Stopped>>> = (0..pieces).map(|_| None).collect();
    std::thread::scope(|scope| {
        let worker = || {
            let mut mine = Vec::new();
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= pieces {
                    return mine;
                }
                mine.push((piece, work(piece)));
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            for (piece, result) in worker.join().expect("a worker does not panic") {
                results[piece] = Some(result);
            }
        }
    });
    results.into_iter().map(|result| result.expect("every piece was taken once")).collect()
}
