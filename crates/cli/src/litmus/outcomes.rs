//! `consistory litmus outcomes`: every outcome of a test, or a table of many tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use consistory::is_path;
use consistory_litmus::operational::Explorer;
use consistory_litmus::{
    Execution, Outcome, Outcomes, OutcomesError, Program, Quantifier, Test, definition_witnesses,
    isa_language, read_test, witnesses, write_table,
};
use consistory_pages::{ModelResult, Witness, assignment, execution_scene, litmus_case};
use consistory_report::Case;
use consistory_scene::PictureFormat;
use consistory_verdict::Budget;
use serde_json::{Map, Value, json};

use super::isa::{self, IsaModel};
use super::select::{Kind, Model, select};
use super::{find_tests, load_text};
use crate::again::again;
use crate::args::{OutcomesArgs, OutcomesFormat, OutputFormat, Style};
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION, report};
use crate::limits;
use crate::output::{Output, for_terminal, refuse_input, table, write_file};
use crate::pages::Pages;
use crate::part::{PartEnd, placed, run_id};

/// The results of a test.
struct Ran {
    source: PathBuf,
    test: Test,
    /// Outcomes that each model allows, with the time in milliseconds.
    results: Vec<(Result<Outcomes, OutcomesError>, f64)>,
    /// For each model, an execution for each outcome, if requested.
    shown: Vec<BTreeMap<Outcome, Witness>>,
}

