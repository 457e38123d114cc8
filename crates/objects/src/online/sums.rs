//! The calls of a counter as they come, by the amounts that they add.
//!
//! Calls that add commute, so whatever order they took effect in, the counter is at the sum of those
//! that did. Only those that show it, a `get` or an `incrementAndGet`, see which had done so. A
//! *configuration* is then a value, and which of the running calls took effect, with what they
//! return; and a return is explained as elsewhere ([`super::configurations`]), by running calls that
//! take effect first.
//!
//! *Calls that nobody knows the end of* are a multiset of amounts, the pool: of equal ones only how
//! many are left counts. They are not tried as long as there is an explanation without them, and that
//! costs nothing: say that at some time no call is running that shows the counter, and there is a
//! configuration in which no running call took effect. Whatever happened before, another
//! configuration of the same pool is the same with more calls that took effect. These can do so later
//! as well, so the one is enough, and the others are forgotten. Such a time is kept as the *base*,
//! and what happened since as a log.
//!
//! Where nothing explains a return, the log is judged again from the base, with what is known by now.
//! A call of which it is known what it showed says at which value it took effect, so some of the pool
//! may take effect right before it and bring the counter there. Of these only *bundles* matter of
//! which no part adds up to nothing ([`bundles`]): such a part can be left out. So a return is wrong
//! if and only if this explains it neither.
//!
//! Which calls of the pool took effect is often open for good: two of 1, or one of 2. So a base has
//! for each value that is possible a *front*, the least multisets that took effect. What took effect
//! in all of them is forgotten.
//!
//! Cost: for each return the number of configurations times the running calls that may take effect
//! first, in the worst case exponential in the number of calls that run at once; and where lost calls
//! are needed, the log again. The bundles of a pool with many different amounts may be exponentially
//! many (it is the problem of subset sums); then only small ones are tried, and from then on nothing
//! is called wrong, see [`Sums::take_given_up`]. So it is if no base was found for very long.

use consistory_history::Value;
use rustc_hash::{FxHashMap, FxHashSet};

use self::moment::{Configuration, Fronts, Known, Moment, Wanted};
use super::{FEW, OnlineError, RunningId};

mod bundles;
mod moment;

/// The greatest amount; sums of these do not overflow.
const MOST_AMOUNT: u64 = 1 << 40;
/// How many different amounts the pool has at most.
const MOST_KINDS: usize = 1 << 12;
/// How long a log is before calls that run for long are in the way.
const LONG: usize = 1 << 9;
/// How long a log may be.
const LONGEST: usize = 1 << 13;
/// How many configurations there may be where lost calls take effect.
const MOST: usize = 20_000;
/// How many multisets a base has at most.
const MOST_USED: usize = 1 << 10;

/// What a call does to a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Motion {
    amount: i64,
    shows: Shows,
}

/// Which value a call shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shows {
    Nothing,
    Before,
    Behind,
}

impl Motion {
    /// Neither adds nor shows anything.
    pub(super) const NONE: Motion = Motion { amount: 0, shows: Shows::Nothing };

    /// Gives what a call does, if it is to add or to show.
    pub(super) fn new(method: &str, args: &[Value]) -> Option<Self> {
        let (amount, shows) = match (method, args) {
            ("get", []) => (0, Shows::Before),
            ("add", &[Value::Int(amount)]) => (amount, Shows::Nothing),
            ("subtract", &[Value::Int(amount)]) => (amount.checked_neg()?, Shows::Nothing),
            ("increment", []) => (1, Shows::Nothing),
            ("decrement", []) => (-1, Shows::Nothing),
            ("getAndAdd", &[Value::Int(amount)]) => (amount, Shows::Before),
            ("getAndSubtract", &[Value::Int(amount)]) => (amount.checked_neg()?, Shows::Before),
            ("getAndIncrement", []) => (1, Shows::Before),
            ("getAndDecrement", []) => (-1, Shows::Before),
            ("addAndGet", &[Value::Int(amount)]) => (amount, Shows::Behind),
            ("incrementAndGet", []) => (1, Shows::Behind),
            ("decrementAndGet", []) => (-1, Shows::Behind),
            _ => return None,
        };
        (amount.unsigned_abs() <= MOST_AMOUNT).then_some(Motion { amount, shows })
    }

    /// Gives a call that does it.
    pub(super) fn call(self) -> (&'static str, Vec<Value>) {
        let amount = vec![Value::Int(self.amount)];
        match (self.shows, self.amount) {
            (Shows::Nothing, _) => ("add", amount),
            (Shows::Before, 0) => ("get", Vec::new()),
            (Shows::Before, _) => ("getAndAdd", amount),
            (Shows::Behind, _) => ("addAndGet", amount),
        }
    }

