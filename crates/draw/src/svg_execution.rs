//! Executions of litmus tests as graphs: a column a thread, arrows for who reads from whom.
//!
//! Program order runs down each column. Arrows between columns are straight unless an event stands
//! in their way: then they go through the lane between two rows. Those within a column bow out to
//! its right. Above each event stands its place in the order that allows the execution.

use crate::svg::{Anchor, Canvas, Font, INK, MUTED, Point, Rect, Stroke, at, num, pair};

/// An execution to draw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecutionGraph {
    /// What it is an execution of.
    pub title: String,
    /// The names of the threads.
    pub threads: Vec<String>,
    /// The events, those of a thread in program order.
    pub events: Vec<ExecutionNode>,
    /// The arrows besides program order.
    pub arrows: Vec<ExecutionArrow>,
    /// What is said below the graph, a line each.
    pub notes: Vec<String>,
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecutionNode {
    /// The thread, by its place in the list.
    pub thread: usize,
    /// What it does, as `W x=1`.
    pub label: String,
    /// Its place in the order of all events, counted from 1, if it is in one.
    pub place: Option<usize>,
}

/// An arrow between two events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecutionArrow {
    /// Where it starts, by the place in the list of events.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// The relation, as `rf`, `co` or `fr`.
    pub relation: String,
}

const ROW: f64 = 62.0;
const GAP: f64 = 96.0;
const MARGIN: f64 = 28.0;
const TOP: f64 = 78.0;
const BOX: f64 = 30.0;

/// Draws an execution.
pub fn execution_svg(graph: &ExecutionGraph) -> String {
    let font = Font { is_mono: true, ..Font::sans(13.0, INK).anchored(Anchor::Middle) };
    let columns = graph.threads.len().max(1);
    let of_thread = |thread: usize| graph.events.iter().filter(move |e| e.thread == thread);
    let width = |thread: usize| {
        let widest = of_thread(thread).map(|e| font.measure(&e.label)).fold(40.0, f64::max);
        widest + 24.0
    };
    let widths: Vec<f64> = (0..columns).map(width).collect();
    let left = |thread: usize| MARGIN + widths[..thread].iter().sum::<f64>() + GAP * thread as f64;
    let mut rows = vec![0usize; columns];
    let boxes: Vec<Rect> = graph
        .events
        .iter()
        .map(|event| {
            let thread = event.thread.min(columns - 1);
            let row = rows[thread];
            rows[thread] += 1;
            let y = TOP + ROW * row as f64;
            Rect { x: left(thread), y, w: widths[thread], h: BOX }
        })
        .collect();
    let height = rows.iter().copied().max().unwrap_or(0) as f64 * ROW + TOP;
    let mut canvas = Canvas::default();
    canvas.text(at(MARGIN, 28.0), Font::sans(15.0, INK).bold(), &graph.title);
    for (thread, name) in graph.threads.iter().enumerate() {
        let middle = left(thread) + widths[thread] / 2.0;
        let font = Font::sans(13.0, MUTED).bold().anchored(Anchor::Middle);
        canvas.text(at(middle, TOP - 16.0), font, name);
    }
    for (at_event, event) in graph.events.iter().enumerate() {
        let next = (at_event + 1..graph.events.len())
            .find(|&later| graph.events[later].thread == event.thread);
        if let Some(next) = next {
            let (from, to) = (boxes[at_event], boxes[next]);
            let stroke = Stroke { colour: MUTED, width: 1.2, dashes: "" };
            let (start, end) = (at(from.centre().x, from.y + from.h), at(to.centre().x, to.y));
            canvas.line(start, at(end.x, end.y - 6.0), stroke);
            canvas.arrowhead(end, at(0.0, 1.0), 8.0, MUTED);
        }
    }
    // Labels are set last, so that no line runs over them.
    let mut labels: Vec<(Rect, &str)> = Vec::new();
    let mut lanes = 0;
    for arrow in &graph.arrows {
        let (Some(&from), Some(&to)) = (boxes.get(arrow.from), boxes.get(arrow.to)) else {
            continue;
        };
        let others =
            boxes.iter().enumerate().filter(|(at, _)| *at != arrow.from && *at != arrow.to);
        let others: Vec<Rect> = others.map(|(_, &frame)| frame).collect();
        let places = draw_arrow(&mut canvas, (from, to), &arrow.relation, &others, &mut lanes);
        let font = Font::sans(12.0, colour(&arrow.relation)).bold();
        let w = font.measure(&arrow.relation) + 6.0;
        let spot = |place: &Point| Rect::around(*place, w, 15.0);
        let is_free = |spot: &Rect| {
            let taken = boxes.iter().chain(labels.iter().map(|(label, _)| label));
            taken.into_iter().all(|other| !overlap(spot, other))
        };
        let found = places.iter().map(spot).find(is_free);
        labels.push((found.unwrap_or_else(|| spot(&places[0])), &arrow.relation));
    }
    for (event, &frame) in graph.events.iter().zip(&boxes) {
        let stroke = Stroke { colour: INK, width: 1.2, dashes: "" };
        canvas.rect(frame, 5.0, "#f7f9fb", Some(stroke));
        let middle = frame.centre();
        canvas.text(at(middle.x, middle.y + 4.5), font, &event.label);
        if let Some(place) = event.place {
            let small = Font::sans(10.0, MUTED);
            canvas.text(at(frame.x + 2.0, frame.y - 4.0), small, &place.to_string());
        }
    }
    for (spot, relation) in labels {
        let font = Font::sans(12.0, colour(relation)).bold().anchored(Anchor::Middle);
        canvas.rect(spot, 3.0, "#ffffff", None);
        let middle = spot.centre();
        canvas.text(at(middle.x, middle.y + 4.0), font, relation);
    }
    for (line, note) in graph.notes.iter().enumerate() {
        let y = height + 6.0 + 18.0 * line as f64;
        canvas.text(at(MARGIN, y), Font::sans(12.0, MUTED), note);
    }
    let graph_width = left(columns - 1) + widths[columns - 1] + MARGIN + 40.0;
    let text_width =
        |text: &str, size: f64| Font::sans(size, INK).bold().measure(text) + 2.0 * MARGIN;
    let total = graph
        .notes
        .iter()
        .map(|note| text_width(note, 12.0))
        .fold(graph_width.max(text_width(&graph.title, 15.0)), f64::max);
    let bottom = height + 18.0 * graph.notes.len() as f64 + 8.0;
    canvas.finish(total, bottom, &graph.title)
}

