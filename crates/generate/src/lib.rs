//! Histories on demand.
//!
//! A [`Workload`] describes random clients: how many sessions, operations and variables, how many
//! of the operations read. They run on a [`Memory`], a small machine that implements one
//! consistency model exactly, and what they see is a history of that model.
//!
//! ```
//! use consistory_generate::{Memory, Workload, generate};
//!
//! let workload = Workload { sessions: 2, operations: 6, variables: 2, seed: 1, ..Workload::default() };
//! workload.validate()?;
//! let history = generate(&workload, Memory::Tso);
//! assert_eq!((history.session_count(), history.len()), (2, 6));
//! # Ok::<(), consistory_generate::WorkloadError>(())
//! ```
//!
//! [`generate`] holds the whole history; [`stream`] gives its operations one by one, in the order
//! in which the machine executed them, in memory that does not grow with their number. A seed
//! decides everything, on every platform, and decides the clients apart from the memory: the same
//! workload makes the same writes on every memory, and only what its reads find differs.
//!
//! Every written value is new for its variable and none is 0, the initial value, so that each
//! history is differentiated. Sessions are named `t0`, `t1`, ... and variables `x0`, `x1`, ...
//!
//! [`generate_calls`] does the same for the calls of a [`SharedObject`], a queue or a stack for
//! example, with times, and with calls that never return; [`stream_calls`] gives its steps one by one.
//!
//! [`record`] makes such histories as test harnesses record: a register and a key-value store under
//! faults.
//!
//! [`plant()`] spoils a good history: some of its reads find the value of another write.
//!
//! [`tangle()`] makes histories that take a search to decide.
//!
//! In reading order: the workload; the memories, from the strongest to the one that promises
//! nothing; the clients that run on them; planted violations. Read next: `consistory-registers`, which
//! decides what these histories satisfy.

mod workload;

mod memory;

mod atomic;
mod broken;
mod buffered;
mod replicated;

mod clients;
mod objects;
mod plant;
mod random;
mod recordings;
mod tangle;
mod transactions;

pub use clients::{Event, EventAction, generate, stream};
pub use memory::{Memory, UnknownMemory};
pub use objects::{
    CallStep, ObjectWorkload, SharedObject, UnknownObject, generate_calls, stream_calls,
};
pub use plant::{PlantOptions, Plants, plant};
pub use recordings::{Recording, RecordingWorkload, record};
pub use tangle::{Tangle, tangle};
pub use transactions::{
    Anomaly, ClientOrder, DataKind, ExecutedOperation, ExecutedTransaction, KeyChoice,
    OperationAction, Store, TransactionWorkload, TransactionWorkloadError, UnknownAnomaly,
    UnknownClientOrder, UnknownStore, generate_transactions, stream_transactions,
};
pub use workload::{Workload, WorkloadError};
