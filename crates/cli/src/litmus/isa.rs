//! Tests of instruction sets and C, run as candidate executions under models in cat.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use consistory::is_path;
use consistory_formats::read_text;
use consistory_litmus::{
    Asked, CatModel, CatSource, FinalState, IsaError, IsaEvent, IsaExecution, IsaOptions,
    IsaOutcomes, IsaTest, Language, Shown, find_isa_model, isa_model_ids, isa_outcomes,
    read_isa_test,
};
use consistory_pages::{IsaResult, isa_assignment, isa_case, isa_execution_scene};
use consistory_scene::{PictureFormat, Scene};
use serde_json::{Value, json};

use crate::again::again;
use crate::args::OutcomesArgs;
use crate::error::{CliError, OK, UNDECIDED, VIOLATION};
use crate::limits;
use crate::output::{table, write_file};
use crate::pages::Pages;
use crate::part::placed;

/// A model that runs on candidate executions.
pub(super) struct IsaModel {
    pub(super) id: String,
    model: Arc<CatModel>,
}

impl IsaModel {
    pub(super) fn model(&self) -> &Arc<CatModel> {
        &self.model
    }
}

/// Arguments that determine the files of a model in cat.
pub(super) struct CatArgs<'a> {
    pub(super) include: &'a [PathBuf],
    pub(super) bell: Option<&'a Path>,
    pub(super) variant: &'a [String],
}

impl<'a> From<&'a OutcomesArgs> for CatArgs<'a> {
    fn from(args: &'a OutcomesArgs) -> Self {
        CatArgs { include: &args.include, bell: args.bell.as_deref(), variant: &args.variant }
    }
}

/// Finds a model by its id or path; `None` if no model with this id runs on executions.
pub(super) fn find(name: &str, args: &CatArgs<'_>) -> Result<Option<IsaModel>, CliError> {
    if !is_path(name) {
        let id = name.to_lowercase();
        return Ok(find_isa_model(&id).map(|model| IsaModel { id, model }));
    }
    let path = Path::new(name);
    let source = |path: &Path| -> Result<CatSource, CliError> {
        let text = read_text(path).map_err(|error| CliError::file("read", path, error))?;
        Ok(CatSource { name: path.display().to_string(), text })
    };
    // The kernel's model comes with a bell file of the same name in its folder.
    let beside = path.with_extension("bell");
    let bell = match args.bell {
        Some(bell) => Some(source(bell)?),
        None if beside.is_file() => Some(source(&beside)?),
        None => None,
    };
    let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    let load = |name: &str| {
        let folders = std::iter::once(&folder).chain(args.include);
        folders.into_iter().find_map(|folder| read_text(&folder.join(name)).ok())
    };
    let model = CatModel::read(source(path)?, bell, args.variant, &load)?;
    Ok(Some(IsaModel { id: name.to_owned(), model: Arc::new(model) }))
}

/// Returns the model that is used for a language's tests unless another is named, as in herd.
pub(super) fn usual_model(language: Language) -> Option<&'static str> {
    Some(match language {
        Language::X86 | Language::X86_64 => "x86tso",
        Language::AArch64 => "aarch64",
        Language::RiscV => "riscv",
        Language::Ppc => "power",
        Language::C => "rc11",
        Language::LinuxC => "lkmm",
        Language::Lisa => return None,
    })
}

/// Returns the error for a model that does not run on executions.
pub(super) fn no_model(name: &str, test: &Path) -> CliError {
    let known: Vec<&str> = isa_model_ids().collect();
    CliError::with_hint(
        format!("the model `{name}` cannot run {}", test.display()),
        format!("models for such tests are {}, and .cat files", known.join(", ")),
    )
}

/// The results of a test.
pub(super) struct IsaRan {
    source: PathBuf,
    text: String,
    test: IsaTest,
    /// Outcomes that each model allows, with the time in milliseconds.
    results: Vec<(Result<IsaOutcomes, String>, f64)>,
}

