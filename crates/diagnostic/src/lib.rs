//! Diagnostics of inputs, and the cursor of the hand-written lexers that find them.
//!
//! Every parser of Consistory reports all errors of an input with their places, as [`Diagnostics`]:
//! file, line, column, the offending text, a message and often a hint. They render as rustc's do.
//!
//! ```
//! use consistory_diagnostic::{Diagnostics, Source, Style};
//!
//! let source = Source::new("a.cat", "acyclic po | poo");
//! let mut errors = Diagnostics::default();
//! errors.push_at(&source, 13..16, "undefined name `poo`", Some("did you mean `po`?".into()));
//! assert_eq!(
//!     errors.to_string(),
//!     "a.cat:1:14: undefined name `poo` (did you mean `po`?)\na.cat: 1 error"
//! );
//! assert!(errors.render(Style::Plain).contains("1 | acyclic po | poo"));
//! ```

mod cursor;
mod diagnostic;
mod source;
mod suggest;

pub use cursor::{Cursor, Escapes, Nesting, beyond_i64};
pub use diagnostic::{Diagnostic, Diagnostics, Fault, Style};
pub use source::Source;
pub use suggest::{did_you_mean, nearest};
