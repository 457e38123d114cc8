//! Certificates are checked without the evaluator.

use std::collections::{BTreeMap, HashSet};

use crate::support::plain::{Choice, Op, Rel, is_acyclic, operations, relation, union};
use crate::support::{Random, Shape, history, judge, random_history};
use consistory_history::{History, OpId};
use consistory_models::{catalogue, find};
use consistory_verdict::{Certificate, Edge, Judgement};

const SHAPE: Shape = Shape {
    sessions: 3,
    operations: 9,
    keys: 2,
    values: 0,
    with_rmw: true,
    with_fences: true,
    with_unknown: false,
};

fn shapes() -> impl Iterator<Item = (u64, String)> {
    let shapes = [
        SHAPE,
        Shape { values: 2, operations: 7, ..SHAPE },
        Shape { keys: 1, with_fences: false, ..SHAPE },
        Shape { sessions: 2, operations: 10, with_rmw: false, ..SHAPE },
        Shape { values: 2, operations: 7, with_unknown: true, ..SHAPE },
    ];
    (0..400u64).map(move |seed| {
        (seed, random_history(&mut Random(seed), shapes[seed as usize % shapes.len()]))
    })
}

/// Returns the source of each read, under the choices that a certificate lists.
fn reads_from(h: &History, chosen: &[(OpId, OpId)]) -> BTreeMap<OpId, OpId> {
    let writes = || h.ops().chain(h.keys().map(|key| h.initial_write(key)));
    h.ops()
        .filter_map(|read| {
            let wanted = h.reads(read)?;
            let mut candidates = writes().filter(|&w| w != read && h.writes(w) == Some(wanted));
            let listed = chosen.iter().find(|pair| pair.0 == read).map(|pair| pair.1);
            let write = listed.or_else(|| candidates.next())?;
            assert_eq!(h.writes(write), Some(wanted));
            assert!(listed.is_some() || candidates.next().is_none(), "an ambiguous read is listed");
            Some((read, write))
        })
        .collect()
}

fn counts(h: &History, wr: &BTreeMap<OpId, OpId>, op: OpId) -> bool {
    h.is_initial(op) || h.is_certain(op) || wr.values().any(|&write| write == op)
}

#[test]
fn an_order_can_be_replayed() {
    let sc = &find("sc").unwrap().definition;
    let mut replayed = 0;
    for (seed, text) in shapes() {
        let h = history(&text);
        let Judgement::Consistent(Certificate::Order { order, wr }) = judge(sc, &h) else {
            continue;
        };
        replayed += 1;
        let wr = reads_from(&h, &wr);
        let expected: Vec<OpId> = h.ops().filter(|&op| counts(&h, &wr, op)).collect();
        let mut sorted = order.clone();
        sorted.sort();
        assert_eq!(sorted, expected, "seed {seed}\n{text}");
        let mut last: Vec<OpId> = h.keys().map(|key| h.initial_write(key)).collect();
        let mut seen: HashSet<OpId> = HashSet::new();
        for op in order {
            let earlier = |other: &OpId| h.session_of(*other) == h.session_of(op) && *other < op;
            assert!(expected.iter().filter(|o| earlier(o)).all(|o| seen.contains(o)));
            seen.insert(op);
            if let Some((key, _)) = h.reads(op) {
                assert_eq!(last[key.index()], wr[&op], "seed {seed}\n{text}");
            }
            if let Some((key, _)) = h.writes(op) {
                last[key.index()] = op;
            }
        }
    }
    assert!(replayed > 20, "{replayed}");
}

#[test]
fn a_witness_of_total_store_order_makes_both_relations_acyclic() {
    let tso = &find("tso").unwrap().definition;
    let mut checked = 0;
    for (seed, text) in shapes() {
        let h = history(&text);
        let Judgement::Consistent(Certificate::Witness { ww, wr }) = judge(tso, &h) else {
            continue;
        };
        checked += 1;
        let wr = reads_from(&h, &wr);
        // The plain models number the initial writes first.
        let all: Vec<OpId> = h.keys().map(|key| h.initial_write(key)).chain(h.ops()).collect();
        let shown: Vec<OpId> = all.into_iter().filter(|&op| counts(&h, &wr, op)).collect();
        let plain: Vec<Op> = {
            let ops = operations(&h);
            let ids: Vec<OpId> = h.keys().map(|key| h.initial_write(key)).chain(h.ops()).collect();
            ids.iter().zip(ops).filter(|(id, _)| shown.contains(id)).map(|(_, op)| op).collect()
        };
        let place = |op: OpId| shown.iter().position(|&o| o == op).unwrap();
        let mut order: Rel = relation(0, |_, _| false);
        for (key, writes) in &ww {
            let expected: HashSet<OpId> = shown
                .iter()
                .copied()
                .filter(|&op| h.writes(op).is_some_and(|(k, _)| k == *key))
                .collect();
            assert_eq!(writes.iter().copied().collect::<HashSet<_>>(), expected);
            assert_eq!(writes[0], h.initial_write(*key));
            for (i, &first) in writes.iter().enumerate() {
                for &second in &writes[i + 1..] {
                    order[place(first)][place(second)] = true;
                }
            }
        }
        let mut wr_rel: Rel = relation(0, |_, _| false);
        for (&read, &write) in &wr {
            wr_rel[place(write)][place(read)] = true;
        }
        let choice = Choice { ops: plain, wr: wr_rel };
        let (wre, rw) = (choice.wre(), choice.rw(&order));
        for p in [choice.ppo(), choice.poloc()] {
            assert!(is_acyclic(&union(&[&p, &wre, &order, &rw])), "seed {seed}\n{text}");
        }
    }
    assert!(checked > 20, "{checked}");
}

