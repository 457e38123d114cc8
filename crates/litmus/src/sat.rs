//! Outcomes by a SAT solver, for any definition of a memory model, including total orders.
//!
//! For each skeleton the definition is unfolded into clauses (section 4.4 of the paper): one
//! variable for each possible source of a read, one for each pair of events that an order may
//! contain, and gates for the operators. Orders are made transitive by clauses, and a relation that
//! must be acyclic is embedded in a total order of its own. Each solution is an execution; a clause
//! that blocks its outcome is added, and the solver continues with the clauses that it has learned
//! until there is no solution left.
//!
//! A recursive definition over relations that a test leaves open has no finite unfolding of this
//! kind; then every candidate execution is tried instead.

use batsat::{BasicSolver, Lit, SolverInterface, lbool};
use consistory_models::MemoryModel;
use consistory_verdict::Budget;
use rustc_hash::FxHashMap;

use crate::candidates::each_candidate;
use crate::program::{LocationId, Observable, Outcome, Outcomes, Program};
use crate::relational::{Algebra, Choices, EvaluateError, evaluate, size};
use crate::semantics::{OutcomesError, Semantics};
use crate::skeleton::{Node, Skeleton, Source, skeletons};

impl Semantics for MemoryModel {
    fn name(&self) -> &str {
        MemoryModel::name(self).unwrap_or(self.title())
    }

    fn outcomes(&self, program: &Program, budget: &Budget) -> Result<Outcomes, OutcomesError> {
        let mut outcomes = Outcomes::new();
        each_solution(program, self, budget, &mut |outcome, _| {
            outcomes.insert(outcome);
        })?;
        Ok(outcomes)
    }
}

/// An execution that a definition allows.
pub(crate) struct Solution<'s> {
    pub(crate) skeleton: &'s Skeleton,
    /// Source of each event that reads.
    pub(crate) sources: Vec<Source>,
    /// All writes; those to one location are in the order in which they take effect.
    pub(crate) stores: Vec<usize>,
    /// The memory order, or one view per thread; empty if the model has none.
    pub(crate) orders: Vec<Vec<usize>>,
}

/// Reports an execution for every outcome; an outcome may be reported more than once.
pub(crate) fn each_solution(
    program: &Program,
    model: &MemoryModel,
    budget: &Budget,
    visit: &mut dyn FnMut(Outcome, &Solution<'_>),
) -> Result<(), OutcomesError> {
    for skeleton in skeletons(program)? {
        match Encoding::new(model, &skeleton, budget) {
            Ok(mut encoding) => encoding.enumerate(program, visit)?,
            Err(EvaluateError::Stopped(stopped)) => return Err(stopped.into()),
            // Candidates have no unknown bits, so the recursion terminates.
            Err(EvaluateError::OpenRecursion) => {
                each_candidate(program, model, &skeleton, budget, visit)?;
            }
        }
    }
    Ok(())
}

/// A known bit, or a literal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bit {
    Known(bool),
    Open(Lit),
}

/// A SAT solver with shared gates.
struct Solver<'a> {
    solver: BasicSolver,
    gates: FxHashMap<Vec<Lit>, Lit>,
    budget: &'a Budget,
    work: usize,
}

