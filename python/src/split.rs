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

/// Returns the JSON text of a line's `"history"`, a field of the line's own object.
fn history_name(line: &[u8]) -> Option<&[u8]> {
    const FIELD: &[u8] = b"\"history\"";
    let mut at = 0;
    let mut depth = 0;
    while at < line.len() {
        match line[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let end = string_end(line, at);
                let after = line[end..].trim_ascii_start();
                if depth == 1 && &line[at..end] == FIELD && after.first() == Some(&b':') {
                    return Some(first_value(after[1..].trim_ascii_start()));
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the place after the string that starts at a quote.
fn string_end(line: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < line.len() && line[at] != b'"' {
        at += if line[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(line.len())
}

/// Returns the text of the string or number that a text starts with.
fn first_value(text: &[u8]) -> &[u8] {
    if text.first() == Some(&b'"') {
        return &text[..string_end(text, 0)];
    }
    let end =
        text.iter().position(|byte| matches!(byte, b',' | b'}') || byte.is_ascii_whitespace());
    &text[..end.unwrap_or(text.len())]
}
