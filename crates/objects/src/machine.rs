//! The specification as a transition table that is filled on demand.
//!
//! States and returns are interned, and the effect of an invocation in a state is computed once by
//! the specification: from then on a step is one lookup, for any object. A call that changes
//! nothing runs on the state itself, any other call on a copy, so nothing has to be undone. All
//! copies are made in the same place, and only a new state is copied once more, without spare
//! capacity.
//!
//! Threads of one search have one machine each and share the numbering of states
//! ([`SharedStates`]).

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash};
use std::sync::Mutex;

use consistory_history::Value;
use consistory_spec::{State, value_footprint};
use consistory_verdict::{BYTES_PER_ALLOCATION, Bytes};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::calls::CallIndex;
use crate::task::Task;

/// A state, interned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct StateId(pub(crate) u32);

/// A return, interned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ReturnId(u32);

/// The known effects of a task's invocations.
pub(crate) struct TransitionTable<'t, 'h, S = Interned<State>> {
    task: &'t Task<'h>,
    states: S,
    initial: StateId,
    /// Buffer into which a state is copied to be changed.
    scratch: State,
    values: Interned<Cow<'t, Value>>,
    /// Expected return of each operation.
    wanted: Vec<Option<ReturnId>>,
    steps: StepTable,
    /// Bytes of the states and returns that were first interned here.
    content_bytes: u64,
}

impl<'t, 'h> TransitionTable<'t, 'h> {
    /// Builds a machine with states of its own.
    pub(crate) fn new(task: &'t Task<'h>) -> Self {
        TransitionTable::with_states(task, Interned::default())
    }
}

impl<'t, 'h, S: States> TransitionTable<'t, 'h, S> {
    /// Builds a machine with a given numbering of states.
    pub(crate) fn with_states(task: &'t Task<'h>, mut states: S) -> Self {
        let scratch = task.object().initial();
        let initial = states.number(&scratch);
        let mut values = Interned::default();
        let mut wanted = |value| ReturnId(values.intern(Cow::Borrowed(value)));
        let wanted = task.calls().places().map(|p| task.returns(p).map(&mut wanted)).collect();
        let steps = StepTable::new(task.invocation_count());
        let content_bytes = task.object().footprint(&scratch) as u64;
        TransitionTable { task, states, initial, scratch, values, wanted, steps, content_bytes }
    }

    /// Returns the state before the first call.
    pub(crate) fn initial(&self) -> StateId {
        self.initial
    }

    /// Performs an operation's invocation, with any return.
    #[inline]
    pub(crate) fn step(&mut self, state: StateId, place: CallIndex) -> Option<(StateId, ReturnId)> {
        let invocation = self.task.invocation_of(place);
        if let Some(known) = self.steps.get(state, invocation) {
            return known;
        }
        let step = self.ask(state, place);
        self.steps.insert(state, invocation, step);
        step
    }

    fn ask(&mut self, state: StateId, place: CallIndex) -> Option<(StateId, ReturnId)> {
        let (object, call) = (self.task.object(), self.task.invocation(place));
        let (next, returned) = if self.task.is_read_only(place) {
            let ask = |state: &mut State| object.invoke(state, &call.method, &call.args);
            (state, self.states.ask(state, ask)?)
        } else {
            let scratch = &mut self.scratch;
            self.states.look(state, |state| scratch.clone_from(state));
            let returned = object.invoke(scratch, &call.method, &call.args)?;
            let known = self.states.len();
            let next = self.states.number(scratch);
            if self.states.len() > known {
                let bytes = self.states.look(next, |state| object.footprint(state));
                self.content_bytes += bytes as u64 + BYTES_PER_ALLOCATION;
            }
            (next, returned)
        };
        let (known, bytes) = (self.values.items.len(), value_footprint(&returned));
        let returned = ReturnId(self.values.intern(Cow::Owned(returned)));
        if self.values.items.len() > known {
            self.content_bytes += bytes as u64;
        }
        Some((next, returned))
    }

    /// Performs an operation, if it can return its recorded value.
    #[inline]
    pub(crate) fn perform(&mut self, state: StateId, place: CallIndex) -> Option<StateId> {
        let (next, returned) = self.step(state, place)?;
        match self.wanted[place.index()] {
            Some(wanted) if wanted != returned => None,
            _ => Some(next),
        }
    }

