//! The structure of certificates: the meaning of each edge, and its derivation.
//!
//! A derivation is written where a cycle first uses the edge, so a reader that starts elsewhere in
//! the cycle has to look it up: [`Derivations`] is that index. No traversal here is recursive,
//! since a proof can be very deep.

use std::collections::{HashMap, HashSet};

use consistory_history::OpId;
use consistory_verdict::{Certificate, Edge, Relation};

/// Meaning of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// One operation follows another in its session: `po` and its parts.
    Program,
    /// A read takes its value from a write: `wr`.
    ReadsFrom,
    /// A read comes before the write that overwrites what it read: `rw`.
    Overwritten,
    /// A write comes before another in the store order: `ww`.
    Store,
    /// A rule derives the edge: `cf`, `hb` and the relations that a definition binds.
    Derived,
}

/// Returns the meaning of a relation's edges.
pub(crate) fn kind(relation: &Relation) -> Kind {
    match relation {
        Relation::Po | Relation::Ppo | Relation::Poloc => Kind::Program,
        Relation::Wr | Relation::Wre => Kind::ReadsFrom,
        Relation::Ww => Kind::Store,
        Relation::Rw => Kind::Overwritten,
        Relation::Named(name) if name.starts_with("rw[") => Kind::Overwritten,
        _ => Kind::Derived,
    }
}

/// An edge without its premises.
pub(crate) type Fact<'a> = (OpId, OpId, &'a Relation);

/// Returns the edge without its premises.
pub(crate) fn fact(edge: &Edge) -> Fact<'_> {
    (edge.from, edge.to, &edge.relation)
}

/// Rule that derives an edge, with the premises that its description does not mention.
#[derive(Debug)]
pub(crate) enum Reason<'a> {
    /// The edge starts at a read of `source`, which the target of the edge overwrites.
    Overwritten {
        /// Write that is read.
        source: OpId,
        /// Premises that order `source` before the target.
        rest: Vec<&'a Edge>,
    },
    /// The start of the edge reaches `read`, which nevertheless reads from the target.
    Seen {
        /// The read.
        read: OpId,
        /// Premises that order the start before `read`.
        rest: Vec<&'a Edge>,
    },
    /// Any other rule.
    Other {
        /// Premises.
        rest: Vec<&'a Edge>,
    },
}

/// Finds the rule that derives an edge from its premises.
pub(crate) fn reason<'a>(edge: &Edge, premises: &'a [Edge]) -> Reason<'a> {
    let without = |left_out: usize| {
        premises.iter().enumerate().filter(|&(i, _)| i != left_out).map(|(_, e)| e).collect()
    };
    let wr = |wanted: &dyn Fn(&Edge) -> bool| {
        premises.iter().position(|p| kind(&p.relation) == Kind::ReadsFrom && wanted(p))
    };
    if kind(&edge.relation) == Kind::Overwritten {
        if let Some(i) = wr(&|p| p.to == edge.from) {
            return Reason::Overwritten { source: premises[i].from, rest: without(i) };
        }
    } else if premises.len() > 1
        && let Some(i) = wr(&|p| p.from == edge.to)
    {
        return Reason::Seen { read: premises[i].to, rest: without(i) };
    }
    Reason::Other { rest: premises.iter().collect() }
}

/// Index of the derivations in a cycle.
pub(crate) struct Derivations<'a> {
    first: HashMap<Fact<'a>, &'a [Edge]>,
}

impl<'a> Derivations<'a> {
    /// Indexes the derivations of a cycle; for each edge, the derivation that is complete first.
    ///
    /// It depends only on edges that were derived before it, so following the index never leads to
    /// a cycle.
    pub(crate) fn of(cycle: &'a [Edge]) -> Self {
        let mut first = HashMap::new();
        // Each edge, and whether its premises were indexed.
        let mut stack: Vec<(&Edge, bool)> = cycle.iter().rev().map(|edge| (edge, false)).collect();
        while let Some((edge, is_complete)) = stack.pop() {
            if is_complete {
                first.entry(fact(edge)).or_insert(&*edge.because);
            } else if !edge.because.is_empty() {
                stack.push((edge, true));
                stack.extend(edge.because.iter().rev().map(|premise| (premise, false)));
            }
        }
        Derivations { first }
    }

