//! Arguments of the commands about coherence protocols.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use consistory_formats::Format;
use consistory_protocol::ConstantValue;

use super::{DrawArgs, JobsArgs, OutputFormat};
use crate::units;

pub(super) const SIMULATE_HELP: &str = "\
Examples:
  consistory simulate msi.m -n 200 --count 100 | consistory check - --model sc
  consistory simulate msi.m -n 5000 --descriptor | consistory verify --descriptor -

Exit code: 0 histories written, 2 bad usage or unreadable input.";

pub(super) const VERIFY_HELP: &str = "\
A protocol is a description in Murphi. Comments say which type is data and which rules load and
store; they leave the file valid for other Murphi tools:
  --@ data Value
  --@ load proc=p block=a from=cache[p][a].data
  --@ store proc=p block=a
  --@ serialize block=a from=memory[a]     (if stores do not take effect as they happen)

Examples:
  consistory verify msi.m
  consistory verify msi.m --draw pictures
  consistory verify msi.m -D PROCS=3
  consistory verify protocols/ --format json
  consistory verify large.m --budget 1h --checkpoint large.ckpt
  consistory verify large.m --budget 1h --resume large.ckpt --checkpoint large.ckpt
  my-simulator | consistory verify --descriptor -

Exit code: 0 all proved, or with --plain nothing wrong, 1 some violation, 2 bad usage or unreadable
input, 3 some undecided and no violation, 4 nothing is proved about some input, because it has no
loads or no stores.";

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Descriptions in Murphi, folders of .m files, or - for standard input; with --descriptor
    /// recorded descriptors.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Check recorded descriptors of constraint graphs, symbol by symbol.
    #[arg(long, conflicts_with_all = ["plain", "show_tracking", "draw", "report", "checkpoint", "resume"])]
    pub(crate) descriptor: bool,
    /// Perform only the ordinary checks, with actual data: invariants, assertions, undefined
    /// values, deadlocks.
    #[arg(long)]
    pub(crate) plain: bool,
    /// Show the locations that are tracked as data and those that are ignored, without exploring.
    #[arg(long)]
    pub(crate) show_tracking: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// Time limit for each protocol, such as 30s, 10m.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = units::duration)]
    pub(crate) budget: Duration,
    /// Memory limit for the visited states, such as 512MiB.
    #[arg(long, value_name = "SIZE", default_value = "8GiB", value_parser = units::size)]
    pub(crate) memory: u64,
    /// Largest number of states to visit.
    #[arg(long, value_name = "N")]
    pub(crate) states: Option<u64>,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    /// Do not identify states that differ only by a renaming of scalarset values.
    #[arg(long)]
    pub(crate) no_symmetry: bool,
    /// Give a constant of the description another value, such as -D N=4.
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = constant)]
    pub(crate) constants: Vec<(String, ConstantValue)>,
    /// Ignore deadlocks.
    #[arg(long)]
    pub(crate) no_deadlock: bool,
    /// Keep only 64 bits of each state; the probability that a state was missed is printed.
    #[arg(long)]
    pub(crate) compaction: bool,
    /// Write a checkpoint of the search to this file about every minute, and when the budget ends
    /// or the search is interrupted.
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Continue from a checkpoint of the same protocol and options; budgets and threads may differ.
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) drawing: DrawArgs,
    /// Write an interactive report of all protocols to this file, for a browser.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// A description in Murphi whose loads and stores are marked.
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Give a constant of the description another value, such as -D N=4.
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = constant)]
    pub(crate) constants: Vec<(String, ConstantValue)>,
    /// Number of loads and stores per run.
    #[arg(long, short = 'n', default_value_t = 50)]
    pub(crate) operations: usize,
    /// Number of runs.
    #[arg(long, short, default_value_t = 1)]
    pub(crate) count: u64,
    /// Seed of the first run; each further run has the next seed.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Output format [default: hist].
    #[arg(long, value_name = "FORMAT", conflicts_with = "descriptor")]
    pub(crate) to: Option<Format>,
    /// Write the constraint graph of a run as a descriptor instead of its history.
    #[arg(long)]
    pub(crate) descriptor: bool,
    /// Output file, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Parses `NAME=VALUE`, where a value is a number or `true` or `false`.
fn constant(text: &str) -> Result<(String, ConstantValue), String> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| "expected NAME=VALUE, such as N=4".to_owned())?;
    let value = match value.trim().to_ascii_lowercase().as_str() {
        "true" => ConstantValue::Boolean(true),
        "false" => ConstantValue::Boolean(false),
        number => number
            .parse()
            .map(ConstantValue::Integer)
            .map_err(|_| format!("`{}` is not a number, `true` or `false`", value.trim()))?,
    };
    Ok((name.trim().to_owned(), value))
}
