//! Contrasts two models over the programs of an alphabet.
//!
//! Programs come in increasing size: fewer accesses first, then fewer marks, fences and
//! dependencies. Each program is written for both sides and run; an outcome that one side allows
//! and the other forbids is a difference. The smallest difference of each direction is found,
//! whatever the number of threads that share the work.
//!
//! A side with a model in cat composes its programs of threads that were translated before
//! (`threads.rs`), and searches only for the outcomes that can make a difference in the wanted
//! direction. A side with another runner receives the text of each program.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use consistory_diagnostic::Diagnostics;
use consistory_verdict::{Budget, Stopped};
use consistory_work::on_threads;
use rustc_hash::FxHashMap;
use thiserror::Error;

use super::mapping::Mapping;
use super::sketch::{Alphabet, RenderedTest, Sketch, cores};
use super::threads::{Program, Scratch, ThreadTable};
use crate::cat::CatModel;
use crate::contrast::Wanted;
use crate::enumerate::{Bound, Redundant};
use crate::executions::{IsaError, IsaOptions};
use crate::file::read_test;
use crate::semantics::{OutcomesError, Semantics};

/// Engine that runs the tests of a side.
pub enum Runner<'r> {
    /// A model in cat, on candidate executions.
    Cat(Arc<CatModel>),
    /// Any other model; it supports tests of x86 and LISA.
    Semantics(&'r dyn Semantics),
}

/// A model, and the language in which programs are written for it.
pub struct MappedSide<'r> {
    /// The model.
    pub runner: Runner<'r>,
    /// Table with which programs are written.
    pub mapping: Mapping,
}

/// The direction of the wanted differences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allowing {
    /// Outcomes that either side allows and the other forbids.
    Either,
    /// Outcomes that the left side allows and the right one forbids.
    Left,
    /// Outcomes that the right side allows and the left one forbids.
    Right,
}

/// Options of a contrast.
#[derive(Clone, Debug)]
pub struct MappedOptions {
    /// Bounds on the size of programs; fences and dependencies are those of the alphabet.
    pub bound: Bound,
    /// Whether redundant programs are tried too: those whose conflict graph is not strongly
    /// connected, and programs of one thread with more than two decorations.
    pub redundant: Redundant,
    /// Whether to find the smallest difference of each direction, or every minimal one.
    pub wanted: Wanted,
    /// Direction of the wanted differences.
    pub allowing: Allowing,
    /// Largest number of decorations of a program: marks other than the first, fences and
    /// dependencies.
    pub decorations: usize,
    /// Time limit.
    pub budget: Budget,
    /// Number of threads that share the work, at least 1.
    pub jobs: usize,
}

/// A program on which the sides differ.
#[derive(Clone, Debug)]
pub struct MappedDifference {
    /// The program in terms of the alphabet.
    pub sketch: Sketch,
    /// Program in the form that the left side runs.
    pub left: RenderedTest,
    /// Program in the form that the right side runs.
    pub right: RenderedTest,
    /// Outcomes that only the left side allows, as lists of the observed values.
    pub only_left: Vec<Vec<i64>>,
    /// Outcomes that only the right side allows.
    pub only_right: Vec<Vec<i64>>,
}

/// The result of contrasting two sides.
#[derive(Clone, Debug, Default)]
pub struct MappedContrast {
    /// The differences, the smallest first.
    pub differences: Vec<MappedDifference>,
    /// Number of programs run for each number of accesses, from 1 access on.
    pub run: Vec<usize>,
    /// Limit that ended the search, if one did.
    pub stopped: Option<Stopped>,
}

/// Reason why two sides cannot be contrasted.
#[derive(Debug, Error)]
pub enum MappedError {
    /// A model does not apply, or a mapping produces a malformed test.
    #[error("{0}")]
    Unreadable(Diagnostics),
    /// The program exceeds the limits of a side.
    #[error("{0}")]
    Program(String),
}

enum Stop {
    Error(MappedError),
    Stopped(Stopped),
}

