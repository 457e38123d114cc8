//! `anomalies` finds the planted classes, alone and with others, and the independent checker
//! accepts each example.

mod support;

use std::time::Duration;

use consistory_certify::certify_transactions;
use consistory_formats::Format;
use consistory_history::History;
use consistory_transactions::{anomalies, judge};
use consistory_verdict::{Anomaly, BadRead, Budget, ClientOrder, Judgement, Level, Verdict};
use support::{Random, Shape, random_history};

fn parse(text: &str) -> History {
    consistory_formats::parse_str(text, Format::Hist, "test").unwrap().remove(0)
}

/// Lists the classes; asserts that each has an accepted example that refutes the level of its name.
fn classes(text: &str, order: ClientOrder) -> Vec<&'static str> {
    let history = parse(text);
    let listed = anomalies(&history, order, &Budget::unlimited()).unwrap();
    assert!(listed.undecided.is_empty(), "{text}");
    for (class, certificate) in &listed.found {
        assert_eq!(Anomaly::of_certificate(&history, certificate), Some(*class), "{text}");
        for level in Anomaly::weakest_levels(certificate) {
            let claim = Verdict::Violation;
            let accepted = certify_transactions(&history, level, order, claim, certificate);
            assert_eq!(accepted, Ok(()), "{class:?} {level} {order:?}\n{certificate:#?}\n{text}");
        }
    }
    listed.found.iter().map(|(class, _)| class.name()).collect()
}

/// Histories of one class each; `K` stands for a letter that makes their keys different.
const PLANTED: [(&str, &[&str]); 22] = [
    ("InternalRead", &["[ w(xK,1) r(xK,0) ]"]),
    ("AbortedRead", &["[ w(xK,1) ]!", "[ r(xK,1) ]"]),
    ("IntermediateRead", &["[ w(xK,1) w(xK,2) ]", "[ r(xK,1) ]"]),
    ("FutureRead", &["[ r(xK,1) w(xK,1) ]"]),
    ("ThinAirRead", &["[ r(xK,7) ]"]),
    (
        "IncompatibleOrder",
        &["[ append(xK,1) ]", "[ append(xK,2) ]", "[ r(xK,[1,2]) ]", "[ r(xK,[2,1]) ]"],
    ),
    (
        "G0",
        &[
            "[ w(xK,1) w(yK,1) ]",
            "[ w(xK,2) w(yK,2) ]",
            "[ r(xK,2) r(yK,1) ]",
            "[ r(yK,1) r(xK,2) ]",
        ],
    ),
    (
        "G0",
        &[
            "[ append(xK,1) append(yK,1) ]",
            "[ append(xK,2) append(yK,2) ]",
            "[ r(xK,[1,2]) r(yK,[2,1]) ]",
        ],
    ),
    ("G1c", &["[ w(xK,1) r(yK,1) ]", "[ w(yK,1) r(xK,1) ]"]),
    ("NonMonotonicRead", &["[ w(xK,1) w(yK,1) ]", "[ r(xK,1) r(yK,0) ]"]),
    ("FracturedRead", &["[ w(xK,1) w(yK,1) ]", "[ r(yK,0) r(xK,1) ]"]),
    ("SessionMiss", &["[ w(xK,1) ] [ r(xK,0) ]"]),
    ("CausalityViolation", &["[ w(xK,1) ]", "[ r(xK,1) w(yK,1) ]", "[ r(yK,1) r(xK,0) ]"]),
    ("LostUpdate", &["[ r(xK,0) w(xK,1) ]", "[ r(xK,0) w(xK,2) ]"]),
    ("LostUpdate", &["[ r(xK,[]) append(xK,1) ]", "[ r(xK,[]) append(xK,2) ]", "[ r(xK,[1,2]) ]"]),
    (
        "G-single",
        &[
            "[ append(xK,1) append(zK,1) ]",
            "[ append(zK,2) append(yK,1) ]",
            "[ r(xK,[]) r(yK,[1]) ]",
            "[ r(zK,[1,2]) ]",
        ],
    ),
    // A version is overwritten by a transaction that misses another transaction's write of another
    // key.
    (
        "G-single",
        &["[ append(xK,1) append(yK,1) ]", "[ r(xK,[]) append(yK,2) ]", "[ r(yK,[1,2]) ]"],
    ),
    // The second writer of x depends on the first one through another transaction.
    (
        "WriteSkew",
        &[
            "[ w(xK,1) w(uK,1) ]",
            "[ r(uK,1) w(vK,1) ]",
            "[ r(vK,1) r(zK,0) w(xK,2) ]",
            "[ r(xK,1) w(zK,1) ]",
        ],
    ),
    // A reader knows the first writer of x through another transaction, and reads from the second one.
    (
        "WriteSkew",
        &[
            "[ w(xK,1) w(uK,1) ]",
            "[ r(uK,1) w(vK,1) ]",
            "[ r(zK,0) w(xK,2) ]",
            "[ r(vK,1) r(xK,2) ]",
            "[ r(xK,1) w(zK,1) ]",
        ],
    ),
    ("LongFork", &["[ w(xK,1) ]", "[ w(yK,1) ]", "[ r(xK,1) r(yK,0) ]", "[ r(xK,0) r(yK,1) ]"]),
    ("WriteSkew", &["[ r(xK,0) w(yK,1) ]", "[ r(yK,0) w(xK,1) ]"]),
    ("G2-item", &["[ r(xK,0) w(yK,1) ]", "[ r(yK,0) w(zK,1) ]", "[ r(zK,0) w(xK,1) ]"]),
];

