//! Sources by conflict-driven search: a SAT solver chooses the source of each read.
//!
//! If values repeat, a read may have many candidates, and a search that tries them in turn meets
//! the same contradiction again and again. Here a propositional variable stands for a read and a
//! candidate, and a clause states that each read has a source. The solver (BatSat) runs with a
//! theory that saturates the chosen sources ([`theory`]): a contradiction becomes a clause of the
//! few choices on which it depends, and the search jumps back accordingly. This is DPLL(T)
//! (Nieuwenhuis, Oliveras and Tinelli 2006) with saturation as T. The last write of a key, if
//! several have its final value, is chosen in the same way.
//!
//! Initial phases: sessions advance at about the same speed, so the likeliest candidate is slightly
//! earlier in its session than the read is in its own.
//!
//! Saturation is not complete. A complete choice that it allows is judged like a history without
//! repeated values, and a refutation of it becomes one more clause. If the clauses are
//! unsatisfiable, a core of them names the reads that a refutation needs. The refutation for these
//! reads is written as a tree of cases ([`crate::repeated_values::choices`]), so that no
//! certificate depends on the solver.
//!
//! The search stops without an answer when the budget runs out. Histories with writes of unknown
//! status, which count only if they are read, and histories with millions of candidates are left to
//! the other search.

mod theory;

use batsat::{Callbacks, Lit, Solver, SolverInterface, SolverOpts, lbool};
use consistory_history::{History, KeyId, OpId};
use consistory_verdict::{Budget, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::reads_from::{Candidates, Source};
use crate::registers::Registers;
use crate::store_order::completion::sat;
use crate::store_order::finals::Finals;
use crate::store_order::layers::{Layers, Memory};
use theory::{Meaning, OpenRead, Saturated};

/// Largest number of candidates of all reads together.
const MAX_CANDIDATES: usize = 4_000_000;

/// Estimated bytes per candidate.
const BYTES_PER_CANDIDATE: u64 = 256;

/// Largest number of times that a core is reduced.
const CORE_ROUNDS: usize = 4;

/// Largest distance by which a candidate may be earlier than the read, as a share of the session,
/// and still be preferred to every later one.
const LATER_WRITE_PENALTY: f64 = 0.02;

/// A search for sources.
pub(crate) struct SourceSearch<'a> {
    history: &'a History,
    solver: Solver<StopBatSat>,
    theory: Saturated<'a>,
    /// The clauses that each read has a source and each key a last write.
    wanted: Vec<Vec<Lit>>,
    last: Vec<(KeyId, Vec<(OpId, Lit)>)>,
}

/// A complete choice.
pub(crate) struct Chosen {
    /// The source of every read.
    pub(crate) source: Vec<Source>,
    /// The last writes of the keys with several candidates, by key.
    pub(crate) last: Vec<OpId>,
}

/// The reads and keys that a refutation needs.
pub(crate) struct Core {
    /// The reads, each with the number of clauses that mention it.
    pub(crate) reads: FxHashMap<OpId, u64>,
    /// The keys whose last write matters.
    pub(crate) keys: FxHashSet<KeyId>,
}

/// Returns whether the search accepts a history.
pub(crate) fn takes(history: &History, candidates: &Candidates) -> bool {
    let all = || candidates.ambiguous.iter().flat_map(|(_, writes)| writes);
    let mut uncertain =
        all().filter(|&&write| !history.is_initial(write) && !history.is_certain(write));
    uncertain.next().is_none() && all().count() <= MAX_CANDIDATES
}

impl<'a> SourceSearch<'a> {
    /// Prepares a search. Returns nothing if the determined sources are contradictory.
    pub(crate) fn new(
        registers: &'a Registers<'a>,
        memory: Memory,
        layers: Layers,
        candidates: &Candidates,
        finals: &Finals,
        budget: &Budget,
    ) -> Result<Option<Self>, Stopped> {
        let history = registers.history;
        let count: usize = candidates.ambiguous.iter().map(|(_, writes)| writes.len()).sum();
        budget.reserve(count as u64 * BYTES_PER_CANDIDATE)?;
        let mut solver = Solver::new(SolverOpts::default(), StopBatSat(budget.clone()));
        let mut meanings = FxHashMap::default();
        let mut wanted: Vec<Vec<Lit>> = Vec::new();
        // The solver tries negative literals first.
        let mut literal = |solver: &mut Solver<StopBatSat>, is_guessed: bool, meaning: Meaning| {
            let lit = Lit::new(solver.new_var_default(), !is_guessed);
            meanings.insert(lit, meaning);
            lit
        };
        let mut in_time: Vec<&(OpId, Vec<OpId>)> = candidates.ambiguous.iter().collect();
        in_time.sort_by(|(a, _), (b, _)| when(history, *a).total_cmp(&when(history, *b)));
        let mut reads = Vec::new();
        for (read, writes) in in_time {
            let distance = |&&write: &&OpId| distance(history, *read, write);
            let guess = writes.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
            let mut candidate = |&write: &OpId| {
                let meaning = Meaning::Source { read: *read, write };
                (write, literal(&mut solver, Some(&write) == guess, meaning))
            };
            let candidates: Vec<(OpId, Lit)> = writes.iter().map(&mut candidate).collect();
            wanted.push(candidates.iter().map(|&(_, lit)| lit).collect());
            reads.push(OpenRead { read: *read, candidates });
        }
        let mut last = Vec::new();
        for (key, writes) in &finals.open {
            let guess =
                writes.iter().max_by(|&&a, &&b| when(history, a).total_cmp(&when(history, b)));
            let mut candidate = |&write: &OpId| {
                let meaning = Meaning::Last { write };
                (write, literal(&mut solver, Some(&write) == guess, meaning))
            };
            let writes: Vec<(OpId, Lit)> = writes.iter().map(&mut candidate).collect();
            wanted.push(writes.iter().map(|&(_, lit)| lit).collect());
            last.push((*key, writes));
        }
        for clause in &wanted {
            solver.add_clause_reuse(&mut clause.clone());
        }
        let Some(mut theory) = Saturated::new(registers, memory, layers, reads, meanings) else {
            return Ok(None);
        };
        if !finals.clear.iter().all(|write| theory.put_last(*write)) {
            return Ok(None);
        }
        for lit in theory.out_at_first() {
            solver.add_clause_reuse(&mut vec![lit]);
            theory.lemmas.push(vec![lit]);
        }
        Ok(Some(SourceSearch { history, solver, theory, wanted, last }))
    }

