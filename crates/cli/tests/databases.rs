//! `consistory test` on real databases: files, output and cleanup.
//!
//! The anomalies of a run are random; the tests must pass whatever occurs. With `CONSISTORY_DEEP=1`
//! the known violations must be found.

mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::Folder;

/// Result of a run.
struct Ended {
    code: i32,
    last: Value,
    stderr: String,
}

fn test(folder: &Folder, args: &str) -> Ended {
    let ran = folder.run(&format!("test {args} --output run --format json"));
    let last = ran.out.lines().last().unwrap_or("{}");
    let last = serde_json::from_str(last).unwrap_or(Value::Null);
    Ended { code: ran.code, last, stderr: ran.err.clone() }
}

/// Returns why a system cannot be tested here, if it cannot.
fn is_missing(ended: &Ended) -> bool {
    let reasons = ["is not installed", "cannot be isolated"];
    let is_missing = ended.code == 2 && reasons.iter().any(|reason| ended.stderr.contains(reason));
    if is_missing {
        eprintln!("skipped: {}", ended.stderr);
    }
    is_missing
}

fn is_deep() -> bool {
    std::env::var_os("CONSISTORY_DEEP").is_some()
}

/// Checks the common properties of all runs: files, a last line that matches them, and verdicts
/// that `check` confirms on the recorded history.
fn check_run(folder: &Folder, ended: &Ended, models: &str) {
    let Ended { code, last, stderr } = ended;
    assert!([0, 1, 3].contains(code), "exit code {code}: {stderr}");
    for file in ["history.jsonl", "faults.jsonl", "report.html"] {
        assert!(folder.path().join("run").join(file).exists(), "{file} is missing");
    }
    let operations = folder.read("run/history.jsonl").lines().count() as u64;
    assert_eq!(last["operations"].as_u64(), Some(operations));
    assert!(operations > 0, "nothing was recorded: {last}");
    assert!(folder.read("run/report.html").starts_with("<!doctype html>"));
    let report = folder.read_report("run/report.html");
    assert!(report.contains("Latency of requests"), "{report}");
    let again = folder.run(&format!("check run/history.jsonl --model {models} --format json"));
    let judged: Value = serde_json::from_str(again.out.lines().next().unwrap()).unwrap();
    let verdict = |of: &Value, model: &str| {
        let results = of["results"].as_array().unwrap().clone();
        results.into_iter().find(|r| r["model"] == model).map(|r| r["verdict"].clone())
    };
    for model in models.split(',') {
        let (first, second) = (verdict(last, model), verdict(&judged, model));
        assert!(first.is_some(), "{model} was not judged: {last}");
        assert_eq!(first, second, "{model}");
    }
    if let Some(core) = last["violation"].as_object() {
        let lines = core["history"].as_array().unwrap();
        let text: Vec<&str> = lines.iter().map(|line| line.as_str().unwrap()).collect();
        folder.write("core.hist", text.join("\n"));
        assert!(core["operations"].as_u64().unwrap() <= operations);
    }
}

#[test]
fn sqlite_is_consistent_in_every_mode() {
    for settings in ["", "--set journal=delete", "--set cache=shared"] {
        let folder = Folder::new();
        let ended = test(&folder, &format!("sqlite --time 1s {settings}"));
        check_run(&folder, &ended, "cc,sc");
        assert_eq!(ended.code, 0, "{}", ended.last);
        assert!(!folder.path().join("run/data").exists(), "the database is removed");
    }
}

#[test]
fn a_run_can_be_repeated_with_its_seed() {
    let requests = |seed: u32| {
        let folder = Folder::new();
        let ended = test(&folder, &format!("sqlite --time 1s --clients 1 --seed {seed}"));
        assert_eq!(ended.code, 0);
        let history = folder.read("run/history.jsonl");
        let keys: Vec<String> = history
            .lines()
            .take(100)
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|op| format!("{} {} {}", op["op"], op["key"], op["value"]))
            .collect();
        assert_eq!(keys.len(), 100);
        keys
    };
    assert_eq!(requests(7), requests(7));
    assert_ne!(requests(7), requests(8));
}