fn history_of(planted: &[usize]) -> String {
    let mut text = String::new();
    let mut sessions = 0;
    for &index in planted {
        for session in PLANTED[index].1 {
            let key = char::from(b'a' + index as u8).to_string();
            text += &format!("t{sessions}: {}\n", session.replace('K', &key));
            sessions += 1;
        }
    }
    text
}

#[test]
fn every_planted_class_is_found_alone() {
    for (index, (class, _)) in PLANTED.iter().enumerate() {
        let text = history_of(&[index]);
        assert_eq!(classes(&text, ClientOrder::Session), [*class], "{text}");
    }
}

#[test]
fn real_time_shows_stale_reads() {
    let text = "t0: [ w(x,1) @1..2 ]\nt1: [ r(x,0) @3..4 ]";
    assert_eq!(classes(text, ClientOrder::Realtime), ["StaleRead"]);
    assert!(classes(text, ClientOrder::Session).is_empty());
}

#[test]
fn classes_do_not_hide_each_other() {
    let mut random = Random(7);
    for round in 0..200 {
        let mut planted: Vec<usize> = (0..PLANTED.len()).collect();
        if round > 0 {
            planted.retain(|_| random.below(3) == 0);
        }
        let mut expected: Vec<&str> = planted.iter().map(|&index| PLANTED[index].0).collect();
        let text = history_of(&planted);
        let mut found = classes(&text, ClientOrder::Session);
        expected.sort_unstable();
        expected.dedup();
        found.sort_unstable();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn random_histories_have_an_anomaly_for_every_violated_level() {
    let mut seen = std::collections::BTreeMap::new();
    let mut complete = 0;
    for round in 0..600u64 {
        let mut random = Random(99 + (round << 20));
        let shape = Shape {
            transactions: 8,
            sessions: 3,
            keys: 2,
            ops: 4,
            lists: round % 3 == 1,
            repeated: round % 3 == 2,
            faults: round % 2 == 1,
            times: true,
        };
        let text = random_history(&mut random, shape);
        let history = parse(&text);
        for order in ClientOrder::ALL {
            for class in classes(&text, order) {
                *seen.entry(class).or_insert(0) += 1;
            }
            let listed = anomalies(&history, order, &Budget::unlimited()).unwrap();
            complete += u32::from(listed.unfinished.is_empty());
            let rulings = judge(&history, order, &Level::ALL, &Budget::unlimited()).unwrap();
            for (level, ruling) in Level::ALL.into_iter().zip(rulings) {
                let refuted = listed.found.iter().any(|(_, certificate)| {
                    Anomaly::weakest_levels(certificate).iter().any(|w| level.implies(*w))
                });
                let violated = matches!(ruling.judgement, Judgement::Violation { .. });
                assert_eq!(violated, refuted, "{level} {order:?}\n{text}\n{:#?}", listed.found);
            }
        }
    }
    assert!(seen.len() >= 10 && complete > 1_700, "{seen:?}, {complete}");
}

#[test]
fn classes_that_were_not_searched_are_named() {
    let text = history_of(&(0..PLANTED.len()).collect::<Vec<_>>());
    let budget = Budget::unlimited().with_time(Duration::ZERO);
    let listed = anomalies(&parse(&text), ClientOrder::Session, &budget);
    let listed = listed.unwrap();
    let is_found = |class: &Anomaly| listed.found.iter().any(|(found, _)| found == class);
    let searched = [Anomaly::DirtyWrite, Anomaly::WriteSkew, Anomaly::LongFork];
    assert!(searched.iter().all(|class| listed.unfinished.contains(class) && !is_found(class)));
    assert!(is_found(&Anomaly::BadRead(BadRead::Aborted)));
}
