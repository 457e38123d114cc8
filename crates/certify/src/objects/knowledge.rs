//! The checker's knowledge about objects, and its sources.
//!
//! A [`Specification`](consistory_spec::Specification) can give hints: which calls only read, which
//! calls do not matter to each other, which parts are objects of their own. The deciders prune by
//! them. A wrong hint would mislead a checker that pruned by the same hints, so this checker relies
//! on none:
//!
//! - It has its own rules for the *ready objects*, which it recognises by their Rust types. The
//!   rules and their justification are in this file. Whether a call of a ready object only reads is
//!   taken from the object, and checked each time such a call is performed.
//! - About any other object it knows only the answers of `invoke`. That a call only reads is then a
//!   conjecture, which is checked in every state where it could matter ([`super::breadth`],
//!   [`super::depth`]); all other hints are ignored.

use std::any::Any;

use consistory_history::Value;
use consistory_spec::{
    CasRegister, Counter, Deque, Family, KeyValue, Keyed, List, Lock, Log, Map, Object,
    PriorityOrder, PriorityQueue, Queue, Register, Set, Stack, State, Transactions,
};

/// A ready object, as far as the checker has rules for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ready {
    Register(Value),
    CasRegister,
    Store(Value),
    Map,
    Set,
    Transactions,
    Log,
    /// An unbounded queue.
    Queue,
    /// An unbounded stack.
    Stack,
    /// An unbounded deque.
    Deque,
    PriorityQueue(PriorityOrder),
    /// An object per key, which is the first argument of every call.
    Keyed,
    /// A ready object without rules.
    Other,
}

/// A call and its return value, if known.
#[derive(Clone, Copy)]
pub(crate) struct Called<'a> {
    pub(crate) method: &'a str,
    pub(crate) args: &'a [Value],
    pub(crate) returns: Option<&'a Value>,
}

impl Ready {
    /// Recognises a ready object by its type.
    pub(crate) fn recognise(object: &dyn Object) -> Option<Self> {
        let object: &dyn Any = object.as_any();
        let unbounded = |capacity: Option<usize>, ready: Ready| match capacity {
            None => ready,
            Some(_) => Ready::Other,
        };
        Some(if let Some(register) = object.downcast_ref::<Register>() {
            Ready::Register(register.initial.clone())
        } else if let Some(store) = object.downcast_ref::<KeyValue>() {
            Ready::Store(store.initial.clone())
        } else if let Some(queue) = object.downcast_ref::<Queue>() {
            unbounded(queue.capacity, Ready::Queue)
        } else if let Some(stack) = object.downcast_ref::<Stack>() {
            unbounded(stack.capacity, Ready::Stack)
        } else if let Some(deque) = object.downcast_ref::<Deque>() {
            unbounded(deque.capacity, Ready::Deque)
        } else if let Some(queue) = object.downcast_ref::<PriorityQueue>() {
            Ready::PriorityQueue(queue.order)
        } else if object.is::<CasRegister>() {
            Ready::CasRegister
        } else if object.is::<Map>() {
            Ready::Map
        } else if object.is::<Set>() {
            Ready::Set
        } else if object.is::<Keyed>() {
            Ready::Keyed
        } else if object.is::<Transactions>() {
            Ready::Transactions
        } else if object.is::<Log>() {
            Ready::Log
        } else if object.is::<Counter>() || object.is::<List>() || object.is::<Lock>() {
            Ready::Other
        } else {
            return None;
        })
    }

    /// Returns the family whose theorems about cores hold for the object.
    pub(crate) fn family(&self) -> Option<Family> {
        Some(match self {
            Ready::Register(initial) => Family::Register(initial.clone()),
            Ready::Store(initial) => Family::Store(initial.clone()),
            Ready::Set => Family::Set,
            Ready::Queue => Family::Queue,
            Ready::Stack => Family::Stack,
            Ready::PriorityQueue(PriorityOrder::LeastFirst) => Family::LeastFirst,
            Ready::PriorityQueue(PriorityOrder::GreatestFirst) => Family::GreatestFirst,
            _ => return None,
        })
    }