    /// Searches for a choice that saturation and all clauses allow. Returns nothing if there is
    /// none.
    pub(crate) fn next(&mut self, budget: &Budget) -> Result<Option<Chosen>, Stopped> {
        let answer = self.solver.solve_limited_th(&mut self.theory, &[]);
        if answer == lbool::UNDEF {
            return Err(budget.check().err().unwrap_or(Stopped::Interrupted));
        }
        if answer == lbool::FALSE {
            return Ok(None);
        }
        let is_true = |lit: Lit| self.solver.value_lit(lit) == lbool::TRUE;
        let last = |(_, writes): &(KeyId, Vec<(OpId, Lit)>)| {
            let chosen = writes.iter().find(|&&(_, lit)| is_true(lit));
            chosen.expect("a clause says that there is one").0
        };
        let last = self.last.iter().map(last).collect();
        Ok(Some(Chosen { source: self.theory.model().to_vec(), last }))
    }

    /// Adds the clause that some choices cannot all hold.
    pub(crate) fn forbid(&mut self, sources: &[(OpId, OpId)], last: &[OpId]) {
        let mut clause: Vec<Lit> = Vec::new();
        for &(read, write) in sources {
            clause.extend(self.theory.literal(read, write).map(|lit| !lit));
        }
        let lasts = self.last.iter().flat_map(|(_, writes)| writes);
        clause.extend(lasts.filter(|(write, _)| last.contains(write)).map(|&(_, lit)| !lit));
        self.theory.lemmas.push(clause.clone());
        self.solver.add_clause_reuse(&mut clause);
    }

    /// Returns the reads and keys that a refutation needs, once no choice is left.
    pub(crate) fn core(&self, budget: &Budget) -> Result<Core, Stopped> {
        let literal = |lit: &Lit| {
            let variable = lit.var().idx() as i32 + 1;
            if lit.sign() { variable } else { -variable }
        };
        let variables = self.solver.num_vars() as usize;
        let lemmas = &self.theory.lemmas;
        let mut core: Vec<usize> = (0..lemmas.len()).collect();
        for _ in 0..CORE_ROUNDS {
            let selector = |&lemma: &usize| (variables + 1 + lemma) as i32;
            let mut solver = cadical::Solver::new();
            solver.set_callbacks(Some(sat::Stop(budget.clone())));
            for clause in &self.wanted {
                solver.add_clause(clause.iter().map(literal));
            }
            for lemma in &core {
                solver.add_clause(lemmas[*lemma].iter().map(literal).chain([-selector(lemma)]));
            }
            if sat::decided(solver.solve_with(core.iter().rev().map(selector)), budget)? {
                break;
            }
            let before = core.len();
            core.retain(|lemma| solver.failed(selector(lemma)));
            if core.len() == before {
                break;
            }
        }
        let mut found = Core { reads: FxHashMap::default(), keys: FxHashSet::default() };
        for lit in core.iter().flat_map(|&lemma| &lemmas[lemma]) {
            match self.theory.meaning(*lit).or_else(|| self.theory.meaning(!*lit)) {
                Some(Meaning::Source { read, .. }) => *found.reads.entry(read).or_default() += 1,
                Some(Meaning::Last { write }) => {
                    let (key, _) = self.history.writes(write).expect("it is a write");
                    found.keys.insert(key);
                }
                None => {}
            }
        }
        Ok(found)
    }
}

/// Returns the relative position of an operation in its session, from 0 to 1.
fn when(history: &History, op: OpId) -> f64 {
    let all = history.session_ops(history.session_of(op)).len();
    (f64::from(history.index_in_session(op)) + 0.5) / all as f64
}

/// Returns a penalty for a read to read from a write; unlikely sources have a large one.
fn distance(history: &History, read: OpId, write: OpId) -> f64 {
    if history.is_initial(write) {
        return 1.0;
    }
    match when(history, read) - when(history, write) {
        earlier if earlier >= 0.0 => earlier,
        later => LATER_WRITE_PENALTY - 2.0 * later,
    }
}

/// Stops a solver when a budget runs out.
struct StopBatSat(Budget);

impl Callbacks for StopBatSat {
    fn stop(&self) -> bool {
        self.0.check().is_err()
    }
}
