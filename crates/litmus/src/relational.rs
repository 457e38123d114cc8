//! Evaluates definitions of memory models, over any kind of bit.
//!
//! A relation over n events is n² bits, a set is n bits. With known bits, evaluating a definition
//! decides one candidate execution; with literals of a solver as bits, it builds the formula whose
//! solutions are all executions. The operators are the same.
//!
//! Events are those of a skeleton, followed by the initial write of each location.

use consistory_models::{
    Base, CheckKind, Group, Kind, LitmusBase, Program as Definition, Term, TermId, VariableId,
};
use thiserror::Error;

use crate::program::Fence;
use crate::skeleton::{EventKind, Skeleton};

/// A kind of bit with its operations.
pub(crate) trait Algebra {
    /// A bit.
    type Bit: Clone + PartialEq;

    fn constant(&self, value: bool) -> Self::Bit;
    fn and(&mut self, bits: &[Self::Bit]) -> Self::Bit;
    fn or(&mut self, bits: &[Self::Bit]) -> Self::Bit;
    fn not(&mut self, bit: &Self::Bit) -> Self::Bit;
    /// Requires that all bits are false.
    fn demand_none(&mut self, bits: &[Self::Bit]);
    /// Requires that a relation over `size` events is acyclic.
    fn demand_acyclic(&mut self, size: usize, relation: &[Self::Bit]);
    /// Returns the largest number of rounds of a recursive definition over `pairs` pairs.
    fn rounds(&self, pairs: usize) -> usize;
    /// Charges work, and checks the budget at intervals.
    fn spend(&mut self, work: usize) -> Result<(), EvaluateError>;
}

/// Reason why a definition could not be evaluated.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(crate) enum EvaluateError {
    #[error("{0}")]
    Stopped(consistory_verdict::Stopped),
    #[error("a recursive definition over relations that a test leaves open")]
    OpenRecursion,
}

/// A set or relation.
#[derive(Clone, PartialEq)]
pub(crate) enum Value<B> {
    Set(Vec<B>),
    Relation(Vec<B>),
}

/// The parts in which executions of a skeleton differ.
pub(crate) struct Choices<B> {
    pub(crate) rf: Vec<B>,
    pub(crate) co: Vec<B>,
    pub(crate) memory_order: Option<Vec<B>>,
    /// One order per thread.
    pub(crate) views: Vec<Vec<B>>,
}

/// Returns the number of events, including initial writes.
pub(crate) fn size(skeleton: &Skeleton) -> usize {
    skeleton.events.len() + skeleton.locations()
}

/// Evaluates every check of a definition.
pub(crate) fn evaluate<A: Algebra>(
    algebra: &mut A,
    definition: &Definition,
    skeleton: &Skeleton,
    choices: &Choices<A::Bit>,
) -> Result<(), EvaluateError> {
    let slots = (0..definition.variables.len()).map(|_| None).collect();
    let mut evaluator =
        Evaluator { algebra, definition, skeleton, choices, size: size(skeleton), slots };
    for group in &definition.globals {
        evaluator.bind(group)?;
    }
    for check in &definition.checks {
        match &check.forall {
            None => evaluator.check(check.kind, check.term, None)?,
            Some((variable, set, groups)) => {
                let set = evaluator.set(*set)?;
                for (at, guard) in set.iter().enumerate() {
                    if *guard != evaluator.algebra.constant(false) {
                        evaluator.bind_operation(*variable, at);
                        for group in groups {
                            evaluator.bind(group)?;
                        }
                        evaluator.check(check.kind, check.term, Some(guard))?;
                    }
                }
            }
        }
    }
    Ok(())
}

struct Evaluator<'a, A: Algebra> {
    algebra: &'a mut A,
    definition: &'a Definition,
    skeleton: &'a Skeleton,
    choices: &'a Choices<A::Bit>,
    size: usize,
    slots: Vec<Option<Value<A::Bit>>>,
}