    /// Returns the part of the object to which a call is confined: the key or element that it
    /// names, if the call neither changes nor reads any other part.
    pub(crate) fn part<'a>(&self, method: &str, args: &'a [Value]) -> Option<&'a Value> {
        match self {
            Ready::Store(_) | Ready::Keyed => args.first(),
            Ready::Set if matches!(method, "add" | "ensure" | "remove" | "contains") => {
                args.first()
            }
            Ready::Map => match method {
                "put" | "set" | "get" | "getOrDefault" | "remove" | "removeKey" | "putIfAbsent"
                | "tryInsert" | "getOrPut" | "replace" | "containsKey" => args.first(),
                _ => None,
            },
            Ready::Transactions => {
                let [Value::List(steps)] = args else { return None };
                let key = |step: &'a Value| match step {
                    Value::List(step) => step.get(1),
                    _ => None,
                };
                let first = key(steps.first()?)?;
                steps.iter().all(|step| key(step) == Some(first)).then_some(first)
            }
            _ => None,
        }
    }

    /// Checks whether the checker can tell from a state which calls do not matter to which
    /// others.
    pub(crate) fn has_independent_calls(&self) -> bool {
        !matches!(
            self,
            Ready::Register(_) | Ready::CasRegister | Ready::Log | Ready::Stack | Ready::Other
        )
    }

    /// Looks up the ends of a collection, for [`matters`](Self::matters).
    pub(crate) fn ends(&self, object: &dyn Object, state: &State) -> Ends {
        let ask = |method: &str| {
            let answer = object.invoke(&mut state.clone(), method, &[]);
            answer.filter(|value| *value != Value::Null)
        };
        match self {
            Ready::Queue => Ends { first: ask("peek"), last: None },
            Ready::Deque => Ends { first: ask("peekFirst"), last: ask("peekLast") },
            Ready::PriorityQueue(_) => Ends { first: ask("peek"), last: None },
            _ => Ends { first: None, last: None },
        }
    }

    /// Checks whether it may matter to `one`, from a state on, that `other` comes first.
    ///
    /// Consider calls for which this returns `false`, performed in any order. If `one` can return
    /// its recorded value in the state, then it can also return it after these calls, they can be
    /// performed after it, and both orders lead to the same state; otherwise it cannot return that
    /// value after them either. The reasons:
    ///
    /// - Calls that are confined to different parts do not interact.
    /// - Inserting commutes with inserting at the other end, with inserting the same element, and
    ///   with a removal that returns an element from the other end or the very same element,
    ///   because that removal found one without this insertion.
    /// - A removal whose element is at its end now is disturbed only by an insertion of another
    ///   element at that end and by a removal of an equal element. A removal that cannot return its
    ///   element now waits for the element at its end to be removed, or for an insertion of its own
    ///   element; on an empty collection only for the latter. A removal that found nothing is
    ///   disturbed by any insertion.
    /// - In a priority queue, an insertion disturbs a removal only if the inserted element comes
    ///   out sooner. A removal of an element that precedes all present elements waits only for its
    ///   insertion.
    pub(crate) fn matters(&self, ends: &Ends, one: &Called<'_>, other: &Called<'_>) -> bool {
        match self {
            Ready::Queue | Ready::Deque => match (end_call(one), end_call(other)) {
                (Some(one), Some(other)) => sequence_matters(ends, one, other),
                _ => true,
            },
            Ready::PriorityQueue(order) => match (heap_call(one), heap_call(other)) {
                (Some(one), Some(other)) => heap_matters(*order, ends.first.as_ref(), one, other),
                _ => true,
            },
            _ => {
                let part = self.part(one.method, one.args);
                part.is_none()
                    || self.part(other.method, other.args).is_none_or(|p| Some(p) == part)
            }
        }
    }

    /// Checks whether the checker can tell that a read can no longer return its recorded value.
    pub(crate) fn foresees_reads(&self) -> bool {
        matches!(self, Ready::Register(_) | Ready::CasRegister | Ready::Store(_) | Ready::Log)
    }

    /// Checks whether some of the calls `by`, in some order, may lead from a state to one in which
    /// a read returns its recorded value. Returns `true` in case of doubt.
    ///
    /// A register holds its current value or the last argument of a call. The text or list of a
    /// key, and a log, grow only by appends, except that a `put` replaces the value of its key.
    pub(crate) fn can_return(
        &self,
        object: &dyn Object,
        state: &State,
        read: &Called<'_>,
        by: &[Called<'_>],
    ) -> bool {
        let Some(wanted) = read.returns else { return true };
        let now = || object.invoke(&mut state.clone(), read.method, read.args);
        match (self, read.method) {
            (Ready::Register(_) | Ready::CasRegister, "read") => {
                by.iter().any(|call| call.args.last() == Some(wanted))
                    || now().as_ref() == Some(wanted)
            }
            (Ready::Store(_), "get") => now().is_none_or(|now| {
                let of_key: Vec<&Called<'_>> =
                    by.iter().filter(|call| call.args.first() == read.args.first()).collect();
                now == *wanted || key_can_hold(&now, wanted, &of_key)
            }),
            (Ready::Log, "readAll") => match (now(), wanted) {
                (Some(Value::List(now)), Value::List(wanted)) => match wanted.strip_prefix(&*now) {
                    Some([next, ..]) => by.iter().any(|call| call.args.first() == Some(next)),
                    rest => rest.is_some(),
                },
                _ => true,
            },
            _ => true,
        }
    }
}

