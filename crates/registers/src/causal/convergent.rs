//! CCM and wCCM: convergent causal memory, decided from the views of all sessions together.
//!
//! CCM (Zennou et al., CAV 2019, section 3.2) takes the union of the views of all sessions,
//! `hb = (union of all hb_o)+`, and requires that `po | wr | pww | rw[pww]` be acyclic, where
//! `pww = (hb_WW | cf[hb])+`.
//! Only the views are a fixpoint ([`crate::causal::views`]); each further step is one pass over all
//! operations:
//!
//! 1. Build `hb` from the causal order and the pairs that the views force.
//! 2. For each read of w, find the latest writes w' of its key before it in `hb`: `cf(w', w)`.
//! 3. For each write, find the latest writes of its key before it in `hb` or `cf`: their readers
//!    come before the write (`rw`). Since `pww` is transitive, one step is enough: a reader is
//!    before the next write, and the next write is before all later ones.
//!
//! Only the maximal ones among the earlier writes of a key matter, and only the last reader of each
//! session.
//!
//! # Store buffers
//! wCCM (section 4.1) has two layers ([`crate::store_order::layers`]), each with views, `hb` and `cf` of its own, and
//! one `wpww`: the pairs of writes in `whb`, the transitive union of both, and `cf` of either layer
//! by reads of another session. A path that ends in a write uses no edge of `poloc` that is not in
//! `ppo`, because `ppo` keeps everything before a write; so `whb` is built from `ppo`, `wre` and
//! the forced pairs of both layers. The `poloc` layer then receives the pairs of writes that `whb`
//! orders.
//!
//! # Certificates
//! Consistent: the pairs that the views force, without those that follow from others. Violation: a
//! shortest cycle, with the derivation of each edge.
//!
//! Cost: about the number of operations times the number of sessions.

use crate::Judgement;
use consistory_history::{History, KeyId, OpId};
use consistory_order::{ChainId, EdgeId, topological_order};
use consistory_verdict::{Budget, Certificate, Edge, Stopped, View};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::causal::views::{Forced, Incoming, Views};
use crate::causal::{future_read, violation};
use crate::order::{ChainOrder, Cyclic, Edge as OrderEdge, PathStep, Paths};
use crate::reads_from::Source;
use crate::reason::Reason;
use crate::registers::{Registers, Segments};
use crate::store_order::cyclic_from_the_start;
use crate::store_order::latest::Latest;
use crate::store_order::layers::{Layer, Memory, Names, layers};
use crate::store_order::saturation::Readers;
use crate::threads::{in_parallel, worthy};

/// Steps after which the search for a shortest cycle returns the best cycle found so far.
const CYCLE_SEARCH_STEPS: u64 = 5_000_000;

/// Operations processed between two checks of the budget.
const OPS_PER_BUDGET_CHECK: usize = 4_096;

/// A model that combines the views of all sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConvergentModel {
    /// Convergent causal memory.
    Ccm,
    /// Weak convergent causal memory.
    Wccm,
}

/// Decides a history for a complete or partial `wr`. A certificate of consistency lists `wr` as
/// chosen.
pub(crate) fn judge(
    history: &History,
    source: &[Source],
    model: ConvergentModel,
    jobs: usize,
    budget: &Budget,
    wr: &[(OpId, OpId)],
) -> Result<Judgement, Stopped> {
    let registers = &Registers::new(history, source);
    if let Some(judgement) = future_read(registers) {
        return Ok(judgement);
    }
    let memory = match model {
        ConvergentModel::Ccm => Memory::Sequential,
        ConvergentModel::Wccm => Memory::TotalStore,
    };
    let layers = match layers(registers, memory, budget)? {
        Ok(layers) => layers,
        Err(cyclic) => return Ok(cyclic_from_the_start(&cyclic)),
    };
    let mut seen = Vec::new();
    for layer in layers.admit_all() {
        seen.push(Seen::new(registers, layer, jobs, budget)?);
    }
    Convergent { registers, readers: Readers::new(registers), layers: seen }.judge(jobs, budget, wr)
}

