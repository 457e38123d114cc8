//! A history of an object's calls as an interval diagram: a lane a session, time from left to
//! right.

use std::collections::HashMap;

use consistory_history::{History, OpId};
use consistory_verdict::{ObjectCertificate, Verdict};

use crate::calls::{CallProof, explain_calls_line, label, tell_visibility};
use crate::intervals::{Bar, Diagram, Look, diagram};
use crate::svg::{Anchor, Canvas, FAINT, Font, INK, MUTED, Rect, Stroke, at};
use crate::text::{clean, counted, wrapped};

const MARGIN: f64 = 20.0;
const BAR: f64 = 28.0;
const LANE: f64 = 58.0;
const GAP: f64 = 16.0;
const NARROWEST: f64 = 420.0;
/// How many calls are drawn.
const MOST_CALLS: usize = 60;
/// The colours of bars: filling and outline.
const RETURNED: (&str, &str) = ("#e6eef8", "#5b7ba6");
const OPEN: (&str, &str) = ("#f6f7f9", "#9aa5b1");
const FAILING: (&str, &str) = ("#fde3e1", "#c62828");
const POINT: &str = "#1f4e8c";

/// Draws a history of calls and what a judgement says about it.
///
/// Each session is a lane, each call a bar from its start to its end; one that has not returned, or
/// whose return is not looked at, has no right end. Numbered points are the linearization: the
/// whole one if the history is consistent, the longest attempt if it is not. The call that cannot
/// be explained is red.
pub(crate) fn calls_svg(history: &History, model: &str, proof: CallProof<'_>) -> String {
    let font = Font { is_mono: true, ..Font::sans(12.0, INK) };
    let diagram = diagram(history, proof, MOST_CALLS);
    let needs = |bar: &Bar| font.measure(&text_of(history, bar)) + 38.0;
    let places = diagram.places(GAP, needs);
    let name_font = Font::sans(13.0, INK).bold();
    let names: Vec<String> = diagram.lanes.iter().map(|name| clean(name, 24)).collect();
    let left = MARGIN + names.iter().map(|name| name_font.measure(name)).fold(0.0, f64::max) + 14.0;

    let title_font = Font::sans(18.0, INK).bold();
    let caption_font = Font::sans(13.0, MUTED);
    let verdict = proof.map_or(Verdict::Undecided, ObjectCertificate::verdict);
    let mut title = format!("{}: {}", clean(model, 80), verdict.as_str());
    if let Some(name) = history.name() {
        title = format!("{}, {title}", clean(name, 60));
    }
    let right = left + places.last().copied().unwrap_or(0.0);
    let width = (right + MARGIN).max(NARROWEST).max(title_font.measure(&title) + 2.0 * MARGIN);
    let columns = ((width - 2.0 * MARGIN) / caption_font.measure("n")) as usize;

    let mut canvas = Canvas::default();
    let mut y = MARGIN + 16.0;
    canvas.text(at(MARGIN, y), title_font, &title);
    for line in wrapped(&explain_calls_line(history, proof), columns) {
        y += 19.0;
        canvas.text(at(MARGIN, y), caption_font, &line);
    }
    y += 22.0;
    let middle = |lane: usize| y + LANE * lane as f64 + LANE / 2.0;
    for (lane, name) in names.iter().enumerate() {
        canvas.text(at(MARGIN, middle(lane) + 4.5), name_font, name);
        let line = Stroke { colour: FAINT, width: 1.0, dashes: "" };
        canvas.line(at(left - 6.0, middle(lane)), at(right + 6.0, middle(lane)), line);
    }
    let points = points(&diagram, &places);
    for bar in &diagram.bars {
        draw_bar(&mut canvas, history, bar, &places, left, middle(bar.lane), font);
    }
    for bar in &diagram.bars {
        if let (Some(number), Some(&x)) = (bar.number, points.get(&bar.op)) {
            let centre = at(left + x, middle(bar.lane) - BAR / 2.0);
            let edge = Stroke { colour: "#ffffff", width: 1.5, dashes: "" };
            canvas.circle(centre, 9.0, POINT, Some(edge));
            let digits = Font::sans(10.0, "#ffffff").bold().anchored(Anchor::Middle);
            canvas.text(at(centre.x, centre.y + 3.5), digits, &number.to_string());
        }
    }
    y = middle(diagram.lanes.len().saturating_sub(1)) + LANE / 2.0 + 6.0;
    let mut notes: Vec<String> = Vec::new();
    if !points.is_empty() {
        notes.push(match proof {
            Ok(ObjectCertificate::Linearization(_)) => {
                "Points: the linearization, in order.".to_owned()
            }
            _ => "Points: how far the longest attempt comes, in order.".to_owned(),
        });
    }
    notes.extend(tell_visibility(history, proof));
    if diagram.hidden > 0 {
        notes.push(format!("{} before these not shown.", counted(diagram.hidden, "call")));
    }
    for note in notes.iter().flat_map(|note| wrapped(note, columns)) {
        y += 18.0;
        canvas.text(at(MARGIN, y), caption_font, &note);
    }
    canvas.finish(width, y + MARGIN, &title)
}

/// Gives the text on a bar; the number has a point of its own.
fn text_of(history: &History, bar: &Bar) -> String {
    label(history, &Bar { number: None, ..bar.clone() })
}

fn draw_bar(
    canvas: &mut Canvas,
    history: &History,
    bar: &Bar,
    places: &[f64],
    left: f64,
    middle: f64,
    font: Font<'_>,
) {
    let (fill, outline) = match bar.look {
        Look::Returned => RETURNED,
        Look::Open => OPEN,
        Look::Failing => FAILING,
    };
    let (x, end) = (left + places[bar.from], left + places[bar.to]);
    let rect = Rect { x, y: middle - BAR / 2.0, w: end - x, h: BAR };
    let width = if bar.look == Look::Failing { 2.0 } else { 1.2 };
    let dashes = if bar.look == Look::Open { "4 3" } else { "" };
    canvas.rect(rect, 6.0, fill, Some(Stroke { colour: outline, width, dashes }));
    let colour = match bar.look {
        Look::Failing => FAILING.1,
        Look::Open => MUTED,
        Look::Returned => INK,
    };
    canvas.text(at(x + 12.0, middle + 4.5), Font { colour, ..font }, &text_of(history, bar));
}

/// Places the points of the linearization: each inside its bar, and from left to right as far as
/// the bars let them.
fn points(diagram: &Diagram, places: &[f64]) -> HashMap<OpId, f64> {
    let mut numbered: Vec<&Bar> = diagram.bars.iter().filter(|bar| bar.number.is_some()).collect();
    numbered.sort_by_key(|bar| bar.number);
    let mut found = HashMap::new();
    let mut last = f64::MIN;
    for bar in numbered {
        let (from, to) = (places[bar.from] + 14.0, places[bar.to] - 10.0);
        let x = (last + 20.0).clamp(from, to.max(from));
        last = last.max(x);
        found.insert(bar.op, x);
    }
    found
}
