//! The lattice of models: the implications between them, with the evidence for each.
//!
//! The definitions declare the implications (`@implies`). This module combines them: the transitive
//! closure, the strongest of some models, and the transitive reduction for drawings. A conjecture
//! is shown but never used.

use std::fmt::Write;
use std::sync::LazyLock;

use crate::catalogue::{Model, catalogue};
use crate::levels::{levels, on_single_operations};
use consistory_definition::Standing;

/// The implication from a stronger model to a weaker one: every history that satisfies the first
/// satisfies the second.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Implication {
    /// The id of the stronger model.
    pub from: &'static str,
    /// The id of the weaker model.
    pub to: &'static str,
    /// Standing of the implication: by definition, proved, checked or conjectured.
    pub standing: Standing,
}

/// The lattice, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Lattice {
    /// Ids of the models with their ranks: 0 for a model that implies no other, otherwise one more
    /// than the highest rank of an implied model.
    pub nodes: Vec<(&'static str, usize)>,
    /// Implications that do not follow from others, including conjectures.
    pub edges: Vec<Implication>,
}

static IMPLICATIONS: LazyLock<Vec<Implication>> = LazyLock::new(|| {
    let known = |id: &str| models().find(|model| model.id == id).map(|model| model.id);
    models()
        .flat_map(|model| {
            model.definition.implies().iter().filter_map(move |claim| {
                let to = known(&claim.implied)?;
                Some(Implication { from: model.id, to, standing: claim.standing.clone() })
            })
        })
        .collect()
});

/// Iterates over the models of registers and the isolation levels.
fn models() -> impl Iterator<Item = &'static Model> {
    catalogue().iter().chain(levels())
}

/// Returns the implications in the form in which the definitions state them.
pub fn implications() -> &'static [Implication] {
    &IMPLICATIONS
}

/// Returns the standing of the implication from the first model to the second, if it is proved.
///
/// A model implies itself by definition. An implication by transitivity is proved by its steps.
pub fn implies(from: &str, to: &str) -> Option<Standing> {
    if from == to {
        return models().any(|model| model.id == from).then_some(Standing::Definition);
    }
    let path = path(from, to, &[])?;
    if let [step] = path[..] {
        return Some(step.standing.clone());
    }
    if path.iter().all(|step| step.standing == Standing::Definition) {
        return Some(Standing::Definition);
    }
    let steps: Vec<String> = path.iter().map(|s| format!("{} implies {}", s.from, s.to)).collect();
    Some(Standing::Proved { by: steps.join(", ") })
}

/// Returns the maximal ones of some models: those that no other given model implies.
pub fn strongest<'a>(ids: &[&'a str]) -> Vec<&'a str> {
    ids.iter()
        .enumerate()
        .filter(|&(i, id)| {
            !ids.iter().enumerate().any(|(j, other)| match other == id {
                true => j < i,
                false => implies(other, id).is_some(),
            })
        })
        .map(|(_, &id)| id)
        .collect()
}

/// Returns the lattice without implications that follow from others.
pub fn lattice() -> Lattice {
    let edges: Vec<Implication> = implications()
        .iter()
        .filter(|edge| path(edge.from, edge.to, &[edge]).is_none())
        .cloned()
        .collect();
    let mut nodes: Vec<(&'static str, usize)> = models().map(|model| (model.id, 0)).collect();
    // The number of models is a sufficient number of rounds, since implication is acyclic.
    for _ in 0..nodes.len() {
        for edge in &edges {
            let rank = |id: &str| nodes.iter().find(|node| node.0 == id).map_or(0, |node| node.1);
            let higher = rank(edge.to) + 1;
            if let Some(node) = nodes.iter_mut().find(|node| node.0 == edge.from) {
                node.1 = node.1.max(higher);
            }
        }
    }
    Lattice { nodes, edges }
}

/// Returns the lattice as text, one line per implication, strong models first.
pub fn lattice_text() -> String {
    let Lattice { mut nodes, edges } = lattice();
    nodes.sort_by_key(|&(_, rank)| std::cmp::Reverse(rank));
    let mut text = String::new();
    for (id, _) in nodes {
        for edge in edges.iter().filter(|edge| edge.from == id) {
            let arrow = if edge.standing.is_proved() { "=>" } else { "?>" };
            let _ = writeln!(text, "{:<5} {arrow} {:<5} {}", edge.from, edge.to, edge.standing);
        }
    }
    for same in on_single_operations() {
        let _ = writeln!(
            text,
            "{:<5} =  {:<5} where every transaction is one operation, {}",
            same.level, same.model, same.standing
        );
    }
    text
}

/// Returns the lattice as a Graphviz graph; implications that are not proved are dashed.
pub fn lattice_dot() -> String {
    let Lattice { nodes, edges } = lattice();
    let mut text = String::from("digraph models {\n  rankdir=TB;\n  node [shape=box];\n");
    for (id, _) in nodes {
        let name = models().find(|model| model.id == id).map_or(id, |model| &model.name);
        let _ = writeln!(text, "  {id} [label=\"{name}\"];");
    }
    for edge in edges {
        let style = if edge.standing.is_proved() { "" } else { " [style=dashed]" };
        let _ = writeln!(text, "  {} -> {}{style};", edge.from, edge.to);
    }
    text.push_str("}\n");
    text
}

/// Finds a shortest chain of proved implications that uses none of `without`.
fn path(from: &str, to: &str, without: &[&Implication]) -> Option<Vec<&'static Implication>> {
    let mut paths: Vec<(&str, Vec<&'static Implication>)> = vec![(from, Vec::new())];
    let mut next = 0;
    while next < paths.len() {
        let (at, path) = paths[next].clone();
        next += 1;
        for edge in implications() {
            let is_usable =
                edge.from == at && edge.standing.is_proved() && !without.contains(&edge);
            if is_usable && !paths.iter().any(|(seen, _)| *seen == edge.to) {
                let mut longer = path.clone();
                longer.push(edge);
                if edge.to == to {
                    return Some(longer);
                }
                paths.push((edge.to, longer));
            }
        }
    }
    None
}
