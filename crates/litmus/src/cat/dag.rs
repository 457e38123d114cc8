//! A compiled model: a graph of operations on sets and relations, in which each operation occurs
//! once.
//!
//! Running a model's statements builds a graph of operations instead of computing relations. The
//! graph is then evaluated for each candidate execution, stage by stage: first the operations that
//! depend only on the program's events, then those that also depend on reads-from, then those that
//! also depend on coherence. Equal operations are shared.
//!
//! With a [`Ground`] execution the same builder computes every operation at once, which is needed
//! for models that choose relations from sets of relations, or match on sets.

use std::collections::HashMap;

use super::bits::{Bits, Shape};
use super::syntax::Test;

/// Index of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct NodeId(pub(crate) u32);

/// Stage at which the inputs of an operation are known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Stage {
    /// The events of the threads are known.
    Events,
    /// Reads-from is known.
    ReadsFrom,
    /// Coherence is known.
    Coherence,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Op {
    /// A set or relation of the execution, by its index in the vocabulary.
    Base(u32),
    EmptySet,
    EmptyRelation,
    AllEvents,
    AllPairs,
    Union(NodeId, NodeId),
    Inter(NodeId, NodeId),
    Diff(NodeId, NodeId),
    Complement(NodeId),
    Seq(NodeId, NodeId),
    Inverse(NodeId),
    Plus(NodeId),
    Star(NodeId),
    Opt(NodeId),
    Product(NodeId, NodeId),
    Identity(NodeId),
    Domain(NodeId),
    Range(NodeId),
    /// Member of a recursive group, inside the group.
    Variable(u32, u32),
    /// Member of a recursive group, after the fixed point was computed.
    Fixed(u32, u32),
    /// A set or relation given by its bits.
    Given(u32),
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) op: Op,
    pub(crate) is_set: bool,
    pub(crate) stage: Stage,
    /// Recursive groups on whose variables the operation depends.
    open: Vec<u32>,
    /// Whether the value can only grow when reads-from and coherence grow.
    pub(crate) monotone: bool,
}

#[derive(Debug)]
struct Group {
    bodies: Vec<NodeId>,
    /// Operations to repeat until no value changes, in order.
    inner: Vec<NodeId>,
}

/// A graph of operations.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    known: HashMap<Op, NodeId>,
    groups: Vec<Group>,
    /// Shape of the execution on which operations are computed at once, if any.
    pub(crate) ground: Option<Shape>,
    pub(crate) values: Vec<Bits>,
    /// Number of recomputations of given values.
    given: u32,
}

/// Largest number of rounds of a recursive definition.
const MAX_ROUNDS: usize = 10_000;

impl Graph {
    /// Returns an empty graph, on an execution if there is one.
    pub(crate) fn on(ground: Option<Shape>) -> Self {
        Graph { ground, ..Graph::default() }
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub(crate) fn value(&self, id: NodeId) -> &Bits {
        &self.values[id.0 as usize]
    }

    /// Adds a set or relation of the execution.
    pub(crate) fn base(
        &mut self,
        index: u32,
        is_set: bool,
        stage: Stage,
        monotone: bool,
        value: Option<Bits>,
    ) -> NodeId {
        if let Some(&id) = self.known.get(&Op::Base(index)) {
            return id;
        }
        let id = self.push(Op::Base(index), is_set, stage, Vec::new(), monotone);
        if let Some(value) = value {
            self.values[id.0 as usize] = value;
        }
        id
    }

    pub(crate) fn knows(&self, op: &Op) -> bool {
        self.known.contains_key(op)
    }

    /// Adds a set or relation by its bits.
    pub(crate) fn give(&mut self, value: Bits, is_set: bool) -> NodeId {
        self.given += 1;
        let id = self.push(Op::Given(self.given), is_set, Stage::Events, Vec::new(), true);
        self.values[id.0 as usize] = value;
        id
    }

    fn push(
        &mut self,
        op: Op,
        is_set: bool,
        stage: Stage,
        open: Vec<u32>,
        monotone: bool,
    ) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        if self.ground.is_none() || matches!(op, Op::Base(_)) {
            self.known.insert(op.clone(), id);
        }
        self.nodes.push(Node { op, is_set, stage, open, monotone });
        self.values.push(Vec::new());
        id
    }

