//! Inputs: files, folders, standard input; compressed or not.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::format::{Format, extension};
use crate::read::{ReadError, SNIFFED};

/// Something to read histories from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// A file, or a pipe that has a path.
    File(PathBuf),
    /// Standard input, which can be read once.
    Stdin,
}

impl fmt::Display for Input {
    /// Writes the name that diagnostics and reports use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::File(path) => write!(f, "{}", path.display()),
            Input::Stdin => f.write_str("<stdin>"),
        }
    }
}

/// Finds the inputs that paths stand for.
///
/// `-` is standard input. A folder stands for the files in it and in its folders whose extension
/// is a format's, in the order of their names; links to folders are not followed. Of those that end
/// in `.log` or `.txt` it has the ones that begin as only a format does. Any other path stands for
/// itself, whether there is such a file or not: reading it tells.
pub fn inputs(paths: &[PathBuf]) -> Result<Vec<Input>, ReadError> {
    let mut found = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            found.push(Input::Stdin);
        } else if path.is_dir() {
            let before = found.len();
            walk(path, &mut found)?;
            if found.len() == before {
                return Err(ReadError::EmptyFolder { path: path.clone() });
            }
        } else {
            found.push(Input::File(path.clone()));
        }
    }
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<Input>) -> Result<(), ReadError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |error| ReadError::Io { path, error }
    };
    // What is still to be visited, the next on top.
    let mut pending = vec![(folder.to_path_buf(), true)];
    while let Some((path, is_folder)) = pending.pop() {
        if !is_folder {
            if Format::from_path(&path).is_some() || is_log(&path) {
                found.push(Input::File(path));
            }
            continue;
        }
        let mut entries = Vec::new();
        for entry in fs::read_dir(&path).map_err(failed(&path))? {
            let entry = entry.map_err(failed(&path))?;
            let is_folder = entry.file_type().map_err(failed(&path))?.is_dir();
            entries.push((entry.path(), is_folder));
        }
        entries.sort_unstable();
        pending.extend(entries.into_iter().rev());
    }
    Ok(())
}

/// Says whether a file whose extension any text may have begins as only a format does.
fn is_log(path: &Path) -> bool {
    let is_text = extension(path).is_some_and(|found| matches!(&*found, "log" | "txt"));
    if !is_text || !fs::metadata(path).is_ok_and(|data| data.is_file()) {
        return false;
    }
    let mut beginning = Vec::new();
    let read = open(&Input::File(path.to_path_buf()))
        .and_then(|opened| opened.bytes.take(SNIFFED as u64).read_to_end(&mut beginning));
    let text = String::from_utf8_lossy(&beginning);
    read.is_ok() && Format::sniff(&text).is_some_and(Format::is_unmistakable)
}

/// A stream of bytes, decompressed.
pub(crate) type Bytes = Box<dyn BufRead + Send>;

const BUFFER: usize = 1 << 18;

/// An input that was opened.
pub(crate) struct Opened {
    pub(crate) bytes: Bytes,
    /// Whether it can be opened again to read the same.
    pub(crate) is_repeatable: bool,
}

pub(crate) fn open(input: &Input) -> io::Result<Opened> {
    let (raw, is_repeatable): (Bytes, bool) = match input {
        Input::File(path) => {
            let file = File::open(path)?;
            let kind = file.metadata()?.file_type();
            if kind.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            (Box::new(BufReader::with_capacity(BUFFER, file)), kind.is_file())
        }
        Input::Stdin => (Box::new(BufReader::with_capacity(BUFFER, io::stdin())), false),
    };
    Ok(Opened { bytes: decompress(raw)?, is_repeatable })
}

/// Decompresses a stream that starts as gzip or zstd does.
pub(crate) fn decompress(mut raw: Bytes) -> io::Result<Bytes> {
    let mut magic = Vec::new();
    raw.by_ref().take(4).read_to_end(&mut magic)?;
    let kind = match magic[..] {
        [0x1f, 0x8b, ..] => 'g',
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => 'z',
        _ => ' ',
    };
    let whole = Cursor::new(magic).chain(raw);
    Ok(match kind {
        'g' => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(whole))),
        'z' => Box::new(BufReader::with_capacity(BUFFER, zstd::Decoder::with_buffer(whole)?)),
        _ => Box::new(whole),
    })
}
