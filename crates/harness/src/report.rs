//! The report of a campaign.

use std::fmt;
use std::time::Duration;

use consistory::Verdict;
use consistory_history::History;
use consistory_objects::Levels;

use crate::judge::{Fault, Promise};
use crate::outcome::Outcome;
use crate::program::Program;

/// The results of a campaign.
#[derive(Clone, Debug)]
pub struct Report {
    /// The promised consistency.
    pub promise: Promise,
    /// Number of programs run, without shrinking.
    pub programs: u64,
    /// Number of runs.
    pub runs: u64,
    /// Number of different outcomes judged.
    pub outcomes: u64,
    /// Number of bad runs.
    pub bad_runs: u64,
    /// Number of different outcomes that could not be decided.
    pub undecided: u64,
    /// Total time, including shrinking.
    pub elapsed: Duration,
    /// The failures, each kind once.
    pub failures: Vec<Failure>,
    /// The levels that explain all outcomes, if they were inferred.
    pub levels: Option<Levels>,
}

/// A program with a bad outcome.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The smallest program found to fail.
    pub program: Program,
    /// Its outcome.
    pub outcome: Outcome,
    /// The outcome as a history.
    pub history: History,
    /// The reason why the outcome is bad.
    pub fault: Fault,
    /// Number of bad runs of this program, and number of its runs.
    pub seen: (u64, u64),
    /// The program in which the failure was first found.
    pub found_in: Program,
    /// Time at which it was found, without shrinking.
    pub after: Duration,
    /// Number of runs of the campaign with a failure of this kind, as far as known.
    pub bad_runs: u64,
}

impl Report {
    pub(crate) fn new(promise: Promise) -> Self {
        Report {
            promise,
            programs: 0,
            runs: 0,
            outcomes: 0,
            bad_runs: 0,
            undecided: 0,
            elapsed: Duration::ZERO,
            failures: Vec::new(),
            levels: None,
        }
    }

    /// Checks whether at least one program was run and no failure was found.
    pub fn is_clean(&self) -> bool {
        self.runs > 0 && self.failures.is_empty() && self.undecided == 0
    }

    /// Asserts that at least one program was run and all outcomes were as promised.
    ///
    /// # Panics
    ///
    /// Panics with the report otherwise.
    #[track_caller]
    pub fn assert_consistent(&self) {
        assert!(self.is_clean(), "{self}");
    }

    /// Asserts that at least one program was run and all outcomes were linearizable.
    ///
    /// # Panics
    ///
    /// Panics with the report otherwise, and if the outcomes were judged by another model.
    #[track_caller]
    pub fn assert_linearizable(&self) {
        let judged = self.promise.name();
        assert!(
            self.promise.is_linearizability(),
            "the runs were judged by {judged}, which says nothing about linearizability"
        );
        self.assert_consistent();
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failures = match self.failures.len() {
            0 => "nothing wrong".to_owned(),
            1 => "1 failure".to_owned(),
            n => format!("{n} failures"),
        };
        writeln!(
            f,
            "{}: {failures} in {} programs, {} runs, {} different outcomes, {:.1} s",
            self.promise.name(),
            grouped(self.programs),
            grouped(self.runs),
            grouped(self.outcomes),
            self.elapsed.as_secs_f64(),
        )?;
        if self.undecided > 0 {
            writeln!(f, "{} outcomes could not be decided", grouped(self.undecided))?;
        }
        for failure in &self.failures {
            write!(f, "\n{failure}")?;
        }
        if let Some(levels) = &self.levels {
            writeln!(f, "\nlevels that explain all outcomes:")?;
            for (method, level) in levels.iter() {
                writeln!(f, "  {method} {level}")?;
            }
        }
        Ok(())
    }
}

impl Failure {
    /// Draws the outcome as an interval diagram; `None` if a call panicked.
    pub fn svg(&self) -> Option<String> {
        match &self.fault {
            Fault::Violation(verdict) => Some(verdict.draw()),
            Fault::Panic { .. } => None,
        }
    }

    /// Returns the verdict on the outcome; `None` if a call panicked.
    pub fn verdict(&self) -> Option<&Verdict<'static>> {
        match &self.fault {
            Fault::Violation(verdict) => Some(verdict),
            Fault::Panic { .. } => None,
        }
    }

    /// Writes a test that runs the program again; `harness()` must build the harness.
    pub fn reproduction(&self) -> String {
        let rounds = (self.seen.1 / self.seen.0.max(1)).saturating_mul(20).max(10_000);
        let rounds = rounds.next_multiple_of(10_000);
        let text = self.program.to_string();
        let lines: Vec<String> =
            text.lines().map(|line| format!("        {}", line.escape_debug())).collect();
        // Escapes keep the text one literal.
        let literal = lines.join("\\n\\\n").trim_start().to_owned();
        format!(
            "#[test]\nfn shrunk() {{\n    harness().replay(\n        \"{literal}\",\n        {},\n    )\n    \
             .assert_consistent();\n}}\n",
            grouped(rounds).replace(',', "_")
        )
    }
}

impl fmt::Display for Failure {
    /// Shows the program, its outcome and why it is bad, without colours.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bad, runs) = self.seen;
        writeln!(f, "wrong in {} of {} runs of this program:\n", grouped(bad), grouped(runs))?;
        for line in self.program.to_string().lines() {
            writeln!(f, "  {line}")?;
        }
        writeln!(f)?;
        match &self.fault {
            Fault::Violation(verdict) => f.write_str(&verdict.explain())?,
            Fault::Panic { message } => {
                for op in self.history.ops() {
                    let (reference, shown) = (self.history.reference(op), self.history.show(op));
                    writeln!(f, "  {reference} {shown}")?;
                }
                writeln!(f, "\nA call panicked: {message}")?;
            }
        }
        writeln!(f, "\nTo run it again:\n")?;
        for line in self.reproduction().lines() {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}

/// Formats a number with a comma before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let shown: Vec<String> = [0, 999, 1000, 1234567].map(grouped).into();
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
    }
}
