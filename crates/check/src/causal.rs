//! CC, CCv and CM of a history whose `wr` is settled, as far as it is settled.
//!
//! The three models share the causal order and the scan of the reads ([`crate::causal_order`]);
//! each then needs little more. With a partial `wr` a violation stands whatever the rest of `wr`
//! is, because every relation here only grows with `wr`; that is what lets
//! [`crate::choices`] cut a branch short.
//!
//! # Soundness and completeness
//! The verdicts are exact for the definitions in `models/` (compared with the reference evaluator
//! on every small history and on random ones). Bad patterns are named after Bouajjani et al.
//! (POPL 2017) and Zennou's thesis; a history may hold several, and the one that is reported is the
//! first that applies in the order of the thesis's table.

use consistory_history::{History, OpId};
use consistory_order::{Chains, Edge as OrderEdge, Paths, Step, topological_order};
use consistory_verdict::{Budget, Certificate, Edge, Judgement, Stopped};

use crate::causal_memory::{self, Scope};
use crate::causal_order::{CausalOrder, Overwritten};
use crate::reads_from::Source;
use crate::registers::{Registers, WR};

/// How many steps the search for a shortest cycle may take before it settles for the best so far.
const CYCLE_SEARCH_STEPS: u64 = 20_000_000;

/// How many times conflicts are added that an order does not agree with, before all are added.
const LAZY_ROUNDS: usize = 8;

/// How many overwriters of a session are tried for one bad read.
const TRIED_OVERWRITERS: usize = 32;

/// Up to how many operations an explanation looks at all conflicts instead of the last per session.
const SMALL: usize = 2_000;

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
    state: State,
}

enum State {
    /// No causal model can hold.
    Refuted(Judgement),
    /// CC holds; with the conflicts that the extension does not agree with.
    Ordered(Box<CausalOrder>, Vec<OrderEdge>),
}

impl<'h> Causal<'h> {
    /// Builds the causal order and scans the reads.
    pub(crate) fn prepare(
        history: &'h History,
        source: &'h [Source],
        jobs: usize,
        budget: &'h Budget,
    ) -> Result<Self, Stopped> {
        let registers = Registers::new(history, source);
        let edges = registers.wr_edges();
        let state = match future_read(history, &edges) {
            Some(judgement) => State::Refuted(judgement),
            None => match CausalOrder::build(&registers, edges, budget)? {
                Err(cyclic) => State::Refuted(cyclic_co(&cyclic.chains, &cyclic.edges)),
                Ok(order) => {
                    let looked = order.look_between(&registers, &order.extension, jobs, budget)?;
                    if looked.overwritten.is_empty() {
                        State::Ordered(Box::new(order), looked.conflicts)
                    } else {
                        State::Refuted(overwritten(&registers, &order, &looked.overwritten))
                    }
                }
            },
        };
        Ok(Causal { registers, jobs, budget, state })
    }

    /// Decides a model; `wr` is what a certificate of consistency lists as chosen.
    pub(crate) fn judge(
        &self,
        model: CausalModel,
        scope: Scope,
        wr: &[(OpId, OpId)],
    ) -> Result<Judgement, Stopped> {
        let (order, disagreeing) = match &self.state {
            State::Refuted(judgement) => return Ok(judgement.clone()),
            State::Ordered(order, disagreeing) => (order, disagreeing),
        };
        self.budget.check()?;
        match model {
            CausalModel::Cc => Ok(self.consistent_by(&order.extension, wr)),
            CausalModel::Ccv => Ok(match self.arbitration(order, disagreeing)? {
                Some(arbitration) => self.consistent_by(&arbitration, wr),
                None => self.cyclic_cf(order)?,
            }),
            CausalModel::Cm => {
                // The arbitration order agrees with most of what CM asks for, if there is one.
                let arbitration = self.arbitration(order, disagreeing)?;
                let memory = causal_memory::CausalMemory {
                    registers: &self.registers,
                    order: &order.order,
                    conflicts: &order.conflicts(&self.registers, self.jobs, self.budget)?,
                    base: arbitration.as_deref().unwrap_or(&order.extension),
                    scope,
                };
                memory.judge(self.jobs, self.budget, wr)
            }
        }
    }

    fn consistent_by(&self, order: &[u32], wr: &[(OpId, OpId)]) -> Judgement {
        let order = order.iter().filter(|&&op| self.registers.counts(op)).map(|&op| OpId(op));
        Judgement::Consistent(Certificate::Order { order: order.collect(), wr: wr.to_vec() })
    }

    /// Orders all operations so that `po`, `wr` and `cf` go forward, if that is possible.
    ///
    /// Conflicts are added lazily: those that the order so far does not agree with. A few rounds
    /// are enough mostly; after that all conflicts are added at once.
    fn arbitration(
        &self,
        order: &CausalOrder,
        disagreeing: &[OrderEdge],
    ) -> Result<Option<Vec<u32>>, Stopped> {
        if disagreeing.is_empty() {
            return Ok(Some(order.extension.clone()));
        }
        let chains = order.order.chains();
        let mut edges = order.order.edges().to_vec();
        edges.extend(disagreeing);
        for _ in 0..LAZY_ROUNDS {
            let Some(arbitration) = topological_order(chains, &edges) else { return Ok(None) };
            let looked =
                order.look_between(&self.registers, &arbitration, self.jobs, self.budget)?;
            if looked.conflicts.is_empty() {
                return Ok(Some(arbitration));
            }
            edges.extend(looked.conflicts);
        }
        Ok(topological_order(chains, &self.cf_edges(order)?))
    }

