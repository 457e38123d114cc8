//! The object's transitions, each requested from the specification once.
//!
//! States are numbered, and so are kinds of operations; operations with the same call and return
//! are of one kind. States that are no longer referenced are dropped from time to time.

use std::rc::Rc;

use consistory_history::Value;
use consistory_spec::State;
use consistory_verdict::{BYTES_PER_ALLOCATION, Bytes};
use rustc_hash::{FxHashMap, FxHashSet};

use super::view::View;

/// Results of operations in states, as far as they have been computed.
pub(crate) struct Transitions {
    states: Vec<Rc<State>>,
    numbers: FxHashMap<Rc<State>, u32>,
    /// Kind of each operation, which operations with the same call and return share.
    kinds: Vec<u32>,
    known: FxHashMap<(u32, u32), Option<u32>>,
    /// Buffer for the state in which an operation is tried.
    scratch: State,
    /// Bytes that the states take.
    state_bytes: usize,
}

/// Number of states up to which none is dropped.
const STATES_KEPT: usize = 1 << 16;

/// The initial state.
pub(crate) const INITIAL: u32 = 0;

/// Bytes of a counted state on the heap, in addition to its content.
const BYTES_PER_STATE: usize = 16 + size_of::<State>() + 2 * BYTES_PER_ALLOCATION as usize;

impl Transitions {
    pub(crate) fn new(view: &View<'_>, relevant: &[usize]) -> Self {
        let mut known: FxHashMap<(&str, &[Value], Option<&Value>), u32> = FxHashMap::default();
        let mut kinds = vec![0; view.events.len()];
        for &event in relevant {
            let call = &view.events[event];
            let fresh = known.len() as u32;
            let key = (&*call.method, &*call.args, call.returns.as_ref());
            kinds[event] = *known.entry(key).or_insert(fresh);
        }
        let scratch = view.object.initial();
        let state_bytes = view.object.footprint(&scratch);
        let initial = Rc::new(scratch.clone());
        let numbers = FxHashMap::from_iter([(Rc::clone(&initial), INITIAL)]);
        let (states, known) = (vec![initial], FxHashMap::default());
        Transitions { states, numbers, kinds, known, scratch, state_bytes }
    }

    pub(crate) fn kind(&self, event: usize) -> u32 {
        self.kinds[event]
    }

    pub(crate) fn state(&self, number: u32) -> &State {
        &self.states[number as usize]
    }

    /// Performs an operation; returns the state after it, if the return value matches the recorded
    /// one.
    pub(crate) fn perform(&mut self, view: &View<'_>, state: u32, event: usize) -> Option<u32> {
        let key = (state, self.kinds[event]);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        self.scratch.clone_from(&self.states[state as usize]);
        let is_possible = view.perform(&mut self.scratch, event);
        let after = is_possible.then(|| match self.numbers.get(&self.scratch) {
            Some(&known) => known,
            None => {
                let fresh = self.states.len() as u32;
                let state = Rc::new(self.scratch.clone());
                self.state_bytes += view.object.footprint(&state);
                self.states.push(Rc::clone(&state));
                self.numbers.insert(state, fresh);
                fresh
            }
        });
        self.known.insert(key, after);
        after
    }

    /// Drops all states except the given ones, if there are many. Returns the old numbers of the
    /// remaining states in the order of their new numbers, or `None` if nothing was dropped.
    pub(crate) fn drop_all_but(
        &mut self,
        view: &View<'_>,
        used: impl Iterator<Item = u32>,
    ) -> Option<Vec<u32>> {
        let used: FxHashSet<u32> = used.collect();
        if self.states.len() < STATES_KEPT + 4 * used.len() {
            return None;
        }
        let mut used: Vec<u32> = used.into_iter().collect();
        used.sort_unstable();
        self.known.clear();
        self.states = used.iter().map(|&old| Rc::clone(&self.states[old as usize])).collect();
        self.numbers = self.states.iter().cloned().zip(0..).collect();
        self.state_bytes = self.states.iter().map(|state| view.object.footprint(state)).sum();
        Some(used)
    }

    /// Estimates the bytes of the tables.
    pub(crate) fn bytes(&self) -> u64 {
        let states = self.states.len() * BYTES_PER_STATE + self.state_bytes;
        let tables = self.states.table_bytes() + self.numbers.table_bytes();
        states as u64 + tables + self.known.table_bytes()
    }
}