impl Solver<'_> {
    fn fresh(&mut self) -> Lit {
        Lit::new(self.solver.new_var_default(), true)
    }

    fn clause(&mut self, literals: &[Lit]) {
        self.solver.add_clause_reuse(&mut literals.to_vec());
    }

    /// Adds a clause of bits; literals known to be false are omitted.
    fn demand(&mut self, bits: &[Bit]) {
        let mut literals = Vec::new();
        for bit in bits {
            match *bit {
                Bit::Known(true) => return,
                Bit::Known(false) => {}
                Bit::Open(literal) => literals.push(literal),
            }
        }
        self.clause(&literals);
    }

    fn conjunction(&mut self, bits: &[Bit], is_dual: bool) -> Bit {
        // A disjunction is the negated conjunction of the negations.
        let mut literals: Vec<Lit> = Vec::new();
        for bit in bits {
            match *bit {
                Bit::Known(value) if value == is_dual => return Bit::Known(is_dual),
                Bit::Known(_) => {}
                Bit::Open(literal) => literals.push(if is_dual { !literal } else { literal }),
            }
        }
        literals.sort();
        literals.dedup();
        if literals.iter().any(|&literal| literals.binary_search(&!literal).is_ok()) {
            return Bit::Known(is_dual);
        }
        let sign = |literal: Lit| Bit::Open(if is_dual { !literal } else { literal });
        match literals[..] {
            [] => return Bit::Known(!is_dual),
            [single] => return sign(single),
            _ => {}
        }
        if let Some(&gate) = self.gates.get(&literals) {
            return sign(gate);
        }
        let gate = self.fresh();
        for &literal in &literals {
            self.clause(&[!gate, literal]);
        }
        let mut back: Vec<Lit> = literals.iter().map(|&literal| !literal).collect();
        back.push(gate);
        self.clause(&back);
        self.gates.insert(literals, gate);
        sign(gate)
    }

    /// Builds a strict total order of `elements`, as bits over `size` events.
    fn total_order(&mut self, size: usize, elements: &[usize], bits: &mut [Bit]) {
        for (at, &a) in elements.iter().enumerate() {
            for &b in &elements[at + 1..] {
                let before = self.fresh();
                bits[a * size + b] = Bit::Open(before);
                bits[b * size + a] = Bit::Open(!before);
            }
        }
        for &a in elements {
            for &b in elements.iter().filter(|&&b| b != a) {
                for &c in elements.iter().filter(|&&c| c != a && c != b) {
                    let (ab, bc) = (bits[a * size + b], bits[b * size + c]);
                    let ac = bits[a * size + c];
                    let (ab, bc) = (negated(ab), negated(bc));
                    self.demand(&[ab, bc, ac]);
                }
            }
        }
    }
}

fn negated(bit: Bit) -> Bit {
    match bit {
        Bit::Known(value) => Bit::Known(!value),
        Bit::Open(literal) => Bit::Open(!literal),
    }
}

impl Algebra for Solver<'_> {
    type Bit = Bit;

    fn constant(&self, value: bool) -> Bit {
        Bit::Known(value)
    }

    fn and(&mut self, bits: &[Bit]) -> Bit {
        self.conjunction(bits, false)
    }

    fn or(&mut self, bits: &[Bit]) -> Bit {
        self.conjunction(bits, true)
    }

    fn not(&mut self, bit: &Bit) -> Bit {
        negated(*bit)
    }

    fn demand_none(&mut self, bits: &[Bit]) {
        for &bit in bits {
            if bit != Bit::Known(false) {
                self.demand(&[negated(bit)]);
            }
        }
    }

    fn demand_acyclic(&mut self, size: usize, relation: &[Bit]) {
        let is_touched = |&at: &usize| {
            (0..size).any(|other| {
                relation[at * size + other] != Bit::Known(false)
                    || relation[other * size + at] != Bit::Known(false)
            })
        };
        let elements: Vec<usize> = (0..size).filter(is_touched).collect();
        let mut order = vec![Bit::Known(false); size * size];
        self.total_order(size, &elements, &mut order);
        for (&pair, &above) in relation.iter().zip(&order) {
            if pair != Bit::Known(false) {
                self.demand(&[negated(pair), above]);
            }
        }
    }

    /// A recursive definition over known bits settles soon; otherwise it may not settle at all,
    /// since gates are only compared by their form.
    fn rounds(&self, _: usize) -> usize {
        12
    }

    fn spend(&mut self, work: usize) -> Result<(), EvaluateError> {
        self.work += work;
        if self.work > 1 << 20 {
            self.work = 0;
            self.budget.check().map_err(EvaluateError::Stopped)?;
        }
        Ok(())
    }
}

/// The executions of a skeleton as a formula.
struct Encoding<'a> {
    solver: Solver<'a>,
    skeleton: &'a Skeleton,
    size: usize,
    choices: Choices<Bit>,
}

