//! The checker: a finite automaton that reads a descriptor and accepts the acyclic constraint
//! graphs.
//!
//! Condon and Hu (2001, section 3.4). A constraint graph that is acyclic proves that its trace has
//! a serial reordering (Lemma 3.1), so a protocol all of whose runs can be described to this
//! checker without a rejection is sequentially consistent. The checker knows neither the protocol
//! nor the producer of the descriptor. It keeps only the nodes that have an ID and the few loads
//! whose forced edge is still missing, so its memory depends on the number of IDs, not on the
//! length of the stream.
//!
//! `annotations` checks the constraints of section 3.1 symbol by symbol; `contraction` checks for
//! cycles. The paper leaves some choices open and contains some slips, which are resolved as
//! follows:
//!
//! - An edge between IDs that no node has is rejected. By the definition it would mean nothing, but
//!   an observer that sends one has a defect.
//! - Every annotation counts, even a repeated one, so a second program order, ST order or
//!   inheritance edge is rejected. Forced edges may be repeated and may occur anywhere.
//! - A load's forced edge may come before the edges that require it.
//! - Constraint 5(b), about loads of the initial value, is read in the same way as 5(a): the last
//!   such load of a processor has a forced edge directly to the first store.
//! - The paper requires the first and the last operation of a processor to be distinct nodes; a
//!   processor with one operation is accepted here.

mod annotations;
mod contraction;

use crate::checker::annotations::Ledger;
use crate::checker::contraction::ActiveGraph;
use crate::descriptor::{Id, Label, Symbol};

/// Reasons why a descriptor is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Reason {
    /// An edge names an ID that no node has.
    #[error("no node has ID {}", id.0)]
    UnknownId {
        /// The ID.
        id: Id,
    },
    /// The edge closes a cycle.
    #[error("this edge closes a cycle: {to} already comes before {from}")]
    Cycle {
        /// The edge's source.
        from: Label,
        /// The edge's target.
        to: Label,
    },
    /// A program order edge does not go from an operation to the next one of its processor.
    #[error("a program order edge goes from {from} to {to}, which is not the next operation of {}", from.processor())]
    NotNextInProgram {
        /// The edge's source.
        from: Label,
        /// The edge's target.
        to: Label,
    },
    /// A program order edge is repeated.
    #[error("there is already a program order edge from {from} to {to}")]
    ProgramOrderTwice {
        /// The edge's source.
        from: Label,
        /// The edge's target.
        to: Label,
    },
    /// Two consecutive operations of a processor can no longer get a program order edge.
    #[error("{label} can get no program order edge to the next operation any more")]
    NoProgramOrder {
        /// The earlier operation.
        label: Label,
    },
    /// An operation's predecessor lost its ID before the edge between them was given.
    #[error("{label} can get no program order edge: the operation before it has no ID any more")]
    LostPredecessor {
        /// The later operation.
        label: Label,
    },
    /// An ST order edge is not between stores of one block.
    #[error("an ST order edge goes from {from} to {to}, which are not stores to one block")]
    NotStoresOfOneBlock {
        /// The edge's source.
        from: Label,
        /// The edge's target.
        to: Label,
    },
    /// A store has two ST order edges out of it.
    #[error("{label} already has an ST order edge out of it")]
    SecondSuccessor {
        /// The store.
        label: Label,
    },
    /// A store has two ST order edges into it.
    #[error("{label} already has an ST order edge into it")]
    SecondPredecessor {
        /// The store.
        label: Label,
    },
    /// Two stores of a block have no ST order edge into them.
    #[error("{label} has no ST order edge into it, and another store to {} has none either", label.block())]
    SecondFirst {
        /// The later one of the two stores.
        label: Label,
    },
    /// Two stores of a block have no ST order edge out of them.
    #[error("{label} has no ST order edge out of it, and another store to {} has none either", label.block())]
    SecondLast {
        /// The later one of the two stores.
        label: Label,
    },
    /// An inheritance edge does not go from a store to a load of its value.
    #[error("an inheritance edge goes from {from} to {to}, which does not load the stored value")]
    NotInherited {
        /// The edge's source.
        from: Label,
        /// The edge's target.
        to: Label,
    },
    /// A load has two inheritance edges.
    #[error("{label} already has an inheritance edge into it")]
    SecondInheritance {
        /// The load.
        label: Label,
    },
    /// A load of a stored value has no inheritance edge.
    #[error("{label} has no inheritance edge")]
    NoInheritance {
        /// The load.
        label: Label,
    },
    /// No forced edge orders a load before the store that overwrites the value that it loaded.
    #[error("{label} has no forced edge to the store that overwrites the loaded value")]
    NoForcedEdge {
        /// The load.
        label: Label,
    },
}

/// The automaton: its state after the part of a descriptor that it has read.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    graph: ActiveGraph,
    ledger: Ledger,
    peak: usize,
}

impl Checker {
    /// Builds a checker that has read no symbol.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a symbol.
    ///
    /// A failure is final: no continuation describes an acyclic constraint graph.
    pub fn step(&mut self, symbol: Symbol) -> Result<(), Reason> {
        match symbol {
            Symbol::Node { id, label } => {
                self.take(id)?;
                let slot = self.graph.reserve();
                self.graph.give(slot, id);
                self.ledger.enter(slot, label)?;
            }
            Symbol::AddId { node, id } => {
                let slot = self.graph.find(node);
                if slot.is_none() || slot != self.graph.find(id) {
                    self.take(id)?;
                    if let Some(slot) = slot {
                        self.graph.give(slot, id);
                    }
                }
            }
            Symbol::Edge { from, to, annotations } => {
                let find = |id| self.graph.find(id).ok_or(Reason::UnknownId { id });
                let (from, to) = (find(from)?, find(to)?);
                self.ledger.annotate(&self.graph, from, to, annotations)?;
                if !self.graph.order(from, to) {
                    let (from, to) = (self.ledger.label(from), self.ledger.label(to));
                    return Err(Reason::Cycle { from, to });
                }
            }
        }
        self.ledger.sweep(&mut self.graph);
        self.peak = self.peak.max(self.ledger.len());
        Ok(())
    }

    /// Checks whether the descriptor may end here.
    pub fn finish(&self) -> Result<(), Reason> {
        let mut end = self.clone();
        // At the end every node loses its IDs, the oldest first.
        let ids = end.graph.ids();
        for slot in end.ledger.in_order() {
            for &id in &ids[slot] {
                end.take(id)?;
            }
        }
        Ok(())
    }

    /// Counts the nodes that the checker keeps.
    pub fn len(&self) -> usize {
        self.ledger.len()
    }

    /// Checks whether the checker keeps no node.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the largest number of nodes that were kept at the same time.
    pub fn peak(&self) -> usize {
        self.peak
    }

    /// Appends the state as bytes: two prefixes with equal bytes have the same continuations.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.ledger.encode(&self.graph, out);
    }

    fn take(&mut self, id: Id) -> Result<(), Reason> {
        match self.graph.take(id) {
            Some(slot) => self.ledger.retire(&mut self.graph, slot),
            None => Ok(()),
        }
    }
}
