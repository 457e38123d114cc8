//! Confirms that operations cannot be linearized, by a breadth-first search.
//!
//! The search proceeds from return to return. At each return it keeps all configurations that
//! explain the returns so far: a state, and the operations that are linearized but have not
//! returned. If no configuration is left, there is no linearization. The following rules keep the
//! sets small:
//!
//! 1. An operation that only reads is linearized as soon as it can return its recorded value.
//! 2. A pending operation is linearized only where it changes the state.
//! 3. A configuration is dropped if another one differs from it only in having used fewer pending
//!    operations.
//! 4. Among open operations with the same call and return, the one that returns first is linearized
//!    first.
//! 5. An operation is tried only if it may matter to the returning one, or to another one that is
//!    tried (a stubborn set). Any other operation that a path has before the return can just as well
//!    come after the tried ones.
//! 6. A configuration is dropped if a read can no longer return its recorded value, whichever
//!    operations come before it. This is checked for open reads and for some reads that return next.
//!
//! Rules 2 to 4 hold for every object. Rules 5 and 6 are used for ready objects only, with the
//! checker's own knowledge of them ([`Ready`]).
//!
//! Rule 1 requires that an operation *never* changes the state where it returns its recorded value.
//! Specifications declare this, but the checker does not rely on the declaration. Consider a
//! linearization, and in it the first declared reader `r` that changes the state. All declared
//! readers before `r` change nothing, so the search passes through the same states, with some
//! readers linearized earlier; in particular it reaches the state before `r`. All operations before
//! `r` in the linearization were called before `r` returned, so the search reaches this state
//! before the last of them has returned. Hence a declared reader is tried in all states that the
//! search meets between the reader's call and that return, or to the end if one of these operations
//! is pending. If the reader changes one of these states, it no longer counts as a reader, and the
//! search restarts. With rule 5 the search need not reach the state before `r`, so a ready object's
//! reader is checked only in the states in which it is linearized.
//!
//! An operation has a slot from its call to its return, so a set has as many elements as operations
//! run at the same time; pending operations keep their slots.

use std::collections::HashSet;

use consistory_spec::State;
use consistory_verdict::{BYTES_PER_ALLOCATION, Budget, Bytes, Stopped};
use rustc_hash::FxHashMap;

use super::ObjectRejection;
use super::knowledge::{Called, Ends, Ready};
use super::sets::SmallSet;
use super::transitions::{INITIAL, Transitions};
use super::view::{Considered, View};

/// Checks whether the given operations can be linearized, together with any pending ones.
pub(crate) fn is_linearizable(
    view: &View<'_>,
    relevant: &[usize],
    budget: &Budget,
) -> Result<bool, ObjectRejection> {
    let sequence = EventSequence::new(view, relevant);
    let mut is_reader = view.declared_readers(Considered::Return);
    loop {
        let outcome = match sequence.most_running(view) {
            0..=64 => BreadthSearch::<1>::new(view, &sequence, &is_reader, relevant).run(budget),
            65..=256 => BreadthSearch::<4>::new(view, &sequence, &is_reader, relevant).run(budget),
            257..=2048 => {
                BreadthSearch::<32>::new(view, &sequence, &is_reader, relevant).run(budget)
            }
            2049..=MAX_RUNNING_CALLS => {
                BreadthSearch::<256>::new(view, &sequence, &is_reader, relevant).run(budget)
            }
            operations => Err(Stopped::Size { operations, limit: MAX_RUNNING_CALLS }.into()),
        };
        match outcome? {
            BreadthOutcome::Linearizable => return Ok(true),
            BreadthOutcome::NotLinearizable => return Ok(false),
            BreadthOutcome::WrongReader { event } => {
                let call = |i: usize| (&view.events[i].method, &view.events[i].args);
                for &other in relevant.iter().filter(|&&other| call(other) == call(event)) {
                    is_reader[other] = false;
                }
            }
        }
    }
}

/// Largest number of operations that may run at the same time.
const MAX_RUNNING_CALLS: usize = 256 * 64;

/// Outcome of a search.
enum BreadthOutcome {
    Linearizable,
    NotLinearizable,
    /// An operation that is declared to read changed a state.
    WrongReader {
        event: usize,
    },
}

/// Slots of the operations that are linearized but have not returned: those that will return, and
/// pending ones.
#[derive(Clone, Copy)]
struct Ahead<const W: usize> {
    returning: SmallSet<W>,
    pending: SmallSet<W>,
}

