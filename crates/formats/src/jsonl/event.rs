//! Events of calls as they happen, one per line, for online checking.
//!
//! ```text
//! {"type":"invoke","session":"t0","call":"enqueue","args":[1]}
//! {"type":"ok","session":"t0","returns":null}
//! {"type":"fail","session":"t1"}       it did not take effect
//! {"type":"info","session":"t2"}       indeterminate; the session goes on
//! {"session":"t0","call":"dequeue","returns":1,"start":4,"end":9}     both at once
//! ```

use std::sync::Arc;

use consistory_history::Value;

use super::json::{list, offset_in, text_of, value_of};
use super::scan::{Field, Fields, NAMES, scan_any, scan_flat};
use crate::parse::{Fault, Line, Sink, nearest};
use consistory_diagnostic::Diagnostics;

/// An event of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallEvent {
    /// A session calls a method.
    Invoke {
        /// Name of the session.
        session: String,
        /// Method.
        method: String,
        /// Arguments.
        args: Vec<Value>,
    },
    /// The pending call of a session returned.
    Return {
        /// Name of the session.
        session: String,
        /// Return value, if it was recorded.
        returns: Option<Value>,
    },
    /// The pending call of a session did not take effect.
    Fail {
        /// Name of the session.
        session: String,
    },
    /// The outcome of a session's pending call is unknown.
    Abandon {
        /// Name of the session.
        session: String,
    },
    /// A completed call with its times, recorded when it returned.
    Whole {
        /// Name of the session.
        session: String,
        /// Method.
        method: String,
        /// Arguments.
        args: Vec<Value>,
        /// Return value, if it was recorded.
        returns: Option<Value>,
        /// Time of the invocation.
        start: i64,
        /// Time of the return; `None` if the call never returned.
        end: Option<i64>,
    },
}

/// Parses an event from a line of JSON; an empty line contains none.
pub fn parse_event(
    text: &str,
    number: u64,
    source: &Arc<str>,
) -> Result<Option<CallEvent>, Diagnostics> {
    let line = Line { number, text };
    let mut sink = Sink::new(Arc::clone(source));
    if text.trim().is_empty() {
        return Ok(None);
    }
    let fields = scan_flat(text).or_else(|| scan_any(line, &mut sink));
    let event = fields.and_then(|fields| event(line, &fields, &mut sink));
    match event {
        Some(event) if sink.diagnostics.is_empty() => Ok(Some(event)),
        _ => Err(sink.diagnostics),
    }
}

/// Builds an event from a line's fields, or reports errors.
pub(super) fn event(line: Line<'_>, fields: &Fields<'_>, sink: &mut Sink) -> Option<CallEvent> {
    let whole = 0..line.text.trim_end().len();
    let span = |part: &str| offset_in(line.text, part);
    let text = |field: Field, sink: &mut Sink| match fields.get(field) {
        Some(part) => match text_of(part) {
            Some(text) => Some(text.into_owned()),
            None => {
                sink.report(line, Fault::new(span(part), "expected a string or an integer"));
                None
            }
        },
        None => {
            let message = format!("\"{}\" is missing", NAMES[field as usize]);
            sink.report(line, Fault::new(whole.clone(), message).hint(EVENT));
            None
        }
    };
    let kind = match fields.get(Field::Type) {
        None => "whole".to_owned(),
        Some(_) => text(Field::Type, sink)?,
    };
    let session = text(Field::Session, sink);
    let allowed: &[Field] = match &*kind {
        "invoke" => &[Field::Call, Field::Args, Field::Start],
        "ok" => &[Field::Returns, Field::Call, Field::Args, Field::End],
        "fail" | "info" => &[Field::Call, Field::Args, Field::End],
        "whole" => &[Field::Call, Field::Args, Field::Returns, Field::Start, Field::End],
        other => {
            let known = ["invoke", "ok", "fail", "info"];
            let part = fields.get(Field::Type).unwrap_or_default();
            let hint = match nearest(other, known) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => "it is \"invoke\", \"ok\", \"fail\" or \"info\"".into(),
            };
            let fault = Fault::new(span(part), format!("unknown type \"{other}\"")).hint(hint);
            sink.report(line, fault);
            return None;
        }
    };
    for (name, part) in fields.present() {
        let is_allowed = matches!(name, "type" | "session")
            || allowed.iter().any(|&field| NAMES[field as usize] == name);
        if !is_allowed {
            let message = format!("\"{name}\" on a line of this type");
            sink.report(line, Fault::new(span(part), message).hint(EVENT));
        }
    }
    let value = |part: &str, sink: &mut Sink| match value_of(part, span(part)) {
        Ok(value) => Some(value),
        Err(fault) => {
            sink.report(line, fault);
            None
        }
    };
    let returns = match fields.get(Field::Returns) {
        Some(part) => Some(value(part, sink)?),
        None => None,
    };
    let mut args = Vec::new();
    if let Some(part) = fields.get(Field::Args) {
        let Some(parts) = list(part) else {
            sink.report(line, Fault::new(span(part), "\"args\" is a list"));
            return None;
        };
        for part in parts {
            args.extend(value(part, sink));
        }
    }
    let time = |field: Field, sink: &mut Sink| {
        let part = fields.get(field).filter(|part| *part != "null")?;
        let time = part.parse::<i64>().ok();
        if time.is_none() {
            sink.report(line, Fault::new(span(part), "a time is an integer"));
        }
        time
    };
    let (start, end) = (time(Field::Start, sink), time(Field::End, sink));
    Some(match &*kind {
        "invoke" => {
            let method = text(Field::Call, sink);
            CallEvent::Invoke { session: session?, method: method?, args }
        }
        "ok" => CallEvent::Return { session: session?, returns },
        "fail" => CallEvent::Fail { session: session? },
        "info" => CallEvent::Abandon { session: session? },
        _ => {
            let method = text(Field::Call, sink);
            let Some(start) = start else {
                let fault = Fault::new(whole, "\"start\" is missing").hint(EVENT);
                sink.report(line, fault);
                return None;
            };
            if let Some(end) = end.filter(|&end| end < start) {
                let message = format!("it ends at {end}, before it starts at {start}");
                sink.report(line, Fault::new(whole, message));
                return None;
            }
            CallEvent::Whole { session: session?, method: method?, args, returns, start, end }
        }
    })
}

const EVENT: &str = "an event is {\"type\":\"invoke\",\"session\":\"t0\",\"call\":\"enqueue\",\
    \"args\":[1]}, {\"type\":\"ok\",\"session\":\"t0\",\"returns\":null}, or a call with its \
    \"start\" and \"end\"";
