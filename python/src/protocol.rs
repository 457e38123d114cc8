//! Coherence protocols in Murphi: explores every run and proves sequential consistency.

use consistory::protocol::{Explorer, Model, Options, Outcome, Unfinished, Violation};
use consistory_history::History as Inner;
use consistory_verdict::{Budget, Verdict as Word};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::court::seconds;
use crate::error::{malformed, simple};
use crate::history::History;
use crate::set_some;

/// Judges the history of a run by sequential consistency; undecided on an error.
fn judge(history: &Inner) -> Word {
    consistory::check(history, "sc").map_or(Word::Undecided, |verdict| verdict.outcome())
}

/// Proves that every run of a protocol is sequentially consistent, or finds one that is not.
#[pyfunction]
#[pyo3(signature = (
    text, source="protocol", plain=false, symmetry=true, deadlock=true, budget=60.0,
    memory=4_294_967_296, jobs=None
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    text: &str,
    source: &str,
    plain: bool,
    symmetry: bool,
    deadlock: bool,
    budget: f64,
    memory: u64,
    jobs: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let fail = |errors: &_| malformed(py, "ReadError", errors);
    let model = Model::parse(source, text).map_err(|errors| fail(&errors))?;
    let missing = if plain { None } else { model.missing_marks() };
    let is_plain = plain || missing.is_some();
    let system = match is_plain {
        true => model.plain(),
        false => model.tracked().map_err(|errors| fail(&errors))?,
    };
    let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let options =
        Options { symmetry, jobs: jobs.max(1), deadlock: plain && deadlock, ..Options::default() };
    let budget = Budget::unlimited().with_time(seconds(budget)?).with_memory(memory);
    let explored =
        py.detach(|| Explorer::new(&system).options(options).budget(budget).judge(judge).run());
    let explored =
        explored.map_err(|error| simple(py, "ReadError", format!("{source}: {error}"), None))?;
    let mut run = Vec::new();
    let mut history = None;
    let (verdict, because) = match explored.outcome {
        Outcome::Holds => match (missing, plain) {
            (Some(missing), _) => ("unproved", Some(missing.to_string())),
            (None, true) => ("holds", None),
            (None, false) => ("consistent", None),
        },
        Outcome::Undecided { reason: Unfinished::Unexplained(found) } => {
            run = found.run.steps.iter().map(|step| step.rule.clone()).collect();
            history = Some(found.history.clone());
            ("undecided", Some(found.failure.to_string()))
        }
        Outcome::Undecided { reason } => ("undecided", Some(reason.to_string())),
        Outcome::Violated { violation, run: found } => {
            run = found.steps.iter().map(|step| step.rule.clone()).collect();
            let because = match violation {
                Violation::Graph { failure, history: found } => {
                    history = Some(*found);
                    failure.to_string()
                }
                Violation::Invariant { name, .. } => format!("the invariant {name:?} fails"),
                Violation::Deadlock => "no rule leads to another state".to_owned(),
                Violation::Fault { rule, fault } => {
                    format!("{}: {}, in {rule}", fault.position, fault.kind)
                }
                Violation::Rejected { rule, .. } => format!("{rule} is not allowed"),
            };
            ("violation", Some(because))
        }
    };
    let result = PyDict::new(py);
    result.set_item("source", source)?;
    result.set_item("verdict", verdict)?;
    result.set_item("because", because)?;
    result.set_item("states", explored.progress.states)?;
    result.set_item("depth", explored.progress.depth)?;
    result.set_item("run", run)?;
    result.set_item("history", py.None())?;
    set_some(&result, "history", history.map(History::new))?;
    Ok(result)
}