    fn is_read_only(self) -> bool {
        self.amount == 0
    }

    /// Gives the value at which it takes effect if it shows another.
    fn starts_at(self, shown: i64) -> i64 {
        match self.shows {
            Shows::Behind => shown.wrapping_sub(self.amount),
            _ => shown,
        }
    }
}

/// What happens to a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Invoke(RunningId, Motion),
    Complete(RunningId, Wanted),
    Fail(RunningId),
    Abandon(RunningId),
}

/// Where a counter was at a base, for a part that is judged otherwise.
pub(super) struct Told<'a> {
    /// The amounts of the pool, and how many calls add each.
    pub(super) pool: &'a [(i64, u32)],
    /// The values that are possible, with how many of each amount took effect.
    pub(super) values: Vec<(i64, Vec<u32>)>,
    /// What was running, and what happened then.
    pub(super) events: Vec<Event>,
}

/// The calls of a counter.
pub(super) struct Sums {
    base: Moment,
    fronts: Fronts,
    log: Vec<Event>,
    now: Moment,
    /// Calls that neither add nor show anything.
    inert: FxHashSet<RunningId>,
    /// How long the log is to be before a base is looked for again.
    patience: usize,
    /// Whether the base has but values.
    is_plain: bool,
    /// How many calls were given up, and how many of these were told.
    given_up: u64,
    told_given_up: u64,
    initial: i64,
}

impl Sums {
    /// Starts at a value.
    pub(super) fn new(initial: i64) -> Self {
        let base = Moment::new([Configuration::new(initial, 0, 0)]);
        Sums {
            now: base.clone(),
            base,
            fronts: vec![vec![Vec::new()]],
            log: Vec::new(),
            inert: FxHashSet::default(),
            patience: 0,
            is_plain: true,
            given_up: 0,
            told_given_up: 0,
            initial,
        }
    }

    /// Counts the configurations.
    pub(super) fn len(&self) -> usize {
        self.now.set.len()
    }

    /// Counts the calls that nobody knows the end of.
    pub(super) fn pending_calls(&self) -> usize {
        self.now.pool.iter().map(|&(_, count)| count as usize).sum()
    }

    /// Counts the calls that were given up since this was asked: what they might have done is not all
    /// known.
    pub(super) fn take_given_up(&mut self) -> u64 {
        let fresh = self.given_up.saturating_sub(self.told_given_up);
        self.told_given_up += fresh;
        fresh
    }

    /// Says whether calls that run for long keep the log from being forgotten.
    pub(super) fn is_long(&self) -> bool {
        self.log.len() > LONG
    }

    /// Takes a call.
    pub(super) fn invoke(&mut self, id: RunningId, motion: Motion) {
        if motion == Motion::NONE {
            self.inert.insert(id);
            return;
        }
        self.now.invoke(id, motion, &Known::nothing());
        self.log.push(Event::Invoke(id, motion));
    }

    /// Takes that a call did not take effect.
    pub(super) fn fail(&mut self, id: RunningId, limit: usize) -> Result<(), OnlineError> {
        if self.inert.remove(&id) {
            return Ok(());
        }
        self.log.push(Event::Fail(id));
        self.now.fail(id);
        if self.now.set.is_empty() {
            self.again(limit)?;
        }
        self.settle();
        Ok(())
    }

    /// Takes that nobody will know the end of a call.
    pub(super) fn abandon(&mut self, id: RunningId) {
        if self.inert.remove(&id) {
            return;
        }
        self.log.push(Event::Abandon(id));
        self.now.abandon(id);
        self.settle();
    }

    /// Takes a return; gives what the call could have returned if nothing explains it.
    pub(super) fn complete(
        &mut self,
        id: RunningId,
        returned: Option<&Value>,
        limit: usize,
    ) -> Result<Option<Vec<Value>>, OnlineError> {
        if self.inert.remove(&id) {
            return Ok(None);
        }
        let motion = self.now.motion(id).ok_or(OnlineError::NotRunning)?;
        let wanted = match (motion.shows, returned) {
            (Shows::Nothing, _) | (_, None) => Wanted::Anything,
            (_, Some(&Value::Int(value))) => Wanted::Value(value),
            (_, Some(_)) => Wanted::Nothing,
        };
        let nothing = Known::nothing();
        let found = self.now.explain(&self.fronts, &nothing, (id, wanted), limit)?;
        if !found.is_empty() {
            self.log.push(Event::Complete(id, wanted));
            self.now.become_of(id, found, &self.fronts, &nothing);
            self.settle();
            return Ok(None);
        }
        let before = self.now.clone();
        self.log.push(Event::Complete(id, wanted));
        let again = self.again(limit);
        if again.is_ok() && !self.now.set.is_empty() {
            self.settle();
            return Ok(None);
        }
        // The call is as it was, with whatever it may return.
        self.log.pop();
        self.now = before;
        again?;
        let possible = self.possible(id, motion, limit);
        let any = (id, Wanted::Anything);
        let found = self.now.explain(&self.fronts, &nothing, any, limit).unwrap_or_default();
        self.log.push(Event::Complete(id, Wanted::Anything));
        match found.is_empty() {
            true => *self = Sums { inert: std::mem::take(&mut self.inert), ..self.afresh(id) },
            false => self.now.become_of(id, found, &self.fronts, &nothing),
        }
        Ok(Some(possible))
    }

