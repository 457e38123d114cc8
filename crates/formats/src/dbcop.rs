//! dbcop's text: transactions in brackets.
//!
//! ```text
//! // session 0
//! [x:=1 y:=2] [y==2 x:=3]
//! [z==?]         // reads the initial value
//! ---
//! [x:=4]!        // not committed
//! ```
//!
//! Sessions are separated by lines of `-` and named by their index, counted from 0.

use std::io;

use consistory_history::{Action, History, HistoryBuilder, OpId, Status, Value};

use crate::numbers::Numbers;
use crate::parse::{Cursor, Fault, Group, Line, Parse, Sink};

/// The parser of this format.
#[derive(Default)]
pub(crate) struct DbcopText {
    builder: HistoryBuilder,
    session: u64,
    group: Group,
    last_line: u64,
}

impl Parse for DbcopText {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) {
        self.last_line = line.number;
        let text = line.text.split("//").next().unwrap_or_default();
        let text = text.split('#').next().unwrap_or_default().trim_end();
        let mut cursor = Cursor::new(text);
        cursor.skip_spaces();
        if !cursor.is_done() && cursor.rest().chars().all(|c| c == '-') {
            self.session += 1;
            return;
        }
        while !cursor.is_done() {
            self.transaction(line, &mut cursor, sink);
            cursor.skip_spaces();
        }
    }

    fn end(&mut self, sink: &mut Sink) {
        sink.finish(&mut self.builder, Line { number: self.last_line, text: "" });
    }
}

impl DbcopText {
    /// Parses `[x:=1 y==2]`; after an error it continues with the next event.
    fn transaction(&mut self, line: Line<'_>, cursor: &mut Cursor<'_>, sink: &mut Sink) {
        let open = cursor.at;
        if !cursor.eat("[") {
            let message = format!("expected `[`, found {}", cursor.found());
            cursor.take_while(|c| c != '[');
            return sink.report(line, Fault::new(open..cursor.at, message).hint(FORM));
        }
        loop {
            cursor.skip_spaces();
            if cursor.eat("]") {
                break;
            }
            if cursor.is_done() || cursor.peek() == b'[' {
                let fault = Fault::new(open..open + 1, "this transaction is not closed");
                return sink.report(line, fault.hint("close it with `]` in the same line"));
            }
            let start = cursor.at;
            match self.event(cursor) {
                Ok(action) => self.group.push(action),
                Err(fault) => {
                    sink.report(line, fault);
                    cursor.take_while(|c| !c.is_whitespace() && c != ']' && c != '[');
                    if cursor.at == start {
                        cursor.at = cursor.here().end;
                    }
                }
            }
        }
        let status = if cursor.eat("!") { Status::Fail } else { Status::Ok };
        if !self.group.is_empty() {
            let session = self.builder.session(&self.session.to_string());
            self.group.close(&mut self.builder, session, status);
        }
    }

    /// Parses `x:=1`, `x==1` or `x==?`.
    fn event(&mut self, cursor: &mut Cursor<'_>) -> Result<Action, Fault> {
        let name = cursor.take_while(|c| c.is_alphanumeric() || c == '_');
        if name.is_empty() {
            let message = format!("expected a variable, found {}", cursor.found());
            return Err(Fault::new(cursor.here(), message).hint(FORM));
        }
        let is_write = cursor.eat(":=");
        if !is_write && !cursor.eat("==") {
            let message = format!("expected `:=` or `==`, found {}", cursor.found());
            return Err(Fault::new(cursor.here(), message).hint("`:=` writes, `==` reads"));
        }
        let start = cursor.at;
        if cursor.eat("?") {
            if is_write {
                return Err(Fault::new(start..cursor.at, "a write of an unknown value")
                    .hint("only a read has `?`: it is the initial value"));
            }
            let (key, value) = (self.builder.key(name), self.builder.value(Value::Null));
            return Ok(Action::Read { key, value });
        }
        let value = cursor.integer().map_err(|fault| fault.or_hint(FORM))?;
        let (key, value) = (self.builder.key(name), self.builder.int(value));
        Ok(if is_write { Action::Write { key, value } } else { Action::Read { key, value } })
    }
}

const FORM: &str =
    "a transaction is `[x:=1 y==2 z==?]`, with a `!` after it if it was not committed";

/// Writes a history, one line per transaction; a session without operations is left out.
///
/// A key that contains other characters than letters, digits and `_` becomes a number.
pub(crate) fn write(history: &History, out: &mut dyn io::Write) -> io::Result<()> {
    let numbers = Numbers::of_keys(history);
    let is_plain =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let mut last_session = None;
    for transaction in history.all_transactions() {
        let session = history.session_of(OpId(transaction.ops.start));
        if last_session.replace(session).is_some_and(|last| last != session) {
            writeln!(out, "---")?;
        }
        out.write_all(b"[")?;
        for op in transaction.ops.clone() {
            let (sign, key, value) = match history.action(OpId(op)) {
                Action::Read { key, value } => ("==", key, value),
                Action::Write { key, value } => (":=", key, value),
                _ => unreachable!("it was checked that there are only reads and writes"),
            };
            if op > transaction.ops.start {
                out.write_all(b" ")?;
            }
            match history.key_name(key) {
                name if is_plain(name) => out.write_all(name.as_bytes())?,
                _ => write!(out, "{}", numbers.get(key.index()))?,
            }
            match history.value(value) {
                Value::Int(0) if sign == "==" => write!(out, "==?")?,
                value => write!(out, "{sign}{value}")?,
            }
        }
        writeln!(out, "]{}", if transaction.status == Status::Fail { "!" } else { "" })?;
    }
    Ok(())
}
