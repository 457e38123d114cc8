//! Judges histories of the JDK's concurrent collections, as Emmi and Enea did ("Monitoring Weak
//! Consistency", CAV 2018, Figures 7 and 8).
//!
//! Each history is judged by linearizability and by happens-before visibility, with two orders of
//! search, with minimal visibilities and with all of them, for at most a second each. The program
//! fails if two methods that finish disagree.
//!
//! The histories are in `data/`; `--record` records others with the installed JDK. As in the paper,
//! random programs of up to 15 calls in up to 3 threads are run many times each, and some of the
//! different resulting histories are selected.

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use consistory_benches::measure::{once, ratio, show_count, show_ratio, show_time};
use consistory_benches::publish::{Docs, Goal, Machine, goals, markdown, provenance};
use consistory_draw::{Scatter, scatter_plot};
use consistory_formats::{Format, Input, Writer, read};
use consistory_harness::{Programs, Runner};
use consistory_live::{Jdk, JdkCollection, JdkOptions};
use consistory_objects::{
    Calls, Engine, Options, Strategy, Task, Tuning, Visibility, judge_object,
};
use consistory_spec::ObjectModel;
use consistory_verdict::{Budget, Verdict};

/// Judges histories of the JDK's concurrent collections.
#[derive(Debug, Parser)]
struct Args {
    /// Record new histories first, which needs a JDK.
    #[arg(long)]
    record: bool,
    /// Number of runs of each program when recording.
    #[arg(long, default_value_t = 6000)]
    rounds: u64,
    /// Time limit of each judgement, in milliseconds.
    #[arg(long, default_value_t = 1000)]
    timeout: u64,
    /// Output folder, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
}

/// Collections, and the number of histories of each: half of them are the paper's.
const SAMPLE: [(&str, usize); 7] = [
    ("ConcurrentSkipListMap", 2000),
    ("ConcurrentHashMap", 600),
    ("ConcurrentLinkedDeque", 400),
    ("ConcurrentSkipListSet", 300),
    ("ConcurrentLinkedQueue", 300),
    ("LinkedTransferQueue", 200),
    ("LinkedBlockingDeque", 200),
];

/// Number of programs that produced the histories of a collection.
const PROGRAMS: usize = 20;

/// A method of judging.
struct Way {
    name: &'static str,
    model: &'static str,
    strategy: Strategy,
    visibility: Visibility,
}

const LINEARIZABILITY: &str = "linearizability";
const WEAK: &str = "happens-before-visibility";

const fn way(
    name: &'static str,
    model: &'static str,
    strategy: Strategy,
    visibility: Visibility,
) -> Way {
    Way { name, model, strategy, visibility }
}

/// Methods; the constants below are indices into this list.
const WAYS: [Way; 6] = [
    way("linearizability, Wing and Gong", LINEARIZABILITY, Strategy::WingGong, Visibility::Minimal),
    way("linearizability, Lowe", LINEARIZABILITY, Strategy::JustInTime, Visibility::Minimal),
    way("minimal visibilities, Wing and Gong", WEAK, Strategy::WingGong, Visibility::Minimal),
    way("minimal visibilities, Lowe", WEAK, Strategy::JustInTime, Visibility::Minimal),
    way("all visibilities, Wing and Gong", WEAK, Strategy::WingGong, Visibility::All),
    way("all visibilities, Lowe", WEAK, Strategy::JustInTime, Visibility::All),
];

