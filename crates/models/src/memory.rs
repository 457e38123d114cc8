//! Memory models: definitions over the events of litmus tests.
//!
//! The language is the same, with cat's names: `rf` and `co` instead of `wr` and `ww`, `fr`,
//! `po-loc`, `rmw`, `addr`, `data`, `ctrl` and kinds of fences. `po` does not contain initial
//! writes. Instead of the store order `co`, a definition may quantify over total orders of all
//! operations that start with the initial writes. `with mo from total-orders` declares one memory
//! order, which then contains `co`; `with view from thread-orders` declares one order per thread,
//! and `view(S)` is the union of the orders of the threads of the operations in `S`. A
//! read-modify-write is one operation, in both `R` and `W`.
//!
//! A [`MemoryModel`] does not apply to histories, so [`evaluate`](crate::evaluate()) does not take
//! one; `consistory-litmus` runs tests under it.

use std::sync::LazyLock;

use crate::read::read_definition;
use crate::resolve::Dialect;
use consistory_definition::Definition;
use consistory_definition::Program;
use consistory_diagnostic::Diagnostics;

/// A definition over the events of litmus tests.
#[derive(Clone, Debug)]
pub struct MemoryModel {
    definition: Definition,
    text: String,
}

impl MemoryModel {
    /// Returns the title: the string at the start, or the file's name.
    pub fn title(&self) -> &str {
        self.definition.title()
    }

    /// Returns the id, `@id`.
    pub fn id(&self) -> Option<&str> {
        self.definition.id()
    }

    /// Returns the short name, `@name`.
    pub fn name(&self) -> Option<&str> {
        self.definition.name()
    }

    /// Returns the meaning of the model in one sentence, `@meaning`.
    pub fn meaning(&self) -> Option<&str> {
        self.definition.meaning()
    }

    /// Returns the text of the definition.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the definition with its names resolved.
    pub fn program(&self) -> &Program {
        self.definition.program()
    }
}

/// Prelude of every definition of a memory model.
const PRELUDE: &str = include_str!("../models/litmus/prelude.cat");

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../models/litmus/", $name, ".cat")))),*]
    };
}

/// Ids of the models, from strong to weak, the store-atomic ones first.
const MODELS: [(&str, &str); 10] =
    embedded!["sc", "ibm370", "tso", "pso", "pslo", "rmo", "ntso", "npso", "nrmo", "sober"];

/// Files that the models include.
const LIBRARY: [(&str, &str); 2] = embedded!["memory-order", "views"];

/// herd's own files, which are empty here because the prelude contains their definitions.
const HERD: [&str; 6] =
    ["stdlib.cat", "cos.cat", "fences.cat", "filters.cat", "x86fences.cat", "bell.cat"];

static CATALOGUE: LazyLock<Vec<MemoryModel>> = LazyLock::new(|| {
    MODELS
        .into_iter()
        .map(|(id, text)| {
            load_memory_model(&format!("{id}.cat"), text, |_| None)
                .expect("the definitions of memory models are without errors, as tests show")
        })
        .collect()
});

/// Returns the built-in memory models.
pub fn memory_models() -> &'static [MemoryModel] {
    &CATALOGUE
}

/// Finds a memory model by its id.
pub fn find_memory_model(id: &str) -> Option<&'static MemoryModel> {
    memory_models().iter().find(|model| model.id() == Some(id))
}

/// Reads a user's memory model, in this language or in herd's cat.
///
/// `file` is the name in diagnostics. The built-in models can be included, as `"tso.cat"`, and so
/// can herd's own files; `include` returns the text of any other file.
pub fn load_memory_model(
    file: &str,
    text: &str,
    mut include: impl FnMut(&str) -> Option<String>,
) -> Result<MemoryModel, Diagnostics> {
    let dialect = Dialect::Litmus { prelude: PRELUDE };
    let definition = read_definition(dialect, file, text, |path| {
        let own = path.strip_suffix(".cat").and_then(|id| {
            MODELS.iter().chain(&LIBRARY).find(|&&(name, _)| name == id).map(|&(_, text)| text)
        });
        let of_herd = HERD.contains(&path).then_some("");
        include(path).or_else(|| own.or(of_herd).map(str::to_owned))
    })?;
    Ok(MemoryModel { definition, text: text.to_owned() })
}
