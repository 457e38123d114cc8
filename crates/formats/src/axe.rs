//! Axe's memory traces, one operation per line.
//!
//! ```text
//! 0: M[1] := 1                    # a store by thread 0
//! 1: M[1] == 1 @ 100:110          # a load, with the times of its request and response
//! 1: { M[0] == 0; M[0] := 1 }     # an atomic read-modify-write; `< >` is an older way
//! 0: sync                         # a fence
//! final M[1] == 2
//! check                           # ends the trace; another one may follow
//! ```
//!
//! An address may also be written `v1`. A time may lack its end, `@ 100:`, or its start, `@ :110`;
//! in the latter case the operation starts at 0, the first of Axe's times. A read-modify-write may
//! extend over several lines.
//!
//! The session's name is the number of the thread, the key's name is the address. Initial values
//! are 0.

use std::io;

use consistory_history::{
    Action, Details, History, HistoryBuilder, Interval, KeyId, OpId, ValueId,
};

use rustc_hash::FxHashSet;

use crate::numbers::Numbers;
use crate::parse::{Cursor, Fault, Line, Parse, Sink};

/// The parser of memory traces.
#[derive(Default)]
pub(crate) struct Axe {
    builder: HistoryBuilder,
    /// Addresses whose final value was given in the current trace.
    finals: FxHashSet<KeyId>,
    /// Lines of a read-modify-write that is not closed yet.
    open: Statement,
    last_line: u64,
}

/// An operation, a final value or `check`, on one line or more.
#[derive(Default)]
struct Statement {
    /// Content of the lines, separated by spaces.
    content: String,
    /// Lines: offset in the content, number and text of each.
    lines: Vec<(usize, u64, String)>,
}

impl Statement {
    fn push(&mut self, line: Line<'_>, content: &str) {
        if !self.lines.is_empty() {
            self.content.push(' ');
        }
        self.lines.push((self.content.len(), line.number, line.text.to_owned()));
        self.content.push_str(content);
    }

    /// Reports an error in the statement at the line that contains it.
    fn report(&self, mut fault: Fault, sink: &mut Sink) {
        let is_behind = |(start, ..): &&(usize, u64, String)| *start > fault.span.start;
        let at = self.lines.len() - self.lines.iter().rev().take_while(is_behind).count();
        let (start, number, text) = &self.lines[at - 1];
        let end = (fault.span.end - start).min(text.len());
        fault.span = (fault.span.start - start).min(end)..end;
        sink.report(Line { number: *number, text }, fault);
    }
}

/// A load or store: key, value and whether it is a store.
struct Access {
    key: KeyId,
    value: ValueId,
    is_store: bool,
}

impl Parse for Axe {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) {
        self.last_line = line.number;
        let Some(mut cursor) = line.content() else { return };
        let is_open = !self.open.lines.is_empty();
        if is_open && starts_anew(cursor) {
            self.close(sink);
        } else if is_open || cursor.text.contains(OPENING) && !cursor.text.contains(CLOSING) {
            self.open.push(line, cursor.text);
            if cursor.text.contains(CLOSING) {
                self.close(sink);
            }
            return;
        }
        if cursor.rest() == "check" {
            self.finals.clear();
            return sink.finish(&mut self.builder, line);
        }
        if let Err(fault) = self.statement(&mut cursor) {
            sink.report(line, fault);
        }
    }

    fn end(&mut self, sink: &mut Sink) {
        self.close(sink);
        sink.finish(&mut self.builder, Line { number: self.last_line, text: "" });
    }
}

const OPENING: [char; 2] = ['{', '<'];
const CLOSING: [char; 2] = ['}', '>'];

/// Checks whether a line cannot continue a read-modify-write.
fn starts_anew(mut cursor: Cursor<'_>) -> bool {
    if cursor.eat("final") || cursor.eat("check") {
        return true;
    }
    let thread = cursor.take_while(|c| c.is_ascii_digit());
    cursor.skip_spaces();
    !thread.is_empty() && cursor.peek() == b':'
}

impl Axe {
    /// Parses the lines of an unfinished read-modify-write.
    fn close(&mut self, sink: &mut Sink) {
        let open = std::mem::take(&mut self.open);
        if open.lines.is_empty() {
            return;
        }
        let mut cursor = Cursor::new(&open.content);
        cursor.skip_spaces();
        if let Err(fault) = self.statement(&mut cursor) {
            open.report(fault, sink);
        }
    }

    /// Parses an operation or a final value, up to the end of the text.
    fn statement(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        if cursor.eat("final") {
            self.final_value(cursor)?;
        } else {
            self.operation(cursor)?;
        }
        nothing_more(cursor)
    }

    fn operation(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let thread = cursor.number("a thread's id").map_err(|fault| fault.or_hint(LINES))?;
        cursor.expect(":").map_err(|fault| fault.or_hint(LINES))?;
        cursor.skip_spaces();
        let action = if cursor.eat("sync") {
            Action::Fence
        } else if cursor.eat("{") {
            self.atomic(cursor, "}")?
        } else if cursor.eat("<") {
            self.atomic(cursor, ">")?
        } else {
            match self.access(cursor)? {
                Access { key, value, is_store: true } => Action::Write { key, value },
                Access { key, value, .. } => Action::Read { key, value },
            }
        };
        let time = interval(cursor)?;
        let session = self.builder.session(thread);
        self.builder.push_with(session, action, Details { time, ..Details::default() });
        Ok(())
    }

