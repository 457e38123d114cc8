//! Models in which no call's visibility affects another call's, decided exactly without keeping
//! calls.
//!
//! These are the models whose axioms are among `vis >= po` and `vis >= hb`: return-value
//! consistency, read my writes and happens-before visibility. A call sees any set of calls before it
//! in the linearization that contains its base, so the past matters to it only through the states
//! that such sets lead to. For each class of future calls with the same base, an *observer*, the set
//! of these states is stored:
//!
//! | base | observers |
//! | --- | --- |
//! | nothing | one, for all calls |
//! | `po` | one for each session that has changed the state, and one for all other sessions |
//! | `hb` | one for each call that is running, and one for the calls that start later |
//!
//! If a call takes effect, each observer's set gains the states after it; once the call has
//! returned, the observers that must see it lose the states without it. So each state has a mask of
//! the running calls whose effect it contains.
//!
//! A *configuration* has a set of states for each observer, and the running calls that have taken
//! effect, with their possible returns. As in [`super::super::configurations`], a return extends the
//! configurations just in time.
//!
//! An object whose calls are confined to parts is judged part by part. The linearizations of the
//! parts can be merged, since `hb` comes from intervals (Herlihy and Wing), and a visibility of the
//! whole is the union of those of the parts. This requires that every call is possible in every
//! state, because a call that must see an impossible sequence in another part has no right return.
//! After a call was impossible in some state, a violation of a part is still a violation of the
//! whole, but the absence of one proves nothing ([`Outcome::Unknown`]).
//!
//! Cost: exponential in the calls that overlap, as for linearizability, and in the worst case in the
//! number of calls, because a set may contain a state for each subset of the past: a queue's does, a
//! register's has one state per value. Beyond a limit the engine gives up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use consistory_history::Value;
use consistory_spec::{Atom, Object, ObjectModel, State};
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::RunningId;
use super::calls::NewCall;
use crate::visibility::demands;

/// Calls that every call must see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    Nothing,
    Po,
    Hb,
}

/// Whether a base is all that a model requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Precision {
    /// The model has no further axiom.
    Exact,
    /// The model has further axioms, so that only violations are certain.
    Weaker,
}

impl Base {
    /// Returns the largest base that a model requires of every call.
    pub(super) fn of(model: &ObjectModel) -> (Base, Precision) {
        let (mut base, mut precision) = (Base::Nothing, Precision::Exact);
        for demand in demands(model) {
            let is_general = demand.prefix.is_empty() && model.axioms[demand.axiom].of.is_none();
            match demand.last {
                Atom::Po if is_general && base == Base::Nothing => base = Base::Po,
                Atom::Po if is_general => {}
                Atom::Hb if is_general => base = Base::Hb,
                _ => precision = Precision::Weaker,
            }
        }
        (base, precision)
    }
}

/// Result for an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Explained,
    Unexplained,
    /// This engine cannot tell.
    Unknown,
    /// This engine has given up.
    TooMany,
}

/// A class of calls with the same base.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Observer {
    /// All calls, or those without an observer of their own.
    Others,
    Session(Arc<str>),
    Call(RunningId),
}

/// Number of a state in a [`PartSets`].
type StateNumber = u32;

/// States, each with the running calls that must be seen once they return and whose effect it
/// contains.
type States = Vec<(StateNumber, u64)>;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Configuration {
    /// Running calls that have taken effect, and their possible returns.
    taken: BTreeMap<RunningId, Vec<Value>>,
    /// Indeterminate calls that have taken effect.
    used: BTreeSet<RunningId>,
    sets: BTreeMap<Observer, States>,
}

impl Configuration {
    fn entries(&self) -> usize {
        self.sets.values().map(Vec::len).sum::<usize>() + 1
    }

    /// Checks whether every future that another configuration explains is explained by this one.
    fn covers(&self, other: &Configuration) -> bool {
        let contains = |large: &States, small: &States| {
            let mut left = large.iter();
            large.len() >= small.len() && small.iter().all(|entry| left.any(|own| own == entry))
        };
        let has_returns = |(id, values): (&RunningId, &Vec<Value>)| {
            self.taken.get(id).is_some_and(|own| values.iter().all(|value| own.contains(value)))
        };
        self.used == other.used
            && self.taken.len() == other.taken.len()
            && other.taken.iter().all(has_returns)
            && self.sets.len() == other.sets.len()
            && other.sets.iter().all(|(observer, set)| {
                self.sets.get(observer).is_some_and(|own| contains(own, set))
            })
    }
}

