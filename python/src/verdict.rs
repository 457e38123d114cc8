//! Verdicts and reports, as Python sees them.

use consistory::{Error, Report as InnerReport, Verdict as InnerVerdict};
use consistory_report::ReportWriter;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyIterator, PyList, PySlice};
use std::sync::Arc;

use crate::error::raised;
use crate::history::History;

/// A verdict on a history under a model.
#[pyclass(frozen, module = "consistory", name = "Verdict", skip_from_py_object)]
#[derive(Clone)]
pub(crate) struct Verdict {
    inner: InnerVerdict<'static>,
    place: (Arc<str>, u64),
    /// For a shrunk history, whether no further operation can be removed.
    #[pyo3(get)]
    is_minimal: Option<bool>,
}

impl Verdict {
    fn certificate_text(&self) -> PyResult<Option<String>> {
        let Some(proof) = self.inner.certificate() else { return Ok(None) };
        let mut text = Vec::new();
        proof.write(self.inner.history(), &mut text)?;
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }
}

#[pymethods]
impl Verdict {
    /// The id of the model.
    #[getter]
    fn model(&self) -> &str {
        self.inner.model().id()
    }

    /// The outcome: `consistent`, `violation` or `undecided`.
    #[getter]
    fn verdict(&self) -> &'static str {
        self.inner.outcome().as_str()
    }

    /// Whether the history satisfies the model.
    #[getter]
    fn is_consistent(&self) -> bool {
        self.inner.is_consistent()
    }

    /// Whether the history violates the model.
    #[getter]
    fn is_violation(&self) -> bool {
        self.inner.is_violation()
    }

    /// A short description of the violation, or `None`.
    #[getter]
    fn pattern(&self) -> Option<String> {
        self.inner.pattern()
    }

    /// The id of the other model whose certificate settles this one, or `None`.
    #[getter]
    fn via(&self) -> Option<&'static str> {
        self.inner.via()
    }

    /// An explanation in plain sentences.
    #[getter]
    fn explanation(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.explain())
    }

    /// The explanation in one line.
    #[getter]
    fn summary(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.explain_line())
    }

    /// The proof of the outcome as dictionaries and lists, or `None` if it is undecided.
    #[getter]
    fn certificate<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(text) = self.certificate_text()? else { return Ok(None) };
        py.import("json")?.call_method1("loads", (text,)).map(Some)
    }

    /// The checker's reason to reject the certificate, or `None`; the outcome is then undecided.
    #[getter]
    fn rejection(&self) -> Option<&str> {
        self.inner.rejection()
    }

    /// The time of judging, in seconds.
    #[getter]
    fn seconds(&self) -> f64 {
        self.inner.time().as_secs_f64()
    }

    /// The history as it was judged.
    #[getter]
    fn history(&self) -> History {
        let (source, index) = &self.place;
        let placed = History::new(self.inner.history().clone());
        History { source: Arc::clone(source), index: *index, ..placed }
    }

    /// A drawing of the history and its violation, as SVG.
    fn draw(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.draw())
    }

    /// The verdict as one JSON object, as the command line prints it.
    fn json(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.json())
    }

    /// Removes operations as long as the rest violates the model; returns the verdict on the rest.
    fn shrink(&self, py: Python<'_>) -> PyResult<Verdict> {
        let shrunk = py.detach(|| self.inner.shrink()).map_err(|error| raised(py, &error))?;
        let (inner, is_minimal) = ((*shrunk).clone(), Some(shrunk.is_minimal()));
        Ok(Verdict { inner, place: self.place.clone(), is_minimal })
    }

    /// Checks the certificate again with the independent checker; returns whether it is accepted.
    fn certify(&self, py: Python<'_>) -> bool {
        py.detach(|| {
            let certified = self.inner.clone().certified();
            certified.outcome() == self.inner.outcome() && certified.certificate().is_some()
        })
    }

    /// A report of this verdict alone.
    fn _report(&self) -> Report {
        self.inner.clone().into_report().into()
    }

    /// Raises an error: a verdict is not a condition, since an undecided history is neither right
    /// nor wrong.
    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "a verdict is neither true nor false; ask for is_consistent or is_violation",
        ))
    }

    fn __str__(&self, py: Python<'_>) -> String {
        self.explanation(py)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(stays("verdict"))
    }

    fn __repr__(&self) -> String {
        let pattern = self.inner.pattern().map_or_else(String::new, |found| format!(", {found}"));
        format!("<consistory.Verdict {}: {}{pattern}>", self.model(), self.verdict())
    }
}

/// Returns the error for pickling an object that belongs to a court.
fn stays(kind: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "a {kind} cannot be pickled; send its json(), or the history, which can be judged again"
    ))
}

/// The verdicts on one history, one for each model.
#[pyclass(frozen, module = "consistory", name = "Report", sequence)]
pub(crate) struct Report {
    inner: InnerReport<'static>,
}

impl From<InnerReport<'static>> for Report {
    fn from(inner: InnerReport<'static>) -> Self {
        Report { inner }
    }
}

impl Report {
    fn place(&self) -> (Arc<str>, u64) {
        (self.inner.source().into(), self.inner.index())
    }

