//! Models of registers: judges histories, checks certificates, shrinks violations.

use consistory_certify::{
    Rejection as Unaccepted, certify_definition_within, certify_ordered_within, certify_within,
};
use consistory_history::History;
use consistory_models::{Definition, DoesNotApply, implies};
use consistory_registers::{Model, Tuning, judge as decide, shrink as shrink_history};
use consistory_verdict::{
    Budget, Certificate, ClientOrder, Judgement, Options, Proof, Ruling, Verdict as Outcome,
};

use crate::model::{Minimal, Rejection};

/// Judges a history by each of the models that apply to it.
pub(crate) fn judge(
    history: &History,
    models: &[Model],
    options: &Options<Tuning>,
) -> Vec<Result<Ruling, DoesNotApply>> {
    let rulings = decide(history, models, options).into_iter();
    rulings.map(|ruling| Ok(ruling?.map(Proof::from))).collect()
}

/// Checks a certificate with the independent checker.
///
/// Models with deciders have their own rules. Any other definition is evaluated for the choices in
/// the certificate, by an evaluator that only the checker uses.
pub(crate) fn accept(
    history: &History,
    model: &Model,
    via: Option<&str>,
    claim: Outcome,
    certificate: &Certificate,
    options: &Options,
) -> Result<(), Rejection> {
    let accepted = match via {
        Some(other) if !settles(other, model, claim) => {
            let reason = format!("a verdict on {other} does not settle {}", model.id());
            return Err(Rejection::Unproved { reason });
        }
        Some(other) => certify_within(history, other, claim, certificate, options),
        None if model.has_decider(history) => {
            certify_within(history, model.id(), claim, certificate, options)
        }
        None => {
            let (definition, budget) = (model.definition(), &options.budget);
            certify_definition_within(history, definition, claim, certificate, budget)
        }
    };
    accepted.map_err(rejected)
}

/// Checks a certificate about a definition of transactions with the independent checker.
pub(crate) fn accept_level(
    history: &History,
    definition: &Definition,
    order: ClientOrder,
    claim: Outcome,
    certificate: &Certificate,
    budget: &Budget,
) -> Result<(), Rejection> {
    let order = in_definitions(order);
    certify_ordered_within(history, definition, order, claim, certificate, budget).map_err(rejected)
}

/// Returns the order that `so` denotes in definitions.
pub(crate) fn in_definitions(order: ClientOrder) -> consistory_models::ClientOrder {
    match order {
        ClientOrder::None => consistory_models::ClientOrder::None,
        ClientOrder::Session => consistory_models::ClientOrder::Session,
        ClientOrder::Realtime => consistory_models::ClientOrder::Realtime,
    }
}

fn rejected(rejection: Unaccepted) -> Rejection {
    match rejection {
        Unaccepted::Stopped(stopped) => Rejection::Stopped(stopped),
        rejection => Rejection::Unproved { reason: rejection.to_string() },
    }
}

/// Checks whether a verdict about one model settles another: a violation of a weaker model, or
/// consistency with a stronger one.
fn settles(other: &str, model: &Model, claim: Outcome) -> bool {
    match claim {
        Outcome::Violation => model.settles(other),
        Outcome::Consistent => implies(other, model.id()).is_some(),
        Outcome::Undecided => false,
    }
}

/// Shrinks a violating history until no operation can be removed.
pub(crate) fn shrink(
    history: &History,
    model: &Model,
    violation: &Judgement,
    options: &Options<Tuning>,
) -> (History, Minimal) {
    let Judgement::Violation { pattern, certificate: Proof::Registers(certificate) } = violation
    else {
        return (history.clone(), Minimal::Unknown);
    };
    let violation = consistory_registers::Judgement::Violation {
        pattern: pattern.clone(),
        certificate: certificate.clone(),
    };
    let models = [model.clone()];
    let mut minimal = Minimal::Yes;
    let small = shrink_history(history, &violation, |smaller| {
        let judgement = options.budget.check().and_then(|()| {
            let ruling = decide(smaller, &models, options).swap_remove(0);
            match ruling.expect("a part of a history is judged by the same models").judgement {
                consistory_registers::Judgement::Undecided(stopped) => Err(stopped),
                judgement => Ok(judgement),
            }
        });
        if judgement.is_err() {
            minimal = Minimal::Unknown;
        }
        judgement
    });
    (small, minimal)
}
