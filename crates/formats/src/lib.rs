//! Reading and writing histories.
//!
//! One notation for people ([`Format::Hist`]), one for machines ([`Format::Jsonl`]), and the
//! formats that other checkers write. Every error of an input is found and has a place.
//!
//! ```
//! use consistory_formats::{Format, parse_str, write_history};
//!
//! let text = "t0: w(x,1) w(y,1)\nt1: r(y,1) r(x,0)\n";
//! let histories = parse_str(text, Format::Hist, "mp.hist").unwrap();
//! let mut trace = Vec::new();
//! write_history(&histories[0], Format::Axe, &mut trace).unwrap();
//! assert!(trace.starts_with(b"0: M[0] := 1\n"));
//!
//! let errors = parse_str("t0: w(x 1)\n", Format::Hist, "mp.hist").unwrap_err();
//! assert_eq!(errors.iter().next().unwrap().column, 9);
//! ```
//!
//! [`inputs`] finds files, [`read`] streams the histories of one, compressed or not, and
//! [`Writer`] writes many. Nothing is claimed of a malformed file: [`read`] gives its errors and
//! none of its histories.
//!
//! Read next: [`Format`] for the formats; each has a module that opens with an example.

mod format;
mod input;
mod limits;
mod parse;
mod read;
mod walk;

mod hist;
mod jsonl;

mod awdit;
mod axe;
mod dbcop;
mod dbcop_json;
mod plume;

mod edn;
mod events;
mod intervals;
mod jepsen;
mod limo;

mod cobra;
mod dbcop_binary;
mod folder;
mod gem5;
mod timekiller;
mod viper;

mod document;
mod numbers;
mod write;

pub use consistory_diagnostic::{Diagnostic, Diagnostics, Style};
pub use format::{Format, UnknownFormatName};
pub use input::{Input, MAX_TEXT_BYTES, inputs, read_text, source_name, source_path, text_of};
pub use jsonl::{CallEvent, parse_event};
pub use read::{Histories, ReadError, parse_str, read, read_from, read_within};
pub use walk::{Descend, Entry, files_below, walk};
pub use write::{WriteError, Writer, write_history};
