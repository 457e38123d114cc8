//! Finds the scalarsets that are symmetric.
//!
//! By the typing rules, values of a scalarset can only be copied, compared for equality and used as
//! indices. Two constructs can still distinguish them: a `for` over the scalarset whose result
//! depends on the order of its rounds, and `clear`, which picks the least value. The order of a
//! loop's rounds does not matter if each round writes only
//!
//! - to places that the loop's variable indexes, of variables that are not read or written
//!   elsewhere in the loop without that index;
//! - one and the same constant to a variable that the loop does not read;
//! - to a multiset that the loop does not use otherwise;
//! - a variable plus or minus a term to that variable, which the loop does not use otherwise.
//!
//! The order does not matter either in a loop with `return` that writes nothing and always returns
//! the same constant. Any other loop is *doubtful*: with symmetry it is run in every order of its
//! rounds, and as soon as the results differ, its scalarset becomes an ordinary type. `clear` makes
//! its scalarset an ordinary type at once. The search is then still correct, only larger.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::murphi::check_expr::fold;
use crate::murphi::ir::{
    Argument, Binder, Domain, Expr, ExprKind, FunctionId, Place, PlaceStep, Program, Stmt,
    StmtKind, VarId,
};
use crate::murphi::syntax::{BinaryOp, Span};
use crate::murphi::types::{Type, TypeId};

/// Scalarsets that may be permuted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symmetric {
    /// Scalarsets whose values can be distinguished by nothing, except perhaps by doubtful loops.
    pub(crate) types: Vec<TypeId>,
    /// For the variable of each doubtful loop, the scalarsets that it ranges over.
    pub(crate) doubtful: FxHashMap<VarId, Vec<TypeId>>,
    /// Scalarsets from which `clear` picks a value, and the first place where it does.
    pub(crate) cleared: Vec<(TypeId, Span)>,
}

/// Finds the scalarsets that are symmetric, and the loops that may distinguish their values.
pub(crate) fn symmetric(program: &Program) -> Symmetric {
    let mut finder =
        Finder { program, broken: FxHashSet::default(), symmetric: Symmetric::default() };
    for rule in program.rules.iter().chain(&program.starts) {
        finder.stmts(&rule.body);
    }
    for function in &program.functions {
        finder.stmts(&function.body);
    }
    let Finder { broken, mut symmetric, .. } = finder;
    symmetric.types = program.types.scalarsets().filter(|ty| !broken.contains(ty)).collect();
    symmetric
}

struct Finder<'a> {
    program: &'a Program,
    broken: FxHashSet<TypeId>,
    symmetric: Symmetric,
}

