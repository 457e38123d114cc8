//! A scene for the terminal: a column per lane while they fit, then its edges and the steps of the
//! proof.

use crate::geometry::{columns, printable};
use crate::{Emphasis, Role, Scene};

const GAP: usize = 2;
/// Smallest width of a column.
const NARROWEST_COLUMN: usize = 12;

/// Writes a scene within `width` columns.
///
/// Lanes that do not fit next to each other continue below. A label that is too long keeps its end,
/// which contains the return, and is cut in the middle. Sentences are broken at spaces.
pub fn text(scene: &Scene, width: usize) -> String {
    let mut out = String::new();
    for heading in [&scene.title, &scene.caption] {
        if !heading.is_empty() {
            out += &wrapped(&printable(heading), width, 0);
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out += &lanes(scene, width);
    let drawn: Vec<String> = scene
        .edges
        .iter()
        .filter(|edge| edge.role != Role::Context && !edge.relation.is_empty())
        .filter_map(|edge| {
            let (from, to) = (scene.nodes.get(edge.from)?, scene.nodes.get(edge.to)?);
            Some(format!("  {} -{}-> {}", from.id, edge.relation, to.id))
        })
        .collect();
    if !drawn.is_empty() {
        out.push('\n');
    }
    for line in drawn {
        out += &wrapped(&printable(&line), width, 4);
    }
    if !scene.steps.is_empty() {
        out.push('\n');
    }
    for (number, step) in scene.steps.iter().enumerate() {
        let head = format!("{:>3}. ", number + 1);
        out += &wrapped(&format!("{head}{}", printable(&step.sentence)), width, head.len());
        if step.state.len() == 1 {
            let state = format!("     {}: {}", step.state[0].0, step.state[0].1);
            out += &wrapped(&printable(&state), width, 7);
        }
    }
    if !scene.notes.is_empty() {
        out.push('\n');
    }
    for note in &scene.notes {
        out += &wrapped(&printable(note), width, 0);
    }
    out
}

/// Writes as many lanes of a scene next to each other as fit, and the others below.
fn lanes(scene: &Scene, width: usize) -> String {
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
    out
}

/// Breaks a text into lines of at most `width` columns, at spaces where there are any; lines after
/// the first are indented.
fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let indent = indent.min(width / 2);
    let mut out = String::new();
    let mut line = String::new();
    let mut used = 0;
    // Spaces at the beginning belong to the first word.
    let margin = text.len() - text.trim_start().len();
    let (start, rest) = text.split_at(margin);
    for (i, word) in rest.split(' ').enumerate() {
        let word = if i == 0 { format!("{start}{word}") } else { word.to_owned() };
        if i > 0 && used + 1 + columns(&word) > width {
            out += line.trim_end();
            out.push('\n');
            line = " ".repeat(indent);
            used = indent;
        } else if i > 0 {
            line.push(' ');
            used += 1;
        }
        for c in word.chars() {
            let w = columns(c.encode_utf8(&mut [0; 4]));
            if used + w > width {
                out += line.trim_end();
                out.push('\n');
                line = " ".repeat(indent);
                used = indent;
            }
            line.push(c);
            used += w;
        }
    }
    out + line.trim_end() + "\n"
}

/// Shortens a label to `width` columns; its end, which contains the return, is kept.
fn shortened(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let wide = |c: &char| columns(c.encode_utf8(&mut [0; 4]));
    let mut used = 0;
    let mut fits = |c: &char, limit: usize| {
        used += wide(c);
        used <= limit
    };
    let mut tail: Vec<char> = text.chars().rev().take_while(|c| fits(c, room * 2 / 3)).collect();
    tail.reverse();
    let rest = room - tail.iter().map(wide).sum::<usize>();
    used = 0;
    let head: String = text
        .chars()
        .take_while(|c| {
            used += wide(c);
            used <= rest
        })
        .collect();
    format!("{head}…{}", tail.into_iter().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edge, Lane, Node, Step};

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
        scene.title = "a title of words".to_owned();
        scene.edges = vec![Edge::new(0, 1, "wr")];
        scene.steps = vec![Step::new("b reads what a wrote.", vec![1])];
        let whole = text(&scene, 24);
        let expected = "a title of words\n\n  t0        t1\n  w(x,1)\n          * r(x,1)\n\n  a -wr-> b\n\n  1. b reads what a\n     wrote.\n";
        assert_eq!(whole, expected);
    }

    #[test]
    fn the_result_survives_shortening() {
        assert_eq!(shortened("put(alpha,beta) => 17", 14), "put(a…a) => 17");
    }
}