    /// Gives the edges of `wr`, then those of `cf` between concurrent writes.
    fn cf_edges(&self, order: &CausalOrder) -> Result<Vec<OrderEdge>, Stopped> {
        let mut edges = order.order.edges().to_vec();
        let conflicts = order.conflicts(&self.registers, self.jobs, self.budget)?;
        edges.extend(conflicts.iter().flatten());
        Ok(edges)
    }

    /// Explains why there is no arbitration order.
    fn cyclic_cf(&self, order: &CausalOrder) -> Result<Judgement, Stopped> {
        let chains = order.order.chains();
        let mut edges = self.cf_edges(order)?;
        if self.registers.history.len() <= SMALL {
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
                Step::Edge(id) if id as usize >= given => {
                    let edge = edges[id as usize];
                    let seen = causes
                        .shortest_path(edge.from, edge.reason, usize::MAX)
                        .expect("a conflict's write is causally before its read");
                    let mut because = co_edges(seen, &edges);
                    because.push(Edge::given(OpId(edge.to), OpId(edge.reason), "wr"));
                    Edge::derived(OpId(edge.from), OpId(edge.to), "cf", because)
                }
                step => co_edge(step, &edges),
            })
            .collect();
        Ok(violation("CyclicCF", cycle, None))
    }

    /// Adds the conflicts of all earlier writes of each session, which shorten cycles.
    fn add_all_conflicts(&self, order: &CausalOrder, edges: &mut Vec<OrderEdge>) {
        let given = order.order.edges().len();
        for at in given..edges.len() {
            let edge = edges[at];
            let key = self.registers.read_key(edge.reason);
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

/// Finds a read of a write that follows it in its own session; a shortest such span.
pub(crate) fn future_read(history: &History, wr: &[OrderEdge]) -> Option<Judgement> {
    let (read, write) = wr
        .iter()
        .map(|edge| (OpId(edge.to), OpId(edge.from)))
        .filter(|&(read, write)| {
            read < write && history.session_of(read) == history.session_of(write)
        })
        .min_by_key(|&(read, write)| write.0 - read.0)?;
    let edges = vec![Edge::given(read, write, "po"), Edge::given(write, read, "wr")];
    Some(violation("FutureRead", edges, None))
}

fn cyclic_co(chains: &Chains, edges: &[OrderEdge]) -> Judgement {
    let cycle = Paths::new(chains, edges)
        .shortest_cycle(CYCLE_SEARCH_STEPS)
        .expect("what has no topological order has a cycle");
    violation("CyclicCO", co_edges(cycle, edges), None)
}

/// Explains the bad read with the shortest cycle: the overwriter reaches the read, and the read
/// comes before the overwriter.
fn overwritten(registers: &Registers<'_>, order: &CausalOrder, bad: &[Overwritten]) -> Judgement {
    let order = &order.order;
    let mut paths = Paths::new(order.chains(), order.edges());
    let mut best: Option<(Vec<Step>, Overwritten)> = None;
    for &read in bad {
        let session = order.chains().chain_of(read.overwriter);
        let segments = registers.segments(registers.read_key(read.read));
        let segment = segments.iter().find(|s| s.chain == session);
        let earlier = segment.map_or(&[][..], |s| registers.writes(*s)).iter().rev();
        let overwriters = earlier
            .filter(|&&write| write <= read.overwriter)
            .take_while(|&&write| {
                registers.history.is_initial(read.source) || order.before(read.source.0, write)
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
    let (read, overwriter) = (OpId(bad.read), OpId(bad.overwriter));
    let mut because = vec![Edge::given(bad.source, read, "wr")];
    let pattern = if registers.history.is_initial(bad.source) {
        because.push(Edge::given(bad.source, overwriter, "po"));
        "WriteCOInitRead"
    } else {
        let path = paths
            .shortest_path(bad.source.0, bad.overwriter, usize::MAX)
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
    Judgement::Violation { pattern: pattern.to_owned(), certificate }
}

/// Reads steps along `po` and `wr` as edges of a certificate.
pub(crate) fn co_edges(steps: Vec<Step>, edges: &[OrderEdge]) -> Vec<Edge> {
    steps.into_iter().map(|step| co_edge(step, edges)).collect()
}

pub(crate) fn co_edge(step: Step, edges: &[OrderEdge]) -> Edge {
    match step {
        Step::Run { from, to } => Edge::given(OpId(from), OpId(to), "po"),
        Step::Edge(id) => {
            let edge = edges[id as usize];
            debug_assert_eq!(edge.reason, WR);
            Edge::given(OpId(edge.from), OpId(edge.to), "wr")
        }
    }
}
