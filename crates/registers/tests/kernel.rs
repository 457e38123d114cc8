//! The kernel contains the pairs that all sequential runs of a history agree on, and CCM's `pww` is
//! a part of it.

use std::collections::BTreeSet;

use crate::support::{Random, Shape, every_history, random_history, rounds, text};
use consistory_generate::{Memory, Workload, generate};
use consistory_history::{History, OpId};
use consistory_registers::{Engine, Finder, NoKernel, Options, Tuning, kernel};

type Pairs = BTreeSet<(OpId, OpId)>;

/// A history in which every read has at most one candidate, in a simple representation.
struct Plain<'h> {
    history: &'h History,
    source: Vec<Option<OpId>>,
}

impl<'h> Plain<'h> {
    fn new(history: &'h History) -> Self {
        let initial = history.keys().map(|key| history.initial_write(key));
        let all: Vec<OpId> = history.ops().chain(initial).collect();
        let from = |op| {
            let read = history.reads(op)?;
            all.iter().copied().find(|&w| w != op && history.writes(w) == Some(read))
        };
        Plain { history, source: history.ops().map(from).collect() }
    }

    fn counts(&self, op: OpId) -> bool {
        self.history.is_certain(op) || self.source.contains(&Some(op))
    }

    /// Returns whether both are different writes of one key that count, neither of them initial.
    fn are_a_pair(&self, a: OpId, b: OpId) -> bool {
        let writes = |op: OpId| match op.index() < self.history.len() && self.counts(op) {
            true => self.history.writes(op).map(|(key, _)| key),
            false => None,
        };
        a != b && writes(a).is_some() && writes(a) == writes(b)
    }

    /// Returns the pairs that all sequential runs have in the same order, if there is a run.
    fn agreed(&self) -> Option<Pairs> {
        let history = self.history;
        let sessions: Vec<Vec<OpId>> = history
            .sessions()
            .map(|s| history.session_ops(s).filter(|&op| self.counts(op)).collect())
            .collect();
        let mut agreed = None;
        let mut memory: Vec<OpId> = history.keys().map(|key| history.initial_write(key)).collect();
        let mut heads = vec![0; sessions.len()];
        self.run(&sessions, &mut heads, &mut memory, &mut Vec::new(), &mut agreed);
        agreed
    }

    fn run(
        &self,
        sessions: &[Vec<OpId>],
        heads: &mut [usize],
        memory: &mut Vec<OpId>,
        ran: &mut Vec<OpId>,
        agreed: &mut Option<Pairs>,
    ) {
        let mut ended = true;
        for s in 0..sessions.len() {
            let Some(&op) = sessions[s].get(heads[s]) else { continue };
            ended = false;
            if let Some((key, _)) = self.history.reads(op)
                && Some(memory[key.index()]) != self.source[op.index()]
            {
                continue;
            }
            let before = memory.clone();
            if let Some((key, _)) = self.history.writes(op) {
                memory[key.index()] = op;
            }
            heads[s] += 1;
            ran.push(op);
            self.run(sessions, heads, memory, ran, agreed);
            ran.pop();
            heads[s] -= 1;
            *memory = before;
        }
        if ended {
            let pairs = ran.iter().enumerate().flat_map(|(i, &a)| {
                let later = ran[i + 1..].iter().copied();
                later.filter(move |&b| self.are_a_pair(a, b)).map(move |b| (a, b))
            });
            let pairs: Pairs = pairs.collect();
            *agreed = Some(match agreed.take() {
                None => pairs,
                Some(known) => known.intersection(&pairs).copied().collect(),
            });
        }
    }

    /// Returns the pairs of CCM's `pww`, by definition.
    fn pww(&self) -> Pairs {
        let history = self.history;
        let size = history.len();
        let op = |i: usize| OpId(i as u32);
        let po =
            |a: usize, b: usize| history.session_of(op(a)) == history.session_of(op(b)) && a < b;
        let wr = |w: usize, r: usize| self.source[r] == Some(op(w));
        let mut co = matrix(size, |a, b| po(a, b) || wr(a, b));
        close(&mut co);
        let conflicts = |hb: &[Vec<bool>], seen: &dyn Fn(usize) -> bool| {
            let mut found = Vec::new();
            for r in (0..size).filter(|&r| seen(r)) {
                let Some(w) = self.source[r].map(OpId::index).filter(|&w| w < size) else {
                    continue;
                };
                let before = (0..size).filter(|&v| hb[v][r] && self.are_a_pair(op(v), op(w)));
                found.extend(before.map(|v| (v, w)));
            }
            found
        };
        let mut union = co.clone();
        for o in 0..size {
            let in_past = |a: usize| a == o || co[a][o];
            let mut hb = matrix(size, |a, b| co[a][b] && in_past(a) && in_past(b));
            loop {
                let before = hb.clone();
                for (v, w) in conflicts(&hb, &|r| r == o || po(r, o)) {
                    hb[v][w] = true;
                }
                close(&mut hb);
                if hb == before {
                    break;
                }
            }
            union = matrix(size, |a, b| union[a][b] || hb[a][b]);
        }
        close(&mut union);
        let mut pww = matrix(size, |a, b| union[a][b] && self.are_a_pair(op(a), op(b)));
        for (v, w) in conflicts(&union, &|_| true) {
            pww[v][w] = true;
        }
        close(&mut pww);
        let pairs = (0..size).flat_map(|a| (0..size).map(move |b| (a, b)));
        pairs.filter(|&(a, b)| pww[a][b]).map(|(a, b)| (op(a), op(b))).collect()
    }
}

