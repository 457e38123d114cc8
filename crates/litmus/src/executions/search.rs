//! Finds all final states of a test that a model allows.
//!
//! A candidate execution consists of a run of each thread, a source for each read, and an order of
//! the writes to each location. Candidates are built in that sequence, and a compiled model
//! performs the checks of each step as early as possible. If there are many choices, checks that
//! can only fail more often as relations grow are also performed on incomplete relations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use consistory_diagnostic::Diagnostics;
use consistory_verdict::{Budget, Stopped};

use super::code::{Code, Op, ThreadCode, truncate};
use super::test::{FinalState, IsaTest, Source};
use super::unfold::{Branches, Derived, Domain, Event, Run, Runs, unfold};
use super::witness::IsaExecution;
use crate::cat::bits::{Bits, Shape};
use crate::cat::dag::{Memory, Stage};
use crate::cat::interpret::{Ground, Vocabulary};
use crate::cat::{CatModel, Compiled, Plan, Prepared};

/// Options of the search.
#[derive(Clone, Debug)]
pub struct IsaOptions {
    /// Largest number of times that a backward jump is followed.
    pub unroll: u8,
    /// Whether to stop at the first state that decides the condition.
    pub condition_only: bool,
    /// Whether to count executions, as in herd's logs.
    pub count: bool,
    /// Whether to keep an execution for each final state.
    pub keep_executions: bool,
    /// Time and memory limits.
    pub budget: Budget,
}

/// The result of a test under a model.
#[derive(Clone, Debug, Default)]
pub struct IsaOutcomes {
    /// Final states of allowed executions.
    pub states: BTreeSet<FinalState>,
    /// An execution for each final state, if `keep_executions` is set.
    pub executions: BTreeMap<FinalState, IsaExecution>,
    /// Number of allowed executions that satisfy the proposition, if `count` is set.
    pub satisfying: u64,
    /// Number of allowed executions that do not satisfy the proposition, if `count` is set.
    pub violating: u64,
    /// Names of flags that some allowed execution raises.
    pub flags: BTreeSet<String>,
    /// Whether a loop was cut at the limit of `unroll`.
    pub cut: bool,
    /// Number of candidate executions that were examined.
    pub candidates: u64,
}

/// Reason why there is no result.
#[derive(Debug)]
pub enum IsaError {
    /// The model does not apply to the test, or has errors.
    Model(Diagnostics),
    /// The program exceeds the limits of the search.
    Program(String),
    /// The budget is used up.
    Stopped(Stopped),
}

/// Largest number of runs of one thread.
const MAX_RUNS: usize = 200_000;

/// Largest number of runs of one thread if branches are followed in both directions; beyond it,
/// values are found by running threads with decided branches.
const MAX_RUNS_BOTH_WAYS: usize = 2_000;

/// Largest number of rounds for finding the values of reads; the values of a counting loop never
/// settle.
const MAX_ROUNDS_BOTH_WAYS: usize = 8;

/// Finds all final states of a test under a model.
pub fn isa_outcomes(
    test: &IsaTest,
    model: &CatModel,
    options: &IsaOptions,
) -> Result<IsaOutcomes, IsaError> {
    let prepared = prepare(&test.code.tags, model)?;
    let mut found = IsaOutcomes::default();
    let code = &test.code;
    let threads = all_runs(code, code.threads.iter(), &mut found, |thread, domain, branches| {
        let thread = &code.threads[thread];
        Arc::new(unfold(code, thread, domain, branches, options.unroll, limit(branches)))
    })?;
    let question = Question { test, model, prepared: &prepared, options, wanted: None };
    outcomes_of_runs(&question, &threads, found, &mut Memory::default())
}

/// Compiles a model for tests with some tags, or returns the compiled model.
pub(crate) fn prepare(tags: &[String], model: &CatModel) -> Result<Arc<Prepared>, IsaError> {
    let with_bell = || {
        let mut all = tags.to_vec();
        all.extend(model.tag_sets.iter().filter(|name| !tags.contains(name)).cloned());
        vocabulary(&all)
    };
    model.compile(tags, with_bell).map_err(IsaError::Model)
}

/// The parts of a search that do not depend on the runs of the threads.
pub(crate) struct Question<'q> {
    /// Test with the locations and observed values; its threads are not used.
    pub(crate) test: &'q IsaTest,
    pub(crate) model: &'q CatModel,
    pub(crate) prepared: &'q Prepared,
    pub(crate) options: &'q IsaOptions,
    /// Final states that are needed, if not all are; flags are then ignored.
    pub(crate) wanted: Option<&'q BTreeSet<FinalState>>,
}

