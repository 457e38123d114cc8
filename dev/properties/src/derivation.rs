//! Proofs of violations by a careless prover.
//!
//! It saturates like a decider: it derives edges by the rules until one of them closes a cycle. The
//! bytes determine the rules that it uses and the side conditions that it ignores: that two writes
//! have the same key, that an operation does not come before itself, which pairs a store buffer
//! reorders, whose reads an observer may use, which relations a cycle may contain. The checker must
//! detect this.

use std::collections::VecDeque;

use consistory_history::{Action, History, KeyId, OpId};
use consistory_verdict::{Certificate, Edge};

use crate::bytes::Bytes;

/// Assumptions of the cases around a cycle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assumed {
    /// Reads and their sources.
    pub(crate) wr: Vec<(OpId, OpId)>,
    /// Pairs of writes in store order.
    pub(crate) ww: Vec<(OpId, OpId)>,
}

/// Names of the relations with which proofs start: those of most models, and TSO's.
const PROGRAM_ORDERS: [(&str, &str); 4] =
    [("po", "wr"), ("po", "wr"), ("ppo", "wre"), ("poloc", "wre")];
const RULES: [&str; 4] = ["rw", "cf", "hb", "ww"];

/// Largest number of derived edges.
const MOST: usize = 60;

/// Builds a cycle, with derivations, if the bytes lead to one.
pub(crate) fn cycle(
    bytes: &mut Bytes<'_>,
    history: &History,
    assumed: &Assumed,
) -> Option<Certificate> {
    let observer = match bytes.byte() {
        255 => None,
        byte => Some(OpId(u32::from(byte) % history.len().max(1) as u32)),
    };
    let edges = Prover::new(bytes, history, assumed).saturate(bytes)?;
    Some(Certificate::Cycle { edges, observer, check: None })
}

/// Lists the possible sources of a read.
pub(crate) fn candidates(history: &History, read: OpId) -> Vec<OpId> {
    if read.index() >= history.len() {
        return Vec::new();
    }
    let Some(found) = history.reads(read) else { return Vec::new() };
    let initial = history.keys().map(|key| history.initial_write(key));
    let writes = history.ops().chain(initial);
    writes.filter(|&write| write != read && history.writes(write) == Some(found)).collect()
}

struct Prover<'a> {
    history: &'a History,
    /// Reads and their sources.
    sources: Vec<(OpId, OpId)>,
    /// Known edges; derived ones have premises.
    edges: Vec<Edge>,
    /// Number of given edges.
    given: usize,
    rules: Vec<&'static str>,
    forgets_keys: bool,
    forgets_identity: bool,
    /// Whether premises may be derived edges.
    is_nested: bool,
}

impl<'a> Prover<'a> {
    fn new(bytes: &mut Bytes<'_>, history: &'a History, assumed: &Assumed) -> Self {
        let (order, reads) = bytes.pick(&PROGRAM_ORDERS);
        let (rules, careless) = (bytes.byte(), bytes.byte());
        let forgets = |bit: u8| careless & (1 << bit) != 0;
        let size = history.len() + history.key_count();
        let exist = |pair: &&(OpId, OpId)| pair.0.index() < size && pair.1.index() < size;

        let mut sources: Vec<(OpId, OpId)> = assumed.wr.iter().filter(exist).copied().collect();
        sources.retain(|&(read, _)| !history.is_initial(read));
        for read in history.ops().filter(|&op| assumed.wr.iter().all(|&(known, _)| known != op)) {
            let candidates = candidates(history, read);
            match candidates[..] {
                [only] => sources.push((read, only)),
                [_, ..] if forgets(0) => sources.push((read, bytes.pick(&candidates))),
                _ => {}
            }
        }
        let mut edges = program_order(history, order, forgets(1), forgets(2));
        for &(read, write) in &sources {
            let is_internal =
                !history.is_initial(write) && history.session_of(write) == history.session_of(read);
            if reads == "wr" || !is_internal || forgets(3) {
                edges.push(Edge::given(write, read, reads));
            }
        }
        let ordered = assumed.ww.iter().filter(exist);
        edges.extend(ordered.map(|&(from, to)| Edge::given(from, to, "ww")));
        Prover {
            history,
            sources,
            given: edges.len(),
            edges,
            rules: (0..4).filter(|i| rules & (1 << i) != 0).map(|i| RULES[i]).collect(),
            forgets_keys: forgets(4),
            forgets_identity: forgets(5),
            is_nested: forgets(6),
        }
    }

