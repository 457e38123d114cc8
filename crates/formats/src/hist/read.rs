//! Reads the text notation.
//!
//! Nearly every operation of a large file is `r(key,1)` or `w(key,1)`: [`Hist::quick`] parses these
//! on a fast path, and leaves all other operations and all errors to [`Hist::operation`].

use std::borrow::Cow;
use std::ops::Range;

use consistory_history::{
    Action, Call, Details, HistoryBuilder, Interval, KeyId, SessionId, Status, ValueId,
};
use rustc_hash::FxHashSet;

use super::token::{
    Arg, argument, is_word_byte, is_word_char, key_of, nothing_more, quick_integer, quoted,
    session_name, status, suffixes, text_end, value, value_of, word,
};
use super::{REGISTER_OPERATIONS, misspelt_register};
use crate::parse::{Cursor, Fault, Line, Parse, Sink, is_space, nearest};

/// The parser of the text notation.
#[derive(Default)]
pub(crate) struct Hist {
    builder: HistoryBuilder,
    /// Arguments of the current operation.
    args: Vec<Arg>,
    initial: FxHashSet<KeyId>,
    finals: FxHashSet<KeyId>,
    last_line: u64,
}

/// Operations of a line between two checks of the budget.
const OPERATIONS_PER_CHECK: u32 = 1 << 15;

/// Kind of the values in a line of bindings.
#[derive(Clone, Copy)]
enum Bindings {
    Initial,
    Final,
}

impl Parse for Hist {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink) {
        self.last_line = line.number;
        let mut cursor = Cursor::new(line.text);
        cursor.skip_spaces();
        match cursor.peek() {
            b'#' => return,
            0 if cursor.is_done() => return,
            b'-' if cursor.rest().starts_with("---") => return self.separator(line, cursor, sink),
            _ => {}
        }
        let is_quoted = cursor.peek() == b'"';
        let start = cursor.at;
        match session_name(&mut cursor) {
            Ok(name) => match &*name {
                "init" if !is_quoted => self.bindings(line, cursor, Bindings::Initial, sink),
                "final" if !is_quoted => self.bindings(line, cursor, Bindings::Final, sink),
                "init" => sink.report(
                    line,
                    Fault::new(
                        start..start + "\"init\"".len(),
                        "a session cannot be called \"init\"",
                    )
                    .hint("`init:x` is the initial write of x; give the session another name"),
                ),
                _ => {
                    let session = self.builder.session(&name);
                    self.operations(line, cursor, session, sink);
                }
            },
            Err(fault) => sink.report(line, fault),
        }
    }

    fn end(&mut self, sink: &mut Sink) {
        self.finish(Line { number: self.last_line, text: "" }, sink);
    }
}

impl Hist {
    fn finish(&mut self, line: Line<'_>, sink: &mut Sink) {
        sink.finish(&mut self.builder, line);
        self.initial.clear();
        self.finals.clear();
    }

    /// Parses `---`, and the name of the next history after it.
    fn separator(&mut self, line: Line<'_>, mut cursor: Cursor<'_>, sink: &mut Sink) {
        self.finish(line, sink);
        let start = cursor.at;
        cursor.at += 3;
        if !cursor.is_done() && !is_space(cursor.peek()) && cursor.peek() != b'#' {
            let span = start..line.text.trim_end().len();
            let fault = Fault::new(span, "a separator is `---`")
                .hint("put a space between `---` and the name of the history");
            return sink.report(line, fault);
        }
        cursor.skip_spaces();
        if cursor.peek() == b'"' {
            match quoted(&mut cursor).and_then(|name| nothing_more(&mut cursor).map(|()| name)) {
                Ok(name) => self.builder.set_name(&name),
                Err(fault) => sink.report(line, fault),
            }
            return;
        }
        let name = cursor.take_while(|c| c != '#').trim_end();
        if !name.is_empty() {
            self.builder.set_name(name);
        }
    }

