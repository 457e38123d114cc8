//! A history of transactions as a scene: one lane per session, each transaction a box with one line
//! per operation, and the dependencies of a cycle as arrows.

use std::collections::{BTreeMap, HashMap};

use consistory_history::{History, OpId, SessionId, Status};
use consistory_scene::{
    Basis, Edge, Emphasis, Lane, Node, NodeKind, Role, Scene, Step, order_view, sheet, svg,
};
use consistory_verdict::{Dependency, Judgement, TransactionCertificate};

use crate::registers_scene::DrawOptions;
use crate::text::{clean, counted, quoted, session_name};
use crate::transactions::{
    TransactionJudgement, bad_read, explain_transactions_line, name, ops_of, round, sentence,
};

/// Largest number of transactions that are drawn.
const MAX_TRANSACTIONS: usize = 40;
/// Number of transactions up to which a history is drawn completely; of a larger one only the
/// transactions of the proof are drawn.
const SMALL_HISTORY_TRANSACTIONS: usize = 16;
/// Largest number of operations of a transaction that are drawn.
const MAX_OPS: usize = 8;
/// Largest number of operations of a transaction that its detail lists.
const MAX_DETAILED_OPS: usize = 30;
/// Largest number of premises that are drawn.
const MAX_PREMISES: usize = 24;
/// Largest number of cases that are drawn.
const MAX_CASES: usize = 8;

/// A cycle, with the assumptions of its case.
struct CaseCycle<'a> {
    assumptions: Vec<String>,
    edges: &'a [Dependency],
}

/// Builds the scenes of a history and its judgement: one, or one per case.
pub(crate) fn transactions_scenes(
    history: &History,
    judgement: &TransactionJudgement<'_>,
    options: &DrawOptions,
) -> Vec<Scene> {
    let verdict = judgement.verdict();
    let mut title = format!("{}: {}", clean(&options.model, 80), verdict.as_str());
    if let Judgement::Violation { pattern, .. } = judgement {
        title = format!("{title}, {}", clean(&pattern.to_string(), 60));
    }
    if let Some(name) = history.name() {
        title = format!("{}, {title}", clean(name, 60));
    }
    let mut cycles = Vec::new();
    if let Judgement::Violation { certificate, .. } = judgement {
        collect_cycles(history, certificate, &mut Vec::new(), &mut cycles);
    }
    if cycles.is_empty() {
        return vec![scene(history, title, judgement, &[])];
    }
    let count = cycles.len();
    let mut scenes: Vec<Scene> = Vec::new();
    for (i, cycle) in cycles.iter().take(MAX_CASES).enumerate() {
        let mut shown = scene(history, title.clone(), judgement, cycle.edges);
        if count > 1 {
            shown.title = match &cycle.assumptions[..] {
                [] => format!("{title}, case {} of {count}", i + 1),
                assumptions => format!("If {}", assumptions.join(", and ")),
            };
        }
        scenes.push(shown);
    }
    if let (Some(last), true) = (scenes.last_mut(), count > MAX_CASES) {
        last.notes.push(format!("{} not drawn", counted(count - MAX_CASES, "further case")));
    }
    scenes
}

/// Collects the cycles of all cases with the assumptions of each case.
fn collect_cycles<'a>(
    history: &History,
    certificate: &'a TransactionCertificate,
    assumptions: &mut Vec<String>,
    found: &mut Vec<CaseCycle<'a>>,
) {
    match certificate {
        TransactionCertificate::Order { .. } | TransactionCertificate::BadRead { .. } => {}
        TransactionCertificate::Cycle { edges } => {
            found.push(CaseCycle { assumptions: assumptions.clone(), edges });
        }
        TransactionCertificate::SplitOrder { key, writers: [a, b], branches } => {
            let key = clean(history.key_name(*key), 40);
            for ((first, second), branch) in [(a, b), (b, a)].into_iter().zip(&**branches) {
                let (first, second) = (name(history, *first), name(history, *second));
                assumptions.push(format!("{first} wrote {key} before {second}"));
                collect_cycles(history, branch, assumptions, found);
                assumptions.pop();
            }
        }
        TransactionCertificate::SplitRead { read, branches } => {
            for (source, branch) in branches {
                let (read, source) = (quoted(history, *read), quoted(history, *source));
                assumptions.push(format!("{read} reads from {source}"));
                collect_cycles(history, branch, assumptions, found);
                assumptions.pop();
            }
        }
    }
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
    let line = explain_transactions_line(history, judgement);
    // The title already contains the verdict.
    let said = format!("{}: ", judgement.verdict().as_str());
    scene.caption = line.strip_prefix(&said).unwrap_or(&line).to_owned();
    let shown = shown_transactions(history, judgement, cycle);
    let nodes = add_lanes(history, judgement, &shown, &mut scene);
    add_cycle(history, cycle, &nodes, &mut scene);
    if let Judgement::Violation {
        certificate: TransactionCertificate::BadRead { kind, read, other },
        ..
    } = judgement
    {
        let firsts = [Some(*read), *other].into_iter().flatten();
        let about = firsts.filter_map(|op| nodes.get(&ops_of(history, op)[0]).copied()).collect();
        scene.steps.push(Step::new(bad_read(history, *kind, *read, *other), about));
    }
    assign_rows(&mut scene);
    scene
}

