//! Data flow: checks that a description only copies data, and finds the variables that only observe
//! it.
//!
//! Tracking replaces data by labels. So a rule may copy data (through fields, whole records,
//! arrays, parameters, results and elements of multisets), test whether it is defined, and store
//! the value that a ruleset binds; it may not compare data, compute with it or create it.
//! Assertions, invariants and conditions that only lead to errors may read data: tracking drops
//! them, because labels do not determine values. A *ghost* is a variable of the state whose data
//! flows only into such checks and into other ghosts; it is not a location.
//!
//! Start states are not analysed: they run on concrete data and may use it without restrictions.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::murphi::ir::{
    Argument, Binder, Domain, Expr, ExprKind, FunctionId, MarkKind, Place, PlaceStep, Program,
    Role, Rule, Stmt, StmtKind, VarId,
};
use crate::murphi::parser::Problem;
use crate::murphi::syntax::Span;
use crate::murphi::types::{Type, TypeId};

/// Result of the analysis, for tracking.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) data: TypeId,
    /// The type of processors.
    pub(crate) proc: TypeId,
    /// The type of blocks; `None` if there is only one block.
    pub(crate) block: Option<TypeId>,
    pub(crate) serializes: bool,
    pub(crate) ghosts: FxHashSet<VarId>,
}

/// Analyses the data flow, or reports everything that prevents tracking.
pub(crate) fn analyse(program: &Program) -> Result<Flow, Vec<Problem>> {
    let Some(data) = program.data else {
        let message = "no data type is named: add a line `--@ data TYPE`";
        return Err(vec![(Span::default(), message.into())]);
    };
    let mut analysis = Analysis {
        program,
        data,
        stored: Vec::new(),
        roots: FxHashMap::default(),
        flows: Vec::new(),
        seen: FxHashSet::default(),
        problems: Vec::new(),
    };
    for rule in &program.rules {
        analysis.rule(rule);
    }
    let (proc, block) = analysis.names();
    let marks = || program.rules.iter().flat_map(|rule| &rule.marks);
    if marks().next().is_none() {
        let message = "no rule is marked: put `--@ load ...` and `--@ store ...` in front of rules";
        analysis.problems.push((Span::default(), message.into()));
    }
    if !analysis.problems.is_empty() {
        return Err(analysis.problems);
    }
    let ghosts = analysis.ghosts();
    for mark in marks() {
        if let MarkKind::Load { from } | MarkKind::Serialize { from } = &mark.kind {
            debug_assert!(!ghosts.contains(&from.root), "a marked place is not a ghost");
        }
    }
    let serializes = marks().any(|mark| matches!(mark.kind, MarkKind::Serialize { .. }));
    let Some(proc) = proc else {
        let message = "no rule is marked as a load or a store";
        return Err(vec![(Span::default(), message.into())]);
    };
    Ok(Flow { data, proc, block, serializes, ghosts })
}

/// Checks whether an expression uses data, even if it only tests whether the data is defined.
pub(crate) fn mentions_data(program: &Program, data: TypeId, expr: &Expr) -> bool {
    looks_at_data(program, data, expr, true)
}

/// Checks whether an expression reads the values of data.
pub(crate) fn reads_data(program: &Program, data: TypeId, expr: &Expr) -> bool {
    looks_at_data(program, data, expr, false)
}

fn looks_at_data(program: &Program, data: TypeId, expr: &Expr, counts_defined: bool) -> bool {
    let looks = |expr: &Expr| looks_at_data(program, data, expr, counts_defined);
    let indices_look = |place: &Place| {
        place.steps.iter().any(|step| match step {
            PlaceStep::Field(_) => false,
            PlaceStep::Index { index, .. } | PlaceStep::Element { index, .. } => looks(index),
        })
    };
    let place_looks = |place: &Place| place.ty == data || indices_look(place);
    match &expr.kind {
        ExprKind::Value(_) => expr.ty == data,
        ExprKind::Undefined => false,
        ExprKind::Read(place) => place_looks(place),
        ExprKind::IsUndefined(place) if counts_defined => place_looks(place),
        ExprKind::IsUndefined(place) => indices_look(place),
        ExprKind::Not(inner) | ExprKind::Negate(inner) | ExprKind::IsMember(inner, _) => {
            looks(inner)
        }
        ExprKind::Binary(_, left, right) => looks(left) || looks(right),
        ExprKind::Conditional(condition, yes, no) => {
            [condition, yes, no].into_iter().any(|part| looks(part))
        }
        ExprKind::Quantified { domain, body, .. } => {
            matches!(domain, Domain::Type(ty) if *ty == data) || looks(body)
        }
        ExprKind::Call { function, arguments } => {
            let result = program.functions[function.0 as usize].result;
            expr.ty == data
                || result.is_some_and(|result| program.variables[result.0 as usize].ty == data)
                || arguments.iter().any(|argument| match argument {
                    Argument::Place(place) => place_looks(place),
                    Argument::Value(value) => looks(value),
                })
                || computes(program, data, *function)
        }
        ExprKind::Count { condition, .. } => looks(condition),
    }
}

