//! Arguments of `consistory generate`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;
use consistory_formats::Format;
use consistory_generate::{Anomaly, ClientOrder, Memory, SharedObject, Store};

use crate::units;

pub(super) const GENERATE_HELP: &str = "\
Examples:
  consistory generate --memory tso --sessions 3 --operations 60 --seed 1
  consistory generate --object queue --pending 5% -n 1000 -o calls.jsonl
  consistory generate --transactions --level si --lists --aborted 5% -o si.hist
  consistory generate --transactions --anomaly write-skew,long-fork | consistory check - --model all
  consistory generate --transactions --level tcc -s 50 -n 1000000 -v 10000 --to plume -o big.txt

Exit code: 0 written, 2 bad usage.";

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Memory that the clients use: sc, tso, pso, ccv, cm or broken.
    #[arg(long, short, default_value = "sc")]
    pub(crate) memory: Memory,
    /// Linearizable object that the clients call, instead of a memory: register, kv, counter, set,
    /// queue, stack, deque, priority-queue or lock.
    #[arg(
        long,
        value_name = "OBJECT",
        conflicts_with_all = ["memory", "variables", "rmws", "fences", "skew", "values", "lag"]
    )]
    pub(crate) object: Option<SharedObject>,
    /// Share of an object's calls that never return.
    #[arg(long, default_value = "0", value_parser = units::share, requires = "object", conflicts_with = "memory")]
    pub(crate) pending: f64,
    /// Write an object's calls in the order of execution, as events that `watch` reads.
    #[arg(long, requires = "object", conflicts_with_all = ["to", "count", "memory"])]
    pub(crate) events: bool,
    /// Share of the calls that never return for which not even an `info` event is written; their
    /// sessions continue under new names.
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = units::share, requires = "events")]
    pub(crate) unannounced: f64,
    #[command(flatten)]
    pub(crate) transactions: TransactionArgs,
    /// Number of sessions.
    #[arg(long, short, default_value_t = 4)]
    pub(crate) sessions: u32,
    /// Total number of operations.
    #[arg(long, short = 'n', default_value_t = 100)]
    pub(crate) operations: u32,
    /// Number of variables or keys.
    #[arg(long, short, default_value_t = 10)]
    pub(crate) variables: u32,
    /// Share of reads.
    #[arg(long, default_value = "0.5", value_parser = units::share)]
    pub(crate) reads: f64,
    /// Share of read-modify-writes.
    #[arg(long, default_value = "0", value_parser = units::share)]
    pub(crate) rmws: f64,
    /// Share of fences.
    #[arg(long, default_value = "0", value_parser = units::share)]
    pub(crate) fences: f64,
    /// Skew of the choice of variables: 0 for uniform, 1 for Zipf's law.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) skew: f64,
    /// Number of different values written to a variable; 0 makes every value unique.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) values: u32,
    /// Capacity of a store buffer in writes, or largest lag of a replica or store relative to a
    /// session, in writes or transactions.
    #[arg(long, default_value_t = 16)]
    pub(crate) lag: u32,
    /// Seed; the same seed generates the same history.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Number of histories, with consecutive seeds.
    #[arg(long, default_value_t = 1)]
    pub(crate) count: u64,
    /// Number of reads that get the value of another write, or of pairs of calls that exchange
    /// their returns.
    #[arg(long, value_name = "READS", default_value_t = 0)]
    pub(crate) plant: usize,
    /// Largest distance of that other write or call, in operations.
    #[arg(long, value_name = "OPERATIONS", default_value_t = 100)]
    pub(crate) distance: u32,
    /// Output format [default: by the output's extension, or hist].
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
    /// Output file, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Options of transactions.
#[derive(Debug, Args)]
#[command(next_help_heading = "Transactions")]
pub(crate) struct TransactionArgs {
    /// Run transactions on a simulated store, instead of single operations on a memory.
    #[arg(
        long,
        conflicts_with_all = ["memory", "object", "rmws", "fences"]
    )]
    pub(crate) transactions: bool,
    /// Isolation level that the store guarantees, and no stronger one: rc, ra, tcc, pc, psi, si or
    /// ser.
    #[arg(long, default_value = "ser", requires = "transactions")]
    pub(crate) level: Store,
    /// Order between transactions that the store also respects: none, session or realtime.
    #[arg(long, default_value = "session", requires = "transactions")]
    pub(crate) order: ClientOrder,
    /// Number of operations per transaction: a number or a range such as 2..6.
    #[arg(
        long,
        value_name = "RANGE",
        default_value = "1..8",
        value_parser = units::range,
        requires = "transactions"
    )]
    pub(crate) size: RangeInclusive<u32>,
    /// Append to lists and read whole lists, instead of writing registers.
    #[arg(long, requires = "transactions", conflicts_with = "values")]
    pub(crate) lists: bool,
    /// Replace a key by a new one after this number of writes; 0 for never [default: 32 for lists,
    /// else 0].
    #[arg(long, value_name = "N", requires = "transactions")]
    pub(crate) writes_per_key: Option<u32>,
    /// Share of transactions that abort.
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0",
        value_parser = units::share,
        requires = "transactions"
    )]
    pub(crate) aborted: f64,
    /// Share of transactions whose outcome is indeterminate; half of them take effect.
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0",
        value_parser = units::share,
        requires = "transactions"
    )]
    pub(crate) indeterminate: f64,
    /// Give a number of keys a share of all operations, for example 5:80%.
    #[arg(
        long,
        value_name = "KEYS:SHARE",
        value_parser = units::hot_keys,
        requires = "transactions",
        conflicts_with = "skew"
    )]
    pub(crate) hot: Option<(u32, f64)>,
    /// Record the start and end of each operation.
    #[arg(long, requires = "transactions")]
    pub(crate) times: bool,
    /// Plant anomalies, each on separate keys: g0, g1a, g1b, g1c, incompatible-order (lists),
    /// fractured-read, non-monotonic-read, causal-violation, read-skew, lost-update, long-fork,
    /// write-skew.
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "transactions")]
    pub(crate) anomaly: Vec<Anomaly>,
}
