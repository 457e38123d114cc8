//! Outcomes of axiomatic models: the sources of reads are enumerated, and order follows by
//! saturation.
//!
//! The reads are assigned sources one after the other. Each source forces order: the source comes
//! before the read unless it is forwarded, earlier writes of the read's own thread come before the
//! source, and the read comes before every write that overwrites the source. Orders are kept
//! transitively closed as bit rows, forwards and backwards, with one pair of matrices per view; an
//! added pair also adds the pairs on which the views must agree. A cycle closes the branch.
//!
//! When every read has a source, the remaining relevant pairs (two writes to one address; if
//! threads have separate views also a read and a write, and a fence and any event) are decided one
//! after the other, with backtracking. Any order that extends them is then a witness, so the search
//! is exact. Known outcomes are not searched again.
//!
//! Cost: one insertion into a transitive order is O(n) words, and a source needs a few insertions.
//! The number of branches is at most the number of ways to assign sources to reads, and close to
//! the number of outcomes since cycles occur early.

use consistory_verdict::Budget;

use crate::program::{LocationId, Observable, Outcome, Outcomes, Program, Value};
use crate::semantics::{OutcomesError, Semantics};
use crate::skeleton::{Node, Skeleton, Source, skeletons};
use crate::table::{Causality, FenceAgreement, Forwarding, Order, Table, bits};

/// Number of events from which the outcomes of one memory order are found first. Equal views that
/// follow one memory order satisfy every rule, and one view is decided faster; several views are
/// then tried for the remaining outcomes only.
const MIN_EVENTS_ATOMIC_FIRST: u32 = 12;

impl Semantics for Table {
    fn name(&self) -> &str {
        &self.name
    }

    fn outcomes(&self, program: &Program, budget: &Budget) -> Result<Outcomes, OutcomesError> {
        let mut outcomes = Outcomes::new();
        for skeleton in skeletons(program)? {
            let mut search = SaturationSearch::new(program, self, &skeleton, budget);
            if search.views > 1 && search.ordered.count_ones() > MIN_EVENTS_ATOMIC_FIRST {
                let atomic = Table { order: Order::Memory(Forwarding::Plain), ..self.clone() };
                let mut strong = SaturationSearch::new(program, &atomic, &skeleton, budget);
                strong.run(&mut |_, outcome| {
                    outcomes.insert(outcome);
                })?;
                search.known = strong.known;
            }
            search.run(&mut |_, outcome| {
                outcomes.insert(outcome);
            })?;
        }
        Ok(outcomes)
    }
}

/// An execution with a given outcome, which proves that a model allows the outcome.
#[derive(Clone, Debug)]
pub(crate) struct Found<'s> {
    pub(crate) skeleton: &'s Skeleton,
    /// Source of each event that reads.
    pub(crate) sources: Vec<Source>,
    /// For each view, its events in an order that satisfies the model.
    pub(crate) orders: Vec<Vec<usize>>,
}

/// Reports an execution for every outcome, once for each skeleton with this outcome.
pub(crate) fn each_found(
    program: &Program,
    table: &Table,
    budget: &Budget,
    visit: &mut dyn FnMut(Outcome, &Found<'_>),
) -> Result<(), OutcomesError> {
    for skeleton in skeletons(program)? {
        let mut search = SaturationSearch::new(program, table, &skeleton, budget);
        search.run(&mut |search, outcome| {
            let (sources, orders) = (search.sources(), search.linearize());
            visit(outcome, &Found { skeleton: &skeleton, sources, orders });
        })?;
    }
    Ok(())
}

/// Function that receives each outcome.
type Visit<'v> = dyn FnMut(&SaturationSearch<'_>, Outcome) + 'v;

/// The agreement required between views.
#[derive(Clone, Copy)]
struct Rules {
    is_sober: bool,
    causality: Causality,
    fences: FenceAgreement,
}

