//! Generated histories: simulated memories, stores of transactions, objects.

use std::fmt::Display;
use std::str::FromStr;

use consistory_generate::{
    DataKind, KeyChoice, Memory, ObjectWorkload, PlantOptions, Plants, TransactionWorkload,
    Workload, generate, generate_calls as calls, generate_transactions as transactions, plant,
};
use pyo3::prelude::*;

use crate::error::simple;
use crate::history::History;

fn named<T: FromStr>(py: Python<'_>, name: &str) -> PyResult<T>
where
    T::Err: Display,
{
    name.parse().map_err(|error: T::Err| simple(py, "ModelError", error.to_string(), None))
}

/// Generates a history of clients of a simulated memory.
#[pyfunction]
#[pyo3(signature = (
    memory="sc", sessions=4, operations=100, variables=10, reads=0.5, rmws=0.0, fences=0.0, skew=0.0,
    values=0, lag=16, plants=0, distance=100, seed=0
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn generate_memory(
    py: Python<'_>,
    memory: &str,
    sessions: u32,
    operations: u32,
    variables: u32,
    reads: f64,
    rmws: f64,
    fences: f64,
    skew: f64,
    values: u32,
    lag: u32,
    plants: usize,
    distance: u32,
    seed: u64,
) -> PyResult<History> {
    let memory: Memory = named(py, memory)?;
    let workload = Workload {
        sessions,
        operations,
        variables,
        read_share: reads,
        rmw_share: rmws,
        fence_share: fences,
        skew,
        values,
        lag,
        seed,
    };
    workload.validate().map_err(|error| simple(py, "ModelError", error.to_string(), None))?;
    let made = py.detach(|| {
        let made = generate(&workload, memory);
        match plants {
            0 => made,
            count => {
                let plants = Plants::Count(count);
                plant(&made, &PlantOptions { plants, distance, seed })
            }
        }
    });
    Ok(History::new(made))
}

/// Generates a history of an object's calls.
#[pyfunction]
#[pyo3(signature = (
    object, sessions=4, operations=100, reads=0.5, pending=0.0, plants=0, distance=100, seed=0
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn generate_calls(
    py: Python<'_>,
    object: &str,
    sessions: u32,
    operations: u32,
    reads: f64,
    pending: f64,
    plants: usize,
    distance: u32,
    seed: u64,
) -> PyResult<History> {
    if sessions == 0 {
        return Err(simple(py, "ModelError", "a workload needs at least one session", None));
    }
    let workload = ObjectWorkload {
        object: named(py, object)?,
        sessions,
        operations,
        read_share: reads,
        pending_share: pending,
        plants,
        distance,
        seed,
    };
    Ok(History::new(py.detach(|| calls(&workload))))
}

/// Generates a history of transactions.
#[pyfunction]
#[pyo3(signature = (
    level="ser", order="session", sessions=4, operations=100, keys=10, size=(1, 8), reads=0.5,
    lists=false, skew=0.0, aborted=0.0, indeterminate=0.0, times=false, lag=16, anomalies=None, seed=0
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn generate_transactions(
    py: Python<'_>,
    level: &str,
    order: &str,
    sessions: u32,
    operations: u32,
    keys: u32,
    size: (u32, u32),
    reads: f64,
    lists: bool,
    skew: f64,
    aborted: f64,
    indeterminate: f64,
    times: bool,
    lag: u32,
    anomalies: Option<Vec<String>>,
    seed: u64,
) -> PyResult<History> {
    let anomalies: PyResult<Vec<_>> =
        anomalies.into_iter().flatten().map(|name| named(py, &name)).collect();
    let workload = TransactionWorkload {
        store: named(py, level)?,
        order: named(py, order)?,
        sessions,
        operations,
        keys,
        sizes: size.0..=size.1,
        read_share: reads,
        data: if lists { DataKind::Lists } else { DataKind::Registers },
        key_choice: KeyChoice::Zipf { skew },
        writes_per_key: if lists { 32 } else { 0 },
        aborted_share: aborted,
        indeterminate_share: indeterminate,
        is_timed: times,
        lag,
        anomalies: anomalies?,
        seed,
        ..TransactionWorkload::default()
    };
    workload.validate().map_err(|error| simple(py, "ModelError", error.to_string(), None))?;
    Ok(History::new(py.detach(|| transactions(&workload))))
}
