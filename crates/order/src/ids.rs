//! Ids of chains and edges, so that neither is taken for a node, a position or a count.

/// A chain, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct ChainId(pub u32);

/// An edge, by its index in a list of edges.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct EdgeId(pub u32);

impl ChainId {
    /// Returns the index into a table with one entry per chain.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl EdgeId {
    /// Builds the id of the edge at `index` of the list.
    #[inline]
    pub fn new(index: usize) -> Self {
        debug_assert!(u32::try_from(index).is_ok());
        Self(index as u32)
    }

    /// Returns the index into the list of edges.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
