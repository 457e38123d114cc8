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
//! A history is wSC if no cycle arises. The order is stored as chains and clocks and grows edge by
//! edge. Per session, the first rule inspects only the last write of x before r, since earlier ones
//! follow by program order. For a write w', the second rule inspects the last w of each session
//! before it, since the readers of an earlier w are before that one by the same rule. Only the
//! maximal ones among these writes matter; the rest follow by transitivity. An operation is
//! processed again when its clock grows by a write of its key.
//!
//! Operations are admitted one by one, in an order that extends the given one, and each is
//! saturated before the next is admitted. A forced edge then changes only the clocks of operations
//! that were admitted already, not those of the rest of the history. If a read is admitted after a
//! write that overwrites its source, the edge from the read to that write is added at once.
//!
//! Every edge stores the read that is its reason, and depends only on older edges, so a cycle
//! unfolds into a proof.
//!
//! Assumed edges can be added ([`Saturation::put`]): one case of a case split.
//!
//! # Store buffers
//! wTSO (Definition 18) is the same with two layers ([`crate::store_order::layers`]), `whb_ppo` and
//! `whb_poloc`. Each is saturated by the two rules, and the pairs of writes of one variable that
//! one layer orders are added to the other: for each write the last one of each chain before it.
//! Such an edge depends on the edges that the other layer had when it was added.

use std::iter::successors;

use consistory_history::{KeyId, OpId};
use consistory_order::{EdgeId, Inserted, Mark};
use consistory_verdict::{Budget, Edge, Stopped};
use rustc_hash::FxHashSet;

use crate::order::{Edge as OrderEdge, PathStep, Paths};
use crate::reason::Reason;
use crate::registers::Registers;
use crate::store_order::agenda::Agenda;
use crate::store_order::latest::Latest;
use crate::store_order::layers::{Layer, Layers, is_given};

/// Steps after which the search for a shortest cycle returns the best cycle found so far.
const CYCLE_SEARCH_STEPS: u64 = 5_000_000;

/// Operations processed between two checks of the budget.
const OPS_PER_BUDGET_CHECK: u32 = 4_096;

/// Number of operations up to which a saturation checks its invariants in debug builds.
const MAX_CHECKED_OPS: usize = 16;

/// The saturated order of a history.
#[derive(Clone)]
pub(crate) struct Saturation<'a> {
    pub(crate) registers: &'a Registers<'a>,
    pub(crate) readers: &'a Readers,
    /// The relations that must be acyclic; the first contains the whole program order.
    pub(crate) layers: Vec<Saturated>,
    /// Operations to process again.
    agenda: Agenda,
    /// Layer that has a cycle, if any.
    pub(crate) cyclic: usize,
}

#[derive(Clone)]
pub(crate) struct Saturated {
    pub(crate) layer: Layer,
    /// Number of edges of the other layer at the time when each edge was added.
    pub(crate) seen_of_other: Vec<u32>,
    latest: Latest,
    overwritten: Overwritten,
}

/// Writes that overwrite the source of readers that are not yet admitted.
#[derive(Clone)]
struct Overwritten {
    /// Newest entry of each write, initial writes included.
    newest: Vec<u32>,
    entries: Vec<Overwrite>,
}

#[derive(Clone, Copy)]
struct Overwrite {
    by: OpId,
    /// Next older entry of the same write.
    following: u32,
}

/// No entry.
const END: u32 = u32::MAX;

impl Overwritten {
    fn push(&mut self, of: OpId, by: OpId) {
        let newest = &mut self.newest[of.index()];
        if self.entries.get(*newest as usize).is_none_or(|newest| newest.by != by) {
            self.entries.push(Overwrite { by, following: *newest });
            *newest = self.entries.len() as u32 - 1;
        }
    }
}

/// A state that a saturation can be restored to.
#[derive(Clone, Copy)]
pub(crate) struct Point([Option<Mark>; 2]);

