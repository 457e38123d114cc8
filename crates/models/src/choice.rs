//! Choices of `wr` and `ww`: the alternatives, the choices made, and their refutations.

use std::rc::Rc;

use consistory_verdict::{Certificate, Edge, Judgement};
use rustc_hash::FxHashSet;

use crate::finals::Finals;
use crate::interpret::Stage;
use crate::register::Register;
use consistory_definition::Definition;
use consistory_order::Matrix;

/// A choice that a verdict may depend on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Assumption {
    /// The read reads from the write.
    Reads { read: usize, write: usize },
    /// The first write comes before the second in the store order.
    Before { first: usize, second: usize },
}

/// A refutation with the choices on which it depends.
pub(crate) struct Proof {
    pub(crate) certificate: Certificate,
    /// Patterns of the leaves, each once.
    pub(crate) patterns: Vec<String>,
    pub(crate) uses: FxHashSet<Assumption>,
}

impl Proof {
    pub(crate) fn into_judgement(self) -> Judgement<Certificate> {
        Judgement::Violation {
            pattern: self.patterns.join(" or ").into(),
            certificate: self.certificate,
        }
    }
}

/// Refutes the choice of a source that follows the read.
pub(crate) fn future_read(register: &Register<'_>, read: usize, write: usize) -> Proof {
    let (r, w) = (register.op(read), register.op(write));
    Proof {
        certificate: Certificate::Cycle {
            edges: vec![Edge::given(r, w, "po"), Edge::given(w, r, "wr")],
            observer: None,
            check: None,
        },
        patterns: vec!["FutureRead".to_owned()],
        uses: [Assumption::Reads { read, write }].into_iter().collect(),
    }
}

/// An open choice.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    Read { read: usize, writes: Vec<usize> },
    Order { writes: [usize; 2] },
}

impl Choice {
    pub(crate) fn branches(&self) -> usize {
        match self {
            Choice::Read { writes, .. } => writes.len(),
            Choice::Order { .. } => 2,
        }
    }

    pub(crate) fn assumption(&self, branch: usize) -> Assumption {
        match self {
            Choice::Read { read, writes } => {
                Assumption::Reads { read: *read, write: writes[branch] }
            }
            Choice::Order { writes: [a, b] } if branch == 0 => {
                Assumption::Before { first: *a, second: *b }
            }
            Choice::Order { writes: [a, b] } => Assumption::Before { first: *b, second: *a },
        }
    }
}

/// The choices made so far.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) wr_of: Rc<Vec<Option<usize>>>,
    /// The store order, transitively closed.
    pub(crate) ww: Rc<Matrix>,
    /// Values evaluated for this `wr`; computed on first use.
    pub(crate) stage: Option<Rc<Stage>>,
}

/// A choice that was made.
pub(crate) struct Frame {
    pub(crate) choice: Choice,
    pub(crate) before: State,
    pub(crate) branch: usize,
    /// Refutations of the branches. An earlier branch without a refutation is known to fail
    /// immediately, and its refutation is computed when needed.
    pub(crate) refuted: Vec<Option<Proof>>,
}

impl Frame {
    pub(crate) fn assumption(&self) -> Assumption {
        self.choice.assumption(self.branch)
    }
}

/// Builds the state in which only the forced choices are settled.
pub(crate) fn root(definition: &Definition, register: &Register<'_>, finals: &Finals) -> State {
    let only = |candidates: &Vec<usize>| match candidates[..] {
        [write] => Some(write),
        _ => None,
    };
    let mut ww = Matrix::empty(register.size);
    let groups = ordered_groups(definition, register);
    for writes in &groups {
        for &write in &writes[1..] {
            ww.insert(writes[0], write);
        }
    }
    if !groups.is_empty() {
        let listed = listed_pairs(definition, register);
        for (first, second) in finals.before.iter().copied().chain(listed) {
            ww.insert(first, second);
        }
        ww.close();
    }
    State {
        wr_of: Rc::new(register.candidates.iter().map(only).collect()),
        ww: Rc::new(ww),
        stage: None,
    }
}

/// Returns the groups of operations that a store order or commit order orders, each with its
/// initial member first: the writes of each key, or the first operations of all transactions.
pub(crate) fn ordered_groups(definition: &Definition, register: &Register<'_>) -> Vec<Vec<usize>> {
    if definition.program().commit_order.is_some() {
        if register.history.key_count() == 0 {
            return Vec::new();
        }
        return vec![register.members.iter().filter_map(|ops| ops.first().copied()).collect()];
    }
    if definition.has_store_order() { register.writes.clone() } else { Vec::new() }
}

/// Returns the pairs of these groups that are ordered by lists.
pub(crate) fn listed_pairs(
    definition: &Definition,
    register: &Register<'_>,
) -> Vec<(usize, usize)> {
    if definition.program().commit_order.is_none() {
        return register.listed.clone();
    }
    let first = |at: usize| register.members[register.unit_of[at]][0];
    register.listed.iter().map(|&(a, b)| (first(a), first(b))).collect()
}

/// Adds an assumption to a state.
pub(crate) fn extended(state: &State, assumption: Assumption) -> State {
    match assumption {
        Assumption::Reads { read, write } => {
            let mut wr_of = (*state.wr_of).clone();
            wr_of[read] = Some(write);
            State { wr_of: Rc::new(wr_of), ww: state.ww.clone(), stage: None }
        }
        Assumption::Before { first, second } => {
            let mut ww = (*state.ww).clone();
            ww.insert_transitively(first, second);
            State { ww: Rc::new(ww), ..state.clone() }
        }
    }
}
