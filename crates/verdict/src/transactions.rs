//! Isolation levels and the certificates of verdicts about them.
//!
//! A transaction is named by its first operation. Certificates use the dependencies of the
//! literature between transactions: `so` (session order), `rt` (real time), `wr` (reads from), `ww`
//! (version order) and `rw` (anti-dependency).

use std::fmt;

use consistory_history::{KeyId, OpId};

use crate::Verdict;

/// An isolation level.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Read committed.
    ReadCommitted,
    /// Read atomic.
    ReadAtomic,
    /// Transactional causal consistency.
    Causal,
    /// Prefix consistency.
    Prefix,
    /// Parallel snapshot isolation.
    ParallelSnapshot,
    /// Snapshot isolation.
    Snapshot,
    /// Serializability.
    Serializable,
}

impl Level {
    /// All levels, each after the levels that it implies.
    pub const ALL: [Level; 7] = [
        Level::ReadCommitted,
        Level::ReadAtomic,
        Level::Causal,
        Level::Prefix,
        Level::ParallelSnapshot,
        Level::Snapshot,
        Level::Serializable,
    ];

    /// Returns the id that the command line and reports use.
    pub fn id(self) -> &'static str {
        match self {
            Level::ReadCommitted => "rc",
            Level::ReadAtomic => "ra",
            Level::Causal => "tcc",
            Level::Prefix => "pc",
            Level::ParallelSnapshot => "psi",
            Level::Snapshot => "si",
            Level::Serializable => "ser",
        }
    }

    /// Returns the level's full name.
    pub fn name(self) -> &'static str {
        match self {
            Level::ReadCommitted => "read committed",
            Level::ReadAtomic => "read atomic",
            Level::Causal => "transactional causal consistency",
            Level::Prefix => "prefix consistency",
            Level::ParallelSnapshot => "parallel snapshot isolation",
            Level::Snapshot => "snapshot isolation",
            Level::Serializable => "serializability",
        }
    }

    /// Finds a level by its id, ignoring case.
    pub fn find(id: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.id().eq_ignore_ascii_case(id))
    }

    /// Checks whether every history of this level also satisfies `weaker`; each level implies
    /// itself.
    pub fn implies(self, weaker: Level) -> bool {
        let incomparable = matches!(
            (self, weaker),
            (Level::Prefix, Level::ParallelSnapshot) | (Level::ParallelSnapshot, Level::Prefix)
        );
        weaker <= self && !incomparable
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// The order of transactions that the clients observed and that a level must respect.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ClientOrder {
    /// No order: Adya's plain levels.
    None,
    /// The order of every session.
    #[default]
    Session,
    /// The order of every session, and each transaction before those that began after it ended.
    Realtime,
}

impl ClientOrder {
    /// All orders, the weakest first.
    pub const ALL: [ClientOrder; 3] =
        [ClientOrder::None, ClientOrder::Session, ClientOrder::Realtime];

    /// Returns the word that the command line uses.
    pub fn id(self) -> &'static str {
        match self {
            ClientOrder::None => "none",
            ClientOrder::Session => "session",
            ClientOrder::Realtime => "realtime",
        }
    }

    /// Finds an order by the word that the command line uses.
    pub fn find(id: &str) -> Option<ClientOrder> {
        ClientOrder::ALL.into_iter().find(|order| order.id() == id)
    }
}

/// Kind of dependency of one transaction on another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Relates {
    /// Session order.
    So,
    /// Real time: the first ended before the second began.
    Rt,
    /// The second reads from the first.
    Wr {
        /// The read, an operation of the second transaction.
        read: OpId,
    },
    /// The first wrote an earlier version of a key than the second.
    Ww {
        /// The key.
        key: KeyId,
    },
    /// The first read a version that the second overwrote, perhaps not as the next version.
    Rw {
        /// The read, an operation of the first transaction.
        read: OpId,
    },
}

impl Relates {
    /// Returns the relation's name in the literature.
    pub fn name(self) -> &'static str {
        match self {
            Relates::So => "so",
            Relates::Rt => "rt",
            Relates::Wr { .. } => "wr",
            Relates::Ww { .. } => "ww",
            Relates::Rw { .. } => "rw",
        }
    }
}

/// A dependency between two transactions, with the reason why it holds.
///
/// `so`, `rt` and `wr` are visible in the history and need no reason. A `ww` holds if an enclosing
/// case or an earlier edge of the same certificate ordered its transactions, if a list that was
/// read shows it (`list`), or if its opposite closes the forbidden cycle `because`, whose edges may
/// use that opposite as a premise. An `rw` needs as its only premise in `because` the `ww` from the
/// transaction that it read from; after a read of the initial value it needs none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dependency {
    /// First operation of the transaction where the edge starts.
    pub from: OpId,
    /// First operation of the transaction where the edge ends.
    pub to: OpId,
    /// The kind of dependency.
    pub relation: Relates,
    /// For `ww`, a read whose list contains the appends of the first transaction, and contains
    /// those of the second later or not at all.
    pub list: Option<OpId>,
    /// The premises.
    pub because: Vec<Dependency>,
}

impl Dependency {
    /// Returns a dependency without premises.
    pub fn given(from: OpId, to: OpId, relation: Relates) -> Self {
        Dependency { from, to, relation, list: None, because: Vec::new() }
    }
}

