//! Arguments of the commands about models.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use consistory_models::ClientOrder;

use super::{DrawArgs, JobsArgs, MemoryArgs, OutputFormat, PartArgs, bound};
use crate::units;

pub(super) const CONTRAST_HELP: &str = "\
Tries all histories by size, up to renaming of sessions, variables and values; no value
is written twice. If both models are built in, operations that cannot make a difference
are left out.

Examples:
  consistory contrast tso sc
  consistory contrast ccv cm --bound 8 --draw pictures/
  consistory contrast tso my-model.cat --bound 5 --fences

Exit code: 0 no difference up to the bound, 1 a difference, 2 bad usage,
3 undecided because the budget ran out.";

#[derive(Debug, Args)]
pub(crate) struct ContrastArgs {
    /// Id of a model of registers or of an isolation level, or a path to a definition file.
    #[arg(value_name = "A")]
    pub(crate) first: String,
    /// Model or isolation level to compare it with, given in the same way.
    #[arg(value_name = "B")]
    pub(crate) second: String,
    /// Largest number of operations of a history.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = bound::<u16>)]
    pub(crate) bound: u16,
    /// Largest number of sessions.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) sessions: Option<u16>,
    /// Largest number of variables; operations and variables together are at most 16.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) variables: Option<u16>,
    /// Try histories with fences, too.
    #[arg(long)]
    pub(crate) fences: bool,
    /// Try histories with read-modify-writes, too.
    #[arg(long)]
    pub(crate) rmws: bool,
    /// Order of transactions that isolation levels respect: none, session or realtime.
    #[arg(long, value_enum, default_value_t = OrderArg::Session)]
    pub(crate) order: OrderArg,
    /// Output format.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// Time limit, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub(crate) budget: Duration,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    #[command(flatten)]
    pub(crate) drawing: DrawArgs,
    /// Write an interactive report to this file, for a browser.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
}

pub(super) const ATLAS_HELP: &str = "\
Contrasts every pair of built-in models of registers, and finds an implication that is proved, a
smallest history that tells the two apart, or nothing up to the bounds.

Examples:
  consistory atlas
  consistory atlas --bound 8 --extended 6 --budget 8h --format json --part 3/64 > 3.jsonl

Exit code: 0 no difference up to the bounds, 1 a difference, 2 bad usage,
3 undecided because the budget ran out.";

#[derive(Debug, Args)]
pub(crate) struct AtlasArgs {
    /// Largest number of operations of a history of reads and writes.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = bound::<u16>)]
    pub(crate) bound: u16,
    /// Largest number of operations of a history with fences and read-modify-writes.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = bound::<u16>)]
    pub(crate) extended: u16,
    /// Output format.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// Time limit, such as 500ms, 30s, 5m.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub(crate) budget: Duration,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
}

/// Order that the clients of transactions observed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OrderArg {
    /// No order, except that the initial transaction comes first.
    None,
    /// The order of each session.
    Session,
    /// The order of each session and real time: a transaction that ends before another one starts
    /// comes before it.
    Realtime,
}

impl From<OrderArg> for consistory::ClientOrder {
    fn from(order: OrderArg) -> Self {
        match order {
            OrderArg::None => Self::None,
            OrderArg::Session => Self::Session,
            OrderArg::Realtime => Self::Realtime,
        }
    }
}

impl From<OrderArg> for ClientOrder {
    fn from(order: OrderArg) -> ClientOrder {
        match order {
            OrderArg::None => ClientOrder::None,
            OrderArg::Session => ClientOrder::Session,
            OrderArg::Realtime => ClientOrder::Realtime,
        }
    }
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
    /// Show the implications between models.
    Lattice {
        /// Format of the lattice.
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
    /// As an interactive page: an edge links to the smallest history that separates its models.
    Html,
}
