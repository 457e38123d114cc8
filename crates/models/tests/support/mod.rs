//! Histories in text, and random and exhaustive sources of them.
//!
//! One line per session, `t0: w(x,1) r(y,0) rmw(x,0,1) f`; after an operation `!` says that it failed
//! and `?` that it is indeterminate; `init: x=5` and `final: x=1` set initial and final values.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod plain;

use consistory_history::{Action, Details, History, HistoryBuilder, Status};
use consistory_models::{Definition, EvaluateOptions, evaluate};
pub(crate) use consistory_testkit::Random;
use consistory_verdict::{Certificate, Judgement, Verdict};

pub(crate) fn history(text: &str) -> History {
    let mut b = HistoryBuilder::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, rest) = line.split_once(':').expect("a line is `name: ...`");
        for word in rest.split_whitespace() {
            if name == "init" || name == "final" {
                let (key, value) = word.split_once('=').expect("a value is `key=value`");
                let (key, value) = (b.key(key), b.int(value.parse().unwrap()));
                if name == "init" {
                    b.set_initial(key, value)
                } else {
                    b.set_final(key, value)
                }
                continue;
            }
            let session = b.session(name);
            let (word, status) = match word.as_bytes().last() {
                Some(b'!') => (&word[..word.len() - 1], Status::Fail),
                Some(b'?') => (&word[..word.len() - 1], Status::Unknown),
                _ => (word, Status::Ok),
            };
            let action = action(&mut b, word);
            b.push_with(session, action, Details { status, ..Details::default() });
        }
    }
    b.finish().unwrap()
}

fn action(b: &mut HistoryBuilder, word: &str) -> Action {
    if word == "f" {
        return Action::Fence;
    }
    let (method, rest) = word.split_once('(').expect("an operation is `method(...)`");
    let mut args = rest.trim_end_matches(')').split(',');
    let key = b.key(args.next().unwrap());
    let mut value = || b.int(args.next().unwrap().parse().unwrap());
    match method {
        "r" => Action::Read { key, value: value() },
        "w" => Action::Write { key, value: value() },
        "rmw" => Action::Rmw { key, read: value(), write: value() },
        _ => panic!("unknown method {method}"),
    }
}

pub(crate) fn judge(definition: &Definition, history: &History) -> Judgement<Certificate> {
    evaluate(definition, history, &EvaluateOptions::default()).unwrap()
}

pub(crate) fn verdict(definition: &Definition, history: &History) -> Verdict {
    judge(definition, history).verdict()
}

/// Parameters of random histories.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) sessions: usize,
    pub(crate) operations: usize,
    pub(crate) keys: usize,
    /// Number of distinct values written to a key; 0 makes every value new.
    pub(crate) values: usize,
    pub(crate) with_rmw: bool,
    pub(crate) with_fences: bool,
    pub(crate) with_unknown: bool,
}

/// Generates a random history; most reads return a value that was written.
pub(crate) fn random_history(random: &mut Random, shape: Shape) -> String {
    let mut next_value = vec![1; shape.keys];
    let mut sessions: Vec<Vec<String>> = vec![Vec::new(); shape.sessions];
    let names = ["x", "y", "z"];
    // The kinds are chosen first, then the values of reads among those written.
    let mut kinds = Vec::new();
    for _ in 0..shape.operations {
        let key = random.below(shape.keys);
        let kind = random.below(10);
        let written = match kind {
            _ if kind < 4 || (kind == 8 && shape.with_rmw) => {
                next_value[key] += 1;
                if shape.values > 0 { 1 + random.below(shape.values) } else { next_value[key] - 1 }
            }
            _ => 0,
        };
        kinds.push((random.below(shape.sessions), key, kind, written));
    }
    for &(session, key, kind, written) in &kinds {
        let values: Vec<usize> = std::iter::once(0)
            .chain(kinds.iter().filter(|k| k.1 == key && k.3 > 0).map(|k| k.3))
            .collect();
        let found = values[random.below(values.len())];
        let name = names[key];
        let mark = if shape.with_unknown && random.below(4) == 0 { "?" } else { "" };
        let text = match kind {
            0..4 => format!("w({name},{written}){mark}"),
            8 if shape.with_rmw => format!("rmw({name},{found},{written}){mark}"),
            9 if shape.with_fences => "f".to_owned(),
            _ => format!("r({name},{found})"),
        };
        sessions[session].push(text);
    }
    let lines: Vec<String> =
        sessions.iter().enumerate().map(|(i, ops)| format!("t{i}: {}", ops.join(" "))).collect();
    lines.join("\n")
}

/// Calls `visit` with every history of exactly `operations` operations in two sessions on keys x
/// and y, in which the writes of a key write 1, 2, ... in the order of the text.
pub(crate) fn every_history(operations: usize, visit: &mut dyn FnMut(&str)) {
    for first in operations.div_ceil(2)..=operations {
        let mut chosen = Vec::new();
        extend(operations, first, &mut chosen, visit);
    }
}

fn extend(operations: usize, first: usize, chosen: &mut Vec<usize>, visit: &mut dyn FnMut(&str)) {
    // 0 and 1 write x and y; 2 to 4 read x as 0, 1, 2, and 5 to 7 read y.
    if chosen.len() == operations {
        let writes = |key: usize| chosen.iter().filter(|&&c| c == key).count();
        let is_read = |c: usize| c >= 2 && (c - 2) % 3 <= writes((c - 2) / 3);
        // A read of a value that was never written violates every model: one kind is enough.
        if chosen.iter().all(|&c| c < 2 || is_read(c)) {
            let mut next = [0, 0];
            let ops: Vec<String> = chosen
                .iter()
                .map(|&c| {
                    let key = if c < 2 { c } else { (c - 2) / 3 };
                    let name = ["x", "y"][key];
                    if c < 2 {
                        next[key] += 1;
                        format!("w({name},{})", next[key])
                    } else {
                        format!("r({name},{})", (c - 2) % 3)
                    }
                })
                .collect();
            visit(&format!("t0: {}\nt1: {}", ops[..first].join(" "), ops[first..].join(" ")));
        }
        return;
    }
    for choice in 0..8 {
        chosen.push(choice);
        extend(operations, first, chosen, visit);
        chosen.pop();
    }
}