    /// Adds an operation, or returns an equal one.
    pub(crate) fn add(&mut self, op: Op) -> NodeId {
        let op = match op {
            Op::Union(a, b) if a == b => return a,
            Op::Inter(a, b) if a == b => return a,
            Op::Union(a, b) if b < a => Op::Union(b, a),
            Op::Inter(a, b) if b < a => Op::Inter(b, a),
            Op::Plus(a) if matches!(self.node(a).op, Op::Plus(_)) => return a,
            Op::Star(a) => match self.node(a).op {
                Op::Plus(inner) => Op::Star(inner),
                _ => Op::Star(a),
            },
            op => op,
        };
        if self.ground.is_none()
            && let Some(&id) = self.known.get(&op)
        {
            return id;
        }
        // Simplifications such as `e | 0` to `e`, as far as they need no value.
        match op {
            Op::Union(a, b) => {
                if self.is_empty_op(a) {
                    return b;
                }
                if self.is_empty_op(b) {
                    return a;
                }
            }
            Op::Inter(a, b) | Op::Seq(a, b) if self.ground.is_none() => {
                if self.is_empty_op(a) {
                    return a;
                }
                if self.is_empty_op(b) {
                    return b;
                }
            }
            Op::Diff(a, b) if self.is_empty_op(a) || self.is_empty_op(b) => return a,
            Op::Inverse(a) | Op::Plus(a) if self.is_empty_op(a) => return a,
            Op::Identity(a) if self.is_empty_op(a) => return self.add(Op::EmptyRelation),
            Op::Domain(a) | Op::Range(a) if self.is_empty_op(a) => return self.add(Op::EmptySet),
            Op::Product(a, b) if self.is_empty_op(a) || self.is_empty_op(b) => {
                return self.add(Op::EmptyRelation);
            }
            _ => {}
        }
        let inputs = inputs(&op);
        let is_set = match op {
            Op::EmptySet | Op::AllEvents | Op::Domain(_) | Op::Range(_) => true,
            Op::Union(a, _) | Op::Inter(a, _) | Op::Diff(a, _) | Op::Complement(a) => {
                self.node(a).is_set
            }
            _ => false,
        };
        let stage = inputs.iter().map(|&id| self.node(id).stage).max().unwrap_or(Stage::Events);
        let mut open: Vec<u32> = Vec::new();
        let mut monotone = true;
        for &input in &inputs {
            monotone &= self.node(input).monotone;
            for group in &self.node(input).open {
                if !open.contains(group) {
                    open.push(*group);
                }
            }
        }
        match op {
            Op::Diff(_, b) | Op::Complement(b) => {
                let subtracted = self.node(b);
                monotone &= subtracted.stage == Stage::Events && subtracted.open.is_empty();
            }
            _ => {}
        }
        let id = self.push(op, is_set, stage, open, monotone);
        if let Some(shape) = self.ground {
            let mut out = if is_set { shape.set() } else { shape.relation() };
            compute(shape, &self.nodes[id.0 as usize].op, &self.values, &mut out);
            self.values[id.0 as usize] = out;
        }
        id
    }

    /// Checks whether an operation is empty in every execution.
    pub(crate) fn is_empty_op(&self, id: NodeId) -> bool {
        matches!(self.node(id).op, Op::EmptySet | Op::EmptyRelation)
    }

    /// Opens a recursive group of relations or sets, and returns its variables.
    pub(crate) fn open_group(&mut self, are_sets: &[bool]) -> (u32, Vec<NodeId>) {
        let group = self.groups.len() as u32;
        self.groups.push(Group { bodies: Vec::new(), inner: Vec::new() });
        let variables = (0..are_sets.len())
            .map(|at| {
                let op = Op::Variable(group, at as u32);
                self.push(op, are_sets[at], Stage::Events, vec![group], true)
            })
            .collect();
        (group, variables)
    }

