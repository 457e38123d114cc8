//! Bad patterns: the kinds of violations, by their names in the literature.

use crate::named::named_enum;

named_enum! {
    /// The pattern of a violation.
    ///
    /// Convert a name with `From`: a name that is listed here never becomes
    /// [`Named`](Pattern::Named).
    pub enum Pattern {
        /// A read returned a value that was never written.
        ThinAirRead = "ThinAirRead",
        /// A read returned the value of a write that follows it in its own session.
        FutureRead = "FutureRead",
        /// Causality has a cycle.
        CyclicCo = "CyclicCO",
        /// A read missed a write in its causal past and returned the initial value.
        WriteCoInitRead = "WriteCOInitRead",
        /// A read returned a value that a write in its causal past had overwritten.
        WriteCoRead = "WriteCORead",
        /// Conflicts and causality have a cycle.
        CyclicCf = "CyclicCF",
        /// A read returned the initial value after its session could know that it was overwritten.
        WriteHbInitRead = "WriteHBInitRead",
        /// The order that the reads of a session force has a cycle.
        CyclicHb = "CyclicHB",
        /// The orders of writes that sessions agree on have a cycle.
        CyclicPww = "CyclicPWW",
        /// The order that sequential consistency forces has a cycle.
        CyclicWsc = "CyclicWSC",
        /// Every order of all operations has a cycle.
        CyclicSc = "CyclicSC",
        /// No order of all operations keeps real time.
        CyclicRt = "CyclicRT",
        /// Every order that a memory with store buffers allows has a cycle.
        CyclicPpo = "CyclicPPO",
        /// Every order of the operations of one key has a cycle.
        CyclicPoloc = "CyclicPOLoc",
        /// A key cannot end with its final value.
        FinalValue = "FinalValue",
        /// A call's return is not explained by the specification of its object.
        Unexplained = "unexplained",
    }
    /// The name of a check in a definition, or of a core of calls.
    other
}
