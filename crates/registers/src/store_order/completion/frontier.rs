//! The frontier search: a sequential order of a saturated history, position by position.
//!
//! After Biswas and Enea (OOPSLA 2019): a state is the position in each chain. A state that was
//! left without success is not entered again, so for k chains there are at most n^k states. The
//! content of memory need not be part of a state: a write of x waits until all reads of the current
//! value have run, so an overwritten value is no longer needed.
//!
//! The saturated order prunes the search: an operation waits for all operations before it. Reads
//! run as soon as they can, which is never worse, and so do writes that precede all other remaining
//! writes of their key. Running any other write is a decision that it comes before the others. This
//! is assumed and saturated; if it closes a cycle, the write cannot run now. Decisions that would
//! fail much later therefore fail at once, and a history that a memory really produced is usually
//! ordered without backtracking. Backtracking undoes a trail and copies nothing.
//!
//! # Store buffers
//! For TSO and PSO the chains are those of `ppo`, and a write runs when it reaches memory. A read
//! of its own session's write may run before that write. The rules of `poloc` take part by
//! saturation. They never make the result depend on the path to a state: the remaining operations
//! of a variable can reach a read that has run only through a write of its session that has not
//! run. The read then took its value from that write, and every edge that leaves such reads leads
//! to operations that have not run either.

use consistory_history::OpId;
use consistory_order::ChainId;
use consistory_verdict::{Budget, Stopped};
use rustc_hash::FxHashSet;

use crate::registers::Registers;
use crate::store_order::completion::split::Split;
use crate::store_order::completion::{Complete, Completed};
use crate::store_order::layers::Layer;
use crate::store_order::saturation::{Point, Saturation};

/// Estimated bytes per state, besides the positions.
const STATE_OVERHEAD: usize = 32;

/// The engine of this module. Its refutations are written as trees of cases.
pub(crate) struct Frontier;

impl Complete for Frontier {
    fn complete(
        &self,
        registers: &Registers<'_>,
        saturation: &mut Saturation<'_>,
        budget: &Budget,
    ) -> Result<Completed, Stopped> {
        match search(registers, saturation, budget)? {
            FrontierResult::Order(order) => Ok(Completed::Order(order)),
            FrontierResult::Nothing => Split.complete(registers, saturation, budget),
        }
    }
}

/// Result of the search.
#[derive(Debug)]
pub(crate) enum FrontierResult {
    /// A sequential order of all operations.
    Order(Vec<OpId>),
    /// There is no such order.
    Nothing,
}

/// Searches for a sequential order of a saturated history.
///
/// Restores the saturation, unless the search was stopped.
pub(crate) fn search(
    registers: &Registers<'_>,
    saturation: &mut Saturation<'_>,
    budget: &Budget,
) -> Result<FrontierResult, Stopped> {
    FrontierSearch::new(registers, saturation).run(budget)
}

struct FrontierSearch<'s, 'a> {
    registers: &'s Registers<'s>,
    saturation: &'s mut Saturation<'a>,
    /// Number of operations before each operation: an estimate of when it ran.
    weight: Vec<u64>,
    heads: Vec<u32>,
    /// Write in memory for each key; ids of initial writes follow those of the operations.
    memory: Vec<OpId>,
    /// Number of reads of each write that have not run.
    unread: Vec<u32>,
    ran: Vec<OpId>,
    /// The writes replaced by the writes that ran, in the order of `ran`.
    replaced: Vec<OpId>,
    failed: FxHashSet<Box<[u32]>>,
}

/// A choice between writes: the length of the run at that point, and the chains still to be tried.
struct FrontierChoice {
    ran: usize,
    mark: Point,
    chains: Vec<ChainId>,
}

