//! The syntax of cat models: the parser's result.

use std::sync::Arc as Rc;

/// A name, as a number assigned by the reader of the model.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Symbol(pub(crate) u32);

/// A position in one of the texts of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    /// Index of the text.
    pub(crate) file: u32,
    /// Byte offset in it.
    pub(crate) at: u32,
}

/// An operator between two expressions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Binary {
    Union,
    Add,
    Seq,
    Diff,
    Inter,
    Product,
}

/// An operator on one expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Unary {
    Plus,
    Star,
    Opt,
    Inverse,
    Complement,
    /// `[S]`
    Identity,
}

/// An expression with its position.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) place: Place,
    pub(crate) kind: ExprKind,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Zero,
    Universe,
    Name(Symbol),
    Tag(Symbol),
    Apply(Rc<Expr>, Rc<Expr>),
    Tuple(Vec<Rc<Expr>>),
    Elements(Vec<Rc<Expr>>),
    Binary(Binary, Rc<Expr>, Rc<Expr>),
    Unary(Unary, Rc<Expr>),
    Function(Rc<Pattern>, Rc<Expr>),
    Let { recursive: bool, bindings: Rc<Vec<Binding>>, body: Rc<Expr> },
    MatchSet { of: Rc<Expr>, empty: Option<Rc<Expr>>, some: Option<(Symbol, Symbol, Rc<Expr>)> },
    MatchTag { of: Rc<Expr>, clauses: Vec<(Symbol, Rc<Expr>)>, default: Option<Rc<Expr>> },
    Try(Rc<Expr>, Rc<Expr>),
    If(Condition, Rc<Expr>, Rc<Expr>),
}

/// The parameters of a function or procedure.
#[derive(Debug)]
pub(crate) enum Pattern {
    One(Symbol),
    Tuple(Vec<Symbol>),
}

/// A `name = expression` of a `let`.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) place: Place,
    /// One name, or the names of a tuple.
    pub(crate) target: Pattern,
    pub(crate) value: Rc<Expr>,
}

/// Condition of an `if`: whether a variant is selected.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Variant(String),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    /// Whether a set is contained in another; it is parsed, and rejected when evaluated.
    Subset(Rc<Expr>),
}

/// The property that a check requires of a relation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Test {
    Acyclic,
    Irreflexive,
    Empty,
}

/// Consequence of a check's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// The execution is allowed only if the check holds.
    Require,
    /// The name is reported if the check holds.
    Flag,
    /// The test is undefined if the check does not hold.
    Undefined,
    /// The model has an error if the check does not hold.
    Assert,
}

#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) place: Place,
    pub(crate) purpose: Purpose,
    pub(crate) negated: bool,
    pub(crate) test: Test,
    pub(crate) of: Rc<Expr>,
    pub(crate) name: Option<Rc<str>>,
}

#[derive(Debug)]
pub(crate) enum Statement {
    Let {
        recursive: bool,
        bindings: Rc<Vec<Binding>>,
    },
    Check(Check),
    Procedure {
        name: Symbol,
        parameters: Rc<Pattern>,
        body: Rc<Vec<Statement>>,
    },
    Call {
        place: Place,
        name: Symbol,
        argument: Rc<Expr>,
    },
    With {
        place: Place,
        name: Symbol,
        from: Rc<Expr>,
    },
    If {
        condition: Condition,
        then: Vec<Statement>,
        other: Vec<Statement>,
    },
    Forall {
        place: Place,
        name: Symbol,
        of: Rc<Expr>,
        body: Rc<Vec<Statement>>,
    },
    /// A type of tags and its members, from a bell file.
    Enum {
        name: Symbol,
        tags: Vec<Symbol>,
    },
}
