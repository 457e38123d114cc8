//! The command line, as clap reads it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use consistory_check::Engine;
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
    #[command(after_help = CERTIFY_HELP)]
    Certify(CertifyArgs),
    /// Convert histories between formats.
    Convert(ConvertArgs),
    /// Make histories: random clients on a simulated memory or object.
    Generate(GenerateArgs),
    /// Record what a real system does.
    Record(RecordArgs),
    /// Run litmus tests under memory models, and find what tells two models apart.
    Litmus(LitmusArgs),
    /// Judge an object's calls as they come, and stop at the first that nothing explains.
    #[command(after_help = WATCH_HELP)]
    Watch(WatchArgs),
    /// Run random client programs of a real collection, and judge and shrink what they did.
    #[command(after_help = TEST_HELP)]
    Test(TestArgs),
    /// Prove that every run of a coherence protocol is sequentially consistent.
    #[command(after_help = VERIFY_HELP)]
    Verify(VerifyArgs),
    /// Make histories: random runs of a coherence protocol.
    #[command(after_help = SIMULATE_HELP)]
    Simulate(SimulateArgs),
    /// Show the catalogue of models.
    Models(ModelsArgs),
    /// Find smallest histories that one model allows and another forbids.
    #[command(after_help = CONTRAST_HELP)]
    Contrast(ContrastArgs),
    /// Contrast all pairs of the catalogue.
    #[command(after_help = ATLAS_HELP)]
    Atlas(AtlasArgs),
    /// Find the pairs of writes that every witness of sequential consistency agrees on.
    #[command(after_help = KERNEL_HELP)]
    Kernel(KernelArgs),
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

const KERNEL_HELP: &str = "\
For each history that is sequentially consistent: how many pairs of writes of one
variable there are, how many of them every witnessing store order has the same way round
(the kernel), and how many of these the rules of ccv, ccm and wsc find. Then the same for
all histories together, on average.

Examples:
  consistory kernel trace.hist --pairs
  consistory generate --count 200 --operations 200 | consistory kernel -

Exit code: 0 all kernels are known, 1 some history is not sequentially consistent,
2 bad usage or unreadable input, 3 some kernel is not known and nothing is a violation.";

const CERTIFY_HELP: &str = "\
Examples:
  consistory check runs/ --model sc --format json > verdicts.jsonl
  consistory certify verdicts.jsonl

Exit code: 0 all certificates accepted, 1 some rejected, 2 bad usage or unreadable input.";

const SIMULATE_HELP: &str = "\
Examples:
  consistory simulate msi.m -n 200 --count 100 | consistory check - --model sc
  consistory simulate msi.m -n 5000 --descriptor | consistory verify --descriptor -

Exit code: 0 histories written, 2 bad usage or unreadable input.";

const CONTRAST_HELP: &str = "\
Goes through all histories by size, each once up to the names of sessions, variables
and values; no value is written twice. Of models of the catalogue, operations that
cannot make a difference are left out.

Examples:
  consistory contrast tso sc
  consistory contrast ccv cm --bound 8 --draw pictures/
  consistory contrast tso my-model.cat --bound 5 --fences

Exit code: 0 no difference up to the bound, 1 a difference, 2 bad usage,
3 undecided because the budget ran out.";

const ATLAS_HELP: &str = "\
For each two models of the catalogue: a proof that the first implies the second, or a
smallest history that tells them apart, or how far it was looked.

Exit code: 0 done, 2 bad usage, 3 the budget ran out.";

#[derive(Debug, Args)]
pub(crate) struct ContrastArgs {
    /// A model's id, or a path to a definition file.
    #[arg(value_name = "A")]
    pub(crate) first: String,
    /// Another.
    #[arg(value_name = "B")]
    pub(crate) second: String,
    /// How many operations a history has at most.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=12))]
    pub(crate) bound: u16,
    /// How many sessions at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) sessions: Option<u16>,
    /// How many variables at most; operations and variables together are at most 16.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) variables: Option<u16>,
    /// Have fences.
    #[arg(long)]
    pub(crate) fences: bool,
    /// Have read-modify-writes.
    #[arg(long)]
    pub(crate) rmws: bool,
    /// How to print what is found.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// How long it may take, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub(crate) budget: Duration,
    /// How many threads work [default: one a core].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Draw each violation as SVG into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) draw: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AtlasArgs {
    /// How many operations a history of reads and writes has at most.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=12))]
    pub(crate) bound: u16,
    /// How many operations a history with fences and read-modify-writes has at most.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=12))]
    pub(crate) extended: u16,
    /// Files or folders with histories to ask where nothing smaller is found.
    #[arg(long, value_name = "PATH")]
    pub(crate) known: Vec<PathBuf>,
    /// How to print it.
    #[arg(long, value_enum, default_value_t = AtlasFormat::Text)]
    pub(crate) format: AtlasFormat,
    /// Write the smallest histories into this folder, with what is expected of them.
    #[arg(long, value_name = "DIR")]
    pub(crate) histories: Option<PathBuf>,
    /// How long it may take, such as 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = units::duration)]
    pub(crate) budget: Duration,
    /// How many threads work [default: one a core].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum AtlasFormat {
    /// A line a pair.
    Text,
    /// A page, as in the documentation.
    Markdown,
    /// A picture of the lattice with what separates its models.
    Svg,
    /// One JSON object a line for each pair.
    Json,
}

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

