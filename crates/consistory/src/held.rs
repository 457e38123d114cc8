//! A history that is borrowed or shared.

use std::ops::Deref;
use std::sync::Arc;

use consistory_history::History;

/// A history that a verdict is about: the caller's, or one that verdicts share.
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
