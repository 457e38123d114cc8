//! Checking expressions and places.

use crate::murphi::check::{Checker, Symbol};
use crate::murphi::ir::{Argument, Binder, Domain, Expr, ExprKind, Place, PlaceStep, Role, VarId};
use crate::murphi::syntax::{self as ast, BinaryOp, Ident, Span};
use crate::murphi::types::{Type, TypeId, Types};

impl Checker<'_> {
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Expr {
        let span = expr.span;
        let made = |kind, ty| Expr { kind, ty, span };
        match &expr.kind {
            ast::ExprKind::Number(number) => made(ExprKind::Value(*number), Types::INTEGER),
            ast::ExprKind::Undefined => made(ExprKind::Undefined, Types::ERROR),
            ast::ExprKind::Name(ident) => match self.find(ident) {
                Some(Symbol::Constant { code, ty }) => made(ExprKind::Value(code), ty),
                Some(Symbol::Variable(var)) => {
                    let ty = self.ty(var);
                    let place = Place { root: var, steps: Vec::new(), ty, span };
                    made(ExprKind::Read(place), ty)
                }
                Some(Symbol::Type(_)) => {
                    self.report(span, format!("`{}` is a type, not a value", ident.name));
                    error(span)
                }
                Some(Symbol::Function(_)) => {
                    self.report(span, format!("`{}` needs its arguments", ident.name));
                    error(span)
                }
                None => error(span),
            },
            ast::ExprKind::Field(..) | ast::ExprKind::Index(..) => match self.place(expr) {
                Some(place) => {
                    let ty = place.ty;
                    made(ExprKind::Read(place), ty)
                }
                None => error(span),
            },
            ast::ExprKind::Call { name, arguments } => self.call_expr(name, arguments, span),
            ast::ExprKind::Not(inner) => {
                let inner = self.condition(inner);
                made(ExprKind::Not(Box::new(inner)), Types::BOOLEAN)
            }
            ast::ExprKind::Negate(inner) => {
                let inner = self.integer(inner);
                made(ExprKind::Negate(Box::new(inner)), Types::INTEGER)
            }
            ast::ExprKind::Binary(op, left, right) => self.binary(*op, left, right, span),
            ast::ExprKind::Conditional(condition, yes, no) => {
                let condition = self.condition(condition);
                let (yes, no) = (self.value(yes), self.value(no));
                let ty = if self.types.includes(yes.ty, no.ty) {
                    yes.ty
                } else if self.types.includes(no.ty, yes.ty) {
                    no.ty
                } else if self.types.is_integer(yes.ty) && self.types.is_integer(no.ty) {
                    Types::INTEGER
                } else {
                    let message = format!(
                        "one side is {}, the other {}",
                        self.types.show(yes.ty),
                        self.types.show(no.ty)
                    );
                    self.report(span, message);
                    Types::ERROR
                };
                let parts = (Box::new(condition), Box::new(yes), Box::new(no));
                made(ExprKind::Conditional(parts.0, parts.1, parts.2), ty)
            }
            ast::ExprKind::Quantified { is_forall, quantifiers, body } => {
                let (bound, body) = self.in_scope(|checker| {
                    let bound: Vec<_> = quantifiers.iter().map(|q| checker.quantifier(q)).collect();
                    (bound, checker.condition(body))
                });
                let is_forall = *is_forall;
                bound.into_iter().rev().fold(body, |body, (var, domain)| {
                    let body = Box::new(body);
                    made(ExprKind::Quantified { is_forall, var, domain, body }, Types::BOOLEAN)
                })
            }
            ast::ExprKind::IsUndefined(inner) => match self.place(inner) {
                Some(place) => {
                    self.want_simple(place.ty, inner.span);
                    made(ExprKind::IsUndefined(place), Types::BOOLEAN)
                }
                None => Expr { ty: Types::BOOLEAN, ..error(span) },
            },
            ast::ExprKind::IsMember(inner, ty) => {
                let value = self.value(inner);
                let (member, member_span) = (self.type_expr(ty), ty.span);
                if !self.types.overlap(value.ty, member) {
                    let message = format!(
                        "a value of {} is never in {}",
                        self.types.show(value.ty),
                        self.types.show(member)
                    );
                    self.report(member_span, message);
                }
                let pieces = self.types.pieces(member);
                made(ExprKind::IsMember(Box::new(value), pieces), Types::BOOLEAN)
            }
            ast::ExprKind::MultisetCount { index, multiset, condition } => {
                let Some(multiset) = self.multiset(multiset) else { return error(span) };
                let (var, condition) = self.in_scope(|checker| {
                    let var = checker.multiset_index(index, multiset.ty);
                    (var, checker.condition(condition))
                });
                let condition = Box::new(condition);
                made(ExprKind::Count { var, multiset, condition }, Types::INTEGER)
            }
        }
    }

    /// Checks an expression of a simple type.
    pub(super) fn value(&mut self, expr: &ast::Expr) -> Expr {
        let checked = self.expr(expr);
        if matches!(checked.kind, ExprKind::Undefined) {
            let message =
                "`undefined` can only be assigned or passed; test for it with `isundefined(...)`";
            self.report(expr.span, message);
            return error(expr.span);
        }
        if !self.want_simple(checked.ty, expr.span) {
            return error(expr.span);
        }
        checked
    }

    fn want_simple(&mut self, ty: TypeId, span: Span) -> bool {
        let is_simple = self.types.is_simple(ty);
        if !is_simple {
            let message = format!("a simple value is needed here, this is {}", self.types.show(ty));
            self.report(span, message);
        }
        is_simple
    }

    pub(super) fn condition(&mut self, expr: &ast::Expr) -> Expr {
        let checked = self.value(expr);
        if !self.types.is_boolean(checked.ty) {
            let message =
                format!("a condition is needed here, this is {}", self.types.show(checked.ty));
            self.report(expr.span, message);
        }
        checked
    }

    fn integer(&mut self, expr: &ast::Expr) -> Expr {
        let checked = self.value(expr);
        if !self.types.is_integer(checked.ty) {
            let mut message =
                format!("an integer is needed here, this is {}", self.types.show(checked.ty));
            if matches!(self.types.get(checked.ty), Type::Scalarset { .. }) {
                message += ", whose values have no order and no arithmetic";
            }
            self.report(expr.span, message);
        }
        checked
    }

    fn binary(&mut self, op: BinaryOp, left: &ast::Expr, right: &ast::Expr, span: Span) -> Expr {
        use BinaryOp::*;
        let (left, right, ty) = match op {
            Implies | Or | And => (self.condition(left), self.condition(right), Types::BOOLEAN),
            Equal | NotEqual => {
                let (left, right) = (self.value(left), self.value(right));
                if !self.types.overlap(left.ty, right.ty) {
                    let message = format!(
                        "{} and {} cannot be compared",
                        self.types.show(left.ty),
                        self.types.show(right.ty)
                    );
                    self.report(span, message);
                }
                (left, right, Types::BOOLEAN)
            }
            Less | LessEqual | Greater | GreaterEqual => {
                (self.integer(left), self.integer(right), Types::BOOLEAN)
            }
            Add | Subtract | Multiply | Divide | Remainder => {
                let (left, right) = (self.integer(left), self.integer(right));
                if matches!(op, Divide | Remainder) && self.constant(&right) == Some(0) {
                    self.report(right.span, "this divides by 0");
                }
                (left, right, Types::INTEGER)
            }
        };
        Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), ty, span }
    }

    pub(super) fn quantifier(&mut self, quantifier: &ast::Quantifier) -> (VarId, Domain) {
        let (ty, domain) = match &quantifier.domain {
            ast::Domain::Type(ty) => {
                let span = ty.span;
                let ty = self.type_expr(ty);
                if ty != Types::ERROR && self.types.count(ty) == 0 {
                    let message = format!("this cannot range over {}", self.types.show(ty));
                    self.report(span, message);
                }
                (ty, Domain::Type(ty))
            }
            ast::Domain::Counted { from, to, by } => {
                let (from, to) = (Box::new(self.integer(from)), Box::new(self.integer(to)));
                let by = match by {
                    Some(by) => self.integer(by),
                    None => Expr {
                        kind: ExprKind::Value(1),
                        ty: Types::INTEGER,
                        span: quantifier.name.span,
                    },
                };
                if self.constant(&by) == Some(0) {
                    self.report(by.span, "this range never ends: its step is 0");
                }
                let ty = match (self.constant(&from), self.constant(&to)) {
                    (Some(a), Some(b)) => {
                        self.types.add(Type::Range { first: a.min(b), last: a.max(b) })
                    }
                    _ => Types::INTEGER,
                };
                (ty, Domain::Counted { from, to, by: Box::new(by) })
            }
        };
        let var = self.variable(&quantifier.name.name, ty, Role::Value, false);
        self.declare(&quantifier.name, Symbol::Variable(var));
        (var, domain)
    }

    /// Binds an alias of a place or of a value.
    pub(super) fn alias(&mut self, name: &Ident, expr: &ast::Expr) -> Option<Binder> {
        let checked = self.expr(expr);
        let binder = match checked.kind {
            ExprKind::Undefined => {
                self.value(expr);
                return None;
            }
            ExprKind::Read(place) => {
                let is_writable = self.is_writable(place.root);
                let touches = self.touches_state[place.root.0 as usize];
                let role = Role::Reference { is_writable };
                let var = self.variable(&name.name, checked.ty, role, touches);
                Binder::Alias { var, place }
            }
            _ => {
                self.want_simple(checked.ty, expr.span);
                let var = self.variable(&name.name, checked.ty, Role::Value, false);
                Binder::AliasValue { var, value: checked }
            }
        };
        let (Binder::Alias { var, .. } | Binder::AliasValue { var, .. }) = binder else {
            return None;
        };
        self.declare(name, Symbol::Variable(var));
        Some(binder)
    }

    pub(super) fn is_writable(&self, var: VarId) -> bool {
        match self.role(var) {
            Role::Global | Role::Local => true,
            Role::Value => false,
            Role::Reference { is_writable } => is_writable,
        }
    }

    /// Checks a place to which a value is assigned.
    pub(super) fn target(&mut self, expr: &ast::Expr) -> Option<Place> {
        let place = self.place(expr)?;
        if !self.is_writable(place.root) {
            let name = self.variables[place.root.0 as usize].name.clone();
            let what = match self.role(place.root) {
                Role::Reference { .. } => "is not a `var` parameter",
                _ => "is bound by a quantifier or an alias",
            };
            self.report(expr.span, format!("`{name}` {what} and cannot be changed"));
            return None;
        }
        self.has_effects |= self.touches_state[place.root.0 as usize];
        Some(place)
    }

    pub(super) fn multiset(&mut self, expr: &ast::Expr) -> Option<Place> {
        let place = self.place(expr)?;
        match self.types.get(place.ty) {
            Type::Multiset { .. } => Some(place),
            Type::Error => None,
            _ => {
                let message =
                    format!("a multiset is needed here, this is {}", self.types.show(place.ty));
                self.report(expr.span, message);
                None
            }
        }
    }

    pub(super) fn place(&mut self, expr: &ast::Expr) -> Option<Place> {
        match &expr.kind {
            ast::ExprKind::Name(ident) => match self.find(ident)? {
                Symbol::Variable(root) => {
                    let ty = self.ty(root);
                    Some(Place { root, steps: Vec::new(), ty, span: expr.span })
                }
                _ => {
                    self.report(ident.span, format!("`{}` is not a variable", ident.name));
                    None
                }
            },
            ast::ExprKind::Field(inner, field) => {
                let mut place = self.place(inner)?;
                place.span = expr.span;
                let Type::Record(fields) = self.types.get(place.ty) else {
                    if place.ty != Types::ERROR {
                        let shown = self.types.show(place.ty);
                        self.report(field.span, format!("{shown} has no fields"));
                    }
                    return None;
                };
                let Some(found) = fields.iter().find(|f| f.name == field.name) else {
                    let names: Vec<String> =
                        fields.iter().map(|f| format!("`{}`", f.name)).collect();
                    let message = format!(
                        "there is no field `{}`; there is {}",
                        field.name,
                        names.join(", ")
                    );
                    self.report(field.span, message);
                    return None;
                };
                place.ty = found.ty;
                place.steps.push(PlaceStep::Field(found.offset));
                Some(place)
            }
            ast::ExprKind::Index(inner, index) => {
                let place = self.place(inner);
                let index = self.value(index);
                let mut place = place?;
                place.span = expr.span;
                match *self.types.get(place.ty) {
                    Type::Array { index: over, element } => {
                        if !self.types.overlap(over, index.ty) {
                            let message = format!(
                                "the index of this array is {}, not {}",
                                self.types.show(over),
                                self.types.show(index.ty)
                            );
                            self.report(index.span, message);
                            return None;
                        }
                        self.want_inside(over, &index);
                        let stride = self.types.slots(element);
                        place.ty = element;
                        place.steps.push(PlaceStep::Index { index: Box::new(index), over, stride });
                        Some(place)
                    }
                    Type::Multiset { element, .. } => {
                        self.want_index_of(&index, place.ty);
                        let stride = 1 + self.types.slots(element);
                        place.ty = element;
                        place.steps.push(PlaceStep::Element { index: Box::new(index), stride });
                        Some(place)
                    }
                    Type::Error => None,
                    _ => {
                        let shown = self.types.show(place.ty);
                        self.report(expr.span, format!("{shown} has no index"));
                        None
                    }
                }
            }
            ast::ExprKind::Call { .. } => {
                self.report(expr.span, "a variable is needed here, not the result of a function");
                None
            }
            _ => {
                self.report(expr.span, "a variable is needed here");
                None
            }
        }
    }

    pub(super) fn want_index_of(&mut self, index: &Expr, multiset: TypeId) {
        let is_index = match self.types.get(index.ty) {
            Type::Index { multiset: of } => self.types.same_shape(*of, multiset),
            Type::Error => true,
            _ => false,
        };
        if !is_index {
            let message = "an element of a multiset is named by the variable of `choose`, \
                           `multisetcount` or `multisetremovepred`";
            self.report(index.span, message);
        }
    }

    /// Reports a constant that is not a value of a type.
    pub(super) fn want_inside(&mut self, ty: TypeId, value: &Expr) {
        if let Some(code) = self.constant(value)
            && self.types.overlap(ty, value.ty)
            && self.types.count(ty) > 0
            && !self.types.pieces(ty).iter().any(|piece| piece.position(code).is_some())
        {
            let shown = self.types.show_code(value.ty, code);
            let message = format!("{shown} is not in {}", self.types.show(ty));
            self.report(value.span, message);
        }
    }

    /// Reports a value that does not fit into a type.
    pub(super) fn want_fit(&mut self, ty: TypeId, value: &Expr) {
        let fits = if self.types.is_simple(ty) && self.types.is_simple(value.ty) {
            self.types.overlap(ty, value.ty)
        } else {
            self.types.same_shape(ty, value.ty)
        };
        if fits {
            self.want_inside(ty, value);
        } else {
            let message = format!(
                "{} is needed here, this is {}",
                self.types.show(ty),
                self.types.show(value.ty)
            );
            self.report(value.span, message);
        }
    }

    fn call_expr(&mut self, name: &Ident, arguments: &[ast::Expr], span: Span) -> Expr {
        let Some((function, arguments)) = self.call(name, arguments) else { return error(span) };
        let Some(result) = self.functions[function.0 as usize].result else {
            self.report(span, format!("`{}` is a procedure and has no result", name.name));
            return error(span);
        };
        Expr { kind: ExprKind::Call { function, arguments }, ty: self.ty(result), span }
    }

    /// Checks a call's arguments.
    pub(super) fn call(
        &mut self,
        name: &Ident,
        arguments: &[ast::Expr],
    ) -> Option<(crate::murphi::ir::FunctionId, Vec<Argument>)> {
        if self.open.as_ref() == Some(&name.name) {
            self.report(name.span, format!("`{}` calls itself; there is no recursion", name.name));
            return None;
        }
        let function = match self.find(name)? {
            Symbol::Function(function) => function,
            _ => {
                self.report(name.span, format!("`{}` is not a procedure or function", name.name));
                return None;
            }
        };
        let declared = &self.functions[function.0 as usize];
        self.has_effects |= declared.has_effects;
        let params = declared.params.clone();
        if params.len() != arguments.len() {
            let message = format!(
                "`{}` takes {} argument{}, here {} given",
                name.name,
                params.len(),
                if params.len() == 1 { "" } else { "s" },
                match arguments.len() {
                    1 => "is 1".to_owned(),
                    count => format!("are {count}"),
                }
            );
            self.report(name.span, message);
            return None;
        }
        let mut checked = Vec::new();
        for (&param, argument) in params.iter().zip(arguments) {
            let ty = self.ty(param);
            let is_var = self.role(param) == Role::Reference { is_writable: true };
            if is_var {
                let place = self.target(argument)?;
                let fits = if self.types.is_simple(ty) && self.types.is_simple(place.ty) {
                    // The types must include each other, because assignments inside must fit
                    // outside and vice versa.
                    self.types.includes(ty, place.ty) && self.types.includes(place.ty, ty)
                } else {
                    self.types.same_shape(ty, place.ty)
                };
                if !fits {
                    let message = format!(
                        "a `var` parameter of {} is needed here, this is {}",
                        self.types.show(ty),
                        self.types.show(place.ty)
                    );
                    self.report(argument.span, message);
                }
                checked.push(Argument::Place(place));
                continue;
            }
            let value = self.expr(argument);
            if matches!(value.kind, ExprKind::Undefined) {
                if !self.want_simple(ty, argument.span) {
                    return None;
                }
                checked.push(Argument::Value(Expr { ty, ..value }));
                continue;
            }
            self.want_fit(ty, &value);
            checked.push(match value.kind {
                ExprKind::Read(place)
                    if !self.types.is_simple(ty) || self.types.includes(ty, place.ty) =>
                {
                    Argument::Place(place)
                }
                _ => Argument::Value(value),
            });
        }
        Some((function, checked))
    }

    // ---- constants ----

    /// Evaluates an integer constant.
    pub(super) fn constant_integer(&mut self, expr: &Expr) -> Option<i32> {
        if !self.types.is_integer(expr.ty) {
            let message =
                format!("an integer is needed here, this is {}", self.types.show(expr.ty));
            self.report(expr.span, message);
            return None;
        }
        let code = self.constant(expr);
        if code.is_none() && expr.ty != Types::ERROR {
            self.report(expr.span, "this must be constant");
        }
        code
    }

    /// Evaluates a constant expression.
    pub(super) fn constant(&self, expr: &Expr) -> Option<i32> {
        fold(expr)
    }
}

