//! Judges the calls of a stream of lines, by linearizability and by weak models.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use consistory_formats::{CallEvent, ReadError, parse_event};
use consistory_history::{History, Value};
use consistory_objects::{Inexplicable, Online, OnlineError, RunningId, WeakOnline};
use consistory_spec::ObjectModel;
use rustc_hash::FxHashMap;

use crate::error::CliError;

/// Reason why the watch by a model ended.
pub(crate) enum Finding {
    /// A return that nothing explains.
    Violation {
        /// Reference of the operation.
        operation: String,
        /// The call and its return value.
        call: String,
        /// Line of its return.
        line: u64,
        /// Kind of that line.
        ended: Ended,
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

/// The end of a call at which a violation was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// It returned.
    Returned,
    /// It failed, and an earlier return needs its effect.
    Failed,
}

/// A model, with the engine that judges by it.
pub(crate) struct Judge {
    pub(crate) model: ObjectModel,
    engine: Engine,
    /// The finding that ended the watch by this model.
    pub(crate) finding: Option<Finding>,
}

enum Engine {
    Linearizability(Box<Online>),
    Weak(Box<WeakOnline>),
}

/// Data stored by a [`Judge`], and calls that it disregards.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stored {
    /// Largest number of configurations at a time, and number kept at the end.
    pub(crate) most: usize,
    pub(crate) kept: usize,
    /// Number of calls kept at the end.
    pub(crate) calls: usize,
    /// Number of calls given up or forgotten, and number of calls whose returns were ignored.
    pub(crate) given_up: u64,
    pub(crate) overdue: u64,
}

impl Judge {
    pub(crate) fn linearizability(model: ObjectModel, online: Online) -> Self {
        Judge { model, engine: Engine::Linearizability(Box::new(online)), finding: None }
    }

    pub(crate) fn weak(model: ObjectModel, online: WeakOnline) -> Self {
        Judge { model, engine: Engine::Weak(Box::new(online)), finding: None }
    }

    /// Returns the history of all calls so far, if it is kept.
    pub(crate) fn history(&self) -> Option<History> {
        match &self.engine {
            Engine::Linearizability(_) => None,
            Engine::Weak(online) => online.history(),
        }
    }

    pub(crate) fn stored(&self) -> Stored {
        match &self.engine {
            Engine::Linearizability(online) => {
                let size = online.size();
                Stored {
                    most: size.most,
                    kept: size.configurations,
                    calls: size.kept,
                    given_up: size.given_up,
                    overdue: size.overdue,
                }
            }
            Engine::Weak(online) => {
                let size = online.size();
                Stored {
                    most: 0,
                    kept: size.states,
                    calls: size.calls,
                    given_up: size.forgotten,
                    overdue: size.overdue,
                }
            }
        }
    }

    fn invoke(
        &mut self,
        session: &str,
        method: &str,
        args: Vec<Value>,
        start: i64,
    ) -> Result<RunningId, OnlineError> {
        match &mut self.engine {
            Engine::Linearizability(online) => online.invoke(method, args),
            Engine::Weak(online) => online.invoke(session, method, args, start),
        }
    }

    fn complete(
        &mut self,
        id: RunningId,
        returns: Option<Value>,
        end: i64,
    ) -> Result<Option<Inexplicable>, OnlineError> {
        match &mut self.engine {
            Engine::Linearizability(online) => online.complete(id, returns),
            Engine::Weak(online) => online.complete(id, returns, end),
        }
    }

    fn fail(&mut self, id: RunningId) -> Result<Option<Inexplicable>, OnlineError> {
        match &mut self.engine {
            Engine::Linearizability(online) => online.fail(id).map(|()| None),
            Engine::Weak(online) => online.fail(id),
        }
    }

    fn abandon(&mut self, id: RunningId) -> Result<(), OnlineError> {
        match &mut self.engine {
            Engine::Linearizability(online) => online.abandon(id),
            Engine::Weak(online) => online.abandon(id),
        }
    }

    fn finish(&mut self) -> Result<Option<Inexplicable>, OnlineError> {
        match &mut self.engine {
            Engine::Linearizability(online) => online.finish(),
            Engine::Weak(_) => Ok(None),
        }
    }

    /// Returns the number of the last returns that are not judged yet.
    fn unjudged(&self) -> usize {
        match &self.engine {
            Engine::Linearizability(online) => online.unjudged(),
            Engine::Weak(_) => 0,
        }
    }
}

