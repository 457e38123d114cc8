//! CM, causal memory: the view of each session is ordered separately.
//!
//! For a session p with operations o_0 .. o_m, `hb` of its last operation contains `hb` of every
//! earlier one (Zennou, Lemma 4), so one relation per session is enough. The thesis saturates it as
//! a set of pairs. Here it is saturated as one number per operation.
//!
//! # Levels
//! The pasts of o_0, o_1, .. grow along the session, so each operation e in them has a *level*: the
//! first i with e in the past of o_i. Levels never decrease along an edge of `hb`.
//!
//! ```text
//!   p       o_0 ───── o_1 ───── o_2          level(a) = level(b) = 1, level(c) = 2
//!                     ↑          ↑
//!   q       a ─────── b ──────── c
//! ```
//!
//! The saturation rule, for a read o_i of x from w: every other write w' of x with level(w') <= i
//! comes before w. So level(w') must be at most level(w). If it is greater, w' and everything
//! before w' is lowered to level(w). This brings them into the view of earlier reads of p, and so
//! on until no level changes. Lowering an operation of p below its own position is a cycle, and so
//! is a write in the past of a read of the initial value. Otherwise every edge leads to the same or
//! a higher level, and a cycle must lie within one level.
//!
//! Only pairs that are not causally ordered add information, and these are the conflicts that the
//! scan of the reads has already found, plus the pairs of writes that were lowered. Within a level,
//! a base order that extends `co` (the arbitration order of CCv, if the history is CCv) mostly
//! satisfies the rule; only levels in which it does not are sorted again.
//!
//! # Cost
//! Time per session: linear in its past plus the lowered operations; in total about operations
//! times sessions. Memory: linear in the operations. The certificate is one order per session: its
//! past sorted by level, and by the base order within a level. The operations before o_i in this
//! order are exactly its past, and the rule has put every other write of x before w, so o_i reads
//! the last write.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::Judgement;
use consistory_history::{KeyId, OpId};
use consistory_order::ChainId;
use consistory_verdict::{Budget, Certificate, Edge, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::causal::{co_edge, violation};
use crate::order::{ChainOrder, Edge as OrderEdge, PathStep, Paths};
use crate::reason::Reason;
use crate::registers::Registers;
use crate::threads::{in_parallel, worthy};

/// Level of an operation outside the past of the session.
const OUTSIDE: u32 = u32::MAX;

/// Steps after which the search for a shortest cycle returns the best cycle found so far.
const CYCLE_SEARCH_STEPS: u64 = 5_000_000;

/// Largest history in which every violating session is explained, to choose the shortest
/// explanation.
const EXPLAIN_ALL_MAX_OPS: usize = 2_000;

/// Operations o for which the relation `hb_o` is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// For the last operation of each session, which is enough (the thesis's CM_2).
    #[default]
    LastOperations,
    /// Every operation, as in the definition (CM_1): slower, with the same verdict.
    EveryOperation,
}

/// Inputs of CM, for a history that is CC.
pub(crate) struct CausalMemory<'a> {
    pub(crate) registers: &'a Registers<'a>,
    pub(crate) order: &'a ChainOrder,
    /// Conflicts between concurrent writes, by the session of the read that causes them.
    pub(crate) conflicts: &'a [Vec<OrderEdge>],
    /// A linear extension of `co`.
    pub(crate) base: &'a [OpId],
    pub(crate) scope: Scope,
}

/// The view of one session up to one of its operations.
struct View<'a> {
    memory: &'a CausalMemory<'a>,
    session: ChainId,
    /// Number of the session's operations in the view.
    own: usize,
    level: Vec<u32>,
    /// `(w', w, r)`: w' comes before w because r reads from w with w' in its past. In order of
    /// discovery, the conflicts of the causal order first.
    forced: Vec<OrderEdge>,
}

/// Reason why the view of a session is contradictory.
enum Contradiction {
    /// `hb` is cyclic.
    Cycle,
    /// A write of the key is in the past of a read of the initial value.
    InitialRead { read: OpId, write: OpId },
}

