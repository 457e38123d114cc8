//! Redoes Figures 4.6, 4.7, 4.15 to 4.18, 5.5 and 5.10 of Zennou's thesis (2021): the time of
//! deciding SC and TSO on histories of random clients, without saturation and by each of our
//! engines, in one run and on the same histories.
//!
//! The thesis ran its clients on cache coherence protocols in the Gem5 simulator; here a simulated
//! memory takes their place. Violations are planted: reads are changed to return the value of
//! another write (section 4.2.5). The baselines are the standard encoding into boolean
//! satisfiability, and for SC the bounded-thread search that the thesis calls DBCOP
//! ([`consistory_benches::plain`]).
//!
//! The program fails if two methods disagree on a history, or if the independent checker does not
//! accept a certificate.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use consistory_benches::measure::{mean, once, ratio, show_ratio, show_time};
use consistory_benches::plain::{Plain, PlainModel, by_encoding, by_frontier};
use consistory_benches::publish::{Docs, Goal, Machine, goals, markdown, provenance};
use consistory_certify::certify;
use consistory_draw::{Plot, Series, line_plot, table};
use consistory_generate::{
    Memory, PlantOptions, Plants, Tangle, Workload, generate, plant, tangle,
};
use consistory_history::History;
use consistory_registers::{
    ConvergentModel, Engine, Options, StoreModel, Tuning, decide_convergent, decide_stored,
};
use consistory_verdict::{Budget, Verdict};

/// Compares the engines for SC and TSO with each other and with ways of deciding without saturation.
#[derive(Debug, Parser)]
struct Args {
    /// Number of histories judged per configuration.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    histories: u64,
    /// Number of these histories that the plain encoding judges too; the plain search judges all.
    #[arg(long, default_value_t = 1)]
    baseline_histories: usize,
    /// Time limit of a baseline per history, in seconds; larger histories of the same figure are
    /// then skipped, except for the last.
    #[arg(long, default_value_t = 10.0)]
    limit: f64,
    /// Smallest number of times that each engine decides each history; the fastest counts.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Number of variables of the clients; the thesis does not state it.
    #[arg(long, default_value_t = 10)]
    variables: u32,
    /// Measure only a few histories, with a limit of two seconds.
    #[arg(long)]
    quick: bool,
    /// Output folder, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
}

/// Kind of the histories of a figure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Valid,
    Invalid,
    /// Half of them are valid.
    Mixed,
}

/// A figure of the thesis.
struct Figure {
    name: &'static str,
    model: PlainModel,
    kind: Kind,
    /// Varied parameter: `operations` or `threads`.
    x: &'static str,
    /// Value of the varied parameter, threads and operations of each configuration.
    configurations: Vec<(u32, u32, u32)>,
}

fn figures() -> Vec<Figure> {
    let operations = |threads: u32, from: u32, to: u32| -> Vec<(u32, u32, u32)> {
        (from / 100..=to / 100).map(|n| (100 * n, threads, 100 * n)).collect()
    };
    let threads = |numbers: &[u32]| -> Vec<(u32, u32, u32)> {
        numbers.iter().map(|&n| (n, n, 50 * n)).collect()
    };
    let figure =
        |name, model, kind, x, configurations| Figure { name, model, kind, x, configurations };
    let (sc, tso) = (PlainModel::Sc, PlainModel::Tso);
    let (valid, invalid, mixed) = (Kind::Valid, Kind::Invalid, Kind::Mixed);
    vec![
        figure("4.6a", sc, valid, "operations", operations(4, 100, 500)),
        figure("4.6b", sc, valid, "threads", threads(&[2, 3, 4, 5, 6])),
        figure("4.7", sc, invalid, "threads", threads(&[2, 4, 6, 8])),
        figure("4.15", sc, valid, "operations", operations(6, 200, 800)),
        figure("4.16", sc, valid, "threads", threads(&[4, 8, 12, 16])),
        figure("4.17", sc, mixed, "threads", threads(&[4, 8, 12, 16])),
        figure("4.18", sc, invalid, "threads", threads(&[4, 8, 12, 16])),
        figure("5.5a", tso, valid, "operations", operations(4, 100, 500)),
        figure("5.5b", tso, valid, "threads", threads(&[2, 3, 4, 5, 6])),
        figure("5.10a", tso, valid, "operations", operations(6, 200, 800)),
        figure("5.10b", tso, valid, "threads", threads(&[4, 8, 12, 16])),
    ]
}

