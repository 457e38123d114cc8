//! A description after checking: names are resolved, and every expression has a type.
//!
//! Subprograms cannot be recursive, so every variable has a fixed place in memory; locals,
//! parameters and results come after the state.

use std::sync::Arc;

use crate::murphi::syntax::{BinaryOp, Span};
use crate::murphi::types::{Piece, TypeId, Types};

/// Index of a variable of any kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct VarId(pub(crate) u32);

/// Index of a procedure or function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FunctionId(pub(crate) u32);

#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: Arc<str>,
    pub(crate) ty: TypeId,
    pub(crate) role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// A part of the state.
    Global,
    /// A local of a rule or subprogram, or the result of a function.
    Local,
    /// Bound by a quantifier or `choose`, or an alias of a value: it holds a code and is not
    /// assigned to.
    Value,
    /// An alias of a place or a parameter: its slot holds an address. A parameter without `var` has
    /// a second slot for an argument that has no address.
    Reference { is_writable: bool },
}

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) types: Types,
    pub(crate) variables: Vec<Variable>,
    pub(crate) globals: Vec<VarId>,
    pub(crate) functions: Vec<Function>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) starts: Vec<Rule>,
    pub(crate) invariants: Vec<Invariant>,
    /// The data type, if the description names one.
    pub(crate) data: Option<TypeId>,
}

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    pub(crate) params: Vec<VarId>,
    /// Variable for the result.
    pub(crate) result: Option<VarId>,
    pub(crate) locals: Vec<VarId>,
    pub(crate) body: Vec<Stmt>,
    /// Whether it assigns to the state or through a `var` parameter.
    pub(crate) has_effects: bool,
    pub(crate) span: Span,
}

/// Bindings around a rule, outermost first.
#[derive(Clone, Debug)]
pub(crate) enum Binder {
    Quantifier { var: VarId, values: Vec<i32> },
    Alias { var: VarId, place: Place },
    AliasValue { var: VarId, value: Expr },
    Choose { var: VarId, multiset: Place },
}

/// A rule or a start state.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) name: Arc<str>,
    /// Priority; only enabled rules with the least number fire.
    pub(crate) priority: i32,
    pub(crate) binders: Vec<Binder>,
    pub(crate) guard: Option<Expr>,
    pub(crate) locals: Vec<VarId>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct Invariant {
    pub(crate) name: Arc<str>,
    pub(crate) binders: Vec<Binder>,
    pub(crate) condition: Expr,
    pub(crate) span: Span,
}

/// A mark of a rule, typed in the rule's scope.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) kind: MarkKind,
    pub(crate) proc: Option<Expr>,
    pub(crate) block: Option<Expr>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum MarkKind {
    /// The quantifier whose value is stored.
    Store {
        value: VarId,
    },
    Load {
        from: Place,
    },
    Serialize {
        from: Place,
    },
}

/// A place of values: a variable and a path into it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) root: VarId,
    pub(crate) steps: Vec<PlaceStep>,
    pub(crate) ty: TypeId,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum PlaceStep {
    /// A field at this offset in slots.
    Field(u32),
    Index {
        index: Box<Expr>,
        over: TypeId,
        stride: u32,
    },
    /// An element of a multiset; its first slot indicates whether it is present.
    Element {
        index: Box<Expr>,
        stride: u32,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) ty: TypeId,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Value(i32),
    Undefined,
    /// The contents of a place; contents that are not simple can only be copied.
    Read(Place),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    Quantified {
        is_forall: bool,
        var: VarId,
        domain: Domain,
        body: Box<Expr>,
    },
    IsUndefined(Place),
    IsMember(Box<Expr>, Vec<Piece>),
    Call {
        function: FunctionId,
        arguments: Vec<Argument>,
    },
    Count {
        var: VarId,
        multiset: Place,
        condition: Box<Expr>,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Argument {
    Place(Place),
    Value(Expr),
}

/// Values of a quantifier or a `for` loop.
#[derive(Clone, Debug)]
pub(crate) enum Domain {
    Type(TypeId),
    Counted { from: Box<Expr>, to: Box<Expr>, by: Box<Expr> },
}

#[derive(Clone, Debug)]
pub(crate) struct Stmt {
    pub(crate) kind: StmtKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum StmtKind {
    /// Assigns a value, which may be simple or not.
    Assign {
        target: Place,
        value: Expr,
    },
    If {
        branches: Vec<(Expr, Vec<Stmt>)>,
        otherwise: Vec<Stmt>,
    },
    Switch {
        subject: Expr,
        cases: Vec<(Vec<Expr>, Vec<Stmt>)>,
        otherwise: Vec<Stmt>,
    },
    For {
        var: VarId,
        domain: Domain,
        body: Vec<Stmt>,
    },
    While {
        condition: Expr,
        body: Vec<Stmt>,
    },
    Alias {
        aliases: Vec<Binder>,
        body: Vec<Stmt>,
    },
    Call {
        function: FunctionId,
        arguments: Vec<Argument>,
    },
    Return(Option<Expr>),
    Undefine(Place),
    Clear(Place),
    Add {
        element: Expr,
        multiset: Place,
    },
    Remove {
        index: Expr,
        multiset: Place,
    },
    RemovePred {
        var: VarId,
        multiset: Place,
        condition: Expr,
    },
    Error(Arc<str>),
    Assert {
        condition: Expr,
        message: Option<Arc<str>>,
    },
    PutText(Arc<str>),
    PutValue(Expr),
}
