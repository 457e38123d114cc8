//! Key-value stores with `put`, `append` and `get`, key by key.
//!
//! If no text is put or appended twice, the return of a `get` determines its composition: it begins
//! with the value of a `put`, or with the initial value, and continues with the appended values,
//! piece by piece. So a `put` has an *epoch*: the appends that some `get` found after it, in an
//! order on which all gets agree, and these gets, each after the last piece that it found.
//!
//! ```text
//!   put("a")   get => "a"   append("b")   append("c")   get => "abc"   get => "abc"
//! ```
//!
//! Nothing else is put or appended between the first and the last call of an epoch, because a `get`
//! would have found it: an epoch is a group with a zone ([`super::zones`]). A `put` or an `append`
//! that no `get` found is a group by itself, which may stand between any two others. So a history
//! is linearizable if and only if each `get` has such a composition, the gets agree, no call of an
//! epoch ends before an earlier one of its order starts, and the zones can be arranged.
//!
//! *Only if* follows from the definitions. *If*: let `p` of a call be the largest of `f` and of the
//! starts of this call and all calls before it in its epoch. `p` is not after the call's end, nor
//! outside of the zone `f..s`. So the calls of an epoch can be linearized in their order inside its
//! zone, or at any point if the zone is backward.
//!
//! A pending `put` or `append` that no `get` found, and a pending `get`, can be left out. Lists are
//! handled like texts, element by element; without appends, this is a register of arbitrary values
//! ([`super::register`]). If a text has several compositions, the general search decides.
//!
//! *Equal pieces*, from clients that append the same value again, are told apart by time, for each
//! `get`. A `get` did not find calls that started after its end, nor calls overwritten before its
//! start: of the puts that ended before the `get`, take the one that started last; calls that ended
//! before it started were overwritten. And the `get` found no append that ended before its own
//! `put` started. If the number of remaining appends equals the number of pieces found, the `get`
//! found exactly these, in the order of their starts, provided that this is also the order of their
//! ends: two equal appends that are linearized the other way round can be exchanged, since each is
//! open at both points, and no exchange increases the number of inversions. If fewer appends
//! remain, the `get` refutes the history. If more remain, the `get` can be left out: a refutation
//! without it refutes the history, and otherwise the general search decides.
//!
//! Cost: O(n log n) for the sorts, and for each returned text its length and, if no piece is a
//! prefix of another, the pieces beyond those found before. With equal pieces, this is per `get`,
//! plus the number of equal pieces.

use consistory_history::{Value, ValueId};
use consistory_spec::Object;
use rustc_hash::{FxHashMap, FxHashSet};

use super::intervals::Intervals;
use super::methods::Methods;
use super::pieces::{Base, Composition, Pieces, text_of};
use super::sources::Overwriters;
use super::zones::{Zone, arrange};
use super::{Decision, Pattern, Unsuitable, Violation, register};
use crate::calls::{CallIndex, Calls};

/// The calls of a key.
#[derive(Default)]
struct Key {
    puts: Vec<(CallIndex, ValueId)>,
    appends: Vec<(CallIndex, ValueId)>,
    /// Gets by their return values.
    gets: FxHashMap<ValueId, Vec<CallIndex>>,
}

pub(super) fn decide(
    calls: &Calls<'_>,
    object: &dyn Object,
    initial: &Value,
    intervals: &Intervals,
) -> Decision {
    let mut index: FxHashMap<ValueId, usize> = FxHashMap::default();
    let mut keys: Vec<Key> = Vec::new();
    let mut methods = Methods::new(calls, object);
    for place in calls.places() {
        let args = calls.args(place);
        let name = calls.method(place);
        let Some(&key) = args.first() else {
            return Err(Unsuitable::Method { method: name.to_owned() });
        };
        let key = *index.entry(key).or_insert_with(|| {
            keys.push(Key::default());
            keys.len() - 1
        });
        match (methods.of(place), args) {
            (Some("put"), &[_, value]) => keys[key].puts.push((place, value)),
            (Some("append"), &[_, value]) => keys[key].appends.push((place, value)),
            (Some("get"), [_]) => match calls.returns(place) {
                _ if calls.get(place).is_pending => {}
                Some(value) => keys[key].gets.entry(value).or_default().push(place),
                None => return Err(Unsuitable::Return { method: name.to_owned() }),
            },
            _ => return Err(Unsuitable::Method { method: name.to_owned() }),
        }
    }
    // Calls of all keys, each with its point: the latest start up to it in the order of its key.
    let mut points: Vec<(u32, CallIndex)> = Vec::with_capacity(calls.len());
    let mut wrong: Option<Violation> = None;
    for key in &keys {
        let overwriters = Overwriters::new(&key.puts, intervals);
        let reading = Reading { calls, intervals, key, overwriters };
        match reading.decide(initial)? {
            Ok(order) => {
                let mut point = 0;
                points.extend(order.into_iter().map(|place| {
                    point = intervals.start(place).max(point);
                    (point, place)
                }));
            }
            Err(violation) => {
                // Of several violations, the one that ends first is closest to the shortest failing
                // prefix.
                let over = |violation: &Violation| {
                    violation.core.iter().map(|&place| intervals.end(place)).max()
                };
                if wrong.as_ref().is_none_or(|wrong| over(&violation) < over(wrong)) {
                    wrong = Some(violation);
                }
            }
        }
    }
    if let Some(wrong) = wrong {
        return Ok(Err(wrong));
    }
    points.sort_by_key(|&(point, _)| point);
    Ok(Ok(points.into_iter().map(|(_, place)| place).collect()))
}