impl<'s, 'a> FrontierSearch<'s, 'a> {
    fn new(registers: &'s Registers<'s>, saturation: &'s mut Saturation<'a>) -> Self {
        let history = registers.history;
        let order = &saturation.layer().order;
        let chains = order.chains().ids();
        let weigh = |op: OpId| chains.clone().map(|c| u64::from(order.count_until(op, c))).sum();
        let weight = history.ops().map(weigh).collect();
        let heads = vec![0; order.chains().len()];
        let mut unread = vec![0; history.len() + history.key_count()];
        for source in registers.source.iter().filter_map(|source| source.get()) {
            unread[source.index()] += 1;
        }
        FrontierSearch {
            registers,
            weight,
            heads,
            memory: history.keys().map(|key| history.initial_write(key)).collect(),
            unread,
            ran: Vec::with_capacity(history.len()),
            replaced: Vec::new(),
            failed: FxHashSet::default(),
            saturation,
        }
    }

    fn run(mut self, budget: &Budget) -> Result<FrontierResult, Stopped> {
        let start = self.saturation.mark();
        let mut choices: Vec<FrontierChoice> = Vec::new();
        loop {
            budget.check()?;
            self.run_what_is_free();
            if self.ran.len() == self.registers.history.len() {
                self.saturation.undo(start);
                return Ok(FrontierResult::Order(self.ran));
            }
            let mut chains: Vec<ChainId> = Vec::new();
            if !self.failed.contains(self.heads.as_slice()) {
                chains.extend(
                    (0..self.heads.len() as u32)
                        .map(ChainId)
                        .filter(|&s| self.head(s).is_some_and(|op| self.can_run(op))),
                );
                // The first choice is at the end.
                chains.sort_unstable_by_key(|&s| {
                    std::cmp::Reverse(self.head(s).map(|op| self.weight[op.index()]))
                });
            }
            let mark = self.saturation.mark();
            choices.push(FrontierChoice { ran: self.ran.len(), mark, chains });
            loop {
                let Some(choice) = choices.last_mut() else { return Ok(FrontierResult::Nothing) };
                let (ran, mark, next) = (choice.ran, choice.mark, choice.chains.pop());
                self.undo(ran);
                self.saturation.undo(mark);
                let Some(chain) = next else {
                    choices.pop();
                    self.failed.insert(self.heads.clone().into_boxed_slice());
                    let state = 4 * self.heads.len() + STATE_OVERHEAD;
                    budget.reserve((self.failed.len() * state) as u64)?;
                    continue;
                };
                let op = self.head(chain).expect("the chain has a next operation");
                if self.decide(op, budget)? {
                    self.execute(op);
                    break;
                }
            }
        }
    }

    /// Puts a write before all writes of its key that have not run. Returns whether that is
    /// possible.
    fn decide(&mut self, write: OpId, budget: &Budget) -> Result<bool, Stopped> {
        let key = self.registers.written_key(write).expect("only writes are chosen");
        for number in self.saturation.layer().segments.numbers(key) {
            if let Some(other) = self.next_write(number)
                && other != write
                && self.saturation.put(write, other).is_err()
            {
                return Ok(false);
            }
        }
        Ok(self.saturation.saturate(budget)?.is_ok())
    }

    /// Returns the first write of a segment that has not run.
    fn next_write(&self, number: usize) -> Option<OpId> {
        let segments = &self.saturation.layer().segments;
        let segment = segments.numbered(number);
        let head = self.heads[segment.chain.index()];
        let first = segments.places(segment).partition_point(|&place| place < head);
        segments.writes(segment).get(first).copied()
    }

