//! Trees of processes: all of a server's processes are stopped, continued or killed together.

use rustc_hash::FxHashMap;
use rustix::process::{Pid, Signal, kill_process, setpriority_process};

/// Returns a process and all its descendants, parents first.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut children: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        found.extend(children.remove(&found[next]).unwrap_or_default());
        next += 1;
    }
    found
}

/// Returns the parent of a process. The name, in parentheses, may itself contain parentheses and
/// spaces.
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Sends a signal to each of the processes; processes that have ended are ignored.
pub(crate) fn signal(processes: &[u32], signal: Signal) {
    for pid in processes.iter().filter_map(|&pid| Pid::from_raw(pid as i32)) {
        let _ = kill_process(pid, signal);
    }
}

/// Niceness of threads that must not slow down sessions.
const IN_THE_BACKGROUND: i32 = 10;

/// Lowers the priority of the calling thread, and of threads that it starts, below that of sessions
/// and servers.
pub(crate) fn step_back() {
    // On Linux the priority is that of one thread. If it cannot be changed, the thread keeps its
    // own.
    let _ = setpriority_process(Some(rustix::thread::gettid()), IN_THE_BACKGROUND);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_tree_is_killed_with_its_children() {
        let mut shell =
            Command::new("sh").args(["-c", "sleep 60 & sleep 60 & wait"]).spawn().unwrap();
        let all = loop {
            let all = tree(shell.id());
            if all.len() == 3 {
                break all;
            }
            std::thread::yield_now();
        };
        signal(&all, Signal::KILL);
        shell.wait().unwrap();
        // The children are orphans now, and the process that adopted them reaps them.
        let is_gone = |pid: &u32| {
            std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .map_or(true, |stat| stat.contains(") Z "))
        };
        while !all[1..].iter().all(is_gone) {
            std::thread::yield_now();
        }
    }
}
