//! Shrinks a failing program by running smaller ones.
//!
//! A smaller program counts as failing only after it was observed to fail. The candidates are the
//! calls that the bad outcome seems to need ([`Judge::core`]), then programs with one thread less,
//! then programs with one call less. They take turns, a few runs each, until one of them fails,
//! because failures may be rare and it is unknown which candidate can fail at all. The failing
//! candidate is shrunk further. If none fails in twenty times as many runs as the current program
//! needs on average, or the time is over, the current program is the result. Finally, keys and
//! values are renumbered.

use std::time::{Duration, Instant};

use crate::campaign::Findings;
use crate::judge::{Fault, Judge};
use crate::outcome::Outcome;
use crate::program::Program;
use crate::programs::Programs;
use crate::runner::Runner;

/// Runs of a candidate, as a multiple of the runs that its parent needed on average.
const RUNS_PER_PARENT_RUN: u64 = 20;

/// A program with a bad outcome.
pub(crate) struct Bad {
    pub(crate) program: Program,
    pub(crate) outcome: Outcome,
    pub(crate) fault: Fault,
    /// Number of bad runs, and number of runs.
    pub(crate) seen: (u64, u64),
}

/// The limits of shrinking.
pub(crate) struct Effort<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) rounds: u64,
    pub(crate) time: Duration,
}

/// Shrinks a failing program as long as that works and there is time.
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
        candidates.retain(|c| !c.is_empty() && c.len() < bad.program.len());
        match first_to_fail(&candidates, bad.seen, judge, runner, effort, deadline)? {
            Some(found) => bad = found,
            None => break,
        }
        candidates = smaller(&bad.program);
    }
    let tidy = effort.programs.tidy(&bad.program);
    if tidy != bad.program
        && let Some(found) = first_to_fail(&[tidy], bad.seen, judge, runner, effort, deadline)?
    {
        bad = found;
    }
    Ok(bad)
}

/// Lists programs with one thread or one call less.
fn smaller(program: &Program) -> Vec<Program> {
    let mut smaller = Vec::new();
    if program.threads.len() > 1 {
        for t in 0..program.threads.len() {
            smaller.push(program.filtered(|s, _| s != t));
        }
    }
    for (t, calls) in program.threads.iter().enumerate() {
        // The last calls first: calls after a failure do not matter.
        for i in (0..calls.len()).rev() {
            smaller.push(program.filtered(|s, j| (s, j) != (t, i)));
        }
    }
    smaller
}

/// Runs candidates in turn until one fails or the limit of runs or time is reached.
fn first_to_fail<R: Runner>(
    candidates: &[Program],
    (bad_rounds, rounds): (u64, u64),
    judge: &mut Judge,
    runner: &mut R,
    effort: &Effort<'_>,
    deadline: Instant,
) -> Result<Option<Bad>, R::Error> {
    let patience =
        (rounds / bad_rounds.max(1)).saturating_mul(RUNS_PER_PARENT_RUN).max(effort.rounds);
    let mut total = 0;
    while total < patience {
        for candidate in candidates {
            if Instant::now() >= deadline {
                return Ok(None);
            }
            let Findings { bad, runs, .. } =
                Findings::gather(candidate, effort.rounds, judge, runner)?;
            let bad_runs = bad.iter().map(|(_, _, count)| count).sum::<u64>();
            if let Some((outcome, fault, _)) = bad.into_iter().max_by_key(|(_, _, count)| *count) {
                let seen = (bad_runs, total + runs);
                return Ok(Some(Bad { program: candidate.clone(), outcome, fault, seen }));
            }
        }
        total += effort.rounds;
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
