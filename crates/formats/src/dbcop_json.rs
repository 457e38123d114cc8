//! dbcop's JSON: a list of sessions of transactions.
//!
//! ```text
//! [[{"events":[{"Write":{"variable":0,"version":1}},{"Read":{"variable":1,"version":null}}],
//!    "committed":true}],
//!  [{"events":[["r",0,1]],"committed":false}]]
//! ```
//!
//! An object with such a list as its `"data"` is also accepted, and so is the short form of an
//! event. Version 0 or null is the initial value. The name of a session is its index, counted from
//! 0. A file is one history, and is held in memory while it is read.

use std::borrow::Cow;
use std::io;

use consistory_history::{
    Action, History, HistoryBuilder, KeyId, OpId, SessionId, Status, Value, ValueId,
};

use crate::document::Document;
use crate::jsonl::{Object, list, offset_in, syntax_fault, text_of};
use crate::numbers::Numbers;
use crate::parse::{Fault, Group, Line, Parse, Sink, beyond_i64};

/// The parser of dbcop's JSON.
#[derive(Default)]
pub(crate) struct DbcopJson {
    document: String,
}

impl Parse for DbcopJson {
    fn line(&mut self, line: Line<'_>, _: &mut Sink) {
        self.document.push_str(line.text);
        self.document.push('\n');
    }

    fn end(&mut self, sink: &mut Sink) {
        if self.document.trim().is_empty() {
            return;
        }
        let mut reader = Reader {
            document: &self.document,
            builder: HistoryBuilder::new(),
            lines: Document::new(&self.document),
            sink,
        };
        reader.history();
        let line = Line { number: reader.lines.last_line(), text: "" };
        let mut builder = reader.builder;
        sink.finish(&mut builder, line);
    }
}

struct Reader<'a, 'b> {
    document: &'a str,
    builder: HistoryBuilder,
    lines: Document<'a>,
    sink: &'b mut Sink,
}

