//! Small protocols that were once judged wrongly; the first line of each contains the expected
//! verdict.

use std::path::Path;

use consistory_history::History;
use consistory_protocol::{Explorer, Model, Options, Outcome, Unfinished, Violation};
use consistory_registers::{Options as CheckOptions, StoreModel, decide_stored};
use consistory_verdict::Verdict;

fn judge(history: &History) -> Verdict {
    decide_stored(history, StoreModel::Sc, &CheckOptions::default()).judgement.verdict()
}

fn verdict(name: &str, model: &Model, symmetry: bool, states: Option<u64>) -> &'static str {
    if model.missing_marks().is_some() {
        return "unproved";
    }
    let system = model.tracked().unwrap_or_else(|errors| panic!("{name}: {errors}"));
    let options = Options { symmetry, deadlock: false, jobs: 2, states, ..Options::default() };
    let explored = Explorer::new(&system).options(options).judge(judge).run().unwrap();
    match explored.outcome {
        Outcome::Holds => "consistent",
        Outcome::Violated { violation: Violation::Graph { history, .. }, .. } => {
            assert_eq!(judge(&history), Verdict::Violation, "{name}");
            "violation"
        }
        Outcome::Undecided { reason: Unfinished::Unexplained(_) } => "undecided",
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn each_regression_has_its_verdict() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions");
    let paths = crate::variants::protocols(&folder);
    assert!(paths.len() >= 15);
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = crate::variants::read(&path);
        let expected = text.lines().next().unwrap().strip_prefix("-- expect: ").unwrap();
        let model = Model::parse(&name, &text).unwrap_or_else(|errors| panic!("{errors}"));
        // Continuing after runs that remain unexplained would take long.
        let states = (expected == "undecided").then_some(20_000);
        for symmetry in [true, false] {
            let found = verdict(&name, &model, symmetry, states);
            assert_eq!(found, expected, "{name}, symmetry {symmetry}");
        }
    }
}