    /// Gives the initial value with what is running now, but for a call.
    fn afresh(&self, without: RunningId) -> Self {
        let mut fresh = Sums::new(self.initial);
        for &(id, motion) in self.now.running.iter().filter(|(id, _)| *id != without) {
            fresh.invoke(id, motion);
        }
        Sums { given_up: self.given_up, told_given_up: self.told_given_up, ..fresh }
    }

    /// Lists what a call could have shown.
    fn possible(&self, id: RunningId, motion: Motion, limit: usize) -> Vec<Value> {
        let mut found: Vec<i64> = self.now.shown(id, motion, limit);
        let free: Vec<i64> = found.clone();
        let lost = self
            .now
            .pool
            .iter()
            .flat_map(|&(amount, _)| free.iter().map(move |value| value.wrapping_add(amount)));
        found.extend(lost.take(FEW));
        let mut seen = FxHashSet::default();
        found.retain(|value| seen.insert(*value));
        found.truncate(FEW);
        found.sort_unstable();
        found.into_iter().map(Value::Int).collect()
    }

    /// Judges the log again with all that is known, and with calls of the pool that take effect.
    fn again(&mut self, limit: usize) -> Result<(), OnlineError> {
        let limit = limit.min(MOST);
        let mut found = self.replay(usize::MAX, limit);
        if found.is_err() && self.pending_calls() > 0 {
            self.given_up = self.given_up.max(self.pending_calls() as u64);
            // Small bundles then; those of one call are a few.
            for most_lost in [2, 1] {
                if found.as_ref().map_or(true, |found| found.set.is_empty()) {
                    found = self.replay(most_lost, limit);
                }
            }
        }
        self.now = found?;
        Ok(())
    }

    fn replay(&self, most_lost: usize, limit: usize) -> Result<Moment, OnlineError> {
        let returns = self.log.iter().filter_map(|event| match event {
            &Event::Complete(id, wanted) => Some((id, wanted)),
            _ => None,
        });
        let known = &Known { returns: returns.collect(), most_lost };
        let mut moment = self.base.clone();
        for &event in &self.log {
            match event {
                Event::Invoke(id, motion) => moment.invoke(id, motion, known),
                Event::Fail(id) => moment.fail(id),
                Event::Abandon(id) => moment.abandon(id),
                Event::Complete(id, wanted) => {
                    let found = moment.explain(&self.fronts, known, (id, wanted), limit)?;
                    moment.become_of(id, found, &self.fronts, known);
                }
            }
            if moment.set.is_empty() {
                break;
            }
        }
        Ok(moment)
    }

    /// Makes what is now the base, if nothing else can matter.
    fn settle(&mut self) {
        if self.log.len() >= LONGEST {
            // Whatever lost calls did in between and nobody has seen yet is not tried any more.
            self.given_up = self.given_up.max(self.pending_calls() as u64);
            (self.base, self.is_plain) = (self.now.clone(), false);
            self.log.clear();
        }
        let shows = |&(_, motion): &(_, Motion)| motion.shows != Shows::Nothing;
        if self.now.running.iter().any(shows) {
            return;
        }
        let is_over = |c: &&Configuration| c.done.is_empty() && c.used.iter().all(|&n| n == 0);
        let mut over: Vec<Option<Configuration>> = vec![None; self.fronts.len()];
        for configuration in self.now.set.iter().filter(is_over) {
            over[configuration.front] = Some(configuration.clone());
        }
        if over.iter().all(Option::is_some) {
            self.now.set = over.into_iter().flatten().collect();
            if self.now.pool.len() > MOST_KINDS {
                self.forget_used();
            }
            self.rebase();
        } else if self.log.len() >= self.patience && self.now.set.iter().any(|c| c.done.is_empty())
        {
            self.settle_lost();
        }
    }

    fn rebase(&mut self) {
        (self.base, self.is_plain) = (self.now.clone(), true);
        self.log.clear();
        self.patience = 0;
    }

