//! The skeletons of a program: the possible control flows of its threads.
//!
//! A thread with jumps or compare-and-exchanges can have several control flows. A skeleton fixes
//! the control flow of each thread, so that its events, their locations, program order and
//! dependencies are known. Only values are open, and they are determined by the sources of the
//! reads. A program without jumps has exactly one skeleton.
//!
//! Values form a graph: a node is a constant, the value read by an event, or an operator applied to
//! two nodes. Each jump that was taken or not, and each exchange that succeeded or not, imposes a
//! demand on a node.

use std::ops::Range;

use crate::program::{
    Expression, Fence, Instruction, LocationId, Observable, Operator, Outcome, Program, RegisterId,
    ThreadId, Update, Value,
};
use crate::semantics::OutcomesError;

/// Largest number of events of a skeleton: a set of events is one word.
pub(crate) const EVENT_LIMIT: usize = 64;

/// Largest number of control flows of a program.
const WAYS_LIMIT: usize = 1 << 12;

/// An event: one step of a thread that touches memory or orders it.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) thread: usize,
    /// The index of its instruction in the thread's code.
    pub(crate) instruction: usize,
    pub(crate) kind: EventKind,
    /// Location; `None` for a fence.
    pub(crate) location: Option<LocationId>,
    /// Value that it writes, if it writes.
    pub(crate) value: Option<NodeId>,
    /// Whether it is a read-modify-write, including one whose exchange failed: it is ordered with
    /// all events of its thread.
    pub(crate) is_atomic: bool,
}

/// The kind of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum EventKind {
    Read,
    Write,
    /// A read and a write in one event.
    Update,
    Fence(Fence),
}

impl Event {
    pub(crate) fn reads(&self) -> bool {
        matches!(self.kind, EventKind::Read | EventKind::Update)
    }

    pub(crate) fn writes(&self) -> bool {
        matches!(self.kind, EventKind::Write | EventKind::Update)
    }

    /// Checks whether it is a fence that orders all accesses.
    pub(crate) fn is_full_fence(&self) -> bool {
        matches!(self.kind, EventKind::Fence(Fence::Full | Fence::Tagged(_)))
    }
}

/// A value of the graph.
pub(crate) type NodeId = u32;

/// Origin of a value.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Constant(Value),
    /// Value that the event reads.
    Read(usize),
    Binary(Operator, NodeId, NodeId),
}

/// The source of a read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Source {
    Initial,
    Event(usize),
}

/// One control flow of a program.
#[derive(Clone, Debug)]
pub(crate) struct Skeleton {
    /// The events of a thread are consecutive, in program order.
    pub(crate) events: Vec<Event>,
    /// Range of the events of each thread.
    pub(crate) threads: Vec<Range<usize>>,
    /// For each event, the reads on which its address depends.
    pub(crate) addr: Vec<u64>,
    /// For each event, the reads on which the value it writes depends.
    pub(crate) data: Vec<u64>,
    /// For each event, the reads on which a jump before it depends.
    pub(crate) ctrl: Vec<u64>,
    nodes: Vec<Node>,
    /// Nodes whose value must be nonzero (`true`) or zero.
    demands: Vec<(NodeId, bool)>,
    /// Final value of each observed register; `None` for a location.
    finals: Vec<Option<NodeId>>,
    initial: Vec<Value>,
}

impl Skeleton {
    /// Returns whether one event is before another in program order.
    pub(crate) fn po(&self, first: usize, second: usize) -> bool {
        first < second && self.events[first].thread == self.events[second].thread
    }

