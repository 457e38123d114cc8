//! Register histories for tests: functions that build, format, generate and enumerate them.

use consistory_history::{Action, Details, History, HistoryBuilder, Status};

use crate::random::Random;

/// An operation of a history to be built: keys and values are small numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A read of a key that returned a value.
    Read(usize, i64),
    /// A write of a value to a key.
    Write(usize, i64),
    /// A read-modify-write: key, value read, value written.
    Rmw(usize, i64, i64),
    /// A fence.
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

/// Returns a history in text notation.
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

/// Calls `visit` on every history with sessions of the given lengths and the given number of keys,
/// in which the writes of a key write 1, 2, .. in the order of operations and reads return any of
/// these values or 0.
pub fn every_history(lengths: &[usize], keys: usize, mut visit: impl FnMut(&History)) {
    let total: usize = lengths.iter().sum();
    // An operation is a read or a write of a key, which makes 2 * keys shapes.
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
            // Advance to the next combination of the values of the reads.
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

/// Calls `visit` on every history with sessions of the given lengths in which each operation reads
/// or writes some key and one of the values 0, 1, .. up to the greatest.
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

/// Parameters of random histories.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Largest number of sessions.
    pub sessions: usize,
    /// Largest number of operations.
    pub operations: usize,
    /// Number of keys.
    pub keys: usize,
    /// Whether values may repeat.
    pub duplicates: bool,
    /// Whether read-modify-writes, fences and statuses other than ok occur.
    pub mixed: bool,
}

/// Generates a history; most reads return a value that some write of the key has.
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
