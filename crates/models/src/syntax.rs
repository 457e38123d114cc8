//! The syntax tree of a definition.

use consistory_definition::{CheckKind, Span};

#[derive(Clone, Debug)]
pub(crate) struct Ident {
    pub(crate) name: String,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
    /// Nesting depth; bounded, so that traversals of the tree can be recursive.
    pub(crate) depth: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Name(String),
    /// `_`.
    Everything,
    /// `0`.
    EmptyRelation,
    Call {
        name: Ident,
        arguments: Vec<Expr>,
    },
    Union(Vec<Expr>),
    Intersection(Vec<Expr>),
    Sequence(Vec<Expr>),
    Difference(Box<Expr>, Box<Expr>),
    Product(Box<Expr>, Box<Expr>),
    Plus(Box<Expr>),
    Star(Box<Expr>),
    Optional(Box<Expr>),
    Inverse(Box<Expr>),
    Complement(Box<Expr>),
    /// `[S]`.
    Identity(Box<Expr>),
    Let {
        group: Group,
        body: Box<Expr>,
    },
    /// `union o in S do e end`.
    BigUnion {
        variable: Ident,
        set: Box<Expr>,
        body: Box<Expr>,
    },
}

/// `let a = ... and b = ...`, with or without `rec`.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) recursive: bool,
    pub(crate) bindings: Vec<Binding>,
}

#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub(crate) name: Ident,
    /// A function's parameters; empty for a plain name.
    pub(crate) parameters: Vec<Ident>,
    pub(crate) body: Expr,
}

#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Let(Group),
    Include { path: String, span: Span },
    StoreOrder { name: Ident, from: Ident },
    Check { kind: CheckKind, expr: Expr, name: Option<Ident>, span: Span },
    Forall { variable: Ident, set: Expr, body: Vec<Statement>, span: Span },
}

#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) title: Option<String>,
    pub(crate) statements: Vec<Statement>,
}
