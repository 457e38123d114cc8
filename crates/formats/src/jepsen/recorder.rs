//! Builds a history from events.
//!
//! Events are stored until the input ends, because some decisions depend on all of them:
//!
//! - **Times.** If every event has a time and each is later than the one before, these are the
//!   times of the history. Otherwise the time of an event is its position among all events, which
//!   is the order in which they were recorded.
//! - **Completions only.** A recording may leave out the invocations. Then no times are known, and
//!   the order of a process is the order of its lines.
//! - **No processes.** An operation without a process is a session of its own, because its order
//!   relative to other operations was not recorded. An invocation without a process must be
//!   completed by the next event without a process.
//! - **Transactions.** If every operation is a transaction of reads, writes and appends, the
//!   history consists of transactions; otherwise all operations are calls. A key that was never
//!   written reads as nil, so 0 is a value like any other.
//! - **Independent keys.** Jepsen's workloads on many keys wrap each value in a pair,
//!   `[key value]`. If every read is invoked with `[key nil]` and completed with `[key value]`, and
//!   the values of all other operations are pairs too, the key becomes the first argument of each
//!   call.

use consistory_history::{
    Action, Call, Details, History, HistoryBuilder, Interval, SessionId, Status, Value,
    transactions_of_calls,
};
use rustc_hash::FxHashMap;

use super::shape::{self, CallShape};
use crate::limits::Limits;
use crate::parse::{Fault, Line, Sink};

/// Type of an event: the state of its operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EventType {
    /// The operation starts.
    Invoke,
    /// The operation took effect.
    Ok,
    /// The operation did not take effect.
    Fail,
    /// The outcome of the operation is unknown.
    Info,
}

impl EventType {
    /// Names of all types.
    pub(crate) const NAMES: [&str; 4] = ["invoke", "ok", "fail", "info"];

    /// Finds a type by its name.
    pub(crate) fn find(name: &str) -> Option<EventType> {
        Some(match name {
            "invoke" => EventType::Invoke,
            "ok" => EventType::Ok,
            "fail" => EventType::Fail,
            "info" => EventType::Info,
            _ => return None,
        })
    }
}

/// An event.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Event {
    /// The process, if one is given.
    pub(crate) process: Option<String>,
    pub(crate) kind: EventType,
    /// The operation's name; an event without one belongs to a transaction.
    pub(crate) f: Option<String>,
    pub(crate) key: Option<Value>,
    pub(crate) value: Value,
    pub(crate) time: Option<i64>,
    /// Number of the line in which the event begins.
    pub(crate) line: u64,
}

/// Reason why an event does not fit the previous ones, and the part of it that is wrong.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(crate) part: Part,
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// A part of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Process,
    Name,
    Whole,
}

impl Misfit {
    fn new(part: Part, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Misfit { part, message: message.into(), hint: hint.into() }
    }
}

/// Outcome of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    Ok,
    Fail,
    Info,
    /// The recording ends without a completion.
    Missing,
}

/// An operation whose events have been paired.
struct Recorded {
    session: SessionId,
    f: String,
    key: Option<Value>,
    invoked: Value,
    /// Value of the completion, if there was one.
    completed: Option<Value>,
    ending: Ending,
    start: Stamp,
    end: Option<Stamp>,
    line: u64,
}

/// Position and time of an event.
#[derive(Clone, Copy)]
struct Stamp {
    position: i64,
    time: Option<i64>,
}

/// Pairs events and builds a history.
#[derive(Default)]
pub(crate) struct Recorder {
    sessions: FxHashMap<String, SessionId>,
    names: Vec<String>,
    operations: Vec<Recorded>,
    /// Pending operation of each session.
    under_way: Vec<Option<usize>>,
    /// Pending operation without a process.
    anonymous: Option<usize>,
    events: i64,
    /// Time of the last event, as long as times increase.
    last_time: Option<i64>,
    has_unordered_times: bool,
    invocations: bool,
    lone_completions: bool,
}

const ONE_AT_A_TIME: &str =
    "a process performs one operation at a time, and ends one whose outcome is unknown with info";

impl Recorder {
    /// Adds the next event.
    pub(crate) fn event(&mut self, event: Event) -> Result<(), Misfit> {
        if event.process.as_deref() == Some("nemesis") {
            return Ok(());
        }
        match event.kind {
            EventType::Invoke => self.invoke(event),
            _ => self.complete(event),
        }
    }