/// A call that may still take effect, or whose return is awaited.
#[derive(Clone)]
struct OpenCall {
    session: Arc<str>,
    method: Box<str>,
    args: Vec<Value>,
    is_read_only: bool,
    /// Bit of the call in masks; 0 if it is indeterminate.
    bit: u64,
}

/// Largest number of running calls of a part.
const MAX_RUNNING: usize = 64;
/// Largest number of indeterminate calls of a part that may still take effect.
const MAX_INDETERMINATE: usize = 16;
/// Largest number of configurations that are compared with each other.
const MAX_COMPARED: usize = 64;
/// Number of stored states above which states that no configuration refers to are dropped.
const STATES_BEFORE_RENUMBERING: usize = 256;

/// The configurations of a part, or of the whole object.
struct PartSets {
    object: Arc<dyn Object>,
    base: Base,
    states: Vec<State>,
    numbers: FxHashMap<State, StateNumber>,
    open: BTreeMap<RunningId, OpenCall>,
    configurations: Vec<Configuration>,
    /// Whether a call was impossible in some state.
    is_partial: bool,
}

impl PartSets {
    fn new(object: &Arc<dyn Object>, base: Base) -> Self {
        let mut part = PartSets {
            object: Arc::clone(object),
            base,
            states: Vec::new(),
            numbers: FxHashMap::default(),
            open: BTreeMap::new(),
            configurations: Vec::new(),
            is_partial: false,
        };
        let initial = part.number(object.initial());
        part.configurations.push(Configuration {
            taken: BTreeMap::new(),
            used: BTreeSet::new(),
            sets: BTreeMap::from([(Observer::Others, vec![(initial, 0)])]),
        });
        part
    }

    fn number(&mut self, state: State) -> StateNumber {
        if let Some(&known) = self.numbers.get(&state) {
            return known;
        }
        let number = self.states.len() as StateNumber;
        self.states.push(state.clone());
        self.numbers.insert(state, number);
        number
    }

    fn entries(&self) -> usize {
        self.configurations.iter().map(Configuration::entries).sum()
    }

    fn invoke(&mut self, call: &NewCall) -> Outcome {
        let used: u64 = self.open.values().map(|call| call.bit).fold(0, |all, bit| all | bit);
        if used.count_ones() as usize >= MAX_RUNNING {
            return Outcome::TooMany;
        }
        let open = OpenCall {
            session: Arc::clone(&call.session),
            method: call.method.clone(),
            args: call.args.clone(),
            is_read_only: call.is_read_only,
            bit: 1 << (!used).trailing_zeros(),
        };
        self.open.insert(call.id, open);
        if self.base == Base::Hb {
            for configuration in &mut self.configurations {
                let mut set = configuration.sets[&Observer::Others].clone();
                clear(&mut set, u64::MAX);
                configuration.sets.insert(Observer::Call(call.id), set);
            }
        }
        Outcome::Explained
    }

    fn complete(&mut self, id: RunningId, required: Option<&Value>, limit: usize) -> Outcome {
        let Some(call) = self.open.get(&id).cloned() else { return Outcome::TooMany };
        let helpers: Vec<RunningId> = self
            .open
            .iter()
            .filter(|&(other, call)| *other != id && !call.is_read_only)
            .map(|(&other, _)| other)
            .collect();
        let mut agenda = std::mem::take(&mut self.configurations);
        let mut known: FxHashSet<Configuration> = FxHashSet::default();
        let mut found: FxHashSet<Configuration> = FxHashSet::default();
        let mut work = 0;
        while let Some(configuration) = agenda.pop() {
            work += configuration.entries();
            if work > limit {
                return Outcome::TooMany;
            }
            if let Some(returns) = configuration.taken.get(&id) {
                if required.is_none_or(|value| returns.contains(value)) {
                    found.insert(self.settled(configuration, id, &call));
                }
                continue;
            }
            if self.can_return(&configuration, id, &call, required) {
                if call.is_read_only {
                    // Calls that take effect before it may as well do so after it.
                    found.insert(self.settled(configuration, id, &call));
                    continue;
                }
                let next = self.taking(&configuration, id, &call, Vec::new());
                found.insert(self.settled(next, id, &call));
            }
            for &helper in &helpers {
                if configuration.taken.contains_key(&helper) || configuration.used.contains(&helper)
                {
                    continue;
                }
                let Some(helping) = self.open.get(&helper).cloned() else { continue };
                let returns = self.returns(&configuration, helper, &helping);
                if returns.is_empty() {
                    continue;
                }
                let next = self.taking(&configuration, helper, &helping, returns);
                if known.insert(next.clone()) {
                    agenda.push(next);
                }
            }
        }
        self.open.remove(&id);
        self.configurations = found.into_iter().collect();
        self.keep_best();
        if self.states.len() > STATES_BEFORE_RENUMBERING.max(2 * self.entries()) {
            self.renumber();
        }
        if self.configurations.is_empty() { Outcome::Unexplained } else { Outcome::Explained }
    }

