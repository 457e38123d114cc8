//! Chooses the drawn part of a history: the operations, their rows, and the arrows between them.
//!
//! Rows represent time. An operation is placed below the previous one of its session and below the
//! write from which it reads, so arrows of `po` and `wr` lead downwards, and contradicting arrows
//! lead upwards. If `po` and `wr` themselves form a cycle, one of them must lead upwards. An
//! operation without arrows is placed directly above the next operation.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use consistory_history::{History, KeyId, OpId, SessionId, ValueId};
use consistory_verdict::{Certificate, Edge};

use crate::proof::{Derivations, Kind, fact, kind, turned};

/// Number of edges above which only the first and the last edges of a cycle are drawn.
const MAX_CYCLE_EDGES: usize = 24;
const FIRST_EDGES: usize = 10;
const LAST_EDGES: usize = 6;
/// Largest number of premises that are drawn.
const MAX_PREMISES: usize = 24;
/// Number of lanes of a history without arrows.
const MAX_LANES: usize = 12;

/// Role of an arrow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// An edge of the cycle.
    Cycle,
    /// A premise of a derived edge.
    Premise,
    /// The source of a read, for context.
    Context,
    /// A placeholder for this number of edges of the cycle.
    Skipped(usize),
}

/// Origin of an arrow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Basis {
    /// The history contains the edge.
    Given,
    /// A rule derives the edge.
    Derived,
    /// A case assumes the edge.
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

/// The arrows of a certificate, the most important first.
#[derive(Default)]
pub(crate) struct Arrows<'a> {
    pub(crate) arrows: Vec<Arrow<'a>>,
    /// Number of omitted premises.
    pub(crate) left_out: usize,
}

/// Emphasis of an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Emphasis {
    /// The operation occurs in a premise.
    Support,
    /// The operation occurs in the cycle.
    Cycle,
}

/// An item in a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    /// An operation.
    Op(OpId),
    /// A number of hidden operations.
    Gap(usize),
}

/// The column of a session: its items, and the row of each.
pub(crate) struct Lane {
    pub(crate) session: SessionId,
    pub(crate) items: Vec<(Item, usize)>,
}

/// The sessions and operations that are drawn.
pub(crate) struct Lanes {
    pub(crate) lanes: Vec<Lane>,
    /// Number of sessions without a lane.
    pub(crate) further_sessions: usize,
}

/// Limits of the drawn part of a history.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    /// Number of operations up to which all are drawn.
    pub(crate) full_up_to: usize,
    /// Number of neighbours that are drawn on either side of an operation of the cycle.
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
            // An edge from an initial write needs no arrow.
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

/// Returns the arrows from each shown write to its shown readers.
///
/// `chosen` contains the sources of ambiguous reads, as pairs of read and write; an ambiguous read
/// without a source has no arrow.
pub(crate) fn reads_from(
    history: &History,
    lanes: &Lanes,
    chosen: &[(OpId, OpId)],
) -> Vec<Arrow<'static>> {
    let shown: BTreeSet<OpId> = lanes.shown().collect();
    // The only write of each value that is read, or `None` if there are several.
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

/// Returns the emphasis of each operation.
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

/// Chooses the drawn part of a history.
///
/// A small history is drawn completely; of a large one the emphasised operations, with their
/// neighbours, or, if there are none, the first operations of every session.
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

/// Lists the items of a lane; a gap of one operation would save no room.
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
    /// Iterates over the shown operations.
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
            // If no item moved, the reads wait for each other, and one must go first.
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
