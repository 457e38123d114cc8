//! wSC by saturation: the order that every witness of sequential consistency must contain.
//!
//! `hb` starts as `po | wr` and grows by two rules until nothing changes (Zennou, thesis, Definition
//! 16), for a read r of x from w and another write w' of x:
//!
//! ```text
//!   w' hb r    then   w' before w     (cf: r would have read w' otherwise)
//!   w hb w'    then   r before w'     (rw: r would have read w' otherwise)
//! ```
//!
//! A history is wSC if no cycle arises. The order is kept as chains and clocks and grows edge by
//! edge. A rule looks, per session, only at the nearest write: the last one of x before r, whose
//! earlier neighbours follow by program order; and for a write w' the last w of each session before
//! it, since the readers of an earlier w are before that one by the same rule. The readers of a
//! write whose clock grew, and the reads whose clock grew, are looked at again, and nothing else.
//!
//! Every edge remembers the read that is its reason, and rests only on edges that are older, so a
//! cycle unfolds into a proof.
//!
//! On top come edges that are assumed ([`Saturation::assume`]): one case of a case split.

use std::cmp::Reverse;

use consistory_history::OpId;
use consistory_order::{ChainOrder, Edge as OrderEdge, Inserted, Paths, Step};
use consistory_verdict::{Budget, Edge, Stopped};
use rustc_hash::FxHashSet;

use crate::registers::{Registers, Segment, WR};

/// The reason of an edge between writes that a case assumes.
const ASSUMED: u32 = u32::MAX - 1;

/// How many steps the search for a shortest cycle may take before it settles for the best so far.
const CYCLE_SEARCH_STEPS: u64 = 5_000_000;

/// How many operations are looked at between two looks at the budget.
const STEPS_PER_CHECK: u32 = 4_096;

/// The saturated order of a history.
#[derive(Clone)]
pub(crate) struct Saturation<'a> {
    registers: &'a Registers<'a>,
    readers: &'a Readers,
    pub(crate) order: ChainOrder,
    /// Operations to look at again, each once.
    open: Vec<u32>,
    is_open: Vec<bool>,
}

/// A cycle closed the search.
#[derive(Debug)]
pub(crate) struct Contradiction;

/// The last read of each write, initial writes included, in each session; earlier ones come before
/// it in program order.
pub(crate) struct Readers {
    starts: Vec<u32>,
    reads: Vec<u32>,
}

impl Readers {
    pub(crate) fn new(registers: &Registers<'_>) -> Self {
        let history = registers.history;
        let mut last: Vec<(u32, u32, u32)> = (0u32..)
            .zip(registers.source)
            .filter_map(|(read, source)| {
                Some((source.get()?.0, history.session_of(OpId(read)).0, read))
            })
            .collect();
        last.sort_unstable_by_key(|&(write, session, read)| (write, session, Reverse(read)));
        last.dedup_by_key(|&mut (write, session, _)| (write, session));
        let mut starts = vec![0u32; history.len() + history.key_count() + 1];
        for &(write, ..) in &last {
            starts[write as usize + 1] += 1;
        }
        for write in 1..starts.len() {
            starts[write] += starts[write - 1];
        }
        Readers { starts, reads: last.into_iter().map(|(.., read)| read).collect() }
    }

    pub(crate) fn of(&self, write: u32) -> &[u32] {
        let (start, end) = (self.starts[write as usize], self.starts[write as usize + 1]);
        &self.reads[start as usize..end as usize]
    }
}

impl<'a> Saturation<'a> {
    /// Starts from the causal order, which has no cycle.
    pub(crate) fn new(registers: &'a Registers<'a>, readers: &'a Readers, co: ChainOrder) -> Self {
        let operations = registers.history.len();
        Saturation {
            registers,
            readers,
            order: co,
            open: (0..operations as u32).rev().collect(),
            is_open: vec![true; operations],
        }
    }

    /// Applies the rules until nothing changes.
    pub(crate) fn saturate(
        &mut self,
        budget: &Budget,
    ) -> Result<Result<(), Contradiction>, Stopped> {
        let mut steps = 0u32;
        while let Some(op) = self.open.pop() {
            self.is_open[op as usize] = false;
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(STEPS_PER_CHECK) {
                budget.check()?;
            }
            if let Err(contradiction) = self.look_at(op) {
                self.forget();
                return Ok(Err(contradiction));
            }
        }
        Ok(Ok(()))
    }

    /// Assumes that one write comes before another of its key, which the order leaves open.
    pub(crate) fn assume(&mut self, first: u32, second: u32) {
        self.put(first, second).expect("the order leaves the two writes open");
    }

    /// Puts a write before another of its key, if the order allows it.
    pub(crate) fn put(&mut self, first: u32, second: u32) -> Result<(), Contradiction> {
        self.insert(first, second, ASSUMED).inspect_err(|_| self.forget())
    }

    /// Closes what is open: after a contradiction nothing more is looked at.
    fn forget(&mut self) {
        for op in self.open.drain(..) {
            self.is_open[op as usize] = false;
        }
    }

    fn look_at(&mut self, op: u32) -> Result<(), Contradiction> {
        if let Some(source) = self.registers.source[op as usize].get() {
            self.look_at_read(op, source.0)?;
        }
        match self.registers.written_key(op) {
            Some(_) => self.look_at_write(op),
            None => Ok(()),
        }
    }

