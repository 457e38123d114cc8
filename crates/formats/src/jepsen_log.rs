//! Jepsen's logs, an event a line.
//!
//! ```text
//! INFO  jepsen.util - 0    :invoke    :cas      [4 3]
//! INFO  jepsen.util - 0    :ok        :cas      [4 3]
//! INFO  jepsen.util - 2    :info      :write    :timed-out
//! INFO  jepsen.core - Worker 0 starting
//! ```
//!
//! What stands before the process may be missing from all events. If the first one has it, a line
//! without it is none: a test that fails ends its log with what its own checker made of the
//! history, in which the same events come again. Lines of other messages, and those of the
//! `:nemesis`, are left out. Unlike in Jepsen's EDN a `cas` that failed with its pair compared
//! unequal, which is a return like any other. Whatever else failed did not take effect; but one
//! that failed with a reason such as `:timed-out` in place of its value is taken for unknown,
//! which claims less.

use crate::edn::{Form, Kind, form_at};
use crate::events::{Events, Outcome};
use crate::jepsen_edn::{invocation, returns};
use crate::parse::{Cursor, Fault, Line, Parse, Sink, nearest};
use consistory_history::Value;

/// The parser of Jepsen's logs.
#[derive(Default)]
pub(crate) struct JepsenLog {
    events: Events,
    last_line: u64,
    /// Whether events come from `jepsen.util`, once the first one has shown it.
    is_marked: Option<bool>,
}

impl Parse for JepsenLog {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) {
        self.last_line = line.number;
        let Some(Start { at, is_marked }) = event_start(line.text) else { return };
        if is_marked != *self.is_marked.get_or_insert(is_marked) {
            return;
        }
        if let Err(fault) = self.event(line, at, sink) {
            sink.report(line, fault);
        }
    }

    fn end(&mut self, sink: &mut Sink) {
        self.events.end(sink, Line { number: self.last_line, text: "" });
    }
}

/// Where the event of a line starts.
pub(crate) struct Start {
    /// Its process.
    at: usize,
    /// Whether the line says that it comes from `jepsen.util`.
    is_marked: bool,
}

/// Finds where the event of a line starts.
pub(crate) fn event_start(text: &str) -> Option<Start> {
    let mut at = 0;
    let marker = text.find(MARKER);
    if let Some(marker) = marker {
        let rest = text[marker + MARKER.len()..].trim_start();
        let rest = rest.strip_prefix(['-', ':']).unwrap_or(rest).trim_start();
        at = text.len() - rest.len();
    }
    let rest = text[at..].trim_start();
    at = text.len() - rest.len();
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let behind = &rest[digits..];
    let is_event =
        digits > 0 && behind.starts_with([' ', '\t']) && behind.trim_start().starts_with(':');
    is_event.then_some(Start { at, is_marked: marker.is_some() })
}

/// Says whether a line is a message of Jepsen's, or of what runs it, and no event.
pub(crate) fn is_message(text: &str) -> bool {
    let level = text.split_ascii_whitespace().position(|word| LEVELS.contains(&word));
    let from = level.and_then(|level| text.split_ascii_whitespace().nth(level + 1));
    let is_of = |from: &str| SOURCES.iter().any(|name| from.starts_with(name));
    text.starts_with("lein test ") || from.is_some_and(is_of)
}

/// What events of a log are marked with.
const MARKER: &str = "jepsen.util";
const LEVELS: [&str; 4] = ["INFO", "WARN", "ERROR", "DEBUG"];
const SOURCES: [&str; 3] = ["jepsen.", "knossos.", "[jepsen"];

const FORM: &str = "an event is a process, :invoke, :ok, :fail or :info, a name and a value";

impl JepsenLog {
    fn event(&mut self, line: Line<'_>, at: usize, sink: &mut Sink) -> Result<(), Fault> {
        let mut cursor = Cursor { text: line.text, at };
        let start = cursor.at;
        let process = cursor.take_while(|c| c.is_ascii_digit());
        let process_span = start..cursor.at;
        let (kind, kind_span) = keyword(&mut cursor)?;
        let known = ["invoke", "ok", "fail", "info"];
        if !known.contains(&kind) {
            let fault = Fault::new(kind_span, format!("unknown type :{kind}"));
            return Err(fault.hint(match nearest(kind, known) {
                Some(meant) => format!("did you mean :{meant}?"),
                None => FORM.into(),
            }));
        }
        let (f, f_span) = keyword(&mut cursor)?;
        let before = sink.diagnostics.count();
        let value = form_at(line, cursor.at, sink);
        if sink.diagnostics.count() > before {
            return Ok(());
        }
        let value_span = value.as_ref().map_or(0..0, |form| form.place.start..form.place.end);
        let is_reason = matches!(value, Some(Form { kind: Kind::Keyword(_), .. }));
        let value = value.map_or(Ok(Value::Null), |form| form.value());
        let value = value.map_err(|(_, fault)| fault)?;
        let name = format!("process {process}");
        let paired = if kind == "invoke" {
            self.events.invoke(process, invocation(f.to_owned(), None, value), line.number)
        } else {
            let invoked = match self.events.invocation(process) {
                Ok(invoked) => invoked,
                Err(unpaired) => {
                    let (message, hint) = unpaired.describe(&name);
                    return Err(Fault::new(process_span, message).hint(hint));
                }
            };
            if invoked.method != f {
                let message = format!("{name} has invoked :{}, not :{f}", invoked.method);
                return Err(Fault::new(f_span, message).hint("a call is completed by its own name"));
            }
            let is_cas = f == "cas" && invoked.args.len() == 2;
            let is_same = Value::List(invoked.args.clone()) == value;
            if is_cas && !is_reason && !is_same {
                let shown = Value::List(invoked.args.clone());
                let message = format!("{name} has invoked it with {shown}");
                return Err(Fault::new(value_span, message).hint("a cas ends with its own pair"));
            }
            let outcome = match kind {
                "ok" => Outcome::Returned(returns(invoked, value)),
                "fail" if is_cas && is_same => Outcome::Returned(Some(Value::Bool(false))),
                "fail" if !is_reason => Outcome::Failed,
                _ => Outcome::Unknown,
            };
            self.events.complete(process, outcome)
        };
        paired.map_err(|unpaired| {
            let (message, hint) = unpaired.describe(&name);
            Fault::new(process_span, message).hint(hint)
        })
    }
}

/// Takes a keyword, without its colon.
fn keyword<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a str, std::ops::Range<usize>), Fault> {
    cursor.skip_spaces();
    let start = cursor.at;
    if !cursor.eat(":") {
        let message = format!("expected a keyword, found {}", cursor.found());
        return Err(Fault::new(cursor.here(), message).hint(FORM));
    }
    let name = cursor.take_while(|c| !c.is_whitespace());
    Ok((name, start..cursor.at))
}
