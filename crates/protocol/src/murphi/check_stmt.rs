//! Checking statements.

use crate::murphi::check::Checker;
use crate::murphi::ir::{ExprKind, Stmt, StmtKind};
use crate::murphi::syntax::{self as ast, PutArgument};
use crate::murphi::types::{Type, Types};

impl Checker<'_> {
    pub(super) fn stmts(&mut self, stmts: &[ast::Stmt]) -> Vec<Stmt> {
        let checked = stmts
            .iter()
            .filter_map(|stmt| self.stmt(stmt).map(|kind| Stmt { kind, span: stmt.span }));
        checked.collect()
    }

    /// Checks a statement; a statement with an error is omitted.
    fn stmt(&mut self, stmt: &ast::Stmt) -> Option<StmtKind> {
        Some(match &stmt.kind {
            ast::StmtKind::Assign { target, value } => {
                let target = self.target(target);
                let value = self.expr(value);
                let target = target?;
                if matches!(value.kind, ExprKind::Undefined) {
                    return Some(StmtKind::Undefine(target));
                }
                self.want_fit(target.ty, &value);
                StmtKind::Assign { target, value }
            }
            ast::StmtKind::If { branches, otherwise } => {
                let mut checked = Vec::new();
                for (condition, body) in branches {
                    let condition = self.condition(condition);
                    checked.push((condition, self.stmts(body)));
                }
                StmtKind::If { branches: checked, otherwise: self.stmts(otherwise) }
            }
            ast::StmtKind::Switch { subject, cases, otherwise } => {
                let subject = self.value(subject);
                let mut checked = Vec::new();
                for (labels, body) in cases {
                    let mut values = Vec::new();
                    for label in labels {
                        let value = self.value(label);
                        if self.types.overlap(subject.ty, value.ty) {
                            self.want_inside(subject.ty, &value);
                        } else {
                            let message = format!(
                                "{} is needed here, this is {}",
                                self.types.show(subject.ty),
                                self.types.show(value.ty)
                            );
                            self.report(label.span, message);
                        }
                        values.push(value);
                    }
                    checked.push((values, self.stmts(body)));
                }
                let otherwise = self.stmts(otherwise);
                StmtKind::Switch { subject, cases: checked, otherwise }
            }
            ast::StmtKind::For { quantifiers, body } => {
                let (mut bound, mut body) = self.in_scope(|checker| {
                    let bound: Vec<_> = quantifiers.iter().map(|q| checker.quantifier(q)).collect();
                    (bound, checker.stmts(body))
                });
                let (var, domain) = bound.remove(0);
                for (var, domain) in bound.into_iter().rev() {
                    let kind = StmtKind::For { var, domain, body };
                    body = vec![Stmt { kind, span: stmt.span }];
                }
                StmtKind::For { var, domain, body }
            }
            ast::StmtKind::While { condition, body } => {
                let condition = self.condition(condition);
                StmtKind::While { condition, body: self.stmts(body) }
            }
            ast::StmtKind::Alias { aliases, body } => {
                let (aliases, body) = self.in_scope(|checker| {
                    let mut checked = Vec::new();
                    for (name, expr) in aliases {
                        checked.extend(checker.alias(name, expr));
                    }
                    (checked, checker.stmts(body))
                });
                StmtKind::Alias { aliases, body }
            }
            ast::StmtKind::Call { name, arguments } => {
                let (function, arguments) = self.call(name, arguments)?;
                StmtKind::Call { function, arguments }
            }
            ast::StmtKind::Return(value) => {
                let value = value.as_ref().map(|value| (self.expr(value), value));
                match (self.result, value) {
                    (Some(result), Some((checked, value))) => {
                        if matches!(checked.kind, ExprKind::Undefined) {
                            self.value(value);
                            return None;
                        }
                        self.want_fit(self.ty(result), &checked);
                        StmtKind::Return(Some(checked))
                    }
                    (None, None) => StmtKind::Return(None),
                    (Some(_), None) => {
                        self.report(stmt.span, "a function returns a value");
                        return None;
                    }
                    (None, Some((_, value))) => {
                        let what = if self.is_in_function { "a procedure" } else { "a rule" };
                        self.report(value.span, format!("{what} returns no value"));
                        return None;
                    }
                }
            }
            ast::StmtKind::Undefine(target) => StmtKind::Undefine(self.target(target)?),
            ast::StmtKind::Clear(target) => StmtKind::Clear(self.target(target)?),
            ast::StmtKind::MultisetAdd { element, multiset } => {
                let value = self.expr(element);
                let place = self.target(multiset);
                let multiset = place.and_then(|_| self.multiset(multiset))?;
                let Type::Multiset { element: ty, .. } = *self.types.get(multiset.ty) else {
                    return None;
                };
                if matches!(value.kind, ExprKind::Undefined) {
                    self.value(element);
                    return None;
                }
                self.want_fit(ty, &value);
                StmtKind::Add { element: value, multiset }
            }
            ast::StmtKind::MultisetRemove { index, multiset } => {
                let index = self.value(index);
                let place = self.target(multiset);
                let multiset = place.and_then(|_| self.multiset(multiset))?;
                self.want_index_of(&index, multiset.ty);
                StmtKind::Remove { index, multiset }
            }
            ast::StmtKind::MultisetRemovePred { index, multiset, condition } => {
                let place = self.target(multiset);
                let multiset = place.and_then(|_| self.multiset(multiset))?;
                let (var, condition) = self.in_scope(|checker| {
                    let var = checker.multiset_index(index, multiset.ty);
                    (var, checker.condition(condition))
                });
                StmtKind::RemovePred { var, multiset, condition }
            }
            ast::StmtKind::Error(message) => StmtKind::Error(message.clone()),
            ast::StmtKind::Assert { condition, message } => {
                let condition = self.condition(condition);
                StmtKind::Assert { condition, message: message.clone() }
            }
            ast::StmtKind::Put(PutArgument::Text(text)) => StmtKind::PutText(text.clone()),
            ast::StmtKind::Put(PutArgument::Value(value)) => {
                let checked = self.expr(value);
                if checked.ty != Types::ERROR && matches!(checked.kind, ExprKind::Call { .. }) {
                    self.value(value);
                }
                StmtKind::PutValue(checked)
            }
        })
    }
}
