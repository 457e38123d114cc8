//! The one error type of the command line, and its exit codes.

use std::fmt;
use std::io;

use consistory_diagnostic::{Diagnostics, Style};
use consistory_formats::{ReadError, WriteError};

/// All inputs are consistent, or the command succeeded.
pub(crate) const OK: u8 = 0;
/// Some history violates a model.
pub(crate) const VIOLATION: u8 = 1;
/// Bad usage, or an input that could not be read.
pub(crate) const UNREADABLE: u8 = 2;
/// Some verdict is undecided and none is a violation.
pub(crate) const UNDECIDED: u8 = 3;
/// Nothing was proved, because there was nothing to prove.
pub(crate) const UNPROVED: u8 = 4;

/// The reader of the output closed it: the code that a shell reports for a program ended by that signal.
pub(crate) const CLOSED: u8 = 141;

/// An error with its hint.
#[derive(Debug)]
pub(crate) enum CliError {
    /// The arguments are invalid.
    Usage { message: String, hint: Option<String> },
    /// A history could not be read or judged.
    Judge(consistory::Error),
    /// A text other than a history has errors: a litmus test, a protocol.
    Malformed(Diagnostics),
    /// A history cannot be written in a format.
    Write(WriteError),
    /// A file or a stream failed.
    Io { what: String, error: io::Error },
    /// The reader of the output closed it.
    Closed,
}

impl CliError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        CliError::Usage { message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        CliError::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// Wraps an error of writing the output; a closed pipe needs no message.
    pub(crate) fn output(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::Closed,
            _ => CliError::Io { what: "cannot write the output".to_owned(), error },
        }
    }

    pub(crate) fn file(verb: &str, path: &std::path::Path, error: io::Error) -> Self {
        CliError::Io { what: format!("cannot {verb} {}", path.display()), error }
    }

    /// Renders the error for a terminal; a caller that prints it elsewhere must strip the colours.
    pub(crate) fn render(&self) -> String {
        const LABEL: &str = "\u{1b}[1;31merror\u{1b}[0m\u{1b}[1m:\u{1b}[0m";
        match self {
            CliError::Usage { message, hint: Some(hint) } => {
                format!("{LABEL} {}\n  = help: {}\n", shown(message), shown(hint))
            }
            CliError::Malformed(diagnostics) => diagnostics.render(Style::Styled),
            CliError::Judge(error) => match (error.render(Style::Styled), error.hint()) {
                (Some(text), _) => text,
                (None, Some(hint)) => {
                    format!("{LABEL} {}\n  = help: {}\n", shown(&error.to_string()), shown(&hint))
                }
                (None, None) => format!("{LABEL} {}\n", shown(&error.to_string())),
            },
            CliError::Closed => String::new(),
            other => format!("{LABEL} {}\n", shown(&other.to_string())),
        }
    }
}

/// Escapes the names in a message of one line.
fn shown(message: &str) -> std::borrow::Cow<'_, str> {
    consistory_history::escaped(message)
}

impl From<Diagnostics> for CliError {
    fn from(diagnostics: Diagnostics) -> Self {
        CliError::Malformed(diagnostics)
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Usage { message, .. } => f.write_str(message),
            CliError::Judge(error) => write!(f, "{error}"),
            CliError::Malformed(diagnostics) => write!(f, "{diagnostics}"),
            CliError::Write(error) => write!(f, "{error}"),
            CliError::Io { what, error } => write!(f, "{what}: {error}"),
            CliError::Closed => f.write_str("the output was closed"),
        }
    }
}

impl std::error::Error for CliError {}

impl From<consistory::Error> for CliError {
    fn from(error: consistory::Error) -> Self {
        CliError::Judge(error)
    }
}

impl From<ReadError> for CliError {
    fn from(error: ReadError) -> Self {
        CliError::Judge(error.into())
    }
}

impl From<WriteError> for CliError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Io(error) => CliError::output(error),
            error => CliError::Write(error),
        }
    }
}

/// Prints an error to the terminal.
pub(crate) fn report(error: &CliError) {
    use std::io::Write;
    // If standard error is closed, the message is lost.
    let _ = anstream::stderr().write_all(error.render().as_bytes());
}
