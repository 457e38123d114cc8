//! The causal order and what a look at every read finds in it: the basis of CC, CCv and CM.
//!
//! `co = (po | wr)+` is kept as chains and clocks. For a read r of x from w and another write w' of
//! x that is causally before r there are three cases:
//!
//! ```text
//!   w' is w or before w         nothing to say
//!   w before w' before r        r reads what was overwritten in its causal past (WriteCORead,
//!                               or WriteCOInitRead if w is the initial write)
//!   w and w' are concurrent     w' must come before w wherever r's view counts: cf(w', w)
//! ```
//!
//! There are two ways to look. CC and CCv line all operations up in a linear extension of `co` and
//! look only at what stands between w and r there: a w' before w in the line is no overwriter, and
//! agrees with `cf` already. The line is made by letting the sessions take turns, so that it is near
//! to the order of the run and there is little in between.
//!
//! CM wants all conflicts. Then of each session only the last w' before r matters: an earlier one is
//! before w' and proves nothing more. Of a session only what r knows and w does not is looked at, and
//! the writes of x in it are found by bisection; that is operations times sessions, but for a
//! logarithm, as in AWDIT (Møldrup and Pavlogiannis, 2025) for causal consistency of transactions.
//! The first way turns to the second where much stands in between, so it costs no more.
//!
//! Each read is looked at by itself, so threads share them.

use std::sync::atomic::{AtomicUsize, Ordering};

use consistory_history::{KeyId, OpId};
use consistory_order::{ChainOrder, Cyclic, Edge};
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

/// What reads say.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// Reads of what was overwritten in their causal past, some of them.
    pub(crate) overwritten: Vec<Overwritten>,
    /// `cf` between concurrent writes, the reason being the read.
    pub(crate) conflicts: Vec<Edge>,
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
    ) -> Result<Result<Self, Box<Cyclic>>, Stopped> {
        let history = registers.history;
        let crosses =
            |e: &&Edge| history.session_of(OpId(e.from)) != history.session_of(OpId(e.to));
        let rows = edges.iter().filter(crosses).count();
        budget.reserve(4 * rows as u64 * history.session_count() as u64)?;
        budget.check()?;
        Ok(ChainOrder::build_with_order(registers.chains(), edges)
            .map(|(order, extension)| CausalOrder { order, extension }))
    }

    /// Looks at what comes between each read and its source in a linear extension of the causal
    /// order.
    ///
    /// A write of the key there that the read knows either overwrote the source, or must come before
    /// it though the extension has it behind. If there is none, the history is CC, and the extension
    /// is an arbitration order. In an order near to that of the run there is little in between.
    pub(crate) fn look_between(
        &self,
        registers: &Registers<'_>,
        extension: &[u32],
        jobs: usize,
        budget: &Budget,
    ) -> Result<Looked, Stopped> {
        let lined_up = LinedUp::new(registers, extension);
        let reads = registers.reads_by_key();
        let chunks: Vec<&[u32]> = reads.chunks(CHUNK).collect();
        let looked = in_parallel(chunks.len(), worthy(registers, jobs), |chunk| {
            budget.check()?;
            let mut looked = Looked::default();
            for &read in chunks[chunk] {
                self.look_between_one(registers, &lined_up, read, &mut looked);
            }
            Ok(looked)
        })?;
        Ok(looked.into_iter().reduce(Looked::join).unwrap_or_default())
    }

    fn look_between_one(
        &self,
        registers: &Registers<'_>,
        lined_up: &LinedUp,
        read: u32,
        looked: &mut Looked,
    ) {
        let Some(source) = registers.source[read as usize].get() else { return };
        let is_initial = registers.history.is_initial(source);
        let after = lined_up.after(registers.read_key(read), (!is_initial).then_some(source.0));
        let most = 4 * self.order.chains().len();
        for (seen, &write) in after.iter().enumerate() {
            if lined_up.rank[write as usize] >= lined_up.rank[read as usize] {
                return;
            }
            if seen > most {
                // Too much came in between: session by session is faster.
                let mut session_wise = Looked::default();
                self.look_at(registers, read, &mut session_wise);
                let rank = |op: u32| lined_up.rank[op as usize];
                session_wise.conflicts.retain(|edge| rank(edge.from) > rank(edge.to));
                *looked = std::mem::take(looked).join(session_wise);
                return;
            }
            if self.order.before(write, read) {
                if is_initial || self.order.before(source.0, write) {
                    looked.overwritten_by(read, source, write);
                } else {
                    looked.conflicts.push(Edge { from: write, to: source.0, reason: read });
                }
            }
        }
    }

    /// Looks at every read, session by session, and gives the conflicts by the read's session.
    ///
    /// There must be no read of what was overwritten.
    pub(crate) fn conflicts(
        &self,
        registers: &Registers<'_>,
        jobs: usize,
        budget: &Budget,
    ) -> Result<Vec<Vec<Edge>>, Stopped> {
        // Reads of one key after the other, so that the key's writes stay in the cache.
        let reads = registers.reads_by_key();
        let chunks: Vec<&[u32]> = reads.chunks(CHUNK).collect();
        let looked = in_parallel(chunks.len(), worthy(registers, jobs), |chunk| {
            budget.check()?;
            let mut looked = Looked::default();
            chunks[chunk].iter().for_each(|&read| self.look_at(registers, read, &mut looked));
            Ok(looked)
        })?;
        let mut conflicts = vec![Vec::new(); registers.history.session_count()];
        for edge in looked.into_iter().flat_map(|looked| looked.conflicts) {
            conflicts[self.order.chains().chain_of(edge.reason) as usize].push(edge);
        }
        Ok(conflicts)
    }

    /// Looks at one read, session by session.
    fn look_at(&self, registers: &Registers<'_>, read: u32, looked: &mut Looked) {
        let order = &self.order;
        let chains = order.chains();
        let recorded = registers.history.len() as u32;
        let Some(source) = registers.source[read as usize].get() else { return };
        let known_of = |op: u32, session: u32| match order.row(op) {
            Some(row) => row[session as usize],
            None => 0,
        };
        let (session, place) = (chains.chain_of(read), chains.place_of(read));
        for &segment in registers.segments(registers.read_key(read)) {
            let known = match segment.chain {
                own if own == session => place,
                other => known_of(read, other),
            };
            let until_source = match source.0 < recorded {
                true => order.count_until(source.0, segment.chain),
                false => 0,
            };
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
                looked.overwritten_by(read, source, last);
            } else {
                looked.conflicts.push(Edge { from: last, to: source.0, reason: read });
            }
        }
    }
}

