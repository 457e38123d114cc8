//! Breadth-first exploration of all states, on all cores.
//!
//! States are distributed over shards by their hash, one shard a thread. A round takes a few
//! thousand states of the current level: first every thread computes the successors of its part
//! and sorts them by shard, then every thread adds what belongs to its shard. No two threads ever
//! write to the same memory, and the number of states, the depth and the verdict do not depend on
//! the number of threads. A level is finished before a violation is reported, so the run to it is
//! a shortest one. Runs are found again afterwards (see `trace`) instead of being remembered.

use std::time::{Duration, Instant};

use consistory_verdict::{Budget, Stopped};

use crate::explore::expand::{Expander, Product, Wrong};
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

/// Explores a system, with a companion if one is given.
pub fn explore(
    system: &System,
    companion: Option<&dyn Companion>,
    options: &Options,
    budget: &Budget,
    report: &mut dyn FnMut(&Progress),
) -> Exploration {
    let mut symmetric = match options.symmetry {
        true => system.symmetric.types.clone(),
        false => Vec::new(),
    };
    loop {
        let product = Product { system, companion, symmetric: &symmetric };
        let mut search = Search::new(product, options, budget);
        let found = search.search(report);
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
            let options = Options { compaction: false, ..options.clone() };
            return explore(system, companion, &options, budget, report);
        }
        let ordinary = system.symmetric.types.iter().filter(|ty| !symmetric.contains(ty));
        let asymmetric = match options.symmetry {
            true => ordinary.map(|&ty| system.program.types.show(ty)).collect(),
            false => Vec::new(),
        };
        return search.finish(found, asymmetric);
    }
}

/// How many states of a level are expanded between two rounds of insertion, by each thread.
const ROUND: usize = 4096;

/// A violation and the state that it belongs to.
pub(crate) type Found = (Wrong, Vec<u64>);

pub(crate) struct Search<'a> {
    pub(crate) product: Product<'a>,
    options: &'a Options,
    budget: &'a Budget,
    pub(crate) shards: Vec<Shard>,
    /// For each level the number of states of each shard before it.
    pub(crate) levels: Vec<Vec<u32>>,
    progress: Progress,
    started: Instant,
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
}

impl<'a> Search<'a> {
    fn new(product: Product<'a>, options: &'a Options, budget: &'a Budget) -> Self {
        let jobs = options.jobs.max(1);
        Search {
            product,
            options,
            budget,
            shards: (0..jobs).map(|_| Shard::new(product.words(), options.compaction)).collect(),
            levels: Vec::new(),
            progress: Progress::default(),
            started: Instant::now(),
        }
    }

    fn finish(
        mut self,
        found: Result<Option<Found>, Unfinished>,
        asymmetric: Vec<String>,
    ) -> Exploration {
        let outcome = match found {
            Ok(None) => Outcome::Holds,
            Ok(Some((wrong, at))) => self.violated(wrong, at),
            Err(reason) => Outcome::Undecided { reason },
        };
        self.update();
        let states = self.progress.states as f64;
        let omission = self.options.compaction.then(|| states * states / 2f64.powi(65));
        Exploration { outcome, progress: self.progress, asymmetric, omission }
    }

    fn violated(&self, wrong: Wrong, at: Vec<u64>) -> Outcome {
        match trace::run_to(self, wrong, &at, self.budget) {
            Ok((violation, run)) => Outcome::Violated { violation, run },
            Err(stopped) => Outcome::Undecided { reason: Unfinished::Budget(stopped) },
        }
    }

    fn search(&mut self, report: &mut dyn FnMut(&Progress)) -> Result<Option<Found>, Unfinished> {
        if let Some(found) = self.starts() {
            return Ok(Some(found));
        }
        let mut expanders: Vec<Expander<'a>> =
            self.shards.iter().map(|_| Expander::new(self.product)).collect();
        loop {
            let ends: Vec<u32> = self.shards.iter().map(|shard| shard.len() as u32).collect();
            let starts = self.levels.last().expect("the start states are a level").clone();
            if starts == ends {
                return Ok(None);
            }
            self.levels.push(ends.clone());
            self.shards.iter_mut().for_each(Shard::next_level);
            if let Some(found) = self.level(starts, &ends, &mut expanders, report)? {
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
                    let shard = shard_of(words, self.shards.len());
                    self.shards[shard].insert(words, &mut scratch);
                }
                Err(wrong) => return Some((wrong, Vec::new())),
            }
        }
        None
    }

    /// Expands the states of a level, round by round.
    fn level(
        &mut self,
        mut at: Vec<u32>,
        ends: &[u32],
        expanders: &mut [Expander<'a>],
        report: &mut dyn FnMut(&Progress),
    ) -> Result<Option<Found>, Unfinished> {
        let (mut here, mut next): (Option<Found>, Option<Found>) = (None, None);
        while at != ends {
            // Each thread expands states of its own shard, then of those that have more left.
            let mut parts: Vec<Vec<(usize, u32, u32)>> = vec![Vec::new(); expanders.len()];
            let left: usize = at.iter().zip(ends).map(|(a, e)| (e - a) as usize).sum();
            let mut share = left.div_ceil(parts.len()).min(ROUND);
            share = share.max(1);
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
            let expansions = self.expand(expanders, &parts);
            for expansion in &expansions {
                self.progress.fired += expansion.fired;
                least(&mut here, &expansion.here);
                least(&mut next, &expansion.next);
            }
            self.insert(&expansions);
            self.update();
            let expanded: u64 = at.iter().map(|&n| u64::from(n)).sum();
            self.progress.expanded = expanded;
            report(&self.progress);
            if here.is_none() && next.is_none() {
                self.budget.check().map_err(Unfinished::Budget)?;
                self.budget.reserve(self.progress.bytes).map_err(Unfinished::Budget)?;
                if let Some(limit) = self.options.states
                    && self.progress.states > limit
                {
                    return Err(Unfinished::States { limit });
                }
            }
        }
        Ok(here.or(next))
    }

    fn update(&mut self) {
        self.progress.states = self.shards.iter().map(|shard| shard.len() as u64).sum();
        self.progress.bytes = self.shards.iter().map(Shard::bytes).sum();
        self.progress.elapsed = self.started.elapsed();
    }

    /// Computes the successors of parts of a level, a thread a part.
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

    fn expand_part(&self, expander: &mut Expander<'a>, part: &[(usize, u32, u32)]) -> Expansion {
        let mut out = Expansion::default();
        out.successors.resize_with(self.shards.len(), Vec::new);
        let mut words = vec![0; self.product.words()];
        let rules = self.product.system.lowered.rules.len();
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
                                let shard = shard_of(successor, self.shards.len());
                                out.successors[shard].extend_from_slice(successor);
                            }
                        }
                        Err(wrong) => {
                            is_stuck = false;
                            least(&mut out.next, &Some((wrong, words.clone())));
                        }
                    }
                    // A step to a renamed copy of the state leads away from it all the same.
                    is_stuck = is_stuck && expander.stepper.is_unchanged();
                    expander.reset();
                }
                if is_stuck && self.options.deadlock {
                    least(&mut out.here, &Some((Wrong::Deadlock, words.clone())));
                }
            }
        }
        out
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

/// Gives the shard of a state.
fn shard_of(words: &[u64], shards: usize) -> usize {
    if shards == 1 {
        return 0;
    }
    (((hash_words(words) & 0xffff_ffff) * shards as u64) >> 32) as usize
}
