//! Decides a definition by a search over `wr` and `ww`.
//!
//! A history satisfies a definition if all its checks hold for some `wr` that the values allow and,
//! if the definition has a store order, for some `ww`. Reads with one candidate are settled, and so
//! are the pairs of the store order that start with an initial write. The search branches on the
//! rest: first on the reads (fewest candidates first), then on pairs of unordered writes to one
//! key.
//!
//! When no check can be repaired by adding to `wr` and `ww` (see [`crate::polarity`]), a violation
//! under a part of the choices closes the branch, and three things guide the store order:
//!
//! - a pair is settled if the relation of an `acyclic` check that contains `ww` already leads from
//!   one write to the other;
//! - a guess: a store order taken from a topological order of such a relation. If all checks hold,
//!   the search is over;
//! - otherwise, the pairs of the guess on which the violation depends are decided next. Both orders
//!   of each are tried for an immediate violation, which settles the pair; otherwise the search
//!   branches on the first pair.
//!
//! Otherwise (`\` or `~` over `wr` or `ww`) only complete choices are evaluated.
//!
//! Every violation contains an explanation and the choices on which it depends. A choice on which
//! the refutation of its branch does not depend is dropped together with its other branches
//! (conflict-directed backjumping), which keeps certificates as small as the proof allows. In the
//! worst case the search takes exponential time; it stops when the budget is used up.

use std::rc::Rc;

use consistory_history::{History, KeyId};
use consistory_verdict::{Budget, Certificate, Judgement, Pattern, Stopped};
use rustc_hash::FxHashSet;

use crate::choice::{
    Assumption, Choice, Frame, Proof, State, extended, future_read, listed_pairs, ordered_groups,
    root,
};
use crate::explain::{Assumed, Explanation, explain, explain_final};
use crate::finals::{FINAL_VALUE, Finals};
use crate::interpret::{Evaluated, Interpreter, Stage};
use crate::ordering::contains_order;
use crate::register::{BadRead, Register};
use consistory_definition::CheckKind;
use consistory_definition::Definition;
use consistory_definition::DoesNotApply;
use consistory_definition::Pruning;
use consistory_definition::{ClientOrder, TermId};
use consistory_order::Matrix;

/// Options of [`evaluate`].
#[derive(Clone, Debug)]
pub struct EvaluateOptions {
    /// Time and memory limits of the evaluation.
    pub budget: Budget,
    /// Largest number of operations of a history, without the initial writes.
    pub max_operations: usize,
    /// Order between transactions that `so` denotes in definitions about transactions.
    pub order: ClientOrder,
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        EvaluateOptions {
            budget: Budget::unlimited(),
            max_operations: 200,
            order: ClientOrder::default(),
        }
    }
}

/// Decides by definition whether a history satisfies a model.
///
/// Two kinds of bad reads violate every model whatever its definition says: a read of a value that
/// was never written (`ThinAirRead`), and a read of a write that follows it in its session
/// (`FutureRead`).
pub fn evaluate(
    definition: &Definition,
    history: &History,
    options: &EvaluateOptions,
) -> Result<Judgement<Certificate>, DoesNotApply> {
    definition.applies(history)?;
    let (operations, limit) = (history.len(), options.max_operations);
    if operations > limit {
        return Ok(Judgement::Undecided(Stopped::Size { operations, limit }));
    }
    Ok(decide(definition, history, options).unwrap_or_else(Judgement::Undecided))
}

fn decide(
    definition: &Definition,
    history: &History,
    options: &EvaluateOptions,
) -> Result<Judgement<Certificate>, Stopped> {
    let budget = &options.budget;
    budget.check()?;
    let register = match definition.is_transactional() {
        true => Register::of_transactions(history, options.order),
        false => Register::new(history),
    };
    match register.bad_read {
        Some(BadRead::NoSource { read, pattern }) => {
            return Ok(Judgement::Violation {
                pattern: pattern.into(),
                certificate: Certificate::ThinAirRead { read: register.op(read) },
            });
        }
        Some(BadRead::Future { read, write }) => {
            return Ok(future_read(&register, read, write).into_judgement());
        }
        None => {}
    }
    let finals = Finals::new(&register, definition.has_store_order());
    if finals.is_impossible {
        return Ok(Judgement::Violation {
            pattern: Pattern::FinalValue,
            certificate: Certificate::Cycle { edges: Vec::new(), observer: None, check: None },
        });
    }
    budget.reserve((MATRICES_ALIVE * register.size * register.size / 8) as u64)?;
    ChoiceSearch::new(definition, &register, &finals, budget).run()
}

