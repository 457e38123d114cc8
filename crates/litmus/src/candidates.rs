//! Outcomes under a definition by the letter: every candidate execution is tried.
//!
//! Every choice of sources for the reads, and every store order, memory order or choice of views
//! that the definition quantifies over, is evaluated. This is for very small programs, and for
//! testing that the solver's answers are those of the definition.

use consistory_models::MemoryModel;
use consistory_verdict::Budget;

use crate::program::{LocationId, Outcomes, Program};
use crate::relational::{Algebra, Choices, EvaluateError, evaluate, size};
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
        let events: Vec<usize> = (0..skeleton.events.len()).collect();
        let definition = model.program();
        let total = definition.has_memory_order() || definition.has_views();
        let orders = if total { permutations(&events) } else { Vec::new() };
        let mut search = Search { program, model, skeleton: &skeleton, orders, budget };
        let reads: Vec<usize> =
            events.iter().copied().filter(|&at| skeleton.events[at].reads()).collect();
        let mut sources = vec![Source::Initial; events.len()];
        search.read(&reads, &mut sources, &mut outcomes)?;
    }
    Ok(outcomes)
}

/// Bits that are known, and whether all demands were met.
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
        // Take away what nothing leads to until nothing is left.
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

    /// Each round adds a pair, or is the last.
    fn rounds(&self, pairs: usize) -> usize {
        pairs + 1
    }

    fn spend(&mut self, _: usize) -> Result<(), EvaluateError> {
        self.budget.check().map_err(EvaluateError::Stopped)
    }
}

struct Search<'a> {
    program: &'a Program,
    model: &'a MemoryModel,
    skeleton: &'a Skeleton,
    /// Every order of all events, if the definition quantifies over such.
    orders: Vec<Vec<usize>>,
    budget: &'a Budget,
}

impl Search<'_> {
    fn read(
        &mut self,
        reads: &[usize],
        sources: &mut Vec<Source>,
        outcomes: &mut Outcomes,
    ) -> Result<(), OutcomesError> {
        let Some((&read, rest)) = reads.split_first() else {
            return self.orders(sources, outcomes);
        };
        let location = self.skeleton.events[read].location;
        let mut candidates = vec![Source::Initial];
        if let Some(location) = location {
            let writes = self.skeleton.writes_of(location).filter(|&write| write != read);
            candidates.extend(writes.map(Source::Event));
        }
        for source in candidates {
            sources[read] = source;
            self.read(rest, sources, outcomes)?;
        }
        Ok(())
    }

    fn orders(&mut self, sources: &[Source], outcomes: &mut Outcomes) -> Result<(), OutcomesError> {
        let definition = self.model.program();
        if definition.has_memory_order() {
            for at in 0..self.orders.len() {
                let order = self.relation(&self.orders[at]);
                let store = self.orders[at].clone();
                self.execution(sources, &store, Some(order), Vec::new(), outcomes)?;
            }
            return Ok(());
        }
        let size = size(self.skeleton);
        let writes: Vec<usize> = (0..self.skeleton.events.len())
            .filter(|&at| self.skeleton.events[at].writes())
            .collect();
        let mut tried: Vec<Vec<bool>> = Vec::new();
        for store in permutations(&writes) {
            // Only the order of writes to one location matters.
            let co = self.store_order(&store, size);
            if tried.contains(&co) {
                continue;
            }
            tried.push(co);
            if definition.has_views() {
                self.views(sources, &store, &mut Vec::new(), outcomes)?;
            } else {
                self.execution(sources, &store, None, Vec::new(), outcomes)?;
            }
        }
        Ok(())
    }

    fn views(
        &mut self,
        sources: &[Source],
        store: &[usize],
        chosen: &mut Vec<usize>,
        outcomes: &mut Outcomes,
    ) -> Result<(), OutcomesError> {
        if chosen.len() == self.skeleton.threads.len() {
            let views = chosen.iter().map(|&at| self.relation(&self.orders[at])).collect();
            return self.execution(sources, store, None, views, outcomes);
        }
        for at in 0..self.orders.len() {
            chosen.push(at);
            self.views(sources, store, chosen, outcomes)?;
            chosen.pop();
        }
        Ok(())
    }

    fn execution(
        &mut self,
        sources: &[Source],
        store: &[usize],
        memory_order: Option<Vec<bool>>,
        views: Vec<Vec<bool>>,
        outcomes: &mut Outcomes,
    ) -> Result<(), OutcomesError> {
        let Some(values) = self.skeleton.values(sources) else { return Ok(()) };
        let last = |location: LocationId| {
            let writes = || self.skeleton.writes_of(location);
            let last = store.iter().rev().find(|&&write| writes().any(|w| w == write));
            last.map_or(Source::Initial, |&write| Source::Event(write))
        };
        let outcome = self.skeleton.outcome(self.program, &values, last);
        if outcomes.contains(&outcome) {
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
            outcomes.insert(outcome);
        }
        Ok(())
    }

    /// Relates the initial writes to everything, and events as the order has them.
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

/// Gives every order of some events.
fn permutations(events: &[usize]) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for &event in events {
        let extend = |order: &Vec<usize>| {
            (0..=order.len())
                .map(|at| {
                    let mut longer = order.clone();
                    longer.insert(at, event);
                    longer
                })
                .collect::<Vec<_>>()
        };
        all = all.iter().flat_map(extend).collect();
    }
    all
}
