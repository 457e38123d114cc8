//! Redoes Figures 3.3 and 3.4 of Zennou's thesis (2021): the time of deciding CC, CCv and CM on
//! histories of random clients, by the thesis's Datalog encodings under clingo and by our deciders,
//! in one run and on the same histories.
//!
//! The thesis ran its clients on CockroachDB, whose histories were all valid, and on Galera, where
//! 1.25 % violated causal consistency. Here a simulated memory replaces CockroachDB. For Figure
//! 3.4, which adds violations, histories with a violation are measured: in each of them a read was
//! changed to return the value of another write.
//!
//! The program fails if clingo and our deciders disagree on any history, or if the independent
//! checker does not accept a certificate.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use consistory_benches::clingo::{Clingo, Limits, Outcome};
use consistory_benches::datalog::{Encoding, program};
use consistory_benches::measure::{mean, ratio, repeated, show_count, show_ratio, show_time};
use consistory_benches::publish::{Docs, Goal, Machine, goals, markdown, provenance};
use consistory_certify::certify;
use consistory_draw::{Plot, Series, line_plot, table};
use consistory_formats::{Format, write_history};
use consistory_generate::{Memory, PlantOptions, Workload, generate, plant};
use consistory_history::History;
use consistory_registers::{CausalModel, Options, Tuning, decide};
use consistory_verdict::{Certificate, Judgement, Verdict};

