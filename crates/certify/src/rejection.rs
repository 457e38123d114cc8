//! Reasons for which a certificate is rejected.

use std::fmt;

use consistory_verdict::Stopped;

/// The part of a certificate that proves nothing, and the reason.
///
/// Operations are given by their references, parts by their path in the certificate's JSON.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Rejection {
    /// The checker ran out of its time or memory before it was done.
    #[error("the checker stopped: {0}")]
    Stopped(Stopped),
    /// There are no rules for the model.
    #[error("there are no rules for the model `{model}`")]
    Model {
        /// The model.
        model: String,
    },
    /// The claim is undecided.
    #[error("an undecided verdict makes no claim")]
    NoClaim,
    /// The history contains something other than registers.
    #[error("the model is about registers, and the history has {what}")]
    Unsupported {
        /// The unsupported part of the history.
        what: &'static str,
    },
    /// The certificate is not of a kind that can prove the claim.
    #[error("a certificate of kind `{kind}` does not prove the verdict `{claim}` of this model")]
    Kind {
        /// The kind.
        kind: &'static str,
        /// The claim.
        claim: &'static str,
    },
    /// An operation is not in the history, or must be a recorded one and is not.
    #[error("`{part}`: {op} is not a recorded operation")]
    NotRecorded {
        /// Path within the certificate.
        part: String,
        /// The operation.
        op: String,
    },
    /// A consistent history has a read of a value that was never written.
    #[error("{read} reads a value that was never written")]
    NoCandidate {
        /// The read.
        read: String,
    },
    /// The certificate does not choose among several candidates.
    #[error("`wr` does not say from which write {read} reads")]
    NoChoice {
        /// The read.
        read: String,
    },
    /// The certificate makes an impossible choice, or chooses twice.
    #[error("`wr` cannot say that {read} reads from {write}")]
    BadChoice {
        /// The read.
        read: String,
        /// The write.
        write: String,
    },
    /// An operation comes before its predecessor in its session, comes twice, or does not count.
    #[error("`{part}`: {op} is not the next operation of its session that counts")]
    OutOfOrder {
        /// Path within the certificate.
        part: String,
        /// The operation.
        op: String,
    },
    /// An operation returned before the start of an operation that precedes it in the order.
    #[error("`{part}`: {after} precedes {before}, which returned before {after} started")]
    NotInRealTime {
        /// Path within the certificate.
        part: String,
        /// The operation that returned.
        before: String,
        /// The operation that started later.
        after: String,
    },
    /// A read comes before the write that it reads from.
    #[error("`{part}`: {read} comes before {write}, from which it reads")]
    BeforeItsWrite {
        /// Path within the certificate.
        part: String,
        /// The read.
        read: String,
        /// The write.
        write: String,
    },
    /// An operation that counts is not listed.
    #[error("`{part}`: {op} is missing")]
    Missing {
        /// Path within the certificate.
        part: String,
        /// The operation.
        op: String,
    },
    /// An order of a session or key is listed twice, or the history has no such session or key.
    #[error("`{part}` is listed twice or is not in the history")]
    BadName {
        /// Path within the certificate.
        part: String,
    },
    /// A read does not take the last write by the rule of the model.
    #[error("{read} reads from {write}, but {last} comes later")]
    Overwritten {
        /// The read.
        read: String,
        /// The write that it reads from.
        write: String,
        /// A write of the same key that comes later.
        last: String,
    },
    /// A store order does not start with the initial write, or lists an operation that does not
    /// write its key.
    #[error("`{part}`: {op} does not belong there in the order of the writes of this key")]
    BadStoreOrder {
        /// Path within the certificate.
        part: String,
        /// The operation.
        op: String,
    },
    /// A relation that must be acyclic is not.
    #[error("`{relation}` has a cycle")]
    Cyclic {
        /// The relation.
        relation: &'static str,
    },
    /// The rules derive a pair that the relation does not have.
    #[error("it follows that {before} comes before {after}, but the pairs do not contain this")]
    NotClosed {
        /// The operation that comes first.
        before: String,
        /// The other one.
        after: String,
    },
    /// The operation of a thin-air read is not a read, or has a candidate.
    #[error("`{part}`: {op} is not a read of a value that was never written")]
    NotThinAir {
        /// Path within the certificate.
        part: String,
        /// The operation.
        op: String,
    },
    /// The edges do not form a closed walk.
    #[error("`{part}`: the edges do not form a cycle")]
    NotACycle {
        /// Path within the certificate.
        part: String,
    },
    /// The edges form a cycle, but one that the model allows.
    #[error("`{part}`: the model allows a cycle of these relations")]
    AllowedCycle {
        /// Path within the certificate.
        part: String,
    },
    /// An edge does not follow.
    #[error("`{part}`: `{relation}` from {from} to {to} does not follow: {flaw}")]
    Edge {
        /// Path within the certificate.
        part: String,
        /// The relation.
        relation: String,
        /// Start of the edge.
        from: String,
        /// End of the edge.
        to: String,
        /// Reason why the edge does not follow.
        flaw: Flaw,
    },
    /// The two operations of a split are not two writes of one key that both count.
    #[error("`{part}`: {first} and {second} are not two writes of one key")]
    BadSplit {
        /// Path within the certificate.
        part: String,
        /// One operation.
        first: String,
        /// The other.
        second: String,
    },
    /// The cases of a read are not exactly its candidates.
    #[error("`{part}`: {write} is left out, or is not a candidate of {read}, or is listed twice")]
    BadCases {
        /// Path within the certificate.
        part: String,
        /// The read.
        read: String,
        /// The write.
        write: String,
    },
    /// Cases of the last write are about a key that has no final value.
    #[error("`{part}`: the history gives no final value for this key")]
    NoFinalValue {
        /// Path within the certificate.
        part: String,
    },
    /// The cases of the last write of a key are not exactly the candidates.
    #[error("`{part}`: {write} is left out, or cannot be the last of {key}, or is listed twice")]
    BadLast {
        /// Path within the certificate.
        part: String,
        /// The key.
        key: String,
        /// The write.
        write: String,
    },
    /// A final value is given, but the definition has no store order or the key has an
    /// indeterminate write.
    #[error(
        "the history gives the final value of {key}, and the definition has no store order or a \
         write of the key is of unknown status"
    )]
    FinalValue {
        /// The key.
        key: String,
    },
    /// The history is too large for its relations to be computed.
    #[error(
        "the history has {operations} operations, a definition is evaluated for at most {limit}"
    )]
    TooLarge {
        /// Number of operations, initial writes included.
        operations: usize,
        /// Largest supported number.
        limit: usize,
    },
    /// Evaluating the definition takes more steps than the limit.
    #[error("evaluating the definition takes too many steps")]
    TooMuchWork,
    /// A store order is given or assumed, but the definition has none.
    #[error("`{part}`: the definition has no store order")]
    NoStoreOrder {
        /// Path within the certificate.
        part: String,
    },
    /// The last write of a key does not have its final value.
    #[error("{write} is the last write of its key, but does not write its final value")]
    NotFinal {
        /// The write.
        write: String,
    },
    /// A check does not hold under the choices.
    #[error("the check `{check}` fails")]
    CheckFails {
        /// The check's name.
        check: String,
    },
    /// The definition has no such check, or does not demand it for the operation.
    #[error("`{part}`: the definition has no such check, or not for this operation")]
    NoSuchCheck {
        /// Path within the certificate.
        part: String,
    },
    /// A check that is said to fail holds under the assumptions.
    #[error("`{part}`: the check `{check}` holds under the assumptions")]
    CheckHolds {
        /// Path within the certificate.
        part: String,
        /// The check's name.
        check: String,
    },
    /// A check fails under the assumptions, but it may hold if more is chosen.
    #[error("`{part}`: the check `{check}` fails, but a further choice may make it hold")]
    Unsettled {
        /// Path within the certificate.
        part: String,
        /// The check's name.
        check: String,
    },
}

/// Reasons why an edge does not follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// The history has no such pair.
    NotGiven,
    /// The model has no rule for this relation.
    NoRule,
    /// The edge has no premises, and it was neither derived before nor assumed.
    Unproved,
    /// The premises do not match the relation's rule.
    Premises,
    /// An end is not in the causal past of the observer.
    OutsidePast,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flaw::NotGiven => "the history does not have it",
            Flaw::NoRule => "the model has no rule for it",
            Flaw::Unproved => "it has no premises and was not derived or assumed before",
            Flaw::Premises => "the premises are not those of its rule",
            Flaw::OutsidePast => "it is not in the causal past of the observer",
        })
    }
}

impl From<Stopped> for Rejection {
    fn from(stopped: Stopped) -> Self {
        Rejection::Stopped(stopped)
    }
}
