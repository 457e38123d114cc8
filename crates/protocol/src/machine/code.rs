//! Executable code: trees with resolved addresses.
//!
//! Memory is an array of slots, one for each simple value: the state first, then what rules and
//! subprograms need while they run. A slot holds a code or [`UNDEFINED`]. Rules are lowered once
//! for each choice of their parameters, so that most addresses are constants.

use std::sync::Arc;

use crate::murphi::{Piece, Span, TypeId};

/// What a slot without a value holds.
pub(crate) const UNDEFINED: i32 = i32::MIN;

/// Where something can go wrong, and what.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Site {
    pub(crate) span: Span,
    pub(crate) kind: FaultKind,
}

/// What can go wrong when a rule runs.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum FaultKind {
    /// A variable without a value was read.
    #[error("`{place}` is undefined")]
    Undefined {
        /// The variable, as the text has it.
        place: String,
    },
    /// A value does not belong to the type of a variable or an index.
    #[error("the value of `{value}` is not in {ty}")]
    OutOfRange {
        /// The value, as the text has it.
        value: String,
        /// The type.
        ty: String,
    },
    /// A division by 0.
    #[error("division by 0")]
    DivisionByZero,
    /// A result that does not fit into 32 bits.
    #[error("this is too large")]
    Overflow,
    /// An assertion that does not hold.
    #[error("assertion failed{}{}", if message.is_empty() { "" } else { ": " }, message)]
    Assertion {
        /// What it says.
        message: String,
    },
    /// An `error` statement.
    #[error("error: {message}")]
    Error {
        /// What it says.
        message: String,
    },
    /// A loop that does not end, or not soon.
    #[error("the loop went on for more than {limit} rounds")]
    EndlessLoop {
        /// How many rounds are allowed.
        limit: u32,
    },
    /// An element was added to a full multiset.
    #[error("the multiset is full, it holds {capacity} elements")]
    MultisetFull {
        /// How many it can hold.
        capacity: u32,
    },
    /// A multiset has no such element.
    #[error("the multiset has no such element")]
    NoElement,
    /// With symmetry: a loop over a scalarset gives different results in different orders.
    #[error("the result of this loop depends on the order of its rounds")]
    OrderedLoop,
    /// A function ended without a result.
    #[error("the function `{function}` ends without `return`")]
    NoReturn {
        /// The function.
        function: String,
    },
}

/// Names a [`Site`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct SiteId(pub(crate) u32);

/// An expression.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Const(i32),
    Load {
        at: u32,
        site: SiteId,
    },
    LoadFrom {
        at: Box<Address>,
        site: SiteId,
    },
    /// Whether a slot holds a code.
    Is {
        at: u32,
        code: i32,
        site: SiteId,
    },
    IsNot {
        at: u32,
        code: i32,
        site: SiteId,
    },
    Equal(Box<[Code; 2]>),
    Unequal(Box<[Code; 2]>),
    Less(Box<[Code; 2]>),
    LessEqual(Box<[Code; 2]>),
    Add(Box<[Code; 2]>, SiteId),
    Subtract(Box<[Code; 2]>, SiteId),
    Multiply(Box<[Code; 2]>, SiteId),
    Divide(Box<[Code; 2]>, SiteId),
    Remainder(Box<[Code; 2]>, SiteId),
    And(Box<[Code]>),
    Or(Box<[Code]>),
    Not(Box<Code>),
    Conditional(Box<[Code; 3]>),
    Exists {
        slot: u32,
        domain: Box<Range>,
        body: Box<Code>,
    },
    Forall {
        slot: u32,
        domain: Box<Range>,
        body: Box<Code>,
    },
    IsUndefined(Box<Address>),
    IsMember(Box<Code>, Box<[Piece]>),
    Call(Box<Call>),
    Count(Box<Scan>),
}

/// What a loop ranges over.
#[derive(Clone, Debug)]
pub(crate) enum Range {
    Pieces { pieces: Box<[Piece]>, site: SiteId },
    Counted { from: Code, to: Code, by: Code, site: SiteId },
}

/// A condition on the elements of a multiset.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    pub(crate) multiset: Address,
    pub(crate) capacity: u32,
    pub(crate) stride: u32,
    /// Which element is looked at.
    pub(crate) slot: u32,
    pub(crate) condition: Code,
}

#[derive(Clone, Debug)]
pub(crate) enum Address {
    At(u32),
    Computed(Box<Computed>),
}

#[derive(Clone, Debug)]
pub(crate) struct Computed {
    pub(crate) base: u32,
    /// The slot with an address to start from.
    pub(crate) reference: Option<u32>,
    pub(crate) terms: Box<[Term]>,
}

#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) index: Code,
    pub(crate) map: IndexMap,
    pub(crate) stride: u32,
    pub(crate) site: SiteId,
}

/// From the code of an index to its position.
#[derive(Clone, Debug)]
pub(crate) enum IndexMap {
    /// The index is known to be inside.
    Inside {
        first: i32,
    },
    Checked(Piece),
    Pieces(Box<[Piece]>),
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) function: u32,
    pub(crate) arguments: Box<[Pass]>,
    /// Where the result is.
    pub(crate) result: u32,
}