/// Prints the outcomes of each test under each model.
pub(crate) fn outcomes(args: &OutcomesArgs) -> Result<u8, CliError> {
    let paths = find_tests(&args.paths)?;
    let names = if args.model.is_empty() { vec![usual_model(&paths)?] } else { args.model.clone() };
    let chosen = Chosen::new(&names, args)?;
    let models = chosen.programs.as_deref().unwrap_or_default();
    let is_json = args.format == OutcomesFormat::Json;
    let part = args.part.of(if is_json { OutputFormat::Json } else { OutputFormat::Text })?;
    let limits = (args.budget, args.memory.memory, args.unroll, args.condition_only, args.check);
    let cat = (&args.include, &args.bell, &args.variant);
    let settings = (&names, args.style, args.witness, limits, cat, &paths);
    let run_name = run_id("outcomes", &settings);
    let tests: Vec<(usize, &PathBuf)> =
        paths.iter().enumerate().filter(|(at, _)| part.is_none_or(|p| p.has(*at as u64))).collect();
    let mut output = Output::open(None)?;
    let open = |path| Pages::open(path, "Litmus tests").map(|pages| pages.counting("threads"));
    if let Some(path) = &args.report {
        refuse_input(path, &args.paths)?;
    }
    let mut pages = args.report.as_deref().map(open).transpose()?;
    if let ([path], OutcomesFormat::Text) = (&paths[..], args.format) {
        let (text, code) = match run(path, &chosen, args)? {
            Done::Program(ran) => {
                if let Some(pages) = &mut pages {
                    add_page(pages, &ran, models)?;
                }
                (for_terminal(details(&ran, models, args)?), code(&ran, args))
            }
            Done::Isa(ran) => {
                let models = chosen.isa(path)?;
                if let Some(pages) = &mut pages {
                    ran.add_page(pages, models)?;
                }
                (for_terminal(ran.details(models, args)), ran.code(args))
            }
        };
        output.write_all(text.as_bytes()).map_err(CliError::output)?;
        output.flush().map_err(CliError::output)?;
        if let Some(pages) = pages {
            pages.finish()?;
        }
        return Ok(code);
    }
    let jobs = args.jobs.count();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let (mut worst, mut failure) = (OK, None);
    let (mut lines, mut errors) = (0, 0);
    consistory::pipeline::run(
        jobs,
        |push| {
            tests.iter().all(|test| push(*test, 1));
        },
        |(number, path)| (number, run(path, &chosen, args)),
        |(number, ran)| {
            let done = match ran {
                Ok(Done::Program(ran)) => {
                    worst = worst.max(code(&ran, args));
                    let added = pages.as_mut().map(|pages| add_page(pages, &ran, models));
                    added.unwrap_or(Ok(())).and_then(|()| match args.format {
                        OutcomesFormat::Json => {
                            lines += models.len() as u64;
                            write_json(&ran, number, models, args, &mut output)
                        }
                        OutcomesFormat::Text => {
                            rows.push(row(&ran));
                            write_details(&ran, models, args, &mut output)
                        }
                        OutcomesFormat::Herd => Ok(()),
                    })
                }
                Ok(Done::Isa(ran)) => {
                    worst = worst.max(ran.code(args));
                    let models = chosen.executions.as_deref().unwrap_or_default();
                    let added = pages.as_mut().map(|pages| ran.add_page(pages, models));
                    added.unwrap_or(Ok(())).and_then(|()| match args.format {
                        OutcomesFormat::Json => {
                            lines += models.len() as u64;
                            ran.write_json(number, models, args, &mut output)
                        }
                        OutcomesFormat::Text => {
                            rows.push(ran.row());
                            Ok(())
                        }
                        OutcomesFormat::Herd => ran.write_herd(&mut output),
                    })
                }
                Err(CliError::Closed) => Err(CliError::Closed),
                Err(error) => {
                    report(&error);
                    errors += 1;
                    // An input that could not be read outweighs every other result.
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
    if args.format == OutcomesFormat::Text {
        let titles: Vec<String> = match &chosen.programs {
            Some(models) => models.iter().map(Model::title).collect(),
            None => names.clone(),
        };
        let header: Vec<&str> =
            std::iter::once("test").chain(titles.iter().map(String::as_str)).collect();
        output.write_all(table(&header, &rows).as_bytes()).map_err(CliError::output)?;
    }
    if let Some(part) = part {
        let end = PartEnd { part, command: "outcomes", run: run_name, lines, errors, code: worst };
        output.write_all(end.line().as_bytes()).map_err(CliError::output)?;
    }
    output.flush().map_err(CliError::output)?;
    if let Some(pages) = pages {
        pages.finish()?;
    }
    Ok(worst)
}

/// Returns the model of the tests' architecture, if all tests have the same.
fn usual_model(paths: &[PathBuf]) -> Result<String, CliError> {
    let mut found = Vec::new();
    for path in paths {
        // Standard input can be read only once.
        let language = if path == Path::new("-") { None } else { isa_language(&load_text(path)?) };
        let model = language.and_then(isa::usual_model);
        if !found.contains(&model) {
            found.push(model);
        }
    }
    match found[..] {
        [Some(model)] => Ok(model.to_owned()),
        [] | [None] => Err(CliError::usage("--model is missing: these tests have no usual one")),
        _ => {
            let names: Vec<&str> = found.iter().map(|model| model.unwrap_or("none")).collect();
            Err(CliError::usage(format!(
                "--model is missing: the usual ones of these tests differ: {}",
                names.join(", ")
            )))
        }
    }
}

/// Adds a test to an interactive report.
fn add_page(pages: &mut Pages, ran: &Ran, models: &[Model]) -> Result<(), CliError> {
    let titles: Vec<String> = models.iter().map(Model::title).collect();
    let words: Vec<String> = ran
        .results
        .iter()
        .map(|(outcomes, _)| match outcomes {
            Err(_) => "undecided".to_owned(),
            Ok(outcomes) => verdict(&ran.test, outcomes).unwrap_or("no condition").to_owned(),
        })
        .collect();
    let results: Vec<ModelResult<'_>> = ran
        .results
        .iter()
        .zip(&ran.shown)
        .enumerate()
        .map(|(at, ((outcomes, _), witnesses))| ModelResult {
            title: titles[at].clone(),
            outcomes: outcomes.as_ref().map_err(ToString::to_string),
            witnesses,
            word: words[at].clone(),
        })
        .collect();
    let source = ran.source.display().to_string();
    let mut case: Case = litmus_case(&source, &ran.test, &results);
    case.recheck = again(&[&source]);
    let words = titles.iter().map(String::as_str).zip(words.iter().map(String::as_str));
    pages.add(ran.test.program.threads.len() as u64, words, &case).map_err(CliError::output)
}

/// The selected models, by the engine that runs them.
struct Chosen {
    /// Tables, machines and definitions, if every model is one of these.
    programs: Option<Vec<Model>>,
    /// Models that run on candidate executions, if every model is one of these.
    executions: Option<Vec<IsaModel>>,
    /// A model that does not run on candidate executions.
    missing: Option<String>,
}

impl Chosen {
    fn new(names: &[String], args: &OutcomesArgs) -> Result<Self, CliError> {
        let mut executions = Vec::new();
        let (mut missing, mut broken) = (None, None);
        for name in names {
            // Protocols and machines are not in cat.
            if is_path(name) && (name.ends_with(".m") || args.style == Some(Style::Operational)) {
                missing = Some(name.clone());
                continue;
            }
            match isa::find(name, &args.into()) {
                Ok(Some(model)) => executions.push(model),
                Ok(None) => missing = Some(name.clone()),
                Err(error) => {
                    missing = Some(name.clone());
                    broken = Some(error);
                }
            }
        }
        let executions = missing.is_none().then_some(executions);
        match select(names, args.style) {
            Ok(models) => Ok(Chosen { programs: Some(models), executions, missing }),
            Err(_) if executions.is_some() => Ok(Chosen { programs: None, executions, missing }),
            // If neither language fits, the errors of the larger language are shown.
            Err(error) => Err(broken.unwrap_or(error)),
        }
    }

    fn isa(&self, path: &Path) -> Result<&[IsaModel], CliError> {
        self.executions
            .as_deref()
            .ok_or_else(|| isa::no_model(self.missing.as_deref().unwrap_or("this"), path))
    }
}

/// A test that was run, by the engine that ran it.
enum Done {
    Program(Box<Ran>),
    Isa(Box<isa::IsaRan>),
}

fn run(path: &Path, chosen: &Chosen, args: &OutcomesArgs) -> Result<Done, CliError> {
    let text = load_text(path)?;
    let asks_for_programs = args.program
        || args.style.is_some_and(|style| style != Style::Axiomatic)
        || chosen.executions.is_none();
    let test = if isa::has_programs(isa_language(&text)) && args.format != OutcomesFormat::Herd {
        Some(read_test(&path.display().to_string(), &text))
    } else {
        None
    };
    match (test, &chosen.programs) {
        (Some(Ok(test)), Some(models)) => {
            if args.bell.is_some() || !args.variant.is_empty() {
                return Err(CliError::with_hint(
                    format!(
                        "--bell and --variant have no effect on {}: they are for models in cat",
                        path.display()
                    ),
                    "leave them out, or name a model in cat that is for such tests",
                ));
            }
            Ok(Done::Program(Box::new(run_program(path, test, models, args)?)))
        }
        (Some(Err(diagnostics)), _) if asks_for_programs => Err(diagnostics.into()),
        _ => {
            let models = chosen.isa(path)?;
            if let Some(style @ (Style::Operational | Style::Definition)) = args.style {
                return Err(CliError::with_hint(
                    format!("the {} style does not apply to {}", style.as_str(), path.display()),
                    "such tests run as candidate executions of models in cat".to_owned(),
                ));
            }
            Ok(Done::Isa(Box::new(isa::run(path, &text, models, args)?)))
        }
    }
}

fn run_program(
    path: &Path,
    test: Test,
    models: &[Model],
    args: &OutcomesArgs,
) -> Result<Ran, CliError> {
    let budget = limits::budget(args.budget).with_memory(args.memory.memory);
    let results = models
        .iter()
        .map(|model| {
            let start = Instant::now();
            let outcomes = model.semantics().outcomes(&test.program, &budget.renewed());
            (outcomes, start.elapsed().as_secs_f64() * 1e3)
        })
        .collect();
    let shown = if args.witness || args.drawing.draw.is_some() || args.report.is_some() {
        let shown = |model: &Model| show(&test.program, model, &budget.renewed());
        models.iter().map(shown).collect()
    } else {
        Vec::new()
    };
    Ok(Ran { source: path.to_owned(), test, results, shown })
}

/// Finds an execution for each outcome; empty if the budget does not suffice.
fn show(program: &Program, model: &Model, budget: &Budget) -> BTreeMap<Outcome, Witness> {
    let executions = |found: Result<BTreeMap<Outcome, Execution>, OutcomesError>| {
        let found = found.unwrap_or_default().into_iter();
        found.map(|(outcome, shown)| (outcome, Witness::Execution(shown))).collect()
    };
    match &model.kind {
        Kind::Table(table) => executions(witnesses(program, table, budget)),
        Kind::Definition(definition) => {
            executions(definition_witnesses(program, definition, budget))
        }
        Kind::Protocol(protocol) => {
            let runs = protocol.runs(program, budget).unwrap_or_default();
            runs.into_iter().map(|(outcome, rules)| (outcome, Witness::Run(rules))).collect()
        }
        Kind::Machine(machine) => {
            let runs = Explorer::new().outcomes(program, machine, budget).unwrap_or_default();
            let lines = |text: String| text.lines().map(str::to_owned).collect();
            runs.into_iter()
                .map(|(outcome, run)| (outcome, Witness::Run(lines(run.narrate(program, machine)))))
                .collect()
        }
    }
}

fn code(ran: &Ran, args: &OutcomesArgs) -> u8 {
    let fails = |(outcomes, _): &(Result<Outcomes, OutcomesError>, f64)| matches!(outcomes, Ok(outcomes) if ran.test.holds(outcomes) == Some(false));
    if ran.results.iter().any(|(outcomes, _)| outcomes.is_err()) {
        UNDECIDED
    } else if args.check && ran.results.iter().any(fails) {
        VIOLATION
    } else {
        OK
    }
}

/// Returns a word for the result of the condition.
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

/// Writes the details of one of several tests, if requested.
fn write_details(
    ran: &Ran,
    models: &[Model],
    args: &OutcomesArgs,
    output: &mut impl Write,
) -> Result<(), CliError> {
    if !args.witness && args.drawing.draw.is_none() && !args.program {
        return Ok(());
    }
    let text = for_terminal(details(ran, models, args)? + "\n");
    output.write_all(text.as_bytes()).map_err(CliError::output)
}

fn write_json(
    ran: &Ran,
    number: usize,
    models: &[Model],
    args: &OutcomesArgs,
    output: &mut impl Write,
) -> Result<(), CliError> {
    let names = ran.test.program.herd_names();
    let object = |outcome: &Outcome| {
        let pairs = names.iter().cloned().zip(outcome.0.iter().map(|&value| json!(value)));
        Value::Object(pairs.collect::<Map<String, Value>>())
    };
    for (at, (model, (outcomes, millis))) in models.iter().zip(&ran.results).enumerate() {
        // Written field by field, so that the keys are in a readable order.
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
                if args.witness {
                    let shown = |outcome: &Outcome| match ran.shown[at].get(outcome) {
                        Some(witness) => witness_json(&ran.test.program, witness),
                        None => Value::Null,
                    };
                    let all: Vec<Value> = ran.test.filtered(outcomes).map(shown).collect();
                    let _ = write!(line, ",\"witnesses\":{}", Value::Array(all));
                }
            }
            Err(error) => {
                let _ = write!(line, ",\"undecided\":{}", json!(error.to_string()));
            }
        }
        let source = json!(ran.source.display().to_string());
        let _ = write!(line, ",\"source\":{source},\"millis\":{:.3}}}", millis);
        let line = match args.part.part {
            Some(_) => placed(&line, &[number as u64, at as u64]),
            None => line + "\n",
        };
        output.write_all(line.as_bytes()).map_err(CliError::output)?;
    }
    if let Some(folder) = &args.drawing.draw {
        draw(ran, models, folder, args.drawing.format())?;
    }
    Ok(())
}

fn witness_json(program: &Program, witness: &Witness) -> Value {
    let execution = match witness {
        Witness::Run(lines) => return json!({ "run": lines }),
        Witness::Execution(execution) => execution,
    };
    let names = |events: &Vec<usize>| -> Vec<String> {
        events.iter().map(|&event| event_name(program, execution, event)).collect()
    };
    let reads = (0..execution.events.len()).filter(|&at| execution.events[at].read.is_some());
    let source = |read: usize| match execution.reads_from[read] {
        Some(write) => json!(event_name(program, execution, write)),
        None => Value::Null,
    };
    let sources = reads
        .map(|read| json!({ "read": event_name(program, execution, read), "from": source(read) }));
    json!({
        "reads_from": sources.collect::<Vec<_>>(),
        "coherence": execution.coherence.iter().map(names).collect::<Vec<_>>(),
        "orders": execution.orders.iter().map(names).collect::<Vec<_>>(),
    })
}

/// Writes the details of a single test.
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
    if args.program {
        text += &write_table(&test.program, None);
        text.push('\n');
    }
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
        for (at, (model, (outcomes, _))) in models.iter().zip(&ran.results).enumerate() {
            for outcome in outcomes.iter().flat_map(|outcomes| test.filtered(outcomes)) {
                let _ = writeln!(text, "\n{} allows {}:", model.title(), assignment(test, outcome));
                match ran.shown[at].get(outcome) {
                    Some(witness) => text += &witness_text(&test.program, witness),
                    None => text += "  (the budget did not suffice to show how)\n",
                }
            }
        }
    }
    if let Some(folder) = &args.drawing.draw {
        draw(ran, models, folder, args.drawing.format())?;
    }
    Ok(text)
}

