//! Which models were asked for.

use std::path::Path;
use std::sync::Arc;

use consistory_check::Model;
use consistory_models::{Definition, UnknownModel, catalogue, find};

use crate::error::CliError;

/// The models to judge by.
pub(crate) struct Selection {
    pub(crate) models: Vec<Model>,
    /// How many of them, from the first on, were asked for by name; the others are judged by only
    /// if they apply.
    pub(crate) named: usize,
    /// Whether the strongest satisfied are wanted.
    pub(crate) strongest: bool,
}

/// Finds the models that the command line names.
pub(crate) fn select(names: &[String]) -> Result<Selection, CliError> {
    let mut models: Vec<Model> = Vec::new();
    let mut add = |model: Model| {
        if !models.iter().any(|known| known.id() == model.id()) {
            models.push(model);
        }
    };
    let is_group = |name: &str| matches!(name, "all" | "strongest");
    for name in names.iter().filter(|name| !is_group(name)) {
        if is_path(name) {
            let definition = Arc::new(load(Path::new(name))?);
            add(Model::Own { id: name.as_str().into(), definition });
        } else {
            add(Model::Catalogued(find(name).map_err(unknown)?));
        }
    }
    let named = models.len();
    if names.iter().any(|name| is_group(name)) {
        for model in catalogue() {
            if !models.iter().any(|known| known.id() == model.id) {
                models.push(Model::Catalogued(model));
            }
        }
    }
    Ok(Selection { models, named, strongest: names.iter().any(|name| name == "strongest") })
}

/// Says which models there are instead.
pub(crate) fn unknown(error: UnknownModel) -> CliError {
    let hint = format!("{}; a path to a definition file has a slash or ends in .cat", error.hint);
    CliError::with_hint(error.to_string(), hint)
}

/// Tells a path from an id.
pub(crate) fn is_path(name: &str) -> bool {
    name.contains(['/', '\\']) || name.ends_with(".cat")
}

/// Reads a definition file; what it includes is found beside it, or in the catalogue.
pub(crate) fn load(path: &Path) -> Result<Definition, CliError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| CliError::file("read", path, error))
    };
    let text = read(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    consistory_models::load(&path.display().to_string(), &text, |name| {
        std::fs::read_to_string(folder.join(name)).ok()
    })
    .map_err(CliError::from)
}
