//! `consistory verify`: protocols proved, descriptors checked.

mod checkpoint;
mod descriptor;
mod report;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use consistory::Court;
use consistory_formats::files_below;
use consistory_history::{History, escaped};
use consistory_pages::{ProtocolFindings, protocol_case};
use consistory_protocol::{
    Checkpoint, ConstantValue, Exploration, Explorer, Model, Options, Outcome, Run, Snapshot,
    System, Unfinished, Violation,
};
use consistory_report::Case;
use consistory_verdict::Budget;
use serde_json::{Value, json};

use crate::again::again;
use crate::args::{OutputFormat, VerifyArgs};
use crate::error::{CliError, OK, UNDECIDED, UNPROVED, UNREADABLE, VIOLATION, report as tell};
use crate::limits;
use crate::output::{for_terminal, write_file};
use crate::pages::Pages;
use crate::reading::{self, Reading};
use crate::{interrupt, output, run};
use checkpoint::Keeper;
use report::{
    Line, counts, holds, proved, refuted, run_json, tracking, undecided, unexplained, unproved,
    what_is_wrong, wrong,
};

/// One part in so many of the time is left for judging a run when the rest is over.
const JUDGING_SHARE: u32 = 8;

/// Verifies every file; one that cannot be read is reported, and the others are still judged.
pub(crate) fn verify(args: &VerifyArgs) -> Result<u8, CliError> {
    let paths = find(args)?;
    if paths.len() != 1 && (args.checkpoint.is_some() || args.resume.is_some()) {
        return Err(CliError::usage("a checkpoint is of one protocol"));
    }
    // Of a folder there may be many: a line each.
    let is_table = args.paths.iter().any(|path| path.is_dir());
    let shown = |path: &PathBuf| escaped(&path.display().to_string()).chars().count();
    let width = paths.iter().map(shown).max();
    let open =
        |path: &PathBuf| Pages::open(path, "Protocols").map(|pages| pages.counting("states"));
    let mut pages = args.report.as_ref().map(open).transpose()?;
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
                if let (Some(pages), Some(case)) = (&mut pages, &report.case) {
                    let states = report.json["states"].as_u64().unwrap_or(0);
                    let words = [("verdict", report.verdict.as_str())];
                    pages.add(states, words, case).map_err(CliError::output)?;
                }
                report.verdict.exit_code()
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
        summarize(&codes, paths.len())?;
    }
    if let Some(pages) = pages {
        pages.finish()?;
    }
    let mut worst = [UNREADABLE, VIOLATION, UNDECIDED, UNPROVED].into_iter();
    let worst = worst.find(|code| codes.contains(code));
    Ok(worst.unwrap_or(if codes.len() < paths.len() { UNDECIDED } else { OK }))
}

/// Finds the files that paths name: a file as it is, and the `.m` files of a folder; every file of
/// a folder may be a descriptor.
fn find(args: &VerifyArgs) -> Result<Vec<PathBuf>, CliError> {
    let mut found = Vec::new();
    for path in &args.paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let is_wanted =
            |path: &Path| args.descriptor || path.extension().is_some_and(|end| end == "m");
        let inside = files_below(path, is_wanted)?;
        if inside.is_empty() {
            let what = if args.descriptor { "file" } else { ".m file" };
            let message = format!("there is no {what} in {}", path.display());
            return Err(CliError::usage(message));
        }
        found.extend(inside);
    }
    Ok(found)
}

/// Reads a description in Murphi, from standard input if the path is `-`.
///
/// Bytes that are not UTF-8 occur in comments of older descriptions: they become a replacement
/// character, which is reported if it stands outside of a comment.
pub(crate) fn read_model(
    path: &Path,
    constants: &[(String, ConstantValue)],
) -> Result<Model, CliError> {
    let failed = |error| CliError::file("read", path, error);
    let input: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(Reading(io::stdin().lock())),
        false => Box::new(reading::open(path)?),
    };
    let mut bytes = Vec::new();
    // One byte more than a description may have: the library then says that it is too long.
    input.take(Model::MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    Model::parse_with(&path.display().to_string(), &text, constants).map_err(CliError::from)
}