    /// Parses `key=value ...`.
    fn bindings(
        &mut self,
        line: Line<'_>,
        mut cursor: Cursor<'_>,
        kind: Bindings,
        sink: &mut Sink,
    ) {
        loop {
            cursor.skip_spaces();
            if cursor.is_done() || cursor.peek() == b'#' {
                return;
            }
            let start = cursor.at;
            if let Err(fault) = self.binding(&mut cursor, kind) {
                sink.report(line, fault);
                cursor.at = cursor.at.max(start);
                cursor.take_while(|c| !c.is_whitespace() && c != '#');
                if cursor.at == start {
                    cursor.at = cursor.here().end;
                }
            }
        }
    }

    fn binding(&mut self, cursor: &mut Cursor<'_>, kind: Bindings) -> Result<(), Fault> {
        let start = cursor.at;
        let arg = argument(cursor)?;
        if cursor.peek() == b'(' {
            let (word, meaning) = match kind {
                Bindings::Initial => ("init", "initial values"),
                Bindings::Final => ("final", "the values held in the end"),
            };
            let text = &cursor.text[start..cursor.at];
            let fault = Fault::new(start..cursor.at, format!("`{text}` in a line of {meaning}"));
            let span_end = cursor.text.len();
            cursor.at = cursor.text[cursor.at..].find(')').map_or(span_end, |i| cursor.at + i + 1);
            return Err(fault.hint(format!(
                "`{word}:` takes bindings like `x=5`; \
                 a session that is really named so is quoted: `\"{word}\":`"
            )));
        }
        let key = key_of(&mut self.builder, cursor.text, &arg)?;
        cursor.skip_spaces();
        if !cursor.eat("=") {
            return Err(Fault::new(
                cursor.here(),
                format!("expected `=`, found {}", cursor.found()),
            )
            .hint("a binding is `key=value`, and bindings are separated by spaces"));
        }
        cursor.skip_spaces();
        let value = value(cursor, 0)?;
        if !cursor.is_done() && !is_space(cursor.peek()) && cursor.peek() != b'#' {
            return Err(Fault::new(cursor.here(), format!("unexpected {}", cursor.found()))
                .hint("bindings are separated by spaces"));
        }
        let value = self.builder.value(value);
        let given = match kind {
            Bindings::Initial => &mut self.initial,
            Bindings::Final => &mut self.finals,
        };
        if !given.insert(key) {
            return Err(Fault::new(start..cursor.at, "this key has a value already"));
        }
        match kind {
            Bindings::Initial => self.builder.set_initial(key, value),
            Bindings::Final => self.builder.set_final(key, value),
        }
        Ok(())
    }

    /// Parses the operations after `name:`.
    fn operations(
        &mut self,
        line: Line<'_>,
        mut cursor: Cursor<'_>,
        session: SessionId,
        sink: &mut Sink,
    ) {
        let mut open = None;
        let mut read = 0_u32;
        loop {
            cursor.skip_spaces();
            match cursor.peek() {
                0 if cursor.is_done() => break,
                b'#' => break,
                b'[' => {
                    if open.is_some() {
                        let fault = Fault::new(cursor.here(), "a transaction inside a transaction")
                            .hint("close the one before with `]`");
                        sink.report(line, fault);
                    }
                    open = Some((self.builder.begin_transaction(), cursor.at));
                    cursor.at += 1;
                }
                b']' => {
                    let place = cursor.here();
                    cursor.at += 1;
                    let status = status(&mut cursor).unwrap_or_default();
                    match open.take() {
                        Some((transaction, _)) => {
                            self.builder.set_transaction_status(transaction, status);
                        }
                        None => sink.report(
                            line,
                            Fault::new(place, "`]` without `[`")
                                .hint("a transaction is `[ ... ]`, in one line"),
                        ),
                    }
                    if cursor.peek() == b'@' {
                        let start = cursor.at;
                        cursor.take_while(|c| matches!(c, '@' | '.' | '-' | '0'..='9'));
                        let fault = Fault::new(start..cursor.at, "a transaction has no time")
                            .hint("put the times after its operations");
                        sink.report(line, fault);
                    }
                }
                _ => {
                    // A line may be as long as the whole input.
                    read += 1;
                    if read.is_multiple_of(OPERATIONS_PER_CHECK) && !sink.limits.goes_on() {
                        return;
                    }
                    let transaction = open.map(|(transaction, _)| transaction);
                    if let Some((action, time)) = self.quick(&mut cursor) {
                        let details = Details { time, transaction, status: Status::Ok };
                        self.builder.push_with(session, action, details);
                        continue;
                    }
                    let start = cursor.at;
                    match self.operation(&mut cursor) {
                        Ok((action, details)) => {
                            let details = Details { transaction, ..details };
                            self.builder.push_with(session, action, details);
                        }
                        Err(fault) => {
                            cursor.at = resume(line.text, start, fault.span.start);
                            sink.report(line, fault);
                        }
                    }
                }
            }
        }
        if let Some((_, place)) = open {
            let fault = Fault::new(place..place + 1, "this transaction is not closed")
                .hint("close it with `]` in the same line, or with `]!` if it was aborted");
            sink.report(line, fault);
        }
    }

