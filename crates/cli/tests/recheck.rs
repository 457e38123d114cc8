//! Saved verdicts: `certify` checks every claim of a line, and a second checker, `dev/recheck.py`,
//! which shares no code with this workspace, accepts correct certificates and rejects forged ones.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::Folder;

/// Runs the second checker on a file of a folder; returns its exit code and its output.
fn recheck(folder: &Folder, file: &str) -> (Option<i32>, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/recheck.py");
    let output = Command::new("python3")
        .arg(script)
        .arg(file)
        .current_dir(folder.path())
        .output()
        .expect("python3 is installed");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Generates histories of several memories, some with planted violations and repeated values, and
/// judges them.
fn judged() -> Folder {
    let folder = Folder::new();
    let count = if std::env::var_os("CONSISTORY_DEEP").is_some() { 400 } else { 30 };
    for (i, memory) in ["sc", "tso", "ccv", "cm"].into_iter().enumerate() {
        for (plant, values) in [(0, ""), (1, ""), (2, " --values 3")] {
            let ran = folder.run(&format!(
                "generate --memory {memory} --sessions 3 --operations 12 --variables 2 --rmws 0.1 \
                 --fences 0.05 --plant {plant}{values} --count {count} --seed {i} \
                 -o {memory}-{plant}.hist"
            ));
            assert_eq!(ran.code, 0, "{}", ran.err);
        }
    }
    folder.write("aborted.hist", "t0: [ w(x,1) ]! w(y,1)\nt1: r(y,1) r(x,0)\n");
    folder.write("unknown.jsonl", concat!(
        "{\"session\":\"a\",\"op\":\"write\",\"key\":\"x\",\"value\":1,\"status\":\"unknown\"}\n",
        "{\"session\":\"b\",\"op\":\"read\",\"key\":\"x\",\"value\":1}\n",
    ));
    let ran = folder.run("check . --model cc,ccv,cm,sc,tso --format json");
    assert!(ran.code < 2, "{}", ran.err);
    folder.write("verdicts.json", &ran.out);
    folder
}

#[test]
fn a_second_checker_agrees() {
    let folder = judged();
    let (code, text) = recheck(&folder, "verdicts.json");
    assert_eq!(code, Some(0), "{text}");
    let accepted = text.lines().last().and_then(|line| line.split(' ').next()?.parse::<u32>().ok());
    assert!(accepted.is_some_and(|accepted| accepted > 1000), "{text}");
}

#[test]
fn verdicts_that_are_turned_round_are_rejected() {
    let folder = judged();
    let mut forged = String::new();
    let mut count = 0;
    for line in folder.read("verdicts.json").lines().take(200) {
        let mut line: Value = serde_json::from_str(line).unwrap();
        for result in line["results"].as_array_mut().unwrap() {
            let turned = match result["verdict"].as_str() {
                Some("consistent") => "violation",
                _ => "consistent",
            };
            result["verdict"] = turned.into();
            count += 1;
        }
        forged += &format!("{line}\n");
    }
    folder.write("forged.json", &forged);
    let (code, text) = recheck(&folder, "forged.json");
    assert!(
        code != Some(0) && text.contains("\n0 accepted") | text.starts_with("0 accepted"),
        "{text}"
    );
    let ran = folder.run("certify forged.json");
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.ends_with(&format!("0 accepted, {count} rejected, 0 undecided\n")),
        "{}",
        ran.out
    );
}

