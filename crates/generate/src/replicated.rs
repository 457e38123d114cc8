//! Causal convergence and causal memory: one replica per session, updated by causal broadcast.
//!
//! A session acts on its own replica at once. Each of its writes is sent to all others and is
//! applied there at some later time, after every write that its sender had applied before.
//!
//! ```text
//!  t0  w(x,1) ------.------------------.
//!                    \                  \
//!  t1                 r(x,1) w(y,1)      \      t2 may not apply w(y,1) before w(x,1),
//!                              \          \     which t1 had applied when it wrote y
//!  t2                           - - - - - -> r(x,1) r(y,1)
//! ```
//!
//! The two memories differ in the value that a replica holds of a variable written by several
//! sessions:
//! - *causal memory* (Ahamad, Neiger, Burns, Kohli, Hutto, 1995): the write that it applied last.
//!   Each session sees all writes in one order, which extends causality; no two sessions need
//!   agree.
//! - *causal convergence* (as in Bouajjani, Enea, Guerraoui, Hamza, 2017): the applied write with
//!   the greatest Lamport timestamp; among equal timestamps, the write of the later session. All
//!   sessions agree on the order of writes, though not on when they see them.
//!
//! A message carries its sender's vector: the number of writes of each session that it had applied.
//! Instead of holding back a message that comes too early, the machine chooses a message at random
//! and first applies the messages that it depends on; this reaches the same states.
//!
//! A replica matters only when its session acts, so it catches up just before, every other time. It
//! takes a random number of steps, from none to the number of writes that it has not applied; each
//! step applies the next write of a random other session, if there is one. No replica falls behind
//! a session by more than [`Workload::lag`] writes: when the session exceeds that, the oldest write
//! is applied. Hence the messages of a session fit into a ring.
//!
//! Cost: each write is applied once per replica, and each time its vector is compared with the
//! replica's: sessions squared per write, over short vectors of words. Memory: sessions times
//! variables, and sessions squared times lag for the messages.

use crate::memory::Machine;
use crate::random::Random;
use crate::workload::Workload;

/// The rule by which a replica chooses among the applied writes of a variable.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Winner {
    /// The write with the greatest timestamp: causal convergence.
    Greatest,
    /// The last applied write: causal memory.
    Last,
}

/// Replicas and the messages between them.
///
/// Invariants: `applied[r][r]` is the number of writes of session r; no other session has applied
/// more of them, nor fewer by more than the size of the ring; the dependencies of a message are
/// older than it; `waiting[r]` is the number of writes that replica r lacks, over all sessions.
pub(crate) struct Replicated {
    sessions: usize,
    variables: usize,
    /// Write that replica r holds for variable v, at `r * variables + v`.
    cells: Vec<Cell>,
    /// Number of writes of session s that replica r has applied, at `r * sessions + s`.
    applied: Vec<u32>,
    /// Message n of session s, at `s * ring + n % ring`.
    messages: Vec<Message>,
    /// The vectors of the messages, `sessions` words each, in the order of `messages`.
    vectors: Vec<u32>,
    ring: usize,
    /// Number of writes that each replica has yet to apply.
    waiting: Vec<u32>,
    /// Lamport clock of each replica.
    clocks: Vec<u32>,
    /// Stack of deliveries, each needed by the one below it: a session, and the number of its
    /// writes that must be applied. Empty between deliveries.
    wanted: Vec<(usize, u32)>,
    winner: Winner,
    random: Random,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    value: u32,
    stamp: Stamp,
}

#[derive(Clone, Copy, Default)]
struct Message {
    variable: u32,
    value: u32,
    stamp: Stamp,
}

/// A Lamport timestamp: a time from 1 and, to break ties, a session.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Stamp {
    time: u32,
    session: u32,
}

impl Replicated {
    pub(crate) fn new(workload: &Workload, winner: Winner, random: Random) -> Self {
        let (sessions, variables) = (workload.sessions as usize, workload.variables as usize);
        // One more than the lag, because a session writes before the replicas that lag behind catch
        // up.
        let ring = workload.lag as usize + 1;
        Self {
            sessions,
            variables,
            cells: vec![Cell::default(); sessions * variables],
            applied: vec![0; sessions * sessions],
            messages: vec![Message::default(); sessions * ring],
            vectors: vec![0; sessions * ring * sessions],
            ring,
            waiting: vec![0; sessions],
            clocks: vec![0; sessions],
            wanted: Vec::new(),
            winner,
            random,
        }
    }

    /// Makes `replica` apply the writes of `sender` up to number `count`, each after its
    /// dependencies.
    fn deliver(&mut self, replica: usize, sender: usize, count: u32) {
        self.wanted.push((sender, count));
        while let Some(&(sender, count)) = self.wanted.last() {
            let applied = &mut self.applied[replica * self.sessions..][..self.sessions];
            let next = applied[sender];
            if next >= count {
                self.wanted.pop();
                continue;
            }
            let at = sender * self.ring + next as usize % self.ring;
            let vector = &self.vectors[at * self.sessions..][..self.sessions];
            match first_greater(vector, applied) {
                Some(missing) => self.wanted.push((missing, vector[missing])),
                None => {
                    applied[sender] = next + 1;
                    self.waiting[replica] -= 1;
                    self.apply(replica, self.messages[at]);
                }
            }
        }
    }

    fn apply(&mut self, replica: usize, message: Message) {
        let Message { variable, value, stamp } = message;
        let clock = &mut self.clocks[replica];
        *clock = stamp.time.max(*clock);
        let cell = &mut self.cells[replica * self.variables + variable as usize];
        if self.winner == Winner::Last || stamp > cell.stamp {
            *cell = Cell { value, stamp };
        }
    }
}

impl Machine for Replicated {
    fn pass_time(&mut self, session: usize) {
        if self.random.once_in(2) {
            return;
        }
        for _ in 0..self.random.below(self.waiting[session] + 1) {
            let other = self.random.below(self.sessions as u32 - 1) as usize;
            let sender = other + usize::from(other >= session);
            let applied = self.applied[session * self.sessions + sender];
            let made = self.applied[sender * self.sessions + sender];
            if applied < made {
                self.deliver(session, sender, applied + 1);
            }
        }
    }

    fn read(&mut self, session: usize, variable: usize) -> u32 {
        self.cells[session * self.variables + variable].value
    }

    fn write(&mut self, session: usize, variable: usize, value: u32) {
        let applied = &mut self.applied[session * self.sessions..][..self.sessions];
        let at = session * self.ring + applied[session] as usize % self.ring;
        self.vectors[at * self.sessions..][..self.sessions].copy_from_slice(applied);
        applied[session] += 1;
        let made = applied[session];
        let stamp = Stamp { time: self.clocks[session] + 1, session: session as u32 };
        self.messages[at] = Message { variable: variable as u32, value, stamp };
        self.apply(session, self.messages[at]);

        let least = made.saturating_sub(self.ring as u32 - 1);
        for replica in (0..self.sessions).filter(|&replica| replica != session) {
            self.waiting[replica] += 1;
            if self.applied[replica * self.sessions + session] < least {
                self.deliver(replica, session, least);
            }
        }
    }

    fn fence(&mut self, _session: usize) {}
}

/// Finds the first index at which `left` exceeds `right`.
fn first_greater(left: &[u32], right: &[u32]) -> Option<usize> {
    let pairs = || left.iter().zip(right);
    // Usually there is none, and a loop without an exit is vectorized.
    if !pairs().fold(false, |found, (l, r)| found | (l > r)) {
        return None;
    }
    pairs().position(|(l, r)| l > r)
}