impl CausalMemory<'_> {
    /// Decides CM.
    pub(crate) fn judge(
        &self,
        jobs: usize,
        budget: &Budget,
        wr: &[(OpId, OpId)],
    ) -> Result<Judgement, Stopped> {
        let mut rank = vec![0u32; self.base.len()];
        for (at, &op) in self.base.iter().enumerate() {
            rank[op.index()] = at as u32;
        }
        // In a large history only the first violating session is explained and later sessions are
        // skipped; in a small one the shortest explanation is wanted.
        let explain_all = self.registers.history.len() <= EXPLAIN_ALL_MAX_OPS;
        let first_bad = AtomicU32::new(u32::MAX);
        let sessions = self.registers.history.session_count();
        let views = in_parallel(sessions, worthy(self.registers.history, jobs), |session| {
            let session = ChainId(session as u32);
            if !explain_all && first_bad.load(Ordering::Relaxed) < session.0 {
                return Ok(None);
            }
            let own = self.order.chains().members(session).len();
            let first = match self.scope {
                Scope::LastOperations => own,
                Scope::EveryOperation => 1,
            };
            let mut order = Vec::new();
            for own in first..=own {
                budget.check()?;
                match self.order_of_view(session, own, &rank) {
                    Ok(found) => order = found,
                    Err(_) => {
                        first_bad.fetch_min(session.0, Ordering::Relaxed);
                        return Ok(None);
                    }
                }
            }
            Ok(Some(order))
        })?;
        let bad = self
            .order
            .chains()
            .ids()
            .zip(&views)
            .filter(|(_, view)| view.is_none())
            .map(|(session, _)| session);
        let explained = bad.take(if explain_all { usize::MAX } else { 1 }).filter_map(|session| {
            let own = self.order.chains().members(session).len();
            let (view, contradiction) = self.order_of_view(session, own, &rank).err()?;
            Some(view.explain(contradiction))
        });
        let size = |judgement: &Judgement| judgement.certificate().map_or(0, Certificate::size);
        if let Some(violation) = explained.min_by_key(size) {
            return Ok(violation);
        }
        let orders = self.registers.history.sessions().zip(views.into_iter().flatten());
        let orders = orders.filter(|(_, order)| !order.is_empty()).collect();
        Ok(Judgement::Consistent(Certificate::SessionOrders { orders, wr: wr.to_vec() }))
    }

    /// Returns the order of one session's view, or the view and its contradiction.
    fn order_of_view(
        &self,
        session: ChainId,
        own: usize,
        rank: &[u32],
    ) -> Result<Vec<OpId>, (View<'_>, Contradiction)> {
        let in_view =
            |edge: &&OrderEdge| (self.order.chains().place_of(edge.reason.read()) as usize) < own;
        let mut view = View {
            memory: self,
            session,
            own,
            level: vec![OUTSIDE; self.registers.history.len()],
            forced: self.conflicts[session.index()].iter().filter(in_view).copied().collect(),
        };
        view.fill_levels();
        match view.saturate().and_then(|()| view.linearize(rank)) {
            Ok(order) => Ok(order),
            Err(contradiction) => Err((view, contradiction)),
        }
    }
}

