//! Linearizability of calls as they come, in memory that does not grow with their number.
//!
//! What is kept of the past is the set of *configurations* that explain it: a state of the object,
//! and which of the calls that are still running have taken effect already, with what they will
//! return. When a call returns, every configuration in which it has not taken effect is extended
//! just in time: other running calls may take effect first, in any order, until this one does and
//! returns what it did. Configurations in which it returns anything else are dropped. If none is
//! left, nothing explains the history up to this return; and as long as one is left, something
//! does. (Lowe's just-in-time linearization, breadth first.)
//!
//! Nothing else of the past can matter, so it is forgotten. When nothing runs the configurations
//! are a set of states; for an object that is confined to parts, such as the keys of a map, there
//! are such sets for each part, and a part that is back in its first state is dropped.
//!
//! Three things keep the sets small.
//! - A running call that changes nothing is no choice: a configuration remembers all that it could
//!   have returned so far, and gives way to one that differs from it only in remembering more.
//! - A call that nobody knows the end of may take effect at any time or never; equal ones are
//!   counted, and a configuration gives way to one that differs from it only in having used fewer.
//! - If a call that changes nothing can return what it did in a configuration as it is, no other
//!   call need take effect before.
//!
//! Cost: for each return the number of configurations times the ways in which running calls may
//! take effect, in the worst case exponential in the number of calls that run at once, and in the
//! number of different calls that nobody knows the end of; those can't be forgotten. A limit on the
//! number of configurations makes the answer [`OnlineError::TooMany`] instead. Queues and stacks go
//! on without configurations ([`crate::record`]).

use std::collections::VecDeque;
use std::sync::Arc;

use consistory_history::Value;
use consistory_spec::{CallError, Object, Returns, State};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::record::{MOST_KEPT, Record, Wrong};

/// How to judge calls as they come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnlineOptions {
    /// How many configurations a part may have.
    pub configurations: usize,
    /// Whether the object is judged as a whole even if its calls are confined to parts.
    pub whole: bool,
}

impl Default for OnlineOptions {
    fn default() -> Self {
        OnlineOptions { configurations: 100_000, whole: false }
    }
}

/// A call that is running.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RunningId(u64);

/// Why a call was not taken, or no verdict can be given.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OnlineError {
    /// The object has no such call.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A call looks at all of an object that is judged part by part.
    #[error("`{method}` concerns all of the object, which is judged part by part")]
    Whole {
        /// The method.
        method: String,
    },
    /// There are more configurations than the limit allows.
    #[error("more than {limit} configurations explain what has happened so far")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// There are too many calls that cannot be forgotten.
    #[error("none of the last {calls} calls can be forgotten")]
    TooLong {
        /// How many are kept.
        calls: usize,
    },
    /// The call is not running.
    #[error("no such call is running")]
    NotRunning,
}

/// A return that nothing explains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inexplicable {
    /// The call: the one that returned last, or one of those that were [unjudged](Online::unjudged).
    pub call: RunningId,
    /// What the call could have returned, a few of these.
    pub possible: Vec<Value>,
    /// The part of the object, if it has parts.
    pub part: Option<Value>,
    /// How many configurations explained what had happened before.
    pub configurations: usize,
}

/// How much is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OnlineSize {
    /// The configurations of all parts.
    pub configurations: usize,
    /// The most configurations that a part has had.
    pub most: usize,
    /// The parts.
    pub parts: usize,
    /// The calls that are running.
    pub running: usize,
    /// The calls that nobody knows the end of.
    pub pending: usize,
    /// The calls of a queue or stack that are kept beside.
    pub kept: usize,
}

/// Judges an object's calls as they come.
pub struct Online {
    object: Arc<dyn Object>,
    options: OnlineOptions,
    parts: FxHashMap<Option<Value>, Part>,
    /// Whether calls are confined to parts, once one was taken.
    has_parts: Option<bool>,
    /// The part of each running call.
    running: FxHashMap<RunningId, Option<Value>>,
    next: u64,
    most: usize,
    /// The calls of a queue or stack, as long as they can be judged without configurations.
    record: Option<Record>,
    /// Whether there were too many configurations, so that there are none any more.
    is_without: bool,
}

/// A method and its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Invoked {
    method: Box<str>,
    args: Vec<Value>,
    returns: Returns,
    is_read_only: bool,
}

