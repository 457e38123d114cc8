//! How far the models with a store order reach: SC, TSO, wSC and wTSO on large valid histories.
//!
//! Each measurement runs in a process of its own, this program started again (`--task`), so that its
//! peak memory is its own. A process makes the history, forgets the peak so far, decides, and has the
//! independent checker accept the certificate.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use consistory_benches::measure::{
    once, once_on_processor, peak_memory, ratio, show_count, show_ratio, show_size, show_time,
};
use consistory_benches::publish::{Docs, Goal, Machine, goals, markdown, provenance};
use consistory_certify::certify;
use consistory_check::{Options, StoreModel, decide_stored};
use consistory_draw::{Plot, Series, line_plot, table};
use consistory_generate::{Memory, Workload, generate};
use consistory_verdict::{Budget, Verdict};
use serde_json::{Value, json};

/// Measures the models with a store order on large histories.
#[derive(Debug, Parser)]
struct Args {
    /// The numbers of operations of the grid: from where all sessions have written about all
    /// variables, and the history no longer fits into the caches next to the processor.
    #[arg(long, value_delimiter = ',', default_value = "100000,316228,1000000")]
    operations: Vec<u32>,
    /// The numbers of sessions of the grid.
    #[arg(long, value_delimiter = ',', default_value = "4,12,40")]
    sessions: Vec<u32>,
    /// The number of variables of the grid.
    #[arg(long, default_value_t = 64)]
    variables: u32,
    /// How often a history of the grid is decided; the median counts.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// How many seconds a history may take.
    #[arg(long, default_value_t = 120.0)]
    limit: f64,
    /// Divides all numbers of operations by ten, and decides once.
    #[arg(long)]
    quick: bool,
    /// Where to write, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
    /// Measures one thing and prints it: model, sessions, operations, variables.
    #[arg(long, hide = true, value_delimiter = ',')]
    task: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Model {
    Wsc,
    Sc,
    Wtso,
    Tso,
}

impl Model {
    const ALL: [Model; 4] = [Model::Wsc, Model::Sc, Model::Wtso, Model::Tso];

    fn id(self) -> &'static str {
        match self {
            Model::Wsc => "wsc",
            Model::Sc => "sc",
            Model::Wtso => "wtso",
            Model::Tso => "tso",
        }
    }

    fn stored(self) -> StoreModel {
        match self {
            Model::Wsc => StoreModel::Wsc,
            Model::Sc => StoreModel::Sc,
            Model::Wtso => StoreModel::Wtso,
            Model::Tso => StoreModel::Tso,
        }
    }

    /// Gives the memory whose histories are valid for it.
    fn memory(self) -> Memory {
        match self {
            Model::Wsc | Model::Sc => Memory::Sc,
            Model::Wtso | Model::Tso => Memory::Tso,
        }
    }
}

/// What is measured.
#[derive(Clone, Copy)]
struct Task {
    model: Model,
    sessions: u32,
    operations: u32,
    variables: u32,
}

/// What was measured.
#[derive(Clone, Copy)]
struct Measured {
    task: Task,
    /// None if it was not decided.
    time: Option<Duration>,
    certify: Duration,
    peak: u64,
}

/// A large history with what is aimed at.
struct Large {
    what: &'static str,
    task: Task,
    within: Option<(Duration, u64)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    if let [model, sessions, operations, variables] = args.task.as_slice() {
        let model = Model::from_str(model, false)?;
        let (sessions, operations) = (sessions.parse()?, operations.parse()?);
        let task = Task { model, sessions, operations, variables: variables.parse()? };
        println!("{}", measure(task, Duration::from_secs_f64(args.limit))?);
        return Ok(());
    }
    let machine = Machine::here();
    let less = if args.quick { 10 } else { 1 };
    let mut grid = Vec::new();
    for model in Model::ALL {
        for &sessions in &args.sessions {
            for &operations in &args.operations {
                let (operations, variables) = (operations / less, args.variables);
                grid.push(Task { model, sessions, operations, variables });
            }
        }
    }
    let grid = in_rounds(&grid, if args.quick { 1 } else { args.repeat }, args.limit)?;
    let mut large = Vec::new();
    for Large { what, mut task, within } in largest() {
        task.operations /= less;
        let measured = in_a_process(task, args.limit)?;
        eprintln!("{}", row(&measured).join("  "));
        large.push((what, measured, within));
    }

