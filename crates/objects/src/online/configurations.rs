//! The configurations that explain the calls of an object or of a part of it.
//!
//! Four rules reduce their number:
//! - A running call that changes nothing, such as a lookup or an attempt to take a held lock, needs
//!   no choice: a configuration stores every value that the call could have returned so far, and is
//!   dropped in favour of one that differs only in storing more. Values that all configurations
//!   share are stored once, so a long-running call does not enlarge each of them.
//! - An indeterminate call may take effect at any time or never. Equal ones are counted, and a
//!   configuration is dropped in favour of one that differs only in having used fewer.
//! - If a call whose return shows that it changed nothing can return this in a configuration as it
//!   is, no other call needs to take effect before.
//! - A configuration is dropped if a running or indeterminate call leads to it from another one:
//!   that call can take effect later as well.
//!
//! States, returns and calls are numbered, and the effect of a call in a state is computed once by
//! the specification. Unused numbers are forgotten from time to time.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::Arc;

use consistory_history::Value;
use consistory_spec::{Object, Returns, State};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use self::table::{CallId, EffectTable, StateId, ValueId};
use super::engine::{
    Certainty, Completed, Engine, EngineSize, GivenUpCalls, Incoming, Rest, Taken,
};
use super::{
    INDETERMINATE_ALWAYS_KEPT, MAX_CONFIGURATIONS_BEFORE_FALLBACK, OnlineError, RunningId,
    VALUES_LISTED,
};

mod table;

/// A call: its number, and properties of its method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Invoked {
    call: CallId,
    returns: Returns,
    is_read_only: bool,
}

/// The configurations that explain the past.
pub(super) struct Configurations {
    object: Arc<dyn Object>,
    /// Number of different indeterminate calls that are kept whatever their cost.
    few: usize,
    unreported: GivenUpCalls,
    set: FxHashSet<Configuration>,
    open: Open,
    table: EffectTable,
    /// Number of configurations tried beyond the usual number.
    work: usize,
}

/// Usual number of configurations tried per return, and the additional number above which a part
/// counts as costly.
const USUAL_CONFIGURATIONS_PER_RETURN: usize = 200;
const COSTLY_CONFIGURATIONS_PER_RETURN: usize = 100_000;

/// The calls that may still take effect.
#[derive(Default)]
struct Open {
    running: Vec<(RunningId, Invoked)>,
    /// Indeterminate calls, each kind once, with their number.
    pending: Vec<(Invoked, u32)>,
    /// Running calls, with the values that they may return without a change in every configuration.
    certain: Vec<(RunningId, FxHashSet<ValueId>)>,
}

/// A configuration.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Configuration {
    state: StateId,
    /// Running calls that took effect, with their future returns; sorted.
    done: Vec<(RunningId, ValueId)>,
    /// Running calls that did not take effect, with the further values that they may return without
    /// a change; sorted.
    seen: Vec<(RunningId, Vec<ValueId>)>,
    /// Number of calls of each indeterminate kind that took effect.
    used: Vec<u32>,
}

/// Configurations by state and by the calls that took effect: only those with equal keys are
/// compared.
#[derive(Default)]
struct Groups(FxHashMap<u64, Vec<usize>>);

impl Groups {
    fn of(&mut self, configuration: &Configuration) -> &mut Vec<usize> {
        let hash = FxBuildHasher.hash_one((configuration.state, &configuration.done));
        self.0.entry(hash).or_default()
    }
}

impl Configurations {
    /// Starts with no call; up to `most` different indeterminate calls are kept.
    pub(super) fn new(object: &Arc<dyn Object>, most: usize) -> Self {
        let mut all = Configurations {
            object: Arc::clone(object),
            few: INDETERMINATE_ALWAYS_KEPT.min(most),
            unreported: GivenUpCalls::default(),
            set: FxHashSet::default(),
            open: Open::default(),
            table: EffectTable::new(&**object),
            work: 0,
        };
        let first = all.afresh();
        all.set.insert(first);
        all
    }

    /// Starts with a set of possible states and no running call.
    pub(super) fn with_states(object: &Arc<dyn Object>, most: usize, states: Box<[State]>) -> Self {
        let mut all = Configurations::new(object, most);
        let first = all.set.drain().next();
        for state in states {
            let state = all.table.state(state);
            all.set.extend(first.clone().map(|first| Configuration { state, ..first }));
        }
        all
    }

