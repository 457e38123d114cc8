//! What is inside a deque in an order that nobody has seen.
//!
//! Elements that go in at the same time at the same end lie there in any order, so a configuration
//! becomes two, and with each such pair twice as many. But as long as nobody comes near them, their
//! order is independent of all else. So where the elements of a stretch are the same in all
//! configurations, in orders that go with everything around it, the stretch is replaced by one element
//! that stands for it, its *token*, and the orders are kept once. When a call would take out the token,
//! it is replaced by the elements that may be at that end, each with a token for the orders that are
//! left.
//!
//! Stretches are found by the gaps that are *clean*: in every configuration all that is before the gap
//! in one of them comes before all that is behind it. That they are independent is counted: there are
//! as many configurations as there are surroundings times the orders of each stretch.
//!
//! Cost: what is inside, for each configuration, when these have become twice as many, and
//! at every eighth return while there are many.

use std::collections::BTreeMap;
use std::ops::Range;

use consistory_history::Value;
use consistory_spec::{Family, Object, State};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Configuration, Configurations, OnlineError};

/// How many configurations there are before stretches are looked for.
const SOME: usize = 12;
/// After how many returns they are looked for again.
const OFTEN: usize = 8;
/// How often fewer stretches are tried where they are not independent.
const TRIES: usize = 8;

/// The stretches of a deque whose orders are kept once.
#[derive(Default)]
pub(super) struct Blocks {
    /// For each token the orders.
    orders: BTreeMap<Value, Vec<Vec<Value>>>,
    /// Whether a method was called that looks inside.
    is_off: bool,
    next: i64,
    /// How many configurations there were when stretches were looked for.
    before: usize,
    /// How many returns there were since.
    since: usize,
}

impl Blocks {
    /// Lists the tokens.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &Value> {
        self.orders.keys()
    }

    fn token(&mut self, orders: Vec<Vec<Value>>) -> Value {
        self.next += 1;
        // No element is a text that starts so.
        let token = Value::List(vec![Value::Str("\0block".into()), Value::Int(self.next)]);
        self.orders.insert(token.clone(), orders);
        token
    }
}

/// Says whether a method of a deque concerns nothing but an end.
fn is_at_end(method: &str) -> bool {
    let ends = ["addFirst", "addLast", "offerFirst", "offerLast"];
    ends.contains(&method) || ["pollFirst", "pollLast", "takeFirst", "takeLast"].contains(&method)
}

/// Lists what is inside a deque.
fn inside(object: &dyn Object, state: &State) -> Option<Vec<Value>> {
    match object.invoke(&mut state.clone(), "toArray", &[])? {
        Value::List(elements) => Some(elements),
        _ => None,
    }
}

fn deque_of(object: &dyn Object, elements: Vec<Value>) -> State {
    let mut state = object.initial();
    for element in elements {
        object.invoke(&mut state, "addLast", &[element]);
    }
    state
}

impl Configurations {
    /// Prepares for a call: one that looks inside ends all this.
    pub(super) fn watch_ends(&mut self, object: &dyn Object, method: &str) {
        if object.family() != Some(Family::Deque) {
            self.blocks.is_off = true;
        } else if !is_at_end(method) {
            self.untie_all(object);
            self.blocks.is_off = true;
        }
    }

    /// Replaces all tokens by the orders that they stand for.
    pub(super) fn untie_all(&mut self, object: &dyn Object) {
        // The last ones first, as the others are in these.
        while let Some((token, orders)) = self.blocks.orders.pop_last() {
            self.replace(object, &token, &orders);
        }
    }

    /// Replaces the token that a call would have taken out by the elements that may be at its end;
    /// says whether there was one.
    pub(super) fn untie_hit(
        &mut self,
        object: &dyn Object,
        limit: usize,
    ) -> Result<bool, OnlineError> {
        let Some(token) = self.table.take_hit() else { return Ok(false) };
        let Some(orders) = self.blocks.orders.remove(&token) else { return Ok(false) };
        let is_first = |c: &Configuration| {
            let elements = inside(object, self.table.get_state(c.state));
            elements.is_some_and(|elements| elements.first() == Some(&token))
        };
        let is_first = self.set.iter().any(is_first);
        let mut rests: BTreeMap<Value, Vec<Vec<Value>>> = BTreeMap::new();
        for mut order in orders {
            let end = if is_first { 0 } else { order.len() - 1 };
            let element = order.remove(end);
            rests.entry(element).or_default().push(order);
        }
        let mut replacements: Vec<Vec<Value>> = Vec::new();
        for (element, mut rest) in rests {
            let mut with = match rest.len() {
                1 => rest.remove(0),
                _ => {
                    let token = self.blocks.token(rest);
                    self.table.add_token(token.clone());
                    vec![token]
                }
            };
            with.insert(if is_first { 0 } else { with.len() }, element);
            replacements.push(with);
        }
        self.replace(object, &token, &replacements);
        match self.set.len() > limit {
            true => Err(OnlineError::TooMany { limit }),
            false => Ok(true),
        }
    }

