//! Key-value stores with `put`, `append` and `get`, key by key.
//!
//! What a `get` returns tells how it came about, if no text is put or appended twice: it begins
//! with what a `put` wrote, or with the initial value, and goes on with what was appended, piece by
//! piece. So a `put` has an *epoch*: the appends that some `get` found behind it, in an order on
//! which all of them agree, and these gets, each behind the last piece that it found.
//!
//! ```text
//!   put("a")   get => "a"   append("b")   append("c")   get => "abc"   get => "abc"
//! ```
//!
//! Nothing else is put or appended between the first and the last call of an epoch, or the gets
//! would have found it: an epoch is a group with a zone ([`super::zones`]). A `put` or an `append`
//! that nobody found is a group by itself, which may stand between any two others. So a history is
//! linearizable if and only if each `get` can be read as above, the gets agree, no call of an epoch
//! ends before one starts that its order puts before it, and the zones can be arranged.
//!
//! *Only if* is plain. *If*: let `p` be the largest of `f` and of the starts of a call and of all
//! before it in its epoch; that is not behind the call's end, nor outside of the zone `f..s`. So an
//! epoch can have its order inside of its zone, or anywhere if that is backward.
//!
//! A pending `put` or `append` that nobody found, and a pending `get`, can be left out. Lists are
//! read as texts are, element by element; and without appends this is a register of any values
//! ([`super::register`]). If the pieces of a text can be told apart in several ways, it is for the general search.
//!
//! Cost: O(n log n) for the sorts, and for each text that was returned its length and, if no piece
//! begins with another one, the pieces that it has more than those found before.

use consistory_history::{Value, ValueId};
use consistory_spec::{Lexicon, Object};
use rustc_hash::{FxHashMap, FxHashSet};

use super::intervals::Intervals;
use super::methods::Methods;
use super::zones::{Zone, arrange};
use super::{Decision, Pattern, Unsuitable, Violation, register};
use crate::calls::{Calls, Place};

/// The calls of a key.
#[derive(Default)]
struct Key {
    puts: Vec<(Place, ValueId)>,
    appends: Vec<(Place, ValueId)>,
    /// By what they returned.
    gets: FxHashMap<ValueId, Vec<Place>>,
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
    // Calls of all keys by points that their orders allow: the last start up to each.
    let mut points: Vec<(u32, Place)> = Vec::with_capacity(calls.len());
    let mut wrong: Option<Violation> = None;
    for key in &keys {
        let reading = Reading { calls, intervals, key };
        match reading.decide(initial)? {
            Ok(order) => {
                let mut point = 0;
                points.extend(order.into_iter().map(|place| {
                    point = intervals.start(place).max(point);
                    (point, place)
                }));
            }
            Err(violation) => wrong = wrong.or(Some(violation)),
        }
    }
    if let Some(wrong) = wrong {
        return Ok(Err(wrong));
    }
    points.sort_by_key(|&(point, _)| point);
    Ok(Ok(points.into_iter().map(|(_, place)| place).collect()))
}

/// The calls of a key, and what they say about each other.
struct Reading<'a, 'h> {
    calls: &'a Calls<'h>,
    intervals: &'a Intervals,
    key: &'a Key,
}

/// A `put`, and what was found behind it.
struct Epoch {
    /// `None` for the initial value, or for an `append` that nobody found.
    put: Option<Place>,
    /// The appends that were found, in their order.
    chain: Vec<Place>,
    /// What a `get` returned that found all of these.
    longest: Option<ValueId>,
    /// The gets with how many appends they found.
    gets: Vec<(usize, Place)>,
    zone: Zone,
}

impl Epoch {
    fn new(put: Option<Place>, zone: Zone) -> Self {
        Epoch { put, chain: Vec::new(), longest: None, gets: Vec::new(), zone }
    }
}

/// The epoch of the initial value; that of the `put` number `i` is `i + 1`.
const INITIAL: usize = 0;

