//! Contrasting two models over the programs of an alphabet.
//!
//! Programs come in increasing size: fewer accesses first, then fewer marks, fences and
//! dependencies. Each is written for both sides and run; what one side allows and the other forbids
//! is a difference. The smallest difference of each direction is found, whatever the number of
//! threads that share the work.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use consistory_diagnostic::Diagnostics;
use consistory_verdict::Budget;
use consistory_work::on_threads;
use thiserror::Error;

use super::mapping::Mapping;
use super::sketch::{Alphabet, RenderedTest, Sketch, cores};
use crate::cat::CatModel;
use crate::contrast::Wanted;
use crate::enumerate::{Bound, Redundant};
use crate::executions::{IsaError, IsaOptions, isa_outcomes};
use crate::file::read_test;
use crate::languages::read_isa_test;
use crate::semantics::{OutcomesError, Semantics};

/// What runs the tests of a side.
pub enum Runner<'r> {
    /// A model in cat, on candidate executions.
    Cat(Arc<CatModel>),
    /// Any other model; it takes tests of x86 and LISA.
    Semantics(&'r dyn Semantics),
}

/// A model, and how programs are written for it.
pub struct MappedSide<'r> {
    /// The model.
    pub runner: Runner<'r>,
    /// How programs are written.
    pub mapping: Mapping,
}

/// Which differences are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allowing {
    /// What either side allows and the other forbids.
    Either,
    /// What the left side allows and the right one forbids.
    Left,
    /// What the right side allows and the left one forbids.
    Right,
}

/// How two sides are contrasted.
#[derive(Clone, Debug)]
pub struct MappedOptions {
    /// How large programs may be; fences and dependencies are the alphabet's.
    pub bound: Bound,
    /// Whether programs that the conflict graph calls redundant are tried, too.
    pub redundant: Redundant,
    /// The smallest difference of each direction, or every minimal one.
    pub wanted: Wanted,
    /// Which direction.
    pub allowing: Allowing,
    /// How many marks other than the first, fences and dependencies a program may have.
    pub decorations: usize,
    /// How much time it may take.
    pub budget: Budget,
    /// How many threads share the work, at least 1.
    pub jobs: usize,
}

/// A program that tells the sides apart.
#[derive(Clone, Debug)]
pub struct MappedDifference {
    /// The program in terms of the alphabet.
    pub sketch: Sketch,
    /// The program as the left side runs it.
    pub left: RenderedTest,
    /// The program as the right side runs it.
    pub right: RenderedTest,
    /// Outcomes that only the left side allows: values of what is observed.
    pub only_left: Vec<Vec<i64>>,
    /// Outcomes that only the right side allows.
    pub only_right: Vec<Vec<i64>>,
}

/// What came of contrasting two sides.
#[derive(Clone, Debug, Default)]
pub struct MappedContrast {
    /// The differences, the smallest first.
    pub differences: Vec<MappedDifference>,
    /// How many programs of each number of accesses were run, from 1 access on.
    pub run: Vec<usize>,
    /// Whether the budget ended the search.
    pub stopped: bool,
}

/// Why two sides cannot be contrasted.
#[derive(Debug, Error)]
pub enum MappedError {
    /// A model does not apply, or a mapping writes what cannot be read.
    #[error("{0}")]
    Unreadable(Diagnostics),
    /// The program is more than a side can run.
    #[error("{0}")]
    Program(String),
}

enum Stop {
    Error(MappedError),
    OutOfTime,
}

