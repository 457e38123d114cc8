//! Breadth-first exploration of all states, on all cores.
//!
//! States are distributed over shards by their hash, one shard a thread. A round takes a few
//! thousand states of the current level: first every thread computes the successors of its part
//! and sorts them by shard, then every thread adds what belongs to its shard. No two threads ever
//! write to the same memory, and the number of states, the depth and the verdict do not depend on
//! the number of threads. A level is finished before a violation is reported, so the run to it is
//! a shortest one. Runs are found again afterwards (see `trace`) instead of being remembered.
//!
//! After each round a search can be written down as it is (see `checkpoint`). When time is up in
//! the middle of a round, the round does not count.

use std::time::{Duration, Instant};

use consistory_verdict::{Budget, Stopped};

use crate::explore::checkpoint::{Checkpoint, Mismatch, Snapshot};
use crate::explore::expand::{Expander, Product, Wrong};
use crate::explore::passing::{Judge, Passed, Passing, Rejections};
use crate::explore::store::{Shard, hash_words};
use crate::explore::trace::{self, Run};
use crate::system::{Fault, Position, System};
use crate::tracking::Companion;

/// How to explore.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether states that differ by a renaming of scalarset values count as one.
    pub symmetry: bool,
    /// How many threads work.
    pub jobs: usize,
    /// How many states may be visited.
    pub states: Option<u64>,
    /// Whether a state that no rule leaves is a violation.
    pub deadlock: bool,
    /// Whether only 64 bits of each state are kept, see [`Exploration::omission`].
    pub compaction: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { symmetry: true, jobs: 1, states: None, deadlock: true, compaction: false }
    }
}

/// How far an exploration has got.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Progress {
    /// How many states were found.
    pub states: u64,
    /// How many of them have all their successors found.
    pub expanded: u64,
    /// How many times a rule was fired.
    pub fired: u64,
    /// How many steps from a start state the search is.
    pub depth: u32,
    /// How many bytes the visited states take.
    pub bytes: u64,
    /// How long it took.
    pub elapsed: Duration,
}

/// What an exploration found.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// The verdict.
    pub outcome: Outcome,
    /// How far it got.
    pub progress: Progress,
    /// Scalarsets that symmetry was asked for and that a loop told apart all the same.
    pub asymmetric: Vec<String>,
    /// With hash compaction, what the probability is at most that a state was missed.
    pub omission: Option<f64>,
}

/// The verdict of an exploration.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Every state was visited and nothing is wrong.
    Holds,
    /// Something is wrong at the end of a run.
    Violated {
        /// What is wrong.
        violation: Violation,
        /// A shortest run to it.
        run: Run,
    },
    /// The search stopped before its end; nothing wrong was found until then.
    Undecided {
        /// Why it stopped.
        reason: Unfinished,
    },
}

/// Why an exploration stopped before its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unfinished {
    /// The budget of time or memory ran out, or somebody asked to stop.
    #[error("{0}")]
    Budget(Stopped),
    /// As many states as allowed were found.
    #[error("the limit of {limit} states was reached")]
    States {
        /// How many were allowed.
        limit: u64,
    },
    /// Something is wrong, but the run to it was not found in time.
    #[error("something is wrong, but the run to it was not found: {0}")]
    Run(Stopped),
    /// Runs that are rejected were judged, and none of them is wrong.
    #[error("{runs} runs were judged")]
    Judged {
        /// How many runs.
        runs: u32,
    },
}

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Violation {
    /// A rule or start state went wrong.
    Fault {
        /// The rule with its parameters.
        rule: String,
        /// What went wrong, and where.
        fault: Fault,
    },
    /// An invariant does not hold.
    Invariant {
        /// Its name, with its parameters.
        name: String,
        /// Where it stands.
        position: Position,
        /// What went wrong when it was evaluated, if it is not simply false.
        fault: Option<Fault>,
    },
    /// No rule leads to another state.
    Deadlock,
    /// What runs beside the protocol does not allow the last step.
    Rejected {
        /// The rule with its parameters.
        rule: String,
        /// Where it stands.
        position: Position,
    },
}

