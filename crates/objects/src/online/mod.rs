//! Linearizability decided online, in memory that does not grow with the number of calls.
//!
//! The past is stored as the set of *configurations* that explain it: a state of the object, and
//! the running calls that have already taken effect, with their future returns. When a call
//! returns, every configuration in which it has not taken effect is extended just in time: other
//! running calls may take effect first, in any order, until this one does and returns its value.
//! Configurations in which it returns another value are dropped. If none remains, the history up to
//! this return has no explanation; otherwise it has one. (Lowe's just-in-time linearization,
//! breadth first.)
//!
//! The rest of the past can no longer matter and is forgotten. When no call is running, the
//! configurations are a set of states. For an object whose calls are confined to parts, such as the
//! keys of a map, each part has such a set, and a part that has returned to its initial state is
//! dropped.
//!
//! Each part has an [`Engine`], and engines fall back on each other:
//!
//! | object | first | then |
//! | --- | --- | --- |
//! | register, key of a store | [`clusters`]: by values, without configurations | [`configurations`], when a value is written again too soon or another method is called |
//! | queue, stack, priority queue | [`collection`]: configurations, and a log of calls beside | the log alone ([`call_log`]), when there are too many configurations or indeterminate calls; configurations alone, when the calls do not suit the log |
//! | any other | [`configurations`] | |
//!
//! *Indeterminate calls* are forgotten once they have taken effect in all configurations. Others
//! cannot be forgotten: a call may take effect much later. To bound memory, only a limited number
//! of them is kept. The first ones are *given up*: they are assumed to have taken effect by now, or
//! never to. An explanation is still an explanation then. But if a return is not explained, a call
//! that was given up may be the reason, and the answer is [`OnlineError::GivenUp`], not a
//! violation. A call that has been running while very many others returned counts as indeterminate
//! (*overdue*); if it returns later, its return is ignored.
//!
//! [`weak`] judges calls by the weak models, with engines of its own.
//!
//! Cost per return: the number of configurations times the ways in which running calls may take
//! effect, in the worst case exponential in the number of concurrent calls and of different
//! indeterminate calls. If there are too many configurations, indeterminate calls are given up; if
//! that does not help, the answer is [`OnlineError::TooMany`].

mod call_log;
mod clusters;
mod collection;
mod configurations;
mod engine;
mod weak;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use consistory_history::Value;
use consistory_spec::{CallError, Family, Object, Returns, State};
use consistory_verdict::Stopped;
use rustc_hash::{FxHashMap, FxHashSet};

use self::clusters::Clusters;
use self::collection::Collection;
use self::configurations::Configurations;
use self::engine::{
    Access, Certainty, Completed, Ending, Engine, EngineSize, Incoming, Rest, Taken,
};
pub use self::weak::{WeakOnline, WeakOptions, WeakSize};

/// Limits of online checking.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnlineOptions {
    /// Largest number of configurations of a part.
    pub configurations: usize,
    /// Whether the object is judged as a whole even if its calls are confined to parts.
    pub whole: bool,
    /// Largest number of different indeterminate calls of a part; beyond it the first ones are
    /// given up. If they are costly, fewer are kept, down to four.
    pub pending: usize,
    /// Number of other calls that may return while one is running, before it counts as
    /// indeterminate; fewer if there are too many configurations.
    pub overdue: u64,
}

impl Default for OnlineOptions {
    fn default() -> Self {
        OnlineOptions { configurations: 100_000, whole: false, pending: 64, overdue: 10_000 }
    }
}

/// A call that is running.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RunningId(u64);

/// Reason why a call was rejected, or why there is no verdict.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OnlineError {
    /// The object has no such call.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A call concerns the whole of an object that is judged part by part.
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
        /// Number of calls kept.
        calls: usize,
    },
    /// A return is not explained, but calls that were given up might explain it.
    #[error(
        "nothing explains it, unless an indeterminate call took effect after it was given up \
         ({calls} given up so far)"
    )]
    GivenUp {
        /// Number of calls given up.
        calls: u64,
    },
    /// A return is not explained if all later calls see the calls that were forgotten.
    #[error(
        "nothing explains it if every call sees the {calls} oldest calls, which were forgotten"
    )]
    Forgotten {
        /// Number of calls forgotten or given up.
        calls: u64,
    },
    /// The search for an explanation stopped.
    #[error("{0}")]
    Stopped(Stopped),
    /// The call is not running.
    #[error("no such call is running")]
    NotRunning,
}

