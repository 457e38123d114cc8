//! The checker confirms that each certificate refutes the level in its name.

mod support;

use consistory_certify::certify_transactions;
use consistory_formats::Format;
use consistory_transactions::judge;
use consistory_verdict::{Anomaly, Budget, ClientOrder, Judgement, Level, Verdict};
use support::{Random, Shape, random_history};

#[test]
fn the_weakest_level_of_a_certificate_is_refuted() {
    let shape = Shape {
        transactions: 8,
        sessions: 3,
        keys: 2,
        ops: 4,
        lists: false,
        repeated: false,
        faults: false,
        times: true,
    };
    let (mut violations, mut nested) = (0, 0);
    for round in 0..300u64 {
        let mut random = Random(4242 + (round << 20));
        let lists = round % 3 == 1;
        let repeated = round % 3 == 2;
        let text = random_history(&mut random, Shape { lists, repeated, ..shape });
        let history =
            consistory_formats::parse_str(&text, Format::Hist, "random").unwrap().remove(0);
        for order in ClientOrder::ALL {
            for level in Level::ALL {
                let rulings = judge(&history, order, &[level], &Budget::unlimited()).unwrap();
                let Judgement::Violation { certificate, .. } = &rulings[0].judgement else {
                    continue;
                };
                let weakest = Anomaly::weakest_levels(certificate);
                let what = format!("{weakest:?} for {level} {order:?}\n{certificate:#?}\n{text}");
                assert!(weakest.iter().any(|weakest| level.implies(*weakest)), "{what}");
                for &level in &weakest {
                    let claim = Verdict::Violation;
                    let accepted = certify_transactions(&history, level, order, claim, certificate);
                    assert!(accepted.is_ok(), "{accepted:?}: {what}");
                }
                violations += 1;
                let first =
                    certificate.cycles().next().map(|cycle| Anomaly::of_cycle(&history, cycle));
                let named = first.map(Anomaly::weakest_violated);
                nested += u32::from(named.is_some_and(|level| !weakest.contains(&level)));
            }
        }
    }
    assert!(violations > 500 && nested > 0, "{violations} violations, {nested} nested");
}

/// The smallest example of each class, one session per line, with its name at every level that
/// forbids it.
const CLASSES: [(&str, &str); 9] = [
    (
        "G0",
        "a: [ w(x,1) w(y,1) ]\nb: [ w(x,2) w(y,2) ]\nc: [ r(x,2) r(y,1) ]\nd: [ r(y,1) r(x,2) ]",
    ),
    ("G1c", "a: [ w(x,1) r(y,1) ]\nb: [ w(y,1) r(x,1) ]"),
    ("FracturedRead", "a: [ w(x,1) w(y,1) ]\nb: [ r(y,0) r(x,1) ]"),
    ("SessionMiss", "a: [ w(x,1) ] [ r(x,0) ]"),
    ("CausalityViolation", "a: [ w(x,1) ]\nb: [ r(x,1) w(y,1) ]\nc: [ r(y,1) r(x,0) ]"),
    (
        "G-single",
        "a: [ w(x,1) w(z,1) ]\nb: [ w(z,2) w(y,1) ]\nc: [ r(x,0) r(y,1) ]\n\
         d: [ r(z,1) w(u,1) ]\ne: [ r(u,1) ] [ r(z,2) ]",
    ),
    ("LostUpdate", "a: [ r(x,0) w(x,1) ]\nb: [ r(x,0) w(x,2) ]"),
    ("LongFork", "a: [ w(x,1) ]\nb: [ w(y,1) ]\nc: [ r(x,1) r(y,0) ]\nd: [ r(x,0) r(y,1) ]"),
    ("WriteSkew", "a: [ r(x,0) w(y,1) ]\nb: [ r(y,0) w(x,1) ]"),
];

#[test]
fn a_class_has_its_name_whichever_level_is_asked_for() {
    for (name, text) in CLASSES {
        let history = consistory_formats::parse_str(text, Format::Hist, name).unwrap().remove(0);
        let mut forbidden = Vec::new();
        for level in Level::ALL {
            let order = ClientOrder::Session;
            let ruling = judge(&history, order, &[level], &Budget::unlimited()).unwrap().remove(0);
            let Judgement::Violation { pattern, certificate } = ruling.judgement else { continue };
            assert_eq!(pattern.to_string(), name, "{level}: {certificate:#?}");
            forbidden.push(level);
            let claim = Verdict::Violation;
            let accepted = certify_transactions(&history, level, order, claim, &certificate);
            assert!(accepted.is_ok(), "{accepted:?}: {name} {level}");
            // The certificate refutes each level that forbids the class, not only this one.
            let weakest = Anomaly::weakest_levels(&certificate);
            assert!(weakest.contains(&forbidden[0]), "{name} {level}: {weakest:?}");
        }
        assert!(forbidden.contains(&Level::Serializable), "{name}");
    }
}
