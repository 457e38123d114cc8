//! `consistory verify`: protocols proved, descriptors checked.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use consistory_certify::certify;
use consistory_check::{StoreModel, decide_stored};
use consistory_draw::{DrawOptions, explain, history_svg};
use consistory_formats::{Format, write_history};
use consistory_history::History;
use consistory_protocol::descriptor::parse_line;
use consistory_protocol::tracking::Operation;
use consistory_protocol::{
    Checker, Exploration, Model, Options, Outcome, Progress, Run, Sequential, System, Violation,
    explore, verify as prove,
};
use consistory_verdict::{Budget, Judgement, Stopped, Verdict, write_certificate};
use serde_json::{Value, json};

use crate::args::{OutputFormat, VerifyArgs};
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION, report};
use crate::run;

/// Verifies every file; one that cannot be read is reported, and the others are still judged.
pub(crate) fn verify(args: &VerifyArgs) -> Result<u8, CliError> {
    let mut codes = Vec::new();
    for path in &args.paths {
        let result = if args.descriptor {
            check_descriptor(args, path)
        } else {
            verify_protocol(args, path)
        };
        codes.push(match result {
            Ok(code) => code,
            Err(CliError::Closed) => return Err(CliError::Closed),
            Err(error) => {
                report(&error);
                UNREADABLE
            }
        });
    }
    let worst = [UNREADABLE, VIOLATION, UNDECIDED].into_iter().find(|code| codes.contains(code));
    Ok(worst.unwrap_or(OK))
}

/// Reads a description in Murphi.
pub(crate) fn read_model(path: &Path) -> Result<Model, CliError> {
    let text = std::fs::read_to_string(path).map_err(|e| CliError::file("read", path, e))?;
    Model::parse(&path.display().to_string(), &text)
        .map_err(|diagnostics| CliError::Rendered(diagnostics.render(true)))
}

/// What is said of a file.
struct Report {
    verdict: Verdict,
    /// For people, the file's name in front of it.
    text: String,
    /// For programs, besides source and verdict.
    json: Value,
}

fn print(args: &VerifyArgs, path: &Path, report: Report) -> Result<u8, CliError> {
    let Report { verdict, text, json } = report;
    let source = path.display().to_string();
    let mut out = io::stdout().lock();
    match args.format {
        OutputFormat::Text => write!(out, "{source}: {text}"),
        OutputFormat::Json => {
            let mut line = json!({ "source": source, "verdict": verdict.as_str() });
            if let (Value::Object(line), Value::Object(more)) = (&mut line, json) {
                line.extend(more);
            }
            writeln!(out, "{line}")
        }
    }
    .map_err(CliError::output)?;
    Ok(match verdict {
        Verdict::Consistent => OK,
        Verdict::Violation => VIOLATION,
        Verdict::Undecided => UNDECIDED,
    })
}

fn check_descriptor(args: &VerifyArgs, path: &Path) -> Result<u8, CliError> {
    let input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path).map_err(|e| CliError::file("read", path, e))?;
        Box::new(BufReader::new(file))
    };
    let mut checker = Checker::new();
    let mut symbols = 0u64;
    let mut last = 0;
    let mut rejection = None;
    for (number, line) in (1u64..).zip(input.lines()) {
        let line = line.map_err(|e| CliError::file("read", path, e))?;
        let symbol = parse_line(number, &line)
            .map_err(|error| CliError::usage(format!("{}:{error}", path.display())))?;
        let Some(symbol) = symbol else { continue };
        symbols += 1;
        last = number;
        if let Err(reason) = checker.step(symbol) {
            rejection = Some((number, line.trim().to_owned(), reason.to_string()));
            break;
        }
    }
    if rejection.is_none() {
        let end = checker.finish();
        rejection = end.err().map(|reason| (last, "the end".to_owned(), reason.to_string()));
    }
    let peak = checker.peak();
    let report = match rejection {
        None => Report {
            verdict: Verdict::Consistent,
            text: format!(
                "an acyclic constraint graph: {symbols} symbols, at most {peak} nodes at once\n"
            ),
            json: json!({ "symbols": symbols, "nodes": peak }),
        },
        Some((line, symbol, reason)) => Report {
            verdict: Verdict::Violation,
            text: format!("rejected at line {line}, `{symbol}`: {reason}\n"),
            json: json!({ "symbols": symbols, "nodes": peak, "line": line, "symbol": symbol,
                          "reason": reason }),
        },
    };
    print(args, path, report)
}

