//! The models as plain loops over pairs, and as machines, directly from their definitions.
//!
//! The models with a store order are machines: sequential consistency is an interleaving of the
//! sessions on one memory, total store order adds a store buffer; partial store order and relaxed
//! memory order execute the operations of a session out of order. The machines use only values,
//! neither `wr` nor `ww`.

use std::collections::HashSet;

use consistory_history::{Action, History, Status};

pub(crate) const MAX: usize = 16;

/// A relation between fewer than [`MAX`] operations.
pub(crate) type Rel = [[bool; MAX]; MAX];

pub(crate) const NONE: Rel = [[false; MAX]; MAX];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Op {
    /// `None` for an initial write.
    pub(crate) session: Option<usize>,
    pub(crate) key: usize,
    pub(crate) read: Option<u32>,
    pub(crate) write: Option<u32>,
    pub(crate) is_fence: bool,
    pub(crate) is_unknown: bool,
}

impl Op {
    pub(crate) fn is_rmw(&self) -> bool {
        self.read.is_some() && self.write.is_some()
    }
}

/// The operations that may count, initial writes first.
pub(crate) fn operations(h: &History) -> Vec<Op> {
    let mut ops: Vec<Op> = h
        .keys()
        .map(|key| Op {
            session: None,
            key: key.index(),
            read: None,
            write: Some(h.initial_value(key).0),
            is_fence: false,
            is_unknown: false,
        })
        .collect();
    for op in h.ops().filter(|&op| h.status(op) != Status::Fail) {
        let is_unknown = h.status(op) == Status::Unknown;
        let (key, read, write) = match h.action(op) {
            Action::Read { key, value } => (key.index(), Some(value.0), None),
            Action::Write { key, value } => (key.index(), None, Some(value.0)),
            Action::Rmw { key, read, write } => (key.index(), Some(read.0), Some(write.0)),
            Action::Append { .. } | Action::Fence | Action::Call(_) => (usize::MAX, None, None),
        };
        let is_fence = h.action(op) == Action::Fence;
        if is_unknown && write.is_none() {
            continue;
        }
        ops.push(Op {
            session: Some(h.session_of(op).index()),
            key,
            read: read.filter(|_| !is_unknown),
            write,
            is_fence,
            is_unknown,
        });
    }
    ops
}

/// Operations that count, and the source of each of them.
pub(crate) struct Choice {
    pub(crate) ops: Vec<Op>,
    pub(crate) wr: Rel,
}

/// Returns every choice of sources, without reads from thin air or from the future.
pub(crate) fn choices(all: &[Op]) -> Vec<Choice> {
    let mut partial: Vec<Vec<Option<usize>>> = vec![Vec::new()];
    for (r, read) in all.iter().enumerate() {
        let candidates: Vec<Option<usize>> = match read.read {
            None => vec![None],
            Some(value) => (0..all.len())
                .filter(|&w| w != r && all[w].key == read.key && all[w].write == Some(value))
                .filter(|&w| all[w].session != read.session || w < r)
                .map(Some)
                .collect(),
        };
        partial = partial
            .iter()
            .flat_map(|chosen| {
                candidates.iter().map(|&candidate| [&chosen[..], &[candidate]].concat())
            })
            .collect();
    }
    partial
        .into_iter()
        .map(|of| {
            let counts: Vec<usize> =
                (0..all.len()).filter(|&i| !all[i].is_unknown || of.contains(&Some(i))).collect();
            let mut wr = NONE;
            for (j, &r) in counts.iter().enumerate() {
                if let Some(w) = of[r] {
                    wr[counts.iter().position(|&c| c == w).unwrap()][j] = true;
                }
            }
            Choice { ops: counts.iter().map(|&i| all[i]).collect(), wr }
        })
        .collect()
}

pub(crate) fn relation(n: usize, holds: impl Fn(usize, usize) -> bool) -> Rel {
    let mut r = NONE;
    for (i, row) in r.iter_mut().enumerate().take(n) {
        for (j, cell) in row.iter_mut().enumerate().take(n) {
            *cell = holds(i, j);
        }
    }
    r
}

pub(crate) fn union(list: &[&Rel]) -> Rel {
    relation(MAX, |i, j| list.iter().any(|r| r[i][j]))
}

