//! `consistory litmus outcomes`: every outcome of a test, or a table of many tests.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use consistory_draw::{ExecutionArrow, ExecutionGraph, ExecutionNode, execution_svg, table};
use consistory_litmus::operational::Explorer;
use consistory_litmus::{Execution, Outcome, Outcomes, OutcomesError, Quantifier, Test, witness};
use consistory_verdict::Budget;
use serde_json::{Map, Value, json};

use super::select::{Kind, Model, select};
use super::{find_tests, load_test};
use crate::args::{OutcomesArgs, OutputFormat, Style};
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, report};
use crate::pipeline;

/// What came of a test.
struct Ran {
    source: PathBuf,
    test: Test,
    /// For each model what it allows, and how long that took in milliseconds.
    results: Vec<(Result<Outcomes, OutcomesError>, f64)>,
}

/// Prints the outcomes of each test under each model.
pub(crate) fn outcomes(args: &OutcomesArgs) -> Result<u8, CliError> {
    let models = select(&args.model, args.style)?;
    let paths = find_tests(&args.paths)?;
    let mut output = BufWriter::new(io::stdout());
    if let ([path], OutputFormat::Text) = (&paths[..], args.format) {
        let ran = run(path, &models, args)?;
        let text = details(&ran, &models, args)?;
        output.write_all(text.as_bytes()).map_err(CliError::output)?;
        output.flush().map_err(CliError::output)?;
        return Ok(code(&ran));
    }
    let jobs = args.jobs.map_or_else(default_jobs, usize::from);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let (mut worst, mut failure) = (OK, None);
    pipeline::run(
        jobs,
        |push| {
            paths.iter().all(|path| push(path, 1));
        },
        |path| run(path, &models, args),
        |ran| {
            let done = match ran {
                Ok(ran) => {
                    worst = worst.max(code(&ran));
                    match args.format {
                        OutputFormat::Json => write_json(&ran, &models, &mut output),
                        OutputFormat::Text => {
                            rows.push(row(&ran));
                            Ok(())
                        }
                    }
                }
                Err(CliError::Closed) => Err(CliError::Closed),
                Err(error) => {
                    report(&error);
                    // Nothing else is more important than an input that could not be read.
                    worst = UNREADABLE;
                    Ok(())
                }
            };
            failure = done.err();
            failure.is_none()
        },
    );
    if let Some(failure) = failure {
        return Err(failure);
    }
    if args.format == OutputFormat::Text {
        let titles: Vec<String> = models.iter().map(Model::title).collect();
        let header: Vec<&str> =
            std::iter::once("test").chain(titles.iter().map(String::as_str)).collect();
        output.write_all(table(&header, &rows).as_bytes()).map_err(CliError::output)?;
    }
    output.flush().map_err(CliError::output)?;
    Ok(worst)
}

pub(super) fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn run(path: &Path, models: &[Model], args: &OutcomesArgs) -> Result<Ran, CliError> {
    let test = load_test(path)?;
    let budget = Budget::unlimited().with_time(args.budget);
    let results = models
        .iter()
        .map(|model| {
            let start = Instant::now();
            let outcomes = model.semantics().outcomes(&test.program, &budget.renewed());
            (outcomes, start.elapsed().as_secs_f64() * 1e3)
        })
        .collect();
    Ok(Ran { source: path.to_owned(), test, results })
}

fn code(ran: &Ran) -> u8 {
    if ran.results.iter().any(|(outcomes, _)| outcomes.is_err()) { UNDECIDED } else { OK }
}

/// Says in a word what comes of the condition.
fn verdict(test: &Test, outcomes: &Outcomes) -> Option<&'static str> {
    let quantifier = test.condition.as_ref()?.quantifier;
    Some(match (quantifier, test.holds(outcomes)?) {
        (Quantifier::Exists, true) => "allowed",
        (Quantifier::Exists, false) => "forbidden",
        (_, true) => "holds",
        (_, false) => "fails",
    })
}

fn row(ran: &Ran) -> Vec<String> {
    let cell = |(outcomes, _): &(Result<Outcomes, OutcomesError>, f64)| match outcomes {
        Err(error) => format!("undecided: {error}"),
        Ok(outcomes) => verdict(&ran.test, outcomes).map_or_else(
            || format!("{} outcomes", ran.test.filtered(outcomes).count()),
            str::to_owned,
        ),
    };
    std::iter::once(ran.test.name.clone()).chain(ran.results.iter().map(cell)).collect()
}