#[test]
fn wrong_usage_is_explained() {
    let folder = Folder::new();
    for (args, said) in [
        ("test oracle", "is not a target"),
        ("test sqlite --workload chess", "there is no workload `chess`"),
        ("test sqlite --set level=none", "has no setting `level`"),
        ("test sqlite --set journal=none", "is one of wal, delete"),
        ("test sqlite --faults kill", "`kill` needs a node, and there are no nodes"),
        ("test mariadb --faults kill,partition", "`partition` needs two nodes, and there is one"),
        ("test sqlite --model chess", "there is no model `chess`"),
        ("test sqlite --model ser", "ser"),
        ("test etcd --workload queue", "it can run register, "),
        ("test redis --faults earthquake", "there is no fault `earthquake`"),
        ("test redis --isolated", "--isolated is for the program itself"),
    ] {
        let ran = folder.run(args);
        if ran.err.contains("is not installed") {
            continue;
        }
        assert_eq!(ran.code, 2, "{args}: {}", ran.err);
        assert!(ran.err.contains(said), "{args}: {}", ran.err);
    }
    assert!(!folder.path().join("runs").exists(), "nothing was run");
    let list = folder.run("test --list");
    assert_eq!(list.code, 0);
    for name in ["sqlite", "redis", "etcd", "postgres", "mariadb", "galera"] {
        assert!(list.out.contains(name), "{name}");
    }
}

#[test]
fn anyones_system_is_tested_through_json_lines() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let client = examples.join("sqlite_client.py").canonicalize().unwrap();
    let expected =
        [("register", "sc"), ("cas-register", "linearizability"), ("set", "linearizability")];
    for (workload, model) in expected {
        let folder = Folder::new();
        let database = folder.path().join("example.db");
        let ran = folder
            .command("test --time 2s --clients 3 --format json --output run --workload")
            .args([workload, "--command"])
            .arg(format!("{} {}", client.display(), database.display()))
            .output()
            .unwrap();
        let last = String::from_utf8_lossy(&ran.stdout);
        let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(0), "{workload}: {stderr}{last}");
        let last: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
        assert!(last["ok"].as_u64().unwrap() > 0, "{last}");
        assert!(last["results"].to_string().contains(model), "{last}");
    }
}

#[test]
fn a_broken_store_is_found_out() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/broken_store.py");
    let script = script.canonicalize().unwrap().display().to_string();
    let folder = Folder::new();
    let args = format!("--command {script} --system {script} --nodes n1,n2 --time 10s");
    let ended = test(&folder, &args);
    if is_missing(&ended) {
        return;
    }
    check_run(&folder, &ended, "cc,sc");
    // On the other node, every write stays invisible for a tenth of a second.
    assert_eq!(ended.code, 1, "{}{}", ended.last, ended.stderr);
}

