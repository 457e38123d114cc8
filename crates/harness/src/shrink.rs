//! Shrinking: the smallest program that still fails, by running smaller ones.
//!
//! A smaller program is believed to fail only when it was seen to. How long to wait for that
//! follows from how often the current program fails: a candidate gets twenty times as many runs as
//! that takes on average, within what time is left. The first candidate is what the bad outcome
//! seems to need ([`Judge::core`]); then threads are left out, then calls one by one, until nothing
//! smaller fails. Last, keys and values are numbered from the start.

use std::time::{Duration, Instant};

use crate::campaign::Findings;
use crate::judge::{Fault, Judge};
use crate::outcome::Outcome;
use crate::program::Program;
use crate::programs::Programs;
use crate::runner::Runner;

/// How many times as many runs a candidate gets as its parent needed on average.
const PATIENCE: u64 = 20;

/// A program with an outcome that is bad.
pub(crate) struct Bad {
    pub(crate) program: Program,
    pub(crate) outcome: Outcome,
    pub(crate) fault: Fault,
    /// In how many rounds something was wrong, and how many there were.
    pub(crate) seen: (u64, u64),
}

/// What shrinking may take.
pub(crate) struct Effort<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) rounds: u64,
    pub(crate) time: Duration,
}

/// Makes a failing program smaller as long as that works and there is time.
pub(crate) fn shrink<R: Runner>(
    mut bad: Bad,
    judge: &mut Judge,
    runner: &mut R,
    effort: &Effort<'_>,
) -> Result<Bad, R::Error> {
    let deadline = Instant::now() + effort.time;
    let mut candidates = vec![judge.core(&bad.program, &bad.outcome)];
    candidates.extend(smaller(&bad.program));
    loop {
        let mut found = None;
        for candidate in candidates {
            if candidate.is_empty() || candidate.len() >= bad.program.len() {
                continue;
            }
            found = attempt(candidate, &bad, judge, runner, effort, deadline)?;
            if found.is_some() {
                break;
            }
        }
        let Some(found) = found else { break };
        bad = found;
        candidates = smaller(&bad.program);
    }
    let tidy = effort.programs.tidy(&bad.program);
    if tidy != bad.program
        && let Some(found) = attempt(tidy, &bad, judge, runner, effort, deadline)?
    {
        bad = found;
    }
    Ok(bad)
}

/// Lists programs with a thread or a call less.
fn smaller(program: &Program) -> Vec<Program> {
    let mut smaller = Vec::new();
    if program.threads.len() > 1 {
        for t in 0..program.threads.len() {
            smaller.push(program.filtered(|s, _| s != t));
        }
    }
    for (t, calls) in program.threads.iter().enumerate() {
        // The last first: what comes behind a failure does not matter.
        for i in (0..calls.len()).rev() {
            smaller.push(program.filtered(|s, j| (s, j) != (t, i)));
        }
    }
    smaller
}

/// Runs a candidate until it fails, or for as long as it is worth.
fn attempt<R: Runner>(
    candidate: Program,
    parent: &Bad,
    judge: &mut Judge,
    runner: &mut R,
    effort: &Effort<'_>,
    deadline: Instant,
) -> Result<Option<Bad>, R::Error> {
    let (bad_rounds, rounds) = parent.seen;
    let patience = (rounds / bad_rounds.max(1)).saturating_mul(PATIENCE).max(effort.rounds);
    // No candidate may take all of the time that is left.
    let left = deadline.saturating_duration_since(Instant::now());
    let until = Instant::now() + left / 3;
    let mut total = 0;
    let mut bad_total = 0;
    while total < patience && Instant::now() < until {
        let Findings { bad, runs, .. } =
            Findings::gather(&candidate, effort.rounds, judge, runner)?;
        total += runs;
        bad_total += bad.iter().map(|(_, _, count)| count).sum::<u64>();
        if let Some((outcome, fault, _)) = bad.into_iter().max_by_key(|(_, _, count)| *count) {
            let seen = (bad_total, total);
            return Ok(Some(Bad { program: candidate, outcome, fault, seen }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_programs_lack_a_thread_or_a_call() {
        let program: Program = "t0: a() b()\nt1: c()".parse().unwrap();
        let shown: Vec<String> = smaller(&program).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["t0: c()", "t0: a() b()", "t0: a()\nt1: c()", "t0: b()\nt1: c()", "t0: a() b()"]
        );
    }
}
