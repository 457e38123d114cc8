//! Every class of anomaly in a history, with an example each.

use consistory_history::History;
use consistory_verdict::{Anomaly, Budget, ClientOrder, Judgement, Level, TransactionCertificate};

use crate::judge::judge;
use crate::view::{DoesNotApply, Transactions};

/// Lists the classes of anomalies that a history shows, the worst first, with one example each.
///
/// Bad reads are listed by kind. If there are none, each level is decided on its own, and the cycle
/// that refutes it names the class; so every level that is violated is accounted for. A class that
/// only longer cycles show may go unnoticed.
pub fn anomalies(
    history: &History,
    order: ClientOrder,
    budget: &Budget,
) -> Result<Vec<(Anomaly, TransactionCertificate)>, DoesNotApply> {
    let mut found: Vec<(Anomaly, TransactionCertificate)> = Vec::new();
    for bad in Transactions::new(history)?.bad_reads() {
        let (kind, read, other) = (bad.kind, bad.read, bad.other);
        let class = Anomaly::BadRead(kind);
        if found.iter().all(|(known, _)| *known != class) {
            found.push((class, TransactionCertificate::BadRead { kind, read, other }));
        }
    }
    if found.is_empty() {
        for level in Level::ALL {
            let ruling = judge(history, order, &[level], &budget.renewed())?.remove(0);
            let Judgement::Violation { certificate, .. } = ruling.judgement else { continue };
            let Some(class) = Anomaly::of_certificate(&certificate) else { continue };
            match found.iter_mut().find(|(known, _)| *known == class) {
                None => found.push((class, certificate)),
                Some((_, known)) if certificate.size() < known.size() => *known = certificate,
                Some(_) => {}
            }
        }
    }
    found.sort_by_key(|(class, _)| *class);
    Ok(found)
}
