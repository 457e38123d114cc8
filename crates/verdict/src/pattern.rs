//! Bad patterns: what is wrong with a history, by the names of the literature.

use crate::named::named_enum;

/// What is wrong with a history that violates a model.
///
/// Make one from its name with `From`: a name that is listed here never becomes
/// [`Named`](Pattern::Named).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Pattern {
    /// A read returned a value that nobody wrote.
    ThinAirRead,
    /// A read returned the value of a write that follows it in its own session.
    FutureRead,
    /// Causality has a cycle.
    CyclicCo,
    /// A read missed a write in its causal past and returned the initial value.
    WriteCoInitRead,
    /// A read returned a value that a write in its causal past had overwritten.
    WriteCoRead,
    /// Conflicts and causality have a cycle.
    CyclicCf,
    /// A read returned the initial value after its session could tell that it was overwritten.
    WriteHbInitRead,
    /// What the reads of a session force has a cycle.
    CyclicHb,
    /// The orders of writes that sessions agree on have a cycle.
    CyclicPww,
    /// What is forced for sequential consistency has a cycle.
    CyclicWsc,
    /// Every order of all operations has a cycle.
    CyclicSc,
    /// No order of all operations keeps real time.
    CyclicRt,
    /// Every order that a memory with store buffers allows has a cycle.
    CyclicPpo,
    /// Every order of the operations of one key has a cycle.
    CyclicPoloc,
    /// A key cannot end with its final value.
    FinalValue,
    /// A call's return is not explained by the specification of its object.
    Unexplained,
    /// The name of a check in a definition, or of a core of calls.
    Named(Box<str>),
}

/// The patterns that have a name of their own.
const KNOWN: [(Pattern, &str); 16] = [
    (Pattern::ThinAirRead, "ThinAirRead"),
    (Pattern::FutureRead, "FutureRead"),
    (Pattern::CyclicCo, "CyclicCO"),
    (Pattern::WriteCoInitRead, "WriteCOInitRead"),
    (Pattern::WriteCoRead, "WriteCORead"),
    (Pattern::CyclicCf, "CyclicCF"),
    (Pattern::WriteHbInitRead, "WriteHBInitRead"),
    (Pattern::CyclicHb, "CyclicHB"),
    (Pattern::CyclicPww, "CyclicPWW"),
    (Pattern::CyclicWsc, "CyclicWSC"),
    (Pattern::CyclicSc, "CyclicSC"),
    (Pattern::CyclicRt, "CyclicRT"),
    (Pattern::CyclicPpo, "CyclicPPO"),
    (Pattern::CyclicPoloc, "CyclicPOLoc"),
    (Pattern::FinalValue, "FinalValue"),
    (Pattern::Unexplained, "unexplained"),
];

named_enum!(Pattern, KNOWN);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_its_pattern_go_together() {
        for (pattern, name) in KNOWN {
            assert_eq!(Pattern::from(name), pattern);
            assert_eq!(pattern.as_str(), name);
        }
        assert_eq!(Pattern::from("Mine"), Pattern::Named("Mine".into()));
    }
}
