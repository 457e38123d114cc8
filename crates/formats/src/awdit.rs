//! AWDIT's own text: one operation per line.
//!
//! ```text
//! w 0 1      # key 0, value 1
//! r 1 0
//! -----      # the next transaction
//! r 0 1
//! =====      # the next session
//! r 0 1
//! ```
//!
//! The name of a session is its index, counted from 0.

use std::io;

use consistory_history::{Action, History, HistoryBuilder, Status};

use crate::numbers::Numbers;
use crate::parse::{Cursor, Fault, Group, Line, Parse, Sink};

/// The parser of this format.
#[derive(Default)]
pub(crate) struct Awdit {
    builder: HistoryBuilder,
    session: u64,
    group: Group,
    last_line: u64,
}

impl Parse for Awdit {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) {
        self.last_line = line.number;
        let Some(mut cursor) = line.content() else { return };
        let is_all = |c| cursor.rest().chars().all(|other| other == c);
        if is_all('-') {
            self.close();
        } else if is_all('=') {
            self.close();
            self.session += 1;
        } else if let Err(fault) = self.operation(&mut cursor) {
            sink.report(line, fault);
        }
    }

    fn end(&mut self, sink: &mut Sink) {
        self.close();
        sink.finish(&mut self.builder, Line { number: self.last_line, text: "" });
    }
}

impl Awdit {
    fn operation(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let start = cursor.at;
        let name = cursor.take_while(|c| !c.is_whitespace());
        if !matches!(name, "r" | "w") {
            return Err(Fault::new(
                start..cursor.at,
                format!("expected `r` or `w`, found `{name}`"),
            )
            .hint(FORM));
        }
        let key = cursor.number("a key").map_err(|fault| fault.or_hint(FORM))?;
        let value = cursor.integer().map_err(|fault| fault.or_hint(FORM))?;
        cursor.skip_spaces();
        if !cursor.is_done() {
            return Err(Fault::new(
                cursor.at..cursor.text.len(),
                "unexpected text after the operation",
            )
            .hint(FORM));
        }
        let (key, value) = (self.builder.key(key), self.builder.int(value));
        self.group.push(match name {
            "r" => Action::Read { key, value },
            _ => Action::Write { key, value },
        });
        Ok(())
    }

    /// Ends the transaction.
    fn close(&mut self) {
        if self.group.is_empty() {
            return;
        }
        let session = self.builder.session(&self.session.to_string());
        self.group.close(&mut self.builder, session, Status::Ok);
    }
}

const FORM: &str = "a line is `r KEY VALUE` or `w KEY VALUE` in numbers, \
    or of `-` between transactions, or of `=` between sessions";

/// Writes a history; a session without operations is left out.
pub(crate) fn write(history: &History, out: &mut dyn io::Write) -> io::Result<()> {
    let keys = Numbers::of_keys(history);
    let mut last = None;
    for op in history.ops() {
        let session = history.session_of(op);
        let bracket = history.transaction_of(op);
        match last {
            Some((before, _)) if before != session => writeln!(out, "=====")?,
            Some((_, before)) if bracket.is_none() || bracket != before => writeln!(out, "-----")?,
            _ => {}
        }
        last = Some((session, bracket));
        let (name, key, value) = match history.action(op) {
            Action::Read { key, value } => ('r', key, value),
            Action::Write { key, value } => ('w', key, value),
            _ => unreachable!("it was checked that there are only reads and writes"),
        };
        writeln!(out, "{name} {} {}", keys.get(key.index()), history.value(value))?;
    }
    Ok(())
}