/// Error: an edge closed a cycle.
#[derive(Debug)]
pub(crate) struct Contradiction;

/// Last read of each write, initial writes included, in each session; earlier reads precede it in
/// program order.
pub(crate) struct Readers {
    /// First of these readers, for each write.
    first: Vec<OpId>,
    /// Next reader of the same write, in a later session.
    next: Vec<OpId>,
}

/// The operation is not a read, or its session reads the same write later.
const NOT_LAST: OpId = OpId(u32::MAX - 1);

/// No further reader.
const NO_READER: OpId = OpId(u32::MAX);

impl Readers {
    pub(crate) fn new(registers: &Registers<'_>) -> Self {
        let history = registers.history;
        let mut first = vec![NO_READER; history.len() + history.key_count()];
        let mut next = vec![NOT_LAST; history.len()];
        let mut session_end = history.len() as u32;
        for session in history.sessions().rev() {
            for read in history.session_ops(session).rev() {
                let Some(write) = registers.source[read.index()].get() else { continue };
                let first = &mut first[write.index()];
                if first.0 >= session_end {
                    next[read.index()] = std::mem::replace(first, read);
                }
            }
            session_end -= history.session_ops(session).len() as u32;
        }
        Readers { first, next }
    }

    pub(crate) fn of(&self, write: OpId) -> impl Iterator<Item = OpId> {
        let some = |read: OpId| (read != NO_READER).then_some(read);
        successors(some(self.first[write.index()]), move |&read| some(self.next[read.index()]))
    }

    /// Returns whether an operation is the last read of a write in its session.
    fn is_last(&self, read: OpId) -> bool {
        self.next[read.index()] != NOT_LAST
    }
}

impl<'a> Saturation<'a> {
    /// Starts from acyclic layers.
    pub(crate) fn new(
        registers: &'a Registers<'a>,
        readers: &'a Readers,
        Layers { layers, order }: Layers,
    ) -> Self {
        let agenda = Agenda::new(order, layers.len());
        let keys = registers.history.key_count();
        let writes = registers.history.len() + keys;
        let saturated = |layer: Layer| Saturated {
            seen_of_other: vec![0; layer.order.edges().len()],
            latest: Latest::new(layer.order.chains(), &layer.segments, keys),
            overwritten: Overwritten { newest: vec![END; writes], entries: Vec::new() },
            layer,
        };
        let layers = layers.into_iter().map(saturated).collect();
        Saturation { registers, readers, layers, agenda, cyclic: 0 }
    }

    /// Returns the layer that contains the whole program order.
    pub(crate) fn layer(&self) -> &Layer {
        &self.layers[0].layer
    }

    /// Admits all operations and applies the rules until nothing changes.
    pub(crate) fn saturate(
        &mut self,
        budget: &Budget,
    ) -> Result<Result<(), Contradiction>, Stopped> {
        let mut steps = 0u32;
        loop {
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(OPS_PER_BUDGET_CHECK) {
                budget.check()?;
            }
            let done = match self.agenda.take() {
                Some((op, at)) => self.apply_rules(at, op),
                None => match self.agenda.next() {
                    Some(op) => self.admit(op),
                    None => {
                        if cfg!(debug_assertions) && self.registers.history.len() <= MAX_CHECKED_OPS
                        {
                            self.check_invariants();
                        }
                        return Ok(Ok(()));
                    }
                },
            };
            if let Err(contradiction) = done {
                self.agenda.clear();
                return Ok(Err(contradiction));
            }
        }
    }

