//! A view as a static SVG document.
//!
//! The document uses presentation attributes only, without ids, styles or scripts, so any number of
//! pictures can be embedded in one page. All text is escaped here.

use std::fmt::Write;

use crate::geometry::{
    LABEL_TEXT, NAME_TEXT, NODE_TEXT, Point, Rect, bold_width, printable, rounded,
};
use crate::palette::{colours, meaning};
use crate::{Basis, Bead, Edge, Emphasis, Node, NodeKind, Role, Scene, Tick, View};

const INK: &str = "#1f2933";
const MUTED: &str = "#59636e";
const AXIS: &str = "#d5dbe1";
const ACCENT: &str = "#0b62a8";
const MARGIN: f64 = 20.0;
const NARROWEST: f64 = 460.0;
/// Radius of the rounded corners of routed edges.
const CORNER: f64 = 6.0;

/// Draws a view of a scene, with title, caption, legend and notes.
pub fn svg(scene: &Scene, view: &View) -> String {
    sheet(&scene.title, &scene.caption, &[("", scene, view)], &scene.notes)
}

/// Draws several views on one sheet, each below its heading, with a common legend.
pub fn sheet(
    title: &str,
    caption: &str,
    panels: &[(&str, &Scene, &View)],
    notes: &[String],
) -> String {
    let title = printable(title);
    let widest = panels.iter().map(|(.., view)| view.width).fold(NARROWEST, f64::max);
    let width = widest.max(bold_width(&title, 18.0) + 2.0 * MARGIN);
    let columns = ((width - 2.0 * MARGIN) / (13.0 * 0.56)) as usize;
    let bold = " font-weight=\"bold\"";
    let mut body = String::new();
    let mut y = MARGIN + 16.0;
    if !title.is_empty() {
        text(&mut body, Point { x: MARGIN, y }, "18", INK, "sans-serif", bold, &title);
    }
    for line in wrapped(&printable(caption), columns) {
        y += 19.0;
        text(&mut body, Point { x: MARGIN, y }, "13", MUTED, "sans-serif", "", &line);
    }
    y += 12.0;
    for (heading, scene, view) in panels {
        for line in wrapped(&printable(heading), columns * 9 / 10) {
            y += 18.0;
            text(&mut body, Point { x: MARGIN, y }, "13", INK, "sans-serif", bold, &line);
        }
        let left = rounded(((width - view.width) / 2.0).max(0.0));
        put(&mut body, format_args!("<g transform=\"translate({left} {})\">", rounded(y)));
        picture(&mut body, scene, view);
        put(&mut body, format_args!("</g>"));
        y += view.height + 4.0;
    }
    let mut x = MARGIN;
    for (sample, words) in legend(panels) {
        let w = 34.0 + words.chars().count() as f64 * 12.0 * 0.56;
        if x > MARGIN && x + w > width - MARGIN {
            x = MARGIN;
            y += 18.0;
        }
        let (left, middle) = (rounded(x), rounded(y + 8.0));
        put(&mut body, format_args!("<path d=\"M{left} {middle}h22\" fill=\"none\"{sample}/>"));
        text(&mut body, Point { x: x + 28.0, y: y + 12.0 }, "12", MUTED, "sans-serif", "", &words);
        x += w + 14.0;
    }
    y += 18.0;
    for note in notes.iter().flat_map(|note| wrapped(&printable(note), columns)) {
        y += 17.0;
        text(&mut body, Point { x: MARGIN, y }, "12", MUTED, "sans-serif", "", &note);
    }
    let (w, h) = (width.ceil(), (y + MARGIN).ceil());
    let described = if caption.is_empty() { title } else { format!("{title}. {caption}") };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" \
         viewBox=\"0 0 {w} {h}\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n{body}</svg>\n",
        escaped(&described),
    )
}