/// Explores a system, with a companion if one is given; `report` is called after each round.
pub fn explore(
    system: &System,
    companion: Option<&dyn Companion>,
    options: &Options,
    budget: &Budget,
    report: &mut dyn FnMut(&Snapshot<'_>),
) -> Exploration {
    explore_from(None, system, companion, options, budget, report)
        .expect("without a checkpoint there is nothing that could differ")
}

/// Explores a system from where a checkpoint left off, or from the start.
pub fn explore_from(
    checkpoint: Option<Checkpoint>,
    system: &System,
    companion: Option<&dyn Companion>,
    options: &Options,
    budget: &Budget,
    report: &mut dyn FnMut(&Snapshot<'_>),
) -> Result<Exploration, Mismatch> {
    let accept = &mut |_: &Run| true;
    let judged = explore_judged(checkpoint, system, companion, options, budget, report, accept);
    judged.map(|(exploration, _)| exploration)
}

/// Explores a system; a judge says which of the runs that the companion rejects end the search.
pub(crate) fn explore_judged<'j>(
    checkpoint: Option<Checkpoint>,
    system: &System,
    companion: Option<&dyn Companion>,
    options: &Options,
    budget: &Budget,
    report: &mut dyn FnMut(&Snapshot<'_>),
    judge: &'j mut Judge<'j>,
) -> Result<(Exploration, Passed), Mismatch> {
    let mut passing = Passing::new(judge);
    let mut options = options.clone();
    let mut is_again = false;
    let mut symmetric = match options.symmetry {
        true => system.symmetric.types.clone(),
        false => Vec::new(),
    };
    let mut checkpoint = checkpoint;
    if let Some(checkpoint) = &checkpoint {
        checkpoint.fits(&Product { system, companion, symmetric: &symmetric }, &options)?;
        symmetric.retain(|ty| checkpoint.symmetric.contains(ty));
    }
    loop {
        let product = Product { system, companion, symmetric: &symmetric };
        let mut search = Search::new(product, &options, budget);
        search.has_found = is_again;
        let from = checkpoint.take().map(|checkpoint| search.restore(checkpoint));
        passing.restart();
        let found = search.search(from, report, &mut passing);
        // A loop told the values of a scalarset apart: it is an ordinary type after all.
        if let Ok(Some((Wrong::Fault { site, .. }, _))) = &found
            && let Some(types) = system.ordered_loop(*site)
        {
            let before = symmetric.len();
            symmetric.retain(|ty| !types.contains(ty));
            // The loop's own type may be ordinary already; each round must leave fewer.
            if symmetric.len() == before {
                symmetric.clear();
            }
            continue;
        }
        // By hashes alone no run can be found again: that takes the states themselves.
        if options.compaction && matches!(found, Ok(Some(_))) {
            options.compaction = false;
            is_again = true;
            continue;
        }
        let ordinary = system.symmetric.types.iter().filter(|ty| !symmetric.contains(ty));
        let asymmetric = match options.symmetry {
            true => ordinary.map(|&ty| system.program.types.show(ty)).collect(),
            false => Vec::new(),
        };
        return Ok(search.finish(found, asymmetric, passing));
    }
}

/// How many states of a level are expanded between two rounds of insertion, by each thread.
const ROUND: usize = 4096;

/// How many words their successors may have together, if every rule leads to one.
const ROUND_WORDS: usize = 1 << 22;

/// After how many slots that rules were fired on a thread looks at the clock.
const CHECKED: usize = 1 << 20;

/// A violation and the state that it belongs to.
pub(crate) type Found = (Wrong, Vec<u64>);

pub(crate) struct Search<'a> {
    pub(crate) product: Product<'a>,
    pub(crate) options: &'a Options,
    budget: &'a Budget,
    pub(crate) shards: Vec<Shard>,
    /// For each level the number of states of each shard before it.
    pub(crate) levels: Vec<Vec<u32>>,
    pub(crate) progress: Progress,
    started: Instant,
    /// How long it had taken when it was written down.
    before: Duration,
    /// Whether something was found that a search that goes on from here would not find again.
    pub(crate) has_found: bool,
}

/// What a thread gets out of its part of a round.
#[derive(Default)]
struct Expansion {
    /// Successors by shard, their words one after the other.
    successors: Vec<Vec<u64>>,
    fired: u64,
    /// A violation in a state of this level.
    here: Option<Found>,
    /// A violation in a step from this level.
    next: Option<Found>,
    /// Steps from this level that the companion rejects.
    rejections: Rejections,
    /// Why it stopped before the end of the part.
    stopped: Option<Stopped>,
}

impl Expansion {
    fn has_found(&self) -> bool {
        self.here.is_some() || self.next.is_some()
    }
}

impl<'a> Search<'a> {
    fn new(product: Product<'a>, options: &'a Options, budget: &'a Budget) -> Self {
        let jobs = options.jobs.max(1);
        Search {
            product,
            options,
            budget,
            shards: (0..jobs).map(|_| Shard::new(product.width(), options.compaction)).collect(),
            levels: Vec::new(),
            progress: Progress::default(),
            started: Instant::now(),
            before: Duration::ZERO,
            has_found: false,
        }
    }

    /// Takes over what was written down; gives where to go on.
    fn restore(&mut self, checkpoint: Checkpoint) -> Vec<u32> {
        let checkpoint = checkpoint.with_shards(self.shards.len());
        self.shards = checkpoint.shards;
        self.levels = checkpoint.levels;
        self.before = checkpoint.progress.elapsed;
        self.progress = checkpoint.progress;
        checkpoint.at
    }

    fn finish(
        mut self,
        found: Result<Option<Found>, Unfinished>,
        asymmetric: Vec<String>,
        mut passing: Passing<'_>,
    ) -> (Exploration, Passed) {
        let outcome = match (found, passing.last, passing.first) {
            (Ok(Some(_)), Some((violation, run)), _) => Outcome::Violated { violation, run },
            (Ok(Some((wrong, at))), ..) => self.violated(wrong, at),
            (found, _, Some((violation, run))) => {
                passing.passed.stopped = found.err();
                Outcome::Violated { violation, run }
            }
            (Ok(None), ..) => Outcome::Holds,
            (Err(reason), ..) => Outcome::Undecided { reason },
        };
        self.update();
        let states = self.progress.states as f64;
        let omission = self.options.compaction.then(|| states * states / 2f64.powi(65));
        let exploration = Exploration { outcome, progress: self.progress, asymmetric, omission };
        (exploration, passing.passed)
    }

    /// Gives a budget for finding a run again, which takes no longer than the search did.
    pub(crate) fn renewed(&self) -> Budget {
        self.budget.renewed()
    }

    fn violated(&self, wrong: Wrong, at: Vec<u64>) -> Outcome {
        match trace::run_to(self, wrong, &at, &self.renewed()) {
            Ok((violation, run)) => Outcome::Violated { violation, run },
            Err(stopped) => Outcome::Undecided { reason: Unfinished::Run(stopped) },
        }
    }

    /// Searches, from the middle of a level if that was written down.
    fn search(
        &mut self,
        from: Option<Vec<u32>>,
        report: &mut dyn FnMut(&Snapshot<'_>),
        passing: &mut Passing<'_>,
    ) -> Result<Option<Found>, Unfinished> {
        let mut expanders: Vec<Expander<'a>> =
            self.shards.iter().map(|_| Expander::new(self.product)).collect();
        if let Some(at) = from {
            if let Some(found) = self.level(at, &mut expanders, report, passing)? {
                return Ok(Some(found));
            }
            self.progress.depth += 1;
        } else if let Some(found) = self.starts() {
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
    fn starts(&mut self) -> Option<Found> {
        self.levels.push(vec![0; self.shards.len()]);
        let mut expander = Expander::new(self.product);
        let mut scratch = Vec::new();
        for number in 0..self.product.system.lowered.starts.len() {
            match expander.start(number) {
                Ok(words) => {
                    let shard = shard_of(words, self.shards.len(), self.options.compaction);
                    self.shards[shard].insert(words, &mut scratch);
                }
                Err(wrong) => return Some((wrong, Vec::new())),
            }
        }
        None
    }

    /// Expands the states of the last level from some on, round by round.
    fn level(
        &mut self,
        mut at: Vec<u32>,
        expanders: &mut [Expander<'a>],
        report: &mut dyn FnMut(&Snapshot<'_>),
        passing: &mut Passing<'_>,
    ) -> Result<Option<Found>, Unfinished> {
        let mut rejections = Rejections::default();
        let ends = self.levels.last().expect("there is a level").clone();
        let (mut here, mut next): (Option<Found>, Option<Found>) = (None, None);
        while at != ends {
            let mut then = at.clone();
            let parts = self.parts(&mut then, &ends);
            let has_found = here.is_some() || next.is_some();
            let mut expansions = self.expand(expanders, &parts, has_found);
            for expansion in &mut expansions {
                least(&mut here, &expansion.here);
                least(&mut next, &expansion.next);
                rejections.merge(std::mem::take(&mut expansion.rejections));
            }
            self.has_found |= here.is_some() || next.is_some() || !rejections.is_empty();
            if let Some(stopped) = expansions.iter().find_map(|e| e.stopped.clone())
                && here.is_none()
                && next.is_none()
            {
                return Err(self.stop(Unfinished::Budget(stopped), &at, report));
            }
            self.progress.fired += expansions.iter().map(|e| e.fired).sum::<u64>();
            self.insert(&expansions);
            at = then;
            self.update();
            self.progress.expanded = at.iter().map(|&n| u64::from(n)).sum();
            report(&Snapshot { search: self, at: &at, is_last: false });
            if here.is_none() && next.is_none() {
                let reserved = self.budget.reserve(self.progress.bytes);
                if let Err(stopped) = self.budget.check().and(reserved) {
                    return Err(self.stop(Unfinished::Budget(stopped), &at, report));
                }
                if let Some(limit) = self.options.states
                    && self.progress.states > limit
                {
                    return Err(self.stop(Unfinished::States { limit }, &at, report));
                }
            }
        }
        // By hashes alone no run can be found to be judged.
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

    /// Reports for the last time.
    fn stop(
        &mut self,
        reason: Unfinished,
        at: &[u32],
        report: &mut dyn FnMut(&Snapshot<'_>),
    ) -> Unfinished {
        self.update();
        report(&Snapshot { search: self, at, is_last: true });
        reason
    }

    /// Shares out the next states of a level: each thread expands states of its own shard, then of
    /// those that have more left.
    fn parts(&self, at: &mut [u32], ends: &[u32]) -> Vec<Vec<(usize, u32, u32)>> {
        let mut parts: Vec<Vec<(usize, u32, u32)>> = vec![Vec::new(); self.shards.len()];
        let left: usize = at.iter().zip(ends).map(|(a, e)| (e - a) as usize).sum();
        let rules = self.product.system.lowered.rules.len().max(1);
        let round = ROUND.min(ROUND_WORDS / self.product.words() / rules).max(1);
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

    /// Computes the successors of parts of a level, a thread a part.
    fn expand(
        &self,
        expanders: &mut [Expander<'a>],
        parts: &[Vec<(usize, u32, u32)>],
        has_found: bool,
    ) -> Vec<Expansion> {
        let work = |expander: &mut Expander<'a>, part: &[(usize, u32, u32)]| {
            self.expand_part(expander, part, has_found)
        };
        if let [expander] = expanders {
            return vec![work(expander, &parts[0])];
        }
        std::thread::scope(|scope| {
            let threads: Vec<_> = expanders
                .iter_mut()
                .zip(parts)
                .map(|(expander, part)| scope.spawn(move || work(expander, part)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("expanding does not panic"))
                .collect()
        })
    }

    /// Computes the successors of a part; once something is found, the level is always finished.
    fn expand_part(
        &self,
        expander: &mut Expander<'a>,
        part: &[(usize, u32, u32)],
        has_found: bool,
    ) -> Expansion {
        let mut out = Expansion::default();
        out.successors.resize_with(self.shards.len(), Vec::new);
        let mut words = vec![0; self.product.words()];
        let rules = self.product.system.lowered.rules.len();
        let slots = self.product.system.layout.slots.len();
        let (shards, is_compact) = (self.shards.len(), self.options.compaction);
        let mut work = CHECKED;
        for &(shard, from, to) in part {
            for number in from..to {
                self.shards[shard].get(number, &mut words);
                if let Some(wrong) = expander.load(&words) {
                    least(&mut out.here, &Some((wrong, words.clone())));
                    continue;
                }
                let mut is_stuck = true;
                for rule in 0..rules {
                    match expander.fire(rule) {
                        Ok(None) => continue,
                        Ok(Some(successor)) => {
                            out.fired += 1;
                            if successor != words {
                                is_stuck = false;
                                let shard = shard_of(successor, shards, is_compact);
                                out.successors[shard].extend_from_slice(successor);
                            }
                        }
                        Err(wrong @ Wrong::Rejected { .. }) => {
                            is_stuck = false;
                            let rule = self.product.system.lowered.rules[rule].rule;
                            out.rejections.add(rule, wrong, &words);
                        }
                        Err(wrong) => {
                            is_stuck = false;
                            least(&mut out.next, &Some((wrong, words.clone())));
                        }
                    }
                    // A step to a renamed copy of the state leads away from it all the same.
                    is_stuck = is_stuck && expander.stepper.is_unchanged();
                    expander.reset();
                    work += slots;
                    if work >= CHECKED && !has_found && !out.has_found() {
                        work = 0;
                        out.stopped = self.has_room(&out.successors).err();
                        if out.stopped.is_some() {
                            return out;
                        }
                    }
                }
                if is_stuck && self.options.deadlock {
                    least(&mut out.here, &Some((Wrong::Deadlock, words.clone())));
                }
            }
        }
        out
    }

    /// Fails if the time is over or successors take more memory than there is.
    fn has_room(&self, successors: &[Vec<u64>]) -> Result<(), Stopped> {
        self.budget.check()?;
        let bytes: usize = successors.iter().map(|words| words.capacity() * 8).sum();
        self.budget.reserve(self.progress.bytes + bytes as u64)
    }

    /// Adds successors to the shards, a thread a shard.
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
        std::thread::scope(|scope| {
            for (number, shard) in self.shards.iter_mut().enumerate() {
                scope.spawn(move || work(number, shard));
            }
        });
    }
}

/// Keeps the violation whose state comes first, whatever thread finds it.
pub(crate) fn least(best: &mut Option<Found>, found: &Option<Found>) {
    if let Some((wrong, at)) = found
        && best.as_ref().is_none_or(|(known, known_at)| (at, wrong) < (known_at, known))
    {
        *best = Some((*wrong, at.clone()));
    }
}

/// Gives the shard of a state: by its first words, so that no two shards keep the same ones, or by
/// its hash if nothing else is kept of it.
pub(crate) fn shard_of(words: &[u64], shards: usize, is_compact: bool) -> usize {
    if shards == 1 {
        return 0;
    }
    let first = if is_compact { words } else { &words[..words.len().div_ceil(2)] };
    shard_of_hash(hash_words(first), shards)
}

/// Gives the shard of the states with a hash.
pub(crate) fn shard_of_hash(hash: u64, shards: usize) -> usize {
    (((hash & 0xffff_ffff) * shards as u64) >> 32) as usize
}
