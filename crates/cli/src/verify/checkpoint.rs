//! Checkpoints as files: written to a temporary file and moved, so that the destination always
//! contains a complete one. Only checkpoints are ever replaced.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use consistory_faults::{Point, fail};
use consistory_protocol::{Checkpoint, Snapshot};

use crate::error::{CliError, report};
use crate::output::create_beside;
use crate::reading;

/// Time between two checkpoints, if writing them is fast.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(60);
/// Share of the time (one part in this number) that may be spent on writing.
const SHARE: u32 = 20;

/// Writes checkpoints periodically, and when a search ends undecided.
pub(super) struct Keeper {
    path: Option<PathBuf>,
    last: Instant,
    pause: Duration,
    /// Whether the search can continue from its end.
    pub(super) is_kept: bool,
}

impl Keeper {
    /// Builds a keeper; fails at once if no checkpoint may be written to the path.
    pub(super) fn new(path: Option<&Path>) -> Result<Self, CliError> {
        if let Some(path) = path {
            destination(path).map_err(|error| CliError::file("write", path, error))?;
        }
        let path = path.map(Path::to_path_buf);
        Ok(Keeper { path, last: Instant::now(), pause: CHECKPOINT_INTERVAL, is_kept: false })
    }

    /// Writes a checkpoint if it is time to; a failure is reported, and the search continues.
    pub(super) fn keep(&mut self, snapshot: &Snapshot<'_>) {
        let Some(path) = &self.path else { return };
        let is_time = snapshot.is_last() || self.last.elapsed() >= self.pause;
        // A search that continues from here would miss violations that were already found.
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

/// Destination of a checkpoint.
enum Destination {
    /// A file that is created or replaced.
    File(PathBuf),
    /// A character device, such as `/dev/null`, which is written to and never replaced.
    Device,
}

/// Determines the destination of a checkpoint; fails if the path is another kind of file.
///
/// A link is kept, and its target is replaced. With a pipe or a socket the search would wait for a
/// reader.
fn destination(path: &Path) -> std::io::Result<Destination> {
    let refused = |what: &str| Err(std::io::Error::other(what.to_owned()));
    let place = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Destination::File(path.to_owned()));
        }
        Err(error) => return Err(error),
        Ok(_) => std::fs::canonicalize(path)?,
    };
    let kind = std::fs::metadata(&place)?.file_type();
    if kind.is_file() {
        is_checkpoint(&place)?;
        return Ok(Destination::File(place));
    }
    #[cfg(unix)]
    if std::os::unix::fs::FileTypeExt::is_char_device(&kind) {
        return Ok(Destination::Device);
    }
    refused(if kind.is_dir() { "it is a folder" } else { "it is neither a file nor a device" })
}

/// Writes a checkpoint to a temporary file, then moves it, so that the destination always contains
/// a complete one.
fn write(path: &Path, snapshot: &Snapshot<'_>) -> std::io::Result<()> {
    let path = match destination(path)? {
        Destination::File(place) => place,
        Destination::Device => {
            let device = std::fs::OpenOptions::new().write(true).open(path)?;
            return write_to(device, snapshot);
        }
    };
    let (partial, file) = create_beside(&path)?;
    let written = write_to(file, snapshot).and_then(|()| std::fs::rename(&partial, &path));
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    written
}

fn write_to(file: File, snapshot: &Snapshot<'_>) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 16, file);
    snapshot.write(&mut file)?;
    fail(Point::Write)?;
    file.flush()?;
    match file.get_ref().metadata()?.is_file() {
        true => file.get_ref().sync_all(),
        false => Ok(()),
    }
}

/// Fails for a file that is neither empty nor a checkpoint, because it belongs to somebody else.
fn is_checkpoint(path: &Path) -> std::io::Result<()> {
    let mut head = Vec::new();
    File::open(path)?.take(8).read_to_end(&mut head)?;
    match head.is_empty() || Checkpoint::is_start(&head) {
        true => Ok(()),
        false => Err(std::io::Error::other("the file exists and is not a checkpoint")),
    }
}

/// Reads a checkpoint.
pub(super) fn read(path: &Path) -> Result<Checkpoint, CliError> {
    let mut reader = BufReader::with_capacity(1 << 16, reading::open(path)?);
    Checkpoint::read(&mut reader)
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
}