struct SaturationSearch<'a> {
    program: &'a Program,
    skeleton: &'a Skeleton,
    budget: &'a Budget,
    rules: Rules,
    size: usize,
    views: usize,
    /// Events that are ordered: accesses, and full fences if there are several views.
    ordered: u64,
    reads: u64,
    writes: u64,
    /// Full fences and read-modify-writes, if there are several views.
    fences: u64,
    /// For each event, the other events with the same address.
    same: Vec<u64>,
    /// For each event, its predecessors in program order.
    before: Vec<u64>,
    /// View of each thread's events.
    view_of: Vec<usize>,
    /// Value that each event writes, if every value is a constant and there are no demands.
    constants: Option<Vec<Value>>,
    /// Frames of the search, one after the other; the last is the current one. A frame contains the
    /// successors of each event in each view, the predecessors likewise, the readers of each event,
    /// and the source of each event (0 for none yet, 1 for the initial write, then events).
    frames: Vec<u64>,
    base: usize,
    queue: Vec<(usize, usize, usize)>,
    known: rustc_hash::FxHashSet<Outcome>,
    steps: u32,
}

impl<'a> SaturationSearch<'a> {
    fn new(
        program: &'a Program,
        table: &Table,
        skeleton: &'a Skeleton,
        budget: &'a Budget,
    ) -> Self {
        let events = &skeleton.events;
        let size = events.len();
        let (views, rules) = match table.order {
            Order::Memory(forwarding) => (
                1,
                Rules {
                    is_sober: forwarding == Forwarding::Sober,
                    causality: Causality::Free,
                    fences: FenceAgreement::Local,
                },
            ),
            Order::Views(views) => (
                program.threads.len().max(1),
                Rules { is_sober: false, causality: views.causality, fences: views.fences },
            ),
        };
        let set = |is_in: &dyn Fn(usize) -> bool| {
            (0..size).filter(|&at| is_in(at)).fold(0u64, |set, at| set | (1 << at))
        };
        let accesses = set(&|at| events[at].location.is_some());
        let fences = match views {
            1 => 0,
            _ => set(&|at| events[at].is_full_fence() || events[at].is_atomic),
        };
        let location = |at: usize| events[at].location;
        let same = (0..size)
            .map(|a| set(&|b| a != b && location(a).is_some() && location(a) == location(b)))
            .collect();
        let before = (0..size).map(|b| set(&|a| skeleton.po(a, b))).collect();
        let view_of = events.iter().map(|e| if views == 1 { 0 } else { e.thread }).collect();
        let mut search = SaturationSearch {
            program,
            skeleton,
            budget,
            rules,
            size,
            views,
            ordered: accesses | fences,
            reads: set(&|at| events[at].reads()),
            writes: set(&|at| events[at].writes()),
            fences,
            same,
            before,
            view_of,
            constants: constants(skeleton),
            frames: vec![0; size * (2 * views + 2)],
            base: 0,
            queue: Vec::new(),
            known: Default::default(),
            steps: 0,
        };
        let kept = closed(table.kept(skeleton));
        for view in 0..views {
            for first in bits(search.ordered) {
                let after = kept[first] & search.ordered;
                search.frames[view * size + first] = after;
                for second in bits(after) {
                    search.frames[(views + view) * size + second] |= 1 << first;
                }
            }
        }
        search
    }

    /// Visits every outcome once.
    fn run(&mut self, visit: &mut Visit<'_>) -> Result<(), OutcomesError> {
        // An order forced by the table in one view may force others.
        let is_consistent = (0..self.views).all(|view| {
            bits(self.ordered).all(|first| {
                let after = self.after(view, first);
                self.consequences(view, first, after);
                self.propagate()
            })
        });
        if is_consistent {
            self.read(0, visit)?;
        }
        Ok(())
    }

    /// Chooses a source for each read from the event `from` on.
    fn read(&mut self, from: usize, visit: &mut Visit<'_>) -> Result<(), OutcomesError> {
        self.steps += 1;
        if self.steps.is_multiple_of(1024) {
            self.budget.check()?;
        }
        let rest = if from < 64 { self.reads & (u64::MAX << from) } else { 0 };
        if rest == 0 {
            return self.finish(0, visit);
        }
        let read = rest.trailing_zeros() as usize;
        let candidates = self.same[read] & self.writes;
        self.push();
        if self.read_initial(read) {
            self.read(read + 1, visit)?;
        }
        self.pop();
        for write in bits(candidates) {
            self.push();
            if self.read_from(read, write) {
                self.read(read + 1, visit)?;
            }
            self.pop();
        }
        Ok(())
    }

