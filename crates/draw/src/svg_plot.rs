//! A line plot of measurements.
//!
//! Series are distinguished by colour and by mark, and named at their right ends or, if too many
//! end there, in a legend below.

use crate::svg::{Anchor, Canvas, FAINT, Font, INK, MUTED, Point, Rect, Stroke, at, num, pair};
use crate::text::clean;

/// A line plot: its labels, scales and series.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plot {
    /// Heading.
    pub title: String,
    /// Label of the x axis, with its unit.
    pub x_label: String,
    /// Label of the y axis, with its unit.
    pub y_label: String,
    /// Whether the x axis is logarithmic.
    pub log_x: bool,
    /// Whether the y axis is logarithmic.
    pub log_y: bool,
    /// Series, in the order of their colours.
    pub series: Vec<Series>,
}

/// A line of a plot.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Series {
    /// Name of the measured quantity.
    pub name: String,
    /// Points; values that are not finite, exceed 1e100, or are not positive on a logarithmic scale
    /// are left out.
    pub points: Vec<(f64, f64)>,
    /// Reason why the series ends before the others, for example `out of time`.
    pub missing: Option<String>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 500.0;
const LABEL_ROW: f64 = 17.0;
/// Okabe and Ito's palette, darkened for lines and text on white.
const COLOURS: [&str; 8] =
    ["#0068b5", "#d1490c", "#00856a", "#a3388c", "#a87900", "#2793c9", "#333a42", "#8a2846"];

/// Draws a line plot with ticks, a grid and the names of its series.
pub fn line_plot(plot: &Plot) -> String {
    let series: Vec<Vec<(f64, f64)>> = plot
        .series
        .iter()
        .map(|series| {
            // Within these bounds no sum or quotient overflows.
            let fits = |v: f64, log: bool| v.abs() <= 1e100 && (!log || v >= 1e-100);
            let mut points = series.points.clone();
            points.retain(|&(x, y)| fits(x, plot.log_x) && fits(y, plot.log_y));
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points
        })
        .collect();
    let name_font = |i: usize| Font::sans(12.0, COLOURS[i % COLOURS.len()]).bold();
    let names: Vec<String> = plot
        .series
        .iter()
        .map(|series| match &series.missing {
            Some(note) => format!("{} ({})", clean(&series.name, 32), clean(note, 40)),
            None => clean(&series.name, 32),
        })
        .collect();

    let (top, bottom) = (62.0, HEIGHT - 62.0);
    let has_end_labels = names.len() as f64 * LABEL_ROW <= bottom - top;
    let widest = names.iter().enumerate().map(|(i, n)| name_font(i).measure(n)).fold(0.0, f64::max);
    let left = 76.0;
    let right = WIDTH - 40.0;
    let width = if has_end_labels { WIDTH + widest } else { WIDTH };

    let x_axis = Axis::over(series.iter().flatten().map(|p| p.0), plot.log_x, left, right, 8);
    let y_axis = Axis::over(series.iter().flatten().map(|p| p.1), plot.log_y, bottom, top, 7);
    let mut canvas = Canvas::default();
    canvas.text(at(24.0, 34.0), Font::sans(17.0, INK).bold(), &clean(&plot.title, 120));
    frame(&mut canvas, &plot.x_label, &plot.y_label, &x_axis, &y_axis);

    let to_page = |p: &(f64, f64)| at(x_axis.at(p.0), y_axis.at(p.1));
    let pages: Vec<Vec<Point>> =
        series.iter().map(|points| points.iter().map(to_page).collect()).collect();
    // The first series is the most important and drawn on top.
    for (i, points) in pages.iter().enumerate().rev() {
        let colour = COLOURS[i % COLOURS.len()];
        if points.len() > 1 {
            let path: Vec<String> = points.iter().map(|&p| pair(p)).collect();
            let stroke = Stroke { colour, width: 2.0, dashes: "" };
            canvas.path(&format!("M{}", path.join("L")), stroke);
        }
        for &p in points {
            mark(&mut canvas, i, p, colour);
        }
    }

    let mut height = HEIGHT;
    if pages.iter().all(Vec::is_empty) {
        let font = Font::sans(14.0, MUTED).anchored(Anchor::Middle);
        canvas.text(at((left + right) / 2.0, (top + bottom) / 2.0), font, "no data");
    }
    if has_end_labels {
        let ends: Vec<(usize, Point)> =
            pages.iter().enumerate().filter_map(|(i, points)| Some((i, *points.last()?))).collect();
        for (i, end, y) in spread(ends, top, bottom) {
            let colour = COLOURS[i % COLOURS.len()];
            let leader = Stroke { colour, width: 1.0, dashes: "1 3" };
            canvas.path(
                &format!(
                    "M{}L{}L{}",
                    pair(at(end.x + 7.0, end.y)),
                    pair(at((right + 4.0).max(end.x + 7.0), end.y)),
                    pair(at(right + 20.0, y))
                ),
                leader,
            );
            canvas.text(at(right + 24.0, y + 4.0), name_font(i), &names[i]);
        }
    } else {
        let column = widest + 44.0;
        let columns = ((WIDTH - 48.0) / column).max(1.0) as usize;
        for (i, name) in names.iter().enumerate() {
            let x = 24.0 + (i % columns) as f64 * column;
            let y = HEIGHT + (i / columns) as f64 * LABEL_ROW;
            mark(&mut canvas, i, at(x + 6.0, y), COLOURS[i % COLOURS.len()]);
            canvas.text(at(x + 18.0, y + 4.0), name_font(i), name);
        }
        height += names.len().div_ceil(columns) as f64 * LABEL_ROW + 8.0;
    }
    canvas.finish(width, height, &clean(&plot.title, 120))
}

