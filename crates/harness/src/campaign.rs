//! Campaigns: run and judge random programs until one fails or the time is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use consistory_objects::Levels;
use consistory_spec::{CallError, Object};

use crate::judge::{Fault, Judge, Promise, Ruling};
use crate::outcome::Outcome;
use crate::program::Program;
use crate::programs::Programs;
use crate::report::{Failure, Report};
use crate::runner::Runner;
use crate::shrink::{Bad, Effort, shrink};
use crate::signature::Signature;

/// Settings of a campaign: what to run, how to judge it and when to stop.
#[derive(Clone)]
pub struct Campaign {
    /// The sequential specification of the object.
    pub object: Arc<dyn Object>,
    /// The consistency that it promises to several threads.
    pub promise: Promise,
    /// The programs.
    pub programs: Programs,
    /// Number of the first program, and the distance to the next one: (2, 7) is the third of seven
    /// equal shares of the programs.
    pub share: (u64, u64),
    /// Number of runs of each program.
    pub rounds: u64,
    /// Time spent looking for failures; shrinking is additional.
    pub time: Duration,
    /// Largest number of runs of all shares together, if bounded.
    pub runs: Option<u64>,
    /// Number of different failures after which to stop.
    pub failures: usize,
    /// Time limit for shrinking one failure; all failures together get `time`, or this limit if it
    /// is longer.
    pub shrinking: Duration,
    /// Time limit for judging one outcome.
    pub judging: Duration,
    /// Whether to infer the visibility level of each method.
    pub infers_levels: bool,
    /// Stops the campaign when set.
    pub interrupt: Option<Arc<AtomicBool>>,
}

/// The reason why a campaign cannot run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CampaignError<E> {
    /// The object has no such call.
    #[error("{call}: {error}")]
    Call {
        /// The call.
        call: String,
        /// The reason.
        error: CallError,
    },
    /// A program could not be run.
    #[error(transparent)]
    Runner(E),
}

impl Campaign {
    /// Builds a campaign for linearizability that lasts five seconds, or until the first failure.
    pub fn new(object: Arc<dyn Object>, signatures: Vec<Signature>) -> Self {
        Campaign {
            object,
            promise: Promise::linearizability(),
            programs: Programs::new(signatures),
            share: (0, 1),
            rounds: 1_000,
            time: Duration::from_secs(5),
            runs: None,
            failures: 1,
            shrinking: Duration::from_secs(5),
            judging: Duration::from_secs(1),
            infers_levels: false,
            interrupt: None,
        }
    }

    /// Runs random programs; `progress` is called after each.
    pub fn run<R: Runner>(
        &self,
        runner: &mut R,
        mut progress: impl FnMut(&Report),
    ) -> Result<Report, CampaignError<R::Error>> {
        let mut trial = Trial::new(self);
        let (first, step) = self.share;
        for number in (first..).step_by(step.max(1) as usize) {
            // All programs with smaller numbers use up runs, in whichever share they are.
            let before = number.saturating_mul(self.rounds.max(1));
            let left = self.runs.map_or(u64::MAX, |runs| runs.saturating_sub(before));
            let is_over = trial.looked() >= self.time
                || left == 0
                || trial.report.failures.len() >= self.failures
                || self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
            let program = self.programs.get(number);
            if is_over || program.is_empty() {
                break;
            }
            let rounds = self.rounds.clamp(1, left);
            trial.run(&program, rounds, runner)?;
            progress(&trial.report);
        }
        Ok(trial.finish())
    }

    /// Runs one program `rounds` times, without shrinking a failure.
    pub fn replay<R: Runner>(
        &self,
        program: &Program,
        rounds: u64,
        runner: &mut R,
    ) -> Result<Report, CampaignError<R::Error>> {
        let mut trial = Trial::new(self);
        trial.shrinks = false;
        let mut left = rounds;
        while left > 0 && trial.report.failures.is_empty() {
            let next = self.rounds.clamp(1, left);
            trial.run(program, next, runner)?;
            left -= next;
        }
        trial.report.programs = 1;
        Ok(trial.finish())
    }
}

/// Results of a program: the number of runs, and the bad outcomes.
pub(crate) struct Findings {
    pub(crate) runs: u64,
    pub(crate) undecided: u64,
    pub(crate) bad: Vec<(Outcome, Fault, u64)>,
}

impl Findings {
    /// Runs a program and judges its outcomes.
    pub(crate) fn gather<R: Runner>(
        program: &Program,
        rounds: u64,
        judge: &mut Judge,
        runner: &mut R,
    ) -> Result<Findings, R::Error> {
        let mut outcomes = runner.run(program, rounds)?;
        // The order must not depend on the runner.
        outcomes.sort_unstable();
        let mut findings = Findings { runs: 0, undecided: 0, bad: Vec::new() };
        let mut outcomes = outcomes.into_iter().peekable();
        while let Some((outcome, mut count)) = outcomes.next() {
            while let Some((_, more)) = outcomes.next_if(|(next, _)| *next == outcome) {
                count += more;
            }
            findings.runs += count;
            match judge.judge(program, &outcome) {
                Ruling::Good => {}
                Ruling::Undecided => findings.undecided += 1,
                Ruling::Bad(fault) => findings.bad.push((outcome, *fault, count)),
            }
        }
        Ok(findings)
    }
}

/// A running campaign.
struct Trial<'c> {
    campaign: &'c Campaign,
    judge: Judge,
    report: Report,
    started: Instant,
    /// Time spent on shrinking.
    shrinking: Duration,
    shrinks: bool,
    /// The bad outcomes by kind, each with its failure.
    shapes: Vec<(Program, usize)>,
}

