//! Porcupine's own logs, as distributed with the crate `porcupine-rs`, and their known verdicts.
//!
//! `jepsen/` has 103 logs of etcd tested by Jepsen, registers of five clients with compare-and-set and
//! many calls that never returned; `kv/` has logs of a key-value store with up to 50 clients.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use consistory_formats::{Input, ReadError, read};
use consistory_history::History;
use serde_json::Value;

/// A log, and whether Porcupine finds it linearizable.
#[derive(Clone, Debug)]
pub struct Log {
    /// Path of the log.
    pub path: PathBuf,
    /// Object of its calls.
    pub object: &'static str,
    /// Whether it is linearizable.
    pub is_linearizable: bool,
}

/// Numbers of the linearizable logs of etcd; etcd did not start for log 95.
const LINEARIZABLE: [u32; 23] =
    [2, 5, 7, 18, 25, 31, 38, 45, 48, 49, 51, 53, 56, 67, 75, 76, 80, 87, 92, 98, 100, 101, 102];
const EMPTY: u32 = 95;

/// Reason why there are no logs.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// Cargo could not be run.
    #[error("cargo cannot be asked for its packages: {0}")]
    Cargo(#[from] io::Error),
    /// The crate is not available.
    #[error("the crate porcupine-rs is not there: build with the feature `peers`")]
    Missing,
    /// A log is not exactly one history.
    #[error("{}: {} histories, not one", path.display(), count)]
    Count {
        /// The log.
        path: PathBuf,
        /// Number of histories.
        count: usize,
    },
    /// A log can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Finds the logs.
pub fn logs() -> Result<Vec<Log>, LogsError> {
    let folder = folder()?;
    let numbers = (0..=102).filter(|&number| number != EMPTY);
    let mut logs: Vec<Log> = numbers
        .map(|number| Log {
            path: folder.join(format!("jepsen/etcd_{number:03}.log")),
            object: "cas-register",
            is_linearizable: LINEARIZABLE.contains(&number),
        })
        .collect();
    for clients in ["01", "10", "50"] {
        for (name, is_linearizable) in [("bad", false), ("ok", true)] {
            let path = folder.join(format!("kv/c{clients}-{name}.txt"));
            logs.push(Log { path, object: "kv", is_linearizable });
        }
    }
    Ok(logs)
}

impl Log {
    /// Returns the name of the file.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Reads the log; its format is recognised.
    pub fn read(&self) -> Result<History, LogsError> {
        fs::metadata(&self.path)?;
        let histories: Result<Vec<History>, ReadError> =
            read(&Input::File(self.path.clone()), None).collect();
        let mut histories = histories?;
        match histories.pop() {
            Some(history) if histories.is_empty() => Ok(history),
            last => {
                let count = histories.len() + usize::from(last.is_some());
                Err(LogsError::Count { path: self.path.clone(), count })
            }
        }
    }
}

/// Finds the folder of the crate by asking Cargo.
fn folder() -> Result<PathBuf, LogsError> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--quiet", "--all-features"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()?;
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(io::Error::from)?;
    let packages = metadata["packages"].as_array();
    let package = packages.into_iter().flatten().find(|one| one["name"] == "porcupine-rs");
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
    folder.map(|folder| folder.join("test_data")).ok_or(LogsError::Missing)
}