    /// Panics unless the rules have nothing more to add.
    ///
    /// This inspects every read with every write of its key, whereas the rules inspect the nearest
    /// writes only.
    pub(crate) fn check_invariants(&self) {
        let Registers { history, source, .. } = self.registers;
        for Saturated { layer: Layer { order, .. }, .. } in &self.layers {
            for read in history.ops() {
                let Some(source) = source[read.index()].get() else { continue };
                let key = self.registers.read_key(read);
                let is_initial = history.is_initial(source);
                let is_other = |&write: &OpId| {
                    self.registers.written_key(write) == Some(key)
                        && write != read
                        && write != source
                };
                for write in history.ops().filter(is_other) {
                    if order.before(write, read) {
                        assert!(
                            !is_initial && order.before(write, source),
                            "cf {write:?} {read:?}"
                        );
                    }
                    if is_initial || order.before(source, write) {
                        assert!(order.before(read, write), "rw {read:?} {write:?}");
                    }
                }
            }
        }
    }

    /// Admits an operation.
    fn admit(&mut self, op: OpId) -> Result<(), Contradiction> {
        for at in 0..self.layers.len() {
            self.layers[at].layer.order.admit(op);
            self.agenda.add(op, at);
        }
        let Some(source) = self.registers.source[op.index()].get() else { return Ok(()) };
        if !self.readers.is_last(op) {
            return Ok(());
        }
        for at in 0..self.layers.len() {
            let mut next = self.layers[at].overwritten.newest[source.index()];
            while let Some(&Overwrite { by, following }) =
                self.layers[at].overwritten.entries.get(next as usize)
            {
                if by != op {
                    self.insert(at, op, by, Reason::Read(op))?;
                }
                next = following;
            }
        }
        Ok(())
    }

    /// Puts a write before another of its key, if the order allows it.
    pub(crate) fn put(&mut self, first: OpId, second: OpId) -> Result<(), Contradiction> {
        (0..self.layers.len())
            .try_for_each(|at| self.insert(at, first, second, Reason::Assumed))
            .inspect_err(|_| self.agenda.clear())
    }

    /// Puts a write after all others of its key, since its value is the final one.
    pub(crate) fn put_last(&mut self, last: OpId) -> Result<(), Contradiction> {
        let Some(key) = self.registers.written_key(last) else { return Ok(()) };
        for at in 0..self.layers.len() {
            for i in 0..self.layers[at].layer.segments.of(key).len() {
                let segments = &self.layers[at].layer.segments;
                let write = segments.writes(segments.of(key)[i]).last().copied();
                if let Some(write) = write.filter(|&write| write != last)
                    && let Err(contradiction) = self.insert(at, write, last, Reason::Final)
                {
                    self.agenda.clear();
                    return Err(contradiction);
                }
            }
        }
        Ok(())
    }

    /// Returns a point to which `undo` can return. The order must be saturated.
    pub(crate) fn mark(&mut self) -> Point {
        let mut marks = [None; 2];
        for (mark, layer) in marks.iter_mut().zip(&mut self.layers) {
            *mark = Some(layer.layer.order.mark());
        }
        Point(marks)
    }

    /// Undoes everything added since a point; later points become invalid.
    pub(crate) fn undo(&mut self, point: Point) {
        for (mark, layer) in point.0.into_iter().zip(&mut self.layers) {
            layer.layer.order.undo(mark.expect("each layer was marked"));
            layer.seen_of_other.truncate(layer.layer.order.edges().len());
        }
    }

    /// Lists the pairs that the rules added, each once.
    pub(crate) fn added(&self) -> Vec<(OpId, OpId)> {
        let edges = || {
            let edges = self.layers.iter().flat_map(|layer| layer.layer.order.edges());
            edges.filter(|edge| !is_given(edge))
        };
        // Sorted by start in linear time, then by end within each start.
        let mut ends = vec![0u32; self.registers.history.len() + 1];
        edges().for_each(|edge| ends[edge.from.index() + 1] += 1);
        for op in 1..ends.len() {
            ends[op] += ends[op - 1];
        }
        let mut pairs = vec![(OpId(0), OpId(0)); ends[ends.len() - 1] as usize];
        for edge in edges() {
            let end = &mut ends[edge.from.index()];
            pairs[*end as usize] = (edge.from, edge.to);
            *end += 1;
        }
        pairs.chunk_by_mut(|a, b| a.0 == b.0).for_each(<[_]>::sort_unstable);
        pairs.dedup();
        pairs
    }

