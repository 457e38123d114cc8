//! The reports on protocols, as text and as JSON.

use std::path::Path;

use consistory_formats::{Format, write_history};
use consistory_history::{History, escaped};
use consistory_protocol::tracking::{Operation, Shape, Source};
use consistory_protocol::{
    Exploration, Failure, GivenUp, Progress, Run, Stop, System, Unexplained, Unfinished, Violation,
};
use consistory_verdict::Verdict;
use serde_json::{Value, json};

use super::{ProtocolVerdict, Report};
use crate::error::CliError;
use crate::output::columns;
use crate::report::counted;
use crate::run;

/// Reports that the ordinary checks found no error.
pub(super) fn holds(exploration: &Exploration, json: Value) -> Report {
    let progress = &exploration.progress;
    let notes = notes(exploration);
    let text = format!("no errors found\n  {}\n  {}\n{notes}", size(progress), cost(progress));
    Report {
        verdict: ProtocolVerdict::Holds,
        headline: "no errors found".to_owned(),
        text,
        json,
        case: None,
    }
}

/// Reports that nothing could be proved, and the result of the ordinary checks.
pub(super) fn unproved(missing: &str, exploration: &Exploration, mut json: Value) -> Report {
    let headline = format!("nothing is proved: {missing}");
    json["reason"] = missing.into();
    let size = size(&exploration.progress);
    let notes = notes(exploration);
    let text = format!("{headline}\n  the ordinary checks found no error: {size}\n{notes}");
    Report { verdict: ProtocolVerdict::Unproved, headline, text, json, case: None }
}

/// Reports that every run is sequentially consistent.
pub(super) fn proved(exploration: &Exploration, shape: Shape, json: Value) -> Report {
    let progress = &exploration.progress;
    // A rule that never fires proves nothing.
    for (count, what) in [(progress.loads, "loads"), (progress.stores, "stores")] {
        if count == 0 {
            let missing = format!("no run {what} anything; check the guards of the marked rules");
            return unproved(&missing, exploration, json);
        }
    }
    let notes = notes(exploration);
    let text = format!(
        "sequentially consistent in every run\n  {}, {}, {}; {}\n{notes}",
        counted(shape.procs as usize, "processor"),
        counted(shape.blocks as usize, "block"),
        counted(shape.locations as usize, "location"),
        size(progress)
    );
    let headline = "sequentially consistent".to_owned();
    Report { verdict: ProtocolVerdict::Proved, headline, text, json, case: None }
}

/// Reports a run that violates sequential consistency, or whose history was not decided in time.
pub(super) fn refuted(
    run: &Run,
    failure: &str,
    history: &History,
    judged: &consistory::Verdict<'_>,
    exploration: &Exploration,
    mut json: Value,
) -> Result<Report, CliError> {
    let (verdict, headline) = match judged.outcome() {
        Verdict::Violation => (ProtocolVerdict::Violation, "not sequentially consistent"),
        _ => (
            ProtocolVerdict::Undecided,
            "undecided: a run fails the check, and its history was not decided in time",
        ),
    };
    let passed = exploration.passed;
    json["passed"] = passed.into();
    let which = if passed > 0 { "a run that is not" } else { "a shortest run that fails" };
    let intro = format!("{headline}\n  {}; {which}:", size(&exploration.progress));
    let mut text = failing_run(&intro, run, failure, history, judged, &mut json)?;
    json["meaning"] = headline.into();
    if passed > 0 {
        let more = format!(
            "Before it, {} failed the check and turned out to be sequentially consistent: the \
             stores take effect in another order than was taken. {MARK_HINT}",
            runs(passed)
        );
        text += &format!("\n{more}\n");
        json["beside"] = more.into();
    }
    text += &notes(exploration);
    Ok(Report { verdict, headline: headline.to_owned(), text, json, case: None })
}

const MARK_HINT: &str =
    "Mark the rules that decide the order of stores with `--@ serialize block=B from=PLACE`.";

/// Reports runs that fail the check although none is known to violate sequential consistency.
pub(super) fn unexplained(
    system: &System,
    found: &Unexplained,
    judged: &consistory::Verdict<'_>,
    progress: &Progress,
    mut json: Value,
) -> Result<Report, CliError> {
    let Unexplained { run, failure, history, judged: count, stopped } = found;
    let headline = match failure {
        Failure::OtherBlock { .. } => "undecided: a load takes its value from another block",
        Failure::LostStore { .. } => "undecided: a store is lost before it is serialized",
        Failure::LoadsNothing { .. } => "undecided: a load finds what `clear` left there",
        _ => "undecided: stores take effect in an order other than the assumed one",
    };
    json["meaning"] = headline.into();
    json["passed"] = (*count).into();
    let intro = format!("{headline}\n  {}; a shortest run that fails:", size(progress));
    let failure_text = failure.to_string();
    let mut text = failing_run(&intro, run, &failure_text, history, judged, &mut json)?;
    let hint = advice(system, run, failure);
    json["hint"] = hint.as_str().into();
    text += &format!("\nWhat to do: {hint}\n");
    let end = match stopped {
        None => "to its end".to_owned(),
        Some(Stop::Runs) => "until enough runs were judged".to_owned(),
        Some(reason) => format!("until it was stopped: {reason}"),
    };
    let more = format!(
        "The search went on after runs of this kind, {end}: {} failed the check, and none of them \
         is known to violate sequential consistency.",
        runs(*count)
    );
    text += &format!("\n{more}\n");
    json["beside"] = more.into();
    Ok(Report {
        verdict: ProtocolVerdict::Undecided,
        headline: headline.to_owned(),
        text,
        json,
        case: None,
    })
}

