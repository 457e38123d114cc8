//! Judges isolation levels online.
//!
//! Transactions are added to a [`Window`]. When a quarter of the window is new, or transactions of
//! a slow stream have waited for a second, the window is judged by every level that is not violated
//! yet, with certificates. A violation is traced back to the transaction that completes it, and
//! reported at once with the smallest part of the window that shows it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use consistory::{Court, Level, Outcome};
use consistory_formats::{CallEvent, Format, ReadError, parse_event, parse_str};
use consistory_history::{
    Action, Call, Details, History, HistoryBuilder, HistoryError, Interval, Status, Value,
    transactions_of_calls,
};
use consistory_transactions::{Size, Sourceless, Window};
use consistory_verdict::ClientOrder;

use super::watcher::WrongLine;
use crate::error::CliError;

/// Time limit of each level for one window.
const JUDGEMENT_BUDGET: Duration = Duration::from_secs(10);

/// Longest time that new transactions wait before they are judged.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Number of lines without a further operation after which a transaction counts as complete.
const MAX_OPEN_LINES: u64 = 1 << 16;

/// State of a level.
#[derive(Debug)]
pub(crate) struct LevelState {
    pub(crate) level: Level,
    pub(crate) violation: Option<LevelViolation>,
    /// Number of windows that were not decided, and the reason for the last one.
    pub(crate) undecided: u64,
    pub(crate) reason: String,
}

/// First violation of a level.
#[derive(Clone, Debug)]
pub(crate) struct LevelViolation {
    pub(crate) pattern: String,
    /// Session of the transaction that completes the violation, and the line at which the
    /// transaction ended.
    pub(crate) session: String,
    pub(crate) line: u64,
    /// Smallest part of the window that shows the violation, as text, and its explanation.
    pub(crate) history: String,
    pub(crate) explanation: String,
}

/// A transaction whose operations arrive line by line.
#[derive(Debug)]
struct OpenTransaction {
    name: Option<String>,
    text: String,
    source: Arc<str>,
    first: u64,
    last: u64,
}

/// A call of `txn` that has not returned.
#[derive(Debug)]
struct RunningCall {
    method: String,
    args: Vec<Value>,
    start: i64,
    source: Arc<str>,
}

/// Judges transactions online.
pub(crate) struct LevelWatcher {
    window: Window,
    order: ClientOrder,
    pub(crate) levels: Vec<LevelState>,
    open: BTreeMap<String, OpenTransaction>,
    running: BTreeMap<String, RunningCall>,
    capacity: usize,
    unjudged: usize,
    judged_at: Instant,
    judged_for: Duration,
    pub(crate) lines: u64,
    pub(crate) transactions: u64,
    /// The lines that were not processed, since they were asked for.
    wrong: Vec<WrongLine>,
}

impl LevelWatcher {
    pub(crate) fn new(levels: Vec<Level>, order: ClientOrder, capacity: usize) -> Self {
        let state =
            |level| LevelState { level, violation: None, undecided: 0, reason: String::new() };
        LevelWatcher {
            window: Window::new(capacity),
            order,
            levels: levels.into_iter().map(state).collect(),
            open: BTreeMap::new(),
            running: BTreeMap::new(),
            capacity,
            unjudged: 0,
            judged_at: Instant::now(),
            judged_for: Duration::ZERO,
            lines: 0,
            transactions: 0,
            wrong: Vec::new(),
        }
    }

    /// Returns the wrong lines since the last call of this function.
    pub(crate) fn wrong_lines(&mut self) -> Vec<WrongLine> {
        std::mem::take(&mut self.wrong)
    }

    /// Keeps the reason for which a line of a source was not processed.
    fn keep_wrong(&mut self, source: &Arc<str>, processed: Result<(), CliError>) {
        if let Err(error) = processed {
            self.wrong.push(WrongLine { source: Arc::clone(source), error });
        }
    }

