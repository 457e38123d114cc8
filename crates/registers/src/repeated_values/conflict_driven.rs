//! Sources by conflict-driven search: a SAT solver chooses what each read reads from.
//!
//! Where values repeat, a read may have many candidates, and a search that tries one after the other
//! meets the same contradiction again and again. Here a propositional variable stands for a read and a
//! candidate, a clause says that each read has one, and the solver (BatSat) has a theory beside it that
//! saturates what is chosen ([`theory`]): a contradiction becomes a clause of the few choices that it
//! rests on, and the search goes back to where that matters. That is DPLL(T) (Nieuwenhuis, Oliveras and
//! Tinelli 2006), with saturation for T. Which write of a key is the last, where several have its final
//! value, is chosen in the same way.
//!
//! The first choices are good ones: sessions go on about equally fast, so a candidate is likely that is a
//! little earlier in its session than the read is in its own.
//!
//! Saturation does not decide everything. A complete choice that it allows is judged like one without
//! repeated values, and what refutes it is one more clause. If the clauses have no model, a core of
//! them says which reads a refutation needs; with these alone it is written down by cases
//! ([`crate::repeated_values::choices`]), so that no certificate depends on the solver.
//!
//! It stops without an answer when the budget runs out. Writes of unknown status, which count only if
//! something reads from them, it leaves to the other search, and so it does if there are millions of
//! candidates.

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

/// How many candidates all reads may have together.
const MAX_CANDIDATES: usize = 4_000_000;

/// About how many bytes a candidate takes.
const BYTES_PER_CANDIDATE: u64 = 256;

/// How often a core is made smaller at most.
const CORE_ROUNDS: usize = 4;

/// How much earlier than the read a candidate may be, as a share of the session, to be more likely than
/// any that is later.
const LATER_WRITE_PENALTY: f64 = 0.02;

/// A search for sources.
pub(crate) struct SourceSearch<'a> {
    history: &'a History,
    solver: Solver<StopBatSat>,
    theory: Saturated<'a>,
    /// That each read has a source and each key a last write.
    wanted: Vec<Vec<Lit>>,
    last: Vec<(KeyId, Vec<(OpId, Lit)>)>,
}

/// A complete choice.
pub(crate) struct Chosen {
    /// The source of every read.
    pub(crate) source: Vec<Source>,
    /// The last writes of the keys for which there are several candidates, in their order.
    pub(crate) last: Vec<OpId>,
}

/// What a refutation needs.
pub(crate) struct Core {
    /// The reads, each with the number of clauses that mention it.
    pub(crate) reads: FxHashMap<OpId, u64>,
    /// The keys whose last write matters.
    pub(crate) keys: FxHashSet<KeyId>,
}

/// Returns whether the search takes a history.
pub(crate) fn takes(history: &History, candidates: &Candidates) -> bool {
    let all = || candidates.ambiguous.iter().flat_map(|(_, writes)| writes);
    let mut uncertain =
        all().filter(|&&write| !history.is_initial(write) && !history.is_certain(write));
    uncertain.next().is_none() && all().count() <= MAX_CANDIDATES
}

impl<'a> SourceSearch<'a> {
    /// Prepares a search; gives nothing if what is settled contradicts itself.
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
        // A literal that the solver first tries to make true is a negative one.
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
                let meaning = Meaning::Source { read: read.0, write: write.0 };
                (write.0, literal(&mut solver, Some(&write) == guess, meaning))
            };
            let candidates: Vec<(u32, Lit)> = writes.iter().map(&mut candidate).collect();
            wanted.push(candidates.iter().map(|&(_, lit)| lit).collect());
            reads.push(OpenRead { read: read.0, candidates });
        }
        let mut last = Vec::new();
        for (key, writes) in &finals.open {
            let guess =
                writes.iter().max_by(|&&a, &&b| when(history, a).total_cmp(&when(history, b)));
            let mut candidate = |&write: &OpId| {
                let meaning = Meaning::Last { write: write.0 };
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
        if !finals.clear.iter().all(|write| theory.put_last(write.0)) {
            return Ok(None);
        }
        for lit in theory.out_at_first() {
            solver.add_clause_reuse(&mut vec![lit]);
            theory.lemmas.push(vec![lit]);
        }
        Ok(Some(SourceSearch { history, solver, theory, wanted, last }))
    }

    /// Looks for a choice that saturation allows and no clause forbids; gives nothing if there is none.
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

    /// Adds that some choices cannot all hold.
    pub(crate) fn forbid(&mut self, sources: &[(OpId, OpId)], last: &[OpId]) {
        let mut clause: Vec<Lit> = Vec::new();
        for &(read, write) in sources {
            clause.extend(self.theory.literal(read.0, write.0).map(|lit| !lit));
        }
        let lasts = self.last.iter().flat_map(|(_, writes)| writes);
        clause.extend(lasts.filter(|(write, _)| last.contains(write)).map(|&(_, lit)| !lit));
        self.theory.lemmas.push(clause.clone());
        self.solver.add_clause_reuse(&mut clause);
    }

    /// Says what a refutation needs, once there is no choice left.
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
                Some(Meaning::Source { read, .. }) => {
                    *found.reads.entry(OpId(read)).or_default() += 1
                }
                Some(Meaning::Last { write }) => {
                    let (key, _) = self.history.writes(OpId(write)).expect("it is a write");
                    found.keys.insert(key);
                }
                None => {}
            }
        }
        Ok(found)
    }
}

/// Returns how far in its session an operation is, from 0 to 1.
fn when(history: &History, op: OpId) -> f64 {
    let all = history.session_ops(history.session_of(op)).len();
    (f64::from(history.index_in_session(op)) + 0.5) / all as f64
}

/// Returns how unlikely it is that a read reads from a write.
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
