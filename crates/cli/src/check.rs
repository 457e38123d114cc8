//! `consistory check`: judge histories and print the verdicts.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use consistory_check::{Model, Options, Ruling, judge, shrink};
use consistory_formats::{Format, read, write_history};
use consistory_history::History;
use consistory_models::{DoesNotApply, strongest};
use consistory_verdict::{Budget, Judgement, Stopped, Verdict};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{CheckArgs, InputArgs, OutputFormat};
use crate::certify::accept;
use crate::convert::find_inputs;
use crate::digest::{Digest, Page, page};
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION, report};
use crate::finding::Finding;
use crate::objects::{self, ObjectCourt};
use crate::output::StandardOutput;
use crate::pipeline;
use crate::report::{Outcome, Place, Report, json};
use crate::select::{Selection, select};

/// A history to judge, or what could not be read.
pub(crate) enum Item {
    History { source: Arc<str>, number: usize, index: u64, history: Box<History> },
    Unreadable(CliError),
}

/// Who judges.
enum AnyCourt<'a> {
    Registers(Court<'a>),
    Objects(ObjectCourt<'a>),
}

/// What to print of an item.
pub(crate) enum Done {
    Judged {
        text: Vec<u8>,
        code: u8,
        complaints: Vec<CliError>,
    },
    /// A page for people, and what becomes of it among many.
    Page {
        page: Page,
        code: u8,
        complaints: Vec<CliError>,
    },
    Unreadable(CliError),
}

impl Done {
    /// Writes a report down.
    pub(crate) fn of(report: &Report<'_>, format: OutputFormat, complaints: Vec<CliError>) -> Self {
        let mut code = report.results.iter().fold(OK, |code, outcome| {
            let new = match outcome.verdict() {
                Verdict::Consistent => OK,
                Verdict::Violation => VIOLATION,
                Verdict::Undecided => UNDECIDED,
            };
            worse(code, new)
        });
        if !complaints.is_empty() && code != VIOLATION {
            code = worse(code, UNDECIDED);
        }
        match format {
            OutputFormat::Text => Done::Page { page: page(report), code, complaints },
            OutputFormat::Json => {
                let mut text = Vec::new();
                json(report, &mut text).expect("writing to memory does not fail");
                Done::Judged { text, code, complaints }
            }
        }
    }
}

/// Judges every history of every input, in input order.
pub(crate) fn check(args: &CheckArgs) -> Result<u8, CliError> {
    if args.objects.infer_levels {
        return objects::infer(args);
    }
    let has_model = !args.model.is_empty();
    if !(has_model || !args.objects.axioms.is_empty() || args.objects.levels.is_some()) {
        return Err(no_model());
    }
    let is_of_objects = |id: &String| consistory_spec::NAMED.contains(&id.as_str());
    let court = match &args.objects.object {
        Some(object) => AnyCourt::Objects(ObjectCourt::new(args, Some(object))?),
        None if has_model && args.model.iter().all(is_of_objects) => {
            AnyCourt::Objects(ObjectCourt::new(args, None)?)
        }
        None => AnyCourt::Registers(Court::new(args)?),
    };
    refuse_terminal(&args.input)?;
    let jobs = args.jobs.count();
    let mut out = StandardOutput::open()?;
    let mut digest = Digest::default();
    let progress = progress_bar();
    let mut code = OK;
    let mut broken = None;
    pipeline::run(
        jobs,
        |push| produce(&args.input, push),
        |item| match item {
            Item::History { source, number, index, history } => match &court {
                AnyCourt::Registers(court) => court.judge(&source, number, index, &history),
                AnyCourt::Objects(court) => court.judge(&source, number, index, &history),
            },
            Item::Unreadable(error) => Done::Unreadable(error),
        },
        |done| {
            progress.inc(1);
            let (text, new, complaints) = match done {
                Done::Unreadable(error) => (Vec::new(), UNREADABLE, vec![error]),
                Done::Judged { text, code, complaints } => (text, code, complaints),
                Done::Page { page, code, complaints } => (digest.add(page), code, complaints),
            };
            code = worse(code, new);
            progress.suspend(|| complaints.iter().for_each(report));
            broken = progress.suspend(|| out.write(&text, args.format)).err();
            broken.is_none()
        },
    );
    progress.finish_and_clear();
    let broken = broken.or_else(|| out.write(&digest.finish(), args.format).err());
    match broken {
        Some(error) => Err(CliError::output(error)),
        None => Ok(code),
    }
}

/// Refuses to wait for somebody to type a history.
pub(crate) fn refuse_terminal(input: &InputArgs) -> Result<(), CliError> {
    if input.paths.iter().any(|path| path.as_os_str() == "-") && io::stdin().is_terminal() {
        return Err(CliError::with_hint(
            "standard input is a terminal",
            "name a file or folder, or pipe a history in",
        ));
    }
    Ok(())
}

/// Says which models there are, when none was named.
fn no_model() -> CliError {
    let registers: Vec<&str> = consistory_models::catalogue().iter().map(|m| m.id).collect();
    CliError::with_hint(
        "no model is named",
        format!(
            "as in `--model sc`; of registers there are {}; of objects {}; also `all`, \
             `strongest` and paths to definition files (see `consistory models`)",
            registers.join(", "),
            consistory_spec::NAMED.join(", ")
        ),
    )
}

/// Reads the inputs one after the other.
pub(crate) fn produce(args: &InputArgs, push: &mut dyn FnMut(Item, usize) -> bool) {
    for (number, input) in find_inputs(&args.paths).into_iter().enumerate() {
        let input = match input {
            Ok(input) => input,
            Err(error) => {
                if !push(Item::Unreadable(error.into()), 0) {
                    return;
                }
                continue;
            }
        };
        let source: Arc<str> = input.to_string().into();
        for (index, history) in read(&input, args.from).enumerate() {
            let more = match history {
                Ok(history) => {
                    let operations = history.len();
                    let (source, index) = (Arc::clone(&source), index as u64);
                    let history = Box::new(history);
                    push(Item::History { source, number, index, history }, operations)
                }
                Err(error) => push(Item::Unreadable(error.into()), 0),
            };
            if !more {
                return;
            }
        }
    }
}

/// Makes the folders that are written to.
pub(crate) fn create_folders(args: &CheckArgs) -> Result<(), CliError> {
    for folder in [&args.draw, &args.certificates].into_iter().flatten() {
        std::fs::create_dir_all(folder).map_err(|e| CliError::file("create", folder, e))?;
    }
    Ok(())
}

/// Combines exit codes: unreadable input outweighs a violation, that outweighs undecided.
pub(crate) fn worse(a: u8, b: u8) -> u8 {
    let rank = |code| match code {
        UNREADABLE => 3,
        VIOLATION => 2,
        UNDECIDED => 1,
        _ => 0,
    };
    if rank(b) > rank(a) { b } else { a }
}

/// Certificates for histories smaller than this are checked by one thread.
const WORTH_THREADS: usize = 20_000;

/// How to judge, as the command line has it.
struct Court<'a> {
    args: &'a CheckArgs,
    selection: Selection,
    jobs: usize,
    /// How many histories are being judged.
    at_work: AtomicUsize,
}

