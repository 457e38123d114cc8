//! Options of a transaction workload, and the stores by name.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::anomaly::Anomaly;
use super::clocks::Clocks;
use super::coins::{ReadAtomic, ReadCommitted};
use super::snapshots::Snapshots;
use super::versions::Isolation;
use crate::random::{Choice, Chooser, Random, choices_of};
use crate::workload::Workload;

/// A simulated store, named for the isolation level that it implements exactly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Store {
    /// Read committed.
    Rc,
    /// Read atomic.
    Ra,
    /// Transactional causal consistency.
    Tcc,
    /// Prefix consistency.
    Pc,
    /// Parallel snapshot isolation.
    Psi,
    /// Snapshot isolation.
    Si,
    /// Serializability.
    Ser,
}

/// A name that no store has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no store is called {name:?}; the stores are rc, ra, tcc, pc, psi, si and ser")]
pub struct UnknownStore {
    /// The name.
    pub name: String,
}

impl Store {
    /// Every store, from the weakest level to the strongest.
    pub const ALL: [Store; 7] =
        [Store::Rc, Store::Ra, Store::Tcc, Store::Pc, Store::Psi, Store::Si, Store::Ser];

    /// Returns the id of the store's level.
    pub fn as_str(self) -> &'static str {
        match self {
            Store::Rc => "rc",
            Store::Ra => "ra",
            Store::Tcc => "tcc",
            Store::Pc => "pc",
            Store::Psi => "psi",
            Store::Si => "si",
            Store::Ser => "ser",
        }
    }

    /// Describes in one sentence how the store works.
    pub fn description(self) -> &'static str {
        match self {
            Store::Rc => {
                "Each read returns some committed version, never an older one than a transaction \
                 wrote that this transaction has already read from."
            }
            Store::Ra => {
                "Each transaction sees a random set of committed transactions, all or nothing of \
                 each, and all of its session's."
            }
            Store::Tcc => {
                "Each transaction sees a causally closed set of committed transactions, tracked by \
                 vector clocks; the last committed write of a key wins."
            }
            Store::Pc => {
                "Each transaction reads a snapshot that contains its session's transactions; \
                 concurrent writers of one key both commit."
            }
            Store::Psi => {
                "As tcc, and a transaction that writes a key sees every earlier version of it."
            }
            Store::Si => {
                "As pc, and no other transaction writes one of its keys between a transaction's \
                 snapshot and its commit."
            }
            Store::Ser => {
                "Transactions that write run one at a time; those that only read may run on an \
                 older snapshot that contains their session's transactions."
            }
        }
    }

    /// Builds the store.
    pub(super) fn isolation(self, workload: &TransactionWorkload) -> Box<dyn Isolation> {
        let random = choices_of(Chooser::Memory, workload.seed);
        match self {
            Store::Rc => Box::new(ReadCommitted::new(workload, random)),
            Store::Ra => Box::new(ReadAtomic::new(workload, random)),
            Store::Tcc | Store::Psi => Box::new(Clocks::new(workload, self, random)),
            Store::Pc | Store::Si | Store::Ser => Box::new(Snapshots::new(workload, self, random)),
        }
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Store {
    type Err = UnknownStore;

    fn from_str(name: &str) -> Result<Self, UnknownStore> {
        Store::ALL
            .into_iter()
            .find(|store| store.as_str().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownStore { name: name.into() })
    }
}

/// The order between transactions that a store respects besides what they read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ClientOrder {
    /// None: clients take their connections from a pool, so the transactions of a session belong to
    /// different clients.
    None,
    /// The order of each session.
    #[default]
    Session,
    /// Real time: a transaction sees all transactions that ended before it began.
    Realtime,
}

/// A name that no client order has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no order is called {name:?}; the orders are none, session and realtime")]
pub struct UnknownClientOrder {
    /// The name.
    pub name: String,
}

impl ClientOrder {
    /// Every order, from the weakest to the strongest.
    pub const ALL: [ClientOrder; 3] =
        [ClientOrder::None, ClientOrder::Session, ClientOrder::Realtime];

    /// Returns the order's name.
    pub fn as_str(self) -> &'static str {
        match self {
            ClientOrder::None => "none",
            ClientOrder::Session => "session",
            ClientOrder::Realtime => "realtime",
        }
    }
}

impl fmt::Display for ClientOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ClientOrder {
    type Err = UnknownClientOrder;

