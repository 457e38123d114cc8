//! `consistory test`: runs databases under faults, and random client programs on a collection;
//! judges the histories and shrinks violations.

mod databases;
mod judging;
mod report;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use consistory::NamedObject;
use consistory_harness::{
    Campaign, CampaignError, Failure, Fault, Programs, Promise, Report, Runner, Signature,
};
use consistory_history::escaped;
use consistory_live::{Clock, JDK, Jdk, JdkCollection, JdkError, JdkOptions, UnknownMethod};
use consistory_objects::{Calls, Options, Task, judge_object};
use consistory_spec::{Level, Object, ObjectModel, parse_levels};
use consistory_verdict::{Budget, Family, Verdict};
use indicatif::{ProgressBar, ProgressStyle};

use crate::again::test_again;
use crate::args::{OutputFormat, TestArgs, TestClock};
use crate::error::{CliError, OK, UNDECIDED, VIOLATION};
use crate::output::{StandardOutput, diagram_columns, table, write_file};
use crate::part::{PartEnd, run_id};
use crate::report::quoted;

/// Time limit for shrinking a violation.
const SHRINKING_TIME: Duration = Duration::from_secs(5);

/// Time limit for deciding whether visibility levels explain a violation.
const JUDGING_TIME: Duration = Duration::from_secs(1);

/// A collection to be tested.
struct Subject {
    /// Name of the object that the collection is expected to implement.
    name: &'static str,
    object: Arc<dyn Object>,
    /// Methods to call.
    signatures: Vec<Signature>,
}

/// Tests a database or a collection.
pub(crate) fn test(args: &TestArgs) -> Result<u8, CliError> {
    match target(args).split_once(':') {
        Some(("jdk", name)) => jdk(args, name),
        Some(("rust", name)) => rust(args, name),
        _ if args.part.part.is_some() => Err(CliError::with_hint(
            "--part is for campaigns of collections",
            "every run of a database has a seed: give each machine a --seed of its own",
        )),
        _ => databases::test(args),
    }
}

/// Returns the target as it was given.
fn target(args: &TestArgs) -> &str {
    args.target.as_deref().unwrap_or_default()
}

/// Tests a collection of a Rust crate.
#[cfg(feature = "collections")]
fn rust(args: &TestArgs, name: &str) -> Result<u8, CliError> {
    use consistory_harness::{Clock, collections};
    let collection = collections::find(name).ok_or_else(|| {
        let names: Vec<&str> = collections::catalogue().iter().map(|c| c.name).collect();
        CliError::with_hint(
            format!("`{name}` is not a collection of Rust that can be tested"),
            format!("the collections are {}", names.join(", ")),
        )
    })?;
    let clock = match args.clock {
        TestClock::Counters => Clock::Counters,
        TestClock::Plain => Clock::Monotonic,
    };
    let built = collection.build_with(clock);
    let (built, mut runner) = built.map_err(|error| CliError::usage(error.to_string()))?;
    let mut signatures = built.programs.signatures;
    let asked = || args.methods.iter().chain(&args.without);
    if let Some(unknown) = asked().find(|name| signatures.iter().all(|s| *s.method != ***name)) {
        let mut known: Vec<&str> = signatures.iter().map(|s| &*s.method).collect();
        known.dedup();
        return Err(CliError::with_hint(
            format!("{} has no method `{unknown}`", collection.name),
            format!("its methods are {}", known.join(", ")),
        ));
    }
    let is_in = |list: &[String], s: &Signature| list.iter().any(|name| **name == *s.method);
    signatures.retain(|s| args.methods.is_empty() || is_in(&args.methods, s));
    signatures.retain(|s| !is_in(&args.without, s));
    let subject = Subject { name: collection.object, object: built.object, signatures };
    let campaign = campaign(args, &subject)?;
    conduct(args, &subject, &campaign, &mut runner, |error| CliError::usage(error.to_string()))
}

/// Reports that no collection of a Rust crate was built in.
#[cfg(not(feature = "collections"))]
fn rust(args: &TestArgs, _name: &str) -> Result<u8, CliError> {
    Err(CliError::with_hint(
        format!("`{}`: no collections of Rust crates are built in", target(args)),
        "build with `cargo build --release --features collections`",
    ))
}

