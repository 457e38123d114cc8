//! A picture as data: nodes in lanes, edges with their evidence, bands of time, steps of a proof.
//!
//! A [`Scene`] describes the content of a picture, without coordinates. [`order_view`] places its
//! nodes in columns, one per lane, with routed edges; [`time_view`] places them as bars along a
//! time axis; [`lattice_view`] draws a Hasse diagram. All return a [`View`], which the back ends
//! draw: [`svg`] as a static picture, [`View`]'s serialized form for the interactive page. [`dot`]
//! and [`text`] need no coordinates and take the scene itself.
//!
//! The same scene serves histories of registers, transactions and calls, executions of litmus
//! tests, runs of protocols, and the lattice of models, so that all of them are drawn in the same
//! style.
//!
//! # Guarantees
//!
//! In an order view and in a lattice view no label overlaps another label, a node or the line of
//! another edge, and no edge runs over a node. The layouts reserve space for each of them, so this
//! holds by construction; `tests/random_scenes.rs` checks it on random scenes.
//!
//! ```
//! use consistory_scene::{Edge, Lane, Node, Scene, order_view, svg};
//!
//! let mut scene = Scene::new("message passing");
//! scene.lanes = vec![Lane::new("t0"), Lane::new("t1")];
//! scene.nodes = vec![Node::new("t0:0", 0, 0, "w(x,1)"), Node::new("t1:0", 1, 1, "r(x,1)")];
//! scene.edges = vec![Edge::new(0, 1, "wr")];
//! assert!(svg(&scene, &order_view(&scene)).contains("w(x,1)"));
//! ```

mod core_of;
mod geometry;
mod palette;

mod lattice_layout;
mod order_layout;
mod time_layout;

mod dot;
mod format;
mod svg;
mod text;

use serde::Serialize;

pub use core_of::core_of;
pub use dot::dot;
pub use format::PictureFormat;
pub use geometry::{Point, Rect};
pub use lattice_layout::lattice_view;
pub use order_layout::order_view;
pub use palette::{Colours, colours, meaning};
pub use svg::{sheet, svg};
pub use text::text;
pub use time_layout::time_view;

/// A picture as data.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Scene {
    /// Heading.
    pub title: String,
    /// Sentence below the heading.
    pub caption: String,
    /// Columns of an order view and rows of a time view, in drawing order.
    pub lanes: Vec<Lane>,
    /// Nodes; an edge refers to them by index.
    pub nodes: Vec<Node>,
    /// Edges; a step refers to them by index.
    pub edges: Vec<Edge>,
    /// Spans of time that are highlighted across all lanes, for example faults.
    pub bands: Vec<Band>,
    /// Steps of the proof, in reading order.
    pub steps: Vec<Step>,
    /// Sentences below the picture.
    pub notes: Vec<String>,
    /// Whether starts and ends express only an order, so that a time view has no axis.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_without_clock: bool,
}

impl Scene {
    /// Builds an empty scene.
    pub fn new(title: impl Into<String>) -> Self {
        Scene { title: title.into(), ..Scene::default() }
    }
}

/// A session, thread, processor or layer.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Lane {
    /// Name shown at its head.
    pub name: String,
}

impl Lane {
    /// Builds a lane.
    pub fn new(name: impl Into<String>) -> Self {
        Lane { name: name.into() }
    }
}

/// An operation, transaction, call, event or state.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Node {
    /// Stable reference, for example `t0:1`.
    pub id: String,
    /// Index of its lane.
    pub lane: usize,
    /// Row in an order view; rows without nodes have no height.
    pub row: usize,
    /// Lines of its label.
    pub lines: Vec<String>,
    /// Text shown under the pointer: values and times in full.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Style of the node.
    pub kind: NodeKind,
    /// Part of the node in the proof.
    pub emphasis: Emphasis,
    /// Start on the time axis, if it has times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<i64>,
    /// End on the time axis; a node with a start and no end is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<i64>,
    /// Position in the order that proves consistency, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// Number of operations or transactions that a gap represents.
    #[serde(skip_serializing_if = "is_zero")]
    pub hidden: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Node {
    /// Builds a plain node with a label of one line.
    pub fn new(id: impl Into<String>, lane: usize, row: usize, label: impl Into<String>) -> Self {
        Node { id: id.into(), lane, row, lines: vec![label.into()], ..Node::default() }
    }

    /// Builds a gap that represents `count` items, for example `operations`.
    pub fn gap(lane: usize, row: usize, count: usize, things: &str) -> Self {
        let things = if count == 1 { things.trim_end_matches('s') } else { things };
        let label = format!("… {} {things} …", grouped(count));
        Node { kind: NodeKind::Gap, hidden: count, ..Node::new("", lane, row, label) }
    }
}