/// Checks whether some of the calls of a key may change its value from `now` to `wanted`.
fn key_can_hold(now: &Value, wanted: &Value, by: &[&Called<'_>]) -> bool {
    if by.iter().any(|call| !matches!(call.method, "get" | "put" | "append")) {
        return true;
    }
    let arguments = |method: &'static str| {
        by.iter().filter(move |call| call.method == method).filter_map(|call| call.args.get(1))
    };
    if arguments("append").next().is_none() {
        return arguments("put").any(|put| put == wanted);
    }
    // A start is possible if nothing follows it, or if an appended value follows it.
    let mut starts = std::iter::once(now).chain(arguments("put"));
    starts.any(|start| match (start, wanted) {
        (Value::Null, _) => true,
        (Value::Str(start), Value::Str(wanted)) => match wanted.strip_prefix(&**start) {
            Some("") => true,
            Some(rest) => arguments("append")
                .any(|more| matches!(more, Value::Str(more) if rest.starts_with(&**more))),
            None => false,
        },
        (Value::List(start), Value::List(wanted)) => match wanted.strip_prefix(&**start) {
            Some([]) => true,
            Some([next, ..]) => arguments("append").any(|more| more == next),
            None => false,
        },
        (start, wanted) => start == wanted,
    })
}

/// Elements at the ends of a collection; `None` if there is none.
pub(crate) struct Ends {
    first: Option<Value>,
    last: Option<Value>,
}

/// An end of a sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

/// Effect of a call on an end of an unbounded sequence.
#[derive(Clone, Copy)]
enum EndCall<'a> {
    Insert(End, &'a Value),
    /// Removes the given element, or nothing if it is `null`; `None` if the result is not known.
    Remove(End, Option<&'a Value>),
}

fn end_call<'a>(call: &Called<'a>) -> Option<EndCall<'a>> {
    let is_accepted = call.returns.is_none_or(|returned| *returned == Value::Bool(true));
    Some(match (call.method, call.args) {
        ("enqueue" | "addLast", [x]) => EndCall::Insert(End::Last, x),
        ("addFirst", [x]) => EndCall::Insert(End::First, x),
        ("offer" | "offerLast", [x]) if is_accepted => EndCall::Insert(End::Last, x),
        ("offerFirst", [x]) if is_accepted => EndCall::Insert(End::First, x),
        ("dequeue" | "take" | "pollFirst" | "takeFirst", []) => {
            EndCall::Remove(End::First, call.returns)
        }
        ("pollLast" | "takeLast", []) => EndCall::Remove(End::Last, call.returns),
        _ => return None,
    })
}

fn sequence_matters(ends: &Ends, one: EndCall<'_>, other: EndCall<'_>) -> bool {
    use EndCall::{Insert, Remove};
    let is_null = |value: &Value| *value == Value::Null;
    match (one, other) {
        (Insert(end, x), Insert(at, y)) => end == at && x != y,
        (Insert(_, _), Remove(_, None)) | (Remove(_, None), _) => true,
        (Insert(end, x), Remove(at, Some(y))) => is_null(y) || (end == at && x != y),
        (Remove(end, Some(x)), other) => {
            let here = if end == End::First { &ends.first } else { &ends.last };
            match (here, other) {
                (Some(_), Remove(_, None)) => true,
                (Some(here), Remove(_, Some(y))) => y == here,
                (Some(here), Insert(at, y)) => end == at && (x == y) != (x == here),
                (None, Insert(_, y)) => x == y || is_null(x),
                (None, Remove(_, _)) => is_null(x),
            }
        }
    }
}

/// Effect of a call on a priority queue.
#[derive(Clone, Copy)]
enum HeapCall<'a> {
    Insert(&'a Value),
    Remove(Option<&'a Value>),
}

fn heap_call<'a>(call: &Called<'a>) -> Option<HeapCall<'a>> {
    Some(match (call.method, call.args, call.returns) {
        ("insert", [x], _) | ("offer", [x], None | Some(Value::Bool(true))) => HeapCall::Insert(x),
        ("poll" | "take", [], returned) => HeapCall::Remove(returned),
        _ => return None,
    })
}

fn heap_matters(
    order: PriorityOrder,
    first: Option<&Value>,
    one: HeapCall<'_>,
    other: HeapCall<'_>,
) -> bool {
    use HeapCall::{Insert, Remove};
    let is_sooner = |x: &Value, y: &Value| match order {
        PriorityOrder::LeastFirst => x < y,
        PriorityOrder::GreatestFirst => x > y,
    };
    let is_null = |value: &Value| *value == Value::Null;
    match (one, other) {
        (Insert(_), Insert(_)) => false,
        (Insert(x), Remove(Some(y))) => is_null(y) || is_sooner(x, y),
        (Insert(_), Remove(None)) | (Remove(None), _) => true,
        (Remove(Some(x)), other) => match (first, other) {
            (Some(first), Remove(y)) => {
                let waits_for_insertion = is_sooner(x, first) && !is_null(x);
                !waits_for_insertion && y.is_none_or(|y| y == first)
            }
            (Some(first), Insert(y)) if first == x => is_sooner(y, x),
            (Some(first), Insert(y)) => y == x && !is_sooner(first, x),
            (None, Insert(y)) => x == y || is_null(x),
            (None, Remove(_)) => is_null(x),
        },
    }
}
