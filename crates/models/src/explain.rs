//! Explains why a check fails: a cycle, with each edge derived from `po`, `wr` and `ww`.
//!
//! The evaluator does not record how it found a pair, so the explanation derives the pair again by
//! the structure of the term. For a union it takes the first operand that contains the pair; for a
//! composition, the operations in between; for a closure, a shortest path; for a `let rec`, the
//! stage at which the pair first appeared, whose premises belong to earlier stages, so that no
//! derivation is circular. A named term becomes an edge with this name and its premises; an unnamed
//! term is replaced by its premises.
//!
//! Membership in a set, `loc`, `ext`, `int` and `id` need no premise. They are derived
//! nevertheless: an explanation also lists the choices it depends on ([`Explanation::uses`]), and
//! membership in a set may depend on a choice.
//!
//! Named edges are put on an agenda instead of being derived immediately, so the recursion is only
//! over the structure of the definition, which is bounded.

use std::borrow::Cow;
use std::rc::Rc;

use consistory_verdict::{Edge, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::choice::Assumption;
use crate::derivation::{Derivation, DerivationStep, Key, NodeId, What};
use crate::interpret::{
    Environment, Evaluated, Fault, Fixpoint, Model, NOT_A_HISTORY, Origin, Value,
};
use crate::register::Register;
use consistory_definition::CheckKind;
use consistory_definition::{Base, FunctionId, Program, Term, TermId, VariableId};
use consistory_order::Matrix;

/// Choices under which a failure is explained.
pub(crate) struct Assumed<'a> {
    pub(crate) register: &'a Register<'a>,
    pub(crate) wr_of: &'a [Option<usize>],
    /// Pairs of the store order that were chosen; the other pairs follow from these.
    pub(crate) before: &'a [(usize, usize)],
    /// Pairs of the store order that follow from final values.
    pub(crate) finals: &'a [(usize, usize)],
    /// Pairs of the store order that are given by lists.
    pub(crate) listed: &'a [(usize, usize)],
}

/// An explanation of a failed check.
pub(crate) struct Explanation {
    pub(crate) edges: Vec<Edge>,
    pub(crate) uses: FxHashSet<Assumption>,
}

/// Explains why a check fails.
pub(crate) fn explain(
    model: &Model<'_>,
    evaluated: &Evaluated,
    fault: Fault,
    assumed: &Assumed<'_>,
) -> Result<Explanation, Stopped> {
    let mut explainer = Explainer::new(model, assumed);
    let top = explainer.fault(&evaluated.environment, fault)?;
    explainer.work_off()?;
    Ok(explainer.finish(&top))
}

/// Explains why a write cannot be last: every candidate for the last position comes before it.
/// The cycle has the candidate, the write, and a step back that the final value requires.
pub(crate) fn explain_final(
    model: &Model<'_>,
    assumed: &Assumed<'_>,
    candidates: &[usize],
    write: usize,
) -> Result<Explanation, Stopped> {
    let mut explainer = Explainer::new(model, assumed);
    let (&candidate, others) = candidates.split_first().expect("some write has the final value");
    let before = explainer.store_order(candidate, write);
    let because = others.iter().map(|&other| explainer.store_order(other, write)).collect();
    let key = Key { what: What::Final, scope: 0, from: write, to: candidate };
    let back = explainer.derivation.node(key, || "final".into()).0;
    explainer.derivation.set_premises(back, because);
    explainer.work_off()?;
    Ok(explainer.finish(&[before, back]))
}

/// A pending derivation: the premises of a node are those of its pair in a term.
struct Task {
    node: NodeId,
    term: TermId,
    env: Environment,
    is_set: bool,
}

struct Explainer<'a> {
    model: &'a Model<'a>,
    program: &'a Program,
    assumed: &'a Assumed<'a>,
    derivation: Derivation,
    agenda: Vec<Task>,
    /// Values of the bodies of outermost unions over operations, each evaluated once.
    unions: FxHashMap<TermId, Vec<(usize, Value)>>,
    uses: FxHashSet<Assumption>,
}

impl<'a> Explainer<'a> {
    fn new(model: &'a Model<'a>, assumed: &'a Assumed<'a>) -> Self {
        Explainer {
            model,
            program: model.interpreter.program,
            assumed,
            derivation: Derivation::default(),
            agenda: Vec::new(),
            unions: FxHashMap::default(),
            uses: FxHashSet::default(),
        }
    }

