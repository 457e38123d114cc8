//! Which object a history is of: the one that is named, that its file names, or that has the methods.

use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use consistory_history::{Action, History, Value};
use consistory_objects::calls_of_registers;
use consistory_spec::{CasRegister, KeyValue, Method, Object, Register, catalogue, find};

use crate::error::CliError;

/// An object and what it was called.
#[derive(Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) object: Arc<dyn Object>,
}

impl Named {
    /// Finds an object by its name, or reads its file.
    pub(crate) fn load(name: &str) -> Result<Self, CliError> {
        Ok(Named { name: name.to_owned(), object: load_object(name)? })
    }

    /// Finds the object that a history is of: its file says so, or only one has its methods.
    pub(super) fn of_history(source: &str, history: &History) -> Result<Self, CliError> {
        if let Some(name) = said_object(Path::new(source)) {
            return Named::load(&name);
        }
        if !history.has_calls() {
            return Named::load(if history.key_count() > 1 { "kv" } else { "cas-register" });
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
        // Of those that have all the methods, the ones that know most of them by these names.
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
            // The second has all methods of the first, and they do the same.
            [one] | [one @ "register", "cas-register"] => Named::load(one),
            [] => Err(CliError::with_hint(
                "no ready object has all the methods that are called",
                "name a file that describes the object with `--object PATH`",
            )),
            _ => Err(CliError::with_hint(
                format!("these may be calls of {}", fitting.join(" or ")),
                "say which with `--object`, or with a line `# object: NAME` in the file",
            )),
        }
    }
}

/// Gives the object that a comment at the beginning of a file names; a path counts from the file.
fn said_object(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).ok().filter(|_| path.is_file())?;
    let lines = io::BufReader::new(file.take(1 << 16)).lines();
    let comments = lines.map_while(Result::ok).take_while(|line| {
        let line = line.trim_start();
        line.is_empty() || line.starts_with('#')
    });
    let said = comments.filter_map(|line| {
        let comment = line.trim_start_matches('#').trim();
        let name = comment.strip_prefix("object:").map(|name| name.trim().to_owned());
        // As recorders of other formats write it: `@object atomic-stack`, or the bare name.
        let atomic = || comment.strip_prefix("@object")?.trim().strip_prefix("atomic-");
        let is_ready = |name: &&str| catalogue().iter().any(|entry| entry.name == *name);
        name.or_else(|| atomic().or(Some(comment)).filter(is_ready).map(ToOwned::to_owned))
    });
    let name = said.last()?;
    match name.ends_with(".object") {
        true => Some(path.parent()?.join(name).display().to_string()),
        false => Some(name),
    }
}

/// Makes calls of a history of reads and writes; its registers start with what the history says,
/// unless the object's name says something else.
pub(crate) fn prepare(
    history: &History,
    named: Named,
) -> Result<(Option<History>, Named), CliError> {
    let kind = named.name.split('(').next().unwrap_or_default();
    let is_keyed = kind == "kv";
    if history.has_calls() || history.is_empty() {
        return Ok((None, named));
    }
    if !is_keyed && !matches!(kind, "register" | "cas-register") {
        return Err(CliError::with_hint(
            format!("these are reads and writes, not calls of `{}`", named.name),
            "reads and writes are calls of `register`, `cas-register` or, with several keys, `kv`",
        ));
    }
    let mut initial: Vec<&Value> =
        history.keys().map(|key| history.value(history.initial_value(key))).collect();
    initial.dedup();
    if !is_keyed && history.key_count() > 1 {
        return Err(CliError::with_hint(
            format!("there are several registers here, and `{}` is one", named.name),
            "judge them all with `--object kv`",
        ));
    }
    let calls = calls_of_registers(history, is_keyed)
        .map_err(|error| CliError::usage(error.to_string()))?;
    let object: Arc<dyn Object> = match (kind, &initial[..]) {
        _ if named.name != kind => named.object,
        (_, []) => named.object,
        ("register", [initial, ..]) => Arc::new(Register { initial: (*initial).clone() }),
        ("cas-register", [initial, ..]) => Arc::new(CasRegister { initial: (*initial).clone() }),
        (_, [initial]) => Arc::new(KeyValue { initial: (*initial).clone() }),
        _ => return Err(CliError::usage("the registers start with different values")),
    };
    Ok((Some(calls), Named { name: named.name, object }))
}

/// Finds an object by its name, or reads its file.
pub(crate) fn load_object(name: &str) -> Result<Arc<dyn Object>, CliError> {
    if name.contains(['/', '\\']) || name.ends_with(".object") {
        let path = Path::new(name);
        let text =
            std::fs::read_to_string(path).map_err(|error| CliError::file("read", path, error))?;
        return match consistory_spec::parse_object(name, &text) {
            Ok(object) => Ok(Arc::new(object)),
            Err(errors) => Err(errors.into()),
        };
    }
    find(name).map_err(|error| {
        CliError::with_hint(
            error.to_string(),
            "a path to an object file has a slash or ends in .object",
        )
    })
}

/// Gives the name that a specification knows a method by.
pub(crate) fn known_method(object: &dyn Object, name: &str) -> Result<Box<str>, CliError> {
    let methods = object.methods();
    let is_it = |m: &&Method| *m.name == *name || m.aliases.iter().any(|alias| **alias == *name);
    match methods.iter().find(is_it) {
        Some(method) => Ok(method.name.clone()),
        None if methods.is_empty() => Ok(name.into()),
        None => {
            let mut names: Vec<&str> = methods.iter().map(|method| &*method.name).collect();
            names.dedup();
            Err(CliError::with_hint(
                format!("the object has no method `{name}`"),
                format!("its methods are {}", names.join(", ")),
            ))
        }
    }
}
