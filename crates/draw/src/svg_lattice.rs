//! A small Hasse diagram, drawn in layers, strongest on top.
//!
//! The layered method of Sugiyama, Tagawa and Toda ("Methods for visual understanding of
//! hierarchical system structures", 1981), for some tens of nodes: an edge that skips layers gets a
//! bend in each, every layer is sorted by the mean place of its neighbours while that lowers the
//! number of crossings, and places are then the nearest, in the sense of least squares, to the mean
//! of the neighbours that keep their distance.

use std::collections::BTreeMap;

use crate::svg::{Anchor, Canvas, FAINT, Font, INK, MUTED, Point, Rect, Stroke, at, pair};
use crate::text::clean;

/// A node of a Hasse diagram.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LatticeNode {
    /// The short name, for example `ccv`.
    pub id: String,
    /// The name in words; may be empty.
    pub title: String,
    /// The layer, the smallest on top; layers that no node has take no room.
    pub level: usize,
    /// A remark below the title; may be empty.
    pub note: String,
}

/// An edge of a Hasse diagram.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LatticeEdge {
    /// The place of the stronger node in the list of nodes.
    pub stronger: usize,
    /// The place of the weaker node in the list of nodes.
    pub weaker: usize,
    /// What the edge says; may be empty.
    pub label: String,
    /// Whether it is drawn dashed, as a conjecture.
    pub dashed: bool,
}

/// A text beside a Hasse diagram that the labels of its edges refer to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LatticeCard {
    /// What edges call it.
    pub label: String,
    /// The text, line by line.
    pub lines: Vec<String>,
    /// A remark below the text; may be empty.
    pub note: String,
}

const MARGIN: f64 = 24.0;
const LAYER_GAP: f64 = 64.0;
const NODE_GAP: f64 = 36.0;
const BEND_GAP: f64 = 26.0;
const SWEEPS: usize = 12;

/// Draws a Hasse diagram, strongest on top; an edge to a node that is not there is left out.
pub fn lattice_svg(nodes: &[LatticeNode], edges: &[LatticeEdge]) -> String {
    let (canvas, w, h) = drawn(nodes, edges);
    canvas.finish(w, h, "A lattice, strongest on top")
}

/// Draws a Hasse diagram with cards below it.
pub fn lattice_with_cards_svg(
    nodes: &[LatticeNode],
    edges: &[LatticeEdge],
    cards: &[LatticeCard],
) -> String {
    let (mut canvas, w, h) = drawn(nodes, edges);
    let sizes: Vec<(f64, f64)> = cards.iter().map(card_size).collect();
    // Rows as wide as the diagram, or as the widest card.
    let widest = sizes.iter().map(|&(w, _)| w + 2.0 * MARGIN).fold(w, f64::max);
    let (mut x, mut y, mut row) = (MARGIN, h, 0.0f64);
    for (card, &(card_w, card_h)) in cards.iter().zip(&sizes) {
        if x > MARGIN && x + card_w + MARGIN > widest {
            (x, y, row) = (MARGIN, y + row + CARD_GAP, 0.0);
        }
        draw_card(&mut canvas, card, Rect { x, y, w: card_w, h: card_h });
        x += card_w + CARD_GAP;
        row = row.max(card_h);
    }
    canvas.finish(widest, y + row + MARGIN, "A lattice, strongest on top, with what separates it")
}

const CARD_GAP: f64 = 14.0;
const CARD_LABEL: Font<'static> =
    Font { size: 12.0, colour: INK, is_mono: false, is_bold: true, anchor: Anchor::Start };
const CARD_TEXT: Font<'static> =
    Font { size: 12.0, colour: INK, is_mono: true, is_bold: false, anchor: Anchor::Start };
const CARD_NOTE: Font<'static> =
    Font { size: 11.0, colour: MUTED, is_mono: false, is_bold: false, anchor: Anchor::Start };

/// Lists the lines of a card, its label first.
fn card_lines(card: &LatticeCard) -> impl Iterator<Item = (Font<'static>, String)> {
    let texts = card.lines.iter().map(|line| (CARD_TEXT, line));
    std::iter::once((CARD_LABEL, &card.label))
        .chain(texts)
        .chain(std::iter::once((CARD_NOTE, &card.note)))
        .filter(|(_, text)| !text.is_empty())
        .map(|(font, text)| (font, clean(text, 80)))
}