/// Runs a test under models.
pub(super) fn run(
    path: &Path,
    text: &str,
    models: &[IsaModel],
    args: &OutcomesArgs,
) -> Result<IsaRan, CliError> {
    let mut test = read_isa_test(&path.display().to_string(), text)?;
    args.variant.iter().for_each(|name| test.apply_variant(name));
    let options = IsaOptions {
        unroll: args.unroll,
        condition_only: args.condition_only,
        count: args.format == crate::args::OutcomesFormat::Herd,
        keep_executions: args.witness || args.drawing.draw.is_some() || args.report.is_some(),
        budget: limits::budget(args.budget).with_memory(args.memory.memory),
    };
    let mut results = Vec::new();
    for model in models {
        let start = Instant::now();
        let options = IsaOptions { budget: options.budget.renewed(), ..options.clone() };
        let found = match isa_outcomes(&test, &model.model, &options) {
            Ok(found) => Ok(found),
            // A model of another architecture has names that the test's lacks.
            Err(IsaError::Model(_)) if find_isa_model(&model.id).is_some() => {
                return Err(no_model(&model.id, path));
            }
            Err(IsaError::Model(diagnostics)) => return Err(diagnostics.into()),
            Err(IsaError::Program(message)) => Err(message),
            Err(IsaError::Stopped(stopped)) => Err(stopped.to_string()),
        };
        results.push((found, start.elapsed().as_secs_f64() * 1e3));
    }
    let ran = IsaRan { source: path.to_owned(), text: text.to_owned(), test, results };
    if let Some(folder) = &args.drawing.draw {
        ran.draw(models, folder, args.drawing.format())?;
    }
    Ok(ran)
}

fn is_undefined(found: &IsaOutcomes) -> bool {
    found.flags.contains("*undef*")
}

fn verdict(test: &IsaTest, found: &IsaOutcomes) -> &'static str {
    match (test.quantifier, test.is_answered(found)) {
        _ if is_undefined(found) => "undefined",
        (Asked::Exists, true) => "allowed",
        (Asked::Exists, false) => "forbidden",
        (_, true) => "holds",
        (_, false) => "fails",
    }
}

impl IsaRan {
    pub(super) fn code(&self, args: &OutcomesArgs) -> u8 {
        let failed = |(found, _): &(Result<IsaOutcomes, String>, f64)| matches!(found, Ok(found) if is_undefined(found) || !self.test.is_answered(found));
        if self.results.iter().any(|(found, _)| found.is_err()) {
            UNDECIDED
        } else if args.check && self.results.iter().any(failed) {
            VIOLATION
        } else {
            OK
        }
    }

    pub(super) fn row(&self) -> Vec<String> {
        let cell = |(found, _): &(Result<IsaOutcomes, String>, f64)| match found {
            Ok(found) => verdict(&self.test, found).to_owned(),
            Err(message) => format!("undecided: {message}"),
        };
        std::iter::once(self.test.name.clone()).chain(self.results.iter().map(cell)).collect()
    }

    fn object(&self, state: &FinalState) -> String {
        let value = |shown: &Shown| match shown {
            Shown::Number(number) => number.to_string(),
            Shown::Text(text) => json!(text).to_string(),
        };
        let pairs = self.test.shown(state);
        let pairs = pairs.iter().map(|(name, shown)| format!("{}:{}", json!(name), value(shown)));
        format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
    }

