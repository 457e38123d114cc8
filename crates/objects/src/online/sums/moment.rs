//! What may be the case with a counter at a time, and how that goes on.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::bundles::bundles;
use super::{Motion, OnlineError, RunningId, Shows};

/// What a call returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::online) enum Wanted {
    /// Nobody knows, or it does not matter.
    Anything,
    Value(i64),
    /// Something that no counter shows.
    Nothing,
}

impl Wanted {
    /// Gives it, if it is a value.
    pub(in crate::online) fn value(self) -> Option<i64> {
        match self {
            Wanted::Value(value) => Some(value),
            Wanted::Anything | Wanted::Nothing => None,
        }
    }
}

/// What is known beforehand.
pub(super) struct Known {
    /// What calls will return.
    pub(super) returns: FxHashMap<RunningId, Wanted>,
    /// How many calls of the pool may take effect before one of these.
    pub(super) most_lost: usize,
}

impl Known {
    /// Gives the value at which a call takes effect, if that is known.
    fn starts_at(&self, id: RunningId, motion: Motion) -> Option<Result<i64, Wanted>> {
        if motion.shows == Shows::Nothing {
            return None;
        }
        match self.returns.get(&id)? {
            Wanted::Anything => None,
            &Wanted::Value(value) => Some(Ok(motion.starts_at(value))),
            Wanted::Nothing => Some(Err(Wanted::Nothing)),
        }
    }
}

/// For each front its multisets of what took effect before the base.
pub(super) type Fronts = Vec<Vec<Vec<u32>>>;

/// What may be the case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Configuration {
    pub(super) value: i64,
    /// Which multisets took effect before the base.
    pub(super) front: usize,
    /// How many of each amount of the pool took effect since.
    pub(super) used: Vec<u32>,
    /// Running calls that took effect, with what they will return; sorted.
    pub(super) done: Vec<(RunningId, i64)>,
    /// Running calls that only show, with all that they may return; each sorted.
    seen: Vec<(RunningId, Vec<i64>)>,
}

impl Configuration {
    pub(super) fn new(value: i64, front: usize, kinds: usize) -> Self {
        Configuration { value, front, used: vec![0; kinds], done: Vec::new(), seen: Vec::new() }
    }

    /// Adds what took effect before the base.
    pub(super) fn all_used(&self, before: &[u32]) -> Vec<u32> {
        let before = before.iter().copied().chain(std::iter::repeat(0));
        self.used.iter().zip(before).map(|(&since, before)| since + before).collect()
    }

    /// Says whether whatever happens next and is explained with the other is explained with this.
    fn is_as_good_as(&self, other: &Configuration) -> bool {
        let has_all = |(more, less): (&(_, Vec<i64>), &(_, Vec<i64>))| {
            less.1.iter().all(|value| more.1.binary_search(value).is_ok())
        };
        self.value == other.value
            && self.front == other.front
            && self.done == other.done
            && self.used.iter().zip(&other.used).all(|(mine, its)| mine <= its)
            && self.seen.iter().zip(&other.seen).all(has_all)
    }

    fn done_value(&self, id: RunningId) -> Option<i64> {
        let at = self.done.binary_search_by_key(&id, |(running, _)| *running).ok()?;
        Some(self.done[at].1)
    }

    fn take(&mut self, id: RunningId) -> bool {
        self.seen.retain(|(running, _)| *running != id);
        let at = self.done.binary_search_by_key(&id, |(running, _)| *running);
        at.is_ok_and(|at| self.done.remove(at).0 == id)
    }

    /// Notes the value for calls that show it.
    fn show(&mut self, known: &Known) {
        for (id, values) in &mut self.seen {
            let is_other = match known.returns.get(id) {
                Some(&Wanted::Value(wanted)) => wanted != self.value,
                _ => false,
            };
            if let (false, Err(at)) = (is_other, values.binary_search(&self.value)) {
                values.insert(at, self.value);
            }
        }
    }

    /// Lets a call take effect.
    fn perform(&self, id: RunningId, motion: Motion, known: &Known) -> Self {
        let mut next = self.clone();
        next.value = self.value.wrapping_add(motion.amount);
        let shown = match motion.shows {
            Shows::Nothing => 0,
            Shows::Before => self.value,
            Shows::Behind => next.value,
        };
        let at = next.done.partition_point(|(running, _)| *running < id);
        next.done.insert(at, (id, shown));
        next.show(known);
        next
    }
}

/// Configurations by value and by the calls that took effect: only those give way to each other.
#[derive(Default)]
struct Groups(FxHashMap<u64, Vec<usize>>);

impl Groups {
    fn of(&mut self, c: &Configuration) -> &mut Vec<usize> {
        self.0.entry(FxBuildHasher.hash_one((c.value, c.front, &c.done))).or_default()
    }
}