/// Draws an execution for each outcome of each model that has executions.
fn draw(ran: &Ran, models: &[Model], folder: &Path, format: PictureFormat) -> Result<(), CliError> {
    std::fs::create_dir_all(folder).map_err(|error| CliError::file("create", folder, error))?;
    for (at, (model, (outcomes, _))) in models.iter().zip(&ran.results).enumerate() {
        for outcome in outcomes.iter().flat_map(|outcomes| ran.test.filtered(outcomes)) {
            let Some(Witness::Execution(execution)) = ran.shown[at].get(outcome) else { continue };
            let test = &ran.test;
            let title =
                format!("{} under {}: {}", test.name, model.title(), assignment(test, outcome));
            let scene = execution_scene(&test.program, title, execution);
            let values: Vec<String> = outcome.0.iter().map(ToString::to_string).collect();
            let values = values.join("-");
            let name = format!("{}-{}-{values}.{}", ran.test.name, model.id, format.extension());
            let path = folder.join(name.replace(['/', '\\'], "_"));
            write_file(&path, |out| out.write_all(format.draw(&scene).as_bytes()))?;
        }
    }
    Ok(())
}

/// Names an event, such as `P0:W x=1`.
fn event_name(program: &Program, execution: &Execution, event: usize) -> String {
    format!("P{}:{}", execution.events[event].thread, execution.show(program, event))
}