    pub(super) fn write_json(
        &self,
        number: usize,
        models: &[IsaModel],
        args: &OutcomesArgs,
        output: &mut impl Write,
    ) -> Result<(), CliError> {
        for (at, (model, (found, millis))) in models.iter().zip(&self.results).enumerate() {
            let mut line = format!(
                "{{\"test\":{},\"model\":{},\"style\":\"executions\"",
                json!(self.test.name),
                json!(model.id)
            );
            match found {
                Ok(found) => {
                    let states: Vec<String> =
                        found.states.iter().map(|state| self.object(state)).collect();
                    let _ = write!(line, ",\"outcomes\":[{}]", states.join(","));
                    let _ = write!(line, ",\"condition\":{}", json!(verdict(&self.test, found)));
                    if args.witness {
                        let witness = |execution: &IsaExecution| {
                            let name = |event: &IsaEvent| match event.thread {
                                Some(thread) => format!("P{thread}:{}", event.label),
                                None => format!("init:{}", event.label),
                            };
                            let names: Vec<String> = execution.events.iter().map(name).collect();
                            json!({ "events": names, "edges": execution.edges })
                        };
                        let all: Vec<Value> = found.executions.values().map(witness).collect();
                        let _ = write!(line, ",\"witnesses\":{}", Value::Array(all));
                    }
                    if !found.flags.is_empty() {
                        let flags: Vec<Value> =
                            found.flags.iter().map(|flag| json!(flag)).collect();
                        let _ = write!(line, ",\"flags\":{}", Value::Array(flags));
                    }
                    if found.cut {
                        line += ",\"loop\":true";
                    }
                }
                Err(message) => {
                    let _ = write!(line, ",\"undecided\":{}", json!(message));
                }
            }
            let source = json!(self.source.display().to_string());
            line = format!("{line},\"source\":{source},\"millis\":{millis:.3}}}\n");
            if args.part.part.is_some() {
                line = placed(&line, &[number as u64, at as u64]);
            }
            output.write_all(line.as_bytes()).map_err(CliError::output)?;
        }
        Ok(())
    }

    /// Writes the same output as herd, for mcompare and other scripts.
    pub(super) fn write_herd(&self, output: &mut impl Write) -> Result<(), CliError> {
        let mut text = String::new();
        for (found, millis) in &self.results {
            let Ok(found) = found else { continue };
            let name = &self.test.name;
            let (kind, positive, negative) = match self.test.quantifier {
                Asked::Exists => ("Allowed", found.satisfying, found.violating),
                Asked::NotExists => ("Forbidden", found.violating, found.satisfying),
                Asked::Forall => ("Required", found.satisfying, found.violating),
            };
            let _ = writeln!(text, "Test {name} {kind}\nStates {}", found.states.len());
            for state in &found.states {
                for (name, shown) in self.test.shown(state) {
                    let is_cell = !name.contains(':') && !name.contains('[');
                    let _ = if is_cell {
                        write!(text, "[{name}]={shown}; ")
                    } else {
                        write!(text, "{name}={shown}; ")
                    };
                }
                text.truncate(text.trim_end_matches(' ').len());
                text.push('\n');
            }
            if found.cut {
                let _ = writeln!(text, "Loop");
            }
            let answer = match self.test.is_answered(found) {
                _ if is_undefined(found) => "Undef",
                true => "Ok",
                false => "No",
            };
            let _ =
                writeln!(text, "{answer}\nWitnesses\nPositive: {positive} Negative: {negative}");
            for flag in &found.flags {
                let _ = writeln!(text, "Flag {flag}");
            }
            let satisfied = found.states.iter().filter(|state| self.test.satisfies(state)).count();
            let often = match satisfied {
                0 => "Never",
                n if n == found.states.len() => "Always",
                _ => "Sometimes",
            };
            let _ = writeln!(text, "Condition {}", self.test.condition_text());
            let _ = writeln!(text, "Observation {name} {often} {positive} {negative}");
            let _ = writeln!(text, "Time {name} {:.2}\n", millis / 1e3);
        }
        output.write_all(text.as_bytes()).map_err(CliError::output)
    }

