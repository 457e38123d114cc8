//! Arguments of `consistory watch` and `consistory test`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::check::OrderName;
use super::{DrawArgs, OutputFormat, PartArgs};
use crate::units;

pub(super) const WATCH_HELP: &str = "\
A line is an event: {\"type\":\"invoke\",\"session\":\"t0\",\"call\":\"enqueue\",\"args\":[1]}, then
{\"type\":\"ok\",\"session\":\"t0\",\"returns\":null}, or \"fail\" or \"info\" in place of \"ok\". Or it is a call
with its \"start\" and \"end\", in the order of the ends.

With `--object`, `--model` names models of objects, such as causal-convergence; all of them are `all`.
Each model is reported at the return at which the calls stop satisfying it.

Without `--object`, isolation levels of transactions on registers and lists are judged: a line is an
operation of a transaction as in JSON lines, or a call of `txn`. Each level is reported at the
transaction that first violates it. The latest transactions are kept, and of the older ones those
that hold the current version of a key; a contradiction between transactions that are farther apart
than `--window` is found offline only, with `check`.

Examples:
  my-test | consistory watch --object queue
  consistory watch events.jsonl --follow --object register
  consistory watch --listen 127.0.0.1:7000 --object kv
  consistory watch events.jsonl --object map --model causal-convergence,monotonic-reads
  consistory watch history.jsonl --follow --model rc,ra,tcc,si,ser

Exit code: 0 consistent, 1 a violation, 2 bad usage or unreadable input, 3 undecided.";

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The file to read, or - for standard input.
    #[arg(value_name = "PATH", default_value = "-")]
    pub(crate) path: PathBuf,
    /// Object whose methods are called, as for `check`.
    #[arg(long, value_name = "OBJECT", required_unless_present = "model")]
    pub(crate) object: Option<String>,
    /// With an object, models of objects [default: linearizability]; otherwise isolation levels of
    /// transactions: rc, ra, tcc, pc, psi, si or ser.
    #[arg(long, short, value_name = "MODEL", value_delimiter = ',')]
    pub(crate) model: Vec<String>,
    /// Order between transactions that isolation levels must respect.
    #[arg(long, value_enum, default_value_t = OrderName::Session)]
    pub(crate) order: OrderName,
    /// Wait for further input at the end of the file.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Accept lines from connections to HOST:PORT, or to a Unix socket at a path with a slash.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["path", "follow"])]
    pub(crate) listen: Option<String>,
    /// Stop following or listening after this time without input, such as 30s.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) until_idle: Option<Duration>,
    /// Largest number of configurations kept; for weak models, of configurations and states.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) configurations: usize,
    /// Number of calls beyond which a weak model's oldest calls are forgotten.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = kept_calls)]
    pub(crate) kept: usize,
    /// Largest number of different indeterminate calls kept for each key, or for the whole object.
    /// Beyond it the oldest ones are given up: they are assumed to have taken effect by then, or
    /// never to.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) pending: usize,
    /// Number of other calls that may return while a call is running before it counts as indeterminate.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) overdue: u64,
    /// Judge the object as a whole, for methods that concern more than one key.
    #[arg(long)]
    pub(crate) whole: bool,
    /// Number of completed calls that are held back because a call that started earlier may end
    /// later [default: 1000]; for isolation levels, number of transactions that are kept [default:
    /// 10000].
    #[arg(long, value_name = "N")]
    pub(crate) window: Option<usize>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
}

/// Parses a number of kept calls: the search for an explanation supports twice as many.
fn kept_calls(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(calls @ 1..=2048) => Ok(calls),
        _ => Err("expected a number from 1 to 2048".to_owned()),
    }
}

pub(super) const TEST_HELP: &str = "\
A target is a database: sqlite, redis, etcd, postgres, mariadb or galera; `--list` shows which are
installed. Its nodes run in namespaces of their own, with root's rights or in user namespaces, and
nothing is left behind. Clients run a workload while faults happen; what they saw is recorded in
DIR/history.jsonl, judged, and shown in DIR/report.html. `--command` tests a system of your own.

Or a target is jdk: and a class of java.util.concurrent, such as jdk:ConcurrentHashMap; it needs a
JDK, from JAVA_HOME or the search path. Or it is rust: and a collection, such as
rust:dashmap::DashMap, if this was built with the feature `collections`.

Examples:
  consistory test sqlite
  consistory test redis --faults partition --time 20s
  consistory test etcd --set reads=serializable --faults partition,kill,pause
  consistory test postgres --set level=read-committed --workload list-append --model ser
  consistory test galera --workload set --faults kill-all --set flush=0
  consistory test --command ./client.py --system ./cluster.sh --nodes n1,n2,n3 --faults kill
  consistory test jdk:ConcurrentSkipListMap --without putAll,clear
  consistory test jdk:ConcurrentHashMap --model levels --time 1m
  consistory test jdk:ConcurrentHashMap --levels 'size=weak,isEmpty=weak,containsValue=monotonic'
  consistory test rust:crossbeam-skiplist::SkipMap --methods set,get,remove --threads 2 --calls 3