impl<A: Algebra> Evaluator<'_, A> {
    fn check(
        &mut self,
        kind: CheckKind,
        term: TermId,
        guard: Option<&A::Bit>,
    ) -> Result<(), EvaluateError> {
        let (Value::Set(mut bits) | Value::Relation(mut bits)) = self.term(term)?;
        if let Some(guard) = guard {
            bits = bits.iter().map(|bit| self.algebra.and(&[bit.clone(), guard.clone()])).collect();
        }
        match kind {
            CheckKind::Empty => self.algebra.demand_none(&bits),
            CheckKind::Irreflexive => {
                let diagonal: Vec<A::Bit> =
                    (0..self.size).map(|at| bits[at * self.size + at].clone()).collect();
                self.algebra.demand_none(&diagonal);
            }
            CheckKind::Acyclic => self.algebra.demand_acyclic(self.size, &bits),
        }
        Ok(())
    }

    fn bind(&mut self, group: &Group) -> Result<(), EvaluateError> {
        if !group.recursive {
            let values: Vec<Value<A::Bit>> = group
                .bindings
                .iter()
                .map(|&(_, term)| self.term(term))
                .collect::<Result<_, _>>()?;
            for (&(variable, _), value) in group.bindings.iter().zip(values) {
                self.slots[variable.index()] = Some(value);
            }
            return Ok(());
        }
        let no = self.algebra.constant(false);
        for &(variable, _) in &group.bindings {
            let nothing = match self.definition.variable(variable).kind {
                Kind::Set => Value::Set(vec![no.clone(); self.size]),
                Kind::Relation => Value::Relation(vec![no.clone(); self.size * self.size]),
            };
            self.slots[variable.index()] = Some(nothing);
        }
        for _ in 0..self.algebra.rounds(group.bindings.len() * self.size * self.size) {
            let next: Vec<Value<A::Bit>> = group
                .bindings
                .iter()
                .map(|&(_, term)| self.term(term))
                .collect::<Result<_, _>>()?;
            let mut is_stable = true;
            for (&(variable, _), value) in group.bindings.iter().zip(next) {
                let slot = &mut self.slots[variable.index()];
                is_stable &= slot.as_ref() == Some(&value);
                *slot = Some(value);
            }
            if is_stable {
                return Ok(());
            }
        }
        Err(EvaluateError::OpenRecursion)
    }

    fn bind_operation(&mut self, variable: VariableId, at: usize) {
        let bits = (0..self.size).map(|other| self.algebra.constant(other == at)).collect();
        self.slots[variable.index()] = Some(Value::Set(bits));
    }

    fn term(&mut self, term: TermId) -> Result<Value<A::Bit>, EvaluateError> {
        self.algebra.spend(self.size * self.size)?;
        let size = self.size;
        Ok(match self.definition.term(term) {
            Term::Base(base) => self.base(*base),
            Term::Variable(variable) => {
                self.slots[variable.index()].clone().expect("a variable is bound before it is used")
            }
            Term::Apply(function, arguments) => {
                let values: Vec<Value<A::Bit>> =
                    arguments.iter().map(|&a| self.term(a)).collect::<Result<_, _>>()?;
                let function = self.definition.function(*function);
                for (parameter, value) in function.parameters.iter().zip(values) {
                    self.slots[parameter.index()] = Some(value);
                }
                self.term(function.body)?
            }
            Term::Union(terms) => self.pointwise(terms, A::or)?,
            Term::Intersection(terms) => self.pointwise(terms, A::and)?,
            Term::Difference(left, right) => {
                self.pointwise(&[*left, *right], |algebra, bits| {
                    let not = algebra.not(&bits[1]);
                    algebra.and(&[bits[0].clone(), not])
                })?
            }
            Term::Complement(term) => {
                self.pointwise(&[*term], |algebra, bits| algebra.not(&bits[0]))?
            }
            Term::Sequence(terms) => {
                let mut result = self.relation(terms[0])?;
                for &term in &terms[1..] {
                    let next = self.relation(term)?;
                    result = self.compose(&result, &next)?;
                }
                Value::Relation(result)
            }
            Term::Product(left, right) => {
                let (left, right) = (self.set(*left)?, self.set(*right)?);
                self.build(|algebra, a, b| algebra.and(&[left[a].clone(), right[b].clone()]))
            }
            Term::Plus(term) => {
                let relation = self.relation(*term)?;
                Value::Relation(self.closure(relation)?)
            }
            Term::Star(term) => {
                let relation = self.relation(*term)?;
                let mut closed = self.closure(relation)?;
                self.add_identity(&mut closed);
                Value::Relation(closed)
            }
            Term::Optional(term) => {
                let mut relation = self.relation(*term)?;
                self.add_identity(&mut relation);
                Value::Relation(relation)
            }
            Term::Inverse(term) => {
                let relation = self.relation(*term)?;
                self.build(|_, a, b| relation[b * size + a].clone())
            }
            Term::Identity(term) => {
                let set = self.set(*term)?;
                self.build(
                    |algebra, a, b| {
                        if a == b { set[a].clone() } else { algebra.constant(false) }
                    },
                )
            }
            Term::Domain(term) => {
                let relation = self.relation(*term)?;
                let row = |a: usize| relation[a * size..(a + 1) * size].to_vec();
                Value::Set((0..size).map(|a| self.algebra.or(&row(a))).collect())
            }
            Term::Range(term) => {
                let relation = self.relation(*term)?;
                let column = |b: usize| -> Vec<A::Bit> {
                    (0..size).map(|a| relation[a * size + b].clone()).collect()
                };
                Value::Set((0..size).map(|b| self.algebra.or(&column(b))).collect())
            }
            Term::View(term) => {
                let set = self.set(*term)?;
                let mut result = vec![self.algebra.constant(false); size * size];
                for (thread, view) in self.choices.views.iter().enumerate() {
                    let events = self.skeleton.threads[thread].clone();
                    let guard = self.algebra.or(&set[events]);
                    for (bit, seen) in result.iter_mut().zip(view) {
                        let both = self.algebra.and(&[guard.clone(), seen.clone()]);
                        *bit = self.algebra.or(&[bit.clone(), both]);
                    }
                }
                Value::Relation(result)
            }
            Term::Let(group, body) => {
                self.bind(group)?;
                self.term(*body)?
            }
            Term::BigUnion { variable, set, body, kind } => {
                let set = self.set(*set)?;
                let no = self.algebra.constant(false);
                let length = if *kind == Kind::Set { size } else { size * size };
                let mut result = vec![no.clone(); length];
                for (at, guard) in set.iter().enumerate().filter(|(_, guard)| **guard != no) {
                    self.bind_operation(*variable, at);
                    let (Value::Set(part) | Value::Relation(part)) = self.term(*body)?;
                    for (bit, more) in result.iter_mut().zip(part) {
                        let guarded = self.algebra.and(&[more, guard.clone()]);
                        *bit = self.algebra.or(&[bit.clone(), guarded]);
                    }
                }
                match kind {
                    Kind::Set => Value::Set(result),
                    Kind::Relation => Value::Relation(result),
                }
            }
        })
    }

    fn set(&mut self, term: TermId) -> Result<Vec<A::Bit>, EvaluateError> {
        let (Value::Set(bits) | Value::Relation(bits)) = self.term(term)?;
        Ok(bits)
    }

    fn relation(&mut self, term: TermId) -> Result<Vec<A::Bit>, EvaluateError> {
        self.set(term)
    }

    fn build(&mut self, bit: impl Fn(&mut A, usize, usize) -> A::Bit) -> Value<A::Bit> {
        let pairs = (0..self.size).flat_map(|a| (0..self.size).map(move |b| (a, b)));
        Value::Relation(pairs.map(|(a, b)| bit(self.algebra, a, b)).collect())
    }

    fn pointwise(
        &mut self,
        terms: &[TermId],
        operator: impl Fn(&mut A, &[A::Bit]) -> A::Bit,
    ) -> Result<Value<A::Bit>, EvaluateError> {
        let values: Vec<Value<A::Bit>> =
            terms.iter().map(|&term| self.term(term)).collect::<Result<_, _>>()?;
        let is_set = matches!(values[0], Value::Set(_));
        let all: Vec<Vec<A::Bit>> = values
            .into_iter()
            .map(|value| match value {
                Value::Set(bits) | Value::Relation(bits) => bits,
            })
            .collect();
        let result = (0..all[0].len())
            .map(|at| {
                let bits: Vec<A::Bit> = all.iter().map(|bits| bits[at].clone()).collect();
                operator(self.algebra, &bits)
            })
            .collect();
        Ok(if is_set { Value::Set(result) } else { Value::Relation(result) })
    }

    fn compose(&mut self, left: &[A::Bit], right: &[A::Bit]) -> Result<Vec<A::Bit>, EvaluateError> {
        let size = self.size;
        self.algebra.spend(size * size * size)?;
        let no = self.algebra.constant(false);
        let mut result = Vec::with_capacity(size * size);
        for a in 0..size {
            for b in 0..size {
                let mut ways = Vec::new();
                for middle in 0..size {
                    let (first, second) = (&left[a * size + middle], &right[middle * size + b]);
                    if *first != no && *second != no {
                        ways.push(self.algebra.and(&[first.clone(), second.clone()]));
                    }
                }
                result.push(self.algebra.or(&ways));
            }
        }
        Ok(result)
    }

    /// Computes the transitive closure of a relation by squaring.
    fn closure(&mut self, mut relation: Vec<A::Bit>) -> Result<Vec<A::Bit>, EvaluateError> {
        let mut length = 1;
        while length < self.size {
            let twice = self.compose(&relation, &relation)?;
            let pairs = relation.iter().zip(&twice);
            let next: Vec<A::Bit> =
                pairs.map(|(a, b)| self.algebra.or(&[a.clone(), b.clone()])).collect();
            if next == relation {
                break;
            }
            relation = next;
            length *= 2;
        }
        Ok(relation)
    }

    fn add_identity(&mut self, relation: &mut [A::Bit]) {
        for at in 0..self.size {
            relation[at * self.size + at] = self.algebra.constant(true);
        }
    }

    fn base(&mut self, base: Base) -> Value<A::Bit> {
        match base {
            Base::Wr => return Value::Relation(self.choices.rf.clone()),
            Base::Ww => return Value::Relation(self.choices.co.clone()),
            Base::Litmus(LitmusBase::MemoryOrder) => {
                let order = self.choices.memory_order.clone();
                return Value::Relation(
                    order.expect("a definition that names a memory order is run with one"),
                );
            }
            _ => {}
        }
        let (size, skeleton) = (self.size, self.skeleton);
        let events = &skeleton.events;
        let event = |at: usize| events.get(at);
        let reads = |at: usize| event(at).is_some_and(|e| e.reads());
        let writes = |at: usize| event(at).is_none_or(|e| e.writes());
        let fence = |at: usize, kinds: &dyn Fn(&Fence) -> bool| match event(at).map(|e| &e.kind) {
            Some(EventKind::Fence(fence)) => kinds(fence),
            _ => false,
        };
        let location = |at: usize| match event(at) {
            Some(event) => event.location.map(|location| location.index()),
            None => Some(at - events.len()),
        };
        let is_internal = |a: usize, b: usize| match (event(a), event(b)) {
            (Some(a), Some(b)) => a.thread == b.thread,
            _ => a == b,
        };
        let depends = |sources: &[u64], a: usize, b: usize| {
            b < events.len() && a < events.len() && sources[b] & (1 << a) != 0
        };
        let set = |holds: &dyn Fn(usize) -> bool| -> Value<bool> {
            Value::Set((0..size).map(holds).collect())
        };
        let relation = |holds: &dyn Fn(usize, usize) -> bool| -> Value<bool> {
            let pairs = (0..size).flat_map(|a| (0..size).map(move |b| (a, b)));
            Value::Relation(pairs.map(|(a, b)| holds(a, b)).collect())
        };
        let known = match base {
            Base::Everything => set(&|_| true),
            Base::EmptySet => set(&|_| false),
            Base::Writes => set(&writes),
            Base::Reads => set(&reads),
            Base::Fences => set(&|at| fence(at, &|_| true)),
            Base::InitialWrites => set(&|at| at >= events.len()),
            Base::ReadModifyWrites => set(&|at| event(at).is_some_and(|e| e.is_atomic)),
            Base::Memory => set(&|at| reads(at) || writes(at)),
            Base::EmptyRelation => relation(&|_, _| false),
            Base::Identity => relation(&|a, b| a == b),
            Base::Po => relation(&|a, b| b < events.len() && a < b && skeleton.po(a, b)),
            Base::Loc => relation(&|a, b| location(a).is_some() && location(a) == location(b)),
            Base::Int => relation(&is_internal),
            Base::Ext => relation(&|a, b| !is_internal(a, b)),
            Base::Litmus(base) => match base {
                LitmusBase::FullFences => {
                    set(&|at| fence(at, &|f| matches!(f, Fence::Full | Fence::Tagged(_))))
                }
                LitmusBase::LoadFences => set(&|at| fence(at, &|f| *f == Fence::Load)),
                LitmusBase::StoreFences => set(&|at| fence(at, &|f| *f == Fence::Store)),
                LitmusBase::ReadModifyWrite => relation(&|a, b| a == b && reads(a) && writes(a)),
                LitmusBase::Address => relation(&|a, b| depends(&skeleton.addr, a, b)),
                LitmusBase::Data => relation(&|a, b| depends(&skeleton.data, a, b)),
                LitmusBase::Control => relation(&|a, b| depends(&skeleton.ctrl, a, b)),
                LitmusBase::MemoryOrder => unreachable!("it was given above"),
            },
            Base::Wr | Base::Ww => unreachable!("they were given above"),
            Base::Transaction | Base::ClientOrder | Base::RealTime | Base::CommitOrder => {
                unreachable!(
                    "litmus tests have no transactions, and their dialect no names for them"
                )
            }
        };
        let bit = |known: bool| self.algebra.constant(known);
        match known {
            Value::Set(bits) => Value::Set(bits.into_iter().map(bit).collect()),
            Value::Relation(bits) => Value::Relation(bits.into_iter().map(bit).collect()),
        }
    }
}