    /// Parses `r(key,1)`, `w(key,1)`, `append(key,1)` or `rmw(key,0,1)`, with or without `@3..9`,
    /// if it contains no spaces, quotes or other variations; otherwise the cursor does not move.
    #[inline]
    fn quick(&mut self, cursor: &mut Cursor<'_>) -> Option<(Action, Option<Interval>)> {
        let bytes = cursor.text.as_bytes();
        let kind = bytes[cursor.at];
        let mut at = match &bytes[cursor.at..] {
            [b'r' | b'w', b'(', ..] => cursor.at + 2,
            [b'r', b'm', b'w', b'(', ..] => cursor.at + 4,
            [b'a', b'p', b'p', b'e', b'n', b'd', b'(', ..] => cursor.at + 7,
            _ => return None,
        };
        let is_rmw = at - cursor.at == 4;
        let start = at;
        while at < bytes.len() && is_word_byte(bytes[at]) {
            at += 1;
        }
        let name = &bytes[start..at];
        let is_plain = match name.first()? {
            b'0'..=b'9' => name.iter().all(u8::is_ascii_digit),
            first => first.is_ascii_alphabetic() || *first == b'_',
        };
        if !is_plain || bytes.get(at) != Some(&b',') {
            return None;
        }
        let name = &cursor.text[start..at];
        at += 1;
        let first = quick_integer(bytes, &mut at)?;
        let mut second = 0;
        if is_rmw {
            if bytes.get(at) != Some(&b',') {
                return None;
            }
            at += 1;
            second = quick_integer(bytes, &mut at)?;
        }
        if bytes.get(at) != Some(&b')') {
            return None;
        }
        at += 1;
        let mut time = None;
        if bytes.get(at) == Some(&b'@') {
            at += 1;
            let start = quick_integer(bytes, &mut at)?;
            if bytes.get(at..at + 2) != Some(b"..") {
                return None;
            }
            at += 2;
            let end = match bytes.get(at) {
                Some(b'-' | b'0'..=b'9') => Some(quick_integer(bytes, &mut at)?),
                _ => None,
            };
            if end.is_some_and(|end| end < start) {
                return None;
            }
            time = Some(Interval { start, end });
        }
        // A return, a status or a time after spaces belongs to this operation.
        let mut next = at;
        while next < bytes.len() && is_space(bytes[next]) {
            next += 1;
        }
        if let Some(b'=' | b'@' | b'?' | b'!') = bytes.get(next) {
            return None;
        }
        cursor.at = next;
        let key = self.builder.key(name);
        let value = self.builder.int(first);
        let action = match kind {
            _ if is_rmw => Action::Rmw { key, read: value, write: self.builder.int(second) },
            b'r' => Action::Read { key, value },
            b'a' => Action::Append { key, value },
            _ => Action::Write { key, value },
        };
        Some((action, time))
    }