fn card_size(card: &LatticeCard) -> (f64, f64) {
    let w = card_lines(card).map(|(font, text)| font.measure(&text)).fold(60.0, f64::max);
    let h: f64 = card_lines(card).map(|(font, _)| font.size + 5.0).sum();
    (w + 24.0, h + 14.0)
}

fn draw_card(canvas: &mut Canvas, card: &LatticeCard, area: Rect) {
    canvas.rect(area, 6.0, "#ffffff", Some(Stroke { colour: FAINT, width: 1.2, dashes: "" }));
    let mut y = area.y + 5.0;
    for (font, text) in card_lines(card) {
        y += font.size + 5.0;
        canvas.text(at(area.x + 12.0, y - 2.0), font, &text);
    }
}

fn drawn(nodes: &[LatticeNode], edges: &[LatticeEdge]) -> (Canvas, f64, f64) {
    let mut diagram = Diagram::new(nodes, edges);
    diagram.sort_layers();
    diagram.place();
    diagram.draw(nodes, edges)
}

/// A node, or a bend of an edge that passes a layer.
struct Vertex {
    layer: usize,
    w: f64,
    h: f64,
    x: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

struct Diagram {
    /// The nodes first, then the bends.
    vertices: Vec<Vertex>,
    layers: Vec<Vec<usize>>,
    /// For each edge its vertices, in its own direction; empty if an end is missing.
    chains: Vec<Vec<usize>>,
}

const ID: Font<'static> =
    Font { size: 15.0, colour: INK, is_mono: true, is_bold: true, anchor: Anchor::Middle };
const TITLE: Font<'static> =
    Font { size: 12.0, colour: INK, is_mono: false, is_bold: false, anchor: Anchor::Middle };
const NOTE: Font<'static> =
    Font { size: 11.0, colour: MUTED, is_mono: false, is_bold: false, anchor: Anchor::Middle };

/// Gives the lines of a node's text.
fn lines(node: &LatticeNode) -> Vec<(Font<'static>, String)> {
    [(ID, &node.id), (TITLE, &node.title), (NOTE, &node.note)]
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(font, text)| (font, clean(text, 48)))
        .collect()
}

impl Diagram {
    fn new(nodes: &[LatticeNode], edges: &[LatticeEdge]) -> Self {
        let levels: BTreeMap<usize, usize> = {
            let mut levels: Vec<usize> = nodes.iter().map(|n| n.level).collect();
            levels.sort_unstable();
            levels.dedup();
            levels.into_iter().enumerate().map(|(i, level)| (level, i)).collect()
        };
        let mut vertices: Vec<Vertex> = nodes
            .iter()
            .map(|node| {
                let lines = lines(node);
                let w = lines.iter().map(|(font, text)| font.measure(text)).fold(40.0, f64::max);
                let h: f64 = lines.iter().map(|(font, _)| font.size + 4.0).sum();
                let layer = levels[&node.level];
                Vertex { layer, w: w + 28.0, h: h + 14.0, x: 0.0, above: vec![], below: vec![] }
            })
            .collect();
        let mut chains = Vec::new();
        for edge in edges {
            if edge.stronger >= nodes.len() || edge.weaker >= nodes.len() {
                chains.push(Vec::new());
                continue;
            }
            let (from, to) = (vertices[edge.stronger].layer, vertices[edge.weaker].layer);
            let mut chain = vec![edge.stronger];
            for layer in from + 1..to {
                chain.push(vertices.len());
                vertices.push(Vertex {
                    layer,
                    w: 0.0,
                    h: 0.0,
                    x: 0.0,
                    above: vec![],
                    below: vec![],
                });
            }
            chain.push(edge.weaker);
            // An edge that does not lead downwards is drawn, but has no say in the layout.
            if from < to {
                for pair in chain.windows(2) {
                    vertices[pair[0]].below.push(pair[1]);
                    vertices[pair[1]].above.push(pair[0]);
                }
            }
            chains.push(chain);
        }
        let mut layers = vec![Vec::new(); levels.len()];
        for (v, vertex) in vertices.iter().enumerate() {
            layers[vertex.layer].push(v);
        }
        Diagram { vertices, layers, chains }
    }

