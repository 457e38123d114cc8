//! A history of reads and writes as scenes: one lane per session, the proof as edges and steps.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use consistory_history::{History, OpId};
use consistory_scene::{Edge, Emphasis, Lane, Node, NodeKind, Scene, Step, order_view, sheet};
use consistory_verdict::{Certificate, Judgement};

use crate::judgement::RegisterJudgement;
use crate::lanes::{Arrow, Extent, Item, Lanes, Role, arrows_of, emphasis, lanes, reads_from};
use crate::lanes::{Basis, Emphasis as Importance};
use crate::narrative::told_steps;
use crate::proof::{Assumption, leaves};
use crate::summary::explain_registers_line;
use crate::text::{
    clean, counted, described, grouped, initial, notation, quoted, reference, session_name,
};

/// Options of a drawing of a history.
#[derive(Clone, PartialEq, Debug)]
pub struct DrawOptions {
    /// Model that was judged, for the title.
    pub model: String,
    /// Number of operations up to which all are drawn, at most 200; of a larger history only the
    /// relevant ones are drawn.
    pub full_up_to: usize,
    /// Number of neighbours that are drawn on either side of a relevant operation, at most 20.
    pub context: usize,
    /// Number of drawn cases of a proof by cases, at most 20.
    pub cases: usize,
    /// State of the object after each drawn call of the linearization, if known.
    pub states: HashMap<OpId, String>,
}

impl Default for DrawOptions {
    fn default() -> Self {
        let states = HashMap::new();
        DrawOptions { model: String::new(), full_up_to: 60, context: 1, cases: 4, states }
    }
}

/// Limits of [`DrawOptions`]; larger drawings are not readable.
const MAX_FULL_OPS: usize = 200;
const MAX_CONTEXT_OPS: usize = 20;
const MAX_CASES: usize = 20;

/// Builds the scenes of a history and its judgement: one, or one per case of a proof by cases.
///
/// The edges of the cycle contain their evidence, and the steps are the sentences of the
/// explanation. Without a cycle the edges show the source of each read.
pub(crate) fn registers_scenes(
    history: &History,
    judgement: &RegisterJudgement<'_>,
    options: &DrawOptions,
) -> Vec<Scene> {
    let (title, caption) = headings(history, judgement, options);
    let mut scenes = Vec::new();
    match judgement {
        Judgement::Violation { certificate, .. } => {
            let (shown, total) = leaves(certificate, options.cases.clamp(1, MAX_CASES));
            for leaf in &shown {
                let mut scene = violation_scene(history, leaf.certificate, options);
                let assumptions: Vec<String> =
                    leaf.assumptions.iter().map(|a| assumption(history, *a)).collect();
                if !assumptions.is_empty() {
                    scene.title = format!("If {}", assumptions.join(", and "));
                }
                scenes.push(scene);
            }
            if let (Some(last), further @ 1..) = (scenes.last_mut(), total - shown.len()) {
                last.notes.push(format!("{} not drawn", counted(further, "further case")));
            }
        }
        Judgement::Consistent(
            Certificate::Order { wr, .. }
            | Certificate::SessionOrders { wr, .. }
            | Certificate::Witness { wr, .. }
            | Certificate::Closure { wr, .. }
            | Certificate::Views { wr, .. },
        ) => scenes.push(plain_scene(history, wr, options)),
        Judgement::Consistent(_) | Judgement::Undecided(_) => {
            scenes.push(plain_scene(history, &[], options));
        }
    }
    if let Judgement::Consistent(Certificate::Order { order, .. }) = judgement {
        number(history, order, &mut scenes);
    }
    for scene in &mut scenes {
        if scene.title.is_empty() {
            scene.title.clone_from(&title);
        }
        scene.caption.clone_from(&caption);
    }
    scenes
}

/// Draws a history and, if the judgement is a violation, its proof.
pub(crate) fn registers_svg(
    history: &History,
    judgement: &RegisterJudgement<'_>,
    options: &DrawOptions,
) -> String {
    let (title, caption) = headings(history, judgement, options);
    let scenes = registers_scenes(history, judgement, options);
    let views: Vec<_> = scenes.iter().map(order_view).collect();
    let heading =
        |scene: &Scene| if scene.title == title { String::new() } else { scene.title.clone() };
    let headings: Vec<String> = scenes.iter().map(heading).collect();
    let panels: Vec<_> = headings
        .iter()
        .zip(&scenes)
        .zip(&views)
        .map(|((heading, scene), view)| (heading.as_str(), scene, view))
        .collect();
    let notes: Vec<String> = scenes.iter().flat_map(|scene| scene.notes.iter().cloned()).collect();
    sheet(&title, &caption, &panels, &notes)
}

