//! Models of objects: infers the object, judges histories, checks certificates, shrinks violations.

mod in_registers;
mod infer;
mod named;

use std::sync::Arc;

use consistory_certify::{ObjectRejection, certify_object};
use consistory_history::{History, OpId};
use consistory_objects::{
    Calls, Options, Task, Tuning, instead as instead_of, judge_objects, shrink_object,
};
use consistory_registers::subset;
use consistory_spec::{Object, ObjectModel, object_model_implies};
use consistory_verdict::{
    Budget, Instead, Judgement, ObjectCertificate, Proof, Ruling, Verdict as Outcome,
};

pub use named::NamedObject;

pub(crate) use infer::of_history;

use crate::Error;
use crate::model::{Minimal, Rejection};

/// Builds the task of a history of calls and an object.
pub(crate) fn task<'h>(history: &'h History, named: &NamedObject) -> Result<Task<'h>, Error> {
    let misfit = |reason: String| Error::Misfit {
        object: named.name().to_owned(),
        reason,
        hint: Some(format!("it was read as calls of `{}`", named.name())),
    };
    let calls = Calls::new(history).map_err(|error| misfit(error.to_string()))?;
    Task::new(calls, Arc::clone(named.object())).map_err(|error| misfit(error.to_string()))
}

/// Judges a history of calls by each of the models.
pub(crate) fn judge(task: &Task<'_>, models: &[ObjectModel], options: &Options) -> Vec<Ruling> {
    let rulings = judge_objects(task, models, options).into_iter();
    rulings.map(|ruling| ruling.map(Proof::from)).collect()
}

/// Checks a certificate with the independent checker.
pub(crate) fn accept(
    history: &History,
    object: &dyn Object,
    model: &ObjectModel,
    via: Option<&str>,
    claim: Outcome,
    certificate: &ObjectCertificate,
    budget: &Budget,
) -> Result<(), Rejection> {
    let unproved = |reason: String| Rejection::Unproved { reason };
    if certificate.verdict() != claim {
        let kind = certificate.kind();
        return Err(unproved(format!("a {kind} does not prove the verdict {}", claim.as_str())));
    }
    let weaker = via.and_then(ObjectModel::named);
    if let Some(weaker) = &weaker
        && !(claim == Outcome::Violation && object_model_implies(&model.id, &weaker.id))
    {
        return Err(unproved(format!("a verdict on {} does not settle {}", weaker.id, model.id)));
    }
    let judged_by = weaker.as_ref().unwrap_or(model);
    certify_object(history, object, judged_by, certificate, budget).map_err(|rejection| {
        match rejection {
            ObjectRejection::Stopped(stopped) => Rejection::Stopped(stopped),
            rejection => unproved(rejection.to_string()),
        }
    })
}

/// Finds the calls that a violation needs: as far as is known, no further call can be removed.
pub(crate) fn needed(
    history: &History,
    named: &NamedObject,
    model: &ObjectModel,
    violation: &Judgement,
    options: &Options,
) -> Result<Option<(Vec<OpId>, Minimal)>, Error> {
    let task = task(history, named)?;
    let Judgement::Violation { pattern, certificate: Proof::Object(certificate) } = violation
    else {
        return Ok(None);
    };
    let violation = consistory_objects::Judgement::Violation {
        pattern: pattern.clone(),
        certificate: certificate.clone(),
    };
    let shrunk = shrink_object(&task, model, &violation, options);
    let minimal = if shrunk.is_minimal { Minimal::Yes } else { Minimal::Unknown };
    Ok(Some((shrunk.operations, minimal)))
}

/// Shrinks a violating history until no call can be removed.
pub(crate) fn shrink(
    history: &History,
    named: &NamedObject,
    model: &ObjectModel,
    violation: &Judgement,
    options: &Options,
) -> Result<(History, Minimal), Error> {
    match needed(history, named, model, violation, options)? {
        Some((operations, minimal)) => Ok((part(history, &operations), minimal)),
        None => Ok((history.clone(), Minimal::Unknown)),
    }
}

/// Builds the history of some operations of another one.
pub(crate) fn part(history: &History, operations: &[OpId]) -> History {
    let mut keep = vec![false; history.len()];
    for op in operations {
        keep[op.index()] = true;
    }
    subset(history, &keep)
}

/// Computes the specified return of the unexplained call in each attempt to explain a history.
pub(crate) fn instead(
    history: &History,
    named: &NamedObject,
    model: &ObjectModel,
    judgement: &Judgement,
) -> Vec<Option<Instead>> {
    let Some(Proof::Object(ObjectCertificate::Unexplained(unexplained))) = judgement.certificate()
    else {
        return Vec::new();
    };
    let Ok(task) = task(history, named) else { return Vec::new() };
    unexplained.attempts.iter().map(|attempt| instead_of(&task, model, attempt)).collect()
}

/// Builds the options of the deciders of objects.
pub(crate) fn options(budget: Budget, jobs: usize) -> Options {
    Options { budget, jobs, tuning: Tuning::default() }
}

/// Returns the named models that no other named model implies.
pub(crate) fn strongest<'a>(ids: &[&'a str]) -> Vec<&'a str> {
    let is_implied =
        |id: &str| ids.iter().any(|other| *other != id && object_model_implies(other, id));
    ids.iter().copied().filter(|id| !is_implied(id)).collect()
}
