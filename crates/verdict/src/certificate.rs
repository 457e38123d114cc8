//! Certificates: what proves a verdict.

use consistory_history::{KeyId, OpId, SessionId};

use crate::Relation;

/// What proves a verdict.
///
/// `wr` lists, for a history that is not differentiated, which write each ambiguous read reads
/// from; a read with one candidate is not listed. Operations that count for nothing (aborted, or
/// writes of unknown status that nothing reads) are left out of orders, and so are initial writes.
#[derive(Clone, PartialEq, Debug)]
pub enum Certificate {
    /// Consistent: one total order of all operations.
    ///
    /// For CC it extends `po` and `wr`; for CCv it is also the arbitration order, by which each
    /// read takes the last of the writes in its causal past; for SC each read takes the last write
    /// before it.
    Order {
        /// The order, first operation first.
        order: Vec<OpId>,
        /// The choices of `wr`.
        wr: Vec<(OpId, OpId)>,
    },
    /// Consistent, CM: for each session, a total order of the causal past of its last operation,
    /// that operation included, which extends `po` and `wr` and in which each read of the session
    /// takes the last write before it.
    SessionOrders {
        /// One order a session; a session without operations has none.
        orders: Vec<(SessionId, Vec<OpId>)>,
        /// The choices of `wr`.
        wr: Vec<(OpId, OpId)>,
    },
    /// Consistent: what a definition existentially quantifies; every check of the definition holds
    /// under it.
    Witness {
        /// For each key its writes in store order, initial write first; empty if the definition
        /// has no store order.
        ww: Vec<(KeyId, Vec<OpId>)>,
        /// The choices of `wr`.
        wr: Vec<(OpId, OpId)>,
    },
    /// Consistent: pairs of operations that, together with program order and `wr`, have no cycle
    /// and from which the rules of the model derive nothing more.
    Closure {
        /// The pairs, each the earlier operation first.
        pairs: Vec<(OpId, OpId)>,
        /// The choices of `wr`.
        wr: Vec<(OpId, OpId)>,
    },
    /// Consistent, CCM and wCCM: what the reads of each session force of the order of writes.
    ///
    /// With program order and `wr` the pairs of all views are the least `hb`, and those of one view
    /// are what sessions need to be asked about separately.
    Views {
        /// The views, each of one session.
        views: Vec<View>,
        /// The choices of `wr`.
        wr: Vec<(OpId, OpId)>,
    },
    /// Violation: a read of a value that nobody wrote.
    ThinAirRead {
        /// The read.
        read: OpId,
    },
    /// Violation: a cycle of a relation that must have none.
    Cycle {
        /// The edges, each starting where the one before ends, the last ending where the first
        /// starts.
        edges: Vec<Edge>,
        /// For CM the operation o whose `hb_o` is cyclic.
        observer: Option<OpId>,
        /// For a definition, the check that fails, counting from 0.
        check: Option<u32>,
    },
    /// Violation: whichever of two writes of one key comes first in the store order, there is a
    /// violation.
    SplitOrder {
        /// The two writes.
        writes: [OpId; 2],
        /// What proves it when the first comes first, and when the second does.
        branches: Box<[Certificate; 2]>,
    },
    /// Violation: whichever write a read takes its value from, there is a violation.
    SplitRead {
        /// The read.
        read: OpId,
        /// Each candidate and what rules it out.
        branches: Vec<(OpId, Certificate)>,
    },
    /// Violation: whichever write of a key with a final value is the last, there is a violation.
    SplitLast {
        /// The key.
        key: KeyId,
        /// Each write that may be the last and what rules it out; none if no write has the value.
        branches: Vec<(OpId, Certificate)>,
    },
}

/// What the reads of one session force.
#[derive(Clone, PartialEq, Debug)]
pub struct View {
    /// The session.
    pub session: SessionId,
    /// The program order that the session goes by: `po`, `ppo` or `poloc`.
    pub relation: Relation,
    /// Pairs of writes of one key, each the earlier write first.
    pub pairs: Vec<(OpId, OpId)>,
}

