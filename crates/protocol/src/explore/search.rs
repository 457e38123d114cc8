//! Breadth-first exploration of all states, on all cores.
//!
//! States are distributed over shards by their hash, one shard per thread. A round takes a few
//! thousand states of the current level: first every thread computes the successors of its part and
//! sorts them by shard, then every thread adds the states of its own shard. No two threads ever
//! write to the same memory, and the number of states, the depth and the verdict do not depend on
//! the number of threads. A level is finished before a violation is reported, so the run to it is a
//! shortest one. Runs are reconstructed afterwards (see `trace`) instead of being stored.
//!
//! After each round a search can be saved (see `checkpoint`). If the time runs out in the middle of
//! a round, the round does not count.

use std::time::{Duration, Instant};

use consistory_verdict::{Budget, Stopped};
use consistory_work::each;

use crate::explore::checkpoint::{Checkpoint, Snapshot};
use crate::explore::expand::{Expander, Product, Wrong};
use crate::explore::outcome::{Options, Progress, Stop, Unfinished, Violation};
use crate::explore::passing::{Passing, Rejections};
use crate::explore::store::{Shard, Storage, hash_words};
use crate::explore::trace::{self, Lost, Run};
use crate::tracking::Operation;

/// Number of states of a level that each thread expands between two rounds of insertion.
const STATES_PER_ROUND: usize = 4096;

/// Largest number of words of their successors, if every rule leads to one.
const MAX_WORDS_PER_ROUND: usize = 1 << 22;

/// Number of slots of fired rules after which a thread reads the clock.
const SLOTS_BETWEEN_CHECKS: usize = 1 << 20;

/// Number of start states after which the clock is read.
pub(crate) const STARTS_BETWEEN_CHECKS: usize = 256;

/// Reciprocal of the share of the time that is added for reconstructing a run after the search.
const SETTLING_SHARE: u32 = 10;

/// Number of slots that a guard counts as.
const SLOTS_OF_GUARD: usize = 16;

/// A violation and its state.
pub(crate) type Found = (Wrong, Vec<u64>);

/// Result of a search.
pub(crate) enum Ended {
    Holds,
    Undecided(Unfinished),
    Wrong(Violation, Run),
    /// There are only rejected runs that a judge let pass; this is the first of them.
    PassedOver {
        violation: Violation,
        run: Run,
        stopped: Option<Stop>,
    },
}

/// Reasons why a level was not finished.
pub(crate) enum Halt {
    Stop(Stop),
    /// A run could not be reconstructed.
    Lost(Lost),
}

pub(crate) struct BreadthFirstSearch<'a> {
    pub(crate) product: Product<'a>,
    pub(crate) options: &'a Options,
    budget: &'a Budget,
    pub(crate) shards: Vec<Shard>,
    /// For each level, the number of earlier states in each shard.
    pub(crate) levels: Vec<Vec<u32>>,
    pub(crate) progress: Progress,
    started: Instant,
    /// Time that had elapsed when the search was saved.
    before: Duration,
    /// Whether something was found that a search that continues from here would not find again.
    pub(crate) has_found: bool,
}

/// Result of a thread for its part of a round.
#[derive(Default)]
struct Expansion {
    /// Successors by shard, their words concatenated.
    successors: Vec<Vec<u64>>,
    fired: u64,
    loads: u64,
    stores: u64,
    /// A violation in a state of this level.
    here: Option<Found>,
    /// A violation in a step from this level.
    next: Option<Found>,
    /// Steps from this level that the companion rejects.
    rejections: Rejections,
    /// Reason why the thread stopped before the end of the part.
    stopped: Option<Stopped>,
}

impl<'a> BreadthFirstSearch<'a> {
    pub(crate) fn new(product: Product<'a>, options: &'a Options, budget: &'a Budget) -> Self {
        let jobs = options.jobs.max(1);
        BreadthFirstSearch {
            product,
            options,
            budget,
            shards: (0..jobs).map(|_| Shard::new(product.width(), Storage::of(options))).collect(),
            levels: Vec::new(),
            progress: Progress::default(),
            started: Instant::now(),
            before: Duration::ZERO,
            has_found: false,
        }
    }

    /// Restores a saved search; returns the position from which it continues.
    pub(crate) fn restore(&mut self, checkpoint: Checkpoint) -> Vec<u32> {
        let checkpoint = checkpoint.with_shards(self.shards.len());
        self.shards = checkpoint.shards;
        self.levels = checkpoint.levels;
        self.before = checkpoint.progress.elapsed;
        self.progress = checkpoint.progress;
        checkpoint.at
    }