/// Formats a number with commas between groups of three digits.
fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Style of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    /// An operation, call or event.
    #[default]
    Operation,
    /// A transaction, with its operations as lines.
    Transaction,
    /// The initial state or an initial write.
    Initial,
    /// A number of operations that are hidden.
    Gap,
    /// A call without a return, or one whose outcome is unknown.
    Pending,
    /// An aborted transaction or failed operation.
    Aborted,
}

/// Part of a node in the proof.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Emphasis {
    /// Shown for context.
    #[default]
    Plain,
    /// Part of a premise.
    Premise,
    /// Part of the cycle, or of the explanation of a consistent history.
    Proof,
    /// The read or return that nothing explains.
    Wrong,
}

/// An edge between two nodes.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Edge {
    /// Index of the node where it starts.
    pub from: usize,
    /// Index of the node where it ends.
    pub to: usize,
    /// Relation, for example `wr`; it chooses the colour and is the label.
    pub relation: String,
    /// Role of the edge in the proof.
    pub role: Role,
    /// The origin of the edge.
    pub basis: Basis,
    /// Sentence that explains the edge.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Indices of the edges that it follows from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<usize>,
}

impl Edge {
    /// Builds an edge of the proof that is given by the history.
    pub fn new(from: usize, to: usize, relation: impl Into<String>) -> Self {
        Edge { from, to, relation: relation.into(), ..Edge::default() }
    }
}

/// Role of an edge in the proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// An edge of the cycle.
    #[default]
    Cycle,
    /// A premise of a derived edge.
    Premise,
    /// An edge shown for context.
    Context,
}

/// The origin of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The history contains the edge.
    #[default]
    Given,
    /// A rule derives the edge.
    Derived,
    /// A case of the proof assumes the edge.
    Assumed,
}

/// A span of time that is highlighted across all lanes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Band {
    /// The event, for example `n1 cut off`.
    pub label: String,
    /// Start on the time axis.
    pub start: i64,
    /// End on the time axis.
    pub end: i64,
}

/// A step of a proof.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Step {
    /// Sentence.
    pub sentence: String,
    /// Indices of the edges that the step describes.
    pub edges: Vec<usize>,
    /// Indices of the nodes that the step describes.
    pub nodes: Vec<usize>,
    /// Names and values of the state after the step; empty if the step is not about a state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<(String, String)>,
}

impl Step {
    /// Builds a step about some nodes.
    pub fn new(sentence: impl Into<String>, nodes: Vec<usize>) -> Self {
        Step { sentence: sentence.into(), nodes, ..Step::default() }
    }
}

/// The layout of a scene: positions of all its parts.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct View {
    /// Width of the whole picture.
    pub width: f64,
    /// Height of the whole picture.
    pub height: f64,
    /// Background of each lane; a rectangle without height is not shown.
    pub lanes: Vec<Rect>,
    /// Centre of the baseline of each lane's name, or its start in a time view.
    pub names: Vec<Point>,
    /// Box of each node; `None` if this view does not show it.
    pub nodes: Vec<Option<Rect>>,
    /// Route of each edge; `None` if this view does not show it.
    pub edges: Vec<Option<Route>>,
    /// Box of each band.
    pub bands: Vec<Rect>,
    /// Times along the axis of a time view.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ticks: Vec<Tick>,
    /// Points at which the calls of a linearization take effect, in a time view, in the order of
    /// the linearization.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beads: Vec<Bead>,
}

/// A time on the axis: the middle of the label's baseline, and the label.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Tick(pub f64, pub f64, pub String);

/// The point at which a call takes effect: its node, and a position at the upper side of its bar.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Bead(pub usize, pub f64, pub f64);

impl Bead {
    /// Returns the box of a bead with the number of a place in it.
    pub fn rect(&self, place: usize) -> Rect {
        let half = Self::half_width(place);
        Rect { x: self.1 - half, y: self.2 - 7.5, w: 2.0 * half, h: 15.0 }
    }

    /// Returns half the width of a bead with the number of a place in it.
    fn half_width(place: usize) -> f64 {
        4.5 + 3.0 * place.to_string().len() as f64
    }
}

/// The route of an edge.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Route {
    /// Corners from the start to the tip of the arrow.
    pub points: Vec<Point>,
    /// Box of the label.
    pub label: Rect,
}
