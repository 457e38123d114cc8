//! Histories: reading, parsing, and building from columns.

use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use consistory::{Case, Error, Format};
use consistory_formats::{WriteError, parse_str, read_from, write_history};
use consistory_history::History as Inner;
use consistory_models::{ClientOrder, EvaluateOptions, evaluate, find, find_level};
use consistory_verdict::Budget;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::columns::from_columns;
use crate::error::{raised, simple};

/// The recorded behaviour of a concurrent system: sessions, each a sequence of operations.
#[pyclass(frozen, module = "consistory", name = "History")]
pub(crate) struct History {
    pub(crate) inner: Arc<Inner>,
    pub(crate) source: Arc<str>,
    pub(crate) number: usize,
    /// Index of the history in its source, counted from 0.
    #[pyo3(get)]
    pub(crate) index: u64,
}

impl History {
    pub(crate) fn new(inner: Inner) -> Self {
        History { inner: Arc::new(inner), source: "history".into(), number: 0, index: 0 }
    }

    /// Returns the history with its source, ready to be judged.
    pub(crate) fn case(&self) -> Case {
        let History { inner, source, number, index } = self;
        Case {
            source: Arc::clone(source),
            number: *number,
            index: *index,
            history: Arc::clone(inner),
            reading: Duration::ZERO,
        }
    }
}

impl From<Case> for History {
    fn from(Case { source, number, index, history, .. }: Case) -> Self {
        History { inner: history, source, number, index }
    }
}

const FORMATS_HINT: &str = "the format of a file follows from its name if none is given";

/// Finds a format by its name.
pub(crate) fn format_of(py: Python<'_>, name: Option<&str>) -> PyResult<Option<Format>> {
    let Some(name) = name else { return Ok(None) };
    Format::from_str(name)
        .map(Some)
        .map_err(|error| simple(py, "FormatError", error.to_string(), Some(FORMATS_HINT)))
}

#[pymethods]
impl History {
    /// Parses one history, in the text notation, as JSON lines, or in the given format.
    #[staticmethod]
    #[pyo3(signature = (text, format=None, source="text"))]
    fn parse(py: Python<'_>, text: &str, format: Option<&str>, source: &str) -> PyResult<Self> {
        let mut histories = parse_texts(py, text, format, source)?;
        match histories.len() {
            1 => Ok(histories.remove(0)),
            histories => Err(raised(py, &Error::Several { histories })),
        }
    }

    /// Builds histories from columns that `consistory.tables` has prepared.
    #[staticmethod]
    fn _from_columns(
        py: Python<'_>,
        rows: usize,
        columns: &Bound<'_, PyDict>,
    ) -> PyResult<Vec<Self>> {
        from_columns(py, rows, columns)
    }

    /// The name that the source gives the history, or `None`.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.inner.name()
    }

    /// The source of the history, such as the path of its file.
    #[getter]
    fn source(&self) -> &str {
        &self.source
    }

    /// A digest of the history's content, the same as in verdicts of the command line.
    #[getter]
    fn digest(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.digest())
    }

    /// The names of the sessions.
    #[getter]
    fn sessions(&self) -> Vec<&str> {
        self.inner.sessions().map(|session| self.inner.session_name(session)).collect()
    }

    /// The names of the keys.
    #[getter]
    fn keys(&self) -> Vec<&str> {
        self.inner.keys().map(|key| self.inner.key_name(key)).collect()
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __eq__(&self, other: &History) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || self.inner.digest() == other.inner.digest()
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{BuildHasher, BuildHasherDefault};
        BuildHasherDefault::<rustc_hash::FxHasher>::default().hash_one(self.inner.digest())
    }

    /// Writes the history in a format; `hist` is the text notation.
    #[pyo3(signature = (format="hist"))]
    fn to_text(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        Ok(String::from_utf8_lossy(&self.written(py, format)?).into_owned())
    }

    /// Writes the history in a format, as bytes.
    #[pyo3(signature = (format="hist"))]
    fn to_bytes<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.written(py, format)?))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.to_text(py, "hist")
    }

    fn __repr__(&self) -> String {
        let (ops, sessions) = (self.inner.len(), self.inner.session_count());
        let name = self.inner.name().map_or_else(String::new, |name| format!(" {name:?}"));
        format!("<consistory.History{name}: {ops} operations in {sessions} sessions>")
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (String, String, u64))> {
        let py = slf.py();
        let restore = py.import("consistory.history")?.getattr("_restore")?;
        let this = slf.get();
        Ok((restore, (this.to_text(py, "hist")?, this.source.to_string(), this.index)))
    }

    /// Rebuilds a history that was pickled.
    #[staticmethod]
    fn _placed(py: Python<'_>, text: &str, source: &str, index: u64) -> PyResult<Self> {
        let history = History::parse(py, text, Some("hist"), source)?;
        Ok(History { source: source.into(), index, ..history })
    }

    /// Decides by the model's definition, with the slow reference evaluator.
    ///
    /// Returns the verdict as a word, and the pattern of a violation. Histories of up to
    /// `max_operations` operations are decided; for larger ones, and after a timeout, the word is
    /// `undecided`.
    #[pyo3(signature = (model, order="session", budget=60.0, max_operations=200))]
    fn evaluate(
        &self,
        py: Python<'_>,
        model: &str,
        order: &str,
        budget: f64,
        max_operations: usize,
    ) -> PyResult<(&'static str, Option<String>)> {
        let id = model.to_ascii_lowercase();
        let definition = match (find_level(&id), find(&id)) {
            (Some(level), _) => &level.definition,
            (None, Ok(model)) => &model.definition,
            (None, Err(unknown)) => {
                let (id, hint) = (unknown.id.clone(), unknown.hint.clone());
                return Err(raised(py, &Error::UnknownModel { id, hint }));
            }
        };
        let budget = Budget::unlimited().with_time(crate::court::seconds(budget)?);
        let order = match crate::court::order(py, order)? {
            consistory::ClientOrder::None => ClientOrder::None,
            consistory::ClientOrder::Session => ClientOrder::Session,
            consistory::ClientOrder::Realtime => ClientOrder::Realtime,
        };
        let options = EvaluateOptions { budget, max_operations, order };
        let judged = py.detach(|| evaluate(definition, &self.inner, &options));
        let judgement = judged.map_err(|reason| {
            raised(py, &Error::DoesNotApply { model: model.to_owned(), reason })
        })?;
        let pattern = match &judgement {
            consistory_verdict::Judgement::Violation { pattern, .. } => Some(pattern.to_string()),
            _ => None,
        };
        Ok((judgement.verdict().as_str(), pattern))
    }
}

