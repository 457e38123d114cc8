//! Stopping early: the first interrupt asks a search to end with what it has, the second ends the
//! program.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit code of a program that an interrupt ended, as shells have it.
const INTERRUPTED: i32 = 130;

/// Returns a flag that an interrupt sets.
pub(crate) fn flag() -> Arc<AtomicBool> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order counts: the first interrupt must find the flag unset. Where a signal cannot be
        // caught, it ends the program as before.
        let _ = flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&asked));
        let _ = flag::register(signal, Arc::clone(&asked));
    }
    asked
}
