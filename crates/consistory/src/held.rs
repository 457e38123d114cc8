//! A history that is borrowed or shared.

use std::ops::Deref;
use std::sync::Arc;

use consistory_history::History;

/// The history of a verdict: borrowed from the caller, or shared by verdicts.
#[derive(Clone, Debug)]
pub(crate) enum Held<'h> {
    Borrowed(&'h History),
    Shared(Arc<History>),
}

impl Deref for Held<'_> {
    type Target = History;

    fn deref(&self) -> &History {
        match self {
            Held::Borrowed(history) => history,
            Held::Shared(history) => history,
        }
    }
}
