//! What the tests of the deciders share: small histories, all of them or at random, and CC, CCv and
//! CM by definition, written as plainly as possible.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::ops::Range;

use consistory_check::CausalModel;
use consistory_generate::{Memory, PlantOptions, Workload, generate, plant};
use consistory_history::{Action, Details, History, HistoryBuilder, OpId, Status};

/// A small generator of random numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// An operation of a history to be: keys and values are small numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Read(usize, i64),
    Write(usize, i64),
    Rmw(usize, i64, i64),
    Fence,
}

/// Builds a history of sessions `t0, t1, ..` and keys `x0, x1, ..`.
pub fn build(sessions: &[Vec<(Op, Status)>]) -> History {
    let mut b = HistoryBuilder::new();
    for (s, ops) in sessions.iter().enumerate() {
        let session = b.session(&format!("t{s}"));
        for &(op, status) in ops {
            let mut key = |k: usize| b.key(&format!("x{k}"));
            let action = match op {
                Op::Read(k, v) => Action::Read { key: key(k), value: b.int(v) },
                Op::Write(k, v) => Action::Write { key: key(k), value: b.int(v) },
                Op::Rmw(k, r, w) => Action::Rmw { key: key(k), read: b.int(r), write: b.int(w) },
                Op::Fence => Action::Fence,
            };
            b.push_with(session, action, Details { status, ..Details::default() });
        }
    }
    b.finish().unwrap()
}

/// Shows a history in text notation.
pub fn text(history: &History) -> String {
    let mut lines = String::new();
    for session in history.sessions() {
        lines += history.session_name(session);
        lines += ":";
        for op in history.session_ops(session) {
            let status = match history.own_status(op) {
                Status::Ok => "",
                Status::Fail => "!",
                Status::Unknown => "?",
            };
            lines += &format!(" {}{status}", history.show(op));
        }
        lines += "\n";
    }
    lines
}

/// Calls `visit` on every history with sessions of the given lengths and two keys, in which writes
/// of a key write 1, 2, .. in the order of operations and reads return any of these or 0.
pub fn every_history(lengths: &[usize], keys: usize, mut visit: impl FnMut(&History)) {
    let total: usize = lengths.iter().sum();
    // An operation is a read or a write of a key: 2 * keys shapes.
    for shape in 0..(2 * keys).pow(total as u32) {
        let mut rest = shape;
        let shapes: Vec<(bool, usize)> = (0..total)
            .map(|_| {
                let (write, key) = (rest % 2 == 1, rest / 2 % keys);
                rest /= 2 * keys;
                (write, key)
            })
            .collect();
        let mut writes = vec![0i64; keys];
        for &(write, key) in &shapes {
            writes[key] += i64::from(write);
        }
        let reads: Vec<usize> = (0..total).filter(|&i| !shapes[i].0).collect();
        let mut values = vec![0i64; total];
        loop {
            let mut next = vec![0i64; keys];
            let mut ops = shapes.iter().enumerate().map(|(i, &(write, key))| {
                next[key] += i64::from(write);
                if write { Op::Write(key, next[key]) } else { Op::Read(key, values[i]) }
            });
            let sessions: Vec<Vec<(Op, Status)>> = lengths
                .iter()
                .map(|&length| ops.by_ref().take(length).map(|op| (op, Status::Ok)).collect())
                .collect();
            drop(ops);
            visit(&build(&sessions));
            // Count up the values of the reads.
            let advanced = reads.iter().any(|&read| {
                let wraps = values[read] == writes[shapes[read].1];
                values[read] = if wraps { 0 } else { values[read] + 1 };
                !wraps
            });
            if !advanced {
                break;
            }
        }
    }
}

