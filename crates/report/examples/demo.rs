//! Writes a report of a small violation to standard output.

use std::io;

use consistory_report::{Case, ReportWriter, ResultRow};
use consistory_scene::{Basis, Edge, Emphasis, Lane, Node, NodeKind, Role, Scene, Step};

fn main() -> io::Result<()> {
    let mut scene = Scene::new("message passing: violation of cc");
    scene.caption = "t1 sees y = 1 but not the x = 1 that was written before it".into();
    scene.lanes = ["init", "t0", "t2", "t1"].map(Lane::new).into();
    let node = |id: &str, lane, row, label: &str| Node {
        emphasis: Emphasis::Proof,
        ..Node::new(id, lane, row, label)
    };
    scene.nodes = vec![
        Node { kind: NodeKind::Initial, ..node("init:x", 0, 0, "x=0") },
        node("t0:0", 1, 0, "w(x,1)"),
        node("t0:1", 1, 1, "w(y,1)"),
        node("t1:0", 3, 2, "r(y,1)"),
        Node { emphasis: Emphasis::Wrong, ..node("t1:1", 3, 3, "r(x,0)") },
        Node::new("t2:0", 2, 1, "w(z,5)"),
        Node::new("t2:1", 2, 2, "r(x,1)"),
    ];
    scene.edges = vec![
        Edge::new(1, 2, "po"),
        Edge::new(2, 3, "wr"),
        Edge::new(3, 4, "po"),
        Edge { basis: Basis::Derived, because: vec![4], ..Edge::new(4, 1, "rw") },
        Edge { role: Role::Premise, ..Edge::new(0, 4, "wr") },
        Edge { role: Role::Context, ..Edge::new(1, 6, "wr") },
    ];
    let step = |sentence: &str, edges: &[usize]| Step {
        sentence: sentence.into(),
        edges: edges.into(),
        nodes: vec![],
        state: vec![],
    };
    scene.steps = vec![
        step("t0 wrote x=1 (t0:0), then wrote y=1 (t0:1).", &[0]),
        step("t1 read y=1 (t1:0), which t0 had written, then read x=0.", &[1, 2]),
        step("t1:1 read x=0, the initial value, so it happened before t0:0 overwrote it.", &[3]),
    ];
    let row = ResultRow {
        scenes: vec![0],
        text: "The history violates cc.".into(),
        ..ResultRow::new(["cc".into(), "violation".into(), 0.08.into()])
    };
    let case = Case {
        rows: vec![row],
        scenes: vec![scene.into()],
        text: "t0: w(x,1) w(y,1)\nt1: r(y,1) r(x,0)\n".into(),
        recheck: "consistory check mp.hist --model cc".into(),
        ..Case::new("mp.hist", ["model", "verdict", "time"])
    };
    let mut report = ReportWriter::new(io::stdout().lock(), "A small violation")?;
    report.add(4, [("cc", "violation")], &case)?;
    let _ = report.finish("made by an example")?;
    Ok(())
}
