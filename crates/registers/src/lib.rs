//! Deciders for registers: whether a recorded history satisfies a model, with a proof.
//!
//! [`judge`] takes a history and any models. [`decide`] takes causal models, shares the work that
//! they have in common, and returns one judgement per model:
//!
//! ```
//! use consistory_registers::{CausalModel, Options, decide};
//! use consistory_history::{Action, HistoryBuilder};
//! use consistory_verdict::Judgement;
//!
//! // Message passing that loses the message: t1 sees y = 1, but not the x = 1 before it.
//! let mut b = HistoryBuilder::new();
//! let (t0, t1) = (b.session("t0"), b.session("t1"));
//! let (x, y) = (b.key("x"), b.key("y"));
//! let (zero, one) = (b.int(0), b.int(1));
//! b.push(t0, Action::Write { key: x, value: one });
//! b.push(t0, Action::Write { key: y, value: one });
//! b.push(t1, Action::Read { key: y, value: one });
//! b.push(t1, Action::Read { key: x, value: zero });
//! let history = b.finish().unwrap();
//!
//! let judgements = decide(&history, &[CausalModel::Cc], &Options::default());
//! let Judgement::Violation { pattern, .. } = &judgements[0].judgement else { panic!() };
//! assert_eq!(pattern, "WriteCOInitRead");
//! ```
//!
//! | modules | contents |
//! | --- | --- |
//! | `reads_from`, `registers` | the writes that each read may have read from, and a history prepared for the deciders |
//! | `causal/` | CC, CCv and CM in one sweep; CCM and wCCM from the views of the sessions |
//! | `store_order/` | wSC and wTSO by saturation; SC, TSO and PSO by completing the saturated order, with one engine per file in `completion/` |
//! | `real_time` | linearizability of reads and writes |
//! | `repeated_values/` | the choice of sources if values repeat |
//! | `kernel` | the pairs that all witnesses of SC order alike |
//! | `court`, `shrink` | any models at once, gradually; minimal violating histories |
//!
//! Start with `causal/mod.rs`, then `store_order/mod.rs`.

mod causal;
mod court;
mod kernel;
mod order;
mod reads_from;
mod real_time;
mod reason;
mod registers;
mod repeated_values;
mod shrink;
mod store_order;
mod threads;

use std::time::Instant;

use consistory_history::{History, OpId};
use consistory_models::{ClientOrder, find};
use consistory_verdict::{Budget, Certificate, Pattern, Stopped};

pub use causal::CausalModel;
pub use causal::convergent::ConvergentModel;
pub use causal::memory::Scope;
pub use court::{Model, judge};
pub use kernel::{Finder, Kernel, NoKernel, kernel};
pub use real_time::decide_linearizable;
pub use shrink::{shrink, subset};
pub use store_order::StoreModel;
pub use store_order::completion::Engine;

use crate::causal::Causal;
use crate::causal::sweep::ConflictScope;
use crate::reads_from::Candidates;
use crate::repeated_values::replay::Memory;
use crate::store_order::finals::Finals;

/// Share of the budget (one part in this number) for a model that was not asked for.
const UNASKED_BUDGET_SHARE: u32 = 50;

/// Number of operations from which PSO is first tried by deciding TSO.
const TSO_FIRST_MIN_OPS: usize = 5_000;

/// Share of the budget for that attempt.
const TSO_FIRST_BUDGET_SHARE: u32 = 4;

/// A judgement by a model of registers.
pub type Judgement = consistory_verdict::Judgement<Certificate>;
/// A ruling on a model of registers.
pub type Ruling = consistory_verdict::Ruling<Certificate>;
/// Options of the register deciders.
pub type Options = consistory_verdict::Options<Tuning>;

/// Settings of these deciders. They do not affect verdicts, except that `order` affects those of
/// definitions about transactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tuning {
    /// Operations for which CM is computed.
    pub scope: Scope,
    /// The engine that completes SC, TSO and PSO.
    pub engine: Engine,
    /// Order between transactions that `so` denotes in definitions about transactions.
    pub order: ClientOrder,
}

/// Decides a register history of single operations for each of the models.
pub fn decide(history: &History, models: &[CausalModel], options: &Options) -> Vec<Ruling> {
    decide_for(history, models, models, options)
}

/// Decides models of which only some were asked for. A search for one of the others takes a small
/// share of the budget.
fn decide_for(
    history: &History,
    models: &[CausalModel],
    asked: &[CausalModel],
    options: &Options,
) -> Vec<Ruling> {
    let started = Instant::now();
    let candidates = match reads_from::candidates(history, &options.budget.renewed()) {
        Ok(candidates) => candidates,
        Err(stopped) => return timed(started, models, |_| Err(stopped.clone())),
    };
    if let Some(read) = candidates.thin_air {
        return timed(started, models, |_| Ok(thin_air_read(read)));
    }
    if candidates.ambiguous.is_empty() {
        decide_differentiated(history, &candidates, models, options, started)
    } else {
        let Options { budget, jobs, tuning: Tuning { scope, .. } } = options;
        timed(started, models, |model| {
            let budget = &match asked.contains(&model) {
                true => budget.renewed(),
                false => budget.share(UNASKED_BUDGET_SHARE),
            };
            let own = match model {
                CausalModel::Cc => Memory::Causal,
                CausalModel::Ccv => Memory::Convergent,
                CausalModel::Cm => Memory::PerSession,
            };
            let memories = [own, Memory::Single];
            repeated_values::choices::search(
                history,
                &candidates,
                &memories,
                budget,
                |source, wr| {
                    Causal::prepare(history, source, conflict_scope(&[model]), *jobs, budget)?
                        .judge(model, *scope, wr)
                },
            )
        })
    }
}

