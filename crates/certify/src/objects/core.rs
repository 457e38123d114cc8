//! Confirms a core: operations that cannot be linearized, and therefore refute the whole history.
//!
//! Such operations refute the history if every linearization of it stays one when all other
//! operations are removed. For each family of objects, certain operations can be removed without an
//! effect on the remaining ones, provided that only the methods named here remain; a `size` that
//! remains would reveal every removal.
//!
//! - Register: any read; and a write, if no remaining read returns its value. The value that a
//!   remaining read returns was written by the last write before the read, which has that value and
//!   therefore remains.
//! - Set: any call that changes nothing; and all calls of an element, because each element is an
//!   object of its own. If an element remains, so does every call that may have changed it.
//! - Store: any call of another key; any `get`; a `put` whose value does not begin any value that a
//!   remaining `get` returned; and an `append` whose value is not contained in any of them. The
//!   value that a remaining `get` returned was made by the last `put` before it and the appends
//!   after that `put`, so all of these remain; without appends, these are the puts of exactly that
//!   value. The arguments for a key must all be texts, or all lists and their elements, or there
//!   must be no `append`, so that no `append` is ever impossible.
//! - Queues, stacks and priority queues: a value together with all calls that inserted or removed
//!   it, because the other values come out in the same order without it; a removal that found
//!   nothing; and any call that only looks. A pending removal cannot be removed if it may have
//!   taken a remaining value. It took none if every remaining value has a removal that returned it.
//!   A pending removal that starts after the ends of all remaining operations can be put at the
//!   end, where it does not matter.

use std::collections::HashSet;

use consistory_history::Value;
use consistory_spec::{Family, ObjectModel};
use consistory_verdict::{Budget, Core};

use super::knowledge::Ready;
use super::view::{Event, View};
use super::{ObjectRejection, breadth};

pub(crate) fn refuted(
    view: &View<'_>,
    model: &ObjectModel,
    core: &Core,
    budget: &Budget,
) -> Result<(), ObjectRejection> {
    let family = view.ready.as_ref().and_then(Ready::family);
    let family = family.filter(|_| model.is_linearizability());
    let family = family.ok_or(ObjectRejection::NoCore)?;
    let mut kept: Vec<usize> = Vec::new();
    for &op in &core.operations {
        kept.push(view.find("operations", op)?);
    }
    kept.sort_unstable();
    let inside: HashSet<usize> = kept.iter().copied().collect();
    if let Some(pair) = kept.windows(2).find(|pair| pair[0] == pair[1]) {
        let op = view.name(pair[0]);
        return Err(ObjectRejection::Misplaced { part: "operations", op });
    }
    // An operation that was called after the last return comes last in a linearization, if at all.
    let last_end = view.events.iter().filter_map(|event| event.end).max();
    let is_too_late = |event: &Event| event.is_pending && event.start > last_end;
    let outside = (0..view.events.len())
        .filter(|event| !inside.contains(event) && !is_too_late(&view.events[*event]));
    let kept_methods: &[&str] = match family {
        Family::Register(_) => &["read", "write"],
        Family::Set => &["add", "remove", "contains"],
        Family::Store(_) => &["get", "put", "append"],
        Family::Queue => &["enqueue", "offer", "dequeue"],
        Family::Stack => &["push", "pop"],
        Family::LeastFirst | Family::GreatestFirst => &["insert", "offer", "poll"],
        Family::Counter(_) | Family::Deque => return Err(ObjectRejection::NoCore),
    };
    if let Some(&event) = kept.iter().find(|&&i| !kept_methods.contains(&&*view.events[i].method)) {
        let op = view.name(event);
        return Err(ObjectRejection::Misplaced { part: "operations", op });
    }
    let can_go = match family {
        Family::Register(_) => register(view, &kept),
        Family::Set => set(view, &kept),
        Family::Store(initial) => store(view, &kept, &initial).ok_or(ObjectRejection::NoCore)?,
        Family::Queue => collection(view, &kept, &["enqueue", "offer"], "dequeue"),
        Family::Stack => collection(view, &kept, &["push"], "pop"),
        Family::LeastFirst | Family::GreatestFirst => {
            collection(view, &kept, &["insert", "offer"], "poll")
        }
        Family::Counter(_) | Family::Deque => return Err(ObjectRejection::NoCore),
    };
    for event in outside {
        if !can_go(&view.events[event]) {
            return Err(ObjectRejection::NotClosed { op: view.name(event) });
        }
    }
    match breadth::is_linearizable(view, &kept, budget)? {
        true => Err(ObjectRejection::Explained),
        false => Ok(()),
    }
}

/// A predicate that returns whether an operation can be left out.
type CanGo<'a> = Box<dyn Fn(&Event) -> bool + 'a>;