impl Looked {
    fn overwritten_by(&mut self, read: u32, source: OpId, overwriter: u32) {
        if self.overwritten.len() < KEPT_BAD_READS {
            self.overwritten.push(Overwritten { read, source, overwriter });
        }
    }

    fn join(mut self, other: Looked) -> Looked {
        self.overwritten.extend(other.overwritten);
        self.conflicts.extend(other.conflicts);
        self
    }
}

/// The writes of each key in a linear order.
struct LinedUp {
    /// The place of each operation in the order.
    rank: Vec<u32>,
    /// Where each key's writes start, and behind the last where they end.
    starts: Vec<u32>,
    writes: Vec<u32>,
    /// Where each write stands among them.
    slot: Vec<u32>,
}

impl LinedUp {
    fn new(registers: &Registers<'_>, order: &[u32]) -> Self {
        let mut rank = vec![0; order.len()];
        let mut starts = vec![0u32; registers.history.key_count() + 1];
        for (at, &op) in order.iter().enumerate() {
            rank[op as usize] = at as u32;
            if let Some(key) = registers.written_key(op) {
                starts[key.index() + 1] += 1;
            }
        }
        for key in 1..starts.len() {
            starts[key] += starts[key - 1];
        }
        let mut next = starts.clone();
        let mut writes = vec![0; starts[starts.len() - 1] as usize];
        let mut slot = vec![0; order.len()];
        for &op in order {
            if let Some(key) = registers.written_key(op) {
                let at = &mut next[key.index()];
                writes[*at as usize] = op;
                slot[op as usize] = *at;
                *at += 1;
            }
        }
        LinedUp { rank, starts, writes, slot }
    }

    /// Gives the writes of a key behind one of them, or all.
    fn after(&self, key: KeyId, write: Option<u32>) -> &[u32] {
        let start = write.map_or(self.starts[key.index()], |write| self.slot[write as usize] + 1);
        &self.writes[start as usize..self.starts[key.index() + 1] as usize]
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