/// Draws one arrow; gives where its label may go, the best place first.
fn draw_arrow(
    canvas: &mut Canvas,
    (from, to): (Rect, Rect),
    relation: &str,
    others: &[Rect],
    lanes: &mut usize,
) -> Vec<Point> {
    let colour = colour(relation);
    let stroke = Stroke { colour, width: 1.8, dashes: if relation == "fr" { "5 3" } else { "" } };
    if (from.x - to.x).abs() < 1.0 {
        // Within a column: a bow to the right.
        let right = from.x + from.w;
        let (start, end) = (at(right, from.centre().y), at(right, to.centre().y));
        let bow = right + 34.0;
        let control = |y: f64| format!("{} {}", num(bow), num(y));
        let path = format!(
            "M{}C{} {} {}",
            pair(start),
            control(start.y),
            control(end.y),
            pair(at(end.x + 6.0, end.y))
        );
        canvas.path(&path, stroke);
        canvas.arrowhead(end, at(-1.0, 0.0), 9.0, colour);
        return vec![at(right + 27.0, (start.y + end.y) / 2.0)];
    }
    let is_right = to.x > from.x;
    let side = |frame: Rect, is_right: bool| {
        at(if is_right { frame.x + frame.w } else { frame.x }, frame.centre().y)
    };
    // Several arrows may meet at one side of a box: each relation has a height of its own.
    let shift = match relation {
        "rf" => -6.0,
        "co" => 6.0,
        _ => 0.0,
    };
    let start = at(side(from, is_right).x, side(from, is_right).y + shift);
    let end = at(side(to, !is_right).x, side(to, !is_right).y + shift);
    if others.iter().any(|frame| crosses(start, end, frame)) {
        return draw_through_lane(canvas, start, end, stroke, lanes);
    }
    let (dx, dy) = (end.x - start.x, end.y - start.y);
    let length = (dx * dx + dy * dy).sqrt().max(1.0);
    let along = at(dx / length, dy / length);
    canvas.line(start, at(end.x - along.x * 6.0, end.y - along.y * 6.0), stroke);
    canvas.arrowhead(end, along, 9.0, colour);
    // Arrows that cross do so in the middle: the label stands a third of the way.
    [0.32, 0.24, 0.4, 0.5, 0.62, 0.7, 0.16]
        .map(|part| at(start.x + dx * part, start.y + dy * part))
        .to_vec()
}

