//! The syntax tree of a Murphi description.

use std::sync::Arc;

/// A range of bytes in the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Span {
    pub(crate) start: u32,
    /// The byte after the last one.
    pub(crate) end: u32,
}

impl Span {
    pub(crate) fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end.max(self.start) }
    }
}

/// A name and its position.
#[derive(Clone, Debug)]
pub(crate) struct Ident {
    pub(crate) name: Arc<str>,
    pub(crate) span: Span,
}

/// A whole description: its items in the order of the text.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) items: Vec<Item>,
    /// The names of all lines `--@ data T`.
    pub(crate) data: Vec<Ident>,
}

#[derive(Debug)]
pub(crate) enum Item {
    Decl(Decl),
    Subprogram(Subprogram),
    Rule(Rule),
}

#[derive(Debug)]
pub(crate) enum Decl {
    Const { name: Ident, value: Expr },
    Type { name: Ident, ty: TypeExpr },
    Var { names: Vec<Ident>, ty: TypeExpr },
}

#[derive(Debug)]
pub(crate) struct TypeExpr {
    pub(crate) kind: TypeKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum TypeKind {
    Name(Ident),
    Range(Expr, Expr),
    Enum(Vec<Ident>),
    Scalarset(Expr),
    Union(Vec<TypeExpr>),
    Record(Vec<(Vec<Ident>, TypeExpr)>),
    Array(Box<TypeExpr>, Box<TypeExpr>),
    Multiset(Expr, Box<TypeExpr>),
}

/// A procedure or a function.
#[derive(Debug)]
pub(crate) struct Subprogram {
    pub(crate) name: Ident,
    pub(crate) params: Vec<Param>,
    pub(crate) returns: Option<TypeExpr>,
    pub(crate) decls: Vec<Decl>,
    pub(crate) body: Vec<Stmt>,
}

#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) is_var: bool,
    pub(crate) names: Vec<Ident>,
    pub(crate) ty: TypeExpr,
}

#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) kind: RuleKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum RuleKind {
    Simple {
        name: Option<Arc<str>>,
        /// The number before the name.
        priority: Option<i32>,
        guard: Option<Expr>,
        decls: Vec<Decl>,
        body: Vec<Stmt>,
        marks: Vec<Mark>,
    },
    Start {
        name: Option<Arc<str>>,
        decls: Vec<Decl>,
        body: Vec<Stmt>,
    },
    Invariant {
        name: Option<Arc<str>>,
        condition: Expr,
    },
    Ruleset {
        quantifiers: Vec<Quantifier>,
        rules: Vec<Rule>,
    },
    Alias {
        aliases: Vec<(Ident, Expr)>,
        rules: Vec<Rule>,
    },
    Choose {
        index: Ident,
        multiset: Expr,
        rules: Vec<Rule>,
    },
}

/// A structured comment before a rule.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) kind: MarkKind,
    pub(crate) arguments: Vec<(Ident, Expr)>,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MarkKind {
    Store,
    Load,
    Serialize,
}

#[derive(Debug)]
pub(crate) struct Quantifier {
    pub(crate) name: Ident,
    pub(crate) domain: Domain,
}

#[derive(Debug)]
pub(crate) enum Domain {
    Type(TypeExpr),
    Counted { from: Expr, to: Expr, by: Option<Expr> },
}

#[derive(Debug)]
pub(crate) struct Stmt {
    pub(crate) kind: StmtKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum StmtKind {
    Assign { target: Expr, value: Expr },
    If { branches: Vec<(Expr, Vec<Stmt>)>, otherwise: Vec<Stmt> },
    Switch { subject: Expr, cases: Vec<(Vec<Expr>, Vec<Stmt>)>, otherwise: Vec<Stmt> },
    For { quantifiers: Vec<Quantifier>, body: Vec<Stmt> },
    While { condition: Expr, body: Vec<Stmt> },
    Alias { aliases: Vec<(Ident, Expr)>, body: Vec<Stmt> },
    Call { name: Ident, arguments: Vec<Expr> },
    Return(Option<Expr>),
    Undefine(Expr),
    Clear(Expr),
    MultisetAdd { element: Expr, multiset: Expr },
    MultisetRemove { index: Expr, multiset: Expr },
    MultisetRemovePred { index: Ident, multiset: Expr, condition: Expr },
    Error(Arc<str>),
    Assert { condition: Expr, message: Option<Arc<str>> },
    Put(PutArgument),
}

#[derive(Debug)]
pub(crate) enum PutArgument {
    Text(Arc<str>),
    Value(Expr),
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
    /// Length of the longest path down the tree.
    pub(crate) height: u32,
}

impl Expr {
    pub(crate) fn new(kind: ExprKind, span: Span) -> Self {
        let height = match &kind {
            ExprKind::Number(_) | ExprKind::Undefined | ExprKind::Name(_) => 0,
            ExprKind::Field(inner, _)
            | ExprKind::Not(inner)
            | ExprKind::Negate(inner)
            | ExprKind::IsUndefined(inner)
            | ExprKind::IsMember(inner, _)
            | ExprKind::Quantified { body: inner, .. } => inner.height,
            ExprKind::Index(left, right) | ExprKind::Binary(_, left, right) => {
                left.height.max(right.height)
            }
            ExprKind::Conditional(condition, yes, no) => {
                condition.height.max(yes.height).max(no.height)
            }
            ExprKind::MultisetCount { multiset, condition, .. } => {
                multiset.height.max(condition.height)
            }
            ExprKind::Call { arguments, .. } => {
                arguments.iter().map(|argument| argument.height).max().unwrap_or(0)
            }
        };
        Expr { kind, span, height: height + 1 }
    }
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Number(i32),
    Undefined,
    Name(Ident),
    Field(Box<Expr>, Ident),
    Index(Box<Expr>, Box<Expr>),
    Call { name: Ident, arguments: Vec<Expr> },
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    Quantified { is_forall: bool, quantifiers: Vec<Quantifier>, body: Box<Expr> },
    IsUndefined(Box<Expr>),
    IsMember(Box<Expr>, Box<TypeExpr>),
    MultisetCount { index: Ident, multiset: Box<Expr>, condition: Box<Expr> },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BinaryOp {
    Implies,
    Or,
    And,
    Less,
    LessEqual,
    Equal,
    NotEqual,
    GreaterEqual,
    Greater,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}