pub(crate) fn closure(r: &Rel) -> Rel {
    let mut c = *r;
    for k in 0..MAX {
        for i in 0..MAX {
            for j in 0..MAX {
                c[i][j] |= c[i][k] && c[k][j];
            }
        }
    }
    c
}

pub(crate) fn is_irreflexive(r: &Rel) -> bool {
    (0..MAX).all(|i| !r[i][i])
}

pub(crate) fn is_acyclic(r: &Rel) -> bool {
    is_irreflexive(&closure(r))
}

impl Choice {
    pub(crate) fn po(&self) -> Rel {
        relation(self.ops.len(), |i, j| match (self.ops[i].session, self.ops[j].session) {
            (None, Some(_)) => true,
            (Some(s), Some(t)) => s == t && i < j,
            _ => false,
        })
    }

    pub(crate) fn same_key(&self, i: usize, j: usize) -> bool {
        !self.ops[i].is_fence && !self.ops[j].is_fence && self.ops[i].key == self.ops[j].key
    }

    pub(crate) fn ww(&self, r: &Rel) -> Rel {
        let writes = |i: usize| self.ops[i].write.is_some();
        relation(self.ops.len(), |i, j| r[i][j] && writes(i) && writes(j) && self.same_key(i, j))
    }

    /// `rw[r]`: from each read to every write that `r` puts after its source.
    pub(crate) fn rw(&self, r: &Rel) -> Rel {
        let ww = self.ww(r);
        relation(self.ops.len(), |read, write| {
            read != write && (0..self.ops.len()).any(|w| self.wr[w][read] && ww[w][write])
        })
    }

    /// `cf[r]` through the reads that `is_seen`, with `wr` as given.
    pub(crate) fn cf_by(&self, r: &Rel, wr: &Rel, is_seen: impl Fn(usize) -> bool) -> Rel {
        relation(self.ops.len(), |a, b| {
            a != b
                && self.ops[a].write.is_some()
                && (0..self.ops.len()).any(|read| {
                    is_seen(read) && wr[b][read] && self.same_key(a, read) && r[a][read]
                })
        })
    }

    pub(crate) fn cf(&self, r: &Rel) -> Rel {
        self.cf_by(r, &self.wr, |_| true)
    }

    /// `hb_o`, for a program order and the `wr` of its causal order.
    pub(crate) fn hb(&self, o: usize, po: &Rel, wr: &Rel) -> Rel {
        let co = closure(&union(&[po, wr]));
        let is_past = |i: usize| i == o || co[i][o];
        let mut hb = relation(self.ops.len(), |i, j| co[i][j] && is_past(i) && is_past(j));
        loop {
            let more = self.cf_by(&hb, &self.wr, |read| read == o || po[read][o]);
            let next = closure(&union(&[&hb, &more]));
            if next == hb {
                return hb;
            }
            hb = next;
        }
    }

    pub(crate) fn all_hb(&self, po: &Rel, wr: &Rel) -> Rel {
        let parts: Vec<Rel> = (0..self.ops.len()).map(|o| self.hb(o, po, wr)).collect();
        closure(&union(&parts.iter().collect::<Vec<_>>()))
    }

    pub(crate) fn ppo(&self) -> Rel {
        let po = self.po();
        relation(self.ops.len(), |i, j| {
            let (a, b) = (self.ops[i], self.ops[j]);
            let is_delayed = a.session == b.session
                && a.write.is_some()
                && b.read.is_some()
                && !a.is_rmw()
                && !b.is_rmw();
            let is_fenced =
                (0..self.ops.len()).any(|f| self.ops[f].is_fence && po[i][f] && po[f][j]);
            po[i][j] && (!is_delayed || is_fenced)
        })
    }

    pub(crate) fn poloc(&self) -> Rel {
        let po = self.po();
        relation(self.ops.len(), |i, j| po[i][j] && self.same_key(i, j))
    }

    pub(crate) fn wre(&self) -> Rel {
        relation(self.ops.len(), |i, j| self.wr[i][j] && self.ops[i].session != self.ops[j].session)
    }

