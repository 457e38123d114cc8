//! Judges a history by several levels, weak levels first, and uses each proof for all levels that
//! it settles.
//!
//! A violation of a level is also one of every stronger level, with the same certificate; a commit
//! order of a level is also one of every weaker level. So `tcc` alone settles `rc` and `ra` if it
//! holds, and `ser` settles every level.

use std::time::{Duration, Instant};

use consistory_history::History;
use consistory_verdict::{
    Anomaly, Budget, ClientOrder, Dependency, Judgement, Level, Relates, Ruling,
    TransactionCertificate,
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
        let judgement = decide_cycles(self.tx, self.order, level, self.budget);
        let worse = match &judgement {
            Judgement::Violation { certificate, .. } => self.worse_violation(level, certificate),
            _ => None,
        };
        worse.unwrap_or(judgement)
    }

    /// Searches for a violation of a weaker level that is decided fast. It violates this level too,
    /// and is a worse anomaly: the same history may contain a dirty write as well as a fractured
    /// read.
    fn worse_violation(
        &self,
        level: Level,
        certificate: &TransactionCertificate,
    ) -> Option<Judgement<TransactionCertificate>> {
        if !self.tx.ambiguous().is_empty() {
            return None;
        }
        let shown = Anomaly::weakest_levels(certificate);
        let is_worse = |weak: &Level| {
            let is_settled = self.settled.iter().any(|(settled, _)| settled == weak);
            *weak != level && !is_settled && shown.iter().all(|l| l != weak && l.implies(*weak))
        };
        let decide = |weak| {
            let judgement = decide_cycles(self.tx, self.order, weak, &self.budget.share(3));
            matches!(judgement, Judgement::Violation { .. }).then_some(judgement)
        };
        let mut worst = None;
        if is_worse(&Level::Causal) {
            // A history without a violation of this level has none of a weaker level.
            worst = Some(decide(Level::Causal)?);
        }
        [Level::ReadCommitted, Level::ReadAtomic]
            .into_iter()
            .filter(is_worse)
            .find_map(decide)
            .or(worst)
    }
}

/// Decides a level, ignoring bad reads.
pub(crate) fn decide_cycles(
    tx: &Transactions<'_>,
    order: ClientOrder,
    level: Level,
    budget: &Budget,
) -> Judgement<TransactionCertificate> {
    // Without session order there are many short chains. A commit order that respects sessions also
    // satisfies the weaker requirement, and is mostly found faster.
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
            let certificate = as_lost_update(tx.history(), certificate);
            let pattern = Anomaly::of_certificate(tx.history(), &certificate);
            let pattern = pattern.map_or("", Anomaly::name).into();
            Judgement::Violation { pattern, certificate }
        }
    }
}

/// Rewrites two transactions that miss each other's write of one key as the two orders of these
/// writes. Each order alone is a lost update, which weaker levels forbid too.
fn as_lost_update(
    history: &History,
    certificate: TransactionCertificate,
) -> TransactionCertificate {
    let TransactionCertificate::Cycle { edges } = &certificate else { return certificate };
    let [one, other] = &edges[..] else { return certificate };
    let key_of = |edge: &Dependency| match edge.relation {
        Relates::Rw { read } => history.key_of(read),
        _ => None,
    };
    let Some(key) = key_of(one).filter(|key| key_of(other) == Some(*key)) else {
        return certificate;
    };
    let branch = |misses: &Dependency| {
        let overwrites = Dependency::given(misses.to, misses.from, Relates::Ww { key });
        TransactionCertificate::Cycle { edges: vec![overwrites, misses.clone()] }
    };
    let branches = Box::new([branch(other), branch(one)]);
    TransactionCertificate::SplitOrder { key, writers: [one.from, one.to], branches }
}

/// Converts a commit order of a stronger level to one of a weaker level.
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