/// Short runs are repeated for at least this time, up to a number of times.
const ENOUGH: Duration = Duration::from_millis(50);
const MOST_TURNS: usize = 25;

/// Engines, with their names on the command line.
const ENGINES: [(&str, Engine); 4] = [
    ("split", Engine::Split),
    ("frontier", Engine::Frontier),
    ("sat", Engine::Sat),
    ("auto", Engine::Auto),
];

/// Result of a baseline.
#[derive(Clone, Copy)]
enum Baseline {
    Mean(Duration),
    /// It exceeded this time.
    Over(Duration),
    /// It was skipped, because a smaller history exceeded the limit.
    Skipped,
    /// There is no such baseline for this model.
    None,
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Baseline::Mean(time) => f.write_str(&show_time(*time)),
            Baseline::Over(limit) => write!(f, "> {}", show_time(*limit)),
            Baseline::Skipped => f.write_str("skipped"),
            Baseline::None => Ok(()),
        }
    }
}

impl Baseline {
    /// Returns a lower bound of the ratio to another time.
    fn ratio(self, ours: Duration) -> Option<(f64, &'static str)> {
        match self {
            Baseline::Mean(time) => Some((ratio(time, ours), "")),
            Baseline::Over(limit) => Some((ratio(limit, ours), "> ")),
            Baseline::Skipped | Baseline::None => None,
        }
    }
}

/// Measurements of one configuration of a figure.
struct Cell {
    x: u32,
    encoding: Baseline,
    search: Baseline,
    /// Time of wCCM, if the figure contains it.
    convergent: Option<Duration>,
    /// Time of saturation alone: wSC or wTSO.
    weak: Duration,
    /// Mean time of each engine, in the order of [`ENGINES`].
    engines: [Duration; 4],
    /// Mean time of `auto` over the histories that the plain encoding judged too.
    auto_there: Duration,
    violations: usize,
}

impl Cell {
    fn auto(&self) -> Duration {
        self.engines[3]
    }

    /// Returns the ratio between `auto` and the fastest engine.
    fn lag(&self) -> f64 {
        let fastest = self.engines.iter().min().copied().unwrap_or_default();
        ratio(self.auto(), fastest)
    }
}

struct Bench {
    args: Args,
    jobs: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = Args::parse();
    if args.quick {
        (args.histories, args.repeat, args.limit) = (args.histories.min(2), 3, args.limit.min(2.0));
    }
    let machine = Machine::here();
    let bench = Bench { args, jobs: thread::available_parallelism().map_or(1, |n| n.get()) };
    let docs = Docs::new(bench.args.docs.clone());
    let intro = bench.intro(&machine);
    let mut report = format!("# SC and TSO, gradually\n\n{intro}");
    let mut measured = Vec::new();
    for figure in figures() {
        let cells = bench.run(&figure)?;
        let title = figure.title();
        println!("{title}\n{}", table(&figure.header(), &rows(&cells)));
        report += &format!("\n## {title}\n\n{}", markdown(&figure.header(), &rows(&cells)));
        docs.figure(&format!("gradual-{}.svg", figure.name), &plot(&figure, &cells))?;
        measured.push((figure, cells));
    }
    let hard = bench.tangled()?;
    let header =
        ["cells", "cycles", "operations", "split", "frontier", "sat", "auto", "violations"];
    println!("Tangled histories\n{}", table(&header, &hard));
    report += &format!("\n## Tangled histories, SC\n\n{}", markdown(&header, &hard));
    docs.figure("gradual.md", &report)?;
    let found = goals(&aims(&measured));
    println!("{found}");
    docs.refresh("gradual", &format!("{intro}\n{found}"))?;
    Ok(())
}

