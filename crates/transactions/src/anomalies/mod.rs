//! The classes of anomalies in a history, with a short example each.
//!
//! As in Elle (Kingsbury and Alvaro, VLDB 2020) a class is a pattern of dependencies, and an
//! example is a short cycle that matches the pattern. Bad reads are listed by kind and then
//! ignored.
//!
//! - `graph`: the dependencies between the transactions. `wr`, `so` and `rt` are given by the
//!   history; a `ww` is included only if a list shows it, or if `so`, `rt` and `wr` force it,
//!   directly or through other transactions.
//! - `cycles`: breadth-first search for short cycles of each pattern, within the strongly connected
//!   components.
//!
//! Finally every level that no example refutes is decided, because a violation can also depend on
//! version orders that follow only from the whole history. So every level that is violated and
//! decided has an example.
//!
//! **Completeness.** A class that occurs in the history can be missing from the list
//! - if its cycles need an order of a register's versions that only `psi` or a stronger level
//!   forces, that no level forces, or that contradicts the evidence for another order;
//! - if its cycles need an order that follows only through transactions that are part of a cycle of
//!   `so`, `rt` and `wr`;
//! - if its cycles pass through a read of a value that several transactions wrote, or through a bad
//!   read;
//! - if its search was not completed; [`Anomalies::unfinished`] lists such classes.

mod cycles;
mod graph;

use consistory_history::{History, KeyId};
use consistory_verdict::{
    Anomaly, Budget, ClientOrder, Dependency, Judgement, Level, Relates, TransactionCertificate,
};
use rustc_hash::FxHashMap;

use crate::judge::decide_cycles;
use crate::problem::Problem;
use crate::view::{DoesNotApply, INITIAL, OPEN, Transactions};
use graph::DependencyGraph;

/// The anomalies of a history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anomalies {
    /// Classes that occur, the worst first, each with an example.
    pub found: Vec<(Anomaly, TransactionCertificate)>,
    /// Levels that no example refutes and that were not decided within the budget.
    pub undecided: Vec<Level>,
    /// Classes without an example whose search was not completed.
    pub unfinished: Vec<Anomaly>,
}

/// Lists the classes of anomalies in a history, the worst first, with one example each.
///
/// Every level that is violated is refuted by an example or is undecided. A class can be missing if
/// it depends on version orders that follow neither from lists nor from `so`, `rt` and `wr`, on a
/// bad read, or on a read of a value that was written more than once.
pub fn anomalies(
    history: &History,
    order: ClientOrder,
    budget: &Budget,
) -> Result<Anomalies, DoesNotApply> {
    let tx = Transactions::new(history)?;
    let mut found: Vec<(Anomaly, TransactionCertificate)> = Vec::new();
    for bad in tx.bad_reads() {
        let (kind, read, other) = (bad.kind, bad.read, bad.other);
        let class = Anomaly::BadRead(kind);
        if found.iter().all(|(known, _)| *known != class) {
            found.push((class, TransactionCertificate::BadRead { kind, read, other }));
        }
    }
    let problem = Problem::new(&tx, order, &[]);
    let mut unfinished = cycles::CLASSES.to_vec();
    let searching = budget.renewed();
    // On timeout, the remaining classes are unfinished.
    let _ = DependencyGraph::new(&problem, &searching)
        .and_then(|graph| cycles::search(&graph, &searching, &mut found, &mut unfinished));
    if found.iter().all(|(class, _)| *class != Anomaly::LostUpdate)
        && let Some(lost) = lost_update(&problem)
    {
        found.push((Anomaly::LostUpdate, lost));
    }
    let mut undecided = Vec::new();
    for level in Level::ALL {
        let refutes = |(class, certificate): &(Anomaly, TransactionCertificate)| {
            let weakest = Anomaly::weakest_levels(certificate);
            !matches!(class, Anomaly::BadRead(_)) && weakest.iter().any(|w| level.implies(*w))
        };
        if found.iter().any(refutes) {
            continue;
        }
        match decide_cycles(&tx, order, level, &budget.renewed()) {
            Judgement::Consistent(_) => {}
            Judgement::Undecided(_) => undecided.push(level),
            Judgement::Violation { certificate, .. } => {
                let Some(class) = Anomaly::of_certificate(history, &certificate) else { continue };
                // An example of the same class that refutes only stronger levels is less useful.
                let weakest = Anomaly::weakest_levels(&certificate);
                found.retain(|(known, example)| {
                    let levels = Anomaly::weakest_levels(example);
                    *known != class
                        || !levels.iter().all(|l| weakest.iter().any(|weak| l.implies(*weak)))
                });
                found.push((class, certificate));
            }
        }
    }
    found.sort_by_key(|(class, _)| *class);
    unfinished.retain(|class| found.iter().all(|(known, _)| known != class));
    Ok(Anomalies { found, undecided, unfinished })
}

/// Finds two transactions that read the same version of a key and both overwrite it. Whichever
/// wrote first, the other one misses that write.
fn lost_update(problem: &Problem<'_>) -> Option<TransactionCertificate> {
    let tx = problem.tx;
    let mut updates: FxHashMap<(KeyId, u32), (u32, u32)> = FxHashMap::default();
    for node in 0..tx.len() as u32 {
        for read in tx.reads_of(node).map(|read| read as u32) {
            let (key, source) = (problem.key_of(read), problem.sources[read as usize]);
            if source == OPEN || !problem.does_write(node, key) {
                continue;
            }
            let (other, other_read) = *updates.entry((key, source)).or_insert((node, read));
            if other == node {
                continue;
            }
            let branch = |(first, first_read): (u32, u32), (second, second_read): (u32, u32)| {
                let (from, to) = (tx.first_op(first), tx.first_op(second));
                let overwrites = Dependency::given(from, to, Relates::Ww { key });
                let relation = Relates::Rw { read: problem.op_of(second_read) };
                let mut misses = Dependency::given(to, from, relation);
                if source != INITIAL {
                    let seen = Relates::Wr { read: problem.op_of(first_read) };
                    misses.because = vec![after(tx.first_op(source), from, key, seen)];
                }
                TransactionCertificate::Cycle { edges: vec![overwrites, misses] }
            };
            let (a, b) = ((other, other_read), (node, read));
            return Some(TransactionCertificate::SplitOrder {
                key,
                writers: [tx.first_op(other), tx.first_op(node)],
                branches: Box::new([branch(a, b), branch(b, a)]),
            });
        }
    }
    None
}

/// Returns `ww` between two writers of a key of which the second depends on the first.
fn after(
    from: consistory_history::OpId,
    to: consistory_history::OpId,
    key: KeyId,
    seen: Relates,
) -> Dependency {
    let mut version = Dependency::given(from, to, Relates::Ww { key });
    let opposite = Dependency::given(to, from, Relates::Ww { key });
    version.because = vec![Dependency::given(from, to, seen), opposite];
    version
}
