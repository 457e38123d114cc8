//! The outcome of one run of a program.

use consistory_history::{Action, Details, History, HistoryBuilder, Interval, Status, Value};

use crate::precedence::{Span, spans};
use crate::program::Program;

/// The outcome of one run of a program: the return of each call, and the order of calls.
///
/// Equal outcomes compare equal, whatever their recorded times.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Outcome {
    returns: Vec<Vec<Value>>,
    /// One entry per started call; `returns` is shorter if a call did not return.
    spans: Vec<Vec<Span>>,
    panic: Option<String>,
}

impl Outcome {
    /// Builds an outcome from the counters that threads read.
    ///
    /// `returns[t][i]` is the return of call `i` of thread `t`. `seen[t][i][s]` is the counter of
    /// thread `s` that thread `t` read before its call `i`; a counter is the number of returned
    /// calls of its thread. Entries of `seen` without one in `returns` are calls that never
    /// returned.
    pub fn from_counters(returns: Vec<Vec<Value>>, seen: &[Vec<Vec<u32>>]) -> Outcome {
        let returned: Vec<usize> = (0..seen.len())
            .map(|t| returns.get(t).map_or(0, Vec::len).min(seen[t].len()))
            .collect();
        let spans = spans(seen, &returned);
        Outcome { returns, spans, panic: None }
    }

    /// Builds an outcome from the start and end of each call on one clock.
    ///
    /// Entries of `times` without one in `returns` are calls that never returned.
    pub fn from_clock(returns: Vec<Vec<Value>>, times: &[Vec<(i64, i64)>]) -> Outcome {
        let ended = |s: usize, at: i64| {
            let returned = returns.get(s).map_or(0, Vec::len);
            times[s].iter().take(returned).filter(|&&(_, end)| end < at).count() as u32
        };
        let seen: Vec<Vec<Vec<u32>>> = times
            .iter()
            .map(|calls| {
                let seen = |start| (0..times.len()).map(|s| ended(s, start)).collect();
                calls.iter().map(|&(start, _)| seen(start)).collect()
            })
            .collect();
        Outcome::from_counters(returns, &seen)
    }

    /// Returns the same outcome with a panic in a thread's last call.
    #[must_use]
    pub fn with_panic(mut self, message: String) -> Self {
        self.panic = Some(message);
        self
    }

    /// Returns the message of a panic, if a call panicked.
    pub fn panic(&self) -> Option<&str> {
        self.panic.as_deref()
    }

    /// Returns the return values of each thread's calls.
    pub fn returns(&self) -> &[Vec<Value>] {
        &self.returns
    }

    /// Returns the outcome of some of the calls; threads without calls are dropped.
    pub(crate) fn filtered(&self, keep: &[Vec<bool>]) -> Outcome {
        let mut kept = Outcome { returns: Vec::new(), spans: Vec::new(), panic: None };
        for (t, keep) in keep.iter().enumerate().filter(|(_, keep)| keep.contains(&true)) {
            let spans = self.spans[t].iter().zip(keep).filter(|(_, keep)| **keep);
            kept.spans.push(spans.map(|(&span, _)| span).collect());
            let returns = self.returns[t].iter().zip(keep).filter(|(_, keep)| **keep);
            kept.returns.push(returns.map(|(value, _)| value.clone()).collect());
        }
        kept
    }

    /// Converts the outcome to a history, with the calls of the program.
    pub fn history(&self, program: &Program) -> History {
        let mut builder = HistoryBuilder::new();
        for (t, calls) in program.threads.iter().enumerate() {
            let session = builder.session(&format!("t{t}"));
            let spans = self.spans.get(t).map_or(&[][..], Vec::as_slice);
            let returns = self.returns.get(t).map_or(&[][..], Vec::as_slice);
            for (i, (call, &(start, end))) in calls.iter().zip(spans).enumerate() {
                let returns = returns.get(i).map(|value| builder.value(value.clone()));
                let status = if returns.is_some() { Status::Ok } else { Status::Unknown };
                let args = call.args.iter().map(|arg| builder.value(arg.clone())).collect();
                let method = call.method.clone();
                let id = builder.call(consistory_history::Call { method, args, returns });
                let time = Interval { start: start.into(), end: end.map(Into::into) };
                let details = Details { time: Some(time), status, ..Details::default() };
                builder.push_with(session, Action::Call(id), details);
            }
        }
        builder.finish().expect("there are no transactions, and fewer calls than ids")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_and_counters_that_say_the_same_are_equal() {
        let returns = || vec![vec![Value::Null, Value::Int(1)], vec![Value::Int(2)]];
        let clock = Outcome::from_clock(returns(), &[vec![(10, 20), (30, 90)], vec![(25, 40)]]);
        let later = Outcome::from_clock(returns(), &[vec![(1, 2), (5, 6)], vec![(3, 99)]]);
        let seen = [vec![vec![0, 0], vec![1, 0]], vec![vec![1, 0]]];
        let counters = Outcome::from_counters(returns(), &seen);
        assert_eq!(clock, later);
        assert_eq!(clock, counters);
        let program: Program = "t0: put(0,1) get(0)\nt1: get(0)".parse().unwrap();
        let history = clock.history(&program);
        let shown: Vec<String> = history
            .ops()
            .map(|op| {
                let time = history.time(op).unwrap();
                format!("{} @{}..{}", history.show(op), time.start, time.end.unwrap())
            })
            .collect();
        let expected = ["put(0,1) => null @0..0", "get(0) => 1 @1..1", "get(0) => 2 @1..1"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_call_without_a_return_is_pending() {
        let outcome =
            Outcome::from_clock(vec![vec![], vec![Value::Null]], &[vec![(1, 2)], vec![(3, 4)]]);
        let history = outcome.history(&"t0: take()\nt1: put(1)".parse().unwrap());
        let ops: Vec<_> = history.ops().map(|op| history.status(op)).collect();
        assert_eq!(ops, [Status::Unknown, Status::Ok]);
    }
}
