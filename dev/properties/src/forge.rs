//! Certificates of all kinds, most of them false.
//!
//! A text that cannot be a proof is rejected at once, which tests little. So most of the
//! certificates have the right form: an order that extends `po`, a closed cycle, an edge with
//! premises of the kind that its rule requires. The bytes determine whether it is true. [`alter`]
//! makes a true certificate false, or leaves it true.

use consistory_history::{History, KeyId, OpId, SessionId};
use consistory_verdict::{Certificate, Edge};

use crate::bytes::Bytes;
use crate::derivation::{Assumed, candidates, cycle};

/// Largest nesting depth of cases and premises.
const DEPTH: usize = 3;

/// Relations of the history, and derived relations.
const GIVEN: [&str; 7] = ["po", "wr", "po", "ppo", "poloc", "wre", "final"];
const DERIVED: [&str; 8] = ["rw", "cf", "hb", "ww", "co", "rw", "hb-ppo", "hb-poloc"];

/// Builds a certificate.
pub fn certificate(bytes: &mut Bytes<'_>, history: &History) -> Certificate {
    Forge { bytes, history, assumed: Assumed::default() }.certificate(0)
}

/// Changes a part of a certificate, or nothing.
pub fn alter(certificate: &mut Certificate, bytes: &mut Bytes<'_>, history: &History) {
    let mut forge = Forge { bytes, history, assumed: Assumed::default() };
    match certificate {
        Certificate::Order { order, wr } => match forge.bytes.below(4) {
            0 => forge.alter_choices(wr),
            _ => forge.alter_list(order),
        },
        Certificate::SessionOrders { orders, wr } => match (forge.bytes.below(4), orders.len()) {
            (0, _) | (_, 0) => forge.alter_choices(wr),
            (1, length) => drop(orders.remove(forge.bytes.below(length))),
            (_, length) => {
                let at = forge.bytes.below(length);
                forge.alter_list(&mut orders[at].1);
            }
        },
        Certificate::Witness { ww, wr } => match (forge.bytes.below(4), ww.len()) {
            (0, _) | (_, 0) => forge.alter_choices(wr),
            (_, length) => {
                let at = forge.bytes.below(length);
                forge.alter_list(&mut ww[at].1);
            }
        },
        Certificate::Closure { pairs, wr } => match (forge.bytes.below(4), pairs.len()) {
            (0, _) => forge.alter_choices(wr),
            (_, 0) => pairs.push((forge.op(), forge.op())),
            (1, length) => drop(pairs.remove(forge.bytes.below(length))),
            (_, length) => pairs[forge.bytes.below(length)].1 = forge.op(),
        },
        Certificate::Views { views, wr } => match (forge.bytes.below(4), views.len()) {
            (0, _) | (_, 0) => forge.alter_choices(wr),
            (1, length) => drop(views.remove(forge.bytes.below(length))),
            (_, length) => {
                let at = forge.bytes.below(length);
                let pairs = &mut views[at].pairs;
                match (forge.bytes.below(3), pairs.len()) {
                    (_, 0) => pairs.push((forge.op(), forge.op())),
                    (1, length) => drop(pairs.remove(forge.bytes.below(length))),
                    (_, length) => pairs[forge.bytes.below(length)].1 = forge.op(),
                }
            }
        },
        Certificate::ThinAirRead { read } => *read = forge.op(),
        Certificate::Cycle { edges, observer, .. } => match forge.bytes.below(4) {
            0 => *observer = Some(forge.op()),
            _ => forge.alter_edges(edges),
        },
        Certificate::SplitOrder { writes, branches } => match forge.bytes.below(4) {
            0 => writes.swap(0, 1),
            1 => writes[0] = forge.op(),
            i => alter(&mut branches[i - 2], bytes, history),
        },
        Certificate::SplitRead { read, branches } => match (forge.bytes.below(4), branches.len()) {
            (0, _) | (_, 0) => *read = forge.op(),
            (1, length) => drop(branches.remove(forge.bytes.below(length))),
            (_, length) => alter(&mut branches[forge.bytes.below(length)].1, bytes, history),
        },
        Certificate::SplitLast { key, branches } => match (forge.bytes.below(4), branches.len()) {
            (0, _) | (_, 0) => *key = KeyId(forge.bytes.byte().into()),
            (1, length) => drop(branches.remove(forge.bytes.below(length))),
            (2, length) => branches[forge.bytes.below(length)].0 = forge.op(),
            (_, length) => alter(&mut branches[forge.bytes.below(length)].1, bytes, history),
        },
    }
}

struct Forge<'a, 'b> {
    bytes: &'a mut Bytes<'b>,
    history: &'a History,
    /// Assumptions of the enclosing cases.
    assumed: Assumed,
}