impl<const W: usize> Ahead<W> {
    fn contains(&self, slot: usize) -> bool {
        self.returning.contains(slot) || self.pending.contains(slot)
    }
}

/// Configurations at a return: for each state and set of linearized operations that will return,
/// the sets of pending operations that were used. An empty list denotes only the empty set.
type Frontier<const W: usize> = FxHashMap<(u32, SmallSet<W>), Vec<SmallSet<W>>>;

/// An operation that is open at a return.
struct Open<'a> {
    event: usize,
    slot: usize,
    is_pending: bool,
    is_reader: bool,
    /// Slots of open operations that happened before it.
    after: Vec<usize>,
    /// Slots of open operations with the same call and return that are ranked before it.
    twins: Vec<usize>,
    called: Called<'a>,
}

impl Open<'_> {
    /// Checks whether the operation is not linearized yet and everything that happened before it
    /// is.
    fn is_next<const W: usize>(&self, ahead: &Ahead<W>) -> bool {
        !ahead.contains(self.slot) && self.is_ready(ahead)
    }

    fn is_ready<const W: usize>(&self, ahead: &Ahead<W>) -> bool {
        self.after.iter().all(|&before| ahead.returning.contains(before))
    }
}

/// The calls and returns of the operations, in order.
struct EventSequence {
    calls: Vec<usize>,
    returns: Vec<usize>,
    /// Position of each operation among the returns or, if it is pending, among the calls.
    rank: Vec<usize>,
    /// Whether the session order adds constraints to those of time.
    is_bound: bool,
}

impl EventSequence {
    fn new(view: &View<'_>, relevant: &[usize]) -> Self {
        let mut returns: Vec<usize> =
            relevant.iter().copied().filter(|&i| !view.events[i].is_pending).collect();
        returns.sort_by_key(|&i| {
            let event = &view.events[i];
            (event.end, event.start, event.index, event.session)
        });
        let mut calls = relevant.to_vec();
        calls.sort_by_key(|&i| view.events[i].start);
        let mut rank = vec![usize::MAX; view.events.len()];
        for (at, &event) in calls.iter().enumerate().filter(|(_, e)| view.events[**e].is_pending) {
            rank[event] = at;
        }
        for (at, &event) in returns.iter().enumerate() {
            rank[event] = at;
        }
        let mut ends = FxHashMap::default();
        let mut is_bound = false;
        for event in calls.iter().map(|&event| &view.events[event]) {
            let end = ends.entry(event.session).or_insert(None);
            is_bound |= event.start.is_none() || (end.is_some() && *end >= event.start);
            *end = (*end).max(event.end);
        }
        EventSequence { calls, returns, rank, is_bound }
    }

    /// Computes the largest number of operations that run at the same time.
    fn most_running(&self, view: &View<'_>) -> usize {
        let (mut called, mut most) = (0, 0);
        for (returned, &next) in self.returns.iter().enumerate() {
            let later = &self.calls[called..];
            called += later.partition_point(|&i| view.events[i].start <= view.events[next].end);
            most = most.max(called - returned);
        }
        most
    }
}

/// A declared reader that is tried in every state that the search meets.
struct Watched {
    event: usize,
    /// Rank of the last return before which the reader is tried, or `usize::MAX` for all returns.
    until: usize,
}

struct BreadthSearch<'a, 'v, const W: usize> {
    view: &'a View<'v>,
    sequence: &'a EventSequence,
    is_reader: &'a [bool],
    transitions: Transitions,
    slots: Slots,
    /// Operations that were called and have not returned; in a history without times, all
    /// operations.
    running: Vec<usize>,
    /// Number of operations that were called.
    called: usize,
    /// Declared readers of an object that the checker does not know, by kind.
    watched: FxHashMap<u32, Watched>,
    /// Ends of the collection in each state.
    ends: FxHashMap<u32, Ends>,
    configurations_seen: u64,
}

/// Number of configurations between two checks of the budget.
const CONFIGURATIONS_PER_CHECK: u64 = 256;

impl<'a, 'v, const W: usize> BreadthSearch<'a, 'v, W> {
    fn new(
        view: &'a View<'v>,
        sequence: &'a EventSequence,
        is_reader: &'a [bool],
        relevant: &[usize],
    ) -> Self {
        BreadthSearch {
            view,
            sequence,
            is_reader,
            transitions: Transitions::new(view, relevant),
            slots: Slots::new(view, sequence),
            running: Vec::new(),
            called: 0,
            watched: FxHashMap::default(),
            ends: FxHashMap::default(),
            configurations_seen: 0,
        }
    }