    /// Finds the edges of the cycle, or of the forbidden pair.
    fn fault(&mut self, env: &Environment, fault: Fault) -> Result<Vec<NodeId>, Stopped> {
        let check = &self.program.checks[fault.check];
        let mut env = env.clone();
        if let (Some((variable, set, _)), Some(op)) = (&check.forall, fault.observer) {
            self.member(&env, *set, op)?;
            env.scope = self.derivation.step(env.scope, DerivationStep::Operation(*variable, op));
        }
        self.model.bind_observer(&mut env, check, fault.observer)?;
        match check.kind {
            CheckKind::Acyclic => self.cycle(&env, check.term),
            CheckKind::Irreflexive => {
                let (env, term, is_closure) = self.unfold(env, check.term)?;
                if is_closure {
                    return self.cycle(&env, term);
                }
                let relation = self.eval(&env, term)?.relation();
                let at = relation.reflexive_element().expect("the check failed");
                self.steps(&env, term, at, at)
            }
            CheckKind::Empty => match self.eval(&env, check.term)? {
                Value::Set(set) => {
                    let at = set.iter().next().expect("the check failed");
                    self.member(&env, check.term, at)?;
                    Ok(vec![self.text_node(&env, check.term, at, at)])
                }
                Value::Relation(relation) => {
                    let (from, to) = relation.pairs().next().expect("the check failed");
                    self.steps(&env, check.term, from, to)
                }
            },
        }
    }

    /// Finds a shortest cycle of a term's relation. If it is a single reflexive pair of an operand
    /// that is itself a closure, returns a cycle of the closed relation instead, which is more
    /// informative.
    fn cycle(&mut self, env: &Environment, term: TermId) -> Result<Vec<NodeId>, Stopped> {
        let (mut env, mut term) = (env.clone(), term);
        loop {
            let relation = self.eval(&env, term)?.relation();
            let cycle = relation.shortest_cycle().expect("the check failed");
            if let [at, _] = cycle[..] {
                let operand = match self.program.term(term) {
                    Term::Union(operands) => self.operand(&env, operands, at, at)?,
                    _ => term,
                };
                let (inner, closed, is_closure) = self.unfold(env.clone(), operand)?;
                if is_closure {
                    (env, term) = (inner, closed);
                    continue;
                }
            }
            let mut edges = Vec::new();
            for pair in cycle.windows(2) {
                edges.extend(self.steps(&env, term, pair[0], pair[1])?);
            }
            return Ok(edges);
        }
    }

    /// Follows names and calls until it reaches a closure or another unnamed term, because a
    /// reflexive pair of a closure is better shown as a cycle of the closed relation. A recursive
    /// name is taken at the stage at which it first has a reflexive pair.
    fn unfold(
        &mut self,
        mut env: Environment,
        mut term: TermId,
    ) -> Result<(Environment, TermId, bool), Stopped> {
        loop {
            term = match self.program.term(term) {
                Term::Variable(variable) => match env.get(*variable).origin.clone() {
                    Origin::Term(term) | Origin::Argument(term) => term,
                    Origin::Fixpoint(fixpoint, i) => {
                        let is_reflexive = |values: &Vec<Value>| {
                            values[i].clone().relation().reflexive_element().is_some()
                        };
                        match fixpoint.stages.iter().position(is_reflexive) {
                            Some(stage) => self.enter_stage(&mut env, &fixpoint, stage),
                            None => return Ok((env, term, false)),
                        }
                        fixpoint.group.bindings[i].1
                    }
                    Origin::Operation(_) => return Ok((env, term, false)),
                },
                Term::Apply(function, arguments) => {
                    let scope = self.derivation.step(env.scope, DerivationStep::Call(term));
                    self.model.bind_arguments(&mut env, *function, arguments)?;
                    env.scope = scope;
                    self.program.function(*function).body
                }
                Term::Let(group, body) => {
                    self.model.bind(&mut env, group)?;
                    *body
                }
                Term::Plus(inner) => return Ok((env, *inner, true)),
                _ => return Ok((env, term, false)),
            }
        }
    }

    /// Binds the names of a recursive group to the values from which a stage was computed.
    fn enter_stage(&mut self, env: &mut Environment, fixpoint: &Rc<Fixpoint>, stage: usize) {
        let first = fixpoint.group.bindings[0].0;
        env.scope = self.derivation.step(fixpoint.scope, DerivationStep::Stage(first, stage));
        // The first stage is empty, so every pair has a previous stage.
        let values = &fixpoint.stages[stage - 1];
        for (i, (&(variable, _), value)) in fixpoint.group.bindings.iter().zip(values).enumerate() {
            env.set(variable, value.clone(), Origin::Fixpoint(fixpoint.clone(), i));
        }
    }

