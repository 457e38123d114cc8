//! A canvas that writes SVG.
//!
//! The document uses presentation attributes, and arrowheads are drawn as shapes: a document
//! without ids and style sheets can be embedded with others in one page. Text is escaped here and
//! nowhere else.

use std::fmt::Write;

use crate::text::width;

/// The colour of text and of the strongest lines.
pub(crate) const INK: &str = "#1f2933";
/// Colour of secondary text.
pub(crate) const MUTED: &str = "#66707c";
/// The colour of frames and grids.
pub(crate) const FAINT: &str = "#d5dae1";

/// A point; y grows downwards.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// Builds a point.
pub(crate) fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

/// A rectangle by its corner, width and height.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) w: f64,
    pub(crate) h: f64,
}

impl Rect {
    /// Builds a rectangle around a point.
    pub(crate) fn around(centre: Point, w: f64, h: f64) -> Self {
        Rect { x: centre.x - w / 2.0, y: centre.y - h / 2.0, w, h }
    }
}

/// Style of a line or an outline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke<'a> {
    pub(crate) colour: &'a str,
    pub(crate) width: f64,
    /// Value of `stroke-dasharray`; empty for a solid line.
    pub(crate) dashes: &'a str,
}

/// Position of a text relative to its point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Font and alignment of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Font<'a> {
    pub(crate) size: f64,
    pub(crate) colour: &'a str,
    pub(crate) is_mono: bool,
    pub(crate) is_bold: bool,
    pub(crate) anchor: Anchor,
}

impl<'a> Font<'a> {
    /// Builds a proportional font, anchored at the start.
    pub(crate) fn sans(size: f64, colour: &'a str) -> Self {
        Font { size, colour, is_mono: false, is_bold: false, anchor: Anchor::Start }
    }

    /// Returns the font in bold.
    pub(crate) fn bold(self) -> Self {
        Font { is_bold: true, ..self }
    }

    /// Returns the font with another anchor.
    pub(crate) fn anchored(self, anchor: Anchor) -> Self {
        Font { anchor, ..self }
    }

    /// Estimates the width of a text; viewers choose the font, so the estimate is large.
    pub(crate) fn measure(&self, text: &str) -> f64 {
        let em = match (self.is_mono, self.is_bold) {
            (true, _) => 0.605,
            (false, false) => 0.56,
            (false, true) => 0.62,
        };
        width(text) as f64 * self.size * em
    }
}

/// An SVG document under construction.
#[derive(Default)]
pub(crate) struct Canvas {
    body: String,
}

impl Canvas {
    /// Closes the document: a white background of the given size, with a title for readers who
    /// cannot see the picture.
    pub(crate) fn finish(self, w: f64, h: f64, title: &str) -> String {
        let (w, h) = (w.ceil(), h.ceil());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" role=\"img\">\n<title>{}</title>\n\
             <rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escaped(title),
            self.body
        )
    }

    /// Draws a rectangle with rounded corners.
    pub(crate) fn rect(&mut self, r: Rect, radius: f64, fill: &str, stroke: Option<Stroke>) {
        let Rect { x, y, w, h } = r;
        let stroke = stroke.map(stroke_attributes).unwrap_or_default();
        self.put(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" fill=\"{fill}\"{stroke}/>",
            num(x),
            num(y),
            num(w),
            num(h),
            num(radius)
        ));
    }

    /// Draws a straight line.
    pub(crate) fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
        self.path(&format!("M{}L{}", pair(from), pair(to)), stroke);
    }

    /// Draws a path without filling it.
    pub(crate) fn path(&mut self, d: &str, stroke: Stroke) {
        let stroke = stroke_attributes(stroke);
        self.put(format_args!("<path d=\"{d}\" fill=\"none\"{stroke}/>"));
    }

    /// Draws half-transparent dots at the zero-length strokes of a path.
    pub(crate) fn dots(&mut self, d: &str, size: f64, colour: &str) {
        let stroke = stroke_attributes(Stroke { colour, width: size, dashes: "" });
        self.put(format_args!(
            "<path d=\"{d}\" fill=\"none\"{stroke} stroke-linecap=\"round\" \
             stroke-opacity=\"0.5\"/>"
        ));
    }

    /// Fills a polygon.
    pub(crate) fn polygon(&mut self, points: &[Point], fill: &str, stroke: Option<Stroke>) {
        let points: Vec<String> = points.iter().map(|&p| pair(p)).collect();
        let stroke = stroke.map(stroke_attributes).unwrap_or_default();
        self.put(format_args!(
            "<polygon points=\"{}\" fill=\"{fill}\"{stroke}/>",
            points.join(" ")
        ));
    }

    /// Draws a circle.
    pub(crate) fn circle(
        &mut self,
        centre: Point,
        radius: f64,
        fill: &str,
        stroke: Option<Stroke>,
    ) {
        let stroke = stroke.map(stroke_attributes).unwrap_or_default();
        let (x, y, r) = (num(centre.x), num(centre.y), num(radius));
        self.put(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"{fill}\"{stroke}/>"));
    }

    /// Writes a text with its baseline at a point.
    pub(crate) fn text(&mut self, p: Point, font: Font, text: &str) {
        self.write_text(p, font, text, "");
    }

    /// Writes a text with its baseline at a point, rotated to read upwards.
    pub(crate) fn text_upwards(&mut self, p: Point, font: Font, text: &str) {
        let turn = format!(" transform=\"rotate(-90 {} {})\"", num(p.x), num(p.y));
        self.write_text(p, font, text, &turn);
    }

    fn write_text(&mut self, p: Point, font: Font, text: &str, more: &str) {
        let family = if font.is_mono { "monospace" } else { "sans-serif" };
        let weight = if font.is_bold { " font-weight=\"bold\"" } else { "" };
        let anchor = match font.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.put(format_args!(
            "<text x=\"{}\" y=\"{}\" font-family=\"{family}\" font-size=\"{}\"{weight}{anchor} \
             fill=\"{}\"{more}>{}</text>",
            num(p.x),
            num(p.y),
            num(font.size),
            font.colour,
            escaped(text)
        ));
    }

    fn put(&mut self, line: std::fmt::Arguments) {
        writeln!(self.body, "{line}").expect("a string takes all that is written to it");
    }
}

/// Formats a coordinate with a precision of a tenth of a pixel.
pub(crate) fn num(v: f64) -> String {
    let rounded = (v * 10.0).round() / 10.0;
    if rounded == 0.0 { "0".into() } else { format!("{rounded}") }
}

/// Formats a point in the syntax of paths.
pub(crate) fn pair(p: Point) -> String {
    format!("{} {}", num(p.x), num(p.y))
}

fn stroke_attributes(stroke: Stroke) -> String {
    let Stroke { colour, width, dashes } = stroke;
    let mut out = format!(" stroke=\"{colour}\" stroke-width=\"{}\"", num(width));
    if !dashes.is_empty() {
        out += &format!(" stroke-dasharray=\"{dashes}\"");
    }
    out
}

/// Escapes text for XML; characters that XML does not allow are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}
