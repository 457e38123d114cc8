//! A definition with its names resolved, as evaluators run it and checkers read it.
//!
//! Terms, variables and functions are stored in tables, indexed by ids. Every binder has its own
//! variable, and no function is recursive, so an environment is one slot per variable.

use std::fmt;
use std::ops::Range;

/// The sort of a name or expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A set of operations.
    Set,
    /// A relation between operations.
    Relation,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Set => "a set",
            Kind::Relation => "a relation",
        })
    }
}

/// The property that a check requires of its expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckKind {
    /// The relation has no cycle.
    Acyclic,
    /// The relation relates no operation to itself.
    Irreflexive,
    /// The set or relation is empty.
    Empty,
}

impl CheckKind {
    /// Returns the keyword of the language.
    pub fn as_str(self) -> &'static str {
        match self {
            CheckKind::Acyclic => "acyclic",
            CheckKind::Irreflexive => "irreflexive",
            CheckKind::Empty => "empty",
        }
    }
}

/// A byte range of one of the files that make up a definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// Index of the file, in the order in which files are included.
    pub file: usize,
    /// Byte range in the text of the file.
    pub range: Range<usize>,
}

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the index into the program's table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index! {
    /// An expression of a [`Program`].
    TermId
}
index! {
    /// A variable of a [`Program`].
    VariableId
}
index! {
    /// A function of a [`Program`].
    FunctionId
}

/// A predefined set or relation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// `_`, every operation that counts.
    Everything,
    /// `emptyset`.
    EmptySet,
    /// `W`, including initial writes.
    Writes,
    /// `R`.
    Reads,
    /// `F`.
    Fences,
    /// `IW`.
    InitialWrites,
    /// `RMW`, the operations in both `R` and `W`.
    ReadModifyWrites,
    /// `M`, the operations in `R` or `W`.
    Memory,
    /// `0`.
    EmptyRelation,
    /// `id`, each operation that counts, paired with itself.
    Identity,
    /// `po`, including each initial write before every recorded operation.
    Po,
    /// `wr`.
    Wr,
    /// `ww`, the store order.
    Ww,
    /// `loc`, operations on one key.
    Loc,
    /// `ext`, operations that are not in `int`.
    Ext,
    /// `int`, operations of one session; an initial write is related only to itself.
    Int,
    /// `txn`, operations of one transaction; all initial writes belong to one transaction.
    Transaction,
    /// `so`, the order of transactions that the clients observed; the initial transaction is before
    /// all others.
    ClientOrder,
    /// `rt`, operations the first of which ended before the second began; in a definition about
    /// transactions, operations of transactions with this property.
    RealTime,
    /// The commit order that the definition declares: a total order of all transactions.
    CommitOrder,
    /// A name that exists only for litmus tests, and so only in definitions of memory models.
    Litmus(LitmusBase),
}

/// A predefined set or relation of litmus tests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LitmusBase {
    /// `MFENCE`, fences that order everything.
    FullFences,
    /// `LFENCE`, fences that keep earlier reads before later accesses.
    LoadFences,
    /// `SFENCE`, fences that keep earlier writes before later writes.
    StoreFences,
    /// `rmw`, from the read to the write of a read-modify-write, which is one operation here.
    ReadModifyWrite,
    /// `addr`, from a read to an access whose address is computed from it.
    Address,
    /// `data`, from a read to a write whose value is computed from it.
    Data,
    /// `ctrl`, from a read to the operations after a jump that depends on it.
    Control,
    /// The total order of all operations that the definition declares.
    MemoryOrder,
}

