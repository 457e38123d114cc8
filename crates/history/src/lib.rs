//! The data model of a history.
//!
//! A [`History`] records what a concurrent system did: sessions, each a sequence of operations.
//! Operations are reads, writes, read-modify-writes and fences of registers, appends to and reads of
//! lists, or calls of an object's methods; they may be bracketed in transactions, and may carry a
//! time and a status.
//!
//! ```
//! use consistory_history::{Action, HistoryBuilder};
//!
//! let mut b = HistoryBuilder::new();
//! let (t0, t1) = (b.session("t0"), b.session("t1"));
//! let x = b.key("x");
//! let one = b.int(1);
//! b.push(t0, Action::Write { key: x, value: one });
//! b.push(t1, Action::Read { key: x, value: one });
//! let history = b.finish().unwrap();
//!
//! let read = history.find("t1:0").unwrap();
//! assert_eq!(history.show(read).to_string(), "r(x,1)");
//! ```
//!
//! Everything is held in tables indexed by `u32` ids ([`OpId`], [`SessionId`], [`KeyId`],
//! [`ValueId`]). The operations of a session have consecutive ids, so program order is the order
//! of ids within a session, and each key's initial write has an id after the last operation's.
//!
//! Read next: `consistory-verdict` for what can be said of a history, `consistory-formats` for
//! reading and writing them.

mod builder;
mod digest;
mod escape;
mod history;
mod ids;
mod txn_calls;
mod untimed;
mod value;

pub use builder::{Details, HistoryBuilder, HistoryError, OpenTransaction};
pub use escape::{escaped, is_unruly};
pub use history::{Action, Call, History, Interval, KeyKind, Reference, Show, Status, Transaction};
pub use ids::{CallId, KeyId, OpId, SessionId, TxnId, ValueId};
pub use txn_calls::{
    NotATransaction, calls_of_transactions, is_of_transaction_calls, transaction_calls,
    transactions_of_calls,
};
pub use value::{Value, Values, is_plain_word, write_quoted};
