//! Errors, each with its position and a hint.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use consistory_diagnostic::{Diagnostics, Style};
use consistory_formats::ReadError;
use consistory_models::{DoesNotApply, table};
use consistory_verdict::Family;
use consistory_work::Panicked;

/// Reason why a history could not be read or judged.
#[derive(Debug)]
pub enum Error {
    /// An input could not be read as histories.
    Read(ReadError),
    /// A text contains several histories where one is expected.
    Several {
        /// Number of histories.
        histories: usize,
    },
    /// An input has no history with the requested index.
    NoSuchIndex {
        /// The name of the input.
        source: String,
        /// Requested index.
        index: u64,
        /// Number of histories in the input.
        histories: u64,
    },
    /// No model was selected.
    NoModel,
    /// The id of a model is unknown.
    UnknownModel {
        /// The id.
        id: String,
        /// Similar ids, or all ids.
        hint: String,
    },
    /// A model belongs to another family than the object or the other named models.
    WrongFamily {
        /// The id of the model.
        id: String,
        /// Family of the object or of the other models.
        expected: Family,
    },
    /// A definition, an object file, axioms or levels have errors.
    Text(Diagnostics),
    /// A file could not be read.
    File {
        /// The file.
        path: PathBuf,
        /// The failure.
        error: io::Error,
    },
    /// An object's name is unknown, or its parameter is wrong.
    UnknownObject {
        /// The reason.
        reason: String,
    },
    /// An object has no method with this name.
    UnknownMethod {
        /// The name.
        method: String,
        /// The methods that it has.
        known: Vec<String>,
    },
    /// No built-in object fits every call of a history.
    NoObject {
        /// Reason.
        reason: String,
    },
    /// Several built-in objects have all methods that a history calls.
    AmbiguousObject {
        /// Their names.
        candidates: Vec<String>,
    },
    /// A history does not fit the object that it is judged by.
    Misfit {
        /// The name of the object.
        object: String,
        /// The reason.
        reason: String,
        /// Remedy, if there is one.
        hint: Option<String>,
    },
    /// A named model does not apply to a history.
    DoesNotApply {
        /// The id of the model.
        model: String,
        /// The reason.
        reason: DoesNotApply,
    },
    /// None of a group of models applies to a history.
    NoneApplies {
        /// Reason why the last of them does not apply.
        reason: DoesNotApply,
    },
    /// A setting does not affect the models by which a history is judged.
    NoEffect {
        /// The setting.
        setting: String,
        /// What it is for.
        meant_for: &'static str,
        /// The family by which the history is judged.
        family: Family,
    },
    /// Judging a history panicked, which is a bug in Consistory.
    Internal(Panicked),
    /// Isolation levels do not apply to a history.
    NoTransactions {
        /// The reason.
        reason: String,
    },
    /// Judging a history from a named source failed.
    At {
        /// The name of the source.
        source: String,
        /// The index of the history in it.
        index: u64,
        /// The failure.
        error: Box<Error>,
    },
}

impl Error {
    pub(crate) fn file(path: &Path, error: io::Error) -> Self {
        Error::File { path: path.to_owned(), error }
    }

    /// Checks whether the only error is that the budget ran out.
    pub fn is_out_of_budget(&self) -> bool {
        match self {
            Error::Read(ReadError::Stopped { .. }) => true,
            Error::At { error, .. } => error.is_out_of_budget(),
            _ => false,
        }
    }

    /// Adds the source and the index of the history.
    pub(crate) fn at(self, source: &str, index: u64) -> Self {
        Error::At { source: source.to_owned(), index, error: Box::new(self) }
    }