impl<'a> Reader<'a, '_> {
    fn history(&mut self) {
        let document = self.document;
        if let Err(error) = serde_json::from_str::<&serde_json::value::RawValue>(document) {
            return self.fault(syntax_fault(document.trim_end(), &error));
        }
        let document = document.trim();
        let mut data = document;
        if !self.sink.limits.goes_on() {
            return;
        }
        if document.starts_with('{') {
            match self.object(document).into_iter().find(|(name, _)| name == "data") {
                Some((_, found)) => data = found,
                None => {
                    return self.report(
                        document,
                        "\"data\" is missing",
                        "\"data\" is the list of sessions",
                    );
                }
            }
        }
        if !self.sink.limits.goes_on() {
            return;
        }
        let Some(sessions) = list(data) else {
            return self.report(
                data,
                "expected a list of sessions",
                "a session is a list of transactions",
            );
        };
        for (index, session) in sessions.into_iter().enumerate() {
            if !self.sink.limits.goes_on() {
                return;
            }
            let Some(transactions) = list(session) else {
                self.report(session, "expected a session, a list of transactions", TRANSACTION);
                continue;
            };
            if transactions.is_empty() {
                continue;
            }
            let session = self.builder.session(&index.to_string());
            for transaction in transactions {
                if !self.sink.limits.has_time() {
                    return;
                }
                self.transaction(session, transaction);
            }
        }
    }

    fn transaction(&mut self, session: SessionId, text: &'a str) {
        if !text.starts_with('{') {
            return self.report(text, "expected a transaction, an object", TRANSACTION);
        }
        let (mut events, mut committed) = (None, None);
        for (name, value) in self.object(text) {
            match &*name {
                "events" => events = Some(value),
                "committed" => committed = Some(value),
                _ => self.report(value, &format!("unknown field \"{name}\""), TRANSACTION),
            }
        }
        let status = match committed {
            Some("true") => Status::Ok,
            Some("false") => Status::Fail,
            Some(other) => return self.report(other, "expected true or false", TRANSACTION),
            None => return self.report(text, "\"committed\" is missing", TRANSACTION),
        };
        let Some(events) = events else {
            return self.report(text, "\"events\" is missing", TRANSACTION);
        };
        let Some(events) = list(events) else {
            return self.report(events, "expected a list of events", TRANSACTION);
        };
        let mut group = Group::default();
        for event in events {
            if let Some(action) = self.event(event) {
                group.push(action);
            }
        }
        group.close(&mut self.builder, session, status);
    }

    fn event(&mut self, text: &'a str) -> Option<Action> {
        if let Some(parts) = list(text) {
            let [kind @ ("\"r\"" | "\"w\""), variable, version] = parts[..] else {
                self.report(text, "malformed event", EVENT);
                return None;
            };
            return self.action(kind == "\"w\"", variable, version);
        }
        let event = if text.starts_with('{') { self.object(text) } else { Vec::new() };
        let Some((kind, body)) = event.first().filter(|(kind, body)| {
            event.len() == 1 && matches!(&**kind, "Read" | "Write") && body.starts_with('{')
        }) else {
            self.report(text, "malformed event", EVENT);
            return None;
        };
        let (mut variable, mut version) = (None, None);
        for (name, value) in self.object(body) {
            match &*name {
                "variable" => variable = Some(value),
                "version" => version = Some(value),
                _ => self.report(value, &format!("unknown field \"{name}\""), EVENT),
            }
        }
        let Some(variable) = variable else {
            self.report(body, "\"variable\" is missing", EVENT);
            return None;
        };
        let Some(version) = version else {
            self.report(body, "\"version\" is missing", EVENT);
            return None;
        };
        self.action(kind == "Write", variable, version)
    }

    fn action(&mut self, is_write: bool, variable: &'a str, version: &'a str) -> Option<Action> {
        let key: Option<KeyId> = match text_of(variable) {
            Some(name) => Some(self.builder.key(&name)),
            None => {
                self.report(variable, "a variable is a number or a string", EVENT);
                None
            }
        };
        let value: Option<ValueId> = match version.parse() {
            Ok(version) => Some(self.builder.int(version)),
            Err(_) if version == "null" && !is_write => Some(self.builder.value(Value::Null)),
            Err(_) if version.bytes().all(|b| b.is_ascii_digit()) => {
                let span = offset_in(self.document, version);
                self.fault(beyond_i64(span, version));
                None
            }
            Err(_) => {
                self.report(
                    version,
                    "a version is an integer, or null where the initial one is read",
                    EVENT,
                );
                None
            }
        };
        let (key, value) = (key?, value?);
        Some(if is_write { Action::Write { key, value } } else { Action::Read { key, value } })
    }

    /// Splits an object into its fields.
    fn object(&mut self, text: &'a str) -> Vec<(Cow<'a, str>, &'a str)> {
        let Object(fields) = serde_json::from_str(text).unwrap_or(Object(Vec::new()));
        fields.into_iter().map(|(name, value)| (text_of(name).unwrap_or_default(), value)).collect()
    }

    #[cold]
    fn report(&mut self, part: &str, message: &str, hint: &str) {
        self.fault(Fault::new(offset_in(self.document, part), message).hint(hint));
    }

    #[cold]
    fn fault(&mut self, fault: Fault) {
        self.lines.report(fault, self.sink);
    }
}

const TRANSACTION: &str = "a transaction is {\"events\":[...],\"committed\":true}";
const EVENT: &str = "an event is {\"Read\":{\"variable\":0,\"version\":1}}, \
    {\"Write\":{\"variable\":0,\"version\":2}}, or [\"r\",0,1], [\"w\",0,2] for short";

/// Writes a history; a session without operations is left out.
pub(crate) fn write(history: &History, out: &mut dyn io::Write) -> io::Result<()> {
    let keys = Numbers::of_keys(history);
    let mut last_session = None;
    out.write_all(b"[[")?;
    for transaction in history.all_transactions() {
        let session = history.session_of(OpId(transaction.ops.start));
        match last_session.replace(session) {
            None => {}
            Some(last) if last == session => out.write_all(b",\n  ")?,
            Some(_) => out.write_all(b"],\n [")?,
        }
        out.write_all(b"{\"events\":[")?;
        for op in transaction.ops.clone() {
            let (kind, key, value) = match history.action(OpId(op)) {
                Action::Read { key, value } => ("Read", key, value),
                Action::Write { key, value } => ("Write", key, value),
                _ => unreachable!("it was checked that there are only reads and writes"),
            };
            let comma = if op > transaction.ops.start { "," } else { "" };
            let key = keys.get(key.index());
            write!(out, "{comma}{{\"{kind}\":{{\"variable\":{key},\"version\":")?;
            match history.value(value) {
                Value::Int(0) if kind == "Read" => write!(out, "null}}}}")?,
                value => write!(out, "{value}}}}}")?,
            }
        }
        write!(out, "],\"committed\":{}}}", transaction.status != Status::Fail)?;
    }
    out.write_all(b"]]\n")
}
