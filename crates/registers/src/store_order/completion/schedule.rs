//! A schedule: run the operations along the forced order, guess the rest, and repair wrong guesses.
//!
//! After saturation, a history that a memory really produced can usually be run without deciding,
//! pair by pair, which of two writes comes first. An operation runs as soon as all operations
//! before it in the forced order have run. A write also waits until its variable is free: until all
//! reads of the value that it replaces have run. Reads run at once, which is never worse, and so do
//! writes that are never read. Among the other writes, the one with the fewest operations before it
//! runs first.
//!
//! ```text
//!   t0   w(x,1) ................. r(x,1)    x is held by w(x,1) until r(x,1) has run
//!   t1          w(x,2) waits              if r(x,1) waits for w(x,2), through whatever is between,
//!                                         then w(x,2) must have been first
//! ```
//!
//! If nothing can run, some operations wait for each other in a circle. A wait that the forced
//! order does not explain is for a variable held by a write that ran too early. The newest such
//! write is put after the write that waits for it, the order is saturated, and the run is undone to
//! the point before it. The remaining run then agrees with the order again and continues. So the
//! number of decisions is the number of wrong guesses.
//!
//! Each run of an operation costs the width of its clock. The run gives up when it has undone a
//! multiple of the number of operations, with an allowance for progress, or when a circle cannot be
//! repaired. It never reports that there is no order.
//!
//! If values repeat, some reads have several candidates and are not part of the forced order: they
//! take the current value of their variable in the run ([`open`]).
//!
//! # Store buffers
//! For TSO and PSO the chains are those of `ppo`, and a write runs when it reaches memory. A read
//! of its own session's write may run before that write, as if from a buffer. A read of any other
//! write finds that its session's last write of the variable has reached memory or was replaced:
//! `poloc` puts that write before the source, which saturation adds, and the source is before the
//! read.

mod open;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use consistory_history::OpId;
use consistory_order::ChainId;
use consistory_verdict::{Budget, Stopped};

use crate::reads_from::Source;
use crate::registers::Registers;
use crate::store_order::saturation::{Point, Saturation};
use open::Open;

/// Largest number of undone operations, as a multiple of the operations.
const MAX_TAKEN_BACK_FACTOR: usize = 4;

/// The same factor for histories with open reads, in which more choices are guessed.
const MAX_TAKEN_BACK_FACTOR_OPEN: usize = 20;

/// Further undone operations allowed for each operation of progress.
const TAKEN_BACK_FOR_MORE: usize = 16;

/// Position of an operation that has not run.
const NEVER: u32 = u32::MAX;

/// Searches for an order of all operations in which each read returns the last write before it, or
/// the last one its own session has buffered. Reads without a known source are ignored.
///
/// Restores the saturation, unless the budget ran out.
pub(crate) fn schedule(
    registers: &Registers<'_>,
    saturation: &mut Saturation<'_>,
    budget: &Budget,
) -> Result<Option<Vec<OpId>>, Stopped> {
    Ok(run(registers, saturation, Open::default(), budget)?.map(|scheduled| scheduled.order))
}

/// An order that was found.
pub(crate) struct Scheduled {
    /// All operations.
    pub(crate) order: Vec<OpId>,
    /// The source of every read, those that were open included.
    pub(crate) source: Vec<Source>,
}

/// Searches for such an order in which reads without a known source also find their values.
///
/// Restores the saturation, unless the budget ran out.
pub(crate) fn schedule_all(
    registers: &Registers<'_>,
    saturation: &mut Saturation<'_>,
    budget: &Budget,
) -> Result<Option<Scheduled>, Stopped> {
    let open = Open::new(registers, saturation);
    run(registers, saturation, open, budget)
}

fn run(
    registers: &Registers<'_>,
    saturation: &mut Saturation<'_>,
    open: Open,
    budget: &Budget,
) -> Result<Option<Scheduled>, Stopped> {
    let start = saturation.mark();
    let mut run = ScheduleRun::new(registers, saturation, start, open);
    let all_ran = run.run(budget)?;
    let ScheduleRun { ran, open, .. } = run;
    saturation.undo(start);
    Ok(all_ran.then(|| Scheduled { order: ran, source: open.into_sources() }))
}