/// What may be the case at a time.
#[derive(Clone)]
pub(super) struct Moment {
    pub(super) set: Vec<Configuration>,
    pub(super) running: Vec<(RunningId, Motion)>,
    /// The amounts that calls add that nobody knows the end of, and how many of these there are.
    pub(super) pool: Vec<(i64, u32)>,
}

impl Moment {
    pub(super) fn new(set: impl IntoIterator<Item = Configuration>) -> Self {
        Moment { set: set.into_iter().collect(), running: Vec::new(), pool: Vec::new() }
    }

    pub(super) fn motion(&self, id: RunningId) -> Option<Motion> {
        self.running.iter().find(|(running, _)| *running == id).map(|&(_, motion)| motion)
    }

    pub(super) fn invoke(&mut self, id: RunningId, motion: Motion, known: &Known) {
        self.running.push((id, motion));
        if motion.is_read_only() {
            for configuration in &mut self.set {
                configuration.seen.push((id, Vec::new()));
                configuration.show(known);
            }
        }
    }

    pub(super) fn fail(&mut self, id: RunningId) {
        self.running.retain(|(running, _)| *running != id);
        self.set.retain_mut(|configuration| !configuration.take(id));
    }

    pub(super) fn abandon(&mut self, id: RunningId) {
        let Some(motion) = self.motion(id) else { return };
        self.running.retain(|(running, _)| *running != id);
        let kind = match self.pool.iter().position(|&(amount, _)| amount == motion.amount) {
            _ if motion.is_read_only() => None,
            Some(kind) => Some(kind),
            None => {
                self.pool.push((motion.amount, 0));
                self.set.iter_mut().for_each(|configuration| configuration.used.push(0));
                Some(self.pool.len() - 1)
            }
        };
        if let Some(kind) = kind {
            self.pool[kind].1 += 1;
        }
        for configuration in &mut self.set {
            if let (true, Some(kind)) = (configuration.take(id), kind) {
                configuration.used[kind] += 1;
            }
        }
    }

    /// Takes a return with all that explains it.
    pub(super) fn become_of(
        &mut self,
        id: RunningId,
        found: Vec<Configuration>,
        fronts: &Fronts,
        known: &Known,
    ) {
        self.running.retain(|(running, _)| *running != id);
        self.set = found;
        self.keep_best(fronts, known);
    }

    /// Finds all configurations in which a call took effect and returned what is wanted.
    pub(super) fn explain(
        &self,
        fronts: &Fronts,
        known: &Known,
        (id, wanted): (RunningId, Wanted),
        limit: usize,
    ) -> Result<Vec<Configuration>, OnlineError> {
        let Some(motion) = self.motion(id) else { return Err(OnlineError::NotRunning) };
        let is_wanted = |value: &i64| match wanted {
            Wanted::Anything => true,
            Wanted::Value(wanted) => *value == wanted,
            Wanted::Nothing => false,
        };
        let shows = |&(other, motion): &(_, Motion)| other != id && motion.shows != Shows::Nothing;
        let is_unseen = motion.shows == Shows::Nothing && !self.running.iter().any(shows);
        let mut found: Vec<Configuration> = Vec::new();
        let mut all: Vec<Configuration> = self.set.clone();
        let mut groups = Groups::default();
        for (at, configuration) in all.iter().enumerate() {
            groups.of(configuration).push(at);
        }
        let mut successors = Vec::new();
        let mut at = 0;
        while let Some(configuration) = all.get(at) {
            at += 1;
            if found.len() + all.len() > limit {
                return Err(OnlineError::TooMany { limit });
            }
            let seen = configuration.seen.iter().find(|(running, _)| *running == id);
            let is_done = match (configuration.done_value(id), seen) {
                (Some(value), _) if !is_wanted(&value) => continue,
                (Some(_), _) => true,
                (None, Some((_, values))) => values.iter().any(is_wanted),
                (None, None) => false,
            };
            if is_done || is_unseen {
                // Whatever might take effect before it may as well do so behind.
                let mut next = match is_done {
                    true => configuration.clone(),
                    false => configuration.perform(id, motion, known),
                };
                next.take(id);
                found.push(next);
                continue;
            }
            self.successors(configuration, (fronts, known), &mut successors)
                .ok_or(OnlineError::TooMany { limit })?;
            for next in successors.drain(..) {
                let group = groups.of(&next);
                if !group.iter().any(|&better| all[better].is_as_good_as(&next)) {
                    group.push(all.len());
                    all.push(next);
                }
            }
        }
        Ok(found)
    }

