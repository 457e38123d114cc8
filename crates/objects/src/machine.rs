//! The specification as a transition table that grows as it is asked.
//!
//! States and returns are interned, and what an invocation does in a state is asked of the
//! specification once: from then on a step is one lookup, whatever the object. A call that changes
//! nothing is asked in the state itself, and only others in a copy of it; there is nothing to undo.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash};

use consistory_history::Value;
use consistory_spec::State;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::calls::Place;
use crate::task::Task;

/// A state, interned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct StateId(pub(crate) u32);

/// A return, interned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ReturnId(u32);

/// What a specification does to a task's invocations, as far as it was asked.
pub(crate) struct Machine<'t, 'h> {
    task: &'t Task<'h>,
    states: Interned<State>,
    values: Interned<Cow<'t, Value>>,
    /// For each operation what it has to return.
    wanted: Vec<Option<ReturnId>>,
    steps: FxHashMap<(u32, u32), Option<(StateId, ReturnId)>>,
}

impl<'t, 'h> Machine<'t, 'h> {
    pub(crate) fn new(task: &'t Task<'h>) -> Self {
        let mut states = Interned::default();
        states.intern(task.object().initial());
        let mut values = Interned::default();
        let mut wanted = |value| ReturnId(values.intern(Cow::Borrowed(value)));
        let wanted = task.calls().places().map(|p| task.returns(p).map(&mut wanted)).collect();
        Machine { task, states, values, wanted, steps: FxHashMap::default() }
    }

    pub(crate) const INITIAL: StateId = StateId(0);

    /// Performs an operation's invocation, whatever it returns.
    #[inline]
    pub(crate) fn step(&mut self, state: StateId, place: Place) -> Option<(StateId, ReturnId)> {
        let invocation = self.task.invocation_of(place);
        if let Some(&known) = self.steps.get(&(state.0, invocation)) {
            return known;
        }
        let step = self.ask(state, place);
        self.steps.insert((state.0, invocation), step);
        step
    }

    fn ask(&mut self, state: StateId, place: Place) -> Option<(StateId, ReturnId)> {
        let (object, call) = (self.task.object(), self.task.invocation(place));
        let before = &mut self.states.items[state.0 as usize];
        let (next, returned) = if self.task.is_read_only(place) {
            (state, object.invoke(before, &call.method, &call.args)?)
        } else {
            let mut next = before.clone();
            let returned = object.invoke(&mut next, &call.method, &call.args)?;
            (StateId(self.states.intern(next)), returned)
        };
        Some((next, ReturnId(self.values.intern(Cow::Owned(returned)))))
    }

    /// Performs an operation, if it can return there what it did return.
    #[inline]
    pub(crate) fn perform(&mut self, state: StateId, place: Place) -> Option<StateId> {
        let (next, returned) = self.step(state, place)?;
        match self.wanted[place.index()] {
            Some(wanted) if wanted != returned => None,
            _ => Some(next),
        }
    }

    /// Gives a state.
    pub(crate) fn state_of(&self, id: StateId) -> &State {
        &self.states.items[id.0 as usize]
    }

    /// Gives a return.
    pub(crate) fn get(&self, id: ReturnId) -> &Value {
        &self.values.items[id.0 as usize]
    }

    /// Estimates the memory that the tables take, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        (self.states.items.len() * 256 + self.values.items.len() * 64 + self.steps.len() * 32)
            as u64
    }
}

/// Things, each held once and numbered.
struct Interned<T> {
    items: Vec<T>,
    /// The last item of each hash, and for each item the one before it of the same hash.
    last: FxHashMap<u64, u32>,
    before: Vec<u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Interned { items: Vec::new(), last: FxHashMap::default(), before: Vec::new() }
    }
}

/// The item before the first.
const NONE: u32 = u32::MAX;

impl<T: Hash + Eq> Interned<T> {
    fn intern(&mut self, item: T) -> u32 {
        let fresh = self.items.len() as u32;
        let last = self.last.entry(FxBuildHasher.hash_one(&item)).or_insert(NONE);
        let mut known = *last;
        while known != NONE {
            if self.items[known as usize] == item {
                return known;
            }
            known = self.before[known as usize];
        }
        self.before.push(std::mem::replace(last, fresh));
        self.items.push(item);
        fresh
    }
}
