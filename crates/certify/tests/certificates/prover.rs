//! Proofs of violations by brute force, for small histories.

use std::collections::HashSet;

use consistory_history::{History, OpId};
use consistory_verdict::{Certificate, Edge};

use super::naive::World;

/// Proves that a history violates a model, or returns `None` if it does not.
pub(crate) fn prove(h: &History, model: &str) -> Option<Certificate> {
    let ids = h.len() + h.key_count();
    let candidates: Vec<Vec<OpId>> = (0..ids)
        .map(OpId::new)
        .map(|read| {
            let fits = |&w: &OpId| w != read && h.writes(w) == h.reads(read);
            (0..ids).map(OpId::new).filter(fits).filter(|_| h.reads(read).is_some()).collect()
        })
        .collect();
    if let Some(read) = h.ops().find(|r| h.reads(*r).is_some() && candidates[r.index()].is_empty())
    {
        return Some(Certificate::ThinAirRead { read });
    }
    split_reads(h, model, &candidates, vec![None; ids])
}

fn split_reads(
    h: &History,
    model: &str,
    candidates: &[Vec<OpId>],
    mut source: Vec<Option<OpId>>,
) -> Option<Certificate> {
    for read in h.ops().filter(|&op| h.reads(op).is_some() && candidates[op.index()].len() == 1) {
        source[read.index()] = Some(candidates[read.index()][0]);
    }
    if let Some(read) = h.ops().find(|&r| h.reads(r).is_some() && source[r.index()].is_none()) {
        let mut branches = Vec::new();
        for &write in &candidates[read.index()] {
            let mut source = source.clone();
            source[read.index()] = Some(write);
            branches.push((write, split_reads(h, model, candidates, source)?));
        }
        return Some(Certificate::SplitRead { read, branches });
    }
    let counts = (0..source.len())
        .map(|id| h.is_certain(OpId::new(id)) || source.contains(&Some(OpId::new(id))))
        .collect();
    let world = World { h, source, counts };
    let prover = Prover { w: &world };
    let cycle = match model {
        "cc" => prover.future_read().or_else(|| prover.weak()),
        "ccv" => prover.weak().or_else(|| prover.convergent()),
        "cm" => return prover.weak().map(cycle_of).or_else(|| prover.observed()),
        _ => match prover.future_read() {
            Some(cycle) => Some(cycle),
            None => return prover.split_orders(model, &mut Vec::new()),
        },
    };
    cycle.map(cycle_of)
}

fn cycle_of(edges: Vec<Edge>) -> Certificate {
    Certificate::Cycle { edges: without_repetition(edges), observer: None, check: None }
}

struct Prover<'a> {
    w: &'a World<'a>,
}