impl<'a> Encoding<'a> {
    fn new(
        model: &MemoryModel,
        skeleton: &'a Skeleton,
        budget: &'a Budget,
    ) -> Result<Self, EvaluateError> {
        let mut solver =
            Solver { solver: BasicSolver::default(), gates: FxHashMap::default(), budget, work: 0 };
        let definition = model.program();
        let size = size(skeleton);
        let events = skeleton.events.len();
        let rf = sources(&mut solver, skeleton, size);
        let order = |solver: &mut Solver<'_>| {
            let mut bits = vec![Bit::Known(false); size * size];
            for initial in events..size {
                for later in (0..events).chain(initial + 1..size) {
                    bits[initial * size + later] = Bit::Known(true);
                }
            }
            let all: Vec<usize> = (0..events).collect();
            solver.total_order(size, &all, &mut bits);
            bits
        };
        let memory_order = definition.has_memory_order.then(|| order(&mut solver));
        let views = match definition.has_views {
            true => skeleton.threads.iter().map(|_| order(&mut solver)).collect(),
            false => Vec::new(),
        };
        let mut co = vec![Bit::Known(false); size * size];
        for location in 0..skeleton.locations() {
            let writes: Vec<usize> = skeleton.writes_of(LocationId::new(location)).collect();
            for &write in &writes {
                co[(events + location) * size + write] = Bit::Known(true);
            }
            match &memory_order {
                Some(order) => {
                    for (a, b) in writes.iter().flat_map(|&a| writes.iter().map(move |&b| (a, b))) {
                        co[a * size + b] = order[a * size + b];
                    }
                }
                None => solver.total_order(size, &writes, &mut co),
            }
        }
        let choices = Choices { rf, co, memory_order, views };
        evaluate(&mut solver, definition, skeleton, &choices)?;
        Ok(Encoding { solver, skeleton, size, choices })
    }

    /// Finds all outcomes, one solution after the other.
    fn enumerate(
        &mut self,
        program: &Program,
        visit: &mut dyn FnMut(Outcome, &Solution<'_>),
    ) -> Result<(), OutcomesError> {
        let observed: Vec<LocationId> = program
            .observed
            .iter()
            .filter_map(|observable| match observable {
                Observable::Location(location) => Some(*location),
                Observable::Register(..) => None,
            })
            .collect();
        loop {
            self.solver.budget.check()?;
            if self.solver.solver.solve_limited(&[]) != lbool::TRUE {
                return Ok(());
            }
            let sources = self.sources();
            let solution = self.solution(sources.clone());
            let lasts: Vec<Source> = observed.iter().map(|&at| self.last(at)).collect();
            let values = self.skeleton.values(&sources);
            let mut block = self.block(&sources, values.is_some());
            for (&location, &last) in observed.iter().zip(&lasts) {
                block.push(negated(self.is_last(location, last)));
            }
            if let Some(values) = values {
                let last = |location| {
                    let at = observed.iter().position(|&o| o == location);
                    at.map_or(Source::Initial, |at| lasts[at])
                };
                let outcome = self.skeleton.outcome(program, &values, last);
                visit(outcome, &solution);
            }
            self.solver.demand(&block);
        }
    }

    /// Reads the solver's current solution.
    fn solution(&self, sources: Vec<Source>) -> Solution<'a> {
        let events: Vec<usize> = (0..self.skeleton.events.len()).collect();
        let order = |bits: &[Bit]| {
            let mut order = events.clone();
            let before = |at: usize| {
                let is_before = |&&other: &&usize| self.value(bits[other * self.size + at]);
                events.iter().filter(is_before).count()
            };
            order.sort_by_cached_key(|&at| before(at));
            order
        };
        let orders = match &self.choices.memory_order {
            Some(bits) => vec![order(bits)],
            None => self.choices.views.iter().map(|bits| order(bits)).collect(),
        };
        let mut stores = order(&self.choices.co);
        stores.retain(|&at| self.skeleton.events[at].writes());
        Solution { skeleton: self.skeleton, sources, stores, orders }
    }

    fn value(&self, bit: Bit) -> bool {
        match bit {
            Bit::Known(value) => value,
            Bit::Open(literal) => self.solver.solver.value_lit(literal) == lbool::TRUE,
        }
    }

    fn source_bit(&self, read: usize, source: Source) -> Bit {
        let from = match source {
            Source::Event(write) => write,
            Source::Initial => {
                let location = self.skeleton.events[read].location;
                self.skeleton.events.len() + location.map_or(0, LocationId::index)
            }
        };
        self.choices.rf[from * self.size + read]
    }

    fn candidates(&self, read: usize) -> Vec<Source> {
        let mut all = vec![Source::Initial];
        if let Some(location) = self.skeleton.events[read].location {
            let writes = self.skeleton.writes_of(location).filter(|&write| write != read);
            all.extend(writes.map(Source::Event));
        }
        all
    }

    fn sources(&self) -> Vec<Source> {
        let source = |at: usize| {
            let found = self.candidates(at);
            let mut found = found.into_iter().filter(|&s| self.value(self.source_bit(at, s)));
            match self.skeleton.events[at].reads() {
                true => found.next().unwrap_or(Source::Initial),
                false => Source::Initial,
            }
        };
        (0..self.skeleton.events.len()).map(source).collect()
    }

    fn last(&self, location: LocationId) -> Source {
        let mut writes = self.skeleton.writes_of(location);
        let is_last = |&write: &usize| {
            let row = write * self.size..(write + 1) * self.size;
            self.choices.co[row].iter().all(|&bit| !self.value(bit))
        };
        writes.find(is_last).map_or(Source::Initial, Source::Event)
    }

    fn is_last(&mut self, location: LocationId, last: Source) -> Bit {
        let Source::Event(write) = last else { return Bit::Known(true) };
        let others: Vec<usize> =
            self.skeleton.writes_of(location).filter(|&other| other != write).collect();
        let bits: Vec<Bit> =
            others.iter().map(|&other| self.choices.co[other * self.size + write]).collect();
        self.solver.and(&bits)
    }

    /// Returns the clause that excludes these sources, or all sources with the same values.
    fn block(&mut self, sources: &[Source], is_real: bool) -> Vec<Bit> {
        let reads = (0..sources.len()).filter(|&at| self.skeleton.events[at].reads());
        let all: Vec<usize> = reads.collect();
        let constant = |this: &Self, read: usize, source: Source| match source {
            Source::Initial => {
                this.skeleton.events[read].location.map(|at| this.skeleton.initial(at))
            }
            Source::Event(write) => {
                let value = this.skeleton.events[write].value?;
                match this.skeleton.node(value) {
                    Node::Constant(value) => Some(*value),
                    _ => None,
                }
            }
        };
        let is_simple = is_real
            && self.skeleton.is_undemanding()
            && self.skeleton.finals_are_plain()
            && all.iter().all(|&read| {
                self.candidates(read).iter().all(|&s| constant(self, read, s).is_some())
            });
        if !is_simple {
            return all.iter().map(|&read| negated(self.source_bit(read, sources[read]))).collect();
        }
        // Values that are not observed are ignored.
        let observed: Vec<usize> = self
            .skeleton
            .finals()
            .flatten()
            .filter_map(|node| match node {
                Node::Read(read) => Some(*read),
                _ => None,
            })
            .collect();
        observed
            .into_iter()
            .map(|read| {
                let value = constant(self, read, sources[read]);
                let same: Vec<Bit> = self
                    .candidates(read)
                    .into_iter()
                    .filter(|&source| constant(self, read, source) == value)
                    .map(|source| self.source_bit(read, source))
                    .collect();
                negated(self.solver.or(&same))
            })
            .collect()
    }
}

/// Creates one variable for each source of each read, exactly one of which is true.
fn sources(solver: &mut Solver<'_>, skeleton: &Skeleton, size: usize) -> Vec<Bit> {
    let mut rf = vec![Bit::Known(false); size * size];
    for (read, event) in skeleton.events.iter().enumerate().filter(|(_, event)| event.reads()) {
        let Some(location) = event.location else { continue };
        let initial = skeleton.events.len() + location.index();
        let mut candidates = vec![initial];
        candidates.extend(skeleton.writes_of(location).filter(|&write| write != read));
        let literals: Vec<Lit> = candidates.iter().map(|_| solver.fresh()).collect();
        solver.clause(&literals);
        for (at, &a) in literals.iter().enumerate() {
            for &b in &literals[at + 1..] {
                solver.clause(&[!a, !b]);
            }
            rf[candidates[at] * size + read] = Bit::Open(a);
        }
    }
    rf
}