/// Totals of the input.
pub(crate) struct Summary {
    pub(crate) operations: u64,
    pub(crate) lines: u64,
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

/// A line that is not an event, or an event that does not fit the events before it.
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
    pub(crate) judges: Vec<Judge>,
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
    pub(crate) fn new(judges: Vec<Judge>, window: usize) -> Self {
        Watcher {
            judges,
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

    /// Checks whether the watch by every model has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.judges.iter().all(|judge| judge.finding.is_some())
    }

    /// Processes a line; a line that is wrong changes nothing, and is returned by
    /// [`wrong_lines`](Self::wrong_lines).
    pub(crate) fn line(
        &mut self,
        text: &str,
        number: u64,
        source: &Arc<str>,
    ) -> Result<(), CliError> {
        let processed = self.process(text, number, source);
        self.keep_wrong(processed)
    }

    /// Returns the wrong lines since the last call of this function.
    pub(crate) fn wrong_lines(&mut self) -> Vec<WrongLine> {
        std::mem::take(&mut self.wrong)
    }

    fn keep_wrong(&mut self, processed: Result<(), Failure>) -> Result<(), CliError> {
        match processed {
            Ok(()) => Ok(()),
            Err(Failure::Defect(error)) => Err(error),
            Err(Failure::Line(wrong)) => {
                self.wrong.push(wrong);
                Ok(())
            }
        }
    }

    fn process(&mut self, text: &str, number: u64, source: &Arc<str>) -> Result<(), Failure> {
        let wrong = Failure::of(source);
        let event = parse_event(text, number, source)
            .map_err(|error| wrong(ReadError::Malformed(error).into()))?;
        let Some(event) = event else { return Ok(()) };
        self.lines += 1;
        let is_whole = matches!(event, CallEvent::Whole { .. });
        let place = format!("{source}:{number}");
        if self.is_whole.is_some_and(|known| known != is_whole) {
            return Err(wrong(CliError::with_hint(
                format!("{place}: events and whole calls in one stream"),
                "give every line a \"type\", or none",
            )));
        }
        self.event(event, number, source, &place)?;
        self.is_whole = Some(is_whole);
        Ok(())
    }

    fn event(
        &mut self,
        event: CallEvent,
        number: u64,
        source: &Arc<str>,
        place: &str,
    ) -> Result<(), Failure> {
        let wrong = Failure::of(source);
        let now = self.lines as i64;
        match event {
            CallEvent::Invoke { session, method, args } => {
                if let Some((Some(running), _)) = self.sessions.get(&session) {
                    return Err(wrong(CliError::with_hint(
                        format!("{place}: {session} is still running {}", running.operation),
                        "a session makes one call at a time, and ends an indeterminate one with \
                         {\"type\":\"info\"}",
                    )));
                }
                let mut running =
                    self.invoke(&session, &method, args, now, place).map_err(wrong)?;
                running.source = Arc::clone(source);
                let (slot, _) = self.sessions.entry(session).or_default();
                *slot = Some(running);
                Ok(())
            }
            CallEvent::Return { session, returns } => {
                let running = self.take_running(&session, place).map_err(wrong)?;
                self.complete(running, returns, now, number).map_err(Failure::Defect)
            }
            CallEvent::Fail { session } => {
                let running = self.take_running(&session, place).map_err(wrong)?;
                self.fail(running, number).map_err(Failure::Defect)
            }
            CallEvent::Abandon { session } => {
                let running = self.take_running(&session, place).map_err(wrong)?;
                self.abandon(running.id, place).map_err(Failure::Defect)
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
                    return Ok(());
                }
                let until = self.ends.pop_front();
                self.judge_until(until)
            }
        }
    }

    /// Processes the end of the input; to be called again after wrong lines.
    pub(crate) fn end(&mut self) -> Result<(), CliError> {
        let judged = self.judge_until(Some(i64::MAX));
        self.keep_wrong(judged)?;
        if !self.wrong.is_empty() {
            return Ok(());
        }
        let last = self.unjudged.back().map_or(String::new(), |last| last.operation.clone());
        self.judge_each(&last, Ended::Returned, Judge::finish)
    }

    /// Returns the totals; `rejected` is the number of lines that were rejected.
    pub(crate) fn summary(&self, rejected: u64) -> Summary {
        Summary { operations: self.operations, lines: self.lines, rejected }
    }

    /// Judges the completely recorded events up to a time.
    fn judge_until(&mut self, until: Option<i64>) -> Result<(), Failure> {
        let Some(until) = until else { return Ok(()) };
        while let Some(&Reverse((time, happens, id))) = self.due.peek()
            && time <= until
            && !self.is_over()
        {
            self.due.pop();
            let Some(mut call) = self.waiting.remove(&id) else { continue };
            let place = format!("{}:{}", call.source, call.line);
            match happens {
                Happens::Start => {
                    let args = std::mem::take(&mut call.args);
                    let running = self
                        .invoke(&call.session, &call.method, args, time, &place)
                        .map_err(Failure::of(&call.source))?;
                    if call.end.is_none() {
                        self.abandon(running.id, &place).map_err(Failure::Defect)?;
                        continue;
                    }
                    call.running = Some(running);
                    self.waiting.insert(id, call);
                }
                Happens::End => {
                    self.judged = Some(time);
                    let Some(running) = call.running else { continue };
                    self.complete(running, call.returns, time, call.line)
                        .map_err(Failure::Defect)?;
                }
            }
        }
        Ok(())
    }

