//! The cost of certificates: for every model of registers and every isolation level, how long deciding
//! a large history takes, how long the independent checker takes, and how both grow.
//!
//! Valid histories of random clients on simulated memories and stores, and the same histories with
//! a planted violation, for which the explanation is measured too. Each measurement runs in its own
//! process, this program started again (`--task`), so that its peak memory is its own. The program
//! fails if a verdict is not the expected one, or if the checker rejects a certificate.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::Parser;
use consistory_benches::measure::{
    once_on_processor, peak_memory, ratio, show_count, show_ratio, show_size, show_time,
};
use consistory_benches::publish::{Docs, Goal, Machine, goals, markdown, provenance};
use consistory_certify::{LevelClaim, certify, certify_levels};
use consistory_draw::{explain, table};
use consistory_generate::{
    Anomaly, EventAction, Memory, PlantOptions, Store, TransactionWorkload, Workload, generate,
    generate_transactions, plant, stream,
};
use consistory_history::{Action, Details, History, HistoryBuilder, Interval};
use consistory_registers::{Model, Options};
use consistory_verdict::{Budget, ClientOrder, Judgement, Level, Proof, Ruling, Verdict};
use serde_json::{Value, json};

/// Largest ratio of the times of certifying and deciding.
const MAX_RATIO: f64 = 1.5;
/// Largest ratio of the times of a history with a planted violation, explanation included, and of the
/// valid one.
const MAX_PLANTED_RATIO: f64 = 2.0;
/// Time and memory for one decision.
const LIMIT: Duration = Duration::from_secs(300);
const MAX_BYTES: u64 = 6 << 30;
/// Number of seeds tried until a planted read violates the model.
const MAX_SEEDS: u64 = 200;

/// Sessions and keys of the histories.
const SESSIONS: u32 = 20;
const VARIABLES: u32 = 100;
const OPERATIONS_PER_KEY: u32 = 100;

/// Measures how long deciding and certifying take.
#[derive(Debug, Parser)]
struct Args {
    /// Number of operations; the growth is measured to twice as many.
    #[arg(long, default_value_t = 1_000_000)]
    operations: u32,
    /// Number of processes that repeat each measurement; the least of each time counts.
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Models and levels to measure [default: all].
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Output folder, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
    /// Internal: perform one measurement and print it: model, operations, `valid` or `planted`.
    #[arg(long, hide = true, value_delimiter = ',')]
    task: Vec<String>,
}

/// A model with the simulated system whose histories satisfy it.
#[derive(Clone, Copy)]
enum Subject {
    Registers {
        id: &'static str,
        memory: Memory,
    },
    /// Timed reads and writes of a sequentially consistent memory.
    Timed,
    Transactions {
        level: Level,
        store: Store,
        anomaly: Anomaly,
    },
}

const SUBJECTS: [Subject; 18] = [
    Subject::Registers { id: "cc", memory: Memory::Ccv },
    Subject::Registers { id: "ccv", memory: Memory::Ccv },
    Subject::Registers { id: "cm", memory: Memory::Cm },
    Subject::Registers { id: "ccm", memory: Memory::Sc },
    Subject::Registers { id: "wccm", memory: Memory::Tso },
    Subject::Registers { id: "wsc", memory: Memory::Sc },
    Subject::Registers { id: "sc", memory: Memory::Sc },
    Subject::Registers { id: "wtso", memory: Memory::Tso },
    Subject::Registers { id: "tso", memory: Memory::Tso },
    Subject::Registers { id: "pso", memory: Memory::Pso },
    Subject::Timed,
    Subject::Transactions {
        level: Level::ReadCommitted,
        store: Store::Rc,
        anomaly: Anomaly::CircularRead,
    },
    Subject::Transactions {
        level: Level::ReadAtomic,
        store: Store::Ra,
        anomaly: Anomaly::FracturedRead,
    },
    Subject::Transactions {
        level: Level::Causal,
        store: Store::Tcc,
        anomaly: Anomaly::CausalViolation,
    },
    Subject::Transactions { level: Level::Prefix, store: Store::Pc, anomaly: Anomaly::LongFork },
    Subject::Transactions {
        level: Level::ParallelSnapshot,
        store: Store::Psi,
        anomaly: Anomaly::LostUpdate,
    },
    Subject::Transactions {
        level: Level::Snapshot,
        store: Store::Si,
        anomaly: Anomaly::LostUpdate,
    },
    Subject::Transactions {
        level: Level::Serializable,
        store: Store::Ser,
        anomaly: Anomaly::WriteSkew,
    },
];

