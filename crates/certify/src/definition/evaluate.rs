//! A plain evaluator of definitions, which only the checker uses.
//!
//! The evaluator computes every expression as a set of pairs ([`Pairs`]), operator by operator, and
//! a `let rec` by iteration from the empty set, under a [`Choice`] of `wr` and `ww` that may be
//! partial. Each value carries four facts:
//!
//! - `grows`: in every completion of the choice, the value contains all pairs that it contains
//!   here;
//! - `shrinks`: in every completion, the value contains no other pairs between the operations that
//!   count here;
//! - whether its computation used `wr`, and whether it used `ww`.
//!
//! A completion may have more of `wr` and `ww`, and more operations that count, because an
//! indeterminate write counts once something reads from it. So `po` grows, and it also shrinks:
//! whether two operations are in it depends on no other operation. The operators propagate these
//! facts; `\` and `~` swap the roles for their right operand. Operators that look at further
//! operations, such as `;`, may find new ones in between. A check that fails for a growing value
//! fails in every completion, which is why a partial choice can suffice to prove a violation.
//!
//! The other two facts determine which outermost names remain valid under the next choice, so that
//! the cases of a proof share the values that do not differ between them.
//!
//! Cost: n² bits per value and about n³/64 steps per composition or closure, for n operations. The
//! number of steps is limited, since a short definition can require any number of them. The
//! recursion is over nested expressions and calls; a definition has at most a few hundred levels of
//! them.

use std::rc::Rc;

use consistory_definition::{
    Base, Check, CheckKind, Definition, Group, Kind, Program, Term, TermId, VariableId,
};
use consistory_history::{Action, History, OpId};
use consistory_verdict::Budget;

use super::choice::{Choice, key, po, same_session};
use super::pairs::Pairs;
use super::project::Projection;
use crate::Rejection;
use crate::real_time::returned_before;

/// Largest number of words visited to check one certificate, which takes about ten seconds.
const MAX_WORDS_VISITED: u64 = 1 << 34;

/// Number of words visited between two checks of the budget.
const WORDS_PER_LOOK: u64 = 1 << 20;

/// The value of an expression under a choice.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) pairs: Rc<Pairs>,
    kind: Kind,
    pub(super) facts: Facts,
}

/// Facts about a value besides its pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    /// Whether the value contains at least these pairs in every completion.
    pub(super) grows: bool,
    /// Whether the value contains, between operations that count here, at most these pairs in every
    /// completion.
    shrinks: bool,
    uses_wr: bool,
    uses_ww: bool,
}

/// The reason why names of litmus tests never occur here.
const NOT_A_HISTORY: &str = "definitions of memory models are not about histories";

impl Facts {
    const GIVEN: Facts = Facts { grows: true, shrinks: true, uses_wr: false, uses_ww: false };

    /// Returns the facts about a value that is computed from two values and grows with both.
    fn and(self, other: Facts) -> Facts {
        Facts {
            grows: self.grows && other.grows,
            shrinks: self.shrinks && other.shrinks,
            uses_wr: self.uses_wr || other.uses_wr,
            uses_ww: self.uses_ww || other.uses_ww,
        }
    }

    /// Returns the facts about the complement of a value.
    fn swapped(self) -> Facts {
        Facts { grows: self.shrinks, shrinks: self.grows, ..self }
    }
}

