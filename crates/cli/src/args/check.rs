//! Arguments of the commands that judge recorded histories.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use consistory::ClientOrder;
use consistory_formats::Format;
use consistory_registers::Engine;

use super::{DrawArgs, JobsArgs, OutputFormat, PartArgs, VerbosityArgs};
use crate::units;

pub(super) const CHECK_HELP: &str = "\
Examples:
  consistory check trace.hist --model cc,ccv,cm
  consistory check runs/
  zcat big.jsonl.gz | consistory check - --model ccv --format json
  consistory check trace.hist --model my-model.cat --shrink
  consistory check transactions.hist --model si,ser --order realtime
  consistory check transactions.hist --anomalies
  consistory check calls.jsonl --object map --model linearizability --draw pictures
  consistory check calls.jsonl --object map --axioms 'vis >= po; vis >= vis ; vis'

Exit code: 0 all consistent, 1 some violation, 2 bad usage or unreadable input,
3 some undecided and no violation.";

pub(super) const KERNEL_HELP: &str = "\
For each history that is sequentially consistent: how many pairs of writes of one
variable there are, how many of them every witnessing store order puts in the same order
(the kernel), and how many of these the rules of ccv, ccm and wsc find. Then the same for
all histories together, on average.

Examples:
  consistory kernel trace.hist --pairs
  consistory generate --count 200 --operations 200 | consistory kernel -

Exit code: 0 all kernels are known, 1 some history is not sequentially consistent,
2 bad usage or unreadable input, 3 some kernel is not known and nothing is a violation.";

pub(super) const CERTIFY_HELP: &str = "\
Examples:
  consistory check runs/ --model sc --format json > verdicts.jsonl
  consistory certify verdicts.jsonl

Exit code: 0 all certificates accepted, 1 some rejected, 2 bad usage or unreadable input,
3 nothing was checked, or a budget ran out.";

#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Files, folders, or - for standard input; plain, gzip or zstd.
    #[arg(value_name = "PATH", default_value = "-")]
    pub(crate) paths: Vec<PathBuf>,
    /// The format of the inputs, instead of detecting it: hist, jsonl, axe, dbcop, dbcop-json,
    /// plume, awdit, edn, jepsen-json, jepsen, limo, fastlin, fptlin, dbcop-binary, cobra, viper,
    /// timekiller, gem5.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Continue an interrupted batch: histories with a line in this file are not judged again, and
    /// new lines are appended to it. Needs `--format json`.
    #[arg(long, value_name = "OUT", conflicts_with = "part")]
    pub(crate) resume: Option<PathBuf>,
    /// Judge only the history with this index in each input, counted from 0.
    #[arg(long, value_name = "N", conflicts_with_all = ["anomalies", "infer_levels"])]
    pub(crate) index: Option<u64>,
    /// Models: ids from `consistory models`, in any case, paths to definition files, `all`, or
    /// `strongest` (the default).
    #[arg(long, short, value_name = "MODEL", value_delimiter = ',')]
    pub(crate) model: Vec<String>,
    /// Order between transactions that isolation levels must respect.
    #[arg(long, value_enum, default_value_t = OrderName::Session)]
    pub(crate) order: OrderName,
    /// List the classes of anomalies found in histories of transactions, with an example each.
    #[arg(long, conflicts_with_all = ["model", "object", "shrink", "draw"])]
    pub(crate) anomalies: bool,
    #[command(flatten)]
    pub(crate) objects: ObjectArgs,
    /// Output format.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// Time limit for each history and model, such as 500ms, 30s, 5m; reading the history counts.
    /// Processor time counts; on a loaded machine the clock may show up to four times as much.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub(crate) budget: Duration,
    /// Memory limit for judging one history, such as 512MiB; reading it may use half as much. With
    /// `--jobs N`, up to N histories are judged at a time, and each may use this amount.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = units::size)]
    pub(crate) memory: u64,
    /// Engine that completes SC, TSO and PSO if the forced order leaves writes unordered.
    #[arg(long, value_enum, default_value_t = EngineName::Auto)]
    pub(crate) engine: EngineName,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    /// Reduce each violating history to one from which no operation can be removed.
    #[arg(long)]
    pub(crate) shrink: bool,
    #[command(flatten)]
    pub(crate) drawing: DrawArgs,
    /// Write an interactive report of all histories to this file, for a browser.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Write certificates that are too large to print into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) certificates: Option<PathBuf>,
    /// Skip the independent checker, which otherwise must accept each verdict before it is printed.
    #[arg(long)]
    pub(crate) no_certify: bool,
    #[command(flatten)]
    pub(crate) verbosity: VerbosityArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
}

