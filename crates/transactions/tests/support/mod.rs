//! Levels by two definitions, for histories of a few transactions; and random histories.

#![allow(clippy::needless_range_loop, reason = "indices are transactions, as in the definitions")]
#![allow(dead_code)]

use consistory_history::{Action, History, KeyId, KeyKind, OpId, Status, Value};
use consistory_verdict::{ClientOrder, Level};

/// A relation over transactions; index 0 is the initial transaction.
pub(crate) type Relation = Vec<Vec<bool>>;

/// An external read: its transaction has not written the key before.
#[derive(Clone, Debug)]
struct Read {
    reader: usize,
    key: usize,
    op: u32,
    /// Transactions that the read may read from.
    candidates: Vec<usize>,
}

/// The transactions of a small history, evaluated naively. Node 0 is the initial transaction.
pub(crate) struct Tiny {
    sessions: Vec<usize>,
    times: Vec<Option<(i64, Option<i64>)>>,
    indeterminate: Vec<bool>,
    writes: Vec<Vec<usize>>,
    reads: Vec<Read>,
    /// For each key, the transactions in the order of the lists that were read.
    shown: Vec<Vec<usize>>,
    keys: usize,
    /// Whether some read is allowed by no level.
    pub(crate) is_bad: bool,
}

impl Tiny {
    pub(crate) fn new(history: &History) -> Self {
        let all: Vec<_> = history.all_transactions().collect();
        let ops = |t: usize| {
            all[t].ops.clone().map(OpId).filter(|&op| history.own_status(op) != Status::Fail)
        };
        let is_open = |t: usize| {
            all[t].status == Status::Unknown
                || ops(t).any(|op| history.own_status(op) == Status::Unknown)
        };
        let is_aborted = |t: usize| all[t].status == Status::Fail;
        let node: Vec<Option<usize>> = {
            let mut next = 0;
            (0..all.len())
                .map(|t| {
                    (!is_aborted(t)).then(|| {
                        next += 1;
                        next
                    })
                })
                .collect()
        };
        let written = |op: OpId| match history.action(op) {
            Action::Write { key, value } | Action::Append { key, value } => Some((key, value)),
            Action::Rmw { key, write, .. } => Some((key, write)),
            _ => None,
        };
        let keys = history.key_count();
        let mut tiny = Tiny {
            sessions: vec![usize::MAX],
            times: vec![None],
            indeterminate: vec![false],
            writes: vec![(0..keys).collect()],
            reads: Vec::new(),
            shown: vec![Vec::new(); keys],
            keys,
            is_bad: false,
        };
        let mut lists: Vec<(KeyId, Vec<Value>)> = Vec::new();
        for t in 0..all.len() {
            if is_aborted(t) {
                continue;
            }
            tiny.sessions.push(history.session_of(OpId(all[t].ops.start)).index());
            let time = history.transaction_time(&all[t]);
            tiny.times.push(time.map(|i| (i.start, if is_open(t) { None } else { i.end })));
            tiny.indeterminate.push(is_open(t));
            let mut keys: Vec<usize> =
                ops(t).filter_map(written).map(|(key, _)| key.index()).collect();
            keys.sort_unstable();
            keys.dedup();
            tiny.writes.push(keys);
        }
        for t in 0..all.len() {
            if is_aborted(t) || is_open(t) {
                continue;
            }
            for op in ops(t) {
                let (key, value) = match history.action(op) {
                    Action::Read { key, value } => (key, value),
                    Action::Rmw { key, read, .. } => (key, read),
                    _ => continue,
                };
                let own: Vec<_> = ops(t)
                    .filter(|&other| other < op)
                    .filter_map(written)
                    .filter(|&(k, _)| k == key)
                    .map(|(_, v)| v)
                    .collect();
                let reader = node[t].unwrap();
                let (key_at, at) = (key.index(), op.0);
                if history.key_kind(key) != KeyKind::List {
                    if let Some(&last) = own.last() {
                        tiny.is_bad |= last != value;
                        continue;
                    }
                    let mut candidates = Vec::new();
                    if history.initial_value(key) == value {
                        candidates.push(0);
                    }
                    for other in (0..all.len()).filter(|&other| other != t && !is_aborted(other)) {
                        let last = ops(other).filter_map(written).rfind(|&(k, _)| k == key);
                        if last.is_some_and(|(_, v)| v == value) {
                            candidates.push(node[other].unwrap());
                        }
                    }
                    tiny.is_bad |= candidates.is_empty();
                    tiny.reads.push(Read { reader, key: key_at, op: at, candidates });
                    continue;
                }
                let Value::List(list) = history.value(value) else {
                    tiny.is_bad = true;
                    continue;
                };
                let own: Vec<Value> = own.iter().map(|&v| history.value(v).clone()).collect();
                if !list.ends_with(&own) {
                    tiny.is_bad = true;
                    continue;
                }
                let list = &list[..list.len() - own.len()];
                // The transactions whose appends, complete and in order, form the list.
                let mut rest = list;
                let mut order = Vec::new();
                while !rest.is_empty() {
                    let next = (0..all.len()).find_map(|other| {
                        let appended: Vec<Value> = ops(other)
                            .filter_map(written)
                            .filter(|&(k, _)| k == key)
                            .map(|(_, v)| history.value(v).clone())
                            .collect();
                        let fits = !appended.is_empty() && rest.starts_with(&appended);
                        let is_new = node[other].is_some_and(|n| !order.contains(&n));
                        (fits && other != t && is_new).then_some((other, appended.len()))
                    });
                    let Some((other, length)) = next else { break };
                    order.push(node[other].unwrap());
                    rest = &rest[length..];
                }
                if !rest.is_empty() {
                    tiny.is_bad = true;
                    continue;
                }
                let source = order.last().copied().unwrap_or(0);
                tiny.reads.push(Read { reader, key: key_at, op: at, candidates: vec![source] });
                let known = &mut tiny.shown[key_at];
                let common = known.len().min(order.len());
                tiny.is_bad |= known[..common] != order[..common];
                if order.len() > known.len() {
                    *known = order;
                }
                lists.push((key, list.to_vec()));
            }
        }
        tiny
    }

    fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Calls a function with every choice of sources until it returns `true`.
    fn some_sources(&self, mut holds: impl FnMut(&[usize]) -> bool) -> bool {
        let mut choice = vec![0; self.reads.len()];
        loop {
            let sources: Vec<usize> =
                self.reads.iter().zip(&choice).map(|(read, &c)| read.candidates[c]).collect();
            if holds(&sources) {
                return true;
            }
            let Some(at) =
                (0..choice.len()).find(|&i| choice[i] + 1 < self.reads[i].candidates.len())
            else {
                return false;
            };
            choice[at] += 1;
            choice[..at].fill(0);
        }
    }

    fn counting(&self, sources: &[usize]) -> Vec<usize> {
        let is_shown = |t: usize| self.shown.iter().any(|order| order.contains(&t));
        (0..self.len())
            .filter(|&t| !self.indeterminate[t] || sources.contains(&t) || is_shown(t))
            .collect()
    }

    fn so(&self, order: ClientOrder) -> Relation {
        let mut so = vec![vec![false; self.len()]; self.len()];
        for a in 0..self.len() {
            for b in 1..self.len() {
                let in_session = self.sessions[a] == self.sessions[b] && a < b;
                let end = self.times[a].and_then(|(_, end)| end);
                let in_time = end.zip(self.times[b]).is_some_and(|(end, (start, _))| end < start);
                so[a][b] = a != b
                    && (a == 0
                        || (order != ClientOrder::None && in_session)
                        || (order == ClientOrder::Realtime && in_time));
            }
        }
        so
    }

    fn does_write(&self, t: usize, key: usize) -> bool {
        self.writes[t].contains(&key)
    }

