//! Running in namespaces of one's own, so that nothing outlives the run.
//!
//! The program starts itself again through `unshare`, in a new network, process and mount
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
//! Whatever kills one of the three kills all processes below it, with SIGKILL, by the kernel. Network
//! namespaces, bridges and mounts exist only inside and vanish with the last process. Data folders
//! lie on a tmpfs inside. A run therefore has nothing to clean up, and a run that was killed leaves
//! nothing behind.
//!
//! Without root the same happens in a user namespace, in which the program is root.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

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

/// Says whether this process runs with root's rights.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Says whether this process was started by [`relaunch`].
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

/// Runs a program in namespaces of its own and waits for it.
///
/// Call it from the main thread: the kernel ends the program when the calling *thread* ends.
pub fn relaunch(program: &Path, args: &[OsString]) -> Result<ExitStatus, DriveError> {
    check()?;
    let wrapper = unshare();
    Ok(Command::new("setpriv")
        .args(["--pdeathsig", "KILL"])
        .args(wrapper)
        .arg(program)
        .args(args)
        .status()?)
}

/// Returns the command that makes the namespaces.
fn unshare() -> Vec<OsString> {
    let mut command: Vec<OsString> = vec!["unshare".into()];
    if !is_root() {
        command.extend(["--user".into(), "--map-root-user".into()]);
    }
    let flags = ["--net", "--pid", "--mount", "--fork", "--kill-child=KILL", "--mount-proc"];
    command.extend(flags.map(OsString::from));
    command
}

/// Says whether all users of the host exist here: in a user namespace only one does.
fn has_all_users() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    is_root() && map.split_whitespace().nth(2) == Some("4294967295")
}

/// Returns a command that runs a program as a user that is not root, which some servers insist on.
///
/// In a user namespace there is no other user; there the program runs in another user namespace, in
/// which the one user has another number.
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

/// Makes a folder belong to the user of [`as_user`].
pub(crate) fn give(folder: &Path, user: &str) -> Result<(), DriveError> {
    match has_all_users() {
        true => tool::run(&["chown", &format!("{user}:{user}"), &folder.to_string_lossy()], "")
            .map(drop),
        false => Ok(()),
    }
}

/// The folders on which a tmpfs may be mounted inside; they exist on every Linux system.
const MOUNT_POINTS: [&str; 3] = ["/mnt", "/media", "/srv"];

/// Mounts a tmpfs for all files of the run, on a folder that does not hide any of `needed`.
pub(crate) fn mount_workspace(needed: &[PathBuf]) -> Result<PathBuf, DriveError> {
    let hides = |point: &Path| needed.iter().any(|path| path.starts_with(point));
    let point = (MOUNT_POINTS.iter().map(Path::new))
        .find(|point| point.is_dir() && !hides(point))
        .ok_or_else(|| DriveError::setup("none of /mnt, /media and /srv can be mounted over"))?;
    mount_tmpfs(point, "2g")?;
    Ok(point.to_owned())
}

/// Mounts a tmpfs of a limited size.
pub(crate) fn mount_tmpfs(point: &Path, size: &str) -> Result<(), DriveError> {
    let options = format!("size={size},mode=755");
    let point = point.to_string_lossy();
    tool::run(&["mount", "-t", "tmpfs", "-o", &options, "consistory", &point], "").map(drop)
}
