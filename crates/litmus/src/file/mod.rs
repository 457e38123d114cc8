//! `.litmus` files in herd's format.
//!
//! ```text
//! X86 SB
//! "Store buffering"
//! { x=0; y=0; }
//!  P0          | P1          ;
//!  MOV [x],$1  | MOV [y],$1  ;
//!  MOV EAX,[y] | MOV EAX,[x] ;
//! exists (0:EAX=0 /\ 1:EAX=0)
//! ```
//!
//! The first line names an architecture and the test; then come lines `KEY=value` and strings, the
//! initial values in braces, one column per thread, and finally `locations`, `filter` and a
//! condition. [`read_test`] supports x86 and LISA, herd's neutral language, and reports every error
//! with its position.

mod layout;
mod lexer;
mod lisa;
mod proposition;
mod thread;
mod write;
mod x86;

use consistory_diagnostic::Diagnostics;

use crate::condition::{Condition, Proposition};
use crate::program::{Outcome, Outcomes, Program};

pub use write::{ArchError, write_table, write_test};

/// A litmus test: a program and a condition on its outcomes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Test {
    /// Language of the program.
    pub arch: Arch,
    /// Its name.
    pub name: String,
    /// The string after the name.
    pub comment: Option<String>,
    /// The `KEY=value` lines, in order.
    pub info: Vec<(String, String)>,
    /// The program; it observes the values in the condition, the filter and `locations`, or every
    /// register that is read into if these are absent.
    pub program: Program,
    /// Outcomes that do not satisfy this proposition are dropped.
    pub filter: Option<Proposition>,
    /// The condition.
    pub condition: Option<Condition>,
}

/// A language of litmus tests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Arch {
    /// Intel's syntax.
    X86,
    /// herd's neutral language.
    Lisa,
}

impl Arch {
    /// Returns the word on a test's first line.
    pub fn as_str(self) -> &'static str {
        match self {
            Arch::X86 => "X86",
            Arch::Lisa => "LISA",
        }
    }
}

impl Test {
    /// Returns the value of a `KEY=value` line.
    pub fn info(&self, key: &str) -> Option<&str> {
        self.info.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// Returns the outcomes that satisfy the filter.
    pub fn filtered<'o>(&'o self, outcomes: &'o Outcomes) -> impl Iterator<Item = &'o Outcome> {
        let passes = |outcome: &Outcome| {
            self.filter.as_ref().is_none_or(|filter| filter.holds(&self.program, outcome))
        };
        outcomes.iter().filter(move |outcome| passes(outcome))
    }

    /// Checks whether the outcomes satisfy the condition; `None` if there is no condition.
    pub fn holds(&self, outcomes: &Outcomes) -> Option<bool> {
        let condition = self.condition.as_ref()?;
        Some(condition.holds(&self.program, self.filtered(outcomes)))
    }
}

/// Reads a test; `source` is the name in diagnostics.
pub fn read_test(source: &str, text: &str) -> Result<Test, Diagnostics> {
    let mut reader = lexer::Reader::new(source, text);
    let test = layout::read(&mut reader);
    reader.finish(test)
}
