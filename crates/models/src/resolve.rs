//! Resolves syntax trees into a program: includes, names, arities, sets and relations.

use consistory_definition::{
    Base, Check, CheckKind, Function, FunctionId, Group, Kind, LitmusBase, Program, SourceFile,
    Span, Term, TermId, Variable, VariableId,
};
use consistory_diagnostic::{Diagnostics, Source, did_you_mean, nearest};
use rustc_hash::FxHashMap;

use crate::hints::{hint_for_name, hint_for_syntax};
use crate::kinds::{KindId, Kinds};
use crate::lexer::lex;
use crate::parser::parse;
use crate::problem::Problem;
use crate::syntax::{self, Binding, Expr, ExprKind, Ident, Statement};

/// Largest length of a file, in bytes.
pub(crate) const LENGTH_LIMIT: usize = 1 << 18;

/// Largest number of files that a definition may include.
const FILE_LIMIT: usize = 64;

/// The part of a definition in which a variable can be used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visibility {
    /// From its binding to the end of the file.
    Global,
    /// In one expression or check.
    Local,
}

/// The result of resolving a definition.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) program: Program,
    pub(crate) title: Option<String>,
    /// Metadata lines of the main file: key, value and position.
    pub(crate) metadata: Vec<(String, String, Span)>,
    pub(crate) files: Vec<SourceFile>,
    pub(crate) problems: Problems,
}

/// Problems with their positions and hints.
pub(crate) type Problems = Vec<(Span, Problem, Option<String>)>;

/// Resolves a text and everything it includes.
pub(crate) fn resolve(
    name: &str,
    text: &str,
    dialect: Dialect,
    include: &mut dyn FnMut(&str) -> Option<String>,
) -> Resolved {
    let mut resolver = Resolver {
        include,
        files: Vec::new(),
        open_files: Vec::new(),
        problems: Vec::new(),
        program: Program::default(),
        kinds: Kinds::default(),
        term_kinds: Vec::new(),
        variable_kinds: Vec::new(),
        result_kinds: Vec::new(),
        scope: FxHashMap::default(),
        dialect,
    };
    match dialect {
        Dialect::Histories => {
            for (name, base) in Base::of_histories() {
                resolver.bind(name, Entity::Base(base));
            }
        }
        Dialect::Litmus { prelude } => {
            for (name, base) in Base::of_litmus() {
                resolver.bind(name, Entity::Base(base));
            }
            // cat always has a store order.
            resolver.program.has_store_order = true;
            resolver.file("prelude.cat", prelude);
        }
    }
    let main = resolver.files.len();
    let (title, metadata) = resolver.file(name, text);
    if resolver.program.checks.is_empty() && resolver.problems.is_empty() {
        let span = Span { file: main, range: 0..0 };
        let hint = Some("add a check, for example `acyclic po | wr`".to_owned());
        resolver.problems.push((span, Problem::NoChecks, hint));
    }
    resolver.settle_kinds();
    Resolved {
        program: resolver.program,
        title,
        metadata,
        files: resolver.files,
        problems: resolver.problems,
    }
}

/// Turns problems into diagnostics, in the order of the text.
pub(crate) fn diagnostics(files: &[SourceFile], mut problems: Problems) -> Diagnostics {
    problems.sort_by_key(|(span, ..)| (span.file, span.range.start, span.range.end));
    problems.dedup();
    let sources: Vec<Source<'_>> =
        files.iter().map(|file| Source::new(file.name.as_str(), &file.text)).collect();
    let mut diagnostics = Diagnostics::default();
    for (span, problem, hint) in problems {
        diagnostics.push_at(&sources[span.file], span.range, problem.to_string(), hint);
    }
    diagnostics
}

/// The set of predefined names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dialect {
    /// The names of histories: `wr`, and `ww` if it is declared.
    Histories,
    /// The names of litmus tests, as in herd's cat: `rf`, `co` and the definitions of the prelude.
    Litmus { prelude: &'static str },
}