    fn invoke(&mut self, event: Event) -> Result<(), Misfit> {
        if self.lone_completions {
            return Err(Misfit::new(
                Part::Whole,
                "an invocation after completions without one",
                "a recording has all invocations or none",
            ));
        }
        self.invocations = true;
        let f = name_of(&event)?;
        let at = self.operations.len();
        let session = match &event.process {
            Some(process) => {
                let session = self.session(process);
                let slot = &mut self.under_way[session.index()];
                if let Some(earlier) = *slot {
                    let line = self.operations[earlier].line;
                    return Err(Misfit::new(
                        Part::Process,
                        format!("process {process} already has a pending operation"),
                        format!("it was invoked in line {line}; {ONE_AT_A_TIME}"),
                    ));
                }
                *slot = Some(at);
                session
            }
            None => {
                if let Some(earlier) = self.anonymous {
                    let line = self.operations[earlier].line;
                    return Err(Misfit::new(
                        Part::Whole,
                        "the process is missing, and another operation without a process is pending",
                        format!("it was invoked in line {line}; give every event its process"),
                    ));
                }
                self.anonymous = Some(at);
                self.fresh_session()
            }
        };
        let start = self.stamp(event.time);
        self.operations.push(Recorded {
            session,
            f,
            key: event.key,
            invoked: event.value,
            completed: None,
            ending: Ending::Missing,
            start,
            end: None,
            line: event.line,
        });
        Ok(())
    }

    fn complete(&mut self, event: Event) -> Result<(), Misfit> {
        let found = match &event.process {
            Some(process) => {
                let session = self.sessions.get(process);
                session.and_then(|session| self.under_way[session.index()].take())
            }
            None => self.anonymous.take(),
        };
        let ending = match event.kind {
            EventType::Ok => Ending::Ok,
            EventType::Fail => Ending::Fail,
            _ => Ending::Info,
        };
        let Some(found) = found else { return self.complete_alone(event, ending) };
        if let Some(f) = &event.f
            && *f != self.operations[found].f
        {
            let invoked = &self.operations[found].f;
            let process = event.process.as_deref().map_or("it".into(), |p| format!("process {p}"));
            return Err(Misfit::new(
                Part::Name,
                format!("{process} has invoked :{invoked}, not :{f}"),
                "an operation is completed by its own name",
            ));
        }
        // An indeterminate operation does not end, so the time of its event is ignored.
        let stamp = match ending {
            Ending::Info => {
                self.events += 1;
                None
            }
            _ => Some(self.stamp(event.time)),
        };
        let operation = &mut self.operations[found];
        operation.completed = Some(event.value);
        operation.ending = ending;
        operation.end = stamp;
        Ok(())
    }

    /// Adds a completion of an operation that was not invoked.
    fn complete_alone(&mut self, event: Event, ending: Ending) -> Result<(), Misfit> {
        if self.invocations {
            let process = event.process.as_deref().map_or(String::new(), |p| format!(" {p}"));
            return Err(Misfit::new(
                Part::Process,
                format!("process{process} has no pending operation to complete"),
                "each completion follows its process's invocation",
            ));
        }
        self.lone_completions = true;
        let f = name_of(&event)?;
        let session = match &event.process {
            Some(process) => self.session(process),
            None => self.fresh_session(),
        };
        let start = self.stamp(event.time);
        self.operations.push(Recorded {
            session,
            f,
            key: event.key,
            invoked: event.value.clone(),
            completed: Some(event.value),
            ending,
            start,
            end: None,
            line: event.line,
        });
        Ok(())
    }

    /// Returns the name and value of the pending operation of a process.
    pub(crate) fn under_way(&self, process: &str) -> Option<(&str, &Value)> {
        let session = self.sessions.get(process)?;
        let operation = &self.operations[self.under_way[session.index()]?];
        Some((&operation.f, &operation.invoked))
    }

    fn session(&mut self, process: &str) -> SessionId {
        if let Some(&session) = self.sessions.get(process) {
            return session;
        }
        let session = SessionId::new(self.names.len());
        self.sessions.insert(process.to_owned(), session);
        self.names.push(process.to_owned());
        self.under_way.push(None);
        session
    }

    /// Adds a session for an operation without a process.
    fn fresh_session(&mut self) -> SessionId {
        let mut number = self.names.len();
        while self.sessions.contains_key(&number.to_string()) {
            number += 1;
        }
        self.session(&number.to_string())
    }

    fn stamp(&mut self, time: Option<i64>) -> Stamp {
        let is_later = match (self.last_time, time) {
            (_, None) => false,
            (None, Some(_)) => self.events == 0,
            (Some(last), Some(time)) => last < time,
        };
        self.has_unordered_times |= !is_later;
        self.last_time = time;
        let position = self.events;
        self.events += 1;
        Stamp { position, time }
    }

    /// Ends the input.
    pub(crate) fn end(&mut self, sink: &mut Sink, line: Line<'_>) {
        let recorder = std::mem::take(self);
        if recorder.operations.is_empty() {
            return;
        }
        match recorder.build(&sink.limits) {
            _ if sink.limits.stopped().is_some() => {}
            Ok(_) if !sink.diagnostics.is_empty() => {}
            Ok(history) => sink.finished.push_back(history),
            Err((number, message)) => {
                let line = Line { number, ..line };
                sink.report(line, Fault::new(0..0, message));
            }
        }
    }

