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
//! [`configurations`] has what keeps the sets small. Some objects need none: a register is judged by
//! its values ([`clusters`]), key by key in a store; and queues, stacks and priority queues go on
//! without configurations where these are too many ([`record`]).
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
//! [`OnlineError::TooMany`].

mod clusters;
mod configurations;
mod record;
mod sums;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use consistory_history::Value;
use consistory_spec::{CallError, Family, Object, Returns, State};
use rustc_hash::{FxHashMap, FxHashSet};

use self::clusters::{Access, Clusters, Ending, Stale};
use self::configurations::Configurations;
use self::record::{MOST_KEPT, Record, Wrong};
use self::sums::{Event, Motion, Sums};

/// How to judge calls as they come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnlineOptions {
    /// How many configurations a part may have.
    pub configurations: usize,
    /// Whether the object is judged as a whole even if its calls are confined to parts.
    pub whole: bool,
    /// How many different calls that nobody knows the end of a part may have; beyond that the first
    /// ones are given up. They are earlier, down to four, if they are much work.
    pub pending: usize,
    /// How many other calls may return while one is running, before it counts as one that nobody
    /// knows the end of; fewer if there are too many configurations.
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
    /// The calls that are kept beside, and the values of registers.
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
    /// The methods that made parts what they are.
    methods: Vec<Box<str>>,
    /// Whether calls are confined to parts, once one was taken.
    has_parts: Option<bool>,
    /// The running calls, the oldest first.
    running: BTreeMap<RunningId, Running>,
    /// Running calls that count as those that nobody knows the end of, and how many there were.
    overdue: FxHashSet<RunningId>,
    were_overdue: u64,
    given_up: GivenUp,
    /// Parts with calls that nobody knows the end of, in the order in which there were some.
    lossy: VecDeque<Option<Value>>,
    returns: u64,
    next: u64,
    most: usize,
    /// The calls of a collection, as long as they can be judged without configurations.
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
        self.concern(part);
    }

    fn concern(&mut self, part: &Option<Value>) {
        self.is_everywhere |= self.parts.len() >= MOST_PARTS;
        if !self.is_everywhere {
            self.parts.insert(part.clone());
        }
    }

    fn concerns(&self, part: &Option<Value>) -> bool {
        self.is_everywhere || self.parts.contains(part)
    }
}

/// A part of an object, or all of it.
enum Part {
    Values(Box<Clusters>),
    Sums(Box<Sums>),
    Configurations(Box<Configurations>),
    /// The states that are possible where nothing may still take effect.
    Quiet(Box<[State]>),
    /// The same if there is one, and a call leads there at first: its method's number, and its
    /// argument behind the key, if it has one.
    Made(u32, Option<Box<Value>>),
    /// What a register holds where nothing may still take effect.
    Holds(Value),
}

impl Part {
    /// Starts with nothing called.
    fn new(object: &dyn Object, name: &Option<Value>) -> Self {
        match object.family() {
            Some(Family::Register(initial)) => Part::Values(Box::new(Clusters::new(initial))),
            // A store is a register for each key.
            Some(Family::Store(initial)) if name.is_some() => {
                Part::Values(Box::new(Clusters::new(initial)))
            }
            Some(Family::Counter(initial)) => Part::Sums(Box::new(Sums::new(initial))),
            _ => Part::Configurations(Box::new(Configurations::new(object))),
        }
    }

    /// Counts the configurations.
    fn configurations(&self) -> usize {
        match self {
            Part::Values(_) | Part::Holds(_) => 0,
            Part::Made(..) => 1,
            Part::Sums(sums) => sums.len(),
            Part::Configurations(all) => all.len(),
            Part::Quiet(states) => states.len(),
        }
    }

    /// Counts the calls that nobody knows the end of.
    fn pending_calls(&self) -> usize {
        match self {
            Part::Values(values) => values.lost_calls(),
            Part::Sums(sums) => sums.pending_calls(),
            Part::Configurations(all) => all.pending_calls(),
            Part::Quiet(_) | Part::Made(..) | Part::Holds(_) => 0,
        }
    }

    /// Says whether the part is as it was at first.
    fn is_idle(&self) -> bool {
        match self {
            Part::Values(values) => values.is_idle(),
            Part::Configurations(all) => all.is_idle(),
            Part::Sums(_) | Part::Quiet(_) | Part::Made(..) | Part::Holds(_) => false,
        }
    }
}