#[test]
fn a_server_that_does_not_start_is_reported_at_once() {
    let folder = Folder::new();
    let script = folder.path().join("cluster.sh");
    folder.write(
        "cluster.sh",
        "#!/bin/sh\n[ $1 = start ] && echo 'no port is free' && exit 1\nexit 0\n",
    );
    let made = Command::new("chmod").arg("755").arg(&script).status().unwrap();
    assert!(made.success());
    let script = script.display();
    let ended = test(&folder, &format!("--command {script} --system {script} --nodes n1,n2"));
    if is_missing(&ended) {
        return;
    }
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    for said in ["n1 does not run", "exit status: 1", "no port is free", "run/logs"] {
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
}

#[test]
fn redis_loses_writes_when_its_primary_is_cut_off() {
    let folder = Folder::new();
    let ended = test(&folder, "redis --faults partition --time 15s");
    if is_missing(&ended) {
        return;
    }
    check_run(&folder, &ended, "cc,sc");
    let report = folder.read_report("run/report.html");
    assert!(report.contains("n1 cut off, from "), "the report lists the faults: {report}");
    if ended.code == 1 {
        let core = ended.last["violation"]["operations"].as_u64().unwrap();
        assert!(core <= 6, "{}", ended.last);
    } else {
        assert!(!is_deep(), "no violation: {}", ended.last);
    }
}

#[test]
fn etcd_keeps_linearizable_reads_under_faults() {
    let folder = Folder::new();
    let ended = test(&folder, "etcd --faults partition,kill,pause --time 12s");
    if is_missing(&ended) {
        return;
    }
    check_run(&folder, &ended, "cc,sc");
    assert_ne!(ended.code, 1, "{}", ended.last);
}

#[test]
fn postgres_answers_and_survives_a_kill() {
    let folder = Folder::new();
    // Whichever fault ends first, the server is started only once.
    let ended = test(&folder, "postgres --faults kill+disk-full --time 6s");
    if is_missing(&ended) {
        return;
    }
    check_run(&folder, &ended, "cc,sc");
    assert_ne!(ended.code, 1, "{}", ended.last);
    assert!(ended.last["trouble"].is_null(), "{}", ended.last);
    assert_eq!(ended.last["faults"].as_array().unwrap().len(), 2, "{}", ended.last);
}

#[test]
fn what_was_found_is_tried_again() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/broken_store.py");
    let script = script.canonicalize().unwrap().display().to_string();
    let folder = Folder::new();
    let ended = test(
        &folder,
        &format!("--command {script} --system {script} --nodes n1,n2 --time 5s --reproduce 1"),
    );
    if is_missing(&ended) {
        return;
    }
    check_run(&folder, &ended, "cc,sc");
    assert!(!folder.path().join("run/last-line.json").exists());
    // One line contains all results.
    let again = &ended.last["reproduced"];
    assert_eq!(ended.last["system"], "command");
    match ended.code {
        1 => {
            assert_eq!((&again["runs"], &again["clients"]), (&1.into(), &3.into()));
            // The report of the first run contains them too.
            let seen = &again["seen"];
            let report = folder.read_report("run/report.html");
            let fact = format!(": a violation in {seen} of 1 runs\"]");
            assert!(report.contains("[\"run again\",\"with 3 clients and "), "{report}");
            assert!(report.contains(&fact), "{report}");
        }
        _ => assert!(again.is_null()),
    }
}

/// PostgreSQL's answers come late after a pause; none may be matched with another request.
#[test]
fn postgres_serializes_transactions_through_a_pause() {
    let folder = Folder::new();
    let ended = test(&folder, "postgres --workload list-append --faults pause --time 7s");
    if is_missing(&ended) {
        return;
    }
    check_run(&folder, &ended, "rc,ser");
    assert_ne!(ended.code, 1, "{}", ended.last);
}

/// Returns the measurements of a fault: number of answered round trips, number of attempts, and
/// median in milliseconds.
fn measured(folder: &Folder, event: &str) -> Vec<(u32, u32, f64)> {
    let faults = folder.read("run/faults.jsonl");
    let lines = faults.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| line["event"] == event)
        .map(|line| {
            let text = line["text"].as_str().unwrap().to_owned();
            let (_, numbers) = text.split_once(": ").unwrap();
            let words: Vec<&str> = numbers.split([' ', ',']).filter(|w| !w.is_empty()).collect();
            let median = words.iter().position(|word| *word == "median").map(|at| words[at + 1]);
            let median = median.map_or(0.0, |text| text.parse().unwrap());
            (words[0].parse().unwrap(), words[2].parse().unwrap(), median)
        })
        .collect()
}

#[test]
fn slow_and_lossy_links_are_what_they_say() {
    for fault in ["slow", "lossy"] {
        let folder = Folder::new();
        let ended = test(&folder, &format!("redis --faults {fault} --time 6s"));
        if is_missing(&ended) || ended.stderr.contains("/dev/net/tun") {
            return;
        }
        check_run(&folder, &ended, "cc,sc");
        let (during, after) = (measured(&folder, "measured"), measured(&folder, "healed"));
        let (&[(answered, sent, median)], &[(healed, _, _)]) = (&during[..], &after[..]) else {
            panic!("one fault begins and ends: {}", ended.last)
        };
        if fault == "slow" {
            // 50 ms in each direction; a busy machine can only increase it.
            assert!(median >= 100.0 && answered > 0, "{median} ms, {answered} answered");
        } else {
            // 0.7 * 0.7 of the round trips survive.
            let share = f64::from(answered) / f64::from(sent);
            assert!((0.2..0.8).contains(&share), "{answered} of {sent} answered");
        }
        assert!(healed * 10 > sent * 9, "{healed} of {sent} answered once it is over");
    }
}