fn picture(body: &mut String, scene: &Scene, view: &View) {
    for rect in view.lanes.iter().filter(|rect| rect.h > 0.0) {
        box_of(body, *rect, 8.0, "#f3f5f8", None);
    }
    let top = view.lanes.first().map_or(0.0, |lane| lane.y);
    for Tick(x, y, label) in &view.ticks {
        put(
            body,
            format_args!("<path d=\"M{x} {}V{}\" stroke=\"{AXIS}\"/>", rounded(top), y - 10.0),
        );
        let at = Point { x: *x, y: *y };
        text(body, at, "10", MUTED, "sans-serif", " text-anchor=\"middle\"", label);
    }
    for (band, rect) in scene.bands.iter().zip(&view.bands) {
        box_of(body, *rect, 0.0, "#f8dcc9", None);
        let at = Point { x: rect.x + 3.0, y: rect.y + 12.0 };
        text(body, at, "11", "#8a3b00", "sans-serif", "", &printable(&band.label));
    }
    let anchor =
        if view.bands.is_empty() && view.edges.iter().any(Option::is_some) || is_order(view) {
            " text-anchor=\"middle\" font-weight=\"bold\""
        } else {
            " font-weight=\"bold\""
        };
    let shown = view.names.iter().zip(&view.lanes).map(|(&at, rect)| (at, rect.h > 0.0));
    for (lane, (at, _)) in scene.lanes.iter().zip(shown).filter(|(_, (_, is_shown))| *is_shown) {
        text(body, at, &NAME_TEXT.to_string(), INK, "sans-serif", anchor, &printable(&lane.name));
    }
    // The most important edges are drawn last, on top of the others.
    let mut order: Vec<usize> = (0..scene.edges.len()).collect();
    order.sort_by_key(|&edge| match scene.edges[edge].role {
        Role::Context => 0,
        Role::Premise => 1,
        Role::Cycle => 2,
    });
    for &index in &order {
        let (edge, Some(Some(route))) = (&scene.edges[index], view.edges.get(index)) else {
            continue;
        };
        let colour = colours(&edge.relation).light;
        let width = match edge.role {
            Role::Cycle => 2.4,
            Role::Premise => 1.3,
            Role::Context => 1.3,
        };
        let dashes = match edge.basis {
            Basis::Given => "",
            Basis::Derived => " stroke-dasharray=\"7 4\"",
            Basis::Assumed => " stroke-dasharray=\"2 4\"",
        };
        let path = path(&route.points);
        put(
            body,
            format_args!(
                "<path d=\"{path}\" fill=\"none\" stroke=\"#ffffff\" stroke-width=\"{}\"/>\
                 <path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dashes}/>",
                width + 3.0
            ),
        );
        if let [.., before, tip] = route.points[..] {
            arrowhead(body, before, tip, colour);
        }
    }
    for beads in view.beads.windows(2) {
        let (Bead(_, ax, ay), Bead(_, bx, by)) = (beads[0], beads[1]);
        put(
            body,
            format_args!(
                "<path d=\"M{ax} {ay}L{bx} {by}\" stroke=\"{ACCENT}\" stroke-width=\"1.6\"/>"
            ),
        );
    }
    for (node, rect) in scene.nodes.iter().zip(&view.nodes) {
        if let Some(rect) = rect {
            node_box(body, node, *rect, view.beads.is_empty());
        }
    }
    for bead in &view.beads {
        let place = scene.nodes[bead.0].place.unwrap_or(0);
        let more = " stroke=\"#ffffff\" stroke-width=\"1.5\"";
        box_of(body, bead.rect(place), 7.5, ACCENT, Some(more));
        let at = Point { x: bead.1, y: bead.2 + 3.2 };
        let more = " font-weight=\"bold\" text-anchor=\"middle\"";
        text(body, at, "9", "#ffffff", "sans-serif", more, &place.to_string());
    }
    for (edge, route) in scene.edges.iter().zip(&view.edges) {
        let Some(route) = route else { continue };
        if edge.relation.is_empty() {
            continue;
        }
        // The label of a straight line is next to it, on the background of its lane.
        if route.points.len() != 2 || route.points[0].x != route.points[1].x {
            box_of(body, route.label, 3.0, "#ffffff", None);
        }
        let at = Point { x: route.label.centre().x, y: route.label.y + 11.0 };
        let size = LABEL_TEXT.to_string();
        let more = " font-weight=\"bold\" text-anchor=\"middle\"";
        text(
            body,
            at,
            &size,
            colours(&edge.relation).light,
            "sans-serif",
            more,
            &printable(&edge.relation),
        );
    }
}

