//! What the commands that write histories take.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use consistory_formats::Format;
use consistory_generate::{Memory, SharedObject};

use super::InputArgs;
use crate::units;

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// The format to write.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Format,
    /// Where to write, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// The memory that the clients run on: sc, tso, pso, ccv, cm or broken.
    #[arg(long, short, default_value = "sc")]
    pub(crate) memory: Memory,
    /// The linearizable object that the clients call, instead of a memory: register, kv, counter,
    /// set, queue, stack, deque, priority-queue or lock.
    #[arg(
        long,
        value_name = "OBJECT",
        conflicts_with_all = ["memory", "variables", "rmws", "fences", "skew", "values", "lag"]
    )]
    pub(crate) object: Option<SharedObject>,
    /// The share of an object's calls that never return.
    #[arg(long, default_value = "0", value_parser = units::share, requires = "object", conflicts_with = "memory")]
    pub(crate) pending: f64,
    /// Write an object's calls as they happen, as events that `watch` reads.
    #[arg(long, requires = "object", conflicts_with_all = ["to", "count", "memory"])]
    pub(crate) events: bool,
    /// The share of calls that never return of which not even that is written; their sessions go on
    /// under other names.
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = units::share, requires = "events")]
    pub(crate) unannounced: f64,
    /// How many sessions.
    #[arg(long, short, default_value_t = 4)]
    pub(crate) sessions: u32,
    /// How many operations in all.
    #[arg(long, short = 'n', default_value_t = 100)]
    pub(crate) operations: u32,
    /// How many variables.
    #[arg(long, short, default_value_t = 10)]
    pub(crate) variables: u32,
    /// The share of reads.
    #[arg(long, default_value = "0.5", value_parser = units::share)]
    pub(crate) reads: f64,
    /// The share of read-modify-writes.
    #[arg(long, default_value = "0", value_parser = units::share)]
    pub(crate) rmws: f64,
    /// The share of fences.
    #[arg(long, default_value = "0", value_parser = units::share)]
    pub(crate) fences: f64,
    /// How unevenly variables are chosen: 0 alike, 1 by Zipf's law.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) skew: f64,
    /// How many values are written to a variable, again and again; 0 if every value is new.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) values: u32,
    /// How many writes a store buffer holds, or a replica may be behind another.
    #[arg(long, default_value_t = 16)]
    pub(crate) lag: u32,
    /// The seed; the same seed makes the same history.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// How many histories, with consecutive seeds.
    #[arg(long, default_value_t = 1)]
    pub(crate) count: u64,
    /// How many reads get the value of another write, or pairs of calls each other's return.
    #[arg(long, value_name = "READS", default_value_t = 0)]
    pub(crate) plant: usize,
    /// How far away that other write or call may be, in operations.
    #[arg(long, value_name = "OPERATIONS", default_value_t = 100)]
    pub(crate) distance: u32,
    /// The format to write [default: by the output's extension, or hist].
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
    /// Where to write, instead of standard output.
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
    /// Record the memory of this machine: threads on cores of their own run random programs of
    /// loads and stores, and each round is a history.
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
    /// How many threads, each kept on a core if there are enough.
    #[arg(long, short, value_name = "N", default_value_t = 2)]
    pub(crate) threads: u32,
    /// How many operations each thread does in a round.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 16)]
    pub(crate) operations: u32,
    /// How many variables.
    #[arg(long, short, value_name = "N", default_value_t = 4)]
    pub(crate) variables: u32,
    /// Let variables share cache lines, instead of having one each.
    #[arg(long)]
    pub(crate) packed: bool,
    /// The share of reads among reads and writes.
    #[arg(long, default_value = "0.5", value_parser = units::share)]
    pub(crate) reads: f64,
    /// The share of fences.
    #[arg(long, default_value = "0", value_parser = units::share)]
    pub(crate) fences: f64,
    /// The share of read-modify-writes.
    #[arg(long, default_value = "0", value_parser = units::share)]
    pub(crate) rmws: f64,
    /// How long a thread waits at most before it starts, in turns of a loop.
    #[arg(long, value_name = "TURNS", default_value_t = 64)]
    pub(crate) skew: u32,
    /// How many rounds, each of them a history.
    #[arg(long, short, value_name = "N", default_value_t = 1000)]
    pub(crate) rounds: u64,
    /// The seed of the programs.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// The format to write [default: by the output's extension, or hist].
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
    /// Where to write, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
