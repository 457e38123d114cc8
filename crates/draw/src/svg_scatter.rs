//! A scatter plot of two measurements of each item, both on one logarithmic scale.
//!
//! On the diagonal both measurements are equal; above it the second one is larger.

use std::collections::BTreeSet;

use crate::svg::{Anchor, Canvas, Font, INK, MUTED, Stroke, at, num, pair};
use crate::svg_plot::{Axis, frame};
use crate::text::clean;

/// Points and labels of a scatter plot.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Scatter {
    /// Heading.
    pub title: String,
    /// Label of the x axis, with its unit.
    pub x_label: String,
    /// Label of the y axis, with its unit.
    pub y_label: String,
    /// Points; values that are not positive, not finite, or greater than 1e100 are left out.
    pub points: Vec<(f64, f64)>,
    /// Value at which measurements were cut off, on both axes.
    pub limit: Option<f64>,
}

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 580.0;
/// Smallest distance between drawn points, in pixels; nearer points are drawn as one.
const MIN_POINT_DISTANCE: f64 = 2.0;

/// Draws a scatter plot with the diagonal, and lines for ten times and a tenth.
pub fn scatter_plot(scatter: &Scatter) -> String {
    let fits = |v: f64| (1e-100..=1e100).contains(&v);
    let points: Vec<(f64, f64)> =
        scatter.points.iter().copied().filter(|&(x, y)| fits(x) && fits(y)).collect();
    let limit = scatter.limit.filter(|&limit| fits(limit));
    let (left, right, top, bottom) = (76.0, WIDTH - 24.0, 62.0, HEIGHT - 62.0);
    let values = || points.iter().flat_map(|&(x, y)| [x, y]).chain(limit);
    let x_axis = Axis::over(values(), true, left, right, 6);
    let y_axis = Axis::over(values(), true, bottom, top, 6);
    let mut canvas = Canvas::default();
    canvas.text(at(24.0, 34.0), Font::sans(17.0, INK).bold(), &clean(&scatter.title, 80));
    frame(&mut canvas, &scatter.x_label, &scatter.y_label, &x_axis, &y_axis);

    let (low, high) = values().fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    let font = Font::sans(11.0, MUTED);
    for (factor, name, dashes) in [(1.0, "as long", ""), (10.0, "10×", "5 4"), (0.1, "1/10", "5 4")]
    {
        // Range of x in which the line is visible.
        let (from, to) = (low.max(low / factor), high.min(high / factor));
        if from < to {
            let end = at(x_axis.at(to), y_axis.at(to * factor));
            let stroke = Stroke { colour: "#9aa5b1", width: 1.0, dashes };
            canvas.line(at(x_axis.at(from), y_axis.at(from * factor)), end, stroke);
            canvas.text(at(end.x - 4.0, end.y - 4.0), font.anchored(Anchor::End), name);
        }
    }
    if let Some(limit) = limit {
        let stroke = Stroke { colour: "#d1490c", width: 1.0, dashes: "2 3" };
        let (x, y) = (x_axis.at(limit), y_axis.at(limit));
        canvas.line(at(x, bottom), at(x, top), stroke);
        canvas.line(at(left, y), at(right, y), stroke);
    }
    if points.is_empty() {
        let font = Font::sans(14.0, MUTED).anchored(Anchor::Middle);
        canvas.text(at((left + right) / 2.0, (top + bottom) / 2.0), font, "no data");
    }
    // Zero-length strokes have round ends, which takes few bytes per point.
    let grain = |v: f64| (v / MIN_POINT_DISTANCE).round() as i64;
    let cells: BTreeSet<(i64, i64)> =
        points.iter().map(|&(x, y)| (grain(x_axis.at(x)), grain(y_axis.at(y)))).collect();
    let mut path = String::new();
    for (x, y) in cells {
        path += &format!(
            "M{}h0",
            pair(at(x as f64 * MIN_POINT_DISTANCE, y as f64 * MIN_POINT_DISTANCE))
        );
    }
    canvas.dots(&path, 3.6, "#0068b5");
    let count = format!("{} points", num(points.len() as f64));
    canvas.text(at(right, 34.0), font.anchored(Anchor::End), &count);
    canvas.finish(WIDTH, HEIGHT, &clean(&scatter.title, 80))
}
