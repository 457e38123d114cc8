//! A history of transactions as a scene: one lane per session, each transaction a box with its
//! operations as lines, the dependencies of a cycle as arrows.

use consistory_history::{History, OpId, Status};
use consistory_scene::{
    Basis, Edge, Emphasis, Lane, Node, NodeKind, Role, Scene, Step, order_view, sheet, svg,
};
use consistory_verdict::{Anomaly, Dependency, Judgement, TransactionCertificate};

use crate::registers_scene::DrawOptions;
use crate::text::{clean, counted};
use crate::transactions::{
    TransactionJudgement, explain_transactions_line, name, ops_of, sentence,
};

/// Number of transactions that are drawn.
const MAX_TRANSACTIONS: usize = 40;
/// Number of operations of a transaction that are drawn.
const MAX_OPS: usize = 8;
/// Number of cases that are drawn.
const MAX_CASES: usize = 8;

/// Builds the scenes of a history and its judgement: one, or one per case.
pub(crate) fn transactions_scenes(
    history: &History,
    judgement: &TransactionJudgement<'_>,
    options: &DrawOptions,
) -> Vec<Scene> {
    let verdict = judgement.verdict();
    let mut title = format!("{}: {}", clean(&options.model, 80), verdict.as_str());
    if let Some(name) = history.name() {
        title = format!("{}, {title}", clean(name, 60));
    }
    let cycles: Vec<&[Dependency]> = match judgement {
        Judgement::Violation { certificate, .. } => certificate.cycles().take(MAX_CASES).collect(),
        _ => Vec::new(),
    };
    if cycles.is_empty() {
        return vec![scene(history, title, judgement, &[])];
    }
    let count = cycles.len();
    let one = |(i, cycle): (usize, &&[Dependency])| {
        let title = match count {
            1 => title.clone(),
            _ => format!("{title}, case {} of {count}", i + 1),
        };
        scene(history, title, judgement, cycle)
    };
    cycles.iter().enumerate().map(one).collect()
}

/// Draws a history of transactions.
pub(crate) fn transactions_svg(
    history: &History,
    judgement: &TransactionJudgement<'_>,
    options: &DrawOptions,
) -> String {
    let scenes = transactions_scenes(history, judgement, options);
    match &scenes[..] {
        [one] => svg(one, &order_view(one)),
        many => {
            let views: Vec<_> = many.iter().map(order_view).collect();
            let panels: Vec<_> = many
                .iter()
                .zip(&views)
                .map(|(scene, view)| (scene.title.as_str(), scene, view))
                .collect();
            let title = format!("{}: {}", clean(&options.model, 80), judgement.verdict());
            sheet(&title, &explain_transactions_line(history, judgement), &panels, &[])
        }
    }
}

fn scene(
    history: &History,
    title: String,
    judgement: &TransactionJudgement<'_>,
    cycle: &[Dependency],
) -> Scene {
    let mut scene = Scene::new(title);
    scene.caption = explain_transactions_line(history, judgement);
    if let Judgement::Violation { certificate, .. } = judgement
        && let Some(anomaly) = Anomaly::of_certificate(certificate)
    {
        scene.notes.push(format!("{}.", anomaly.description()));
    }
    // The transactions of the proof, then others until there are enough.
    let mut shown: Vec<(OpId, Emphasis)> = Vec::new();
    let mut add = |op: OpId, emphasis: Emphasis| {
        if let Some((_, known)) = shown.iter_mut().find(|(other, _)| *other == op) {
            *known = (*known).max(emphasis);
        } else if shown.len() < MAX_TRANSACTIONS {
            shown.push((op, emphasis));
        }
    };
    for edge in cycle {
        add(edge.from, Emphasis::Proof);
    }
    let mut premises: Vec<&Dependency> = cycle.iter().flat_map(|edge| &edge.because).collect();
    while let Some(premise) = premises.pop() {
        add(premise.from, Emphasis::Premise);
        add(premise.to, Emphasis::Premise);
        premises.extend(&premise.because);
    }
    if let Judgement::Violation {
        certificate: TransactionCertificate::BadRead { read, other, .. },
        ..
    } = judgement
    {
        add(ops_of(history, *read)[0], Emphasis::Wrong);
        if let Some(other) = other {
            add(ops_of(history, *other)[0], Emphasis::Proof);
        }
    }
    let mut total = 0;
    for transaction in history.all_transactions() {
        total += 1;
        if cycle.is_empty() {
            add(OpId(transaction.ops.start), Emphasis::Plain);
        }
    }
    shown.sort_unstable_by_key(|&(op, _)| op);
    let mut lanes: Vec<u32> = shown.iter().map(|&(op, _)| history.session_of(op).0).collect();
    lanes.dedup();
    for &lane in &lanes {
        let name = history.session_name(consistory_history::SessionId(lane));
        scene.lanes.push(Lane::new(clean(name, 24)));
    }
    let places: Vec<OpId> = match judgement {
        Judgement::Consistent(TransactionCertificate::Order { order, .. }) => order.clone(),
        _ => Vec::new(),
    };
    let mut rows = vec![0usize; lanes.len()];
    for &(op, emphasis) in &shown {
        let lane = lanes.iter().position(|&lane| lane == history.session_of(op).0).unwrap_or(0);
        let ops = ops_of(history, op);
        let mut lines: Vec<String> =
            ops.iter().take(MAX_OPS).map(|&op| clean(&history.show(op).to_string(), 40)).collect();
        if ops.len() > MAX_OPS {
            lines.push(format!("and {} more", ops.len() - MAX_OPS));
        }
        let kind = match history.status(op) {
            Status::Ok => NodeKind::Transaction,
            Status::Fail => NodeKind::Aborted,
            Status::Unknown => NodeKind::Pending,
        };
        scene.nodes.push(Node {
            lines,
            kind,
            emphasis,
            place: places.iter().position(|&other| other == op).map(|at| at + 1),
            ..Node::new(name(history, op), lane, rows[lane], "")
        });
        rows[lane] += 1;
    }
    let index = |op: OpId| shown.iter().position(|&(other, _)| other == op);
    for edge in cycle {
        let (Some(from), Some(to)) = (index(edge.from), index(edge.to)) else { continue };
        let is_derived = !edge.because.is_empty();
        let why = sentence(history, edge);
        let edges = vec![scene.edges.len()];
        scene.steps.push(Step { edges, ..Step::new(format!("{why}."), vec![from, to]) });
        scene.edges.push(Edge {
            role: Role::Cycle,
            basis: if is_derived { Basis::Derived } else { Basis::Given },
            why,
            ..Edge::new(from, to, edge.relation.name())
        });
    }
    if total > shown.len() {
        let hidden = counted(total - shown.len(), "other transaction");
        scene.notes.push(format!("{hidden} not shown."));
    }
    scene
}