/// Generates histories of transactions on stores of every level, and judges them by every level.
fn judged_levels(order: &str) -> Folder {
    let folder = Folder::new();
    let count = if std::env::var_os("CONSISTORY_DEEP").is_some() { 60 } else { 4 };
    let extras = [
        "",
        "--lists",
        "--aborted 0.2 --indeterminate 0.3",
        "--lists --aborted 0.2 --indeterminate 0.3",
        "--values 2",
        "--values 3",
        "--times",
    ];
    for (i, level) in ["rc", "ra", "tcc", "psi", "pc", "si", "ser"].into_iter().enumerate() {
        for (j, extra) in extras.into_iter().enumerate() {
            let ran = folder.run(&format!(
                "generate --transactions --level {level} --sessions 4 --operations 14 --variables 2 \
                 --size 1..3 --count {count} --seed {} {extra} -o {level}-{j}.hist",
                7 * i + j
            ));
            assert_eq!(ran.code, 0, "{}", ran.err);
        }
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/transactions");
    for file in std::fs::read_dir(corpus).unwrap() {
        let file = file.unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        folder.write(file.file_name().to_str().unwrap(), &text);
    }
    let levels = "rc,ra,tcc,pc,psi,si,ser";
    let ran = folder.run(&format!("check . --model {levels} --order {order} --format json"));
    assert!(ran.code < 2, "{}", ran.err);
    folder.write("verdicts.json", &ran.out);
    folder
}

#[test]
fn a_second_checker_agrees_about_isolation_levels() {
    for order in ["none", "session", "realtime"] {
        let folder = judged_levels(order);
        let (code, text) = recheck(&folder, "verdicts.json");
        assert_eq!(code, Some(0), "{text}");
        let sums = text.lines().last().unwrap_or_default();
        let accepted = sums.split(' ').next().and_then(|number| number.parse::<u32>().ok());
        assert!(accepted.is_some_and(|accepted| accepted > 1000), "{text}");
        assert!(sums.contains(" 0 rejected, 0 skipped"), "{text}");
    }
}

#[test]
fn both_checkers_reject_the_same_damaged_proofs_of_isolation_levels() {
    let folder = judged_levels("session");
    let mut forged = String::new();
    let mut random = consistory_testkit::Random(5);
    for line in folder.read("verdicts.json").lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        for result in line["results"].as_array_mut().unwrap() {
            damage(result, &mut random);
        }
        forged += &format!("{line}\n");
    }
    folder.write("forged.json", &forged);
    let (_, text) = recheck(&folder, "forged.json");
    let ran = folder.run("certify forged.json");
    let counts = |text: &str| -> Vec<u32> {
        let last = text.lines().last().unwrap_or_default();
        last.split(", ")
            .take(2)
            .map(|part| part.split(' ').next().unwrap().parse().unwrap())
            .collect()
    };
    let (ours, other) = (counts(&ran.out), counts(&text));
    assert_eq!(ours, other, "{}\n{text}", ran.out);
    // A reversed commit order may be valid as well.
    assert!(ours[0] * 50 < ours[1], "{}", ran.out);
}

/// Reverses a verdict, or damages an edge or the order of its certificate.
fn damage(result: &mut Value, random: &mut consistory_testkit::Random) {
    let how = random.below(4);
    let is_consistent = result["verdict"] == "consistent";
    let certificate = &mut result["certificate"];
    match certificate["kind"].as_str() {
        Some("cycle") if how > 0 => {
            let edges = certificate["edges"].as_array_mut().unwrap();
            let at = random.below(edges.len());
            match how {
                1 => {
                    let other = if edges[at]["relation"] == "so" { "wr" } else { "so" };
                    edges[at]["relation"] = other.into();
                }
                2 => {
                    let (from, to) = (edges[at]["from"].clone(), edges[at]["to"].clone());
                    (edges[at]["from"], edges[at]["to"]) = (to, from);
                }
                _ => {
                    edges.pop();
                }
            }
        }
        Some("order") if how > 0 && certificate["order"].as_array().unwrap().len() > 1 => {
            let order = certificate["order"].as_array_mut().unwrap();
            match how {
                1 => {
                    order.pop();
                }
                2 => order.reverse(),
                _ => order.push(order[0].clone()),
            }
        }
        _ => result["verdict"] = if is_consistent { "violation" } else { "consistent" }.into(),
    }
}

/// Judges one history, changes its line, and returns the result of `certify`.
fn certified(change: impl Fn(&mut String)) -> (i32, String) {
    let folder = Folder::new();
    folder.write("mp.hist", "t0: w(x,1) w(y,1)\nt1: r(y,1) r(x,0)\n");
    let mut line = folder.run("check mp.hist --model cc,sc,pso --format json").out;
    change(&mut line);
    folder.write("verdicts.jsonl", &line);
    let ran = folder.run("certify verdicts.jsonl");
    (ran.code, ran.out + &ran.err)
}

#[test]
fn every_claim_of_a_line_is_looked_at() {
    assert_eq!(certified(|_| {}).0, 0);
    let replaced = |from: &str, to: &str| {
        certified(|line| {
            assert!(line.contains(from), "{line}");
            *line = line.replacen(from, to, 1);
        })
    };
    for (from, to, expected) in [
        ("\"operations\":4", "\"operations\":5", 1),
        ("\"sessions\":2", "\"sessions\":1", 1),
        ("\"digest\":\"", "\"digest\":\"0", 1),
        ("\"pattern\":\"WriteCOInitRead\"", "\"pattern\":\"CyclicCO\"", 1),
        ("\"pattern\":\"WriteCOInitRead\",", "", 1),
        ("\"index\":0", "\"name\":\"another\",\"index\":0", 1),
        ("\"index\":0", "\"index\":0,\"index\":0", 2),
        ("\"verdict\":", "\"verdict\":\"consistent\",\"verdict\":", 2),
        ("\"results\":", "\"strongest\":[\"sc\"],\"results\":", 1),
        ("\"digest\":", "\"other\":", 2),
    ] {
        let (code, text) = replaced(from, to);
        assert_eq!(code, expected, "{from} by {to}: {text}");
    }
    // If nothing is checked, nothing is proved.
    let (code, _) = certified(|line| *line = String::new());
    assert_eq!(code, 3);
}

