//! Selects memory models.

use std::path::Path;

use consistory::is_path;
use consistory_litmus::operational::{Machine, read_machine};
use consistory_litmus::{Semantics, Table};
use consistory_models::{MemoryModel, find_memory_model, load_memory_model};

use super::protocol::Protocol;
use crate::args::Style;
use crate::error::CliError;
use consistory_formats::read_text;

/// A memory model in one of its styles.
pub(super) struct Model {
    /// Id in lower case, as selected.
    pub(super) id: String,
    pub(super) style: Style,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Table(Table),
    Machine(Machine),
    Definition(Box<MemoryModel>),
    Protocol(Box<Protocol>),
}

impl Model {
    pub(super) fn semantics(&self) -> &dyn Semantics {
        match &self.kind {
            Kind::Table(table) => table,
            Kind::Machine(machine) => machine,
            Kind::Definition(model) => &**model,
            Kind::Protocol(protocol) => &**protocol,
        }
    }

    /// Returns a readable name of the model.
    pub(super) fn title(&self) -> String {
        let name = self.semantics().name();
        match self.style {
            _ if matches!(self.kind, Kind::Protocol(_)) => name.to_owned(),
            Style::Axiomatic => name.to_owned(),
            Style::Operational => format!("{name} (operational)"),
            Style::Definition => format!("{name} (definition)"),
        }
    }

    /// Checks whether it is a user's definition.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.kind, Kind::Definition(_)) && is_path(&self.id)
    }

    /// Returns the protocol, if it is one.
    pub(super) fn protocol(&self) -> Option<&Protocol> {
        match &self.kind {
            Kind::Protocol(protocol) => Some(protocol),
            _ => None,
        }
    }

    pub(super) fn table(&self) -> Option<&Table> {
        match &self.kind {
            Kind::Table(table) => Some(table),
            Kind::Machine(_) | Kind::Definition(_) | Kind::Protocol(_) => None,
        }
    }
}

/// Finds the models that the command line names; `all` selects every model with a name.
pub(super) fn select(names: &[String], style: Option<Style>) -> Result<Vec<Model>, CliError> {
    let mut models: Vec<Model> = Vec::new();
    for name in names {
        let found = match name.as_str() {
            "all" => all_names(style.unwrap_or(Style::Axiomatic))
                .iter()
                .map(|id| find(id, style))
                .collect(),
            name => vec![find(name, style)],
        };
        for model in found {
            let model = model?;
            if !models.iter().any(|known| known.id == model.id) {
                models.push(model);
            }
        }
    }
    Ok(models)
}

/// Finds a model by its id, or reads it from a file: a definition, a protocol, or with the
/// operational style a machine. Without a style, the style of the model itself is used.
pub(super) fn find(name: &str, style: Option<Style>) -> Result<Model, CliError> {
    if is_path(name) {
        return read(name, style);
    }
    let style = style.unwrap_or(Style::Axiomatic);
    let id = name.to_lowercase();
    let kind = match style {
        Style::Axiomatic => Table::find(&id).map(Kind::Table),
        Style::Operational => Machine::by_id(&id).map(Kind::Machine),
        Style::Definition => {
            find_memory_model(&id).map(|model| Kind::Definition(Box::new(model.clone())))
        }
    };
    match kind {
        Some(kind) => Ok(Model { id, style, kind }),
        None => {
            let known = all_names(style).join(", ");
            let hint = match style {
                // What the short option `-m` takes from herd's `-model`.
                _ if name == "odel" => "herd's option -model is --model here".to_owned(),
                Style::Axiomatic => format!(
                    "there are {known}, and four digits such as 4044 for the pairs WW, WR, RW and \
                     RR: 0 free, 1 same address, 2 dependent, 3 either, 4 always"
                ),
                Style::Operational | Style::Definition => format!("there are {known}"),
            };
            Err(CliError::with_hint(format!("there is no memory model `{name}`"), hint))
        }
    }
}

fn all_names(style: Style) -> Vec<String> {
    match style {
        Style::Axiomatic | Style::Definition => {
            Table::all().iter().map(|table| table.name.to_lowercase()).collect()
        }
        Style::Operational => Machine::ALL.iter().map(|machine| machine.id.to_owned()).collect(),
    }
}

/// Reads a model from a file.
fn read(name: &str, style: Option<Style>) -> Result<Model, CliError> {
    let path = Path::new(name);
    let is_protocol = path.extension().is_some_and(|extension| extension == "m");
    let does_not_apply = |what: &str, only: &str| {
        let style = style.map_or("", Style::as_str);
        Err(CliError::with_hint(
            format!("the {style} style does not apply to {name}"),
            format!("{what} has the {only} style only"),
        ))
    };
    let text = || read_text(path).map_err(|error| CliError::file("read", path, error));
    let (style, kind) = match style {
        None | Some(Style::Operational) if is_protocol => {
            (Style::Operational, Kind::Protocol(Box::new(Protocol::read(name, &text()?)?)))
        }
        _ if is_protocol => return does_not_apply("a protocol", "operational"),
        Some(Style::Operational) => {
            (Style::Operational, Kind::Machine(read_machine(name, &text()?)?))
        }
        None | Some(Style::Definition) => {
            (Style::Definition, Kind::Definition(Box::new(load(path)?)))
        }
        Some(Style::Axiomatic) => return does_not_apply("a definition file", "definition"),
    };
    Ok(Model { id: name.to_owned(), style, kind })
}

/// Reads a definition file; an included file is found in the same folder, or among the built-in
/// ones.
fn load(path: &Path) -> Result<MemoryModel, CliError> {
    let text = read_text(path).map_err(|error| CliError::file("read", path, error))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    load_memory_model(&path.display().to_string(), &text, |name| read_text(&folder.join(name)).ok())
        .map_err(CliError::from)
}
