//! What is said of a protocol, for people and for programs.

use std::path::Path;

use consistory_formats::{Format, write_history};
use consistory_history::History;
use consistory_protocol::tracking::Operation;
use consistory_protocol::{
    Exploration, Passed, Progress, Run, System, Unfinished, Verification, Violation,
};
use consistory_verdict::Verdict;
use serde_json::{Value, json};

use super::Report;
use crate::error::CliError;
use crate::run;

/// Says that nothing is wrong.
pub(super) fn without_faults(exploration: &Exploration, json: Value) -> Report {
    let progress = &exploration.progress;
    let notes = notes(exploration.omission, &exploration.asymmetric);
    let text = format!("nothing is wrong\n  {}\n  {}\n{notes}", size(progress), cost(progress));
    Report { verdict: Verdict::Consistent, headline: "nothing is wrong".to_owned(), text, json }
}

/// Says that every run is sequentially consistent.
pub(super) fn proved(verification: &Verification, json: Value) -> Report {
    let shape = verification.shape;
    let notes = notes(verification.omission, &verification.asymmetric);
    let text = format!(
        "sequentially consistent in every run\n  {} processors, {} blocks, {} locations; {}\n{notes}",
        shape.procs,
        shape.blocks,
        shape.locations,
        size(&verification.progress)
    );
    Report {
        verdict: Verdict::Consistent,
        headline: "sequentially consistent".to_owned(),
        text,
        json,
    }
}

/// A run that fails.
pub(super) struct Failed<'a> {
    pub(super) run: &'a Run,
    /// What the check says.
    pub(super) failure: &'a str,
    pub(super) history: &'a History,
    /// What became of the runs before it, or behind it, that were let pass.
    pub(super) passed: &'a Passed,
}

/// Says that a run fails, and what that means.
pub(super) fn refused(
    failed: &Failed<'_>,
    judged: &consistory::Verdict<'_>,
    progress: &Progress,
    mut json: Value,
) -> Result<Report, CliError> {
    let Failed { run, failure, history, passed } = *failed;
    let mut shown = Vec::new();
    write_history(history, Format::Hist, &mut shown)?;
    let shown = String::from_utf8_lossy(&shown).into_owned();
    json["history"] = shown.as_str().into();
    if let Some(proof) = judged.certificate() {
        let mut bytes = Vec::new();
        proof.write(history, &mut bytes).map_err(CliError::output)?;
        if let Some(via) = judged.via() {
            json["via"] = via.into();
        }
        json["certificate"] = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    }
    let (verdict, headline) = match judged.outcome() {
        Verdict::Violation => (Verdict::Violation, "not sequentially consistent"),
        Verdict::Consistent => (
            Verdict::Undecided,
            "undecided: the store order does not fit. This run is sequentially consistent, but not \
             with its stores in the order that was taken; mark the rules that order them with \
             `--@ serialize`",
        ),
        Verdict::Undecided => {
            (Verdict::Undecided, "undecided: a run fails the check, and its history is undecided")
        }
    };
    json["meaning"] = headline.into();
    json["passed"] = passed.runs.into();
    let which = match (verdict, passed.runs) {
        (Verdict::Violation, 1..) => "a run that is not",
        _ => "a shortest run that fails",
    };
    let mut text = format!("{headline}\n  {}; {which}:\n\n", size(progress));
    text += &run_text(run);
    text += &format!("\n  The check says: {failure}.\n\n");
    shown.lines().for_each(|line| text += &format!("    {line}\n"));
    text.push('\n');
    text += &judged.explain();
    text.push('\n');
    if passed.runs > 0 {
        let more = beside(verdict, passed);
        text += &format!("\n{more}\n");
        json["beside"] = more.into();
    }
    let short = headline.split([':', '.']).take(if verdict == Verdict::Undecided { 2 } else { 1 });
    let headline = short.collect::<Vec<_>>().join(":");
    Ok(Report { verdict, headline, text, json })
}

/// Says what is known of runs that were let pass because they are sequentially consistent.
fn beside(verdict: Verdict, passed: &Passed) -> String {
    let runs = match passed.runs {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    };
    if verdict == Verdict::Violation {
        return format!(
            "Before it, {runs} failed the check and turned out to be sequentially consistent: the \
             store order does not fit either. Mark the rules that order stores with `--@ serialize`."
        );
    }
    let end = match &passed.stopped {
        None => "to its end".to_owned(),
        Some(Unfinished::Judged { .. }) => "until that was enough".to_owned(),
        Some(reason) => format!("until it was stopped: {reason}"),
    };
    format!(
        "The search went on behind runs of this kind, {end}; of {runs} that fail, none is not \
         sequentially consistent."
    )
}

/// Says why a search ended before its end, and from which checkpoint it can go on.
pub(super) fn undecided(reason: &Unfinished, mut json: Value, kept: Option<&Path>) -> Report {
    json["reason"] = reason.to_string().into();
    let headline = format!("undecided: {reason}");
    let mut text = format!("{headline}\n");
    let so_far = match reason {
        Unfinished::Run(_) | Unfinished::Judged { .. } => "",
        Unfinished::Budget(_) | Unfinished::States { .. } => "nothing wrong in ",
    };
    text += &format!("  {so_far}{} states, depth {}\n", json["states"], json["depth"]);
    if let Some(path) = kept {
        text += &format!("  go on from here with --resume {}\n", path.display());
        json["checkpoint"] = path.display().to_string().into();
    }
    Report { verdict: Verdict::Undecided, headline, text, json }
}

