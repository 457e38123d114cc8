//! The reason of an edge in an order.

use consistory_history::OpId;

/// The reason of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// The edge leads from a read's source to the read.
    Wr,
    /// The edge is part of the program order that the model preserves.
    Ppo,
    /// The edge is assumed in a case split.
    Assumed,
    /// The other layer orders the two writes in this way.
    OtherLayer,
    /// The edge leads to a write whose value is the final one.
    Final,
    /// The edge follows from this read: from the read to a write that overwrites its source (`rw`),
    /// or from a write before the read to the read's source (`cf`).
    Read(OpId),
}

/// A reason in 32 bits, since an order can hold tens of millions of edges: a read is its number, and
/// the largest numbers encode the other reasons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(crate) struct PackedReason(u32);

/// The smallest packed reason that is not a read.
const FIRST_SPECIAL: u32 = u32::MAX - 4;

impl Reason {
    /// Packs the reason, for [`consistory_order::Edge::reason`].
    #[inline]
    pub(crate) fn pack(self) -> PackedReason {
        PackedReason(match self {
            Reason::Wr => u32::MAX,
            Reason::Assumed => u32::MAX - 1,
            Reason::OtherLayer => u32::MAX - 2,
            Reason::Ppo => u32::MAX - 3,
            Reason::Final => FIRST_SPECIAL,
            Reason::Read(OpId(read)) => {
                debug_assert!(read < FIRST_SPECIAL, "a history is not that large");
                read
            }
        })
    }
}

impl PackedReason {
    /// Returns the reason.
    #[inline]
    pub(crate) fn unpack(self) -> Reason {
        match self.0 {
            u32::MAX => Reason::Wr,
            n if n == u32::MAX - 1 => Reason::Assumed,
            n if n == u32::MAX - 2 => Reason::OtherLayer,
            n if n == u32::MAX - 3 => Reason::Ppo,
            FIRST_SPECIAL => Reason::Final,
            read => Reason::Read(OpId(read)),
        }
    }

    /// Returns the read that an edge follows from, for an edge that follows from a read.
    #[inline]
    pub(crate) fn read(self) -> OpId {
        debug_assert!(self.0 < FIRST_SPECIAL, "the edge follows from a read");
        OpId(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_loses_nothing() {
        let all = [Reason::Wr, Reason::Ppo, Reason::Assumed, Reason::OtherLayer, Reason::Final];
        for reason in
            all.into_iter().chain([0, 7, FIRST_SPECIAL - 1].map(|n| Reason::Read(OpId(n))))
        {
            assert_eq!(reason.pack().unpack(), reason);
        }
    }
}