/// Tests a collection of the JDK.
fn jdk(args: &TestArgs, name: &str) -> Result<u8, CliError> {
    let collection = JdkCollection::named(name).ok_or_else(|| {
        let names: Vec<&str> = JDK.iter().map(|collection| collection.name).collect();
        CliError::with_hint(
            format!("`{name}` is not a collection of the JDK that can be tested"),
            format!("the collections are {}", names.join(", ")),
        )
    })?;
    let unknown = |error: UnknownMethod| {
        let hint = format!("its methods are {}", error.known.join(", "));
        CliError::with_hint(error.to_string(), hint)
    };
    collection.signatures(&args.without).map_err(unknown)?;
    let mut signatures = collection.signatures(&args.methods).map_err(unknown)?;
    signatures.retain(|signature| args.without.iter().all(|name| **name != *signature.method));
    let (name, object) = (collection.object, collection.specification());
    let subject = Subject { name, object, signatures };
    let campaign = campaign(args, &subject)?;
    let options = JdkOptions {
        home: std::env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin")),
        clock: match args.clock {
            TestClock::Counters => Clock::Counters,
            TestClock::Plain => Clock::Plain,
        },
        seed: args.seed,
        ..JdkOptions::new(collection, cache().join("jdk"))
    };
    let mut runner = Jdk::start(options).map_err(jdk_error)?;
    conduct(args, &subject, &campaign, &mut runner, jdk_error)
}

fn jdk_error(error: JdkError) -> CliError {
    match error {
        JdkError::Missing { .. } => CliError::with_hint(
            error.to_string(),
            "install a JDK, such as the package default-jdk-headless; JAVA_HOME says where it is if \
             it is not on the search path",
        ),
        error => CliError::usage(error.to_string()),
    }
}

/// Returns the folder for files that are created once and reused.
fn cache() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
    match (folder("XDG_CACHE_HOME"), folder("HOME")) {
        (Some(cache), _) => Path::new(&cache).join("consistory"),
        (None, Some(home)) => Path::new(&home).join(".cache/consistory"),
        // The name must be unique, because files in the folder are executed.
        (None, None) => std::env::temp_dir().join(format!("consistory-{}", std::process::id())),
    }
}

/// Builds the campaign from the arguments.
fn campaign(args: &TestArgs, subject: &Subject) -> Result<Campaign, CliError> {
    let promise = match (&args.levels, args.model.as_deref().unwrap_or("linearizability")) {
        (Some(levels), _) => {
            let mut levels = parse_levels("--levels", levels).map_err(CliError::from)?;
            for (method, _) in &mut levels {
                let named = NamedObject::new(subject.name, Arc::clone(&subject.object));
                *method = named.known_method(method)?;
            }
            Promise::Levels { levels, other: Level::Complete }
        }
        (None, "levels") => Promise::Levels { levels: Vec::new(), other: Level::Weak },
        (None, id) => Promise::Model(ObjectModel::named(id).ok_or_else(|| {
            CliError::from(consistory::Error::WrongFamily {
                id: id.to_owned(),
                expected: Family::Objects,
            })
        })?),
    };
    if let Some(folder) = &args.drawing.draw {
        std::fs::create_dir_all(folder).map_err(|e| CliError::file("create", folder, e))?;
    }
    let mut campaign = Campaign::new(Arc::clone(&subject.object), subject.signatures.clone());
    campaign.promise = promise;
    campaign.programs = Programs {
        threads: args.threads.into(),
        calls: args.calls.into(),
        keys: args.keys.unwrap_or(2),
        seed: args.seed,
        ..campaign.programs
    };
    if let Some(part) = args.part.of(args.format)? {
        campaign.share = (part.index, part.of);
    }
    campaign.rounds = args.rounds;
    campaign.time = args.time;
    campaign.runs = args.runs;
    campaign.failures = args.failures.max(1);
    campaign.shrinking = SHRINKING_TIME;
    campaign.infers_levels = true;
    Ok(campaign)
}

