//! `consistory models`: the catalogue and its lattice.

use std::path::Path;

use consistory::{Model, is_path, load_definition};
use consistory_atlas::{Bounds, ScanOptions, survey};
use consistory_models::{
    catalogue, find, find_level, find_memory_model, lattice, lattice_dot, lattice_text, levels,
    memory_models,
};
use consistory_pages::{lattice_scene, survey_case};
use consistory_report::ReportWriter;
use consistory_scene::lattice_view;
use consistory_spec::{NAMED, ObjectModel, object_model_implies};

use crate::args::{LatticeFormat, ModelsArgs, ModelsCommand};
use crate::error::{CliError, OK};
use crate::output;
use crate::output::table;
use consistory_formats::read_text;

/// Lists the catalogue, shows a definition, or draws the lattice.
pub(crate) fn models(args: &ModelsArgs) -> Result<u8, CliError> {
    let text = match &args.command {
        None => output::for_terminal(list()),
        Some(ModelsCommand::Show { model }) => show(model)?,
        Some(ModelsCommand::Lattice { format: LatticeFormat::Text }) => {
            output::for_terminal(lattice_text())
        }
        Some(ModelsCommand::Lattice { format: LatticeFormat::Dot }) => lattice_dot(),
        Some(ModelsCommand::Lattice { format: LatticeFormat::Svg }) => svg(),
        Some(ModelsCommand::Lattice { format: LatticeFormat::Html }) => html()?,
    };
    output::print(text)?;
    Ok(OK)
}

fn list() -> String {
    let rows: Vec<Vec<String>> = catalogue()
        .iter()
        .map(|model| vec![model.id.to_owned(), model.title.clone(), model.source.clone()])
        .collect();
    let mut text = "Models of registers, for `check` and `contrast`\n".to_owned();
    text += &table(&["id", "model", "source"], &rows);
    let rows: Vec<Vec<String>> = levels()
        .iter()
        .map(|level| vec![level.id.to_owned(), level.title.clone(), level.source.clone()])
        .collect();
    text += "\nIsolation levels of transactions, for `check` and `contrast`, each with `--order`\n";
    text += &table(&["id", "level", "source"], &rows);
    let rows: Vec<Vec<String>> = NAMED
        .iter()
        .filter_map(|id| ObjectModel::named(id))
        .map(|model| vec![model.id.to_string(), axioms(&model)])
        .collect();
    text += "\nModels of objects, for `check --object` (linearizability also for `watch`)\n";
    text += &table(&["id", "additional axioms"], &rows);
    let rows: Vec<Vec<String>> = memory_models()
        .iter()
        .map(|model| vec![model.id().unwrap_or_default().to_owned(), model.title().to_owned()])
        .collect();
    text += "\nMemory models, for `litmus`\n";
    text += &table(&["id", "model"], &rows);
    text += "\n`consistory models show ID` prints a definition (`litmus:ID` if models of two kinds \
             have the id), `consistory models lattice` what implies what.\n";
    text
}

/// Lists the axioms of a model of objects.
fn axioms(model: &ObjectModel) -> String {
    let shown: Vec<String> = model.axioms.iter().map(ToString::to_string).collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join("; ") }
}

/// Describes a model of objects.
fn show_object_model(model: &ObjectModel) -> String {
    let id = &model.id;
    let ids = |is_it: &dyn Fn(&str) -> bool| {
        let others: Vec<&str> =
            NAMED.into_iter().filter(|other| *other != *id && is_it(other)).collect();
        if others.is_empty() { "nothing".to_owned() } else { others.join(", ") }
    };
    format!(
        "{id}: a model of objects\n\n\
         There are a total order lin of the calls and a relation vis, what each call sees, with\n\
         \x20   Ret: each call returns what the object gives after the calls that it sees, in lin order\n\
         \x20   lin >= vis\n\
         \x20   lin >= hb\n\
         \x20   {}\n\n\
         where hb orders calls in time and po the calls of a session.\n\n\
         It implies {}; {} it.\n",
        if model.axioms.is_empty() { "and nothing else".to_owned() } else { axioms(model) },
        ids(&|other| object_model_implies(id, other)),
        match ids(&|other| object_model_implies(other, id)).as_str() {
            "nothing" => "nothing implies".to_owned(),
            one if !one.contains(',') => format!("{one} implies"),
            some => format!("{some} imply"),
        },
    )
}

fn show(model: &str) -> Result<String, CliError> {
    if is_path(model) {
        // Loading reports errors of the file; the text is shown unchanged.
        load_definition(Path::new(model))?;
        return read_text(Path::new(model))
            .map_err(|error| CliError::file("read", Path::new(model), error));
    }
    let memory_model = |id: &str| find_memory_model(id).map(|model| model.text().to_owned());
    if let Some(id) = model.strip_prefix("litmus:") {
        return memory_model(id).ok_or_else(|| {
            let known: Vec<&str> = memory_models().iter().filter_map(|m| m.id()).collect();
            let hint = format!("there are {}", known.join(", "));
            CliError::with_hint(format!("there is no memory model `{id}`"), hint)
        });
    }
    let model = &*model.to_ascii_lowercase();
    if let Some(level) = find_level(model) {
        return Ok(level.text.to_owned());
    }
    match find(model) {
        Ok(model) => Ok(model.text.to_owned()),
        Err(_) => {
            let object_model = ObjectModel::named(model).map(|model| show_object_model(&model));
            match object_model.or_else(|| memory_model(model)) {
                Some(text) => Ok(text),
                None => Err(Model::register(model).expect_err("no model has this id").into()),
            }
        }
    }
}

fn svg() -> String {
    let scene = lattice_scene(&lattice(), |_, _| String::new());
    consistory_scene::svg(&scene, &lattice_view(&scene))
}

/// Writes the lattice as an interactive report, with the histories that separate neighbouring
/// models.
fn html() -> Result<String, CliError> {
    let options = ScanOptions::default();
    let survey = survey(Bounds { plain: 5, extended: 3 }, &[], &options)
        .map_err(|stopped| CliError::usage(format!("the search stopped: {stopped}")))?;
    let write = || {
        let mut report = ReportWriter::new(Vec::new(), "Lattice of consistency models")?;
        let case = survey_case(&survey);
        report.add(case.rows.len() as u64, [], &case)?;
        report.finish(concat!("consistory ", env!("CARGO_PKG_VERSION")))
    };
    let bytes = write().map_err(CliError::output)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
