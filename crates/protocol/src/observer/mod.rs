//! The observer: builds the constraint graph of a protocol's run, which proves the run sequentially
//! consistent if it is acyclic.
//!
//! Condon and Hu (2001, section 4). The tracking labels say which store each location's value
//! comes from, so each load's inheritance edge is known; an ST order generator says in which order
//! the stores of a block take effect: by default the order in which they happen, or else the order
//! of [`Serialize`](crate::tracking::Operation::Serialize) steps. Program order edges and forced
//! edges follow. If every run's graph is acyclic, every run is sequentially consistent.
//!
//! There are two ways to the same verdict:
//! - `emit` is the [`Observer`] of Theorem 4.1: it writes a descriptor, which a
//!   [`Checker`](crate::Checker) reads, a [`Monitor`] couples the two. It says what is wrong where,
//!   and the descriptor can be kept and checked by others.
//! - `obligations` is both at once, for exploration: it keeps only what a cycle can still be closed
//!   by, and has next to no state while no stale value is held. A [`Witness`] puts it into bytes.
//!
//! A store that waits for its place in the ST order is *pending*. A run that ends with pending
//! stores is accepted if they can be put in some order after the others without a cycle; if every
//! longer run is accepted then so is this one, because restricting an order to the earlier nodes
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

/// Why a run of a protocol is not proved sequentially consistent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// A processor loads what no store and no start state put there.
    #[error("{processor} loads {block} from a location that holds nothing")]
    LoadsNothing {
        /// The processor.
        processor: Processor,
        /// The block.
        block: Block,
    },
    /// A processor loads, or a step serializes, a store to another block.
    #[error("the value of a store to {found} is used as a value of {expected}")]
    OtherBlock {
        /// The block that the operation is about.
        expected: Block,
        /// The block that the store was to.
        found: Block,
    },
    /// A step serializes the contents of a location that holds none.
    #[error("a store to {block} is to be serialized from a location that holds nothing")]
    SerializesNothing {
        /// The block.
        block: Block,
    },
    /// The last copy of a store was overwritten before the store had a place in the ST order.
    #[error("a store to {block} by {processor} is overwritten everywhere before it is serialized")]
    LostStore {
        /// Who stored.
        processor: Processor,
        /// Where.
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
    /// Whichever order the pending stores take, the constraint graph gets a cycle.
    #[error("the stores that are not yet serialized fit in no order")]
    NoOrder,
}