/// Draws the grid, the ticks and the labels of the axes.
pub(crate) fn frame(
    canvas: &mut Canvas,
    x_label: &str,
    y_label: &str,
    x_axis: &Axis,
    y_axis: &Axis,
) {
    let (left, right, bottom, top) = (x_axis.start, x_axis.end, y_axis.start, y_axis.end);
    let grid = Stroke { colour: "#e8ebef", width: 1.0, dashes: "" };
    let font = Font::sans(12.0, MUTED);
    for tick in x_axis.ticks() {
        let x = x_axis.at(tick);
        canvas.line(at(x, top), at(x, bottom), grid);
        canvas.text(at(x, bottom + 18.0), font.anchored(Anchor::Middle), &written(tick));
    }
    for tick in y_axis.ticks() {
        let y = y_axis.at(tick);
        canvas.line(at(left, y), at(right, y), grid);
        canvas.text(at(left - 8.0, y + 4.0), font.anchored(Anchor::End), &written(tick));
    }
    let axis = Stroke { colour: "#8c97a4", width: 1.2, dashes: "" };
    canvas.line(at(left, bottom), at(right, bottom), axis);
    canvas.line(at(left, bottom), at(left, top), Stroke { colour: FAINT, ..axis });
    let label = Font::sans(13.0, INK).anchored(Anchor::Middle);
    canvas.text(at((left + right) / 2.0, bottom + 42.0), label, &clean(x_label, 80));
    canvas.text_upwards(at(22.0, (top + bottom) / 2.0), label, &clean(y_label, 60));
}

/// Draws the mark of a series.
fn mark(canvas: &mut Canvas, series: usize, p: Point, colour: &str) {
    let rim = Some(Stroke { colour: "#ffffff", width: 1.0, dashes: "" });
    let polygon = |corners: &[(f64, f64)]| -> Vec<Point> {
        corners.iter().map(|(x, y)| at(p.x + x, p.y + y)).collect()
    };
    match series % 5 {
        0 => canvas.circle(p, 4.2, colour, rim),
        1 => canvas.rect(Rect::around(p, 7.6, 7.6), 0.0, colour, rim),
        2 => canvas.polygon(&polygon(&[(0.0, -5.0), (4.8, 3.6), (-4.8, 3.6)]), colour, rim),
        3 => {
            canvas.polygon(
                &polygon(&[(0.0, -5.4), (5.4, 0.0), (0.0, 5.4), (-5.4, 0.0)]),
                colour,
                rim,
            );
        }
        _ => canvas.polygon(&polygon(&[(0.0, 5.0), (4.8, -3.6), (-4.8, -3.6)]), colour, rim),
    }
}

