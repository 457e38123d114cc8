//! The syntax tree of a definition.

use std::ops::Range;

/// A byte range of one of the files that make up a definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) file: usize,
    pub(crate) range: Range<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Ident {
    pub(crate) name: String,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
    /// How deeply it is nested; bounded, so that walks over the tree can recurse.
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

/// What a check asks of its expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckKind {
    /// It has no cycle.
    Acyclic,
    /// It relates no operation with itself.
    Irreflexive,
    /// It holds nothing.
    Empty,
}

impl CheckKind {
    /// Gives the language's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            CheckKind::Acyclic => "acyclic",
            CheckKind::Irreflexive => "irreflexive",
            CheckKind::Empty => "empty",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) title: Option<String>,
    pub(crate) statements: Vec<Statement>,
}
