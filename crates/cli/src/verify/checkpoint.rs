//! Checkpoints as files: written beside their place and moved there, so that what is found there
//! is complete.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use consistory_protocol::{Checkpoint, Snapshot};

use crate::error::{CliError, report};

/// How long a search goes on between two checkpoints, if writing them is quick.
const PAUSE: Duration = Duration::from_secs(60);
/// At most one part in so many of the time is spent on writing.
const SHARE: u32 = 20;

/// Writes checkpoints now and then, and when a search ends undecided.
pub(super) struct Keeper {
    path: Option<PathBuf>,
    last: Instant,
    pause: Duration,
    /// Whether the search can go on from where it ended.
    pub(super) is_kept: bool,
}

impl Keeper {
    pub(super) fn new(path: Option<&Path>) -> Self {
        let path = path.map(Path::to_path_buf);
        Keeper { path, last: Instant::now(), pause: PAUSE, is_kept: false }
    }

    /// Writes a checkpoint if it is time to; a failure is reported, and the search goes on.
    pub(super) fn keep(&mut self, snapshot: &Snapshot<'_>) {
        let Some(path) = &self.path else { return };
        let is_time = snapshot.is_last() || self.last.elapsed() >= self.pause;
        // What was found already would be missed by a search that goes on from here.
        if !is_time || !snapshot.is_whole() {
            return;
        }
        let started = Instant::now();
        match write(path, snapshot) {
            Ok(()) => self.is_kept = snapshot.is_last(),
            Err(error) => report(&CliError::file("write", path, error)),
        }
        self.pause = PAUSE.max(started.elapsed() * SHARE);
        self.last = Instant::now();
    }
}

fn write(path: &Path, snapshot: &Snapshot<'_>) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let mut file = BufWriter::with_capacity(1 << 16, File::create(&partial)?);
    snapshot.write(&mut file)?;
    file.flush()?;
    file.get_ref().sync_all()?;
    std::fs::rename(&partial, path)
}

/// Reads a checkpoint.
pub(super) fn read(path: &Path) -> Result<Checkpoint, CliError> {
    let file = File::open(path).map_err(|e| CliError::file("read", path, e))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    Checkpoint::read(&mut reader)
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
}
