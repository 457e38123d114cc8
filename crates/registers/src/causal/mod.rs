//! CC, CCv and CM of a history with a complete or partial `wr`.
//!
//! The three models share one sweep over all operations ([`crate::causal::sweep`]), which decides
//! CC. CCv usually needs only a second linear order of the operations. CM and explanations need the
//! causal order with all its clocks ([`crate::causal::order`]), which is built on first use. A
//! violation found with a partial `wr` remains one for every completion of it, because every
//! relation here only grows with `wr`; this is why [`crate::repeated_values::choices`] can cut a
//! branch short.
//!
//! # Soundness and completeness
//! The verdicts are exact for the definitions in `models/` (tests compare them with the reference
//! evaluator on every small history and on random ones). Bad patterns are named after Bouajjani et
//! al. (POPL 2017) and Zennou's thesis. A history may contain several; the first one in the order
//! of the thesis's table is reported.

pub(crate) mod convergent;
pub(crate) mod memory;
pub(crate) mod order;
pub(crate) mod sweep;
pub(crate) mod views;

use std::cell::OnceCell;

use crate::Judgement;
use consistory_history::{History, OpId};
use consistory_order::topological_order;
use consistory_verdict::{Budget, Certificate, Edge, Stopped};

use crate::causal::memory::Scope;
use crate::causal::order::CausalOrder;
use crate::causal::sweep::{Arbitration, ConflictScope, Overwritten, Swept, sweep};
use crate::order::{Edge as OrderEdge, PathStep, Paths};
use crate::reads_from::Source;
use crate::reason::Reason;
use crate::registers::Registers;

/// Steps after which the search for a shortest cycle returns the best cycle found so far.
const CYCLE_SEARCH_STEPS: u64 = 20_000_000;

/// Number of overwriting writes per session that are tried to explain one bad read.
const TRIED_OVERWRITERS: usize = 32;

/// Largest history whose explanation considers all conflicts, not only the last one of each
/// session.
const EXPLAIN_ALL_MAX_OPS: usize = 2_000;

/// A causal model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CausalModel {
    /// Weak causal consistency.
    Cc,
    /// Causal convergence.
    Ccv,
    /// Causal memory.
    Cm,
}

/// A history prepared for the causal models.
pub(crate) struct Causal<'h> {
    registers: Registers<'h>,
    jobs: usize,
    budget: &'h Budget,
    state: CausalState,
    order: OnceCell<CausalOrder>,
}

enum CausalState {
    /// No causal model holds.
    Refuted(Judgement),
    /// CC holds.
    Swept(Box<Swept>),
}

impl<'h> Causal<'h> {
    /// Sweeps over the operations. For CC alone, only the writes between a source and its read are
    /// inspected.
    pub(crate) fn prepare(
        history: &'h History,
        source: &'h [Source],
        scope: ConflictScope,
        jobs: usize,
        budget: &'h Budget,
    ) -> Result<Self, Stopped> {
        let registers = Registers::new(history, source);
        let state = match sweep(&registers, scope, budget)? {
            // A read from a later write of its own session is a cycle with a pattern of its own.
            None => CausalState::Refuted(
                future_read(&registers).unwrap_or_else(|| cyclic_co(&registers)),
            ),
            Some(swept) if swept.overwritten.is_empty() => CausalState::Swept(Box::new(swept)),
            Some(swept) => {
                let order = CausalOrder::build(&registers, budget)?;
                CausalState::Refuted(overwritten(&registers, &order, &swept.overwritten))
            }
        };
        Ok(Causal { registers, jobs, budget, state, order: OnceCell::new() })
    }