    /// Lists what a configuration becomes when one more call takes effect; `None` if that is too
    /// much.
    fn successors(
        &self,
        configuration: &Configuration,
        (fronts, known): (&Fronts, &Known),
        into: &mut Vec<Configuration>,
    ) -> Option<()> {
        for &(id, motion) in &self.running {
            let starts_at = known.starts_at(id, motion);
            if motion.is_read_only() {
                let mut seen = configuration.seen.iter().filter(|(running, _)| *running == id);
                if let Some(Ok(value)) = starts_at
                    && !seen.any(|(_, values)| values.binary_search(&value).is_ok())
                {
                    self.move_to(configuration, value, (fronts, known), into)?;
                }
                continue;
            }
            if configuration.done_value(id).is_some() {
                continue;
            }
            match starts_at {
                Some(Err(_)) => {}
                Some(Ok(value)) if value != configuration.value => {
                    let first = into.len();
                    self.move_to(configuration, value, (fronts, known), into)?;
                    for moved in &mut into[first..] {
                        *moved = moved.perform(id, motion, known);
                    }
                }
                _ => into.push(configuration.perform(id, motion, known)),
            }
        }
        Some(())
    }

    /// Lists what a configuration becomes when calls of the pool bring it to a value.
    fn move_to(
        &self,
        configuration: &Configuration,
        value: i64,
        (fronts, known): (&Fronts, &Known),
        into: &mut Vec<Configuration>,
    ) -> Option<()> {
        if self.pool.is_empty() || known.most_lost == 0 {
            return Some(());
        }
        let sum = value.wrapping_sub(configuration.value);
        let front = &fronts[configuration.front];
        let least =
            |kind: usize| front.iter().map(move |u| u.get(kind).copied().unwrap_or(0)).min();
        let left = |(kind, &(_, count)): (usize, &(_, u32))| {
            count.saturating_sub(configuration.used[kind] + least(kind).unwrap_or(0))
        };
        let left: Vec<u32> = self.pool.iter().enumerate().map(left).collect();
        for bundle in bundles(&self.pool, &left, sum, known.most_lost)? {
            let mut next = configuration.clone();
            next.used.iter_mut().zip(&bundle).for_each(|(used, more)| *used += more);
            let fits = |before: &Vec<u32>| {
                let all = next.all_used(before).into_iter().zip(&self.pool);
                all.into_iter().all(|(used, &(_, count))| used <= count)
            };
            if front.iter().any(fits) {
                next.value = value;
                next.show(known);
                into.push(next);
            }
        }
        Some(())
    }

    /// Drops the configurations that give way to another.
    fn keep_best(&mut self, fronts: &Fronts, known: &Known) {
        if self.set.len() < 2 {
            return;
        }
        let mut best: Vec<Configuration> = Vec::new();
        let mut groups = Groups::default();
        let mut stays: Vec<bool> = Vec::new();
        for configuration in std::mem::take(&mut self.set) {
            let group = groups.of(&configuration);
            if group.iter().any(|&other| best[other].is_as_good_as(&configuration)) {
                continue;
            }
            group.retain(|&other| {
                stays[other] = !configuration.is_as_good_as(&best[other]);
                stays[other]
            });
            group.push(best.len());
            best.push(configuration);
            stays.push(true);
        }
        // What a call that may still take effect leads to need not be kept beside. Who leads
        // there has fewer calls that took effect, so nobody leads to themselves.
        let mut successors = Vec::new();
        for (at, configuration) in best.iter().enumerate() {
            if !groups.of(configuration).contains(&at) {
                continue;
            }
            // Those that could not be found may stay.
            let _ = self.successors(configuration, (fronts, known), &mut successors);
            for next in successors.drain(..) {
                for &other in groups.of(&next).iter() {
                    stays[other] &= !next.is_as_good_as(&best[other]);
                }
            }
        }
        let best = best.into_iter().zip(stays);
        self.set =
            best.filter_map(|(configuration, stays)| stays.then_some(configuration)).collect();
    }

    /// Lists what a running call may show without calls of the pool.
    pub(super) fn shown(&self, id: RunningId, motion: Motion, limit: usize) -> Vec<i64> {
        let known = Known::nothing();
        let any = (id, Wanted::Nothing);
        let mut found: Vec<i64> = Vec::new();
        // All that is tried to show something that no counter shows.
        let mut all = self.set.clone();
        let mut groups: FxHashSet<(i64, Vec<(RunningId, i64)>)> = FxHashSet::default();
        let mut successors = Vec::new();
        while let Some(configuration) = all.pop() {
            if groups.len() > limit.min(10_000) {
                break;
            }
            let seen = configuration.seen.iter().filter(|(running, _)| *running == any.0);
            let values = seen.flat_map(|(_, values)| values.iter().copied());
            for value in values.chain(configuration.done_value(id)) {
                if !found.contains(&value) && motion.shows != Shows::Nothing {
                    found.push(value);
                }
            }
            let _ = self.successors(&configuration, (&Fronts::new(), &known), &mut successors);
            let fresh = |c: &Configuration| groups.insert((c.value, c.done.clone()));
            all.extend(successors.drain(..).filter(fresh));
        }
        found
    }
}
