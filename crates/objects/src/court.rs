//! The entry point: judges histories of calls by models of objects.
//!
//! Linearizability is decided first ([`crate::linearizability`]): a linearizable history satisfies
//! every model. Other models are not local, so they are searched on the whole history
//! ([`crate::visibility`]).

use std::time::{Duration, Instant};

use consistory_spec::{NAMED, ObjectModel, object_model_implies};
use consistory_verdict::{Attempt, Budget, Linearization as LinearizationCertificate, Stopped};

use crate::calls::CallIndex;
use crate::definition::Execution;
use crate::just_in_time::Threads;
use crate::linearizability::{by_return, ids, judge_linearizability, return_key, shortest_prefix};
use crate::task::Task;
use crate::visibility::{Explanation, Strategy, Visibility, explain};
use crate::{Judgement, Options, Ruling};

/// Settings of the deciders in this crate. Verdicts do not depend on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// Search or decider to use.
    pub engine: Engine,
    /// Number of steps of a search for a linearization, first depth first and then in waves, before
    /// it is restarted on all threads. Longer histories allow more steps.
    pub alone: u64,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning { engine: Engine::default(), alone: 20_000 }
    }
}

pub(crate) fn threads(options: &Options) -> Threads {
    Threads::new(options.jobs, options.tuning.alone)
}

/// The search or decider that judges a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// Fastest decider of the model.
    #[default]
    Fastest,
    /// Algorithm of the paper, for any model.
    Paper {
        /// Order in which operations are tried.
        strategy: Strategy,
        /// Visibilities that are tried.
        visibility: Visibility,
    },
}

/// Judges a history of an object's calls by each of the models.
///
/// A linearizable history satisfies every model, by the same certificate: each operation sees
/// everything linearized before it. Weak models are judged first: a history that violates one
/// violates the models that imply it.
pub fn judge_objects(task: &Task<'_>, models: &[ObjectModel], options: &Options) -> Vec<Ruling> {
    let mut started = Instant::now();
    // Returns the time since its previous call.
    let mut lap = || {
        let now = Instant::now();
        now - std::mem::replace(&mut started, now)
    };
    let asked = models.iter().any(ObjectModel::is_linearizability);
    let share = options.budget.share(if asked { 1 } else { 4 });
    let linearizability = judge_linearizability(task, &share, &threads(options));
    if let Ok(judgement @ Judgement::Consistent(_)) = &linearizability {
        return models.iter().map(|_| Ruling::own(judgement.clone(), lap())).collect();
    }
    // The time of the search is attributed to linearizability if that is one of the models,
    // otherwise to the first model judged.
    let searched = if asked { lap() } else { Duration::ZERO };
    // Named models from weak to strong, then the others.
    let strength = |model: &ObjectModel| NAMED.iter().rev().position(|id| *id == model.id);
    let mut order: Vec<usize> = (0..models.len()).collect();
    order.sort_by_key(|&i| strength(&models[i]).unwrap_or(usize::MAX));
    let mut rulings: Vec<Option<Ruling>> = vec![None; models.len()];
    let mut violated: Vec<(&'static str, Judgement)> = Vec::new();
    for i in order {
        let model = &models[i];
        let id = strength(model).map(|at| NAMED[NAMED.len() - 1 - at]);
        let weaker = violated
            .iter()
            .find(|(weaker, _)| id.is_some_and(|id| object_model_implies(id, weaker)));
        let (judgement, via) = if model.is_linearizability()
            && let Ok(judgement) = &linearizability
        {
            (judgement.clone(), None)
        } else if let Some((weaker, judgement)) = weaker {
            (judgement.clone(), Some(*weaker))
        } else if let (true, Err(stopped)) = (model.is_linearizability(), &linearizability) {
            (Judgement::Undecided(stopped.clone()), None)
        } else {
            let (strategy, visibility) = (Strategy::default(), Visibility::default());
            let budget = options.budget.renewed();
            let judgement = judge_by_axioms(task, model, strategy, visibility, &budget);
            (judgement.unwrap_or_else(Judgement::Undecided), None)
        };
        let own = if model.is_linearizability() { searched } else { Duration::ZERO };
        let ruling = Ruling { judgement, via, time: lap() + own };
        if let (Some(id), Judgement::Violation { .. }, None) = (id, &ruling.judgement, ruling.via) {
            violated.push((id, ruling.judgement.clone()));
        }
        rulings[i] = Some(ruling);
    }
    rulings.into_iter().map(|ruling| ruling.expect("every model is judged")).collect()
}

/// Judges a history of an object's calls by one model with one search.
pub fn judge_object(task: &Task<'_>, model: &ObjectModel, options: &Options) -> Ruling {
    let started = Instant::now();
    let budget = options.budget.renewed();
    let judgement = match options.tuning.engine {
        Engine::Fastest if model.is_linearizability() => {
            judge_linearizability(task, &budget, &threads(options))
        }
        Engine::Fastest => {
            judge_by_axioms(task, model, Strategy::default(), Visibility::default(), &budget)
        }
        Engine::Paper { strategy, visibility } => {
            judge_by_axioms(task, model, strategy, visibility, &budget)
        }
    };
    let judgement = judgement.unwrap_or_else(Judgement::Undecided);
    Ruling::own(judgement, started.elapsed())
}

fn judge_by_axioms(
    task: &Task<'_>,
    model: &ObjectModel,
    strategy: Strategy,
    visibility: Visibility,
    budget: &Budget,
) -> Result<Judgement, Stopped> {
    let search = |task: &Task<'_>| explain(task, model, strategy, visibility, budget);
    let certificate = |execution: Execution| {
        let vis = execution.vis.iter().map(|seen| ids(task, seen)).collect();
        let is_complete = execution.vis.iter().enumerate().all(|(i, seen)| seen.len() == i);
        let order = ids(task, &execution.lin);
        LinearizationCertificate { order, vis: (!is_complete).then_some(vis) }
    };
    let stuck = match search(task)? {
        Explanation::Found(execution) => {
            return Ok(certificate(execution).into());
        }
        Explanation::Stuck { stuck, .. } => stuck,
    };
    let places: Vec<CallIndex> = task.calls().places().collect();
    let returns = by_return(task, &places);
    let (last, mut unexplained) =
        shortest_prefix(task, &returns, stuck, None, |task| match search(task)? {
            Explanation::Found(_) => Ok(None),
            Explanation::Stuck { stuck, attempts } => {
                let unexplained = task.calls().get(stuck).id;
                let attempt =
                    |execution| Attempt { linearization: certificate(execution), unexplained };
                Ok(Some((stuck, attempts.into_iter().map(attempt).collect())))
            }
        })?;
    let key = |place: CallIndex| return_key(task, place);
    let before = task.relaxed(|place| key(place) < key(last));
    if let Ok(Explanation::Found(execution)) = search(&before) {
        unexplained.before = Some(certificate(execution));
    }
    Ok(unexplained.into())
}