/// How many other calls return before one that is running counts as one that nobody knows the end of
/// if there are too many configurations.
const HUNG: u64 = 100;
/// How many parts are remembered to have had calls that were given up.
const MOST_PARTS: usize = 10_000;
/// How many parts have calls that nobody knows the end of.
const MOST_LOSSY: usize = 1 << 14;
/// How many registers there are before of those that are left alone only the value is kept.
const SOME_PARTS: usize = 64;
/// How many different calls that nobody knows the end of are kept whatever work they are, and where a
/// register turns out to be none.
const FEW_PENDING: usize = 4;
const SOME_PENDING: usize = 16;
/// How many values an explanation lists.
const FEW: usize = 20;
/// How many configurations there may be where there is another way to judge.
const MANY: usize = 2000;

impl Online {
    /// Starts with nothing called.
    pub fn new(object: Arc<dyn Object>, options: OnlineOptions) -> Self {
        Online {
            record: Record::new(&object),
            is_without: false,
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
        let id = RunningId(self.next);
        self.next += 1;
        if self.record.as_mut().is_some_and(|record| !record.invoke(id, &name, &args)) {
            self.without_record()?;
        }
        self.running.insert(id, Running { part: part.clone(), since: self.returns });
        if self.is_without {
            return Ok(id);
        }
        let object = &*self.object;
        let known = self.parts.entry(part.clone()).or_insert_with(|| Part::new(object, &part));
        match known {
            Part::Quiet(states) => {
                let all = Configurations::with_states(object, std::mem::take(states));
                *known = Part::Configurations(Box::new(all));
            }
            Part::Made(method, value) => {
                let args = part.iter().cloned().chain(value.take().map(|value| *value)).collect();
                let all = Configurations::made(object, &self.methods[*method as usize], args);
                *known = Part::Configurations(Box::new(all));
            }
            Part::Holds(value) => {
                let value = std::mem::replace(value, Value::Null);
                *known = Part::Values(Box::new(Clusters::holding(value)));
            }
            _ => {}
        }
        if let Part::Values(values) = known {
            let family = object.family();
            let access = family.and_then(|family| Access::new(&family, &name, &args));
            if access.is_some_and(|access| values.invoke(id, access)) {
                return Ok(id);
            }
            self.turn_into_configurations(&part)?;
        } else if let Part::Sums(sums) = known {
            if let Some(motion) = Motion::new(&name, &args) {
                sums.invoke(id, motion);
                return Ok(id);
            }
            self.turn_from_sums(&part)?;
        }
        if let Some(Part::Configurations(all)) = self.parts.get_mut(&part) {
            all.invoke(&*self.object, id, (&name, args), returns);
        }
        Ok(id)
    }

    /// Goes on with configurations where a part is not like a register any more.
    fn turn_into_configurations(&mut self, name: &Option<Value>) -> Result<(), OnlineError> {
        let Some(Part::Values(values)) = self.parts.get_mut(name) else { return Ok(()) };
        let object = &*self.object;
        let many = values.keep_lost(self.options.pending.min(SOME_PENDING));
        self.given_up.calls += many;
        if values.given_up() > 0 {
            self.given_up.concern(name);
        }
        let (read, write) = match name {
            None => ("read", "write"),
            Some(_) => ("get", "put"),
        };
        // Calls before returns where they meet, and each its place among the calls.
        let told = values.calls();
        let mut events: Vec<(i64, bool, usize)> = Vec::new();
        for (at, call) in told.iter().enumerate() {
            events.push((call.start, false, at));
            match call.end {
                Ending::At(end) => events.push((end, true, at)),
                Ending::Lost => events.push((call.start, true, at)),
                Ending::Running => {}
            }
        }
        events.sort_unstable();
        let mut all = Configurations::new(object);
        for (_, is_end, at) in events {
            let call = &told[at];
            // Calls that are running have their own ids, and others none that there will be.
            let id = call.id.unwrap_or(RunningId(u64::MAX - at as u64));
            if is_end && call.end == Ending::Lost {
                all.abandon(object, id);
            } else if is_end {
                all.complete(object, id, call.returns.clone(), self.options.configurations)?;
            } else {
                let value = match &call.access {
                    Access::Read => None,
                    Access::Write(value) => Some(value.clone()),
                };
                let method = if value.is_some() { write } else { read };
                let args = name.clone().into_iter().chain(value).collect::<Vec<Value>>();
                let resolved = object.resolve(method, args.len())?;
                let returns = resolved.map_or(Returns::Value, |method| method.returns);
                all.invoke(object, id, (method, args), returns);
            }
        }
        self.parts.insert(name.clone(), Part::Configurations(Box::new(all)));
        Ok(())
    }

    /// Goes on with configurations where a counter is called otherwise than to add.
    fn turn_from_sums(&mut self, name: &Option<Value>) -> Result<(), OnlineError> {
        let Some(Part::Sums(sums)) = self.parts.get(name) else { return Ok(()) };
        let object = &*self.object;
        let limit = self.options.configurations;
        let told = sums.told().ok_or(OnlineError::TooMany { limit })?;
        let state = |value: i64| {
            let mut state = object.initial();
            object.invoke(&mut state, "set", &[Value::Int(value)]);
            state
        };
        let pool = told.pool.iter().map(|&(amount, count)| (vec![Value::Int(amount)], count));
        let values = told.values.into_iter().map(|(value, used)| (state(value), used));
        let mut all = Configurations::with_used(object, "add", pool, values);
        let inert = sums.inert().map(|id| Event::Invoke(id, Motion::NONE));
        for event in inert.chain(told.events) {
            match event {
                Event::Invoke(id, motion) => {
                    let (method, args) = motion.call();
                    let resolved = object.resolve(method, args.len())?;
                    let returns = resolved.map_or(Returns::Value, |method| method.returns);
                    all.invoke(object, id, (method, args), returns);
                }
                Event::Complete(id, wanted) => {
                    all.complete(object, id, wanted.value().map(Value::Int), limit)?;
                }
                Event::Fail(id) => all.fail(id),
                Event::Abandon(id) => all.abandon(object, id),
            }
        }
        self.parts.insert(name.clone(), Part::Configurations(Box::new(all)));
        self.keep_pending(name, self.options.pending);
        Ok(())
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
        if self.is_without {
            return self.check_record(false);
        }
        if let Some(Part::Sums(_)) = self.parts.get(&name) {
            return self.judge_by_sums(id, name, returned);
        }
        let Some(Part::Values(values)) = self.parts.get_mut(&name) else {
            return self.judge_by_configurations(id, name, returned);
        };
        let wrong = values.complete(id, returned.as_ref());
        self.forget_idle(&name);
        match wrong {
            Some(Stale { is_certain: false, .. }) => {
                Err(OnlineError::GivenUp { calls: self.given_up.calls })
            }
            wrong => Ok(wrong.map(|Stale { possible, .. }| Inexplicable {
                call: id,
                possible,
                part: name,
                configurations: 0,
            })),
        }
    }

    /// Judges a counter; if there are too many configurations, calls that run for long count as those
    /// that nobody knows the end of.
    fn judge_by_sums(
        &mut self,
        id: RunningId,
        name: Option<Value>,
        returned: Option<Value>,
    ) -> Result<Option<Inexplicable>, OnlineError> {
        let (before, possible) = loop {
            let hung = self.hung(&name);
            let Some(Part::Sums(sums)) = self.parts.get_mut(&name) else {
                return Err(OnlineError::NotRunning);
            };
            let limit = match hung {
                Some(_) => self.options.configurations.min(MANY),
                None => self.options.configurations,
            };
            let before = sums.len();
            let possible = sums.complete(id, returned.as_ref(), limit);
            let is_long = sums.is_long();
            self.most = self.most.max(sums.len());
            self.note_given_up(&name);
            match (possible, hung) {
                (Err(OnlineError::TooMany { .. }), Some(hung)) => self.count_as_overdue(hung)?,
                (Ok(possible), hung) => {
                    hung.filter(|_| is_long).map_or(Ok(()), |hung| self.count_as_overdue(hung))?;
                    break (before, possible);
                }
                (Err(error), _) => return Err(error),
            }
        };
        Ok(possible.map(|possible| Inexplicable {
            call: id,
            possible,
            part: name,
            configurations: before,
        }))
    }

    /// Notes what a counter has given up.
    fn note_given_up(&mut self, name: &Option<Value>) {
        if let Some(Part::Sums(sums)) = self.parts.get_mut(name) {
            let calls = sums.take_given_up();
            self.given_up.calls += calls;
            if calls > 0 {
                self.given_up.concern(name);
            }
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
            let Some(Part::Configurations(part)) = self.parts.get_mut(&name) else {
                return Err(OnlineError::NotRunning);
            };
            let before = part.len();
            // Where there is another way, there is no need for very many.
            let has_pending = part.pending_calls() > 0;
            let has_other = self.record.is_some() || has_pending || hung.is_some();
            let limit = match has_other {
                true => self.options.configurations.min(MANY),
                false => self.options.configurations,
            };
            match part.complete(&*self.object, id, returned.clone(), limit) {
                Err(OnlineError::TooMany { .. }) if has_other => {}
                possible => {
                    let possible = possible?;
                    let few = FEW_PENDING.min(self.options.pending);
                    if part.is_costly() && part.pending_kinds() > few && part.give_up(&*self.object)
                    {
                        self.given_up.add(&name);
                    }
                    break (before, possible);
                }
            }
            if self.record.is_some() {
                self.is_without = true;
                self.parts.clear();
                return self.check_record(true);
            }
            if !has_pending {
                hung.into_iter().try_for_each(|hung| self.count_as_overdue(hung))?;
            } else if part.give_up(&*self.object) {
                self.given_up.add(&name);
            }
        };
        if let Some(part) = self.parts.get(&name) {
            self.most = self.most.max(part.configurations());
        }
        self.forget_idle(&name);
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

    /// Forgets a part that is as it was at first, and of one of many in which nothing may still take
    /// effect all but the states.
    fn forget_idle(&mut self, name: &Option<Value>) {
        let is_one_of_many = self.parts.len() > SOME_PARTS;
        let Some(part) = self.parts.get_mut(name) else { return };
        let Some(key) = name else {
            if part.is_idle() {
                self.parts.remove(name);
            }
            return;
        };
        match part {
            part if part.is_idle() => _ = self.parts.remove(name),
            Part::Configurations(all) => {
                *part = match (all.maker(key), all.states()) {
                    (Some((method, value)), _) => {
                        let known = self.methods.iter().position(|known| **known == *method);
                        let number = known.unwrap_or(self.methods.len());
                        if number == self.methods.len() {
                            self.methods.push(method.into());
                        }
                        Part::Made(number as u32, value.cloned().map(Box::new))
                    }
                    (None, Some(states)) => Part::Quiet(states),
                    (None, None) => return,
                }
            }
            Part::Values(values) if is_one_of_many => {
                if let Some(value) = values.held() {
                    *part = Part::Holds(value.clone());
                }
            }
            _ => {}
        }
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
        match self.parts.get_mut(&name) {
            Some(Part::Values(values)) => values.fail(id),
            Some(Part::Sums(sums)) => {
                sums.fail(id, self.options.configurations)?;
                self.note_given_up(&name);
            }
            Some(Part::Configurations(part)) => part.fail(id),
            _ => {}
        }
        self.forget_idle(&name);
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
        match self.parts.get_mut(&name) {
            Some(Part::Values(values)) => self.given_up.calls += u64::from(values.abandon(id)),
            Some(Part::Sums(sums)) => {
                sums.abandon(id);
                self.note_given_up(&name);
            }
            Some(Part::Configurations(part)) => {
                part.abandon(&*self.object, id);
                let few = FEW_PENDING.min(self.options.pending);
                if part.pending_calls() > few && self.record.is_some() {
                    // The calls themselves say more than configurations without it would.
                    self.is_without = true;
                    self.parts.clear();
                }
            }
            _ => {}
        }
        self.keep_pending(&name, self.options.pending);
        self.forget_idle(&name);
        if self.parts.get(&name).is_some_and(|part| part.pending_calls() == 1) && name.is_some() {
            self.lossy.push_back(name);
        }
        if self.lossy.len() > MOST_LOSSY
            && let Some(first) = self.lossy.pop_front()
        {
            self.keep_pending(&first, 0);
            self.forget_idle(&first);
        }
        Ok(())
    }

    /// Gives up the first calls of a part that nobody knows the end of, until so many different ones
    /// are left.
    fn keep_pending(&mut self, name: &Option<Value>, most: usize) {
        match self.parts.get_mut(name) {
            Some(Part::Configurations(part)) => {
                while part.pending_kinds() > most {
                    if part.give_up(&*self.object) {
                        self.given_up.add(name);
                    }
                }
            }
            Some(Part::Values(values)) if most == 0 => {
                self.given_up.calls += values.keep_lost(0);
                // The values themselves may be forgotten behind it.
                self.given_up.concern(name);
            }
            _ => {}
        }
    }

    /// Says how much is kept.
    pub fn size(&self) -> OnlineSize {
        let in_record = self.record.as_ref().map_or(0, Record::given_up);
        let values = self.parts.values().map(|part| match part {
            Part::Values(values) => values.len(),
            Part::Holds(_) => 1,
            _ => 0,
        });
        OnlineSize {
            configurations: self.parts.values().map(Part::configurations).sum(),
            most: self.most,
            parts: self.parts.len(),
            running: self.running.len(),
            pending: self.parts.values().map(Part::pending_calls).sum(),
            kept: self.record.as_ref().map_or(0, Record::len) + values.sum::<usize>(),
            given_up: self.given_up.calls + in_record,
            overdue: self.were_overdue,
        }
    }
}
