//! `consistory litmus run`: runs tests on the processor.

use std::fmt::Write as _;
use std::path::Path;

use consistory_litmus::{
    IsaError, IsaOptions, IsaTest, Language, Outcome, Outcomes, Test, frame_of_isa, isa_language,
    isa_outcomes, program_of_isa, read_isa_test, read_test,
};
use consistory_native::{Architecture, Histogram, Options, run, run_test};
use consistory_verdict::Budget;
use serde_json::{Map, Value, json};

use super::isa::{self, CatArgs, IsaModel, no_model};
use super::select::{Model, find};
use super::{find_tests, load_text};
use crate::args::{OutputFormat, RunArgs};
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION, report};
use crate::output::table;
use crate::{limits, output};

/// A model that the processor must satisfy, by the engine that runs it.
struct Promise {
    id: String,
    title: String,
    /// Model of programs of reads, writes and fences, if there is one.
    program: Option<Model>,
    /// Model in cat, if there is one.
    cat: Option<IsaModel>,
}

impl Promise {
    fn find(name: &str, args: &RunArgs) -> Result<Self, CliError> {
        let places = CatArgs { include: &args.include, bell: None, variant: &[] };
        let cat = isa::find(name, &places);
        match (find(name, None), cat) {
            (Ok(model), cat) => Ok(Promise {
                id: model.id.clone(),
                title: model.title(),
                program: Some(model),
                cat: cat.ok().flatten(),
            }),
            (Err(_), Ok(Some(model))) => Ok(Promise {
                id: model.id.clone(),
                title: model.id.clone(),
                program: None,
                cat: Some(model),
            }),
            (Err(error), Ok(None)) | (Err(_), Err(error)) => Err(error),
        }
    }

    /// Returns all outcomes of a test that the model allows, or why they are unknown.
    fn outcomes(&self, test: &Runnable, budget: &Budget) -> Result<Outcomes, String> {
        let program = self.program.as_ref().filter(|_| !test.is_frame);
        if let Some(model) = program {
            let all = model.semantics().outcomes(&test.test.program, budget);
            let all = all.map_err(|error| error.to_string())?;
            return Ok(all.into_iter().filter_map(|outcome| test.settled(outcome)).collect());
        }
        let (Some(model), Some(isa)) = (&self.cat, &test.isa) else {
            return Err("the model does not run such tests".to_owned());
        };
        let options = IsaOptions {
            unroll: 2,
            condition_only: false,
            count: false,
            keep_executions: false,
            budget: budget.clone(),
        };
        let found = isa_outcomes(isa, model.model(), &options).map_err(|error| match error {
            IsaError::Model(diagnostics) => diagnostics.to_string(),
            IsaError::Program(message) => message,
            IsaError::Stopped(stopped) => stopped.to_string(),
        })?;
        Ok(found.states.into_iter().map(|state| Outcome(state.into())).collect())
    }
}

/// A test in a form that this processor can run.
struct Runnable {
    test: Test,
    /// Original test of an instruction set, if there is one.
    isa: Option<IsaTest>,
    /// Whether the program has no instructions, because the instructions of the original test are
    /// run.
    is_frame: bool,
}

impl Runnable {
    /// Reads a test for these models.
    fn read(path: &Path, needs_executions: bool) -> Result<Self, CliError> {
        let text = load_text(path)?;
        let name = path.display().to_string();
        let language = isa_language(&text);
        if isa::has_programs(language) {
            match read_test(&name, &text) {
                Ok(test) if !needs_executions => {
                    return Ok(Runnable { test, isa: None, is_frame: false });
                }
                // Only the reader of instruction sets supports these tests.
                Ok(_) | Err(_) if language == Some(Language::X86) => {}
                Ok(test) => return Ok(Runnable { test, isa: None, is_frame: false }),
                Err(error) => return Err(error.into()),
            }
        }
        let why = |why: String| CliError::usage(format!("{name}: {why}"));
        let is_arm = language == Some(Language::AArch64);
        let is_here = is_arm == (Architecture::host() == Some(Architecture::Aarch64));
        let isa = read_isa_test(&name, &text)?;
        if !is_here && matches!(language, Some(Language::X86_64 | Language::AArch64)) {
            let language = isa.language.as_str();
            return Err(why(format!("this processor does not run tests of {language}")));
        }
        let test = if is_arm { frame_of_isa(&isa) } else { program_of_isa(&isa) };
        Ok(Runnable { test: test.map_err(why)?, isa: Some(isa), is_frame: is_arm })
    }

    fn run(&self, options: &Options) -> Result<Histogram, String> {
        let mut histogram = match &self.isa {
            Some(isa) if self.is_frame => run_test(isa, options),
            _ => run(&self.test.program, options),
        }
        .map_err(|error| error.to_string())?;
        let mut counts = std::collections::BTreeMap::new();
        for (outcome, count) in std::mem::take(&mut histogram.counts) {
            if let Some(outcome) = self.settled(outcome) {
                *counts.entry(outcome).or_insert(0) += count;
            }
        }
        histogram.counts = counts;
        Ok(histogram)
    }