/// The status of a state.
enum Node {
    Refuted(Proof),
    Solved(State),
    Branch(Choice),
}

/// The result of evaluating a state.
enum SearchOutcome {
    Holds(Evaluated),
    Fails(Proof),
}

struct ChoiceSearch<'a> {
    definition: &'a Definition,
    register: &'a Register<'a>,
    finals: &'a Finals,
    /// Pairs of versions that are ordered by lists.
    listed: Vec<(usize, usize)>,
    budget: &'a Budget,
    interpreter: Interpreter<'a>,
    pruning: Pruning,
    negates_choices: bool,
    /// Reads with several candidates, fewest candidates first.
    open_reads: Vec<usize>,
    /// Relations of checks that contain `ww`, so that a path in them orders writes.
    ordering: Vec<TermId>,
    frames: Vec<Frame>,
    state: State,
}

impl<'a> ChoiceSearch<'a> {
    fn new(
        definition: &'a Definition,
        register: &'a Register<'a>,
        finals: &'a Finals,
        budget: &'a Budget,
    ) -> Self {
        let legal = |&read: &usize| {
            let candidates = &register.candidates[read];
            candidates.iter().filter(|&&write| !register.is_future(read, write)).count()
        };
        let mut open_reads: Vec<usize> =
            (0..register.size).filter(|&at| register.candidates[at].len() > 1).collect();
        open_reads.sort_by_key(legal);
        let program = definition.program();
        let ordering = program
            .checks
            .iter()
            .filter(|check| check.kind == CheckKind::Acyclic && check.forall.is_none())
            .map(|check| check.term)
            .filter(|&term| contains_order(program, term, &mut Vec::new()))
            .collect();
        ChoiceSearch {
            definition,
            register,
            finals,
            listed: listed_pairs(definition, register),
            budget,
            interpreter: Interpreter::new(definition, budget),
            pruning: definition.analysis().pruning,
            negates_choices: definition.analysis().negates_choices,
            open_reads,
            ordering,
            frames: Vec::new(),
            state: root(definition, register, finals),
        }
    }

    fn run(&mut self) -> Result<Judgement<Certificate>, Stopped> {
        loop {
            match self.examine()? {
                Node::Solved(state) => return Ok(Judgement::Consistent(self.witness(&state))),
                Node::Branch(choice) => self.choose(choice, 0, Vec::new())?,
                Node::Refuted(proof) => {
                    if let Some(proof) = self.backjump(proof)? {
                        return Ok(proof.into_judgement());
                    }
                }
            }
        }
    }

    /// Settles everything that follows from the current state, until it is refuted, solved, or
    /// needs a choice.
    fn examine(&mut self) -> Result<Node, Stopped> {
        loop {
            if let Some(Assumption::Reads { read, write }) =
                self.frames.last().map(Frame::assumption)
                && self.register.is_future(read, write)
            {
                return Ok(Node::Refuted(future_read(self.register, read, write)));
            }
            let open_read = self.open_reads.iter().find(|&&read| self.state.wr_of[read].is_none());
            let unordered = self.unordered_pairs(&self.state).next();
            let is_final = match self.pruning {
                Pruning::Always => true,
                Pruning::WithoutUncertain => open_read.is_none() || !self.register.has_uncertain,
                Pruning::AfterWr => open_read.is_none(),
                Pruning::AtTheEnd => open_read.is_none() && unordered.is_none(),
            };
            let mut evaluated = None;
            if is_final {
                self.state.stage = Some(self.stage(&self.state)?);
                match self.outcome(&self.state, &self.assumed_pairs())? {
                    SearchOutcome::Fails(proof) => return Ok(Node::Refuted(proof)),
                    SearchOutcome::Holds(found) => evaluated = Some(found),
                }
            }
            if let Some(&read) = open_read {
                let writes = self.register.candidates[read].clone();
                return Ok(Node::Branch(Choice::Read { read, writes }));
            }
            let Some(writes) = unordered else { return Ok(Node::Solved(self.state.clone())) };
            match evaluated {
                // Nothing can be evaluated before the store order is complete.
                None => return Ok(Node::Branch(Choice::Order { writes })),
                Some(evaluated) => {
                    if self.settle_by_paths(&evaluated)? {
                        continue;
                    }
                    if let Some(node) = self.guess(&evaluated)? {
                        return Ok(node);
                    }
                }
            }
        }
    }