    /// Starts with the state after a first call.
    pub(super) fn after(
        object: &Arc<dyn Object>,
        most: usize,
        method: &str,
        args: Vec<Value>,
    ) -> Self {
        let mut all = Configurations::new(object, most);
        let call = all.table.call(method, args);
        if let Some((state, _)) = all.table.step(&**object, StateId::INITIAL, call) {
            reshape(&mut all.set, |configuration| {
                configuration.state = state;
                true
            });
        }
        all
    }

    /// Returns a call with a key, its method and its other argument, that leads from the initial
    /// state to the only possible state, if there is one and no call may still take effect.
    fn maker(&self, key: &Value) -> Option<(&str, Option<&Value>)> {
        let is_quiet = self.open.running.is_empty() && self.open.pending.is_empty();
        let one = self.set.iter().next().filter(|_| is_quiet && self.set.len() == 1)?;
        self.table.makers(one.state).find_map(|(method, args)| match args {
            [first] if first == key => Some((method, None)),
            [first, second] if first == key => Some((method, Some(second))),
            _ => None,
        })
    }

    /// Lists the possible states, if no call may still take effect.
    fn states(&self) -> Option<Box<[State]>> {
        let is_quiet = self.open.running.is_empty() && self.open.pending.is_empty();
        let states = || self.set.iter().map(|c| self.table.get_state(c.state).clone()).collect();
        is_quiet.then(states)
    }

    /// Returns the initial state with the running calls.
    fn afresh(&mut self) -> Configuration {
        let mut first = Configuration {
            state: StateId::INITIAL,
            done: Vec::new(),
            seen: Vec::new(),
            used: vec![0; self.open.pending.len()],
        };
        for &(id, invoked) in &self.open.running {
            let found = self.table.look(&*self.object, first.state, invoked.call);
            first.seen.push((id, found.into_iter().collect()));
        }
        for (_, certain) in &mut self.open.certain {
            certain.clear();
        }
        first
    }

    /// Checks, once, whether very many configurations had to be tried.
    fn is_costly(&mut self) -> bool {
        let is_costly = self.work > COSTLY_CONFIGURATIONS_PER_RETURN;
        if is_costly {
            self.work = 0;
        }
        is_costly
    }

    /// Gives up an indeterminate call of the first kind: it is assumed to have taken effect by now,
    /// or never to. Records a doubt if it could still have taken effect later.
    fn give_up(&mut self) {
        let may_matter = self.set.iter().any(|configuration| configuration.used[0] == 0);
        if may_matter {
            self.use_first();
        }
        reshape(&mut self.set, |configuration| {
            configuration.used[0] = configuration.used[0].saturating_sub(1);
            true
        });
        self.open.pending[0].1 -= 1;
        self.drop_kinds();
        self.keep_best();
        if may_matter {
            self.unreported.count += 1;
            self.unreported.casts_doubt = true;
        }
    }

    /// Adds the configurations in which an indeterminate call of the first kind takes effect right
    /// now. They had been dropped in favour of configurations in which the call may still take
    /// effect. If there are very many, adds only some of them.
    fn use_first(&mut self) {
        let mut work: VecDeque<Configuration> = self.set.iter().cloned().collect();
        let mut known: FxHashSet<Configuration> = FxHashSet::default();
        let mut successors = Vec::new();
        while let Some(configuration) = work.pop_front() {
            self.open.successors(&*self.object, &mut self.table, &configuration, &mut successors);
            for next in successors.drain(..) {
                if next.used[0] > configuration.used[0] {
                    self.set.insert(next);
                } else if known.len() < MAX_CONFIGURATIONS_BEFORE_FALLBACK
                    && known.insert(next.clone())
                {
                    work.push_back(next);
                }
            }
        }
    }

    /// Forgets the indeterminate calls that took effect in all configurations.
    fn forget_used(&mut self) {
        for kind in 0..self.open.pending.len() {
            let least = self.set.iter().map(|c| c.used[kind]).min().unwrap_or(0);
            if least > 0 {
                self.open.pending[kind].1 -= least;
                reshape(&mut self.set, |configuration| {
                    configuration.used[kind] -= least;
                    true
                });
            }
        }
        self.drop_kinds();
    }

