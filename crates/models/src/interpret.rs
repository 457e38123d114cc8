//! The reference evaluator: computes the set or relation of a term, operator by operator.
//!
//! The evaluator is deliberately simple. A `let rec` starts from the empty set and iterates to a
//! fixpoint; a union over operations evaluates its body for each of them; a function's body is
//! evaluated again at each call. The only optimisation is that names which do not depend on the
//! store order are evaluated once for all store orders ([`Stage`]).

use std::cell::Cell;
use std::rc::Rc;

use consistory_verdict::{Budget, Stopped};

use crate::register::Basics;
use consistory_definition::CheckKind;
use consistory_definition::Definition;
use consistory_definition::Kind;
use consistory_definition::{Base, Check, FunctionId, Group, Program, Term, TermId, VariableId};
use consistory_order::{Matrix, Set};

/// The value of a term.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Set(Rc<Set>),
    Relation(Rc<Matrix>),
}

impl Value {
    /// Returns the set; the resolver guarantees that the term is one.
    pub(crate) fn set(self) -> Rc<Set> {
        match self {
            Value::Set(set) => set,
            Value::Relation(_) => unreachable!("kinds were checked: this term is a set"),
        }
    }

    /// Returns the relation; the resolver guarantees that the term is one.
    pub(crate) fn relation(self) -> Rc<Matrix> {
        match self {
            Value::Relation(relation) => relation,
            Value::Set(_) => unreachable!("kinds were checked: this term is a relation"),
        }
    }

    /// Returns whether a pair is in the relation; a set contains an element as a pair with itself.
    pub(crate) fn holds(&self, from: usize, to: usize) -> bool {
        match self {
            Value::Set(set) => from == to && set.contains(from),
            Value::Relation(relation) => relation.contains(from, to),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Value::Set(set) => set.is_empty(),
            Value::Relation(relation) => relation.is_empty(),
        }
    }
}

impl From<Set> for Value {
    fn from(set: Set) -> Self {
        Value::Set(Rc::new(set))
    }
}

impl From<Matrix> for Value {
    fn from(relation: Matrix) -> Self {
        Value::Relation(Rc::new(relation))
    }
}

/// A variable's value and its origin, which explanations follow.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// Bound to the value of a term.
    Term(TermId),
    /// A parameter; the term is its argument.
    Argument(TermId),
    /// The name at this position of a group that was solved by iteration.
    Fixpoint(Rc<Fixpoint>, usize),
    /// An operation that a union or `forall` ranges over.
    Operation(usize),
}

/// Solution of a recursive group: the values of its names at each stage, the first being empty.
#[derive(Debug)]
pub(crate) struct Fixpoint {
    pub(crate) group: Group,
    pub(crate) stages: Vec<Vec<Value>>,
    /// Scope in which the group was bound.
    pub(crate) scope: Scope,
}

/// Number of the sequence of calls, operations and stages that led to an environment, in the
/// numbering of explanations; the outermost is 0.
pub(crate) type Scope = u32;

/// Values of the bound variables.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    slots: Vec<Option<Slot>>,
    pub(crate) scope: Scope,
}

impl Environment {
    fn new(program: &Program) -> Self {
        Environment { slots: vec![None; program.variables.len()], scope: 0 }
    }

    pub(crate) fn get(&self, variable: VariableId) -> &Slot {
        self.slots[variable.index()].as_ref().expect("a variable is bound before it is used")
    }

    pub(crate) fn set(&mut self, variable: VariableId, value: Value, origin: Origin) {
        self.slots[variable.index()] = Some(Slot { value, origin });
    }
}

/// A failed check, with its operation if it is quantified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) check: usize,
    pub(crate) observer: Option<usize>,
}

/// Values evaluated once per choice of `wr`: those that do not depend on the store order.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) basics: Rc<Basics>,
    environment: Environment,
    /// First check without a store order that fails.
    fault: Option<Fault>,
}

/// All values under one choice of `wr` and `ww`, and the first check that fails.
pub(crate) struct Evaluated {
    pub(crate) environment: Environment,
    pub(crate) fault: Option<Fault>,
}

/// Evaluates terms of a definition within a budget.
pub(crate) struct Interpreter<'a> {
    pub(crate) definition: &'a Definition,
    pub(crate) program: &'a Program,
    budget: &'a Budget,
    /// Work since the last check of the budget, in words.
    work: Cell<usize>,
}