/// The calls of a key with their epochs.
struct Reading<'a, 'h> {
    calls: &'a Calls<'h>,
    intervals: &'a Intervals,
    key: &'a Key,
    overwriters: Overwriters,
}

/// A `put` with the appends and gets after it.
struct Epoch {
    /// The `put`; `None` for the initial value, or for an `append` that no `get` found.
    put: Option<CallIndex>,
    /// The appends that were found, in their order.
    chain: Vec<CallIndex>,
    /// Return of a `get` that found all of `chain`.
    longest: Option<ValueId>,
    /// The gets, each with the number of appends that it found.
    gets: Vec<(usize, CallIndex)>,
    zone: Zone,
}

impl Epoch {
    fn new(put: Option<CallIndex>, zone: Zone) -> Self {
        Epoch { put, chain: Vec::new(), longest: None, gets: Vec::new(), zone }
    }

    /// Returns the number of the epoch of a base value.
    fn of(base: Base) -> usize {
        match base {
            Base::Initial => 0,
            Base::Put(put) => put + 1,
        }
    }
}

/// Appends that a `get` found in an epoch, beyond a number found there before.
struct Chained<'a> {
    epoch: usize,
    shown: usize,
    further: &'a [usize],
    get: CallIndex,
}

/// Calls that explain the return of a `get`.
enum EpochSource {
    /// Calls of one epoch: a number of appends found there before, and further appends.
    Of { epoch: usize, shown: usize, further: Vec<usize> },
    /// No calls explain the return.
    Nothing,
    /// Several sets of calls explain the return.
    Several,
}

impl Reading<'_, '_> {
    fn decide(&self, initial: &Value) -> Decision {
        let (calls, intervals, key) = (self.calls, self.intervals, self.key);
        if key.appends.is_empty() {
            let reads = key
                .gets
                .iter()
                .flat_map(|(&value, gets)| gets.iter().map(move |&get| (get, value)));
            return register::decide_accesses(calls, initial, intervals, &key.puts, reads);
        }
        let pieces = Pieces::new(calls, &key.puts, &key.appends, initial)?;
        let mut epochs = vec![Epoch::new(None, Zone::before_everything())];
        for &(put, _) in &key.puts {
            epochs.push(Epoch::new(Some(put), Zone::of(put, intervals)));
        }
        // Epoch in which each append was found.
        let mut found: Vec<Option<usize>> = vec![None; key.appends.len()];
        let mut read: Vec<ValueId> = key.gets.keys().copied().collect();
        read.sort_unstable_by_key(|&value| (size(calls.value(value)), value));
        let mut several = None;
        for value in read {
            // If pieces are equal, gets with equal returns may have found different calls.
            let gets = &key.gets[&value];
            for gets in gets.chunks(if pieces.is_repeated { 1 } else { gets.len() }) {
                let (at, shown, further) = match self.source(&pieces, &epochs, gets[0], value)? {
                    EpochSource::Of { epoch, shown, further } => (epoch, shown, further),
                    EpochSource::Nothing => {
                        let pattern = if pieces.is_repeated {
                            Pattern::Overwritten
                        } else {
                            Pattern::ThinAir
                        };
                        return Ok(Err(self.violation(pattern, [gets[0]])));
                    }
                    EpochSource::Several => {
                        several.get_or_insert(value);
                        continue;
                    }
                };
                let chain = Chained { epoch: at, shown, further: &further, get: gets[0] };
                if let Err(violation) = self.extend(&mut epochs, &mut found, &chain) {
                    return Ok(Err(violation));
                }
                let epoch = &mut epochs[at];
                let count = shown + further.len();
                if count == epoch.chain.len() {
                    epoch.longest = Some(value);
                }
                for &get in gets {
                    epoch.gets.push((count, get));
                    epoch.zone.add(get, intervals);
                }
            }
        }
        self.add_unread(&mut epochs, &found);
        let arranged = self.arrange(epochs)?;
        // The calls that were left out may affect this result, but could not have made the history
        // linearizable.
        match several {
            Some(value) if arranged.is_ok() => {
                Err(Unsuitable::NotDifferentiated { value: calls.value(value).clone() })
            }
            _ => Ok(arranged),
        }
    }