/// Finds all final states of executions that consist of one run of each thread.
pub(crate) fn outcomes_of_runs(
    question: &Question<'_>,
    threads: &[Arc<Runs>],
    found: IsaOutcomes,
    memory: &mut Memory,
) -> Result<IsaOutcomes, IsaError> {
    let mut search = ExecutionSearch {
        test: question.test,
        model: question.model,
        options: question.options,
        vocabulary: &question.prepared.vocabulary,
        compiled: &question.prepared.compiled,
        wanted: question.wanted,
        memory: std::mem::take(memory),
        found,
        done: question.wanted.is_some_and(BTreeSet::is_empty),
        ticks: 0,
    };
    let mut chosen: Vec<&Run> = Vec::with_capacity(threads.len());
    let result = search.combine(threads, &mut chosen);
    *memory = search.memory;
    result.map(|()| search.found)
}

/// Returns the largest number of runs of a thread.
pub(crate) fn limit(branches: Branches) -> usize {
    match branches {
        Branches::Decided => MAX_RUNS,
        Branches::BothWays => MAX_RUNS_BOTH_WAYS,
    }
}

/// Unfolds all threads with a function that unfolds one thread, given the values that reads may
/// return.
///
/// These values are found by unfolding until no new value occurs. In a program with branches, both
/// directions are followed: a model may allow two threads to take their branches because of each
/// other's writes, which no sequence of steps reaches.
pub(crate) fn all_runs<'t>(
    code: &Code,
    threads: impl ExactSizeIterator<Item = &'t ThreadCode> + Clone,
    found: &mut IsaOutcomes,
    mut unfolded: impl FnMut(usize, &Domain, Branches) -> Arc<Runs>,
) -> Result<Vec<Arc<Runs>>, IsaError> {
    let count = threads.len();
    let is_choice = |op: &Op| matches!(op, Op::Branch { .. } | Op::Assume(_));
    let mut instructions = threads.flat_map(|thread| &thread.instructions);
    if instructions.any(|ops| ops.iter().any(is_choice))
        && let Some(domain) = domain_of_both_ways(code, count, &mut unfolded)
    {
        return (0..count)
            .map(|thread| checked(unfolded(thread, &domain, Branches::Decided), found))
            .collect();
    }
    runs_by_steps(code, count, found, &mut unfolded)
}

/// Returns the values that reads may return if branches are followed in both directions; `None` if
/// there are too many runs.
fn domain_of_both_ways(
    code: &Code,
    count: usize,
    unfolded: &mut impl FnMut(usize, &Domain, Branches) -> Arc<Runs>,
) -> Option<Domain> {
    let mut domain = Domain::default();
    for _ in 0..MAX_ROUNDS_BOTH_WAYS {
        let mut next = Domain::default();
        for thread in 0..count {
            let runs = unfolded(thread, &domain, Branches::BothWays);
            if runs.trouble.is_some() {
                return None;
            }
            for run in &runs.runs {
                add_written(code, run, &mut next);
            }
            add_abandoned(code, &runs, &mut next);
        }
        for values in next.values_mut() {
            values.sort_unstable();
        }
        if next == domain {
            return Some(domain);
        }
        domain = next;
    }
    None
}

/// Adds the values that a run writes to the values of reads; returns the number of writes.
fn add_written(code: &Code, run: &Run, domain: &mut Domain) -> usize {
    let mut count = 0;
    for event in run.events.iter().filter(|event| event.writes()) {
        count += 1;
        let values = domain
            .entry(event.address)
            .or_insert_with(|| code.initial(event.address).into_iter().collect());
        if !values.contains(&event.written) {
            values.push(event.written);
        }
    }
    count
}

/// Adds the values written by runs that ended early.
fn add_abandoned(code: &Code, runs: &Runs, domain: &mut Domain) -> usize {
    for &(address, written) in &runs.abandoned {
        let values =
            domain.entry(address).or_insert_with(|| code.initial(address).into_iter().collect());
        if !values.contains(&written) {
            values.push(written);
        }
    }
    runs.abandoned.len()
}

/// Returns runs; fails if they could not be followed.
fn checked(runs: Arc<Runs>, found: &mut IsaOutcomes) -> Result<Arc<Runs>, IsaError> {
    found.cut |= runs.cut;
    match runs.trouble {
        Some(trouble) => Err(IsaError::Program(trouble.to_owned())),
        None => Ok(runs),
    }
}

/// Unfolds all threads until no new value occurs.
fn runs_by_steps(
    code: &Code,
    count: usize,
    found: &mut IsaOutcomes,
    unfolded: &mut impl FnMut(usize, &Domain, Branches) -> Arc<Runs>,
) -> Result<Vec<Arc<Runs>>, IsaError> {
    let mut domain = Domain::default();
    let mut round = 0;
    loop {
        let mut threads = Vec::new();
        let (mut next, mut writes) = (Domain::default(), 0);
        for thread in 0..count {
            let runs = checked(unfolded(thread, &domain, Branches::Decided), found)?;
            let most = runs.runs.iter().map(|run| add_written(code, run, &mut next)).max();
            writes += most.unwrap_or(0).max(add_abandoned(code, &runs, &mut next));
            threads.push(runs);
        }
        round += 1;
        for values in next.values_mut() {
            values.sort_unstable();
        }
        if next == domain || round > writes + 1 {
            return Ok(threads);
        }
        domain = next;
    }
}

