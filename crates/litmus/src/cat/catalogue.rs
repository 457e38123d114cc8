//! The built-in models that are run on candidate executions.

use std::sync::{Arc, LazyLock};

use super::{CatModel, CatSource};

macro_rules! texts {
    ($(($id:literal, $file:literal)),* $(,)?) => {
        [$(($id, concat!($file, ".cat"), include_str!(concat!("../../models/litmus/", $file, ".cat")))),*]
    };
}

/// Ids, file names and texts.
const TEXTS: [(&str, &str, &str); 8] = texts![
    ("sc", "sc-executions"),
    ("x86tso", "x86tso"),
    ("aarch64", "aarch64"),
    ("riscv", "riscv"),
    ("riscv-tso", "riscv-tso"),
    ("power", "power"),
    ("rc11", "rc11"),
    ("lkmm", "lkmm"),
];

static MODELS: LazyLock<Vec<(&'static str, Arc<CatModel>)>> = LazyLock::new(|| {
    let read = |&(id, file, text): &(&'static str, &str, &str)| {
        let source = CatSource { name: file.to_owned(), text: text.to_owned() };
        let model = CatModel::read(source, None, &[], &|_| None);
        (id, Arc::new(model.expect("a model of our own has no errors: a test reads them all")))
    };
    TEXTS.iter().map(read).collect()
});

/// Returns the ids of the models of instruction sets and languages.
pub fn isa_model_ids() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|(id, ..)| *id)
}

/// Returns a built-in model by its id.
pub fn find_isa_model(id: &str) -> Option<Arc<CatModel>> {
    MODELS.iter().find(|(known, _)| *known == id).map(|(_, model)| model.clone())
}