impl Finder<'_> {
    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::If { branches, otherwise } => {
                    branches.iter().for_each(|(_, body)| self.stmts(body));
                    self.stmts(otherwise);
                }
                StmtKind::Switch { cases, otherwise, .. } => {
                    cases.iter().for_each(|(_, body)| self.stmts(body));
                    self.stmts(otherwise);
                }
                StmtKind::While { body, .. } | StmtKind::Alias { body, .. } => self.stmts(body),
                StmtKind::For { var, domain, body } => {
                    self.stmts(body);
                    if let Domain::Type(ty) = domain {
                        let over = self.program.types.scalarsets_in(*ty);
                        if !over.is_empty() && !is_commutative(self.program, *var, body) {
                            self.symmetric.doubtful.insert(*var, over);
                        }
                    }
                }
                StmtKind::Clear(place) => {
                    let inside = self.program.types.scalarsets_in(place.ty);
                    for ty in inside {
                        if self.broken.insert(ty) {
                            self.symmetric.cleared.push((ty, stmt.span));
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Kind of a loop's write to a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Write {
    /// To places that the loop's variable indexes, at this step of their paths.
    Indexed(usize),
    /// A constant, or undefined.
    Constant(Option<i32>),
    Sum,
    Multiset,
    Other,
}

struct Loop<'a> {
    program: &'a Program,
    /// The loop's variable and other variables with the same value.
    same: FxHashSet<VarId>,
    roots: FxHashMap<VarId, Root>,
    writes: Vec<(VarId, Write)>,
    /// Variables that are read, and the step at which the loop's variable indexes them.
    reads: FxHashSet<(VarId, Option<usize>)>,
    returns: Vec<Option<i32>>,
}

/// The variable to which an alias, a parameter or a place belongs.
#[derive(Clone, Copy)]
struct Root {
    var: VarId,
    /// The step at which the loop's variable indexes it.
    indexed: Option<usize>,
    /// Number of steps of the path.
    steps: usize,
}

fn is_commutative(program: &Program, var: VarId, body: &[Stmt]) -> bool {
    let mut rounds = Loop {
        program,
        same: FxHashSet::from_iter([var]),
        roots: FxHashMap::default(),
        writes: Vec::new(),
        reads: FxHashSet::default(),
        returns: Vec::new(),
    };
    rounds.stmts(body, true);
    let Loop { writes, reads, returns, .. } = rounds;
    if let [first, ..] = returns[..] {
        return writes.is_empty() && first.is_some() && returns.iter().all(|r| *r == first);
    }
    writes.iter().all(|(root, write)| {
        let indexed = match write {
            Write::Indexed(step) => Some(Some(*step)),
            _ => None,
        };
        *write != Write::Other
            && reads.iter().all(|(var, step)| var != root || Some(*step) == indexed)
            && writes.iter().all(|(other, kind)| other != root || kind == write)
    })
}

impl Loop<'_> {
    fn stmts(&mut self, stmts: &[Stmt], is_outermost: bool) {
        stmts.iter().for_each(|stmt| self.stmt(stmt, is_outermost));
    }

    fn root(&mut self, place: &Place) -> Root {
        let plain = Root { var: place.root, indexed: None, steps: 0 };
        let mut root = self.roots.get(&place.root).copied().unwrap_or(plain);
        for step in &place.steps {
            if let PlaceStep::Index { index, .. } | PlaceStep::Element { index, .. } = step {
                match &index.kind {
                    ExprKind::Read(inner) if self.same.contains(&inner.root) => {
                        root.indexed = root.indexed.or(Some(root.steps));
                    }
                    _ => self.expr(index),
                }
            }
            root.steps += 1;
        }
        root
    }

    fn read(&mut self, place: &Place) {
        let root = self.root(place);
        self.reads.insert((root.var, root.indexed));
    }

    fn write(&mut self, place: &Place, kind: Write) {
        let root = self.root(place);
        self.writes.push((root.var, root.indexed.map_or(kind, Write::Indexed)));
    }

    fn stmt(&mut self, stmt: &Stmt, is_outermost: bool) {
        match &stmt.kind {
            StmtKind::Assign { target, value } => {
                if let Some(added) = summand(target, value) {
                    self.expr(added);
                    return self.write(target, Write::Sum);
                }
                self.expr(value);
                let kind = fold(value).map_or(Write::Other, |code| Write::Constant(Some(code)));
                self.write(target, kind);
            }
            StmtKind::Undefine(place) | StmtKind::Clear(place) => {
                self.write(place, Write::Constant(None));
            }
            StmtKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.expr(condition);
                    self.stmts(body, is_outermost);
                }
                self.stmts(otherwise, is_outermost);
            }
            StmtKind::Switch { subject, cases, otherwise } => {
                self.expr(subject);
                for (labels, body) in cases {
                    labels.iter().for_each(|label| self.expr(label));
                    self.stmts(body, is_outermost);
                }
                self.stmts(otherwise, is_outermost);
            }
            StmtKind::For { domain, body, .. } => {
                self.domain(domain);
                self.stmts(body, is_outermost);
            }
            StmtKind::While { condition, body } => {
                self.expr(condition);
                self.stmts(body, is_outermost);
            }
            StmtKind::Alias { aliases, body } => {
                for alias in aliases {
                    match alias {
                        Binder::Alias { var, place } => self.bind(*var, place),
                        Binder::AliasValue { value, .. } => self.expr(value),
                        _ => {}
                    }
                }
                self.stmts(body, is_outermost);
            }
            StmtKind::Call { function, arguments } => self.call(*function, arguments),
            // A return of a subprogram that the loop calls does not end the loop.
            StmtKind::Return(value) => {
                value.iter().for_each(|value| self.expr(value));
                if is_outermost {
                    self.returns.push(value.as_ref().map_or(Some(0), fold));
                }
            }
            StmtKind::Add { element, multiset } => {
                self.expr(element);
                self.write(multiset, Write::Multiset);
            }
            StmtKind::Remove { index, multiset } => {
                self.expr(index);
                self.write(multiset, Write::Other);
            }
            StmtKind::RemovePred { multiset, condition, .. } => {
                // An element that one round removes is not present in the next, whichever round
                // comes first.
                let reads = self.reads.clone();
                let root = self.root(multiset).var;
                self.expr(condition);
                self.reads.retain(|read| read.0 != root || reads.contains(read));
                self.write(multiset, Write::Constant(None));
            }
            StmtKind::Assert { condition, .. } => self.expr(condition),
            StmtKind::Error(_) | StmtKind::PutText(_) => {}
            StmtKind::PutValue(value) => self.expr(value),
        }
    }

    fn bind(&mut self, var: VarId, place: &Place) {
        if self.same.contains(&place.root) {
            self.same.insert(var);
            return;
        }
        let root = self.root(place);
        self.roots.insert(var, root);
    }

    fn domain(&mut self, domain: &Domain) {
        if let Domain::Counted { from, to, by } = domain {
            [from, to, by].into_iter().for_each(|part| self.expr(part));
        }
    }

    /// Analyses a subprogram, with its parameters bound to the arguments of the call.
    fn call(&mut self, function: FunctionId, arguments: &[Argument]) {
        let program = self.program;
        let function = &program.functions[function.0 as usize];
        for (&param, argument) in function.params.iter().zip(arguments) {
            self.same.remove(&param);
            self.roots.remove(&param);
            match argument {
                Argument::Place(place) => self.bind(param, place),
                Argument::Value(value) => self.expr(value),
            }
        }
        // Locals are new in each call, so they carry no value from round to round.
        let (writes, reads) = (self.writes.len(), self.reads.clone());
        self.stmts(&function.body, false);
        let is_local = |var: &VarId| function.locals.contains(var);
        let mut at = 0;
        self.writes.retain(|(var, _)| {
            at += 1;
            at <= writes || !is_local(var)
        });
        self.reads.retain(|read| reads.contains(read) || !is_local(&read.0));
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Value(_) | ExprKind::Undefined => {}
            ExprKind::Read(place) | ExprKind::IsUndefined(place) => {
                if self.same.contains(&place.root) {
                    return;
                }
                self.read(place);
            }
            ExprKind::Not(inner) | ExprKind::Negate(inner) | ExprKind::IsMember(inner, _) => {
                self.expr(inner);
            }
            ExprKind::Binary(_, left, right) => {
                self.expr(left);
                self.expr(right);
            }
            ExprKind::Conditional(condition, yes, no) => {
                [condition, yes, no].into_iter().for_each(|part| self.expr(part));
            }
            ExprKind::Quantified { domain, body, .. } => {
                self.domain(domain);
                self.expr(body);
            }
            ExprKind::Call { function, arguments } => self.call(*function, arguments),
            ExprKind::Count { multiset, condition, .. } => {
                self.read(multiset);
                self.expr(condition);
            }
        }
    }
}

/// Returns `e` for the statements `x := x + e` and `x := x - e`, where `x` is a plain variable.
fn summand<'a>(target: &Place, value: &'a Expr) -> Option<&'a Expr> {
    let ExprKind::Binary(BinaryOp::Add | BinaryOp::Subtract, left, right) = &value.kind else {
        return None;
    };
    let ExprKind::Read(place) = &left.kind else { return None };
    let is_same = place.root == target.root && place.steps.is_empty() && target.steps.is_empty();
    is_same.then_some(right)
}

impl crate::murphi::types::Types {
    /// Lists the scalarsets whose values may occur in a value of a type.
    fn scalarsets_in(&self, ty: TypeId) -> Vec<TypeId> {
        match self.get(ty) {
            Type::Scalarset { .. } => vec![ty],
            Type::Union(members) => members.iter().flat_map(|&m| self.scalarsets_in(m)).collect(),
            Type::Record(fields) => fields.iter().flat_map(|f| self.scalarsets_in(f.ty)).collect(),
            Type::Array { element, .. } | Type::Multiset { element, .. } => {
                self.scalarsets_in(*element)
            }
            _ => Vec::new(),
        }
    }
}
