//! What of a history is drawn: which operations, in which rows, and which arrows between them.
//!
//! A row is a moment. An operation stands below the one before it in its session and below the
//! write that it reads from, so arrows of `po` and `wr` lead downwards and what contradicts them
//! leads up. Where `po` and `wr` themselves run in a circle one of them has to lead up. What has no
//! arrow stands close above what follows it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use consistory_history::{History, KeyId, OpId, SessionId, ValueId};
use consistory_verdict::{Certificate, Edge};

use crate::proof::{Derivations, Kind, fact, kind, turned};

/// Of a longer cycle only the first and the last edges are drawn.
const MAX_CYCLE_EDGES: usize = 24;
const FIRST_EDGES: usize = 10;
const LAST_EDGES: usize = 6;
/// How many premises are drawn.
const MAX_PREMISES: usize = 24;
/// How many lanes a history without arrows gets.
const MAX_LANES: usize = 12;

/// Why an arrow is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// It is an edge of the cycle.
    Cycle,
    /// It supports a derived edge.
    Premise,
    /// It shows where a read has its value from.
    Context,
    /// It stands for this many edges of the cycle.
    Skipped(usize),
}

/// Where an arrow comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Basis {
    /// The history has it.
    Given,
    /// A rule derives it.
    Derived,
    /// A case assumes it.
    Assumed,
}

/// An arrow between two operations.
#[derive(Clone, Debug)]
pub(crate) struct Arrow<'a> {
    pub(crate) from: OpId,
    pub(crate) to: OpId,
    pub(crate) relation: &'a str,
    pub(crate) role: Role,
    pub(crate) basis: Basis,
}

/// The arrows of a certificate, in the order of their importance.
#[derive(Default)]
pub(crate) struct Arrows<'a> {
    pub(crate) arrows: Vec<Arrow<'a>>,
    /// How many premises are not among them.
    pub(crate) left_out: usize,
}

/// How an operation stands out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Emphasis {
    /// It takes part in a premise.
    Support,
    /// It takes part in the cycle.
    Cycle,
}

/// What stands in a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    /// An operation.
    Op(OpId),
    /// A number of operations that are not shown.
    Gap(usize),
}

/// A session's column: what stands in it, and in which row.
pub(crate) struct Lane {
    pub(crate) session: SessionId,
    pub(crate) items: Vec<(Item, usize)>,
}

/// Which sessions and operations are drawn.
pub(crate) struct Lanes {
    pub(crate) lanes: Vec<Lane>,
    /// How many sessions have no lane.
    pub(crate) further_sessions: usize,
}

/// How much of a history is drawn.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    /// Up to how many operations all are drawn.
    pub(crate) full_up_to: usize,
    /// How many neighbours of an operation of the cycle are drawn on either side.
    pub(crate) context: usize,
}

/// Returns the arrows of a cycle and of its premises.
pub(crate) fn arrows_of<'a>(history: &History, certificate: &'a Certificate) -> Arrows<'a> {
    let Certificate::Cycle { edges, .. } = certificate else { return Arrows::default() };
    let derivations = Derivations::of(edges);
    let mut expanded = HashSet::new();
    let cycle = turned(derivations.flatten(edges.iter(), &mut expanded));
    let arrow = |edge: &'a Edge, role: Role| {
        let basis = match kind(&edge.relation) {
            Kind::Program | Kind::ReadsFrom => Basis::Given,
            Kind::Store if derivations.premises(edge).is_empty() => Basis::Assumed,
            _ => Basis::Derived,
        };
        Arrow { from: edge.from, to: edge.to, relation: edge.relation.as_str(), role, basis }
    };
    let mut seen = HashSet::new();
    let mut arrows = Vec::new();
    let mut waiting: Vec<&Edge> = Vec::new();
    let skipped =
        if cycle.len() > MAX_CYCLE_EDGES { FIRST_EDGES..cycle.len() - LAST_EDGES } else { 0..0 };
    for (i, &edge) in cycle.iter().enumerate() {
        if skipped.contains(&i) {
            if i == skipped.start {
                let (to, role) = (cycle[skipped.end].from, Role::Skipped(skipped.len()));
                let (from, basis) = (edge.from, Basis::Given);
                arrows.push(Arrow { from, to, relation: "", role, basis });
            }
            continue;
        }
        if seen.insert(fact(edge)) {
            arrows.push(arrow(edge, Role::Cycle));
        }
        waiting.push(edge);
    }
    let (mut drawn, mut left_out, mut next) = (0, 0, 0);
    while next < waiting.len() {
        let premises = derivations.premises(waiting[next]);
        next += 1;
        for edge in derivations.flatten(premises.iter(), &mut expanded) {
            // That an initial write comes first goes without saying.
            let is_trivial = history.is_initial(edge.from)
                && matches!(kind(&edge.relation), Kind::Program | Kind::Store);
            if is_trivial || !seen.insert(fact(edge)) {
                continue;
            }
            waiting.push(edge);
            if drawn == MAX_PREMISES {
                left_out += 1;
                continue;
            }
            drawn += 1;
            arrows.push(arrow(edge, Role::Premise));
        }
    }
    Arrows { arrows, left_out }
}

