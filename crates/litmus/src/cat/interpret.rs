//! Runs the statements of a model.
//!
//! Without an execution, sets and relations are operations of a [`Graph`], and running the
//! statements once compiles the model. An operation that needs an execution (taking a set of sets
//! apart, choosing from a set of relations) stops with [`Stop::NeedsExecution`]; such a model is
//! instead interpreted on each execution, by the same code.

use std::collections::HashMap;
use std::sync::Arc as Rc;

use super::bits::{Bits, Shape};
use super::dag::{Graph, NodeId, Op, Stage, passes};
use super::parser::Texts;
use super::syntax::{
    Binary, Binding, Check, Condition, Expr, ExprKind, Pattern, Place, Purpose, Statement, Symbol,
    Test, Unary,
};

/// Names of the sets and relations that executions of an architecture have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vocabulary {
    pub(crate) entries: Vec<Entry>,
    index: HashMap<String, u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) is_set: bool,
    pub(crate) stage: Stage,
    /// Whether the set or relation is empty in every execution.
    pub(crate) is_empty: bool,
}

impl Vocabulary {
    pub(crate) fn add(&mut self, name: &str, is_set: bool, stage: Stage) {
        self.insert(Entry { name: name.to_owned(), is_set, stage, is_empty: false });
    }

    /// Adds a set or relation that is empty in every execution, unless the name is taken.
    pub(crate) fn add_empty(&mut self, name: &str, is_set: bool) {
        let stage = Stage::Events;
        self.insert(Entry { name: name.to_owned(), is_set, stage, is_empty: true });
    }

    fn insert(&mut self, entry: Entry) {
        if !self.index.contains_key(&entry.name) {
            self.index.insert(entry.name.clone(), self.entries.len() as u32);
            self.entries.push(entry);
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }
}

/// Reason why a model stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The model has an error.
    Error(Place, String),
    /// An unknown name. Inside a definition it is an error only if the definition is used, because
    /// models name sets of other architectures.
    Unbound(Place, String),
    /// The value of a relation is needed, which only an execution has.
    NeedsExecution,
}

type Ran<T> = Result<T, Stop>;

#[derive(Clone, Debug)]
enum Value {
    Set(NodeId),
    Relation(NodeId),
    /// `0`: empty, as a set or relation.
    Zero,
    /// `_`: everything, as a set or relation.
    Universe,
    Tag(Symbol),
    Event(usize),
    Pair(usize, usize),
    Tuple(Vec<Value>),
    /// A set of sets, relations or tags.
    Elements(Rc<Vec<Value>>),
    /// All coherence orders that extend a relation.
    Coherence(NodeId),
    Function(Rc<Closure>),
    Procedure(Rc<Pattern>, Rc<Vec<Statement>>),
    Builtin(Builtin),
    /// Value of a definition with an unknown name: place and message of the error.
    Unbound(Place, Rc<str>),
}

#[derive(Debug)]
struct Closure {
    pattern: Rc<Pattern>,
    body: Rc<Expr>,
    scope: Scope,
    /// Recursive group of which the function is a member.
    group: Option<Rc<Vec<Binding>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Builtin {
    Domain,
    Range,
    ClassesLoc,
    Classes,
    Linearisations,
    TagToEvents,
    DifferentValues,
    FromTo,
    Fail,
    Map,
    Cross,
    GenerateCos,
    GenerateOrders,
    CoLocs,
    Fold,
}

const BUILTINS: [(&str, Builtin); 17] = [
    ("domain", Builtin::Domain),
    ("range", Builtin::Range),
    ("classes-loc", Builtin::ClassesLoc),
    ("partition", Builtin::ClassesLoc),
    ("classes", Builtin::Classes),
    ("linearisations", Builtin::Linearisations),
    ("tag2events", Builtin::TagToEvents),
    ("different-values", Builtin::DifferentValues),
    ("fromto", Builtin::FromTo),
    ("fail", Builtin::Fail),
    ("map", Builtin::Map),
    ("cross", Builtin::Cross),
    ("generate_cos", Builtin::GenerateCos),
    ("generate_orders", Builtin::GenerateOrders),
    ("co_locs", Builtin::CoLocs),
    ("fold", Builtin::Fold),
    ("tag2instrs", Builtin::TagToEvents),
];

/// Local names, and the global names that were known when a function was defined.
#[derive(Clone, Debug)]
struct Scope {
    locals: Option<Rc<Local>>,
    limit: u32,
}

#[derive(Debug)]
struct Local {
    name: Symbol,
    value: Value,
    next: Option<Rc<Local>>,
}

impl Scope {
    fn with(&self, name: Symbol, value: Value) -> Scope {
        let locals = Some(Rc::new(Local { name, value, next: self.locals.clone() }));
        Scope { locals, limit: self.limit }
    }
}

/// A check of a compiled model.
#[derive(Clone, Debug)]
pub(crate) struct CompiledCheck {
    pub(crate) test: Test,
    pub(crate) negated: bool,
    pub(crate) node: NodeId,
    pub(crate) purpose: Purpose,
    pub(crate) name: Rc<str>,
}

/// Data of a ground execution in addition to sets and relations.
pub(crate) trait Ground {
    /// Returns the bits of a name of the vocabulary.
    fn bits(&self, entry: u32) -> Bits;
    /// Returns whether two events have different values.
    fn values_differ(&self, a: usize, b: usize) -> bool;
}

pub(crate) struct Interpreter<'m> {
    texts: &'m Texts,
    vocabulary: &'m Vocabulary,
    variants: &'m [String],
    ground: Option<&'m dyn Ground>,
    pub(crate) graph: Graph,
    globals: HashMap<Symbol, Vec<(u32, Value)>>,
    /// Names bound so far, so that bindings can be undone.
    bound: Vec<Symbol>,
    pub(crate) checks: Vec<CompiledCheck>,
    /// For a ground execution: flags raised in some allowed choice, and whether there is one.
    pub(crate) flags: Vec<Rc<str>>,
    pub(crate) allowed: bool,
    pub(crate) uses_coherence: bool,
    depth: usize,
}