    /// Decides a level by commit orders (Biswas and Enea).
    pub(crate) fn by_commit_orders(&self, level: Level, order: ClientOrder) -> bool {
        if self.is_bad {
            return false;
        }
        let so = self.so(order);
        self.some_sources(|sources| {
            let nodes = self.counting(sources);
            let mut base = so.clone();
            for (read, &source) in self.reads.iter().zip(sources) {
                base[source][read.reader] = true;
            }
            permutations(&nodes[1..], &mut |commits: &[usize]| {
                let mut place = vec![usize::MAX; self.len()];
                place[0] = 0;
                commits.iter().enumerate().for_each(|(i, &t)| place[t] = i + 1);
                let before = |a: usize, b: usize| place[a] < place[b];
                let extends =
                    nodes.iter().all(|&a| nodes.iter().all(|&b| !base[a][b] || before(a, b)));
                let lists_fit = (0..self.keys).all(|key| {
                    let mut versions: Vec<usize> =
                        commits.iter().copied().filter(|&t| self.does_write(t, key)).collect();
                    versions.truncate(self.shown[key].len());
                    versions == self.shown[key]
                });
                if !extends || !lists_fit {
                    return false;
                }
                let mut knows = vec![vec![false; self.len()]; self.len()];
                for &a in &nodes {
                    for &b in &nodes {
                        let conflict = self.writes[a].iter().any(|&key| self.does_write(b, key));
                        knows[a][b] = match level {
                            Level::ParallelSnapshot => base[a][b] || (conflict && before(a, b)),
                            _ => base[a][b],
                        };
                    }
                }
                if matches!(level, Level::Causal | Level::ParallelSnapshot) {
                    close(&mut knows);
                }
                let known = |t2: usize, t3: usize, read: &Read| match level {
                    Level::ReadCommitted => {
                        self.reads.iter().zip(sources).any(|(earlier, &source)| {
                            earlier.reader == t3 && earlier.op < read.op && source == t2
                        })
                    }
                    Level::ReadAtomic | Level::Causal | Level::ParallelSnapshot => knows[t2][t3],
                    Level::Prefix => {
                        nodes.iter().any(|&t4| base[t4][t3] && (t2 == t4 || before(t2, t4)))
                    }
                    Level::Snapshot => nodes.iter().any(|&t4| {
                        let conflict = self.writes[t4].iter().any(|&key| self.does_write(t3, key));
                        let sees = base[t4][t3] || (conflict && before(t4, t3));
                        sees && (t2 == t4 || before(t2, t4))
                    }),
                    Level::Serializable => before(t2, t3),
                };
                self.reads.iter().zip(sources).all(|(read, &t1)| {
                    nodes.iter().all(|&t2| {
                        t2 == t1
                            || t2 == read.reader
                            || !self.does_write(t2, read.key)
                            || !known(t2, read.reader, read)
                            || before(t2, t1)
                    })
                })
            })
        })
    }

    /// Decides a level by version orders (Cerone and Gotsman).
    pub(crate) fn by_version_orders(&self, level: Level, order: ClientOrder) -> bool {
        if self.is_bad {
            return false;
        }
        let so = self.so(order);
        self.some_sources(|sources| {
            let nodes = self.counting(sources);
            let mut base = so.clone();
            for (read, &source) in self.reads.iter().zip(sources) {
                base[source][read.reader] = true;
            }
            let writers: Vec<Vec<usize>> = (0..self.keys)
                .map(|key| {
                    nodes[1..].iter().copied().filter(|&t| self.does_write(t, key)).collect()
                })
                .collect();
            self.some_versions(&writers, 0, &mut Vec::new(), &mut |versions| {
                self.holds(level, &nodes, &base, sources, versions)
            })
        })
    }

