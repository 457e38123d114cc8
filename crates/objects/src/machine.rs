//! The specification as a transition table that grows as it is asked.
//!
//! States and returns are interned, and what an invocation does in a state is asked of the
//! specification once: from then on a step is one lookup, whatever the object.

use consistory_history::Value;
use consistory_spec::State;
use rustc_hash::FxHashMap;

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
    states: Vec<State>,
    state_ids: FxHashMap<State, u32>,
    values: Vec<Value>,
    value_ids: FxHashMap<Value, u32>,
    /// For each operation what it has to return.
    wanted: Vec<Option<ReturnId>>,
    steps: FxHashMap<(u32, u32), Option<(StateId, ReturnId)>>,
}

impl<'t, 'h> Machine<'t, 'h> {
    pub(crate) fn new(task: &'t Task<'h>) -> Self {
        let mut machine = Machine {
            task,
            states: Vec::new(),
            state_ids: FxHashMap::default(),
            values: Vec::new(),
            value_ids: FxHashMap::default(),
            wanted: Vec::new(),
            steps: FxHashMap::default(),
        };
        machine.state(task.object().initial());
        machine.wanted = (task.calls().places())
            .map(|place| task.returns(place).map(|value| machine.value(value.clone())))
            .collect();
        machine
    }

    pub(crate) const INITIAL: StateId = StateId(0);

    /// Performs an operation's invocation, whatever it returns.
    #[inline]
    pub(crate) fn step(&mut self, state: StateId, place: Place) -> Option<(StateId, ReturnId)> {
        let invocation = self.task.invocation_of(place);
        if let Some(&known) = self.steps.get(&(state.0, invocation)) {
            return known;
        }
        let call = &self.task.invocations()[invocation as usize];
        let mut next = self.states[state.0 as usize].clone();
        let step = self
            .task
            .object()
            .invoke(&mut next, &call.method, &call.args)
            .map(|returned| (self.state(next), self.value(returned)));
        self.steps.insert((state.0, invocation), step);
        step
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
        &self.states[id.0 as usize]
    }

    /// Gives a return.
    pub(crate) fn get(&self, id: ReturnId) -> &Value {
        &self.values[id.0 as usize]
    }

    /// Estimates the memory that the tables take, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        (self.states.len() * 256 + self.values.len() * 64 + self.steps.len() * 32) as u64
    }

    fn state(&mut self, state: State) -> StateId {
        if let Some(&id) = self.state_ids.get(&state) {
            return StateId(id);
        }
        let id = self.states.len() as u32;
        self.states.push(state.clone());
        self.state_ids.insert(state, id);
        StateId(id)
    }

    fn value(&mut self, value: Value) -> ReturnId {
        if let Some(&id) = self.value_ids.get(&value) {
            return ReturnId(id);
        }
        let id = self.values.len() as u32;
        self.values.push(value.clone());
        self.value_ids.insert(value, id);
        ReturnId(id)
    }
}
