//! Diagnostics: errors in an input, with their positions.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::source::Source;

/// Number of diagnostics of one input that are kept; the others are only counted.
const MAX_KEPT: usize = 1000;
/// Lines longer than this many bytes are clipped around the error.
const MAX_LINE_BYTES: usize = 120;
/// Bytes of a clipped line that are shown before the error.
const BYTES_BEFORE: usize = 40;
/// Bytes of a clipped line that are shown from the start of the error on.
const BYTES_AFTER: usize = 80;
/// Messages and hints longer than this many bytes are cut.
const MAX_SENTENCE_BYTES: usize = 400;

/// Whether rendered text has colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Without escape codes.
    Plain,
    /// With ANSI colours.
    Styled,
}

/// An error at some bytes of a line, before the line and the input are known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Byte range in the line.
    pub span: Range<usize>,
    /// Description of the error.
    pub message: String,
    /// Suggestion for a correction.
    pub hint: Option<String>,
}

impl Fault {
    /// Returns a fault without a hint.
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Fault { span, message: message.into(), hint: None }
    }

    /// Adds a hint, replacing any other.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint if there is none.
    #[must_use]
    pub fn or_hint(self, hint: &str) -> Self {
        if self.hint.is_some() { self } else { self.hint(hint) }
    }
}

/// One error of an input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The name of the input.
    pub source: Arc<str>,
    /// The line, counting from 1.
    pub line: u64,
    /// Column at which the error starts, in characters, counting from 1.
    pub column: u64,
    /// Number of characters of the error; 0 for an error after the last character.
    pub length: usize,
    /// The line, or a window of it if it is long.
    pub text: String,
    /// Byte range of the error in `text`.
    pub marked: Range<usize>,
    /// Description of the error.
    pub message: String,
    /// Suggestion for a correction.
    pub hint: Option<String>,
}

impl Diagnostic {
    fn render(&self, renderer: &Renderer) -> String {
        let source = visible(&self.source);
        let snippet = Snippet::source(self.text.as_str())
            .path(&*source)
            .line_start(self.line as usize)
            .annotation(AnnotationKind::Primary.span(self.marked.clone()));
        let mut group = Level::ERROR.primary_title(self.message.as_str()).element(snippet);
        if let Some(hint) = &self.hint {
            group = group.element(Level::HELP.message(hint.as_str()));
        }
        let rendered = renderer.render(&[group]);
        // The renderer counts the column in the text that it receives, which may be a window.
        let shown = self.text[..self.marked.start].chars().count() as u64 + 1;
        let place = |column| format!("{source}:{}:{column}", self.line);
        if shown == self.column {
            return rendered;
        }
        rendered.replacen(&place(shown), &place(self.column), 1)
    }
}

/// Escapes characters that a terminal would interpret: the name of a file can contain a line break
/// that forges a line, a control sequence, or a mark that changes the direction of writing.
fn visible(name: &str) -> Cow<'_, str> {
    const MARKS: [RangeInclusive<char>; 6] = [
        '\u{061C}'..='\u{061C}',
        '\u{200B}'..='\u{200F}',
        '\u{2028}'..='\u{202E}',
        '\u{2060}'..='\u{206F}',
        '\u{FEFF}'..='\u{FEFF}',
        '\u{E0000}'..='\u{E007F}',
    ];
    let acts = |c: char| c.is_control() || MARKS.iter().any(|marks| marks.contains(&c));
    if !name.contains(acts) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 16);
    for c in name.chars() {
        match acts(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { source, line, column, message, .. } = self;
        write!(f, "{source}:{line}:{column}: {message}")?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// Errors of an input, in the order in which they were found.
///
/// The first thousand are kept; the others are only counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diagnostics {
    kept: Vec<Diagnostic>,
    more: u64,
    /// Last position whose column was computed: line, byte, column. This avoids counting the
    /// characters of a long line from its start for every error in it.
    known: (u64, usize, u64),
}

impl Diagnostics {
    /// Iterates over the diagnostics that were kept.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Diagnostic> {
        self.kept.iter()
    }

    /// Returns the number of errors that were found, including those that were not kept.
    pub fn count(&self) -> u64 {
        self.kept.len() as u64 + self.more
    }

    /// Returns whether there is no error.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Renders all diagnostics as rustc does, followed by their number.
    pub fn render(&self, style: Style) -> String {
        let renderer = match style {
            Style::Plain => Renderer::plain(),
            Style::Styled => Renderer::styled(),
        };
        let mut out = String::new();
        for diagnostic in &self.kept {
            out.push_str(&diagnostic.render(&renderer));
            out.push_str("\n\n");
        }
        out.push_str(&self.summary());
        out.push('\n');
        out
    }

    fn summary(&self) -> String {
        let source = visible(self.kept.first().map_or("", |d| &*d.source));
        let plural = if self.count() == 1 { "" } else { "s" };
        match self.more {
            0 => format!("{source}: {} error{plural}", self.count()),
            more => format!("{source}: {} error{plural}, {more} of them not shown", self.count()),
        }
    }

    /// Adds an error at a byte range of a whole text, of which only the first line is marked.
    pub fn push_at(
        &mut self,
        source: &Source<'_>,
        range: Range<usize>,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        let (line, text, span) = source.line(range);
        self.push(source.name(), line, text, span, message.into(), hint);
    }

    /// Adds an error at the byte range `span` of a line.
    pub fn push(
        &mut self,
        source: &Arc<str>,
        line: u64,
        text: &str,
        span: Range<usize>,
        message: String,
        hint: Option<String>,
    ) {
        if self.kept.len() == MAX_KEPT {
            self.more += 1;
            return;
        }
        let start = floor(text, span.start);
        let end = ceil(text, span.end.max(start));
        let column = self.column(line, text, start);
        let length = text[start..end].chars().count();
        let (text, marked) = window(text, start..end);
        let source = source.clone();
        let message = clip(message);
        let hint = hint.map(clip);
        self.kept.push(Diagnostic { source, line, column, length, text, marked, message, hint });
    }

    fn column(&mut self, line: u64, text: &str, at: usize) -> u64 {
        let (from, column) = match self.known {
            (known, byte, column) if known == line && byte <= at => (byte, column),
            _ => (0, 1),
        };
        let column = column + text[from..at].chars().count() as u64;
        self.known = (line, at, column);
        column
    }
}