    /// Drops the kinds without calls.
    fn drop_kinds(&mut self) {
        while let Some(kind) = self.open.pending.iter().position(|&(_, count)| count == 0) {
            self.open.pending.remove(kind);
            reshape(&mut self.set, |configuration| {
                configuration.used.remove(kind);
                true
            });
        }
    }

    /// Stores the values that running calls may return in every configuration once.
    fn hold_certain(&mut self) {
        for (at, (_, certain)) in self.open.certain.iter_mut().enumerate() {
            let Some(some) = self.set.iter().min_by_key(|c| c.seen[at].1.len()) else { return };
            let mut common = some.seen[at].1.clone();
            common.retain(|v| self.set.iter().all(|c| c.seen[at].1.binary_search(v).is_ok()));
            if !common.is_empty() {
                reshape(&mut self.set, |configuration| {
                    configuration.seen[at].1.retain(|value| common.binary_search(value).is_err());
                    true
                });
                certain.extend(common);
            }
        }
    }

    /// Drops the configurations that are covered by others.
    fn keep_best(&mut self) {
        if self.set.len() < 2 {
            return;
        }
        let mut best: Vec<Configuration> = Vec::new();
        let mut groups = Groups::default();
        let mut stays: Vec<bool> = Vec::new();
        for configuration in std::mem::take(&mut self.set) {
            let group = groups.of(&configuration);
            if group.iter().any(|&known| best[known].is_as_good_as(&configuration)) {
                continue;
            }
            group.retain(|&known| {
                stays[known] = !configuration.is_as_good_as(&best[known]);
                stays[known]
            });
            group.push(best.len());
            best.push(configuration);
            stays.push(true);
        }
        // A configuration that a pending call leads to from another one need not be kept. The other
        // one has fewer calls that took effect, so no configuration removes itself.
        let mut successors = Vec::new();
        for (at, configuration) in best.iter().enumerate() {
            if !groups.of(configuration).contains(&at) {
                continue;
            }
            self.open.successors(&*self.object, &mut self.table, configuration, &mut successors);
            for next in successors.drain(..) {
                for &known in groups.of(&next).iter() {
                    stays[known] &= !next.is_as_good_as(&best[known]);
                }
            }
        }
        let best = best.into_iter().zip(stays);
        self.set.extend(best.filter_map(|(configuration, stays)| stays.then_some(configuration)));
    }

    /// Finds all configurations in which a call took effect with the wanted return, which may show
    /// that it changed nothing; `None` if more than `limit` must be tried.
    fn explain(
        &mut self,
        id: RunningId,
        (wanted, is_look): (Option<ValueId>, bool),
        limit: usize,
    ) -> Option<FxHashSet<Configuration>> {
        let mut found = FxHashSet::default();
        let mut known: Vec<Configuration> = self.set.iter().cloned().collect();
        let mut groups = Groups::default();
        for (at, configuration) in known.iter().enumerate() {
            groups.of(configuration).push(at);
        }
        let is_wanted = |value: &ValueId| wanted.is_none_or(|wanted| wanted == *value);
        let certain = self.open.certain.iter().find(|(running, _)| *running == id);
        let is_certain = certain.is_some_and(|(_, values)| match wanted {
            Some(wanted) => values.contains(&wanted),
            None => !values.is_empty(),
        });
        let mut successors = Vec::new();
        let mut at = 0;
        while let Some(configuration) = known.get(at) {
            at += 1;
            if found.len() + known.len() > limit {
                return None;
            }
            if let Some(value) = configuration.done_value(id) {
                if is_wanted(&value) {
                    let mut configuration = configuration.clone();
                    configuration.take_done(id);
                    configuration.take_seen(id);
                    found.insert(configuration);
                }
                continue;
            }
            let seen = configuration.seen.iter().find(|(running, _)| *running == id);
            if is_certain || seen.is_some_and(|(_, values)| values.iter().any(is_wanted)) {
                let mut configuration = configuration.clone();
                configuration.take_seen(id);
                found.insert(configuration);
                if is_look {
                    continue;
                }
            }
            self.open.successors(&*self.object, &mut self.table, configuration, &mut successors);
            for next in successors.drain(..) {
                let group = groups.of(&next);
                if !group.iter().any(|&better| known[better].is_as_good_as(&next)) {
                    group.push(known.len());
                    known.push(next);
                }
            }
        }
        self.work = (self.work + known.len()).saturating_sub(USUAL_CONFIGURATIONS_PER_RETURN);
        Some(found)
    }

