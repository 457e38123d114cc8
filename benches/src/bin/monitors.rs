//! Decides linearizability of large histories of registers, sets, queues, stacks and priority
//! queues in polynomial time, and checks the results with the independent checker.
//!
//! The histories are those of random clients on a linearizable object; of each size there is one
//! unchanged history and one in which the returns of some pairs of calls were exchanged. The
//! program fails if an unchanged history is not found linearizable, or if the checker does not
//! accept a certificate.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use consistory_benches::measure::{median, once, ratio, show_count, show_ratio, show_time};
use consistory_benches::publish::{Docs, Goal, Machine, goals, markdown, provenance};
use consistory_certify::certify_object;
use consistory_generate::{ObjectWorkload, SharedObject, generate_calls};
use consistory_history::History;
use consistory_objects::{Calls, Outcome, monitor};
use consistory_spec::{Object, ObjectModel, find};
use consistory_verdict::{Budget, Core, Linearization, ObjectCertificate};

/// Measures the polynomial deciders of linearizability.
#[derive(Debug, Parser)]
struct Args {
    /// Numbers of calls.
    #[arg(long, value_delimiter = ',', default_value = "10000,100000,1000000")]
    operations: Vec<u32>,
    /// Number of sessions.
    #[arg(long, default_value_t = 8)]
    sessions: u32,
    /// Number of times that each history is decided; the median counts.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Output folder, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
}

/// Measurements of an object at a size.
struct Cell {
    object: SharedObject,
    operations: u32,
    good: Duration,
    certify: Duration,
    bad: Duration,
    pattern: String,
    core: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let machine = Machine::here();
    let mut cells = Vec::new();
    for object in SharedObject::DECIDED {
        for &operations in &args.operations {
            let cell = measure(object, operations, &args)?;
            eprintln!("{object} {operations}: {}", show_time(cell.good));
            cells.push(cell);
        }
    }
    let rows: Vec<Vec<String>> = cells
        .iter()
        .map(|cell| {
            vec![
                cell.object.to_string(),
                show_count(cell.operations.into()),
                show_time(cell.good),
                show_time(cell.certify),
                show_time(cell.bad),
                format!("{}, {} calls", cell.pattern, cell.core),
            ]
        })
        .collect();
    let header = ["object", "calls", "linearizable", "checker", "violation", "found"];
    let text = format!(
        "{}\nHistories of {} sessions, 48 % of the calls removals or reads, decided from the parsed \
         history; the median of {}. The checker replays the order that was found.\n\n{}\n{}",
        provenance("monitors", &machine),
        args.sessions,
        args.runs,
        markdown(&header, &rows),
        goals(&aims(&cells)),
    );
    Docs::new(args.docs).refresh("monitors", &text)?;
    print!("{text}");
    Ok(())
}

/// Compares the growth between the two largest sizes with linear growth, and the time of the
/// largest size with the goal.
fn aims(cells: &[Cell]) -> Vec<Goal> {
    let mut aims = Vec::new();
    for pair in cells.windows(2) {
        let [small, large] = pair else { continue };
        if small.object != large.object || large.operations < 1_000_000 {
            continue;
        }
        let (object, count) = (large.object, show_count(large.operations.into()));
        aims.push(Goal {
            aim: format!("{object}: {count} calls in at most 5 s"),
            measured: show_time(large.good.max(large.bad)),
            reached: Some(large.good.max(large.bad) <= Duration::from_secs(5)),
        });
        let by_size = f64::from(large.operations) / f64::from(small.operations);
        let growth = ratio(large.good, small.good);
        aims.push(Goal {
            aim: format!("{object}: {} the calls in at most twice that time", show_ratio(by_size)),
            measured: show_ratio(growth),
            reached: Some(growth <= 2.0 * by_size),
        });
    }
    aims
}

fn measure(object: SharedObject, operations: u32, args: &Args) -> Result<Cell, Box<dyn Error>> {
    let workload = ObjectWorkload {
        object,
        sessions: args.sessions,
        operations,
        read_share: 0.48,
        pending_share: 0.0,
        plants: 0,
        distance: 20,
        seed: 1,
    };
    let spec = find(object.name())?;
    let history = generate_calls(&workload);
    let (order, good) = decide(&history, &*spec, args.runs)?;
    let Outcome::Linearizable(_) = order else {
        return Err(format!("{object}, {operations} calls: {order:?}").into());
    };
    let certify = certify(&history, &*spec, &order)?;
    let planted = generate_calls(&ObjectWorkload { plants: 4, ..workload });
    let (found, bad) = decide(&planted, &*spec, args.runs)?;
    self::certify(&planted, &*spec, &found)?;
    let (pattern, core) = match &found {
        Outcome::Violation(violation) => (violation.pattern.to_string(), violation.core.len()),
        _ => ("none".to_owned(), 0),
    };
    Ok(Cell { object, operations, good, certify, bad, pattern, core })
}

/// Decides a history several times.
fn decide(
    history: &History,
    object: &dyn Object,
    runs: usize,
) -> Result<(Outcome, Duration), Box<dyn Error>> {
    let mut times = Vec::new();
    let mut found = None;
    for _ in 0..runs.max(1) {
        let (outcome, time) = once(|| Calls::new(history).map(|calls| monitor(&calls, object)));
        found = Some(outcome?);
        times.push(time);
    }
    Ok((found.ok_or("nothing was run")?, median(times)))
}

/// Checks a certificate, and returns the time.
fn certify(
    history: &History,
    object: &dyn Object,
    outcome: &Outcome,
) -> Result<Duration, Box<dyn Error>> {
    let calls = Calls::new(history)?;
    let ids = |places: &[_]| places.iter().map(|&place| calls.get(place).id).collect();
    let certificate = match outcome {
        Outcome::Linearizable(order) => {
            ObjectCertificate::Linearization(Linearization { order: ids(order), vis: None })
        }
        Outcome::Violation(violation) => {
            let pattern = violation.pattern.to_string();
            let operations = ids(&violation.core);
            ObjectCertificate::Core(Core { pattern: pattern.into(), operations, prefix: None })
        }
        Outcome::NotApplicable(reason) => return Err(reason.clone().into()),
    };
    let model = ObjectModel::named("linearizability").ok_or("there is no such model")?;
    let check = || certify_object(history, object, &model, &certificate, &Budget::default());
    let (accepted, time) = once(check);
    accepted?;
    Ok(time)
}