/// An edge of a cycle, or a premise of one.
#[derive(Clone, PartialEq, Debug)]
pub struct Edge {
    /// Where it starts.
    pub from: OpId,
    /// Where it ends.
    pub to: OpId,
    /// The relation that it belongs to.
    pub relation: Relation,
    /// The premises of the rule that derives it, empty for `po`, `wr` and assumed `ww`.
    ///
    /// A derivation is written out where it is first used, reading from the left and premises
    /// before conclusions; a later use of the same edge has no premises.
    pub because: Vec<Edge>,
}

impl Edge {
    /// Builds an edge that needs no premises.
    pub fn given(from: OpId, to: OpId, relation: impl Into<Relation>) -> Self {
        Edge { from, to, relation: relation.into(), because: Vec::new() }
    }

    /// Builds an edge that a rule derives.
    pub fn derived(
        from: OpId,
        to: OpId,
        relation: impl Into<Relation>,
        because: Vec<Edge>,
    ) -> Self {
        Edge { from, to, relation: relation.into(), because }
    }
}

impl Certificate {
    /// Iterates over the edges of its cycle, or of those of all its cases, and what they rest on.
    pub fn edges(&self) -> impl Iterator<Item = &Edge> {
        let mut certificates = vec![self];
        let mut edges: Vec<&Edge> = Vec::new();
        std::iter::from_fn(move || {
            while edges.is_empty() {
                match certificates.pop()? {
                    Certificate::Cycle { edges: cycle, .. } => edges.extend(cycle),
                    Certificate::SplitRead { branches, .. }
                    | Certificate::SplitLast { branches, .. } => {
                        certificates.extend(branches.iter().map(|(_, proof)| proof));
                    }
                    Certificate::SplitOrder { branches, .. } => certificates.extend(&**branches),
                    _ => {}
                }
            }
            let edge = edges.pop()?;
            edges.extend(&edge.because);
            Some(edge)
        })
    }

    /// Returns the name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Certificate::Order { .. } => "order",
            Certificate::SessionOrders { .. } => "orders",
            Certificate::Witness { .. } => "witness",
            Certificate::Closure { .. } => "closure",
            Certificate::Views { .. } => "views",
            Certificate::ThinAirRead { .. } => "thin-air-read",
            Certificate::Cycle { .. } => "cycle",
            Certificate::SplitOrder { .. }
            | Certificate::SplitRead { .. }
            | Certificate::SplitLast { .. } => "cases",
        }
    }

    /// Counts the operations and edges that the certificate lists.
    pub fn size(&self) -> usize {
        fn edges(list: &[Edge]) -> usize {
            list.iter().map(|edge| 1 + edges(&edge.because)).sum()
        }
        match self {
            Certificate::Order { order, wr } => order.len() + wr.len(),
            Certificate::SessionOrders { orders, wr } => {
                orders.iter().map(|(_, order)| order.len()).sum::<usize>() + wr.len()
            }
            Certificate::Witness { ww, wr } => {
                ww.iter().map(|(_, order)| order.len()).sum::<usize>() + wr.len()
            }
            Certificate::Closure { pairs, wr } => 2 * pairs.len() + wr.len(),
            Certificate::Views { views, wr } => {
                views.iter().map(|view| 2 * view.pairs.len()).sum::<usize>() + wr.len()
            }
            Certificate::ThinAirRead { .. } => 1,
            Certificate::Cycle { edges: list, .. } => edges(list),
            Certificate::SplitOrder { branches, .. } => {
                2 + branches.iter().map(Certificate::size).sum::<usize>()
            }
            Certificate::SplitRead { branches, .. } | Certificate::SplitLast { branches, .. } => {
                1 + branches.iter().map(|(_, c)| 1 + c.size()).sum::<usize>()
            }
        }
    }
}
