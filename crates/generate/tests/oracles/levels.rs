//! Isolation levels by brute force, in both formulations.
//!
//! *Commit orders* (Biswas and Enea, OOPSLA 2019): some total order of all transactions contains
//! the order of the clients and the pairs that the level's axiom forces. *Version orders* (Cerone
//! and Gotsman, JACM 2018, after Adya): some total order of the writers of every key makes the
//! level's relation acyclic. Both try every order and are for histories of a handful of
//! transactions.

use consistory_history::{Action, History, KeyId, KeyKind, OpId, Status, Value, ValueId};

/// The levels, from weak to strong; `pc` and `psi` are incomparable.
#[allow(dead_code, reason = "each test binary uses its own part")]
pub(crate) const LEVELS: [&str; 7] = ["rc", "ra", "tcc", "pc", "psi", "si", "ser"];

/// A formulation of the levels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Formulation {
    CommitOrders,
    VersionOrders,
}

/// The order of the clients' transactions that a commit order must contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    None,
    Session,
    Realtime,
}

/// A relation between at most 32 transactions: row `a` has bit `b` set for the pair `(a, b)`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Relation(Vec<u32>);

impl Relation {
    fn empty(size: usize) -> Self {
        assert!(size <= 32, "the oracle is for small histories");
        Relation(vec![0; size])
    }

    fn insert(&mut self, a: usize, b: usize) {
        self.0[a] |= 1 << b;
    }

    fn has(&self, a: usize, b: usize) -> bool {
        self.0[a] >> b & 1 == 1
    }

    fn union(&self, other: &Relation) -> Relation {
        Relation(self.0.iter().zip(&other.0).map(|(a, b)| a | b).collect())
    }

    fn then(&self, next: &Relation) -> Relation {
        let row = |&row: &u32| {
            (0..next.0.len()).filter(|b| row >> b & 1 == 1).fold(0, |all, b| all | next.0[b])
        };
        Relation(self.0.iter().map(row).collect())
    }

    /// Returns `self ; next?`.
    fn then_maybe(&self, next: &Relation) -> Relation {
        self.union(&self.then(next))
    }

    fn closure(&self) -> Relation {
        let mut closed = self.clone();
        for middle in 0..closed.0.len() {
            let row = closed.0[middle];
            for from in &mut closed.0 {
                if *from >> middle & 1 == 1 {
                    *from |= row;
                }
            }
        }
        closed
    }

    fn is_irreflexive(&self) -> bool {
        (0..self.0.len()).all(|a| !self.has(a, a))
    }

    fn is_acyclic(&self) -> bool {
        self.closure().is_irreflexive()
    }
}

/// A transaction; the first one writes the initial values.
#[derive(Clone, Debug)]
struct Txn {
    session: u32,
    place: usize,
    is_certain: bool,
    /// Start and end in real time.
    start: Option<i64>,
    end: Option<i64>,
    /// External reads in program order: the key, and the transactions that the read may read from.
    reads: Vec<(KeyId, Vec<usize>)>,
    writes: Vec<KeyId>,
}

/// A history in the form that the oracle uses.
pub(crate) struct Small {
    txns: Vec<Txn>,
    /// Pairs of writers that lists order.
    listed: Vec<(usize, usize)>,
    /// Indeterminate transactions whose writes appear in a list.
    shown: Vec<usize>,
    /// Whether some read is bad at every level.
    is_bad: bool,
}

impl Small {
    pub(crate) fn new(history: &History) -> Small {
        let mut small =
            Small { txns: Vec::new(), listed: Vec::new(), shown: vec![], is_bad: false };
        small.txns.push(Txn {
            session: u32::MAX,
            place: 0,
            is_certain: true,
            start: None,
            end: None,
            reads: Vec::new(),
            writes: history.keys().collect(),
        });
        let mut source: Vec<(Status, Vec<OpId>)> = vec![(Status::Ok, Vec::new())];
        for transaction in history.all_transactions() {
            let ops: Vec<OpId> = transaction
                .ops
                .clone()
                .map(OpId)
                .filter(|&op| history.own_status(op) != Status::Fail)
                .collect();
            let unknown = ops.iter().any(|&op| history.own_status(op) == Status::Unknown);
            let status = match transaction.status {
                Status::Ok if unknown => Status::Unknown,
                status => status,
            };
            let time = history.transaction_time(&transaction);
            let is_certain = status == Status::Ok;
            let mut writes: Vec<KeyId> =
                ops.iter().filter_map(|&op| written(history, op).map(|(key, _)| key)).collect();
            writes.sort();
            writes.dedup();
            small.txns.push(Txn {
                session: history.session_of(OpId(transaction.ops.start)).0,
                place: small.txns.len(),
                is_certain,
                start: time.map(|t| t.start),
                end: time.and_then(|t| t.end).filter(|_| is_certain),
                reads: Vec::new(),
                writes,
            });
            source.push((status, ops));
        }
        for at in 1..source.len() {
            if source[at].0 == Status::Ok {
                small.read_all(history, &source, at);
            }
        }
        for (txn, (status, _)) in small.txns.iter_mut().zip(&source) {
            if *status == Status::Fail {
                txn.writes.clear();
                txn.is_certain = false;
            }
        }
        small
    }

