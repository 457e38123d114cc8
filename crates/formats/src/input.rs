//! Inputs: files, folders and standard input, compressed or not.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use consistory_faults::{Point, fail};
use consistory_verdict::Budget;
use flate2::bufread::MultiGzDecoder;

use crate::folder;
use crate::format::{Format, extension};
use crate::limits::{Limited, Limits};
use crate::read::{ReadError, SNIFFED_BYTES};
use crate::walk::{Descend, Entry, walk};

/// A source of histories.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// A file, or a pipe that has a path.
    File(PathBuf),
    /// A folder that is one history, with one file per session.
    Folder(PathBuf, Format),
    /// Standard input, which can be read once.
    Stdin,
}

impl fmt::Display for Input {
    /// Writes the name that diagnostics and reports use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::File(path) | Input::Folder(path, _) => f.write_str(&source_name(path)),
            Input::Stdin => f.write_str("<stdin>"),
        }
    }
}

/// Returns the name of a path: the path itself if it is UTF-8, and otherwise the path with `\xff`
/// for each byte that is not part of a character, so that [`source_path`] can restore it.
pub fn source_name(path: &Path) -> String {
    let mut name = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        name.push_str(chunk.valid());
        for byte in chunk.invalid() {
            name.push_str(&format!("\\x{byte:02x}"));
        }
    }
    name
}

/// Returns the path with a name: the name itself if this file exists or the name contains no
/// escapes, and otherwise the path with the bytes that [`source_name`] escaped.
#[cfg(unix)]
pub fn source_path(name: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    if !name.contains("\\x") || Path::new(name).exists() {
        return PathBuf::from(name);
    }
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("\\x") {
        let digits = rest.get(at + 2..at + 4);
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|byte| !byte.is_ascii()) {
            Some(byte) => {
                bytes.extend(&rest.as_bytes()[..at]);
                bytes.push(byte);
                rest = &rest[at + 4..];
            }
            None => {
                bytes.extend(&rest.as_bytes()[..at + 2]);
                rest = &rest[at + 2..];
            }
        }
    }
    bytes.extend(rest.as_bytes());
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// Returns the path with a name.
#[cfg(not(unix))]
pub fn source_path(name: &str) -> PathBuf {
    PathBuf::from(name)
}

/// Lists the inputs that some paths denote.
///
/// `-` is standard input. A folder stands for the files in it and in its subfolders whose extension
/// belongs to a format, in the order of their names; links to folders are not followed, and pipes,
/// sockets and devices are skipped. Files that end in `.json`, `.log`, `.out` or `.txt` are
/// included if their beginning is characteristic of one format. A folder of Cobra's or Viper's logs
/// is one history. Any other path stands for itself, whether the file exists or not: reading it
/// reports an error.
pub fn inputs(paths: &[PathBuf]) -> Result<Vec<Input>, ReadError> {
    let mut found = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            found.push(Input::Stdin);
        } else if path.is_dir() {
            let before = found.len();
            find_histories(path, &mut found)?;
            if found.len() == before {
                return Err(ReadError::EmptyFolder { path: path.clone() });
            }
        } else {
            found.push(Input::File(path.clone()));
        }
    }
    Ok(found)
}

/// Adds the histories in a folder and its subfolders.
fn find_histories(folder: &Path, found: &mut Vec<Input>) -> Result<(), ReadError> {
    walk(folder, |entry| match entry {
        Entry::Folder(path) => match folder::recognise(path) {
            Some(format) => {
                found.push(Input::Folder(path.to_path_buf(), format));
                Descend::No
            }
            None => Descend::Yes,
        },
        Entry::File(path) => {
            // For a link, its target decides; a pipe would block, and a device may never end.
            let is_special = fs::metadata(path).is_ok_and(|data| !data.is_file());
            if !is_special && (Format::from_path(path).is_some() || is_log(path)) {
                found.push(Input::File(path.to_path_buf()));
            }
            Descend::No
        }
    })
}

/// Checks whether a file with an ambiguous extension begins like one of the formats.
fn is_log(path: &Path) -> bool {
    let is_text =
        extension(path).is_some_and(|found| matches!(&*found, "json" | "log" | "out" | "txt"));
    if !is_text {
        return false;
    }
    let mut beginning = Vec::new();
    let limits = Limits::new(Budget::unlimited());
    let read = open(&Input::File(path.to_path_buf()), &limits)
        .and_then(|opened| opened.bytes.take(SNIFFED_BYTES as u64).read_to_end(&mut beginning));
    let text = String::from_utf8_lossy(&beginning);
    let is_dbcop = |format| format == Format::DbcopJson && text.contains("\"events\"");
    read.is_ok() && Format::sniff(&text).is_some_and(|f| f.is_unmistakable() || is_dbcop(f))
}

/// Largest text that [`read_text`] reads, in bytes.
pub const MAX_TEXT_BYTES: u64 = 16 << 20;

/// Reads a text written by a person: a definition, an object, a litmus test.
///
/// A text that is too long, such as an endless device or a file named by mistake, is an error, so
/// that it does not use all memory.
pub fn read_text(path: &Path) -> io::Result<String> {
    fail(Point::Read)?;
    text_of(File::open(path)?)
}

/// Reads a text from a stream, as [`read_text`] does.
pub fn text_of(stream: impl Read) -> io::Result<String> {
    let mut text = String::new();
    stream.take(MAX_TEXT_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_TEXT_BYTES {
        true => {
            let most = MAX_TEXT_BYTES >> 20;
            Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("more than {most} MiB of text"),
            ))
        }
        false => Ok(text),
    }
}

/// A stream of bytes, decompressed.
pub(crate) type Bytes = Box<dyn BufRead + Send>;

const BUFFER_BYTES: usize = 1 << 18;

/// An opened input.
pub(crate) struct Opened {
    pub(crate) bytes: Bytes,
    /// Whether opening it again yields the same bytes.
    pub(crate) is_repeatable: bool,
}

pub(crate) fn open(input: &Input, limits: &Limits) -> io::Result<Opened> {
    let buffered = |bytes: Box<dyn Read + Send>| -> Bytes {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, Limited { bytes, limits: limits.clone() }))
    };
    let (raw, is_repeatable): (Bytes, bool) = match input {
        Input::File(path) => {
            let file = File::open(path)?;
            let kind = file.metadata()?.file_type();
            if kind.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            (buffered(Box::new(file)), kind.is_file())
        }
        Input::Folder(..) => return Err(io::ErrorKind::IsADirectory.into()),
        Input::Stdin => (buffered(Box::new(io::stdin())), false),
    };
    Ok(Opened { bytes: decompress(raw, limits)?, is_repeatable })
}

/// Decompresses a stream whose first bytes are those of gzip or zstd.
pub(crate) fn decompress(mut raw: Bytes, limits: &Limits) -> io::Result<Bytes> {
    let mut magic = Vec::new();
    raw.by_ref().take(4).read_to_end(&mut magic)?;
    let kind = match magic[..] {
        [0x1f, 0x8b, ..] => 'g',
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => 'z',
        _ => ' ',
    };
    let whole = Cursor::new(magic).chain(raw);
    Ok(match kind {
        'g' => Box::new(limited(MultiGzDecoder::new(whole), limits)),
        'z' => Box::new(limited(zstd::Decoder::with_buffer(whole)?, limits)),
        _ => Box::new(whole),
    })
}

fn limited<R: Read>(bytes: R, limits: &Limits) -> BufReader<Limited<R>> {
    BufReader::with_capacity(BUFFER_BYTES, Limited { bytes, limits: limits.clone() })
}
