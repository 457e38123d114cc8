//! The calls of an interval diagram, and the positions of their bars.
//!
//! Times become columns: distinct times from left to right, as far apart as the labels of the bars
//! require. In a history without times the calls of a session are placed one after the other.

use std::collections::{BTreeSet, HashMap, HashSet};

use consistory_history::{History, Interval, OpId};
use consistory_verdict::{Attempt, Linearization, ObjectCertificate};

use crate::calls::CallProof;
use crate::text::session_name;

/// Style of a bar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// A call that returned.
    Returned,
    /// A call whose return is ignored, because it is pending or returns later.
    Open,
    /// The call that cannot be explained.
    Failing,
}

/// A call's bar.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) op: OpId,
    pub(crate) lane: usize,
    /// Columns of its start and end.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) look: Look,
    /// Position in the shown linearization, counted from 1.
    pub(crate) number: Option<usize>,
}

/// An interval diagram without coordinates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Diagram {
    /// Name of each lane; empty for an additional lane of the session above.
    pub(crate) lanes: Vec<String>,
    pub(crate) bars: Vec<Bar>,
    /// Number of columns.
    pub(crate) columns: usize,
    /// Number of earlier calls that are hidden.
    pub(crate) hidden: usize,
}

/// Returns the attempt of a violation that is shown: the longest.
pub(crate) fn shown_attempt<'a>(proof: CallProof<'a>) -> Option<&'a Attempt> {
    match proof {
        Ok(ObjectCertificate::Unexplained(unexplained)) => {
            unexplained.attempts.iter().max_by_key(|attempt| attempt.linearization.order.len())
        }
        _ => None,
    }
}

/// Chooses at most `most` calls and arranges their bars.
pub(crate) fn diagram(history: &History, proof: CallProof<'_>, most: usize) -> Diagram {
    let mut looks: HashMap<OpId, Look> = HashMap::new();
    let mut order: &[OpId] = &[];
    let own: Vec<OpId>;
    match proof {
        Ok(ObjectCertificate::Linearization(Linearization { order: found, .. })) => {
            order = found;
            looks.extend(order.iter().map(|&op| (op, Look::Returned)));
        }
        Ok(ObjectCertificate::Unexplained(unexplained)) => {
            if let Some(attempt) = shown_attempt(proof) {
                order = &attempt.linearization.order;
            }
            looks.extend(order.iter().map(|&op| (op, Look::Open)));
            looks.extend(unexplained.returned.iter().map(|&op| (op, Look::Returned)));
            if let Some(&last) = unexplained.returned.last() {
                looks.insert(last, Look::Failing);
            }
        }
        Ok(ObjectCertificate::Core(core)) => match &core.prefix {
            None => looks.extend(core.operations.iter().map(|&op| (op, Look::Failing))),
            Some(prefix) => {
                let end_of = |op: OpId| history.time(op).and_then(|time| time.end);
                let last = end_of(prefix.last);
                let look = |op: OpId| match end_of(op) {
                    _ if op == prefix.last => Look::Failing,
                    end if end.is_some() && end <= last => Look::Returned,
                    _ => Look::Open,
                };
                looks.extend(core.operations.iter().map(|&op| (op, look(op))));
                own = prefix
                    .before
                    .order
                    .iter()
                    .copied()
                    .filter(|op| looks.contains_key(op))
                    .collect();
                order = &own;
            }
        },
        Err(_) => {
            looks.extend(history.ops().map(|op| (op, Look::Returned)));
        }
    }
    let mut chosen: Vec<OpId> = looks.keys().copied().collect();
    chosen.sort_by_key(|&op| {
        let (start, end) = span(history, op, looks[&op]);
        (end, start, op)
    });
    let hidden = chosen.len().saturating_sub(most.max(1));
    chosen.drain(..hidden);
    let numbers: HashMap<OpId, usize> =
        order.iter().enumerate().map(|(i, &op)| (op, i + 1)).collect();
    arrange(history, &chosen, &looks, &numbers, hidden)
}

fn arrange(
    history: &History,
    chosen: &[OpId],
    looks: &HashMap<OpId, Look>,
    numbers: &HashMap<OpId, usize>,
    hidden: usize,
) -> Diagram {
    let spans: Vec<(i64, i64)> = chosen.iter().map(|&op| span(history, op, looks[&op])).collect();
    let times: BTreeSet<i64> = spans.iter().flat_map(|&(start, end)| [start, end]).collect();
    let times: Vec<i64> = times.into_iter().collect();
    let column = |time: i64| times.partition_point(|&t| t < time);
    let mut bars: Vec<Bar> = chosen
        .iter()
        .zip(&spans)
        .map(|(&op, &(start, end))| Bar {
            op,
            lane: 0,
            // For each time, one column for starts and one for ends; starts come first.
            from: 2 * column(start),
            to: 2 * column(end) + 1,
            look: looks[&op],
            number: numbers.get(&op).copied(),
        })
        .collect();
    bars.sort_by_key(|bar| (history.session_of(bar.op), bar.from, bar.op));
    let mut lanes: Vec<String> = Vec::new();
    let mut session = None;
    // Lanes of the session, each with the end of its last bar.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    for bar in &mut bars {
        let own = history.session_of(bar.op);
        let is_new = session.replace(own) != Some(own);
        if is_new {
            ends.clear();
        }
        let free = ends.iter_mut().find(|(_, end)| *end <= bar.from + 1);
        bar.lane = match free {
            Some((lane, end)) => {
                *end = bar.to;
                *lane
            }
            None => {
                lanes.push(if is_new { session_name(history, own) } else { String::new() });
                ends.push((lanes.len() - 1, bar.to));
                lanes.len() - 1
            }
        };
    }
    Diagram { lanes, bars, columns: 2 * times.len(), hidden }
}

/// Returns the start and end of a call on the diagram's clock.
fn span(history: &History, op: OpId, look: Look) -> (i64, i64) {
    match history.time(op) {
        Some(Interval { start, end: Some(end) }) if look != Look::Open => (start, end.max(start)),
        Some(Interval { start, .. }) => (start, i64::MAX),
        None => {
            let index = i64::from(history.index_in_session(op));
            (2 * index, 2 * index + 1)
        }
    }
}

impl Diagram {
    /// Places the columns so that each bar has its required width; `gap` is the distance between
    /// columns.
    pub(crate) fn places(&self, gap: f64, needs: impl Fn(&Bar) -> f64) -> Vec<f64> {
        let mut ending: Vec<Vec<&Bar>> = vec![Vec::new(); self.columns];
        for bar in &self.bars {
            ending[bar.to].push(bar);
        }
        // Columns without a start or an end have no width.
        let used: HashSet<usize> = self.bars.iter().flat_map(|bar| [bar.from, bar.to]).collect();
        let mut places = vec![0.0; self.columns];
        for column in 0..self.columns {
            let before = if column > 0 { places[column - 1] } else { 0.0 };
            let gap = if column > 0 && used.contains(&column) { gap } else { 0.0 };
            let needed = ending[column].iter().map(|bar| places[bar.from] + needs(bar));
            places[column] = needed.fold(before + gap, f64::max);
        }
        places
    }
}