    /// Returns for each model and each outcome that it allows the scene of an execution.
    fn scenes<'r>(
        &'r self,
        models: &'r [IsaModel],
    ) -> impl Iterator<Item = (&'r IsaModel, &'r FinalState, Scene)> {
        models.iter().zip(&self.results).flat_map(move |(model, (found, _))| {
            found.iter().flat_map(|found| &found.executions).map(move |(state, execution)| {
                let shown = isa_assignment(&self.test, state);
                let title = format!("{} under {}: {shown}", self.test.name, model.id);
                (model, state, isa_execution_scene(title, execution))
            })
        })
    }

    /// Draws an execution for each outcome of each model.
    fn draw(
        &self,
        models: &[IsaModel],
        folder: &Path,
        format: PictureFormat,
    ) -> Result<(), CliError> {
        std::fs::create_dir_all(folder).map_err(|error| CliError::file("create", folder, error))?;
        for (model, state, scene) in self.scenes(models) {
            let values = self.test.shown(state);
            let values: Vec<String> = values.iter().map(|(_, shown)| shown.to_string()).collect();
            let name = format!("{}-{}-{}", self.test.name, model.id, values.join("-"));
            let name = format!("{}.{}", name.replace(['/', '\\'], "_"), format.extension());
            let path = folder.join(name);
            write_file(&path, |out| out.write_all(format.draw(&scene).as_bytes()))?;
        }
        Ok(())
    }

    /// Adds the test to an interactive report.
    pub(super) fn add_page(&self, pages: &mut Pages, models: &[IsaModel]) -> Result<(), CliError> {
        let results: Vec<IsaResult<'_>> = models
            .iter()
            .zip(&self.results)
            .map(|(model, (found, _))| IsaResult {
                title: &model.id,
                outcomes: found.as_ref().map_err(String::as_str),
                word: found.as_ref().map_or("undecided", |found| verdict(&self.test, found)),
            })
            .collect();
        let source = self.source.display().to_string();
        let mut case = isa_case(&source, &self.text, &self.test, &results);
        case.recheck = again(&[&source]);
        let words = results.iter().map(|result| (result.title, result.word));
        pages.add(self.test.thread_count() as u64, words, &case).map_err(CliError::output)
    }

    /// Describes the test with all its results.
    pub(super) fn details(&self, models: &[IsaModel], args: &OutcomesArgs) -> String {
        let test = &self.test;
        let mut every = std::collections::BTreeSet::new();
        for (found, _) in &self.results {
            every.extend(found.iter().flat_map(|found| found.states.iter()));
        }
        let mut header: Vec<&str> = test.observed_names().collect();
        header.extend(models.iter().map(|model| model.id.as_str()));
        header.push("condition");
        let rows: Vec<Vec<String>> = every
            .iter()
            .map(|state| {
                let mut row: Vec<String> =
                    test.shown(state).iter().map(|(_, shown)| shown.to_string()).collect();
                row.extend(self.results.iter().map(|(found, _)| {
                    let mark = match found {
                        Ok(found) if found.states.contains(*state) => "yes",
                        Ok(_) => "-",
                        Err(_) => "?",
                    };
                    mark.to_owned()
                }));
                row.push(if test.satisfies(state) { "*" } else { "" }.to_owned());
                row
            })
            .collect();
        let mut text = format!("{}\n\n{}\n", test.name, table(&header, &rows));
        for (model, (found, _)) in models.iter().zip(&self.results) {
            let _ = match found {
                Ok(found) => {
                    let count = found.states.len();
                    let plural = if count == 1 { "" } else { "s" };
                    let mut notes = String::new();
                    for flag in found.flags.iter().filter(|flag| *flag != "*undef*") {
                        let _ = write!(notes, ", flag {flag}");
                    }
                    if found.cut {
                        notes += ", loops were cut at the bound (--unroll)";
                    }
                    let verdict = verdict(test, found);
                    writeln!(text, "{}: {count} outcome{plural}, {verdict}{notes}", model.id)
                }
                Err(message) => writeln!(text, "{}: undecided, {message}", model.id),
            };
        }
        if args.witness {
            for (model, state, scene) in self.scenes(models) {
                let shown = isa_assignment(test, state);
                let drawn = PictureFormat::Text.draw(&Scene { title: String::new(), ..scene });
                let _ = write!(text, "\n{} allows {shown}:\n{drawn}", model.id);
            }
        }
        text
    }
}

/// Checks whether tests of a language can also be read for tables, machines and definitions.
pub(super) fn has_programs(language: Option<Language>) -> bool {
    matches!(language, None | Some(Language::X86 | Language::Lisa))
}
