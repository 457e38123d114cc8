//! Options of an exploration, and its result.

use std::time::Duration;

use consistory_history::History;
use consistory_verdict::Stopped;

use crate::explore::trace::Run;
use crate::observer::{Failure, WitnessError};
use crate::system::{Fault, Position};
use crate::tracking::Shape;

use super::checkpoint::Mismatch;

/// Options of an exploration.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether states that differ by a renaming of scalarset values count as one.
    pub symmetry: bool,
    /// Number of threads.
    pub jobs: usize,
    /// Largest number of states that may be visited.
    pub states: Option<u64>,
    /// Whether a state without a rule that leads to another state is a violation.
    pub deadlock: bool,
    /// Whether only 64 bits of each state are stored; see [`Exploration::omission`].
    pub compaction: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { symmetry: true, jobs: 1, states: None, deadlock: true, compaction: false }
    }
}

/// Progress of an exploration.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Progress {
    /// Number of states found.
    pub states: u64,
    /// Number of states whose successors were all computed.
    pub expanded: u64,
    /// Number of times a rule was fired.
    pub fired: u64,
    /// Number of loads that the fired rules performed; only with tracking.
    pub loads: u64,
    /// Number of stores that the fired rules performed; only with tracking.
    pub stores: u64,
    /// Number of steps from a start state to the current level.
    pub depth: u32,
    /// Number of bytes of the visited states.
    pub bytes: u64,
    /// Time taken so far.
    pub elapsed: Duration,
}

/// Result of an exploration.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// The verdict.
    pub outcome: Outcome,
    /// Progress at the end.
    pub progress: Progress,
    /// Numbers of processors, blocks and locations; only with tracking.
    pub shape: Option<Shape>,
    /// Scalarsets for which symmetry was requested but had to be given up.
    pub given_up: Vec<GivenUp>,
    /// With hash compaction, an upper bound on the probability that a state was missed.
    pub omission: Option<f64>,
    /// Number of runs that a judge let pass before the outcome was found: their constraint graph
    /// fails although they are sequentially consistent.
    pub passed: u32,
}

/// A scalarset that was explored as an ordinary type although symmetry was requested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenUp {
    /// The name of the scalarset.
    pub scalarset: String,
    /// Reason why its values can be distinguished.
    pub reason: String,
}

/// The verdict of an exploration.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Every state was visited, and there is no violation. With observer and checker: the
    /// constraint graph of every run is acyclic, so every run is sequentially consistent.
    Holds,
    /// A run ends with a violation.
    Violated {
        /// The violation.
        violation: Violation,
        /// A shortest run to the violation.
        run: Run,
    },
    /// The search stopped before its end, and found no violation until then.
    Undecided {
        /// Reason why it stopped.
        reason: Unfinished,
    },
}

/// Reasons why an exploration has no verdict.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unfinished {
    /// The budget of time or memory ran out, or the caller asked to stop.
    #[error("{0}")]
    Budget(Stopped),
    /// The limit of states was reached.
    #[error("the limit of {limit} states was reached")]
    States {
        /// Number of states allowed.
        limit: u64,
    },
    /// A violation was found, but the run to it was not found in time.
    #[error("a violation was found, but not the run to it: {0}")]
    Run(Stopped),
    /// A violation was found, but no run could be built along the representatives of its states.
    #[error("a violation was found, but no run to it could be built")]
    Representatives,
    /// More locations hold different values than the observer can distinguish.
    #[error("more than {limit} stale or pending values are held at once")]
    Values {
        /// Number of values that can be distinguished.
        limit: u32,
    },
    /// Some runs fail the check, but a judge found none that violates sequential consistency.
    #[error("runs fail the check although they may be sequentially consistent")]
    Unexplained(Box<Unexplained>),
}

/// A run that fails the check although it is not known to violate sequential consistency.
#[derive(Clone, Debug)]
pub struct Unexplained {
    /// The first such run, which is a shortest one.
    pub run: Run,
    /// Reason why its constraint graph fails.
    pub failure: Failure,
    /// The history of its loads and stores.
    pub history: History,
    /// Number of failing runs that were judged.
    pub judged: u32,
    /// Reason why the search stopped after this run; `None` if it reached its end.
    pub stopped: Option<Stop>,
}

/// Reasons why a search stopped after failing runs that a judge let pass.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stop {
    /// The budget ran out.
    #[error("{0}")]
    Budget(Stopped),
    /// The limit of states was reached.
    #[error("the limit of {limit} states was reached")]
    States {
        /// Number of states allowed.
        limit: u64,
    },
    /// The limit of judged runs was reached.
    #[error("enough runs were judged")]
    Runs,
}

/// A violation.
#[derive(Clone, Debug)]
pub enum Violation {
    /// A rule or start state failed.
    Fault {
        /// The rule with its parameters.
        rule: String,
        /// The fault.
        fault: Fault,
    },
    /// An invariant does not hold.
    Invariant {
        /// Name of the invariant, with its parameters.
        name: String,
        /// Position of the invariant.
        position: Position,
        /// Fault of its evaluation, if it is not simply false.
        fault: Option<Fault>,
    },
    /// No rule leads to another state.
    Deadlock,
    /// A companion of the caller rejects the last step.
    Rejected {
        /// The rule with its parameters.
        rule: String,
        /// Position of the rule.
        position: Position,
    },
    /// The constraint graph of the run fails, and the judge did not let the run pass.
    ///
    /// Without a judge, the run may still be sequentially consistent: its stores may have another
    /// order than the one that was assumed.
    Graph {
        /// Reason why the graph fails.
        failure: Failure,
        /// The history of the run's loads and stores.
        history: Box<History>,
    },
}

/// Reasons why an exploration cannot start.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExploreError {
    /// There are too many processors and blocks to track.
    #[error("{0}")]
    TooLarge(#[from] WitnessError),
    /// The checkpoint does not fit the exploration.
    #[error("{0}")]
    Mismatch(#[from] Mismatch),
}