    /// Chooses the last write of each observed location, then reports the outcome if it is new and
    /// the remaining pairs can be ordered.
    fn finish(&mut self, from: usize, visit: &mut Visit<'_>) -> Result<(), OutcomesError> {
        let rest = self.program.observed.iter().enumerate().skip(from);
        let mut open = rest.filter_map(|(at, observable)| {
            let Observable::Location(location) = *observable else { return None };
            let writes = self.skeleton.writes_of(location).fold(0u64, |set, at| set | (1 << at));
            (writes.count_ones() > 1).then_some((at, writes))
        });
        let Some((at, writes)) = open.next() else { return self.leaf(visit) };
        for last in bits(writes) {
            self.push();
            for other in bits(writes & !(1 << last)) {
                self.queue.push((0, other, last));
            }
            if self.propagate() {
                self.finish(at + 1, visit)?;
            }
            self.pop();
        }
        Ok(())
    }

    fn leaf(&mut self, visit: &mut Visit<'_>) -> Result<(), OutcomesError> {
        let Some(outcome) = self.outcome() else { return Ok(()) };
        if self.known.contains(&outcome) {
            return Ok(());
        }
        self.push();
        if self.decide()? {
            self.known.insert(outcome.clone());
            visit(self, outcome);
        }
        self.pop();
        Ok(())
    }

    /// Computes the outcome of the current sources and last writes.
    fn outcome(&self) -> Option<Outcome> {
        if let Some(constants) = &self.constants {
            return Some(Outcome(constants_outcome(self, constants)));
        }
        let values = self.skeleton.values(&self.sources())?;
        Some(self.skeleton.outcome(self.program, &values, |location| self.last(location)))
    }

    /// Returns the last write of a location; it is known when this is called.
    fn last(&self, location: LocationId) -> Source {
        let mut writes = self.skeleton.writes_of(location);
        let last = writes.find(|&at| self.after(0, at) & self.same[at] & self.writes == 0);
        last.map_or(Source::Initial, Source::Event)
    }

    fn sources(&self) -> Vec<Source> {
        let source = |at| match self.source(at) {
            0 | 1 => Source::Initial,
            event => Source::Event(event as usize - 2),
        };
        (0..self.size).map(source).collect()
    }

    /// Decides every undecided relevant pair; the frame then contains all decisions.
    fn decide(&mut self) -> Result<bool, OutcomesError> {
        // Frames before each pair that was decided in the likelier order.
        let mut decided: Vec<(Vec<u64>, (usize, usize, usize))> = Vec::new();
        while let Some(pair) = self.open_pair() {
            self.steps += 1;
            if self.steps.is_multiple_of(1024) {
                self.budget.check()?;
            }
            let frame = self.frames[self.base..].to_vec();
            self.queue.push(pair);
            if self.propagate() {
                decided.push((frame, pair));
                continue;
            }
            // The last decision that can be reversed is reversed.
            let mut last = Some((frame, pair));
            loop {
                let Some((frame, (view, first, second))) = last else { return Ok(false) };
                self.frames.truncate(self.base);
                self.frames.extend_from_slice(&frame);
                self.queue.push((view, second, first));
                if self.propagate() {
                    break;
                }
                last = decided.pop();
            }
        }
        Ok(true)
    }

    /// Finds a relevant pair that is not ordered yet, the likelier order first.
    fn open_pair(&self) -> Option<(usize, usize, usize)> {
        for write in bits(self.writes) {
            let open = self.same[write] & self.writes & !self.related(0, write);
            if open != 0 {
                return Some((0, write, open.trailing_zeros() as usize));
            }
        }
        if self.views == 1 {
            return None;
        }
        for fence in bits(self.fences) {
            let others = match self.rules.fences {
                FenceAgreement::Local => 0,
                FenceAgreement::Fences => self.fences,
                FenceAgreement::Everything => self.ordered,
            };
            let open = others & !(1 << fence) & !self.related(0, fence);
            if open != 0 {
                return Some((0, fence, open.trailing_zeros() as usize));
            }
        }
        for view in 0..self.views {
            for write in bits(self.writes) {
                let open = self.causal_reads(write) & !self.related(view, write);
                if open != 0 {
                    // The write is early in its own view and late in the others, so that other views
                    // are not affected.
                    let read = open.trailing_zeros() as usize;
                    let is_own = self.view_of[write] == view;
                    return Some(if is_own { (view, write, read) } else { (view, read, write) });
                }
            }
        }
        None
    }

