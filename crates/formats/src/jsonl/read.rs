//! Reading JSON lines.

use std::borrow::Cow;
use std::ops::Range;

use consistory_history::{
    Action, Call, Details, HistoryBuilder, Interval, KeyId, OpenTransaction, SessionId, Status,
    Value, ValueId,
};
use rustc_hash::FxHashSet;

use super::event::{CallEvent, event};
use super::json::{Object, list, offset_in, text_of, value_of};
use super::scan::{Field, Fields, scan_any, scan_flat};
use crate::events::{Events, Invocation, Outcome};
use crate::parse::{Fault, Line, Parse, Sink, beyond_i64, nearest};

/// The parser of JSON lines.
#[derive(Default)]
pub(crate) struct Jsonl {
    builder: HistoryBuilder,
    /// Name of the current history: `None` before the first line, `Some(None)` for a history
    /// without a name.
    history: Option<Option<String>>,
    /// Session of the last operation, by the JSON text of its name.
    last_session: Option<(String, SessionId)>,
    /// Transaction of each session's last operation.
    transactions: Vec<Current>,
    initial: FxHashSet<KeyId>,
    finals: FxHashSet<KeyId>,
    /// Calls of a history whose lines are events.
    events: Option<Events>,
    last_line: u64,
}

/// Transaction that the next operation of a session may belong to.
#[derive(Default)]
struct Current {
    name: String,
    open: Option<(OpenTransaction, Status)>,
}

impl Parse for Jsonl {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) {
        self.last_line = line.number;
        let before = sink.diagnostics.count();
        let fields = match scan_flat(line.text) {
            Some(fields) => fields,
            None if line.text.trim().is_empty() => return,
            None => match scan_any(line, sink) {
                Some(fields) => fields,
                None => return,
            },
        };
        if self.events.is_some() || fields.get(Field::Type).is_some() {
            return self.event(line, &fields, sink);
        }
        // An unknown field may be a misspelt required field.
        let is_complete = sink.diagnostics.count() == before;
        let mut reader = LineReader { line, fields, is_complete, builder: &mut self.builder, sink };
        let name = reader.text(Field::History);
        if !reader.is_same_history(name.as_deref(), &mut self.history) {
            self.start_history(name.as_deref(), line, sink);
            reader = LineReader { line, fields, is_complete, builder: &mut self.builder, sink };
        }
        if fields.get(Field::Init).is_some() || fields.get(Field::Final).is_some() {
            reader.bindings(&mut self.initial, &mut self.finals);
            return;
        }
        let operation = reader.operation();
        if sink.diagnostics.count() > before {
            return;
        }
        let Some(Operation { session, action, status, time, transaction }) = operation else {
            return;
        };
        let session = self.session(session);
        let mut details = Details { status, time, transaction: None };
        match transaction {
            Some(name) => {
                details.transaction = Some(self.transaction(session, name, status));
                details.status = Status::Ok;
            }
            None => {
                if let Some(current) = self.transactions.get_mut(session.index()) {
                    current.open = None;
                }
            }
        }
        self.builder.push_with(session, action, details);
    }

    fn end(&mut self, sink: &mut Sink) {
        let line = Line { number: self.last_line, text: "" };
        match &mut self.events {
            Some(events) => events.end(sink, line),
            None => sink.finish(&mut self.builder, line),
        }
    }
}

impl Jsonl {
    /// Parses a line that is an event.
    fn event(&mut self, line: Line<'_>, fields: &Fields<'_>, sink: &mut Sink) {
        let whole = 0..line.text.trim_end().len();
        if self.history.is_some() || fields.get(Field::Type).is_none() {
            let fault = Fault::new(whole, "events and whole operations in one input")
                .hint("give every line a \"type\", or none");
            return sink.report(line, fault);
        }
        let Some(event) = event(line, fields, sink) else { return };
        let events = self.events.get_or_insert_default();
        let (session, paired) = match event {
            CallEvent::Invoke { session, method, args } => {
                let paired = events.invoke(&session, Invocation { method, args }, line.number);
                (session, paired)
            }
            CallEvent::Return { session, returns } => {
                let paired = events.complete(&session, Outcome::Returned(returns));
                (session, paired)
            }
            CallEvent::Fail { session } => {
                let paired = events.complete(&session, Outcome::Failed);
                (session, paired)
            }
            CallEvent::Abandon { session } => {
                let paired = events.complete(&session, Outcome::Unknown);
                (session, paired)
            }
            CallEvent::Whole { .. } => return,
        };
        if let Err(unpaired) = paired {
            let (message, hint) = unpaired.describe(&session);
            sink.report(line, Fault::new(whole, message).hint(hint));
        }
    }

