//! `consistory verify`: proves protocols, and checks descriptors.

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
use crate::output::{for_terminal, refuse_input, write_file};
use crate::pages::Pages;
use crate::reading::{self, Reading};
use crate::{interrupt, output, run};
use checkpoint::Keeper;
use report::{
    Line, counts, holds, proved, refuted, run_json, tracking, undecided, unexplained, unproved,
    what_is_wrong, wrong,
};

/// Share of the time (one part in this number) that is reserved for judging a run at the end.
const JUDGING_SHARE: u32 = 8;

/// Verifies every file; one that cannot be read is reported, and the others are still judged.
pub(crate) fn verify(args: &VerifyArgs) -> Result<u8, CliError> {
    let paths = find(args)?;
    if paths.len() != 1 && (args.checkpoint.is_some() || args.resume.is_some()) {
        return Err(CliError::usage("a checkpoint belongs to a single protocol"));
    }
    // A folder may contain many protocols, so each gets one line.
    let is_table = args.paths.iter().any(|path| path.is_dir());
    let shown = |path: &PathBuf| escaped(&path.display().to_string()).chars().count();
    let width = paths.iter().map(shown).max();
    let open =
        |path: &PathBuf| Pages::open(path, "Protocols").map(|pages| pages.counting("states"));
    if let Some(path) = &args.report {
        refuse_input(path, &args.paths)?;
    }
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

/// Finds the files that paths denote: a file itself, and the `.m` files of a folder; with
/// `--descriptor`, every file of a folder.
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
/// character, which is reported if it is outside of a comment.
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
    // One byte more than the limit is read, so that the library reports a description that is too
    // long.
    input.take(Model::MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    for (at, (name, _)) in constants.iter().enumerate() {
        if constants[..at].iter().any(|(other, _)| other == name) {
            return Err(CliError::usage(format!("-D gives `{name}` a value twice")));
        }
    }
    Model::parse_with(&path.display().to_string(), &text, constants).map_err(CliError::from)
}

/// Result for a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ProtocolVerdict {
    /// Every run is sequentially consistent, or a descriptor describes an acyclic constraint graph.
    Proved,
    /// Only the ordinary checks were requested, and they found no error.
    Holds,
    /// Nothing could be proved, because there are no loads or no stores.
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

    /// Returns the word for the verdict in JSON.
    fn as_str(self) -> &'static str {
        match self {
            ProtocolVerdict::Proved => "consistent",
            ProtocolVerdict::Holds => "holds",
            ProtocolVerdict::Unproved => "unproved",
            ProtocolVerdict::Violation => "violation",
            ProtocolVerdict::Undecided => "undecided",
        }
    }

    /// Returns the symbol for the verdict in a table.
    fn sign(self) -> &'static str {
        match self {
            ProtocolVerdict::Proved | ProtocolVerdict::Holds => "✓",
            ProtocolVerdict::Violation => "✗",
            ProtocolVerdict::Unproved | ProtocolVerdict::Undecided => "?",
        }
    }
}

/// The report on a file.
struct Report {
    verdict: ProtocolVerdict,
    /// Summary in a few words.
    headline: String,
    /// Text for people, without the file's name.
    text: String,
    /// JSON fields, in addition to source and verdict.
    json: Value,
    /// Case of the interactive report, if one is written.
    case: Option<Case>,
}

/// Prints a report, or its line in a table whose first column has the given width.
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

/// Escapes control characters in the names of rules and variables, in every line of a text.
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
        line += &format!("{separator}{} not checked", files - codes.len());
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
    // The rules of a large description use memory before the exploration starts.
    if let Err(stopped) = budget.check().and(budget.reserve(model.estimated_bytes(jobs))) {
        let counts = serde_json::json!({ "states": 0, "depth": 0 });
        return Ok(undecided(&Unfinished::Budget(stopped), counts, None));
    }
    // A protocol without marks is still checked, and the report says that nothing is proved.
    let missing = if args.plain { None } else { model.missing_marks() };
    let is_plain = args.plain || missing.is_some();
    // If data are replaced by labels, a store may change nothing, which is not a deadlock.
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

/// A protocol with the options of its judgement.
struct Task<'a> {
    args: &'a VerifyArgs,
    path: &'a Path,
    options: Options,
    budget: Budget,
    judge: RunJudge<'a>,
    keeper: Keeper,
    /// Reason why nothing can be proved, if there is one.
    missing: Option<&'static str>,
}

impl Task<'_> {
    /// Performs the ordinary checks, or proves that every run is sequentially consistent.
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

    /// Adds the page for an interactive report, if requested.
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

    /// Returns the error for a protocol that was not explored.
    fn refusal(&self, reason: &str) -> CliError {
        let file = self.args.resume.as_deref().unwrap_or(self.path);
        CliError::usage(format!("{}: {reason}", file.display()))
    }

    /// Returns the checkpoint from which a stopped search can continue.
    fn kept(&self) -> Option<&Path> {
        self.args.checkpoint.as_deref().filter(|_| self.keeper.is_kept)
    }

    /// Draws a run, if requested.
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

/// Judges the histories of runs, within the time limit of the protocol.
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
