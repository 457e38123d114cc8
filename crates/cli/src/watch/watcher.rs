//! Judges the calls of a stream of lines.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use consistory_formats::{CallEvent, ReadError, parse_event};
use consistory_history::Value;
use consistory_objects::{Inexplicable, Online, OnlineError, RunningId};
use rustc_hash::FxHashMap;

use crate::error::CliError;

/// Reason why the watch ended.
pub(crate) enum Finding {
    /// A return that nothing explains.
    Violation {
        /// Reference of the operation.
        operation: String,
        /// The call and its return value.
        call: String,
        /// Line of its return.
        line: u64,
        /// Values that it could have returned.
        possible: Vec<Value>,
        /// The other running calls.
        running: Vec<String>,
        /// Number of configurations before.
        explained: usize,
    },
    /// There are too many configurations to keep.
    Undecided {
        /// Operation at whose return this happened.
        operation: String,
        /// Reason.
        reason: String,
    },
}

/// Totals of the input.
pub(crate) struct Summary {
    pub(crate) operations: u64,
    pub(crate) lines: u64,
    /// Largest number of configurations at a time, and number kept at the end.
    pub(crate) most: usize,
    pub(crate) kept: usize,
    /// Number of calls kept at the end.
    pub(crate) calls: usize,
    /// Number of calls given up, and number of calls whose returns were ignored.
    pub(crate) given_up: u64,
    pub(crate) overdue: u64,
    /// Number of lines of connections that were rejected.
    pub(crate) rejected: u64,
}

/// A call that is running.
struct Running {
    id: RunningId,
    /// Reference of the operation, and its call.
    operation: String,
    call: String,
    /// Source of the line of its invocation.
    source: Arc<str>,
}

/// The next event of a completely recorded call: its time, its kind, and the call.
type Due = Reverse<(i64, Happens, u64)>;

/// The kind of an event; calls precede returns with the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Start,
    End,
}

/// A line that is no event, or an event that does not fit those before it.
pub(crate) struct WrongLine {
    /// Source of the line.
    pub(crate) source: Arc<str>,
    /// What is wrong.
    pub(crate) error: CliError,
}

/// Why a line was not processed.
enum Failure {
    Line(WrongLine),
    /// A defect of this program.
    Defect(CliError),
}

impl Failure {
    fn of(source: &Arc<str>) -> impl Fn(CliError) -> Failure {
        move |error| Failure::Line(WrongLine { source: Arc::clone(source), error })
    }
}

/// A completely recorded call that is not judged yet.
struct Waiting {
    source: Arc<str>,
    session: String,
    method: String,
    args: Vec<Value>,
    returns: Option<Value>,
    end: Option<i64>,
    line: u64,
    running: Option<Running>,
}

/// Largest number of known sessions, unless more have running calls.
const MAX_KNOWN_SESSIONS: usize = 1 << 16;

/// Judges lines online.
pub(crate) struct Watcher {
    online: Online,
    /// Running call of each session, and the number of calls that it has made.
    sessions: FxHashMap<String, (Option<Running>, u64)>,
    most_sessions: usize,
    operations: u64,
    lines: u64,
    /// Whether lines are complete calls; known after the first line.
    is_whole: Option<bool>,
    window: usize,
    due: BinaryHeap<Due>,
    waiting: FxHashMap<u64, Waiting>,
    /// Ends of the last lines, up to the size of the window.
    ends: VecDeque<i64>,
    /// Time up to which all events are judged.
    judged: Option<i64>,
    /// Last calls that returned and are not judged yet.
    unjudged: VecDeque<Returned>,
    /// The lines that were not processed, since they were asked for.
    wrong: Vec<WrongLine>,
}

/// A call that returned.
struct Returned {
    id: RunningId,
    operation: String,
    call: String,
    line: u64,
}

impl Watcher {
    pub(crate) fn new(online: Online, window: usize) -> Self {
        Watcher {
            online,
            sessions: FxHashMap::default(),
            most_sessions: MAX_KNOWN_SESSIONS,
            operations: 0,
            lines: 0,
            is_whole: None,
            window,
            due: BinaryHeap::new(),
            waiting: FxHashMap::default(),
            ends: VecDeque::new(),
            judged: None,
            unjudged: VecDeque::new(),
            wrong: Vec::new(),
        }
    }

    /// Processes a line. Returns the finding that ends the watch, if there is one; a line that is
    /// wrong changes nothing, and is returned by [`wrong_lines`](Self::wrong_lines).
    pub(crate) fn line(
        &mut self,
        text: &str,
        number: u64,
        source: &Arc<str>,
    ) -> Result<Option<Finding>, CliError> {
        let processed = self.process(text, number, source);
        self.keep_wrong(processed)
    }

    /// Returns the wrong lines since the last call of this function.
    pub(crate) fn wrong_lines(&mut self) -> Vec<WrongLine> {
        std::mem::take(&mut self.wrong)
    }