/// Returns the title and the sentence below it.
fn headings(
    history: &History,
    judgement: &RegisterJudgement<'_>,
    options: &DrawOptions,
) -> (String, String) {
    let model = clean(&options.model, 60);
    let verdict = judgement.verdict().as_str();
    let mut title = if model.is_empty() { verdict.into() } else { format!("{model}: {verdict}") };
    let mut caption = explain_registers_line(history, &options.model, judgement);
    let mut said_already = format!("{verdict}: ");
    if let Judgement::Violation { pattern, .. } = judgement {
        let pattern = clean(&pattern.to_string(), 60);
        title += &format!(", {pattern}");
        said_already = format!("{pattern}: ");
    }
    if let Some(rest) = caption.strip_prefix(&said_already) {
        caption = rest.into();
    }
    if let Some(name) = history.name() {
        title = format!("{}, {title}", clean(name, 60));
    }
    (title, caption)
}

fn extent(options: &DrawOptions) -> Extent {
    Extent {
        full_up_to: options.full_up_to.min(MAX_FULL_OPS),
        context: options.context.min(MAX_CONTEXT_OPS),
    }
}

fn violation_scene(history: &History, certificate: &Certificate, options: &DrawOptions) -> Scene {
    let found = arrows_of(history, certificate);
    let wrong = match certificate {
        Certificate::ThinAirRead { read } => Some(*read),
        _ => None,
    };
    let importance = emphasis(&found.arrows, wrong);
    let lanes = lanes(history, &importance, &found.arrows, extent(options));
    let mut built = Built::new(history, &lanes, &found.arrows, &importance);
    if let Some(&node) = wrong.and_then(|read| built.nodes.get(&read)) {
        built.scene.nodes[node].emphasis = Emphasis::Wrong;
    }
    let steps: Vec<Step> = told_steps(history, certificate)
        .into_iter()
        .map(|told| {
            let edges: Vec<usize> = told
                .edges
                .iter()
                .filter_map(|e| built.edges.get(&(e.from, e.to, e.relation.to_string())).copied())
                .collect();
            let ends = told.edges.iter().flat_map(|edge| [edge.from, edge.to]);
            let nodes: BTreeSet<usize> =
                ends.chain(wrong).filter_map(|op| built.nodes.get(&op).copied()).collect();
            for &edge in &edges {
                if built.scene.edges[edge].why.is_empty() {
                    built.scene.edges[edge].why.clone_from(&told.sentence);
                }
            }
            Step { edges, ..Step::new(told.sentence, nodes.into_iter().collect()) }
        })
        .collect();
    built.scene.steps = steps;
    built.link_premises(certificate);
    if found.left_out > 0 {
        let note = format!("{} not drawn", counted(found.left_out, "further premise"));
        built.scene.notes.push(note);
    }
    built.scene
}

fn plain_scene(history: &History, chosen: &[(OpId, OpId)], options: &DrawOptions) -> Scene {
    let nothing = BTreeMap::new();
    let mut lanes = lanes(history, &nothing, &[], extent(options));
    let arrows = reads_from(history, &lanes, chosen);
    lanes.assign_rows(&arrows);
    Built::new(history, &lanes, &arrows, &nothing).scene
}

/// Numbers the shown operations by their position in the order that proves consistency.
fn number(history: &History, order: &[OpId], scenes: &mut [Scene]) {
    let places: HashMap<String, usize> =
        order.iter().enumerate().map(|(i, &op)| (reference(history, op), i + 1)).collect();
    for node in scenes.iter_mut().flat_map(|scene| &mut scene.nodes) {
        node.place = places.get(&node.id).copied();
    }
}

/// A scene under construction, with the origin of its parts.
struct Built {
    scene: Scene,
    /// Index of the node of each shown operation.
    nodes: HashMap<OpId, usize>,
    /// Index of each edge by its ends and relation.
    edges: HashMap<(OpId, OpId, String), usize>,
}

