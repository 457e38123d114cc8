//! LiMo's histories: one event per line.
//!
//! ```text
//! # @object atomic-stack
//! [1] call push(1)
//! [2] call pop
//! [1] return
//! [2] return 1           # or: empty
//! ```
//!
//! The number in brackets is the thread. `push 1` is the same as `push(1)`. A call without a return
//! is pending. Lines that start with `#` are comments, including the line with the object's name.

use std::io;

use consistory_history::{Action, History, OpId, Status, Value};

use crate::events::{Event, EventKind, Events, Invocation, Outcome};
use crate::numbers::Numbers;
use crate::parse::{Cursor, Fault, Line, Parse, Sink};

/// The parser of LiMo's histories.
#[derive(Default)]
pub(crate) struct Limo {
    events: Events,
    last_line: u64,
}

impl Parse for Limo {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) {
        self.last_line = line.number;
        let Some(mut cursor) = line.content() else { return };
        if let Err(fault) = self.event(&mut cursor, line.number) {
            sink.report(line, fault);
        }
    }

    fn end(&mut self, sink: &mut Sink) {
        self.events.end(sink, Line { number: self.last_line, text: "" });
    }
}

const FORM: &str = "an event is `[1] call push(1)`, `[1] return` or `[1] return 1`";

impl Limo {
    fn event(&mut self, cursor: &mut Cursor<'_>, line: u64) -> Result<(), Fault> {
        cursor.expect("[").map_err(|fault| fault.or_hint(FORM))?;
        let start = cursor.at;
        let thread = cursor.number("a thread")?;
        let span = start..cursor.at;
        cursor.expect("]")?;
        cursor.skip_spaces();
        let start = cursor.at;
        let paired = match cursor.take_while(|c| c.is_ascii_alphabetic()) {
            "call" => {
                let invocation = call(cursor)?;
                self.events.invoke(thread, invocation, line)
            }
            "return" => {
                cursor.skip_spaces();
                let returned = match cursor.rest() {
                    "" => None,
                    "empty" | "EMPTY" | "null" => Some(Value::Null),
                    _ => Some(value(cursor)?),
                };
                self.events.complete(thread, Outcome::Returned(returned))
            }
            other => {
                let message = format!("expected `call` or `return`, found `{other}`");
                return Err(Fault::new(start..cursor.at, message).hint(FORM));
            }
        };
        paired.map_err(|unpaired| {
            let (message, hint) = unpaired.describe(&format!("thread {thread}"));
            Fault::new(span, message).hint(hint)
        })
    }
}

/// Parses `push(1)`, `push 1`, `pop()` or `pop`.
fn call(cursor: &mut Cursor<'_>) -> Result<Invocation, Fault> {
    cursor.skip_spaces();
    let method = cursor.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-')).to_owned();
    if method.is_empty() {
        let message = format!("expected a method, found {}", cursor.found());
        return Err(Fault::new(cursor.here(), message).hint(FORM));
    }
    let mut args = Vec::new();
    cursor.skip_spaces();
    if cursor.eat("(") {
        cursor.skip_spaces();
        while !cursor.eat(")") {
            if !args.is_empty() {
                cursor.expect(",")?;
            }
            args.push(argument(cursor)?);
            cursor.skip_spaces();
            if cursor.is_done() {
                return Err(Fault::new(cursor.here(), "expected `)`").hint(FORM));
            }
        }
    } else {
        while !cursor.is_done() {
            args.push(argument(cursor)?);
            cursor.skip_spaces();
        }
    }
    cursor.skip_spaces();
    if !cursor.is_done() {
        let span = cursor.at..cursor.text.len();
        return Err(Fault::new(span, "unexpected text after the call").hint(FORM));
    }
    Ok(Invocation { method, args })
}

/// Parses a value that extends to the end of the line.
fn value(cursor: &mut Cursor<'_>) -> Result<Value, Fault> {
    let found = argument(cursor)?;
    cursor.skip_spaces();
    match cursor.is_done() {
        true => Ok(found),
        false => Err(Fault::new(cursor.at..cursor.text.len(), "unexpected text after the value")),
    }
}

/// Parses an integer or a word.
fn argument(cursor: &mut Cursor<'_>) -> Result<Value, Fault> {
    cursor.skip_spaces();
    let c = cursor.peek();
    if c == b'-' || c.is_ascii_digit() {
        return cursor.integer().map(Value::Int);
    }
    let word = cursor.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    match word {
        "" => {
            let message = format!("expected a value, found {}", cursor.found());
            Err(Fault::new(cursor.here(), message).hint("a value is an integer or a word"))
        }
        "null" => Ok(Value::Null),
        "true" => Ok(Value::Bool(true)),
        "false" => Ok(Value::Bool(false)),
        word => Ok(Value::Str(word.into())),
    }
}

/// Returns whether an operation can be written.
pub(crate) fn can_write(history: &History, op: OpId) -> bool {
    let Action::Call(call) = history.action(op) else { return false };
    let call = history.call(call);
    let is_word = |text: &str| {
        text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
            && text.starts_with(char::is_alphabetic)
    };
    let is_plain = |value: &Value| match value {
        Value::Str(text) => is_word(text) && !matches!(&**text, "null" | "true" | "false"),
        Value::List(_) => false,
        _ => true,
    };
    let returned = call.returns.map(|id| history.value(id));
    is_word(&call.method)
        && call.args.iter().all(|&id| is_plain(history.value(id)))
        && returned.is_none_or(|value| {
            is_plain(value) && !matches!(value, Value::Str(s) if s.eq_ignore_ascii_case("empty"))
        })
        && history.status(op) != Status::Fail
}

/// Writes a history, one event per line; an indeterminate call has no return.
pub(crate) fn write(
    history: &History,
    events: &[Event],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let threads = Numbers::of_sessions(history);
    for &Event { op, kind } in events {
        let Action::Call(call) = history.action(op) else { continue };
        let call = history.call(call);
        let thread = threads.get(history.session_of(op).index());
        match (kind, call.returns) {
            (EventKind::Invoked, _) => {
                write!(out, "[{thread}] call {}", call.method)?;
                let args: Vec<String> =
                    call.args.iter().map(|&id| history.value(id).to_string()).collect();
                match args.is_empty() {
                    true => writeln!(out)?,
                    false => writeln!(out, "({})", args.join(","))?,
                }
            }
            (EventKind::Completed, None) => writeln!(out, "[{thread}] return")?,
            (EventKind::Completed, Some(id)) => match history.value(id) {
                Value::Null => writeln!(out, "[{thread}] return empty")?,
                value => writeln!(out, "[{thread}] return {value}")?,
            },
            (EventKind::Abandoned, _) => {}
        }
    }
    Ok(())
}
