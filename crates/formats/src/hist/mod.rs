//! The text notation, a line a session.
//!
//! ```text
//! --- message passing          # `---` separates histories and may name the next one
//! init: x=5                    # values held at the start, 0 where nothing is said
//! t0: w(x,1) w(y,1)            # a session; it may go on in a later line
//! t1: r(y,1) rmw(x,5,2) f      # read, read-modify-write, fence
//! t2: [ w(x,3) r(y,1) ] [ w(y,4) ]!    # transactions, the second aborted
//! t3: put(1,0) => null @3..9 get(1)@10..   # an object's calls, with times
//! t4: w(x,7)? w(x,8)!          # of unknown status, and failed
//! final: x=2                   # values held in the end
//! ```
//!
//! Names, keys and values that are not plain words or numbers are quoted as in JSON. A call
//! without `=>` has no recorded return; `=> ?` says so for a method that is named like a
//! register's operation.

mod read;
mod token;
mod write;

pub(crate) use read::Hist;
pub(crate) use token::MAX_NESTING;
pub(crate) use write::{write, write_separator};

/// The names that operations of registers have.
const REGISTER_OPERATIONS: [&str; 7] = ["r", "w", "read", "write", "rmw", "f", "fence"];

/// Says whether a method without `=>` would be taken for an operation of a register, or for one
/// that is misspelt.
fn looks_like_register(method: &str, args: usize) -> bool {
    match method {
        "r" | "w" | "read" | "write" | "rmw" => true,
        _ => misspelt_register(method, args).is_some(),
    }
}

/// Finds the operation of a register that a call of an unusual name was meant to be.
fn misspelt_register(method: &str, args: usize) -> Option<&'static str> {
    let candidates = match args {
        2 => &["r", "w", "read", "write"][..],
        3 => &["rmw"],
        _ => return None,
    };
    let found = crate::parse::nearest(method, candidates.iter().copied())?;
    (found != method).then_some(found)
}
