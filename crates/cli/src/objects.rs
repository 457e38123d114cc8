//! Judging histories of an object's calls.

mod infer;
mod named;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use consistory_certify::{ObjectRejection, certify_object};
use consistory_check::subset;
use consistory_draw::InsteadOf;
use consistory_formats::{Format, write_history};
use consistory_history::History;
use consistory_objects::{
    Calls, Instead, ObjectOptions, ObjectRuling, Task, instead, judge_objects, shrink_object,
};
use consistory_spec::{
    Level, NAMED, Object, ObjectModel, object_model_implies, parse_axioms, parse_levels,
};
use consistory_verdict::{Budget, ObjectCertificate, ObjectJudgement, Stopped, Verdict};

pub(crate) use self::infer::infer;
pub(crate) use self::named::{Named, known_method, load_object, prepare};
use crate::args::CheckArgs;
use crate::check::{Done, create_folders};
use crate::error::CliError;
use crate::finding::Finding;
use crate::report::{Outcome, Place, Report};

/// How to judge histories of an object's calls, as the command line has it.
pub(crate) struct ObjectCourt<'a> {
    args: &'a CheckArgs,
    /// The object as it was named, if it was.
    object: Option<Named>,
    models: Vec<ObjectModel>,
    levels: Option<Vec<(Box<str>, Level)>>,
    strongest: bool,
    /// How many histories are being judged.
    at_work: AtomicUsize,
}

impl<'a> ObjectCourt<'a> {
    /// Prepares to judge; without a name, each history is asked for its object.
    pub(crate) fn new(args: &'a CheckArgs, name: Option<&str>) -> Result<Self, CliError> {
        let mut models: Vec<ObjectModel> = Vec::new();
        let mut add = |model: ObjectModel| {
            if !models.iter().any(|known| known.id == model.id) {
                models.push(model);
            }
        };
        for id in &args.model {
            match id.as_str() {
                "all" | "strongest" => {
                    NAMED.iter().filter_map(|id| ObjectModel::named(id)).for_each(&mut add);
                }
                id => add(ObjectModel::named(id).ok_or_else(|| unknown_model(id))?),
            }
        }
        let object = name.map(Named::load).transpose()?;
        let known_method = |method: &str| match &object {
            Some(named) => known_method(&*named.object, method),
            None => Ok(method.into()),
        };
        for axioms in &args.objects.axioms {
            let mut axioms = parse_axioms("--axioms", axioms).map_err(CliError::from)?;
            for method in axioms.iter_mut().filter_map(|axiom| axiom.of.as_mut()).flatten() {
                *method = known_method(method)?;
            }
            add(ObjectModel::of_axioms(axioms));
        }
        let levels = args.objects.levels.as_deref().map(|levels| parse_levels("--levels", levels));
        let mut levels = levels.transpose().map_err(CliError::from)?;
        for (method, _) in levels.iter_mut().flatten() {
            *method = known_method(method)?;
        }
        create_folders(args)?;
        Ok(ObjectCourt {
            args,
            object,
            models,
            levels,
            strongest: args.model.iter().any(|id| id == "strongest"),
            at_work: AtomicUsize::new(0),
        })
    }

    /// Judges a history by all the models.
    pub(crate) fn judge(&self, source: &str, number: usize, index: u64, history: &History) -> Done {
        let place = format!("{source} [{index}]");
        let (calls, named) = match self.prepare(source, history) {
            Ok(prepared) => prepared,
            Err(error) => return Done::Unreadable(error.at(&place)),
        };
        let history = calls.as_ref().unwrap_or(history);
        let task = match task(history, &named.object) {
            Ok(task) => task,
            Err(reason) => {
                let message = format!("{place}: {reason}");
                let hint = format!("it was read as calls of `{}`", named.name);
                return Done::Unreadable(CliError::with_hint(message, hint));
            }
        };
        let mut models = self.models.clone();
        if let Some(levels) = &self.levels {
            models.push(ObjectModel::of_levels(levels, Level::Complete, &task.methods()));
        }
        let mut complaints = Vec::new();
        let mut results = Vec::with_capacity(models.len());
        // Histories that are judged at the same time share the threads.
        let at_work = self.at_work.fetch_add(1, Ordering::Relaxed) + 1;
        let options = options(self.args);
        let jobs = (options.jobs / at_work).max(1);
        let rulings = judge_objects(&task, &models, &ObjectOptions { jobs, ..options });
        self.at_work.fetch_sub(1, Ordering::Relaxed);
        for (model, mut ruling) in models.into_iter().zip(rulings) {
            if !self.args.no_certify
                && let Some(certificate) = ruling.judgement.certificate()
                && let Err(rejection) =
                    self.accept(history, &*named.object, &model, ruling.via, &certificate)
            {
                ruling.judgement = ObjectJudgement::Undecided(match rejection {
                    ObjectRejection::Stopped(stopped) => stopped,
                    rejection => {
                        complaints.push(CliError::with_hint(
                            format!(
                                "{source} [{index}]: the certificate for {} was rejected: \
                                 {rejection}",
                                model.id
                            ),
                            "this is a defect of consistory, not of your history; the verdict is \
                             withheld",
                        ));
                        Stopped::Rejected
                    }
                });
            }
            let place = Place { source, number, index, model: &model.id };
            results.push(self.outcome(&task, &model, ruling, place, &mut complaints));
        }
        let strongest = self.strongest.then(|| strongest(&results));
        let (object, results, strongest) = (Some(&*named.name), &results[..], strongest.as_deref());
        let report = Report { source, index, history, object, results, strongest };
        Done::of(&report, self.args.format, complaints)
    }

