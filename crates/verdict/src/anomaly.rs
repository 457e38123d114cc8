//! Anomalies: the names that the literature gives to cycles of dependencies and to bad reads.

use consistory_history::{History, KeyId, OpId};

use crate::transactions::{BadRead, Dependency, Level, Relates, TransactionCertificate};

/// A class of anomalies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Anomaly {
    /// A read that no level allows.
    BadRead(BadRead),
    /// Version orders form a cycle (G0, dirty write).
    DirtyWrite,
    /// Transactions depend on each other in a cycle (G1c).
    CircularDependency,
    /// A transaction reads from another one, and afterwards reads an older version of a key that
    /// the other one wrote.
    NonMonotonicRead,
    /// A transaction sees some writes of another transaction and misses others.
    FracturedRead,
    /// A transaction misses a write of its own session.
    SessionMiss,
    /// A transaction misses a write that had ended before it began.
    StaleRead,
    /// A transaction misses a write on which it depends through other transactions.
    CausalityViolation,
    /// Two transactions read the same version and both overwrite it.
    LostUpdate,
    /// A transaction sees one state of a key and an earlier state of another key (G-single).
    ReadSkew,
    /// Two readers see two writes in opposite orders.
    LongFork,
    /// A cycle with several anti-dependencies, no two of them in a row (G-nonadjacent).
    NonAdjacent,
    /// Two transactions each miss the other's write (G2-item).
    WriteSkew,
    /// A cycle with two anti-dependencies in a row (G2-item).
    AntiDependencyCycle,
}

impl Anomaly {
    /// Classifies a cycle of dependencies of a history.
    pub fn of_cycle(history: &History, cycle: &[Dependency]) -> Anomaly {
        Anomaly::of_shape(cycle, |read| history.key_of(read))
    }

    /// Classifies a cycle of dependencies, given the keys of reads.
    fn of_shape(cycle: &[Dependency], key_of: impl Fn(OpId) -> Option<KeyId>) -> Anomaly {
        let is_rw = |edge: &Dependency| matches!(edge.relation, Relates::Rw { .. });
        let is_ww = |edge: &Dependency| matches!(edge.relation, Relates::Ww { .. });
        let is_wr = |edge: &Dependency| matches!(edge.relation, Relates::Wr { .. });
        let anti = cycle.iter().filter(|edge| is_rw(edge)).count();
        let others = || cycle.iter().filter(|edge| !is_rw(edge));
        let before = |at: usize| &cycle[(at + cycle.len() - 1) % cycle.len()];
        let preceded = |fits: &dyn Fn(&Dependency) -> bool| {
            (0..cycle.len()).all(|at| !is_rw(&cycle[at]) || fits(before(at)))
        };
        let is_of_one_key = || {
            let mut keys = cycle.iter().map(|edge| match edge.relation {
                Relates::Rw { read } => key_of(read),
                _ => None,
            });
            keys.next().flatten().is_some_and(|first| keys.all(|key| key == Some(first)))
        };
        match anti {
            0 if cycle.iter().all(is_ww) => Anomaly::DirtyWrite,
            0 => Anomaly::CircularDependency,
            1 if cycle.len() == 2 => {
                let other = others().next().map(|edge| edge.relation);
                let rw = cycle.iter().find(|edge| is_rw(edge)).map(|edge| edge.relation);
                match (other, rw) {
                    (Some(Relates::Wr { read }), Some(Relates::Rw { read: later })) => {
                        if read < later {
                            Anomaly::NonMonotonicRead
                        } else {
                            Anomaly::FracturedRead
                        }
                    }
                    (Some(Relates::So), _) => Anomaly::SessionMiss,
                    (Some(Relates::Rt), _) => Anomaly::StaleRead,
                    (Some(Relates::Ww { key }), Some(Relates::Rw { read }))
                        if key_of(read) == Some(key) =>
                    {
                        Anomaly::LostUpdate
                    }
                    _ => Anomaly::ReadSkew,
                }
            }
            1 if !others().any(is_ww) => Anomaly::CausalityViolation,
            1 => Anomaly::ReadSkew,
            2 if cycle.len() == 4 && preceded(&is_wr) => Anomaly::LongFork,
            // Each transaction overwrites the key without having seen the other's write to it.
            2 if cycle.len() == 2 && is_of_one_key() => Anomaly::LostUpdate,
            2 if cycle.len() == 2 => Anomaly::WriteSkew,
            _ if preceded(&|edge| !is_rw(edge)) => Anomaly::NonAdjacent,
            _ => Anomaly::AntiDependencyCycle,
        }
    }