/// A return without an explanation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inexplicable {
    /// The call: the one that returned last, or one of those that were [unjudged](Online::unjudged).
    pub call: RunningId,
    /// A few values that the call could have returned.
    pub possible: Vec<Value>,
    /// The part of the object, if it has parts.
    pub part: Option<Value>,
    /// Number of configurations that explained the past before this return.
    pub configurations: usize,
}

/// The amount of stored data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OnlineSize {
    /// Number of configurations of all parts.
    pub configurations: usize,
    /// Largest number of configurations that a part has had.
    pub most: usize,
    /// Number of parts.
    pub parts: usize,
    /// Number of running calls.
    pub running: usize,
    /// Number of indeterminate calls.
    pub pending: usize,
    /// Number of other stored calls and values of registers.
    pub kept: usize,
    /// Number of calls given up although their effect might matter.
    pub given_up: u64,
    /// Number of calls that ran so long that their returns are ignored.
    pub overdue: u64,
}

/// Judges the calls of an object online.
pub struct Online {
    object: Arc<dyn Object>,
    options: OnlineOptions,
    parts: FxHashMap<Option<Value>, PartState>,
    /// The methods that [`PartState::After`] refers to.
    methods: Vec<Box<str>>,
    /// Whether calls are confined to parts; set by the first call.
    has_parts: Option<bool>,
    /// The running calls, the oldest first.
    running: BTreeMap<RunningId, Running>,
    /// The running calls that count as indeterminate.
    overdue: FxHashSet<RunningId>,
    /// Number of calls that ever counted as indeterminate.
    were_overdue: u64,
    given_up: GivenUp,
    /// Parts with indeterminate calls, in the order in which they got their first one.
    lossy: VecDeque<Option<Value>>,
    /// The number of returns.
    returns: u64,
    /// The id of the next call.
    next: u64,
    /// Largest number of configurations that a part has had.
    most: usize,
}

/// A running call: its part, and how many calls had returned when it was made.
struct Running {
    part: Option<Value>,
    since: u64,
}

/// The calls that were given up.
#[derive(Default)]
struct GivenUp {
    calls: u64,
    /// The parts whose violations are in doubt, as long as these are not too many.
    parts: FxHashSet<Option<Value>>,
    is_everywhere: bool,
}

impl GivenUp {
    /// Records that violations of a part are in doubt.
    fn doubt(&mut self, part: &Option<Value>) {
        self.is_everywhere |= self.parts.len() >= MAX_DOUBTFUL_PARTS;
        if !self.is_everywhere {
            self.parts.insert(part.clone());
        }
    }

    fn concerns(&self, part: &Option<Value>) -> bool {
        self.is_everywhere || self.parts.contains(part)
    }
}

/// A part of an object, or the whole object.
enum PartState {
    Active(Box<dyn Engine>),
    /// The possible states, if no call may still take effect.
    States(Box<[State]>),
    /// The state after a first call: the number of its method, and its argument after the key.
    After(u32, Option<Box<Value>>),
    /// The value of a register, if no call may still take effect.
    Holds(Value),
}

impl PartState {
    fn size(&self) -> EngineSize {
        let (configurations, kept) = match self {
            PartState::Active(engine) => return engine.size(),
            PartState::States(states) => (states.len(), 0),
            PartState::After(..) => (1, 0),
            PartState::Holds(_) => (0, 1),
        };
        EngineSize { configurations, kept, indeterminate: 0 }
    }
}

/// Number of other calls that return before a running one counts as indeterminate, if there are too
/// many configurations.
const RETURNS_UNTIL_HUNG: u64 = 100;
/// Largest number of parts recorded to be in doubt.
const MAX_DOUBTFUL_PARTS: usize = 10_000;
/// Largest number of parts with indeterminate calls.
const MAX_LOSSY_PARTS: usize = 1 << 14;
/// Number of parts above which an idle register is stored as its value only.
const PARTS_KEPT_ACTIVE: usize = 64;
/// Number of different indeterminate calls that are kept whatever their cost.
const INDETERMINATE_ALWAYS_KEPT: usize = 4;
/// Number of different indeterminate calls kept when clusters fall back to configurations.
const INDETERMINATE_KEPT_IN_FALLBACK: usize = 16;
/// The number of values that an explanation lists.
const VALUES_LISTED: usize = 20;
/// Largest number of configurations if there is another engine.
const MAX_CONFIGURATIONS_BEFORE_FALLBACK: usize = 2000;
/// Size up to which engines check their invariants in debug builds.
const MAX_PARTS_CHECKED: usize = 64;

