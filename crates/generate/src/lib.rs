//! Generates histories.
//!
//! A [`Workload`] describes random clients: the numbers of sessions, operations and variables, and
//! the share of reads. They run on a [`Memory`], a small machine that implements one consistency
//! model exactly, so the recorded history satisfies that model.
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
//! [`generate`] builds the whole history; [`stream`] returns its operations one by one, in
//! execution order, in constant memory. The seed determines everything, on every platform, and the
//! choices of the clients are independent of the memory: the same workload makes the same writes on
//! every memory, and only the values that reads return differ.
//!
//! Every written value is new for its variable and never 0, the initial value, so every history is
//! differentiated. Sessions are named `t0`, `t1`, ... and variables `x0`, `x1`, ...
//!
//! [`generate_calls`] does the same for the calls of a [`SharedObject`], for example a queue or a
//! stack, with times and pending calls; [`stream_calls`] returns the events one by one.
//!
//! [`record`] builds histories as test harnesses record them: a register and a key-value store
//! under faults.
//!
//! [`plant()`] plants violations in a good history: some of its reads return the value of another
//! write.
//!
//! [`tangle()`] builds histories that only a search can decide.
//!
//! In reading order: the workload; the memories, from the strongest to the one that guarantees
//! nothing; the clients that run on them; planted violations. Read next: `consistory-registers`,
//! which decides the models of these histories.

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
