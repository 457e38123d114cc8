//! `consistory verify`: protocols proved, descriptors checked.

mod checkpoint;
mod descriptor;
mod report;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use consistory::Court;
use consistory_history::History;
use consistory_protocol::{
    Checkpoint, Model, Options, Outcome, Run, Sequential, Snapshot, System, explore_from,
    verify_judged,
};
use consistory_verdict::{Budget, Verdict};
use serde_json::{Value, json};

use crate::args::{OutputFormat, VerifyArgs};
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION, report as tell};
use crate::{interrupt, run};
use checkpoint::Keeper;
use report::{
    Failed, Line, counts, proved, refused, run_json, tracking, undecided, what_is_wrong,
    without_faults, wrong,
};

/// Verifies every file; one that cannot be read is reported, and the others are still judged.
pub(crate) fn verify(args: &VerifyArgs) -> Result<u8, CliError> {
    let paths = find(args)?;
    if paths.len() != 1 && (args.checkpoint.is_some() || args.resume.is_some()) {
        return Err(CliError::usage("a checkpoint is of one protocol"));
    }
    // Of a folder there may be many: a line each.
    let is_table = args.paths.iter().any(|path| path.is_dir());
    let width = paths.iter().map(|path| path.display().to_string().chars().count()).max();
    let interrupt = interrupt::flag();
    let mut codes = Vec::new();
    for path in &paths {
        let judged = match args.descriptor {
            true => descriptor::check_descriptor(path),
            false => verify_protocol(args, path, &interrupt),
        };
        codes.push(match judged {
            Ok(report) => {
                print(args, path, &report, width.filter(|_| is_table))?;
                match report.verdict {
                    Verdict::Consistent => OK,
                    Verdict::Violation => VIOLATION,
                    Verdict::Undecided => UNDECIDED,
                }
            }
            Err(CliError::Closed) => return Err(CliError::Closed),
            Err(error) => {
                tell(&error);
                UNREADABLE
            }
        });
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
    }
    if is_table && args.format == OutputFormat::Text {
        summarize(&codes, paths.len()).map_err(CliError::output)?;
    }
    let worst = [UNREADABLE, VIOLATION, UNDECIDED].into_iter().find(|code| codes.contains(code));
    Ok(worst.unwrap_or(if codes.len() < paths.len() { UNDECIDED } else { OK }))
}

/// Finds the files behind paths: files as they are, and in folders what ends in `.m`; every file
/// there may be a descriptor.
fn find(args: &VerifyArgs) -> Result<Vec<PathBuf>, CliError> {
    let mut found = Vec::new();
    for path in &args.paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let before = found.len();
        // What is still to be visited, the next on top.
        let mut pending = vec![(path.clone(), true)];
        while let Some((path, is_folder)) = pending.pop() {
            if !is_folder {
                if args.descriptor || path.extension().is_some_and(|end| end == "m") {
                    found.push(path);
                }
                continue;
            }
            let failed = |error| CliError::file("read", &path, error);
            let mut entries = Vec::new();
            for entry in std::fs::read_dir(&path).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let is_folder = entry.file_type().map_err(failed)?.is_dir();
                entries.push((entry.path(), is_folder));
            }
            entries.sort_unstable();
            pending.extend(entries.into_iter().rev());
        }
        if found.len() == before {
            let what = if args.descriptor { "file" } else { ".m file" };
            let message = format!("there is no {what} in {}", path.display());
            return Err(CliError::usage(message));
        }
    }
    Ok(found)
}

/// Reads a description in Murphi.
pub(crate) fn read_model(path: &Path) -> Result<Model, CliError> {
    let text = std::fs::read_to_string(path).map_err(|e| CliError::file("read", path, e))?;
    Model::parse(&path.display().to_string(), &text).map_err(CliError::from)
}

/// What is said of a file.
struct Report {
    verdict: Verdict,
    /// In a few words.
    headline: String,
    /// For people, the file's name in front of it.
    text: String,
    /// For programs, besides source and verdict.
    json: Value,
}

