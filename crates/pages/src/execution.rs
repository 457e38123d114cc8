//! An execution of a litmus test as a scene: one lane per thread.

use consistory_litmus::{Execution, Program};
use consistory_scene::{Edge, Emphasis, Lane, Node, Role, Scene, Step};

use crate::cycle::mark_cycle;

/// Builds the scene of an execution.
///
/// Program order runs down each lane; `rf`, `co` and `fr` are edges. If the model orders all
/// events, the numbers of the nodes and the steps show that order. A cycle that sequential
/// consistency forbids is highlighted.
pub fn execution_scene(
    program: &Program,
    title: impl Into<String>,
    execution: &Execution,
) -> Scene {
    let mut scene = Scene::new(title);
    let threads = program.threads.len();
    scene.lanes = (0..threads).map(|thread| Lane::new(format!("P{thread}"))).collect();
    let place = |event: usize| {
        let thread = execution.events[event].thread;
        let order = execution.orders.get(thread).or(execution.orders.first())?;
        order.iter().position(|&other| other == event).map(|place| place + 1)
    };
    let mut next_row = vec![0; threads];
    let mut last_of: Vec<Option<usize>> = vec![None; threads];
    for (index, event) in execution.events.iter().enumerate() {
        let row = next_row[event.thread];
        next_row[event.thread] += 1;
        let id = format!("P{}:{row}", event.thread);
        scene.nodes.push(Node {
            emphasis: Emphasis::Proof,
            place: place(index),
            ..Node::new(id, event.thread, row, execution.show(program, index))
        });
        if let Some(before) = last_of[event.thread].replace(index) {
            scene.edges.push(Edge { role: Role::Context, ..Edge::new(before, index, "po") });
        }
    }
    for (from, to, relation) in execution.relations() {
        let name = |event: usize| &scene.nodes[event].lines[0];
        let why = match relation {
            "rf" => format!("{} reads what {} wrote.", name(to), name(from)),
            "co" => format!("{} takes effect after {}.", name(to), name(from)),
            _ => format!("{} reads a value that {} overwrites.", name(from), name(to)),
        };
        scene.edges.push(Edge { why, ..Edge::new(from, to, relation) });
    }
    match &execution.orders[..] {
        [] => {}
        [order] => {
            scene.notes.push("Numbers: the memory order.".to_owned());
            scene.steps = steps(&scene, order);
        }
        _ => scene.notes.push("Numbers: the view of the event's own thread.".to_owned()),
    }
    mark_cycle(&mut scene);
    scene
}

/// Returns the steps through the events in memory order; a step highlights the edges that end at
/// its event.
fn steps(scene: &Scene, order: &[usize]) -> Vec<Step> {
    let step = |&event: &usize| {
        let node = &scene.nodes[event];
        let relevant = |edge: &&(usize, &Edge)| edge.1.role != Role::Context;
        let touching = scene.edges.iter().enumerate();
        let touching: Vec<(usize, &Edge)> =
            touching.filter(|(_, edge)| edge.to == event || edge.from == event).collect();
        let edges = touching.iter().filter(relevant).map(|(index, _)| *index).collect();
        let sentence = format!("P{}: {}", node.lane, node.lines[0]);
        Step { edges, ..Step::new(sentence, vec![event]) }
    };
    order.iter().map(step).collect()
}
