//! All outcomes of a program on a machine, if no operation depends on the result of a read.
//!
//! In most tests no write, address or jump depends on a register. Then the possible continuations
//! of a state do not depend on the values read so far, and registers can be left out of states:
//! each state is explored once, and the values that can still be read from it are stored as a set.
//! States are then few although outcomes are many. Two threads of eight accesses have up to 390,625
//! outcomes; with registers, RMO has three million states.
//!
//! The sets are decision diagrams: a node stands for one read, and each value leads to the node for
//! the later reads; equal nodes are shared. From a given state on, the same reads remain in every
//! continuation, since there are no jumps, so all its outcomes concern the same reads. Persistent
//! sets keep all outcomes of a state and are used here too; sleep sets are not, because they may
//! attribute an outcome of one state to another state only.
//!
//! Cost: the states without registers, and for each step a union of diagrams, which costs at most
//! the product of their sizes and mostly far less.

use consistory_verdict::Budget;
use rustc_hash::FxHashMap;

use crate::operational::MachineError;
use crate::operational::compile::{Kind, Operand, Source, Tables};
use crate::operational::component::{PENDING, Small};
use crate::operational::explore::{Effort, STEPS_PER_BUDGET_CHECK, Seen};
use crate::operational::step::{Actor, Choice, Step};
use crate::program::{Outcome, Outcomes};

/// Number of reads from which this search pays.
const MIN_READS_FOR_FUTURE_SEARCH: usize = 6;

/// Checks whether this search pays: there are many reads, and no other operation depends on them.
pub(super) fn pays(tables: &Tables) -> bool {
    let reads = tables.operations.iter().filter(|operation| operation.register.is_some());
    reads.count() >= MIN_READS_FOR_FUTURE_SEARCH && is_for(tables)
}

/// Checks whether this search applies: no operation depends on the result of a read.
pub(super) fn is_for(tables: &Tables) -> bool {
    let mut slots = Vec::new();
    let is_plain = tables.operations.iter().all(|operation| {
        let is_new = operation.register.is_none_or(|slot| !slots.contains(&slot));
        slots.extend(operation.register);
        let is_constant = matches!(operation.value, Operand::Constant(_));
        let is_straight = !matches!(operation.kind, Kind::Assign | Kind::Jump { .. });
        is_new && is_constant && is_straight && operation.needs.is_empty()
    });
    let observes_reads = tables.observed.iter().all(|source| matches!(source, Source::Register(_)));
    is_plain && observes_reads
}

/// Finds every outcome of a program that [`is_for`] accepts.
pub(super) fn outcomes(
    tables: &mut Tables,
    seen: &mut Seen,
    budget: &Budget,
) -> Result<(Outcomes, Effort), MachineError> {
    let mut search = FutureSearch::new(tables);
    let (root, taken) = search.run(tables, seen, budget)?;
    let mut all = Vec::new();
    search.diagram.each(root, &mut vec![0; search.observed], &mut |answers| {
        let value = |source: &Source| {
            let Source::Register(slot) = source else { return 0 };
            let small = search.levels[*slot].map_or(tables.initial[*slot], |l| answers[l]);
            tables.values.value(small)
        };
        all.push(Outcome(tables.observed.iter().map(value).collect()));
    });
    Ok((all.into_iter().collect(), Effort { states: seen.len(), steps: taken }))
}

/// A set of outcomes, as an index into a [`Diagram`].
type Node = u32;

/// No outcome.
const NONE: Node = 0;
/// The set of the single outcome without further reads.
const DONE: Node = 1;

struct FutureSearch {
    diagram: Diagram,
    /// For each byte of a state that is a register, its level in the diagram.
    levels: Vec<Option<usize>>,
    observed: usize,
    /// Bytes that are registers.
    slots: Vec<usize>,
    /// Continuations of each completed state.
    results: Vec<Node>,
    states: Vec<u8>,
    frames: Vec<Frame>,
    steps: Vec<Step>,
}

struct Frame {
    entry: usize,
    next: usize,
    start: usize,
    end: usize,
    /// Value read in the last step.
    answer: Option<(usize, Small)>,
    found: Node,
}

impl FutureSearch {
    fn new(tables: &Tables) -> Self {
        let mut levels = vec![None; tables.size];
        let mut observed = 0;
        for source in &tables.observed {
            let Source::Register(slot) = *source else { continue };
            let is_read = tables.operations.iter().any(|o| o.register == Some(slot));
            if is_read && levels[slot].is_none() {
                levels[slot] = Some(observed);
                observed += 1;
            }
        }
        FutureSearch {
            diagram: Diagram::default(),
            levels,
            observed,
            slots: tables.slots.iter().flatten().copied().collect(),
            results: Vec::new(),
            states: Vec::new(),
            frames: Vec::new(),
            steps: Vec::new(),
        }
    }

    fn run(
        &mut self,
        tables: &mut Tables,
        seen: &mut Seen,
        budget: &Budget,
    ) -> Result<(Node, u64), MachineError> {
        seen.clear(tables.size);
        let size = tables.size;
        self.states.extend_from_slice(&tables.initial);
        let mut taken = 0;
        let mut root = self.enter(tables, seen);
        while let Some(frame) = self.frames.last_mut() {
            if frame.next == frame.end {
                let Frame { entry, start, found, .. } = *frame;
                self.results[entry] = found;
                self.frames.pop();
                self.steps.truncate(start);
                self.states.truncate(self.states.len() - size);
                match self.frames.is_empty() {
                    true => root = Some(found),
                    false => self.add(found),
                }
                continue;
            }
            let step = self.steps[frame.next];
            frame.next += 1;
            let top = self.states.len() - size;
            let slot = answered(tables, &self.states[top..], step);
            self.states.extend_from_within(top..);
            tables.apply(&mut self.states[top + size..], step);
            let level = slot.and_then(|slot| Some((self.levels[slot]?, slot)));
            frame.answer = level.map(|(level, slot)| (level, self.states[top + size + slot]));
            taken += 1;
            if taken % STEPS_PER_BUDGET_CHECK == 0 {
                budget.check()?;
                budget.reserve(seen.bytes() + self.diagram.bytes())?;
            }
            if tables.values.overflowed() {
                return Err(tables.too_many_values());
            }
            if let Some(found) = self.enter(tables, seen) {
                self.add(found);
            }
        }
        Ok((root.unwrap_or(NONE), taken))
    }

