//! A greedy run of the sessions, tried before saturation.
//!
//! A history of few sessions that a memory really produced can often simply be run again. Reads run
//! as soon as memory holds their source, and so do read-modify-writes, whose source no other write
//! may overwrite. A write runs when all reads of the value that it replaces have run. It runs at
//! once if all its reads can run directly after it: its variable is then as free as before, so
//! every order of the rest remains possible. Among several other writes, one that a session waits
//! for is preferred, then one of the session that has advanced least. If nothing can run, the last
//! choice is undone.
//!
//! With many sessions mistakes are noticed late, so this is used for at most four. It gives up
//! after undoing as many operations as there are (half as many for two sessions, a sixth for four),
//! since inconsistent histories with so few sessions are refuted almost as fast. It costs about as
//! much as reading the history, much less than saturation, and never reports that there is no
//! order.

use std::cmp::Reverse;

use consistory_history::{OpId, SessionId};

use crate::registers::Registers;

/// Largest number of sessions for a greedy run.
const MAX_SESSIONS: usize = 4;

/// Searches for an order of all operations in which each read returns the last write before it.
pub(crate) fn sequential_order(registers: &Registers<'_>) -> Option<Vec<OpId>> {
    match registers.history.session_count() <= MAX_SESSIONS {
        true => GreedyRun::new(registers).run(),
        false => None,
    }
}

struct GreedyRun<'r> {
    registers: &'r Registers<'r>,
    /// Start, next operation and end of each session.
    starts: Vec<OpId>,
    heads: Vec<OpId>,
    ends: Vec<OpId>,
    /// Write in memory for each key; ids of initial writes follow those of the operations.
    memory: Vec<OpId>,
    /// Number of reads of each write that have not run.
    unread: Vec<u32>,
    ran: Vec<OpId>,
    /// The writes replaced by the writes that ran, in the order of `ran`.
    replaced: Vec<OpId>,
}

/// A choice between writes: the length of the run at that point, and the index of its first
/// remaining session in the list `left`.
struct GreedyChoice {
    ran: usize,
    start: usize,
}

impl<'r> GreedyRun<'r> {
    fn new(registers: &'r Registers<'r>) -> Self {
        let history = registers.history;
        let mut unread = vec![0; history.len() + history.key_count()];
        for source in registers.source.iter().filter_map(|source| source.get()) {
            unread[source.index()] += 1;
        }
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        let mut end = 0;
        for session in history.sessions() {
            starts.push(OpId(end));
            end += history.session_ops(session).len() as u32;
            ends.push(OpId(end));
        }
        let heads = starts.clone();
        let memory = history.keys().map(|key| history.initial_write(key)).collect();
        let ran = Vec::with_capacity(history.len());
        GreedyRun { registers, starts, heads, ends, memory, unread, ran, replaced: Vec::new() }
    }

    fn run(mut self) -> Option<Vec<OpId>> {
        let all = self.registers.history.len();
        let mut may_take_back = match self.heads.len() {
            ..=2 => all / 2,
            3 => all,
            _ => all / 6,
        };
        let mut choices: Vec<GreedyChoice> = Vec::new();
        // Remaining sessions of each choice, the next one last.
        let mut left: Vec<SessionId> = Vec::new();
        loop {
            self.run_what_is_free();
            if self.ran.len() == all {
                return Some(self.ran);
            }
            let start = left.len();
            left.extend(self.registers.history.sessions().filter(|&s| self.may_write(s)));
            left[start..].sort_unstable_by_key(|&s| {
                let (head, begin) = (self.heads[s.index()], self.starts[s.index()]);
                (self.awaiting(head) > 0, Reverse(head.0 - begin.0))
            });
            choices.push(GreedyChoice { ran: self.ran.len(), start });
            loop {
                let choice = choices.last()?;
                let back = self.ran.len() - choice.ran;
                may_take_back = may_take_back.checked_sub(back)?;
                self.undo(choice.ran);
                if left.len() == choice.start {
                    choices.pop();
                    continue;
                }
                let session = left.pop().expect("it is longer");
                self.execute(session);
                break;
            }
        }
    }

    /// Runs all operations that need no decision.
    fn run_what_is_free(&mut self) {
        loop {
            let mut moved = false;
            for session in self.registers.history.sessions() {
                let at = session.index();
                while self.heads[at] < self.ends[at] && self.is_free(self.heads[at]) {
                    self.execute(session);
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// Returns whether an operation can run without a decision.
    fn is_free(&self, op: OpId) -> bool {
        let written = self.registers.written_key(op);
        match self.registers.source[op.index()].get() {
            Some(source) => {
                let key = self.registers.read_key(op);
                self.memory[key.index()] == source
                    && (written.is_none() || self.unread[source.index()] == 1)
            }
            None => written.is_none_or(|key| {
                let here = self.memory[key.index()];
                self.unread[here.index()] == 0 && self.awaiting(op) == self.unread[op.index()]
            }),
        }
    }

    /// Returns whether a session is at a write that can run.
    fn may_write(&self, session: SessionId) -> bool {
        let op = self.heads[session.index()];
        op < self.ends[session.index()]
            && self.registers.source[op.index()].get().is_none()
            && self.registers.written_key(op).is_some_and(|key| {
                let here = self.memory[key.index()];
                self.unread[here.index()] == 0
            })
    }

    /// Counts the sessions that need a given write to continue.
    fn awaiting(&self, write: OpId) -> u32 {
        let waits = |(&head, &end): (&OpId, &OpId)| {
            head < end && self.registers.source[head.index()].get() == Some(write)
        };
        self.heads.iter().zip(&self.ends).filter(|&ends| waits(ends)).count() as u32
    }

    fn execute(&mut self, session: SessionId) {
        let head = &mut self.heads[session.index()];
        let op = *head;
        head.0 += 1;
        self.ran.push(op);
        if let Some(source) = self.registers.source[op.index()].get() {
            self.unread[source.index()] -= 1;
        }
        if let Some(key) = self.registers.written_key(op) {
            self.replaced.push(std::mem::replace(&mut self.memory[key.index()], op));
        }
    }

    /// Undoes the run after a point.
    fn undo(&mut self, ran: usize) {
        while self.ran.len() > ran {
            let op = self.ran.pop().expect("it is longer");
            let session = self.registers.history.session_of(op);
            self.heads[session.index()].0 -= 1;
            if let Some(source) = self.registers.source[op.index()].get() {
                self.unread[source.index()] += 1;
            }
            if let Some(key) = self.registers.written_key(op) {
                self.memory[key.index()] = self.replaced.pop().expect("every write replaced one");
            }
        }
    }
}
