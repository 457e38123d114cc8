//! Rejected runs after which the search continues.
//!
//! A companion may reject a correct run: the run's constraint graph has a cycle under the store
//! order that the observer assumed, although the run is sequentially consistent under another store
//! order. A rejected state has no successors, but runs that do not pass through it may still
//! contain a real violation. A judge may therefore examine the rejected runs, the shortest first;
//! if it accepts a run, the search continues.
//!
//! A run must be reconstructed before it can be judged, which can take as long as the search so
//! far. So only a few rejections of each rule are examined on each level, and their total number is
//! bounded by the constants below.

use std::collections::BTreeMap;

use consistory_verdict::Verdict;

use crate::explore::expand::Wrong;
use crate::explore::outcome::{Stop, Violation};
use crate::explore::search::{BreadthFirstSearch, Found, Halt};
use crate::explore::trace::{Run, run_to};

/// Largest number of rejections of a rule that are judged on a level.
const MAX_REJECTIONS_PER_RULE: usize = 4;
/// Largest number of runs that are judged.
const MAX_RUNS_JUDGED: u32 = 64;
/// Largest number of states that are searched to reconstruct runs: this many per state of the
/// search, and in addition a constant.
const STATES_SEARCHED_PER_STATE: u64 = 8;
const MIN_STATES_SEARCHED: u64 = 200_000;

/// A judge of rejected runs; only a violation ends the search.
pub(crate) type RunJudge<'j> = dyn FnMut(&Run) -> Verdict + 'j;

/// A judge, and the runs that it has judged.
pub(crate) struct Passing<'j> {
    judge: &'j mut RunJudge<'j>,
    /// Number of runs that the judge let pass.
    pub(crate) passed: u32,
    work: u64,
    /// First run that the judge let pass.
    pub(crate) first: Option<(Violation, Run)>,
    /// Run that ends the search.
    pub(crate) last: Option<(Violation, Run)>,
}

impl<'j> Passing<'j> {
    pub(crate) fn new(judge: &'j mut RunJudge<'j>) -> Self {
        Passing { judge, passed: 0, work: 0, first: None, last: None }
    }

    /// Discards the results of a search that starts again.
    pub(crate) fn restart(&mut self) {
        (self.passed, self.work, self.first, self.last) = (0, 0, None, None);
    }

    /// Judges the rejections of a level; returns the one that ends the search.
    pub(crate) fn judge(
        &mut self,
        search: &BreadthFirstSearch<'_>,
        rejections: Rejections,
    ) -> Result<Option<Found>, Halt> {
        for (wrong, at) in rejections.in_order() {
            let states = search.progress.states;
            let is_too_much = self.passed == MAX_RUNS_JUDGED
                || self.work > STATES_SEARCHED_PER_STATE * states + MIN_STATES_SEARCHED;
            if self.passed > 0 && is_too_much {
                return Err(Halt::Stop(Stop::Runs));
            }
            self.work += states;
            let (violation, run) =
                run_to(search, wrong, &at, &search.settling()).map_err(Halt::Lost)?;
            if (self.judge)(&run) == Verdict::Violation {
                self.last = Some((violation, run));
                return Ok(Some((wrong, at)));
            }
            self.passed += 1;
            self.first.get_or_insert((violation, run));
        }
        Ok(None)
    }
}

/// Least rejections of each rule on a level; they do not depend on the number of threads.
#[derive(Default)]
pub(crate) struct Rejections {
    of_rule: BTreeMap<u32, Vec<Found>>,
}

impl Rejections {
    pub(crate) fn is_empty(&self) -> bool {
        self.of_rule.is_empty()
    }

    /// Returns the least rejection.
    pub(crate) fn least(&self) -> Option<Found> {
        let firsts = self.of_rule.values().filter_map(|found| found.first());
        firsts.min_by(|(wrong, at), (other, there)| (at, wrong).cmp(&(there, other))).cloned()
    }

    /// Adds a rejection of a rule at a state.
    pub(crate) fn add(&mut self, rule: u32, wrong: Wrong, at: &[u64]) {
        let known = self.of_rule.entry(rule).or_default();
        let place = known.partition_point(|(other, there)| (&there[..], *other) < (at, wrong));
        if place < MAX_REJECTIONS_PER_RULE {
            known.insert(place, (wrong, at.to_vec()));
            known.truncate(MAX_REJECTIONS_PER_RULE);
        }
    }

    pub(crate) fn merge(&mut self, other: Rejections) {
        for (rule, found) in other.of_rule {
            found.iter().for_each(|(wrong, at)| self.add(rule, *wrong, at));
        }
    }

    fn in_order(self) -> Vec<Found> {
        let mut all: Vec<Found> = self.of_rule.into_values().flatten().collect();
        all.sort_by(|(wrong, at), (other, there)| (at, wrong).cmp(&(there, other)));
        all
    }
}