const WING_GONG: usize = 0;
const LOWE: usize = 1;
const MINIMAL: usize = 2;
const ALL: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let machine = Machine::here();
    if args.record {
        for (name, count) in SAMPLE {
            record(name, count, args.rounds)?;
        }
    }
    let limit = Duration::from_millis(args.timeout);
    let docs = Docs::new(args.docs.clone());
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); WAYS.len()];
    let mut not_ended = [0u64; WAYS.len()];
    // Total time of each method on the histories that are not linearizable.
    let mut hard = [Duration::ZERO; WAYS.len()];
    let mut rows = Vec::new();
    for (name, _) in SAMPLE {
        let collection = JdkCollection::named(name).ok_or("there is no such collection")?;
        let object = collection.specification();
        let mut judged = 0;
        let mut violations = [0u64; 2];
        for history in read(&Input::File(data(name)), None) {
            let history = history?;
            judged += 1;
            let mut decided: [Option<Verdict>; 2] = [None; 2];
            for (i, way) in WAYS.iter().enumerate() {
                let calls = Calls::new(&history)?;
                let task = Task::new(calls, Arc::clone(&object))?;
                let (verdict, time) = judge(&task, way, limit)?;
                times[i].push(time);
                let kind = usize::from(way.model == WEAK);
                match verdict {
                    Verdict::Undecided => not_ended[i] += 1,
                    verdict => {
                        if decided[kind].replace(verdict).is_some_and(|other| other != verdict) {
                            let place = format!("{name}, history {judged}");
                            return Err(format!("{} disagrees on {place}", way.name).into());
                        }
                    }
                }
            }
            if decided[0] == Some(Verdict::Violation) {
                for (sum, times) in hard.iter_mut().zip(&times) {
                    *sum += times.last().copied().unwrap_or_default();
                }
            }
            for (count, verdict) in violations.iter_mut().zip(decided) {
                *count += u64::from(verdict == Some(Verdict::Violation));
            }
        }
        eprintln!("{name}: {judged} histories");
        let [not_linearizable, not_visible] = violations.map(show_count);
        rows.push(vec![name.to_owned(), show_count(judged), not_linearizable, not_visible]);
    }
    let histories = times[0].len() as u64;
    let costs: Vec<Vec<String>> = WAYS
        .iter()
        .zip(&times)
        .zip(not_ended.iter().zip(hard))
        .map(|((way, times), (not_ended, hard))| {
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
            vec![
                way.name.to_owned(),
                show_time(at(0.5)),
                show_time(at(0.99)),
                show_time(at(1.0)),
                show_time(times.iter().sum()),
                show_time(hard),
                show_count(*not_ended),
            ]
        })
        .collect();
    for (name, title, x, y) in [
        ("jdk-strategies.svg", "Two orders of search", WING_GONG, LOWE),
        ("jdk-all.svg", "All visibilities against linearizability", WING_GONG, ALL),
        ("jdk-gain.svg", "Minimal visibilities against all", ALL, MINIMAL),
        ("jdk-minimal.svg", "Minimal visibilities against linearizability", WING_GONG, MINIMAL),
    ] {
        docs.figure(name, &scatter(title, x, y, &times, limit))?;
    }
    let total = |way: usize| times[way].iter().sum::<Duration>();
    let overhead = ratio(total(MINIMAL), total(WING_GONG));
    let gain = ratio(total(ALL), total(MINIMAL));
    let aims = [
        Goal {
            aim: "minimal visibilities take at most twice as long as linearizability".to_owned(),
            measured: show_ratio(overhead),
            reached: Some(overhead <= 2.0),
        },
        Goal {
            aim: "the same, of the histories that are not linearizable".to_owned(),
            measured: show_ratio(ratio(hard[MINIMAL], hard[WING_GONG])),
            reached: Some(ratio(hard[MINIMAL], hard[WING_GONG]) <= 2.0),
        },
        Goal {
            aim: "all visibilities take at least ten times as long as minimal ones".to_owned(),
            measured: show_ratio(gain),
            reached: Some(gain >= 10.0),
        },
        Goal {
            aim: "with all visibilities some judgements do not end in time".to_owned(),
            measured: show_count(not_ended[ALL]),
            reached: Some(not_ended[ALL] > 0),
        },
    ];
    let text = format!(
        "{}\n{} histories of collections of the JDK, with up to 15 calls in 3 threads, from {PROGRAMS} \
         random programs of each collection; those not linearizable, and those that violate \
         happens-before visibility, among them:\n\n{}\nA judgement gets at most {}, and counts with \
         that if it does not end.\n\n{}\n{}",
        provenance("jdk", &machine),
        show_count(histories),
        markdown(&["collection", "histories", "not linearizable", "violating visibility"], &rows),
        show_time(limit),
        markdown(
            &["way", "median", "99 %", "longest", "all", "not linearizable", "not ended"],
            &costs
        ),
        goals(&aims),
    );
    docs.refresh("jdk", &text)?;
    print!("{text}");
    Ok(())
}

