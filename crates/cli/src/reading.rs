//! Inputs other than histories: files and standard input. In test builds, reads can be made to
//! fail.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;

use consistory_faults::{Point, fail};

use crate::error::CliError;

/// An input whose reads can be made to fail.
#[derive(Debug)]
pub(crate) struct Reading<R>(pub(crate) R);

impl<R: Read> Read for Reading<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        fail(Point::Read).and_then(|()| self.0.read(buffer))
    }
}

/// Opens a file.
pub(crate) fn open(path: &Path) -> Result<Reading<File>, CliError> {
    File::open(path).map(Reading).map_err(|error| CliError::file("read", path, error))
}

/// Largest size of a line in bytes; a longer one, as from an endless device, is an error.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// Largest size of a file that is read completely, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Reads a whole file as text.
pub(crate) fn text(path: &Path) -> Result<String, CliError> {
    text_within(path, MAX_FILE_BYTES)
}

/// Reads a whole file as text; fails if it is longer than `limit` bytes.
pub(crate) fn text_within(path: &Path, limit: u64) -> Result<String, CliError> {
    let failed = |error| CliError::file("read", path, error);
    let mut text = String::new();
    open(path)?.take(limit + 1).read_to_string(&mut text).map_err(failed)?;
    match text.len() as u64 > limit {
        true => Err(failed(io::Error::other(format!("more than {} MiB of text", limit >> 20)))),
        false => Ok(text),
    }
}

/// Iterates over the lines of an input, without line terminators; fails at a line that is too long.
pub(crate) fn lines(mut input: impl BufRead) -> impl Iterator<Item = io::Result<String>> {
    let mut next = move || -> io::Result<Option<String>> {
        let mut line = Vec::new();
        input.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.len() as u64 > MAX_LINE_BYTES {
            return Err(io::Error::other("a line of more than 64 MiB"));
        }
        if line.last() == Some(&b'\n') {
            line.pop();
            line.pop_if(|last| *last == b'\r');
        }
        String::from_utf8(line).map(Some).map_err(|_| io::Error::other("bytes that are not UTF-8"))
    };
    std::iter::from_fn(move || next().transpose())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_standard_library_reads_them_up_to_a_length() {
        for text in ["", "a", "a\n", "a\n\nb \t\r\nc", "\n", "\r\n\n"] {
            let found: Vec<String> = lines(text.as_bytes()).map(Result::unwrap).collect();
            assert_eq!(found, text.lines().collect::<Vec<_>>(), "{text:?}");
        }
        let endless = io::BufReader::new(io::repeat(b'x'));
        assert!(lines(endless).next().is_some_and(|line| line.is_err()));
        assert!(lines(&b"\xff\n"[..]).next().is_some_and(|line| line.is_err()));
    }
}
