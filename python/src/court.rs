//! Courts: their models and options, and streams of reports.
//!
//! [`Reports`] feeds a pipeline of threads that do not hold Python's lock: the thread that requests
//! the next report takes items from the Python iterator and puts them into a queue, then waits
//! without the lock. Items that are paths are read by the pipeline, so that a batch of files needs
//! Python only for returning reports.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use consistory::{
    Case, ClientOrder, Court as Inner, Engine, Error, Format, Report as Judged, pipeline,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyString, PyTuple};

use crate::error::{raised, simple};
use crate::history::{History, format_of};
use crate::object::{Failures, PythonObject};
use crate::verdict::Report;

/// Number of reports that may wait for Python.
const WAITING_REPORTS: usize = 1024;
/// Number of items that are taken from a Python iterator ahead of the threads.
const ITEMS_AHEAD: usize = 512;
/// Time between two checks for signals during a wait.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Converts a number of seconds to a duration.
pub(crate) fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!("a budget is a number of seconds, not {seconds}"))
    })
}

/// Finds an order of the clients by its name.
pub(crate) fn order(py: Python<'_>, name: &str) -> PyResult<ClientOrder> {
    ClientOrder::find(name).ok_or_else(|| {
        let message = format!("no order is called {name:?}");
        simple(py, "ModelError", message, Some("it is none, session or realtime"))
    })
}

/// Judges histories by models.
#[pyclass(frozen, module = "consistory", name = "Court")]
pub(crate) struct Court {
    inner: Inner,
    jobs: usize,
    failures: Failures,
}

#[pymethods]
impl Court {
    #[new]
    #[pyo3(signature = (
        models, object=None, axioms=None, levels=None, order="session", budget=60.0,
        memory=None, jobs=None, engine="auto", certify=true
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        models: Vec<Bound<'_, PyAny>>,
        object: Option<Bound<'_, PyAny>>,
        axioms: Option<Vec<String>>,
        levels: Option<&str>,
        order: &str,
        budget: f64,
        memory: Option<u64>,
        jobs: Option<usize>,
        engine: &str,
        certify: bool,
    ) -> PyResult<Self> {
        let failures = Failures::default();
        let fail = |error: Error| raised(py, &error);
        let mut court = match object {
            None => Inner::new(),
            Some(object) => match object.cast::<PyString>() {
                Ok(name) => Inner::object(&name.to_string_lossy()).map_err(fail)?,
                Err(_) => {
                    let object = PythonObject::new(&object, failures.clone())?;
                    let name = object.name().to_owned();
                    Inner::own_object(&name, Arc::new(object))
                }
            },
        };
        for model in models {
            court = match model.cast::<PyString>() {
                Ok(name) => court.models([&*name.to_string_lossy()]).map_err(fail)?,
                Err(_) => {
                    let name: String = model.getattr("name")?.extract()?;
                    let text: String = model.getattr("text")?.extract()?;
                    court.definition(&name, &text).map_err(fail)?
                }
            };
        }
        for text in axioms.into_iter().flatten() {
            court = court.axioms(&text).map_err(fail)?;
        }
        if let Some(levels) = levels {
            court = court.levels(levels).map_err(fail)?;
        }
        let engine = match engine {
            "auto" => Engine::Auto,
            "split" => Engine::Split,
            "frontier" => Engine::Frontier,
            "sat" => Engine::Sat,
            other => {
                let message = format!("no engine is called {other:?}");
                let hint = Some("it is auto, split, frontier or sat");
                return Err(simple(py, "ModelError", message, hint));
            }
        };
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = jobs.unwrap_or_else(cores).max(1);
        court =
            court.order(self::order(py, order)?).budget(seconds(budget)?).jobs(jobs).engine(engine);
        if let Some(memory) = memory {
            court = court.memory(memory);
        }
        if !certify {
            court = court.without_certification();
        }
        Ok(Court { inner: court, jobs, failures })
    }

    /// Judges one history.
    fn judge(&self, py: Python<'_>, history: &History) -> PyResult<Report> {
        let (court, interrupt) = self.interruptible();
        let case = history.case();
        let (sender, receiver) = sync_channel(1);
        // The judgement runs on another thread, so that this one can check for signals.
        let judging = std::thread::spawn(move || {
            let _ = sender.send(court.judge_case(case));
        });
        let (mut receiver, mut signal) = (receiver, None);
        let judged = loop {
            // The receiver is moved to code that runs without the lock, and returned.
            let (back, received) = py.detach(move || {
                let received = receiver.recv_timeout(SIGNAL_INTERVAL);
                (receiver, received)
            });
            receiver = back;
            match received {
                Ok(judged) => break judged,
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = py.check_signals() {
                        interrupt.store(true, Ordering::Relaxed);
                        signal.get_or_insert(error);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("the thread that judges has ended"));
                }
            }
        };
        py.detach(|| judging.join()).map_err(|_| PyRuntimeError::new_err("judging panicked"))?;
        if let Some(signal) = signal {
            return Err(signal);
        }
        self.failures.raise()?;
        judged.map(Report::from).map_err(|error| raised(py, &error))
    }

    /// Judges many histories, and returns reports in order, as they are requested.
    #[pyo3(signature = (items, format=None))]
    fn judge_many(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        format: Option<&str>,
    ) -> PyResult<Reports> {
        Reports::start(self, items, format_of(py, format)?)
    }

    /// Judges all the histories of some items and returns the verdicts as columns of a table.
    ///
    /// Errors are rows too: `error` contains their text, and there is no verdict.
    #[pyo3(signature = (items, format=None, certificates=false, shrink=false, first=0))]
    fn judge_table<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PyAny>,
        format: Option<&str>,
        certificates: bool,
        shrink: bool,
        first: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut reports = Reports::start(self, items, format_of(py, format)?)?;
        let mut rows = Rows::default();
        while let Some(judged) = reports.next_judged(py)? {
            rows.add(judged, certificates, shrink, first);
        }
        rows.columns(py)
    }
}

