//! Litmus tests under memory models.

use consistory::is_path;
use consistory::litmus::operational::Machine;
use consistory::litmus::{
    Asked, Bound as ProgramBound, CatModel, CatSource, ContrastOptions, IsaError, IsaOptions,
    Language, Outcome, Program, Quantifier, Redundant, Semantics, Shown, Table, Test, Wanted,
    contrast, find_isa_model, isa_language, isa_model_ids, isa_outcomes, parse_notation,
    read_isa_test, read_test, write_table,
};
use consistory_models::{MemoryModel, find_memory_model, load_memory_model};
use consistory_verdict::Budget;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::Path;
use std::sync::Arc;

use crate::court::seconds;
use crate::error::{malformed, simple};

/// Largest number of times that a backward jump is followed; the default of
/// `consistory litmus outcomes`.
const UNROLL: u8 = 2;

/// A memory model in one of its styles.
enum Model {
    Table(Table),
    Machine(Machine),
    Definition(Box<MemoryModel>),
}

impl Model {
    fn semantics(&self) -> &dyn Semantics {
        match self {
            Model::Table(table) => table,
            Model::Machine(machine) => machine,
            Model::Definition(model) => &**model,
        }
    }

    fn table(&self) -> Option<&Table> {
        match self {
            Model::Table(table) => Some(table),
            _ => None,
        }
    }
}

fn find(py: Python<'_>, name: &str, style: &str) -> PyResult<Model> {
    if is_path(name) {
        let path = Path::new(name);
        let text = std::fs::read_to_string(path)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let beside = |file: &str| std::fs::read_to_string(folder.join(file)).ok();
        let model = load_memory_model(name, &text, beside)
            .map_err(|errors| malformed(py, "DefinitionError", &errors))?;
        return Ok(Model::Definition(Box::new(model)));
    }
    let id = name.to_lowercase();
    let found = match style {
        "axiomatic" => Table::find(&id).map(Model::Table),
        "operational" => Machine::by_id(&id).map(Model::Machine),
        "definition" => {
            find_memory_model(&id).map(|model| Model::Definition(Box::new(model.clone())))
        }
        other => {
            let message = format!("no style is called {other:?}");
            let hint = Some("it is axiomatic, operational or definition");
            return Err(simple(py, "ModelError", message, hint));
        }
    };
    found.ok_or_else(|| {
        let known: Vec<String> = match style {
            "operational" => Machine::ALL.iter().map(|machine| machine.id.to_owned()).collect(),
            _ => Table::all().iter().map(|table| table.name.to_lowercase()).collect(),
        };
        let hint = format!("there are {}", known.join(", "));
        simple(py, "ModelError", format!("there is no memory model {name:?}"), Some(&hint))
    })
}

/// Finds a model that runs on candidate executions: by its id, or the path of a model in cat.
fn find_executions(py: Python<'_>, name: &str) -> PyResult<Option<Arc<CatModel>>> {
    if !is_path(name) {
        return Ok(find_isa_model(&name.to_lowercase()));
    }
    let path = Path::new(name);
    let source = |path: &Path| -> PyResult<CatSource> {
        let text = std::fs::read_to_string(path)?;
        Ok(CatSource { name: path.display().to_string(), text })
    };
    // The kernel's model has a bell file of the same name next to it.
    let beside = path.with_extension("bell");
    let bell = if beside.is_file() { Some(source(&beside)?) } else { None };
    let folder = path.parent().unwrap_or(Path::new("."));
    let load = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let model = CatModel::read(source(path)?, bell, &[], &load);
    let model = model.map_err(|errors| malformed(py, "DefinitionError", &errors))?;
    Ok(Some(Arc::new(model)))
}

/// Finds every final state of a test of an instruction set or of C.
fn execution_outcomes<'py>(
    py: Python<'py>,
    text: &str,
    model: &CatModel,
    budget: Budget,
    source: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let test = read_isa_test(source, text).map_err(|errors| malformed(py, "ReadError", &errors))?;
    let options = IsaOptions {
        unroll: UNROLL,
        condition_only: false,
        count: false,
        keep_executions: false,
        budget,
    };
    let undecided = |message: String| simple(py, "Undecided", format!("{source}: {message}"), None);
    let found =
        py.detach(|| isa_outcomes(&test, model, &options)).map_err(|error| match error {
            IsaError::Model(errors) => malformed(py, "DefinitionError", &errors),
            IsaError::Program(message) => undecided(message),
            IsaError::Stopped(stopped) => undecided(stopped.to_string()),
        })?;
    let mut states = Vec::new();
    for state in &found.states {
        let pairs = PyDict::new(py);
        for (name, shown) in test.shown(state) {
            match shown {
                Shown::Number(number) => pairs.set_item(name, number)?,
                Shown::Text(text) => pairs.set_item(name, text)?,
            }
        }
        states.push(pairs);
    }
    let satisfying = found.states.iter().filter(|state| test.satisfies(state)).count();
    let condition = match test.quantifier {
        _ if found.flags.contains("*undef*") => "undefined",
        Asked::Exists if satisfying > 0 => "allowed",
        Asked::Exists => "forbidden",
        Asked::NotExists if satisfying == 0 => "holds",
        Asked::Forall if satisfying == found.states.len() => "holds",
        Asked::NotExists | Asked::Forall => "fails",
    };
    let result = PyDict::new(py);
    result.set_item("test", &test.name)?;
    result.set_item("outcomes", states)?;
    result.set_item("condition", condition)?;
    result.set_item("program", text)?;
    Ok(result)
}