const TEST_HELP: &str = "\
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

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum TestClock {
    /// A counter of each thread, which the others read before each call: interferes least.
    Counters,
    /// The system's clock, before and after each call.
    Plain,
}

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
  consistory verify protocols/ --format json
  consistory verify large.m --budget 1h --checkpoint large.ckpt
  consistory verify large.m --budget 1h --resume large.ckpt --checkpoint large.ckpt
  my-simulator | consistory verify --descriptor -

Exit code: 0 all proved, 1 some violation, 2 bad usage or unreadable input,
3 some undecided and no violation.";

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Descriptions in Murphi, or folders of .m files; with --descriptor recorded descriptors, or -
    /// for standard input.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Check recorded descriptors of constraint graphs, symbol by symbol.
    #[arg(long, conflicts_with_all = ["plain", "show_tracking", "draw", "checkpoint", "resume"])]
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
    /// Write how far the search got into this file, every minute or so and when the budget ends or
    /// it is interrupted.
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Go on from a checkpoint of the same protocol and options; budgets and threads may differ.
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
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
    /// plume, awdit, edn, jepsen, limo, fastlin, fptlin.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Models: ids from `consistory models`, paths to definition files, `all` or `strongest`.
    #[arg(long, short, value_name = "MODEL", value_delimiter = ',')]
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
    /// How SC, TSO and PSO are completed where the forced order leaves something open.
    #[arg(long, value_enum, default_value_t = EngineName::Auto)]
    pub(crate) engine: EngineName,
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

#[derive(Debug, Args)]
pub(crate) struct KernelArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// List the pairs of each kernel, with the weakest model whose rules find it.
    #[arg(long)]
    pub(crate) pairs: bool,
    /// How to print kernels.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// How long each history may take, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub(crate) budget: Duration,
    /// How much memory the tables for one history may take, such as 512MiB.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = units::size)]
    pub(crate) memory: u64,
    /// How witnesses are searched for.
    #[arg(long, value_enum, default_value_t = EngineName::Auto)]
    pub(crate) engine: EngineName,
    /// How many threads work [default: one a core].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

/// An engine that completes what saturation leaves open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum EngineName {
    /// All of them side by side; the first answer counts.
    Auto,
    /// Cases: two writes that are not ordered come in one order or in the other.
    Split,
    /// The frontier search: how far each session has come; cases only to write down a refutation.
    Frontier,
    /// A SAT solver that learns from contradictions; cases only to write down a refutation.
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