/// A part of an object, or all of it.
#[derive(Default)]
struct Part {
    configurations: FxHashSet<Configuration>,
    running: Vec<(RunningId, Invoked)>,
    /// Calls that nobody knows the end of, each kind once, and how many there are.
    pending: Vec<(Invoked, u32)>,
}

/// What may be the case.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Configuration {
    state: State,
    /// Running calls that took effect, with what they will return; sorted.
    done: Vec<(RunningId, Value)>,
    /// Running calls that change nothing, with all that they may return; sorted.
    seen: Vec<(RunningId, Vec<Value>)>,
    /// How many of each kind of pending call took effect.
    used: Vec<u32>,
}

/// What configurations of one state, in which the same calls took effect, may differ in.
struct Choices {
    seen: Vec<(RunningId, Vec<Value>)>,
    used: Vec<u32>,
}

impl Choices {
    /// Says whether whatever happens next and is explained with the other is explained with this.
    fn is_as_good_as(&self, other: &Choices) -> bool {
        let has_all = |(more, less): (&(_, Vec<Value>), &(_, Vec<Value>))| {
            less.1.iter().all(|value| more.1.binary_search(value).is_ok())
        };
        self.used.iter().zip(&other.used).all(|(mine, its)| mine <= its)
            && self.seen.iter().zip(&other.seen).all(has_all)
    }
}

impl Online {
    /// Starts with nothing called.
    pub fn new(object: Arc<dyn Object>, options: OnlineOptions) -> Self {
        Online {
            record: Record::new(&object),
            is_without: false,
            object,
            options,
            parts: FxHashMap::default(),
            has_parts: None,
            running: FxHashMap::default(),
            next: 0,
            most: 1,
        }
    }

    /// Takes a call.
    pub fn invoke(&mut self, method: &str, args: Vec<Value>) -> Result<RunningId, OnlineError> {
        let resolved = self.object.resolve(method, args.len())?;
        let returns = resolved.map_or(Returns::Value, |method| method.returns);
        let name: Box<str> = resolved.map_or_else(|| method.into(), |method| method.name.clone());
        // Once a call concerned all of the object, it is judged as a whole.
        let part = match self.options.whole || self.has_parts == Some(false) {
            true => None,
            false => self.object.part(&name, &args),
        };
        // Parts are objects of their own only as long as every call is confined to one.
        if *self.has_parts.get_or_insert(part.is_some()) != part.is_some() {
            return Err(OnlineError::Whole { method: method.to_owned() });
        }
        let is_read_only = self.object.is_read_only(&name, None);
        let invoked = Invoked { method: name, args, returns, is_read_only };
        let id = RunningId(self.next);
        self.next += 1;
        if self.record.as_mut().is_some_and(|r| !r.invoke(id, &invoked.method, &invoked.args)) {
            self.without_record()?;
        }
        self.running.insert(id, part.clone());
        if self.is_without {
            return Ok(id);
        }
        let object = &*self.object;
        let part = self.parts.entry(part).or_insert_with(|| Part::new(object));
        part.invoke(object, id, invoked);
        Ok(id)
    }

    /// Takes the return of a call, with what was recorded of it; says what is wrong if nothing
    /// explains it.
    ///
    /// Behind a return that nothing explains there is nothing to judge by, and the part starts
    /// again with what is running; where there are no configurations, nothing more is said.
    pub fn complete(
        &mut self,
        id: RunningId,
        returned: Option<Value>,
    ) -> Result<Option<Inexplicable>, OnlineError> {
        let name = self.running.remove(&id).ok_or(OnlineError::NotRunning)?;
        if self.record.as_mut().is_some_and(|record| !record.complete(id, returned.as_ref())) {
            self.without_record()?;
        }
        if self.is_without {
            return self.check_record(false);
        }
        let object = &*self.object;
        // Where there is another way, there is no need for very many.
        let limit = match self.record {
            Some(_) => self.options.configurations.min(MANY),
            None => self.options.configurations,
        };
        let part = self.parts.get_mut(&name).expect("a running call has a part");
        let before = part.configurations.len();
        let possible = match part.complete(object, id, returned, limit) {
            Err(OnlineError::TooMany { .. }) if self.record.is_some() => {
                self.is_without = true;
                self.parts.clear();
                return self.check_record(true);
            }
            possible => possible?,
        };
        self.most = self.most.max(part.configurations.len());
        if part.is_idle(object) {
            self.parts.remove(&name);
        }
        if possible.is_none() && self.record.as_ref().is_some_and(Record::is_large) {
            // The configurations say that all is right; what is too old is forgotten.
            self.record.as_mut().and_then(Record::check);
        }
        Ok(possible.map(|possible| Inexplicable {
            call: id,
            possible,
            part: name,
            configurations: before,
        }))
    }