    /// Returns the reads whose order with a write the views must partly agree on.
    fn causal_reads(&self, write: usize) -> u64 {
        let reads = match self.rules.causality {
            Causality::Free => 0,
            Causality::SameAddress => self.reads & self.same[write],
            Causality::Full => self.reads,
        };
        reads & !(1 << write)
    }

    fn read_initial(&mut self, read: usize) -> bool {
        let writes = self.same[read] & self.writes;
        if writes & self.before[read] != 0 {
            return false;
        }
        *self.source_mut(read) = 1;
        let view = self.view_of[read];
        self.queue.extend(bits(writes).map(|write| (view, read, write)));
        self.propagate()
    }

    fn read_from(&mut self, read: usize, write: usize) -> bool {
        let view = self.view_of[read];
        if self.after(view, read) & (1 << write) != 0 && self.before[read] & (1 << write) == 0 {
            return false;
        }
        *self.source_mut(read) = write as u64 + 2;
        let place = self.base + 2 * self.views * self.size + write;
        self.frames[place] |= 1 << read;
        let others = self.same[read] & self.writes & !(1 << write);
        if self.before[read] & (1 << write) == 0 {
            self.queue.push((view, write, read));
        }
        let own = others & self.before[read];
        let early = own | (others & self.preceding(view, read));
        self.queue.extend(bits(early).map(|other| (view, other, write)));
        let late = others & self.after(view, write);
        self.queue.extend(bits(late).map(|other| (view, read, other)));
        if self.rules.is_sober {
            let foreign = others & self.preceding(view, write) & !self.thread_of(read);
            self.queue.extend(bits(foreign).map(|other| (view, other, read)));
        }
        self.propagate()
    }

    /// Adds the queued pairs and their consequences; returns whether there is no cycle.
    fn propagate(&mut self) -> bool {
        while let Some((view, first, second)) = self.queue.pop() {
            if self.after(view, first) & (1 << second) != 0 {
                continue;
            }
            if first == second || self.after(view, second) & (1 << first) != 0 {
                self.queue.clear();
                return false;
            }
            let from = self.preceding(view, first) | (1 << first);
            let to = self.after(view, second) | (1 << second);
            for earlier in bits(from) {
                let place = self.base + view * self.size + earlier;
                let new = to & !self.frames[place];
                if new != 0 {
                    self.frames[place] |= new;
                    self.consequences(view, earlier, new);
                }
            }
            for later in bits(to) {
                let place = self.base + (self.views + view) * self.size + later;
                self.frames[place] |= from;
            }
        }
        true
    }

    /// Queues the consequences of `first` coming before all of `new` in a view.
    fn consequences(&mut self, view: usize, first: usize, new: u64) {
        if self.writes & (1 << first) != 0 {
            let overwriting = new & self.same[first] & self.writes;
            for later in bits(overwriting) {
                if self.views > 1 {
                    self.everywhere(view, first, later);
                }
                // The readers of the first write come before the write that overwrites it.
                for reader in bits(self.readers(first) & !(1 << later)) {
                    self.queue.push((self.view_of[reader], reader, later));
                }
                if self.rules.is_sober {
                    let foreign = self.readers(later) & !self.thread_of(first);
                    self.queue.extend(bits(foreign).map(|reader| (view, first, reader)));
                }
            }
            // A write before a read of another write is before that other write.
            for read in bits(new & self.same[first] & self.reads) {
                let source = self.source(read);
                if self.view_of[read] == view && source >= 2 && source as usize - 2 != first {
                    self.queue.push((view, first, source as usize - 2));
                }
            }
        }
        if self.views == 1 {
            return;
        }
        let agreed = match self.rules.fences {
            FenceAgreement::Local => 0,
            FenceAgreement::Fences if self.fences & (1 << first) != 0 => new & self.fences,
            FenceAgreement::Fences => 0,
            FenceAgreement::Everything if self.fences & (1 << first) != 0 => new,
            FenceAgreement::Everything => new & self.fences,
        };
        for later in bits(agreed) {
            self.everywhere(view, first, later);
        }
        if self.rules.causality == Causality::Free {
            return;
        }
        let is_causal = |read: usize, write: usize| {
            self.rules.causality == Causality::Full || self.same[read] & (1 << write) != 0
        };
        if self.reads & (1 << first) != 0 {
            for write in bits(new & self.writes) {
                if self.view_of[write] == view && is_causal(first, write) {
                    let others = (0..self.views).filter(|&other| other != view);
                    self.queue.extend(others.map(|other| (other, first, write)));
                }
            }
        }
        if self.writes & (1 << first) != 0 && self.view_of[first] != view {
            let owner = self.view_of[first];
            let seen = bits(new & self.reads).filter(|&read| is_causal(read, first));
            self.queue.extend(seen.map(|read| (owner, first, read)));
        }
    }