#[test]
fn an_interrupted_batch_goes_on() {
    let folder = Folder::new();
    folder.write("a.hist", "t: w(x,1)\n---\nt: r(x,1)\n---\nt: r(x,0)\n");
    folder.write("b.hist", "t: w(x,1) r(x,1)\n");
    let whole = folder.run("check a.hist b.hist --model cc --format json");
    assert_eq!(whole.code, 1);
    let untimed = |text: &str| -> Vec<Value> {
        let line = |line: &str| {
            let mut line: Value = serde_json::from_str(line).expect(line);
            for result in line["results"].as_array_mut().unwrap() {
                result["millis"] = 0.into();
            }
            line
        };
        text.lines().map(line).collect()
    };
    let lines: Vec<&str> = whole.out.lines().collect();
    for kept in 0..=lines.len() {
        // The last line is incomplete.
        let mut text: String = lines[..kept].iter().map(|line| format!("{line}\n")).collect();
        text += "{\"source\":\"a.hi";
        folder.write("out.jsonl", &text);
        let ran = folder.run("check a.hist b.hist --model cc --format json --resume out.jsonl");
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
        assert_eq!(untimed(&folder.read("out.jsonl")), untimed(&whole.out), "{kept} lines kept");
    }
    for models in ["sc", "cc,sc", "all", "strongest"] {
        let ran =
            folder.run(&format!("check a.hist --model {models} --format json --resume out.jsonl"));
        assert_eq!(ran.code, 2, "{models}: {}", ran.err);
        assert!(ran.err.contains("out.jsonl:1: verdicts on other models"), "{}", ran.err);
    }
    folder.write("b.hist", "t: w(x,1) r(x,0)\n");
    let ran = folder.run("check a.hist b.hist --model cc --format json --resume out.jsonl");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("b.hist [0]: the history has changed"), "{}", ran.err);
    folder.write("mine.txt", "this is not\na file of verdicts");
    let ran = folder.run("check a.hist --model cc --format json --resume mine.txt");
    assert_eq!((ran.code, folder.read("mine.txt").len()), (2, 30), "{}", ran.err);
}

/// Verdicts on a converted history are verdicts on the original input.
#[test]
fn converted_histories_are_certified_and_resumed() {
    let folder = Folder::new();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/doors");
    for file in ["initial-in-transaction.hist", "initial-of-call.hist", "bank.edn"] {
        folder.write(file, std::fs::read(corpus.join(file)).unwrap());
    }
    for args in [
        "initial-in-transaction.hist --model ser",
        "initial-in-transaction.hist --model linearizability",
        "initial-of-call.hist --model linearizability",
        "initial-of-call.hist",
        "bank.edn --object bank(2*10)",
    ] {
        let ran = folder.run(&format!("check {args} --format json"));
        folder.write("verdicts.json", &ran.out);
        let certified = folder.run("certify verdicts.json");
        assert_eq!(certified.code, 0, "{args}: {}{}", certified.out, certified.err);
        let resumed = folder.run(&format!("check {args} --format json --resume verdicts.json"));
        assert_eq!((resumed.code, resumed.err.as_str()), (ran.code, ""), "{args}");
        assert_eq!(folder.read("verdicts.json"), ran.out, "{args}");
    }
}

#[test]
fn names_cannot_forge_lines() {
    let folder = Folder::new();
    folder.write(
        "names.hist",
        "--- \"a\\u000amp.hist: consistent\\u001b[2J\\u202e\"\n\"s\\u000ax\": r(x,1)\n",
    );
    let ran = folder.run("check names.hist --model cc");
    assert_eq!(ran.code, 1);
    assert!(!ran.out.lines().any(|line| line.starts_with("mp.hist")), "{}", ran.out);
    assert!(!ran.out.contains(['\u{1b}', '\u{202e}']), "{}", ran.out);
    let ran = folder.run("check missing\u{202e}\u{9b}2J.hist --model cc");
    assert_eq!(ran.code, 2);
    assert!(!ran.err.contains(['\u{202e}', '\u{9b}']), "{}", ran.err);
}
