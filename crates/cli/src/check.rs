//! `consistory check`: judge histories and print the verdicts.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use consistory::{
    Attachments, Budget, Case, Cases, Court, Error, MAX_PRINTED_CERTIFICATE, Outcome, Report,
    Shrunk, Verdict, pipeline, read_all_within,
};
use consistory_history::escaped;
use consistory_report::Case as PageCase;
use indicatif::ProgressBar;

use crate::again::check_again;
use crate::args::{CheckArgs, InputArgs, OutputFormat};
use crate::digest::{Detail, Digest, Page, page};
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION, report};
use crate::output::{StandardOutput, refuse_input, write_file};
use crate::pages::Pages;
use crate::part::{InputShare, Part, PartEnd, placed, run_id};
use crate::progress::{progress_bar, show_stages};
use crate::resume::{Asked, Judged, Known, Others, Resumed, resume};
use crate::{anomalies, infer, limits};

/// The output for an item.
struct Done {
    text: Text,
    code: u8,
    complaints: Vec<CliError>,
    /// The case on the page of an interactive report, if one is written.
    page: Option<PageEntry>,
}

/// A case of an interactive report, with its line of the overview.
struct PageEntry {
    source: String,
    /// Number of the input, and index of the history in it.
    place: (usize, u64),
    operations: u64,
    words: Vec<(String, &'static str)>,
    case: PageCase,
}

impl PageEntry {
    /// Adds the case to a report; `next` is the input number of the next case.
    fn write(mut self, pages: &mut Pages, args: &CheckArgs, next: Option<usize>) -> io::Result<()> {
        let (number, index) = self.place;
        // If only a part of the histories is judged, it is unknown whether the input contains
        // others.
        let is_whole = args.index.is_none() && args.part.part.is_none() && args.resume.is_none();
        let is_alone = is_whole && index == 0 && next != Some(number);
        self.case.recheck = check_again(&self.source, (!is_alone).then_some(index));
        let words = self.words.iter().map(|(model, word)| (model.as_str(), *word));
        pages.add(self.operations, words, &self.case)
    }
}

enum Text {
    /// A line of JSON.
    Line(String),
    /// A page for people, whose form depends on whether there are several histories.
    Page(Page),
}

/// Judges every history of every input, in input order.
pub(crate) fn check(args: &CheckArgs) -> Result<u8, CliError> {
    if args.objects.infer_levels {
        return infer::infer(args);
    }
    if args.anomalies {
        refuse_terminal(&args.input)?;
        return anomalies::list(args);
    }
    let progress = match args.verbosity.quiet {
        true => ProgressBar::hidden(),
        false => progress_bar(),
    };
    let part = args.part.of(args.format)?;
    let court = court(args)?.on_progress(show_stages(&progress, args.budget));
    refuse_terminal(&args.input)?;
    if let Some(path) = &args.report {
        refuse_input(path, &args.input.paths)?;
    }
    create_folders(args)?;
    let (mut out, judged, mut code) = match &args.resume {
        None => (StandardOutput::open()?, Judged::default(), OK),
        Some(_) if args.format != OutputFormat::Json => {
            return Err(CliError::usage("--resume needs --format json"));
        }
        Some(path) => {
            let named = BTreeSet::from_iter(court.named_models());
            let asks = |group: &str| args.model.iter().any(|id| id.eq_ignore_ascii_case(group));
            let has_own = !args.objects.axioms.is_empty() || args.objects.levels.is_some();
            let others = match named.is_empty() {
                _ if asks("all") => Others::All,
                _ if asks("strongest") => Others::Strongest,
                _ if has_own => Others::Own,
                true => Others::Strongest,
                false => Others::None,
            };
            let Resumed { file, judged, code } = resume(path, &Asked { named, others })?;
            (StandardOutput::appending(file), judged, code)
        }
    };
    let changed = Mutex::new(Vec::new());
    let mut digest = Digest::default();
    let is_written = !args.verbosity.quiet || args.resume.is_some();
    let mut broken = None;
    let mut pages =
        args.report.as_deref().map(|path| Pages::open(path, "Consistency report")).transpose()?;
    let (mut lines, mut errors) = (0, 0);
    let mut cases = read_all_within(&args.input.paths, args.input.from, court.reading_budget());
    if let Some(index) = args.index {
        cases = cases.at_index(index);
    }
    // The last case waits, because the command that repeats it depends on whether its input
    // contains others.
    let mut waiting: Option<PageEntry> = None;
    let run = part.map(|_| run_id("check", &(shown_settings(args), inputs(&cases))));
    pipeline::run(
        args.jobs.count(),
        |push| {
            produce_share(cases, part, &mut |case, operations| {
                let known = case.as_ref().map_or(Known::No, |case| {
                    judged.knows(&case.source, case.index, &case.history)
                });
                if let (Known::Changed, Ok(case)) = (&known, &case) {
                    let place = format!("{} [{}]", escaped(&case.source), case.index);
                    changed.lock().unwrap_or_else(PoisonError::into_inner).push(place);
                }
                known != Known::No || push(case, operations)
            });
        },
        |case| match case.and_then(|case| court.judge_case(case)) {
            Ok(report) => done(args, &report),
            Err(error) => Done {
                text: Text::Line(String::new()),
                code: code_of(&error),
                complaints: vec![error.into()],
                page: None,
            },
        },
        |Done { text, code: new, complaints, page }| {
            progress.inc(1);
            let text = match text {
                Text::Line(text) => text.into_bytes(),
                Text::Page(page) => digest.add(page),
            };
            code = worse(code, new);
            lines += u64::from(!text.is_empty());
            errors += complaints.len() as u64;
            progress.suspend(|| complaints.iter().for_each(report));
            if is_written {
                broken = progress.suspend(|| out.write(&text, args.format)).err();
            }
            if let (Some(pages), Some(page)) = (&mut pages, page) {
                let next = page.place.0;
                if let Some(entry) = waiting.replace(page) {
                    let written = entry.write(pages, args, Some(next));
                    broken = broken.take().or(written.err());
                }
            }
            broken.is_none()
        },
    );
    progress.finish_and_clear();
    for place in changed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        errors += 1;
        code = worse(code, UNREADABLE);
        report(&CliError::with_hint(
            format!("{place}: the history has changed since it was judged"),
            "remove its line from the resumed file, and the history is judged again",
        ));
    }
    if broken.is_none() && is_written {
        broken = out.write(&digest.finish(), args.format).err();
    }
    if let (None, Some(part), Some(run)) = (&broken, part, run) {
        let end = PartEnd { part, command: "check", run, lines, errors, code };
        broken = out.write(end.line().as_bytes(), args.format).err();
    }
    if let (None, Some(pages), Some(entry)) = (&broken, &mut pages, waiting) {
        broken = entry.write(pages, args, None).err();
    }
    if let Some(error) = broken {
        return Err(CliError::output(error));
    }
    if let Some(pages) = pages {
        pages.finish()?;
    }
    Ok(code)
}

