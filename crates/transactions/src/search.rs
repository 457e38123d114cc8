//! Decides `psi`, `pc`, `si` and `ser`: saturation, a schedule, and case splits.
//!
//! The forced edges are derived ([`crate::saturate`]), at first for a few rounds only. If they form
//! a cycle, it is the violation. Otherwise a schedule along them is tried ([`crate::schedule`], for
//! `psi` an arbitrary extension, [`crate::extension`]); if it contains all events, it is the commit
//! order. If not, it names two transactions that wrote the same key and whose versions may come in
//! either order. Both orders are tried, each with the forced edges that follow from it. A case
//! whose refutation does not use the assumption refutes the other case too, so that case is
//! skipped.
//!
//! When no pair is left unordered, the forced edges order all versions, and any extension of them
//! is a commit order. So the search is complete; it is exponential in the worst case.

use consistory_history::KeyId;
use consistory_verdict::{Budget, Dependency, Level, Relates, Stopped, TransactionCertificate};

use crate::extension::{Extended, extend};
use crate::graph::{Graph, Shape, Why};
use crate::problem::Problem;
use crate::proof;
use crate::saturate::{Saturated, Saturation};
use crate::schedule::{Patience, Scheduled, schedule};

/// Numbers of saturation rounds before the first and before the second schedule, and number of
/// schedules tried before saturation is completed. These rounds derive most of the forced edges;
/// the schedule learns the other ones where it needs them.
const FIRST_ROUNDS: usize = 2;
const FIRST_SCHEDULES: usize = 2;
const FIRST_PATIENCE: Patience = Patience { conflicts: 2_000, base: 2_000, per_event: 1 };

/// Number of events that allow the first schedules one more successive conflict, if that is more than
/// the limit above: completing the saturation of a large history takes longer than these conflicts.
const EVENTS_PER_CONFLICT: usize = 20;

/// Limits of a schedule along all forced edges, and of one inside cases.
const PATIENCE: Patience = Patience { conflicts: 10_000, base: usize::MAX, per_event: usize::MAX };
const PATIENCE_IN_CASES: Patience =
    Patience { conflicts: 1_000, base: usize::MAX, per_event: usize::MAX };

/// Number of failed extensions for `psi` after which `si` is tried, which implies it and is often
/// decided sooner; and the share of the budget for that.
const EXTENSIONS_BEFORE_SNAPSHOTS: usize = 4;
const SNAPSHOTS_BUDGET_SHARE: u32 = 3;

/// A commit order of nodes, with the lengths of snapshots for `pc` and `si`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CommitOrder {
    pub(crate) order: Vec<u32>,
    pub(crate) snapshots: Vec<u32>,
}

/// Whether a level holds, with the proof.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    Consistent(CommitOrder),
    Violation(TransactionCertificate),
}

/// A case split on the order of two versions.
struct Case {
    links: usize,
    rounds: usize,
    key: KeyId,
    pair: [u32; 2],
    /// Refutation of the first case, while the second is being examined.
    first: Option<TransactionCertificate>,
}

/// Decides `psi`, `pc`, `si` or `ser`.
pub(crate) fn decide(
    problem: &Problem<'_>,
    level: Level,
    budget: &Budget,
) -> Result<Decision, Stopped> {
    let mut saturation = Saturation::new(problem, level);
    let mut cases: Vec<Case> = Vec::new();
    let mut found = None;
    let mut failed_extensions = 0;
    if level != Level::ParallelSnapshot {
        let by_size = saturation.graph.events() / EVENTS_PER_CONFLICT;
        let patience =
            Patience { conflicts: FIRST_PATIENCE.conflicts.max(by_size), ..FIRST_PATIENCE };
        for _ in 0..FIRST_SCHEDULES {
            let saturated = saturation.run_rounds(FIRST_ROUNDS, budget)?;
            if saturated != Saturated::Unfinished {
                found = Some(saturated);
                break;
            }
            if let Scheduled::Complete(events) = schedule(&saturation, patience, budget)? {
                return Ok(Decision::Consistent(commit_order(&saturation.graph, &events)));
            }
        }
    }
    loop {
        let found = match found.take() {
            Some(found) => found,
            None => saturation.run(budget)?,
        };
        if found == Saturated::Closed {
            let patience = if cases.is_empty() { PATIENCE } else { PATIENCE_IN_CASES };
            let open = match attempt(&saturation, patience, budget)? {
                Attempt::Done(order) => return Ok(Decision::Consistent(order)),
                Attempt::Open(open) => open,
            };
            if level == Level::ParallelSnapshot {
                failed_extensions += 1;
                if failed_extensions == EXTENSIONS_BEFORE_SNAPSHOTS
                    && let Some(order) = by_snapshot_isolation(problem, budget)
                {
                    return Ok(Decision::Consistent(order));
                }
            }
            for (key, pair) in open {
                cases.push(Case {
                    links: saturation.graph.links.len(),
                    rounds: saturation.rounds.len(),
                    key,
                    pair,
                    first: None,
                });
                let [first, second] = pair;
                saturation.push_version(first, second, Why::Assumed { key });
            }
            continue;
        }
        budget.check()?;
        let Some(mut refutation) = proof::refutation(&saturation, found) else {
            unreachable!("a cyclic graph has a cycle");
        };
        // Close cases until one has a second case to try.
        loop {
            let Some(mut case) = cases.pop() else { return Ok(Decision::Violation(refutation)) };
            let tx = problem.tx;
            let writers = case.pair.map(|node| tx.first_op(node));
            let is_second = case.first.is_some();
            let (from, to) = match is_second {
                false => (writers[0], writers[1]),
                true => (writers[1], writers[0]),
            };
            if !mentions(&refutation, from, to, case.key) {
                continue;
            }
            if let Some(first) = case.first {
                let branches = Box::new([first, refutation]);
                let key = case.key;
                refutation = TransactionCertificate::SplitOrder { key, writers, branches };
                continue;
            }
            case.first = Some(refutation);
            saturation.graph.truncate_links(case.links);
            saturation.rounds.truncate(case.rounds);
            let [first, second] = case.pair;
            saturation.push_version(second, first, Why::Assumed { key: case.key });
            cases.push(case);
            break;
        }
    }
}

