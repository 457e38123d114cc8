//! The command that a report shows for a history judges this history alone, in the same way.

mod support;

use std::process::{Command, Stdio};

use serde_json::Value;
use support::{Folder, KEPT, LOST, Ran};

/// Returns the cases of a report.
fn cases(folder: &Folder, report: &str) -> Vec<Value> {
    let chunks = folder.read_report(report);
    let chunks = chunks.lines().map(|chunk| serde_json::from_str::<Vec<Value>>(chunk).unwrap());
    chunks.flatten().collect()
}

/// Runs a command of a report in a shell; `input` replaces `FILE`.
fn repeated(folder: &Folder, command: &str, input: &str) -> Ran {
    let words = command.strip_prefix("consistory ").expect(command).replace("< FILE", "");
    folder.write("standard-input", input);
    let program = format!("\"$0\" {words} --format json < standard-input");
    let output = Command::new("bash")
        .args(["-c", &program, env!("CARGO_BIN_EXE_consistory")])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    Ran {
        code: output.status.code().expect("it was not killed"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Returns the verdicts of a case in the form of [`Ran::verdicts`].
fn words(case: &Value) -> String {
    let title = case["title"].as_str().unwrap();
    let mut text =
        if title.ends_with(']') { title.replace(" [", "[") } else { format!("{title}[0]") };
    for row in case["rows"].as_array().unwrap() {
        let cell = |column: usize| row["cells"][column].as_str().unwrap();
        text += &format!(" {}:{}", cell(0), cell(1));
    }
    text
}

/// Writes a report and runs the command of each of its cases; returns the cases.
fn check_commands(folder: &Folder, command: &str, input: &str) -> Vec<Value> {
    let ran = folder.run_with(&format!("{command} --report report.html"), input.as_bytes());
    assert!(ran.code < 2, "{}", ran.err);
    let cases = cases(folder, "report.html");
    for case in &cases {
        let again = case["recheck"].as_str().unwrap();
        let ran = repeated(folder, again, input);
        assert_eq!(ran.verdicts(), [words(case)], "{again}: {}", ran.err);
    }
    cases
}

fn commands(cases: &[Value]) -> Vec<&str> {
    cases.iter().map(|case| case["recheck"].as_str().unwrap()).collect()
}

fn batch() -> String {
    format!("--- first\n{KEPT}--- second\n{LOST}--- third\n{KEPT}")
}

/// The second transaction began after the first one returned, and does not see its write:
/// serializable, but not in real-time order.
const STALE: &str = "{\"session\":\"a\",\"txn\":0,\"op\":\"write\",\"key\":\"x\",\"value\":1,\"start\":1,\"end\":2}\n\
    {\"session\":\"b\",\"txn\":0,\"op\":\"read\",\"key\":\"x\",\"value\":0,\"start\":3,\"end\":4}\n";

#[test]
fn a_batch_a_folder_and_a_file_of_one_history() {
    let folder = Folder::new();
    folder.write("runs/batch.hist", batch()).write("runs/it's one.hist", LOST);
    folder.write("runs/deeper/-x.hist", KEPT);
    let found = check_commands(&folder, "check runs --model cc,sc --jobs 2 -q", "");
    assert_eq!(found.len(), 5);
    let mut shown = commands(&found);
    shown.sort_unstable();
    assert_eq!(
        shown,
        [
            "consistory check 'runs/it'\\''s one.hist' --model cc,sc",
            "consistory check runs/batch.hist --index 0 --model cc,sc",
            "consistory check runs/batch.hist --index 1 --model cc,sc",
            "consistory check runs/batch.hist --index 2 --model cc,sc",
            "consistory check runs/deeper/-x.hist --model cc,sc",
        ]
    );
}

#[test]
fn the_order_of_transactions_is_part_of_it() {
    let folder = Folder::new();
    folder.write("stale.jsonl", STALE);
    for (order, verdict) in [("realtime", "violation"), ("session", "consistent")] {
        let command = format!("check stale.jsonl --model ser --order {order}");
        let found = check_commands(&folder, &command, "");
        assert_eq!(words(&found[0]), format!("stale.jsonl[0] ser:{verdict}"));
        assert!(commands(&found)[0].contains(&format!("--order {order}")));
    }
}

#[test]
fn standard_input_objects_and_definitions_of_ones_own() {
    let folder = Folder::new();
    let found = check_commands(&folder, "check - --model cc --from hist", &batch());
    assert_eq!(commands(&found)[1], "consistory check - --index 1 --from hist --model cc < FILE");
    let queue = "t0: enqueue(1) @1..2 enqueue(2) @3..4\nt1: dequeue() => 2 @5..6\n";
    folder.write("queue.hist", queue);
    folder.write("mine.cat", "\"Mine\"\nacyclic po | wr as Order\n").write("lost.hist", LOST);
    let found =
        check_commands(&folder, "check queue.hist --object queue --model linearizability", "");
    assert_eq!(words(&found[0]), "queue.hist[0] linearizability:violation");
    check_commands(&folder, "check lost.hist --model mine.cat,cc --shrink --budget 5s", "");
}

#[test]
fn a_share_of_the_histories_names_each_by_its_index() {
    let folder = Folder::new();
    folder.write("batch.hist", batch()).write("one.hist", LOST);
    let mut all = Vec::new();
    for part in 1..=2 {
        let command = format!(
            "check batch.hist one.hist --model cc --format json --part {part}/2 --report p.html"
        );
        let ran = folder.run(&command);
        assert!(ran.code < 2, "{}", ran.err);
        for case in cases(&folder, "p.html") {
            let again = case["recheck"].as_str().unwrap();
            assert!(again.contains("--index ") && !again.contains("--part"), "{again}");
            assert_eq!(repeated(&folder, again, "").verdicts(), [words(&case)]);
            all.push(words(&case));
        }
    }
    all.sort();
    assert_eq!(
        all,
        [
            "batch.hist[0] cc:consistent",
            "batch.hist[1] cc:violation",
            "batch.hist[2] cc:consistent",
            "one.hist[0] cc:violation"
        ]
    );
    // The report of a resumed batch contains the remaining histories.
    let whole = folder.run("check batch.hist --model cc --format json").out;
    let judged: String = whole.lines().skip(1).map(|line| format!("{line}\n")).collect();
    folder.write("out.jsonl", judged);
    let ran = folder
        .run("check batch.hist --model cc --format json --resume out.jsonl --report rest.html");
    assert_eq!(ran.code, 1, "{}", ran.err);
    let rest = cases(&folder, "rest.html");
    assert_eq!(commands(&rest), ["consistory check batch.hist --index 0 --model cc"]);
}

#[test]
fn an_index_chooses_one_history_of_each_input() {
    let folder = Folder::new();
    folder.write("runs/a.hist", batch()).write("runs/b.hist", batch()).write("one.hist", LOST);
    let ran = folder.run("check runs --model cc --index 1 --format json");
    assert_eq!(
        (ran.code, ran.verdicts()),
        (1, vec!["runs/a.hist[1] cc:violation".into(), "runs/b.hist[1] cc:violation".into()])
    );
    let ran = folder.run("check runs one.hist --model cc --index 2 --format json");
    assert_eq!(ran.code, 2);
    assert_eq!(ran.verdicts().len(), 2);
    assert!(ran.err.contains("one.hist") && ran.err.contains("index 2"), "{}", ran.err);
    // The parts divide the histories that the index selects.
    for part in 1..=2 {
        let ran =
            folder.run(&format!("check runs --model cc --index 0 --format json --part {part}/2"));
        folder.write(&format!("{part}.jsonl"), &ran.out);
    }
    let merged = folder.run("merge 1.jsonl 2.jsonl --format json");
    assert_eq!(
        merged.verdicts(),
        ["runs/a.hist[0] cc:consistent", "runs/b.hist[0] cc:consistent"],
        "{}",
        merged.err
    );
    // A history that was judged is not judged again, and the others are not requested.
    let ran = folder.run("check runs --model cc --index 1 --format json --resume out.jsonl");
    assert_eq!(ran.code, 1, "{}", ran.err);
    let ran = folder.run("check runs --model cc --index 2 --format json --resume out.jsonl");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert_eq!(folder.read("out.jsonl").lines().count(), 4);
    for options in ["--anomalies", "--index 1"] {
        assert_eq!(folder.run(&format!("check runs --index 1 {options}")).code, 2);
    }
    assert_eq!(folder.run("check runs --index -1").code, 2);
}

#[test]
fn litmus_tests_protocols_and_contrasts_repeat_themselves() {
    let folder = Folder::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for (name, command) in [
        ("SB.litmus", "litmus outcomes SB.litmus --model sc,tso"),
        ("msi-missing.m", "verify msi-missing.m --budget 60s"),
    ] {
        let from = match name {
            "SB.litmus" => format!("{root}/corpus/litmus/x86/SB.litmus"),
            _ => format!("{root}/crates/serve/assets/examples/msi-missing.m"),
        };
        folder.write(name, std::fs::read(from).unwrap());
        let first = folder.run(&format!("{command} --report report.html"));
        let shown = &cases(&folder, "report.html")[0]["recheck"];
        assert_eq!(shown.as_str(), Some(&*format!("consistory {command}")));
        let again = folder.run(shown.as_str().unwrap().strip_prefix("consistory ").unwrap());
        assert_eq!((again.code, again.out), (first.code, first.out));
    }
    let first = folder.run("contrast tso sc --report report.html");
    let found = cases(&folder, "report.html");
    assert_eq!(commands(&found), ["consistory contrast tso sc"; 1]);
    let again = folder.run("contrast tso sc");
    assert_eq!((again.code, again.out), (first.code, first.out));
}
