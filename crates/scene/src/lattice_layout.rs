//! A Hasse diagram: layers from top to bottom, lines from each layer to the next.
//!
//! The layered method of Sugiyama, Tagawa and Toda ("Methods for visual understanding of
//! hierarchical system structures", 1981), for some tens of nodes. An edge that skips layers gets a
//! bend in each of them; every layer is sorted by the mean position of its neighbours as long as
//! that lowers the number of crossings; positions are then the nearest, by least squares, to the
//! mean of the neighbours that keep the vertices apart.
//!
//! ```text
//!     ┌──────┐
//!     │ node │          layer
//!     └─┬──┬─┘
//!        ╲  ╲           slanted lines
//!        7│  │9         strip: labels, vertical lines only
//!       ┌─▾──▾─┐
//! ```
//!
//! Labels are in a strip above the node that their edge enters. Lines run vertically through a
//! strip, each in a slot that is as wide as its label, and slanted lines stay between the strips.
//! So no label touches a node, another label or another edge.

use std::collections::BTreeMap;

use crate::geometry::{LABEL_TEXT, NODE_TEXT, Point, Rect, bold_width, mono_width, printable};
use crate::{Route, Scene, View};

const MARGIN: f64 = 16.0;
const LINE_HEIGHT: f64 = 17.0;
const SLANTED_HEIGHT: f64 = 46.0;
const STRIP_HEIGHT: f64 = 28.0;
const LABEL_HEIGHT: f64 = 14.0;
const NODE_GAP: f64 = 28.0;
/// Width of the slot of a line without a label.
const NARROWEST_SLOT: f64 = 18.0;
const SWEEPS: usize = 12;

/// Places a scene's nodes in layers by their rows and draws its edges downwards.
///
/// The lanes of the scene are ignored. An edge that does not lead to a lower row is not shown.
pub fn lattice_view(scene: &Scene) -> View {
    let mut diagram = Diagram::new(scene);
    diagram.sort_layers();
    diagram.place();
    diagram.view(scene)
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
    /// Nodes first, then bends.
    vertices: Vec<Vertex>,
    /// Vertices of each layer, from left to right.
    layers: Vec<Vec<usize>>,
    /// Vertices of each edge from its start to its end; empty if the edge is not shown.
    chains: Vec<Vec<usize>>,
    /// Width of the slot at the end of each edge.
    slots: Vec<f64>,
}

impl Diagram {
    fn new(scene: &Scene) -> Self {
        let mut rows: Vec<usize> = scene.nodes.iter().map(|node| node.row).collect();
        rows.sort_unstable();
        rows.dedup();
        let layers: BTreeMap<usize, usize> =
            rows.into_iter().enumerate().map(|(layer, row)| (row, layer)).collect();
        let mut vertices: Vec<Vertex> = scene
            .nodes
            .iter()
            .map(|node| {
                let widths = node.lines.iter().map(|line| mono_width(&printable(line), NODE_TEXT));
                Vertex {
                    layer: layers[&node.row],
                    w: widths.fold(40.0, f64::max) + 26.0,
                    h: node.lines.len().max(1) as f64 * LINE_HEIGHT + 13.0,
                    x: 0.0,
                    above: Vec::new(),
                    below: Vec::new(),
                }
            })
            .collect();
        let count = scene.nodes.len();
        let mut chains = Vec::new();
        let mut slots = Vec::new();
        // Room that the edges below and above each node need.
        let mut needed = vec![[0.0f64; 2]; count];
        for edge in &scene.edges {
            let label = printable(&edge.relation);
            let slot = match label.is_empty() {
                true => NARROWEST_SLOT,
                false => (bold_width(&label, LABEL_TEXT) + 14.0).max(NARROWEST_SLOT),
            };
            slots.push(slot);
            let is_shown = edge.from < count
                && edge.to < count
                && vertices[edge.from].layer < vertices[edge.to].layer;
            if !is_shown {
                chains.push(Vec::new());
                continue;
            }
            needed[edge.from][0] += NARROWEST_SLOT;
            needed[edge.to][1] += slot;
            let mut chain = vec![edge.from];
            for layer in vertices[edge.from].layer + 1..vertices[edge.to].layer {
                chain.push(vertices.len());
                let (above, below) = (Vec::new(), Vec::new());
                vertices.push(Vertex { layer, w: NARROWEST_SLOT, h: 0.0, x: 0.0, above, below });
            }
            chain.push(edge.to);
            for pair in chain.windows(2) {
                vertices[pair[0]].below.push(pair[1]);
                vertices[pair[1]].above.push(pair[0]);
            }
            chains.push(chain);
        }
        for (vertex, [below, above]) in vertices.iter_mut().zip(needed) {
            vertex.w = vertex.w.max(below + 8.0).max(above + 8.0);
        }
        let mut in_layers = vec![Vec::new(); layers.len()];
        for (v, vertex) in vertices.iter().enumerate() {
            in_layers[vertex.layer].push(v);
        }
        Diagram { vertices, layers: in_layers, chains, slots }
    }

