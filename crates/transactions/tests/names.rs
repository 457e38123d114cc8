//! The level that a certificate is said to refute is one that the independent checker sees refuted.

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