    /// Finishes the current history and starts one with this name.
    fn start_history(&mut self, name: Option<&str>, line: Line<'_>, sink: &mut Sink) {
        sink.finish(&mut self.builder, line);
        if let Some(name) = name {
            self.builder.set_name(name);
        }
        self.history = Some(name.map(Into::into));
        self.last_session = None;
        self.transactions.clear();
        self.initial.clear();
        self.finals.clear();
    }

    /// Finds a session by the JSON text of its name.
    fn session(&mut self, part: &str) -> SessionId {
        match &mut self.last_session {
            Some((last, session)) if last == part => *session,
            last => {
                let name = text_of(part).unwrap_or_default();
                let session = self.builder.session(&name);
                let (text, id) = last.get_or_insert_with(|| (String::new(), session));
                text.clear();
                text.push_str(part);
                *id = session;
                session
            }
        }
    }

    /// Finds the transaction of an operation: that of the previous operation of its session, if it
    /// has the same name.
    fn transaction(&mut self, session: SessionId, name: &str, status: Status) -> OpenTransaction {
        if self.transactions.len() <= session.index() {
            self.transactions.resize_with(session.index() + 1, Current::default);
        }
        let current = &mut self.transactions[session.index()];
        let name = text_of(name).unwrap_or_default();
        match &mut current.open {
            Some((open, known)) if current.name == name => {
                let worse = match (*known, status) {
                    (Status::Fail, _) | (_, Status::Fail) => Status::Fail,
                    (Status::Unknown, _) | (_, Status::Unknown) => Status::Unknown,
                    _ => Status::Ok,
                };
                if worse != *known {
                    *known = worse;
                    self.builder.set_transaction_status(*open, worse);
                }
                *open
            }
            _ => {
                let open = self.builder.begin_transaction();
                self.builder.set_transaction_status(open, status);
                current.name.clear();
                current.name.push_str(&name);
                current.open = Some((open, status));
                open
            }
        }
    }
}

/// An operation whose session and transaction have not been looked up yet.
struct Operation<'a> {
    session: &'a str,
    action: Action,
    status: Status,
    time: Option<Interval>,
    transaction: Option<&'a str>,
}

/// Interprets the fields of one line, and reports errors.
struct LineReader<'a, 'b> {
    line: Line<'a>,
    fields: Fields<'a>,
    /// Whether all fields of the line are known.
    is_complete: bool,
    builder: &'b mut HistoryBuilder,
    sink: &'b mut Sink,
}

