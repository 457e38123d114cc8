//! Every history of the corpus has the verdicts that it expects, with accepted certificates.
//!
//! Comments in the file state the expected verdicts:
//! `# expect: cc violation WriteCORead; sc violation`; the pattern is optional. A file without an
//! expectation fails.

use std::path::{Path, PathBuf};

use consistory_certify::certify;
use consistory_formats::{Format, Input, parse_str, read, write_history};
use consistory_history::History;
use consistory_models::find;
use consistory_registers::{Model, Options, Ruling, judge, shrink};
use consistory_verdict::{Certificate, Judgement, Verdict};

fn corpus() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut files: Vec<PathBuf> = ["histories", "regressions", "atlas"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

/// Parses `model verdict [pattern]` from the comments of a file.
fn expectations(text: &str) -> Vec<(String, String, Option<String>)> {
    text.lines()
        .filter_map(|line| line.strip_prefix("# expect:"))
        .flat_map(|line| line.split(';'))
        .map(|part| {
            let mut words = part.split_whitespace().map(str::to_owned);
            let model = words.next().expect("an expectation names a model");
            let verdict = words.next().expect("an expectation has a verdict");
            (model, verdict, words.next())
        })
        .collect()
}

fn ruling(history: &History, model: &str) -> Ruling {
    let models = [Model::Catalogued(find(model).unwrap())];
    judge(history, &models, &Options::default()).remove(0).unwrap()
}

fn judgement(history: &History, model: &str) -> Judgement<Certificate> {
    ruling(history, model).judgement
}

#[test]
fn every_history_has_the_verdicts_that_it_expects() {
    let mut checked = 0;
    for file in corpus() {
        let name = file.display().to_string();
        let expected = expectations(&std::fs::read_to_string(&file).unwrap());
        assert!(!expected.is_empty(), "{name} expects nothing");
        let histories: Vec<History> =
            read(&Input::File(file), None).collect::<Result<_, _>>().unwrap();
        assert_eq!(histories.len(), 1, "{name} holds one history");
        for (model, verdict, pattern) in expected {
            let Ruling { judgement, via, .. } = ruling(&histories[0], &model);
            assert_eq!(judgement.verdict().as_str(), verdict, "{model} of {name}");
            let (shown, claim) = (via.unwrap_or(&model), judgement.verdict());
            let certificate = judgement.certificate().expect("it is decided");
            // The checker has no rules for RMO, which the evaluator decides.
            if shown != "rmo"
                && let Err(rejection) = certify(&histories[0], shown, claim, certificate)
            {
                panic!("{shown} of {name}: {rejection}");
            }
            if let Some(expected) = pattern {
                let Judgement::Violation { pattern, .. } = judgement else {
                    panic!("{name} expects a pattern of a consistent history");
                };
                assert_eq!(pattern.as_str(), expected, "{model} of {name}");
            }
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn a_shrunk_history_is_minimal_and_still_violates() {
    for file in corpus() {
        let name = file.display().to_string();
        let history = read(&Input::File(file), None).next().unwrap().unwrap();
        let models: &[&str] =
            if history.finals().is_empty() { &["cc", "ccv", "cm", "sc"] } else { &["sc"] };
        for &model in models {
            let violation = judgement(&history, model);
            if violation.verdict() != Verdict::Violation {
                continue;
            }
            let small = shrink(&history, &violation, |part| Ok(judgement(part, model)));
            let thin_air = |j: &Judgement<Certificate>| matches!(j, Judgement::Violation { pattern, .. } if pattern == "ThinAirRead");
            let still = judgement(&small, model);
            assert_eq!(still.verdict(), Verdict::Violation, "{model} of {name}");
            assert_eq!(thin_air(&still), thin_air(&violation), "{model} of {name}");
            for op in small.ops() {
                let keep: Vec<bool> = small.ops().map(|other| other != op).collect();
                let less = judgement(&consistory_registers::subset(&small, &keep), model);
                assert!(
                    less.verdict() == Verdict::Consistent
                        || (thin_air(&less) && !thin_air(&violation)),
                    "{model} of {name}: {} can be taken away",
                    small.reference(op)
                );
            }
        }
    }
}

#[test]
fn shrinking_finds_the_needle() {
    let hay = "a: w(p,1) w(q,2) r(q,2) w(x,1) w(p,3) w(y,1) r(p,3)\n\
               b: r(p,1) w(q,7) r(y,1) r(q,7) r(x,0) w(p,9)\n\
               c: w(r,1) r(r,1) r(p,0)\n";
    let history = parse_str(hay, Format::Hist, "hay").unwrap().remove(0);
    let violation = judgement(&history, "cc");
    let small = shrink(&history, &violation, |part| Ok(judgement(part, "cc")));
    let mut text = Vec::new();
    write_history(&small, Format::Hist, &mut text).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "a: w(x,1) w(y,1)\nb: r(y,1) r(x,0)\n");
}

#[test]
fn the_cycle_that_is_shown_is_a_shortest_one() {
    let short_and_long = [
        // Of t0's two writes, both seen by t2 before it reads 5, the first gives the shorter cycle.
        (
            "ccv",
            "t0: w(x,1) w(x,2)",
            "t1: w(x,5)\nt2: r(x,2) r(x,5)\nt3: r(x,5) r(x,1)",
            "w(x,1) cf w(x,5)",
            2,
        ),
        ("cc", "t0: r(x,1) w(x,1)", "t1: r(y,1) r(x,1) w(y,1)", "r(x,1) po w(x,1)", 2),
        (
            "cc",
            "a: r(p,1) w(q,1)\nb: r(q,1) w(p,1)",
            "c: r(r,1) w(s,1)\nd: r(s,1) w(t,1)\ne: r(t,1) w(r,1)",
            "r(p,1) po w(q,1)",
            4,
        ),
        (
            "cc",
            "a: w(x,1)\nb: r(x,1) r(x,0)",
            "c: w(y,1) w(z,1)\nd: r(z,1) r(y,0)",
            "r(x,0) rw w(x,1)",
            3,
        ),
        (
            "cc",
            "a: w(x,1) w(x,2)\nb: r(x,2) r(x,1)",
            "c: w(y,1)\nd: r(y,1) w(y,2) w(z,1)\ne: r(z,1) r(y,1)",
            "r(x,1) rw w(x,2)",
            3,
        ),
        (
            "cm",
            "a: w(z,1) w(x,1) w(y,1)\nb: w(x,2) r(z,0) r(y,1) r(x,2)",
            "c: w(v,1) w(u,1)\nd: r(u,1) w(s,1)\ne: w(u,2) w(t,1)\nf: r(t,1) r(v,0) r(s,1) r(u,2)",
            "w(z,1) hb w(z,0)",
            2,
        ),
    ];
    for (model, short, long, edge, length) in short_and_long {
        for text in [format!("{short}\n{long}\n"), format!("{long}\n{short}\n")] {
            let history = parse_str(&text, Format::Hist, "short").unwrap().remove(0);
            let Judgement::Violation { certificate: Certificate::Cycle { edges, .. }, .. } =
                judgement(&history, model)
            else {
                panic!("it violates {model} by a cycle:\n{text}");
            };
            let shown: Vec<String> = edges
                .iter()
                .map(|e| format!("{} {} {}", history.show(e.from), e.relation, history.show(e.to)))
                .collect();
            assert_eq!(shown.len(), length, "{text}{shown:?}");
            assert!(shown.iter().any(|step| step == edge), "{text}{shown:?}");
        }
    }
}
