//! Linearizability of reads and writes: the decider by zones, the definition and a search over all
//! orders agree, and the independent checker accepts every certificate and no damaged one.

use consistory_certify::{certify, certify_definition};
use consistory_history::{Action, Details, History, HistoryBuilder, Interval, OpId, Status};
use consistory_models::{EvaluateOptions, evaluate, linearizability};
use consistory_registers::{Options, decide_linearizable};
use consistory_testkit::{Random, rounds, text};
use consistory_verdict::{Certificate, Judgement, Verdict};

/// An operation in a test: whether it writes, its key, its value, its status.
#[derive(Clone, Copy)]
struct Plain {
    writes: bool,
    key: u32,
    value: i64,
    status: Status,
}

/// Builds a history from sessions of operations with their times.
fn build(sessions: &[Vec<(Plain, Interval)>]) -> History {
    let mut b = HistoryBuilder::new();
    for (i, ops) in sessions.iter().enumerate() {
        let session = b.session(&format!("t{i}"));
        for &(Plain { writes, key, value, status }, time) in ops {
            let (key, value) = (b.key(&format!("x{key}")), b.int(value));
            let action = match writes {
                true => Action::Write { key, value },
                false => Action::Read { key, value },
            };
            let details = Details { status, time: Some(time), ..Details::default() };
            b.push_with(session, action, details);
        }
    }
    b.finish().unwrap()
}

/// Tries every order, by the definition of linearizability.
fn is_linearizable(history: &History) -> bool {
    fn end(history: &History, op: OpId) -> i64 {
        let end = history.time(op).unwrap().end;
        end.filter(|_| history.is_certain(op)).unwrap_or(i64::MAX)
    }
    fn go(history: &History, placed: &mut Vec<bool>, values: &mut Vec<i64>) -> bool {
        let is_open = |op: &OpId| !placed[op.index()] && history.status(*op) != Status::Fail;
        let open: Vec<OpId> = history.ops().filter(is_open).collect();
        if !open.iter().any(|&op| history.is_certain(op)) {
            return true;
        }
        open.iter().any(|&op| {
            let start = history.time(op).unwrap().start;
            if open.iter().any(|&other| end(history, other) < start) {
                return false;
            }
            let value = |id| match history.value(id) {
                consistory_history::Value::Int(value) => *value,
                other => panic!("{other:?}"),
            };
            let before = values.clone();
            match history.action(op) {
                Action::Write { key, value: id } => values[key.index()] = value(id),
                Action::Read { key, value: id } => {
                    if history.is_certain(op) && values[key.index()] != value(id) {
                        return false;
                    }
                }
                _ => unreachable!(),
            }
            placed[op.index()] = true;
            let found = go(history, placed, values);
            placed[op.index()] = false;
            *values = before;
            found
        })
    }
    go(history, &mut vec![false; history.len()], &mut vec![0; history.key_count()])
}

/// Compares the decider, the definition and the search; returns the verdict.
fn assert_agrees(history: &History) -> Verdict {
    let show = || {
        let times = history.ops().map(|op| format!("{:?}", history.time(op).unwrap()));
        format!("{}\n{}", text(history), times.collect::<Vec<_>>().join("\n"))
    };
    let expected = match is_linearizable(history) {
        true => Verdict::Consistent,
        false => Verdict::Violation,
    };
    let definition = &linearizability().definition;
    let reference = evaluate(definition, history, &EvaluateOptions::default()).unwrap();
    assert_eq!(reference.verdict(), expected, "the definition on\n{}", show());
    let certificate = reference.certificate().unwrap();
    if let Err(rejection) = certify_definition(history, definition, expected, certificate) {
        panic!("{rejection}: {certificate:?} of\n{}", show());
    }
    let judgement = decide_linearizable(history, &Options::default()).judgement;
    assert_eq!(judgement.verdict(), expected, "{judgement:?} of\n{}", show());
    let certificate = judgement.certificate().unwrap();
    if let Err(rejection) = certify(history, "linearizability", expected, certificate) {
        panic!("{rejection}: {certificate:?} of\n{}", show());
    }
    expected
}

/// Builds a random history of a few overlapping operations.
fn random_history(random: &mut Random, most: usize, keys: usize, values: usize) -> History {
    let count = 2 + random.below(4);
    let mut sessions = Vec::new();
    for _ in 0..count {
        let mut now = random.below(6) as i64;
        let mut ops = Vec::new();
        for _ in 0..random.below(most + 1) {
            let writes = random.chance(50);
            let value = random.below(values + 1) as i64;
            let (status, end) = match random.below(10) {
                0 => (Status::Unknown, None),
                1 => (Status::Unknown, Some(now + random.below(9) as i64)),
                2 if random.chance(30) => (Status::Fail, Some(now)),
                _ => (Status::Ok, Some(now + random.below(9) as i64)),
            };
            let key = random.below(keys) as u32;
            let plain = Plain { writes, key, value: value.max(i64::from(writes)), status };
            ops.push((plain, Interval { start: now, end }));
            // An operation that ends at some time does not meet one that starts then.
            now = end.unwrap_or(now).max(now) + 1 + random.below(4) as i64;
        }
        sessions.push(ops);
    }
    build(&sessions)
}

