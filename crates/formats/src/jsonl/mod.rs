//! JSON lines: one operation per line.
//!
//! ```text
//! {"init":{"x":5}}
//! {"session":"t0","op":"write","key":"x","value":1}
//! {"session":"t1","op":"rmw","key":"x","read":1,"value":2,"txn":7,"status":"unknown"}
//! {"session":"t1","op":"append","key":"z","value":1,"txn":8}
//! {"session":"t1","op":"read","key":"z","value":[2,1],"txn":8}
//! {"session":"t1","op":"fence"}
//! {"session":2,"call":"put","args":[1,0],"returns":null,"start":3,"end":9}
//! {"final":{"x":2}}
//! ```
//!
//! Every line may have a `"history"`; consecutive lines with one name are one history. Consecutive
//! operations of a session with the same `"txn"` are one transaction, whose status is the worst that
//! any of its lines gives. Instead, a line may be an event of a call, with a `"type"`: then all lines
//! are events, and they are one history.

mod event;
mod json;
mod read;
mod scan;
mod write;

pub use event::{CallEvent, parse_event};
pub(crate) use json::{Object, list, offset_in, syntax_fault, text_of, value_of};
pub(crate) use read::Jsonl;
pub(crate) use write::write;
