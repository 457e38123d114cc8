//! Tests databases under faults: one command from a running system to a minimal counterexample.

use std::ffi::OsString;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use consistory::Outcome;
use consistory_drive::{
    Cluster, DriveError, FaultEvent, FaultMix, Findings, Judged, ModelVerdict, NodeId, Observer,
    Run, RunOptions, SYSTEMS, Schedule, SessionRule, Sweeper, System, WorkloadKind,
    bound_to_this_thread, counts, external, find, is_inside, relaunch, run,
};
use indicatif::ProgressBar;

use super::judging::{Judge, Verdicts};
use crate::again::test_again;
use crate::args::{DatabaseArgs, OutputFormat, TestArgs, TestSession};
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION};
use crate::interrupt;
use crate::output::{StandardOutput, folded_command, table, write_file};
use crate::reading;
use crate::report::{coloured, quoted};

impl From<DriveError> for CliError {
    fn from(error: DriveError) -> Self {
        match error.hint() {
            Some(hint) => CliError::with_hint(error.to_string(), hint),
            None => CliError::usage(error.to_string()),
        }
    }
}

/// Tests a database, or lists the supported ones.
pub(super) fn test(args: &TestArgs) -> Result<u8, CliError> {
    let own = &args.database;
    if own.list {
        StandardOutput::open()?
            .write(list().as_bytes(), OutputFormat::Text)
            .map_err(CliError::output)?;
        return Ok(OK);
    }
    let workload = WorkloadKind::named(&own.workload).ok_or_else(|| {
        let names: Vec<&str> = WorkloadKind::ALL.iter().map(|(_, name, _)| *name).collect();
        let hint = format!("the workloads are {}", names.join(", "));
        CliError::with_hint(format!("there is no workload `{}`", own.workload), hint)
    })?;
    let system = system(args, workload)?;
    let version = system.version()?;
    if !system.supports(workload) {
        let message = format!("{} cannot run the workload {}", system.name(), workload.name());
        let others = WorkloadKind::ALL.iter().filter(|(other, ..)| system.supports(*other));
        let names: Vec<&str> = others.map(|(_, name, _)| *name).collect();
        return Err(CliError::with_hint(message, format!("it can run {}", names.join(", "))));
    }
    let judge = Judge::new(workload.family(), system.promise(workload), args.model.as_deref());
    judge.check()?;
    let schedule = schedule(args, &*system)?;
    let folder = match &own.output {
        Some(folder) => folder.clone(),
        None => new_folder(system.name()),
    };
    if system.nodes() > 0 && !own.isolated {
        return outside(args, &folder);
    }
    if own.isolated && !is_inside() {
        return Err(CliError::usage("--isolated is for the program itself"));
    }
    let interrupted = interrupt::flag();
    if own.isolated {
        obey_the_one_outside(&interrupted)?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| CliError::file("create", &folder, error))?;
    let sweeper = match system.nodes() {
        // The history is kept; the data of the database is removed.
        0 => Some(Sweeper::new(&folder.join("data"))?),
        _ => None,
    };
    let cluster = match system.nodes() {
        0 => embedded(&folder)?,
        nodes => {
            let links = schedule.links(args.seed);
            Cluster::isolated(nodes, links, &folder.join("logs"), &needed(own))?
        }
    };
    let options = RunOptions {
        workload,
        time: args.time,
        seed: args.seed,
        sessions: own.clients,
        keys: args.keys.unwrap_or(3),
        first_key: 0,
        requests: own.operations,
        rate: own.rate,
        timeout: own.timeout,
        session_rule: match own.session {
            TestSession::Client => SessionRule::Client,
            TestSession::Connection => SessionRule::Connection,
        },
        moves: own.moves,
        keeps_going: own.keep_going,
        folder: folder.clone(),
    };
    let watcher = Watcher { judge: &judge, bar: progress(), interrupted };
    let found = run(&*system, &cluster, &schedule, &options, &watcher);
    watcher.bar.finish_and_clear();
    drop(sweeper);
    let found = found.inspect_err(|_| {
        if !cluster.is_empty() {
            eprintln!("The servers' logs are in {}.", folder.join("logs").display());
        }
    })?;
    // The recorded history is kept, even if judging it fails.
    let verdicts = judge.judge(&found.history).inspect_err(|_| {
        let history = folder.join("history.jsonl");
        eprintln!("The history was recorded in {}.", history.display());
    })?;
    let test = Tested { args, system: &*system, version, workload, folder: &folder, judge: &judge };
    let code = test.exit_code(&found, &verdicts);
    let scenes = verdicts.core.as_ref().map_or(&[][..], |core| &core.scenes);
    super::report::write(&test.report_path(), &test.findings(&found, &verdicts), scenes)?;
    let text = match args.format {
        OutputFormat::Text => test.text(&found, &verdicts),
        OutputFormat::Json => test.json(&found, &verdicts),
    };
    if own.isolated {
        match (args.format, own.reproduce) {
            // The outer process adds the result of the reproduction, and prints one line.
            (OutputFormat::Json, Some(_)) => {
                write_file(&folder.join(LAST_LINE), |out| out.write_all(text.as_bytes()))?;
            }
            _ => print(args, &text)?,
        }
        return Ok(INSIDE + code);
    }
    conclude(args, &folder, code, &text)?;
    Ok(code)
}