    /// Returns the events that write a location, in order of the threads.
    pub(crate) fn writes_of(&self, location: LocationId) -> impl Iterator<Item = usize> + '_ {
        let is_write = move |&at: &usize| {
            self.events[at].writes() && self.events[at].location == Some(location)
        };
        (0..self.events.len()).filter(is_write)
    }

    /// Counts the locations.
    pub(crate) fn locations(&self) -> usize {
        self.initial.len()
    }

    /// Returns the initial value of a location.
    pub(crate) fn initial(&self, location: LocationId) -> Value {
        self.initial[location.index()]
    }

    /// Computes all values, given the source of each event that reads.
    ///
    /// Returns `None` if a demand is not met, or if a value would depend on itself.
    pub(crate) fn values(&self, source: &[Source]) -> Option<Vec<Value>> {
        let mut known: Vec<Option<Value>> = vec![None; self.nodes.len()];
        loop {
            let mut is_complete = true;
            let mut has_changed = false;
            for (at, node) in self.nodes.iter().enumerate() {
                if known[at].is_some() {
                    continue;
                }
                known[at] = match *node {
                    Node::Constant(value) => Some(value),
                    Node::Binary(operator, left, right) => {
                        let (left, right) = (known[left as usize], known[right as usize]);
                        left.zip(right).map(|(left, right)| operator.apply(left, right))
                    }
                    Node::Read(event) => match source[event] {
                        Source::Initial => {
                            self.events[event].location.map(|location| self.initial(location))
                        }
                        Source::Event(write) => {
                            self.events[write].value.and_then(|value| known[value as usize])
                        }
                    },
                };
                has_changed |= known[at].is_some();
                is_complete &= known[at].is_some();
            }
            if is_complete {
                break;
            }
            if !has_changed {
                return None;
            }
        }
        let values: Vec<Value> = known.into_iter().flatten().collect();
        let is_met = |&(node, is_true): &(NodeId, bool)| (values[node as usize] != 0) == is_true;
        self.demands.iter().all(is_met).then_some(values)
    }

    /// Builds the outcome of an execution; `last` returns the last write of a location.
    pub(crate) fn outcome(
        &self,
        program: &Program,
        values: &[Value],
        last: impl Fn(LocationId) -> Source,
    ) -> Outcome {
        let value = |(observable, node): (&Observable, &Option<NodeId>)| match (observable, node) {
            (_, Some(node)) => values[*node as usize],
            (Observable::Location(location), None) => match last(*location) {
                Source::Initial => self.initial(*location),
                Source::Event(write) => {
                    self.events[write].value.map_or(0, |value| values[value as usize])
                }
            },
            (Observable::Register(..), None) => {
                unreachable!("every observed register has a node for what it holds")
            }
        };
        Outcome(program.observed.iter().zip(&self.finals).map(value).collect())
    }

    /// Returns the origin of each observed register's final value; `None` for a location.
    pub(crate) fn finals(&self) -> impl Iterator<Item = Option<&Node>> {
        self.finals.iter().map(|node| node.map(|node| &self.nodes[node as usize]))
    }

    /// Checks whether each observed register holds a constant or the value read by an event.
    pub(crate) fn finals_are_plain(&self) -> bool {
        self.finals().flatten().all(|node| !matches!(node, Node::Binary(..)))
    }

    /// Returns the origin of a value.
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// Checks whether there are no demands, so that all values are possible.
    pub(crate) fn is_undemanding(&self) -> bool {
        self.demands.is_empty()
    }
}

/// Returns every skeleton of a program.
pub(crate) fn skeletons(program: &Program) -> Result<Vec<Skeleton>, OutcomesError> {
    let mut all = vec![Skeleton {
        events: Vec::new(),
        threads: Vec::new(),
        addr: Vec::new(),
        data: Vec::new(),
        ctrl: Vec::new(),
        nodes: Vec::new(),
        demands: Vec::new(),
        finals: vec![None; program.observed.len()],
        initial: program.locations.iter().map(|location| location.initial).collect(),
    }];
    for thread in 0..program.threads.len() {
        let mut extended = Vec::new();
        for skeleton in all {
            let limit = WAYS_LIMIT - extended.len().min(WAYS_LIMIT);
            extended.extend(walk(program, thread, skeleton, limit)?);
        }
        all = extended;
    }
    Ok(all)
}

/// State of a traversal of a thread.
#[derive(Clone)]
struct Walk {
    skeleton: Skeleton,
    at: usize,
    /// Value of each register, and the reads on which it depends.
    registers: Vec<(NodeId, u64)>,
    /// Reads on which the jumps so far depend.
    ctrl: u64,
}

/// Returns every control flow of one thread, each appended to the skeleton of the threads before
/// it.
fn walk(
    program: &Program,
    thread: usize,
    mut skeleton: Skeleton,
    limit: usize,
) -> Result<Vec<Skeleton>, OutcomesError> {
    let start = skeleton.events.len();
    let code = &program.threads[thread].code;
    let mut registers = Vec::with_capacity(program.threads[thread].registers.len());
    for register in &program.threads[thread].registers {
        registers.push((push(&mut skeleton, Node::Constant(register.initial)), 0));
    }
    let mut open = vec![Walk { skeleton, at: 0, registers, ctrl: 0 }];
    let mut done = Vec::new();
    while let Some(mut walk) = open.pop() {
        while let Some(instruction) = code.get(walk.at) {
            walk.at += 1;
            if let Some(other) = walk.step(thread, instruction)? {
                open.push(other);
            }
        }
        for (at, observable) in program.observed.iter().enumerate() {
            if let Observable::Register(of, register) = *observable
                && of == ThreadId::new(thread)
            {
                walk.skeleton.finals[at] = Some(walk.registers[register.index()].0);
            }
        }
        let end = walk.skeleton.events.len();
        walk.skeleton.threads.push(start..end);
        done.push(walk.skeleton);
        if done.len() + open.len() > limit {
            let found = done.len() + open.len() + (WAYS_LIMIT - limit);
            return Err(OutcomesError::TooLarge {
                what: "ways through its threads or more",
                found,
                limit: WAYS_LIMIT,
            });
        }
    }
    Ok(done)
}