    /// Returns the premises of an edge, wherever they are written.
    pub(crate) fn premises(&self, edge: &'a Edge) -> &'a [Edge] {
        if edge.because.is_empty() {
            self.first.get(&fact(edge)).copied().unwrap_or_default()
        } else {
            &edge.because
        }
    }

    /// Replaces each edge that only abbreviates a path by the edges of the path.
    ///
    /// Each such edge is expanded once, at its first occurrence since `expanded` was empty; so the
    /// total work is linear in the cycle and its premises.
    pub(crate) fn flatten(
        &self,
        edges: impl DoubleEndedIterator<Item = &'a Edge>,
        expanded: &mut HashSet<Fact<'a>>,
    ) -> Vec<&'a Edge> {
        let mut flat = Vec::new();
        let mut stack: Vec<&Edge> = edges.rev().collect();
        while let Some(edge) = stack.pop() {
            let premises = self.premises(edge);
            if is_path(edge, premises) && expanded.insert(fact(edge)) {
                stack.extend(premises.iter().rev());
            } else {
                flat.push(edge);
            }
        }
        flat
    }
}

/// Shape of the edges of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// There are no edges.
    Nothing,
    /// The edges return to their start.
    Cycle,
    /// The edges end elsewhere: a pair of a relation that must be empty.
    Pair(OpId, OpId),
    /// An operation in a set that must be empty, or related to itself directly.
    Member(OpId),
}

/// Determines the shape of consecutive edges.
pub(crate) fn shape(edges: &[&Edge]) -> Shape {
    match edges {
        [] => Shape::Nothing,
        [one] if one.from == one.to && one.because.is_empty() => Shape::Member(one.from),
        [first, .., last] | [first @ last] if first.from != last.to => {
            Shape::Pair(first.from, last.to)
        }
        _ => Shape::Cycle,
    }
}

/// Rotates a cycle so that it is easy to read: it starts after a derived edge, at the first of a
/// session's operations. A sequence that is not a cycle is returned unchanged.
pub(crate) fn turned(mut cycle: Vec<&Edge>) -> Vec<&Edge> {
    if shape(&cycle) != Shape::Cycle {
        return cycle;
    }
    let score = |i: usize| {
        let before = kind(&cycle[(i + cycle.len() - 1) % cycle.len()].relation);
        let here = kind(&cycle[i].relation);
        let derived = !matches!(before, Kind::Program | Kind::ReadsFrom);
        (derived, here == Kind::Program && before != Kind::Program)
    };
    // The first of the best positions, so that the result does not depend on later edges.
    let best = (0..cycle.len()).rev().max_by_key(|&i| score(i)).unwrap_or(0);
    cycle.rotate_left(best);
    cycle
}

/// A violation at the leaf of a tree of cases.
pub(crate) struct Leaf<'a> {
    /// Assumptions, outermost first.
    pub(crate) assumptions: Vec<Assumption>,
    /// Certificate that closes the case.
    pub(crate) certificate: &'a Certificate,
}

/// Assumption of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Assumption {
    /// One write comes before another in the store order.
    Before(OpId, OpId),
    /// A read takes its value from a write.
    ReadsFrom(OpId, OpId),
    /// A write is the last of its key.
    Last(OpId),
}

/// Returns the first `most` leaves of a tree of cases, from the left, and the number of all.
pub(crate) fn leaves(certificate: &Certificate, most: usize) -> (Vec<Leaf<'_>>, usize) {
    let mut found = Vec::new();
    let mut total = 0;
    // Assumptions form the path to the current node; each entry contains the depth of its node.
    let mut path: Vec<Assumption> = Vec::new();
    let mut stack: Vec<(usize, Option<Assumption>, &Certificate)> = vec![(0, None, certificate)];
    while let Some((depth, assumption, certificate)) = stack.pop() {
        path.truncate(depth);
        path.extend(assumption);
        let depth = path.len();
        match certificate {
            Certificate::SplitOrder { writes: [a, b], branches } => {
                stack.push((depth, Some(Assumption::Before(*b, *a)), &branches[1]));
                stack.push((depth, Some(Assumption::Before(*a, *b)), &branches[0]));
            }
            Certificate::SplitRead { read, branches } => {
                stack.extend(branches.iter().rev().map(|(write, branch)| {
                    (depth, Some(Assumption::ReadsFrom(*read, *write)), branch)
                }));
            }
            Certificate::SplitLast { branches, .. } if !branches.is_empty() => {
                stack.extend(
                    branches
                        .iter()
                        .rev()
                        .map(|(write, branch)| (depth, Some(Assumption::Last(*write)), branch)),
                );
            }
            leaf => {
                total += 1;
                if found.len() < most {
                    found.push(Leaf { assumptions: path.clone(), certificate: leaf });
                }
            }
        }
    }
    (found, total)
}

/// Checks whether the premises form a path from the edge's start to its end.
fn is_path(edge: &Edge, premises: &[Edge]) -> bool {
    let (Some(first), Some(last)) = (premises.first(), premises.last()) else { return false };
    first.from == edge.from
        && last.to == edge.to
        && premises.windows(2).all(|pair| pair[0].to == pair[1].from)
}