    /// Returns the observer whose states a call may be performed in.
    fn own_observer(
        &self,
        configuration: &Configuration,
        id: RunningId,
        call: &OpenCall,
    ) -> Observer {
        match self.base {
            Base::Nothing => Observer::Others,
            Base::Hb => Observer::Call(id),
            // An indeterminate call has the base that it had when it became indeterminate.
            Base::Po if configuration.sets.contains_key(&Observer::Call(id)) => Observer::Call(id),
            Base::Po => Observer::Session(Arc::clone(&call.session)),
        }
    }

    /// Returns the states that a call may be performed in; a state occurs once for each mask.
    fn seen<'c>(
        &self,
        configuration: &'c Configuration,
        id: RunningId,
        call: &OpenCall,
    ) -> &'c States {
        let own = self.own_observer(configuration, id, call);
        configuration.sets.get(&own).unwrap_or(&configuration.sets[&Observer::Others])
    }

    /// Checks whether a call may return a value; `None` stands for any value.
    fn can_return(
        &mut self,
        configuration: &Configuration,
        id: RunningId,
        call: &OpenCall,
        required: Option<&Value>,
    ) -> bool {
        let seen = self.seen(configuration, id, call);
        seen.iter().any(|&(state, _)| {
            self.perform(state, call).is_some_and(|(_, value)| required.is_none_or(|r| *r == value))
        })
    }

    /// Lists the values that a call may return; none if it is not possible.
    fn returns(
        &mut self,
        configuration: &Configuration,
        id: RunningId,
        call: &OpenCall,
    ) -> Vec<Value> {
        let seen = self.seen(configuration, id, call);
        let mut last = None;
        let mut returns: BTreeSet<Value> = BTreeSet::new();
        for &(state, _) in seen {
            if last.replace(state) != Some(state) {
                returns.extend(self.perform(state, call).map(|(_, value)| value));
            }
        }
        returns.into_iter().collect()
    }

    /// Returns the configuration after a call has taken effect, with its possible returns.
    fn taking(
        &mut self,
        configuration: &Configuration,
        id: RunningId,
        call: &OpenCall,
        returns: Vec<Value>,
    ) -> Configuration {
        let own = self.own_observer(configuration, id, call);
        let mut next = configuration.clone();
        next.sets.remove(&Observer::Call(id));
        if call.bit == 0 {
            next.used.insert(id);
        } else {
            next.taken.insert(id, returns);
        }
        if self.base == Base::Po && call.bit != 0 {
            let others = next.sets[&Observer::Others].clone();
            next.sets.entry(own.clone()).or_insert(others);
        }
        for (observer, set) in &mut next.sets {
            let bit = match (self.base, observer) {
                (Base::Po, observer) if *observer == own => call.bit,
                (Base::Hb, Observer::Others) => call.bit,
                _ => 0,
            };
            self.add_effect(set, call, bit);
        }
        next
    }

    /// Adds to a set the states that a call leads to, marked with a bit.
    fn add_effect(&mut self, set: &mut States, call: &OpenCall, bit: u64) {
        if self.object.overwrites(&call.method, &call.args) {
            let Some(&(first, _)) = set.first() else { return };
            let Some((next, _)) = self.step(first, call) else { return };
            let masks: BTreeSet<u64> = set.iter().map(|(_, mask)| mask | bit).collect();
            for mask in masks {
                if let Err(at) = set.binary_search(&(next, mask)) {
                    set.insert(at, (next, mask));
                }
            }
            return;
        }
        let before = set.len();
        for at in 0..before {
            let (state, mask) = set[at];
            set.extend(self.step(state, call).map(|(next, _)| (next, mask | bit)));
        }
        set.sort_unstable();
        set.dedup();
    }

    /// Performs a call in a state, and numbers the state after it.
    fn step(&mut self, state: StateNumber, call: &OpenCall) -> Option<(StateNumber, Value)> {
        let (next, value) = self.perform(state, call)?;
        Some((self.number(next), value))
    }

    /// Performs a call in a state.
    fn perform(&mut self, state: StateNumber, call: &OpenCall) -> Option<(State, Value)> {
        let mut next = self.states[state as usize].clone();
        let value = self.object.invoke(&mut next, &call.method, &call.args);
        self.is_partial |= value.is_none();
        Some((next, value?))
    }

    /// Returns the configuration after a call that has taken effect returned.
    fn settled(
        &self,
        mut configuration: Configuration,
        id: RunningId,
        call: &OpenCall,
    ) -> Configuration {
        configuration.taken.remove(&id);
        configuration.sets.remove(&Observer::Call(id));
        if call.is_read_only {
            return configuration;
        }
        let must_see = match self.base {
            Base::Nothing => return configuration,
            Base::Po => Observer::Session(Arc::clone(&call.session)),
            Base::Hb => Observer::Others,
        };
        if let Some(set) = configuration.sets.get_mut(&must_see) {
            set.retain(|(_, mask)| mask & call.bit != 0);
            clear(set, call.bit);
        }
        // A session whose calls see no less than others needs no observer of its own.
        if configuration.sets.get(&must_see) == configuration.sets.get(&Observer::Others)
            && must_see != Observer::Others
        {
            configuration.sets.remove(&must_see);
        }
        configuration
    }

    /// Records that a call took no effect.
    fn fail(&mut self, id: RunningId) -> Outcome {
        self.open.remove(&id);
        self.configurations.retain(|configuration| !configuration.taken.contains_key(&id));
        for configuration in &mut self.configurations {
            configuration.sets.remove(&Observer::Call(id));
        }
        if self.configurations.is_empty() { Outcome::Unexplained } else { Outcome::Explained }
    }

    /// Records that a call is indeterminate.
    fn abandon(&mut self, id: RunningId) -> Outcome {
        let Some(call) = self.open.get_mut(&id) else { return Outcome::TooMany };
        let bit = std::mem::take(&mut call.bit);
        let session = Observer::Session(Arc::clone(&call.session));
        let is_read_only = call.is_read_only;
        if is_read_only {
            self.open.remove(&id);
        }
        for configuration in &mut self.configurations {
            if is_read_only {
                configuration.sets.remove(&Observer::Call(id));
            } else if configuration.taken.remove(&id).is_some() {
                configuration.used.insert(id);
            } else if self.base == Base::Po {
                let set = configuration.sets.get(&session);
                let set = set.unwrap_or(&configuration.sets[&Observer::Others]).clone();
                configuration.sets.insert(Observer::Call(id), set);
            }
            for set in configuration.sets.values_mut() {
                clear(set, bit);
            }
        }
        self.keep_best();
        let indeterminate = self.open.values().filter(|call| call.bit == 0).count();
        if indeterminate > MAX_INDETERMINATE { Outcome::TooMany } else { Outcome::Explained }
    }

    /// Drops configurations that others cover, and calls that have taken effect in all of them.
    fn keep_best(&mut self) {
        let all = &mut self.configurations;
        if all.len() <= MAX_COMPARED {
            let mut best: Vec<Configuration> = Vec::new();
            for configuration in all.drain(..) {
                if !best.iter().any(|other| other.covers(&configuration)) {
                    best.retain(|other| !configuration.covers(other));
                    best.push(configuration);
                }
            }
            *all = best;
        }
        let configurations = &self.configurations;
        let certain: Vec<RunningId> = self
            .open
            .keys()
            .copied()
            .filter(|id| configurations.iter().all(|c| c.used.contains(id)))
            .collect();
        if configurations.is_empty() {
            return;
        }
        for id in certain {
            self.open.remove(&id);
            for configuration in &mut self.configurations {
                configuration.used.remove(&id);
            }
        }
    }

    /// Drops the states that no configuration refers to.
    fn renumber(&mut self) {
        let old = std::mem::take(&mut self.states);
        self.numbers.clear();
        let mut new: Vec<Option<StateNumber>> = vec![None; old.len()];
        let mut configurations = std::mem::take(&mut self.configurations);
        for configuration in &mut configurations {
            for set in configuration.sets.values_mut() {
                for (state, _) in set.iter_mut() {
                    let at = *state as usize;
                    *state = match new[at] {
                        Some(number) => number,
                        None => self.number(old[at].clone()),
                    };
                    new[at] = Some(*state);
                }
                set.sort_unstable();
            }
        }
        self.configurations = configurations;
    }
}