#[derive(Debug, Args)]
pub(crate) struct KernelArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// List the pairs of each kernel, with the weakest model whose rules find it.
    #[arg(long)]
    pub(crate) pairs: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// Time limit for each history, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub(crate) budget: Duration,
    /// Memory limit for the tables of one history, such as 512MiB.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = units::size)]
    pub(crate) memory: u64,
    /// Engine that searches for witnesses.
    #[arg(long, value_enum, default_value_t = EngineName::Auto)]
    pub(crate) engine: EngineName,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

/// Order that the clients of transactions observed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OrderName {
    /// No order: the plain levels of Adya.
    None,
    /// The order of each session.
    Session,
    /// The order of each session and real time: a transaction that ends before another one starts
    /// comes before it.
    Realtime,
}

impl From<OrderName> for ClientOrder {
    fn from(name: OrderName) -> Self {
        match name {
            OrderName::None => ClientOrder::None,
            OrderName::Session => ClientOrder::Session,
            OrderName::Realtime => ClientOrder::Realtime,
        }
    }
}

/// Engine that orders the writes that saturation leaves unordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum EngineName {
    /// All engines in parallel; the first answer counts.
    Auto,
    /// Case split: both orders of two unordered writes are tried.
    Split,
    /// Frontier search: a state is the number of completed operations of each session; a refutation
    /// is then written as a case split.
    Frontier,
    /// A SAT solver that learns from contradictions; a refutation is then written as a case split.
    Sat,
}

impl From<EngineName> for Engine {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Auto => Engine::Auto,
            EngineName::Split => Engine::Split,
            EngineName::Frontier => Engine::Frontier,
            EngineName::Sat => Engine::Sat,
        }
    }
}

/// Arguments for histories of an object's calls.
#[derive(Debug, Args)]
#[command(next_help_heading = "Objects")]
pub(crate) struct ObjectArgs {
    /// Object whose calls the histories contain: register, cas-register, counter, map, kv, set,
    /// list, queue, stack, deque, priority-queue, lock, log, transactions or bank, some with a
    /// parameter as in `register(0)`; one of them per key, as in `keyed(set)`; or a path to an
    /// object file [default: the object that a line
    /// `# object: NAME` in the file names, or the only one that fits every call].
    #[arg(long, value_name = "OBJECT")]
    pub(crate) object: Option<String>,
    /// A model of axioms, such as "vis >= po; vis >= vis ; vis".
    #[arg(long, value_name = "AXIOMS", requires = "object")]
    pub(crate) axioms: Vec<String>,
    /// A model in which methods have visibility levels (weak, self, monotonic, peer, causal,
    /// complete), such as "size=weak,get=monotonic"; the other methods are complete.
    #[arg(long, value_name = "LEVELS", requires = "object")]
    pub(crate) levels: Option<String>,
    /// Report the strongest visibility level that each method kept in all the histories.
    #[arg(long, requires = "object", conflicts_with_all = ["model", "axioms", "levels"])]
    pub(crate) infer_levels: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CertifyArgs {
    /// Files of verdicts as `check --format json` prints them, or - for standard input.
    #[arg(value_name = "VERDICTS", default_value = "-")]
    pub(crate) verdicts: Vec<PathBuf>,
    /// Path of the judged input, if it differs from the path in the verdicts.
    #[arg(long, value_name = "PATH")]
    pub(crate) history: Option<PathBuf>,
    /// The format of the histories, instead of detecting it.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<Format>,
    /// Time limit for checking each verdict and for reading each history, such as 500ms, 30s.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = units::duration)]
    pub(crate) budget: Duration,
    /// Memory limit for checking a verdict, such as 512MiB; reading a history may use half as much.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = units::size)]
    pub(crate) memory: u64,
}
