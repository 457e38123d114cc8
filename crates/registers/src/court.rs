//! The court: judges a history by any set of models, weak ones first.
//!
//! Causal models, models that combine the sessions' views, and models with a store order have
//! deciders of their own. Every other definition is run by the reference evaluator, which takes
//! small histories only. Implications between models are used first: a history that violates a
//! weaker causal model violates the stronger one too, at any size, and the proof is the weaker
//! model's. If a history is too large for the evaluator, a stronger model that holds settles the
//! weaker one. Only proved implications are used.
//!
//! A store order that witnesses SC also witnesses TSO and PSO, and one for TSO witnesses PSO, so
//! these models are decided one after the other. The other models of a large history are judged in
//! parallel.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Judgement;
use consistory_history::History;
use consistory_models::{
    self as models, Definition, DoesNotApply, EvaluateOptions, evaluate, implies,
};
use consistory_verdict::Stopped;
use consistory_work::side_by_side;

use crate::causal::CausalModel;
use crate::causal::convergent::ConvergentModel;
use crate::real_time::{self, decide_linearizable};
use crate::store_order::{StoreModel, witness};
use crate::threads::worthy;
use crate::{Options, Ruling, decide_convergent, decide_for, decide_stored, impossible_read};

/// A model to judge by.
#[derive(Clone, Debug)]
pub enum Model {
    /// A model of the catalogue, with its known implications.
    Catalogued(&'static models::Model),
    /// A model that a user defined.
    Own {
        /// The id in reports: the path of the file.
        id: Arc<str>,
        /// The definition.
        definition: Arc<Definition>,
    },
}

impl Model {
    /// Returns the id that reports use.
    pub fn id(&self) -> &str {
        match self {
            Model::Catalogued(model) => model.id,
            Model::Own { id, .. } => id,
        }
    }

    /// Returns the definition.
    pub fn definition(&self) -> &Definition {
        match self {
            Model::Catalogued(model) => &model.definition,
            Model::Own { definition, .. } => definition,
        }
    }

    /// Returns the causal model, if this is one.
    pub fn causal(&self) -> Option<CausalModel> {
        CAUSAL.into_iter().find(|(id, _)| self.is_catalogued(id)).map(|(_, model)| model)
    }

    /// Returns the model with a store order, if this is one.
    pub fn stored(&self) -> Option<StoreModel> {
        STORED.into_iter().find(|(id, _)| self.is_catalogued(id)).map(|(_, model)| model)
    }

    /// Returns the model that combines the sessions' views, if this is one.
    pub fn convergent(&self) -> Option<ConvergentModel> {
        CONVERGENT.into_iter().find(|(id, _)| self.is_catalogued(id)).map(|(_, model)| model)
    }

    /// Returns whether the model has a decider of its own for a history, and with it its own rules
    /// for certificates. Only models with a store order handle final values.
    pub fn has_decider(&self, history: &History) -> bool {
        if self.is_catalogued("linearizability") {
            return real_time::takes(history);
        }
        let stored = self.stored();
        let is_known = stored.is_some() || self.causal().is_some() || self.convergent().is_some();
        let knows_finals = stored.is_some_and(|stored| !stored.is_weak());
        is_known && (knows_finals || history.finals().is_empty())
    }

    /// Returns whether this model is proved to be at least as strong as a model of the catalogue.
    pub fn settles(&self, weaker: &str) -> bool {
        match self {
            Model::Catalogued(model) => model.id == weaker || implies(model.id, weaker).is_some(),
            Model::Own { .. } => false,
        }
    }