    /// Orders the writes between which there is a path in a relation that contains the store order
    /// and must be acyclic. Returns whether there were any.
    fn settle_by_paths(&mut self, evaluated: &Evaluated) -> Result<bool, Stopped> {
        let frames = self.frames.len();
        for term in self.ordering.clone() {
            let mut paths = (*self.relation(evaluated, term)?).clone();
            self.interpreter.spend(paths.size() * paths.size())?;
            paths.close();
            let found: Vec<[usize; 2]> = self
                .unordered_pairs(&self.state)
                .flat_map(|[a, b]| [[a, b], [b, a]])
                .filter(|&[first, second]| paths.contains(first, second))
                .collect();
            for [first, second] in found {
                // An earlier pair may have implied this one.
                if !self.state.ww.contains(first, second) {
                    self.choose(Choice::Order { writes: [second, first] }, 1, vec![None])?;
                }
            }
        }
        Ok(self.frames.len() > frames)
    }

    /// Tries the store order of a topological order. If it fails, the reason of the failure
    /// determines the writes to order next. Returns `None` if it settled some writes itself.
    fn guess(&mut self, evaluated: &Evaluated) -> Result<Option<Node>, Stopped> {
        let order = match self.ordering.first() {
            Some(&term) => self.relation(evaluated, term)?.topological_order(),
            None => None,
        };
        let order =
            order.or_else(|| self.state.ww.topological_order()).expect("an order is acyclic");
        let mut place = vec![0; self.register.size];
        for (i, &at) in order.iter().enumerate() {
            place[at] = i;
        }
        let mut pairs = self.assumed_pairs();
        let mut guessed = Vec::new();
        let mut ww = (*self.state.ww).clone();
        for writes in self.counting_writes(&self.state) {
            let mut writes = writes;
            writes.sort_by_key(|&write| place[write]);
            for pair in writes.windows(2) {
                if !ww.contains(pair[0], pair[1]) {
                    ww.insert_transitively(pair[0], pair[1]);
                    guessed.push((pair[0], pair[1]));
                }
            }
        }
        pairs.extend(&guessed);
        let state = State { ww: Rc::new(ww), ..self.state.clone() };
        let proof = match self.outcome(&state, &pairs)? {
            SearchOutcome::Holds(_) => return Ok(Some(Node::Solved(state))),
            SearchOutcome::Fails(proof) => proof,
        };
        guessed
            .retain(|&(first, second)| proof.uses.contains(&Assumption::Before { first, second }));
        match guessed[..] {
            // The violation does not depend on the guess.
            [] => return Ok(Some(Node::Refuted(proof))),
            [(first, second)] => {
                let choice = Choice::Order { writes: [first, second] };
                self.choose(choice, 1, vec![Some(proof)])?;
                return Ok(None);
            }
            _ => {}
        }
        for &(a, b) in &guessed {
            for [first, second] in [[a, b], [b, a]] {
                let assumption = Assumption::Before { first, second };
                if self.fails(&extended(&self.state, assumption))? {
                    self.choose(Choice::Order { writes: [first, second] }, 1, vec![None])?;
                    return Ok(None);
                }
            }
        }
        let (first, second) = guessed[0];
        Ok(Some(Node::Branch(Choice::Order { writes: [first, second] })))
    }

    /// Takes a branch of a choice; `refuted` has the refutations of the branches before it.
    fn choose(
        &mut self,
        choice: Choice,
        branch: usize,
        mut refuted: Vec<Option<Proof>>,
    ) -> Result<(), Stopped> {
        let bytes = self.register.size * self.register.size / 8;
        self.budget.reserve((bytes * (self.frames.len() + MATRICES_ALIVE)) as u64)?;
        refuted.resize_with(choice.branches(), || None);
        let state = extended(&self.state, choice.assumption(branch));
        let before = std::mem::replace(&mut self.state, state);
        self.frames.push(Frame { choice, before, branch, refuted });
        Ok(())
    }

    /// Backtracks to the last choice that a refutation depends on and takes its next branch.
    /// Returns the refutation if it depends on no choice.
    fn backjump(&mut self, mut proof: Proof) -> Result<Option<Proof>, Stopped> {
        while let Some(mut frame) = self.frames.pop() {
            if !proof.uses.contains(&frame.assumption()) {
                continue;
            }
            frame.refuted[frame.branch] = Some(proof);
            frame.branch += 1;
            if frame.branch < frame.choice.branches() {
                self.state = extended(&frame.before, frame.assumption());
                self.frames.push(frame);
                return Ok(None);
            }
            proof = self.combine(frame)?;
        }
        Ok(Some(proof))
    }

