//! A run of a protocol as a message sequence.
//!
//! A lane for each participant, time running downwards, a row for each step. Who acts has a dot;
//! arrows lead from there to the lanes whose state the step changes. If nobody in particular acts,
//! they lead from the last lane, which is what all share. What changed stands to the right.

use crate::svg::{Anchor, Canvas, FAINT, Font, INK, MUTED, Point, Rect, Stroke, at};
use crate::text::clean;

/// A run to draw.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sequence {
    /// What stands above the picture.
    pub title: String,
    /// What stands below the title.
    pub caption: String,
    /// The names of the lanes.
    pub lanes: Vec<String>,
    /// The steps, first step first.
    pub steps: Vec<SequenceStep>,
}

/// A step of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SequenceStep {
    /// What happens.
    pub label: String,
    /// The lane of who acts.
    pub actor: Option<usize>,
    /// The lanes that are touched.
    pub touched: Vec<usize>,
    /// What changes, a line each.
    pub notes: Vec<String>,
    /// What stands beside who acts.
    pub tag: String,
    /// Whether this is where it goes wrong.
    pub is_wrong: bool,
}

const WRONG: &str = "#b3261e";
const LANE: f64 = 120.0;
const LINE: f64 = 15.0;
/// How many lines of changes a step shows.
const MOST_NOTES: usize = 8;

/// Draws a run as a message sequence.
pub fn sequence_svg(sequence: &Sequence) -> String {
    let mut canvas = Canvas::default();
    let margin = 24.0;
    let label_font = Font::sans(12.0, INK);
    let note_font = Font { is_mono: true, ..Font::sans(10.5, MUTED) };
    let labels: Vec<String> = sequence
        .steps
        .iter()
        .enumerate()
        .map(|(number, step)| format!("{number}. {}", clean(&step.label, 60)))
        .collect();
    let widest = labels.iter().map(|label| label_font.measure(label)).fold(60.0, f64::max);
    let left = margin + widest + 20.0;
    let x = |lane: usize| left + LANE * (lane as f64 + 0.5);
    let tag_font = Font { is_mono: true, ..Font::sans(11.0, INK).bold() };
    let last_lane = sequence.lanes.len().saturating_sub(1);
    // What stands beside the last lane needs room in front of the changes.
    let right = sequence
        .steps
        .iter()
        .filter(|step| !step.tag.is_empty())
        .map(|step| x(tag_lane(step).min(last_lane)) + tag_font.measure(&step.tag) + 24.0)
        .fold(left + LANE * sequence.lanes.len() as f64 + 10.0, f64::max);
    let top = 84.0;

    canvas.text(at(margin, 28.0), Font::sans(16.0, INK).bold(), &clean(&sequence.title, 100));
    canvas.text(at(margin, 48.0), Font::sans(12.0, MUTED), &clean(&sequence.caption, 140));

    // Rows first, to know how long the lanes are.
    let mut rows = Vec::new();
    let mut y = top + 20.0;
    let mut width = right;
    for step in &sequence.steps {
        let mut notes: Vec<String> =
            step.notes.iter().take(MOST_NOTES).map(|note| clean(note, 90)).collect();
        if step.notes.len() > MOST_NOTES {
            notes.push(format!("and {} more", step.notes.len() - MOST_NOTES));
        }
        let height = (notes.len().max(1) as f64) * LINE + 16.0;
        width = notes.iter().map(|note| right + note_font.measure(note)).fold(width, f64::max);
        rows.push((y, height, notes));
        y += height;
    }
    let bottom = y + 8.0;
    for (_, (y, height, _)) in sequence.steps.iter().zip(&rows).filter(|(step, _)| step.is_wrong) {
        let row = Rect { x: margin - 8.0, y: *y, w: width - margin + 16.0, h: *height };
        canvas.rect(row, 4.0, "#fbeceb", None);
    }
    for (lane, name) in sequence.lanes.iter().enumerate() {
        let name = clean(name, 18);
        let head = Rect::around(at(x(lane), top - 8.0), LANE - 16.0, 22.0);
        canvas.rect(head, 4.0, "#eef1f5", None);
        let font = Font::sans(12.0, INK).bold().anchored(Anchor::Middle);
        canvas.text(at(x(lane), top - 4.0), font, &name);
        let stroke = Stroke { colour: FAINT, width: 1.5, dashes: "" };
        canvas.line(at(x(lane), top + 4.0), at(x(lane), bottom), stroke);
    }
    for ((step, label), (y, height, notes)) in sequence.steps.iter().zip(&labels).zip(&rows) {
        let colour = if step.is_wrong { WRONG } else { INK };
        let middle = y + height / 2.0;
        canvas.text(at(margin, middle + 4.0), Font { colour, ..label_font }, label);
        for (number, note) in notes.iter().enumerate() {
            canvas.text(at(right, y + 18.0 + LINE * number as f64), note_font, note);
        }
        let dot = |canvas: &mut Canvas, lane: usize| {
            canvas.circle(at(x(lane), middle), 4.0, colour, None);
        };
        match step.actor.filter(|&lane| lane < sequence.lanes.len()) {
            Some(actor) => {
                dot(&mut canvas, actor);
                let others = step.touched.iter().filter(|&&lane| lane != actor);
                for &lane in others.filter(|&&lane| lane < sequence.lanes.len()) {
                    arrow(&mut canvas, at(x(actor), middle), at(x(lane), middle), colour);
                }
            }
            None => {
                let last = sequence.lanes.len().saturating_sub(1);
                let touched: Vec<usize> =
                    step.touched.iter().copied().filter(|&lane| lane <= last).collect();
                if touched.contains(&last) {
                    dot(&mut canvas, last);
                    for &lane in touched.iter().filter(|&&lane| lane != last) {
                        arrow(&mut canvas, at(x(last), middle), at(x(lane), middle), colour);
                    }
                } else {
                    touched.iter().for_each(|&lane| dot(&mut canvas, lane));
                }
            }
        }
        if !step.tag.is_empty() {
            let lane = tag_lane(step).min(last_lane);
            let font = Font { colour, ..tag_font };
            canvas.text(at(x(lane) + 8.0, middle - 5.0), font, &clean(&step.tag, 40));
        }
    }
    canvas.finish(width + margin, bottom + margin, &sequence.title)
}

/// Gives the lane of who acts, or of the first that is touched.
fn tag_lane(step: &SequenceStep) -> usize {
    step.actor.or(step.touched.first().copied()).unwrap_or(0)
}

fn arrow(canvas: &mut Canvas, from: Point, to: Point, colour: &str) {
    let along = at((to.x - from.x).signum(), 0.0);
    canvas.line(from, at(to.x - along.x * 6.0, to.y), Stroke { colour, width: 1.5, dashes: "" });
    canvas.arrowhead(to, along, 9.0, colour);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_a_lane_a_row_and_an_arrow() {
        let step = SequenceStep {
            label: "send <x>".into(),
            actor: Some(0),
            touched: vec![0, 1, 9],
            notes: vec!["a: 1 → 2".into()],
            tag: "w(x,1)".into(),
            is_wrong: true,
        };
        let sequence = Sequence {
            title: "t".into(),
            lanes: vec!["p".into(), "q".into()],
            steps: vec![step],
            ..Sequence::default()
        };
        let svg = sequence_svg(&sequence);
        assert!(svg.contains("0. send &lt;x&gt;") && svg.contains("a: 1 → 2"));
        assert!(svg.contains("w(x,1)"));
        assert_eq!(svg.matches("<polygon").count(), 1, "one arrow, the lane that is none has none");
    }
}