    /// Takes the end: judges what is not judged yet.
    pub fn finish(&mut self) -> Result<Option<Inexplicable>, OnlineError> {
        if self.is_without { self.check_record(true) } else { Ok(None) }
    }

    /// Counts the last returns that are not judged yet: behind many calls that overlap, returns
    /// are judged several at a time.
    pub fn unjudged(&self) -> usize {
        self.record.as_ref().filter(|_| self.is_without).map_or(0, Record::unjudged)
    }

    /// Has the record judged, if it is due.
    fn check_record(&mut self, now: bool) -> Result<Option<Inexplicable>, OnlineError> {
        let limit = self.options.configurations;
        let record = self.record.as_mut().ok_or(OnlineError::TooMany { limit })?;
        if !(now || record.is_due()) {
            return Ok(None);
        }
        let Some(found) = record.check() else {
            return self.without_record().map(|()| None);
        };
        if record.len() > MOST_KEPT {
            return Err(OnlineError::TooLong { calls: record.len() });
        }
        if record.is_empty() {
            // All is as at first.
            self.is_without = false;
        }
        if found.is_some() {
            self.record = None;
        }
        Ok(found.map(|Wrong { id, possible }| Inexplicable {
            call: id,
            possible,
            part: None,
            configurations: 0,
        }))
    }

    /// Goes on with configurations alone, if there are any.
    fn without_record(&mut self) -> Result<(), OnlineError> {
        self.record = None;
        match self.is_without {
            true => Err(OnlineError::TooMany { limit: self.options.configurations }),
            false => Ok(()),
        }
    }

    /// Takes that a call did not take effect.
    pub fn fail(&mut self, id: RunningId) -> Result<(), OnlineError> {
        let name = self.running.remove(&id).ok_or(OnlineError::NotRunning)?;
        if let Some(record) = &mut self.record {
            record.fail(id);
        }
        let Some(part) = self.parts.get_mut(&name).filter(|_| !self.is_without) else {
            return Ok(());
        };
        part.running.retain(|(running, _)| *running != id);
        part.reshape(|configuration| {
            let is_done = configuration.take_done(id).is_some();
            configuration.take_seen(id);
            !is_done
        });
        if part.is_idle(&*self.object) {
            self.parts.remove(&name);
        }
        Ok(())
    }

    /// Takes that nobody will know the end of a call.
    pub fn abandon(&mut self, id: RunningId) -> Result<(), OnlineError> {
        let name = self.running.remove(&id).ok_or(OnlineError::NotRunning)?;
        if let Some(record) = &mut self.record {
            record.abandon(id);
        }
        let Some(part) = self.parts.get_mut(&name).filter(|_| !self.is_without) else {
            return Ok(());
        };
        part.abandon(id);
        if part.is_idle(&*self.object) {
            self.parts.remove(&name);
        }
        Ok(())
    }

    /// Says how much is kept.
    pub fn size(&self) -> OnlineSize {
        let pending = |part: &Part| part.pending.iter().map(|&(_, n)| n as usize).sum::<usize>();
        OnlineSize {
            configurations: self.parts.values().map(|part| part.configurations.len()).sum(),
            most: self.most,
            parts: self.parts.len(),
            running: self.running.len(),
            pending: self.parts.values().map(pending).sum(),
            kept: self.record.as_ref().map_or(0, Record::len),
        }
    }
}

impl Part {
    fn new(object: &dyn Object) -> Self {
        let first = Configuration {
            state: object.initial(),
            done: Vec::new(),
            seen: Vec::new(),
            used: Vec::new(),
        };
        Part { configurations: [first].into_iter().collect(), ..Part::default() }
    }

    /// Says whether the part is as it was at first.
    fn is_idle(&self, object: &dyn Object) -> bool {
        self.running.is_empty()
            && self.pending.is_empty()
            && self.configurations.len() == 1
            && self.configurations.iter().all(|c| c.state == object.initial())
    }