impl fmt::Display for Diagnostics {
    /// Writes one line per diagnostic, without the source text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for diagnostic in &self.kept {
            writeln!(f, "{diagnostic}")?;
        }
        f.write_str(&self.summary())
    }
}

impl std::error::Error for Diagnostics {}

/// Cuts a window around a byte range out of a long line.
fn window(text: &str, place: Range<usize>) -> (String, Range<usize>) {
    const ELLIPSIS: &str = "...";
    if text.len() <= MAX_LINE_BYTES {
        return (text.into(), place);
    }
    let mut from = floor(text, place.start.saturating_sub(BYTES_BEFORE));
    let mut to = ceil(text, place.start + BYTES_AFTER);
    if from <= ELLIPSIS.len() {
        from = 0;
    }
    if to + ELLIPSIS.len() >= text.len() {
        to = text.len();
    }
    let mut shown = String::new();
    if from > 0 {
        shown.push_str(ELLIPSIS);
    }
    let shift = shown.len();
    shown.push_str(&text[from..to]);
    if to < text.len() {
        shown.push_str(ELLIPSIS);
    }
    (shown, place.start - from + shift..place.end.min(to) - from + shift)
}

/// Truncates a sentence that quotes too much.
fn clip(mut sentence: String) -> String {
    if sentence.len() > MAX_SENTENCE_BYTES {
        sentence.truncate(floor(&sentence, MAX_SENTENCE_BYTES));
        sentence.push_str("...");
    }
    sentence
}

/// Returns the nearest start of a character at or before a byte.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

/// Returns the nearest start of a character at or after a byte.
fn ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|&i| text.is_char_boundary(i)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str, span: Range<usize>) -> Diagnostic {
        let mut all = Diagnostics::default();
        all.push(&"a.hist".into(), 7, text, span, "wrong".into(), None);
        all.kept.remove(0)
    }

    #[test]
    fn columns_count_characters() {
        let d = one("äöü: w(x)", 8..9);
        assert_eq!((d.column, d.length, &d.text[d.marked.clone()]), (6, 1, "w"));
    }

    #[test]
    fn a_long_line_is_clipped_around_the_place() {
        let line = format!("{}BAD{}", "é".repeat(5000), "x".repeat(5000));
        let d = one(&line, 10_000..10_003);
        assert_eq!((d.column, d.length), (5001, 3));
        assert_eq!(&d.text[d.marked.clone()], "BAD");
        assert!(d.render(&Renderer::plain()).contains(" --> a.hist:7:5001\n"));
        assert!(d.text.len() < 200 && d.text.starts_with("...") && d.text.ends_with("..."));
    }

    #[test]
    fn a_place_may_lie_after_the_line_or_across_characters() {
        assert_eq!(one("ab", 2..2).marked, 2..2);
        assert_eq!(one("ab", 9..12).marked, 2..2);
        assert_eq!(one("aé", 2..2).marked, 1..3);
    }

    #[test]
    fn the_name_of_an_input_forges_no_line() {
        let mut all = Diagnostics::default();
        let name = "a\u{1b}[31m\nb.hist: fine\u{202e}\u{9b}";
        all.push(&name.into(), 1, "x", 0..1, "wrong".into(), None);
        let text = all.render(Style::Plain);
        assert!(text.contains(r" --> a\u{1b}[31m\nb.hist: fine\u{202e}\u{9b}:1:1"), "{text}");
        assert!(text.ends_with("\\u{9b}: 1 error\n"), "{text}");
    }

    #[test]
    fn the_rest_is_counted() {
        let mut all = Diagnostics::default();
        for line in 0..1500 {
            all.push(&"a".into(), line, "x", 0..1, "wrong".into(), None);
        }
        assert_eq!((all.iter().len(), all.count()), (1000, 1500));
        assert!(all.to_string().ends_with("a: 1500 errors, 500 of them not shown"));
    }
}
