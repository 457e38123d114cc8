//! Converts errors of the facade to Python exceptions, with their positions and hints.
//!
//! The classes are in `consistory/errors.py`; this module chooses the class of each error.

use consistory::Error;
use consistory_formats::{Diagnostics, ReadError, Style};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Returns the name of an error's class.
fn class(error: &Error) -> &'static str {
    match error {
        Error::At { error, .. } => class(error),
        Error::Read(_) | Error::Several { .. } | Error::NoSuchIndex { .. } => "ReadError",
        Error::File { .. } => "ReadError",
        Error::Text(_) => "DefinitionError",
        Error::NoModel | Error::UnknownModel { .. } | Error::WrongFamily { .. } => "ModelError",
        Error::UnknownObject { .. }
        | Error::UnknownMethod { .. }
        | Error::NoObject { .. }
        | Error::AmbiguousObject { .. }
        | Error::Misfit { .. } => "ObjectError",
        Error::DoesNotApply { .. }
        | Error::NoneApplies { .. }
        | Error::NoEffect { .. }
        | Error::NoTransactions { .. } => "DoesNotApply",
        Error::Internal(_) => "InternalError",
    }
}

/// Creates the exception of an error of the facade.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let mut places = None;
    let mut source = None;
    let mut index = None;
    let mut inner = error;
    while let Error::At { source: at, index: number, error } = inner {
        (source, index) = (Some(at.clone()), Some(*number));
        inner = error;
    }
    match inner {
        Error::Read(ReadError::Malformed(diagnostics)) | Error::Text(diagnostics) => {
            places = Some(diagnostics);
        }
        Error::Read(ReadError::Io { path, .. }) | Error::File { path, .. } => {
            source = source.or_else(|| Some(path.display().to_string()));
        }
        _ => {}
    }
    let message = match places {
        Some(diagnostics) => diagnostics
            .iter()
            .next()
            .map_or_else(|| error.to_string(), |diagnostic| diagnostic.message.clone()),
        None => error.to_string(),
    };
    let hint = places
        .and_then(|diagnostics| diagnostics.iter().find_map(|d| d.hint.clone()))
        .or_else(|| error.hint());
    let rendered = error.render(Style::Plain);
    let made = Made { class: class(error), message, hint, source, index, rendered };
    made.raise(py, places).unwrap_or_else(|failure| failure)
}

/// Creates the exception of the errors of a text that is not a history.
pub(crate) fn malformed(py: Python<'_>, class: &'static str, diagnostics: &Diagnostics) -> PyErr {
    let first = diagnostics.iter().next();
    let message = first.map_or_else(|| diagnostics.to_string(), |d| d.message.clone());
    let hint = diagnostics.iter().find_map(|d| d.hint.clone());
    let rendered = Some(diagnostics.render(Style::Plain));
    let made = Made { class, message, hint, source: None, index: None, rendered };
    made.raise(py, Some(diagnostics)).unwrap_or_else(|failure| failure)
}

/// Creates an exception of a class of `consistory.errors` without a position.
pub(crate) fn simple(
    py: Python<'_>,
    class: &'static str,
    message: impl Into<String>,
    hint: Option<&str>,
) -> PyErr {
    let hint = hint.map(str::to_owned);
    let made =
        Made { class, message: message.into(), hint, source: None, index: None, rendered: None };
    made.raise(py, None).unwrap_or_else(|failure| failure)
}

/// The parts of an exception.
struct Made {
    class: &'static str,
    message: String,
    hint: Option<String>,
    source: Option<String>,
    index: Option<u64>,
    rendered: Option<String>,
}

impl Made {
    fn raise(self, py: Python<'_>, diagnostics: Option<&Diagnostics>) -> PyResult<PyErr> {
        let class = py.import("consistory.errors")?.getattr(self.class)?;
        let parts = PyDict::new(py);
        let mut places = Vec::new();
        for diagnostic in diagnostics.into_iter().flat_map(Diagnostics::iter) {
            let place = PyDict::new(py);
            place.set_item("source", &*diagnostic.source)?;
            place.set_item("line", diagnostic.line)?;
            place.set_item("column", diagnostic.column)?;
            place.set_item("text", &diagnostic.text)?;
            place.set_item("message", &diagnostic.message)?;
            place.set_item("hint", diagnostic.hint.as_deref())?;
            places.push(place);
        }
        parts.set_item("hint", self.hint)?;
        parts.set_item("source", self.source)?;
        parts.set_item("index", self.index)?;
        parts.set_item("rendered", self.rendered)?;
        parts.set_item("places", places)?;
        Ok(PyErr::from_value(class.call((self.message,), Some(&parts))?))
    }
}