/// Builds the court that the command line describes.
fn court(args: &CheckArgs) -> Result<Court, CliError> {
    let mut court = match &args.objects.object {
        Some(object) => Court::object(object)?,
        None => Court::new(),
    };
    court = court.models(&args.model)?.order(args.order.into());
    for axioms in &args.objects.axioms {
        court = court.axioms(axioms)?;
    }
    if let Some(levels) = &args.objects.levels {
        court = court.levels(levels)?;
    }
    if args.no_certify {
        court = court.without_certification();
    }
    let engine = args.engine.into();
    let court = court.budget(args.budget).memory(args.memory).gauge(limits::gauge());
    Ok(court.jobs(args.jobs.count()).engine(engine))
}

/// Builds the output for a report, and writes the files that belong to it.
fn done(args: &CheckArgs, report: &Report<'_>) -> Done {
    let place = format!("{} [{}]", report.source(), report.index());
    let mut complaints = Vec::new();
    let mut attached = Vec::with_capacity(report.len());
    let mut shrunk = Vec::with_capacity(report.len());
    let mut code = OK;
    for verdict in report.iter() {
        if let Some(rejection) = verdict.rejection() {
            let model = verdict.model().id();
            complaints.push(CliError::with_hint(
                format!("{place}: the certificate for {model} was rejected: {rejection}"),
                "this is a bug in Consistory, not in your history; the verdict is withheld",
            ));
        }
        let mut files = Attachments::default();
        match attach(args, report, verdict, &mut files) {
            Ok(small) => shrunk.push(small),
            Err(error) => {
                shrunk.push(None);
                complaints.push(error);
            }
        }
        attached.push(files);
        code = worse(code, exit_code(verdict.outcome()));
    }
    if !complaints.is_empty() && code != VIOLATION {
        code = worse(code, UNDECIDED);
    }
    let text = match args.format {
        OutputFormat::Text => {
            let detail =
                if args.verbosity.verbose { Detail::Everything } else { Detail::Violations };
            Text::Page(page(report, &attached, detail))
        }
        OutputFormat::Json => {
            let line = report.json_with(&attached);
            Text::Line(match args.part.part {
                Some(_) => placed(&line, &[report.number() as u64, report.index()]),
                None => line + "\n",
            })
        }
    };
    let page = args.report.is_some().then(|| PageEntry {
        source: report.source().to_owned(),
        place: (report.number(), report.index()),
        operations: report.history().len() as u64,
        words: report
            .iter()
            .map(|verdict| (verdict.model().id().to_owned(), verdict.outcome().as_str()))
            .collect(),
        case: report.page(&shrunk),
    });
    Done { text, code, complaints, page }
}

