//! Points, rectangles, and widths of texts.

use serde::ser::{Serialize, SerializeTuple, Serializer};

/// A point; y grows downwards.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Point {
    /// Distance from the left.
    pub x: f64,
    /// Distance from the top.
    pub y: f64,
}

/// A rectangle by its upper left corner, width and height.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rect {
    /// Left side.
    pub x: f64,
    /// Upper side.
    pub y: f64,
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
}

impl Rect {
    /// Returns the point in the middle.
    pub fn centre(&self) -> Point {
        Point { x: self.x + self.w / 2.0, y: self.y + self.h / 2.0 }
    }

    /// Checks whether the interiors of two rectangles intersect.
    pub fn overlaps(&self, other: &Rect) -> bool {
        self.x < other.x + other.w
            && other.x < self.x + self.w
            && self.y < other.y + other.h
            && other.y < self.y + self.h
    }

    /// Checks whether a horizontal or vertical segment runs through the interior.
    pub fn is_crossed_by(&self, a: Point, b: Point) -> bool {
        let (left, right) = (a.x.min(b.x), a.x.max(b.x));
        let (top, bottom) = (a.y.min(b.y), a.y.max(b.y));
        left < self.x + self.w && right > self.x && top < self.y + self.h && bottom > self.y
    }
}

/// Rounds a coordinate to a tenth, which is enough for a picture and keeps files small.
pub(crate) fn rounded(v: f64) -> f64 {
    (v * 10.0).round() / 10.0
}

impl Serialize for Point {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(2)?;
        tuple.serialize_element(&rounded(self.x))?;
        tuple.serialize_element(&rounded(self.y))?;
        tuple.end()
    }
}

impl Serialize for Rect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(4)?;
        for v in [self.x, self.y, self.w, self.h] {
            tuple.serialize_element(&rounded(v))?;
        }
        tuple.end()
    }
}

/// Size of the text in nodes.
pub(crate) const NODE_TEXT: f64 = 13.0;
/// Size of the text on edges.
pub(crate) const LABEL_TEXT: f64 = 11.0;
/// Size of the text at the head of a lane.
pub(crate) const NAME_TEXT: f64 = 14.0;

/// Estimates the width of monospaced text; browsers choose the font, so the estimate is large.
pub(crate) fn mono_width(text: &str, size: f64) -> f64 {
    columns(text) as f64 * size * 0.615
}

/// Estimates the width of bold proportional text; the estimate is large.
pub(crate) fn bold_width(text: &str, size: f64) -> f64 {
    columns(text) as f64 * size * 0.66
}

/// Counts terminal columns; characters of East Asian scripts and emoji count twice.
pub(crate) fn columns(text: &str) -> usize {
    let is_wide = |c: char| {
        matches!(u32::from(c),
            0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF
            | 0xFE30..=0xFE6F | 0xFF00..=0xFF60 | 0xFFE0..=0xFFE6 | 0x1F300..=0x1FAFF
            | 0x20000..=0x3FFFD)
    };
    text.chars().map(|c| if is_wide(c) { 2 } else { 1 }).sum()
}

/// Replaces control characters, bidirectional marks and characters that XML does not allow.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' | '\r' => ' ',
            c if c.is_control() => '\u{FFFD}',
            '\u{200E}' | '\u{200F}' | '\u{061C}' | '\u{202A}'..='\u{202E}' => '\u{FFFD}',
            '\u{2066}'..='\u{2069}' | '\u{FFFE}' | '\u{FFFF}' => '\u{FFFD}',
            c => c,
        })
        .collect()
}
