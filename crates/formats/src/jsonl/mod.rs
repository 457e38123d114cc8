//! JSON lines, a line an operation.
//!
//! ```text
//! {"init":{"x":5}}
//! {"session":"t0","op":"write","key":"x","value":1}
//! {"session":"t1","op":"rmw","key":"x","read":1,"value":2,"txn":7,"status":"unknown"}
//! {"session":"t1","op":"fence"}
//! {"session":2,"call":"put","args":[1,0],"returns":null,"start":3,"end":9}
//! {"final":{"x":2}}
//! ```
//!
//! Every line may have a `"history"`; consecutive lines with one name are one history. Instead, a
//! line may be an event of a call, with a `"type"`: then all lines are, and they are one history.

mod event;
mod json;
mod read;
mod scan;
mod write;

pub use event::{CallEvent, parse_event};
pub(crate) use json::{Object, list, offset_in, syntax_fault, text_of};
pub(crate) use read::Jsonl;
pub(crate) use write::write;
