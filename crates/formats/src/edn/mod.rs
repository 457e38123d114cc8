//! EDN, the data notation of Clojure, line by line.
//!
//! ```text
//! [{:process 0, :type :invoke, :f :cas, :value [1 4]}   ; a comment
//!  #_{:discarded true} #tagged{:process 1, ...}]
//! ```
//!
//! Recorders write one vector of a million maps, or a sequence of a million maps, over any number
//! of lines. So the reader receives lines and emits each map as soon as it is closed: forms
//! directly in a top-level vector or list also count as top-level, and only the form that is being
//! read is held. A form stores its position, and the lines of the form that is being read are kept
//! for error messages.
//!
//! The whole notation is supported; a tag is ignored and the tagged form used instead, and metadata
//! is discarded. The stack of open collections is explicit and bounded, so that no input overflows
//! the call stack.

mod form;
mod reader;

pub(crate) use form::{Form, Kind, write_value};
pub(crate) use reader::{Lines, Reader, form_at};