    /// Sorts the layers by the mean place of each vertex's neighbours, up and down in turn, and
    /// keeps the best that was seen.
    fn sort_layers(&mut self) {
        let mut best = (self.crossings(), self.layers.clone());
        for sweep in 0..SWEEPS {
            let is_down = sweep % 2 == 0;
            let places = self.layers.len();
            for step in 0..places {
                let layer = if is_down { step } else { places - 1 - step };
                let place = self.place_in_layer();
                let vertices = &self.vertices;
                let mean = |v: usize| {
                    let near = if is_down { &vertices[v].above } else { &vertices[v].below };
                    match near.len() {
                        0 => place[v] as f64,
                        n => near.iter().map(|&u| place[u] as f64).sum::<f64>() / n as f64,
                    }
                };
                self.layers[layer].sort_by(|&a, &b| mean(a).total_cmp(&mean(b)));
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
        }
        self.layers = best.1;
    }

    fn place_in_layer(&self) -> Vec<usize> {
        let mut place = vec![0; self.vertices.len()];
        for layer in &self.layers {
            for (i, &v) in layer.iter().enumerate() {
                place[v] = i;
            }
        }
        place
    }

    fn crossings(&self) -> usize {
        let place = self.place_in_layer();
        self.layers
            .iter()
            .map(|layer| {
                let edges: Vec<(usize, usize)> = layer
                    .iter()
                    .flat_map(|&v| self.vertices[v].below.iter().map(move |&u| (v, u)))
                    .map(|(v, u)| (place[v], place[u]))
                    .collect();
                let crosses = |a: &(usize, usize), b: &(usize, usize)| {
                    (a.0 < b.0 && a.1 > b.1) || (a.0 > b.0 && a.1 < b.1)
                };
                edges
                    .iter()
                    .enumerate()
                    .map(|(i, a)| edges[..i].iter().filter(|b| crosses(a, b)).count())
                    .sum::<usize>()
            })
            .sum()
    }

    /// Finds the vertices' places from left to right.
    fn place(&mut self) {
        for layer in 0..self.layers.len() {
            self.settle(layer, |_| None);
        }
        for round in 0..40 {
            let count = self.layers.len();
            for step in 0..count {
                let layer = if round % 2 == 0 { step } else { count - 1 - step };
                self.settle(layer, |vertex| {
                    let near = vertex.above.len() + vertex.below.len();
                    (near > 0).then_some(near as f64)
                });
            }
        }
        let left = self.vertices.iter().map(|v| v.x - v.w / 2.0).fold(f64::INFINITY, f64::min);
        for vertex in &mut self.vertices {
            vertex.x += MARGIN - left;
        }
    }

    /// Moves a layer's vertices as near to the mean of their neighbours as their distances allow:
    /// an isotonic regression, by pooling adjacent violators.
    fn settle(&mut self, layer: usize, neighbours: impl Fn(&Vertex) -> Option<f64>) {
        let order = &self.layers[layer];
        let mut offset = 0.0;
        let mut offsets = Vec::new();
        // Each pool: the sum of what its members want, and how many they are.
        let mut pools: Vec<(f64, usize)> = Vec::new();
        for (i, &v) in order.iter().enumerate() {
            let vertex = &self.vertices[v];
            if i > 0 {
                let before = &self.vertices[order[i - 1]];
                let gap = if before.w == 0.0 || vertex.w == 0.0 { BEND_GAP } else { NODE_GAP };
                offset += (before.w + vertex.w) / 2.0 + gap;
            }
            offsets.push(offset);
            let wanted = match neighbours(vertex) {
                None => vertex.x,
                Some(count) => {
                    let near = vertex.above.iter().chain(&vertex.below);
                    near.map(|&u| self.vertices[u].x).sum::<f64>() / count
                }
            };
            pools.push((wanted - offset, 1));
            while let [.., (a, m), (b, n)] = pools[..]
                && a / m as f64 >= b / n as f64
            {
                pools.truncate(pools.len() - 2);
                pools.push((a + b, m + n));
            }
        }
        let settled = pools.iter().flat_map(|&(sum, n)| std::iter::repeat_n(sum / n as f64, n));
        let places: Vec<f64> = settled.zip(&offsets).map(|(x, offset)| x + offset).collect();
        for (i, x) in places.into_iter().enumerate() {
            let v = self.layers[layer][i];
            self.vertices[v].x = x;
        }
    }

    /// Draws all of it; says how wide and how high it is.
    fn draw(&self, nodes: &[LatticeNode], edges: &[LatticeEdge]) -> (Canvas, f64, f64) {
        let mut middles = Vec::new();
        let mut y = MARGIN;
        for layer in &self.layers {
            let h = layer.iter().map(|&v| self.vertices[v].h).fold(0.0, f64::max);
            middles.push((y + h / 2.0, h));
            y += h + LAYER_GAP;
        }
        let box_of = |v: usize| {
            let vertex = &self.vertices[v];
            Rect::around(at(vertex.x, middles[vertex.layer].0), vertex.w, vertex.h)
        };
        let mut canvas = Canvas::default();
        let mut labels: Vec<(Point, &str)> = Vec::new();
        for (edge, chain) in edges.iter().zip(&self.chains) {
            let [first, .., last] = chain[..] else { continue };
            let is_down = self.vertices[first].layer < self.vertices[last].layer;
            let (a, b) = (box_of(first), box_of(last));
            let mut points = vec![if is_down { at(a.centre().x, a.y + a.h) } else { a.centre() }];
            for &bend in &chain[1..chain.len() - 1] {
                // Past a layer the line runs straight down, between the nodes.
                let (middle, h) = middles[self.vertices[bend].layer];
                let x = self.vertices[bend].x;
                points.extend([at(x, middle - h / 2.0), at(x, middle + h / 2.0)]);
            }
            points.push(if is_down { at(b.centre().x, b.y) } else { b.centre() });
            let dashes = if edge.dashed { "6 4" } else { "" };
            canvas.path(&smooth(&points), Stroke { colour: MUTED, width: 1.6, dashes });
            if !edge.label.is_empty() {
                let (p, q) = (points[0], points[1]);
                labels.push((at((p.x + q.x) / 2.0, (p.y + q.y) / 2.0), &edge.label));
            }
        }
        for (v, node) in nodes.iter().enumerate() {
            let rect = box_of(v);
            let frame = Stroke { colour: "#8c97a4", width: 1.2, dashes: "" };
            canvas.rect(rect, 9.0, "#f4f6f8", Some(frame));
            let mut y = rect.y + 5.0;
            for (font, text) in lines(node) {
                y += font.size + 4.0;
                canvas.text(at(rect.centre().x, y - 2.0), font, &text);
            }
        }
        for (p, text) in labels {
            let font = NOTE;
            let text = clean(text, 32);
            let area = Rect::around(p, font.measure(&text) + 8.0, font.size + 6.0);
            canvas.rect(area, 4.0, "#ffffff", None);
            canvas.text(at(p.x, p.y + 4.0), font, &text);
        }
        let right = (0..nodes.len()).map(|v| box_of(v).x + box_of(v).w).fold(260.0, f64::max);
        let bends = self.vertices.iter().map(|v| v.x).fold(right, f64::max);
        let bottom = y - LAYER_GAP + 22.0;
        let rule = Stroke { colour: FAINT, width: 1.0, dashes: "" };
        canvas.line(at(MARGIN, bottom), at(bends, bottom), rule);
        let words = "stronger above, weaker below";
        canvas.text(at(MARGIN, bottom + 18.0), NOTE.anchored(Anchor::Start), words);
        (canvas, bends + MARGIN, bottom + 18.0 + MARGIN)
    }
}

/// Writes a path through points that leaves and enters each of them vertically.
fn smooth(points: &[Point]) -> String {
    let mut out = format!("M{}", pair(points[0]));
    for two in points.windows(2) {
        let (a, b) = (two[0], two[1]);
        let middle = (a.y + b.y) / 2.0;
        out += &format!("C{} {} {}", pair(at(a.x, middle)), pair(at(b.x, middle)), pair(b));
    }
    out
}
