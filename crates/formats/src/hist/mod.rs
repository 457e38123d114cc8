//! The text notation: one line per session.
//!
//! ```text
//! --- message passing          # `---` separates histories and may name the next one
//! init: x=5                    # values held at the start, 0 where nothing is said
//! t0: w(x,1) w(y,1)            # a session; it may go on in a later line
//! t1: r(y,1) rmw(x,5,2) f      # read, read-modify-write, fence
//! t2: [ w(x,3) r(y,1) ] [ w(y,4) ]!    # transactions, the second aborted
//! t3: put(1,0) => null @3..9 get(1)@10..   # an object's calls, with times
//! t4: w(x,7)? w(x,8)!          # indeterminate, and failed
//! t5: [ append(z,1) r(z,[2,1]) ] [ append(z,3) ]?   # lists; the second transaction is indeterminate
//! final: x=2                   # values held in the end
//! ```
//!
//! Names, keys and values other than plain words and numbers are quoted as in JSON. A call without
//! `=>` has no recorded return; if its method has the name of an operation on registers or lists,
//! the call needs `=> ?`.

mod read;
mod token;
mod write;

pub(crate) use read::Hist;
pub(crate) use token::MAX_NESTING;
pub(crate) use write::{write, write_separator};

/// The names of operations on registers and lists.
const REGISTER_OPERATIONS: [&str; 8] = ["r", "w", "read", "write", "rmw", "append", "f", "fence"];

/// Checks whether a call without `=>` would be read as an operation on a register or list, or as a
/// misspelt one.
fn looks_like_register(method: &str, args: usize) -> bool {
    match method {
        "r" | "w" | "read" | "write" | "rmw" => true,
        "append" => args == 2,
        _ => misspelt_register(method, args).is_some(),
    }
}

/// Returns the operation on a register that is most similar to the name of a call.
fn misspelt_register(method: &str, args: usize) -> Option<&'static str> {
    let candidates = match args {
        2 => &["r", "w", "read", "write"][..],
        3 => &["rmw"],
        _ => return None,
    };
    let found = crate::parse::nearest(method, candidates.iter().copied())?;
    (found != method).then_some(found)
}
