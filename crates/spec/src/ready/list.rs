//! A list with indices.

use std::sync::LazyLock;

use consistory_history::Value;

use super::count;
use crate::footprint::Heap;
use crate::signatures::signatures;
use crate::specification::{Method, Specification};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        add(element) -> bool
        push(element) as push_back
        addIfAbsent(element) -> bool
        addAll(elements) -> bool
        set(index, element) -> old
        remove(element) -> bool
        removeAt(index) -> element
        pop() -> element as pop_back
        clear()
        read get(index) -> element
        read indexOf(element) -> index
        read lastIndexOf(element) -> index
        read contains(element) -> bool
        read size() -> count as len
        read isEmpty() -> bool as is_empty
        read toArray() -> elements as iter, iterator
        ",
    )
});

/// A list. `get`, `set` and `removeAt` beyond its end return `null`, `indexOf` returns -1 for a
/// missing element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct List;

impl Specification for List {
    type State = Vec<Value>;

    fn show(&self, state: &Vec<Value>) -> Option<String> {
        super::shown::list(state)
    }

    fn initial(&self) -> Vec<Value> {
        Vec::new()
    }

    fn invoke(&self, list: &mut Vec<Value>, method: &str, args: &[Value]) -> Option<Value> {
        let at = |index: &i64| usize::try_from(*index).unwrap_or(usize::MAX);
        let index = |found: Option<usize>| found.map_or(Value::Int(-1), count);
        Some(match (method, args) {
            ("add" | "push", [x]) => {
                list.push(x.clone());
                Value::Bool(true)
            }
            ("addIfAbsent", [x]) => {
                let is_absent = !list.contains(x);
                if is_absent {
                    list.push(x.clone());
                }
                Value::Bool(is_absent)
            }
            ("addAll", [Value::List(all)]) => {
                list.extend(all.iter().cloned());
                Value::Bool(!all.is_empty())
            }
            ("set", [Value::Int(i), x]) => match list.get_mut(at(i)) {
                Some(element) => std::mem::replace(element, x.clone()),
                None => Value::Null,
            },
            ("remove", [x]) => {
                let found = list.iter().position(|element| element == x);
                Value::Bool(found.map(|at| list.remove(at)).is_some())
            }
            ("removeAt", [Value::Int(i)]) if at(i) < list.len() => list.remove(at(i)),
            ("removeAt", [Value::Int(_)]) => Value::Null,
            ("pop", []) => list.pop().unwrap_or(Value::Null),
            ("clear", []) => {
                list.clear();
                Value::Null
            }
            ("get", [Value::Int(i)]) => list.get(at(i)).cloned().unwrap_or(Value::Null),
            ("indexOf", [x]) => index(list.iter().position(|element| element == x)),
            ("lastIndexOf", [x]) => index(list.iter().rposition(|element| element == x)),
            ("contains", [x]) => Value::Bool(list.contains(x)),
            ("size", []) => count(list.len()),
            ("isEmpty", []) => Value::Bool(list.is_empty()),
            ("toArray", []) => Value::List(list.clone()),
            _ => return None,
        })
    }

    fn footprint(&self, state: &Self::State) -> usize {
        Heap::footprint(state)
    }

    fn methods(&self) -> &[Method] {
        &METHODS
    }
}
