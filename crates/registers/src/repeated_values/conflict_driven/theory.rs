//! Saturation as the theory of a SAT solver: it grows and shrinks with the solver's trail.
//!
//! The order of each layer ([`crate::store_order::layers`]) is kept as chains and clocks. When a
//! read gets a source, the source is put before the read, and the two rules of saturation apply
//! ([`crate::store_order::saturation`]): a write before the read comes before its source, and a
//! write that overwrites the source comes after the read. An operation is processed again when its
//! clock learns of another write of its key. A cycle is a conflict.
//!
//! ```text
//!   w ────▶ w' ────▶ r     w cannot be the source of r, nor can a write that is after r
//! ```
//!
//! Candidates ruled out in this way are propagated to the solver at once. The explanation of a
//! propagation or a conflict consists of the few choices on which it depends, because every edge
//! stores its reason and depends only on older edges.

use batsat::theory::TheoryArg;
use batsat::{Lit, Theory, lbool};
use consistory_history::{KeyId, OpId};
use consistory_order::{EdgeId, Growth, Inserted, Mark};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::order::Edge;
use crate::reads_from::Source;
use crate::reason::Reason;
use crate::registers::{Registers, Segments};
use crate::store_order::agenda::Agenda;
use crate::store_order::layers::{Layer, Layers, Memory};
use crate::store_order::reasons::fewest_edges;

/// The operation is not an open read.
const NONE: u32 = u32::MAX;

/// Meaning of a literal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// A read reads from a write.
    Source { read: OpId, write: OpId },
    /// A write is the last of its key.
    Last { write: OpId },
}

/// Reason of an edge.
#[derive(Clone, Copy, Debug)]
enum TheoryReason {
    Given,
    /// The edge leads from a read's source to the read.
    Source(OpId),
    /// The edge leads to the last write of a key.
    Last(Option<Lit>),
    /// The edge leads from this read to a write that overwrites its source.
    Overwritten(OpId),
    /// The edge leads from a write before this read to the read's source.
    Seen(OpId),
    /// The other layer orders the two operations by its first edges, as many as given.
    Other(u32),
}

/// A layer with the reasons of its edges.
struct Explained {
    layer: Layer,
    why: Vec<TheoryReason>,
}

/// An open read and its candidates.
pub(super) struct OpenRead {
    pub(super) read: OpId,
    pub(super) candidates: Vec<(OpId, Lit)>,
}

/// Reason why a write cannot be the source of a read: by the first edges of a layer, the write is
/// before another write that is before the read, or the read is before the write.
#[derive(Clone, Copy)]
struct Out {
    at: usize,
    edges: u32,
    read: OpId,
    write: OpId,
    between: Option<OpId>,
}

/// State of the theory at the start of a decision level.
struct SolverLevel {
    literals: usize,
    sources: usize,
    marks: Vec<Mark>,
}

/// An edge closed a cycle in a layer.
struct Conflict {
    at: usize,
}

pub(super) struct Saturated<'a> {
    registers: &'a Registers<'a>,
    memory: Memory,
    layers: Vec<Explained>,
    /// Meaning of each literal that stands for a choice.
    meanings: FxHashMap<Lit, Meaning>,
    reads: Vec<OpenRead>,
    /// Index of each operation among the open reads.
    number: Vec<u32>,
    /// Source of each read, if known, and the literal that set it.
    source: Vec<Source>,
    by: Vec<Option<Lit>>,
    /// Reads known to read from each write, initial writes included.
    readers: Vec<Vec<OpId>>,
    /// Reads that got a source, newest last.
    trail: Vec<OpId>,
    literals: usize,
    levels: Vec<SolverLevel>,
    /// Operations to process.
    agenda: Agenda,
    told: FxHashMap<Lit, Out>,
    latest: Vec<OpId>,
    explanation: Vec<Lit>,
    /// Source of every read in the last model.
    model: Vec<Source>,
    /// All propagations and conflicts, as clauses.
    pub(super) lemmas: Vec<Vec<Lit>>,
}

