//! Pins the threads of another process to cores.

/// Pins the threads of another process that are named `prefix0`, `prefix1` and so on, each to its
/// own core. A thread that cannot be found or pinned runs unpinned.
#[cfg(target_os = "linux")]
pub(crate) fn pin_named(process: u32, prefix: &str) {
    use rustix::thread::{CpuSet, Pid, sched_setaffinity};
    let cores = consistory_harness::cores();
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else { return };
    for task in tasks.flatten() {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let number = name.trim().strip_prefix(prefix).and_then(|n| n.parse::<usize>().ok());
        let id = task.file_name().to_str().and_then(|id| id.parse().ok()).and_then(Pid::from_raw);
        if let (Some(number), Some(id), false) = (number, id, cores.is_empty()) {
            let mut set = CpuSet::new();
            set.set(cores[number % cores.len()]);
            let _ = sched_setaffinity(Some(id), &set);
        }
    }
}

/// Pins threads of another process; not supported on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_named(_process: u32, _prefix: &str) {}