/// Returns the names of the sets and relations of executions, including the sets of some tags.
pub(crate) fn vocabulary(tags: &[String]) -> Vocabulary {
    let mut found = Vocabulary::default();
    for name in RELATIONS.iter().chain(&PICKED).copied().chain(["asw"]) {
        let stage = match name {
            "rf" => Stage::ReadsFrom,
            "co" => Stage::Coherence,
            _ => Stage::Events,
        };
        found.add(name, false, stage);
    }
    for name in SETS {
        found.add(name, true, if name == "FW" { Stage::Coherence } else { Stage::Events });
    }
    for tag in tags {
        found.add(tag, true, Stage::Events);
    }
    for name in EMPTY_SETS {
        found.add_empty(name, true);
    }
    for name in EMPTY_RELATIONS {
        found.add_empty(name, false);
    }
    found
}

const RELATIONS: [&str; 20] = [
    "po",
    "loc",
    "int",
    "ext",
    "id",
    "rf",
    "co",
    "co0",
    "addr",
    "data",
    "ctrl",
    "rmw",
    "amo",
    "lxsx",
    "iico_order",
    "iico_data",
    "iico_ctrl",
    "same-instance",
    "sm",
    "si",
];

/// Dependencies through a choice inside an instruction, which some languages lack.
const PICKED: [&str; 3] = ["pick-addr-dep", "pick-data-dep", "pick-ctrl-dep"];

/// Relations that are empty in tests at user level, such as those of registers.
const EMPTY_RELATIONS: [&str; 5] =
    ["pick-basic-dep", "rf-reg", "inv-domain", "same-low-order-bits", "same-tag-loc"];

const SETS: [&str; 8] = ["R", "W", "M", "F", "IW", "I", "FW", "Exp"];

/// Sets that are empty in tests at user level: registers, branches, virtual memory, memory tags,
/// exceptions, and fetched instructions.
const EMPTY_SETS: [&str; 46] = [
    "NExp",
    "B",
    "BCC",
    "PoD",
    "BR",
    "Rreg",
    "Wreg",
    "ADDR",
    "DATA",
    "NDATA",
    "SPEC",
    "EXEC",
    "TTD",
    "Tag",
    "HU",
    "MMU",
    "D-MMU",
    "PTE",
    "PTEV",
    "PTEINV",
    "FAULT",
    "TagCheck",
    "Translation",
    "AccessFlag",
    "TLBI",
    "TLBIIS",
    "TLBInXS",
    "Instr",
    "Restricted-CMODX",
    "DC",
    "DC.CVAU",
    "DC.IVAC",
    "DC.CVAC",
    "IC",
    "IC.IALLU",
    "IC.IALLUIS",
    "IC.IVAU",
    "Imp",
    "T",
    "AF",
    "DB",
    "EXC-ENTRY",
    "EXC-RET",
    "SVC",
    "SPURIOUS",
    "PAC",
];

struct ExecutionSearch<'s> {
    test: &'s IsaTest,
    model: &'s CatModel,
    options: &'s IsaOptions,
    vocabulary: &'s Vocabulary,
    compiled: &'s Compiled,
    wanted: Option<&'s BTreeSet<FinalState>>,
    memory: Memory,
    found: IsaOutcomes,
    /// Whether the condition is decided.
    done: bool,
    ticks: u32,
}

impl<'s> ExecutionSearch<'s> {
    fn tick(&mut self) -> Result<(), IsaError> {
        self.ticks += 1;
        match self.ticks.is_multiple_of(256) {
            true => self.options.budget.check().map_err(IsaError::Stopped),
            false => Ok(()),
        }
    }

