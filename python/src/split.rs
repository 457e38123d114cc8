//! Finds positions at which a large file of JSON lines can be cut, so that several machines can
//! share it.
//!
//! A cut is made only where a history ends. Of each line only the field `"history"` is read,
//! without parsing the rest.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use pyo3::prelude::*;

/// A piece: its first byte, the byte after its last, the index of its first history, and the number of
/// lines before it.
type Piece = (u64, u64, u64, u64);

/// Cuts a file of JSON lines into pieces of about `size` bytes.
///
/// A file whose lines have no `"history"` is one piece.
#[pyfunction]
pub(crate) fn split_jsonl(py: Python<'_>, path: PathBuf, size: u64) -> PyResult<Vec<Piece>> {
    let split = || -> std::io::Result<Vec<Piece>> {
        let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
        let mut cutter = Cutter::new(size);
        let mut line = Vec::new();
        while file.read_until(b'\n', &mut line)? > 0 {
            cutter.add(&line);
            line.clear();
        }
        Ok(cutter.finish())
    };
    Ok(py.detach(split)?)
}

/// Cuts JSON lines that come in blocks, such as those of a remote file.
#[pyclass(module = "consistory", name = "LineCutter")]
pub(crate) struct LineCutter {
    cutter: Cutter,
    /// Start of a line that continues in the next block.
    open: Vec<u8>,
}

#[pymethods]
impl LineCutter {
    #[new]
    fn new(size: u64) -> Self {
        LineCutter { cutter: Cutter::new(size), open: Vec::new() }
    }

    /// Adds the next bytes of the file.
    fn feed(&mut self, py: Python<'_>, block: &[u8]) {
        py.detach(|| {
            for part in block.split_inclusive(|&byte| byte == b'\n') {
                match (part.ends_with(b"\n"), self.open.is_empty()) {
                    (true, true) => self.cutter.add(part),
                    (is_whole, _) => {
                        self.open.extend_from_slice(part);
                        if is_whole {
                            self.cutter.add(&self.open);
                            self.open.clear();
                        }
                    }
                }
            }
        });
    }

    /// Returns the pieces of all bytes that were added, like `split_jsonl`.
    fn finish(&mut self) -> Vec<Piece> {
        let open = std::mem::take(&mut self.open);
        if !open.is_empty() {
            self.cutter.add(&open);
        }
        std::mem::replace(&mut self.cutter, Cutter::new(1)).finish()
    }
}

/// Finds the cuts, line by line.
struct Cutter {
    size: u64,
    pieces: Vec<Piece>,
    /// Name of the last history.
    last: Vec<u8>,
    /// Position, first history and number of lines before the current piece.
    open: (u64, u64, u64),
    /// Bytes, histories and lines so far.
    at: (u64, u64, u64),
}

impl Cutter {
    fn new(size: u64) -> Self {
        let (size, pieces, last) = (size.max(1), Vec::new(), Vec::new());
        Cutter { size, pieces, last, open: (0, 0, 0), at: (0, 0, 0) }
    }

    fn add(&mut self, line: &[u8]) {
        let (at, histories, lines) = &mut self.at;
        if let Some(name) = history_name(line)
            && (name != self.last || *histories == 0)
        {
            let (first, first_history, lines_before) = self.open;
            if *histories > 0 && *at - first >= self.size {
                self.pieces.push((first, *at, first_history, lines_before));
                self.open = (*at, *histories, *lines);
            }
            self.last.clear();
            self.last.extend_from_slice(name);
            *histories += 1;
        }
        *at += line.len() as u64;
        *lines += 1;
    }

    fn finish(mut self) -> Vec<Piece> {
        let (first, first_history, lines_before) = self.open;
        if self.at.0 > first {
            self.pieces.push((first, self.at.0, first_history, lines_before));
        }
        self.pieces
    }
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

/// Returns the position after the string that starts at a quote.
fn string_end(line: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < line.len() && line[at] != b'"' {
        at += if line[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(line.len())
}

/// Returns the string or number at the start of a text.
fn first_value(text: &[u8]) -> &[u8] {
    if text.first() == Some(&b'"') {
        return &text[..string_end(text, 0)];
    }
    let end =
        text.iter().position(|byte| matches!(byte, b',' | b'}') || byte.is_ascii_whitespace());
    &text[..end.unwrap_or(text.len())]
}
