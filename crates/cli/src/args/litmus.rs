//! Arguments of the commands on litmus tests.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{DrawArgs, JobsArgs, MemoryArgs, OutputFormat, PartArgs, bound};
use crate::units;

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
    /// Write the minimal tests whose outcomes one memory model allows and another forbids.
    #[command(after_help = SUITE_HELP)]
    Generate(SuiteArgs),
    /// Rewrite tests in a uniform layout, or translate them into another language.
    #[command(after_help = LITMUS_CONVERT_HELP)]
    Convert(LitmusConvertArgs),
    /// Run tests on this machine's processor, and count the outcomes.
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Show the machines of the operational style.
    Machines(MachinesArgs),
}

pub(super) const OUTCOMES_HELP: &str = "\
Examples:
  consistory litmus outcomes SB.litmus --model sc,tso
  consistory litmus outcomes tests/ --model all
  consistory litmus outcomes SB.litmus --model tso --style operational --witness

  consistory litmus outcomes MP.litmus --model aarch64 --check
  consistory litmus outcomes tests/ --model herd/libdir/riscv.cat --format herd

Exit code: 0 all found, 1 with --check where a test's condition does not hold, 2 bad usage or
unreadable input, 3 some undecided.";

pub(super) const LITMUS_CONVERT_HELP: &str = "\
Examples:
  consistory litmus convert tests/ --output tidy
  consistory litmus convert MP.litmus --to aarch64
  consistory litmus convert MP.litmus --to my-scheme.map
  consistory litmus convert SB.litmus --to lisa

Exit code: 0 all written, 2 some cannot be read or written.";

pub(super) const RUN_HELP: &str = "\
Examples:
  consistory litmus run SB.litmus
  consistory litmus run tests/ --runs 10000000 --format json
  consistory litmus run SB.litmus --model sc,x86tso

Exit code: 0 every model allows every observed outcome, 1 one forbids some of it, 2 bad usage or
unreadable input, 3 undecided.";

pub(super) const LITMUS_CONTRAST_HELP: &str = "\
Examples:
  consistory litmus contrast --left tso --right pso --bound 6
  consistory litmus contrast --left tso --right tso --right-style operational --bound 5
  consistory litmus contrast --left ibm370 --right tso --all --explain
  consistory litmus contrast --left x86tso --right aarch64 --dependencies
  consistory litmus contrast --left rc11 --right power --only right
  consistory litmus contrast --left aarch64 --right my.cat --bound 4
  consistory litmus contrast --left tso --right protocol.m --bound 5

Exit code: 0 no difference, 1 some difference, 2 bad usage, 3 undecided.";

pub(super) const SUITE_HELP: &str = "\
Examples:
  consistory litmus generate --model tso --output suite
  consistory litmus generate --model rmo --against tso --bound 5 --output suite

Each test's condition is what the model allows and the other forbids.";

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Style {
    /// By axioms: total orders of events.
    Axiomatic,
    /// By an abstract machine of components.
    Operational,
    /// By the definition under models/litmus, with a SAT solver.
    Definition,
}

/// Output format of outcomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OutcomesFormat {
    /// For people.
    Text,
    /// One line of JSON per test and model.
    Json,
    /// In the format of herd's logs.
    Herd,
}