/// Runs all programs of the alphabet within the bound on both sides.
pub fn contrast_mapped(
    left: &MappedSide<'_>,
    right: &MappedSide<'_>,
    alphabet: &Alphabet,
    options: &MappedOptions,
) -> Result<MappedContrast, MappedError> {
    let mut found = MappedContrast::default();
    let state = |side: &MappedSide<'_>| SideState {
        known: alphabet.repeats_itself(&side.mapping).then(Known::default),
        threads: ThreadTable::default(),
    };
    let search = MappedSearch {
        left,
        right,
        alphabet,
        options,
        of_left: state(left),
        of_right: state(right),
    };
    let (mut wants_left, mut wants_right) =
        (options.allowing != Allowing::Right, options.allowing != Allowing::Left);
    'sizes: for accesses in 1..=options.bound.accesses {
        let cores = cores(&options.bound, accesses, options.redundant);
        let mut run = 0;
        for weight in 0..=options.decorations.min(2 * accesses) {
            let mut level = Vec::new();
            for core in &cores {
                let is_redundant = options.redundant == Redundant::Drop && core.is_one_thread();
                if !is_redundant || weight <= MAX_DECORATIONS_OF_ONE_THREAD {
                    core.sketches(alphabet, weight, &mut level);
                }
                if let Err(stopped) = options.budget.check() {
                    found.stopped = Some(stopped);
                    break 'sizes;
                }
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
                Err(Stop::Stopped(stopped)) => {
                    found.stopped = Some(stopped);
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
    if options.wanted == Wanted::Minimal && found.stopped.is_none() {
        match search.minimal(std::mem::take(&mut found.differences)) {
            Ok(minimal) => found.differences = minimal,
            Err(Stop::Stopped(stopped)) => found.stopped = Some(stopped),
            Err(Stop::Error(error)) => return Err(error),
        }
    }
    Ok(found)
}

/// Outcomes of a program, as lists of the observed values.
type Outcomes = BTreeSet<Vec<i64>>;

/// Outcomes of a side's programs, by the numbers of their threads' texts.
type Known = Mutex<FxHashMap<Vec<u32>, Arc<Outcomes>>>;

/// Largest number of decorations of a program with one thread.
///
/// A single thread has one outcome under every model in which each location is coherent, whatever
/// is between its accesses. A model that violates this shows it with few decorations, and the
/// programs with many decorations are the majority of all programs.
const MAX_DECORATIONS_OF_ONE_THREAD: usize = 2;

/// Largest number of programs whose outcomes a side stores; each takes about half a kilobyte.
const MAX_KNOWN_PROGRAMS: usize = 400_000;

/// Results of a side so far.
struct SideState {
    /// Outcomes by text, if the side's mapping writes different programs in the same way.
    known: Option<Known>,
    threads: ThreadTable,
}

/// Tables that a worker keeps between programs.
#[derive(Default)]
struct Workspace {
    left: Scratch,
    right: Scratch,
}

struct MappedSearch<'s> {
    left: &'s MappedSide<'s>,
    right: &'s MappedSide<'s>,
    alphabet: &'s Alphabet,
    options: &'s MappedOptions,
    of_left: SideState,
    of_right: SideState,
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
        // Smallest index of a difference in each direction.
        let unset = |wants: bool| AtomicUsize::new(if wants { usize::MAX } else { 0 });
        let (first_left, first_right) = (unset(wants_left), unset(wants_right));
        let found = Mutex::new(Vec::new());
        let work = || -> Result<(), Stop> {
            let mut workspace = Workspace::default();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let latest =
                    first_left.load(Ordering::Relaxed).max(first_right.load(Ordering::Relaxed));
                if at >= level.len() || (is_first && at > latest) {
                    return Ok(());
                }
                let Some(difference) = self.difference(&level[at], &mut workspace)? else {
                    continue;
                };
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

    /// Runs a program on both sides. If only one direction is wanted, outcomes that only the other
    /// side allows are not searched.
    fn difference(
        &self,
        sketch: &Sketch,
        workspace: &mut Workspace,
    ) -> Result<Option<MappedDifference>, Stop> {
        let Workspace { left: for_left, right: for_right } = workspace;
        let left = |wanted: Option<&Outcomes>, scratch: &mut Scratch| {
            self.outcomes(self.left, &self.of_left, sketch, wanted, scratch)
        };
        let right = |wanted: Option<&Outcomes>, scratch: &mut Scratch| {
            self.outcomes(self.right, &self.of_right, sketch, wanted, scratch)
        };
        let (of_left, of_right) = match self.options.allowing {
            Allowing::Left => {
                let Some(of_left) = left(None, for_left)? else { return Ok(None) };
                (Some(of_left.clone()), right(Some(&of_left), for_right)?)
            }
            Allowing::Right | Allowing::Either => {
                let Some(of_right) = right(None, for_right)? else { return Ok(None) };
                let wanted = Some(&*of_right).filter(|_| self.options.allowing == Allowing::Right);
                (left(wanted, for_left)?, Some(of_right))
            }
        };
        let (Some(of_left), Some(of_right)) = (of_left, of_right) else { return Ok(None) };
        let only = |one: &Outcomes, other: &Outcomes| one.difference(other).cloned().collect();
        let (only_left, only_right): (Vec<_>, Vec<_>) = match self.options.allowing {
            Allowing::Left => (only(&of_left, &of_right), Vec::new()),
            Allowing::Right => (Vec::new(), only(&of_right, &of_left)),
            Allowing::Either => (only(&of_left, &of_right), only(&of_right, &of_left)),
        };
        if only_left.is_empty() && only_right.is_empty() {
            return Ok(None);
        }
        let render = |mapping: &Mapping| sketch.render(self.alphabet, mapping, "difference");
        let Some(left) = render(&self.left.mapping) else { return Ok(None) };
        let Some(right) = render(&self.right.mapping) else { return Ok(None) };
        Ok(Some(MappedDifference { sketch: sketch.clone(), left, right, only_left, only_right }))
    }

    /// Returns the outcomes of a program, or `None` if the side's mapping cannot write it.
    fn outcomes(
        &self,
        side: &MappedSide<'_>,
        state: &SideState,
        sketch: &Sketch,
        wanted: Option<&Outcomes>,
        scratch: &mut Scratch,
    ) -> Result<Option<Arc<Outcomes>>, Stop> {
        let budget = &self.options.budget;
        budget.check().map_err(Stop::Stopped)?;
        let unreadable = |diagnostics| Stop::Error(MappedError::Unreadable(diagnostics));
        match &side.runner {
            Runner::Cat(model) => {
                let program = state.threads.program(sketch, self.alphabet, &side.mapping);
                let Some(program) = program.map_err(unreadable)? else { return Ok(None) };
                // Stored results must be complete.
                let Some(known) = &state.known else {
                    return self.run(&program, model, wanted, scratch).map(Arc::new).map(Some);
                };
                let lock = || known.lock().unwrap_or_else(|e| e.into_inner());
                let texts = program.texts();
                if let Some(outcomes) = lock().get(&texts) {
                    return Ok(Some(outcomes.clone()));
                }
                let outcomes = Arc::new(self.run(&program, model, None, scratch)?);
                let mut known = lock();
                if known.len() < MAX_KNOWN_PROGRAMS {
                    known.insert(texts, outcomes.clone());
                }
                Ok(Some(outcomes))
            }
            Runner::Semantics(semantics) => {
                let test = sketch.render(self.alphabet, &side.mapping, "difference");
                let Some(test) = test else { return Ok(None) };
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
                        Ok(Some(Arc::new(outcomes.iter().map(values).collect())))
                    }
                    Err(OutcomesError::Stopped(stopped)) => Err(Stop::Stopped(stopped)),
                    Err(error) => Err(Stop::Error(MappedError::Program(error.to_string()))),
                }
            }
        }
    }

    fn run(
        &self,
        program: &Program,
        model: &CatModel,
        wanted: Option<&Outcomes>,
        scratch: &mut Scratch,
    ) -> Result<Outcomes, Stop> {
        let options = IsaOptions {
            unroll: 1,
            condition_only: false,
            keep_executions: false,
            count: false,
            budget: self.options.budget.clone(),
        };
        program.outcomes(model, &options, wanted, scratch).map_err(|error| match error {
            IsaError::Model(diagnostics) => Stop::Error(MappedError::Unreadable(diagnostics)),
            IsaError::Program(message) => Stop::Error(MappedError::Program(message)),
            IsaError::Stopped(stopped) => Stop::Stopped(stopped),
        })
    }

    /// Drops differences that remain when a part of the program is removed.
    fn minimal(&self, differences: Vec<MappedDifference>) -> Result<Vec<MappedDifference>, Stop> {
        let (mut known, mut workspace) = (HashMap::new(), Workspace::default());
        let mut minimal = Vec::new();
        for difference in differences {
            let mut is_minimal = true;
            for part in difference.sketch.smaller() {
                is_minimal &= !self.contains(&part, &mut known, &mut workspace)?;
            }
            if is_minimal {
                minimal.push(difference);
            }
        }
        Ok(minimal)
    }

    /// Checks whether a program or a part of it makes a wanted difference.
    fn contains(
        &self,
        sketch: &Sketch,
        known: &mut HashMap<Sketch, bool>,
        workspace: &mut Workspace,
    ) -> Result<bool, Stop> {
        if let Some(&contains) = known.get(sketch) {
            return Ok(contains);
        }
        let mut contains = self.difference(sketch, workspace)?.is_some();
        if !contains {
            for part in sketch.smaller() {
                if self.contains(&part, known, workspace)? {
                    contains = true;
                    break;
                }
            }
        }
        known.insert(sketch.clone(), contains);
        Ok(contains)
    }
}
