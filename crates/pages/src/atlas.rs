//! The lattice of models as a scene, and the atlas: each edge links to the smallest history that
//! separates its two models.

use consistory::{Court, Report};
use consistory_atlas::{Answer, Survey};
use consistory_history::History;
use consistory_models::{Implication, Lattice, find, find_level, lattice};
use consistory_report::{Case, Picture, ResultRow};
use consistory_scene::{Basis, Edge, Emphasis, Node, Role, Scene};

/// An edge of the atlas: a stronger and a weaker model, and the history that separates them.
pub struct AtlasEdge<'a> {
    /// Id of the stronger model.
    pub stronger: &'a str,
    /// Id of the weaker model.
    pub weaker: &'a str,
    /// Standing of the implication: proved or conjectured, with the reason.
    pub standing: String,
    /// Label of the edge.
    pub label: String,
    /// Smallest history that the weaker model allows and the stronger one forbids.
    pub history: Option<&'a History>,
}

/// Builds the Hasse diagram of models, the strongest above.
///
/// `label` returns the label of an edge. A conjectured implication is drawn as an assumption.
pub fn lattice_scene(lattice: &Lattice, label: impl Fn(&str, &str) -> String) -> Scene {
    let mut scene = Scene::new("What implies what");
    scene.caption = "Stronger models above, weaker models below.".to_owned();
    let top = lattice.nodes.iter().map(|(_, rank)| *rank).max().unwrap_or(0);
    for &(id, rank) in &lattice.nodes {
        let model = find(id).ok().or_else(|| find_level(id));
        let title = model.map(|model| model.title.clone()).unwrap_or_default();
        let mut node = Node::new(id, 0, top - rank, id);
        node.lines.extend((!title.is_empty()).then_some(title));
        node.emphasis = Emphasis::Premise;
        scene.nodes.push(node);
    }
    let place = |id: &str| lattice.nodes.iter().position(|(node, _)| *node == id);
    for edge in &lattice.edges {
        let (Some(from), Some(to)) = (place(edge.from), place(edge.to)) else { continue };
        let is_proved = edge.standing.is_proved();
        scene.edges.push(Edge {
            role: Role::Context,
            basis: if is_proved { Basis::Given } else { Basis::Assumed },
            why: format!("{} implies {}: {}", edge.from, edge.to, edge.standing),
            ..Edge::new(from, to, label(edge.from, edge.to))
        });
    }
    scene
}

/// Returns the lattice of the models of registers.
pub fn register_lattice() -> Lattice {
    let mut lattice = lattice();
    lattice.nodes.retain(|(id, _)| find(id).is_ok());
    let is_there = |id: &str| lattice.nodes.iter().any(|(node, _)| *node == id);
    lattice.edges.retain(|edge| is_there(edge.from) && is_there(edge.to));
    lattice
}

/// Builds the page of the atlas from a survey; the label of an edge is the size of its history.
pub fn survey_case(survey: &Survey) -> Case {
    let lattice = register_lattice();
    let edge = |edge: &Implication| {
        let back = survey.pairs.iter().find(|p| p.from == edge.to && p.to == edge.from);
        let history = match back.map(|pair| &pair.answer) {
            Some(Answer::Smallest(history) | Answer::Known { history, .. }) => Some(&**history),
            _ => None,
        };
        AtlasEdge {
            stronger: edge.from,
            weaker: edge.to,
            standing: edge.standing.to_string(),
            label: history.map_or("?".to_owned(), |history| format!("{} ops", history.len())),
            history,
        }
    };
    let edges: Vec<AtlasEdge<'_>> = lattice.edges.iter().map(edge).collect();
    let mut case = atlas_case(&lattice, &edges);
    case.facts = vec![
        ("histories".to_owned(), survey.histories.to_string()),
        ("reads and writes".to_owned(), format!("up to {}", survey.bounds.plain)),
        (
            "with fences and read-modify-writes".to_owned(),
            format!("up to {} operations", survey.bounds.extended),
        ),
    ];
    case
}

/// Builds the page of the atlas: the lattice as a map, and one row per edge.
pub fn atlas_case(lattice: &Lattice, edges: &[AtlasEdge<'_>]) -> Case {
    let mut case = Case::new("Atlas", ["allows", "forbids", "history", "implication"]);
    let row_of = |stronger: &str, weaker: &str| {
        edges.iter().position(|edge| edge.stronger == stronger && edge.weaker == weaker)
    };
    let mut scene = lattice_scene(lattice, |stronger, weaker| {
        row_of(stronger, weaker).map_or(String::new(), |row| edges[row].label.clone())
    });
    scene.title = "The lattice of models".to_owned();
    scene.caption = "Stronger models above. Choose a line to see the smallest history that the \
                     weaker model allows and the stronger forbids."
        .to_owned();
    if edges.iter().any(|edge| edge.history.is_none()) {
        let note = "?: no history of the atlas separates the two models.";
        scene.notes.push(note.to_owned());
    }
    let rows =
        scene.edges.iter().map(|edge| row_of(&scene.nodes[edge.from].id, &scene.nodes[edge.to].id));
    let links: Vec<Option<usize>> = rows.collect();
    case.map = Some(0);
    case.links = links;
    case.scenes.push(Picture::lattice(scene));
    for edge in edges {
        let AtlasEdge { stronger, weaker, standing, .. } = edge;
        let mut row = ResultRow::new([
            (*weaker).into(),
            (*stronger).into(),
            edge.label.as_str().into(),
            format!("{stronger} ⇒ {weaker}, {standing}").into(),
        ]);
        match edge.history.map(|history| judged(history, weaker, stronger)) {
            Some(Some(report)) => {
                for verdict in report.iter() {
                    row.text += &format!("{}\n", verdict.explain());
                }
                if let Some(verdict) = report.iter().find(|verdict| verdict.is_violation()) {
                    for scene in verdict.scenes() {
                        row.scenes.push(case.scenes.len());
                        case.scenes.push(scene.into());
                    }
                }
            }
            _ => {
                row.text =
                    format!("No history is known that {weaker} allows and {stronger} forbids.")
            }
        }
        case.rows.push(row);
    }
    case
}

/// Judges a history by both models of an edge; `None` if they do not apply.
fn judged<'h>(history: &'h History, weaker: &str, stronger: &str) -> Option<Report<'h>> {
    let court = Court::new().models([weaker, stronger]).ok()?;
    court.jobs(1).judge(history).ok()
}