impl Built {
    fn new(
        history: &History,
        lanes: &Lanes,
        arrows: &[Arrow],
        importance: &BTreeMap<OpId, Importance>,
    ) -> Self {
        let mut built =
            Built { scene: Scene::default(), nodes: HashMap::new(), edges: HashMap::new() };
        let usual = if importance.is_empty() { Emphasis::Premise } else { Emphasis::Plain };
        let emphasis = |op: OpId| match importance.get(&op) {
            Some(Importance::Cycle) => Emphasis::Proof,
            Some(Importance::Support) => Emphasis::Premise,
            None => usual,
        };
        // Initial writes have their own lane if an arrow touches one.
        let initials: BTreeSet<OpId> = arrows
            .iter()
            .flat_map(|arrow| [arrow.from, arrow.to])
            .filter(|&op| history.is_initial(op))
            .collect();
        if !initials.is_empty() {
            built.scene.lanes.push(Lane::new("initially"));
        }
        for (row, &op) in initials.iter().enumerate() {
            let node = Node {
                kind: NodeKind::Initial,
                emphasis: emphasis(op),
                ..Node::new(reference(history, op), 0, row, initial(history, op, "="))
            };
            built.add_node(op, node);
        }
        for lane in &lanes.lanes {
            let place = built.scene.lanes.len();
            built.scene.lanes.push(Lane::new(session_name(history, lane.session)));
            for &(item, row) in &lane.items {
                match item {
                    Item::Op(op) => {
                        let time = history.time(op);
                        let node = Node {
                            emphasis: emphasis(op),
                            detail: described(history, op),
                            start: time.map(|time| time.start),
                            end: time.and_then(|time| time.end),
                            ..Node::new(reference(history, op), place, row, notation(history, op))
                        };
                        built.add_node(op, node);
                    }
                    Item::Gap(count) => {
                        built.scene.nodes.push(Node::gap(place, row, count, "operations"));
                    }
                }
            }
        }
        for arrow in arrows {
            built.add_edge(arrow);
        }
        if lanes.further_sessions > 0 {
            let note = format!("{} not drawn", counted(lanes.further_sessions, "further session"));
            built.scene.notes.push(note);
        }
        built
    }

    fn add_node(&mut self, op: OpId, node: Node) {
        self.nodes.insert(op, self.scene.nodes.len());
        self.scene.nodes.push(node);
    }

    fn add_edge(&mut self, arrow: &Arrow) {
        let (Some(&from), Some(&to)) = (self.nodes.get(&arrow.from), self.nodes.get(&arrow.to))
        else {
            return;
        };
        let relation = match arrow.role {
            Role::Skipped(count) => format!("{} more edges", grouped(count)),
            _ => clean(arrow.relation, 24),
        };
        let role = match arrow.role {
            Role::Premise => consistory_scene::Role::Premise,
            Role::Context => consistory_scene::Role::Context,
            Role::Cycle | Role::Skipped(_) => consistory_scene::Role::Cycle,
        };
        let basis = match arrow.basis {
            Basis::Given => consistory_scene::Basis::Given,
            Basis::Derived => consistory_scene::Basis::Derived,
            Basis::Assumed => consistory_scene::Basis::Assumed,
        };
        let key = (arrow.from, arrow.to, arrow.relation.to_string());
        self.edges.insert(key, self.scene.edges.len());
        self.scene.edges.push(Edge { role, basis, ..Edge::new(from, to, relation) });
    }

    /// Links each derived edge to those of its premises that are shown.
    fn link_premises(&mut self, certificate: &Certificate) {
        for edge in certificate.edges() {
            let index = |e: &consistory_verdict::Edge| {
                self.edges.get(&(e.from, e.to, e.relation.to_string())).copied()
            };
            let Some(own) = index(edge) else { continue };
            let because: Vec<usize> = edge.because.iter().filter_map(index).collect();
            if self.scene.edges[own].because.is_empty() {
                self.scene.edges[own].because = because;
            }
        }
    }
}

fn assumption(history: &History, assumption: Assumption) -> String {
    match assumption {
        Assumption::Before(a, b) => {
            format!("{} comes before {}", quoted(history, a), reference(history, b))
        }
        Assumption::ReadsFrom(read, write) => {
            format!("{} reads from {}", quoted(history, read), reference(history, write))
        }
        Assumption::Last(write) => format!("{} is the last write", quoted(history, write)),
    }
}
