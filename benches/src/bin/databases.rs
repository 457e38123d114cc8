//! Measures the level that each database keeps under each fault, by running `consistory test`.
//!
//! Runs the `consistory` binary in the folder of this one, once per row and seed, and prints a
//! table in Markdown: the strongest level that held in every run, and the smallest violation. This
//! program produced the table in `docs/live.md`. `databases SYSTEM...` prints the rows of some
//! systems.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A row of the table: system, settings (`move`: clients move between nodes), workload, faults, seconds.
struct Row(&'static str, &'static str, &'static str, &'static str, u32);

const ROWS: &[Row] = &[
    Row("sqlite", "", "register", "none", 5),
    Row("sqlite", "", "list-append", "none", 5),
    Row("sqlite", "cache=uncommitted", "list-append", "none", 5),
    Row("redis", "", "register", "none", 5),
    Row("redis", "", "register", "partition", 20),
    Row("redis", "", "register", "kill", 20),
    Row("redis", "", "register", "slow,lossy", 20),
    Row("redis", "appendonly=yes", "register", "disk-full", 20),
    Row("redis", "wait=1", "register", "partition", 20),
    Row("redis", "min-replicas=1", "register", "partition", 20),
    Row("etcd", "", "register", "partition,kill,pause", 20),
    Row("etcd", "", "register", "slow,lossy", 20),
    Row("etcd", "", "register", "disk-full,link-down", 20),
    Row("etcd", "reads=serializable", "register", "partition", 20),
    Row("etcd", "", "rw-register", "kill-all", 20),
    Row("postgres", "level=read-committed", "list-append", "none", 8),
    Row("postgres", "level=repeatable-read", "list-append", "none", 8),
    Row("postgres", "level=serializable", "list-append", "none", 8),
    Row("postgres", "level=serializable", "list-append", "kill,pause", 20),
    Row("postgres", "standbys=1", "register", "failover", 15),
    Row("postgres", "standbys=1 sync=on", "register", "failover", 15),
    Row("postgres", "standbys=1", "set", "failover", 15),
    Row("postgres", "standbys=1 sync=on", "set", "failover", 15),
    Row("postgres", "standbys=1 reads=node move", "register", "none", 8),
    Row("mariadb", "level=read-uncommitted", "list-append", "none", 8),
    Row("mariadb", "level=read-committed", "list-append", "none", 8),
    Row("mariadb", "level=repeatable-read", "list-append", "none", 8),
    Row("mariadb", "level=serializable", "list-append", "none", 8),
    Row("galera", "", "rmw", "none", 10),
    Row("galera", "", "list-append", "none", 10),
    Row("galera", "", "register", "none", 10),
    Row("galera", "move", "register", "none", 10),
    Row("galera", "sync-wait=1 move", "register", "none", 10),
    Row("galera", "sync-wait=1 move", "register", "partition", 20),
    Row("galera", "flush=0", "set", "kill-all", 15),
    Row("galera", "flush=1", "set", "kill-all", 15),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let binary = std::env::current_exe()?.with_file_name("consistory");
    let words: Vec<String> = std::env::args().skip(1).collect();
    let folder = std::env::temp_dir().join(format!("consistory-databases-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let result = levels(&binary, &folder, &words);
    std::fs::remove_dir_all(&folder)?;
    result
}

/// Runs the binary and returns the last line of its JSON.
fn run(
    binary: &Path,
    folder: &Path,
    words: &[String],
) -> Result<Value, Box<dyn std::error::Error>> {
    let output = Command::new(binary)
        .arg("test")
        .args(words)
        .args(["--format", "json", "--output"])
        .arg(folder.join("run"))
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().last() {
        Some(line) => Ok(serde_json::from_str(line)?),
        None => {
            let error = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " ");
            Ok(serde_json::json!({ "error": error }))
        }
    }
}

/// Prints one line per row, with three seeds each.
fn levels(
    binary: &Path,
    folder: &Path,
    systems: &[String],
) -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "| system | settings | workload | faults | operations | strongest models that held | violations in 3 runs | smallest violation |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for Row(system, settings, workload, faults, seconds) in ROWS {
        if !systems.is_empty() && !systems.iter().any(|chosen| chosen == system) {
            continue;
        }
        let (mut operations, mut violations) = (0, 0);
        let mut held: Vec<String> = Vec::new();
        let mut core = String::new();
        for seed in 1..=3 {
            let mut words: Vec<String> = vec![(*system).to_owned()];
            for setting in settings.split_whitespace() {
                match setting {
                    "move" => words.push("--move".to_owned()),
                    setting => words.extend(["--set".to_owned(), setting.to_owned()]),
                }
            }
            words.extend(["--workload", workload, "--faults", faults].map(str::to_owned));
            words.extend([
                "--time".to_owned(),
                format!("{seconds}s"),
                "--seed".to_owned(),
                seed.to_string(),
            ]);
            let found = run(binary, folder, &words)?;
            if let Some(error) = found["error"].as_str() {
                core = error.to_owned();
                break;
            }
            operations += found["operations"].as_u64().unwrap_or(0);
            let names = found["strongest"].as_array().cloned().unwrap_or_default();
            let names: Vec<String> =
                names.iter().filter_map(|n| n.as_str().map(str::to_owned)).collect();
            held.push(if names.is_empty() { "none".to_owned() } else { names.join(" ") });
            if let Some(violation) = found["violation"].as_object() {
                violations += 1;
                let lines = violation["history"].as_array().cloned().unwrap_or_default();
                let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
                let text = format!(
                    "{}: `{}`",
                    violation["model"].as_str().unwrap_or(""),
                    lines.join(" ¦ ")
                );
                if core.is_empty() || text.len() < core.len() {
                    core = text;
                }
            }
        }
        held.sort();
        held.dedup();
        println!(
            "| {system} | {settings} | {workload} | {faults} | {operations} | {} | {violations} | {core} |",
            held.join(", or ")
        );
    }
    Ok(())
}