    /// Decides a model. A certificate of consistency lists `wr` as chosen.
    pub(crate) fn judge(
        &self,
        model: CausalModel,
        scope: Scope,
        wr: &[(OpId, OpId)],
    ) -> Result<Judgement, Stopped> {
        let swept = match &self.state {
            CausalState::Refuted(judgement) => return Ok(judgement.clone()),
            CausalState::Swept(swept) => swept,
        };
        self.budget.check()?;
        match model {
            CausalModel::Cc => Ok(self.consistent_by(&swept.line, wr)),
            CausalModel::Ccv => match self.arbitration(swept)? {
                Some(arbitration) => Ok(self.consistent_by(&arbitration, wr)),
                None => self.cyclic_cf(),
            },
            CausalModel::Cm => {
                // The arbitration order, if there is one, satisfies most of the constraints of CM.
                let arbitration = self.arbitration(swept)?;
                let order = self.order()?;
                let memory = memory::CausalMemory {
                    registers: &self.registers,
                    order: &order.order,
                    conflicts: &order.conflicts(&self.registers, self.jobs, self.budget)?,
                    base: arbitration.as_deref().unwrap_or(&swept.line),
                    scope,
                };
                memory.judge(self.jobs, self.budget, wr)
            }
        }
    }

    /// Returns the causal order.
    fn order(&self) -> Result<&CausalOrder, Stopped> {
        if let Some(order) = self.order.get() {
            return Ok(order);
        }
        let order = CausalOrder::build(&self.registers, self.budget)?;
        Ok(self.order.get_or_init(|| order))
    }

    fn consistent_by(&self, order: &[OpId], wr: &[(OpId, OpId)]) -> Judgement {
        let order = order.iter().copied().filter(|&op| self.registers.counts(op));
        Judgement::Consistent(Certificate::Order { order: order.collect(), wr: wr.to_vec() })
    }

    /// Finds an order of all operations that extends `po`, `wr` and `cf`, if there is one.
    fn arbitration(&self, swept: &Swept) -> Result<Option<Vec<OpId>>, Stopped> {
        match swept.arbitration(&self.registers, self.budget)? {
            Arbitration::Order(order) => Ok(Some(order)),
            Arbitration::Cyclic => Ok(None),
            Arbitration::Open => {
                let edges = self.cf_edges()?;
                Ok(topological_order(self.order()?.order.chains(), &edges))
            }
        }
    }

    /// Returns the edges of `wr`, then those of `cf` between concurrent writes.
    fn cf_edges(&self) -> Result<Vec<OrderEdge>, Stopped> {
        let order = self.order()?;
        let mut edges = order.order.edges().to_vec();
        let conflicts = order.conflicts(&self.registers, self.jobs, self.budget)?;
        edges.extend(conflicts.iter().flatten());
        Ok(edges)
    }

    /// Explains why there is no arbitration order.
    fn cyclic_cf(&self) -> Result<Judgement, Stopped> {
        let order = self.order()?;
        let chains = order.order.chains();
        let mut edges = self.cf_edges()?;
        if self.registers.history.len() <= EXPLAIN_ALL_MAX_OPS {
            self.add_all_conflicts(order, &mut edges);
        }
        let given = order.order.edges().len();
        let cycle = Paths::new(chains, &edges)
            .shortest_cycle(CYCLE_SEARCH_STEPS)
            .expect("what has no topological order has a cycle");
        let mut causes = Paths::new(chains, &edges[..given]);
        let cycle = cycle
            .into_iter()
            .map(|step| match step {
                PathStep::Edge(id) if id.index() >= given => {
                    let edge = edges[id.index()];
                    let seen = causes
                        .shortest_path(edge.from, edge.reason.read(), usize::MAX)
                        .expect("a conflict's write is causally before its read");
                    let mut because = co_edges(seen, &edges);
                    because.push(Edge::given(edge.to, edge.reason.read(), "wr"));
                    Edge::derived(edge.from, edge.to, "cf", because)
                }
                step => co_edge(step, &edges),
            })
            .collect();
        Ok(violation("CyclicCF", cycle, None))
    }

    /// Adds the conflicts with all earlier writes of each session, which makes cycles shorter.
    fn add_all_conflicts(&self, order: &CausalOrder, edges: &mut Vec<OrderEdge>) {
        let given = order.order.edges().len();
        for at in given..edges.len() {
            let edge = edges[at];
            let key = self.registers.read_key(edge.reason.read());
            let session = order.order.chains().chain_of(edge.from);
            let segments = self.registers.segments(key);
            let segment = segments.iter().find(|s| s.chain == session);
            for &write in segment.map_or(&[][..], |s| self.registers.writes(*s)) {
                if write < edge.from && !order.order.before(write, edge.to) {
                    edges.push(OrderEdge { from: write, ..edge });
                }
            }
        }
    }
}