/// Returns the arrows from each write that is shown to the reads of it that are shown.
///
/// `chosen` settles ambiguous reads, read before write; one that is not settled has no arrow.
pub(crate) fn reads_from(
    history: &History,
    lanes: &Lanes,
    chosen: &[(OpId, OpId)],
) -> Vec<Arrow<'static>> {
    let shown: BTreeSet<OpId> = lanes.shown().collect();
    // The one write of each value that is read, `None` once there are two.
    let mut writes: HashMap<(KeyId, ValueId), Option<OpId>> = HashMap::new();
    for (key, value) in shown.iter().filter_map(|&op| history.reads(op)) {
        let initial = history.initial_write(key);
        let is_initial = history.initial_value(key) == value;
        writes.insert((key, value), is_initial.then_some(initial));
    }
    let mut found = HashSet::new();
    for op in history.ops() {
        let Some(written) = history.writes(op) else { continue };
        if let Some(write) = writes.get_mut(&written) {
            let is_first = write.is_none() && found.insert(written);
            *write = is_first.then_some(op);
        }
    }
    let mut sources: BTreeMap<OpId, OpId> = shown
        .iter()
        .filter_map(|&read| Some((read, (*writes.get(&history.reads(read)?)?)?)))
        .collect();
    sources.extend(chosen.iter().copied());
    sources
        .into_iter()
        .filter(|(read, write)| read != write && shown.contains(read) && shown.contains(write))
        .map(|(to, from)| {
            let (role, basis) = (Role::Context, Basis::Given);
            Arrow { from, to, relation: "wr", role, basis }
        })
        .collect()
}

/// Says how each operation stands out.
pub(crate) fn emphasis(arrows: &[Arrow], extra: Option<OpId>) -> BTreeMap<OpId, Emphasis> {
    let mut found: BTreeMap<OpId, Emphasis> = BTreeMap::new();
    for arrow in arrows {
        let emphasis = match arrow.role {
            Role::Premise => Emphasis::Support,
            Role::Context => continue,
            _ => Emphasis::Cycle,
        };
        for op in [arrow.from, arrow.to] {
            let entry = found.entry(op).or_insert(emphasis);
            *entry = (*entry).max(emphasis);
        }
    }
    found.extend(extra.map(|op| (op, Emphasis::Cycle)));
    found
}