/// Removes bits from the masks of a set.
fn clear(set: &mut States, bits: u64) {
    if bits == 0 {
        return;
    }
    for (_, mask) in set.iter_mut() {
        *mask &= !bits;
    }
    set.sort_unstable();
    set.dedup();
}

/// Judges calls by the states that their observers may be in.
pub(super) struct StateSets {
    object: Arc<dyn Object>,
    base: Base,
    parts: FxHashMap<Option<Value>, PartSets>,
    /// Whether calls are confined to parts; set by the first call.
    has_parts: Option<bool>,
    /// Parts and sessions of the running calls.
    running: FxHashMap<RunningId, (Option<Value>, Arc<str>)>,
    /// Sum of the entries of all parts, and its limit.
    entries: usize,
    limit: usize,
    /// Whether a call of a part was impossible in some state.
    is_partial: bool,
}

impl StateSets {
    pub(super) fn new(object: &Arc<dyn Object>, base: Base, limit: usize) -> Self {
        StateSets {
            object: Arc::clone(object),
            base,
            parts: FxHashMap::default(),
            has_parts: None,
            running: FxHashMap::default(),
            entries: 0,
            limit,
            is_partial: false,
        }
    }

    /// Returns the number of stored states and configurations.
    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    pub(super) fn invoke(&mut self, call: &NewCall) -> Outcome {
        let part = self.object.part(&call.method, &call.args);
        if *self.has_parts.get_or_insert(part.is_some()) != part.is_some() {
            match self.has_parts {
                Some(false) => {}
                _ => return Outcome::TooMany,
            }
        }
        let part = part.filter(|_| self.has_parts == Some(true));
        // In a session whose calls meet, `hb` does not come from intervals.
        if self.running.values().any(|(_, session)| *session == call.session) {
            return Outcome::TooMany;
        }
        self.running.insert(call.id, (part.clone(), Arc::clone(&call.session)));
        self.with(part, |part, _| part.invoke(call))
    }

