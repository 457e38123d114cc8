//! TimeKiller's JSON: a list of transactions, each with its session and its timestamps.
//!
//! ```text
//! [{"tid":67,"sid":19,"sts":{"p":5,"l":0},"cts":{"p":9,"l":1},
//!   "ops":[{"t":"w","k":7,"v":2},{"t":"r","k":8,"v":3}]}]
//! ```
//!
//! The order of a session is the order of its transactions in the file. The timestamps are the
//! database's own and not the times of the clients, so they are not the transactions' intervals and
//! are ignored. `null` is the initial value. The file is held in memory.

use consistory_history::{Action, HistoryBuilder, Status};

use crate::document::Document;
use crate::jsonl::{Object, list, syntax_fault, text_of, value_of};
use crate::parse::{Group, Line, Parse, Sink};

/// The parser of this format.
#[derive(Default)]
pub(crate) struct TimeKiller {
    text: String,
}

impl Parse for TimeKiller {
    fn line(&mut self, line: Line<'_>, _: &mut Sink) {
        self.text.push_str(line.text);
        self.text.push('\n');
    }

    fn end(&mut self, sink: &mut Sink) {
        if self.text.trim().is_empty() {
            return;
        }
        let mut document = Document::new(&self.text);
        let mut builder = HistoryBuilder::new();
        if let Err(error) = serde_json::from_str::<&serde_json::value::RawValue>(&self.text) {
            return document.report(syntax_fault(self.text.trim_end(), &error), sink);
        }
        let Some(transactions) = list(self.text.trim()) else {
            return document.fault(self.text.trim(), "expected a list", TRANSACTION, sink);
        };
        for text in transactions {
            if !sink.limits.has_time() {
                return;
            }
            transaction(text, &mut builder, &mut document, sink);
        }
        sink.finish(&mut builder, Line { number: document.last_line(), text: "" });
    }
}

const TRANSACTION: &str = "a transaction is {\"tid\":67,\"sid\":19,\"ops\":[{\"t\":\"w\",\"k\":7,\"v\":2}]}, with its timestamps \"sts\" and \"cts\" if there are any";

fn transaction(
    text: &str,
    builder: &mut HistoryBuilder,
    document: &mut Document<'_>,
    sink: &mut Sink,
) {
    let fields = |text| match serde_json::from_str(text) {
        Ok(Object(fields)) => fields,
        Err(_) => Vec::new(),
    };
    let (mut session, mut ops) = (None, None);
    for (name, value) in fields(text) {
        match name {
            "\"sid\"" => session = Some(value),
            "\"ops\"" => ops = Some(value),
            "\"tid\"" | "\"sts\"" | "\"cts\"" => {}
            _ => return document.fault(name, "unknown field", TRANSACTION, sink),
        }
    }
    let Some(session) = session else {
        return document.fault(text, "\"sid\" is missing", TRANSACTION, sink);
    };
    let Some(name) = text_of(session) else {
        return document.fault(session, "a session is a number or a string", TRANSACTION, sink);
    };
    let Some(ops) = ops.and_then(list) else {
        return document.fault(text, "\"ops\" is missing, or not a list", TRANSACTION, sink);
    };
    let mut group = Group::default();
    for op in ops {
        let (mut kind, mut key, mut value) = (None, None, None);
        for (name, part) in fields(op) {
            match name {
                "\"t\"" => kind = Some(part),
                "\"k\"" => key = Some(part),
                "\"v\"" => value = Some(part),
                _ => return document.fault(name, "unknown field", TRANSACTION, sink),
            }
        }
        let (Some(kind), Some(key), Some(part)) = (kind, key.and_then(text_of), value) else {
            return document.fault(op, "malformed operation", TRANSACTION, sink);
        };
        let value = match value_of(part, document.span(part)) {
            Ok(value) => builder.value(value),
            Err(fault) => return document.report(fault, sink),
        };
        let key = builder.key(&key);
        group.push(match kind {
            "\"r\"" => Action::Read { key, value },
            "\"w\"" => Action::Write { key, value },
            other => return document.fault(other, "expected \"r\" or \"w\"", TRANSACTION, sink),
        });
    }
    let session = builder.session(&name);
    group.close(builder, session, Status::Ok);
}
