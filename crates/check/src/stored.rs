//! Models with a store order: SC, TSO, PSO, and the weak wSC and wTSO, gradually.
//!
//! First the rules that are forced are applied until nothing changes ([`crate::saturation`]). A
//! cycle refutes the weak model, and with it the strong one, by a proof of polynomial size; most
//! histories that violate a model are refuted here. If there is none, the weak model holds, and what was
//! added proves it: nothing more follows from it. For the strong model final values are put in
//! ([`crate::finals`]), and the rest is completed ([`crate::completion`]).

use consistory_history::{History, KeyId, OpId};
use consistory_order::{Cyclic, Paths, Step};
use consistory_verdict::{Budget, Certificate, Edge, Judgement, Stopped};

use crate::causal::{future_read, violation};
use crate::completion::{Complete, Completed};
use crate::finals::last_writes;
use crate::layers::{CyclicLayer, Memory, PPO, layers};
use crate::reads_from::Source;
use crate::registers::{Registers, WR};
use crate::saturation::{Readers, Saturation};
use crate::split::{Refutation, leaf};

/// How many steps the search for a shortest cycle may take before it settles for the best so far.
const CYCLE_SEARCH_STEPS: u64 = 5_000_000;

/// The pattern of what final values contradict.
const FINAL_VALUE: &str = "FinalValue";

/// A model with a store order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreModel {
    /// Weak sequential consistency.
    Wsc,
    /// Sequential consistency.
    Sc,
    /// Weak total store order.
    Wtso,
    /// Total store order.
    Tso,
    /// Partial store order.
    Pso,
}

impl StoreModel {
    fn memory(self) -> Memory {
        match self {
            StoreModel::Wsc | StoreModel::Sc => Memory::Sequential,
            StoreModel::Wtso | StoreModel::Tso => Memory::TotalStore,
            StoreModel::Pso => Memory::PartialStore,
        }
    }

    pub(crate) fn is_weak(self) -> bool {
        matches!(self, StoreModel::Wsc | StoreModel::Wtso)
    }
}

/// Decides a history whose `wr` is settled, as far as it is settled; `wr` is what a certificate of
/// consistency lists as chosen.
pub(crate) fn judge(
    history: &History,
    source: &[Source],
    model: StoreModel,
    engine: &dyn Complete,
    budget: &Budget,
    wr: &[(OpId, OpId)],
) -> Result<Judgement, Stopped> {
    let registers = &Registers::new(history, source);
    if let Some(judgement) = future_read(registers) {
        return Ok(judgement);
    }
    let sequential = |order: Vec<u32>| {
        let counts = |op: &&u32| registers.counts(**op);
        let order = order.iter().filter(counts).map(|&op| OpId(op)).collect();
        Judgement::Consistent(Certificate::Order { order, wr: wr.to_vec() })
    };
    let finals = if model.is_weak() { None } else { last_writes(history) }.unwrap_or_default();
    if model == StoreModel::Sc
        && finals.is_empty()
        && let Some(order) = engine.guess(registers)
    {
        return Ok(sequential(order));
    }
    let layers = match layers(registers, model.memory(), budget)? {
        Ok(layers) => layers,
        Err(cyclic) => return Ok(cyclic_from_the_start(&cyclic)),
    };
    let readers = Readers::new(registers);
    let mut saturation = Saturation::new(registers, &readers, layers);
    if saturation.saturate(budget)?.is_err() {
        return Ok(refuted(model, leaf(&saturation)));
    }
    if model.is_weak() {
        let pairs = saturation.added();
        return Ok(Judgement::Consistent(Certificate::Closure { pairs, wr: wr.to_vec() }));
    }
    for write in finals {
        if saturation.put_last(write.0).is_err() || saturation.saturate(budget)?.is_err() {
            let Refutation { certificate, .. } = leaf(&saturation);
            return Ok(Judgement::Violation { pattern: FINAL_VALUE.to_owned(), certificate });
        }
    }
    Ok(match engine.complete(registers, &mut saturation, budget)? {
        Completed::Refuted(refutation) => refuted(model, refutation),
        Completed::Order(order) if model == StoreModel::Sc => sequential(order),
        Completed::Order(order) => {
            let ww = store_order(registers, &order);
            Judgement::Consistent(Certificate::Witness { ww, wr: wr.to_vec() })
        }
    })
}

/// Gives the writes of each key in the order of a run, initial write first.
fn store_order(registers: &Registers<'_>, order: &[u32]) -> Vec<(KeyId, Vec<OpId>)> {
    let history = registers.history;
    let mut ww: Vec<(KeyId, Vec<OpId>)> =
        history.keys().map(|key| (key, vec![history.initial_write(key)])).collect();
    for &op in order {
        if let Some(key) = registers.written_key(op) {
            ww[key.index()].1.push(OpId(op));
        }
    }
    ww
}

fn refuted(model: StoreModel, Refutation { certificate, pattern }: Refutation) -> Judgement {
    let pattern = if model == StoreModel::Wsc { "CyclicWSC" } else { pattern };
    Judgement::Violation { pattern: pattern.to_owned(), certificate }
}

/// Explains a cycle of program order and `wr` alone.
pub(crate) fn cyclic_from_the_start((cyclic, names): &CyclicLayer) -> Judgement {
    let Cyclic { chains, edges } = &**cyclic;
    let cycle = Paths::new(chains, edges)
        .shortest_cycle(CYCLE_SEARCH_STEPS)
        .expect("what has no topological order has a cycle");
    let edge = |step| match step {
        Step::Run { from, to } => Edge::given(OpId(from), OpId(to), names.run),
        Step::Edge(id) => {
            let edge = edges[id as usize];
            let relation = match edge.reason {
                PPO => names.run,
                WR => names.wr,
                _ => unreachable!("nothing is derived yet"),
            };
            Edge::given(OpId(edge.from), OpId(edge.to), relation)
        }
    };
    violation(names.cycle, cycle.into_iter().map(edge).collect(), None)
}
