//! The native part of the Python package `consistory`: the facade, exported by PyO3.
//!
//! This crate only converts: Python objects to histories, courts and specifications, and reports to
//! Python objects. The facade judges without Python's global lock. The parts that need not be fast
//! (the recorder, the fixtures, clusters) are written in Python, in `python/consistory`.
//!
//! Read next: `history.rs`, `court.rs`, `verdict.rs`.

mod columns;
mod contrast;
mod court;
mod error;
mod generate;
mod history;
mod litmus;
mod object;
mod protocol;
mod split;
mod value;
mod verdict;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::contrast::contrast;
    #[pymodule_export]
    use super::court::{Court, Reports};
    #[pymodule_export]
    use super::generate::{generate_calls, generate_memory, generate_transactions};
    #[pymodule_export]
    use super::history::{Cases, History, inputs, parse_texts, read, read_bytes};
    #[pymodule_export]
    use super::litmus::{contrast_litmus, outcomes};
    #[pymodule_export]
    use super::protocol::verify;
    #[pymodule_export]
    use super::split::{LineCutter, split_jsonl};
    #[pymodule_export]
    use super::verdict::{Report, Verdict};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let rows = consistory_models::table().iter();
        let table: Vec<(&str, String)> = rows.map(|row| (row.id, row.family.to_string())).collect();
        module.add("MODELS", table)
    }
}

/// Sets an item of a dictionary unless the value is `None`.
fn set_some<'py, V: IntoPyObject<'py>>(
    dict: &Bound<'py, pyo3::types::PyDict>,
    key: &str,
    value: Option<V>,
) -> PyResult<()> {
    match value {
        Some(value) => dict.set_item(key, value),
        None => Ok(()),
    }
}
