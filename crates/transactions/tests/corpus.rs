//! The histories of `corpus/transactions` have the verdicts that they expect at every level.

use std::path::Path;

use consistory_certify::certify_transactions;
use consistory_formats::Format;
use consistory_transactions::{judge, shrink};
use consistory_verdict::{Budget, ClientOrder, Judgement, Level};

#[test]
fn every_history_has_the_verdicts_that_it_expects() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/transactions");
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.display();
        let history =
            consistory_formats::parse_str(&text, Format::Hist, "corpus").unwrap().remove(0);
        let field = |field: &str| text.lines().find_map(|line| line.strip_prefix(field));
        let order = field("# order: ").map_or(ClientOrder::Session, |order| {
            ClientOrder::find(order.trim()).unwrap_or_else(|| panic!("{name}: {order}"))
        });
        let expected = field("# expect: ").unwrap_or_else(|| panic!("{name} expects nothing"));
        let expected: Vec<(Level, &str)> = expected
            .split(';')
            .map(|part| {
                let (level, verdict) = part.trim().split_once(' ').expect("a level and a verdict");
                (Level::find(level).expect("a level"), verdict)
            })
            .collect();
        assert_eq!(expected.len(), Level::ALL.len(), "{name} expects something of every level");
        for (level, verdict) in expected {
            let budget = Budget::unlimited();
            let judgement = judge(&history, order, &[level], &budget).unwrap().remove(0).judgement;
            assert_eq!(judgement.verdict().as_str(), verdict, "{name}: {level}");
            let certificate = judgement.certificate().unwrap();
            let accepted =
                certify_transactions(&history, level, order, judgement.verdict(), certificate);
            assert_eq!(accepted, Ok(()), "{name}: {level}");
            if let Judgement::Violation { certificate, .. } = &judgement {
                let shrunk = shrink(&history, level, order, certificate, &budget);
                assert!(
                    shrunk.is_minimal && shrunk.history.len() <= history.len(),
                    "{name}: {level}"
                );
                let again = judge(&shrunk.history, order, &[level], &budget).unwrap().remove(0);
                assert!(matches!(again.judgement, Judgement::Violation { .. }), "{name}: {level}");
            }
        }
        seen += 1;
    }
    assert!(seen >= 19, "{seen}");
}
