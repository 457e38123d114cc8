//! Outcomes by executing a definition literally: every candidate execution is tried.
//!
//! Every choice of sources for the reads, and every store order, memory order or choice of views
//! over which the definition quantifies, is evaluated. This is for very small programs, and for
//! testing that the solver's results agree with the definition.

use consistory_models::MemoryModel;
use consistory_verdict::Budget;

use crate::program::{LocationId, Outcome, Outcomes, Program};
use crate::relational::{Algebra, Choices, EvaluateError, evaluate, size};
use crate::sat::Solution;
use crate::semantics::{OutcomesError, Semantics};
use crate::skeleton::{Skeleton, Source, skeletons};

/// Finds every outcome that a definition allows by trying all candidate executions.
pub fn try_candidates(
    program: &Program,
    model: &MemoryModel,
    budget: &Budget,
) -> Result<Outcomes, OutcomesError> {
    let mut outcomes = Outcomes::new();
    for skeleton in skeletons(program)? {
        each_candidate(program, model, &skeleton, budget, &mut |outcome, _| {
            outcomes.insert(outcome);
        })?;
    }
    Ok(outcomes)
}

/// Reports an execution for every outcome of a skeleton that a definition allows.
pub(crate) fn each_candidate(
    program: &Program,
    model: &MemoryModel,
    skeleton: &Skeleton,
    budget: &Budget,
    visit: &mut dyn FnMut(Outcome, &Solution<'_>),
) -> Result<(), OutcomesError> {
    let events: Vec<usize> = (0..skeleton.events.len()).collect();
    let known = Outcomes::new();
    let mut search = CandidateSearch { program, model, skeleton, known, budget, visit };
    let reads: Vec<usize> =
        events.iter().copied().filter(|&at| skeleton.events[at].reads()).collect();
    let mut sources = vec![Source::Initial; events.len()];
    search.read(&reads, &mut sources)
}

/// Known bits, and whether all demands were met.
struct Known<'a> {
    holds: bool,
    budget: &'a Budget,
}

impl Algebra for Known<'_> {
    type Bit = bool;

    fn constant(&self, value: bool) -> bool {
        value
    }

    fn and(&mut self, bits: &[bool]) -> bool {
        bits.iter().all(|&bit| bit)
    }

    fn or(&mut self, bits: &[bool]) -> bool {
        bits.iter().any(|&bit| bit)
    }

    fn not(&mut self, bit: &bool) -> bool {
        !bit
    }

    fn demand_none(&mut self, bits: &[bool]) {
        self.holds &= !bits.contains(&true);
    }

    fn demand_acyclic(&mut self, size: usize, relation: &[bool]) {
        // Remove events without predecessors until none is left.
        let mut left: Vec<usize> = (0..size).collect();
        loop {
            let is_first = |&b: &usize| left.iter().all(|&a| !relation[a * size + b]);
            let rest: Vec<usize> = left.iter().copied().filter(|b| !is_first(b)).collect();
            if rest.len() == left.len() {
                self.holds &= rest.is_empty();
                return;
            }
            left = rest;
        }
    }

    /// Each round adds a pair or is the last one.
    fn rounds(&self, pairs: usize) -> usize {
        pairs + 1
    }

    fn spend(&mut self, _: usize) -> Result<(), EvaluateError> {
        self.budget.check().map_err(EvaluateError::Stopped)
    }
}

struct CandidateSearch<'a> {
    program: &'a Program,
    model: &'a MemoryModel,
    skeleton: &'a Skeleton,
    /// Outcomes that were reported.
    known: Outcomes,
    budget: &'a Budget,
    visit: &'a mut dyn FnMut(Outcome, &Solution<'_>),
}

