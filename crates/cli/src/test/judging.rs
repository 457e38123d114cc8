//! Judges the history of a database: by all models of the family at the end, and by the promised
//! models while it runs.

use std::time::Duration;

use consistory::{Court, History, Outcome, Verdict};
use consistory_drive::{CoreOperation, Family};

use consistory_scene::Scene;

use crate::error::CliError;

/// Time limit of each model for the final judgement.
const FINAL_BUDGET: Duration = Duration::from_secs(20);

/// Time limit of each model while the system runs.
const LIVE_BUDGET: Duration = Duration::from_secs(2);

/// The models by which a run is judged.
pub(super) struct Judge {
    family: Family,
    /// Models that must hold.
    promised: Vec<String>,
    /// Whether only these were requested.
    is_asked: bool,
}

/// The verdicts on a run.
pub(super) struct Verdicts {
    /// All verdicts, from weak models to strong ones, each with its JSON.
    pub(super) all: Vec<Summary>,
    /// Strongest models that hold.
    pub(super) strongest: Vec<String>,
    /// Violation on a smallest part of the history, if there is one.
    pub(super) core: Option<Core>,
}

/// A summary of a verdict.
pub(super) struct Summary {
    pub(super) model: String,
    pub(super) outcome: Outcome,
    /// Pattern of a violation, or the reason of an undecided verdict.
    pub(super) pattern: String,
    pub(super) json: String,
    pub(super) time: Duration,
}

/// A smallest violation.
pub(super) struct Core {
    /// Weakest model that is violated.
    pub(super) model: String,
    pub(super) operations: Vec<CoreOperation>,
    /// Operations as text, one session per line, without times.
    pub(super) text: String,
    pub(super) explanation: String,
    /// Pictures of it.
    pub(super) scenes: Vec<Scene>,
}

impl Judge {
    pub(super) fn new(family: Family, promise: String, asked: Option<&str>) -> Self {
        let promised = match asked {
            Some(models) => models.split(',').map(|model| model.trim().to_owned()).collect(),
            None => vec![promise],
        };
        Judge { family, promised, is_asked: asked.is_some() }
    }

    /// Returns the models that must hold.
    pub(super) fn promised(&self) -> &[String] {
        &self.promised
    }

    /// Checks that the models exist and apply to the recorded operations.
    pub(super) fn check(&self) -> Result<(), CliError> {
        let models: Vec<&str> = self.promised.iter().map(String::as_str).collect();
        self.courts(&models, FINAL_BUDGET).map(drop)
    }

    fn courts(&self, models: &[&str], budget: Duration) -> Result<Vec<Court>, CliError> {
        let names = |linearizability: bool| {
            models.iter().copied().filter(move |id| (*id == "linearizability") == linearizability)
        };
        let of = |court: Court, models: Vec<&str>| -> Result<Option<Court>, CliError> {
            match models.is_empty() {
                true => Ok(None),
                false => Ok(Some(court.models(models)?.budget(budget))),
            }
        };
        let courts = match self.family {
            // Registers are judged by the models of memory, and by linearizability of a map.
            Family::Registers => vec![
                of(Court::registers(), names(false).collect())?,
                of(Court::new(), names(true).collect())?,
            ],
            Family::Transactions => vec![of(Court::new(), models.to_vec())?],
            Family::Object(object) => vec![of(Court::object(object)?, models.to_vec())?],
        };
        Ok(courts.into_iter().flatten().collect())
    }

    /// Checks whether a prefix of a history already violates a promised model.
    ///
    /// The violation is confirmed at the end of the run, with a certificate.
    pub(super) fn is_violated(&self, text: &str) -> bool {
        let Ok(history) = consistory::parse(text) else { return false };
        let mut models: Vec<&str> = self.promised.iter().map(String::as_str).collect();
        if !self.is_asked && self.family == Family::Registers {
            // A history that violates these models is not linearizable, and they are decided fast.
            models.splice(0..0, ["cc", "sc"]);
        }
        let Ok(courts) = self.courts(&models, LIVE_BUDGET) else { return false };
        courts.into_iter().any(|court| {
            let report = court.without_certification().jobs(1).judge(&history);
            report.is_ok_and(|report| report.iter().any(Verdict::is_violation))
        })
    }