fn write_json(ran: &Ran, models: &[Model], output: &mut impl Write) -> Result<(), CliError> {
    let names = ran.test.program.observed_names();
    let object = |outcome: &Outcome| {
        let pairs = names.iter().cloned().zip(outcome.0.iter().map(|&value| json!(value)));
        Value::Object(pairs.collect::<Map<String, Value>>())
    };
    for (model, (outcomes, millis)) in models.iter().zip(&ran.results) {
        // Written piece by piece, so that keys come in an order that people can read.
        let mut line = format!(
            "{{\"test\":{},\"model\":{},\"style\":{}",
            json!(ran.test.name),
            json!(model.id),
            json!(model.style.as_str()),
        );
        match outcomes {
            Ok(outcomes) => {
                let all: Vec<Value> = ran.test.filtered(outcomes).map(object).collect();
                let _ = write!(line, ",\"outcomes\":{}", Value::Array(all));
                if let Some(verdict) = verdict(&ran.test, outcomes) {
                    let _ = write!(line, ",\"condition\":{}", json!(verdict));
                }
            }
            Err(error) => {
                let _ = write!(line, ",\"undecided\":{}", json!(error.to_string()));
            }
        }
        let source = json!(ran.source.display().to_string());
        let _ = write!(line, ",\"source\":{source},\"millis\":{:.3}}}", millis);
        writeln!(output, "{line}").map_err(CliError::output)?;
    }
    Ok(())
}

/// Shows all about one test.
fn details(ran: &Ran, models: &[Model], args: &OutcomesArgs) -> Result<String, CliError> {
    let test = &ran.test;
    let mut every = Outcomes::new();
    for (outcomes, _) in &ran.results {
        every.extend(outcomes.iter().flat_map(|outcomes| test.filtered(outcomes).cloned()));
    }
    let names = test.program.observed_names();
    let titles: Vec<String> = models.iter().map(Model::title).collect();
    let mut header: Vec<&str> = names.iter().map(String::as_str).collect();
    header.extend(titles.iter().map(String::as_str));
    let proposition = test.condition.as_ref().map(|condition| &condition.proposition);
    if proposition.is_some() {
        header.push("condition");
    }
    let rows: Vec<Vec<String>> = every
        .iter()
        .map(|outcome| {
            let mut row: Vec<String> = outcome.0.iter().map(ToString::to_string).collect();
            row.extend(ran.results.iter().map(|(outcomes, _)| {
                let mark = match outcomes {
                    Ok(outcomes) if outcomes.contains(outcome) => "yes",
                    Ok(_) => "-",
                    Err(_) => "?",
                };
                mark.to_owned()
            }));
            if let Some(proposition) = proposition {
                let holds = proposition.holds(&test.program, outcome);
                row.push(if holds { "*" } else { "" }.to_owned());
            }
            row
        })
        .collect();
    let mut text = format!("{}\n\n", test.name);
    text += &table(&header, &rows);
    text.push('\n');
    for (model, (outcomes, _)) in models.iter().zip(&ran.results) {
        let title = model.title();
        let _ = match outcomes {
            Ok(outcomes) => {
                let count = test.filtered(outcomes).count();
                let plural = if count == 1 { "" } else { "s" };
                let verdict = verdict(test, outcomes).map_or(String::new(), |v| format!(", {v}"));
                writeln!(text, "{title}: {count} outcome{plural}{verdict}")
            }
            Err(error) => writeln!(text, "{title}: undecided, {error}"),
        };
    }
    if args.witness {
        for (model, (outcomes, _)) in models.iter().zip(&ran.results) {
            for outcome in outcomes.iter().flat_map(|outcomes| test.filtered(outcomes)) {
                text.push('\n');
                text += &show_witness(test, model, outcome, args)?;
            }
        }
    }
    if let Some(folder) = &args.draw {
        draw(ran, models, args, folder)?;
    }
    Ok(text)
}