    /// Finds the object of a history, and makes calls of reads and writes.
    fn prepare(
        &self,
        source: &str,
        history: &History,
    ) -> Result<(Option<History>, Named), CliError> {
        let named = match &self.object {
            Some(named) => named.clone(),
            None => Named::of_history(source, history)?,
        };
        prepare(history, named)
    }

    fn accept(
        &self,
        history: &History,
        object: &dyn Object,
        model: &ObjectModel,
        via: Option<&'static str>,
        certificate: &ObjectCertificate,
    ) -> Result<(), ObjectRejection> {
        accept_object(history, object, model, via, certificate, &options(self.args).budget)
    }

    /// Adds what goes to files and what the story needs.
    fn outcome(
        &self,
        task: &Task<'_>,
        model: &ObjectModel,
        ruling: ObjectRuling,
        place: Place<'_>,
        complaints: &mut Vec<CliError>,
    ) -> Outcome {
        let ObjectRuling { judgement, via, time } = ruling;
        let weaker = via.and_then(ObjectModel::named);
        let judged_by = weaker.as_ref().unwrap_or(model);
        let mut instead_of = Vec::new();
        if let ObjectJudgement::Violation(unexplained) = &judgement {
            let known = |found: Instead| InsteadOf { least: found.least, most: found.most };
            instead_of = (unexplained.attempts.iter())
                .map(|attempt| instead(task, judged_by, attempt).map(known))
                .collect();
        }
        let finding = Finding::Objects(judgement, instead_of);
        let mut outcome = Outcome::new(place.model, finding, via, time);
        let mut attempt = || {
            outcome.write_files(task.calls().history(), self.args, place)?;
            if let Finding::Objects(judgement, _) = &outcome.finding
                && self.args.shrink
                && judgement.verdict() == Verdict::Violation
            {
                outcome.shrunk = Some(self.shrunk(task, judged_by, judgement)?);
            }
            Ok(())
        };
        complaints.extend(attempt().err());
        outcome
    }

    /// Shrinks a violating history and writes it as text; says if it need not be minimal.
    fn shrunk(
        &self,
        task: &Task<'_>,
        model: &ObjectModel,
        violation: &ObjectJudgement,
    ) -> Result<String, CliError> {
        let history = task.calls().history();
        let mut keep = vec![false; history.len()];
        let shrunk = shrink_object(task, model, violation, &options(self.args));
        for op in shrunk.operations {
            keep[op.index()] = true;
        }
        let mut text = Vec::new();
        if !shrunk.is_minimal {
            text.extend(b"# The budget ended before it was clear that no call can be left out.\n");
        }
        write_history(&subset(history, &keep), Format::Hist, &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Has the independent checker accept a certificate.
pub(crate) fn accept_object(
    history: &History,
    object: &dyn Object,
    model: &ObjectModel,
    via: Option<&str>,
    certificate: &ObjectCertificate,
    budget: &Budget,
) -> Result<(), ObjectRejection> {
    let weaker = via.and_then(ObjectModel::named);
    if let Some(weaker) = &weaker
        && !(certificate.verdict() == Verdict::Violation
            && object_model_implies(&model.id, &weaker.id))
    {
        let reason = format!("{} says nothing about {}", weaker.id, model.id);
        return Err(ObjectRejection::History { reason });
    }
    certify_object(history, object, weaker.as_ref().unwrap_or(model), certificate, budget)
}

pub(crate) fn unknown_model(id: &str) -> CliError {
    CliError::with_hint(
        format!("`{id}` is no model of objects"),
        format!(
            "the models are {}, `all` and `strongest`; --axioms takes others",
            NAMED.join(", ")
        ),
    )
}

fn task<'h>(history: &'h History, object: &Arc<dyn Object>) -> Result<Task<'h>, String> {
    let calls = Calls::new(history).map_err(|error| error.to_string())?;
    Task::new(calls, Arc::clone(object)).map_err(|error| error.to_string())
}

fn options(args: &CheckArgs) -> ObjectOptions {
    let budget = Budget::unlimited().with_time(args.budget).with_memory(args.memory);
    ObjectOptions { budget, jobs: args.jobs.count(), ..ObjectOptions::default() }
}

/// Gives the satisfied named models that no other satisfied one implies.
fn strongest(results: &[Outcome]) -> Vec<String> {
    let satisfied: Vec<&str> = results
        .iter()
        .filter(|outcome| outcome.verdict() == Verdict::Consistent)
        .map(|outcome| &*outcome.model)
        .collect();
    let is_implied =
        |id: &str| satisfied.iter().any(|other| *other != id && object_model_implies(other, id));
    satisfied.iter().filter(|id| !is_implied(id)).map(ToString::to_string).collect()
}
