//! The cycle by which an execution violates sequential consistency.

use std::collections::VecDeque;

use consistory_scene::{Emphasis, Role, Scene, Step};

/// Relations whose union is acyclic in a sequentially consistent execution.
const COMMUNICATION: [&str; 4] = ["po", "rf", "co", "fr"];

/// Highlights a shortest cycle of `po`, `rf`, `co` and `fr` in the scene of an execution.
///
/// The other edges become context. The caption explains the cycle; if the scene has no steps, they
/// follow the cycle. In an execution without such a cycle, nothing is highlighted.
pub(crate) fn mark_cycle(scene: &mut Scene) {
    let cycle = shortest_cycle(scene);
    for (index, edge) in scene.edges.iter_mut().enumerate() {
        edge.role = match (cycle.contains(&index), &*edge.relation) {
            (true, _) => Role::Cycle,
            (false, "po") => Role::Context,
            (false, _) => Role::Premise,
        };
    }
    if scene.edges.is_empty() {
        return;
    }
    for node in &mut scene.nodes {
        node.emphasis = node.emphasis.min(Emphasis::Premise);
    }
    let Some(&first) = cycle.first() else {
        scene.caption = "po, rf, co and fr form no cycle.".to_owned();
        return;
    };
    let name = |node: usize| scene.nodes[node].lines[0].as_str();
    let mut walk = name(scene.edges[first].from).to_owned();
    for &index in &cycle {
        let edge = &scene.edges[index];
        walk += &format!(" -{}-> {}", edge.relation, name(edge.to));
    }
    scene.caption = format!("Sequential consistency forbids the cycle {walk}.");
    if scene.steps.is_empty() {
        let step = |&index: &usize| {
            let edge = &scene.edges[index];
            let why = match &*edge.why {
                "" => format!("{} is before {} in the program.", name(edge.from), name(edge.to)),
                why => why.to_owned(),
            };
            Step { edges: vec![index], ..Step::new(why, vec![edge.from, edge.to]) }
        };
        let mut steps: Vec<Step> = cycle.iter().map(step).collect();
        let nodes = cycle.iter().map(|&index| scene.edges[index].from).collect();
        let together = format!("Together: {walk}, a cycle.");
        steps.push(Step { edges: cycle.clone(), ..Step::new(together, nodes) });
        scene.steps = steps;
    }
    for index in cycle {
        let from = scene.edges[index].from;
        scene.nodes[from].emphasis = Emphasis::Proof;
    }
}

/// Returns the edges of a shortest cycle, in order, or an empty list if there is no cycle.
fn shortest_cycle(scene: &Scene) -> Vec<usize> {
    let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); scene.nodes.len()];
    for (index, edge) in scene.edges.iter().enumerate() {
        if COMMUNICATION.contains(&&*edge.relation) {
            leaving[edge.from].push(index);
        }
    }
    let mut best: Vec<usize> = Vec::new();
    for start in 0..scene.nodes.len() {
        // Edge by which each node was first reached.
        let mut reached: Vec<Option<usize>> = vec![None; scene.nodes.len()];
        let mut waiting = VecDeque::from([start]);
        'search: while let Some(node) = waiting.pop_front() {
            for &index in &leaving[node] {
                let to = scene.edges[index].to;
                if reached[to].is_some() {
                    continue;
                }
                reached[to] = Some(index);
                if to == start {
                    break 'search;
                }
                waiting.push_back(to);
            }
        }
        let mut cycle = Vec::new();
        let mut at = start;
        while let Some(index) = reached[at] {
            cycle.push(index);
            at = scene.edges[index].from;
            if at == start {
                break;
            }
        }
        if !cycle.is_empty() && (best.is_empty() || cycle.len() < best.len()) {
            cycle.reverse();
            best = cycle;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use consistory_scene::{Edge, Node};

    use super::*;

    fn scene(edges: &[(usize, usize, &str)]) -> Scene {
        let mut scene = Scene::new("");
        scene.nodes = (0..4).map(|i| Node::new(format!("P{i}"), i, 0, format!("e{i}"))).collect();
        scene.edges = edges.iter().map(|&(from, to, name)| Edge::new(from, to, name)).collect();
        scene
    }

    #[test]
    fn a_shortest_cycle_stands_out() {
        let long = [(0, 1, "po"), (1, 2, "rf"), (2, 3, "po"), (3, 0, "fr")];
        let mut scene = scene(&[&long[..], &[(2, 1, "co"), (1, 0, "addr")]].concat());
        mark_cycle(&mut scene);
        assert_eq!(scene.caption, "Sequential consistency forbids the cycle e1 -rf-> e2 -co-> e1.");
        let bold = scene.edges.iter().enumerate().filter(|(_, edge)| edge.role == Role::Cycle);
        assert_eq!(bold.map(|(index, _)| index).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(scene.steps.len(), 3);
        assert_eq!(scene.nodes[0].emphasis, Emphasis::Plain);
        assert_eq!(scene.nodes[1].emphasis, Emphasis::Proof);
    }

    #[test]
    fn dependencies_and_orders_without_a_cycle_do_not_stand_out() {
        let mut scene = scene(&[(0, 1, "po"), (1, 0, "data"), (1, 2, "rf")]);
        mark_cycle(&mut scene);
        assert_eq!(scene.caption, "po, rf, co and fr form no cycle.");
        assert!(scene.steps.is_empty());
    }
}
