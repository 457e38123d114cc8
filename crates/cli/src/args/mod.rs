//! The arguments of the command line, parsed by clap.

mod calls;
mod check;
mod effect;
mod generate;
mod litmus;
mod make;
mod models;
mod protocol;
mod serve;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use consistory_scene::PictureFormat;

use crate::part::Part;
use crate::units;

pub(crate) use self::calls::{DatabaseArgs, TestArgs, TestClock, TestSession, WatchArgs};
use self::calls::{TEST_HELP, WATCH_HELP};
use self::check::{CERTIFY_HELP, CHECK_HELP, KERNEL_HELP};
pub(crate) use self::check::{CertifyArgs, CheckArgs, InputArgs, KernelArgs};
pub(crate) use self::effect::refuse_ineffective;
use self::generate::GENERATE_HELP;
pub(crate) use self::generate::{GenerateArgs, TransactionArgs};
pub(crate) use self::litmus::{
    DiagramFormat, LitmusArgs, LitmusCommand, LitmusContrastArgs, LitmusConvertArgs, MachinesArgs,
    OnlySide, OutcomesArgs, OutcomesFormat, RunArgs, Style, SuiteArgs, TestLanguage,
};
use self::make::MERGE_HELP;
pub(crate) use self::make::{ConvertArgs, MergeArgs, RecordArgs, RecordCommand, RecordCpuArgs};
use self::models::{ATLAS_HELP, CONTRAST_HELP};
pub(crate) use self::models::{
    AtlasArgs, ContrastArgs, LatticeFormat, ModelsArgs, ModelsCommand, OrderArg,
};
use self::protocol::{SIMULATE_HELP, VERIFY_HELP};
pub(crate) use self::protocol::{SimulateArgs, VerifyArgs};
use self::serve::SERVE_HELP;
pub(crate) use self::serve::ServeArgs;

/// A court for histories: decides whether the recorded behaviour of a concurrent system is allowed
/// by its consistency model, and shows why.
#[derive(Debug, Parser)]
#[command(name = "consistory", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// When to use colours.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    pub(crate) color: Colour,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When to colour the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<Colour> for anstream::ColorChoice {
    fn from(colour: Colour) -> Self {
        match colour {
            Colour::Auto => anstream::ColorChoice::Auto,
            Colour::Always => anstream::ColorChoice::Always,
            Colour::Never => anstream::ColorChoice::Never,
        }
    }
}

/// Amount of output of a command that judges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Args)]
pub(crate) struct VerbosityArgs {
    /// Print errors only; the exit code gives the result.
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print a whole page for each history, and explain consistent verdicts too.
    #[arg(long, short)]
    pub(crate) verbose: bool,
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
    /// Generate histories: random clients on a simulated memory, transactional store or object.
    #[command(after_help = GENERATE_HELP)]
    Generate(GenerateArgs),
    /// Record histories of a real system.
    Record(RecordArgs),
    /// Run litmus tests under memory models, and find tests that separate two models.
    Litmus(LitmusArgs),
    /// Judge an object's calls online, and stop at the first violation.
    #[command(after_help = WATCH_HELP)]
    Watch(WatchArgs),
    /// Test a database under faults, or a collection; judge the histories and shrink violations.
    #[command(after_help = TEST_HELP)]
    Test(Box<TestArgs>),
    /// Prove that every run of a coherence protocol is sequentially consistent.
    #[command(after_help = VERIFY_HELP)]
    Verify(VerifyArgs),
    /// Generate histories: random runs of a coherence protocol.
    #[command(after_help = SIMULATE_HELP)]
    Simulate(SimulateArgs),
    /// Serve a local page for trying histories, litmus tests, protocols and models.
    #[command(after_help = SERVE_HELP)]
    Serve(ServeArgs),
    /// Show the built-in models.
    Models(ModelsArgs),
    /// Find smallest histories that one model allows and another forbids.
    #[command(after_help = CONTRAST_HELP)]
    Contrast(ContrastArgs),
    /// Contrast every pair of models of registers.
    #[command(after_help = ATLAS_HELP)]
    Atlas(AtlasArgs),
    /// Merge the outputs of `--part I/N`, and add up their tables.
    #[command(after_help = MERGE_HELP)]
    Merge(MergeArgs),
    /// Find the pairs of writes that every witness of sequential consistency orders in the same
    /// way.
    #[command(after_help = KERNEL_HELP)]
    Kernel(KernelArgs),
    /// Print the manual page of this command line, or write the pages of all commands to a folder.
    Man {
        /// Folder for `consistory.1`, `consistory-check.1` and so on.
        #[arg(long, value_name = "DIR")]
        output: Option<std::path::PathBuf>,
    },
    /// Print a script that completes this command line in a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// The share of the work that this process does.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PartArgs {
    /// Do the I-th of N equal shares of the work, such as 3/64; `consistory merge` merges the
    /// outputs. Needs `--format json`.
    #[arg(long, value_name = "I/N")]
    pub(crate) part: Option<Part>,
}

/// Number of threads of a command.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct JobsArgs {
    /// Number of threads, at most 1024 [default: one per core].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
}

impl JobsArgs {
    /// Returns the number of threads.
    pub(crate) fn count(self) -> usize {
        self.jobs.map_or_else(cores, usize::from)
    }
}

/// Memory limit of a search.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MemoryArgs {
    /// Memory limit of the search, such as 512MiB.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = units::size)]
    pub(crate) memory: u64,
}

/// Returns the number of cores.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The format of pictures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DrawFormat {
    /// For browsers and documents.
    Svg,
    /// For Graphviz.
    Dot,
    /// Text of at most 100 columns.
    Text,
}

impl From<DrawFormat> for PictureFormat {
    fn from(format: DrawFormat) -> Self {
        match format {
            DrawFormat::Svg => PictureFormat::Svg,
            DrawFormat::Dot => PictureFormat::Dot,
            DrawFormat::Text => PictureFormat::Text,
        }
    }
}

/// Folder and format of pictures.
#[derive(Args, Clone, Debug)]
pub(crate) struct DrawArgs {
    /// Write pictures to this folder: of violations, of failing runs, of executions.
    #[arg(long, value_name = "DIR")]
    pub(crate) draw: Option<PathBuf>,
    /// Format of the pictures that `--draw` writes.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = DrawFormat::Svg)]
    pub(crate) draw_as: DrawFormat,
}

impl DrawArgs {
    /// Returns the format of pictures.
    pub(crate) fn format(&self) -> PictureFormat {
        self.draw_as.into()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    Text,
    /// JSON lines, for other programs.
    Json,
}

/// Parses the size of the items of a search; a size of more than a dozen would take too long.
fn bound<N: From<u8>>(text: &str) -> Result<N, String> {
    match text.parse() {
        Ok(number @ 1..=12u8) => Ok(number.into()),
        _ => Err("a bound is a number from 1 to 12".to_owned()),
    }
}