/// Prints a report, or a line of it in a table whose first column has a width.
fn print(
    args: &VerifyArgs,
    path: &Path,
    report: &Report,
    width: Option<usize>,
) -> Result<(), CliError> {
    let Report { verdict, headline, text, json } = report;
    let source = path.display().to_string();
    let mut out = io::stdout().lock();
    match (args.format, width) {
        (OutputFormat::Text, None) => write!(out, "{source}: {text}"),
        (OutputFormat::Text, Some(width)) => {
            let number = |key: &str| json[key].as_u64().map_or(String::new(), |n| n.to_string());
            let seconds = json["millis"].as_f64().map_or(String::new(), |ms| format!("{:.1} s", ms / 1e3));
            let (states, depth) = (number("states"), number("depth"));
            let mark = match verdict {
                Verdict::Consistent => "✓",
                Verdict::Violation => "✗",
                Verdict::Undecided => "?",
            };
            writeln!(
                out,
                "{mark} {source:<width$} {states:>10} states {depth:>4} deep {seconds:>9}  {headline}"
            )
        }
        (OutputFormat::Json, _) => {
            let mut line = json!({ "source": source, "verdict": verdict.as_str() });
            if let (Value::Object(line), Value::Object(more)) = (&mut line, json) {
                line.extend(more.clone());
            }
            writeln!(out, "{line}")
        }
    }
    .map_err(CliError::output)
}

/// Counts the verdicts of a table.
fn summarize(codes: &[u8], files: usize) -> io::Result<()> {
    let mut line = format!("{files} files:");
    let mut separator = " ";
    for (code, name) in
        [(OK, "fine"), (VIOLATION, "wrong"), (UNDECIDED, "undecided"), (UNREADABLE, "unreadable")]
    {
        let count = codes.iter().filter(|&&found| found == code).count();
        if count > 0 {
            line += &format!("{separator}{count} {name}");
            separator = ", ";
        }
    }
    if codes.len() < files {
        line += &format!("{separator}{} not looked at", files - codes.len());
    }
    writeln!(io::stdout(), "{line}")
}

fn verify_protocol(
    args: &VerifyArgs,
    path: &Path,
    interrupt: &Arc<AtomicBool>,
) -> Result<Report, CliError> {
    let model = read_model(path)?;
    let jobs = args.jobs.count();
    let is_plain = args.plain || !model.is_marked();
    // With labels in the place of data a store may change nothing, which is no deadlock.
    let options = Options {
        symmetry: !args.no_symmetry,
        jobs,
        states: args.states,
        deadlock: is_plain,
        compaction: args.compaction,
    };
    let budget = Budget::unlimited()
        .with_time(args.budget)
        .with_memory(args.memory)
        .with_interrupt(Arc::clone(interrupt));
    let from = args.resume.as_deref().map(checkpoint::read).transpose()?;
    let keeper = Keeper::new(args.checkpoint.as_deref());
    if args.show_tracking {
        let system = model.tracked().map_err(CliError::from)?;
        return Ok(tracking(&system));
    }
    let court = Court::registers().models(["sc"])?.budget(args.budget).memory(args.memory);
    let court = court.jobs(1).interrupt(Arc::clone(interrupt));
    let task = Task { args, path, options, budget, court, keeper };
    if is_plain {
        task.explore(&model.plain(), from)
    } else {
        let system = model.tracked().map_err(CliError::from)?;
        task.prove(&system, from)
    }
}

/// A protocol that is to be judged, and how.
struct Task<'a> {
    args: &'a VerifyArgs,
    path: &'a Path,
    options: Options,
    budget: Budget,
    /// Judges the histories of runs.
    court: Court,
    keeper: Keeper,
}

