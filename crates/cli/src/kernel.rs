//! `consistory kernel`: the pairs that all witnesses of sequential consistency order alike, and the
//! weakest model that finds each.

use std::fmt::Write as _;
use std::time::Instant;

use consistory::{Case, pipeline};
use consistory_history::History;
use consistory_registers::{Finder, Kernel, NoKernel, Options, Tuning, kernel};
use consistory_verdict::Judgement;

use crate::args::{KernelArgs, OutputFormat};
use crate::check::{produce, refuse_terminal, worse};
use crate::error::{CliError, OK, UNDECIDED, UNREADABLE, VIOLATION, report};
use crate::limits;
use crate::output::{StandardOutput, table};
use crate::progress::progress_bar;
use crate::report::{heading, quoted};

/// The output for an item, and its contribution to the totals.
enum Done {
    Kernel {
        text: String,
        counts: Option<Counts>,
        code: u8,
    },
    Unreadable(CliError),
    /// The history could not be read within its budget.
    OutOfBudget(CliError),
}

/// The numbers of one history whose kernel is known.
struct Counts {
    pairs: u64,
    kernel: u64,
    /// Numbers of pairs found by ccv, ccm and wsc.
    found: [u64; 3],
}

const FINDERS: [&str; 3] = ["ccv", "ccm", "wsc"];

/// Finds the kernel of every history of every input, in input order.
pub(crate) fn kernels(args: &KernelArgs) -> Result<u8, CliError> {
    refuse_terminal(&args.input)?;
    let jobs = args.jobs.count();
    let mut out = StandardOutput::open()?;
    let progress = progress_bar();
    let mut totals = Totals::default();
    let mut code = OK;
    let mut broken = None;
    pipeline::run(
        jobs,
        |push| produce(&args.input, limits::reading_budget(args.budget, args.memory), push),
        |item| match item {
            Ok(Case { source, index, history, .. }) => one(args, jobs, &source, index, &history),
            Err(error) if error.is_out_of_budget() => Done::OutOfBudget(error.into()),
            Err(error) => Done::Unreadable(error.into()),
        },
        |done| {
            progress.inc(1);
            match done {
                Done::Unreadable(error) => {
                    code = worse(code, UNREADABLE);
                    progress.suspend(|| report(&error));
                }
                Done::OutOfBudget(error) => {
                    code = worse(code, UNDECIDED);
                    progress.suspend(|| report(&error));
                }
                Done::Kernel { text, counts, code: new } => {
                    code = worse(code, new);
                    totals.add(counts.as_ref(), new);
                    let written = progress.suspend(|| out.write(text.as_bytes(), args.format));
                    if let Err(error) = written {
                        broken = Some(error);
                        return false;
                    }
                }
            }
            true
        },
    );
    progress.finish_and_clear();
    if broken.is_none() && totals.histories() > 0 {
        let text = match args.format {
            OutputFormat::Text if totals.histories() == 1 => String::new(),
            OutputFormat::Text => totals.page(),
            OutputFormat::Json => totals.json(),
        };
        broken = out.write(text.as_bytes(), args.format).err();
    }
    match broken {
        Some(error) => Err(CliError::output(error)),
        None => Ok(code),
    }
}

/// Finds the kernel of one history.
fn one(args: &KernelArgs, jobs: usize, source: &str, index: u64, history: &History) -> Done {
    let budget = limits::budget(args.budget).with_memory(args.memory);
    let tuning = Tuning { engine: args.engine.into(), ..Tuning::default() };
    let options = Options { budget, jobs, tuning };
    let started = Instant::now();
    let found = kernel(history, &options);
    let millis = started.elapsed().as_secs_f64() * 1e3;
    let refuse = |reason: String, hint: &str| {
        let message = format!("{source} [{index}]: {reason}");
        Done::Unreadable(match hint {
            "" => CliError::usage(message),
            hint => CliError::with_hint(message, hint),
        })
    };
    let (code, counts) = match &found {
        Ok(Kernel { stopped: Some(_), .. }) | Err(NoKernel::Undecided(_)) => (UNDECIDED, None),
        Ok(kernel) => (OK, Some(Counts::of(kernel))),
        Err(NoKernel::Violation(_)) => (VIOLATION, None),
        Err(NoKernel::Ambiguous { read }) => {
            let read = history.reference(*read);
            return refuse(
                format!("the kernel is not defined: {read} may have read from several writes"),
                "record the history with a unique value for each write",
            );
        }
        Err(NoKernel::FinalValues) => {
            return refuse(
                "refused: there is no kernel of a history with final values".to_owned(),
                "remove the final values to compute the kernel of all store orders",
            );
        }
        Err(NoKernel::DoesNotApply(reason)) => {
            return refuse(format!("sc does not apply: {reason}"), "");
        }
    };
    let text = match args.format {
        OutputFormat::Text => page(args, source, index, history, &found),
        OutputFormat::Json => json(args, source, index, history, &found, millis),
    };
    Done::Kernel { text, counts, code }
}