    /// Calls a function with a state.
    pub(crate) fn look<R>(&self, id: StateId, look: impl FnOnce(&State) -> R) -> R {
        self.states.look(id, look)
    }

    /// Returns a return value.
    pub(crate) fn get(&self, id: ReturnId) -> &Value {
        &self.values.items[id.0 as usize]
    }

    /// Estimates the memory that the tables take, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let tables = self.states.table_bytes() + self.values.table_bytes();
        tables + self.content_bytes + self.steps.memory()
    }
}

/// The known effects of invocations in states.
///
/// If there are few invocations, the effects in one state are stored in one row.
struct StepTable {
    /// Number of entries per row of `near`; 0 if all effects are in `far`.
    width: usize,
    near: Vec<Cell>,
    far: FxHashMap<(u32, u32), Cell>,
}

/// State and return after an invocation, or one of the constants below.
type Cell = (u32, u32);

const UNKNOWN: Cell = (u32::MAX, u32::MAX);
const IMPOSSIBLE: Cell = (u32::MAX, 0);
/// Largest number of invocations for which effects are stored in rows.
const MAX_INVOCATIONS_PER_ROW: usize = 16;

impl StepTable {
    fn new(invocations: usize) -> Self {
        let width = if invocations <= MAX_INVOCATIONS_PER_ROW { invocations } else { 0 };
        StepTable { width, near: Vec::new(), far: FxHashMap::default() }
    }

    #[inline]
    fn get(&self, state: StateId, invocation: u32) -> Option<Option<(StateId, ReturnId)>> {
        let known = match self.width {
            0 => self.far.get(&(state.0, invocation)),
            width => self.near.get(state.0 as usize * width + invocation as usize),
        };
        match *known? {
            UNKNOWN => None,
            IMPOSSIBLE => Some(None),
            (next, returned) => Some(Some((StateId(next), ReturnId(returned)))),
        }
    }

    fn insert(&mut self, state: StateId, invocation: u32, step: Option<(StateId, ReturnId)>) {
        let cell = step.map_or(IMPOSSIBLE, |(next, returned)| (next.0, returned.0));
        if self.width == 0 {
            self.far.insert((state.0, invocation), cell);
            return;
        }
        let from = state.0 as usize * self.width;
        if self.near.len() < from + self.width {
            self.near.resize(from + self.width, UNKNOWN);
        }
        self.near[from + invocation as usize] = cell;
    }

    /// Estimates the memory of the tables in bytes.
    fn memory(&self) -> u64 {
        self.near.table_bytes() + self.far.table_bytes()
    }
}

/// A table of distinct states, numbered in the order of insertion.
pub(crate) trait States {
    /// Returns a state's number.
    fn number(&mut self, state: &State) -> StateId;

    /// Calls a function with a state.
    fn look<R>(&self, id: StateId, look: impl FnOnce(&State) -> R) -> R;

    /// Passes a state to a call that does not change it.
    fn ask<R>(&mut self, id: StateId, ask: impl FnOnce(&mut State) -> R) -> R;

    /// Returns the number of states that were first numbered through this table.
    fn len(&self) -> usize;

    /// Estimates the memory of the tables for these states in bytes, without the states.
    fn table_bytes(&self) -> u64;
}

impl States for Interned<State> {
    fn number(&mut self, state: &State) -> StateId {
        StateId(self.intern_hashed(FxBuildHasher.hash_one(state), Cow::Borrowed(state)))
    }

    fn look<R>(&self, id: StateId, look: impl FnOnce(&State) -> R) -> R {
        look(&self.items[id.0 as usize])
    }

    fn ask<R>(&mut self, id: StateId, ask: impl FnOnce(&mut State) -> R) -> R {
        ask(&mut self.items[id.0 as usize])
    }

    fn len(&self) -> usize {
        self.items.len()
    }

    fn table_bytes(&self) -> u64 {
        Interned::table_bytes(self)
    }
}

/// Number of locks of a shared table, one per shard.
pub(crate) const SHARDS: usize = 64;

/// Returns the shard for a hash.
pub(crate) fn shard_of(hash: u64) -> usize {
    // The hash table of a shard uses the lowest and highest bits.
    (hash >> 32) as usize % SHARDS
}

