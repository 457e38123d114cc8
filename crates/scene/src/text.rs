//! A scene for the terminal: a column per lane as long as they fit, then the steps of the proof.

use crate::geometry::{columns, printable};
use crate::{Emphasis, Scene};

const GAP: usize = 2;
/// A column is not made narrower than this.
const NARROWEST_COLUMN: usize = 12;

/// Writes a scene within `width` columns.
///
/// Lanes that do not fit beside each other continue below. A label that is too long keeps its end,
/// where the result stands, and loses its middle.
pub fn text(scene: &Scene, width: usize) -> String {
    let lanes = scene.lanes.len();
    let mut cells: Vec<Vec<(usize, String)>> = vec![Vec::new(); lanes];
    for node in scene.nodes.iter().filter(|node| node.lane < lanes) {
        let mark = match node.emphasis {
            Emphasis::Wrong => "! ",
            Emphasis::Proof => "* ",
            Emphasis::Plain | Emphasis::Premise => "  ",
        };
        cells[node.lane].push((node.row, format!("{mark}{}", printable(&node.lines.join("; ")))));
    }
    let rows = scene.nodes.iter().map(|node| node.row + 1).max().unwrap_or(0);
    let wanted: Vec<usize> = (0..lanes)
        .map(|lane| {
            let texts = cells[lane].iter().map(|(_, text)| columns(text));
            texts.fold(columns(&scene.lanes[lane].name) + 2, usize::max)
        })
        .collect();
    let mut out = String::new();
    let mut first = 0;
    while first < lanes {
        // As many lanes as fit, and at least one.
        let mut last = first;
        let mut used = 0;
        while last < lanes {
            let w = wanted[last].min(width.max(NARROWEST_COLUMN));
            if last > first && used + GAP + w > width {
                break;
            }
            used += if last > first { GAP + w } else { w };
            last += 1;
        }
        let widths: Vec<usize> =
            (first..last).map(|lane| wanted[lane].min(width.max(NARROWEST_COLUMN))).collect();
        let line = |texts: Vec<String>| {
            let padded: Vec<String> = texts
                .iter()
                .zip(&widths)
                .map(|(text, &w)| {
                    let text = shortened(text, w);
                    let fill = " ".repeat(w.saturating_sub(columns(&text)));
                    text + &fill
                })
                .collect();
            padded.join(&" ".repeat(GAP)).trim_end().to_owned() + "\n"
        };
        let heads = (first..last).map(|lane| format!("  {}", printable(&scene.lanes[lane].name)));
        out += &line(heads.collect());
        for row in 0..rows {
            let texts: Vec<String> = (first..last)
                .map(|lane| {
                    let found = cells[lane].iter().find(|(at, _)| *at == row);
                    found.map_or(String::new(), |(_, text)| text.clone())
                })
                .collect();
            if texts.iter().any(|text| !text.is_empty()) {
                out += &line(texts);
            }
        }
        first = last;
        if first < lanes {
            out.push('\n');
        }
    }
    for note in &scene.notes {
        out += &printable(note);
        out.push('\n');
    }
    out
}

/// Shortens a label to `width` columns; its end, where the result stands, is kept.
fn shortened(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let room = width.saturating_sub(1);
    let tail = room * 2 / 3;
    let head: String = chars[..room - tail].iter().collect();
    let tail: String = chars[chars.len() - tail..].iter().collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lane, Node};

    #[test]
    fn lanes_that_do_not_fit_continue_below() {
        let mut scene = Scene::new("");
        scene.lanes = vec![Lane::new("t0"), Lane::new("t1")];
        scene.nodes = vec![
            Node::new("a", 0, 0, "w(x,1)"),
            Node { emphasis: Emphasis::Proof, ..Node::new("b", 1, 1, "r(x,1)") },
        ];
        assert_eq!(text(&scene, 80), "  t0        t1\n  w(x,1)\n          * r(x,1)\n");
        assert_eq!(text(&scene, 12), "  t0\n  w(x,1)\n\n  t1\n* r(x,1)\n");
    }

    #[test]
    fn the_result_survives_shortening() {
        assert_eq!(shortened("put(alpha,beta) => 17", 14), "put(a…a) => 17");
    }
}
