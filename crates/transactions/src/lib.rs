//! Isolation levels of transactions: decides which levels a history satisfies, with a proof of
//! every verdict.
//!
//! A history of transactions is represented as a graph of dependencies: session order (`so`), real
//! time (`rt`), reads from (`wr`), version orders (`ww`) and anti-dependencies (`rw`). Each level
//! forbids certain cycles; it holds if the versions of every key can be ordered so that none of
//! these cycles occurs. [`judge`] decides the seven levels of [`Level`](consistory_verdict::Level)
//! with any of the three orders of [`ClientOrder`](consistory_verdict::ClientOrder), and proves
//! every verdict: by a commit order, or by a cycle whose edges contain their evidence.
//!
//! - **Soundness.** Every certificate is checked by `consistory-certify`, which shares no code with
//!   this crate.
//! - **Completeness.** `rc`, `ra` and `tcc` are always decided. `psi`, `pc`, `si` and `ser` are
//!   decided by a search that is exponential in the worst case and stops when its budget is used
//!   up.
//! - **Choices.** If a register value was written more than once, a level holds if it holds for
//!   some choice of the write that each read took it from. Lists must not repeat values.
//!
//! The modules in reading order: `view` (transactions, reads and their sources), `writes` and `lists`
//! below it, `problem` (chains and writers), `graph` and `repair` (events, edges, clocks), `weak` (`rc`, `ra`,
//! `tcc`), `saturate`, `schedule`, `extension` and `search` (`psi`, `pc`, `si`, `ser`), `choices`
//! (repeated values), `proof` (cycles with evidence), `judge`, `anomalies`, `shrink`, `window` (streams).

mod anomalies;
mod choices;
mod extension;
mod graph;
mod judge;
mod lists;
mod problem;
mod proof;
mod repair;
mod saturate;
mod schedule;
mod search;
mod shrink;
mod view;
mod weak;
mod window;
mod writes;

pub use anomalies::{Anomalies, anomalies};
pub use judge::judge;
pub use lists::{Lists, UNREAD};
pub use shrink::{Shrunk, shrink};
pub use view::{Ambiguous, DoesNotApply, FoundBadRead, INITIAL, OPEN, Read, Transactions, Write};
pub use window::{NotWatchable, Size, Sourceless, Window};