/// Suggests to the author of a protocol how to handle a run that fails the check.
fn advice(system: &System, run: &Run, failure: &Failure) -> String {
    let last = run.steps.last();
    let place = || {
        let names = system.location_names();
        let load = last.and_then(|step| {
            step.effect.operations.iter().find_map(|operation| match operation {
                Operation::Load { from: Source::Location(at), .. } => Some(*at),
                _ => None,
            })
        });
        load.map_or("the place it loads from".to_owned(), |at| format!("`{}`", names[at as usize]))
    };
    match failure {
        Failure::LoadsNothing { .. } => format!(
            "{} holds what `clear` put there when \"{}\" loads from it: the least value of the data \
             type, which no store and no start state put there. A proof is about runs in which data is \
             only moved. Write `undefine` if the place is to hold nothing, and otherwise the value that \
             it is to have.",
            place(),
            last.map_or("the rule", |step| &step.rule)
        ),
        Failure::OtherBlock { .. } => {
            let place = place();
            format!(
                "{place} holds a value of another block when \"{}\" loads from it. If the rule \
                 that put it there is right, change `block=` or `from=` of the load's mark; \
                 otherwise correct the rule.",
                last.map_or("the rule", |step| &step.rule)
            )
        }
        Failure::LostStore { .. } => format!(
            "every copy of the store is overwritten before a rule marked `--@ serialize` takes it. \
             {MARK_HINT}"
        ),
        _ => match movers(system, run) {
            Some((rule, place)) => format!(
                "a store may wait before others see it. If it takes effect when \"{rule}\" takes \
                 it from `{place}`, put `--@ serialize block=B from=PLACE` in front of that rule, \
                 with the block and the place as the rule writes them."
            ),
            None => MARK_HINT.to_owned(),
        },
    }
}

/// Finds the first rule of a run that copies the value of a store from the location of the store,
/// with that location.
fn movers(system: &System, run: &Run) -> Option<(String, String)> {
    let names = system.location_names();
    let mut fresh: Vec<u32> = Vec::new();
    for step in &run.steps {
        let sources = || step.effect.sources.iter().zip(0u32..);
        for (source, at) in sources() {
            if let Source::Location(from) = source
                && *from != at
                && fresh.contains(from)
            {
                return Some((step.rule.clone(), names[*from as usize].clone()));
            }
        }
        let stored = sources().filter(|(source, _)| matches!(source, Source::Store(_)));
        fresh.extend(stored.map(|(_, at)| at));
    }
    None
}

/// Writes a run whose constraint graph fails, with its history and the verdict of the decider of
/// SC.
fn failing_run(
    intro: &str,
    run: &Run,
    failure: &str,
    history: &History,
    judged: &consistory::Verdict<'_>,
    json: &mut Value,
) -> Result<String, CliError> {
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
    let mut text = format!("{intro}\n\n");
    text += &run_text(run);
    text += &format!("\n  The check says: {failure}.\n\n");
    shown.lines().for_each(|line| text += &format!("    {line}\n"));
    text.push('\n');
    text += &judged.explain();
    text.push('\n');
    Ok(text)
}

fn runs(count: u32) -> String {
    counted(count as usize, "run")
}

/// Reports why a search stopped early, and the checkpoint from which it can continue.
pub(super) fn undecided(reason: &Unfinished, mut json: Value, kept: Option<&Path>) -> Report {
    json["reason"] = reason.to_string().into();
    let headline = format!("undecided: {reason}");
    let mut text = format!("{headline}\n");
    let so_far = match reason {
        Unfinished::Budget(_) | Unfinished::States { .. } => "nothing wrong in ",
        _ => "",
    };
    let number = |key: &str| json[key].as_u64().unwrap_or(0);
    let size = states_and_depth(number("states"), number("depth"));
    text += &format!("  {so_far}{size}\n");
    if let Some(path) = kept {
        let shown = path.display().to_string();
        text += &format!("  go on from here with --resume {}\n", escaped(&shown));
        json["checkpoint"] = path.display().to_string().into();
    }
    Report { verdict: ProtocolVerdict::Undecided, headline, text, json, case: None }
}

