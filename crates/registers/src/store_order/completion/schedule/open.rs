//! Reads with an open source in a schedule.
//!
//! Such a read takes the current value of its variable: that of the last buffered write of its
//! session, or else that in memory. If this is not the value that it returned, the read waits. A
//! write then matters even if no read with a known source takes its value. Among the writes that
//! could run, those that open reads soon need are preferred to those that replace a value that they
//! soon need.
//!
//! ```text
//!   t0   w(x,1) ...... w(x,2)
//!   t1   r(y,1) r(x,1)            when r(x,1) can run, its value has passed by: w(x,2) is taken
//!                                 back and waits, w(x,1) is reserved for the read
//! ```
//!
//! If nothing can run, some read has missed its value. The last write with that value is reserved
//! for the read, so that the variable stays occupied as for reads with known sources, and the run
//! is undone to the point where the write was replaced. A reservation that fails is dropped. If
//! there is none to drop, the run goes back some distance, which grows as long as there is no
//! progress, forgets its assumptions, and from then on randomises part of its preferences.

use consistory_history::{OpId, ValueId};
use consistory_order::ChainId;
use consistory_random::{GOLDEN_INCREMENT, mix};
use rustc_hash::FxHashSet;

use super::{NEVER, ScheduleRun, Wait};
use crate::reads_from::Source;
use crate::registers::{Registers, Segment};
use crate::store_order::saturation::Saturation;

/// Weight of a need of the next operation.
const NEXT_OPERATION_WEIGHT: i64 = 1 << 10;

/// Largest random part of a preference.
const RANDOM_PREFERENCE: u64 = 1 << 8;

/// Number of operations by which the run first goes back.
const FIRST_RETURN_OPS: u64 = 16;

/// Largest distance of a write that a read waits for.
const AWAITED_WRITE_OPS: u32 = 12;

/// State of the open reads of a history.
#[derive(Default)]
pub(super) struct Open {
    /// For each open read, the last write of its key before it in its session. Empty if no
    /// read is open.
    own: Vec<Option<OpId>>,
    /// Write reserved for each open read.
    reserved: Vec<Source>,
    /// The reads with a reservation, newest last.
    reservations: Vec<OpId>,
    /// Reservations that failed, by read.
    given_up: FxHashSet<(OpId, OpId)>,
    /// Source of each read that is determined or has run.
    sources: Vec<Source>,
    /// Open reads of each key, chain by chain.
    reads: Vec<Vec<OfChain>>,
    /// Number of open reads per key that have not run.
    left: Vec<u32>,
    /// For each key the chains that wait for a value.
    queues: Vec<Vec<ChainId>>,
    /// Greatest length of the run so far, and the number of times it went back since.
    furthest: usize,
    returns: u32,
    /// State of the random numbers, once the run has gone back.
    random: u64,
}

struct OfChain {
    chain: ChainId,
    reads: Vec<OpId>,
}

impl Open {
    pub(super) fn new(registers: &Registers<'_>, saturation: &Saturation<'_>) -> Self {
        let history = registers.history;
        let chains = saturation.layer().order.chains();
        let keys = history.key_count();
        let mut open = Open { sources: registers.source.to_vec(), ..Open::default() };
        let mut own = vec![None; history.len()];
        let mut reads: Vec<Vec<OfChain>> = Vec::new();
        reads.resize_with(keys, Vec::new);
        let mut left = vec![0; keys];
        // The last write of each key, if it is of the current session.
        let mut last = vec![None; keys];
        for session in history.sessions() {
            last.fill(None);
            for op in history.session_ops(session) {
                if let Some((key, _)) = history.reads(op)
                    && registers.source[op.index()].get().is_none()
                {
                    own[op.index()] = last[key.index()];
                    left[key.index()] += 1;
                    let (chain, of_key) = (chains.chain_of(op), &mut reads[key.index()]);
                    match of_key.last_mut().filter(|of_chain| of_chain.chain == chain) {
                        Some(of_chain) => of_chain.reads.push(op),
                        None => of_key.push(OfChain { chain, reads: vec![op] }),
                    }
                }
                if let Some(key) = registers.written_key(op) {
                    last[key.index()] = Some(op);
                }
            }
        }
        if left.iter().any(|&left| left > 0) {
            open.reserved = vec![Source::NONE; own.len()];
            open.queues = vec![Vec::new(); keys];
            (open.own, open.reads, open.left) = (own, reads, left);
        }
        open
    }

    /// Returns whether no read is open.
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Returns the source of every read, once all have run.
    pub(super) fn into_sources(self) -> Vec<Source> {
        self.sources
    }

    /// Returns the random part of a preference: 0 until the run has gone back.
    pub(super) fn noise(&mut self) -> impl FnMut() -> i64 + use<> {
        let is_wanted = self.random > 0;
        let mut number = self.random << 20;
        self.random += u64::from(is_wanted);
        move || {
            number += 1;
            if is_wanted { (scrambled(number) % RANDOM_PREFERENCE) as i64 } else { 0 }
        }
    }