fn register<'a>(view: &'a View<'_>, kept: &[usize]) -> CanGo<'a> {
    let read: HashSet<&Value> =
        kept.iter().filter_map(|&i| view.events[i].returns.as_ref()).collect();
    Box::new(move |event| match &*event.method {
        "read" => true,
        "write" => !read.contains(&event.args[0]),
        _ => false,
    })
}

fn set<'a>(view: &'a View<'_>, kept: &[usize]) -> CanGo<'a> {
    let elements: HashSet<Option<&Value>> =
        kept.iter().map(|&i| view.events[i].args.first()).collect();
    Box::new(move |event| {
        let changes_nothing = match &*event.method {
            "contains" => true,
            "add" | "remove" => event.returns == Some(Value::Bool(false)),
            // Nothing is known here about other methods.
            _ => return false,
        };
        changes_nothing || !elements.contains(&event.args.first())
    })
}

/// Returns `None` if appends may be impossible, or if nothing is known here about a method that is
/// called.
fn store<'a>(view: &'a View<'_>, kept: &[usize], initial: &Value) -> Option<CanGo<'a>> {
    let keys: HashSet<Option<&Value>> = kept.iter().map(|&i| view.events[i].args.first()).collect();
    let of_keys = || view.events.iter().filter(|event| keys.contains(&event.args.first()));
    let arguments = |method: &'static str| {
        of_keys().filter(move |event| &*event.method == method).map(|event| &event.args[1])
    };
    let is_known = |event: &Event| matches!(&*event.method, "get" | "put" | "append");
    let is_text = |value: &Value| matches!(value, Value::Str(_));
    let is_list = |value: &Value| matches!(value, Value::List(_));
    let is_null = *initial == Value::Null;
    let are_texts =
        (is_null || is_text(initial)) && arguments("put").chain(arguments("append")).all(is_text);
    let are_lists = (is_null || is_list(initial))
        && arguments("put").all(is_list)
        && !arguments("append").any(is_text);
    if !of_keys().all(is_known) || !(arguments("append").count() == 0 || are_texts || are_lists) {
        return None;
    }
    let has_appends = arguments("append").count() > 0;
    let read: Vec<&Value> = kept.iter().filter_map(|&i| view.events[i].returns.as_ref()).collect();
    let lengths: HashSet<usize> = arguments("append").filter_map(text).map(str::len).collect();
    // Every part of a returned text that is as long as some appended text.
    let mut parts: HashSet<&str> = HashSet::new();
    let mut elements: HashSet<&Value> = HashSet::new();
    for &value in &read {
        match value {
            Value::Str(text) => {
                parts.extend(lengths.iter().flat_map(|length| {
                    (0..=text.len()).filter_map(move |i| text.get(i..i + length))
                }))
            }
            Value::List(list) => elements.extend(list),
            _ => {}
        }
    }
    Some(Box::new(move |event| {
        let is_elsewhere = !keys.contains(&event.args.first());
        is_elsewhere
            || match &*event.method {
                "put" => !read.iter().any(|read| match (read, &event.args[1]) {
                    (read, put) if !has_appends => *read == put,
                    (Value::Str(read), Value::Str(put)) => read.starts_with(&**put),
                    (Value::List(read), Value::List(put)) => read.starts_with(put),
                    (_, Value::Null) => true,
                    (read, put) => *read == put,
                }),
                "append" => {
                    let appended = &event.args[1];
                    !elements.contains(appended)
                        && !text(appended).is_some_and(|text| parts.contains(text))
                }
                _ => true,
            }
    }))
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Str(text) => Some(text),
        _ => None,
    }
}

fn collection<'a>(
    view: &'a View<'_>,
    kept: &[usize],
    insert: &'static [&'static str],
    remove: &'static str,
) -> CanGo<'a> {
    let events = || kept.iter().map(|&i| &view.events[i]);
    let inserted: Vec<&Value> = events()
        .filter(|event| insert.contains(&&*event.method))
        .filter_map(|event| event.args.first())
        .collect();
    let removed: HashSet<&Value> = events()
        .filter(|event| &*event.method == remove)
        .filter_map(|event| event.returns.as_ref())
        .filter(|value| **value != Value::Null)
        .collect();
    let values: HashSet<&Value> = inserted.iter().copied().chain(removed.iter().copied()).collect();
    let different = inserted.iter().collect::<HashSet<_>>().len();
    // If a remaining value was inserted twice, a pending removal may have taken the other copy.
    let is_all_removed =
        different == inserted.len() && inserted.iter().all(|&value| removed.contains(value));
    let last_end = events().filter_map(|event| event.end).max();
    Box::new(move |event| match &*event.method {
        method if insert.contains(&method) => !values.contains(&event.args[0]),
        method if method == remove => match &event.returns {
            Some(Value::Null) => true,
            Some(value) => !values.contains(value),
            None => event.is_pending && (is_all_removed || event.start > last_end),
        },
        "peek" | "contains" | "size" | "isEmpty" | "toArray" => true,
        _ => false,
    })
}