    /// Lists the values that a call may have returned, after other calls took effect.
    fn returns_of(&mut self, id: RunningId, limit: usize) -> Vec<ValueId> {
        let certain = self.open.certain.iter().find(|(running, _)| *running == id);
        let certain = certain.into_iter().flat_map(|(_, values)| values.iter().copied());
        let mut found: Vec<ValueId> = certain.take(VALUES_LISTED).collect();
        let mut work: Vec<Configuration> = self.set.iter().cloned().collect();
        let mut known: FxHashSet<Configuration> = FxHashSet::default();
        let mut successors = Vec::new();
        while let Some(configuration) = work.pop() {
            if known.len() > limit.min(10_000) || found.len() >= VALUES_LISTED {
                break;
            }
            let seen = configuration.seen.iter().find(|(running, _)| *running == id);
            let values = seen.into_iter().flat_map(|(_, values)| values.iter().copied());
            for value in values.chain(configuration.done_value(id)) {
                if !found.contains(&value) && found.len() < VALUES_LISTED {
                    found.push(value);
                }
            }
            self.open.successors(&*self.object, &mut self.table, &configuration, &mut successors);
            work.extend(successors.drain(..).filter(|next| known.insert(next.clone())));
        }
        found
    }

    /// Renumbers the states, returns and calls in use.
    fn renumber(&mut self) {
        let mut table = EffectTable::new(&*self.object);
        let old = &self.table;
        let (mut states, mut values) = (FxHashMap::default(), FxHashMap::default());
        let mut value = |id: ValueId, table: &mut EffectTable| {
            *values.entry(id).or_insert_with(|| table.value(old.get(id).clone()))
        };
        for (_, certain) in &mut self.open.certain {
            *certain = certain.iter().map(|&id| value(id, &mut table)).collect();
        }
        let running = self.open.running.iter_mut().map(|(_, invoked)| invoked);
        for invoked in running.chain(self.open.pending.iter_mut().map(|(invoked, _)| invoked)) {
            let (method, args) = old.get_call(invoked.call);
            invoked.call = table.call(method, args.to_vec());
        }
        reshape(&mut self.set, |configuration| {
            let state = configuration.state;
            configuration.state =
                *states.entry(state).or_insert_with(|| table.state(old.get_state(state).clone()));
            for (_, returned) in &mut configuration.done {
                *returned = value(*returned, &mut table);
            }
            for (_, seen) in &mut configuration.seen {
                seen.iter_mut().for_each(|id| *id = value(*id, &mut table));
                seen.sort_unstable();
            }
            true
        });
        self.table = table.settle();
    }
}

impl Engine for Configurations {
    fn invoke(&mut self, id: RunningId, call: &Incoming<'_>) -> Taken {
        let object = &*self.object;
        let is_read_only = object.is_read_only(call.method, None);
        let number = self.table.call(call.method, call.args.to_vec());
        self.open.certain.push((id, FxHashSet::default()));
        let table = &mut self.table;
        reshape(&mut self.set, |configuration| {
            let found = table.look(object, configuration.state, number);
            configuration.seen.push((id, found.into_iter().collect()));
            true
        });
        let invoked = Invoked { call: number, returns: call.returns, is_read_only };
        self.open.running.push((id, invoked));
        Taken::Yes
    }

