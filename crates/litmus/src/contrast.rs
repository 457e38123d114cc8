//! Contrasts two models: finds the smallest program that separates them.
//!
//! All programs within a bound are run under both models, in increasing size: fewer accesses first,
//! then fewer fences, then fewer threads. The first program whose outcomes differ is a minimal
//! litmus test. (Mador-Haim, Alur and Martin, Generating litmus tests for contrasting memory
//! consistency models, CAV 2010, section 4.) Programs of one size are distributed among threads;
//! the result does not depend on the number of threads.
//!
//! If no program within the bound separates two models, this does not prove that they are equal. It
//! does for two store-atomic models given by tables, if the bound covers two threads and six
//! accesses ([`sufficient_bound`]).

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use consistory_verdict::Budget;
use consistory_work::on_threads;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::enumerate::{Bound, Redundant, Shape, shapes_within};
use crate::program::{Outcomes, Program};
use crate::semantics::{OutcomesError, Semantics};
use crate::table::{Forwarding, Order, Table};

/// Number of programs from which a level is run by several threads.
const MIN_PARALLEL_PROGRAMS: usize = 64;

/// Options of a contrast.
#[derive(Clone, Debug)]
pub struct ContrastOptions {
    /// The programs to try.
    pub bound: Bound,
    /// Whether redundant programs are tried too: those whose conflict graph is not strongly
    /// connected.
    pub redundant: Redundant,
    /// Whether to stop at the first difference.
    pub wanted: Wanted,
    /// Time limit.
    pub budget: Budget,
    /// Number of threads that share the work, at least 1.
    pub jobs: usize,
}

/// Selection of differences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// The first difference.
    First,
    /// Every minimal difference: without any one of its instructions the program makes no
    /// difference.
    Minimal,
}

/// A program that separates two models.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The program's shape.
    pub shape: Shape,
    /// The program.
    pub program: Program,
    /// The outcomes that only the left model allows.
    pub only_left: Outcomes,
    /// The outcomes that only the right model allows.
    pub only_right: Outcomes,
}

/// The result of contrasting two models.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Contrast {
    /// Differences, the smallest first; empty if there is none within the bound.
    pub differences: Vec<Difference>,
    /// Number of programs run for each number of accesses, from 1 access on.
    pub run: Vec<usize>,
}

/// Runs all programs within the bound under both models.
pub fn contrast(
    left: &dyn Semantics,
    right: &dyn Semantics,
    options: &ContrastOptions,
) -> Result<Contrast, OutcomesError> {
    let mut contrast = Contrast::default();
    for accesses in 1..=options.bound.accesses {
        let level = shapes_within(&options.bound, accesses, options.redundant, &options.budget)?;
        let (found, run) = level_differences(left, right, &level, options)?;
        contrast.differences.extend(found);
        contrast.run.push(run);
        if options.wanted == Wanted::First && !contrast.differences.is_empty() {
            break;
        }
    }
    if options.wanted == Wanted::Minimal {
        keep_minimal(&mut contrast.differences);
    }
    Ok(contrast)
}

/// Returns a bound within which two different models must differ, if one is known.
///
/// For two store-atomic models given by tables, two threads and six accesses suffice (Mador-Haim,
/// Alur and Martin, Litmus tests for comparing memory consistency models: how long do they need to
/// be?, DAC 2011).
pub fn sufficient_bound(left: &Table, right: &Table) -> Option<Bound> {
    let is_covered = |table: &Table| table.order == Order::Memory(Forwarding::Plain);
    (is_covered(left) && is_covered(right)).then(|| Bound {
        threads: 2,
        dependencies: left.knows_dependencies() || right.knows_dependencies(),
        ..Bound::accesses(6)
    })
}

/// Finds the differences among programs of one size, and the number of programs that were run.
fn level_differences(
    left: &dyn Semantics,
    right: &dyn Semantics,
    level: &[Shape],
    options: &ContrastOptions,
) -> Result<(Vec<Difference>, usize), OutcomesError> {
    let next = AtomicUsize::new(0);
    // Smallest index of a difference, if only the first is wanted.
    let first = AtomicUsize::new(usize::MAX);
    let found = Mutex::new(Vec::new());
    let work = || -> Result<(), OutcomesError> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= level.len() || at > first.load(Ordering::Relaxed) {
                return Ok(());
            }
            if let Some(difference) = difference(left, right, &level[at], &options.budget)? {
                if options.wanted == Wanted::First {
                    first.fetch_min(at, Ordering::Relaxed);
                }
                found.lock().unwrap_or_else(|e| e.into_inner()).push((at, difference));
            }
        }
    };
    let threads = if level.len() < MIN_PARALLEL_PROGRAMS { 1 } else { options.jobs };
    on_threads(threads, work).into_iter().collect::<Result<(), OutcomesError>>()?;
    let mut found = found.into_inner().unwrap_or_else(|e| e.into_inner());
    found.sort_by_key(|&(at, _)| at);
    let mut run = level.len();
    if options.wanted == Wanted::First
        && let Some(&(at, _)) = found.first()
    {
        found.truncate(1);
        run = at + 1;
    }
    Ok((found.into_iter().map(|(_, difference)| difference).collect(), run))
}

/// Runs one program under both models.
fn difference(
    left: &dyn Semantics,
    right: &dyn Semantics,
    shape: &Shape,
    budget: &Budget,
) -> Result<Option<Difference>, OutcomesError> {
    budget.check()?;
    let program = shape.program();
    let (of_left, of_right) = (left.outcomes(&program, budget)?, right.outcomes(&program, budget)?);
    if of_left == of_right {
        return Ok(None);
    }
    Ok(Some(Difference {
        shape: shape.clone(),
        program,
        only_left: &of_left - &of_right,
        only_right: &of_right - &of_left,
    }))
}

/// Drops differences that remain when an instruction is removed.
fn keep_minimal(differences: &mut Vec<Difference>) {
    let differing: FxHashSet<Shape> = differences.iter().map(|d| d.shape.clone()).collect();
    let mut contains = FxHashMap::default();
    differences.retain(|difference| {
        let smaller = difference.shape.smaller();
        !smaller.iter().any(|shape| contains_difference(shape, &differing, &mut contains))
    });
}

/// Checks whether a program or a part of it makes a difference.
fn contains_difference(
    shape: &Shape,
    differing: &FxHashSet<Shape>,
    known: &mut FxHashMap<Shape, bool>,
) -> bool {
    if let Some(&contains) = known.get(shape) {
        return contains;
    }
    let contains = differing.contains(shape)
        || shape.smaller().iter().any(|part| contains_difference(part, differing, known));
    known.insert(shape.clone(), contains);
    contains
}