impl Subject {
    fn id(&self) -> &'static str {
        match self {
            Subject::Registers { id, .. } => id,
            Subject::Timed => "linearizability",
            Subject::Transactions { level, .. } => level.id(),
        }
    }

    /// Returns the number of operations to measure with: the search for PSO needs much memory.
    fn size(&self, operations: u32) -> u32 {
        if self.id() == "pso" { operations / 4 } else { operations }
    }

    /// Builds a valid history.
    fn history(&self, operations: u32) -> History {
        let workload = Workload {
            sessions: SESSIONS,
            operations,
            variables: VARIABLES,
            ..Workload::default()
        };
        match *self {
            Subject::Registers { memory, .. } => generate(&workload, memory),
            Subject::Timed => timed(&workload),
            Subject::Transactions { store, .. } => transactions(store, operations, None),
        }
    }

    /// Builds histories with a planted violation, one per seed; not every planted read of a register
    /// violates the model.
    fn planted(&self, operations: u32) -> Box<dyn Iterator<Item = History> + '_> {
        match *self {
            Subject::Transactions { store, anomaly, .. } => {
                Box::new(std::iter::once(transactions(store, operations, Some(anomaly))))
            }
            _ => {
                let valid = self.history(operations);
                Box::new((0..MAX_SEEDS).map(move |seed| {
                    plant(
                        &valid,
                        &PlantOptions { seed, distance: 10_000, ..PlantOptions::default() },
                    )
                }))
            }
        }
    }

    fn judge(&self, history: &History) -> Result<Ruling, Box<dyn Error>> {
        match *self {
            Subject::Transactions { level, .. } => {
                let budget = Budget::unlimited().with_time(LIMIT).with_memory(MAX_BYTES);
                let rulings = consistory_transactions::judge(
                    history,
                    ClientOrder::Session,
                    &[level],
                    &budget,
                )?;
                Ok(rulings.into_iter().next().ok_or("no ruling")?.map(Proof::from))
            }
            _ => {
                let model = match self {
                    Subject::Timed => consistory_models::linearizability(),
                    _ => consistory_models::find(self.id())?,
                };
                let models = [Model::Catalogued(model)];
                let budget = Budget::unlimited().with_time(LIMIT).with_memory(MAX_BYTES);
                let options = Options { jobs: 1, budget, ..Options::default() };
                let mut rulings = consistory_registers::judge(history, &models, &options);
                Ok(rulings.remove(0).map_err(|error| error.to_string())?.map(Proof::from))
            }
        }
    }

    fn certify(&self, history: &History, ruling: &Ruling) -> Result<(), Box<dyn Error>> {
        let claim = ruling.judgement.verdict();
        match (self, ruling.judgement.certificate().ok_or("undecided")?) {
            (Subject::Transactions { level, .. }, Proof::Transactions(certificate)) => {
                let claim = LevelClaim { level: *level, claim, certificate };
                Ok(certify_levels(history, ClientOrder::Session, &[claim]).remove(0)?)
            }
            (_, Proof::Registers(certificate)) => {
                let proved = ruling.via.unwrap_or(self.id());
                Ok(certify(history, proved, claim, certificate)?)
            }
            _ => Err("a certificate of another family".into()),
        }
    }
}

/// Builds a history of transactions.
fn transactions(store: Store, operations: u32, anomaly: Option<Anomaly>) -> History {
    generate_transactions(&TransactionWorkload {
        store,
        operations,
        sessions: SESSIONS,
        keys: operations / OPERATIONS_PER_KEY,
        sizes: 5..=5,
        anomalies: anomaly.into_iter().collect(),
        ..TransactionWorkload::default()
    })
}