/// Runs all programs of the alphabet within the bound on both sides.
pub fn contrast_mapped(
    left: &MappedSide<'_>,
    right: &MappedSide<'_>,
    alphabet: &Alphabet,
    options: &MappedOptions,
) -> Result<MappedContrast, MappedError> {
    let mut found = MappedContrast::default();
    let known = |side: &MappedSide<'_>| alphabet.repeats_itself(&side.mapping).then(Known::default);
    let search = MappedSearch {
        left,
        right,
        alphabet,
        options,
        known_left: known(left),
        known_right: known(right),
    };
    let (mut wants_left, mut wants_right) =
        (options.allowing != Allowing::Right, options.allowing != Allowing::Left);
    'sizes: for accesses in 1..=options.bound.accesses {
        let cores = cores(&options.bound, accesses, options.redundant);
        let mut run = 0;
        for weight in 0..=options.decorations.min(2 * accesses) {
            let mut level = Vec::new();
            for core in &cores {
                core.sketches(alphabet, weight, &mut level);
            }
            run += level.len();
            match search.level(&level, wants_left, wants_right) {
                Ok(differences) => {
                    for difference in differences {
                        if options.wanted == Wanted::First {
                            wants_left &= difference.only_left.is_empty();
                            wants_right &= difference.only_right.is_empty();
                        }
                        found.differences.push(difference);
                    }
                }
                Err(Stop::OutOfTime) => {
                    found.stopped = true;
                    break 'sizes;
                }
                Err(Stop::Error(error)) => return Err(error),
            }
            if !wants_left && !wants_right {
                found.run.push(run);
                break 'sizes;
            }
        }
        found.run.push(run);
    }
    if options.wanted == Wanted::Minimal && !found.stopped {
        match search.minimal(std::mem::take(&mut found.differences)) {
            Ok(minimal) => found.differences = minimal,
            Err(Stop::OutOfTime) => found.stopped = true,
            Err(Stop::Error(error)) => return Err(error),
        }
    }
    Ok(found)
}

/// Outcomes of a side's programs, by their text.
type Known = Mutex<HashMap<String, Arc<BTreeSet<Vec<i64>>>>>;

/// How many texts a side remembers; each takes about a kilobyte.
const MAX_KNOWN_TEXTS: usize = 200_000;

struct MappedSearch<'s> {
    left: &'s MappedSide<'s>,
    right: &'s MappedSide<'s>,
    alphabet: &'s Alphabet,
    options: &'s MappedOptions,
    /// Outcomes of the left side, if its mapping writes different programs in the same way.
    known_left: Option<Known>,
    /// The same for the right side.
    known_right: Option<Known>,
}