/// Returns the file with the histories of a collection.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(format!("{name}.hist.zst"))
}

/// Records histories of a collection.
fn record(name: &str, count: usize, rounds: u64) -> Result<(), Box<dyn Error>> {
    let collection = JdkCollection::named(name).ok_or("there is no such collection")?;
    let classes = std::env::temp_dir().join(format!("consistory-jdk-{}", std::process::id()));
    let mut options = JdkOptions::new(collection, classes.clone());
    options.time = Duration::from_secs(20);
    let mut jdk = Jdk::start(options)?;
    let path = data(name);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = zstd::Encoder::new(File::create(&path)?, 19)?;
    let mut writer = Writer::new(Format::Hist, &mut file);
    let mut left = count;
    for number in 0.. {
        if left == 0 || number > 100 * PROGRAMS as u64 {
            break;
        }
        // The number of calls cycles; programs with few calls have few different histories.
        let calls = [5, 4, 5, 3][(number % 4) as usize];
        let signatures = collection.signatures(&[])?;
        let programs = Programs { calls, threads: 3, keys: 3, ..Programs::new(signatures) };
        let program = programs.get(number);
        let mut outcomes = jdk.run(&program, rounds)?;
        outcomes.sort();
        outcomes.dedup_by(|a, b| a.0 == b.0);
        // Evenly spread over the different outcomes, with equal numbers from each program.
        let wanted = count.div_ceil(PROGRAMS).min(left).min(outcomes.len());
        for i in 0..wanted {
            let (outcome, _) = &outcomes[i * outcomes.len() / wanted];
            writer.write(&outcome.history(&program))?;
        }
        left -= wanted;
    }
    drop(writer);
    file.finish()?;
    std::fs::remove_dir_all(classes)?;
    eprintln!("{name}: {} histories recorded", count - left);
    Ok(())
}

/// Judges a history several times and returns the shortest time, to reduce the effect of other load
/// on the machine.
fn judge(
    task: &Task<'_>,
    way: &Way,
    limit: Duration,
) -> Result<(Verdict, Duration), Box<dyn Error>> {
    let model = ObjectModel::named(way.model).ok_or("there is no such model")?;
    let engine = Engine::Paper { strategy: way.strategy, visibility: way.visibility };
    let budget = Budget::unlimited().with_time(limit);
    let options = Options { budget, ..Options::tuned(Tuning { engine, ..Tuning::default() }) };
    let decide = || judge_object(task, &model, &options).judgement.verdict();
    let (verdict, mut shortest) = once(decide);
    let began = Instant::now();
    for run in 1..9 {
        let is_enough = run >= 3 && began.elapsed() > Duration::from_millis(4);
        if verdict == Verdict::Undecided || is_enough {
            break;
        }
        shortest = shortest.min(once(decide).1);
    }
    // A run that is stopped counts with its time limit.
    let time = if verdict == Verdict::Undecided { limit } else { shortest };
    Ok((verdict, time))
}

/// Plots one method against another, with one point per history.
fn scatter(title: &str, x: usize, y: usize, times: &[Vec<Duration>], limit: Duration) -> String {
    let millis = |time: &Duration| time.as_secs_f64() * 1e3;
    let points: Vec<(f64, f64)> =
        times[x].iter().zip(&times[y]).map(|(a, b)| (millis(a), millis(b))).collect();
    let limit = millis(&limit);
    let is_reached = points.iter().any(|&(x, y)| x >= limit || y >= limit);
    scatter_plot(&Scatter {
        title: title.to_owned(),
        x_label: format!("{}, milliseconds", WAYS[x].name),
        y_label: format!("{}, milliseconds", WAYS[y].name),
        points,
        limit: is_reached.then_some(limit),
    })
}