/// What `check` takes for histories of an object's calls.
#[derive(Debug, Args)]
#[command(next_help_heading = "Objects")]
pub(crate) struct ObjectArgs {
    /// The object that the histories are calls of: register, cas-register, counter, map, kv, set,
    /// list, queue, stack, deque, priority-queue, lock, log or transactions, some with a parameter
    /// as in `register(0)`; or a path to an object file [default, for models of objects: what a line
    /// `# object: NAME` of the file says, or the one that has all the methods].
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

const RECORD_CPU_HELP: &str = "\
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

#[derive(Debug, Args)]
pub(crate) struct LitmusArgs {
    #[command(subcommand)]
    pub(crate) command: LitmusCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LitmusCommand {
    /// Find every outcome of tests under memory models.
    #[command(after_help = OUTCOMES_HELP)]
    Outcomes(OutcomesArgs),
    /// Find the smallest test that tells two memory models apart.
    #[command(after_help = LITMUS_CONTRAST_HELP)]
    Contrast(LitmusContrastArgs),
    /// Write the minimal tests that show what one memory model allows and another does not.
    #[command(after_help = SUITE_HELP)]
    Generate(SuiteArgs),
    /// Run tests on this machine's processor, and count what is seen.
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Show the machines behind the operational style.
    Machines(MachinesArgs),
}

const OUTCOMES_HELP: &str = "\
Examples:
  consistory litmus outcomes SB.litmus --model sc,tso
  consistory litmus outcomes tests/ --model all
  consistory litmus outcomes SB.litmus --model tso --style operational --witness

Exit code: 0 all found, 2 bad usage or unreadable input, 3 some undecided.";

const RUN_HELP: &str = "\
Examples:
  consistory litmus run SB.litmus
  consistory litmus run tests/ --runs 10000000 --format json
  consistory litmus run SB.litmus --model sc

Exit code: 0 the model allows all that was seen, 1 it forbids some of it, 2 bad usage or unreadable
input, 3 undecided.";

const LITMUS_CONTRAST_HELP: &str = "\
Examples:
  consistory litmus contrast --left tso --right pso --bound 6
  consistory litmus contrast --left tso --right tso --right-style operational --bound 5
  consistory litmus contrast --left ibm370 --right tso --all --explain

Exit code: 0 no difference, 1 some difference, 2 bad usage, 3 undecided.";

const SUITE_HELP: &str = "\
Examples:
  consistory litmus generate --model tso --output suite
  consistory litmus generate --model rmo --against tso --bound 5 --output suite

Each test's condition is what the model allows and the other forbids.";

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Style {
    /// By axioms: total orders of events.
    Axiomatic,
    /// By a machine of components.
    Operational,
    /// By the definition under models/litmus, with a SAT solver.
    Definition,
}

#[derive(Debug, Args)]
pub(crate) struct OutcomesArgs {
    /// Files and folders of .litmus tests, or - for standard input.
    #[arg(value_name = "TEST", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Memory models: sc, ibm370, tso, pso, pslo, rmo, ntso, npso, nrmo, sober, four digits, paths
    /// to definition files, or all.
    #[arg(long, short, value_name = "MODEL", value_delimiter = ',', required = true)]
    pub(crate) model: Vec<String>,
    /// How the models are specified.
    #[arg(long, value_enum, default_value_t = Style::Axiomatic)]
    pub(crate) style: Style,
    /// How to print outcomes.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// Show for each outcome an execution, or a run of the machine, that has it.
    #[arg(long)]
    pub(crate) witness: bool,
    /// Show the test's program as a table, a column a thread.
    #[arg(long)]
    pub(crate) program: bool,
    /// Draw an execution for each outcome as SVG into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) draw: Option<PathBuf>,
    /// How long each test may take for each model, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub(crate) budget: Duration,
    /// How many threads work [default: one a core].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Files and folders of .litmus tests, or - for standard input.
    #[arg(value_name = "TEST", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// The memory model that the processor is held to [default: tso on x86-64, rmo on AArch64].
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// How often each test is run.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) runs: u64,
    /// The seed that memory layouts and timings are drawn from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How to print what was seen.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// How long each test may run, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub(crate) budget: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct MachinesArgs {
    /// The machine to draw; without one, all are listed.
    #[arg(value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// How to draw it.
    #[arg(long, value_enum, default_value_t = DiagramFormat::Text)]
    pub(crate) format: DiagramFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DiagramFormat {
    /// For the terminal.
    Text,
    /// As a picture, for two threads and two locations.
    Svg,
}

#[derive(Debug, Args)]
pub(crate) struct LitmusContrastArgs {
    /// A memory model.
    #[arg(long, value_name = "MODEL")]
    pub(crate) left: String,
    /// Another memory model.
    #[arg(long, value_name = "MODEL")]
    pub(crate) right: String,
    /// How the left model is specified.
    #[arg(long, value_enum, default_value_t = Style::Axiomatic)]
    pub(crate) left_style: Style,
    /// How the right model is specified.
    #[arg(long, value_enum, default_value_t = Style::Axiomatic)]
    pub(crate) right_style: Style,
    /// How many reads and writes a program may have; fences do not count.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = bound)]
    pub(crate) bound: usize,
    /// How many threads a program may have [default: any number].
    #[arg(long, value_name = "N", value_parser = bound)]
    pub(crate) threads: Option<usize>,
    /// How many reads and writes a thread may have [default: any number].
    #[arg(long, value_name = "N", value_parser = bound)]
    pub(crate) per_thread: Option<usize>,
    /// How many addresses a program may have.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = bound)]
    pub(crate) locations: usize,
    /// Try programs without fences only.
    #[arg(long)]
    pub(crate) no_fences: bool,
    /// Try dependencies too, if one of the models knows them.
    #[arg(long)]
    pub(crate) dependencies: bool,
    /// Run programs too that the conflict graph calls redundant.
    #[arg(long)]
    pub(crate) keep_redundant: bool,
    /// List every minimal difference up to the bound.
    #[arg(long)]
    pub(crate) all: bool,
    /// Count the programs of each size that each reduction leaves.
    #[arg(long)]
    pub(crate) explain: bool,
    /// How to print differences.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// How long it may take, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = units::duration)]
    pub(crate) budget: Duration,
    /// How many threads work [default: one a core].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct SuiteArgs {
    /// The memory model whose relaxations are wanted.
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: String,
    /// The memory model that does not have them.
    #[arg(long, value_name = "MODEL", default_value = "sc")]
    pub(crate) against: String,
    /// How many reads and writes a test may have; fences do not count.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = bound)]
    pub(crate) bound: usize,
    /// The language of the tests.
    #[arg(long, value_enum, default_value_t = TestLanguage::X86)]
    pub(crate) arch: TestLanguage,
    /// The folder to write the tests into.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// How long it may take, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = units::duration)]
    pub(crate) budget: Duration,
    /// How many threads work [default: one a core].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TestLanguage {
    /// Intel's syntax.
    X86,
    /// herd's neutral language.
    Lisa,
}

/// Reads a bound of programs: beyond a dozen nobody waits for the end.
fn bound(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=12) => Ok(number),
        _ => Err("a bound is a number from 1 to 12".to_owned()),
    }
}
