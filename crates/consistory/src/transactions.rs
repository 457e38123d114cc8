//! Isolation levels: judging, accepting, shrinking.

use std::borrow::Cow;

use consistory_certify::{LevelClaim, TransactionRejection, certify_levels_within};
use consistory_history::{History, is_of_transaction_calls, transactions_of_calls};
use consistory_transactions::{anomalies as list_anomalies, judge as decide, shrink as reduce};
use consistory_verdict::{
    Anomaly, Budget, ClientOrder, Judgement, Level, Proof, Ruling, TransactionCertificate,
    Verdict as Outcome,
};

use crate::Error;
use crate::model::{Minimal, Rejection};

/// Returns the history with calls of `txn` converted to transactions.
pub(crate) fn as_transactions(history: &History) -> Result<Cow<'_, History>, Error> {
    if !is_of_transaction_calls(history) {
        return Ok(Cow::Borrowed(history));
    }
    let converted = transactions_of_calls(history)
        .map_err(|error| Error::NoTransactions { reason: error.to_string() })?;
    Ok(Cow::Owned(converted))
}

/// Checks whether a history is one of transactions rather than of single operations.
pub(crate) fn is_of_transactions(history: &History) -> bool {
    history.first_long_transaction().is_some() || history.has_lists()
}

/// Judges a history by each of the levels.
pub(crate) fn judge(
    history: &History,
    order: ClientOrder,
    levels: &[Level],
    budget: &Budget,
) -> Result<Vec<Ruling>, Error> {
    let rulings = decide(history, order, levels, budget).map_err(does_not_apply)?;
    Ok(rulings.into_iter().map(|ruling| ruling.map(Proof::from)).collect())
}

fn does_not_apply(reason: consistory_transactions::DoesNotApply) -> Error {
    Error::NoTransactions { reason: reason.to_string() }
}

/// Checks a certificate with the independent checker. A proof for a level that settles this one
/// proves this one too, so `via` only has to name such a level.
pub(crate) fn accept(
    history: &History,
    level: Level,
    order: ClientOrder,
    via: Option<&str>,
    claim: Outcome,
    certificate: &TransactionCertificate,
    budget: &Budget,
) -> Result<(), Rejection> {
    let settles = |other: Level| match claim {
        Outcome::Consistent => other.implies(level),
        _ => level.implies(other),
    };
    if let Some(via) = via
        && !Level::find(via).is_some_and(settles)
    {
        let reason = format!("{via} does not settle {}", level.id());
        return Err(Rejection::Unproved { reason });
    }
    let claims = [LevelClaim { level, claim, certificate }];
    certify_levels_within(history, order, &claims, budget).remove(0).map_err(rejected)
}

/// Checks the certificates of several levels of one history with the independent checker. Returns
/// the reason of each rejection. An undecided ruling needs no certificate.
pub(crate) fn rejections(
    history: &History,
    order: ClientOrder,
    rulings: &[(Level, &Ruling)],
    budget: &Budget,
) -> Vec<Option<Rejection>> {
    let claims: Vec<Option<LevelClaim<'_>>> =
        rulings.iter().map(|(level, ruling)| claim(*level, ruling)).collect();
    let decided: Vec<LevelClaim<'_>> = claims.iter().copied().flatten().collect();
    let mut results = certify_levels_within(history, order, &decided, budget).into_iter();
    let rejection = |(claim, (_, ruling)): (&Option<LevelClaim<'_>>, &(Level, &Ruling))| {
        let reason = match claim {
            Some(_) => {
                return results.next().expect("one result per claim").err().map(rejected);
            }
            None => {
                let proof = ruling.judgement.certificate()?;
                format!("a {} does not prove anything about it", proof.kind())
            }
        };
        Some(Rejection::Unproved { reason })
    };
    claims.iter().zip(rulings).map(rejection).collect()
}

fn rejected(rejection: TransactionRejection) -> Rejection {
    match rejection {
        TransactionRejection::Stopped(stopped) => Rejection::Stopped(stopped),
        wrong => Rejection::Unproved { reason: wrong.to_string() },
    }
}

fn claim(level: Level, ruling: &Ruling) -> Option<LevelClaim<'_>> {
    match ruling.judgement.certificate() {
        Some(Proof::Transactions(certificate)) => {
            Some(LevelClaim { level, claim: ruling.judgement.verdict(), certificate })
        }
        _ => None,
    }
}

/// Shrinks a violating history until no operation can be removed.
pub(crate) fn shrink(
    history: &History,
    level: Level,
    order: ClientOrder,
    violation: &Judgement,
    budget: &Budget,
) -> (History, Minimal) {
    let Judgement::Violation { certificate: Proof::Transactions(certificate), .. } = violation
    else {
        return (history.clone(), Minimal::Unknown);
    };
    let shrunk = reduce(history, level, order, certificate, budget);
    let minimal = if shrunk.is_minimal { Minimal::Yes } else { Minimal::Unknown };
    (shrunk.history, minimal)
}

/// Lists classes of anomalies in a history of transactions, each with the weakest level that
/// forbids it and an explained example that the independent checker has accepted.
pub fn anomalies(
    history: &History,
    order: ClientOrder,
    budget: &Budget,
) -> Result<FoundAnomalies, Error> {
    let history = as_transactions(history)?;
    let found = list_anomalies(&history, order, budget).map_err(does_not_apply)?;
    let (mut listed, mut unfinished) = (Vec::new(), found.unfinished);
    // Checking the examples has the same time limit as finding them.
    let budget = budget.renewed();
    for (class, certificate) in found.found {
        let accepted = |level: &Level| {
            accept(&history, *level, order, None, Outcome::Violation, &certificate, &budget).is_ok()
        };
        let Some(level) = Level::ALL.into_iter().find(accepted) else {
            if budget.check().is_err() {
                unfinished.push(class);
            }
            continue;
        };
        let judgement = Judgement::Violation {
            pattern: class.name().into(),
            certificate: Proof::Transactions(certificate),
        };
        let explanation = consistory_draw::explain(&history, level.id(), &judgement, &[]);
        listed.push(FoundAnomaly { class, level, explanation });
    }
    Ok(FoundAnomalies { found: listed, undecided: found.undecided, unfinished })
}

/// The anomalies of a history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundAnomalies {
    /// The classes, the worst first.
    pub found: Vec<FoundAnomaly>,
    /// Levels that no example refutes and that were not decided within the budget.
    pub undecided: Vec<Level>,
    /// Classes without an example whose search was not completed.
    pub unfinished: Vec<Anomaly>,
}

/// A class of anomalies that occurs in a history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundAnomaly {
    /// The class.
    pub class: Anomaly,
    /// The weakest level that the example violates.
    pub level: Level,
    /// The example in sentences.
    pub explanation: String,
}