/// A read that no level allows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BadRead {
    /// A read after a write of its own transaction does not return that write.
    Internal,
    /// The value was written only by aborted transactions (G1a).
    Aborted,
    /// Every transaction that wrote the value overwrote it (G1b).
    Intermediate,
    /// Only the reading transaction wrote the value, and wrote it later.
    Future,
    /// No transaction wrote the value.
    ThinAir,
    /// Two lists are not prefixes of one version order, or a list separates, reorders or repeats
    /// appends of one transaction.
    IncompatibleOrder,
}

impl BadRead {
    /// All kinds.
    pub const ALL: [BadRead; 6] = [
        BadRead::Internal,
        BadRead::Aborted,
        BadRead::Intermediate,
        BadRead::Future,
        BadRead::ThinAir,
        BadRead::IncompatibleOrder,
    ];

    /// Returns the name of the pattern.
    pub fn name(self) -> &'static str {
        match self {
            BadRead::Internal => "InternalRead",
            BadRead::Aborted => "AbortedRead",
            BadRead::Intermediate => "IntermediateRead",
            BadRead::Future => "FutureRead",
            BadRead::ThinAir => "ThinAirRead",
            BadRead::IncompatibleOrder => "IncompatibleOrder",
        }
    }
}

/// The certificate of a verdict about an isolation level.
///
/// `wr` lists the write that each ambiguous read reads from (a key's initial write for the initial
/// transaction); a read with one candidate is not listed. Transactions that do not count are
/// omitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransactionCertificate {
    /// Consistent: a commit order.
    ///
    /// For `ser` every read takes the last version before its transaction. For `si` and `pc` it
    /// takes the last version in its transaction's snapshot, which is a prefix of the order. For
    /// `psi`, `tcc`, `ra` and `rc` it takes the last version among the transactions that its
    /// transaction knows.
    Order {
        /// The transactions, by their first operations.
        order: Vec<OpId>,
        /// For `si` and `pc`, the length of each transaction's snapshot as a prefix of the order.
        /// Empty otherwise.
        snapshots: Vec<u32>,
        /// Choices of `wr`.
        wr: Vec<(OpId, OpId)>,
    },
    /// Violation: a cycle that the level forbids.
    Cycle {
        /// The dependencies, each starting where the previous one ends.
        edges: Vec<Dependency>,
    },
    /// Violation in both orders of two transactions that wrote versions of a key.
    SplitOrder {
        /// The key.
        key: KeyId,
        /// The first operations of the transactions.
        writers: [OpId; 2],
        /// The proof if the first transaction wrote the earlier version, and the proof if the
        /// second one did.
        branches: Box<[TransactionCertificate; 2]>,
    },
    /// Violation for every source of a read.
    SplitRead {
        /// The read.
        read: OpId,
        /// Each candidate, which is a write, with the proof that rules it out.
        branches: Vec<(OpId, TransactionCertificate)>,
    },
    /// Violation: a read that no level allows.
    BadRead {
        /// Kind of bad read.
        kind: BadRead,
        /// The read.
        read: OpId,
        /// For an incompatible order, the read of the other list, which may be the same read.
        other: Option<OpId>,
    },
}

impl TransactionCertificate {
    /// Returns the verdict that the certificate proves.
    pub fn verdict(&self) -> Verdict {
        match self {
            TransactionCertificate::Order { .. } => Verdict::Consistent,
            _ => Verdict::Violation,
        }
    }

    /// Returns the name of the kind of certificate.
    pub fn kind(&self) -> &'static str {
        match self {
            TransactionCertificate::Order { .. } => "order",
            TransactionCertificate::Cycle { .. } => "cycle",
            TransactionCertificate::SplitOrder { .. }
            | TransactionCertificate::SplitRead { .. } => "cases",
            TransactionCertificate::BadRead { .. } => "bad-read",
        }
    }

    /// Counts the transactions and dependencies that the certificate lists.
    pub fn size(&self) -> usize {
        fn edges(list: &[Dependency]) -> usize {
            list.iter().map(|edge| 1 + edges(&edge.because)).sum()
        }
        match self {
            TransactionCertificate::Order { order, snapshots, wr } => {
                order.len() + snapshots.len() + wr.len()
            }
            TransactionCertificate::Cycle { edges: list } => edges(list),
            TransactionCertificate::SplitOrder { branches, .. } => {
                2 + branches.iter().map(Self::size).sum::<usize>()
            }
            TransactionCertificate::SplitRead { branches, .. } => {
                1 + branches.iter().map(|(_, proof)| 1 + proof.size()).sum::<usize>()
            }
            TransactionCertificate::BadRead { .. } => 1,
        }
    }

    /// Iterates over the cycles of all cases.
    pub fn cycles(&self) -> impl Iterator<Item = &[Dependency]> {
        let mut open = vec![self];
        std::iter::from_fn(move || {
            loop {
                match open.pop()? {
                    TransactionCertificate::Cycle { edges } => return Some(&edges[..]),
                    TransactionCertificate::SplitOrder { branches, .. } => {
                        open.extend(branches.iter().rev());
                    }
                    TransactionCertificate::SplitRead { branches, .. } => {
                        open.extend(branches.iter().rev().map(|(_, proof)| proof));
                    }
                    _ => {}
                }
            }
        })
    }
}