    /// Chooses a run for each thread.
    fn combine<'r>(
        &mut self,
        threads: &'r [Arc<Runs>],
        chosen: &mut Vec<&'r Run>,
    ) -> Result<(), IsaError> {
        if chosen.len() == threads.len() {
            self.tick()?;
            return self.candidate(chosen);
        }
        for run in &threads[chosen.len()].runs {
            if self.done {
                return Ok(());
            }
            chosen.push(run);
            if chosen.len() < threads.len() || self.is_justified(chosen) {
                self.combine(threads, chosen)?;
            }
            chosen.pop();
        }
        Ok(())
    }

    /// Checks whether each read of the chosen runs still has a possible source.
    fn is_justified(&self, chosen: &[&Run]) -> bool {
        chosen.iter().all(|run| {
            run.events.iter().filter(|event| event.reads()).all(|read| {
                self.test.code.initial(read.address) == Some(read.read)
                    || chosen.iter().any(|other| {
                        let supplies = |write: &Event| {
                            write.writes()
                                && write.address == read.address
                                && write.written == read.read
                        };
                        other.events.iter().any(supplies)
                    })
            })
        })
    }

    /// Searches the executions that consist of given runs.
    fn candidate(&mut self, runs: &[&Run]) -> Result<(), IsaError> {
        let skeleton = Skeleton::new(&self.test.code, runs);
        let compiled = self.compiled;
        match compiled {
            Compiled::Plan(plan) => self.compiled(plan, &skeleton, runs),
            Compiled::Interpreted => self.interpreted(&skeleton, runs),
        }
    }

    fn compiled(
        &mut self,
        plan: &Plan,
        skeleton: &Skeleton,
        runs: &[&Run],
    ) -> Result<(), IsaError> {
        let shape = skeleton.shape;
        plan.prepare(&mut self.memory, shape);
        let (mut rf_at, mut co_at, mut fw_at) = (None, None, None);
        for &(node, entry, _) in &plan.bases {
            let name = self.vocabulary.entries[entry as usize].name.as_str();
            let slot = node.0 as usize;
            match name {
                "rf" => rf_at = Some(slot),
                "co" => co_at = Some(slot),
                "FW" => fw_at = Some(slot),
                _ => {
                    let bits = skeleton.bits(name, &self.test.code, Locks::AreAccesses, &[]);
                    self.memory.values[slot] = bits;
                }
            }
        }
        if !plan.run(&mut self.memory, Stage::Events) {
            return Ok(());
        }
        let sources = skeleton.sources(Locks::AreAccesses);
        let places = skeleton.written_places();
        let mut choice = Choice {
            plan,
            runs,
            rf_at,
            co_at,
            fw_at,
            rf: shape.relation(),
            co: shape.relation(),
            source_of: vec![0; shape.events],
        };
        let product: f64 = sources.iter().map(|(_, writes)| writes.len() as f64).product();
        let orders: f64 = places
            .iter()
            .map(|place| (1..place.len()).map(|n| n as f64).product::<f64>())
            .product();
        // The initial write always comes first.
        for place in &places {
            for &write in &place[1..] {
                shape.relate(&mut choice.co, place[0], write);
            }
        }
        let many = product > 4.0 || orders > 6.0;
        self.choose_sources(skeleton, &mut choice, &sources, &places, 0, many, orders > 6.0)
    }

    #[expect(clippy::too_many_arguments)]
    fn choose_sources(
        &mut self,
        skeleton: &Skeleton,
        choice: &mut Choice<'_>,
        sources: &[(usize, Vec<usize>)],
        places: &[Vec<usize>],
        at: usize,
        early: bool,
        early_orders: bool,
    ) -> Result<(), IsaError> {
        if self.done {
            return Ok(());
        }
        let shape = skeleton.shape;
        if at == sources.len() {
            self.tick()?;
            choice.write(&mut self.memory, skeleton, None);
            if !choice.plan.run(&mut self.memory, Stage::ReadsFrom) {
                return Ok(());
            }
            let mut last: Vec<usize> = Vec::with_capacity(places.len());
            return self.choose_orders(skeleton, choice, places, &mut last, early_orders);
        }
        let (read, writes) = &sources[at];
        for &write in writes {
            shape.relate(&mut choice.rf, write, *read);
            choice.source_of[*read] = write;
            let mut possible = true;
            if early && writes.len() > 1 && at + 1 < sources.len() {
                choice.write(&mut self.memory, skeleton, None);
                possible = choice.plan.run_early(&mut self.memory);
            }
            if possible {
                self.choose_sources(
                    skeleton,
                    choice,
                    sources,
                    places,
                    at + 1,
                    early,
                    early_orders,
                )?;
            }
            choice.rf[write * shape.words + read / 64] &= !(1 << (read % 64));
        }
        Ok(())
    }

    fn choose_orders(
        &mut self,
        skeleton: &Skeleton,
        choice: &mut Choice<'_>,
        places: &[Vec<usize>],
        last: &mut Vec<usize>,
        early: bool,
    ) -> Result<(), IsaError> {
        if self.done {
            return Ok(());
        }
        let at = last.len();
        if at == places.len() {
            self.tick()?;
            let mut state = skeleton.final_state(self.test, choice.runs, last);
            if !self.test.passes_filter(&state) {
                return Ok(());
            }
            self.test.project(&mut state);
            if !self.is_wanted(&state, choice.plan.has_flags()) {
                return Ok(());
            }
            choice.write(&mut self.memory, skeleton, Some(last));
            self.found.candidates += 1;
            if choice.plan.run(&mut self.memory, Stage::Coherence) {
                if choice.plan.has_flags() && self.wanted.is_none() {
                    let raised = choice.plan.raised(&mut self.memory);
                    self.found.flags.extend(raised.iter().map(|name| name.to_string()));
                }
                let code = &self.test.code;
                self.record(state, || skeleton.execution(code, &choice.rf, &choice.co));
            }
            return Ok(());
        }
        let place = &places[at];
        if !choice.plan.uses_coherence {
            // Only the last write is chosen, not the order of the others.
            let from = usize::from(place.len() > 1);
            for &write in &place[from..] {
                last.push(write);
                self.choose_orders(skeleton, choice, places, last, early)?;
                last.pop();
            }
            return Ok(());
        }
        let kept = choice.co.clone();
        let mut order: Vec<usize> = place[1..].to_vec();
        let mut error = None;
        permute(&mut order, 0, &mut |order| {
            if error.is_some() || self.done {
                return;
            }
            for (index, &from) in order.iter().enumerate() {
                for &to in &order[index + 1..] {
                    skeleton.shape.relate(&mut choice.co, from, to);
                }
            }
            // The source of an atomic update's read comes before its write.
            let is_late = |(index, &write): (usize, &usize)| {
                let read = skeleton.pair_of(write);
                read.is_some_and(|read| order[index + 1..].contains(&choice.source_of[read]))
            };
            let mut possible = !order.iter().enumerate().any(is_late);
            if possible && early && order.len() > 1 && at + 1 < places.len() {
                choice.write(&mut self.memory, skeleton, None);
                possible = choice.plan.run_early(&mut self.memory);
            }
            if possible {
                last.push(order.last().copied().unwrap_or(place[0]));
                let result = self.choose_orders(skeleton, choice, places, last, early);
                last.pop();
                error = result.err();
            }
            choice.co.copy_from_slice(&kept);
        });
        error.map_or(Ok(()), Err)
    }

    /// Checks whether the result can depend on an execution with this final state.
    fn is_wanted(&self, state: &FinalState, has_flags: bool) -> bool {
        if let Some(wanted) = self.wanted {
            return wanted.contains(state) && !self.found.states.contains(state);
        }
        if self.options.count || has_flags {
            return true;
        }
        if self.options.condition_only {
            let counts = match self.test.quantifier {
                super::test::Asked::Forall => !self.test.satisfies(state),
                _ => self.test.satisfies(state),
            };
            if !counts {
                return false;
            }
        }
        !self.found.states.contains(state)
    }

    fn record(&mut self, state: FinalState, execution: impl FnOnce() -> IsaExecution) {
        if self.test.satisfies(&state) {
            self.found.satisfying += 1;
        } else {
            self.found.violating += 1;
        }
        if self.options.keep_executions && !self.found.states.contains(&state) {
            self.found.executions.insert(state.clone(), execution());
        }
        self.found.states.insert(state);
        let has_all = |wanted: &BTreeSet<FinalState>| wanted.len() == self.found.states.len();
        if self.options.condition_only || self.wanted.is_some_and(has_all) {
            self.done = true;
        }
    }

    /// Interprets the model on each execution.
    fn interpreted(&mut self, skeleton: &Skeleton, runs: &[&Run]) -> Result<(), IsaError> {
        let sources = skeleton.sources(Locks::AreApart);
        if sources.iter().any(|(_, writes)| writes.is_empty()) {
            return Ok(());
        }
        let places = skeleton.written_places();
        // Number of writes to each location that may be the last one. That of a lock does not
        // matter, unless the test asks for it: the model orders the events of locks itself.
        let ends: Vec<usize> = places
            .iter()
            .zip(&skeleton.addresses)
            .map(|(place, &address)| {
                match skeleton.is_lock(place) && !self.test.observes(address) {
                    true => 1,
                    false => place.len().max(2) - 1,
                }
            })
            .collect();
        let mut picked = vec![0; sources.len()];
        loop {
            let mut rf = skeleton.shape.relation();
            for ((read, writes), &at) in sources.iter().zip(&picked) {
                skeleton.shape.relate(&mut rf, writes[at], *read);
            }
            let mut lasts = vec![0; places.len()];
            loop {
                self.tick()?;
                if self.done {
                    return Ok(());
                }
                let last: Vec<usize> = places
                    .iter()
                    .zip(&lasts)
                    .map(|(place, &at)| place[if place.len() > 1 { at + 1 } else { 0 }])
                    .collect();
                let mut state = skeleton.final_state(self.test, runs, &last);
                let passes = self.test.passes_filter(&state);
                self.test.project(&mut state);
                if passes && self.is_wanted(&state, true) {
                    let ground = OnBits {
                        skeleton,
                        code: &self.test.code,
                        vocabulary: self.vocabulary,
                        rf: &rf,
                        last: &last,
                    };
                    self.found.candidates += 1;
                    let (allowed, flags) = self
                        .model
                        .interpret(self.vocabulary, &ground, skeleton.shape)
                        .map_err(IsaError::Model)?;
                    if allowed {
                        self.found
                            .flags
                            .extend(flags.iter().map(|name: &Arc<str>| name.to_string()));
                        let code = &self.test.code;
                        self.record(state, || {
                            // The model chooses the order; only its ends are given.
                            let mut co = skeleton.shape.relation();
                            for (place, &last) in places.iter().zip(&last) {
                                for &write in place {
                                    if write != place[0] {
                                        skeleton.shape.relate(&mut co, place[0], write);
                                    }
                                    if write != last && last != place[0] {
                                        skeleton.shape.relate(&mut co, write, last);
                                    }
                                }
                            }
                            skeleton.execution(code, &rf, &co)
                        });
                    }
                }
                if !advance(&mut lasts, |at| ends[at]) {
                    break;
                }
            }
            if !advance(&mut picked, |at| sources[at].1.len()) {
                return Ok(());
            }
        }
    }
}

