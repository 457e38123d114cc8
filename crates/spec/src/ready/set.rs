//! A sorted set.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::LazyLock;

use consistory_history::Value;

use super::count;
use crate::footprint::Heap;
use crate::signatures::signatures;
use crate::specification::{Family, Method, Specification};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        add(element) -> bool as insert
        ensure(element)
        remove(element) -> bool as delete
        addAll(elements) -> bool
        removeAll(elements) -> bool
        read contains(element) -> bool
        read size() -> count as len
        read isEmpty() -> bool as is_empty
        clear()
        read toArray() -> unordered as elements, iter, iterator, read
        read first() -> element
        read last() -> element
        pollFirst() -> element as pop_front
        pollLast() -> element as pop_back
        read lower(element) -> element
        read floor(element) -> element
        read ceiling(element) -> element
        read higher(element) -> element
        ",
    )
});

/// A set whose elements are sorted; a missing element is `null`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Set;

impl Specification for Set {
    type State = BTreeSet<Value>;

    fn show(&self, state: &BTreeSet<Value>) -> Option<String> {
        super::shown::set(state.iter().map(ToString::to_string))
    }

    fn initial(&self) -> Self::State {
        BTreeSet::new()
    }

    fn invoke(&self, set: &mut Self::State, method: &str, args: &[Value]) -> Option<Value> {
        let or_null = |value: Option<&Value>| value.cloned().unwrap_or(Value::Null);
        Some(match (method, args) {
            ("add", [x]) => Value::Bool(set.insert(x.clone())),
            ("ensure", [x]) => {
                set.insert(x.clone());
                Value::Null
            }
            ("remove", [x]) => Value::Bool(set.remove(x)),
            ("addAll", [Value::List(all)]) => {
                Value::Bool(all.iter().fold(false, |any, x| set.insert(x.clone()) | any))
            }
            ("removeAll", [Value::List(all)]) => {
                Value::Bool(all.iter().fold(false, |any, x| set.remove(x) | any))
            }
            ("contains", [x]) => Value::Bool(set.contains(x)),
            ("size", []) => count(set.len()),
            ("isEmpty", []) => Value::Bool(set.is_empty()),
            ("clear", []) => {
                set.clear();
                Value::Null
            }
            ("toArray", []) => Value::List(set.iter().cloned().collect()),
            ("first", []) => or_null(set.first()),
            ("last", []) => or_null(set.last()),
            ("pollFirst", []) => set.pop_first().unwrap_or(Value::Null),
            ("pollLast", []) => set.pop_last().unwrap_or(Value::Null),
            ("lower", [x]) => or_null(set.range(..x.clone()).next_back()),
            ("floor", [x]) => or_null(set.range(..=x.clone()).next_back()),
            ("ceiling", [x]) => or_null(set.range(x.clone()..).next()),
            ("higher", [x]) => {
                or_null(set.range((Bound::Excluded(x.clone()), Bound::Unbounded)).next())
            }
            _ => return None,
        })
    }

    fn is_read_only(&self, method: &str, returns: Option<&Value>) -> bool {
        match method {
            "add" | "remove" | "addAll" | "removeAll" => returns == Some(&Value::Bool(false)),
            "clear" | "ensure" | "pollFirst" | "pollLast" => false,
            _ => true,
        }
    }

    fn footprint(&self, state: &Self::State) -> usize {
        Heap::footprint(state)
    }

    fn methods(&self) -> &[Method] {
        &METHODS
    }

    fn family(&self) -> Option<Family> {
        Some(Family::Set)
    }

    fn part(&self, method: &str, args: &[Value]) -> Option<Value> {
        match method {
            "add" | "ensure" | "remove" | "contains" => args.first().cloned(),
            _ => None,
        }
    }
}