impl<'a> Saturated<'a> {
    /// Starts from the determined sources. Returns nothing if they are contradictory.
    pub(super) fn new(
        registers: &'a Registers<'a>,
        memory: Memory,
        layers: Layers,
        reads: Vec<OpenRead>,
        meanings: FxHashMap<Lit, Meaning>,
    ) -> Option<Self> {
        let history = registers.history;
        let (ops, writes) = (history.len(), history.len() + history.key_count());
        let mut number = vec![NONE; ops];
        for (i, open) in (0..).zip(&reads) {
            number[open.read.index()] = i;
        }
        let agenda = Agenda::new(layers.order.clone(), layers.layers.len());
        let explained = |layer: Layer| Explained {
            why: vec![TheoryReason::Given; layer.order.edges().len()],
            layer,
        };
        let mut theory = Saturated {
            registers,
            memory,
            layers: layers.admit_all().into_iter().map(explained).collect(),
            meanings,
            reads,
            number,
            source: vec![Source::NONE; ops],
            by: vec![None; ops],
            readers: vec![Vec::new(); writes],
            trail: Vec::new(),
            literals: 0,
            levels: Vec::new(),
            agenda,
            told: FxHashMap::default(),
            latest: Vec::new(),
            explanation: Vec::new(),
            model: Vec::new(),
            lemmas: Vec::new(),
        };
        for read in history.ops() {
            if let Some(write) = registers.source[read.index()].get() {
                theory.set_source(read, write, None).ok()?;
            }
        }
        for at in 0..theory.layers.len() {
            for op in history.ops().filter(|&op| registers.accessed_key(op).is_some()) {
                theory.agenda.add(op, at);
            }
        }
        theory.propagate_all(&mut |_, _| ()).ok()?;
        Some(theory)
    }

    /// Makes the only candidate the last write of its key. Returns whether that is possible.
    pub(super) fn put_last(&mut self, write: OpId) -> bool {
        self.set_last(write, None).is_ok() && self.propagate_all(&mut |_, _| ()).is_ok()
    }

    /// Lists the candidates that the determined sources rule out.
    pub(super) fn out_at_first(&mut self) -> Vec<Lit> {
        let mut out = Vec::new();
        for number in 0..self.reads.len() {
            for at in 0..self.layers.len() {
                self.find_out(at, self.reads[number].read, &mut |lit, _| out.push(lit));
            }
        }
        out
    }

    /// Returns the literal for a read and its source.
    pub(super) fn literal(&self, read: OpId, write: OpId) -> Option<Lit> {
        let open = self.reads.get(self.number[read.index()] as usize)?;
        open.candidates.iter().find(|&&(other, _)| other == write).map(|&(_, lit)| lit)
    }

    /// Returns the source of every read in the last model.
    pub(super) fn model(&self) -> &[Source] {
        &self.model
    }

    pub(super) fn meaning(&self, lit: Lit) -> Option<Meaning> {
        self.meanings.get(&lit).copied()
    }

    fn assume(&mut self, lit: Lit) -> Result<(), Conflict> {
        match self.meaning(lit) {
            // A second source changes nothing: fewer edges are easier to satisfy.
            Some(Meaning::Source { read, write }) if self.source[read.index()].get().is_none() => {
                self.set_source(read, write, Some(lit))
            }
            Some(Meaning::Last { write }) => self.set_last(write, Some(lit)),
            _ => Ok(()),
        }
    }

    fn set_last(&mut self, last: OpId, lit: Option<Lit>) -> Result<(), Conflict> {
        let Some(key) = self.registers.written_key(last) else { return Ok(()) };
        for at in 0..self.layers.len() {
            for i in 0..self.segments(at).of(key).len() {
                let segments = self.segments(at);
                let write = segments.writes(segments.of(key)[i]).last().copied();
                if let Some(write) = write.filter(|&write| write != last) {
                    self.insert(at, write, last, TheoryReason::Last(lit))?;
                }
            }
        }
        Ok(())
    }