impl Bench {
    fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.args.limit)
    }

    fn run(&self, figure: &Figure) -> Result<Vec<Cell>, Box<dyn Error>> {
        let mut over = [false; 2];
        let mut cells = Vec::new();
        for (at, &(x, sessions, operations)) in figure.configurations.iter().enumerate() {
            // The last configuration is the most important one and never skipped.
            if at + 1 == figure.configurations.len() {
                over = [false; 2];
            }
            let workload = |seed| Workload {
                sessions,
                operations,
                variables: self.args.variables,
                seed,
                ..Workload::default()
            };
            let histories: Vec<History> =
                (0..self.args.histories).map(|seed| figure.history(&workload(seed))).collect();
            let cell = self.measure(figure, x, &histories, &mut over)?;
            eprintln!("{}: {}", figure.name, rows(std::slice::from_ref(&cell))[0].join("  "));
            cells.push(cell);
        }
        Ok(cells)
    }

    fn measure(
        &self,
        figure: &Figure,
        x: u32,
        histories: &[History],
        over: &mut [bool; 2],
    ) -> Result<Cell, Box<dyn Error>> {
        let model = figure.model;
        let (strong, weak, id) = match model {
            PlainModel::Sc => (StoreModel::Sc, StoreModel::Wsc, "sc"),
            PlainModel::Tso => (StoreModel::Tso, StoreModel::Wtso, "tso"),
        };
        let (mut weak_times, mut convergent_times) = (Vec::new(), Vec::new());
        let mut times = [const { Vec::new() }; 4];
        let mut verdicts = Vec::new();
        for history in histories {
            // The engines take turns, so that other load on the machine affects all of them.
            let mut fastest = [Duration::MAX; 4];
            let (mut fastest_weak, mut fastest_convergent) = (Duration::MAX, Duration::MAX);
            let mut seen: Option<Verdict> = None;
            let started = Instant::now();
            for turn in 0..MOST_TURNS.max(self.args.repeat) {
                if turn >= self.args.repeat.max(1) && started.elapsed() > ENOUGH {
                    break;
                }
                let (_, time) = once(|| decide_stored(history, weak, &Options::default()));
                fastest_weak = fastest_weak.min(time);
                if figure.has_convergent() {
                    let wccm = ConvergentModel::Wccm;
                    let (_, time) = once(|| decide_convergent(history, wccm, &Options::default()));
                    fastest_convergent = fastest_convergent.min(time);
                }
                for ((name, engine), fastest) in ENGINES.into_iter().zip(&mut fastest) {
                    let options = Options {
                        jobs: self.jobs,
                        ..Options::tuned(Tuning { engine, ..Tuning::default() })
                    };
                    let (timed, time) = once(|| decide_stored(history, strong, &options));
                    *fastest = (*fastest).min(time);
                    let verdict = timed.judgement.verdict();
                    if *seen.get_or_insert(verdict) != verdict {
                        return Err(format!("{name} disagrees about {id} at {x}").into());
                    }
                    if turn == 0 {
                        let certificate = timed.judgement.certificate().ok_or("undecided")?;
                        certify(history, id, verdict, certificate)?;
                    }
                }
            }
            weak_times.push(fastest_weak);
            convergent_times.push(fastest_convergent);
            times.iter_mut().zip(fastest).for_each(|(times, fastest)| times.push(fastest));
            verdicts.push(seen == Some(Verdict::Consistent));
        }
        let limit = self.limit();
        let baseline = |over: &mut bool, number: usize, decide: &dyn Fn(&History) -> Plain| {
            if *over {
                return Ok(Baseline::Skipped);
            }
            let mut times = Vec::new();
            for (history, &expected) in histories.iter().zip(&verdicts).take(number) {
                match once(|| decide(history)) {
                    (Plain::OutOfTime, _) => {
                        *over = true;
                        return Ok(Baseline::Over(limit));
                    }
                    (Plain::Decided(found), _) if found != expected => {
                        return Err(format!("a baseline disagrees about {id} at {x}"));
                    }
                    (Plain::Decided(_), mut time) => {
                        // Short runs are repeated, like those of our engines.
                        let started = Instant::now();
                        while time < ENOUGH && started.elapsed() < ENOUGH {
                            time = time.min(once(|| decide(history)).1);
                        }
                        times.push(time);
                    }
                }
            }
            Ok(Baseline::Mean(mean(&times)))
        };
        let encoding = baseline(&mut over[0], self.args.baseline_histories, &|history| {
            by_encoding(history, model, limit)
        })?;
        let search = match model {
            PlainModel::Sc => {
                baseline(&mut over[1], histories.len(), &|history| by_frontier(history, limit))?
            }
            PlainModel::Tso => Baseline::None,
        };
        Ok(Cell {
            x,
            encoding,
            search,
            convergent: figure.has_convergent().then(|| mean(&convergent_times)),
            weak: mean(&weak_times),
            auto_there: mean(&times[3][..times[3].len().min(self.args.baseline_histories)]),
            engines: times.map(|times| mean(&times)),
            violations: verdicts.iter().filter(|&&consistent| !consistent).count(),
        })
    }

    /// Measures histories that need a search; returns rows of a table.
    fn tangled(&self) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
        let sizes: &[(u32, u32)] =
            if self.args.quick { &[(10, 40)] } else { &[(10, 40), (20, 70), (30, 105), (40, 140)] };
        let mut rows = Vec::new();
        for &(cells, cycles) in sizes {
            let histories: Vec<History> = (0..self.args.histories.min(4))
                .map(|seed| tangle(&Tangle { cells, cycles, seed }))
                .collect();
            let mut row =
                vec![cells.to_string(), cycles.to_string(), histories[0].len().to_string()];
            let mut verdicts: Vec<Option<Verdict>> = vec![None; histories.len()];
            for (name, engine) in ENGINES {
                let mut times = Vec::new();
                let mut over = false;
                for (history, seen) in histories.iter().zip(&mut verdicts) {
                    let budget = Budget::unlimited().with_time(self.limit());
                    let options = Options {
                        jobs: self.jobs,
                        budget,
                        tuning: Tuning { engine, ..Tuning::default() },
                    };
                    let (timed, time) = once(|| decide_stored(history, StoreModel::Sc, &options));
                    times.push(time);
                    let verdict = timed.judgement.verdict();
                    match timed.judgement.certificate() {
                        None => over = true,
                        Some(certificate) => {
                            certify(history, "sc", verdict, certificate)?;
                            if *seen.get_or_insert(verdict) != verdict {
                                return Err(format!("{name} disagrees about {cells} cells").into());
                            }
                        }
                    }
                    if over {
                        break;
                    }
                }
                row.push(match over {
                    true => Baseline::Over(self.limit()).to_string(),
                    false => show_time(mean(&times)),
                });
            }
            let violations = verdicts.iter().filter(|&&v| v == Some(Verdict::Violation)).count();
            row.push(format!("{violations} of {}", histories.len()));
            eprintln!("tangled: {}", row.join("  "));
            rows.push(row);
        }
        Ok(rows)
    }

    fn intro(&self, machine: &Machine) -> String {
        let Args { histories, baseline_histories, repeat, variables, limit, .. } = &self.args;
        format!(
            "{}\nThe clients use {variables} variables, half of their operations are reads, and they \
             run on the `sc` memory. Times are means per history, ours over {histories} histories of \
             each configuration, each the fastest of at least {repeat} runs in which the engines take turns; \
             those of the plain encoding over the first {baseline_histories}; the baselines have a limit of {limit} s per history, \
             and in each figure the larger histories after one that exceeded it are skipped, except for the \
             last. \
             All verdicts agree, and the independent checker accepts all certificates.\n",
            provenance("gradual", machine),
        )
    }
}