    /// Puts the writes that a read has behind it before the one that it reads from.
    fn look_at_read(&mut self, read: u32, source: u32) -> Result<(), Contradiction> {
        let registers = self.registers;
        let session = self.order.chains().chain_of(read);
        let recorded = registers.history.len() as u32;
        for &segment in registers.segments(registers.read_key(read)) {
            let known = self.order.count_until(read, segment.session);
            // The read itself is not before itself, though it may be a write, too.
            let known = known - u32::from(segment.session == session);
            let places = registers.places(segment);
            let passed = places.partition_point(|&place| place < known);
            let Some(&last) = registers.writes(segment)[..passed].last() else { continue };
            if source >= recorded {
                // The initial write is before this one, and so is the read.
                self.insert(read, last, read)?;
            } else if last != source {
                self.insert(last, source, read)?;
            }
        }
        Ok(())
    }

    /// Puts the readers of the writes that a write has behind it before it.
    fn look_at_write(&mut self, write: u32) -> Result<(), Contradiction> {
        let (registers, readers) = (self.registers, self.readers);
        let key = registers.written_key(write).expect("it is a write");
        let session = self.order.chains().chain_of(write);
        for &segment in registers.segments(key) {
            let known = self.order.count_until(write, segment.session);
            let known = known - u32::from(segment.session == session);
            let places = registers.places(segment);
            let passed = places.partition_point(|&place| place < known);
            let Some(&last) = registers.writes(segment)[..passed].last() else { continue };
            for &read in readers.of(last) {
                if read != write {
                    self.insert(read, write, read)?;
                }
            }
        }
        // The initial write is behind every write; what follows the first of a session follows.
        let is_first = |segment: &Segment| registers.writes(*segment)[0] == write;
        if registers.segments(key).iter().any(is_first) {
            let initial = registers.history.initial_write(key);
            for &read in readers.of(initial.0) {
                if read != write {
                    self.insert(read, write, read)?;
                }
            }
        }
        Ok(())
    }

    fn insert(&mut self, from: u32, to: u32, reason: u32) -> Result<(), Contradiction> {
        let Saturation { order, open, is_open, .. } = self;
        let inserted = order.insert_and_tell(OrderEdge { from, to, reason }, |node| {
            if !std::mem::replace(&mut is_open[node as usize], true) {
                open.push(node);
            }
        });
        match inserted {
            Inserted::Cycle => Err(Contradiction),
            Inserted::New | Inserted::Implied => Ok(()),
        }
    }

    /// Gives the shortest cycle of a contradiction, every edge derived.
    pub(crate) fn explain(&self) -> Vec<Edge> {
        let cycle = Paths::new(self.order.chains(), self.order.edges())
            .shortest_cycle(CYCLE_SEARCH_STEPS)
            .expect("a contradiction closes a cycle");
        let mut proof = Proof { saturation: self, shown: FxHashSet::default() };
        cycle.into_iter().map(|step| proof.edge(step)).collect()
    }
}

/// Writes out derivations: an edge rests on older ones.
struct Proof<'s> {
    saturation: &'s Saturation<'s>,
    shown: FxHashSet<u32>,
}

impl Proof<'_> {
    fn edge(&mut self, step: Step) -> Edge {
        let id = match step {
            Step::Run { from, to } => return Edge::given(OpId(from), OpId(to), "po"),
            Step::Edge(id) => id,
        };
        let edge = self.saturation.order.edges()[id as usize];
        let (from, to) = (OpId(edge.from), OpId(edge.to));
        match edge.reason {
            WR => Edge::given(from, to, "wr"),
            ASSUMED => Edge::given(from, to, "ww"),
            read => {
                let is_rw = edge.from == read;
                let relation = if is_rw { "rw" } else { "cf" };
                if !self.shown.insert(id) {
                    return Edge::derived(from, to, relation, Vec::new());
                }
                let because = if is_rw {
                    self.overwrites(id, read, edge.to)
                } else {
                    let mut because = self.path(id, edge.from, read);
                    because.push(Edge::given(to, OpId(read), "wr"));
                    because
                };
                Edge::derived(from, to, relation, because)
            }
        }
    }

    /// Gives the premises of a read before a write that overwrites what it read.
    fn overwrites(&mut self, id: u32, read: u32, write: u32) -> Vec<Edge> {
        let registers = self.saturation.registers;
        let source = registers.source[read as usize].get().expect("the reason is a read");
        let mut because = vec![Edge::given(source, OpId(read), "wr")];
        if registers.history.is_initial(source) {
            because.push(Edge::given(source, OpId(write), "po"));
        } else {
            because.extend(self.path(id, source.0, write));
        }
        because
    }

    /// Gives a shortest path over edges older than one.
    fn path(&mut self, id: u32, from: u32, to: u32) -> Vec<Edge> {
        let order = &self.saturation.order;
        let steps = Paths::new(order.chains(), &order.edges()[..id as usize])
            .shortest_path(from, to, usize::MAX)
            .expect("an edge rests on older ones");
        steps.into_iter().map(|step| self.edge(step)).collect()
    }
}
