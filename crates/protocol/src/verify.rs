//! Proving a protocol sequentially consistent: the product of protocol, observer and checker.

use consistory_history::History;
use consistory_verdict::Budget;

use crate::explore::{
    Checkpoint, Mismatch, Options, Outcome, Progress, Run, Snapshot, Unfinished, Violation,
    explore_from,
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
    let shape = system.shape().ok_or(VerifyError::Untracked)?;
    let homes = system.location_homes();
    let witness = Witness::new(shape)?.with_homes(&homes);
    let exploration = explore_from(checkpoint, system, Some(&witness), options, budget, report)?;
    let outcome = match exploration.outcome {
        Outcome::Holds => Sequential::Proved,
        Outcome::Undecided { reason } => Sequential::Undecided { reason },
        Outcome::Violated { violation: Violation::Rejected { .. }, run } => {
            let mut monitor = Monitor::new(shape).with_homes(&homes);
            let mut steps = run.steps.iter();
            let failure = steps.find_map(|step| monitor.step(&step.effect).err());
            let failure = failure.ok_or(VerifyError::TooManyValues)?;
            let names = TraceNames { procs: system.proc_names(), blocks: system.block_names() };
            let history = history(&names, run.steps.iter().map(|step| &step.effect))
                .expect("a run that was found fits into a history");
            Sequential::Refused { run, failure, history: Box::new(history) }
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
