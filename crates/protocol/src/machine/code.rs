//! Executable code: trees with resolved addresses.
//!
//! Memory is an array of slots, one for each simple value: first those of the state, then those
//! that rules and subprograms need while they run. A slot holds a code or [`UNDEFINED`]. Rules are
//! lowered once for each choice of their parameters, so most addresses are constants.

use std::sync::Arc;

use crate::murphi::{Piece, Span, TypeId};

/// Content of a slot without a value.
pub(crate) const UNDEFINED: i32 = i32::MIN;

/// A place that can fail, and the kind of failure.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Site {
    pub(crate) span: Span,
    pub(crate) kind: FaultKind,
}

/// Failures of a running rule.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum FaultKind {
    /// A variable without a value was read.
    #[error("`{place}` is undefined")]
    Undefined {
        /// The variable, as written in the description.
        place: String,
    },
    /// A value does not belong to the type of a variable or an index.
    #[error("the value of `{value}` is not in {ty}")]
    OutOfRange {
        /// The value, as written in the description.
        value: String,
        /// The type.
        ty: String,
    },
    /// A division by 0.
    #[error("division by 0")]
    DivisionByZero,
    /// A result that does not fit into 32 bits.
    #[error("the result does not fit into 32 bits")]
    Overflow,
    /// An assertion does not hold.
    #[error("assertion failed{}{}", if message.is_empty() { "" } else { ": " }, message)]
    Assertion {
        /// Text of the assertion.
        message: String,
    },
    /// An `error` statement was executed.
    #[error("error: {message}")]
    Error {
        /// Text of the statement.
        message: String,
    },
    /// A loop did not end within the limit.
    #[error("the loop went on for more than {limit} rounds")]
    EndlessLoop {
        /// Largest number of rounds.
        limit: u32,
    },
    /// An element was added to a full multiset.
    #[error("the multiset is full: it can hold {capacity} elements")]
    MultisetFull {
        /// Capacity of the multiset.
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

/// Index of a [`Site`].
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
    /// Checks whether a slot holds a code.
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

/// Values that a loop ranges over.
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
    /// Slot for the index of the examined element.
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
    /// Slot with the address that is added, if any.
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

/// Mapping from the code of an index to its position.
#[derive(Clone, Debug)]
pub(crate) enum IndexMap {
    /// The index is known to be in range.
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
    /// Slot of the result.
    pub(crate) result: u32,
}

/// Method of passing an argument; the parameter's slot gets an address.
#[derive(Clone, Debug)]
pub(crate) enum Pass {
    Address {
        slot: u32,
        at: Address,
    },
    /// The value is copied into its own slot.
    Value {
        slot: u32,
        temporary: u32,
        value: Code,
        check: Option<Fit>,
    },
    /// The result of another function, which is copied, so that a second call does not overwrite
    /// it.
    Result {
        slot: u32,
        temporary: u32,
        count: u32,
        call: Call,
    },
}

/// Check that a value belongs to a type.
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
    /// Marks the first free element as present, and stores the copied or computed contents after
    /// its flag.
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
    /// Prints text, if the run is being recorded.
    Put(Put),
}

/// Parameters of the check whether the rounds of a loop depend on their order.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) site: SiteId,
    /// The scalarsets that the loop ranges over.
    pub(crate) over: Arc<[TypeId]>,
    /// Slots besides the state that are in use after the loop: first slot and number.
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
    /// A value, with the type that determines how it is written.
    Value {
        value: Code,
        ty: TypeId,
    },
    /// All contents of a place.
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
    /// Site of the failure if the function ends without a result.
    pub(crate) no_return: Option<SiteId>,
}

/// A rule for one choice of its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// Index of the rule or start state.
    pub(crate) rule: u32,
    /// Values of its parameters, outermost first, including indices of multisets.
    pub(crate) parameters: Vec<i32>,
    /// Parameters that are not built into the code: slot and value.
    pub(crate) set: Vec<(u32, i32)>,
    pub(crate) code: Arc<RuleCode>,
}

#[derive(Clone, Debug)]
pub(crate) struct RuleCode {
    /// Aliases that depend on the state, bound before the guard.
    pub(crate) prelude: Vec<Op>,
    /// Elements of multisets that must be present.
    pub(crate) chosen: Vec<Chosen>,
    pub(crate) guard: Option<Code>,
    pub(crate) locals: Vec<(u32, u32)>,
    pub(crate) body: Vec<Op>,
    pub(crate) marks: Vec<MarkCode>,
}

/// An element that a rule's `choose` has chosen; the prelude stops if the element is not present.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// Number of operations of the prelude before it.
    pub(crate) after: usize,
    pub(crate) multiset: Address,
    pub(crate) index: Code,
    pub(crate) stride: u32,
}

/// A mark, evaluated before the body runs.
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
