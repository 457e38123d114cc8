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
//! Four things keep the sets small.
//! - A running call that changes nothing is no choice: a configuration remembers all that it could
//!   have returned so far, and gives way to one that differs from it only in remembering more.
//! - A call that nobody knows the end of may take effect at any time or never; equal ones are
//!   counted, and a configuration gives way to one that differs from it only in having used fewer.
//! - If a call that changes nothing can return what it did in a configuration as it is, no other
//!   call need take effect before.
//! - A configuration gives way to one from which a call that is running, or that nobody knows the
//!   end of, leads to it: that call can take effect later as well.
//!
//! *Calls that do not return.* One that nobody knows the end of is forgotten once it has taken
//! effect in all configurations. Others can't be: it may happen next week. So that memory is bounded
//! all the same, only so many of them are kept; the first ones are given up, that is, they have
//! taken effect by now, or never do. What is explained then is still an explanation. But if nothing
//! explains a return, one of those may be the reason, and the answer is
//! [`OnlineError::GivenUp`], not that something is wrong. A call that has been running while very
//! many others returned counts as one that nobody knows the end of; should it return all the same,
//! what it returned is not looked at.
//!
//! Cost: for each return the number of configurations times the ways in which running calls may
//! take effect, in the worst case exponential in the number of calls that run at once, and in the
//! number of different calls that nobody knows the end of. With too many configurations, calls that
//! nobody knows the end of are given up; if that does not help, the answer is
//! [`OnlineError::TooMany`]. Queues and stacks go on without configurations ([`crate::record`]).

use std::collections::{BTreeMap, VecDeque};
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
    /// How many calls that nobody knows the end of a part may have; beyond that the first ones are
    /// given up.
    pub pending: usize,
    /// How many other calls may return while one is running, before it counts as one that nobody
    /// knows the end of; fewer if there are too many configurations.
    pub overdue: u64,
}

impl Default for OnlineOptions {
    fn default() -> Self {
        OnlineOptions { configurations: 100_000, whole: false, pending: 4, overdue: 10_000 }
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
    /// Nothing explains a return, but calls were given up that might.
    #[error(
        "nothing explains it, unless a call whose end nobody knew took effect after it was given up \
         ({calls} given up so far)"
    )]
    GivenUp {
        /// How many.
        calls: u64,
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
    /// The calls that were given up, though what they do might matter.
    pub given_up: u64,
    /// The calls that were running for so long that their returns are not looked at.
    pub overdue: u64,
}

/// Judges an object's calls as they come.
pub struct Online {
    object: Arc<dyn Object>,
    options: OnlineOptions,
    parts: FxHashMap<Option<Value>, Part>,
    /// Whether calls are confined to parts, once one was taken.
    has_parts: Option<bool>,
    /// The running calls, the oldest first.
    running: BTreeMap<RunningId, Running>,
    /// Running calls that count as those that nobody knows the end of, and how many there were.
    overdue: FxHashSet<RunningId>,
    were_overdue: u64,
    given_up: GivenUp,
    returns: u64,
    next: u64,
    most: usize,
    /// The calls of a queue or stack, as long as they can be judged without configurations.
    record: Option<Record>,
    /// Whether there were too many configurations, so that there are none any more.
    is_without: bool,
}

/// A running call: its part, and how many had returned when it was called.
struct Running {
    part: Option<Value>,
    since: u64,
}

/// What is remembered of calls that were given up.
#[derive(Default)]
struct GivenUp {
    calls: u64,
    /// The parts that they concern, as long as these are not too many.
    parts: FxHashSet<Option<Value>>,
    is_everywhere: bool,
}

impl GivenUp {
    fn add(&mut self, part: &Option<Value>) {
        self.calls += 1;
        self.is_everywhere |= self.parts.len() >= MOST_PARTS;
        if !self.is_everywhere {
            self.parts.insert(part.clone());
        }
    }