/// How an argument is passed: the parameter's slot gets an address.
#[derive(Clone, Debug)]
pub(crate) enum Pass {
    Address {
        slot: u32,
        at: Address,
    },
    /// The value goes into a slot of its own.
    Value {
        slot: u32,
        temporary: u32,
        value: Code,
        check: Option<Fit>,
    },
    /// The result of another function.
    ///
    /// It is copied, so that a second call does not overwrite it.
    Result {
        slot: u32,
        temporary: u32,
        count: u32,
        call: Call,
    },
}

/// The check that a value belongs to a type.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    pub(crate) pieces: Box<[Piece]>,
    pub(crate) site: SiteId,
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Set {
        at: u32,
        code: i32,
    },
    Assign {
        at: Address,
        value: Code,
        check: Option<Fit>,
    },
    Copy {
        to: Address,
        from: Address,
        count: u32,
    },
    If {
        branches: Box<[(Code, Vec<Op>)]>,
        otherwise: Vec<Op>,
    },
    Switch {
        subject: Code,
        cases: Box<[(Vec<Code>, Vec<Op>)]>,
        otherwise: Vec<Op>,
    },
    For {
        slot: u32,
        domain: Range,
        body: Vec<Op>,
        orders: Option<Orders>,
    },
    While {
        condition: Code,
        body: Vec<Op>,
        site: SiteId,
    },
    Bind {
        slot: u32,
        at: Address,
    },
    Call(Box<Call>),
    Return,
    /// Sets slots to given codes: `undefine` and `clear`.
    Fill {
        at: Address,
        codes: Arc<[i32]>,
    },
    /// Adds what is copied or computed after the flag of the first free element.
    Add {
        multiset: Address,
        capacity: u32,
        stride: u32,
        element: Element,
        site: SiteId,
    },
    Remove {
        multiset: Address,
        capacity: u32,
        stride: u32,
        index: Code,
        site: SiteId,
    },
    RemovePred(Box<Scan>),
    Fail(SiteId),
    Assert {
        condition: Code,
        site: SiteId,
    },
    /// Prints; only the replay of a run listens.
    Put(Put),
}

/// A loop whose rounds may depend on their order: how to find out.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) site: SiteId,
    /// The scalarsets that the loop ranges over.
    pub(crate) over: Arc<[TypeId]>,
    /// The slots in use after the loop, besides the state: where they start and how many.
    pub(crate) live: Arc<[(u32, u32)]>,
}

#[derive(Clone, Debug)]
pub(crate) enum Element {
    Value {
        value: Code,
        check: Option<Fit>,
    },
    Copy {
        from: Address,
    },
    /// The result of a function, called first.
    Result(Call),
}

#[derive(Clone, Debug)]
pub(crate) enum Put {
    Text(Arc<str>),
    /// A value, by the type that says how to write it.
    Value {
        value: Code,
        ty: TypeId,
    },
    /// All that a place holds.
    Place {
        at: Address,
        count: u32,
        ty: TypeId,
    },
}

/// A subprogram.
#[derive(Clone, Debug)]
pub(crate) struct Routine {
    pub(crate) locals: Vec<(u32, u32)>,
    pub(crate) body: Vec<Op>,
    /// Where the fault is if it ends without a result.
    pub(crate) no_return: Option<SiteId>,
}

/// A rule for one choice of its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// Which rule or start state it is.
    pub(crate) rule: u32,
    /// The values of its parameters, outermost first; an index of a multiset among them.
    pub(crate) parameters: Vec<i32>,
    /// Parameters that are not built into the code: slot and value.
    pub(crate) set: Vec<(u32, i32)>,
    pub(crate) code: Arc<RuleCode>,
}

#[derive(Clone, Debug)]
pub(crate) struct RuleCode {
    /// Aliases that depend on the state, bound before the guard.
    pub(crate) prelude: Vec<Op>,
    /// Elements of multisets that must be there: multiset, offset of the flag or its slot.
    pub(crate) chosen: Vec<Chosen>,
    pub(crate) guard: Option<Code>,
    pub(crate) locals: Vec<(u32, u32)>,
    pub(crate) body: Vec<Op>,
    pub(crate) marks: Vec<MarkCode>,
}

/// An element that a rule's `choose` has chosen; the prelude stops where one is not there.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// How many operations of the prelude stand before it.
    pub(crate) after: usize,
    pub(crate) multiset: Address,
    pub(crate) index: Code,
    pub(crate) stride: u32,
}

/// A mark, ready to be evaluated before the body runs.
#[derive(Clone, Debug)]
pub(crate) struct MarkCode {
    pub(crate) kind: MarkWhat,
    pub(crate) proc: Option<(Code, Fit)>,
    pub(crate) block: Option<(Code, Fit)>,
}

#[derive(Clone, Debug)]
pub(crate) enum MarkWhat {
    Store,
    Load(Address),
    Serialize(Address),
}

/// An invariant for one choice of its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) invariant: u32,
    pub(crate) parameters: Vec<i32>,
    pub(crate) set: Vec<(u32, i32)>,
    pub(crate) prelude: Vec<Op>,
    pub(crate) chosen: Vec<Chosen>,
    pub(crate) condition: Code,
}