    /// Builds the history, or returns the line of an invalid operation with an error message.
    fn build(self, limits: &Limits) -> Result<History, (u64, String)> {
        let has_times = !self.has_unordered_times;
        let is_keyed = is_keyed(&self.operations);
        let lines: Vec<u64> = self.operations.iter().map(|operation| operation.line).collect();
        let mut builder = HistoryBuilder::new();
        for name in &self.names {
            builder.session(name);
        }
        // Operations are ordered by their positions within each session.
        for operation in &self.operations {
            if !limits.has_time() {
                break;
            }
            let when = |stamp: Stamp| match stamp.time {
                Some(time) if has_times => time,
                _ => stamp.position,
            };
            let time = self.invocations.then(|| Interval {
                start: when(operation.start),
                end: match operation.ending {
                    Ending::Ok | Ending::Fail => operation.end.map(when),
                    Ending::Info | Ending::Missing => None,
                },
            });
            let CallShape { method, args, returns } = operation.shape(is_keyed);
            let status = match operation.ending {
                Ending::Fail => Status::Fail,
                // A call without an end is pending; without any time, this needs the status.
                Ending::Info | Ending::Missing if time.is_none() => Status::Unknown,
                _ => Status::Ok,
            };
            let args = args.into_iter().map(|arg| builder.value(arg)).collect();
            let returns = returns.map(|value| builder.value(value));
            let call = builder.call(Call { method: method.into(), args, returns });
            let details = Details { status, time, transaction: None };
            builder.push_with(operation.session, Action::Call(call), details);
        }
        let first = lines.first().copied().unwrap_or(1);
        let calls = builder.finish().map_err(|error| (first, error.to_string()))?;
        let is_transaction = |operation: &Recorded| {
            shape::is_transaction(&operation.f) && shape::is_steps(&operation.invoked)
        };
        if !self.operations.iter().all(is_transaction) {
            return Ok(calls);
        }
        transactions_of_calls(&calls).map_err(|error| {
            let place = calls.find(&error.op);
            let line = place.and_then(|op| {
                let mut same = calls.session_ops(calls.session_of(op)).take_while(|&o| o < op);
                let index = same.by_ref().count();
                let of_session =
                    self.operations.iter().filter(|o| o.session == calls.session_of(op));
                of_session.map(|o| o.line).nth(index)
            });
            (line.unwrap_or(first), error.to_string())
        })
    }
}

fn name_of(event: &Event) -> Result<String, Misfit> {
    match &event.f {
        Some(f) => Ok(f.clone()),
        None if shape::is_steps(&event.value) => Ok("txn".into()),
        None => Err(Misfit::new(
            Part::Whole,
            ":f is missing",
            "an event says what it does, as in {:process 0, :type :invoke, :f :read, :value nil}; only transactions may leave it out",
        )),
    }
}

impl Recorded {
    fn shape(&self, is_keyed: bool) -> CallShape {
        let (mut key, mut invoked) = (self.key.clone(), self.invoked.clone());
        let mut completed = match self.ending {
            Ending::Ok => self.completed.clone(),
            _ => None,
        };
        if is_keyed {
            (key, invoked) = split_pair(invoked);
            completed = completed.map(|value| split_pair(value).1);
        }
        shape::of_event(self.f.clone(), key, invoked, completed)
    }
}

/// Splits `[key value]`.
fn split_pair(value: Value) -> (Option<Value>, Value) {
    match value {
        Value::List(mut pair) if pair.len() == 2 => {
            let value = pair.pop().unwrap_or(Value::Null);
            (pair.pop(), value)
        }
        other => (None, other),
    }
}

/// Checks whether the values of all operations are pairs of a key and a value.
fn is_keyed(operations: &[Recorded]) -> bool {
    let pair = |value: &Value| match value {
        Value::List(pair) if pair.len() == 2 => Some((pair[0].clone(), pair[1].clone())),
        _ => None,
    };
    let mut has_keyed_read = false;
    let all = operations.iter().all(|operation| {
        let Some((key, value)) = pair(&operation.invoked) else { return false };
        let is_same_key = operation
            .completed
            .as_ref()
            .filter(|_| operation.ending == Ending::Ok)
            .is_none_or(|completed| pair(completed).is_some_and(|(other, _)| other == key));
        let is_read = &*operation.f == "read";
        has_keyed_read |= is_read && value == Value::Null;
        let fits = match &*operation.f {
            "read" => value == Value::Null,
            "cas" => pair(&value).is_some(),
            name => !shape::is_transaction(name),
        };
        operation.key.is_none() && is_same_key && fits
    });
    all && has_keyed_read
}