const MAX_CALLS: usize = 400;
/// Largest number of elements of a set of relations.
const MAX_ELEMENTS: usize = 200_000;

impl<'m> Interpreter<'m> {
    pub(crate) fn new(
        texts: &'m Texts,
        vocabulary: &'m Vocabulary,
        variants: &'m [String],
        ground: Option<(&'m dyn Ground, Shape)>,
    ) -> Self {
        let graph = Graph::on(ground.map(|(_, shape)| shape));
        Interpreter {
            texts,
            vocabulary,
            variants,
            ground: ground.map(|(ground, _)| ground),
            graph,
            globals: HashMap::new(),
            bound: Vec::new(),
            checks: Vec::new(),
            flags: Vec::new(),
            allowed: false,
            uses_coherence: false,
            depth: 0,
        }
    }

    fn scope(&self) -> Scope {
        Scope { locals: None, limit: self.bound.len() as u32 }
    }

    fn bind(&mut self, name: Symbol, value: Value) {
        let at = self.bound.len() as u32;
        self.bound.push(name);
        self.globals.entry(name).or_default().push((at, value));
    }

    fn unbind_to(&mut self, length: usize) {
        while self.bound.len() > length {
            let name = self.bound.pop().expect("longer than length");
            self.globals.get_mut(&name).expect("was bound").pop();
        }
    }

    /// Runs statements to the end, once for each choice of the `with`s.
    pub(crate) fn run(&mut self, statements: &[Statement]) -> Ran<()> {
        let mut flat = Vec::new();
        self.flatten(statements, &mut flat)?;
        self.run_from(&flat, 0)
    }

    /// Decides conditions on variants.
    fn flatten<'s>(&self, statements: &'s [Statement], into: &mut Vec<&'s Statement>) -> Ran<()> {
        for statement in statements {
            match statement {
                Statement::If { condition, then, other } => {
                    let chosen = if self.holds(condition)? { then } else { other };
                    self.flatten(chosen, into)?;
                }
                statement => into.push(statement),
            }
        }
        Ok(())
    }

    fn run_from(&mut self, statements: &[&Statement], start: usize) -> Ran<()> {
        for (at, statement) in statements.iter().enumerate().skip(start) {
            let Statement::With { place, name, from } = statement else {
                if !self.statement(statement)? {
                    return Ok(());
                }
                continue;
            };
            let from = self.eval(from, &self.scope())?;
            let choices = match from {
                Value::Coherence(base) if self.ground.is_none() => {
                    self.uses_coherence = true;
                    let co = self.base("co").ok_or(Stop::NeedsExecution)?;
                    if Some(base) != self.base("co0") {
                        let missing = self.graph.add(Op::Diff(base, co));
                        self.require(missing, Test::Empty, "co");
                    }
                    self.bind(*name, Value::Relation(co));
                    continue;
                }
                Value::Elements(only) if self.ground.is_none() && only.len() == 1 => {
                    self.bind(*name, only[0].clone());
                    continue;
                }
                _ if self.ground.is_none() => return Err(Stop::NeedsExecution),
                from => self.elements(from, *place)?,
            };
            for choice in choices.iter() {
                let (bound, checks, flags) =
                    (self.bound.len(), self.checks.len(), self.flags.len());
                self.bind(*name, choice.clone());
                let was_allowed = std::mem::take(&mut self.allowed);
                self.run_from(statements, at + 1)?;
                if !self.allowed {
                    self.flags.truncate(flags);
                }
                self.allowed |= was_allowed;
                self.unbind_to(bound);
                self.checks.truncate(checks);
            }
            return Ok(());
        }
        self.allowed = true;
        Ok(())
    }

    fn require(&mut self, node: NodeId, test: Test, name: &str) {
        self.checks.push(CompiledCheck {
            test,
            negated: false,
            node,
            purpose: Purpose::Require,
            name: name.into(),
        });
    }

    /// Runs a statement; `false` if the execution is forbidden.
    fn statement(&mut self, statement: &Statement) -> Ran<bool> {
        match statement {
            Statement::Let { recursive, bindings } => {
                let scope = self.scope();
                for (name, value) in self.bindings(*recursive, bindings, &scope)? {
                    self.bind(name, value);
                }
            }
            Statement::Check(check) => return self.check(check, &self.scope()),
            Statement::Procedure { name, parameters, body } => {
                self.bind(*name, Value::Procedure(parameters.clone(), body.clone()));
            }
            Statement::Call { place, name, argument } => {
                let argument = self.eval(argument, &self.scope())?;
                let Some(Value::Procedure(pattern, body)) = self.global(*name, u32::MAX) else {
                    let message = format!("there is no procedure `{}`", self.texts.name(*name));
                    return Err(Stop::Error(*place, message));
                };
                let bound = self.bound.len();
                for (name, value) in self.destructure(&pattern, argument, *place)? {
                    self.bind(name, value);
                }
                let passed = self.block(&body)?;
                self.unbind_to(bound);
                return Ok(passed);
            }
            Statement::Forall { place, name, of, body } => {
                let of = self.eval(of, &self.scope())?;
                for element in self.elements(of, *place)?.iter() {
                    let bound = self.bound.len();
                    self.bind(*name, element.clone());
                    let passed = self.block(body)?;
                    self.unbind_to(bound);
                    if !passed {
                        return Ok(false);
                    }
                }
            }
            Statement::Enum { name, tags } => {
                let tags = tags.iter().map(|&tag| Value::Tag(tag)).collect();
                self.bind(*name, Value::Elements(Rc::new(tags)));
            }
            Statement::If { condition, then, other } => {
                let chosen = if self.holds(condition)? { then } else { other };
                return self.block(chosen);
            }
            Statement::With { place, .. } => {
                let message = "`with` stands inside a procedure".to_owned();
                return Err(Stop::Error(*place, message));
            }
        }
        Ok(true)
    }