    /// Returns the edges that lead from one operation to another: the edge of a named operand, or
    /// the chain of edges that an unnamed operand composes.
    fn steps(
        &mut self,
        env: &Environment,
        term: TermId,
        from: usize,
        to: usize,
    ) -> Result<Vec<NodeId>, Stopped> {
        if let Term::Union(operands) = self.program.term(term) {
            let operand = self.operand(env, operands, from, to)?;
            return self.steps(env, operand, from, to);
        }
        let premises = self.premises(env, term, from, to)?;
        let ends = |&node: &NodeId| {
            let key = self.derivation.key(node);
            (key.from, key.to)
        };
        let is_chain = !premises.is_empty()
            && ends(&premises[0]).0 == from
            && premises.windows(2).all(|pair| ends(&pair[0]).1 == ends(&pair[1]).0)
            && ends(&premises[premises.len() - 1]).1 == to;
        if is_chain {
            return Ok(premises);
        }
        let node = self.text_node(env, term, from, to);
        self.derivation.set_premises(node, premises);
        Ok(vec![node])
    }

    /// Derives a pair of a term's relation.
    fn premises(
        &mut self,
        env: &Environment,
        term: TermId,
        from: usize,
        to: usize,
    ) -> Result<Vec<NodeId>, Stopped> {
        self.model.interpreter.spend(1 << 10)?;
        let program = self.program;
        match program.term(term) {
            Term::Base(base) => Ok(self.base(*base, from, to).into_iter().collect()),
            Term::Variable(variable) => self.variable(env, *variable, from, to, false),
            Term::Apply(function, arguments) => {
                Ok(vec![self.apply(env, term, *function, arguments, from, to, false)?])
            }
            Term::Union(operands) => {
                let operand = self.operand(env, operands, from, to)?;
                self.premises(env, operand, from, to)
            }
            Term::Intersection(operands) => {
                let mut all = Vec::new();
                for &operand in operands {
                    all.extend(self.premises(env, operand, from, to)?);
                }
                Ok(all)
            }
            Term::Sequence(operands) => {
                let relations = operands
                    .iter()
                    .map(|&operand| Ok(self.eval(env, operand)?.relation()))
                    .collect::<Result<Vec<_>, Stopped>>()?;
                let middle = stations(&relations, from, to);
                let mut all = Vec::new();
                for (&operand, pair) in operands.iter().zip(middle.windows(2)) {
                    all.extend(self.premises(env, operand, pair[0], pair[1])?);
                }
                Ok(all)
            }
            Term::Plus(inner) => self.path(env, *inner, from, to),
            Term::Star(inner) if from != to => self.path(env, *inner, from, to),
            Term::Optional(inner) if from != to => self.premises(env, *inner, from, to),
            Term::Star(_) | Term::Optional(_) => {
                self.mention(from);
                Ok(Vec::new())
            }
            Term::Difference(left, _) => self.premises(env, *left, from, to),
            Term::Inverse(inner) => self.premises(env, *inner, to, from),
            Term::Complement(_) => {
                self.mention(from);
                self.mention(to);
                Ok(Vec::new())
            }
            Term::Product(left, right) => {
                self.member(env, *left, from)?;
                self.member(env, *right, to)?;
                Ok(Vec::new())
            }
            Term::Identity(set) => {
                self.member(env, *set, from)?;
                Ok(Vec::new())
            }
            Term::Let(group, body) => {
                let mut env = env.clone();
                self.model.bind(&mut env, group)?;
                self.premises(&env, *body, from, to)
            }
            Term::BigUnion { variable, set, body, .. } => {
                let op = self.operation(env, term, *variable, *set, *body, from, to)?;
                let env = self.inside(env, *variable, op);
                self.member(&env, *set, op)?;
                self.premises(&env, *body, from, to)
            }
            Term::Domain(_) | Term::Range(_) => unreachable!("kinds were checked: this is a set"),
            Term::View(_) => unreachable!("{NOT_A_HISTORY}"),
        }
    }