impl View<'_> {
    /// Computes for each operation the first own operation that has it in its causal past.
    fn fill_levels(&mut self) {
        let order = self.memory.order;
        let chains = order.chains();
        let mut known = vec![0u32; chains.len()];
        let mut last_row: *const u32 = std::ptr::null();
        for (i, &own) in chains.members(self.session)[..self.own].iter().enumerate() {
            self.level[own.index()] = i as u32;
            let Some(row) = order.row(own) else { continue };
            if std::ptr::eq(row.as_ptr(), last_row) {
                continue;
            }
            last_row = row.as_ptr();
            for (chain, (known, &until)) in chains.ids().zip(known.iter_mut().zip(row)) {
                if until > *known && chain != self.session {
                    for &op in &chains.members(chain)[*known as usize..until as usize] {
                        self.level[op.index()] = i as u32;
                    }
                    *known = until;
                }
            }
        }
    }

    /// Lowers writes until every forced pair agrees with the levels.
    fn saturate(&mut self) -> Result<(), Contradiction> {
        let sinks = |level: &[u32], e: &OrderEdge| level[e.from.index()] > level[e.to.index()];
        if !self.forced.iter().any(|edge| sinks(&self.level, edge)) {
            return Ok(());
        }
        let own_reads = self.own_reads();
        let mut into: FxHashMap<OpId, Vec<u32>> = FxHashMap::default();
        for (id, edge) in self.forced.iter().enumerate() {
            into.entry(edge.to).or_default().push(id as u32);
        }
        let mut open: Vec<u32> = (0..self.forced.len() as u32).rev().collect();
        let mut sunk = Vec::new();
        while let Some(id) = open.pop() {
            let edge = self.forced[id as usize];
            if !sinks(&self.level, &edge) {
                continue;
            }
            self.sink(edge.from, self.level[edge.to.index()], &mut sunk)?;
            for (write, from_level) in sunk.drain(..) {
                let key = self.memory.registers.written_key(write).expect("only writes are listed");
                // Earlier reads of the session now have the write in their past.
                let level = self.level[write.index()];
                let start = own_reads.partition_point(|r| (r.key, r.place) < (key, level));
                for read in &own_reads[start..] {
                    if read.key != key || read.place >= from_level {
                        break;
                    }
                    if read.source == write {
                        continue;
                    }
                    if self.memory.registers.history.is_initial(read.source) {
                        return Err(Contradiction::InitialRead { read: read.op, write });
                    }
                    let id = self.forced.len() as u32;
                    self.forced.push(OrderEdge {
                        from: write,
                        to: read.source,
                        reason: Reason::Read(read.op).pack(),
                    });
                    into.entry(read.source).or_default().push(id);
                    open.push(id);
                }
                // Everything that must come before the write is lowered with it.
                open.extend(into.get(&write).into_iter().flatten());
            }
        }
        Ok(())
    }

    /// Lowers an operation and its causal past to a level. Lists the lowered writes with their old
    /// levels.
    fn sink(
        &mut self,
        op: OpId,
        level: u32,
        sunk: &mut Vec<(OpId, u32)>,
    ) -> Result<(), Contradiction> {
        let chains = self.memory.order.chains();
        let registers = self.memory.registers;
        let mut open = vec![op];
        while let Some(op) = open.pop() {
            let had = self.level[op.index()];
            if had <= level {
                continue;
            }
            let chain = chains.chain_of(op);
            if chain == self.session {
                return Err(Contradiction::Cycle);
            }
            self.level[op.index()] = level;
            if registers.written_key(op).is_some() {
                sunk.push((op, had));
            }
            if let Some(place) = chains.place_of(op).checked_sub(1) {
                open.push(chains.members(chain)[place as usize]);
            }
            match registers.source[op.index()].get() {
                Some(source) if !registers.history.is_initial(source) => open.push(source),
                _ => {}
            }
        }
        Ok(())
    }

    /// Lists the session's reads by key and position.
    fn own_reads(&self) -> Vec<OwnRead> {
        let registers = self.memory.registers;
        let members = &self.memory.order.chains().members(self.session)[..self.own];
        let mut reads: Vec<OwnRead> = members
            .iter()
            .enumerate()
            .filter_map(|(place, &op)| {
                let source = registers.source[op.index()].get()?;
                Some(OwnRead { key: registers.read_key(op), place: place as u32, op, source })
            })
            .collect();
        reads.sort_unstable_by_key(|read| (read.key, read.place));
        reads
    }

    /// Orders the view by level, and within a level by the base order, or by a new order if the
    /// base order contradicts a forced pair.
    fn linearize(&self, rank: &[u32]) -> Result<Vec<OpId>, Contradiction> {
        let mut starts = vec![0u32; self.own + 1];
        for &level in &self.level {
            if level != OUTSIDE {
                starts[level as usize + 1] += 1;
            }
        }
        for level in 0..self.own {
            starts[level + 1] += starts[level];
        }
        let mut next = starts.clone();
        let mut order = vec![OpId(0); starts[self.own] as usize];
        for &op in self.memory.base {
            let level = self.level[op.index()];
            if level != OUTSIDE {
                let slot = &mut next[level as usize];
                order[*slot as usize] = op;
                *slot += 1;
            }
        }
        let mut unsorted: FxHashMap<u32, Vec<OrderEdge>> = FxHashMap::default();
        for edge in &self.forced {
            let level = self.level[edge.from.index()];
            if level == self.level[edge.to.index()]
                && rank[edge.from.index()] > rank[edge.to.index()]
            {
                unsorted.entry(level).or_default();
            }
        }
        if !unsorted.is_empty() {
            for edge in &self.forced {
                let level = self.level[edge.from.index()];
                if level == self.level[edge.to.index()]
                    && let Some(edges) = unsorted.get_mut(&level)
                {
                    edges.push(*edge);
                }
            }
        }
        for (level, edges) in unsorted {
            let range = starts[level as usize] as usize..starts[level as usize + 1] as usize;
            self.sort_level(&mut order[range], level, &edges)?;
        }
        order.retain(|&op| self.memory.registers.counts(op));
        Ok(order)
    }

    /// Sorts the operations of one level by `po`, `wr` and the forced pairs (Kahn 1962).
    fn sort_level(
        &self,
        ops: &mut [OpId],
        level: u32,
        forced: &[OrderEdge],
    ) -> Result<(), Contradiction> {
        let chains = self.memory.order.chains();
        let registers = self.memory.registers;
        let place: FxHashMap<OpId, u32> =
            ops.iter().enumerate().map(|(at, &op)| (op, at as u32)).collect();
        let mut successors: Vec<Vec<u32>> = vec![Vec::new(); ops.len()];
        let mut waits = vec![0u32; ops.len()];
        let mut link = |from: OpId, to: OpId| {
            if !registers.history.is_initial(from) && self.level[from.index()] == level {
                successors[place[&from] as usize].push(place[&to]);
                waits[place[&to] as usize] += 1;
            }
        };
        for &op in ops.iter() {
            if let Some(before) = chains.place_of(op).checked_sub(1) {
                link(chains.members(chains.chain_of(op))[before as usize], op);
            }
            if let Some(source) = registers.source[op.index()].get() {
                link(source, op);
            }
        }
        for edge in forced {
            link(edge.from, edge.to);
        }
        let mut ready: Vec<u32> =
            (0..ops.len() as u32).filter(|&i| waits[i as usize] == 0).collect();
        let mut sorted = Vec::with_capacity(ops.len());
        while let Some(at) = ready.pop() {
            sorted.push(ops[at as usize]);
            for &next in &successors[at as usize] {
                waits[next as usize] -= 1;
                if waits[next as usize] == 0 {
                    ready.push(next);
                }
            }
        }
        if sorted.len() < ops.len() {
            return Err(Contradiction::Cycle);
        }
        ops.copy_from_slice(&sorted);
        Ok(())
    }

    /// Turns a contradiction into a certificate.
    fn explain(&self, contradiction: Contradiction) -> Judgement {
        let given = self.memory.order.edges();
        let mut edges = given.to_vec();
        edges.extend(&self.forced);
        let mut first: FxHashMap<(OpId, OpId), u32> = FxHashMap::default();
        for (id, edge) in (0u32..).zip(&edges).skip(given.len()) {
            first.entry((edge.from, edge.to)).or_insert(id);
        }
        let shown = FxHashSet::default();
        let mut proof = ViewProof { view: self, edges: &edges, first, shown, last: 0 };
        let (pattern, cycle) = match contradiction {
            Contradiction::InitialRead { read, write } => {
                let source = self.memory.registers.source[read.index()];
                let initial = source.get().expect("the read is of the initial value");
                let mut because = proof.path(edges.len(), write, read);
                because.push(Edge::given(initial, read, "wr"));
                proof.observe(read);
                let forced = Edge::derived(write, initial, "hb", because);
                ("WriteHBInitRead", vec![forced, Edge::given(initial, write, "po")])
            }
            Contradiction::Cycle => {
                let cycle = Paths::new(self.memory.order.chains(), &edges)
                    .shortest_cycle(CYCLE_SEARCH_STEPS)
                    .expect("the forced pairs close a cycle");
                ("CyclicHB", cycle.into_iter().map(|step| proof.edge(step)).collect())
            }
        };
        violation(pattern, cycle, Some(proof.observer()))
    }
}

