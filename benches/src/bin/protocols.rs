//! Measures the exploration of protocols: in comparison with Rumur, the cost of observer and
//! checker, and the time of proofs.
//!
//! Rumur compiles a description to C, which gcc compiles; the processor time of that program is
//! compared with ours for the same description on one thread. The program fails if the two find
//! different numbers of states without symmetry.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Parser;
use consistory_benches::measure::{
    child_time, once, ratio, show_count, show_ratio, show_size, show_time, user_time,
};
use consistory_benches::publish::{Docs, Goal, Machine, goals, markdown, provenance};
use consistory_protocol::{Exploration, Explorer, Model, Options, Outcome, System, Witness};

/// Measures the exploration of protocols.
#[derive(Debug, Parser)]
struct Args {
    /// Skip Rumur.
    #[arg(long)]
    without_rumur: bool,
    /// Number of explorations; the fastest counts.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Prove only protocols whose names contain this.
    #[arg(long, default_value = "")]
    only: String,
    /// Output folder, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let machine = Machine::here();
    let mut aims = Vec::new();
    let mut text = provenance("protocols", &machine);
    text += &plain(&args, &mut aims)?;
    text += &product(&args, &mut aims)?;
    text += &proofs(&args, &mut aims)?;
    text += "\n";
    text += &goals(&aims);
    Docs::new(args.docs).refresh_in("protocols.md", "protocols", &text)?;
    print!("{text}");
    Ok(())
}

/// Returns the folder of the descriptions.
fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/protocols")
}

fn parse(name: &str, text: &str) -> Result<Model, Box<dyn Error>> {
    Model::parse(name, text).map_err(|diagnostics| diagnostics.to_string().into())
}

/// Runs an action several times; returns the last result and the least processor time.
fn quickest<T>(
    runs: usize,
    mut action: impl FnMut() -> T,
) -> Result<(T, Duration), Box<dyn Error>> {
    let mut best: Option<(T, Duration)> = None;
    for _ in 0..runs.max(1) {
        let before = user_time().ok_or("this system does not tell processor times")?;
        let result = action();
        let time = user_time().ok_or("this system does not tell processor times")? - before;
        if best.as_ref().is_none_or(|(_, known)| time < *known) {
            best = Some((result, time));
        }
    }
    best.ok_or_else(|| "nothing was run".into())
}

/// Measurements of a plain exploration.
struct Plain {
    states: u64,
    time: Duration,
    bytes: Option<f64>,
}

impl Plain {
    fn rate(&self) -> f64 {
        self.states as f64 / self.time.as_secs_f64().max(1e-3)
    }
}

/// Compares Rumur and our explorer on German's protocol with four caches, with symmetry and
/// without.
fn plain(args: &Args, aims: &mut Vec<Goal>) -> Result<String, Box<dyn Error>> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/protocol/tests/models/german.m");
    let system = parse("german.m", &fs::read_to_string(&path)?)?.plain();
    let mut rows = Vec::new();
    for symmetry in [false, true] {
        let ours = |jobs: usize| -> Result<Plain, Box<dyn Error>> {
            let options = Options { symmetry, jobs, ..Options::default() };
            let (found, time) =
                quickest(args.runs, || Explorer::new(&system).options(options.clone()).run())?;
            let Exploration { outcome: Outcome::Holds, progress, .. } = found? else {
                return Err("the directory protocol is wrong".into());
            };
            let bytes = Some(progress.bytes as f64 / progress.states as f64);
            Ok(Plain { states: progress.states, time, bytes })
        };
        let (one, two) = (ours(1)?, ours(2)?);
        let with = if symmetry { "on" } else { "off" };
        let mut row = |who: &str, found: &Plain| {
            rows.push(vec![
                who.to_owned(),
                with.to_owned(),
                show_count(found.states),
                show_time(found.time),
                show_count(found.rate() as u64),
                found.bytes.map_or("—".to_owned(), |bytes| format!("{bytes:.1}")),
            ]);
        };
        row("consistory, 1 thread", &one);
        row("consistory, 2 threads", &two);
        if !args.without_rumur {
            let theirs = rumur(&path, symmetry, args.runs)?;
            row("Rumur, 1 thread", &theirs);
            if !symmetry && theirs.states != one.states {
                return Err(format!("Rumur finds {} states", theirs.states).into());
            }
            let faster = one.rate() / theirs.rate();
            let factor = if symmetry { 1.0 } else { 3.0 };
            aims.push(Goal {
                aim: format!("symmetry {with}: at least {factor} times Rumur's states a second"),
                measured: show_ratio(faster),
                reached: Some(faster >= factor),
            });
            aims.push(Goal {
                aim: format!(
                    "symmetry {with}: {}",
                    if symmetry { "no more states than Rumur" } else { "as many states as Rumur" }
                ),
                measured: format!("{} and {}", show_count(one.states), show_count(theirs.states)),
                reached: Some(one.states <= theirs.states),
            });
        }
        if !symmetry {
            for (threads, found) in [("1 thread", &one), ("2 threads", &two)] {
                let bytes = found.bytes.unwrap_or(f64::INFINITY);
                aims.push(Goal {
                    aim: format!("symmetry off, {threads}: at most 16 bytes a state, exactly"),
                    measured: format!("{bytes:.1}"),
                    reached: Some(bytes <= 16.0),
                });
            }
        }
    }
    let header = ["", "symmetry", "states", "processor time", "states a second", "bytes a state"];
    Ok(format!(
        "\nA directory protocol in the style of German's with 4 caches and 2 values \
         (`crates/protocol/tests/models/german.m`), explored without observer; processor time, the \
         least of {}. Rumur's is that of the program that it makes, compiled by `gcc -O3`.\n\n{}",
        args.runs,
        markdown(&header, &rows)
    ))
}