/// Calls `visit` on every history with sessions of the given lengths in which each operation reads or
/// writes some key and one of the values 0, 1, .. up to the greatest.
pub fn every_history_of_values(
    lengths: &[usize],
    keys: usize,
    greatest: usize,
    mut visit: impl FnMut(&History),
) {
    let total: usize = lengths.iter().sum();
    let shapes = 2 * keys * (greatest + 1);
    for shape in 0..shapes.pow(total as u32) {
        let mut rest = shape;
        let mut ops = (0..total).map(|_| {
            let (write, key, value) = (rest % 2 == 1, rest / 2 % keys, rest % shapes / 2 / keys);
            rest /= shapes;
            let value = value as i64;
            (if write { Op::Write(key, value) } else { Op::Read(key, value) }, Status::Ok)
        });
        let sessions: Vec<Vec<(Op, Status)>> =
            lengths.iter().map(|&length| ops.by_ref().take(length).collect()).collect();
        drop(ops);
        visit(&build(&sessions));
    }
}

/// Calls `visit` on what random clients do on each simulated memory, and on the same with reads that
/// find another write's value.
pub fn executions(seeds: Range<u64>, mut visit: impl FnMut(&History)) {
    for seed in seeds {
        for memory in Memory::ALL {
            let workload = Workload {
                sessions: 2 + seed as u32 % 5,
                operations: 20 + seed as u32 % 31,
                variables: 1 + seed as u32 % 6,
                rmw_share: if seed % 3 == 0 { 0.1 } else { 0.0 },
                seed,
                ..Workload::default()
            };
            let history = generate(&workload, memory);
            visit(&history);
            visit(&plant(
                &history,
                &PlantOptions { distance: 20, seed, ..PlantOptions::default() },
            ));
        }
    }
}

/// How random histories are made.
#[derive(Clone, Copy)]
pub struct Shape {
    pub sessions: usize,
    pub operations: usize,
    pub keys: usize,
    /// Whether values may repeat.
    pub duplicates: bool,
    /// Whether read-modify-writes, fences and statuses other than ok occur.
    pub mixed: bool,
}

/// Makes a random history: reads return values that some write of the key has, mostly.
pub fn random_history(random: &mut Random, shape: Shape) -> History {
    let sessions = 1 + random.below(shape.sessions);
    let total = 1 + random.below(shape.operations);
    let mut next = vec![0i64; shape.keys];
    let mut value = |random: &mut Random, key: usize| {
        if shape.duplicates {
            random.below(3) as i64
        } else {
            next[key] += 1;
            next[key]
        }
    };
    let mut plan: Vec<(usize, Op, Status)> = Vec::new();
    for _ in 0..total {
        let session = random.below(sessions);
        let key = random.below(shape.keys);
        let kind = random.below(if shape.mixed { 12 } else { 10 });
        let op = match kind {
            0..5 => Op::Read(key, 0),
            5..10 => Op::Write(key, value(random, key)),
            10 => Op::Rmw(key, 0, value(random, key)),
            _ => Op::Fence,
        };
        let status = match random.below(16) {
            0 if shape.mixed => Status::Fail,
            1 if shape.mixed => Status::Unknown,
            _ => Status::Ok,
        };
        plan.push((session, op, status));
    }
    let written: Vec<(usize, i64)> = plan
        .iter()
        .filter_map(|&(_, op, _)| match op {
            Op::Write(k, v) | Op::Rmw(k, _, v) => Some((k, v)),
            _ => None,
        })
        .collect();
    let mut made = vec![Vec::new(); sessions];
    for (session, op, status) in plan {
        let mut found = |key: usize| {
            let options: Vec<i64> =
                written.iter().filter(|(k, _)| *k == key).map(|(_, v)| *v).collect();
            match random.below(options.len() + 1) {
                0 => i64::from(random.below(40) == 0) * 99,
                i => options[i - 1],
            }
        };
        let op = match op {
            Op::Read(k, _) => Op::Read(k, found(k)),
            Op::Rmw(k, _, w) => Op::Rmw(k, found(k), w),
            op => op,
        };
        made[session].push((op, status));
    }
    build(&made)
}