impl Forge<'_, '_> {
    fn certificate(&mut self, depth: usize) -> Certificate {
        let kinds = if depth < DEPTH { 9 } else { 6 };
        match self.bytes.below(kinds) {
            0 => Certificate::Order { order: self.order(), wr: self.choices() },
            1 => {
                let mut orders = Vec::new();
                for session in self.history.sessions() {
                    if self.bytes.below(8) != 7 {
                        orders.push((session, self.order()));
                    }
                }
                if self.bytes.below(8) == 7 {
                    let session = SessionId(self.bytes.byte().into());
                    orders.push((session, self.order()));
                }
                Certificate::SessionOrders { orders, wr: self.choices() }
            }
            2 => {
                let mut ww = Vec::new();
                for key in self.history.keys() {
                    ww.push((key, self.store_order(key)));
                }
                if self.bytes.below(8) == 7 {
                    let key = KeyId(self.bytes.byte().into());
                    ww.push((key, self.list()));
                }
                Certificate::Witness { ww, wr: self.choices() }
            }
            3 => Certificate::ThinAirRead { read: self.op() },
            4 => self.cycle(),
            5 => match cycle(self.bytes, self.history, &self.assumed) {
                Some(cycle) => cycle,
                None => self.cycle(),
            },
            6 => {
                let writes = [self.op(), self.op()];
                let branches = [(writes[0], writes[1]), (writes[1], writes[0])].map(|pair| {
                    self.assumed.ww.push(pair);
                    let branch = self.certificate(depth + 1);
                    self.assumed.ww.pop();
                    branch
                });
                Certificate::SplitOrder { writes, branches: Box::new(branches) }
            }
            7 => {
                let key = KeyId(self.bytes.byte().into());
                let history = self.history;
                let is_final = |&op: &OpId| {
                    let written = history.writes(op).filter(|&(of, _)| of == key);
                    written.is_some_and(|written| history.finals().contains(&written))
                };
                let mut last: Vec<OpId> = history.ops().filter(is_final).collect();
                if self.bytes.below(8) == 7 {
                    last = self.list();
                }
                let mut branches = Vec::new();
                for write in last {
                    branches.push((write, self.certificate(depth + 1)));
                }
                Certificate::SplitLast { key, branches }
            }
            _ => {
                let read = self.op();
                let mut sources = candidates(self.history, read);
                if self.bytes.below(8) == 7 {
                    sources = self.list();
                }
                let mut branches = Vec::new();
                for source in sources {
                    self.assumed.wr.push((read, source));
                    branches.push((source, self.certificate(depth + 1)));
                    self.assumed.wr.pop();
                }
                Certificate::SplitRead { read, branches }
            }
        }
    }

    /// Builds a cycle of arbitrary edges.
    fn cycle(&mut self) -> Certificate {
        let length = 1 + self.bytes.below(5);
        let ops: Vec<OpId> = (0..length).map(|_| self.op()).collect();
        let edges = (0..length).map(|i| self.edge(ops[i], ops[(i + 1) % length], 0)).collect();
        let observer = (self.bytes.below(2) == 1).then(|| self.op());
        let check = (self.bytes.below(16) == 15).then(|| self.bytes.byte().into());
        Certificate::Cycle { edges, observer, check }
    }

    /// Builds an edge, mostly with the premises of its rule.
    fn edge(&mut self, from: OpId, to: OpId, depth: usize) -> Edge {
        let made =
            |relation: &'static str, because| Edge { from, to, relation: relation.into(), because };
        if depth == DEPTH || self.bytes.below(2) == 0 {
            return made(self.bytes.pick(&GIVEN), Vec::new());
        }
        let relation = self.bytes.pick(&DERIVED);
        let because = match (self.bytes.below(8), relation) {
            (0, _) => Vec::new(),
            (1, _) => {
                let (a, b) = (self.op(), self.op());
                vec![self.edge(a, b, depth + 1)]
            }
            (_, "rw") => {
                let source = self.op();
                let mut because = vec![Edge::given(source, from, "wr")];
                because.extend(self.path(source, to, depth));
                because
            }
            (_, "cf" | "hb" | "hb-ppo" | "hb-poloc") => {
                let read = self.op();
                let mut because = self.path(from, read, depth);
                because.push(Edge::given(to, read, "wr"));
                because
            }
            _ => self.path(from, to, depth),
        };
        made(relation, because)
    }

    fn path(&mut self, from: OpId, to: OpId, depth: usize) -> Vec<Edge> {
        let mut path = Vec::new();
        let mut at = from;
        for _ in 0..self.bytes.below(3) {
            let next = self.op();
            path.push(self.edge(at, next, depth + 1));
            at = next;
        }
        path.push(self.edge(at, to, depth + 1));
        path
    }

