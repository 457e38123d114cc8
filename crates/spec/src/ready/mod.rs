//! The built-in objects, one file per kind.

mod bank;
mod counter;
mod keyed;
mod list;
mod lock;
mod log;
mod map;
mod per_key;
mod priority;
mod register;
mod sequence;
mod set;
mod shown;
mod started;
mod text;
mod transactions;

pub use bank::Bank;
pub use counter::Counter;
pub use keyed::KeyValue;
pub use list::List;
pub use lock::Lock;
pub use log::Log;
pub use map::Map;
pub use per_key::Keyed;
pub use priority::{PriorityOrder, PriorityQueue};
pub use register::{CasRegister, Register};
pub use sequence::{Deque, Queue, Stack};
pub use set::Set;
pub use started::StartedKeyValue;
pub use transactions::Transactions;

use consistory_history::Value;

/// Builds the value of a count.
fn count(n: usize) -> Value {
    Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
}
