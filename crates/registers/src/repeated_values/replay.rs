//! Guesses the sources of ambiguous reads by running the sessions on a simulated memory.
//!
//! A history that a real store produced can usually be run again. The replay executes the
//! operations of the sessions in some order. A read runs as soon as a write of its value has run
//! and the memory lets the session see it, and the read takes that write as its source. Each memory
//! guarantees a model: if all reads run in this way, the choice of `wr` satisfies the model.
//! Otherwise, sources were assigned to some reads that could not run, and the choice may still be
//! correct. The result is a guess, to be judged like any other choice.
//!
//! | memory | a read of x may read from w when |
//! | --- | --- |
//! | causal | no write in the session's past or w's past overwrites w |
//! | convergent | w ran last of the writes of x in the session's past and w's |
//! | per session | w is new to the session, or the last write of x that the session has received |
//! | single | w is the last write of x |
//!
//! Each session and each write has a clock of its past. A step costs the number of candidates of a
//! read times the number of sessions.

use consistory_history::{History, KeyId, OpId, SessionId};
use consistory_verdict::{Budget, Stopped};
use rustc_hash::FxHashMap;

use crate::reads_from::{Candidates, Source};

/// The memory on which a history is replayed, by the model that it guarantees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// CC.
    Causal,
    /// CCv.
    Convergent,
    /// CM.
    PerSession,
    /// SC.
    Single,
}

/// Guesses a source for every ambiguous read.
pub(crate) fn replay(
    history: &History,
    candidates: &Candidates,
    memory: Memory,
    budget: &Budget,
) -> Result<Vec<Source>, Stopped> {
    Replay::new(history, candidates, memory).run(budget)
}

/// Candidates inspected between two checks of the budget.
const LOOKS_PER_CHECK: usize = 1 << 14;

struct Replay<'h> {
    history: &'h History,
    memory: Memory,
    source: Vec<Source>,
    options: FxHashMap<OpId, &'h [OpId]>,
    /// The writes of each key that have run, by session, in program order.
    ran: Vec<Vec<Vec<OpId>>>,
    /// Step at which each operation ran, counted from 1; 0 if it has not run.
    when: Vec<u32>,
    now: u32,
    /// Number of operations of each session that have run.
    heads: Vec<u32>,
    lengths: Vec<u32>,
    /// Number of operations of each session in each session's past.
    pasts: Vec<Vec<u32>>,
    /// The past of each write that has run.
    past_of: FxHashMap<OpId, Vec<u32>>,
    /// Last write of each key: of all sessions, or as each session sees it.
    last: Vec<Vec<OpId>>,
}

impl<'h> Replay<'h> {
    fn new(history: &'h History, candidates: &'h Candidates, memory: Memory) -> Self {
        let sessions = history.session_count();
        let initial: Vec<OpId> = history.keys().map(|key| history.initial_write(key)).collect();
        let views = if memory == Memory::PerSession { sessions } else { 1 };
        Replay {
            history,
            memory,
            source: candidates.source.clone(),
            options: candidates.ambiguous.iter().map(|(r, list)| (*r, list.as_slice())).collect(),
            ran: vec![vec![Vec::new(); sessions]; history.key_count()],
            when: vec![0; history.len()],
            now: 0,
            heads: vec![0; sessions],
            lengths: history.sessions().map(|s| history.session_ops(s).len() as u32).collect(),
            pasts: vec![vec![0; sessions]; sessions],
            past_of: FxHashMap::default(),
            last: vec![initial; views],
        }
    }

    fn run(mut self, budget: &Budget) -> Result<Vec<Source>, Stopped> {
        let mut looks = 0;
        loop {
            let mut moved = false;
            for session in 0..self.heads.len() {
                while let Some(op) = self.head(session) {
                    looks += 1 + self.options.get(&op).map_or(0, |options| options.len());
                    if looks > LOOKS_PER_CHECK {
                        looks = 0;
                        budget.check()?;
                    }
                    let chosen = match self.history.reads(op) {
                        Some(_) => match self.visible(session, op) {
                            Some(write) => Some(write),
                            None => break,
                        },
                        None if self.history.writes(op).is_some() => break,
                        None => None,
                    };
                    self.execute(session, op, chosen);
                    moved = true;
                }
            }
            if moved {
                continue;
            }
            // Every session waits at a write, or at a read that cannot run.
            let Some(session) = self.next_session() else { return Ok(self.source) };
            let op = self.head(session).expect("the session is not at its end");
            let chosen = self.history.reads(op).and_then(|_| self.forced(op));
            self.execute(session, op, chosen);
        }
    }

    fn head(&self, session: usize) -> Option<OpId> {
        let at = self.heads[session];
        (at < self.lengths[session]).then(|| self.history.op_at(SessionId::new(session), at))
    }

