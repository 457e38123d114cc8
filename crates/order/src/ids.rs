//! Ids of nodes, chains and edges, distinct from positions and counts.

use std::fmt::Debug;

/// A node of an order: a `u32` newtype such as the id of an operation, or a plain `u32`.
///
/// The nodes of an order are numbered from 0. This crate doesn't depend on histories: its callers use
/// their own ids as nodes, which need no more than the conversions from and to their numbers.
pub trait Node: Copy + Ord + Debug + From<u32> + Into<u32> {
    /// Returns the index into a table with one entry per node.
    #[inline]
    fn index(self) -> usize {
        self.into() as usize
    }
}

impl<N: Copy + Ord + Debug + From<u32> + Into<u32>> Node for N {}

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