impl Court {
    /// Returns the court with a flag that stops its work; each stream or judgement has its own
    /// flag, so that stopping one leaves the others alone.
    fn interruptible(&self) -> (Inner, Arc<AtomicBool>) {
        let flag = Arc::new(AtomicBool::new(false));
        (self.inner.clone().interrupt(Arc::clone(&flag)), flag)
    }
}

/// Verdicts as columns, with one row per history and model.
#[derive(Default)]
struct Rows {
    source: Vec<String>,
    index: Vec<Option<u64>>,
    name: Vec<Option<String>>,
    digest: Vec<Option<String>>,
    sessions: Vec<Option<u32>>,
    operations: Vec<Option<u32>>,
    model: Vec<Option<String>>,
    verdict: Vec<Option<&'static str>>,
    pattern: Vec<Option<String>>,
    via: Vec<Option<&'static str>>,
    millis: Vec<Option<f64>>,
    certificate: Vec<Option<String>>,
    shrunk: Vec<Option<String>>,
    error: Vec<Option<String>>,
    histories: u64,
}

impl Rows {
    fn add(
        &mut self,
        judged: Result<Judged<'static>, Error>,
        certificates: bool,
        shrink: bool,
        first: u64,
    ) {
        self.histories += 1;
        let report = match judged {
            Ok(report) => report,
            Err(error) => return self.add_error(&error, first),
        };
        let history = report.history();
        let digest = history.digest();
        for verdict in report.iter() {
            self.source.push(report.source().to_owned());
            self.index.push(Some(first + report.index()));
            self.name.push(history.name().map(str::to_owned));
            self.digest.push(Some(digest.clone()));
            self.sessions.push(Some(history.session_count() as u32));
            self.operations.push(Some(history.len() as u32));
            self.model.push(Some(verdict.model().id().to_owned()));
            self.verdict.push(Some(verdict.outcome().as_str()));
            self.pattern.push(verdict.pattern());
            self.via.push(verdict.via());
            self.millis.push(Some(verdict.time().as_secs_f64() * 1e3));
            if certificates {
                self.certificate.push(verdict.certificate().map(|proof| {
                    let mut text = Vec::new();
                    match proof.write(verdict.history(), &mut text) {
                        Ok(()) => String::from_utf8_lossy(&text).into_owned(),
                        Err(error) => format!("{{\"error\":\"{error}\"}}"),
                    }
                }));
            }
            if shrink {
                let is_wrong = verdict.is_violation();
                let small = is_wrong.then(|| verdict.shrink());
                self.shrunk.push(small.and_then(Result::ok).map(|small| small.text()));
            }
            self.error.push(None);
        }
    }

