//! The checker accepts no certificate of a false claim, however it was made.

mod support;

use consistory_certify::certify_transactions;
use consistory_formats::Format;
use consistory_history::{History, OpId};
use consistory_transactions::judge;
use consistory_verdict::{
    BadRead, Budget, ClientOrder, Dependency, Judgement, Level, Relates, TransactionCertificate,
    Verdict,
};
use support::{Random, Shape, random_history};

const SHAPE: Shape = Shape {
    transactions: 6,
    sessions: 3,
    keys: 2,
    ops: 3,
    lists: false,
    repeated: false,
    faults: true,
    times: true,
};

#[test]
fn false_claims_are_rejected_whatever_supports_them() {
    let rounds = if std::env::var_os("CONSISTORY_DEEP").is_some() { 20_000 } else { 1_500 };
    let mut rejected = 0u64;
    for round in 0..rounds {
        let mut random = Random(77 + (round << 20));
        let shape = Shape { lists: round % 3 == 1, repeated: round % 3 == 2, ..SHAPE };
        let text = random_history(&mut random, shape);
        let history =
            consistory_formats::parse_str(&text, Format::Hist, "random").unwrap().remove(0);
        let order = ClientOrder::ALL[round as usize % 3];
        let rulings = judge(&history, order, &Level::ALL, &Budget::unlimited()).unwrap();
        let proofs: Vec<_> = rulings.iter().map(|ruling| proof(&ruling.judgement)).collect();
        for (level, &(truth, _)) in Level::ALL.into_iter().zip(&proofs) {
            let lie = match truth {
                Verdict::Consistent => Verdict::Violation,
                _ => Verdict::Consistent,
            };
            for &(_, certificate) in &proofs {
                let mut forged = certificate.clone();
                for _ in 0..4 {
                    let accepted = certify_transactions(&history, level, order, lie, &forged);
                    assert!(accepted.is_err(), "{level} {order:?} {lie:?}\n{forged:#?}\n{text}");
                    rejected += 1;
                    damage(&mut forged, &history, &mut random);
                }
            }
            // Certificates of other orders serve as damaged ones, too.
            for other in ClientOrder::ALL {
                for ruling in judge(&history, other, &[level], &Budget::unlimited()).unwrap() {
                    let (_, certificate) = proof(&ruling.judgement);
                    let accepted = certify_transactions(&history, level, order, lie, certificate);
                    assert!(accepted.is_err(), "{level} {other:?} as {order:?}\n{text}");
                }
            }
        }
    }
    assert!(rejected > 10 * rounds, "{rejected}");
}

fn proof(outcome: &Judgement<TransactionCertificate>) -> (Verdict, &TransactionCertificate) {
    match outcome {
        Judgement::Consistent(certificate) => (Verdict::Consistent, certificate),
        Judgement::Violation { certificate, .. } => (Verdict::Violation, certificate),
        Judgement::Undecided(stopped) => panic!("{stopped}"),
    }
}

/// Changes a certificate slightly.
fn damage(certificate: &mut TransactionCertificate, history: &History, random: &mut Random) {
    let op = |random: &mut Random| OpId(random.below(history.len().max(1)) as u32);
    match certificate {
        TransactionCertificate::Order { order, snapshots, wr } => {
            if order.is_empty() {
                order.push(op(random));
                return;
            }
            let (a, b) = (random.below(order.len()), random.below(order.len()));
            match random.below(6) {
                0 | 1 => order.swap(a, b),
                2 => {
                    order.remove(a);
                    snapshots.truncate(order.len());
                }
                3 => order.push(op(random)),
                4 if !snapshots.is_empty() => {
                    let at = a.min(snapshots.len() - 1);
                    snapshots[at] = random.below(order.len() + 1) as u32;
                }
                _ => match wr.get_mut(a) {
                    Some(choice) => choice.1 = op(random),
                    None => wr.push((op(random), op(random))),
                },
            }
        }
        TransactionCertificate::Cycle { edges } => damage_edges(edges, history, random),
        TransactionCertificate::SplitOrder { writers, branches, .. } => match random.below(4) {
            0 => writers.swap(0, 1),
            1 => *certificate = branches[0].clone(),
            2 => *certificate = branches[1].clone(),
            _ => damage(&mut branches[random.below(2)], history, random),
        },
        TransactionCertificate::SplitRead { branches, .. } => {
            let at = random.below(branches.len().max(1));
            match random.below(3) {
                0 if at < branches.len() => {
                    branches.remove(at);
                }
                1 if at < branches.len() => *certificate = branches[at].1.clone(),
                _ if at < branches.len() => damage(&mut branches[at].1, history, random),
                _ => {}
            }
        }
        TransactionCertificate::BadRead { kind, read, other } => match random.below(3) {
            0 => *kind = BadRead::ALL[random.below(6)],
            1 => *read = op(random),
            _ => *other = Some(op(random)),
        },
    }
}

