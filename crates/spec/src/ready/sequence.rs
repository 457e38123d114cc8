//! Queue, stack and deque: a sequence with different ends in use.

use std::collections::VecDeque;
use std::sync::LazyLock;

use consistory_history::Value;

use super::count;
use crate::footprint::Heap;
use crate::signatures::signatures;
use crate::specification::{Family, Method, Operation, Specification};

static QUEUE: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        enqueue(element) as put, push, enq
        offer(element) -> bool as add, try_push
        dequeue() -> element as poll, pop, try_pop, deq, remove
        take() -> element
        remove(element) -> bool
        drainTo() -> elements as drain
        read peek() -> element as front, element
        read contains(element) -> bool
        read size() -> count as len
        read isEmpty() -> bool as is_empty
        clear()
        read toArray() -> elements as iter, iterator
        ",
    )
});

static STACK: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        push(element)
        pop() -> element as poll, try_pop
        read peek() -> element as top
        read contains(element) -> bool
        read size() -> count as len
        read isEmpty() -> bool as is_empty, empty
        clear()
        read toArray() -> elements as iter, iterator
        ",
    )
});

static DEQUE: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        addFirst(element) as push_front, push, putFirst
        addLast(element) as push_back, put, putLast
        offerFirst(element) -> bool
        offerLast(element) -> bool as offer, add
        pollFirst() -> element as pop_front, removeFirst, poll, pop, remove
        pollLast() -> element as pop_back, removeLast
        read peekFirst() -> element as front, getFirst, peek, element
        read peekLast() -> element as back, getLast
        takeFirst() -> element as take
        takeLast() -> element
        removeFirstOccurrence(element) -> bool as remove
        removeLastOccurrence(element) -> bool
        drainTo() -> elements as drain
        read contains(element) -> bool
        read size() -> count as len
        read isEmpty() -> bool as is_empty
        clear()
        read toArray() -> elements as iter, iterator
        ",
    )
});

type Elements = VecDeque<Value>;

/// An end of a sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

/// Inserts an element at an end, if there is room.
fn put(elements: &mut Elements, capacity: Option<usize>, element: &Value, end: End) -> bool {
    let has_room = capacity.is_none_or(|capacity| elements.len() < capacity);
    match end {
        End::Front if has_room => elements.push_front(element.clone()),
        End::Back if has_room => elements.push_back(element.clone()),
        _ => {}
    }
    has_room
}

/// Methods that all three share: queries, and clearing.
fn ask(elements: &mut Elements, method: &str, args: &[Value]) -> Option<Value> {
    Some(match (method, args) {
        ("contains", [x]) => Value::Bool(elements.contains(x)),
        ("size", []) => count(elements.len()),
        ("isEmpty", []) => Value::Bool(elements.is_empty()),
        ("clear", []) => {
            elements.clear();
            Value::Null
        }
        ("toArray", []) => Value::List(elements.iter().cloned().collect()),
        ("drainTo", []) => Value::List(elements.drain(..).collect()),
        _ => return None,
    })
}

/// Removes an element. Returns whether it was found.
fn take_out(elements: &mut Elements, found: Option<usize>) -> Value {
    Value::Bool(found.and_then(|at| elements.remove(at)).is_some())
}

fn or_null(element: Option<Value>) -> Value {
    element.unwrap_or(Value::Null)
}

/// Effect of an operation on one end of an unbounded sequence.
enum Role<'a> {
    /// Inserts an element.
    Gives { end: End, element: &'a Value },
    /// Removes an element, or finds none; `None` if the return is unknown.
    Takes { end: End, element: Option<&'a Value> },
}

impl<'a> Role<'a> {
    fn gives(end: End, element: &'a Value, op: &Operation<'_>) -> Option<Self> {
        // There is always room.
        let is_possible = op.returns.is_none_or(|returned| *returned == Value::Bool(true));
        (is_possible || !op.method.starts_with("offer")).then_some(Role::Gives { end, element })
    }

    fn takes(end: End, op: &Operation<'a>) -> Option<Self> {
        Some(Role::Takes { end, element: op.returns })
    }
}

/// Returns whether one operation may affect another, by their effects on the ends.
fn depends(elements: &Elements, op: &Role<'_>, other: &Role<'_>) -> bool {
    match (op, other) {
        (Role::Gives { end: a, element: x }, Role::Gives { end: b, element: y }) => {
            a == b && x != y
        }
        (Role::Gives { end: a, element: x }, Role::Takes { end: b, element: y }) => {
            y.is_none_or(|y| *y == Value::Null || (a == b && *x != y))
        }
        (Role::Takes { element: None, .. }, _) => true,
        (Role::Takes { end, element: Some(x) }, other) => {
            let first = match end {
                End::Front => elements.front(),
                End::Back => elements.back(),
            };
            match (first, other) {
                // The first element must stay, or must be removed.
                (Some(first), Role::Takes { element, .. }) => element.is_none_or(|y| y == first),
                // An element inserted at this end hides the first one, or is the wanted one.
                (Some(first), Role::Gives { end: b, element: y }) => {
                    end == b && (x == y) != (*x == first)
                }
                (None, Role::Gives { element: y, .. }) => x == y || **x == Value::Null,
                (None, Role::Takes { .. }) => **x == Value::Null,
            }
        }
    }
}

/// A first-in, first-out queue; an empty one returns `null`.
///
/// In a bounded queue that is full, `offer` returns `false` and `enqueue` waits; `take` waits for
/// an element. A call that waits is not possible in that state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Queue {
    /// Capacity.
    pub capacity: Option<usize>,
}

