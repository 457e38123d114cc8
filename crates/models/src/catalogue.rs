//! The catalogue: the models of `models/`, read once.

use std::sync::LazyLock;

use consistory_definition::Definition;
use consistory_diagnostic::{Diagnostics, did_you_mean, nearest};

use crate::levels::LEVELS;
use crate::read::read_definition;
use crate::resolve::Dialect;

/// A model of the catalogue.
#[derive(Debug)]
pub struct Model {
    /// Id on the command line.
    pub id: &'static str,
    /// The short name that papers use.
    pub name: String,
    /// The full name.
    pub title: String,
    /// Publication that defines it.
    pub source: String,
    /// Meaning in one sentence.
    pub meaning: String,
    /// The text of its definition.
    pub text: &'static str,
    /// The definition.
    pub definition: Definition,
}

/// Error: no model of the catalogue has this id.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no model `{id}`")]
pub struct UnknownModel {
    /// The id.
    pub id: String,
    /// Similar ids, or the list of all ids.
    pub hint: String,
}

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../models/", $name, ".cat")))),*]
    };
}

pub(crate) use embedded;

/// The ids of the models, from weak to strong.
const MODELS: [(&str, &str); 11] =
    embedded!["cc", "ccv", "cm", "ccm", "wsc", "sc", "wccm", "wtso", "rmo", "pso", "tso"];

/// Files that models include, other than models.
const LIBRARY: [(&str, &str); 2] = embedded!["relations", "transactions"];

static CATALOGUE: LazyLock<Vec<Model>> =
    LazyLock::new(|| MODELS.into_iter().map(|(id, text)| model(id, text)).collect());

/// Reads a built-in model.
pub(crate) fn model(id: &'static str, text: &'static str) -> Model {
    let definition = load(&format!("{id}.cat"), text, |_| None)
        .expect("the definitions of the catalogue are without errors, as tests show");
    let own = |text: Option<&str>| text.unwrap_or_default().to_owned();
    Model {
        id,
        name: own(definition.name()),
        title: definition.title().to_owned(),
        source: own(definition.source()),
        meaning: own(definition.meaning()),
        text,
        definition,
    }
}

static LINEARIZABILITY: LazyLock<Model> =
    LazyLock::new(|| model("linearizability", include_str!("../models/linearizability.cat")));

/// Returns linearizability of reads and writes. It applies only to histories with times and is
/// therefore not among the models that are compared with each other.
pub fn linearizability() -> &'static Model {
    &LINEARIZABILITY
}

/// Returns all models of the catalogue.
pub fn catalogue() -> &'static [Model] {
    &CATALOGUE
}

/// Finds a model by its id.
pub fn find(id: &str) -> Result<&'static Model, UnknownModel> {
    catalogue().iter().find(|model| model.id == id).ok_or_else(|| {
        let ids = || MODELS.iter().map(|&(id, _)| id);
        let hint = did_you_mean(&nearest(id, ids()))
            .unwrap_or_else(|| format!("there are {}", ids().collect::<Vec<_>>().join(", ")));
        UnknownModel { id: id.to_owned(), hint }
    })
}

/// Reads a user's definition.
///
/// `file` is the name in diagnostics. The files of the catalogue can always be included, as
/// `"cc.cat"` and `"relations.cat"`; `include` returns the text of any other file.
pub fn load(
    file: &str,
    text: &str,
    mut include: impl FnMut(&str) -> Option<String>,
) -> Result<Definition, Diagnostics> {
    read_definition(Dialect::Histories, file, text, |path| {
        let of_catalogue = path.strip_suffix(".cat").and_then(|id| {
            MODELS
                .iter()
                .chain(&LIBRARY)
                .chain(&LEVELS)
                .find(|&&(name, _)| name == id)
                .map(|&(_, text)| text)
        });
        of_catalogue.map(str::to_owned).or_else(|| include(path))
    })
}