    /// Derives that an operation is in a set. No edge is shown, but the membership may depend on
    /// choices.
    fn member(&mut self, env: &Environment, term: TermId, at: usize) -> Result<(), Stopped> {
        let program = self.program;
        match program.term(term) {
            Term::Base(_) => self.mention(at),
            Term::Variable(variable) => {
                self.variable(env, *variable, at, at, true)?;
            }
            Term::Apply(function, arguments) => {
                self.apply(env, term, *function, arguments, at, at, true)?;
            }
            Term::Union(operands) => {
                let operand = self.operand(env, operands, at, at)?;
                self.member(env, operand, at)?;
            }
            Term::Intersection(operands) => {
                for &operand in operands {
                    self.member(env, operand, at)?;
                }
            }
            Term::Difference(left, _) => self.member(env, *left, at)?,
            Term::Complement(_) => self.mention(at),
            Term::Domain(inner) => {
                let relation = self.eval(env, *inner)?.relation();
                let to = relation.successors(at).next().expect("it is in the domain");
                self.premises(env, *inner, at, to)?;
            }
            Term::Range(inner) => {
                let relation = self.eval(env, *inner)?.relation();
                let from = (0..relation.size()).find(|&from| relation.contains(from, at));
                self.premises(env, *inner, from.expect("it is in the range"), at)?;
            }
            Term::Let(group, body) => {
                let mut env = env.clone();
                self.model.bind(&mut env, group)?;
                self.member(&env, *body, at)?;
            }
            Term::BigUnion { variable, set, body, .. } => {
                let op = self.operation(env, term, *variable, *set, *body, at, at)?;
                let env = self.inside(env, *variable, op);
                self.member(&env, *set, op)?;
                self.member(&env, *body, at)?;
            }
            Term::Sequence(_)
            | Term::Product(..)
            | Term::Plus(_)
            | Term::Star(_)
            | Term::Optional(_)
            | Term::Inverse(_)
            | Term::View(_)
            | Term::Identity(_) => unreachable!("kinds were checked: this is a relation"),
        }
        Ok(())
    }

    fn base(&mut self, base: Base, from: usize, to: usize) -> Option<NodeId> {
        let given = |what| Key { what, scope: 0, from, to };
        match base {
            Base::Po => {
                self.mention(from);
                self.mention(to);
                Some(self.derivation.node(given(What::Po), || "po".into()).0)
            }
            Base::Wr => {
                self.rest_on_read(to);
                Some(self.derivation.node(given(What::Wr), || "wr".into()).0)
            }
            Base::Ww => Some(self.store_order(from, to)),
            Base::ClientOrder | Base::RealTime => {
                self.mention(from);
                self.mention(to);
                let (what, label) = match base {
                    Base::ClientOrder => (What::ClientOrder, "so"),
                    _ => (What::RealTime, "rt"),
                };
                Some(self.derivation.node(given(what), || label.into()).0)
            }
            Base::CommitOrder => {
                let register = self.assumed.register;
                let first = |at: usize| register.members[register.unit_of[at]][0];
                Some(self.store_order(first(from), first(to)))
            }
            _ => {
                self.mention(from);
                self.mention(to);
                None
            }
        }
    }

    /// Builds the node of a pair of the store order: chosen, after an initial write, or implied by
    /// these through transitivity.
    fn store_order(&mut self, from: usize, to: usize) -> NodeId {
        self.mention(from);
        self.mention(to);
        let register = self.assumed.register;
        let key = Key { what: What::Ww, scope: 0, from, to };
        if let Some(known) = self.derivation.get(&key) {
            return known;
        }
        let name = self.program.commit_order.clone().unwrap_or_else(|| "ww".to_owned());
        let node = self.derivation.node(key, || name.into()).0;
        if register.history.is_initial(register.op(from))
            || self.assumed.listed.contains(&(from, to))
        {
            return node;
        }
        if self.assumed.before.contains(&(from, to)) {
            self.uses.insert(Assumption::Before { first: from, second: to });
            return node;
        }
        let mut given = Matrix::empty(register.size);
        let fixed = self.assumed.finals.iter().chain(self.assumed.listed);
        for &(first, second) in self.assumed.before.iter().chain(fixed) {
            given.insert(first, second);
        }
        let path = given.shortest_path(from, to).expect("the store order is the closure of these");
        let premises = path
            .windows(2)
            .map(|pair| {
                let pairs = [self.assumed.before, self.assumed.listed];
                if pairs.iter().any(|pairs| pairs.contains(&(pair[0], pair[1]))) {
                    return self.store_order(pair[0], pair[1]);
                }
                let key = Key { what: What::Final, scope: 0, from: pair[0], to: pair[1] };
                self.derivation.node(key, || "final".into()).0
            })
            .collect();
        self.derivation.set_premises(node, premises);
        node
    }

