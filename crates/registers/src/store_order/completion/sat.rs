//! The SAT engine: a solver chooses the orders of writes, and saturation refutes wrong choices.
//!
//! A propositional variable stands for an unordered pair of writes of a key: it says which of the
//! two comes first. Clauses are added lazily. The engine processes the writes, earliest first, and
//! orders each write relative to the writes with which it is unordered, as in the solver's last
//! model. It saturates after each step, which decides most other pairs. A contradiction depends on
//! a few of the pairs that were added ([`crate::store_order::reasons`]); a clause states that they
//! cannot all hold. Then the reversed pair is tried. If it fails too, CaDiCaL (Biere et al.)
//! searches for a model of all clauses so far, and the engine goes back to the first decision that
//! differs from the model. This is the loop of lazy SMT (Nieuwenhuis, Oliveras and Tinelli 2006)
//! with saturation as the theory. A pair that no clause mentions needs no variable: a history that
//! a memory really produced is usually ordered without a call of the solver.
//!
//! ```text
//!   decisions   a<b  c<d  f<e ──▶ g<h contradicts, by c<d   learn: not both c<d and g<h
//!                                  h<g contradicts, by f<e   learn: not both f<e and h<g
//!                     ▲
//!                     └── go back to here if the next model says d<c
//! ```
//!
//! Every dead end adds a clause that its decisions falsify, and there are finitely many clauses, so
//! the loop terminates: with all writes ordered, or with unsatisfiable clauses. A core of these is
//! then replayed as cases ([`crate::store_order::completion::split`]); the pair to split on is
//! chosen to falsify clauses of the core soonest. The solver only guides the case split, so the
//! certificate does not depend on it.
//!
//! Each clause costs one saturation. The loop and the tree of cases can be exponential. The engine
//! stops without an answer when the budget runs out.

use cadical::{Callbacks, Solver};
use consistory_history::OpId;
use consistory_verdict::{Budget, Stopped};
use rustc_hash::FxHashMap;

use crate::order::ChainOrder;
use crate::registers::Registers;
use crate::store_order::completion::split::{extension, split_by, unordered_pair};
use crate::store_order::completion::{Complete, Completed};
use crate::store_order::layers::Layer;
use crate::store_order::reasons::assumptions;
use crate::store_order::saturation::{Point, Saturation};

/// Estimated bytes that the solver needs per literal of a clause.
const BYTES_PER_LITERAL: u64 = 64;

/// Largest number of times that a core is reduced.
const CORE_ROUNDS: usize = 4;

/// The engine of this module.
pub(crate) struct Sat;

impl Complete for Sat {
    fn complete(
        &self,
        registers: &Registers<'_>,
        saturation: &mut Saturation<'_>,
        budget: &Budget,
    ) -> Result<Completed, Stopped> {
        SatSearch::new(registers, saturation).complete(budget)
    }
}

/// A search that can be interrupted and continued.
pub(crate) struct SatSearch<'s, 'a> {
    registers: &'s Registers<'s>,
    saturation: &'s mut Saturation<'a>,
    start: Point,
    /// The writes, those with fewer operations before them first.
    writes: Vec<OpId>,
    /// Number of writes that are ordered with all others of their keys.
    done: usize,
    decisions: Vec<Decision>,
    clauses: Clauses,
}

/// A decision about the order of two writes.
struct Decision {
    /// The writes, the earlier first.
    pair: [OpId; 2],
    /// State of the saturation before the decision.
    before: Point,
    done: usize,
}

impl<'s, 'a> SatSearch<'s, 'a> {
    pub(crate) fn new(registers: &'s Registers<'s>, saturation: &'s mut Saturation<'a>) -> Self {
        let start = saturation.mark();
        let order = &saturation.layer().order;
        let weight = |op: OpId| -> u64 {
            order.chains().ids().map(|c| u64::from(order.count_until(op, c))).sum()
        };
        let ops = registers.history.ops();
        let mut writes: Vec<OpId> = ops.filter(|&op| registers.written_key(op).is_some()).collect();
        writes.sort_by_cached_key(|&op| weight(op));
        let (decisions, clauses) = (Vec::new(), Clauses::default());
        SatSearch { registers, saturation, start, writes, done: 0, decisions, clauses }
    }

    /// Searches until there is an answer.
    pub(crate) fn complete(&mut self, budget: &Budget) -> Result<Completed, Stopped> {
        let completed = self.run(usize::MAX, budget)?;
        Ok(completed.expect("there are not so many dead ends"))
    }