/// Runs Rumur on a description.
fn rumur(path: &Path, symmetry: bool, runs: usize) -> Result<Plain, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("out/rumur");
    fs::create_dir_all(&folder)?;
    let (source, program) = (folder.join("model.c"), folder.join("model"));
    let reduction = if symmetry { "heuristic" } else { "off" };
    let run = |command: &mut Command| -> Result<String, Box<dyn Error>> {
        let output = command.output().map_err(|error| {
            format!("{command:?}: {error}; benches/setup installs what is needed")
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{command:?} failed: {said}").into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    run(Command::new("rumur")
        .args(["--threads", "1", "--symmetry-reduction", reduction, "--output"])
        .arg(&source)
        .arg(path))?;
    run(Command::new("gcc")
        .args(["-std=c11", "-O3", "-march=native", "-mcx16", "-o"])
        .arg(&program)
        .arg(&source)
        .args(["-lpthread", "-latomic"]))?;
    let mut best: Option<Plain> = None;
    for _ in 0..runs.max(1) {
        let before = child_time().ok_or("this system does not tell processor times")?;
        let said = run(&mut Command::new(&program))?;
        let time = child_time().ok_or("this system does not tell processor times")? - before;
        let line = said.lines().find(|line| line.contains("states, "));
        let states = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        let states = states.ok_or_else(|| format!("Rumur said {said}"))?;
        if best.as_ref().is_none_or(|known| time < known.time) {
            best = Some(Plain { states, time, bytes: None });
        }
    }
    best.ok_or_else(|| "nothing was run".into())
}

/// Measures the cost of a state with observer and checker.
fn product(args: &Args, aims: &mut Vec<Goal>) -> Result<String, Box<dyn Error>> {
    let cases = [
        ("directory", "PROCS: 2", "PROCS: 2"),
        ("german", "PROCS: 2", "PROCS: 2"),
        ("lazy-caching", "PROCS: 2", "PROCS: 2"),
        ("mesi", "PROCS: 2", "PROCS: 4"),
        ("moesi", "PROCS: 2", "PROCS: 3"),
        ("msi", "PROCS: 2", "PROCS: 4"),
        ("msi-invalidation-queue", "PROCS: 2", "PROCS: 2"),
        ("store-buffers-drained", "PROCS: 2", "PROCS: 2"),
    ];
    let mut rows = Vec::new();
    let mut worst = [0f64; 2];
    for (name, old, new) in cases {
        let text = fs::read_to_string(corpus().join(format!("{name}.m")))?.replace(old, new);
        let model = parse(name, &text)?;
        let tracked = model.tracked().map_err(|diagnostics| diagnostics.to_string())?;
        for symmetry in [true, false] {
            let limit = Some(300_000);
            let options =
                Options { symmetry, deadlock: false, states: limit, ..Options::default() };
            let (alone, with) = (
                cost(&model.plain(), false, &options, args.runs)?,
                cost(&tracked, true, &options, args.runs)?,
            );
            let factor = ratio(with.1, alone.1);
            let worst = &mut worst[usize::from(symmetry)];
            *worst = worst.max(factor);
            eprintln!("{name}: {}", show_ratio(factor));
            rows.push(vec![
                format!("`{name}`, {}", new.replace("PROCS: ", "") + " processors"),
                if symmetry { "on" } else { "off" }.to_owned(),
                show_count(alone.0),
                show_time(alone.1),
                show_count(with.0),
                show_time(with.1),
                show_ratio(factor),
            ]);
        }
    }
    for (with, worst) in [("on", worst[1]), ("off", worst[0])] {
        aims.push(Goal {
            aim: format!(
                "symmetry {with}: with observer and checker a state costs at most 4 times as much"
            ),
            measured: show_ratio(worst),
            reached: Some(worst <= 4.0),
        });
    }
    let header =
        ["protocol", "symmetry", "states", "each", "states of the product", "each", "factor"];
    Ok(format!(
        "\nWhat a state costs alone, with data as it is, and with observer and checker in its place; \
         one thread, 2 blocks, the first 300,000 states or all. Processor time, divided by the \
         states whose successors were computed: those that wait when the limit is reached have cost \
         nothing yet.\n\n{}",
        markdown(&header, &rows)
    ))
}

/// Returns the number of states of an exploration, and the cost of each state whose successors were
/// computed.
fn cost(
    system: &System,
    with_observer: bool,
    options: &Options,
    runs: usize,
) -> Result<(u64, Duration), Box<dyn Error>> {
    let witness = match system.shape() {
        Some(shape) if with_observer => {
            Some(Witness::new(shape)?.with_homes(&system.location_homes()))
        }
        _ => None,
    };
    // Small explorations are repeated often enough to be measured.
    let mut rounds = 1;
    loop {
        let ((states, expanded), time) = quickest(runs, || {
            let (mut states, mut expanded) = (0, 0);
            for _ in 0..rounds {
                let mut explorer = Explorer::new(system).options(options.clone());
                if let Some(witness) = &witness {
                    explorer = explorer.companion(witness);
                }
                // A witness fits its system, and there is no checkpoint that might not.
                let Ok(found) = explorer.run() else { continue };
                states += found.progress.states;
                expanded += found.progress.expanded;
            }
            (states, expanded)
        })?;
        if time > Duration::from_millis(400) || rounds > 10_000 {
            return Ok((states / rounds, time.div_f64(expanded as f64)));
        }
        rounds *= 4;
    }
}

/// Measures proofs: states, time, memory.
fn proofs(args: &Args, aims: &mut Vec<Goal>) -> Result<String, Box<dyn Error>> {
    let cases: [(&str, u32, bool); 13] = [
        ("serial", 2, false),
        ("msi", 2, true),
        ("msi", 3, true),
        ("msi", 4, false),
        ("msi-invalidation-queue", 2, false),
        ("mesi", 2, true),
        ("mesi", 3, false),
        ("moesi", 2, false),
        ("moesi", 3, false),
        ("store-buffers-drained", 2, false),
        ("lazy-caching", 2, true),
        ("directory", 2, true),
        ("german", 2, false),
    ];
    let mut rows = Vec::new();
    for (name, procs, is_aim) in cases {
        if !name.contains(&args.only) {
            continue;
        }
        let text = fs::read_to_string(corpus().join(format!("{name}.m")))?
            .replace("PROCS: 2", &format!("PROCS: {procs}"));
        let system = parse(name, &text)?.tracked().map_err(|d| d.to_string())?;
        let options = Options { jobs: 2, deadlock: false, ..Options::default() };
        let (found, time) = once(|| Explorer::new(&system).options(options).run());
        let Exploration { outcome, progress, shape, .. } = found?;
        let shape = shape.ok_or("a protocol that is proved tracks its data")?;
        let is_proved = matches!(outcome, Outcome::Holds);
        eprintln!("{name}, {procs} processors: {}", show_time(time));
        rows.push(vec![
            format!("`{name}`"),
            shape.procs.to_string(),
            shape.blocks.to_string(),
            shape.locations.to_string(),
            show_count(progress.states),
            progress.depth.to_string(),
            show_time(time),
            show_size(progress.bytes),
        ]);
        if is_aim {
            aims.push(Goal {
                aim: format!("`{name}` with {procs} processors and 2 blocks: proved in minutes"),
                measured: show_time(time),
                reached: Some(is_proved && time < Duration::from_secs(300)),
            });
        }
        if !is_proved {
            return Err(format!("{name} with {procs} processors: {outcome:?}").into());
        }
    }
    let header =
        ["protocol", "processors", "blocks", "locations", "states", "depth", "time", "memory"];
    Ok(format!(
        "\nProved sequentially consistent in every run, on 2 threads, with symmetry; memory is what \
         the visited states take.\n\n{}",
        markdown(&header, &rows)
    ))
}
