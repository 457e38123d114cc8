//! Redoes the experiment of the thesis on Galera (section 3.3.4): random clients on a real cluster
//! of three nodes, recorded and judged by all models of registers.
//!
//! ```text
//! cargo run --release -p consistory-benches --bin galera -- [RUNS] [--published PATH]
//! ```
//!
//! As in the thesis, a history has 4 sessions of 25, 50, .., 150 single operations each, half of
//! them writes, on 15 variables; RUNS (default 20) histories of each size are recorded per
//! configuration. One cluster serves all histories of a configuration, each with separate keys. In
//! addition to configurations that are intended to be causally consistent there is one that is not,
//! because sessions move between nodes that may lag.
//!
//! `--published` names a folder, or an archive that `tar` can unpack, with published histories of
//! the same experiment; they are judged by the same code and compared with ours. Needs the packages
//! mariadb-server, galera-4 and rsync, and runs in separate namespaces like `consistory test`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use consistory::{Court, History, Outcome};
use consistory_drive::{
    Cluster, Links, Observer, RunOptions, Schedule, SessionRule, WorkloadKind, boot, find,
    is_inside, record, relaunch,
};

type Failure = Box<dyn std::error::Error>;

const SESSIONS: u32 = 4;
const VARIABLES: u32 = 15;
const SIZES: [u32; 6] = [25, 50, 75, 100, 125, 150];

/// The models, in the order of the table.
const MODELS: [&str; 9] = ["cc", "ccv", "cm", "ccm", "wsc", "sc", "wccm", "wtso", "tso"];

/// A configuration of the cluster and its clients.
struct Configuration {
    name: &'static str,
    settings: &'static [&'static str],
    moves: bool,
}

const CONFIGURATIONS: [Configuration; 4] = [
    Configuration { name: "sync-wait=0, sessions stay", settings: &["sync-wait=0"], moves: false },
    Configuration { name: "sync-wait=1, sessions move", settings: &["sync-wait=1"], moves: true },
    Configuration { name: "sync-wait=0, sessions move", settings: &["sync-wait=0"], moves: true },
    Configuration {
        name: "read uncommitted, sessions stay",
        settings: &["level=read-uncommitted"],
        moves: false,
    },
];

struct Quiet;
impl Observer for Quiet {}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1).cloned()
    };
    let runs: u32 = words.first().and_then(|word| word.parse().ok()).unwrap_or(20);
    if is_inside() {
        let number: usize = value("--configuration").ok_or("no configuration is given")?.parse()?;
        let folder = PathBuf::from(value("--folder").ok_or("no folder is given")?);
        return record_all(&CONFIGURATIONS[number], &folder, runs);
    }
    println!("| source | histories | operations | {} | judged in |", MODELS.join(" | "));
    println!("| --- |{}", " --- |".repeat(MODELS.len() + 3));
    println!("| thesis, as printed | 1200 | 100 to 600 each | | | 15 |{}", " |".repeat(7));
    let folder = std::env::temp_dir().join(format!("consistory-galera-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let result = compare(&folder, runs, value("--published").map(PathBuf::from).as_deref());
    std::fs::remove_dir_all(&folder)?;
    result
}

fn compare(folder: &Path, runs: u32, published: Option<&Path>) -> Result<(), Failure> {
    if let Some(path) = published {
        judge_published(&unpacked(path, &folder.join("published"))?)?;
    }
    for (number, configuration) in CONFIGURATIONS.iter().enumerate() {
        // Each configuration has separate namespaces.
        let words = [
            runs.to_string(),
            "--configuration".to_owned(),
            number.to_string(),
            "--folder".to_owned(),
            folder.display().to_string(),
        ];
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let status = relaunch(&std::env::current_exe()?, &words, || false)?;
        if !status.success() {
            return Err(format!("{}: {status}", configuration.name).into());
        }
    }
    Ok(())
}

/// Returns the folder of the published histories; an archive is unpacked.
fn unpacked(path: &Path, to: &Path) -> Result<PathBuf, Failure> {
    if path.is_dir() {
        return Ok(path.to_owned());
    }
    std::fs::create_dir_all(to)?;
    let status = Command::new("tar").arg("xf").arg(path).arg("-C").arg(to).status()?;
    if status.success() { Ok(to.to_owned()) } else { Err(format!("tar: {status}").into()) }
}

/// Prints one line per folder of published histories.
fn judge_published(folder: &Path) -> Result<(), Failure> {
    let mut systems = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        systems.push(entry?.path());
    }
    systems.retain(|path| path.is_dir());
    systems.sort();
    for system in systems {
        let mut tally = Tally::new()?;
        for case in consistory::read(&system)? {
            tally.add(&case?.history)?;
        }
        let name = system.file_name().unwrap_or_default().to_string_lossy().into_owned();
        tally.print(&format!("published, {name}"));
    }
    Ok(())
}

