//! A run of a protocol as a scene: swimlanes with one row per step, and the state changes of each
//! participant.

use consistory_protocol::{Entry, Run, RunStep, System};
use consistory_scene::{Edge, Emphasis, Lane, Node, NodeKind, Role, Scene, Step};

/// Largest number of lines of changes in one box; further changes are counted.
const MAX_LINES: usize = 9;
/// Largest length of a line, in columns; the rest continues on the next line.
const LINE_COLUMNS: usize = 40;

/// Builds the scene of a run.
///
/// Each step is a box in the lane of the acting participant, with its loads and stores and its
/// changes there. Changes of other participants are boxes in their lanes, with edges leading to
/// them. The last step of a failing run is the failure.
pub fn run_scene(title: impl Into<String>, caption: &str, system: &System, run: &Run) -> Scene {
    let mut scene = Scene::new(title);
    scene.caption = caption.to_owned();
    let mut names = system.lane_names();
    let lanes = system.entry_lanes();
    let shared = names.len() - 1;
    let is_shared_used = names.len() == 1
        || run
            .steps
            .iter()
            .any(|step| step.actor.is_none() || step.touched.contains(&(shared as u32)));
    if !is_shared_used {
        names.pop();
    }
    scene.lanes = names.iter().map(Lane::new).collect();
    let mut before: Option<&RunStep> = None;
    for (number, step) in run.steps.iter().enumerate() {
        let actor = step.actor.map_or(names.len() - 1, |lane| lane as usize).min(names.len() - 1);
        let is_last = number + 1 == run.steps.len() && number > 0;
        let mut touched: Vec<usize> = step.touched.iter().map(|&lane| lane as usize).collect();
        touched.retain(|&lane| lane < names.len() && lane != actor);
        let in_lane = |lane: usize| match before {
            Some(before) => changes_in(before, step, |entry| lanes.get(entry) == Some(&lane)),
            None => Vec::new(),
        };
        let rule = without_participant(&step.rule, &names[actor]);
        let mut lines = wrapped(&format!("{}. {rule}", number + 1), LINE_COLUMNS);
        let in_lane = |lane: usize| -> Vec<String> {
            let changes = in_lane(lane).into_iter();
            changes.map(|change| without_lane(&change, &names[lane])).collect()
        };
        lines.extend(step.operations.iter().flat_map(|op| wrapped(op, LINE_COLUMNS)));
        lines.extend(shown(&in_lane(actor)));
        let id = format!("step {}", number + 1);
        let head = scene.nodes.len();
        scene.nodes.push(Node {
            lines,
            kind: if number == 0 { NodeKind::Initial } else { NodeKind::Operation },
            emphasis: if is_last { Emphasis::Wrong } else { Emphasis::Proof },
            detail: step.position.as_ref().map(ToString::to_string).unwrap_or_default(),
            ..Node::new(id, actor, number, "")
        });
        let mut about = vec![head];
        let mut edges = Vec::new();
        for lane in touched {
            let lines = shown(&in_lane(lane));
            if lines.is_empty() {
                continue;
            }
            edges.push(scene.edges.len());
            about.push(scene.nodes.len());
            let why = format!("\"{}\" changes the state of {}.", step.rule, names[lane]);
            let edge = Edge::new(head, scene.nodes.len(), "");
            scene.edges.push(Edge { why, role: Role::Cycle, ..edge });
            let id = format!("step {} at {}", number + 1, names[lane]);
            let node = Node::new(id, lane, number, "");
            scene.nodes.push(Node { lines, emphasis: Emphasis::Premise, ..node });
        }
        let mut sentence = step.rule.clone();
        if !step.operations.is_empty() {
            sentence += &format!(": {}", step.operations.join(" "));
        }
        let state = step.state.iter().map(|entry| (entry.name.clone(), value(entry).to_owned()));
        scene.steps.push(Step { edges, state: state.collect(), ..Step::new(sentence, about) });
        before = Some(step);
    }
    scene
        .notes
        .push("Each row is a step; a line leads to what the step changes elsewhere.".to_owned());
    scene
}

/// Lists the changes of a step; empty for a start state.
///
/// The elements of a multiset have no positions: the changes are the added and removed elements.
/// Fields of a record that all become defined, or undefined, are one change.
pub fn changes(before: Option<&RunStep>, step: &RunStep) -> Vec<String> {
    before.map_or_else(Vec::new, |before| changes_in(before, step, |_| true))
}

/// Lists the changes of a step in some entries of the state.
fn changes_in(before: &RunStep, step: &RunStep, is_in: impl Fn(usize) -> bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut fields: Vec<(&Entry, &Entry)> = Vec::new();
    let entries = before.state.iter().zip(&step.state).enumerate();
    let changed = entries.filter(|(index, (old, new))| is_in(*index) && old != new);
    for (_, (old, new)) in changed.filter(|(_, (_, new))| !new.name.contains('{')) {
        if fields.first().is_some_and(|(_, first)| record(first) != record(new)) {
            flush(&mut fields, &mut lines);
        }
        fields.push((old, new));
    }
    flush(&mut fields, &mut lines);
    let (taken, added) = (elements(before, &is_in), elements(step, &is_in));
    let without = |all: &[(String, String)], others: &[(String, String)]| {
        let mut left = all.to_vec();
        for other in others {
            if let Some(at) = left.iter().position(|element| element == other) {
                left.remove(at);
            }
        }
        left
    };
    let line = |sign: &str, (bag, element): (String, String)| format!("{bag} {sign} {element}");
    lines.extend(without(&taken, &added).into_iter().map(|element| line("−", element)));
    lines.extend(without(&added, &taken).into_iter().map(|element| line("+", element)));
    lines
}

