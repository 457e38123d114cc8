//! Histories recorded by Jepsen and related tools.
//!
//! Whatever the notation (EDN, JSON or a log), a recording is a sequence of events: a process
//! invokes an operation, and later the operation is completed by `ok` (it took effect), `fail` (it
//! did not) or `info` (its outcome is unknown). [`recorder`] converts events to a history, and
//! [`write`](write()) converts a history to events.

mod edn;
mod json;
mod log;
mod recorder;
mod shape;
mod write;

pub(crate) use edn::JepsenEdn;
pub(crate) use json::JepsenJson;
pub(crate) use log::{JepsenLog, event_start, is_message};
pub(crate) use write::{Notation, Obstacle, can_write, write};
