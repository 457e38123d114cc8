//! Checkpoints as files: written beside their place and moved there, so that the place always has
//! a whole one. Nothing that is not a checkpoint is ever replaced.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use consistory_protocol::{Checkpoint, Snapshot};

use crate::error::{CliError, report};

/// How long a search goes on between two checkpoints, if writing them is quick.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(60);
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
        Keeper { path, last: Instant::now(), pause: CHECKPOINT_INTERVAL, is_kept: false }
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
        self.pause = CHECKPOINT_INTERVAL.max(started.elapsed() * SHARE);
        self.last = Instant::now();
    }
}

/// Writes a checkpoint: to a file beside its place that is moved there, so that the place always has
/// a whole one. A device, a pipe or a link is written to and never replaced.
fn write(path: &Path, snapshot: &Snapshot<'_>) -> std::io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_file() => {
            return write_to(
                std::fs::OpenOptions::new().write(true).truncate(true).open(path)?,
                snapshot,
            );
        }
        Ok(_) => is_checkpoint(path)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let (partial, file) = create_beside(path)?;
    let written = write_to(file, snapshot).and_then(|()| std::fs::rename(&partial, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    written
}

fn write_to(file: File, snapshot: &Snapshot<'_>) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 16, file);
    snapshot.write(&mut file)?;
    file.flush()?;
    match file.get_ref().metadata()?.is_file() {
        true => file.get_ref().sync_all(),
        false => Ok(()),
    }
}

/// Fails for a file that is neither empty nor a checkpoint: it is somebody else's.
fn is_checkpoint(path: &Path) -> std::io::Result<()> {
    let mut head = Vec::new();
    File::open(path)?.take(8).read_to_end(&mut head)?;
    match head.is_empty() || Checkpoint::is_start(&head) {
        true => Ok(()),
        false => Err(std::io::Error::other("the file exists and is not a checkpoint")),
    }
}

/// Creates a file with a new name in the folder of another one.
fn create_beside(path: &Path) -> std::io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default();
    for number in 0u32.. {
        let mut other = name.to_owned();
        other.push(format!(
            ".partial{}",
            if number == 0 { String::new() } else { number.to_string() }
        ));
        let other = path.with_file_name(other);
        match File::create_new(&other) {
            Ok(file) => return Ok((other, file)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < 1000 => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("there is no free name for a file beside it"))
}

/// Reads a checkpoint.
pub(super) fn read(path: &Path) -> Result<Checkpoint, CliError> {
    let file = File::open(path).map_err(|e| CliError::file("read", path, e))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    Checkpoint::read(&mut reader)
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
}