impl<'a> LineReader<'a, '_> {
    /// Returns whether the line belongs to the current history.
    fn is_same_history(
        &mut self,
        name: Option<&str>,
        current: &mut Option<Option<String>>,
    ) -> bool {
        let Some(last) = current else { return false };
        if last.is_some() == name.is_some() {
            return last.as_deref() == name;
        }
        let what = if last.is_some() {
            "this line has no \"history\", the lines before it have one"
        } else {
            "this line has a \"history\", the lines before it have none"
        };
        let whole = 0..self.line.text.trim_end().len();
        let span = self.fields.get(Field::History).map_or(whole, |part| self.span(part));
        self.report(Fault::new(span, what).hint("give every line a \"history\", or none"));
        // Each change is reported once, because the next line is compared with this one.
        *last = name.map(Into::into);
        true
    }

    fn operation(&mut self) -> Option<Operation<'a>> {
        let session = self.fields.get(Field::Session);
        match session {
            Some(part) => {
                if self.text(Field::Session).is_some_and(|name| name == "init") {
                    let span = self.span(part);
                    self.report(
                        Fault::new(span, "a session cannot be called \"init\"").hint(
                            "`init:x` is the initial write of x; give the session another name",
                        ),
                    );
                }
            }
            None => self.missing("session", "the session that the operation belongs to"),
        }
        let status = self.status();
        let time = self.time();
        let transaction = self.fields.get(Field::Txn).filter(|part| *part != "null");
        if transaction.is_some() {
            self.text(Field::Txn);
        }
        let action = match (self.fields.get(Field::Op), self.fields.get(Field::Call)) {
            (Some(_), None) => self.register(status),
            (None, Some(_)) => self.call(),
            (Some(_), Some(call)) => {
                let span = self.span(call);
                self.report(
                    Fault::new(span, "a line has an \"op\" or a \"call\", not both")
                        .hint("\"op\" is for registers, \"call\" for an object's methods"),
                );
                None
            }
            (None, None) => {
                self.missing(
                    "op",
                    "\"read\", \"write\", \"rmw\", \"append\" or \"fence\"; or \"call\", a method's name",
                );
                None
            }
        };
        Some(Operation { session: session?, action: action?, status, time, transaction })
    }

    fn register(&mut self, status: Status) -> Option<Action> {
        let part = self.fields.get(Field::Op)?;
        let op = self.text(Field::Op)?;
        let allowed: &[Field] = match &*op {
            "read" | "write" | "append" => &[Field::Key, Field::Value],
            "rmw" => &[Field::Key, Field::Value, Field::Read],
            "fence" => &[],
            _ => {
                let known = ["read", "write", "rmw", "append", "fence"];
                let meant = match (&*op, nearest(&op, known)) {
                    ("r", _) => Some("read"),
                    ("w", _) => Some("write"),
                    ("f", _) => Some("fence"),
                    (_, meant) => meant,
                };
                let hint = match meant {
                    Some(meant) => format!("did you mean \"{meant}\"?"),
                    None => format!(
                        "it is one of {}; an object's method is a \"call\"",
                        known.map(|k| format!("\"{k}\"")).join(", ")
                    ),
                };
                let span = self.span(part);
                self.report(Fault::new(span, format!("unknown operation \"{op}\"")).hint(hint));
                return None;
            }
        };
        self.allow_only(allowed, &op);
        if &*op == "fence" {
            return Some(Action::Fence);
        }
        let key = match self.fields.get(Field::Key) {
            Some(_) => self.text(Field::Key).map(|name| self.builder.key(&name)),
            None => {
                self.missing("key", "the key that is read or written");
                None
            }
        };
        // The value read by an operation that failed or never returned is unknown.
        let may_lack_read = status != Status::Ok;
        let mut value = |field: Field, name: &str, may_lack: bool| match self.fields.get(field) {
            Some(part) => self.value(part),
            None if may_lack => Some(self.builder.value(Value::Null)),
            None => {
                self.missing(name, "what was read or is written, null for the initial value");
                None
            }
        };
        let action = match &*op {
            "read" => {
                Action::Read { value: value(Field::Value, "value", may_lack_read)?, key: key? }
            }
            "write" => Action::Write { value: value(Field::Value, "value", false)?, key: key? },
            "append" => Action::Append { value: value(Field::Value, "value", false)?, key: key? },
            _ => {
                let read = value(Field::Read, "read", may_lack_read);
                let write = value(Field::Value, "value", false);
                Action::Rmw { key: key?, read: read?, write: write? }
            }
        };
        Some(action)
    }

    fn call(&mut self) -> Option<Action> {
        let part = self.fields.get(Field::Call)?;
        self.allow_only(&[Field::Args, Field::Returns], "call");
        let method = match part.as_bytes() {
            [b'"', ..] => self.text(Field::Call),
            _ => {
                let span = self.span(part);
                self.report(Fault::new(span, "\"call\" is a method's name, a string"));
                None
            }
        };
        let mut args = Some(Vec::new());
        if let Some(part) = self.fields.get(Field::Args) {
            match list(part) {
                Some(parts) => {
                    // Parse all values, so that every error is reported.
                    let values: Vec<_> = parts.into_iter().map(|part| self.value(part)).collect();
                    args = values.into_iter().collect();
                }
                None => {
                    let span = self.span(part);
                    self.report(Fault::new(span, "\"args\" is a list").hint("for example [1,0]"));
                    args = None;
                }
            }
        }
        let returns = match self.fields.get(Field::Returns) {
            Some(part) => Some(self.value(part)?),
            None => None,
        };
        let call = Call { method: method?.into(), args: args?, returns };
        Some(Action::Call(self.builder.call(call)))
    }

    /// Parses the values of `"init"` or `"final"`.
    fn bindings(&mut self, initial: &mut FxHashSet<KeyId>, finals: &mut FxHashSet<KeyId>) {
        for (name, part) in self.fields.present() {
            if !matches!(name, "history" | "init" | "final") {
                let span = self.span(part);
                let message = format!("\"{name}\" on a line of initial or final values");
                self.report(
                    Fault::new(span, message).hint("put the operation on a line of its own"),
                );
            }
        }
        for (field, given) in [(Field::Init, initial), (Field::Final, finals)] {
            let Some(part) = self.fields.get(field) else { continue };
            let Ok(Object(bindings)) = serde_json::from_str::<Object<'_>>(part) else {
                let span = self.span(part);
                self.report(
                    Fault::new(span, "expected an object of keys and values")
                        .hint("for example {\"x\":5,\"y\":7}"),
                );
                continue;
            };
            for (name, part) in bindings {
                let Some(value) = self.value(part) else { continue };
                let Some(key) = text_of(name) else {
                    let span = self.span(name);
                    self.report(Fault::new(span, "malformed string"));
                    continue;
                };
                let key = self.builder.key(&key);
                if !given.insert(key) {
                    let span = self.span(name);
                    self.report(Fault::new(span, "this key has a value already"));
                } else if field == Field::Init {
                    self.builder.set_initial(key, value);
                } else {
                    self.builder.set_final(key, value);
                }
            }
        }
    }

    fn status(&mut self) -> Status {
        match self.fields.get(Field::Status) {
            None | Some("null" | "\"ok\"") => Status::Ok,
            Some("\"fail\"") => Status::Fail,
            Some("\"unknown\"") => Status::Unknown,
            Some(part) => {
                let span = self.span(part);
                self.report(
                    Fault::new(span, format!("unknown status {part}"))
                        .hint("it is \"ok\", \"fail\" or \"unknown\""),
                );
                Status::Ok
            }
        }
    }

    fn time(&mut self) -> Option<Interval> {
        let start = self.integer(Field::Start);
        let end = self.integer(Field::End);
        match (start, end) {
            (None, Some((_, part))) => {
                let span = self.span(part);
                self.report(Fault::new(span, "an \"end\" without a \"start\""));
                None
            }
            (Some((start, _)), Some((end, part))) if end < start => {
                let span = self.span(part);
                let message = format!("it ends at {end}, before it starts at {start}");
                self.report(Fault::new(span, message));
                None
            }
            (start, end) => Some(Interval { start: start?.0, end: end.map(|(end, _)| end) }),
        }
    }

    /// Parses an integer that may be absent or null.
    fn integer(&mut self, field: Field) -> Option<(i64, &'a str)> {
        let part = self.fields.get(field).filter(|part| *part != "null")?;
        match part.parse() {
            Ok(time) => Some((time, part)),
            Err(_) => {
                let span = self.span(part);
                let is_integer = part.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit());
                let fault = if is_integer {
                    beyond_i64(span, part)
                } else {
                    Fault::new(span, "a time is an integer")
                        .hint("on any one clock, for example nanoseconds")
                };
                self.report(fault);
                None
            }
        }
    }

    fn value(&mut self, part: &'a str) -> Option<ValueId> {
        if let Ok(value) = part.parse() {
            return Some(self.builder.int(value));
        }
        match value_of(part, self.span(part)) {
            Ok(value) => Some(self.builder.value(value)),
            Err(fault) => {
                self.report(fault);
                None
            }
        }
    }

    /// Parses a field that is a name.
    fn text(&mut self, field: Field) -> Option<Cow<'a, str>> {
        let part = self.fields.get(field)?;
        let text = text_of(part);
        if text.is_none() {
            let span = self.span(part);
            self.report(Fault::new(span, "expected a string or an integer"));
        }
        text
    }

    /// Reports the fields that an operation of this kind must not have.
    fn allow_only(&mut self, allowed: &[Field], what: &str) {
        let own = [Field::Key, Field::Value, Field::Read, Field::Args, Field::Returns];
        for field in own {
            if let Some(part) = self.fields.get(field).filter(|_| !allowed.contains(&field)) {
                let span = self.span(part);
                let name = super::scan::NAMES[field as usize];
                self.report(Fault::new(span, format!("a {what} has no \"{name}\"")));
            }
        }
    }

    #[cold]
    fn missing(&mut self, name: &str, meaning: &str) {
        if !self.is_complete {
            return;
        }
        let fault =
            Fault::new(0..self.line.text.trim_end().len(), format!("\"{name}\" is missing"));
        self.report(fault.hint(format!("\"{name}\" is {meaning}")));
    }

    fn span(&self, part: &str) -> Range<usize> {
        offset_in(self.line.text, part)
    }

    #[cold]
    fn report(&mut self, fault: Fault) {
        self.sink.report(self.line, fault);
    }
}