/// Runs a campaign and prints its results.
fn conduct<R: Runner>(
    args: &TestArgs,
    subject: &Subject,
    campaign: &Campaign,
    runner: &mut R,
    explain: impl Fn(R::Error) -> CliError,
) -> Result<u8, CliError> {
    let bar = progress_bar();
    let report = campaign.run(runner, |report| {
        bar.set_position(report.runs);
        bar.set_message(match report.failures.len() {
            0 => String::new(),
            1 => ", 1 violation".to_owned(),
            n => format!(", {n} violations"),
        });
    });
    bar.finish_and_clear();
    let report = report.map_err(|error| match error {
        CampaignError::Runner(error) => explain(error),
        CampaignError::Call { .. } => CliError::usage(error.to_string()),
    })?;
    let mut drawings = Vec::new();
    for (number, failure) in report.failures.iter().enumerate() {
        drawings.push(draw(args, number, failure)?);
    }
    let text = match args.format {
        OutputFormat::Text => page(args, subject, &report, &drawings).into_bytes(),
        OutputFormat::Json => lines(args, subject, &report, &drawings),
    };
    if let Some(path) = &args.report {
        let again = test_again(&[target(args)], args.seed);
        report::write_failures(path, target(args), &report, &again)?;
    }
    let code = match (report.failures.is_empty(), report.undecided) {
        (false, _) => VIOLATION,
        (true, 0) => OK,
        (true, _) => UNDECIDED,
    };
    let mut out = StandardOutput::open()?;
    out.write(&text, args.format).map_err(CliError::output)?;
    if let Some(part) = args.part.part {
        let settings = (target(args), &args.methods, &args.without, &args.model, &args.levels);
        let sizes = (args.threads, args.calls, args.keys, args.rounds, args.runs, args.seed);
        let run = run_id("test", &(settings, sizes));
        let lines = report.failures.len() as u64 + 1;
        let end = PartEnd { part, command: "test", run, lines, errors: 0, code };
        out.write(end.line().as_bytes(), args.format).map_err(CliError::output)?;
    }
    Ok(code)
}

/// Draws a violation, if this was requested and is possible; returns the path of the drawing.
fn draw(args: &TestArgs, number: usize, failure: &Failure) -> Result<Option<String>, CliError> {
    let (Some(folder), Some(verdict)) = (&args.drawing.draw, failure.verdict()) else {
        return Ok(None);
    };
    let format = args.drawing.format();
    let name: String =
        target(args).chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let path = folder.join(format!("{name}.{number}.{}", format.extension()));
    write_file(&path, |out| out.write_all(verdict.draw_as(format).as_bytes()))?;
    Ok(Some(path.display().to_string()))
}

/// Formats the results for people.
fn page(
    args: &TestArgs,
    subject: &Subject,
    report: &Report,
    drawings: &[Option<String>],
) -> String {
    let promise = report.promise.name();
    let mut page = format!("{} as {}, by {promise}\n", target(args), subject.name);
    let row = [
        report.programs.to_string(),
        report.runs.to_string(),
        report.outcomes.to_string(),
        report.bad_runs.to_string(),
        report.failures.len().to_string(),
        format!("{:.1} s", report.elapsed.as_secs_f64()),
    ];
    let header = ["programs", "runs", "different outcomes", "wrong runs", "violations", "time"];
    page += &table(&header, &[row.to_vec()]);
    if report.undecided > 0 {
        page += &format!("\n{} outcomes could not be decided.\n", report.undecided);
    }
    for (number, (failure, drawing)) in report.failures.iter().zip(drawings).enumerate() {
        let (bad, runs) = failure.seen;
        page += &format!(
            "\nViolation {number}, found after {:.1} s, in {} runs; this program shows it in {bad} \
             of {runs} runs:\n\n",
            failure.after.as_secs_f64(),
            failure.bad_runs,
        );
        for line in failure.program.to_string().lines() {
            page += &format!("  {line}\n");
        }
        page += "\n";
        page += &match &failure.fault {
            Fault::Violation(verdict) => {
                verdict.explain_within(verdict.proved(), diagram_columns())
            }
            Fault::Panic { message } => format!("A call panicked: {message}\n"),
        };
        if !is_explicable(subject, failure) {
            page += "\nNo visibility levels explain it.\n";
        }
        if let Some(drawing) = drawing {
            page += &format!("\nDrawn in {}\n", escaped(drawing));
        }
    }
    let levels: Vec<Vec<String>> = (report.levels.iter().flat_map(|levels| levels.iter()))
        .map(|(method, level)| vec![method.to_owned(), level.to_string()])
        .collect();
    if !levels.is_empty() {
        let which = match report.failures.iter().all(|failure| is_explicable(subject, failure)) {
            true => "all outcomes",
            false => "all outcomes but those that no levels explain",
        };
        page += &format!("\nThe strongest levels that explain {which}:\n\n");
        page += &table(&["method", "level"], &levels);
    }
    page
}

