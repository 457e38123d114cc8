//! Read atomic and read committed: random visibility.
//!
//! Under *read atomic* a transaction sees a set of whole transactions that contains the earlier
//! ones of its session; there is no other condition on the set. A hash of both transactions decides
//! whether one sees the other, so the set is never stored.
//!
//! Under *read committed* every read chooses independently among the committed versions of its key.
//! Once a transaction has read from another, however, it does not read older versions of the keys
//! that the other wrote. The choice goes from the newest version to older ones and stops there.
//!
//! Both stores see everything that committed more than [`TransactionWorkload::lag`] transactions
//! per session ago.

use consistory_random::mix;

use super::versions::{Commit, Effect, Isolation, KeyVersions, Version};
use super::workload::{ClientOrder, TransactionWorkload};
use crate::random::Random;

/// Positions in the commit order, shared by both stores.
struct Positions {
    /// Number of commits after which everything is visible.
    window: u32,
    /// Number of commits so far.
    now: u32,
    /// Number of writers of each client.
    sequences: Vec<u32>,
}

impl Positions {
    fn new(workload: &TransactionWorkload) -> Self {
        Self {
            window: workload.lag.saturating_mul(workload.sessions),
            now: 0,
            sequences: vec![0; workload.sessions as usize],
        }
    }

    fn commit(&mut self, client: usize, effect: Effect) -> Option<Commit> {
        (effect == Effect::Writes).then(|| {
            self.now += 1;
            self.sequences[client] += 1;
            Commit { position: self.now, sequence: self.sequences[client] }
        })
    }

    fn is_settled(&self, version: &Version) -> bool {
        version.position.saturating_add(self.window) <= self.now
    }
}

/// A store whose transactions see sets of whole transactions.
pub(super) struct ReadAtomic {
    positions: Positions,
    is_realtime: bool,
    /// Number of commits when each client's transaction began.
    begun: Vec<u32>,
    /// Decides from a version's position whether the running transaction sees its writer.
    salt: u64,
    /// Out of eight recent transactions, the number that the running transaction does not see.
    unseen: u64,
    random: Random,
}

impl ReadAtomic {
    pub(super) fn new(workload: &TransactionWorkload, random: Random) -> Self {
        Self {
            positions: Positions::new(workload),
            is_realtime: workload.order == ClientOrder::Realtime,
            begun: vec![0; workload.sessions as usize],
            salt: 0,
            unseen: 0,
            random,
        }
    }

    fn is_visible(&self, client: usize, version: &Version) -> bool {
        version.client == client as u32
            || self.positions.is_settled(version)
            || (self.is_realtime && version.position <= self.begun[client])
            || version.position == 0
            || mix(self.salt ^ u64::from(version.position)) % 8 >= self.unseen
    }
}

impl Isolation for ReadAtomic {
    fn begin(&mut self, client: usize) {
        self.begun[client] = self.positions.now;
    }

    fn prepare(&mut self, _client: usize, _written: &[Version]) {
        self.salt = u64::from(self.random.below(u32::MAX)) << 32;
        self.unseen = [0, 2, 4, 6][self.random.below(4) as usize];
    }

    fn version(&mut self, client: usize, key: &KeyVersions) -> Version {
        let visible = key.newest_first().find(|version| self.is_visible(client, version));
        visible.expect("the initial version is always visible")
    }

    fn commit(&mut self, client: usize, effect: Effect) -> Option<Commit> {
        self.positions.commit(client, effect)
    }

    fn is_settled(&self, version: &Version) -> bool {
        self.positions.is_settled(version)
    }

    // Whether a later transaction sees another one does not depend on what this client has seen.
    fn catch_up(&mut self, _client: usize) {}
}

/// A store whose reads choose committed versions one by one.
pub(super) struct ReadCommitted {
    positions: Positions,
    /// Positions of the transactions that the transaction being run has read from.
    read_from: Vec<u32>,
    random: Random,
}

impl ReadCommitted {
    pub(super) fn new(workload: &TransactionWorkload, random: Random) -> Self {
        Self { positions: Positions::new(workload), read_from: Vec::new(), random }
    }
}

impl Isolation for ReadCommitted {
    fn begin(&mut self, _client: usize) {}

    fn prepare(&mut self, _client: usize, _written: &[Version]) {
        self.read_from.clear();
    }

    fn version(&mut self, _client: usize, key: &KeyVersions) -> Version {
        let chosen = key.newest_first().find(|version| {
            version.position == 0
                || self.positions.is_settled(version)
                || self.read_from.contains(&version.position)
                || self.random.once_in(2)
        });
        let version = chosen.expect("the initial version is always chosen");
        self.read_from.push(version.position);
        version
    }

    fn commit(&mut self, client: usize, effect: Effect) -> Option<Commit> {
        self.positions.commit(client, effect)
    }

    fn is_settled(&self, version: &Version) -> bool {
        self.positions.is_settled(version)
    }

    fn catch_up(&mut self, _client: usize) {}
}
