//! Options of an exploration, and what it reports.

use std::time::Duration;

use consistory_history::History;
use consistory_verdict::Stopped;

use crate::explore::trace::Run;
use crate::observer::{Failure, WitnessError};
use crate::system::{Fault, Position};
use crate::tracking::Shape;

use super::checkpoint::Mismatch;

/// How to explore.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether states that differ by a renaming of scalarset values count as one.
    pub symmetry: bool,
    /// Number of threads.
    pub jobs: usize,
    /// Number of states that may be visited.
    pub states: Option<u64>,
    /// Whether a state that no rule leaves is a violation.
    pub deadlock: bool,
    /// Whether only 64 bits of each state are kept, see [`Exploration::omission`].
    pub compaction: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { symmetry: true, jobs: 1, states: None, deadlock: true, compaction: false }
    }
}

/// How far an exploration has got.
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
    /// Number of bytes that the visited states take.
    pub bytes: u64,
    /// Time taken so far.
    pub elapsed: Duration,
}

/// What an exploration found.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// The verdict.
    pub outcome: Outcome,
    /// How far the exploration got.
    pub progress: Progress,
    /// Numbers of processors, blocks and locations; only with tracking.
    pub shape: Option<Shape>,
    /// Scalarsets for which symmetry was asked for and had to be given up.
    pub given_up: Vec<GivenUp>,
    /// With hash compaction, an upper bound of the probability that a state was missed.
    pub omission: Option<f64>,
    /// Number of runs whose constraint graph fails although they are sequentially consistent; a
    /// judge let them pass before the outcome was found.
    pub passed: u32,
}

/// A scalarset that was explored as an ordinary type although symmetry was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenUp {
    /// The name of the scalarset.
    pub scalarset: String,
    /// Why its values can be told apart.
    pub reason: String,
}

/// The verdict of an exploration.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Every state was visited and nothing is wrong. With observer and checker: the constraint
    /// graph of every run is acyclic, so every run is sequentially consistent.
    Holds,
    /// Something is wrong at the end of a run.
    Violated {
        /// What is wrong.
        violation: Violation,
        /// A shortest run to it.
        run: Run,
    },
    /// The search stopped before its end; nothing wrong was found until then.
    Undecided {
        /// Why it stopped.
        reason: Unfinished,
    },
}

/// Why an exploration has no verdict.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unfinished {
    /// The budget of time or memory ran out, or somebody asked to stop.
    #[error("{0}")]
    Budget(Stopped),
    /// As many states as allowed were found.
    #[error("the limit of {limit} states was reached")]
    States {
        /// Number of states allowed.
        limit: u64,
    },
    /// Something is wrong, but the run to it was not found in time.
    #[error("something is wrong, but the run to it was not found: {0}")]
    Run(Stopped),
    /// Something is wrong, but no run could be made along the representatives of its states.
    #[error("something is wrong, but the run to it could not be put together")]
    Representatives,
    /// Different values are held at once in more locations than the observer can tell apart.
    #[error("more than {limit} stale or pending values are held at once")]
    Values {
        /// Number of values that can be told apart.
        limit: u32,
    },
    /// Runs fail the check, but a judge found none that is not sequentially consistent.
    #[error("runs fail the check although they may be sequentially consistent")]
    Unexplained(Box<Unexplained>),
}

/// A run that fails the check although it is not known to violate sequential consistency.
#[derive(Clone, Debug)]
pub struct Unexplained {
    /// The first such run, a shortest one.
    pub run: Run,
    /// Why its constraint graph fails.
    pub failure: Failure,
    /// The history of its loads and stores.
    pub history: History,
    /// Number of failing runs that were judged.
    pub judged: u32,
    /// Why the search did not go on to its end after this run; nothing if it did.
    pub stopped: Option<Stop>,
}

/// Why a search did not go on after failing runs that a judge let pass.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stop {
    /// The budget ran out.
    #[error("{0}")]
    Budget(Stopped),
    /// As many states as allowed were found.
    #[error("the limit of {limit} states was reached")]
    States {
        /// Number of states allowed.
        limit: u64,
    },
    /// As many runs as are ever judged were judged.
    #[error("enough runs were judged")]
    Runs,
}

/// What is wrong.
#[derive(Clone, Debug)]
pub enum Violation {
    /// A rule or start state went wrong.
    Fault {
        /// The rule with its parameters.
        rule: String,
        /// What went wrong, and where.
        fault: Fault,
    },
    /// An invariant does not hold.
    Invariant {
        /// Its name, with its parameters.
        name: String,
        /// Where it stands.
        position: Position,
        /// What went wrong when it was evaluated, if it is not simply false.
        fault: Option<Fault>,
    },
    /// No rule leads to another state.
    Deadlock,
    /// A companion of the caller's does not allow the last step.
    Rejected {
        /// The rule with its parameters.
        rule: String,
        /// Where it stands.
        position: Position,
    },
    /// The constraint graph of the run fails, and the judge did not let it pass.
    ///
    /// Without a judge that does not mean yet that the run is not sequentially consistent: the
    /// order of its stores may be another one than was taken.
    Graph {
        /// Why the graph fails.
        failure: Failure,
        /// The history of the run's loads and stores.
        history: Box<History>,
    },
}

/// Why nothing can be explored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExploreError {
    /// There are too many processors and blocks to track.
    #[error("{0}")]
    TooLarge(#[from] WitnessError),
    /// The checkpoint does not go with what is to be explored.
    #[error("{0}")]
    Mismatch(#[from] Mismatch),
}