    /// Replaces a token by elements, each of the ways in a configuration of its own.
    fn replace(&mut self, object: &dyn Object, token: &Value, by: &[Vec<Value>]) {
        self.table.forget_token(token);
        let mut states: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for configuration in std::mem::take(&mut self.set) {
            let state = configuration.state;
            let replaced = states.entry(state).or_insert_with(|| {
                let elements = inside(object, self.table.get_state(state)).unwrap_or_default();
                let Some(at) = elements.iter().position(|element| element == token) else {
                    return vec![state];
                };
                let with = |by: &Vec<Value>| [&elements[..at], by, &elements[at + 1..]].concat();
                by.iter().map(|by| self.table.state(deque_of(object, with(by)))).collect()
            });
            for &state in &*replaced {
                self.set.insert(Configuration { state, ..configuration.clone() });
            }
        }
    }

    /// Replaces stretches whose order is independent of all else by tokens, if there are many
    /// configurations.
    pub(super) fn tie(&mut self, object: &dyn Object) {
        self.blocks.since += 1;
        let is_due = self.blocks.since >= OFTEN || self.set.len() > 2 * self.blocks.before;
        if self.blocks.is_off || self.set.len() <= SOME || !is_due {
            return;
        }
        let all: Vec<Configuration> = self.set.iter().cloned().collect();
        let elements = |c: &Configuration| inside(object, self.table.get_state(c.state));
        let elements: Option<Vec<Vec<Value>>> = all.iter().map(elements).collect();
        let found = elements.as_ref().and_then(|elements| self.blocks.independent(&all, elements));
        if let (Some(stretches), Some(elements)) = (found, elements) {
            let tokens: Vec<Option<Value>> = stretches
                .orders
                .into_iter()
                .map(|orders| (orders.len() > 1).then(|| self.blocks.token(orders)))
                .collect();
            tokens.iter().flatten().for_each(|token| self.table.add_token(token.clone()));
            self.set.clear();
            for ((configuration, elements), places) in
                all.into_iter().zip(elements).zip(stretches.places)
            {
                let mut tied: Vec<Value> = Vec::new();
                let mut at = 0;
                for (place, token) in places.into_iter().zip(&tokens) {
                    tied.extend_from_slice(&elements[at..place.start]);
                    match token {
                        Some(token) => tied.push(token.clone()),
                        None => tied.extend_from_slice(&elements[place.clone()]),
                    }
                    at = place.end;
                }
                tied.extend_from_slice(&elements[at..]);
                let state = self.table.state(deque_of(object, tied));
                self.set.insert(Configuration { state, ..configuration });
            }
            let states: FxHashSet<_> = self.set.iter().map(|c| c.state).collect();
            self.blocks.forget_unused(states, |state| {
                inside(object, self.table.get_state(state)).unwrap_or_default()
            });
        }
        (self.blocks.before, self.blocks.since) = (self.set.len(), 0);
    }
}

/// Stretches that are independent: for each its orders, and for each configuration where they are.
struct Stretches {
    orders: Vec<Vec<Vec<Value>>>,
    places: Vec<Vec<Range<usize>>>,
}

impl Blocks {
    /// Lists the elements that a token stands for, in one order, or the element itself.
    fn contents<'a>(&'a self, item: &'a Value) -> Vec<&'a Value> {
        let mut found = Vec::new();
        let mut work = vec![item];
        while let Some(item) = work.pop() {
            match self.orders.get(item) {
                Some(orders) => work.extend(orders[0].iter().rev()),
                None => found.push(item),
            }
        }
        found
    }

    /// Forgets the tokens that are nowhere any more.
    fn forget_unused<S: Copy>(
        &mut self,
        set: impl IntoIterator<Item = S>,
        inside: impl Fn(S) -> Vec<Value>,
    ) {
        let mut work: Vec<Value> = set.into_iter().flat_map(inside).collect();
        let mut used: FxHashSet<Value> = FxHashSet::default();
        while let Some(item) = work.pop() {
            if let Some(orders) = self.orders.get(&item)
                && used.insert(item)
            {
                work.extend(orders.iter().flatten().cloned());
            }
        }
        self.orders.retain(|token, _| used.contains(token));
    }