    /// Returns the write that is reserved for an open read.
    #[inline]
    pub(super) fn reserved(&self, op: OpId) -> Option<OpId> {
        self.reserved.get(op.index()).and_then(|source| source.get())
    }

    /// Returns the reads that a write is reserved for.
    pub(super) fn reserved_for(&self, write: OpId) -> impl Iterator<Item = OpId> {
        let reads = self.reservations.iter().copied();
        reads.filter(move |&read| self.reserved(read) == Some(write))
    }

    /// Returns whether an open read of a key has not run.
    pub(super) fn is_wanted(&self, key: usize) -> bool {
        self.left.get(key).is_some_and(|&left| left > 0)
    }

    pub(super) fn queue(&mut self, key: usize, chain: ChainId) {
        self.queues[key].push(chain);
    }

    /// Wakes the chains that wait for a value of a key.
    pub(super) fn wake(&mut self, key: usize, awake: &mut Vec<ChainId>) {
        if let Some(queue) = self.queues.get_mut(key) {
            awake.append(queue);
        }
    }

    pub(super) fn clear_queues(&mut self) {
        self.queues.iter_mut().for_each(Vec::clear);
    }

    /// Updates the state when an operation is undone.
    pub(super) fn put_back(&mut self, registers: &Registers<'_>, op: OpId) {
        if let Some((key, _)) = self.wish(registers, op) {
            self.left[key] += 1;
        }
    }

    /// Returns the key and the value of an operation if it is an open read.
    fn wish(&self, registers: &Registers<'_>, op: OpId) -> Option<(usize, ValueId)> {
        if self.is_empty() || registers.source[op.index()].get().is_some() {
            return None;
        }
        registers.history.reads(op).map(|(key, value)| (key.index(), value))
    }
}

impl ScheduleRun<'_, '_> {
    fn value(&self, write: OpId) -> Option<ValueId> {
        self.registers.history.writes(write).map(|(_, value)| value)
    }

    fn has_run(&self, op: OpId) -> bool {
        self.when.get(op.index()).is_none_or(|&when| when != NEVER)
    }

    /// Returns the write of its own session that an open read would have to wait for, if there is
    /// one.
    fn buffered(&self, read: OpId) -> Option<OpId> {
        self.open.own[read.index()].filter(|&own| !self.has_run(own))
    }

    /// Returns the write whose value an open read would take now.
    fn offered(&self, read: OpId, key: usize) -> OpId {
        self.buffered(read).unwrap_or(self.memory[key])
    }

    /// Returns the key of an open read that cannot run because its value is missing.
    pub(super) fn missed(&self, op: OpId) -> Option<usize> {
        let (key, value) = self.open.wish(self.registers, op)?;
        let offered = self.offered(op, key);
        let is_there = match self.open.reserved(op) {
            Some(write) => write == offered,
            None => self.value(offered) == Some(value),
        };
        (!is_there).then_some(key)
    }

    /// Sets the source of an open read that is about to run.
    pub(super) fn take_open(&mut self, op: OpId) {
        if let Some((key, _)) = self.open.wish(self.registers, op) {
            self.open.sources[op.index()] = Source::new(self.offered(op, key));
            self.open.left[key] -= 1;
        }
    }

    /// Rates the next write of a chain: how soon open reads need its value, minus how soon they
    /// need the value that it replaces.
    pub(super) fn preference(&self, chain: ChainId) -> i64 {
        let Some(write) = self.head(chain) else { return 0 };
        let Some(key) = self.registers.written_key(write).map(|key| key.index()) else { return 0 };
        let (brought, replaced) = (self.value(write), self.value(self.memory[key]));
        let chains = self.saturation.layer().order.chains();
        let mut preference = 0;
        for OfChain { chain, reads } in &self.open.reads[key] {
            let head = self.heads[chain.index()];
            let ran = reads.partition_point(|&read| chains.place_of(read) < head);
            let Some(&read) = reads.get(ran).filter(|&&read| read != write) else { continue };
            if self.buffered(read).is_some_and(|own| own != write) {
                continue;
            }
            let wanted = self.open.wish(self.registers, read).map(|(_, value)| value);
            let soon = NEXT_OPERATION_WEIGHT / i64::from(1 + chains.place_of(read) - head);
            if wanted == brought {
                preference += soon;
            } else if wanted == replaced {
                preference -= soon;
            }
        }
        preference
    }

    /// Rates each chain by its next writes that open reads wait for.
    pub(super) fn demand(&self) -> Vec<i64> {
        let chains = self.saturation.layer().order.chains();
        let mut demand = vec![0; self.heads.len()];
        for chain in (0..self.heads.len() as u32).map(ChainId) {
            if let Some(read) = self.head(chain)
                && self.missed(read).is_some()
                && let Some(write) = self.to_come(read)
            {
                let of = chains.chain_of(write);
                let away = chains.place_of(write) - self.heads[of.index()];
                if away < AWAITED_WRITE_OPS {
                    demand[of.index()] += NEXT_OPERATION_WEIGHT / i64::from(1 + away);
                }
            }
        }
        demand
    }

