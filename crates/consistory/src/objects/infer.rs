//! Infers the object of a history of calls: the file names it, or only one object fits.

use std::io::{self, BufRead, Read};
use std::path::Path;

use consistory_formats::source_path;
use consistory_history::History;
use consistory_spec::{Fit, catalogue, fitting_object, why_none_fits};

use super::NamedObject;
use crate::Error;

/// Finds the object of a history: a comment at the start of the file names it, or it is the only
/// built-in object that fits every call and every return value.
pub(crate) fn of_history(source: &str, history: &History) -> Result<NamedObject, Error> {
    if let Some(name) = object_in_comment(&source_path(source)) {
        return NamedObject::load(&name);
    }
    if !history.has_calls() {
        let is_of_transactions = history.first_long_transaction().is_some() || history.has_lists();
        return NamedObject::load(match history.key_count() {
            _ if is_of_transactions => "transactions",
            0 | 1 => "cas-register",
            _ => "kv",
        });
    }
    match fitting_object(history) {
        Fit::One(name) => NamedObject::load(&name),
        Fit::None => Err(Error::NoObject { reason: why_none_fits(history) }),
        Fit::Several(candidates) => Err(Error::AmbiguousObject { candidates }),
    }
}

/// Returns the object named in a comment at the start of a file; paths are relative to the file.
fn object_in_comment(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).ok().filter(|_| path.is_file())?;
    let lines = io::BufReader::new(file.take(1 << 16)).lines();
    let comments = lines.map_while(Result::ok).take_while(|line| {
        let line = line.trim_start();
        line.is_empty() || line.starts_with('#')
    });
    let named = comments.filter_map(|line| {
        let comment = line.trim_start_matches('#').trim();
        let name = comment.strip_prefix("object:").map(|name| name.trim().to_owned());
        // Recorders of other formats write `@object atomic-stack`, or the bare name.
        let atomic = || comment.strip_prefix("@object")?.trim().strip_prefix("atomic-");
        let is_ready = |name: &&str| catalogue().iter().any(|entry| entry.name == *name);
        name.or_else(|| atomic().or(Some(comment)).filter(is_ready).map(ToOwned::to_owned))
    });
    let name = named.last()?;
    match name.ends_with(".object") {
        true => Some(path.parent()?.join(name).display().to_string()),
        false => Some(name),
    }
}