    fn add_error(&mut self, error: &Error, first: u64) {
        let (source, index) = match error {
            Error::At { source, index, .. } => (source.clone(), Some(first + index)),
            Error::Read(consistory_formats::ReadError::Io { path, .. }) => {
                (path.display().to_string(), None)
            }
            Error::Read(consistory_formats::ReadError::Malformed(diagnostics)) => {
                let first = diagnostics.iter().next();
                (first.map_or_else(String::new, |d| d.source.to_string()), None)
            }
            _ => (String::new(), None),
        };
        self.source.push(source);
        self.index.push(index);
        self.name.push(None);
        self.digest.push(None);
        self.sessions.push(None);
        self.operations.push(None);
        self.model.push(None);
        self.verdict.push(None);
        self.pattern.push(None);
        self.via.push(None);
        self.millis.push(None);
        if !self.certificate.is_empty() {
            self.certificate.push(None);
        }
        if !self.shrunk.is_empty() {
            self.shrunk.push(None);
        }
        let rendered = error.render(consistory_formats::Style::Plain);
        self.error.push(Some(rendered.unwrap_or_else(|| error.to_string())));
    }

    fn columns(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let columns = PyDict::new(py);
        let rows = self.error.len();
        columns.set_item("source", self.source)?;
        columns.set_item("index", self.index)?;
        columns.set_item("name", self.name)?;
        columns.set_item("digest", self.digest)?;
        columns.set_item("sessions", self.sessions)?;
        columns.set_item("operations", self.operations)?;
        columns.set_item("model", self.model)?;
        columns.set_item("verdict", self.verdict)?;
        columns.set_item("pattern", self.pattern)?;
        columns.set_item("via", self.via)?;
        columns.set_item("millis", self.millis)?;
        columns.set_item("error", self.error)?;
        // The column was not requested, or starts late because the first rows are errors.
        for (name, mut column) in [("certificate", self.certificate), ("shrunk", self.shrunk)] {
            if !column.is_empty() {
                let late = rows - column.len();
                column.splice(0..0, std::iter::repeat_n(None, late));
                columns.set_item(name, column)?;
            }
        }
        columns.set_item("histories", self.histories)?;
        Ok(columns)
    }
}

/// An item to be processed by the pipeline.
enum Item {
    Case(Case),
    Path(PathBuf),
}

/// Reports on many histories, in input order.
#[pyclass(module = "consistory")]
pub(crate) struct Reports {
    /// Items that are still in Python.
    items: Option<Py<PyIterator>>,
    /// Queue to the pipeline; closed when there are no more items.
    feed: Option<Sender<Item>>,
    sent: usize,
    taken: Arc<AtomicUsize>,
    /// In a mutex, because several threads may request reports.
    reports: Option<Mutex<Receiver<Result<Judged<'static>, Error>>>>,
    ready: VecDeque<Result<Judged<'static>, Error>>,
    judging: Option<JoinHandle<()>>,
    interrupt: Arc<AtomicBool>,
    failures: Failures,
    /// Exception of the iterator, raised after the reports on earlier items.
    pending: Option<PyErr>,
}

impl Reports {
    fn start(court: &Court, items: &Bound<'_, PyAny>, format: Option<Format>) -> PyResult<Self> {
        let py = items.py();
        // A single path or history is one item.
        let single = is_path(items) || items.cast::<History>().is_ok();
        let items = match single {
            true => PyList::new(py, [items])?.try_iter()?,
            false => items.try_iter().map_err(|_| {
                PyTypeError::new_err("expected histories, paths, or an iterable of them")
            })?,
        };
        let (feed, fed) = channel::<Item>();
        let (sender, reports) = sync_channel(WAITING_REPORTS);
        let taken = Arc::new(AtomicUsize::new(0));
        let (inner, interrupt) = court.interruptible();
        let (jobs, counter) = (court.jobs, Arc::clone(&taken));
        let judging = std::thread::spawn(move || {
            pipeline::run(
                jobs,
                |push| feed_pipeline(&fed, &counter, format, push),
                |case: Result<Case, Error>| case.and_then(|case| inner.judge_case(case)),
                |report| sender.send(report).is_ok(),
            );
        });
        Ok(Reports {
            items: Some(items.unbind()),
            feed: Some(feed),
            sent: 0,
            taken,
            reports: Some(Mutex::new(reports)),
            ready: VecDeque::new(),
            judging: Some(judging),
            interrupt,
            failures: court.failures.clone(),
            pending: None,
        })
    }