    let header =
        ["model", "operations", "sessions", "variables", "decide", "checker", "peak memory"];
    let (grid_rows, large_rows): (Vec<_>, Vec<_>) =
        (grid.iter().map(row).collect(), large.iter().map(|(_, m, _)| row(m)).collect());
    println!("{}\n{}", table(&header, &grid_rows), table(&header, &large_rows));
    let intro = format!(
        "{}\nValid histories, half of the operations reads, of the `sc` memory for wSC and SC and of \
         the `tso` memory for wTSO and TSO. Each run is a process of its own, which \
         decides once; those of the grid are the medians of {} rounds. Times are those that the processor spent on it. The peak memory includes the history.\n",
        provenance("growth", &machine),
        args.repeat
    );
    let docs = Docs::new(args.docs.clone());
    let report = format!(
        "# Growth\n\n{intro}\n## By operations and sessions\n\n{}\n## Large histories\n\n{}",
        markdown(&header, &grid_rows),
        markdown(&header, &large_rows)
    );
    docs.figure("growth.md", &report)?;
    docs.figure("growth.svg", &plot(&grid))?;
    let mut all = growth_aims(&grid);
    all.extend(large.iter().map(|(what, measured, within)| large_aim(what, measured, *within)));
    let found = goals(&all);
    println!("{found}");
    docs.refresh("growth", &format!("{intro}\n{found}"))?;
    Ok(())
}

fn largest() -> Vec<Large> {
    let task =
        |model, sessions, operations, variables| Task { model, sessions, operations, variables };
    let minute = Some((Duration::from_secs(60), 4 << 30));
    vec![
        Large { what: "SC", task: task(Model::Sc, 32, 100_000, 64), within: minute },
        Large { what: "TSO", task: task(Model::Tso, 32, 100_000, 64), within: minute },
        Large { what: "wSC", task: task(Model::Wsc, 32, 1_000_000, 64), within: None },
        Large { what: "wTSO", task: task(Model::Wtso, 32, 1_000_000, 64), within: None },
        Large {
            what: "TSO (Axe: 32 s and 2.6 GB)",
            task: task(Model::Tso, 16, 262_000, 64),
            within: Some((Duration::from_secs(2), 500_000_000)),
        },
        Large {
            what: "TSO (Axe: not in 80 s)",
            task: task(Model::Tso, 32, 65_000, 256),
            within: None,
        },
    ]
}

/// Measures in this process, and gives it as JSON.
fn measure(task: Task, limit: Duration) -> Result<Value, Box<dyn Error>> {
    let Task { model, sessions, operations, variables } = task;
    let workload = Workload { sessions, operations, variables, ..Workload::default() };
    workload.validate()?;
    let history = generate(&workload, model.memory());
    // Linux forgets the peak so far.
    fs::write("/proc/self/clear_refs", "5")?;
    let options = Options { budget: Budget::unlimited().with_time(limit), ..Options::default() };
    let (timed, time) = once_on_processor(|| decide_stored(&history, model.stored(), &options));
    let peak = peak_memory().ok_or("this system does not say how much memory a process has")?;
    let Some(certificate) = timed.judgement.certificate() else {
        return Ok(json!({ "seconds": null, "certify": 0.0, "peak": peak }));
    };
    let (accepted, certify) =
        once(|| certify(&history, model.id(), Verdict::Consistent, certificate));
    accepted?;
    Ok(json!({ "seconds": time.as_secs_f64(), "certify": certify.as_secs_f64(), "peak": peak }))
}

/// Measures everything once, then again, and gives the median of each.
///
/// A process decides once: the second time it would have its memory from the first, if that was not
/// too much to be kept, and large and small histories would not be measured alike. For the same reason
/// it is the median and not the fastest: a short run finds a moment in which nothing disturbs
/// it sooner than a long one does.
fn in_rounds(tasks: &[Task], rounds: usize, limit: f64) -> Result<Vec<Measured>, Box<dyn Error>> {
    let mut all: Vec<Vec<Measured>> = vec![Vec::new(); tasks.len()];
    for _ in 0..rounds.max(1) {
        for (&task, measured) in tasks.iter().zip(&mut all) {
            measured.push(in_a_process(task, limit)?);
            eprintln!("{}", row(&measured[measured.len() - 1]).join("  "));
        }
    }
    let median = |mut measured: Vec<Measured>| {
        measured.sort_by_key(|one| one.time.unwrap_or(Duration::MAX));
        measured[measured.len() / 2]
    };
    Ok(all.into_iter().map(median).collect())
}