/// Amount of work between two checks of the budget.
const WORK_UNIT: usize = 1 << 20;

impl<'a> Interpreter<'a> {
    pub(crate) fn new(definition: &'a Definition, budget: &'a Budget) -> Self {
        Interpreter { definition, program: definition.program(), budget, work: Cell::new(0) }
    }

    /// Checks the budget if enough work was done since the last check.
    pub(crate) fn spend(&self, work: usize) -> Result<(), Stopped> {
        let total = self.work.get().saturating_add(work);
        if total < WORK_UNIT {
            self.work.set(total);
            return Ok(());
        }
        self.work.set(0);
        self.budget.check()
    }

    /// Evaluates the terms that do not depend on the store order.
    pub(crate) fn stage(&self, basics: Basics) -> Result<Stage, Stopped> {
        let mut stage = Stage {
            basics: Rc::new(basics),
            environment: Environment::new(self.program),
            fault: None,
        };
        let model = Model { interpreter: self, basics: stage.basics.clone(), ww: None };
        let analysis = self.definition.analysis();
        for (group, &is_late) in self.program.globals.iter().zip(&analysis.late_globals) {
            if !is_late {
                model.bind(&mut stage.environment, group)?;
            }
        }
        stage.fault =
            model.first_fault(&mut stage.environment, |check| !analysis.late_checks[check])?;
        Ok(stage)
    }

    /// Evaluates the other terms under a store order, and finds the first check that fails.
    pub(crate) fn evaluate(&self, stage: &Stage, ww: &Rc<Matrix>) -> Result<Evaluated, Stopped> {
        let model = self.model(stage, ww);
        let analysis = self.definition.analysis();
        let mut environment = stage.environment.clone();
        if stage.fault.is_some() {
            return Ok(Evaluated { environment, fault: stage.fault });
        }
        for (group, &is_late) in self.program.globals.iter().zip(&analysis.late_globals) {
            if is_late {
                model.bind(&mut environment, group)?;
            }
        }
        let fault = model.first_fault(&mut environment, |check| analysis.late_checks[check])?;
        Ok(Evaluated { environment, fault })
    }

    pub(crate) fn model(&self, stage: &Stage, ww: &Rc<Matrix>) -> Model<'_> {
        Model { interpreter: self, basics: stage.basics.clone(), ww: Some(ww.clone()) }
    }
}

/// The predefined names under one choice of `wr` and `ww`.
pub(crate) struct Model<'a> {
    pub(crate) interpreter: &'a Interpreter<'a>,
    pub(crate) basics: Rc<Basics>,
    ww: Option<Rc<Matrix>>,
}