impl Online {
    /// Starts with no call.
    pub fn new(object: Arc<dyn Object>, options: OnlineOptions) -> Self {
        Online {
            object,
            options,
            parts: FxHashMap::default(),
            methods: Vec::new(),
            has_parts: None,
            running: BTreeMap::new(),
            overdue: FxHashSet::default(),
            were_overdue: 0,
            given_up: GivenUp::default(),
            lossy: VecDeque::new(),
            returns: 0,
            next: 0,
            most: 1,
        }
    }

    /// Adds a call.
    pub fn invoke(&mut self, method: &str, args: Vec<Value>) -> Result<RunningId, OnlineError> {
        let resolved = self.object.resolve(method, args.len())?;
        let returns = resolved.map_or(Returns::Value, |method| method.returns);
        let name: Box<str> = resolved.map_or_else(|| method.into(), |method| method.name.clone());
        // After a call that concerns the whole object, it is judged as a whole.
        let part = match self.options.whole || self.has_parts == Some(false) {
            true => None,
            false => self.object.part(&name, &args),
        };
        // Parts are independent objects only as long as every call is confined to one.
        if *self.has_parts.get_or_insert(part.is_some()) != part.is_some() {
            return Err(OnlineError::Whole { method: method.to_owned() });
        }
        let id = RunningId(self.next);
        self.next += 1;
        self.running.insert(id, Running { part: part.clone(), since: self.returns });
        let call = Incoming { method: &name, args: &args, returns };
        if self.activate(&part).invoke(id, &call) == Taken::No {
            self.fall_back(&part)?;
            self.activate(&part).invoke(id, &call);
        }
        self.check_invariants(&part);
        Ok(id)
    }

    /// Builds the first engine for a part.
    fn first_engine(&self, part: &Option<Value>) -> Box<dyn Engine> {
        let family = self.object.family();
        let is_register = match family {
            Some(Family::Register(_)) => true,
            // A store is a register for each key.
            Some(Family::Store(_)) => part.is_some(),
            _ => false,
        };
        if let Some(clusters) = family.filter(|_| is_register).as_ref().and_then(Clusters::of) {
            return Box::new(clusters);
        }
        let OnlineOptions { pending, configurations, .. } = self.options;
        match Collection::new(&self.object, pending, configurations) {
            Some(collection) if part.is_none() => Box::new(collection),
            _ => Box::new(Configurations::new(&self.object, pending)),
        }
    }

    /// Returns the engine of a part; creates or restores it if needed.
    fn activate(&mut self, name: &Option<Value>) -> &mut dyn Engine {
        let most = self.options.pending;
        let engine: Box<dyn Engine> = match self.parts.remove(name) {
            Some(PartState::Active(engine)) => engine,
            None => self.first_engine(name),
            Some(PartState::States(states)) => {
                Box::new(Configurations::with_states(&self.object, most, states))
            }
            Some(PartState::After(method, value)) => {
                let args = name.iter().cloned().chain(value.map(|value| *value)).collect();
                let method = &self.methods[method as usize];
                Box::new(Configurations::after(&self.object, most, method, args))
            }
            Some(PartState::Holds(value)) => match self.object.family() {
                Some(family) => Box::new(Clusters::holding(&family, value)),
                None => self.first_engine(name),
            },
        };
        let part = self.parts.entry(name.clone()).or_insert(PartState::Active(engine));
        match part {
            PartState::Active(engine) => &mut **engine,
            _ => unreachable!("it was just made active"),
        }
    }

