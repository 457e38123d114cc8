//! Arguments of the commands that write histories.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use consistory_formats::Format;

use super::{InputArgs, OutputFormat};
use crate::units;

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Output format.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Format,
    /// Leave out times, for formats without times. Failed operations and indeterminate reads are
    /// left out too, and an indeterminate write that ends its session counts as completed.
    #[arg(long)]
    pub(crate) without_times: bool,
    /// Memory limit for reading a history, such as 512MiB.
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = units::size)]
    pub(crate) memory: u64,
    /// Output file, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    #[command(subcommand)]
    pub(crate) command: RecordCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RecordCommand {
    /// Record the memory of this machine: threads pinned to cores run random programs of loads and
    /// stores, and each round is a history.
    #[command(after_help = RECORD_CPU_HELP)]
    Cpu(RecordCpuArgs),
}

pub(super) const RECORD_CPU_HELP: &str = "\
Examples:
  consistory record cpu --rounds 10000 | consistory check - --model sc,tso --format json
  consistory record cpu --threads 4 --operations 1000 --variables 64 -o run.jsonl

The seed decides the programs; what the reads find is up to the machine.

Exit code: 0 recorded, 2 bad usage.";

#[derive(Debug, Args)]
pub(crate) struct RecordCpuArgs {
    /// Number of threads, each pinned to a core if there are enough.
    #[arg(long, short, value_name = "N", default_value_t = 2)]
    pub(crate) threads: u32,
    /// Number of operations per thread and round.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 16)]
    pub(crate) operations: u32,
    /// Number of variables.
    #[arg(long, short, value_name = "N", default_value_t = 4)]
    pub(crate) variables: u32,
    /// Let variables share cache lines, instead of giving each its own.
    #[arg(long)]
    pub(crate) packed: bool,
    /// Share of reads among reads and writes.
    #[arg(long, default_value = "0.5", value_parser = units::share)]
    pub(crate) reads: f64,
    /// Share of fences.
    #[arg(long, default_value = "0", value_parser = units::share)]
    pub(crate) fences: f64,
    /// Share of read-modify-writes.
    #[arg(long, default_value = "0", value_parser = units::share)]
    pub(crate) rmws: f64,
    /// Longest delay before a thread starts, in iterations of a loop.
    #[arg(long, value_name = "TURNS", default_value_t = 64)]
    pub(crate) skew: u32,
    /// Number of rounds, each of which is a history.
    #[arg(long, short, value_name = "N", default_value_t = 1000)]
    pub(crate) rounds: u64,
    /// Seed of the programs.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Output format [default: by the output's extension, or hist].
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
    /// Output file, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

pub(super) const MERGE_HELP: &str = "\
Every part must be there once, complete, and of the same run: the same command with the same inputs
and options, apart from --part and --jobs.

Examples:
  seq 8 | parallel consistory check runs/ --model sc --format json --part {}/8 '>' part-{}.jsonl
  consistory merge part-*.jsonl --output verdicts.jsonl

Exit code: that of the whole run; 2 if a part is missing, incomplete, given twice or of another run.";

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Outputs of all parts.
    #[arg(value_name = "PART", required = true)]
    pub(crate) parts: Vec<PathBuf>,
    /// Write the lines of the whole run, in its order, to this file.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print tables, or the lines of the whole run.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
}
