//! `consistory litmus run`: tests on the processor itself.

use std::fmt::Write as _;
use std::path::Path;

use consistory_litmus::{
    Language, Outcome, Outcomes, OutcomesError, Test, isa_language, program_of_isa, read_isa_test,
    read_test,
};
use consistory_native::{Architecture, Histogram, Options, run};
use serde_json::{Map, Value, json};

use super::select::{Model, find};
use super::{find_tests, load_text};
use crate::args::{OutputFormat, RunArgs};
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION, report};
use crate::output::table;
use crate::{limits, output};

/// What was seen of a test, and what the model allows.
struct Seen {
    test: Test,
    histogram: Histogram,
    allowed: Result<Outcomes, OutcomesError>,
}

/// Runs each test on this processor and prints how often each outcome was seen.
pub(crate) fn run_tests(args: &RunArgs) -> Result<u8, CliError> {
    let model = find(args.model.as_deref().unwrap_or(promise()), None)?;
    let mut worst = OK;
    for (at, path) in find_tests(&args.paths)?.iter().enumerate() {
        let seen = match run_test(path, &model, args) {
            Ok(seen) => seen,
            Err(error) => {
                report(&error);
                worst = UNREADABLE;
                continue;
            }
        };
        let gap = if at > 0 && args.format == OutputFormat::Text { "\n" } else { "" };
        let text = match args.format {
            OutputFormat::Text => output::for_terminal(seen.text(&model)),
            OutputFormat::Json => seen.json(&model, path),
        };
        output::print(format!("{gap}{text}"))?;
        // An unreadable input counts for more than a violation, that for more than no answer.
        let code = seen.code();
        if worst == OK || code == VIOLATION && worst == UNDECIDED {
            worst = code;
        }
    }
    Ok(worst)
}

/// The model that this processor is held to.
fn promise() -> &'static str {
    match Architecture::host() {
        Some(Architecture::X86_64) | None => "tso",
        Some(Architecture::Aarch64) => "rmo",
    }
}

/// Reads a test as this processor can run it.
fn runnable(path: &Path) -> Result<Test, CliError> {
    let text = load_text(path)?;
    let name = path.display().to_string();
    let language = isa_language(&text);
    if !matches!(language, Some(Language::X86_64 | Language::AArch64)) {
        return read_test(&name, &text).map_err(CliError::from);
    }
    let is_foreign = (language == Some(Language::AArch64))
        != (Architecture::host() == Some(Architecture::Aarch64));
    if is_foreign {
        let language = language.map_or("", Language::as_str);
        return Err(CliError::usage(format!(
            "{name}: this processor does not run tests of {language}"
        )));
    }
    let test = read_isa_test(&name, &text)?;
    program_of_isa(&test).map_err(|why| CliError::usage(format!("{name}: {why}")))
}

fn run_test(path: &Path, model: &Model, args: &RunArgs) -> Result<Seen, CliError> {
    let test = runnable(path)?;
    let budget = limits::budget(args.budget);
    let allowed = model.semantics().outcomes(&test.program, &budget);
    let options = Options {
        runs: args.runs,
        seed: args.seed,
        budget: budget.renewed(),
        ..Options::default()
    };
    let histogram = run(&test.program, &options)
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))?;
    Ok(Seen { test, histogram, allowed })
}

impl Seen {
    /// The outcomes that were seen, without those that the test leaves out.
    fn outcomes(&self) -> Outcomes {
        let all = self.histogram.counts.keys().cloned().collect();
        self.test.filtered(&all).cloned().collect()
    }

    fn count(&self, outcome: &Outcome) -> u64 {
        self.histogram.counts.get(outcome).copied().unwrap_or(0)
    }

    /// In how many runs the processor did what the model forbids.
    fn forbidden(&self) -> u64 {
        let Ok(allowed) = &self.allowed else { return 0 };
        let seen = self.outcomes();
        seen.iter().filter(|o| !allowed.contains(o)).map(|o| self.count(o)).sum()
    }

    /// In how many runs the condition's proposition held.
    fn holding(&self) -> Option<u64> {
        let proposition = &self.test.condition.as_ref()?.proposition;
        let holds = |outcome: &&Outcome| proposition.holds(&self.test.program, outcome);
        Some(self.outcomes().iter().filter(holds).map(|outcome| self.count(outcome)).sum())
    }