fn damage_edges(edges: &mut Vec<Dependency>, history: &History, random: &mut Random) {
    if edges.is_empty() || random.one_in(8) {
        let op = |random: &mut Random| OpId(random.below(history.len().max(1)) as u32);
        edges.push(Dependency::given(op(random), op(random), Relates::So));
        return;
    }
    let at = random.below(edges.len());
    let op = OpId(random.below(history.len()) as u32);
    let edge = &mut edges[at];
    match random.below(9) {
        0 => {
            edges.remove(at);
        }
        1 => edge.from = op,
        2 => edge.to = op,
        3 => std::mem::swap(&mut edge.from, &mut edge.to),
        4 => edge.relation = [Relates::So, Relates::Rt][random.below(2)],
        5 => {
            if let Relates::Wr { read } | Relates::Rw { read } = edge.relation {
                edge.relation = match random.below(3) {
                    0 => Relates::Wr { read },
                    1 => Relates::Rw { read },
                    _ => Relates::Rw { read: op },
                };
            }
        }
        6 => edge.because.clear(),
        7 => edge.list = Some(op),
        _ => damage_edges(&mut edge.because, history, random),
    }
}

/// Most reads of a list return a prefix of the longest one, which the checker has looked at already;
/// a bad read among them is still told from the good ones.
#[test]
fn bad_reads_of_lists_are_told_from_good_ones() {
    let cases = [
        // The reader appended the last element later.
        (
            "t0: [ append(x,1) append(x,2) ]\n\
             t1: [ r(x,[1,2,3]) ]\n\
             t2: [ r(x,[1,2,3]) append(x,3) ]\n",
            "t2:0",
            BadRead::Future,
        ),
        // The list ends inside a transaction.
        (
            "t0: [ append(x,1) append(x,2) ]\nt1: [ r(x,[1,2]) ]\nt2: [ r(x,[1]) ]\n",
            "t2:0",
            BadRead::Intermediate,
        ),
        (
            "t0: [ append(x,1) ] [ append(x,2) ]!\nt1: [ r(x,[1]) ]\nt2: [ r(x,[1,2]) ]\n",
            "t2:0",
            BadRead::Aborted,
        ),
        ("t0: [ append(x,1) ]\nt1: [ r(x,[1]) ]\nt2: [ r(x,[1,7]) ]\n", "t2:0", BadRead::ThinAir),
    ];
    for (text, bad, expected) in cases {
        let history = consistory_formats::parse_str(text, Format::Hist, "lists").unwrap().remove(0);
        for read in history.ops() {
            for kind in [BadRead::Future, BadRead::Intermediate, BadRead::Aborted, BadRead::ThinAir]
            {
                let claim = TransactionCertificate::BadRead { kind, read, other: None };
                let (order, verdict) = (ClientOrder::Session, Verdict::Violation);
                let level = Level::ReadCommitted;
                let accepted = certify_transactions(&history, level, order, verdict, &claim);
                let is_true = history.reference(read).to_string() == bad && kind == expected;
                assert_eq!(accepted.is_ok(), is_true, "{kind:?} {}\n{text}", read.0);
            }
        }
        let rulings = judge(&history, ClientOrder::Session, &Level::ALL, &Budget::unlimited());
        for ruling in rulings.unwrap() {
            assert_eq!(proof(&ruling.judgement).0, Verdict::Violation, "{text}");
        }
    }
}