/// What came of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ProtocolVerdict {
    /// Every run is sequentially consistent, or a descriptor is of an acyclic constraint graph.
    Proved,
    /// The ordinary checks, which were asked for, found nothing wrong.
    Holds,
    /// There is nothing that could be proved: no loads or no stores.
    Unproved,
    Violation,
    Undecided,
}

impl ProtocolVerdict {
    fn exit_code(self) -> u8 {
        match self {
            ProtocolVerdict::Proved | ProtocolVerdict::Holds => OK,
            ProtocolVerdict::Unproved => UNPROVED,
            ProtocolVerdict::Violation => VIOLATION,
            ProtocolVerdict::Undecided => UNDECIDED,
        }
    }

    /// Returns the word that programs read.
    fn as_str(self) -> &'static str {
        match self {
            ProtocolVerdict::Proved => "consistent",
            ProtocolVerdict::Holds => "holds",
            ProtocolVerdict::Unproved => "unproved",
            ProtocolVerdict::Violation => "violation",
            ProtocolVerdict::Undecided => "undecided",
        }
    }

    /// Returns the sign of a line in a table.
    fn sign(self) -> &'static str {
        match self {
            ProtocolVerdict::Proved | ProtocolVerdict::Holds => "✓",
            ProtocolVerdict::Violation => "✗",
            ProtocolVerdict::Unproved | ProtocolVerdict::Undecided => "?",
        }
    }
}

/// What is said of a file.
struct Report {
    verdict: ProtocolVerdict,
    /// In a few words.
    headline: String,
    /// For people, the file's name in front of it.
    text: String,
    /// For programs, besides source and verdict.
    json: Value,
    /// For a browser, if an interactive report is written.
    case: Option<Case>,
}

/// Prints a report, or a line of it in a table whose first column has a width.
fn print(
    args: &VerifyArgs,
    path: &Path,
    report: &Report,
    width: Option<usize>,
) -> Result<(), CliError> {
    let Report { verdict, headline, text, json, .. } = report;
    let source = path.display().to_string();
    output::print(match (args.format, width) {
        (OutputFormat::Text, None) => {
            for_terminal(format!("{}: {}", escaped(&source), escaped_lines(text)))
        }
        (OutputFormat::Text, Some(width)) => {
            let number = |key: &str| json[key].as_u64().map_or(String::new(), |n| n.to_string());
            let seconds =
                json["millis"].as_f64().map_or(String::new(), |ms| format!("{:.1} s", ms / 1e3));
            let (states, depth) = (number("states"), number("depth"));
            let (mark, source) = (verdict.sign(), escaped(&source));
            let headline = escaped(headline);
            format!(
                "{mark} {source:<width$} {states:>10} states {depth:>4} deep {seconds:>9}  {headline}\n"
            )
        }
        (OutputFormat::Json, _) => {
            let mut line = json!({ "source": source, "verdict": verdict.as_str() });
            if let (Value::Object(line), Value::Object(more)) = (&mut line, json) {
                line.extend(more.clone());
            }
            format!("{line}\n")
        }
    })
}

/// Escapes what the names of rules and variables may hold, in every line of a text.
fn escaped_lines(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", escaped(line))).collect()
}

/// Counts the verdicts of a table.
fn summarize(codes: &[u8], files: usize) -> Result<(), CliError> {
    let mut line = format!("{files} files:");
    let mut separator = " ";
    for (code, name) in [
        (OK, "fine"),
        (VIOLATION, "wrong"),
        (UNDECIDED, "undecided"),
        (UNPROVED, "unproved"),
        (UNREADABLE, "unreadable"),
    ] {
        let count = codes.iter().filter(|&&found| found == code).count();
        if count > 0 {
            line += &format!("{separator}{count} {name}");
            separator = ", ";
        }
    }
    if codes.len() < files {
        line += &format!("{separator}{} not looked at", files - codes.len());
    }
    output::print(format!("{line}\n"))
}