    fn concerns(&self, part: &Option<Value>) -> bool {
        self.is_everywhere || self.parts.contains(part)
    }
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
            running: BTreeMap::new(),
            overdue: FxHashSet::default(),
            were_overdue: 0,
            given_up: GivenUp::default(),
            returns: 0,
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
        self.running.insert(id, Running { part: part.clone(), since: self.returns });
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
        if self.overdue.remove(&id) {
            return Ok(None);
        }
        let name = self.running.remove(&id).ok_or(OnlineError::NotRunning)?.part;
        let found = self.judge(id, name, returned)?;
        self.returns += 1;
        while let Some((&oldest, running)) = self.running.first_key_value()
            && self.returns - running.since > self.options.overdue
        {
            self.count_as_overdue(oldest)?;
        }
        match found {
            Some(wrong) if self.given_up.concerns(&wrong.part) => {
                Err(OnlineError::GivenUp { calls: self.given_up.calls })
            }
            found => Ok(found),
        }
    }

    fn judge(
        &mut self,
        id: RunningId,
        name: Option<Value>,
        returned: Option<Value>,
    ) -> Result<Option<Inexplicable>, OnlineError> {
        if self.record.as_mut().is_some_and(|record| !record.complete(id, returned.as_ref())) {
            self.without_record()?;
        }
        match self.is_without {
            true => self.check_record(false),
            false => self.judge_by_configurations(id, name, returned),
        }
    }

    /// Extends the configurations; if they are too many, calls that do not return are given up one
    /// by one.
    fn judge_by_configurations(
        &mut self,
        id: RunningId,
        name: Option<Value>,
        returned: Option<Value>,
    ) -> Result<Option<Inexplicable>, OnlineError> {
        let (before, possible) = loop {
            let hung = self.hung(&name);
            let part = self.parts.get_mut(&name).expect("a running call has a part");
            let before = part.configurations.len();
            // Where there is another way, there is no need for very many.
            let has_other = self.record.is_some() || !part.pending.is_empty() || hung.is_some();
            let limit = match has_other {
                true => self.options.configurations.min(MANY),
                false => self.options.configurations,
            };
            match part.complete(&*self.object, id, returned.clone(), limit) {
                Err(OnlineError::TooMany { .. }) if has_other => {}
                possible => break (before, possible?),
            }
            if self.record.is_some() {
                self.is_without = true;
                self.parts.clear();
                return self.check_record(true);
            }
            if part.pending.is_empty() {
                hung.into_iter().try_for_each(|hung| self.count_as_overdue(hung))?;
            } else if part.give_up(&*self.object) {
                self.given_up.add(&name);
            }
        };
        let object = &*self.object;
        let part = self.parts.get_mut(&name).expect("a running call has a part");
        self.most = self.most.max(part.configurations.len());
        if part.is_idle(object) {
            self.parts.remove(&name);
        }
        if possible.is_none() && self.record.as_ref().is_some_and(Record::is_large) {
            // The configurations say that all is right; what is too old is forgotten.
            self.record.as_mut().and_then(Record::check);
            if self.record.as_ref().is_some_and(|record| record.len() > MOST_KEPT) {
                self.record = None;
            }
        }
        Ok(possible.map(|possible| Inexplicable {
            call: id,
            possible,
            part: name,
            configurations: before,
        }))
    }

    /// Counts a running call as one that nobody knows the end of.
    fn count_as_overdue(&mut self, id: RunningId) -> Result<(), OnlineError> {
        self.abandon(id)?;
        self.overdue.insert(id);
        self.were_overdue += 1;
        Ok(())
    }

    /// Finds the oldest call of a part, if it has been running for long.
    fn hung(&self, part: &Option<Value>) -> Option<RunningId> {
        let (&id, running) = self.running.iter().find(|(_, running)| running.part == *part)?;
        (self.returns - running.since > HUNG).then_some(id)
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
        let given_up = record.given_up();
        if found.is_some() {
            self.record = None;
        }
        match found {
            Some(Wrong { is_certain: false, .. }) => Err(OnlineError::GivenUp { calls: given_up }),
            found => Ok(found.map(|Wrong { id, possible, .. }| Inexplicable {
                call: id,
                possible,
                part: None,
                configurations: 0,
            })),
        }
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
        if self.overdue.remove(&id) {
            return Ok(());
        }
        let name = self.running.remove(&id).ok_or(OnlineError::NotRunning)?.part;
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
        if self.overdue.remove(&id) {
            return Ok(());
        }
        let name = self.running.remove(&id).ok_or(OnlineError::NotRunning)?.part;
        if let Some(record) = &mut self.record {
            record.abandon(id);
        }
        let Some(part) = self.parts.get_mut(&name).filter(|_| !self.is_without) else {
            return Ok(());
        };
        part.abandon(&*self.object, id);
        if part.pending_calls() > self.options.pending && self.record.is_some() {
            // The calls themselves say more than configurations without it would.
            self.is_without = true;
            self.parts.clear();
            return Ok(());
        }
        while part.pending_calls() > self.options.pending {
            if part.give_up(&*self.object) {
                self.given_up.add(&name);
            }
        }
        if part.is_idle(&*self.object) {
            self.parts.remove(&name);
        }
        Ok(())
    }

    /// Says how much is kept.
    pub fn size(&self) -> OnlineSize {
        let in_record = self.record.as_ref().map_or(0, Record::given_up);
        OnlineSize {
            configurations: self.parts.values().map(|part| part.configurations.len()).sum(),
            most: self.most,
            parts: self.parts.len(),
            running: self.running.len(),
            pending: self.parts.values().map(Part::pending_calls).sum(),
            kept: self.record.as_ref().map_or(0, Record::len),
            given_up: self.given_up.calls + in_record,
            overdue: self.were_overdue,
        }
    }
}

