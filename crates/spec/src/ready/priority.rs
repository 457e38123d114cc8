//! A priority queue.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use consistory_history::Value;

use super::count;
use crate::footprint::Heap;
use crate::signatures::signatures;
use crate::specification::{Family, Method, Operation, Specification};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        insert(element) as put, push
        offer(element) -> bool as add
        poll() -> element as pop, remove, extract, extractMin, extractMax, deleteMin
        take() -> element
        remove(element) -> bool
        drainTo() -> elements as drain
        read peek() -> element as element, min, max
        read contains(element) -> bool
        read size() -> count as len
        read isEmpty() -> bool as is_empty
        clear()
        read toArray() -> unordered as iter, iterator
        ",
    )
});

/// The element that is removed first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PriorityOrder {
    /// The least, as in the JDK.
    #[default]
    LeastFirst,
    /// The greatest, as in Rust.
    GreatestFirst,
}

/// A priority queue; it may contain equal elements, and an empty one returns `null`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PriorityQueue {
    /// The element that is removed first.
    pub order: PriorityOrder,
}

impl Specification for PriorityQueue {
    /// Multiplicity of each element.
    type State = BTreeMap<Value, usize>;

    fn show(&self, state: &BTreeMap<Value, usize>) -> Option<String> {
        let copies = |(element, &count): (&Value, &usize)| vec![element.to_string(); count];
        super::shown::set(state.iter().flat_map(copies))
    }

    fn initial(&self) -> Self::State {
        BTreeMap::new()
    }

    fn invoke(&self, queue: &mut Self::State, method: &str, args: &[Value]) -> Option<Value> {
        let first = |queue: &Self::State| match self.order {
            PriorityOrder::LeastFirst => queue.first_key_value().map(|(x, _)| x.clone()),
            PriorityOrder::GreatestFirst => queue.last_key_value().map(|(x, _)| x.clone()),
        };
        let take_out = |queue: &mut Self::State, x: &Value| {
            let copies = queue.get_mut(x)?;
            *copies -= 1;
            if *copies == 0 {
                queue.remove(x);
            }
            Some(())
        };
        let take = |queue: &mut Self::State| {
            let x = first(queue)?;
            take_out(queue, &x).map(|()| x)
        };
        let sorted = |queue: &Self::State| -> Vec<Value> {
            queue.iter().flat_map(|(x, &n)| std::iter::repeat_n(x.clone(), n)).collect()
        };
        Some(match (method, args) {
            ("insert", [x]) => {
                *queue.entry(x.clone()).or_default() += 1;
                Value::Null
            }
            ("offer", [x]) => {
                *queue.entry(x.clone()).or_default() += 1;
                Value::Bool(true)
            }
            ("poll", []) => take(queue).unwrap_or(Value::Null),
            ("take", []) => return take(queue),
            ("remove", [x]) => Value::Bool(take_out(queue, x).is_some()),
            ("drainTo", []) => {
                let mut elements = sorted(queue);
                if self.order == PriorityOrder::GreatestFirst {
                    elements.reverse();
                }
                queue.clear();
                Value::List(elements)
            }
            ("peek", []) => first(queue).unwrap_or(Value::Null),
            ("contains", [x]) => Value::Bool(queue.contains_key(x)),
            ("size", []) => count(queue.values().sum()),
            ("isEmpty", []) => Value::Bool(queue.is_empty()),
            ("clear", []) => {
                queue.clear();
                Value::Null
            }
            ("toArray", []) => Value::List(sorted(queue)),
            _ => return None,
        })
    }

    fn footprint(&self, state: &Self::State) -> usize {
        Heap::footprint(state)
    }

    fn methods(&self) -> &[Method] {
        &METHODS
    }

    fn depends(&self, queue: &Self::State, op: &Operation<'_>, other: &Operation<'_>) -> bool {
        let precedes = |x: &Value, y: &Value| match self.order {
            PriorityOrder::LeastFirst => x < y,
            PriorityOrder::GreatestFirst => x > y,
        };
        let first = match self.order {
            PriorityOrder::LeastFirst => queue.first_key_value(),
            PriorityOrder::GreatestFirst => queue.last_key_value(),
        };
        let first = first.map(|(x, _)| x);
        match (role(op), role(other)) {
            (Some(Role::Gives(_)), Some(Role::Gives(_))) => false,
            (Some(Role::Gives(x)), Some(Role::Takes(Some(y)))) => {
                *y == Value::Null || precedes(x, y)
            }
            (Some(Role::Takes(Some(x))), Some(other)) => match (first, other) {
                // The first element must stay, or must be removed.
                (Some(first), Role::Takes(y)) => {
                    let has_to_come = precedes(x, first) && *x != Value::Null;
                    !has_to_come && y.is_none_or(|y| y == first)
                }
                (Some(first), Role::Gives(y)) if first == x => precedes(y, x),
                (Some(first), Role::Gives(y)) => y == x && !precedes(first, x),
                (None, Role::Gives(y)) => x == y || *x == Value::Null,
                (None, Role::Takes(_)) => *x == Value::Null,
            },
            _ => true,
        }
    }

    fn family(&self) -> Option<Family> {
        Some(match self.order {
            PriorityOrder::LeastFirst => Family::LeastFirst,
            PriorityOrder::GreatestFirst => Family::GreatestFirst,
        })
    }
}

/// Effect of an operation on a priority queue.
enum Role<'a> {
    /// Inserts an element.
    Gives(&'a Value),
    /// Removes the first element, or finds none; `None` if the return is unknown.
    Takes(Option<&'a Value>),
}

fn role<'a>(op: &Operation<'a>) -> Option<Role<'a>> {
    match (op.method, op.args, op.returns) {
        ("insert", [x], _) | ("offer", [x], None | Some(Value::Bool(true))) => Some(Role::Gives(x)),
        ("poll" | "take", [], returns) => Some(Role::Takes(returns)),
        _ => None,
    }
}
