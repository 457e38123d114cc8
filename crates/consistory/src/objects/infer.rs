//! The object that a history of calls belongs to: its file names it, or only one has its methods.

use std::io::{self, BufRead, Read};
use std::path::Path;

use consistory_history::{Action, History};
use consistory_spec::{Method, Object, catalogue, find};

use super::NamedObject;
use crate::Error;

/// Finds the object of a history: a comment at the start of its file names it, or only one ready
/// object has its methods.
pub(crate) fn of_history(source: &str, history: &History) -> Result<NamedObject, Error> {
    if let Some(name) = object_in_comment(Path::new(source)) {
        return NamedObject::load(&name);
    }
    if !history.has_calls() {
        return NamedObject::load(if history.key_count() > 1 { "kv" } else { "cas-register" });
    }
    let has_all = |object: &dyn Object| {
        history.ops().all(|op| match history.action(op) {
            Action::Call(id) => {
                let call = history.call(id);
                object.resolve(&call.method, call.args.len()).is_ok()
            }
            _ => false,
        })
    };
    // Of the objects that have all the methods, those that know most of them by these names.
    let known = |object: &dyn Object| {
        let is_called = |method: &&Method| {
            history.ops().any(|op| match history.action(op) {
                Action::Call(id) => history.call(id).method == method.name,
                _ => false,
            })
        };
        object.methods().iter().filter(is_called).count()
    };
    let fitting: Vec<(&str, usize)> = catalogue()
        .iter()
        .filter_map(|entry| Some((entry.name, find(entry.name).ok()?)))
        .filter(|(_, object)| has_all(&**object))
        .map(|(name, object)| (name, known(&*object)))
        .collect();
    let most = fitting.iter().map(|&(_, known)| known).max();
    let fitting: Vec<&str> =
        fitting.iter().filter(|(_, n)| Some(*n) == most).map(|&(name, _)| name).collect();
    match fitting[..] {
        // `cas-register` has all methods of `register`, and they do the same.
        [one] | [one @ "register", "cas-register"] => NamedObject::load(one),
        [] => Err(Error::NoObject),
        _ => Err(Error::AmbiguousObject {
            candidates: fitting.iter().map(ToString::to_string).collect(),
        }),
    }
}

/// Returns the object that a comment at the start of a file names; a path counts from the file.
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
        // As recorders of other formats write it: `@object atomic-stack`, or the bare name.
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
