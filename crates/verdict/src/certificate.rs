//! Certificates: the proofs of verdicts.

use consistory_history::{KeyId, OpId, SessionId};

use crate::Relation;

/// The proof of a verdict.
///
/// If a history is not differentiated, `wr` lists the source of each ambiguous read; a read with
/// one candidate is not listed. Orders omit initial writes and operations that do not count
/// (aborted ones, and writes of unknown status that are never read).
#[derive(Clone, PartialEq, Debug)]
pub enum Certificate {
    /// Consistent: one total order of all operations.
    ///
    /// For CC it extends `po` and `wr`. For CCv it is also the arbitration order, by which each
    /// read returns the last of the writes in its causal past. For SC each read returns the last
    /// write before it.
    Order {
        /// The order, first operation first.
        order: Vec<OpId>,
        /// Choices of `wr`.
        wr: Vec<(OpId, OpId)>,
    },
    /// Consistent, CM: for each session, a total order of the causal past of its last operation,
    /// including that operation. It extends `po` and `wr`, and each read of the session returns the
    /// last write before it.
    SessionOrders {
        /// One order per session; a session without operations has none.
        orders: Vec<(SessionId, Vec<OpId>)>,
        /// Choices of `wr`.
        wr: Vec<(OpId, OpId)>,
    },
    /// Consistent: the existentially quantified relations of a definition, for which every check of
    /// the definition holds.
    Witness {
        /// For each key its writes in store order, initial write first; empty if the definition
        /// has no store order.
        ww: Vec<(KeyId, Vec<OpId>)>,
        /// Choices of `wr`.
        wr: Vec<(OpId, OpId)>,
    },
    /// Consistent: pairs of operations that, together with program order and `wr`, are acyclic and
    /// closed under the rules of the model.
    Closure {
        /// The pairs, each the earlier operation first.
        pairs: Vec<(OpId, OpId)>,
        /// Choices of `wr`.
        wr: Vec<(OpId, OpId)>,
    },
    /// Consistent, CCM and wCCM: the order of writes that the reads of each session force.
    ///
    /// With program order and `wr`, the pairs of all views form the least `hb`; for rules that
    /// consider each session separately, only the pairs of its own view count.
    Views {
        /// The views, each of one session.
        views: Vec<View>,
        /// Choices of `wr`.
        wr: Vec<(OpId, OpId)>,
    },
    /// Violation: a read of a value that was never written.
    ThinAirRead {
        /// The read.
        read: OpId,
    },
    /// Violation: a cycle of a relation that must be acyclic.
    Cycle {
        /// The edges; each starts at the end of the previous one, and the last ends at the start of
        /// the first.
        edges: Vec<Edge>,
        /// For CM the operation o whose `hb_o` is cyclic.
        observer: Option<OpId>,
        /// For a definition, the check that fails, counted from 0.
        check: Option<u32>,
    },
    /// Violation in both orders of two writes of one key.
    SplitOrder {
        /// The two writes.
        writes: [OpId; 2],
        /// The proof if the first write comes first, and the proof if the second write does.
        branches: Box<[Certificate; 2]>,
    },
    /// Violation for every source of a read.
    SplitRead {
        /// The read.
        read: OpId,
        /// Each candidate with its refutation.
        branches: Vec<(OpId, Certificate)>,
    },
    /// Violation for every last write of a key with a final value.
    SplitLast {
        /// The key.
        key: KeyId,
        /// Each write that may be the last, with its refutation; empty if no write has the value.
        branches: Vec<(OpId, Certificate)>,
    },
}

/// The order that the reads of one session force.
#[derive(Clone, PartialEq, Debug)]
pub struct View {
    /// The session.
    pub session: SessionId,
    /// The program order of the view: `po`, `ppo` or `poloc`.
    pub relation: Relation,
    /// Pairs of writes of one key, each the earlier write first.
    pub pairs: Vec<(OpId, OpId)>,
}

/// An edge of a cycle, or a premise of one.
#[derive(Clone, PartialEq, Debug)]
pub struct Edge {
    /// Start of the edge.
    pub from: OpId,
    /// End of the edge.
    pub to: OpId,
    /// Relation of the edge.
    pub relation: Relation,
    /// Premises of the rule that derives the edge; empty for `po`, `wr` and assumed `ww`.
    ///
    /// A derivation is written out at its first use, reading from the left and premises before
    /// conclusions; later uses of the same edge have no premises.
    pub because: Vec<Edge>,
}

impl Edge {
    /// Builds an edge that needs no premises.
    pub fn given(from: OpId, to: OpId, relation: impl Into<Relation>) -> Self {
        Edge { from, to, relation: relation.into(), because: Vec::new() }
    }

    /// Builds a derived edge.
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
    /// Iterates over the edges of the cycle, or of the cycles of all cases, with their premises.
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

    /// Returns the name of the kind of certificate.
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