impl Model<'_> {
    fn program(&self) -> &Program {
        self.interpreter.program
    }

    fn size(&self) -> usize {
        self.basics.po.size()
    }

    /// Binds the names of a group; a recursive group is bound to its least solution.
    pub(crate) fn bind(&self, env: &mut Environment, group: &Group) -> Result<(), Stopped> {
        if !group.recursive {
            // All terms are evaluated before any name is bound.
            let values: Vec<Value> = group
                .bindings
                .iter()
                .map(|&(_, term)| self.eval(env, term))
                .collect::<Result<_, _>>()?;
            for (&(variable, term), value) in group.bindings.iter().zip(values) {
                env.set(variable, value, Origin::Term(term));
            }
            return Ok(());
        }
        let nothing =
            |&(variable, _): &(VariableId, TermId)| match self.program().variable(variable).kind {
                Kind::Set => Set::empty(self.size()).into(),
                Kind::Relation => Matrix::empty(self.size()).into(),
            };
        let mut stages: Vec<Vec<Value>> = vec![group.bindings.iter().map(nothing).collect()];
        loop {
            let last = &stages[stages.len() - 1];
            for (&(variable, term), value) in group.bindings.iter().zip(last) {
                env.set(variable, value.clone(), Origin::Term(term));
            }
            let next: Vec<Value> = group
                .bindings
                .iter()
                .map(|&(_, term)| self.eval(env, term))
                .collect::<Result<_, _>>()?;
            if next == *last {
                break;
            }
            stages.push(next);
        }
        let values = stages[stages.len() - 1].clone();
        let fixpoint = Rc::new(Fixpoint { group: group.clone(), stages, scope: env.scope });
        for (i, (&(variable, _), value)) in group.bindings.iter().zip(values).enumerate() {
            env.set(variable, value, Origin::Fixpoint(fixpoint.clone(), i));
        }
        Ok(())
    }

    /// Binds the parameters of a function to its arguments.
    pub(crate) fn bind_arguments(
        &self,
        env: &mut Environment,
        function: FunctionId,
        arguments: &[TermId],
    ) -> Result<(), Stopped> {
        let values: Vec<Value> =
            arguments.iter().map(|&argument| self.eval(env, argument)).collect::<Result<_, _>>()?;
        let parameters = &self.program().function(function).parameters;
        for ((&parameter, &argument), value) in parameters.iter().zip(arguments).zip(values) {
            env.set(parameter, value, Origin::Argument(argument));
        }
        Ok(())
    }

    /// Binds an operation that a union or `forall` ranges over.
    pub(crate) fn bind_operation(&self, env: &mut Environment, variable: VariableId, op: usize) {
        env.set(variable, Set::singleton(self.size(), op).into(), Origin::Operation(op));
    }

    /// Binds the names inside a check's `forall`, for one operation.
    pub(crate) fn bind_observer(
        &self,
        env: &mut Environment,
        check: &Check,
        observer: Option<usize>,
    ) -> Result<(), Stopped> {
        if let (Some((variable, _, groups)), Some(op)) = (&check.forall, observer) {
            self.bind_operation(env, *variable, op);
            for group in groups {
                self.bind(env, group)?;
            }
        }
        Ok(())
    }

    fn first_fault(
        &self,
        env: &mut Environment,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Result<Option<Fault>, Stopped> {
        for (i, check) in self.program().checks.iter().enumerate().filter(|&(i, _)| is_wanted(i)) {
            let observers: Vec<Option<usize>> = match &check.forall {
                Some((_, set, _)) => self.eval(env, *set)?.set().iter().map(Some).collect(),
                None => vec![None],
            };
            for observer in observers {
                self.bind_observer(env, check, observer)?;
                let value = self.eval(env, check.term)?;
                let holds = match check.kind {
                    CheckKind::Acyclic => value.relation().is_acyclic(),
                    CheckKind::Irreflexive => value.relation().reflexive_element().is_none(),
                    CheckKind::Empty => value.is_empty(),
                };
                if !holds {
                    return Ok(Some(Fault { check: i, observer }));
                }
            }
        }
        Ok(None)
    }

    pub(crate) fn eval(&self, env: &mut Environment, term: TermId) -> Result<Value, Stopped> {
        let size = self.size();
        self.interpreter.spend(size * size.div_ceil(64) + 64)?;
        Ok(match self.program().term(term) {
            Term::Base(base) => self.base(*base),
            Term::Variable(variable) => env.get(*variable).value.clone(),
            Term::Apply(function, arguments) => {
                self.bind_arguments(env, *function, arguments)?;
                self.eval(env, self.program().function(*function).body)?
            }
            Term::Union(terms) => self.fold(env, terms, Set::union, Matrix::union)?,
            Term::Intersection(terms) => {
                self.fold(env, terms, Set::intersect, Matrix::intersect)?
            }
            Term::Difference(left, right) => {
                self.fold(env, &[*left, *right], Set::subtract, Matrix::subtract)?
            }
            Term::Sequence(terms) => {
                let mut result = self.relation(env, terms[0])?;
                for &term in &terms[1..] {
                    let next = self.relation(env, term)?;
                    self.interpreter.spend(size * size)?;
                    result = Rc::new(result.compose(&next));
                }
                Value::Relation(result)
            }
            Term::Product(left, right) => {
                let left = self.eval(env, *left)?.set();
                Matrix::product(&left, &self.eval(env, *right)?.set()).into()
            }
            Term::Plus(term) => self.closure(env, *term)?.into(),
            Term::Star(term) => {
                let mut closed = self.closure(env, *term)?;
                closed.union(&Matrix::identity(&self.basics.counting));
                closed.into()
            }
            Term::Optional(term) => {
                let mut relation = Matrix::identity(&self.basics.counting);
                let inner = self.relation(env, *term)?;
                relation.union(&inner);
                relation.into()
            }
            Term::Inverse(term) => self.relation(env, *term)?.inverse().into(),
            Term::Complement(term) => match self.eval(env, *term)? {
                Value::Set(set) => {
                    let mut rest = self.basics.counting.clone();
                    rest.subtract(&set);
                    rest.into()
                }
                Value::Relation(relation) => {
                    let mut rest = Matrix::product(&self.basics.counting, &self.basics.counting);
                    rest.subtract(&relation);
                    rest.into()
                }
            },
            Term::Identity(term) => Matrix::identity(&self.eval(env, *term)?.set()).into(),
            Term::Domain(term) => self.relation(env, *term)?.domain().into(),
            Term::Range(term) => self.relation(env, *term)?.range().into(),
            Term::View(_) => unreachable!("{NOT_A_HISTORY}"),
            Term::Let(group, body) => {
                self.bind(env, group)?;
                self.eval(env, *body)?
            }
            Term::BigUnion { variable, set, body, kind } => {
                let mut result: Value = match kind {
                    Kind::Set => Set::empty(size).into(),
                    Kind::Relation => Matrix::empty(size).into(),
                };
                for op in self.eval(env, *set)?.set().iter() {
                    self.bind_operation(env, *variable, op);
                    result = unite(result, &self.eval(env, *body)?, Set::union, Matrix::union);
                }
                result
            }
        })
    }

    fn relation(&self, env: &mut Environment, term: TermId) -> Result<Rc<Matrix>, Stopped> {
        Ok(self.eval(env, term)?.relation())
    }

    fn closure(&self, env: &mut Environment, term: TermId) -> Result<Matrix, Stopped> {
        let size = self.size();
        self.interpreter.spend(size * size * size.div_ceil(64))?;
        let mut relation = Rc::unwrap_or_clone(self.relation(env, term)?);
        relation.close();
        Ok(relation)
    }

    fn fold(
        &self,
        env: &mut Environment,
        terms: &[TermId],
        on_sets: fn(&mut Set, &Set),
        on_relations: fn(&mut Matrix, &Matrix),
    ) -> Result<Value, Stopped> {
        let mut result = self.eval(env, terms[0])?;
        for &term in &terms[1..] {
            result = unite(result, &self.eval(env, term)?, on_sets, on_relations);
        }
        Ok(result)
    }

    fn base(&self, base: Base) -> Value {
        let b = &self.basics;
        match base {
            Base::Everything => b.counting.clone().into(),
            Base::EmptySet => Set::empty(self.size()).into(),
            Base::Writes => b.writes.clone().into(),
            Base::Reads => b.reads.clone().into(),
            Base::Fences => b.fences.clone().into(),
            Base::InitialWrites => b.initial.clone().into(),
            Base::ReadModifyWrites => {
                let mut both = b.reads.clone();
                both.intersect(&b.writes);
                both.into()
            }
            Base::Memory => {
                let mut both = b.reads.clone();
                both.union(&b.writes);
                both.into()
            }
            Base::EmptyRelation => Matrix::empty(self.size()).into(),
            Base::Identity => Matrix::identity(&b.counting).into(),
            Base::Po => b.po.clone().into(),
            Base::Wr => b.wr.clone().into(),
            Base::Ww => Value::Relation(
                self.ww.clone().expect("what depends on the store order is evaluated with one"),
            ),
            Base::Loc => b.loc.clone().into(),
            Base::Int => b.int.clone().into(),
            Base::Transaction => b.txn.clone().into(),
            Base::ClientOrder => b.so.clone().into(),
            Base::RealTime => b.rt.clone().into(),
            Base::CommitOrder => {
                let order = self.ww.as_ref().expect("the commit order is evaluated with one");
                b.txn.compose(order).compose(&b.txn).into()
            }
            Base::Litmus(_) => unreachable!("{NOT_A_HISTORY}"),
            Base::Ext => {
                let mut rest = Matrix::product(&b.counting, &b.counting);
                rest.subtract(&b.int);
                rest.into()
            }
        }
    }
}

/// Reason why names of litmus tests never occur when a history is judged.
pub(crate) const NOT_A_HISTORY: &str = "definitions of memory models are not about histories";

/// Returns the union of two values of one kind.
fn unite(
    left: Value,
    right: &Value,
    on_sets: fn(&mut Set, &Set),
    on_relations: fn(&mut Matrix, &Matrix),
) -> Value {
    match (left, right) {
        (Value::Set(left), Value::Set(right)) => {
            let mut set = Rc::unwrap_or_clone(left);
            on_sets(&mut set, right);
            set.into()
        }
        (Value::Relation(left), Value::Relation(right)) => {
            let mut relation = Rc::unwrap_or_clone(left);
            on_relations(&mut relation, right);
            relation.into()
        }
        _ => unreachable!("kinds were checked: the operands are of one kind"),
    }
}
