//! A counter, with the methods of atomic integers.

use std::sync::LazyLock;

use consistory_history::Value;

use crate::signatures::signatures;
use crate::specification::{Family, Method, Specification};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        read get() -> integer as read, load, sum, intValue, longValue, value
        set(integer) as store
        add(delta)
        subtract(delta) as sub
        increment() as inc
        decrement() as dec
        getAndAdd(delta) -> integer as fetch_add, fetchAndAdd
        getAndSubtract(delta) -> integer as fetch_sub
        addAndGet(delta) -> integer
        incrementAndGet() -> integer
        decrementAndGet() -> integer
        getAndIncrement() -> integer
        getAndDecrement() -> integer
        getAndSet(integer) -> integer as swap
        compareAndSet(integer, integer) -> bool as compare_and_set
        sumThenReset() -> integer
        reset()
        ",
    )
});

/// A counter of 64 bits that wraps around.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counter {
    /// Initial value.
    pub initial: i64,
}

impl Specification for Counter {
    type State = i64;

    fn show(&self, state: &i64) -> Option<String> {
        Some(state.to_string())
    }

    fn initial(&self) -> i64 {
        self.initial
    }

    fn invoke(&self, state: &mut i64, method: &str, args: &[Value]) -> Option<Value> {
        let old = *state;
        let (new, shown) = match (method, args) {
            ("get", []) => (old, Some(old)),
            ("set", [Value::Int(value)]) => (*value, None),
            ("add", [Value::Int(delta)]) => (old.wrapping_add(*delta), None),
            ("subtract", [Value::Int(delta)]) => (old.wrapping_sub(*delta), None),
            ("increment", []) => (old.wrapping_add(1), None),
            ("decrement", []) => (old.wrapping_sub(1), None),
            ("getAndAdd", [Value::Int(delta)]) => (old.wrapping_add(*delta), Some(old)),
            ("getAndSubtract", [Value::Int(delta)]) => (old.wrapping_sub(*delta), Some(old)),
            ("addAndGet", [Value::Int(delta)]) => {
                (old.wrapping_add(*delta), Some(old.wrapping_add(*delta)))
            }
            ("incrementAndGet", []) => (old.wrapping_add(1), Some(old.wrapping_add(1))),
            ("decrementAndGet", []) => (old.wrapping_sub(1), Some(old.wrapping_sub(1))),
            ("getAndIncrement", []) => (old.wrapping_add(1), Some(old)),
            ("getAndDecrement", []) => (old.wrapping_sub(1), Some(old)),
            ("getAndSet", [Value::Int(value)]) => (*value, Some(old)),
            ("compareAndSet", [Value::Int(expected), Value::Int(new)]) => {
                let is_equal = old == *expected;
                if is_equal {
                    *state = *new;
                }
                return Some(Value::Bool(is_equal));
            }
            ("sumThenReset", []) => (0, Some(old)),
            ("reset", []) => (0, None),
            _ => return None,
        };
        *state = new;
        Some(shown.map_or(Value::Null, Value::Int))
    }

    fn is_read_only(&self, method: &str, returns: Option<&Value>) -> bool {
        method == "get" || (method == "compareAndSet" && returns == Some(&Value::Bool(false)))
    }

    fn overwrites(&self, method: &str, args: &[Value]) -> bool {
        matches!((method, args), ("set", [Value::Int(_)]) | ("reset", []))
    }

    fn methods(&self) -> &[Method] {
        &METHODS
    }

    fn family(&self) -> Option<Family> {
        Some(Family::Counter(self.initial))
    }
}