    /// Combines the refutations of all branches of a choice.
    fn combine(&self, frame: Frame) -> Result<Proof, Stopped> {
        let Frame { choice, before, refuted, .. } = frame;
        let mut patterns: Vec<String> = Vec::new();
        let mut uses = FxHashSet::default();
        let mut certificates = Vec::new();
        for (branch, proof) in refuted.into_iter().enumerate() {
            let assumption = choice.assumption(branch);
            let mut proof = match proof {
                Some(proof) => proof,
                None => self.immediate_refutation(&before, assumption)?,
            };
            if !proof.uses.remove(&assumption) {
                return Ok(proof);
            }
            uses.extend(proof.uses);
            for pattern in proof.patterns {
                if !patterns.contains(&pattern) {
                    patterns.push(pattern);
                }
            }
            certificates.push(proof.certificate);
        }
        let op = |at: usize| self.register.op(at);
        let certificate = match choice {
            Choice::Read { read, writes } => Certificate::SplitRead {
                read: op(read),
                branches: writes.into_iter().map(op).zip(certificates).collect(),
            },
            Choice::Order { writes } => {
                let branches = <[Certificate; 2]>::try_from(certificates);
                Certificate::SplitOrder {
                    writes: writes.map(op),
                    branches: Box::new(branches.expect("two orders, two refutations")),
                }
            }
        };
        Ok(Proof { certificate, patterns, uses })
    }

    /// Refutes a branch that was found to fail immediately.
    fn immediate_refutation(
        &self,
        before: &State,
        assumption: Assumption,
    ) -> Result<Proof, Stopped> {
        let mut pairs = self.assumed_pairs();
        if let Assumption::Before { first, second } = assumption {
            pairs.push((first, second));
        }
        match self.outcome(&extended(before, assumption), &pairs)? {
            SearchOutcome::Fails(proof) => Ok(proof),
            SearchOutcome::Holds(_) => unreachable!("the branch was seen to fail"),
        }
    }

    /// Evaluates a state; `pairs` are the chosen pairs of its store order.
    fn outcome(&self, state: &State, pairs: &[(usize, usize)]) -> Result<SearchOutcome, Stopped> {
        let stage = self.stage(state)?;
        let ww = self.store_order(state, &stage);
        let model = self.interpreter.model(&stage, &ww);
        let assumed = Assumed {
            register: self.register,
            wr_of: &state.wr_of,
            before: pairs,
            finals: &self.finals.before,
            listed: &self.listed,
        };
        let (Explanation { edges, mut uses }, fault) =
            if let Some((candidates, write)) = self.finals.fault(self.register, &ww) {
                (explain_final(&model, &assumed, candidates, write)?, None)
            } else {
                let evaluated = self.interpreter.evaluate(&stage, &ww)?;
                match evaluated.fault {
                    None => return Ok(SearchOutcome::Holds(evaluated)),
                    Some(fault) => (explain(&model, &evaluated, fault, &assumed)?, Some(fault)),
                }
            };
        // An explanation includes the choices on which a violation depends, if more pairs can only
        // add violations.
        for assumption in self.frames.iter().map(Frame::assumption) {
            let may_matter = match self.pruning {
                _ if self.negates_choices => true,
                Pruning::Always => false,
                Pruning::WithoutUncertain => {
                    self.register.has_uncertain && matches!(assumption, Assumption::Reads { .. })
                }
                Pruning::AfterWr => matches!(assumption, Assumption::Reads { .. }),
                Pruning::AtTheEnd => true,
            };
            if may_matter {
                uses.insert(assumption);
            }
        }
        let pattern = match fault {
            Some(fault) => {
                let name =
                    self.definition.checks().nth(fault.check).map(|check| check.name.to_owned());
                name.unwrap_or_default()
            }
            None => FINAL_VALUE.to_owned(),
        };
        Ok(SearchOutcome::Fails(Proof {
            certificate: Certificate::Cycle {
                edges,
                observer: fault.and_then(|fault| fault.observer).map(|at| self.register.op(at)),
                check: fault.map(|fault| fault.check as u32),
            },
            patterns: vec![pattern],
            uses,
        }))
    }

    /// Checks whether a state fails, without an explanation.
    fn fails(&self, state: &State) -> Result<bool, Stopped> {
        let stage = self.stage(state)?;
        let ww = self.store_order(state, &stage);
        Ok(self.finals.fault(self.register, &ww).is_some()
            || self.interpreter.evaluate(&stage, &ww)?.fault.is_some())
    }

    /// Returns the values that are evaluated once for the state's `wr`.
    fn stage(&self, state: &State) -> Result<Rc<Stage>, Stopped> {
        match &state.stage {
            Some(stage) => Ok(stage.clone()),
            None => {
                let counting = self.register.counting(&state.wr_of);
                let basics = self.register.basics(counting, &state.wr_of);
                Ok(Rc::new(self.interpreter.stage(basics)?))
            }
        }
    }