fn verify_protocol(args: &VerifyArgs, path: &Path) -> Result<u8, CliError> {
    let model = read_model(path)?;
    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
    let jobs = args.jobs.map_or_else(cores, usize::from);
    let is_plain = args.plain || !model.is_marked();
    // With labels in the place of data a store may change nothing, which is no deadlock.
    let options = Options {
        symmetry: !args.no_symmetry,
        jobs,
        states: args.states,
        deadlock: is_plain,
        compaction: args.compaction,
    };
    let budget = Budget::unlimited().with_time(args.budget).with_memory(args.memory);
    let mut progress = Line::new(path);
    if is_plain && !args.show_tracking {
        let system = model.plain();
        let exploration = explore(&system, None, &options, &budget, &mut |p| {
            progress.show(p);
        });
        drop(progress);
        let mut counts = counts(&exploration.progress);
        let report = match exploration.outcome {
            Outcome::Holds => Report {
                verdict: Verdict::Consistent,
                text: format!(
                    "nothing is wrong\n  {}\n  {}\n",
                    size(&exploration.progress),
                    cost(&exploration)
                ),
                json: counts,
            },
            Outcome::Undecided { reason } => undecided(&exploration.progress, &reason.to_string()),
            Outcome::Violated { violation, run } => {
                counts["run"] = run_json(&run);
                draw_run(args, path, &system, &run, &what_is_wrong(&violation))?;
                wrong(&violation, &run, &exploration.progress, counts)
            }
        };
        return print(args, path, report);
    }
    let system = model.tracked().map_err(|d| CliError::Rendered(d.render(true)))?;
    if args.show_tracking {
        return print(args, path, tracking(&system));
    }
    let verification = prove(&system, &options, &budget, &mut |p| progress.show(p))
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))?;
    drop(progress);
    let shape = verification.shape;
    let mut counts = counts(&verification.progress);
    counts["processors"] = shape.procs.into();
    counts["blocks"] = shape.blocks.into();
    counts["locations"] = shape.locations.into();
    let size = size(&verification.progress);
    let report = match verification.outcome {
        Sequential::Proved => Report {
            verdict: Verdict::Consistent,
            text: format!(
                "sequentially consistent in every run\n  {} processors, {} blocks, {} locations; {size}\n",
                shape.procs, shape.blocks, shape.locations
            ),
            json: counts,
        },
        Sequential::Undecided { reason } => undecided(&verification.progress, &reason.to_string()),
        Sequential::Wrong { violation, run } => {
            counts["run"] = run_json(&run);
            draw_run(args, path, &system, &run, &what_is_wrong(&violation))?;
            wrong(&violation, &run, &verification.progress, counts)
        }
        Sequential::Refused { run, failure, history } => {
            counts["run"] = run_json(&run);
            counts["failure"] = failure.to_string().into();
            draw_run(args, path, &system, &run, &failure.to_string())?;
            let judged = settle(args, path, &history, &budget.renewed())?;
            refused(&run, &failure.to_string(), &history, &judged, &size, counts)?
        }
    };
    print(args, path, report)
}

/// Judges the history of a run; a proof that the independent checker rejects does not count.
fn settle(
    args: &VerifyArgs,
    path: &Path,
    history: &History,
    budget: &Budget,
) -> Result<Judgement, CliError> {
    let options = consistory_check::Options { budget: budget.clone(), ..Default::default() };
    let judgement = decide_stored(history, StoreModel::Sc, &options).judgement;
    if let Some(certificate) = judgement.certificate()
        && certify(history, "sc", judgement.verdict(), certificate).is_err()
    {
        return Ok(Judgement::Undecided(Stopped::Rejected));
    }
    if let (Some(folder), Verdict::Violation) = (&args.draw, judgement.verdict()) {
        std::fs::create_dir_all(folder).map_err(|e| CliError::file("create", folder, e))?;
        let name = path.with_extension("svg");
        let place = folder.join(name.file_name().unwrap_or(name.as_os_str()));
        let options = DrawOptions { model: "sc".to_owned(), ..DrawOptions::default() };
        std::fs::write(&place, history_svg(history, &judgement, &options))
            .map_err(|e| CliError::file("write", &place, e))?;
    }
    Ok(judgement)
}

