//! Decides isolation levels of large histories of transactions, and checks the results with the
//! independent checker.
//!
//! The histories are those of random clients on simulated stores, some of them with a planted
//! anomaly. The program fails if a valid history is not found valid, if a planted anomaly is not
//! found, or if the checker rejects a certificate. All times are processor times of one thread, so
//! that other processes on the machine have little effect.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use consistory_benches::measure::{
    once_on_processor, peak_memory, ratio, show_count, show_ratio, show_size, show_time,
};
use consistory_benches::publish::{Docs, Goal, Machine, goals, markdown, provenance};
use consistory_certify::{LevelClaim, certify_levels};
use consistory_formats::Format;
use consistory_generate::{Anomaly, KeyChoice, Store, TransactionWorkload, generate_transactions};
use consistory_transactions::judge;
use consistory_verdict::{Budget, ClientOrder, Level, Verdict};

/// Processor time of AWDIT for `tcc` of a million and of ten million operations, in seconds,
/// measured earlier on a similar machine.
const AWDIT_MILLION: f64 = 2.4;
const AWDIT_TEN_MILLION: f64 = 76.0;

/// Measures the deciders of isolation levels.
#[derive(Debug, Parser)]
struct Args {
    /// Measure only histories of up to 100,000 operations.
    #[arg(long)]
    quick: bool,
    /// Also measure a history of ten million operations, which takes 2 GB of memory.
    #[arg(long)]
    large: bool,
    /// Output folder, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
}

/// A measurement to perform.
struct Task {
    store: Store,
    levels: &'static [Level],
    operations: u32,
    sessions: u32,
    /// Exponent of the keys' distribution: 0 is uniform, 1 Zipf's law.
    skew: f64,
    anomaly: Option<Anomaly>,
    /// Limit of the processor time of reading, deciding and certifying, in seconds.
    limit: Option<f64>,
}

/// Measurements of a task.
struct Cell {
    task: Task,
    verdict: Verdict,
    reading: Option<Duration>,
    deciding: Duration,
    certifying: Duration,
    memory: u64,
}

const WEAK: &[Level] = &[Level::ReadCommitted, Level::ReadAtomic, Level::Causal];
const SI: &[Level] = &[Level::Snapshot];
const SER: &[Level] = &[Level::Serializable];

fn tasks(args: &Args) -> Vec<Task> {
    let sizes: &[u32] = if args.quick { &[100_000] } else { &[100_000, 1_000_000] };
    let mut tasks = Vec::new();
    for &operations in sizes {
        let is_large = operations == 1_000_000;
        let limit = is_large.then_some(AWDIT_MILLION / 2.0);
        let plain = |store, levels, limit| Task {
            store,
            levels,
            operations,
            sessions: 50,
            skew: 0.0,
            anomaly: None,
            limit,
        };
        tasks.push(plain(Store::Tcc, WEAK, limit));
        tasks.push(Task {
            anomaly: Some(Anomaly::CausalViolation),
            ..plain(Store::Tcc, WEAK, None)
        });
        for (store, levels) in [(Store::Ser, SER), (Store::Si, SI)] {
            let limit = Some(if is_large { 10.0 } else { 0.5 });
            let anomaly =
                if store == Store::Ser { Anomaly::WriteSkew } else { Anomaly::LostUpdate };
            for (sessions, skew) in [(20, 0.0), (100, 0.0), (100, 1.0)] {
                tasks.push(Task { sessions, skew, ..plain(store, levels, limit) });
            }
            let planted = Task { sessions: 20, ..plain(store, levels, None) };
            tasks.push(Task { anomaly: Some(anomaly), ..planted });
        }
    }
    if args.large {
        let limit = Some(AWDIT_TEN_MILLION / 4.0);
        let (operations, sessions, skew, anomaly) = (10_000_000, 50, 0.0, None);
        let (store, levels) = (Store::Tcc, WEAK);
        tasks.push(Task { store, levels, operations, sessions, skew, anomaly, limit });
    }
    tasks
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let machine = Machine::here();
    let mut cells = Vec::new();
    for task in tasks(&args) {
        let cell = measure(task)?;
        eprintln!("{}: {}", cell.name(), show_time(cell.deciding));
        cells.push(cell);
    }
    let time = |time: Option<Duration>| time.map_or_else(String::new, show_time);
    let rows: Vec<Vec<String>> = cells
        .iter()
        .map(|cell| {
            vec![
                cell.name(),
                format!("{:?}", cell.verdict).to_lowercase(),
                time(cell.reading),
                show_time(cell.deciding),
                show_time(cell.certifying),
                show_ratio(ratio(cell.certifying, cell.deciding)),
                show_size(cell.memory),
            ]
        })
        .collect();
    let header =
        ["history", "verdict", "reading", "deciding", "certifying", "to deciding", "peak so far"];
    let text = format!(
        "{}\nTransactions of 5 operations, half of them reads, one key per 100 operations. Reading is \
         the time to read Plume's format. Times are processor times of one thread; the peak is that of the \
         whole program, including the generator and the text.\n\n{}\n{}",
        provenance("isolation", &machine),
        markdown(&header, &rows),
        goals(&aims(&cells)),
    );
    Docs::new(args.docs).refresh("isolation", &text)?;
    print!("{text}");
    Ok(())
}

