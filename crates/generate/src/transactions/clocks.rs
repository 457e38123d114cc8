//! Transactional causal consistency and parallel snapshot isolation: vector clocks.
//!
//! A transaction sees a causally closed set of transactions: if it sees a transaction, it sees
//! everything that one saw, and it sees the earlier transactions of its session. Such a set is a
//! vector clock: the number of its writers per client. A read returns the last committed version of
//! its key in the set.
//!
//! Under *parallel snapshot isolation* the set of a transaction that writes a key contains every
//! earlier version of the key, so the writers of a key see each other (no lost updates).
//!
//! The set of a transaction starts from the set of its session and grows by the sets of some recent
//! transactions of random clients. No set lags behind a client by more than
//! [`TransactionWorkload::lag`] writers, so the clocks of a client's recent writers fit into a
//! ring. Cost: a few joins of clocks per transaction, each linear in the number of sessions.

use super::versions::{Commit, Effect, Isolation, KeyVersions, Version};
use super::workload::{ClientOrder, Store, TransactionWorkload};
use crate::random::Random;

/// Largest number of random clients whose recent transactions a new one sees.
const MAX_NEWS: u32 = 8;

/// A store whose transactions see causally closed sets.
///
/// Invariants: a client's own entry in its clock is its number of writers; `ring` holds the clocks
/// of each client's last `lag + 1` writers, each including the writer itself.
pub(super) struct Clocks {
    clients: usize,
    is_parallel_snapshot: bool,
    is_realtime: bool,
    lag: u32,
    /// Number of commits so far.
    now: u32,
    /// Number of writers of each client.
    heads: Vec<u32>,
    /// Clock of client c, at `c * clients`.
    clocks: Vec<u32>,
    /// Clock of writer n of client c, at `(c * (lag + 1) + n % (lag + 1)) * clients`.
    ring: Vec<u32>,
    /// Heads when the transaction of client c began, at `c * clients`; empty unless needed.
    begun: Vec<u32>,
    /// Clock of the transaction that is being run.
    view: Vec<u32>,
    random: Random,
}

impl Clocks {
    pub(super) fn new(workload: &TransactionWorkload, store: Store, random: Random) -> Self {
        let clients = workload.sessions as usize;
        let is_realtime = workload.order == ClientOrder::Realtime;
        Self {
            clients,
            is_parallel_snapshot: store == Store::Psi,
            is_realtime,
            lag: workload.lag,
            now: 0,
            heads: vec![0; clients],
            clocks: vec![0; clients * clients],
            ring: vec![0; clients * (workload.lag as usize + 1) * clients],
            begun: vec![0; if is_realtime { clients * clients } else { 0 }],
            view: vec![0; clients],
            random,
        }
    }

    /// Returns the position in the ring of the clock of a client's writer.
    fn slot(&self, client: usize, sequence: u32) -> usize {
        let ring = self.lag as usize + 1;
        (client * ring + sequence as usize % ring) * self.clients
    }

    /// Adds a recent writer and everything it saw to the view.
    fn see(&mut self, client: usize, sequence: u32) {
        if self.view[client] < sequence {
            let slot = self.slot(client, sequence);
            join(&mut self.view, &self.ring[slot..slot + self.clients]);
        }
    }

    fn is_visible(&self, version: &Version) -> bool {
        version.client == Version::NO_CLIENT
            || version.sequence <= self.view[version.client as usize]
    }
}

fn join(clock: &mut [u32], other: &[u32]) {
    for (mine, &theirs) in clock.iter_mut().zip(other) {
        *mine = theirs.max(*mine);
    }
}

impl Isolation for Clocks {
    fn begin(&mut self, client: usize) {
        if self.is_realtime {
            let at = client * self.clients;
            self.begun[at..at + self.clients].copy_from_slice(&self.heads);
        }
    }

    fn prepare(&mut self, client: usize, written: &[Version]) {
        let at = client * self.clients;
        self.view.copy_from_slice(&self.clocks[at..at + self.clients]);
        if self.is_realtime {
            join(&mut self.view, &self.begun[at..at + self.clients]);
        }
        for other in 0..self.clients {
            let oldest = self.heads[other].saturating_sub(self.lag);
            self.see(other, oldest);
        }
        if self.random.once_in(2) {
            for _ in 0..self.random.below(MAX_NEWS.min(self.clients as u32) + 1) {
                let other = self.random.below(self.clients as u32) as usize;
                let unseen = self.heads[other] - self.view[other];
                if unseen > 0 {
                    let sequence = self.view[other] + 1 + self.random.below(unseen);
                    self.see(other, sequence);
                }
            }
        }
        if self.is_parallel_snapshot {
            for version in written.iter().filter(|version| version.client != Version::NO_CLIENT) {
                self.see(version.client as usize, version.sequence);
            }
        }
    }

    fn version(&mut self, _client: usize, key: &KeyVersions) -> Version {
        let visible = key.newest_first().find(|version| self.is_visible(version));
        visible.expect("the initial version is always visible")
    }

    fn commit(&mut self, client: usize, effect: Effect) -> Option<Commit> {
        let commit = (effect == Effect::Writes).then(|| {
            self.now += 1;
            self.heads[client] += 1;
            let sequence = self.heads[client];
            self.view[client] = sequence;
            let slot = self.slot(client, sequence);
            self.ring[slot..slot + self.clients].copy_from_slice(&self.view);
            Commit { position: self.now, sequence }
        });
        let at = client * self.clients;
        self.clocks[at..at + self.clients].copy_from_slice(&self.view);
        commit
    }

    fn is_settled(&self, version: &Version) -> bool {
        version.client == Version::NO_CLIENT
            || version.sequence.saturating_add(self.lag) <= self.heads[version.client as usize]
    }

    fn catch_up(&mut self, client: usize) {
        let at = client * self.clients;
        self.clocks[at..at + self.clients].copy_from_slice(&self.heads);
    }
}
