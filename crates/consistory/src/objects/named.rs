//! Objects by name, and conversion of reads and writes to calls.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use consistory_history::{History, transaction_calls};
use consistory_objects::calls_of_registers;
use consistory_spec::{Method, Object, StartError, find, started};

use crate::Error;

/// An object with its name in reports.
#[derive(Clone)]
pub struct NamedObject {
    name: Arc<str>,
    object: Arc<dyn Object>,
    /// Whether the object is built in.
    is_ready: bool,
}

impl fmt::Debug for NamedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamedObject").field(&self.name).finish()
    }
}

impl NamedObject {
    /// Names an object.
    pub fn new(name: &str, object: Arc<dyn Object>) -> Self {
        NamedObject { name: name.into(), object, is_ready: false }
    }

    /// Finds a built-in object by its name, such as `queue` or `register(0)`, or reads an object
    /// file.
    pub fn load(name: &str) -> Result<Self, Error> {
        if name.contains(['/', '\\']) || name.ends_with(".object") {
            let path = Path::new(name);
            let text =
                consistory_formats::read_text(path).map_err(|error| Error::file(path, error))?;
            let object = consistory_spec::parse_object(name, &text)?;
            return Ok(NamedObject::new(name, Arc::new(object)));
        }
        let object =
            find(name).map_err(|error| Error::UnknownObject { reason: error.to_string() })?;
        Ok(NamedObject { is_ready: true, ..NamedObject::new(name, object) })
    }

    /// Checks whether the object is built in.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its specification.
    pub fn object(&self) -> &Arc<dyn Object> {
        &self.object
    }

    /// Returns the name of a method in the specification.
    pub fn known_method(&self, name: &str) -> Result<Box<str>, Error> {
        let methods = self.object.methods();
        let is_it =
            |m: &&Method| *m.name == *name || m.aliases.iter().any(|alias| **alias == *name);
        match methods.iter().find(is_it) {
            Some(method) => Ok(method.name.clone()),
            None if methods.is_empty() => Ok(name.into()),
            None => {
                let mut known: Vec<String> =
                    methods.iter().map(|method| method.name.to_string()).collect();
                known.dedup();
                Err(Error::UnknownMethod { method: name.to_owned(), known })
            }
        }
    }

    /// Converts a history of reads, writes and transactions to calls, and initialises the object
    /// with the history's initial values.
    ///
    /// Returns `None` for the history if it consists of calls already.
    pub fn as_calls(self, history: &History) -> Result<(Option<History>, NamedObject), Error> {
        let named = self;
        let kind = named.name.split('(').next().unwrap_or_default().trim();
        let misfit = |reason: String, hint: Option<&str>| Error::Misfit {
            object: named.name.to_string(),
            reason,
            hint: hint.map(str::to_owned),
        };
        let started = |history: &History| {
            started(&named.name, &named.object, history).map_err(|error| {
                let hint = match error {
                    StartError::Unknown { .. } => {
                        Some("say it with `init: 0=10 1=10`, or with `--object 'bank(8*10)'`")
                    }
                    StartError::Twice { .. } => Some("leave one of them out"),
                    _ => None,
                };
                misfit(error.to_string(), hint)
            })
        };
        if history.is_empty() {
            return Ok((None, named));
        }
        if kind == "transactions" {
            let calls =
                transaction_calls(history).map_err(|error| misfit(error.to_string(), None))?;
            let object = started(&calls)?;
            return Ok((Some(calls), NamedObject { object, ..named }));
        }
        if history.has_calls() {
            let object = started(history)?;
            return Ok((None, NamedObject { object, ..named }));
        }
        let is_keyed = kind == "kv";
        if !is_keyed && !matches!(kind, "register" | "cas-register") {
            return Err(misfit(
                format!("these are reads and writes, not calls of `{}`", named.name),
                Some(
                    "reads and writes are calls of `register`, `cas-register` or, with several keys, \
                     `kv`",
                ),
            ));
        }
        if !is_keyed && history.key_count() > 1 {
            return Err(misfit(
                format!("there are several registers here, and `{}` is one", named.name),
                Some("judge them all with `--object kv`"),
            ));
        }
        let calls = calls_of_registers(history, is_keyed)
            .map_err(|error| misfit(error.to_string(), None))?;
        let object = started(history)?;
        Ok((Some(calls), NamedObject { object, ..named }))
    }
}
