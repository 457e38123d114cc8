//! Where a large file of JSON lines can be cut, so that machines can share it.
//!
//! A cut is made only where a history ends. The file is looked at line by line for its `"history"`,
//! without parsing anything else.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use pyo3::prelude::*;

/// Cuts a file of JSON lines into pieces of about `size` bytes.
///
/// Returns for each piece its first byte, the byte after its last, and the index of its first history.
/// A file whose lines have no `"history"` is one piece.
#[pyfunction]
pub(crate) fn split_jsonl(
    py: Python<'_>,
    path: PathBuf,
    size: u64,
) -> PyResult<Vec<(u64, u64, u64)>> {
    Ok(py.detach(|| split(&path, size.max(1)))?)
}

fn split(path: &PathBuf, size: u64) -> std::io::Result<Vec<(u64, u64, u64)>> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut pieces = Vec::new();
    let (mut line, mut last) = (Vec::new(), Vec::new());
    // First byte and first history of the piece, and where the next line starts.
    let (mut first, mut first_history, mut at, mut histories) = (0, 0, 0, 0);
    loop {
        line.clear();
        let length = file.read_until(b'\n', &mut line)? as u64;
        if length == 0 {
            break;
        }
        if let Some(name) = history_name(&line)
            && (name != last || histories == 0)
        {
            if histories > 0 && at - first >= size {
                pieces.push((first, at, first_history));
                (first, first_history) = (at, histories);
            }
            last.clear();
            last.extend_from_slice(name);
            histories += 1;
        }
        at += length;
    }
    if at > first {
        pieces.push((first, at, first_history));
    }
    Ok(pieces)
}

/// Returns the JSON text of a line's `"history"`.
///
/// A text that holds the same characters is escaped inside a JSON string, so the first occurrence is
/// the field itself.
fn history_name(line: &[u8]) -> Option<&[u8]> {
    const FIELD: &[u8] = b"\"history\"";
    let start = find(line, FIELD)? + FIELD.len();
    let rest = &line[start..];
    let colon = rest.iter().position(|&byte| byte == b':')? + 1;
    let rest = rest[colon..].trim_ascii_start();
    if rest.first() == Some(&b'"') {
        let mut at = 1;
        while at < rest.len() && rest[at] != b'"' {
            at += if rest[at] == b'\\' { 2 } else { 1 };
        }
        return rest.get(..=at);
    }
    let end = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b'\n' | b' '));
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// Finds the first occurrence of a word.
fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|&byte| byte == word[0]) {
        if text[from + at..].starts_with(word) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}