/// Counts up; `false` after the last number.
fn advance(digits: &mut [usize], base: impl Fn(usize) -> usize) -> bool {
    for (at, digit) in digits.iter_mut().enumerate() {
        *digit += 1;
        if *digit < base(at) {
            return true;
        }
        *digit = 0;
    }
    false
}

/// Calls a function with every order of some events.
fn permute(order: &mut [usize], from: usize, visit: &mut dyn FnMut(&[usize])) {
    if from + 1 >= order.len() {
        visit(order);
        return;
    }
    for at in from..order.len() {
        order.swap(from, at);
        permute(order, from + 1, visit);
        order.swap(from, at);
    }
}

/// Choices made so far.
struct Choice<'c> {
    plan: &'c Plan,
    runs: &'c [&'c Run],
    rf_at: Option<usize>,
    co_at: Option<usize>,
    fw_at: Option<usize>,
    rf: Bits,
    co: Bits,
    /// Source of each read.
    source_of: Vec<usize>,
}

impl Choice<'_> {
    /// Copies the choices to the memory of the compiled model.
    fn write(&self, memory: &mut Memory, skeleton: &Skeleton, last: Option<&[usize]>) {
        if let Some(at) = self.rf_at {
            memory.values[at].copy_from_slice(&self.rf);
        }
        if let Some(at) = self.co_at {
            memory.values[at].copy_from_slice(&self.co);
        }
        if let (Some(at), Some(last)) = (self.fw_at, last) {
            memory.values[at].fill(0);
            for &write in last {
                skeleton.shape.insert(&mut memory.values[at], write);
            }
        }
    }
}