    fn block(&mut self, statements: &[Statement]) -> Ran<bool> {
        for statement in statements {
            if !self.statement(statement)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn check(&mut self, check: &Check, scope: &Scope) -> Ran<bool> {
        let value = self.eval(&check.of, scope)?;
        let node = match value {
            Value::Set(node) if check.test == Test::Empty => node,
            Value::Zero => self.graph.add(Op::EmptyRelation),
            Value::Elements(elements) if check.test == Test::Empty => {
                let op = if elements.is_empty() { Op::EmptySet } else { Op::AllEvents };
                self.graph.add(op)
            }
            value => self.relation(value, check.of.place)?,
        };
        let name: Rc<str> = match &check.name {
            Some(name) => name.clone(),
            None => match check.test {
                Test::Acyclic => "acyclic".into(),
                Test::Irreflexive => "irreflexive".into(),
                Test::Empty => "empty".into(),
            },
        };
        let compiled = CompiledCheck {
            test: check.test,
            negated: check.negated,
            node,
            purpose: check.purpose,
            name: name.clone(),
        };
        let Some(shape) = self.graph.ground else {
            self.checks.push(compiled);
            return Ok(true);
        };
        let holds = passes(shape, check.test, check.negated, self.graph.value(node));
        match check.purpose {
            Purpose::Require => Ok(holds),
            Purpose::Flag => {
                if holds && !self.flags.contains(&name) {
                    self.flags.push(name);
                }
                Ok(true)
            }
            Purpose::Undefined => {
                if !holds {
                    self.flags.push(UNDEFINED.into());
                }
                Ok(true)
            }
            Purpose::Assert if holds => Ok(true),
            Purpose::Assert => {
                Err(Stop::Error(check.place, format!("the model's assertion `{name}` fails")))
            }
        }
    }

    fn holds(&self, condition: &Condition) -> Ran<bool> {
        Ok(match condition {
            Condition::Variant(name) => self.variants.iter().any(|v| v.eq_ignore_ascii_case(name)),
            Condition::Not(inner) => !self.holds(inner)?,
            Condition::And(a, b) => self.holds(a)? && self.holds(b)?,
            Condition::Or(a, b) => self.holds(a)? || self.holds(b)?,
            Condition::Subset(a) => {
                return Err(Stop::Error(a.place, "`subset` is not supported".to_owned()));
            }
        })
    }

    fn destructure(
        &self,
        pattern: &Pattern,
        value: Value,
        place: Place,
    ) -> Ran<Vec<(Symbol, Value)>> {
        match (pattern, value) {
            (Pattern::One(name), value) => Ok(vec![(*name, value)]),
            (Pattern::Tuple(names), Value::Tuple(values)) if names.len() == values.len() => {
                Ok(names.iter().copied().zip(values).collect())
            }
            (Pattern::Tuple(names), _) => {
                Err(Stop::Error(place, format!("expected {} values", names.len())))
            }
        }
    }

    fn bindings(
        &mut self,
        recursive: bool,
        bindings: &Rc<Vec<Binding>>,
        scope: &Scope,
    ) -> Ran<Vec<(Symbol, Value)>> {
        if !recursive {
            let mut found = Vec::new();
            for binding in bindings.iter() {
                let value = match (self.eval(&binding.value, scope), &binding.target) {
                    (Err(Stop::Unbound(place, message)), Pattern::One(_)) => {
                        Value::Unbound(place, message.into())
                    }
                    (value, _) => value?,
                };
                found.extend(self.destructure(&binding.target, value, binding.place)?);
            }
            return Ok(found);
        }
        let names: Vec<Symbol> = bindings
            .iter()
            .map(|binding| match &binding.target {
                Pattern::One(name) => Ok(*name),
                Pattern::Tuple(_) => {
                    Err(Stop::Error(binding.place, "a tuple cannot be recursive".to_owned()))
                }
            })
            .collect::<Ran<_>>()?;
        if bindings.iter().any(|b| matches!(b.value.kind, ExprKind::Function(..))) {
            return Ok(self.recursive_functions(bindings, scope));
        }
        // At first all members are assumed to be relations; those that turn out to be sets are
        // changed.
        let mut are_sets = vec![false; names.len()];
        for _ in 0..=names.len() {
            match self.fixed_point(&names, bindings, scope, &are_sets) {
                Err(Mismatch::Kinds(found)) => are_sets = found,
                Err(Mismatch::Stop(Stop::Error(place, message))) => {
                    // A wrong kind may show as an error inside the body: try sets for the remaining
                    // members.
                    match (0..names.len()).rev().find(|&at| !are_sets[at]) {
                        Some(_) if names.len() == 1 => are_sets[0] = true,
                        _ => match self.guess_kinds(&names, bindings, scope) {
                            Some(found) if found != are_sets => are_sets = found,
                            _ => return Err(Stop::Error(place, message)),
                        },
                    }
                }
                Err(Mismatch::Stop(stop)) => return Err(stop),
                Ok(values) => {
                    let value = |(at, node): (usize, NodeId)| {
                        if are_sets[at] { Value::Set(node) } else { Value::Relation(node) }
                    };
                    let values = values.into_iter().enumerate().map(value);
                    return Ok(names.into_iter().zip(values).collect());
                }
            }
        }
        Err(Stop::Error(bindings[0].place, "this is a set and a relation at once".to_owned()))
    }

    /// Determines which members of a recursive group are sets, by their outermost operators.
    fn guess_kinds(
        &mut self,
        names: &[Symbol],
        bindings: &[Binding],
        scope: &Scope,
    ) -> Option<Vec<bool>> {
        let mut kinds: Vec<Option<bool>> = vec![None; names.len()];
        for _ in 0..names.len() + 1 {
            for at in 0..names.len() {
                if kinds[at].is_none() {
                    kinds[at] = self.kind_of(&bindings[at].value, names, &kinds, scope);
                }
            }
        }
        Some(kinds.into_iter().map(|kind| kind.unwrap_or(false)).collect())
    }

    /// Returns whether an expression is a set; `None` if this cannot be determined.
    fn kind_of(
        &mut self,
        expr: &Expr,
        names: &[Symbol],
        kinds: &[Option<bool>],
        scope: &Scope,
    ) -> Option<bool> {
        match &expr.kind {
            ExprKind::Name(name) => match names.iter().position(|n| n == name) {
                Some(at) => kinds[at],
                None => match self.lookup(*name, scope)? {
                    Value::Set(_) => Some(true),
                    Value::Relation(_) => Some(false),
                    _ => None,
                },
            },
            ExprKind::Binary(Binary::Seq | Binary::Product, ..) => Some(false),
            ExprKind::Binary(_, a, b) => {
                let left = self.kind_of(a, names, kinds, scope);
                left.or_else(|| self.kind_of(b, names, kinds, scope))
            }
            ExprKind::Unary(Unary::Complement, a) => self.kind_of(a, names, kinds, scope),
            ExprKind::Unary(..) => Some(false),
            ExprKind::Apply(function, _) => match &function.kind {
                ExprKind::Name(name) => {
                    matches!(self.texts.name(*name), "domain" | "range").then_some(true)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn fixed_point(
        &mut self,
        names: &[Symbol],
        bindings: &[Binding],
        scope: &Scope,
        are_sets: &[bool],
    ) -> Result<Vec<NodeId>, Mismatch> {
        let wrap = |at: usize, node| {
            if are_sets[at] { Value::Set(node) } else { Value::Relation(node) }
        };
        let evaluate = |this: &mut Self, variables: &[NodeId]| {
            let mut inner = scope.clone();
            for (at, &name) in names.iter().enumerate() {
                inner = inner.with(name, wrap(at, variables[at]));
            }
            let mut bodies = Vec::new();
            let mut kinds = are_sets.to_vec();
            for (at, binding) in bindings.iter().enumerate() {
                match (this.eval(&binding.value, &inner)?, are_sets[at]) {
                    (Value::Set(node), true) | (Value::Relation(node), false) => bodies.push(node),
                    (Value::Set(node), false) => {
                        kinds[at] = true;
                        bodies.push(node);
                    }
                    (value, false) => bodies.push(this.relation(value, binding.place)?),
                    (value, true) => bodies.push(this.set(value, binding.place)?),
                }
            }
            if kinds == are_sets { Ok(bodies) } else { Err(Mismatch::Kinds(kinds)) }
        };
        let Some(shape) = self.graph.ground else {
            let (group, variables) = self.graph.open_group(are_sets);
            let bodies = evaluate(self, &variables)?;
            return Ok(self.graph.close_group(group, &variables, bodies));
        };
        let mut current: Vec<NodeId> = are_sets
            .iter()
            .map(|&set| self.graph.give(if set { shape.set() } else { shape.relation() }, set))
            .collect();
        for _ in 0..10_000 {
            let next = evaluate(self, &current)?;
            let same = current
                .iter()
                .zip(&next)
                .all(|(&a, &b)| self.graph.value(a) == self.graph.value(b));
            if same {
                return Ok(next);
            }
            current = next;
        }
        let message = "this recursive definition does not settle".to_owned();
        Err(Mismatch::Stop(Stop::Error(bindings[0].place, message)))
    }

    fn recursive_functions(
        &self,
        bindings: &Rc<Vec<Binding>>,
        scope: &Scope,
    ) -> Vec<(Symbol, Value)> {
        let mut found = Vec::new();
        for binding in bindings.iter() {
            if let (ExprKind::Function(pattern, body), Pattern::One(name)) =
                (&binding.value.kind, &binding.target)
            {
                let closure = Closure {
                    pattern: pattern.clone(),
                    body: body.clone(),
                    scope: scope.clone(),
                    group: Some(bindings.clone()),
                };
                found.push((*name, Value::Function(Rc::new(closure))));
            }
        }
        found
    }

    fn global(&self, name: Symbol, limit: u32) -> Option<Value> {
        let all = self.globals.get(&name)?;
        all.iter().rev().find(|(at, _)| *at < limit).map(|(_, value)| value.clone())
    }

    fn base(&mut self, name: &str) -> Option<NodeId> {
        let index = self.vocabulary.find(name)?;
        let entry = &self.vocabulary.entries[index as usize];
        if entry.is_empty {
            let op = if entry.is_set { Op::EmptySet } else { Op::EmptyRelation };
            return Some(self.graph.add(op));
        }
        let value = match self.ground {
            Some(ground) if self.graph_lacks(index) => Some(ground.bits(index)),
            _ => None,
        };
        // The set of last writes is not monotone in coherence.
        let monotone = name != "FW";
        Some(self.graph.base(index, entry.is_set, entry.stage, monotone, value))
    }

    fn graph_lacks(&self, index: u32) -> bool {
        !self.graph.knows(&Op::Base(index))
    }

    fn lookup(&mut self, name: Symbol, scope: &Scope) -> Option<Value> {
        let mut local = scope.locals.as_ref();
        while let Some(found) = local {
            if found.name == name {
                return Some(found.value.clone());
            }
            local = found.next.as_ref();
        }
        if let Some(value) = self.global(name, scope.limit) {
            return Some(value);
        }
        let text = self.texts.name(name);
        // `co` is chosen by the model with `with`.
        if text != "co"
            && let Some(index) = self.vocabulary.find(text)
        {
            let node = self.base(text)?;
            let is_set = self.vocabulary.entries[index as usize].is_set;
            return Some(if is_set { Value::Set(node) } else { Value::Relation(node) });
        }
        if let Some((_, builtin)) = BUILTINS.iter().find(|(name, _)| *name == text) {
            return Some(Value::Builtin(*builtin));
        }
        None
    }

    fn eval(&mut self, expr: &Expr, scope: &Scope) -> Ran<Value> {
        match &expr.kind {
            ExprKind::Zero => Ok(Value::Zero),
            ExprKind::Universe => Ok(Value::Universe),
            ExprKind::Name(name) => match self.lookup(*name, scope) {
                Some(Value::Unbound(place, message)) => {
                    Err(Stop::Unbound(place, message.to_string()))
                }
                Some(value) => Ok(value),
                None => {
                    let text = self.texts.name(*name);
                    Err(Stop::Unbound(expr.place, format!("the name `{text}` is unknown here")))
                }
            },
            ExprKind::Tag(tag) => Ok(Value::Tag(*tag)),
            ExprKind::Apply(function, argument) => {
                let function = self.eval(function, scope)?;
                let argument = self.eval(argument, scope)?;
                self.apply(function, argument, expr.place)
            }
            ExprKind::Tuple(parts) => {
                let parts: Ran<Vec<Value>> = parts.iter().map(|p| self.eval(p, scope)).collect();
                Ok(Value::Tuple(parts?))
            }
            ExprKind::Elements(parts) => {
                let parts: Ran<Vec<Value>> = parts.iter().map(|p| self.eval(p, scope)).collect();
                let parts = parts?;
                if let Some(Value::Event(_)) = parts.first() {
                    let shape = self.shape()?;
                    let mut set = shape.set();
                    for part in &parts {
                        if let Value::Event(event) = part {
                            shape.insert(&mut set, *event);
                        }
                    }
                    return Ok(Value::Set(self.graph.give(set, true)));
                }
                Ok(Value::Elements(Rc::new(parts)))
            }
            ExprKind::Binary(operator, left, right) => {
                let left_value = self.eval(left, scope)?;
                let right_value = self.eval(right, scope)?;
                self.binary(*operator, left_value, right_value, left.place, right.place)
            }
            ExprKind::Unary(operator, of) => {
                let value = self.eval(of, scope)?;
                self.unary(*operator, value, of.place)
            }
            ExprKind::Function(pattern, body) => Ok(Value::Function(Rc::new(Closure {
                pattern: pattern.clone(),
                body: body.clone(),
                scope: scope.clone(),
                group: None,
            }))),
            ExprKind::Let { recursive, bindings, body } => {
                let mut inner = scope.clone();
                for (name, value) in self.bindings(*recursive, bindings, scope)? {
                    inner = inner.with(name, value);
                }
                self.eval(body, &inner)
            }
            ExprKind::MatchSet { of, empty, some } => {
                let value = self.eval(of, scope)?;
                let elements = self.elements(value, of.place)?;
                let missing =
                    || Stop::Error(expr.place, "no clause of this match applies".to_owned());
                match elements.split_first() {
                    None => {
                        let empty = empty.as_ref().ok_or_else(missing)?;
                        self.eval(empty, scope)
                    }
                    Some((first, rest)) => {
                        let (name, others, body) = some.as_ref().ok_or_else(missing)?;
                        let rest = self.gather(rest.to_vec())?;
                        let inner = scope.with(*name, first.clone()).with(*others, rest);
                        self.eval(body, &inner)
                    }
                }
            }
            ExprKind::MatchTag { of, clauses, default } => {
                let value = self.eval(of, scope)?;
                let Value::Tag(tag) = value else {
                    return Err(Stop::Error(of.place, "this is not a tag".to_owned()));
                };
                let clause = clauses.iter().find(|(name, _)| *name == tag).map(|(_, body)| body);
                match clause.or(default.as_ref()) {
                    Some(body) => self.eval(body, scope),
                    None => {
                        let message = format!("no clause for '{}", self.texts.name(tag));
                        Err(Stop::Error(expr.place, message))
                    }
                }
            }
            ExprKind::Try(first, second) => match self.eval(first, scope) {
                Err(Stop::Error(..) | Stop::Unbound(..)) => self.eval(second, scope),
                result => result,
            },
            ExprKind::If(condition, then, other) => {
                let chosen = if self.holds(condition)? { then } else { other };
                self.eval(chosen, scope)
            }
        }
    }

    fn shape(&self) -> Ran<Shape> {
        self.graph.ground.ok_or(Stop::NeedsExecution)
    }

    /// Returns the elements of a set, each as a value.
    fn elements(&mut self, value: Value, place: Place) -> Ran<Rc<Vec<Value>>> {
        let shape = self.graph.ground;
        match value {
            Value::Elements(elements) => Ok(elements),
            Value::Zero => Ok(Rc::new(Vec::new())),
            Value::Set(node) | Value::Relation(node) if self.graph.is_empty_op(node) => {
                Ok(Rc::new(Vec::new()))
            }
            Value::Set(node) => {
                let shape = shape.ok_or(Stop::NeedsExecution)?;
                Ok(Rc::new(shape.members(self.graph.value(node)).map(Value::Event).collect()))
            }
            Value::Relation(node) => {
                let shape = shape.ok_or(Stop::NeedsExecution)?;
                let pairs = shape.pairs(self.graph.value(node));
                Ok(Rc::new(pairs.into_iter().map(|(a, b)| Value::Pair(a, b)).collect()))
            }
            Value::Coherence(base) => {
                shape.ok_or(Stop::NeedsExecution)?;
                let orders = self.all_orders(None, base, place)?;
                Ok(Rc::new(orders))
            }
            _ => Err(Stop::Error(place, "this is not a set of anything".to_owned())),
        }
    }

    /// Builds a set from elements.
    fn gather(&mut self, elements: Vec<Value>) -> Ran<Value> {
        match elements.first() {
            Some(Value::Event(_)) => {
                let shape = self.shape()?;
                let mut set = shape.set();
                for element in &elements {
                    if let Value::Event(event) = element {
                        shape.insert(&mut set, *event);
                    }
                }
                Ok(Value::Set(self.graph.give(set, true)))
            }
            Some(Value::Pair(..)) => {
                let shape = self.shape()?;
                let mut relation = shape.relation();
                for element in &elements {
                    if let Value::Pair(a, b) = element {
                        shape.relate(&mut relation, *a, *b);
                    }
                }
                Ok(Value::Relation(self.graph.give(relation, false)))
            }
            _ => Ok(Value::Elements(Rc::new(elements))),
        }
    }

    fn relation(&mut self, value: Value, place: Place) -> Ran<NodeId> {
        match value {
            Value::Relation(node) => Ok(node),
            Value::Zero => Ok(self.graph.add(Op::EmptyRelation)),
            Value::Universe => Ok(self.graph.add(Op::AllPairs)),
            Value::Elements(elements) if elements.is_empty() => {
                Ok(self.graph.add(Op::EmptyRelation))
            }
            Value::Set(_) => {
                Err(Stop::Error(place, "a relation is needed, this is a set".to_owned()))
            }
            _ => Err(Stop::Error(place, "a relation is needed here".to_owned())),
        }
    }

    fn set(&mut self, value: Value, place: Place) -> Ran<NodeId> {
        match value {
            Value::Set(node) => Ok(node),
            Value::Zero => Ok(self.graph.add(Op::EmptySet)),
            Value::Universe => Ok(self.graph.add(Op::AllEvents)),
            Value::Elements(elements) if elements.is_empty() => Ok(self.graph.add(Op::EmptySet)),
            Value::Relation(_) => {
                Err(Stop::Error(place, "a set is needed, this is a relation".to_owned()))
            }
            _ => Err(Stop::Error(place, "a set of events is needed here".to_owned())),
        }
    }

    fn unary(&mut self, operator: Unary, value: Value, place: Place) -> Ran<Value> {
        match operator {
            Unary::Identity => {
                let set = self.set(value, place)?;
                return Ok(Value::Relation(self.graph.add(Op::Identity(set))));
            }
            Unary::Complement => {
                return Ok(match value {
                    Value::Zero => Value::Universe,
                    Value::Universe => Value::Zero,
                    Value::Set(node) => Value::Set(self.graph.add(Op::Complement(node))),
                    Value::Elements(elements) if elements.is_empty() => Value::Universe,
                    value => {
                        let node = self.relation(value, place)?;
                        Value::Relation(self.graph.add(Op::Complement(node)))
                    }
                });
            }
            _ => {}
        }
        let node = self.relation(value, place)?;
        Ok(Value::Relation(self.graph.add(match operator {
            Unary::Plus => Op::Plus(node),
            Unary::Star => Op::Star(node),
            Unary::Opt => Op::Opt(node),
            _ => Op::Inverse(node),
        })))
    }

    fn binary(
        &mut self,
        operator: Binary,
        left: Value,
        right: Value,
        at: Place,
        other: Place,
    ) -> Ran<Value> {
        match operator {
            Binary::Seq => {
                let left = self.relation(left, at)?;
                let right = self.relation(right, other)?;
                return Ok(Value::Relation(self.graph.add(Op::Seq(left, right))));
            }
            Binary::Product => {
                let left = self.set(left, at)?;
                let right = self.set(right, other)?;
                return Ok(Value::Relation(self.graph.add(Op::Product(left, right))));
            }
            Binary::Add => {
                // An event or a pair is added to a set or relation; any other element to a set of
                // values.
                let mut elements = self.elements(right, other)?.to_vec();
                elements.insert(0, left);
                return self.gather(elements);
            }
            _ => {}
        }
        if let (Value::Elements(a), Value::Elements(b)) = (&left, &right)
            && !(a.is_empty() && b.is_empty())
        {
            return self.set_of_values(operator, a, b, at);
        }
        let is_set = matches!(left, Value::Set(_)) || matches!(right, Value::Set(_));
        let untyped = |value: &Value| matches!(value, Value::Zero | Value::Universe);
        if untyped(&left) && untyped(&right) {
            let (l, r) = (matches!(left, Value::Universe), matches!(right, Value::Universe));
            let all = match operator {
                Binary::Union => l || r,
                Binary::Inter => l && r,
                _ => l && !r,
            };
            return Ok(if all { Value::Universe } else { Value::Zero });
        }
        let (left, right) = if is_set {
            (self.set(left, at)?, self.set(right, other)?)
        } else {
            (self.relation(left, at)?, self.relation(right, other)?)
        };
        let node = self.graph.add(match operator {
            Binary::Union => Op::Union(left, right),
            Binary::Inter => Op::Inter(left, right),
            _ => Op::Diff(left, right),
        });
        Ok(if is_set { Value::Set(node) } else { Value::Relation(node) })
    }

    fn set_of_values(
        &mut self,
        operator: Binary,
        a: &[Value],
        b: &[Value],
        place: Place,
    ) -> Ran<Value> {
        let mut found = Vec::new();
        for value in a {
            let inside = self.contains(b, value);
            let keep = match operator {
                Binary::Union => true,
                Binary::Inter => inside,
                _ => !inside,
            };
            if keep {
                found.push(value.clone());
            }
        }
        if operator == Binary::Union {
            for value in b {
                if !self.contains(&found, value) {
                    found.push(value.clone());
                }
            }
        }
        if found.len() > MAX_ELEMENTS {
            return Err(Stop::Error(place, "this set has too many elements".to_owned()));
        }
        Ok(Value::Elements(Rc::new(found)))
    }

    fn contains(&self, all: &[Value], value: &Value) -> bool {
        all.iter().any(|other| match (other, value) {
            (Value::Set(a), Value::Set(b)) | (Value::Relation(a), Value::Relation(b)) => {
                a == b || (self.ground.is_some() && self.graph.value(*a) == self.graph.value(*b))
            }
            (Value::Tag(a), Value::Tag(b)) => a == b,
            (Value::Event(a), Value::Event(b)) => a == b,
            _ => false,
        })
    }

    fn apply(&mut self, function: Value, argument: Value, place: Place) -> Ran<Value> {
        let closure = match function {
            Value::Builtin(builtin) => return self.builtin(builtin, argument, place),
            Value::Function(closure) => closure,
            Value::Tuple(ref parts) if matches!(parts[..], [Value::Builtin(Builtin::Map), _]) => {
                return self.map(parts[1].clone(), argument, place);
            }
            _ => return Err(Stop::Error(place, "this is not a function".to_owned())),
        };
        if self.depth >= MAX_CALLS {
            return Err(Stop::Error(place, "functions call each other too deeply".to_owned()));
        }
        let mut scope = closure.scope.clone();
        if let Some(group) = &closure.group {
            for (name, value) in self.recursive_functions(group, &closure.scope) {
                scope = scope.with(name, value);
            }
        }
        for (name, value) in self.destructure(&closure.pattern, argument, place)? {
            scope = scope.with(name, value);
        }
        self.depth += 1;
        let result = self.eval(&closure.body, &scope);
        self.depth -= 1;
        result
    }

    fn builtin(&mut self, builtin: Builtin, argument: Value, place: Place) -> Ran<Value> {
        let two = |argument: Value| match argument {
            Value::Tuple(values) => <[Value; 2]>::try_from(values)
                .map_err(|_| Stop::Error(place, "two arguments are needed".to_owned())),
            _ => Err(Stop::Error(place, "two arguments are needed".to_owned())),
        };
        match builtin {
            Builtin::Domain => {
                let relation = self.relation(argument, place)?;
                Ok(Value::Set(self.graph.add(Op::Domain(relation))))
            }
            Builtin::Range => {
                let relation = self.relation(argument, place)?;
                Ok(Value::Set(self.graph.add(Op::Range(relation))))
            }
            Builtin::Fail => Err(Stop::Error(place, "the model says fail".to_owned())),
            Builtin::TagToEvents => {
                let Value::Tag(tag) = argument else {
                    return Err(Stop::Error(place, "this is not a tag".to_owned()));
                };
                let name = capitalised(self.texts.name(tag));
                let node = match self.base(&name) {
                    Some(node) => node,
                    None => self.graph.add(Op::EmptySet),
                };
                Ok(Value::Set(node))
            }
            Builtin::ClassesLoc => {
                let set = self.set(argument, place)?;
                let shape = self.shape()?;
                let loc = self.base("loc").ok_or(Stop::NeedsExecution)?;
                let classes = classes(shape, self.graph.value(set), self.graph.value(loc));
                let give = |bits| Value::Set(self.graph.give(bits, true));
                Ok(Value::Elements(Rc::new(classes.into_iter().map(give).collect())))
            }
            Builtin::Classes => {
                let relation = self.relation(argument, place)?;
                let shape = self.shape()?;
                let mut all = shape.set();
                for (from, _) in shape.pairs(self.graph.value(relation)) {
                    shape.insert(&mut all, from);
                }
                let classes = classes(shape, &all, self.graph.value(relation));
                let give = |bits| Value::Set(self.graph.give(bits, true));
                Ok(Value::Elements(Rc::new(classes.into_iter().map(give).collect())))
            }
            Builtin::Linearisations => {
                let [set, order] = two(argument)?;
                let (set, order) = (self.set(set, place)?, self.relation(order, place)?);
                let shape = self.shape()?;
                let orders = linearisations(shape, self.graph.value(set), self.graph.value(order));
                let give = |bits| Value::Relation(self.graph.give(bits, false));
                Ok(Value::Elements(Rc::new(orders.into_iter().map(give).collect())))
            }
            Builtin::DifferentValues => {
                let relation = self.relation(argument, place)?;
                let shape = self.shape()?;
                let ground = self.ground.ok_or(Stop::NeedsExecution)?;
                let mut found = shape.relation();
                for (from, to) in shape.pairs(self.graph.value(relation)) {
                    if ground.values_differ(from, to) {
                        shape.relate(&mut found, from, to);
                    }
                }
                Ok(Value::Relation(self.graph.give(found, false)))
            }
            Builtin::FromTo => {
                let set = self.set(argument, place)?;
                let po = self.base("po").ok_or(Stop::NeedsExecution)?;
                let identity = self.graph.add(Op::Identity(set));
                let first = self.graph.add(Op::Seq(po, identity));
                Ok(Value::Relation(self.graph.add(Op::Seq(first, po))))
            }
            Builtin::Map => match argument {
                Value::Tuple(_) => {
                    let [function, set] = two(argument)?;
                    self.map(function, set, place)
                }
                // `map f S`: the second argument follows.
                function => Ok(Value::Tuple(vec![Value::Builtin(Builtin::Map), function])),
            },
            Builtin::Fold => Err(Stop::Error(place, "`fold` is not supported".to_owned())),
            Builtin::Cross => self.cross(argument, place),
            Builtin::CoLocs => {
                let [order, sets] = two(argument)?;
                let order = self.relation(order, place)?;
                let shape = self.shape()?;
                let mut found = Vec::new();
                for set in self.elements(sets, place)?.iter() {
                    let set = self.set(set.clone(), place)?;
                    let orders =
                        linearisations(shape, self.graph.value(set), self.graph.value(order));
                    let give = |bits| Value::Relation(self.graph.give(bits, false));
                    found.push(Value::Elements(Rc::new(orders.into_iter().map(give).collect())));
                }
                Ok(Value::Elements(Rc::new(found)))
            }
            Builtin::GenerateOrders => {
                let [set, order] = two(argument)?;
                let (set, order) = (self.set(set, place)?, self.relation(order, place)?);
                if self.ground.is_none() {
                    return self.coherence(set, order);
                }
                let orders = self.all_orders(Some(set), order, place)?;
                Ok(Value::Elements(Rc::new(orders)))
            }
            Builtin::GenerateCos => {
                let order = self.relation(argument, place)?;
                let writes = self.texts.find("W").and_then(|name| {
                    let scope = self.scope();
                    self.lookup(name, &scope)
                });
                let writes = match writes {
                    Some(Value::Set(node)) => node,
                    _ => self.base("W").ok_or(Stop::NeedsExecution)?,
                };
                if self.ground.is_none() {
                    return self.coherence(writes, order);
                }
                let orders = self.all_orders(Some(writes), order, place)?;
                Ok(Value::Elements(Rc::new(orders)))
            }
        }
    }

    /// Leaves the choice of coherence to the search, if it is a choice among the orders of all
    /// writes.
    fn coherence(&mut self, set: NodeId, order: NodeId) -> Ran<Value> {
        if Some(set) != self.base("W") {
            return Err(Stop::NeedsExecution);
        }
        Ok(Value::Coherence(order))
    }

    fn map(&mut self, function: Value, set: Value, place: Place) -> Ran<Value> {
        let mut found = Vec::new();
        for element in self.elements(set, place)?.iter() {
            found.push(self.apply(function.clone(), element.clone(), place)?);
        }
        Ok(Value::Elements(Rc::new(found)))
    }

    /// Returns all unions of one relation from each member.
    fn cross(&mut self, argument: Value, place: Place) -> Ran<Value> {
        let shape = self.shape()?;
        let mut found: Vec<Bits> = vec![shape.relation()];
        for member in self.elements(argument, place)?.iter() {
            let mut choices = Vec::new();
            for choice in self.elements(member.clone(), place)?.iter() {
                let node = self.relation(choice.clone(), place)?;
                choices.push(self.graph.value(node).clone());
            }
            let mut next = Vec::new();
            for sofar in &found {
                for choice in &choices {
                    next.push(sofar.iter().zip(choice).map(|(a, b)| a | b).collect());
                }
            }
            if next.len() > MAX_ELEMENTS {
                return Err(Stop::Error(place, "there are too many choices".to_owned()));
            }
            found = next;
        }
        let give = |bits| Value::Relation(self.graph.give(bits, false));
        Ok(Value::Elements(Rc::new(found.into_iter().map(give).collect())))
    }

    fn all_orders(&mut self, set: Option<NodeId>, order: NodeId, place: Place) -> Ran<Vec<Value>> {
        let shape = self.shape()?;
        let set = match set {
            Some(set) => set,
            None => self.base("W").ok_or(Stop::NeedsExecution)?,
        };
        let loc = self.base("loc").ok_or(Stop::NeedsExecution)?;
        let classes = classes(shape, self.graph.value(set), self.graph.value(loc));
        let mut members = Vec::new();
        for class in classes {
            let orders = linearisations(shape, &class, self.graph.value(order));
            let give = |bits| Value::Relation(self.graph.give(bits, false));
            members.push(Value::Elements(Rc::new(orders.into_iter().map(give).collect())));
        }
        match self.cross(Value::Elements(Rc::new(members)), place)? {
            Value::Elements(all) => Ok(all.to_vec()),
            _ => Ok(Vec::new()),
        }
    }
}

/// Flag of an execution that is undefined.
pub(crate) const UNDEFINED: &str = "*undef*";

enum Mismatch {
    Kinds(Vec<bool>),
    Stop(Stop),
}

impl From<Stop> for Mismatch {
    fn from(stop: Stop) -> Self {
        Mismatch::Stop(stop)
    }
}

/// Returns the name of the set of events with a tag.
pub(crate) fn capitalised(tag: &str) -> String {
    let mut characters = tag.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

/// Splits a set by an equivalence.
fn classes(shape: Shape, set: &[u64], same: &[u64]) -> Vec<Bits> {
    let mut found: Vec<(usize, Bits)> = Vec::new();
    for event in shape.members(set) {
        match found.iter_mut().find(|(first, _)| shape.related(same, *first, event)) {
            Some((_, class)) => shape.insert(class, event),
            None => {
                let mut class = shape.set();
                shape.insert(&mut class, event);
                found.push((event, class));
            }
        }
    }
    found.into_iter().map(|(_, class)| class).collect()
}

/// Returns all total orders of a set that extend a relation.
fn linearisations(shape: Shape, set: &[u64], order: &[u64]) -> Vec<Bits> {
    let members: Vec<usize> = shape.members(set).collect();
    let mut closed = order.to_vec();
    shape.close(&mut closed);
    let mut found = Vec::new();
    let mut chosen = Vec::new();
    fn extend(
        shape: Shape,
        members: &[usize],
        closed: &[u64],
        chosen: &mut Vec<usize>,
        found: &mut Vec<Bits>,
    ) {
        if chosen.len() == members.len() {
            let mut total = shape.relation();
            for (at, &from) in chosen.iter().enumerate() {
                for &to in &chosen[at + 1..] {
                    shape.relate(&mut total, from, to);
                }
            }
            found.push(total);
            return;
        }
        for &next in members {
            let is_free =
                |&other: &usize| chosen.contains(&other) || !shape.related(closed, other, next);
            if !chosen.contains(&next) && members.iter().all(is_free) {
                chosen.push(next);
                extend(shape, members, closed, chosen, found);
                chosen.pop();
            }
        }
    }
    extend(shape, &members, &closed, &mut chosen, &mut found);
    found
}