fn in_a_process(task: Task, limit: f64) -> Result<Measured, Box<dyn Error>> {
    let Task { model, sessions, operations, variables } = task;
    let argument = format!("{},{sessions},{operations},{variables}", model.id());
    let output = Command::new(std::env::current_exe()?)
        .args(["--task", &argument, "--limit", &limit.to_string()])
        .output()?;
    if !output.status.success() {
        return Err(format!("{argument}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let found: Value = serde_json::from_slice(&output.stdout)?;
    let time = found["seconds"].as_f64().map(Duration::from_secs_f64);
    let certify = Duration::from_secs_f64(found["certify"].as_f64().ok_or("no time")?);
    let peak = found["peak"].as_u64().ok_or("no peak")?;
    Ok(Measured { task, time, certify, peak })
}

fn row(measured: &Measured) -> Vec<String> {
    let Task { model, sessions, operations, variables } = measured.task;
    vec![
        model.id().to_owned(),
        show_count(operations.into()),
        sessions.to_string(),
        variables.to_string(),
        measured.time.map_or_else(|| "undecided".to_owned(), show_time),
        show_time(measured.certify),
        show_size(measured.peak),
    ]
}

fn plot(grid: &[Measured]) -> String {
    let mut series: Vec<Series> = Vec::new();
    for measured in grid {
        let Task { model, sessions, operations, .. } = measured.task;
        let name = format!("{}, {sessions} sessions", model.id());
        let Some(time) = measured.time else { continue };
        let point = (f64::from(operations), time.as_secs_f64());
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name, points: vec![point], missing: None }),
        }
    }
    line_plot(&Plot {
        title: "Deciding valid histories by operations and sessions".to_owned(),
        x_label: "operations".to_owned(),
        y_label: "seconds".to_owned(),
        log_x: true,
        log_y: true,
        series,
    })
}

/// Compares the corners of the grid: times may grow as the product of operations and sessions.
fn growth_aims(grid: &[Measured]) -> Vec<Goal> {
    let size = |of: fn(&Task) -> u32, largest: bool| {
        let sizes = grid.iter().map(|measured| of(&measured.task));
        if largest { sizes.max() } else { sizes.min() }.unwrap_or(0)
    };
    let operations = [false, true].map(|largest| size(|task| task.operations, largest));
    let sessions = [false, true].map(|largest| size(|task| task.sessions, largest));
    let time = |model, operations, sessions| {
        let is_it = |m: &&Measured| {
            m.task.model == model && m.task.operations == operations && m.task.sessions == sessions
        };
        grid.iter().find(is_it).and_then(|measured| measured.time)
    };
    let mut goals = Vec::new();
    for model in Model::ALL {
        let corner = |o: usize, s: usize| time(model, operations[o], sessions[s]);
        let ways = [
            ("operations", operations, [(0, 0, 1, 0), (0, 1, 1, 1)]),
            ("sessions", sessions, [(0, 0, 0, 1), (1, 0, 1, 1)]),
        ];
        let both = corner(1, 1).zip(corner(0, 0)).map(|(last, first)| ratio(last, first));
        let product = |sizes: [u32; 2]| f64::from(sizes[1]) / f64::from(sizes[0]).max(1.0);
        let times = product(operations) * product(sessions);
        goals.push(Goal {
            aim: format!(
                "{}: {} operations times sessions in at most that time",
                model.id(),
                show_ratio(times)
            ),
            measured: both.map_or_else(|| "undecided".to_owned(), show_ratio),
            reached: both.map(|both| both <= times),
        });
        for (what, sizes, pairs) in ways {
            let times = product(sizes);
            let grown: Option<Vec<f64>> = pairs
                .into_iter()
                .map(|(o, s, p, t)| Some(ratio(corner(p, t)?, corner(o, s)?)))
                .collect();
            let worst = grown.map(|grown| grown.into_iter().fold(0.0, f64::max));
            goals.push(Goal {
                aim: format!(
                    "{}: {} the {what} in at most that time",
                    model.id(),
                    show_ratio(times)
                ),
                measured: worst.map_or_else(|| "undecided".to_owned(), show_ratio),
                reached: worst.map(|worst| worst <= times),
            });
        }
    }
    goals
}

fn large_aim(what: &str, measured: &Measured, within: Option<(Duration, u64)>) -> Goal {
    let Task { sessions, operations, variables, .. } = measured.task;
    let history = format!(
        "{what}: {} operations, {sessions} sessions, {variables} variables",
        show_count(operations.into())
    );
    Goal {
        aim: match within {
            None => format!("{history}: decided"),
            Some((time, memory)) => {
                format!("{history}: in at most {} and {}", show_time(time), show_size(memory))
            }
        },
        measured: match measured.time {
            None => "undecided".to_owned(),
            Some(time) => format!("{} and {}", show_time(time), show_size(measured.peak)),
        },
        reached: Some(match (measured.time, within) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(time), Some((limit, memory))) => time <= limit && measured.peak <= memory,
        }),
    }
}