impl Cell {
    fn name(&self) -> String {
        let Task { levels, operations, sessions, skew, anomaly, .. } = &self.task;
        let levels: Vec<&str> = levels.iter().map(|level| level.id()).collect();
        let keys = if *skew > 0.0 { ", Zipf keys" } else { "" };
        let planted = anomaly.map_or_else(String::new, |anomaly| format!(", planted {anomaly}"));
        let operations = show_count((*operations).into());
        format!("{}: {operations} operations, {sessions} sessions{keys}{planted}", levels.join(","))
    }

    fn total(&self) -> Duration {
        self.reading.unwrap_or_default() + self.deciding + self.certifying
    }
}

fn measure(task: Task) -> Result<Cell, Box<dyn Error>> {
    let workload = TransactionWorkload {
        store: task.store,
        operations: task.operations,
        sessions: task.sessions,
        keys: task.operations / 100,
        key_choice: KeyChoice::Zipf { skew: task.skew },
        sizes: 5..=5,
        anomalies: task.anomaly.into_iter().collect(),
        ..TransactionWorkload::default()
    };
    let mut history = generate_transactions(&workload);
    let mut reading = None;
    if task.anomaly.is_none() && task.levels.len() > 1 {
        let mut text = Vec::new();
        consistory_formats::write_history(&history, Format::Plume, &mut text)?;
        let text = String::from_utf8(text)?;
        drop(history);
        let (read, time) =
            once_on_processor(|| consistory_formats::parse_str(&text, Format::Plume, "generated"));
        history = read.map_err(|error| error.to_string())?.remove(0);
        reading = Some(time);
    }
    let order = ClientOrder::Session;
    let (rulings, deciding) =
        once_on_processor(|| judge(&history, order, task.levels, &Budget::unlimited()));
    let rulings = rulings?;
    let claims: Vec<LevelClaim<'_>> = task
        .levels
        .iter()
        .zip(&rulings)
        .filter_map(|(&level, ruling)| {
            let certificate = ruling.judgement.certificate()?;
            Some(LevelClaim { level, claim: ruling.judgement.verdict(), certificate })
        })
        .collect();
    let (accepted, certifying) = once_on_processor(|| certify_levels(&history, order, &claims));
    accepted.into_iter().collect::<Result<Vec<()>, _>>()?;
    let verdict = rulings.last().map_or(Verdict::Undecided, |last| last.judgement.verdict());
    let expected = match task.anomaly {
        None => Verdict::Consistent,
        Some(_) => Verdict::Violation,
    };
    let memory = peak_memory().unwrap_or(0);
    let cell = Cell { task, verdict, reading, deciding, certifying, memory };
    if verdict != expected || claims.len() != rulings.len() {
        return Err(format!("{}: found {verdict:?}", cell.name()).into());
    }
    Ok(cell)
}

fn aims(cells: &[Cell]) -> Vec<Goal> {
    let mut aims = Vec::new();
    for cell in cells {
        let name = cell.name();
        if let Some(limit) = cell.task.limit {
            let total = cell.total();
            let what = match cell.reading {
                Some(_) => "reading, deciding and certifying",
                None => "deciding and certifying",
            };
            aims.push(Goal {
                aim: format!("{name}: {what} in at most {limit} s"),
                measured: show_time(total),
                reached: Some(total.as_secs_f64() <= limit),
            });
        }
        let share = ratio(cell.certifying, cell.deciding);
        aims.push(Goal {
            aim: format!("{name}: certifying at most 1.5 times deciding"),
            measured: show_ratio(share),
            reached: Some(share <= 1.5),
        });
        if let Some(reading) = cell.reading {
            aims.push(Goal {
                aim: format!("{name}: reading Plume's text at most as long as deciding"),
                measured: show_ratio(ratio(reading, cell.deciding)),
                reached: Some(reading <= cell.deciding),
            });
        }
        let is_valid_twin = |other: &&Cell| {
            let (a, b) = (&cell.task, &other.task);
            let same = (a.levels, a.operations, a.sessions) == (b.levels, b.operations, b.sessions);
            same && a.skew == b.skew && b.anomaly.is_none()
        };
        if cell.task.anomaly.is_some()
            && let Some(valid) = cells.iter().find(is_valid_twin)
        {
            let time = |cell: &Cell| cell.deciding + cell.certifying;
            let share = ratio(time(cell), time(valid));
            aims.push(Goal {
                aim: format!("{name}: at most twice the valid history's time"),
                measured: show_ratio(share),
                reached: Some(share <= 2.0),
            });
        }
    }
    aims
}