    /// Ends the search by reconstructing the run to the violation.
    pub(crate) fn finish(
        mut self,
        found: Result<Option<Found>, Halt>,
        passing: &mut Passing<'_>,
    ) -> (Ended, Progress) {
        let ended = match (found, passing.last.take(), passing.first.take()) {
            (Ok(Some(_)), Some((violation, run)), _) => Ended::Wrong(violation, run),
            (Ok(Some((wrong, at))), ..) => {
                match trace::run_to(&self, wrong, &at, &self.settling()) {
                    Ok((violation, run)) => Ended::Wrong(violation, run),
                    Err(lost) => Ended::Undecided(lost.into()),
                }
            }
            (Ok(None), _, Some((violation, run))) => {
                Ended::PassedOver { violation, run, stopped: None }
            }
            (Err(Halt::Stop(stop)), _, Some((violation, run))) => {
                Ended::PassedOver { violation, run, stopped: Some(stop) }
            }
            (Ok(None), ..) => Ended::Holds,
            (Err(Halt::Stop(Stop::Budget(stopped))), ..) => {
                Ended::Undecided(Unfinished::Budget(stopped))
            }
            (Err(Halt::Stop(Stop::States { limit })), ..) => {
                Ended::Undecided(Unfinished::States { limit })
            }
            (Err(Halt::Lost(lost)), ..) => Ended::Undecided(lost.into()),
            (Err(Halt::Stop(Stop::Runs)), _, None) => Ended::Undecided(Unfinished::Representatives),
        };
        self.update();
        (ended, self.progress)
    }

    /// Returns the budget for reconstructing a run: it has a tenth more time than the search.
    pub(crate) fn settling(&self) -> Budget {
        self.budget.extended(SETTLING_SHARE)
    }

