//! EDN, the data notation of Clojure, line by line.
//!
//! ```text
//! [{:process 0, :type :invoke, :f :cas, :value [1 4]}   ; a comment
//!  #_{:discarded true} #tagged{:process 1, ...}]
//! ```
//!
//! Recorders write one vector of a million maps, or a million maps one after the other, over as
//! many lines as they like. So the reader is fed lines and hands out each map as soon as it is
//! closed: what stands directly in a top-level vector or list counts as top-level too, and only
//! the form under way is held. A form knows its place, and the lines of the form under way are
//! kept so that an error can show them.
//!
//! Everything of the notation is read; a tag is left out and the tagged form taken as it is, and
//! metadata is discarded. The stack of open collections is explicit and bounded, so that no input
//! overflows ours.

mod form;
mod reader;

pub(crate) use form::{Form, Kind, write_value};
pub(crate) use reader::{Lines, Reader, form_at};