    fn from_str(name: &str) -> Result<Self, UnknownClientOrder> {
        ClientOrder::ALL
            .into_iter()
            .find(|order| order.as_str().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownClientOrder { name: name.into() })
    }
}

/// Type of the keys' values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DataKind {
    /// Registers, which writes replace.
    #[default]
    Registers,
    /// Lists, which appends extend and reads return whole.
    Lists,
}

/// Distribution of the keys that operations act on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum KeyChoice {
    /// Key number i has the weight `1 / (i + 1)^skew`: uniform for 0, Zipf's law for 1.
    Zipf {
        /// The exponent, from 0 to [`Workload::MAX_SKEW`].
        skew: f64,
    },
    /// A few hot keys get a share of all operations; otherwise the choice is uniform.
    HotSpot {
        /// Number of hot keys.
        keys: u32,
        /// Share of the operations that act on a hot key.
        share: f64,
    },
}

impl Default for KeyChoice {
    fn default() -> Self {
        KeyChoice::Zipf { skew: 0.0 }
    }
}

/// A chooser of keys, as [`KeyChoice`] describes it.
pub(super) enum Keys {
    Weighted(Choice),
    HotSpot { keys: u32, hot: u32, share: f64 },
}

impl Keys {
    pub(super) fn new(choice: KeyChoice, keys: u32) -> Self {
        match choice {
            KeyChoice::Zipf { skew } => Keys::Weighted(Choice::zipf(keys, skew)),
            KeyChoice::HotSpot { keys: hot, share } => Keys::HotSpot { keys, hot, share },
        }
    }

    pub(super) fn choose(&self, random: &mut Random) -> u32 {
        match self {
            Keys::Weighted(choice) => choice.choose(random),
            &Keys::HotSpot { keys, hot, share } => {
                let is_hot = random.unit() < share;
                random.below(if is_hot { hot } else { keys })
            }
        }
    }
}

/// Random clients that run transactions.
///
/// ```
/// use consistory_generate::{Store, TransactionWorkload, generate_transactions};
///
/// let workload = TransactionWorkload { store: Store::Si, seed: 7, ..Default::default() };
/// workload.validate()?;
/// let history = generate_transactions(&workload);
/// assert_eq!(history.len(), 100);
/// # Ok::<(), consistory_generate::TransactionWorkloadError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct TransactionWorkload {
    /// The store that the clients run on; serializable by default.
    pub store: Store,
    /// The order that the store respects; session order by default.
    pub order: ClientOrder,
    /// Number of sessions; 4 by default.
    pub sessions: u32,
    /// Number of operations of all transactions together, those of planted anomalies not counted;
    /// 100 by default.
    pub operations: u32,
    /// Number of keys in use at a time; 10 by default.
    pub keys: u32,
    /// Least and greatest number of operations per transaction, all equally likely; 1 to 8 by
    /// default.
    pub sizes: RangeInclusive<u32>,
    /// Share of reads among the operations; a half by default.
    pub read_share: f64,
    /// Type of the keys' values; registers by default.
    pub data: DataKind,
    /// Distribution of the keys; uniform by default.
    pub key_choice: KeyChoice,
    /// Number of distinct values per register, each write choosing one at random; with 0, the
    /// default, no value is written twice to a register.
    pub values: u32,
    /// Number of writes after which a key is replaced by a new one; with 0, the default, keys stay.
    pub writes_per_key: u32,
    /// Share of transactions that abort; none by default.
    pub aborted_share: f64,
    /// Share of transactions whose outcome the client never learns; none by default.
    ///
    /// Every other one of them takes effect. Their reads are not recorded.
    pub indeterminate_share: f64,
    /// Records when each operation ran; off by default.
    pub is_timed: bool,
    /// Largest lag of a store: the number of transactions per session that a new one may not see;
    /// 16 by default.
    pub lag: u32,
    /// Anomalies to plant, each at a random position and on its own keys; none by default.
    pub anomalies: Vec<Anomaly>,
    /// Seed of every random choice; 0 by default.
    pub seed: u64,
}