/// File in which the inner process leaves its line of JSON for the outer process.
const LAST_LINE: &str = "last-line.json";

fn print(args: &TestArgs, text: &str) -> Result<(), CliError> {
    StandardOutput::open()?.write(text.as_bytes(), args.format).map_err(CliError::output)
}

/// Prints the result, and after a violation repeats the run as often as requested.
fn conclude(args: &TestArgs, folder: &Path, code: u8, text: &str) -> Result<(), CliError> {
    let times = args.database.reproduce.filter(|_| code == VIOLATION);
    let Some(times) = times else { return print(args, text) };
    if args.format == OutputFormat::Text {
        print(args, text)?;
    }
    let Reproduced { seen, clients, faults } = reproduce(args, folder, times)?;
    let how = format!("with {clients} clients and {}", counted(faults, "fault"));
    let came_back = format!("a violation in {seen} of {times} runs");
    super::report::add_fact(
        &report_path(args, folder),
        "run again",
        &format!("{how}: {came_back}"),
    )?;
    match args.format {
        OutputFormat::Text => print(args, &format!("\nRun again {how}: {came_back}.\n")),
        OutputFormat::Json => {
            let line = text.trim_end().strip_suffix('}').unwrap_or(text);
            print(
                args,
                &format!(
                    "{line},\"reproduced\":{{\"seen\":{seen},\"runs\":{times},\
                     \"clients\":{clients},\"faults\":{faults}}}}}\n"
                ),
            )
        }
    }
}

/// Returns the path of the interactive report.
fn report_path(args: &TestArgs, folder: &Path) -> PathBuf {
    args.report.clone().unwrap_or_else(|| folder.join("report.html"))
}

/// Builds the requested system.
fn system(args: &TestArgs, workload: WorkloadKind) -> Result<Box<dyn System>, CliError> {
    let own = &args.database;
    if let Some(command) = &own.command {
        let words = command.split_whitespace().map(str::to_owned).collect();
        return Ok(external(words, own.system.clone(), own.nodes.clone(), workload)?);
    }
    let name = super::target(args);
    if !SYSTEMS.iter().any(|entry| entry.name == name) {
        let names: Vec<&str> = SYSTEMS.iter().map(|entry| entry.name).collect();
        return Err(CliError::with_hint(
            format!("`{name}` is not a target"),
            format!(
                "a target is a database ({}), jdk: and a class, such as jdk:ConcurrentHashMap, or \
                 rust: and a collection, such as rust:dashmap::DashMap",
                names.join(", ")
            ),
        ));
    }
    Ok(find(name, &own.settings)?)
}