    fn some_versions(
        &self,
        writers: &[Vec<usize>],
        key: usize,
        chosen: &mut Vec<Vec<usize>>,
        holds: &mut dyn FnMut(&[Vec<usize>]) -> bool,
    ) -> bool {
        if key == writers.len() {
            return holds(chosen);
        }
        permutations(&writers[key], &mut |versions: &[usize]| {
            if !versions.starts_with(&self.shown[key]) {
                return false;
            }
            chosen.push(versions.to_vec());
            let found = self.some_versions(writers, key + 1, chosen, holds);
            chosen.pop();
            found
        })
    }

    fn holds(
        &self,
        level: Level,
        nodes: &[usize],
        base: &Relation,
        sources: &[usize],
        versions: &[Vec<usize>],
    ) -> bool {
        let n = self.len();
        let empty = || vec![vec![false; n]; n];
        let rank = |t: usize, key: usize| {
            if t == 0 { Some(0) } else { versions[key].iter().position(|&v| v == t).map(|i| i + 1) }
        };
        let mut ww = empty();
        let mut rw = empty();
        for key in 0..self.keys {
            for &a in nodes {
                for &b in nodes {
                    if let (Some(x), Some(y)) = (rank(a, key), rank(b, key)) {
                        ww[a][b] |= x < y;
                    }
                }
            }
        }
        for (read, &source) in self.reads.iter().zip(sources) {
            for &t in nodes {
                if t != read.reader
                    && let (Some(x), Some(y)) = (rank(source, read.key), rank(t, read.key))
                {
                    rw[read.reader][t] |= x < y;
                }
            }
        }
        let union = |a: &Relation, b: &Relation| -> Relation {
            a.iter().zip(b).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a | b).collect()).collect()
        };
        let then_rw = |r: &Relation| -> Relation {
            let mut found = r.clone();
            for a in 0..n {
                for b in 0..n {
                    if r[a][b] {
                        for c in 0..n {
                            found[a][c] |= rw[b][c];
                        }
                    }
                }
            }
            found
        };
        let dependencies = union(base, &ww);
        let acyclic = |r: &Relation| {
            let mut closed = r.clone();
            close(&mut closed);
            (0..n).all(|t| !closed[t][t])
        };
        if !acyclic(&dependencies) {
            return false;
        }
        match level {
            Level::Serializable => acyclic(&union(&dependencies, &rw)),
            Level::Snapshot => acyclic(&then_rw(&dependencies)),
            Level::Prefix => acyclic(&union(&then_rw(base), &ww)),
            Level::ParallelSnapshot => {
                let mut closed = dependencies;
                close(&mut closed);
                let found = then_rw(&closed);
                (0..n).all(|t| !found[t][t])
            }
            _ => {
                let mut knows = base.clone();
                if level == Level::Causal {
                    close(&mut knows);
                }
                self.reads.iter().zip(sources).all(|(read, &t1)| {
                    nodes.iter().all(|&t2| {
                        let known = match level {
                            Level::ReadCommitted => {
                                self.reads.iter().zip(sources).any(|(earlier, &source)| {
                                    earlier.reader == read.reader
                                        && earlier.op < read.op
                                        && source == t2
                                })
                            }
                            _ => knows[t2][read.reader],
                        };
                        let relevant =
                            t2 != t1 && t2 != read.reader && self.does_write(t2, read.key) && known;
                        !relevant || rank(t2, read.key) < rank(t1, read.key)
                    })
                })
            }
        }
    }
}

fn close(r: &mut Relation) {
    let n = r.len();
    for b in 0..n {
        for a in 0..n {
            if r[a][b] {
                for c in 0..n {
                    let via = r[b][c];
                    r[a][c] |= via;
                }
            }
        }
    }
}

/// Calls a function with every permutation until it returns `true`.
fn permutations(items: &[usize], holds: &mut dyn FnMut(&[usize]) -> bool) -> bool {
    fn go(items: &mut Vec<usize>, at: usize, holds: &mut dyn FnMut(&[usize]) -> bool) -> bool {
        if at == items.len() {
            return holds(items);
        }
        for i in at..items.len() {
            items.swap(at, i);
            if go(items, at + 1, holds) {
                return true;
            }
            items.swap(at, i);
        }
        false
    }
    go(&mut items.to_vec(), 0, holds)
}