impl Counts {
    fn of(kernel: &Kernel) -> Self {
        let Kernel { pairs, agreed, ccv, ccm, wsc, .. } = *kernel;
        Counts { pairs, kernel: agreed, found: [ccv, ccm, wsc] }
    }
}

/// Returns the page for people.
fn page(
    args: &KernelArgs,
    source: &str,
    index: u64,
    history: &History,
    found: &Result<Kernel, NoKernel>,
) -> String {
    let mut page = heading(source, index, history);
    match found {
        Ok(kernel) => {
            let Counts { pairs, kernel: agreed, found } = Counts::of(kernel);
            let row = |name: &str, count: u64| {
                let of = |whole: u64| percent(share(count, whole));
                vec![name.to_owned(), count.to_string(), of(pairs), of(agreed)]
            };
            let mut rows: Vec<_> =
                FINDERS.iter().zip(found).map(|(name, count)| row(name, count)).collect();
            rows.push(row("kernel", agreed));
            page += &table(&["found by", "pairs", "of all", "of the kernel"], &rows);
            let _ = write!(page, "{pairs} pairs of writes, {} witnesses found", kernel.witnesses);
            if let Some(stopped) = &kernel.stopped {
                let _ = write!(page, "; {} pairs undecided: {stopped}", kernel.open);
            }
            page.push('\n');
            if args.pairs {
                page.push('\n');
                kernel.visit(history, |first, second, finder| {
                    let (a, b) = (history.show(first), history.show(second));
                    let (ra, rb) = (history.reference(first), history.reference(second));
                    let _ = writeln!(page, "{ra} {a} before {rb} {b}  ({})", name(finder));
                });
            }
        }
        Err(NoKernel::Violation(Judgement::Violation { pattern, .. })) => {
            page +=
                &format!("It is not sequentially consistent ({pattern}), so it has no kernel.\n");
        }
        Err(NoKernel::Undecided(stopped)) => {
            page += &format!("Whether it is sequentially consistent is undecided: {stopped}.\n");
        }
        Err(_) => {}
    }
    page.push('\n');
    page
}

/// Returns the line for programs.
fn json(
    args: &KernelArgs,
    source: &str,
    index: u64,
    history: &History,
    found: &Result<Kernel, NoKernel>,
    millis: f64,
) -> String {
    let mut line = format!("{{\"source\":{},\"index\":{index}", quoted(source));
    if let Some(name) = history.name() {
        let _ = write!(line, ",\"name\":{}", quoted(name));
    }
    let (sessions, operations) = (history.session_count(), history.len());
    let _ = write!(line, ",\"sessions\":{sessions},\"operations\":{operations}");
    match found {
        Ok(kernel) => {
            let Counts { pairs, kernel: agreed, found: [ccv, ccm, wsc] } = Counts::of(kernel);
            let _ = write!(
                line,
                ",\"verdict\":\"consistent\",\"pairs\":{pairs},\"kernel\":{agreed},\"open\":{},\
                 \"found\":{{\"ccv\":{ccv},\"ccm\":{ccm},\"wsc\":{wsc}}},\"witnesses\":{}",
                kernel.open, kernel.witnesses
            );
            if let Some(stopped) = &kernel.stopped {
                let _ = write!(line, ",\"stopped\":{}", quoted(&stopped.to_string()));
            }
            if args.pairs {
                line += ",\"list\":[";
                let mut comma = "";
                kernel.visit(history, |first, second, finder| {
                    let first = quoted(&history.reference(first).to_string());
                    let second = quoted(&history.reference(second).to_string());
                    let _ = write!(line, "{comma}[{first},{second},\"{}\"]", name(finder));
                    comma = ",";
                });
                line.push(']');
            }
        }
        Err(NoKernel::Violation(Judgement::Violation { pattern, .. })) => {
            let _ =
                write!(line, ",\"verdict\":\"violation\",\"pattern\":{}", quoted(pattern.as_str()));
        }
        Err(NoKernel::Undecided(stopped)) => {
            let stopped = quoted(&stopped.to_string());
            let _ = write!(line, ",\"verdict\":\"undecided\",\"stopped\":{stopped}");
        }
        Err(_) => {}
    }
    let _ = writeln!(line, ",\"millis\":{millis:.3}}}");
    line
}