    /// Closes a recursive group: its members are the least fixed point of the bodies.
    pub(crate) fn close_group(
        &mut self,
        group: u32,
        variables: &[NodeId],
        bodies: Vec<NodeId>,
    ) -> Vec<NodeId> {
        if let ([variable], [body]) = (variables, &bodies[..])
            && let Some(closed) = self.transitive_closure(*variable, *body)
        {
            return vec![closed];
        }
        let mut inner = Vec::new();
        for &body in &bodies {
            self.collect_open(body, group, &mut inner);
        }
        inner.sort();
        let stage = inner
            .iter()
            .map(|&id| self.node(id).stage)
            .chain(bodies.iter().map(|&id| self.node(id).stage))
            .max();
        let stage = stage.unwrap_or(Stage::Events);
        let monotone = bodies.iter().all(|&id| self.node(id).monotone);
        let mut open: Vec<u32> = Vec::new();
        for &id in inner.iter().chain(&bodies) {
            for &other in &self.node(id).open {
                if other != group && !open.contains(&other) {
                    open.push(other);
                }
            }
        }
        self.groups[group as usize] = Group { bodies, inner };
        (0..variables.len())
            .map(|at| {
                let is_set = self.node(variables[at]).is_set;
                self.push(Op::Fixed(group, at as u32), is_set, stage, open.clone(), monotone)
            })
            .collect()
    }

    /// Recognises `let rec r = e | r;r`, the transitive closure of `e`.
    fn transitive_closure(&mut self, variable: NodeId, body: NodeId) -> Option<NodeId> {
        let mut parts = Vec::new();
        let mut squares = 0;
        let mut todo = vec![body];
        while let Some(id) = todo.pop() {
            match self.node(id).op {
                Op::Union(a, b) if !self.node(id).open.is_empty() => todo.extend([a, b]),
                Op::Seq(a, b) if a == variable && b == variable => squares += 1,
                _ if self.node(id).open.is_empty() => parts.push(id),
                _ => return None,
            }
        }
        if squares == 0 || parts.is_empty() {
            return None;
        }
        parts.sort();
        let mut all = parts[0];
        for &part in &parts[1..] {
            all = self.add(Op::Union(all, part));
        }
        Some(self.add(Op::Plus(all)))
    }

    fn collect_open(&self, id: NodeId, group: u32, into: &mut Vec<NodeId>) {
        let node = self.node(id);
        if !node.open.contains(&group) || matches!(node.op, Op::Variable(..)) || into.contains(&id)
        {
            return;
        }
        for input in self.inputs_of(id) {
            self.collect_open(input, group, into);
        }
        into.push(id);
    }

    /// Returns the inputs of an operation, including the outside inputs of a fixed point.
    pub(crate) fn inputs_of(&self, id: NodeId) -> Vec<NodeId> {
        let op = &self.node(id).op;
        let Op::Fixed(group, _) = op else { return inputs(op) };
        let group_index = *group;
        let group = &self.groups[group_index as usize];
        let mut outer = Vec::new();
        for &inner in &group.inner {
            for input in self.inputs_of(inner) {
                if !self.node(input).open.contains(&group_index) {
                    outer.push(input);
                }
            }
        }
        outer.extend(
            group
                .bodies
                .iter()
                .copied()
                .filter(|&body| !self.node(body).open.contains(&group_index)),
        );
        outer
    }
}

fn inputs(op: &Op) -> Vec<NodeId> {
    match *op {
        Op::Base(_) | Op::EmptySet | Op::EmptyRelation | Op::AllEvents | Op::AllPairs => vec![],
        Op::Variable(..) | Op::Fixed(..) | Op::Given(_) => vec![],
        Op::Union(a, b) | Op::Inter(a, b) | Op::Diff(a, b) | Op::Seq(a, b) | Op::Product(a, b) => {
            vec![a, b]
        }
        Op::Complement(a) | Op::Inverse(a) | Op::Plus(a) | Op::Star(a) | Op::Opt(a) => vec![a],
        Op::Identity(a) | Op::Domain(a) | Op::Range(a) => vec![a],
    }
}

/// The values of a graph's operations for one execution.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) shape: Shape,
    pub(crate) values: Vec<Bits>,
}

impl Memory {
    /// Adapts the memory to executions of another size.
    pub(crate) fn reset(&mut self, graph: &Graph, shape: Shape) {
        if self.shape == shape && self.values.len() == graph.nodes.len() {
            return;
        }
        self.shape = shape;
        self.values.resize_with(graph.nodes.len(), Vec::new);
        for (node, value) in graph.nodes.iter().zip(&mut self.values) {
            value.clear();
            value.resize(if node.is_set { shape.words } else { shape.words * shape.events }, 0);
        }
    }