    /// Returns the observed part of an outcome; `None` if the test excludes the outcome.
    fn settled(&self, outcome: Outcome) -> Option<Outcome> {
        let Some(isa) = &self.isa else { return Some(outcome) };
        let cut = outcome.0.iter().enumerate().map(|(at, &value)| isa.truncated(at, value));
        isa.seen(cut.collect()).map(|state| Outcome(state.into()))
    }
}

/// The observed outcomes of a test, and the outcomes that the models allow.
struct Seen<'m> {
    test: Test,
    histogram: Histogram,
    allowed: Vec<(&'m Promise, Result<Outcomes, String>)>,
}

/// Runs each test on this processor and prints how often each outcome was observed.
pub(crate) fn run_tests(args: &RunArgs) -> Result<u8, CliError> {
    let find_all = |names: &[String]| -> Result<Vec<Promise>, CliError> {
        names.iter().map(|name| Promise::find(name, args)).collect()
    };
    let named = find_all(&args.model)?;
    let usual = find_all(&[promise().to_owned()])?;
    let arm = find_all(&["aarch64".to_owned()])?;
    let mut worst = OK;
    for (at, path) in find_tests(&args.paths)?.iter().enumerate() {
        let seen = match see(path, [&named, &usual, &arm], args) {
            Ok(seen) => seen,
            Err(error) => {
                report(&error);
                worst = UNREADABLE;
                continue;
            }
        };
        let gap = if at > 0 && args.format == OutputFormat::Text { "\n" } else { "" };
        let text = match args.format {
            OutputFormat::Text => output::for_terminal(seen.text()),
            OutputFormat::Json => seen.json(path),
        };
        output::print(format!("{gap}{text}"))?;
        // An unreadable input outweighs a violation, which outweighs an unknown result.
        let code = seen.code();
        if worst == OK || code == VIOLATION && worst == UNDECIDED {
            worst = code;
        }
    }
    Ok(worst)
}

/// Returns the model that this processor must satisfy.
fn promise() -> &'static str {
    match Architecture::host() {
        Some(Architecture::X86_64) | None => "tso",
        Some(Architecture::Aarch64) => "rmo",
    }
}

/// Runs a test under the given models or, without any, under the default models for programs or for
/// tests of AArch64.
fn see<'m>(
    path: &Path,
    [named, usual, arm]: [&'m [Promise]; 3],
    args: &RunArgs,
) -> Result<Seen<'m>, CliError> {
    let needs_executions = named.iter().any(|model| model.program.is_none());
    let test = Runnable::read(path, needs_executions)?;
    let models = match (named.is_empty(), test.is_frame) {
        (false, _) => named,
        (true, false) => usual,
        (true, true) => arm,
    };
    let runs = |model: &Promise| {
        model.program.is_some() && !test.is_frame || model.cat.is_some() && test.isa.is_some()
    };
    if let Some(model) = models.iter().find(|model| !runs(model)) {
        return Err(no_model(&model.id, path));
    }
    let budget = limits::budget(args.budget);
    let allowed =
        models.iter().map(|model| (model, model.outcomes(&test, &budget.renewed()))).collect();
    let options = Options {
        runs: args.runs,
        seed: args.seed,
        budget: budget.renewed(),
        ..Options::default()
    };
    let histogram = test
        .run(&options)
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))?;
    Ok(Seen { test: test.test, histogram, allowed })
}