    fn run(mut self, budget: &Budget) -> Result<BreadthOutcome, ObjectRejection> {
        let mut frontier: Frontier<W> = Frontier::default();
        frontier.insert((INITIAL, SmallSet::EMPTY), Vec::new());
        for (at, &next) in self.sequence.returns.iter().enumerate() {
            self.call_until(next, at);
            let passed = match self.pass(at, next, frontier, budget)? {
                Ok(passed) => passed,
                Err(WrongReader(event)) => return Ok(BreadthOutcome::WrongReader { event }),
            };
            if passed.is_empty() {
                return Ok(BreadthOutcome::NotLinearizable);
            }
            let next_slot = self.slots.of[next];
            self.running.retain(|&event| event != next);
            self.slots.free.push(next_slot);
            self.slots.of[next] = usize::MAX;
            let states = passed.keys().map(|&(state, _)| state);
            frontier = match self.transitions.drop_all_but(self.view, states) {
                None => passed,
                Some(left) => {
                    self.ends.clear();
                    let number = |old: u32| left.partition_point(|&other| other < old) as u32;
                    let renumber = |((old, set), used)| ((number(old), set), used);
                    passed.into_iter().map(renumber).collect()
                }
            };
        }
        Ok(BreadthOutcome::Linearizable)
    }

    /// Adds the operations that are called before a return, and determines which readers to watch.
    fn call_until(&mut self, next: usize, at: usize) {
        let calls = &self.sequence.calls;
        let end = self.view.events[next].end;
        let first = self.called;
        while self.called < calls.len() && self.view.events[calls[self.called]].start <= end {
            self.running.push(calls[self.called]);
            self.slots.take(calls[self.called]);
            self.called += 1;
        }
        if self.view.ready.is_some() {
            return;
        }
        self.watched.retain(|_, watched| watched.until >= at);
        let is_pending = |&event: &usize| self.view.events[event].is_pending;
        // Every operation that was called before the reader returns may come before it.
        for &event in calls[first..self.called].iter().filter(|&&event| self.is_reader[event]) {
            let end = self.view.events[event].end;
            let later = calls[self.called..]
                .iter()
                .take_while(|&&other| end.is_none() || self.view.events[other].start <= end);
            let mut before = self.running.iter().chain(later);
            let until = match before.clone().any(is_pending) {
                true => usize::MAX,
                false => {
                    before.by_ref().map(|&event| self.sequence.rank[event]).max().unwrap_or(at)
                }
            };
            let kind = self.transitions.kind(event);
            let watched = self.watched.entry(kind).or_insert(Watched { event, until });
            watched.until = watched.until.max(until);
        }
    }

    /// Linearizes operations in every possible way until the returning operation is linearized.
    fn pass(
        &mut self,
        at: usize,
        next: usize,
        frontier: Frontier<W>,
        budget: &Budget,
    ) -> Result<Result<Frontier<W>, WrongReader>, ObjectRejection> {
        let is_open = |&event: &usize| !self.view.happens_before(next, event);
        let open: Vec<usize> = self.running.iter().copied().filter(is_open).collect();
        let reads = self.reads_ahead(&open, at);
        let open = self.list(&open);
        let next_slot = self.slots.of[next];
        let mut passed: Frontier<W> = Frontier::default();
        let mut seen: Frontier<W> = Frontier::default();
        let mut work: Vec<(u32, Ahead<W>)> = Vec::new();
        for ((state, returning), used) in frontier {
            if used.is_empty() {
                work.push((state, Ahead { returning, pending: SmallSet::EMPTY }));
            }
            work.extend(used.into_iter().map(|pending| (state, Ahead { returning, pending })));
        }
        while let Some((state, mut ahead)) = work.pop() {
            self.configurations_seen += 1;
            if self.configurations_seen.is_multiple_of(CONFIGURATIONS_PER_CHECK) {
                budget.check()?;
                let tables = table_bytes(&passed) + table_bytes(&seen);
                let others = work.table_bytes() + self.ends.table_bytes();
                budget.reserve(tables + others + self.transitions.bytes())?;
            }
            if let Err(wrong) =
                self.watch(state).and_then(|()| self.settle(&open, state, &mut ahead))
            {
                return Ok(Err(wrong));
            }
            if ahead.returning.contains(next_slot) {
                ahead.returning.remove(next_slot);
                insert(&mut passed, state, &ahead);
                continue;
            }
            let here = self.transitions.state(state);
            if !reads.iter().all(|read| read.is_possible(self.view, here, &ahead))
                || !insert(&mut seen, state, &ahead)
            {
                continue;
            }
            let tried = self.stubborn_set(state, &open, next_slot, &ahead);
            for one in open.iter().filter(|one| {
                !one.is_reader
                    && tried.is_none_or(|tried| tried.contains(one.slot))
                    && one.is_next(&ahead)
                    && one.twins.iter().all(|&twin| ahead.contains(twin))
            }) {
                let after = self.transitions.perform(self.view, state, one.event);
                let Some(after) = after else { continue };
                if one.is_pending && after == state {
                    continue;
                }
                let mut further = ahead;
                let set =
                    if one.is_pending { &mut further.pending } else { &mut further.returning };
                set.insert(one.slot);
                work.push((after, further));
            }
        }
        Ok(Ok(passed))
    }