/// Decides by definition: tries every choice of `wr`, with relations as matrices of booleans.
pub fn holds(history: &History, model: CausalModel) -> bool {
    let reads: Vec<(OpId, Vec<OpId>)> = history
        .ops()
        .filter_map(|read| {
            let (key, value) = history.reads(read)?;
            let all = history.ops().chain(history.keys().map(|k| history.initial_write(k)));
            let sources =
                all.filter(|&w| w != read && history.writes(w) == Some((key, value))).collect();
            Some((read, sources))
        })
        .collect();
    let mut choice = vec![0; reads.len()];
    loop {
        let wr: Option<Vec<(OpId, OpId)>> = reads
            .iter()
            .zip(&choice)
            .map(|((read, sources), &at)| Some((*sources.get(at)?, *read)))
            .collect();
        if wr.is_some_and(|wr| holds_with(history, &wr, model)) {
            return true;
        }
        let advanced = choice.iter_mut().zip(&reads).any(|(at, (_, sources))| {
            let wraps = *at + 1 >= sources.len();
            *at = if wraps { 0 } else { *at + 1 };
            !wraps
        });
        if !advanced {
            return false;
        }
    }
}

type Matrix = Vec<Vec<bool>>;

fn close(r: &mut Matrix) {
    for k in 0..r.len() {
        for i in 0..r.len() {
            if r[i][k] {
                let through = r[k].clone();
                r[i].iter_mut().zip(through).for_each(|(slot, reached)| *slot |= reached);
            }
        }
    }
}

fn irreflexive(r: &Matrix) -> bool {
    (0..r.len()).all(|i| !r[i][i])
}

fn holds_with(history: &History, wr: &[(OpId, OpId)], model: CausalModel) -> bool {
    let n = history.len() + history.key_count();
    let recorded = history.len();
    let key = |op: usize| {
        let op = OpId::new(op);
        let counts =
            history.is_initial(op) || history.is_certain(op) || wr.iter().any(|&(w, _)| w == op);
        history.writes(op).filter(|_| counts).map(|(key, _)| key)
    };
    let same = |a: usize, b: usize| key(a).is_some() && key(a) == key(b) && a != b;
    let mut co = vec![vec![false; n]; n];
    for (a, row) in co.iter_mut().enumerate() {
        for (b, slot) in row.iter_mut().enumerate().take(recorded) {
            let (x, y) = (OpId::new(a), OpId::new(b));
            *slot = a >= recorded || (history.session_of(x) == history.session_of(y) && a < b);
        }
    }
    let po = co.clone();
    for &(w, r) in wr {
        co[w.index()][r.index()] = true;
    }
    let base = co.clone();
    close(&mut co);
    if !irreflexive(&co) {
        return false;
    }
    for &(w, r) in wr {
        let (w, r) = (w.index(), r.index());
        if (0..n).any(|v| same(w, v) && v != r && co[w][v] && co[v][r]) {
            return false;
        }
    }
    match model {
        CausalModel::Cc => true,
        CausalModel::Ccv => {
            let mut all = base;
            for &(w, r) in wr {
                for v in 0..n {
                    if same(v, w.index()) && co[v][r.index()] {
                        all[v][w.index()] = true;
                    }
                }
            }
            close(&mut all);
            irreflexive(&all)
        }
        CausalModel::Cm => (0..recorded).all(|o| {
            let past = |a: usize| a == o || co[a][o];
            let mut hb = vec![vec![false; n]; n];
            for (a, row) in hb.iter_mut().enumerate() {
                for (b, slot) in row.iter_mut().enumerate() {
                    *slot = co[a][b] && past(a) && past(b);
                }
            }
            loop {
                let mut grew = false;
                for &(w, r) in wr {
                    let (w, r) = (w.index(), r.index());
                    if r != o && !po[r][o] {
                        continue;
                    }
                    for (v, row) in hb.iter_mut().enumerate() {
                        if same(v, w) && row[r] && !row[w] {
                            row[w] = true;
                            grew = true;
                        }
                    }
                }
                close(&mut hb);
                if !grew {
                    return irreflexive(&hb);
                }
            }
        }),
    }
}
