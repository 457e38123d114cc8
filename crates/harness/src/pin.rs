//! Pins threads to cores.

/// Lists the cores that this process may use.
#[cfg(target_os = "linux")]
pub fn cores() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect(),
        Err(_) => Vec::new(),
    }
}

/// Pins the calling thread to a core. Returns whether that worked.
#[cfg(target_os = "linux")]
pub fn pin(core: usize) -> bool {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).is_ok()
}

/// Lists the cores that this process may use; unknown on this system.
#[cfg(not(target_os = "linux"))]
pub fn cores() -> Vec<usize> {
    Vec::new()
}

/// Pins the calling thread to a core; not supported on this system.
#[cfg(not(target_os = "linux"))]
pub fn pin(_core: usize) -> bool {
    false
}