/// Says what is wrong, and where.
pub(super) fn what_is_wrong(violation: &Violation) -> String {
    match violation {
        Violation::Fault { fault, .. } => format!("{}: {}", fault.position, fault.kind),
        Violation::Invariant { name, position, fault: None } => {
            format!("{position}: the invariant \"{name}\" does not hold")
        }
        Violation::Invariant { name, fault: Some(fault), .. } => {
            format!("{}: {}, in the invariant \"{name}\"", fault.position, fault.kind)
        }
        Violation::Deadlock => "deadlock: no rule leads to another state".to_owned(),
        Violation::Rejected { position, .. } => format!("{position}: the step is not allowed"),
    }
}

/// Says what is wrong, with the run to it.
pub(super) fn wrong(
    violation: &Violation,
    run: &Run,
    progress: &Progress,
    mut json: Value,
) -> Report {
    let what = what_is_wrong(violation);
    json["wrong"] = what.as_str().into();
    let mut text = format!("{what}\n  {}; a shortest run to it:\n\n", size(progress));
    text += &run::with_changes(run);
    text.push('\n');
    Report { verdict: Verdict::Violation, headline: what, text, json }
}

/// Lists the locations, and what is left out.
pub(super) fn tracking(system: &System) -> Report {
    let (locations, ghosts) = (system.location_names(), system.ghost_names());
    let mut text = format!("{} locations\n", locations.len());
    locations.iter().for_each(|name| text += &format!("  {name}\n"));
    if !ghosts.is_empty() {
        text += "left out, since only checks look at it:\n";
        ghosts.iter().for_each(|name| text += &format!("  {name}\n"));
    }
    let headline = format!("{} locations", locations.len());
    let json = json!({ "locations": locations, "ghosts": ghosts });
    Report { verdict: Verdict::Consistent, headline, text, json }
}

fn run_text(run: &Run) -> String {
    let mut text = String::new();
    for (step, traced) in run.steps.iter().zip(operations(run)) {
        let line = format!("    {:<44} {traced}", step.rule);
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Lists the rules of a run.
pub(super) fn run_json(run: &Run) -> Value {
    run.steps.iter().map(|step| Value::from(step.rule.as_str())).collect()
}

/// Says what each step of a run loads, stores and orders.
fn operations(run: &Run) -> impl Iterator<Item = String> + '_ {
    run.steps.iter().map(|step| {
        let mut shown = step.operations.join(" ");
        let orders = |op: &Operation| matches!(op, Operation::Serialize { .. });
        if shown.is_empty() && step.effect.operations.iter().any(orders) {
            shown = "orders a store".to_owned();
        }
        shown
    })
}

fn size(progress: &Progress) -> String {
    format!("{} states, depth {}", progress.states, progress.depth)
}

/// Says what a state cost.
fn cost(progress: &Progress) -> String {
    let states = progress.states.max(1) as f64;
    format!(
        "{} rules fired, {:.0} states a second, {:.1} bytes a state",
        progress.fired,
        states / progress.elapsed.as_secs_f64().max(1e-6),
        progress.bytes as f64 / states
    )
}

/// Says what compaction may have missed and what symmetry could not do, a line each.
fn notes(omission: Option<f64>, asymmetric: &[String]) -> String {
    let mut text = String::new();
    if let Some(omission) = omission {
        text += &format!("  a state was missed with a probability of at most {omission:.1e}\n");
    }
    if !asymmetric.is_empty() {
        let names = asymmetric.join(", ");
        text += &format!("  without symmetry, since a loop tells its values apart: {names}\n");
    }
    text
}

/// Counts for programs.
pub(super) fn counts(progress: &Progress, omission: Option<f64>, asymmetric: &[String]) -> Value {
    let mut counts = json!({
        "states": progress.states,
        "depth": progress.depth,
        "fired": progress.fired,
        "bytes": progress.bytes,
        "millis": progress.elapsed.as_secs_f64() * 1e3,
    });
    if let Some(omission) = omission {
        counts["omission"] = omission.into();
    }
    if !asymmetric.is_empty() {
        counts["asymmetric"] = asymmetric.into();
    }
    counts
}

/// The progress line on a terminal; nothing in a pipe.
pub(super) struct Line(indicatif::ProgressBar);

impl Line {
    pub(super) fn new(path: &Path) -> Self {
        let bar = indicatif::ProgressBar::new_spinner();
        bar.set_prefix(path.display().to_string());
        Line(bar)
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        let rate = progress.states as f64 / progress.elapsed.as_secs_f64().max(1e-3);
        self.0.set_message(format!(
            "{} states, {rate:.0} a second, depth {}, {} MiB",
            progress.states,
            progress.depth,
            progress.bytes >> 20
        ));
        self.0.tick();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
