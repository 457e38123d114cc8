use std::collections::BTreeSet;

use super::*;

fn survey_up_to(plain: usize, extended: usize) -> Survey {
    let options = ScanOptions { budget: Budget::unlimited(), jobs: 2, ..ScanOptions::default() };
    survey(Bounds { plain, extended }, &[], &options).expect("the budget is not limited")
}

#[test]
fn an_atlas_has_every_pair_once() {
    let survey = survey_up_to(4, 2);
    assert_eq!(survey.pairs.len(), 11 * 10);
    let answer = |from: &str, to: &str| {
        &survey.pairs.iter().find(|pair| (pair.from, pair.to) == (from, to)).unwrap().answer
    };
    for (from, to) in [("sc", "tso"), ("tso", "ccv"), ("wccm", "ccv")] {
        assert!(matches!(answer(from, to), Answer::Implied(_)), "{from} implies {to}");
    }
    assert!(matches!(answer("wsc", "sc"), Answer::Open { .. }));
    let Answer::Smallest(history) = answer("tso", "sc") else { panic!("tso is not sc") };
    assert_eq!(shown(history), "t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)\n");
    let svg = svg(&survey, &sheets(&survey));
    assert!(svg.starts_with("<svg") && svg.contains("r(y,0)"));
}

#[test]
fn a_search_that_stops_has_no_atlas() {
    let budget = Budget::unlimited().with_time(std::time::Duration::from_millis(20));
    assert!(
        survey(
            Bounds { plain: 12, extended: 1 },
            &[],
            &ScanOptions { budget, jobs: 2, ..ScanOptions::default() }
        )
        .is_err()
    );
}

/// The histories in the documentation are current, as far as a small survey of plain histories can
/// check.
#[test]
fn the_atlas_of_the_documentation_is_current() {
    const BOUND: usize = 5;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/atlas.md")).unwrap();
    let mut documented: BTreeSet<(String, String, String)> = BTreeSet::new();
    for entry in fs::read_dir(root.join("corpus/atlas")).unwrap() {
        let file = fs::read_to_string(entry.unwrap().path()).unwrap();
        let lines = file.lines().filter(|line| !line.starts_with('#'));
        let history: String = lines.map(|line| format!("{line}\n")).collect();
        assert!(page.contains(&history), "the page shows\n{history}");
        let has_few_reads_and_writes = history.matches('(').count() <= BOUND
            && !history.contains("rmw")
            && !history.contains(" f");
        let pairs = file.lines().filter_map(|line| line.strip_prefix("# separates: "));
        let pairs = pairs.flat_map(|line| line.split("; ")).filter_map(|p| p.split_once(" > "));
        for (from, to) in pairs.filter(|_| has_few_reads_and_writes) {
            documented.insert((from.to_owned(), to.to_owned(), history.clone()));
        }
    }
    let survey = survey_up_to(BOUND, 1);
    let found: BTreeSet<(String, String, String)> = survey
        .pairs
        .iter()
        .filter_map(|pair| match &pair.answer {
            Answer::Smallest(history) => {
                Some((pair.from.to_owned(), pair.to.to_owned(), shown(history)))
            }
            _ => None,
        })
        .collect();
    assert!(found.len() > 40, "{}", found.len());
    assert_eq!(documented, found);
}

#[test]
fn the_levels_of_the_documentation_are_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/atlas.md");
    let page = fs::read_to_string(&path).unwrap();
    let levels = levels::section(&ScanOptions {
        budget: Budget::unlimited(),
        jobs: 2,
        ..ScanOptions::default()
    });
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let before = page.find("\n## Isolation levels").map_or(&*page, |at| &page[..at]);
        fs::write(path, format!("{before}{levels}")).unwrap();
    } else {
        assert!(page.ends_with(&levels), "UPDATE_EXPECT=1 rewrites the page\n{levels}");
    }
}