/// Checks whether lanes are columns, so that their names are at their heads.
fn is_order(view: &View) -> bool {
    view.lanes.iter().zip(&view.names).any(|(lane, name)| name.x > lane.x + 12.0)
}

fn node_box(body: &mut String, node: &Node, rect: Rect, is_numbered: bool) {
    let (fill, outline, width) = match (node.kind, node.emphasis) {
        (NodeKind::Gap, _) => ("none", "none", 0.0),
        (_, Emphasis::Wrong) => ("#fde5e2", "#b3261e", 2.2),
        (NodeKind::Aborted, _) => ("#f0f0f0", "#9aa5b1", 1.2),
        (_, Emphasis::Proof) => ("#ffffff", "#1f2933", 2.0),
        (_, Emphasis::Premise) => ("#ffffff", "#59636e", 1.3),
        (_, Emphasis::Plain) => ("#ffffff", "#b9c1ca", 1.2),
    };
    let dashes = match node.kind {
        NodeKind::Pending | NodeKind::Initial | NodeKind::Aborted => " stroke-dasharray=\"4 3\"",
        _ => "",
    };
    if node.kind != NodeKind::Gap {
        let more = format!(" stroke=\"{outline}\" stroke-width=\"{width}\"{dashes}");
        box_of(body, rect, 6.0, fill, Some(&more));
    }
    let colour = match node.emphasis {
        Emphasis::Wrong => "#8c1d18",
        Emphasis::Plain if node.kind == NodeKind::Gap => MUTED,
        _ => INK,
    };
    let centre = rect.centre();
    let first = centre.y - (node.lines.len() as f64 - 1.0) * 17.0 / 2.0 + 4.5;
    for (line, words) in node.lines.iter().enumerate() {
        let at = Point { x: centre.x, y: first + line as f64 * 17.0 };
        let size = NODE_TEXT.to_string();
        text(body, at, &size, colour, "monospace", " text-anchor=\"middle\"", &printable(words));
    }
    if let Some(place) = node.place.filter(|_| is_numbered) {
        let at = Point { x: rect.x + 4.0, y: rect.y + 10.0 };
        text(body, at, "9", MUTED, "sans-serif", "", &place.to_string());
    }
}

/// Lists the meanings of the drawn lines: stroke attributes of a sample, and words.
fn legend(panels: &[(&str, &Scene, &View)]) -> Vec<(String, String)> {
    let drawn: Vec<&Edge> = panels
        .iter()
        .flat_map(|(_, scene, view)| scene.edges.iter().zip(&view.edges))
        .filter(|(_, route)| route.is_some())
        .map(|(edge, _)| edge)
        .collect();
    let mut relations: Vec<&str> = Vec::new();
    for edge in &drawn {
        // Words such as "12 more edges" need no explanation.
        let is_name = !edge.relation.is_empty() && !edge.relation.contains(' ');
        if is_name && !relations.contains(&edge.relation.as_str()) {
            relations.push(&edge.relation);
        }
    }
    let mut found: Vec<(String, String)> = relations
        .into_iter()
        .map(|relation| {
            let colour = colours(relation).light;
            let words = format!("{} {}", printable(relation), meaning(relation));
            (format!(" stroke=\"{colour}\" stroke-width=\"2.4\""), words.trim_end().to_owned())
        })
        .collect();
    let mut add = |is_drawn: bool, stroke: &str, words: &str| {
        if is_drawn {
            found.push((format!(" stroke=\"{MUTED}\" {stroke}"), words.to_owned()));
        }
    };
    let has = |basis: Basis| drawn.iter().any(|edge| edge.basis == basis);
    add(has(Basis::Derived), "stroke-width=\"2.4\" stroke-dasharray=\"7 4\"", "derived by a rule");
    add(
        has(Basis::Assumed),
        "stroke-width=\"2.4\" stroke-dasharray=\"2 4\"",
        "assumed in this case",
    );
    let has_premise = drawn.iter().any(|edge| edge.role == Role::Premise);
    add(has_premise, "stroke-width=\"1.3\"", "premise of a rule");
    found
}