    /// Parses any operation, with its return, status and time.
    fn operation(&mut self, cursor: &mut Cursor<'_>) -> Result<(Action, Details), Fault> {
        let start = cursor.at;
        let is_quoted = cursor.peek() == b'"';
        let name = if is_quoted { Cow::Owned(quoted(cursor)?) } else { word(cursor).into() };
        let name_span = start..cursor.at;
        if name.is_empty() && !is_quoted {
            return Err(unexpected(cursor));
        }
        let action = if cursor.peek() == b'(' {
            cursor.at += 1;
            self.arguments(cursor)?;
            let close = cursor.at;
            let returns = self.returns(cursor)?;
            let is_register = !is_quoted
                && returns.is_none()
                && (matches!(&*name, "r" | "w" | "read" | "write" | "rmw")
                    || (&*name == "append" && self.args.len() == 2));
            if is_register {
                self.register(cursor.text, &name, start..close)?
            } else {
                if returns.is_none()
                    && !is_quoted
                    && let Some(meant) = misspelt_register(&name, self.args.len())
                {
                    return Err(Fault::new(name_span, format!("unknown operation `{name}`")).hint(
                        format!(
                            "did you mean `{meant}`? \
                             A call of a method that is really named so has a return, `=> ?` if none is known"
                        ),
                    ));
                }
                let args = self
                    .args
                    .drain(..)
                    .map(|arg| value_of(&mut self.builder, cursor.text, arg))
                    .collect::<Result<_, _>>()?;
                let returns = returns.flatten();
                Action::Call(self.builder.call(Call { method: name.into(), args, returns }))
            }
        } else if !is_quoted && matches!(&*name, "f" | "fence") {
            Action::Fence
        } else {
            return Err(not_an_operation(cursor, &name, name_span));
        };
        let (status, time) = suffixes(cursor)?;
        Ok((action, Details { status, time, transaction: None }))
    }

    /// Parses the arguments up to `)` into `self.args`.
    fn arguments(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        self.args.clear();
        cursor.skip_spaces();
        if cursor.eat(")") {
            return Ok(());
        }
        loop {
            cursor.skip_spaces();
            self.args.push(argument(cursor)?);
            cursor.skip_spaces();
            if cursor.eat(")") {
                return Ok(());
            }
            if !cursor.eat(",") {
                let message = format!("expected `,` or `)`, found {}", cursor.found());
                return Err(Fault::new(cursor.here(), message)
                    .hint("arguments are separated by commas and end with `)`"));
            }
        }
    }