impl Figure {
    fn model(&self) -> &'static str {
        match self.model {
            PlainModel::Sc => "SC",
            PlainModel::Tso => "TSO",
        }
    }

    fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Valid => "valid histories",
            Kind::Invalid => "invalid histories",
            Kind::Mixed => "half of the histories invalid",
        }
    }

    fn title(&self) -> String {
        let rest = match self.x {
            "threads" => "50 operations a thread".to_owned(),
            _ => format!("{} threads", self.configurations[0].1),
        };
        format!("Figure {}: {}, {}, {rest}", self.name, self.model(), self.kind())
    }

    /// Returns whether the thesis's figure contains wCCM.
    fn has_convergent(&self) -> bool {
        self.name.starts_with("5.10")
    }

    fn header(&self) -> Vec<&'static str> {
        let mut header = vec![self.x, "plain SAT", "plain search"];
        if self.has_convergent() {
            header.push("wCCM");
        }
        header.push(if self.model == PlainModel::Sc { "wSC" } else { "wTSO" });
        header.extend(ENGINES.map(|(name, _)| name));
        header.extend(["auto to fastest", "plain SAT to auto", "violations"]);
        header
    }

    fn history(&self, workload: &Workload) -> History {
        let history = generate(workload, Memory::Sc);
        match self.kind {
            Kind::Valid => history,
            Kind::Mixed if workload.seed.is_multiple_of(2) => history,
            Kind::Invalid | Kind::Mixed => spoilt(&history, workload.seed, self.model),
        }
    }
}

/// Plants wrong reads until they violate a model.
fn spoilt(history: &History, seed: u64, model: PlainModel) -> History {
    let strong = if model == PlainModel::Sc { StoreModel::Sc } else { StoreModel::Tso };
    (0..)
        .map(|attempt| {
            let plants = Plants::Count(1 + attempt as usize / 8);
            let seed = seed + (attempt << 32);
            plant(history, &PlantOptions { plants, seed, ..PlantOptions::default() })
        })
        .find(|planted| {
            let timed = decide_stored(planted, strong, &Options::default());
            timed.judgement.verdict() == Verdict::Violation
        })
        .expect("attempts do not end")
}

