//! Conversion of values between Python and histories.

use consistory_history::Value;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Largest nesting depth of lists, as in the text formats.
const MAX_DEPTH: usize = 64;

/// Converts a Python object into a value: `None`, booleans, integers, strings, lists and tuples.
pub(crate) fn to_value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    nested(object, 0)
}

fn nested(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(Value::Bool(truth.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return object.extract().map(Value::Int).map_err(|_| {
            PyOverflowError::new_err(format!("{object} is beyond 64 bits; write it as a string"))
        });
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::Str(text.to_string_lossy().into()));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        if depth == MAX_DEPTH {
            return Err(PyTypeError::new_err(format!("lists are nested at most {MAX_DEPTH} deep")));
        }
        let items = object.try_iter()?.map(|item| nested(&item?, depth + 1));
        return items.collect::<PyResult<Vec<Value>>>().map(Value::List);
    }
    // Integers of numpy, and other objects that act as integers.
    if !object.is_instance_of::<PyFloat>()
        && let Ok(index) = object.call_method0("__index__")
    {
        return nested(&index, depth);
    }
    let kind = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a value is None, a bool, an int, a str or a list of these, not {kind}; \
         write anything else as a string"
    )))
}

/// Converts a value into a Python object.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(truth) => PyBool::new(py, *truth).to_owned().into_any(),
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::Str(text) => PyString::new(py, text).into_any(),
        Value::List(values) => {
            let items: PyResult<Vec<Bound<'py, PyAny>>> =
                values.iter().map(|value| to_python(py, value)).collect();
            PyList::new(py, items?)?.into_any()
        }
    })
}