/// Whether spin locks are reads and writes, or events of their own as in the kernel's `lock.cat`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Locks {
    AreAccesses,
    AreApart,
}

/// Events of an execution, before reads have sources.
struct Skeleton {
    shape: Shape,
    /// Events; initial writes, with thread `None`, come first.
    events: Vec<(Option<usize>, Event)>,
    /// Index of each thread's first event.
    starts: Vec<usize>,
    /// Tags of events that belong to spin locks.
    lock_tags: u64,
    addresses: Vec<i64>,
}

impl Skeleton {
    fn new(code: &Code, runs: &[&Run]) -> Self {
        let mut addresses: Vec<i64> = Vec::new();
        for event in runs.iter().flat_map(|run| &run.events).filter(|event| event.located) {
            if !addresses.contains(&event.address) {
                addresses.push(event.address);
            }
        }
        addresses.sort_unstable();
        let initial = |&address: &i64| {
            let event = Event {
                kind: super::unfold::Kind::Write,
                address,
                read: 0,
                written: code.initial(address).unwrap_or(0),
                tags: 0,
                instruction: 0,
                address_from: Default::default(),
                data_from: Default::default(),
                control_from: Default::default(),
                atomic_with: None,
                derived: Derived::Nothing,
                exclusive_with: None,
                located: true,
                ordered: false,
            };
            (None, event)
        };
        let mut events: Vec<(Option<usize>, Event)> = addresses.iter().map(initial).collect();
        let mut starts = Vec::new();
        for (thread, run) in runs.iter().enumerate() {
            starts.push(events.len());
            events.extend(run.events.iter().map(|&event| (Some(thread), event)));
        }
        let lock_tags =
            ["LKR", "LKW", "UL", "LF", "RL", "RU"].iter().map(|tag| code.tag(tag)).sum();
        Skeleton { shape: Shape::new(events.len()), events, starts, lock_tags, addresses }
    }

