//! The observer: builds the constraint graph of a protocol's run, which proves the run sequentially
//! consistent if it is acyclic.
//!
//! Condon and Hu (2001, section 4). The tracking labels identify the store from which each
//! location's value comes, so each load's inheritance edge is known. An ST order generator
//! determines the order in which the stores of a block take effect: by default the order in which
//! they happen, or else the order of [`Serialize`](crate::tracking::Operation::Serialize) steps.
//! Program order edges and forced edges follow. If every run's graph is acyclic, every run is
//! sequentially consistent.
//!
//! Two implementations reach the same verdict:
//!
//! - `emit` is the [`Observer`] of Theorem 4.1: it writes a descriptor, which a
//!   [`Checker`](crate::Checker) reads; a [`Monitor`] combines the two. This implementation reports
//!   where a run fails, and other programs can store and check the descriptor.
//! - `obligations` is observer and checker in one, for exploration: it keeps only the nodes through
//!   which a cycle can still be closed, and has almost no state while no stale value is held. A
//!   [`Witness`] encodes it as bytes.
//!
//! A store that waits for its place in the ST order is *pending*. A run that ends with pending
//! stores is accepted if they can be put in some order after the others without a cycle. If every
//! longer run is accepted, then so is this one, because restricting an order to the earlier nodes
//! keeps it acyclic.

mod emit;
mod few;
mod homes;
mod initials;
mod monitor;
mod obligations;
mod witness;

pub use emit::Observer;
pub(crate) use initials::is_ambiguous;
pub use monitor::Monitor;
pub(crate) use obligations::MAX_CLASSES;
pub use witness::{Witness, WitnessError};

use crate::checker::Reason;
use crate::descriptor::{Block, Processor};

/// Reasons why a run of a protocol is not proved sequentially consistent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// A processor loads from a location that no store and no start state has filled.
    #[error("{processor} loads {block} from a location that holds nothing")]
    LoadsNothing {
        /// The processor.
        processor: Processor,
        /// The block.
        block: Block,
    },
    /// A processor loads the value of a store to another block, or a step serializes such a store.
    #[error("the value of a store to {found} is used as a value of {expected}")]
    OtherBlock {
        /// The block of the operation.
        expected: Block,
        /// The block of the store.
        found: Block,
    },
    /// A step serializes the store of a location that holds no value.
    #[error("a store to {block} is to be serialized from a location that holds nothing")]
    SerializesNothing {
        /// The block.
        block: Block,
    },
    /// The last copy of a store was overwritten before the store was serialized.
    #[error("a store to {block} by {processor} is overwritten everywhere before it is serialized")]
    LostStore {
        /// The processor that stored.
        processor: Processor,
        /// The block that was stored to.
        block: Block,
    },
    /// Two different initial values of a block were loaded.
    #[error("the start state holds two initial values of {block}, and both were loaded")]
    TwoInitialValues {
        /// The block.
        block: Block,
    },
    /// The constraint graph has a cycle, or the descriptor does not describe a constraint graph.
    #[error("{0}")]
    Rejected(#[from] Reason),
    /// Every order of the pending stores closes a cycle in the constraint graph.
    #[error("every order of the stores that are not yet serialized closes a cycle")]
    NoOrder,
}
