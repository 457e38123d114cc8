//! Recordings that are a folder with one file per session: Cobra's and Viper's.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use consistory_history::{History, HistoryBuilder};

use crate::format::Format;
use crate::limits::{Limited, Limits};
use crate::parse::{Line, Sink};
use crate::read::{ReadError, SNIFFED_BYTES};
use crate::{cobra, viper};

/// Recognises a folder that is one recording, by the names and beginnings of its files.
pub(crate) fn recognise(folder: &Path) -> Option<Format> {
    for (format, letter) in [(Format::Cobra, 'T'), (Format::Viper, 'J')] {
        let files = session_files(folder, letter).ok()?;
        let Some((_, first)) = files.first() else { continue };
        let mut beginning = Vec::new();
        let file = fs::File::open(first).ok()?;
        file.take(SNIFFED_BYTES as u64).read_to_end(&mut beginning).ok()?;
        let fits = match format {
            Format::Cobra => cobra::looks_like(&beginning),
            _ => viper::looks_like(&String::from_utf8_lossy(&beginning)),
        };
        if fits {
            return Some(format);
        }
    }
    None
}

/// Lists the files `T1.log`, `T2.log` and so on of a folder, by number.
fn session_files(folder: &Path, letter: char) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(letter)?.strip_suffix(".log"));
        if let Some(number) = number.and_then(|digits| digits.parse().ok())
            && entry.file_type()?.is_file()
        {
            found.push((number, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

/// Reads the history of a folder; a session is named by the number of its file.
pub(crate) fn read(folder: &Path, format: Format, limits: &Limits) -> Result<History, ReadError> {
    let letter = if format == Format::Cobra { 'T' } else { 'J' };
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |error| ReadError::Io { path, error }
    };
    let files = session_files(folder, letter).map_err(failed(folder))?;
    if files.is_empty() {
        return Err(ReadError::EmptyFolder { path: folder.to_path_buf() });
    }
    let whole = |path: &Path| -> Result<Vec<u8>, ReadError> {
        let stopped = |error| ReadError::io(&crate::input::source_name(path).into(), error);
        let mut bytes = Vec::new();
        let file = fs::File::open(path).map_err(stopped)?;
        let mut file = Limited { bytes: file, limits: limits.clone() };
        file.read_to_end(&mut bytes).map_err(stopped)?;
        Ok(bytes)
    };
    limits.begin();
    let mut builder = HistoryBuilder::new();
    let mut sink = Sink::new(crate::input::source_name(folder).into());
    for (number, path) in files {
        let source = crate::input::source_name(&path);
        let session = builder.session(&number.to_string());
        if format == Format::Cobra {
            let bytes = whole(&path)?;
            cobra::read(&bytes, session, &mut builder, limits).map_err(|(at, message)| {
                ReadError::Binary { source: source.as_str().into(), at, message }
            })?;
            if let Some(stopped) = limits.stopped() {
                return Err(ReadError::Stopped { source: source.into(), stopped });
            }
            continue;
        }
        let text = String::from_utf8(whole(&path)?)
            .map_err(|_| failed(&path)(io::ErrorKind::InvalidData.into()))?;
        sink.source = source.into();
        for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if !limits.has_time() {
                break;
            }
            if let Err(fault) = viper::transaction(line, session, &mut builder) {
                sink.report(Line { number: i as u64 + 1, text: line }, fault);
            }
        }
    }
    if let Some(stopped) = limits.stopped() {
        return Err(ReadError::Stopped { source: sink.source, stopped });
    }
    if !sink.diagnostics.is_empty() {
        return Err(ReadError::Malformed(sink.diagnostics));
    }
    builder.null_is_not_zero();
    builder.finish().map_err(|error| ReadError::Binary {
        source: crate::input::source_name(folder).into(),
        at: 0,
        message: error.to_string(),
    })
}