/// Largest size of a file with a schedule of faults, in bytes.
const MAX_SCHEDULE_BYTES: u64 = 16 << 20;

fn schedule(args: &TestArgs, system: &dyn System) -> Result<Schedule, CliError> {
    let own = &args.database;
    if let Some(path) = &own.schedule {
        let text = reading::text_within(path, MAX_SCHEDULE_BYTES)?;
        return Ok(Schedule::from_lines(&text, system.verbs(), system.nodes())?);
    }
    let mix = FaultMix::parse(&own.faults, system.verbs(), system.nodes());
    let mix = mix.map_err(|error| match own.command.is_some() && own.system.is_none() {
        true => CliError::with_hint(error.to_string(), "--system SCRIPT starts nodes"),
        false => CliError::from(error),
    })?;
    Ok(Schedule::draw(&mix, system.nodes(), args.time, args.seed))
}

/// Builds the folder of an embedded database.
fn embedded(folder: &Path) -> Result<Cluster, CliError> {
    let data = folder.join("data");
    if data.exists() {
        // A killed run may have left it behind.
        std::fs::remove_dir_all(&data).map_err(|error| CliError::file("remove", &data, error))?;
    }
    std::fs::create_dir_all(&data).map_err(|error| CliError::file("create", &data, error))?;
    Ok(Cluster::embedded(&data))
}

/// Names a folder after the system and the time.
fn new_folder(system: &str) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Path::new("runs").join(format!("{system}-{}-{}", now.as_secs(), std::process::id()))
}

/// Lists paths that must stay visible in the namespaces.
fn needed(own: &DatabaseArgs) -> Vec<PathBuf> {
    let command = own.command.iter().flat_map(|text| text.split_whitespace()).map(PathBuf::from);
    (command.chain(own.system.clone()).chain(std::env::current_exe().ok()))
        .filter_map(|path| path.canonicalize().ok())
        .collect()
}

/// Watches standard input, whose other end the outer process holds: a byte is an interrupt, and the
/// end of the stream means that the outer process has ended. Then this process ends, and with it
/// all nodes.
fn obey_the_one_outside(interrupted: &Arc<AtomicBool>) -> Result<(), CliError> {
    let interrupted = Arc::clone(interrupted);
    let listening = consistory_work::spawn(move || {
        while matches!(std::io::stdin().read(&mut [0]), Ok(1)) {
            interrupted.store(true, Ordering::Relaxed);
        }
        std::process::exit(UNREADABLE.into());
    });
    let what = "cannot watch the outer process".to_owned();
    listening.map(drop).map_err(|error| CliError::Io { what, error })
}

/// Offset that the inner process adds to its exit code, so that no exit code of the programs
/// between the two processes, nor one set by the kernel, can be mistaken for a verdict.
const INSIDE: u8 = 100;

/// Runs the test in its own namespaces, and repeats it to reproduce a violation.
fn outside(args: &TestArgs, folder: &Path) -> Result<u8, CliError> {
    let program = std::env::current_exe().map_err(|error| CliError::Io {
        what: "cannot find the program itself".to_owned(),
        error,
    })?;
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    words.push("--isolated".into());
    if args.database.output.is_none() {
        words.extend(["--output".into(), folder.into()]);
    }
    let interrupted = interrupt::flag();
    let status = relaunch(&program, &words, || interrupted.load(Ordering::Relaxed))?;
    let code = match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(code) if code >= INSIDE => code - INSIDE,
        // The inner process has reported the error.
        Some(UNREADABLE) => UNREADABLE,
        _ => {
            let history = folder.join("history.jsonl");
            let hint = match history.exists() {
                true => format!("the history recorded until then is in {}", history.display()),
                false => "nothing was recorded until then".to_owned(),
            };
            return Err(CliError::with_hint(format!("the test was killed ({status})"), hint));
        }
    };
    if args.database.reproduce.is_some() && code != UNREADABLE {
        // The inner process has printed a text; a line of JSON is in a file.
        let path = folder.join(LAST_LINE);
        let line = match args.format {
            OutputFormat::Text => String::new(),
            OutputFormat::Json => reading::text(&path)?,
        };
        let _ = std::fs::remove_file(&path);
        conclude(args, folder, code, &line)?;
    }
    Ok(code)
}