    fn apply_rules(&mut self, at: usize, op: OpId) -> Result<(), Contradiction> {
        if let Some(source) = self.registers.source[op.index()].get() {
            self.apply_cf(at, op, source)?;
        }
        match self.registers.written_key(op) {
            Some(key) => self.apply_rw(at, key, op),
            None => Ok(()),
        }
    }

    /// Finds the latest writes of a key before an operation, and returns their number.
    fn find_latest(&mut self, at: usize, key: KeyId, op: OpId) -> usize {
        let Saturated { layer: Layer { order, segments, .. }, latest, .. } = &mut self.layers[at];
        latest.find(order, segments, key, op).len()
    }

    /// Adds `cf`: the writes before a read come before its source.
    fn apply_cf(&mut self, at: usize, read: OpId, source: OpId) -> Result<(), Contradiction> {
        let recorded = self.registers.history.len() as u32;
        for i in 0..self.find_latest(at, self.registers.read_key(read), read) {
            let write = self.layers[at].latest.writes[i];
            if source.0 >= recorded {
                // The initial write precedes every write, and so does the read.
                self.insert(at, read, write, Reason::Read(read))?;
            } else if write != source {
                self.insert(at, write, source, Reason::Read(read))?;
            }
        }
        Ok(())
    }

    /// Adds `rw`: the readers of the writes before a write come before it.
    fn apply_rw(&mut self, at: usize, key: KeyId, write: OpId) -> Result<(), Contradiction> {
        let found = self.find_latest(at, key, write);
        for i in 0..found {
            let overwritten = self.layers[at].latest.writes[i];
            self.put_readers_before(at, overwritten, write)?;
            if self.layers.len() > 1 {
                self.insert(1 - at, overwritten, write, Reason::OtherLayer)?;
            }
        }
        // The initial write precedes every write. Its readers are ordered by way of the first other
        // write.
        if found == 0 {
            let initial = self.registers.history.initial_write(key);
            self.put_readers_before(at, initial, write)?;
        }
        Ok(())
    }

    /// Puts the readers of a write before a write that overwrites it, or registers this for readers
    /// that are not yet admitted.
    fn put_readers_before(
        &mut self,
        at: usize,
        overwritten: OpId,
        write: OpId,
    ) -> Result<(), Contradiction> {
        let readers = self.readers;
        let mut are_all_here = true;
        for read in readers.of(overwritten) {
            if !self.layers[at].layer.order.is_admitted(read) {
                are_all_here = false;
            } else if read != write {
                self.insert(at, read, write, Reason::Read(read))?;
            }
        }
        if !are_all_here {
            self.layers[at].overwritten.push(overwritten, write);
        }
        Ok(())
    }

    fn insert(
        &mut self,
        at: usize,
        from: OpId,
        to: OpId,
        reason: Reason,
    ) -> Result<(), Contradiction> {
        let others = match self.layers.len() {
            1 => 0,
            _ => self.layers[1 - at].layer.order.edges().len() as u32,
        };
        let Saturated { layer: Layer { order, segments, .. }, seen_of_other, latest, .. } =
            &mut self.layers[at];
        let (agenda, registers) = (&mut self.agenda, self.registers);
        let edge = OrderEdge { from, to, reason: reason.pack() };
        // An operation must be processed again if there is another write of its key before it.
        let inserted = order.insert_and_tell(edge, |node, growth| {
            if let Some(key) = registers.accessed_key(node)
                && growth.iter().any(|&growth| latest.may_gain(segments, key, growth))
            {
                agenda.add(node, at);
            }
        });
        if inserted != Inserted::Implied {
            seen_of_other.push(others);
        }
        match inserted {
            Inserted::Cycle => {
                self.cyclic = at;
                Err(Contradiction)
            }
            Inserted::New | Inserted::Implied => Ok(()),
        }
    }