/// Returns CCM's `hb`, unless it has a cycle.
pub(crate) fn happens_before(
    registers: &Registers<'_>,
    layer: Layer,
    jobs: usize,
    budget: &Budget,
) -> Result<Option<ChainOrder>, Stopped> {
    let seen = [Seen::new(registers, layer, jobs, budget)?];
    let edges = Edges::of(&seen, 0).edges;
    Ok(ChainOrder::build(registers.chains(), edges).ok())
}

/// A layer with the pairs that its views force.
struct Seen {
    layer: Layer,
    views: Vec<Forced>,
    /// Index of the first pair of each view, followed by the number of all pairs.
    starts: Vec<u32>,
}

/// A step of a derivation: an edge of some relation.
#[derive(Clone, Copy)]
enum EdgeOrigin {
    /// An edge that a layer has from the start.
    Given(OrderEdge),
    /// A pair that a layer's views force, by its number.
    Forced(usize, u32),
    /// A pair of writes in `whb`.
    Union(OrderEdge),
    /// A conflict that a layer's `hb` shows.
    Conflict(usize, OrderEdge),
    /// An anti-dependency: a write overwrites the source of a read.
    Overwritten(OrderEdge),
}

/// The edges that must be acyclic, grouped by kind: given, forced, union, conflicts, overwritten.
struct Edges {
    edges: Vec<OrderEdge>,
    /// End of each group, in the order in which the groups were added.
    runs: Vec<(usize, EdgeKind)>,
}

#[derive(Clone, Copy)]
enum EdgeKind {
    Given,
    Forced(usize),
    Union,
    Conflict(usize),
    Overwritten,
}

impl Edges {
    /// Starts with the edges of a layer and the pairs that its views force.
    fn of(layers: &[Seen], at: usize) -> Self {
        let mut edges = Edges { edges: Vec::new(), runs: Vec::new() };
        edges.put(EdgeKind::Given, layers[at].layer.order.edges());
        edges.put_forced(layers, at);
        edges
    }

    fn put(&mut self, run: EdgeKind, edges: &[OrderEdge]) {
        self.edges.extend(edges);
        self.runs.push((self.edges.len(), run));
    }

    fn put_forced(&mut self, layers: &[Seen], at: usize) {
        layers[at].views.iter().for_each(|view| self.edges.extend(&view.pairs));
        self.runs.push((self.edges.len(), EdgeKind::Forced(at)));
    }

    fn why(&self, id: EdgeId) -> EdgeOrigin {
        let id = id.index();
        let at = self.runs.partition_point(|&(end, _)| end <= id);
        let start = if at == 0 { 0 } else { self.runs[at - 1].0 };
        let edge = self.edges[id];
        match self.runs[at].1 {
            EdgeKind::Given => EdgeOrigin::Given(edge),
            EdgeKind::Forced(layer) => EdgeOrigin::Forced(layer, (id - start) as u32),
            EdgeKind::Union => EdgeOrigin::Union(edge),
            EdgeKind::Conflict(layer) => EdgeOrigin::Conflict(layer, edge),
            EdgeKind::Overwritten => EdgeOrigin::Overwritten(edge),
        }
    }
}

impl Seen {
    fn new(
        registers: &Registers<'_>,
        layer: Layer,
        jobs: usize,
        budget: &Budget,
    ) -> Result<Self, Stopped> {
        let history = registers.history;
        let incoming = Incoming::new(&layer);
        let chains = layer.order.chains();
        // Chains that contain reads, by session.
        let mut reading: Vec<Vec<ChainId>> = vec![Vec::new(); history.session_count()];
        for chain in chains.ids() {
            let reads = |op: &OpId| registers.source[op.index()].get().is_some();
            if let Some(&read) = chains.members(chain).iter().find(|op| reads(op)) {
                reading[history.session_of(read).index()].push(chain);
            }
        }
        let views = in_parallel(reading.len(), worthy(registers.history, jobs), |session| {
            budget.check()?;
            let mut views = Views::new(registers, &layer, &incoming);
            let forced = reading[session].iter().map(|&chain| views.saturate(chain));
            Ok(forced.filter(|forced| !forced.pairs.is_empty()).collect::<Vec<Forced>>())
        })?;
        let views: Vec<Forced> = views.into_iter().flatten().collect();
        let mut starts = vec![0];
        for view in &views {
            starts.push(starts[starts.len() - 1] + view.pairs.len() as u32);
        }
        let pairs = u64::from(starts[views.len()]);
        budget.reserve(pairs * (size_of::<OrderEdge>() as u64 + 4 * chains.width() as u64))?;
        Ok(Seen { layer, views, starts })
    }
}