/// Describes an execution of an outcome.
fn witness_text(program: &Program, witness: &Witness) -> String {
    let mut text = String::new();
    let execution = match witness {
        Witness::Run(lines) => {
            for line in lines {
                let _ = writeln!(text, "  {line}");
            }
            return text;
        }
        Witness::Execution(execution) => execution,
    };
    let names = |events: &[usize]| {
        let all = events.iter().map(|&event| event_name(program, execution, event));
        all.collect::<Vec<_>>().join(", ")
    };
    let has_views = execution.orders.len() > 1;
    for (view, order) in execution.orders.iter().enumerate() {
        let who = if has_views { format!("view of P{view}") } else { "memory order".to_owned() };
        let _ = writeln!(text, "  {who}: {}", names(order));
    }
    if !execution.orders.is_empty() {
        return text;
    }
    // Without a total order of the events, it shows the sources of reads and the order of writes.
    for (read, event) in execution.events.iter().enumerate() {
        if event.read.is_some() {
            let from = match execution.reads_from[read] {
                Some(write) => event_name(program, execution, write),
                None => "the initial value".to_owned(),
            };
            let _ = writeln!(text, "  {} reads {from}", event_name(program, execution, read));
        }
    }
    for (location, writes) in program.locations.iter().zip(&execution.coherence) {
        if writes.len() > 1 {
            let _ = writeln!(
                text,
                "  {} is written by {}, in this order",
                location.name,
                names(writes)
            );
        }
    }
    text
}

impl Style {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Style::Axiomatic => "axiomatic",
            Style::Operational => "operational",
            Style::Definition => "definition",
        }
    }
}
