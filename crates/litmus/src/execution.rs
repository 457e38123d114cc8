//! Executions: witnesses that a model allows an outcome.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use consistory_models::MemoryModel;
use consistory_verdict::Budget;

use crate::program::{LocationId, Outcome, Program, Value};
use crate::sat::each_solution;
use crate::saturate::each_found;
use crate::semantics::OutcomesError;
use crate::skeleton::{Event, Skeleton, Source};
use crate::table::Table;

/// An execution: events with their values, the sources of reads, and the orders by which the model
/// allows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Execution {
    /// The events; those of a thread are consecutive, in program order.
    pub events: Vec<ExecutionEvent>,
    /// Source of each event; `None` if it does not read, or reads the initial value.
    pub reads_from: Vec<Option<usize>>,
    /// Writes of each location in the order in which they take effect, without the initial one.
    pub coherence: Vec<Vec<usize>>,
    /// The memory order, or one view per thread; empty if the model has no such orders.
    ///
    /// The orders of a [`Table`] do not contain partial fences.
    pub orders: Vec<Vec<usize>>,
}

/// An event of an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecutionEvent {
    /// The thread, counted from 0.
    pub thread: usize,
    /// The index of its instruction in the thread's code.
    pub instruction: usize,
    /// The location, unless it is a fence.
    pub location: Option<LocationId>,
    /// The value read, if it reads.
    pub read: Option<Value>,
    /// The value written, if it writes.
    pub written: Option<Value>,
}

/// Finds every outcome that a model allows, each with an execution.
pub fn witnesses(
    program: &Program,
    table: &Table,
    budget: &Budget,
) -> Result<BTreeMap<Outcome, Execution>, OutcomesError> {
    let mut all = BTreeMap::new();
    each_found(program, table, budget, &mut |outcome, found| {
        if let Entry::Vacant(entry) = all.entry(outcome) {
            // All views agree on the order of writes to one location.
            let order = found.orders.first().map(Vec::as_slice).unwrap_or_default();
            let coherence = coherence(found.skeleton, order);
            let orders = found.orders.clone();
            if let Some(shown) = execution(found.skeleton, &found.sources, coherence, orders) {
                entry.insert(shown);
            }
        }
    })?;
    Ok(all)
}

/// Finds every outcome that a definition allows, each with an execution.
pub fn definition_witnesses(
    program: &Program,
    model: &MemoryModel,
    budget: &Budget,
) -> Result<BTreeMap<Outcome, Execution>, OutcomesError> {
    let mut all = BTreeMap::new();
    each_solution(program, model, budget, &mut |outcome, solution| {
        if let Entry::Vacant(entry) = all.entry(outcome) {
            let coherence = coherence(solution.skeleton, &solution.stores);
            let orders = solution.orders.clone();
            if let Some(shown) = execution(solution.skeleton, &solution.sources, coherence, orders)
            {
                entry.insert(shown);
            }
        }
    })?;
    Ok(all)
}

/// Returns each location's writes, in the order of a list of all writes.
fn coherence(skeleton: &Skeleton, order: &[usize]) -> Vec<Vec<usize>> {
    let of = |location: usize| {
        let location = Some(LocationId::new(location));
        let is_write =
            |&at: &usize| skeleton.events[at].writes() && skeleton.events[at].location == location;
        order.iter().copied().filter(is_write).collect()
    };
    (0..skeleton.locations()).map(of).collect()
}

/// Computes the values of a skeleton with given sources.
fn execution(
    skeleton: &Skeleton,
    sources: &[Source],
    coherence: Vec<Vec<usize>>,
    orders: Vec<Vec<usize>>,
) -> Option<Execution> {
    let values = skeleton.values(sources)?;
    let written = |at: usize| skeleton.events[at].value.map(|node| values[node as usize]);
    let event = |(at, event): (usize, &Event)| ExecutionEvent {
        thread: event.thread,
        instruction: event.instruction,
        location: event.location,
        read: event.location.filter(|_| event.reads()).and_then(|location| match sources[at] {
            Source::Initial => Some(skeleton.initial(location)),
            Source::Event(write) => written(write),
        }),
        written: written(at),
    };
    let reads_from = |at: usize| match sources[at] {
        Source::Event(write) if skeleton.events[at].reads() => Some(write),
        _ => None,
    };
    Some(Execution {
        events: skeleton.events.iter().enumerate().map(event).collect(),
        reads_from: (0..sources.len()).map(reads_from).collect(),
        coherence,
        orders,
    })
}

impl Execution {
    /// Returns the sources of reads (`rf`), the successive writes of each location (`co`), and the
    /// edge from each read to the write that overwrites its source (`fr`).
    pub fn relations(&self) -> Vec<(usize, usize, &'static str)> {
        let mut all = Vec::new();
        for (at, event) in self.events.iter().enumerate() {
            let Some(location) = event.location else { continue };
            let writes = &self.coherence[location.index()];
            if event.read.is_some() {
                all.extend(self.reads_from[at].map(|write| (write, at, "rf")));
                let behind = match self.reads_from[at] {
                    Some(write) => writes.iter().position(|&w| w == write).map_or(0, |p| p + 1),
                    None => 0,
                };
                let next = writes.get(behind).filter(|&&write| write != at);
                all.extend(next.map(|&write| (at, write, "fr")));
            }
            if let Some(place) = writes.iter().position(|&write| write == at) {
                all.extend(writes.get(place + 1).map(|&next| (at, next, "co")));
            }
        }
        all
    }

    /// Formats an event as `W X=1`, `R X=1`, `RMW X=0->1` or `F`.
    pub fn show(&self, program: &Program, event: usize) -> String {
        let event = &self.events[event];
        let name = |location: LocationId| &program.locations[location.index()].name;
        match (event.location, event.read, event.written) {
            (Some(at), Some(read), Some(written)) => {
                format!("RMW {}={read}->{written}", name(at))
            }
            (Some(at), Some(read), None) => format!("R {}={read}", name(at)),
            (Some(at), None, Some(written)) => format!("W {}={written}", name(at)),
            _ => "F".to_owned(),
        }
    }
}