struct Convergent<'a> {
    registers: &'a Registers<'a>,
    readers: Readers,
    layers: Vec<Seen>,
}

/// The edges derived from `hb`.
#[derive(Default)]
struct Derived {
    conflicts: Vec<OrderEdge>,
    /// Edges from the latest writes before each write.
    union: Vec<OrderEdge>,
    overwritten: Vec<OrderEdge>,
}

impl Convergent<'_> {
    fn judge(
        &self,
        jobs: usize,
        budget: &Budget,
        wr: &[(OpId, OpId)],
    ) -> Result<Judgement, Stopped> {
        let mut happens_before = Vec::new();
        for at in 0..self.layers.len() {
            match self.build(at, Edges::of(&self.layers, at)) {
                Ok(order) => happens_before.push(order),
                Err(judgement) => return Ok(judgement),
            }
        }
        let buffered = self.layers.len() > 1;
        let union = if buffered {
            let mut edges = Edges::of(&self.layers, 0);
            edges.put_forced(&self.layers, 1);
            match self.build(0, edges) {
                Ok(order) => Some(order),
                Err(judgement) => return Ok(judgement),
            }
        } else {
            None
        };
        let union = union.as_ref().unwrap_or(&happens_before[0]);
        let mut conflicts = Vec::new();
        for (at, order) in happens_before.iter().enumerate() {
            let derive = |latest: &mut LatestQuery<'_>, op: OpId, derived: &mut Derived| {
                self.derive_cf(latest, op, derived);
            };
            let derived = self.derive(at, order, jobs, budget, derive)?;
            conflicts.push(derived.conflicts);
        }
        let derive = |latest: &mut LatestQuery<'_>, op: OpId, derived: &mut Derived| {
            self.derive_rw(latest, op, derived);
        };
        let mut derived = self.derive(0, union, jobs, budget, derive)?;
        for conflict in conflicts.iter().flatten() {
            let OrderEdge { from, to, reason } = *conflict;
            self.put_readers_before(from, to, Some(reason.read()), &mut derived.overwritten);
        }
        for at in 0..self.layers.len() {
            budget.check()?;
            let mut edges = Edges::of(&self.layers, at);
            match at {
                0 if buffered => edges.put_forced(&self.layers, 1),
                0 => {}
                _ => edges.put(EdgeKind::Union, &derived.union),
            }
            for (at, conflicts) in conflicts.iter().enumerate() {
                edges.put(EdgeKind::Conflict(at), conflicts);
            }
            edges.put(EdgeKind::Overwritten, &derived.overwritten);
            if topological_order(self.chains(at), &edges.edges).is_none() {
                return Ok(self.explain(at, &edges, &happens_before));
            }
        }
        let views = (0..self.layers.len()).flat_map(|at| self.certificate(at)).collect();
        Ok(Judgement::Consistent(Certificate::Views { views, wr: wr.to_vec() }))
    }

    fn chains(&self, at: usize) -> &crate::order::Chains {
        self.layers[at].layer.order.chains()
    }

    /// Builds an order, or explains why there is none.
    fn build(&self, at: usize, edges: Edges) -> Result<ChainOrder, Judgement> {
        let Edges { edges, runs } = edges;
        ChainOrder::build(self.chains(at).clone(), edges).map_err(|cyclic| {
            let Cyclic { edges, .. } = *cyclic;
            self.explain(at, &Edges { edges, runs }, &[])
        })
    }

    /// Derives the edges of every operation.
    fn derive(
        &self,
        at: usize,
        order: &ChainOrder,
        jobs: usize,
        budget: &Budget,
        derive: impl Fn(&mut LatestQuery<'_>, OpId, &mut Derived) + Sync,
    ) -> Result<Derived, Stopped> {
        let size = self.registers.history.len();
        let layer = &self.layers[at].layer;
        // A chunk of operations should take longer than its setup.
        let length = OPS_PER_BUDGET_CHECK.max(layer.segments.len());
        let pieces =
            in_parallel(size.div_ceil(length), worthy(self.registers.history, jobs), |chunk| {
                budget.check()?;
                let keys = self.registers.history.key_count();
                let latest = Latest::new(order.chains(), &layer.segments, keys);
                let mut latest = LatestQuery { order, segments: &layer.segments, latest };
                let mut derived = Derived::default();
                for op in chunk * length..((chunk + 1) * length).min(size) {
                    derive(&mut latest, OpId::new(op), &mut derived);
                }
                Ok(derived)
            })?;
        let mut all = Derived::default();
        for piece in pieces {
            all.conflicts.extend(piece.conflicts);
            all.union.extend(piece.union);
            all.overwritten.extend(piece.overwritten);
        }
        Ok(all)
    }

    /// Adds `cf`: the latest writes before a read come before the read's source.
    fn derive_cf(&self, latest: &mut LatestQuery<'_>, read: OpId, derived: &mut Derived) {
        let history = self.registers.history;
        let Some(source) = self.registers.source[read.index()].get() else { return };
        // A write before a read of the initial value closes a cycle anyway.
        if history.is_initial(source)
            || (self.layers.len() > 1 && history.session_of(source) == history.session_of(read))
        {
            return;
        }
        let order = latest.order;
        for &write in latest.find(self.registers.read_key(read), read) {
            if write != source && !order.before(write, source) {
                derived.conflicts.push(OrderEdge {
                    from: write,
                    to: source,
                    reason: Reason::Read(read).pack(),
                });
            }
        }
    }

    /// Adds `rw`: the readers of the latest writes before a write come before that write.
    fn derive_rw(&self, latest: &mut LatestQuery<'_>, write: OpId, derived: &mut Derived) {
        let Some(key) = self.registers.written_key(write) else { return };
        let found = latest.find(key, write);
        for &overwritten in found {
            self.put_readers_before(overwritten, write, None, &mut derived.overwritten);
            if self.layers.len() > 1 {
                let (from, to) = (overwritten, write);
                derived.union.push(OrderEdge { from, to, reason: Reason::OtherLayer.pack() });
            }
        }
        // The initial write precedes every write. Its readers are ordered by way of the first other
        // write.
        if found.is_empty() {
            let initial = self.registers.history.initial_write(key);
            self.put_readers_before(initial, write, None, &mut derived.overwritten);
        }
    }

    /// Puts the readers of a write before the next write. The reason of each edge is the read that
    /// causes the conflict of the two writes or, without a conflict, the reader itself.
    fn put_readers_before(
        &self,
        overwritten: OpId,
        write: OpId,
        conflict: Option<OpId>,
        edges: &mut Vec<OrderEdge>,
    ) {
        let readers = self.readers.of(overwritten).filter(|&read| read != write);
        edges.extend(readers.map(|read| {
            let reason = Reason::Read(conflict.unwrap_or(read)).pack();
            OrderEdge { from: read, to: write, reason }
        }));
    }

    /// Returns the forced pairs of a layer's views that do not follow from other pairs, together
    /// with the pairs that the view itself needs.
    fn certificate(&self, at: usize) -> Vec<View> {
        let Seen { layer, views, .. } = &self.layers[at];
        let history = self.registers.history;
        let mut listed: FxHashSet<(OpId, OpId)> = FxHashSet::default();
        let mut certificate: Vec<View> = Vec::new();
        for view in views {
            let own = layer.order.chains().members(view.chain)[0];
            let session = history.session_of(own);
            if certificate.last().is_none_or(|last| last.session != session) {
                let relation = layer.names.run.into();
                certificate.push(View { session, relation, pairs: Vec::new() });
            }
            let pairs = &mut certificate.last_mut().expect("one was pushed").pairs;
            for (pair, &sinks) in view.pairs.iter().zip(&view.sinks) {
                let is_new = listed.insert((pair.from, pair.to));
                if sinks || is_new {
                    pairs.push((pair.from, pair.to));
                }
            }
        }
        certificate.retain(|view| !view.pairs.is_empty());
        certificate
    }

    /// Returns a shortest cycle with a derivation of every edge.
    fn explain(&self, at: usize, edges: &Edges, happens_before: &[ChainOrder]) -> Judgement {
        let cycle = Paths::new(self.chains(at), &edges.edges)
            .shortest_cycle(CYCLE_SEARCH_STEPS)
            .expect("what has no topological order has a cycle");
        let mut proof = ConvergentProof { of: self, happens_before, shown: FxHashSet::default() };
        let cycle = cycle.into_iter().map(|step| proof.step(at, step, edges)).collect();
        let pattern = match self.layers.len() {
            1 => "CyclicPWW",
            _ => self.layers[at].layer.names.cycle,
        };
        violation(pattern, cycle, None)
    }
}