impl History {
    fn written(&self, py: Python<'_>, format: &str) -> PyResult<Vec<u8>> {
        let format = format_of(py, Some(format))?.unwrap_or(Format::Hist);
        let mut text = Vec::new();
        py.detach(|| write_history(&self.inner, format, &mut text)).map_err(
            |error| match error {
                WriteError::Io(error) => PyErr::from(error),
                error => simple(py, "FormatError", error.to_string(), None),
            },
        )?;
        Ok(text)
    }
}

/// Iterator over the histories of some inputs, which are read when requested.
#[pyclass(frozen, module = "consistory")]
pub(crate) struct Cases {
    cases: Mutex<consistory::Cases>,
}

#[pymethods]
impl Cases {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<History>> {
        let case = py.detach(|| {
            let mut cases = self.cases.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            cases.next()
        });
        case.transpose().map(|case| case.map(History::from)).map_err(|error| raised(py, &error))
    }
}

/// Reads the histories of files and folders when they are requested.
#[pyfunction]
#[pyo3(signature = (paths, format=None))]
pub(crate) fn read(py: Python<'_>, paths: Vec<PathBuf>, format: Option<&str>) -> PyResult<Cases> {
    let format = format_of(py, format)?;
    Ok(Cases { cases: Mutex::new(consistory::read_all(&paths, format)) })
}

/// Lists the inputs that paths denote: files themselves, and the histories in folders.
#[pyfunction]
pub(crate) fn inputs(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Vec<String>> {
    let found = consistory_formats::inputs(&paths).map_err(|error| raised(py, &error.into()))?;
    Ok(found.iter().map(ToString::to_string).collect())
}

/// Reads the histories of a file's bytes, which may be compressed.
///
/// `lines_before` is the number of lines of the file before these bytes, for the positions of
/// errors.
#[pyfunction]
#[pyo3(signature = (data, source="bytes", format=None, lines_before=0))]
pub(crate) fn read_bytes(
    py: Python<'_>,
    data: &[u8],
    source: &str,
    format: Option<&str>,
    lines_before: u64,
) -> PyResult<Vec<History>> {
    let format = format_of(py, format)?;
    let name: Arc<str> = source.into();
    let read = |bytes: Box<dyn BufRead + Send>| {
        read_from(bytes, source, format)
            .enumerate()
            .map(|(index, history)| {
                let (source, index) = (Arc::clone(&name), index as u64);
                history.map(|inner| History { inner: Arc::new(inner), source, number: 0, index })
            })
            .collect::<Result<Vec<History>, _>>()
    };
    let histories = py.detach(|| match read(Box::new(Cursor::new(data.to_vec()))) {
        // Read again after as many empty lines, so that the error has its line in the file.
        Err(_) if lines_before > 0 => {
            let before = std::io::repeat(b'\n').take(lines_before);
            read(Box::new(BufReader::new(before).chain(Cursor::new(data.to_vec()))))
        }
        histories => histories,
    });
    histories.map_err(|error| raised(py, &error.into()))
}

/// Parses every history of a text; it is JSON lines if it starts with a brace.
#[pyfunction]
#[pyo3(signature = (text, format=None, source="text"))]
pub(crate) fn parse_texts(
    py: Python<'_>,
    text: &str,
    format: Option<&str>,
    source: &str,
) -> PyResult<Vec<History>> {
    if source.is_empty() {
        return Err(PyValueError::new_err("the source has no name"));
    }
    let format = match format_of(py, format)? {
        Some(format) => format,
        None if text.trim_start().starts_with('{') => Format::Jsonl,
        None => Format::Hist,
    };
    let histories = py.detach(|| parse_str(text, format, source)).map_err(|diagnostics| {
        raised(py, &Error::Read(consistory_formats::ReadError::Malformed(diagnostics)))
    })?;
    let name: Arc<str> = source.into();
    let place = |(index, inner)| {
        let (source, index) = (Arc::clone(&name), index as u64);
        History { inner: Arc::new(inner), source, number: 0, index }
    };
    Ok(histories.into_iter().enumerate().map(place).collect())
}