impl Part {
    fn new(object: &dyn Object) -> Self {
        let mut part = Part::default();
        part.configurations.insert(part.afresh(object));
        part
    }

    /// Gives the first state with what is running now.
    fn afresh(&self, object: &dyn Object) -> Configuration {
        let state = object.initial();
        let reading = self.running.iter().filter(|(_, invoked)| invoked.is_read_only);
        let seen =
            reading.map(|(id, read)| (*id, look(object, read, &state).into_iter().collect()));
        Configuration {
            seen: seen.collect(),
            done: Vec::new(),
            used: vec![0; self.pending.len()],
            state,
        }
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

    /// Counts the calls that nobody knows the end of.
    fn pending_calls(&self) -> usize {
        self.pending.iter().map(|&(_, count)| count as usize).sum()
    }

    fn abandon(&mut self, object: &dyn Object, id: RunningId) {
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
        self.keep_best(object);
    }

    /// Gives up a call of the first kind that nobody knows the end of: it has taken effect by now,
    /// or never does. Says whether there was anything else that it might have done.
    fn give_up(&mut self, object: &dyn Object) -> bool {
        let mut may_matter = false;
        self.reshape(|configuration| {
            may_matter |= configuration.used[0] == 0;
            configuration.used[0] = configuration.used[0].saturating_sub(1);
            true
        });
        self.pending[0].1 -= 1;
        self.drop_kinds();
        self.keep_best(object);
        may_matter
    }

    /// Forgets the calls that nobody knows the end of and that took effect in all configurations.
    fn forget_used(&mut self) {
        for kind in 0..self.pending.len() {
            let least = self.configurations.iter().map(|c| c.used[kind]).min().unwrap_or(0);
            if least > 0 {
                self.pending[kind].1 -= least;
                self.reshape(|configuration| {
                    configuration.used[kind] -= least;
                    true
                });
            }
        }
        self.drop_kinds();
    }

    /// Drops the kinds of calls of which there are none.
    fn drop_kinds(&mut self) {
        while let Some(kind) = self.pending.iter().position(|&(_, count)| count == 0) {
            self.pending.remove(kind);
            self.reshape(|configuration| {
                configuration.used.remove(kind);
                true
            });
        }
    }

    /// Drops the configurations that give way to another.
    fn keep_best(&mut self, object: &dyn Object) {
        if self.configurations.len() < 2 {
            return;
        }
        let mut groups: FxHashMap<Configuration, Vec<Choices>> = FxHashMap::default();
        for configuration in std::mem::take(&mut self.configurations) {
            let (same, choices) = configuration.divided();
            let group = groups.entry(same).or_default();
            if !group.iter().any(|known| known.is_as_good_as(&choices)) {
                group.retain(|known| !choices.is_as_good_as(known));
                group.push(choices);
            }
        }
        for (configuration, group) in &groups {
            for Choices { seen, used } in group {
                let (seen, used) = (seen.clone(), used.clone());
                self.configurations.insert(Configuration { seen, used, ..configuration.clone() });
            }
        }
        // What a call that may still take effect leads to need not be kept beside. Who leads
        // there has fewer calls that took effect, so nobody leads to themselves.
        let mut reached: Vec<Configuration> = Vec::new();
        for configuration in &self.configurations {
            for next in self.successors(object, configuration) {
                let (same, choices) = next.divided();
                let Some(group) = groups.get_mut(&same) else { continue };
                let (gone, kept) =
                    std::mem::take(group).into_iter().partition(|c| choices.is_as_good_as(c));
                *group = kept;
                let gone: Vec<Choices> = gone;
                reached.extend(gone.into_iter().map(|Choices { seen, used }| Configuration {
                    seen,
                    used,
                    ..same.clone()
                }));
            }
        }
        for configuration in &reached {
            self.configurations.remove(configuration);
        }
    }

    /// Lists what a configuration becomes when one more call takes effect.
    fn successors<'a>(
        &'a self,
        object: &'a dyn Object,
        configuration: &'a Configuration,
    ) -> impl Iterator<Item = Configuration> + 'a {
        let running = self.running.iter().filter_map(move |(id, invoked)| {
            if invoked.is_read_only || configuration.done_value(*id).is_some() {
                return None;
            }
            let mut next = configuration.clone();
            let value = next.perform(object, invoked, &self.running)?;
            next.insert_done(*id, value);
            Some(next)
        });
        let pending =
            self.pending.iter().enumerate().filter_map(move |(kind, (invoked, count))| {
                if configuration.used[kind] == *count {
                    return None;
                }
                let mut next = configuration.clone();
                next.perform(object, invoked, &self.running)?;
                next.used[kind] += 1;
                Some(next)
            });
        running.chain(pending)
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
            self.keep_best(object);
            self.forget_used();
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
            true => [self.afresh(object)].into_iter().collect(),
            false => any,
        };
        self.keep_best(object);
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
        let mut known = 0;
        let mut groups: FxHashMap<Configuration, Vec<Choices>> = FxHashMap::default();
        let mut work: VecDeque<Configuration> = self.configurations.iter().cloned().collect();
        let is_wanted = |value: &Value| wanted.is_none_or(|wanted| wanted == value);
        while let Some(mut configuration) = work.pop_front() {
            if found.len() + work.len() + known > limit {
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
            for next in self.successors(object, &configuration) {
                let (same, choices) = next.clone().divided();
                let group = groups.entry(same).or_default();
                if !group.iter().any(|better| better.is_as_good_as(&choices)) {
                    group.push(choices);
                    known += 1;
                    work.push_back(next);
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

/// How many other calls return before one that is running counts as one that nobody knows the end of
/// if there are too many configurations.
const HUNG: u64 = 100;
/// How many parts are remembered to have had calls that were given up.
const MOST_PARTS: usize = 10_000;
/// How many values an explanation lists.
const FEW: usize = 20;
/// How many configurations there may be where there is another way to judge.
const MANY: usize = 2000;

impl Configuration {
    /// Gives what it has in common with those that may give way to it, and what it may be better in.
    fn divided(mut self) -> (Self, Choices) {
        let seen = std::mem::take(&mut self.seen);
        let used = std::mem::take(&mut self.used);
        (self, Choices { seen, used })
    }

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