    fn read_all(&mut self, history: &History, source: &[(Status, Vec<OpId>)], at: usize) {
        let ops = &source[at].1;
        for (i, &op) in ops.iter().enumerate() {
            let (key, value) = match history.action(op) {
                Action::Read { key, value } | Action::Rmw { key, read: value, .. } => (key, value),
                _ => continue,
            };
            let own: Vec<ValueId> = ops[..i]
                .iter()
                .filter_map(|&op| written(history, op))
                .filter(|w| w.0 == key)
                .map(|w| w.1)
                .collect();
            if history.key_kind(key) == KeyKind::List {
                self.read_list(history, source, at, key, value, &own);
                continue;
            }
            if let Some(&last) = own.last() {
                self.is_bad |= last != value;
                continue;
            }
            let mut candidates: Vec<usize> = (1..source.len())
                .filter(|&t| t != at && source[t].0 != Status::Fail)
                .filter(|&t| {
                    let of_key = |&op: &OpId| written(history, op).filter(|w| w.0 == key);
                    source[t].1.iter().rev().find_map(of_key).is_some_and(|w| w.1 == value)
                })
                .collect();
            if history.initial_value(key) == value {
                candidates.push(0);
            }
            self.is_bad |= candidates.is_empty();
            self.txns[at].reads.push((key, candidates));
        }
    }

    fn read_list(
        &mut self,
        history: &History,
        source: &[(Status, Vec<OpId>)],
        at: usize,
        key: KeyId,
        value: ValueId,
        own: &[ValueId],
    ) {
        let Value::List(list) = history.value(value) else {
            self.is_bad = true;
            return;
        };
        let Value::List(initial) = history.value(history.initial_value(key)) else {
            panic!("a list starts as a list")
        };
        let own: Vec<&Value> = own.iter().map(|&id| history.value(id)).collect();
        let others = list.len().saturating_sub(own.len());
        if list[others..].iter().collect::<Vec<_>>() != own || !list.starts_with(initial) {
            self.is_bad = true;
            return;
        }
        if others < initial.len() {
            self.is_bad = true;
            return;
        }
        // The transactions whose appends form the list, each with all its appends.
        let mut writers: Vec<usize> = vec![0];
        let mut rest = &list[initial.len()..others];
        while let Some(first) = rest.first() {
            let appends = |t: usize| -> Vec<&Value> {
                let of_key = |&op: &OpId| written(history, op).filter(|w| w.0 == key);
                source[t].1.iter().filter_map(of_key).map(|w| history.value(w.1)).collect()
            };
            let writer = (1..source.len())
                .filter(|&t| t != at && source[t].0 != Status::Fail)
                .find(|&t| appends(t).contains(&first));
            let Some(writer) = writer else {
                self.is_bad = true;
                return;
            };
            let all = appends(writer);
            if rest.len() < all.len()
                || rest[..all.len()].iter().collect::<Vec<_>>() != all
                || writers.contains(&writer)
            {
                self.is_bad = true;
                return;
            }
            rest = &rest[all.len()..];
            writers.push(writer);
        }
        let last = writers[writers.len() - 1];
        // Appends that the list does not show come after it.
        for (t, (status, ops)) in source.iter().enumerate().skip(1) {
            let appends = *status != Status::Fail
                && ops.iter().any(|&op| written(history, op).is_some_and(|w| w.0 == key));
            if appends && !writers.contains(&t) {
                self.listed.push((last, t));
            }
        }
        self.listed.extend(writers.windows(2).map(|pair| (pair[0], pair[1])));
        self.shown.extend(&writers[1..]);
        self.txns[at].reads.push((key, vec![last]));
    }