    /// Checks that the watched readers do not change a state.
    fn watch(&mut self, state: u32) -> Result<(), WrongReader> {
        for watched in self.watched.values() {
            let after = self.transitions.perform(self.view, state, watched.event);
            if after.is_some_and(|after| after != state) {
                return Err(WrongReader(watched.event));
            }
        }
        Ok(())
    }

    /// Linearizes the readers whose return value matches in a state.
    fn settle(
        &mut self,
        open: &[Open<'_>],
        state: u32,
        ahead: &mut Ahead<W>,
    ) -> Result<(), WrongReader> {
        loop {
            let mut is_done = true;
            for one in open.iter().filter(|one| one.is_reader) {
                if !one.is_next(ahead) {
                    continue;
                }
                match self.transitions.perform(self.view, state, one.event) {
                    None => {}
                    Some(after) if after == state => {
                        ahead.returning.insert(one.slot);
                        is_done = false;
                    }
                    Some(_) => return Err(WrongReader(one.event)),
                }
            }
            if is_done {
                return Ok(());
            }
        }
    }

    fn list(&self, open: &[usize]) -> Vec<Open<'a>> {
        let view = self.view;
        let listed = |&event: &usize| {
            let call = &view.events[event];
            // Among operations that run at the same time, only the session order puts one before
            // another.
            let is_before = |&&other: &&usize| {
                view.events[other].session == call.session && view.happens_before(other, event)
            };
            let is_twin = |&&other: &&usize| {
                !self.sequence.is_bound
                    && self.transitions.kind(other) == self.transitions.kind(event)
                    && view.events[other].is_pending == call.is_pending
                    && self.sequence.rank[other] < self.sequence.rank[event]
            };
            let slot = |&other: &usize| self.slots.of[other];
            Open {
                event,
                slot: self.slots.of[event],
                is_pending: call.is_pending,
                is_reader: !call.is_pending && self.is_reader[event],
                after: open.iter().filter(is_before).map(slot).collect(),
                twins: open.iter().filter(is_twin).map(slot).collect(),
                called: view.called(event),
            }
        };
        open.iter().map(listed).collect()
    }