fn rows(cells: &[Cell]) -> Vec<Vec<String>> {
    let row = |cell: &Cell| {
        let mut row = vec![cell.x.to_string(), cell.encoding.to_string(), cell.search.to_string()];
        row.extend(cell.convergent.map(show_time));
        row.push(show_time(cell.weak));
        row.extend(cell.engines.iter().map(|&time| show_time(time)));
        row.push(show_ratio(cell.lag()));
        let plain = cell.encoding.ratio(cell.auto_there);
        row.push(plain.map_or_else(String::new, |(ratio, at_least)| {
            at_least.to_owned() + &show_ratio(ratio)
        }));
        row.push(cell.violations.to_string());
        row
    };
    cells.iter().map(row).collect()
}

fn plot(figure: &Figure, cells: &[Cell]) -> String {
    let baseline = |name: &str, of: &dyn Fn(&Cell) -> Baseline| {
        let point = |cell: &Cell| match of(cell) {
            Baseline::Mean(time) => Some((f64::from(cell.x), time.as_secs_f64())),
            _ => None,
        };
        let over = cells.iter().any(|cell| matches!(of(cell), Baseline::Over(_)));
        Series {
            name: name.to_owned(),
            points: cells.iter().filter_map(point).collect(),
            missing: over.then(|| "then out of time".to_owned()),
        }
    };
    let mut series = vec![baseline("plain SAT", &|cell| cell.encoding)];
    if figure.model == PlainModel::Sc {
        series.push(baseline("plain search", &|cell| cell.search));
    }
    if figure.has_convergent() {
        let points = |cell: &Cell| Some((f64::from(cell.x), cell.convergent?.as_secs_f64()));
        let points = cells.iter().filter_map(points).collect();
        series.push(Series { name: "wCCM".to_owned(), points, missing: None });
    }
    series.extend(ENGINES.iter().enumerate().map(|(at, (name, _))| Series {
        name: (*name).to_owned(),
        points: cells.iter().map(|c| (f64::from(c.x), c.engines[at].as_secs_f64())).collect(),
        missing: None,
    }));
    line_plot(&Plot {
        title: figure.title(),
        x_label: figure.x.to_owned(),
        y_label: "seconds a history".to_owned(),
        log_x: false,
        log_y: true,
        series,
    })
}

fn aims(measured: &[(Figure, Vec<Cell>)]) -> Vec<Goal> {
    let lags = measured.iter().flat_map(|(figure, cells)| {
        cells.iter().map(move |cell| (cell.lag(), format!("{} at {}", figure.name, cell.x)))
    });
    let worst = lags.max_by(|a, b| a.0.total_cmp(&b.0));
    let behind = |(figure, cells): &(Figure, Vec<Cell>)| -> Vec<(f64, String)> {
        let place = |cell: &Cell| format!("{} at {}", figure.name, cell.x);
        let found = |cell: &Cell| Some((cell.search.ratio(cell.auto())?.0, place(cell)));
        cells.iter().filter_map(found).collect()
    };
    let closest = measured.iter().flat_map(behind).min_by(|a, b| a.0.total_cmp(&b.0));
    let mut goals = vec![Goal {
        aim: "auto within 1.2 times the plain search in every cell".to_owned(),
        measured: closest.as_ref().map_or_else(String::new, |(ahead, place)| {
            format!("{} at worst (Figure {place})", show_ratio(1.0 / ahead))
        }),
        reached: closest.map(|(ahead, _)| ahead >= 1.0 / 1.2),
    }];
    goals.push(Goal {
        aim: "auto within 1.2 times the fastest engine in every cell".to_owned(),
        measured: worst.as_ref().map_or_else(String::new, |(lag, place)| {
            format!("{} at worst (Figure {place})", show_ratio(*lag))
        }),
        reached: worst.map(|(lag, _)| lag <= 1.2),
    });
    for (figure, cells) in measured.iter().filter(|(figure, _)| figure.x == "threads") {
        let Some(cell) = cells.iter().find(|cell| cell.x == 16) else { continue };
        let found = cell.encoding.ratio(cell.auto_there);
        let model = figure.model();
        goals.push(Goal {
            aim: format!(
                "Figure {}, {model}, 16 threads: auto 100 times as fast as plain SAT",
                figure.name
            ),
            measured: found.map_or_else(String::new, |(ratio, at_least)| {
                format!("{at_least}{}", show_ratio(ratio))
            }),
            reached: found.map(|(ratio, _)| ratio >= 100.0),
        });
    }
    goals
}