/// Builds a history of timed reads and writes. Each takes effect at its turn, starts some time before
/// and returns some time after it.
fn timed(workload: &Workload) -> History {
    let events: Vec<_> = stream(workload, Memory::Sc).collect();
    let sessions = workload.sessions as usize;
    let turn = |at: usize| at as i64 * 4;
    // The turn of the next operation of the same session.
    let mut next = vec![i64::MAX; events.len()];
    let mut later = vec![i64::MAX; sessions];
    for (at, event) in events.iter().enumerate().rev() {
        next[at] = std::mem::replace(&mut later[event.session as usize], turn(at));
    }
    let mut b = HistoryBuilder::new();
    let ids: Vec<_> = (0..sessions).map(|session| b.session(&format!("t{session}"))).collect();
    let keys: Vec<_> = (0..workload.variables).map(|key| b.key(&format!("x{key}"))).collect();
    let mut returned = vec![-1; sessions];
    let mut state = 1_u64;
    let mut draw = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64 % 200
    };
    for (at, event) in events.iter().enumerate() {
        let session = event.session as usize;
        let start = (returned[session] + 1).max(turn(at) - draw());
        let end = (turn(at) + 1 + draw()).min(next[at].saturating_sub(2)).max(turn(at));
        returned[session] = end;
        let action = match event.action {
            EventAction::Read { variable, value } => {
                Action::Read { key: keys[variable as usize], value: b.int(value as i64) }
            }
            EventAction::Write { variable, value } => {
                Action::Write { key: keys[variable as usize], value: b.int(value as i64) }
            }
            EventAction::Rmw { .. } | EventAction::Fence => continue,
        };
        let time = Some(Interval { start, end: Some(end) });
        b.push_with(ids[session], action, Details { time, ..Details::default() });
    }
    b.finish().expect("it has no transactions, and all names are its own")
}

/// The times of one history.
#[derive(Clone, Copy, Debug)]
struct Measured {
    deciding: Duration,
    certifying: Duration,
    explaining: Duration,
    peak: u64,
}

/// Measurements of one model.
struct Row {
    subject: Subject,
    once: Measured,
    twice: Measured,
    planted: Measured,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    if let [id, operations, kind] = args.task.as_slice() {
        let subject = SUBJECTS.iter().find(|subject| subject.id() == id).ok_or("unknown model")?;
        println!("{}", measure(subject, operations.parse()?, kind == "planted")?);
        return Ok(());
    }
    let machine = Machine::here();
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for subject in SUBJECTS {
        if !args.only.is_empty() && !args.only.iter().any(|id| id == subject.id()) {
            continue;
        }
        let run = |times, kind| {
            let operations = subject.size(args.operations) * times;
            in_processes(&subject, operations, kind, args.repeat)
        };
        let measured = run(1, "valid").and_then(|once| {
            Ok(Row { subject, once, twice: run(2, "valid")?, planted: run(1, "planted")? })
        });
        match measured {
            Ok(row) => {
                eprintln!("{}", cells(&row).join("  "));
                rows.push(row);
            }
            Err(error) => {
                eprintln!("{error}");
                failed.push(subject.id());
            }
        }
    }
    let operations = show_count(args.operations.into());
    let more = show_count((args.operations * 2).into());
    let header = [
        "model",
        "deciding",
        "certifying",
        "to deciding",
        "peak memory",
        &format!("deciding {more}"),
        "certifying",
        "growth of certifying",
        "planted: deciding",
        "certifying",
        "explaining",
        "all, to the valid history",
    ];
    let text = format!(
        "{}\nHistories of {operations} operations in {SESSIONS} sessions, half of them reads, of random clients on \
         a simulated system that implements the model or a stronger one. Registers: {VARIABLES} variables. \
         Transactions: 5 operations each, one key per {OPERATIONS_PER_KEY} operations. Times are processor times of \
         one thread, each the least of {} processes; the peak memory includes the history. PSO is measured with a \
         quarter of the operations.{}\n\n{}\n{}",
        provenance("certified", &machine),
        args.repeat,
        if failed.is_empty() {
            String::new()
        } else {
            format!(" Not decided in {} or 6 GiB: {}.", show_time(LIMIT), failed.join(", "))
        },
        markdown(&header, &rows.iter().map(cells).collect::<Vec<_>>()),
        goals(&aims(&rows)),
    );
    println!("{}", table(&header, &rows.iter().map(cells).collect::<Vec<_>>()));
    Docs::new(args.docs).refresh("certified", &text)?;
    print!("{}", goals(&aims(&rows)));
    Ok(())
}

