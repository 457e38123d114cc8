//! The core of a scene: the nodes and edges that its proof mentions.

use std::collections::BTreeMap;

use crate::{Edge, Emphasis, Node, NodeKind, Scene, Step};

/// Builds the scene without the nodes that the proof does not mention.
///
/// Runs of such nodes become one gap each; lanes without a node of the proof are left out and
/// counted in a note. `things` names the items that the gaps count, for example `operations`.
/// Returns `None` if the scene is its own core, or if it has no proof.
pub fn core_of(scene: &Scene, things: &str) -> Option<Scene> {
    let is_kept = |node: &Node| node.kind != NodeKind::Gap && node.emphasis > Emphasis::Plain;
    let has_proof = scene.nodes.iter().any(|node| node.emphasis >= Emphasis::Proof);
    let is_whole = scene.nodes.iter().all(|node| node.kind == NodeKind::Gap || is_kept(node));
    if !has_proof || is_whole {
        return None;
    }
    let lanes = scene.nodes.iter().map(|node| node.lane + 1).max().unwrap_or(0);
    let mut in_lanes: Vec<Vec<usize>> = vec![Vec::new(); lanes.max(scene.lanes.len())];
    for (index, node) in scene.nodes.iter().enumerate() {
        in_lanes[node.lane].push(index);
    }
    let mut core = Scene {
        lanes: Vec::new(),
        nodes: Vec::new(),
        edges: Vec::new(),
        steps: Vec::new(),
        ..scene.clone()
    };
    let mut new_node: BTreeMap<usize, usize> = BTreeMap::new();
    let mut empty_lanes = 0;
    for (lane, mut nodes) in in_lanes.into_iter().enumerate() {
        if !nodes.iter().any(|&node| is_kept(&scene.nodes[node])) {
            empty_lanes += usize::from(!nodes.is_empty());
            continue;
        }
        let place = core.lanes.len();
        core.lanes.push(scene.lanes.get(lane).cloned().unwrap_or_default());
        nodes.sort_by_key(|&node| (scene.nodes[node].row, node));
        // Number of items in the run before the next node, and the run's last row.
        let mut run = (0, 0);
        for index in nodes {
            let node = &scene.nodes[index];
            if !is_kept(node) {
                let count = if node.kind == NodeKind::Gap { node.hidden } else { 1 };
                run = (run.0 + count, node.row);
                continue;
            }
            if run.0 > 0 {
                core.nodes.push(Node::gap(place, run.1, run.0, things));
            }
            run = (0, 0);
            new_node.insert(index, core.nodes.len());
            core.nodes.push(Node { lane: place, ..node.clone() });
        }
        if run.0 > 0 {
            core.nodes.push(Node::gap(place, run.1, run.0, things));
        }
    }
    let mut new_edge: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, edge) in scene.edges.iter().enumerate() {
        let ends = new_node.get(&edge.from).zip(new_node.get(&edge.to));
        if let Some((&from, &to)) = ends {
            new_edge.insert(index, core.edges.len());
            core.edges.push(Edge { from, to, ..edge.clone() });
        }
    }
    let kept = |indices: &[usize], map: &BTreeMap<usize, usize>| -> Vec<usize> {
        indices.iter().filter_map(|index| map.get(index).copied()).collect()
    };
    for edge in &mut core.edges {
        edge.because = kept(&edge.because, &new_edge);
    }
    core.steps = scene
        .steps
        .iter()
        .map(|step| Step {
            edges: kept(&step.edges, &new_edge),
            nodes: kept(&step.nodes, &new_node),
            ..step.clone()
        })
        .collect();
    if empty_lanes > 0 {
        let sessions = if empty_lanes == 1 { "lane" } else { "lanes" };
        core.notes.push(format!("{empty_lanes} further {sessions} without a part in the proof."));
    }
    Some(core)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lane;

    #[test]
    fn runs_become_gaps_and_indices_follow() {
        let mut scene = Scene::new("");
        scene.lanes = vec![Lane::new("t0"), Lane::new("t1"), Lane::new("t2")];
        let proof = |node: Node| Node { emphasis: Emphasis::Proof, ..node };
        scene.nodes = vec![
            Node::new("t0:0", 0, 0, "w(x,1)"),
            Node::gap(0, 1, 1234, "operations"),
            proof(Node::new("t0:9", 0, 2, "w(x,2)")),
            Node::new("t1:0", 1, 0, "w(y,1)"),
            proof(Node::new("t2:0", 2, 3, "r(x,2)")),
            Node::new("t2:1", 2, 4, "r(y,1)"),
        ];
        let because = vec![1];
        scene.edges = vec![
            Edge::new(3, 5, "wr"),
            Edge::new(2, 4, "wr"),
            Edge { because, ..Edge::new(4, 2, "rw") },
        ];
        scene.steps = vec![Step { edges: vec![0, 2], ..Step::new("", vec![4, 5]) }];
        let core = core_of(&scene, "operations").unwrap();
        let labels: Vec<(usize, &str)> =
            core.nodes.iter().map(|node| (node.lane, &*node.lines[0])).collect();
        assert_eq!(
            labels,
            [(0, "… 1,235 operations …"), (0, "w(x,2)"), (1, "r(x,2)"), (1, "… 1 operation …")]
        );
        assert_eq!(core.edges.len(), 2);
        assert_eq!((core.edges[1].from, core.edges[1].to), (2, 1));
        assert_eq!(core.edges[1].because, [0]);
        assert_eq!((&*core.steps[0].edges, &*core.steps[0].nodes), (&[1][..], &[2][..]));
        assert_eq!(core.notes, ["1 further lane without a part in the proof."]);
        assert_eq!(core_of(&core, "operations"), None);
    }
}
