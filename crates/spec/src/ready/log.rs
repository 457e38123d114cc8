//! An append-only log.

use std::sync::LazyLock;

use consistory_history::Value;

use super::count;
use crate::footprint::Heap;
use crate::signatures::signatures;
use crate::specification::{CallRef, Goal, Method, Specification};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        append(entry) -> index as add, push, send
        read read(index) -> entry as get
        read readAll() -> entries as toArray, iter
        read readFrom(index) -> entries as poll
        read size() -> count as len
        ",
    )
});

/// A log: `append` returns the entry's index, counted from 0; `read` beyond the end returns `null`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Log;

impl Specification for Log {
    type State = Vec<Value>;

    fn show(&self, state: &Vec<Value>) -> Option<String> {
        super::shown::list(state)
    }

    fn initial(&self) -> Vec<Value> {
        Vec::new()
    }

    fn invoke(&self, log: &mut Vec<Value>, method: &str, args: &[Value]) -> Option<Value> {
        Some(match (method, args) {
            ("append", [entry]) => {
                log.push(entry.clone());
                count(log.len() - 1)
            }
            ("read", [Value::Int(index)]) => {
                let entry = usize::try_from(*index).ok().and_then(|i| log.get(i));
                entry.cloned().unwrap_or(Value::Null)
            }
            ("readAll", []) => Value::List(log.clone()),
            ("readFrom", [Value::Int(index)]) => {
                let from = usize::try_from(*index).ok()?;
                Value::List(log.iter().skip(from).cloned().collect())
            }
            ("size", []) => count(log.len()),
            _ => return None,
        })
    }

    fn looks_ahead(&self) -> bool {
        true
    }

    fn can_reach(&self, log: &Vec<Value>, goal: &Goal<'_>, by: &[CallRef<'_>]) -> bool {
        let ("readAll", Value::List(wanted)) = (goal.method, goal.returns) else { return true };
        match wanted.strip_prefix(log.as_slice()) {
            Some([]) => true,
            Some([next, ..]) => by.iter().any(|(_, args)| args.first() == Some(next)),
            None => false,
        }
    }

    fn footprint(&self, state: &Self::State) -> usize {
        Heap::footprint(state)
    }

    fn methods(&self) -> &[Method] {
        &METHODS
    }
}