/// Chooses what is drawn of a history.
///
/// A small one is drawn whole; of a large one the operations that stand out, with their
/// neighbours, or, if none does, the first of every session.
pub(crate) fn lanes(
    history: &History,
    emphasis: &BTreeMap<OpId, Emphasis>,
    arrows: &[Arrow],
    extent: Extent,
) -> Lanes {
    let is_small =
        history.len() <= extent.full_up_to && history.session_count() <= extent.full_up_to;
    let mut kept: BTreeMap<SessionId, BTreeSet<OpId>> = BTreeMap::new();
    if is_small {
        for session in history.sessions() {
            kept.insert(session, history.session_ops(session).collect());
        }
    } else if emphasis.keys().any(|&op| !history.is_initial(op)) {
        for (&op, &emphasis) in emphasis {
            if history.is_initial(op) {
                continue;
            }
            let session = history.session_of(op);
            let reach = if emphasis == Emphasis::Cycle { extent.context as u32 } else { 0 };
            let place = history.index_in_session(op);
            let end = history.session_ops(session).len() as u32;
            let near = place.saturating_sub(reach)..place.saturating_add(reach + 1).min(end);
            let near = near.map(|index| history.op_at(session, index));
            kept.entry(session).or_default().extend(near);
        }
    } else {
        let lanes = history.session_count().min(MAX_LANES);
        let each = (extent.full_up_to / lanes.max(1)).max(2);
        for session in history.sessions().take(lanes) {
            kept.insert(session, history.session_ops(session).take(each).collect());
        }
    }
    let further_sessions = history.session_count() - kept.len();
    let lanes = kept
        .into_iter()
        .map(|(session, ops)| Lane { session, items: items(history, session, &ops) })
        .collect();
    let mut lanes = Lanes { lanes, further_sessions };
    lanes.assign_rows(arrows);
    lanes
}

/// Lists what stands in a lane; a gap of one operation would save nothing.
fn items(history: &History, session: SessionId, ops: &BTreeSet<OpId>) -> Vec<(Item, usize)> {
    let mut found = Vec::new();
    let mut next = history.op_at(session, 0).0;
    let end = next + history.session_ops(session).len() as u32;
    for stop in ops.iter().map(|op| op.0).chain([end]) {
        match stop - next {
            0 => {}
            1 => found.push((Item::Op(OpId(next)), 0)),
            n => found.push((Item::Gap(n as usize), 0)),
        }
        if stop < end {
            found.push((Item::Op(OpId(stop)), 0));
        }
        next = stop + 1;
    }
    found
}

impl Lanes {
    /// Iterates over the operations that are shown.
    pub(crate) fn shown(&self) -> impl Iterator<Item = OpId> {
        self.lanes.iter().flat_map(|lane| &lane.items).filter_map(|&(item, _)| match item {
            Item::Op(op) => Some(op),
            Item::Gap(_) => None,
        })
    }

    /// Assigns a row to each item.
    pub(crate) fn assign_rows(&mut self, arrows: &[Arrow]) {
        let mut above: HashMap<OpId, Vec<OpId>> = HashMap::new();
        let shown: HashSet<OpId> = self.shown().collect();
        for arrow in arrows {
            let leads_down = kind(&arrow.relation.into()) == Kind::ReadsFrom
                || matches!(arrow.role, Role::Skipped(_));
            if leads_down && shown.contains(&arrow.from) {
                above.entry(arrow.to).or_default().push(arrow.from);
            }
        }
        let mut rows: HashMap<OpId, usize> = HashMap::new();
        let mut next = vec![0; self.lanes.len()];
        let mut is_forced = false;
        let is_done = |lanes: &[Lane], next: &[usize]| {
            lanes.iter().zip(next).all(|(lane, &n)| n == lane.items.len())
        };
        while !is_done(&self.lanes, &next) {
            let mut has_moved = false;
            for (lane, next) in self.lanes.iter_mut().zip(&mut next) {
                while *next < lane.items.len() {
                    let mut row = if *next == 0 { 0 } else { lane.items[*next - 1].1 + 1 };
                    if let Item::Op(op) = lane.items[*next].0 {
                        for write in above.get(&op).into_iter().flatten() {
                            match rows.get(write) {
                                Some(&above) => row = row.max(above + 1),
                                None if is_forced => {}
                                None => row = usize::MAX,
                            }
                        }
                        if row == usize::MAX {
                            break;
                        }
                        rows.insert(op, row);
                    }
                    lane.items[*next].1 = row;
                    *next += 1;
                    has_moved = true;
                    is_forced = false;
                }
            }
            // If nothing moved the reads wait for each other, and one must go first.
            is_forced = !has_moved;
        }
        let fixed: HashSet<OpId> = arrows.iter().flat_map(|a| [a.from, a.to]).collect();
        for lane in &mut self.lanes {
            for i in (1..lane.items.len()).rev() {
                let below = lane.items[i].1;
                let (item, row) = &mut lane.items[i - 1];
                if !matches!(item, Item::Op(op) if fixed.contains(op)) {
                    *row = below - 1;
                }
            }
        }
    }
}