#[derive(Debug, Args)]
pub(crate) struct OutcomesArgs {
    /// Files and folders of .litmus tests, or - for standard input.
    #[arg(value_name = "TEST", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Memory models: sc, ibm370, tso, pso, pslo, rmo, ntso, npso, nrmo, sober, or four digits for
    /// tests of x86 and LISA; sc, x86tso, aarch64, riscv, riscv-tso, power, rc11, lkmm for tests of
    /// these architectures; paths of definition files and of protocols (.m), with --style
    /// operational of machines; or all [default: the model of the tests' architecture].
    #[arg(long, short, value_name = "MODEL", value_delimiter = ',')]
    pub(crate) model: Vec<String>,
    /// Style in which the models are specified [default: axiomatic, or the style of the file].
    #[arg(long, value_enum)]
    pub(crate) style: Option<Style>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = OutcomesFormat::Text)]
    pub(crate) format: OutcomesFormat,
    /// Exit with 1 unless the condition of every test holds under every model.
    #[arg(long)]
    pub(crate) check: bool,
    /// Only decide whether the condition holds: stop at the first outcome that decides it.
    #[arg(long)]
    pub(crate) condition_only: bool,
    /// Folders in which .cat files included by a model are searched.
    #[arg(long, short = 'I', value_name = "DIR")]
    pub(crate) include: Vec<PathBuf>,
    /// The bell file of the model [default: the file of the same name in its folder].
    #[arg(long, value_name = "FILE")]
    pub(crate) bell: Option<PathBuf>,
    /// Variants that a model tests for, such as lkmmv2; CU lets a store exclusive succeed at another
    /// address than that of its load exclusive.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) variant: Vec<String>,
    /// Largest number of times that a backward jump is followed.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) unroll: u8,
    /// Show an execution, or a run of the machine, for each outcome.
    #[arg(long)]
    pub(crate) witness: bool,
    /// Show the test's program as a table, one column per thread.
    #[arg(long)]
    pub(crate) program: bool,
    #[command(flatten)]
    pub(crate) drawing: DrawArgs,
    /// Write an interactive report of all tests to this file, for a browser.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Time limit for each test and model, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub(crate) budget: Duration,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Files and folders of .litmus tests, or - for standard input.
    #[arg(value_name = "TEST", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Memory models that must allow every observed outcome: ids as for `outcomes`, and paths of
    /// .cat files [default: tso on x86-64; on AArch64, aarch64 for its own tests and rmo for
    /// others].
    #[arg(long, short, value_name = "MODEL", value_delimiter = ',')]
    pub(crate) model: Vec<String>,
    /// Folders in which .cat files included by a model are searched.
    #[arg(long, short = 'I', value_name = "DIR")]
    pub(crate) include: Vec<PathBuf>,
    /// Number of runs of each test.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) runs: u64,
    /// Seed of the memory layouts and timings.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Output format.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// Time limit for each test, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub(crate) budget: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct LitmusConvertArgs {
    /// Files and folders of .litmus tests, or - for standard input.
    #[arg(value_name = "TEST", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Target language. For tests of C11: aarch64, riscv, power, x86 or a table of instructions;
    /// for tests of x86 and LISA: lisa or x86 [default: the language of the test].
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) to: Option<String>,
    /// Folder in which each test is written to a file with its name.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct MachinesArgs {
    /// Machine to draw, or a file with one; without it, all machines are listed.
    #[arg(value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// Format of the drawing.
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
    /// A memory model: an id as for outcomes, or the path of a definition, protocol or machine.
    #[arg(long, value_name = "MODEL")]
    pub(crate) left: String,
    /// The memory model to compare it with, given in the same way.
    #[arg(long, value_name = "MODEL")]
    pub(crate) right: String,
    /// Style in which the left model is specified [default: axiomatic, or the style of the file].
    #[arg(long, value_enum)]
    pub(crate) left_style: Option<Style>,
    /// Style in which the right model is specified [default: axiomatic, or the style of the file].
    #[arg(long, value_enum)]
    pub(crate) right_style: Option<Style>,
    /// Table of instructions with which programs are written for both models: x86, aarch64, riscv,
    /// power, c11, lkmm, c11-x86, c11-aarch64, c11-riscv, c11-power, c11-lkmm, or a file.
    #[arg(long, value_name = "TABLE")]
    pub(crate) mapping: Option<String>,
    /// The table for the left model.
    #[arg(long, value_name = "TABLE")]
    pub(crate) left_mapping: Option<String>,
    /// The table for the right model.
    #[arg(long, value_name = "TABLE")]
    pub(crate) right_mapping: Option<String>,
    /// Largest number of decorations of a program: fences, dependencies, and accesses of another
    /// kind than the first one in the table [default: unlimited].
    #[arg(long, value_name = "N")]
    pub(crate) decorations: Option<usize>,
    /// Only search for outcomes that this side allows and the other forbids.
    #[arg(long, value_enum, value_name = "SIDE")]
    pub(crate) only: Option<OnlySide>,
    /// Folders in which .cat files included by a model are searched.
    #[arg(long, short = 'I', value_name = "DIR")]
    pub(crate) include: Vec<PathBuf>,
    /// The bell file of the model [default: the file of the same name in its folder].
    #[arg(long, value_name = "FILE")]
    pub(crate) bell: Option<PathBuf>,
    /// Variants that a model tests for, such as lkmmv2.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) variant: Vec<String>,
    /// Largest number of reads and writes of a program; fences do not count [default: 6, and 4 with
    /// a table].
    #[arg(long, value_name = "N", value_parser = bound::<usize>)]
    pub(crate) bound: Option<usize>,
    /// Largest number of threads of a program [default: unlimited].
    #[arg(long, value_name = "N", value_parser = bound::<usize>)]
    pub(crate) threads: Option<usize>,
    /// Largest number of reads and writes of a thread [default: unlimited].
    #[arg(long, value_name = "N", value_parser = bound::<usize>)]
    pub(crate) per_thread: Option<usize>,
    /// Largest number of addresses of a program.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = bound::<usize>)]
    pub(crate) locations: usize,
    /// Try only programs without fences.
    #[arg(long)]
    pub(crate) no_fences: bool,
    /// Try dependencies too, if one of the models distinguishes them.
    #[arg(long)]
    pub(crate) dependencies: bool,
    /// Also run redundant programs: those whose conflict graph is not strongly connected and, with
    /// a table, those of one thread with more than two decorations.
    #[arg(long)]
    pub(crate) keep_redundant: bool,
    /// List every minimal difference within the bound.
    #[arg(long)]
    pub(crate) all: bool,
    /// Count the programs of each size that remain after each reduction.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// Time limit, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = units::duration)]
    pub(crate) budget: Duration,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

/// A side of a contrast.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OnlySide {
    /// The left model.
    Left,
    /// The right model.
    Right,
}

#[derive(Debug, Args)]
pub(crate) struct SuiteArgs {
    /// Memory model whose relaxed outcomes are wanted.
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: String,
    /// Memory model that forbids them.
    #[arg(long, value_name = "MODEL", default_value = "sc")]
    pub(crate) against: String,
    /// Largest number of reads and writes of a test; fences do not count.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = bound::<usize>)]
    pub(crate) bound: usize,
    /// Language of the tests.
    #[arg(long, value_enum, default_value_t = TestLanguage::X86)]
    pub(crate) arch: TestLanguage,
    /// Folder to write the tests to.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Time limit, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = units::duration)]
    pub(crate) budget: Duration,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TestLanguage {
    /// Intel's syntax.
    X86,
    /// herd's neutral language.
    Lisa,
}
