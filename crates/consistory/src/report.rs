//! Reports: all verdicts on one history.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use consistory_history::History;

use crate::held::Held;
use crate::objects::NamedObject;
use crate::verdict::Verdict;

/// The verdicts on one history, one for each model.
#[derive(Clone, Debug)]
pub struct Report<'h> {
    pub(crate) place: Origin,
    pub(crate) history: Held<'h>,
    pub(crate) object: Option<NamedObject>,
    pub(crate) verdicts: Vec<Verdict<'h>>,
    pub(crate) strongest: Option<Vec<String>>,
}

/// Source of a history.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) source: Arc<str>,
    pub(crate) number: usize,
    pub(crate) index: u64,
    pub(crate) reading: Duration,
}

impl Default for Origin {
    fn default() -> Self {
        Origin { source: "history".into(), number: 0, index: 0, reading: Duration::ZERO }
    }
}

impl<'h> Report<'h> {
    /// Returns the name of the source of the history.
    pub fn source(&self) -> &str {
        &self.place.source
    }

    /// Returns the number of the source among all sources.
    pub fn number(&self) -> usize {
        self.place.number
    }

    /// Returns the index of the history in its source.
    pub fn index(&self) -> u64 {
        self.place.index
    }

    /// Returns the time that reading the history took, if reading was limited; the time of each
    /// verdict does not include it.
    pub fn reading_time(&self) -> Duration {
        self.place.reading
    }

    /// Returns the history as it was judged: reads and writes judged by a model of objects are
    /// calls.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Returns the object of the calls, if the history was judged as calls.
    pub fn object(&self) -> Option<&NamedObject> {
        self.object.as_ref()
    }

    /// Returns the satisfied models that no other satisfied model implies, if `strongest` was
    /// requested.
    pub fn strongest(&self) -> Option<&[String]> {
        self.strongest.as_deref()
    }
}

impl<'h> Deref for Report<'h> {
    type Target = [Verdict<'h>];

    fn deref(&self) -> &[Verdict<'h>] {
        &self.verdicts
    }
}

impl<'h> IntoIterator for Report<'h> {
    type Item = Verdict<'h>;
    type IntoIter = std::vec::IntoIter<Verdict<'h>>;

    fn into_iter(self) -> Self::IntoIter {
        self.verdicts.into_iter()
    }
}