impl Default for TransactionWorkload {
    fn default() -> Self {
        Self {
            store: Store::Ser,
            order: ClientOrder::Session,
            sessions: 4,
            operations: 100,
            keys: 10,
            sizes: 1..=8,
            read_share: 0.5,
            data: DataKind::Registers,
            key_choice: KeyChoice::default(),
            values: 0,
            writes_per_key: 0,
            aborted_share: 0.0,
            indeterminate_share: 0.0,
            is_timed: false,
            lag: 16,
            anomalies: Vec::new(),
            seed: 0,
        }
    }
}

/// The reason why a transaction workload cannot run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum TransactionWorkloadError {
    /// There is no session.
    #[error("a workload needs at least one session")]
    NoSessions,
    /// There is no key.
    #[error("a workload needs at least one key")]
    NoKeys,
    /// The range of sizes is empty or starts at 0.
    #[error("a transaction cannot have {least} to {greatest} operations")]
    Sizes {
        /// Least number of operations.
        least: u32,
        /// Greatest number of operations.
        greatest: u32,
    },
    /// A share is not a number from 0 to 1.
    #[error("the share of {of} is {share}, which is not between 0 and 1")]
    Share {
        /// The thing that it is a share of.
        of: &'static str,
        /// The share.
        share: f64,
    },
    /// Aborted and indeterminate transactions together are more than all.
    #[error(
        "aborted and indeterminate transactions together have the share {sum}, which is more than 1"
    )]
    Outcomes {
        /// Their sum.
        sum: f64,
    },
    /// The skew is not a number from 0 to [`Workload::MAX_SKEW`].
    #[error("the skew is {skew}, which is not between 0 and {max}", max = Workload::MAX_SKEW)]
    Skew {
        /// The skew.
        skew: f64,
    },
    /// The number of hot keys is 0 or exceeds the number of keys.
    #[error("{hot} of {keys} keys cannot be hot")]
    HotKeys {
        /// Number of hot keys.
        hot: u32,
        /// Number of keys.
        keys: u32,
    },
    /// Elements of lists must be distinct.
    #[error("values cannot repeat in lists; leave out the number of values, or use registers")]
    RepeatedElements,
    /// An anomaly needs more sessions than there are.
    #[error("to plant {anomaly} there must be at least {needed} sessions, not {sessions}")]
    TooFewSessions {
        /// The anomaly.
        anomaly: Anomaly,
        /// Number of sessions that it needs.
        needed: u32,
        /// Number of sessions.
        sessions: u32,
    },
    /// An anomaly shows only in lists.
    #[error("{anomaly} can be planted only in lists")]
    NeedsLists {
        /// The anomaly.
        anomaly: Anomaly,
    },
    /// The workload has more operations and keys than a history holds.
    #[error("{operations} operations and {keys} keys are more than a history holds")]
    TooManyOperations {
        /// Number of operations.
        operations: u32,
        /// Number of keys.
        keys: u32,
    },
    /// The store would need more than [`Workload::MAX_CELLS`] cells of memory.
    #[error(
        "{sessions} sessions with a lag of {lag} need {cells} cells of memory, more than {max}",
        max = Workload::MAX_CELLS
    )]
    TooManyCells {
        /// Number of sessions.
        sessions: u32,
        /// The lag.
        lag: u32,
        /// Number of cells.
        cells: u128,
    },
}