impl<'a> Court<'a> {
    fn new(args: &'a CheckArgs) -> Result<Self, CliError> {
        if let Some(id) = args.model.iter().find(|id| consistory_spec::NAMED.contains(&id.as_str()))
        {
            return Err(CliError::with_hint(
                format!("`{id}` is a model of objects, and others that are named are not"),
                "judge by models of objects, or by models of registers",
            ));
        }
        let selection = select(&args.model)?;
        create_folders(args)?;
        Ok(Court { args, selection, jobs: args.jobs.count(), at_work: AtomicUsize::new(0) })
    }

    fn judge(&self, source: &str, number: usize, index: u64, history: &History) -> Done {
        let mut complaints = Vec::new();
        // Histories that are judged at the same time share the threads.
        let at_work = self.at_work.fetch_add(1, Ordering::Relaxed) + 1;
        let jobs = (self.jobs / at_work).max(1);
        let rulings = judge(history, &self.selection.models, &self.options(jobs));
        let rejections = self.rejections(history, &rulings, jobs);
        self.at_work.fetch_sub(1, Ordering::Relaxed);
        // Nothing is written about a history that a named model does not apply to.
        let named = self.selection.models.iter().zip(&rulings).take(self.selection.named);
        for (model, ruling) in named {
            if let Err(reason) = ruling {
                return does_not_apply(source, index, model.id(), reason);
            }
        }
        let mut results = Vec::with_capacity(rulings.len());
        let mut refused = None;
        for ((model, ruling), rejection) in
            self.selection.models.iter().zip(rulings).zip(rejections)
        {
            let mut ruling = match ruling {
                Ok(ruling) => ruling,
                // A group means every model that applies.
                Err(reason) => {
                    refused = Some(reason);
                    continue;
                }
            };
            if let Some(rejection) = rejection {
                complaints.push(CliError::with_hint(
                    format!(
                        "{source} [{index}]: the certificate for {} was rejected: {rejection}",
                        model.id()
                    ),
                    "this is a defect of consistory, not of your history; the verdict is withheld",
                ));
                ruling.judgement = Judgement::Undecided(Stopped::Rejected);
            }
            let place = Place { source, number, index, model: model.id() };
            results.push(self.outcome(history, ruling, place, &mut complaints));
        }
        if let (Some(reason), true) = (&refused, results.is_empty()) {
            let message = format!("{source} [{index}]: none of the models applies: {reason}");
            return Done::Unreadable(CliError::usage(message));
        }
        let satisfied: Vec<&str> = results
            .iter()
            .filter(|outcome| outcome.verdict() == Verdict::Consistent)
            .map(|outcome| outcome.model.as_str())
            .collect();
        let strongest: Option<Vec<String>> = self
            .selection
            .strongest
            .then(|| strongest(&satisfied).into_iter().map(ToString::to_string).collect());
        let (results, strongest) = (&results[..], strongest.as_deref());
        let report = Report { source, index, history, object: None, results, strongest };
        Done::of(&report, self.args.format, complaints)
    }