    /// Adds the appends that a `get` found to its epoch, unless they contradict other gets.
    fn extend(
        &self,
        epochs: &mut [Epoch],
        found: &mut [Option<usize>],
        chained: &Chained<'_>,
    ) -> Result<(), Violation> {
        let &Chained { epoch: at, shown, further, get } = chained;
        for (i, &append) in further.iter().enumerate() {
            let (place, next) = (self.key.appends[append].0, epochs[at].chain.get(shown + i));
            if next == Some(&place) {
                continue;
            }
            match found[append].or(next.map(|_| at)) {
                None => {
                    found[append] = Some(at);
                    epochs[at].chain.push(place);
                    epochs[at].zone.add(place, self.intervals);
                }
                // The append occurs twice in the return.
                Some(epoch) if epoch == at && next.is_none() => {
                    return Err(self.violation(Pattern::ThinAir, [get]));
                }
                // The append is at another position, or another append is at its position.
                Some(epoch) => {
                    let other = &epochs[epoch];
                    let shows = |get: &CallIndex| self.calls.returns(*get) == other.longest;
                    let other = other.gets.iter().map(|&(_, get)| get).find(shows);
                    return Err(self.violation(Pattern::Forked, other.into_iter().chain([get])));
                }
            }
        }
        Ok(())
    }

    /// Drops pending writes that no `get` found, which took no effect, and gives the other appends
    /// that no `get` found epochs of their own.
    fn add_unread(&self, epochs: &mut Vec<Epoch>, found: &[Option<usize>]) {
        let is_idle = |write: CallIndex| self.calls.get(write).is_pending;
        epochs.retain(|epoch| !(epoch.gets.is_empty() && epoch.put.is_some_and(is_idle)));
        for (&(append, _), found) in self.key.appends.iter().zip(found) {
            if found.is_none() && !is_idle(append) {
                let mut alone = Epoch::new(None, Zone::of(append, self.intervals));
                alone.chain.push(append);
                epochs.push(alone);
            }
        }
    }

    /// Returns the calls that a `get` found.
    fn source(
        &self,
        pieces: &Pieces<'_>,
        epochs: &[Epoch],
        get: CallIndex,
        value: ValueId,
    ) -> Result<EpochSource, Unsuitable> {
        let (calls, key) = (self.calls, self.key);
        let read = calls.value(value);
        let puts = |put: usize| pieces.puts_of(calls.value(key.puts[put].1));
        let made = match pieces.is_repeated {
            false => pieces.parse(
                read,
                |_| true,
                |base| {
                    let Epoch { longest, chain, .. } = &epochs[Epoch::of(base)];
                    let longest = longest.and_then(|id| text_of(calls.value(id)));
                    longest.map(|text| (text, chain.len()))
                },
            ),
            true => {
                let is_possible = |base: Base| match base {
                    Base::Initial => self.overwriter(get).is_none(),
                    Base::Put(put) => {
                        puts(put).iter().any(|&put| self.may_find(get, key.puts[put].0))
                    }
                };
                pieces.parse(read, is_possible, |_| None)
            }
        };
        let (base, shown, further) = match made {
            Composition::Unique { base, shown, further } => (base, shown, further),
            Composition::Impossible => return Ok(EpochSource::Nothing),
            Composition::Several if pieces.is_repeated => return Ok(EpochSource::Several),
            Composition::Several => return Err(Unsuitable::Ambiguous { value: read.clone() }),
        };
        if !pieces.is_repeated {
            return Ok(EpochSource::Of { epoch: Epoch::of(base), shown, further });
        }
        Ok(self.source_by_time(pieces, get, base, &further))
    }