impl Specification for Queue {
    type State = Elements;

    fn show(&self, state: &Elements) -> Option<String> {
        super::shown::list(state)
    }

    fn initial(&self) -> Elements {
        Elements::new()
    }

    fn invoke(&self, queue: &mut Elements, method: &str, args: &[Value]) -> Option<Value> {
        match (method, args) {
            ("enqueue", [x]) => put(queue, self.capacity, x, End::Back).then_some(Value::Null),
            ("offer", [x]) => Some(Value::Bool(put(queue, self.capacity, x, End::Back))),
            ("dequeue", []) => Some(or_null(queue.pop_front())),
            ("take", []) => queue.pop_front(),
            ("peek", []) => Some(or_null(queue.front().cloned())),
            ("remove", [x]) => {
                let found = queue.iter().position(|element| element == x);
                Some(take_out(queue, found))
            }
            _ => ask(queue, method, args),
        }
    }

    fn footprint(&self, state: &Self::State) -> usize {
        Heap::footprint(state)
    }

    fn methods(&self) -> &[Method] {
        &QUEUE
    }

    fn depends(&self, queue: &Elements, op: &Operation<'_>, other: &Operation<'_>) -> bool {
        fn role<'a>(op: &Operation<'a>) -> Option<Role<'a>> {
            match (op.method, op.args) {
                ("enqueue" | "offer", [x]) => Role::gives(End::Back, x, op),
                ("dequeue" | "take", []) => Role::takes(End::Front, op),
                _ => None,
            }
        }
        match (role(op), role(other)) {
            (Some(op), Some(other)) if self.capacity.is_none() => depends(queue, &op, &other),
            _ => true,
        }
    }

    fn family(&self) -> Option<Family> {
        self.capacity.is_none().then_some(Family::Queue)
    }
}

/// A last-in, first-out stack; an empty one returns `null`. `toArray` starts at the top.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stack {
    /// Capacity; `push` waits when the stack is full.
    pub capacity: Option<usize>,
}

impl Specification for Stack {
    type State = Elements;

    fn show(&self, state: &Elements) -> Option<String> {
        super::shown::list(state)
    }

    fn initial(&self) -> Elements {
        Elements::new()
    }

    fn invoke(&self, stack: &mut Elements, method: &str, args: &[Value]) -> Option<Value> {
        match (method, args) {
            ("push", [x]) => put(stack, self.capacity, x, End::Front).then_some(Value::Null),
            ("pop", []) => Some(or_null(stack.pop_front())),
            ("peek", []) => Some(or_null(stack.front().cloned())),
            _ => ask(stack, method, args),
        }
    }

    fn footprint(&self, state: &Self::State) -> usize {
        Heap::footprint(state)
    }

    fn methods(&self) -> &[Method] {
        &STACK
    }

    fn family(&self) -> Option<Family> {
        self.capacity.is_none().then_some(Family::Stack)
    }
}

/// A queue with two ends; an empty one returns `null`, and `takeFirst` and `takeLast` wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Deque {
    /// Capacity.
    pub capacity: Option<usize>,
}

impl Specification for Deque {
    type State = Elements;

    fn show(&self, state: &Elements) -> Option<String> {
        super::shown::list(state)
    }

    fn initial(&self) -> Elements {
        Elements::new()
    }

    fn invoke(&self, deque: &mut Elements, method: &str, args: &[Value]) -> Option<Value> {
        match (method, args) {
            ("addFirst", [x]) => put(deque, self.capacity, x, End::Front).then_some(Value::Null),
            ("addLast", [x]) => put(deque, self.capacity, x, End::Back).then_some(Value::Null),
            ("offerFirst", [x]) => Some(Value::Bool(put(deque, self.capacity, x, End::Front))),
            ("offerLast", [x]) => Some(Value::Bool(put(deque, self.capacity, x, End::Back))),
            ("pollFirst", []) => Some(or_null(deque.pop_front())),
            ("pollLast", []) => Some(or_null(deque.pop_back())),
            ("peekFirst", []) => Some(or_null(deque.front().cloned())),
            ("peekLast", []) => Some(or_null(deque.back().cloned())),
            ("takeFirst", []) => deque.pop_front(),
            ("takeLast", []) => deque.pop_back(),
            ("removeFirstOccurrence", [x]) => {
                let found = deque.iter().position(|element| element == x);
                Some(take_out(deque, found))
            }
            ("removeLastOccurrence", [x]) => {
                let found = deque.iter().rposition(|element| element == x);
                Some(take_out(deque, found))
            }
            _ => ask(deque, method, args),
        }
    }

    fn footprint(&self, state: &Self::State) -> usize {
        Heap::footprint(state)
    }

    fn methods(&self) -> &[Method] {
        &DEQUE
    }

    fn depends(&self, deque: &Elements, op: &Operation<'_>, other: &Operation<'_>) -> bool {
        fn role<'a>(op: &Operation<'a>) -> Option<Role<'a>> {
            match (op.method, op.args) {
                ("addFirst" | "offerFirst", [x]) => Role::gives(End::Front, x, op),
                ("addLast" | "offerLast", [x]) => Role::gives(End::Back, x, op),
                ("pollFirst" | "takeFirst", []) => Role::takes(End::Front, op),
                ("pollLast" | "takeLast", []) => Role::takes(End::Back, op),
                _ => None,
            }
        }
        match (role(op), role(other)) {
            (Some(op), Some(other)) if self.capacity.is_none() => depends(deque, &op, &other),
            _ => true,
        }
    }

    fn family(&self) -> Option<Family> {
        self.capacity.is_none().then_some(Family::Deque)
    }
}
