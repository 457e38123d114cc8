//! Handles interrupts: the first interrupt asks a search to stop with its current result, the
//! second ends the program. Commands without a partial result end at once, between two writes.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
#[cfg(target_os = "linux")]
use std::{
    io::Read,
    os::unix::net::UnixStream,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

#[cfg(target_os = "linux")]
use signal_hook::consts::SIGHUP;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

#[cfg(target_os = "linux")]
use crate::output::between_writes;

/// Exit code of a program that was ended by an interrupt, as in shells.
const INTERRUPTED: i32 = 130;

/// Returns a flag that an interrupt sets.
pub(crate) fn flag() -> Arc<AtomicBool> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the first interrupt must find the flag unset. If a signal cannot be
        // caught, it ends the program as before.
        let _ = flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&asked));
        let _ = flag::register(signal, Arc::clone(&asked));
    }
    asked
}

/// Longest time that an interrupt waits for a write to end; a pipe may stay full forever.
#[cfg(target_os = "linux")]
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Action of an interrupt before it ends the program.
static ENDING: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Registers an action before an interrupt ends the program, such as removing a socket.
pub(crate) fn before_the_end(end: impl FnOnce() + Send + 'static) {
    if let Ok(mut ending) = ENDING.lock() {
        *ending = Some(Box::new(end));
    }
}

/// Lets interrupts end the program only between two writes of its output, so that its lines are
/// complete.
///
/// By default a signal can end a process during a write, which the kernel then ends between two
/// pages of a file. So a thread waits for the signal, and for the end of the write. Signals that
/// are ignored, as under `nohup`, stay ignored.
#[cfg(target_os = "linux")]
pub(crate) fn end_between_writes() {
    let Ok((mut woken, waker)) = UnixStream::pair() else { return };
    let which = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&which);
    let wait = move || {
        if woken.read_exact(&mut [0]).is_ok() {
            let _nobody_writes = between_writes(MAX_WAIT);
            if let Some(end) = ENDING.lock().ok().and_then(|mut ending| ending.take()) {
                end();
            }
            let signal = i32::try_from(told.load(Ordering::SeqCst)).unwrap_or(SIGTERM);
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    };
    // Without the thread, signals have their default effect.
    if std::thread::Builder::new().name("signals".to_owned()).spawn(wait).is_err() {
        return;
    }
    let ignored = ignored_signals().unwrap_or(u64::MAX);
    for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|s| ignored & (1 << (s - 1)) == 0) {
        // The order matters: the number must be set when the thread wakes up.
        if let (Ok(number), Ok(waker)) = (usize::try_from(signal), waker.try_clone())
            && flag::register_usize(signal, Arc::clone(&which), number).is_ok()
        {
            let _ = signal_hook::low_level::pipe::register(signal, waker);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn end_between_writes() {}

/// Returns the set of ignored signals, the first one in the lowest bit.
#[cfg(target_os = "linux")]
fn ignored_signals() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}
