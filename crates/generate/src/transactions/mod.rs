//! Transactions: random clients on simulated stores, each of exactly one isolation level.
//!
//! A [`TransactionWorkload`] describes the clients and the [`Store`] that they run on. A store
//! decides, for every transaction, which of the committed versions of a key its reads may return;
//! each store follows the definition of its level, so it produces histories of that level only, and
//! every kind of anomaly that the level allows.
//!
//! In reading order: the workload; the table of versions that all stores share; the stores by the
//! technique that they need (snapshots, vector clocks, random visibility); planted anomalies; the
//! clients.

mod anomaly;
mod clients;
mod clocks;
mod coins;
mod snapshots;
mod versions;
mod workload;

pub use anomaly::{Anomaly, UnknownAnomaly};
pub use clients::{
    ExecutedOperation, ExecutedTransaction, OperationAction, generate_transactions,
    stream_transactions,
};
pub use workload::{
    ClientOrder, DataKind, KeyChoice, Store, TransactionWorkload, TransactionWorkloadError,
    UnknownClientOrder, UnknownStore,
};