    /// Returns the shortest cycle of a contradiction, with a derivation of every edge.
    pub(crate) fn explain(&self) -> Vec<Edge> {
        let order = &self.layers[self.cyclic].layer.order;
        let cycle = Paths::new(order.chains(), order.edges())
            .shortest_cycle(CYCLE_SEARCH_STEPS)
            .expect("a contradiction closes a cycle");
        let mut proof = SaturationProof { saturation: self, shown: FxHashSet::default() };
        cycle.into_iter().map(|step| proof.edge(self.cyclic, step)).collect()
    }

    /// Returns the pattern of a contradiction.
    pub(crate) fn pattern(&self) -> &'static str {
        self.layers[self.cyclic].layer.names.cycle
    }
}

/// A rule that derives an edge from older ones.
enum Rule {
    /// The other layer has the edge.
    OtherLayer,
    /// The read comes before a write that overwrites its source.
    Overwrites { read: OpId },
    /// A write before the read comes before its source.
    Conflicts { read: OpId },
}

/// Writes out derivations: an edge depends on older ones.
struct SaturationProof<'s> {
    saturation: &'s Saturation<'s>,
    shown: FxHashSet<(usize, EdgeId)>,
}

impl SaturationProof<'_> {
    fn edge(&mut self, at: usize, step: PathStep) -> Edge {
        let saturated = &self.saturation.layers[at];
        let Layer { order, names, .. } = &saturated.layer;
        let id = match step {
            PathStep::Run { from, to } => return Edge::given(from, to, names.run),
            PathStep::Edge(id) => id,
        };
        let edge = order.edges()[id.index()];
        let (from, to) = (edge.from, edge.to);
        let (relation, rule) = match edge.reason.unpack() {
            Reason::Wr => return Edge::given(from, to, names.wr),
            Reason::Ppo => return Edge::given(from, to, names.run),
            Reason::Assumed => return Edge::given(from, to, "ww"),
            Reason::Final => return Edge::given(from, to, "final"),
            Reason::OtherLayer => ("ww", Rule::OtherLayer),
            Reason::Read(read) if edge.from == read => ("rw", Rule::Overwrites { read }),
            Reason::Read(read) => ("cf", Rule::Conflicts { read }),
        };
        if !self.shown.insert((at, id)) {
            return Edge::derived(from, to, relation, Vec::new());
        }
        let because = match rule {
            Rule::OtherLayer => {
                let known = saturated.seen_of_other[id.index()];
                self.path(1 - at, known, edge.from, edge.to)
            }
            Rule::Overwrites { read } => self.overwrites(at, id, read, edge.to),
            Rule::Conflicts { read } => {
                let mut because = self.path(at, id.0, edge.from, read);
                because.push(Edge::given(to, read, "wr"));
                because
            }
        };
        Edge::derived(from, to, relation, because)
    }

    /// Returns the premises of an edge from a read to a write that overwrites its source.
    fn overwrites(&mut self, at: usize, id: EdgeId, read: OpId, write: OpId) -> Vec<Edge> {
        let registers = self.saturation.registers;
        let source = registers.source[read.index()].get().expect("the reason is a read");
        let mut because = vec![Edge::given(source, read, "wr")];
        if registers.history.is_initial(source) {
            let initial = self.saturation.layers[at].layer.names.initial;
            because.push(Edge::given(source, write, initial));
        } else {
            because.extend(self.path(at, id.0, source, write));
        }
        because
    }

    /// Returns a shortest path over the first edges of a layer.
    fn path(&mut self, at: usize, edges: u32, from: OpId, to: OpId) -> Vec<Edge> {
        let order = &self.saturation.layers[at].layer.order;
        let steps = Paths::new(order.chains(), &order.edges()[..edges as usize])
            .shortest_path(from, to, usize::MAX)
            .expect("an edge rests on older ones");
        steps.into_iter().map(|step| self.edge(at, step)).collect()
    }
}