/// Finds a commit order of `psi` as one of `si`, which implies it.
fn by_snapshot_isolation(problem: &Problem<'_>, budget: &Budget) -> Option<CommitOrder> {
    match decide(problem, Level::Snapshot, &budget.share(SNAPSHOTS_BUDGET_SHARE)) {
        Ok(Decision::Consistent(CommitOrder { order, .. })) => {
            Some(CommitOrder { order, snapshots: Vec::new() })
        }
        _ => None,
    }
}

enum Attempt {
    Done(CommitOrder),
    /// Pairs of versions to split on.
    Open(Vec<(KeyId, [u32; 2])>),
}

/// Tries to find a commit order of a closed saturation; if that fails, returns pairs of versions to
/// split on, each in the more promising order.
fn attempt(
    saturation: &Saturation<'_, '_>,
    patience: Patience,
    budget: &Budget,
) -> Result<Attempt, Stopped> {
    let graph = &saturation.graph;
    if saturation.level == Level::ParallelSnapshot {
        return Ok(match extend(graph, budget)? {
            Extended::Complete(events) => Attempt::Done(commit_order(graph, &events)),
            Extended::Conflicts(conflicts) => Attempt::Open(conflicts),
        });
    }
    match schedule(saturation, patience, budget)? {
        Scheduled::Complete(events) => return Ok(Attempt::Done(commit_order(graph, &events))),
        Scheduled::Stuck { key, first, second } => {
            return Ok(Attempt::Open(vec![(key, [second, first])]));
        }
        // The first order of each pair was refuted, so its case is closed at once.
        Scheduled::Refuted(pairs) => {
            if let Some(&pair) = pairs.first() {
                return Ok(Attempt::Open(vec![pair]));
            }
        }
    }
    Ok(match open_pair(graph) {
        Some(pair) => Attempt::Open(vec![pair]),
        None => Attempt::Done(commit_order(graph, &graph.order)),
    })
}

/// Finds two writers of a key whose versions may come in either order.
fn open_pair(graph: &Graph<'_, '_>) -> Option<(KeyId, [u32; 2])> {
    let problem = graph.problem;
    for key in problem.tx.history().keys() {
        let writers: Vec<u32> = problem.writers_of(key).collect();
        for (i, &a) in writers.iter().enumerate() {
            for &b in &writers[i + 1..] {
                if !are_ordered(graph, a, b) && !are_ordered(graph, b, a) {
                    return Some((key, [a, b]));
                }
            }
        }
    }
    None
}

/// Checks whether the commit of a transaction is forced before that of another.
pub(crate) fn are_ordered(graph: &Graph<'_, '_>, first: u32, second: u32) -> bool {
    let chain = graph.problem.chain_of[first as usize] as usize;
    graph.past_of(graph.commit(second))[chain] > graph.commit_place(first)
}

/// Converts an order of events to a commit order.
pub(crate) fn commit_order(graph: &Graph<'_, '_>, events: &[u32]) -> CommitOrder {
    let problem = graph.problem;
    let mut order = Vec::new();
    let mut seen = vec![0u32; if graph.shape == Shape::Split { problem.tx.len() } else { 0 }];
    for &event in events {
        let Some(node) = graph.node(event) else { continue };
        if !problem.counts[node as usize] {
            continue;
        }
        if graph.shape == Shape::Split && event == graph.snapshot(node) {
            seen[node as usize] = order.len() as u32;
        }
        if event == graph.commit(node) {
            order.push(node);
        }
    }
    let snapshots = match graph.shape {
        Shape::Whole => Vec::new(),
        Shape::Split => order.iter().map(|&node| seen[node as usize]).collect(),
    };
    CommitOrder { order, snapshots }
}

/// Checks whether a refutation may depend on the assumption that one transaction wrote an earlier
/// version of a key than another.
fn mentions(
    refutation: &TransactionCertificate,
    from: consistory_history::OpId,
    to: consistory_history::OpId,
    key: KeyId,
) -> bool {
    let mut open: Vec<&Dependency> = refutation.cycles().flatten().collect();
    while let Some(edge) = open.pop() {
        let is_given = edge.because.is_empty() && edge.list.is_none();
        if is_given && edge.relation == (Relates::Ww { key }) && (edge.from, edge.to) == (from, to)
        {
            return true;
        }
        open.extend(&edge.because);
    }
    false
}