    /// Computes one operation from its inputs.
    pub(crate) fn compute(&mut self, graph: &Graph, id: NodeId) {
        let at = id.0 as usize;
        match graph.node(id).op {
            Op::Base(_) | Op::Given(_) | Op::Variable(..) => {}
            Op::Fixed(group, member) => {
                self.fix(graph, group);
                let variable = self.variable(graph, group, member);
                let value = self.values[variable].clone();
                self.values[at] = value;
            }
            ref op => {
                let mut out = std::mem::take(&mut self.values[at]);
                compute(self.shape, op, &self.values, &mut out);
                self.values[at] = out;
            }
        }
    }

    fn variable(&self, graph: &Graph, group: u32, member: u32) -> usize {
        graph.known[&Op::Variable(group, member)].0 as usize
    }

    fn fix(&mut self, graph: &Graph, group: u32) {
        let Group { bodies, inner } = &graph.groups[group as usize];
        let variables: Vec<usize> =
            (0..bodies.len()).map(|at| self.variable(graph, group, at as u32)).collect();
        for &variable in &variables {
            self.values[variable].fill(0);
        }
        for _ in 0..MAX_ROUNDS {
            for &id in inner {
                self.compute(graph, id);
            }
            let mut changed = false;
            for (&variable, &body) in variables.iter().zip(bodies) {
                if self.values[variable] != self.values[body.0 as usize] {
                    changed = true;
                    let value = self.values[body.0 as usize].clone();
                    self.values[variable] = value;
                }
            }
            if !changed {
                return;
            }
        }
    }
}

fn compute(shape: Shape, op: &Op, values: &[Bits], out: &mut [u64]) {
    let value = |id: NodeId| &values[id.0 as usize][..];
    let zip = |out: &mut [u64], a: NodeId, b: NodeId, f: fn(u64, u64) -> u64| {
        for ((out, &a), &b) in out.iter_mut().zip(value(a)).zip(value(b)) {
            *out = f(a, b);
        }
    };
    match *op {
        Op::Base(_) | Op::Given(_) | Op::Variable(..) | Op::Fixed(..) => {}
        Op::EmptySet | Op::EmptyRelation => out.fill(0),
        Op::AllEvents => shape.fill_set(out),
        Op::AllPairs => {
            for row in out.chunks_mut(shape.words) {
                shape.fill_set(row);
            }
        }
        Op::Union(a, b) => zip(out, a, b, |a, b| a | b),
        Op::Inter(a, b) => zip(out, a, b, |a, b| a & b),
        Op::Diff(a, b) => zip(out, a, b, |a, b| a & !b),
        Op::Complement(a) => {
            // A set is one row.
            for (row, of) in out.chunks_mut(shape.words).zip(value(a).chunks(shape.words)) {
                shape.fill_set(row);
                for (row, of) in row.iter_mut().zip(of) {
                    *row &= !of;
                }
            }
        }
        Op::Seq(a, b) => shape.compose(value(a), value(b), out),
        Op::Inverse(a) => shape.invert(value(a), out),
        Op::Plus(a) | Op::Star(a) | Op::Opt(a) => {
            out.copy_from_slice(value(a));
            if !matches!(op, Op::Opt(_)) {
                shape.close(out);
            }
            if !matches!(op, Op::Plus(_)) {
                for event in 0..shape.events {
                    shape.relate(out, event, event);
                }
            }
        }
        Op::Product(a, b) => {
            out.fill(0);
            for from in shape.members(value(a)) {
                out[from * shape.words..(from + 1) * shape.words].copy_from_slice(value(b));
            }
        }
        Op::Identity(a) => {
            out.fill(0);
            for event in shape.members(value(a)) {
                shape.relate(out, event, event);
            }
        }
        Op::Domain(a) => {
            out.fill(0);
            for (event, row) in value(a).chunks(shape.words).enumerate() {
                if row.iter().any(|&word| word != 0) {
                    shape.insert(out, event);
                }
            }
        }
        Op::Range(a) => {
            out.fill(0);
            for row in value(a).chunks(shape.words) {
                for (out, word) in out.iter_mut().zip(row) {
                    *out |= word;
                }
            }
        }
    }
}

/// Decides a check on computed bits.
pub(crate) fn passes(shape: Shape, test: Test, negated: bool, value: &[u64]) -> bool {
    let holds = match test {
        Test::Acyclic => shape.is_acyclic(value),
        Test::Irreflexive => shape.is_irreflexive(value),
        Test::Empty => value.iter().all(|&word| word == 0),
    };
    holds != negated
}