/// Evaluates an expression without variables.
pub(crate) fn fold(expr: &Expr) -> Option<i32> {
    use BinaryOp::*;
    Some(match &expr.kind {
        ExprKind::Value(code) => *code,
        ExprKind::Not(inner) => i32::from(fold(inner)? == 0),
        ExprKind::Negate(inner) => fold(inner)?.checked_neg()?,
        ExprKind::Binary(op, left, right) => {
            let (a, b) = (fold(left)?, fold(right)?);
            match op {
                Implies => i32::from(a == 0 || b != 0),
                Or => i32::from(a != 0 || b != 0),
                And => i32::from(a != 0 && b != 0),
                Less => i32::from(a < b),
                LessEqual => i32::from(a <= b),
                Equal => i32::from(a == b),
                NotEqual => i32::from(a != b),
                GreaterEqual => i32::from(a >= b),
                Greater => i32::from(a > b),
                Add => a.checked_add(b)?,
                Subtract => a.checked_sub(b)?,
                Multiply => a.checked_mul(b)?,
                Divide => a.checked_div(b)?,
                Remainder => a.checked_rem(b)?,
            }
        }
        ExprKind::Conditional(condition, yes, no) => {
            if fold(condition)? != 0 {
                fold(yes)?
            } else {
                fold(no)?
            }
        }
        _ => return None,
    })
}

fn error(span: Span) -> Expr {
    Expr { kind: ExprKind::Value(0), ty: Types::ERROR, span }
}