    /// Returns the calls that a `get` found if values are put or appended more than once, so that
    /// only their times distinguish equal calls.
    fn source_by_time(
        &self,
        pieces: &Pieces<'_>,
        get: CallIndex,
        base: Base,
        further: &[usize],
    ) -> EpochSource {
        let (calls, key) = (self.calls, self.key);
        let puts = |put: usize| pieces.puts_of(calls.value(key.puts[put].1));
        let base = match base {
            Base::Initial => Base::Initial,
            Base::Put(put) => {
                let mut possible =
                    puts(put).iter().filter(|&&put| self.may_find(get, key.puts[put].0));
                match (possible.next(), possible.next()) {
                    (Some(&put), None) => Base::Put(put),
                    _ => return EpochSource::Several,
                }
            }
        };
        // Appends of each text; the earliest is last in its list.
        let mut left: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for &first in further {
            left.entry(first).or_default().push(first);
        }
        for (first, those) in &mut left {
            let is_behind = |append: CallIndex| match base {
                Base::Initial => true,
                Base::Put(put) => {
                    self.intervals.end(append) >= self.intervals.start(key.puts[put].0)
                }
            };
            let same = pieces.appends_of(calls.value(key.appends[*first].1)).iter().rev().copied();
            let place = |append: usize| key.appends[append].0;
            let possible: Vec<usize> = same
                .filter(|&append| self.may_find(get, place(append)) && is_behind(place(append)))
                .collect();
            let ends = |append: usize| self.intervals.end(place(append));
            if possible.len() < those.len() {
                return EpochSource::Nothing;
            }
            let is_in_order = possible.windows(2).all(|pair| ends(pair[1]) <= ends(pair[0]));
            if possible.len() > those.len() || !is_in_order {
                return EpochSource::Several;
            }
            *those = possible;
        }
        let further = further.iter().map(|first| {
            let those = left.get_mut(first).expect("each text that was found has appends");
            those.pop().expect("there are as many as were found")
        });
        EpochSource::Of { epoch: Epoch::of(base), shown: 0, further: further.collect() }
    }

    /// Checks whether a `get` may have found the value of a call: the call started before the `get`
    /// ended, and was not certainly overwritten before the `get` started.
    fn may_find(&self, get: CallIndex, write: CallIndex) -> bool {
        let is_over = |by: CallIndex| self.intervals.end(write) < self.intervals.start(by);
        self.intervals.start(write) < self.intervals.end(get)
            && !self.overwriter(get).is_some_and(is_over)
    }

    /// Returns the last-starting `put` among those that ended before a `get` started.
    fn overwriter(&self, get: CallIndex) -> Option<CallIndex> {
        self.overwriters.of(get, self.intervals)
    }

    /// Orders the calls of each epoch, and the epochs.
    fn arrange(&self, mut epochs: Vec<Epoch>) -> Decision {
        let mut orders: Vec<Vec<CallIndex>> = Vec::with_capacity(epochs.len());
        for epoch in &mut epochs {
            epoch.gets.sort_unstable_by_key(|&(count, get)| (count, self.intervals.start(get)));
            match self.order(epoch) {
                Ok(order) => orders.push(order),
                Err(violation) => return Ok(Err(violation)),
            }
        }
        let zones: Vec<Zone> = epochs.iter().map(|epoch| epoch.zone).collect();
        Ok(match arrange(&zones) {
            Ok(arranged) => {
                Ok(arranged.into_iter().flat_map(|i| std::mem::take(&mut orders[i])).collect())
            }
            Err((pattern, one, other)) => {
                let bounds = |epoch: &Epoch| self.bound(epoch, epoch.zone.bounds());
                let core = bounds(&epochs[one]).into_iter().chain(bounds(&epochs[other]));
                Err(self.violation(pattern, core))
            }
        })
    }