/// Draws an execution for each outcome of each model that has axioms.
fn draw(ran: &Ran, models: &[Model], args: &OutcomesArgs, folder: &Path) -> Result<(), CliError> {
    std::fs::create_dir_all(folder).map_err(|error| CliError::file("create", folder, error))?;
    let budget = Budget::unlimited().with_time(args.budget);
    for (model, (outcomes, _)) in models.iter().zip(&ran.results) {
        let Some(table) = model.table() else { continue };
        for outcome in outcomes.iter().flat_map(|outcomes| ran.test.filtered(outcomes)) {
            let execution = witness(&ran.test.program, table, outcome, &budget)
                .map_err(|error| CliError::usage(error.to_string()))?;
            if let Some(execution) = execution {
                let graph = graph(&ran.test, model, outcome, &execution);
                let values: Vec<String> = outcome.0.iter().map(ToString::to_string).collect();
                let name = format!("{}-{}-{}.svg", ran.test.name, model.id, values.join("-"));
                let path = folder.join(name.replace(['/', '\\'], "_"));
                std::fs::write(&path, execution_svg(&graph))
                    .map_err(|error| CliError::file("write", &path, error))?;
            }
        }
    }
    Ok(())
}

fn graph(test: &Test, model: &Model, outcome: &Outcome, execution: &Execution) -> ExecutionGraph {
    let place = |event: usize| {
        let thread = execution.events[event].thread;
        let order = execution.orders.get(thread).or(execution.orders.first())?;
        order.iter().position(|&other| other == event).map(|place| place + 1)
    };
    let arrow = |(from, to, relation): (usize, usize, &str)| ExecutionArrow {
        from,
        to,
        relation: relation.to_owned(),
    };
    let node = |event: usize| ExecutionNode {
        thread: execution.events[event].thread,
        label: execution.show(&test.program, event),
        place: place(event),
    };
    let note = match execution.orders.len() {
        1 => "The numbers are places in memory order.",
        _ => "The numbers are places in the view of the event's own thread.",
    };
    ExecutionGraph {
        title: format!("{} under {}: {}", test.name, model.title(), assignment(test, outcome)),
        threads: (0..test.program.threads.len()).map(|thread| format!("P{thread}")).collect(),
        events: (0..execution.events.len()).map(node).collect(),
        arrows: execution.relations().into_iter().map(arrow).collect(),
        notes: vec![note.to_owned()],
    }
}

/// Writes an outcome as `r1=0 r2=1`.
fn assignment(test: &Test, outcome: &Outcome) -> String {
    let names = test.program.observed_names();
    let pairs = names.iter().zip(&outcome.0).map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join(" ")
}

/// Shows how a model comes to an outcome.
fn show_witness(
    test: &Test,
    model: &Model,
    outcome: &Outcome,
    args: &OutcomesArgs,
) -> Result<String, CliError> {
    let budget = Budget::unlimited().with_time(args.budget);
    let mut text = format!("{} allows {}:\n", model.title(), assignment(test, outcome));
    match &model.kind {
        Kind::Table(table) => {
            let execution = witness(&test.program, table, outcome, &budget)
                .map_err(|error| CliError::usage(error.to_string()))?;
            if let Some(execution) = execution {
                for (view, order) in execution.orders.iter().enumerate() {
                    let steps: Vec<String> = order
                        .iter()
                        .map(|&event| {
                            let thread = execution.events[event].thread;
                            format!("P{thread}:{}", execution.show(&test.program, event))
                        })
                        .collect();
                    let who = match table.is_store_atomic() {
                        true => "memory order".to_owned(),
                        false => format!("view of P{view}"),
                    };
                    let _ = writeln!(text, "  {who}: {}", steps.join(", "));
                }
            }
        }
        Kind::Definition(_) => text += "  (a definition shows no execution)\n",
        Kind::Machine(machine) => {
            let runs = Explorer::new()
                .outcomes(&test.program, machine, &budget)
                .map_err(|error| CliError::usage(error.to_string()))?;
            if let Some((_, run)) = runs.iter().find(|(found, _)| found == outcome) {
                for line in run.narrate(&test.program, machine).lines() {
                    let _ = writeln!(text, "  {line}");
                }
            }
        }
    }
    Ok(text)
}

impl Style {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Style::Axiomatic => "axiomatic",
            Style::Operational => "operational",
            Style::Definition => "definition",
        }
    }
}
