//! Restarts the program in its own Linux namespaces, so that nothing outlives the run.
//!
//! The program starts itself again through `unshare`, in a new network, process, mount and IPC
//! namespace:
//!
//! ```text
//!     consistory                     waits, and passes the exit code on
//!       └ unshare                    killed by the kernel when its parent dies
//!           └ consistory             process 1 of its namespace, killed when unshare dies
//!               ├ n1: redis-server   killed by the kernel when process 1 dies
//!               └ n2: ...
//! ```
//!
//! If any of the three processes ends, for any reason, the kernel kills all processes below it
//! with SIGKILL. Network namespaces, bridges and mounts exist only inside the namespaces and vanish
//! with the last process. The same is true of shared memory: IPC objects belong to the namespace,
//! and `/dev/shm` is a tmpfs inside. Data folders are on a tmpfs inside. So a run has nothing to
//! clean up, and a killed run leaves nothing behind.
//!
//! A process asks for the kernel's signal only shortly after it has started. In case the first
//! program is killed before that, it holds one end of a pipe whose other end is the third program's
//! standard input. When the third program reads the end of that input, the first one is gone.
//!
//! An embedded database has files but no namespace; a [`Sweeper`] removes these files.
//!
//! Without root, everything happens in a user namespace, in which the program is root.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::error::DriveError;
use crate::tool;

/// The programs that isolation and faults need, with their Debian packages.
const TOOLS: [(&str, &str); 6] = [
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("mount", "mount"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
];

/// Returns whether this process is run by root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns whether this process was started by [`relaunch`].
pub fn is_inside() -> bool {
    std::process::id() == 1
}

/// Checks that nodes can be isolated here.
pub fn check() -> Result<(), DriveError> {
    for (program, package) in TOOLS {
        tool::require(program, package)?;
    }
    let mut probe = unshare();
    probe.push("true".into());
    tool::run(&probe, "")
        .map(drop)
        .map_err(|error| DriveError::Isolation { reason: error.to_string() })
}

/// Interval at which the outer program checks whether the inner one has ended.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Runs a program in its own namespaces and waits for it.
///
/// Call this function from the main thread: the kernel kills the program when the calling *thread*
/// ends. When this process has ended, the program reads the end of its standard input and should
/// end itself. Once `is_interrupted` returns `true`, the program can read a byte there, and should
/// stop early.
pub fn relaunch(
    program: &Path,
    args: &[OsString],
    is_interrupted: impl Fn() -> bool,
) -> Result<ExitStatus, DriveError> {
    check()?;
    let wrapper = unshare();
    let mut child = Command::new("setpriv")
        .args(["--pdeathsig", "KILL"])
        .args(wrapper)
        .arg(program)
        .args(args)
        .stdin(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().expect("the input is piped");
    let mut has_told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if !has_told && is_interrupted() {
            // The write fails if the program has just ended.
            let _ = input.write_all(b"x");
            has_told = true;
        }
        std::thread::sleep(POLL_EVERY);
    }
}

/// Returns a command whose program the kernel kills when the calling thread ends.
pub fn bound_to_this_thread(program: impl AsRef<OsStr>) -> Command {
    match tool::find("setpriv") {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", "--"]).arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// Removes a folder when it is dropped, or when this process ends for any reason.
///
/// A small shell process waits for the end of this process and then removes the folder.
#[derive(Debug)]
pub struct Sweeper {
    shell: Child,
}

impl Sweeper {
    /// Starts the shell process for a folder.
    pub fn new(folder: &Path) -> Result<Sweeper, DriveError> {
        let shell = Command::new("sh")
            .args(["-c", "trap '' INT TERM HUP; read -r line; rm -rf -- \"$1\"", "sh"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Sweeper { shell })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        // Waiting closes the pipe, which the shell reads from.
        let _ = self.shell.wait();
    }
}

/// Returns the command that creates the namespaces.
fn unshare() -> Vec<OsString> {
    let mut command: Vec<OsString> = vec!["unshare".into()];
    if !is_root() {
        command.extend(["--user".into(), "--map-root-user".into()]);
    }
    let flags =
        ["--net", "--pid", "--mount", "--ipc", "--fork", "--kill-child=KILL", "--mount-proc"];
    command.extend(flags.map(OsString::from));
    command
}

/// Returns whether all users of the host exist here. In a user namespace only one does.
fn has_all_users() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    is_root() && map.split_whitespace().nth(2) == Some("4294967295")
}

/// Returns a command that runs a program as a user other than root, as some servers require.
///
/// A user namespace has no other user. There, the program runs in a nested user namespace, in which
/// the only user has another number.
pub(crate) fn as_user(user: &str, program: &Path) -> Command {
    let mut command;
    if has_all_users() {
        command = Command::new("setpriv");
        command.args([format!("--reuid={user}"), format!("--regid={user}")]).arg("--clear-groups");
    } else {
        command = Command::new("unshare");
        command.args(["--user", "--map-user=1000", "--map-group=1000"]);
    }
    command.arg(program);
    command
}

/// Makes the user of [`as_user`] the owner of a folder.
pub(crate) fn give(folder: &Path, user: &str) -> Result<(), DriveError> {
    match has_all_users() {
        true => tool::run(&["chown", &format!("{user}:{user}"), &folder.to_string_lossy()], "")
            .map(drop),
        false => Ok(()),
    }
}

/// Folders on which a tmpfs can be mounted; they exist on every Linux system.
const MOUNT_POINTS: [&str; 3] = ["/mnt", "/media", "/srv"];

/// Mounts a tmpfs for all files of the run on a folder, chosen so that none of `needed` is hidden.
pub(crate) fn mount_workspace(needed: &[PathBuf]) -> Result<PathBuf, DriveError> {
    let hides = |point: &Path| needed.iter().any(|path| path.starts_with(point));
    let point = (MOUNT_POINTS.iter().map(Path::new))
        .find(|point| point.is_dir() && !hides(point))
        .ok_or_else(|| DriveError::setup("none of /mnt, /media and /srv can be mounted over"))?;
    mount_tmpfs(point, "2g")?;
    // Shared memory of killed servers would otherwise remain.
    if Path::new("/dev/shm").is_dir() {
        tool::run(
            &["mount", "-t", "tmpfs", "-o", "size=512m,mode=1777", "consistory", "/dev/shm"],
            "",
        )?;
    }
    Ok(point.to_owned())
}

/// Mounts a tmpfs of a limited size.
pub(crate) fn mount_tmpfs(point: &Path, size: &str) -> Result<(), DriveError> {
    let options = format!("size={size},mode=755");
    let point = point.to_string_lossy();
    tool::run(&["mount", "-t", "tmpfs", "-o", &options, "consistory", &point], "").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweeper_removes_its_folder() {
        let folder = std::env::temp_dir().join(format!("consistory-sweep-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("deep")).unwrap();
        std::fs::write(folder.join("deep/file"), "x").unwrap();
        let sweeper = Sweeper::new(&folder).unwrap();
        assert!(folder.exists());
        drop(sweeper);
        assert!(!folder.exists());
    }
}
