//! What a campaign found.

use std::fmt;
use std::time::Duration;

use consistory_history::History;
use consistory_objects::Levels;

use crate::judge::{Fault, Promise};
use crate::outcome::Outcome;
use crate::program::Program;

/// What a campaign did and found.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was promised.
    pub promise: Promise,
    /// How many programs were run, not counting those of shrinking.
    pub programs: u64,
    /// How many rounds they were run.
    pub runs: u64,
    /// How many different outcomes were judged.
    pub outcomes: u64,
    /// In how many rounds something was wrong.
    pub bad_runs: u64,
    /// How many different outcomes could not be decided.
    pub undecided: u64,
    /// How long it took, shrinking included.
    pub elapsed: Duration,
    /// What is wrong, each kind once.
    pub failures: Vec<Failure>,
    /// The levels that explain everything that was seen, if they were asked for.
    pub levels: Option<Levels>,
}

/// A program that does what it should not.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The smallest program that was found to fail.
    pub program: Program,
    /// What it did.
    pub outcome: Outcome,
    /// The same as a history.
    pub history: History,
    /// What is wrong with that.
    pub fault: Fault,
    /// In how many rounds of this program something was wrong, and how many there were.
    pub seen: (u64, u64),
    /// The program in which it was first found.
    pub found_in: Program,
    /// When it was found, shrinking not included.
    pub after: Duration,
    /// In how many rounds of the campaign something of this kind was wrong, as far as can be told.
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

    /// Checks whether something was run and nothing was found.
    pub fn is_clean(&self) -> bool {
        self.runs > 0 && self.failures.is_empty() && self.undecided == 0
    }

    /// Insists that something was run and all of it was as promised.
    ///
    /// # Panics
    ///
    /// With the report if not.
    #[track_caller]
    pub fn assert_consistent(&self) {
        assert!(self.is_clean(), "{self}");
    }

    /// Insists that something was run and all of it was linearizable.
    ///
    /// # Panics
    ///
    /// With the report if not, and if the runs were judged by another model.
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
    /// Draws what happened as an interval diagram; `None` if a call panicked.
    pub fn svg(&self) -> Option<String> {
        match &self.fault {
            Fault::Violation(verdict) => Some(verdict.draw()),
            Fault::Panic { .. } => None,
        }
    }

    /// Writes a test that runs the program again; `harness()` is to make the harness.
    pub fn reproduction(&self) -> String {
        let rounds = (self.seen.1 / self.seen.0.max(1)).saturating_mul(20).max(10_000);
        let rounds = rounds.next_multiple_of(10_000);
        let text = self.program.to_string();
        let lines: Vec<String> =
            text.lines().map(|line| format!("        {}", line.escape_debug())).collect();
        // Escapes inside of the literal, so that it stays one.
        let literal = lines.join("\\n\\\n").trim_start().to_owned();
        format!(
            "#[test]\nfn shrunk() {{\n    harness().replay(\n        \"{literal}\",\n        {},\n    )\n    \
             .assert_consistent();\n}}\n",
            grouped(rounds).replace(',', "_")
        )
    }
}

impl fmt::Display for Failure {
    /// Shows the program, what it did and why that is wrong, without colours.
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

/// Writes a number with a comma before every three digits.
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
