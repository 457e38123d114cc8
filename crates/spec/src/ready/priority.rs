//! A priority queue.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use consistory_history::Value;

use super::count;
use crate::signatures::signatures;
use crate::specification::{Family, Method, Specification};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        insert(element) as put, push, enqueue
        offer(element) -> bool as add
        poll() -> element as pop, remove, dequeue, extract, extractMin, extractMax, deleteMin
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

/// Which element comes out first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PriorityOrder {
    /// The least, as in the JDK.
    #[default]
    LeastFirst,
    /// The greatest, as in Rust.
    GreatestFirst,
}

/// A priority queue; equal elements may be in it several times, an empty one gives `null`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PriorityQueue {
    /// Which element comes out first.
    pub order: PriorityOrder,
}

impl Specification for PriorityQueue {
    /// How often each element is in it.
    type State = BTreeMap<Value, usize>;

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

    fn methods(&self) -> &[Method] {
        &METHODS
    }

    fn family(&self) -> Option<Family> {
        Some(match self.order {
            PriorityOrder::LeastFirst => Family::LeastFirst,
            PriorityOrder::GreatestFirst => Family::GreatestFirst,
        })
    }
}