    fn is_catalogued(&self, id: &str) -> bool {
        matches!(self, Model::Catalogued(model) if model.id == id)
    }
}

const CAUSAL: [(&str, CausalModel); 3] =
    [("cc", CausalModel::Cc), ("ccv", CausalModel::Ccv), ("cm", CausalModel::Cm)];

const CONVERGENT: [(&str, ConvergentModel); 2] =
    [("ccm", ConvergentModel::Ccm), ("wccm", ConvergentModel::Wccm)];

const STORED: [(&str, StoreModel); 5] = [
    ("wsc", StoreModel::Wsc),
    ("sc", StoreModel::Sc),
    ("wtso", StoreModel::Wtso),
    ("tso", StoreModel::Tso),
    ("pso", StoreModel::Pso),
];

/// Judges a register history by each of the models that apply to it.
pub fn judge(
    history: &History,
    models: &[Model],
    options: &Options,
) -> Vec<Result<Ruling, DoesNotApply>> {
    let applies: Vec<_> = models.iter().map(|model| model.definition().applies(history)).collect();
    // Weak models first: a history that violates one violates the stronger ones. The causal models
    // do this among themselves.
    let needs = |model: &Model, id: &str| match model.causal() {
        Some(_) => model.is_catalogued(id),
        // CCM saturates the same views as CM.
        None if model.convergent().is_some() && id == "cm" => false,
        None => model.settles(id),
    };
    let needed = CAUSAL.into_iter().filter(|(id, _)| {
        models.iter().zip(&applies).any(|(model, applies)| applies.is_ok() && needs(model, id))
    });
    let (ids, kinds): (Vec<&'static str>, Vec<CausalModel>) = needed.unzip();
    let asked: Vec<CausalModel> = models.iter().filter_map(Model::causal).collect();
    let causal = decide_for(history, &kinds, &asked, options);
    let causal: Vec<_> = ids.into_iter().zip(causal).collect();
    // Drop the rulings on models that were decided only for the sake of others.
    let is_asked = |id: &str| models.iter().any(|model| model.is_catalogued(id));
    let unasked =
        causal.iter().filter(|(id, _)| !is_asked(id)).map(|(_, ruling)| ruling.time).sum();
    let rule = |model: &Model, options: &Options| -> Result<Ruling, DoesNotApply> {
        let own = causal.iter().find(|(id, _)| model.is_catalogued(id));
        let weaker = causal.iter().find(|(id, ruling)| {
            model.settles(id) && matches!(ruling.judgement, Judgement::Violation { .. })
        });
        if let Some((_, ruling)) = own {
            return Ok(ruling.clone());
        }
        if let Some((id, ruling)) = weaker {
            return Ok(Ruling { via: Some(id), ..ruling.clone() });
        }
        if model.is_catalogued("linearizability") && model.has_decider(history) {
            return Ok(decide_linearizable(history, options));
        }
        let takes_it = |stored: &StoreModel| !stored.is_weak() || model.has_decider(history);
        if let Some(stored) = model.stored().filter(takes_it) {
            return Ok(decide_stored(history, stored, options));
        }
        if let Some(convergent) = model.convergent().filter(|_| model.has_decider(history)) {
            return Ok(decide_convergent(history, convergent, options));
        }
        let started = Instant::now();
        let budget = options.budget.renewed();
        let order = options.tuning.order;
        let evaluation = EvaluateOptions { budget, order, ..EvaluateOptions::default() };
        let judgement = evaluate(model.definition(), history, &evaluation)?;
        if let Judgement::Undecided(Stopped::Size { .. }) = judgement {
            let budget = &options.budget.renewed();
            if let Some(judgement) = impossible_read(history, budget) {
                return Ok(Ruling::own(judgement, started.elapsed()));
            }
            if let Some((id, judgement)) = by_a_stronger_model(history, model, options) {
                return Ok(Ruling { judgement, via: Some(id), time: started.elapsed() });
            }
        }
        Ok(Ruling::own(judgement, started.elapsed()))
    };
    let mut rulings: Vec<Option<Result<Ruling, DoesNotApply>>> =
        applies.into_iter().map(|applies| applies.err().map(Err)).collect();
    for later in 0..=STRONGER.len() {
        let is_next = |i: &usize| rulings[*i].is_none() && turn(models, &models[*i]) == later;
        let next: Vec<usize> = (0..models.len()).filter(is_next).collect();
        let open: Vec<usize> = next
            .into_iter()
            .filter(|&i| {
                rulings[i] = by_the_same_writes(history, models, &models[i], &rulings).map(Ok);
                rulings[i].is_none()
            })
            .collect();
        let ruled =
            rule_side_by_side(history, &open, options, |i, options| rule(&models[i], options));
        for (i, ruling) in open.into_iter().zip(ruled) {
            rulings[i] = Some(ruling);
        }
    }
    let mut rulings: Vec<_> =
        rulings.into_iter().map(|ruling| ruling.expect("every model has its turn")).collect();
    settle_by_implication(history, models, &mut rulings);
    charge(&mut rulings, models, unasked);
    rulings
}

/// Adds the time spent on models that were not asked for to the first model that needed them.
fn charge(rulings: &mut [Result<Ruling, DoesNotApply>], models: &[Model], time: Duration) {
    let mut strong = rulings.iter_mut().zip(models).filter(|(_, model)| model.causal().is_none());
    let first = strong.find_map(|(ruling, _)| ruling.as_mut().ok().filter(|r| r.via.is_none()));
    if let Some(ruling) = first {
        ruling.time += time;
    }
}

/// Models with a store order, from the strongest to the weakest.
const STRONGER: [&str; 3] = ["sc", "tso", "pso"];

/// Returns the position of a model in the order in which these are decided.
fn turn(models: &[Model], model: &Model) -> usize {
    let own = STRONGER.iter().position(|id| model.is_catalogued(id)).unwrap_or(0);
    let is_asked = |id: &&str| models.iter().any(|model| model.is_catalogued(id));
    STRONGER[..own].iter().filter(|id| is_asked(id)).count()
}

/// Settles a model by the store order that witnesses a stronger one.
fn by_the_same_writes(
    history: &History,
    models: &[Model],
    model: &Model,
    rulings: &[Option<Result<Ruling, DoesNotApply>>],
) -> Option<Ruling> {
    let started = Instant::now();
    let own = STRONGER.iter().position(|id| model.is_catalogued(id))?;
    let is_stronger = |other: &Model| STRONGER[..own].iter().any(|id| other.is_catalogued(id));
    let certificate = models.iter().zip(rulings).find_map(|(other, ruling)| match ruling {
        Some(Ok(Ruling { judgement: Judgement::Consistent(certificate), .. }))
            if is_stronger(other) =>
        {
            witness(history, certificate)
        }
        _ => None,
    })?;
    let judgement = Judgement::Consistent(certificate);
    Some(Ruling::own(judgement, started.elapsed()))
}

/// Decides several models of a history, in parallel if it is large. A decision that exceeds its
/// share of the memory is repeated alone.
fn rule_side_by_side<T: Send>(
    history: &History,
    open: &[usize],
    options: &Options,
    rule: impl Fn(usize, &Options) -> Result<Ruling, T> + Sync,
) -> Vec<Result<Ruling, T>> {
    let together = worthy(history, options.jobs).min(open.len()).max(1);
    let part = Options {
        budget: options.budget.with_part_of_memory(together),
        jobs: (options.jobs / together).max(1),
        ..options.clone()
    };
    let mut ruled = side_by_side(open.len(), together, |i| rule(open[i], &part));
    for (&i, ruling) in open.iter().zip(&mut ruled) {
        let is_short = |ruling: &Ruling| {
            matches!(ruling.judgement, Judgement::Undecided(Stopped::Memory { .. }))
        };
        if together > 1 && ruling.as_ref().is_ok_and(is_short) {
            *ruling = rule(i, options);
        }
    }
    ruled
}

/// Settles undecided models by rulings on other models.
fn settle_by_implication(
    history: &History,
    models: &[Model],
    rulings: &mut [Result<Ruling, DoesNotApply>],
) {
    let is_open = |ruling: &Result<Ruling, DoesNotApply>| {
        matches!(ruling, Ok(Ruling { judgement: Judgement::Undecided(_), .. }))
    };
    if !rulings.iter().any(is_open) {
        return;
    }
    // The checker has its own rules for these models, so their certificates also prove other
    // models.
    let decided: Vec<(&'static models::Model, Judgement)> = models
        .iter()
        .zip(&*rulings)
        .filter_map(|(model, ruling)| match (model, ruling) {
            (Model::Catalogued(known), Ok(Ruling { judgement, via: None, .. }))
                if model.has_decider(history) =>
            {
                Some((*known, judgement.clone()))
            }
            _ => None,
        })
        .collect();
    for (model, ruling) in models.iter().zip(rulings) {
        let (Model::Catalogued(open), Ok(ruling)) = (model, ruling) else { continue };
        if !matches!(ruling.judgement, Judgement::Undecided(_)) {
            continue;
        }
        let settling = decided.iter().find(|(other, judgement)| match judgement {
            Judgement::Consistent(_) => implies(other.id, open.id).is_some(),
            Judgement::Violation { .. } => implies(open.id, other.id).is_some(),
            Judgement::Undecided(_) => false,
        });
        if let Some((other, judgement)) = settling {
            ruling.judgement = judgement.clone();
            ruling.via = Some(other.id);
        }
    }
}

/// Finds a stronger model with its own decider that the history satisfies.
fn by_a_stronger_model(
    history: &History,
    model: &Model,
    options: &Options,
) -> Option<(&'static str, Judgement)> {
    let Model::Catalogued(weaker) = model else { return None };
    // Only the nearest stronger models: still stronger ones hold for fewer histories.
    let settling = [("pso", StoreModel::Pso)];
    settling
        .into_iter()
        .filter(|(id, _)| implies(id, weaker.id).is_some())
        .map(|(id, stronger)| (id, decide_stored(history, stronger, options).judgement))
        .find(|(_, judgement)| matches!(judgement, Judgement::Consistent(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use consistory_models::find;

    #[test]
    fn what_is_undecided_is_settled_by_what_is_not() {
        let history = consistory_formats::parse_str(
            "t0: w(x,1) r(x,1)\n",
            consistory_formats::Format::Hist,
            "settled",
        );
        let history = history.unwrap().remove(0);
        let of = |id: &str| Model::Catalogued(find(id).unwrap());
        let models = [of("ccm"), of("sc"), of("rmo")];
        let mut rulings = judge(&history, &models, &Options::default());
        for open in [0, 2] {
            let ruling = rulings[open].as_mut().unwrap();
            ruling.judgement = Judgement::Undecided(Stopped::Size { operations: 2, limit: 1 });
        }
        settle_by_implication(&history, &models, &mut rulings);
        for ruling in &rulings {
            let ruling = ruling.as_ref().unwrap();
            assert!(matches!(ruling.judgement, Judgement::Consistent(_)));
        }
        let via: Vec<_> = rulings.iter().map(|ruling| ruling.as_ref().unwrap().via).collect();
        assert_eq!(via, [Some("sc"), None, Some("sc")]);
    }
}