/// Returns heights for the labels at the ends of lines, so that labels do not overlap.
fn spread(mut ends: Vec<(usize, Point)>, top: f64, bottom: f64) -> Vec<(usize, Point, f64)> {
    ends.sort_by(|a, b| a.1.y.total_cmp(&b.1.y).then(a.0.cmp(&b.0)));
    let mut heights: Vec<f64> = Vec::new();
    for (_, end) in &ends {
        let least = heights.last().map_or(top, |above| above + LABEL_ROW);
        heights.push(end.y.max(least));
    }
    let mut most = bottom;
    for y in heights.iter_mut().rev() {
        *y = y.min(most);
        most = *y - LABEL_ROW;
    }
    ends.into_iter().zip(heights).map(|((i, end), y)| (i, end, y)).collect()
}

/// A scale from values to positions on the page.
pub(crate) struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
    start: f64,
    end: f64,
    ticks_wanted: usize,
}

impl Axis {
    /// Builds a scale that contains all values, with a margin at both ends.
    pub(crate) fn over(
        values: impl Iterator<Item = f64>,
        is_log: bool,
        start: f64,
        end: f64,
        ticks_wanted: usize,
    ) -> Self {
        let (low, high) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = match (low <= high, is_log) {
            (false, false) => (0.0, 1.0),
            (false, true) => (1.0, 10.0),
            // The scale starts at zero, unless all values are far from it.
            (true, false) if low >= 0.0 && low < 0.4 * high => (0.0, high * 1.04),
            (true, false) if low == high => {
                (low - low.abs() / 2.0 - 1.0, high + high.abs() / 2.0 + 1.0)
            }
            (true, false) => (low - (high - low) * 0.05, high + (high - low) * 0.05),
            (true, true) if low == high => (low / 2.0, high * 2.0),
            (true, true) => {
                let room = (high / low).powf(0.04);
                (low / room, high * room)
            }
        };
        Axis { low, high, is_log, start, end, ticks_wanted }
    }

    /// Returns the position of a value.
    pub(crate) fn at(&self, v: f64) -> f64 {
        let part = if self.is_log {
            (v.ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (v - self.low) / (self.high - self.low)
        };
        self.start + part * (self.end - self.start)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.is_log { self.log_ticks() } else { self.linear_ticks() }
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / self.ticks_wanted as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.low / step).ceil();
        (0..=self.ticks_wanted)
            .map(|i| (first + i as f64) * step)
            .filter(|v| *v <= self.high && v.is_finite())
            .collect()
    }

    /// Returns ticks at powers of ten; if these are few, also at 2 and 5 times them; if they are
    /// many, only at some of them.
    fn log_ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decades = self.high.log10() - self.low.log10();
        let multiples: &[f64] = if decades <= 1.5 {
            &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]
        } else if decades <= 3.0 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let stride = (decades / self.ticks_wanted as f64).ceil().max(1.0) as usize;
        (first..=last)
            .step_by(stride)
            .flat_map(|power| multiples.iter().map(move |m| m * 10f64.powi(power)))
            .filter(|v| (self.low..=self.high).contains(v))
            .collect()
    }
}

/// Formats the value of a tick.
fn written(v: f64) -> String {
    let size = v.abs();
    if v == 0.0 {
        return "0".into();
    }
    for (unit, letter) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if (unit..unit * 1000.0).contains(&size) && size >= 10_000.0 {
            return format!("{}{letter}", num(v / unit));
        }
    }
    if !(1e-4..1e4).contains(&size) {
        return format!("{v:.0e}");
    }
    // Rounded to the digits that a tick can need, so that 0.1 + 0.2 is 0.3.
    let digits = (3.0 - size.log10().floor()).clamp(0.0, 8.0) as usize;
    let text = format!("{v:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