    fn complete(
        &mut self,
        id: RunningId,
        returned: Option<&Value>,
        limit: usize,
    ) -> Result<Completed, OnlineError> {
        let invoked = self.open.get(id).ok_or(OnlineError::NotRunning)?;
        let wanted = match (invoked.returns, returned.cloned()) {
            (Returns::Nothing, _) => None,
            (Returns::Unordered, Some(Value::List(mut list))) => {
                list.sort();
                Some(Value::List(list))
            }
            (_, returned) => returned,
        };
        let configurations = self.set.len();
        // Whether a call with this return can have changed anything.
        let (method, _) = self.table.get_call(invoked.call);
        let is_look = invoked.is_read_only
            || wanted.as_ref().is_some_and(|value| self.object.is_read_only(method, Some(value)));
        let wanted = wanted.map(|value| self.table.value(value));
        let Some(found) = self.explain(id, (wanted, is_look), limit) else {
            return Ok(Completed::TooMany);
        };
        let is_explained = !found.is_empty();
        let mut possible: Vec<Value> = Vec::new();
        if is_explained {
            self.open.forget(id);
            self.set = found;
        } else {
            // Without the return, every effect of the call is possible.
            let any = self.explain(id, (None, false), limit).unwrap_or_default();
            if !any.is_empty() {
                let found = self.returns_of(id, limit);
                possible.extend(found.into_iter().map(|value| self.table.get(value).clone()));
            }
            possible.sort();
            self.open.forget(id);
            self.set = match any.is_empty() {
                true => [self.afresh()].into_iter().collect(),
                false => any,
            };
        }
        self.keep_best();
        self.forget_used();
        self.hold_certain();
        if self.table.is_large(self.set.len()) {
            self.renumber();
        }
        if self.is_costly() && self.open.pending.len() > self.few {
            self.give_up();
        }
        let certainty = Certainty::Certain;
        Ok(match is_explained {
            true => Completed::Explained,
            false => Completed::Unexplained { call: id, possible, configurations, certainty },
        })
    }

    fn fail(&mut self, id: RunningId) {
        self.open.forget(id);
        reshape(&mut self.set, |configuration| {
            let is_done = configuration.take_done(id).is_some();
            configuration.take_seen(id);
            !is_done
        });
    }

    fn abandon(&mut self, id: RunningId) {
        let Some(invoked) = self.open.forget(id) else { return };
        if invoked.is_read_only {
            // Its return is unknown, and it changes nothing.
            return reshape(&mut self.set, |configuration| {
                configuration.take_seen(id);
                true
            });
        }
        let pending = &mut self.open.pending;
        let kind = match pending.iter().position(|(known, _)| known.call == invoked.call) {
            Some(kind) => kind,
            None => {
                pending.push((invoked, 0));
                pending.len() - 1
            }
        };
        pending[kind].1 += 1;
        let kinds = pending.len();
        reshape(&mut self.set, |configuration| {
            configuration.used.resize(kinds, 0);
            configuration.take_seen(id);
            if configuration.take_done(id).is_some() {
                configuration.used[kind] += 1;
            }
            true
        });
        self.keep_best();
    }

    fn keep_indeterminate(&mut self, most: usize) {
        while self.open.pending.len() > most {
            self.give_up();
        }
    }

    fn give_up_one(&mut self) -> bool {
        let has_any = !self.open.pending.is_empty();
        if has_any {
            self.give_up();
        }
        has_any
    }

    fn take_given_up(&mut self) -> GivenUpCalls {
        std::mem::take(&mut self.unreported)
    }

    fn has_alternative(&self) -> bool {
        !self.open.pending.is_empty()
    }

    fn size(&self) -> EngineSize {
        let indeterminate = self.open.pending.iter().map(|&(_, count)| count as usize).sum();
        EngineSize { configurations: self.set.len(), indeterminate, kept: 0 }
    }

    fn is_initial(&self) -> bool {
        self.open.running.is_empty()
            && self.open.pending.is_empty()
            && self.set.len() == 1
            && self.set.iter().all(|c| c.state == StateId::INITIAL)
    }

    fn rest(&self, key: &Value) -> Option<Rest> {
        if let Some((method, value)) = self.maker(key) {
            return Some(Rest::After(method.into(), value.cloned()));
        }
        self.states().map(Rest::States)
    }