    /// Decides a level by trying every choice.
    pub(crate) fn satisfies(&self, level: &str, order: Order, formulation: Formulation) -> bool {
        !self.is_bad && self.choose_reads(level, order, formulation, &mut Vec::new())
    }

    /// Tries every candidate for each external read, in the order of the transactions.
    fn choose_reads(
        &self,
        level: &str,
        order: Order,
        formulation: Formulation,
        chosen: &mut Vec<usize>,
    ) -> bool {
        let reads: Vec<&(KeyId, Vec<usize>)> = self.txns.iter().flat_map(|t| &t.reads).collect();
        let Some((_, candidates)) = reads.get(chosen.len()) else {
            let case = Case::new(self, order, chosen);
            return match formulation {
                Formulation::CommitOrders => case.has_commit_order(level),
                Formulation::VersionOrders => case.has_version_order(level),
            };
        };
        candidates.iter().any(|&from| {
            chosen.push(from);
            let holds = self.choose_reads(level, order, formulation, chosen);
            chosen.pop();
            holds
        })
    }
}

/// Returns the key and value that an operation writes or appends, for any outcome.
fn written(history: &History, op: OpId) -> Option<(KeyId, ValueId)> {
    match history.action(op) {
        Action::Write { key, value } | Action::Append { key, value } => Some((key, value)),
        Action::Rmw { key, write, .. } => Some((key, write)),
        _ => None,
    }
}

/// A history with a chosen source for each read.
struct Case<'a> {
    small: &'a Small,
    /// The transactions that take effect.
    counting: Vec<usize>,
    /// Per transaction, its reads: the key and the writer.
    reads: Vec<Vec<(KeyId, usize)>>,
    /// `so | wr`.
    base: Relation,
    listed: Relation,
}

impl<'a> Case<'a> {
    fn new(small: &'a Small, order: Order, chosen: &[usize]) -> Self {
        let size = small.txns.len();
        let mut chosen = chosen.iter();
        let reads: Vec<Vec<(KeyId, usize)>> = small
            .txns
            .iter()
            .map(|t| {
                let source = |&(key, _): &(KeyId, Vec<usize>)| (key, *chosen.next().unwrap());
                t.reads.iter().map(source).collect()
            })
            .collect();
        let counting: Vec<usize> = (0..size)
            .filter(|&t| {
                small.txns[t].is_certain
                    || small.shown.contains(&t)
                    || reads.iter().flatten().any(|&(_, from)| from == t)
            })
            .collect();
        let mut base = Relation::empty(size);
        for &b in &counting {
            for &a in counting.iter().filter(|&&a| a != b) {
                let (first, second) = (&small.txns[a], &small.txns[b]);
                let in_session = first.session == second.session && first.place < second.place;
                let in_time = first.end.zip(second.start).is_some_and(|(end, start)| end < start);
                let is_ordered = match order {
                    Order::None => false,
                    Order::Session => in_session,
                    Order::Realtime => in_session || in_time,
                };
                if b != 0 && (a == 0 || is_ordered) {
                    base.insert(a, b);
                }
            }
            for &(_, from) in &reads[b] {
                base.insert(from, b);
            }
        }
        let mut listed = Relation::empty(size);
        for &(a, b) in &small.listed {
            if counting.contains(&a) && counting.contains(&b) {
                listed.insert(a, b);
            }
        }
        Case { small, counting, reads, base, listed }
    }

    fn writes(&self, t: usize, key: KeyId) -> bool {
        self.small.txns[t].writes.contains(&key)
    }

    /// Tries every total order that contains the base relation and the order of lists.
    fn has_commit_order(&self, level: &str) -> bool {
        let before = self.base.union(&self.listed);
        self.base.is_irreflexive() && self.extend(level, &before, &mut Vec::new())
    }

    fn extend(&self, level: &str, before: &Relation, order: &mut Vec<usize>) -> bool {
        if order.len() == self.counting.len() {
            return self.satisfies_axiom(level, order);
        }
        for &next in &self.counting {
            let is_ready = !order.contains(&next)
                && self.counting.iter().all(|&t| order.contains(&t) || !before.has(t, next));
            if is_ready {
                order.push(next);
                if self.extend(level, before, order) {
                    return true;
                }
                order.pop();
            }
        }
        false
    }