    /// Searches, starting in the middle of a level if the search was saved there.
    pub(crate) fn search(
        &mut self,
        from: Option<Vec<u32>>,
        report: &mut dyn FnMut(&Snapshot<'_>),
        passing: &mut Passing<'_>,
    ) -> Result<Option<Found>, Halt> {
        let mut expanders: Vec<Expander<'a>> =
            self.shards.iter().map(|_| Expander::new(self.product, self.budget)).collect();
        if let Some(at) = from {
            if let Some(found) = self.level(at, &mut expanders, report, passing)? {
                return Ok(Some(found));
            }
            self.progress.depth += 1;
        } else if let Some(found) = self.starts()? {
            return Ok(Some(found));
        }
        loop {
            let ends: Vec<u32> = self.shards.iter().map(|shard| shard.len() as u32).collect();
            let starts = self.levels.last().expect("the start states are a level").clone();
            if starts == ends {
                return Ok(None);
            }
            self.levels.push(ends);
            self.shards.iter_mut().for_each(Shard::next_level);
            if let Some(found) = self.level(starts, &mut expanders, report, passing)? {
                return Ok(Some(found));
            }
            self.progress.depth += 1;
        }
    }

    /// Adds the start states.
    fn starts(&mut self) -> Result<Option<Found>, Halt> {
        self.levels.push(vec![0; self.shards.len()]);
        let mut expander = Expander::new(self.product, self.budget);
        let mut scratch = Vec::new();
        let halt = |stopped| Halt::Stop(Stop::Budget(stopped));
        for number in 0..self.product.system.lowered.starts.len() {
            // The clock is read here because a start state reads it only if it takes long.
            if number % STARTS_BETWEEN_CHECKS == STARTS_BETWEEN_CHECKS - 1 {
                let bytes = self.shards.iter().map(Shard::bytes).sum();
                self.budget.check().and(self.budget.reserve(bytes)).map_err(halt)?;
            }
            match expander.start(number) {
                Ok(words) => {
                    let shard = shard_of(words, self.shards.len(), Storage::of(self.options));
                    self.shards[shard].insert(words, &mut scratch);
                }
                Err(Wrong::Stopped) => {
                    let stopped = expander.stopped().unwrap_or(Stopped::Interrupted);
                    return Err(halt(stopped));
                }
                Err(wrong) => return Ok(Some((wrong, Vec::new()))),
            }
        }
        Ok(None)
    }

    /// Expands the states of the last level from given positions on, round by round.
    fn level(
        &mut self,
        mut at: Vec<u32>,
        expanders: &mut [Expander<'a>],
        report: &mut dyn FnMut(&Snapshot<'_>),
        passing: &mut Passing<'_>,
    ) -> Result<Option<Found>, Halt> {
        let mut rejections = Rejections::default();
        let ends = self.levels.last().expect("there is a level").clone();
        let (mut here, mut next): (Option<Found>, Option<Found>) = (None, None);
        while at != ends {
            let mut then = at.clone();
            let parts = self.parts(&mut then, &ends);
            let mut expansions = self.expand(expanders, &parts);
            for expansion in &mut expansions {
                least(&mut here, &expansion.here);
                least(&mut next, &expansion.next);
                rejections.merge(std::mem::take(&mut expansion.rejections));
            }
            self.has_found |= here.is_some() || next.is_some() || !rejections.is_empty();
            if let Some(stopped) = expansions.iter().find_map(|e| e.stopped.clone()) {
                if here.is_none() && next.is_none() {
                    return Err(self.stop(Stop::Budget(stopped), &at, report));
                }
                // A violation that was found is valid although the level is not finished.
                break;
            }
            for expansion in &expansions {
                self.progress.fired += expansion.fired;
                self.progress.loads += expansion.loads;
                self.progress.stores += expansion.stores;
            }
            self.insert(&expansions);
            at = then;
            self.update();
            self.progress.expanded = at.iter().map(|&n| u64::from(n)).sum();
            report(&Snapshot { search: self, at: &at, is_last: false });
            if here.is_none() && next.is_none() {
                let reserved = self.budget.reserve(self.progress.bytes);
                if let Err(stopped) = self.budget.check().and(reserved) {
                    return Err(self.stop(Stop::Budget(stopped), &at, report));
                }
                if let Some(limit) = self.options.states
                    && self.progress.states > limit
                {
                    return Err(self.stop(Stop::States { limit }, &at, report));
                }
            }
        }
        // A run that is to be judged cannot be reconstructed from hashes alone.
        match rejections.least() {
            Some(found) if self.options.compaction => least(&mut next, &Some(found)),
            _ => {
                if let Some(found) = passing.judge(self, rejections)? {
                    return Ok(Some(found));
                }
            }
        }
        Ok(here.or(next))
    }

    /// Reports a snapshot for the last time.
    fn stop(&mut self, reason: Stop, at: &[u32], report: &mut dyn FnMut(&Snapshot<'_>)) -> Halt {
        self.update();
        report(&Snapshot { search: self, at, is_last: true });
        Halt::Stop(reason)
    }

    /// Distributes the next states of a level: each thread expands states of its own shard, and
    /// then states of shards that have more left.
    fn parts(&self, at: &mut [u32], ends: &[u32]) -> Vec<Vec<(usize, u32, u32)>> {
        let mut parts: Vec<Vec<(usize, u32, u32)>> = vec![Vec::new(); self.shards.len()];
        let left: usize = at.iter().zip(ends).map(|(a, e)| (e - a) as usize).sum();
        let rules = self.product.system.lowered.rules.len().max(1);
        let round = STATES_PER_ROUND.min(MAX_WORDS_PER_ROUND / self.product.words() / rules).max(1);
        let share = left.div_ceil(parts.len()).min(round);
        let mut shard = 0;
        for part in &mut parts {
            let mut room = share as u32;
            while room > 0 && shard < at.len() {
                let count = room.min(ends[shard] - at[shard]);
                if count > 0 {
                    part.push((shard, at[shard], at[shard] + count));
                    at[shard] += count;
                    room -= count;
                }
                if at[shard] == ends[shard] {
                    shard += 1;
                }
            }
        }
        parts
    }

    fn update(&mut self) {
        self.progress.states = self.shards.iter().map(|shard| shard.len() as u64).sum();
        self.progress.bytes = self.shards.iter().map(Shard::bytes).sum();
        self.progress.elapsed = self.before + self.started.elapsed();
    }

    /// Computes the successors of parts of a level, one thread per part.
    fn expand(
        &self,
        expanders: &mut [Expander<'a>],
        parts: &[Vec<(usize, u32, u32)>],
    ) -> Vec<Expansion> {
        let work = |expander: &mut Expander<'a>, part: &[(usize, u32, u32)]| {
            self.expand_part(expander, part)
        };
        if let [expander] = expanders {
            return vec![work(expander, &parts[0])];
        }
        let pieces: Vec<_> = expanders.iter_mut().zip(parts).collect();
        each(pieces, |(expander, part)| work(expander, part))
    }

    /// Computes the successors of a part.
    fn expand_part(&self, expander: &mut Expander<'a>, part: &[(usize, u32, u32)]) -> Expansion {
        let mut out = Expansion::default();
        out.successors.resize_with(self.shards.len(), Vec::new);
        let mut words = vec![0; self.product.words()];
        let rules = self.product.system.lowered.rules.len();
        let slots = self.product.system.layout.slots.len();
        let (shards, storage) = (self.shards.len(), Storage::of(self.options));
        let mut work = SLOTS_BETWEEN_CHECKS;
        for &(shard, from, to) in part {
            for number in from..to {
                self.shards[shard].get(number, &mut words);
                if let Some(wrong) = expander.load(&words) {
                    if wrong == Wrong::Stopped {
                        out.stopped = expander.stopped();
                        return out;
                    }
                    least(&mut out.here, &Some((wrong, words.clone())));
                    continue;
                }
                let mut is_stuck = true;
                let mut by_priority = self.product.system.lowered.by_priority();
                for rule in 0..rules {
                    if !by_priority.admits(rule) {
                        break;
                    }
                    if work >= SLOTS_BETWEEN_CHECKS {
                        work = 0;
                        if let Err(stopped) = self.has_room(&out.successors) {
                            out.stopped = Some(stopped);
                            return out;
                        }
                    }
                    work += SLOTS_OF_GUARD;
                    let fired = expander.fire(rule);
                    if !matches!(fired, Ok(None)) {
                        by_priority.fired();
                    }
                    match fired {
                        Ok(None) => continue,
                        Ok(Some(successor)) => {
                            out.fired += 1;
                            if successor != words {
                                is_stuck = false;
                                let shard = shard_of(successor, shards, storage);
                                out.successors[shard].extend_from_slice(successor);
                            }
                        }
                        Err(wrong @ Wrong::Rejected { .. }) => {
                            is_stuck = false;
                            let rule = self.product.system.lowered.rules[rule].rule;
                            out.rejections.add(rule, wrong, &words);
                        }
                        Err(Wrong::Stopped) => {
                            out.stopped = expander.stopped();
                            return out;
                        }
                        Err(wrong) => {
                            is_stuck = false;
                            least(&mut out.next, &Some((wrong, words.clone())));
                        }
                    }
                    for operation in &expander.effect().operations {
                        match operation {
                            Operation::Load { .. } => out.loads += 1,
                            Operation::Store { .. } => out.stores += 1,
                            Operation::Serialize { .. } => {}
                        }
                    }
                    // A step to a renamed copy of the state still leads to another state.
                    is_stuck = is_stuck && expander.stepper.is_unchanged();
                    expander.reset();
                    work += slots;
                }
                if is_stuck && self.options.deadlock {
                    least(&mut out.here, &Some((Wrong::Deadlock, words.clone())));
                }
            }
        }
        out
    }

    /// Fails if the time is over or the successors exceed the memory budget.
    fn has_room(&self, successors: &[Vec<u64>]) -> Result<(), Stopped> {
        self.budget.check()?;
        // Every thread has a similar amount.
        let words: usize = successors.iter().map(Vec::capacity).sum();
        let bytes = words as u64 * 8 * self.shards.len() as u64;
        self.budget.reserve(self.progress.bytes + bytes)
    }

    /// Adds successors to the shards, one thread per shard.
    fn insert(&mut self, expansions: &[Expansion]) {
        let width = self.product.words();
        let work = |number: usize, shard: &mut Shard| {
            let mut scratch = Vec::new();
            for expansion in expansions {
                for words in expansion.successors[number].chunks_exact(width) {
                    shard.insert(words, &mut scratch);
                }
            }
        };
        if let [shard] = &mut self.shards[..] {
            return work(0, shard);
        }
        each(self.shards.iter_mut().enumerate().collect(), |(number, shard)| work(number, shard));
    }
}

/// Keeps the violation whose state comes first, regardless of the thread that finds it.
pub(crate) fn least(best: &mut Option<Found>, found: &Option<Found>) {
    if let Some((wrong, at)) = found
        && best.as_ref().is_none_or(|(known, known_at)| (at, wrong) < (known_at, known))
    {
        *best = Some((*wrong, at.clone()));
    }
}

/// Returns the shard of a state: by its first words, so that no two shards store the same ones, or
/// by its hash if only the hash is stored.
pub(crate) fn shard_of(words: &[u64], shards: usize, storage: Storage) -> usize {
    if shards == 1 {
        return 0;
    }
    let first = match storage {
        Storage::Hashes => words,
        Storage::States => &words[..words.len().div_ceil(2)],
    };
    shard_of_hash(hash_words(first), shards)
}

/// Returns the shard of the states with a given hash.
pub(crate) fn shard_of_hash(hash: u64, shards: usize) -> usize {
    (((hash & 0xffff_ffff) * shards as u64) >> 32) as usize
}
