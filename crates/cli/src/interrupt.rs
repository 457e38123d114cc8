//! Stopping early: the first interrupt asks a search to end with what it has, the second ends the
//! program. Commands that have nothing to complete end at once, between two writes.

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

/// Longest time that an interrupt waits for a write to end; a pipe may be full for ever.
#[cfg(target_os = "linux")]
const MAX_WAIT: Duration = Duration::from_secs(1);

/// What an interrupt does before it ends the program.
static ENDING: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Has an interrupt that ends the program do something first, such as removing a socket.
pub(crate) fn before_the_end(end: impl FnOnce() + Send + 'static) {
    if let Ok(mut ending) = ENDING.lock() {
        *ending = Some(Box::new(end));
    }
}

/// Lets interrupts end the program between two writes of its output, so that its lines are whole.
///
/// By default a signal ends a process as SIGKILL does, also inside a write, which the kernel leaves
/// between two pages of a file. So a thread waits for the signal, and for the end of the write. Signals
/// that are ignored, as under `nohup`, stay so.
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
    // Without a thread, signals do what they do by default.
    if std::thread::Builder::new().name("signals".to_owned()).spawn(wait).is_err() {
        return;
    }
    let ignored = ignored_signals().unwrap_or(u64::MAX);
    for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|s| ignored & (1 << (s - 1)) == 0) {
        // The order counts: the number must be there when the thread wakes up.
        if let (Ok(number), Ok(waker)) = (usize::try_from(signal), waker.try_clone())
            && flag::register_usize(signal, Arc::clone(&which), number).is_ok()
        {
            let _ = signal_hook::low_level::pipe::register(signal, waker);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn end_between_writes() {}

/// Returns the set of signals that are ignored, the first one in the lowest bit.
#[cfg(target_os = "linux")]
fn ignored_signals() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}