struct ScheduleRun<'s, 'a> {
    registers: &'s Registers<'s>,
    saturation: &'s mut Saturation<'a>,
    /// Number of operations of each chain that have run.
    heads: Vec<u32>,
    /// Part of the clock of each chain's next operation that is known to have run.
    checked: Vec<u32>,
    /// Write in memory for each key; ids of initial writes follow those of the operations.
    memory: Vec<OpId>,
    /// Number of reads of each write that have not run.
    unread: Vec<u32>,
    ran: Vec<OpId>,
    /// State of the saturation before the first repair.
    start: Point,
    /// Index of each operation in `ran`.
    when: Vec<u32>,
    /// The writes replaced by the writes that ran, in the order of `ran`.
    replaced: Vec<OpId>,
    /// The chains to process.
    awake: Vec<ChainId>,
    /// The chains at a write that may run, lowest weight first.
    choices: BinaryHeap<Reverse<(u64, ChainId)>>,
    /// Chains that wait for a position in each chain.
    behind: Vec<Vec<(u32, ChainId)>>,
    /// Chains that wait until each key is free.
    queues: Vec<Vec<ChainId>>,
    open: Open,
}

/// Condition that an operation waits for.
enum Wait {
    /// A position in a chain has been reached.
    Order { chain: ChainId, count: u32 },
    /// A variable is free.
    Key(usize),
    /// A variable has the value of a read with an open source.
    Value(usize),
}

/// A guess: a write came before another of its variable, which now waits for it.
struct Guess {
    /// Index in the run.
    ran: u32,
    holding: OpId,
    waiting: OpId,
}

impl<'s, 'a> ScheduleRun<'s, 'a> {
    fn new(
        registers: &'s Registers<'s>,
        saturation: &'s mut Saturation<'a>,
        start: Point,
        open: Open,
    ) -> Self {
        let history = registers.history;
        let mut unread = vec![0; history.len() + history.key_count()];
        for source in registers.source.iter().filter_map(|source| source.get()) {
            unread[source.index()] += 1;
        }
        let chains = saturation.layer().order.chains().len();
        ScheduleRun {
            registers,
            heads: vec![0; chains],
            checked: vec![0; chains],
            memory: history.keys().map(|key| history.initial_write(key)).collect(),
            unread,
            ran: Vec::with_capacity(history.len()),
            start,
            when: vec![NEVER; history.len()],
            replaced: Vec::new(),
            awake: (0..chains as u32).map(ChainId).collect(),
            choices: BinaryHeap::new(),
            behind: vec![Vec::new(); chains],
            queues: vec![Vec::new(); history.key_count()],
            open,
            saturation,
        }
    }

    /// Runs the operations. Returns whether all have run.
    fn run(&mut self, budget: &Budget) -> Result<bool, Stopped> {
        let all = self.registers.history.len();
        let times =
            if self.open.is_empty() { MAX_TAKEN_BACK_FACTOR } else { MAX_TAKEN_BACK_FACTOR_OPEN };
        let mut may_take_back = times * all;
        let mut farthest = 0;
        loop {
            while let Some(chain) = self.awake.pop() {
                self.advance(chain);
            }
            if let Some(chain) = self.choose() {
                let op = self.head(chain).expect("it is before a write");
                match self.blocked(op) {
                    Some(wait) => self.queue(chain, wait),
                    None => {
                        self.execute(chain, op);
                        self.awake.push(chain);
                    }
                }
                continue;
            }
            if self.ran.len() == all {
                return Ok(true);
            }
            budget.check()?;
            let before = self.ran.len();
            may_take_back += TAKEN_BACK_FOR_MORE * before.saturating_sub(farthest);
            farthest = farthest.max(before);
            if !self.repair(budget)? {
                return Ok(false);
            }
            match may_take_back.checked_sub((before - self.ran.len()).max(1)) {
                Some(left) => may_take_back = left,
                None => return Ok(false),
            }
        }
    }

    /// Runs the operations of a chain that need no choice, and registers the condition that the
    /// next one waits for.
    fn advance(&mut self, chain: ChainId) {
        while let Some(op) = self.head(chain) {
            if let Some(wait) = self.wait(chain, op) {
                self.queue(chain, wait);
                return;
            }
            if self.is_choice(op) {
                self.choices.push(Reverse((self.weight(op), chain)));
                return;
            }
            self.execute(chain, op);
        }
    }