/// States that several machines number together.
pub(crate) struct StateTable(Vec<Mutex<Interned<State>>>);

impl StateTable {
    pub(crate) fn new() -> Self {
        StateTable((0..SHARDS).map(|_| Mutex::default()).collect())
    }

    /// Frees the states; if there are many, on a thread of its own, so that the caller does not
    /// wait.
    pub(crate) fn discard(self) {
        let count = |part: &Mutex<Interned<State>>| part.lock().map_or(0, |part| part.items.len());
        if self.0.iter().map(count).sum::<usize>() > STATES_FREED_ASIDE {
            // If no thread can be started, they are freed here.
            let _ = std::thread::Builder::new().spawn(move || drop(self));
        }
    }
}

/// Number of states above which freeing them is done on another thread.
const STATES_FREED_ASIDE: usize = 1 << 16;

/// One machine's access to shared states.
pub(crate) struct SharedStates<'a> {
    table: &'a StateTable,
    fresh: usize,
}

impl<'a> SharedStates<'a> {
    pub(crate) fn new(table: &'a StateTable) -> Self {
        SharedStates { table, fresh: 0 }
    }
}

impl States for SharedStates<'_> {
    fn number(&mut self, state: &State) -> StateId {
        let hash = FxBuildHasher.hash_one(state);
        let shard = shard_of(hash);
        let mut states = self.table.0[shard].lock().expect("no worker panics");
        let before = states.items.len();
        let index = states.intern_hashed(hash, Cow::Borrowed(state));
        self.fresh += states.items.len() - before;
        StateId(index * SHARDS as u32 + shard as u32)
    }

    fn look<R>(&self, id: StateId, look: impl FnOnce(&State) -> R) -> R {
        let (shard, index) = (id.0 as usize % SHARDS, id.0 as usize / SHARDS);
        let states = self.table.0[shard].lock().expect("no worker panics");
        look(&states.items[index])
    }

    fn ask<R>(&mut self, id: StateId, ask: impl FnOnce(&mut State) -> R) -> R {
        let (shard, index) = (id.0 as usize % SHARDS, id.0 as usize / SHARDS);
        let mut states = self.table.0[shard].lock().expect("no worker panics");
        ask(&mut states.items[index])
    }

    fn len(&self) -> usize {
        self.fresh
    }

    fn table_bytes(&self) -> u64 {
        // The shards grow one after the other.
        (2 * self.fresh * BYTES_PER_ITEM) as u64
    }
}

/// Memory of the tables of [`Interned`] per state, in bytes.
const BYTES_PER_ITEM: usize = size_of::<State>() + size_of::<(u64, u32)>() + 1 + size_of::<u32>();

/// A table of distinct items, numbered in the order of insertion.
pub(crate) struct Interned<T> {
    items: Vec<T>,
    /// Last item of each hash; each item points to the previous one of the same hash.
    last: FxHashMap<u64, u32>,
    before: Vec<u32>,
}

impl<T> Interned<T> {
    /// Returns an item by its number.
    pub(crate) fn get(&self, number: u32) -> &T {
        &self.items[number as usize]
    }

    /// Counts the items.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Estimates the memory of the tables in bytes, without memory that the items own.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.items.table_bytes() + self.last.table_bytes() + self.before.table_bytes()
    }
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Interned { items: Vec::new(), last: FxHashMap::default(), before: Vec::new() }
    }
}

/// The item before the first.
const NONE: u32 = u32::MAX;

impl<T: Hash + Eq + Clone> Interned<T> {
    pub(crate) fn intern(&mut self, item: T) -> u32 {
        self.intern_hashed(FxBuildHasher.hash_one(&item), Cow::Owned(item))
    }

    /// Numbers an item; copies it if it is new and not owned.
    fn intern_hashed(&mut self, hash: u64, item: Cow<'_, T>) -> u32 {
        let fresh = self.items.len() as u32;
        let last = self.last.entry(hash).or_insert(NONE);
        let mut known = *last;
        while known != NONE {
            if self.items[known as usize] == *item {
                return known;
            }
            known = self.before[known as usize];
        }
        self.before.push(std::mem::replace(last, fresh));
        self.items.push(item.into_owned());
        fresh
    }
}