    fn satisfies_axiom(&self, level: &str, order: &[usize]) -> bool {
        let mut position = vec![usize::MAX; self.small.txns.len()];
        for (i, &t) in order.iter().enumerate() {
            position[t] = i;
        }
        let before = |a: usize, b: usize| position[a] < position[b];
        let up_to = |a: usize, b: usize| position[a] <= position[b];
        let causal = self.base.closure();
        let mut with_versions = self.base.clone();
        let conflict =
            |a: usize, b: usize| self.small.txns[a].writes.iter().any(|&key| self.writes(b, key));
        for &a in order {
            for &b in order {
                if before(a, b) && conflict(a, b) {
                    with_versions.insert(a, b);
                }
            }
        }
        let with_versions = with_versions.closure();
        let knows = |t3: usize, read: usize, t2: usize| {
            let in_prefix = || order.iter().any(|&t4| self.base.has(t4, t3) && up_to(t2, t4));
            let after_conflict =
                || order.iter().any(|&t4| before(t4, t3) && conflict(t4, t3) && up_to(t2, t4));
            match level {
                "rc" => self.reads[t3][..read].iter().any(|&(_, from)| from == t2),
                "ra" => self.base.has(t2, t3),
                "tcc" => causal.has(t2, t3),
                "pc" => in_prefix(),
                "psi" => with_versions.has(t2, t3),
                "si" => in_prefix() || after_conflict(),
                "ser" => before(t2, t3),
                _ => panic!("no level is called {level}"),
            }
        };
        order.iter().all(|&t3| {
            self.reads[t3].iter().enumerate().all(|(read, &(key, t1))| {
                order.iter().all(|&t2| {
                    t2 == t1
                        || t2 == t3
                        || !self.writes(t2, key)
                        || !knows(t3, read, t2)
                        || before(t2, t1)
                })
            })
        })
    }

    /// Tries every version order of every key that agrees with the lists.
    fn has_version_order(&self, level: &str) -> bool {
        let size = self.small.txns.len();
        let keys = self.small.txns[0].writes.clone();
        self.order_keys(level, &keys, &Relation::empty(size), &Relation::empty(size))
    }

    fn order_keys(&self, level: &str, keys: &[KeyId], ww: &Relation, rw: &Relation) -> bool {
        let Some((&key, rest)) = keys.split_first() else { return self.is_allowed(level, ww, rw) };
        let writers: Vec<usize> =
            self.counting.iter().copied().filter(|&t| t != 0 && self.writes(t, key)).collect();
        permutations(&writers).into_iter().any(|mut order| {
            order.insert(0, 0);
            let (mut ww, mut rw) = (ww.clone(), rw.clone());
            for (i, &a) in order.iter().enumerate() {
                for &b in &order[i + 1..] {
                    if self.listed.has(b, a) {
                        return false;
                    }
                    ww.insert(a, b);
                    for &reader in self.counting.iter().filter(|&&reader| reader != b) {
                        if self.reads[reader].contains(&(key, a)) {
                            rw.insert(reader, b);
                        }
                    }
                }
            }
            self.order_keys(level, rest, &ww, &rw)
        })
    }

    fn is_allowed(&self, level: &str, ww: &Relation, rw: &Relation) -> bool {
        let base = &self.base;
        let both = base.union(ww);
        if !both.is_acyclic() {
            return false;
        }
        match level {
            "rc" | "ra" | "tcc" => {
                let causal = base.closure();
                let mut forced = Relation::empty(base.0.len());
                for &t3 in &self.counting {
                    for (read, &(key, t1)) in self.reads[t3].iter().enumerate() {
                        for &t2 in self.counting.iter().filter(|&&t2| t2 != t1 && t2 != t3) {
                            let knows = match level {
                                "rc" => self.reads[t3][..read].iter().any(|&(_, t)| t == t2),
                                "ra" => base.has(t2, t3),
                                _ => causal.has(t2, t3),
                            };
                            if knows && self.writes(t2, key) {
                                forced.insert(t2, t1);
                            }
                        }
                    }
                }
                both.union(&forced).is_acyclic()
            }
            "pc" => base.then_maybe(rw).union(ww).is_acyclic(),
            "psi" => both.closure().then_maybe(rw).is_irreflexive(),
            "si" => both.then_maybe(rw).is_acyclic(),
            "ser" => both.union(rw).is_acyclic(),
            _ => panic!("no level is called {level}"),
        }
    }
}

fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    let Some((&first, rest)) = items.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for order in permutations(rest) {
        for at in 0..=order.len() {
            let mut order = order.clone();
            order.insert(at, first);
            all.push(order);
        }
    }
    all
}
