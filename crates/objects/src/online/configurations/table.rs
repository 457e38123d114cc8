//! Numbered states, returns and calls, and the effects of the calls in the states.

use consistory_history::Value;
use consistory_spec::{Object, State};
use rustc_hash::FxHashMap;

use crate::machine::Interned;

/// A state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct StateId(u32);

impl StateId {
    /// The state before the first call.
    pub(super) const INITIAL: StateId = StateId(0);
}

/// A return value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct ValueId(u32);

/// A method with its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct CallId(u32);

/// The known effects.
pub(super) struct EffectTable {
    states: Interned<State>,
    values: Interned<Value>,
    calls: Interned<(Box<str>, Vec<Value>)>,
    steps: FxHashMap<(StateId, CallId), Option<(StateId, ValueId)>>,
    /// Number of values in use at the last renumbering.
    before: usize,
}

impl EffectTable {
    pub(super) fn new(object: &dyn Object) -> Self {
        let mut states = Interned::default();
        states.intern(object.initial());
        EffectTable {
            states,
            values: Interned::default(),
            calls: Interned::default(),
            steps: FxHashMap::default(),
            before: 0,
        }
    }

    /// Marks all numbered values as used.
    pub(super) fn settle(mut self) -> Self {
        self.before = self.values.len();
        self
    }

    /// Checks whether the tables hold many more entries than `configurations` configurations need.
    pub(super) fn is_large(&self, configurations: usize) -> bool {
        self.steps.len() + self.values.len() > 1024 + 64 * configurations + 2 * self.before
    }

    pub(super) fn state(&mut self, state: State) -> StateId {
        StateId(self.states.intern(state))
    }

    pub(super) fn get_state(&self, id: StateId) -> &State {
        self.states.get(id.0)
    }

    pub(super) fn value(&mut self, value: Value) -> ValueId {
        ValueId(self.values.intern(value))
    }

    pub(super) fn get(&self, id: ValueId) -> &Value {
        self.values.get(id.0)
    }

    pub(super) fn call(&mut self, method: &str, args: Vec<Value>) -> CallId {
        CallId(self.calls.intern((method.into(), args)))
    }

    pub(super) fn get_call(&self, id: CallId) -> (&str, &[Value]) {
        let (method, args) = self.calls.get(id.0);
        (method, args)
    }

    /// Lists the calls known to lead from the initial state to a given state.
    pub(super) fn makers(&self, state: StateId) -> impl Iterator<Item = (&str, &[Value])> {
        let calls = (0..self.calls.len() as u32).map(CallId);
        let leads = move |call: &CallId| match self.steps.get(&(StateId::INITIAL, *call)) {
            Some(Some((next, _))) => *next == state,
            _ => false,
        };
        calls.filter(leads).map(|call| self.get_call(call))
    }

    /// Returns the return of a call in a state, if it does not change the state.
    pub(super) fn look(
        &mut self,
        object: &dyn Object,
        state: StateId,
        call: CallId,
    ) -> Option<ValueId> {
        self.step(object, state, call).filter(|(next, _)| *next == state).map(|(_, value)| value)
    }

    /// Performs a call in a state.
    pub(super) fn step(
        &mut self,
        object: &dyn Object,
        state: StateId,
        call: CallId,
    ) -> Option<(StateId, ValueId)> {
        if let Some(&known) = self.steps.get(&(state, call)) {
            return known;
        }
        let (method, args) = self.calls.get(call.0);
        let mut next = self.states.get(state.0).clone();
        let returned = object.invoke(&mut next, method, args);
        let step = returned.map(|returned| (self.state(next), self.value(returned)));
        self.steps.insert((state, call), step);
        step
    }
}