    /// Chooses the session to continue: the one that soonest reaches a write needed by a waiting
    /// read, else one at a write, else one at a read; among equals the one that has advanced least.
    fn next_session(&self) -> Option<usize> {
        let mut soonest = vec![u32::MAX; self.heads.len()];
        for read in (0..self.heads.len()).filter_map(|s| self.head(s)) {
            if self.history.reads(read).is_none() {
                continue;
            }
            let settled = self.source[read.index()].get();
            let options = self.options.get(&read).map_or(settled.as_slice(), |list| list);
            for &write in options.iter().filter(|&&write| !self.has_run(write)) {
                let session = self.history.session_of(write).index();
                let away = self.history.index_in_session(write) - self.heads[session];
                soonest[session] = soonest[session].min(away);
            }
        }
        (0..self.heads.len()).filter(|&s| self.head(s).is_some()).min_by_key(|&s| {
            let op = self.head(s).expect("it was filtered");
            let waits = self.history.reads(op).is_some();
            let far = u64::from(self.heads[s]) * 1_000_000 / u64::from(self.lengths[s]);
            (waits, soonest[s], far)
        })
    }

    /// Finds a write that the memory lets a read see. Prefers a write in the session's past to one
    /// that adds to it, and an early one to a late one.
    fn visible(&self, session: usize, read: OpId) -> Option<OpId> {
        let candidates = match self.options.get(&read) {
            Some(options) => *options,
            None => return self.source[read.index()].get().filter(|&w| self.has_run(w)),
        };
        let cost = |write: OpId| match self.history.is_initial(write) {
            true => (false, 0),
            false => (!self.in_past(session, write), self.when[write.index()]),
        };
        let (key, _) = self.history.reads(read)?;
        candidates
            .iter()
            .copied()
            .filter(|&write| self.has_run(write) && self.may_see(session, key, write))
            .min_by_key(|&write| cost(write))
    }

    /// Returns the latest candidate that has run, or any candidate, for a read that cannot run.
    fn forced(&self, read: OpId) -> Option<OpId> {
        let when = |write: OpId| match self.history.is_initial(write) {
            true => 1,
            false => self.when[write.index()],
        };
        match self.options.get(&read) {
            Some(options) => options.iter().copied().max_by_key(|&write| when(write)),
            None => self.source[read.index()].get(),
        }
    }

    fn has_run(&self, write: OpId) -> bool {
        self.history.is_initial(write) || self.when[write.index()] > 0
    }

    fn in_past(&self, session: usize, op: OpId) -> bool {
        let of = self.history.session_of(op);
        self.history.index_in_session(op) < self.pasts[session][of.index()]
    }

    fn may_see(&self, session: usize, key: KeyId, write: OpId) -> bool {
        let past = &self.pasts[session];
        let initial = self.history.is_initial(write);
        match self.memory {
            Memory::Single => self.last[0][key.index()] == write,
            Memory::PerSession => {
                self.last[session][key.index()] == write
                    || (!initial && !self.in_past(session, write))
            }
            Memory::Causal => self
                .last_in(key, past, None)
                .all(|other| other == write || (!initial && !self.precedes(write, other))),
            Memory::Convergent => {
                let more = self.past_of.get(&write).map(Vec::as_slice);
                let when = if initial { 0 } else { self.when[write.index()] };
                self.last_in(key, past, more).all(|other| self.when[other.index()] <= when)
            }
        }
    }

    /// Returns the last write of a key by each session that is in one of two pasts.
    fn last_in<'a>(
        &'a self,
        key: KeyId,
        past: &'a [u32],
        more: Option<&'a [u32]>,
    ) -> impl Iterator<Item = OpId> + 'a {
        self.ran[key.index()].iter().enumerate().filter_map(move |(session, writes)| {
            let known = past[session].max(more.map_or(0, |more| more[session]));
            let count = writes.partition_point(|&w| self.history.index_in_session(w) < known);
            writes[..count].last().copied()
        })
    }

    fn precedes(&self, a: OpId, b: OpId) -> bool {
        let session = self.history.session_of(a).index();
        self.past_of.get(&b).is_some_and(|past| past[session] > self.history.index_in_session(a))
    }

    fn execute(&mut self, session: usize, op: OpId, source: Option<OpId>) {
        self.now += 1;
        self.when[op.index()] = self.now;
        self.heads[session] += 1;
        if let Some(write) = source {
            if self.options.contains_key(&op) {
                self.source[op.index()] = Source::new(write);
            }
            self.join_past(session, write);
        }
        self.pasts[session][session] = self.heads[session];
        if let Some((key, _)) = self.history.writes(op)
            && self.history.is_certain(op)
        {
            self.ran[key.index()][session].push(op);
            let view = if self.memory == Memory::PerSession { session } else { 0 };
            self.last[view][key.index()] = op;
        }
        if self.history.writes(op).is_some() {
            self.past_of.insert(op, self.pasts[session].clone());
        }
    }

    /// Joins a write and its past into a session's past.
    fn join_past(&mut self, session: usize, write: OpId) {
        let Some(past) = self.past_of.get(&write) else { return };
        if self.memory == Memory::PerSession {
            let mut news: Vec<OpId> = (0..past.len())
                .flat_map(|s| {
                    let known = self.pasts[session][s]..past[s];
                    known.map(move |at| (s, at))
                })
                .map(|(s, at)| self.history.op_at(SessionId::new(s), at))
                .filter(|&op| op == write || self.history.is_certain(op))
                .collect();
            news.sort_unstable_by_key(|op| self.when[op.index()]);
            for op in news {
                if let Some((key, _)) = self.history.writes(op) {
                    self.last[session][key.index()] = op;
                }
            }
        }
        for (known, &more) in self.pasts[session].iter_mut().zip(past) {
            *known = (*known).max(more);
        }
    }
}
