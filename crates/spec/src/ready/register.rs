//! One cell: a register, with and without compare-and-set.

use std::sync::LazyLock;

use consistory_history::Value;

use crate::footprint::Heap;
use crate::signatures::signatures;
use crate::specification::{CallRef, Family, Goal, Method, Specification};

static PLAIN: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        read read() -> value as get, load
        write(value) as set, store
        ",
    )
});

static CAS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        read read() -> value as get, load
        write(value) as set, store
        cas(expected, new) -> bool as compareAndSet, compare_and_set
        swap(value) -> old as getAndSet
        compareAndExchange(expected, new) -> old as compare_and_swap
        ",
    )
});

/// A register: `read` returns the value of the last `write`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// The value before the first write.
    pub initial: Value,
}

impl Specification for Register {
    type State = Value;

    fn show(&self, state: &Value) -> Option<String> {
        Some(state.to_string())
    }

    fn initial(&self) -> Value {
        self.initial.clone()
    }

    fn invoke(&self, state: &mut Value, method: &str, args: &[Value]) -> Option<Value> {
        match (method, args) {
            ("read", []) => Some(state.clone()),
            ("write", [value]) => {
                state.clone_from(value);
                Some(Value::Null)
            }
            _ => None,
        }
    }

    fn looks_ahead(&self) -> bool {
        true
    }

    fn can_reach(&self, state: &Value, goal: &Goal<'_>, by: &[CallRef<'_>]) -> bool {
        state == goal.returns || by.iter().any(|(_, args)| args.last() == Some(goal.returns))
    }

    fn overwrites(&self, method: &str, _args: &[Value]) -> bool {
        method == "write"
    }

    fn footprint(&self, state: &Self::State) -> usize {
        Heap::footprint(state)
    }

    fn methods(&self) -> &[Method] {
        &PLAIN
    }

    fn family(&self) -> Option<Family> {
        Some(Family::Register(self.initial.clone()))
    }
}

/// A register that can be compared and set at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CasRegister {
    /// The register whose reads and writes it has.
    pub register: Register,
}

impl CasRegister {
    /// Returns a register that holds `initial` before the first write.
    pub fn new(initial: Value) -> Self {
        CasRegister { register: Register { initial } }
    }
}

impl Specification for CasRegister {
    type State = Value;

    fn show(&self, state: &Value) -> Option<String> {
        self.register.show(state)
    }

    fn initial(&self) -> Value {
        self.register.initial()
    }

    fn invoke(&self, state: &mut Value, method: &str, args: &[Value]) -> Option<Value> {
        match (method, args) {
            ("cas", [expected, new]) => {
                let is_equal = state == expected;
                if is_equal {
                    state.clone_from(new);
                }
                Some(Value::Bool(is_equal))
            }
            ("swap", [value]) => Some(std::mem::replace(state, value.clone())),
            ("compareAndExchange", [expected, new]) => {
                let old = state.clone();
                if old == *expected {
                    state.clone_from(new);
                }
                Some(old)
            }
            _ => self.register.invoke(state, method, args),
        }
    }

    fn is_read_only(&self, method: &str, returns: Option<&Value>) -> bool {
        method == "read" || (method == "cas" && returns == Some(&Value::Bool(false)))
    }

    fn looks_ahead(&self) -> bool {
        true
    }

    /// Every method that changes the register stores its last argument.
    fn can_reach(&self, state: &Value, goal: &Goal<'_>, by: &[CallRef<'_>]) -> bool {
        let puts = |value: &Value| by.iter().any(|(_, args)| args.last() == Some(value));
        match (goal.method, goal.args) {
            ("read", _) => state == goal.returns || puts(goal.returns),
            _ => true,
        }
    }

    fn overwrites(&self, method: &str, args: &[Value]) -> bool {
        self.register.overwrites(method, args)
    }

    fn footprint(&self, state: &Self::State) -> usize {
        self.register.footprint(state)
    }

    fn methods(&self) -> &[Method] {
        &CAS
    }
}