/// Result of repeating a run.
struct Reproduced {
    /// Number of runs with a violation.
    seen: u32,
    clients: u32,
    faults: usize,
}

/// Repeats the run with the same seed, the faults that began before the violation and half of the
/// clients, and counts the runs with a violation.
fn reproduce(args: &TestArgs, folder: &Path, times: u32) -> Result<Reproduced, CliError> {
    let path = folder.join("faults.jsonl");
    let text = reading::text(&path)?;
    // A run stops soon after the violation, so only faults that had begun can matter.
    let begun = text.lines().filter(|line| line.contains("\"event\":\"begin\"")).count();
    let plan: Vec<&str> =
        text.lines().filter(|line| line.contains("\"plan\":")).take(begun).collect();
    let again = folder.join("reproduce");
    std::fs::create_dir_all(&again).map_err(|error| CliError::file("create", &again, error))?;
    let schedule = again.join("schedule.jsonl");
    write_file(&schedule, |out| writeln!(out, "{}", plan.join("\n")))?;
    let program = std::env::current_exe().map_err(|error| CliError::Io {
        what: "cannot find the program itself".to_owned(),
        error,
    })?;
    let clients = (args.database.clients / 2).max(2);
    let mut seen = 0;
    for time in 0..times {
        let words = without(
            std::env::args_os().skip(1),
            &[
                "--reproduce",
                "--faults",
                "--schedule",
                "--clients",
                "--output",
                "--format",
                // The report shows the first run.
                "--report",
            ],
        );
        let status = bound_to_this_thread(&program)
            .args(words)
            .args(["--clients", &clients.to_string(), "--format", "json", "--schedule"])
            .arg(&schedule)
            .arg("--output")
            .arg(again.join(time.to_string()))
            .stdout(Stdio::null())
            .status()
            .map_err(|error| CliError::Io { what: "cannot run again".to_owned(), error })?;
        seen += u32::from(status.code() == Some(VIOLATION.into()));
    }
    Ok(Reproduced { seen, clients, faults: plan.len() })
}

/// Removes options with their values from a command line.
fn without(words: impl Iterator<Item = OsString>, options: &[&str]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut skips = false;
    for word in words {
        if std::mem::take(&mut skips) {
            continue;
        }
        let text = word.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        if options.contains(&name) {
            skips = !text.contains('=');
            continue;
        }
        kept.push(word);
    }
    kept
}

/// Shows progress, judges the history while it is recorded, and stops on an interrupt.
struct Watcher<'a> {
    judge: &'a Judge,
    bar: ProgressBar,
    interrupted: Arc<AtomicBool>,
}

impl Observer for Watcher<'_> {
    fn progress(&self, message: &str) {
        self.bar.set_message(message.to_owned());
    }

    fn judge(&self, history: &str) -> bool {
        self.bar.set_message(format!("running, {} lines recorded", history.lines().count()));
        self.judge.is_violated(history)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// A completed run with its arguments.
struct Tested<'a> {
    args: &'a TestArgs,
    system: &'a dyn System,
    version: String,
    workload: WorkloadKind,
    folder: &'a Path,
    judge: &'a Judge,
}

