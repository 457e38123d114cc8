//! Confirms that operations cannot be linearized, breadth first.
//!
//! Return by return, all configurations are kept that explain what returned so far: the state, and
//! which operations are linearized though they have not returned. If none is left, there is no
//! linearization. What keeps the sets small:
//!
//! 1. An operation that only reads is linearized as soon as it returns what it did.
//! 2. A pending operation is linearized only where it changes the state.
//! 3. A configuration gives way to one that differs from it only in having used fewer pending
//!    operations.
//! 4. Of open operations with the same call and return, the one that returns first is linearized
//!    first.
//! 5. Only those operations are tried that may matter to the returning one, or to another one that
//!    is tried (a stubborn set). Whatever else comes first on a way past the return can come after
//!    them just as well.
//! 6. A configuration is dropped if a read can no longer return what it did, whichever operations
//!    come before it. This is asked for reads that are open and for some that return next.
//!
//! Rules 2 to 4 hold for every object. Rules 5 and 6 are used for ready objects only, with the
//! checker's own knowledge of them ([`Ready`]).
//!
//! Rule 1 needs to know that an operation *never* changes the state where it returns what it did.
//! Specifications declare this, and nobody has to believe them: take a linearization, and the first
//! declared reader `r` in it that changes the state. Up to there all readers in it change nothing,
//! so the search comes through the same states, with some readers linearized sooner; in particular
//! it comes to the state before `r`. All operations on the way there were called before `r`
//! returned, so the search is there before the last of these has returned. Hence a declared reader
//! is tried in all states that are met between its call and that return, or to the end if one of
//! these operations is pending. If it changes one of them, it counts as no reader, and the search
//! begins again. With rule 5 the search need not come to that state, so a ready object's reader is
//! checked only in the states in which it is linearized.
//!
//! An operation has a slot from its call to its return, so that sets of operations are as small as
//! the number that runs at a time; pending ones keep theirs.

use std::collections::HashSet;

use consistory_spec::State;
use consistory_verdict::{BYTES_PER_ALLOCATION, Budget, Bytes, Stopped};
use rustc_hash::FxHashMap;

use super::ObjectRejection;
use super::knowledge::{Called, Ends, Ready};
use super::sets::SmallSet;
use super::transitions::{INITIAL, Transitions};
use super::view::{Considered, View};

/// Checks whether some operations, and pending ones if that helps, can be linearized.
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

/// The most operations that may run at a time.
const MAX_RUNNING_CALLS: usize = 256 * 64;

/// How a search ends.
enum BreadthOutcome {
    Linearizable,
    NotLinearizable,
    /// An operation that is said to read changed a state.
    WrongReader {
        event: usize,
    },
}

/// The operations that are linearized and have not returned, by slot: those that will, and pending
/// ones.
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

/// The configurations at a return: by state and the linearized operations that will return, the
/// sets of pending operations that were used. An empty list stands for the empty set.
type Frontier<const W: usize> = FxHashMap<(u32, SmallSet<W>), Vec<SmallSet<W>>>;

/// An operation that is open at a return.
struct Open<'a> {
    event: usize,
    slot: usize,
    is_pending: bool,
    is_reader: bool,
    /// The slots of open operations that happened before it.
    after: Vec<usize>,
    /// The slots of open operations that are like it and return earlier.
    twins: Vec<usize>,
    called: Called<'a>,
}

impl Open<'_> {
    /// Checks whether it is not linearized, and everything that happened before it is.
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
    /// For each operation its position among the returns or, if it is pending, among the calls.
    rank: Vec<usize>,
    /// Whether the sessions' order says more than time does.
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

    /// Computes how many operations run at a time, at most.
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

/// A declared reader that is tried in every state that is met.
struct Watched {
    event: usize,
    /// The rank of the return up to which it is tried; `usize::MAX` if to the end.
    until: usize,
}

struct BreadthSearch<'a, 'v, const W: usize> {
    view: &'a View<'v>,
    sequence: &'a EventSequence,
    is_reader: &'a [bool],
    transitions: Transitions,
    slots: Slots,
    /// The operations that were called and have not returned; without times all of them.
    running: Vec<usize>,
    /// Number of operations that were called.
    called: usize,
    /// Readers of an object that the checker does not know, by kind.
    watched: FxHashMap<u32, Watched>,
    /// The ends of the collection, by state.
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

    /// Takes the calls that come before a return, and finds out which readers are to be watched.
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
        // Everything that was called before the reader returns may come before it.
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

    /// Linearizes operations until the returning one is linearized, in every way.
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

    /// Checks in a state that the watched readers do not change it.
    fn watch(&mut self, state: u32) -> Result<(), WrongReader> {
        for watched in self.watched.values() {
            let after = self.transitions.perform(self.view, state, watched.event);
            if after.is_some_and(|after| after != state) {
                return Err(WrongReader(watched.event));
            }
        }
        Ok(())
    }

    /// Linearizes the readers whose return value matches.
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
            // Of operations that run at a time only a session's order puts one before another.
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

    /// Computes the set of the returning operation and, again and again, of those that may matter
    /// to one in the set if they come before it; `None` if that may be all of them.
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

    /// Lists the open reads and some others of those that return next, if the checker can tell that
    /// a read has become impossible.
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

/// An operation that is declared to read, and changed a state.
struct WrongReader(usize);

/// Adds a configuration, unless one that used fewer pending operations is there.
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

/// Estimates the bytes that a table of configurations takes.
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

/// The slots of operations that run.
struct Slots {
    /// For each operation that runs its slot.
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
    /// Its slot, if it was called.
    slot: Option<usize>,
    called: Called<'a>,
    /// With their slots.
    before: Vec<(Option<usize>, Called<'a>)>,
}

/// Number of reads that are examined before they are open.
const READS_AHEAD: usize = 8;
/// Among how many that return next these reads are.
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
