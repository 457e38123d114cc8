//! A text that is read completely, and the lines of its errors.

use std::ops::Range;

use crate::jsonl::offset_in;
use crate::parse::{Fault, Line, Sink};

/// A document; positions are bytes, and errors need lines.
pub(crate) struct Document<'a> {
    text: &'a str,
    /// Bytes of the last line found and its number: positions come nearly in order, so lines need
    /// not be counted from the start each time.
    known: (Range<usize>, u64),
}

impl<'a> Document<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Document { text, known: (0..line_length(text), 1) }
    }

    /// Returns the byte range of a part.
    pub(crate) fn span(&self, part: &str) -> Range<usize> {
        offset_in(self.text, part)
    }

    /// Returns the number of the line in which a part begins.
    pub(crate) fn line_of(&mut self, part: &str) -> u64 {
        let at = self.span(part).start;
        self.find(at);
        self.known.1
    }

    /// Reports an error in a part.
    #[cold]
    pub(crate) fn fault(&mut self, part: &str, message: &str, hint: &str, sink: &mut Sink) {
        self.report(Fault::new(self.span(part), message).hint(hint), sink);
    }

    /// Reports an error at bytes of the document.
    #[cold]
    pub(crate) fn report(&mut self, mut fault: Fault, sink: &mut Sink) {
        let at = fault.span.start.min(self.text.len());
        self.find(at);
        let (line, number) = self.known.clone();
        let text = &self.text[line.clone()];
        fault.span = at - line.start..fault.span.end.clamp(at, line.end.max(at)) - line.start;
        sink.report(Line { number, text }, fault);
    }

    /// Finds the line that contains a byte.
    fn find(&mut self, at: usize) {
        if at < self.known.0.start {
            self.known = (0..line_length(self.text), 1);
        }
        while self.known.0.end < at {
            let start = self.known.0.end + 1;
            self.known = (start..start + line_length(&self.text[start..]), self.known.1 + 1);
        }
    }

    /// Returns the number of the line that was found last.
    pub(crate) fn last_line(&self) -> u64 {
        self.known.1
    }
}

fn line_length(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}
