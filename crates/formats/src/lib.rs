//! Reads and writes histories.
//!
//! One notation for people ([`Format::Hist`]), one for machines ([`Format::Jsonl`]), and the
//! formats of other checkers. All errors of an input are reported, with their positions.
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
//! [`inputs`] finds files, [`read`] streams the histories of one input, compressed or not, and
//! [`Writer`] writes several histories. A malformed file yields its errors and none of its
//! histories.
//!
//! Next, see [`Format`] for the formats; each format has a module that begins with an example.

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