    /// Replaces the engine of a part that no longer behaves like a register by configurations.
    fn fall_back(&mut self, name: &Option<Value>) -> Result<(), OnlineError> {
        let past = self.activate(name).calls();
        self.note_given_up(name);
        let (read, write) = match name {
            None => ("read", "write"),
            Some(_) => ("get", "put"),
        };
        // Calls precede returns with the same time, and each keeps its position among the calls.
        let mut events: Vec<(i64, bool, usize)> = Vec::new();
        for (at, call) in past.iter().enumerate() {
            events.push((call.start, false, at));
            match call.end {
                Ending::At(end) => events.push((end, true, at)),
                Ending::Indeterminate => events.push((call.start, true, at)),
                Ending::Running => {}
            }
        }
        events.sort_unstable();
        let mut all = Configurations::new(&self.object, self.options.pending);
        for (_, is_end, at) in events {
            let call = &past[at];
            // Running calls keep their ids; others get ids that will never be used.
            let id = call.id.unwrap_or(RunningId(u64::MAX - at as u64));
            if is_end && call.end == Ending::Indeterminate {
                all.abandon(id);
            } else if is_end {
                let limit = self.options.configurations;
                if all.complete(id, call.returns.as_ref(), limit)? == Completed::TooMany {
                    return Err(OnlineError::TooMany { limit });
                }
            } else {
                let (method, value) = match &call.access {
                    Access::Read => (read, None),
                    Access::Write(value) => (write, Some(value.clone())),
                };
                let args = name.clone().into_iter().chain(value).collect::<Vec<Value>>();
                let resolved = self.object.resolve(method, args.len())?;
                let returns = resolved.map_or(Returns::Value, |method| method.returns);
                all.invoke(id, &Incoming { method, args: &args, returns });
            }
        }
        self.parts.insert(name.clone(), PartState::Active(Box::new(all)));
        self.note_given_up(name);
        Ok(())
    }

    /// Processes the return of a call with its recorded value; reports a violation if nothing
    /// explains it.
    ///
    /// After a violation no past remains to judge by: the part starts again with the running calls,
    /// and an engine without configurations reports nothing further.
    pub fn complete(
        &mut self,
        id: RunningId,
        returned: Option<Value>,
    ) -> Result<Option<Inexplicable>, OnlineError> {
        if self.overdue.remove(&id) {
            return Ok(None);
        }
        let name = self.running.remove(&id).ok_or(OnlineError::NotRunning)?.part;
        let completed = self.judge(id, &name, returned.as_ref())?;
        self.note_given_up(&name);
        if let Some(part) = self.parts.get(&name) {
            self.most = self.most.max(part.size().configurations);
        }
        self.forget_idle(&name);
        self.returns += 1;
        while let Some((&oldest, running)) = self.running.first_key_value()
            && self.returns - running.since > self.options.overdue
        {
            self.count_as_overdue(oldest)?;
        }
        self.report(completed, name)
    }

    /// Passes a return to the engine of a part. If there are too many configurations, indeterminate
    /// calls are given up, and calls that have been running for long count as indeterminate, one by
    /// one.
    fn judge(
        &mut self,
        id: RunningId,
        name: &Option<Value>,
        returned: Option<&Value>,
    ) -> Result<Completed, OnlineError> {
        let all = self.options.configurations;
        loop {
            let hung = self.hung(name);
            let engine = self.activate(name);
            let limit = match hung.is_some() || engine.has_alternative() {
                true => all.min(MAX_CONFIGURATIONS_BEFORE_FALLBACK),
                false => all,
            };
            match engine.complete(id, returned, limit)? {
                Completed::TooMany if engine.give_up_one() => {}
                Completed::TooMany => match hung {
                    Some(hung) => self.count_as_overdue(hung)?,
                    None => return Err(OnlineError::TooMany { limit: all }),
                },
                completed => {
                    self.check_invariants(name);
                    return Ok(completed);
                }
            }
        }
    }

    /// Converts the result of an engine to the result that is reported.
    fn report(
        &self,
        completed: Completed,
        part: Option<Value>,
    ) -> Result<Option<Inexplicable>, OnlineError> {
        match completed {
            Completed::Explained => Ok(None),
            Completed::TooMany => Err(OnlineError::TooMany { limit: self.options.configurations }),
            Completed::Unexplained { certainty, .. }
                if certainty == Certainty::Doubtful || self.given_up.concerns(&part) =>
            {
                Err(OnlineError::GivenUp { calls: self.given_up.calls })
            }
            Completed::Unexplained { call, possible, configurations, .. } => {
                Ok(Some(Inexplicable { call, possible, part, configurations }))
            }
        }
    }

    /// Adds the calls that an engine gave up to the total.
    fn note_given_up(&mut self, name: &Option<Value>) {
        if let Some(PartState::Active(engine)) = self.parts.get_mut(name) {
            let given_up = engine.take_given_up();
            self.given_up.calls += given_up.count;
            if given_up.casts_doubt {
                self.given_up.doubt(name);
            }
        }
    }