/// Draws an arrow through the gap beside its start, the lane above the lower of its rows or below
/// both if they are one, and the gap beside its end; no event stands in any of them.
fn draw_through_lane(
    canvas: &mut Canvas,
    start: Point,
    end: Point,
    stroke: Stroke<'_>,
    lanes: &mut usize,
) -> Vec<Point> {
    // Arrows that share a lane or a gap keep a little apart.
    let apart = 5.0 * (*lanes % 4) as f64;
    *lanes += 1;
    let is_one_row = (start.y - end.y).abs() < BOX;
    let row = ((start.y.max(end.y) - TOP) / ROW).floor();
    let below = TOP + ROW * row + BOX + 8.0 + apart;
    let y = if is_one_row { below } else { below - ROW };
    let way = (end.x - start.x).signum();
    let (first, last) = (start.x + way * (16.0 + apart), end.x - way * (22.0 + apart));
    let corner = |from: Point, bend: Point, to: Point| {
        let toward = |other: Point| {
            let (dx, dy) = (other.x - bend.x, other.y - bend.y);
            let length = (dx * dx + dy * dy).sqrt().max(1.0);
            let radius = 6.0f64.min(length / 2.0);
            at(bend.x + dx / length * radius, bend.y + dy / length * radius)
        };
        format!("L{}Q{} {}", pair(toward(from)), pair(bend), pair(toward(to)))
    };
    let bends = [at(first, start.y), at(first, y), at(last, y), at(last, end.y)];
    let mut path = format!("M{}", pair(start));
    for (i, &bend) in bends.iter().enumerate() {
        let before = if i == 0 { start } else { bends[i - 1] };
        let after = bends.get(i + 1).copied().unwrap_or(end);
        path += &corner(before, bend, after);
    }
    path += &format!("L{}", pair(at(end.x - way * 6.0, end.y)));
    let colour = stroke.colour;
    canvas.path(&path, stroke);
    canvas.arrowhead(end, at(way, 0.0), 9.0, colour);
    let part = |part: f64| at(first + (last - first) * part, y);
    [0.32, 0.5, 0.68, 0.2, 0.8, 0.41, 0.59].map(part).to_vec()
}

/// Says whether a line runs over a frame.
fn crosses(start: Point, end: Point, frame: &Rect) -> bool {
    let (mut enters, mut leaves) = (0.0f64, 1.0f64);
    let sides = [
        (start.x, end.x - start.x, frame.x, frame.x + frame.w),
        (start.y, end.y - start.y, frame.y, frame.y + frame.h),
    ];
    for (from, delta, low, high) in sides {
        if delta.abs() < 1e-9 {
            if from < low || from > high {
                return false;
            }
            continue;
        }
        let (a, b) = ((low - from) / delta, (high - from) / delta);
        enters = enters.max(a.min(b));
        leaves = leaves.min(a.max(b));
    }
    enters < leaves
}

fn overlap(a: &Rect, b: &Rect) -> bool {
    a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h
}

fn colour(relation: &str) -> &'static str {
    match relation {
        "rf" => "#00856a",
        "fr" => "#d1490c",
        "co" => "#a87900",
        _ => "#4b3f9e",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_and_arrow_is_drawn() {
        let node =
            |thread, label: &str| ExecutionNode { thread, label: label.to_owned(), place: Some(1) };
        let arrow = |from, to| ExecutionArrow { from, to, relation: "fr".to_owned() };
        let svg = execution_svg(&ExecutionGraph {
            title: "SB <1>".to_owned(),
            threads: vec!["P0".to_owned(), "P1".to_owned()],
            events: vec![node(0, "W x=1"), node(0, "R y=0"), node(1, "W y=1"), node(1, "R x=0")],
            arrows: vec![arrow(1, 2), arrow(3, 0)],
            notes: vec!["memory order".to_owned()],
        });
        for part in ["SB &lt;1&gt;", "W x=1", "R y=0", "memory order", ">P1<"] {
            assert!(svg.contains(part), "{part} is missing");
        }
        assert_eq!(svg.matches(">fr<").count(), 2);
    }

    #[test]
    fn no_arrow_runs_over_an_event() {
        let frame = Rect { x: 100.0, y: 0.0, w: 50.0, h: 30.0 };
        assert!(crosses(at(0.0, 15.0), at(200.0, 15.0), &frame));
        assert!(crosses(at(0.0, -30.0), at(200.0, 60.0), &frame));
        assert!(!crosses(at(0.0, 40.0), at(200.0, 40.0), &frame));
        assert!(!crosses(at(0.0, 15.0), at(90.0, 15.0), &frame));
    }
}