fn value(entry: &Entry) -> &str {
    entry.value.as_deref().unwrap_or("undefined")
}

/// Returns the record that an entry is a field of.
fn record(entry: &Entry) -> Option<&str> {
    entry.name.rsplit_once('.').map(|(record, _)| record)
}

fn field(entry: &Entry) -> &str {
    entry.name.rsplit_once('.').map_or(&*entry.name, |(_, field)| field)
}

/// Writes the changes of a record's fields, as one change where possible.
fn flush(fields: &mut Vec<(&Entry, &Entry)>, lines: &mut Vec<String>) {
    let fields = std::mem::take(fields);
    if let [(_, first), _, ..] = fields[..]
        && let Some(name) = record(first)
    {
        if fields.iter().all(|(_, new)| new.value.is_none()) {
            return lines.push(format!("{name}: cleared"));
        }
        if fields.iter().all(|(old, _)| old.value.is_none()) {
            let new = fields.iter().map(|(_, new)| format!("{} {}", field(new), value(new)));
            let new = new.collect::<Vec<_>>().join(", ");
            return lines.push(format!("{name}: ({new})"));
        }
    }
    let change =
        |&(old, new): &(&Entry, &Entry)| format!("{}: {} → {}", new.name, value(old), value(new));
    lines.extend(fields.iter().map(change));
}

/// Lists the elements of the multisets of a state, with the names of the multisets.
fn elements(step: &RunStep, is_in: &impl Fn(usize) -> bool) -> Vec<(String, String)> {
    let mut elements: Vec<(String, String, String)> = Vec::new();
    for (index, entry) in step.state.iter().enumerate() {
        let Some((bag, rest)) = entry.name.split_once('{') else { continue };
        let Some((number, part)) = rest.split_once('}') else { continue };
        let Some(value) = entry.value.as_ref().filter(|_| is_in(index)) else { continue };
        if part.is_empty() && value == "present" {
            elements.push((bag.to_owned(), number.to_owned(), String::new()));
        } else if let Some((_, _, shown)) = elements.last_mut().filter(|e| e.1 == number) {
            let separator = if shown.is_empty() { "" } else { ", " };
            let part = part.trim_start_matches('.');
            *shown +=
                &format!("{separator}{part}{}{value}", if part.is_empty() { "" } else { " " });
        }
    }
    elements.into_iter().map(|(bag, _, shown)| (bag, format!("({shown})"))).collect()
}

/// Removes from a rule the parameter that is its lane's name, which the head of the lane shows.
fn without_participant(rule: &str, lane: &str) -> String {
    let Some((name, parameters)) = rule.split_once(" (") else { return rule.to_owned() };
    let Some(parameters) = parameters.strip_suffix(')') else { return rule.to_owned() };
    let is_other = |part: &&str| part.split_once('=').is_none_or(|(_, value)| value != lane);
    let others: Vec<&str> = parameters.split(", ").filter(is_other).collect();
    match others[..] {
        [] => name.to_owned(),
        _ => format!("{name} ({})", others.join(", ")),
    }
}

/// Removes from a change the index that is its lane's name, which the head of the lane shows.
fn without_lane(change: &str, lane: &str) -> String {
    let index = format!("[{lane}]");
    match change.split_once(": ") {
        Some((entry, rest)) if entry.contains(&index) => {
            format!("{}: {rest}", entry.replacen(&index, "", 1))
        }
        _ => change.to_owned(),
    }
}

/// Breaks changes into lines and counts those that do not fit.
fn shown(changes: &[String]) -> Vec<String> {
    let mut lines: Vec<String> =
        changes.iter().flat_map(|change| wrapped(change, LINE_COLUMNS)).collect();
    if lines.len() > MAX_LINES {
        let more = lines.len() - (MAX_LINES - 1);
        lines.truncate(MAX_LINES - 1);
        lines.push(format!("… {more} more lines"));
    }
    lines
}

/// Breaks a text at spaces; later lines are indented.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_does_not_repeat_its_lane() {
        assert_eq!(without_participant("fill (p=P_1, a=B_1)", "P_1"), "fill (a=B_1)");
        assert_eq!(without_participant("fill (p=P_1)", "P_1"), "fill");
        assert_eq!(without_participant("fill (p=P_12, a=B_1)", "P_1"), "fill (p=P_12, a=B_1)");
        assert_eq!(without_participant("start", "P_1"), "start");
        assert_eq!(without_lane("cache[P_1][B_1].state: I → S", "P_1"), "cache[B_1].state: I → S");
        assert_eq!(without_lane("owner: [P_1] → none", "P_1"), "owner: [P_1] → none");
    }
}