/// A small random number generator (xorshift*).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Parameters of random histories.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) transactions: usize,
    pub(crate) sessions: usize,
    pub(crate) keys: usize,
    pub(crate) ops: usize,
    pub(crate) lists: bool,
    pub(crate) repeated: bool,
    pub(crate) faults: bool,
    pub(crate) times: bool,
}

/// Writes a random history: clients of a store that sometimes returns old or mixed states.
pub(crate) fn random_history(random: &mut Random, shape: Shape) -> String {
    let mut sessions: Vec<String> = (0..shape.sessions).map(|s| format!("t{s}:")).collect();
    let mut next = 1;
    // All versions of each key so far, as reads return them.
    let mut versions: Vec<Vec<String>> =
        vec![vec![if shape.lists { "[]".into() } else { "0".into() }]; shape.keys];
    let mut lists: Vec<Vec<usize>> = vec![Vec::new(); shape.keys];
    let count = 1 + random.below(shape.transactions);
    let mut clock = vec![0usize; shape.sessions];
    for at in 0..count {
        let s = random.below(shape.sessions);
        let mut ops: Vec<String> = Vec::new();
        let mut own: Vec<Vec<usize>> = vec![Vec::new(); shape.keys];
        let mut own_value: Vec<Option<usize>> = vec![None; shape.keys];
        let staleness = 1 + random.below(3);
        for _ in 0..1 + random.below(shape.ops) {
            let k = random.below(shape.keys);
            let key = ["x", "y", "z"][k];
            if random.one_in(2) {
                let value = if shape.repeated { 1 + random.below(2) } else { next };
                next += 1;
                if shape.lists {
                    ops.push(format!("append({key},{value})"));
                    own[k].push(value);
                } else {
                    ops.push(format!("w({key},{value})"));
                    own_value[k] = Some(value);
                }
                continue;
            }
            let known = versions[k].len();
            let shown = &versions[k][known - 1 - random.below(staleness.min(known))];
            if shape.lists {
                let mut list: Vec<String> = shown
                    .trim_matches(['[', ']'])
                    .split(',')
                    .filter(|e| !e.is_empty())
                    .map(String::from)
                    .collect();
                if !random.one_in(40) {
                    list.extend(own[k].iter().map(ToString::to_string));
                }
                ops.push(format!("r({key},[{}])", list.join(",")));
            } else if let Some(value) = own_value[k].filter(|_| !random.one_in(40)) {
                ops.push(format!("r({key},{value})"));
            } else {
                ops.push(format!("r({key},{shown})"));
            }
        }
        let status = match random.below(if shape.faults { 8 } else { 1 }) {
            1 => "!",
            2 => "?",
            _ => "",
        };
        if status != "!" || random.one_in(4) {
            for k in 0..shape.keys {
                if shape.lists && !own[k].is_empty() {
                    if !random.one_in(30) {
                        lists[k].extend(&own[k]);
                    } else {
                        lists[k].splice(0..0, own[k].iter().copied());
                    }
                    let list: Vec<String> = lists[k].iter().map(ToString::to_string).collect();
                    versions[k].push(format!("[{}]", list.join(",")));
                }
                if let Some(value) = own_value[k] {
                    versions[k].push(value.to_string());
                }
            }
        }
        let time = if shape.times {
            let start = (clock[s] + 1).max((3 * at).saturating_sub(random.below(8)));
            clock[s] = start + random.below(6);
            format!(" @{start}..{}", clock[s])
        } else {
            String::new()
        };
        let ops: Vec<String> = ops.iter().map(|op| format!("{op}{time}")).collect();
        sessions[s] += &format!(" [ {} ]{status}", ops.join(" "));
    }
    sessions.join("\n") + "\n"
}