impl Seen<'_> {
    /// Returns the observed outcomes, without those that the test excludes.
    fn outcomes(&self) -> Outcomes {
        let all = self.histogram.counts.keys().cloned().collect();
        self.test.filtered(&all).cloned().collect()
    }

    fn count(&self, outcome: &Outcome) -> u64 {
        self.histogram.counts.get(outcome).copied().unwrap_or(0)
    }

    /// Returns the number of runs whose outcome a model forbids.
    fn forbidden(&self, allowed: &Result<Outcomes, String>) -> u64 {
        let Ok(allowed) = allowed else { return 0 };
        let seen = self.outcomes();
        seen.iter().filter(|o| !allowed.contains(o)).map(|o| self.count(o)).sum()
    }

    /// Returns the number of runs in which the proposition of the condition holds.
    fn holding(&self) -> Option<u64> {
        let proposition = &self.test.condition.as_ref()?.proposition;
        let holds = |outcome: &&Outcome| proposition.holds(&self.test.program, outcome);
        Some(self.outcomes().iter().filter(holds).map(|outcome| self.count(outcome)).sum())
    }

    fn code(&self) -> u8 {
        if self.allowed.iter().any(|(_, allowed)| self.forbidden(allowed) > 0) {
            VIOLATION
        } else if self.histogram.runs == 0
            || self.allowed.iter().any(|(_, allowed)| allowed.is_err())
        {
            // Without a run, nothing was observed.
            UNDECIDED
        } else {
            OK
        }
    }

    fn text(&self) -> String {
        let Seen { test, histogram, allowed } = self;
        let (runs, cores) = (histogram.runs, histogram.cores);
        let mut text = format!(
            "{}: {runs} runs on {cores} core{} of {}\n\n",
            test.name,
            if cores == 1 { "" } else { "s" },
            histogram.architecture.name()
        );
        let names = test.program.observed_names();
        let mut header: Vec<&str> = names.iter().map(String::as_str).collect();
        header.extend(["seen", "share"]);
        header.extend(allowed.iter().map(|(model, _)| model.title.as_str()));
        let proposition = test.condition.as_ref().map(|condition| &condition.proposition);
        if proposition.is_some() {
            header.push("condition");
        }
        let mut every = self.outcomes();
        for allowed in allowed.iter().filter_map(|(_, allowed)| allowed.as_ref().ok()) {
            every.extend(test.filtered(allowed).cloned());
        }
        let row = |outcome: &Outcome| {
            let mut row: Vec<String> = outcome.0.iter().map(ToString::to_string).collect();
            let count = self.count(outcome);
            row.push(count.to_string());
            row.push(format!("{:.2}%", 100.0 * count as f64 / runs.max(1) as f64));
            row.extend(allowed.iter().map(|(_, allowed)| {
                let word = match allowed {
                    Ok(allowed) if allowed.contains(outcome) => "allowed",
                    // An outcome that was not observed contradicts no model.
                    Ok(_) if count == 0 => "forbidden",
                    Ok(_) => "FORBIDDEN",
                    Err(_) => "?",
                };
                word.to_owned()
            }));
            if let Some(proposition) = proposition {
                let holds = proposition.holds(&test.program, outcome);
                row.push(if holds { "*" } else { "" }.to_owned());
            }
            row
        };
        text += &table(&header, &every.iter().map(row).collect::<Vec<_>>());
        text.push('\n');
        for (model, allowed) in allowed {
            let title = &model.title;
            let _ = match (allowed, self.forbidden(allowed)) {
                (Err(error), _) => writeln!(text, "{title}: undecided, {error}"),
                (Ok(_), 0) => writeln!(text, "{title} allows every observed outcome"),
                (Ok(_), count) => writeln!(text, "{title} FORBIDS the outcomes of {count} runs"),
            };
        }
        if let Some(count) = self.holding() {
            let often = often(count, runs);
            let _ = writeln!(text, "Observation {} {often} {count} {}", test.name, runs - count);
        }
        if let Some(stopped) = &histogram.stopped {
            let _ = writeln!(text, "fewer runs than requested: {stopped}");
        }
        let threads = test.program.threads.len();
        if threads > cores {
            let _ = writeln!(
                text,
                "{threads} threads share {cores} cores: outcomes that need all of them at once are unlikely to occur"
            );
        }
        text
    }

    /// Writes a line for each model.
    fn json(&self, path: &Path) -> String {
        let Seen { test, histogram, .. } = self;
        let names = test.program.observed_names();
        let object = |outcome: &Outcome| {
            let values = outcome.0.iter().map(|&value| json!(value));
            Value::Object(names.iter().cloned().zip(values).collect::<Map<_, _>>())
        };
        let seen = self.outcomes();
        let mut text = String::new();
        for (model, allowed) in &self.allowed {
            let outcomes: Vec<Value> = seen
                .iter()
                .map(|outcome| {
                    let allowed = allowed.as_ref().ok().map(|allowed| allowed.contains(outcome));
                    json!({
                        "outcome": object(outcome),
                        "count": self.count(outcome),
                        "allowed": allowed,
                    })
                })
                .collect();
            let unseen: Vec<Value> = allowed.as_ref().map_or_else(
                |_| Vec::new(),
                |all| test.filtered(all).filter(|o| !seen.contains(o)).map(object).collect(),
            );
            // Written field by field, so that the keys are in a readable order.
            let _ = write!(
                text,
                "{{\"test\":{},\"model\":{},\"architecture\":{},\"cores\":{},\"runs\":{},\
                 \"outcomes\":{},\"unseen\":{},\"forbidden\":{}",
                json!(test.name),
                json!(model.id),
                json!(histogram.architecture.name()),
                histogram.cores,
                histogram.runs,
                json!(outcomes),
                json!(unseen),
                self.forbidden(allowed),
            );
            if let Some(count) = self.holding() {
                let _ = write!(text, ",\"condition\":{}", json!(often(count, histogram.runs)));
            }
            if let Err(error) = allowed {
                let _ = write!(text, ",\"undecided\":{}", json!(error));
            }
            if let Some(stopped) = &histogram.stopped {
                let _ = write!(text, ",\"stopped\":{}", json!(stopped.to_string()));
            }
            let source = json!(path.display().to_string());
            let millis = histogram.elapsed.as_secs_f64() * 1e3;
            let _ = writeln!(text, ",\"source\":{source},\"millis\":{millis:.3}}}");
        }
        text
    }
}

/// Describes how often an outcome was observed, in herd's terms.
fn often(count: u64, runs: u64) -> &'static str {
    match count {
        0 => "Never",
        _ if count == runs => "Always",
        _ => "Sometimes",
    }
}