impl MappedSearch<'_> {
    /// Finds the wanted differences among programs of one size: all, or the first of each direction.
    fn level(
        &self,
        level: &[Sketch],
        wants_left: bool,
        wants_right: bool,
    ) -> Result<Vec<MappedDifference>, Stop> {
        let next = AtomicUsize::new(0);
        let is_first = self.options.wanted == Wanted::First;
        // The least places of a difference of each direction.
        let unset = |wants: bool| AtomicUsize::new(if wants { usize::MAX } else { 0 });
        let (first_left, first_right) = (unset(wants_left), unset(wants_right));
        let found = Mutex::new(Vec::new());
        let work = || -> Result<(), Stop> {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let latest =
                    first_left.load(Ordering::Relaxed).max(first_right.load(Ordering::Relaxed));
                if at >= level.len() || (is_first && at > latest) {
                    return Ok(());
                }
                let Some(difference) = self.difference(&level[at])? else { continue };
                let is_left = wants_left && !difference.only_left.is_empty();
                let is_right = wants_right && !difference.only_right.is_empty();
                if is_left {
                    first_left.fetch_min(at, Ordering::Relaxed);
                }
                if is_right {
                    first_right.fetch_min(at, Ordering::Relaxed);
                }
                if is_left || is_right {
                    found.lock().unwrap_or_else(|e| e.into_inner()).push((at, difference));
                }
            }
        };
        let threads = if level.len() < 32 { 1 } else { self.options.jobs };
        on_threads(threads, work).into_iter().collect::<Result<(), Stop>>()?;
        let mut found = found.into_inner().unwrap_or_else(|e| e.into_inner());
        found.sort_by_key(|&(at, _)| at);
        if is_first {
            let (left, right) = (first_left.into_inner(), first_right.into_inner());
            found.retain(|&(at, _)| (wants_left && at == left) || (wants_right && at == right));
        }
        Ok(found.into_iter().map(|(_, difference)| difference).collect())
    }

    fn difference(&self, sketch: &Sketch) -> Result<Option<MappedDifference>, Stop> {
        let render = |mapping: &Mapping| sketch.render(self.alphabet, mapping, "difference");
        let Some(left) = render(&self.left.mapping) else { return Ok(None) };
        let Some(right) = render(&self.right.mapping) else { return Ok(None) };
        let of_left = self.remembered(self.left, &left, self.known_left.as_ref())?;
        let of_right = self.remembered(self.right, &right, self.known_right.as_ref())?;
        if of_left == of_right {
            return Ok(None);
        }
        Ok(Some(MappedDifference {
            sketch: sketch.clone(),
            left,
            right,
            only_left: of_left.difference(&of_right).cloned().collect(),
            only_right: of_right.difference(&of_left).cloned().collect(),
        }))
    }

    /// Returns the outcomes of a test, computed once for each text.
    fn remembered(
        &self,
        side: &MappedSide<'_>,
        test: &RenderedTest,
        known: Option<&Known>,
    ) -> Result<Arc<BTreeSet<Vec<i64>>>, Stop> {
        let Some(known) = known else { return self.outcomes(side, test).map(Arc::new) };
        let lock = || known.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(outcomes) = lock().get(&test.text) {
            return Ok(outcomes.clone());
        }
        let outcomes = Arc::new(self.outcomes(side, test)?);
        let mut known = lock();
        if known.len() < MAX_KNOWN_TEXTS {
            known.insert(test.text.clone(), outcomes.clone());
        }
        Ok(outcomes)
    }

    fn outcomes(
        &self,
        side: &MappedSide<'_>,
        test: &RenderedTest,
    ) -> Result<BTreeSet<Vec<i64>>, Stop> {
        let unreadable = |diagnostics| Stop::Error(MappedError::Unreadable(diagnostics));
        let budget = &self.options.budget;
        if budget.check().is_err() {
            return Err(Stop::OutOfTime);
        }
        match &side.runner {
            Runner::Cat(model) => {
                let read = read_isa_test("generated test", &test.text).map_err(unreadable)?;
                let options = IsaOptions {
                    unroll: 1,
                    condition_only: false,
                    keep_executions: false,
                    count: false,
                    budget: budget.clone(),
                };
                match isa_outcomes(&read, model, &options) {
                    Ok(found) => Ok(found.states),
                    Err(IsaError::Model(diagnostics)) => Err(unreadable(diagnostics)),
                    Err(IsaError::Program(message)) => {
                        Err(Stop::Error(MappedError::Program(message)))
                    }
                    Err(IsaError::OutOfTime) => Err(Stop::OutOfTime),
                }
            }
            Runner::Semantics(semantics) => {
                let read = read_test("generated test", &test.text).map_err(unreadable)?;
                let names = read.program.herd_names();
                let places: Vec<usize> = test
                    .observed
                    .iter()
                    .filter_map(|name| names.iter().position(|known| known == name))
                    .collect();
                match semantics.outcomes(&read.program, budget) {
                    Ok(outcomes) => {
                        let values = |outcome: &crate::program::Outcome| {
                            places.iter().map(|&at| outcome.0[at]).collect()
                        };
                        Ok(outcomes.iter().map(values).collect())
                    }
                    Err(OutcomesError::Stopped(_)) => Err(Stop::OutOfTime),
                    Err(error) => Err(Stop::Error(MappedError::Program(error.to_string()))),
                }
            }
        }
    }

    /// Drops differences that remain when something is taken away.
    fn minimal(&self, differences: Vec<MappedDifference>) -> Result<Vec<MappedDifference>, Stop> {
        let mut known = HashMap::new();
        let mut minimal = Vec::new();
        for difference in differences {
            let mut is_minimal = true;
            for part in difference.sketch.smaller() {
                is_minimal &= !self.contains(&part, &mut known)?;
            }
            if is_minimal {
                minimal.push(difference);
            }
        }
        Ok(minimal)
    }

    /// Returns whether a program or a part of it makes a wanted difference.
    fn contains(&self, sketch: &Sketch, known: &mut HashMap<Sketch, bool>) -> Result<bool, Stop> {
        if let Some(&contains) = known.get(sketch) {
            return Ok(contains);
        }
        let differs =
            self.difference(sketch)?.is_some_and(|difference| match self.options.allowing {
                Allowing::Either => true,
                Allowing::Left => !difference.only_left.is_empty(),
                Allowing::Right => !difference.only_right.is_empty(),
            });
        let mut contains = differs;
        if !contains {
            for part in sketch.smaller() {
                if self.contains(&part, known)? {
                    contains = true;
                    break;
                }
            }
        }
        known.insert(sketch.clone(), contains);
        Ok(contains)
    }
}