/// Records histories on one cluster and prints the line of the configuration.
fn record_all(configuration: &Configuration, folder: &Path, runs: u32) -> Result<(), Failure> {
    let settings: Vec<String> = configuration.settings.iter().map(|&s| s.to_owned()).collect();
    let system = find("galera", &settings)?;
    system.version()?;
    let needed = [folder.to_owned()];
    let cluster = Cluster::isolated(system.nodes(), Links::Bridge, &folder.join("logs"), &needed)?;
    boot(&*system, &cluster, &Quiet)?;
    let mut tally = Tally::new()?;
    let sizes = SIZES.iter().flat_map(|size| (0..runs).map(move |_| *size));
    for (number, size) in (0..).zip(sizes) {
        let options = RunOptions {
            workload: WorkloadKind::Register,
            time: Duration::from_secs(120),
            seed: u64::from(number),
            sessions: SESSIONS,
            keys: VARIABLES,
            first_key: number * VARIABLES,
            requests: Some(size),
            rate: 0,
            timeout: Duration::from_secs(10),
            session_rule: SessionRule::Client,
            moves: configuration.moves,
            keeps_going: true,
            folder: folder.to_owned(),
        };
        let run = record(&*system, &cluster, &Schedule::default(), &options, &Quiet)?;
        // The final reads on every node are not part of the experiment; their sessions come last.
        let is_asked = |line: &&str| {
            (1..=SESSIONS).any(|session| line.starts_with(&format!("{{\"session\":\"c{session}")))
        };
        let lines: Vec<&str> = run.history.lines().filter(is_asked).collect();
        tally.add(&consistory::parse(&lines.join("\n"))?)?;
    }
    tally.print(&format!("recorded, {}", configuration.name));
    Ok(())
}

/// Counts of the verdicts on many histories.
struct Tally {
    court: Court,
    histories: u32,
    operations: usize,
    violations: BTreeMap<String, u32>,
    undecided: u32,
    time: Duration,
}

impl Tally {
    fn new() -> Result<Tally, Failure> {
        let court = Court::registers().models(MODELS)?.budget(Duration::from_secs(30));
        let violations = BTreeMap::new();
        let time = Duration::ZERO;
        Ok(Tally { court, histories: 0, operations: 0, violations, undecided: 0, time })
    }

    fn add(&mut self, history: &History) -> Result<(), Failure> {
        let report = self.court.judge(history)?;
        self.histories += 1;
        self.operations += history.len();
        for verdict in report.iter() {
            self.time += verdict.time();
            match verdict.outcome() {
                Outcome::Violation => {
                    *self.violations.entry(verdict.model().id().to_owned()).or_default() += 1;
                }
                Outcome::Undecided => self.undecided += 1,
                _ => {}
            }
        }
        Ok(())
    }

    fn print(&self, name: &str) {
        let counts: Vec<String> = MODELS
            .iter()
            .map(|model| self.violations.get(*model).copied().unwrap_or(0).to_string())
            .collect();
        let undecided = match self.undecided {
            0 => String::new(),
            n => format!(" ({n} undecided)"),
        };
        println!(
            "| {name} | {} | {} | {} | {:.0} ms{undecided} |",
            self.histories,
            self.operations,
            counts.join(" | "),
            self.time.as_secs_f64() * 1e3
        );
    }
}