    /// Reserves the last write with its value for an open read that cannot run, and undoes the run
    /// to the point where the write was replaced. Returns whether there is such a read.
    pub(super) fn reserve_what_passed(&mut self) -> bool {
        if self.open.is_empty() {
            return false;
        }
        let mut waiting: Vec<(OpId, usize, ValueId)> = Vec::new();
        for chain in (0..self.heads.len() as u32).map(ChainId) {
            let Some(op) = self.head(chain) else { continue };
            if let Some(Wait::Value(key)) = self.wait(chain, op)
                && self.open.reserved(op).is_none()
                && let Some((_, value)) = self.open.wish(self.registers, op)
            {
                waiting.push((op, key, value));
            }
        }
        let mut replaced = self.replaced.iter().rev();
        for at in (0..self.ran.len()).rev() {
            let Some(key) = self.registers.written_key(self.ran[at]) else { continue };
            let &write = replaced.next().expect("every write replaced one");
            let value = self.value(write);
            let missed = waiting.iter().find(|&&(read, of, wanted)| {
                of == key.index()
                    && value == Some(wanted)
                    && self.is_behind_own(read, write)
                    && !self.open.given_up.contains(&(read, write))
            });
            if let Some(&(read, ..)) = missed {
                self.open.reserved[read.index()] = Source::new(write);
                self.open.reservations.push(read);
                self.unread[write.index()] += 1;
                self.undo(at);
                return true;
            }
        }
        false
    }

    /// Returns whether a write ran after the last write of the read's own session, or is that
    /// write.
    fn is_behind_own(&self, read: OpId, write: OpId) -> bool {
        let when = |write: OpId| self.when.get(write.index()).copied();
        match self.open.own[read.index()] {
            None => true,
            Some(own) => own == write || (self.has_run(own) && when(own) < when(write)),
        }
    }

    /// Returns the next write that an open read could take its value from, or must wait for.
    pub(super) fn to_come(&self, read: OpId) -> Option<OpId> {
        if let Some(own) = self.buffered(read) {
            return Some(own);
        }
        if let Some(write) = self.open.reserved(read) {
            return Some(write).filter(|&write| !self.has_run(write));
        }
        let (key, value) = self.registers.history.reads(read)?;
        let segments = &self.saturation.layer().segments;
        let nearest = |&segment: &Segment| {
            let head = self.heads[segment.chain.index()];
            let places = segments.places(segment);
            let first = places.partition_point(|&place| place < head);
            let to_come = segments.writes(segment)[first..].iter().zip(&places[first..]);
            let mut wanted = to_come.filter(|&(&write, _)| self.value(write) == Some(value));
            wanted.next().map(|(&write, &place)| (place - head, write))
        };
        segments.of(key).iter().filter_map(nearest).min().map(|(_, write)| write)
    }

    /// Drops the newest reservation whose read has not run, or else goes back some distance.
    /// Returns `false` if no read is open.
    pub(super) fn give_up(&mut self) -> bool {
        if self.open.is_empty() {
            return false;
        }
        let newest = self.open.reservations.iter().rposition(|&read| !self.has_run(read));
        match newest {
            Some(newest) => {
                let (read, write) = self.release(newest);
                self.open.given_up.insert((read, write));
                self.wake_all();
            }
            None => self.go_back(),
        }
        true
    }

    /// Drops a reservation.
    fn release(&mut self, at: usize) -> (OpId, OpId) {
        let read = self.open.reservations.remove(at);
        let write = std::mem::replace(&mut self.open.reserved[read.index()], Source::NONE);
        let write = write.get().expect("it is reserved");
        self.unread[write.index()] -= 1;
        (read, write)
    }

    /// Goes back some distance and forgets the later assumptions.
    fn go_back(&mut self) {
        if self.ran.len() > self.open.furthest {
            self.open.furthest = self.ran.len();
            self.open.returns = 0;
        }
        self.open.returns += 1;
        let most = (FIRST_RETURN_OPS * u64::from(self.open.returns)).min(self.ran.len() as u64);
        self.open.random += 1;
        let back = 1 + scrambled(self.open.random) % most.max(1);
        self.undo(self.ran.len().saturating_sub(back as usize));
        self.saturation.undo(self.start);
        self.open.given_up.clear();
        for at in (0..self.open.reservations.len()).rev() {
            if !self.has_run(self.open.reservations[at]) {
                self.release(at);
            }
        }
    }
}

/// Hashes a number.
fn scrambled(number: u64) -> u64 {
    mix(number.wrapping_mul(GOLDEN_INCREMENT))
}
