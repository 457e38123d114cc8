//! A lock.

use std::sync::LazyLock;

use consistory_history::Value;

use crate::signatures::signatures;
use crate::specification::{Method, Specification};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        lock() as acquire
        lock(owner) as acquire
        unlock() as release
        unlock(owner) as release
        tryLock() -> bool as try_lock, tryAcquire
        tryLock(owner) -> bool as try_lock, tryAcquire
        read isLocked() -> bool as is_locked
        ",
    )
});

/// A mutual-exclusion lock that is not reentrant, with or without owners.
///
/// Locking a held lock waits; unlocking a lock that is free or held by another owner is an error.
/// Neither call is possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lock;

impl Specification for Lock {
    /// Owner; `Some(Null)` if the call named none.
    type State = Option<Value>;

    fn show(&self, state: &Option<Value>) -> Option<String> {
        Some(state.as_ref().map_or("free".to_owned(), |owner| format!("held by {owner}")))
    }

    fn initial(&self) -> Option<Value> {
        None
    }

    fn invoke(&self, holder: &mut Option<Value>, method: &str, args: &[Value]) -> Option<Value> {
        let owner = args.first().unwrap_or(&Value::Null);
        match method {
            "lock" if holder.is_none() => *holder = Some(owner.clone()),
            "unlock" if holder.as_ref() == Some(owner) => *holder = None,
            "tryLock" => {
                let is_free = holder.is_none();
                if is_free {
                    *holder = Some(owner.clone());
                }
                return Some(Value::Bool(is_free));
            }
            "isLocked" => return Some(Value::Bool(holder.is_some())),
            _ => return None,
        }
        Some(Value::Null)
    }

    fn is_read_only(&self, method: &str, returns: Option<&Value>) -> bool {
        method == "isLocked" || (method == "tryLock" && returns == Some(&Value::Bool(false)))
    }

    fn methods(&self) -> &[Method] {
        &METHODS
    }
}