/// Compares the deciders with the thesis's Datalog encodings under clingo.
#[derive(Debug, Parser)]
struct Args {
    /// Number of histories per configuration that our deciders judge.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    histories: u64,
    /// Number of these histories that clingo judges too.
    #[arg(long, default_value_t = 3)]
    clingo_histories: usize,
    /// Time limit of clingo per history, in seconds; the larger ones of the same series are then
    /// skipped.
    #[arg(long, default_value = "60s", value_parser = seconds)]
    limit: Duration,
    /// Memory limit of clingo in GiB.
    #[arg(long, default_value_t = 12)]
    memory: u64,
    /// The memory on which the clients run.
    #[arg(long, default_value = "sc")]
    on: Memory,
    /// Number of variables of the clients; the thesis does not state it.
    #[arg(long, default_value_t = 10)]
    variables: u32,
    /// Numbers of operations, with 4 processes.
    #[arg(long, value_delimiter = ',', default_value = "100,200,300,400,500,600")]
    operations: Vec<u32>,
    /// Numbers of processes, with 50 operations each.
    #[arg(long, value_delimiter = ',', default_value = "2,3,4,5,6")]
    processes: Vec<u32>,
    /// Output folder, instead of docs/.
    #[arg(long)]
    docs: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches('s').parse().map_err(|_| "write it as 60s".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

/// The histories of one configuration.
struct Configuration {
    /// Value of the varied parameter.
    x: u32,
    histories: Vec<History>,
}

/// Measurements of one configuration and model.
struct Cell {
    x: u32,
    encoding: Encoding,
    clingo: ByClingo,
    decide: Duration,
    certify: Duration,
    violations: usize,
}

enum ByClingo {
    Mean(Duration),
    Over(&'static str),
    Skipped,
}

impl Cell {
    fn ours(&self) -> Duration {
        self.decide + self.certify
    }

    fn ratio(&self) -> Option<f64> {
        match self.clingo {
            ByClingo::Mean(time) => Some(ratio(time, self.ours())),
            _ => None,
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let machine = Machine::here();
    let limits = Limits { time: args.limit, memory: args.memory << 30 };
    let clingo = Clingo::find(limits).ok_or("clingo is not installed: run benches/setup first")?;
    let bench = Bench { args: &args, machine, clingo };

    let by_operations: Vec<(u32, u32, u32)> = args.operations.iter().map(|&n| (n, 4, n)).collect();
    let by_processes: Vec<(u32, u32, u32)> =
        args.processes.iter().map(|&p| (p, p, 50 * p)).collect();
    // The printed version of CCv misses violations, so its verdicts are compared only on valid
    // histories.
    let and_printed = Encoding::ALL.into_iter().chain([Encoding::PrintedCcv]);
    let and_printed: Vec<Encoding> = and_printed.collect();
    let valid = |workload| bench.valid(workload);
    let violating = |workload| bench.violating(workload);
    let operations = bench.run("operations", &by_operations, &and_printed, valid)?;
    let processes = bench.run("processes", &by_processes, &Encoding::ALL, valid)?;
    let violations = bench.run("operations", &by_operations, &Encoding::ALL, violating)?;

    let docs = Docs::new(args.docs.clone());
    docs.figure("thesis-operations.svg", &bench.plot("operations", "valid", &operations))?;
    docs.figure("thesis-processes.svg", &bench.plot("processes", "valid", &processes))?;
    docs.figure("thesis-violations.svg", &bench.plot("operations", "violating", &violations))?;
    let sections = [
        ("Figure 3.3, operations: valid histories of 4 processes", "operations", operations),
        ("Figure 3.3, processes: valid histories, 50 operations a process", "processes", processes),
        ("Figure 3.4: violating histories of 4 processes", "operations", violations),
    ];
    let intro = bench.intro()?;
    let mut report = format!("# The thesis's experiments\n\n{intro}");
    for (title, x, cells) in &sections {
        report += &format!("\n## {title}\n\n{}", markdown(&header(x), &bench.rows(cells)));
    }
    docs.figure("thesis.md", &report)?;
    let found = goals(&aims(&sections[0].2));
    println!("{found}");
    docs.refresh("thesis", &format!("{intro}\n{found}"))?;
    Ok(())
}

/// Settings of a run.
struct Bench<'a> {
    args: &'a Args,
    machine: Machine,
    clingo: Clingo,
}

impl Bench<'_> {
    /// Measures every model on every configuration: x, processes and operations.
    fn run(
        &self,
        x: &str,
        configurations: &[(u32, u32, u32)],
        encodings: &[Encoding],
        history: impl Fn(Workload) -> History,
    ) -> Result<Vec<Cell>, Box<dyn Error>> {
        let configurations: Vec<Configuration> = configurations
            .iter()
            .map(|&(x, sessions, operations)| {
                let workload = |seed| Workload {
                    sessions,
                    operations,
                    variables: self.args.variables,
                    seed,
                    ..Workload::default()
                };
                let histories = (0..self.args.histories).map(|seed| history(workload(seed)));
                Configuration { x, histories: histories.collect() }
            })
            .collect();
        let mut cells = Vec::new();
        for &encoding in encodings {
            let mut is_over = false;
            for configuration in &configurations {
                let cell = self.measure(configuration, encoding, &mut is_over)?;
                let shown = self.rows(std::slice::from_ref(&cell));
                eprintln!("{} {x}: {}", cell.x, shown[0][1..].join("  "));
                cells.push(cell);
            }
        }
        println!("{}", table(&header(x), &self.rows(&cells)));
        Ok(cells)
    }

    /// Measures one model on one configuration, including clingo unless it exceeded a limit before.
    fn measure(
        &self,
        configuration: &Configuration,
        encoding: Encoding,
        is_over: &mut bool,
    ) -> Result<Cell, Box<dyn Error>> {
        let (mut decides, mut certifies, mut by_clingo) = (Vec::new(), Vec::new(), Vec::new());
        let mut violations = 0;
        let mut outcome = is_over.then_some(ByClingo::Skipped);
        for (at, history) in configuration.histories.iter().enumerate() {
            let (judgement, time) = judge(history, encoding);
            decides.push(time);
            certifies.push(accept(history, encoding, &judgement)?);
            violations += usize::from(judgement.verdict() == Verdict::Violation);
            if at >= self.args.clingo_histories || outcome.is_some() {
                continue;
            }
            match self.clingo.run(&program(history, encoding)?)? {
                Outcome::OutOfTime => outcome = Some(ByClingo::Over("time")),
                Outcome::OutOfMemory => outcome = Some(ByClingo::Over("memory")),
                Outcome::Decided { satisfiable, time } => {
                    by_clingo.push(time);
                    if satisfiable != (judgement.verdict() == Verdict::Consistent) {
                        return Err(disagreement(history, encoding, satisfiable).into());
                    }
                }
            }
        }
        *is_over = outcome.is_some();
        Ok(Cell {
            x: configuration.x,
            encoding,
            clingo: outcome.unwrap_or_else(|| ByClingo::Mean(mean(&by_clingo))),
            decide: mean(&decides),
            certify: mean(&certifies),
            violations,
        })
    }

    fn valid(&self, workload: Workload) -> History {
        generate(&workload, self.args.on)
    }

    /// Plants wrong reads until one is a violation of CC, CCv or CM.
    fn violating(&self, workload: Workload) -> History {
        let history = self.valid(workload.clone());
        let models = [CausalModel::Cc, CausalModel::Ccv, CausalModel::Cm];
        (0..)
            .map(|attempt| {
                let seed = workload.seed + (attempt << 32);
                plant(&history, &PlantOptions { seed, ..PlantOptions::default() })
            })
            .find(|planted| {
                let judgements = decide(planted, &models, &Options::default());
                judgements.iter().any(|timed| timed.judgement.verdict() == Verdict::Violation)
            })
            .expect("attempts do not end")
    }

    fn rows(&self, cells: &[Cell]) -> Vec<Vec<String>> {
        let row = |cell: &Cell| {
            let clingo = match &cell.clingo {
                ByClingo::Mean(time) => show_time(*time),
                ByClingo::Over("memory") => format!("> {} GiB", self.args.memory),
                ByClingo::Over(_) => format!("> {} s", self.args.limit.as_secs_f64()),
                ByClingo::Skipped => "skipped".to_owned(),
            };
            vec![
                cell.x.to_string(),
                cell.encoding.as_str().to_owned(),
                clingo,
                show_time(cell.decide),
                show_time(cell.ours()),
                cell.ratio().map_or_else(String::new, show_ratio),
                format!("{} of {}", cell.violations, self.args.histories),
            ]
        };
        cells.iter().map(row).collect()
    }

    fn plot(&self, x: &str, kind: &str, cells: &[Cell]) -> String {
        let series = |name: &str, encoding, y: &dyn Fn(&Cell) -> Option<Duration>| {
            let cells = || cells.iter().filter(|cell| cell.encoding == encoding);
            let points =
                cells().filter_map(|cell| Some((f64::from(cell.x), y(cell)?.as_secs_f64())));
            let over = cells().find_map(|cell| match cell.clingo {
                ByClingo::Over(what) if name == "clingo" => Some(format!("then out of {what}")),
                _ => None,
            });
            Series {
                name: format!("{name} {}", encoding.as_str()),
                points: points.collect(),
                missing: over,
            }
        };
        let by_clingo = Encoding::ALL.map(|encoding| {
            series("clingo", encoding, &|cell| match cell.clingo {
                ByClingo::Mean(time) => Some(time),
                _ => None,
            })
        });
        let ours =
            Encoding::ALL.map(|encoding| series("consistory", encoding, &|cell| Some(cell.ours())));
        let note = if x == "processes" { "50 operations a process" } else { "4 processes" };
        line_plot(&Plot {
            title: format!("Deciding {kind} histories by the number of {x} ({note})"),
            x_label: x.to_owned(),
            y_label: "seconds a history".to_owned(),
            log_x: false,
            log_y: true,
            series: by_clingo.into_iter().chain(ours).collect(),
        })
    }

    fn intro(&self) -> Result<String, Box<dyn Error>> {
        let Args { histories, clingo_histories, variables, on, .. } = self.args;
        Ok(format!(
            "{}\nThe clients use {variables} variables on the `{on}` memory. Times are means per \
             history: ours over {histories} histories of each configuration, those of {} over the \
             first {clingo_histories} of them, on which all verdicts agree. clingo's time is the \
             one it reports itself (reading, grounding and solving the program). Ours is that of \
             one thread, from the history in memory to the verdict and its certificate, and, where \
             it says so, on to the certificate's acceptance by the independent checker; the ratio \
             is clingo's time to the latter.\n",
            provenance("thesis", &self.machine),
            self.clingo.version()?,
        ))
    }
}

fn header(x: &str) -> [&str; 7] {
    [x, "model", "clingo", "decide", "decide and certify", "ratio", "violations"]
}

/// Decides by our decider.
fn judge(history: &History, encoding: Encoding) -> (Judgement<Certificate>, Duration) {
    let (model, scope) = encoding.model();
    let options = Options::tuned(Tuning { scope, ..Tuning::default() });
    let (mut timed, time) = repeated(|| decide(history, &[model], &options));
    (timed.remove(0).judgement, time)
}

/// Checks the judgement with the independent checker, and returns the time.
fn accept(
    history: &History,
    encoding: Encoding,
    judgement: &Judgement<Certificate>,
) -> Result<Duration, Box<dyn Error>> {
    let model = match encoding {
        Encoding::Cc => "cc",
        Encoding::Ccv | Encoding::PrintedCcv => "ccv",
        Encoding::Cm1 | Encoding::Cm2 => "cm",
    };
    let certificate = judgement.certificate().ok_or("a decider did not decide")?;
    let (accepted, time) = repeated(|| certify(history, model, judgement.verdict(), certificate));
    accepted?;
    Ok(time)
}

fn disagreement(history: &History, encoding: Encoding, satisfiable: bool) -> String {
    let mut text = Vec::new();
    // These clients do not generate histories that cannot be written.
    let _ = write_history(history, Format::Hist, &mut text);
    let verdict = if satisfiable { "consistent" } else { "a violation" };
    let text = String::from_utf8_lossy(&text);
    format!("{}: clingo finds it {verdict}, we do not:\n{text}", encoding.as_str())
}

/// Compares the largest configuration with the goals.
fn aims(cells: &[Cell]) -> Vec<Goal> {
    let largest = |encoding| cells.iter().rfind(|cell| cell.encoding == encoding);
    let (Some(cc), Some(cm1), Some(cm2)) =
        (largest(Encoding::Cc), largest(Encoding::Cm1), largest(Encoding::Cm2))
    else {
        return Vec::new();
    };
    let operations = show_count(cc.x.into());
    let datalog_cc = match cc.clingo {
        ByClingo::Mean(time) => Some(time),
        _ => None,
    };
    let no_slower = |cell: &Cell| Goal {
        aim: format!(
            "{operations} operations: our {} no slower than the Datalog's CC",
            cell.encoding.as_str()
        ),
        measured: format!(
            "{} to {}",
            show_time(cell.ours()),
            datalog_cc.map_or_else(|| "none".to_owned(), show_time)
        ),
        reached: datalog_cc.map(|time| cell.ours() <= time),
    };
    vec![
        Goal {
            aim: format!("{operations} operations: CC 1,000 times as fast as the Datalog encoding"),
            measured: cc.ratio().map_or_else(|| "none".to_owned(), show_ratio),
            reached: cc.ratio().map(|ratio| ratio >= 1_000.0),
        },
        no_slower(cm2),
        no_slower(cm1),
    ]
}