    fn check_invariants(&self) {
        // The set is empty only if a call failed whose effect was observed.
        let running: Vec<RunningId> = self.open.running.iter().map(|&(id, _)| id).collect();
        assert!(self.open.certain.iter().map(|&(id, _)| id).eq(running.iter().copied()));
        assert!(self.open.pending.iter().all(|&(_, count)| count > 0));
        for configuration in &self.set {
            let Configuration { done, seen, used, .. } = configuration;
            assert!(seen.iter().map(|&(id, _)| id).eq(running.iter().copied()));
            assert!(done.is_sorted() && done.iter().all(|(id, _)| running.contains(id)));
            assert_eq!(used.len(), self.open.pending.len());
            assert!(used.iter().zip(&self.open.pending).all(|(used, (_, count))| used <= count));
        }
    }
}

/// Changes or drops every configuration.
fn reshape(set: &mut FxHashSet<Configuration>, mut change: impl FnMut(&mut Configuration) -> bool) {
    let before = std::mem::take(set);
    set.extend(
        before
            .into_iter()
            .filter_map(|mut configuration| change(&mut configuration).then_some(configuration)),
    );
}

impl Open {
    fn get(&self, id: RunningId) -> Option<Invoked> {
        self.running.iter().find(|(running, _)| *running == id).map(|&(_, invoked)| invoked)
    }

    /// Forgets a running call.
    fn forget(&mut self, id: RunningId) -> Option<Invoked> {
        let at = self.running.iter().position(|(running, _)| *running == id)?;
        self.certain.retain(|(running, _)| *running != id);
        Some(self.running.remove(at).1)
    }

    /// Lists the configurations after one more call takes effect.
    fn successors(
        &self,
        object: &dyn Object,
        table: &mut EffectTable,
        configuration: &Configuration,
        into: &mut Vec<Configuration>,
    ) {
        for &(id, invoked) in &self.running {
            if invoked.is_read_only || configuration.done_value(id).is_some() {
                continue;
            }
            if let Some((mut next, value)) = self.perform(object, table, configuration, invoked) {
                let at = next.done.partition_point(|(running, _)| *running < id);
                next.done.insert(at, (id, value));
                if let Some((_, seen)) = next.seen.iter_mut().find(|(running, _)| *running == id) {
                    seen.clear();
                }
                into.push(next);
            }
        }
        for (kind, &(invoked, count)) in self.pending.iter().enumerate() {
            if configuration.used[kind] == count {
                continue;
            }
            if let Some((mut next, _)) = self.perform(object, table, configuration, invoked) {
                next.used[kind] += 1;
                into.push(next);
            }
        }
    }

    /// Lets a call take effect, if that changes anything, and records what others may return after
    /// it.
    fn perform(
        &self,
        object: &dyn Object,
        table: &mut EffectTable,
        configuration: &Configuration,
        invoked: Invoked,
    ) -> Option<(Configuration, ValueId)> {
        let (state, value) = table.step(object, configuration.state, invoked.call)?;
        if state == configuration.state {
            return None;
        }
        let mut next = Configuration { state, ..configuration.clone() };
        let others = next.seen.iter_mut().zip(&self.certain).zip(&self.running);
        for (((id, values), (_, certain)), (_, looking)) in others {
            if configuration.done_value(*id).is_none()
                && let Some(found) = table.look(object, state, looking.call)
                && !certain.contains(&found)
                && let Err(at) = values.binary_search(&found)
            {
                values.insert(at, found);
            }
        }
        Some((next, value))
    }
}

impl Configuration {
    /// Checks whether this configuration explains every future that the other one explains.
    fn is_as_good_as(&self, other: &Configuration) -> bool {
        let has_all = |(more, less): (&(_, Vec<ValueId>), &(_, Vec<ValueId>))| {
            less.1.iter().all(|value| more.1.binary_search(value).is_ok())
        };
        self.state == other.state
            && self.done == other.done
            && self.used.iter().zip(&other.used).all(|(mine, its)| mine <= its)
            && self.seen.iter().zip(&other.seen).all(has_all)
    }

    fn done_value(&self, id: RunningId) -> Option<ValueId> {
        let at = self.done.binary_search_by_key(&id, |(running, _)| *running).ok()?;
        Some(self.done[at].1)
    }

    fn take_done(&mut self, id: RunningId) -> Option<ValueId> {
        let at = self.done.binary_search_by_key(&id, |(running, _)| *running).ok()?;
        Some(self.done.remove(at).1)
    }

    fn take_seen(&mut self, id: RunningId) {
        self.seen.retain(|(running, _)| *running != id);
    }
}
