//! Finds all outcomes of a program on a machine by depth-first search through the machine's states.
//!
//! Three techniques keep the search small:
//! - State caching: a state that was visited is not explored again.
//! - Sleep sets (Godefroid): of two steps of a state that commute, only one order is explored. If a
//!   state is reached again with another sleep set, only the steps that slept at every earlier visit
//!   and do not sleep now are explored.
//! - Persistent sets: if the steps of one component commute with every step that the others can
//!   still take, only that component's steps are explored. Examples are a write into a queue, and
//!   an access to a location that no other component will touch. Every step makes progress, so
//!   there are no cycles of states and no step is postponed forever.
//!
//! Cost: the number of reachable states, which is exponential in the number of threads and of
//! buffered writes; a test of six accesses takes a few microseconds. The search stops without a
//! result when its budget is used up. If there are many reads on which nothing depends, `future.rs`
//! finds the outcomes instead.

use std::hash::Hasher;

use consistory_verdict::Budget;
use rustc_hash::{FxHashMap, FxHasher};

use crate::operational::MachineError;
use crate::operational::compile::Tables;
use crate::operational::component::Small;
use crate::operational::future;
use crate::operational::machine::Machine;
use crate::operational::run::{Run, RunStep};
use crate::operational::step::{Choice, Step};
use crate::program::{Outcome, Outcomes, Program};

/// Number of steps between two checks of the budget.
pub(super) const STEPS_PER_BUDGET_CHECK: u64 = 1024;

/// Explores programs on machines, one after the other, and reuses its tables.
#[derive(Debug, Default)]
pub struct Explorer {
    seen: Seen,
    /// States on the current path, one after the other.
    states: Vec<u8>,
    frames: Vec<Frame>,
    /// Steps of the frames, frame by frame.
    steps: Vec<Step>,
    listed: Vec<Step>,
    outcome: Vec<Small>,
    found: FxHashMap<Box<[Small]>, Option<Run>>,
}

/// Effort of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effort {
    /// Number of states visited, each counted once.
    pub states: usize,
    /// Number of steps taken.
    pub steps: u64,
}

/// Data that a search stores for each outcome.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// Only the outcome.
    Outcomes,
    /// The outcome with a run that leads to it.
    Runs,
}

#[derive(Debug)]
struct Frame {
    start: usize,
    next: usize,
    end: usize,
    sleep: u128,
    /// Set of steps to explore; [`u128::MAX`] means all of them, including those that never sleep.
    awake: u128,
    choice: Choice,
}

impl Explorer {
    /// Builds an explorer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds every outcome of a program on a machine, each with a run that leads to it.
    pub fn outcomes(
        &mut self,
        program: &Program,
        machine: &Machine,
        budget: &Budget,
    ) -> Result<Vec<(Outcome, Run)>, MachineError> {
        let mut tables = Tables::new(program, machine)?;
        self.search(&mut tables, Keep::Runs, budget)?;
        let found = std::mem::take(&mut self.found);
        let mut all: Vec<_> = found
            .into_iter()
            .filter_map(|(outcome, run)| Some((decode(&tables, &outcome), run?)))
            .collect();
        all.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(all)
    }

    /// Finds every outcome of a program on a machine.
    pub fn outcome_set(
        &mut self,
        program: &Program,
        machine: &Machine,
        budget: &Budget,
    ) -> Result<Outcomes, MachineError> {
        let mut tables = Tables::new(program, machine)?;
        if future::pays(&tables) {
            return Ok(future::outcomes(&mut tables, &mut self.seen, budget)?.0);
        }
        self.search(&mut tables, Keep::Outcomes, budget)?;
        Ok(self.found.keys().map(|outcome| decode(&tables, outcome)).collect())
    }

    /// Counts the states and steps for finding every outcome of a program on a machine.
    pub fn effort(
        &mut self,
        program: &Program,
        machine: &Machine,
        budget: &Budget,
    ) -> Result<Effort, MachineError> {
        let mut tables = Tables::new(program, machine)?;
        if future::pays(&tables) {
            return Ok(future::outcomes(&mut tables, &mut self.seen, budget)?.1);
        }
        self.search(&mut tables, Keep::Outcomes, budget)
    }

    fn search(
        &mut self,
        tables: &mut Tables,
        keep: Keep,
        budget: &Budget,
    ) -> Result<Effort, MachineError> {
        self.seen.clear(tables.size);
        self.states.clear();
        self.frames.clear();
        self.steps.clear();
        self.found.clear();
        self.states.extend_from_slice(&tables.initial);
        let size = tables.size;
        let mut taken = 0;
        self.enter(tables, 0, keep);
        while let Some(frame) = self.frames.last_mut() {
            if frame.next == frame.end {
                self.frames.pop();
                self.states.truncate(self.states.len() - size);
                let kept = self.frames.last().map_or(0, |frame| frame.end);
                self.steps.truncate(kept);
                continue;
            }
            let step = self.steps[frame.next];
            frame.next += 1;
            let sleeps = step.sleep != 0 && frame.sleep & step.sleep != 0;
            let explored = frame.awake != u128::MAX && frame.awake & step.sleep == 0;
            if sleeps || explored {
                continue;
            }
            let beside = &self.steps[frame.start..frame.end];
            let sleep = match frame.choice {
                Choice::Enough => beside.iter().fold(frame.sleep, |all, s| all & !s.sleep),
                Choice::All => beside
                    .iter()
                    .filter(|other| frame.sleep & other.sleep != 0 && other.commutes(&step))
                    .fold(0, |all, other| all | other.sleep),
            };
            frame.sleep |= step.sleep;
            let top = self.states.len() - size;
            self.states.extend_from_within(top..);
            tables.apply(&mut self.states[top + size..], step);
            taken += 1;
            if taken % STEPS_PER_BUDGET_CHECK == 0 {
                budget.check()?;
                budget.reserve(self.seen.bytes())?;
            }
            if tables.values.overflowed() {
                return Err(tables.too_many_values());
            }
            self.enter(tables, sleep, keep);
        }
        if tables.values.overflowed() {
            return Err(tables.too_many_values());
        }
        Ok(Effort { states: self.seen.len(), steps: taken })
    }

