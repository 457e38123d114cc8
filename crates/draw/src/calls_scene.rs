//! A history of an object's calls as a scene: one lane per session, each call a bar in time.

use consistory_history::{History, Interval, OpId};
use consistory_scene::{Emphasis, Lane, Node, NodeKind, Scene, Step, order_view, svg, time_view};
use consistory_verdict::{ObjectCertificate, Verdict};

use crate::calls::{CallProof, explain_calls_line, label, tell_visibility};
use crate::intervals::{Bar, Look, diagram};
use crate::registers_scene::DrawOptions;
use crate::text::{clean, counted, described, quoted, reference};

/// Largest number of calls that are drawn.
const MAX_CALLS: usize = 60;

/// Builds the scene of a history of calls and its judgement.
///
/// A call that has not returned, or whose return is ignored, has no end. Positions and steps are
/// those of the linearization: the whole one if the history is consistent, the longest attempt if
/// it is not. The call that cannot be explained is highlighted.
pub(crate) fn calls_scene(history: &History, options: &DrawOptions, proof: CallProof<'_>) -> Scene {
    let diagram = diagram(history, proof, MAX_CALLS);
    let verdict = proof.map_or(Verdict::Undecided, ObjectCertificate::verdict);
    let mut title = format!("{}: {}", clean(&options.model, 80), verdict.as_str());
    if let Some(name) = history.name() {
        title = format!("{}, {title}", clean(name, 60));
    }
    let mut scene = Scene::new(title);
    scene.caption = explain_calls_line(history, proof);
    scene.is_without_clock = diagram.bars.iter().any(|bar| history.time(bar.op).is_none());
    // Additional lanes of a session are not needed: the time view stacks bars itself.
    let mut lane_of = Vec::with_capacity(diagram.lanes.len());
    for name in &diagram.lanes {
        if !name.is_empty() || scene.lanes.is_empty() {
            scene.lanes.push(Lane::new(clean(name, 24)));
        }
        lane_of.push(scene.lanes.len() - 1);
    }
    for bar in &diagram.bars {
        let (start, end) = span(history, bar);
        let kind = if bar.look == Look::Open { NodeKind::Pending } else { NodeKind::Operation };
        let emphasis = match bar.look {
            Look::Failing => Emphasis::Wrong,
            Look::Returned => Emphasis::Premise,
            Look::Open => Emphasis::Plain,
        };
        let label = label(history, &Bar { number: None, ..bar.clone() });
        scene.nodes.push(Node {
            kind,
            emphasis,
            detail: described(history, bar.op),
            start: Some(start),
            end,
            place: bar.number,
            ..Node::new(reference(history, bar.op), lane_of[bar.lane], bar.from, label)
        });
    }
    let mut placed: Vec<usize> =
        (0..scene.nodes.len()).filter(|&node| scene.nodes[node].place.is_some()).collect();
    placed.sort_by_key(|&node| scene.nodes[node].place);
    scene.steps = placed
        .iter()
        .map(|&node| {
            let op = diagram.bars[node].op;
            let sentence = format!("{} takes effect.", quoted(history, op));
            let state = options.states.get(&op);
            let state = state.map(|state| ("state".to_owned(), clean(state, 400)));
            Step { state: state.into_iter().collect(), ..Step::new(sentence, vec![node]) }
        })
        .collect();
    if let Some(wrong) = scene.nodes.iter().position(|node| node.emphasis == Emphasis::Wrong) {
        let call = quoted(history, diagram.bars[wrong].op);
        // State that does not explain the call.
        let state = scene.steps.last().map_or_else(Vec::new, |step| step.state.clone());
        let sentence = format!("Nothing explains {call} now.");
        scene.steps.push(Step { state, ..Step::new(sentence, vec![wrong]) });
    }
    if !placed.is_empty() {
        scene.notes.push(match proof {
            Ok(ObjectCertificate::Linearization(_)) => "Numbers: the linearization.".to_owned(),
            _ => "Numbers: the longest linearization that could be built.".to_owned(),
        });
    }
    scene.notes.extend(tell_visibility(history, proof));
    if diagram.hidden > 0 {
        scene.notes.push(format!("{} before these not shown.", counted(diagram.hidden, "call")));
    }
    scene
}

/// Lists the calls that are drawn.
pub(crate) fn drawn(history: &History, proof: CallProof<'_>) -> Vec<OpId> {
    diagram(history, proof, MAX_CALLS).bars.iter().map(|bar| bar.op).collect()
}

/// Draws a history of calls as bars over time.
pub(crate) fn calls_svg(history: &History, options: &DrawOptions, proof: CallProof<'_>) -> String {
    let scene = calls_scene(history, options, proof);
    let view = time_view(&scene).unwrap_or_else(|| order_view(&scene));
    svg(&scene, &view)
}

/// Returns the start and end of a call; without times, the calls of a session follow one another.
fn span(history: &History, bar: &Bar) -> (i64, Option<i64>) {
    match history.time(bar.op) {
        Some(Interval { start, end }) => {
            (start, end.filter(|_| bar.look != Look::Open).map(|end| end.max(start)))
        }
        None => {
            let index = i64::from(history.index_in_session(bar.op));
            (2 * index, Some(2 * index + 1))
        }
    }
}