impl<'c> Trial<'c> {
    fn new(campaign: &'c Campaign) -> Self {
        let mut judge = Judge::new(campaign.object.clone(), &campaign.promise, campaign.judging);
        judge.levels = campaign.infers_levels.then(Levels::default);
        Trial {
            campaign,
            judge,
            report: Report::new(campaign.promise.clone()),
            started: Instant::now(),
            shrinking: Duration::ZERO,
            shrinks: true,
            shapes: Vec::new(),
        }
    }

    /// Returns the time spent looking for failures.
    fn looked(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.shrinking)
    }

    fn run<R: Runner>(
        &mut self,
        program: &Program,
        rounds: u64,
        runner: &mut R,
    ) -> Result<(), CampaignError<R::Error>> {
        for call in program.threads.iter().flatten() {
            let resolved = self.campaign.object.resolve(&call.method, call.args.len());
            resolved.map_err(|error| CampaignError::Call { call: call.to_string(), error })?;
        }
        let findings = Findings::gather(program, rounds, &mut self.judge, runner);
        let Findings { runs, undecided, bad } = findings.map_err(CampaignError::Runner)?;
        self.report.programs += 1;
        self.report.runs += runs;
        self.report.undecided += undecided;
        let bad_runs = bad.iter().map(|(_, _, count)| count).sum();
        self.report.bad_runs += bad_runs;
        for (outcome, fault, count) in bad {
            self.file(
                program,
                Bad { program: program.clone(), outcome, fault, seen: (bad_runs, runs) },
                count,
                runner,
            )
            .map_err(CampaignError::Runner)?;
        }
        self.report.outcomes = self.judge.judged;
        self.report.elapsed = self.started.elapsed();
        Ok(())
    }

    /// Adds a bad outcome to the failures of its kind, or shrinks it if its kind is new.
    fn file<R: Runner>(
        &mut self,
        found_in: &Program,
        bad: Bad,
        count: u64,
        runner: &mut R,
    ) -> Result<(), R::Error> {
        let shape = self.judge.core(found_in, &bad.outcome).shape();
        if let Some(&(_, at)) = self.shapes.iter().find(|(known, _)| *known == shape) {
            self.report.failures[at].bad_runs += count;
            return Ok(());
        }
        if self.report.failures.len() >= self.campaign.failures {
            return Ok(());
        }
        // All shrinking together takes at most as long as the search, even if there are many kinds
        // of failures.
        let allowed = self.campaign.time.max(self.campaign.shrinking);
        let left = allowed.saturating_sub(self.shrinking).min(self.campaign.shrinking);
        if left.is_zero() && !self.report.failures.is_empty() {
            return Ok(());
        }
        let after = self.looked();
        let bad = if self.shrinks {
            let began = Instant::now();
            let effort = Effort {
                programs: &self.campaign.programs,
                rounds: self.campaign.rounds,
                time: left,
            };
            let levels = self.judge.levels.take();
            let shrunk = shrink(bad, &mut self.judge, runner, &effort);
            self.judge.levels = levels;
            self.shrinking += began.elapsed();
            shrunk?
        } else {
            bad
        };
        let smallest = bad.program.shape();
        let known = self.report.failures.iter().position(|f| f.program.shape() == smallest);
        let at = known.unwrap_or(self.report.failures.len());
        self.shapes.push((shape, at));
        self.shapes.push((smallest, at));
        match known {
            Some(at) => self.report.failures[at].bad_runs += count,
            None => {
                let history = bad.outcome.history(&bad.program);
                self.report.failures.push(Failure {
                    program: bad.program,
                    outcome: bad.outcome,
                    history,
                    fault: bad.fault,
                    seen: bad.seen,
                    found_in: found_in.clone(),
                    after,
                    bad_runs: count,
                });
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Report {
        self.report.elapsed = self.started.elapsed();
        self.report.outcomes = self.judge.judged;
        self.report.levels = self.judge.levels;
        self.report
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Records the programs that it is asked to run, and the numbers of runs.
    #[derive(Default)]
    struct Diary(Vec<(String, u64)>);

    impl Runner for Diary {
        type Error = Infallible;

        fn run(
            &mut self,
            program: &Program,
            rounds: u64,
        ) -> Result<Vec<(Outcome, u64)>, Infallible> {
            self.0.push((program.to_string(), rounds));
            Ok(Vec::new())
        }
    }

    /// Returns the programs and numbers of runs of one share of a campaign of 1,050 runs.
    fn share(index: u64, of: u64) -> Vec<(String, u64)> {
        let object = consistory_spec::find("queue").unwrap();
        let signatures = [("enqueue", 1), ("dequeue", 0)]
            .map(|(method, arity)| Signature::of(&*object, method, arity).unwrap());
        let campaign = Campaign {
            share: (index, of),
            rounds: 10,
            runs: Some(1_050),
            time: Duration::MAX,
            ..Campaign::new(Arc::clone(&object), signatures.to_vec())
        };
        let mut diary = Diary::default();
        campaign.run(&mut diary, |_| ()).unwrap();
        diary.0
    }

    #[test]
    fn shares_are_the_whole_and_balanced() {
        let whole = share(0, 1);
        assert_eq!(whole.len(), 105);
        for of in [1, 2, 7, 64, 200] {
            let shares: Vec<_> = (0..of).map(|index| share(index, of)).collect();
            let sizes: Vec<usize> = shares.iter().map(Vec::len).collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
            for (number, program) in whole.iter().enumerate() {
                let (index, at) = (number % of as usize, number / of as usize);
                assert_eq!(&shares[index][at], program, "{number} of {of}");
            }
            assert_eq!(sizes.iter().sum::<usize>(), whole.len());
        }
    }
}