    pub(crate) fn satisfies(&self, model: &str) -> bool {
        let po = self.po();
        let co = closure(&union(&[&po, &self.wr]));
        match model {
            "cc" => {
                let rw = self.rw(&co);
                is_irreflexive(&co) && (0..MAX).all(|i| (0..MAX).all(|j| !(co[i][j] && rw[j][i])))
            }
            "ccv" => self.satisfies("cc") && is_acyclic(&union(&[&po, &self.wr, &self.cf(&co)])),
            "cm" => {
                self.satisfies("cc")
                    && (0..self.ops.len()).all(|o| is_irreflexive(&self.hb(o, &po, &self.wr)))
            }
            "ccm" => {
                let hb = self.all_hb(&po, &self.wr);
                let pww = closure(&union(&[&self.ww(&hb), &self.cf(&hb)]));
                is_acyclic(&union(&[&po, &self.wr, &pww, &self.rw(&pww)]))
            }
            "wsc" => {
                let mut hb = NONE;
                loop {
                    let st = closure(&union(&[&self.cf(&hb), &self.ww(&hb)]));
                    let next = closure(&union(&[&po, &self.wr, &st, &self.rw(&st)]));
                    if next == hb {
                        return is_irreflexive(&hb);
                    }
                    hb = next;
                }
            }
            "wccm" => {
                let (ppo, poloc, wre) = (self.ppo(), self.poloc(), self.wre());
                let (hb_ppo, hb_poloc) = (self.all_hb(&ppo, &wre), self.all_hb(&poloc, &wre));
                let whb = closure(&union(&[&hb_ppo, &hb_poloc]));
                let cfe = |r: &Rel| self.cf_by(r, &wre, |_| true);
                let wpww = closure(&union(&[&self.ww(&whb), &cfe(&hb_ppo), &cfe(&hb_poloc)]));
                let rw = self.rw(&wpww);
                [ppo, poloc].iter().all(|p| is_acyclic(&union(&[p, &wre, &wpww, &rw])))
            }
            "wtso" => {
                let (orders, wre) = ([self.ppo(), self.poloc()], self.wre());
                let mut whb = [NONE, NONE];
                loop {
                    let wst = closure(&union(&[
                        &self.cf(&whb[0]),
                        &self.ww(&whb[0]),
                        &self.cf(&whb[1]),
                        &self.ww(&whb[1]),
                    ]));
                    let rw = self.rw(&wst);
                    let next = orders.map(|p| closure(&union(&[&p, &wre, &wst, &rw])));
                    if next == whb {
                        return whb.iter().all(is_irreflexive);
                    }
                    whb = next;
                }
            }
            _ => panic!("{model} is decided by a machine"),
        }
    }
}

/// A memory with sessions that use it, with or without store buffers.
pub(crate) struct Machine {
    sessions: Vec<Vec<Op>>,
    is_buffered: bool,
    seen: HashSet<State>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    next: Vec<usize>,
    buffers: Vec<Vec<(usize, u32)>>,
    memory: Vec<u32>,
}

impl Machine {
    pub(crate) fn accepts(ops: &[Op], is_buffered: bool) -> bool {
        let count = ops.iter().filter_map(|op| op.session).max().map_or(0, |last| last + 1);
        let of = |s| ops.iter().copied().filter(|op| op.session == Some(s)).collect();
        let memory: Vec<u32> =
            ops.iter().filter(|op| op.session.is_none()).filter_map(|op| op.write).collect();
        let start = State { next: vec![0; count], buffers: vec![Vec::new(); count], memory };
        let sessions = (0..count).map(of).collect();
        Machine { sessions, is_buffered, seen: HashSet::new() }.run(start)
    }

    /// Checks whether some run from this state gives every read its value.
    fn run(&mut self, state: State) -> bool {
        if !self.seen.insert(state.clone()) {
            return false;
        }
        let is_done = |s: usize| state.next[s] == self.sessions[s].len();
        if (0..self.sessions.len()).all(is_done) {
            return true;
        }
        (0..self.sessions.len())
            .any(|s| self.steps(&state, s).into_iter().any(|next| self.run(next)))
    }

    fn steps(&self, state: &State, s: usize) -> Vec<State> {
        let mut steps = Vec::new();
        if let Some(&(key, value)) = state.buffers[s].first() {
            let mut next = state.clone();
            next.buffers[s].remove(0);
            next.memory[key] = value;
            steps.push(next);
        }
        let Some(op) = self.sessions[s].get(state.next[s]) else { return steps };
        let mut next = state.clone();
        next.next[s] += 1;
        if op.is_unknown {
            // The operation may not have happened.
            steps.push(next.clone());
        }
        let is_drained = state.buffers[s].is_empty();
        let own =
            state.buffers[s].iter().rev().find(|write| write.0 == op.key).map(|write| write.1);
        match (op.read, op.write) {
            (Some(read), None) if own.unwrap_or(state.memory[op.key]) == read => steps.push(next),
            (Some(read), Some(write)) if is_drained && state.memory[op.key] == read => {
                next.memory[op.key] = write;
                steps.push(next);
            }
            (None, Some(write)) if self.is_buffered => {
                next.buffers[s].push((op.key, write));
                steps.push(next);
            }
            (None, Some(write)) => {
                next.memory[op.key] = write;
                steps.push(next);
            }
            (None, None) if is_drained => steps.push(next),
            _ => {}
        }
        steps
    }
}