fn verify_protocol(
    args: &VerifyArgs,
    path: &Path,
    interrupt: &Arc<AtomicBool>,
) -> Result<Report, CliError> {
    let started = Instant::now();
    let budget =
        limits::budget(args.budget).with_memory(args.memory).with_interrupt(Arc::clone(interrupt));
    let model = read_model(path, &args.constants)?;
    let jobs = args.jobs.count();
    // The rules of a large description take memory before anything is explored.
    if let Err(stopped) = budget.check().and(budget.reserve(model.estimated_bytes(jobs))) {
        let counts = serde_json::json!({ "states": 0, "depth": 0 });
        return Ok(undecided(&Unfinished::Budget(stopped), counts, None));
    }
    // What cannot be proved is checked all the same, and the report says that nothing is proved.
    let missing = if args.plain { None } else { model.missing_marks() };
    let is_plain = args.plain || missing.is_some();
    // With labels in the place of data a store may change nothing, which is not a deadlock.
    let options = Options {
        symmetry: !args.no_symmetry,
        jobs,
        states: args.states,
        deadlock: args.plain && !args.no_deadlock,
        compaction: args.compaction,
    };
    let from = args.resume.as_deref().map(checkpoint::read).transpose()?;
    let keeper = Keeper::new(args.checkpoint.as_deref())?;
    if args.show_tracking {
        let system = model.tracked().map_err(CliError::from)?;
        return Ok(tracking(&system));
    }
    let system = match is_plain {
        true => model.plain(),
        false => model.tracked().map_err(CliError::from)?,
    };
    let judge = RunJudge { args, interrupt, started };
    Task { args, path, options, budget, judge, keeper, missing }.run(&system, from)
}

/// A protocol that is to be judged, and how.
struct Task<'a> {
    args: &'a VerifyArgs,
    path: &'a Path,
    options: Options,
    budget: Budget,
    judge: RunJudge<'a>,
    keeper: Keeper,
    /// Why nothing can be proved, if nothing can.
    missing: Option<&'static str>,
}

