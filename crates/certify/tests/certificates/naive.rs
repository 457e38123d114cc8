//! The models by definition, on tables of pairs: slow, and independent of the checker.

use consistory_history::{Action, History, KeyId, OpId, Status};

pub(crate) type Pairs = Vec<Vec<bool>>;

/// A history under one choice of the source of each read.
pub(crate) struct World<'a> {
    pub(crate) h: &'a History,
    /// Source of each operation that reads, by id.
    pub(crate) source: Vec<Option<OpId>>,
    /// Whether each operation counts, by id, initial writes included.
    pub(crate) counts: Vec<bool>,
}

/// Returns one world per choice of `wr`; none if some read has no candidate.
pub(crate) fn worlds(h: &History) -> Vec<World<'_>> {
    let ids = h.len() + h.key_count();
    let mut sources: Vec<Vec<Option<OpId>>> = vec![vec![None; ids]];
    for read in h.ops() {
        let Some(found) = h.reads(read) else { continue };
        let candidates: Vec<OpId> =
            (0..ids).map(OpId::new).filter(|&w| h.writes(w) == Some(found)).collect();
        sources = sources
            .into_iter()
            .flat_map(|source| {
                candidates.iter().map(move |&write| {
                    let mut source = source.clone();
                    source[read.index()] = Some(write);
                    source
                })
            })
            .collect();
    }
    sources
        .into_iter()
        .map(|source| {
            let counts = (0..ids)
                .map(|id| match h.status(OpId::new(id)) {
                    Status::Ok => true,
                    Status::Fail => false,
                    Status::Unknown => source.contains(&Some(OpId::new(id))),
                })
                .collect();
            World { h, source, counts }
        })
        .collect()
}

/// Decides a model by its definition.
pub(crate) fn satisfies(h: &History, model: &str) -> bool {
    worlds(h).iter().any(|world| world.satisfies(model))
}