/// A memory that sessions access out of order: the total memory orders of the store-atomic models,
/// each built operation by operation.
///
/// A read returns the latest write of its key that has reached the memory or comes before it in its
/// session; writes of its session that have not reached the memory are the latest of all.
struct MemoryOrders<'a> {
    ops: &'a [Op],
    /// Returns whether the memory must keep the order of two operations of a session.
    keeps: fn(&Op, &Op) -> bool,
    seen: HashSet<(u32, Vec<u32>)>,
}

impl<'a> MemoryOrders<'a> {
    /// Checks whether some order gives every read its value, possibly without some writes of
    /// unknown status.
    fn accepts(ops: &[Op], keeps: fn(&Op, &Op) -> bool) -> bool {
        let unknown: Vec<usize> = (0..ops.len()).filter(|&i| ops[i].is_unknown).collect();
        (0..1u32 << unknown.len()).any(|left_out| {
            let is_in = |i: &usize| match unknown.iter().position(|u| u == i) {
                Some(u) => left_out >> u & 1 == 0,
                None => true,
            };
            let chosen: Vec<Op> = (0..ops.len()).filter(is_in).map(|i| ops[i]).collect();
            let initial: Vec<u32> =
                chosen.iter().filter(|op| op.session.is_none()).filter_map(|op| op.write).collect();
            let done = (1 << initial.len()) - 1;
            MemoryOrders { ops: &chosen, keeps, seen: HashSet::new() }.run(done, initial)
        })
    }

    fn run(&mut self, done: u32, memory: Vec<u32>) -> bool {
        if done == (1 << self.ops.len()) - 1 {
            return true;
        }
        if !self.seen.insert((done, memory.clone())) {
            return false;
        }
        (0..self.ops.len()).any(|i| match self.step(done, &memory, i) {
            Some(memory) => self.run(done | 1 << i, memory),
            None => false,
        })
    }

    fn step(&self, done: u32, memory: &[u32], i: usize) -> Option<Vec<u32>> {
        let op = &self.ops[i];
        let pending =
            || (0..i).filter(|&j| done >> j & 1 == 0 && self.ops[j].session == op.session);
        if done >> i & 1 == 1 || pending().any(|j| (self.keeps)(&self.ops[j], op)) {
            return None;
        }
        if let Some(value) = op.read {
            let own = pending().filter(|&j| self.ops[j].key == op.key);
            let latest = own.filter_map(|j| self.ops[j].write).next_back();
            if latest.unwrap_or(memory[op.key]) != value {
                return None;
            }
        }
        let mut memory = memory.to_vec();
        if let Some(value) = op.write {
            memory[op.key] = value;
        }
        Some(memory)
    }
}

/// Returns whether any of the relaxed models keeps two operations in order.
fn is_barrier(x: &Op, y: &Op) -> bool {
    [x, y].into_iter().any(|op| op.is_fence || op.is_rmw())
}

fn partial_store_order(x: &Op, y: &Op) -> bool {
    is_barrier(x, y) || x.read.is_some() || (y.write.is_some() && x.key == y.key)
}

fn relaxed_memory_order(x: &Op, y: &Op) -> bool {
    is_barrier(x, y) || (y.write.is_some() && x.key == y.key)
}

/// Decides a model by brute force.
pub(crate) fn brute_force(model: &str, h: &History) -> bool {
    let ops = operations(h);
    assert!(ops.len() < MAX);
    match model {
        "sc" => Machine::accepts(&ops, false),
        "tso" => Machine::accepts(&ops, true),
        "pso" => MemoryOrders::accepts(&ops, partial_store_order),
        "rmo" => MemoryOrders::accepts(&ops, relaxed_memory_order),
        _ => choices(&ops).iter().any(|choice| choice.satisfies(model)),
    }
}