    /// Runs all operations that need no decision.
    fn run_what_is_free(&mut self) {
        loop {
            let mut moved = false;
            for chain in (0..self.heads.len() as u32).map(ChainId) {
                while let Some(op) = self.head(chain)
                    && self.can_run(op)
                    && self.is_free(op)
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

    /// Returns whether an operation does not write, or precedes every remaining write of its key.
    fn is_free(&self, op: OpId) -> bool {
        let Some(key) = self.registers.written_key(op) else { return true };
        let Layer { order, segments, .. } = self.saturation.layer();
        segments
            .numbers(key)
            .filter_map(|number| self.next_write(number))
            .all(|other| other == op || order.before(op, other))
    }

    fn head(&self, chain: ChainId) -> Option<OpId> {
        let members = self.saturation.layer().order.chains().members(chain);
        members.get(self.heads[chain.index()] as usize).copied()
    }

    fn can_run(&self, op: OpId) -> bool {
        let own = self.saturation.layer().order.chains().chain_of(op).index();
        let is_behind =
            |(chain, (&known, &head)): (usize, (&u32, &u32))| chain == own || known <= head;
        if let Some(row) = self.saturation.layer().order.row(op)
            && !row.iter().zip(&self.heads).enumerate().all(is_behind)
        {
            return false;
        }
        let source = self.registers.source[op.index()].get();
        match self.registers.written_key(op) {
            // The source is in memory, since a write waits for the reads of the value that it
            // replaces.
            None => true,
            Some(key) => {
                let here = self.memory[key.index()];
                let own_read = u32::from(source == Some(here));
                (source.is_none() || own_read == 1) && self.unread[here.index()] == own_read
            }
        }
    }

    fn execute(&mut self, op: OpId) {
        self.heads[self.saturation.layer().order.chains().chain_of(op).index()] += 1;
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
            self.heads[self.saturation.layer().order.chains().chain_of(op).index()] -= 1;
            if let Some(source) = self.registers.source[op.index()].get() {
                self.unread[source.index()] += 1;
            }
            if let Some(key) = self.registers.written_key(op) {
                self.memory[key.index()] = self.replaced.pop().expect("every write replaced one");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use consistory_generate::{Tangle, Workload, generate, tangle};
    use consistory_history::History;

    use super::*;
    use crate::reads_from::candidates;
    use crate::store_order::layers::{Memory, layers};
    use crate::store_order::saturation::Readers;

    /// Compares the result of the search with a case split, if anything is open. Returns whether
    /// there is an order.
    fn finds(history: &History, memory: Memory) -> Option<bool> {
        let budget = Budget::unlimited();
        let source = candidates(history, &Budget::unlimited()).unwrap().source;
        let registers = &Registers::new(history, &source);
        let readers = Readers::new(registers);
        let layers = layers(registers, memory, &budget).unwrap().ok()?;
        let mut saturation = Saturation::new(registers, &readers, layers);
        saturation.saturate(&budget).unwrap().ok()?;
        let found =
            matches!(search(registers, &mut saturation, &budget), Ok(FrontierResult::Order(_)));
        let cases = Split.complete(registers, &mut saturation, &budget);
        assert_eq!(found, matches!(cases, Ok(Completed::Order(_))), "{memory:?}");
        Some(found)
    }

    #[test]
    fn an_order_is_found_exactly_if_there_is_one() {
        let mut tally = [0; 2];
        for seed in 0..60 {
            let tangled = tangle(&Tangle { cells: 4, cycles: 8 + seed as u32 % 12, seed });
            let run = |memory| {
                let (operations, variables) = (60, 4);
                let workload = Workload {
                    sessions: 4,
                    operations,
                    variables,
                    rmw_share: 0.1,
                    seed,
                    ..Workload::default()
                };
                generate(&workload, memory)
            };
            for (memory, produced_by) in [
                (Memory::Sequential, consistory_generate::Memory::Sc),
                (Memory::TotalStore, consistory_generate::Memory::Tso),
                (Memory::PartialStore, consistory_generate::Memory::Pso),
            ] {
                let found = finds(&tangled, memory).expect("saturation leaves it open");
                tally[usize::from(found)] += 1;
                assert_eq!(finds(&run(produced_by), memory), Some(true), "{memory:?}, {seed}");
            }
        }
        assert!(tally.iter().all(|&n| n > 20), "{tally:?}");
    }
}