/// Finds a read from a later write of its own session; of several, one with the fewest operations
/// between the two.
pub(crate) fn future_read(registers: &Registers<'_>) -> Option<Judgement> {
    let history = registers.history;
    let (read, write) = history
        .sessions()
        .flat_map(|session| {
            let ops = history.session_ops(session);
            let end = history.op_at(session, ops.len() as u32);
            ops.filter_map(move |read| {
                let write = registers.source[read.index()].get()?;
                (read < write && write < end).then_some((read, write))
            })
        })
        .min_by_key(|&(read, write)| write.0 - read.0)?;
    let edges = vec![Edge::given(read, write, "po"), Edge::given(write, read, "wr")];
    Some(violation("FutureRead", edges, None))
}

fn cyclic_co(registers: &Registers<'_>) -> Judgement {
    let edges = registers.wr_edges();
    let cycle = Paths::new(&registers.chains(), &edges)
        .shortest_cycle(CYCLE_SEARCH_STEPS)
        .expect("what has no topological order has a cycle");
    violation("CyclicCO", co_edges(cycle, &edges), None)
}

/// Explains the bad read with the shortest cycle, from the overwriting write to the read and back.
fn overwritten(registers: &Registers<'_>, order: &CausalOrder, bad: &[Overwritten]) -> Judgement {
    let order = &order.order;
    let mut paths = Paths::new(order.chains(), order.edges());
    let mut best: Option<(Vec<PathStep>, Overwritten)> = None;
    for &read in bad {
        let session = order.chains().chain_of(read.overwriter);
        let segments = registers.segments(registers.read_key(read.read));
        let segment = segments.iter().find(|s| s.chain == session);
        let earlier = segment.map_or(&[][..], |s| registers.writes(*s)).iter().rev();
        let overwriters = earlier
            .filter(|&&write| write <= read.overwriter)
            .take_while(|&&write| {
                registers.history.is_initial(read.source) || order.before(read.source, write)
            })
            .take(TRIED_OVERWRITERS);
        for &overwriter in overwriters {
            let bound = best.as_ref().map_or(usize::MAX, |(path, _)| path.len() - 1);
            if let Some(path) = paths.shortest_path(overwriter, read.read, bound) {
                best = Some((path, Overwritten { overwriter, ..read }));
            }
        }
    }
    let (path, bad) = best.expect("an overwriter is causally before the read");
    let (read, overwriter) = (bad.read, bad.overwriter);
    let mut because = vec![Edge::given(bad.source, read, "wr")];
    let pattern = if registers.history.is_initial(bad.source) {
        because.push(Edge::given(bad.source, overwriter, "po"));
        "WriteCOInitRead"
    } else {
        let path = paths
            .shortest_path(bad.source, bad.overwriter, usize::MAX)
            .expect("the source is causally before what overwrites it");
        because.extend(co_edges(path, order.edges()));
        "WriteCORead"
    };
    let mut cycle = co_edges(path, order.edges());
    cycle.push(Edge::derived(read, overwriter, "rw", because));
    violation(pattern, cycle, None)
}

pub(crate) fn violation(pattern: &str, edges: Vec<Edge>, observer: Option<OpId>) -> Judgement {
    let certificate = Certificate::Cycle { edges, observer, check: None };
    Judgement::Violation { pattern: pattern.into(), certificate }
}

/// Converts steps along `po` and `wr` to edges of a certificate.
pub(crate) fn co_edges(steps: Vec<PathStep>, edges: &[OrderEdge]) -> Vec<Edge> {
    steps.into_iter().map(|step| co_edge(step, edges)).collect()
}

pub(crate) fn co_edge(step: PathStep, edges: &[OrderEdge]) -> Edge {
    match step {
        PathStep::Run { from, to } => Edge::given(from, to, "po"),
        PathStep::Edge(id) => {
            let edge = edges[id.index()];
            debug_assert_eq!(edge.reason.unpack(), Reason::Wr);
            Edge::given(edge.from, edge.to, "wr")
        }
    }
}