    fn code(&self) -> u8 {
        match &self.allowed {
            _ if self.forbidden() > 0 => VIOLATION,
            Err(_) => UNDECIDED,
            Ok(_) => OK,
        }
    }

    fn text(&self, model: &Model) -> String {
        let Seen { test, histogram, allowed } = self;
        let (runs, cores) = (histogram.runs, histogram.cores);
        let mut text = format!(
            "{}: {runs} runs on {cores} core{} of {}\n\n",
            test.name,
            if cores == 1 { "" } else { "s" },
            histogram.architecture.name()
        );
        let names = test.program.observed_names();
        let title = model.title();
        let mut header: Vec<&str> = names.iter().map(String::as_str).collect();
        header.extend(["seen", "share", &title]);
        let proposition = test.condition.as_ref().map(|condition| &condition.proposition);
        if proposition.is_some() {
            header.push("condition");
        }
        let mut every = self.outcomes();
        if let Ok(allowed) = allowed {
            every.extend(test.filtered(allowed).cloned());
        }
        let row = |outcome: &Outcome| {
            let mut row: Vec<String> = outcome.0.iter().map(ToString::to_string).collect();
            let count = self.count(outcome);
            row.push(count.to_string());
            row.push(format!("{:.2}%", 100.0 * count as f64 / runs.max(1) as f64));
            row.push(match allowed {
                Ok(allowed) if allowed.contains(outcome) => "allowed".to_owned(),
                Ok(_) => "FORBIDDEN".to_owned(),
                Err(_) => "?".to_owned(),
            });
            if let Some(proposition) = proposition {
                let holds = proposition.holds(&test.program, outcome);
                row.push(if holds { "*" } else { "" }.to_owned());
            }
            row
        };
        text += &table(&header, &every.iter().map(row).collect::<Vec<_>>());
        text.push('\n');
        let _ = match (allowed, self.forbidden()) {
            (Err(error), _) => writeln!(text, "{title}: undecided, {error}"),
            (Ok(_), 0) => writeln!(text, "{title} allows all that was seen"),
            (Ok(_), count) => writeln!(text, "{title} FORBIDS what was seen in {count} runs"),
        };
        if let Some(count) = self.holding() {
            let often = often(count, runs);
            let _ = writeln!(text, "Observation {} {often} {count} {}", test.name, runs - count);
        }
        if let Some(stopped) = &histogram.stopped {
            let _ = writeln!(text, "fewer runs than asked for: {stopped}");
        }
        let threads = test.program.threads.len();
        if threads > cores {
            let _ = writeln!(
                text,
                "{threads} threads share {cores} cores: what needs them all at once hardly shows"
            );
        }
        text
    }

    fn json(&self, model: &Model, path: &Path) -> String {
        let Seen { test, histogram, allowed } = self;
        let names = test.program.observed_names();
        let object = |outcome: &Outcome| {
            let values = outcome.0.iter().map(|&value| json!(value));
            Value::Object(names.iter().cloned().zip(values).collect::<Map<_, _>>())
        };
        let seen = self.outcomes();
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
        // Written piece by piece, so that keys come in an order that people can read.
        let mut line = format!(
            "{{\"test\":{},\"model\":{},\"architecture\":{},\"cores\":{},\"runs\":{},\
             \"outcomes\":{},\"unseen\":{},\"forbidden\":{}",
            json!(test.name),
            json!(model.id),
            json!(histogram.architecture.name()),
            histogram.cores,
            histogram.runs,
            json!(outcomes),
            json!(unseen),
            self.forbidden(),
        );
        if let Some(count) = self.holding() {
            let _ = write!(line, ",\"condition\":{}", json!(often(count, histogram.runs)));
        }
        if let Err(error) = allowed {
            let _ = write!(line, ",\"undecided\":{}", json!(error.to_string()));
        }
        if let Some(stopped) = &histogram.stopped {
            let _ = write!(line, ",\"stopped\":{}", json!(stopped.to_string()));
        }
        let source = json!(path.display().to_string());
        let millis = histogram.elapsed.as_secs_f64() * 1e3;
        let _ = writeln!(line, ",\"source\":{source},\"millis\":{millis:.3}}}");
        line
    }
}

/// How often something was seen, in herd's words.
fn often(count: u64, runs: u64) -> &'static str {
    match count {
        0 => "Never",
        _ if count == runs => "Always",
        _ => "Sometimes",
    }
}
