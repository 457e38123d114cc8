//! Proving a protocol sequentially consistent: the product of protocol, observer and checker.

use consistory_history::History;
use consistory_verdict::Budget;

use crate::explore::{
    Checkpoint, Mismatch, Options, Outcome, Passed, Progress, Run, Snapshot, Unfinished, Violation,
    explore_judged,
};
use crate::observer::{Failure, Monitor, Witness, WitnessError};
use crate::system::System;
use crate::trace::{TraceNames, history};
use crate::tracking::Shape;

/// What came of proving a protocol sequentially consistent.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The outcome.
    pub outcome: Sequential,
    /// How far the exploration got.
    pub progress: Progress,
    /// How many processors, blocks and locations there are.
    pub shape: Shape,
    /// Scalarsets that symmetry was asked for and that a loop told apart all the same.
    pub asymmetric: Vec<String>,
    /// With hash compaction, what the probability is at most that a state was missed.
    pub omission: Option<f64>,
}

/// Whether a protocol is sequentially consistent.
#[derive(Clone, Debug)]
pub enum Sequential {
    /// The constraint graph of every run is acyclic: every run is sequentially consistent.
    Proved,
    /// The constraint graph of a run has a cycle, or is none.
    ///
    /// Either the run is not sequentially consistent, or the store order is not the one that the
    /// protocol keeps: whoever judges the history knows which.
    Refused {
        /// A shortest such run.
        run: Run,
        /// What is wrong with its constraint graph.
        failure: Failure,
        /// The history of its loads and stores.
        history: Box<History>,
        /// What became of the runs that a judge let pass, see [`verify_judged`].
        passed: Passed,
    },
    /// Something else is wrong: an invariant, an assertion, an undefined value.
    Wrong {
        /// What is wrong.
        violation: Violation,
        /// A shortest run to it.
        run: Run,
    },
    /// The exploration stopped before its end.
    Undecided {
        /// Why it stopped.
        reason: Unfinished,
    },
}

/// Why a proof cannot be tried.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VerifyError {
    /// The system runs with data as it is, and does not say where it goes.
    #[error("the system does not track its data")]
    Untracked,
    /// There are too many processors and blocks.
    #[error("{0}")]
    TooLarge(#[from] WitnessError),
    /// More different values are held at once than the observer can tell apart.
    #[error("more stale values are held at once than can be told apart")]
    TooManyValues,
    /// The checkpoint does not go with what is to be explored.
    #[error("{0}")]
    Mismatch(#[from] Mismatch),
}

/// Explores a system together with observer and checker; `report` is called after each round.
pub fn verify(
    system: &System,
    options: &Options,
    budget: &Budget,
    report: &mut dyn FnMut(&Snapshot<'_>),
) -> Result<Verification, VerifyError> {
    verify_from(None, system, options, budget, report)
}

/// Explores a system together with observer and checker, from where a checkpoint left off.
pub fn verify_from(
    checkpoint: Option<Checkpoint>,
    system: &System,
    options: &Options,
    budget: &Budget,
    report: &mut dyn FnMut(&Snapshot<'_>),
) -> Result<Verification, VerifyError> {
    verify_judged(checkpoint, system, options, budget, report, &mut |_| true)
}

/// Explores a system together with observer and checker; a judge says of the history of a run that
/// is refused whether it really is not sequentially consistent.
///
/// If not, the store order does not fit, and the search goes on behind that run, for a run that is
/// not. If it finds none, the outcome is the first that was refused.
pub fn verify_judged(
    checkpoint: Option<Checkpoint>,
    system: &System,
    options: &Options,
    budget: &Budget,
    report: &mut dyn FnMut(&Snapshot<'_>),
    judge: &mut dyn FnMut(&History) -> bool,
) -> Result<Verification, VerifyError> {
    let shape = system.shape().ok_or(VerifyError::Untracked)?;
    let homes = system.location_homes();
    let witness = Witness::new(shape)?.with_homes(&homes);
    let names = TraceNames { procs: system.proc_names(), blocks: system.block_names() };
    let history_of = |run: &Run| {
        history(&names, run.steps.iter().map(|step| &step.effect))
            .expect("a run that was found fits into a history")
    };
    let failure_of = |run: &Run| {
        let mut monitor = Monitor::new(shape).with_homes(&homes);
        run.steps.iter().find_map(|step| monitor.step(&step.effect).err())
    };
    // A run that the monitor does not refuse shows that the witness gave up.
    let stands = &mut |run: &Run| failure_of(run).is_none() || judge(&history_of(run));
    let (exploration, passed) =
        explore_judged(checkpoint, system, Some(&witness), options, budget, report, stands)?;
    let outcome = match exploration.outcome {
        Outcome::Holds => Sequential::Proved,
        Outcome::Undecided { reason } => Sequential::Undecided { reason },
        Outcome::Violated { violation: Violation::Rejected { .. }, run } => {
            let failure = failure_of(&run).ok_or(VerifyError::TooManyValues)?;
            let history = Box::new(history_of(&run));
            Sequential::Refused { run, failure, history, passed }
        }
        Outcome::Violated { violation, run } => Sequential::Wrong { violation, run },
    };
    Ok(Verification {
        outcome,
        progress: exploration.progress,
        shape,
        asymmetric: exploration.asymmetric,
        omission: exploration.omission,
    })
}