Exit code: 0 nothing wrong was seen, 1 some violation, 2 bad usage or it could not be run,
3 some undecided and no violation.";

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Database or collection to test.
    #[arg(value_name = "TARGET", required_unless_present_any = ["list", "command"], conflicts_with_all = ["list", "command"])]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) database: DatabaseArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// The methods to call [default: all].
    #[arg(long, value_name = "METHODS", value_delimiter = ',')]
    pub(crate) methods: Vec<String>,
    /// Methods not to call.
    #[arg(long, value_name = "METHODS", value_delimiter = ',', conflicts_with = "methods")]
    pub(crate) without: Vec<String>,
    /// Models that must hold [default: those that the system promises]; for collections a model of
    /// objects, or `levels` to infer the level that each method keeps [default: linearizability].
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Visibility levels of methods, such as "size=weak,keySet=monotonic"; other methods see all
    /// calls.
    #[arg(long, value_name = "LEVELS", conflicts_with = "model")]
    pub(crate) levels: Option<String>,
    /// Number of threads.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) threads: u8,
    /// Number of calls per thread.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub(crate) calls: u8,
    /// Number of keys in use at a time [default: 3, for collections 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keys: Option<u32>,
    /// Number of runs of each program.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: u64,
    /// Time for finding failures; shrinking takes additional time.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::duration)]
    pub(crate) time: Duration,
    /// Largest number of runs of all parts together.
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u64>,
    /// Stop after this number of different violations.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) failures: usize,
    /// Seed of the programs and of the faults; it does not determine the timing of threads and
    /// nodes.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Clock that records the order of calls.
    #[arg(long, value_enum, default_value_t = TestClock::Counters)]
    pub(crate) clock: TestClock,
    #[command(flatten)]
    pub(crate) drawing: DrawArgs,
    /// Write an interactive report to this file, for a browser [default for databases:
    /// DIR/report.html].
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Databases")]
pub(crate) struct DatabaseArgs {
    /// List the databases, their settings, and what is installed.
    #[arg(long)]
    pub(crate) list: bool,
    /// Faults to inject, such as partition,kill or partition+slow; + joins faults that happen
    /// together.
    #[arg(long, value_name = "FAULTS", default_value = "none")]
    pub(crate) faults: String,
    /// Workload of the clients: register, rw-register, list-append, rmw, set, cas-register, queue,
    /// bank or long-fork.
    #[arg(long, value_name = "WORKLOAD", default_value = "register")]
    pub(crate) workload: String,
    /// A setting of the database; may be given more than once.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Number of clients.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) clients: u32,
    /// Total number of requests per second; 0 for as many as possible.
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) rate: u32,
    /// Number of requests after which each client stops, unless the time is over before.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) operations: Option<u32>,
    /// Time after which the outcome of a request counts as unknown.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    pub(crate) timeout: Duration,
    /// Extent of a session: all requests of a client, or the requests over one connection.
    #[arg(long, value_enum, default_value_t = TestSession::Client)]
    pub(crate) session: TestSession,
    /// Let clients choose a random node for every request, instead of staying on one.
    #[arg(long = "move")]
    pub(crate) moves: bool,
    /// Continue after a violation until the time is over.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Inject the faults listed in this file, such as the faults.jsonl of another run.
    #[arg(long, value_name = "FILE", conflicts_with = "faults")]
    pub(crate) schedule: Option<PathBuf>,
    /// After a violation, repeat the run this number of times, with fewer faults and clients, and
    /// count the runs with a violation.
    #[arg(long, value_name = "N")]
    pub(crate) reproduce: Option<u32>,
    /// Folder for the history, the log of faults and the report [default: a new one in runs/].
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Test another system: the program that acts as a client and exchanges JSON lines.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) command: Option<String>,
    /// Script that starts and stops the nodes of another system.
    #[arg(long, value_name = "SCRIPT", requires = "command")]
    pub(crate) system: Option<PathBuf>,
    /// Nodes of another system.
    #[arg(long, value_name = "NODES", value_delimiter = ',', requires = "command")]
    pub(crate) nodes: Vec<String>,
    /// Internal: the program has started itself in its own namespaces.
    #[arg(long, hide = true)]
    pub(crate) isolated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TestSession {
    /// All requests of a client; a request with unknown outcome gets a session of its own.
    Client,
    /// The requests of a client over one connection.
    Connection,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TestClock {
    /// One counter per thread, which the other threads read before each call: interferes least.
    Counters,
    /// The system's clock, before and after each call.
    Plain,
}
