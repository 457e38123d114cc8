//! A definition with its names resolved: what the evaluator runs.
//!
//! Terms, variables and functions live in tables. Every binder has a variable of its own, and no
//! function is recursive, so an environment is one slot a variable.

use crate::diagnostic::Kind;
use crate::syntax::{CheckKind, Span};

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub(crate) struct $name(pub(crate) u32);

        impl $name {
            pub(crate) fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index! {
    /// A place in [`Program::terms`].
    TermId
}
index! {
    /// A place in [`Program::variables`].
    VariableId
}
index! {
    /// A place in [`Program::functions`].
    FunctionId
}

/// A predefined set or relation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Base {
    Everything,
    EmptySet,
    Writes,
    Reads,
    Fences,
    InitialWrites,
    ReadModifyWrites,
    Memory,
    EmptyRelation,
    Identity,
    Po,
    Wr,
    Ww,
    Loc,
    Ext,
    Int,
}

impl Base {
    /// The predefined names; `ww` is one only where a definition declares the store order.
    pub(crate) const NAMED: [(&'static str, Base); 13] = [
        ("W", Base::Writes),
        ("R", Base::Reads),
        ("F", Base::Fences),
        ("IW", Base::InitialWrites),
        ("RMW", Base::ReadModifyWrites),
        ("M", Base::Memory),
        ("emptyset", Base::EmptySet),
        ("id", Base::Identity),
        ("po", Base::Po),
        ("wr", Base::Wr),
        ("loc", Base::Loc),
        ("ext", Base::Ext),
        ("int", Base::Int),
    ];

    pub(crate) fn kind(self) -> Kind {
        match self {
            Base::Everything
            | Base::EmptySet
            | Base::Writes
            | Base::Reads
            | Base::Fences
            | Base::InitialWrites
            | Base::ReadModifyWrites
            | Base::Memory => Kind::Set,
            Base::EmptyRelation
            | Base::Identity
            | Base::Po
            | Base::Wr
            | Base::Ww
            | Base::Loc
            | Base::Ext
            | Base::Int => Kind::Relation,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Term {
    Base(Base),
    Variable(VariableId),
    Apply(FunctionId, Vec<TermId>),
    Union(Vec<TermId>),
    Intersection(Vec<TermId>),
    Sequence(Vec<TermId>),
    Difference(TermId, TermId),
    Product(TermId, TermId),
    Plus(TermId),
    Star(TermId),
    Optional(TermId),
    Inverse(TermId),
    Complement(TermId),
    Identity(TermId),
    Domain(TermId),
    Range(TermId),
    Let(Group, TermId),
    BigUnion { variable: VariableId, set: TermId, body: TermId, kind: Kind },
}

/// Names that are bound together, each to the value of its term.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Whether the terms may use the names: then the values are the least solution.
    pub(crate) recursive: bool,
    pub(crate) bindings: Vec<(VariableId, TermId)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Whether it is bound at the outermost level, so that it has one value in a run.
    pub(crate) is_global: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) parameters: Vec<VariableId>,
    pub(crate) body: TermId,
    /// How many outermost groups are bound before it.
    pub(crate) globals_before: usize,
}

/// What a definition demands.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) kind: CheckKind,
    pub(crate) term: TermId,
    pub(crate) name: Option<String>,
    pub(crate) span: Span,
    /// For a check inside `forall o in S do ... end`: o, S, and what is bound before the check.
    pub(crate) forall: Option<(VariableId, TermId, Vec<Group>)>,
}

/// A definition with its names resolved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) terms: Vec<(Term, Span)>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) functions: Vec<Function>,
    /// The groups bound at the outermost level, in order.
    pub(crate) globals: Vec<Group>,
    pub(crate) checks: Vec<Check>,
    /// Whether the definition quantifies over store orders.
    pub(crate) has_store_order: bool,
}

impl Program {
    pub(crate) fn term(&self, id: TermId) -> &Term {
        &self.terms[id.index()].0
    }

    pub(crate) fn span(&self, id: TermId) -> &Span {
        &self.terms[id.index()].1
    }

    pub(crate) fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.index()]
    }

    pub(crate) fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }
}
