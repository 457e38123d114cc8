//! A definition with its names resolved: the form that evaluators run and checkers read.
//!
//! Terms, variables and functions live in tables, indexed by ids. Every binder has a variable of
//! its own, and no function is recursive, so an environment is one slot per variable.

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

/// The property that a check demands of its expression.
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
    /// Returns the language's word for it.
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
    /// Bytes of its text.
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
    /// `W`, initial writes among them.
    Writes,
    /// `R`.
    Reads,
    /// `F`.
    Fences,
    /// `IW`.
    InitialWrites,
    /// `RMW`, what is in `R` and in `W`.
    ReadModifyWrites,
    /// `M`, what is in `R` or in `W`.
    Memory,
    /// `0`.
    EmptyRelation,
    /// `id`, each operation that counts with itself.
    Identity,
    /// `po`, initial writes before everything recorded.
    Po,
    /// `wr`.
    Wr,
    /// `ww`, the store order.
    Ww,
    /// `loc`, operations on one key.
    Loc,
    /// `ext`, operations that are not in `int`.
    Ext,
    /// `int`, operations of one session; an initial write is with itself only.
    Int,
    /// `txn`, operations of one transaction; all initial writes are of one.
    Transaction,
    /// `so`, the order of transactions that the clients bring; the initial one before all others.
    ClientOrder,
    /// `rt`, operations of which the first ended before the second began; in a definition about
    /// transactions, operations of such transactions.
    RealTime,
    /// The commit order that the definition declares: a total order of all transactions.
    CommitOrder,
    /// A name that only litmus tests have, and so only definitions of memory models.
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
    /// `rmw`, from what a read-modify-write reads to what it writes: here, with itself.
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
    /// The names that definitions about histories and about litmus tests share.
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

    /// Returns the predefined names of histories; `ww` is one only where a definition declares the
    /// store order.
    pub fn of_histories() -> impl Iterator<Item = (&'static str, Base)> {
        let own = [
            ("wr", Base::Wr),
            ("txn", Base::Transaction),
            ("so", Base::ClientOrder),
            ("rt", Base::RealTime),
        ];
        Base::SHARED.into_iter().chain(own)
    }

    /// Returns the predefined names of litmus tests; `rf` and `co` are cat's.
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

    /// Returns whether the name stands for a set or a relation.
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

/// An expression; kinds fit, and operands that are listed are at least one.
#[derive(Clone, Debug)]
pub enum Term {
    /// A predefined name.
    Base(Base),
    /// A name that is bound.
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
    /// `view(S)`, the orders that the threads of the operations of a set see, united.
    View(TermId),
    /// `let ... in a`.
    Let(Group, TermId),
    /// `union o in S do a end`.
    BigUnion {
        /// The operation, as a set of one.
        variable: VariableId,
        /// What it runs over.
        set: TermId,
        /// What is united.
        body: TermId,
        /// What the union is.
        kind: Kind,
    },
}

/// Names that are bound together, each to the value of its term.
#[derive(Clone, Debug)]
pub struct Group {
    /// Whether the terms may use the names: then the values are the least solution.
    pub recursive: bool,
    /// The names and their terms.
    pub bindings: Vec<(VariableId, TermId)>,
}

/// A name that is bound to a set or relation.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name; another variable may have the same.
    pub name: String,
    /// What it stands for.
    pub kind: Kind,
    /// Whether it is bound at the outermost level, so that it has one value in a run.
    pub is_global: bool,
}

/// A function; no function is recursive.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name; another function may have the same.
    pub name: String,
    /// What the arguments are bound to.
    pub parameters: Vec<VariableId>,
    /// What a call stands for.
    pub body: TermId,
    /// Number of outermost groups that are bound before it.
    pub globals_before: usize,
}

/// What a definition demands.
#[derive(Clone, Debug)]
pub struct Check {
    /// What is demanded.
    pub kind: CheckKind,
    /// Of what it is demanded.
    pub term: TermId,
    /// The name after `as`.
    pub name: Option<String>,
    /// Place of the whole statement.
    pub span: Span,
    /// For a check inside `forall o in S do ... end`: o, S, and what is bound before the check.
    pub forall: Option<(VariableId, TermId, Vec<Group>)>,
}

/// A definition with its names resolved.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Expressions with their places, indexed by [`TermId`].
    ///
    /// Expressions nested in one another, through calls too, are at most a few hundred deep.
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
    /// Whether it quantifies over total orders of all operations, `with mo from total-orders`.
    pub has_memory_order: bool,
    /// Whether it quantifies over total orders of all operations, one per thread,
    /// `with view from thread-orders`.
    pub has_views: bool,
}

impl Program {
    /// Returns an expression.
    pub fn term(&self, id: TermId) -> &Term {
        &self.terms[id.index()].0
    }

    /// Returns the place of an expression.
    pub fn span(&self, id: TermId) -> &Span {
        &self.terms[id.index()].1
    }

    /// Returns whether the definition is about transactions: whether it mentions one of the
    /// relations that only transactions have. Real time alone is between operations.
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