/// The meaning of a name.
#[derive(Clone, Copy, Debug)]
enum Entity {
    Base(Base),
    Variable(VariableId),
    Function(FunctionId),
    /// `domain` or `range`.
    Projection(fn(TermId) -> Term),
    /// The orders that threads observe, applied to a set.
    Views,
    /// A name whose definition has an error.
    Unknown,
}

struct Resolver<'a> {
    include: &'a mut dyn FnMut(&str) -> Option<String>,
    files: Vec<SourceFile>,
    /// Names of the files that are currently being included.
    open_files: Vec<String>,
    problems: Problems,
    program: Program,
    kinds: Kinds,
    term_kinds: Vec<KindId>,
    variable_kinds: Vec<KindId>,
    /// The kind of each function's result.
    result_kinds: Vec<KindId>,
    /// Meaning of each name, the innermost last.
    scope: FxHashMap<String, Vec<Entity>>,
    dialect: Dialect,
}

type FileHead = (Option<String>, Vec<(String, String, Span)>);

impl Resolver<'_> {
    fn file(&mut self, name: &str, text: &str) -> FileHead {
        let file = self.files.len();
        self.files.push(SourceFile { name: name.to_owned(), text: text.to_owned() });
        if text.len() > LENGTH_LIMIT {
            let span = Span { file, range: 0..0 };
            self.problems.push((span, Problem::TooLong { limit: LENGTH_LIMIT }, None));
            return (None, Vec::new());
        }
        let mut lexed = lex(text);
        let parsed = parse(file, text, &lexed.lexemes, &mut lexed.problems);
        for (range, problem) in lexed.problems {
            let hint = hint_for_syntax(&problem, &text[range.clone()]);
            self.problems.push((Span { file, range }, problem, hint));
        }
        self.open_files.push(name.to_owned());
        for statement in &parsed.statements {
            self.statement(statement);
        }
        self.open_files.pop();
        let metadata = lexed
            .metadata
            .into_iter()
            .map(|line| {
                let span = Span { file, range: line.key.start..line.value.end.max(line.key.end) };
                (text[line.key].to_owned(), text[line.value].to_owned(), span)
            })
            .collect();
        (parsed.title, metadata)
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Let(group) => {
                if let Some(group) = self.group(group, Visibility::Global) {
                    self.program.globals.push(group);
                }
            }
            Statement::Include { path, span } => self.include(path, span),
            Statement::StoreOrder { name, from } => self.store_order(name, from),
            Statement::Check { .. } => {
                if let Some(check) = self.check(statement) {
                    self.program.checks.push(check);
                }
            }
            Statement::Forall { variable, set, body, .. } => {
                let set = self.term_of_kind(set, Kind::Set);
                let operation = self.variable(&variable.name, Kind::Set, Visibility::Local);
                self.bind(&variable.name, Entity::Variable(operation));
                let mut groups = Vec::new();
                let mut bound = vec![variable.name.clone()];
                for statement in body {
                    match statement {
                        Statement::Let(group) => {
                            bound.extend(group.bindings.iter().map(|b| b.name.name.clone()));
                            groups.extend(self.group(group, Visibility::Local));
                        }
                        Statement::Check { .. } => {
                            if let Some(mut check) = self.check(statement) {
                                check.forall = Some((operation, set, groups.clone()));
                                self.program.checks.push(check);
                            }
                        }
                        Statement::Include { span, .. } | Statement::Forall { span, .. } => {
                            self.report(span.clone(), Problem::MisplacedInForall);
                        }
                        Statement::StoreOrder { name, .. } => {
                            self.report(name.span.clone(), Problem::MisplacedInForall);
                        }
                    }
                }
                for name in bound {
                    self.unbind(&name);
                }
            }
        }
    }

    fn check(&mut self, statement: &Statement) -> Option<Check> {
        let Statement::Check { kind, expr, name, span } = statement else { return None };
        let term = match kind {
            CheckKind::Acyclic | CheckKind::Irreflexive => self.term_of_kind(expr, Kind::Relation),
            CheckKind::Empty => self.term(expr),
        };
        let name = name.as_ref().map(|name| name.name.clone());
        Some(Check { kind: *kind, term, name, span: span.clone(), forall: None })
    }

    fn include(&mut self, path: &str, span: &Span) {
        if self.open_files.iter().any(|open| open == path) {
            self.report(span.clone(), Problem::CyclicInclude { path: path.to_owned() });
        } else if self.files.iter().any(|file| file.name == path) {
            // Its names are bound and its checks were added already.
        } else if self.files.len() >= FILE_LIMIT {
            self.report(span.clone(), Problem::NestedTooDeeply);
        } else {
            match (self.include)(path) {
                Some(text) => {
                    self.file(path, &text);
                }
                None => {
                    self.report(span.clone(), Problem::UnknownInclude { path: path.to_owned() })
                }
            }
        }
    }

    fn store_order(&mut self, name: &Ident, from: &Ident) {
        if let Dialect::Litmus { .. } = self.dialect {
            return self.total_orders(name, from);
        }
        let expected = |expected, found: &Ident| Problem::Expected {
            expected,
            found: format!("`{}`", found.name),
        };
        if self.program.has_store_order || self.program.commit_order.is_some() {
            self.report(name.span.clone(), Problem::SecondStoreOrder);
        }
        if from.name == "commit-orders" {
            self.program.commit_order = Some(name.name.clone());
            return self.bind(&name.name, Entity::Base(Base::CommitOrder));
        }
        if name.name != "ww" {
            self.report(name.span.clone(), expected("the name of the store order, `ww`", name));
        }
        if from.name != "store-orders" {
            let orders = "`store-orders` or `commit-orders`";
            self.report(from.span.clone(), expected(orders, from));
        }
        self.program.has_store_order = true;
        self.bind("ww", Entity::Base(Base::Ww));
    }

    /// Declares a memory order or the views of threads.
    fn total_orders(&mut self, name: &Ident, from: &Ident) {
        let declared = self.program.has_memory_order || self.program.has_views;
        match from.name.as_str() {
            "total-orders" | "thread-orders" if declared => {
                self.report(name.span.clone(), Problem::SecondTotalOrder);
            }
            "total-orders" => {
                self.program.has_memory_order = true;
                self.bind(&name.name, Entity::Base(Base::Litmus(LitmusBase::MemoryOrder)));
            }
            "thread-orders" => {
                self.program.has_views = true;
                self.bind(&name.name, Entity::Views);
            }
            // A store order needs no declaration.
            "store-orders" => self.bind(&name.name, Entity::Base(Base::Ww)),
            other => {
                let expected = "`total-orders`, `thread-orders` or `store-orders`";
                let problem = Problem::Expected { expected, found: format!("`{other}`") };
                self.report(from.span.clone(), problem);
                self.bind(&name.name, Entity::Unknown);
            }
        }
    }

    /// Binds the names of a group; returns the group to evaluate, without functions.
    fn group(&mut self, group: &syntax::Group, visibility: Visibility) -> Option<Group> {
        for (i, binding) in group.bindings.iter().enumerate() {
            if group.bindings[..i].iter().any(|earlier| earlier.name.name == binding.name.name) {
                let name = binding.name.name.clone();
                self.report(binding.name.span.clone(), Problem::BoundTwice { name });
            }
        }
        let bindings = if group.recursive {
            self.recursive(group, visibility)
        } else {
            self.plain(group, visibility)
        };
        (!bindings.is_empty()).then_some(Group { recursive: group.recursive, bindings })
    }

    fn recursive(
        &mut self,
        group: &syntax::Group,
        visibility: Visibility,
    ) -> Vec<(VariableId, TermId)> {
        let variables: Vec<VariableId> = group
            .bindings
            .iter()
            .map(|binding| {
                if let Some(parameter) = binding.parameters.first() {
                    self.report(parameter.span.clone(), Problem::RecursiveFunction);
                }
                let kind = self.kinds.fresh();
                let variable = self.variable_of(&binding.name.name, kind, visibility);
                self.bind(&binding.name.name, Entity::Variable(variable));
                variable
            })
            .collect();
        let mut bound = Vec::new();
        for (binding, variable) in group.bindings.iter().zip(variables) {
            for parameter in &binding.parameters {
                self.bind(&parameter.name, Entity::Unknown);
            }
            let term = self.term(&binding.body);
            for parameter in &binding.parameters {
                self.unbind(&parameter.name);
            }
            let expected = self.variable_kinds[variable.index()];
            self.unify(expected, term);
            bound.push((variable, term));
        }
        bound
    }

    fn plain(
        &mut self,
        group: &syntax::Group,
        visibility: Visibility,
    ) -> Vec<(VariableId, TermId)> {
        let mut bound = Vec::new();
        let entities: Vec<Entity> = group
            .bindings
            .iter()
            .map(|binding| {
                if !binding.parameters.is_empty() {
                    return Entity::Function(self.function(binding));
                }
                let term = self.term(&binding.body);
                let kind = self.term_kinds[term.index()];
                let variable = self.variable_of(&binding.name.name, kind, visibility);
                bound.push((variable, term));
                Entity::Variable(variable)
            })
            .collect();
        for (binding, entity) in group.bindings.iter().zip(entities) {
            self.bind(&binding.name.name, entity);
        }
        bound
    }

    fn function(&mut self, binding: &Binding) -> FunctionId {
        let parameters: Vec<VariableId> = binding
            .parameters
            .iter()
            .enumerate()
            .map(|(i, parameter)| {
                if binding.parameters[..i].iter().any(|earlier| earlier.name == parameter.name) {
                    let name = parameter.name.clone();
                    self.report(parameter.span.clone(), Problem::BoundTwice { name });
                }
                let kind = self.kinds.fresh();
                let variable = self.variable_of(&parameter.name, kind, Visibility::Local);
                self.bind(&parameter.name, Entity::Variable(variable));
                variable
            })
            .collect();
        let body = self.term(&binding.body);
        for parameter in &binding.parameters {
            self.unbind(&parameter.name);
        }
        self.result_kinds.push(self.term_kinds[body.index()]);
        let name = binding.name.name.clone();
        let globals_before = self.program.globals.len();
        self.program.functions.push(Function { name, parameters, body, globals_before });
        FunctionId(self.program.functions.len() as u32 - 1)
    }

    fn term(&mut self, expr: &Expr) -> TermId {
        let span = &expr.span;
        match &expr.kind {
            ExprKind::Name(name) => self.name(name, span),
            ExprKind::Everything => self.base(Base::Everything, span),
            ExprKind::EmptyRelation => self.base(Base::EmptyRelation, span),
            ExprKind::Call { name, arguments } => self.call(name, arguments, span),
            ExprKind::Union(operands) => self.alike(operands, Term::Union, span),
            ExprKind::Intersection(operands) => self.alike(operands, Term::Intersection, span),
            ExprKind::Sequence(operands) => {
                let terms = operands.iter().map(|e| self.term_of_kind(e, Kind::Relation)).collect();
                self.known(Term::Sequence(terms), Kind::Relation, span)
            }
            ExprKind::Difference(left, right) => {
                let (left, right) = (self.term(left), self.term(right));
                let kind = self.term_kinds[left.index()];
                self.unify(kind, right);
                self.push(Term::Difference(left, right), kind, span)
            }
            ExprKind::Product(left, right) => {
                let left = self.term_of_kind(left, Kind::Set);
                let right = self.term_of_kind(right, Kind::Set);
                self.known(Term::Product(left, right), Kind::Relation, span)
            }
            ExprKind::Plus(e) => self.on_relation(e, Term::Plus, span),
            ExprKind::Star(e) => self.on_relation(e, Term::Star, span),
            ExprKind::Optional(e) => self.on_relation(e, Term::Optional, span),
            ExprKind::Inverse(e) => self.on_relation(e, Term::Inverse, span),
            ExprKind::Complement(e) => {
                let term = self.term(e);
                let kind = self.term_kinds[term.index()];
                self.push(Term::Complement(term), kind, span)
            }
            ExprKind::Identity(e) => {
                let set = self.term_of_kind(e, Kind::Set);
                self.known(Term::Identity(set), Kind::Relation, span)
            }
            ExprKind::Let { group, body } => {
                let bound = self.group(group, Visibility::Local);
                let body = self.term(body);
                for binding in &group.bindings {
                    self.unbind(&binding.name.name);
                }
                match bound {
                    Some(bound) => {
                        let kind = self.term_kinds[body.index()];
                        self.push(Term::Let(bound, body), kind, span)
                    }
                    None => body,
                }
            }
            ExprKind::BigUnion { variable, set, body } => {
                let set = self.term_of_kind(set, Kind::Set);
                let operation = self.variable(&variable.name, Kind::Set, Visibility::Local);
                self.bind(&variable.name, Entity::Variable(operation));
                let body = self.term(body);
                self.unbind(&variable.name);
                let kind = self.term_kinds[body.index()];
                let term = Term::BigUnion { variable: operation, set, body, kind: Kind::Relation };
                self.push(term, kind, span)
            }
        }
    }

    fn name(&mut self, name: &str, span: &Span) -> TermId {
        match self.lookup(name) {
            Some(Entity::Base(base)) => self.base(base, span),
            Some(Entity::Variable(variable)) => {
                let kind = self.variable_kinds[variable.index()];
                self.push(Term::Variable(variable), kind, span)
            }
            Some(Entity::Function(_) | Entity::Projection(_) | Entity::Views) => {
                self.report(span.clone(), Problem::MissingArguments { name: name.to_owned() });
                self.unknown(span)
            }
            Some(Entity::Unknown) => self.unknown(span),
            None => {
                let hint = self.name_hint(name);
                let problem = Problem::UndefinedName { name: name.to_owned() };
                self.problems.push((span.clone(), problem, hint));
                self.unknown(span)
            }
        }
    }

    fn call(&mut self, name: &Ident, arguments: &[Expr], span: &Span) -> TermId {
        let terms: Vec<TermId> = arguments.iter().map(|argument| self.term(argument)).collect();
        let arity = |expected| Problem::WrongArity {
            name: name.name.clone(),
            expected,
            found: terms.len(),
        };
        match self.lookup(&name.name) {
            Some(Entity::Function(function)) => {
                let parameters = self.program.function(function).parameters.clone();
                if parameters.len() != terms.len() {
                    self.report(span.clone(), arity(parameters.len()));
                    return self.unknown(span);
                }
                for (parameter, &term) in parameters.iter().zip(&terms) {
                    self.unify(self.variable_kinds[parameter.index()], term);
                }
                let kind = self.result_kinds[function.index()];
                self.push(Term::Apply(function, terms), kind, span)
            }
            Some(Entity::Projection(projection)) => {
                let [term] = terms[..] else {
                    self.report(span.clone(), arity(1));
                    return self.unknown(span);
                };
                let relation = self.kinds.known(Kind::Relation);
                self.unify(relation, term);
                self.known(projection(term), Kind::Set, span)
            }
            Some(Entity::Views) => {
                let [term] = terms[..] else {
                    self.report(span.clone(), arity(1));
                    return self.unknown(span);
                };
                let set = self.kinds.known(Kind::Set);
                self.unify(set, term);
                self.known(Term::View(term), Kind::Relation, span)
            }
            Some(Entity::Unknown) => self.unknown(span),
            Some(Entity::Base(_) | Entity::Variable(_)) => {
                let problem = Problem::NotAFunction { name: name.name.clone() };
                self.report(name.span.clone(), problem);
                self.unknown(span)
            }
            None => {
                let hint = self.name_hint(&name.name);
                let problem = Problem::UndefinedName { name: name.name.clone() };
                self.problems.push((name.span.clone(), problem, hint));
                self.unknown(span)
            }
        }
    }

    /// Resolves operands that must all be sets or all be relations.
    fn alike(&mut self, operands: &[Expr], make: fn(Vec<TermId>) -> Term, span: &Span) -> TermId {
        let terms: Vec<TermId> = operands.iter().map(|operand| self.term(operand)).collect();
        let kind = self.kinds.fresh();
        for &term in &terms {
            self.unify(kind, term);
        }
        self.push(make(terms), kind, span)
    }

    fn on_relation(&mut self, expr: &Expr, make: fn(TermId) -> Term, span: &Span) -> TermId {
        let term = self.term_of_kind(expr, Kind::Relation);
        self.known(make(term), Kind::Relation, span)
    }

    fn term_of_kind(&mut self, expr: &Expr, kind: Kind) -> TermId {
        let term = self.term(expr);
        let expected = self.kinds.known(kind);
        self.unify(expected, term);
        term
    }

    fn unify(&mut self, expected: KindId, term: TermId) {
        let found = self.term_kinds[term.index()];
        if let Err((expected, found)) = self.kinds.unify(expected, found) {
            let hint = match (expected, found) {
                (Kind::Relation, Kind::Set) => {
                    "`[S]` is the identity on the set S, `S * T` a product"
                }
                _ => "`domain(r)` and `range(r)` are the sets that a relation relates",
            };
            let span = self.program.span(term).clone();
            self.problems.push((
                span,
                Problem::WrongKind { expected, found },
                Some(hint.to_owned()),
            ));
        }
    }

    fn base(&mut self, base: Base, span: &Span) -> TermId {
        self.known(Term::Base(base), base.kind(), span)
    }

    /// Returns a placeholder for a term with an error; it can be a set or a relation.
    fn unknown(&mut self, span: &Span) -> TermId {
        let kind = self.kinds.fresh();
        self.push(Term::Base(Base::EmptyRelation), kind, span)
    }

    fn known(&mut self, term: Term, kind: Kind, span: &Span) -> TermId {
        let kind = self.kinds.known(kind);
        self.push(term, kind, span)
    }

    fn push(&mut self, term: Term, kind: KindId, span: &Span) -> TermId {
        self.program.terms.push((term, span.clone()));
        self.term_kinds.push(kind);
        TermId(self.program.terms.len() as u32 - 1)
    }

    fn variable(&mut self, name: &str, kind: Kind, visibility: Visibility) -> VariableId {
        let kind = self.kinds.known(kind);
        self.variable_of(name, kind, visibility)
    }

    fn variable_of(&mut self, name: &str, kind: KindId, visibility: Visibility) -> VariableId {
        let (name, is_global) = (name.to_owned(), visibility == Visibility::Global);
        self.program.variables.push(Variable { name, kind: Kind::Relation, is_global });
        self.variable_kinds.push(kind);
        VariableId(self.program.variables.len() as u32 - 1)
    }

    fn bind(&mut self, name: &str, entity: Entity) {
        self.scope.entry(name.to_owned()).or_default().push(entity);
    }

    fn unbind(&mut self, name: &str) {
        if let Some(stack) = self.scope.get_mut(name) {
            stack.pop();
        }
    }

    fn lookup(&self, name: &str) -> Option<Entity> {
        match (self.scope.get(name).and_then(|stack| stack.last()), name) {
            (Some(&entity), _) => Some(entity),
            (None, "domain") => Some(Entity::Projection(Term::Domain)),
            (None, "range") => Some(Entity::Projection(Term::Range)),
            (None, _) => None,
        }
    }

    fn name_hint(&self, name: &str) -> Option<String> {
        let known =
            self.scope.iter().filter(|(_, stack)| !stack.is_empty()).map(|(n, _)| n.as_str());
        let near = || did_you_mean(&nearest(name, known.chain(["domain", "range"])));
        hint_for_name(name).map(str::to_owned).or_else(near)
    }

    fn report(&mut self, span: Span, problem: Problem) {
        self.problems.push((span, problem, None));
    }

    /// Stores the kinds found by unification in the program; an unused name becomes a relation.
    fn settle_kinds(&mut self) {
        for (variable, &kind) in self.program.variables.iter_mut().zip(&self.variable_kinds) {
            variable.kind = self.kinds.get(kind).unwrap_or(Kind::Relation);
        }
        for ((term, _), &found) in self.program.terms.iter_mut().zip(&self.term_kinds) {
            if let Term::BigUnion { kind, .. } = term {
                *kind = self.kinds.get(found).unwrap_or(Kind::Relation);
            }
        }
    }
}