    fn keep_wrong(
        &mut self,
        processed: Result<Option<Finding>, Failure>,
    ) -> Result<Option<Finding>, CliError> {
        match processed {
            Ok(finding) => Ok(finding),
            Err(Failure::Defect(error)) => Err(error),
            Err(Failure::Line(wrong)) => {
                self.wrong.push(wrong);
                Ok(None)
            }
        }
    }

    fn process(
        &mut self,
        text: &str,
        number: u64,
        source: &Arc<str>,
    ) -> Result<Option<Finding>, Failure> {
        let wrong = Failure::of(source);
        let event = parse_event(text, number, source)
            .map_err(|error| wrong(ReadError::Malformed(error).into()))?;
        let Some(event) = event else { return Ok(None) };
        self.lines += 1;
        let is_whole = matches!(event, CallEvent::Whole { .. });
        let place = format!("{source}:{number}");
        if self.is_whole.is_some_and(|known| known != is_whole) {
            return Err(wrong(CliError::with_hint(
                format!("{place}: events and whole calls in one stream"),
                "give every line a \"type\", or none",
            )));
        }
        let finding = self.event(event, number, source, &place)?;
        self.is_whole = Some(is_whole);
        Ok(finding)
    }

    fn event(
        &mut self,
        event: CallEvent,
        number: u64,
        source: &Arc<str>,
        place: &str,
    ) -> Result<Option<Finding>, Failure> {
        let wrong = Failure::of(source);
        match event {
            CallEvent::Invoke { session, method, args } => {
                if let Some((Some(running), _)) = self.sessions.get(&session) {
                    return Err(wrong(CliError::with_hint(
                        format!("{place}: {session} is still running {}", running.operation),
                        "a session makes one call at a time, and ends an indeterminate one with \
                         {\"type\":\"info\"}",
                    )));
                }
                let mut running = self.invoke(&session, &method, args, place).map_err(wrong)?;
                running.source = Arc::clone(source);
                let (slot, _) = self.sessions.entry(session).or_default();
                *slot = Some(running);
                Ok(None)
            }
            CallEvent::Return { session, returns } => {
                let running = self.take_running(&session, place).map_err(wrong)?;
                self.complete(running, returns, number).map_err(Failure::Defect)
            }
            CallEvent::Fail { session } => {
                let running = self.take_running(&session, place).map_err(wrong)?;
                self.online.fail(running.id).map_err(|error| defect(place, &error))?;
                Ok(None)
            }
            CallEvent::Abandon { session } => {
                let running = self.take_running(&session, place).map_err(wrong)?;
                self.online.abandon(running.id).map_err(|error| defect(place, &error))?;
                Ok(None)
            }
            CallEvent::Whole { session, method, args, returns, start, end } => {
                if self.judged.is_some_and(|judged| start <= judged) {
                    return Err(wrong(CliError::with_hint(
                        format!(
                            "{place}: a call that started at {start} comes too late: all that \
                             returned up to {} is judged",
                            self.judged.unwrap_or_default()
                        ),
                        "calls come in the order of their ends; for calls that last longer make \
                         --window larger, or write events with a \"type\"",
                    )));
                }
                let id = self.lines;
                self.due.push(Reverse((start, Happens::Start, id)));
                self.due.extend(end.map(|end| Reverse((end, Happens::End, id))));
                let line = number;
                let (source, running) = (Arc::clone(source), None);
                let waiting =
                    Waiting { source, session, method, args, returns, end, line, running };
                self.waiting.insert(id, waiting);
                self.ends.extend(end);
                if self.ends.len() <= self.window {
                    return Ok(None);
                }
                let until = self.ends.pop_front();
                self.judge_until(until)
            }
        }
    }

    /// Processes the end of the input; to be called again after wrong lines.
    pub(crate) fn end(&mut self) -> Result<Option<Finding>, CliError> {
        let judged = self.judge_until(Some(i64::MAX));
        let finding = self.keep_wrong(judged)?;
        if finding.is_some() || !self.wrong.is_empty() {
            return Ok(finding);
        }
        let last = self.unjudged.back().map_or(String::new(), |last| last.operation.clone());
        let found = self.online.finish();
        self.finding(found, last)
    }

    /// Returns the totals; `rejected` is the number of lines that were rejected.
    pub(crate) fn summary(&self, rejected: u64) -> Summary {
        let size = self.online.size();
        Summary {
            operations: self.operations,
            lines: self.lines,
            most: size.most,
            kept: size.configurations,
            calls: size.kept,
            given_up: size.given_up,
            overdue: size.overdue,
            rejected,
        }
    }

