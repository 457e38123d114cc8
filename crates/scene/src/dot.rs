//! A scene as a Graphviz graph, for other layouts.

use std::fmt::Write;

use crate::geometry::printable;
use crate::palette::colours;
use crate::{Basis, Role, Scene};

/// Writes a scene in Graphviz's language, with one cluster per lane.
pub fn dot(scene: &Scene) -> String {
    let mut out = String::from("digraph scene {\n  node [shape=box, fontname=\"monospace\"];\n");
    let _ = writeln!(out, "  label={};", quoted(&scene.title));
    for (index, lane) in scene.lanes.iter().enumerate() {
        let _ = writeln!(out, "  subgraph cluster_{index} {{\n    label={};", quoted(&lane.name));
        for (node, shown) in scene.nodes.iter().enumerate().filter(|(_, n)| n.lane == index) {
            let label: Vec<String> = shown.lines.iter().map(|line| escaped(line)).collect();
            let _ = writeln!(out, "    n{node} [label=\"{}\"];", label.join("\\n"));
        }
        out.push_str("  }\n");
    }
    for edge in &scene.edges {
        if edge.from >= scene.nodes.len() || edge.to >= scene.nodes.len() {
            continue;
        }
        let style = match edge.basis {
            Basis::Given => "solid",
            Basis::Derived => "dashed",
            Basis::Assumed => "dotted",
        };
        let width = if edge.role == Role::Cycle { 2 } else { 1 };
        let _ = writeln!(
            out,
            "  n{} -> n{} [label={}, color=\"{}\", style={style}, penwidth={width}];",
            edge.from,
            edge.to,
            quoted(&edge.relation),
            colours(&edge.relation).light
        );
    }
    out.push_str("}\n");
    out
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

fn escaped(text: &str) -> String {
    printable(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edge, Lane, Node};

    #[test]
    fn names_cannot_leave_their_quotes() {
        let mut scene = Scene::new("a\"; evil");
        scene.lanes = vec![Lane::new("t0")];
        scene.nodes = vec![Node::new("a", 0, 0, "w(x,\"1\\\")")];
        scene.edges = vec![Edge::new(0, 0, "wr")];
        let dot = dot(&scene);
        assert!(dot.contains(r#"label="a\"; evil";"#), "{dot}");
        assert!(dot.contains(r#"n0 [label="w(x,\"1\\\")"];"#), "{dot}");
        assert!(dot.contains("n0 -> n0"));
    }
}