    /// Builds an execution for display.
    fn execution(&self, code: &Code, rf: &Bits, co: &Bits) -> IsaExecution {
        IsaExecution::new(code, &self.events, &self.starts, self.shape, (rf, co))
    }

    /// Returns the possible sources of each read.
    fn sources(&self, locks: Locks) -> Vec<(usize, Vec<usize>)> {
        let mut found = Vec::new();
        for (at, (_, read)) in self.events.iter().enumerate() {
            if !read.reads() || (locks == Locks::AreApart && read.tags & self.lock_tags != 0) {
                continue;
            }
            let supplies = |(index, (_, write)): (usize, &(Option<usize>, Event))| {
                let fits = write.writes()
                    && write.address == read.address
                    && write.written == read.read
                    && index != at
                    && !self.is_pair(at, index);
                fits.then_some(index)
            };
            found.push((at, self.events.iter().enumerate().filter_map(supplies).collect()));
        }
        // Reads with one source come first, so that their consequences are computed once.
        found.sort_by_key(|(_, writes): &(usize, Vec<usize>)| writes.len().min(2));
        found
    }

    /// Checks whether a write belongs to the same atomic instruction as a read, so that it cannot
    /// be the read's source.
    fn is_pair(&self, read: usize, write: usize) -> bool {
        self.pair_of(write) == Some(read)
    }

    /// Returns the read of the atomic instruction that a write belongs to.
    fn pair_of(&self, write: usize) -> Option<usize> {
        let (thread, event) = &self.events[write];
        Some(self.starts[(*thread)?] + usize::from(event.atomic_with?))
    }

    /// Returns the writes to each location, the initial one first.
    fn written_places(&self) -> Vec<Vec<usize>> {
        let place = |&address: &i64| {
            let is_it = |(at, (_, event)): (usize, &(Option<usize>, Event))| {
                (event.writes() && event.address == address).then_some(at)
            };
            self.events.iter().enumerate().filter_map(is_it).collect()
        };
        self.addresses.iter().map(place).collect()
    }

    /// Checks whether only operations on a lock write a location, after the initial write.
    fn is_lock(&self, place: &[usize]) -> bool {
        let is_operation = |&write: &usize| self.events[write].1.tags & self.lock_tags != 0;
        place.len() > 1 && place[1..].iter().all(is_operation)
    }

    /// Returns the final state, given the last write of each written location.
    fn final_state(&self, test: &IsaTest, runs: &[&Run], last: &[usize]) -> FinalState {
        let mut state = Vec::new();
        for observed in &test.observed {
            match observed.source {
                Source::Register { thread, register } => {
                    let value = runs[thread].registers[usize::from(register)];
                    state.push(truncate(value, observed.bytes, observed.signed));
                }
                Source::Memory { address, count, step } => {
                    for element in 0..count {
                        let address = address + element as i64 * i64::from(step);
                        let value = match self.addresses.binary_search(&address) {
                            Ok(at) => self.events[last[at]].1.written,
                            Err(_) => test.code.initial(address).unwrap_or(0),
                        };
                        state.push(truncate(value, observed.bytes, observed.signed));
                    }
                }
            }
        }
        state
    }

    fn set(&self, member: impl Fn(Option<usize>, &Event) -> bool) -> Bits {
        let mut bits = self.shape.set();
        for (at, (thread, event)) in self.events.iter().enumerate() {
            if member(*thread, event) {
                self.shape.insert(&mut bits, at);
            }
        }
        bits
    }

    fn relation(&self, related: impl Fn(usize, usize) -> bool) -> Bits {
        let mut bits = self.shape.relation();
        for from in 0..self.events.len() {
            for to in 0..self.events.len() {
                if related(from, to) {
                    self.shape.relate(&mut bits, from, to);
                }
            }
        }
        bits
    }

    /// Relates the sources of each event to it.
    fn dependency(&self, sources: impl Fn(&Event) -> u64) -> Bits {
        let mut bits = self.shape.relation();
        for (at, (thread, event)) in self.events.iter().enumerate() {
            let Some(thread) = thread else { continue };
            let mut left = sources(event);
            while left != 0 {
                let read = self.starts[*thread] + left.trailing_zeros() as usize;
                left &= left - 1;
                // Nothing depends on its own instruction.
                if self.events[read].1.instruction != event.instruction {
                    self.shape.relate(&mut bits, read, at);
                }
            }
        }
        bits
    }