impl Base {
    /// Names that definitions about histories and about litmus tests share.
    const SHARED: [(&'static str, Base); 12] = [
        ("W", Base::Writes),
        ("R", Base::Reads),
        ("F", Base::Fences),
        ("IW", Base::InitialWrites),
        ("RMW", Base::ReadModifyWrites),
        ("M", Base::Memory),
        ("emptyset", Base::EmptySet),
        ("id", Base::Identity),
        ("po", Base::Po),
        ("loc", Base::Loc),
        ("ext", Base::Ext),
        ("int", Base::Int),
    ];

    /// Returns the predefined names of histories; `ww` is predefined only if a definition declares
    /// the store order.
    pub fn of_histories() -> impl Iterator<Item = (&'static str, Base)> {
        let own = [
            ("wr", Base::Wr),
            ("txn", Base::Transaction),
            ("so", Base::ClientOrder),
            ("rt", Base::RealTime),
        ];
        Base::SHARED.into_iter().chain(own)
    }

    /// Returns the predefined names of litmus tests; `rf` and `co` are the names of cat.
    pub fn of_litmus() -> impl Iterator<Item = (&'static str, Base)> {
        let own = [
            ("rf", Base::Wr),
            ("co", Base::Ww),
            ("MFENCE", Base::Litmus(LitmusBase::FullFences)),
            ("LFENCE", Base::Litmus(LitmusBase::LoadFences)),
            ("SFENCE", Base::Litmus(LitmusBase::StoreFences)),
            ("rmw", Base::Litmus(LitmusBase::ReadModifyWrite)),
            ("addr", Base::Litmus(LitmusBase::Address)),
            ("data", Base::Litmus(LitmusBase::Data)),
            ("ctrl", Base::Litmus(LitmusBase::Control)),
        ];
        Base::SHARED.into_iter().chain(own)
    }

    /// Returns whether the name denotes a set or a relation.
    pub fn kind(self) -> Kind {
        match self {
            Base::Everything
            | Base::EmptySet
            | Base::Writes
            | Base::Reads
            | Base::Fences
            | Base::InitialWrites
            | Base::ReadModifyWrites
            | Base::Memory
            | Base::Litmus(
                LitmusBase::FullFences | LitmusBase::LoadFences | LitmusBase::StoreFences,
            ) => Kind::Set,
            Base::EmptyRelation
            | Base::Identity
            | Base::Po
            | Base::Wr
            | Base::Ww
            | Base::Loc
            | Base::Ext
            | Base::Int
            | Base::Transaction
            | Base::ClientOrder
            | Base::RealTime
            | Base::CommitOrder
            | Base::Litmus(_) => Kind::Relation,
        }
    }
}

/// An expression. Its operands are of the required kinds, and every list of operands is non-empty.
#[derive(Clone, Debug)]
pub enum Term {
    /// A predefined name.
    Base(Base),
    /// A bound name.
    Variable(VariableId),
    /// `f(a, b)`.
    Apply(FunctionId, Vec<TermId>),
    /// `a | b`.
    Union(Vec<TermId>),
    /// `a & b`.
    Intersection(Vec<TermId>),
    /// `r ; s`.
    Sequence(Vec<TermId>),
    /// `a \ b`.
    Difference(TermId, TermId),
    /// `S * T`.
    Product(TermId, TermId),
    /// `r+`.
    Plus(TermId),
    /// `r*`.
    Star(TermId),
    /// `r?`.
    Optional(TermId),
    /// `r^-1`.
    Inverse(TermId),
    /// `~a`, within the operations that count.
    Complement(TermId),
    /// `[S]`.
    Identity(TermId),
    /// `domain(r)`.
    Domain(TermId),
    /// `range(r)`.
    Range(TermId),
    /// `view(S)`, the union of the orders that the threads of the operations of a set see.
    View(TermId),
    /// `let ... in a`.
    Let(Group, TermId),
    /// `union o in S do a end`.
    BigUnion {
        /// Variable that is bound to each operation, as a set of one.
        variable: VariableId,
        /// Set of operations.
        set: TermId,
        /// Expression whose values are united.
        body: TermId,
        /// Kind of the union.
        kind: Kind,
    },
}

/// Names that are bound together, each to the value of its term.
#[derive(Clone, Debug)]
pub struct Group {
    /// Whether the terms may use the names, so that the values are the least solution.
    pub recursive: bool,
    /// The names and their terms.
    pub bindings: Vec<(VariableId, TermId)>,
}

/// A name that is bound to a set or relation.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name; another variable may have the same.
    pub name: String,
    /// Kind of its value.
    pub kind: Kind,
    /// Whether it is bound at the outermost level, so that it has one value per evaluation.
    pub is_global: bool,
}

/// A function; no function is recursive.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name; another function may have the same.
    pub name: String,
    /// Variables to which the arguments are bound.
    pub parameters: Vec<VariableId>,
    /// Value of a call.
    pub body: TermId,
    /// Number of outermost groups that are bound before it.
    pub globals_before: usize,
}

/// A requirement of a definition.
#[derive(Clone, Debug)]
pub struct Check {
    /// Required property.
    pub kind: CheckKind,
    /// Expression that must have the property.
    pub term: TermId,
    /// The name after `as`.
    pub name: Option<String>,
    /// Position of the whole statement.
    pub span: Span,
    /// For a check inside `forall o in S do ... end`: o, S, and the groups that are bound before
    /// the check.
    pub forall: Option<(VariableId, TermId, Vec<Group>)>,
}

/// A definition with its names resolved.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Expressions with their positions, indexed by [`TermId`].
    ///
    /// The nesting of expressions, including through calls, is at most a few hundred levels deep.
    pub terms: Vec<(Term, Span)>,
    /// Variables, indexed by [`VariableId`].
    pub variables: Vec<Variable>,
    /// Functions, indexed by [`FunctionId`].
    pub functions: Vec<Function>,
    /// Groups bound at the outermost level, in the order of the text.
    pub globals: Vec<Group>,
    /// Checks, in the order of the text.
    pub checks: Vec<Check>,
    /// Whether the definition quantifies over store orders, `with ww from store-orders`.
    pub has_store_order: bool,
    /// Name of the commit order, if the definition quantifies over total orders of all
    /// transactions, `with co from commit-orders`.
    pub commit_order: Option<String>,
    /// Whether the definition quantifies over total orders of all operations,
    /// `with mo from total-orders`.
    pub has_memory_order: bool,
    /// Whether the definition quantifies over total orders of all operations, one per thread,
    /// `with view from thread-orders`.
    pub has_views: bool,
}

impl Program {
    /// Returns an expression.
    pub fn term(&self, id: TermId) -> &Term {
        &self.terms[id.index()].0
    }

    /// Returns the position of an expression.
    pub fn span(&self, id: TermId) -> &Span {
        &self.terms[id.index()].1
    }

    /// Returns whether the definition is about transactions, that is, whether it mentions a
    /// relation that only transactions have. Real time alone relates operations.
    pub fn is_transactional(&self) -> bool {
        self.commit_order.is_some()
            || self.terms.iter().any(|(term, _)| {
                let Term::Base(base) = term else { return false };
                matches!(base, Base::Transaction | Base::ClientOrder)
            })
    }

    /// Returns whether the definition mentions real time.
    pub fn mentions_real_time(&self) -> bool {
        self.terms.iter().any(|(term, _)| matches!(term, Term::Base(Base::RealTime)))
    }

    /// Returns a variable.
    pub fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.index()]
    }

    /// Returns a function.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }
}
