//! Why an edge of an order is there.

use consistory_order::Edge;

/// The reason of an edge.
///
/// An order holds tens of millions of edges, so a reason is packed into 32 bits: numbers of reads are
/// small, and the largest numbers stand for the other reasons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// It leads from a read's source to the read.
    Wr,
    /// It is part of the program order that the model preserves.
    Ppo,
    /// A case of a case split assumes it.
    Assumed,
    /// The other layer orders the two writes like that.
    OtherLayer,
    /// It leads to a write whose value is the final one.
    Final,
    /// It follows from this read: from the read to a write that overwrites its source (`rw`), or from
    /// a write that the read follows to its source (`cf`).
    Read(u32),
}

/// The smallest packed reason that is not a read.
const FIRST_SPECIAL: u32 = u32::MAX - 4;

impl Reason {
    /// Returns the reason of an edge.
    #[inline]
    pub(crate) fn of(edge: &Edge) -> Self {
        match edge.reason {
            u32::MAX => Reason::Wr,
            n if n == u32::MAX - 1 => Reason::Assumed,
            n if n == u32::MAX - 2 => Reason::OtherLayer,
            n if n == u32::MAX - 3 => Reason::Ppo,
            FIRST_SPECIAL => Reason::Final,
            read => Reason::Read(read),
        }
    }

    /// Packs the reason, for [`Edge::reason`].
    #[inline]
    pub(crate) fn pack(self) -> u32 {
        match self {
            Reason::Wr => u32::MAX,
            Reason::Assumed => u32::MAX - 1,
            Reason::OtherLayer => u32::MAX - 2,
            Reason::Ppo => u32::MAX - 3,
            Reason::Final => FIRST_SPECIAL,
            Reason::Read(read) => {
                debug_assert!(read < FIRST_SPECIAL, "a history is not that large");
                read
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_loses_nothing() {
        let all = [Reason::Wr, Reason::Ppo, Reason::Assumed, Reason::OtherLayer, Reason::Final];
        for reason in all.into_iter().chain([0, 7, FIRST_SPECIAL - 1].map(Reason::Read)) {
            assert_eq!(Reason::of(&Edge { from: 0, to: 1, reason: reason.pack() }), reason);
        }
    }
}