#[test]
fn every_small_history_is_judged_as_defined() {
    // All ways in which three operations can overlap: three pairs of six points in time.
    let mut overlaps = Vec::new();
    for a in 0..6 {
        for b in a + 1..6 {
            let rest: Vec<i64> = (0..6).filter(|t| *t != a && *t != b).collect();
            for i in 1..4 {
                let others: Vec<i64> = (1..4).filter(|j| *j != i).map(|j| rest[j]).collect();
                overlaps.push([(a, b), (rest[0], rest[i]), (others[0], others[1])]);
            }
        }
    }
    assert_eq!(overlaps.len(), 45);
    let plain = |kind: usize| match kind {
        0..3 => Plain { writes: false, key: 0, value: kind as i64, status: Status::Ok },
        3..5 => Plain { writes: true, key: 0, value: kind as i64 - 2, status: Status::Ok },
        _ => Plain { writes: true, key: 0, value: 1, status: Status::Unknown },
    };
    let mut tally = [0, 0];
    for times in &overlaps {
        for kinds in 0..6 * 6 * 6 {
            let sessions: Vec<Vec<(Plain, Interval)>> = (0..3)
                .map(|i| {
                    let kind = kinds / [1, 6, 36][i] % 6;
                    let (start, end) = times[i];
                    vec![(plain(kind), Interval { start, end: Some(end) })]
                })
                .collect();
            let verdict = assert_agrees(&build(&sessions));
            tally[usize::from(verdict == Verdict::Violation)] += 1;
        }
    }
    assert!(tally[0] > 2_000 && tally[1] > 2_000, "{tally:?}");
}

#[test]
fn random_histories_are_judged_as_defined() {
    let mut random = Random(11);
    let mut tally = [0, 0];
    for round in 0..rounds(6_000, 200_000) {
        // Mostly distinct values, sometimes few that repeat.
        let values = if round % 3 == 0 { 2 } else { 5 };
        let history = random_history(&mut random, 2, 2, values);
        let verdict = assert_agrees(&history);
        tally[usize::from(verdict == Verdict::Violation)] += 1;
    }
    assert!(tally[0] > 500 && tally[1] > 500, "{tally:?}");
}

#[test]
fn damaged_certificates_are_rejected() {
    let mut random = Random(5);
    let mut rejected = [0, 0];
    for _ in 0..rounds(3_000, 50_000) {
        let history = random_history(&mut random, 2, 1, 6);
        let judgement = decide_linearizable(&history, &Options::default()).judgement;
        match judgement.certificate().unwrap().clone() {
            Certificate::Order { mut order, wr } if order.len() > 1 => {
                // Another order is a proof only if it is a linearization, which the test checks
                // itself.
                let (i, j) = (random.below(order.len()), random.below(order.len()));
                order.swap(i, j);
                let is_one = is_linearization(&history, &order, &wr);
                let damaged = Certificate::Order { order, wr };
                let accepted = certify(&history, "linearizability", Verdict::Consistent, &damaged);
                assert_eq!(accepted.is_ok(), is_one, "{accepted:?}\n{}", text(&history));
                rejected[0] += usize::from(!is_one);
            }
            Certificate::Cycle { mut edges, .. } => {
                // A cycle with a reversed edge of real time, or with one between other operations.
                let Some(at) = edges.iter().position(|edge| edge.relation == "rt") else {
                    continue;
                };
                let edge = &mut edges[at];
                std::mem::swap(&mut edge.from, &mut edge.to);
                let damaged = Certificate::Cycle { edges, observer: None, check: None };
                let accepted = certify(&history, "linearizability", Verdict::Violation, &damaged);
                assert!(accepted.is_err(), "{damaged:?}");
                rejected[1] += 1;
            }
            _ => {}
        }
        // No cycle of a violation proves anything about a linearizable history.
        if let Judgement::Violation { certificate, .. } = judgement {
            let other = random_history(&mut random, 2, 1, 6);
            if is_linearizable(&other) {
                let claim = certify(&other, "linearizability", Verdict::Violation, &certificate);
                assert!(claim.is_err(), "{certificate:?}\n{}", text(&other));
            }
        }
    }
    assert!(rejected.iter().all(|&count| count > 100), "{rejected:?}");
}

/// Checks an order by the definition, pair by pair.
fn is_linearization(history: &History, order: &[OpId], wr: &[(OpId, OpId)]) -> bool {
    let end = |op: OpId| {
        let end = history.time(op).unwrap().end;
        end.filter(|_| history.is_certain(op)).unwrap_or(i64::MAX)
    };
    let keeps_time = order
        .iter()
        .enumerate()
        .all(|(i, &a)| order[i + 1..].iter().all(|&b| end(b) >= history.time(a).unwrap().start));
    let mut last: Vec<OpId> = history.keys().map(|key| history.initial_write(key)).collect();
    let reads_last = order.iter().all(|&op| {
        if let Some((key, value)) = history.reads(op) {
            let source = last[key.index()];
            let chosen = wr.iter().find(|(read, _)| *read == op);
            if history.writes(source).map(|(_, v)| v) != Some(value)
                || chosen.is_some_and(|&(_, write)| write != source)
            {
                return false;
            }
        }
        if let Some((key, _)) = history.writes(op) {
            last[key.index()] = op;
        }
        true
    });
    keeps_time && reads_last
}