    /// Has the certificates checked, those of a large history side by side; says why one was rejected.
    fn rejections(
        &self,
        history: &History,
        rulings: &[Result<Ruling, DoesNotApply>],
        jobs: usize,
    ) -> Vec<Option<String>> {
        let rejection = |(model, ruling): (&Model, &Result<Ruling, DoesNotApply>)| {
            let Ruling { judgement, via, .. } = ruling.as_ref().ok()?;
            let certificate = judgement.certificate().filter(|_| !self.args.no_certify)?;
            accept(history, model, *via, judgement.verdict(), certificate).err()
        };
        let all = || self.selection.models.iter().zip(rulings);
        if jobs < 2 || history.len() < WORTH_THREADS {
            return all().map(rejection).collect();
        }
        let mut rejections = Vec::with_capacity(rulings.len());
        pipeline::run(
            jobs,
            |push| {
                for ruled in all() {
                    push(ruled, 0);
                }
            },
            rejection,
            |rejection| {
                rejections.push(rejection);
                true
            },
        );
        rejections
    }

    fn options(&self, jobs: usize) -> Options {
        let budget = Budget::unlimited().with_time(self.args.budget).with_memory(self.args.memory);
        Options { budget, jobs, engine: self.args.engine.into(), ..Options::default() }
    }

    /// Adds what goes to files or takes more judging: certificates, drawings, shrunk histories.
    fn outcome(
        &self,
        history: &History,
        ruling: Ruling,
        place: Place<'_>,
        complaints: &mut Vec<CliError>,
    ) -> Outcome {
        let Ruling { judgement, via, time } = ruling;
        let finding = Finding::Registers(judgement);
        let mut outcome = Outcome::new(place.model, finding, via, time);
        let mut attempt = || {
            outcome.write_files(history, self.args, place)?;
            if let Finding::Registers(judgement @ Judgement::Violation { .. }) = &outcome.finding
                && self.args.shrink
            {
                outcome.shrunk = Some(self.shrunk(history, judgement, place.model)?);
            }
            Ok(())
        };
        complaints.extend(attempt().err());
        outcome
    }

    /// Shrinks a violating history and writes it as text.
    fn shrunk(
        &self,
        history: &History,
        violation: &Judgement,
        model: &str,
    ) -> Result<String, CliError> {
        let models: Vec<_> =
            self.selection.models.iter().filter(|m| m.id() == model).cloned().collect();
        let options = self.options(1);
        let small = shrink(history, violation, |smaller| {
            options.budget.check()?;
            let ruling = judge(smaller, &models, &options).swap_remove(0);
            Ok(ruling.expect("a part of a history is judged by the same models").judgement)
        });
        let mut text = Vec::new();
        write_history(&small, Format::Hist, &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Refuses a history that a model says nothing about.
fn does_not_apply(source: &str, index: u64, model: &str, reason: &DoesNotApply) -> Done {
    let message = format!("{source} [{index}]: {model} does not apply: {reason}");
    Done::Unreadable(CliError::usage(message))
}

/// Makes a progress bar on a terminal, and a hidden one elsewhere.
pub(crate) fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {pos} judged, {per_sec}, {elapsed}")
        .expect("the template is well-formed");
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}