#[test]
fn recordings_are_exported_to_jepsen_and_plume() {
    let folder = Folder::new();
    let ended = test(&folder, "sqlite --time 1s --workload rw-register");
    assert_eq!(ended.code, 0, "{}", ended.last);
    let judged = |file: &str| {
        let ran = folder.run(&format!("check {file} --model ser --format json"));
        let line: Value = serde_json::from_str(ran.out.lines().next().unwrap_or("{}")).unwrap();
        (line["operations"].clone(), line["results"][0]["verdict"].clone())
    };
    let (operations, verdict) = judged("run/history.jsonl");
    assert_eq!(verdict, "consistent");
    for (format, file) in [("edn", "run.edn"), ("plume", "run.txt")] {
        let plain = if format == "plume" { "--without-times" } else { "" };
        let ran = folder.run(&format!("convert run/history.jsonl --to {format} {plain} -o {file}"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let (_, again) = judged(file);
        assert_eq!(again, "consistent", "{format}");
    }
    assert!(operations.as_u64().unwrap() > 0);
}

#[test]
fn clients_stop_after_their_operations() {
    let folder = Folder::new();
    let ended = test(&folder, "sqlite --time 60s --operations 20 --clients 3 --keys 2");
    check_run(&folder, &ended, "cc,sc");
    // The requests of each client, and the last read of each key.
    assert_eq!(ended.last["operations"], 3 * 20 + 2);
}

/// Returns all descendants of a process.
fn below(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    loop {
        let before = found.len();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent =
                stat.rsplit_once(')').and_then(|(_, rest)| rest.split(' ').nth(2)?.parse().ok());
            if parent.is_some_and(|parent: u32| found.contains(&parent)) && !found.contains(&pid) {
                found.push(pid);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Kills the child at the end of the test, even if the test fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_run_that_is_killed_leaves_no_process_and_a_valid_history() {
    let folder = Folder::new();
    let ended = test(&folder, "redis --time 1s");
    if is_missing(&ended) {
        return;
    }
    let mut tool: Command = folder.command("test redis --time 60s --output killed");
    let mut tool = Killed(tool.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let history = folder.path().join("killed/history.jsonl");
    let lines = || std::fs::read_to_string(&history).map_or(0, |text| text.lines().count());
    while lines() < 50 {
        assert!(tool.0.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let all = below(tool.0.id());
    assert!(all.len() > 6, "the servers run below the tool: {all:?}");
    tool.0.kill().unwrap();
    tool.0.wait().unwrap();
    let is_alive = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
    };
    while all.iter().any(is_alive) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let ran = folder.run("check killed/history.jsonl --model cc");
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}

#[test]
fn a_run_that_is_killed_inside_is_no_verdict() {
    let folder = Folder::new();
    if is_missing(&test(&folder, "redis --time 1s")) {
        return;
    }
    let mut tool: Command = folder.command("test redis --time 60s --output killed");
    let tool = tool.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let outside = tool.id();
    let history = folder.path().join("killed/history.jsonl");
    while std::fs::read_to_string(&history).map_or(0, |text| text.lines().count()) < 50 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // The first descendants are `unshare` and the inner process, in any order.
    let inside = below(outside).into_iter().skip(1).find(|pid| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.ends_with(b"\0") && !words.starts_with(b"unshare") && !words.starts_with(b"setpriv")
    });
    let killed = Command::new("kill").args(["-9", &inside.unwrap().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = tool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the test was killed") && said.contains("history.jsonl"), "{said}");
}

#[test]
fn an_embedded_database_leaves_no_files_when_it_is_killed() {
    let folder = Folder::new();
    let mut tool: Command = folder.command("test sqlite --time 60s --output killed");
    let mut tool = Killed(tool.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let data = folder.path().join("killed/data");
    while !data.join("sqlite.db").exists() {
        assert!(tool.0.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    tool.0.kill().unwrap();
    tool.0.wait().unwrap();
    while data.exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