impl<'h> Reading<'_, 'h> {
    fn decide(&self, initial: &Value) -> Decision {
        let (calls, intervals, key) = (self.calls, self.intervals, self.key);
        if key.appends.is_empty() {
            let reads = key
                .gets
                .iter()
                .flat_map(|(&value, gets)| gets.iter().map(move |&get| (get, value)));
            return register::decide_accesses(calls, initial, intervals, &key.puts, reads);
        }
        let pieces = Pieces::new(calls, key, initial)?;
        let mut epochs = vec![Epoch::new(None, Zone::before_everything())];
        for &(put, _) in &key.puts {
            epochs.push(Epoch::new(Some(put), Zone::of(put, intervals)));
        }
        // For each append the epoch in which it was found.
        let mut found: Vec<Option<usize>> = vec![None; key.appends.len()];
        let mut read: Vec<ValueId> = key.gets.keys().copied().collect();
        read.sort_unstable_by_key(|&value| (size(calls.value(value)), value));
        for value in read {
            let gets = &key.gets[&value];
            let made = match calls.value(value) {
                Value::Str(text) if pieces.are_texts => pieces.parse_text(text, |epoch| {
                    let Epoch { longest, chain, .. } = &epochs[epoch];
                    longest.and_then(|id| text_of(calls.value(id))).map(|text| (text, chain.len()))
                }),
                other => pieces.parse(other),
            };
            let (at, shown, further) = match made {
                Made::Of { epoch, shown, further } => (epoch, shown, further),
                Made::Nohow => return Ok(Err(self.violation(Pattern::ThinAir, [gets[0]]))),
                Made::Ambiguously => {
                    return Err(Unsuitable::Ambiguous { value: calls.value(value).clone() });
                }
            };
            for (i, &append) in further.iter().enumerate() {
                let (place, next) = (key.appends[append].0, epochs[at].chain.get(shown + i));
                if next == Some(&place) {
                    continue;
                }
                match found[append].or(next.map(|_| at)) {
                    None => {
                        found[append] = Some(at);
                        epochs[at].chain.push(place);
                        epochs[at].zone.add(place, intervals);
                    }
                    // It is in what was read twice.
                    Some(epoch) if epoch == at && next.is_none() => {
                        return Ok(Err(self.violation(Pattern::ThinAir, [gets[0]])));
                    }
                    // It is elsewhere, or something else is where it is now.
                    Some(epoch) => {
                        let other = &epochs[epoch];
                        let shows = |get: &Place| calls.returns(*get) == other.longest;
                        let other = other.gets.iter().map(|&(_, get)| get).find(shows);
                        let core = other.into_iter().chain([gets[0]]);
                        return Ok(Err(self.violation(Pattern::Forked, core)));
                    }
                }
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
        // A pending write that nobody found took no effect.
        let is_idle = |write: Place| calls.get(write).is_pending;
        epochs.retain(|epoch| !(epoch.gets.is_empty() && epoch.put.is_some_and(is_idle)));
        for (&(append, _), found) in key.appends.iter().zip(found) {
            if found.is_none() && !is_idle(append) {
                let mut alone = Epoch::new(None, Zone::of(append, intervals));
                alone.chain.push(append);
                epochs.push(alone);
            }
        }
        self.arrange(epochs)
    }

    /// Puts the calls of each epoch in order, and the epochs.
    fn arrange(&self, mut epochs: Vec<Epoch>) -> Decision {
        let mut orders: Vec<Vec<Place>> = Vec::with_capacity(epochs.len());
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

    /// Gives the order of an epoch, unless a call ends before one starts that comes before it.
    fn order(&self, epoch: &Epoch) -> Result<Vec<Place>, Violation> {
        let mut order: Vec<Place> = epoch.put.into_iter().collect();
        // Of those that come before, the one that starts last.
        let mut last = epoch.put;
        let later = |last: Option<Place>, place: Place| {
            last.into_iter().chain([place]).max_by_key(|&place| self.intervals.start(place))
        };
        let check = |last: Option<Place>, place: Place| match last {
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

    /// Gives some calls of an epoch and a `get` that found all of them, if that is what ties them
    /// to each other or to the initial value.
    fn bound(&self, epoch: &Epoch, some: impl IntoIterator<Item = Place>) -> Vec<Place> {
        let mut some: Vec<Place> = some.into_iter().collect();
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

    /// Makes a violation of some calls: they, and what the gets among them may be made of.
    fn violation(&self, pattern: Pattern, some: impl IntoIterator<Item = Place>) -> Violation {
        let value = |id: ValueId| self.calls.value(id);
        let mut core: Vec<Place> = some.into_iter().collect();
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
        core.extend(appends.chain(puts).map(|&(place, _)| place));
        Violation { pattern, core }
    }

    /// Says whether a call is a `get`: it has a key and no more.
    fn is_get(&self, place: Place) -> bool {
        self.calls.args(place).len() == 1
    }
}

/// What the contents of a key are made of.
struct Pieces<'h> {
    initial: Value,
    puts: FxHashMap<&'h Value, usize>,
    appends: FxHashMap<&'h Value, usize>,
    /// Whether all of them are texts, and then these: of the puts, then of the appends.
    are_texts: bool,
    texts: Vec<&'h str>,
    lexicon: Lexicon<'h>,
    /// Whether no two ways to read a text begin alike.
    is_prefix_free: bool,
}

/// How something that was read was made.
enum Made {
    /// Of an epoch's base, so many appends that the epoch has already, and further ones.
    Of { epoch: usize, shown: usize, further: Vec<usize> },
    /// In several ways.
    Ambiguously,
    /// In no way.
    Nohow,
}

impl<'h> Pieces<'h> {
    fn new(calls: &Calls<'h>, key: &Key, initial: &Value) -> Result<Self, Unsuitable> {
        let differ = |of: &[(Place, ValueId)], first: Option<&Value>| {
            let mut found: FxHashMap<&'h Value, usize> = FxHashMap::default();
            for (i, &(_, id)) in of.iter().enumerate() {
                let value = calls.value(id);
                if found.insert(value, i).is_some() || first == Some(value) {
                    return Err(Unsuitable::NotDifferentiated { value: value.clone() });
                }
            }
            Ok(found)
        };
        let puts = differ(&key.puts, Some(initial))?;
        let appends = differ(&key.appends, Some(&Value::Str("".into())))?;
        let is_text = |value: &Value| matches!(value, Value::Str(_));
        let is_list = |value: &Value| matches!(value, Value::List(_));
        let is_null = *initial == Value::Null;
        let are_texts = (is_null || is_text(initial))
            && puts.keys().chain(appends.keys()).all(|value| is_text(value));
        let are_lists = (is_null || is_list(initial))
            && puts.keys().all(|value| is_list(value))
            && !appends.keys().any(|value| is_text(value));
        if !(appends.is_empty() || are_texts || are_lists) {
            return Err(Unsuitable::Mixed);
        }
        let texts = key.puts.iter().chain(&key.appends);
        let texts: Vec<&str> =
            texts.filter_map(|&(_, id)| text_of(calls.value(id)).filter(|_| are_texts)).collect();
        let begin = text_of(initial).filter(|text| !text.is_empty());
        let is_prefix_free = Lexicon::new(texts.iter().copied().chain(begin)).is_prefix_free();
        let lexicon = Lexicon::new(texts.iter().copied());
        let initial = initial.clone();
        Ok(Pieces { initial, puts, appends, are_texts, texts, lexicon, is_prefix_free })
    }

    /// Says how a text was made. `longest` gives the longest text that was read of an epoch, and of
    /// how many appends it is.
    fn parse_text<'a>(
        &self,
        text: &str,
        longest: impl Fn(usize) -> Option<(&'a str, usize)>,
    ) -> Made {
        // Where the appends may begin, and in which epoch; from long to short.
        let puts = self.lexicon.beginnings(text).filter(|&(number, _)| number < self.puts.len());
        let mut bases: Vec<(usize, usize)> =
            puts.map(|(put, begin)| (begin.len(), put + 1)).collect();
        match &self.initial {
            Value::Str(begin) if text.starts_with(&**begin) => bases.push((begin.len(), INITIAL)),
            Value::Null if !text.is_empty() => bases.push((0, INITIAL)),
            _ => {}
        }
        let mut shown = 0;
        if self.is_prefix_free {
            // What the text begins with is its base, and what was read before is read again.
            bases.truncate(1);
            if let Some((from, epoch)) = bases.first_mut()
                && let Some((before, appends)) = longest(*epoch)
                && text.starts_with(before)
            {
                (*from, shown) = (before.len(), appends);
            }
        }
        let Some(first) = bases.iter().map(|&(from, _)| from).min() else { return Made::Nohow };
        // For each place in how many ways it is reached, and by which append.
        let mut ways = vec![0u8; text.len() + 1 - first];
        let mut by: Vec<Option<usize>> = vec![None; ways.len()];
        bases.iter().for_each(|&(from, _)| ways[from - first] += 1);
        for at in first..text.len() {
            let so_far = ways[at - first].min(2);
            if so_far == 0 {
                continue;
            }
            for (number, piece) in self.lexicon.beginnings(&text[at..]) {
                if let Some(append) = number.checked_sub(self.puts.len()) {
                    let to = at + piece.len() - first;
                    ways[to] = ways[to].min(2) + so_far;
                    by[to] = Some(append);
                }
            }
        }
        match ways[text.len() - first] {
            0 => return Made::Nohow,
            1 => {}
            _ => return Made::Ambiguously,
        }
        let (mut further, mut at) = (Vec::new(), text.len());
        while let Some(append) = by[at - first] {
            further.push(append);
            at -= self.texts[self.puts.len() + append].len();
        }
        further.reverse();
        let base = bases.iter().find(|&&(from, _)| from == at);
        let epoch = base.expect("what is reached in one way is reached from a base").1;
        Made::Of { epoch, shown, further }
    }

    /// Says how a list was made, or anything that is not made of pieces.
    fn parse(&self, read: &Value) -> Made {
        let whole = |epoch| Made::Of { epoch, shown: 0, further: Vec::new() };
        let list = match read {
            Value::List(list) if !self.appends.is_empty() => list,
            _ if *read == self.initial => return whole(INITIAL),
            _ => return self.puts.get(read).map_or(Made::Nohow, |&put| whole(put + 1)),
        };
        let puts = self.puts.iter().map(|(&begin, &put)| (begin, put + 1));
        let mut made = Made::Nohow;
        for (begin, epoch) in puts.chain([(&self.initial, INITIAL)]) {
            let rest = match begin {
                Value::List(begin) => list.strip_prefix(begin.as_slice()),
                Value::Null if !list.is_empty() => Some(list.as_slice()),
                _ => None,
            };
            let appended = |element| self.appends.get(element).copied();
            if let Some(rest) = rest
                && let Some(further) = rest.iter().map(appended).collect()
            {
                match made {
                    Made::Nohow => made = Made::Of { epoch, shown: 0, further },
                    _ => return Made::Ambiguously,
                }
            }
        }
        made
    }
}

/// Says whether what was read may begin with what was put.
fn begins_with(read: &Value, put: &Value) -> bool {
    match (read, put) {
        (Value::Str(read), Value::Str(put)) => read.starts_with(&**put),
        (Value::List(read), Value::List(put)) => read.starts_with(put),
        _ => read == put,
    }
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Str(text) => Some(text),
        _ => None,
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