    /// Processes a line; returns the levels that are newly violated. Lines that are wrong are
    /// returned by [`wrong_lines`](Self::wrong_lines).
    pub(crate) fn line(
        &mut self,
        text: &str,
        number: u64,
        source: &Arc<str>,
    ) -> Result<Vec<usize>, CliError> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        self.lines += 1;
        let fields: Option<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_str(text).ok();
        match fields {
            Some(fields) if fields.contains_key("op") => {
                let processed = self.operation(&fields, text, number, source);
                self.keep_wrong(source, processed);
            }
            _ => {
                let processed = self.event(text, number, source);
                self.keep_wrong(source, processed);
            }
        }
        let is_due = self.unjudged >= (self.window.size().kept / 4).clamp(1, self.capacity / 4 + 1);
        let waited = self.judged_at.elapsed();
        let has_waited = self.unjudged > 0 && waited > MAX_WAIT + 4 * self.judged_for;
        match is_due || has_waited {
            true => self.judge(Sourceless::LeftOut),
            false => Ok(Vec::new()),
        }
    }

    /// Adds an operation; if it belongs to another transaction, the previous one of its session is
    /// complete.
    fn operation(
        &mut self,
        fields: &serde_json::Map<String, serde_json::Value>,
        text: &str,
        number: u64,
        source: &Arc<str>,
    ) -> Result<(), CliError> {
        let plain = |name: &str| {
            fields.get(name).map(|value| match value {
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            })
        };
        let Some(session) = plain("session") else {
            return Err(CliError::with_hint(
                format!("{source}:{number}: \"session\" is missing"),
                "an operation is {\"session\":\"t0\",\"txn\":1,\"op\":\"write\",\"key\":\"x\",\"value\":1}",
            ));
        };
        let name = plain("txn");
        if let Some(open) = self.open.get_mut(&session) {
            if name.is_some() && open.name == name {
                open.text.push_str(text.trim_end());
                open.text.push('\n');
                open.last = number;
                return Ok(());
            }
            self.complete(&session);
        }
        let is_alone = name.is_none();
        let text = format!("{}\n", text.trim_end());
        let open =
            OpenTransaction { name, text, source: source.clone(), first: number, last: number };
        self.open.insert(session.clone(), open);
        if is_alone {
            self.complete(&session);
        }
        if self.lines.is_multiple_of(MAX_OPEN_LINES) {
            let is_old = |open: &OpenTransaction| number > open.last.saturating_add(MAX_OPEN_LINES);
            let old = self.open.iter().filter(|(_, open)| is_old(open));
            for session in old.map(|(session, _)| session.clone()).collect::<Vec<_>>() {
                self.complete(&session);
            }
        }
        Ok(())
    }

    /// Moves a session's open transaction into the window.
    fn complete(&mut self, session: &str) {
        let Some(open) = self.open.remove(session) else { return };
        let place = format!("{}:{}", open.source, open.first);
        let pushed = parse_str(&open.text, Format::Jsonl, &place).map_err(CliError::from);
        let pushed = pushed.and_then(|histories| {
            histories.iter().try_for_each(|history| self.push(history, &place, open.last))
        });
        self.keep_wrong(&open.source, pushed);
    }

    /// Processes an event of a call of `txn`, or a complete call.
    fn event(&mut self, text: &str, number: u64, source: &Arc<str>) -> Result<(), CliError> {
        let event = parse_event(text, number, source).map_err(ReadError::Malformed)?;
        let Some(event) = event else { return Ok(()) };
        let now = self.lines as i64;
        let place = format!("{source}:{number}");
        let (session, returns, status) = match event {
            CallEvent::Invoke { session, method, args } => {
                let call = RunningCall { method, args, start: now, source: source.clone() };
                let Entry::Vacant(slot) = self.running.entry(session.clone()) else {
                    return Err(CliError::with_hint(
                        format!("{place}: {session} is still running a transaction"),
                        "a session runs one transaction at a time, and ends an indeterminate one with \
                         {\"type\":\"info\"}",
                    ));
                };
                slot.insert(call);
                return Ok(());
            }
            CallEvent::Whole { session, method, args, returns, start, end } => {
                let call = RunningCall { method, args, start, source: source.clone() };
                let status = if end.is_none() { Status::Unknown } else { Status::Ok };
                return self.call(&session, call, (returns, status, end), &place, number);
            }
            CallEvent::Return { session, returns } => (session, returns, Status::Ok),
            CallEvent::Fail { session } => (session, None, Status::Fail),
            CallEvent::Abandon { session } => (session, None, Status::Unknown),
        };
        let Some(call) = self.running.remove(&session) else {
            return Err(CliError::with_hint(
                format!("{place}: {session} has no running transaction to complete"),
                "each completion follows its session's invocation",
            ));
        };
        let end = (status == Status::Ok).then_some(now);
        self.call(&session, call, (returns, status, end), &place, number)
    }

    /// Moves a call of `txn` into the window.
    fn call(
        &mut self,
        session: &str,
        call: RunningCall,
        (returns, status, end): (Option<Value>, Status, Option<i64>),
        place: &str,
        line: u64,
    ) -> Result<(), CliError> {
        let mut builder = HistoryBuilder::new();
        let session = builder.session(session);
        let args = call.args.into_iter().map(|value| builder.value(value)).collect();
        let returns = returns.map(|value| builder.value(value));
        let method = call.method.into();
        let id = builder.call(Call { method, args, returns });
        let time = Some(Interval { start: call.start, end });
        let details = Details { status, time, transaction: None };
        builder.push_with(session, Action::Call(id), details);
        let fail = |reason: String| {
            CliError::with_hint(
                format!("{place}: {reason}"),
                "a transaction is a call of `txn` with a list of steps, [[\"append\",\"x\",1],[\"r\",\"y\",null]]",
            )
        };
        let history = builder.finish().map_err(too_large)?;
        let history =
            transactions_of_calls(&history).map_err(|error| fail(error.reason.clone()))?;
        self.push(&history, place, line)
    }

    fn push(&mut self, history: &History, place: &str, line: u64) -> Result<(), CliError> {
        let count = self.window.push(history, line).map_err(|error| {
            CliError::with_hint(
                format!("{place}: {error}"),
                "judge the recording with `consistory check`",
            )
        })?;
        self.unjudged += count;
        self.transactions += count as u64;
        Ok(())
    }

    /// Records that a connection was closed: its open transactions are complete or indeterminate.
    pub(crate) fn closed(&mut self, source: &str) {
        let open = self.open.iter().filter(|(_, open)| *open.source == *source);
        for session in open.map(|(session, _)| session.clone()).collect::<Vec<_>>() {
            self.complete(&session);
        }
        self.abandon(|call| *call.source == *source);
    }

    /// Ends some running calls as indeterminate.
    fn abandon(&mut self, which: impl Fn(&RunningCall) -> bool) {
        let all = self.running.iter().filter(|(_, call)| which(call));
        for session in all.map(|(session, _)| session.clone()).collect::<Vec<_>>() {
            let Some(call) = self.running.remove(&session) else { continue };
            let source = Arc::clone(&call.source);
            let outcome = (None, Status::Unknown, None);
            let pushed = self.call(&session, call, outcome, &source, self.lines);
            self.keep_wrong(&source, pushed);
        }
    }

    /// Ends the input; returns the levels that are newly violated.
    pub(crate) fn end(&mut self) -> Result<Vec<usize>, CliError> {
        for session in self.open.keys().cloned().collect::<Vec<_>>() {
            self.complete(&session);
        }
        self.abandon(|_| true);
        self.window.finish();
        self.judge(Sourceless::Kept)
    }

    pub(crate) fn size(&self) -> Size {
        self.window.size()
    }

    /// Checks whether every level is violated, so that the watch can end.
    pub(crate) fn is_over(&self) -> bool {
        self.levels.iter().all(|state| state.violation.is_some())
    }

    /// Judges the window; returns the levels that are newly violated.
    fn judge(&mut self, sourceless: Sourceless) -> Result<Vec<usize>, CliError> {
        let started = Instant::now();
        let all = self.window.size().kept;
        let open: Vec<usize> =
            (0..self.levels.len()).filter(|&i| self.levels[i].violation.is_none()).collect();
        let history = self.window.history(all, sourceless).map_err(too_large)?;
        let mut found = Vec::new();
        if !open.is_empty() {
            let report = self.court(open.iter().map(|&i| self.levels[i].level))?.judge(&history)?;
            for verdict in report.iter() {
                let is_its = |&&i: &&usize| self.levels[i].level.id() == verdict.model().id();
                let Some(&i) = open.iter().find(is_its) else { continue };
                match verdict.outcome() {
                    Outcome::Consistent => {}
                    Outcome::Undecided => {
                        self.levels[i].undecided += 1;
                        self.levels[i].reason = verdict.explain_line();
                    }
                    Outcome::Violation => {
                        let violation = self.trace(self.levels[i].level, all, sourceless)?;
                        self.levels[i].violation = Some(violation);
                        found.push(i);
                    }
                }
            }
        }
        self.window.forget();
        self.unjudged = 0;
        self.judged_for = started.elapsed();
        self.judged_at = Instant::now();
        Ok(found)
    }

    fn court(&self, levels: impl Iterator<Item = Level>) -> Result<Court, CliError> {
        let court = Court::new().models(levels.map(|level| level.id()))?;
        Ok(court.order(self.order).budget(JUDGEMENT_BUDGET))
    }

    /// Finds the transaction that completes a violation, and the smallest part that shows it.
    fn trace(
        &self,
        level: Level,
        all: usize,
        sourceless: Sourceless,
    ) -> Result<LevelViolation, CliError> {
        let court = self.court([level].into_iter())?;
        let quick = self.court([level].into_iter())?.without_certification();
        let is_violated = |count: usize| -> Result<bool, CliError> {
            let history = self.window.history(count, sourceless).map_err(too_large)?;
            Ok(quick.judge(&history)?.iter().any(|verdict| verdict.is_violation()))
        };
        // If a prefix of the transactions has a violation, so has every longer one; the first
        // `high` have one.
        let (mut low, mut high) = (0, all);
        while low + 1 < high {
            let middle = low.midpoint(high);
            match is_violated(middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
        let history = self.window.history(high, sourceless).map_err(too_large)?;
        let report = court.judge(&history)?;
        let (session, line) = self.window.place_of(high - 1).unwrap_or(("", 0));
        let (session, line) = (session.to_owned(), line);
        let Some(verdict) = report.iter().find(|verdict| verdict.is_violation()) else {
            return Err(CliError::usage("the budget ended before a violation was explained"));
        };
        let shrunk = verdict.shrink()?;
        Ok(LevelViolation {
            pattern: verdict.pattern().unwrap_or_default(),
            session,
            line,
            history: shrunk.text(),
            explanation: shrunk.explain(),
        })
    }
}

fn too_large(error: HistoryError) -> CliError {
    CliError::usage(error.to_string())
}