/// Describes an error and its position.
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
        Violation::Graph { failure, .. } => failure.to_string(),
    }
}

/// Reports an error, with the run that leads to it.
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
    Report { verdict: ProtocolVerdict::Violation, headline: what, text, json, case: None }
}

/// Lists the tracked locations, and the ignored ones.
pub(super) fn tracking(system: &System) -> Report {
    let (locations, ghosts) = (system.location_names(), system.ghost_names());
    let headline = counted(locations.len(), "location");
    let mut text = format!("{headline}\n");
    locations.iter().for_each(|name| text += &format!("  {name}\n"));
    if !ghosts.is_empty() {
        text += "ignored, because only checks use it:\n";
        ghosts.iter().for_each(|name| text += &format!("  {name}\n"));
    }
    let json = json!({ "locations": locations, "ghosts": ghosts });
    Report { verdict: ProtocolVerdict::Holds, headline, text, json, case: None }
}

fn run_text(run: &Run) -> String {
    let mut text = String::new();
    for (step, traced) in run.steps.iter().zip(operations(run)) {
        text += &run_line(&step.rule, &traced, columns());
    }
    text
}

/// Writes a step of a run with its loads and stores, on the same line or, if they do not fit, on
/// the next line.
fn run_line(rule: &str, traced: &str, columns: usize) -> String {
    let beside = format!("    {rule:<44} {traced}");
    match traced.is_empty() || beside.chars().count() <= columns {
        true => format!("{}\n", beside.trim_end()),
        false => format!("    {rule}\n        {traced}\n"),
    }
}

/// Lists the rules of a run.
pub(super) fn run_json(run: &Run) -> Value {
    run.steps.iter().map(|step| Value::from(step.rule.as_str())).collect()
}

/// Describes the loads, stores and orderings of each step of a run.
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
    states_and_depth(progress.states, u64::from(progress.depth))
}

fn states_and_depth(states: u64, depth: u64) -> String {
    format!("{}, depth {depth}", counted(states as usize, "state"))
}

/// Describes the memory per state.
fn cost(progress: &Progress) -> String {
    let states = progress.states.max(1) as f64;
    format!(
        "{} rules fired, {:.0} states per second, {:.1} bytes per state",
        progress.fired,
        states / progress.elapsed.as_secs_f64().max(1e-6),
        progress.bytes as f64 / states
    )
}

/// Describes states that compaction may have missed and symmetries that were not used, one line
/// each.
fn notes(exploration: &Exploration) -> String {
    let mut text = String::new();
    if let Some(omission) = exploration.omission {
        text += &format!("  a state was missed with a probability of at most {omission:.1e}\n");
    }
    for GivenUp { scalarset, reason } in &exploration.given_up {
        text += &format!("  explored without symmetry of {scalarset}: {reason}\n");
    }
    text
}

/// Returns the counts of an exploration as JSON.
pub(super) fn counts(exploration: &Exploration) -> Value {
    let progress = &exploration.progress;
    let mut counts = json!({
        "states": progress.states,
        "depth": progress.depth,
        "fired": progress.fired,
        "bytes": progress.bytes,
        "millis": progress.elapsed.as_secs_f64() * 1e3,
    });
    if let Some(shape) = exploration.shape {
        counts["processors"] = shape.procs.into();
        counts["blocks"] = shape.blocks.into();
        counts["locations"] = shape.locations.into();
        counts["loads"] = progress.loads.into();
        counts["stores"] = progress.stores.into();
    }
    if let Some(omission) = exploration.omission {
        counts["omission"] = omission.into();
    }
    if !exploration.given_up.is_empty() {
        let pair = |given_up: &GivenUp| json!({ "scalarset": given_up.scalarset, "reason": given_up.reason });
        counts["asymmetric"] = exploration.given_up.iter().map(pair).collect();
    }
    counts
}

/// Progress line on a terminal; empty if the output is not a terminal.
pub(super) struct Line(indicatif::ProgressBar);

impl Line {
    pub(super) fn new(path: &Path) -> Self {
        let bar = indicatif::ProgressBar::new_spinner();
        bar.set_prefix(escaped(&path.display().to_string()).into_owned());
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

#[cfg(test)]
mod tests {
    use super::run_line;

    #[test]
    fn a_step_keeps_to_the_width_of_the_terminal() {
        let line = |columns| run_line("fill (p=Proc_1, a=Block_1)", "r(Block_1,0)", columns);
        let beside = "    fill (p=Proc_1, a=Block_1)                   r(Block_1,0)\n";
        assert_eq!(line(usize::MAX), beside);
        assert_eq!(line(61), beside);
        assert_eq!(line(60), "    fill (p=Proc_1, a=Block_1)\n        r(Block_1,0)\n");
        assert_eq!(run_line("start", "", 60), "    start\n");
    }
}