/// Reads a test: the text of a `.litmus` file, or a program such as `X=1; r1=Y // Y=1; r2=X`.
fn program(py: Python<'_>, text: &str, source: &str) -> PyResult<(Program, Option<Test>)> {
    if is_notation(text) {
        let program = parse_notation(text)
            .map_err(|error| simple(py, "ReadError", format!("{source}: {error}"), None))?;
        return Ok((program, None));
    }
    let test = read_test(source, text).map_err(|errors| malformed(py, "ReadError", &errors))?;
    Ok((test.program.clone(), Some(test)))
}

fn is_notation(text: &str) -> bool {
    text.contains("//") && !text.contains('{')
}

fn object<'py>(
    py: Python<'py>,
    names: &[String],
    outcome: &Outcome,
) -> PyResult<Bound<'py, PyDict>> {
    let pairs = PyDict::new(py);
    for (name, value) in names.iter().zip(outcome.0.iter()) {
        pairs.set_item(name, value)?;
    }
    Ok(pairs)
}

/// Finds every outcome of a test under a memory model.
#[pyfunction]
#[pyo3(signature = (text, model, style="axiomatic", budget=60.0, source="test"))]
pub(crate) fn outcomes<'py>(
    py: Python<'py>,
    text: &str,
    model: &str,
    style: &str,
    budget: f64,
    source: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let budget = Budget::unlimited().with_time(seconds(budget)?);
    let language = if is_notation(text) { None } else { isa_language(text) };
    // Tests of x86 and LISA are programs for tables and machines if the model is one of these.
    let has_program = matches!(language, None | Some(Language::X86 | Language::Lisa))
        && (language.is_none() || read_test(source, text).is_ok());
    if language.is_some()
        && style == "axiomatic"
        && !(has_program && find(py, model, style).is_ok())
        && let Some(model) = find_executions(py, model)?
    {
        return execution_outcomes(py, text, &model, budget, source);
    }
    if matches!(language, Some(language) if !matches!(language, Language::X86 | Language::Lisa)) {
        let message = format!("the model {model:?} in the style {style} cannot run {source}");
        let known: Vec<&str> = isa_model_ids().collect();
        let hint = format!("models for such tests are {}, and .cat files", known.join(", "));
        return Err(simple(py, "ModelError", message, Some(&hint)));
    }
    let (program, test) = program(py, text, source)?;
    let model = find(py, model, style)?;
    let found = py.detach(|| model.semantics().outcomes(&program, &budget));
    let found =
        found.map_err(|error| simple(py, "Undecided", format!("{source}: {error}"), None))?;
    let names = program.observed_names();
    let shown: PyResult<Vec<Bound<'py, PyDict>>> = match &test {
        Some(test) => test.filtered(&found).map(|outcome| object(py, &names, outcome)).collect(),
        None => found.iter().map(|outcome| object(py, &names, outcome)).collect(),
    };
    let condition = test.as_ref().and_then(|test| {
        let quantifier = test.condition.as_ref()?.quantifier;
        Some(match (quantifier, test.holds(&found)?) {
            (Quantifier::Exists, true) => "allowed",
            (Quantifier::Exists, false) => "forbidden",
            (_, true) => "holds",
            (_, false) => "fails",
        })
    });
    let result = PyDict::new(py);
    result.set_item("test", test.as_ref().map_or(source, |test| test.name.as_str()))?;
    result.set_item("outcomes", shown?)?;
    result.set_item("condition", condition)?;
    result.set_item("program", write_table(&program, None))?;
    Ok(result)
}

/// Finds the smallest programs that separate two memory models.
#[pyfunction]
#[pyo3(signature = (
    left, right, bound=4, style="axiomatic", all=false, fences=true, dependencies=false,
    budget=60.0, jobs=None
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn contrast_litmus<'py>(
    py: Python<'py>,
    left: &str,
    right: &str,
    bound: usize,
    style: &str,
    all: bool,
    fences: bool,
    dependencies: bool,
    budget: f64,
    jobs: Option<usize>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let models = [find(py, left, style)?, find(py, right, style)?];
    let knows = |model: &Model| model.table().is_some_and(Table::knows_dependencies);
    let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let options = ContrastOptions {
        bound: ProgramBound {
            accesses: bound,
            threads: bound,
            per_thread: bound,
            locations: bound,
            fences,
            dependencies: dependencies && models.iter().any(knows),
        },
        redundant: Redundant::Drop,
        wanted: if all { Wanted::Minimal } else { Wanted::First },
        budget: Budget::unlimited().with_time(seconds(budget)?),
        jobs: jobs.max(1),
    };
    let found = py.detach(|| contrast(models[0].semantics(), models[1].semantics(), &options));
    let found = found.map_err(|error| simple(py, "Undecided", error.to_string(), None))?;
    let mut differences = Vec::new();
    for difference in &found.differences {
        let names = difference.program.observed_names();
        let line = PyDict::new(py);
        line.set_item("program", write_table(&difference.program, None))?;
        line.set_item("accesses", difference.shape.accesses())?;
        for (side, only) in [("left", &difference.only_left), ("right", &difference.only_right)] {
            let shown: PyResult<Vec<Bound<'py, PyDict>>> =
                only.iter().map(|outcome| object(py, &names, outcome)).collect();
            line.set_item(format!("only_{side}"), shown?)?;
        }
        differences.push(line);
    }
    Ok(differences)
}