    /// Returns the store order between the writes that count.
    fn store_order(&self, state: &State, stage: &Stage) -> Rc<Matrix> {
        if !self.register.is_uncertain.contains(&true) {
            return state.ww.clone();
        }
        // A commit order orders the first operations of transactions, which need not be writes.
        let ordered = match self.definition.program().commit_order {
            Some(_) => &stage.basics.counting,
            None => &stage.basics.writes,
        };
        let mut ww = Matrix::product(ordered, ordered);
        ww.intersect(&state.ww);
        Rc::new(ww)
    }

    fn relation(&self, evaluated: &Evaluated, term: TermId) -> Result<Rc<Matrix>, Stopped> {
        let stage = self.stage(&self.state)?;
        let ww = self.store_order(&self.state, &stage);
        let model = self.interpreter.model(&stage, &ww);
        Ok(model.eval(&mut evaluated.environment.clone(), term)?.relation())
    }

    /// Lists the pairs of the store order that were chosen.
    fn assumed_pairs(&self) -> Vec<(usize, usize)> {
        let pair = |frame: &Frame| match frame.assumption() {
            Assumption::Before { first, second } => Some((first, second)),
            Assumption::Reads { .. } => None,
        };
        self.frames.iter().filter_map(pair).collect()
    }

    /// Iterates over the groups of counting operations that must be ordered: the writes of each key
    /// for a store order, the first operations of all transactions for a commit order.
    fn counting_writes(&self, state: &State) -> impl Iterator<Item = Vec<usize>> {
        let groups = ordered_groups(self.definition, self.register);
        groups.into_iter().map(|writes| {
            let counts = |&write: &usize| self.register.counts(write, &state.wr_of);
            writes.into_iter().filter(counts).collect()
        })
    }

    fn unordered_pairs(&self, state: &State) -> impl Iterator<Item = [usize; 2]> {
        let ww = state.ww.clone();
        self.counting_writes(state).flat_map(move |writes| {
            let ww = ww.clone();
            (0..writes.len())
                .flat_map(|j| (0..j).map(move |i| (i, j)))
                .map(|(i, j)| [writes[i], writes[j]])
                .filter(move |&[a, b]| !ww.contains(a, b) && !ww.contains(b, a))
                .collect::<Vec<_>>()
        })
    }

    /// Certifies a solution.
    fn witness(&self, state: &State) -> Certificate {
        let op = |at: usize| self.register.op(at);
        let wr = self
            .open_reads
            .iter()
            .filter_map(|&read| Some((op(read), op(state.wr_of[read]?))))
            .collect();
        if self.definition.id() == Some("sc")
            && let Some(order) = self.sequential_order(state)
        {
            return Certificate::Order { order: order.into_iter().map(op).collect(), wr };
        }
        let in_order = |mut writes: Vec<usize>| {
            writes.sort_by(|&a, &b| state.ww.contains(b, a).cmp(&state.ww.contains(a, b)));
            writes
        };
        if self.definition.program().commit_order.is_some() {
            let order = self.counting_writes(state).flat_map(in_order);
            let is_recorded = |&at: &usize| at < self.register.history.len();
            return Certificate::Order { order: order.filter(is_recorded).map(op).collect(), wr };
        }
        let ww = self
            .counting_writes(state)
            .enumerate()
            .map(|(key, writes)| (KeyId::new(key), in_order(writes).into_iter().map(op).collect()))
            .collect();
        Certificate::Witness { ww, wr }
    }

    /// Finds an order of the counting operations in which each read returns the last write before
    /// it: a topological order of `po | wr | ww | rw[ww]`.
    fn sequential_order(&self, state: &State) -> Option<Vec<usize>> {
        let basics = self.register.basics(self.register.counting(&state.wr_of), &state.wr_of);
        let mut relation = basics.po;
        relation.union(&basics.wr);
        relation.union(&state.ww);
        for (read, write) in state.wr_of.iter().enumerate() {
            for overwrite in write.iter().flat_map(|&write| state.ww.successors(write)) {
                if overwrite != read {
                    relation.insert(read, overwrite);
                }
            }
        }
        let order = relation.topological_order()?;
        let is_shown =
            |&at: &usize| at < self.register.history.len() && basics.counting.contains(at);
        Some(order.into_iter().filter(is_shown).collect())
    }
}

/// Number of matrices in use at once, in addition to those of the choices made.
const MATRICES_ALIVE: usize = 64;
