//! The findings of a run as plain data, from which a report is built.

use crate::nemesis::FaultEvent;
use crate::recorder::Row;
use crate::run::Run;
use crate::stats::{Counts, Span, counts, spans};

/// Length of the spans for which rates and latencies are computed, in nanoseconds.
const SPAN_NS: u64 = 250_000_000;

/// A judgement of the run, in words.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// The title, such as `redis, register`.
    pub title: String,
    /// The verdict in one sentence.
    pub headline: String,
    /// Names and values: version, settings, seed, promised models.
    pub facts: Vec<(String, String)>,
    /// The command that repeats the run.
    pub command: String,
    /// The verdict per model.
    pub verdicts: Vec<ModelVerdict>,
    /// The strongest models that held.
    pub strongest: Vec<String>,
    /// The operations of the smallest violation; [`Findings::new`] fills in their nodes.
    pub core: Vec<CoreOperation>,
    /// The explanation of the violation, in sentences.
    pub explanation: String,
}

/// The verdict of one model.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModelVerdict {
    /// The model.
    pub model: String,
    /// `consistent`, `violation` or `undecided`.
    pub verdict: String,
    /// The pattern of the violation, if it has one.
    pub pattern: String,
}

/// An operation of the smallest violation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CoreOperation {
    /// The session.
    pub session: String,
    /// The operation, as `w(k1,7)`.
    pub text: String,
    /// Its start, in nanoseconds of the run's clock.
    pub start: u64,
    /// Its end; `None` if it never returned.
    pub end: Option<u64>,
    /// The node that received the request, if there are nodes.
    pub node: Option<String>,
}

/// All data that a report of a run shows.
///
/// Times are nanoseconds of the run's clock, which starts with the first session.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The judgement.
    pub judged: Judged,
    /// The names of the nodes; empty for an embedded system.
    pub nodes: Vec<String>,
    /// The faults that happened, with their times and nodes, and the time at which a write through
    /// every node worked again.
    pub faults: Vec<FaultEvent>,
    /// The length of a span.
    pub span_ns: u64,
    /// Rates and latencies per span, from the beginning of the run.
    pub spans: Vec<Span>,
    /// The outcomes of all requests.
    pub counts: Counts,
    /// The number of operations in the history.
    pub operations: u64,
    /// Time for which sessions sent requests, in nanoseconds.
    pub time_ns: u64,
    /// Time that the system took to start, in nanoseconds.
    pub start_ns: u64,
    /// The reason why the system did not recover from a fault, if it did not.
    pub trouble: Option<String>,
}

impl Findings {
    /// Combines the recording of a run with its judgement.
    pub fn new(run: &Run, nodes: &[String], mut judged: Judged) -> Self {
        for operation in &mut judged.core {
            let row = run.rows.iter().find(|row: &&Row| row.start == operation.start);
            operation.node = row.and_then(|row| nodes.get(row.server.0)).cloned();
        }
        Findings {
            judged,
            nodes: nodes.to_vec(),
            faults: run.faults.clone(),
            span_ns: SPAN_NS,
            spans: spans(&run.rows, SPAN_NS),
            counts: counts(&run.rows),
            operations: run.operations,
            time_ns: run.time.as_nanos() as u64,
            start_ns: run.start_time.as_nanos() as u64,
            trouble: run.trouble.clone(),
        }
    }
}