    /// Drops a part in its initial state. Reduces an idle key, for which no call may still take
    /// effect, to its value.
    fn forget_idle(&mut self, name: &Option<Value>) {
        let is_one_of_many = self.parts.len() > PARTS_KEPT_ACTIVE;
        let Some(PartState::Active(engine)) = self.parts.get(name) else { return };
        if engine.is_initial() {
            self.parts.remove(name);
            return;
        }
        let Some(rest) = name.as_ref().and_then(|key| engine.rest(key)) else { return };
        let part = match rest {
            Rest::States(states) => PartState::States(states),
            Rest::After(method, value) => {
                let known = self.methods.iter().position(|known| **known == *method);
                let number = known.unwrap_or_else(|| {
                    self.methods.push(method);
                    self.methods.len() - 1
                });
                PartState::After(number as u32, value.map(Box::new))
            }
            Rest::Holds(value) if is_one_of_many => PartState::Holds(value),
            Rest::Holds(_) => return,
        };
        self.parts.insert(name.clone(), part);
    }

    /// Counts a running call as indeterminate.
    fn count_as_overdue(&mut self, id: RunningId) -> Result<(), OnlineError> {
        self.abandon(id)?;
        self.overdue.insert(id);
        self.were_overdue += 1;
        Ok(())
    }

    /// Finds the oldest call of a part, if it has been running for long.
    fn hung(&self, part: &Option<Value>) -> Option<RunningId> {
        let (&id, running) = self.running.iter().find(|(_, running)| running.part == *part)?;
        (self.returns - running.since > RETURNS_UNTIL_HUNG).then_some(id)
    }

    /// Ends the stream: judges the returns that are not judged yet.
    pub fn finish(&mut self) -> Result<Option<Inexplicable>, OnlineError> {
        let Some(PartState::Active(engine)) = self.parts.get_mut(&None) else { return Ok(None) };
        let completed = engine.finish()?;
        self.note_given_up(&None);
        self.report(completed, None)
    }

    /// Returns the number of the last returns that are not judged yet: after many calls that
    /// overlap, returns are judged several at a time.
    pub fn unjudged(&self) -> usize {
        match self.parts.get(&None) {
            Some(PartState::Active(engine)) => engine.unjudged(),
            _ => 0,
        }
    }

    /// Records that a call had no effect.
    pub fn fail(&mut self, id: RunningId) -> Result<(), OnlineError> {
        if self.overdue.remove(&id) {
            return Ok(());
        }
        let name = self.running.remove(&id).ok_or(OnlineError::NotRunning)?.part;
        self.activate(&name).fail(id);
        self.note_given_up(&name);
        self.forget_idle(&name);
        Ok(())
    }

    /// Records that a call is indeterminate.
    pub fn abandon(&mut self, id: RunningId) -> Result<(), OnlineError> {
        if self.overdue.remove(&id) {
            return Ok(());
        }
        let name = self.running.remove(&id).ok_or(OnlineError::NotRunning)?.part;
        self.activate(&name).abandon(id);
        self.keep_indeterminate(&name, self.options.pending);
        self.check_invariants(&name);
        self.forget_idle(&name);
        let is_first = self.parts.get(&name).is_some_and(|part| part.size().indeterminate == 1);
        if is_first && name.is_some() {
            self.lossy.push_back(name);
        }
        if self.lossy.len() > MAX_LOSSY_PARTS
            && let Some(first) = self.lossy.pop_front()
        {
            self.keep_indeterminate(&first, 0);
            self.forget_idle(&first);
        }
        Ok(())
    }

    /// Gives up the oldest indeterminate calls of a part until at most `most` different ones are
    /// left.
    fn keep_indeterminate(&mut self, name: &Option<Value>, most: usize) {
        if let Some(PartState::Active(engine)) = self.parts.get_mut(name) {
            engine.keep_indeterminate(most);
        }
        self.note_given_up(name);
    }

    /// Asserts, in debug builds, the invariants of a part's engine, if it is small.
    fn check_invariants(&self, name: &Option<Value>) {
        if cfg!(debug_assertions)
            && let Some(PartState::Active(engine)) = self.parts.get(name)
            && engine.size().kept + engine.size().configurations < MAX_PARTS_CHECKED
        {
            engine.check_invariants();
        }
    }

    /// Returns the amount of stored data.
    pub fn size(&self) -> OnlineSize {
        let sum =
            |of: fn(EngineSize) -> usize| self.parts.values().map(|part| of(part.size())).sum();
        OnlineSize {
            configurations: sum(|size| size.configurations),
            most: self.most,
            parts: self.parts.len(),
            running: self.running.len(),
            pending: sum(|size| size.indeterminate),
            kept: sum(|size| size.kept),
            given_up: self.given_up.calls,
            overdue: self.were_overdue,
        }
    }
}
