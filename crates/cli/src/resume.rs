//! `consistory check --resume OUT`: continues an interrupted batch.
//!
//! OUT holds the lines of `check --format json`, one per history. A last line that was cut off is
//! removed, the histories of the others are not judged again, and new lines are appended.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;

use crate::check::worse;
use crate::error::{CliError, OK, UNDECIDED, VIOLATION};

/// A batch that is resumed.
pub(crate) struct Resumed {
    /// The file, opened so that everything is appended to it.
    pub(crate) file: File,
    /// The histories that were judged: their sources and indices.
    pub(crate) judged: HashSet<(String, u64)>,
    /// The exit code that their verdicts lead to.
    pub(crate) code: u8,
}

/// Opens the output of an interrupted batch; a file that does not exist is an empty one.
pub(crate) fn resume(path: &Path) -> Result<Resumed, CliError> {
    let failed = |error| CliError::file("resume", path, error);
    let mut file =
        OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(CliError::usage(format!("cannot resume {}: it is not a file", path.display())));
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(failed)?;
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let (mut judged, mut code) = (HashSet::new(), OK);
    let lines = text[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    for (number, line) in lines.enumerate() {
        let line: Option<Value> = serde_json::from_slice(line).ok();
        let place = line.as_ref().and_then(|line| {
            Some((line.get("source")?.as_str()?.to_owned(), line.get("index")?.as_u64()?))
        });
        let results = line.as_ref().and_then(|line| line.get("results")?.as_array());
        let (Some(place), Some(results)) = (place, results) else {
            return Err(CliError::with_hint(
                format!("{}:{}: not a line of verdicts", path.display(), number + 1),
                "resume a file that `check --format json` wrote; nothing was changed",
            ));
        };
        for result in results {
            code = worse(
                code,
                match result.get("verdict").and_then(Value::as_str) {
                    Some("violation") => VIOLATION,
                    Some("undecided") => UNDECIDED,
                    _ => OK,
                },
            );
        }
        judged.insert(place);
    }
    // Only what is not a whole line goes, once it is clear that the file is ours.
    file.set_len(whole as u64).map_err(failed)?;
    file.seek(SeekFrom::End(0)).map_err(failed)?;
    Ok(Resumed { file, judged, code })
}