    /// Takes items from the Python iterator while the threads may need them.
    fn refill(&mut self, py: Python<'_>) {
        let numbered = self.sent;
        while let Some(items) = &self.items {
            if self.sent - self.taken.load(Ordering::Relaxed) >= ITEMS_AHEAD
                || self.sent - numbered >= ITEMS_AHEAD
            {
                return;
            }
            let item = match items.bind(py).clone().next() {
                Some(Ok(object)) => to_item(&object, self.sent),
                Some(Err(error)) => Err(error),
                None => {
                    (self.items, self.feed) = (None, None);
                    return;
                }
            };
            let is_sent = match (item, &self.feed) {
                (Ok(item), Some(feed)) => feed.send(item).is_ok(),
                (Err(error), _) => {
                    self.pending = Some(error);
                    false
                }
                (Ok(_), None) => false,
            };
            match is_sent {
                true => self.sent += 1,
                false => (self.items, self.feed) = (None, None),
            }
        }
    }

    /// Waits for the next report.
    pub(crate) fn next_judged(
        &mut self,
        py: Python<'_>,
    ) -> PyResult<Option<Result<Judged<'static>, Error>>> {
        loop {
            if let Some(judged) = self.ready.pop_front() {
                self.failures.raise()?;
                return Ok(Some(judged));
            }
            self.refill(py);
            let Some(reports) = self.reports.take() else { return Ok(None) };
            // The receiver is moved to code that runs without the lock, and returned.
            let (reports, received, more) = py.detach(move || {
                let (received, more) = {
                    let reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
                    let received = reports.recv_timeout(SIGNAL_INTERVAL);
                    (received, reports.try_iter().take(WAITING_REPORTS).collect::<Vec<_>>())
                };
                (reports, received, more)
            });
            match received {
                Ok(judged) => {
                    self.ready.push_back(judged);
                    self.ready.extend(more);
                    self.reports = Some(reports);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.reports = Some(reports);
                    if let Err(error) = py.check_signals() {
                        self.stop();
                        return Err(error);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    if let Some(judging) = self.judging.take()
                        && py.detach(|| judging.join()).is_err()
                    {
                        return Err(PyRuntimeError::new_err("a thread that judges panicked"));
                    }
                    self.failures.raise()?;
                    return match self.pending.take() {
                        Some(error) => Err(error),
                        None => Ok(None),
                    };
                }
            }
        }
    }

    /// Stops the threads.
    fn stop(&mut self) {
        self.interrupt.store(true, Ordering::Relaxed);
        (self.items, self.feed, self.reports) = (None, None, None);
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        if self.judging.is_some() {
            self.stop();
        }
    }
}

#[pymethods]
impl Reports {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Report>> {
        match self.next_judged(py)? {
            None => Ok(None),
            Some(Ok(judged)) => Ok(Some(judged.into())),
            Some(Err(error)) => Err(raised(py, &error)),
        }
    }

    /// Stops judging; reports that were not returned are lost.
    fn close(&mut self) {
        self.stop();
    }
}

fn is_path(item: &Bound<'_, PyAny>) -> bool {
    item.is_instance_of::<PyString>() || item.hasattr("__fspath__").unwrap_or(false)
}

fn to_item(object: &Bound<'_, PyAny>, number: usize) -> PyResult<Item> {
    if let Ok(history) = object.cast::<History>() {
        return Ok(Item::Case(Case { number, ..history.get().case() }));
    }
    if is_path(object) {
        return object.extract().map(Item::Path);
    }
    // A recorder, or another object with a history.
    if !object.is_instance_of::<PyTuple>()
        && let Ok(history) = object.getattr("history")
        && let Ok(history) = history.cast::<History>()
    {
        return Ok(Item::Case(Case { number, ..history.get().case() }));
    }
    let kind = object.get_type().name()?;
    Err(PyTypeError::new_err(format!("expected a history or a path, not {kind}")))
}

/// Passes the items to the pipeline; paths are read here, without Python.
fn feed_pipeline(
    fed: &Receiver<Item>,
    taken: &AtomicUsize,
    format: Option<Format>,
    push: &mut dyn FnMut(Result<Case, Error>, usize) -> bool,
) {
    for item in fed {
        taken.fetch_add(1, Ordering::Relaxed);
        match item {
            Item::Case(case) => {
                let operations = case.history.len();
                if !push(Ok(case), operations) {
                    return;
                }
            }
            Item::Path(path) => {
                for case in consistory::read_all(&[path], format) {
                    let operations = case.as_ref().map_or(0, |case| case.history.len());
                    if !push(case, operations) {
                        return;
                    }
                }
            }
        }
    }
}