    fn variable(
        &mut self,
        env: &Environment,
        variable: VariableId,
        from: usize,
        to: usize,
        is_set: bool,
    ) -> Result<Vec<NodeId>, Stopped> {
        let program = self.program;
        let name = || Cow::Owned(program.variable(variable).name.clone());
        let scope = if program.variable(variable).is_global { 0 } else { env.scope };
        let key = |scope| Key { what: What::Variable(variable), scope, from, to };
        match &env.get(variable).origin {
            Origin::Operation(_) => Ok(Vec::new()),
            Origin::Argument(term) if is_set => {
                self.member(env, *term, from)?;
                Ok(Vec::new())
            }
            Origin::Argument(term) => self.premises(env, *term, from, to),
            Origin::Term(term) => {
                let term = *term;
                let inside = || {
                    let mut env = env.clone();
                    env.scope = scope;
                    Ok((term, env))
                };
                Ok(vec![self.later(key(scope), name, inside, is_set)?])
            }
            Origin::Fixpoint(fixpoint, i) => {
                let (fixpoint, i) = (fixpoint.clone(), *i);
                let stage = fixpoint
                    .stages
                    .iter()
                    .position(|values| values[i].holds(from, to))
                    .expect("the pair is in the solution");
                let mut inner = env.clone();
                self.enter_stage(&mut inner, &fixpoint, stage);
                let earlier = || Ok((fixpoint.group.bindings[i].1, inner));
                Ok(vec![self.later(key(fixpoint.scope), name, earlier, is_set)?])
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one term, and a pair")]
    fn apply(
        &mut self,
        env: &Environment,
        term: TermId,
        function: FunctionId,
        arguments: &[TermId],
        from: usize,
        to: usize,
        is_set: bool,
    ) -> Result<NodeId, Stopped> {
        let key = Key { what: What::Apply(term), scope: env.scope, from, to };
        let label = self.label(env, term, 2);
        let scope = self.derivation.step(env.scope, DerivationStep::Call(term));
        let (model, body) = (self.model, self.program.function(function).body);
        let inside = || {
            let mut env = env.clone();
            model.bind_arguments(&mut env, function, arguments)?;
            env.scope = scope;
            Ok((body, env))
        };
        self.later(key, || label.into(), inside, is_set)
    }

    /// Finds the operation whose part of a union over operations holds a pair.
    #[expect(clippy::too_many_arguments, reason = "the parts of one term, and a pair")]
    fn operation(
        &mut self,
        env: &Environment,
        term: TermId,
        variable: VariableId,
        set: TermId,
        body: TermId,
        from: usize,
        to: usize,
    ) -> Result<usize, Stopped> {
        let is_outermost = env.scope == 0;
        if !is_outermost || !self.unions.contains_key(&term) {
            let mut parts = Vec::new();
            for op in self.eval(env, set)?.set().iter() {
                let mut env = env.clone();
                self.model.bind_operation(&mut env, variable, op);
                let value = self.model.eval(&mut env, body)?;
                if !is_outermost && value.holds(from, to) {
                    return Ok(op);
                }
                parts.push((op, value));
            }
            self.unions.insert(term, parts);
        }
        let found = self.unions[&term].iter().find(|(_, value)| value.holds(from, to));
        Ok(found.expect("some operation's part holds the pair").0)
    }

    fn inside(&mut self, env: &Environment, variable: VariableId, op: usize) -> Environment {
        let mut env = env.clone();
        self.model.bind_operation(&mut env, variable, op);
        env.scope = self.derivation.step(env.scope, DerivationStep::Operation(variable, op));
        env
    }

    /// Derives a pair of a closure along a shortest path.
    fn path(
        &mut self,
        env: &Environment,
        inner: TermId,
        from: usize,
        to: usize,
    ) -> Result<Vec<NodeId>, Stopped> {
        let relation = self.eval(env, inner)?.relation();
        let path = relation.shortest_path(from, to).expect("the pair is in the closure");
        let mut all = Vec::new();
        for pair in path.windows(2) {
            all.extend(self.premises(env, inner, pair[0], pair[1])?);
        }
        Ok(all)
    }

    /// Finds the first operand that holds a pair.
    fn operand(
        &mut self,
        env: &Environment,
        operands: &[TermId],
        from: usize,
        to: usize,
    ) -> Result<TermId, Stopped> {
        for &operand in operands {
            if self.eval(env, operand)?.holds(from, to) {
                return Ok(operand);
            }
        }
        unreachable!("the union holds the pair")
    }

    /// Evaluates a term without changing the environment.
    fn eval(&self, env: &Environment, term: TermId) -> Result<Value, Stopped> {
        self.model.eval(&mut env.clone(), term)
    }

    /// Finds or creates a node; a new node is queued for derivation.
    fn later(
        &mut self,
        key: Key,
        label: impl FnOnce() -> Cow<'static, str>,
        inside: impl FnOnce() -> Result<(TermId, Environment), Stopped>,
        is_set: bool,
    ) -> Result<NodeId, Stopped> {
        let (node, is_new) = self.derivation.node(key, label);
        if is_new {
            let (term, env) = inside()?;
            self.agenda.push(Task { node, term, env, is_set });
        }
        Ok(node)
    }

    fn text_node(&mut self, env: &Environment, term: TermId, from: usize, to: usize) -> NodeId {
        let label = self.label(env, term, 2);
        let key = Key { what: What::Text(term), scope: env.scope, from, to };
        self.derivation.node(key, || label.into()).0
    }

    fn work_off(&mut self) -> Result<(), Stopped> {
        while let Some(Task { node, term, env, is_set }) = self.agenda.pop() {
            let Key { from, to, .. } = self.derivation.key(node);
            if is_set {
                self.member(&env, term, from)?;
            } else {
                let premises = self.premises(&env, term, from, to)?;
                self.derivation.set_premises(node, premises);
            }
        }
        Ok(())
    }

    /// Returns a term as an edge's relation: `po`, `hb`, `rw[ww]`, or its text.
    fn label(&self, env: &Environment, term: TermId, depth: usize) -> String {
        let program = self.program;
        match program.term(term) {
            Term::Variable(variable) => match &env.get(*variable).origin {
                Origin::Argument(argument) => self.label(env, *argument, depth),
                Origin::Operation(op) => {
                    let register = self.assumed.register;
                    register.history.reference(register.op(*op)).to_string()
                }
                _ => program.variable(*variable).name.clone(),
            },
            Term::Apply(function, _) if depth == 0 => program.function(*function).name.clone(),
            Term::Apply(function, arguments) => {
                let shown: Vec<String> = arguments
                    .iter()
                    .map(|&argument| self.label(env, argument, depth - 1))
                    .collect();
                format!("{}[{}]", program.function(*function).name, shown.join(","))
            }
            _ => {
                let text = self.model.interpreter.definition.term_text(term);
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// Records the use of an operation: an indeterminate one counts because a read reads from it.
    fn mention(&mut self, at: usize) {
        let register = self.assumed.register;
        if !register.is_uncertain[at] {
            return;
        }
        let is_of_unit = |write: usize| register.unit_of[write] == register.unit_of[at];
        let readers =
            || (0..register.size).filter(|&read| self.assumed.wr_of[read].is_some_and(is_of_unit));
        let sure = readers().find(|&read| register.candidates[read].len() == 1);
        if let Some(read) = sure.or_else(|| readers().next()) {
            self.rest_on_read(read);
        }
    }

    /// Records the use of a read's source.
    fn rest_on_read(&mut self, read: usize) {
        if let Some(write) = self.assumed.wr_of[read]
            && self.assumed.register.candidates[read].len() > 1
        {
            self.uses.insert(Assumption::Reads { read, write });
        }
    }

    fn finish(self, top: &[NodeId]) -> Explanation {
        Explanation { edges: self.derivation.write(top), uses: self.uses }
    }
}

/// Finds the operations along a composition from one operation to another, including both ends.
fn stations(relations: &[Rc<Matrix>], from: usize, to: usize) -> Vec<usize> {
    let size = relations[0].size();
    // Operations that can still reach the end, before each step, from the last step to the first.
    let mut reaching = vec![vec![false; size]; relations.len() + 1];
    reaching[relations.len()][to] = true;
    for (i, relation) in relations.iter().enumerate().rev() {
        for at in 0..size {
            reaching[i][at] = relation.successors(at).any(|next| reaching[i + 1][next]);
        }
    }
    let mut path = vec![from];
    let mut at = from;
    for (i, relation) in relations.iter().enumerate() {
        let next = relation.successors(at).find(|&next| reaching[i + 1][next]);
        at = next.expect("the pair is in the composition");
        path.push(at);
    }
    path
}