impl Task<'_> {
    /// Builds the ordinary checks, or proves that every run is sequentially consistent.
    fn run(mut self, system: &System, from: Option<Checkpoint>) -> Result<Report, CliError> {
        let (budget, judge) = (&self.budget, &self.judge);
        let mut progress = Line::new(self.path);
        let keeper = &mut self.keeper;
        let report = |snapshot: &Snapshot<'_>| {
            progress.show(snapshot.progress());
            keeper.keep(snapshot);
        };
        let mut explorer = Explorer::new(system)
            .options(self.options.clone())
            .budget(budget.clone())
            .report(report)
            .judge(|history| judge.judge(history).outcome());
        if let Some(checkpoint) = from {
            explorer = explorer.resume(checkpoint);
        }
        let explored = explorer.run();
        drop(progress);
        let exploration = explored.map_err(|error| self.refusal(&error.to_string()))?;
        self.report(system, &exploration)
    }

    fn report(&self, system: &System, exploration: &Exploration) -> Result<Report, CliError> {
        let mut counts = counts(exploration);
        let case = |report: Report, run: Option<(&Run, String)>, judged: Option<&_>| {
            self.with_case(report, system, run, judged)
        };
        Ok(match &exploration.outcome {
            Outcome::Holds => {
                let report = match (self.missing, exploration.shape) {
                    (Some(missing), _) => unproved(missing, exploration, counts),
                    (None, None) => holds(exploration, counts),
                    (None, Some(shape)) => proved(exploration, shape, counts),
                };
                case(report, None, None)
            }
            Outcome::Undecided { reason: Unfinished::Unexplained(found) } => {
                counts["run"] = run_json(&found.run);
                let failure = found.failure.to_string();
                counts["failure"] = failure.as_str().into();
                self.draw_run(system, &found.run, &failure)?;
                let judged = self.judge.judge(&found.history);
                let report = unexplained(system, found, &judged, &exploration.progress, counts)?;
                case(report, Some((&found.run, failure)), Some(&judged))
            }
            Outcome::Undecided { reason } => {
                case(undecided(reason, counts, self.kept()), None, None)
            }
            Outcome::Violated { violation: Violation::Graph { failure, history }, run } => {
                counts["run"] = run_json(run);
                let failure = failure.to_string();
                counts["failure"] = failure.as_str().into();
                self.draw_run(system, run, &failure)?;
                let judged = self.settle(history)?;
                let report = refuted(run, &failure, history, &judged, exploration, counts)?;
                case(report, Some((run, failure)), Some(&judged))
            }
            Outcome::Violated { violation, run } => {
                counts["run"] = run_json(run);
                let wrongness = what_is_wrong(violation);
                self.draw_run(system, run, &wrongness)?;
                let report = wrong(violation, run, &exploration.progress, counts);
                case(report, Some((run, wrongness)), None)
            }
        })
    }

    /// Adds the page for a browser if it is wanted.
    fn with_case(
        &self,
        report: Report,
        system: &System,
        run: Option<(&Run, String)>,
        judged: Option<&consistory::Verdict<'_>>,
    ) -> Report {
        if self.args.report.is_none() {
            return report;
        }
        let source = self.path.display().to_string();
        let number = |key: &str| report.json[key].to_string();
        let recheck = again(&[&source]);
        let case = protocol_case(&ProtocolFindings {
            source: &source,
            verdict: report.verdict.as_str(),
            headline: &report.headline,
            text: &report.text,
            facts: vec![
                ("states".to_owned(), number("states")),
                ("depth".to_owned(), number("depth")),
            ],
            run: run.map(|(run, caption)| (system, run, caption)),
            judged,
            recheck,
        });
        Report { case: Some(case), ..report }
    }

    /// Says why nothing was explored.
    fn refusal(&self, reason: &str) -> CliError {
        let file = self.args.resume.as_deref().unwrap_or(self.path);
        CliError::usage(format!("{}: {reason}", file.display()))
    }

    /// Returns the checkpoint from which a search that ended can go on.
    fn kept(&self) -> Option<&Path> {
        self.args.checkpoint.as_deref().filter(|_| self.keeper.is_kept)
    }

    /// Draws a run if pictures are wanted.
    fn draw_run(&self, system: &System, run: &Run, caption: &str) -> Result<(), CliError> {
        match &self.args.drawing.draw {
            Some(folder) => {
                let format = self.args.drawing.format();
                run::draw(folder, format, self.path, system, run, caption).map(drop)
            }
            None => Ok(()),
        }
    }

    /// Judges the history of a run, and draws it if it is not sequentially consistent.
    fn settle<'h>(&self, history: &'h History) -> Result<consistory::Verdict<'h>, CliError> {
        let verdict = self.judge.judge(history);
        if let (Some(folder), true) = (&self.args.drawing.draw, verdict.is_violation()) {
            std::fs::create_dir_all(folder).map_err(|e| CliError::file("create", folder, e))?;
            let format = self.args.drawing.format();
            let name = self.path.with_extension(format.extension());
            let place = folder.join(name.file_name().unwrap_or(name.as_os_str()));
            write_file(&place, |out| out.write_all(verdict.draw_as(format).as_bytes()))?;
        }
        Ok(verdict)
    }
}

/// Judges the histories of runs, within the time that the protocol has.
struct RunJudge<'a> {
    args: &'a VerifyArgs,
    interrupt: &'a Arc<AtomicBool>,
    started: Instant,
}

impl RunJudge<'_> {
    /// Judges the history of a run.
    fn judge<'h>(&self, history: &'h History) -> consistory::Verdict<'h> {
        let VerifyArgs { budget, memory, .. } = *self.args;
        let left = budget.saturating_sub(self.started.elapsed()) + budget / JUDGING_SHARE;
        let court = Court::registers().models(["sc"]).expect("sc is a model");
        let court = court.budget(left).memory(memory).jobs(1);
        let court = court.interrupt(Arc::clone(self.interrupt));
        let report =
            court.judge(history).expect("the history of a run consists of reads and writes");
        report.into_iter().next().expect("the court judges by one model")
    }
}