    /// Visits the top state: records its outcome, leaves it if it was visited before, or opens a
    /// frame.
    fn enter(&mut self, tables: &mut Tables, sleep: u128, keep: Keep) {
        let size = tables.size;
        let top = self.states.len() - size;
        let state = &self.states[top..];
        if tables.is_final(state) {
            let mut outcome = std::mem::take(&mut self.outcome);
            tables.outcome(state, &mut outcome);
            if !self.found.contains_key(outcome.as_slice()) {
                let run = (keep == Keep::Runs).then(|| self.path(tables));
                self.found.insert(outcome.as_slice().into(), run);
            }
            self.outcome = outcome;
            self.states.truncate(top);
            return;
        }
        let (entry, new) = self.seen.insert(state, sleep);
        let (sleep, awake) = if new {
            (sleep, u128::MAX)
        } else {
            let slept = self.seen.sleeps[entry];
            let awake = slept & !sleep;
            if awake == 0 {
                self.states.truncate(top);
                return;
            }
            self.seen.sleeps[entry] = slept & sleep;
            (slept & sleep, awake)
        };
        let choice = tables.steps(state, Choice::Enough, &mut self.listed);
        let start = self.steps.len();
        self.steps.extend_from_slice(&self.listed);
        self.frames.push(Frame { start, next: start, end: self.steps.len(), sleep, awake, choice });
    }

    /// Returns the steps from the start to the top state.
    fn path(&self, tables: &Tables) -> Run {
        let states = self.states.chunks_exact(tables.size);
        let taken = self.frames.iter().map(|frame| self.steps[frame.next - 1]);
        let steps = states.zip(taken).map(|(state, step)| RunStep::new(tables, state, step));
        Run { steps: steps.collect() }
    }
}

/// Finds every outcome of a program on a machine, each with a run that leads to it, in order.
///
/// To explore many programs, reuse an [`Explorer`].
pub fn outcomes(
    program: &Program,
    machine: &Machine,
    budget: &Budget,
) -> Result<Vec<(Outcome, Run)>, MachineError> {
    Explorer::new().outcomes(program, machine, budget)
}

fn decode(tables: &Tables, outcome: &[Small]) -> Outcome {
    Outcome(outcome.iter().map(|small| tables.values.value(*small)).collect())
}

/// Visited states, each with the steps that slept at every visit.
#[derive(Debug, Default)]
pub(super) struct Seen {
    size: usize,
    rows: Vec<u8>,
    sleeps: Vec<u128>,
    /// Hash table with open addressing: 0, or an entry counted from 1. The length is a power of
    /// two.
    table: Vec<u32>,
}

impl Seen {
    pub(super) fn clear(&mut self, size: usize) {
        self.size = size;
        self.rows.clear();
        self.sleeps.clear();
        self.table.clear();
        self.table.resize(256, 0);
    }

    pub(super) fn len(&self) -> usize {
        self.sleeps.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.rows.len() + 16 * self.sleeps.len() + 4 * self.table.len()) as u64
    }

    /// Finds a state or adds it; returns whether it is new.
    pub(super) fn insert(&mut self, state: &[u8], sleep: u128) -> (usize, bool) {
        let mask = self.table.len() - 1;
        let mut at = hash(state) & mask;
        loop {
            match self.table[at] {
                0 => break,
                entry => {
                    let entry = entry as usize - 1;
                    if self.rows[entry * self.size..(entry + 1) * self.size] == *state {
                        return (entry, false);
                    }
                }
            }
            at = (at + 1) & mask;
        }
        let entry = self.sleeps.len();
        self.rows.extend_from_slice(state);
        self.sleeps.push(sleep);
        self.table[at] = entry as u32 + 1;
        if 2 * self.sleeps.len() > self.table.len() {
            self.grow();
        }
        (entry, true)
    }

    fn grow(&mut self) {
        let length = 4 * self.table.len();
        self.table.clear();
        self.table.resize(length, 0);
        for (entry, row) in self.rows.chunks_exact(self.size).enumerate() {
            let mut at = hash(row) & (length - 1);
            while self.table[at] != 0 {
                at = (at + 1) & (length - 1);
            }
            self.table[at] = entry as u32 + 1;
        }
    }
}

fn hash(state: &[u8]) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write(state);
    let hash = hasher.finish();
    (hash ^ hash >> 32) as usize
}