    fn set_source(&mut self, read: OpId, write: OpId, lit: Option<Lit>) -> Result<(), Conflict> {
        let history = self.registers.history;
        self.source[read.index()] = Source::new(write);
        self.by[read.index()] = lit;
        self.readers[write.index()].push(read);
        self.trail.push(read);
        let is_initial = history.is_initial(write);
        let is_before = !is_initial && !self.is_forwarded(read, write);
        let key = self.registers.read_key(read);
        for at in 0..self.layers.len() {
            if is_before {
                self.insert(at, write, read, TheoryReason::Source(read))?;
            }
            for i in 0..self.segments(at).of(key).len() {
                let Layer { order, segments, .. } = &self.layers[at].layer;
                let writes = segments.writes(segments.of(key)[i]);
                let first = match is_initial {
                    true => 0,
                    false => writes.partition_point(|&other| !order.before(write, other)),
                };
                // A read-modify-write does not overwrite its own source, but the next one does.
                let overwriting = writes[first..].iter().find(|&&other| other != read);
                if let Some(&overwriting) = overwriting {
                    self.insert(at, read, overwriting, TheoryReason::Overwritten(read))?;
                }
            }
            self.agenda.add(read, at);
        }
        Ok(())
    }

    /// Returns whether a read would take its value from its own session's store buffer, so that the
    /// write need not come before it in memory.
    fn is_forwarded(&self, read: OpId, write: OpId) -> bool {
        let history = self.registers.history;
        self.memory != Memory::Sequential
            && !history.is_initial(write)
            && history.session_of(write) == history.session_of(read)
    }

    fn segments(&self, at: usize) -> &Segments {
        &self.layers[at].layer.segments
    }

    /// Applies the rules until nothing changes. Propagates the candidates that are ruled out.
    fn propagate_all(&mut self, tell: &mut impl FnMut(Lit, Out)) -> Result<(), Conflict> {
        while let Some((op, at)) = self.agenda.take() {
            if self.number[op.index()] != NONE && self.source[op.index()].get().is_none() {
                self.find_out(at, op, tell);
            }
            self.apply_rules(at, op)?;
        }
        Ok(())
    }

    fn apply_rules(&mut self, at: usize, op: OpId) -> Result<(), Conflict> {
        if let Some(source) = self.source[op.index()].get() {
            let is_initial = self.registers.history.is_initial(source);
            self.find_latest(at, self.registers.read_key(op), op);
            for i in 0..self.latest.len() {
                let write = self.latest[i];
                if is_initial {
                    self.insert(at, op, write, TheoryReason::Overwritten(op))?;
                } else if write != source {
                    self.insert(at, write, source, TheoryReason::Seen(op))?;
                }
            }
        }
        let Some(key) = self.registers.written_key(op) else { return Ok(()) };
        self.find_latest(at, key, op);
        for i in 0..self.latest.len() {
            let write = self.latest[i];
            for reader in 0..self.readers[write.index()].len() {
                let read = self.readers[write.index()][reader];
                if read != op {
                    self.insert(at, read, op, TheoryReason::Overwritten(read))?;
                }
            }
            if self.layers.len() > 1 {
                let edges = self.layers[at].why.len() as u32;
                self.insert(1 - at, write, op, TheoryReason::Other(edges))?;
            }
        }
        Ok(())
    }

    /// Finds the last write of a key in each chain that is before an operation.
    fn find_latest(&mut self, at: usize, key: KeyId, op: OpId) {
        let Layer { order, segments, .. } = &self.layers[at].layer;
        self.latest.clear();
        for &segment in segments.of(key) {
            let known = match segment.chain == order.chains().chain_of(op) {
                true => order.chains().place_of(op),
                false => order.count_until(op, segment.chain),
            };
            let passed = segments.places(segment).partition_point(|&place| place < known);
            self.latest.extend(segments.writes(segment)[..passed].last());
        }
    }