impl World<'_> {
    pub(crate) fn ids(&self) -> usize {
        self.counts.len()
    }

    pub(crate) fn reads(&self, op: usize) -> Option<KeyId> {
        self.h.reads(OpId::new(op)).map(|(key, _)| key)
    }

    pub(crate) fn writes(&self, op: usize) -> Option<KeyId> {
        self.h.writes(OpId::new(op)).filter(|_| self.counts[op]).map(|(key, _)| key)
    }

    pub(crate) fn pairs(&self, mut holds: impl FnMut(usize, usize) -> bool) -> Pairs {
        let n = self.ids();
        (0..n)
            .map(|a| (0..n).map(|b| self.counts[a] && self.counts[b] && holds(a, b)).collect())
            .collect()
    }

    pub(crate) fn recorded(&self, op: usize) -> bool {
        op < self.h.len()
    }

    pub(crate) fn same_session(&self, a: usize, b: usize) -> bool {
        let session = |op| self.h.session_of(OpId::new(op));
        self.recorded(a) && self.recorded(b) && session(a) == session(b)
    }

    pub(crate) fn po(&self) -> Pairs {
        self.pairs(|a, b| {
            self.recorded(b) && (!self.recorded(a) || (self.same_session(a, b) && a < b))
        })
    }

    pub(crate) fn wr(&self) -> Pairs {
        self.pairs(|a, b| self.source[b] == Some(OpId::new(a)))
    }

    pub(crate) fn wre(&self) -> Pairs {
        self.pairs(|a, b| self.source[b] == Some(OpId::new(a)) && !self.same_session(a, b))
    }

    pub(crate) fn ppo(&self) -> Pairs {
        let po = self.po();
        let is_write = |op: usize| {
            matches!(self.h.action(OpId::new(op)), Action::Write { .. })
                || (self.writes(op).is_some() && self.reads(op).is_none())
        };
        let is_read = |op: usize| self.reads(op).is_some() && self.writes(op).is_none();
        let is_fence = |op: usize| self.h.action(OpId::new(op)) == Action::Fence;
        self.pairs(|a, b| {
            let fenced =
                (0..self.ids()).any(|f| self.counts[f] && is_fence(f) && po[a][f] && po[f][b]);
            po[a][b] && (fenced || !(self.same_session(a, b) && is_write(a) && is_read(b)))
        })
    }

    pub(crate) fn poloc(&self) -> Pairs {
        let po = self.po();
        let key = |op: usize| self.reads(op).or(self.writes(op));
        self.pairs(|a, b| po[a][b] && key(a).is_some() && key(a) == key(b))
    }

    pub(crate) fn co(&self) -> Pairs {
        closure(union(&self.po(), &self.wr()))
    }

    /// `wr^-1 ; R_WW`, without reflexive pairs.
    pub(crate) fn rw(&self, order: &Pairs) -> Pairs {
        self.pairs(|r, w2| {
            r != w2
                && self.source[r].is_some_and(|w| {
                    order[w.index()][w2] && self.writes(w2) == self.reads(r) && w.index() != w2
                })
        })
    }

    /// `R_WR ; wr^-1`, without reflexive pairs.
    pub(crate) fn cf(&self, order: &Pairs) -> Pairs {
        self.pairs(|w2, w| {
            w2 != w
                && self.writes(w2).is_some()
                && self.writes(w2) == self.writes(w)
                && (0..self.ids()).any(|r| self.source[r] == Some(OpId::new(w)) && order[w2][r])
        })
    }

    pub(crate) fn hb(&self, o: usize) -> Pairs {
        let co = self.co();
        let inside = |op: usize| op == o || co[op][o];
        let mut hb = self.pairs(|a, b| co[a][b] && inside(a) && inside(b));
        loop {
            let new = self.pairs(|w2, w| {
                w2 != w
                    && !hb[w2][w]
                    && self.writes(w2).is_some()
                    && self.writes(w2) == self.writes(w)
                    && (0..self.ids()).any(|r| {
                        self.source[r] == Some(OpId::new(w))
                            && hb[w2][r]
                            && (r == o || (self.same_session(r, o) && r < o))
                    })
            });
            if !new.iter().flatten().any(|&pair| pair) {
                return hb;
            }
            hb = closure(union(&hb, &new));
        }
    }

    pub(crate) fn satisfies(&self, model: &str) -> bool {
        let ids = 0..self.ids();
        let wr = self.wr();
        let future =
            ids.clone().any(|w| ids.clone().any(|r| wr[w][r] && self.same_session(w, r) && w >= r));
        if future {
            return false;
        }
        let po_wr = union(&self.po(), &self.wr());
        let co = self.co();
        let cc = || {
            let rw = self.rw(&co);
            irreflexive(&co) && irreflexive(&compose(&co, &rw))
        };
        match model {
            "cc" => cc(),
            "ccv" => cc() && irreflexive(&closure(union(&po_wr, &self.cf(&co)))),
            "cm" => cc() && ids.clone().all(|o| !self.counts[o] || irreflexive(&self.hb(o))),
            "sc" => self.store_orders().iter().any(|ww| self.acyclic_with(&po_wr, ww)),
            "tso" => {
                let ppo = union(&self.ppo(), &self.wre());
                let poloc = union(&self.poloc(), &self.wre());
                self.store_orders()
                    .iter()
                    .any(|ww| self.acyclic_with(&ppo, ww) && self.acyclic_with(&poloc, ww))
            }
            _ => unreachable!("no such model"),
        }
    }

    pub(crate) fn acyclic_with(&self, relation: &Pairs, ww: &Pairs) -> bool {
        irreflexive(&closure(union(&union(relation, ww), &self.rw(ww))))
    }

    /// Returns every `ww`.
    pub(crate) fn store_orders(&self) -> Vec<Pairs> {
        self.store_lists().iter().map(|lists| self.store_order(lists)).collect()
    }

    pub(crate) fn store_order(&self, lists: &[Vec<OpId>]) -> Pairs {
        let place = |op: usize| lists.iter().flatten().position(|w| w.index() == op);
        self.pairs(|a, b| {
            self.writes(a).is_some() && self.writes(a) == self.writes(b) && place(a) < place(b)
        })
    }

    /// Returns every `ww`, each as one list per key.
    pub(crate) fn store_lists(&self) -> Vec<Vec<Vec<OpId>>> {
        let mut all = vec![Vec::new()];
        for key in self.h.keys() {
            let writes: Vec<OpId> =
                self.h.ops().filter(|op| self.writes(op.index()) == Some(key)).collect();
            let orders = permutations(&writes);
            all = all
                .into_iter()
                .flat_map(|lists: Vec<Vec<OpId>>| {
                    orders.iter().map(move |order| {
                        let mut lists = lists.clone();
                        lists.push([&[self.h.initial_write(key)], &order[..]].concat());
                        lists
                    })
                })
                .collect();
        }
        all
    }
}

pub(crate) fn union(a: &Pairs, b: &Pairs) -> Pairs {
    a.iter().zip(b).map(|(a, b)| a.iter().zip(b).map(|(a, b)| *a || *b).collect()).collect()
}

pub(crate) fn compose(a: &Pairs, b: &Pairs) -> Pairs {
    let n = a.len();
    (0..n).map(|i| (0..n).map(|k| (0..n).any(|j| a[i][j] && b[j][k])).collect()).collect()
}

pub(crate) fn closure(mut pairs: Pairs) -> Pairs {
    for k in 0..pairs.len() {
        let behind = pairs[k].clone();
        for row in pairs.iter_mut().filter(|row| row[k]) {
            row.iter_mut().zip(&behind).for_each(|(pair, more)| *pair |= more);
        }
    }
    pairs
}

pub(crate) fn irreflexive(pairs: &Pairs) -> bool {
    (0..pairs.len()).all(|i| !pairs[i][i])
}

pub(crate) fn permutations<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    let Some((first, rest)) = items.split_first() else { return vec![Vec::new()] };
    permutations(rest)
        .into_iter()
        .flat_map(|rest| {
            (0..=rest.len()).map(move |at| {
                let mut whole = rest.clone();
                whole.insert(at, first.clone());
                whole
            })
        })
        .collect()
}
