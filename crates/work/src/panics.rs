//! Panics as errors.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A panic that was caught.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Panicked {
    /// The panic's message.
    pub message: String,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an internal error: {}", self.message)
    }
}

impl std::error::Error for Panicked {}

/// Calls a function, and turns a panic of it into an error.
///
/// The data that the function was changing when it panicked must not be used any more, so the
/// function should own the data that it changes.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| Panicked { message: message(&*panic) })
}

fn message(panic: &(dyn Any + Send)) -> String {
    match panic.downcast_ref::<&str>() {
        Some(text) => (*text).to_owned(),
        None => panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        assert_eq!(catch_panic(|| 7), Ok(7));
        let fixed = catch_panic(|| -> u32 { panic!("a fixed text") });
        assert_eq!(fixed.unwrap_err().message, "a fixed text");
        let made = catch_panic(|| -> u32 { panic!("number {}", 3) });
        assert_eq!(made.unwrap_err().to_string(), "an internal error: number 3");
    }
}