    /// Propagates the candidates of an open read that a layer rules out.
    fn find_out(&mut self, at: usize, read: OpId, tell: &mut impl FnMut(Lit, Out)) {
        self.find_latest(at, self.registers.read_key(read), read);
        let history = self.registers.history;
        let Explained { layer: Layer { order, .. }, why } = &self.layers[at];
        let edges = why.len() as u32;
        for &(write, lit) in &self.reads[self.number[read.index()] as usize].candidates {
            let out = |between| Out { at, edges, read, write, between };
            let is_initial = history.is_initial(write);
            // A store buffer forwards values: a read may come before its own session's earlier
            // write.
            let is_forwarded = write < read && self.is_forwarded(read, write);
            if !is_initial && !is_forwarded && order.before(read, write) {
                tell(!lit, out(None));
                continue;
            }
            let overwrites = |&&other: &&OpId| is_initial || order.before(write, other);
            if let Some(&other) = self.latest.iter().find(overwrites) {
                tell(!lit, out(Some(other)));
            }
        }
    }

    fn insert(
        &mut self,
        at: usize,
        from: OpId,
        to: OpId,
        reason: TheoryReason,
    ) -> Result<(), Conflict> {
        let Explained { layer: Layer { order, segments, .. }, why } = &mut self.layers[at];
        let (registers, number) = (self.registers, &self.number);
        let agenda = &mut self.agenda;
        // `why` stores the reason in more detail.
        let edge = Edge { from, to, reason: Reason::Assumed.pack() };
        let inserted = order.insert_and_tell(edge, |node, growth| {
            let key = match number[node.index()] {
                NONE => registers.accessed_key(node),
                _ => Some(registers.read_key(node)),
            };
            if let Some(key) = key
                && growth.iter().any(|growth| may_gain(segments, key, growth))
            {
                agenda.add(node, at);
            }
        });
        match inserted {
            Inserted::Implied => Ok(()),
            Inserted::New => {
                why.push(reason);
                Ok(())
            }
            Inserted::Cycle => {
                why.push(reason);
                Err(Conflict { at })
            }
        }
    }

    /// Lists the literals on which a conflict depends.
    fn explain_conflict(&mut self, Conflict { at }: Conflict) {
        let edges = self.layers[at].layer.order.edges();
        let last = edges.len() - 1;
        let Edge { from, to, .. } = edges[last];
        let mut reasons =
            ChoiceReasons { theory: self, known: FxHashSet::default(), open: Vec::new() };
        reasons.add(at, EdgeId::new(last));
        if from != to {
            reasons.path(at, last as u32, to, from);
        }
        self.explanation = reasons.unfold();
    }

    fn explain_out(&mut self, Out { at, edges, read, write, between }: Out) {
        let mut reasons =
            ChoiceReasons { theory: self, known: FxHashSet::default(), open: Vec::new() };
        match between {
            None => reasons.path(at, edges, read, write),
            Some(other) => {
                if !reasons.theory.registers.history.is_initial(write) {
                    reasons.path(at, edges, write, other);
                }
                reasons.path(at, edges, other, read);
            }
        }
        self.explanation = reasons.unfold();
    }

    fn check(&mut self, solver: &mut TheoryArg<'_>) {
        let mut told: Vec<(Lit, Out)> = Vec::new();
        while self.literals < solver.model().len() {
            let lit = solver.model()[self.literals];
            self.literals += 1;
            told.clear();
            let done = self
                .assume(lit)
                .and_then(|()| self.propagate_all(&mut |lit, out| told.push((lit, out))));
            if let Err(conflict) = done {
                self.agenda.clear();
                self.explain_conflict(conflict);
                let lemma: Vec<Lit> = self.explanation.iter().map(|&lit| !lit).collect();
                solver.raise_conflict(&lemma, true);
                self.lemmas.push(lemma);
                return;
            }
            for &(lit, out) in &told {
                if solver.value(lit.var()) == lbool::new(lit.sign()) {
                    continue;
                }
                self.told.insert(lit, out);
                // The solver never asks for the reason of a literal that depends on no decision.
                if self.levels.is_empty() {
                    self.explain_propagation(lit);
                }
                if !solver.propagate(lit) {
                    return;
                }
            }
        }
    }
}