    /// Makes what is now the base where calls of the pool took effect.
    fn settle_lost(&mut self) {
        self.patience = 2 * self.log.len();
        let Ok(now) = self.replay(usize::MAX, MOST) else { return };
        // Who took effect and which of the pool did; only the least of these matter.
        let mut all: Vec<(Vec<RunningId>, Vec<u32>, i64)> = Vec::new();
        for configuration in &now.set {
            let done: Vec<RunningId> = configuration.done.iter().map(|&(id, _)| id).collect();
            for used in &self.fronts[configuration.front] {
                let used = configuration.all_used(used);
                if used.iter().zip(&now.pool).all(|(used, (_, count))| used <= count) {
                    all.push((done.clone(), used, configuration.value));
                }
            }
        }
        all.sort_by_cached_key(|(done, used, _)| (done.len(), used.iter().sum::<u32>()));
        let mut least: Vec<(Vec<RunningId>, Vec<u32>, i64)> = Vec::new();
        for (done, used, value) in all {
            let is_less = |(fewer, less, _): &(Vec<RunningId>, Vec<u32>, i64)| {
                fewer.iter().all(|id| done.contains(id))
                    && less.iter().zip(&used).all(|(less, more)| less <= more)
            };
            if !least.iter().any(is_less) {
                least.push((done, used, value));
            }
        }
        if least.is_empty() || least.iter().any(|(done, _, _)| !done.is_empty()) {
            return;
        }
        if least.len() > MOST_USED {
            least.truncate(MOST_USED);
            self.given_up = self.given_up.max(self.pending_calls() as u64);
        }
        let mut fronts: Vec<(i64, Vec<Vec<u32>>)> = Vec::new();
        for (_, used, value) in least {
            match fronts.iter_mut().find(|(known, _)| *known == value) {
                Some((_, front)) => front.push(used),
                None => fronts.push((value, vec![used])),
            }
        }
        let kinds = now.pool.len();
        let values = fronts.iter().map(|&(value, _)| value).enumerate();
        let set = values.map(|(at, value)| Configuration::new(value, at, kinds)).collect();
        self.now = Moment { set, ..now };
        self.fronts = fronts.into_iter().map(|(_, front)| front).collect();
        self.forget_used();
        self.rebase();
    }

    /// Forgets the calls of the pool that took effect in any case; gives up some of very many.
    fn forget_used(&mut self) {
        let Moment { set, pool, .. } = &mut self.now;
        let used = || self.fronts.iter().flatten();
        let least = |kind: usize| used().map(|u| u.get(kind).copied().unwrap_or(0)).min();
        let least: Vec<u32> = (0..pool.len()).map(|kind| least(kind).unwrap_or(0)).collect();
        for ((_, count), least) in pool.iter_mut().zip(&least) {
            *count -= least;
        }
        let left = |pool: &[(i64, u32)]| pool.iter().filter(|(_, count)| *count > 0).count();
        if left(pool) > MOST_KINDS {
            let calls: u64 = pool.iter().map(|&(_, count)| u64::from(count)).sum();
            self.given_up = self.given_up.max(calls);
            let too_many = left(pool) - MOST_KINDS / 2;
            let first = pool.iter_mut().filter(|(_, count)| *count > 0).take(too_many);
            first.for_each(|(_, count)| *count = 0);
        }
        let stays: Vec<usize> = (0..pool.len()).filter(|&kind| pool[kind].1 > 0).collect();
        for used in self.fronts.iter_mut().flatten() {
            let count = |&kind: &usize| used.get(kind).map_or(0, |used| used - least[kind]);
            *used = stays.iter().map(count).collect();
        }
        pool.retain(|&(_, count)| count > 0);
        set.iter_mut().for_each(|configuration| configuration.used.truncate(stays.len()));
    }

    /// Tells where the counter was at the base and what happened since, if that can be told.
    pub(super) fn told(&self) -> Option<Told<'_>> {
        let kinds = self.base.pool.len();
        let values = self.base.set.iter().flat_map(|configuration| {
            self.fronts[configuration.front].iter().map(move |used| {
                let mut used = used.clone();
                used.resize(kinds, 0);
                (configuration.value, used)
            })
        });
        let running = self.base.running.iter().map(|&(id, motion)| Event::Invoke(id, motion));
        self.is_plain.then(|| Told {
            pool: &self.base.pool,
            values: values.collect(),
            events: running.chain(self.log.iter().copied()).collect(),
        })
    }

    /// Lists the calls that neither add nor show anything.
    pub(super) fn inert(&self) -> impl Iterator<Item = RunningId> {
        self.inert.iter().copied()
    }
}

impl Known {
    /// Knows what no call returned, so no call of the pool is needed.
    fn nothing() -> Self {
        Known { returns: FxHashMap::default(), most_lost: 0 }
    }
}