/// A definition that is evaluated under one choice after another.
pub(super) struct Evaluator<'a> {
    history: &'a History,
    /// Transactions of the operations, for definitions about transactions.
    transactions: Option<&'a Projection>,
    program: &'a Program,
    choice: Choice,
    /// Values of the predefined names that were used.
    bases: Vec<(Base, Value)>,
    /// Facts about the values of each group of outermost names, if they are up to date.
    globals: Vec<Option<Facts>>,
    /// Value of each variable, or `None` if it is unbound.
    values: Vec<Option<Value>>,
    work: u64,
    /// Budget of the check, which is consulted after every `WORDS_PER_LOOK` words.
    budget: &'a Budget,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(
        history: &'a History,
        transactions: Option<&'a Projection>,
        definition: &'a Definition,
        choice: Choice,
        budget: &'a Budget,
    ) -> Self {
        let program = definition.program();
        Evaluator {
            history,
            transactions,
            program,
            choice,
            bases: Vec::new(),
            globals: vec![None; program.globals.len()],
            values: vec![None; program.variables.len()],
            work: 0,
            budget,
        }
    }

    pub(super) fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Moves on to another choice for the same history, and keeps the values that do not depend on
    /// the difference.
    pub(super) fn choose(&mut self, choice: Choice) -> Result<(), Rejection> {
        self.spend(choice.ww.cost())?;
        let last = std::mem::replace(&mut self.choice, choice);
        let now = &self.choice;
        let same_counting = (&last.counting, last.is_closed) == (&now.counting, now.is_closed);
        let same_wr = (&last.wr, last.has_all_wr) == (&now.wr, now.has_all_wr);
        let same_ww = (&last.ww, last.has_all_ww) == (&now.ww, now.has_all_ww);
        let is_good = |facts: Facts| {
            same_counting && (same_wr || !facts.uses_wr) && (same_ww || !facts.uses_ww)
        };
        self.bases.retain(|(_, value)| is_good(value.facts));
        for global in &mut self.globals {
            *global = global.filter(|&facts| is_good(facts));
        }
        Ok(())
    }

    /// Evaluates the outermost names.
    pub(super) fn bind_globals(&mut self) -> Result<(), Rejection> {
        let program = self.program;
        for (i, group) in program.globals.iter().enumerate() {
            if self.globals[i].is_none() {
                self.globals[i] = Some(self.bind(group)?);
            }
        }
        Ok(())
    }

    /// Returns the value of an outermost name.
    pub(super) fn global(&self, variable: VariableId) -> Option<&Value> {
        self.values[variable.index()].as_ref()
    }

    /// Returns the set or relation that a check constrains, for one operation if the check is
    /// quantified.
    pub(super) fn subject(
        &mut self,
        check: &Check,
        observer: Option<usize>,
    ) -> Result<Value, Rejection> {
        if let (Some((variable, _, groups)), Some(op)) = (&check.forall, observer) {
            self.bind_operation(*variable, op);
            for group in groups {
                self.bind(group)?;
            }
        }
        self.value(check.term)
    }

    /// Returns the value of an expression that contains only bound names.
    pub(super) fn value(&mut self, term: TermId) -> Result<Value, Rejection> {
        let program = self.program;
        Ok(match program.term(term) {
            Term::Base(base) => self.base(*base),
            Term::Variable(variable) => {
                let value = self.values[variable.index()].clone();
                value.expect("a definition binds a name before it uses it")
            }
            Term::Apply(function, arguments) => {
                let values =
                    arguments.iter().map(|&a| self.value(a)).collect::<Result<Vec<_>, _>>()?;
                let function = program.function(*function);
                for (parameter, value) in function.parameters.iter().zip(values) {
                    self.values[parameter.index()] = Some(value);
                }
                self.value(function.body)?
            }
            Term::Union(terms) => self.combine(terms, Pairs::unite)?,
            Term::Intersection(terms) => self.combine(terms, Pairs::intersect)?,
            Term::Difference(left, right) => {
                let (left, right) = (self.value(*left)?, self.value(*right)?);
                let facts = left.facts.and(right.facts.swapped());
                let mut pairs = Rc::unwrap_or_clone(left.pairs);
                pairs.subtract(&right.pairs);
                self.result(pairs, left.kind, facts)?
            }
            Term::Complement(term) => {
                let Value { pairs, kind, facts } = self.value(*term)?;
                let mut rest = Rc::unwrap_or_clone(match kind {
                    Kind::Set => self.base(Base::Everything).pairs,
                    Kind::Relation => {
                        let all = self.base(Base::Everything).pairs;
                        Rc::new(Pairs::product(&all, &all))
                    }
                });
                rest.subtract(&pairs);
                self.result(rest, kind, facts.swapped())?
            }
            Term::Sequence(terms) => {
                let mut result = self.value(terms[0])?;
                for &term in &terms[1..] {
                    let next = self.value(term)?;
                    self.spend(result.pairs.cost())?;
                    let pairs = result.pairs.followed_by(&next.pairs);
                    let facts = self.looking_further(result.facts.and(next.facts));
                    result = self.result(pairs, Kind::Relation, facts)?;
                }
                result
            }
            Term::Product(left, right) => {
                let (left, right) = (self.value(*left)?, self.value(*right)?);
                let pairs = Pairs::product(&left.pairs, &right.pairs);
                self.result(pairs, Kind::Relation, left.facts.and(right.facts))?
            }
            Term::Plus(term) => self.closure(*term)?,
            Term::Star(term) => {
                let closed = self.closure(*term)?;
                self.or_itself(closed)?
            }
            Term::Optional(term) => {
                let inner = self.value(*term)?;
                self.or_itself(inner)?
            }
            Term::Inverse(term) => {
                let inner = self.value(*term)?;
                self.result(inner.pairs.reversed(), Kind::Relation, inner.facts)?
            }
            Term::Identity(term) => Value { kind: Kind::Relation, ..self.value(*term)? },
            Term::Domain(term) => {
                let inner = self.value(*term)?;
                let facts = self.looking_further(inner.facts);
                self.result(inner.pairs.firsts(), Kind::Set, facts)?
            }
            Term::Range(term) => {
                let inner = self.value(*term)?;
                let facts = self.looking_further(inner.facts);
                self.result(inner.pairs.reversed().firsts(), Kind::Set, facts)?
            }
            Term::View(_) => unreachable!("{NOT_A_HISTORY}"),
            Term::Let(group, body) => {
                self.bind(group)?;
                self.value(*body)?
            }
            Term::BigUnion { variable, set, body, kind } => {
                let set = self.value(*set)?;
                let mut pairs = Pairs::none(self.choice.size);
                // An operation that starts to count in a completion may enter the set.
                let mut facts = self.looking_further(set.facts);
                for op in set.pairs.elements() {
                    self.bind_operation(*variable, op);
                    let part = self.value(*body)?;
                    pairs.unite(&part.pairs);
                    facts = facts.and(part.facts);
                }
                self.result(pairs, *kind, facts)?
            }
        })
    }

    /// Binds the names of a group, and returns the facts that hold of all their values.
    fn bind(&mut self, group: &Group) -> Result<Facts, Rejection> {
        if group.recursive {
            return self.solve(group);
        }
        let terms = group.bindings.iter();
        let values = terms.map(|&(_, term)| self.value(term)).collect::<Result<Vec<_>, _>>()?;
        let mut all = Facts::GIVEN;
        for (&(variable, _), value) in group.bindings.iter().zip(values) {
            all = all.and(value.facts);
            self.values[variable.index()] = Some(value);
        }
        Ok(all)
    }

    /// Binds the names of a recursive group to the least solution.
    ///
    /// A fact holds of the solution if every iteration preserves it. A fact that one iteration
    /// loses is lost for all names.
    fn solve(&mut self, group: &Group) -> Result<Facts, Rejection> {
        let nothing = Rc::new(Pairs::none(self.choice.size));
        let mut all = Facts::GIVEN;
        for &(variable, _) in &group.bindings {
            let kind = self.program.variable(variable).kind;
            let value = Value { pairs: nothing.clone(), kind, facts: all };
            self.values[variable.index()] = Some(value);
        }
        loop {
            let terms = group.bindings.iter();
            let next = terms.map(|&(_, term)| self.value(term)).collect::<Result<Vec<_>, _>>()?;
            let before = all;
            all = next.iter().fold(all, |all, value| all.and(value.facts));
            let mut changed = all != before;
            for (&(variable, _), mut value) in group.bindings.iter().zip(next) {
                let slot = &mut self.values[variable.index()];
                changed |= slot.as_ref().is_none_or(|last| last.pairs != value.pairs);
                value.facts = all;
                *slot = Some(value);
            }
            if !changed {
                return Ok(all);
            }
        }
    }

    fn bind_operation(&mut self, variable: VariableId, op: usize) {
        let mut pairs = Pairs::none(self.choice.size);
        pairs.insert(op, op);
        self.values[variable.index()] =
            Some(Value { pairs: Rc::new(pairs), kind: Kind::Set, facts: Facts::GIVEN });
    }

    /// Combines the values of terms pair by pair.
    fn combine(
        &mut self,
        terms: &[TermId],
        change: fn(&mut Pairs, &Pairs),
    ) -> Result<Value, Rejection> {
        let first = self.value(terms[0])?;
        let (mut pairs, mut facts) = (Rc::unwrap_or_clone(first.pairs), first.facts);
        for &term in &terms[1..] {
            let next = self.value(term)?;
            change(&mut pairs, &next.pairs);
            facts = facts.and(next.facts);
        }
        self.result(pairs, first.kind, facts)
    }

    fn closure(&mut self, term: TermId) -> Result<Value, Rejection> {
        let inner = self.value(term)?;
        let pairs = inner.pairs.chains();
        self.spend(pairs.cost())?;
        self.result(pairs, Kind::Relation, self.looking_further(inner.facts))
    }

    fn or_itself(&mut self, value: Value) -> Result<Value, Rejection> {
        let mut pairs = Rc::unwrap_or_clone(value.pairs);
        pairs.unite(&self.base(Base::Identity).pairs);
        self.result(pairs, Kind::Relation, value.facts)
    }

    /// Returns the facts after an operator that looks at operations outside the pair.
    fn looking_further(&self, facts: Facts) -> Facts {
        Facts { shrinks: facts.shrinks && self.choice.is_closed, ..facts }
    }

    /// Builds a value; creating one is charged as a few words.
    fn result(&mut self, pairs: Pairs, kind: Kind, facts: Facts) -> Result<Value, Rejection> {
        self.spend((self.choice.size * self.choice.size.div_ceil(64)) as u64 + 128)?;
        Ok(Value { pairs: Rc::new(pairs), kind, facts })
    }

    /// Counts work, and fails if there is too much.
    pub(super) fn spend(&mut self, work: u64) -> Result<(), Rejection> {
        let before = self.work / WORDS_PER_LOOK;
        self.work = self.work.saturating_add(work);
        if self.work / WORDS_PER_LOOK != before {
            self.budget.check()?;
        }
        if self.work > MAX_WORDS_VISITED { Err(Rejection::TooMuchWork) } else { Ok(()) }
    }

    /// Returns the value of a predefined name.
    pub(super) fn base(&mut self, base: Base) -> Value {
        if let Some((_, value)) = self.bases.iter().find(|(known, _)| *known == base) {
            return value.clone();
        }
        let (h, choice) = (self.history, &self.choice);
        let op = OpId::new;
        let pairs = |holds: &dyn Fn(usize, usize) -> bool| {
            Pairs::where_holds(choice.size, &choice.counting, holds)
        };
        let set = |holds: &dyn Fn(OpId) -> bool| {
            let mut set = Pairs::none(choice.size);
            for &at in choice.counting.iter().filter(|&&at| holds(op(at))) {
                set.insert(at, at);
            }
            set
        };
        let (reads, writes) = (|op| h.reads(op).is_some(), |op| h.writes(op).is_some());
        let transactions = self.transactions;
        let unit = |at: usize| transactions.map_or(at as u32, |t| t.units[at]);
        let internal = |a: usize, b: usize| a == b || same_session(h, op(a), op(b));
        let (kind, found) = match base {
            Base::Everything => (Kind::Set, set(&|_| true)),
            Base::EmptySet => (Kind::Set, set(&|_| false)),
            Base::Writes => (Kind::Set, set(&writes)),
            Base::Reads => (Kind::Set, set(&reads)),
            Base::Fences => (Kind::Set, set(&|op| h.action(op) == Action::Fence)),
            Base::InitialWrites => (Kind::Set, set(&|op| h.is_initial(op))),
            Base::ReadModifyWrites => (Kind::Set, set(&|op| reads(op) && writes(op))),
            Base::Memory => (Kind::Set, set(&|op| reads(op) || writes(op))),
            Base::EmptyRelation => (Kind::Relation, set(&|_| false)),
            Base::Identity => (Kind::Relation, set(&|_| true)),
            Base::Po => (Kind::Relation, pairs(&|a, b| po(h, op(a), op(b)))),
            Base::Loc => {
                let same = |a, b| key(h, op(a)).is_some() && key(h, op(a)) == key(h, op(b));
                (Kind::Relation, pairs(&same))
            }
            Base::Int => (Kind::Relation, pairs(&internal)),
            Base::Ext => (Kind::Relation, pairs(&|a, b| !internal(a, b))),
            Base::Wr => (Kind::Relation, choice.wr.clone()),
            Base::Ww => (Kind::Relation, choice.ww.clone()),
            Base::Transaction => (Kind::Relation, pairs(&|a, b| unit(a) == unit(b))),
            Base::ClientOrder => {
                let ordered = |a, b| {
                    transactions.is_some_and(|t| t.client_order.contains(&(unit(a), unit(b))))
                };
                (Kind::Relation, pairs(&ordered))
            }
            Base::RealTime => {
                let ordered = |a, b| match transactions {
                    Some(t) => t.real_time.contains(&(unit(a), unit(b))),
                    None => returned_before(h, op(a), op(b)),
                };
                (Kind::Relation, pairs(&ordered))
            }
            Base::CommitOrder => {
                unreachable!("commit orders are refused before they are evaluated")
            }
            Base::Litmus(_) => unreachable!("{NOT_A_HISTORY}"),
        };
        let facts = match base {
            Base::Wr => Facts { shrinks: choice.has_all_wr, uses_wr: true, ..Facts::GIVEN },
            Base::Ww => Facts { shrinks: choice.has_all_ww, uses_ww: true, ..Facts::GIVEN },
            _ => Facts::GIVEN,
        };
        let value = Value { pairs: Rc::new(found), kind, facts };
        self.bases.push((base, value.clone()));
        value
    }
}

