//! What the parsers of all formats share: lines in, histories and diagnostics out.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use consistory_history::{Action, Details, History, HistoryBuilder, SessionId, Status};

use crate::diagnostic::Diagnostics;

/// A parser of one format, fed line by line.
pub(crate) trait Parse: Send {
    /// Takes the next line.
    fn line(&mut self, line: Line<'_>, sink: &mut Sink);

    /// Takes the end of the input.
    fn end(&mut self, sink: &mut Sink);
}

/// A line without its end.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    /// Its number, counting from 1.
    pub(crate) number: u64,
    /// Its text.
    pub(crate) text: &'a str,
}

impl<'a> Line<'a> {
    /// Returns a cursor at what the line says, unless it says nothing; a comment starts with `#`.
    pub(crate) fn content(self) -> Option<Cursor<'a>> {
        let text = self.text.split('#').next().unwrap_or_default().trim_end();
        let mut cursor = Cursor::new(text);
        cursor.skip_spaces();
        (!cursor.is_done()).then_some(cursor)
    }
}

/// What is wrong at some bytes of a line.
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Fault {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Fault { span, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint if there is none.
    pub(crate) fn or_hint(self, hint: &str) -> Self {
        if self.hint.is_some() { self } else { self.hint(hint) }
    }
}

/// Where parsers put what they find.
pub(crate) struct Sink {
    pub(crate) source: Arc<str>,
    pub(crate) finished: VecDeque<History>,
    pub(crate) diagnostics: Diagnostics,
}

impl Sink {
    pub(crate) fn new(source: Arc<str>) -> Self {
        Sink { source, finished: VecDeque::new(), diagnostics: Diagnostics::default() }
    }

    /// Reports an error.
    #[cold]
    pub(crate) fn report(&mut self, line: Line<'_>, fault: Fault) {
        let Fault { span, message, hint } = fault;
        self.diagnostics.push(&self.source, line.number, line.text, span, message, hint);
    }

    /// Finishes the history under construction, unless nothing was added to it.
    pub(crate) fn finish(&mut self, builder: &mut HistoryBuilder, line: Line<'_>) {
        let builder = std::mem::take(builder);
        if builder.is_empty() {
            return;
        }
        match builder.finish() {
            // Nothing is claimed of a malformed input.
            Ok(_) if !self.diagnostics.is_empty() => {}
            Ok(history) => self.finished.push_back(history),
            Err(error) => self.report(line, Fault::new(0..line.text.len(), error.to_string())),
        }
    }
}

/// The operations of a transaction that is not over yet.
///
/// A transaction of one operation becomes a plain operation.
#[derive(Default)]
pub(crate) struct Group {
    actions: Vec<Action>,
}

impl Group {
    pub(crate) fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    pub(crate) fn close(
        &mut self,
        builder: &mut HistoryBuilder,
        session: SessionId,
        status: Status,
    ) {
        let mut details = Details::default();
        if self.actions.len() > 1 {
            let transaction = builder.begin_transaction();
            builder.set_transaction_status(transaction, status);
            details.transaction = Some(transaction);
        } else {
            details.status = status;
        }
        for action in self.actions.drain(..) {
            builder.push_with(session, action, details);
        }
    }
}

/// A place in a line that moves forward.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Cursor { text, at: 0 }
    }

    /// Gives the next byte, or 0 at the end.
    #[inline]
    pub(crate) fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(crate) fn is_done(&self) -> bool {
        self.at == self.text.len()
    }

    #[inline]
    pub(crate) fn skip_spaces(&mut self) {
        while is_space(self.peek()) {
            self.at += 1;
        }
    }

    /// Takes an ASCII token if it is next.
    pub(crate) fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Takes a token behind spaces, or says that it is missing.
    pub(crate) fn expect(&mut self, token: &str) -> Result<(), Fault> {
        self.skip_spaces();
        if self.eat(token) {
            return Ok(());
        }
        Err(Fault::new(self.here(), format!("expected `{token}`, found {}", self.found())))
    }

    /// Takes the bytes that satisfy a predicate; it must hold for ASCII only or take characters
    /// whole.
    pub(crate) fn take_while(&mut self, mut accept: impl FnMut(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Takes an integer.
    pub(crate) fn integer(&mut self) -> Result<i64, Fault> {
        self.skip_spaces();
        let start = self.at;
        self.eat("-");
        let digits = self.take_while(|c| c.is_ascii_digit());
        let text = &self.text[start..self.at];
        if digits.is_empty() {
            self.at = start;
            return Err(Fault::new(
                self.here(),
                format!("expected an integer, found {}", self.found()),
            ));
        }
        text.parse().map_err(|_| beyond_i64(start..self.at, text))
    }

    /// Takes a number that serves as a name.
    pub(crate) fn number(&mut self, what: &str) -> Result<&'a str, Fault> {
        self.skip_spaces();
        let digits = self.take_while(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Err(Fault::new(
                self.here(),
                format!("expected {what}, a number, found {}", self.found()),
            ));
        }
        Ok(digits)
    }

    /// Gives the span of the next character.
    pub(crate) fn here(&self) -> Range<usize> {
        self.at..self.at + self.rest().chars().next().map_or(0, char::len_utf8)
    }

    /// Describes the next character.
    pub(crate) fn found(&self) -> String {
        match self.rest().chars().next() {
            Some(c) => format!("`{c}`"),
            None => "the end of the line".into(),
        }
    }
}

pub(crate) fn beyond_i64(span: Range<usize>, text: &str) -> Fault {
    let shown = if text.len() > 40 { format!("{}...", &text[..30]) } else { text.into() };
    Fault::new(span, format!("`{shown}` is beyond the 64-bit integers"))
        .hint("integers go from -9223372036854775808 to 9223372036854775807")
}

#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// Finds the candidate that a misspelt word was meant to be.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(32).flat_map(char::to_lowercase).collect();
    let close = candidates.into_iter().map(|candidate| (distance(&word, candidate), candidate));
    let (distance, candidate) = close.min_by_key(|&(distance, _)| distance)?;
    (distance <= candidate.len() / 3).then_some(candidate)
}

/// Counts the insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before = vec![0; to.len() + 1];
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for i in 0..from.len() {
        let mut row = vec![i + 1; to.len() + 1];
        for j in 0..to.len() {
            let replaced = last[j] + usize::from(from[i] != to[j]);
            row[j + 1] = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_near() {
        let known = ["read", "write", "rmw", "fence"];
        for (word, expected) in [
            ("raed", Some("read")),
            ("wirte", Some("write")),
            ("Write", Some("write")),
            ("fense", Some("fence")),
            ("rwm", Some("rmw")),
            ("enqueue", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }
}
