//! Models with a store order, decided gradually: SC, TSO, PSO, and the weak models wSC and wTSO.
//!
//! First the forced edges are added until nothing changes ([`crate::store_order::saturation`]). A
//! cycle refutes the weak model, and with it the strong one, by a proof of polynomial size; most
//! violations are found here. Without a cycle the weak model holds, and the saturated order proves
//! it. For the strong model, final values are added ([`crate::store_order::finals`]), and the order
//! is completed ([`crate::store_order::completion`]).
//!
//! If values repeat, the source of a read, or the last write of a key, may be open. First a
//! schedule is tried that lets such reads take the value at hand
//! ([`crate::store_order::completion::schedule`]); for a history that a memory really produced this
//! often succeeds without any decision. Otherwise a SAT solver chooses
//! ([`crate::repeated_values::conflict_driven`]). A refutation is written as a tree of the choices
//! that matter ([`crate::repeated_values::choices`]); the same search decides histories that the
//! solver does not accept.

pub(crate) mod agenda;
pub(crate) mod completion;
pub(crate) mod finals;
pub(crate) mod latest;
pub(crate) mod layers;
pub(crate) mod reasons;
pub(crate) mod saturation;

use std::cmp::Reverse;

use crate::Judgement;
use consistory_history::{History, KeyId, OpId};
use consistory_verdict::{Budget, Certificate, Edge, Pattern, Stopped};
use rustc_hash::FxHashMap;

use crate::causal::{future_read, violation};
use crate::order::{Cyclic, PathStep, Paths};
use crate::reads_from::Candidates;
use crate::reason::Reason;
use crate::registers::Registers;
use crate::repeated_values::choices::{self, Choice};
use crate::repeated_values::conflict_driven::{self, Chosen, Core, SourceSearch};
use crate::repeated_values::replay::{self, replay};
use crate::store_order::completion::schedule::{Scheduled, schedule_all};
use crate::store_order::completion::split::{Refutation, leaf};
use crate::store_order::completion::{Complete, Completed};
use crate::store_order::finals::Finals;
use crate::store_order::layers::{CyclicLayer, Memory, layers};
use crate::store_order::saturation::{Readers, Saturation};

/// Steps after which the search for a shortest cycle returns the best cycle found so far.
const CYCLE_SEARCH_STEPS: u64 = 5_000_000;

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
    /// Returns the id in the catalogue.
    pub(crate) fn id(self) -> &'static str {
        match self {
            StoreModel::Wsc => "wsc",
            StoreModel::Sc => "sc",
            StoreModel::Wtso => "wtso",
            StoreModel::Tso => "tso",
            StoreModel::Pso => "pso",
        }
    }

    fn memory(self) -> Memory {
        match self {
            StoreModel::Wsc | StoreModel::Sc => Memory::Sequential,
            StoreModel::Wtso | StoreModel::Tso => Memory::TotalStore,
            StoreModel::Pso => Memory::PartialStore,
        }
    }

    /// Returns the models whose witnesses also witness this model, strongest first.
    pub(crate) fn stronger(self) -> &'static [StoreModel] {
        match self {
            StoreModel::Tso => &[StoreModel::Sc],
            StoreModel::Pso => &[StoreModel::Sc, StoreModel::Tso],
            StoreModel::Wsc | StoreModel::Sc | StoreModel::Wtso => &[],
        }
    }

    pub(crate) fn is_weak(self) -> bool {
        matches!(self, StoreModel::Wsc | StoreModel::Wtso)
    }
}

/// Decides a history.
pub(crate) fn decide(
    history: &History,
    candidates: &Candidates,
    finals: &Finals,
    model: StoreModel,
    engine: &dyn Complete,
    budget: &Budget,
) -> Result<Judgement, Stopped> {
    if let Some(key) = finals.impossible {
        let certificate = Certificate::SplitLast { key, branches: Vec::new() };
        return Ok(Judgement::Violation { pattern: Pattern::FinalValue, certificate });
    }
    let court = ChoiceCourt { history, finals, model, engine, budget, effort: Effort::Complete };
    if candidates.ambiguous.is_empty() && finals.open.is_empty() {
        let choice = Choice { source: &candidates.source, wr: &[], last: &[], is_total: true };
        let judgement = court.judge(choice)?;
        return Ok(judgement.expect("a total choice is decided"));
    }
    let search = |court: ChoiceCourt<'_>, candidates: &Candidates, finals: &Finals, weights| {
        let guess = || replay(history, candidates, replay::Memory::Single, budget);
        let judge = |choice: Choice<'_>| court.judge(choice);
        choices::search_from(history, candidates, &finals.open, guess, weights, budget, judge)
    };
    if !conflict_driven::takes(history, candidates) {
        return search(court, candidates, finals, &FxHashMap::default());
    }
    let core = match court.choose(candidates)? {
        Ok(judgement) => return Ok(judgement),
        Err(core) => core,
    };
    let mut needed = candidates.clone();
    needed.ambiguous.retain(|(read, _)| core.reads.contains_key(read));
    let mut ends = finals.clone();
    ends.open.retain(|(key, _)| core.keys.contains(key));
    let court = ChoiceCourt { finals: &ends, effort: Effort::Refute, ..court };
    search(court, &needed, &ends, &core.reads)
}

