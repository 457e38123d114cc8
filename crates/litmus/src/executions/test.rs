//! A test of an instruction set: its program, and a condition on its final states.

use super::code::{Code, Reservation, truncate};
use super::search::IsaOutcomes;

/// A test in herd's format.
#[derive(Clone, Debug)]
pub struct IsaTest {
    /// The language of the program.
    pub language: Language,
    /// Its name.
    pub name: String,
    pub(crate) code: Code,
    /// Registers and locations of a final state.
    pub(crate) observed: Vec<Observed>,
    /// States that do not satisfy this formula are dropped.
    pub(crate) filter: Option<Formula>,
    /// Quantifier of the proposition.
    pub quantifier: Asked,
    pub(crate) proposition: Formula,
    /// Proposition in the notation of the file.
    pub proposition_text: String,
}

/// A language of litmus tests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Language {
    /// x86, 32 bit.
    X86,
    /// x86, 64 bit.
    X86_64,
    /// ARMv8, 64 bit.
    AArch64,
    /// RISC-V.
    RiscV,
    /// Power.
    Ppc,
    /// C with the atomics of C11.
    C,
    /// C of the Linux kernel.
    LinuxC,
    /// herd's neutral language.
    Lisa,
}

impl Language {
    /// Returns the word on a test's first line.
    pub fn as_str(self) -> &'static str {
        match self {
            Language::X86 => "X86",
            Language::X86_64 => "X86_64",
            Language::AArch64 => "AArch64",
            Language::RiscV => "RISCV",
            Language::Ppc => "PPC",
            Language::C | Language::LinuxC => "C",
            Language::Lisa => "LISA",
        }
    }
}

/// The quantifier of a test's proposition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Some state satisfies the proposition.
    Exists,
    /// No state satisfies the proposition.
    NotExists,
    /// Every state satisfies the proposition.
    Forall,
}

impl Asked {
    /// Returns the keyword.
    pub fn as_str(self) -> &'static str {
        match self {
            Asked::Exists => "exists",
            Asked::NotExists => "~exists",
            Asked::Forall => "forall",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Register {
        thread: usize,
        register: u16,
    },
    /// A number of elements from an address on, with a stride in bytes.
    Memory {
        address: i64,
        count: usize,
        step: u8,
    },
}

/// A register or location of final states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Observed {
    /// Name in herd's notation: `0:X1`, `x`, `a[1]`.
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) bytes: u8,
    pub(crate) signed: bool,
    pub(crate) is_array: bool,
    /// Index of its first value in a state.
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// Whether states show it; a filter may use further values.
    pub(crate) visible: bool,
}

/// The observed values at the end of an execution.
pub type FinalState = Vec<i64>;

#[derive(Clone, Debug)]
pub(crate) enum Formula {
    True,
    False,
    Not(Box<Formula>),
    And(Box<Formula>, Box<Formula>),
    Or(Box<Formula>, Box<Formula>),
    Implies(Box<Formula>, Box<Formula>),
    /// An observed register or location has the given values.
    Equal(usize, Vec<i64>),
    /// Two observed registers or locations are equal.
    Same(usize, usize),
}

impl IsaTest {
    /// Applies a variant of herd: `ConstrainedUnpredictable` (or `CU`) lets a store exclusive
    /// succeed at another address than that of its load exclusive. Other variants concern models
    /// and are ignored here.
    pub fn apply_variant(&mut self, name: &str) {
        if let Some(reservation) = Reservation::of_variant(name) {
            self.code.reservation = reservation;
        }
    }

    /// Returns the program.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Checks whether the final states show the value at an address.
    pub(crate) fn observes(&self, at: i64) -> bool {
        self.observed.iter().any(|observed| match observed.source {
            Source::Register { .. } => false,
            Source::Memory { address, count, step } => {
                let end = address + count as i64 * i64::from(step);
                (address..end).contains(&at)
            }
        })
    }

