//! A text and its lines.

use std::ops::Range;
use std::sync::Arc;

/// A text, its name, and the positions at which its lines start.
#[derive(Clone, Debug)]
pub struct Source<'t> {
    name: Arc<str>,
    text: &'t str,
    /// Byte at which each line starts.
    line_starts: Vec<usize>,
}

impl<'t> Source<'t> {
    /// Finds the lines of a text; `name` is the name that diagnostics show.
    pub fn new(name: impl Into<Arc<str>>, text: &'t str) -> Self {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(after_breaks).collect();
        Source { name: name.into(), text, line_starts }
    }

    /// Returns the name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the whole text.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the number, counting from 1, and the text of the line that holds a byte, and the
    /// part of a range within that line.
    ///
    /// The text is without its line break.
    pub fn line(&self, range: Range<usize>) -> (u64, &'t str, Range<usize>) {
        let number = self.line_starts.partition_point(|&start| start <= range.start);
        let start = self.line_starts[number - 1];
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        let line = line.strip_suffix('\r').unwrap_or(line);
        let within = |at: usize| at.saturating_sub(start).min(line.len());
        (number as u64, line, within(range.start)..within(range.end).max(within(range.start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_clipped_to_its_first_line() {
        let source = Source::new("a", "ab\r\ncdé\n\nx");
        assert_eq!(source.line(0..2), (1, "ab", 0..2));
        assert_eq!(source.line(1..8), (1, "ab", 1..2));
        assert_eq!(source.line(6..8), (2, "cdé", 2..4));
        assert_eq!(source.line(9..9), (3, "", 0..0));
        assert_eq!(source.line(10..99), (4, "x", 0..1));
        assert_eq!(source.line(50..99), (4, "x", 1..1));
    }
}