/// Checks whether some visibility levels explain an outcome, which is the case if the weakest ones
/// do.
fn is_explicable(subject: &Subject, failure: &Failure) -> bool {
    let Ok(calls) = Calls::new(&failure.history) else { return false };
    let Ok(task) = Task::new(calls, Arc::clone(&subject.object)) else { return false };
    let weakest = ObjectModel::of_levels(&[], Level::Weak, &task.methods());
    let budget = Budget::unlimited().with_time(JUDGING_TIME);
    let options = Options { budget, ..Options::default() };
    let ruling = judge_object(&task, &weakest, &options);
    ruling.judgement.verdict() == Verdict::Consistent
}

/// Writes a line for each violation and one for the campaign.
fn lines(
    args: &TestArgs,
    subject: &Subject,
    report: &Report,
    drawings: &[Option<String>],
) -> Vec<u8> {
    let mut out = Vec::new();
    let target = quoted(target(args));
    for (failure, drawing) in report.failures.iter().zip(drawings) {
        let threads: Vec<String> = (failure.program.threads.iter())
            .map(|calls| {
                let calls: Vec<String> = calls.iter().map(|c| quoted(&c.to_string())).collect();
                format!("[{}]", calls.join(","))
            })
            .collect();
        let history = &failure.history;
        let operations: Vec<String> = (history.ops())
            .map(|op| {
                let time = history.time(op).map_or(String::new(), |time| {
                    let end = time.end.map_or("null".to_owned(), |end| end.to_string());
                    format!(",\"start\":{},\"end\":{end}", time.start)
                });
                let (name, shown) = (history.reference(op), history.show(op).to_string());
                format!("{{\"op\":\"{name}\",\"call\":{}{time}}}", quoted(&shown))
            })
            .collect();
        let (bad, runs) = failure.seen;
        let mut line = format!(
            "{{\"target\":{target},\"verdict\":\"violation\",\"levels_explain\":{},\"program\":[{}],\"history\":[{}],\
             \"bad\":{bad},\"runs\":{runs},\"all_bad\":{},\"after_millis\":{}",
            is_explicable(subject, failure),
            threads.join(","),
            operations.join(","),
            failure.bad_runs,
            failure.after.as_millis(),
        )
        .into_bytes();
        match &failure.fault {
            Fault::Violation(verdict) => {
                let explanation = quoted(&verdict.explain_line());
                let model = quoted(verdict.model().id());
                line.extend(format!(",\"model\":{model},\"explanation\":{explanation}").bytes());
                if let Some(proof) = verdict.certificate() {
                    line.extend(b",\"certificate\":");
                    proof.write(history, &mut line).expect("writing to memory does not fail");
                }
            }
            Fault::Panic { message } => {
                line.extend(format!(",\"panic\":{}", quoted(message)).bytes());
            }
        }
        if let Some(drawing) = drawing {
            line.extend(format!(",\"drawing\":{}", quoted(drawing)).bytes());
        }
        out.extend(line);
        out.extend(b"}\n");
    }
    let levels: Vec<String> = (report.levels.iter().flat_map(|levels| levels.iter()))
        .map(|(method, level)| format!("{}:\"{level}\"", quoted(method)))
        .collect();
    let summary = format!(
        "{{\"target\":{target},\"object\":{},\"model\":{},\"programs\":{},\"runs\":{},\
         \"outcomes\":{},\"bad_runs\":{},\"undecided\":{},\"violations\":{},\"levels\":{{{}}},\
         \"millis\":{}}}\n",
        quoted(subject.name),
        quoted(&report.promise.name()),
        report.programs,
        report.runs,
        report.outcomes,
        report.bad_runs,
        report.undecided,
        report.failures.len(),
        levels.join(","),
        report.elapsed.as_millis(),
    );
    out.extend(summary.bytes());
    out
}

/// Builds a progress bar on a terminal, and a hidden one elsewhere.
fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {pos} runs, {per_sec}, {elapsed}{msg}")
        .expect("the template is well-formed");
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