/// Effort spent on a partial choice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// Try a schedule, and check whether the store order can be completed.
    Complete,
    /// Try a schedule.
    Guess,
    /// Saturate only: no choice can be completed.
    Refute,
}

/// Inputs for judging a choice.
struct ChoiceCourt<'c> {
    history: &'c History,
    finals: &'c Finals,
    model: StoreModel,
    engine: &'c dyn Complete,
    budget: &'c Budget,
    effort: Effort,
}

impl ChoiceCourt<'_> {
    /// Chooses all open sources and last writes. If no choice is possible, returns the choices that
    /// a refutation needs.
    fn choose(&self, candidates: &Candidates) -> Result<Result<Judgement, Core>, Stopped> {
        let ChoiceCourt { history, finals, model, budget, .. } = *self;
        let nothing = Choice { source: &candidates.source, wr: &[], last: &[], is_total: false };
        let court = ChoiceCourt { effort: Effort::Guess, ..*self };
        if let Some(judgement) = court.judge(nothing)? {
            return Ok(Ok(judgement));
        }
        let registers = &Registers::new(history, &candidates.source);
        let layers = layers(registers, model.memory(), budget)?;
        let layers = layers.map_err(|_| ()).expect("it was judged");
        let search =
            SourceSearch::new(registers, model.memory(), layers, candidates, finals, budget)?;
        let mut search = search.expect("what is settled was judged");
        while let Some(Chosen { source, last }) = search.next(budget)? {
            let wr = &choices::chosen(candidates, &source);
            let choice = Choice { source: &source, wr, last: &last, is_total: true };
            match self.judge(choice)?.expect("a total choice is decided") {
                Judgement::Violation { certificate, .. } => {
                    let (sources, last) = choices::used(&certificate, choice);
                    search.forbid(&sources, &last);
                }
                judgement => return Ok(Ok(judgement)),
            }
        }
        search.core(budget).map(Err)
    }

    /// Decides a choice. Returns nothing if it is partial and not refuted.
    fn judge(&self, choice: Choice<'_>) -> Result<Option<Judgement>, Stopped> {
        let ChoiceCourt { history, finals, model, engine, budget, effort } = *self;
        let registers = &Registers::new(history, choice.source);
        if let Some(judgement) = future_read(registers) {
            return Ok(Some(judgement));
        }
        let has_finals = !finals.clear.is_empty() || !finals.open.is_empty();
        // An order that witnesses SC witnesses TSO and PSO.
        if !model.is_weak()
            && choice.is_total
            && self.effort != Effort::Refute
            && !has_finals
            && let Some(order) = engine.guess(registers)
        {
            return Ok(Some(self.consistent(registers, &order, choice.wr)));
        }
        let layers = match layers(registers, model.memory(), budget)? {
            Ok(layers) => layers,
            Err(cyclic) => return Ok(Some(cyclic_from_the_start(&cyclic))),
        };
        let readers = Readers::new(registers);
        let mut saturation = Saturation::new(registers, &readers, layers);
        if saturation.saturate(budget)?.is_err() {
            return Ok(Some(refuted(model, leaf(&saturation))));
        }
        if model.is_weak() && choice.is_total && effort != Effort::Refute {
            let (pairs, wr) = (saturation.added(), choice.wr.to_vec());
            return Ok(Some(Judgement::Consistent(Certificate::Closure { pairs, wr })));
        }
        for &write in finals.clear.iter().chain(choice.last) {
            if saturation.put_last(write).is_err() || saturation.saturate(budget)?.is_err() {
                let Refutation { certificate, .. } = leaf(&saturation);
                let pattern = Pattern::FinalValue;
                return Ok(Some(Judgement::Violation { pattern, certificate }));
            }
        }
        if !choice.is_total
            && effort != Effort::Refute
            && let Some(judgement) = self.guess(registers, &mut saturation, choice)?
        {
            return Ok(Some(judgement));
        }
        if model.is_weak() || (!choice.is_total && effort != Effort::Complete) {
            return Ok(None);
        }
        Ok(match engine.complete(registers, &mut saturation, budget)? {
            Completed::Refuted(refutation) => Some(refuted(model, refutation)),
            Completed::Order(_) if !choice.is_total || effort == Effort::Refute => None,
            Completed::Order(order) => Some(self.consistent(registers, &order, choice.wr)),
        })
    }

    /// Guesses all open choices.
    fn guess(
        &self,
        registers: &Registers<'_>,
        saturation: &mut Saturation<'_>,
        choice: Choice<'_>,
    ) -> Result<Option<Judgement>, Stopped> {
        let start = saturation.mark();
        let mut found = None;
        if self.guess_last(saturation, &self.finals.open[choice.last.len()..])? {
            found = schedule_all(registers, saturation, self.budget)?;
        }
        saturation.undo(start);
        let Some(Scheduled { order, source }) = found else { return Ok(None) };
        let mut wr = choice.wr.to_vec();
        for read in self.history.ops().filter(|&read| self.history.reads(read).is_some()) {
            if registers.source[read.index()].get().is_none()
                && let Some(write) = source[read.index()].get()
            {
                wr.push((read, write));
            }
        }
        wr.sort_unstable();
        if self.model.is_weak() {
            let total = Choice { source: &source, wr: &wr, is_total: true, ..choice };
            return self.judge(total);
        }
        Ok(Some(self.consistent(registers, &order, &wr)))
    }

    /// Puts a write after all others of each key, preferably the one with the most operations
    /// before it. Returns whether there is one for each key.
    fn guess_last(
        &self,
        saturation: &mut Saturation<'_>,
        open: &[(KeyId, Vec<OpId>)],
    ) -> Result<bool, Stopped> {
        for (_, candidates) in open {
            let order = &saturation.layer().order;
            let chains = order.chains().ids();
            let before = |op: &OpId| -> u64 {
                chains.clone().map(|chain| u64::from(order.count_until(*op, chain))).sum()
            };
            let mut latest_first = candidates.clone();
            latest_first.sort_by_key(|op| Reverse(before(op)));
            let mut is_found = false;
            for write in latest_first {
                let point = saturation.mark();
                is_found =
                    saturation.put_last(write).is_ok() && saturation.saturate(self.budget)?.is_ok();
                if is_found {
                    break;
                }
                saturation.undo(point);
            }
            if !is_found {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Builds the certificate of an order that satisfies a model.
    fn consistent(
        &self,
        registers: &Registers<'_>,
        order: &[OpId],
        wr: &[(OpId, OpId)],
    ) -> Judgement {
        if self.model == StoreModel::Sc {
            return sequential(registers, order, wr);
        }
        let counting = order.iter().copied().filter(|&op| registers.counts(op));
        let ww = store_order(self.history, counting);
        Judgement::Consistent(Certificate::Witness { ww, wr: wr.to_vec() })
    }
}

/// Converts the store order of a certificate to a certificate for a weaker model.
pub(crate) fn witness(history: &History, certificate: &Certificate) -> Option<Certificate> {
    match certificate {
        Certificate::Order { order, wr } => {
            let ww = store_order(history, order.iter().copied());
            Some(Certificate::Witness { ww, wr: wr.clone() })
        }
        Certificate::Witness { .. } => Some(certificate.clone()),
        _ => None,
    }
}

/// Returns the operations that count, in sequential order.
fn sequential(registers: &Registers<'_>, order: &[OpId], wr: &[(OpId, OpId)]) -> Judgement {
    let order = order.iter().copied().filter(|&op| registers.counts(op)).collect();
    Judgement::Consistent(Certificate::Order { order, wr: wr.to_vec() })
}

/// Returns the writes of each key in the order of a run, the initial write first.
fn store_order(history: &History, run: impl Iterator<Item = OpId>) -> Vec<(KeyId, Vec<OpId>)> {
    let mut ww: Vec<(KeyId, Vec<OpId>)> =
        history.keys().map(|key| (key, vec![history.initial_write(key)])).collect();
    for op in run {
        if let Some((key, _)) = history.writes(op) {
            ww[key.index()].1.push(op);
        }
    }
    ww
}

fn refuted(model: StoreModel, Refutation { certificate, pattern }: Refutation) -> Judgement {
    let pattern = if model == StoreModel::Wsc { "CyclicWSC" } else { pattern };
    Judgement::Violation { pattern: pattern.into(), certificate }
}

/// Explains a cycle of program order and `wr`.
pub(crate) fn cyclic_from_the_start((cyclic, names): &CyclicLayer) -> Judgement {
    let Cyclic { chains, edges } = &**cyclic;
    let cycle = Paths::new(chains, edges)
        .shortest_cycle(CYCLE_SEARCH_STEPS)
        .expect("what has no topological order has a cycle");
    let edge = |step| match step {
        PathStep::Run { from, to } => Edge::given(from, to, names.run),
        PathStep::Edge(id) => {
            let edge = edges[id.index()];
            let relation = match edge.reason.unpack() {
                Reason::Ppo => names.run,
                Reason::Wr => names.wr,
                _ => unreachable!("nothing is derived yet"),
            };
            Edge::given(edge.from, edge.to, relation)
        }
    };
    violation(names.cycle, cycle.into_iter().map(edge).collect(), None)
}