/// Returns an edge of the layer's given relation.
fn given_edge(edge: OrderEdge, names: &Names) -> Edge {
    let relation = match edge.reason.unpack() {
        Reason::Ppo => names.run,
        Reason::Wr => names.wr,
        _ => unreachable!("nothing is derived from the start"),
    };
    Edge::given(edge.from, edge.to, relation)
}

/// Finds the latest writes in an order.
struct LatestQuery<'a> {
    order: &'a ChainOrder,
    segments: &'a Segments,
    latest: Latest,
}

impl LatestQuery<'_> {
    /// Returns the latest writes of a key before an operation.
    fn find(&mut self, key: KeyId, op: OpId) -> &[OpId] {
        self.latest.find(self.order, self.segments, key, op)
    }
}

/// Writes out the derivations of a cycle's edges.
struct ConvergentProof<'a> {
    of: &'a Convergent<'a>,
    /// `hb` of each layer, if acyclic.
    happens_before: &'a [ChainOrder],
    /// Forced pairs, by layer and number, whose derivation has been written out.
    shown: FxHashSet<(usize, u32)>,
}

impl ConvergentProof<'_> {
    /// Returns a step of a path over some edges in the chains of a layer.
    fn step(&mut self, at: usize, step: PathStep, edges: &Edges) -> Edge {
        let names = self.of.layers[at].layer.names;
        match step {
            PathStep::Run { from, to } => Edge::given(from, to, names.run),
            PathStep::Edge(id) => self.edge(at, edges.why(id)),
        }
    }

    fn edge(&mut self, at: usize, why: EdgeOrigin) -> Edge {
        let names = self.of.layers[at].layer.names;
        match why {
            EdgeOrigin::Given(edge) => given_edge(edge, names),
            EdgeOrigin::Forced(layer, id) => self.forced(layer, id),
            EdgeOrigin::Union(edge) => {
                let because = self.union_path(edge.from, edge.to);
                Edge::derived(edge.from, edge.to, "ww", because)
            }
            EdgeOrigin::Conflict(layer, edge) => self.conflict(layer, edge),
            EdgeOrigin::Overwritten(edge) => self.overwritten(at, edge),
        }
    }

    /// Returns a forced pair, derived from the causal order and from pairs of the view found
    /// earlier.
    ///
    /// Several reads may force the same pair, the later ones by way of the pair itself. The
    /// derivation uses the read that forced it first, so a pair is never derived from itself.
    fn forced(&mut self, layer: usize, id: u32) -> Edge {
        let Seen { layer: Layer { order, names, .. }, views, starts } = &self.of.layers[layer];
        let relation = names.forced;
        let view = starts.partition_point(|&start| start <= id) - 1;
        let (start, pairs) = (starts[view], &views[view].pairs);
        let mut first: FxHashMap<(OpId, OpId), usize> = FxHashMap::default();
        for (place, pair) in pairs.iter().enumerate() {
            first.entry((pair.from, pair.to)).or_insert(place);
        }
        let first = |pair: OrderEdge| first[&(pair.from, pair.to)];
        let pair = pairs[(id - start) as usize];
        let id = start + first(pair) as u32;
        if !self.shown.insert((layer, id)) {
            return Edge::derived(pair.from, pair.to, relation, Vec::new());
        }
        let given = order.edges().len();
        let mut edges = order.edges().to_vec();
        edges.extend(pairs);
        // A proof can be as deep as the view is long, so this is not recursive.
        let open = |place: usize| {
            let pair = pairs[place];
            let read = pair.reason.read();
            let causal = order.before(pair.from, read);
            let known = if causal { given } else { given + place };
            let steps = Paths::new(order.chains(), &edges[..known])
                .shortest_path(pair.from, read, usize::MAX)
                .expect("a pair is forced by what was found before it");
            (pair, steps.into_iter(), Vec::new())
        };
        let mut around = vec![open((id - start) as usize)];
        loop {
            let (pair, steps, because) = around.last_mut().expect("the outermost returns");
            match steps.next() {
                Some(PathStep::Edge(edge)) if edge.index() >= given => {
                    let place = first(edges[edge.index()]);
                    if self.shown.insert((layer, start + place as u32)) {
                        around.push(open(place));
                    } else {
                        let (from, to) = (pairs[place].from, pairs[place].to);
                        because.push(Edge::derived(from, to, relation, Vec::new()));
                    }
                }
                Some(PathStep::Edge(edge)) => because.push(given_edge(edges[edge.index()], names)),
                Some(PathStep::Run { from, to }) => {
                    because.push(Edge::given(from, to, names.run));
                }
                None => {
                    let (from, to) = (pair.from, pair.to);
                    because.push(Edge::given(to, pair.reason.read(), "wr"));
                    let edge = Edge::derived(from, to, relation, std::mem::take(because));
                    around.pop();
                    match around.last_mut() {
                        Some((_, _, because)) => because.push(edge),
                        None => return edge,
                    }
                }
            }
        }
    }

    /// Returns the edge from a write to the source of a read that has the write before it in `hb`.
    fn conflict(&mut self, layer: usize, edge: OrderEdge) -> Edge {
        let edges = Edges::of(&self.of.layers, layer);
        let mut because = self.path(layer, edge.from, edge.reason.read(), &edges);
        because.push(Edge::given(edge.to, edge.reason.read(), "wr"));
        Edge::derived(edge.from, edge.to, "cf", because)
    }

    /// Returns the edge from a read to a write that overwrites its source.
    fn overwritten(&mut self, at: usize, edge: OrderEdge) -> Edge {
        let registers = self.of.registers;
        let source = registers.source[edge.from.index()].get().expect("it starts at a read");
        let mut because = vec![Edge::given(source, edge.from, "wr")];
        if registers.history.is_initial(source) {
            let initial = self.of.layers[at].layer.names.initial;
            because.push(Edge::given(source, edge.to, initial));
        } else if edge.reason.read() == edge.from {
            because.extend(self.union_path(source, edge.to));
        } else {
            let shows = |order: &ChainOrder| order.before(source, edge.reason.read());
            let layer = self.happens_before.iter().position(shows);
            let layer = layer.expect("one of the layers shows the conflict");
            because.push(self.conflict(layer, OrderEdge { from: source, ..edge }));
        }
        Edge::derived(edge.from, edge.to, "rw", because)
    }

    /// Returns a path in the union of the layers' `hb`.
    fn union_path(&mut self, from: OpId, to: OpId) -> Vec<Edge> {
        let mut edges = Edges::of(&self.of.layers, 0);
        if self.of.layers.len() > 1 {
            edges.put_forced(&self.of.layers, 1);
        }
        self.path(0, from, to, &edges)
    }

    fn path(&mut self, at: usize, from: OpId, to: OpId, edges: &Edges) -> Vec<Edge> {
        let steps = Paths::new(self.of.chains(at), &edges.edges)
            .shortest_path(from, to, usize::MAX)
            .expect("what is derived has a path");
        steps.into_iter().map(|step| self.step(at, step, edges)).collect()
    }
}