/// Returns whether a set or relation satisfies a check.
pub(super) fn holds(kind: CheckKind, subject: &Pairs) -> bool {
    match kind {
        CheckKind::Acyclic => subject.chains().elements().next().is_none(),
        CheckKind::Irreflexive => subject.elements().next().is_none(),
        CheckKind::Empty => subject.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use consistory_history::HistoryBuilder;
    use consistory_models::find;

    use super::*;
    use crate::reads_from::{Candidates, ReadsFrom};

    #[test]
    fn the_steps_have_a_limit() {
        let history = HistoryBuilder::new().finish().unwrap();
        let candidates = Candidates::new(&history);
        let wr = ReadsFrom::unambiguous(&candidates);
        let choice = Choice::new(&candidates, &wr, std::iter::empty());
        let definition = &find("ccm").unwrap().definition;
        let budget = Budget::unlimited();
        let mut evaluator = Evaluator::new(&history, None, definition, choice, &budget);
        assert_eq!(evaluator.bind_globals(), Ok(()));
        evaluator.globals.fill(None);
        evaluator.work = MAX_WORDS_VISITED - 100;
        assert_eq!(evaluator.bind_globals(), Err(Rejection::TooMuchWork));
    }

    #[test]
    fn a_budget_ends_the_evaluation() {
        let mut builder = HistoryBuilder::new();
        let (session, key) = (builder.session("a"), builder.key("x"));
        for value in 1..1000 {
            let value = builder.int(value);
            builder.push(session, Action::Write { key, value });
        }
        let history = builder.finish().unwrap();
        let candidates = Candidates::new(&history);
        let wr = ReadsFrom::unambiguous(&candidates);
        let choice = Choice::new(&candidates, &wr, std::iter::empty());
        let definition = &find("ccm").unwrap().definition;
        let budget = Budget::unlimited().with_time(Duration::ZERO);
        let mut evaluator = Evaluator::new(&history, None, definition, choice, &budget);
        let stopped = evaluator.bind_globals();
        assert!(matches!(stopped, Err(Rejection::Stopped(_))), "{stopped:?}");
    }
}