impl TransactionWorkload {
    /// Checks that the workload can run.
    pub fn validate(&self) -> Result<(), TransactionWorkloadError> {
        use TransactionWorkloadError as Error;
        let &Self { sessions, operations, keys, lag, .. } = self;
        if sessions == 0 {
            return Err(Error::NoSessions);
        }
        if keys == 0 {
            return Err(Error::NoKeys);
        }
        let (&least, &greatest) = (self.sizes.start(), self.sizes.end());
        if least == 0 || least > greatest {
            return Err(Error::Sizes { least, greatest });
        }
        let mut shares = vec![
            ("reads", self.read_share),
            ("aborted transactions", self.aborted_share),
            ("indeterminate transactions", self.indeterminate_share),
        ];
        match self.key_choice {
            KeyChoice::Zipf { skew } if !(0.0..=Workload::MAX_SKEW).contains(&skew) => {
                return Err(Error::Skew { skew });
            }
            KeyChoice::HotSpot { keys: hot, .. } if hot == 0 || hot > keys => {
                return Err(Error::HotKeys { hot, keys });
            }
            KeyChoice::HotSpot { share, .. } => shares.push(("operations on hot keys", share)),
            KeyChoice::Zipf { .. } => {}
        }
        for (of, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return Err(Error::Share { of, share });
            }
        }
        let sum = self.aborted_share + self.indeterminate_share;
        // Shares whose decimal sum is 1 may exceed it a little in binary.
        if sum > 1.0 + 1e-9 {
            return Err(Error::Outcomes { sum });
        }
        if self.data == DataKind::Lists && self.values > 0 {
            return Err(Error::RepeatedElements);
        }
        for &anomaly in &self.anomalies {
            let needed = anomaly.sessions();
            if needed > sessions {
                return Err(Error::TooFewSessions { anomaly, needed, sessions });
            }
            if anomaly.needs_lists() && self.data != DataKind::Lists {
                return Err(Error::NeedsLists { anomaly });
            }
        }
        if u64::from(operations) * 2 + u64::from(keys) >= u64::from(u32::MAX) {
            return Err(Error::TooManyOperations { operations, keys });
        }
        let cells = u128::from(sessions) * u128::from(sessions) * (u128::from(lag) + 3);
        if cells > Workload::MAX_CELLS {
            return Err(Error::TooManyCells { sessions, lag, cells });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_and_orders_are_found_by_name() {
        for store in Store::ALL {
            assert_eq!(store.to_string().parse(), Ok(store));
            assert_eq!(store.to_string().to_uppercase().parse(), Ok(store));
            let text = store.description();
            assert!(text.ends_with('.') && !text.contains(". "), "{text}");
        }
        for order in ClientOrder::ALL {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        assert_eq!(
            "rr".parse::<Store>().unwrap_err().to_string(),
            "no store is called \"rr\"; the stores are rc, ra, tcc, pc, psi, si and ser"
        );
        assert!("strict".parse::<ClientOrder>().is_err());
    }

    #[test]
    fn a_workload_that_cannot_run_is_refused() {
        let fine = TransactionWorkload::default;
        let hot = |keys, share| KeyChoice::HotSpot { keys, share };
        let cases: [(TransactionWorkload, &str); 14] = [
            (
                TransactionWorkload { sessions: 0, ..fine() },
                "a workload needs at least one session",
            ),
            (TransactionWorkload { keys: 0, ..fine() }, "a workload needs at least one key"),
            (
                TransactionWorkload { sizes: 0..=3, ..fine() },
                "a transaction cannot have 0 to 3 operations",
            ),
            (
                TransactionWorkload { sizes: RangeInclusive::new(4, 3), ..fine() },
                "a transaction cannot have 4 to 3 operations",
            ),
            (
                TransactionWorkload { read_share: 1.5, ..fine() },
                "the share of reads is 1.5, which is not between 0 and 1",
            ),
            (
                TransactionWorkload { aborted_share: 0.75, indeterminate_share: 0.5, ..fine() },
                "aborted and indeterminate transactions together have the share 1.25, which is more \
                 than 1",
            ),
            (
                TransactionWorkload { key_choice: KeyChoice::Zipf { skew: 17.0 }, ..fine() },
                "the skew is 17, which is not between 0 and 16",
            ),
            (
                TransactionWorkload { key_choice: hot(11, 0.5), ..fine() },
                "11 of 10 keys cannot be hot",
            ),
            (
                TransactionWorkload { key_choice: hot(1, 2.0), ..fine() },
                "the share of operations on hot keys is 2, which is not between 0 and 1",
            ),
            (
                TransactionWorkload { data: DataKind::Lists, values: 3, ..fine() },
                "values cannot repeat in lists; leave out the number of values, or use registers",
            ),
            (
                TransactionWorkload { sessions: 3, anomalies: vec![Anomaly::LongFork], ..fine() },
                "to plant long-fork there must be at least 4 sessions, not 3",
            ),
            (
                TransactionWorkload { anomalies: vec![Anomaly::IncompatibleOrder], ..fine() },
                "incompatible-order can be planted only in lists",
            ),
            (
                TransactionWorkload { operations: u32::MAX, ..fine() },
                "4294967295 operations and 10 keys are more than a history holds",
            ),
            (
                TransactionWorkload { sessions: 100_000, ..fine() },
                "100000 sessions with a lag of 16 need 190000000000 cells of memory, more than \
                 134217728",
            ),
        ];
        for (workload, message) in cases {
            assert_eq!(workload.validate().unwrap_err().to_string(), message);
        }
        assert_eq!(fine().validate(), Ok(()));
    }
}
