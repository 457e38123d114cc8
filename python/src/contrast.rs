//! Smallest histories that separate two models of registers, or two isolation levels.

use consistory::{is_path, load_definition};
use consistory_atlas::{ScanOptions, Side, Space, contrast as compare, contrast_levels};
use consistory_history::History as Inner;
use consistory_models::{ClientOrder, Definition, find_level, implies};
use consistory_verdict::Budget;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::Path;

use crate::court::{order as client_order, seconds};
use crate::error::{raised, simple};
use crate::history::History;
use crate::set_some;

/// Largest number of operations of a history of transactions.
const LEVEL_BOUND: usize = 5;

/// Searches for smallest histories that one of two models allows and the other forbids.
#[pyfunction]
#[pyo3(signature = (
    first, second, bound=7, sessions=None, variables=None, fences=false, rmws=false,
    order="session", budget=60.0, jobs=None
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn contrast<'py>(
    py: Python<'py>,
    first: &str,
    second: &str,
    bound: usize,
    sessions: Option<usize>,
    variables: Option<usize>,
    fences: bool,
    rmws: bool,
    order: &str,
    budget: f64,
    jobs: Option<usize>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    if !(1..=12).contains(&bound) {
        return Err(simple(
            py,
            "ModelError",
            format!("the bound {bound} is not from 1 to 12"),
            None,
        ));
    }
    let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let budget = Budget::unlimited().with_time(seconds(budget)?);
    let options = ScanOptions { budget, jobs: jobs.max(1), ..ScanOptions::default() };
    let levels = [level(py, first)?, level(py, second)?];
    let limited = |limit: Option<usize>, most: usize| limit.unwrap_or(most).min(most);
    let found = match levels {
        [Some(a), Some(b)] => {
            let bound = bound.min(LEVEL_BOUND);
            let (sessions, variables) = (limited(sessions, bound), limited(variables, bound));
            let space = Space { sessions, variables, rmws, ..Space::of(bound) };
            let proof = |a: &(String, Definition, bool), b: &(String, Definition, bool)| {
                if a.2 && b.2 { implies(&a.0, &b.0) } else { None }
            };
            let proofs = [proof(&a, &b), proof(&b, &a)];
            let order = match client_order(py, order)? {
                consistory::ClientOrder::None => ClientOrder::None,
                consistory::ClientOrder::Session => ClientOrder::Session,
                consistory::ClientOrder::Realtime => ClientOrder::Realtime,
            };
            py.detach(|| contrast_levels([&a.1, &b.1], proofs, order, &space, &options))
        }
        [None, None] => {
            let register = |name: &str| match consistory::Model::register(name) {
                Ok(consistory::Model::Register(model)) => Ok(model),
                Ok(model) => {
                    let message = format!("`{}` is not a model of registers", model.id());
                    Err(simple(py, "ModelError", message, None))
                }
                Err(error) => Err(raised(py, &error)),
            };
            let models = [register(first)?, register(second)?];
            if models[0].id() == models[1].id() {
                return Err(simple(py, "ModelError", "name two different models", None));
            }
            let space = Space {
                sessions: limited(sessions, bound),
                variables: limited(variables, Space::of(bound).variables),
                fences,
                rmws,
                ..Space::of(bound)
            };
            py.detach(|| compare(&models, &space, &options))
        }
        _ => {
            return Err(simple(
                py,
                "ModelError",
                "an isolation level and a model of registers have no histories in common",
                Some("compare two levels, or two models of registers"),
            ));
        }
    };
    let pairs = [(first, second), (second, first)];
    found.sides.into_iter().zip(pairs).map(|(side, pair)| shown(py, side, pair)).collect()
}

/// Finds an isolation level, with whether it is in the catalogue.
fn level(py: Python<'_>, name: &str) -> PyResult<Option<(String, Definition, bool)>> {
    if is_path(name) {
        let definition = load_definition(Path::new(name)).map_err(|error| raised(py, &error))?;
        let is_level = definition.is_transactional();
        return Ok(is_level.then(|| (name.to_owned(), definition, false)));
    }
    let found = find_level(&name.to_ascii_lowercase());
    Ok(found.map(|level| (level.id.to_owned(), level.definition.clone(), true)))
}

fn shown<'py>(
    py: Python<'py>,
    side: Side,
    (allows, forbids): (&str, &str),
) -> PyResult<Bound<'py, PyDict>> {
    let (answer, by, operations, history): (_, _, _, Option<Inner>) = match side {
        Side::Separated(history) => ("separated", None, Some(history.len()), Some(*history)),
        Side::Implied(standing) => ("implied", Some(standing.to_string()), None, None),
        Side::NotUpTo { operations } => ("none", None, Some(operations), None),
        Side::Undecided { operations, stopped } => {
            ("undecided", Some(stopped.to_string()), Some(operations), None)
        }
    };
    let line = PyDict::new(py);
    line.set_item("allows", allows)?;
    line.set_item("forbids", forbids)?;
    line.set_item("answer", answer)?;
    set_some(&line, "because", by)?;
    set_some(&line, "operations", operations)?;
    set_some(&line, "history", history.map(History::new))?;
    Ok(line)
}
