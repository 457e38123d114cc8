//! Scaling of the models with a store order: SC, TSO, wSC and wTSO on large valid histories.
//!
//! Each measurement runs in its own process, this program started again (`--task`), so that its
//! peak memory is its own. A process generates the history, resets the peak, decides, and passes
//! the certificate to the independent checker.

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
use consistory_draw::{Plot, Series, line_plot, table};
use consistory_generate::{Memory, Workload, generate};
use consistory_registers::{Options, StoreModel, decide_stored};
use consistory_verdict::{Budget, Verdict};
use serde_json::{Value, json};

/// Measures the models with a store order on large histories.
#[derive(Debug, Parser)]
struct Args {
    /// Numbers of operations of the grid; with the smallest one, all sessions have written all
    /// variables, and the history no longer fits into the caches near the processor.
    #[arg(long, value_delimiter = ',', default_value = "100000,316228,1000000")]
    operations: Vec<u32>,
    /// Numbers of sessions of the grid.
    #[arg(long, value_delimiter = ',', default_value = "4,12,40")]
    sessions: Vec<u32>,
    /// Number of variables of the grid.
    #[arg(long, default_value_t = 64)]
    variables: u32,
    /// Number of times that a history of the grid is decided; the median counts.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Time limit per history, in seconds.
    #[arg(long, default_value_t = 120.0)]
    limit: f64,
    /// Divide all numbers of operations by ten, and decide once.
    #[arg(long)]
    quick: bool,
    /// Output folder, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
    /// Internal: perform one measurement and print it: model, sessions, operations, variables.
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

    /// Returns the memory whose histories are valid for it.
    fn memory(self) -> Memory {
        match self {
            Model::Wsc | Model::Sc => Memory::Sc,
            Model::Wtso | Model::Tso => Memory::Tso,
        }
    }
}

/// A measurement to perform.
#[derive(Clone, Copy)]
struct Task {
    model: Model,
    sessions: u32,
    operations: u32,
    variables: u32,
}

/// A measurement.
#[derive(Clone, Copy)]
struct Measured {
    task: Task,
    /// Time; `None` if it was not decided.
    time: Option<Duration>,
    certify: Duration,
    peak: u64,
}

/// A large history with its goal.
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
    let rounds = in_rounds(&grid, if args.quick { 1 } else { args.repeat }, args.limit)?;
    let grid = medians(&rounds);
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
         decides once; those of the grid are the medians of {} rounds. Times are those that the processor spent on it. \
         Powers are fitted to the whole grid in each round, and given with twice the standard error of their \
         mean; a power is reached if it is 1 or less within that. The peak memory includes the history.\n",
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
    let mut all = growth_aims(&rounds);
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

/// Performs a measurement in this process, and returns it as JSON.
fn measure(task: Task, limit: Duration) -> Result<Value, Box<dyn Error>> {
    let Task { model, sessions, operations, variables } = task;
    let workload = Workload { sessions, operations, variables, ..Workload::default() };
    workload.validate()?;
    let history = generate(&workload, model.memory());
    // Linux resets the peak.
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

/// Performs all measurements once, then again, round by round.
///
/// Each process decides once: a second decision would reuse memory of the first, if that was small
/// enough to be kept, and large and small histories would not be measured alike.
fn in_rounds(
    tasks: &[Task],
    rounds: usize,
    limit: f64,
) -> Result<Vec<Vec<Measured>>, Box<dyn Error>> {
    let mut all = Vec::new();
    for _ in 0..rounds.max(1) {
        let mut round = Vec::new();
        for &task in tasks {
            let measured = in_a_process(task, limit)?;
            eprintln!("{}", row(&measured).join("  "));
            round.push(measured);
        }
        all.push(round);
    }
    Ok(all)
}

/// Returns the median of each task. The fastest run would not be comparable, since a short run
/// finds an undisturbed moment more often than a long one.
fn medians(rounds: &[Vec<Measured>]) -> Vec<Measured> {
    let median = |task: usize| {
        let mut measured: Vec<Measured> = rounds.iter().map(|round| round[task]).collect();
        measured.sort_by_key(|one| one.time.unwrap_or(Duration::MAX));
        measured[measured.len() / 2]
    };
    (0..rounds.first().map_or(0, Vec::len)).map(median).collect()
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

/// Compares the growth over the grid with the goal: times may grow as the product of operations and
/// sessions.
fn growth_aims(rounds: &[Vec<Measured>]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for model in Model::ALL {
        let of_model = |round: &Vec<Measured>| -> Vec<Measured> {
            round.iter().filter(|measured| measured.task.model == model).copied().collect()
        };
        let rounds: Vec<Vec<Measured>> = rounds.iter().map(of_model).collect();
        goals.push(both_aim(model, &medians(&rounds)));
        for (what, size) in SIZES {
            let exponents: Option<Vec<f64>> =
                rounds.iter().map(|round| exponent(round, size)).collect();
            let found = exponents.as_deref().map(mean_and_error);
            goals.push(Goal {
                aim: format!("{}: time grows with {what} to the power of at most 1", model.id()),
                measured: found.map_or_else(
                    || "undecided".to_owned(),
                    |(mean, error)| format!("{mean:.3} ± {error:.3}"),
                ),
                reached: found.map(|(mean, error)| mean - error <= 1.0),
            });
        }
    }
    goals
}

type Size = fn(&Task) -> u32;

/// Sizes with which times may grow.
const SIZES: [(&str, Size); 2] =
    [("operations", |task| task.operations), ("sessions", |task| task.sessions)];

/// Compares the first corner of the grid with the last one.
fn both_aim(model: Model, grid: &[Measured]) -> Goal {
    let product = |measured: &&Measured| {
        u64::from(measured.task.operations) * u64::from(measured.task.sessions)
    };
    let corners = grid.iter().min_by_key(product).zip(grid.iter().max_by_key(product));
    let both = corners.and_then(|(first, last)| {
        let times = product(&last) as f64 / product(&first) as f64;
        Some((times, ratio(last.time?, first.time?)))
    });
    let times = both.map_or(1.0, |(times, _)| times);
    Goal {
        aim: format!(
            "{}: {} operations times sessions in at most that time",
            model.id(),
            show_ratio(times)
        ),
        measured: both.map_or_else(|| "undecided".to_owned(), |(_, grown)| show_ratio(grown)),
        reached: both.map(|(times, grown)| grown <= times),
    }
}

/// Returns the exponent with which the times of a grid grow in a size, by least squares of
/// logarithms. All sizes are combined with all others, so each can be fitted separately.
fn exponent(grid: &[Measured], size: Size) -> Option<f64> {
    let points: Option<Vec<(f64, f64)>> = grid
        .iter()
        .map(|measured| {
            Some((f64::from(size(&measured.task)).ln(), measured.time?.as_secs_f64().ln()))
        })
        .collect();
    let points = points?;
    let mean =
        |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let together: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let alone: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    (alone > 0.0).then(|| together / alone)
}

/// Returns the mean of the results of the rounds and twice its standard error.
fn mean_and_error(found: &[f64]) -> (f64, f64) {
    let count = found.len() as f64;
    let mean = found.iter().sum::<f64>() / count;
    if found.len() < 2 {
        return (mean, 0.0);
    }
    let variance = found.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, 2.0 * (variance / count).sqrt())
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