    /// Parses `M[0] == 0; M[0] := 1` and the closing brace.
    fn atomic(&mut self, cursor: &mut Cursor<'_>, close: &str) -> Result<Action, Fault> {
        const FORM: &str = "an atomic operation is `{ M[0] == 0; M[0] := 1 }`, at one address";
        let start = cursor.at;
        let load = self.access(cursor)?;
        cursor.expect(";").map_err(|fault| fault.or_hint(FORM))?;
        let store = self.access(cursor)?;
        let span = start..cursor.at;
        cursor.expect(close).map_err(|fault| fault.or_hint(FORM))?;
        if load.is_store || !store.is_store {
            return Err(
                Fault::new(span, "an atomic operation is a load and then a store").hint(FORM)
            );
        }
        if load.key != store.key {
            return Err(Fault::new(span, "an atomic operation at two addresses").hint(FORM));
        }
        Ok(Action::Rmw { key: load.key, read: load.value, write: store.value })
    }

    /// Parses `M[1] := 1` or `M[1] == 1`, or the same with `v1`.
    fn access(&mut self, cursor: &mut Cursor<'_>) -> Result<Access, Fault> {
        cursor.skip_spaces();
        let address = if cursor.eat("v") {
            cursor.number("an address")?
        } else if cursor.eat("M") {
            cursor.expect("[")?;
            let address = cursor.number("an address")?;
            cursor.expect("]")?;
            address
        } else {
            let message = format!("expected an address, `M[1]` or `v1`, found {}", cursor.found());
            return Err(Fault::new(cursor.here(), message).hint(LINES));
        };
        cursor.skip_spaces();
        let is_store = cursor.eat(":=");
        if !is_store && !cursor.eat("==") {
            let message = format!("expected `:=` or `==`, found {}", cursor.found());
            return Err(Fault::new(cursor.here(), message).hint("`:=` stores, `==` loads"));
        }
        let value = cursor.integer()?;
        Ok(Access { key: self.builder.key(address), value: self.builder.int(value), is_store })
    }

    fn final_value(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let start = cursor.at;
        let access = self.access(cursor)?;
        if access.is_store {
            return Err(Fault::new(start..cursor.at, "a final value is `final M[1] == 2`"));
        }
        if !self.finals.insert(access.key) {
            return Err(Fault::new(start..cursor.at, "this address has a final value already"));
        }
        self.builder.set_final(access.key, access.value);
        Ok(())
    }
}

const LINES: &str =
    "a line is `0: M[1] := 1`, `0: M[1] == 1`, `0: sync`, `final M[1] == 1` or `check`";

/// Parses `@ 100:110`, if present; either time may be missing.
fn interval(cursor: &mut Cursor<'_>) -> Result<Option<Interval>, Fault> {
    cursor.skip_spaces();
    let from = cursor.at;
    if !cursor.eat("@") {
        return Ok(None);
    }
    cursor.skip_spaces();
    let start = if cursor.peek() == b':' { None } else { Some(cursor.integer()?) };
    cursor.expect(":")?;
    cursor.skip_spaces();
    let end = if cursor.is_done() { None } else { Some(cursor.integer()?) };
    match (start, end) {
        (None, None) => Ok(None),
        (None, Some(end)) => Ok(Some(Interval { start: end.min(0), end: Some(end) })),
        (Some(start), Some(end)) if end < start => Err(Fault::new(
            from..cursor.at,
            format!("it ends at {end}, before it starts at {start}"),
        )),
        (Some(start), end) => Ok(Some(Interval { start, end })),
    }
}

fn nothing_more(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    cursor.skip_spaces();
    if cursor.is_done() {
        return Ok(());
    }
    Err(Fault::new(cursor.at..cursor.text.len(), "unexpected text after the operation").hint(LINES))
}

/// Writes a trace and the `check` that ends it.
pub(crate) fn write(history: &History, out: &mut dyn io::Write) -> io::Result<()> {
    let threads = Numbers::of_sessions(history);
    let addresses = Numbers::of_keys(history);
    for op in history.ops() {
        let thread = threads.get(history.session_of(op).index());
        match history.action(op) {
            Action::Read { key, value } => {
                let address = addresses.get(key.index());
                write!(out, "{thread}: M[{address}] == {}", history.value(value))?;
            }
            Action::Write { key, value } => {
                let address = addresses.get(key.index());
                write!(out, "{thread}: M[{address}] := {}", history.value(value))?;
            }
            Action::Rmw { key, read, write } => {
                let address = addresses.get(key.index());
                let (read, write) = (history.value(read), history.value(write));
                write!(out, "{thread}: {{ M[{address}] == {read}; M[{address}] := {write} }}")?;
            }
            Action::Fence => write!(out, "{thread}: sync")?,
            Action::Append { .. } | Action::Call(_) => {
                unreachable!("it was checked that there are no appends and no calls")
            }
        }
        write_time(history, op, out)?;
    }
    for &(key, value) in history.finals() {
        let (address, value) = (addresses.get(key.index()), history.value(value));
        writeln!(out, "final M[{address}] == {value}")?;
    }
    writeln!(out, "check")
}

fn write_time(history: &History, op: OpId, out: &mut dyn io::Write) -> io::Result<()> {
    match history.time(op) {
        Some(Interval { start, end: Some(end) }) => writeln!(out, " @ {start}:{end}"),
        Some(Interval { start, end: None }) => writeln!(out, " @ {start}:"),
        None => writeln!(out),
    }
}