    /// Registers a waiting chain.
    fn queue(&mut self, chain: ChainId, wait: Wait) {
        match wait {
            Wait::Order { chain: other, count } => self.behind[other.index()].push((count, chain)),
            Wait::Key(key) => self.queues[key].push(chain),
            Wait::Value(key) => self.open.queue(key, chain),
        }
    }

    /// Checks whether the time at which an operation runs matters: other operations need the value
    /// that it writes or replaces.
    fn is_choice(&self, op: OpId) -> bool {
        self.registers.written_key(op).is_some_and(|key| {
            self.source(op).is_none()
                && (self.unread[op.index()] > 0 || self.open.is_wanted(key.index()))
        })
    }

    /// Returns the chain whose write runs next: the one that the open reads prefer, then the one
    /// with the fewest operations before it.
    fn choose(&mut self) -> Option<ChainId> {
        if self.open.is_empty() {
            return self.choices.pop().map(|Reverse((_, chain))| chain);
        }
        let demand = self.demand();
        let mut noise = self.open.noise();
        let rate = |&Reverse((weight, chain)): &Reverse<(u64, ChainId)>| {
            let wanted = self.preference(chain) + demand[chain.index()] + noise();
            (wanted, Reverse((weight, chain)))
        };
        let (_, Reverse((_, best))) = self.choices.iter().map(rate).max()?;
        self.choices.retain(|&Reverse((_, chain))| chain != best);
        Some(best)
    }

    /// Returns the write that a read is known to take its value from.
    #[inline]
    fn source(&self, op: OpId) -> Option<OpId> {
        let settled = self.registers.source[op.index()].get();
        settled.or_else(|| self.open.reserved(op))
    }

    fn head(&self, chain: ChainId) -> Option<OpId> {
        let members = self.saturation.layer().order.chains().members(chain);
        members.get(self.heads[chain.index()] as usize).copied()
    }

    /// Returns the condition that a chain's next operation waits for.
    fn wait(&mut self, chain: ChainId, op: OpId) -> Option<Wait> {
        let order = &self.saturation.layer().order;
        if let Some(row) = order.row(op) {
            let checked = self.checked[chain.index()] as usize;
            let not_run = (checked..row.len())
                .find(|&other| row[other] > self.heads[other] && other != chain.index());
            self.checked[chain.index()] = not_run.unwrap_or(row.len()) as u32;
            if let Some(other) = not_run {
                return Some(Wait::Order { chain: ChainId(other as u32), count: row[other] });
            }
        }
        self.blocked(op)
    }

    /// Returns the condition outside the order that an operation waits for.
    fn blocked(&self, op: OpId) -> Option<Wait> {
        self.missed(op).map(Wait::Value).or_else(|| self.held(op).map(Wait::Key))
    }

    /// Returns the key that a write waits for.
    fn held(&self, op: OpId) -> Option<usize> {
        let key = self.registers.written_key(op)?.index();
        let here = self.memory[key];
        let own_read = u32::from(self.source(op) == Some(here));
        (self.unread[here.index()] > own_read).then_some(key)
    }

    /// Returns the number of operations before an operation: an estimate of when it ran.
    fn weight(&self, op: OpId) -> u64 {
        let order = &self.saturation.layer().order;
        let row = order.row(op).unwrap_or_default();
        let own = order.chains().chain_of(op).index();
        let others: u64 = row.iter().map(|&count| u64::from(count)).sum();
        let own_entry = row.get(own).map_or(0, |&count| u64::from(count));
        others - own_entry + u64::from(order.chains().place_of(op))
    }

    fn execute(&mut self, chain: ChainId, op: OpId) {
        self.heads[chain.index()] += 1;
        self.checked[chain.index()] = 0;
        self.take_open(op);
        self.when[op.index()] = self.ran.len() as u32;
        self.ran.push(op);
        if let Some(source) = self.source(op) {
            self.unread[source.index()] -= 1;
            // A read-modify-write is the last read of the value that it replaces.
            if self.unread[source.index()] <= 1 {
                let key = self.registers.read_key(op).index();
                self.awake.append(&mut self.queues[key]);
            }
        }
        if let Some(key) = self.registers.written_key(op) {
            self.replaced.push(std::mem::replace(&mut self.memory[key.index()], op));
            self.open.wake(key.index(), &mut self.awake);
        }
        let ran = self.heads[chain.index()];
        let awake = &mut self.awake;
        self.behind[chain.index()].retain(|&(count, waiting)| {
            let waits = count > ran;
            if !waits {
                awake.push(waiting);
            }
            waits
        });
    }