    /// Classifies a violation: by the cycle of its first case or, if only a stronger level forbids
    /// that cycle, by a cycle that rules out another version order.
    pub fn of_certificate(
        history: &History,
        certificate: &TransactionCertificate,
    ) -> Option<Anomaly> {
        match certificate {
            TransactionCertificate::Order { .. } => None,
            TransactionCertificate::BadRead { kind, .. } => Some(Anomaly::BadRead(*kind)),
            other => {
                let first = other.cycles().next()?;
                let levels = Anomaly::weakest_levels(certificate);
                let is_as_strong = |cycle: &&[Dependency]| minimal(|l| forbids(l, cycle)) == levels;
                let found = all_cycles(other).into_iter().find(is_as_strong);
                Some(Anomaly::of_cycle(history, found.unwrap_or(first)))
            }
        }
    }

    /// Returns the weakest levels that a certificate refutes: those that forbid all its cycles,
    /// including the cycles that justify version orders. There are at most two, `pc` and `psi`.
    pub fn weakest_levels(certificate: &TransactionCertificate) -> Vec<Level> {
        match certificate {
            TransactionCertificate::Order { .. } => Vec::new(),
            TransactionCertificate::BadRead { .. } => vec![Level::ReadCommitted],
            other => {
                let cycles = all_cycles(other);
                minimal(|level| cycles.iter().all(|cycle| forbids(level, cycle)))
            }
        }
    }

    /// Returns the name that appears in reports.
    pub fn name(self) -> &'static str {
        match self {
            Anomaly::BadRead(kind) => kind.name(),
            Anomaly::DirtyWrite => "G0",
            Anomaly::CircularDependency => "G1c",
            Anomaly::NonMonotonicRead => "NonMonotonicRead",
            Anomaly::FracturedRead => "FracturedRead",
            Anomaly::SessionMiss => "SessionMiss",
            Anomaly::StaleRead => "StaleRead",
            Anomaly::CausalityViolation => "CausalityViolation",
            Anomaly::LostUpdate => "LostUpdate",
            Anomaly::ReadSkew => "G-single",
            Anomaly::LongFork => "LongFork",
            Anomaly::NonAdjacent => "G-nonadjacent",
            Anomaly::WriteSkew => "WriteSkew",
            Anomaly::AntiDependencyCycle => "G2-item",
        }
    }

    /// Returns a description of the anomaly in one sentence.
    pub fn description(self) -> &'static str {
        match self {
            Anomaly::BadRead(BadRead::Internal) => {
                "internal read: a transaction does not see its own write"
            }
            Anomaly::BadRead(BadRead::Aborted) => {
                "aborted read (G1a): a transaction reads what an aborted one wrote"
            }
            Anomaly::BadRead(BadRead::Intermediate) => {
                "intermediate read (G1b): a transaction reads a value that its writer overwrote"
            }
            Anomaly::BadRead(BadRead::Future) => {
                "future read: a transaction reads what it writes only later"
            }
            Anomaly::BadRead(BadRead::ThinAir) => {
                "thin-air read: a transaction reads a value that was never written"
            }
            Anomaly::BadRead(BadRead::IncompatibleOrder) => {
                "incompatible orders: lists that were read do not fit into one version order"
            }
            Anomaly::DirtyWrite => "dirty write (G0): versions overwrite each other in a circle",
            Anomaly::CircularDependency => {
                "circular information flow (G1c): transactions depend on each other in a circle"
            }
            Anomaly::NonMonotonicRead => {
                "non-monotonic read: after reading from a transaction, an older version is read"
            }
            Anomaly::FracturedRead => {
                "fractured read: a transaction sees part of another's writes and misses the rest"
            }
            Anomaly::SessionMiss => {
                "lost session order: a transaction misses an earlier write of its own session"
            }
            Anomaly::StaleRead => {
                "stale read: a transaction misses a write that had ended before it began"
            }
            Anomaly::CausalityViolation => {
                "causality violation: a transaction misses a write that it depends on"
            }
            Anomaly::LostUpdate => {
                "lost update: a transaction overwrites a version that it did not see"
            }
            Anomaly::ReadSkew => {
                "read skew (G-single): a transaction misses a write that is before it"
            }
            Anomaly::LongFork => "long fork: two readers see two writes in opposite orders",
            Anomaly::NonAdjacent => {
                "G-nonadjacent: a cycle with several missed writes, no two in a row"
            }
            Anomaly::WriteSkew => {
                "write skew (G2-item): two transactions each miss what the other writes"
            }
            Anomaly::AntiDependencyCycle => {
                "anti-dependency cycle (G2-item): transactions miss each other's writes in a circle"
            }
        }
    }

    /// Returns the weakest level that rules the anomaly out.
    pub fn weakest_violated(self) -> Level {
        match self {
            Anomaly::BadRead(_)
            | Anomaly::DirtyWrite
            | Anomaly::CircularDependency
            | Anomaly::NonMonotonicRead => Level::ReadCommitted,
            Anomaly::FracturedRead | Anomaly::SessionMiss | Anomaly::StaleRead => Level::ReadAtomic,
            Anomaly::CausalityViolation => Level::Causal,
            Anomaly::LostUpdate | Anomaly::ReadSkew => Level::ParallelSnapshot,
            Anomaly::LongFork => Level::Prefix,
            Anomaly::NonAdjacent => Level::Snapshot,
            Anomaly::WriteSkew | Anomaly::AntiDependencyCycle => Level::Serializable,
        }
    }
}