    /// Finds stretches that are independent of each other and of all else.
    fn independent(&self, all: &[Configuration], elements: &[Vec<Value>]) -> Option<Stretches> {
        let first: Vec<&Value> = elements[0].iter().flat_map(|item| self.contents(item)).collect();
        let number: FxHashMap<&Value, usize> =
            first.iter().enumerate().map(|(i, e)| (*e, i)).collect();
        if number.len() < first.len() {
            return None;
        }
        let mut is_clean = vec![true; first.len() + 1];
        // For each configuration, in which of its items the elements of the first one are.
        let mut places: Vec<Vec<usize>> = Vec::with_capacity(all.len());
        for items in elements {
            let mut place = vec![usize::MAX; first.len()];
            for (at, item) in items.iter().enumerate() {
                let contents = self.contents(item);
                let numbers = contents.iter().filter_map(|element| number.get(element).copied());
                let numbers: Vec<usize> = numbers.collect();
                for &number in &numbers {
                    // An element that is there twice.
                    if place[number] != usize::MAX {
                        return None;
                    }
                    place[number] = at;
                }
                let (least, greatest) = (numbers.iter().min(), numbers.iter().max());
                if let (Some(&least), Some(&greatest)) = (least, greatest) {
                    is_clean[least + 1..=greatest].fill(false);
                }
            }
            let mut behind = vec![usize::MAX; first.len() + 1];
            for at in (0..first.len()).rev() {
                behind[at] = behind[at + 1].min(place[at]);
            }
            let mut before = None;
            for (at, &place) in place.iter().enumerate() {
                is_clean[at] &= before.is_none_or(|before| before < behind[at]);
                before = before.max(Some(place).filter(|&place| place != usize::MAX));
            }
            places.push(place);
        }
        let gaps: Vec<usize> = (0..=first.len()).filter(|&gap| is_clean[gap]).collect();
        // In every configuration all of it, and nothing else in between.
        let place_of = |(items, place): (&Vec<Value>, &Vec<usize>), from: usize, to: usize| {
            let start = place[from..to].iter().min().copied()?;
            let end = place[from..to].iter().max().copied().filter(|&end| end != usize::MAX)? + 1;
            let contents = items[start..end].iter().map(|item| self.contents(item).len());
            (contents.sum::<usize>() == to - from).then_some(start..end)
        };
        let whole = gaps.windows(2).filter_map(|pair| {
            let places = elements.iter().zip(&places);
            places.map(|all| place_of(all, pair[0], pair[1])).collect::<Option<Vec<_>>>()
        });
        let mut stretches: Vec<Vec<Range<usize>>> = whole.collect();
        for _ in 0..TRIES {
            if stretches.is_empty() {
                return None;
            }
            if let Some(orders) = orders(all, elements, &stretches) {
                let places = (0..all.len())
                    .map(|at| stretches.iter().map(|places| places[at].clone()).collect());
                return Some(Stretches { orders, places: places.collect() });
            }
            // What is at the ends is the least likely to be independent.
            stretches.pop();
            if !stretches.is_empty() {
                stretches.remove(0);
            }
        }
        None
    }
}

/// Lists the orders of stretches, each with its places in the configurations, if they are independent.
fn orders(
    all: &[Configuration],
    elements: &[Vec<Value>],
    stretches: &[Vec<Range<usize>>],
) -> Option<Vec<Vec<Vec<Value>>>> {
    let mut orders: Vec<Vec<&[Value]>> = vec![Vec::new(); stretches.len()];
    let mut around: FxHashSet<(Configuration, Vec<&Value>)> = FxHashSet::default();
    for (at, (configuration, items)) in all.iter().zip(elements).enumerate() {
        let mut outside = Vec::new();
        let mut end = 0;
        for (places, orders) in stretches.iter().zip(&mut orders) {
            let place = places[at].clone();
            outside.extend(&items[end..place.start]);
            end = place.end;
            if !orders.contains(&&items[place.clone()]) {
                orders.push(&items[place]);
            }
        }
        outside.extend(&items[end..]);
        // The state is told by what is inside.
        around.insert((Configuration { state: all[0].state, ..configuration.clone() }, outside));
    }
    let mut product = around.len();
    for orders in &orders {
        product = product.checked_mul(orders.len()).filter(|&product| product <= all.len())?;
    }
    let is_shorter = product == all.len() && around.len() < all.len();
    is_shorter.then(|| {
        orders
            .into_iter()
            .map(|orders| orders.into_iter().map(<[Value]>::to_vec).collect())
            .collect()
    })
}
