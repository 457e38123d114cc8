//! Resolution of names and checking of types: from the syntax tree to a checked program.
//!
//! All errors that can be found without running a rule are reported together: names, types,
//! constants out of range, assignments to read-only variables, guards with side effects, misplaced
//! marks. An expression with an error has a type that fits everywhere, so that one mistake leads to
//! one message.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::murphi::ir::{
    Binder, Function, FunctionId, Invariant, Mark, MarkKind, Program, Role, Rule, Stmt, VarId,
    Variable,
};
use crate::murphi::parser::Problem;
use crate::murphi::syntax::{self as ast, Ident, Span};
use crate::murphi::types::{Field, Type, TypeId, Types};

/// Priority of a rule without a number, as in other tools.
const DEFAULT_PRIORITY: i32 = 50;

/// Largest number of instances of all rules together.
const MAX_INSTANCES: usize = 1 << 20;

/// Largest number of slots of all variables together.
const MAX_VARIABLE_SLOTS: u64 = 1 << 24;

/// Checks a description; errors are appended to `problems`.
///
/// `constants` replace the values that the description gives to constants.
pub(crate) fn check(
    model: &ast::Model,
    constants: &[(String, ConstantValue)],
    problems: &mut Vec<Problem>,
) -> Program {
    let mut checker = Checker {
        types: Types::new(),
        variables: Vec::new(),
        touches_state: Vec::new(),
        functions: Vec::new(),
        scopes: vec![FxHashMap::default()],
        locals: Vec::new(),
        result: None,
        is_in_function: false,
        has_effects: false,
        open: None,
        data: None,
        data_name: model.data.first().cloned(),
        constants,
        replaced: vec![false; constants.len()],
        problems,
    };
    checker.declare_builtins();
    checker.model(model)
}

/// A value for a constant that is given from outside a description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConstantValue {
    /// A number.
    Integer(i32),
    /// `true` or `false`.
    Boolean(bool),
}

/// Meaning of a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Symbol {
    Constant { code: i32, ty: TypeId },
    Type(TypeId),
    Variable(VarId),
    Function(FunctionId),
}

pub(super) struct Checker<'a> {
    pub(super) types: Types,
    pub(super) variables: Vec<Variable>,
    /// For each variable, whether an assignment to it may change the state.
    pub(super) touches_state: Vec<bool>,
    pub(super) functions: Vec<Function>,
    scopes: Vec<FxHashMap<Arc<str>, Symbol>>,
    /// Locals of the rule or subprogram that is being checked.
    locals: Vec<VarId>,
    /// Variable for the result of the function that is being checked.
    pub(super) result: Option<VarId>,
    pub(super) is_in_function: bool,
    pub(super) has_effects: bool,
    /// The subprogram whose body is being checked.
    pub(super) open: Option<Arc<str>>,
    data: Option<TypeId>,
    data_name: Option<Ident>,
    /// Values for constants that are given from outside.
    constants: &'a [(String, ConstantValue)],
    /// For each of these constants, whether the description declares it.
    replaced: Vec<bool>,
    problems: &'a mut Vec<Problem>,
}

/// Names that the language declares.
const BUILTINS: [&str; 3] = ["boolean", "false", "true"];

