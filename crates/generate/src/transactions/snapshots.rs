//! Prefix consistency, snapshot isolation and serializability: snapshots of the commit order.
//!
//! A transaction reads the state after a prefix of the commit order. The three levels differ in the
//! prefixes that a writing transaction may read:
//! - *prefix consistency*: any that contains its session's earlier transactions;
//! - *snapshot isolation*: one that also contains every earlier version of the keys that it writes
//!   (first committer wins, without the aborts: the snapshot is chosen at commit);
//! - *serializability*: all that committed before it.
//!
//! A read-only transaction takes its position in the commit order right after its snapshot, so the
//! snapshot may be an old one even in a serializable store; later transactions of its session start
//! from there.

use super::versions::{Commit, Effect, Isolation, KeyVersions, Version};
use super::workload::{ClientOrder, Store, TransactionWorkload};
use crate::random::Random;

/// A store whose transactions read snapshots.
pub(super) struct Snapshots {
    store: Store,
    is_realtime: bool,
    /// Largest age of a snapshot, in commits.
    window: u32,
    /// Number of commits so far.
    now: u32,
    /// Least snapshot that each client may read.
    floors: Vec<u32>,
    /// Number of commits when each client's transaction began.
    begun: Vec<u32>,
    /// Snapshot of the transaction that is being run.
    snapshot: u32,
    /// Number of writers of each client.
    sequences: Vec<u32>,
    random: Random,
}

impl Snapshots {
    pub(super) fn new(workload: &TransactionWorkload, store: Store, random: Random) -> Self {
        let clients = workload.sessions as usize;
        Self {
            store,
            is_realtime: workload.order == ClientOrder::Realtime,
            window: workload.lag.saturating_mul(workload.sessions),
            now: 0,
            floors: vec![0; clients],
            begun: vec![0; clients],
            snapshot: 0,
            sequences: vec![0; clients],
            random,
        }
    }
}

impl Isolation for Snapshots {
    fn begin(&mut self, client: usize) {
        self.begun[client] = self.now;
    }

    fn prepare(&mut self, client: usize, written: &[Version]) {
        let mut least = self.floors[client].max(self.now.saturating_sub(self.window));
        if self.is_realtime {
            least = least.max(self.begun[client]);
        }
        match self.store {
            Store::Ser if !written.is_empty() => least = self.now,
            Store::Si => {
                least = written.iter().map(|version| version.position).fold(least, u32::max);
            }
            _ => {}
        }
        let is_current = self.random.once_in(2);
        let age = if is_current { 0 } else { self.random.below(self.now - least + 1) };
        self.snapshot = self.now - age;
    }

    fn version(&mut self, _client: usize, key: &KeyVersions) -> Version {
        let is_in_snapshot = |version: &Version| version.position <= self.snapshot;
        key.newest_first().find(is_in_snapshot).expect("the initial version is in every snapshot")
    }

    fn commit(&mut self, client: usize, effect: Effect) -> Option<Commit> {
        if effect == Effect::ReadOnly {
            self.floors[client] = self.snapshot;
            return None;
        }
        self.now += 1;
        self.floors[client] = self.now;
        self.sequences[client] += 1;
        Some(Commit { position: self.now, sequence: self.sequences[client] })
    }

    fn is_settled(&self, version: &Version) -> bool {
        version.position.saturating_add(self.window) <= self.now
    }

    fn catch_up(&mut self, client: usize) {
        self.floors[client] = self.now;
    }
}