/// Returns the name of the technique that finds a pair.
fn name(finder: Finder) -> &'static str {
    match finder {
        Finder::Ccv => "ccv",
        Finder::Ccm => "ccm",
        Finder::Wsc => "wsc",
        Finder::Search => "search",
    }
}

/// Totals of all histories; averages are over those that have pairs and a known kernel.
#[derive(Default)]
struct Totals {
    violations: u64,
    undecided: u64,
    /// Number of histories whose kernel is known, with and without pairs.
    known: u64,
    without_pairs: u64,
    pairs: u64,
    kernel: u64,
    found: [u64; 3],
    /// Sums of the shares of pairs that each technique orders, the kernel last.
    ordered: [f64; 4],
    /// Number of kernels that each technique finds completely, and sum of the shares that it finds
    /// of the others.
    whole: [u64; 3],
    parts: [f64; 3],
}

impl Totals {
    fn add(&mut self, counts: Option<&Counts>, code: u8) {
        let Some(&Counts { pairs, kernel, found }) = counts else {
            match code {
                VIOLATION => self.violations += 1,
                _ => self.undecided += 1,
            }
            return;
        };
        self.known += 1;
        if pairs == 0 {
            self.without_pairs += 1;
            return;
        }
        self.pairs += pairs;
        self.kernel += kernel;
        self.ordered[3] += share(kernel, pairs);
        for (i, found) in found.into_iter().enumerate() {
            self.found[i] += found;
            self.ordered[i] += share(found, pairs);
            match found == kernel {
                true => self.whole[i] += 1,
                false => self.parts[i] += share(found, kernel),
            }
        }
    }

    fn histories(&self) -> u64 {
        self.known + self.violations + self.undecided
    }

    /// Returns for each technique, the kernel last: the share of pairs that it orders, the share of
    /// histories whose kernel it finds completely, and the share that it finds of the other
    /// kernels.
    fn averages(&self) -> [(f64, f64, f64); 4] {
        let counted = self.known - self.without_pairs;
        let mean = |sum: f64, number: u64| if number == 0 { 1.0 } else { sum / number as f64 };
        [0, 1, 2, 3].map(|i| {
            let ordered = mean(self.ordered[i], counted);
            match self.whole.get(i) {
                None => (ordered, 1.0, 1.0),
                Some(&whole) => {
                    (ordered, mean(whole as f64, counted), mean(self.parts[i], counted - whole))
                }
            }
        })
    }

    fn page(&self) -> String {
        let mut page = format!(
            "\u{1b}[1m{} histories\u{1b}[0m: {} with a kernel, {} not sequentially consistent, {} undecided\n",
            self.histories(),
            self.known,
            self.violations,
            self.undecided
        );
        if self.without_pairs == self.known {
            return page;
        }
        let names = FINDERS.into_iter().chain(["kernel"]);
        let rows: Vec<Vec<String>> = names
            .zip(self.averages())
            .map(|(name, (ordered, whole, part))| {
                let unordered = percent(1.0 - ordered);
                vec![name.to_owned(), percent(ordered), unordered, percent(whole), percent(part)]
            })
            .collect();
        let header = ["found by", "pairs", "left unordered", "whole kernel", "of the others"];
        page += &table(&header, &rows);
        page += &format!("{} pairs of writes, {} in kernels\n", self.pairs, self.kernel);
        page
    }

    fn json(&self) -> String {
        let mut line = format!(
            "{{\"totals\":{{\"histories\":{},\"known\":{},\"violations\":{},\"undecided\":{},\
             \"without_pairs\":{},\"pairs\":{},\"kernel\":{}",
            self.histories(),
            self.known,
            self.violations,
            self.undecided,
            self.without_pairs,
            self.pairs,
            self.kernel
        );
        let names = FINDERS.into_iter().chain(["sc"]);
        let found = self.found.into_iter().chain([self.kernel]);
        for ((name, found), (ordered, whole, part)) in names.zip(found).zip(self.averages()) {
            let _ = write!(
                line,
                ",\"{name}\":{{\"found\":{found},\"ordered\":{ordered:.6},\"whole\":{whole:.6},\
                 \"part\":{part:.6}}}"
            );
        }
        line + "}}\n"
    }
}

/// Returns a share; the share of an empty whole is 1.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// Formats a share as a percentage; only a share of 1 is shown as 100 %.
fn percent(share: f64) -> String {
    let rounded = format!("{:.2} %", share * 100.0);
    match share < 1.0 && rounded == "100.00 %" {
        true => "> 99.99 %".to_owned(),
        false => rounded,
    }
}