    /// Sorts the layers by the mean position of each vertex's neighbours, downwards and upwards in
    /// turn, and keeps the order with the fewest crossings.
    fn sort_layers(&mut self) {
        let mut best = (self.crossings(), self.layers.clone());
        for sweep in 0..SWEEPS {
            let is_down = sweep % 2 == 0;
            let count = self.layers.len();
            for step in 0..count {
                let layer = if is_down { step } else { count - 1 - step };
                let place = self.places_in_layers();
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

    fn places_in_layers(&self) -> Vec<usize> {
        let mut place = vec![0; self.vertices.len()];
        for layer in &self.layers {
            for (i, &v) in layer.iter().enumerate() {
                place[v] = i;
            }
        }
        place
    }

    fn crossings(&self) -> usize {
        let place = self.places_in_layers();
        let in_layer = |layer: &Vec<usize>| {
            let edges: Vec<(usize, usize)> = layer
                .iter()
                .flat_map(|&v| self.vertices[v].below.iter().map(move |&u| (v, u)))
                .map(|(v, u)| (place[v], place[u]))
                .collect();
            let crosses = |a: &(usize, usize), b: &(usize, usize)| {
                (a.0 < b.0 && a.1 > b.1) || (a.0 > b.0 && a.1 < b.1)
            };
            let before = |i: usize| edges[..i].iter().filter(|b| crosses(&edges[i], b)).count();
            (0..edges.len()).map(before).sum::<usize>()
        };
        self.layers.iter().map(in_layer).sum()
    }

    /// Finds the vertices' positions from left to right.
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

    /// Moves the vertices of a layer as near to the mean of their neighbours as their distances
    /// allow: an isotonic regression by pooling adjacent violators.
    fn settle(&mut self, layer: usize, neighbours: impl Fn(&Vertex) -> Option<f64>) {
        let order = &self.layers[layer];
        let mut offset = 0.0;
        let mut offsets = Vec::new();
        // Each pool: the sum of the preferred positions of its members, and their number.
        let mut pools: Vec<(f64, usize)> = Vec::new();
        for (i, &v) in order.iter().enumerate() {
            let vertex = &self.vertices[v];
            if i > 0 {
                let before = &self.vertices[order[i - 1]];
                let gap = if before.h == 0.0 || vertex.h == 0.0 { 6.0 } else { NODE_GAP };
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

    fn view(&self, scene: &Scene) -> View {
        let count = scene.nodes.len();
        // Upper side and height of each layer.
        let mut bands = Vec::new();
        let mut y = MARGIN;
        for layer in &self.layers {
            let h = layer.iter().map(|&v| self.vertices[v].h).fold(0.0, f64::max);
            bands.push((y, h));
            y += h + SLANTED_HEIGHT + STRIP_HEIGHT;
        }
        let bottom = y - SLANTED_HEIGHT - STRIP_HEIGHT;
        let mut view = View::default();
        for vertex in &self.vertices[..count] {
            let (top, h) = bands[vertex.layer];
            let (x, y) = (vertex.x - vertex.w / 2.0, top + (h - vertex.h) / 2.0);
            view.nodes.push(Some(Rect { x, y, w: vertex.w, h: vertex.h }));
        }
        let (exits, entries) = self.ports(count);
        for (index, chain) in self.chains.iter().enumerate() {
            let [first, .., last] = chain[..] else {
                view.edges.push(None);
                continue;
            };
            let rect = |v: usize| view.nodes[v].expect("a lattice view shows every node");
            let strip_top = |layer: usize| bands[layer].0 - STRIP_HEIGHT;
            let row_bottom = |layer: usize| bands[layer].0 + bands[layer].1;
            let x = exits[index];
            let (from, to) = (rect(first), rect(last));
            let mut points = vec![
                Point { x, y: from.y + from.h },
                Point { x, y: row_bottom(self.vertices[first].layer) },
            ];
            for &bend in &chain[1..chain.len() - 1] {
                let Vertex { x, layer, .. } = self.vertices[bend];
                points
                    .extend([Point { x, y: strip_top(layer) }, Point { x, y: row_bottom(layer) }]);
            }
            let x = entries[index];
            points.extend([
                Point { x, y: strip_top(self.vertices[last].layer) },
                Point { x, y: to.y },
            ]);
            points.dedup();
            let w =
                if scene.edges[index].relation.is_empty() { 0.0 } else { self.slots[index] - 6.0 };
            let y = strip_top(self.vertices[last].layer) + 2.0;
            let label = Rect { x: x - w / 2.0, y, w, h: LABEL_HEIGHT };
            view.edges.push(Some(Route { points, label }));
        }
        let right = self.vertices.iter().map(|v| v.x + v.w / 2.0).fold(0.0, f64::max);
        view.width = right + MARGIN;
        view.height = bottom.max(MARGIN) + MARGIN;
        view
    }

    /// Returns the positions at which each edge leaves its first node and enters its last one.
    fn ports(&self, count: usize) -> (Vec<f64>, Vec<f64>) {
        let mut exits = vec![0.0; self.chains.len()];
        let mut entries = vec![0.0; self.chains.len()];
        let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut entering: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (edge, chain) in self.chains.iter().enumerate() {
            if let [first, .., last] = chain[..] {
                leaving[first].push(edge);
                entering[last].push(edge);
            }
        }
        for node in 0..count {
            // The edges of a side are sorted by their other ends.
            let next = |edge: usize| self.vertices[self.chains[edge][1]].x;
            let before = |edge: usize| {
                let chain = &self.chains[edge];
                self.vertices[chain[chain.len() - 2]].x
            };
            leaving[node].sort_by(|&a, &b| next(a).total_cmp(&next(b)).then(a.cmp(&b)));
            entering[node].sort_by(|&a, &b| before(a).total_cmp(&before(b)).then(a.cmp(&b)));
            let middle = self.vertices[node].x;
            let mut x = middle - leaving[node].len() as f64 * NARROWEST_SLOT / 2.0;
            for &edge in &leaving[node] {
                exits[edge] = x + NARROWEST_SLOT / 2.0;
                x += NARROWEST_SLOT;
            }
            let total: f64 = entering[node].iter().map(|&edge| self.slots[edge]).sum();
            let mut x = middle - total / 2.0;
            for &edge in &entering[node] {
                entries[edge] = x + self.slots[edge] / 2.0;
                x += self.slots[edge];
            }
        }
        (exits, entries)
    }
}