    /// Derives edges, starting at a position given by the bytes, until one closes a cycle; the
    /// bytes determine the number of cycles to skip.
    fn saturate(&mut self, bytes: &mut Bytes<'_>) -> Option<Vec<Edge>> {
        let history = self.history;
        let mut passed = bytes.below(4);
        let start = usize::from(bytes.byte());
        if let Some(cycle) = history.ops().find_map(|op| self.path(op, op, self.given)) {
            return Some(cycle);
        }
        let mut triples = Vec::new();
        for &rule in &self.rules {
            for &(read, write) in &self.sources {
                for other in (0..(history.len() + history.key_count()) as u32).map(OpId) {
                    triples.push((rule, read, write, other));
                }
            }
        }
        let turn = start % triples.len().max(1);
        triples.rotate_left(turn);
        // An edge derived late may be a premise of one tried early.
        for _ in 0..2 {
            for &(rule, read, write, other) in &triples {
                let Some(edge) = self.derive(rule, read, write, other) else { continue };
                if let Some(mut cycle) = self.path(edge.to, edge.from, self.edges.len()) {
                    if passed == 0 {
                        cycle.push(edge);
                        return Some(cycle);
                    }
                    passed -= 1;
                } else if self.edges.len() < self.given + MOST {
                    self.edges.push(edge);
                }
            }
        }
        None
    }

    /// Applies a rule to a read, its source, and another operation.
    fn derive(&self, rule: &'static str, read: OpId, write: OpId, other: OpId) -> Option<Edge> {
        let history = self.history;
        let is_write =
            history.writes(other).is_some() && key(history, other) == key(history, write);
        if !(is_write || self.forgets_keys) || !(other != write || self.forgets_identity) {
            return None;
        }
        let premises = if self.is_nested { self.edges.len() } else { self.given };
        let source = Edge::given(write, read, "wr");
        let (from, to, because) = match rule {
            "rw" if other == read && !self.forgets_identity => return None,
            "rw" => {
                let mut because = vec![source];
                because.extend(self.path(write, other, premises)?);
                (read, other, because)
            }
            "ww" => (write, other, self.path(write, other, premises)?),
            _ => {
                let mut because = self.path(other, read, premises)?;
                because.push(source);
                (other, write, because)
            }
        };
        let is_known =
            |edge: &Edge| (edge.from, edge.to, edge.relation.as_str()) == (from, to, rule);
        let is_new = !self.edges[self.given..].iter().any(is_known);
        is_new.then_some(Edge { from, to, relation: rule.into(), because })
    }

    /// Finds a shortest path among the first edges; from an operation to itself, a shortest cycle.
    fn path(&self, from: OpId, to: OpId, among: usize) -> Option<Vec<Edge>> {
        let size = self.history.len() + self.history.key_count();
        let mut by: Vec<Option<&Edge>> = vec![None; size];
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for edge in self.edges[..among].iter().filter(|edge| edge.from == at) {
                if by[edge.to.index()].is_none() {
                    by[edge.to.index()] = Some(edge);
                    queue.push_back(edge.to);
                }
            }
        }
        let mut path = Vec::new();
        let mut at = to;
        while path.is_empty() || at != from {
            let edge = by[at.index()]?;
            path.push(edge.clone());
            at = edge.from;
        }
        path.reverse();
        Some(path)
    }
}

/// Lists a program order; depending on the arguments, `ppo` includes the pairs that a buffer
/// forwards, or all pairs.
fn program_order(
    history: &History,
    order: &'static str,
    keeps_forwarded: bool,
    keeps_all: bool,
) -> Vec<Edge> {
    let is_kept = |a: OpId, b: OpId| match order {
        "ppo" => {
            let is_delayed = matches!(history.action(a), Action::Write { .. })
                && matches!(history.action(b), Action::Read { .. });
            let is_fenced = (a.0..b.0).any(|op| history.action(OpId(op)) == Action::Fence);
            let is_forwarded = key(history, a) == key(history, b);
            !is_delayed || is_fenced || keeps_all || (is_forwarded && keeps_forwarded)
        }
        "poloc" => key(history, a) == key(history, b) || keeps_all,
        _ => b.0 == a.0 + 1,
    };
    let mut edges = Vec::new();
    for b in history.ops() {
        let before = history.session_ops(history.session_of(b)).take_while(|&a| a < b);
        edges.extend(before.filter(|&a| is_kept(a, b)).map(|a| Edge::given(a, b, order)));
        let initial = history.keys().map(|key| history.initial_write(key));
        let initial = initial.filter(|&a| order != "poloc" || is_kept(a, b));
        edges.extend(initial.map(|a| Edge::given(a, b, order)));
    }
    edges
}

fn key(history: &History, op: OpId) -> Option<KeyId> {
    match history.action(op) {
        Action::Read { key, .. } | Action::Write { key, .. } | Action::Rmw { key, .. } => Some(key),
        Action::Append { .. } | Action::Fence | Action::Call(_) => None,
    }
}