fn matrix(size: usize, holds: impl Fn(usize, usize) -> bool) -> Vec<Vec<bool>> {
    (0..size).map(|a| (0..size).map(|b| holds(a, b)).collect()).collect()
}

fn close(r: &mut [Vec<bool>]) {
    for k in 0..r.len() {
        for i in 0..r.len() {
            if r[i][k] {
                let through = r[k].clone();
                r[i].iter_mut().zip(through).for_each(|(slot, reached)| *slot |= reached);
            }
        }
    }
}

#[derive(Default, Debug, PartialEq, Eq)]
struct Tally {
    kernels: usize,
    without: usize,
    /// Number of pairs that each technique finds first: CCv, CCM, wSC, the search.
    found: [usize; 4],
    unordered: usize,
}

fn assert_is_kernel(history: &History, engine: Engine, tally: &mut Tally) {
    let plain = Plain::new(history);
    let options = Options::tuned(Tuning { engine, ..Tuning::default() });
    let found = match kernel(history, &options) {
        Ok(found) => found,
        Err(NoKernel::Violation(_)) => {
            assert_eq!(plain.agreed(), None, "there is a run of\n{}", text(history));
            tally.without += 1;
            return;
        }
        Err(other) => panic!("{other:?} of\n{}", text(history)),
    };
    let (mut pairs, mut by_ccm) = (Pairs::new(), Pairs::new());
    let mut counts = [0u64; 4];
    found.visit(history, |a, b, finder| {
        pairs.insert((a, b));
        if matches!(finder, Finder::Ccv | Finder::Ccm) {
            by_ccm.insert((a, b));
        }
        counts[finder as usize] += 1;
        tally.found[finder as usize] += 1;
    });
    assert_eq!(Some(&pairs), plain.agreed().as_ref(), "the kernel of\n{}", text(history));
    assert_eq!(by_ccm, plain.pww(), "pww of\n{}", text(history));
    assert_eq!((found.open, found.stopped), (0, None));
    let sums = [counts[0], counts[0] + counts[1], counts[..3].iter().sum(), counts.iter().sum()];
    assert_eq!([found.ccv, found.ccm, found.wsc, found.agreed], sums);
    tally.unordered += (found.pairs - found.agreed) as usize;
    tally.kernels += 1;
}

#[test]
fn every_small_history() {
    let mut tally = Tally::default();
    for lengths in [&[2, 2][..], &[3, 1], &[2, 1, 1], &[3, 2], &[2, 2, 1]] {
        every_history(lengths, 2, |history| assert_is_kernel(history, Engine::Auto, &mut tally));
    }
    for lengths in [&[3, 3][..], &[2, 2, 2], &[3, 2, 1]] {
        every_history(lengths, 1, |history| assert_is_kernel(history, Engine::Auto, &mut tally));
    }
    let expected =
        Tally { kernels: 11_237, without: 12_267, found: [10_569, 2, 88, 0], unordered: 6_766 };
    assert_eq!(tally, expected);
}

#[test]
fn random_histories() {
    let mut tally = Tally::default();
    for seed in 0..rounds(4_000, 30_000) {
        let shape =
            Shape { sessions: 4, operations: 10, keys: 2, duplicates: false, mixed: seed % 2 == 0 };
        let engine = if seed % 3 == 0 { Engine::Split } else { Engine::Auto };
        let history = random_history(&mut Random(seed), shape);
        assert_is_kernel(&history, engine, &mut tally);
    }
    assert!(tally.kernels > 500 && tally.found[..3].iter().all(|&n| n > 0), "{tally:?}");
}

#[test]
fn runs_of_a_sequential_memory() {
    let mut tally = Tally::default();
    for seed in 0..rounds(300, 1_500) {
        let workload = Workload {
            sessions: 3 + seed as u32 % 2,
            operations: 11,
            variables: 1 + seed as u32 % 3,
            read_share: 0.4,
            rmw_share: if seed % 3 == 0 { 0.1 } else { 0.0 },
            seed,
            ..Workload::default()
        };
        assert_is_kernel(&generate(&workload, Memory::Sc), Engine::Auto, &mut tally);
    }
    assert!(tally.without == 0 && tally.found[2] > 1 && tally.unordered > 100, "{tally:?}");
}

#[test]
fn what_saturation_does_not_find_is_asked_for() {
    // After the thesis's Figure 4.11: with x=2 before x=4, both y=1 and z=1 would come before y=3 and
    // z=3, whose sessions read the former.
    let figure = "t0: w(z,1) w(y,1) w(x,2)\n\
                  t1: w(x,4) w(a,1)\n\
                  t2: r(a,1) w(y,3) r(z,1)\n\
                  t3: r(a,1) w(z,3) r(y,1)\n";
    let format = consistory_formats::Format::Hist;
    let history = consistory_formats::parse_str(figure, format, "figure").unwrap().remove(0);
    let mut tally = Tally::default();
    assert_is_kernel(&history, Engine::Auto, &mut tally);
    let mut shown = Vec::new();
    let found = kernel(&history, &Options::default()).unwrap();
    found.visit(&history, |a, b, finder| {
        shown.push(format!("{} {} {finder:?}", history.show(a), history.show(b)));
    });
    assert_eq!(shown, ["w(x,4) w(x,2) Search"]);
}

#[test]
fn undecided_says_why() {
    let workload = Workload { operations: 400, variables: 2, ..Workload::default() };
    let history = generate(&workload, Memory::Sc);
    let budget = consistory_verdict::Budget::unlimited().with_time(std::time::Duration::ZERO);
    let options = Options { budget, ..Options::default() };
    assert!(matches!(kernel(&history, &options), Err(NoKernel::Undecided(_))));
}