impl Tested<'_> {
    /// Computes the exit code from the promised models; if the system did not recover, the result
    /// is undecided.
    fn exit_code(&self, found: &Run, verdicts: &Verdicts) -> u8 {
        let is_promised = |model: &str| {
            self.judge.promised().iter().any(|promised| promised.eq_ignore_ascii_case(model))
        };
        let group = self.judge.promised().iter().any(|m| m == "all" || m == "strongest");
        let of = |outcome: Outcome| {
            verdicts.all.iter().any(|v| v.outcome == outcome && (group || is_promised(&v.model)))
        };
        if of(Outcome::Violation) {
            VIOLATION
        } else if of(Outcome::Undecided) || found.trouble.is_some() || verdicts.all.is_empty() {
            UNDECIDED
        } else {
            OK
        }
    }

    /// Returns the command that repeats the run.
    fn command(&self) -> String {
        let target: Vec<&str> = self.args.target.as_deref().into_iter().collect();
        test_again(&target, self.args.seed)
    }

    /// Describes the result in one sentence.
    fn headline(&self, found: &Run, verdicts: &Verdicts) -> String {
        let held = match verdicts.strongest.is_empty() {
            true => String::new(),
            false => format!("; the strongest models that held: {}", verdicts.strongest.join(", ")),
        };
        if let Some(core) = &verdicts.core {
            let last =
                core.operations.iter().map(|op| op.end.unwrap_or(op.start)).max().unwrap_or(0);
            let before = found.rows.iter().filter(|row| row.end <= last).count();
            let fault = found.faults.iter().rfind(|fault| fault.begin <= last);
            let since = fault.map_or(String::new(), |fault| {
                format!(", {:.1} s after {}", (last - fault.begin) as f64 / 1e9, past(fault))
            });
            return format!(
                "violation of {} after {}{since}; {} enough",
                core.model,
                counted(before, "operation"),
                match core.operations.len() {
                    1 => "1 operation is".to_owned(),
                    n => format!("{n} operations are"),
                }
            );
        }
        let undecided: Vec<&str> = (verdicts.all.iter())
            .filter(|v| v.outcome == Outcome::Undecided)
            .map(|v| v.model.as_str())
            .collect();
        let operations = counted(found.operations as usize, "operation");
        match (verdicts.all.is_empty(), undecided.is_empty()) {
            (true, _) => format!("{operations} recorded, none judged"),
            (false, true) => format!("consistent: {operations}{held}"),
            (false, false) => format!("undecided for {}: {operations}{held}", undecided.join(", ")),
        }
    }

    fn facts(&self) -> Vec<(String, String)> {
        let args = self.args;
        let own = &args.database;
        [
            ("system", self.version.clone()),
            ("settings", self.system.settings()),
            ("workload", self.workload.name().to_owned()),
            ("promised", self.judge.promised().join(", ")),
            ("clients", own.clients.to_string()),
            ("seed", args.seed.to_string()),
            ("consistory", env!("CARGO_PKG_VERSION").to_owned()),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    fn report_path(&self) -> PathBuf {
        report_path(self.args, self.folder)
    }

    fn findings(&self, found: &Run, verdicts: &Verdicts) -> Findings {
        let core = verdicts.core.as_ref();
        let judged = Judged {
            title: format!("{}, {}", self.system.name(), self.workload.name()),
            headline: self.headline(found, verdicts),
            facts: self.facts(),
            command: self.command(),
            verdicts: (verdicts.all.iter())
                .map(|v| ModelVerdict {
                    model: v.model.clone(),
                    verdict: v.outcome.as_str().to_owned(),
                    pattern: v.pattern.clone(),
                })
                .collect(),
            strongest: verdicts.strongest.clone(),
            core: core.map_or(Vec::new(), |core| core.operations.clone()),
            explanation: core.map_or(String::new(), |core| core.explanation.clone()),
        };
        let nodes: Vec<String> =
            (0..self.system.nodes()).map(|node| NodeId(node).to_string()).collect();
        Findings::new(found, &nodes, judged)
    }

    fn text(&self, found: &Run, verdicts: &Verdicts) -> String {
        let counts = counts(&found.rows);
        let mut page = format!(
            "\u{1b}[1m{}\u{1b}[0m ({}), {}, seed {}: {} ok, {} failed, {} unknown in {:.1} s, {}\n",
            self.system.name(),
            self.version,
            self.workload.name(),
            self.args.seed,
            counts.ok,
            counts.failed,
            counts.unknown,
            found.time.as_secs_f64(),
            counted(found.faults.len(), "fault"),
        );
        let headline = self.headline(found, verdicts);
        match &verdicts.core {
            Some(core) => {
                page += &format!("\u{1b}[31m{headline}\u{1b}[0m:\n\n");
                for line in core.text.lines() {
                    page += &format!("    {line}\n");
                }
                page += &format!("\n{}\n", core.explanation.trim_end());
                if self.exit_code(found, verdicts) == OK {
                    let promised = self.judge.promised().join(", ");
                    page += &format!("\nWhat is promised holds: {promised}.\n");
                }
            }
            None => page += &format!("{headline}\n"),
        }
        if let Some(trouble) = &found.trouble {
            page += &format!("\nThe system did not recover: {trouble}\n");
        }
        let rows: Vec<Vec<String>> = (verdicts.all.iter())
            .map(|v| {
                let time = format!("{:.1} ms", v.time.as_secs_f64() * 1e3);
                vec![v.model.clone(), v.outcome.as_str().to_owned(), v.pattern.clone(), time]
            })
            .collect();
        if !rows.is_empty() {
            page += "\n";
            page += &coloured(&table(&["model", "verdict", "pattern", "time"], &rows));
        }
        // If there is no violation, the first lines already contain this.
        if verdicts.core.is_some() && !verdicts.strongest.is_empty() {
            page +=
                &format!("\nThe strongest models that held: {}\n", verdicts.strongest.join(", "));
        }
        page += &format!(
            "\nhistory: {}\nreport:  {}\n{}\n",
            self.folder.join("history.jsonl").display(),
            self.report_path().display(),
            folded_command("again:   ", &self.command())
        );
        page
    }

    fn json(&self, found: &Run, verdicts: &Verdicts) -> String {
        let list = |items: Vec<String>| format!("[{}]", items.join(","));
        let texts = |texts: &[String]| list(texts.iter().map(|text| quoted(text)).collect());
        let ms = |ns: u64| (ns / 1_000_000).to_string();
        let or_null = |ns: Option<u64>| ns.map_or("null".to_owned(), ms);
        let faults = found.faults.iter().map(|fault| {
            format!(
                "{{\"fault\":{},\"text\":{},\"begin_ms\":{},\"end_ms\":{},\"ready_ms\":{}}}",
                quoted(&fault.name),
                quoted(&fault.text),
                ms(fault.begin),
                or_null(fault.end),
                or_null(fault.ready)
            )
        });
        let counts = counts(&found.rows);
        let mut line = format!(
            "{{\"system\":{},\"version\":{},\"settings\":{},\"workload\":\"{}\",\"seed\":{},\
             \"operations\":{},\"ok\":{},\"failed\":{},\"unknown\":{},\"faults\":{},\"promised\":{},\
             \"results\":{},\"strongest\":{}",
            quoted(self.system.name()),
            quoted(&self.version),
            quoted(&self.system.settings()),
            self.workload.name(),
            self.args.seed,
            found.operations,
            counts.ok,
            counts.failed,
            counts.unknown,
            list(faults.collect()),
            texts(self.judge.promised()),
            list(verdicts.all.iter().map(|v| v.json.clone()).collect()),
            texts(&verdicts.strongest),
        );
        if let Some(core) = &verdicts.core {
            let lines: Vec<String> = core.text.lines().map(str::to_owned).collect();
            line += &format!(
                ",\"violation\":{{\"model\":{},\"operations\":{},\"history\":{},\"headline\":{}}}",
                quoted(&core.model),
                core.operations.len(),
                texts(&lines),
                quoted(&self.headline(found, verdicts))
            );
        }
        if let Some(trouble) = &found.trouble {
            line += &format!(",\"trouble\":{}", quoted(trouble));
        }
        line + &format!(
            ",\"millis\":{},\"output\":{},\"again\":{}}}\n",
            found.time.as_millis(),
            quoted(&self.folder.display().to_string()),
            quoted(&self.command())
        )
    }
}

/// Describes the effect of a fault as part of a sentence: `n1 cut off` becomes `n1 was cut off`.
fn past(fault: &FaultEvent) -> String {
    const STATES: [&str; 8] = ["cut", "not", "paused", "killed", "down", "slow", "lost", "full"];
    let is_state = |word: &str| STATES.contains(&word.trim_end_matches(','));
    let words: Vec<&str> = fault.text.split_whitespace().collect();
    let Some(at) = words.iter().position(|word| is_state(word)) else { return fault.text.clone() };
    let (subject, rest) = words.split_at(at);
    let is_node = |word: &&&str| word.starts_with('n') && word[1..].parse::<u32>().is_ok();
    let several = subject.contains(&"nodes")
        || subject.contains(&"packets")
        || subject.iter().filter(is_node).count() > 1;
    let verb = if several { "were" } else { "was" };
    let article = if ["link", "disk"].contains(&subject[0]) { "the " } else { "" };
    format!("{article}{} {verb} {}", subject.join(" "), rest.join(" "))
}

fn counted(number: usize, thing: &str) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    format!("{shown} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Lists the systems: description, whether they are installed, settings, workloads.
fn list() -> String {
    let mut rows = Vec::new();
    for entry in SYSTEMS {
        let state = match find(entry.name, &[]).and_then(|system| system.version()) {
            Ok(version) => version,
            Err(error) => error.hint().unwrap_or_else(|| error.to_string()),
        };
        rows.push(vec![entry.name.to_owned(), entry.about.to_owned(), state]);
    }
    let mut page = table(&["system", "what it is", "installed"], &rows);
    let settings: Vec<Vec<String>> = (SYSTEMS.iter())
        .flat_map(|entry| {
            entry.settings.iter().map(|setting| {
                let pair = format!("{}={}", setting.name, setting.values.join("|"));
                vec![entry.name.to_owned(), pair, setting.about.to_owned()]
            })
        })
        .collect();
    page += "\n";
    page += &table(&["system", "--set, the default first", "what it does"], &settings);
    let workloads: Vec<Vec<String>> = (WorkloadKind::ALL.iter())
        .map(|(_, name, about)| vec![(*name).to_owned(), (*about).to_owned()])
        .collect();
    page += "\n";
    page + &table(&["--workload", "description"], &workloads)
}

/// Builds a spinner on a terminal, and a hidden one elsewhere.
fn progress() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_in_the_past() {
        let told = |text: &str| {
            past(&FaultEvent {
                name: String::new(),
                text: text.to_owned(),
                measured: None,
                node: None,
                begin: 0,
                end: None,
                ready: None,
            })
        };
        for (text, expected) in [
            ("n1 cut off", "n1 was cut off"),
            ("n1 n2 cut off from n3", "n1 n2 were cut off from n3"),
            ("n2 not heard by the others", "n2 was not heard by the others"),
            ("each node cut off from all but two", "each node was cut off from all but two"),
            ("all nodes killed", "all nodes were killed"),
            ("link of n3 down", "the link of n3 was down"),
            ("disk of n1 full", "the disk of n1 was full"),
            ("30 % of packets lost", "30 % of packets were lost"),
            ("n1 killed, n2 promoted", "n1 was killed, n2 promoted"),
            ("n2 cut off, n1 killed, n2 promoted", "n2 was cut off, n1 killed, n2 promoted"),
            ("struck by lightning", "struck by lightning"),
        ] {
            assert_eq!(told(text), expected);
        }
    }
}