    /// Returns a value truncated to the width of the register or location with this index.
    pub fn truncated(&self, at: usize, value: i64) -> i64 {
        let observed = &self.observed[at];
        truncate(value, observed.bytes, observed.signed)
    }

    /// Returns a state without values that only the filter uses; `None` if the filter drops it.
    pub fn seen(&self, mut state: FinalState) -> Option<FinalState> {
        if !self.passes_filter(&state) {
            return None;
        }
        self.project(&mut state);
        Some(state)
    }

    /// Returns the number of threads.
    pub fn thread_count(&self) -> usize {
        self.code.threads.len()
    }

    /// Returns the names of the observed values, in the order of states.
    pub fn observed_names(&self) -> impl Iterator<Item = &str> {
        let visible = self.observed.iter().filter(|observed| observed.visible);
        visible.map(|observed| observed.name.as_str())
    }

    /// Removes the values that only the filter uses.
    pub(crate) fn project(&self, state: &mut FinalState) {
        for observed in self.observed.iter().filter(|observed| !observed.visible) {
            state[observed.first..observed.first + observed.count].fill(0);
        }
    }

    /// Checks whether a state satisfies the proposition.
    pub fn satisfies(&self, state: &FinalState) -> bool {
        self.holds(&self.proposition, state)
    }

    /// Checks whether the outcomes satisfy the condition, by its quantifier.
    pub fn is_answered(&self, found: &IsaOutcomes) -> bool {
        let mut each = found.states.iter().map(|state| self.satisfies(state));
        match self.quantifier {
            Asked::Exists => each.any(|satisfied| satisfied),
            Asked::NotExists => !each.any(|satisfied| satisfied),
            Asked::Forall => each.all(|satisfied| satisfied),
        }
    }

    pub(crate) fn passes_filter(&self, state: &FinalState) -> bool {
        self.filter.as_ref().is_none_or(|filter| self.holds(filter, state))
    }

    pub(crate) fn holds(&self, formula: &Formula, state: &FinalState) -> bool {
        match formula {
            Formula::True => true,
            Formula::False => false,
            Formula::Not(inner) => !self.holds(inner, state),
            Formula::And(a, b) => self.holds(a, state) && self.holds(b, state),
            Formula::Or(a, b) => self.holds(a, state) || self.holds(b, state),
            Formula::Implies(a, b) => !self.holds(a, state) || self.holds(b, state),
            Formula::Equal(at, values) => {
                let observed = &self.observed[*at];
                values.len() == observed.count
                    && values.iter().zip(&state[observed.first..]).all(|(&wanted, &value)| {
                        truncate(wanted, observed.bytes, observed.signed) == value
                    })
            }
            Formula::Same(a, b) => {
                let (a, b) = (&self.observed[*a], &self.observed[*b]);
                a.count == b.count
                    && state[a.first..a.first + a.count] == state[b.first..b.first + b.count]
            }
        }
    }

    /// Returns the displayed values of a state: numbers, or names of locations.
    pub fn shown(&self, state: &FinalState) -> Vec<(&str, Shown)> {
        let one = |observed: &Observed, value: i64| match self.code.address_name(value) {
            Some(name) => Shown::Text(name),
            None if observed.bytes == 8 && !observed.signed => {
                Shown::Number(i128::from(value as u64))
            }
            None => Shown::Number(i128::from(value)),
        };
        let visible = self.observed.iter().filter(|observed| observed.visible);
        visible
            .map(|observed| {
                let values = &state[observed.first..observed.first + observed.count];
                let shown = if observed.is_array {
                    let all: Vec<String> =
                        values.iter().map(|&value| one(observed, value).to_string()).collect();
                    Shown::Text(format!("{{{}}}", all.join(",")))
                } else {
                    one(observed, values[0])
                };
                (observed.name.as_str(), shown)
            })
            .collect()
    }
}

/// A displayed value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shown {
    /// A number.
    Number(i128),
    /// A location or an array.
    Text(String),
}

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shown::Number(number) => write!(f, "{number}"),
            Shown::Text(text) => f.write_str(text),
        }
    }
}