/// Chooses the transactions to draw: those of the proof, and all of a small history.
fn shown_transactions(
    history: &History,
    judgement: &TransactionJudgement<'_>,
    cycle: &[Dependency],
) -> BTreeMap<OpId, Emphasis> {
    let mut shown: BTreeMap<OpId, Emphasis> = BTreeMap::new();
    let mut add = |op: OpId, emphasis: Emphasis| {
        if shown.contains_key(&op) || shown.len() < MAX_TRANSACTIONS {
            let known = shown.entry(op).or_insert(emphasis);
            *known = (*known).max(emphasis);
        }
    };
    for edge in cycle {
        add(edge.from, Emphasis::Proof);
    }
    for premise in premises(cycle) {
        add(premise.from, Emphasis::Premise);
        add(premise.to, Emphasis::Premise);
    }
    let mut has_proof = !cycle.is_empty();
    if let Judgement::Violation {
        certificate: TransactionCertificate::BadRead { read, other, .. },
        ..
    } = judgement
    {
        has_proof = true;
        if let Some(other) = other {
            add(ops_of(history, *other)[0], Emphasis::Proof);
        }
        add(ops_of(history, *read)[0], Emphasis::Wrong);
    }
    let is_small = history.all_transactions().take(SMALL_HISTORY_TRANSACTIONS + 1).count()
        <= SMALL_HISTORY_TRANSACTIONS;
    if is_small || !has_proof {
        // Without a proof no transaction is highlighted.
        let usual = if has_proof { Emphasis::Plain } else { Emphasis::Premise };
        for transaction in history.all_transactions().take(MAX_TRANSACTIONS) {
            add(OpId(transaction.ops.start), usual);
        }
    }
    shown
}

/// Lists the premises of a cycle's edges, nearest first.
fn premises(cycle: &[Dependency]) -> Vec<&Dependency> {
    let mut found: Vec<&Dependency> = cycle.iter().flat_map(|edge| &edge.because).collect();
    let mut next = 0;
    while next < found.len() && found.len() < 4 * MAX_PREMISES {
        let premise = found[next];
        next += 1;
        found.extend(&premise.because);
    }
    found
}

/// Adds a lane per session with its transactions and gaps; returns the node of each transaction.
fn add_lanes(
    history: &History,
    judgement: &TransactionJudgement<'_>,
    shown: &BTreeMap<OpId, Emphasis>,
    scene: &mut Scene,
) -> HashMap<OpId, usize> {
    let places: HashMap<OpId, usize> = match judgement {
        Judgement::Consistent(TransactionCertificate::Order { order, .. }) => {
            order.iter().enumerate().map(|(place, &op)| (op, place + 1)).collect()
        }
        _ => HashMap::new(),
    };
    let mut nodes = HashMap::new();
    let mut further_sessions = 0;
    for session in history.sessions() {
        let mut ops = history.session_ops(session);
        let Some(first) = ops.next() else { continue };
        let end = OpId(first.0 + ops.len() as u32 + 1);
        if shown.range(first..end).next().is_none() {
            further_sessions += 1;
            continue;
        }
        let lane = scene.lanes.len();
        scene.lanes.push(Lane::new(session_name(history, session)));
        add_lane(history, session, lane, shown, &places, scene, &mut nodes);
    }
    if further_sessions > 0 {
        scene.notes.push(format!("{} not drawn.", counted(further_sessions, "further session")));
    }
    nodes
}

fn add_lane(
    history: &History,
    session: SessionId,
    lane: usize,
    shown: &BTreeMap<OpId, Emphasis>,
    places: &HashMap<OpId, usize>,
    scene: &mut Scene,
    nodes: &mut HashMap<OpId, usize>,
) {
    let mut row = 0;
    let mut hidden = 0;
    let mut before = None;
    for op in history.session_ops(session) {
        let transaction = history.transaction_of(op);
        let is_continued = transaction.is_some() && transaction == before;
        before = transaction;
        if is_continued {
            continue;
        }
        let Some(&emphasis) = shown.get(&op) else {
            hidden += 1;
            continue;
        };
        if hidden > 0 {
            scene.nodes.push(Node::gap(lane, row, hidden, "transactions"));
            (hidden, row) = (0, row + 1);
        }
        nodes.insert(op, scene.nodes.len());
        scene.nodes.push(node(history, op, lane, row, emphasis, places.get(&op).copied()));
        row += 1;
    }
    if hidden > 0 {
        scene.nodes.push(Node::gap(lane, row, hidden, "transactions"));
    }
}