/// Writes a polyline with rounded corners, as the `d` attribute of a path.
fn path(points: &[Point]) -> String {
    let Some(first) = points.first() else { return String::new() };
    let mut out = format!("M{} {}", rounded(first.x), rounded(first.y));
    for three in points.windows(3) {
        let (before, corner, after) = (three[0], three[1], three[2]);
        let towards = |p: Point| {
            let length = (p.x - corner.x).hypot(p.y - corner.y).max(0.1);
            let part = CORNER.min(length / 2.0) / length;
            (corner.x + (p.x - corner.x) * part, corner.y + (p.y - corner.y) * part)
        };
        let ((ax, ay), (bx, by)) = (towards(before), towards(after));
        let _ = write!(
            out,
            "L{} {}Q{} {} {} {}",
            rounded(ax),
            rounded(ay),
            rounded(corner.x),
            rounded(corner.y),
            rounded(bx),
            rounded(by)
        );
    }
    if let Some(last) = points.last().filter(|_| points.len() > 1) {
        let _ = write!(out, "L{} {}", rounded(last.x), rounded(last.y));
    }
    out
}

fn arrowhead(body: &mut String, before: Point, tip: Point, colour: &str) {
    let length = (tip.x - before.x).hypot(tip.y - before.y).max(0.1);
    let (dx, dy) = ((tip.x - before.x) / length, (tip.y - before.y) / length);
    let back = Point { x: tip.x - dx * 9.0, y: tip.y - dy * 9.0 };
    put(
        body,
        format_args!(
            "<polygon points=\"{} {} {} {} {} {}\" fill=\"{colour}\"/>",
            rounded(tip.x),
            rounded(tip.y),
            rounded(back.x - dy * 4.0),
            rounded(back.y + dx * 4.0),
            rounded(back.x + dy * 4.0),
            rounded(back.y - dx * 4.0)
        ),
    );
}

fn box_of(body: &mut String, rect: Rect, radius: f64, fill: &str, more: Option<&str>) {
    put(
        body,
        format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{radius}\" fill=\"{fill}\"{}/>",
            rounded(rect.x),
            rounded(rect.y),
            rounded(rect.w),
            rounded(rect.h),
            more.unwrap_or("")
        ),
    );
}

fn text(
    body: &mut String,
    at: Point,
    size: &str,
    colour: &str,
    family: &str,
    more: &str,
    words: &str,
) {
    put(
        body,
        format_args!(
            "<text x=\"{}\" y=\"{}\" font-family=\"{family}\" font-size=\"{size}\"{more} \
             fill=\"{colour}\">{}</text>",
            rounded(at.x),
            rounded(at.y),
            escaped(words)
        ),
    );
}

fn put(body: &mut String, line: std::fmt::Arguments) {
    writeln!(body, "{line}").expect("writing to a string cannot fail");
}

/// Escapes text for XML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Breaks a text into lines of at most `longest` characters, at spaces where there are any.
fn wrapped(text: &str, longest: usize) -> Vec<String> {
    let longest = longest.max(20);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word: Vec<char> = word.chars().collect();
        for part in word.chunks(longest) {
            let part: String = part.iter().collect();
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + part.chars().count() <= longest => {
                    line.push(' ');
                    line.push_str(&part);
                }
                _ => lines.push(part),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lane, order_view};

    #[test]
    fn text_from_inputs_is_escaped() {
        let mut scene = Scene::new("<script>alert(1)</script>");
        scene.lanes = vec![Lane::new("\"><img onerror=x>")];
        scene.nodes =
            vec![Node::new("a", 0, 0, "w(x,'\u{202e}&\u{7}')"), Node::new("b", 0, 2, "r")];
        scene.edges = vec![Edge::new(0, 1, "<b>")];
        let svg = svg(&scene, &order_view(&scene));
        assert!(!svg.contains("<script") && !svg.contains("<img") && !svg.contains("<b>"));
        assert!(
            svg.contains("&lt;script&gt;") && !svg.contains('\u{202e}') && !svg.contains('\u{7}')
        );
    }
}