impl Task<'_> {
    /// Makes the ordinary checks.
    fn explore(mut self, system: &System, from: Option<Checkpoint>) -> Result<Report, CliError> {
        let (options, budget) = (&self.options, &self.budget);
        let mut progress = Line::new(self.path);
        let exploration = explore_from(from, system, None, options, budget, &mut |snapshot| {
            progress.show(snapshot.progress());
            self.keeper.keep(snapshot);
        });
        drop(progress);
        let exploration = exploration.map_err(|error| self.refusal(&error.to_string()))?;
        let mut counts =
            counts(&exploration.progress, exploration.omission, &exploration.asymmetric);
        Ok(match exploration.outcome {
            Outcome::Holds => without_faults(&exploration, counts),
            Outcome::Undecided { reason } => undecided(&reason, counts, self.kept()),
            Outcome::Violated { violation, run } => {
                counts["run"] = run_json(&run);
                self.draw_run(system, &run, &what_is_wrong(&violation))?;
                wrong(&violation, &run, &exploration.progress, counts)
            }
        })
    }

    /// Proves that every run is sequentially consistent, or refutes it.
    fn prove(mut self, system: &System, from: Option<Checkpoint>) -> Result<Report, CliError> {
        let (options, budget) = (&self.options, &self.budget);
        let mut progress = Line::new(self.path);
        let report = &mut |snapshot: &Snapshot<'_>| {
            progress.show(snapshot.progress());
            self.keeper.keep(snapshot);
        };
        // A run that is sequentially consistent after all does not end the search.
        let court = &self.court;
        let judge = &mut |history: &History| !judge(court, history).is_consistent();
        let verification = verify_judged(from, system, options, budget, report, judge);
        drop(progress);
        let verification = verification.map_err(|error| self.refusal(&error.to_string()))?;
        let mut counts =
            counts(&verification.progress, verification.omission, &verification.asymmetric);
        let shape = verification.shape;
        counts["processors"] = shape.procs.into();
        counts["blocks"] = shape.blocks.into();
        counts["locations"] = shape.locations.into();
        Ok(match &verification.outcome {
            Sequential::Proved => proved(&verification, counts),
            Sequential::Undecided { reason } => undecided(reason, counts, self.kept()),
            Sequential::Wrong { violation, run } => {
                counts["run"] = run_json(run);
                self.draw_run(system, run, &what_is_wrong(violation))?;
                wrong(violation, run, &verification.progress, counts)
            }
            Sequential::Refused { run, failure, history, passed } => {
                counts["run"] = run_json(run);
                counts["failure"] = failure.to_string().into();
                self.draw_run(system, run, &failure.to_string())?;
                let judged = self.settle(history)?;
                let progress = &verification.progress;
                let failed = Failed { run, failure: &failure.to_string(), history, passed };
                refused(&failed, &judged, progress, counts)?
            }
        })
    }

    /// Says why nothing was explored.
    fn refusal(&self, reason: &str) -> CliError {
        let file = self.args.resume.as_deref().unwrap_or(self.path);
        CliError::usage(format!("{}: {reason}", file.display()))
    }

    /// Gives the checkpoint from which a search that ended can go on.
    fn kept(&self) -> Option<&Path> {
        self.args.checkpoint.as_deref().filter(|_| self.keeper.is_kept)
    }

    /// Draws a run if pictures are wanted.
    fn draw_run(&self, system: &System, run: &Run, caption: &str) -> Result<(), CliError> {
        match &self.args.draw {
            Some(folder) => run::draw(folder, self.path, system, run, caption).map(drop),
            None => Ok(()),
        }
    }

    /// Judges the history of a run, and draws it if it is not sequentially consistent.
    fn settle<'h>(&self, history: &'h History) -> Result<consistory::Verdict<'h>, CliError> {
        let verdict = judge(&self.court, history);
        if let (Some(folder), true) = (&self.args.draw, verdict.is_violation()) {
            std::fs::create_dir_all(folder).map_err(|e| CliError::file("create", folder, e))?;
            let name = self.path.with_extension("svg");
            let place = folder.join(name.file_name().unwrap_or(name.as_os_str()));
            std::fs::write(&place, verdict.draw())
                .map_err(|e| CliError::file("write", &place, e))?;
        }
        Ok(verdict)
    }
}

/// Judges the history of a run.
fn judge<'h>(court: &Court, history: &'h History) -> consistory::Verdict<'h> {
    let report = court.judge(history).expect("the history of a run consists of reads and writes");
    report.into_iter().next().expect("the court judges by one model")
}