    /// Computes a set or relation by its name.
    fn bits(&self, name: &str, code: &Code, locks: Locks, last: &[usize]) -> Bits {
        let shape = self.shape;
        let apart = |event: &Event| locks == Locks::AreApart && event.tags & self.lock_tags != 0;
        let thread = |at: usize| self.events[at].0;
        let event = |at: usize| &self.events[at].1;
        let partner = |amo: bool, lxsx: bool| {
            let mut bits = shape.relation();
            for (at, (thread, event)) in self.events.iter().enumerate() {
                let Some(thread) = thread else { continue };
                if apart(event) {
                    continue;
                }
                let with = if amo { event.atomic_with } else { None };
                let other = if lxsx { event.exclusive_with } else { None };
                for read in with.into_iter().chain(other) {
                    shape.relate(&mut bits, self.starts[*thread] + usize::from(read), at);
                }
            }
            bits
        };
        match name {
            "po" => self.relation(|a, b| {
                thread(a).is_some()
                    && thread(a) == thread(b)
                    && event(a).instruction < event(b).instruction
            }),
            "loc" => self.relation(|a, b| {
                event(a).located && event(b).located && event(a).address == event(b).address
            }),
            "int" => self.relation(|a, b| thread(a) == thread(b)),
            "ext" => self.relation(|a, b| thread(a) != thread(b)),
            "id" | "sm" | "si" => self.relation(|a, b| a == b),
            "same-instance" => self.relation(|a, b| {
                a == b
                    || (thread(a).is_some()
                        && thread(a) == thread(b)
                        && event(a).instruction == event(b).instruction)
            }),
            "asw" => self.relation(|a, b| thread(a).is_none() && thread(b).is_some()),
            "co0" => self.relation(|a, b| {
                let same =
                    event(a).writes() && event(b).writes() && event(a).address == event(b).address;
                same && a != b
                    && !(apart(event(a)) || apart(event(b)))
                    && ((thread(a).is_none() && thread(b).is_some())
                        || (last.contains(&b) && a != b))
            }),
            "addr" => self.dependency(|event| event.address_from.direct),
            "data" => self.dependency(|event| event.data_from.direct),
            "ctrl" => self.dependency(|event| event.control_from.direct),
            "pick-addr-dep" => {
                self.dependency(|event| event.address_from.direct | event.address_from.picked)
            }
            "pick-data-dep" => {
                self.dependency(|event| event.data_from.direct | event.data_from.picked)
            }
            "pick-ctrl-dep" => {
                self.dependency(|event| event.control_from.direct | event.control_from.picked)
            }
            "iico_order" => {
                self.relation(|a, b| b == a + 1 && thread(b).is_some() && event(b).ordered)
            }
            "iico_data" | "iico_ctrl" => {
                let derived = if name == "iico_data" { Derived::Value } else { Derived::Choice };
                self.relation(|a, b| event(b).derived == derived && self.is_pair(a, b))
            }
            "amo" => partner(true, false),
            "lxsx" => partner(false, true),
            "rmw" => partner(true, true),
            "R" => self.set(|_, event| event.reads() && !apart(event)),
            "W" => self.set(|_, event| event.writes() && !apart(event)),
            "M" | "Exp" => self.set(|_, event| (event.reads() || event.writes()) && !apart(event)),
            "F" => self.set(|_, event| event.kind == super::unfold::Kind::Fence),
            "IW" | "I" => self.set(|thread, _| thread.is_none()),
            "FW" => {
                let mut bits = shape.set();
                for &write in last {
                    if !apart(event(write)) {
                        shape.insert(&mut bits, write);
                    }
                }
                bits
            }
            name => {
                // Only tags of the test or of the model's bell file are requested.
                let tag = code.tag_in_any_case(name);
                self.set(|_, event| event.tags & tag != 0)
            }
        }
    }
}

/// An execution for models that are interpreted.
struct OnBits<'e> {
    skeleton: &'e Skeleton,
    code: &'e Code,
    vocabulary: &'e Vocabulary,
    rf: &'e Bits,
    last: &'e [usize],
}

impl Ground for OnBits<'_> {
    fn bits(&self, entry: u32) -> Bits {
        match self.vocabulary.entries[entry as usize].name.as_str() {
            "rf" => self.rf.clone(),
            // The source of an update's read comes before its write.
            "co0" => {
                let skeleton = self.skeleton;
                let mut order = skeleton.bits("co0", self.code, Locks::AreApart, self.last);
                for write in 0..skeleton.shape.events {
                    let Some(read) = skeleton.pair_of(write) else { continue };
                    for source in 0..skeleton.shape.events {
                        if skeleton.shape.related(self.rf, source, read) {
                            skeleton.shape.relate(&mut order, source, write);
                        }
                    }
                }
                order
            }
            name => self.skeleton.bits(name, self.code, Locks::AreApart, self.last),
        }
    }

    fn values_differ(&self, a: usize, b: usize) -> bool {
        let value = |at: usize| {
            let event = &self.skeleton.events[at].1;
            if event.writes() { event.written } else { event.read }
        };
        value(a) != value(b)
    }
}