    fn invoke(&mut self, object: &dyn Object, id: RunningId, invoked: Invoked) {
        if invoked.is_read_only {
            self.reshape(|configuration| {
                let found = look(object, &invoked, &configuration.state);
                configuration.seen.push((id, found.into_iter().collect()));
                true
            });
        }
        self.running.push((id, invoked));
    }

    /// Changes or drops every configuration.
    fn reshape(&mut self, mut change: impl FnMut(&mut Configuration) -> bool) {
        let before = std::mem::take(&mut self.configurations);
        self.configurations.extend(
            before.into_iter().filter_map(|mut configuration| {
                change(&mut configuration).then_some(configuration)
            }),
        );
    }

    fn abandon(&mut self, id: RunningId) {
        let Some(at) = self.running.iter().position(|(running, _)| *running == id) else { return };
        let (_, invoked) = self.running.remove(at);
        if invoked.is_read_only {
            // Nobody will know what it returned, and it changes nothing.
            return self.reshape(|configuration| {
                configuration.take_seen(id);
                true
            });
        }
        let kind = match self.pending.iter().position(|(known, _)| *known == invoked) {
            Some(kind) => kind,
            None => {
                self.pending.push((invoked, 0));
                self.pending.len() - 1
            }
        };
        self.pending[kind].1 += 1;
        let kinds = self.pending.len();
        self.reshape(|configuration| {
            configuration.used.resize(kinds, 0);
            if configuration.take_done(id).is_some() {
                configuration.used[kind] += 1;
            }
            true
        });
        self.keep_best();
    }

    /// Drops the configurations that give way to another.
    fn keep_best(&mut self) {
        let mut groups: FxHashMap<Configuration, Vec<Choices>> = FxHashMap::default();
        for mut configuration in std::mem::take(&mut self.configurations) {
            let choices = Choices {
                seen: std::mem::take(&mut configuration.seen),
                used: std::mem::take(&mut configuration.used),
            };
            let group = groups.entry(configuration).or_default();
            if !group.iter().any(|known| known.is_as_good_as(&choices)) {
                group.retain(|known| !choices.is_as_good_as(known));
                group.push(choices);
            }
        }
        for (configuration, group) in groups {
            for Choices { seen, used } in group {
                self.configurations.insert(Configuration { seen, used, ..configuration.clone() });
            }
        }
    }

    /// Takes a return; gives what the call could have returned if nothing explains it.
    fn complete(
        &mut self,
        object: &dyn Object,
        id: RunningId,
        returned: Option<Value>,
        limit: usize,
    ) -> Result<Option<Vec<Value>>, OnlineError> {
        let at = self.running.iter().position(|(running, _)| *running == id);
        let at = at.ok_or(OnlineError::NotRunning)?;
        let invoked = self.running[at].1.clone();
        let wanted = match (invoked.returns, returned) {
            (Returns::Nothing, _) => None,
            (Returns::Unordered, Some(Value::List(mut list))) => {
                list.sort();
                Some(Value::List(list))
            }
            (_, returned) => returned,
        };
        let found = self.explain(object, id, wanted.as_ref(), limit)?;
        if !found.is_empty() {
            self.running.remove(at);
            self.configurations = found;
            self.keep_best();
            return Ok(None);
        }
        // Without the return everything that the call may do is possible.
        let mut possible: Vec<Value> = Vec::new();
        let any = self.explain(object, id, None, limit).unwrap_or_default();
        for value in self.returns_of(object, id, &any, limit) {
            if !possible.contains(&value) && possible.len() < FEW {
                possible.push(value);
            }
        }
        possible.sort();
        self.running.remove(at);
        self.configurations = match any.is_empty() {
            true => Part::new(object).configurations,
            false => any,
        };
        self.keep_best();
        Ok(Some(possible))
    }