    fn invoke(
        &mut self,
        session: &str,
        method: &str,
        args: Vec<Value>,
        start: i64,
        place: &str,
    ) -> Result<Running, CliError> {
        let shown: Vec<String> = args.iter().map(ToString::to_string).collect();
        let call = format!("{method}({})", shown.join(","));
        let mut id = None;
        for judge in self.judges.iter_mut().filter(|judge| judge.finding.is_none()) {
            let invoked = judge.invoke(session, method, args.clone(), start);
            // Engines number the same calls alike.
            id = Some(invoked.map_err(|error| match &error {
                OnlineError::Whole { .. } => CliError::with_hint(
                    format!("{place}: {error}"),
                    "judge the object as a whole with --whole",
                ),
                error => CliError::usage(format!("{place}: {error}")),
            })?);
        }
        let Some(id) = id else { return Err(broken(place, &OnlineError::NotRunning)) };
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

    /// Records that a call is indeterminate.
    fn abandon(&mut self, id: RunningId, place: &str) -> Result<(), CliError> {
        for judge in self.judges.iter_mut().filter(|judge| judge.finding.is_none()) {
            judge.abandon(id).map_err(|error| broken(place, &error))?;
        }
        Ok(())
    }

    /// Records that a connection was closed: its running calls become indeterminate.
    pub(crate) fn closed(&mut self, source: &str) -> Result<(), CliError> {
        let mut lost = Vec::new();
        for (slot, _) in self.sessions.values_mut() {
            lost.extend(slot.take_if(|running| *running.source == *source));
        }
        lost.sort_by_key(|running| running.id);
        lost.into_iter().try_for_each(|running| self.abandon(running.id, source))
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
        end: i64,
        line: u64,
    ) -> Result<(), CliError> {
        let Running { id, operation, call, .. } = running;
        let call = match &returns {
            Some(value) => format!("{call} => {value}"),
            None => call,
        };
        let last = operation.clone();
        self.unjudged.push_back(Returned { id, operation, call, line });
        self.judge_each(&last, Ended::Returned, |judge| judge.complete(id, returns.clone(), end))?;
        self.drop_judged();
        Ok(())
    }

    /// Records that a call had no effect.
    fn fail(&mut self, running: Running, line: u64) -> Result<(), CliError> {
        let Running { id, operation, call, .. } = running;
        let last = operation.clone();
        self.unjudged.push_back(Returned { id, operation, call, line });
        self.judge_each(&last, Ended::Failed, |judge| judge.fail(id))?;
        self.unjudged.retain(|returned| returned.id != id);
        Ok(())
    }

    /// Drops the calls whose returns every engine has judged.
    fn drop_judged(&mut self) {
        let open = self.judges.iter().filter(|judge| judge.finding.is_none());
        let most = open.map(Judge::unjudged).max().unwrap_or(0);
        while self.unjudged.len() > most {
            self.unjudged.pop_front();
        }
    }

    /// Passes an event to every engine that has found nothing yet; `last` is the call that ended.
    fn judge_each(
        &mut self,
        last: &str,
        ended: Ended,
        mut event: impl FnMut(&mut Judge) -> Result<Option<Inexplicable>, OnlineError>,
    ) -> Result<(), CliError> {
        for at in 0..self.judges.len() {
            if self.judges[at].finding.is_none() {
                let found = event(&mut self.judges[at]);
                self.judges[at].finding = self.finding(found, last, ended)?;
            }
        }
        Ok(())
    }

    /// Describes the finding after the end of `last`.
    fn finding(
        &self,
        found: Result<Option<Inexplicable>, OnlineError>,
        last: &str,
        ended: Ended,
    ) -> Result<Option<Finding>, CliError> {
        let wrong = match found {
            Ok(None) => return Ok(None),
            Ok(Some(wrong)) => wrong,
            Err(
                error @ (OnlineError::TooMany { .. }
                | OnlineError::TooLong { .. }
                | OnlineError::Forgotten { .. }
                | OnlineError::Stopped(_)
                | OnlineError::GivenUp { .. }),
            ) => {
                let (operation, reason) = (last.to_owned(), error.to_string());
                return Ok(Some(Finding::Undecided { operation, reason }));
            }
            Err(error) => return Err(broken(last, &error)),
        };
        let Some(returned) = self.unjudged.iter().find(|returned| returned.id == wrong.call) else {
            return Err(broken(last, &OnlineError::NotRunning));
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
            ended,
            possible: wrong.possible,
            running,
            explained: wrong.configurations,
        }))
    }
}

/// Returns an error that only a defect can cause: every call that ends here was accepted before.
fn broken(place: &str, error: &OnlineError) -> CliError {
    CliError::with_hint(format!("{place}: {error}"), "this is a bug in Consistory")
}