    fn verdict_at(&self, at: usize) -> Verdict {
        Verdict { inner: self.inner[at].clone(), place: self.place(), is_minimal: None }
    }

    /// Returns the index of the verdict on a model.
    fn position(&self, model: &str) -> Option<usize> {
        self.inner.iter().position(|v| v.model().id().eq_ignore_ascii_case(model))
    }

    /// Returns the verdict on a model, or at an index.
    fn verdict(&self, py: Python<'_>, at: &Bound<'_, PyAny>) -> PyResult<Verdict> {
        if let Ok(model) = at.extract::<String>() {
            return self.position(&model).map(|at| self.verdict_at(at)).ok_or_else(|| {
                let known: Vec<&str> = self.inner.iter().map(|v| v.model().id()).collect();
                let message = format!("there is no verdict on {model:?}");
                let hint = format!("there is {}", known.join(", "));
                crate::error::simple(py, "ModelError", message, Some(&hint))
            });
        }
        let at: isize = at.extract()?;
        let length = self.inner.len();
        let place = if at < 0 { at + length as isize } else { at };
        match usize::try_from(place) {
            Ok(place) if place < length => Ok(self.verdict_at(place)),
            _ => Err(PyIndexError::new_err("there are fewer verdicts")),
        }
    }
}

#[pymethods]
impl Report {
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Raises an error: a report is not a condition, since it would be true whatever the verdicts
    /// are.
    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "a report is neither true nor false; ask for is_consistent, violations or len()",
        ))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let all = (0..self.inner.len()).map(|at| self.verdict_at(at));
        PyList::new(py, all)?.try_iter()
    }

    /// Checks whether there is a verdict on a model.
    fn __contains__(&self, model: &Bound<'_, PyAny>) -> bool {
        model.extract::<String>().is_ok_and(|model| self.position(&model).is_some())
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        at: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = at.cast::<PySlice>() {
            let all = PyList::new(py, (0..self.inner.len()).map(|at| self.verdict_at(at)))?;
            return all.as_any().get_item(slice);
        }
        self.verdict(py, at).and_then(|verdict| Ok(Bound::new(py, verdict)?.into_any()))
    }

    /// The source of the history.
    #[getter]
    fn source(&self) -> &str {
        self.inner.source()
    }

    /// The index of the history in its source, counted from 0.
    #[getter]
    fn index(&self) -> u64 {
        self.inner.index()
    }

    /// The history as it was judged.
    #[getter]
    fn history(&self) -> History {
        let (source, index) = self.place();
        History { source, index, ..History::new(self.inner.history().clone()) }
    }

    /// The digest of the history.
    #[getter]
    fn digest(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.history().digest())
    }

    /// The satisfied models that no other satisfied one implies, if they were requested.
    #[getter]
    fn strongest(&self) -> Option<Vec<String>> {
        self.inner.strongest().map(<[String]>::to_vec)
    }

    /// The name of the object whose calls the history consists of, or `None`.
    #[getter]
    fn object(&self) -> Option<&str> {
        self.inner.object().map(|object| object.name())
    }

    /// Whether every model is satisfied.
    #[getter]
    fn is_consistent(&self) -> bool {
        self.inner.iter().all(InnerVerdict::is_consistent)
    }

    /// The verdicts that are violations.
    #[getter]
    fn violations(&self) -> Vec<Verdict> {
        let wrong = (0..self.inner.len()).filter(|&at| self.inner[at].is_violation());
        wrong.map(|at| self.verdict_at(at)).collect()
    }

    /// The report as one line of JSON, as `consistory check --format json` prints it.
    fn json(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.json())
    }

    /// The interactive report as a complete page.
    #[pyo3(signature = (shrink=false))]
    fn html(&self, py: Python<'_>, shrink: bool) -> PyResult<String> {
        let made = py.detach(|| -> Result<Vec<u8>, String> {
            let failed = |error: std::io::Error| error.to_string();
            let mut shrunk = Vec::new();
            if shrink {
                for verdict in self.inner.iter() {
                    let small = verdict.is_violation().then(|| verdict.shrink()).transpose();
                    shrunk.push(small.map_err(|error: Error| error.to_string())?);
                }
            }
            let page = self.inner.page(&shrunk);
            let mut writer = ReportWriter::new(Vec::new(), "Consistency report").map_err(failed)?;
            let words =
                self.inner.iter().map(|verdict| (verdict.model().id(), verdict.outcome().as_str()));
            writer.add(self.inner.history().len() as u64, words, &page).map_err(failed)?;
            writer.finish(concat!("consistory ", env!("CARGO_PKG_VERSION"))).map_err(failed)
        });
        let page = made.map_err(PyRuntimeError::new_err)?;
        Ok(String::from_utf8_lossy(&page).into_owned())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(stays("report"))
    }

    fn __repr__(&self) -> String {
        let words: Vec<String> = self
            .inner
            .iter()
            .map(|verdict| format!("{} {}", verdict.model().id(), verdict.outcome()))
            .collect();
        format!("<consistory.Report {}: {}>", self.inner.source(), words.join(", "))
    }
}
