//! Jepsen's logs: one event per line.
//!
//! ```text
//! INFO  jepsen.util - 0    :invoke    :cas      [4 3]
//! INFO  jepsen.util - 0    :ok        :cas      [4 3]
//! INFO  jepsen.util - 2    :info      :write    :timed-out
//! INFO  jepsen.core - Worker 0 starting
//! ```
//!
//! The text before the process may be missing from all events. If the first event has it, lines
//! without it are not events: a test that fails ends its log with the history in the form that its
//! own checker received, in which the same events appear again. Lines with other messages, and
//! those of the `:nemesis`, are ignored. Unlike in Jepsen's EDN, a `cas` that failed with its pair
//! as its value compared unequal, which is a return value like any other. Any other operation that
//! failed did not take effect; but if a reason such as `:timed-out` replaces its value, it is
//! treated as indeterminate, which is the weaker claim.

use consistory_history::Value;

use super::recorder::{Event, EventType, Part, Recorder};
use crate::edn::{Form, Kind, form_at};
use crate::parse::{Cursor, Fault, Line, Parse, Sink, nearest};

/// The parser of Jepsen's logs.
#[derive(Default)]
pub(crate) struct JepsenLog {
    recorder: Recorder,
    last_line: u64,
    /// Whether events are marked with `jepsen.util`; determined by the first event.
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
        self.recorder.end(sink, Line { number: self.last_line, text: "" });
    }
}

/// Start of the event in a line.
pub(crate) struct Start {
    /// Byte offset of its process.
    at: usize,
    /// Whether the line is marked with `jepsen.util`.
    is_marked: bool,
}

/// Finds the start of the event in a line.
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

/// Checks whether a line is a message of Jepsen, or of the tool that runs it, instead of an event.
pub(crate) fn is_message(text: &str) -> bool {
    let level = text.split_ascii_whitespace().position(|word| LEVELS.contains(&word));
    let from = level.and_then(|level| text.split_ascii_whitespace().nth(level + 1));
    let is_of = |from: &str| SOURCES.iter().any(|name| from.starts_with(name));
    text.starts_with("lein test ") || from.is_some_and(is_of)
}

/// The source that a log names for its events.
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
        let Some(kind) = EventType::find(kind) else {
            let fault = Fault::new(kind_span, format!("unknown type :{kind}"));
            return Err(fault.hint(match nearest(kind, EventType::NAMES) {
                Some(meant) => format!("did you mean :{meant}?"),
                None => FORM.into(),
            }));
        };
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
        let (kind, value) = match self.recorder.under_way(process) {
            Some(("cas", invoked @ Value::List(_))) if kind != EventType::Invoke && f == "cas" => {
                if !is_reason && *invoked != value {
                    let message = format!("process {process} has invoked it with {invoked}");
                    return Err(
                        Fault::new(value_span, message).hint("a cas ends with its own pair")
                    );
                }
                match kind {
                    EventType::Fail if !is_reason => (EventType::Ok, Value::Bool(false)),
                    EventType::Fail => (EventType::Info, value),
                    _ => (kind, value),
                }
            }
            _ if kind == EventType::Fail && is_reason => (EventType::Info, value),
            _ => (kind, value),
        };
        let event = Event {
            process: Some(process.to_owned()),
            kind,
            f: Some(f.to_owned()),
            key: None,
            value,
            time: None,
            line: line.number,
        };
        self.recorder.event(event).map_err(|misfit| {
            let span = match misfit.part {
                Part::Process => process_span,
                Part::Name => f_span,
                Part::Whole => 0..line.text.trim_end().len(),
            };
            Fault::new(span, misfit.message).hint(misfit.hint)
        })
    }
}

/// Parses a keyword, without its colon.
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