    /// Returns the order of an epoch, unless a call ends before an earlier one of that order
    /// starts.
    fn order(&self, epoch: &Epoch) -> Result<Vec<CallIndex>, Violation> {
        let mut order: Vec<CallIndex> = epoch.put.into_iter().collect();
        // Of the calls before this one, the call that starts last.
        let mut last = epoch.put;
        let later = |last: Option<CallIndex>, place: CallIndex| {
            last.into_iter().chain([place]).max_by_key(|&place| self.intervals.start(place))
        };
        let check = |last: Option<CallIndex>, place: CallIndex| match last {
            Some(last) if self.intervals.end(place) < self.intervals.start(last) => {
                let pattern = match (self.is_get(last), self.is_get(place)) {
                    (false, true) => Pattern::BeforeItsInsertion,
                    (false, false) => Pattern::OutOfOrder,
                    (true, _) => Pattern::Stale,
                };
                Err(self.violation(pattern, self.bound(epoch, [last, place])))
            }
            _ => Ok(()),
        };
        let mut gets = epoch.gets.iter().peekable();
        for count in 0..=epoch.chain.len() {
            if let Some(append) = count.checked_sub(1).map(|i| epoch.chain[i]) {
                check(last, append)?;
                order.push(append);
                last = later(last, append);
            }
            let from = order.len();
            while let Some(&(_, get)) = gets.next_if(|(found, _)| *found == count) {
                check(last, get)?;
                order.push(get);
            }
            if let Some(&get) = order[from..].last() {
                last = later(last, get);
            }
        }
        Ok(order)
    }

    /// Returns the given calls of an epoch; if only a `get` relates them, adds a `get` that found
    /// all of them.
    fn bound(&self, epoch: &Epoch, some: impl IntoIterator<Item = CallIndex>) -> Vec<CallIndex> {
        let mut some: Vec<CallIndex> = some.into_iter().collect();
        some.sort_unstable();
        some.dedup();
        if some.len() == 1 && epoch.put.is_some() {
            return some;
        }
        let chained = epoch.chain.iter().rposition(|append| some.contains(append));
        let read = epoch.gets.iter().filter(|(_, get)| some.contains(get)).map(|&(count, _)| count);
        let count = chained.map_or(0, |at| at + 1).max(read.max().unwrap_or(0));
        let shows = epoch.gets.iter().filter(|(found, _)| *found >= count);
        let best = shows.min_by_key(|(found, get)| (*found, !some.contains(get)));
        some.extend(best.map(|&(_, get)| get));
        some
    }

    /// Builds a violation from some calls and the possible pieces of the gets among them.
    fn violation(&self, pattern: Pattern, some: impl IntoIterator<Item = CallIndex>) -> Violation {
        let value = |id: ValueId| self.calls.value(id);
        let mut core: Vec<CallIndex> = some.into_iter().collect();
        let gets = core.iter().filter(|&&place| self.is_get(place));
        let read: Vec<&Value> =
            gets.filter_map(|&get| self.calls.returns(get)).map(value).collect();
        let texts = self.key.appends.iter().filter_map(|&(_, id)| text_of(value(id)));
        let lengths: FxHashSet<usize> = texts.map(str::len).collect();
        let mut parts: FxHashSet<&str> = FxHashSet::default();
        let mut elements: FxHashSet<&Value> = FxHashSet::default();
        for read in &read {
            match read {
                Value::Str(text) => {
                    for &length in &lengths {
                        parts.extend((0..text.len()).filter_map(|i| text.get(i..i + length)));
                    }
                }
                Value::List(list) => elements.extend(list),
                _ => {}
            }
        }
        let is_in = |appended: &Value| {
            elements.contains(appended) || text_of(appended).is_some_and(|t| parts.contains(t))
        };
        let is_below = |put: &Value| read.iter().any(|read| begins_with(read, put));
        let appends = self.key.appends.iter().filter(|&&(_, id)| is_in(value(id)));
        let puts = self.key.puts.iter().filter(|&&(_, id)| is_below(value(id)));
        let overwriters: Vec<CallIndex> = core
            .iter()
            .filter(|&&place| self.is_get(place))
            .filter_map(|&get| self.overwriter(get))
            .collect();
        core.extend(appends.chain(puts).map(|&(place, _)| place).chain(overwriters));
        Violation { pattern, core }
    }

    /// Checks whether a call is a `get`: its only argument is a key.
    fn is_get(&self, place: CallIndex) -> bool {
        self.calls.args(place).len() == 1
    }
}

/// Checks whether a returned value begins with a value that was put.
fn begins_with(read: &Value, put: &Value) -> bool {
    match (read, put) {
        (Value::Str(read), Value::Str(put)) => read.starts_with(&**put),
        (Value::List(read), Value::List(put)) => read.starts_with(put),
        _ => read == put,
    }
}

/// Counts the letters of a text or the elements of a list.
fn size(value: &Value) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::List(list) => list.len(),
        _ => 0,
    }
}