    pub(super) fn complete(&mut self, id: RunningId, required: Option<&Value>) -> Outcome {
        let Some((part, _)) = self.running.remove(&id) else { return Outcome::TooMany };
        self.with(part, |part, limit| part.complete(id, required, limit))
    }

    pub(super) fn fail(&mut self, id: RunningId) -> Outcome {
        let Some((part, _)) = self.running.remove(&id) else { return Outcome::TooMany };
        self.with(part, |part, _| part.fail(id))
    }

    pub(super) fn abandon(&mut self, id: RunningId) -> Outcome {
        let Some((part, _)) = self.running.remove(&id) else { return Outcome::TooMany };
        self.with(part, |part, _| part.abandon(id))
    }

    /// Applies an event to a part.
    fn with(
        &mut self,
        name: Option<Value>,
        event: impl FnOnce(&mut PartSets, usize) -> Outcome,
    ) -> Outcome {
        let is_part = name.is_some();
        let (object, base) = (&self.object, self.base);
        let part = self.parts.entry(name).or_insert_with(|| PartSets::new(object, base));
        let before = part.entries();
        let outcome = event(part, self.limit);
        self.entries = (self.entries + part.entries()).saturating_sub(before);
        self.is_partial |= is_part && part.is_partial;
        match outcome {
            Outcome::Unexplained => Outcome::Unexplained,
            _ if self.entries > self.limit => Outcome::TooMany,
            Outcome::Explained if self.is_partial => Outcome::Unknown,
            outcome => outcome,
        }
    }
}