    /// Judges the whole history and shrinks a violation.
    pub(super) fn judge(&self, text: &str) -> Result<Verdicts, CliError> {
        let mut verdicts = Verdicts { all: Vec::new(), strongest: Vec::new(), core: None };
        if text.is_empty() {
            return Ok(verdicts);
        }
        let history = consistory::parse(text)?;
        let courts = match (self.is_asked, self.family) {
            (true, _) => {
                let models: Vec<&str> = self.promised.iter().map(String::as_str).collect();
                self.courts(&models, FINAL_BUDGET)?
            }
            (false, Family::Registers) => {
                self.courts(&["strongest", "linearizability"], FINAL_BUDGET)?
            }
            (false, Family::Transactions) => self.courts(&["strongest"], FINAL_BUDGET)?,
            (false, Family::Object(_)) => self.courts(&["linearizability"], FINAL_BUDGET)?,
        };
        for court in courts {
            let is_violated =
                verdicts.all.iter().any(|v: &Summary| v.outcome == Outcome::Violation);
            let report = court.judge(&history)?;
            verdicts.strongest.extend(report.strongest().unwrap_or_default().iter().cloned());
            for verdict in report.iter() {
                verdicts.all.push(Summary {
                    model: verdict.model().id().to_owned(),
                    outcome: verdict.outcome(),
                    pattern: match verdict.outcome() {
                        Outcome::Undecided => reason(verdict),
                        _ => verdict.pattern().unwrap_or_default(),
                    },
                    json: verdict.json(),
                    time: verdict.time(),
                });
                if verdict.is_consistent() && verdict.model().id() == "linearizability" {
                    verdicts.strongest = vec!["linearizability".to_owned()];
                }
            }
            // Weak models come first: the violation of the weakest model is the most informative.
            let weakest = report.iter().find(|v| v.is_violation() && v.via().is_none());
            if let (Some(verdict), false) = (weakest, is_violated) {
                verdicts.core = Some(core(verdict)?);
            }
        }
        Ok(verdicts)
    }
}

/// Returns the reason of an undecided verdict.
fn reason(verdict: &Verdict<'_>) -> String {
    let line = verdict.explain_line();
    line.strip_prefix("undecided: ").unwrap_or(&line).to_owned()
}

fn core(verdict: &Verdict<'_>) -> Result<Core, CliError> {
    let shrunk = verdict.shrink()?;
    let history = shrunk.history();
    Ok(Core {
        model: verdict.proved().to_owned(),
        operations: operations(history),
        text: lines(history),
        explanation: shrunk.explain(),
        scenes: shrunk.scenes(),
    })
}

fn operations(history: &History) -> Vec<CoreOperation> {
    history
        .ops()
        .map(|op| {
            let reference = history.reference(op).to_string();
            let session = reference.rsplit_once(':').map_or(&*reference, |(session, _)| session);
            let time = history.time(op);
            CoreOperation {
                session: session.to_owned(),
                text: history.show(op).to_string(),
                start: time.map_or(0, |time| time.start.max(0) as u64),
                end: time.and_then(|time| time.end).map(|end| end.max(0) as u64),
                node: None,
            }
        })
        .collect()
}

/// Writes one line per session, in the text notation but without times.
fn lines(history: &History) -> String {
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for operation in operations(history) {
        match lines.last_mut() {
            Some((session, operations)) if *session == operation.session => {
                operations.push(operation.text);
            }
            _ => lines.push((operation.session, vec![operation.text])),
        }
    }
    lines.iter().map(|(session, texts)| format!("{session}: {}\n", texts.join(" "))).collect()
}