/// Returns whether a clock that grew may contain another write of a key.
fn may_gain(segments: &Segments, key: KeyId, growth: &Growth) -> bool {
    match segments.in_column(key, growth.column) {
        None => true,
        Some(None) => false,
        Some(Some(number)) => {
            let places = segments.places(segments.numbered(number));
            let had = places.partition_point(|&place| place < growth.had);
            places.get(had).is_some_and(|&place| place < growth.has)
        }
    }
}

impl Theory for Saturated<'_> {
    fn final_check(&mut self, solver: &mut TheoryArg<'_>) {
        self.check(solver);
        self.model.clone_from(&self.source);
    }

    fn partial_check(&mut self, solver: &mut TheoryArg<'_>) {
        self.check(solver);
    }

    fn create_level(&mut self) {
        let marks = self.layers.iter_mut().map(|layer| layer.layer.order.mark()).collect();
        self.levels.push(SolverLevel { literals: self.literals, sources: self.trail.len(), marks });
    }

    fn pop_levels(&mut self, n: usize) {
        let kept = self.levels.len() - n;
        let SolverLevel { literals, sources, marks } = self.levels.swap_remove(kept);
        self.levels.truncate(kept);
        self.literals = literals;
        for (layer, mark) in self.layers.iter_mut().zip(marks) {
            layer.layer.order.undo(mark);
            layer.why.truncate(layer.layer.order.edges().len());
        }
        for read in self.trail.drain(sources..).rev() {
            let write = std::mem::replace(&mut self.source[read.index()], Source::NONE);
            let write = write.get().expect("the read got a source");
            self.by[read.index()] = None;
            self.readers[write.index()].pop();
        }
    }

    fn n_levels(&self) -> usize {
        self.levels.len()
    }

    fn explain_propagation(&mut self, lit: Lit) -> &[Lit] {
        let out = self.told[&lit];
        self.explain_out(out);
        let lemma = self.explanation.iter().map(|&lit| !lit).chain([lit]).collect();
        self.lemmas.push(lemma);
        &self.explanation
    }
}

/// Unfolds edges into the literals on which they depend.
struct ChoiceReasons<'s, 'a> {
    theory: &'s Saturated<'a>,
    known: FxHashSet<(usize, EdgeId)>,
    open: Vec<(usize, EdgeId)>,
}

impl ChoiceReasons<'_, '_> {
    fn unfold(mut self) -> Vec<Lit> {
        let mut literals: Vec<Lit> = Vec::new();
        let theory = self.theory;
        while let Some((at, id)) = self.open.pop() {
            let Explained { layer, why } = &theory.layers[at];
            let edge = layer.order.edges()[id.index()];
            match why[id.index()] {
                TheoryReason::Given => {}
                TheoryReason::Source(read) => literals.extend(theory.by[read.index()]),
                TheoryReason::Last(lit) => literals.extend(lit),
                TheoryReason::Overwritten(read) => {
                    literals.extend(theory.by[read.index()]);
                    let source = theory.source[read.index()].get();
                    let source = source.expect("the edge rests on the read's source");
                    if !theory.registers.history.is_initial(source) {
                        self.path(at, id.0, source, edge.to);
                    }
                }
                TheoryReason::Seen(read) => {
                    literals.extend(theory.by[read.index()]);
                    self.path(at, id.0, edge.from, read);
                }
                TheoryReason::Other(edges) => self.path(1 - at, edges, edge.from, edge.to),
            }
        }
        literals.sort_unstable();
        literals.dedup();
        literals
    }

    fn add(&mut self, at: usize, id: EdgeId) {
        if self.known.insert((at, id)) {
            self.open.push((at, id));
        }
    }

    /// Adds the edges of a path over the first edges of a layer; such a path exists.
    fn path(&mut self, at: usize, first_edges: u32, from: OpId, to: OpId) {
        let order = &self.theory.layers[at].layer.order;
        for id in fewest_edges(order, first_edges, from, to) {
            self.add(at, id);
        }
    }
}
