//! `consistory test` on real databases: what it writes, what it says, and what it leaves behind.
//!
//! Which anomalies a run sees is chance; the tests hold whatever it sees. With `CONSISTORY_DEEP=1` the
//! violations that are known to be there must be found.

mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::Folder;

/// What a run ended with.
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

/// Says why a system cannot be tested here, if it cannot.
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

/// Checks what every run must have: files, a last line that fits them, and verdicts that `check`
/// confirms on the recorded history.
fn check_run(folder: &Folder, ended: &Ended, models: &str) {
    let Ended { code, last, stderr } = ended;
    assert!([0, 1, 3].contains(code), "exit code {code}: {stderr}");
    for file in ["history.jsonl", "faults.jsonl", "report.html"] {
        assert!(folder.path().join("run").join(file).exists(), "{file} is missing");
    }
    let operations = folder.read("run/history.jsonl").lines().count() as u64;
    assert_eq!(last["operations"].as_u64(), Some(operations));
    assert!(operations > 0, "nothing was recorded: {last}");
    let report = folder.read("run/report.html");
    assert!(report.starts_with("<!doctype html>") && report.contains("Rates and latencies"));
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
        ("test sqlite --faults kill", "has no nodes"),
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
    for (workload, model) in [("register", "sc"), ("cas-register", "linearizability")] {
        let folder = Folder::new();
        let database = folder.path().join("example.db");
        let ran = folder
            .command("test --time 3s --clients 3 --format json --output run --workload")
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
    // Every write is invisible on the other node for a tenth of a second.
    assert_eq!(ended.code, 1, "{}{}", ended.last, ended.stderr);
}

#[test]
fn redis_loses_writes_when_its_primary_is_cut_off() {
    let folder = Folder::new();
    let ended = test(&folder, "redis --faults partition --time 15s");
    if is_missing(&ended) {
        return;
    }
    check_run(&folder, &ended, "cc,sc");
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
    let ended = test(&folder, "postgres --faults kill --time 6s");
    if is_missing(&ended) {
        return;
    }
    check_run(&folder, &ended, "cc,sc");
    assert_ne!(ended.code, 1, "{}", ended.last);
}

/// Returns all processes below another one.
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

/// Kills the child whatever happens to the test.
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