impl CandidateSearch<'_> {
    fn read(&mut self, reads: &[usize], sources: &mut Vec<Source>) -> Result<(), OutcomesError> {
        let Some((&read, rest)) = reads.split_first() else { return self.orders(sources) };
        let location = self.skeleton.events[read].location;
        let mut candidates = vec![Source::Initial];
        if let Some(location) = location {
            let writes = self.skeleton.writes_of(location).filter(|&write| write != read);
            candidates.extend(writes.map(Source::Event));
        }
        for source in candidates {
            sources[read] = source;
            self.read(rest, sources)?;
        }
        Ok(())
    }

    fn orders(&mut self, sources: &[Source]) -> Result<(), OutcomesError> {
        let definition = self.model.program();
        let events = self.skeleton.events.len();
        if definition.has_memory_order {
            let mut order: Vec<usize> = (0..events).collect();
            loop {
                self.execution(sources, &order, std::slice::from_ref(&order))?;
                if !next_permutation(&mut order) {
                    return Ok(());
                }
            }
        }
        let mut store: Vec<usize> =
            (0..events).filter(|&at| self.skeleton.events[at].writes()).collect();
        let location = |at: usize| self.skeleton.events[at].location;
        // Only the order of writes to one location matters: of neighbours that write different
        // locations, the earlier event comes first.
        let is_canonical = |store: &[usize]| {
            store.windows(2).all(|pair| pair[0] < pair[1] || location(pair[0]) == location(pair[1]))
        };
        loop {
            if is_canonical(&store) {
                if definition.has_views {
                    self.views(sources, &store, &mut Vec::new())?;
                } else {
                    self.execution(sources, &store, &[])?;
                }
            } else {
                self.budget.check()?;
            }
            if !next_permutation(&mut store) {
                return Ok(());
            }
        }
    }

    fn views(
        &mut self,
        sources: &[Source],
        store: &[usize],
        chosen: &mut Vec<Vec<usize>>,
    ) -> Result<(), OutcomesError> {
        if chosen.len() == self.skeleton.threads.len() {
            return self.execution(sources, store, chosen);
        }
        let mut order: Vec<usize> = (0..self.skeleton.events.len()).collect();
        loop {
            chosen.push(order.clone());
            self.views(sources, store, chosen)?;
            chosen.pop();
            if !next_permutation(&mut order) {
                return Ok(());
            }
        }
    }

    /// Evaluates one execution: `orders` is the memory order, or one view per thread, or empty.
    fn execution(
        &mut self,
        sources: &[Source],
        store: &[usize],
        orders: &[Vec<usize>],
    ) -> Result<(), OutcomesError> {
        let Some(values) = self.skeleton.values(sources) else { return Ok(()) };
        let last = |location: LocationId| {
            let writes = || self.skeleton.writes_of(location);
            let last = store.iter().rev().find(|&&write| writes().any(|w| w == write));
            last.map_or(Source::Initial, |&write| Source::Event(write))
        };
        let outcome = self.skeleton.outcome(self.program, &values, last);
        if self.known.contains(&outcome) {
            return Ok(());
        }
        let size = size(self.skeleton);
        let events = self.skeleton.events.len();
        let mut rf = vec![false; size * size];
        for (read, source) in sources.iter().enumerate() {
            let Some(location) = self.skeleton.events[read].location else { continue };
            if self.skeleton.events[read].reads() {
                let from = match source {
                    Source::Initial => events + location.index(),
                    Source::Event(write) => *write,
                };
                rf[from * size + read] = true;
            }
        }
        let mut relations = orders.iter().map(|order| self.relation(order));
        let (memory_order, views) = match self.model.program().has_memory_order {
            true => (relations.next(), Vec::new()),
            false => (None, relations.collect()),
        };
        let choices = Choices { rf, co: self.store_order(store, size), memory_order, views };
        let mut known = Known { holds: true, budget: self.budget };
        evaluate(&mut known, self.model.program(), self.skeleton, &choices).map_err(|error| {
            match error {
                EvaluateError::Stopped(stopped) => OutcomesError::Stopped(stopped),
                EvaluateError::OpenRecursion => OutcomesError::Unsupported {
                    model: Semantics::name(self.model).to_owned(),
                    what: error.to_string(),
                },
            }
        })?;
        if known.holds {
            let mut stores = store.to_vec();
            stores.retain(|&at| self.skeleton.events[at].writes());
            let (skeleton, sources, orders) = (self.skeleton, sources.to_vec(), orders.to_vec());
            self.known.insert(outcome.clone());
            (self.visit)(outcome, &Solution { skeleton, sources, stores, orders });
        }
        Ok(())
    }

    /// Relates the initial writes to all events, and events by the order.
    fn relation(&self, order: &[usize]) -> Vec<bool> {
        let size = size(self.skeleton);
        let all: Vec<usize> =
            (self.skeleton.events.len()..size).chain(order.iter().copied()).collect();
        let mut relation = vec![false; size * size];
        for (at, &a) in all.iter().enumerate() {
            for &b in &all[at + 1..] {
                relation[a * size + b] = true;
            }
        }
        relation
    }

    fn store_order(&self, store: &[usize], size: usize) -> Vec<bool> {
        let events = &self.skeleton.events;
        let mut co = vec![false; size * size];
        for (at, &a) in store.iter().enumerate().filter(|&(_, &at)| events[at].writes()) {
            if let Some(location) = events[a].location {
                co[(events.len() + location.index()) * size + a] = true;
            }
            for &b in store[at + 1..].iter().filter(|&&b| events[b].writes()) {
                co[a * size + b] = events[a].location == events[b].location;
            }
        }
        co
    }
}

/// Computes the lexicographically next order of some events; returns whether there is one.
fn next_permutation(order: &mut [usize]) -> bool {
    let Some(rise) = order.windows(2).rposition(|pair| pair[0] < pair[1]) else { return false };
    let above = order.iter().rposition(|&at| at > order[rise]).unwrap_or(rise + 1);
    order.swap(rise, above);
    order[rise + 1..].reverse();
    true
}