    /// Builds an order, mostly one that extends `po` and contains the operations that may count.
    fn order(&mut self) -> Vec<OpId> {
        let history = self.history;
        let mut next: Vec<_> = history
            .sessions()
            .map(|session| history.session_ops(session).filter(|&op| self.is_listed(op)).collect())
            .map(|ops: Vec<OpId>| ops.into_iter())
            .collect();
        let mut order = Vec::new();
        while !self.bytes.is_empty() {
            match self.bytes.byte() {
                255 => break,
                254 => order.push(self.op()),
                byte => {
                    let waiting: Vec<usize> =
                        (0..next.len()).filter(|&s| next[s].len() > 0).collect();
                    if waiting.is_empty() {
                        break;
                    }
                    order.extend(next[waiting[usize::from(byte) % waiting.len()]].next());
                }
            }
        }
        order
    }

    /// Returns whether an operation belongs to an order; for an indeterminate one the bytes decide.
    fn is_listed(&mut self, op: OpId) -> bool {
        self.history.is_certain(op)
            || (self.history.writes(op).is_some() && self.bytes.below(2) == 1)
    }

    /// Builds an order of the writes of a key, initial write first.
    fn store_order(&mut self, key: KeyId) -> Vec<OpId> {
        let history = self.history;
        let mut left: Vec<OpId> =
            history.ops().filter(|&op| history.writes(op).is_some_and(|(k, _)| k == key)).collect();
        let mut order = vec![history.initial_write(key)];
        while !left.is_empty() {
            match self.bytes.byte() {
                255 => drop(left.pop()),
                byte => order.push(left.remove(usize::from(byte) % left.len())),
            }
        }
        order
    }

    /// Chooses among the candidates of each read that has several.
    fn choices(&mut self) -> Vec<(OpId, OpId)> {
        let mut wr = Vec::new();
        for read in self.history.ops() {
            let candidates = candidates(self.history, read);
            if candidates.len() > 1 {
                match self.bytes.byte() {
                    255 => {}
                    254 => wr.push((read, self.op())),
                    byte => wr.push((read, candidates[usize::from(byte) % candidates.len()])),
                }
            }
        }
        wr
    }

    fn alter_choices(&mut self, wr: &mut Vec<(OpId, OpId)>) {
        match (self.bytes.below(4), wr.len()) {
            (0, _) => *wr = self.choices(),
            (1, _) | (_, 0) => wr.push((self.op(), self.op())),
            (2, length) => drop(wr.remove(self.bytes.below(length))),
            (_, length) => wr[self.bytes.below(length)].1 = self.op(),
        }
    }

    fn alter_list(&mut self, list: &mut Vec<OpId>) {
        let length = list.len();
        match self.bytes.below(4) {
            _ if length == 0 => list.push(self.op()),
            0 => list.swap(self.bytes.below(length), self.bytes.below(length)),
            1 => drop(list.remove(self.bytes.below(length))),
            2 => list.insert(self.bytes.below(length), self.op()),
            _ => list[self.bytes.below(length)] = self.op(),
        }
    }

    fn alter_edges(&mut self, edges: &mut Vec<Edge>) {
        let length = edges.len();
        if length == 0 {
            let (from, to) = (self.op(), self.op());
            return edges.push(self.edge(from, to, 0));
        }
        let at = self.bytes.below(length);
        match self.bytes.below(8) {
            0 => drop(edges.remove(at)),
            1 => {
                // A detour: the cycle stays closed.
                let (from, by, to) = (edges[at].from, self.op(), edges[at].to);
                edges[at] = self.edge(from, by, 0);
                edges.insert(at + 1, self.edge(by, to, 0));
            }
            2 => edges[at] = self.edge(edges[at].from, edges[at].to, 0),
            3 => edges[at].because.clear(),
            4 => {
                let to = self.op();
                edges[at].to = to;
                edges[(at + 1) % length].from = to;
            }
            5 => {
                let all = [&GIVEN[..], &DERIVED[..]].concat();
                edges[at].relation = self.bytes.pick(&all).into();
            }
            _ => self.alter_edges(&mut edges[at].because),
        }
    }

    fn list(&mut self) -> Vec<OpId> {
        (0..self.bytes.below(6)).map(|_| self.op()).collect()
    }

    /// Chooses an operation or initial write, sometimes one that does not exist.
    fn op(&mut self) -> OpId {
        let known = (self.history.len() + self.history.key_count()) as u32;
        match u32::from(self.bytes.byte()) {
            255 => OpId(u32::MAX),
            254 => OpId(known),
            byte => OpId(byte.checked_rem(known).unwrap_or(0)),
        }
    }
}