/// Decides a register history of single operations for a model with a store order.
///
/// Final values count for SC, TSO and PSO, if these apply to the history. Every engine except
/// [`Engine::Auto`] runs alone. `Auto` keeps half of the time for stronger models, since a store
/// order that witnesses SC also witnesses TSO and PSO and is sometimes found sooner.
pub fn decide_stored(history: &History, model: StoreModel, options: &Options) -> Ruling {
    let started = Instant::now();
    let candidates = match reads_from::candidates(history, &options.budget.renewed()) {
        Ok(candidates) => candidates,
        Err(stopped) => return Ruling::own(Judgement::Undecided(stopped), started.elapsed()),
    };
    let stronger = match options.tuning.engine {
        Engine::Auto => model.stronger(),
        _ => &[],
    };
    let applies = || {
        let known = find(model.id()).expect("the catalogue has every model with a store order");
        known.definition.applies(history).is_ok()
    };
    let ends = !model.is_weak() && !history.finals().is_empty() && applies();
    let finals = if ends { Finals::of(history) } else { Finals::default() };
    let decide = |model: StoreModel, budget: &Budget| match candidates.thin_air {
        Some(read) => thin_air_read(read),
        None => {
            let engine = options.tuning.engine.on(options.jobs);
            store_order::decide(history, &candidates, &finals, model, engine.as_ref(), budget)
                .unwrap_or_else(Judgement::Undecided)
        }
    };
    let by_stronger = |other: StoreModel, budget: &Budget| match decide(other, budget) {
        Judgement::Consistent(certificate) => store_order::witness(history, &certificate),
        _ => None,
    };
    // The rules of PSO force few pairs; those of TSO leave far less of a large history to search.
    if model == StoreModel::Pso
        && !stronger.is_empty()
        && history.len() >= TSO_FIRST_MIN_OPS
        && let Some(certificate) =
            by_stronger(StoreModel::Tso, &options.budget.share(TSO_FIRST_BUDGET_SHARE))
    {
        return Ruling::own(Judgement::Consistent(certificate), started.elapsed());
    }
    let own_budget =
        if stronger.is_empty() { options.budget.renewed() } else { options.budget.share(2) };
    let mut judgement = decide(model, &own_budget);
    for &other in stronger {
        if !matches!(judgement, Judgement::Undecided(Stopped::Time { .. })) {
            break;
        }
        let budget = options.budget.share(2 * stronger.len() as u32);
        if let Some(certificate) = by_stronger(other, &budget) {
            judgement = Judgement::Consistent(certificate);
        }
    }
    if let Judgement::Undecided(Stopped::Time { limit }) = &mut judgement
        && !stronger.is_empty()
    {
        // The whole budget was used, not only the model's own half.
        *limit *= 2;
    }
    Ruling::own(judgement, started.elapsed())
}

/// Finds a read that no model allows: of a value that was never written, or that only its own
/// session wrote, later.
fn impossible_read(history: &History, budget: &Budget) -> Option<Judgement> {
    let candidates = reads_from::candidates(history, budget).ok()?;
    if let Some(read) = candidates.thin_air {
        return Some(thin_air_read(read));
    }
    causal::future_read(&registers::Registers::new(history, &candidates.source))
}

/// Decides a register history of single operations, without final values, for a model that combines
/// the views of all sessions.
pub fn decide_convergent(history: &History, model: ConvergentModel, options: &Options) -> Ruling {
    let started = Instant::now();
    let budget = &options.budget.renewed();
    let candidates = match reads_from::candidates(history, budget) {
        Ok(candidates) => candidates,
        Err(stopped) => return Ruling::own(Judgement::Undecided(stopped), started.elapsed()),
    };
    let judge = |source: &[_], wr: &[_]| {
        causal::convergent::judge(history, source, model, options.jobs, budget, wr)
    };
    let judgement = if let Some(read) = candidates.thin_air {
        Ok(thin_air_read(read))
    } else if candidates.ambiguous.is_empty() {
        judge(&candidates.source, &[])
    } else {
        repeated_values::choices::search(history, &candidates, &[Memory::Single], budget, judge)
    };
    let judgement = judgement.unwrap_or_else(Judgement::Undecided);
    Ruling::own(judgement, started.elapsed())
}

fn thin_air_read(read: OpId) -> Judgement {
    Judgement::Violation {
        pattern: Pattern::ThinAirRead,
        certificate: Certificate::ThinAirRead { read },
    }
}

fn decide_differentiated(
    history: &History,
    candidates: &Candidates,
    models: &[CausalModel],
    options: &Options,
    started: Instant,
) -> Vec<Ruling> {
    let Options { budget, jobs, .. } = options;
    let causal =
        Causal::prepare(history, &candidates.source, conflict_scope(models), *jobs, budget);
    timed(started, models, |model| match &causal {
        Ok(causal) => causal.judge(model, options.tuning.scope, &[]),
        Err(stopped) => Err(stopped.clone()),
    })
}

/// Returns which conflicts the sweep has to list for these models.
fn conflict_scope(models: &[CausalModel]) -> ConflictScope {
    match models.iter().all(|&model| model == CausalModel::Cc) {
        true => ConflictScope::Between,
        false => ConflictScope::Around,
    }
}

/// Judges model by model, the first from `started` on.
fn timed(
    mut started: Instant,
    models: &[CausalModel],
    mut judge: impl FnMut(CausalModel) -> Result<Judgement, Stopped>,
) -> Vec<Ruling> {
    models
        .iter()
        .map(|&model| {
            let judgement = judge(model).unwrap_or_else(Judgement::Undecided);
            let now = Instant::now();
            let time = now - std::mem::replace(&mut started, now);
            Ruling::own(judgement, time)
        })
        .collect()
}