fn node(
    history: &History,
    op: OpId,
    lane: usize,
    row: usize,
    emphasis: Emphasis,
    place: Option<usize>,
) -> Node {
    let ops = ops_of(history, op);
    let mut lines: Vec<String> =
        ops.iter().take(MAX_OPS).map(|&op| clean(&history.show(op).to_string(), 40)).collect();
    if ops.len() > MAX_OPS {
        lines.push(format!("and {} more", ops.len() - MAX_OPS));
    }
    let (kind, outcome) = match history.status(op) {
        Status::Ok => (NodeKind::Transaction, "transaction"),
        Status::Fail => (NodeKind::Aborted, "aborted transaction"),
        Status::Unknown => (NodeKind::Pending, "transaction of unknown outcome"),
    };
    let mut detail = vec![outcome.to_owned()];
    for &op in ops.iter().take(MAX_DETAILED_OPS) {
        let time = history.time(op).map_or(String::new(), |time| match time.end {
            Some(end) => format!("  from {} to {end}", time.start),
            None => format!("  from {} on", time.start),
        });
        detail.push(format!("{}{time}", clean(&history.show(op).to_string(), 200)));
    }
    if ops.len() > MAX_DETAILED_OPS {
        detail.push(format!("and {} more", ops.len() - MAX_DETAILED_OPS));
    }
    let times: Option<Vec<_>> = ops.iter().map(|&op| history.time(op)).collect();
    let start = times.as_ref().and_then(|times| times.iter().map(|time| time.start).min());
    let ends: Option<Vec<i64>> =
        times.as_ref().and_then(|times| times.iter().map(|time| time.end).collect());
    Node {
        lines,
        detail: detail.join("\n"),
        kind,
        emphasis,
        place,
        start,
        end: ends.and_then(|ends| ends.into_iter().max()),
        ..Node::new(name(history, op), lane, row, "")
    }
}

/// Adds the edges of a cycle, their premises, and a step for each edge and for the whole.
fn add_cycle(
    history: &History,
    cycle: &[Dependency],
    nodes: &HashMap<OpId, usize>,
    scene: &mut Scene,
) {
    let mut known: HashMap<(OpId, OpId, &str), usize> = HashMap::new();
    let mut add = |scene: &mut Scene, edge: &Dependency, role: Role| -> Option<usize> {
        let (&from, &to) = (nodes.get(&edge.from)?, nodes.get(&edge.to)?);
        let index = known.entry((edge.from, edge.to, edge.relation.name())).or_insert_with(|| {
            let basis = if edge.because.is_empty() { Basis::Given } else { Basis::Derived };
            let why = format!("{}.", sentence(history, edge));
            scene.edges.push(Edge {
                role,
                basis,
                why,
                ..Edge::new(from, to, edge.relation.name())
            });
            scene.edges.len() - 1
        });
        Some(*index)
    };
    let mut all_nodes = Vec::new();
    let mut all_edges = Vec::new();
    for edge in cycle {
        let Some(index) = add(scene, edge, Role::Cycle) else { continue };
        let about = vec![scene.edges[index].from, scene.edges[index].to];
        all_nodes.push(about[0]);
        all_edges.push(index);
        let why = scene.edges[index].why.clone();
        scene.steps.push(Step { edges: vec![index], ..Step::new(why, about) });
    }
    let mut drawn = 0;
    let mut waiting: Vec<&Dependency> = cycle.iter().collect();
    while let Some(edge) = waiting.pop() {
        let Some(own) = add(scene, edge, Role::Premise) else { continue };
        for premise in &edge.because {
            if drawn == MAX_PREMISES {
                break;
            }
            drawn += 1;
            if let Some(index) = add(scene, premise, Role::Premise)
                && index != own
                && !scene.edges[own].because.contains(&index)
            {
                scene.edges[own].because.push(index);
            }
            waiting.push(premise);
        }
    }
    if all_edges.len() > 1 {
        let together = format!("Together that is a cycle: {}.", round(history, cycle));
        scene.steps.push(Step { edges: all_edges, ..Step::new(together, all_nodes) });
    }
}

/// Moves transactions below those from which they read, unless reads-from is cyclic.
fn assign_rows(scene: &mut Scene) {
    let reads: Vec<(usize, usize)> = scene
        .edges
        .iter()
        .filter(|edge| matches!(&*edge.relation, "wr" | "rt"))
        .map(|edge| (edge.from, edge.to))
        .collect();
    let mut rows: Vec<usize> = scene.nodes.iter().map(|node| node.row).collect();
    let limit = scene.nodes.len();
    loop {
        let mut has_changed = false;
        // The nodes of a lane are listed from top to bottom.
        for index in 1..scene.nodes.len() {
            if scene.nodes[index].lane == scene.nodes[index - 1].lane
                && rows[index] <= rows[index - 1]
            {
                rows[index] = rows[index - 1] + 1;
                has_changed = true;
            }
        }
        for &(from, to) in &reads {
            if rows[to] <= rows[from] {
                rows[to] = rows[from] + 1;
                has_changed = true;
            }
        }
        if !has_changed {
            break;
        }
        if rows.iter().any(|&row| row > 2 * limit) {
            return;
        }
    }
    for (node, row) in scene.nodes.iter_mut().zip(rows) {
        node.row = row;
    }
}