/// Writes a certificate that is too large to print and the drawing of a violation to the folders
/// named on the command line, and shrinks a violation if requested.
fn attach(
    args: &CheckArgs,
    report: &Report<'_>,
    verdict: &Verdict<'_>,
    files: &mut Attachments,
) -> Result<Option<Shrunk>, CliError> {
    let name = |extension: &str| file_name(report, verdict.model().id(), extension);
    if let (Some(folder), Some(proof)) = (&args.certificates, verdict.certificate())
        && proof.size() > MAX_PRINTED_CERTIFICATE
    {
        let path = folder.join(name("json"));
        write_file(&path, |out| {
            proof.write(verdict.history(), out)?;
            out.write_all(b"\n")
        })?;
        files.certificate = Some(path.display().to_string());
    }
    let mut small = None;
    if args.shrink && verdict.is_violation() {
        let shrunk = verdict.shrink()?;
        let note = match shrunk.is_minimal() {
            true => "",
            false => "# The budget ended before it was clear that no operation can be left out.\n",
        };
        files.shrunk = Some(format!("{note}{}", shrunk.text()));
        small = Some(shrunk);
    }
    if let (Some(folder), true) = (&args.drawing.draw, verdict.is_violation()) {
        let format = args.drawing.format();
        let path = folder.join(name(format.extension()));
        let drawn =
            small.as_ref().map_or_else(|| verdict.draw_as(format), |small| small.draw_as(format));
        write_file(&path, |out| out.write_all(drawn.as_bytes()))?;
        files.drawing = Some(path.display().to_string());
    }
    Ok(small)
}

/// Returns a file name that is unique among the verdicts of the run.
fn file_name(report: &Report<'_>, model: &str, extension: &str) -> String {
    let plain = |text: &str| -> String {
        let stem = Path::new(text).file_name().unwrap_or_default().to_string_lossy();
        stem.chars()
            .map(|c| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '_' })
            .take(80)
            .collect()
    };
    let (source, model) = (plain(report.source()), plain(model));
    format!("{:04}-{source}.{}.{model}.{extension}", report.number(), report.index())
}

/// Refuses to read a history from a terminal.
pub(crate) fn refuse_terminal(input: &InputArgs) -> Result<(), CliError> {
    if input.paths.iter().any(|path| path.as_os_str() == "-") && io::stdin().is_terminal() {
        return Err(CliError::with_hint(
            "standard input is a terminal",
            "name a file or folder, or pipe a history in",
        ));
    }
    Ok(())
}

/// Returns the exit code of a history that was not judged because it is unreadable or exceeded its
/// budget.
pub(crate) fn code_of(error: &Error) -> u8 {
    if error.is_out_of_budget() { UNDECIDED } else { UNREADABLE }
}

/// Reads the inputs in order.
pub(crate) fn produce(
    args: &InputArgs,
    budget: Budget,
    push: &mut dyn FnMut(Result<Case, Error>, usize) -> bool,
) {
    for case in read_all_within(&args.paths, args.from, budget) {
        let operations = case.as_ref().map_or(0, |case| case.history.len());
        if !push(case, operations) {
            return;
        }
    }
}

/// Reads the inputs in order, restricted to a part.
fn produce_share(
    cases: Cases,
    part: Option<Part>,
    push: &mut dyn FnMut(Result<Case, Error>, usize) -> bool,
) {
    let share = part.map(|part| InputShare::new(part, &cases));
    let mut cases = match &share {
        Some(share) => cases.only(|number| share.has_input(number)),
        None => cases,
    };
    while let Some(case) = cases.next() {
        let (number, index) = match &case {
            Ok(case) => (case.number, case.index),
            Err(_) => (cases.last_input(), 0),
        };
        if share.as_ref().is_some_and(|share| !share.has(number, index)) {
            continue;
        }
        let operations = case.as_ref().map_or(0, |case| case.history.len());
        if !push(case, operations) {
            return;
        }
    }
}

/// Lists the names of the inputs.
fn inputs(cases: &Cases) -> Vec<Option<String>> {
    cases.inputs().map(|(_, name)| name).collect()
}

/// Describes the settings on which the verdicts depend.
fn shown_settings(args: &CheckArgs) -> String {
    let CheckArgs { input, index, model, order, objects, budget, memory, engine, .. } = args;
    let flags = (args.shrink, args.no_certify, args.anomalies);
    format!("{:?}", (input.from, index, model, order, objects, budget, memory, engine, flags))
}

/// Creates the folders for output files.
fn create_folders(args: &CheckArgs) -> Result<(), CliError> {
    for folder in [&args.drawing.draw, &args.certificates].into_iter().flatten() {
        std::fs::create_dir_all(folder).map_err(|e| CliError::file("create", folder, e))?;
    }
    Ok(())
}

fn exit_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Consistent => OK,
        Outcome::Violation => VIOLATION,
        Outcome::Undecided => UNDECIDED,
    }
}

/// Returns the more important of two exit codes: unreadable input outweighs a violation, and a
/// violation outweighs an undecided verdict.
pub(crate) fn worse(a: u8, b: u8) -> u8 {
    let rank = |code| match code {
        UNREADABLE => 3,
        VIOLATION => 2,
        UNDECIDED => 1,
        _ => 0,
    };
    if rank(b) > rank(a) { b } else { a }
}
