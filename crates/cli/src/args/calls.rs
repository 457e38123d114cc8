//! What the commands that judge an object's calls as they happen take.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::OutputFormat;
use crate::units;

pub(super) const WATCH_HELP: &str = "\
A line is an event: {\"type\":\"invoke\",\"session\":\"t0\",\"call\":\"enqueue\",\"args\":[1]}, then
{\"type\":\"ok\",\"session\":\"t0\",\"returns\":null}, or \"fail\" or \"info\" in place of \"ok\". Or it is a call
with its \"start\" and \"end\", in the order of the ends.

Examples:
  my-test | consistory watch --object queue
  consistory watch events.jsonl --follow --object register
  consistory watch --listen 127.0.0.1:7000 --object kv

Exit code: 0 consistent, 1 a violation, 2 bad usage or unreadable input, 3 undecided.";

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The file to read, or - for standard input.
    #[arg(value_name = "PATH", default_value = "-")]
    pub(crate) path: PathBuf,
    /// The object that is called, as for `check`.
    #[arg(long, value_name = "OBJECT")]
    pub(crate) object: String,
    /// Wait for more at the end of the file.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Take lines from connections to HOST:PORT, or to a Unix socket at a path with a slash.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["path", "follow"])]
    pub(crate) listen: Option<String>,
    /// Stop following or listening when nothing has come for so long, such as 30s.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) until_idle: Option<Duration>,
    /// How many possible configurations are kept at most.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) configurations: usize,
    /// How many different calls that nobody knows the end of are kept of each key, or of the whole
    /// object; then the first ones are given up: they have taken effect by then, or never do.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) pending: usize,
    /// How many others may return while a call is running before it counts as one that nobody knows
    /// the end of.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) overdue: u64,
    /// Judge the object as a whole, for methods that concern more than one key.
    #[arg(long)]
    pub(crate) whole: bool,
    /// How many calls that have a start and an end wait for one that ends later but started
    /// before.
    #[arg(long, value_name = "CALLS", default_value_t = 1000)]
    pub(crate) window: usize,
    /// How to print what was found.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
}

pub(super) const TEST_HELP: &str = "\
A target is jdk: and a class of java.util.concurrent, such as jdk:ConcurrentHashMap; it needs a JDK,
from JAVA_HOME or the search path. Or it is rust: and a collection, such as rust:dashmap::DashMap, if
this was built with the feature `collections`.

Examples:
  consistory test jdk:ConcurrentSkipListMap --without putAll,clear
  consistory test jdk:ConcurrentLinkedDeque --methods addFirst,addLast,pollLast,peekFirst --threads 2
  consistory test jdk:ConcurrentHashMap --model levels --time 1m
  consistory test jdk:ConcurrentHashMap --levels 'size=weak,isEmpty=weak,containsValue=monotonic'
  consistory test rust:crossbeam-skiplist::SkipMap --methods set,get,remove --threads 2 --calls 3

Exit code: 0 nothing wrong was seen, 1 some violation, 2 bad usage or it could not be run,
3 some undecided and no violation.";

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// What to test.
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// The methods to call [default: all].
    #[arg(long, value_name = "METHODS", value_delimiter = ',')]
    pub(crate) methods: Vec<String>,
    /// Methods not to call.
    #[arg(long, value_name = "METHODS", value_delimiter = ',', conflicts_with = "methods")]
    pub(crate) without: Vec<String>,
    /// A model of objects, or `levels` to ask only which level each method keeps.
    #[arg(long, value_name = "MODEL", default_value = "linearizability")]
    pub(crate) model: String,
    /// Judge by visibility levels, such as "size=weak,keySet=monotonic"; other methods see all.
    #[arg(long, value_name = "LEVELS", conflicts_with = "model")]
    pub(crate) levels: Option<String>,
    /// How many threads.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) threads: u8,
    /// How many calls each thread makes.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub(crate) calls: u8,
    /// How many different keys.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keys: u32,
    /// How many times each program is run.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: u64,
    /// How long to look; shrinking what was found comes on top.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::duration)]
    pub(crate) time: Duration,
    /// How many runs at most.
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u64>,
    /// Stop after so many different violations.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) failures: usize,
    /// The seed of the programs; what the threads do it does not decide.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// How to tell which calls came before which.
    #[arg(long, value_enum, default_value_t = TestClock::Counters)]
    pub(crate) clock: TestClock,
    /// Draw what is wrong as SVG files in this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) draw: Option<PathBuf>,
    /// How to print what was found.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TestClock {
    /// A counter of each thread, which the others read before each call: interferes least.
    Counters,
    /// The system's clock, before and after each call.
    Plain,
}