    /// Visits the top state: returns its outcomes if they are known, or opens a frame.
    fn enter(&mut self, tables: &mut Tables, seen: &mut Seen) -> Option<Node> {
        let top = self.states.len() - tables.size;
        for &slot in &self.slots {
            self.states[top + slot] = 0;
        }
        let state = &self.states[top..];
        if tables.is_final(state) {
            self.states.truncate(top);
            return Some(DONE);
        }
        let (entry, is_new) = seen.insert(state, 0);
        if !is_new {
            self.states.truncate(top);
            return Some(self.results[entry]);
        }
        self.results.push(NONE);
        let start = self.steps.len();
        let mut listed = Vec::new();
        tables.steps(state, Choice::Enough, &mut listed);
        self.steps.extend(listed);
        let end = self.steps.len();
        self.frames.push(Frame { entry, next: start, start, end, answer: None, found: NONE });
        None
    }

    /// Adds the outcomes after the last step to those of the state in which the step was taken.
    fn add(&mut self, found: Node) {
        let Some(frame) = self.frames.last_mut() else { return };
        let found = match frame.answer {
            Some((level, value)) => self.diagram.answered(found, level, value),
            None => found,
        };
        frame.found = self.diagram.union(frame.found, found);
    }
}

/// Returns the register that a step sets, if it sets one.
fn answered(tables: &Tables, state: &[u8], step: Step) -> Option<usize> {
    let at = match step.actor {
        Actor::Processor(thread) => tables.program_counter(state, usize::from(thread)),
        Actor::Waiting { operation, .. } => usize::from(operation),
        Actor::Queue(_) | Actor::View(_) => return None,
    };
    let operation = &tables.operations[at];
    let is_late = operation.kind == Kind::Read && step.choice == PENDING;
    if is_late { None } else { operation.register }
}

/// A level, and for each value of its read the set of the remaining outcomes.
type Question = (usize, Box<[(Small, Node)]>);

/// Sets of outcomes.
#[derive(Default)]
struct Diagram {
    /// Levels and values of nodes, from the third node on.
    nodes: Vec<Question>,
    known: FxHashMap<Question, Node>,
    unions: FxHashMap<(Node, Node), Node>,
    answers: FxHashMap<(Node, usize, Small), Node>,
}

impl Diagram {
    fn bytes(&self) -> u64 {
        (128 * self.nodes.len() + 24 * (self.unions.len() + self.answers.len())) as u64
    }

    fn get(&self, node: Node) -> Option<&Question> {
        self.nodes.get((node as usize).wrapping_sub(2))
    }

    fn make(&mut self, level: usize, children: Vec<(Small, Node)>) -> Node {
        let key = (level, children.into_boxed_slice());
        if let Some(&node) = self.known.get(&key) {
            return node;
        }
        let node = self.nodes.len() as Node + 2;
        self.nodes.push(key.clone());
        self.known.insert(key, node);
        node
    }

    /// Returns the union of two sets of outcomes of the same reads.
    fn union(&mut self, a: Node, b: Node) -> Node {
        if a == b || b == NONE {
            return a;
        }
        if a == NONE {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&known) = self.unions.get(&key) {
            return known;
        }
        let (Some((level, left)), Some((_, right))) = (self.get(a).cloned(), self.get(b).cloned())
        else {
            unreachable!("of two sets of outcomes only both or none have something left to read")
        };
        let mut children: Vec<(Small, Node)> = left.into_vec();
        for &(value, node) in &right {
            match children.binary_search_by_key(&value, |child| child.0) {
                Ok(at) => children[at].1 = self.union(children[at].1, node),
                Err(at) => children.insert(at, (value, node)),
            }
        }
        let node = self.make(level, children);
        self.unions.insert(key, node);
        node
    }

    /// Adds the value of a read to each outcome of a set.
    fn answered(&mut self, node: Node, level: usize, value: Small) -> Node {
        if node == NONE {
            return NONE;
        }
        if let Some(&known) = self.answers.get(&(node, level, value)) {
            return known;
        }
        let result = match self.get(node).cloned() {
            Some((above, children)) if above < level => {
                let below = |(answer, child): &(Small, Node)| {
                    (*answer, self.answered(*child, level, value))
                };
                let children = children.iter().map(below).collect();
                self.make(above, children)
            }
            _ => self.make(level, vec![(value, node)]),
        };
        self.answers.insert((node, level, value), result);
        result
    }

    /// Visits every outcome of a set; `answers` contains one value per read.
    fn each(&self, node: Node, answers: &mut Vec<Small>, visit: &mut dyn FnMut(&[Small])) {
        match self.get(node) {
            Some((level, children)) => {
                for &(value, child) in children {
                    answers[*level] = value;
                    self.each(child, answers, visit);
                }
            }
            None if node == DONE => visit(answers),
            None => {}
        }
    }
}
