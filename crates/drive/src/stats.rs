//! Counts, rates and latencies of a run.

use crate::recorder::Row;
use crate::request::Outcome;

/// The counts of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Requests that took effect.
    pub ok: u64,
    /// Requests that had no effect.
    pub failed: u64,
    /// Indeterminate requests.
    pub unknown: u64,
}

/// Counts the outcomes of requests.
pub fn counts(rows: &[Row]) -> Counts {
    let mut counts = Counts::default();
    for row in rows {
        match row.outcome {
            Outcome::Ok(_) => counts.ok += 1,
            Outcome::Failed(_) => counts.failed += 1,
            Outcome::Unknown { .. } => counts.unknown += 1,
        }
    }
    counts
}

/// A span of time of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Span {
    /// The counts of the requests that ended in the span.
    pub counts: Counts,
    /// The median latency of the requests that took effect, in milliseconds.
    pub median_ms: f64,
    /// The 99th percentile of the latency of the requests that took effect, in milliseconds.
    pub p99_ms: f64,
}

/// Divides a run into spans of a length in nanoseconds.
pub fn spans(rows: &[Row], length: u64) -> Vec<Span> {
    let last = rows.iter().map(|row| row.end / length).max();
    let mut of_span: Vec<Vec<&Row>> = vec![Vec::new(); last.map_or(0, |last| last as usize + 1)];
    for row in rows {
        of_span[(row.end / length) as usize].push(row);
    }
    of_span
        .into_iter()
        .map(|rows| {
            let mut latencies: Vec<u64> = (rows.iter())
                .filter(|row| matches!(row.outcome, Outcome::Ok(_)))
                .map(|row| row.end - row.start)
                .collect();
            latencies.sort_unstable();
            let at = |share: f64| {
                let index = (latencies.len() as f64 * share) as usize;
                latencies.get(index).map_or(0.0, |&ns| ns as f64 / 1e6)
            };
            let owned: Vec<Row> = rows.into_iter().cloned().collect();
            Span { counts: counts(&owned), median_ms: at(0.5), p99_ms: at(0.99) }
        })
        .collect()
}