    /// Returns a hint, if there is one.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Error::Read(ReadError::Stopped { .. }) => {
                "reading a history may take the time limit of one model and half of the memory limit: raise these limits"
                    .to_owned()
            }
            Error::Several { .. } => "read them one by one with `consistory::read`".to_owned(),
            Error::NoModel => "for example `sc`, `linearizability`, `all` or `strongest`".to_owned(),
            Error::UnknownModel { hint, .. } => hint.clone(),
            Error::WrongFamily { expected, .. } => {
                let rows = table().iter().filter(|row| row.family == *expected);
                let ids: Vec<&str> = rows.map(|row| row.id).collect();
                format!("models of {expected} are {}", ids.join(", "))
            }
            Error::UnknownObject { .. } => {
                "a path to an object file has a slash or ends in .object".to_owned()
            }
            Error::UnknownMethod { known, .. } => format!("its methods are {}", known.join(", ")),
            Error::NoObject { .. } => {
                "name a file that describes the object with `--object PATH`".to_owned()
            }
            Error::AmbiguousObject { .. } => {
                "choose one with `--object`, or with a line `# object: NAME` in the file".to_owned()
            }
            Error::NoSuchIndex { histories: 0, .. } => "it contains no history".to_owned(),
            Error::NoSuchIndex { histories, .. } => {
                format!("its histories have the indices 0 to {}", histories - 1)
            }
            Error::Misfit { hint, .. } => return hint.clone(),
            Error::NoEffect { .. } => {
                "leave it out, or name the models; `linearizability` is about real time".to_owned()
            }
            Error::Internal(_) => {
                "this is a bug in Consistory, not in your history; please report it".to_owned()
            }
            Error::At { error, .. } => return error.hint(),
            Error::Read(_)
            | Error::Text(_)
            | Error::File { .. }
            | Error::DoesNotApply { .. }
            | Error::NoneApplies { .. }
            | Error::NoTransactions { .. } => return None,
        })
    }

    /// Renders the errors of a text with the affected lines, as rustc does.
    ///
    /// Returns `None` for an error without a position in a text.
    pub fn render(&self, style: Style) -> Option<String> {
        match self {
            Error::Read(ReadError::Malformed(diagnostics)) | Error::Text(diagnostics) => {
                Some(diagnostics.render(style))
            }
            Error::At { error, .. } => error.render(style),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Read(error) => write!(f, "{error}"),
            Error::Several { histories } => {
                write!(f, "there are {histories} histories where one is expected")
            }
            Error::NoSuchIndex { source, index, .. } => {
                write!(f, "{source} has no history with index {index}")
            }
            Error::NoModel => f.write_str("no model is named"),
            Error::UnknownModel { id, .. } => write!(f, "there is no model `{id}`"),
            Error::WrongFamily { id, expected } => {
                write!(f, "`{id}` is not a model of {expected}")
            }
            Error::Text(diagnostics) => write!(f, "{diagnostics}"),
            Error::File { path, error } => write!(f, "cannot read {}: {error}", path.display()),
            Error::UnknownObject { reason } => f.write_str(reason),
            Error::UnknownMethod { method, .. } => {
                write!(f, "the object has no method `{method}`")
            }
            Error::NoObject { reason } => f.write_str(reason),
            Error::AmbiguousObject { candidates } => {
                write!(f, "these may be calls of {}", candidates.join(" or "))
            }
            Error::Misfit { reason, .. } => f.write_str(reason),
            Error::DoesNotApply { model, reason } => {
                write!(f, "{model} does not apply: {reason}")
            }
            Error::NoneApplies { reason } => {
                write!(f, "none of the models applies: {reason}")
            }
            Error::NoEffect { setting, meant_for, family } => write!(
                f,
                "{setting} is for {meant_for}, and this history is judged by models of {family}"
            ),
            Error::Internal(panicked) => write!(f, "{panicked}"),
            Error::NoTransactions { reason } => {
                write!(f, "isolation levels do not apply: {reason}")
            }
            Error::At { source, index, error } => write!(f, "{source} [{index}]: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Read(error) => Some(error),
            Error::File { error, .. } => Some(error),
            Error::Internal(panicked) => Some(panicked),
            Error::At { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Error::Read(error)
    }
}

impl From<Diagnostics> for Error {
    fn from(diagnostics: Diagnostics) -> Self {
        Error::Text(diagnostics)
    }
}
