//! The command line, as clap reads it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use consistory_formats::Format;
use consistory_generate::{Memory, SharedObject};

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
    /// Make histories: random clients on a simulated memory or object.
    Generate(GenerateArgs),
    /// Judge an object's calls as they come, and stop at the first that nothing explains.
    #[command(after_help = WATCH_HELP)]
    Watch(WatchArgs),
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
  consistory check calls.jsonl --object map --model linearizability --draw pictures
  consistory check calls.jsonl --object map --axioms 'vis >= po; vis >= vis ; vis'

Exit code: 0 all consistent, 1 some violation, 2 bad usage or unreadable input,
3 some undecided and no violation.";

const WATCH_HELP: &str = "\
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

#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Files, folders, or - for standard input; plain, gzip or zstd.
    #[arg(value_name = "PATH", default_value = "-")]
    pub(crate) paths: Vec<PathBuf>,
    /// The format of the inputs, instead of detecting it: hist, jsonl, axe, dbcop, dbcop-json,
    /// plume, awdit, edn, jepsen, limo, fastlin, fptlin.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Models: ids from `consistory models`, paths to definition files, `all` or `strongest`.
    #[arg(
        long,
        short,
        value_name = "MODEL",
        value_delimiter = ',',
        required_unless_present_any = ["axioms", "levels", "infer_levels"]
    )]
    pub(crate) model: Vec<String>,
    #[command(flatten)]
    pub(crate) objects: ObjectArgs,
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

/// What `check` takes for histories of an object's calls.
#[derive(Debug, Args)]
#[command(next_help_heading = "Objects")]
pub(crate) struct ObjectArgs {
    /// The object that the histories are calls of: register, cas-register, counter, map, kv, set,
    /// queue, stack, deque, priority-queue, lock, log or transactions, some with a parameter as in
    /// `register(0)`; or a path to an object file.
    #[arg(long, value_name = "OBJECT")]
    pub(crate) object: Option<String>,
    /// A model of axioms, such as "vis >= po; vis >= vis ; vis".
    #[arg(long, value_name = "AXIOMS", requires = "object")]
    pub(crate) axioms: Vec<String>,
    /// A model in which methods have visibility levels of their own (weak, self, monotonic, peer,
    /// causal, complete), such as "size=weak,get=monotonic"; the other methods are complete.
    #[arg(long, value_name = "LEVELS", requires = "object")]
    pub(crate) levels: Option<String>,
    /// Report the strongest visibility level that each method kept in all the histories.
    #[arg(long, requires = "object", conflicts_with_all = ["model", "axioms", "levels"])]
    pub(crate) infer_levels: bool,
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
    /// The linearizable object that the clients call, instead of a memory: register, set, queue,
    /// stack or priority-queue.
    #[arg(
        long,
        value_name = "OBJECT",
        conflicts_with_all = ["memory", "variables", "rmws", "fences", "skew", "lag"]
    )]
    pub(crate) object: Option<SharedObject>,
    /// The share of an object's calls that never return.
    #[arg(long, default_value = "0", value_parser = units::share, requires = "object")]
    pub(crate) pending: f64,
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