/// Assumptions on the path to a leaf of a proof by cases.
#[derive(Clone, Default)]
struct Context {
    before: Vec<(OpId, OpId)>,
    reads: Vec<(OpId, OpId)>,
}

struct Checker<'a> {
    h: &'a History,
    splits: usize,
    derived: usize,
}

impl Checker<'_> {
    fn certificate(&mut self, certificate: &Certificate, context: &Context) {
        match certificate {
            Certificate::ThinAirRead { read } => {
                let wanted = self.h.reads(*read);
                assert!(self.h.ops().all(|op| op == *read || self.h.writes(op) != wanted));
            }
            Certificate::Cycle { edges, .. } => {
                assert!(!edges.is_empty());
                for (i, edge) in edges.iter().enumerate() {
                    assert_eq!(edge.to, edges[(i + 1) % edges.len()].from, "{edges:#?}");
                }
                let mut seen = HashSet::new();
                for edge in edges {
                    self.edge(edge, context, &mut seen);
                }
            }
            Certificate::SplitOrder { writes: [a, b], branches } => {
                self.splits += 1;
                assert_eq!(self.h.writes(*a).unwrap().0, self.h.writes(*b).unwrap().0);
                for (branch, pair) in branches.iter().zip([(*a, *b), (*b, *a)]) {
                    let mut context = context.clone();
                    context.before.push(pair);
                    self.certificate(branch, &context);
                }
            }
            Certificate::SplitRead { read, branches } => {
                self.splits += 1;
                let wanted = self.h.reads(*read);
                let all = self.h.ops().chain(self.h.keys().map(|key| self.h.initial_write(key)));
                let candidates: HashSet<OpId> =
                    all.filter(|&w| w != *read && self.h.writes(w) == wanted).collect();
                assert_eq!(branches.iter().map(|b| b.0).collect::<HashSet<_>>(), candidates);
                for (write, branch) in branches {
                    let mut context = context.clone();
                    context.reads.push((*read, *write));
                    self.certificate(branch, &context);
                }
            }
            other => panic!("{other:?} proves no violation"),
        }
    }

    fn edge(&mut self, edge: &Edge, context: &Context, seen: &mut HashSet<(OpId, OpId, String)>) {
        let h = self.h;
        for premise in &edge.because {
            self.edge(premise, context, seen);
        }
        let (from, to) = (edge.from, edge.to);
        let key = (from, to, edge.relation.to_string());
        match edge.relation.as_str() {
            "po" => assert!(
                !h.is_initial(to)
                    && (h.is_initial(from)
                        || (h.session_of(from) == h.session_of(to) && from < to))
            ),
            "wr" => {
                assert_eq!(h.writes(from), h.reads(to));
                let all = h.ops().chain(h.keys().map(|key| h.initial_write(key)));
                let candidates = all.filter(|&w| w != to && h.writes(w) == h.reads(to)).count();
                assert!(candidates == 1 || context.reads.contains(&(to, from)), "{edge:?}");
            }
            "ww" if edge.because.is_empty() => assert!(
                h.is_initial(from) || context.before.contains(&(from, to)) || seen.contains(&key),
                "{edge:?}"
            ),
            "rw[ww]" if !edge.because.is_empty() => {
                let [wr, ww] = &edge.because[..] else { panic!("{edge:?}") };
                assert_eq!((wr.relation.as_str(), ww.relation.as_str()), ("wr", "ww"));
                assert_eq!((wr.from, wr.to, ww.to), (ww.from, from, to));
            }
            _ => {
                self.derived += 1;
                assert!(!edge.because.is_empty() || seen.contains(&key), "{edge:?}");
            }
        }
        seen.insert(key);
    }
}

#[test]
fn violations_are_proved_down_to_what_is_given_or_assumed() {
    let (mut splits, mut derived) = (0, 0);
    for (seed, text) in shapes() {
        let h = history(&text);
        for model in catalogue() {
            if let Judgement::Violation { certificate, .. } = judge(&model.definition, &h) {
                let mut checker = Checker { h: &h, splits: 0, derived: 0 };
                // If this fails, the message of the panic contains the seed.
                let _on_failure = OnFailure(format!("{} of seed {seed}\n{text}", model.id));
                checker.certificate(&certificate, &Context::default());
                splits += checker.splits;
                derived += checker.derived;
            }
        }
    }
    assert!(splits > 50 && derived > 1_000, "{splits} {derived}");
}

/// Prints the history being checked if a check panics.
struct OnFailure(String);

impl Drop for OnFailure {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("while checking {}", self.0);
        }
    }
}
