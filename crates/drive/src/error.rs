//! Errors of a run. A violation is not an error.

use std::path::{Path, PathBuf};

/// The reason why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// A program is missing.
    #[error("`{program}` is not installed")]
    Missing {
        /// The program.
        program: String,
        /// The command that installs the program on Debian.
        install: String,
    },
    /// The kernel does not permit the isolation of nodes.
    #[error("the nodes cannot be isolated: {reason}")]
    Isolation {
        /// The attempted action and the error.
        reason: String,
    },
    /// There is no TUN device, which slow and lossy links need.
    #[error("slow and lossy links need TUN devices, and /dev/net/tun cannot be used: {error}")]
    Tun {
        /// The reason.
        error: std::io::Error,
    },
    /// A node did not become ready in time.
    #[error("a write through {node} did not work in time: {reason}")]
    NotReady {
        /// The node.
        node: String,
        /// The last error.
        reason: String,
    },
    /// A node's server ended although no fault killed it.
    #[error("{node} does not run: {reason}")]
    Ended {
        /// The node.
        node: String,
        /// The way in which the server ended, and the end of its log.
        reason: String,
    },
    /// A step of the setup failed.
    #[error("{0}")]
    Setup(String),
    /// A schedule, a fault's name or an answer cannot be read.
    #[error("{0}")]
    Malformed(String),
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
}

impl DriveError {
    /// Builds an error of the setup.
    pub fn setup(message: impl Into<String>) -> Self {
        DriveError::Setup(message.into())
    }

    /// Builds an error about a file.
    pub fn file(path: &Path, error: std::io::Error) -> Self {
        DriveError::File { path: path.to_owned(), error }
    }

    /// Returns a hint for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            DriveError::Missing { install, .. } => Some(format!("install it with `{install}`")),
            DriveError::Isolation { .. } => Some(
                "run as root, or allow user namespaces: sysctl user.max_user_namespaces=10000, and \
                 on Ubuntu also kernel.apparmor_restrict_unprivileged_userns=0"
                    .to_owned(),
            ),
            DriveError::Tun { .. } => Some(
                "as root: modprobe tun; if the file is missing, mkdir -p /dev/net && mknod \
                 /dev/net/tun c 10 200; to run without root, chmod 666 /dev/net/tun"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

impl From<std::io::Error> for DriveError {
    fn from(error: std::io::Error) -> Self {
        DriveError::Setup(error.to_string())
    }
}