/// Checks whether a function does more with data than copying it.
fn computes(program: &Program, data: TypeId, function: FunctionId) -> bool {
    let mut analysis = Analysis {
        program,
        data,
        stored: Vec::new(),
        roots: FxHashMap::default(),
        flows: Vec::new(),
        seen: FxHashSet::default(),
        problems: Vec::new(),
    };
    analysis.function(function);
    !analysis.problems.is_empty()
}

struct Analysis<'a> {
    program: &'a Program,
    data: TypeId,
    /// Variables whose values the stores of the current rule store.
    stored: Vec<VarId>,
    /// Variable that each alias denotes.
    roots: FxHashMap<VarId, VarId>,
    /// Data flows between variables: source and target, or `None` if data flows to something that
    /// cannot be a ghost.
    flows: Vec<(VarId, Option<VarId>)>,
    /// Functions that have been analysed.
    seen: FxHashSet<FunctionId>,
    problems: Vec<Problem>,
}

/// Use of a value.
#[derive(Clone, Copy)]
enum Use {
    /// It is copied to a place of the data type, which belongs to a variable.
    Copied(Option<VarId>),
    Computed,
}

impl Analysis<'_> {
    fn report(&mut self, span: Span, message: &str) {
        if !self.problems.iter().any(|(known, _)| *known == span) {
            self.problems.push((span, message.into()));
        }
    }

    fn ty(&self, var: VarId) -> TypeId {
        self.program.variables[var.0 as usize].ty
    }

    /// Returns the variable that an alias denotes.
    fn root(&self, var: VarId) -> VarId {
        self.roots.get(&var).copied().unwrap_or(var)
    }

    /// Returns the variable of the state to which a place belongs.
    fn global(&self, place: &Place) -> Option<VarId> {
        let root = self.root(place.root);
        (self.program.variables[root.0 as usize].role == Role::Global).then_some(root)
    }

    /// Checks whether values of a type contain data.
    fn has_data(&self, ty: TypeId) -> bool {
        ty == self.data
            || match self.program.types.get(ty) {
                Type::Record(fields) => fields.iter().any(|field| self.has_data(field.ty)),
                Type::Array { element, .. } | Type::Multiset { element, .. } => {
                    self.has_data(*element)
                }
                _ => false,
            }
    }

    /// Checks whether two types of the same shape have data at the same places.
    fn same_data(&self, a: TypeId, b: TypeId) -> bool {
        let types = &self.program.types;
        match (types.get(a), types.get(b)) {
            _ if a == b => true,
            (Type::Record(x), Type::Record(y)) => {
                x.iter().zip(y).all(|(x, y)| self.same_data(x.ty, y.ty))
            }
            (Type::Array { element: x, .. }, Type::Array { element: y, .. })
            | (Type::Multiset { element: x, .. }, Type::Multiset { element: y, .. }) => {
                self.same_data(*x, *y)
            }
            _ => (a == self.data) == (b == self.data),
        }
    }

    // ---- rules ----

    fn rule(&mut self, rule: &Rule) {
        self.stored.clear();
        for mark in &rule.marks {
            match &mark.kind {
                MarkKind::Store { value } => self.stored.push(*value),
                MarkKind::Load { from } | MarkKind::Serialize { from } => {
                    self.place(from);
                    self.flow(from, None);
                    if self.global(from).is_none() {
                        self.report(from.span, "a location is a part of the state");
                    }
                }
            }
            for name in [&mark.proc, &mark.block].into_iter().flatten() {
                self.expr(name, Use::Computed);
            }
        }
        self.binders(&rule.binders);
        if let Some(guard) = &rule.guard {
            self.expr(guard, Use::Computed);
        }
        self.stmts(&rule.body);
    }

    fn binders(&mut self, binders: &[Binder]) {
        for binder in binders {
            match binder {
                Binder::Quantifier { .. } => {}
                Binder::Alias { var, place } => {
                    self.place(place);
                    let root = self.root(place.root);
                    self.roots.insert(*var, root);
                    if self.stored.contains(&place.root) {
                        self.stored.push(*var);
                    }
                }
                Binder::AliasValue { value, .. } => self.expr(value, Use::Computed),
                Binder::Choose { multiset, .. } => self.place(multiset),
            }
        }
    }

    /// Determines the types of processors and blocks.
    fn names(&mut self) -> (Option<TypeId>, Option<TypeId>) {
        let (mut proc, mut block) = (None, None);
        let mut with_block = None;
        for mark in self.program.rules.iter().flat_map(|rule| &rule.marks) {
            for (name, known, what) in
                [(&mark.proc, &mut proc, "processor"), (&mark.block, &mut block, "block")]
            {
                let Some(name) = name else { continue };
                match known {
                    None => *known = Some(name.ty),
                    Some(known) if *known == name.ty => {}
                    Some(known) => {
                        let types = &self.program.types;
                        let message = format!(
                            "a {what} is {} elsewhere, but {} here",
                            types.show(*known),
                            types.show(name.ty)
                        );
                        self.problems.push((name.span, message));
                    }
                }
            }
            if *with_block.get_or_insert(mark.block.is_some()) != mark.block.is_some() {
                let message = "either all marks or none must have `block=`";
                self.problems.push((mark.span, message.into()));
            }
        }
        (proc, block)
    }

    // ---- statements ----

    fn stmts(&mut self, stmts: &[Stmt]) {
        stmts.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Assign { target, value } => {
                self.place(target);
                self.moved(target.ty, value, self.global(target));
            }
            StmtKind::If { branches, otherwise } => {
                let looks = |e: &Expr| reads_data(self.program, self.data, e);
                let only_checks =
                    branches.iter().all(|(_, body)| is_check(body)) && is_check(otherwise);
                if only_checks && branches.iter().any(|(condition, _)| looks(condition)) {
                    return;
                }
                for (condition, body) in branches {
                    self.expr(condition, Use::Computed);
                    self.stmts(body);
                }
                self.stmts(otherwise);
            }
            StmtKind::Switch { subject, cases, otherwise } => {
                self.expr(subject, Use::Computed);
                for (labels, body) in cases {
                    labels.iter().for_each(|label| self.expr(label, Use::Computed));
                    self.stmts(body);
                }
                self.stmts(otherwise);
            }
            StmtKind::For { domain, body, .. } => {
                self.domain(domain, stmt.span);
                self.stmts(body);
            }
            StmtKind::While { condition, body } => {
                self.expr(condition, Use::Computed);
                self.stmts(body);
            }
            StmtKind::Alias { aliases, body } => {
                self.binders(aliases);
                self.stmts(body);
            }
            StmtKind::Call { function, arguments } => self.call(*function, arguments),
            StmtKind::Return(Some(value)) => {
                let ty = value.ty;
                self.moved(ty, value, None);
            }
            StmtKind::Undefine(place) | StmtKind::Clear(place) => self.place(place),
            StmtKind::Add { element, multiset } => {
                self.place(multiset);
                if let Type::Multiset { element: ty, .. } = self.program.types.get(multiset.ty) {
                    self.moved(*ty, element, self.global(multiset));
                }
            }
            StmtKind::Remove { index, multiset } => {
                self.place(multiset);
                self.expr(index, Use::Computed);
            }
            StmtKind::RemovePred { multiset, condition, .. } => {
                self.place(multiset);
                self.expr(condition, Use::Computed);
            }
            StmtKind::Return(None)
            | StmtKind::Error(_)
            | StmtKind::Assert { .. }
            | StmtKind::PutText(_)
            | StmtKind::PutValue(_) => {}
        }
    }

    /// Analyses a value that is copied to a place of type `ty`.
    fn moved(&mut self, ty: TypeId, value: &Expr, to: Option<VarId>) {
        if ty == self.data {
            self.expr(value, Use::Copied(to));
        } else if self.program.types.is_simple(ty) {
            self.expr(value, Use::Computed);
        } else {
            if !self.same_data(ty, value.ty) {
                self.report(value.span, OUTSIDE);
            }
            match &value.kind {
                ExprKind::Read(place) => {
                    self.place(place);
                    self.flow(place, to);
                }
                _ => self.expr(value, Use::Copied(to)),
            }
        }
    }

    fn flow(&mut self, from: &Place, to: Option<VarId>) {
        if self.has_data(from.ty)
            && let Some(from) = self.global(from)
        {
            self.flows.push((from, to));
        }
    }

    fn domain(&mut self, domain: &Domain, span: Span) {
        match domain {
            Domain::Type(ty) if *ty == self.data => {
                self.report(span, "this ranges over the data type, which tracking erases");
            }
            Domain::Type(_) => {}
            Domain::Counted { from, to, by } => {
                [from, to, by].into_iter().for_each(|part| self.expr(part, Use::Computed));
            }
        }
    }

    fn call(&mut self, function: FunctionId, arguments: &[Argument]) {
        let declared = &self.program.functions[function.0 as usize];
        for (&param, argument) in declared.params.iter().zip(arguments) {
            let ty = self.ty(param);
            match argument {
                Argument::Place(place) => {
                    self.place(place);
                    if !self.same_data(ty, place.ty) {
                        self.report(place.span, OUTSIDE);
                    }
                    let is_bound =
                        self.program.variables[place.root.0 as usize].role == Role::Value;
                    if ty == self.data && is_bound {
                        self.bound(place);
                    }
                    self.flow(place, None);
                }
                Argument::Value(value) => self.moved(ty, value, None),
            }
        }
        self.function(function);
    }

    fn function(&mut self, function: FunctionId) {
        if self.seen.insert(function) {
            let program = self.program;
            self.stmts(&program.functions[function.0 as usize].body);
        }
    }

    // ---- expressions ----

    /// Analyses the indices of a place.
    fn place(&mut self, place: &Place) {
        for step in &place.steps {
            if let PlaceStep::Index { index, .. } | PlaceStep::Element { index, .. } = step {
                self.expr(index, Use::Computed);
            }
        }
    }

    /// Checks a copy of a quantifier's value of the data type: some store must store it.
    fn bound(&mut self, place: &Place) {
        if !self.stored.contains(&place.root) && !self.stored.contains(&self.root(place.root)) {
            let message =
                "no store of this rule stores this value: mark the rule with `--@ store ...`";
            self.report(place.span, message);
        }
    }

    fn expr(&mut self, expr: &Expr, becomes: Use) {
        match (&expr.kind, becomes) {
            (ExprKind::Read(place), Use::Copied(to)) => {
                self.place(place);
                if place.ty != self.data && self.program.types.is_simple(place.ty) {
                    self.report(expr.span, INSIDE);
                } else if self.program.variables[place.root.0 as usize].role == Role::Value {
                    self.bound(place);
                } else {
                    self.flow(place, to);
                }
            }
            (ExprKind::Read(place), Use::Computed) => {
                self.place(place);
                if place.ty == self.data {
                    self.report(expr.span, COMPUTED);
                }
            }
            (ExprKind::Value(_), Use::Copied(_)) => self.report(expr.span, INSIDE),
            (ExprKind::Value(_), Use::Computed) => {
                if expr.ty == self.data {
                    self.report(expr.span, COMPUTED);
                }
            }
            (ExprKind::Conditional(condition, yes, no), becomes) => {
                self.expr(condition, Use::Computed);
                self.expr(yes, becomes);
                self.expr(no, becomes);
            }
            (ExprKind::Call { function, arguments }, becomes) => {
                if expr.ty == self.data && matches!(becomes, Use::Computed) {
                    self.report(expr.span, COMPUTED);
                }
                if let Use::Copied(_) = becomes
                    && self.program.types.is_simple(expr.ty)
                    && expr.ty != self.data
                {
                    self.report(expr.span, INSIDE);
                }
                self.call(*function, arguments);
            }
            (ExprKind::Undefined, _) => {}
            (_, Use::Copied(_)) => self.report(expr.span, INSIDE),
            (ExprKind::IsUndefined(place), _) => {
                self.place(place);
                self.flow(place, None);
            }
            (
                ExprKind::Not(inner) | ExprKind::Negate(inner) | ExprKind::IsMember(inner, _),
                becomes,
            ) => self.expr(inner, becomes),
            (ExprKind::Binary(_, left, right), becomes) => {
                self.expr(left, becomes);
                self.expr(right, becomes);
            }
            (ExprKind::Quantified { domain, body, .. }, becomes) => {
                self.domain(domain, expr.span);
                self.expr(body, becomes);
            }
            (ExprKind::Count { multiset, condition, .. }, becomes) => {
                self.place(multiset);
                self.expr(condition, becomes);
            }
        }
    }

    // ---- ghosts ----

    /// Finds the variables of the state whose data flows only into checks and into each other.
    fn ghosts(&self) -> FxHashSet<VarId> {
        let program = self.program;
        let with_data = program.globals.iter().copied().filter(|&var| self.has_data(self.ty(var)));
        let mut ghosts: FxHashSet<VarId> = with_data.collect();
        loop {
            let before = ghosts.len();
            for (from, to) in &self.flows {
                if !to.is_some_and(|to| ghosts.contains(&to)) {
                    ghosts.remove(from);
                }
            }
            if ghosts.len() == before {
                return ghosts;
            }
        }
    }
}

/// Checks whether statements only report errors.
fn is_check(stmts: &[Stmt]) -> bool {
    stmts.iter().all(|stmt| {
        matches!(
            stmt.kind,
            StmtKind::Error(_)
                | StmtKind::Assert { .. }
                | StmtKind::PutText(_)
                | StmtKind::PutValue(_)
        )
    })
}

const COMPUTED: &str =
    "this computes with data or compares it; tracking needs data to be copied only";
const INSIDE: &str = "this creates data; outside start states data can only be copied or stored";
const OUTSIDE: &str = "this takes data out of the data type, where it cannot be tracked";