    /// Judges the completely recorded events up to a time.
    fn judge_until(&mut self, until: Option<i64>) -> Result<Option<Finding>, Failure> {
        let Some(until) = until else { return Ok(None) };
        while let Some(&Reverse((time, happens, id))) = self.due.peek()
            && time <= until
        {
            self.due.pop();
            let Some(mut call) = self.waiting.remove(&id) else { continue };
            let place = format!("{}:{}", call.source, call.line);
            match happens {
                Happens::Start => {
                    let args = std::mem::take(&mut call.args);
                    let running = self
                        .invoke(&call.session, &call.method, args, &place)
                        .map_err(Failure::of(&call.source))?;
                    if call.end.is_none() {
                        self.online.abandon(running.id).map_err(|error| defect(&place, &error))?;
                        continue;
                    }
                    call.running = Some(running);
                    self.waiting.insert(id, call);
                }
                Happens::End => {
                    self.judged = Some(time);
                    let Some(running) = call.running else { continue };
                    let finding =
                        self.complete(running, call.returns, call.line).map_err(Failure::Defect)?;
                    if finding.is_some() {
                        return Ok(finding);
                    }
                }
            }
        }
        Ok(None)
    }

    fn invoke(
        &mut self,
        session: &str,
        method: &str,
        args: Vec<Value>,
        place: &str,
    ) -> Result<Running, CliError> {
        let shown: Vec<String> = args.iter().map(ToString::to_string).collect();
        let call = format!("{method}({})", shown.join(","));
        let id = self.online.invoke(method, args).map_err(|error| match &error {
            OnlineError::Whole { .. } => CliError::with_hint(
                format!("{place}: {error}"),
                "judge the object as a whole with --whole",
            ),
            error => CliError::usage(format!("{place}: {error}")),
        })?;
        if self.sessions.len() > self.most_sessions {
            // New session names keep arriving; a session that returns later is counted from 0
            // again.
            self.sessions.retain(|_, (running, _)| running.is_some());
            self.most_sessions = MAX_KNOWN_SESSIONS.max(2 * self.sessions.len());
        }
        let count = match self.sessions.get_mut(session) {
            Some((_, count)) => count,
            None => &mut self.sessions.entry(session.to_owned()).or_default().1,
        };
        let operation = format!("{session}:{count}");
        *count += 1;
        self.operations += 1;
        Ok(Running { id, operation, call, source: "".into() })
    }

    /// Records that a connection was closed: its running calls become indeterminate.
    pub(crate) fn closed(&mut self, source: &str) -> Result<(), CliError> {
        for (slot, _) in self.sessions.values_mut() {
            if let Some(running) = slot.take_if(|running| *running.source == *source) {
                self.online.abandon(running.id).map_err(|error| broken(source, &error))?;
            }
        }
        Ok(())
    }

    fn take_running(&mut self, session: &str, place: &str) -> Result<Running, CliError> {
        let slot = self.sessions.get_mut(session).and_then(|(running, _)| running.take());
        slot.ok_or_else(|| {
            CliError::with_hint(
                format!("{place}: {session} has no running call to complete"),
                "each completion follows its session's invocation",
            )
        })
    }

    fn complete(
        &mut self,
        running: Running,
        returns: Option<Value>,
        line: u64,
    ) -> Result<Option<Finding>, CliError> {
        let Running { id, operation, call, .. } = running;
        let call = match &returns {
            Some(value) => format!("{call} => {value}"),
            None => call,
        };
        let last = operation.clone();
        self.unjudged.push_back(Returned { id, operation, call, line });
        let found = self.online.complete(id, returns);
        let finding = self.finding(found, last)?;
        while self.unjudged.len() > self.online.unjudged() {
            self.unjudged.pop_front();
        }
        Ok(finding)
    }

    /// Describes the finding after the return of `last`.
    fn finding(
        &self,
        found: Result<Option<Inexplicable>, OnlineError>,
        last: String,
    ) -> Result<Option<Finding>, CliError> {
        let wrong = match found {
            Ok(None) => return Ok(None),
            Ok(Some(wrong)) => wrong,
            Err(
                error @ (OnlineError::TooMany { .. }
                | OnlineError::TooLong { .. }
                | OnlineError::GivenUp { .. }),
            ) => {
                return Ok(Some(Finding::Undecided { operation: last, reason: error.to_string() }));
            }
            Err(error) => return Err(broken(&last, &error)),
        };
        let Some(returned) = self.unjudged.iter().find(|returned| returned.id == wrong.call) else {
            return Err(broken(&last, &OnlineError::NotRunning));
        };
        let shown = |r: &Running| format!("{} {}", r.operation, r.call);
        let waiting = self.waiting.values().filter_map(|call| call.running.as_ref());
        let others = self.sessions.values().filter_map(|(running, _)| running.as_ref());
        let mut running: Vec<String> = waiting.chain(others).map(shown).collect();
        running.sort();
        // The calls running now are not those that were running then.
        if returned.operation != last {
            running.clear();
        }
        Ok(Some(Finding::Violation {
            operation: returned.operation.clone(),
            call: returned.call.clone(),
            line: returned.line,
            possible: wrong.possible,
            running,
            explained: wrong.configurations,
        }))
    }
}

fn defect(place: &str, error: &OnlineError) -> Failure {
    Failure::Defect(broken(place, error))
}

/// Returns an error that only a defect can cause: every call that ends here was accepted before.
fn broken(place: &str, error: &OnlineError) -> CliError {
    CliError::with_hint(format!("{place}: {error}"), "this is a bug in Consistory")
}
