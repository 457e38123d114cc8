//! The condition of a litmus test on its outcomes.

use crate::program::{Observable, Outcome, Program, Value};

/// A quantified proposition over the values of an outcome.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Condition {
    /// The quantifier over outcomes.
    pub quantifier: Quantifier,
    /// The proposition about an outcome.
    pub proposition: Proposition,
}

/// Quantifier over the outcomes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Quantifier {
    /// At least one: `exists`.
    Exists,
    /// None: `~exists`.
    NotExists,
    /// All of them: `forall`.
    Forall,
}

/// A proposition over the values of an outcome.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Proposition {
    /// Always true.
    True,
    /// A register or location holds a value.
    Holds(Observable, Value),
    /// The proposition does not hold.
    Not(Box<Proposition>),
    /// All members hold.
    And(Vec<Proposition>),
    /// At least one member holds.
    Or(Vec<Proposition>),
    /// If the first one holds, so does the second.
    Implies(Box<Proposition>, Box<Proposition>),
}

impl Condition {
    /// Checks whether the outcomes of a program satisfy the condition.
    pub fn holds<'a>(
        &self,
        program: &Program,
        outcomes: impl IntoIterator<Item = &'a Outcome>,
    ) -> bool {
        let mut each = outcomes.into_iter().map(|outcome| self.proposition.holds(program, outcome));
        match self.quantifier {
            Quantifier::Exists => each.any(|holds| holds),
            Quantifier::NotExists => !each.any(|holds| holds),
            Quantifier::Forall => each.all(|holds| holds),
        }
    }
}

impl Proposition {
    /// Checks whether an outcome of the program satisfies the proposition.
    ///
    /// A register or location that the program does not observe equals no value.
    pub fn holds(&self, program: &Program, outcome: &Outcome) -> bool {
        match self {
            Proposition::True => true,
            Proposition::Holds(observable, value) => {
                let place = program.observed.iter().position(|o| o == observable);
                place.is_some_and(|place| outcome.0[place] == *value)
            }
            Proposition::Not(inner) => !inner.holds(program, outcome),
            Proposition::And(all) => all.iter().all(|p| p.holds(program, outcome)),
            Proposition::Or(some) => some.iter().any(|p| p.holds(program, outcome)),
            Proposition::Implies(premise, conclusion) => {
                !premise.holds(program, outcome) || conclusion.holds(program, outcome)
            }
        }
    }

    /// Returns every register and location in it, once, in the order of appearance.
    pub fn observables(&self) -> Vec<Observable> {
        let mut all = Vec::new();
        self.collect(&mut all);
        all
    }

    fn collect(&self, all: &mut Vec<Observable>) {
        match self {
            Proposition::True => {}
            Proposition::Holds(observable, _) => {
                if !all.contains(observable) {
                    all.push(*observable);
                }
            }
            Proposition::Not(inner) => inner.collect(all),
            Proposition::And(many) | Proposition::Or(many) => {
                many.iter().for_each(|p| p.collect(all));
            }
            Proposition::Implies(premise, conclusion) => {
                premise.collect(all);
                conclusion.collect(all);
            }
        }
    }
}
