//! The command line, as clap reads it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use consistory_formats::Format;
use consistory_generate::Memory;

use crate::units;

/// A court for histories: decides whether what a concurrent system did is what its consistency
/// model allows, and shows why.
#[derive(Debug, Parser)]
#[command(name = "consistory", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Decide whether recorded histories satisfy consistency models.
    #[command(after_help = CHECK_HELP)]
    Check(CheckArgs),
    /// Check saved verdicts of `check --format json` again, certificate by certificate.
    Certify(CertifyArgs),
    /// Convert histories between formats.
    Convert(ConvertArgs),
    /// Make histories: random clients on a simulated memory.
    Generate(GenerateArgs),
    /// Prove that every run of a coherence protocol is sequentially consistent.
    #[command(after_help = VERIFY_HELP)]
    Verify(VerifyArgs),
    /// Make histories: random runs of a coherence protocol.
    Simulate(SimulateArgs),
    /// Show the catalogue of models.
    Models(ModelsArgs),
    /// Print a script that completes this command line in a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

const CHECK_HELP: &str = "\
Examples:
  consistory check trace.hist --model cc,ccv,cm
  consistory check runs/ --model strongest
  zcat big.jsonl.gz | consistory check - --model ccv --format json
  consistory check trace.hist --model my-model.cat --shrink

Exit code: 0 all consistent, 1 some violation, 2 bad usage or unreadable input,
3 some undecided and no violation.";

const VERIFY_HELP: &str = "\
A protocol is a description in Murphi. Comments say which type is data and which rules load and
store; they leave the file valid for other Murphi tools:
  --@ data Value
  --@ load proc=p block=a from=cache[p][a].data
  --@ store proc=p block=a
  --@ serialize block=a from=memory[a]     (if stores do not take effect as they happen)

Examples:
  consistory verify msi.m
  consistory verify msi.m --draw pictures
  my-simulator | consistory verify --descriptor -

Exit code: 0 all proved, 1 some violation, 2 bad usage or unreadable input,
3 some undecided and no violation.";

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Descriptions in Murphi; with --descriptor recorded descriptors, or - for standard input.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Check recorded descriptors of constraint graphs, symbol by symbol.
    #[arg(long, conflicts_with_all = ["plain", "show_tracking", "draw"])]
    pub(crate) descriptor: bool,
    /// Only the ordinary checks, with data as it is: invariants, assertions, undefined values,
    /// deadlock.
    #[arg(long)]
    pub(crate) plain: bool,
    /// Show the locations that hold data and what is left out, and explore nothing.
    #[arg(long)]
    pub(crate) show_tracking: bool,
    /// How to print verdicts.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// How long each protocol may take, such as 30s, 10m.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = units::duration)]
    pub(crate) budget: Duration,
    /// How much memory the visited states may take, such as 512MiB.
    #[arg(long, value_name = "SIZE", default_value = "8GiB", value_parser = units::size)]
    pub(crate) memory: u64,
    /// How many states may be visited.
    #[arg(long, value_name = "N")]
    pub(crate) states: Option<u64>,
    /// How many threads work [default: one a core].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Tell states apart that differ by a renaming of scalarset values only.
    #[arg(long)]
    pub(crate) no_symmetry: bool,
    /// Keep only 64 bits of each state; the probability that a state was missed is printed.
    #[arg(long)]
    pub(crate) compaction: bool,
    /// Draw a run that goes wrong, and its history if it is not sequentially consistent, as SVG
    /// into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) draw: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// A description in Murphi whose loads and stores are marked.
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// How many loads and stores a run performs.
    #[arg(long, short = 'n', default_value_t = 50)]
    pub(crate) operations: usize,
    /// How many runs.
    #[arg(long, short, default_value_t = 1)]
    pub(crate) count: u64,
    /// The seed of the first run; the next one has the next seed.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// The format to write [default: hist].
    #[arg(long, value_name = "FORMAT", conflicts_with = "descriptor")]
    pub(crate) to: Option<Format>,
    /// Write the constraint graph of a run as a descriptor instead of its history.
    #[arg(long)]
    pub(crate) descriptor: bool,
    /// Where to write, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Files, folders, or - for standard input; plain, gzip or zstd.
    #[arg(value_name = "PATH", default_value = "-")]
    pub(crate) paths: Vec<PathBuf>,
    /// The format of the inputs, instead of detecting it: hist, jsonl, axe, dbcop, dbcop-json,
    /// plume, awdit.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Models: ids from `consistory models`, paths to definition files, `all` or `strongest`.
    #[arg(long, short, value_name = "MODEL", value_delimiter = ',', required = true)]
    pub(crate) model: Vec<String>,
    /// How to print verdicts.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// How long each history may take for each model, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub(crate) budget: Duration,
    /// How much memory the tables for one history may take, such as 512MiB.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = units::size)]
    pub(crate) memory: u64,
    /// How many threads work [default: one a core].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Reduce each violating history to one from which no operation can be taken away.
    #[arg(long)]
    pub(crate) shrink: bool,
    /// Draw each violation as SVG into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) draw: Option<PathBuf>,
    /// Write certificates that are too large to print into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) certificates: Option<PathBuf>,
    /// Do not have the independent checker accept each verdict before it is printed.
    #[arg(long)]
    pub(crate) no_certify: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    Text,
    /// One JSON object a line for each history.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct CertifyArgs {
    /// Files of verdicts as `check --format json` prints them, or - for standard input.
    #[arg(value_name = "VERDICTS", default_value = "-")]
    pub(crate) verdicts: Vec<PathBuf>,
    /// The input that was judged, if it is not where the verdicts say.
    #[arg(long, value_name = "PATH")]
    pub(crate) history: Option<PathBuf>,
    /// The format of the histories, instead of detecting it.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<Format>,
}

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
    /// How many writes a store buffer holds, or a replica may be behind another.
    #[arg(long, default_value_t = 16)]
    pub(crate) lag: u32,
    /// The seed; the same seed makes the same history.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// How many histories, with consecutive seeds.
    #[arg(long, default_value_t = 1)]
    pub(crate) count: u64,
    /// How many reads get the value of another write.
    #[arg(long, value_name = "READS", default_value_t = 0)]
    pub(crate) plant: usize,
    /// How far away that other write may be, in operations.
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
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ModelsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Show a model's definition.
    Show {
        /// The model's id, or a path to a definition file.
        model: String,
    },
    /// Show which models imply which.
    Lattice {
        /// How to show it.
        #[arg(long, value_enum, default_value_t = LatticeFormat::Text)]
        format: LatticeFormat,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LatticeFormat {
    /// For the terminal.
    Text,
    /// For Graphviz.
    Dot,
    /// As a picture.
    Svg,
}
