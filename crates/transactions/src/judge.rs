//! Which levels does a history satisfy? Weak levels first, and every proof used for all that it
//! proves.
//!
//! A violation of a level is one of every stronger level, with the same certificate; a commit order of
//! a level is one of every weaker level. So `tcc` alone settles `rc` and `ra` where it holds, and `ser`
//! settles everything.

use std::time::{Duration, Instant};

use consistory_history::History;
use consistory_verdict::{
    Anomaly, Budget, ClientOrder, Judgement, Level, Ruling, TransactionCertificate,
};

use crate::choices::{self, Chosen};
use crate::search::Decision;
use crate::view::{DoesNotApply, Transactions};

/// Judges a history by levels; the rulings are in the order of `levels`.
///
/// ```
/// use consistory_verdict::{Budget, ClientOrder, Level};
///
/// let mut b = consistory_history::HistoryBuilder::new();
/// let (s, x) = (b.session("s"), b.key("x"));
/// let one = b.int(1);
/// b.push(s, consistory_history::Action::Write { key: x, value: one });
/// let history = b.finish().unwrap();
/// let levels = [Level::Serializable];
/// let budget = Budget::unlimited();
/// let rulings =
///     consistory_transactions::judge(&history, ClientOrder::Session, &levels, &budget).unwrap();
/// assert!(matches!(rulings[0].judgement, consistory_verdict::Judgement::Consistent(_)));
/// ```
pub fn judge(
    history: &History,
    order: ClientOrder,
    levels: &[Level],
    budget: &Budget,
) -> Result<Vec<Ruling<TransactionCertificate>>, DoesNotApply> {
    let started = Instant::now();
    let tx = Transactions::new(history)?;
    let shared = started.elapsed();
    let mut court = Court { tx: &tx, order, budget, settled: Vec::new() };
    let plan = plan(levels);
    for level in plan {
        court.settle(level);
    }
    let ruling = |&level: &Level| {
        let found = court.settled.iter().find(|(settled, _)| *settled == level);
        let (_, mut ruling) = found.expect("the plan holds every level").clone();
        if ruling.via.is_none() {
            ruling.time += shared;
        }
        ruling
    };
    Ok(levels.iter().map(ruling).collect())
}

/// Orders levels so that one proof settles as many as possible.
fn plan(levels: &[Level]) -> Vec<Level> {
    let first = [
        Level::Causal,
        Level::ReadAtomic,
        Level::ReadCommitted,
        Level::Serializable,
        Level::Snapshot,
        Level::Prefix,
        Level::ParallelSnapshot,
    ];
    first.into_iter().filter(|level| levels.contains(level)).collect()
}

struct Court<'a, 'h> {
    tx: &'a Transactions<'h>,
    order: ClientOrder,
    budget: &'a Budget,
    settled: Vec<(Level, Ruling<TransactionCertificate>)>,
}

impl Court<'_, '_> {
    /// Decides a level, unless another one implies the verdict.
    fn settle(&mut self, level: Level) {
        let implied = self.settled.iter().find_map(|(other, ruling)| match &ruling.judgement {
            Judgement::Consistent(certificate) if other.implies(level) => {
                Some((other.id(), Judgement::Consistent(fit(certificate, level))))
            }
            Judgement::Violation { .. } if level.implies(*other) => {
                Some((other.id(), ruling.judgement.clone()))
            }
            _ => None,
        });
        let ruling = match implied {
            Some((via, judgement)) => Ruling { judgement, via: Some(via), time: Duration::ZERO },
            None => {
                let started = Instant::now();
                let judgement = self.decide(level);
                Ruling { judgement, via: None, time: started.elapsed() }
            }
        };
        self.settled.push((level, ruling));
    }

    fn decide(&self, level: Level) -> Judgement<TransactionCertificate> {
        if let Some(bad) = self.tx.bad_reads().first() {
            let pattern = bad.kind.name().into();
            let (kind, read, other) = (bad.kind, bad.read, bad.other);
            let certificate = TransactionCertificate::BadRead { kind, read, other };
            return Judgement::Violation { pattern, certificate };
        }
        decide_cycles(self.tx, self.order, level, self.budget)
    }
}

/// Decides a level, with bad reads left out of account.
pub(crate) fn decide_cycles(
    tx: &Transactions<'_>,
    order: ClientOrder,
    level: Level,
    budget: &Budget,
) -> Judgement<TransactionCertificate> {
    // Without session order there are many short chains. A commit order that respects sessions
    // is one that does not have to, and is mostly found faster.
    if order == ClientOrder::None
        && level > Level::Causal
        && let Ok(Chosen { decision: Decision::Consistent(order), choices }) =
            choices::decide(tx, ClientOrder::Session, level, &budget.share(3))
    {
        return Judgement::Consistent(choices::certificate(tx, &order, &choices));
    }
    match choices::decide(tx, order, level, budget) {
        Err(stopped) => Judgement::Undecided(stopped),
        Ok(Chosen { decision: Decision::Consistent(order), choices }) => {
            Judgement::Consistent(choices::certificate(tx, &order, &choices))
        }
        Ok(Chosen { decision: Decision::Violation(certificate), .. }) => {
            let pattern = Anomaly::of_certificate(&certificate);
            let pattern = pattern.map_or("", Anomaly::name).into();
            Judgement::Violation { pattern, certificate }
        }
    }
}

/// Turns a commit order of a stronger level into one of a weaker level.
fn fit(certificate: &TransactionCertificate, level: Level) -> TransactionCertificate {
    let TransactionCertificate::Order { order, snapshots, wr } = certificate else {
        return certificate.clone();
    };
    let needs_snapshots = matches!(level, Level::Prefix | Level::Snapshot);
    let snapshots = match (needs_snapshots, snapshots.is_empty()) {
        (true, true) => (0..order.len() as u32).collect(),
        (true, false) => snapshots.clone(),
        (false, _) => Vec::new(),
    };
    TransactionCertificate::Order { order: order.clone(), snapshots, wr: wr.clone() }
}