    /// Searches until `dead_ends` further dead ends occurred.
    pub(crate) fn run(
        &mut self,
        dead_ends: usize,
        budget: &Budget,
    ) -> Result<Option<Completed>, Stopped> {
        for _ in 0..dead_ends {
            if self.extend(budget)?.is_ok() {
                return Ok(Some(Completed::Order(extension(self.saturation.layer()))));
            }
            if !self.clauses.solve(budget)? {
                return self.refute(budget).map(Some);
            }
            let kept = self
                .decisions
                .iter()
                .position(|decision| self.clauses.value(decision.pair) == Some(false))
                .expect("a dead end's clauses are false under its decisions");
            self.saturation.undo(self.decisions[kept].before);
            self.done = self.decisions[kept].done;
            self.decisions.truncate(kept);
        }
        Ok(None)
    }

    /// Returns a copy of the order as it was before the search.
    pub(crate) fn restart(&self) -> Saturation<'a> {
        let mut saturation = self.saturation.clone();
        saturation.undo(self.start);
        saturation
    }

    /// Writes the refutation of unsatisfiable clauses as cases.
    fn refute(&mut self, budget: &Budget) -> Result<Completed, Stopped> {
        self.saturation.undo(self.start);
        let core = self.clauses.core(budget)?;
        split_by(self.saturation, budget, |layer| {
            open_pair(&core, &layer.order).or_else(|| unordered_pair(self.registers, layer))
        })
    }

    /// Orders writes until all are ordered or neither order of two writes is possible.
    fn extend(&mut self, budget: &Budget) -> Result<Result<(), DeadEnd>, Stopped> {
        while let Some(&write) = self.writes.get(self.done) {
            let Some(other) = self.unordered_with(write) else {
                self.done += 1;
                continue;
            };
            let behind = self.clauses.value([write, other]) == Some(false);
            let pair = if behind { [other, write] } else { [write, other] };
            if !self.decide(pair, budget)? && !self.decide([pair[1], pair[0]], budget)? {
                return Ok(Err(DeadEnd));
            }
        }
        Ok(Ok(()))
    }

    /// Puts a write before another. If that is impossible, learns a clause and undoes the step.
    fn decide(&mut self, pair: [OpId; 2], budget: &Budget) -> Result<bool, Stopped> {
        budget.check()?;
        let before = self.saturation.mark();
        let mut put = self.saturation.put(pair[0], pair[1]);
        if put.is_ok() {
            put = self.saturation.saturate(budget)?;
        }
        if put.is_ok() {
            self.decisions.push(Decision { pair, before, done: self.done });
            return Ok(true);
        }
        let clause = assumptions(self.saturation);
        self.saturation.undo(before);
        self.clauses.forbid(clause, budget)?;
        Ok(false)
    }

    /// Finds a write of the same key that a write is not ordered with.
    fn unordered_with(&self, write: OpId) -> Option<OpId> {
        let Layer { order, segments, .. } = self.saturation.layer();
        let key = self.registers.written_key(write)?;
        let own = order.chains().chain_of(write);
        segments.of(key).iter().filter(|segment| segment.chain != own).find_map(|&segment| {
            // The first write of the segment that is not before this one.
            let known = order.count_until(write, segment.chain);
            let next = segments.places(segment).partition_point(|&place| place < known);
            let other = *segments.writes(segment).get(next)?;
            (!order.before(write, other)).then_some(other)
        })
    }
}

/// Neither order of two writes is possible.
struct DeadEnd;

/// Pairs of writes that cannot all be in these orders.
type Clause = Vec<[OpId; 2]>;

/// The learned clauses, and the solver's last model of them.
#[derive(Default)]
struct Clauses {
    list: Vec<Clause>,
    literals: u64,
    /// The variable of each pair, in the order in which the pair was first added, which is the
    /// order that the solver tries first.
    variables: FxHashMap<[OpId; 2], i32>,
    solver: Option<Solver<Stop>>,
    /// Value of each variable; the first variable has number 1.
    model: Vec<Option<bool>>,
}

impl Clauses {
    /// Adds the clause that some pairs are not all in these orders.
    fn forbid(&mut self, clause: Clause, budget: &Budget) -> Result<(), Stopped> {
        self.literals += clause.len() as u64;
        budget.reserve(self.literals * BYTES_PER_LITERAL)?;
        let literals: Vec<i32> = clause.iter().map(|&pair| -self.variable(pair)).collect();
        self.solver.get_or_insert_default().add_clause(literals);
        self.list.push(clause);
        Ok(())
    }

