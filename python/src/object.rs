//! Objects that are implemented by Python classes.
//!
//! A state is an instance of the class, stored as bytes: every call restores it, calls the method,
//! and stores it again, so the class may modify the instance freely. `consistory/objects.py`
//! restores and stores states, and computes a key by which they are compared. A call takes a few
//! microseconds and needs Python's lock; the search itself runs without the lock.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use consistory_history::Value;
use consistory_spec::{Effect, Method, Returns, Specification};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::value::{to_python, to_value};

/// Exceptions of the Python class, which end the judgement.
#[derive(Clone, Default)]
pub(crate) struct Failures(Arc<Mutex<Option<PyErr>>>);

impl Failures {
    fn keep(&self, error: PyErr) {
        let mut kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        kept.get_or_insert(error);
    }

    /// Raises the first exception since the last call.
    pub(crate) fn raise(&self) -> PyResult<()> {
        let mut kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        kept.take().map_or(Ok(()), Err)
    }
}

/// A Python class as a sequential specification.
pub(crate) struct PythonObject {
    name: String,
    /// Adapter in `consistory.objects`.
    adapter: Py<PyAny>,
    methods: Vec<Method>,
    failures: Failures,
}

/// A state of a Python object.
#[derive(Clone)]
pub(crate) struct PythonState {
    /// Canonical bytes, by which states are compared.
    key: Arc<[u8]>,
    /// Pickled instance.
    pickled: Arc<[u8]>,
}

impl PartialEq for PythonState {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for PythonState {}

impl Hash for PythonState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl PythonObject {
    /// Wraps a class, or an instance whose state is the initial one.
    pub(crate) fn new(object: &Bound<'_, PyAny>, failures: Failures) -> PyResult<Self> {
        let py = object.py();
        let adapter = py.import("consistory.objects")?.call_method1("adapt", (object,))?;
        let name: String = adapter.getattr("name")?.extract()?;
        let mut methods = Vec::new();
        let listed: Vec<(String, Vec<String>, bool)> = adapter.getattr("methods")?.extract()?;
        for (name, parameters, reads) in listed {
            methods.push(Method {
                name: name.as_str().into(),
                parameters: parameters.iter().map(|name| name.as_str().into()).collect(),
                aliases: Vec::new(),
                effect: if reads { Effect::Reads } else { Effect::Writes },
                returns: Returns::Value,
                result: "".into(),
            });
        }
        Ok(PythonObject { name, adapter: adapter.unbind(), methods, failures })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn start(&self, py: Python<'_>) -> PyResult<PythonState> {
        state(&self.adapter.bind(py).call_method0("initial")?)
    }

    /// Performs a call; `None` if it is not possible in the state.
    fn perform(
        &self,
        py: Python<'_>,
        before: &PythonState,
        method: &str,
        args: &[Value],
    ) -> PyResult<Option<(PythonState, Value)>> {
        let args: PyResult<Vec<Bound<'_, PyAny>>> =
            args.iter().map(|arg| to_python(py, arg)).collect();
        let args = PyTuple::new(py, args?)?;
        let pickled = PyBytes::new(py, &before.pickled);
        let done = self.adapter.bind(py).call_method1("invoke", (pickled, method, args))?;
        if done.is_none() {
            return Ok(None);
        }
        let (kept, returned): (Bound<'_, PyAny>, Bound<'_, PyAny>) = done.extract()?;
        Ok(Some((state(&kept)?, to_value(&returned)?)))
    }
}

/// Reads a pair of key and pickled instance.
fn state(pair: &Bound<'_, PyAny>) -> PyResult<PythonState> {
    let (key, pickled): (Bound<'_, PyBytes>, Bound<'_, PyBytes>) = pair.extract()?;
    Ok(PythonState { key: key.as_bytes().into(), pickled: pickled.as_bytes().into() })
}

impl Specification for PythonObject {
    type State = PythonState;

    fn initial(&self) -> PythonState {
        Python::attach(|py| self.start(py)).unwrap_or_else(|error| {
            self.failures.keep(error);
            PythonState { key: Arc::default(), pickled: Arc::default() }
        })
    }

    fn invoke(&self, before: &mut PythonState, method: &str, args: &[Value]) -> Option<Value> {
        match Python::attach(|py| self.perform(py, before, method, args)) {
            Ok(Some((after, returned))) => {
                *before = after;
                Some(returned)
            }
            Ok(None) => None,
            Err(error) => {
                self.failures.keep(error);
                None
            }
        }
    }

    fn methods(&self) -> &[Method] {
        &self.methods
    }

    fn footprint(&self, state: &PythonState) -> usize {
        size_of::<PythonState>() + state.key.len() + state.pickled.len() + 64
    }
}