    /// Computes a stubborn set: the returning operation and, transitively, every operation that may
    /// matter to a member of the set if it comes first. Returns `None` if every operation may
    /// matter.
    fn stubborn_set(
        &mut self,
        state: u32,
        open: &[Open<'_>],
        next_slot: usize,
        ahead: &Ahead<W>,
    ) -> Option<SmallSet<W>> {
        let ready = self.view.ready.as_ref().filter(|ready| ready.has_independent_calls())?;
        let transitions = &self.transitions;
        let ends = self.ends.entry(state);
        let ends = ends.or_insert_with(|| ready.ends(self.view.object, transitions.state(state)));
        let (mut set, mut asked) = (SmallSet::<W>::EMPTY, SmallSet::<W>::EMPTY);
        set.insert(next_slot);
        let is_left = |one: &&Open<'_>| !ahead.contains(one.slot);
        loop {
            let mut left = open.iter().filter(is_left);
            let one = left.find(|one| set.contains(one.slot) && !asked.contains(one.slot));
            let Some(one) = one else { return Some(set) };
            asked.insert(one.slot);
            for other in open.iter().filter(is_left) {
                if !set.contains(other.slot)
                    && (!one.is_ready(ahead) || ready.matters(ends, &one.called, &other.called))
                {
                    set.insert(other.slot);
                }
            }
        }
    }

    /// Lists the open reads and some of the reads that return next, if the checker can tell that a
    /// read has become impossible.
    fn reads_ahead(&self, open: &[usize], at: usize) -> Vec<ReadAhead<'a>> {
        let view = self.view;
        let Some(ready) = view.ready.as_ref().filter(|ready| ready.foresees_reads()) else {
            return Vec::new();
        };
        let (returning, uncalled) =
            (&self.sequence.returns[at..], &self.sequence.calls[self.called..]);
        let slot = |event: usize| Some(self.slots.of[event]).filter(|&slot| slot != usize::MAX);
        let is_open: HashSet<usize> = open.iter().copied().collect();
        let near = &returning[..returning.len().min(RETURNS_AHEAD)];
        let (mut reads, mut others) = (Vec::new(), 0);
        for &event in near.iter().filter(|&&event| self.is_reader[event]) {
            let call = &view.events[event];
            if call.returns.is_none() {
                continue;
            }
            others += usize::from(!is_open.contains(&event));
            if others > READS_AHEAD {
                break;
            }
            let later = uncalled.iter().take_while(|&&other| view.events[other].start <= call.end);
            let is_before =
                |&other: &usize| !view.happens_before(event, other) && !self.is_reader[other];
            let before = self.running.iter().chain(later).copied().filter(is_before);
            let before = before.map(|other| (slot(other), view.called(other))).collect();
            reads.push(ReadAhead { ready, slot: slot(event), called: view.called(event), before });
        }
        reads
    }
}

/// An operation that is declared to read but changed a state.
struct WrongReader(usize);

/// Adds a configuration, unless one that used fewer pending operations is present.
fn insert<const W: usize>(frontier: &mut Frontier<W>, state: u32, ahead: &Ahead<W>) -> bool {
    let mut is_known = true;
    let known = frontier.entry((state, ahead.returning)).or_insert_with(|| {
        is_known = false;
        Vec::new()
    });
    let used = &ahead.pending;
    if is_known && (known.is_empty() || known.iter().any(|fewer| fewer.is_subset(used))) {
        return false;
    }
    known.retain(|more| !used.is_subset(more));
    if *used != SmallSet::EMPTY {
        known.push(*used);
    }
    true
}

/// Estimates the bytes of a table of configurations.
fn table_bytes<const W: usize>(frontier: &Frontier<W>) -> u64 {
    // Lists are empty where nothing is pending; otherwise most hold few sets, with room for four.
    let lists = match frontier.values().next() {
        Some(first) if !first.is_empty() => {
            4 * size_of::<SmallSet<W>>() as u64 + BYTES_PER_ALLOCATION
        }
        _ => 0,
    };
    frontier.table_bytes() + frontier.len() as u64 * lists
}

/// Slots of the running operations.
struct Slots {
    /// Slot of each running operation.
    of: Vec<usize>,
    free: Vec<usize>,
}

impl Slots {
    fn new(view: &View<'_>, sequence: &EventSequence) -> Self {
        let free = (0..sequence.most_running(view)).rev().collect();
        Slots { of: vec![usize::MAX; view.events.len()], free }
    }

    fn take(&mut self, event: usize) {
        self.of[event] = self.free.pop().expect("there are as many as run at a time");
    }
}

/// A read, and the operations that may precede it.
struct ReadAhead<'a> {
    ready: &'a Ready,
    /// Slot of the read, if it was called.
    slot: Option<usize>,
    called: Called<'a>,
    /// Operations that may precede the read, with their slots.
    before: Vec<(Option<usize>, Called<'a>)>,
}

/// Largest number of reads that are examined before they are open.
const READS_AHEAD: usize = 8;
/// Number of next returns among which these reads are searched.
const RETURNS_AHEAD: usize = 64;

impl ReadAhead<'_> {
    /// Checks whether the read is linearized or still can be.
    fn is_possible<const W: usize>(
        &self,
        view: &View<'_>,
        state: &State,
        ahead: &Ahead<W>,
    ) -> bool {
        let is_done = |slot: Option<usize>| slot.is_some_and(|slot| ahead.contains(slot));
        is_done(self.slot) || {
            let left = self.before.iter().filter(|(slot, _)| !is_done(*slot));
            let by: Vec<Called<'_>> = left.map(|&(_, call)| call).collect();
            self.ready.can_return(view.object, state, &self.called, &by)
        }
    }
}