/// Checks whether a level forbids a cycle of dependencies in every history.
fn forbids(level: Level, cycle: &[Dependency]) -> bool {
    let is_rw = |edge: &Dependency| matches!(edge.relation, Relates::Rw { .. });
    let is_ww = |edge: &Dependency| matches!(edge.relation, Relates::Ww { .. });
    let before = |at: usize| &cycle[(at + cycle.len() - 1) % cycle.len()];
    let preceded = |fits: &dyn Fn(&Dependency) -> bool| {
        (0..cycle.len()).all(|at| !is_rw(&cycle[at]) || fits(before(at)))
    };
    match level {
        Level::ReadCommitted | Level::ReadAtomic | Level::Causal => {
            // A lost update and a read skew are forbidden by the same levels, so the key does not
            // matter.
            level.implies(Anomaly::of_shape(cycle, |_| None).weakest_violated())
        }
        Level::ParallelSnapshot => cycle.iter().filter(|edge| is_rw(edge)).count() <= 1,
        Level::Prefix => preceded(&|edge| !is_rw(edge) && !is_ww(edge)),
        Level::Snapshot => preceded(&|edge| !is_rw(edge)),
        Level::Serializable => true,
    }
}

/// Returns the minimal levels of an upward closed set.
fn minimal(is_in: impl Fn(Level) -> bool) -> Vec<Level> {
    let has_weaker =
        |level: Level| Level::ALL.into_iter().any(|l| l != level && level.implies(l) && is_in(l));
    Level::ALL.into_iter().filter(|&level| is_in(level) && !has_weaker(level)).collect()
}

/// Returns the cycles of a certificate, starting with the one of its first case, and the cycles
/// that justify the version orders in them.
fn all_cycles(certificate: &TransactionCertificate) -> Vec<&[Dependency]> {
    let mut found: Vec<&[Dependency]> = certificate.cycles().collect();
    let mut open: Vec<&Dependency> = found.iter().copied().flatten().collect();
    while let Some(edge) = open.pop() {
        // The versions are in this order because the opposite one would close a cycle.
        if matches!(edge.relation, Relates::Ww { .. }) && !edge.because.is_empty() {
            found.push(&edge.because);
        }
        open.extend(&edge.because);
    }
    found
}
