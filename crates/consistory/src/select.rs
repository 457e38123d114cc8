//! Finds models by their ids and paths.

use std::path::Path;
use std::sync::Arc;

use consistory_models::{Definition, UnknownModel, catalogue, find, find_row, linearizability};
use consistory_registers::Model as RegisterModel;
use consistory_spec::{NAMED, ObjectModel};
use consistory_verdict::{Family, Level};

use crate::Error;

/// The meaning of a name: one model, or a group of models.
pub(crate) enum Choice {
    Register(RegisterModel),
    Object(ObjectModel),
    Isolation(Level),
    /// Every model that applies to a history.
    All,
    /// Every model that applies to a history, with the strongest satisfied ones reported.
    Strongest,
}

/// Finds the model or group with a name.
pub(crate) fn choose(name: &str) -> Result<Choice, Error> {
    if is_path(name) {
        return register_model(name).map(Choice::Register);
    }
    let id = name.to_ascii_lowercase();
    match id.as_str() {
        "all" => return Ok(Choice::All),
        "strongest" => return Ok(Choice::Strongest),
        _ => {}
    }
    if let Some(level) = Level::find(&id) {
        return Ok(Choice::Isolation(level));
    }
    match ObjectModel::named(&id) {
        Some(model) => Ok(Choice::Object(model)),
        None => register_model(name).map(Choice::Register),
    }
}

/// Finds a model of registers by its id or by the path of its definition file.
pub(crate) fn register_model(name: &str) -> Result<RegisterModel, Error> {
    if is_path(name) {
        let definition = Arc::new(load_definition(Path::new(name))?);
        return Ok(RegisterModel::Own { id: name.into(), definition });
    }
    if name.eq_ignore_ascii_case("linearizability") {
        return Ok(RegisterModel::Catalogued(linearizability()));
    }
    if let Ok(model) = find(&name.to_ascii_lowercase()) {
        return Ok(RegisterModel::Catalogued(model));
    }
    Err(match find_row(name) {
        Ok(row) => Error::WrongFamily { id: row.id.to_owned(), expected: Family::Registers },
        Err(UnknownModel { id, hint }) => {
            let hint = format!("{hint}; a path to a definition file has a slash or ends in .cat");
            Error::UnknownModel { id, hint }
        }
    })
}

/// Returns every model of registers of the catalogue, from weak to strong.
pub(crate) fn all_register_models() -> impl Iterator<Item = RegisterModel> {
    catalogue().iter().map(RegisterModel::Catalogued)
}

/// Returns every named model of objects, from strong to weak.
pub(crate) fn all_object_models() -> impl Iterator<Item = ObjectModel> {
    NAMED.iter().filter_map(|id| ObjectModel::named(id))
}

/// Returns whether a name is a path and not an id.
pub fn is_path(name: &str) -> bool {
    name.contains(['/', '\\']) || name.ends_with(".cat")
}

/// Reads a definition file; a file that it includes is found in the same folder, or among the built-in ones.
pub fn load_definition(path: &Path) -> Result<Definition, Error> {
    let text = consistory_formats::read_text(path).map_err(|error| Error::file(path, error))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let definition = consistory_models::load(&path.display().to_string(), &text, |name| {
        consistory_formats::read_text(&folder.join(name)).ok()
    })?;
    Ok(definition)
}

#[cfg(test)]
mod tests {
    use consistory_models::table;

    use super::*;

    #[test]
    fn the_table_and_the_named_models_of_objects_are_the_same() {
        let rows = table().iter().filter(|row| row.family == Family::Objects);
        assert_eq!(rows.map(|row| row.id).collect::<Vec<_>>(), NAMED);
    }

    #[test]
    fn ids_are_found_in_any_case() {
        assert!(matches!(choose("SC"), Ok(Choice::Register(model)) if model.id() == "sc"));
        assert!(matches!(choose("Linearizability"), Ok(Choice::Object(_))));
        assert!(matches!(choose("ALL"), Ok(Choice::All)));
        assert!(matches!(register_model("Linearizability"), Ok(RegisterModel::Catalogued(_))));
        assert!(matches!(register_model("return-value"), Err(Error::WrongFamily { .. })));
        assert!(matches!(choose("cvv"), Err(Error::UnknownModel { .. })));
    }
}