    /// Corrects a guess in a circle of waiting operations. Returns whether that is possible.
    fn repair(&mut self, budget: &Budget) -> Result<bool, Stopped> {
        if self.reserve_what_passed() {
            return Ok(true);
        }
        let Some(mut guesses) = self.circle() else { return Ok(self.give_up()) };
        guesses.sort_unstable_by_key(|&Guess { ran, .. }| Reverse(ran));
        for Guess { ran, holding, waiting } in guesses {
            let before = self.saturation.mark();
            let known = self.saturation.layer().order.edges().len();
            let mut put = self.saturation.put(waiting, holding);
            if put.is_ok() {
                put = self.saturation.saturate(budget)?;
            }
            if put.is_err() {
                self.saturation.undo(before);
                continue;
            }
            // Operations that ran before one that must precede them are undone too.
            let new = &self.saturation.layer().order.edges()[known..];
            let ends = new.iter().map(|edge| [edge.from, edge.to].map(|op| self.when[op.index()]));
            let wrong = ends.filter(|[from, to]| to < from).map(|[_, to]| to);
            let keep = wrong.fold(ran, u32::min);
            self.undo(keep as usize);
            return Ok(true);
        }
        Ok(self.give_up())
    }

    /// Finds operations that wait for each other in a circle, and lists the guesses in it; the
    /// forced order alone has no circle. An open read may wait for a value that never comes.
    fn circle(&mut self) -> Option<Vec<Guess>> {
        let mut seen = vec![NEVER; self.heads.len()];
        let mut guesses: Vec<Guess> = Vec::new();
        let mut chain = (0..self.heads.len() as u32)
            .map(ChainId)
            .find(|&chain| self.head(chain).is_some())
            .expect("something has not run");
        while seen[chain.index()] == NEVER {
            seen[chain.index()] = guesses.len() as u32;
            let op = self.head(chain).expect("nothing waits for a chain that is at its end");
            chain = match self.wait(chain, op).expect("nothing can run") {
                Wait::Order { chain, .. } => chain,
                Wait::Key(key) => {
                    let holding = self.memory[key];
                    // An initial write is not a guess.
                    if let Some(&ran) = self.when.get(holding.index()) {
                        guesses.push(Guess { ran, holding, waiting: op });
                    }
                    let settled = self.saturation.readers.of(holding);
                    let mut readers = settled.chain(self.open.reserved_for(holding));
                    let read = readers.find(|&read| self.when[read.index()] == NEVER && read != op);
                    let read = read.expect("a variable is held for a read");
                    self.saturation.layer().order.chains().chain_of(read)
                }
                Wait::Value(_) => {
                    let write = self.to_come(op)?;
                    self.saturation.layer().order.chains().chain_of(write)
                }
            };
        }
        Some(guesses.split_off(seen[chain.index()] as usize))
    }

    /// Undoes the run after a point and wakes all chains.
    fn undo(&mut self, ran: usize) {
        while self.ran.len() > ran {
            let op = self.ran.pop().expect("it is longer");
            self.when[op.index()] = NEVER;
            self.heads[self.saturation.layer().order.chains().chain_of(op).index()] -= 1;
            if let Some(source) = self.source(op) {
                self.unread[source.index()] += 1;
            }
            if let Some(key) = self.registers.written_key(op) {
                self.memory[key.index()] = self.replaced.pop().expect("every write replaced one");
            }
            self.open.put_back(self.registers, op);
        }
        self.wake_all();
    }

    fn wake_all(&mut self) {
        self.behind.iter_mut().for_each(Vec::clear);
        self.queues.iter_mut().for_each(Vec::clear);
        self.open.clear_queues();
        self.choices.clear();
        self.checked.fill(0);
        self.awake = (0..self.heads.len() as u32).map(ChainId).collect();
    }
}