impl Prover<'_> {
    fn given(&self, relation: &'static str) -> Vec<Edge> {
        let pairs = match relation {
            "po" => self.w.po(),
            "wr" => self.w.wr(),
            "wre" => self.w.wre(),
            "ppo" => self.w.ppo(),
            "poloc" => self.w.poloc(),
            _ => unreachable!("not given"),
        };
        let ids = 0..self.w.ids();
        ids.clone()
            .flat_map(|a| ids.clone().map(move |b| (a, b)))
            .filter(|&(a, b)| pairs[a][b])
            .map(|(a, b)| Edge::given(OpId::new(a), OpId::new(b), relation))
            .collect()
    }

    fn causal(&self) -> Vec<Edge> {
        [self.given("po"), self.given("wr")].concat()
    }

    /// Returns each read with its source and another write of its key.
    fn triples(&self) -> Vec<(OpId, OpId, OpId)> {
        let mut triples = Vec::new();
        for (r, source) in self.w.source.iter().enumerate() {
            let Some(w) = *source else { continue };
            for w2 in (0..self.w.ids()).filter(|&w2| self.w.writes(w2) == self.w.reads(r)) {
                if w2 != w.index() {
                    triples.push((OpId::new(r), w, OpId::new(w2)));
                }
            }
        }
        triples
    }

    fn future_read(&self) -> Option<Vec<Edge>> {
        self.given("wr")
            .into_iter()
            .find(|e| self.w.same_session(e.from.index(), e.to.index()) && e.from > e.to)
            .map(|e| vec![Edge::given(e.to, e.from, "po"), e])
    }

    fn weak(&self) -> Option<Vec<Edge>> {
        let edges = self.causal();
        if let Some(cycle) = cycle(&edges) {
            return Some(cycle);
        }
        self.triples().into_iter().filter(|(r, _, w2)| r != w2).find_map(|(r, w, w2)| {
            let mut premises = vec![Edge::given(w, r, "wr")];
            premises.extend(path(&edges, w, w2)?);
            let mut cycle = vec![Edge::derived(r, w2, "rw", premises)];
            cycle.extend(path(&edges, w2, r)?);
            Some(cycle)
        })
    }

    fn convergent(&self) -> Option<Vec<Edge>> {
        let causal = self.causal();
        let mut edges = causal.clone();
        for (r, w, w2) in self.triples() {
            if let Some(mut premises) = path(&causal, w2, r) {
                premises.push(Edge::given(w, r, "wr"));
                edges.push(Edge::derived(w2, w, "cf", premises));
            }
        }
        cycle(&edges)
    }

    fn observed(&self) -> Option<Certificate> {
        let co = self.w.co();
        (0..self.w.h.len()).filter(|&o| self.w.counts[o]).find_map(|o| {
            let inside = |op: OpId| op.index() == o || co[op.index()][o];
            let mut edges = self.causal();
            edges.retain(|e| inside(e.from) && inside(e.to));
            let own = |r: OpId| self.w.same_session(r.index(), o) && r.index() <= o;
            loop {
                if let Some(cycle) = cycle(&edges) {
                    let edges = without_repetition(cycle);
                    return Some(Certificate::Cycle {
                        edges,
                        observer: Some(OpId::new(o)),
                        check: None,
                    });
                }
                let known = |a: OpId, b: OpId| edges.iter().any(|e| (e.from, e.to) == (a, b));
                let new = self.triples().into_iter().filter(|t| own(t.0)).find_map(|(r, w, w2)| {
                    if known(w2, w) {
                        return None;
                    }
                    let mut premises = path(&edges, w2, r)?;
                    premises.push(Edge::given(w, r, "wr"));
                    Some(Edge::derived(w2, w, "hb", premises))
                });
                edges.push(new?);
            }
        })
    }

    fn split_orders(&self, model: &str, ww: &mut Vec<(OpId, OpId)>) -> Option<Certificate> {
        let writes: Vec<OpId> =
            self.w.h.ops().filter(|op| self.w.writes(op.index()).is_some()).collect();
        let mut common: Vec<Edge> = ww.iter().map(|&(a, b)| Edge::given(a, b, "ww")).collect();
        for &write in &writes {
            let key = self.w.writes(write.index()).unwrap();
            common.push(Edge::given(self.w.h.initial_write(key), write, "ww"));
        }
        for (r, w, w2) in self.triples().into_iter().filter(|(r, _, w2)| r != w2) {
            if let Some(ww) =
                common.iter().find(|e| e.relation == "ww" && (e.from, e.to) == (w, w2))
            {
                let premises = vec![Edge::given(w, r, "wr"), ww.clone()];
                common.push(Edge::derived(r, w2, "rw", premises));
            }
        }
        let bases: &[[&str; 2]] =
            if model == "sc" { &[["po", "wr"]] } else { &[["ppo", "wre"], ["poloc", "wre"]] };
        for [a, b] in bases {
            let edges = [self.given(leak(a)), self.given(leak(b)), common.clone()].concat();
            if let Some(cycle) = cycle(&edges) {
                return Some(cycle_of(cycle));
            }
        }
        for (i, &first) in writes.iter().enumerate() {
            for &second in &writes[i + 1..] {
                let same = self.w.writes(first.index()) == self.w.writes(second.index());
                if !same || ww.contains(&(first, second)) || ww.contains(&(second, first)) {
                    continue;
                }
                let mut branch = |pair| {
                    ww.push(pair);
                    let proof = self.split_orders(model, ww);
                    ww.pop();
                    proof
                };
                let branches = Box::new([branch((first, second))?, branch((second, first))?]);
                return Some(Certificate::SplitOrder { writes: [first, second], branches });
            }
        }
        None
    }
}

fn leak(relation: &str) -> &'static str {
    ["po", "wr", "wre", "ppo", "poloc"].into_iter().find(|known| *known == relation).unwrap()
}

/// Finds a shortest path.
fn path(edges: &[Edge], from: OpId, to: OpId) -> Option<Vec<Edge>> {
    let mut seen = HashSet::new();
    let mut paths: Vec<Vec<Edge>> = vec![Vec::new()];
    while !paths.is_empty() {
        let mut longer = Vec::new();
        for path in paths {
            let at = path.last().map_or(from, |last: &Edge| last.to);
            for edge in edges.iter().filter(|edge| edge.from == at) {
                let mut path = path.clone();
                path.push(edge.clone());
                if edge.to == to {
                    return Some(path);
                }
                if seen.insert(edge.to) {
                    longer.push(path);
                }
            }
        }
        paths = longer;
    }
    None
}

fn cycle(edges: &[Edge]) -> Option<Vec<Edge>> {
    edges.iter().find_map(|edge| path(edges, edge.from, edge.from))
}

/// Removes the premises of every edge that was derived before, premises before conclusions.
fn without_repetition(mut edges: Vec<Edge>) -> Vec<Edge> {
    fn strip(edges: &mut [Edge], seen: &mut HashSet<(OpId, OpId, String)>) {
        for edge in edges {
            let id = (edge.from, edge.to, edge.relation.to_string());
            if seen.contains(&id) {
                edge.because.clear();
            } else {
                strip(&mut edge.because, seen);
                seen.insert(id);
            }
        }
    }
    strip(&mut edges, &mut HashSet::new());
    edges
}