fn refused(
    run: &Run,
    failure: &str,
    history: &History,
    judgement: &Judgement,
    size: &str,
    mut json: Value,
) -> Result<Report, CliError> {
    let mut shown = Vec::new();
    write_history(history, Format::Hist, &mut shown)?;
    let shown = String::from_utf8_lossy(&shown).into_owned();
    json["history"] = shown.as_str().into();
    if let Some(certificate) = judgement.certificate() {
        let mut bytes = Vec::new();
        write_certificate(history, certificate, &mut bytes).map_err(CliError::output)?;
        json["certificate"] = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    }
    let (verdict, headline) = match judgement.verdict() {
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
    let mut text = format!("{headline}\n  {size}; a shortest run that fails:\n\n");
    text += &run_text(run);
    text += &format!("\n  The check says: {failure}.\n\n");
    shown.lines().for_each(|line| text += &format!("    {line}\n"));
    text.push('\n');
    text += &explain(history, "sc", judgement);
    text.push('\n');
    Ok(Report { verdict, text, json })
}

fn undecided(progress: &Progress, reason: &str) -> Report {
    let mut json = counts(progress);
    json["reason"] = reason.into();
    let text = format!("undecided: {reason}\n  nothing wrong in {}\n", size(progress));
    Report { verdict: Verdict::Undecided, text, json }
}

/// Draws a run if pictures are wanted.
fn draw_run(
    args: &VerifyArgs,
    path: &Path,
    system: &System,
    run: &Run,
    caption: &str,
) -> Result<(), CliError> {
    match &args.draw {
        Some(folder) => run::draw(folder, path, system, run, caption).map(drop),
        None => Ok(()),
    }
}

fn what_is_wrong(violation: &Violation) -> String {
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

fn wrong(violation: &Violation, run: &Run, progress: &Progress, mut json: Value) -> Report {
    let what = what_is_wrong(violation);
    json["wrong"] = what.as_str().into();
    let mut text = format!("{what}\n  {}; a shortest run to it:\n\n", size(progress));
    text += &run::with_changes(run);
    text.push('\n');
    Report { verdict: Verdict::Violation, text, json }
}

fn tracking(system: &System) -> Report {
    let (locations, ghosts) = (system.location_names(), system.ghost_names());
    let mut text = format!("{} locations\n", locations.len());
    locations.iter().for_each(|name| text += &format!("  {name}\n"));
    if !ghosts.is_empty() {
        text += "left out, since only checks look at it:\n";
        ghosts.iter().for_each(|name| text += &format!("  {name}\n"));
    }
    let json = json!({ "locations": locations, "ghosts": ghosts });
    Report { verdict: Verdict::Consistent, text, json }
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

fn run_json(run: &Run) -> Value {
    run.steps.iter().map(|step| Value::from(step.rule.as_str())).collect()
}

/// Says what each step of a run loads and stores.
fn operations(run: &Run) -> impl Iterator<Item = &'static str> + '_ {
    run.steps.iter().map(|step| {
        let operations = &step.effect.operations;
        let has = |wanted: fn(&Operation) -> bool| operations.iter().any(wanted);
        if has(|op| matches!(op, Operation::Store { .. })) {
            "stores"
        } else if has(|op| matches!(op, Operation::Load { .. })) {
            "loads"
        } else if has(|op| matches!(op, Operation::Serialize { .. })) {
            "orders a store"
        } else {
            ""
        }
    })
}

fn size(progress: &Progress) -> String {
    format!("{} states, depth {}", progress.states, progress.depth)
}

/// Says what a state cost, and what symmetry and compaction could not do.
fn cost(exploration: &Exploration) -> String {
    let progress = &exploration.progress;
    let states = progress.states.max(1) as f64;
    let mut text = format!(
        "{} rules fired, {:.0} states a second, {:.1} bytes a state",
        progress.fired,
        states / progress.elapsed.as_secs_f64().max(1e-6),
        progress.bytes as f64 / states
    );
    if let Some(omission) = exploration.omission {
        text += &format!(", a state was missed with a probability of at most {omission:.1e}");
    }
    if !exploration.asymmetric.is_empty() {
        text += &format!("; without symmetry: {}", exploration.asymmetric.join(", "));
    }
    text
}

fn counts(progress: &Progress) -> Value {
    json!({
        "states": progress.states,
        "depth": progress.depth,
        "fired": progress.fired,
        "bytes": progress.bytes,
        "millis": progress.elapsed.as_secs_f64() * 1e3,
    })
}

/// The progress line on a terminal; nothing in a pipe.
struct Line(indicatif::ProgressBar);

impl Line {
    fn new(path: &Path) -> Self {
        let bar = indicatif::ProgressBar::new_spinner();
        bar.set_prefix(path.display().to_string());
        Line(bar)
    }

    fn show(&mut self, progress: &Progress) {
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