/// A read of the session whose view is saturated.
struct OwnRead {
    key: KeyId,
    place: u32,
    op: OpId,
    source: OpId,
}

/// Writes out derivations. A forced pair is derived only from pairs found before it.
///
/// Several reads may force the same pair, the later ones by way of the pair itself. The derivation
/// uses the read that forced it first, so a pair is never derived from itself.
struct ViewProof<'a> {
    view: &'a View<'a>,
    /// `wr`, then the forced pairs in the order of discovery.
    edges: &'a [OrderEdge],
    /// Index at which each forced pair was first found.
    first: FxHashMap<(OpId, OpId), u32>,
    /// Forced pairs whose derivation has been written out.
    shown: FxHashSet<(OpId, OpId)>,
    /// Greatest position of a read of the session that the proof uses.
    last: u32,
}

impl ViewProof<'_> {
    /// Returns an edge of `po`, `wr` or `hb`; its premises are included the first time it is used.
    fn edge(&mut self, step: PathStep) -> Edge {
        let given = self.view.memory.order.edges().len();
        let PathStep::Edge(id) = step else { return co_edge(step, self.edges) };
        if id.index() < given {
            return co_edge(step, self.edges);
        }
        let OrderEdge { from, to, .. } = self.edges[id.index()];
        let id = self.first[&(from, to)];
        let edge = self.edges[id as usize];
        self.observe(edge.reason.read());
        let mut because = Vec::new();
        if !self.shown.contains(&(edge.from, edge.to)) {
            because = self.path(id as usize, edge.from, edge.reason.read());
            because.push(Edge::given(edge.to, edge.reason.read(), "wr"));
            self.shown.insert((edge.from, edge.to));
        }
        Edge::derived(edge.from, edge.to, "hb", because)
    }

    /// Returns a shortest causal path, or, if there is none, a shortest path over the first edges
    /// of the list.
    fn path(&mut self, first_edges: usize, from: OpId, to: OpId) -> Vec<Edge> {
        let order = self.view.memory.order;
        let known = if order.before(from, to) { order.edges().len() } else { first_edges };
        let steps = Paths::new(order.chains(), &self.edges[..known])
            .shortest_path(from, to, usize::MAX)
            .expect("a pair is forced by what was found before it");
        steps.into_iter().map(|step| self.edge(step)).collect()
    }

    fn observe(&mut self, read: OpId) {
        self.last = self.last.max(self.view.memory.order.chains().place_of(read));
    }

    fn observer(&self) -> OpId {
        self.view.memory.order.chains().members(self.view.session)[self.last as usize]
    }
}