/// Performs a measurement in this process, and returns it as JSON.
fn measure(subject: &Subject, operations: u32, is_planted: bool) -> Result<Value, Box<dyn Error>> {
    let (histories, expected): (Box<dyn Iterator<Item = History>>, Verdict) = match is_planted {
        true => (subject.planted(operations), Verdict::Violation),
        false => (Box::new(std::iter::once(subject.history(operations))), Verdict::Consistent),
    };
    for history in histories {
        // Linux resets the peak.
        fs::write("/proc/self/clear_refs", "5")?;
        let (ruling, deciding) = once_on_processor(|| subject.judge(&history));
        let ruling = ruling?;
        if ruling.judgement.verdict() != expected {
            if is_planted && ruling.judgement.verdict() != Verdict::Undecided {
                continue;
            }
            return Err(format!("{}: {:?}", subject.id(), ruling.judgement.verdict()).into());
        }
        let (accepted, certifying) = once_on_processor(|| subject.certify(&history, &ruling));
        accepted?;
        let (text, explaining) = once_on_processor(|| match &ruling.judgement {
            Judgement::Violation { .. } => explain(&history, subject.id(), &ruling.judgement, &[]),
            _ => String::new(),
        });
        let peak = peak_memory().ok_or("this system does not say how much memory a process has")?;
        return Ok(json!({
            "deciding": deciding.as_secs_f64(),
            "certifying": certifying.as_secs_f64(),
            "explaining": explaining.as_secs_f64(),
            "explanation": text,
            "peak": peak,
        }));
    }
    Err(format!("{}: no planted read violates it", subject.id()).into())
}

/// Performs a measurement in separate processes; returns the least of each time.
fn in_processes(
    subject: &Subject,
    operations: u32,
    kind: &str,
    repeat: usize,
) -> Result<Measured, Box<dyn Error>> {
    let task = format!("{},{operations},{kind}", subject.id());
    let mut best: Option<Measured> = None;
    for _ in 0..repeat.max(1) {
        let output = Command::new(std::env::current_exe()?).args(["--task", &task]).output()?;
        if !output.status.success() {
            return Err(format!("{task}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let found: Value = serde_json::from_slice(&output.stdout)?;
        let time = |name: &str| found[name].as_f64().map(Duration::from_secs_f64).ok_or("no time");
        let one = Measured {
            deciding: time("deciding")?,
            certifying: time("certifying")?,
            explaining: time("explaining")?,
            peak: found["peak"].as_u64().ok_or("no peak")?,
        };
        best = Some(best.map_or(one, |best| Measured {
            deciding: best.deciding.min(one.deciding),
            certifying: best.certifying.min(one.certifying),
            explaining: best.explaining.min(one.explaining),
            peak: best.peak.max(one.peak),
        }));
    }
    best.ok_or_else(|| "nothing was measured".into())
}

impl Row {
    fn planted_ratio(&self) -> f64 {
        let Measured { deciding, certifying, explaining, .. } = self.planted;
        ratio(deciding + certifying + explaining, self.once.deciding + self.once.certifying)
    }
}

fn cells(row: &Row) -> Vec<String> {
    vec![
        row.subject.id().to_owned(),
        show_time(row.once.deciding),
        show_time(row.once.certifying),
        show_ratio(ratio(row.once.certifying, row.once.deciding)),
        show_size(row.once.peak),
        show_time(row.twice.deciding),
        show_time(row.twice.certifying),
        show_ratio(ratio(row.twice.certifying, row.once.certifying)),
        show_time(row.planted.deciding),
        show_time(row.planted.certifying),
        show_time(row.planted.explaining),
        show_ratio(row.planted_ratio()),
    ]
}

fn aims(rows: &[Row]) -> Vec<Goal> {
    let mut aims = Vec::new();
    for row in rows {
        let id = row.subject.id();
        let share = ratio(row.once.certifying, row.once.deciding);
        aims.push(Goal {
            aim: format!("{id}: certifying at most {MAX_RATIO} times deciding"),
            measured: show_ratio(share),
            reached: Some(share <= MAX_RATIO),
        });
        let share = row.planted_ratio();
        aims.push(Goal {
            aim: format!(
                "{id}: a planted violation decided, certified and explained in at most \
                 {MAX_PLANTED_RATIO} times the valid history's time"
            ),
            measured: show_ratio(share),
            reached: Some(share <= MAX_PLANTED_RATIO),
        });
    }
    aims
}