impl Walk {
    /// Processes one instruction; returns the second control flow if there are two.
    fn step(
        &mut self,
        thread: usize,
        instruction: &Instruction,
    ) -> Result<Option<Walk>, OutcomesError> {
        let event = |kind, location| Event {
            thread,
            instruction: self.at - 1,
            kind,
            location,
            value: None,
            is_atomic: false,
        };
        match instruction {
            Instruction::Read { register, address } => {
                let event = event(EventKind::Read, Some(address.location));
                let addr = self.taint(&address.depends);
                let at = self.emit(event, addr, 0)?;
                self.set_read(*register, at);
            }
            Instruction::Write { address, value } => {
                let mut event = event(EventKind::Write, Some(address.location));
                let addr = self.taint(&address.depends);
                let (value, data) = self.evaluate(value);
                event.value = Some(value);
                self.emit(event, addr, data)?;
            }
            Instruction::Fence(fence) => {
                let event = event(EventKind::Fence(fence.clone()), None);
                self.emit(event, 0, 0)?;
            }
            Instruction::ReadModifyWrite { register, address, update } => {
                let mut event = event(EventKind::Update, Some(address.location));
                event.is_atomic = true;
                let addr = self.taint(&address.depends);
                return self.update(event, addr, *register, update);
            }
            Instruction::Assign { register, value } => {
                self.registers[register.index()] = self.evaluate(value);
            }
            Instruction::Jump { condition, target } => {
                let (node, taint) = self.evaluate(condition);
                if let Node::Constant(value) = self.skeleton.nodes[node as usize] {
                    if value != 0 {
                        self.at = *target;
                    }
                    return Ok(None);
                }
                self.ctrl |= taint;
                let mut other = self.clone();
                other.at = *target;
                other.skeleton.demands.push((node, true));
                self.skeleton.demands.push((node, false));
                return Ok(Some(other));
            }
        }
        Ok(None)
    }

    fn update(
        &mut self,
        mut event: Event,
        addr: u64,
        register: Option<RegisterId>,
        update: &Update,
    ) -> Result<Option<Walk>, OutcomesError> {
        let at = self.skeleton.events.len();
        let (operand, mut data) = match update {
            Update::Exchange(value) | Update::Add(value) => self.evaluate(value),
            Update::CompareExchange { new, .. } => self.evaluate(new),
        };
        let mut other = None;
        match update {
            Update::Exchange(_) => event.value = Some(operand),
            Update::Add(_) => {
                let old = push(&mut self.skeleton, Node::Read(at));
                event.value = Some(self.binary(Operator::Add, old, operand));
            }
            Update::CompareExchange { expected, .. } => {
                let (expected, taint) = self.evaluate(expected);
                data |= taint;
                let old = push(&mut self.skeleton, Node::Read(at));
                let equal = self.binary(Operator::Equal, old, expected);
                // In the second control flow the values differ, so this is only a read.
                let mut failed = self.clone();
                failed.skeleton.demands.push((equal, false));
                let read = Event { kind: EventKind::Read, value: None, ..event.clone() };
                failed.emit(read, addr, data)?;
                if let Some(register) = register {
                    failed.set_read(register, at);
                }
                other = Some(failed);
                self.skeleton.demands.push((equal, true));
                event.value = Some(operand);
            }
        }
        self.emit(event, addr, data)?;
        if let Some(register) = register {
            self.set_read(register, at);
        }
        Ok(other)
    }

    fn emit(&mut self, event: Event, addr: u64, data: u64) -> Result<usize, OutcomesError> {
        let at = self.skeleton.events.len();
        if at >= EVENT_LIMIT {
            return Err(OutcomesError::TooLarge {
                what: "events or more",
                found: at + 1,
                limit: EVENT_LIMIT,
            });
        }
        self.skeleton.events.push(event);
        self.skeleton.addr.push(addr);
        self.skeleton.data.push(data);
        self.skeleton.ctrl.push(self.ctrl);
        Ok(at)
    }

    fn set_read(&mut self, register: RegisterId, event: usize) {
        let node = push(&mut self.skeleton, Node::Read(event));
        self.registers[register.index()] = (node, 1 << event);
    }

    fn taint(&self, registers: &[RegisterId]) -> u64 {
        registers.iter().fold(0, |taint, register| taint | self.registers[register.index()].1)
    }

    /// Returns the node of an expression, and the reads on which it depends.
    fn evaluate(&mut self, expression: &Expression) -> (NodeId, u64) {
        match expression {
            Expression::Constant(value) => (push(&mut self.skeleton, Node::Constant(*value)), 0),
            Expression::Register(register) => self.registers[register.index()],
            Expression::Binary(operator, left, right) => {
                let (left, left_taint) = self.evaluate(left);
                let (right, right_taint) = self.evaluate(right);
                (self.binary(*operator, left, right), left_taint | right_taint)
            }
        }
    }

    /// Applies an operator; constants are folded, including `r ^ r` and `r - r`.
    fn binary(&mut self, operator: Operator, left: NodeId, right: NodeId) -> NodeId {
        let nodes = &self.skeleton.nodes;
        let node = match (&nodes[left as usize], &nodes[right as usize]) {
            (Node::Constant(a), Node::Constant(b)) => Node::Constant(operator.apply(*a, *b)),
            _ if left == right && matches!(operator, Operator::Xor | Operator::Subtract) => {
                Node::Constant(0)
            }
            _ => Node::Binary(operator, left, right),
        };
        push(&mut self.skeleton, node)
    }
}

fn push(skeleton: &mut Skeleton, node: Node) -> NodeId {
    skeleton.nodes.push(node);
    (skeleton.nodes.len() - 1) as NodeId
}
