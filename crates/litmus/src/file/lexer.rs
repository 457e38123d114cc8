//! Positions, errors and tokens of a `.litmus` file.

use std::ops::Range;
use std::sync::Arc;

use consistory_diagnostic::{Cursor, Diagnostics, Source};

/// Largest length of a test in bytes.
const MAX_TEST_BYTES: usize = 1 << 20;

/// A text with blanked-out comments, and its errors.
pub(super) struct Reader {
    source: Arc<str>,
    original: String,
    /// Text of the same length as the original, without comments.
    pub(super) text: String,
    problems: Vec<(Range<usize>, String, Option<String>)>,
}

/// A piece of the text with its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece<'t> {
    pub(super) text: &'t str,
    pub(super) start: usize,
}

impl<'t> Piece<'t> {
    pub(super) fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    pub(super) fn trim(&self) -> Piece<'t> {
        let start = self.start + (self.text.len() - self.text.trim_start().len());
        Piece { text: self.text.trim(), start }
    }

    /// Splits at every occurrence of a character; a last empty piece is left out.
    pub(super) fn split(&self, at: char) -> impl Iterator<Item = Piece<'t>> + use<'t> {
        let base = self.start;
        let whole = self.text;
        whole.split_terminator(at).map(move |part| {
            let start = base + (part.as_ptr() as usize - whole.as_ptr() as usize);
            Piece { text: part, start }
        })
    }
}

impl Reader {
    pub(super) fn new(source: &str, text: &str) -> Self {
        let mut problems = Vec::new();
        let original = if text.len() > MAX_TEST_BYTES {
            problems.push((0..0, format!("the test is longer than {MAX_TEST_BYTES} bytes"), None));
            String::new()
        } else {
            text.to_owned()
        };
        let text = blank_comments(&original, &mut problems);
        Reader { source: source.into(), original, text, problems }
    }

    pub(super) fn error(&mut self, place: Range<usize>, message: impl Into<String>) {
        self.problems.push((place, message.into(), None));
    }

    pub(super) fn error_with_hint(
        &mut self,
        place: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.problems.push((place, message.into(), Some(hint.into())));
    }

    /// Returns the test, or all errors in the order of the text.
    pub(super) fn finish<T>(mut self, test: Option<T>) -> Result<T, Diagnostics> {
        if let (Some(test), true) = (test, self.problems.is_empty()) {
            return Ok(test);
        }
        if self.problems.is_empty() {
            self.problems.push((0..0, "this is no litmus test".to_owned(), None));
        }
        self.problems.sort_by_key(|(place, ..)| place.start);
        let mut diagnostics = Diagnostics::default();
        let source = Source::new(self.source, &self.original);
        for (place, message, hint) in self.problems {
            diagnostics.push_at(&source, place, message, hint);
        }
        Err(diagnostics)
    }
}

/// Replaces comments between `(*` and `*)`, which may be nested, by blanks; line breaks stay.
fn blank_comments(
    text: &str,
    problems: &mut Vec<(Range<usize>, String, Option<String>)>,
) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut open: Vec<usize> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = if rest.starts_with("(*") {
            open.push(at);
            2
        } else if rest.starts_with("*)") && !open.is_empty() {
            open.pop();
            blanked.push_str("  ");
            at += 2;
            continue;
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        let piece = &text[at..at + length];
        match open.is_empty() {
            true => blanked.push_str(piece),
            false if piece == "\n" => blanked.push('\n'),
            false => blanked.extend(std::iter::repeat_n(' ', length)),
        }
        at += length;
    }
    if let Some(&start) = open.first() {
        problems.push((start..start + 2, "this comment never ends".to_owned(), None));
    }
    blanked
}

/// A word or symbol of a proposition or instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token<'t> {
    pub(super) text: &'t str,
    pub(super) start: usize,
}

impl Token<'_> {
    pub(super) fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    pub(super) fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }
}

/// Symbols of more than one character.
const LONG_MARKS: [&str; 4] = ["/\\", "\\/", "=>", "=="];

/// Splits a piece into words, numbers and symbols.
pub(super) fn tokens<'t>(piece: Piece<'t>) -> Vec<Token<'t>> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut found = Vec::new();
    let mut cursor = Cursor::new(piece.text);
    while let Some(first) = cursor.peek_char() {
        let start = cursor.at;
        if first.is_whitespace() {
            cursor.bump();
            continue;
        }
        if is_inner(first) {
            cursor.take_while(is_inner);
        } else if cursor.eat_any(&LONG_MARKS).is_none() {
            cursor.bump();
        }
        found.push(Token { text: cursor.since(start), start: piece.start + start });
    }
    found
}

/// Parses a decimal or hexadecimal number.
pub(super) fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok().filter(|_| text.starts_with(|c: char| c.is_ascii_digit())),
    }
}