    /// Returns the literal for the first write before the second.
    fn literal(&self, [first, second]: [OpId; 2]) -> Option<i32> {
        let variables = &self.variables;
        let reversed = || variables.get(&[second, first]).map(|&variable| -variable);
        variables.get(&[first, second]).copied().or_else(reversed)
    }

    /// Returns the literal for the first write before the second; creates its variable if needed.
    fn variable(&mut self, pair: [OpId; 2]) -> i32 {
        if let Some(literal) = self.literal(pair) {
            return literal;
        }
        self.model.push(None);
        let variable = i32::try_from(self.model.len()).expect("memory ends before");
        self.variables.insert(pair, variable);
        variable
    }

    /// Returns whether the last model has the first write before the second, if it has the pair.
    fn value(&self, pair: [OpId; 2]) -> Option<bool> {
        let literal = self.literal(pair)?;
        let value = self.model[literal.unsigned_abs() as usize - 1]?;
        Some(value == (literal > 0))
    }

    /// Searches for a model. Returns whether there is one.
    fn solve(&mut self, budget: &Budget) -> Result<bool, Stopped> {
        let solver = self.solver.get_or_insert_default();
        solver.set_callbacks(Some(Stop(budget.clone())));
        let satisfiable = decided(solver.solve(), budget)?;
        if satisfiable {
            for (variable, value) in (1..).zip(&mut self.model) {
                *value = solver.value(variable);
            }
        }
        Ok(satisfiable)
    }

    /// Returns unsatisfiable clauses, as few as can be found quickly.
    fn core(&self, budget: &Budget) -> Result<Vec<Clause>, Stopped> {
        let literals: Vec<Vec<i32>> = self
            .list
            .iter()
            .map(|clause| clause.iter().filter_map(|&pair| self.literal(pair)).collect())
            .collect();
        let mut core: Vec<usize> = (0..self.list.len()).collect();
        for _ in 0..CORE_ROUNDS {
            // Each clause has a selector; the solver reports which selectors it used.
            let selector = |&clause: &usize| (self.model.len() + 1 + clause) as i32;
            let mut solver = Solver::new();
            solver.set_callbacks(Some(Stop(budget.clone())));
            for clause in &core {
                let negated = literals[*clause].iter().map(|literal| -literal);
                solver.add_clause(negated.chain([-selector(clause)]));
            }
            // Newest clauses first: they are the strongest.
            if decided(solver.solve_with(core.iter().rev().map(selector)), budget)? {
                break;
            }
            let before = core.len();
            core.retain(|clause| solver.failed(selector(clause)));
            if core.len() == before {
                break;
            }
        }
        Ok(core.into_iter().map(|clause| self.list[clause].clone()).collect())
    }
}

/// Stops a solver when a budget runs out.
pub(crate) struct Stop(pub(crate) Budget);

impl Callbacks for Stop {
    fn terminate(&mut self) -> bool {
        self.0.check().is_err()
    }
}

/// Returns a solver's answer, or why it stopped without one.
pub(crate) fn decided(answer: Option<bool>, budget: &Budget) -> Result<bool, Stopped> {
    match answer {
        Some(answer) => Ok(answer),
        None => Err(budget.check().err().unwrap_or(Stopped::Interrupted)),
    }
}

/// Chooses an unordered pair from the clauses that are closest to being falsified.
fn open_pair(clauses: &[Clause], order: &ChainOrder) -> Option<[OpId; 2]> {
    let mut scores: FxHashMap<[OpId; 2], f64> = FxHashMap::default();
    let mut best: Option<(f64, [OpId; 2])> = None;
    for clause in clauses {
        if clause.iter().any(|&[first, second]| order.before(second, first)) {
            continue;
        }
        let open = || clause.iter().filter(|[first, second]| !order.before(*first, *second));
        // Weights after Jeroslow and Wang (1990): each further pair halves the weight.
        let weight = 0.5f64.powi(open().count() as i32);
        for &[first, second] in open() {
            let pair = [first.min(second), first.max(second)];
            let score = scores.entry(pair).or_default();
            *score += weight;
            if best.is_none_or(|(known, _)| *score > known) {
                best = Some((*score, pair));
            }
        }
    }
    best.map(|(_, pair)| pair)
}
