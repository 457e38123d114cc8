//! The frontier search: a sequential order of a saturated history, position by position.
//!
//! After Biswas and Enea (OOPSLA 2019): a state is how far each session has come, and a state that
//! was left without success is not entered again, so that for k sessions there are at most n^k
//! states. What memory holds need not be part of a state: a write of x waits until all reads of the
//! value in memory have run, so that what is overwritten is no longer needed.
//!
//! The saturated order prunes: an operation waits for all that is before it. Reads run as soon as
//! they can, which never hurts. Among the writes that can run, the one that comes first in a linear
//! extension of the saturated order is tried first; on a history that a memory really produced that
//! rarely fails.

use consistory_history::OpId;
use consistory_order::{ChainOrder, topological_order};
use consistory_verdict::{Budget, Stopped};
use rustc_hash::FxHashSet;

use crate::registers::Registers;

/// What a search found.
#[derive(Debug)]
pub(crate) enum Found {
    /// A sequential order of all operations.
    Order(Vec<u32>),
    /// There is none.
    Nothing,
    /// The limit of states was reached.
    Limit,
}

/// Searches for a sequential order, leaving at most `limit` states without success.
pub(crate) fn search(
    registers: &Registers<'_>,
    order: &ChainOrder,
    limit: usize,
    budget: &Budget,
) -> Result<Found, Stopped> {
    Frontier::new(registers, order).run(limit, budget)
}

struct Frontier<'a> {
    registers: &'a Registers<'a>,
    order: &'a ChainOrder,
    /// The place of each operation in a linear extension of the order.
    rank: Vec<u32>,
    heads: Vec<u32>,
    /// The write in memory, for each key; initial writes are behind the operations.
    memory: Vec<u32>,
    /// How many reads of each write have not run.
    unread: Vec<u32>,
    ran: Vec<u32>,
    /// What the writes that ran replaced, in the order of `ran`.
    replaced: Vec<u32>,
    failed: FxHashSet<Box<[u32]>>,
}

/// A choice between writes: how far the run had come, and the sessions that are left to try.
struct Choice {
    ran: usize,
    sessions: Vec<u32>,
}

impl<'a> Frontier<'a> {
    fn new(registers: &'a Registers<'a>, order: &'a ChainOrder) -> Self {
        let history = registers.history;
        let extension = topological_order(order.chains(), order.edges())
            .expect("a saturated order has no cycle");
        let mut rank = vec![0; history.len()];
        for (at, &op) in extension.iter().enumerate() {
            rank[op as usize] = at as u32;
        }
        let mut unread = vec![0; history.len() + history.key_count()];
        for source in registers.source.iter().filter_map(|source| source.get()) {
            unread[source.index()] += 1;
        }
        Frontier {
            registers,
            order,
            rank,
            heads: vec![0; history.session_count()],
            memory: history.keys().map(|key| history.initial_write(key).0).collect(),
            unread,
            ran: Vec::with_capacity(history.len()),
            replaced: Vec::new(),
            failed: FxHashSet::default(),
        }
    }

    fn run(mut self, limit: usize, budget: &Budget) -> Result<Found, Stopped> {
        let mut choices: Vec<Choice> = Vec::new();
        let mut steps = 0u32;
        loop {
            self.run_reads();
            if self.ran.len() == self.registers.history.len() {
                return Ok(Found::Order(self.ran));
            }
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(1_024) {
                budget.check()?;
            }
            let mut sessions: Vec<u32> = Vec::new();
            if !self.failed.contains(self.heads.as_slice()) {
                sessions.extend(
                    (0..self.heads.len() as u32)
                        .filter(|&s| self.head(s).is_some_and(|op| self.can_run(op))),
                );
                // The first choice is at the end.
                sessions.sort_unstable_by_key(|&s| {
                    std::cmp::Reverse(self.head(s).map(|op| self.rank[op as usize]))
                });
            }
            choices.push(Choice { ran: self.ran.len(), sessions });
            loop {
                let Some(choice) = choices.last_mut() else { return Ok(Found::Nothing) };
                let (ran, next) = (choice.ran, choice.sessions.pop());
                self.undo(ran);
                match next {
                    Some(session) => {
                        let op = self.head(session).expect("the session has a next operation");
                        self.execute(op);
                        break;
                    }
                    None => {
                        choices.pop();
                        self.failed.insert(self.heads.clone().into_boxed_slice());
                        if self.failed.len() > limit {
                            return Ok(Found::Limit);
                        }
                    }
                }
            }
        }
    }

    /// Runs everything that does not write, as far as it goes.
    fn run_reads(&mut self) {
        loop {
            let mut moved = false;
            for session in 0..self.heads.len() as u32 {
                while let Some(op) = self.head(session)
                    && self.registers.written_key(op).is_none()
                    && self.can_run(op)
                {
                    self.execute(op);
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn head(&self, session: u32) -> Option<u32> {
        let members = self.order.chains().members(session);
        members.get(self.heads[session as usize] as usize).copied()
    }

    fn can_run(&self, op: u32) -> bool {
        let own = self.order.chains().chain_of(op) as usize;
        let is_behind =
            |(session, (&known, &head)): (usize, (&u32, &u32))| session == own || known <= head;
        if let Some(row) = self.order.row(op)
            && !row.iter().zip(&self.heads).enumerate().all(is_behind)
        {
            return false;
        }
        let source = self.registers.source[op as usize].get().map(|source| source.0);
        match self.registers.written_key(op) {
            // What it reads is in memory, since a write waits for the reads of what it replaces.
            None => true,
            Some(key) => {
                let here = self.memory[key.index()];
                let own_read = u32::from(source == Some(here));
                (source.is_none() || own_read == 1) && self.unread[here as usize] == own_read
            }
        }
    }

    fn execute(&mut self, op: u32) {
        self.heads[self.order.chains().chain_of(op) as usize] += 1;
        self.ran.push(op);
        if let Some(source) = self.registers.source[op as usize].get() {
            self.unread[source.index()] -= 1;
        }
        if let Some(key) = self.registers.written_key(op) {
            self.replaced.push(std::mem::replace(&mut self.memory[key.index()], op));
        }
    }

    /// Takes back what ran behind a point.
    fn undo(&mut self, ran: usize) {
        while self.ran.len() > ran {
            let op = self.ran.pop().expect("it is longer");
            self.heads[self.order.chains().chain_of(op) as usize] -= 1;
            if let Some(source) = self.registers.source[op as usize].get() {
                self.unread[source.index()] += 1;
            }
            if let Some(key) = self.registers.written_key(op) {
                self.memory[key.index()] = self.replaced.pop().expect("every write replaced one");
            }
        }
    }
}

/// Gives the operations of an order that count for something.
pub(crate) fn counting(registers: &Registers<'_>, order: &[u32]) -> Vec<OpId> {
    order.iter().filter(|&&op| registers.counts(op)).map(|&op| OpId(op)).collect()
}
