//! Derivations: pairs, the premises of each, and their written form.
//!
//! The pairs form an acyclic graph. Certificates contain it as trees: the derivation of a pair is
//! written at its first use, from left to right and premises before conclusions; a later use of the
//! same pair has no premises.

use std::borrow::Cow;

use consistory_history::OpId;
use consistory_verdict::Edge;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::interpret::Scope;
use consistory_definition::{TermId, VariableId};

/// A pair of a named relation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) what: What,
    pub(crate) scope: Scope,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum What {
    Po,
    Wr,
    Ww,
    ClientOrder,
    RealTime,
    Final,
    Variable(VariableId),
    Apply(TermId),
    /// A term without a name, given by its text.
    Text(TermId),
}

/// A step into a scope.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum DerivationStep {
    Call(TermId),
    Operation(VariableId, usize),
    /// The stage of a recursive group, named by its first variable.
    Stage(VariableId, usize),
}

pub(crate) type NodeId = usize;

/// A pair and its premises.
pub(crate) struct Node {
    key: Key,
    label: Cow<'static, str>,
    pub(crate) premises: Vec<NodeId>,
}

/// Pairs and their premises.
#[derive(Default)]
pub(crate) struct Derivation {
    nodes: Vec<Node>,
    index: FxHashMap<Key, NodeId>,
    scopes: FxHashMap<(Scope, DerivationStep), Scope>,
}

impl Derivation {
    pub(crate) fn key(&self, node: NodeId) -> Key {
        self.nodes[node].key
    }

    pub(crate) fn get(&self, key: &Key) -> Option<NodeId> {
        self.index.get(key).copied()
    }

    pub(crate) fn set_premises(&mut self, node: NodeId, premises: Vec<NodeId>) {
        self.nodes[node].premises = premises;
    }

    /// Finds or creates a node, and returns whether it is new.
    pub(crate) fn node(
        &mut self,
        key: Key,
        label: impl FnOnce() -> Cow<'static, str>,
    ) -> (NodeId, bool) {
        if let Some(known) = self.get(&key) {
            return (known, false);
        }
        let node = self.nodes.len();
        self.nodes.push(Node { key, label: label(), premises: Vec::new() });
        self.index.insert(key, node);
        (node, true)
    }

    /// Numbers the scope that a step leads to.
    pub(crate) fn step(&mut self, scope: Scope, step: DerivationStep) -> Scope {
        let fresh = self.scopes.len() as Scope + 1;
        *self.scopes.entry((scope, step)).or_insert(fresh)
    }

    /// Writes out the derivations of some nodes.
    pub(crate) fn write(&self, nodes: &[NodeId]) -> Vec<Edge> {
        let mut written = FxHashSet::default();
        nodes.iter().map(|&node| self.write_one(node, &mut written)).collect()
    }

    /// Writes one tree, with an explicit stack since derivations can be deep.
    fn write_one(&self, root: NodeId, written: &mut FxHashSet<NodeId>) -> Edge {
        struct Open {
            edge: Edge,
            premises: std::vec::IntoIter<NodeId>,
        }
        let open = |node: NodeId, written: &mut FxHashSet<NodeId>| {
            let Node { key, label, .. } = &self.nodes[node];
            let premises =
                if written.insert(node) { self.premises_of(node).to_vec() } else { Vec::new() };
            Open {
                edge: Edge {
                    from: OpId::new(key.from),
                    to: OpId::new(key.to),
                    relation: (**label).into(),
                    because: Vec::new(),
                },
                premises: premises.into_iter(),
            }
        };
        let mut stack = vec![open(root, written)];
        loop {
            let last = stack.len() - 1;
            match stack[last].premises.next() {
                Some(premise) => stack.push(open(self.essence(premise), written)),
                None => {
                    let done = stack.pop().expect("the stack is not empty");
                    match stack.last_mut() {
                        Some(parent) => parent.edge.because.push(done.edge),
                        None => return done.edge,
                    }
                }
            }
        }
    }

    /// Skips calls of functions that only restrict a relation, such as to writes of one key.
    fn essence(&self, mut node: NodeId) -> NodeId {
        while let Some(premise) = self.sole_premise(node)
            && !self.is_local_of(premise, node)
        {
            node = premise;
        }
        node
    }

    /// Returns the premises to show. If a call only represents a name that is bound inside it,
    /// these are the premises of that name.
    fn premises_of(&self, node: NodeId) -> &[NodeId] {
        match self.sole_premise(node) {
            Some(premise) if self.is_local_of(premise, node) => &self.nodes[premise].premises,
            _ => &self.nodes[node].premises,
        }
    }

    /// Returns the one premise of a call, if it is about the same pair.
    fn sole_premise(&self, call: NodeId) -> Option<NodeId> {
        let Node { key, premises, .. } = &self.nodes[call];
        let [premise] = premises[..] else { return None };
        let ends = |node: NodeId| (self.nodes[node].key.from, self.nodes[node].key.to);
        (matches!(key.what, What::Apply(_)) && ends(premise) == ends(call)).then_some(premise)
    }

    /// Returns whether a node is about a name that is bound inside a call.
    fn is_local_of(&self, node: NodeId, call: NodeId) -> bool {
        let (key, call) = (self.nodes[node].key, self.nodes[call].key);
        let What::Apply(term) = call.what else { return false };
        let inside = self.scopes.get(&(call.scope, DerivationStep::Call(term)));
        matches!(key.what, What::Variable(_)) && Some(&key.scope) == inside
    }
}