impl Checker<'_> {
    fn declare_builtins(&mut self) {
        let global = &mut self.scopes[0];
        global.insert("boolean".into(), Symbol::Type(Types::BOOLEAN));
        for (name, code) in [("false", 0), ("true", 1)] {
            global.insert(name.into(), Symbol::Constant { code, ty: Types::BOOLEAN });
        }
    }

    fn model(mut self, model: &ast::Model) -> Program {
        let mut globals = Vec::new();
        let (mut rules, mut starts, mut invariants) = (Vec::new(), Vec::new(), Vec::new());
        for item in &model.items {
            match item {
                ast::Item::Decl(decl) => self.decl(decl, Role::Global, &mut globals),
                ast::Item::Subprogram(subprogram) => self.subprogram(subprogram),
                ast::Item::Rule(rule) => {
                    let mut out = Rules {
                        rules: &mut rules,
                        starts: &mut starts,
                        invariants: &mut invariants,
                    };
                    self.rule(rule, &mut Vec::new(), &mut out);
                }
            }
        }
        let missing = self.constants.iter().zip(&self.replaced).find(|(_, replaced)| !**replaced);
        if let Some(((name, _), _)) = missing {
            let message = format!("there is no constant `{name}` that could be given a value");
            self.report(Span::default(), message);
        }
        self.data_type();
        if let [_, second, ..] = &model.data[..] {
            self.report(second.span, "the data type is named twice");
        }
        let slots: u64 = globals.iter().map(|&v| u64::from(self.types.slots(self.ty(v)))).sum();
        if slots > u64::from(Types::MAX_SLOTS) {
            let span = Span::default();
            self.report(span, format!("a state has more than {} parts", Types::MAX_SLOTS));
        }
        let all: u64 = self.variables.iter().map(|v| 1 + u64::from(self.types.slots(v.ty))).sum();
        if all > MAX_VARIABLE_SLOTS {
            self.report(
                Span::default(),
                format!("all variables together have more than {MAX_VARIABLE_SLOTS} parts"),
            );
        }
        if starts.is_empty() && self.problems.is_empty() {
            self.report(Span::default(), "the description has no start state");
        }
        let binders = rules.iter().chain(&starts).map(|rule: &Rule| &rule.binders);
        let binders =
            binders.chain(invariants.iter().map(|invariant: &Invariant| &invariant.binders));
        let instances =
            binders.fold(0usize, |sum, binders| sum.saturating_add(self.instances(binders)));
        if instances > MAX_INSTANCES {
            let message = format!(
                "the rules have {instances} instances, at most {MAX_INSTANCES} can be explored"
            );
            self.report(Span::default(), message);
        }
        Program {
            types: self.types,
            variables: self.variables,
            globals,
            functions: self.functions,
            rules,
            starts,
            invariants,
            data: self.data,
        }
    }

    /// Counts the combinations of a rule's parameters.
    fn instances(&self, binders: &[Binder]) -> usize {
        binders.iter().fold(1, |product, binder| match binder {
            Binder::Quantifier { values, .. } => product.saturating_mul(values.len()),
            Binder::Choose { multiset, .. } => match self.types.get(multiset.ty) {
                Type::Multiset { capacity, .. } => product.saturating_mul(*capacity as usize),
                _ => product,
            },
            Binder::Alias { .. } | Binder::AliasValue { .. } => product,
        })
    }

    // ---- names ----

    pub(super) fn report(&mut self, span: Span, message: impl Into<String>) {
        self.problems.push((span, message.into()));
    }

    pub(super) fn find(&mut self, ident: &Ident) -> Option<Symbol> {
        let mut found = self.scopes.iter().rev().find_map(|scope| scope.get(&ident.name)).copied();
        // The names that the language declares may be written in upper or lower case.
        if found.is_none() {
            let builtin = BUILTINS.iter().find(|name| name.eq_ignore_ascii_case(&ident.name));
            found = builtin.and_then(|&name| self.scopes[0].get(name)).copied();
        }
        if found.is_none() {
            let near = self.nearest(&ident.name);
            let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            self.report(ident.span, format!("unknown name `{}`{hint}", ident.name));
        }
        found
    }

    /// Finds a name that differs by case or by one character.
    fn nearest(&self, name: &str) -> Option<Arc<str>> {
        let names = self.scopes.iter().rev().flat_map(|scope| scope.keys());
        let mut near: Vec<&Arc<str>> = names.filter(|other| is_near(name, other)).collect();
        near.sort();
        near.first().map(|&near| near.clone())
    }

    /// Binds a name in the innermost scope.
    pub(super) fn declare(&mut self, ident: &Ident, symbol: Symbol) {
        let is_global = self.scopes.len() == 1;
        let scope = self.scopes.last_mut().expect("the outermost scope stays");
        if scope.insert(ident.name.clone(), symbol).is_some() {
            let place = if is_global { "" } else { " here" };
            self.report(ident.span, format!("`{}` is declared twice{place}", ident.name));
        }
    }

    pub(super) fn in_scope<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(FxHashMap::default());
        let result = work(self);
        self.scopes.pop();
        result
    }

    pub(super) fn variable(
        &mut self,
        name: &Arc<str>,
        ty: TypeId,
        role: Role,
        touches_state: bool,
    ) -> VarId {
        self.variables.push(Variable { name: name.clone(), ty, role });
        self.touches_state.push(touches_state);
        VarId(self.variables.len() as u32 - 1)
    }

    pub(super) fn ty(&self, var: VarId) -> TypeId {
        self.variables[var.0 as usize].ty
    }

    pub(super) fn role(&self, var: VarId) -> Role {
        self.variables[var.0 as usize].role
    }

    // ---- declarations ----

    fn decl(&mut self, decl: &ast::Decl, role: Role, out: &mut Vec<VarId>) {
        match decl {
            ast::Decl::Const { name, value } => {
                let value = self.expr(value);
                let replacement = self.replacement(name, role);
                let symbol = match (self.constant(&value), replacement) {
                    (Some(_), Some((_, ty))) if !self.types.overlap(ty, value.ty) => {
                        let message = format!("the constant is {}", self.types.show(value.ty));
                        self.report(value.span, message + ", and its replacement must be too");
                        Symbol::Constant { code: 0, ty: Types::ERROR }
                    }
                    (Some(_), Some((code, ty))) => Symbol::Constant { code, ty },
                    (Some(code), None) => Symbol::Constant { code, ty: value.ty },
                    (None, _) => {
                        if value.ty != Types::ERROR {
                            self.report(
                                value.span,
                                "the value of a constant must be a constant expression",
                            );
                        }
                        Symbol::Constant { code: 0, ty: Types::ERROR }
                    }
                };
                self.declare(name, symbol);
            }
            ast::Decl::Type { name, ty } => {
                let ty = self.type_expr(ty);
                if ty != Types::ERROR {
                    self.types.set_name(ty, &name.name);
                }
                self.declare(name, Symbol::Type(ty));
            }
            ast::Decl::Var { names, ty } => {
                let ty = self.type_expr(ty);
                for name in names {
                    let var = self.variable(&name.name, ty, role, role == Role::Global);
                    out.push(var);
                    self.declare(name, Symbol::Variable(var));
                }
            }
        }
    }

    /// Returns the value for a constant that is given from outside; only constants at the outermost
    /// level can be given one.
    fn replacement(&mut self, name: &Ident, role: Role) -> Option<(i32, TypeId)> {
        if role != Role::Global {
            return None;
        }
        let at = self.constants.iter().position(|(known, _)| **known == *name.name)?;
        self.replaced[at] = true;
        Some(match self.constants[at].1 {
            ConstantValue::Integer(code) => (code, Types::INTEGER),
            ConstantValue::Boolean(value) => (i32::from(value), Types::BOOLEAN),
        })
    }

    pub(super) fn type_expr(&mut self, ty: &ast::TypeExpr) -> TypeId {
        let made = match &ty.kind {
            ast::TypeKind::Name(ident) => {
                return match self.find(ident) {
                    Some(Symbol::Type(id)) => id,
                    Some(_) => {
                        self.report(ident.span, format!("`{}` is not a type", ident.name));
                        Types::ERROR
                    }
                    None => Types::ERROR,
                };
            }
            ast::TypeKind::Range(from, to) => {
                let (Some(first), Some(last)) = (self.bound(from), self.bound(to)) else {
                    return Types::ERROR;
                };
                if first > last || i64::from(last) - i64::from(first) >= i64::from(u32::MAX / 2) {
                    self.report(
                        ty.span,
                        format!("the range `{first}..{last}` is empty or too large"),
                    );
                    return Types::ERROR;
                }
                Type::Range { first, last }
            }
            ast::TypeKind::Enum(names) => {
                let first = self.types.fresh_codes(names.len() as u32);
                if names.is_empty() {
                    self.report(ty.span, "an enumeration needs a value");
                }
                let known = names.iter().map(|ident| ident.name.clone()).collect();
                let id = self.types.add(Type::Enum { first, names: known });
                for (ident, code) in names.iter().zip(first..) {
                    self.declare(ident, Symbol::Constant { code, ty: id });
                }
                return id;
            }
            ast::TypeKind::Scalarset(size) => {
                let Some(size) = self.size(size) else { return Types::ERROR };
                Type::Scalarset { first: self.types.fresh_codes(size), size }
            }
            ast::TypeKind::Union(parts) => {
                let mut members = Vec::new();
                for part in parts {
                    let id = self.type_expr(part);
                    match self.types.get(id) {
                        Type::Enum { .. } | Type::Scalarset { .. } => members.push(id),
                        Type::Union(inner) => members.extend(inner.clone()),
                        Type::Error => {}
                        _ => {
                            let message = format!(
                                "a union is made of enumerations, scalarsets and unions, not of {}",
                                self.types.show(id)
                            );
                            self.report(part.span, message);
                        }
                    }
                }
                let mut seen = Vec::new();
                for &member in &members {
                    if seen.contains(&member) {
                        let message =
                            format!("{} occurs twice in the union", self.types.show(member));
                        self.report(ty.span, message);
                    } else {
                        seen.push(member);
                    }
                }
                Type::Union(seen)
            }
            ast::TypeKind::Record(parts) => {
                let mut fields: Vec<Field> = Vec::new();
                let mut offset = 0u32;
                for (names, ty) in parts {
                    let ty = self.type_expr(ty);
                    for ident in names {
                        if fields.iter().any(|field| field.name == ident.name) {
                            let message = format!("the record has two fields `{}`", ident.name);
                            self.report(ident.span, message);
                        }
                        fields.push(Field { name: ident.name.clone(), ty, offset });
                        offset = offset.saturating_add(self.types.slots(ty));
                    }
                }
                Type::Record(fields)
            }
            ast::TypeKind::Array(index, element) => {
                let over = self.type_expr(index);
                let element = self.type_expr(element);
                if over != Types::ERROR && self.types.count(over) == 0 {
                    let message =
                        format!("an array cannot have {} as its index", self.types.show(over));
                    self.report(index.span, message);
                    return Types::ERROR;
                }
                if over == Types::ERROR || element == Types::ERROR {
                    return Types::ERROR;
                }
                Type::Array { index: over, element }
            }
            ast::TypeKind::Multiset(size, element) => {
                let span = element.span;
                let element = self.type_expr(element);
                let Some(capacity) = self.size(size) else { return Types::ERROR };
                if self.has_multiset(element) {
                    self.report(span, "a multiset cannot hold multisets");
                    return Types::ERROR;
                }
                Type::Multiset { capacity, element }
            }
        };
        let id = self.types.add(made);
        if self.types.slots(id) > Types::MAX_SLOTS {
            let message = format!("a value of this type has more than {} parts", Types::MAX_SLOTS);
            self.report(ty.span, message);
            return Types::ERROR;
        }
        id
    }

    fn has_multiset(&self, id: TypeId) -> bool {
        match self.types.get(id) {
            Type::Multiset { .. } => true,
            Type::Array { element, .. } => self.has_multiset(*element),
            Type::Record(fields) => fields.iter().any(|field| self.has_multiset(field.ty)),
            _ => false,
        }
    }

    /// Evaluates a bound of a range.
    fn bound(&mut self, expr: &ast::Expr) -> Option<i32> {
        let expr = self.expr(expr);
        self.constant_integer(&expr)
    }

    fn size(&mut self, expr: &ast::Expr) -> Option<u32> {
        const MAX_SIZE: i32 = 1 << 16;
        let size = self.bound(expr)?;
        if !(1..=MAX_SIZE).contains(&size) {
            self.report(expr.span, format!("a size must be from 1 to {MAX_SIZE}, this is {size}"));
            return None;
        }
        Some(size as u32)
    }

    // ---- subprograms ----

    fn subprogram(&mut self, subprogram: &ast::Subprogram) {
        let ast::Subprogram { name, params, returns, decls, body } = subprogram;
        let ty = returns.as_ref().map(|ty| self.type_expr(ty));
        let result = ty.map(|ty| {
            self.variable(&format!("result of {}", name.name).into(), ty, Role::Local, false)
        });
        self.open = Some(name.name.clone());
        self.has_effects = false;
        self.is_in_function = true;
        self.result = result;
        self.locals.clear();
        let function = self.in_scope(|checker| {
            let mut all = Vec::new();
            for param in params {
                let ty = checker.type_expr(&param.ty);
                for ident in &param.names {
                    let role = Role::Reference { is_writable: param.is_var };
                    let var = checker.variable(&ident.name, ty, role, param.is_var);
                    checker.declare(ident, Symbol::Variable(var));
                    all.push(var);
                }
            }
            let mut locals = Vec::new();
            let body = checker.in_scope(|checker| {
                decls.iter().for_each(|decl| checker.decl(decl, Role::Local, &mut locals));
                checker.stmts(body)
            });
            Function {
                name: name.name.clone(),
                params: all,
                result,
                locals,
                body,
                has_effects: checker.has_effects,
                span: name.span,
            }
        });
        self.open = None;
        self.is_in_function = false;
        self.result = None;
        self.functions.push(function);
        let id = FunctionId(self.functions.len() as u32 - 1);
        self.declare(name, Symbol::Function(id));
    }

    // ---- rules ----

    fn rule(&mut self, rule: &ast::Rule, binders: &mut Vec<Binder>, out: &mut Rules<'_>) {
        let outer = binders.len();
        match &rule.kind {
            ast::RuleKind::Simple { name, priority, guard, decls, body, marks } => {
                let guard = guard.as_ref().map(|guard| self.pure_condition(guard));
                let marks: Vec<Mark> =
                    marks.iter().filter_map(|mark| self.mark(mark, binders)).collect();
                let (locals, body) = self.body(decls, body);
                let number = out.rules.len() + 1;
                let name = name.clone().unwrap_or_else(|| format!("rule {number}").into());
                let (binders, priority) = (binders.clone(), priority.unwrap_or(DEFAULT_PRIORITY));
                let span = rule.span;
                out.rules.push(Rule { name, priority, binders, guard, locals, body, marks, span });
            }
            ast::RuleKind::Start { name, decls, body } => {
                let (locals, body) = self.body(decls, body);
                if let Some(binder) = binders.iter().find_map(|binder| match binder {
                    Binder::Choose { .. } => Some("choose"),
                    _ => None,
                }) {
                    self.report(rule.span, format!("a start state cannot be inside `{binder}`"));
                }
                let number = out.starts.len() + 1;
                let name = name.clone().unwrap_or_else(|| format!("start state {number}").into());
                let (binders, guard, marks) = (binders.clone(), None, Vec::new());
                out.starts.push(Rule {
                    name,
                    priority: DEFAULT_PRIORITY,
                    binders,
                    guard,
                    locals,
                    body,
                    marks,
                    span: rule.span,
                });
            }
            ast::RuleKind::Invariant { name, condition } => {
                let condition = self.pure_condition(condition);
                let number = out.invariants.len() + 1;
                let name = name.clone().unwrap_or_else(|| format!("invariant {number}").into());
                let (binders, span) = (binders.clone(), rule.span);
                out.invariants.push(Invariant { name, binders, condition, span });
            }
            ast::RuleKind::Ruleset { quantifiers, rules } => self.in_scope(|checker| {
                for quantifier in quantifiers {
                    if let Some(binder) = checker.binder(quantifier) {
                        binders.push(binder);
                    }
                }
                rules.iter().for_each(|rule| checker.rule(rule, binders, out));
            }),
            ast::RuleKind::Alias { aliases, rules } => self.in_scope(|checker| {
                for (name, expr) in aliases {
                    let binder = checker.alias(name, expr);
                    binders.extend(binder);
                }
                rules.iter().for_each(|rule| checker.rule(rule, binders, out));
            }),
            ast::RuleKind::Choose { index, multiset, rules } => self.in_scope(|checker| {
                if let Some(multiset) = checker.multiset(multiset) {
                    let var = checker.multiset_index(index, multiset.ty);
                    binders.push(Binder::Choose { var, multiset });
                    rules.iter().for_each(|rule| checker.rule(rule, binders, out));
                }
            }),
        }
        binders.truncate(outer);
    }

    fn body(&mut self, decls: &[ast::Decl], body: &[ast::Stmt]) -> (Vec<VarId>, Vec<Stmt>) {
        let mut locals = Vec::new();
        let body = self.in_scope(|checker| {
            decls.iter().for_each(|decl| checker.decl(decl, Role::Local, &mut locals));
            checker.stmts(body)
        });
        (locals, body)
    }

    /// Checks a guard or an invariant.
    fn pure_condition(&mut self, expr: &ast::Expr) -> crate::murphi::ir::Expr {
        self.has_effects = false;
        let condition = self.condition(expr);
        if self.has_effects {
            self.report(expr.span, "this calls a function that changes the state");
        }
        condition
    }

    /// Checks a quantifier of a ruleset, whose values must be constant.
    fn binder(&mut self, quantifier: &ast::Quantifier) -> Option<Binder> {
        let (ty, values) = match &quantifier.domain {
            ast::Domain::Type(ty) => {
                let span = ty.span;
                let ty = self.type_expr(ty);
                let pieces = self.types.pieces(ty);
                if pieces.is_empty() && ty != Types::ERROR {
                    let message = format!("a ruleset cannot range over {}", self.types.show(ty));
                    self.report(span, message);
                }
                let count = self.types.count(ty) as usize;
                if count > MAX_INSTANCES {
                    self.report(span, "a ruleset cannot range over so many values");
                    (Types::ERROR, Vec::new())
                } else {
                    let codes =
                        pieces.iter().flat_map(|p| (0..p.count).map(|i| p.first + i as i32));
                    (ty, codes.collect())
                }
            }
            ast::Domain::Counted { from, to, by } => {
                let bounds = (self.bound(from), self.bound(to));
                let by = by.as_ref().map_or(Some(1), |by| self.bound(by));
                match (bounds, by) {
                    ((Some(from), Some(to)), Some(by)) if by != 0 => {
                        (Types::INTEGER, counted(from, to, by).take(MAX_INSTANCES + 1).collect())
                    }
                    (_, Some(0)) => {
                        self.report(quantifier.name.span, "this range never ends: its step is 0");
                        (Types::ERROR, Vec::new())
                    }
                    _ => (Types::ERROR, Vec::new()),
                }
            }
        };
        let var = self.variable(&quantifier.name.name, ty, Role::Value, false);
        self.declare(&quantifier.name, Symbol::Variable(var));
        Some(Binder::Quantifier { var, values })
    }

    pub(super) fn multiset_index(&mut self, index: &Ident, multiset: TypeId) -> VarId {
        let ty = self.types.add(Type::Index { multiset });
        let var = self.variable(&index.name, ty, Role::Value, false);
        self.declare(index, Symbol::Variable(var));
        var
    }

    // ---- marks ----

    /// Returns the type that `--@ data` names.
    fn data_type(&mut self) -> Option<TypeId> {
        if self.data.is_none()
            && let Some(ident) = self.data_name.take()
        {
            match self.find(&ident) {
                Some(Symbol::Type(id)) if self.types.count(id) > 0 => self.data = Some(id),
                Some(Symbol::Type(Types::ERROR)) | None => {}
                Some(Symbol::Type(_)) => self.report(ident.span, "the data type must be simple"),
                Some(_) => self.report(ident.span, format!("`{}` is not a type", ident.name)),
            }
        }
        self.data
    }

    fn mark(&mut self, mark: &ast::Mark, binders: &[Binder]) -> Option<Mark> {
        let had_name = self.data_name.is_some();
        let Some(data) = self.data_type() else {
            if !had_name {
                self.report(mark.span, "no data type is named: add a line `--@ data TYPE`");
            }
            return None;
        };
        let (mut proc, mut block, mut from, mut value) = (None, None, None, None);
        for (key, expr) in &mark.arguments {
            let is_known = match (&*key.name, mark.kind) {
                ("proc", _) => proc.replace(self.finite(expr)).is_none(),
                ("block", _) => block.replace(self.finite(expr)).is_none(),
                ("from", ast::MarkKind::Load | ast::MarkKind::Serialize) => {
                    from.replace((self.place(expr), expr.span)).is_none()
                }
                ("value", ast::MarkKind::Store) => {
                    value.replace((self.expr(expr), expr.span)).is_none()
                }
                _ => {
                    self.report(key.span, format!("`{}` has no meaning here", key.name));
                    true
                }
            };
            if !is_known {
                self.report(key.span, format!("`{}` is given twice", key.name));
            }
        }
        if proc.is_none() && mark.kind != ast::MarkKind::Serialize {
            self.report(mark.span, "this mark needs `proc=`");
            return None;
        }
        let kind = match mark.kind {
            ast::MarkKind::Store => {
                let value = match value {
                    Some((expr, span)) => self.stored(&expr, span, binders, data)?,
                    None => self.the_stored_value(mark.span, binders, data)?,
                };
                MarkKind::Store { value }
            }
            ast::MarkKind::Load | ast::MarkKind::Serialize => {
                let Some((from, span)) = from else {
                    self.report(mark.span, "this mark needs `from=`");
                    return None;
                };
                let from = from?;
                if from.ty != data {
                    let message = format!(
                        "`from=` needs a place of the data type {}, this is {}",
                        self.types.show(data),
                        self.types.show(from.ty)
                    );
                    self.report(span, message);
                    return None;
                }
                match mark.kind {
                    ast::MarkKind::Load => MarkKind::Load { from },
                    _ => MarkKind::Serialize { from },
                }
            }
        };
        Some(Mark { kind, proc: proc.flatten(), block: block.flatten(), span: mark.span })
    }

    /// Checks an expression that denotes a processor or a block.
    fn finite(&mut self, expr: &ast::Expr) -> Option<crate::murphi::ir::Expr> {
        let checked = self.expr(expr);
        if checked.ty != Types::ERROR && self.types.count(checked.ty) == 0 {
            self.report(expr.span, "this must have a type with finitely many values");
            return None;
        }
        Some(checked)
    }

    fn stored(
        &mut self,
        expr: &crate::murphi::ir::Expr,
        span: Span,
        binders: &[Binder],
        data: TypeId,
    ) -> Option<VarId> {
        use crate::murphi::ir::ExprKind;
        if let ExprKind::Read(place) = &expr.kind
            && self.values_of(binders, data).contains(&place.root)
        {
            return Some(place.root);
        }
        self.report(span, "`value=` needs a variable of a ruleset over the data type");
        None
    }

    fn the_stored_value(&mut self, span: Span, binders: &[Binder], data: TypeId) -> Option<VarId> {
        match self.values_of(binders, data)[..] {
            [value] => Some(value),
            [] => {
                let message = format!(
                    "the stored value is unknown: no ruleset over the data type {} encloses this rule",
                    self.types.show(data)
                );
                self.report(span, message);
                None
            }
            _ => {
                self.report(span, "the stored value is ambiguous: name its variable with `value=`");
                None
            }
        }
    }

    /// Lists the ruleset variables of the data type.
    fn values_of(&self, binders: &[Binder], data: TypeId) -> Vec<VarId> {
        let variables = binders.iter().filter_map(|binder| match binder {
            Binder::Quantifier { var, .. } if self.ty(*var) == data => Some(*var),
            _ => None,
        });
        variables.collect()
    }
}

/// Lists to which rules are added.
struct Rules<'a> {
    rules: &'a mut Vec<Rule>,
    starts: &'a mut Vec<Rule>,
    invariants: &'a mut Vec<Invariant>,
}

/// Lists the values of a counted range.
pub(crate) fn counted(from: i32, to: i32, by: i32) -> impl Iterator<Item = i32> {
    let mut next = i64::from(from);
    std::iter::from_fn(move || {
        let is_inside = if by > 0 { next <= i64::from(to) } else { next >= i64::from(to) };
        let value = next as i32;
        next += i64::from(by);
        is_inside.then_some(value)
    })
}

/// Checks whether two names differ by case, or by one character.
fn is_near(a: &str, b: &str) -> bool {
    if a.eq_ignore_ascii_case(b) {
        return true;
    }
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() < 3 || a.len().abs_diff(b.len()) > 1 {
        return false;
    }
    let start = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    start + end + 1 >= a.len().max(b.len())
}