    /// Finds all configurations in which a call took effect and returned what is wanted.
    fn explain(
        &self,
        object: &dyn Object,
        id: RunningId,
        wanted: Option<&Value>,
        limit: usize,
    ) -> Result<FxHashSet<Configuration>, OnlineError> {
        let mut found = FxHashSet::default();
        let mut known: FxHashSet<Configuration> = FxHashSet::default();
        let mut work: VecDeque<Configuration> = self.configurations.iter().cloned().collect();
        let is_wanted = |value: &Value| wanted.is_none_or(|wanted| wanted == value);
        while let Some(mut configuration) = work.pop_front() {
            if found.len() + work.len() + known.len() > limit {
                return Err(OnlineError::TooMany { limit });
            }
            if let Some(value) = configuration.done_value(id) {
                if is_wanted(value) {
                    configuration.take_done(id);
                    found.insert(configuration);
                }
                continue;
            }
            let seen = configuration.seen.iter().find(|(running, _)| *running == id);
            if let Some((_, values)) = seen
                && values.iter().any(is_wanted)
            {
                configuration.take_seen(id);
                found.insert(configuration);
                continue;
            }
            for (running, invoked) in &self.running {
                let is_done = configuration.done_value(*running).is_some();
                if is_done || invoked.is_read_only {
                    continue;
                }
                let mut next = configuration.clone();
                let Some(value) = next.perform(object, invoked, &self.running) else { continue };
                next.insert_done(*running, value);
                if known.insert(next.clone()) {
                    work.push_back(next);
                }
            }
            for (kind, (invoked, count)) in self.pending.iter().enumerate() {
                let mut next = configuration.clone();
                if next.used[kind] < *count
                    && next.perform(object, invoked, &self.running).is_some()
                {
                    next.used[kind] += 1;
                    if known.insert(next.clone()) {
                        work.push_back(next);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Lists what a call may have returned.
    fn returns_of(
        &self,
        object: &dyn Object,
        id: RunningId,
        any: &FxHashSet<Configuration>,
        limit: usize,
    ) -> Vec<Value> {
        let mut found: Vec<Value> = Vec::new();
        if any.is_empty() {
            return found;
        }
        // What the calls that take effect first make of it: all configurations, the call included.
        let mut work: Vec<Configuration> = self.configurations.iter().cloned().collect();
        let mut known: FxHashSet<Configuration> = FxHashSet::default();
        while let Some(configuration) = work.pop() {
            if known.len() > limit.min(10_000) || found.len() >= FEW {
                break;
            }
            let seen = configuration.seen.iter().find(|(running, _)| *running == id);
            let values = seen.into_iter().flat_map(|(_, values)| values.iter().cloned());
            let values = values.chain(configuration.done_value(id).cloned());
            for value in values {
                if !found.contains(&value) {
                    found.push(value);
                }
            }
            for (running, invoked) in &self.running {
                let mut next = configuration.clone();
                if next.done_value(*running).is_none()
                    && !invoked.is_read_only
                    && let Some(value) = next.perform(object, invoked, &self.running)
                {
                    next.insert_done(*running, value);
                    if known.insert(next.clone()) {
                        work.push(next);
                    }
                }
            }
        }
        found
    }
}

/// How many values an explanation lists.
const FEW: usize = 20;
/// How many configurations there may be where there is another way to judge.
const MANY: usize = 2000;

impl Configuration {
    fn done_value(&self, id: RunningId) -> Option<&Value> {
        let at = self.done.binary_search_by_key(&id, |(running, _)| *running).ok()?;
        Some(&self.done[at].1)
    }

    fn insert_done(&mut self, id: RunningId, value: Value) {
        let at = self.done.partition_point(|(running, _)| *running < id);
        self.done.insert(at, (id, value));
    }

    fn take_done(&mut self, id: RunningId) -> Option<Value> {
        let at = self.done.binary_search_by_key(&id, |(running, _)| *running).ok()?;
        Some(self.done.remove(at).1)
    }

    fn take_seen(&mut self, id: RunningId) {
        self.seen.retain(|(running, _)| *running != id);
    }

    /// Lets a call take effect, and notes what calls that change nothing may return behind it.
    fn perform(
        &mut self,
        object: &dyn Object,
        invoked: &Invoked,
        running: &[(RunningId, Invoked)],
    ) -> Option<Value> {
        let value = object.invoke(&mut self.state, &invoked.method, &invoked.args)?;
        for (id, values) in &mut self.seen {
            let Some((_, looking)) = running.iter().find(|(running, _)| running == id) else {
                continue;
            };
            if let Some(found) = look(object, looking, &self.state)
                && let Err(at) = values.binary_search(&found)
            {
                values.insert(at, found);
            }
        }
        Some(value)
    }
}

/// Gives what a call that changes nothing returns.
fn look(object: &dyn Object, invoked: &Invoked, state: &State) -> Option<Value> {
    object.invoke(&mut state.clone(), &invoked.method, &invoked.args)
}
