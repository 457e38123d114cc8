//! Where results go: standard output or a file that appears only when it is complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use consistory_faults::{Point, fail};

use crate::args::OutputFormat;
use crate::error::CliError;

/// Standard output, or a file.
pub(crate) enum Output {
    Stdout(Lines),
    File { file: BufWriter<File>, partial: Option<Partial>, path: PathBuf },
}

/// A file that is not complete yet, and is removed unless it is moved to its place.
pub(crate) struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        // It is gone already if it was moved.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Output {
    /// Opens a file, or standard output if there is none.
    ///
    /// The file is written beside its place and moved there by [`Output::finish`], so that what is
    /// found there is complete. A device, a pipe or what a link leads to is written as it is.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, CliError> {
        let Some(path) = path else {
            return Ok(Output::Stdout(Lines::open()?));
        };
        let is_special = std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file());
        let opened = match is_special {
            true => File::create(path).map(|file| (file, None)),
            false => create_beside(path).map(|(target, file)| (file, Some(Partial(target)))),
        };
        let (file, partial) = opened.map_err(|e| CliError::file("create", path, e))?;
        let file = BufWriter::with_capacity(1 << 16, file);
        Ok(Output::File { file, partial, path: path.to_owned() })
    }

    /// Writes what is left and puts a file into its place.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        match self {
            Output::Stdout(mut out) => out.flush().map_err(CliError::output),
            Output::File { mut file, partial, path } => {
                fail(Point::Write)
                    .and_then(|()| file.flush())
                    .map_err(|e| CliError::file("write", &path, e))?;
                let Some(partial) = partial else { return Ok(()) };
                std::fs::rename(&partial.0, &path).map_err(|e| CliError::file("write", &path, e))
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Stdout(out) => out.write(bytes),
            Output::File { file, .. } => fail(Point::Write).and_then(|()| file.write(bytes)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Stdout(out) => out.flush(),
            Output::File { file, .. } => file.flush(),
        }
    }
}

/// Standard output in blocks of whole lines: the output ends with a complete line even if the process
/// is stopped or the disk is full.
pub(crate) struct Lines {
    out: StandardOutput,
    buffer: Vec<u8>,
    /// Whether nothing more can be written.
    is_broken: bool,
}

/// Size of the buffer in bytes.
const BLOCK: usize = 1 << 16;

impl Lines {
    fn open() -> Result<Self, CliError> {
        Ok(Lines { out: StandardOutput::open()?, buffer: Vec::new(), is_broken: false })
    }

    /// Writes the first bytes of the buffer.
    fn pass_on(&mut self, length: usize) -> io::Result<()> {
        let written = self.out.write_whole(&self.buffer[..length]);
        self.is_broken |= written.is_err();
        self.buffer.drain(..length);
        written
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BLOCK
            && let Some(end) = self.buffer.iter().rposition(|&byte| byte == b'\n')
        {
            self.pass_on(end + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { self.pass_on(self.buffer.len()) }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // Somebody stopped early, for a reason that is told elsewhere: whole lines are printed still.
        let end = self.buffer.iter().rposition(|&byte| byte == b'\n');
        if let (Some(end), false) = (end, self.is_broken) {
            let _ = self.pass_on(end + 1);
        }
    }
}

/// Creates a file with a new name in the folder of another one; a file that is there already is
/// somebody else's.
pub(crate) fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default();
    for number in 0u32.. {
        let mut other = name.to_owned();
        other.push(".partial");
        if number > 0 {
            other.push(number.to_string());
        }
        let other = path.with_file_name(other);
        match File::create_new(&other) {
            Ok(file) => return Ok((other, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("there is no free name for a file beside it"))
}

/// Prints a text at once, so that what is there consists of whole lines.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<(), CliError> {
    StandardOutput::open()?.write_whole(text.as_ref()).map_err(CliError::output)
}

/// Writes a whole file.
pub(crate) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut Output) -> io::Result<()>,
) -> Result<(), CliError> {
    let mut out = Output::open(Some(path))?;
    write(&mut out).map_err(|error| CliError::file("write", path, error))?;
    out.finish()
}

/// Standard output without a buffer: the output consists of complete lines even if the process is
/// stopped.
pub(crate) struct StandardOutput {
    file: File,
    is_terminal: bool,
}

impl StandardOutput {
    pub(crate) fn open() -> Result<Self, CliError> {
        let stdout = io::stdout();
        let file = stdout.as_fd().try_clone_to_owned().map_err(CliError::output)?.into();
        let is_terminal = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        Ok(StandardOutput { file, is_terminal })
    }

    /// Wraps a file that lines are appended to.
    pub(crate) fn appending(file: File) -> Self {
        StandardOutput { file, is_terminal: false }
    }

    pub(crate) fn write(&mut self, text: &[u8], format: OutputFormat) -> io::Result<()> {
        if format == OutputFormat::Json || self.is_terminal {
            return self.write_whole(text);
        }
        let mut plain = anstream::StripStream::new(Vec::new());
        plain.write_all(text)?;
        self.write_whole(&plain.into_inner())
    }

    /// Writes all of a text, or nothing of it if the output is a file that cannot take all, as on a
    /// full disk.
    fn write_whole(&mut self, text: &[u8]) -> io::Result<()> {
        let length = self.file.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
        let written = fail(Point::Write).and_then(|()| self.file.write_all(text));
        if let (Err(_), Some(length)) = (&written, length)
            && self.file.metadata().is_ok_and(|data| data.len() > length)
        {
            // Only what was added here is taken back.
            let _ = self.file.set_len(length);
        }
        written
    }
}