    /// Parses `=> value`; `=> ?` is a return that was not recorded.
    fn returns(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<Option<ValueId>>, Fault> {
        let mut ahead = *cursor;
        ahead.skip_spaces();
        if !ahead.eat("=>") {
            return Ok(None);
        }
        ahead.skip_spaces();
        *cursor = ahead;
        if cursor.eat("?") {
            return Ok(Some(None));
        }
        let value = value(cursor, 0)?;
        Ok(Some(Some(self.builder.value(value))))
    }

    /// Builds an operation of a register from `self.args`.
    fn register(&mut self, text: &str, name: &str, span: Range<usize>) -> Result<Action, Fault> {
        let (expected, form) = match name {
            "rmw" => (3, "rmw(key,read,written)"),
            "r" | "read" => (2, "r(key,value)"),
            "append" => (2, "append(key,value)"),
            _ => (2, "w(key,value)"),
        };
        if self.args.len() != expected {
            let plural = if self.args.len() == 1 { "" } else { "s" };
            let message = format!(
                "`{name}` takes {expected} arguments, found {} argument{plural}",
                self.args.len()
            );
            return Err(Fault::new(span, message).hint(format!("write `{form}`")));
        }
        let mut args = self.args.drain(..);
        let key = args.next().expect("the arguments were counted");
        let key = key_of(&mut self.builder, text, &key)?;
        let mut value = |arg| value_of(&mut self.builder, text, arg);
        let first = value(args.next().expect("the arguments were counted"))?;
        let second = args.next().map(value).transpose()?;
        Ok(match (name, second) {
            (_, Some(write)) => Action::Rmw { key, read: first, write },
            ("r" | "read", _) => Action::Read { key, value: first },
            ("append", _) => Action::Append { key, value: first },
            _ => Action::Write { key, value: first },
        })
    }
}

fn unexpected(cursor: &Cursor<'_>) -> Fault {
    let fault = Fault::new(cursor.here(), format!("unexpected {}", cursor.found()));
    match cursor.peek() {
        b',' | b';' | b'|' => fault.hint("operations are separated by spaces"),
        b')' => fault.hint("this `)` closes nothing"),
        b':' => fault.hint("a line is one session; start the next session in a line of its own"),
        b'@' => fault.hint("a time stands after its operation: `w(x,1)@3..9`"),
        b'!' | b'?' => fault.hint("a status stands after its operation or transaction, once"),
        _ => fault
            .hint("an operation is `w(x,1)`, `r(x,1)`, `rmw(x,0,1)`, `f` or a call `put(1) => 2`"),
    }
}

fn not_an_operation(cursor: &Cursor<'_>, name: &str, span: Range<usize>) -> Fault {
    let mut ahead = *cursor;
    ahead.skip_spaces();
    let fault = Fault::new(span, format!("unknown operation `{name}`"));
    if ahead.peek() == b'(' {
        fault.hint(format!("write `{name}(...)` without a space before `(`"))
    } else if ahead.peek() == b':' {
        fault.hint("a line is one session; start the next session in a line of its own")
    } else if matches!(name, "r" | "w" | "read" | "write" | "rmw") {
        fault.hint(format!("its arguments are missing: `{name}(x,1)`"))
    } else if let Some(meant) = nearest(name, REGISTER_OPERATIONS) {
        fault.hint(format!("did you mean `{meant}`?"))
    } else {
        fault.hint("an operation is `w(x,1)`, `r(x,1)`, `rmw(x,0,1)`, `f` or a call `put(1) => 2`")
    }
}

/// Returns the position at which parsing continues after an operation that is malformed at `fault`.
fn resume(text: &str, start: usize, fault: usize) -> usize {
    let mut cursor = Cursor { text, at: fault };
    // In `w(x,1 r(y,2)` the `)` is missing, and the next operation is well-formed.
    if fault > start {
        let mut ahead = cursor;
        if !word(&mut ahead).is_empty() && ahead.peek() == b'(' {
            return fault;
        }
    }
    let is_inside = text[start..fault].contains('(') || {
        cursor.at = start;
        cursor.take_while(is_word_char);
        cursor.skip_spaces();
        cursor.peek() == b'('
    };
    cursor.at = fault;
    if !is_inside {
        cursor.take_while(|c| !c.is_whitespace() && !matches!(c, '[' | ']' | '#'));
        return if cursor.at == start { cursor.here().end } else { cursor.at };
    }
    // The fault may be after the closing parenthesis, in the return, the status or the time.
    if !text[start..fault].contains(')') {
        loop {
            match cursor.peek() {
                b'#' => return cursor.at,
                0 if cursor.is_done() => return cursor.at,
                b'"' => cursor.at = text_end(text, cursor.at).unwrap_or(cursor.at + 1),
                b')' => break,
                _ => cursor.at = cursor.here().end,
            }
        }
        cursor.at += 1;
    }
    let mut ahead = cursor;
    ahead.skip_spaces();
    if ahead.eat("=>") {
        ahead.skip_spaces();
        cursor = ahead;
    }
    cursor.take_while(|c| !c.is_whitespace() && !matches!(c, '[' | ']' | '#'));
    cursor.at
}