    fn everywhere(&mut self, view: usize, first: usize, second: usize) {
        let others = (0..self.views).filter(|&other| other != view);
        self.queue.extend(others.map(|other| (other, first, second)));
    }

    /// Returns an order of each view that extends the decisions.
    fn linearize(&self) -> Vec<Vec<usize>> {
        let order = |view: usize| {
            let mut events: Vec<usize> = bits(self.ordered).collect();
            events.sort_by_key(|&at| self.preceding(view, at).count_ones());
            events
        };
        (0..self.views).map(order).collect()
    }

    fn push(&mut self) {
        let end = self.frames.len();
        self.frames.extend_from_within(self.base..end);
        self.base = end;
    }

    fn pop(&mut self) {
        self.frames.truncate(self.base);
        self.base -= self.size * (2 * self.views + 2);
    }

    fn after(&self, view: usize, event: usize) -> u64 {
        self.frames[self.base + view * self.size + event]
    }

    fn preceding(&self, view: usize, event: usize) -> u64 {
        self.frames[self.base + (self.views + view) * self.size + event]
    }

    fn related(&self, view: usize, event: usize) -> u64 {
        self.after(view, event) | self.preceding(view, event)
    }

    fn readers(&self, write: usize) -> u64 {
        self.frames[self.base + 2 * self.views * self.size + write]
    }

    fn source(&self, read: usize) -> u64 {
        self.frames[self.base + (2 * self.views + 1) * self.size + read]
    }

    fn source_mut(&mut self, read: usize) -> &mut u64 {
        &mut self.frames[self.base + (2 * self.views + 1) * self.size + read]
    }

    fn thread_of(&self, event: usize) -> u64 {
        let range = &self.skeleton.threads[self.skeleton.events[event].thread];
        range.clone().fold(0, |set, at| set | (1 << at))
    }
}

/// Returns the value that each event writes, if all values are constants and there are no demands.
fn constants(skeleton: &Skeleton) -> Option<Vec<Value>> {
    if !skeleton.is_undemanding() || !skeleton.finals_are_plain() {
        return None;
    }
    let value = |at: usize| match skeleton.events[at].value {
        Some(value) => match skeleton.node(value) {
            Node::Constant(value) => Some(*value),
            _ => None,
        },
        None => Some(0),
    };
    (0..skeleton.events.len()).map(value).collect()
}

/// Computes an outcome if all values are constants.
fn constants_outcome(search: &SaturationSearch<'_>, constants: &[Value]) -> Box<[Value]> {
    let skeleton = search.skeleton;
    let of_source = |source: Source, location: Option<LocationId>| match source {
        Source::Initial => location.map_or(0, |location| skeleton.initial(location)),
        Source::Event(write) => constants[write],
    };
    let value = |(observable, last): (&Observable, Option<&Node>)| match (observable, last) {
        (_, Some(Node::Constant(value))) => *value,
        (_, Some(Node::Read(read))) => match search.source(*read) {
            0 | 1 => of_source(Source::Initial, skeleton.events[*read].location),
            event => constants[event as usize - 2],
        },
        (Observable::Location(location), _) => of_source(search.last(*location), Some(*location)),
        _ => unreachable!("what an observed register holds is a constant or was read"),
    };
    search.program.observed.iter().zip(skeleton.finals()).map(value).collect()
}

/// Closes a relation whose edges lead to later events only.
fn closed(mut after: Vec<u64>) -> Vec<u64> {
    for at in (0..after.len()).rev() {
        let direct = after[at];
        after[at] = bits(direct).fold(direct, |set, next| set | after[next]);
    }
    after
}
