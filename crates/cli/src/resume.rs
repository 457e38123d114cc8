//! `consistory check --resume OUT`: continues an interrupted batch.
//!
//! OUT contains the lines of `check --format json`, one per history. An incomplete last line is
//! removed, the histories of the other lines are not judged again, and new lines are appended.
//! Lines about other models are rejected, and so are lines about a history that has changed.

use std::collections::{BTreeSet, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use consistory::NamedObject;
use consistory_history::{History, escaped, is_of_transaction_calls, transactions_of_calls};
use serde_json::Value;

use crate::check::worse;
use crate::error::{CliError, OK, UNDECIDED, VIOLATION};

/// A batch that is resumed.
pub(crate) struct Resumed {
    /// File, opened for appending.
    pub(crate) file: File,
    /// Histories that were judged.
    pub(crate) judged: Judged,
    /// Exit code of their verdicts.
    pub(crate) code: u8,
}

/// The lines of histories that were judged, by their sources and indices.
#[derive(Default)]
pub(crate) struct Judged(HashMap<(String, u64), Line>);

/// Data of a line about its history.
struct Line {
    digest: Option<String>,
    /// Object of the judged calls, if any.
    object: Option<String>,
}

impl Line {
    fn is_about(&self, history: &History) -> bool {
        let Some(digest) = &self.digest else { return true };
        if *digest == history.digest() {
            return true;
        }
        // Calls may have been judged as transactions, or as reads and writes, and vice versa.
        let is_it = |made: &History| made.digest() == *digest;
        let Some(Ok(named)) = self.object.as_deref().map(NamedObject::load) else {
            return is_of_transaction_calls(history)
                && transactions_of_calls(history).as_ref().is_ok_and(is_it);
        };
        named.as_registers(history).as_ref().is_some_and(is_it)
            || named.as_calls(history).is_ok_and(|(made, _)| made.as_ref().is_some_and(is_it))
    }
}

/// Whether a history was judged.
#[derive(PartialEq, Eq)]
pub(crate) enum Known {
    /// The history was not judged.
    No,
    /// The history was judged.
    Yes,
    /// Another history with the same source and index was judged.
    Changed,
}

impl Judged {
    /// Checks whether a history was judged.
    pub(crate) fn knows(&self, source: &str, index: u64, history: &History) -> Known {
        if self.0.is_empty() {
            return Known::No;
        }
        match self.0.get(&(source.to_owned(), index)) {
            None => Known::No,
            Some(line) if line.is_about(history) => Known::Yes,
            Some(_) => Known::Changed,
        }
    }
}

/// The models of a batch.
pub(crate) struct Asked<'a> {
    /// Ids of the models that were selected by name.
    pub(crate) named: BTreeSet<&'a str>,
    /// Further models.
    pub(crate) others: Others,
}

/// Models in addition to those selected by name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// None.
    None,
    /// Axioms and levels from the command line.
    Own,
    /// Every model that applies.
    All,
    /// Every model that applies; the strongest ones are reported.
    Strongest,
}

impl Asked<'_> {
    /// Checks whether a line with verdicts on these models covers all requested models.
    fn is_answered_by(&self, line: &Value, models: &BTreeSet<&str>) -> bool {
        let fits = match self.others {
            Others::None => models.is_subset(&self.named),
            Others::Own => !models.is_empty(),
            // Several models apply to any history.
            Others::All => models.len() > 1 && line.get("strongest").is_none(),
            Others::Strongest => line.get("strongest").is_some(),
        };
        fits && self.named.is_subset(models)
    }
}

/// Opens the output of an interrupted batch; a missing file counts as empty.
pub(crate) fn resume(path: &Path, asked: &Asked<'_>) -> Result<Resumed, CliError> {
    let failed = |error| CliError::file("resume", path, error);
    let mut file =
        OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(CliError::usage(format!("cannot resume {}: it is not a file", path.display())));
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(failed)?;
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let (mut judged, mut code) = (Judged::default(), OK);
    let lines = text[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    for (number, line) in lines.enumerate() {
        let line: Option<Value> = serde_json::from_slice(line).ok();
        let parts = line.as_ref().and_then(|line| {
            let place = (line.get("source")?.as_str()?.to_owned(), line.get("index")?.as_u64()?);
            Some((line, place, line.get("results")?.as_array()?))
        });
        let Some((line, place, results)) = parts else {
            return Err(CliError::with_hint(
                format!("{}:{}: not a line of verdicts", path.display(), number + 1),
                "resume a file that `check --format json` wrote; nothing was changed",
            ));
        };
        let models = results.iter().filter_map(|result| result.get("model")?.as_str()).collect();
        if !asked.is_answered_by(line, &models) {
            let shown = Vec::from_iter(models.iter().copied()).join(",");
            return Err(CliError::with_hint(
                format!("{}:{}: verdicts on other models", path.display(), number + 1),
                format!(
                    "the line is about {}: resume with the models that the batch was started with; \
                     nothing was changed",
                    escaped(&shown)
                ),
            ));
        }
        let text = |field: &str| line.get(field).and_then(Value::as_str).map(str::to_owned);
        judged.0.insert(place, Line { digest: text("digest"), object: text("object") });
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
    }
    // Only an incomplete line is removed, once it is clear that the file is such an output.
    file.set_len(whole as u64).map_err(failed)?;
    file.seek(SeekFrom::End(0)).map_err(failed)?;
    Ok(Resumed { file, judged, code })
}
